"""Analysers of languages against what programs really do: verdicts of executed snippets, each leak on its line.

``verdicts.json`` holds what execution said, with a fingerprint of the snippet; ``python3 -m
tests.lint.languages.record`` writes it. A sample is executed again in every run.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.lint.shell.execution import Snippet, executed_verdict, read_snippets
from tests.lint.shell.test_execution import fingerprint

from runner_e2e.lint.shell import ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Label, Origin, Script, Step, Taint, Value

HERE = Path(__file__).parent
PROGRAMS = {"python": "python3", "javascript": "node", "perl": "perl", "ruby": "ruby"}
EXECUTED = ("python", "javascript", "perl")
"""Ruby is not everywhere: its snippets are believed."""

SNIPPETS = [one for name in EXECUTED for one in read_snippets(HERE / "snippets" / f"{name}.txt", PROGRAMS[name])]
VERDICTS: dict[str, dict[str, object]] = json.loads((HERE / "verdicts.json").read_text())
SAMPLE = 6


def followed(language: str, text: str) -> ShellResult:
    """What the analyser of *language* says of a program that has a confidential text in ``S``."""
    origin = Origin(path="step", text=text)
    taint = Taint(Label(kind="confidential", name="S"), Confidence.HIGH, Step(origin, 0, 0, "S"))
    environment = {
        "S": Value.of([taint]),
        "HOME": Value.literal("/home/runner"),
        "PATH": Value.literal("/usr/bin:/bin"),
        "GITHUB_ENV": Value.literal("/github/env"),
        "GITHUB_OUTPUT": Value.literal("/github/output"),
        "GITHUB_PATH": Value.literal("/github/path"),
        "GITHUB_STEP_SUMMARY": Value.literal("/github/summary"),
        "RUNNER_TEMP": Value.literal("/runner/temp"),
    }
    return analyse(Script(origin=origin, text=text), environment=environment, options=ShellOptions(language=language))


def leaking_lines(language: str, text: str) -> list[range]:
    """The lines of each leaking argument."""
    return [
        range(text.count("\n", 0, leak.start) + 1, text.count("\n", 0, leak.end) + 2)
        for leak in followed(language, text).leaks
        if max(taint.confidence for taint in leak.taints) >= Confidence.MEDIUM
    ]


def language(snippet: Snippet) -> str:
    return snippet.name.split(":")[0]


def test_every_snippet_has_a_verdict_of_execution() -> None:
    assert len(SNIPPETS) == len({snippet.name for snippet in SNIPPETS}) >= 200
    assert {snippet.name: fingerprint(snippet) for snippet in SNIPPETS} == {
        name: verdict["text"] for name, verdict in VERDICTS.items()
    }


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_agrees_with_execution(snippet: Snippet) -> None:
    found = leaking_lines(language(snippet), snippet.text)
    assert bool(found) == VERDICTS[snippet.name]["leaks"]
    assert all(any(line in lines for lines in found) for line in snippet.lines), (found, snippet.lines)
    assert all(snippet.lines.intersection(lines) for lines in found), (found, snippet.lines)


@pytest.mark.parametrize("snippet", random.Random().sample(SNIPPETS, SAMPLE), ids=lambda _: "sampled")
def test_recorded_verdicts_hold(snippet: Snippet) -> None:
    assert executed_verdict(snippet) == VERDICTS[snippet.name]["leaks"], snippet.name
