"""How a report is written: one file a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.render import github, json, markdown, sarif, text
from runner_e2e.lint.render.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.linter import Report

__all__ = ["FORMATS", "View", "render"]

FORMATS: Mapping[str, Callable[[Report, View], str]] = {
    "text": text.render,
    "json": json.render,
    "sarif": sarif.render,
    "github": github.render,
    "markdown": markdown.render,
}
"""What each format is called on the command line, and what writes it."""


def render(report: Report, form: str, view: View | None = None) -> str:
    """*report* in one of :data:`FORMATS`, with a line feed at its end."""
    return FORMATS[form](report, view or View())
