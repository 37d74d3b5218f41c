"""Clients of HTTP and of GitHub's API: what a program sends there is published.

``requests``, ``httpx``, ``aiohttp``, ``urllib``, ``http.client``, PyGithub, ghapi, githubkit, ``github3``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.github_address import publishes
from runner_e2e.lint.languages.python.objects import NONE, NOTHING, Instance, Items, Object
from runner_e2e.lint.values import EMPTY, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

    Function = Callable[[Evaluator, Call], Object]
    Method = Callable[[Evaluator, Object, Call], Object]

__all__ = ["CLIENT", "FUNCTIONS", "METHODS", "of_client"]

_VERBS = ("get", "head", "options", "post", "put", "patch", "delete")
_BODIES = ("data", "json", "content", "files", "body", "fields")
_SESSION = "http session"
_CONNECTION = "http connection"
_REQUEST = "http request"
CLIENT = "?github client"
"""Kind of the objects of libraries for GitHub's API: what their methods are called says what they do."""

_READS = re.compile(r"(get|search|has|is|list|compare|download|check|paginate|raw|load|close|log|auth)(_|s?$)|.*secret")
_SEVERAL = re.compile(r"(get|search|list)_\w*s$")


def _result(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.opaque(call.everything(), Confidence.LOW)


def _text(interpreter: Evaluator, one: Object | None) -> Value:
    return EMPTY if one is None or one == NONE else interpreter.value(one)


def _constant(interpreter: Evaluator, one: Object | None, default: str) -> str | None:
    """A known text; *default* where nothing is given."""
    return default if one is None or one == NONE else interpreter.value(one).constant


def _publish(interpreter: Evaluator, call: Call, subject: str, sent: Iterable[tuple[int, str]]) -> None:
    """Publishes arguments by their place and their name."""
    for index, name in sent:
        given = call.get(index, name)
        if given is None:
            continue
        node = call.node_of(index if index < len(call.arguments) else -1, name)
        value = Value.of(interpreter.taints(given))
        interpreter.process.publish(value, *interpreter.span(node), subject)


def _send(  # noqa: PLR0913, PLR0917 - a call, and what is known of its address
    interpreter: Evaluator, call: Call, base: Value, method: str | None, first: int, name: str
) -> Object:
    """A request whose address is the argument at *first*, with what is sent behind it."""
    address = base + _text(interpreter, call.get(first, "url"))
    if publishes(address, method):
        sent = [(first, "url"), *((len(call.arguments), body) for body in _BODIES)]
        sent += [(index, "") for index in range(first + 1, len(call.arguments))]
        _publish(interpreter, call, f"what `{name}` sends to GitHub's API", sent)
    return _result(interpreter, call)


def _verb(module: str, verb: str) -> Function:
    return lambda interpreter, call: _send(interpreter, call, EMPTY, verb, 0, f"{module}.{verb}")


def _any_verb(module: str) -> Function:
    def request(interpreter: Evaluator, call: Call) -> Object:
        method = _constant(interpreter, call.get(0, "method"), "GET")
        return _send(interpreter, call, EMPTY, method, 1, f"{module}.request")

    return request


# --- sessions


def _session(interpreter: Evaluator, call: Call) -> Object:
    base = call.keywords.get("base_url", NONE)
    return interpreter.new(Instance(_SESSION, ((" base", base),)))


def _base(interpreter: Evaluator, receiver: Object) -> Value:
    content = interpreter.content(receiver)
    return _text(interpreter, content.get(" base")) if isinstance(content, Instance) else EMPTY


def _session_verb(verb: str) -> Method:
    return lambda interpreter, receiver, call: _send(
        interpreter, call, _base(interpreter, receiver), verb, 0, f"session.{verb}"
    )


def _session_request(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    method = _constant(interpreter, call.get(0, "method"), "GET")
    return _send(interpreter, call, _base(interpreter, receiver), method, 1, "session.request")


def _same(_interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    return receiver


def _connection(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance(_CONNECTION, ((" base", call.get(0, "host") or NOTHING),)))


# --- urllib


def _urllib_request(interpreter: Evaluator, call: Call) -> Object:
    """``Request``: it is sent later, but nothing else is done with it."""
    _urllib(interpreter, call, "urllib.request.Request")
    return interpreter.new(Instance(_REQUEST, ((" url", call.get(0, "url") or NOTHING),)))


def _urlopen(interpreter: Evaluator, call: Call) -> Object:
    _urllib(interpreter, call, "urllib.request.urlopen")
    return _result(interpreter, call)


def _urllib(interpreter: Evaluator, call: Call, name: str) -> None:
    given = call.get(0, "url")
    content = interpreter.content(given) if given is not None else None
    if isinstance(content, Instance) and content.kind == _REQUEST:
        given = content.get(" url")
    body = call.get(1, "data")
    default = "GET" if body is None or body == NONE else "POST"
    if publishes(_text(interpreter, given), _constant(interpreter, call.keywords.get("method"), default)):
        _publish(interpreter, call, f"what `{name}` sends to GitHub's API", [(1, "data")])


# --- libraries for GitHub's API


def _client(interpreter: Evaluator, _call: Call) -> Object:
    return interpreter.new(Instance(CLIENT))


def of_client(method: str) -> Method | None:
    """The model of a method of an object of such a library, by the full name of *method*; None for all others."""
    if not method.startswith(CLIENT):
        return None
    path = method.removeprefix(CLIENT).lstrip(".")

    def run(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
        name = path.rpartition(".")[2]
        if _writes(interpreter, name, call):
            given = [(index, "") for index in range(len(call.arguments))]
            given += [(len(call.arguments), keyword) for keyword in call.keywords]
            _publish(interpreter, call, f"what `{name}` publishes", given)
        made = interpreter.new(Instance(CLIENT))
        return interpreter.new(Items((), made)) if _SEVERAL.fullmatch(name) else made

    return run


def _writes(interpreter: Evaluator, name: str, call: Call) -> bool:
    if name in ("graphql", "graphql_query", "requestGraphQL"):
        text = _constant(interpreter, call.get(0, "query"), "")
        return text is None or "mutation" in text
    if name == "request":
        return _constant(interpreter, call.get(0, "method"), "GET") not in {"GET", "HEAD"}
    return not _READS.match(name)


_CLIENTS = (
    *("github.Github", "github.GithubIntegration", "github.MainClass.Github", "ghapi.all.GhApi", "ghapi.core.GhApi"),
    *("githubkit.GitHub", "github3.login", "github3.GitHub", "github3.github.GitHub", "gidgethub.aiohttp.GitHubAPI"),
    *("gidgethub.httpx.GitHubAPI", "ghapi.GhApi"),
)
_SESSIONS = (
    *("requests.Session", "requests.session", "requests.sessions.Session", "httpx.Client", "httpx.AsyncClient"),
    *("aiohttp.ClientSession", "urllib3.PoolManager", "niquests.Session", "curl_cffi.requests.Session"),
)
_MODULES = ("requests", "httpx", "niquests")

FUNCTIONS: Mapping[str, Function] = {
    **{f"{module}.{verb}": _verb(module, verb) for module in _MODULES for verb in _VERBS},
    **{f"{module}.request": _any_verb(module) for module in (*_MODULES, "urllib3", "aiohttp")},
    **dict.fromkeys(_SESSIONS, _session),
    **dict.fromkeys(("http.client.HTTPSConnection", "http.client.HTTPConnection"), _connection),
    "urllib.request.Request": _urllib_request,
    "urllib.request.urlopen": _urlopen,
    **dict.fromkeys(_CLIENTS, _client),
}

METHODS: Mapping[str, Method] = {
    **{f"{_SESSION}.{verb}": _session_verb(verb) for verb in _VERBS},
    **{f"{_SESSION}.{each}": _session_request for each in ("request", "stream")},
    **{f"{_SESSION}.{each}": _same for each in ("__enter__", "__aenter__")},
    f"{_CONNECTION}.request": _session_request,
}
