"""What the lint leaves out because it is known: a baseline, and files that did not change; and what it remembers."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner_e2e.errors import UsageError
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.cli.lint_remote import Target
    from runner_e2e.lint.cache import Cache
    from runner_e2e.lint.changes import Changes
    from runner_e2e.lint.report import Report
    from runner_e2e.lint.selection import Selection

__all__ = ["Known", "cache_options", "known_options"]

Result = TypeVar("Result")
File = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, kw_only=True)
class Known:
    """The options about what is known."""

    baseline: Path | None
    written: Path | None
    since: str | None

    def check(self) -> None:
        """Raises :class:`~runner_e2e.errors.UsageError` for options that exclude each other."""
        if self.written is not None and self.since is not None:
            raise UsageError(
                "`--write-baseline` and `--since` exclude each other",
                why="a baseline holds the findings of all files",
                fix="leave `--since` out",
            )

    def changes(self, current: Path) -> Changes | None:
        """What changed since the revision, None where all files count."""
        if self.since is None:
            return None
        from runner_e2e.lint.changes import changes_since

        return changes_since(self.since, current=current)

    def without_known(self, report: Report, target: Target, selection: Selection) -> Report:
        """*report* about *target* without what the baseline has."""
        if self.baseline is None:
            return report
        from runner_e2e.lint.baseline import Scope, read_baseline, without_known
        from runner_e2e.lint.files import find_root
        from runner_e2e.lint.selection import Selection as AnySelection

        baseline = read_baseline(self.baseline)
        everywhere = not target.paths and find_root(target.current) == target.current
        whole = self.since is None and everywhere and selection == AnySelection()
        scope = Scope(current=target.current, label=target.label)
        return without_known(report, baseline, scope, judge=whole)

    def write(self, report: Report, target: Target) -> bool:
        """Writes the baseline where that was asked for, and says so."""
        if self.written is None:
            return False
        from runner_e2e.lint.baseline import Scope, render_baseline

        text = render_baseline(report, Scope(current=target.current, label=target.label))
        beside = self.written.with_name(f".{self.written.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
            beside.replace(self.written)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise UsageError(
                f"cannot write {self.written}",
                why=error.strerror or str(error),
                fix="name a file in a folder that you may write to",
            ) from error
        count = len(report.findings)
        click.echo(f"{count} finding{'' if count == 1 else 's'} written to {self.written}")
        return True


def known_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--baseline``, ``--write-baseline`` and ``--since``; it receives one ``known``."""

    @functools.wraps(function)
    def with_known(*arguments: Any, **given: Any) -> Result:
        known = Known(baseline=given.pop("baseline"), written=given.pop("write_baseline"), since=given.pop("since"))
        known.check()
        return function(*arguments, known=known, **given)

    decorated: Callable[..., Result] = click.option(
        "--since", metavar="REV", help="Only what has to do with files that changed since this branch, tag or commit."
    )(with_known)
    decorated = click.option(
        "--write-baseline", metavar="FILE", type=File, help="Write all findings to a baseline, and end."
    )(decorated)
    return click.option("--baseline", metavar="FILE", type=File, help="Only findings that are not in this file.")(
        decorated
    )


def cache_options(function: Callable[..., Result]) -> Callable[..., Result]:
    """Gives a command ``--cache-dir`` and ``--no-cache``; it receives ``cache``: a function that opens it."""

    @functools.wraps(function)
    def with_cache(*arguments: Any, **given: Any) -> Result:
        folder, none = given.pop("cache_dir"), given.pop("no_cache")

        def opened() -> Cache | None:
            if none:
                return None
            from runner_e2e.lint.cache import default_folder, open_cache

            return open_cache(folder or default_folder(os.environ), chosen=folder is not None)

        return function(*arguments, cache=opened, **given)

    decorated: Callable[..., Result] = click.option("--no-cache", is_flag=True, help="Remember nothing.")(with_cache)
    return click.option(
        "--cache-dir",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where results are remembered. Default: runner-e2e/lint in the user's cache folder.",
    )(decorated)
