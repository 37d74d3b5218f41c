"""``collections.namedtuple`` and ``contextvars.ContextVar``: small objects that hold a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    Class,
    Instance,
    Object,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


def _named_tuple(interpreter: Evaluator, call: Call) -> Object:
    """A class with the fields that a text or a list names."""
    name = interpreter.value(call.get(0, "typename") or NOTHING).constant or ""
    given = call.get(1, "field_names") or NOTHING
    if isinstance(given, Text):
        fields = tuple((given.value.constant or "").replace(",", " ").split())
    else:
        fields = tuple(interpreter.value(item).constant or "" for item in interpreter.items(given).items)
    if not fields:
        return interpreter.opaque(call.everything())
    return interpreter.new(Class(name, interpreter.memory.scope(), (), fields))


def _context_variable(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("context-variable", ((" value", call.keywords.get("default", NONE)),)))


def _context_set(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    interpreter.put(receiver, Instance("context-variable", ((" value", call.get(0, "value") or NOTHING),)))
    return NOTHING


def _context_get(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = interpreter.content(receiver)
    found = content.get(" value") if isinstance(content, Instance) else None
    return found if found is not None else NOTHING


FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "collections.namedtuple": _named_tuple,
    "contextvars.ContextVar": _context_variable,
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "context-variable.set": _context_set,
    "context-variable.get": _context_get,
}
