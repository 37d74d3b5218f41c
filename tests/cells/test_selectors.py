from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cells.catalogs import parse, sample

from runner_e2e.cells.handles import handle, random_key
from runner_e2e.cells.selectors import (
    Selection,
    Verdict,
    candidate_by_id,
    candidates,
    cell_by_handle,
    cell_by_id,
    decide,
    select,
)
from runner_e2e.errors import RefusedError, UsageError

CATALOG = sample()
IDS = [candidate.cell.id for candidate in candidates(CATALOG)]
RUNNABLE = [candidate.cell.id for candidate in candidates(CATALOG) if candidate.exclusion is None]


def ids(selection: Selection, *, unselective: bool = False) -> list[str]:
    return [cell.id for cell in select(CATALOG, selection, unselective=unselective)]


def test_the_order_is_that_of_ids_in_the_catalog() -> None:
    assert IDS[:5] == [
        "chat.runner-codex.local.hello",
        "chat.runner-codex.local.agents.change-manager",
        "chat.runner-codex.local.agents.hire",
        "chat.runner-codex.daytona.hello",
        "chat.runner-codex.daytona.agents.change-manager",
    ]
    assert len(IDS) == 14
    assert len(set(IDS)) == 14


def test_a_cell_carries_what_a_run_needs() -> None:
    cell = cell_by_id(CATALOG, "chat.runner-codex.daytona.hello")
    assert (cell.suite, cell.profile, cell.environment, cell.case) == ("chat", "runner-codex", "daytona", "hello")
    assert cell.credentials == ("OPENAI_API_KEY", "DAYTONA_API_KEY")
    assert (cell.groups, cell.timeout, cell.expected_cost) == (("smoke",), 90, 0.5)
    assert cell.billable
    assert not cell.manual_only
    assert cell_by_id(CATALOG, "self-test.runner-opencode.local.passes").expected_cost == 0


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(suites=("chat",), cases=("hello",)), 3),
        (Selection(suites=("chat", "self-test")), 10),
        (Selection(groups=("smoke",)), 4),
        (Selection(groups=("smoke", "slow")), 10),
        (Selection(groups=("smoke",), suites=("chat",)), 3),
        (Selection(groups=("slow",), profiles=("runner-codex",), environments=("local",)), 2),
        (Selection(cases=("agents.hire", "hello"), environments=("daytona",)), 2),
        (Selection(all=True), 10),
        (Selection(profiles=("runner-codex",)), 6),
        (Selection(suites=("planning",)), 1),
        (Selection(suites=("planning", "self-test"), environments=("local",)), 2),
    ],
)
def test_or_within_a_dimension_and_between_them(selection: Selection, expected: int) -> None:
    assert len(ids(selection)) == expected


def subsets(names: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(names), max_size=3).map(tuple)


selections = st.builds(
    Selection,
    suites=subsets(["chat", "planning", "self-test"]),
    groups=subsets(["smoke", "slow"]),
    profiles=subsets(["runner-codex", "runner-opencode"]),
    environments=subsets(["local", "daytona"]),
    cases=subsets(["hello", "agents.hire", "agents.change-manager", "refused", "passes"]),
)


@given(selections)
def test_every_cell_is_decided_by_the_plain_meaning_of_the_selectors(selection: Selection) -> None:
    def meant(name: str) -> bool:
        cell = candidate_by_id(CATALOG, name).cell
        own = {
            "suites": {cell.suite},
            "groups": set(cell.groups),
            "profiles": {cell.profile},
            "environments": {cell.environment},
            "cases": {cell.case},
        }
        matches = all(not getattr(selection, key) or own[key] & set(getattr(selection, key)) for key in own)
        excluded = name.startswith("chat.runner-opencode.daytona.")
        return bool(matches) and not excluded and (not cell.manual_only or "planning" in selection.suites)

    decisions = decide(CATALOG, selection)
    assert [decision.cell.id for decision in decisions] == IDS
    taken = [decision.cell.id for decision in decisions if decision.verdict is Verdict.SELECTED]
    assert taken == [name for name in IDS if meant(name)]
    assert all(decision.reason for decision in decisions)


@given(selections)
def test_a_selector_more_never_takes_more(selection: Selection) -> None:
    narrower = Selection(**{**vars(selection), "environments": ("local",)})
    if selection.environments in {(), ("local",)} or "local" in selection.environments:
        wide, narrow = (
            {decision.cell.id for decision in decide(CATALOG, each) if decision.verdict is Verdict.SELECTED}
            for each in (selection, narrower)
        )
        assert narrow <= wide


def test_several_ids_come_once_each_in_the_order_of_the_catalog() -> None:
    chosen = (RUNNABLE[4], RUNNABLE[1], RUNNABLE[4])
    assert ids(Selection(ids=chosen)) == [RUNNABLE[1], RUNNABLE[4]]


