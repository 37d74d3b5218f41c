"""Logs, summaries and names against what a run shows: each small workflow is run, looked at, and linted.

The header of a step's log, annotations, titles of groups, masks in summaries and names made by the server are GitHub's
alone: the local runner shows none of them, and they are not compared here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.truth.canary import PUBLIC, random_canary

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence
from runner_e2e.workflow_audit.model import WorkflowOptions
from runner_e2e.workflow_audit.run import audit_workflow

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
"""


def step(script: str, *, name: str = "one", extra: str = "") -> str:
    """The steps of a job: one script, with the id in its environment."""
    body = "".join(f"          {line}\n" for line in script.splitlines())
    named = f"      - name: {name}\n        run: |\n" if name else "      - run: |\n"
    return f"    steps:\n{named}{body}        env: {{ID: '${{{{ inputs.selected-id }}}}'}}\n{extra}"


COMMIT = "git init -q\ngit -c user.name=x -c user.email=x@x commit"
MATRIX = "    strategy: {matrix: {cell: ['${{ inputs.selected-id }}']}}\n"
CASES = {
    "nothing": step(': "$ID"'),
    "echo": step('echo "it is $ID"'),
    "standard error": step('echo "it is $ID" >&2'),
    "to nowhere": step('echo "$ID" > /dev/null'),
    "a piece": step('echo "${ID##*.}"'),
    "a few characters": step('echo "${ID:0:5}"'),
    "the length": step('echo "${#ID}"'),
    "a digest": step('sha256sum <<< "$ID"'),
    "cat of a file": step('echo "$ID" > f\ncat f'),
    "tee": step('echo "$ID" | tee f > /dev/null'),
    "tee to the log": step('echo "$ID" | tee f'),
    "trace": step('set -x\n: "$ID"'),
    "trace of an assignment": step("set -x\nCASE=${ID##*.}"),
    "trace switched off": step('set -x\ntrue\nset +x\n: "$ID"'),
    "verbose": step('set -v\n: "$ID"'),
    "env": step("env | sort"),
    "masked before": step('echo "::add-mask::$ID"\necho "$ID"'),
    "masked after": step('echo "$ID"\necho "::add-mask::$ID"'),
    "masked under a trace": step('set -x\necho "::add-mask::$ID"'),
    "masked whole, shown in part": step('echo "::add-mask::$ID"\necho "${ID##*.}"'),
    "masked in part, shown whole": step('echo "::add-mask::${ID##*.}"\necho "$ID"'),
    "masked, shown in upper case": step('echo "::add-mask::$ID"\necho "${ID^^}"'),
    "masked in upper case": step('echo "::add-mask::${ID^^}"\necho "${ID^^}"'),
    "masked as base64": step('B=$(base64 <<< "$ID")\necho "::add-mask::$B"\necho "$ID"'),
    "masked by jq": step('jq -nr \'"::add-mask::" + env.ID\'\necho "$ID"'),
    "masked by jq, in a text": step('jq -nr \'"::add-mask::\\(env.ID)"\'\necho "$ID"'),
    "masked by jq, with quotes": step("jq -n '\"::add-mask::\" + env.ID'"),
    "masked by jq, within a line": step("jq -nr '\"x ::add-mask::\" + env.ID'"),
    "masked by awk": step('awk \'{print "::add-mask::" $1}\' <<< "$ID"\necho "$ID"'),
    "masked within a line": step('printf "Mask: "\necho "::add-mask::$ID"'),
    "masked in the line after": step('printf "Mask:\\n"\necho "::add-mask::$ID"\necho "$ID"'),
    "masked in a function": step('mask() { echo "::add-mask::$1"; }\nmask "$ID"\necho "$ID"'),
    "masked in a subshell": step('( echo "::add-mask::$ID" )\necho "$ID"'),
    "masked in another shell": step('export ID\nbash -c \'echo "::add-mask::$ID"\'\necho "$ID"'),
    "masked, not at the start of a line": step('echo "x ::add-mask::$ID"'),
    "masked by a step before": step(
        'echo "::add-mask::$ID"',
        extra="      - name: two\n        run: echo \"$ID\"\n        env: {ID: '${{ inputs.selected-id }}'}\n",
    ),
    "masked while commands are stopped": step(
        'echo "::stop-commands::t0"\necho "::add-mask::$ID"\necho "::t0::"\necho "$ID"'
    ),
    "masked after commands were stopped": step(
        'echo "::stop-commands::t0"\necho "::t0::"\necho "::add-mask::$ID"\necho "$ID"'
    ),
    "masked by a job that was waited for": step('( echo "::add-mask::$ID" ) &\nwait\necho "$ID"'),
    "masked by one print": step('printf "%s\\n" "::add-mask::$ID" "$ID"'),
    "masked where nothing runs": step('if false; then echo "::add-mask::$ID"; fi\necho "$ID"'),
    "summary": step('echo "# $ID" >> "$GITHUB_STEP_SUMMARY"'),
    "summary by a group": step('{\n  echo "a"\n  echo "$ID"\n} >> "$GITHUB_STEP_SUMMARY"'),
    "summary by tee": step('echo "$ID" | tee -a "$GITHUB_STEP_SUMMARY" > /dev/null'),
    "name of the step": step("true", name="Step ${{ inputs.selected-id }}"),
    "default name of the step": step('x="${{ inputs.selected-id }}"', name=""),
    "default name without the second line": step('true\nx="${{ inputs.selected-id }}"', name=""),
    "name of the job": "    name: Job ${{ inputs.selected-id }}\n" + step("true"),
    "default name of the job": MATRIX + step("true"),
    "name of the job with a comparison": "    name: Job ${{ inputs.selected-id == 'x' }}\n" + step("true"),
    "expression in echo": step("echo '${{ inputs.selected-id }}'", name="one"),
    "python": step("python3 - <<'END'\nimport os\nprint(os.environ['ID'])\nEND"),
    "subject of a commit": step(f'{COMMIT} --allow-empty -F - <<< "about $ID"'),
    "subject of a commit, quietly": step(f'{COMMIT} -q --allow-empty -F - <<< "about $ID"'),
    "third line of a commit": step(f"printf 'one\\n\\n%s' \"$ID\" > m\n{COMMIT} --allow-empty -F m"),
    "log of git": step(f'{COMMIT} -q --allow-empty -F - <<< "$ID"\ngit log -1'),
    "log of git, hashes alone": step(f'{COMMIT} -q --allow-empty -F - <<< "$ID"\ngit log -1 --format="%H %cI"'),
    "difference": step(f'{COMMIT} -qm first --allow-empty\necho "$ID" > f\ngit add f\ngit diff --cached'),
    "difference, counted": step(
        f'{COMMIT} -qm first --allow-empty\necho "$ID" > f\ngit add f\ngit diff --cached --stat'
    ),
    "name of a branch": step('git init -q\ngit checkout -b "x-$ID"'),
    "name of a test": step(
        "cat > a.test.js <<'END'\nrequire('node:test')(process.env.ID, () => {})\nEND\nnode --test a.test.js"
    ),
    "name of a test, with its length": step(
        "cat > a.test.js <<'END'\nrequire('node:test')(String(process.env.ID.length))\nEND\nnode --test a.test.js"
    ),
    "python, quiet": step("python3 - <<'END'\nimport os\nlen(os.environ['ID'])\nEND"),
}
COMPARED = {"log", "step summary", "step name", "job name"}


