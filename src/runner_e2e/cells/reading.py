"""Reads typed values out of YAML nodes and collects every mistake in their shape, with its place.

A value that is wrong is reported and read as None, so that one run finds all mistakes. What may be written where is
published as a JSON Schema (``schemas/``); a test holds the two together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runner_e2e.cells.durations import parse_duration
from runner_e2e.cells.wording import listing, quote, suggestion
from runner_e2e.errors import Place, Problem
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence, resolved

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from runner_e2e.yaml_positions import Node

__all__ = ["Format", "Reader", "Section"]


@dataclass(frozen=True, kw_only=True)
class Format:
    """What a text must look like, and how a message says it. A *private* text is never repeated in one."""

    pattern: re.Pattern[str]
    rule: str
    private: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """The entries of a mapping, each key once, unknown keys left out. ``pointer`` is its JSON Pointer."""

    pointer: str
    node: Node
    entries: dict[str, Node]

    def get(self, key: str) -> Node | None:
        """The value under *key*, or None."""
        return self.entries.get(key)


class Reader:
    """Holds the mistakes found so far, and the place of everything that was read, by JSON Pointer.

    A single value stands where it is written, anything larger or empty where its key is.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.places: dict[str, Place] = {}

    def report(self, at: Node | Place, what: str, *, why: str = "", fix: str = "") -> None:
        """Notes a mistake at *at*."""
        place = at if isinstance(at, Place) else at.place
        self.problems.append(Problem(what=what, why=why, fix=fix, place=place))

    def _wrong_type(self, node: Node, pointer: str, wanted: str, fix: str) -> None:
        self.report(node, f"{_named(pointer)} is {_kind(node)}", why=f"{wanted} is expected", fix=fix)

    def section(self, node: Node, pointer: str, keys: tuple[str, ...], required: tuple[str, ...] = ()) -> Section:
        """Reads a mapping whose keys are *keys*; reports unknown, repeated and missing ones."""
        known: dict[str, Node] = {}
        for key, value in self._pairs(node, pointer, f"a mapping with {listing(keys)}"):
            if key.value in keys:
                known[key.value] = value
            else:
                self.report(
                    key, f"unknown key {quote(key.value)} in {_named(pointer)}", fix=suggestion(key.value, keys)
                )
        if isinstance(node, Mapping):
            for key_name in required:
                if key_name not in known:
                    self.report(node, f"{_named(pointer)} has no {key_name}", fix=f"add `{key_name}:`")
        return Section(pointer=pointer, node=node, entries=known)

    def named(self, node: Node, pointer: str, names: Format, *, empty: str = "") -> dict[str, Node]:
        """Reads a mapping from free names in the format *names*; *empty* is the fix where it must not be empty."""
        found: dict[str, Node] = {}
        total = 0
        for key, value in self._pairs(node, pointer, "a mapping"):
            total += 1
            if self._fits(key, key.value, f"the name {{}} in {_named(pointer)}", names):
                found[key.value] = value
        if empty and not total and isinstance(node, Mapping):
            self.report(node, f"{_named(pointer)} is empty", fix=empty)
        return found

    def _pairs(self, node: Node, pointer: str, wanted: str) -> Iterator[tuple[Scalar, Node]]:
        """Yields the pairs of a mapping with each key once, and remembers where they stand."""
        if not isinstance(node, Mapping):
            self._wrong_type(node, pointer, wanted, "write `key: value` pairs below it")
            return
        seen: dict[str, Place] = {}
        for raw_key, raw_value in node.pairs:
            key, value = resolved(raw_key), resolved(raw_value)
            if not isinstance(key, Scalar):
                self.report(raw_key, f"a key of {_named(pointer)} is {_kind(key)}", fix="write a plain name")
                continue
            if key.value in seen:
                self.report(
                    raw_key,
                    f"the key {quote(key.value)} is there twice in {_named(pointer)}",
                    why=f"line {seen[key.value].line} has it too, and YAML allows a key once",
                    fix="remove or rename one of them",
                )
                continue
            seen[key.value] = raw_key.place
            written = raw_value if isinstance(value, Scalar) and value.data is not None else raw_key
            self.places[f"{pointer}/{key.value}"] = written.place
            yield key, value

    def _fits(self, node: Node, text: str, named: str, wanted: Format) -> bool:
        if wanted.pattern.fullmatch(text):
            return True
        shown = "(not shown)" if wanted.private else quote(text)
        self.report(node, f"{named.format(shown)} is not allowed", why=wanted.rule, fix="rename it")
        return False

    def name(self, node: Node | None, pointer: str, wanted: Format) -> str | None:
        """Reads a text in the format *wanted*."""
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.data, str):
            self._wrong_type(node, pointer, "text", _fix_of_text(node))
            return None
        return node.data if self._fits(node, node.data, f"{_named(pointer)} {{}}", wanted) else None

    def text(self, node: Node | None, pointer: str) -> str | None:
        """Reads any text."""
        if node is None:
            return None
        if isinstance(node, Scalar) and isinstance(node.data, str):
            return self._passed_on(node, node.data, pointer)
        self._wrong_type(node, pointer, "text", _fix_of_text(node))
        return None

    def _passed_on(self, node: Node, text: str, pointer: str) -> str | None:
        """*text*, if a program can be given it as an argument, a variable or a path."""
        if "\0" not in text:
            return text
        self.report(node, f"{_named(pointer)} holds a NUL", why="no argument, variable or path can", fix="remove it")
        return None

    def word(self, node: Node, pointer: str) -> str | None:
        """Reads a text, or a number or boolean as it is written (``1.10`` stays ``1.10``)."""
        if isinstance(node, Scalar) and node.data is not None:
            return self._passed_on(node, node.value, pointer)
        self._wrong_type(node, pointer, "text or a number", "write '' for an empty text")
        return None

    def boolean(self, node: Node | None, pointer: str, default: bool) -> bool:
        """Reads ``true`` or ``false``."""
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.data, bool):
            return node.data
        self._wrong_type(node, pointer, "true or false", "write true or false without quotes")
        return default

    def number(self, node: Node | None, pointer: str, unit: str) -> float | None:
        """Reads a finite number of *unit* that is not negative."""
        if node is None:
            return None
        value = _number(node)
        if value is not None and not math.isfinite(value):
            self.report(node, f"{_named(pointer)} is not finite", fix=f"write a number of {unit}, in digits only")
        elif value is None:
            self._wrong_type(node, pointer, f"a number of {unit}", "write digits only, without a sign or unit")
        elif value < 0:
            self.report(node, f"{_named(pointer)} is negative", fix=f"write 0 or more {unit}")
        else:
            return abs(float(value))  # of -0.0
        return None

    def integer(self, node: Node | None, pointer: str, *, least: int, most: int) -> int | None:
        """Reads a whole number from *least* to *most*."""
        if node is None:
            return None
        value = _number(node)
        fix = f"write {least}" if least == most else f"write a number from {least} to {most}"
        if value is None or not math.isfinite(value) or value != int(value):
            self._wrong_type(node, pointer, "a whole number", fix)
        elif not least <= value <= most:
            self.report(node, f"{_named(pointer)} is {value:g}", fix=fix)
        else:
            return int(value)
        return None

    def duration(self, node: Node | None, pointer: str) -> float | None:
        """Reads a duration; returns seconds. Its range is not looked at, but it is never negative."""
        if node is None:
            return None
        value = _number(node)
        fix = "write a number with a unit, like 90s, 20m or 1h30m, or a bare number of seconds"
        if value is not None and math.isfinite(value):
            if value >= 0:
                return float(value)
            self.report(node, f"{_named(pointer)} is negative", fix=fix)
        elif isinstance(node, Scalar) and isinstance(node.data, str):
            seconds = parse_duration(node.data)
            if seconds is not None:
                return seconds
            self.report(node, f"{_named(pointer)} {quote(node.data)} is not a duration", fix=fix)
        else:
            self._wrong_type(node, pointer, "a duration", fix)
        return None

    def choice(self, node: Node | None, pointer: str, choices: tuple[str, ...], default: str) -> str:
        """Reads one of *choices*."""
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.data, str):
            if node.data in choices:
                return node.data
            what = f"{_named(pointer)} {quote(node.data)} is unknown"
            self.report(node, what, why=f"it is one of {', '.join(choices)}", fix=suggestion(node.data, choices))
        else:
            self._wrong_type(node, pointer, f"one of {', '.join(choices)}", "write one of them")
        return default

    def names(self, node: Node | None, pointer: str, wanted: Format, *, empty: str = "") -> tuple[str, ...] | None:
        """Reads a list of texts, each once; *empty* is the fix where the list must not be empty."""
        found: dict[str, Place] = {}
        for item_pointer, item in self.items(node, pointer, empty):
            name = self.name(item, item_pointer, wanted)
            if name is None:
                continue
            if name in found:
                self.report(item, f"{quote(name)} is there twice in {_named(pointer)}", fix="remove one of them")
            found.setdefault(name, item.place)
        # Last, because a name may look like the index of another item.
        self.places.update({f"{pointer}/{name}": place for name, place in found.items()})
        return None if node is None else tuple(found)

    def words(self, node: Node | None, pointer: str, *, empty: str = "") -> tuple[str, ...]:
        """Reads a list of texts or numbers, in order; *empty* is the fix where the list must not be empty."""
        read = [self.word(item, item_pointer) for item_pointer, item in self.items(node, pointer, empty)]
        return tuple(word for word in read if word is not None)

    def items(self, node: Node | None, pointer: str, empty: str = "") -> Iterator[tuple[str, Node]]:
        """Yields the items of a list with their pointers; *empty* is the fix where it must not be empty."""
        if node is None:
            return
        if not isinstance(node, Sequence):
            self._wrong_type(node, pointer, "a list", "write it as [a, b], or one item a line after `- `")
            return
        if empty and not node.items:
            self.report(node, f"{_named(pointer)} is empty", fix=empty)
        for index, item in enumerate(node.items):
            self.places[f"{pointer}/{index}"] = item.place
            yield f"{pointer}/{index}", resolved(item)


def _named(pointer: str) -> str:
    """How a message calls a place in the document: ``suites.chat.timeout``."""
    return pointer.strip("/").replace("/", ".") or "the catalog"


def _number(node: Node) -> int | float | None:
    if not isinstance(node, Scalar) or isinstance(node.data, bool | str) or node.data is None:
        return None
    return node.data


def _fix_of_text(node: Node) -> str:
    """The remedy where *node* stands in the place of a text."""
    return "put it in quotes" if isinstance(node, Scalar) and node.data is not None else "write one text there"


def _kind(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    assert isinstance(node, Scalar)
    if node.data is None:
        return "empty"
    if isinstance(node.data, bool):
        return "a boolean"
    return "text" if isinstance(node.data, str) else "a number"
