"""YAML read into typed nodes that know exactly where they stand.

Built on the events of libyaml (``ruamel.yaml``'s C parser) or, where that is not installed, of its Python parser,
with the same result. Plain scalars follow the YAML 1.2 core schema, as GitHub does: ``on`` and ``yes`` are strings.

Offsets are characters of :attr:`Source.text` (the file without a byte order mark); lines and columns count from 1.
Spans are half open: ``[start, end)``.
"""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.yaml_alignment import aligned

try:
    from ruamel.yaml import cyaml
except ImportError:  # the extra `oldlibyaml` is not installed: slower, same result
    cyaml = None  # type: ignore[assignment]
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "LIBYAML_PARSER",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_EXPANSION",
    "Alias",
    "Fields",
    "Mapping",
    "Node",
    "Plain",
    "Scalar",
    "Sequence",
    "Source",
    "compose",
    "compose_file",
    "decode",
    "duplicate_keys",
    "plain",
    "resolved",
]

LIBYAML_PARSER: Any = getattr(cyaml, "CParser", None)
"""libyaml's parser, or None where only the Python parser is there."""

MAX_BYTES = 16 << 20
"""Larger files are refused: ten times what GitHub accepts."""

MAX_DEPTH = 200
"""Collections nested deeper are refused."""

MAX_EXPANSION = 1_000_000
"""Nodes that a file may have once its aliases are expanded."""

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

Fields: TypeAlias = "collections.abc.Mapping[str, tuple[Scalar, Node]]"
"""Key and value, aliases resolved, by the text of the key."""

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_PRINTABLE_ASCII = bytes((0x09, 0x0A, 0x0D, *range(0x20, 0x7F)))
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# Written as what is refused: to compile a class of a million characters takes six milliseconds.
_UNPRINTABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_PROPERTIES = re.compile(r"(?:[!&][^\s,\[\]{}]*(?:[^\S\r\n]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*[^\S\r\n]*)*")
_INDICATOR = re.compile(r"(?:(?:\s+(?:#[^\r\n]*)?)*[:?-])?")
_ALIAS_NAME = re.compile(r"[^\s,\[\]{}]*")
# Breaks of YAML 1.1 that are ordinary characters since 1.2. They are parsed as characters that no file holds.
_OLD_BREAKS = re.compile("[\x85\u2028\u2029]")
_TO_STAND_INS = {0x85: "\ue085", 0x2028: "\ue028", 0x2029: "\ue029"}
_FROM_STAND_INS = {0xE085: "\x85", 0xE028: "\u2028", 0xE029: "\u2029"}


class Source:
    """A text and its path; turns offsets into lines and columns."""

    __slots__ = ("_starts", "path", "text")

    def __init__(self, text: str, path: str) -> None:
        self.text: Final = text
        self.path: Final = path
        self._starts: list[int] | None = None

    @property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line."""
        if self._starts is None:
            self._starts = [0, *(found.end() for found in _LINE_BREAK.finditer(self.text))]
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at *offset*."""
        starts = self.line_starts
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def place(self, offset: int) -> Place:
        """The place of the character at *offset*."""
        line, column = self.position(offset)
        return Place(path=self.path, line=line, column=column)

    def line(self, number: int) -> str:
        """Text of line *number* (from 1) without its line break; empty beyond the end."""
        starts = self.line_starts
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")


class Node:
    """A value of the document. ``[start, end)`` is what it is written as, without tag and anchor."""

    __slots__ = ("anchor", "end", "source", "start", "tag")

    def __init__(self, source: Source, start: int, end: int, tag: str | None, anchor: str | None) -> None:
        self.source: Final = source
        self.start: Final = start
        self.end = end
        self.tag: Final = tag
        self.anchor: Final = anchor

    @property
    def place(self) -> Place:
        """Where the node starts."""
        return self.source.place(self.start)


