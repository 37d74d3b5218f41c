"""Clients of HTTP: what a program sends to GitHub's API with them is published.

``fetch`` and what is made like it, ``axios``, ``got``, ``ky``, ``superagent``, ``node:https``, and the client of the
Actions toolkit. They start no process, so everything else about them is what a harmless module does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.github_address import publishes
from runner_e2e.lint.languages.javascript.values import Js, Thing, of_text, of_thing, taints_of, text_of
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.languages.javascript.machine import Call, Passed
    from runner_e2e.lint.languages.javascript.values import Native

__all__ = ["MODULES", "fetch", "request_object"]

_METHODS = ("post", "put", "patch", "delete")
_BODIES = frozenset({"body", "data", "json", "form"})


def _client(name: str, **members: Native) -> Thing:
    """An object of a module that starts nothing, with functions that send."""
    thing = Thing("harmless", data=name)
    for each, native in members.items():
        thing.put(each, _function(f"{name}.{each}", native))
    return thing


def _function(name: str, native: Native) -> Js:
    return of_thing(Thing("harmless", native=native, data=name))


def _options(call: Call) -> list[Thing]:
    return [thing for one in call.arguments for thing in one.value.things if not thing.is_function]


def _setting(options: Iterable[Thing], *names: str) -> Value | None:
    """The first of the settings *names* that one of *options* has."""
    for thing in options:
        for name in names:
            cell = thing.cells.get(name)
            if cell is not None and cell.value is not None:
                return text_of(cell.value)
    return None


def _address(call: Call, base: Value) -> Value:
    first = call.arg(0)
    given = _setting(_options(call), "url", "path")
    host = _setting(_options(call), "baseURL", "prefixUrl", "hostname", "host")
    own = text_of(first) if not first.things or (first.thing is not None and first.thing.kind == "text") else EMPTY
    return base + (host or EMPTY) + Value.literal(" ") + own + (given or EMPTY)


def _method(call: Call, default: str) -> str | None:
    found = _setting(_options(call), "method")
    return default if found is None else found.constant


def _send(call: Call, base: Value, method: str | None, name: str, data: int | None = None) -> Js:
    """A request: publishes the argument at *data*, and the parts of the options that are sent."""
    if publishes(_address(call, base), method):
        subject = f"what `{name}` sends to GitHub's API"
        for index, one in enumerate(call.arguments):
            if index in {0, data}:
                _publish(call, one, subject, lambda _key: True)
            else:
                _publish(call, one, subject, _BODIES.__contains__)
    return call.machine.harmless(call)


def _publish(call: Call, argument: Passed, subject: str, sent: Callable[[str], bool]) -> None:
    """Each property that is *sent* by itself, so that the place shown is that of the value."""
    process = call.machine.process
    if not argument.value.things:
        process.publish(_anywhere(argument.value), argument.start, argument.end, subject)
    for thing in argument.value.things:
        if thing.kind != "object":
            process.publish(_anywhere(of_thing(thing)), argument.start, argument.end, subject)
            continue
        for key, cell in thing.cells.items():
            if cell.value is not None and sent(key):
                known = cell.end > cell.start
                place = (cell.start, cell.end) if known else (argument.start, argument.end)
                process.publish(_anywhere(cell.value), *place, subject)


def _anywhere(value: Js) -> Value:
    text = text_of(value)
    return text if text.taints or not value.things else Value.of(taints_of(value))


def fetch(call: Call) -> Js:
    """``fetch(address, options)``."""
    return _send(call, EMPTY, _method(call, "GET"), "fetch")


def request_object(call: Call) -> Js:
    """``new Request(address, options)``, which ``fetch`` sends."""
    request = Thing()
    for thing in _options(call):
        request.cells.update(thing.cells)
    request.put("url", of_text(_address(call, EMPTY)))
    return of_thing(request)


def _sender(name: str, base: Value, method: str = "", data: int | None = None) -> Native:
    """A function that sends with *method*, or the one that its options name."""
    return lambda call: _send(call, base, method or _method(call, "GET"), name, data)


def _library(name: str, base: Value = EMPTY) -> Thing:
    """``axios``, ``got``, ``ky``: functions that are modules, with one function for each method."""
    data = 1 if name in {"axios", "needle"} else None

    def make(call: Call) -> Js:
        own = _setting(_options(call), "baseURL", "prefixUrl")
        return of_thing(_library(name, own if own is not None else base))

    members: dict[str, Native] = {
        method: _sender(f"{name}.{method}", base, method, None if method == "delete" else data) for method in _METHODS
    }
    members |= {"request": _sender(name, base), "create": make, "extend": make}
    thing, default = _client(name, **members), _client(name, **members)
    thing.native = default.native = _sender(name, base)
    thing.put("default", of_thing(default))
    return thing


def _request(method: str | None) -> Native:
    """``https.request`` and ``superagent.post``: what is sent comes later."""

    def begin(call: Call) -> Js:
        address, how = _address(call, EMPTY), _method(call, method or "GET")
        request = Thing("harmless", data="request")
        subject = "what `https.request` sends to GitHub's API" if method is None else "what is sent to GitHub's API"

        def send(later: Call) -> Js:
            if publishes(address, how):
                for one in later.arguments:
                    later.machine.process.publish(_anywhere(one.value), one.start, one.end, subject)
            return of_thing(request)

        for name in ("write", "end", "send"):
            request.put(name, _function(f"request.{name}", send))
        for name in ("set", "auth", "type", "accept", "query"):
            request.put(name, _function(f"request.{name}", lambda _later: of_thing(request)))
        call.machine.harmless(call)
        return of_thing(request)

    return begin


def _fetch_module() -> Js:
    thing = _client("fetch", fetch=fetch, request=_sender("request", EMPTY), default=fetch)
    thing.native = fetch
    return of_thing(thing)


def _node(name: str) -> Callable[[], Js]:
    return lambda: of_thing(_client(name, request=_request(None), get=_request("GET")))


def _superagent() -> Js:
    return of_thing(_client("superagent", **{method: _request(method.upper()) for method in _METHODS}))


def _toolkit() -> Js:
    """``@actions/http-client``: ``new HttpClient().postJson(address, what)``."""
    members: dict[str, Native] = {}
    for method in _METHODS:
        members[method] = members[f"{method}Json"] = _sender(f"HttpClient.{method}", EMPTY, method, 1)

    def make(_call: Call) -> Js:
        return of_thing(_client("HttpClient", **members))

    return of_thing(_client("@actions/http-client", HttpClient=make))


def _callable(name: str) -> Callable[[], Js]:
    return lambda: of_thing(_library(name))


MODULES: dict[str, Callable[[], Js]] = {
    **dict.fromkeys(("node-fetch", "undici", "cross-fetch", "isomorphic-fetch"), _fetch_module),
    **{name: _callable(name) for name in ("axios", "got", "ky", "needle")},
    "http": _node("http"),
    "https": _node("https"),
    "superagent": _superagent,
    "@actions/http-client": _toolkit,
}
"""Name of a module -> what it exports."""
