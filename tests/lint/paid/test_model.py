"""What makes a workflow a paid one, and how the model follows calls, actions and scripts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.lint.paid.sample import CATALOG, CHECKOUT, GOOD, OURS, PATH, analysed, changed, in_job, lint_paid, write

from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.repository import Document
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.run import Run
from runner_e2e.yaml_positions import compose

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = """\
on: push
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - run: tool
        env: {KEY: '%s'}
"""
NO_CATALOG = {".github/runner-e2e.yml": "version: 1\nlint: {}\n"}


def is_paid(root: Path, text: str, **more: str) -> bool:
    files = {PATH: text, **{name.replace("__", "/"): body for name, body in more.items()}}
    return paid_workflow(*analysed(root, files)) is not None


@pytest.mark.parametrize(
    ("key", "paid"),
    [
        ("${{ secrets.OPENAI_API_KEY }}", True),
        ("${{ SECRETS['Openai_Api_Key'] }}", True),
        ("${{ secrets[format('{0}', matrix.key)] }}", True),
        ("${{ toJSON(secrets) }}", True),
        ("${{ join(secrets.*, ',') }}", True),
        ("${{ format('{0}', secrets.ANTHROPIC_API_KEY) }}", True),
        ("${{ secrets.NPM_TOKEN }}", False),
        ("${{ secrets.GITHUB_TOKEN }}", False),
        ("${{ secrets.GEMINI_API_KEY }}", False),
        ("${{ secrets.OPENAI_API_KEY != '' }}", False),
        ("OPENAI_API_KEY", False),
        ("", False),
    ],
)
def test_a_configured_secret_makes_a_workflow_paid(tmp_path: Path, key: str, paid: bool) -> None:
    assert is_paid(tmp_path, WORKFLOW % key.replace("'", "''")) is paid


def test_without_configuration_a_secret_alone_does_not(tmp_path: Path) -> None:
    text = WORKFLOW % "${{ secrets.OPENAI_API_KEY }}"
    assert lint_paid(tmp_path, {PATH: text, **NO_CATALOG}).rules == set()
    for key in ("${{ secrets[matrix.key] }}", "${{ toJSON(secrets) }}"):
        assert lint_paid(tmp_path, {PATH: WORKFLOW % key, **NO_CATALOG}).rules == set()


def test_a_comment_makes_it_paid_and_known_names_count(tmp_path: Path) -> None:
    text = "# runner-e2e: paid\n" + WORKFLOW % "${{ secrets.GEMINI_API_KEY }}"
    found = lint_paid(tmp_path, {PATH: text, **NO_CATALOG})
    assert "the job `a` holds `secrets.GEMINI_API_KEY` and has no environment" in found.of("paid-environment")


def test_the_list_in_the_catalog_takes_the_place_of_the_credentials(tmp_path: Path) -> None:
    catalog = {".github/runner-e2e.yml": "version: 1\nlint: {provider-secrets: [My_Key]}\n"}
    text = WORKFLOW % "${{ secrets.MY_KEY }}"
    assert lint_paid(tmp_path, {PATH: text, **catalog}).of("paid-trigger") == ["`push` starts a workflow that pays"]


RUN = f"""\
on: push
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - uses: {OURS}
        env:
          PAPERCLIP_RUNNER_E2E_SELECTED_ID: %s
          %s
        with: {{command: run}}
