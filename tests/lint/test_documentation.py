"""Every example of ``docs/lint.md`` is linted, and says what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner_e2e.cli.lint import lint as command
from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.rules import RULES
from runner_e2e.yaml_positions import compose, plain

PAGE = (Path(__file__).parents[2] / "docs" / "lint.md").read_text()
EXAMPLES = {
    name: re.findall(r"```(\w+)\n(.*?)```", rest, re.DOTALL)
    for name, rest in re.findall(r"<!-- test: (.+?) -->\n(.*?)(?=<!-- test|\Z)", PAGE, re.DOTALL)
}
DISPATCH = (
    "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\njobs:\n  a:\n    runs-on: ubuntu-latest\n"
)


def linted(root: Path, text: str) -> Report:
    path = root / ".github" / "workflows" / "evaluate.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return lint([], current=root)


def test_the_first_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (_, workflow), (_, shown) = EXAMPLES["first"][:2]
    linted(tmp_path, workflow)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(command, [], standalone_mode=False).output == shown
    _, console = EXAMPLES["trace"][0]
    call, *rows = console.splitlines()
    arguments = call.removeprefix("$ runner-e2e lint ").split()
    traced = CliRunner().invoke(command, arguments, standalone_mode=False).output.splitlines()
    assert traced[: len(rows) - 1] == rows[:-1]


@pytest.mark.parametrize(
    ("name", "found"),
    [("approximate outcome", 1), ("approximate matrix", 1), ("approximate filter", 1), ("not followed", 0)],
)
def test_approximations_are_as_the_page_says(tmp_path: Path, name: str, found: int) -> None:
    _, text = EXAMPLES[name][0]
    assert compose(text, path="example") is not None
    body = "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
    report = linted(tmp_path, DISPATCH + body)
    assert report.problems == ()
    assert len([each for each in report.findings if each.rule == "confidential-argv"]) == found


def test_the_page_names_every_rule() -> None:
    assert re.findall(r"^\| \[([a-z-]+)\]\(rules/\1\.md\)", PAGE, re.MULTILINE) == [
        *[rule.id for rule in RULES],
    ]


def test_the_confidential_section_is_a_valid_one() -> None:
    section = re.search(r"```yaml\n(confidential:.*?)```", PAGE, re.DOTALL)
    assert section is not None
    assert plain(compose(section[1], path="example")) == {
        "confidential": {"inputs": ["selected-id", "case"], "matrix": ["case"], "env": ["CASE_NAME"]}
    }
