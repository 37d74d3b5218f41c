"""Which secrets a part of a workflow holds, followed through calls and local actions."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

from runner_e2e.lint.paid.references import references
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import Origin
from runner_e2e.lint.workflow import Action, scalars
from runner_e2e.yaml_positions import Mapping, Scalar, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.lint.paid.frames import Frame, Given, Scope
    from runner_e2e.lint.paid.references import Reference
    from runner_e2e.lint.values import Span
    from runner_e2e.yaml_positions import Node

__all__ = ["Level", "SecretUse", "entries_of", "inherited_secrets", "secrets_in"]


class Level(Enum):
    """Where a secret is put, in words that follow "in"."""

    WORKFLOW = "the `env` of the workflow"
    JOB = "the `env` of the job"
    CONTAINER = "the container of the job"
    JOB_OTHER = "a field of the job"
    CALL = "the call of a workflow"
    STEP_ENV = "the `env` of the step"
    STEP_WITH = "an input of the step"
    STEP_RUN = "the text of the script"
    STEP_OTHER = "a field of the step"


@dataclass(frozen=True, kw_only=True, eq=False)
class SecretUse:
    """One secret at ``[start, end)`` of *node*, a scalar of *frame*.

    *name* is upper case, ``*`` for all secrets of the repository: how they come is *kind* (an index that is no
    constant, the whole context, ``secrets: inherit``). *target* is the variable or input that gets it.
    """

    name: str
    kind: Literal["name", "index", "all", "inherit"]
    frame: Frame
    node: Scalar
    start: int
    end: int
    level: Level
    guarded: bool
    target: str = ""

    @property
    def span(self) -> Span:
        """Where it stands."""
        origin = Origin(path=self.frame.path, text=self.node.value, locate=self.node.position)
        return origin.span(self.start, self.end)

    @property
    def shown(self) -> str:
        """The secret, as messages name it."""
        return f"`secrets.{self.name}`" if self.kind == "name" else "every secret of the repository"


def entries_of(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Names and values of an ``env`` or ``with``; an expression that stands for the whole has no name."""
    if isinstance(node, Mapping):
        yield from ((key.value, value) for key, value in node.entries())
    elif node is not None:
        yield "", resolved(node)


def secrets_in(node: Node | None, scope: Scope, level: Level) -> Iterator[SecretUse]:
    """Every secret that a scalar below *node* carries; aliases inside are taken where they are written."""
    if isinstance(node, Scalar) or level in {Level.JOB_OTHER, Level.CONTAINER, Level.STEP_OTHER}:
        for scalar in scalars(node):
            yield from _of_scalar(scalar, scope, level, "")
        return
    for name, value in entries_of(node):
        for scalar in scalars(value):
            yield from _of_scalar(scalar, scope, level, name)


def inherited_secrets(scope: Scope, node: Scalar) -> SecretUse:
    """What ``secrets: inherit``, written in *node*, hands over."""
    return SecretUse(
        name="*",
        kind="inherit",
        frame=scope.frame,
        node=node,
        start=0,
        end=len(node.value),
        level=Level.CALL,
        guarded=False,
    )


class _Held(NamedTuple):
    name: str
    kind: Literal["name", "index", "all"]
    guarded: bool


def _of_scalar(node: Scalar, scope: Scope, level: Level, target: str) -> Iterator[SecretUse]:
    for reference in references(node):
        for held in dict.fromkeys(_held(reference, scope)):
            yield SecretUse(
                name=held.name,
                kind=held.kind,
                frame=scope.frame,
                node=node,
                start=reference.start,
                end=reference.end,
                level=level,
                guarded=held.guarded,
                target=target,
            )


def _held(reference: Reference, scope: Scope) -> Iterator[_Held]:
    """The secrets that *reference* stands for."""
    frame, names = scope.frame, reference.names
    given: Iterable[Given] = ()
    if reference.context == "secrets":
        first = names[0] if names else None
        if first is None:
            yield _Held("*", "index" if names else "all", reference.guarded)
        elif first.upper() in frame.secrets:
            given = (frame.secrets[first.upper()],)
        elif first.upper() != "GITHUB_TOKEN":
            yield _Held(first.upper(), "name", reference.guarded)
    elif isinstance(frame.block, Action) and reference.context == "inputs" and frame.inputs is not None:
        first = names[0] if names else None
        given = frame.inputs.values() if first is None else filter(None, (frame.inputs.get(first.lower()),))
    elif isinstance(frame.block, Action) and reference.context == "env" and names and names[0] is not None:
        found = scope.outer.environment(names[0]) if scope.outer is not None else None
        given = () if found is None else (found,)
    for each in given:
        for inner in references(each.node):
            for held in _held(inner, each.scope):
                yield held._replace(guarded=held.guarded or reference.guarded)
