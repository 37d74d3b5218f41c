"""A repository below the current folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.render.reports import make_repository

from runner_e2e.lint.linter import Report, lint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_repository(tmp_path / "repository")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def real(repository: Path) -> Report:
    """What the lint finds there: one leak of the workflow, one of the action."""
    found = lint([], current=repository)
    leaks = tuple(each for each in found.findings if each.rule == "confidential-argv")
    assert [str(each.span) for each in leaks] == [".github/workflows/w.yml:11:33", "act/action.yml:7:22"]
    return Report(findings=leaks, problems=found.problems, files=found.files)
