"""Edits of a YAML file that leave every other byte as it is.

Offsets are those of :attr:`Source.text <runner_e2e.yaml_positions.Source.text>`: the text of the file without a byte
order mark. Every function gives None where the change cannot be made without touching anything else; none of them
writes anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.finding import Edit
from runner_e2e.lint.fixes.yaml_text import Data, block_lines, double_quoted, flow_text, scalar_text
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.workflow import Job, Step
from runner_e2e.yaml_positions import Alias, Mapping, Node, Scalar, Sequence, compose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.values import Span

__all__ = ["Located", "insert_line", "is_shared", "line_break", "node_at", "put", "replace_part", "replace_value"]

_BEFORE_KEY = re.compile(r" *(?:- +)*")
_AFTER_VALUE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?=\r|\n|\Z)")
_LINE_END = re.compile(r"[^\r\n]*")
_BLOCK_HEADER = re.compile(r"[|>][0-9]*(?P<chomping>[+-]?)[0-9]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    """The scalar at a place, character *index* of its value, and the nodes around it from the root down."""

    scalar: Scalar
    index: int
    path: tuple[Node, ...]
    job: Job | None
    step: Step | None


def line_break(text: str, offset: int = 0) -> str:
    """How the line of *offset* ends; where it is the last one, how the first line does."""
    found = re.compile(r"\r\n|\n|\r").search(text, offset) or re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


def node_at(document: Document, span: Span) -> Located | None:
    """The scalar in which *span* starts, None when no value of the document stands there."""
    root = document.root
    if root is None:
        return None
    starts = root.source.line_starts
    if not 1 <= span.line <= len(starts):
        return None
    offset = starts[span.line - 1] + span.column - 1
    path: list[Node] = []
    keys: list[str] = []
    node = root
    while not isinstance(node, Scalar):
        path.append(node)
        found = next((each for each in _children(node) if each[1].start <= offset <= each[1].end), None)
        if found is None:
            return None
        keys.append(found[0])
        node = found[1]
    return Located(
        scalar=node, index=_index(node, offset), path=tuple(path), job=_job(path, keys), step=_step(path, keys)
    )


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Sequence):
        yield from (("", item) for item in node.items)
    elif isinstance(node, Mapping):
        for key, value in node.pairs:
            name = key.value if isinstance(key, Scalar) else ""
            yield name, value
            yield "", key


def _index(scalar: Scalar, offset: int) -> int:
    """The first character of the value that stands at *offset* or after it."""
    low, high = 0, len(scalar.value)
    while low < high:
        middle = (low + high) // 2
        if scalar.offset(middle) < offset:
            low = middle + 1
        else:
            high = middle
    return low


def _job(path: list[Node], keys: list[str]) -> Job | None:
    if len(path) < 3 or keys[0] != "jobs" or not isinstance(path[1], Mapping):
        return None
    key = next((key for key, value in path[1].pairs if value is path[2]), None)
    return Job(key, path[2]) if isinstance(key, Scalar) else None


def _step(path: list[Node], keys: list[str]) -> Step | None:
    for depth in range(len(path) - 1, 1, -1):
        holder = path[depth - 1]
        if keys[depth - 2] == "steps" and isinstance(holder, Sequence) and isinstance(path[depth], Mapping):
            return Step(path[depth], holder.items.index(path[depth]))
    return None


def is_shared(document: Document, node: Node) -> bool:
    """Whether an alias stands for *node* itself, so that a change of it is a change elsewhere."""
    if node.anchor is None or document.root is None:
        return False
    stack = [document.root]
    while stack:
        current = stack.pop()
        if isinstance(current, Alias):
            if current.target is node:
                return True
        elif not isinstance(current, Scalar):
            stack += [child for _, child in _children(current)]
    return False


# --- scalars


def replace_part(document: Document, scalar: Scalar, start: int, end: int, text: str) -> Edit | None:
    """Puts *text* in place of the characters ``[start, end)`` of the value of *scalar*, in its style."""
    if is_shared(document, scalar) or "\n" in text or "\r" in text:
        return None
    first = scalar.offset(start)
    last = scalar.offset(end - 1) + _width(scalar, end - 1) if end > start else first
    value = scalar.value[:start] + text + scalar.value[end:]
    if scalar.style == "'":
        written = text.replace("'", "''")
    elif scalar.style == '"':
        written = double_quoted(text)
    else:
        written = text
    edit = Edit(path=document.path, start=first, end=last, text=written)
    return edit if _becomes(scalar, edit, value) else None


def insert_line(document: Document, scalar: Scalar, line: str) -> Edit | None:
    """Puts *line* before the first line of a literal block scalar."""
    found = _LINE_END.match(scalar.source.text, scalar.start)
    if scalar.style != "|" or found is None or is_shared(document, scalar) or not scalar.value.strip():
        return None
    start = scalar.offset(0)
    before = scalar.source.text[scalar.source.line_starts[scalar.source.position(start)[0] - 1] : start]
    if before.strip() or scalar.value[0] in " \n":
        return None
    text = f"{line}{line_break(scalar.source.text, scalar.start)}{before}"
    edit = Edit(path=document.path, start=start, end=start, text=text)
    return edit if _becomes(scalar, edit, f"{line}\n{scalar.value}") else None


def _width(scalar: Scalar, index: int) -> int:
    """How many characters of the file stand for character *index* of the value."""
    text, offset = scalar.source.text, scalar.offset(index)
    if scalar.style == "'" and text.startswith("''", offset):
        return 2
    if scalar.style == '"' and text[offset] == "\\":
        found = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)").match(text, offset)
        return found.end() - offset if found else 1
    return 1


def _becomes(scalar: Scalar, edit: Edit, value: str) -> bool:
    """Whether the scalar reads as *value* after *edit*, in the same style."""
    text = scalar.source.text
    try:
        node = compose(text[: edit.start] + edit.text + text[edit.end :], path=edit.path)
    except ConfigurationError:
        return False
    while node is not None and not isinstance(node, Scalar):
        node = next((each for _, each in _children(node) if each.start <= scalar.start <= each.end), None)
    return isinstance(node, Scalar) and node.value == value and node.style == scalar.style


def replace_value(document: Document, scalar: Scalar, value: str | bool | int) -> Edit | None:
    """Puts *value* in place of the whole value of *scalar*; quotes stay where the new value is text."""
    if is_shared(document, scalar) or scalar.style in {"|", ">"}:
        return None
    text = scalar_text(value, flow=True)
    if isinstance(value, str) and scalar.style:
        text = "'" + value.replace("'", "''") + "'" if scalar.style == "'" else f'"{double_quoted(value)}"'
    if scalar.start == scalar.end:  # null: the value follows its colon
        text = f" {text}"
    return Edit(path=document.path, start=scalar.start, end=scalar.end, text=text)


# --- mappings


def put(document: Document, node: Node | None, path: tuple[str, ...], value: Data, *, after: str = "") -> Edit | None:
    """Sets the key *path* below the mapping *node* to *value*.

    Mappings on the way are made where they are absent and merged into where they are there; a scalar at the end of
    the path is replaced. A new key of *node* itself comes after the key *after*, and last by default. None for an
    expression in place of a mapping, a node that an alias shares, a duplicate key, and where the value is there
    already.
    """
    current = node
    for depth, key in enumerate(path):
        if not isinstance(current, Mapping) or (depth and is_shared(document, current)):
            return None
        rest = path[depth + 1 :]
        found = [pair for pair in current.pairs if isinstance(pair[0], Scalar) and pair[0].value == key]
        if len(found) > 1:
            return None
        if not found:
            return _insert(document, current, key, _nested(rest, value), "" if depth else after)
        present = found[0][1]
        if not rest:
            return _replace(document, current, present, value)
        if isinstance(present, Scalar) and _is_absent(present):
            return _fill(document, current, present, _nested(rest, value))
        current = present
    return None


def _nested(path: tuple[str, ...], value: Data) -> Data:
    for key in reversed(path):
        value = {key: value}
    return value


def _is_absent(scalar: Scalar) -> bool:
    return scalar.start == scalar.end and scalar.tag is None and scalar.anchor is None


def _replace(document: Document, holder: Mapping, present: Node, value: Data) -> Edit | None:
    if not isinstance(present, Scalar) or is_shared(document, present):
        return None
    if _is_absent(present):
        return _fill(document, holder, present, value)
    if isinstance(value, str | int):
        unchanged = present.value == value if isinstance(value, str) else present.data == value
        return None if unchanged else replace_value(document, present, value)
    if present.style in {"|", ">"} or (value and not holder.flow):
        return None
    return Edit(path=document.path, start=present.start, end=present.end, text=flow_text(value))


def _fill(document: Document, holder: Mapping, absent: Scalar, value: Data) -> Edit | None:
    """Gives a value to a key that has none."""
    source = absent.source
    if source.text[absent.start - 1] != ":":
        return None
    if holder.flow or isinstance(value, str | int) or not value:
        text = flow_text(value) if holder.flow or not isinstance(value, str | int) else scalar_text(value, flow=False)
        return Edit(path=document.path, start=absent.start, end=absent.end, text=f" {text}")
    column = _column(holder)
    found = _AFTER_VALUE.match(source.text, absent.end)
    if column is None or found is None:
        return None
    step = _indentation(document)
    lines = [line for name, item in value.items() for line in block_lines(name, item, indent=step)]
    newline = line_break(source.text, absent.end)
    text = "".join(newline + " " * (column + step) + line for line in lines)
    return Edit(path=document.path, start=found.end(), end=found.end(), text=text)


def _insert(document: Document, mapping: Mapping, key: str, value: Data, after: str) -> Edit | None:
    if mapping.flow:
        return _insert_flow(document, mapping, key, value)
    pairs = mapping.pairs
    if not pairs:
        return None
    names = [name.value if isinstance(name, Scalar) else "" for name, _ in pairs]
    pair = pairs[names.index(after) if after in names else -1]
    return _insert_after(document, mapping, pair, key, value) or _insert_before(document, pair, key, value)


def _insert_flow(document: Document, mapping: Mapping, key: str, value: Data) -> Edit | None:
    entry = flow_text({key: value})[1:-1]
    if not mapping.pairs:
        return Edit(path=document.path, start=mapping.start + 1, end=mapping.start + 1, text=entry)
    last_key, last_value = mapping.pairs[-1]
    end = max(last_key.end, last_value.end)
    if isinstance(last_value, Scalar) and _is_absent(last_value):
        return None
    return Edit(path=document.path, start=end, end=end, text=f", {entry}")


def _insert_after(document: Document, mapping: Mapping, pair: tuple[Node, Node], key: str, value: Data) -> Edit | None:
    source = mapping.source
    column = _column(mapping)
    if column is None or not _ends_where_it_stands(pair[1]):
        return None
    found = _AFTER_VALUE.match(source.text, max(pair[0].end, pair[1].end))
    if found is None:
        return None
    newline = line_break(source.text, source.line_starts[source.position(mapping.start)[0] - 1])
    lines = block_lines(key, value, indent=_indentation(document))
    text = "".join(newline + " " * column + line for line in lines)
    return Edit(path=document.path, start=found.end(), end=found.end(), text=text)


def _insert_before(document: Document, pair: tuple[Node, Node], key: str, value: Data) -> Edit | None:
    source = pair[0].source
    start = pair[0].start
    if pair[0].anchor is not None or pair[0].tag is not None or not _is_first_in_line(pair[0]):
        return None
    column = source.position(start)[1] - 1
    newline = line_break(source.text, start)
    lines = block_lines(key, value, indent=_indentation(document))
    text = (newline + " " * column).join([*lines, ""])
    return Edit(path=document.path, start=start, end=start, text=text)


def _is_first_in_line(key: Node) -> bool:
    """Whether only spaces and the dashes of lists stand before the key."""
    starts = key.source.line_starts
    before = key.source.text[starts[key.source.position(key.start)[0] - 1] : key.start]
    return _BEFORE_KEY.fullmatch(before) is not None


def _column(mapping: Mapping) -> int | None:
    """How many characters stand before each key of a block mapping, None where that is not plain to see."""
    key = next((key for key, _ in mapping.pairs if _is_first_in_line(key) and key.anchor is key.tag is None), None)
    return key.source.position(key.start)[1] - 1 if key is not None else None


def _ends_where_it_stands(node: Node) -> bool:
    """Whether a line after the end of *node* leaves its value alone: not so where its last lines are blank."""
    while not isinstance(node, Scalar):
        children = [child for _, child in _children(node)] if isinstance(node, Sequence) else []
        if isinstance(node, Mapping) and node.pairs:
            children = [node.pairs[-1][1]]
        if isinstance(node, Alias) or not children:
            return True
        node = children[-1]
    if node.style not in {"|", ">"}:
        return True
    text = node.source.text
    header = _BLOCK_HEADER.match(text, node.start)
    if header is None or header["chomping"] == "+" or _LINE_END.match(text, node.end) is None:
        return False
    content = node.value.removesuffix("\n")
    return node.end < len(text) and bool(content) and content == content.rstrip()


def _indentation(document: Document) -> int:
    """By how many columns the file indents a mapping in a mapping."""
    stack = [document.root] if document.root is not None else []
    while stack:
        node = stack.pop(0)
        if isinstance(node, Mapping) and not node.flow:
            outer = _column(node)
            inner = next((each for _, each in node.pairs if isinstance(each, Mapping) and not each.flow), None)
            column = _column(inner) if inner is not None else None
            if outer is not None and column is not None and column > outer:
                return column - outer
            stack += [each for _, each in node.pairs]
    return 2
