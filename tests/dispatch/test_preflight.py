"""What would make every dispatch fail is told before one is sent: the fact, its cause and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dispatch.client_scene import DEFINITION, PATH

from runner_e2e.dispatch.attachment import Identity
from runner_e2e.dispatch.definition import MOST_INPUTS
from runner_e2e.dispatch.preflight import (
    MOST_CHARACTERS,
    Readiness,
    Request,
    check_inputs,
    preflight,
    read_identity,
)
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi

REQUEST = Request(repository="octo/evals", workflow="paid-campaign.yml", inputs=("nonce", "selection", "target"))
ON = "on: { workflow_dispatch: { inputs: { nonce: , selection: , target: } } }"
NAME = "run-name: x ${{ inputs.nonce }}"
CLAIM = "{ uses: org/runner-e2e-action@v1, with: { command: claim } }"


def jobs(steps: str) -> str:
    return f"\njobs: {{ one: {{ steps: [{steps}] }} }}"


def define(double: Server, text: str | bytes, **settings: Any) -> None:
    double.state.add_workflow(PATH, **settings)
    content = text.encode() if isinstance(text, str) else text
    double.state.write_file(PATH, "main", content, "workflow", None)


def check(double: Server, api: GitHubApi, *, ahead: float = 0.0, **changes: Any) -> Readiness:
    request = Request(**{**{name: getattr(REQUEST, name) for name in ("repository", "workflow", "inputs")}, **changes})
    return preflight(api, request, now=lambda: double.state.clock.now() + ahead)


def test_a_repository_that_is_ready(double: Server, api: GitHubApi) -> None:
    define(double, DEFINITION)
    assert check(double, api, repository_id=5) == Readiness(repository_id=5, branch="main", path=PATH)
    assert len(double.log) <= 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{NAME}\non: {{ workflow_dispatch: {{ inputs: {{ nonce: , target: }} }} }}", "have the input selection"),
        (f"{NAME}\non: {{ workflow_dispatch: }}", "does not have the input nonce, selection, target"),
        (f"{NAME}\non: [workflow_dispatch]", "does not have the input nonce, selection, target"),
        (f"{NAME}\non: push", "no trigger `workflow_dispatch`"),
        (f"{NAME}\n{ON[:-6]} , model: {{ required: true }} }} }} }}", "requires the input 'model'"),
        (f"run-name: Paid\n{ON}", "run-name"),
        (ON, "run-name"),
        ("on: [", "no valid workflow"),
        ("", "no trigger"),
        (b"\xff\xfe\x00", "no valid workflow"),
        (NAME + "\n" + ON[:-6] + " , " + ", ".join(f"i{n}: " for n in range(25)) + " } } }", "28 inputs"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_sent_to(double: Server, api: GitHubApi, text: str | bytes, said: str) -> None:
    define(double, text)
    with pytest.raises(RefusedError) as caught:
        check(double, api)
    problem = next(each for each in caught.value.problems if said in each.what)
    assert problem.fix


def test_an_input_with_a_default_is_no_obstacle(double: Server, api: GitHubApi) -> None:
    define(double, f"{NAME}\n{ON[:-6]} , model: {{ required: true, default: x }} }} }} }}" + jobs(CLAIM))
    check(double, api)


def test_a_campaign_without_a_target_needs_no_such_input(double: Server, api: GitHubApi) -> None:
    define(double, f"{NAME}\non: {{ workflow_dispatch: {{ inputs: {{ nonce: , selection: }} }} }}" + jobs(CLAIM))
    check(double, api, inputs=("nonce", "selection"))
    with pytest.raises(RefusedError, match="target"):
        check(double, api)


@pytest.mark.parametrize(
    ("rest", "refused"),
    [
        ("", True),
        (jobs("{ run: 'true' }"), True),
        (jobs(CLAIM.replace("claim", "gate")), True),
        (jobs("{ uses: a/b@v1, with: claim }, { uses: a/b@v1 }, { with: { command: [claim] } }"), True),
        (jobs(CLAIM), False),
        (jobs("{ uses: ./actions/claim }"), False),
        ("\njobs: { one: { uses: ./.github/workflows/paid.yml } }", False),
    ],
)  # fmt: skip
def test_a_definition_without_a_claim(double: Server, api: GitHubApi, rest: str, refused: bool) -> None:
    """Each arrival of a dispatch would pay there, and a run that ended without a claim would be taken for unpaid."""
    define(double, f"{NAME}\n{ON}{rest}")
    if refused:
        with pytest.raises(RefusedError, match="has no step with `command: claim`"):
            check(double, api)
    else:
        check(double, api)


def test_what_else_stops_every_dispatch(double: Server, api: GitHubApi) -> None:
    with pytest.raises(RefusedError, match="has no workflow"):
        check(double, api)
    define(double, DEFINITION, state="disabled_inactivity")
    double.state.actions_enabled = False
    with pytest.raises(RefusedError) as caught:
        check(double, api, ahead=3_000)
    said = str(caught.value)
    for part in ("disabled (`disabled_inactivity`)", "Actions is disabled", "50 minutes ahead of GitHub's"):
        assert part in said
    assert len(caught.value.problems) == 3
    with pytest.raises(RefusedError, match="another repository than"):
        check(double, api, repository_id=6)
    double.state.former_names.add("octo/evals")
    double.state.repository = "octo/new"
    with pytest.raises(RefusedError, match="called octo/new now"):
        check(double, api)


@pytest.mark.parametrize("fault", ["forbidden", "stale-404"])
def test_a_token_that_may_not_see_whether_actions_is_enabled(double: Server, api: GitHubApi, fault: str) -> None:
    define(double, DEFINITION)
    double.faults.order(fault, "GET", "actions/permissions")
    check(double, api)


@pytest.mark.parametrize("fault", ["forbidden", "limit-hour", "stale-404", "html"])
def test_what_github_does_not_say_is_no_readiness(double: Server, api: GitHubApi, fault: str) -> None:
    define(double, DEFINITION)
    double.faults.order(fault, "GET", "contents/")
    with pytest.raises(GitHubError):
        check(double, api)


def test_whose_token_it_is(double: Server, api: GitHubApi) -> None:
    assert read_identity(api) == Identity(id=11, login="alice")
    double.state.tokens["token-of-alice"] = double.state.add_user("app[bot]", 9, kind="Bot")
    assert read_identity(api) == Identity(id=None)


@pytest.mark.parametrize("fault", ["forbidden", "stale-404", "limit-hour"])
def test_another_refusal_does_not_make_an_app_of_a_user(double: Server, api: GitHubApi, fault: str) -> None:
    double.faults.order(fault, "GET", "^/user$")
    with pytest.raises(GitHubError):
        read_identity(api)


@given(st.dictionaries(st.text(max_size=20), st.integers(0, 70_000), max_size=30))
def test_inputs_that_github_takes(sizes: dict[str, int]) -> None:
    inputs = {name: "x" * size for name, size in sizes.items()}
    fits = len(inputs) <= MOST_INPUTS and sum(len(name) + size for name, size in sizes.items()) <= MOST_CHARACTERS
    if fits:
        check_inputs(inputs)
    else:
        with pytest.raises(RefusedError, match="inputs"):
            check_inputs(inputs)