def test_an_id_takes_a_manual_only_cell() -> None:
    name = "planning.runner-codex.local.refused"
    assert ids(Selection(ids=(name,))) == [name]
    assert name not in ids(Selection(all=True))


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(ids=(RUNNABLE[0],), all=True), "--id excludes --all"),
        (Selection(ids=(RUNNABLE[0],), suites=("chat",), groups=("smoke",)), "--id excludes --suite and --group"),
        (Selection(all=True, environments=("local",)), "--all excludes --environment"),
    ],
)
def test_what_stands_alone_excludes_the_rest(selection: Selection, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(CATALOG, selection)
    assert caught.value.problem.what == says
    assert caught.value.problem.fix


@pytest.mark.parametrize(
    ("selection", "what", "fix"),
    [
        (Selection(suites=("chta",)), "--suite 'chta' is unknown", "did you mean chat?"),
        (Selection(groups=("smok",)), "--group 'smok' is unknown", "did you mean smoke?"),
        (Selection(profiles=("codex",)), "--profile 'codex' is unknown", "did you mean runner-codex?"),
        (Selection(environments=("moon",)), "--environment 'moon' is unknown", "known are: local, daytona"),
        (Selection(cases=("hire",)), "--case 'hire' is unknown", "did you mean agents.hire?"),
        (Selection(suites=("chat", "")), "--suite '' is unknown", "chat"),
        (
            Selection(ids=("chat.runner-codex.local.helo",)),
            "cell 'chat.runner-codex.local.helo' is unknown",
            "chat.runner-codex.local.hello",
        ),
        (Selection(ids=("chat.runner-codex.local",)), "has 3 of the 4 parts", "cells list"),
    ],
)
def test_unknown_names_are_errors_with_the_nearest_ones(selection: Selection, what: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(CATALOG, selection, unselective=True)
    assert what in caught.value.problem.what
    assert fix in caught.value.problem.fix


def test_an_excluded_id_says_why() -> None:
    with pytest.raises(UsageError, match="is excluded") as caught:
        select(CATALOG, Selection(ids=("chat.runner-opencode.daytona.hello",)))
    assert "no image" in caught.value.problem.why
    assert candidate_by_id(CATALOG, "chat.runner-opencode.daytona.hello").exclusion is not None


def test_an_empty_selection_says_what_held_the_cells_back() -> None:
    with pytest.raises(UsageError, match="the selection is empty") as caught:
        select(CATALOG, Selection(suites=("planning",), cases=("hello",)))
    assert "--suite and --case have no cell in common" in caught.value.problem.why
    with pytest.raises(UsageError) as caught:
        select(CATALOG, Selection(cases=("refused",)))
    assert "manual-only" in caught.value.problem.why
    assert "--suite planning" in caught.value.problem.fix
    with pytest.raises(UsageError) as caught:
        select(CATALOG, Selection(profiles=("runner-opencode",), environments=("daytona",)))
    assert "excluded by the catalog" in caught.value.problem.why


def test_a_billable_run_without_a_selector_is_refused_and_a_look_is_not() -> None:
    with pytest.raises(RefusedError, match="all 10 cells would be paid for") as caught:
        select(CATALOG, Selection())
    assert "--all" in caught.value.problem.fix
    assert ids(Selection(), unselective=True) == RUNNABLE


def test_what_costs_nothing_runs_without_a_selector() -> None:
    catalog = parse("""\
        harness: {command: [run]}
        profiles: {p: }
        environments: {e: }
        suites:
          free: {billable: false, profiles: [p], environments: [e], cases: [a, b]}
          by-hand: {billable: true, manual-only: true, profiles: [p], environments: [e], cases: [c]}
        """)
    assert [cell.case for cell in select(catalog, Selection())] == ["a", "b"]


def test_handles_lead_back_to_cells_under_their_key_only() -> None:
    key = random_key()
    for name in RUNNABLE:
        assert cell_by_handle(CATALOG, key, handle(key, name)).id == name
    with pytest.raises(UsageError, match="no cell has the handle"):
        cell_by_handle(CATALOG, random_key(), handle(key, RUNNABLE[0]))
    with pytest.raises(UsageError):
        cell_by_handle(CATALOG, key, handle(key, "chat.runner-opencode.daytona.hello"))


@given(selections, st.booleans(), subsets(RUNNABLE))
def test_a_selection_survives_being_handed_over(
    selection: Selection, everything: bool, chosen: tuple[str, ...]
) -> None:
    full = Selection(**{**vars(selection), "all": everything, "ids": chosen})
    assert Selection.from_json(full.to_json()) == full
    assert "\n" not in full.to_json()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", '{"suite":["a"]}', '{"suites":"a"}', '{"suites":[1]}', '{"all":"yes"}', '{"all":1}']
)
def test_other_texts_are_no_selection(text: str) -> None:
    with pytest.raises(UsageError, match="handed-over selection"):
        Selection.from_json(text)


def test_verdicts_of_the_sample() -> None:
    verdicts = Counter(decision.verdict for decision in decide(CATALOG, Selection(all=True)))
    assert verdicts == {Verdict.SELECTED: 10, Verdict.EXCLUDED: 3, Verdict.MANUAL_ONLY: 1}
