"""Methods of arrays, maps and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    NUMBER,
    UNDEFINED,
    Js,
    Thing,
    any_with,
    constant,
    either,
    joined_elements,
    literal,
    of_text,
    taints_of,
    truth_of,
)
from runner_e2e.lint.values import Confidence, Hole, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.languages.javascript.machine import Call

__all__ = ["ARRAY_METHODS", "MAP_METHODS"]

_Method: TypeAlias = "Callable[[Call, Thing], Js]"


def _anyone(thing: Thing) -> Js:
    """Any element, or ``undefined``."""
    others = thing.others.value
    return either([UNDEFINED, *thing.elements(), *([] if others is None else [others])])


def _others(thing: Thing) -> list[Js]:
    return [] if thing.others.value is None else [thing.others.value]


def _push(call: Call, thing: Thing) -> Js:
    for one in call.arguments:
        if one.many:
            _spread_into(call, thing, one.value)
        else:
            call.machine.append_element(thing, one.value, one.start, one.end)
    return NUMBER


def _spread_into(call: Call, thing: Thing, value: Js) -> None:
    before = thing.others.value
    call.machine.write(thing.others, value if before is None else either([before, value]), call.start, call.end)


def _unshift(call: Call, thing: Thing) -> Js:
    elements = [*(one.value for one in call.arguments), *thing.elements()]
    _rewrite(call, thing, elements)
    return NUMBER


def _rewrite(call: Call, thing: Thing, elements: list[Js]) -> None:
    """Gives an array other elements."""
    for index, value in enumerate(elements):
        call.machine.set_property(thing, Value.literal(str(index)), value, call.start, call.end)
    for name, cell in thing.cells.items():
        if name.isdigit() and int(name) >= len(elements) and cell.value is not None:
            call.machine.write(cell, None)


def _pop(call: Call, thing: Thing) -> Js:
    elements = thing.elements()
    if thing.others.value is not None or not elements:
        return _anyone(thing)
    _rewrite(call, thing, elements[:-1])
    return elements[-1]


def _shift(call: Call, thing: Thing) -> Js:
    elements = thing.elements()
    if not elements:
        return _anyone(thing)
    if not call.machine.unbounded:
        _rewrite(call, thing, elements[1:])
        return elements[0]
    return _anyone(thing)


def _slice(call: Call, thing: Thing) -> Js:
    elements, others = thing.elements(), thing.others.value
    start, end = call.number(0), call.number(1)
    if (call.given(0) and start is None) or (call.given(1) and end is None):
        return call.machine.array([], either([*elements, *_others(thing)]) if elements or others else None)
    first = int(start or 0)
    last = int(end) if end is not None else None
    if last is not None and first >= 0 and 0 <= last <= len(elements):
        return call.machine.array(elements[first:last])
    if others is not None and (first < 0 or last is not None):
        return call.machine.array([], either([*elements, others]))
    return call.machine.array(elements[slice(first, last)], others)


def _splice(call: Call, thing: Thing) -> Js:
    elements = thing.elements()
    start, count = call.number(0), call.number(1)
    if start is None or thing.others.value is not None or (call.given(1) and count is None):
        for one in call.arguments[2:]:
            _spread_into(call, thing, one.value)
        return call.machine.array([], _anyone(thing))
    first = int(start) if start >= 0 else max(0, len(elements) + int(start))
    last = len(elements) if not call.given(1) else min(len(elements), first + int(count or 0))
    _rewrite(call, thing, [*elements[:first], *(one.value for one in call.arguments[2:]), *elements[last:]])
    return call.machine.array(elements[first:last])


def _concat(call: Call, thing: Thing) -> Js:
    elements, others = thing.elements(), _others(thing)
    for one in call.arguments:
        inner = one.value.thing
        if inner is not None and inner.kind == "array" and not others:
            elements += inner.elements()
            others += _others(inner)
        elif others or one.many or one.value.thing is None:
            more, rest = call.machine.iterate(one.value) if one.many or inner is not None else ([one.value], None)
            if others or one.many:
                others += [*more, *([] if rest is None else [rest])]
            else:
                elements += more
        else:
            elements.append(one.value)
    return call.machine.array(elements, either(others) if others else None)


def _each(call: Call, thing: Thing) -> tuple[list[Js], Js | None]:
    """What the function gives for each element; for those of unknown number as one value."""
    machine, function = call.machine, call.arg(0)
    this = call.this
    results = []
    for index, value in enumerate(thing.elements()):
        results.append(machine.call_value(function, call.with_arguments(value, constant(float(index)), this)))
        if not machine.live:
            return results, None
    others = thing.others.value
    if others is None:
        return results, None
    machine.unbounded += 1
    found = machine.perhaps(lambda: machine.call_value(function, call.with_arguments(others, NUMBER, this)))
    machine.unbounded -= 1
    return results, found


def _map(call: Call, thing: Thing) -> Js:
    return call.machine.array(*_each(call, thing))


def _for_each(call: Call, thing: Thing) -> Js:
    _each(call, thing)
    return UNDEFINED


def _flat_map(call: Call, thing: Thing) -> Js:
    results, others = _each(call, thing)
    return _flattened(call, results, others)


def _flattened(call: Call, values: list[Js], others: Js | None) -> Js:
    elements: list[Js] = []
    rest: list[Js] = []
    for value in values:
        inner = value.thing
        if inner is not None and inner.kind == "array":
            (rest or elements).extend(inner.elements())
            rest += _others(inner)
        else:
            (rest or elements).append(value)
    if others is not None:
        inner = others.thing
        rest += [*inner.elements(), *_others(inner)] if inner is not None and inner.kind == "array" else [others]
    return call.machine.array(elements, either(rest) if rest else None)


def _flat(call: Call, thing: Thing) -> Js:
    return _flattened(call, thing.elements(), thing.others.value)


def _filter(call: Call, thing: Thing) -> Js:
    machine = call.machine
    function = call.arg(0)
    kept: list[Js] = []
    perhaps: list[Js] = []
    for value in thing.elements():
        truth = truth_of(machine.call_value(function, call.with_arguments(value, NUMBER, call.this)))
        if truth is True and not perhaps:
            kept.append(value)
        elif truth is not False:
            perhaps.append(value)
    if thing.others.value is not None:
        machine.call_value(function, call.with_arguments(thing.others.value, NUMBER, call.this))
        perhaps.append(thing.others.value)
    return machine.array(kept, either(perhaps) if perhaps else None)


def _find(call: Call, thing: Thing) -> Js:
    machine = call.machine
    possible: list[Js] = []
    for value in [*thing.elements(), *_others(thing)]:
        truth = truth_of(machine.call_value(call.arg(0), call.with_arguments(value, NUMBER, call.this)))
        if truth is not False:
            possible.append(value)
        if truth is True:
            return either(possible)
    return either([*possible, UNDEFINED])


def _test(call: Call, thing: Thing) -> Js:
    _find(call, thing)
    return BOOLEAN


def _reduce(call: Call, thing: Thing) -> Js:
    machine = call.machine
    elements = thing.elements()
    if call.name.endswith("Right"):
        elements.reverse()
    if call.given(1):
        total = call.arg(1)
    elif elements:
        total = elements.pop(0)
    else:
        total = _anyone(thing)
    for value in elements:
        total = machine.call_value(call.arg(0), call.with_arguments(total, value, NUMBER, call.this))
        if not machine.live:
            return total
    others = thing.others.value
    if others is not None:
        for _ in range(2):
            before = total
            step = lambda: machine.call_value(call.arg(0), call.with_arguments(before, others, NUMBER, call.this))  # noqa: E731, B023
            total = either([before, machine.perhaps(step)])
    return total


def _join(call: Call, thing: Thing) -> Js:
    separator = call.text(0) if call.given(0) else Value.literal(",")
    return of_text(joined_elements(thing, separator))


def _reverse(call: Call, thing: Thing) -> Js:
    others = thing.others.value
    if others is None:
        _rewrite(call, thing, thing.elements()[::-1])
    elif others.text is not None and all(
        isinstance(piece, Hole) and piece.longest == 1 for piece in others.text.pieces()
    ):  # the characters of a text: it is written backwards
        call.machine.write(thing.others, Js(others.text.weakened(Confidence.LOW), others.atoms))
    return call.this


def _sort(call: Call, thing: Thing) -> Js:
    elements = thing.elements()
    if len(elements) > 1:
        everything = either([*elements, *_others(thing)])
        _rewrite(call, thing, [everything for _ in elements])
    return call.this


def _entries(call: Call, thing: Thing) -> Js:
    pairs = [call.machine.array([constant(float(index)), value]) for index, value in enumerate(thing.elements())]
    others = thing.others.value
    return call.machine.array(pairs, None if others is None else call.machine.array([NUMBER, others]))


def _keys(call: Call, thing: Thing) -> Js:
    numbers: list[Js] = [constant(float(index)) for index, _ in enumerate(thing.elements())]
    return call.machine.array(numbers, None if thing.others.value is None else NUMBER)


def _copy(call: Call, thing: Thing) -> Js:
    return call.machine.array(thing.elements(), thing.others.value)


def _at(call: Call, thing: Thing) -> Js:
    index, elements = call.number(0), thing.elements()
    if index is None or thing.others.value is not None or not -len(elements) <= index < len(elements):
        return _anyone(thing)
    return elements[int(index)]


def _fill(call: Call, thing: Thing) -> Js:
    _rewrite(call, thing, [call.arg(0) for _ in thing.elements()])
    _spread_into(call, thing, call.arg(0))
    return call.this


def _boolean(_call: Call, _thing: Thing) -> Js:
    return BOOLEAN


def _number(_call: Call, _thing: Thing) -> Js:
    return NUMBER


ARRAY_METHODS: dict[str, _Method] = {
    "push": _push,
    "unshift": _unshift,
    "pop": _pop,
    "shift": _shift,
    "slice": _slice,
    "splice": _splice,
    "concat": _concat,
    "map": _map,
    "forEach": _for_each,
    "flatMap": _flat_map,
    "flat": _flat,
    "filter": _filter,
    "find": _find,
    "findLast": _find,
    "some": _test,
    "every": _test,
    "findIndex": lambda call, thing: (_find(call, thing), NUMBER)[1],
    "reduce": _reduce,
    "reduceRight": _reduce,
    "join": _join,
    "toString": _join,
    "reverse": _reverse,
    "sort": _sort,
    "entries": _entries,
    "keys": _keys,
    "values": _copy,
    "at": _at,
    "fill": _fill,
    "includes": _boolean,
    "indexOf": _number,
    "lastIndexOf": _number,
}
"""Name of a method -> what it does with an array."""


# --- maps and sets: the entries are properties


def _map_get(call: Call, thing: Thing) -> Js:
    key = call.arg(0).constant
    cell = thing.cells.get(key) if key is not None else None
    if cell is not None and thing.others.value is None:
        return either([cell.value])
    return _map_anyone(thing, cell.value if cell is not None else None, known=key is not None)


def _map_anyone(thing: Thing, found: Js | None, *, known: bool) -> Js:
    values = [found] if known else [cell.value for cell in thing.cells.values()]
    return either([UNDEFINED, *values, thing.others.value])


def _map_set(call: Call, thing: Thing) -> Js:
    key = call.arg(0).constant
    name = Value.literal(key) if key is not None else Value.unknown()
    call.machine.set_property(thing, name, call.arg(1), call.start, call.end)
    return call.this


def _map_delete(call: Call, thing: Thing) -> Js:
    key = call.arg(0).constant
    if key is not None and key in thing.cells:
        call.machine.write(thing.cells[key], None)
    return BOOLEAN


def _set_add(call: Call, thing: Thing) -> Js:
    call.machine.append_element(thing, call.arg(0), call.start, call.end)
    return call.this


def _map_values(call: Call, thing: Thing) -> Js:
    values = [cell.value for cell in thing.cells.values() if cell.value is not None]
    return call.machine.array(values, thing.others.value)


def _map_entries(call: Call, _thing: Thing) -> Js:
    return call.machine.array(*call.machine.iterate(call.this))


def _map_keys(call: Call, thing: Thing) -> Js:
    return call.machine.array([literal(name) for name in thing.cells], None if thing.others.value is None else ANY)


def _map_for_each(call: Call, thing: Thing) -> Js:
    for name, cell in list(thing.cells.items()):
        if cell.value is not None:
            call.machine.call_value(call.arg(0), call.with_arguments(cell.value, literal(name), call.this))
    others = thing.others.value
    if others is not None:
        machine = call.machine
        machine.perhaps(lambda: machine.call_value(call.arg(0), call.with_arguments(others, ANY, call.this)))
    return UNDEFINED


MAP_METHODS: dict[str, _Method] = {
    "get": _map_get,
    "set": _map_set,
    "append": _map_set,
    "add": _set_add,
    "delete": _map_delete,
    "has": _boolean,
    "values": _map_values,
    "entries": _map_entries,
    "keys": _map_keys,
    "forEach": _map_for_each,
    "toString": lambda _call, thing: any_with(taints_of(Js(None, (thing,)))),
}
"""Name of a method -> what it does with a map, a set, or parameters of an URL."""
