"""``runner-e2e lint --diff`` and ``--fix``: what would change, or the change itself."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.errors import UsageError
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.commits import PinResolver
    from runner_e2e.lint.fix import Outcome
    from runner_e2e.lint.report import Report

__all__ = ["FixCommand", "Repairs", "fix_options"]

Result = TypeVar("Result")


class FixCommand(click.Command):
    """A command whose ``--fix`` takes a value only after ``=``: click alone would take the next path for it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Gives a bare ``--fix`` the value ``safe``."""
        end = args.index("--") if "--" in args else len(args)
        given = ["--fix=safe" if arg == "--fix" and at < end else arg for at, arg in enumerate(args)]
        return super().parse_args(ctx, given)


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """What is to be repaired: nothing, what is safe, or all; whether it is only shown; who knows commits of tags."""

    fix: str | None
    diff: bool
    resolve: bool

    @property
    def wanted(self) -> bool:
        """Whether anything is to be repaired or shown."""
        return self.fix is not None or self.diff

    def check(self, *, trace: str | None) -> None:
        """Raises :class:`~runner_e2e.errors.UsageError` for options that exclude each other."""
        if self.wanted and trace is not None:
            raise UsageError("`--trace` repairs nothing", fix="leave out `--fix` and `--diff`, or `--trace`")
        if self.resolve and not self.wanted:
            raise UsageError("`--resolve` is about fixes", fix="add `--fix` or `--diff`")

    def apply(self, lint: Callable[[Mapping[Path, str]], Report]) -> None:
        """Repairs files, or prints with ``--diff`` how, as a patch alone on the standard output.

        *lint* reports on the files with the texts that it is given in place of some of them.
        """
        from runner_e2e.lint.fix import apply_fixes
        from runner_e2e.lint.fix_files import unified_diff, write_changes

        outcome = apply_fixes(lint, current=Path.cwd(), unsafe=self.fix == "all", pins=self._pins())
        if self.diff:
            click.echo(unified_diff(outcome.changes).encode("utf-8"), nl=False)
        else:
            write_changes(outcome.changes)
        summary = _summary(outcome, "would be fixed" if self.diff else "fixed")
        # What a repair leaves is in the report that follows; a preview has none.
        click.echo(f"{summary}{_left(outcome)}" if self.diff else summary, err=True)

    def _pins(self) -> PinResolver | None:
        if not self.resolve:
            return None
        from runner_e2e.cli.tag_commits import TagCommits

        return TagCommits()


def fix_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """The options ``--fix``, ``--diff`` and ``--resolve``, as the parameter *repairs*."""

    @click.option(
        "--fix",
        type=click.Choice(["safe", "all"]),
        help="Repair what can be repaired: bare, or `=safe`, only so that workflows do the same; `=all` also the rest.",
    )
    @click.option("--diff", is_flag=True, help="Show as a patch what --fix would change, and write nothing.")
    @click.option("--resolve", is_flag=True, help="Ask github.com for the commits of tags, to pin actions to them.")
    @functools.wraps(command)
    def wrapped(*args: Any, fix: str | None, diff: bool, resolve: bool, **kwargs: Any) -> Result:
        return command(*args, repairs=Repairs(fix=fix, diff=diff, resolve=resolve), **kwargs)

    return wrapped


def _summary(outcome: Outcome, verb: str) -> str:
    applied, files = len(outcome.applied), len(outcome.changes)
    by_rule = Counter(finding.rule for finding, _ in outcome.applied)
    rules = ", ".join(f"{rule}: {count}" for rule, count in sorted(by_rule.items()))
    head = f"{applied} finding{'s' * (applied != 1)} {verb} in {files} file{'s' * (files != 1)}"
    rest = (
        f"; {outcome.withheld} more with --fix=all, which may change what a workflow does" if outcome.withheld else ""
    )
    return f"{head} ({rules}){rest}" if rules else f"{head}{rest}"


def _left(outcome: Outcome) -> str:
    """How many findings no fix is known for."""
    left = len(outcome.report.findings) - outcome.withheld
    return f"; {left} without a fix" if left > 0 else ""
