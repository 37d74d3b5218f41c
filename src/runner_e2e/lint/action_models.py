"""What well-known actions do with what they are given, as data (``lint/data/actions.json``).

The facts are those of the action's own source, which each entry names: which inputs become arguments of a program,
part of a name that others see, a message to a service, a script; which variables it sets for later
steps; and what its outputs carry. That the log shows every input is the runner's doing, and holds for all actions.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from runner_e2e.lint.package_data import load_table
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.sighting import Surface

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "AGENT",
    "UNKNOWN_ACTION",
    "ActionModel",
    "ActionUse",
    "Reach",
    "ScriptInput",
    "check_entry",
    "known_actions",
    "models_of",
    "read_model",
]

AGENT = "agent"
"""Who receives a value that an agent is given."""

UNKNOWN_ACTION = "unknown"
"""Who receives one that is given to an unknown action, or to an unknown input of a known one."""

_CARRIED = ("boolean", "number", "text", "secret")
_LANGUAGES = ("bash", "sh", "github-script", "javascript", "python", "powershell")
_TRANSPORTS = ("argv", "environment", "file", "remote", "stdin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """One place that the text of an input reaches: *subject* is the program, the thing named, or the receiver."""

    surface: Surface
    subject: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptInput:
    """An input that is a program text, and how it gets to its interpreter.

    *by*: an argument (``bash -c``), a variable of the environment, a file, the standard input, or ``remote`` when it
    runs on another machine.
    """

    language: str
    by: str


@dataclass(frozen=True, kw_only=True)
class ActionModel:
    """What is known of one action. Names of inputs and outputs are in lower case.

    *since* and *until* bound the major versions it holds for. *environment* maps variables of later steps, and
    *outputs* the action's outputs, to the inputs whose text they carry, or to the kind of text they are.
    *variables* maps inputs that name variables to what their values reach. *environment_argv* is the program on whose
    command line the action puts every variable it inherits, *environment_sent* the receiver of variables that it
    sends. *agent*: it starts an agent, which inherits the environment. *advice*: what to do instead, by input.
    *credentials* are the inputs whose secrets matter on a command line, where it is not all: the secret that a user's
    name is kept in does not. *other*: what is known of inputs that are not named.
    """

    uses: str
    since: int | None = None
    until: int | None = None
    source: str = ""
    checked: str = ""
    reaches: Mapping[str, tuple[Reach, ...]] = field(default_factory=dict)
    scripts: Mapping[str, ScriptInput] = field(default_factory=dict)
    uploads: frozenset[str] = frozenset()
    environment: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    safe: frozenset[str] = frozenset()
    credentials: frozenset[str] | None = None
    advice: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, tuple[Reach, ...]] = field(default_factory=dict)
    environment_argv: str = ""
    environment_sent: str = ""
    agent: bool = False
    other: Literal["safe", "unknown"] = "unknown"

    def takes_credential(self, name: str) -> bool:
        """Whether a secret in the input *name* (lower case) is one that no command line may have."""
        return self.credentials is None or name in self.credentials

    def knows(self, name: str) -> bool:
        """Whether it is known what becomes of the input *name* (lower case)."""
        return (
            self.other == "safe"
            or name in self.reaches
            or name in self.scripts
            or name in self.uploads
            or name in self.safe
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionUse:
    """The parts of ``uses: owner/repository/path@ref``; *name* is all before the ``@``."""

    name: str
    ref: str

    _MAJOR = re.compile(r"v?(\d{1,3})(?:\.|$)")

    @staticmethod
    def parse(uses: str) -> ActionUse:
        """The parts of the text of ``uses``."""
        name, _, ref = uses.partition("@")
        return ActionUse(name=name.strip().rstrip("/"), ref=ref.strip())

    def major(self, comment: str = "") -> int | None:
        """The major version that the ref says, or a *comment* such as ``# v4.1.2`` behind a commit."""
        found = ActionUse._MAJOR.match(self.ref) or ActionUse._MAJOR.match(comment.lstrip("# ").strip())
        return int(found[1]) if found is not None else None


