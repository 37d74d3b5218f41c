"""Strings with unknown parts: cut, split, joined and formatted as Python does."""

from __future__ import annotations

import posixpath
import re
import string
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.objects import Items, Object, Text, join_all
from runner_e2e.lint.values import EMPTY, MAX_LITERAL, UNKNOWN, Confidence, Hole, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.lint import values

__all__ = [
    "character",
    "formatted",
    "formatted_with",
    "mapped",
    "partitioned",
    "path_joined",
    "path_part",
    "percent",
    "replaced",
    "shown",
    "sliced",
    "split",
    "stripped",
]

_SPECIFICATION = re.compile(
    r"(?:[^{}]?[<>=^])?[-+ ]?z?#?0?(?P<width>\d*)[,_]?(?:\.(?P<precision>\d+))?(?P<kind>[a-zA-Z%]?)"
)
_PERCENT = re.compile(
    r"%(?:\((?P<name>[^)]*)\))?[-#0 +]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?[hlL]?(?P<kind>.)", re.DOTALL
)
_MAX_WIDTH = 4096


def mapped(value: Value, change: Callable[[str], str]) -> Value:
    """*value* with its known pieces changed one by one."""
    known = value.constants
    if known is not None:
        return Value.any_of(normal((change(one),)) for one in known)
    return Value.any_of(
        normal(change(piece) if isinstance(piece, str) else piece for piece in one) for one in value.texts
    )


def shown(value: Value, *, quoted: bool) -> Value:
    """``repr()``."""
    if not quoted:
        return value
    known = value.constants
    if known is not None:
        return Value.any_of((repr(one),) for one in known)
    return Value.literal("'") + value + Value.literal("'")


def formatted(value: Value, specification: str | None) -> Value:
    """``format(value, specification)``; None: the specification is not known."""
    if specification == "" or not value.texts:
        return value
    if specification is None:
        return value | value.opaque()
    match = _SPECIFICATION.fullmatch(specification)
    if match is None:  # a date, or a class that reads it in its own way
        return value.opaque()
    if match["precision"] and match["kind"] in ("", "s"):
        value = sliced(value, 0, int(match["precision"]))
    width = int(match["width"] or 0)
    known = value.constant
    if known is not None and match["kind"] in ("", "s", "d") and width < _MAX_WIDTH:
        try:
            return Value.literal(format(int(known) if match["kind"] == "d" else known, specification))
        except ValueError:
            return UNKNOWN
    if value.taints and width:  # filled up on either side
        return UNKNOWN + value + UNKNOWN
    return value if value.taints or not width else UNKNOWN


def percent(form: Value, arguments: Sequence[Value], named: Callable[[str], Value]) -> Value:
    """``form % arguments``; *named* gives the argument for ``%(name)s``."""
    total: list[Value] = []
    for one in form.texts:
        remaining = list(arguments)
        value = EMPTY
        for piece in one:
            if not isinstance(piece, str):
                value = value + Value(((piece,),))
                continue
            offset = 0
            for match in _PERCENT.finditer(piece):
                value = value + Value.literal(piece[offset : match.start()])
                offset = match.end()
                value = value + _percent_one(match, remaining, named)
            value = value + Value.literal(piece[offset:])
        total.append(value)
    return join(total)


def _percent_one(match: re.Match[str], remaining: list[Value], named: Callable[[str], Value]) -> Value:
    if match["kind"] == "%":
        return Value.literal("%")
    for part in (match["width"], match["precision"]):
        if part == "*" and remaining:
            remaining.pop(0)
    name = match["name"]
    given = named(name) if name is not None else remaining.pop(0) if remaining else UNKNOWN
    if match["kind"] in ("r", "a"):
        return given | given.opaque() if given.taints else UNKNOWN
    if match["precision"] and match["precision"] != "*" and match["kind"] == "s":
        given = sliced(given, 0, int(match["precision"]))
    if match["width"] and match["width"] != "*" and given.constant is not None:
        return UNKNOWN
    return given


