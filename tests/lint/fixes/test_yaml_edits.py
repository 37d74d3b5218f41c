"""Edits of spans: each table row is a file, a change, and the file afterwards, to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.fixes.yaml_edits import node_at, put, replace_part, replace_value
from runner_e2e.lint.fixes.yaml_text import flow_text, scalar_text
from runner_e2e.lint.repository import Document
from runner_e2e.lint.values import Span
from runner_e2e.yaml_positions import Mapping, Node, Scalar, Sequence, compose, plain, resolved

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Edit
    from runner_e2e.lint.fixes.yaml_text import Data


def read(text: str) -> Document:
    return Document(path="w.yml", text=text, root=compose(text, path="w.yml"))


def applied(document: Document, edit: Edit | None) -> str | None:
    assert document.root is not None
    if edit is None:
        return None
    text = document.root.source.text
    return text[: edit.start] + edit.text + text[edit.end :]


def below(document: Document, *path: str | int) -> Node:
    node = document.root
    for key in path:
        if isinstance(node, Mapping) and isinstance(key, str):
            node = node.get(key)
        elif isinstance(node, Sequence) and isinstance(key, int):
            node = resolved(node.items[key])
    assert node is not None
    return node


PUT: dict[str, tuple[str, tuple[str, ...], Data, str | None]] = {
    "new last key": ("a: 1\nb: 2\n", ("c",), True, "a: 1\nb: 2\nc: true\n"),
    "comment stays on its line": ("a: 1 # one\n", ("c",), 3, "a: 1 # one\nc: 3\n"),
    "no final newline": ("a: 1", ("c",), "x", "a: 1\nc: x"),
    "windows lines": ("a: 1\r\nb:\r\n  c: 1\r\n", ("b", "d"), "x", "a: 1\r\nb:\r\n  c: 1\r\n  d: x\r\n"),
    "missing mapping": ("a: 1\n", ("with", "x"), False, "a: 1\nwith:\n  x: false\n"),
    "wider indentation": ("a:\n    b: 1\n", ("c", "d"), 1, "a:\n    b: 1\nc:\n    d: 1\n"),
    "merged": ("env:\n  A: 1\nz: 2\n", ("env", "B"), "${{ x }}", "env:\n  A: 1\n  B: ${{ x }}\nz: 2\n"),
    "flow": ("env: {A: 1}\n", ("env", "B"), "${{ x }}", 'env: {A: 1, B: "${{ x }}"}\n'),
    "empty flow": ("env: {}\n", ("env", "B"), "x", "env: {B: x}\n"),
    "flow with a last comma": ("env: { A: 1, }\n", ("env", "B"), 2, "env: { A: 1, B: 2, }\n"),
    "flow over lines": ("env: {\n  A: 1 # c\n}\n", ("env", "B"), 2, "env: {\n  A: 1, B: 2 # c\n}\n"),
    "flow in flow": ("{a: 1}\n", ("with", "x"), True, "{a: 1, with: {x: true}}\n"),
    "null in a block": ("env: # none\nz: 1\n", ("env", "B"), 2, "env: # none\n  B: 2\nz: 1\n"),
    "null in a flow": ("{env: , z: 1}\n", ("env", "B"), 2, "{env: {B: 2} , z: 1}\n"),
    "null without colon": ("{env, z: 1}\n", ("env", "B"), 2, None),
    "nothing to replace": ("a: 1\n", ("a",), 1, None),
    "scalar replaced": ("a: write # why\n", ("a",), "read", "a: read # why\n"),
    "quotes kept": ("a: 'write'\n", ("a",), "it's", "a: 'it''s'\n"),
    "double quotes kept": ('a: "write"\n', ("a",), 'a"b', 'a: "a\\"b"\n'),
    "scalar to a mapping": ("permissions: write-all\n", ("permissions",), {}, "permissions: {}\n"),
    "expression for a mapping": ("env: ${{ fromJSON(x) }}\n", ("env", "A"), 1, None),
    "alias for a mapping": ("a: &e {A: 1}\nenv: *e\n", ("env", "B"), 1, None),
    "shared mapping": ("env: &e {A: 1}\nb: *e\n", ("env", "B"), 1, None),
    "anchor that nobody uses": ("env: &e\n  A: 1\n", ("env", "B"), 1, "env: &e\n  A: 1\n  B: 1\n"),
    "duplicate key": ("env: {A: 1}\nenv: {A: 2}\n", ("env", "B"), 1, None),
    "list for a mapping": ("env: [A]\n", ("env", "B"), 1, None),
    "after a block scalar": ("run: |\n  x\n\nz: 1\n", ("z",), 2, "run: |\n  x\n\nz: 2\n"),
    "unicode": ("ä: 'ö€😀' # ü\n", ("c",), "é", "ä: 'ö€😀' # ü\nc: é\n"),
}


@pytest.mark.parametrize("name", PUT)
def test_put(name: str) -> None:
    text, path, value, expected = PUT[name]
    document = read(text)
    assert applied(document, put(document, document.root, path, value)) == expected


STEPS = {
    "after run": ("steps:\n  - run: x\n    id: a\n", "steps:\n  - run: x\n    env:\n      A: b\n    id: a\n"),
    "block scalar": ("steps:\n- run: |\n    x\n- b: 1\n", "steps:\n- run: |\n    x\n  env:\n    A: b\n- b: 1\n"),
    "blank lines kept": (
        "steps:\n  - run: |+\n      x\n\n  - b: 1\n",
        "steps:\n  - env:\n      A: b\n    run: |+\n      x\n\n  - b: 1\n",
    ),
    "block scalar at the end": (
        "steps:\n  - id: q\n    run: |\n      x",
        "steps:\n  - id: q\n    env:\n      A: b\n    run: |\n      x",
    ),
    "spaces after the script": (
        "steps:\n  - run: |\n      x\n         \n",
        "steps:\n  - env:\n      A: b\n    run: |\n      x\n         \n",
    ),
    "flow step": ("steps: [{run: x}]\n", "steps: [{run: x, env: {A: b}}]\n"),
    "dash on its own line": ("steps:\n  -\n    run: x\n", "steps:\n  -\n    run: x\n    env:\n      A: b\n"),
    "folded": (
        "steps:\n  - run: >-\n      x\n      y\n",
        "steps:\n  - run: >-\n      x\n      y\n    env:\n      A: b\n",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_put_into_a_step(name: str) -> None:
    text, expected = STEPS[name]
    document = read(text)
    step = below(document, "steps", 0)
    assert applied(document, put(document, step, ("env", "A"), "b", after="run")) == expected
    fixed = below(read(expected), "steps", 0)
    before, after = plain(step), plain(fixed)
    assert isinstance(before, dict)
    assert after == before | {"env": {"A": "b"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k: echo a|b\n", "k: echo X|b\n"),
        ("k: 'echo a|b'\n", "k: 'echo X|b'\n"),
        ("k: 'it''s a|b'\n", "k: 'it''s X|b'\n"),
        ('k: "echo \\x61|b"\n', 'k: "echo X|b"\n'),
        ("k: |\n  one\n  echo a|b\n", "k: |\n  one\n  echo X|b\n"),
        ("k: >\n  one\n  echo a|b\n", "k: >\n  one\n  echo X|b\n"),
        ("k: one\n  echo a|b\n", "k: one\n  echo X|b\n"),
        ("k: |\r\n  öne\r\n  echo a|b\r\n", "k: |\r\n  öne\r\n  echo X|b\r\n"),
    ],
)
def test_replace_part(text: str, expected: str) -> None:
    document = read(text)
    scalar = below(document, "k")
    assert isinstance(scalar, Scalar)
    start = scalar.value.index("a|b")
    assert applied(document, replace_part(document, scalar, start, start + 1, "X")) == expected


def test_a_part_that_would_change_the_syntax_is_refused() -> None:
    document = read("k: echo a\n")
    scalar = below(document, "k")
    assert isinstance(scalar, Scalar)
    assert replace_part(document, scalar, 5, 6, "b: c") is None
    assert replace_part(document, scalar, 5, 6, "b #c") is None
    assert replace_part(document, scalar, 0, 6, '"x" y') is None
    assert replace_part(document, scalar, 5, 6, "b\nc") is None


def test_a_shared_scalar_is_left_alone() -> None:
    document = read("k: &a echo a\nl: *a\n")
    scalar = below(document, "k")
    assert isinstance(scalar, Scalar)
    assert replace_part(document, scalar, 5, 6, "b") is None
    assert replace_value(document, scalar, "b") is None


def test_the_place_of_a_finding() -> None:
    text = "jobs:\n  a:\n    steps:\n      - id: s\n        run: |\n          one\n          twö three\n"
    document = read(text)
    found = node_at(document, Span(path="w.yml", line=7, column=15, end_line=7, end_column=20))
    assert found is not None
    assert found.scalar.value[found.index :] == "three\n"
    assert found.step is not None
    assert found.step.id == "s"
    assert found.job is not None
    assert found.job.id == "a"
    assert node_at(document, Span(path="w.yml", line=70, column=1, end_line=70, end_column=1)) is None


TEXT = st.text(st.sampled_from("ab \n\t:# '\"\\{}[],&*!|>%@`-?~\u00e4\u2028\x85\ufeff\U0001f600"), max_size=8)
DATA = st.recursive(
    TEXT | st.booleans() | st.integers(-9, 99), lambda inner: st.dictionaries(TEXT, inner, max_size=3), max_leaves=5
)


@given(data=DATA)
def test_what_is_written_is_what_is_read(data: Data) -> None:
    for text in (f"k: {flow_text(data)}\n", f"[{flow_text(data)}]\n"):
        root = compose(text, path="")
        assert plain(root) in ({"k": data}, [data])
    document = read("a:\n  b: 1\n")
    new = applied(document, put(document, document.root, ("a", "c"), data))
    assert new is not None
    assert plain(compose(new, path="")) == {"a": {"b": 1, "c": data}}


def test_scalars_have_quotes_only_where_needed() -> None:
    assert scalar_text("${{ inputs.id }}", flow=False) == "${{ inputs.id }}"
    assert scalar_text("${{ inputs.id }}", flow=True) == '"${{ inputs.id }}"'
    assert scalar_text("true", flow=False) == '"true"'
    assert scalar_text("npm ci --ignore-scripts", flow=True) == "npm ci --ignore-scripts"
    assert scalar_text("", flow=False) == '""'