class Scalar(Node):
    """A single text. *style* is ``""`` (plain), ``'``, ``"``, ``|`` or ``>``."""

    __slots__ = ("_segments", "style", "value")

    def __init__(  # noqa: PLR0913, PLR0917 - built once for every scalar of a file: keywords would cost a third more
        self, source: Source, start: int, end: int, tag: str | None, anchor: str | None, value: str, style: str
    ) -> None:
        # As in the constructor of Node: to call it would take a fifth more.
        self.source, self.start, self.end, self.tag, self.anchor = source, start, end, tag, anchor  # type: ignore[misc]
        self.value: Final = value
        self.style: Final = style
        self._segments: tuple[list[int], list[int]] | None = None

    def __repr__(self) -> str:
        return f"Scalar({self.value!r} at {self.place})"

    @property
    def data(self) -> str | int | float | bool | None:
        """The value as the core schema types it; a quoted or block scalar, or one tagged ``!!str``, is text."""
        if self.style or self.tag in {"tag:yaml.org,2002:str", "!"}:
            return self.value
        return _core(self.value)

    @property
    def is_string(self) -> bool:
        """Whether the schema types the value as text."""
        return isinstance(self.data, str)

    def offset(self, index: int) -> int:
        """Offset in the source of character *index* of the value (``len(value)``: just after its last character)."""
        if self._segments is None:
            from_value = aligned(self.source.text, self.start, self.end, style=self.style, value=self.value)
            self._segments = ([pair[0] for pair in from_value], [pair[1] for pair in from_value])
        values, offsets = self._segments
        segment = bisect.bisect_right(values, index) - 1
        moved = offsets[segment] + index - values[segment]
        # Characters that a line break was folded into stand at the end of their line.
        return min(moved, offsets[segment + 1], self.end) if segment + 1 < len(offsets) else min(moved, self.end)

    def position(self, index: int) -> tuple[int, int]:
        """Line and column in the file of character *index* of the value."""
        return self.source.position(self.offset(index))


class Sequence(Node):
    """A list of nodes."""

    __slots__ = ("flow", "items")

    def __init__(self, source: Source, start: int, tag: str | None, anchor: str | None, *, flow: bool) -> None:
        self.source, self.start, self.end, self.tag, self.anchor = source, start, start, tag, anchor  # type: ignore[misc]
        self.flow: Final = flow
        self.items: tuple[Node, ...] = ()

    def __repr__(self) -> str:
        return f"Sequence({len(self.items)} items at {self.place})"

    def __iter__(self) -> Iterator[Node]:
        """The items, aliases replaced by what they stand for."""
        for item in self.items:
            yield resolved(item)


class Mapping(Node):
    """Pairs of nodes, in the order of the file, duplicates kept."""

    __slots__ = ("_fields", "flow", "pairs")

    def __init__(self, source: Source, start: int, tag: str | None, anchor: str | None, *, flow: bool) -> None:
        self.source, self.start, self.end, self.tag, self.anchor = source, start, start, tag, anchor  # type: ignore[misc]
        self.flow: Final = flow
        self.pairs: tuple[tuple[Node, Node], ...] = ()
        self._fields: dict[str, tuple[Scalar, Node]] | None = None

    def __repr__(self) -> str:
        return f"Mapping({len(self.pairs)} pairs at {self.place})"

    def entries(self) -> Iterator[tuple[Scalar, Node]]:
        """Pairs whose key is a scalar; aliases in keys and values replaced by what they stand for."""
        for key, value in self.pairs:
            name = resolved(key)
            if isinstance(name, Scalar):
                yield name, resolved(value)

    @property
    def fields(self) -> Fields:
        """The entries by name, of duplicates the first one. Known once the whole document is."""
        if self._fields is None:
            self._fields = {}
            for entry in self.entries():
                self._fields.setdefault(entry[0].value, entry)
        return self._fields

    def get(self, key: str) -> Node | None:
        """Value of the first entry named *key*, aliases resolved, or None."""
        found = self.fields.get(key)
        return None if found is None else found[1]

    def entry(self, key: str) -> tuple[Scalar, Node] | None:
        """First entry named *key*: the key with its place, and the value with aliases resolved."""
        return self.fields.get(key)


