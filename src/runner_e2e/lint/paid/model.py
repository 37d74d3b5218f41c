"""The nouns: a workflow that pays, its jobs and their steps, with everything local that they call."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.paid.secrets import Level
from runner_e2e.lint.records import cached_property, dataclass
from runner_e2e.lint.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.finding import FlowPlace
    from runner_e2e.lint.paid.frames import Frame, Scope
    from runner_e2e.lint.paid.secrets import SecretUse
    from runner_e2e.lint.repository import Repository
    from runner_e2e.lint.workflow import Job, Step
    from runner_e2e.yaml_positions import Node, Scalar

__all__ = ["PaidJob", "PaidStep", "PaidWorkflow"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidStep:
    """One step that runs or uses something; one that uses a local composite action has steps *inside*.

    *command* is what this action is told to do, None for every other step. *own* are the secrets that the step itself
    takes, those of *outer*, whose action it stands in, not among them.
    """

    step: Step
    scope: Scope
    command: str | None
    own: tuple[SecretUse, ...]
    outer: PaidStep | None = None
    inside: list[PaidStep] = field(default_factory=list)
    opaque: bool = False
    """Whether it uses an action that is not in the repository, and not this one."""

    @property
    def frame(self) -> Frame:
        """The file it stands in."""
        return self.scope.frame

    @property
    def anchor(self) -> Node:
        """What shows the step: its `uses`, else its `run`, else all of it."""
        node = self.step.node
        assert node is not None
        return self.step.uses or self.step.run or node

    @property
    def shown(self) -> str:
        """The step, as messages name it."""
        name = self.step.text("name") or self.step.id
        if name and "${{" not in name:
            return f"the step `{name}`"
        if self.step.uses is not None:
            return f"the step with `{self.step.uses.value}`"
        first = self.step.run.value.strip().splitlines()[:1] if self.step.run is not None else []
        return f"the step `{first[0][:60]}`" if first else f"step {self.step.number + 1}"

    @property
    def chain(self) -> tuple[PaidStep, ...]:
        """The step and those whose actions it stands in, the inner first."""
        return (self, *(self.outer.chain if self.outer is not None else ()))

    @cached_property
    def secrets(self) -> tuple[SecretUse, ...]:
        """The secrets in its reach: its own, and what the `env` of an outer step gives to every step inside."""
        outer = self.outer.secrets if self.outer is not None else ()
        return (*self.own, *(use for use in outer if use.level is Level.STEP_ENV))

    def leaves(self) -> Iterator[PaidStep]:
        """The steps that really run: those inside instead of the one that uses their action."""
        if not self.inside:
            yield self
        for each in self.inside:
            yield from each.leaves()


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidJob:
    """One job as it runs for one caller. *caller* is the job that calls the workflow it stands in.

    *own* are the secrets of the job itself: its `env`, its container, what it hands to a workflow. A call whose
    workflow is in the repository has jobs *inside*; one that is elsewhere is *opaque*.
    """

    job: Job
    scope: Scope
    own: tuple[SecretUse, ...]
    workflow_secrets: tuple[SecretUse, ...]
    """Those of the `env` of its workflow."""
    caller: PaidJob | None = None
    steps: list[PaidStep] = field(default_factory=list)
    siblings: dict[str, PaidJob] = field(default_factory=dict)
    """Every job of its file, by id, for the same caller."""
    inside: list[PaidJob] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its name in `jobs`."""
        return self.job.id

    @property
    def opaque(self) -> bool:
        """Whether it calls a workflow that is not in the repository, or cannot be read."""
        return self.job.uses is not None and not self.inside

    @property
    def frame(self) -> Frame:
        """The file it stands in."""
        return self.scope.frame

    @property
    def workflow(self) -> Workflow:
        """The workflow it stands in."""
        assert isinstance(self.frame.block, Workflow)
        return self.frame.block

    @property
    def key(self) -> Scalar:
        """Its name in the file."""
        return self.job.key

    @cached_property
    def leaves(self) -> tuple[PaidStep, ...]:
        """Its steps in the order they run."""
        return tuple(leaf for step in self.steps for leaf in step.leaves())

    @cached_property
    def secrets(self) -> tuple[SecretUse, ...]:
        """Every secret that the job holds, at any level, with those inside of its local actions."""
        return (*self.workflow_secrets, *self.own, *(use for leaf in self.leaves for use in _chain_secrets(leaf)))

    @cached_property
    def needs(self) -> tuple[PaidJob, ...]:
        """The jobs it waits for directly."""
        return tuple(self.siblings[name] for name in self.job.needs if name in self.siblings and name != self.id)

    @cached_property
    def ancestors(self) -> tuple[PaidJob, ...]:
        """The jobs of its file that it waits for, also over others; the nearest first."""
        found: dict[int, PaidJob] = {}
        waiting = list(self.needs)
        while waiting:
            job = waiting.pop(0)
            if id(job) not in found and job is not self:
                found[id(job)] = job
                waiting += job.needs
        return tuple(found.values())

    @cached_property
    def before(self) -> tuple[PaidJob, ...]:
        """The jobs that have to end before it: those it waits for, those that they call, and those of its callers."""
        own = (each for near in self.ancestors for each in (near, *near.inside))
        return (*own, *(self.caller.before if self.caller is not None else ()))

    @property
    def calls(self) -> tuple[FlowPlace, ...]:
        """The calls that led here from the workflow that GitHub starts."""
        return self.frame.trail

    def has(self, command: str) -> bool:
        """Whether one of its steps uses this action with *command*."""
        return any(leaf.command == command for leaf in self.leaves)


def _chain_secrets(leaf: PaidStep) -> tuple[SecretUse, ...]:
    return tuple(dict.fromkeys(use for step in leaf.chain for use in step.own))


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidWorkflow:
    """A workflow that pays.

    *called*: the file can only be called, and *jobs* show it without a caller; *has_callers*: a workflow of this
    repository calls it, and what depends on the caller is judged there.
    """

    frame: Frame
    workflow: Workflow
    repository: Repository
    jobs: tuple[PaidJob, ...]
    """Its jobs, with those of the workflows they call, callers before callees."""
    providers: frozenset[str]
    """Names (upper case) of the secrets that money is spent with."""
    runs: frozenset[int]
    """Identities of the steps that run a cell which may cost something."""
    called: bool = False
    has_callers: bool = False

    def pays(self, use: SecretUse) -> bool:
        """Whether a secret is, or may be, one that money is spent with."""
        return use.kind != "name" or use.name in self.providers

    @cached_property
    def paying(self) -> tuple[PaidJob, ...]:
        """The jobs that hold a provider's secret or run a cell, calls into local workflows not counted."""
        return tuple(job for job in self.jobs if not job.inside and self.is_paying(job))

    def is_paying(self, job: PaidJob) -> bool:
        """Whether *job* holds a provider's secret, or runs a cell."""
        return any(self.pays(use) for use in job.secrets) or any(id(leaf) in self.runs for leaf in job.leaves)

    def held(self, step: PaidStep) -> tuple[SecretUse, ...]:
        """The providers' secrets that a step takes."""
        return tuple(use for use in step.secrets if self.pays(use))
