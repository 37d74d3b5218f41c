"""The examples of ``docs/lint-adoption.md`` are linted, and say what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

from click.testing import CliRunner

from runner_e2e.cli.lint import lint as command
from runner_e2e.lint.cache import MAX_BYTES
from runner_e2e.lint.linter import lint
from runner_e2e.lint.selection import Selection, unknown_rule
from runner_e2e.lint.settings import CATALOG, read_settings, unknown_rules
from runner_e2e.remote.archive import ArchiveLimits

PAGE = (Path(__file__).parents[2] / "docs" / "lint-adoption.md").read_text()
EXAMPLES = {
    name: re.findall(r"```(\w+)\n(.*?)```", rest, re.DOTALL)
    for name, rest in re.findall(r"<!-- test: (.+?) -->\n(.*?)(?=<!-- test|\Z)", PAGE, re.DOTALL)
}
HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    env: {ID: '${{ inputs.selected-id }}'}
    steps:
"""


def configured(root: Path, text: str) -> None:
    (root / ".github").mkdir()
    (root / CATALOG).write_text(text)


def test_the_configuration_is_valid_and_says_what_the_table_lists(tmp_path: Path) -> None:
    _, text = EXAMPLES["configuration"][0]
    configured(tmp_path, text)
    settings = read_settings(tmp_path)
    assert unknown_rules(settings, unknown_rule) == ()
    assert settings.rules.profile == "all"
    assert settings.rules.by_id["secret-argv"].level == "note"
    keys = re.findall(r"^  ([a-z-]+):", text, re.MULTILINE)
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == [*keys, "actions"]


def test_a_wrong_configuration_is_told_as_the_page_says(tmp_path: Path) -> None:
    (_, text), (_, said) = EXAMPLES["wrong configuration"][:2]
    configured(tmp_path, text)
    (tmp_path / ".github" / "workflows").mkdir()
    (tmp_path / ".github" / "workflows" / "w.yml").write_text(f"{HEAD}      - run: echo\n")
    report = lint([], current=tmp_path)
    assert "".join(f"{problem}\n" for problem in report.problems) == said


def test_the_comments_hold(tmp_path: Path) -> None:
    _, steps = EXAMPLES["ignores"][0]
    path = tmp_path / ".github" / "workflows" / "w.yml"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + indent(steps, "      "))
    wanted = frozenset({"confidential-argv", "unused-ignore", "invalid-ignore"})
    report = lint([], current=tmp_path, selection=Selection(select=wanted))
    assert report.findings == ()
    assert report.ignored == steps.count("ignore[")


def test_the_page_names_limits_and_options_as_they_are() -> None:
    assert f"at most {MAX_BYTES >> 20} MiB" in PAGE
    assert f"more than {ArchiveLimits().packed >> 20} MiB" in PAGE
    known = CliRunner().invoke(command, ["--help"], standalone_mode=False).output
    for option in set(re.findall(r"`(--[a-z-]+)", PAGE)):
        assert option in known
