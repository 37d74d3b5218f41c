"""The page on languages says what the lint does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lint.languages.test_execution import followed
from tests.lint.shell.execution import Snippet
from tests.lint.shell.test_execution import followed as followed_shell

PAGE = Path(__file__).parents[3] / "docs" / "lint-languages.md"
BLOCK = re.compile(
    r"^```(python|perl|ruby|javascript|typescript|powershell|bat|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
EXAMPLES = BLOCK.findall(PAGE.read_text())
MARK = re.compile(r"(?:#|//|&? ?rem) (high|medium|low|none)$", re.IGNORECASE)


@pytest.mark.parametrize(("language", "text"), EXAMPLES)
def test_examples(language: str, text: str) -> None:
    if language == "bash":
        result = followed_shell(Snippet("example", "bash", text))
    else:
        result = followed({"bat": "cmd", "typescript": "javascript"}.get(language, language), text)
    found: dict[int, str] = {}
    for leak in result.leaks:
        surest = max(taint.confidence for taint in leak.taints)
        found[text.count("\n", 0, leak.start) + 1] = surest.name.lower()
    said = {number: mark[1] for number, line in enumerate(text.splitlines(), 1) if (mark := MARK.search(line))}
    assert said
    assert found == {number: word for number, word in said.items() if word != "none"}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 15
