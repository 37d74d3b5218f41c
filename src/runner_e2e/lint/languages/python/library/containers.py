"""Methods of lists, tuples, sets and dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.evaluator import Call
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Constant,
    Dictionary,
    Items,
    Object,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


# --- lists and sets


def _items(interpreter: Evaluator, receiver: Object) -> Items:
    content = interpreter.content(receiver)
    return content if isinstance(content, Items) else Items((), NOTHING)


def _append(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    value = interpreter.noted(call.get(0) or NOTHING, call.node_of(0), "put into a list")
    if content.kind == "set" and value in content.items:
        return NONE
    interpreter.put(receiver, interpreter.concatenated(content, Items((value,))))
    return NONE


def _extend(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    for one in call.arguments:
        content = interpreter.concatenated(content, interpreter.items(one))
    interpreter.put(receiver, content)
    return NONE


def _insert(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    index, value = call.get(0), call.get(1) or NOTHING
    at = index.value if isinstance(index, Constant) and isinstance(index.value, int) else None
    if at is None or not 0 <= at <= len(content.items):
        interpreter.put(receiver, Items((), join_all((interpreter.element(content), value)), content.kind))
        return NONE
    items = (*content.items[:at], value, *content.items[at:])
    interpreter.put(receiver, Items(items, content.rest, content.kind))
    return NONE


def _pop(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    given = call.get(0)
    index = given.value if isinstance(given, Constant) else -1 if given is None else None
    if content.rest is None and isinstance(index, int) and -len(content.items) <= index < len(content.items):
        items = list(content.items)
        taken = items.pop(index)
        interpreter.put(receiver, Items(tuple(items), None, content.kind))
        return taken
    taken = interpreter.element(content)
    interpreter.put(receiver, Items((), taken, content.kind))
    return taken


def _pop_first(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    """``deque.popleft`` and ``Queue.get``: in order."""
    return _pop(interpreter, receiver, Call(node=call.node, arguments=(Constant(0, "int"),)))


def _put_first(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    value = interpreter.noted(call.get(0) or NOTHING, call.node_of(0), "put into a list")
    interpreter.put(receiver, interpreter.concatenated(Items((value,), None, content.kind), content))
    return NONE


def _extend_first(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    given = interpreter.items(call.get(0) or NOTHING)
    first = Items(tuple(reversed(given.items)), given.rest, content.kind)
    interpreter.put(receiver, interpreter.concatenated(first, content))
    return NONE


def _queue(interpreter: Evaluator, _call: Call) -> Object:
    return interpreter.new(Items())


def _shuffle(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    """The same items in another order, perhaps fewer."""
    content = _items(interpreter, receiver)
    if len(content.items) > 1 or content.rest is not None:
        interpreter.put(receiver, Items((), interpreter.element(content), content.kind))
    return NONE


def _reverse(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = _items(interpreter, receiver)
    if content.rest is None:
        interpreter.put(receiver, Items(tuple(reversed(content.items)), None, content.kind))
    return NONE


def _clear(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = interpreter.content(receiver)
    interpreter.put(receiver, Dictionary() if isinstance(content, Dictionary) else Items((), None, "list"))
    return NONE


def _copy(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = interpreter.content(receiver)
    return interpreter.new(content) if content is not None else receiver


def _union(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _items(interpreter, receiver)
    for one in call.arguments:
        content = interpreter.concatenated(content, interpreter.items(one))
    return interpreter.new(content)


def _nothing(_interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    return NOTHING


# --- dictionaries


def _dictionary(interpreter: Evaluator, receiver: Object) -> Dictionary:
    content = interpreter.content(receiver)
    return content if isinstance(content, Dictionary) else Dictionary((), NOTHING)


def _get(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _dictionary(interpreter, receiver)
    key = call.get(0, "key") or UNKNOWN_TEXT
    default = call.get(1, "default") or NONE
    keys = interpreter.known_keys(key)
    known = dict(content.entries)
    if keys is not None and all(one in known for one in keys):
        return interpreter.entry(content, key)
    if keys is not None and content.others is None and not any(one in known for one in keys):
        return default
    return join_all((interpreter.entry(content, key), default))


def _pop_key(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    found = _get(interpreter, receiver, call)
    content = _dictionary(interpreter, receiver)
    keys = interpreter.known_keys(call.get(0) or UNKNOWN_TEXT) or ()
    kept = tuple(entry for entry in content.entries if len(keys) != 1 or entry[0] != keys[0])
    interpreter.put(receiver, Dictionary(kept, content.others, content.keys))
    return found


def _set_default(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _dictionary(interpreter, receiver)
    key = call.get(0) or UNKNOWN_TEXT
    keys = interpreter.known_keys(key)
    if keys is None or not all(one in dict(content.entries) for one in keys):
        value = call.get(1) or NONE
        interpreter.put(receiver, interpreter.with_entry(content, key, value))
    return _get(interpreter, receiver, call)


def _update(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = _dictionary(interpreter, receiver)
    for one in call.arguments:
        content = interpreter.updated(content, one)
    entries = dict(content.entries)
    entries.update(call.keywords.items())
    interpreter.put(receiver, Dictionary(tuple(entries.items()), content.others, content.keys))
    return NONE


def _keys(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return interpreter.new(interpreter.items(receiver))


def _values(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = _dictionary(interpreter, receiver)
    return interpreter.new(Items(tuple(value for _, value in content.entries), content.others))


def _pairs(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    content = _dictionary(interpreter, receiver)
    keys = interpreter.items(receiver)
    pairs = tuple(
        Items((key, value), None, "tuple") for key, (_, value) in zip(keys.items, content.entries, strict=False)
    )
    rest = Items((keys.rest or UNKNOWN_TEXT, content.others), None, "tuple") if content.others is not None else None
    return interpreter.new(Items(pairs, rest))


def _from_keys(interpreter: Evaluator, call: Call) -> Object:
    made = Dictionary()
    for key in interpreter.items(call.get(0) or NOTHING).items:
        made = interpreter.with_entry(made, key, call.get(1) or NONE)
    return interpreter.new(made)


_QUEUES = {
    "queue": "Queue SimpleQueue",
    "asyncio": "Queue",
    "multiprocessing": "Queue SimpleQueue JoinableQueue",
}
_LIST_METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "append": _append,
    "appendleft": _put_first,
    "add": _append,
    "extend": _extend,
    "extendleft": _extend_first,
    "insert": _insert,
    "pop": _pop,
    "popleft": _pop_first,
    "remove": _shuffle,
    "discard": _shuffle,
    "sort": _shuffle,
    "reverse": _reverse,
    "clear": _clear,
    "copy": _copy,
    "update": _extend,
    "union": _union,
    "intersection": _copy,
    "difference": _copy,
    "symmetric_difference": _union,
    "index": _nothing,
    "count": _nothing,
    **dict.fromkeys(("put", "put_nowait"), _append),
    **dict.fromkeys(("get", "get_nowait"), _pop_first),
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    **{f"{kind}.{name}": model for kind in ("list", "tuple", "set") for name, model in _LIST_METHODS.items()},
    "dict.get": _get,
    "dict.pop": _pop_key,
    "dict.setdefault": _set_default,
    "dict.update": _update,
    "dict.keys": _keys,
    "dict.values": _values,
    "dict.items": _pairs,
    "dict.copy": _copy,
    "dict.clear": _clear,
}
FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "builtins.dict.fromkeys": _from_keys,
    **{f"{module}.{kind}": _queue for module, kinds in _QUEUES.items() for kind in kinds.split()},
}