def models_of(
    use: ActionUse, *, major: int | None = None, custom: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[ActionModel, ...]:
    """The models that may hold for *use*: more than one when versions differ and the *major* one is not known.

    *custom* are entries of the configuration, by name: one of them takes the place of ours.
    """
    name = use.name.lower()
    for key, entry in (custom or {}).items():
        if key.lower() == name:
            return (_custom(key, json.dumps(entry, sort_keys=True)),)
    models = _models(name) or _models(f"*/{name.rpartition('/')[2]}")
    if major is None or len(models) < 2:
        return models
    return tuple(
        model
        for model in models
        if (model.since is None or major >= model.since) and (model.until is None or major <= model.until)
    )


@cache
def _custom(name: str, text: str) -> ActionModel:
    return read_model({"uses": name, **json.loads(text)})


def known_actions() -> tuple[ActionModel, ...]:
    """Every model of the data file, in its order."""
    return tuple(model for name in _entries() for model in _models(name))


@cache
def _entries() -> dict[str, list[dict[str, Any]]]:
    """Name in lower case -> the entries about it."""
    loaded = load_table("actions")
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in loaded["actions"]:
        for name in (entry["uses"], *entry.get("also", ())):
            found.setdefault(name.lower(), []).append({**entry, "uses": name})
    return found


@cache
def _models(name: str) -> tuple[ActionModel, ...]:
    return tuple(read_model(entry) for entry in _entries().get(name, ()))


def read_model(entry: Mapping[str, Any]) -> ActionModel:
    """The model that an entry of the data file describes (see ``lint/schemas/actions-v1.json``)."""
    reaches: dict[str, list[Reach]] = {}
    for key, surface in _BY_SUBJECT.items():
        for subject, inputs in entry.get(key, {}).items():
            for name in inputs:
                reaches.setdefault(name.lower(), []).append(Reach(surface=surface, subject=subject))
    for name in entry.get("agent", ()):
        reaches.setdefault(name.lower(), []).append(Reach(surface=Surface.THIRD_PARTY, subject=AGENT))
    return ActionModel(
        uses=entry["uses"],
        since=entry.get("since"),
        until=entry.get("until"),
        source=entry.get("source", ""),
        checked=entry.get("checked", ""),
        reaches={name: tuple(found) for name, found in reaches.items()},
        scripts={name.lower(): ScriptInput(**value) for name, value in entry.get("script", {}).items()},
        variables=_variables(entry),
        uploads=frozenset(name.lower() for name in entry.get("upload", ())),
        environment=_carried(entry.get("environment", {}), lower=False),
        outputs=_carried(entry.get("outputs", {}), lower=True),
        safe=frozenset(name.lower() for name in entry.get("safe", ())),
        credentials=(frozenset(name.lower() for name in entry["credentials"]) if "credentials" in entry else None),
        advice={name.lower(): text for name, text in entry.get("advice", {}).items()},
        environment_argv=entry.get("environment-argv", ""),
        environment_sent=entry.get("environment-sent", ""),
        agent="agent" in entry,
        other=entry.get("other", "unknown"),
    )


def _variables(entry: Mapping[str, Any]) -> dict[str, tuple[Reach, ...]]:
    found: dict[str, tuple[Reach, ...]] = {}
    for key, surface in _VARIABLES.items():
        for name, subject in entry.get(key, {}).items():
            found[name.lower()] = (*found.get(name.lower(), ()), Reach(surface=surface, subject=subject))
    return found


def _carried(table: Mapping[str, Any], *, lower: bool) -> dict[str, str | tuple[str, ...]]:
    return {
        name.lower() if lower else name: value if isinstance(value, str) else tuple(each.lower() for each in value)
        for name, value in table.items()
    }


# Keys of an entry that map a subject to inputs.
_BY_SUBJECT = {
    "argv": Surface.ARGV,
    "name": Surface.NAME,
    "file": Surface.FILE,
    "sent": Surface.THIRD_PARTY,
}
_VARIABLES = {"variables-argv": Surface.ARGV, "variables-sent": Surface.THIRD_PARTY}
_LISTS = ("agent", "credentials", "upload", "safe")
_TEXTS = ("environment-argv", "environment-sent")
_KEYS = (*_BY_SUBJECT, *_LISTS, *_TEXTS, *_VARIABLES, "advice", "script", "environment", "outputs", "other")


def check_entry(entry: object) -> list[str]:
    """What is wrong with an entry of the configuration, a sentence each; nothing when it can be read."""
    if not isinstance(entry, dict):
        return ["the model of an action is a mapping"]
    wrong = [f"`{key}` is no key of a model; it may have {_listed(_KEYS)}" for key in entry if key not in _KEYS]
    for key in _BY_SUBJECT:
        table = entry.get(key, {})
        if not isinstance(table, dict) or not all(_is_names(names) for names in table.values()):
            wrong.append(f"`{key}` maps a text to a list of inputs")
    wrong += [f"`{key}` is a list of inputs" for key in _LISTS if not _is_names(entry.get(key, []))]
    for key in ("environment", "outputs"):
        table = entry.get(key, {})
        if not isinstance(table, dict) or not all(value in _CARRIED or _is_names(value) for value in table.values()):
            wrong.append(f"`{key}` maps a name to a list of inputs, or to {_listed(_CARRIED)}")
    scripts = entry.get("script", {})
    if not isinstance(scripts, dict) or not all(_is_script(value) for value in scripts.values()):
        wrong.append(
            f"`script` maps an input to its `language` ({_listed(_LANGUAGES)}) and `by` ({_listed(_TRANSPORTS)})"
        )
    for key in ("advice", *_VARIABLES):
        table = entry.get(key, {})
        if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
            wrong.append(f"`{key}` maps an input to a text")
    wrong += [f"`{key}` is a text" for key in _TEXTS if not isinstance(entry.get(key, ""), str)]
    if entry.get("other", "safe") not in {"safe", "unknown"}:
        wrong.append("`other` is `safe` or `unknown`")
    return wrong


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name for name in value)


def _is_script(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"language", "by"}
        and value["language"] in _LANGUAGES
        and value["by"] in _TRANSPORTS
    )


def _listed(words: Sequence[str] | Iterable[str]) -> str:
    quoted = [f"`{word}`" for word in words]
    return " and ".join((", ".join(quoted[:-1]), quoted[-1]))
