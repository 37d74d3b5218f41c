"""What is there without ``require``: ``JSON``, ``Object``, ``Promise``, ``Buffer``, ``console``, ``process``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.data import parsed, shown, stringified
from runner_e2e.lint.languages.javascript.requests import fetch, request_object
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    FALSE,
    NULL,
    NUMBER,
    TRUE,
    UNDEFINED,
    Cell,
    Js,
    Native,
    Thing,
    constant,
    either,
    literal,
    of_text,
    of_thing,
    taints_of,
    text_of,
    truth_of,
)
from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.javascript.machine import Call, Machine

__all__ = ["buffer", "builtin", "function", "module_of", "object_of", "pure"]


def function(native: Native, **properties: Native) -> Js:
    """A built-in function, perhaps with functions as its properties."""
    thing = Thing("function", native=native)
    for name, inner in properties.items():
        thing.put(name, function(inner))
    return of_thing(thing)


def object_of(entries: Mapping[str, Js]) -> Js:
    """A built-in object."""
    thing = Thing()
    for name, value in entries.items():
        thing.put(name, value)
    return of_thing(thing)


def module_of(functions: Mapping[str, Native], values: Mapping[str, Js] | None = None) -> Js:
    """A built-in module of functions and other values."""
    return object_of({**{name: function(native) for name, native in functions.items()}, **(values or {})})


def pure(call: Call) -> Js:
    """A function that only computes: its result may hold what it was given."""
    return call.machine.harmless(call)


# --- text and numbers


def _string(call: Call) -> Js:
    return of_text(call.text(0)) if call.given(0) else literal("")


def _number(call: Call) -> Js:
    number = call.number(0)
    text = call.arg(0).constant
    if number is None and text is not None and text.strip().isdigit() and len(text) < 16:
        return constant(float(int(text)))
    return NUMBER if number is None else constant(number)


def _boolean(call: Call) -> Js:
    truth = truth_of(call.arg(0))
    return BOOLEAN if truth is None else constant(truth)


def _changed(call: Call) -> Js:
    """An encoding that keeps letters, digits, points and dashes."""
    value = call.text(0)
    return of_text(value.opaque()) if value.taints else of_text(UNKNOWN if value.constants is None else value)


def _encoded(call: Call) -> Js:
    return of_text(call.text(0).opaque().weakened(Confidence.LOW))


def buffer(value: Value) -> Js:
    """Bytes, by the text they hold."""
    thing = Thing("text", data="buffer")
    thing.put("text", of_text(value))
    thing.put("toString", function(lambda call: of_text(_decoded(call, value))))
    thing.put("length", NUMBER)
    for name in ("slice", "subarray", "valueOf"):
        thing.put(name, function(lambda call: buffer(value.opaque()) if call.given(0) else buffer(value)))
    return of_thing(thing)


_ENCODINGS = frozenset({"base64", "base64url", "hex", "binary64"})


def _decoded(call: Call, value: Value) -> Value:
    encoding = call.arg(0).constant
    if encoding in _ENCODINGS:
        return value.opaque().weakened(Confidence.LOW)
    return value if encoding is not None or not call.given(0) else value.opaque()


def _buffer_from(call: Call) -> Js:
    value = call.text(0) if call.arg(0).text is not None or call.arg(0).things else Value.of(taints_of(call.arg(0)))
    return buffer(value.opaque() if call.arg(1).constant in _ENCODINGS else value)


def _buffer_concat(call: Call) -> Js:
    elements, others = call.machine.iterate(call.arg(0))
    total = EMPTY
    for one in elements:
        total = total + text_of(one)
    return buffer(total if others is None else total + text_of(others).opaque())


# --- JSON, Object, Array


def _stringify(call: Call) -> Js:
    return of_text(stringified(call.arg(0)))


def _parse(call: Call) -> Js:
    return parsed(call.text(0))


def _keys(call: Call) -> Js:
    return call.machine.array(*call.machine.names_of(call.arg(0)))


def _values(call: Call) -> Js:
    found: list[Js] = []
    others: list[Js] = []
    for name, value in _properties(call):
        (found if name is not None else others).append(value)
    return call.machine.array(found, either(others) if others else None)


def _properties(call: Call) -> list[tuple[str | None, Js]]:
    copied = Thing()
    call.machine.copy_properties(copied, call.arg(0))
    found: list[tuple[str | None, Js]] = [
        (name, cell.value) for name, cell in copied.cells.items() if cell.value is not None
    ]
    if copied.others.value is not None:
        found.append((None, copied.others.value))
    return found


def _entries(call: Call) -> Js:
    machine = call.machine
    pairs: list[Js] = []
    others: Js | None = None
    for name, value in _properties(call):
        pair = machine.array([of_text(UNKNOWN) if name is None else literal(name), value])
        if name is None:
            others = pair
        else:
            pairs.append(pair)
    return machine.array(pairs, others)


def _from_entries(call: Call) -> Js:
    machine = call.machine
    made = Thing()
    elements, others = machine.iterate(call.arg(0))
    for pair in elements:
        key = text_of(machine.get(pair, Value.literal("0")))
        machine.set_property(made, key, machine.get(pair, Value.literal("1")), call.start, call.end)
    if others is not None:
        made.others.value = machine.get(others, Value.literal("1"))
    return of_thing(made)


def _assign(call: Call) -> Js:
    target = call.thing_at(0)
    for one in call.arguments[1:]:
        if target is not None and target.kind != "environment":
            call.machine.copy_properties(target, one.value)
        elif target is not None:
            _assign_environment(call, one.value)
    return call.arg(0)


def _assign_environment(call: Call, value: Js) -> None:
    copied = Thing()
    call.machine.copy_properties(copied, value)
    for name, cell in copied.cells.items():
        if cell.value is not None:
            call.machine.process.set_variable(name, text_of(cell.value))


def _same(call: Call) -> Js:
    return call.arg(0)


def _array_from(call: Call) -> Js:
    machine = call.machine
    thing = call.thing_at(0)
    if thing is not None and thing.kind == "object":
        made = machine.array([], ANY)
    else:
        made = machine.array(*machine.iterate(call.arg(0)))
    if call.given(1):
        return machine.call_method(made, Value.literal("map"), call.with_arguments(call.arg(1)))
    return made


def _array(call: Call) -> Js:
    if len(call.arguments) == 1 and call.arg(0).text is None and call.thing_at(0) is None:
        return call.machine.array([], UNDEFINED)
    return call.machine.array([one.value for one in call.arguments])


def _is_array(call: Call) -> Js:
    thing = call.thing_at(0)
    if thing is not None and thing.kind != "unknown":
        return TRUE if thing.kind == "array" else FALSE
    return FALSE if call.arg(0).text is not None and not call.arg(0).atoms else BOOLEAN


# --- promises and time


def _all(call: Call) -> Js:
    return call.machine.array(*call.machine.iterate(call.arg(0)))


def _all_settled(call: Call) -> Js:
    elements, others = call.machine.iterate(call.arg(0))
    settled = [object_of({"status": literal("fulfilled"), "value": value}) for value in elements]
    return call.machine.array(settled, None if others is None else object_of({"value": others}))


def _race(call: Call) -> Js:
    elements, others = call.machine.iterate(call.arg(0))
    return either([*elements, *([] if others is None else [others])] or [UNDEFINED])


def _promise(call: Call) -> Js:
    result = Cell(UNDEFINED)
    machine = call.machine
    settled = [False]

    def resolve(inner: Call) -> Js:
        machine.write(result, inner.arg(0) if not settled[0] else either([result.value, inner.arg(0)]))
        settled[0] = True
        return UNDEFINED

    machine.call_value(call.arg(0), call.with_arguments(function(resolve), function(lambda _inner: UNDEFINED)))
    return result.value if result.value is not None else UNDEFINED


def _later(call: Call) -> Js:
    call.machine.call_value(call.arg(0), call.with_arguments(*(one.value for one in call.arguments[2:])))
    return object_of({"unref": function(_same), "ref": function(_same)})


def _evaluated(call: Call) -> Js:
    machine = call.machine
    value = call.text(0)
    result: list[Js] = []
    if value.constants is None and not value.taints:
        return ANY
    for source in machine.process.source_of(value, call.passed(0).start, call.passed(0).end):
        with machine.process.within(source):
            result.append(machine.run_text())
    return either(result) if result else ANY


# --- collections, errors, addresses


def _map(call: Call) -> Js:
    machine = call.machine
    thing = Thing("map")
    elements, others = machine.iterate(call.arg(0)) if call.given(0) and call.arg(0).thing is not None else ([], None)
    for pair in elements:
        key = machine.get(pair, Value.literal("0")).constant
        value = machine.get(pair, Value.literal("1"))
        machine.set_property(thing, UNKNOWN if key is None else Value.literal(key), value, call.start, call.end)
    if others is not None:
        thing.others.value = machine.get(others, Value.literal("1"))
    return of_thing(thing)


def _set(call: Call) -> Js:
    thing = Thing("set")
    elements, others = call.machine.iterate(call.arg(0)) if call.given(0) else ([], None)
    for index, value in enumerate(elements):
        thing.put(str(index), value)
    thing.others.value = others
    return of_thing(thing)


def _error(call: Call) -> Js:
    thing = Thing("text", data="error")
    message = of_text(call.text(0)) if call.given(0) else literal("")
    thing.put("text", message)
    for name in ("message", "stack"):
        thing.put(name, message)
    return of_thing(thing)


def _url(call: Call) -> Js:
    thing = Thing("text", data="url")
    value = of_text(call.text(1) + call.text(0).opaque() if call.given(1) else call.text(0))
    thing.put("text", value)
    for name in ("href", "pathname", "search", "hash", "host", "hostname", "origin"):
        thing.put(name, of_text(text_of(value).opaque()))
    thing.put("searchParams", _parameters(call))
    return of_thing(thing)


def _parameters(call: Call) -> Js:
    thing = Thing("map")
    value = call.arg(0)
    if value.things:
        call.machine.copy_properties(thing, value)
    else:
        thing.others.value = either([NULL, of_text(call.text(0).opaque())])
    return of_thing(thing)


# --- output


def _shown(call: Call) -> Value:
    return joined((shown(one.value) for one in call.arguments), Value.literal(" "))


def _print(call: Call) -> Js:
    call.machine.process.print(_shown(call) + Value.literal("\n"), call.start, call.end)
    return UNDEFINED


def _print_error(call: Call) -> Js:
    call.machine.process.print_error(_shown(call) + Value.literal("\n"), call.start, call.end)
    return UNDEFINED


def _write(call: Call) -> Js:
    call.machine.process.print(call.text(0), call.start, call.end)
    return TRUE


def _write_error(call: Call) -> Js:
    call.machine.process.print_error(call.text(0), call.start, call.end)
    return TRUE


def _console() -> Js:
    functions: dict[str, Native] = dict.fromkeys(("log", "info", "debug", "group", "dir", "table"), _print)
    functions |= dict.fromkeys(("error", "warn", "trace"), _print_error)
    functions |= dict.fromkeys(("groupEnd", "time", "timeEnd", "assert", "count"), lambda _call: UNDEFINED)
    return module_of(functions)


# --- process


def _exit(call: Call) -> Js:
    call.machine.exit()
    return UNDEFINED


def _change_directory(call: Call) -> Js:
    call.machine.process.change_directory(call.text(0))
    return UNDEFINED


def _on(call: Call) -> Js:
    call.machine.call_back(call, ANY)
    return call.this


def process_object(machine: Machine) -> Js:
    """``process``."""
    process = machine.process
    script = Value.literal(process.path) if process.path else process.name
    arguments = Thing("array")
    for text in (Value.literal("/usr/bin/node"), script):
        arguments.put(str(len(arguments.cells)), of_text(text))
    for one in process.arguments:
        if one.many or arguments.others.value is not None:
            before = arguments.others.value
            arguments.others.value = of_text(one.value) if before is None else either([before, of_text(one.value)])
        else:
            arguments.put(str(len(arguments.cells)), of_text(one.value))
    values = {
        "env": of_thing(Thing("environment")),
        "argv": of_thing(arguments),
        "execPath": literal("/usr/bin/node"),
        "platform": of_text(UNKNOWN),
        "stdout": module_of({"write": _write, "on": _on, "end": _write}),
        "stderr": module_of({"write": _write_error, "on": _on, "end": _write_error}),
        "stdin": module_of({"on": _input_event, "setEncoding": _same, "resume": _same, "pipe": _same}),
        "pid": NUMBER,
        "exitCode": NUMBER,
        "version": of_text(UNKNOWN),
        "versions": ANY,
    }
    functions: dict[str, Native] = {
        "exit": _exit,
        "cwd": lambda call: of_text(call.machine.process.directory),
        "chdir": _change_directory,
        "on": _on,
        "once": _on,
        "nextTick": lambda call: (call.machine.call_value(call.arg(0), call.with_arguments()), UNDEFINED)[1],
        "hrtime": lambda _call: ANY,
        "uptime": lambda _call: NUMBER,
        "memoryUsage": lambda _call: ANY,
        "emitWarning": lambda _call: UNDEFINED,
    }
    return module_of(functions, values)


def _input_event(call: Call) -> Js:
    event = call.arg(0).constant
    value = of_text(call.machine.process.read_input()) if event in {"data", "line"} else ANY
    call.machine.call_back(call, value)
    return call.this


def _date(call: Call) -> Js:
    return call.machine.harmless(call)


def _date_object() -> Js:
    return function(_date, **dict.fromkeys(("now", "parse", "UTC"), lambda _call: NUMBER))


_FUNCTIONS: dict[str, Native] = {
    **dict.fromkeys(("parseInt", "parseFloat", "BigInt"), _number),
    **dict.fromkeys(("isNaN", "isFinite"), lambda _call: BOOLEAN),
    **dict.fromkeys(("encodeURIComponent", "encodeURI", "escape"), _changed),
    **dict.fromkeys(("decodeURIComponent", "decodeURI", "unescape", "atob"), _changed),
    "btoa": _encoded,
    **dict.fromkeys(("setTimeout", "setImmediate", "setInterval", "queueMicrotask"), _later),
    **dict.fromkeys(("clearTimeout", "clearInterval", "clearImmediate"), lambda _call: UNDEFINED),
    **dict.fromkeys(("Error", "TypeError", "RangeError", "SyntaxError", "AggregateError"), _error),
    **dict.fromkeys(("Symbol", "RegExp", "AbortController", "TextEncoder", "TextDecoder"), pure),
    **dict.fromkeys(("Headers", "Response", "FormData", "Intl", "Proxy", "WeakSet"), pure),
    "fetch": fetch,
    "Request": request_object,
    "structuredClone": _same,
    "eval": _evaluated,
    "Map": _map,
    "WeakMap": _map,
    "Set": _set,
    "URL": _url,
    "URLSearchParams": _parameters,
}

_OBJECTS: dict[str, Callable[[], Js]] = {
    "undefined": lambda: UNDEFINED,
    "NaN": lambda: NUMBER,
    "Infinity": lambda: NUMBER,
    "console": _console,
    "Date": _date_object,
    "JSON": lambda: module_of({"stringify": _stringify, "parse": _parse}),
    "Object": lambda: function(
        _same,
        keys=_keys,
        values=_values,
        entries=_entries,
        fromEntries=_from_entries,
        assign=_assign,
        **dict.fromkeys(("freeze", "seal", "create", "defineProperty", "getPrototypeOf"), _same),
    ),
    "Array": lambda: function(_array, **{"from": _array_from, "isArray": _is_array, "of": _array}),
    "Promise": lambda: function(
        _promise, all=_all, allSettled=_all_settled, race=_race, any=_race, resolve=_same, reject=lambda _call: ANY
    ),
    "Buffer": lambda: function(
        _buffer_from, **{"from": _buffer_from, "concat": _buffer_concat, "byteLength": lambda _call: NUMBER}
    ),
    "String": lambda: function(_string, raw=pure),
    "Number": lambda: function(_number, isInteger=lambda _call: BOOLEAN, parseInt=_number, isNaN=lambda _call: BOOLEAN),
    "Boolean": lambda: function(_boolean),
    "Math": lambda: of_thing(Thing("numbers")),
    "globalThis": lambda: of_thing(Thing()),
}


def builtin(machine: Machine, name: str) -> Js | None:
    """The global *name* that is built in, None when there is none."""
    if name == "process":
        return process_object(machine)
    native = _FUNCTIONS.get(name)
    if native is not None:
        return function(native)
    made = _OBJECTS.get(name)
    return made() if made is not None else None
