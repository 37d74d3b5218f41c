"""Ways to break each rule about paid workflows, and what they must not report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.paid.sample import CHECKOUT, GOOD, OURS, changed, in_job, lint_paid

if TYPE_CHECKING:
    from pathlib import Path

SHA = "9d7a6e56666f8acd43fe67dc897c09f4817b4b36"
REF = "ref: ${{ needs.gate.outputs.target-sha }}"
INSTALL = "      - run: npm ci --ignore-scripts\n"
RUN = "      - id: run\n"
ANTHROPIC = (
    "          ANTHROPIC_API_KEY: ${{ matrix.credential == 'ANTHROPIC_API_KEY' && secrets.ANTHROPIC_API_KEY || '' }}\n"
)
OPENAI = "          OPENAI_API_KEY: ${{ matrix.credential == 'OPENAI_API_KEY' && secrets.OPENAI_API_KEY || '' }}\n"
KEY = "${{ secrets.OPENAI_API_KEY }}"
TIMEOUT = "    timeout-minutes: ${{ matrix.timeout }}\n"


def cells(*changes: tuple[str, str], text: str = GOOD) -> str:
    return in_job("cells", *changes, text=text)


def triggers(text: str) -> str:
    start, end = GOOD.index("on:\n"), GOOD.index("permissions:")
    return f"{GOOD[:start]}{text}{GOOD[end:]}"


def ref(text: str) -> str:
    return cells((REF, f"ref: {text}"))


def test_the_good_workflow_is_clean(tmp_path: Path) -> None:
    assert lint_paid(tmp_path, GOOD).findings == []


BAD: dict[str, tuple[str, str, str]] = {
    # paid-trigger
    "push as a word": (triggers("on: push\n"), "paid-trigger", "`push` starts"),
    "a list": (triggers("on: [schedule, pull_request_target]\n"), "paid-trigger", "`pull_request_target` starts"),
    "a mapping": (triggers("on:\n  schedule:\n  workflow_run: {workflows: [CI]}\n"), "paid-trigger", "`workflow_run`"),
    "a comment": (triggers("on: {issue_comment: {types: [created]}}\n"), "paid-trigger", "`issue_comment` starts"),
    "an API event": (triggers("on: {repository_dispatch: }\n"), "paid-trigger", "`repository_dispatch` starts"),
    "excluded by the job": (
        in_job(
            "cells",
            ("    strategy", "    if: github.event_name == 'schedule'\n    strategy"),
            text=triggers("on: [push, schedule]\n"),
        ),
        "paid-trigger",
        "`push` starts",
    ),
    # paid-environment
    "no environment": (cells(("    environment: paid-evals\n", "")), "paid-environment", "has no environment"),
    "an empty environment": (cells(("paid-evals", "''")), "paid-environment", "has no environment"),
    "no name": (cells(("environment: paid-evals", "environment: {url: 'https://x'}")), "paid-environment", "has no"),
    "the environment is an input": (
        cells(("paid-evals", "${{ inputs.environment }}")),
        "paid-environment",
        "is chosen by",
    ),
    "the name is an input": (
        cells(("environment: paid-evals", "environment: {name: '${{ github.event.inputs.environment }}'}")),
        "paid-environment",
        "is chosen by `github.event.inputs.environment`",
    ),
    "the environment is a variable": (cells(("paid-evals", "${{ vars.ENVIRONMENT }}")), "paid-environment", "`vars.E"),
    "the environment depends on the branch": (
        cells(("paid-evals", "${{ github.ref_name }}")),
        "paid-environment",
        "`github.ref_name`",
    ),
    "the environment may be empty": (
        cells(("paid-evals", "${{ github.run_id == 1 && 'paid-evals' || '' }}")),
        "paid-environment",
        "may be empty",
    ),
    "the environment comes over an output": (
        in_job(
            "gate",
            ("    outputs:\n", "    outputs:\n      where: ${{ inputs.where }}\n"),
            text=cells(("paid-evals", "${{ needs.gate.outputs.where }}")),
        ),
        "paid-environment",
        "is chosen by `inputs.where`",
    ),
    # paid-secret-scope
    "in the env of the workflow": (
        changed(("jobs:\n", f"env: {{K: '{KEY}'}}\njobs:\n")),
        "paid-secret-scope",
        "is in the `env` of the workflow",
    ),
    "in the env of the job": (
        cells(("    strategy", f"    env: {{K: '{KEY}'}}\n    strategy")),
        "paid-secret-scope",
        "is in the `env` of the job",
    ),
    "in a container": (
        cells(("    strategy", f"    container: {{image: alpine, env: {{K: '{KEY}'}}}}\n    strategy")),
        "paid-secret-scope",
        "is in the container of the job",
    ),
    "in the password of a service": (
        cells(
            ("    strategy", f"    services: {{db: {{image: a, credentials: {{password: '{KEY}'}}}}}}\n    strategy")
        ),
        "paid-secret-scope",
        "is in the container of the job",
    ),
    "in an output of the job": (
        cells(("    strategy", f"    outputs: {{k: '{KEY}'}}\n    strategy")),
        "paid-secret-scope",
        "is in a field of the job",
    ),
    "an index": (
        cells((ANTHROPIC, "          KEY: ${{ secrets[matrix.credential] }}\n")),
        "paid-secret-scope",
        "a name that is not a constant sends",
    ),
    "a computed index": (
        cells((ANTHROPIC, "          KEY: ${{ secrets[format('{0}_API_KEY', matrix.p)] }}\n")),
        "paid-secret-scope",
        "a name that is not",
    ),
    "all secrets": (
        cells((ANTHROPIC, "          KEYS: ${{ toJSON(secrets) }}\n")),
        "paid-secret-scope",
        "all of `secrets` sends",
    ),
    "a star": (
        cells((ANTHROPIC, "          KEYS: ${{ join(secrets.*) }}\n")),
        "paid-secret-scope",
        "sends every secret",
    ),
    "given to setup": (
        cells(("        with: {command: setup}", f"        with: {{command: setup}}\n        env: {{K: '{KEY}'}}")),
        "paid-secret-scope",
        "and does not pay",
    ),
    "given to the gate": (
        cells(("        with: {command: gate}", f"        with: {{command: gate}}\n        env: {{K: '{KEY}'}}")),
        "paid-secret-scope",
        "and does not pay",
    ),
    "given to the installation": (
        cells((INSTALL, f"{INSTALL}        env: {{K: '{KEY}'}}\n")),
        "paid-secret-scope",
        "the step `npm ci --ignore-scripts` has",
    ),
    "given to the checkout": (cells((REF, f"token: {KEY}\n          {REF}")), "paid-secret-scope", "and does not pay"),
    "in another job": (
        in_job(
            "report",
            (
                f"      - uses: {CHECKOUT}",
                (
                    f"      - run: notify\n        env: {{K: '{KEY}'}}\n"
                    f"      - run: again\n        env: {{K: '{KEY}'}}\n      - uses: {CHECKOUT}"
                ),
            ),
        ),
        "paid-secret-scope",
        "the step `notify` has",
    ),
    "in the text of the script": (
        cells((INSTALL, f"      - run: tool {KEY}\n")),
        "paid-secret-scope",
        "is in the text of the script",
    ),
    "in the name of a step": (
        cells((INSTALL, f"      - run: tool\n        name: '{KEY}'\n")),
        "paid-secret-scope",
        "is in a field of the step",
    ),
    "for every cell": (
        cells((OPENAI, f"          OPENAI_API_KEY: {KEY}\n")),
        "paid-secret-scope",
        "is given to every cell",
    ),
    "in brackets and capitals": (
        cells((OPENAI, "          OPENAI_API_KEY: ${{ SECRETS['openai_api_key'] }}\n")),
        "paid-secret-scope",
        "is given to every cell",
    ),
    "whether it is there is no condition": (
        cells(
            (OPENAI, "          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY != '' && secrets.OPENAI_API_KEY || '' }}\n")
        ),
        "paid-secret-scope",
        "is given to every cell",
    ),
    "one or the other": (
        cells((OPENAI, "          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY || secrets.ANTHROPIC_API_KEY }}\n")),
        "paid-secret-scope",
        "is given to every cell",
    ),
    # paid-checkout
    "an input": (ref("${{ inputs.ref }}"), "paid-checkout", "is decided by `inputs.ref`"),
    "an input of the event": (ref("${{ github.event.inputs.ref }}"), "paid-checkout", "`github.event.inputs.ref`"),
    "an input with a default": (ref("${{ inputs.ref || github.sha }}"), "paid-checkout", "`inputs.ref`"),
    "a formatted input": (ref("${{ format('refs/heads/{0}', inputs.branch) }}"), "paid-checkout", "`inputs.branch`"),
    "an input among text": (ref("refs/heads/${{ inputs.branch }}"), "paid-checkout", "`inputs.branch`"),
    "the head of a pull request": (
        ref("${{ github.event.pull_request.head.sha }}"),
        "paid-checkout",
        "`github.event.pull_r",
    ),
    "the branch": (ref("${{ github.ref }}"), "paid-checkout", "`github.ref`"),
    "the head ref": (ref("${{ github.head_ref || github.sha }}"), "paid-checkout", "`github.head_ref`"),
    "a variable": (ref("${{ vars.REF }}"), "paid-checkout", "`vars.REF`"),
    "over the env of the job": (
        cells((REF, "ref: ${{ env.REF }}"), ("    strategy", "    env: {REF: '${{ inputs.ref }}'}\n    strategy")),
        "paid-checkout",
        "is decided by `inputs.ref`",
    ),
    "over the env of the workflow": (
        changed(("jobs:\n", "env: {REF: '${{ inputs.ref }}'}\njobs:\n"), text=cells((REF, "ref: ${{ env.REF }}"))),
        "paid-checkout",
        "is decided by `inputs.ref`",
    ),
    "over the output of a job": (
        changed(("target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ inputs.ref }}")),
        "paid-checkout",
        "is decided by `inputs.ref`",
    ),
    "over a script": (
        changed(
            ("target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ steps.pass.outputs.ref }}"),
            (
                "      - id: gate\n",
                (
                    "      - id: pass\n        env: {REF: '${{ inputs.ref }}'}\n"
                    '        run: echo "ref=$REF" >> "$GITHUB_OUTPUT"\n      - id: gate\n'
                ),
            ),
        ),
        "paid-checkout",
        "is decided by `inputs.ref`, which `steps.pass.outputs.ref` makes a text of",
    ),
    "over an action": (
        changed(
            ("target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ steps.pass.outputs.ref }}"),
            (
                "      - id: gate\n",
                (
                    f"      - id: pass\n        uses: some/echo@{SHA}\n"
                    "        with: {text: '${{ inputs.ref }}'}\n      - id: gate\n"
                ),
            ),
        ),
        "paid-checkout",
        "is decided by `inputs.ref`, which",
    ),
    "over the matrix": (
        cells(
            (REF, "ref: ${{ matrix.ref }}"),
            ("${{ fromJSON(needs.plan.outputs.matrix) }}", "{ref: ['${{ inputs.ref }}']}"),
        ),
        "paid-checkout",
        "is decided by `inputs.ref`",
    ),
    "over an entry that the matrix includes": (
        cells(
            (REF, "ref: ${{ matrix.ref }}"),
            ("${{ fromJSON(needs.plan.outputs.matrix) }}", "{include: [{ref: '${{ inputs.ref }}'}]}"),
        ),
        "paid-checkout",
        "is decided by `inputs.ref`",
    ),
    "the branch of the gate": (
        ref("${{ needs.gate.outputs.target-ref }}").replace(
            "target-sha: ${{ steps.gate.outputs.target-sha", "target-ref: ${{ steps.gate.outputs.target-ref"
        ),
        "paid-checkout",
        "is at `steps.gate.outputs.target-ref`, which is no commit",
    ),
    "a branch": (ref("develop"), "paid-checkout", "the checkout is at `develop`, which is no commit"),
    "another repository": (
        cells((REF, "repository: ${{ inputs.repository }}")),
        "paid-checkout",
        "the repository of the checkout is decided by",
    ),
    "another repository at no commit": (
        cells((REF, "repository: other/target")),
        "paid-checkout",
        "`other/target` is checked out at no fixed commit",
    ),
    "the token stays": (cells(("          persist-credentials: false\n", "")), "paid-checkout", "leaves its token"),
    "the token may stay": (
        cells(("credentials: false", "credentials: ${{ inputs.keep }}")),
        "paid-checkout",
        "leaves its token",
    ),
    "the token stays in capitals": (
        cells(("credentials: false", "credentials: TRUE")),
        "paid-checkout",
        "leaves its token",
    ),
    "the token stays when nothing is said": (
        cells(("credentials: false", "credentials:")),
        "paid-checkout",
        "leaves its token",
    ),
    "git in a script": (
        cells(
            (
                INSTALL,
                (
                    '      - run: git fetch origin "$REF" && git checkout FETCH_HEAD\n'
                    "        env: {REF: '${{ inputs.ref }}'}\n"
                ),
            )
        ),
        "paid-checkout",
        "`git` gets what `inputs.ref` names",
    ),
    "gh in a script": (
        cells((INSTALL, "      - run: gh pr checkout ${{ inputs.number }}\n")),
        "paid-checkout",
        "`gh` gets what `inputs.number` names",
    ),
    # paid-install-scripts
    "npm ci": (cells((INSTALL, "      - run: npm ci\n")), "paid-install-scripts", "`npm ci` runs programs"),
    "npm with options before": (
        cells((INSTALL, "      - run: npm --prefix web install\n")),
        "paid-install-scripts",
        "`npm --prefix web",
    ),
    "behind sudo and env": (
        cells((INSTALL, "      - run: sudo env CI=1 npm i\n")),
        "paid-install-scripts",
        "`sudo env CI=1 npm i`",
    ),
    "in a condition": (cells((INSTALL, "      - run: if true; then npm ci; fi\n")), "paid-install-scripts", "`npm ci`"),
    "in a function": (
        cells((INSTALL, "      - run: 'f() { pnpm install; }; f'\n")),
        "paid-install-scripts",
        "`pnpm install`",
    ),
    "in a substitution": (cells((INSTALL, '      - run: echo "$(yarn)"\n')), "paid-install-scripts", "`yarn`"),
    "in bash -c": (cells((INSTALL, "      - run: bash -c 'npm ci'\n")), "paid-install-scripts", "`npm ci`"),
    "switched off for another command": (
        cells((INSTALL, "      - run: npm ci --ignore-scripts && npm rebuild\n")),
        "paid-install-scripts",
        "`npm rebuild`",
    ),
    "switched on again": (
        cells((INSTALL, "      - run: npm ci --ignore-scripts=false\n")),
        "paid-install-scripts",
        "`npm ci",
    ),
    "loaded and run": (
        cells((INSTALL, "      - run: npx tsx evaluate.ts\n")),
        "paid-install-scripts",
        "`npx tsx evaluate.ts`",
    ),
    "pip": (
        cells((INSTALL, "      - run: python3 -m pip install -r requirements.txt\n")),
        "paid-install-scripts",
        "pip install",
    ),
    "uv": (cells((INSTALL, "      - run: uv sync --locked\n")), "paid-install-scripts", "`uv sync --locked`"),
    "in PowerShell": (
        cells((INSTALL, "      - run: npm ci\n        shell: pwsh\n")),
        "paid-install-scripts",
        "`npm ci`",
    ),
    "an action that installs": (
        cells((INSTALL, f"      - uses: bahmutov/npm-install@{SHA}\n")),
        "paid-install-scripts",
        "`bahmutov/npm-install` runs",
    ),
    "an action that may install": (
        cells((INSTALL, f"      - uses: pnpm/action-setup@{SHA}\n        with: {{run_install: true}}\n")),
        "paid-install-scripts",
        "`pnpm/action-setup`",
    ),
    # paid-runner-label
    "a label from an input": (
        cells(("ubuntu-24.04", "${{ inputs.runner }}")),
        "paid-runner-label",
        "`inputs.runner` decides",
    ),
    "a label from a variable": (
        cells(("ubuntu-24.04", "${{ vars.RUNNER || 'ubuntu-24.04' }}")),
        "paid-runner-label",
        "`vars.RUNNER`",
    ),
    "labels from a variable": (
        cells(("ubuntu-24.04", "${{ fromJSON(vars.RUNNER) }}")),
        "paid-runner-label",
        "`vars.RUNNER`",
    ),
    "one label of a list": (
        cells(("ubuntu-24.04", "[self-hosted, '${{ inputs.runner }}']")),
        "paid-runner-label",
        "`inputs.runner`",
    ),
    "a group": (cells(("ubuntu-24.04", "{group: '${{ inputs.group }}'}")), "paid-runner-label", "`inputs.group`"),
    "over the matrix of runners": (
        cells(
            ("ubuntu-24.04", "${{ matrix.os }}"),
            ("${{ fromJSON(needs.plan.outputs.matrix) }}", "{os: ['${{ vars.OS }}']}"),
        ),
        "paid-runner-label",
        "`vars.OS` decides",
    ),
    "the gate elsewhere": (
        in_job("gate", ("ubuntu-24.04", "${{ vars.RUNNER }}")),
        "paid-runner-label",
        "the job `gate` runs",
    ),
    # paid-concurrency
    "none": (
        changed(("concurrency:\n  group: paid-${{ github.run_id }}\n  cancel-in-progress: false\n", "")),
        "paid-concurrency",
        "has no `concurrency`",
    ),
    "cancelled": (changed(("progress: false", "progress: true")), "paid-concurrency", "a newer run ends this one"),
    "perhaps cancelled": (
        changed(("progress: false", "progress: ${{ github.event_name == 'schedule' }}")),
        "paid-concurrency",
        "a newer run ends this one",
    ),
    "cancelled in the job": (
        cells(
            (
                "    strategy",
                "    concurrency: {group: 'x-${{ matrix.handle }}', cancel-in-progress: true}\n    strategy",
            )
        ),
        "paid-concurrency",
        "a newer run ends this one",
    ),
    "one group for all": (changed(("paid-${{ github.run_id }}", "paid")), "paid-concurrency", "drop one another"),
    "one group a branch": (changed(("github.run_id", "github.ref")), "paid-concurrency", "drop one another"),
    "a word": (
        changed(
            ("concurrency:\n  group: paid-${{ github.run_id }}\n  cancel-in-progress: false\n", "concurrency: paid\n")
        ),
        "paid-concurrency",
        "drop one another",
    ),
    "one group for all cells": (
        cells(("    strategy", "    concurrency: cells-${{ github.run_id }}\n    strategy")),
        "paid-concurrency",
        "all cells of the job `cells` share one group",
    ),
    # paid-timeout
    "no limit": (cells((TIMEOUT, "")), "paid-timeout", "the job `cells` has no `timeout-minutes`"),
    "no limit of the gate": (in_job("gate", ("    timeout-minutes: 5\n", "")), "paid-timeout", "the job `gate` has no"),
    "an empty limit": (cells((TIMEOUT, "    timeout-minutes:\n")), "paid-timeout", "has no `timeout-minutes`"),
    "an input as the limit": (
        cells(("matrix.timeout", "fromJSON(inputs.minutes)")),
        "paid-timeout",
        "`inputs.minutes` sets",
    ),
    "days": (cells(("${{ matrix.timeout }}", "10000")), "paid-timeout", "may run for 10000 minutes"),
    # paid-schedule
    "no plan": (in_job("plan", ("command: plan", "command: gate")), "paid-schedule", "which waits for no `plan`"),
    "no claim": (
        in_job("plan", ("with: {command: claim}", "with: {command: gate}")),
        "paid-schedule",
        "which waits for no `claim`",
    ),
    "a plan that is not waited for": (
        cells(("needs: [gate, plan]", "needs: gate")),
        "paid-schedule",
        "which waits for no `plan`",
    ),
    "every minute": (changed(("17 3 * * 1", "* * * * *")), "paid-schedule", "pays 1440 times a day"),
    "four times an hour": (changed(("17 3 * * 1", "*/15 * * * *")), "paid-schedule", "pays 96 times a day"),
    "an input that is empty": (
        in_job("plan", ("inputs.selection || 'nightly'", "inputs.selection")),
        "paid-schedule",
        "`inputs.selection` is empty",
    ),
    "an input of the event that is empty": (
        in_job("plan", ("inputs.selection || 'nightly'", "github.event.inputs.selection")),
        "paid-schedule",
        "`github.event.inputs.selection` is empty",
    ),
    "a key that an input chooses": (
        cells((ANTHROPIC, ANTHROPIC.replace("matrix", "inputs"))),
        "paid-schedule",
        "`inputs.credential` is empty",
    ),
    # paid-permissions
    "none at all": (
        changed(("permissions: {}\n", ""), text=cells(("    permissions: {contents: read}\n", ""))),
        "paid-permissions",
        "nothing says what the token of the job `cells`",
    ),
    "write everything": (
        cells(("{contents: read}", "write-all")),
        "paid-permissions",
        "the paid job `cells` may write: everything",
    ),
    "write in the paid job": (
        cells(("{contents: read}", "{contents: read, issues: write}")),
        "paid-permissions",
        "may write: issues",
    ),
    "an identity in the paid job": (
        cells(("{contents: read}", "{id-token: write}")),
        "paid-permissions",
        "may write: id-token",
    ),
    "inherited from the workflow": (
        changed(
            ("permissions: {}", "permissions: {actions: write}"),
            text=cells(("    permissions: {contents: read}\n", "")),
        ),
        "paid-permissions",
        "the paid job `cells` may write: actions",
    ),
    "the gate may write": (
        in_job("gate", ("{contents: read}", "{contents: write}")),
        "paid-permissions",
        "neither claims nor settles",
    ),
    # unpinned-uses
    "a tag": (
        changed((CHECKOUT, "actions/checkout@v7")),
        "unpinned-uses",
        "`actions/checkout@v7` is not pinned to a commit",
    ),
    "a short commit": (changed((CHECKOUT, "actions/checkout@3d3c42e")), "unpinned-uses", "is not pinned"),
    "no version": (changed((CHECKOUT, "actions/checkout")), "unpinned-uses", "names no version"),
    "an image": (cells((INSTALL, "      - uses: docker://alpine:3\n")), "unpinned-uses", "is not pinned to a digest"),
    "ours": (changed((OURS, "org/runner-e2e-action@v1")), "unpinned-uses", "`org/runner-e2e-action@v1`"),
    # selection-by-argv
    "run --id": (
        cells((INSTALL, "      - run: runner-e2e run --local --id a.b.c.d\n")),
        "selection-by-argv",
        "by `--id`",
    ),
    "run --case=": (
        cells((INSTALL, "      - run: '\"$BIN\"/runner-e2e run --case=d'\n")),
        "selection-by-argv",
        "by `--case`",
    ),
    "as a module": (
        cells((INSTALL, '      - run: python3 -m runner_e2e run --id "$X"\n')),
        "selection-by-argv",
        "by `--id`",
    ),
    "for the whole job": (
        cells(("    strategy", "    env: {PAPERCLIP_RUNNER_E2E_SELECTED_ID: '${{ matrix.id }}'}\n    strategy")),
        "selection-by-argv",
        "is in the `env` of the job",
    ),
    "for the whole workflow": (
        changed(("jobs:\n", "env: {PAPERCLIP_RUNNER_E2E_SELECTED_ID: x}\njobs:\n")),
        "selection-by-argv",
        "is in the `env` of the workflow",
    ),
    "as an input": (
        cells(("with: {command: run}", "with: {command: run, selected-id: '${{ matrix.id }}'}")),
        "selection-by-argv",
        "the input `selected-id`",
    ),
    # paid-report-trust
    "the target's script": (
        in_job(
            "report",
            (
                "{persist-credentials: false}",
                (
                    "{persist-credentials: false, ref: '${{ needs.gate.outputs.target-sha }}'}\n"
                    "      - run: python3 scripts/report.py"
                ),
            ),
        ),
        "paid-report-trust",
        "`python3 scripts/report.py` runs code of the target",
    ),
    "the target's build": (
        in_job("report", ("{persist-credentials: false}", "{ref: '${{ inputs.ref }}'}\n      - run: make report")),
        "paid-report-trust",
        "`make report` runs code of the target",
    ),
    "the target's tests behind cd": (
        in_job("report", ("{persist-credentials: false}", "{ref: develop, path: t}\n      - run: cd t && npm test")),
        "paid-report-trust",
        "`npm test` runs code of the target",
    ),
    "the target's script in a hidden folder": (
        in_job("report", ("{persist-credentials: false}", "{ref: develop, path: .t}\n      - run: bash .t/publish.sh")),
        "paid-report-trust",
        "`bash .t/publish.sh` runs code of the target",
    ),
    "another repository's script": (
        in_job("report", ("{persist-credentials: false}", "{repository: o/r}\n      - run: ./publish.sh")),
        "paid-report-trust",
        "`./publish.sh` runs code of the target",
    ),
    "an artifact's script": (
        in_job(
            "report",
            (
                f"      - uses: {CHECKOUT}\n        with: {{persist-credentials: false}}",
                f"      - uses: actions/download-artifact@{SHA}\n      - run: bash results/publish.sh",
            ),
        ),
        "paid-report-trust",
        "`bash results/publish.sh` runs code of a downloaded artifact",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_reported(tmp_path: Path, name: str) -> None:
    text, rule, message = BAD[name]
    assert text != GOOD
    assert any(message in found for found in lint_paid(tmp_path, text).of(rule)), lint_paid(tmp_path, text).of(rule)


FINE: dict[str, tuple[str, str]] = {
    "a reusable trigger beside": (triggers("on: {workflow_dispatch: , workflow_call: }\n"), "paid-trigger"),
    "a schedule alone": (triggers("on: {schedule: [{cron: '0 4 * * *'}]}\n"), "paid-trigger"),
    "an environment in a mapping": (
        cells(("environment: paid-evals", "environment: {name: paid-evals}")),
        "paid-environment",
    ),
    "an environment by condition": (
        cells(("paid-evals", "${{ github.run_id == 1 && 'paid-a' || 'paid-b' }}")),
        "paid-environment",
    ),
    "an environment of a constant matrix": (
        cells(("paid-evals", "${{ matrix.e }}"), ("${{ fromJSON(needs.plan.outputs.matrix) }}", "{e: [a, b]}")),
        "paid-environment",
    ),
    "whether a key is there": (
        cells(("    strategy", "    env: {HAS: \"${{ secrets.OPENAI_API_KEY != '' }}\"}\n    strategy")),
        "paid-secret-scope",
    ),
    "another secret in the job": (
        cells(("    strategy", "    env: {T: '${{ secrets.NPM_TOKEN }}'}\n    strategy")),
        "paid-secret-scope",
    ),
    "the token of the job": (
        cells((INSTALL, "      - run: gh api x\n        env: {T: '${{ secrets.GITHUB_TOKEN }}'}\n")),
        "paid-secret-scope",
    ),
    "one key for all": (cells((ANTHROPIC, ""), (OPENAI, f"          OPENAI_API_KEY: {KEY}\n")), "paid-secret-scope"),
    "a key by contains()": (
        cells(
            (OPENAI, "          OPENAI_API_KEY: ${{ contains(matrix.keys, 'O') && secrets.OPENAI_API_KEY || '' }}\n")
        ),
        "paid-secret-scope",
    ),
    "the commit of the run": (ref("${{ github.sha }}"), "paid-checkout"),
    "no ref": (cells((f"          {REF}\n", "")), "paid-checkout"),
    "a commit": (ref(SHA), "paid-checkout"),
    "a commit or that of the run": (ref("${{ needs.gate.outputs.target-sha || github.sha }}"), "paid-checkout"),
    "no word for no": (cells(("credentials: false", "credentials: 'False'")), "paid-checkout"),
    "a script that resolves a constant": (
        changed(
            ("target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ steps.tip.outputs.sha }}"),
            (
                "      - id: gate\n",
                (
                    "      - id: tip\n"
                    '        run: echo "sha=$(git ls-remote origin main | cut -f1)" >> "$GITHUB_OUTPUT"\n'
                    "      - id: gate\n"
                ),
            ),
        ),
        "paid-checkout",
    ),
    "another repository at a commit": (
        cells((REF, f"repository: other/target\n          ref: {SHA}")),
        "paid-checkout",
    ),
    "git that fetches nothing": (
        cells((INSTALL, "      - run: git log \"$REF\"\n        env: {REF: '${{ inputs.ref }}'}\n")),
        "paid-checkout",
    ),
    "npm by a variable": (
        cells((INSTALL, "      - run: npm ci\n        env: {npm_config_ignore_scripts: 'true'}\n")),
        "paid-install-scripts",
    ),
    "npm by an assignment": (
        cells((INSTALL, "      - run: NPM_CONFIG_IGNORE_SCRIPTS=1 npm ci\n")),
        "paid-install-scripts",
    ),
    "npm that installs nothing": (cells((INSTALL, "      - run: npm run build && npm test\n")), "paid-install-scripts"),
    "npx without loading": (cells((INSTALL, "      - run: npx --no-install tsx x.ts\n")), "paid-install-scripts"),
    "pip with wheels": (cells((INSTALL, "      - run: 'pip install --only-binary :all: x'\n")), "paid-install-scripts"),
    "uv without builds": (cells((INSTALL, "      - run: uv sync --no-build\n")), "paid-install-scripts"),
    "in a comment": (
        cells((INSTALL, "      - run: |\n          # npm ci\n          echo 'npm ci'\n")),
        "paid-install-scripts",
    ),
    "after the paid step": (
        cells(("        with: {command: run}\n", "        with: {command: run}\n      - run: npm ci\n")),
        "paid-install-scripts",
    ),
    "in another job too": (
        in_job("report", (f"      - uses: {CHECKOUT}", f"      - run: npm ci\n      - uses: {CHECKOUT}")),
        "paid-install-scripts",
    ),
    "a constant matrix": (
        cells(
            ("ubuntu-24.04", "${{ matrix.os }}"), ("${{ fromJSON(needs.plan.outputs.matrix) }}", "{os: [ubuntu-24.04]}")
        ),
        "paid-runner-label",
    ),
    "a matrix of the plan": (cells(("ubuntu-24.04", "${{ matrix.runner }}")), "paid-runner-label"),
    "an input in another job": (in_job("report", ("ubuntu-24.04", "${{ inputs.runner }}")), "paid-runner-label"),
    "cancelled for an event that does not start it": (
        changed(("progress: false", "progress: ${{ github.event_name == 'pull_request' }}")),
        "paid-concurrency",
    ),
    "a nonce": (changed(("github.run_id", "inputs.nonce")), "paid-concurrency"),
    "a group a cell": (
        cells(("    strategy", "    concurrency: 'c-${{ github.run_id }}-${{ matrix.handle }}'\n    strategy")),
        "paid-concurrency",
    ),
    "an hour": (changed(("17 3 * * 1", "0 * * * *")), "paid-schedule"),
    "an input with something else": (
        in_job("plan", ("inputs.selection || 'nightly'", "inputs.selection || vars.SUITE")),
        "paid-schedule",
    ),
    "an image by digest": (cells((INSTALL, f"      - uses: docker://alpine@sha256:{'a' * 64}\n")), "unpinned-uses"),
    "a local action": (cells((INSTALL, "      - uses: ./.github/actions/x\n")), "unpinned-uses"),
    "run without a selection": (cells((INSTALL, "      - run: runner-e2e run\n")), "selection-by-argv"),
    "another verb": (cells((INSTALL, "      - run: runner-e2e cells list --case x\n")), "selection-by-argv"),
    "the run's own script": (
        in_job(
            "report",
            ("{persist-credentials: false}", "{persist-credentials: false}\n      - run: python3 scripts/report.py"),
        ),
        "paid-report-trust",
    ),
    "data of the target": (
        in_job(
            "report",
            (
                "{persist-credentials: false}",
                "{ref: '${{ needs.gate.outputs.target-sha }}'}\n      - run: jq . results.json\n      - run: cat a/b",
            ),
        ),
        "paid-report-trust",
    ),
    "data of an artifact": (
        in_job(
            "report",
            (
                f"      - uses: {CHECKOUT}",
                (
                    f"      - uses: actions/download-artifact@{SHA}\n"
                    f"      - run: python3 -c 'print(1)'\n      - uses: {CHECKOUT}"
                ),
            ),
        ),
        "paid-report-trust",
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_it_is_not_reported(tmp_path: Path, name: str) -> None:
    text, rule = FINE[name]
    assert text != GOOD
    assert lint_paid(tmp_path, text).of(rule) == []
