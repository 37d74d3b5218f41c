"""Operators and methods on text and lists, and the static members that are known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages import pieces
from runner_e2e.lint.languages.documents import read_json
from runner_e2e.lint.languages.pieces import at_most, mapped, sliced, split_at, stripped, words
from runner_e2e.lint.languages.powershell.values import (
    BOOLEAN,
    Code,
    Items,
    Ps,
    Table,
    boolean,
    either,
    elements,
    from_json,
    listed,
    taints_of,
    text_of,
    truth_of,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Value, join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NUMBER", "index_of", "joined", "member_of", "method_of", "operate", "parsed"]

NUMBER = Value(((Hole(frozenset(), "", 24),),))
"""A number that is not known."""


def parsed(value: Value) -> Ps:
    """``ConvertFrom-Json``."""
    found: Ps | None = None
    for text in value.texts:
        try:
            one = from_json(read_json(text))
        except ValueError:
            one = Value.of(value.taints)
        found = one if found is None else either(found, one)
    return found if found is not None else UNKNOWN


def joined(value: Ps, separator: Value) -> Value:
    """The elements of *value* with *separator* between them."""
    items, others = elements(value)
    total = pieces.joined((text_of(item) for item in items), separator)
    return total if others is None else total + others.opaque()


def _number(value: Ps) -> int | None:
    text = value.constant if isinstance(value, Value) else None
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,9}", text) else None


def operate(operator: str, left: Ps, right: Ps) -> Ps:
    """A binary operator."""
    if operator == "+":
        return _plus(left, right)
    if operator == "f":
        return _formatted(text_of(left), right)
    if operator == "join":
        return joined(left, text_of(right))
    if operator == "split":
        return _split(text_of(left), right)
    if operator == "replace":
        return _replaced(text_of(left), right)
    if operator == "??":
        return right if left == EMPTY else either(left, right)
    if operator == "..":
        return _range(_number(left), _number(right))
    if operator in {"-", "*", "/", "%", "band", "bor", "bxor", "shl", "shr"}:
        return _calculated(operator, left, right)
    if operator == "as":
        return left
    return _compared(operator, left, right)


def _plus(left: Ps, right: Ps) -> Ps:
    if isinstance(left, Items):
        items, others = elements(right)
        rest = [one for one in (left.others, others) if one is not None]
        if left.others is not None:
            rest += [text_of(item) for item in items]
            items = ()
        return Items((*left.items, *items), join(rest) if rest else None)
    if isinstance(left, Table) and isinstance(right, Table):
        return Table((*left.entries, *right.entries), left.others or right.others)
    one, other = _number(left), _number(right)
    if one is not None and other is not None:
        return Value.literal(str(one + other))
    if left == NUMBER or (one is not None and right == NUMBER):
        return NUMBER
    return text_of(left) + text_of(right)


def _calculated(operator: str, left: Ps, right: Ps) -> Ps:
    one, other = _number(left), _number(right)
    if operator == "*" and one is None:
        return text_of(left).opaque() if taints_of(left) else UNKNOWN
    if one is None or other is None or operator not in {"-", "*"}:
        return NUMBER
    return Value.literal(str(one - other if operator == "-" else one * other))


def _range(first: int | None, last: int | None) -> Ps:
    if first is None or last is None or abs(last - first) > 64:
        return Items((), NUMBER)
    step = 1 if last >= first else -1
    return Items(tuple(Value.literal(str(number)) for number in range(first, last + step, step)))


_PLACE = re.compile(r"\{\{|\}\}|\{(\d+)(?:[,:][^}]*)?\}")


def _formatted(template: Value, right: Ps) -> Value:
    """``"{0} {1}" -f a, b``."""
    known = template.constant
    items, others = elements(right)
    if known is None or others is not None:
        parts = [template, *(text_of(item) for item in items), *([] if others is None else [others])]
        return Value.of(taint for part in parts for taint in part.taints)
    total = EMPTY
    offset = 0
    for match in _PLACE.finditer(known):
        total = total + Value.literal(known[offset : match.start()])
        offset = match.end()
        if match[1] is None:
            total = total + Value.literal(match[0][0])
        elif int(match[1]) < len(items):
            total = total + text_of(items[int(match[1])])
    return total + Value.literal(known[offset:])


def _split(value: Value, right: Ps) -> Ps:
    items, _ = elements(right)
    pattern = text_of(items[0]).constant if items else None
    plain = (
        pattern.replace("\\", "")
        if pattern is not None and re.fullmatch(r"(?:\\.|[^\\\[\](){}.*+?|^$])+", pattern)
        else ""
    )
    parts = split_at(value, plain) if plain else None
    return Items(tuple(parts)) if parts is not None else Items((), value.opaque())


def _replaced(value: Value, right: Ps) -> Value:
    items, _ = elements(right)
    pattern = text_of(items[0]).constant if items else None
    new = text_of(items[1]) if len(items) > 1 else EMPTY
    if pattern is not None and new.constant is not None and re.fullmatch(r"[\w \-/:=,]+", pattern):
        text = new.constant
        return mapped(value, lambda piece: re.sub(re.escape(pattern), lambda _match: text, piece, flags=re.IGNORECASE))
    carried = value.opaque()
    return carried | new.opaque() if new.taints else carried


def _compared(operator: str, left: Ps, right: Ps) -> Ps:
    if operator in {"and", "or", "xor"}:
        one, other = truth_of(left), truth_of(right)
        if operator == "and":
            return boolean(False if one is False or other is False else True if one and other else None)
        if operator == "or":
            return boolean(True if one or other else False if one is False and other is False else None)
        return BOOLEAN
    if isinstance(left, Items) and operator not in {"contains", "notcontains", "in", "notin"}:
        return Items((), Value.of(taints_of(left)))  # a comparison with a list gives the elements that match
    one_text = left.constant if isinstance(left, Value) else None
    other_text = right.constant if isinstance(right, Value) else None
    if operator in {"eq", "ne"} and one_text is not None and other_text is not None:
        return boolean((one_text.lower() == other_text.lower()) == (operator == "eq"))
    return BOOLEAN


def index_of(owner: Ps, index: Ps) -> Ps:
    """``owner[index]``."""
    number = _number(index)
    if isinstance(owner, Table):
        key = index.constant if isinstance(index, Value) else None
        return _entry(owner, key)
    if isinstance(owner, Items):
        if isinstance(index, Items) and index.others is None:
            return Items(tuple(index_of(owner, one) for one in index.items))
        if number is not None and owner.others is None and -len(owner.items) <= number < len(owner.items):
            return owner.items[number]
        return Value.of(taints_of(owner)) if taints_of(owner) else UNKNOWN
    if isinstance(owner, Value):
        if number is not None:
            return sliced(owner, number, None if number == -1 else number + 1)
        return Items((), at_most(owner.opaque(), 1)) if isinstance(index, Items) else at_most(owner.opaque(), 1)
    return UNKNOWN


def _entry(owner: Table, name: str | None) -> Ps:
    found = owner.get(name) if name is not None else None
    if found is not None:
        return found
    if name is not None:
        return EMPTY if owner.others is None else owner.others
    return Value.of(taints_of(owner)) if taints_of(owner) else UNKNOWN


def member_of(owner: Ps, name: str) -> Ps:
    """A property."""
    lower = name.lower()
    if isinstance(owner, Table):
        found = owner.get(lower)
        if found is not None:
            return found
        if lower in {"count", "length"}:
            return NUMBER
        if lower == "values":
            return Items(tuple(item for _, item in owner.entries), owner.others)
        if lower == "keys":
            return Items(tuple(Value.literal(key) for key, _ in owner.entries), UNKNOWN if owner.others else None)
        return EMPTY if owner.others is None else owner.others
    if lower in {"length", "count"}:
        known = len(owner.items) if isinstance(owner, Items) and owner.others is None else None
        return NUMBER if known is None else Value.literal(str(known))
    if isinstance(owner, Items):
        return Items(tuple(member_of(item, name) for item in owner.items), owner.others)
    if isinstance(owner, Value):
        return owner.opaque() if owner.taints else UNKNOWN
    return UNKNOWN


def method_of(owner: Ps, name: str, arguments: Sequence[Ps]) -> Ps:
    """What a method gives."""
    lower = name.lower()
    if isinstance(owner, Items):
        if lower in {"contains", "indexof"}:
            return BOOLEAN if lower == "contains" else NUMBER
        return Items(tuple(method_of(item, name, arguments) for item in owner.items), owner.others)
    if isinstance(owner, Table):
        return _table_method(owner, lower, arguments)
    if isinstance(owner, Code):
        return UNKNOWN
    texts = [text_of(one) for one in arguments]
    return _text_method(owner, lower, texts)


def _table_method(owner: Table, name: str, arguments: Sequence[Ps]) -> Ps:
    if name in {"containskey", "contains", "containsvalue"}:
        return BOOLEAN
    if name in {"getenumerator", "clone"}:
        if name == "clone":
            return owner
        rows: list[Ps] = [Table((("key", Value.literal(key)), ("value", item))) for key, item in owner.entries]
        return Items(tuple(rows), owner.others)
    if name in {"get_item", "item"} and arguments:
        return index_of(owner, arguments[0])
    found = taints_of(owner)
    return Value.of(found) if found else UNKNOWN


_KEPT = frozenset({"tostring", "normalize", "clone", "tochararray"})
_FACTS: Mapping[str, Ps] = {
    **dict.fromkeys(("indexof", "lastindexof", "compareto", "gethashcode"), NUMBER),
    **dict.fromkeys(("contains", "startswith", "endswith", "equals"), BOOLEAN),
    "computehash": UNKNOWN,
}


def _text_method(value: Value, name: str, arguments: Sequence[Value]) -> Ps:
    if name in _KEPT:
        return value if name != "tochararray" else Items((), at_most(value.opaque(), 1))
    if name in {"toupper", "toupperinvariant"}:
        return mapped(value, str.upper)
    if name in {"tolower", "tolowerinvariant"}:
        return mapped(value, str.lower)
    if name in {"trim", "trimstart", "trimend"}:
        return stripped(value) if not arguments else value.opaque()
    if name in _FACTS:
        return _FACTS[name]
    if name == "split":
        mark = arguments[0].constant if arguments else None
        parts = split_at(value, mark) if mark else words(value) if not arguments else None
        return Items(tuple(parts)) if parts is not None else Items((), value.opaque())
    if name == "substring":
        first, size = (
            (_number(arguments[0]) if arguments else None),
            (_number(arguments[1]) if len(arguments) > 1 else None),
        )
        if first is None or (len(arguments) > 1 and size is None):
            return value.opaque()
        return sliced(value, first, None if size is None else first + size)
    if name == "replace" and len(arguments) == 2:
        old, new = arguments[0].constant, arguments[1].constant
        if old and new is not None:
            return mapped(value, lambda piece: piece.replace(old, new))
        return value.opaque() | arguments[1].opaque() if arguments[1].taints else value.opaque()
    found = [taint for one in (value, *arguments) for taint in one.taints]
    return Value.of(found) if found else UNKNOWN


def static_of(type_name: str, name: str, arguments: Sequence[Ps]) -> Ps:
    """What a static method or property gives that only computes."""
    kind, member = type_name.lower().rsplit(".", 1)[-1], name.lower()
    if kind == "string" and member in {"join", "concat", "format"}:
        return _static_text(member, arguments)
    if member in {"isnullorempty", "isnullorwhitespace", "ismatch", "exists"}:
        return BOOLEAN
    if kind in {"math", "int", "datetime", "random", "guid"} or member == "newguid":
        return NUMBER
    if member in {"tobase64string", "tohexstring"}:
        return Value.of(taint for one in arguments for taint in taints_of(one)).weakened(Confidence.LOW)
    if member in {"hashdata", "computehash"}:
        return UNKNOWN
    if member in {
        "getbytes",
        "getstring",
        "escape",
        "unescape",
        "escapedatastring",
        "urlencode",
        "expandenvironmentvariables",
    }:
        return listed([text_of(one) for one in arguments])
    if member == "combine":
        return joined(Items(tuple(arguments)), Value.literal("/"))
    if member == "newline":
        return Value.literal("\n")
    found = [taint for one in arguments for taint in taints_of(one)]
    return Value.of(found) if found else UNKNOWN


def _static_text(member: str, arguments: Sequence[Ps]) -> Value:
    if not arguments:
        return EMPTY
    if member == "format":
        return _formatted(text_of(arguments[0]), Items(tuple(arguments[1:])))
    if member == "concat":
        return joined(Items(tuple(arguments)), EMPTY)
    rest: Ps = arguments[1] if len(arguments) == 2 else Items(tuple(arguments[1:]))
    return joined(rest, text_of(arguments[0]))
