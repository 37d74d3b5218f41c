"""``runner-e2e lint``: no confidential value reaches a command line."""

from __future__ import annotations

import gc
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.lint_output import output_options, write_report
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.linter import Report

__all__ = ["lint"]

_CONFIDENCES = ("low", "medium", "high")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@output_options
@click.option(
    "--fail-on",
    type=click.Choice(_CONFIDENCES),
    default="medium",
    show_default=True,
    help="Least confidence of a finding that makes the exit code 1.",
)
@click.option("--explain", metavar="RULE", help="Say what a rule is about, and end.")
@click.option("--trace", metavar="FILE:LINE", help="Show what is known about every variable before that line.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="Seconds of processor time for one file.",
)
@click.option("--jobs", type=click.IntRange(min=0), default=0, help="Processes for many files; 0: one a processor.")
def lint(  # noqa: PLR0917 - click passes them by name
    paths: tuple[Path, ...],
    form: str,
    output: Path | None,
    fail_on: str,
    explain: str | None,
    trace: str | None,
    time_limit: float,
    jobs: int,
) -> int:
    """Follow confidential values and secrets through workflows, actions and scripts.

    PATHS are workflow and action files, or folders. Without any: `.github/workflows`, `workflows-templates` and every
    `action.yml` below the current folder. What is confidential stands in `.github/runner-e2e.yml`, section
    `confidential`; without it, the inputs `selected-id` and `selected_id`.

    Exit code: 0 nothing found, 1 findings, 2 a file could not be read.
    """
    if explain is not None:
        click.echo(_explanation(explain))
        return 0
    place = _trace_place(trace) if trace is not None else None
    from runner_e2e.lint.linter import lint as run

    with _no_collection():
        report = run(
            paths,
            current=Path.cwd(),
            time_limit=time_limit,
            trace=place is not None,
            processes=jobs or len(os.sched_getaffinity(0)),
        )
    if place is not None:
        click.echo(_traced(report, *place))
        return 0
    write_report(report, form, output)
    return _exit_code(report, fail_on)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees live for one file: the collector of cycles would only look at everything again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _exit_code(report: Report, fail_on: str) -> int:
    if report.defects:
        return 4
    if report.problems:
        return 2
    least = _CONFIDENCES.index(fail_on) + 1
    return 1 if any(finding.confidence >= least for finding in report.findings) else 0


def _explanation(name: str) -> str:
    from runner_e2e.lint.rules import RULES

    found = next((rule for rule in RULES if rule.id == name), None)
    if found is None:
        raise UsageError(f"there is no rule `{name}`", fix=f"name one of: {', '.join(rule.id for rule in RULES)}")
    return f"{found.id}: {found.summary}\n\n{found.explanation}"


def _trace_place(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.+):([0-9]+)", text)
    if found is None:
        raise UsageError(f"`--trace {text}` has no line", fix="write the file and the line: `--trace FILE:LINE`")
    return found[1], int(found[2])


def _traced(report: Report, path: str, line: int) -> str:
    """The variables before the commands of that line; those that carry something first."""
    wanted = Path(path).resolve()
    blocks: dict[str, None] = {}
    for point in report.trace:
        span = point.origin.span(point.start, point.end)
        if not span.line <= line <= span.end_line or Path(span.path).resolve() != wanted:
            continue
        ordered = sorted(point.variables.items(), key=lambda item: (not item[1].taints, item[0]))
        command = point.origin.text[point.start : point.end].strip().splitlines()[:1]
        rows = [f"{span}: before `{command[0] if command else ''}`"]
        rows += [f"  {name} = {value}" for name, value in ordered]
        blocks["\n".join(rows)] = None
    if not blocks:
        raise UsageError(f"no command of a script stands at {path}:{line}", fix="name the line of a command in `run:`")
    return "\n".join(blocks)
