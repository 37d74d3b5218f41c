"""A file as one caller sees it: what the names in its expressions stand for."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import FlowPlace
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import Span
from runner_e2e.lint.workflow import Action, Workflow, entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.workflow import Job, Step
    from runner_e2e.yaml_positions import Node

__all__ = ["Frame", "Given", "Scope", "span_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """A node that a caller hands over, and where it stands there."""

    node: Node
    scope: Scope


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """A workflow or an action, for one caller.

    *inputs* (lower-case names) are what the caller gives, None where nobody calls: then a person or another
    repository gives them. *secrets* (upper-case names) likewise; *inherits*: the caller gives all it has.
    *trail* is the way of calls from the workflow that GitHub starts.
    """

    document: Document
    block: Workflow | Action
    inputs: Mapping[str, Given] | None = None
    secrets: Mapping[str, Given] = field(default_factory=dict)
    inherits: bool = False
    caller: Frame | None = None
    trail: tuple[FlowPlace, ...] = ()
    callees: dict[str, Frame] = field(default_factory=dict)
    """By the id of a calling job: the workflow it calls, as it sees it."""
    actions: dict[str, dict[int, Frame]] = field(default_factory=dict)
    """By the id of a job (empty in an action) and the number of a step: the local action it uses, as it sees it."""
    is_product: bool = False
    """Whether this is the action of this product."""

    @property
    def path(self) -> str:
        """The file, as messages name it."""
        return self.document.path

    def job(self, name: str) -> Job | None:
        """A job by its id."""
        if not isinstance(self.block, Workflow):
            return None
        return next((job for job in self.block.jobs if job.id == name), None)

    def default(self, name: str) -> Node | None:
        """The default of an input, by its lower-case name."""
        block = self.block
        declared = block.inputs if isinstance(block, Action) else block.inputs("workflow_call")
        return next((each.get("default") for each in declared if each.name.lower() == name), None)

    def span(self, node: Node) -> Span:
        """Where *node* stands; of several lines the first."""
        return span_of(node, self.path)

    def place(self, node: Node, note: str) -> FlowPlace:
        """*node* as a place of a way."""
        return FlowPlace(span=self.span(node), note=note)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scope:
    """Where an expression stands: in a job (None: at the top of the file), perhaps in a step among *steps*.

    *actions* are the local actions that steps of this scope use, as they see them, by the number of the step;
    *outer* is the step that uses the action in which this scope is.
    """

    frame: Frame
    job: Job | None = None
    steps: tuple[Step, ...] = ()
    step: Step | None = None
    actions: Mapping[int, Frame] = field(default_factory=dict)
    outer: Scope | None = None

    def at(self, step: Step | None) -> Scope:
        """The same scope, in *step*."""
        return Scope(
            frame=self.frame, job=self.job, steps=self.steps, step=step, actions=self.actions, outer=self.outer
        )

    def environment(self, name: str) -> Given | None:
        """The entry of the nearest ``env`` that defines *name*."""
        blocks = (
            (self.step.env if self.step is not None else None),
            (self.job.env if self.job is not None else None),
            (self.frame.block.env if isinstance(self.frame.block, Workflow) else None),
        )
        for number, block in enumerate(blocks):
            for key, value in entries(block):
                if key.value == name:
                    return Given(node=value, scope=self.at(None) if number == 0 else self)
        return self.outer.environment(name) if self.outer is not None else None


def span_of(node: Node, path: str) -> Span:
    """Where *node* stands in the file *path*; of several lines the first."""
    source = node.source
    line, column = source.position(node.start)
    end_line, end_column = source.position(node.end)
    if isinstance(node, Scalar) and node.style in {"|", ">"}:
        end_line, end_column = line, column + 1
    elif end_line != line:
        end_line, end_column = line, len(source.line(line)) + 1
    return Span(path=path, line=line, column=column, end_line=end_line, end_column=max(column, end_column))
