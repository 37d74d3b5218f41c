"""The interpreter against what shells really do: verdicts of executed snippets, each leak on its line.

``verdicts.json`` holds what execution said, with a fingerprint of the snippet; ``python3 -m tests.lint.shell.record``
writes it. A sample is executed again in every run.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pytest
from tests.lint.shell.execution import ROOT, Snippet, executed_verdict, read_snippets

from runner_e2e.lint.shell import ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Label, Origin, Script, Step, Taint, Value

HERE = Path(__file__).parent
SNIPPETS = [one for path in sorted((HERE / "snippets").glob("*.txt")) for one in read_snippets(path)]
VERDICTS: dict[str, dict[str, object]] = json.loads((HERE / "verdicts.json").read_text())
SAMPLE = 12


def fingerprint(snippet: Snippet) -> str:
    return hashlib.sha256((snippet.shell + snippet.text).encode()).hexdigest()[:12]


def followed(snippet: Snippet) -> ShellResult:
    origin = Origin(path="step.sh", text=snippet.text)
    taint = Taint(Label(kind="confidential", name="S"), Confidence.HIGH, Step(origin, 0, 0, "S"))
    environment = {
        "S": Value.of([taint]),
        "GITHUB_ENV": Value.literal("/github/env"),
        "GITHUB_OUTPUT": Value.literal("/github/output"),
        "GITHUB_STEP_SUMMARY": Value.literal("/github/summary"),
        "RUNNER_TEMP": Value.literal("/runner/temp"),
    }
    options = ShellOptions(shell="sh" if snippet.shell == "sh" else "bash", errexit=False)
    return analyse(Script(origin=origin, text=snippet.text), environment=environment, options=options)


def leaking_lines(snippet: Snippet) -> list[range]:
    """The lines of each leaking argument."""
    return [
        range(snippet.text.count("\n", 0, leak.start) + 1, snippet.text.count("\n", 0, leak.end) + 2)
        for leak in followed(snippet).leaks
        if max(taint.confidence for taint in leak.taints) >= Confidence.MEDIUM
    ]


def test_every_snippet_has_a_verdict_of_execution() -> None:
    assert len(SNIPPETS) == len({snippet.name for snippet in SNIPPETS}) >= 600
    assert {snippet.name: fingerprint(snippet) for snippet in SNIPPETS} == {
        name: verdict["text"] for name, verdict in VERDICTS.items()
    }


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_agrees_with_execution(snippet: Snippet) -> None:
    found = leaking_lines(snippet)
    assert bool(found) == VERDICTS[snippet.name]["leaks"]
    assert all(any(line in lines for lines in found) for line in snippet.lines), (found, snippet.lines)
    assert all(snippet.lines.intersection(lines) for lines in found), (found, snippet.lines)


EXECUTABLE = [snippet for snippet in SNIPPETS if ROOT or not re.search(r"\b(su|sudo) ", snippet.text)]


@pytest.mark.parametrize("snippet", random.Random().sample(EXECUTABLE, SAMPLE), ids=lambda _: "sampled")
def test_recorded_verdicts_hold(snippet: Snippet) -> None:
    assert executed_verdict(snippet) == VERDICTS[snippet.name]["leaks"], snippet.name
