"""TypeScript as JavaScript: the tree that its own grammar gives, without types.

What is left has the shape of the grammar of JavaScript, and every node stands where it stands in the text. Two
statements that run and that JavaScript does not have are kept: ``enum_declaration`` and ``internal_module``, which is
``namespace``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from runner_e2e.lint.tree import MAX_REMEMBERED, Node, errors, parse_typescript

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parse_as_javascript"]

# What says something to the compiler alone.
_ONLY_TYPES = frozenset(
    {
        "abstract_method_signature",
        "adding_type_annotation",
        "ambient_declaration",
        "asserts_annotation",
        "function_signature",
        "implements_clause",
        "index_signature",
        "interface_declaration",
        "method_signature",
        "omitting_type_annotation",
        "opting_type_annotation",
        "type_alias_declaration",
        "type_annotation",
        "type_arguments",
        "type_parameters",
        "type_predicate_annotation",
    }
)
# What says something of the value in it, which is the first of its parts.
_AROUND_A_VALUE = frozenset(
    {
        "as_expression",
        "extends_clause",
        "instantiation_expression",
        "non_null_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
_COMPILER_ONLY = frozenset({"type", "namespace", "declare", "abstract"})
_MODIFIERS = frozenset({"accessibility_modifier", "override_modifier"})
_PARAMETERS = frozenset({"required_parameter", "optional_parameter"})
_RENAMED = {
    "abstract_class_declaration": "class_declaration",
    "module": "internal_module",
    "nested_identifier": "member_expression",
    "public_field_definition": "field_definition",
    "type_identifier": "identifier",  # the name of a class
}

# What the grammar does not know, and what is read in its place, with blanks behind it. None of these can be an
# expression, and what a string says is taken from the text itself.
_REWRITTEN = (
    (re.compile(r"\b(?:await[ \t]+)?using(?=[ \t]+[\w$]+\s*[:=])"), "const"),
    (re.compile(r"(?<=\bstatic )accessor(?=\s+[#\w$\[\"'])|(?<=\boverride )accessor(?=\s+[#\w$\[\"'])"), ""),
    (re.compile(r"(?<=\bexport type)\s+\*(?:\s*as\s+[\w$]+)?(?=\s*from\b)"), "{}"),
    (re.compile(r"(?<=[<,])\s*(?:in\s+out|in|out)(?=\s+[A-Z]\w*\s*(?:[,>=]|extends\b))"), ""),
    (re.compile(r"\bimport\([\"'][\w@./:-]+[\"']\)(?=\.[A-Z]\w*(?:<|\[\]))"), "_"),
)


def parse_as_javascript(text: str, *, jsx: bool) -> Node:
    """The program *text*, which is TypeScript, as a tree of JavaScript.

    What is no TypeScript stands in nodes of kind ``ERROR``. *jsx*: as a ``.tsx`` file. Raises
    :class:`~runner_e2e.lint.tree.TooLargeError`.
    """
    return _remembered(text, jsx=jsx) if len(text) <= MAX_REMEMBERED else _read(text, jsx=jsx)


@lru_cache(maxsize=64)
def _remembered(text: str, *, jsx: bool) -> Node:
    return _read(text, jsx=jsx)


def _read(text: str, *, jsx: bool) -> Node:
    root = parse_typescript(text, jsx=jsx, without=_ONLY_TYPES)
    wrong = errors(root)
    if wrong and (other := _rewritten(text)) != text:
        again = parse_typescript(other, jsx=jsx, without=_ONLY_TYPES)
        root, wrong = min((root, wrong), (again, errors(again)), key=lambda one: len(one[1]))
    _simplify(root)
    if wrong:
        kept = set(map(id, errors(root)))
        root.children += [Node("ERROR", one.start, one.end) for one in wrong if id(one) not in kept]
    return root


def _rewritten(text: str) -> str:
    for pattern, other in _REWRITTEN:
        text = pattern.sub(lambda found, other=other: other.ljust(len(found[0])), text)  # type: ignore[misc]
    return text


def _simplify(root: Node) -> None:
    """Takes types out of the tree below *root*."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.kind == "method_definition":
            _assign_properties(node)
        changed = {id(child): plain for child in node.children if (plain := _plain(child)) is not child}
        if changed:
            node.children = _existing(changed.get(id(child), child) for child in node.children)
            fields = {name: changed.get(id(one), one) for name, one in node.fields.items()}
            node.fields = {name: one for name, one in fields.items() if one is not None}
        pending += node.children


