"""The expression language against GitHub's own implementation, and what ours adds: places and labels."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from runner_e2e.lint.evaluation import EvaluationError, Possible, evaluate, value_of
from runner_e2e.lint.expression import CONTEXTS, FUNCTIONS, ExpressionError, embedded, parse, walk
from runner_e2e.lint.expression_data import NULL, Anything, Array, Data, Dictionary, Known, as_value, of_plain
from runner_e2e.lint.values import Confidence, Label, Taint

HERE = Path(__file__).parent
NODE = HERE.parent / "node"

VALUES = {
    "github": {"ref": "refs/heads/main", "event": {"inputs": {"a-b": "x", "n": 3}}, "empty": ""},
    "inputs": {"flag": True, "off": False, "text": "Some Text", "number": 7.5, "nothing": None},
    "matrix": {"list": [1, "two", {"deep": "three", "Other": [4]}, {"deep": "five"}], "json": '{"k": [1, 2]}'},
}
CONTEXT_DATA = {name: of_plain(value) for name, value in VALUES.items()}


def reference(expressions: list[str]) -> list[dict[str, object]]:
    """What ``@actions/expressions`` makes of each."""
    request = {
        "expressions": expressions,
        "contexts": {"names": sorted(CONTEXTS), "values": VALUES},
        "functions": [
            [name, *bounds]
            for name, bounds in FUNCTIONS.items()
            if name in {"hashfiles", "success", "failure", "always"}
        ],
    }
    done = subprocess.run(
        ["node", "--input-type=module", "-e", (HERE / "reference_expressions.mjs").read_text()],
        input=json.dumps(request), capture_output=True, text=True, cwd=NODE, check=True,
    )  # fmt: skip
    return list(json.loads(done.stdout))


def plain(data: Data) -> object:
    if isinstance(data, Known):
        if isinstance(data.value, float):
            return (
                data.value
                if math.isfinite(data.value)
                else {"number": {math.inf: "Infinity", -math.inf: "-Infinity"}.get(data.value, "NaN")}
            )
        return data.value
    if isinstance(data, Array):
        return [plain(item) for item in data.items]
    assert isinstance(data, Dictionary), data
    return {name: plain(item) for name, item in data.entries.values()}


def mine(text: str) -> dict[str, object]:
    try:
        parsed = parse(text)
    except ExpressionError as error:
        assert 0 <= error.start <= error.end <= len(text)  # noqa: PT017 - either outcome may be right
        return {"rejected": str(error)}
    try:
        possible = evaluate(parsed, CONTEXT_DATA)
    except EvaluationError as error:
        return {"failed": str(error)}
    assert len(possible) == 1, possible
    return {"value": plain(possible[0]), "text": as_value(possible[0]).constant}


def compare(expressions: list[str]) -> None:
    for text, theirs in zip(expressions, reference(expressions), strict=True):
        ours = mine(text)
        assert set(ours) == set(theirs), (text, ours, theirs)
        if "value" in theirs:
            assert ours == theirs, text


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def listed(name: str) -> list[str]:
    return (HERE / "expressions" / name).read_text().splitlines()


@needs_node
def test_table_agrees_with_github() -> None:
    compare(listed("github.txt"))


@needs_node
@pytest.mark.parametrize(
    "text",
    [
        "(" * 49 + "1" + ")" * 49,
        "(" * 50 + "1" + ")" * 50,
        "!" * 49 + "1",
        "!" * 50 + "1",
        "github" + ".a" * 49,
        "github" + ".a" * 50,
        "1 || " * 60 + "1",
        "'" + "x" * 20_998 + "'",
        "'" + "x" * 20_999 + "'",
        "github" + "[github" * 30 + "]" * 30,
        "((((((((((((1 && (0 || (1 && (0 || (1))))))))))))))))",
    ],
    ids=lambda text: f"{text[:12]}…{len(text)}",
)
def test_limits_agree_with_github(text: str) -> None:
    compare([text])


ATOMS = st.sampled_from(listed("atoms.txt"))
BINARY = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "&&", "||"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, BINARY, inner).map(" ".join),
        inner.map("({})".format),
        inner.map("!{}".format),
        st.tuples(inner, inner).map("({0[0]})[{0[1]}]".format),
        st.tuples(inner, st.sampled_from(["*", "deep", "text", "k", "a-b"])).map("({0[0]}).{0[1]}".format),
        st.tuples(st.sampled_from(["contains", "startsWith", "endsWith", "join", "format"]), inner, inner).map(
            "{0[0]}({0[1]}, {0[2]})".format
        ),
        inner.map("toJSON({})".format),
        inner.map("fromJSON(toJSON({}))".format),
        st.tuples(inner, inner, inner).map("case({0[0]}, {0[1]}, {0[2]})".format),
        st.tuples(inner, inner).map("format('<{{0}}-{{1}}>', {0[0]}, {0[1]})".format),
    )


GENERATED = st.recursive(ATOMS, larger, max_leaves=8)
NOISE = st.text(st.sampled_from("abg.()[]'!=<>&|*,- \t0129xé{}\""), min_size=1, max_size=14).filter(str.strip)


def same_object(text: str, theirs: dict[str, object]) -> bool:
    """Whether two objects are compared, which is by reference and so not decided here."""
    try:
        possible = evaluate(parse(text), CONTEXT_DATA)
    except EvaluationError:
        return False
    return any(not isinstance(data, Known | Array | Dictionary) for data in possible) or len(possible) > 1


@needs_node
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking starts node too often
@given(expressions=st.lists(GENERATED, min_size=60, max_size=120))
def test_generated_expressions_agree_with_github(expressions: list[str]) -> None:
    for text, theirs in zip(expressions, reference(expressions), strict=True):
        if "rejected" not in theirs and same_object(text, theirs):
            continue
        ours = mine(text)
        assert set(ours) == set(theirs), (text, ours, theirs)
        if "value" in theirs:
            assert ours == theirs, text


@needs_node
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])  # shrinking starts node too often
@given(expressions=st.lists(NOISE, min_size=100, max_size=200))
def test_noise_is_accepted_or_refused_as_github_does(expressions: list[str]) -> None:
    for text, theirs in zip(expressions, reference(expressions), strict=True):
        assert ("rejected" in mine_parsed(text)) == ("rejected" in theirs), (text, theirs)


def mine_parsed(text: str) -> dict[str, object]:
    try:
        parse(text)
    except ExpressionError as error:
        return {"rejected": str(error)}
    return {}


# --- What ours adds.

ID = Taint(Label(kind="confidential", name="inputs.id"))
LABELLED: dict[str, Data] = {
    "inputs": Dictionary.of({"id": Anything(frozenset([ID])), "suite": Known("chat")}),
    "env": Dictionary.of({"A": Anything(frozenset([ID]))}, others=NULL),
    "github": Dictionary.of(
        {"event": Dictionary.of({"inputs": Dictionary.of({"id": Anything(frozenset([ID]))})})}, others=Anything()
    ),
}


def carried(text: str) -> bool:
    return bool(value_of(evaluate(parse(text), LABELLED)).taints)


@pytest.mark.parametrize("text", listed("carried.txt"))
def test_text_is_carried(text: str) -> None:
    assert carried(text)


@pytest.mark.parametrize("text", listed("not_carried.txt"))
def test_text_is_not_carried(text: str) -> None:
    assert not carried(text)


def test_a_condition_gives_both_outcomes() -> None:
    possible: Possible = evaluate(parse("github.ref == 'x' && 'a' || 'b'"), {"github": Anything()})
    assert set(value_of(possible).constants or ()) == {"a", "b"}


def test_known_parts_of_a_text_stay_known() -> None:
    value = value_of(evaluate(parse("format('case-{0}.json', inputs.id)"), LABELLED))
    assert [piece if isinstance(piece, str) else "?" for piece in value.texts[0]] == ["case-", "?", ".json"]
    assert all(taint.confidence is Confidence.HIGH for taint in value.taints)


def test_nodes_know_where_they_stand() -> None:
    text = "x ${{ format('{0}', inputs.id) || github['ref'] }} y"
    (found,) = embedded(text)
    expression = parse(text, start=found.inner_start, end=found.inner_end)
    written = [text[node.start : node.end] for node in walk(expression)]
    whole = "format('{0}', inputs.id) || github['ref']|format('{0}', inputs.id)|'{0}'|inputs.id|inputs|id"
    assert "|".join(written).replace(" || ", " OR ") == (whole + "|github['ref']|github|'ref'").replace(" || ", " OR ")


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("${{ a }}", [(0, 8)]),
        ("a ${{ '}}' }} b ${{x}}c", [(2, 13), (16, 22)]),
        ("${{ 'it''s }}' }}", [(0, 17)]),
        ("$ {{ a }} ${ x }", []),
        ("${{ a }}}", [(0, 8)]),
        ("${{}}", [(0, 5)]),
        ("é${{\n a\n}}", [(1, 10)]),
    ],
)
def test_embedded_expressions_are_found(text: str, spans: list[tuple[int, int]]) -> None:
    assert [(each.start, each.end) for each in embedded(text)] == spans


@pytest.mark.parametrize("text", ["a ${{ b", "${{ 'x }}", "${{ a } }", "${{ a }} ${{"])
def test_what_never_closes_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(ExpressionError, match="not closed") as caught:
        embedded(text)
    assert text[caught.value.start :].startswith("${{")


@pytest.mark.parametrize(
    ("text", "part", "written"),
    [
        ('inputs.id == "x"', "single quotes", '"x"'),
        ("nope.x", "no context `nope`", "nope"),
        ("nope(1)", "no function `nope`", "nope"),
        ("contains('a')", "takes 2 arguments, here are 1", "contains('a')"),
        ("github.ref ==", "ends too early", ""),
        ("1 2", "unexpected symbol `2`", "2"),
        ("'open", "string is not closed", "'open"),
        ("  ", "is missing", "  "),
    ],
)
def test_errors_say_what_and_where(text: str, part: str, written: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert part in str(caught.value)
    assert text[caught.value.start : caught.value.end] == written
