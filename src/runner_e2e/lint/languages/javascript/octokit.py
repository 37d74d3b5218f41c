"""Clients of GitHub's API, as ``actions/github-script`` and Octokit give them: what they write is published."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.builtins import function, object_of
from runner_e2e.lint.languages.javascript.values import Js, Thing, of_thing, taints_of, text_of
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.languages.javascript.machine import Call, Passed

__all__ = ["MODULES", "client", "member"]

# Methods are called by what they do: `list…`, `get…` and the like publish nothing, nor does what encrypts.
_READS = re.compile(r"(get|list|check|download|compare|is|has|paginate|auth|log|hook)($|[A-Z])|.*Secret$")
_READING_REQUEST = re.compile(r"\s*(?:(?:GET|HEAD)\s|/|\{)")


def client(name: str = "octokit") -> Thing:
    """A client, called *name* in messages."""
    return Thing("client", data=name)


def member(owner: Thing, name: str) -> Thing:
    """The property *name* of a client: a part of the API, and, where it is called, a request."""
    path = f"{owner.data}.{name}"
    return Thing("client", data=path, native=lambda call: _send(call, path))


def _send(call: Call, path: str) -> Js:
    if _writes(call, path.rpartition(".")[2]):
        for one in call.arguments:
            _publish(call, one, f"what `{path}` publishes")
    return call.machine.harmless(call)


def _writes(call: Call, method: str) -> bool:
    text = call.text(0).constant
    if method == "graphql":
        return text is None or "mutation" in text
    if method == "request":
        return text is None or not _READING_REQUEST.match(text)
    return not _READS.match(method)


def _publish(call: Call, argument: Passed, subject: str) -> None:
    """Each property by itself, so that the place shown is that of the value."""
    rest: list[Js] = [] if argument.value.things else [argument.value]
    for thing in argument.value.things:
        for cell in thing.cells.values():
            if cell.value is not None and cell.end > cell.start:
                call.machine.process.publish(_anywhere(cell.value), cell.start, cell.end, subject)
            elif cell.value is not None:
                rest.append(cell.value)
        if thing.others.value is not None:
            rest.append(thing.others.value)
    for value in rest:
        call.machine.process.publish(_anywhere(value), argument.start, argument.end, subject)


def _anywhere(value: Js) -> Value:
    """What is sent of *value*: its text, and that of all objects in it."""
    text = text_of(value)
    return text if text.taints or not value.things else Value.of(taints_of(value))


def _class(_call: Call) -> Js:
    return of_thing(client())


def _module() -> Js:
    """A package of Octokit: its class, and the functions that send a single request."""
    request = of_thing(member(client("@octokit"), "request"))
    graphql = of_thing(member(client("@octokit"), "graphql"))
    return object_of({"Octokit": _octokit(), "request": request, "graphql": graphql})


def _octokit() -> Js:
    """The class; with plugins and defaults it is another one that does the same."""
    return function(_class, **dict.fromkeys(("plugin", "defaults"), lambda _call: _octokit()))


MODULES: dict[str, Callable[[], Js]] = dict.fromkeys(
    ("octokit", "@octokit/rest", "@octokit/core", "@octokit/request", "@octokit/graphql", "@octokit/action"), _module
)
"""Name of a module -> what it exports."""
