"""Comments that ignore findings: what counts as one, which lines it holds for, and which do nothing."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    env: {ID: '${{ inputs.selected-id }}'}
    steps:
"""
RULES = Selection(select=frozenset({"confidential-argv", "unused-ignore", "invalid-ignore"}))


def workflow(root: Path, steps: str, name: str = "w.yml") -> Path:
    path = root / ".github" / "workflows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((HEAD + indent(steps, "      ")).encode())
    return path


def linted(root: Path, steps: str, selection: Selection = RULES) -> Report:
    workflow(root, steps)
    return lint([], current=root, selection=selection)


def found(report: Report) -> list[tuple[str, int]]:
    """Rule and line (of the steps) of every finding."""
    assert report.problems == ()
    return [(finding.rule, finding.span.line - HEAD.count("\n")) for finding in report.findings]


HELD = {
    "behind the step": """\
- run: tool "$ID" # runner-e2e: ignore[confidential-argv] it is alone here
""",
    "above the step": """\
# runner-e2e: ignore[confidential-argv] it is alone here
- run: tool "$ID"
""",
    "above, with another comment between": """\
# runner-e2e: ignore[confidential-argv] it is alone here
# and something else
- run: tool "$ID"
""",
    "beside another comment": """\
- run: tool "$ID" # v4 # runner-e2e: ignore[confidential-argv] it is alone here
""",
    "without blanks, several rules": """\
- run: tool "$ID" #runner-e2e:ignore[confidential-argv] it is alone here
""",
    "with a colon before the reason": """\
- run: tool "$ID" # runner-e2e: ignore[confidential-argv]: it is alone here
""",
    "behind run: |": """\
- run: | # runner-e2e: ignore[confidential-argv] it is alone here
    echo
    tool "$ID"
""",
    "above run: >": """\
- name: x
  # runner-e2e: ignore[confidential-argv] it is alone here
  run: >-
    tool
    "$ID"
""",
    "in the script, behind the command": """\
- run: |
    echo
    tool "$ID" # runner-e2e: ignore[confidential-argv] it is alone here
""",
    "in the script, above the command": """\
- run: |
    echo
    # runner-e2e: ignore[confidential-argv] it is alone here
    tool "$ID"
""",
    "in the script, above a command of several lines": """\
- run: |
    # runner-e2e: ignore[confidential-argv] it is alone here
    tool --first \\
      --second \\
      "$ID"
""",
    "in the script, above a text of several lines": """\
- run: |
    # runner-e2e: ignore[confidential-argv] it is alone here
    tool "
      a $ID
    "
""",
    "in a function": """\
- run: |
    f() {
      # runner-e2e: ignore[confidential-argv] it is alone here
      tool "$1"
    }
    f "$ID"
""",
    "in a substitution": """\
- run: |
    x=$(
      # runner-e2e: ignore[confidential-argv] it is alone here
      tool "$ID"
    )
""",
    "with an expression that would not parse": """\
- run: |
    echo "${{ contains('it''s', '"') }}"
    # runner-e2e: ignore[confidential-argv] it is alone here
    tool "$ID"
""",
}  # fmt: skip


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", HELD)
def test_it_holds(tmp_path: Path, name: str, line_end: str) -> None:
    report = linted(tmp_path, HELD[name].replace("\n", line_end))
    assert found(report) == []
    assert report.ignored == 1


