"""The report for a reader."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.lint.render.reports import HOSTILE, PROBLEM, finding, fix_at, report, span

from runner_e2e.errors import Place, Problem
from runner_e2e.lint.finding import FlowPlace
from runner_e2e.lint.linter import Report
from runner_e2e.lint.render import View, render

if TYPE_CHECKING:
    from pathlib import Path

CODES = re.compile(r"\x1b\[[0-9;]*m")


def test_a_place_of_another_file_is_shown_with_its_line(real: Report) -> None:
    text = render(real, "text")
    assert "    1. .github/workflows/w.yml:16:15: `inputs.selected-id` goes into the input `id` of `./act`\n" in text
    assert "       16 | id: ${{ inputs['selected-id'] }}\n" in text
    own = text.split("\n\n")[0]
    assert own.count(" | ") - own.count("# | ") == 2, "places of the same file are not repeated"


def test_carets_stand_below_what_is_meant_after_wide_characters(real: Report) -> None:
    line, carets = render(real, "text").splitlines()[1:3]
    # Two columns for one of the characters before it.
    assert line.index('"$ID"') + 1 == carets.index("^")
    assert carets.endswith("^^^^^")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((), "no findings"),
        (("error",), "1 error"),
        (("note", "warning", "error", "note"), "1 error, 1 warning, 2 notes"),
    ],
)
def test_the_last_line_counts_by_level(counts: tuple[str, ...], said: str) -> None:
    findings = [finding(level=level) for level in counts]  # type: ignore[arg-type]
    assert render(report(*findings), "text").splitlines()[-1] == f"{said} in 2 files"


def test_problems_and_fixes_and_hints_are_in_the_summary() -> None:
    made = Report(
        findings=(finding(),), problems=(PROBLEM,), files=1, fixes={0: fix_at(0, 1, "")}, hints=("install it",)
    )
    *_, last, hint = render(made, "text").splitlines()
    assert last == "1 error in 1 file, 1 could not be checked (1 with a fix, which `--diff` shows)"
    assert hint == "hint: install it"
    assert render(made, "text").startswith("x.yml:2:3: not valid YAML\n  why: a bracket\n  fix: close it\n\n")


def test_many_findings_are_counted_by_rule() -> None:
    many = [finding() for _ in range(15)] + [finding(rule="secret-argv", level="warning") for _ in range(5)]
    assert "  15 confidential-argv\n   5 secret-argv\n15 errors, 5 warnings" in render(report(*many), "text")
    assert "  14 confidential-argv" not in render(report(*many[:14]), "text")


def test_colours_add_codes_and_nothing_else(real: Report) -> None:
    coloured = render(real, "text", View(colour=True))
    assert CODES.sub("", coloured) == render(real, "text")
    assert "\x1b[1;31m^^^^^\x1b[0m" in coloured


def test_no_text_of_a_file_controls_the_terminal(repository: Path) -> None:
    path = repository / "evil\x1b]0;x\x07.yml"
    path.write_text(f"a: b{HOSTILE}\n")
    where = span(path.name, 1, 1, 4)
    made = finding(where=where, message=HOSTILE, why=HOSTILE, fix=HOSTILE, flow=(FlowPlace(span=where, note=HOSTILE),))
    text = render(report(made), "text")
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "␛]0;x␇" in text


def test_no_text_of_a_file_is_a_command_for_the_runner(repository: Path) -> None:
    name = "x\n::error::y.yml"
    (repository / name).write_text("::add-mask::x ##[add-mask]y\n")
    where = span(name, 1, 1, 4)
    made = finding(where=where, message=HOSTILE, why=HOSTILE, fix=HOSTILE, flow=(FlowPlace(span=where, note=HOSTILE),))
    problem = Problem(what=f"what\n::error::{HOSTILE}", why="\n ::error::", place=Place(path=name))
    text = render(replace(report(made), problems=(problem,)), "text")
    assert "##[" not in text
    assert not re.findall(r"^\s*::", text, re.MULTILINE)
    assert "x␊::error::y.yml:1:1: error:" in text


def test_a_file_that_is_gone_costs_only_its_lines(tmp_path: Path) -> None:
    text = render(report(finding(where=span("gone.yml"))), "text", View(folder=tmp_path))
    assert text.startswith("gone.yml:11:33: error: ")
    assert " | " not in text