def formatted_with(
    form: Value,
    arguments: Sequence[Value],
    named: Callable[[str], Value | None],
    looked_up: Callable[[str, str], Value | None] = lambda _head, _rest: None,
) -> Value:
    """``form.format(*arguments, **named)``; *looked_up* gives what the rest of a field takes out of its head."""
    total: list[Value] = []
    for one in form.texts:
        value = EMPTY
        position = 0
        for piece in one:
            if not isinstance(piece, str):
                value = value + Value(((piece,),))
                continue
            try:
                fields = list(string.Formatter().parse(piece))
            except ValueError:  # no format, or one that goes on behind an unknown part
                value = value + Value.literal(piece) + join([*arguments, UNKNOWN]).opaque()
                continue
            for literal, name, specification, _ in fields:
                value = value + Value.literal(literal)
                if name is None:
                    continue
                head = re.split(r"[.\[]", name, maxsplit=1)[0]
                rest = name[len(head) :]
                if head == "":
                    head, position = str(position), position + 1
                given = looked_up(head, rest) if rest else None
                if given is None and head.isdigit():
                    given = arguments[int(head)] if int(head) < len(arguments) else None
                elif given is None:
                    given = named(head)
                value = value + formatted(given if given is not None else UNKNOWN, specification or "")
        total.append(value)
    return join(total)


def path_joined(values: Sequence[Value]) -> Value:
    """``os.path.join``."""
    total: Value | None = None
    for value in values:
        if (
            total is None
            or all(one and isinstance(one[0], str) and one[0].startswith("/") for one in value.texts)
            or total == EMPTY
        ):
            total = value
        elif all(one and isinstance(one[-1], str) and one[-1].endswith("/") for one in total.texts):
            total = total + value
        else:
            total = total + Value.literal("/") + value
    return total if total is not None else EMPTY


def path_part(value: Value, name: str) -> Object | None:
    """An attribute of a path; None when it is a method."""
    if name == "name":
        return Text(_last(value))
    if name == "parent":
        head = join(_cut(one, one_of="/")[0] for one in value.texts)
        return Text(head, "path")
    if name in ("stem", "suffix"):
        last = _last(value)
        known = last.constants
        if known is not None:
            parts = [posixpath.splitext(one) for one in known]
            return Text(Value.any_of(normal((part[name == "suffix"],)) for part in parts))
        return Text(
            join((_cut(one, one_of=".")[0] if name == "stem" else UNKNOWN | last.opaque()) for one in last.texts)
        )
    if name == "parts":
        return split(value, "/", -1)
    return None


def _last(value: Value) -> Value:
    return join(_cut(one, one_of="/")[1] for one in value.texts)


def _cut(one: values.Text, *, one_of: str) -> tuple[Value, Value]:
    """*one* before and behind the last known *one_of*; all of it is behind where there is none."""
    for index in range(len(one) - 1, -1, -1):
        piece = one[index]
        if isinstance(piece, str) and one_of in piece:
            head, _, tail = piece.rpartition(one_of)
            return Value((normal((*one[:index], head)),)), Value((normal((tail, *one[index + 1 :])),))
    return (Value((one,)) if one_of == "." else UNKNOWN), Value((one,))


def character(value: Value, index: int | None) -> Value:
    """``value[index]``: one character gives nothing away."""
    known = value.constants
    if known is not None and index is not None:
        return Value.any_of(normal((one[index : index + 1 or None],)) for one in known)
    return Value(((Hole(value.taints, "", 1),),))


def sliced(value: Value, low: int | None, high: int | None) -> Value:
    """``value[low:high]``."""
    known = value.constants
    if known is not None:
        return Value.any_of(normal((one[low:high],)) for one in known)
    return Value.any_of(_sliced(one, low or 0, high) for one in value.texts)


def _sliced(one: values.Text, low: int, high: int | None) -> values.Text:
    if high is not None and high < 0:
        last = one[-1] if one else ""
        if low == 0 and isinstance(last, str) and len(last) >= -high:
            return normal((*one[:-1], last[:high]))
        return _piece_of(one, high - low if low < 0 else None)
    if low < 0:
        return _piece_of(one, -low if high is None else None)
    return _first(_behind(one, low), None if high is None else max(high - low, 0))


def _piece_of(one: values.Text, longest: int | None) -> values.Text:
    """Some characters of *one*, at most *longest*."""
    return normal((Hole(Value((one,)).taints, "", longest),))


def _behind(one: values.Text, count: int) -> values.Text:
    """*one* without its first *count* characters, as far as they are known."""
    pieces = list(one)
    while pieces and count:
        piece = pieces[0]
        if isinstance(piece, Hole):
            return _piece_of(tuple(pieces), None)
        if len(piece) > count:
            return (piece[count:], *pieces[1:])
        count -= len(piece)
        pieces.pop(0)
    return tuple(pieces)


def _first(one: values.Text, count: int | None) -> values.Text:
    """The first *count* characters of *one* (None: all)."""
    if count is None:
        return one
    taken: list[str | Hole] = []
    for index, piece in enumerate(one):
        if count == 0:
            break
        if isinstance(piece, Hole):
            return normal((*taken, *_piece_of(one[index:], count)))
        taken.append(piece[:count])
        count -= len(piece[:count])
    return normal(taken)


