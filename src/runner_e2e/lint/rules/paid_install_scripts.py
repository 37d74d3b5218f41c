"""What is installed before the paid step runs no program of a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.fixes.hygiene import add_install_option
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.installs import ACTIONS, VARIABLES, remedy_of
from runner_e2e.lint.paid.scripts import commands_of
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import Block
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "paid-install-scripts"
EXPLANATION = """\
A paid job installs packages, and the packages run programs of their own while they are installed.

A package of npm, pnpm, Yarn or Bun has lifecycle scripts; a source package of pip or uv runs its build; Composer has
scripts. One bad package out of hundreds can start a process that waits for the key, or change a program that the paid
step starts. In the paid step itself it has the key at once.

Install with `npm ci --ignore-scripts`, `pip install --only-binary=:all:`, `uv sync --no-build`, before the paid step;
what really needs its script (`npm rebuild NAME`) is named, and built in a job without secrets. `npx`, `pnpm dlx` and
`bunx` load and run what is not there. `.npmrc` with `ignore-scripts=true` and the variables of the tools count.

Followed are local actions, shell scripts of the repository, and scripts of `package.json`; not: other languages,
`make`, and what a container image does."""


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for installations in paid jobs, up to the last step that pays."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.paying:
        paying = [number for number, leaf in enumerate(job.leaves) if paid.held(leaf) or leaf.command == "run"]
        # With a secret of the whole job, every step has it.
        last = paying[-1] if paying and not any(map(paid.pays, job.own)) else len(job.leaves)
        for leaf in job.leaves[: last + 1]:
            _installs(report, paid, job, leaf)
    return report.findings.values()


def _installs(report: Report, paid: PaidWorkflow, job: PaidJob, leaf: PaidStep) -> None:
    environment = _known_variables(leaf)
    has_key = bool(paid.held(leaf)) or any(paid.pays(use) for use in (*job.own, *job.workflow_secrets))
    for command in commands_of(leaf, paid.repository):
        remedy = remedy_of(command, environment, paid.repository)
        if remedy is None:
            continue
        report.add(
            leaf.frame,
            command.span,
            f"`{command.shown}` runs programs of the packages that it installs",
            why="one of them has the provider's key at once" if has_key else "one of them can wait for the paid step",
            fix=remedy,
            confidence=Confidence.MEDIUM if command.trail else Confidence.HIGH,
            way=command.trail,
        )
    uses = leaf.step.uses
    name = uses.value.partition("@")[0].lower() if uses is not None else ""
    if uses is not None and name in ACTIONS and _switched_on(leaf, ACTIONS[name]):
        report.add(
            leaf.frame,
            uses,
            f"`{name}` runs programs of the packages that it installs",
            why="one of them can wait for the paid step",
            fix="install with a command that runs no scripts",
        )


def _switched_on(leaf: PaidStep, switch: str) -> bool:
    if not switch:
        return True
    node = Block(leaf.step.arguments).get(switch)
    return node is not None and not (isinstance(node, Scalar) and node.data in {False, None, "false"})


def _known_variables(leaf: PaidStep) -> dict[str, str]:
    """Variables of the step whose text is a constant."""
    found: dict[str, str] = {}
    for name in VARIABLES:
        for written in (name, name.lower()):
            given = leaf.scope.environment(written)
            if given is not None and isinstance(given.node, Scalar) and "${{" not in given.node.value:
                found[written] = given.node.value
    return found


RULE = Rule(
    id=ID,
    summary="an installation that runs programs of packages before the paid step",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=add_install_option,
    profile="paid",
    security_severity=7.5,
)
