"""What a workflow audit is told and what it finds. Texts are redacted where they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.sandbox.audit_model import Audit, Exec
    from runner_e2e.sandbox.canary import Canary, Kind

__all__ = ["LEAKING", "JobRun", "Sighting", "StepRun", "Surface", "Verdict", "WorkflowAudit", "WorkflowOptions"]

Surface = Literal[
    "argv",
    "log",
    "job name",
    "step name",
    "step summary",
    "artifact name",
    "artifact file",
    "cache key",
    "step script",
    "workspace file",
    "temporary file",
    "home file",
    "other file",
    "environ",
    "output",
    "file command",
    "event file",
]
Verdict = Literal["clean", "leak", "incomplete"]

# Where others read the value: every process of the machine, everybody who sees the run, an agent that reads files.
# The rest is how a value is meant to travel: the event file, an environment, the files between two steps.
LEAKING: frozenset[Surface] = frozenset(
    {
        "argv",
        "log",
        "job name",
        "step name",
        "step summary",
        "artifact name",
        "artifact file",
        "cache key",
        "step script",
        "workspace file",
        "temporary file",
        "home file",
        "other file",
    }
)


@dataclass(frozen=True, kw_only=True)
class WorkflowOptions:
    """How to run the workflow.

    ``inputs`` and ``fields`` give a canary (None: a random one) to inputs and to dotted paths of the event.
    ``event`` is a payload to start from, ``event_name`` what triggers the workflow (default: read from it).
    ``local_repositories`` maps ``owner/name@ref`` to the directory that stands for it.
    """

    inputs: Mapping[str, str | None] = field(default_factory=dict)
    fields: Mapping[str, str | None] = field(default_factory=dict)
    event: Path | None = None
    event_name: str = ""
    local_repositories: Mapping[str, Path] = field(default_factory=dict)
    secret_file: Path | None = None
    variable_file: Path | None = None
    job: str = ""
    timeout: float = 600.0
    public: tuple[str, ...] = ()


@dataclass(kw_only=True)
class StepRun:
    """One program that the runner started for a step. ``step_id`` has one entry more for every composite action."""

    index: int
    job: str
    job_id: str
    name: str
    step_id: tuple[str, ...]
    stage: str
    program: str
    pid: int
    process: int | None = None
    status: int | None = None

    @property
    def words(self) -> str:
        """The step as reports name it."""
        return f"{self.job} / {self.name}"


@dataclass(frozen=True, kw_only=True)
class JobRun:
    """A job and how it ended: ``success``, ``failure``, or what act says."""

    job_id: str
    name: str
    result: str


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One place where a canary appeared. ``place`` says where exactly, ``text`` shows it with the value masked."""

    surface: Surface
    canary: str
    kind: Kind
    job: str = ""
    step: str = ""
    place: str = ""
    text: str = ""
    count: int = 1

    @property
    def leak(self) -> bool:
        """Whether others than the intended receiver read the value here."""
        return self.surface in LEAKING


@dataclass(kw_only=True)
class WorkflowAudit:
    """All that one run showed. ``gaps`` says what could not be seen or did not run; then the verdict is never clean."""

    workflow: str
    event_name: str
    canaries: tuple[Canary, ...]
    execs: Audit
    status: int = 0
    jobs: list[JobRun] = field(default_factory=list)
    steps: list[StepRun] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    leaking: list[tuple[Exec, StepRun | None]] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def leaks(self) -> list[Sighting]:
        """The sightings that are leaks."""
        return [sighting for sighting in self.sightings if sighting.leak]

    @property
    def verdict(self) -> Verdict:
        """``leak`` stands above ``incomplete``: what was seen is proven."""
        if self.leaks:
            return "leak"
        return "incomplete" if self.gaps else "clean"
