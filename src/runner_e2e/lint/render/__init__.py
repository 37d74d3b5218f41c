"""How a report is written: one file a format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from runner_e2e.lint.render.view import View

if TYPE_CHECKING:
    from runner_e2e.lint.report import Report

__all__ = ["FORMATS", "View", "render"]

FORMATS = ("text", "json", "sarif", "github", "markdown")
"""What each format is called on the command line; the module of that name writes it, and is loaded when it does."""


def render(report: Report, form: str, view: View | None = None) -> str:
    """*report* in one of :data:`FORMATS`, with a line feed at its end."""
    written = import_module(f"runner_e2e.lint.render.{form}").render(report, view or View())
    assert isinstance(written, str)
    # Names of files may have bytes that are not UTF-8.
    return written.encode("utf-8", errors="backslashreplace").decode("utf-8")
