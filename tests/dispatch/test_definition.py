"""What one reading of a workflow's definition says, to a person who sets up and to a client that sends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.client_scene import DEFINITION, PATH

from runner_e2e.dispatch.definition import (
    CAMPAIGN_INPUTS,
    Definition,
    cell_problems,
    dispatch_problems,
    find_definition,
    may_claim,
)
from runner_e2e.dispatch.doctor import Expected, examine
from runner_e2e.dispatch.preflight import Request, preflight
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.errors import Problem

CELL = """\
run-name: Paid cell ${{ github.run_id }}
on: { workflow_dispatch: { inputs: { selected-id: { required: true } } } }
jobs:
  claim: { steps: [{ uses: org/runner-e2e-action@v1, with: { command: claim } }] }
  cell:
    steps:
      - uses: org/runner-e2e-action@v1
        env: { KEY: "${{ secrets.OPENAI_API_KEY || secrets . anthropic_api_key }}" }
        with: { command: run }
"""


def define(double: Server, text: str | bytes, path: str = PATH, **settings: str) -> None:
    double.state.add_workflow(path, **settings)
    double.state.write_file(path, "main", text.encode() if isinstance(text, str) else text, "workflow", None)


def found(double: Server, api: GitHubApi, text: str | bytes, **settings: str) -> Definition:
    define(double, text, **settings)
    definition = find_definition(api, "paid-campaign.yml", "main")
    assert definition is not None
    return definition


def of_dispatch(definition: Definition | None) -> list[Problem]:
    return list(
        dispatch_problems(definition, name="paid.yml", repository="octo/evals", branch="main", inputs=CAMPAIGN_INPUTS)
    )


def of_cell(definition: Definition | None) -> list[Problem]:
    return list(cell_problems(definition, name="paid.yml", repository="octo/evals", branch="main"))


def test_what_is_read(double: Server, api: GitHubApi) -> None:
    definition = found(double, api, CELL)
    assert (definition.path, definition.branch, definition.state) == (PATH, "main", "active")
    assert definition.secrets == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert not definition.takes_campaigns
    assert of_cell(definition) == []
    assert find_definition(api, "other.yml", "main") is None


def test_a_workflow_for_campaigns(double: Server, api: GitHubApi) -> None:
    definition = found(double, api, DEFINITION)
    assert definition.takes_campaigns
    assert of_dispatch(definition) == []


@pytest.mark.parametrize(
    ("old", "new", "campaigns"),
    [
        ("selected-id: { required: true }", "selection: ", True),
        ("selected-id: { required: true }", "nonce: ", False),
        ("command: run", "command: run, handle: cell-1", True),
        ("command: run", "command: lint", True),
        ("selected-id: { required: true }", "id: ", False),
    ],
)
def test_what_a_workflow_is_for(double: Server, api: GitHubApi, old: str, new: str, campaigns: bool) -> None:
    assert old in CELL
    assert found(double, api, CELL.replace(old, new)).takes_campaigns is campaigns


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("github.run_id", "github.sha", "does not end with the id of the run"),
        ("inputs: { ", "inputs: { nonce: { type: string }, ", "does not end with the nonce, where it is given"),
        ("command: claim", "command: gate", "no step with `command: claim`"),
        ("on: { workflow_dispatch", "on: { workflow_call", "no trigger `workflow_dispatch`"),
    ],
)
def test_a_workflow_for_a_cell_that_lacks_something(
    double: Server, api: GitHubApi, old: str, new: str, said: str
) -> None:
    (problem,) = of_cell(found(double, api, CELL.replace(old, new)))
    assert said in problem.what
    assert problem.why
    assert problem.fix


@pytest.mark.parametrize("text", ["on: [", b"\xff\xfe\x00"])
def test_what_is_no_workflow(double: Server, api: GitHubApi, text: str | bytes) -> None:
    definition = found(double, api, text)
    for problems in (of_dispatch(definition), of_cell(definition)):
        (problem,) = problems
        assert problem.what == f"{PATH} is no valid workflow"
        assert problem.why == definition.invalid != ""


def test_what_is_disabled_or_not_there(double: Server, api: GitHubApi) -> None:
    disabled = replace(found(double, api, CELL), state="disabled_manually")
    (problem,) = of_cell(disabled)
    assert problem.fix == "gh workflow enable paid.yml --repo octo/evals"
    for problems, template in ((of_dispatch(None), "paid-campaign.yml"), (of_cell(None), "paid-cell.yml")):
        (problem,) = problems
        assert problem.what == "octo/evals has no workflow paid.yml"
        assert template in problem.fix


def test_a_claim_may_stand_in_another_file(double: Server, api: GitHubApi) -> None:
    for rest, expected in (
        ("uses: ./.github/workflows/claim.yml", True),
        ("uses: a/b/c.yml@v1", True),
        ("x: 1", False),
    ):
        workflow = found(double, api, f"on: push\njobs: {{ one: {{ {rest} }} }}").workflow
        assert workflow is not None
        assert may_claim(workflow) is expected
        double.state.workflows.clear()
        del double.state.refs["refs/heads/main"]
        double.state.refs["refs/heads/main"] = double.state.commit({}, [], "anew")


@pytest.mark.parametrize(
    "text", [DEFINITION, "on: push", "on: [", "on: workflow_dispatch", DEFINITION.replace("nonce", "n")]
)
def test_the_doctor_and_the_preflight_say_the_same(double: Server, api: GitHubApi, text: str) -> None:
    define(double, text)
    said = [check for check in examine(api, Expected()) if check.name == "workflow"]
    request = Request(repository="octo/evals", workflow="paid-campaign.yml", inputs=CAMPAIGN_INPUTS)
    refusal = refusal_of(lambda: preflight(api, request, now=double.state.clock.now))
    if refusal is None:
        assert [check.state for check in said] == ["ok"]
        return
    told = [(f"{each.what}: {each.why}", each.fix) for each in refusal.problems]
    assert told == [(check.what, check.fix) for check in said]


def refusal_of(deed: Callable[[], object]) -> RefusedError | None:
    try:
        deed()
    except RefusedError as error:
        return error
    return None


def test_what_github_does_not_say_is_no_definition(double: Server, api: GitHubApi) -> None:
    define(double, CELL)
    double.faults.order("forbidden", "GET", "contents/")
    with pytest.raises(GitHubError):
        find_definition(api, "paid-campaign.yml", "main")