class Alias(Node):
    """``*name``: stands at its own place for the node that the anchor names (never one that holds it)."""

    __slots__ = ("name", "target")

    def __init__(self, source: Source, start: int, end: int, name: str, target: Node) -> None:
        super().__init__(source, start, end, None, None)
        self.name: Final = name
        self.target: Final = target

    def __repr__(self) -> str:
        return f"Alias(*{self.name} at {self.place})"


def resolved(node: Node) -> Node:
    """The node itself, or what an alias stands for."""
    while isinstance(node, Alias):
        node = node.target
    return node


def decode(data: bytes, *, path: str) -> str:
    """The text of a YAML file.

    Raises:
        ConfigurationError: it is not UTF-8 or too large; with the place of the first wrong byte.

    """
    if len(data) > MAX_BYTES:
        raise ConfigurationError(
            f"the file has {len(data):,} bytes, more than {MAX_BYTES:,}",
            fix="split it, or take it out of the paths that are read",
            place=Place(path=path),
        )
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigurationError("the file is UTF-16", fix="save it as UTF-8", place=Place(path=path, line=1, column=1))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = Source(data[: error.start].decode("utf-8").removeprefix("\ufeff"), path)
        raise ConfigurationError(
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            why="the file may be in Latin-1 or Windows-1252",
            fix="save it as UTF-8",
            place=before.place(len(before.text)),
        ) from None


def compose_file(path: Path, *, name: str | None = None) -> Node | None:
    """Composes the file at *path*, which errors call *name* (default: the path itself); see :func:`compose`."""
    shown = name or str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            "cannot read the file",
            why=error.strerror or str(error),
            fix="name a readable file",
            place=Place(path=shown),
        ) from None
    return compose(decode(data, path=shown), path=shown)


def compose(text: str, *, path: str) -> Node | None:
    """The root node of the one document in *text*, or None for an empty document.

    Raises:
        ConfigurationError: *text* is not YAML, has several documents, nests deeper than :data:`MAX_DEPTH`, holds an
            alias to a node that contains it, or expands beyond :data:`MAX_EXPANSION` nodes; with the place.

    """
    source = Source(text.removeprefix("\ufeff"), path)
    _refuse_unprintable(source)
    return _Composer(source).compose()


def duplicate_keys(root: Node | None) -> tuple[Problem, ...]:
    """One problem for every key that its mapping has twice, in the order of the file."""
    problems: list[Problem] = []
    stack = [root] if root is not None else []
    while stack:
        node = stack.pop()
        if isinstance(node, Sequence):
            stack.extend(reversed(node.items))
        elif isinstance(node, Mapping):
            seen: dict[str, Node] = {}
            for key, value in node.pairs:
                stack.append(value)
                name = resolved(key)
                if not isinstance(name, Scalar):
                    continue
                if name.value in seen:
                    first = seen[name.value].place
                    problems.append(
                        Problem(
                            what=f"the key `{name.value}` is there twice",
                            why=f"line {first.line} has it too, and YAML allows a key once",
                            fix="remove or rename one of them",
                            place=key.place,
                        )
                    )
                seen.setdefault(name.value, key)
    return tuple(sorted(problems, key=lambda problem: problem.place or Place(path="")))


def plain(node: Node | None) -> Plain:
    """The plain Python data of *node*: mappings by the text of their keys, the last of duplicates wins."""
    if node is None:
        return None
    node = resolved(node)
    if isinstance(node, Scalar):
        return node.data
    if isinstance(node, Sequence):
        return [plain(item) for item in node]
    assert isinstance(node, Mapping)
    return {key.value: plain(value) for key, value in node.entries()}


