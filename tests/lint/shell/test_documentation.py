"""The page on shell scripts says what the lint does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lint.shell.execution import Snippet
from tests.lint.shell.test_execution import followed

PAGE = Path(__file__).parents[3] / "docs" / "lint-shell.md"
EXAMPLES = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples(text: str) -> None:
    found: dict[int, str] = {}
    for leak in followed(Snippet("example", "bash", text)).leaks:
        surest = max(taint.confidence for taint in leak.taints)
        found[text.count("\n", 0, leak.start) + 1] = surest.name.lower()
    said = {
        number: mark[1]
        for number, line in enumerate(text.splitlines(), 1)
        if (mark := re.search(r"# (high|medium|low|none)$", line))
    }
    assert said
    assert found == {number: word for number, word in said.items() if word != "none"}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10
