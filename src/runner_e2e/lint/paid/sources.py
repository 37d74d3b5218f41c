"""Where a text of a workflow comes from, traced back through `env`, outputs, `needs`, matrices and calls."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING

from runner_e2e.lint.evaluation import EvaluationError, evaluate, value_of
from runner_e2e.lint.expression import ExpressionError, embedded, parse
from runner_e2e.lint.paid.frames import Scope
from runner_e2e.lint.paid.product import is_product_name
from runner_e2e.lint.paid.references import references
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.workflow import Action, Block, Workflow, entries, list_of, scalars
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.finding import FlowPlace
    from runner_e2e.lint.paid.frames import Frame, Given
    from runner_e2e.lint.paid.model import PaidWorkflow
    from runner_e2e.lint.paid.references import Reference
    from runner_e2e.lint.workflow import Job, Step
    from runner_e2e.yaml_positions import Node

__all__ = ["Kind", "Source", "constants", "decided_outside", "sources"]


class Kind(Enum):
    """What a text is made of."""

    LITERAL = "a constant"
    OURS = "an output of this action"
    COMMIT = "the commit of the run"
    RUN = "a fact about the run"
    INPUT = "an input"
    VARIABLE = "a variable of the repository"
    EVENT = "the event"
    SECRET = "a secret"  # noqa: S105 - words of a message
    SCRIPT = "a script"
    ACTION = "an action"
    UNKNOWN = "something that is not known here"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One origin: its *name* as messages show it, the way from there, and what changed the text on it.

    *through* names the step whose script or action made the text out of this one; empty where it came unchanged.
    """

    kind: Kind
    name: str
    trail: tuple[FlowPlace, ...] = field(default=(), compare=False)
    through: str = ""
    output: str = ""
    """Of this action: the output, in lower case."""

    @property
    def raw(self) -> bool:
        """Whether somebody outside of the default branch decides about the text."""
        return self.kind in {Kind.INPUT, Kind.VARIABLE, Kind.EVENT}


@dataclass(frozen=True)
class _Walk:
    """What one search has seen: workflows may hold circles, and ways that meet again and again."""

    visited: set[tuple[int, int, bool]] = field(default_factory=set)
    changed: bool = False

    def enter(self, node: Node, scope: Scope) -> bool:
        """Whether *node* is new here."""
        key = (id(node), id(scope.frame), self.changed)
        if key in self.visited:
            return False
        self.visited.add(key)
        return True

    def changing(self) -> _Walk:
        """The same search behind a step that makes another text."""
        return _Walk(self.visited, changed=True)


def sources(node: Node | None, scope: Scope, *, note: str = "used here") -> tuple[Source, ...]:
    """Where the text of *node* may come from, each origin once; the places of each way end at *node*."""
    found: dict[Source, Source] = {}
    for source in _of_node(node, scope, note, _Walk()):
        found.setdefault(source, source)
    return tuple(found)


def _of_node(node: Node | None, scope: Scope, note: str, walk: _Walk) -> Iterator[Source]:
    if node is None or not walk.enter(node, scope):
        return
    if not isinstance(node, Scalar):
        for scalar in scalars(node):
            yield from _of_node(scalar, scope, note, walk)
        return
    if "${{" not in node.value:
        yield Source(kind=Kind.LITERAL, name=node.value)
        return
    place = scope.frame.place(node, note)
    for reference in references(node):
        for source in _of_reference(reference, scope, walk):
            yield replace(source, trail=(*source.trail, place))


def _of_reference(reference: Reference, scope: Scope, walk: _Walk) -> Iterator[Source]:
    context = reference.context
    names = tuple(name.lower() if name is not None else None for name in reference.names)
    shown = ".".join((context, *(name or "*" for name in reference.names)))
    if context == "inputs":
        yield from _of_input(names, shown, scope, walk)
    elif context == "github":
        yield _of_github(names, shown)
    elif context == "env":
        yield from _of_variable(reference.names, shown, scope, walk)
    elif context == "needs":
        yield from _of_needs(reference.names, shown, scope, walk)
    elif context == "steps":
        yield from _of_steps(names, shown, scope, walk)
    elif context == "matrix":
        yield from _of_matrix(names, shown, scope, walk)
    elif context == "jobs":
        yield from _of_jobs(reference.names, shown, scope.frame, walk)
    else:
        kind = {"vars": Kind.VARIABLE, "secrets": Kind.SECRET}.get(context, Kind.RUN)
        yield Source(kind=kind, name=shown)


_COMMITS = frozenset(("sha", "workflow_sha"))
_EVENT = frozenset(("actor", "actor_id", "base_ref", "event", "head_ref", "ref", "ref_name", "triggering_actor"))
_OF_THE_REPOSITORY = frozenset(("repository", "organization", "enterprise"))


def _of_github(names: tuple[str | None, ...], shown: str) -> Source:
    first = names[0] if names else None
    second = names[1] if len(names) > 1 else None
    if first in _COMMITS:
        return Source(kind=Kind.COMMIT, name=shown)
    if first == "event" and second == "inputs":
        return Source(kind=Kind.INPUT, name=shown)
    if first is None or (first in _EVENT and not (first == "event" and second in _OF_THE_REPOSITORY)):
        return Source(kind=Kind.EVENT, name=shown)
    return Source(kind=Kind.RUN, name=shown)


