"""``runner-e2e lint``: no confidential value is seen, and nothing is paid by mistake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.lint_actionlint import actionlint_options
from runner_e2e.cli.lint_fix import FixCommand, Repairs, fix_options
from runner_e2e.cli.lint_known import Known, cache_options, known_options
from runner_e2e.cli.lint_output import output_options, write_report
from runner_e2e.cli.lint_remote import target_of
from runner_e2e.cli.lint_rules import explanation, print_rules, rule_options
from runner_e2e.cli.lint_run import FAIL_ON, FAIL_ON_DEFAULT, exit_code, no_collection, processors, with_usual_fixes
from runner_e2e.cli.ranges import Number, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.cache import Cache
    from runner_e2e.lint.checkers import Checker
    from runner_e2e.lint.report import Report
    from runner_e2e.lint.selection import Selection

__all__ = ["lint"]


@click.command(cls=FixCommand)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@output_options
@rule_options
@known_options
@cache_options
@actionlint_options
@fix_options
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default=FAIL_ON_DEFAULT,
    show_default=True,
    help="Least confidence of a finding that makes the exit code 1; a note never does.",
)
@click.option("--list-rules", is_flag=True, help="Show the profiles and the rules, and end.")
@click.option("--explain", metavar="RULE", help="Say what a rule is about, and end.")
@click.option("--trace", metavar="FILE:LINE", help="Show what is known about every variable before that line.")
@click.option(
    "--time-limit",
    type=Number(min=0.1, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds of processor time for one file.",
)
@click.option("--jobs", type=Whole(min=0), default=0, help="Processes for many files; 0: one a processor.")
@no_collection()
def lint(  # noqa: PLR0917 - click passes them by name
    paths: tuple[Path, ...],
    form: str,
    output: Path | None,
    selection: Selection,
    known: Known,
    cache: Callable[[], Cache | None],
    foreign: Callable[..., Checker | None],
    repairs: Repairs,
    fail_on: str,
    list_rules: bool,
    explain: str | None,
    trace: str | None,
    time_limit: float,
    jobs: int,
) -> int:
    """Follow confidential values and secrets through workflows, actions and scripts.

    PATHS are workflow and action files, or folders, or one repository of GitHub as `OWNER/NAME` or `OWNER/NAME@REF`.
    Without any: `.github/workflows`, `workflows-templates` and every `action.yml` below the current folder. What is
    confidential stands in `.github/runner-e2e.yml`, section `confidential`; without it, the inputs `selected-id` and
    `selected_id`.

    Exit code: 0 nothing found, 1 findings, 2 a file could not be read.
    """
    if list_rules:
        print_rules()
        return 0
    if explain is not None:
        click.echo(explanation(explain))
        return 0
    repairs.check(trace=trace)
    with target_of(paths) as target:
        target.refuse(since=known.since, trace=trace, fix=repairs.fix, diff=repairs.diff)
        changes, checker = known.changes(target.current), foreign(needed=selection.only_foreign)

        def report_on(texts: Mapping[Path, str] | None = None, *, traced: bool = False) -> Report:
            from runner_e2e.lint.linter import lint as run

            return run(
                target.paths,
                current=target.current,
                time_limit=time_limit,
                trace=traced,
                processes=jobs or processors(),
                selection=selection,
                label=target.label,
                texts=texts,
                cache=cache(),
                changes=changes,
                foreign=None if traced or texts is not None else checker,
            )

        if trace is not None:
            from runner_e2e.cli.lint_trace import trace_place, traced

            place = trace_place(trace)
            click.echo(traced(report_on(traced=True), *place))
            return 0
        if repairs.wanted:
            repairs.apply(lambda texts: known.without_known(report_on(texts), target, selection))
        report = report_on()
        if known.write(report, target):
            return exit_code(report, "never")
        report = known.without_known(report, target, selection)
        if not repairs.diff:
            write_report(with_usual_fixes(report, form, target), form, output, target)
        return exit_code(report, fail_on)
