"""How a report is written: one file a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.render import json, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.linter import Report

__all__ = ["RENDERERS"]

RENDERERS: Mapping[str, Callable[[Report], str]] = {"text": text.render, "json": json.render}