def surface_of(rule: str, message: str) -> str | None:
    """What the audit calls the surface that a finding is about; None when the local runner does not have it."""
    if rule == "confidential-log":
        return None if "header" in message else "log"
    if rule == "confidential-summary":
        return "step summary"
    if rule == "confidential-name":
        return "step name" if "of the step" in message else "job name"
    return None


def assert_agreement(jobs: str, folder: Path) -> None:
    """Runs a workflow of these *jobs*, lints it, and compares the surfaces that show the id."""
    path = folder / "repository" / ".github" / "workflows" / "w.yml"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + jobs)
    given = {"selected-id": PUBLIC + random_canary().case}
    shown = audit_workflow(path, WorkflowOptions(inputs=given, timeout=60.0, public=(PUBLIC,)))
    assert shown.gaps == []
    seen = {
        found.surface for found in shown.sightings if found.surface in COMPARED and found.kind in {"value", "piece"}
    }
    report = lint([path], current=folder / "repository")
    found = {
        surface_of(finding.rule, finding.message)
        for finding in report.findings
        if finding.confidence >= Confidence.MEDIUM
    }
    assert found - {None} == seen


@pytest.mark.parametrize("name", CASES)
def test_the_lint_names_what_a_run_shows(name: str, tmp_path: Path) -> None:
    assert_agreement(CASES[name], tmp_path)
