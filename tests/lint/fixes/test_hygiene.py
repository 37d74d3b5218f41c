"""Settings that a workflow lacks: what each repair writes, and where it does not dare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.fixes.steps import read

from runner_e2e.lint.finding import Finding
from runner_e2e.lint.fixes import hygiene
from runner_e2e.lint.fixes.unchanged import applied, unchanged_elsewhere
from runner_e2e.lint.repository import Repository
from runner_e2e.lint.values import Confidence, Span

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lint.fixes.steps import Repair


def repaired(repair: Repair, text: str, folder: Path, *, remedy: str = "") -> tuple[str, bool] | None:
    """The file after the repair of a finding where « stands, and whether it is safe."""
    before, _, after = text.partition("«")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    span = Span(path="w.yml", line=line, column=column, end_line=line, end_column=column + 1)
    document = read(before + after)
    finding = Finding(rule="r", level="error", confidence=Confidence.HIGH, span=span, message="", fix=remedy)
    fix = repair(finding, document, Repository(folder))
    if fix is None:
        return None
    assert unchanged_elsewhere(document.root, fix.edits)
    return applied(before + after, fix.edits), fix.safe


SET = "        with:\n          persist-credentials: false\n"
JOB = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"


@pytest.mark.parametrize(
    ("before", "after", "safe"),
    [
        (
            "      - uses: «actions/checkout@v4 # why\n      - run: x\n",
            f"      - uses: actions/checkout@v4 # why\n{SET}      - run: x\n",
            True,
        ),
        (
            "      - uses: «actions/checkout@v4\n        with: {ref: x}\n",
            "      - uses: actions/checkout@v4\n        with: {ref: x, persist-credentials: false}\n",
            True,
        ),
        (
            "      - uses: actions/checkout@v4\n        with:\n          persist-credentials: «true\n",
            "      - uses: actions/checkout@v4\n        with:\n          persist-credentials: false\n",
            True,
        ),
        (
            "      - {uses: «actions/checkout@v4}\n      - run: git push\n",
            "      - {uses: actions/checkout@v4, with: {persist-credentials: false}}\n      - run: git push\n",
            False,
        ),
        (
            "      - uses: «actions/checkout@v4\n      - uses: b/c@v1\n",
            f"      - uses: actions/checkout@v4\n{SET}      - uses: b/c@v1\n",
            False,
        ),
    ],
)
def test_the_checkout_leaves_no_token(before: str, after: str, safe: bool, tmp_path: Path) -> None:
    assert repaired(hygiene.leave_no_token, JOB + before, tmp_path) == (JOB + after, safe)


@pytest.mark.parametrize(
    "step",
    [
        "      - uses: «someone/checkout@v4\n",
        "      - uses: «actions/checkout@v4\n        with: ${{ fromJSON(inputs.with) }}\n",
        "      - uses: «actions/checkout@v4\n        with: &w {ref: x}\n      - uses: b/c@v1\n        with: *w\n",
    ],
)
def test_other_checkouts_are_left_alone(step: str, tmp_path: Path) -> None:
    assert repaired(hygiene.leave_no_token, JOB + step, tmp_path) is None


def test_a_job_gets_a_limit_and_permissions(tmp_path: Path) -> None:
    text = "on: push\njobs:\n  «a:\n    runs-on: x # here\n    steps: []\n"
    head, tail = "on: push\njobs:\n  a:\n    runs-on: x # here\n", "    steps: []\n"
    assert repaired(hygiene.add_timeout, text, tmp_path) == (f"{head}    timeout-minutes: 60\n{tail}", False)
    expected = f"{head}    permissions:\n      contents: read\n{tail}"
    assert repaired(hygiene.add_permissions, text, tmp_path) == (expected, False)
    call = "on: push\njobs:\n  «a:\n    uses: ./.github/workflows/b.yml\n"
    assert repaired(hygiene.add_timeout, call, tmp_path) is None
    permissions = call.replace("«", "") + "    permissions:\n      contents: read\n"
    assert repaired(hygiene.add_permissions, call, tmp_path) == (permissions, False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("permissions:\n  «contents: write # why\n", "permissions:\n  contents: read # why\n"),
        ("permissions: {a: read, «id-token: write}\n", "permissions: {a: read, id-token: none}\n"),
        ("permissions: «write-all\n", "permissions: {}\n"),
        ("permissions: {«contents: read}\n", None),
    ],
)
def test_a_token_may_do_less(before: str, after: str | None, tmp_path: Path) -> None:
    assert repaired(hygiene.lessen_permissions, before, tmp_path) == ((after, False) if after else None)


def test_a_workflow_gets_a_group_of_its_own(tmp_path: Path) -> None:
    group = "concurrency:\n  group: paid-${{ github.run_id }}\n  cancel-in-progress: false\n"
    found = repaired(hygiene.add_group, "on:\n  push:\npermissions: {}\n«jobs: {}\n", tmp_path)
    assert found == (f"on:\n  push:\npermissions: {{}}\n{group}jobs: {{}}\n", True)
    found = repaired(hygiene.add_group, "on:\n  push: # all\n«jobs: {}\n", tmp_path)
    assert found == (f"on:\n  push: # all\n{group}jobs: {{}}\n", True)


def test_runs_end_by_themselves(tmp_path: Path) -> None:
    text = "concurrency: {group: a, cancel-in-progress: «${{ true }}}\n"
    assert repaired(hygiene.keep_runs, text.replace("«${{ true }}", "«true"), tmp_path) == (
        "concurrency: {group: a, cancel-in-progress: false}\n",
        False,
    )
    quoted = text.replace("«${{ true }}", '«"${{ true }}"')
    assert repaired(hygiene.keep_runs, quoted, tmp_path) == (
        "concurrency: {group: a, cancel-in-progress: false}\n",
        False,
    )


@pytest.mark.parametrize(
    ("command", "option", "expected"),
    [
        ("npm ci", "--ignore-scripts", "npm ci --ignore-scripts"),
        ("npm --prefix web install -D x", "--ignore-scripts", "npm --prefix web install --ignore-scripts -D x"),
        ("A=1 pip install x", "--only-binary=:all:", "A=1 pip install --only-binary=:all: x"),
        ("python -m pip install x", "--only-binary=:all:", "python -m pip install --only-binary=:all: x"),
        ("uv pip install x", "--no-build", "uv pip install --no-build x"),
        ("uv sync && make", "--no-build", "uv sync --no-build && make"),
        ("composer install", "--no-scripts --no-plugins", "composer install --no-scripts --no-plugins"),
        ("yarn", "--ignore-scripts", None),
    ],
)
def test_packages_are_installed_without_their_programs(
    command: str, option: str, expected: str | None, tmp_path: Path
) -> None:
    text = f"{JOB}      - run: |\n          echo\n          «{command}\n"
    found = repaired(hygiene.add_install_option, text, tmp_path, remedy=f"add `{option}`")
    if expected is None:
        assert found is None
    else:
        assert found == (text.replace(f"«{command}", expected), False)


def test_advice_that_is_no_option_is_not_followed(tmp_path: Path) -> None:
    text = f"{JOB}      - run: «npx x\n"
    remedy = "install the program before, with `--ignore-scripts`, and start it by its path"
    assert repaired(hygiene.add_install_option, text, tmp_path, remedy=remedy) is None
