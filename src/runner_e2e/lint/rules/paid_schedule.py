"""A paid run that nobody starts has a plan, a claim, and its selection in the workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.cron import runs_a_day
from runner_e2e.lint.paid.events import jobs_on, written_triggers
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.scheduled import emptied, selects_nothing
from runner_e2e.lint.workflow import Block, list_of
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run
    from runner_e2e.yaml_positions import Node

__all__ = ["RULE"]

ID = "paid-schedule"
EXPLANATION = """\
A paid workflow runs by a schedule, and nothing in it bounds what it spends.

Nobody looks at a scheduled run before it pays, and nobody has reserved its cost. So the workflow does it itself:

- `command: plan` in a job that the paid job needs: it selects the cells, and refuses what is over the cap;
- `command: claim` behind it: GitHub may start a run twice, and only the one that holds the claim pays;
- not more than once an hour;
- what selects the cells and their keys comes from no input alone: in a scheduled run every input is empty, whatever
  its `default:` says. Write `groups: ${{ inputs.groups || 'nightly' }}`."""

MOST_RUNS_A_DAY = 24


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the schedule of a paid workflow."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    trigger = next((node for name, node in written_triggers(paid.workflow) if name == "schedule"), None)
    started = jobs_on(paid, "schedule") if trigger is not None else ()
    if trigger is None or not started:
        return ()
    _often(report, paid)
    for job in started:
        _bounded(report, paid, job, trigger)
    _selected(report, paid, started)
    return report.findings.values()


def _often(report: Report, paid: PaidWorkflow) -> None:
    for item in list_of(Block(paid.workflow.get("on")).get("schedule")):
        cron = Block(item).get("cron")
        runs = runs_a_day(cron.value) if isinstance(cron, Scalar) else None
        if runs is not None and runs > MOST_RUNS_A_DAY and cron is not None:
            report.add(
                paid.frame,
                cron,
                f"this schedule pays {runs} times a day",
                why="every run spends money, and nobody looks at it before",
                fix="run it once an hour at most",
                level="warning",
            )


def _bounded(report: Report, paid: PaidWorkflow, job: PaidJob, trigger: Node) -> None:
    for command, why in (
        ("plan", "nothing selects the cells and refuses what is over the cap"),
        ("claim", "GitHub may start a scheduled run twice, and both would pay"),
    ):
        if not any(each.has(command) for each in job.before):
            report.add(
                paid.frame,
                trigger,
                f"a schedule starts the paid job `{job.id}`, which waits for no `{command}`",
                why=why,
                fix=f"add a job with `command: {command}` behind the gate, and `needs:` it in `{job.id}`",
                way=[*job.calls, job.frame.place(job.key, "this job pays")],
            )


def _selected(report: Report, paid: PaidWorkflow, started: tuple[PaidJob, ...]) -> None:
    looked_at = dict.fromkeys(each for job in started for each in (job, *job.before))
    for leaf in (leaf for job in looked_at for leaf in job.leaves):
        nothing = selects_nothing(leaf) if leaf.command == "plan" else None
        if nothing is not None:
            _empty(report, leaf, *nothing)
        if leaf.command == "run" or paid.held(leaf):
            keys = {use.target for use in leaf.own if paid.pays(use)}
            for node, name in emptied(leaf, leaf.step.env, paid.repository.settings.names.environment | keys):
                _empty(report, leaf, node, name)
        if leaf.command == "run":
            for node, name in emptied(leaf, leaf.step.arguments, frozenset({"handle"})):
                _empty(report, leaf, node, name)


def _empty(report: Report, leaf: PaidStep, node: Scalar, name: str) -> None:
    report.add(
        leaf.frame,
        node,
        f"`{name}` is empty in a scheduled run",
        why="inputs, with their defaults, are there only when somebody starts the workflow",
        fix=f"write what a schedule runs: `${{{{ {name} || '…' }}}}`",
        level="warning",
    )


RULE = Rule(
    id=ID,
    summary="a schedule that pays without a plan, a claim or a selection",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=5.0,
)
