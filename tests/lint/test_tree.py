"""Syntax trees: places in characters, no comments, tokens that tell constructs apart, and a bound."""

from __future__ import annotations

import pytest

from runner_e2e.lint import tree
from runner_e2e.lint.tree import MAX_NODES, Node, TooLargeError, errors, parse_javascript


def nodes(root: Node, kind: str) -> list[Node]:
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if node.kind == kind:
            found.append(node)
        stack += node.children
    return sorted(found, key=lambda node: node.start)


@pytest.mark.parametrize(
    "text",
    [
        "f(a, b)",
        'const é = "ü"; f(é, b)',
        "/* 😀😀 */ f(x, `🜚${y}`)",
        "f('\\u00e9', \"日本\", z) // 日本",
        "f(\udcff, b)",
    ],
)
def test_places_are_characters(text: str) -> None:
    root = parse_javascript(text)
    assert (root.start, root.end) == (root.start, len(text.rstrip())) or root.end == len(text)
    call = nodes(root, "call_expression")[0]
    function, arguments = call.get("function"), call.get("arguments")
    assert function is not None
    assert arguments is not None
    assert text[function.start : function.end] == "f"
    assert text[arguments.start] == "("
    assert text[arguments.end - 1] == ")"
    for identifier in nodes(root, "identifier"):
        assert text[identifier.start : identifier.end].strip("(), ") == text[identifier.start : identifier.end]


def test_comments_are_left_out() -> None:
    root = parse_javascript("// a\nf(/* b */ x) /* c */")
    assert nodes(root, "comment") == []
    assert len(nodes(root, "arguments")[0].children) == 1


def test_operators_are_fields_and_marks_are_tokens() -> None:
    root = parse_javascript("class A { static async m() {} get x() { return a + b } *g() { yield* y } }")
    methods = nodes(root, "method_definition")
    assert [method.tokens for method in methods] == [("static", "async"), ("get",), ("*",)]
    operator = nodes(root, "binary_expression")[0].get("operator")
    assert operator is not None
    assert operator.kind == "+"
    assert nodes(root, "yield_expression")[0].tokens == ("*",)


def test_what_is_no_javascript_is_an_error_among_the_rest() -> None:
    root = parse_javascript("f(1)\n%%% ) {\ng(2)")
    assert nodes(root, "ERROR")
    assert nodes(root, "call_expression")


@pytest.mark.parametrize(("text", "place"), [("if (a { b() }", 5), ("f(é, [1);", 7), ("class A { b() { c() }", 21)])
def test_what_is_missing_is_an_error_where_it_should_be(text: str, place: int) -> None:
    assert [(error.start, error.end) for error in errors(parse_javascript(text))] == [(place, place)]


@pytest.mark.parametrize("shift", range(1, 9))
def test_the_pieces_in_which_a_text_is_read_may_cut_characters(shift: int) -> None:
    text = "x" * shift + "('" + "é文🎉" * 3_000 + "');"
    (string,) = nodes(parse_javascript(text), "string")
    assert (string.start, string.end) == (shift + 1, len(text) - 2)


def test_a_text_that_takes_too_long_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f(a);" * 500
    monkeypatch.setattr(tree, "_MAX_SECONDS", -1)
    with pytest.raises(TooLargeError):
        parse_javascript(text)
    monkeypatch.setattr(tree, "_MAX_SECONDS", 100)
    with pytest.raises(TooLargeError):
        parse_javascript(text)
    parse_javascript(f"{text} ")


def test_a_bundle_is_refused() -> None:
    with pytest.raises(TooLargeError):
        parse_javascript("f(a,b);" * (MAX_NODES // 5))
    with pytest.raises(TooLargeError):
        parse_javascript("//" + "x" * 1_000_000)


def test_the_order_of_children_is_that_of_the_text() -> None:
    root = parse_javascript("a(b(c), d)(e)\n" * 50)
    stack = [root]
    while stack:
        node = stack.pop()
        starts = [child.start for child in node.children]
        assert starts == sorted(starts)
        assert all(node.start <= child.start <= child.end <= node.end for child in node.children)
        stack += node.children
