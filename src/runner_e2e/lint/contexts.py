"""The contexts of a run: what ``github``, ``inputs``, ``secrets`` and the rest may hold, with their labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import (
    ANYTHING,
    BOOLEAN,
    NULL,
    NUMBER,
    Anything,
    Array,
    Choice,
    Data,
    Dictionary,
    Known,
    Textual,
    taints_of,
)
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import UNKNOWN, Hole, Label, Taint, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from runner_e2e.lint.settings import Names
    from runner_e2e.lint.workflow import Input, Workflow

__all__ = [
    "EVENT_PATH",
    "OUTCOMES",
    "PROCESS_ENVIRONMENT",
    "RUNNER_TEMP",
    "STRATEGY",
    "WORKSPACE",
    "Contexts",
    "MatrixKeys",
    "confidential",
    "github_context",
    "inputs_context",
    "is_cell_id",
    "matrix_context",
    "process_environment",
    "runner_context",
    "secret",
    "secrets_context",
]

WORKSPACE = "/github/workspace"
RUNNER_TEMP = "/runner/temp"
EVENT_PATH = "/github/event.json"
"""Stand-ins for the paths of a runner: scripts see them, and files written there are found again."""

PROCESS_ENVIRONMENT: Mapping[str, str] = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_ENV": "/github/env",
    "GITHUB_EVENT_PATH": EVENT_PATH,
    "GITHUB_OUTPUT": "/github/output",
    "GITHUB_PATH": "/github/path",
    "GITHUB_STATE": "/github/state",
    "GITHUB_STEP_SUMMARY": "/github/summary",
    "GITHUB_WORKSPACE": WORKSPACE,
    "RUNNER_TEMP": RUNNER_TEMP,
}
"""Variables whose value is known."""

_UNKNOWN_VARIABLES = (
    *(f"GITHUB_{name}" for name in ("ACTION", "ACTOR", "API_URL", "BASE_REF", "EVENT_NAME", "GRAPHQL_URL")),
    *(f"GITHUB_{name}" for name in ("HEAD_REF", "JOB", "REF")),
    *(f"GITHUB_{name}" for name in ("REF_NAME", "REF_TYPE", "REPOSITORY", "REPOSITORY_OWNER", "RUN_ATTEMPT", "RUN_ID")),
    *(f"GITHUB_{name}" for name in ("RUN_NUMBER", "SERVER_URL", "SHA", "TRIGGERING_ACTOR", "WORKFLOW", "WORKFLOW_REF")),
    *("HOME", "LANG", "PATH", "RUNNER_ARCH", "RUNNER_NAME", "RUNNER_OS", "RUNNER_TOOL_CACHE", "USER"),
)


class Contexts(Mapping[str, Data]):
    """Contexts by name, some of which are made only when an expression uses them."""

    def __init__(self, ready: Mapping[str, Data], later: Mapping[str, Callable[[], Data]]) -> None:
        self._ready = dict(ready)
        self._later = later

    def __getitem__(self, name: str) -> Data:
        if name not in self._ready:
            self._ready[name] = self._later[name]()
        return self._ready[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._ready, *self._later))

    def __len__(self) -> int:
        return len(self._ready.keys() | self._later.keys())


_TEXT = Textual(UNKNOWN)
OUTCOMES = Choice(tuple(Known(word) for word in ("success", "failure", "cancelled", "skipped")))
"""What ``result``, ``outcome`` and ``conclusion`` may be."""

STRATEGY = Dictionary.of({"fail-fast": BOOLEAN, "job-index": NUMBER, "job-total": NUMBER, "max-parallel": NUMBER})


# Names that hold a whole id; another confidential name may hold the case part alone.
_CELL_ID = re.compile(r"(?:^|\.)(?:(?:\w+_)?selected[-_])?id$", re.IGNORECASE)


def is_cell_id(name: str) -> bool:
    """Whether the value of this name is a whole id, ``SUITE.PROFILE.ENVIRONMENT.CASE``."""
    return _CELL_ID.search(name) is not None


def confidential(name: str) -> Value:
    """The text of a confidential value; two readings of it are known to be the same text."""
    taint = Taint(Label(kind="confidential", name=name))
    hole = Hole(frozenset((taint,)), symbol=name)
    if not is_cell_id(name):
        return Value(((hole,),))
    # SUITE.PROFILE.ENVIRONMENT.CASE: the first three are public names, the case part is not.
    public = (Hole(symbol=f"{name}: {part}") for part in ("suite", "profile", "environment"))
    return Value(((*(piece for part in public for piece in (part, ".")), hole),))


def secret(name: str) -> Value:
    """The text of a secret."""
    taint = Taint(Label(kind="secret", name=name))
    return Value(((Hole(frozenset((taint,)), symbol=name),),))


@cache
def process_environment() -> Mapping[str, Value]:
    """The variables that a runner gives to every step."""
    found = {name: Value.literal(text) for name, text in PROCESS_ENVIRONMENT.items()}
    for name in _UNKNOWN_VARIABLES:
        found[name] = _unknown_variable(name)
    return found


def _unknown_variable(name: str) -> Value:
    return Value(((Hole(symbol=name),),))


def inputs_context(declared: Iterable[Input], names: frozenset[str]) -> Data:
    """``inputs`` of a run that nobody described: any value of the declared type, confidential by *names*."""
    return Dictionary.of({each.name: _input(each, names) for each in declared})


def _input(declared: Input, names: frozenset[str]) -> Data:
    if declared.name.lower() in names:
        return Textual(confidential(f"inputs.{declared.name}"))
    if declared.type == "boolean":
        return BOOLEAN
    if declared.type == "number":
        return NUMBER
    if declared.type == "choice" and declared.options:
        return Choice.of(Known(option) for option in declared.options)
    return _TEXT


def github_context(workflow: Workflow | None, names: frozenset[str]) -> Data:
    """``github`` of a run of *workflow* (None: an action, whose trigger is not known)."""
    token = Textual(secret("github.token"))
    event: dict[str, Data] = {}
    event_name: Data = _TEXT
    called = workflow is None or "workflow_call" in workflow.triggers
    if workflow is None or called or "workflow_dispatch" in workflow.triggers:
        dispatched = workflow.inputs("workflow_dispatch") if workflow is not None else ()
        # Values of the event are texts, whatever type the input has.
        values = {each.name: _text_of_input(each, names) for each in dispatched}
        event["inputs"] = Dictionary.of(values, others=ANYTHING if called else NULL)
    if workflow is None or "repository_dispatch" in workflow.triggers:
        payload: dict[str, Data] = {name: Textual(confidential(f"client_payload.{name}")) for name in sorted(names)}
        event["client_payload"] = Dictionary.of(payload, others=ANYTHING)
    if workflow is not None and workflow.triggers and not called:
        event_name = Choice.of(Known(name) for name in workflow.triggers)
    return Dictionary.of(
        {
            "event": Dictionary.of(event, others=ANYTHING),
            "event_name": event_name,
            "event_path": Known(EVENT_PATH),
            "token": token,
            "workspace": Known(WORKSPACE),
            "env": Known(PROCESS_ENVIRONMENT["GITHUB_ENV"]),
            "output": Known(PROCESS_ENVIRONMENT["GITHUB_OUTPUT"]),
            "path": Known(PROCESS_ENVIRONMENT["GITHUB_PATH"]),
            "api_url": Textual(_unknown_variable("GITHUB_API_URL")),
            "graphql_url": Textual(_unknown_variable("GITHUB_GRAPHQL_URL")),
            "run_id": Textual(_unknown_variable("GITHUB_RUN_ID")),
            "step_summary": Known(PROCESS_ENVIRONMENT["GITHUB_STEP_SUMMARY"]),
        },
        others=_TEXT,
    )


def _text_of_input(declared: Input, names: frozenset[str]) -> Data:
    data = _input(declared, names)
    if data == BOOLEAN:
        return Choice((Known("true"), Known("false")))
    return _TEXT if data == NUMBER else data


_SECRET_NAME = re.compile(r"(?i:secrets)\s*(?:\.\s*([A-Za-z_][\w-]*)|\[\s*'([^']+)'\s*\])")
_SECRETS = re.compile("[Ss](?=[Ee][Cc][Rr][Ee][Tt][Ss])")


def secrets_context(text: str) -> Data:
    """``secrets``: each name that *text*, the source of the workflow, uses has a label of its own."""
    matches = (_SECRET_NAME.match(text, offset) for offset in _places_of_secrets(text))
    names = {found[1] or found[2] for found in matches if found is not None}
    return Dictionary.of(
        {name: Textual(secret(f"secrets.{name}")) for name in sorted(names)}, others=Textual(secret("secrets.*"))
    )


def _places_of_secrets(text: str) -> Iterator[int]:
    """Offsets of the word ``secrets`` in any case."""
    # Searching lower case text for a word is ten times faster than a pattern that does not mind the case; a few
    # letters (``İ``) become two, so that offsets would differ.
    lower = text.lower()
    if len(lower) != len(text):
        yield from (found.start() for found in _SECRETS.finditer(text))
        return
    offset = lower.find("secrets")
    while offset >= 0:
        yield offset
        offset = lower.find("secrets", offset + 7)


_SYSTEMS = (("ubuntu", "Linux"), ("macos", "macOS"), ("windows", "Windows"))


def runner_context(labels: tuple[str, ...]) -> Data:
    """``runner`` on a machine with *labels*."""
    words = " ".join(labels).lower()
    system: Data = _TEXT
    if "${{" not in words:
        system = next((Known(name) for word, name in _SYSTEMS if word in words), _TEXT)
    return Dictionary.of({"temp": Known(RUNNER_TEMP), "os": system}, others=_TEXT)


@dataclass(frozen=True, kw_only=True)
class MatrixKeys:
    """Keys of a matrix whose values are confidential (lower case): *always*, or *unless* they are constants.

    *used* are those of them that the workflow reads: a matrix that is made at run time has them.
    """

    always: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()

    @staticmethod
    def of(text: str, names: Names) -> MatrixKeys:
        """Those for the workflow with the source *text*."""
        always, unless = frozenset(name.lower() for name in names.matrix), names.inputs_of(text)
        lower = text.lower()
        used = (name for name in always | unless if f"matrix.{name}" in lower or f"matrix['{name}']" in lower)
        return MatrixKeys(always=always, unless=unless, used=frozenset(used))


def matrix_context(matrix: Data, keys: MatrixKeys) -> Data:
    """``matrix``, from the evaluated ``strategy.matrix``: for each key what any of its jobs has."""
    if isinstance(matrix, Choice):
        return Choice.of(matrix_context(option, keys) for option in matrix.options)
    if isinstance(matrix, Textual | Anything):
        return _open_matrix({}, Anything(taints_of(matrix)), keys)
    if not isinstance(matrix, Dictionary):
        return NULL
    found: dict[str, list[Data]] = {}
    for key, (name, data) in matrix.entries.items():
        if key not in {"include", "exclude"}:
            found.setdefault(name, []).extend(_items(data))
    base = set(found)
    open_ended: Data = NULL
    for addition in _items(matrix.get("include")):
        for option in addition.options if isinstance(addition, Choice) else (addition,):
            if isinstance(option, Dictionary):
                for name, data in option.entries.values():
                    found.setdefault(name, [] if name in base else [NULL]).append(data)
            elif isinstance(option, Anything | Textual):
                open_ended = Anything(taints_of(option))
    values = {name: _matrix_value(name, Choice.of(options), keys) for name, options in found.items()}
    if isinstance(open_ended, Anything):
        return _open_matrix(values, open_ended, keys)
    return Dictionary.of(values)


def _matrix_value(name: str, data: Data, keys: MatrixKeys) -> Data:
    if any(taint.label.kind == "confidential" for taint in taints_of(data)):
        return data  # it is known where it comes from
    unknown = any(not isinstance(option, Known) for option in (data.options if isinstance(data, Choice) else (data,)))
    named = name.lower() in keys.always or (unknown and name.lower() in keys.unless)
    return Textual(confidential(f"matrix.{name}")) if named else data


def _open_matrix(values: Mapping[str, Data], others: Anything, keys: MatrixKeys) -> Data:
    """A matrix that may have any other key too: those that are confidential by name among them."""
    known = {name.lower() for name in values}
    tainted = any(taint.label.kind == "confidential" for taint in others.taints)
    added = {} if tainted else {name: Textual(confidential(f"matrix.{name}")) for name in sorted(keys.used - known)}
    return Dictionary.of({**values, **added}, others=others)


def _items(data: Data) -> tuple[Data, ...]:
    if isinstance(data, Array):
        return data.items
    if isinstance(data, Choice):
        return tuple(item for option in data.options for item in _items(option))
    if data == NULL:
        return ()
    return (Anything(taints_of(data)),) if isinstance(data, Anything | Textual) else (data,)
