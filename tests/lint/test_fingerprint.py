"""Fingerprints: what they survive, and what they tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.baseline import Scope
from runner_e2e.lint.linter import lint
from runner_e2e.lint.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    env: {ID: '${{ inputs.selected-id }}'}
    steps:
"""
STEP = '      - run: tool --id "$ID"\n'
RULES = Selection(select=frozenset({"confidential-argv"}))


def prints(root: Path, text: str, current: Path | None = None) -> tuple[str, ...]:
    path = root / ".github" / "workflows" / "w.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    current = current or root
    return Scope(current=current).fingerprints(lint([root], current=current, selection=RULES))


@pytest.mark.parametrize(
    "other",
    [
        HEAD.replace("jobs:", "# moved\n\njobs:") + STEP,
        HEAD + STEP.replace("- run:", "-   run:").replace("tool --id", "tool   --id"),
        (HEAD + STEP).replace("\n      ", "\n          "),
        (HEAD + STEP).replace("\n", "\r\n"),
        HEAD + "      - run: echo\n" + STEP + "      - run: true\n",
    ],
    ids=["moved", "blanks", "indented", "line ends", "neighbours"],
)
def test_moved_and_indented_lines_keep_theirs(tmp_path: Path, other: str) -> None:
    first = prints(tmp_path, HEAD + STEP)
    assert len(first) == 1
    assert prints(tmp_path, other) == first


@pytest.mark.parametrize(
    "other",
    [
        HEAD + STEP.replace("--id", "--case"),
        HEAD.replace("selected-id", "selected_id") + STEP,
    ],
    ids=["line", "label"],
)
def test_another_line_or_label_has_another(tmp_path: Path, other: str) -> None:
    first, second = prints(tmp_path, HEAD + STEP), prints(tmp_path, other)
    assert len(second) == 1
    assert first != second


def test_equal_lines_are_counted(tmp_path: Path) -> None:
    one, two, three = prints(tmp_path, HEAD + STEP * 3)
    assert (two, three) == (f"{one}:2", f"{one}:3")


def test_the_current_folder_does_not_matter(tmp_path: Path) -> None:
    root = tmp_path / "r"
    root.mkdir()
    first = prints(root, HEAD + STEP)
    assert prints(root, HEAD + STEP, current=tmp_path) == first
    assert prints(root, HEAD + STEP, current=root / ".github") == first


@given(st.lists(st.text(alphabet=" \t\u00a0", max_size=3), min_size=6, max_size=6))
def test_white_space_does_not_count(blanks: list[str]) -> None:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.fingerprint import fingerprint
    from runner_e2e.lint.values import Confidence, Span

    span = Span(path="a", line=1, column=1, end_line=1, end_column=2)
    finding = Finding(rule="r", level="error", confidence=Confidence.HIGH, span=span, message="m")
    line = "".join(piece + blank for piece, blank in zip(["run:", "a", "b", "c", "d", "e"], blanks, strict=True))
    assert fingerprint(finding, path="a", line=line) == fingerprint(finding, path="a", line="run:abcde")
