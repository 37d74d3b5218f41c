"""What has to be known of a workflow before it runs: its events and inputs, the labels and the actions it uses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner_e2e.cells.wording import suggestion
from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.yaml_positions import Mapping, Node, Scalar, Sequence, compose_file, plain, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Input", "Uses", "WorkflowFile", "read_action", "read_workflow"]

LABEL = re.compile(r"[A-Za-z0-9][\w.+-]*\Z")
QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input as the workflow declares it; ``kind`` is ``string`` unless it says otherwise."""

    name: str
    kind: str = "string"
    default: str | None = None
    required: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Uses:
    """A ``uses:`` of a step or job, with its place."""

    text: str
    place: Place

    @property
    def local(self) -> bool:
        """Whether it names a path of the repository."""
        return self.text.startswith("./") or self.text == "."

    @property
    def repository(self) -> str:
        """``owner/name@ref`` of a remote action or workflow, without its path; empty if it is none."""
        path, at, ref = self.text.partition("@")
        parts = path.split("/")
        return f"{parts[0]}/{parts[1]}@{ref}" if at and len(parts) >= 2 else ""

    @property
    def name(self) -> str:
        """``owner/name`` in lower case, as GitHub compares it."""
        return self.repository.partition("@")[0].lower()


@dataclass(frozen=True, kw_only=True)
class WorkflowFile:
    """One workflow or action file."""

    path: Path
    events: dict[str, Place] = field(default_factory=dict)
    inputs: dict[str, dict[str, Input]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    shells: tuple[str, ...] = ()
    uses: tuple[Uses, ...] = ()
    jobs: tuple[str, ...] = ()


def read_workflow(path: Path, *, name: str | None = None) -> WorkflowFile:
    """Reads the workflow at *path*. Raises :class:`ConfigurationError` when it is none."""
    shown = name or str(path)
    root = compose_file(path, name=shown)
    jobs = root.get("jobs") if isinstance(root, Mapping) else None
    on = (root.get("on") or root.get("true")) if isinstance(root, Mapping) else None
    if not isinstance(root, Mapping) or not isinstance(jobs, Mapping) or on is None:
        missing = [f"no `{key}`" for key, value in (("on", on), ("jobs", jobs)) if value is None]
        lack = (
            f"it has {' and '.join(missing) or 'no mapping of jobs'}"
            if isinstance(root, Mapping)
            else "it is no mapping"
        )
        raise ConfigurationError(
            "this is not a workflow",
            why="it is empty" if root is None else lack,
            fix="name a file of .github/workflows",
            place=Place(path=shown),
        )
    events = dict(read_events(on))
    return WorkflowFile(
        path=path,
        events={event: node.place for event, node in events.items()},
        inputs={event: dict(read_inputs(node)) for event, node in events.items() if event.startswith("workflow_")},
        labels=tuple(dict.fromkeys(read_labels(jobs))),
        shells=tuple(dict.fromkeys(texts_of(root, "shell"))),
        uses=tuple(read_uses(jobs)),
        jobs=tuple(key.value for key, _ in jobs.entries()),
    )


def read_action(directory: Path, *, name: str | None = None) -> WorkflowFile | None:
    """What the action in *directory* (*name* in messages) uses; None when there is no ``action.yml``."""
    for file in ("action.yml", "action.yaml"):
        path = directory / file
        if path.is_file():
            root = compose_file(path, name=f"{name}/{file}" if name else None)
            runs = root.get("runs") if isinstance(root, Mapping) else None
            if not isinstance(runs, Mapping):
                return WorkflowFile(path=path)
            return WorkflowFile(
                path=path, uses=tuple(read_uses(runs)), shells=tuple(dict.fromkeys(texts_of(runs, "shell")))
            )
    return None


def read_events(on: Node) -> Iterator[tuple[str, Node]]:
    on = resolved(on)
    if isinstance(on, Scalar):
        yield on.value, on
    elif isinstance(on, Sequence):
        for item in on:
            if isinstance(item, Scalar):
                yield item.value, item
    elif isinstance(on, Mapping):
        for key, value in on.entries():
            yield key.value, value if isinstance(value, Mapping) else key


def read_inputs(event: Node) -> Iterator[tuple[str, Input]]:
    inputs = event.get("inputs") if isinstance(event, Mapping) else None
    if not isinstance(inputs, Mapping):
        return
    for key, node in inputs.entries():
        data = plain(node)
        fields = data if isinstance(data, dict) else {}
        default = fields.get("default")
        options = fields.get("options")
        yield (
            key.value,
            Input(
                name=key.value,
                kind=str(fields.get("type", "string")),
                default=None if default is None else input_text(default),
                required=fields.get("required") is True,
                options=tuple(map(str, options)) if isinstance(options, list) else (),
            ),
        )


def input_text(value: object) -> str:
    """A default as GitHub passes it on."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_labels(jobs: Mapping) -> Iterator[str]:
    """Every label that may name a runner: written out, in an expression, or a value of the matrix behind it."""
    for _, job in jobs.entries():
        if not isinstance(job, Mapping):
            continue
        runs_on = job.get("runs-on")
        for text in scalars(runs_on):
            if "${{" not in text:
                yield text
                continue
            yield from QUOTED.findall(text)
            strategy = job.get("strategy")
            yield from (value for value in scalars(strategy) if LABEL.match(value))
            if "inputs." in text:
                yield from ("ubuntu-latest",)


def scalars(node: Node | None) -> Iterator[str]:
    stack = [resolved(node)] if node is not None else []
    while stack:
        each = stack.pop()
        if isinstance(each, Scalar):
            yield each.value
        elif isinstance(each, Sequence):
            stack += list(each)
        elif isinstance(each, Mapping):
            stack += [value for _, value in each.entries()]


def entries_named(node: Node, key: str) -> Iterator[Scalar]:
    """Every scalar that a mapping anywhere below *node* has under *key*."""
    stack = [resolved(node)]
    while stack:
        each = stack.pop()
        if isinstance(each, Sequence):
            stack += list(each)
        elif isinstance(each, Mapping):
            for name, value in each.entries():
                if name.value == key and isinstance(value, Scalar):
                    yield value
                elif key != "uses" or name.value not in {"with", "env"}:
                    stack.append(value)


def texts_of(node: Node, key: str) -> Iterator[str]:
    return (scalar.value for scalar in entries_named(node, key))


def read_uses(node: Node) -> Iterator[Uses]:
    for scalar in entries_named(node, "uses"):
        yield Uses(text=scalar.value.strip(), place=scalar.place)


def unknown(what: str, name: str, known: list[str], place: Place) -> Problem:
    """The problem of a name that the workflow does not have."""
    return Problem(what=f"the workflow has no {what} {name!r}", fix=suggestion(name, known), place=place)