def _of_input(names: tuple[str | None, ...], shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    inputs = scope.frame.inputs
    first = names[0] if names else None
    if inputs is None:
        yield Source(kind=Kind.INPUT, name=shown)
        return
    if first is None:
        for given in inputs.values():
            yield from _of_given(given, shown, walk)
        return
    if first in inputs:
        yield from _of_given(inputs[first], shown, walk)
    else:
        yield from _of_node(scope.frame.default(first), scope, f"the default of `{shown}`", walk)


def _of_given(given: Given, shown: str, walk: _Walk) -> Iterator[Source]:
    yield from _of_node(given.node, given.scope, f"goes into `{shown}`", walk)


def _of_variable(names: tuple[str | None, ...], shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    found = scope.environment(names[0]) if names and names[0] is not None else None
    if found is None:
        # A step before may have written it to $GITHUB_ENV.
        yield Source(kind=Kind.UNKNOWN, name=shown)
    else:
        yield from _of_node(found.node, found.scope, f"goes into `{shown}`", walk)


def _of_needs(names: tuple[str | None, ...], shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    frame = scope.frame
    if len(names) > 1 and names[1] == "result":
        return
    for name in scope.job.needs if scope.job is not None else ():
        job = frame.job(name)
        if job is not None and (not names or names[0] is None or names[0].lower() == name.lower()):
            yield from _of_job(job, names[2] if len(names) > 2 else None, shown, frame, walk)


def _of_jobs(names: tuple[str | None, ...], shown: str, frame: Frame, walk: _Walk) -> Iterator[Source]:
    """``jobs.<id>.outputs.<name>`` in the outputs of a called workflow."""
    job = frame.job(names[0]) if names and names[0] is not None else None
    if job is not None:
        yield from _of_job(job, names[2] if len(names) > 2 else None, shown, frame, walk)


def _of_job(job: Job, output: str | None, shown: str, frame: Frame, walk: _Walk) -> Iterator[Source]:
    note = f"goes into `{shown}`"
    if job.uses is None:
        scope = Scope(frame=frame, job=job, steps=job.steps, actions=frame.actions.get(job.id, {}))
        outputs: Node | None = job.get("outputs")
    else:
        callee = frame.callees.get(job.id)
        if callee is None or not isinstance(callee.block, Workflow):
            yield Source(kind=Kind.ACTION, name=shown)
            return
        scope, outputs = Scope(frame=callee), callee.block.call_outputs
    for key, value in entries(outputs):
        if output is None or key.value.lower() == output.lower():
            yield from _of_node(value if job.uses is None else Block(value).get("value"), scope, note, walk)


def _of_steps(names: tuple[str | None, ...], shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    if len(names) > 1 and names[1] in {"outcome", "conclusion"}:
        return
    output = names[2] if len(names) > 2 else None
    for step in scope.steps:
        if step.id and (not names or names[0] is None or names[0] == step.id.lower()):
            yield from _of_step(step, output, shown, scope, walk)


def _of_step(step: Step, output: str | None, shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    inner = scope.at(step)
    if step.run is not None:
        yield Source(kind=Kind.SCRIPT, name=shown)
        for node in (step.run, *(value for _, value in entries(step.env))):
            found = _of_node(node, inner, f"goes into the script of `{shown}`", walk.changing())
            yield from _changed(found, shown)
        return
    uses = step.uses.value if step.uses is not None else ""
    action = scope.actions.get(step.number)
    if is_product_name(uses) or (action is not None and action.is_product):
        yield Source(kind=Kind.OURS, name=shown, output=output or "")
    elif action is not None and isinstance(action.block, Action):
        steps = action.block.steps
        there = Scope(frame=action, steps=steps, outer=inner, actions=action.actions.get("", {}))
        for key, value in entries(action.block.outputs):
            if output is None or key.value.lower() == output:
                yield from _of_node(Block(value).get("value"), there, f"goes into `{shown}`", walk)
    else:
        yield Source(kind=Kind.ACTION, name=shown)
        for _, node in entries(step.arguments):
            found = _of_node(node, inner, f"goes into the action of `{shown}`", walk.changing())
            yield from _changed(found, shown)


def _changed(found: Iterator[Source], through: str) -> Iterator[Source]:
    for source in found:
        if source.kind is not Kind.LITERAL:
            yield replace(source, through=source.through or through)


def _of_matrix(names: tuple[str | None, ...], shown: str, scope: Scope, walk: _Walk) -> Iterator[Source]:
    matrix = scope.job.matrix if scope.job is not None else None
    first = names[0] if names else None
    note = f"goes into `{shown}`"
    if not isinstance(matrix, Mapping):
        yield from _of_node(matrix, scope, note, walk)
        return
    for key, value in matrix.entries():
        name = key.value.lower()
        if name == "include":
            for item in list_of(value):
                inner = item if isinstance(item, Scalar) or first is None else _entry(item, first)
                yield from _of_node(inner, scope, note, walk)
        elif name != "exclude" and (first is None or name == first):
            yield from _of_node(value, scope, note, walk)


def _entry(node: Node, name: str) -> Node | None:
    return next((value for key, value in entries(node) if key.value.lower() == name), None)


def decided_outside(source: Source, paid: PaidWorkflow) -> bool:
    """Whether somebody outside of the default branch decides about a text from *source*.

    Inputs of a workflow that is only called are what its callers give; these are judged where they call it.
    """
    if source.kind is Kind.INPUT and paid.called and paid.has_callers:
        return False
    return source.raw


def constants(node: Scalar) -> tuple[str, ...] | None:
    """All texts that *node* may be, when no context takes part; None otherwise."""
    if "${{" not in node.value:
        return (node.value,)
    try:
        places = embedded(node.value)
        if len(places) != 1 or places[0].end - places[0].start != len(node.value):
            return None
        expression = parse(node.value, start=places[0].inner_start, end=places[0].inner_end)
        return value_of(evaluate(expression, {})).constants
    except (ExpressionError, EvaluationError):
        return None
