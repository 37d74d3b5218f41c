"""The gate as a table: what passes, and every way in which a run may not pay."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.dispatch.gate import MOST_ALLOWED, Passage, decide, parse_allowlist, pass_gate
from runner_e2e.dispatch.records import Account, RepositoryRecord, RunRecord
from runner_e2e.errors import RefusedError
from runner_e2e.gha import RunContexts

SHA = "a" * 40
PAID = "octo/evals/.github/workflows/paid.yml"
PAID_IN_CAPITALS = "Octo/Evals/.github/workflows/paid.yml"
OTHER = "octo/evals/.github/workflows/other.yml"
EVIL = "evil/evals/.github/workflows/paid.yml"
ALICE = Account(id=11, login="alice", kind="User")
BOB = Account(id=22, login="bob", kind="User")
BOT = Account(id=41898282, login="github-actions[bot]", kind="Bot")
SAID_BY_BOT = {"actor": BOT.login, "actor_id": str(BOT.id), "triggering_actor": BOT.login}
RUN = RunRecord(
    id=900,
    attempt=1,
    event="workflow_dispatch",
    status="in_progress",
    path=".github/workflows/paid.yml",
    head_branch="main",
    head_sha=SHA,
    repository="octo/evals",
    repository_id=5,
    head_repository_id=5,
    title="Paid",
    created_at="2026-11-01T00:00:00Z",
    actor=ALICE,
    triggering_actor=ALICE,
)
REPOSITORY = RepositoryRecord(id=5, full_name="octo/evals", default_branch="main")
CONTEXTS = RunContexts(
    repository="octo/evals",
    repository_id="5",
    run_id="900",
    run_attempt="1",
    event_name="workflow_dispatch",
    ref="refs/heads/main",
    sha=SHA,
    workflow_ref=f"{PAID}@refs/heads/main",
    workflow_sha=SHA,
    actor="alice",
    actor_id="11",
    triggering_actor="alice",
)
# What act says of a run: the rest is empty there.
ACT = replace(CONTEXTS, repository_id="", actor_id="", triggering_actor="", workflow_ref="", workflow_sha="")


def passage(**changes: Any) -> Passage:
    """A run that may pay, with *changes*: parts of contexts, run and repository as mappings."""
    return Passage(
        contexts=replace(changes.get("base", CONTEXTS), **changes.get("contexts", {})),
        run=replace(RUN, **changes.get("run", {})),
        repository=replace(REPOSITORY, **changes.get("repository", {})),
        allowlist=changes.get("allowlist", frozenset({11})),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"base": ACT},
        {"run": {"event": "schedule"}, "contexts": {"event_name": "schedule"}},
        {"run": {"attempt": 3, "triggering_actor": BOB}, "contexts": {"run_attempt": "3", "triggering_actor": "bob"},
         "allowlist": frozenset({11, 22})},
        # renamed between the start and the gate: the ids agree
        {"run": {"actor": replace(ALICE, login="alicia"), "triggering_actor": replace(ALICE, login="alicia")}},
        {"contexts": {"repository": "Octo/Evals", "workflow_ref": f"{PAID_IN_CAPITALS}@refs/heads/main"}},
        {"repository": {"default_branch": "trünk/1"}, "run": {"head_branch": "trünk/1"},
         "contexts": {"ref": "refs/heads/trünk/1",
                      "workflow_ref": f"{PAID}@refs/heads/trünk/1"}},
        {"run": {"actor": BOT, "triggering_actor": BOT}, "allowlist": frozenset({BOT.id}),
         "contexts": SAID_BY_BOT},
        {"repository": {"default_branch": "release@1"},
         "run": {"head_branch": "release@1", "path": ".github/workflows/a@b.yml"},
         "contexts": {"ref": "refs/heads/release@1",
                      "workflow_ref": "octo/evals/.github/workflows/a@b.yml@refs/heads/release@1"}},
    ],
    ids=["dispatch", "act", "schedule", "rerun-by-another", "renamed", "case-of-the-name", "unicode-branch", "bot",
         "at-in-names"],
)  # fmt: skip
def test_may_pay(changes: dict[str, Any]) -> None:
    assert decide(passage(**changes)) == ()
    pass_gate(passage(**changes))


@pytest.mark.parametrize(
    ("changes", "check", "said"),
    [
        ({"run": {"event": "push"}, "contexts": {"event_name": "push"}}, "trigger", "`push`"),
        ({"run": {"event": "pull_request_target"}, "contexts": {"event_name": ""}}, "trigger", "pull_request_target"),
        ({"run": {"event": "repository_dispatch"}, "contexts": {"event_name": ""}}, "trigger", "repository_dispatch"),
        ({"run": {"event": "workflow_run"}, "contexts": {"event_name": "workflow_dispatch"}}, "agreement", "trigger"),
        ({"run": {"head_branch": "feature"}}, "definition", "`feature`"),
        ({"repository": {"default_branch": "trunk"}}, "definition", "default branch is `trunk`"),
        # a tag of the default branch's name: the record cannot tell, the job's ref can
        ({"contexts": {"workflow_ref": f"{PAID}@refs/tags/main"}}, "definition", "refs/tags"),
        ({"base": ACT, "contexts": {"ref": "refs/tags/main"}}, "definition", "refs/tags/main"),
        ({"base": ACT, "contexts": {"ref": ""}}, "definition", "does not say"),
        ({"contexts": {"workflow_ref": f"{OTHER}@refs/heads/main"}}, "agreement", "workflow"),
        ({"contexts": {"workflow_ref": f"{PAID.replace('paid', 'Paid')}@refs/heads/main"}}, "agreement", "workflow"),
        ({"contexts": {"workflow_ref": "octo/evals"}}, "definition", "octo/evals"),
        ({"contexts": {"workflow_ref": f"{PAID}@refs/tags/x@refs/heads/main"}}, "definition", "refs/tags/x"),
        ({"contexts": {"ref": "refs/tags/main"}}, "definition", "refs/tags/main"),
        ({"contexts": {"ref": "main"}}, "definition", "`main`"),
        ({"contexts": {"workflow_ref": f"{EVIL}@refs/heads/main"}}, "agreement", "workflow"),
        ({"contexts": {"run_id": "901"}}, "agreement", "run id"),
        ({"contexts": {"run_id": ""}}, "contexts", "which run"),
        ({"contexts": {"run_attempt": "2"}}, "agreement", "attempt"),
        ({"contexts": {"sha": "b" * 40}}, "agreement", "commit"),
        ({"contexts": {"workflow_sha": "b" * 40}}, "agreement", "commit of the workflow"),
        ({"contexts": {"repository": "octo/other"}}, "agreement", "repository"),
        ({"contexts": {"repository_id": "6"}}, "agreement", "repository id"),
        ({"repository": {"id": 6}}, "agreement", "repository id"),
        ({"run": {"head_repository_id": 77}}, "repository", "another repository"),
        ({"contexts": {"actor_id": "22"}}, "agreement", "id of the actor"),
        ({"base": ACT, "contexts": {"actor": "mallory"}}, "agreement", "the actor"),
        ({"contexts": {"triggering_actor": "mallory"}}, "agreement", "triggering actor"),
        ({"allowlist": frozenset({22})}, "allowlist", "alice (id 11)"),
        ({"run": {"triggering_actor": BOB}, "contexts": {"triggering_actor": "bob"}}, "allowlist", "actor bob"),
        ({"run": {"actor": BOB}, "contexts": {"actor": "bob", "actor_id": "22"}}, "allowlist", "the actor bob"),
        ({"run": {"event": "schedule", "triggering_actor": BOB}, "contexts": {"event_name": "schedule",
          "triggering_actor": "bob"}}, "allowlist", "triggering actor bob"),
        ({"run": {"actor": BOT, "triggering_actor": BOT}, "contexts": SAID_BY_BOT}, "allowlist", "it is a bot"),
        # somebody took the old name of one who was renamed: the names agree, the ids do not
        ({"run": {"triggering_actor": replace(BOB, login="alice")}}, "allowlist", "alice (id 22)"),
    ],
)  # fmt: skip
def test_may_not_pay(changes: dict[str, Any], check: str, said: str) -> None:
    refusals = decide(passage(**changes))
    assert [each for each in refusals if each.check == check and said in each.what + each.why], refusals
    with pytest.raises(RefusedError) as caught:
        pass_gate(passage(**changes))
    assert len(caught.value.problems) == len(refusals)
    assert all(problem.fix for problem in caught.value.problems)


def test_tells_every_reason_at_once() -> None:
    refusals = decide(passage(run={"event": "push", "head_branch": "x"}, allowlist=frozenset({1})))
    assert [each.check for each in refusals] == ["agreement", "trigger", "definition", "allowlist"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("[]", "empty list"),
        ("{}", "no JSON list"),
        ('"11"', "no JSON list"),
        ("11", "no JSON list"),
        ("null", "no JSON list"),
        ("[11", "not JSON"),
        ("11, 22", "not JSON"),
        ('["11"]', "entry 1"),
        ('["alice"]', "entry 1"),
        ("[11, true]", "entry 2"),
        ("[11, 1.0]", "entry 2"),
        ("[11, 1e3]", "entry 2"),
        ("[0]", "entry 1"),
        ("[-11]", "entry 1"),
        ("[null]", "entry 1"),
        ("[[11]]", "entry 1"),
        (f"[{2**60}]", "entry 1"),
        ("[" * 5000, "not JSON"),
        (json.dumps(list(range(1, MOST_ALLOWED + 2))), f"{MOST_ALLOWED + 1} entries"),
        ("[" + " " * 30_000 + "11]", "bytes"),
        ("[NaN]", "entry 1"),
    ],
)
def test_refuses_an_allowlist(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        parse_allowlist(text)


def test_reads_an_allowlist() -> None:
    assert parse_allowlist(" [11, 22,\n 11]\n") == {11, 22}


@given(
    st.text(max_size=60) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps)
)
def test_an_allowlist_is_ids_or_refused(text: str) -> None:
    try:
        found = parse_allowlist(text)
    except RefusedError:
        return
    assert found == set(json.loads(text))
    assert all(type(each) is int and each > 0 for each in found)