def _existing(nodes: Iterable[Node | None]) -> list[Node]:
    return [one for one in nodes if one is not None]


def _plain(node: Node) -> Node | None:
    """What stands for *node* in JavaScript; None where nothing does."""
    while node.kind in _AROUND_A_VALUE and node.children:
        node = node.children[0]
    if node.kind in _ONLY_TYPES or node.kind in _MODIFIERS or not _COMPILER_ONLY.isdisjoint(node.tokens):
        return None
    if node.kind in _PARAMETERS:
        return _parameter(node)
    if node.kind == "public_field_definition":
        node.fields = {"property" if name == "name" else name: one for name, one in node.fields.items()}
    elif node.kind == "class_heritage":
        return node if any(one.kind == "extends_clause" for one in node.children) else None
    elif node.kind == "expression_statement" and [one.kind for one in node.children] == ["internal_module"]:
        node = node.children[0]
    elif node.kind == "import_alias":
        return _alias(node)
    node.kind = _RENAMED.get(node.kind, node.kind)
    return _inner_namespaces(node) if node.kind == "internal_module" else node


def _parameter(node: Node) -> Node | None:
    pattern, value = node.get("pattern"), node.get("value")
    if pattern is None or pattern.kind == "this":
        return None
    return pattern if value is None else _node("assignment_pattern", node, left=pattern, right=value)


def _alias(node: Node) -> Node:
    """``import name = other.name``."""
    declarator = _node("variable_declarator", node, name=node.children[0], value=node.children[-1])
    made = _node("lexical_declaration", node, declarator)
    made.fields = {"kind": Node("const", node.start, declarator.children[0].start)}
    return made


def _inner_namespaces(node: Node) -> Node:
    """``namespace A.B { … }`` as a namespace in a namespace."""
    name, body = node.get("name"), node.get("body")
    while name is not None and body is not None and name.kind in {"nested_identifier", "member_expression"}:
        inner = _node("internal_module", node, name=name.children[-1], body=body)
        body = _node("statement_block", body, _node("export_statement", node, declaration=inner))
        name = name.children[0]
        node = _node("internal_module", node, name=name, body=body)
    return node


def _assign_properties(method: Node) -> None:
    """What a constructor does with parameters that are properties: ``private id`` is ``this.id = id``."""
    parameters, body = method.get("parameters"), method.get("body")
    if parameters is None or body is None:
        return
    made: list[Node] = []
    for one in parameters.children:
        name = one.get("pattern")
        is_property = "readonly" in one.tokens or any(part.kind in _MODIFIERS for part in one.children)
        if one.kind in _PARAMETERS and is_property and name is not None and name.kind == "identifier":
            this, own = _node("this", name), _node("property_identifier", name)
            member = _node("member_expression", name, object=this, property=own)
            assignment = _node("assignment_expression", name, left=member, right=_node("identifier", name))
            made.append(_node("expression_statement", name, assignment))
    place = 1 if body.children and _calls_super(body.children[0]) else 0
    body.children[place:place] = made


def _calls_super(statement: Node) -> bool:
    call = statement.children[0] if statement.kind == "expression_statement" and statement.children else None
    function = call.get("function") if call is not None else None
    return function is not None and function.kind == "super"


def _node(kind: str, place: Node, *parts: Node, **fields: Node) -> Node:
    """A node where *place* is, of *parts* and, behind these, *fields*."""
    made = Node(kind, place.start, place.end)
    made.children = [*parts, *fields.values()]
    made.fields = fields
    return made
