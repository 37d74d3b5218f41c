"""Ways to slip past the gate, and ways that only look like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lint.paid.sample import CHECKOUT, GOOD, OURS, PATH, changed, in_job, lint_paid

if TYPE_CHECKING:
    from pathlib import Path

GATE = f"      - uses: {OURS}\n        with: {{command: gate}}\n"
SETUP = f"      - uses: {OURS}\n        with: {{command: setup}}\n"
RUN = "      - id: run\n"
IN_GATE_JOB = f"      - id: gate\n        uses: {OURS}\n"

MISSING = "the job `cells` pays and waits for no gate job"
NOT_FIRST = "stands before the gate"
PASSES = "the job `cells` runs although the gate did not pass"
MAY_FAIL = "the gate may fail and the job goes on"
LEFT_OUT = "the gate is left out when this is false, and the job goes on"


def cells(*changes: tuple[str, str], text: str = GOOD) -> str:
    return in_job("cells", *changes, text=text)


def condition(text: str) -> str:
    """The good workflow with this `if` on the paid job."""
    return cells(("    strategy:\n", f"    if: {text}\n    strategy:\n"))


BAD = {
    "no gate job is needed": (cells(("needs: [gate, plan]", "needs: []")), MISSING),
    "needs names another job": (cells(("needs: [gate, plan]", "needs: other")), MISSING),
    "needs only a job that does not exist": (cells(("needs: [gate, plan]", "needs: [gone]")), MISSING),
    "no gate in the job": (cells((GATE, "")), "the job `cells` pays and does not begin with the gate"),
    "the gate comes after the checkout": (
        cells((GATE, ""), ("      - run: npm", f"{GATE}      - run: npm")),
        f"the step with `{CHECKOUT}` {NOT_FIRST}",
    ),
    "a script stands before the gate": (
        cells((SETUP, f"{SETUP}      - run: make tools\n")),
        f"the step `make tools` {NOT_FIRST}",
    ),
    "always()": (condition("always()"), PASSES),
    "always() in an expression": (condition("${{ always() }}"), PASSES),
    "!cancelled()": (condition("${{ !cancelled() }}"), PASSES),
    "failure()": (condition("failure() || success()"), PASSES),
    "!failure()": (condition("${{ !failure() }}"), PASSES),
    "always() and an unrelated condition": (condition("always() && github.ref == 'refs/heads/main'"), PASSES),
    "always() and another job's result": (condition("always() && needs.plan.result != 'cancelled'"), PASSES),
    "always() and the wrong result": (condition("always() && needs.gate.result != 'skipped'"), PASSES),
    "always() or the right result": (condition("always() || needs.gate.result == 'success'"), PASSES),
    "text beside the expression is true": (condition("${{ always() }} && ${{ false }}"), PASSES),
    "the result is compared with a word that is never true but negated": (
        condition("always() && !(needs.gate.result == 'success' && false)"),
        PASSES,
    ),
    "an output that does not come from the gate": (
        changed(
            ("target-sha: ${{ steps.gate.outputs.target-sha }}", "target-sha: ${{ github.sha }}"),
            ("    strategy:\n", "    if: always() && needs.gate.outputs.target-sha != ''\n    strategy:\n"),
        ),
        PASSES,
    ),
    "continue-on-error on the gate of the job": (
        cells((GATE, GATE.replace("        with", "        continue-on-error: true\n        with"))),
        MAY_FAIL,
    ),
    "continue-on-error by an expression": (
        cells((GATE, GATE.replace("        with", "        continue-on-error: ${{ inputs.force }}\n        with"))),
        MAY_FAIL,
    ),
    "if on the gate of the job": (
        cells((GATE, GATE.replace("        with", "        if: github.event_name == 'schedule'\n        with"))),
        LEFT_OUT,
    ),
    "if: false on the gate": (cells((GATE, GATE.replace("        with", "        if: false\n        with"))), LEFT_OUT),
    "if: an input on the gate": (
        cells((GATE, GATE.replace("        with", "        if: ${{ !inputs.skip }}\n        with"))),
        LEFT_OUT,
    ),
    "if: failure() on the gate": (
        cells((GATE, GATE.replace("        with", "        if: failure()\n        with"))),
        LEFT_OUT,
    ),
    "the paid step runs always": (
        cells((RUN, f"{RUN}        if: always()\n")),
        "the step `run` runs although the gate failed",
    ),
    "the paid step runs unless cancelled": (
        cells((RUN, f"{RUN}        if: ${{{{ !cancelled() && inputs.selection != 'x' }}}}\n")),
        "the step `run` runs although the gate failed",
    ),
    "the command is an expression": (
        cells(("command: gate", "command: '${{ inputs.command }}'")),
        "the job `cells` pays and does not begin with the gate",
    ),
    "the command is another": (
        cells(("command: gate", "command: plan")),
        "the job `cells` pays and does not begin with the gate",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_paid_job_is_not_held_back(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    assert message in lint_paid(tmp_path, text).of("paid-gate")


TOLD = {
    "the list is an input": ("allowlist: '${{ inputs.allowlist }}'", "`inputs.allowlist` tells the gate who may pay"),
    "the list is made of the actor": (
        "allowlist: '[${{ github.actor_id }}]'",
        "`github.actor_id` tells the gate who may pay",
    ),
    "the list is made of the event": (
        "allowlist: '[${{ github.event.sender.id }}]'",
        "`github.event.sender.id` tells the gate who may pay",
    ),
    "the branch is an input": (
        "default-branch: '${{ inputs.branch || github.ref_name }}'",
        "`github.ref_name` tells the gate which branch may pay",
    ),
    "the list is a variable": ("allowlist: '${{ vars.RUNNER_E2E_ALLOWLIST }}'", ""),
    "the branch is a fact": ("default-branch: '${{ github.event.repository.default_branch }}'", ""),
    "the branch is from the first gate": ("default-branch: '${{ needs.gate.outputs.target-sha }}'", ""),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_the_gate_is_told(tmp_path: Path, name: str) -> None:
    given, message = TOLD[name]
    found = lint_paid(tmp_path, cells(("{command: gate}", f"{{command: gate, {given}}}"))).of("paid-gate")
    assert (message in found) if message else not found
    if "needs" not in given:
        found = lint_paid(tmp_path, in_job("gate", ("{command: gate}", f"{{command: gate, {given}}}"))).of("paid-gate")
        assert (message in found) if message else not found


GATE_JOB = {
    "continue-on-error on the step": (
        (IN_GATE_JOB, f"{IN_GATE_JOB}        continue-on-error: true\n"),
        MAY_FAIL,
    ),
    "continue-on-error on the job": (
        ("    timeout-minutes: 5\n", "    timeout-minutes: 5\n    continue-on-error: true\n"),
        "the gate may fail and the job counts as a success",
    ),
    "continue-on-error on the job by a matrix": (
        ("    timeout-minutes: 5\n", "    timeout-minutes: 5\n    continue-on-error: ${{ matrix.experimental }}\n"),
        "the gate may fail and the job counts as a success",
    ),
    "if on the step": ((IN_GATE_JOB, f"{IN_GATE_JOB}        if: inputs.selection\n"), LEFT_OUT),
    "a gate that only looks like one": (("command: gate", "command: setup"), MISSING),
    "an action with a similar name": (
        (f"        uses: {OURS}", "        uses: org/runner-e2e-action-lite@v1"),
        MISSING,
    ),
}


@pytest.mark.parametrize("name", GATE_JOB)
def test_the_gate_job_holds_nothing(tmp_path: Path, name: str) -> None:
    change, message = GATE_JOB[name]
    text = in_job("gate", change)
    # The plan has a gate of its own: only the gate job is left.
    text = changed(("needs: [gate, plan]", "needs: gate"), text=text)
    assert message in lint_paid(tmp_path, text).of("paid-gate")


GOOD_CONDITIONS = (
    "success()",
    "github.event_name == 'schedule' || inputs.selection",
    "always() && needs.gate.result == 'success'",
    "${{ !cancelled() && needs.gate.result == 'success' && needs.plan.result == 'success' }}",
    "always() && contains(fromJSON('[\"success\"]'), needs.gate.result)",
    "always() && !failure() && needs.gate.result == 'success'",
    "(always() || failure()) && 'success' == needs.gate.result",
    "always() && needs.gate.outputs.target-sha != ''",
    "always() && needs.plan.result == 'success' && needs.gate.result == 'success'",
    "false && always()",
    "${{ failure() && success() }}",
)


@pytest.mark.parametrize("text", GOOD_CONDITIONS)
def test_conditions_that_hold_it_back(tmp_path: Path, text: str) -> None:
    assert lint_paid(tmp_path, condition(f"{text}")).of("paid-gate") == []


def test_what_prepares_the_gate_may_stand_before_it(tmp_path: Path) -> None:
    python = f"      - uses: actions/setup-python@{'a' * 40}\n"
    checkout = f"      - uses: {CHECKOUT}\n        with: {{persist-credentials: false}}\n"
    text = in_job("cells", (SETUP, python + SETUP), text=in_job("gate", (SETUP, python + SETUP + checkout)))
    assert lint_paid(tmp_path, text).of("paid-gate") == []
    for step in ("      - run: make tools\n", "      - uses: ./tools\n", f"      - uses: some/tool@{'a' * 40}\n"):
        text = in_job("cells", ("[gate, plan]", "gate"), text=in_job("gate", (SETUP, SETUP + step)))
        assert any(NOT_FIRST in each for each in lint_paid(tmp_path, text).of("paid-gate")), step


def test_this_action_in_its_own_repository(tmp_path: Path) -> None:
    ours = "name: runner-e2e\nruns:\n  using: composite\n  steps: [{run: scripts/enter.py, shell: bash}]\n"
    text = GOOD.replace(OURS, "./")
    assert lint_paid(tmp_path, {PATH: text, "action.yml": ours}).of("paid-gate") == []
    assert lint_paid(tmp_path, {PATH: text, "action.yml": ours.replace("runner-e2e", "another")}).of("paid-gate")


def test_needs_may_be_indirect(tmp_path: Path) -> None:
    without = in_job("plan", (GATE, ""))
    text = in_job("cells", ("needs: [gate, plan]", "needs: plan"), text=without)
    text = in_job("cells", ("needs.gate.outputs", "needs.plan.outputs"), text=text)
    assert lint_paid(tmp_path, text).of("paid-gate") == []


def test_a_job_between_that_runs_always_lets_by(tmp_path: Path) -> None:
    """`success()` looks at all jobs before; what names `always()` has to look by itself."""
    without = in_job("plan", (GATE, ""), ("    needs: gate\n", "    needs: gate\n    if: always()\n"))
    text = in_job("cells", ("needs: [gate, plan]", "needs: plan"), text=without)
    assert lint_paid(tmp_path, text).of("paid-gate") == []
    text = in_job(
        "cells", ("    strategy:", "    if: always() && needs.plan.result == 'success'\n    strategy:"), text=text
    )
    assert lint_paid(tmp_path, text).of("paid-gate") == [PASSES]


def test_the_gate_may_be_any_owners(tmp_path: Path) -> None:
    assert lint_paid(tmp_path, GOOD.replace("org/runner", "my-fork/runner")).of("paid-gate") == []


def test_harmless_ifs_of_the_gate(tmp_path: Path) -> None:
    for text in ("always()", "true", "${{ success() }}", "success() || failure()"):
        again = cells((GATE, GATE.replace("        with", f"        if: {text}\n        with")))
        assert lint_paid(tmp_path, again).of("paid-gate") == [], text


def test_steps_after_the_gate_may_look_at_it(tmp_path: Path) -> None:
    text = cells((GATE, GATE.replace("- uses", "- id: first\n        uses")))
    text = in_job("cells", (RUN, f"{RUN}        if: always() && steps.first.outcome == 'success'\n"), text=text)
    assert lint_paid(tmp_path, text).of("paid-gate") == []


COMPOSITE = f"""\
name: ask
runs:
  using: composite
  steps:
    - uses: {OURS}
      with: {{command: gate}}
