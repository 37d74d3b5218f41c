"""Annotations of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.lint.render.reports import HOSTILE, PROBLEM, finding, report, span

from runner_e2e.errors import Place, Problem
from runner_e2e.lint.render import View, render
from runner_e2e.lint.render.sources import visible
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.linter import Report

COMMAND = re.compile(r"^::(error|warning|notice) ([^:]*)::(.*)$")


def commands(text: str) -> list[tuple[str, str, str]]:
    return [(found[1], found[2], found[3]) for line in text.splitlines() if (found := COMMAND.match(line))]


def test_an_annotation_has_its_place_and_way(real: Report) -> None:
    (first, second) = commands(render(real, "github"))
    assert first[0] == "error"
    assert first[1] == (
        "title=confidential-argv (high confidence),file=.github/workflows/w.yml,line=11,col=33,endLine=11,endColumn=37"
    )
    assert "%0A1. .github/workflows/w.yml:16:15: " in second[2]
    assert render(real, "github").splitlines()[-1] == "2 errors in 2 files"


def test_ten_of_a_level_and_the_surest_first() -> None:
    low = [finding(confidence=Confidence.LOW, message=f"low {number}") for number in range(9)]
    high = [finding(message=f"high {number}") for number in range(5)]
    notes = [finding(level="note") for _ in range(12)]
    text = render(report(*low, *high, *notes), "github")
    found = commands(text)
    assert [each[0] for each in found] == ["error"] * 10 + ["notice"] * 10
    assert [each[2].partition("%0A")[0] for each in found[:6]] == [f"high {number}" for number in range(5)] + ["low 0"]
    assert "6 further messages without an annotation" in text
    rest = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(rest) == 6
    assert "low 8" in rest[3]


def test_problems_take_part_in_the_ten_errors() -> None:
    text = render(report(*[finding() for _ in range(10)], problems=(PROBLEM,) * 12), "github")
    assert len(commands(text)) == 10
    assert "12 further messages" in text
    assert "title=runner-e2e lint,file=x.yml,line=2,col=3" in text


def test_no_text_becomes_a_command(repository: Path) -> None:
    many = [finding(message=HOSTILE, why=HOSTILE, fix=HOSTILE, where=span("::error::##[x].yml")) for _ in range(30)]
    text = render(report(*many, problems=()), "github")
    assert len(commands(text)) == 10
    for line in text.splitlines():
        if not COMMAND.match(line):
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
        assert "\x1b" not in line or line.startswith("::")


def test_a_place_over_several_lines_has_no_columns() -> None:
    where = Span(path="w.yml", line=3, column=5, end_line=5, end_column=2)
    ((_, properties, _),) = commands(render(report(finding(where=where)), "github"))
    assert properties.endswith("file=w.yml,line=3,endLine=5")


def test_places_start_at_the_root_of_the_repository(repository: Path) -> None:
    view = View(folder=repository / ".github")
    found = commands(
        render(report(finding(where=span("workflows/w.yml")), finding(where=span("/x/y.yml"))), "github", view)
    )
    assert "file=.github/workflows/w.yml," in found[0][1]
    assert "file=" not in found[1][1]
    assert found[1][2].startswith("/x/y.yml:11:33: ")


def test_no_text_rewrites_a_terminal() -> None:
    shown = "\x1b[31m\x9b\u202ename"
    problem = Problem(what=shown, why=shown, place=Place(path=shown, line=1, column=1))
    text = render(report(finding(message=shown, where=span(shown)), problems=(problem,)), "github")
    assert len(commands(text)) == 2
    assert visible(text) == text
