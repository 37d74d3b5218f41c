"""Between values of a program and text: JSON, and what ``console.log`` shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import (
    NULL as NULL_DATA,
)
from runner_e2e.lint.expression_data import (
    Anything,
    Array,
    Choice,
    Dictionary,
    Known,
    Textual,
)
from runner_e2e.lint.languages.documents import Unknown, read_json
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    NUMBER,
    UNDEFINED,
    Any,
    Atom,
    Cell,
    Constant,
    Js,
    Thing,
    any_with,
    constant,
    either,
    literal,
    of_text,
    of_thing,
    taints_of,
    text_of,
)
from runner_e2e.lint.values import UNKNOWN, Hole, Value, join

if TYPE_CHECKING:
    from runner_e2e.lint.expression_data import Data
    from runner_e2e.lint.languages.documents import Json
    from runner_e2e.lint.values import Text

__all__ = ["of_data", "parsed", "shown", "stringified"]

_MAX_DEPTH = 6
_MAX_ENTRIES = 64


def of_data(data: Data) -> Js:
    """The value for data of the workflow side, or for parsed JSON."""
    if isinstance(data, Known):
        return literal(data.value) if isinstance(data.value, str) else constant(data.value)
    if isinstance(data, Textual):
        return of_text(data.value)
    if isinstance(data, Anything):
        return any_with(data.taints)
    if isinstance(data, Choice):
        return either([of_data(option) for option in data.options])
    if isinstance(data, Array):
        thing = Thing("array")
        for index, item in enumerate(data.items):
            thing.cells[str(index)] = Cell(of_data(item))
        return of_thing(thing)
    if isinstance(data, Dictionary):
        thing = Thing()
        for name, item in data.entries.values():
            thing.cells[name] = Cell(of_data(item))
        if data.others != NULL_DATA:
            thing.others.value = either([UNDEFINED, of_data(data.others)])
        return of_thing(thing)
    return BOOLEAN if data.kind == "boolean" else NUMBER


def parsed(value: Value) -> Js:
    """``JSON.parse``: what is known of the text gives things, an unknown part any value in its place."""
    return either([_parsed_one(one) for one in value.texts])


def _parsed_one(text: Text) -> Js:
    try:
        return _of_json(read_json(text))
    except ValueError:
        taints = Value((text,)).taints
        return any_with(taints) if taints else ANY


def _of_json(data: Json) -> Js:
    if isinstance(data, Value):
        return of_text(data)
    if isinstance(data, Unknown):
        return any_with(data.taints) if data.taints else ANY
    if isinstance(data, list):
        thing = Thing("array")
        for index, item in enumerate(data):
            thing.cells[str(index)] = Cell(_of_json(item))
        return of_thing(thing)
    if isinstance(data, dict):
        thing = Thing()
        for name, item in data.items():
            if name is not None:
                thing.cells[name] = Cell(_of_json(item))
        if None in data:
            thing.others.value = either([UNDEFINED, _of_json(data[None])])
        return of_thing(thing)
    return constant(data)


def stringified(value: Js, depth: int = 0) -> Value:
    """``JSON.stringify``, without the white space that it may be asked for."""
    parts = [] if value.text is None else [_quoted(value.text)]
    parts.extend(_json_of_atom(atom, depth) for atom in value.atoms)
    return parts[0] if len(parts) == 1 else join(parts)


def _quoted(value: Value) -> Value:
    texts = [
        tuple(piece if isinstance(piece, Hole) else json.dumps(piece, ensure_ascii=False)[1:-1] for piece in text)
        for text in value.texts
    ]
    return Value.literal('"') + Value.any_of(texts) + Value.literal('"')


def _json_of_atom(atom: Atom, depth: int) -> Value:
    if isinstance(atom, Any):
        return Value.of(atom.taints)
    if isinstance(atom, Constant):
        return text_of(Js(None, (atom,)))
    if depth > _MAX_DEPTH or len(atom.cells) > _MAX_ENTRIES or atom.kind not in {"object", "array"}:
        return Value.of(taints_of(of_thing(atom)))
    total = Value.literal("[" if atom.kind == "array" else "{")
    first = True
    for name, cell in atom.cells.items():
        if (
            cell.value is None
            or cell.value == UNDEFINED
            or (cell.value.thing is not None and cell.value.thing.is_function)
        ):
            continue
        key = "" if atom.kind == "array" else f"{json.dumps(name, ensure_ascii=False)}:"
        total = total + Value.literal(("" if first else ",") + key) + stringified(cell.value, depth + 1)
        first = False
    if atom.others.value is not None:
        total = total + Value.of(taints_of(atom.others.value))
    return total + Value.literal("]" if atom.kind == "array" else "}")


def shown(value: Js) -> Value:
    """What ``console.log`` prints of *value*."""
    things = value.things
    if not things:
        return text_of(value)
    inner = Value.of(taints_of(value))
    return inner if inner.taints else UNKNOWN
