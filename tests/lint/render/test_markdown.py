"""The page of a run, as a parser of Markdown reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from tests.lint.render.reports import HOSTILE, PROBLEM, finding, report, span

from runner_e2e.gha import MAXIMUM_SUMMARY_BYTES
from runner_e2e.lint.finding import FlowPlace
from runner_e2e.lint.render import View, render
from runner_e2e.lint.render.markdown import MAXIMUM_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.linter import Report

BLOB = "https://github.com/o/r/blob/abc"


def html(made: Report, *, blob: str = "") -> str:
    return str(MarkdownIt("commonmark").enable("table").render(render(made, "markdown", View(blob=blob))))


def test_a_table_by_rule_and_every_finding_with_its_way(real: Report) -> None:
    page = html(real, blob=BLOB)
    assert "❌ Workflow lint: 2 errors in 2 files</h3>" in page
    assert re.search(
        r'<td>🔴 error</td>\s*<td><a href="\S+/rules/confidential-argv.md">confidential-argv</a></td>', page
    )
    assert page.count("<details open>") == page.count("</details>") == 2
    assert f'<a href="{BLOB}/act/action.yml#L7">Line 7 at this commit</a>' in page
    assert f'<a href="{BLOB}/.github/workflows/w.yml#L16">.github/workflows/w.yml:16:15</a>' in page
    assert "<code>inputs.selected&#45;id</code> is an argument of <code>tool</code>" in page
    assert "tool --id &quot;$ID&quot; # | `pipe` ``` &lt;b&gt;\n</code></pre>" in page


def test_without_findings_it_is_one_line() -> None:
    assert render(report(), "markdown") == "### ✅ Workflow lint: no findings in 2 files\n"


def test_problems_are_a_table() -> None:
    page = html(report(problems=(PROBLEM,)))
    assert "❌" in page
    assert "<td>not valid YAML: a bracket</td>\n<td>close it</td>" in page


def test_many_are_folded_and_the_gravest_come_first() -> None:
    page = html(report(finding(level="note"), finding(level="warning"), finding(), finding(level="note")))
    assert "<details open>" not in page
    assert re.findall("<summary>(.)", page) == ["🔴", "🟠", "🔵", "🔵"]


def test_hostile_text_has_no_effect(repository: Path) -> None:
    name = "a|b<i>`*\x1b\u202e.yml"
    (repository / name).write_text("x\n````` <script>\x1b[2J\n")
    flow = (FlowPlace(span=span(name, 1, 1, 2), note=HOSTILE),)
    made = finding(message=HOSTILE, why=HOSTILE, fix=HOSTILE, where=span(name, 2, 1, 4), flow=flow)
    page = html(report(made, problems=(PROBLEM,)), blob=BLOB)
    assert "<script>" not in page
    assert "<i>" not in page
    assert "<em>" not in page
    assert not {"\x1b", "\u202e"} & set(page)
    assert 'href="b"' not in page
    assert page.count("<td") == 3 + 4


def test_the_limit_of_a_step_summary_is_kept_and_the_rest_counted() -> None:
    many = [finding(why="é" * 900) for _ in range(1500)]
    text = render(report(*many), "markdown")
    assert len(text.encode()) <= MAXIMUM_BYTES + 100 < MAXIMUM_SUMMARY_BYTES
    assert text.count("<details") == text.count("</details>") < 1500
    assert text.endswith(f"_{1500 - text.count('<details'):,} more findings: the summary is full._\n")