def split(value: Value, separator: str | None, most: int) -> Items:
    """``value.split(separator, most)``: unknown parts are taken to hold no separator, unless they carry a label."""
    found: Items | None = None
    for one in value.texts:
        items = _split(one, separator, most)
        joined = items if found is None else join_all((found, items))
        assert isinstance(joined, Items)
        found = joined
    return found or Items()


def _split(one: values.Text, separator: str | None, most: int) -> Items:
    parts: list[list[str | Hole]] = [[]]
    loose: list[Hole] = []
    left = most if most >= 0 else MAX_LITERAL
    for piece in one:
        if isinstance(piece, Hole):
            parts[-1].append(piece)
            if not piece.symbol or piece.taints:
                loose.append(piece)
            continue
        pieces = piece.split(separator, left) if separator != "" else [piece]
        if separator is None and piece[:1].isspace() and parts[-1]:
            parts.append([])
        for index, part in enumerate(pieces):
            if index:
                parts.append([])
                left -= 1
            parts[-1].append(part)
        if separator is None and piece[-1:].isspace():
            parts.append([])
    if separator is None:
        parts = [part for part in parts if normal(part)]
    items = tuple(Text(Value((normal(part),))) for part in parts)
    if not loose or left <= 0:
        return Items(items)
    # An unknown part may be split as well; what it carries may then stand further behind.
    first = next(index for index, part in enumerate(parts) if any(piece in part for piece in loose))
    rest = Value.of(taint for hole in loose for taint in hole.taints).weakened(Confidence.MEDIUM)
    later = Text(join([rest, *(item.value for item in items[first + 1 :])]) if len(items) > first + 1 else rest)
    return Items(items, later) if rest.taints or separator is None or len(items) > 1 else Items(items[:first], later)


def partitioned(value: Value, separator: str | None, *, last: bool) -> Items:
    """``partition`` and ``rpartition``."""
    if separator is None:
        rest = Text(value.opaque())
        return Items((rest, rest, rest), None, "tuple")
    heads: list[Value] = []
    tails: list[Value] = []
    for one in value.texts:
        head, tail = _parted(one, separator, last=last)
        heads.append(head)
        tails.append(tail)
    middle = Text(Value.literal(separator) | EMPTY)
    return Items((Text(join(heads)), middle, Text(join(tails))), None, "tuple")


def _parted(one: values.Text, separator: str, *, last: bool) -> tuple[Value, Value]:
    indexes = range(len(one) - 1, -1, -1) if last else range(len(one))
    passed: list[Hole] = []
    for index in indexes:
        piece = one[index]
        if isinstance(piece, Hole):
            passed.append(piece)
        elif separator in piece:
            head, _, tail = piece.rpartition(separator) if last else piece.partition(separator)
            before = Value((normal((*one[:index], head)),))
            behind = Value((normal((tail, *one[index + 1 :])),))
            return before, behind
    whole = Value((one,))
    if not passed:
        return (EMPTY, whole) if last else (whole, EMPTY)
    return whole.opaque(), whole.opaque()


def stripped(value: Value, characters: str | None, where: str) -> Value:
    """``strip``, ``lstrip`` (*where* ``l``), ``rstrip`` (``r``)."""

    def one_stripped(one: values.Text) -> values.Text:
        pieces = list(one)
        if where != "r":
            while pieces and isinstance(pieces[0], str):
                pieces[0] = pieces[0].lstrip(characters)
                if pieces[0]:
                    break
                pieces.pop(0)
        if where != "l":
            while pieces and isinstance(pieces[-1], str):
                pieces[-1] = pieces[-1].rstrip(characters)
                if pieces[-1]:
                    break
                pieces.pop()
        return normal(pieces)

    return Value.any_of(one_stripped(one) for one in value.texts)


def replaced(value: Value, old: Value, new: Value) -> Value:
    """``value.replace(old, new)``: the known pieces exactly, unknown ones may change."""
    before = old.constant
    if not before:
        if old.taints:  # the value is taken out of the text
            return Value.of(value.taints - old.taints) | new.opaque()
        return value.opaque() | new.opaque() if new.taints else value.opaque()
    total: list[Value] = []
    for one in value.texts:
        result = EMPTY
        for piece in one:
            if isinstance(piece, Hole):
                result = result + Value(
                    ((Hole(piece.taints, piece.symbol if not piece.taints else "", piece.longest),),)
                )
                if new.taints:
                    result = result + (new.opaque() | EMPTY)
                continue
            for index, part in enumerate(piece.split(before)):
                result = result + (new if index else EMPTY) + Value.literal(part)
        total.append(result)
    return join(total)