def _core(text: str) -> str | int | float | bool | None:
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if text[0] in "0123456789+-.":
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text.startswith(("0o", "0x")) else _decimal(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _SPECIAL_FLOAT.fullmatch(text):
            return float(text.replace(".", "").lower())
    return text


def _decimal(text: str) -> int | float:
    # Python refuses to convert thousands of digits; such a number is a float to every other reader anyway.
    return int(text) if len(text) < 400 else float(text)


def _refuse_unprintable(source: Source) -> None:
    if source.text.isascii() and not source.text.encode().translate(None, _PRINTABLE_ASCII):
        return  # twenty times faster than the search
    found = _UNPRINTABLE.search(source.text)
    if found is None:
        return
    raise ConfigurationError(
        f"the character U+{ord(found[0]):04X} may not stand in YAML",
        why="it is a control character" if ord(found[0]) < 0xA0 else "YAML excludes it",
        fix='remove it, or write it as an escape in double quotes ("\\u…")',
        place=source.place(found.start()),
    )


_FIXES = (
    ("cannot start any token", "put the value in quotes"),
    ("mapping values are not allowed", "put a value that holds `: ` in quotes, or check the indentation"),
    ("expected ':'", "write `key: value`; check the indentation of this line and of the one before"),
    ("expected <block end>", "align the line with its neighbours"),
    ("did not find expected key", "align the line with its neighbours, or put the value in quotes"),
    ("did not find expected '-' indicator", "align the line with its neighbours"),
    ("unexpected end of stream", "close the quote"),
    ("expected ',' or", "close the bracket, or separate the items with commas"),
    ("did not find expected node content", "close the bracket, or take out the stray character"),
    ("undefined alias", "define the anchor (`&name`) before its alias"),
    ("unknown escape character", "use single quotes, or double the backslash"),
)


class _Composer:
    """Builds nodes from parser events with a stack of its own, so that depth is bounded by a rule and not by Python."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.anchors: dict[str, Node] = {}
        self.weights: dict[int, int] = {}
        self.open: list[tuple[Mapping | Sequence, list[Node], list[int]]] = []  # node, children, [weight]
        self.restore = not source.text.isascii() and _OLD_BREAKS.search(source.text) is not None

    def events(self) -> Iterator[Any]:
        text = self.text.translate(_TO_STAND_INS) if self.restore else self.text
        if LIBYAML_PARSER is not None:
            return iter(LIBYAML_PARSER(text).get_event, None)
        from ruamel.yaml import YAML

        return iter(YAML(typ="safe", pure=True).parse(text))

    def refuse(self, error: YAMLError) -> NoReturn:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        offset = min(mark.index, len(self.text)) if mark is not None else 0
        problem = (isinstance(error, MarkedYAMLError) and error.problem) or str(error).splitlines()[0]
        why = ""
        if isinstance(error, MarkedYAMLError) and error.context and "next token" not in error.context:
            why = str(error.context)
            if error.context_mark is not None:
                why += f" that starts at line {self.source.position(error.context_mark.index)[0]}"
        fix = next((fix for part, fix in _FIXES if part in problem), "check this line and the one before")
        line = self.source.line(self.source.position(offset)[0])
        if "\t" in line[: len(line) - len(line.lstrip())]:
            why, fix = "the line is indented with a tab", "indent with spaces"
        raise ConfigurationError(
            f"not valid YAML: {problem}", why=why, fix=fix, place=self.source.place(offset)
        ) from None

    def compose(self) -> Node | None:
        try:
            root = self.read(self.events())
        except YAMLError as error:
            self.refuse(error)
        if isinstance(root, Scalar) and not root.value and not root.style and root.tag is None:
            return None
        return root

    def read(self, events: Iterator[Any]) -> Node | None:
        """The last node finished, which is the root."""
        root: Node | None = None
        documents = 0
        scalar, stack = self.scalar, self.open
        for event in events:
            kind = type(event)
            if kind is ScalarEvent:
                root = node = scalar(event)
                # What `add` does, for most nodes are scalars.
                if node.anchor:
                    self.weights[id(node)] = 1
                if stack:
                    _, children, total = stack[-1]
                    children.append(node)
                    total[0] += 1
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self.enter(event, Mapping if kind is MappingStartEvent else Sequence)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                root = self.add(*self.leave(event))
            elif kind is AliasEvent:
                root = self.add(*self.alias(event))
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self.fail(event, "a second document starts here", fix="keep one document in the file")
        return root

    def add(self, node: Node, weight: int) -> Node:
        """Hands a finished node to the collection that is open; returns it: the last one added is the root."""
        if node.anchor:
            self.weights[id(node)] = weight
        if self.open:
            _, children, total = self.open[-1]
            children.append(node)
            total[0] += weight
        return node

    def scalar(self, event: Any) -> Scalar:
        start, end = event.start_mark.index, event.end_mark.index
        tag, anchor, style, value = event.ctag, event.anchor, event.style or "", event.value
        if tag is not None or anchor is not None:
            tag = None if tag is None else str(tag)
            start = min(self.after_properties(start), end) if value else start
            end = max(start, end)
        elif start == end:
            start = end = self.after_indicator(start)
        if style == "|" or style == ">":  # noqa: PLR1714 - tens of thousands of times a second
            end = self.line_end(start + len(self.text[start:end].rstrip()), end)
        if self.restore:
            value = value.translate(_FROM_STAND_INS)
        node = Scalar(self.source, start, end, tag, anchor, value, style)
        if anchor:
            self.anchors[anchor] = node
        return node

    def line_end(self, offset: int, limit: int) -> int:
        """End of the line of *offset*: spaces at the end of a block scalar's last line belong to it."""
        found = _LINE_BREAK.search(self.text, offset, limit)
        return found.start() if found else limit

    def after_properties(self, start: int) -> int:
        found = _PROPERTIES.match(self.text, start)
        return found.end() if found else start

    def after_indicator(self, start: int) -> int:
        """Where an absent value stands: just after its ``:`` or ``-``, whatever token the parser had come to."""
        if not self.open:
            return start
        holder, children, _ = self.open[-1]
        found = _INDICATOR.match(self.text, children[-1].end if children else holder.start)
        return found.end() if found else start

    def enter(self, event: Any, build: type[Mapping | Sequence]) -> None:
        if len(self.open) >= MAX_DEPTH:
            self.fail(event, f"nested deeper than {MAX_DEPTH} levels", fix="flatten the document")
        start = event.start_mark.index
        tag = None if event.tag is None else str(event.tag)
        if tag is not None or event.anchor is not None:
            start = self.after_properties(start)
        flow = bool(event.flow_style)
        node = build(self.source, start, tag, event.anchor, flow=flow)
        if event.anchor:
            self.anchors[event.anchor] = node
        self.open.append((node, [], [1]))

    def leave(self, event: Any) -> tuple[Node, int]:
        node, children, weight = self.open.pop()
        if isinstance(node, Mapping):
            node.pairs = tuple(zip(children[::2], children[1::2], strict=True))
        else:
            node.items = tuple(children)
        # A block collection ends with its last child; its event stands before the next token, after blank lines.
        node.end = event.end_mark.index if node.flow or not children else children[-1].end
        return node, weight[0]

    def alias(self, event: Any) -> tuple[Alias, int]:
        name = event.anchor
        target = self.anchors.get(name)
        start = event.start_mark.index
        if target is None:
            self.fail(event, f"the alias *{name} has no anchor", fix=f"define &{name} before this line")
        if any(holder is target for holder, _, _ in self.open):
            self.fail(event, f"the alias *{name} stands for a node that contains it", fix="remove the alias")
        weight = self.weights.get(id(target), 1)
        if weight + sum(total for _, _, (total,) in self.open) > MAX_EXPANSION:
            self.fail(event, f"the aliases expand to more than {MAX_EXPANSION:,} nodes", fix="use fewer aliases")
        found = _ALIAS_NAME.match(self.text, start)
        end = found.end() if found else start
        return Alias(self.source, start, end, name, target), weight

    def fail(self, event: Any, what: str, *, fix: str) -> NoReturn:
        raise ConfigurationError(what, fix=fix, place=self.source.place(event.start_mark.index))