"""


def test_a_gate_in_a_local_action_counts_behind_the_checkout_that_it_needs(tmp_path: Path) -> None:
    action = ".github/actions/ask/action.yml"
    in_action = (
        f"      - uses: {CHECKOUT}\n        with: {{persist-credentials: false}}\n      - uses: ./.github/actions/ask\n"
    )
    text = in_job("gate", (f"{IN_GATE_JOB}        with: {{command: gate}}\n", in_action))
    assert lint_paid(tmp_path, {PATH: text, action: COMPOSITE}).of("paid-gate") == []
    for old, new in (
        ("      with:", "      continue-on-error: true\n      with:"),
        ("      with:", "      if: inputs.ask == 'yes'\n      with:"),
    ):
        found = lint_paid(
            tmp_path, {PATH: in_job("cells", ("gate, plan", "gate"), text=text), action: COMPOSITE.replace(old, new)}
        )
        assert {*found.of("paid-gate")} & {MAY_FAIL, LEFT_OUT}


CALLED_GATE = f"""\
on: workflow_call
jobs:
  ask:
    runs-on: ubuntu-24.04
    steps:
      - uses: {OURS}
        with: {{command: gate}}
"""


def test_a_gate_in_a_called_workflow_counts(tmp_path: Path) -> None:
    start, end = GOOD.index("  gate:\n"), GOOD.index("  plan:\n")
    text = f"{GOOD[:start]}  gate:\n    uses: ./.github/workflows/ask.yml\n{GOOD[end:]}"
    text = in_job("plan", (GATE, ""), text=text)
    ask = ".github/workflows/ask.yml"
    assert lint_paid(tmp_path, {PATH: text, ask: CALLED_GATE}).of("paid-gate") == []
    skipped = CALLED_GATE.replace("    runs-on", "    if: inputs.ask\n    runs-on")
    assert MISSING in lint_paid(tmp_path, {PATH: text, ask: skipped}).of("paid-gate")
    assert MISSING in lint_paid(
        tmp_path,
        {PATH: text.replace("./.github/workflows/ask.yml", "o/r/.github/workflows/ask.yml@v1"), ask: CALLED_GATE},
    ).of("paid-gate")


CALLER = """\
on: workflow_dispatch
jobs:
  evaluate:
    uses: ./.github/workflows/cells.yml
    secrets: inherit
