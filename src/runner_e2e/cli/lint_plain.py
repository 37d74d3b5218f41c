"""``runner-e2e lint`` with nothing but paths and the plainest options, understood without click.

To load click and to declare thirty options takes as long as to lint four hundred files out of the cache. Whatever is
not understood here, or would be a mistake, is left to :mod:`runner_e2e.cli.lint`, which says the same of the rest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cli.lint_run import (
    FAIL_ON_DEFAULT,
    FORMAT_DEFAULT,
    FORMATS,
    exit_code,
    no_collection,
    processors,
    screen_text,
    with_usual_fixes,
)
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner_e2e.lint.cache import Cache
    from runner_e2e.lint.checkers import Checker

__all__ = ["PlainLint", "understood"]


@dataclass(kw_only=True)
class PlainLint:
    """A lint that is asked for in plain words."""

    paths: tuple[Path, ...] = ()
    form: str = FORMAT_DEFAULT
    cache_folder: Path | None = None
    no_cache: bool = False
    no_actionlint: bool = False

    @no_collection()
    def run(self) -> int:
        """Lints, writes the report to the screen, and returns the exit code."""
        from runner_e2e.cli.lint_remote import Target
        from runner_e2e.lint.linter import lint

        target = Target(paths=self.paths, current=Path.cwd())
        report = lint(
            target.paths,
            current=target.current,
            processes=processors(),
            foreign=self._checker(),
            cache=self._cache(),
        )
        text, _ = screen_text(with_usual_fixes(report, self.form, target), self.form, target)
        sys.stdout.write(text)
        return exit_code(report, FAIL_ON_DEFAULT)

    def _cache(self) -> Cache | None:
        if self.no_cache:
            return None
        from runner_e2e.lint.cache import default_folder, open_cache

        return open_cache(self.cache_folder or default_folder(os.environ), chosen=self.cache_folder is not None)

    def _checker(self) -> Checker | None:
        if self.no_actionlint:
            return None
        from runner_e2e.lint.actionlint import Actionlint

        return Actionlint.chosen(None, current=Path.cwd())


def understood(arguments: Sequence[str]) -> PlainLint | None:
    """What the *arguments* of ``runner-e2e lint`` ask for; None where click has to look at them."""
    if os.name != "posix" or (sys.stdout.encoding or "").lower() != "utf-8":
        return None  # click knows how to write there
    words = iter(arguments)
    plain = PlainLint()
    paths = []
    for word in words:
        if not word.startswith("-"):
            paths.append(word)
        elif not _set(plain, word, words):
            return None
    if not all(os.access(path, os.R_OK) for path in paths):
        return None  # a mistake, or a repository of GitHub
    plain.paths = tuple(map(Path, paths))
    return plain


def _set(plain: PlainLint, word: str, rest: Iterator[str]) -> bool:
    """Whether the option *word*, whose value may be the first of the *rest*, is understood."""
    name, equals, value = word.partition("=")
    if word == "--no-cache":
        plain.no_cache = True
    elif word == "--no-actionlint":
        plain.no_actionlint = True
    elif name == "--cache-dir":
        folder = value if equals else next(rest, "")
        plain.cache_folder = Path(folder)
        return os.path.isdir(folder) and os.access(folder, os.R_OK)  # noqa: PTH112 - a text until now
    elif name == "--format":
        plain.form = value if equals else next(rest, "")
        return plain.form in FORMATS
    else:
        return False
    return True
