"""Methods of strings: exact on known text, and on labelled text as far as pieces of it stay apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages.javascript.values import (
    BOOLEAN,
    FALSE,
    NULL,
    NUMBER,
    TRUE,
    Js,
    constant,
    either,
    literal,
    of_text,
    text_of,
)
from runner_e2e.lint.languages.pieces import at_most, mapped, sliced, split_at, stripped
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.languages.javascript.machine import Call

__all__ = ["METHODS", "split_text", "text_property"]

_Method: TypeAlias = "Callable[[Call, Value], Js]"


def text_property(value: Value, name: str) -> Js | None:
    """A property of a string that is no method."""
    if name == "length":
        known = value.constant
        return NUMBER if known is None else constant(float(len(known)))
    if name.isdigit():
        return of_text(sliced(value, int(name), int(name) + 1))
    return None


def split_text(value: Value, separator: Value) -> list[Value] | None:
    """The parts of *value* between *separator*; None when it is not known how many there are."""
    mark = separator.constant
    return split_at(value, mark) if mark is not None else None


def _slice(call: Call, value: Value) -> Js:
    start, end = call.number(0), call.number(1)
    if (call.given(0) and start is None) or (call.given(1) and end is None):
        return of_text(value.opaque())
    return of_text(sliced(value, int(start or 0), int(end) if end is not None else None))


def _substring(call: Call, value: Value) -> Js:
    start, end = call.number(0), call.number(1)
    if start is None or (call.given(1) and end is None):
        return of_text(value.opaque())
    first = max(0, int(start))
    if end is None:
        return of_text(sliced(value, first, None))
    last = max(0, int(end))
    return of_text(sliced(value, min(first, last), max(first, last)))


def _substr(call: Call, value: Value) -> Js:
    start, size = call.number(0), call.number(1)
    if start is None or (call.given(1) and size is None):
        return of_text(value.opaque())
    first = int(start)
    if size is None:
        return of_text(sliced(value, first, None))
    if first < 0 and value.constants is None:
        return of_text(at_most(value.opaque(), int(size)))
    return of_text(sliced(value, first, first + int(size)))


def _char(call: Call, value: Value) -> Js:
    index = call.number(0)
    if index is None:
        return of_text(at_most(value.opaque(), 1))
    return of_text(sliced(value, int(index), int(index) + 1 if int(index) != -1 else None))


def _split(call: Call, value: Value) -> Js:
    machine = call.machine
    if not call.given(0):
        return machine.array([of_text(value)])
    separator = call.text(0)
    limit = call.number(1)
    if separator == EMPTY:
        known = value.constant
        if known is not None and len(known) <= 64:
            return machine.array([literal(char) for char in known])
        return machine.array([], of_text(at_most(value.opaque(), 1)))
    parts = split_text(value, separator) if call.arg(0).text is not None else None
    if parts is None or len(parts) > 64:
        return machine.array([], of_text(value.opaque()))
    if limit is not None:
        parts = parts[: int(limit)]
    return machine.array([of_text(part) for part in parts])


def _replace(call: Call, value: Value) -> Js:
    old, new = call.arg(0), call.arg(1)
    everywhere = call.name.endswith("replaceAll")
    pattern, mark = old.thing, old.constant
    if new.thing is not None and new.thing.is_function:
        new = call.machine.call_value(new, call.with_arguments(of_text(value.opaque())))
    replacement = text_of(new)
    if mark is not None and mark and replacement.constant is not None:
        text = replacement.constant
        return of_text(mapped(value, lambda piece: piece.replace(mark, text, -1 if everywhere else 1)))
    removed = _removes(pattern.data if pattern is not None and pattern.kind == "regexp" else None)
    if value.constants is not None and pattern is None and mark is not None:
        return of_text(_spliced(value, mark, replacement))
    carried = value.opaque() if not removed else value.opaque().weakened(Confidence.LOW)
    if value.constants is not None and value.constants == ("",):
        return of_text(value)
    return of_text(carried | replacement.opaque() if replacement.taints else carried)


def _spliced(value: Value, mark: str, replacement: Value) -> Value:
    total: list[Value] = []
    for text in value.constants or ():
        before, found, after = text.partition(mark)
        total.append(Value.literal(before) + replacement + Value.literal(after) if found else Value.literal(text))
    return join(total)


def _removes(pattern: object) -> bool:
    """Whether a pattern matches (nearly) everything, so that little can be left."""
    return (
        isinstance(pattern, str) and re.fullmatch(r"(?:\.|\\w|\\S|\[\\s\\S\]|\[a-z[^\]]*\])[+*]?", pattern) is not None
    )


def _match(call: Call, value: Value) -> Js:
    if not value.taints:
        return either([NULL, call.machine.array([], of_text(UNKNOWN))])
    return either([NULL, call.machine.array([], of_text(value.opaque()))])


def _match_all(call: Call, value: Value) -> Js:
    return call.machine.array([], call.machine.array([], of_text(value.opaque())))


def _trim(_call: Call, value: Value) -> Js:
    return of_text(stripped(value))


def _upper(_call: Call, value: Value) -> Js:
    return of_text(mapped(value, str.upper))


def _lower(_call: Call, value: Value) -> Js:
    return of_text(mapped(value, str.lower))


def _same(_call: Call, value: Value) -> Js:
    return of_text(value)


def _concat(call: Call, value: Value) -> Js:
    for one in call.arguments:
        value = value + (text_of(one.value).opaque() if one.many else text_of(one.value))
    return of_text(value)


def _pad(call: Call, value: Value) -> Js:
    return of_text(value.opaque() | call.text(1).opaque() if call.text(1).taints else value.opaque())


def _repeat(call: Call, value: Value) -> Js:
    known, count = value.constant, call.number(0)
    if known is not None and count is not None and count >= 0 and count * len(known) <= 1024:
        return literal(known * int(count))
    return of_text(value.opaque())


def _decide(call: Call, value: Value, test: Callable[[str, str], bool]) -> Js:
    known, other = value.constant, call.arg(0).constant
    if known is None or other is None or call.given(1):
        return BOOLEAN
    return TRUE if test(known, other) else FALSE


def _index(call: Call, value: Value) -> Js:
    known, other = value.constant, call.arg(0).constant
    if known is None or other is None or call.given(1):
        return NUMBER
    return constant(float(known.rfind(other) if call.name.endswith("lastIndexOf") else known.find(other)))


def _number(_call: Call, _value: Value) -> Js:
    return NUMBER


def _starts(call: Call, value: Value) -> Js:
    return _decide(call, value, str.startswith)


def _ends(call: Call, value: Value) -> Js:
    return _decide(call, value, str.endswith)


def _includes(call: Call, value: Value) -> Js:
    return _decide(call, value, lambda text, other: other in text)


METHODS: dict[str, _Method] = {
    "slice": _slice,
    "substring": _substring,
    "substr": _substr,
    "charAt": _char,
    "at": _char,
    "split": _split,
    "replace": _replace,
    "replaceAll": _replace,
    "match": _match,
    "matchAll": _match_all,
    "trim": _trim,
    "trimStart": _trim,
    "trimEnd": _trim,
    "toUpperCase": _upper,
    "toLowerCase": _lower,
    "toLocaleUpperCase": _upper,
    "toLocaleLowerCase": _lower,
    "toString": _same,
    "valueOf": _same,
    "normalize": _same,
    "concat": _concat,
    "padStart": _pad,
    "padEnd": _pad,
    "repeat": _repeat,
    "startsWith": _starts,
    "endsWith": _ends,
    "includes": _includes,
    "indexOf": _index,
    "lastIndexOf": _index,
    "search": _number,
    "charCodeAt": _number,
    "codePointAt": _number,
    "localeCompare": _number,
}
"""Name of a method -> what it gives for a call on a text."""
