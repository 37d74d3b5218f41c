"""Syntax trees of other languages, by tree-sitter: the only module that knows it.

The trees are copied into plain nodes at once and dropped: offsets are characters, comments are gone, and nothing of
the parser stays alive.
"""

from __future__ import annotations

import time
from array import array
from functools import cache, lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "BROKEN",
    "MAX_CHARACTERS",
    "MAX_NODES",
    "MAX_REMEMBERED",
    "Node",
    "TooLargeError",
    "errors",
    "parse_javascript",
    "parse_typescript",
]

MAX_NODES = 60_000
"""A larger tree is a bundle, which nobody reads and nothing here follows."""

BROKEN = "ERROR"
"""The token of a whole program that has pieces which are not of its language."""

MAX_CHARACTERS = 400_000
"""A longer program is a bundle too."""

MAX_REMEMBERED = 20_000
"""A longer text is not worth the memory that its tree would take."""

# Where comparisons could be type arguments the time of the parser grows with the square of the text. Ordinary programs
# of the greatest length take a tenth of this. A text that took too long is not tried again.
_MAX_SECONDS = 3.0
_CHUNK = 2048
_SLOW: set[tuple[int, int]] = set()
_COMMENT = frozenset({"comment"})

# Tokens without a name in the grammar that tell one construct from another, by the construct.
_MODIFIERS = frozenset({"get", "set", "static", "async", "*"})
_TOKENS = {
    **dict.fromkeys(("method_definition", "field_definition", "function_declaration", "yield_expression"), _MODIFIERS),
    "public_field_definition": frozenset({"static", "declare", "abstract"}),
    **dict.fromkeys(("required_parameter", "optional_parameter"), frozenset({"readonly"})),
    **dict.fromkeys(("import_statement", "import_specifier", "export_specifier"), frozenset({"type"})),
    "export_statement": frozenset({"type", "namespace", "="}),
}
_NO_TOKENS: frozenset[str] = frozenset()


class TooLargeError(Exception):
    """The program is too large to be followed, or its syntax takes too long to read."""


class Node:
    """A piece of syntax: ``[start, end)`` in characters; named parts by *fields*, all parts in *children*.

    *tokens* are words such as ``static`` that mark the construct.
    """

    __slots__ = ("children", "end", "fields", "kind", "start", "tokens")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.children: list[Node] = []
        self.fields: dict[str, Node] = {}
        self.tokens: tuple[str, ...] = ()

    def get(self, name: str) -> Node | None:
        """The part called *name*."""
        return self.fields.get(name)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.start}:{self.end}>"


@cache
def _javascript() -> Any:
    import tree_sitter
    import tree_sitter_javascript

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_javascript.language()))


@cache
def _typescript(*, jsx: bool) -> Any:
    import tree_sitter
    import tree_sitter_typescript

    made = tree_sitter_typescript.language_tsx() if jsx else tree_sitter_typescript.language_typescript()
    return tree_sitter.Parser(tree_sitter.Language(made))


def parse_javascript(text: str) -> Node:
    """The program *text*; what is no JavaScript stands in nodes of kind ``ERROR``.

    Raises :class:`TooLargeError` when it has more than :data:`MAX_NODES` nodes, more than :data:`MAX_CHARACTERS`
    characters, or takes too long to read.
    """
    return _remembered(text) if len(text) <= MAX_REMEMBERED else _read(_javascript, text, _COMMENT)


def parse_typescript(text: str, *, jsx: bool, without: frozenset[str]) -> Node:
    """The program *text*, a new tree each time, without nodes of the kinds *without* as far as these have no errors.

    *jsx*: as a ``.tsx`` file, where ``<T>value`` is no assertion. Otherwise like :func:`parse_javascript`.
    """
    return _read(lambda: _typescript(jsx=jsx), text, _COMMENT | without)


# Steps repeat from file to file: each text is parsed once, for nobody changes a tree.
@lru_cache(maxsize=64)
def _remembered(text: str) -> Node:
    return _read(_javascript, text, _COMMENT)


def _read(parser: Callable[[], Any], text: str, without: frozenset[str]) -> Node:
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError
    data = text.encode("utf-8", "surrogatepass")
    root = _parsed(parser(), data).root_node
    if root.descendant_count > MAX_NODES:
        raise TooLargeError
    copied = _copied(root, None if len(data) == len(text) else _characters(text), without)
    copied.tokens = (BROKEN,) if root.has_error else ()
    return copied


def _parsed(parser: Any, data: bytes) -> Any:
    """The tree of *data*, given piece by piece: when time is up, the parser is told that the text ends."""
    key = id(parser), hash(data)
    end = time.thread_time() + _MAX_SECONDS
    late = key in _SLOW

    def read(offset: int, _point: object) -> bytes:
        nonlocal late
        late = late or time.thread_time() > end
        return b"" if late else data[offset : offset + _CHUNK]

    tree = parser.parse(read)
    if late:
        _SLOW.add(key)
        raise TooLargeError
    return tree


def errors(root: Node) -> list[Node]:
    """The pieces of a program that are not of its language, in their order."""
    if BROKEN not in root.tokens:
        return []
    found, pending = [], [root]
    while pending:
        node = pending.pop()
        if node.kind == "ERROR":
            found.append(node)
        pending += node.children
    return sorted(found, key=lambda node: node.start)


def _characters(text: str) -> Sequence[int]:
    """For each byte of the UTF-8 form, and for its end, the number of the character it belongs to."""
    sizes = (1 if char < "\x80" else 2 if char < "\u0800" else 3 if char < "\U00010000" else 4 for char in text)
    offsets = array("I", chain.from_iterable(repeat(number, size) for number, size in enumerate(sizes)))
    offsets.append(len(text))
    return offsets


def _copied(root: Any, characters: Sequence[int] | None, without: frozenset[str]) -> Node:
    """The tree below *root* as plain nodes; see :func:`_taken` for *without*."""

    def copy(node: Any, kind: str = "") -> Node:
        start, end = node.start_byte, node.end_byte
        if characters is not None:
            start, end = characters[start], characters[end]
        return Node(kind or node.type, start, end)

    cursor = root.walk()
    top = copy(root)
    parents = [top]
    broken = root.has_error
    going = cursor.goto_first_child()
    while going:
        if broken and cursor.node.is_missing:  # the parser went on as if it were there
            parents[-1].children.append(copy(cursor.node, "ERROR"))
        one = _taken(cursor, parents[-1], copy, without)
        if one is not None and cursor.goto_first_child():
            parents.append(one)
            continue
        while going and not cursor.goto_next_sibling():
            going = cursor.goto_parent() and len(parents) > 1
            parents.pop()
    return top


def _taken(cursor: Any, parent: Node, copy: Callable[[Any], Node], without: frozenset[str]) -> Node | None:
    """Puts what *cursor* is at below *parent*; the new node where there may be more below it.

    Nodes of the kinds *without* are left out, unless something in them is not understood: that is to be told.
    """
    node = cursor.node
    name = cursor.field_name
    if not node.is_named:
        if name is not None:
            parent.fields.setdefault(name, copy(node))
        elif node.type in _TOKENS.get(parent.kind, _NO_TOKENS):
            parent.tokens += (node.type,)
        return None
    if node.type in without and not node.has_error:
        return None
    one = copy(node)
    parent.children.append(one)
    if name is not None:
        parent.fields.setdefault(name, one)
    return one