"""


@pytest.mark.parametrize(
    ("cell", "more", "paid"),
    [
        ("suite.profile.env.case", "X: y", False),
        ("${{ inputs.id }}", "X: y", True),
        ("suite.profile.env.case", "KEY: '${{ secrets.ANYTHING }}'", True),
    ],
)
def test_a_run_pays_unless_its_cell_is_a_constant_and_no_secret_is_there(
    tmp_path: Path, cell: str, more: str, paid: bool
) -> None:
    text = RUN % (f"'{cell}'", more)
    files = {PATH: text, **NO_CATALOG}
    assert (paid_workflow(*analysed(tmp_path, files)) is not None) is paid


def test_a_secret_of_the_run_counts_by_whatever_name(tmp_path: Path) -> None:
    text = RUN % (
        "'${{ inputs.id }}'",
        "KEY: '${{ secrets.HOUSE_KEY }}'\n          RUNNER_E2E_KEY: '${{ secrets.OTHER }}'",
    )
    paid = paid_workflow(*analysed(tmp_path, {PATH: text, **NO_CATALOG}))
    assert paid is not None
    assert "HOUSE_KEY" in paid.providers
    assert "OTHER" not in paid.providers


def test_other_commands_do_not_pay(tmp_path: Path) -> None:
    for command in ("lint", "report", "gate", "setup"):
        text = RUN.replace("command: run", f"command: {command}") % ("x", "Y: z")
        assert not is_paid(tmp_path, text), command


ACTION = """\
name: inner
inputs:
  key: {required: true}
runs:
  using: composite
  steps:
    - run: tool
      shell: bash
      env: {KEY: '${{ inputs.key }}'}
    - run: other
      shell: bash
"""


def test_a_key_goes_through_an_input_to_one_step_of_an_action(tmp_path: Path) -> None:
    text = changed(
        ("      - run: tool\n", "      - uses: ./inner\n"),
        ("env: {KEY:", "with: {key:"),
        text=WORKFLOW % "${{ secrets.OPENAI_API_KEY }}",
    )
    paid = paid_workflow(*analysed(tmp_path, {PATH: text, "inner/action.yml": ACTION}))
    assert paid is not None
    (job,) = paid.jobs
    assert [[use.name for use in leaf.secrets] for leaf in job.leaves] == [["OPENAI_API_KEY"], []]
    (use,) = job.leaves[0].own
    assert (use.frame.path, use.target) == ("inner/action.yml", "KEY")


def test_a_key_in_the_env_of_an_action_is_in_every_step(tmp_path: Path) -> None:
    text = changed(("      - run: tool\n", "      - uses: ./inner\n"), text=WORKFLOW % "${{ secrets.OPENAI_API_KEY }}")
    paid = paid_workflow(*analysed(tmp_path, {PATH: text, "inner/action.yml": ACTION}))
    assert paid is not None
    assert [[use.name for use in leaf.secrets] for leaf in paid.jobs[0].leaves] == [["OPENAI_API_KEY"]] * 2
    found = lint_paid(tmp_path, {PATH: text, "inner/action.yml": ACTION})
    assert "`secrets.OPENAI_API_KEY` is in the `env` of an action with 2 steps" in found.of("paid-secret-scope")


def test_a_condition_at_the_caller_guards_inside_of_an_action(tmp_path: Path) -> None:
    """The key is chosen where the action is used; its step takes what it is given."""
    key = "matrix.credential == 'OPENAI_API_KEY' && secrets.OPENAI_API_KEY || ''"
    action = ACTION.replace("    - run: other\n      shell: bash\n", "").replace(
        "      env: {KEY: '${{ inputs.key }}'}", "      env: {KEY: '${{ inputs.key }}', B: '${{ inputs.other }}'}"
    )
    start = GOOD.index("      - id: run\n")
    end = GOOD.index("  report:\n")
    use = (
        f"      - uses: ./inner\n        with:\n          key: ${{{{ {key} }}}}\n"
        "          other: ${{ matrix.credential == 'A' && secrets.ANTHROPIC_API_KEY || '' }}\n"
    )
    text = f"{GOOD[:start]}{use}{GOOD[end:]}"
    assert lint_paid(tmp_path, {PATH: text, "inner/action.yml": action}).of("paid-secret-scope") == []


CALLER = """\
on: %s
jobs:
  call:
    uses: ./.github/workflows/cells.yml
    with: {where: %s, label: %s, ref: '%s'}
    secrets: %s
"""
CALLEE = f"""\
on:
  workflow_call:
    inputs:
      where: {{type: string}}
      label: {{type: string, default: ubuntu-24.04}}
      ref: {{type: string}}