"""
CALLEE = f"""\
on: workflow_call
jobs:
  cells:
    runs-on: ubuntu-24.04
    environment: paid-evals
    steps:
      - uses: {OURS}
        with: {{command: gate}}
      - uses: {OURS}
        env:
          OPENAI_API_KEY: ${{{{ secrets.OPENAI_API_KEY }}}}
        with: {{command: run}}
"""


def test_a_called_workflow_is_judged_where_it_is_called(tmp_path: Path) -> None:
    files = {PATH: CALLER, ".github/workflows/cells.yml": CALLEE}
    found = lint_paid(tmp_path, files)
    assert found.of("paid-gate") == [MISSING]
    (finding,) = [each for each in found.findings if each.rule == "paid-gate"]
    assert (finding.span.path, finding.flow[0].span.path) == (".github/workflows/cells.yml", PATH)
    # The file itself says nothing of its callers, for they are judged.
    assert lint_paid(tmp_path, files, ".github/workflows/cells.yml").of("paid-gate") == []
    gated = f"{CALLER}    needs: gate\n  gate:\n    uses: ./.github/workflows/ask.yml\n"
    files |= {PATH: gated, ".github/workflows/ask.yml": CALLED_GATE}
    assert lint_paid(tmp_path, files).of("paid-gate") == []
    # The call runs always, so the jobs in it do too.
    files[PATH] = gated.replace("    needs: gate\n", "    needs: gate\n    if: always()\n")
    assert lint_paid(tmp_path, files).of("paid-gate") == ["the job `evaluate` runs although the gate did not pass"]


def test_a_called_workflow_without_callers_needs_its_own_gate(tmp_path: Path) -> None:
    assert lint_paid(tmp_path, CALLEE).of("paid-gate") == [MISSING]


def test_anchors_are_followed(tmp_path: Path) -> None:
    text = cells((GATE, GATE.replace("        with: {command: gate}", "        with: &ask {command: gate}")))
    text = in_job(
        "gate",
        (f"{IN_GATE_JOB}        with: {{command: gate}}", f"{IN_GATE_JOB}        with: {{command: gate}}"),
        text=text,
    )
    assert lint_paid(tmp_path, text).of("paid-gate") == []
    text = cells(("      - run: npm ci --ignore-scripts\n", "      - &late\n        run: npm ci --ignore-scripts\n"))
    text = in_job(
        "cells",
        (GATE, f"      - *late\n{GATE}"),
        text=text.replace("      - &late\n        run: npm ci --ignore-scripts\n", ""),
    )
    text = text.replace("      - *late\n", "      - &late\n        run: npm ci --ignore-scripts\n").replace(
        RUN, f"      - *late\n{RUN}"
    )
    assert f"the step `npm ci --ignore-scripts` {NOT_FIRST}" in lint_paid(tmp_path, text).of("paid-gate")


def test_a_gate_in_a_matrix_counts(tmp_path: Path) -> None:
    text = in_job("gate", ("    timeout-minutes: 5\n", "    timeout-minutes: 5\n    strategy: {matrix: {n: [1, 2]}}\n"))
    assert lint_paid(tmp_path, text).of("paid-gate") == []