NOT_HELD = {
    "in a text": ("""\
- run: |
    echo "# runner-e2e: ignore[confidential-argv] it is alone here"; tool "$ID"
""", 2),
    "in a text of YAML": ("""\
- name: "x # runner-e2e: ignore[confidential-argv] it is alone here"
  run: tool "$ID"
""", 2),
    "in a plain text of YAML": ("""\
- name: x#runner-e2e:ignore[confidential-argv]
  run: tool "$ID"
""", 2),
    "in a block text that is no script": ("""\
- name: |
    # runner-e2e: ignore[confidential-argv] it is alone here
  run: tool "$ID"
""", 3),
    "in a here-document": ("""\
- run: |
    cat <<END
    # runner-e2e: ignore[confidential-argv] it is alone here
    END
    tool "$ID"
""", 5),
    "in single quotes": ("""\
- run: |
    echo '
    # runner-e2e: ignore[confidential-argv] it is alone here
    '; tool "$ID"
""", 4),
    "with a backslash": ("""\
- run: |
    echo x\\ # runner-e2e: ignore[confidential-argv] it is alone here
    tool "$ID"
""", 3),
    "in ${#}": ("""\
- run: |
    tool "$ID" ${x#runner-e2e:ignore[confidential-argv]}
""", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_HELD)
def test_a_text_that_holds_the_words_is_no_comment(tmp_path: Path, name: str) -> None:
    steps, line = NOT_HELD[name]
    report = linted(tmp_path, steps)
    assert ("confidential-argv", line) in found(report)
    assert [rule for rule, _ in found(report) if "ignore" in rule] == []


def test_it_holds_for_its_line_and_its_rules_only(tmp_path: Path) -> None:
    steps = """\
- run: |
    tool "$ID"
    tool "$ID" # runner-e2e: ignore[confidential-argv] it is alone here
    tool "$ID"
"""
    report = linted(tmp_path, steps)
    assert found(report) == [("confidential-argv", 2), ("confidential-argv", 4)]
    other = steps.replace("ignore[confidential-argv]", "ignore[secret-argv]")
    assert [line for rule, line in found(linted(tmp_path, other)) if rule == "confidential-argv"] == [2, 3, 4]


def test_a_blank_line_parts_a_comment_from_the_code(tmp_path: Path) -> None:
    report = linted(tmp_path, '# runner-e2e: ignore[confidential-argv] reason\n\n- run: tool "$ID"\n')
    assert found(report) == [("unused-ignore", 1), ("confidential-argv", 3)]


def test_one_above_a_loop_does_not_hold_for_all_of_it(tmp_path: Path) -> None:
    steps = """\
- run: |
    # runner-e2e: ignore[confidential-argv] reason
    for x in 1; do
      tool "$ID"
    done
"""
    assert found(linted(tmp_path, steps)) == [("unused-ignore", 2), ("confidential-argv", 4)]


# --- Mistakes.


@pytest.mark.parametrize(
    ("comment", "mistake", "remedy"),
    [
        ("ignore[confidential-argv]", "gives no reason", "reason"),
        ("ignore[confidential-argv] ", "gives no reason", "reason"),
        ("ignore[confidential-argv] - ", "gives no reason", "reason"),
        ("ignore[] reason", "names no rule", "ignore[rule]"),
        ("ignore reason", "names no rule", "ignore[rule]"),
        ("ignore", "names no rule", "ignore[rule]"),
        ("ignore[confidential-argw] reason", "`confidential-argw` is no rule", "did you mean confidential-argv"),
        ("ignroe[confidential-argv] reason", "`ignroe` is no instruction", "ignore[rule]"),
    ],
)
def test_mistakes_are_told_and_the_finding_stays(tmp_path: Path, comment: str, mistake: str, remedy: str) -> None:
    report = linted(tmp_path, f'- run: tool "$ID" # runner-e2e: {comment}\n')
    assert sorted(found(report)) == [("confidential-argv", 1), ("invalid-ignore", 1)]
    wrong = next(finding for finding in report.findings if finding.rule == "invalid-ignore")
    assert mistake in wrong.message
    assert remedy in wrong.fix
    assert wrong.span.column == 25


def test_the_right_rules_of_a_comment_hold_beside_a_wrong_one(tmp_path: Path) -> None:
    report = linted(tmp_path, '- run: tool "$ID" # runner-e2e: ignore[nope, confidential-argv] reason\n')
    assert found(report) == [("invalid-ignore", 1)]


@pytest.mark.parametrize("comment", ["paid", "see the docs", "paid [maybe]"])
def test_other_comments_are_left_alone(tmp_path: Path, comment: str) -> None:
    assert found(linted(tmp_path, f"- run: tool # runner-e2e: {comment}\n")) == []


# --- Unused ones.


def test_an_unused_one_is_told_rule_by_rule(tmp_path: Path) -> None:
    steps = '- run: tool "$ID" # runner-e2e: ignore[confidential-argv, secret-argv] reason\n'
    report = linted(tmp_path, steps, Selection(profile="confidential"))
    (finding,) = [one for one in report.findings if one.rule == "unused-ignore"]
    assert "`secret-argv`" in finding.message
    assert "`confidential-argv`" not in finding.message


def test_a_rule_that_does_not_run_is_not_judged(tmp_path: Path) -> None:
    steps = "- run: tool # runner-e2e: ignore[secret-argv] reason\n"
    assert found(linted(tmp_path, steps)) == []
    usual = Selection(ignore=frozenset({"confidential-log"}))
    (tmp_path / ".github" / "runner-e2e.yml").write_text("lint: {rules: {secret-argv: off}}\n")
    assert found(linted(tmp_path, steps, usual)) == []
    (tmp_path / ".github" / "runner-e2e.yml").unlink()
    assert found(linted(tmp_path, steps, usual)) == [("unused-ignore", 1)]


def test_another_linters_rule_is_not_judged(tmp_path: Path) -> None:
    assert found(linted(tmp_path, "- run: tool # runner-e2e: ignore[actionlint/expression] reason\n")) == []


ACTION = """\
inputs: {it: {required: true}}
runs:
  using: composite
  steps:
    - run: tool "$IT" # runner-e2e: ignore[confidential-argv] reason
      shell: bash
      env: {IT: '${{ inputs.it }}'}
"""


def test_in_an_action_only_the_whole_repository_shows_whether_it_is_used(tmp_path: Path) -> None:
    action = tmp_path / "say" / "action.yml"
    action.parent.mkdir()
    action.write_text(ACTION)
    path = workflow(tmp_path, "- {uses: ./say, with: {it: '${{ inputs.selected-id }}'}}\n")
    assert lint([], current=tmp_path, selection=RULES).findings == ()
    assert lint([action], current=tmp_path, selection=RULES).findings == ()
    path.write_text("on: push\njobs: {a: {runs-on: x, steps: [{uses: ./say, with: {it: a}}]}}\n")
    assert lint([action, path], current=tmp_path, selection=RULES).findings == ()
    (finding,) = lint([], current=tmp_path, selection=RULES).findings
    assert (finding.rule, finding.span.path) == ("unused-ignore", "say/action.yml")


SCRIPTS = {
    "say.sh": '#!/bin/bash\n# runner-e2e: ignore[confidential-argv] reason\ntool "$1"\n',
    "say": '#!/bin/bash\ntool "$1" # runner-e2e: ignore[confidential-argv] reason\n',
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_in_a_script_of_the_repository(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SCRIPTS[name])
    quiet = Selection(select=frozenset({"confidential-argv", "unused-ignore"}))
    report = linted(tmp_path, f'- run: |\n    source {name} "$ID"\n', quiet)
    assert [(one.rule, one.span.path) for one in report.findings] == []
    assert report.ignored == 1
    report = linted(tmp_path, f"- run: |\n    source {name} x\n", quiet)
    assert [(one.rule, one.span.path) for one in report.findings] == [("unused-ignore", name)]


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("pwsh", "# runner-e2e: ignore[confidential-argv] reason\ntool $env:ID"),
        (
            "python",
            ("import os, subprocess\n# runner-e2e: ignore[confidential-argv] reason\n"
            "subprocess.run([\n  'tool',\n  os.environ['ID'],\n])"),
        ),
        ("python", ("import os, subprocess\nx = 'y'\nsubprocess.run(['tool', os.environ['ID']]) "
         "# runner-e2e: ignore[confidential-argv] reason")),
    ],
)  # fmt: skip
def test_in_other_languages(tmp_path: Path, shell: str, script: str) -> None:
    steps = f"- shell: {shell}\n  run: |\n" + indent(script, "    ") + "\n"
    assert found(linted(tmp_path, steps.replace("ignore[confidential-argv]", "see")))
    assert found(linted(tmp_path, steps)) == []


def test_an_anchored_script_is_read_once(tmp_path: Path) -> None:
    steps = """\
- &step
  run: |
    tool "$ID" # runner-e2e: ignore[confidential-argv] reason
- *step
- run: echo # runner-e2e: ignore[confidential-argv] reason
"""
    assert found(linted(tmp_path, steps)) == [("unused-ignore", 5)]
