"""Nodes and their places, with libyaml and with the Python parser: the same result from both."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e import yaml_positions
from runner_e2e.errors import ConfigurationError
from runner_e2e.yaml_positions import Alias, Mapping, Node, Scalar, Sequence, compose, decode, duplicate_keys, plain

NODE_MODULES = Path(__file__).parent / "node" / "node_modules"
LIBYAML = yaml_positions.LIBYAML_PARSER


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LIBYAML is not None, "the C parser belongs to the environment"
    if request.param == "python":
        monkeypatch.setattr(yaml_positions, "LIBYAML_PARSER", None)


def root(text: str) -> Mapping:
    node = compose(text, path="w.yml")
    assert isinstance(node, Mapping)
    return node


def scalar(text: str, key: str) -> Scalar:
    node = root(text).get(key)
    assert isinstance(node, Scalar)
    return node


def written(node: Node) -> str:
    return node.source.text[node.start : node.end]


def walk(node: Node) -> list[Node]:
    found = [node]
    if isinstance(node, Mapping):
        found += [inner for pair in node.pairs for child in pair for inner in walk(child)]
    elif isinstance(node, Sequence):
        found += [inner for child in node.items for inner in walk(child)]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k: plain # c\n", "plain"),
        ("k: two\n  lines\nn: x", "two\n  lines"),
        ("k: 'it''s'\n", "'it''s'"),
        ('k: "a\\tb"\n', '"a\\tb"'),
        ("k: |\n  a\n  b\n\n\n# c\nn: x", "|\n  a\n  b"),
        ("k: >-\n  a\n  b\n\nn: x", ">-\n  a\n  b"),
        ("k: !!str &anchor 12\n", "12"),
        ("k: &anchor\n  12\n", "12"),
        ("k: [a, {b: c}] # d\n", "[a, {b: c}]"),
        ("k:\n  - a\n  - b: c\n\n\n# end\n", "- a\n  - b: c"),
        ("k:\n  a: b\n  c:\n# end\n", "a: b\n  c:"),
        ("k: &x\n  a: b\n", "a: b"),
        ("\ufeffk: é😀 # c\n", "é😀"),
        ("k: a\r\nn: b\r\n", "a"),
        ("k: |\r\n  a\r\n  b\r\nn: x\r\n", "|\r\n  a\r\n  b"),
    ],
)
def test_a_span_is_what_is_written(text: str, expected: str) -> None:
    node = root(text).get("k")
    assert node is not None
    assert written(node) == expected


def test_places_count_characters_from_one() -> None:
    node = root("\ufeffé😀: 'ü': x\n".replace("'ü': x", "[ä, b]\r\nn: y\r\n"))
    sequence = node.get("é😀")
    assert isinstance(sequence, Sequence)
    assert [str(item.place) for item in sequence.items] == ["w.yml:1:6", "w.yml:1:9"]
    assert str(node.entries().__next__()[0].place) == "w.yml:1:1"
    assert node.source.line(1) == "é😀: [ä, b]"
    assert node.source.line(99) == ""


@pytest.mark.parametrize(
    ("text", "part", "place"),
    [
        ("k: |\n  first\n  second\n", "second", (3, 3)),
        ("k: |2\n    first\n   second\n", "second", (3, 4)),
        ("k: |+\n\n  first\n\n    deeper\n  last\n\n", "deeper", (5, 5)),
        ("k: >\n  folded one\n  folded two\n\n  after\n", "two", (3, 10)),
        ("k: >\n  folded one\n    deeper\n  last\n", "deeper", (3, 5)),
        ("k: >\n  folded one\n    deeper\n  last\n", "last", (4, 3)),
        ("k: two\n   lines\n", "lines", (2, 4)),
        ("k: two\n\n\n   lines\n", "lines", (4, 4)),
        ("k: 'it''s it''s'\n", "s'", (1, 15)),
        ("k: 'a\n  b''c d'\n", "d", (2, 8)),
        ('k: "\\u00e9\\x41 b"\n', "b", (1, 16)),
        ('k: "a \\\n    b \\" c"\n', "c", (2, 10)),
        ('k: "a\n\n  b"\n', "b", (3, 3)),
        ("k: |\r\n  é😀\r\n  ü second\r\n", "second", (3, 5)),
        ("k: [x, 'a b']\n", "x", (1, 5)),
    ],
)
def test_a_position_in_a_value_maps_to_the_file(text: str, part: str, place: tuple[int, int]) -> None:
    node = root(text).get("k")
    if isinstance(node, Sequence):
        node = node.items[0]
    assert isinstance(node, Scalar)
    index = node.value.rindex(part) if part != "s'" else node.value.rindex("s")
    assert node.position(index) == place


def test_positions_of_the_ends_stay_inside_the_node() -> None:
    node = scalar("k: |\n  ab\n\nn: x\n", "k")
    assert node.value == "ab\n"
    assert node.position(2) == (2, 5)
    assert node.position(3) == (2, 5)
    assert scalar("k: |\n\n\nn: x\n", "k").position(0)[0] in {1, 2}
    assert scalar("k:\n", "k").position(0) == (1, 3)


LINE = st.text(st.sampled_from("ab é😀#'\"\\:-$\t"), max_size=8)


def block(lines: list[str], style: str, indent: int) -> str:
    body = "".join(f"{' ' * indent}{line}\n" if line.strip() else "\n" for line in lines)
    return f"k: {style}{indent}\n{body}n: x\n"


@given(
    lines=st.lists(LINE, max_size=6).map(lambda lines: ["a", *lines]),
    style=st.sampled_from(["|", ">"]),
    indent=st.integers(1, 4),
    crlf=st.booleans(),
)
def test_every_character_of_a_block_scalar_maps_to_itself(
    lines: list[str], style: str, indent: int, crlf: bool
) -> None:
    text = block(lines, style, indent)
    check_map(text.replace("\n", "\r\n") if crlf else text)


@given(lines=st.lists(LINE, min_size=1, max_size=5), quote=st.sampled_from("'\""))
def test_every_character_of_a_quoted_scalar_maps_to_itself(lines: list[str], quote: str) -> None:
    body = "\n  ".join(lines).replace("\t", " ")
    escaped = body.replace("'", "''") if quote == "'" else body.replace("\\", "\\\\").replace('"', '\\"')
    check_map(f"k: {quote}{escaped}{quote}\nn: x\n")


def check_map(text: str) -> None:
    node = scalar(text, "k")
    last = -1
    for index, character in enumerate(node.value):
        offset = node.offset(index)
        there = text[offset]
        assert (
            there == character or there == "\\" or (character in " \n" and (there in " \t\r\n" or offset == node.end))
        )
        assert offset >= last
        last = offset


def structure(node: Node) -> list[object]:
    return [
        (type(n).__name__, n.start, n.end, n.tag, n.anchor, getattr(n, "value", None), getattr(n, "style", None))
        for n in walk(node)
    ]


VARIED = """\
# comment
on:
  push:
  pull_request: # c

  workflow_dispatch: {inputs: {id: {required: true, default: }}}