jobs:
  cell:
    runs-on: ${{{{ inputs.label }}}}
    environment: ${{{{ inputs.where }}}}
    steps:
      - uses: {CHECKOUT}
        with: {{ref: '${{{{ inputs.ref }}}}', persist-credentials: false}}
      - uses: {OURS}
        env: {{KEY: '${{{{ secrets.OPENAI_API_KEY }}}}'}}
        with: {{command: run}}
"""
CELLS = ".github/workflows/cells.yml"


def call(root: Path, *given: str) -> dict[str, list[str]]:
    found = lint_paid(root, {PATH: CALLER % given, CELLS: CALLEE})
    return {rule: found.of(rule) for rule in found.rules}


def test_constants_of_the_caller_are_constants_in_the_called_workflow(tmp_path: Path) -> None:
    found = call(tmp_path, "workflow_dispatch", "paid-evals", "ubuntu-24.04", "${{ github.sha }}", "inherit")
    assert not found.keys() & {"paid-environment", "paid-runner-label", "paid-checkout", "paid-secret-scope"}


def test_inputs_of_the_caller_are_inputs_there_too(tmp_path: Path) -> None:
    found = call(tmp_path, "workflow_dispatch", "'${{ inputs.e }}'", "'${{ vars.L }}'", "${{ inputs.r }}", "inherit")
    assert found["paid-environment"] == ["the environment of the job `cell` is chosen by `inputs.e`"]
    assert found["paid-runner-label"] == ["`vars.L` decides on which machine the job `cell` runs"]
    assert found["paid-checkout"] == ["the checkout is decided by `inputs.r`"]


def test_secrets_by_name_come_from_no_environment(tmp_path: Path) -> None:
    given = "{key: '${{ secrets.OPENAI_API_KEY }}'}"
    found = call(tmp_path, "workflow_dispatch", "paid-evals", "ubuntu-24.04", "", given)
    assert found["paid-environment"] == [
        "`secrets.OPENAI_API_KEY` is handed over by name, and so comes from no environment"
    ]


def test_a_secret_has_its_own_name_at_the_caller(tmp_path: Path) -> None:
    callee = CALLEE.replace("secrets.OPENAI_API_KEY", "secrets.key")
    text = CALLER % ("workflow_dispatch", "e", "l", "", "{KEY: '${{ secrets.OPENAI_API_KEY }}'}")
    paid = paid_workflow(*analysed(tmp_path, {PATH: text, CELLS: callee}))
    assert paid is not None
    assert [[use.name for use in job.secrets] for job in paid.jobs] == [["OPENAI_API_KEY"]] * 2


def test_whoever_calls_a_paid_workflow_pays(tmp_path: Path) -> None:
    found = call(tmp_path, "[push, issue_comment]", "paid-evals", "ubuntu-24.04", "", "inherit")
    assert found["paid-trigger"] == [
        "`push` starts a workflow that pays",
        "`issue_comment` starts a workflow that pays",
    ]
    again = f"on: pull_request_target\njobs:\n  far:\n    uses: ./{PATH}\n    secrets: inherit\n"
    called = CALLER % ("workflow_call", "e", "l", "", "inherit")
    files = {PATH: called, CELLS: CALLEE, ".github/workflows/far.yml": again}
    assert lint_paid(tmp_path, files, ".github/workflows/far.yml").of("paid-trigger") == [
        "`pull_request_target` starts a workflow that pays"
    ]


def test_a_workflow_of_another_repository_must_not_get_keys(tmp_path: Path) -> None:
    """Nobody can see what it does: handed over by name or all together."""
    for given in ("inherit", "{key: '${{ secrets.OPENAI_API_KEY }}'}"):
        far = (
            f"  far:\n    needs: gate\n    uses: other/repo/.github/workflows/x.yml@{'a' * 40}\n    secrets: {given}\n"
        )
        text = f"{GOOD}{far}"
        assert any("goes to `other/repo" in each for each in lint_paid(tmp_path, text).of("paid-secret-scope")), given


def test_the_list_of_paid_workflows(tmp_path: Path) -> None:
    other = ".github/workflows/other.yml"
    message = "`secrets.ANTHROPIC_API_KEY` is used in a workflow that is not on the list"
    assert lint_paid(tmp_path, {other: GOOD}, other).of("paid-secret-scope") == [message]
    open_catalog = CATALOG.replace("  paid-workflows: [.github/workflows/paid*.yml]\n", "  profile: all\n")
    files = {other: GOOD, ".github/runner-e2e.yml": open_catalog}
    assert lint_paid(tmp_path, files, other).of("paid-secret-scope") == []


def test_installations_behind_actions_scripts_and_packages(tmp_path: Path) -> None:
    step = "      - run: npm ci --ignore-scripts\n"
    files = {
        "tools/action.yml": "name: t\nruns:\n  using: composite\n  steps:\n    - run: pnpm i\n      shell: bash\n",
        "scripts/prepare.sh": "#!/bin/sh\n. ./scripts/more.sh\n",
        "scripts/more.sh": "install() { yarn --frozen-lockfile; }\n",
        "package.json": '{"scripts": {"bootstrap": "npm run deps", "deps": "npm install"}}',
    }
    text = in_job(
        "cells",
        (step, "      - uses: ./tools\n      - run: ./scripts/prepare.sh\n      - run: npm run bootstrap\n"),
    )
    found = lint_paid(tmp_path, {PATH: text, **files})
    places = {
        (each.span.path, each.message.split("`")[1]) for each in found.findings if each.rule == "paid-install-scripts"
    }
    assert places == {
        ("tools/action.yml", "pnpm i"),
        ("scripts/more.sh", "yarn --frozen-lockfile"),
        (PATH, "npm install"),
    }
    quiet = {**files, ".npmrc": "ignore-scripts=true\n"}
    found = lint_paid(tmp_path, {PATH: text, **quiet})
    assert {each.span.path for each in found.findings if each.rule == "paid-install-scripts"} == {"scripts/more.sh"}


def test_circles_end(tmp_path: Path) -> None:
    """Actions, workflows, jobs, outputs and package scripts that lead back to themselves."""
    text = GOOD.replace("needs: gate\n", "needs: [gate, report]\n", 1).replace(
        "target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ needs.gate.outputs.target-sha }}"
    )
    text = in_job("gate", ("    runs-on", "    needs: [cells, gate]\n    runs-on"), text=text)
    text = in_job(
        "cells", ("      - run: npm ci --ignore-scripts\n", "      - uses: ./loop\n      - run: npm run a\n"), text=text
    )
    files = {
        "loop/action.yml": "name: l\nruns:\n  using: composite\n  steps:\n    - uses: ./loop\n    - uses: ./loop\n",
        "package.json": '{"scripts": {"a": "npm run b", "b": "npm run a"}}',
    }
    lint_paid(tmp_path, {PATH: text, **files})
    lint_paid(
        tmp_path,
        f"on: push\njobs:\n  a:\n    uses: ./{PATH}\n    secrets: inherit\n  b:\n    uses: ./{PATH}\n"
        "    with: {k: '${{ toJSON(secrets) }}'}\n",
    )


def test_nothing_that_is_written_stops_the_rules(tmp_path: Path) -> None:
    """Each part of the workflow by each wrong kind of value: null, a list, a number, a mapping, an expression."""
    repository = write(tmp_path, {})
    rules = [rule for rule in RULES if rule.profile == "paid" and rule.inspect is not None]
    lines = GOOD.splitlines(keepends=True)
    chance = random.Random(7)
    wrong = ("", "[a, [b]]", "7", "{a: {b: }}", "${{ inputs.x }}", "${{", "true", "''", "*none", "&a [1]", "inherit")
    read = 0
    for number, line in enumerate(lines):
        name, colon, _ = line.partition(":")
        for value in chance.sample(wrong, 4) if colon else ("- x\n",):
            new = f"{name}: {value}\n" if colon else value
            text = "".join((*lines[:number], new, *lines[number + 1 :]))
            try:
                document = Document(path=PATH, text=text, root=compose(text, path=PATH))
            except Exception:  # noqa: BLE001 - not YAML: told before any rule
                continue
            read += 1
            run = Run(repository, deadline=float("inf"))
            for rule in rules:
                assert rule.inspect is not None
                list(rule.inspect(run, document))
    assert read > 150
