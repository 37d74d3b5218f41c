"""``runner-e2e lint --diff`` and ``--fix``: what would change, or the change itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.fix import Outcome
    from runner_e2e.lint.linter import Report

__all__ = ["FixCommand", "fix_options", "fixed", "with_fixes"]

_F = TypeVar("_F", bound="Callable[..., Any]")


class FixCommand(click.Command):
    """A command whose ``--fix`` takes a value only after ``=``: click alone would take the next path for it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Gives a bare ``--fix`` the value ``safe``."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(
            ctx, ["--fix=safe" if arg == "--fix" and at < end else arg for at, arg in enumerate(args)]
        )


def fix_options(command: _F) -> _F:
    """The options ``--fix`` (parameter *fix*: None, ``safe``, ``all``) and ``--diff`` (*diff*)."""
    diff = click.option("--diff", is_flag=True, help="Show as a patch what --fix would change, and write nothing.")
    fix = click.option(
        "--fix",
        type=click.Choice(["safe", "all"]),
        help="Repair what can be repaired: bare, or `=safe`, only so that workflows do the same; `=all` also the rest.",
    )
    return fix(diff(command))


def fixed(lint: Callable[[Mapping[Path, str]], Report], *, fix: str | None, diff: bool) -> Report:
    """Repairs files, or prints with *diff* how, as a patch alone on the standard output.

    *lint* reports on the files with the texts that it is given in place of some of them. The report is about the files
    as they are afterwards.
    """
    from runner_e2e.lint.fix import apply_fixes
    from runner_e2e.lint.fix_files import unified_diff, write_changes

    outcome = apply_fixes(lint, current=Path.cwd(), unsafe=fix == "all")
    if diff:
        click.echo(unified_diff(outcome.changes).encode("utf-8"), nl=False)
        click.echo(_summary(outcome, "would be fixed"), err=True)
        return outcome.before
    write_changes(outcome.changes)
    click.echo(_summary(outcome, "fixed"), err=True)
    return outcome.report


def _summary(outcome: Outcome, verb: str) -> str:
    applied, files = len(outcome.applied), len(outcome.changes)
    by_rule = Counter(finding.rule for finding, _ in outcome.applied)
    rules = ", ".join(f"{rule}: {count}" for rule, count in sorted(by_rule.items()))
    head = f"{applied} finding{'s' * (applied != 1)} {verb} in {files} file{'s' * (files != 1)}"
    rest = (
        f"; {outcome.withheld} more with --fix=all, which may change what a workflow does" if outcome.withheld else ""
    )
    return f"{head} ({rules}){rest}" if rules else f"{head}{rest}"


def with_fixes(report: Report) -> Report:
    """The report with the fix of every finding that has one, and a hint how to apply them."""
    from runner_e2e.lint.fix import proposals

    fixes = proposals(report.findings, current=Path.cwd())
    if not fixes:
        return report
    safe = sum(1 for fix in fixes.values() if fix.safe)
    rest = len(fixes) - safe
    ways = [f"{safe} with --fix"] * (safe > 0) + [f"{rest} {'more ' if safe else ''}with --fix=all"] * (rest > 0)
    hint = f"can be fixed: {', '.join(ways)}; --diff shows how"
    return replace(report, fixes=fixes, hints=(*report.hints, hint))
