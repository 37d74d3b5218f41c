"""Baselines: what is known stays out, what is new does not, and what is fixed is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.baseline import Baseline, Scope, read_baseline, render_baseline, without_known
from runner_e2e.lint.linter import lint
from runner_e2e.lint.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.report import Report

HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    env: {ID: '${{ inputs.selected-id }}'}
    steps:
"""
A = '      - run: a "$ID"\n'
B = '      - run: b "$ID"\n'
RULES = Selection(select=frozenset({"confidential-argv"}))


def linted(root: Path, steps: str) -> Report:
    path = root / ".github" / "workflows" / "w.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + steps)
    return lint([], current=root, selection=RULES)


def baseline_of(root: Path, steps: str) -> Baseline:
    path = root / "baseline.json"
    path.write_text(render_baseline(linted(root, steps), Scope(current=root)))
    return read_baseline(path)


@pytest.mark.parametrize(
    ("known", "now", "new", "gone"),
    [
        (A, A, 0, 0),
        (A, A + B, 1, 0),
        (A + B, B, 0, 1),
        (A, A + A, 1, 0),
        (A + A, A, 0, 1),
        (A * 3, A * 2 + B, 1, 1),
        (A, "", 0, 1),
        ("", A, 1, 0),
        (A, "      - run: echo\n\n      # moved\n" + A, 0, 0),
    ],
)
def test_only_new_findings_remain(tmp_path: Path, known: str, now: str, new: int, gone: int) -> None:
    baseline = baseline_of(tmp_path, known or "      - run: a\n")
    report = without_known(linted(tmp_path, now or "      - run: a\n"), baseline, Scope(current=tmp_path), judge=True)
    assert len(report.findings) == new
    assert report.known == now.count("$ID") - new
    assert len(report.hints) == bool(gone)
    if gone:
        assert report.hints[0].startswith(f"{gone} finding of the baseline is fixed")
        assert "confidential-argv in .github/workflows/w.yml" in report.hints[0]


def test_what_was_not_looked_at_is_not_called_fixed(tmp_path: Path) -> None:
    baseline = baseline_of(tmp_path, A)
    report = without_known(linted(tmp_path, B), baseline, Scope(current=tmp_path), judge=False)
    assert report.hints == ()


def test_the_file_is_sorted_has_a_line_an_entry_and_no_value(tmp_path: Path) -> None:
    text = render_baseline(linted(tmp_path, A + B + A), Scope(current=tmp_path))
    document = json.loads(text)
    assert document["schema"] == "runner-e2e.lint-baseline/v1"
    assert sorted(entry["count"] for entry in document["findings"]) == [1, 2]
    assert len(text.splitlines()) == 7
    assert text == render_baseline(linted(tmp_path, B + A + A), Scope(current=tmp_path))
    assert "$ID" not in text
    assert text.endswith("}\n")


def test_an_empty_one_is_valid(tmp_path: Path) -> None:
    assert baseline_of(tmp_path, "      - run: a\n") == Baseline(entries=())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", '"schema" is not'),
        ('{"schema": "other"}', '"schema" is not'),
        ('{"schema": "runner-e2e.lint-baseline/v2", "findings": []}', "update runner-e2e"),
        ('{"schema": "runner-e2e.lint-baseline/v1"}', '"findings" is no list'),
        ('{"schema": "runner-e2e.lint-baseline/v1", "findings": [1]}', "entry 1"),
        ('{"schema": "runner-e2e.lint-baseline/v1", "findings": [{"path": "a", "rule": "b"}]}', "entry 1"),
        (
            (
                '{"schema": "runner-e2e.lint-baseline/v1", "findings": '
                '[{"path": "a", "rule": "b", "fingerprint": "c", "count": true}]}'
            ),
            "entry 1",
        ),
        ("[" * 100_000, "not JSON"),
        ("<<<<<<< HEAD\n", "Expecting value"),
    ],
)
def test_a_damaged_or_newer_file_is_an_error_with_its_place(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_baseline(path)
    assert part in str(caught.value)
    assert "--write-baseline" in caught.value.problem.fix
    assert str(path) in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no baseline"):
        read_baseline(tmp_path / "absent.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_baseline(tmp_path)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="damaged"):
        read_baseline(tmp_path / "b.json")