env: &env
  A: 'x'
  ? complex
  : value
  B: "y\\
    z"
jobs:
  a: !tag
    - *env
    - - nested
      -
      - &s !!str 1
    -
    - |-
      x

    - ? a
empty:
"""


def test_both_parsers_agree_on_every_span(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = structure(root(VARIED))
    monkeypatch.setattr(yaml_positions, "LIBYAML_PARSER", LIBYAML)
    assert mine == structure(root(VARIED))


VALUE = st.recursive(
    st.sampled_from(["a", "'b c'", '"d\\n"', "1", "*x", "", "&y e", "!!str f", "g h"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(item or '~' for item in items)}]")
        | st.lists(inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"k{i}: {v}" for i, v in enumerate(items)) + "}"
        )
    ),
    max_leaves=6,
)


@given(values=st.lists(VALUE, max_size=5), comment=st.sampled_from(["", " # c"]), gap=st.sampled_from(["", "\n\n"]))
def test_both_parsers_agree_on_generated_documents(values: list[str], comment: str, gap: str) -> None:
    text = f"x: &x anchored\n{gap}" + "".join(f"key{i}: {value}{comment}\n{gap}" for i, value in enumerate(values))
    text += "list:\n" + "".join(f"  - {value}{comment}\n{gap}" for value in values)
    results = []
    before = yaml_positions.LIBYAML_PARSER
    try:
        for parser in (LIBYAML, None):
            yaml_positions.LIBYAML_PARSER = parser
            results.append(structure(root(text)))
    finally:
        yaml_positions.LIBYAML_PARSER = before
    assert results[0] == results[1]


def test_aliases_are_known_as_such() -> None:
    node = root("a: &x {k: v}\nb: *x\nc: [*x]\n")
    alias = node.pairs[1][1]
    assert isinstance(alias, Alias)
    assert (alias.name, written(alias), str(alias.place)) == ("x", "*x", "w.yml:2:4")
    assert alias.target is node.get("a")
    assert node.get("b") is node.get("a")
    assert plain(node) == {"a": {"k": "v"}, "b": {"k": "v"}, "c": [{"k": "v"}]}


def test_an_anchor_may_be_defined_again() -> None:
    assert plain(root("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")) == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_plain_scalars_follow_the_core_schema() -> None:
    text = "on: yes\na: null\nb: ~\nc:\nd: true\ne: False\nf: 12\ng: 0o17\nh: 0x1F\ni: 1.5\nj: 1e3\nk: .inf\n"
    text += "l: 2001-01-01\n"
    text += "m: '12'\nn: !!str 12\no: 1_000\np: 0b1\nq: 012\nr: +.5\ns: off\nt: 12:30\nu: ''\nv: -\nw: .\nx: TRUE\n"
    expected = {
        "on": "yes", "a": None, "b": None, "c": None, "d": True, "e": False, "f": 12, "g": 15, "h": 31, "i": 1.5,
        "j": 1000.0, "k": float("inf"), "l": "2001-01-01", "m": "12", "n": "12", "o": "1_000", "p": "0b1", "q": 12,
        "r": 0.5, "s": "off", "t": "12:30", "u": "", "v": "-", "w": ".", "x": True,
    }  # fmt: skip
    assert plain(root(text.replace("v: -\n", "v: '-'\n"))) == expected


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_values_agree_with_the_parser_that_github_uses() -> None:
    documents = [
        VARIED.replace("!tag", "").replace("? complex\n  : value", "complex: value"),
        "a: [x, 'y', 1.50, 0x1f]\n",
    ]
    documents += [
        "k: >\n  a\n  b\n\n    c\n  d\n",
        "k: |+\n  a\n\nn: x\n",
        "k: 'a\n\n  b'\n",
        "k: a\x85b\u2028c\nn: d\n",
    ]
    script = (
        "const y = require('yaml'); const texts = JSON.parse(require('fs').readFileSync(0));"
        "console.log(JSON.stringify(texts.map(text => y.parse(text))))"
    )
    done = subprocess.run(
        ["node", "-e", script],
        input=json.dumps(documents),
        capture_output=True,
        text=True,
        cwd=NODE_MODULES,
        check=True,
    )
    assert [plain(compose(text, path="d")) for text in documents] == json.loads(done.stdout)


def test_an_empty_document_is_none() -> None:
    assert compose("", path="w.yml") is None
    assert compose("# only a comment\n", path="w.yml") is None
    assert compose("\ufeff", path="w.yml") is None


def test_duplicate_keys_are_found_with_both_places() -> None:
    problems = duplicate_keys(root("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n"))
    assert [str(problem.place) for problem in problems] == ["w.yml:5:3", "w.yml:6:1"]
    assert "line 3" in problems[0].why
    assert plain(root("a: 1\na: 2\n")) == {"a": 2}


BAD = [
    ("a: &x [1, *x]", (1, 11), "contains it"),
    ("a: &x\n  b: *x\n", (2, 6), "contains it"),
    ("[" * 5000, (1, 201), "deeper than 200"),
    ("- " * 5000, (1, 401), "deeper than 200"),
    ("{a: " * 300, (1, 801), "deeper than 200"),
    ("a:\n\tb: c", (2, 1), "tab"),
    ("a: |\n  x\n\tb", (3, 1), "tab"),
    ("a: [b\nc: d", (2, 2), "not valid YAML"),
    ("a: 'b", (1, 6), "close the quote"),
    ("a: b: c", (1, 5), "quotes"),
    ("é: x\x07", (1, 5), "U+0007"),
    ("a: b\n---\nc: d", (2, 1), "second document"),
    ("a: *nowhere", (1, 4), "no anchor"),
    ("a: @b", (1, 4), "quotes"),
    ("a: b\n  c: d\n", (2, 4), "not valid YAML"),
]


@pytest.mark.parametrize(("text", "place", "part"), BAD)
def test_what_is_wrong_is_said_with_its_place(text: str, place: tuple[int, int], part: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        compose(text, path="w.yml")
    problem = caught.value.problem
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == place
    assert part in str(caught.value)
    assert problem.fix


def test_an_anchor_bomb_is_refused_at_once() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{previous}'] * 10)}]\n"
    with pytest.raises(ConfigurationError, match="expand to more than"):
        compose(bomb, path="w.yml")


@pytest.mark.parametrize(
    ("data", "part", "place"),
    [
        ("a: x\nbé: ".encode() + b"\xe9\n", "0xe9 is not UTF-8", (2, 5)),
        (b"\xef\xbb\xbfa: \xff", "0xff", (1, 4)),
        ("a: b".encode("utf-16"), "UTF-16", (1, 1)),
    ],
)
def test_other_encodings_are_named(data: bytes, part: str, place: tuple[int, int]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        decode(data, path="w.yml")
    found = caught.value.problem.place
    assert part in str(caught.value)
    assert found is not None
    assert (found.line, found.column) == place


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_positions, "MAX_BYTES", 10)
    with pytest.raises(ConfigurationError, match="11 bytes"):
        decode(b"a" * 11, path="w.yml")


def test_compose_file_names_what_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        yaml_positions.compose_file(tmp_path / "absent.yml")
    (tmp_path / "w.yml").write_bytes(b"a: b\n")
    assert plain(yaml_positions.compose_file(tmp_path / "w.yml", name="w.yml")) == {"a": "b"}


def test_five_megabytes_are_read() -> None:
    if yaml_positions.LIBYAML_PARSER is None:
        text = "a: |\n" + "  echo 0123456789\n" * 3_000  # the Python parser needs a minute for five megabytes
    else:
        text = "a: |\n" + "  echo 0123456789\n" * 150_000 + "b:\n" + "- {k: v, l: [m, n]}\n" * 120_000
    before = time.process_time()
    node = root(text).get("a")
    assert isinstance(node, Scalar)
    assert node.position(node.value.rindex("echo"))[1] == 3
    assert time.process_time() - before < 20


@given(text=st.text(st.sampled_from("a:-[]{}&*!|>'\"#%@` \n\t\r?,x1é\x85\u2028\\"), max_size=40))
def test_no_text_makes_anything_but_a_node_or_a_named_error(text: str) -> None:
    try:
        node = compose(text, path="w.yml")
    except ConfigurationError as error:
        assert error.problem.place is not None  # noqa: PT017 - either outcome is right for a random text
        return
    if node is not None:
        for each in walk(node):
            assert 0 <= each.start <= each.end <= len(text)
            if isinstance(each, Scalar):
                for index in range(len(each.value) + 1):
                    assert each.start <= each.offset(index) <= each.end


def test_fields_are_the_first_of_their_name() -> None:
    node = root("base: &b {x: 1}\na: 1\nb: *b\na: 2\n? [list]\n: 3\n")
    assert list(node.fields) == ["base", "a", "b"]
    key, value = node.fields["a"]
    assert (key.place.line, plain(value)) == (2, 1)
    assert node.entry("a") == (key, value)
    assert plain(node.get("b")) == {"x": 1}
    assert node.get("absent") is None
    assert node.entry("absent") is None
    assert [name.value for name, _ in node.entries()] == ["base", "a", "b", "a"]
