"""Every example of ``docs/lint.md`` is linted, and says what the page says."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from runner_e2e.cli.lint import lint as command
from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.render import FORMATS
from runner_e2e.lint.render.markdown import MAXIMUM_BYTES
from runner_e2e.lint.rules import RULES
from runner_e2e.yaml_positions import compose, plain

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint.md").read_text()
EXTRA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["actionlint"]
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


@pytest.mark.parametrize("name", ["baseline", "formats"])
def test_the_commands_say_what_the_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the repository of the first example; `…` stands for the rest of a line."""
    linted(tmp_path, EXAMPLES["first"][0][1])
    monkeypatch.chdir(tmp_path)
    _, console = EXAMPLES[name][0]
    calls = [part.split("\n", 1) for part in textwrap.dedent(console).split("$ runner-e2e lint ")[1:]]
    assert len(calls) == 2
    for call, said in calls:
        output = CliRunner().invoke(command, call.split(), standalone_mode=False).output
        pattern = re.escape(said).replace("…", ".*")
        assert re.fullmatch(pattern, output), output


def test_the_hook_of_the_page_is_there() -> None:
    (repository,) = YAML(typ="safe").load(EXAMPLES["pre-commit"][0][1])["repos"]
    (hook,) = repository["hooks"]
    assert [each["id"] for each in YAML(typ="safe").load(ROOT / ".pre-commit-hooks.yaml")] == [hook["id"]]
    assert set(hook["additional_dependencies"]) <= {name.partition(">")[0] for name in EXTRA}


def test_every_format_is_on_the_page() -> None:
    section = PAGE.partition("## Formats\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", section, re.MULTILINE) == list(FORMATS)
    assert f"{MAXIMUM_BYTES // 1000} kB" in section


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
