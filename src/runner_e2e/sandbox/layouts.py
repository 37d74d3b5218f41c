"""Layouts: which directories of a product hide what, and which of them belong to one run. Data with placeholders.

Placeholders are ``{instance}``, ``{state-dir}`` and ``{state-name}`` (its last part), ``{session-name}`` (the session
id as a directory name), ``{env:NAME}`` (a variable), and any other value that the launch gives by name.
"""

from __future__ import annotations

import os

from runner_e2e.sandbox.answers import ask, read_text
from runner_e2e.sandbox.policy import Policy
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runner_e2e.errors import ConfigurationError, UsageError

__all__ = [
    "LAYOUT_SCHEMA",
    "Entry",
    "Layout",
    "ProbeData",
    "apply",
    "complete",
    "layout_of",
    "parse_layout",
    "probe_checks",
    "read_layout",
    "session_name",
    "shipped",
]

LAYOUT_SCHEMA = "runner-e2e.sandbox-layout/v1"
_KEYS = ("schema", "name", "about", "workspace", "hide", "create", "expose", "providers", "probe")
_DIRECTORY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "shipped_layouts")
_LONGEST_NAME = 120
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Entry(Record):
    """A path with placeholders. ``kind`` is what is made when it is missing; ``when`` names a value it depends on."""

    path: str
    kind: str = "directory"
    when: str = ""


class ProbeData(Record):
    """How to try a layout: what a run is given, and named checks, each with a path.

    ``denied`` files must not be readable, ``unlistable`` directories not be listed, ``usable`` paths be written.
    """

    provider: str = ""
    given: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    denied: Mapping[str, str] = {}
    unlistable: Mapping[str, str] = {}
    usable: Mapping[str, str] = {}


class Layout(Record):
    """One product's directories. ``providers`` maps a kind of agent to what it has besides ``expose``."""

    name: str
    hide: tuple[Entry, ...] = ()
    create: tuple[Entry, ...] = ()
    workspace: tuple[Entry, ...] = ()
    expose: tuple[Entry, ...] = ()
    providers: Mapping[str, tuple[Entry, ...]] = {}
    probe: ProbeData = ProbeData()


def shipped() -> tuple[str, ...]:
    """Names of the layouts that come with the package."""
    return tuple(sorted(name.removesuffix(".json") for name in os.listdir(_DIRECTORY) if name.endswith(".json")))


def read_layout(name: str) -> Layout:
    """The shipped layout *name*, or the JSON file at *name* where that is a path."""
    if "/" not in name and not name.endswith(".json"):
        if name not in shipped():
            raise _usage(f"there is no layout {name}", f"use one of {', '.join(shipped())}, or the path of a JSON file")
        path = os.path.join(_DIRECTORY, f"{name}.json")
    else:
        path = name
    try:
        text = ask(read_text, path)
    except (OSError, UnicodeDecodeError) as error:
        from runner_e2e.errors import why_unread

        raise _wrong(path, "the layout cannot be read", why_unread(error), "give a readable JSON file") from error
    return parse_layout(text, path=path)


def parse_layout(text: str, *, path: str) -> Layout:
    """Reads a layout from JSON; raises :class:`ConfigurationError`."""
    import json

    try:
        document = json.loads(text)
    except ValueError as error:
        raise _wrong(path, "the layout is not JSON", str(error), "write it as the shipped ones are") from error
    return layout_of(document, path=path)


def layout_of(document: object, *, path: str) -> Layout:
    """The layout that *document*, read from *path*, describes; raises :class:`ConfigurationError`."""
    if not isinstance(document, dict) or document.get("schema") != LAYOUT_SCHEMA:
        raise _wrong(path, "this is no layout", "", f'write an object with "schema": "{LAYOUT_SCHEMA}"')
    unknown = sorted(set(document) - set(_KEYS))
    if unknown:
        raise _wrong(path, f"unknown key {unknown[0]!r} in the layout", "", f"use {', '.join(_KEYS)}")
    providers = document.get("providers", {})
    if not isinstance(providers, dict) or not isinstance(document.get("name"), str):
        raise _wrong(path, "the layout has no name, or its providers are no object", "", "see the shipped layouts")
    lists = {key: _entries(path, key, document.get(key, [])) for key in ("hide", "create", "workspace", "expose")}
    own = {name: _entries(path, f"providers.{name}", entries) for name, entries in providers.items()}
    probe = _probe(path, document.get("probe", {}))
    return Layout(name=document["name"], providers=own, probe=probe, **lists)


def _probe(path: str, value: Any) -> ProbeData:
    names = set(ProbeData.__fields__)
    maps = names - {"provider"}
    good = isinstance(value, dict) and not set(value) - names and isinstance(value.get("provider", ""), str)
    good = good and all(
        isinstance(value[name], dict) and all(isinstance(text, str) for text in value[name].values())
        for name in maps & set(value)
    )
    if not good:
        raise _wrong(path, "probe of the layout is wrong", "", f"use {', '.join(sorted(names))}, see the shipped ones")
    return ProbeData(**value)


