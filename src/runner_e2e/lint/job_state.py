"""What a job carries from step to step, and what one step sees of it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.masks import NO_MASKS, Masks
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.expression_data import Data
    from runner_e2e.lint.shell.results import Files
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.workflow import Block

__all__ = ["JobState", "Scope", "Visible"]


@dataclass(slots=True)
class JobState:
    """What steps of one job leave for the next ones. Scripts and actions change it in place."""

    environment: dict[str, Value]
    """Variables of workflow and job, and what ``$GITHUB_ENV`` added."""
    files: Files
    path: Value = EMPTY
    """Folders that ``$GITHUB_PATH`` put before the others, each with a colon."""
    any_variable: Value = EMPTY
    """Text that was written to ``$GITHUB_ENV`` under names that are not known."""
    in_container: bool = False
    container: Mapping[str, Value] = field(default_factory=dict)
    """Variables that the container of the job was made with: scripts find them, expressions and headers do not."""
    windows: bool = False
    masks: Masks = NO_MASKS
    """What steps have registered to be hidden in the log."""
    from_file: tuple[str, ...] = ()
    """Names of confidential variables that ``$GITHUB_ENV`` set."""
    checkouts: tuple[str, ...] = ()
    """Folders of the workspace, other than itself, where a step has checked this repository out."""
    caches: tuple[tuple[Value, Value], ...] = ()
    """Paths and key of each cache that is saved when the job ends."""
    holds_others: bool = False
    """Whether the workspace may hold code that is not of this commit."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Where steps stand: a job of a workflow, or a composite action that a step uses."""

    reader: Reader
    contexts: Mapping[str, Data]
    """Contexts of every step here, without ``env`` and ``steps``."""
    defaults: tuple[Block, ...] = ()
    """``defaults.run`` of job and workflow, the nearer first."""
    inherited: Mapping[str, Value] = field(default_factory=dict)
    """Variables of the step that uses the action."""
    outputs: dict[str, Data] = field(default_factory=dict)
    """Step id (lower case) -> what ``steps`` says of it."""

    @property
    def named(self) -> bool:
        """Whether the page of the run shows the names of these steps: it does not for those of an action."""
        return not self.inherited


@dataclass(frozen=True, kw_only=True)
class Visible:
    """What one step sees: its variables, and the contexts its expressions may use."""

    environment: Mapping[str, Value]
    contexts: Mapping[str, Data]
