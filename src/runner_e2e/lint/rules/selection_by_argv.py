"""The cell to run is handed over in its variable, to the one step that runs it, and in no other way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.scripts import commands_of
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import entries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidStep
    from runner_e2e.lint.paid.scripts import ScriptCommand
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "selection-by-argv"
EXPLANATION = """\
A paid workflow names the cell in another way than by its variable.

The id belongs into `env:` of the step with `command: run`, in `PAPERCLIP_RUNNER_E2E_SELECTED_ID` or the variable that
the catalog names. There it is taken once and erased. On a command line (`runner-e2e run --id …`, `--case …`) every
process can read it while the cell runs. In the `env:` of the job or the workflow every step has it, the agent's
leftovers too. An input of the action (`with:`) is put into a variable that nobody erases.

An id that is a constant in the workflow is public anyway, and still reported on a command line: the agent would read
it."""

_SELECTORS = frozenset(("--id", "--case"))
_INPUTS = re.compile(r"(?:selected[-_]?)?(?:cell[-_]?)?id|cell|case|selection", re.IGNORECASE)


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for cells that are named on a command line, or for more than one step."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.jobs:
        names = paid.repository.settings.names.environment
        _for_every_step(report, job, names)
        for leaf in job.leaves:
            for command in commands_of(leaf, paid.repository):
                _command(report, leaf, command)
            if leaf.command == "run":
                _inputs(report, leaf)
    return report.findings.values()


def _for_every_step(report: Report, job: PaidJob, names: frozenset[str]) -> None:
    if job.job.uses is not None:
        return
    for block, where in ((job.job.env, "job"), (job.workflow.env, "workflow")):
        for key, _ in entries(block):
            if key.value in names:
                report.add(
                    job.frame,
                    key,
                    f"`{key.value}` is in the `env` of the {where}",
                    why="every step has it there, and what one of them leaves behind can read it while the cell runs",
                    fix="move it into the `env:` of the step with `command: run`",
                )


def _command(report: Report, leaf: PaidStep, command: ScriptCommand) -> None:
    texts = command.texts
    module = "-m" in texts[:-1] and texts[texts.index("-m") + 1] == "runner_e2e"
    if command.name != "runner-e2e" and not module:
        return
    verbs = [text for text in texts[1:] if text and not text.startswith("-") and text != "runner_e2e"]
    chosen = next((text.partition("=")[0] for text in texts if text.partition("=")[0] in _SELECTORS), None)
    if chosen is None or verbs[:1] != ["run"]:
        return
    report.add(
        leaf.frame,
        command.span,
        f"`runner-e2e run` gets the cell by `{chosen}`",
        why="every process on the machine can read this command line, the agent too",
        fix="use the action with `command: run`, and give the id in the variable that the catalog names",
        confidence=Confidence.MEDIUM if command.trail else Confidence.HIGH,
        way=command.trail,
    )


def _inputs(report: Report, leaf: PaidStep) -> None:
    for key, _ in entries(leaf.step.arguments):
        if _INPUTS.fullmatch(key.value):
            report.add(
                leaf.frame,
                key,
                f"the cell is given as the input `{key.value}`",
                why="the action has no such input, and what is given there stays in the environment of the step",
                fix="give it under `env:`, in PAPERCLIP_RUNNER_E2E_SELECTED_ID or the variable that the catalog names",
            )


RULE = Rule(
    id=ID,
    summary="a cell that is named in another way than by its variable",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=7.0,
)