def _entries(path: str, key: str, value: object) -> tuple[Entry, ...]:
    if not isinstance(value, list):
        raise _wrong(path, f"{key} of the layout is not a list", "", f'write "{key}": ["{{instance}}/…"]')
    return tuple(_entry(path, key, item) for item in value)


def _entry(path: str, key: str, value: Any) -> Entry:
    if isinstance(value, str):
        return Entry(path=value)
    known = isinstance(value, dict) and "path" in value and not set(value) - {"path", "kind", "when"}
    if not known or not all(isinstance(item, str) for item in value.values()):
        raise _wrong(path, f"an entry of {key} is neither a path nor an object", "", "write path, kind and when")
    entry = Entry(**value)
    if entry.kind not in {"directory", "file"}:
        raise _wrong(path, f"kind {entry.kind!r} in {key}", "", "use directory or file")
    return entry


def probe_checks(
    layout: Layout, *, values: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[tuple[str, str, str], ...]:
    """The named checks of *layout* with their placeholders filled: (name, action, path)."""
    filler = _Filler(layout.name, complete(values), environment)
    probe = layout.probe
    named = [("read", probe.denied), ("list", probe.unlistable), ("use", probe.usable)]
    return tuple((name, action, filler.fill(path)) for action, checks in named for name, path in checks.items())


def complete(values: Mapping[str, str]) -> dict[str, str]:
    """*values* without empty ones, with the names that follow from them."""
    known = {name: value for name, value in values.items() if value}
    if "state-dir" in known:
        known["state-name"] = os.path.basename(os.path.normpath(known["state-dir"]))
    if "session-id" in known:
        known["session-name"] = session_name(known["session-id"])
    return known


def session_name(session: str) -> str:
    """The directory name of a session id: characters outside ``A-Za-z0-9._-`` become ``_``, cut to 120."""
    name = "".join(c if c in _NAME_CHARACTERS else "_" for c in session)[:_LONGEST_NAME]
    if name in {"", ".", ".."}:
        raise _usage(f"the session id {session!r} names no directory", "give the id that the session was opened with")
    return name


def apply(layout: Layout, *, provider: str, values: Mapping[str, str], environment: Mapping[str, str]) -> Policy:
    """What *layout* adds to the policy of one run.

    *values* are those given by name: ``instance``, ``state-dir``, ``session-id`` and others. An exposure that the
    provider has must be nameable: a missing value is a usage error, not a smaller exposure.
    """
    if layout.providers and provider not in layout.providers:
        what = f"the layout {layout.name} has no provider {provider}" if provider else "no provider is named"
        raise _usage(what, f"give --provider with one of {', '.join(layout.providers)}")
    if provider and not layout.providers:
        raise _usage(f"the layout {layout.name} knows no providers", "leave --provider out")
    filler = _Filler(layout.name, complete(values), environment)
    exposed = filler.entries((*layout.expose, *layout.providers.get(provider, ())))
    hidden = filler.entries(layout.hide)
    directories = [entry.path for entry in (*hidden, *exposed, *filler.entries(layout.create))]
    files = {entry.path for entry in exposed if entry.kind == "file"}
    return Policy(
        hide=tuple(entry.path for entry in hidden),
        expose=tuple(entry.path for entry in exposed),
        create=tuple(path for path in dict.fromkeys(directories) if path not in files),
        create_files=tuple(sorted(files)),
        workspace=tuple(entry.path for entry in filler.entries(layout.workspace)),
    )


class _Filler:
    """Puts values in the place of placeholders."""

    def __init__(self, layout: str, values: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.layout = layout
        self.values = values
        self.environment = environment

    def entries(self, entries: tuple[Entry, ...]) -> list[Entry]:
        return [
            entry.replace(path=self.fill(entry.path))
            for entry in entries
            if not entry.when or entry.when in self.values
        ]

    def fill(self, text: str) -> str:
        done = ""
        rest = text
        while "{" in rest:
            before, _, rest = rest.partition("{")
            name, closed, rest = rest.partition("}")
            if not closed:
                raise _usage(f"{text} in the layout {self.layout} has a brace that is not closed", "close it")
            done += before + self.value(name, text)
        path = done + rest
        if not path.startswith("/"):
            raise _usage(
                f"{text} in the layout {self.layout} became {path}, which is not absolute", "give absolute paths"
            )
        return path

    def value(self, name: str, text: str) -> str:
        source, _, variable = name.partition(":")
        value = self.environment.get(variable, "") if source == "env" and variable else self.values.get(name, "")
        if not value:
            given = f"set the variable {variable}" if source == "env" and variable else f"give {_option(name)}"
            raise _usage(f"the layout {self.layout} needs {name} for {text}", given)
        return value


def _option(name: str) -> str:
    known = {"state-name": "state-dir", "session-name": "session-id"}
    name = known.get(name, name)
    return f"--{name}" if name in {"instance", "state-dir", "session-id"} else f"--value {name}=…"


def _usage(what: str, fix: str) -> UsageError:
    from runner_e2e.errors import UsageError

    return UsageError(what, fix=fix)


def _wrong(path: str, what: str, why: str, fix: str) -> ConfigurationError:
    from runner_e2e.errors import ConfigurationError, Place

    return ConfigurationError(what, why=why, fix=fix, place=Place(path=path))
