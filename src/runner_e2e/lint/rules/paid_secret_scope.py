"""A provider's secret is in the one step that pays, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.secrets import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
    from runner_e2e.lint.paid.secrets import SecretUse
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-secret-scope"
EXPLANATION = """\
A provider's secret is in reach of more than the step that pays, or of more cells than the one that needs it.

The secret belongs into the `env:` of one step: the one with `command: run` of this action, or, in a workflow that
pays in another way, the one step that calls the provider. In the `env:` of the workflow or the job, in a container,
or in the `env:` of a local action with several steps it is given to every program of the job: installers, actions,
and whatever they load. In `run:` as `${{ secrets.X }}` it is written to a file.

Where several cells share a step, each takes its own secret only: `${{ matrix.credential == 'OPENAI_API_KEY' &&
secrets.OPENAI_API_KEY || '' }}`. `secrets[matrix.credential]`, `toJSON(secrets)` and `secrets: inherit` to a workflow
of another repository send every secret there is.

`lint: paid-workflows` in the catalog lists the workflows that may use providers' secrets; without it all may."""

_WHY = "every program that can read it can spend money, or give it away"
_SHARED = frozenset((Level.WORKFLOW, Level.JOB, Level.CONTAINER, Level.JOB_OTHER))
_FIX = "move it into the `env:` of the one step that pays"


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the places where a provider's secret does not belong."""
    paid = paid_workflow(run, document)
    report = Report(ID, _WHY)
    if paid is None:
        return ()
    for job in paid.jobs:
        for use in (*job.workflow_secrets, *job.own):
            if paid.pays(use):
                _of_job(report, job, use)
        payers = _payers(paid, job)
        for leaf in job.leaves:
            _of_step(report, paid, job, leaf, payers)
    _allowed(report, paid)
    return report.findings.values()


def _of_job(report: Report, job: PaidJob, use: SecretUse) -> None:
    """A secret of the job itself, or of its workflow."""
    if use.level in _SHARED:
        report.add(
            use.frame,
            use.span,
            f"{use.shown} is in {use.level.value}",
            fix=_FIX,
            why=f"every step has it there; {_WHY}",
        )
    elif use.kind in {"index", "all"}:
        _everything(report, use)
    elif use.level is Level.CALL and job.opaque:
        uses = job.job.uses
        report.add(
            use.frame,
            use.span,
            f"{use.shown} goes to `{uses.value if uses is not None else ''}`",
            why="what that workflow does with it cannot be seen here, and may change",
            fix="call a workflow of this repository, or copy that one into it",
        )


def _everything(report: Report, use: SecretUse) -> None:
    how = "a name that is not a constant" if use.kind == "index" else "all of `secrets`"
    report.add(
        use.frame,
        use.span,
        f"{how} sends every secret there is",
        why="GitHub cannot tell which one is needed, and gives all of them to the runner",
        fix="name each: `${{ matrix.credential == 'X_API_KEY' && secrets.X_API_KEY || '' }}`",
    )


def _payers(paid: PaidWorkflow, job: PaidJob) -> tuple[PaidStep, ...]:
    """The steps that may have a secret: those that run a cell, else the last one that takes any."""
    runs = tuple(leaf for leaf in job.leaves if leaf.command == "run")
    return runs or tuple(leaf for leaf in job.leaves if leaf.command is None and paid.held(leaf))[-1:]


def _of_step(report: Report, paid: PaidWorkflow, job: PaidJob, leaf: PaidStep, payers: tuple[PaidStep, ...]) -> None:
    for step in leaf.chain:
        for use in step.own:
            if not paid.pays(use):
                continue
            if use.kind in {"index", "all"}:
                _everything(report, use)
            elif use.level in {Level.STEP_RUN, Level.STEP_OTHER}:
                report.add(
                    use.frame,
                    use.span,
                    f"{use.shown} is in {use.level.value}",
                    why="the runner writes it to a file, which every later program of the job can read",
                    fix="give it to the step as a variable under `env:`",
                )
            elif step is not leaf and use.level is Level.STEP_ENV and len(step.inside) > 1:
                count = len(step.inside)
                report.add(
                    use.frame,
                    use.span,
                    f"{use.shown} is in the `env` of an action with {count} steps",
                    why=f"each of them has it there; {_WHY}",
                    fix="hand it over under `with:`, and give it to the one step inside that pays",
                )
            elif step is leaf and leaf not in payers:
                _wrong_step(report, leaf, use, payers)
    if leaf in payers:
        _selected(report, paid, job, leaf)


def _wrong_step(report: Report, leaf: PaidStep, use: SecretUse, payers: tuple[PaidStep, ...]) -> None:
    payer = payers[0] if payers else None
    own = leaf.command is not None
    report.add(
        use.frame,
        use.span,
        f"{leaf.shown} has {use.shown} and does not pay",
        why=f"`{leaf.command}` needs no provider; {_WHY}" if own else f"the job has another step that pays; {_WHY}",
        fix="give it to the step with `command: run` only"
        if payer is None or payer.command
        else "give it to one step only",
        level="error" if own or (payer is not None and payer.command is not None) else "warning",
        way=[] if payer is None else [payer.frame.place(payer.anchor, "the step that pays")],
    )


def _selected(report: Report, paid: PaidWorkflow, job: PaidJob, leaf: PaidStep) -> None:
    """Of several secrets in one step, each is there only for the cells that need it."""
    held = [use for use in leaf.secrets if paid.pays(use) and use.kind == "name"]
    several = len({use.name for use in held}) > 1
    for use in held:
        if several and not use.guarded and _serves_several(leaf, job):
            report.add(
                use.frame,
                use.span,
                f"{use.shown} is given to every cell, whatever it is paid with",
                why="a cell that is paid with another key can then spend with this one",
                fix=f"write `${{{{ matrix.credential == '{use.name}' && secrets.{use.name} || '' }}}}`",
            )


def _serves_several(leaf: PaidStep, job: PaidJob) -> bool:
    return leaf.command == "run" or job.job.matrix is not None


def _allowed(report: Report, paid: PaidWorkflow) -> None:
    """Only workflows of the list use providers' secrets; calls and actions are the business of their workflow."""
    globs = paid.repository.settings.paid_workflows
    if not globs or globs.match(paid.repository.relative(paid.frame.path)) or paid.called:
        return
    use = next((use for job in paid.jobs for use in job.secrets if paid.pays(use)), None)
    if use is None:
        return
    calls = use.frame.trail
    report.add(
        paid.frame,
        use.span if use.frame is paid.frame else calls[0].span,
        f"{use.shown} is used in a workflow that is not on the list",
        why="`lint: paid-workflows` of the catalog does not name it",
        fix="take the secret out, or add the workflow to the list in .github/runner-e2e.yml",
        way=[*calls, use.frame.place(use.node, "it is used here")] if calls else (),
    )


RULE = Rule(
    id=ID,
    summary="a provider's secret in reach of more than the step that pays",
    explanation=EXPLANATION,
    inspect=inspect,
    profile="paid",
    security_severity=8.5,
)
