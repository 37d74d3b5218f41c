"""Campaigns: planned from a catalog, written to a file that anybody may read and nobody may edit."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from tests.cells.catalogs import parse, sample, wide

from runner_e2e.cells.handles import handle
from runner_e2e.cells.sealed import key_id
from runner_e2e.cells.selectors import Selection, select
from runner_e2e.dispatch.campaign import (
    Campaign,
    PlannedShard,
    campaign_as_json,
    is_campaign_id,
    open_shard,
    plan_campaign,
    read_campaign,
)
from runner_e2e.dispatch.money import BudgetError, micros
from runner_e2e.errors import ConfigurationError, DefectError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner_e2e.cells.model import Cell

KEY = bytes(range(32))
FILE = "campaign-plan-v1.json"
OTHER = bytes(range(32, 64))
NOW = datetime(2026, 1, 31, 12, 30, 59, tzinfo=UTC)
SAMPLE = sample()
WIDE = wide(600)
ALL = select(WIDE, Selection(all=True))


def plan(**changes: Any) -> Campaign:
    fixed: dict[str, Any] = {
        "catalog": SAMPLE,
        "cells": select(SAMPLE, Selection(all=True)),
        "key": KEY,
        "repository": "octo/evals",
        "target": "main",
        "max_cost": None,
        "assume_cost": None,
        "now": NOW,
    }
    return plan_campaign(**{**fixed, **changes})


def plan_wide(number: int = 600, **changes: Any) -> Campaign:
    return plan(**{"catalog": WIDE, "cells": ALL[:number], "assume_cost": 10_000, **changes})


class TestPlan:
    def test_costs_come_from_the_catalog_and_retries_are_reserved(self) -> None:
        cells = select(SAMPLE, Selection(all=True))
        campaign = plan()
        billed = sum(cell.billable for cell in cells)
        assert 0 < billed < len(cells) == campaign.cells
        assert campaign.expected == billed * 500_000
        assert campaign.retries == 1
        assert campaign.reserved == 2 * campaign.expected
        assert (campaign.assumed_cost, campaign.assumed_cells) == (None, 0)
        assert (campaign.key_id, campaign.workflow) == (key_id(KEY), "paid-campaign.yml")
        assert campaign.created_at == "2026-01-31T12:30:59Z"
        assert campaign.id.startswith("c-20260131t123059z-")
        assert is_campaign_id(campaign.id)

    @pytest.mark.parametrize(
        ("number", "sizes"), [(1, [1]), (256, [256]), (257, [129, 128]), (512, [256, 256]), (600, [200, 200, 200])]
    )
    def test_shards_are_few_and_of_nearly_one_size(self, number: int, sizes: list[int]) -> None:
        campaign = plan_wide(number)
        assert [len(shard.cells) for shard in campaign.shards] == sizes
        assert [shard.index for shard in campaign.shards] == list(range(len(sizes)))

    def test_every_cell_is_in_one_shard_under_its_handle(self) -> None:
        campaign = plan_wide()
        opened = [open_shard(shard, campaign, [OTHER, KEY]) for shard in campaign.shards]
        assert sorted(each for ids in opened for each in ids) == sorted(cell.id for cell in ALL)
        for ids, shard in zip(opened, campaign.shards, strict=True):
            assert {handle(KEY, each) for each in ids} == {cell.handle for cell in shard.cells}

    def test_a_cell_that_is_named_twice_is_paid_for_once(self) -> None:
        assert plan_wide(cells=[*ALL[:5], *ALL[:5]]).cells == 5

    def test_an_unknown_cost_is_never_zero(self) -> None:
        with pytest.raises(RefusedError, match="nobody says what 600 cells of 600 cost") as caught:
            plan_wide(assume_cost=None)
        assert "--assume-cost" in caught.value.problem.fix

    def test_an_assumed_cost_is_shown_as_one(self) -> None:
        campaign = plan_wide(assume_cost=30_000)
        assert (campaign.assumed_cost, campaign.assumed_cells) == (30_000, 600)
        assert campaign.expected == 600 * 30_000

    def test_an_assumed_cost_replaces_no_known_one(self) -> None:
        assert plan(assume_cost=7).expected == plan().expected
        assert plan(assume_cost=7).assumed_cost is None

    def test_a_catalog_without_retries_reserves_one_attempt(self) -> None:
        text = """\
            harness: {command: [x]}
            profiles: {p: }
            environments: {local: }
            retries: 0
            expected-cost: 0.0000001
            suites: {s: {profiles: [p], environments: [local], cases: [a, b]}}
            """
        catalog = parse(text)
        campaign = plan(catalog=catalog, cells=select(catalog, Selection(all=True)))
        assert (campaign.retries, campaign.expected, campaign.reserved) == (0, 2, 2)

    def test_the_edge_of_the_cap(self) -> None:
        needed = plan().reserved
        assert plan(max_cost=needed).max_cost == needed
        with pytest.raises(BudgetError) as caught:
            plan(max_cost=needed - 1)
        assert caught.value.problem.what.startswith("the campaign needs $")
        assert "$0.000001 too much" in caught.value.problem.why
        assert caught.value.exit_code == 3

    def test_a_cap_of_nothing_lets_what_is_free_pass(self) -> None:
        free = tuple(cell for cell in select(SAMPLE, Selection(all=True)) if not cell.billable)
        assert plan(cells=free, max_cost=0).reserved == 0

    def test_sums_that_cannot_be_kept_account_of_are_refused(self) -> None:
        with pytest.raises(BudgetError, match="more than can be kept account of"):
            plan_wide(assume_cost=micros("1000000000"))

    @pytest.mark.parametrize("repository", ["", "octo", "octo/", "/evals", "a/b/c", "octo/ev als", "https://x/y"])
    def test_a_repository_that_cannot_be(self, repository: str) -> None:
        with pytest.raises(UsageError, match="OWNER/NAME"):
            plan(repository=repository)

    @pytest.mark.parametrize("workflow", ["", "paid", ".github/workflows/paid.yml", "a\n.yml", "../x.yml"])
    def test_a_workflow_that_cannot_be(self, workflow: str) -> None:
        with pytest.raises(UsageError, match="named by its file"):
            plan(workflow=workflow)

    @pytest.mark.parametrize("target", ["refs/heads/main", "a" * 40, "fork:main", "a..b", "\udcff"])
    def test_a_target_that_is_no_branch(self, target: str) -> None:
        with pytest.raises(RefusedError, match="target"):
            plan(target=target)

    def test_no_target_is_the_commit_of_the_run(self) -> None:
        assert plan(target="").target == ""

    def test_nothing_to_plan(self) -> None:
        with pytest.raises(UsageError, match="nothing to plan"):
            plan(cells=())


class TestFile:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        campaign = plan_wide(max_cost=micros("100"), target="feature/ünï", workflow="other.yaml")
        path = tmp_path / "campaign.json"
        path.write_text(campaign_as_json(campaign, KEY))
        assert read_campaign(path, [OTHER, KEY]) == campaign
        assert read_campaign(path, [KEY]).digest == campaign.digest

    @pytest.mark.parametrize("changes", [{}, {"max_cost": 10**9, "target": ""}, {"assume_cost": 0}])
    def test_it_is_as_its_schema_says(self, changes: dict[str, Any]) -> None:
        validator = Draft202012Validator(json.loads((files("runner_e2e.dispatch") / "schemas" / FILE).read_text()))
        document = json.loads(campaign_as_json(plan_wide(**changes), KEY))
        validator.validate(document)
        # Nothing may be added to it or left out, at any depth.
        for part in (document, document["shards"][0], document["shards"][0]["cells"][0]):
            for name in list(part):
                value = part.pop(name)
                assert not validator.is_valid(document), name
                part[name] = value
            part["more"] = 1
            assert not validator.is_valid(document)
            del part["more"]
        validator.validate(document)

    def test_it_shows_no_id(self) -> None:
        campaign = plan()
        text = campaign_as_json(campaign, KEY)
        for cell in select(SAMPLE, Selection(all=True)):
            assert not any(part in text for part in (cell.id, cell.case, cell.profile))

    def test_a_line_a_shard(self) -> None:
        lines = campaign_as_json(plan_wide(), KEY).splitlines()
        assert [json.loads(line.rstrip(","))["index"] for line in lines if line.startswith("  {")] == [0, 1, 2]

    def test_only_the_key_of_the_plan_signs_it(self) -> None:
        with pytest.raises(DefectError):
            campaign_as_json(plan(), OTHER)

    def test_the_order_of_the_keys_of_an_object_does_not_matter(self, tmp_path: Path) -> None:
        campaign = plan()
        path = tmp_path / "campaign.json"
        document = json.loads(campaign_as_json(campaign, KEY))
        path.write_text(json.dumps(dict(reversed(document.items()))))
        assert read_campaign(path, [KEY]) == campaign


def _more_money(document: dict[str, Any]) -> None:
    document["max_cost"] = 10**9


def _less_reserved(document: dict[str, Any]) -> None:
    cell = document["shards"][0]["cells"][0]
    cell["reserved"] = cell["expected"]


def _other_repository(document: dict[str, Any]) -> None:
    document["repository"] = "mallory/evals"


def _a_cell_less(document: dict[str, Any]) -> None:
    document["shards"][0]["cells"].pop()


def _shards_swapped(document: dict[str, Any]) -> None:
    first, second = document["shards"][:2]
    first["sealed"], second["sealed"] = second["sealed"], first["sealed"]


def _no_digest(document: dict[str, Any]) -> None:
    del document["digest"]


def _digest_of_another_kind(document: dict[str, Any]) -> None:
    document["digest"] = "ü"


def _a_float_of_the_same_value(document: dict[str, Any]) -> None:
    document["retries"] = float(document["retries"])


@pytest.mark.parametrize(
    "edit",
    [_more_money, _less_reserved, _other_repository, _a_cell_less, _shards_swapped, _no_digest,
     _digest_of_another_kind, _a_float_of_the_same_value],
)  # fmt: skip
def test_an_edited_file_is_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = tmp_path / "campaign.json"
    document = json.loads(campaign_as_json(plan_wide(), KEY))
    path.write_text(json.dumps(document))
    read_campaign(path, [KEY])
    edit(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match="edited or damaged after it was planned") as caught:
        read_campaign(path, [KEY])
    assert caught.value.problem.place is not None
    assert caught.value.problem.place.path == str(path)
    assert "dispatch plan" in caught.value.problem.fix


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("plan/v1", "plan/v2"), "of the schema runner-e2e.campaign-plan/v2"),
        (lambda text: text.replace("campaign-plan/v1", "campaign/v1"), "not of the schema"),
        (lambda text: text[: len(text) // 2], "is not JSON"),
        (lambda _: "", "is empty"),
        (lambda _: "[]", "no JSON object"),
        (lambda text: text.replace('"retries"', '"retrys"'), "unknown field"),
        (lambda text: text.replace('"id": "c-', '"id": "../c-'), "id of another form"),
        (lambda text: text.replace('"index":0', '"index":1', 1), "count from 0"),
        (lambda text: text.replace('"handle":"cell-', '"handle":"chat.', 1), "not named by a handle"),
        (lambda text: text.replace('"max_cost": null', '"max_cost": -1'), "max_cost"),
        (lambda text: text.replace('"max_cost": null', '"max_cost": 99999999999999999999'), "max_cost"),
        (lambda text: text.replace('"shards": [', '"shards": [], "x": ['), "unknown field"),
        (lambda text: text.replace('"shards": [', '"shards": [7,'), "list of objects"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    path = tmp_path / "campaign.json"
    before = campaign_as_json(plan(), KEY)
    after = change(before)
    assert before != after
    path.write_text(after)
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_campaign(path, [KEY])
    assert str(path) in str(caught.value)
    assert caught.value.problem.fix


def test_a_cell_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    document = json.loads(campaign_as_json(plan(), KEY))
    document["shards"][0]["cells"].append(document["shards"][0]["cells"][0])
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match="one of them twice"):
        read_campaign(path, [KEY])


def test_no_file_and_no_regular_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no campaign file"):
        read_campaign(tmp_path / "none.json", [KEY])
    with pytest.raises(ConfigurationError, match="directory"):
        read_campaign(tmp_path, [KEY])


@pytest.mark.parametrize(("keys", "here"), [((), "none"), ((OTHER,), key_id(OTHER))])
def test_another_key(tmp_path: Path, keys: tuple[bytes, ...], here: str) -> None:
    path = tmp_path / "campaign.json"
    path.write_text(campaign_as_json(plan(), KEY))
    with pytest.raises(ConfigurationError, match=f"which is not here \\(here: {here}\\)") as caught:
        read_campaign(path, keys)
    assert "RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS" in caught.value.problem.fix


class TestShards:
    @pytest.mark.parametrize(
        "change",
        [
            lambda shard, campaign: (replace(shard, index=1), campaign),
            lambda shard, campaign: (shard, replace(campaign, id="c-20260131t123059z-ffffffff")),
            lambda shard, campaign: (shard, replace(campaign, repository="octo/other")),
            lambda shard, campaign: (replace(shard, sealed=shard.sealed[:-2] + "AA"), campaign),
        ],
    )
    def test_a_sealed_shard_opens_in_its_place_only(
        self, change: Callable[[PlannedShard, Campaign], tuple[PlannedShard, Campaign]]
    ) -> None:
        campaign = plan_wide()
        shard, campaign = change(campaign.shards[0], campaign)
        with pytest.raises(RefusedError, match="does not open"):
            open_shard(shard, campaign, [KEY])

    def test_a_shard_with_the_cells_of_another_does_not_open(self) -> None:
        campaign = plan_wide()
        mixed = replace(campaign.shards[0], cells=campaign.shards[1].cells)
        with pytest.raises(RefusedError, match="names other cells than it has sealed"):
            open_shard(mixed, campaign, [KEY])


def test_a_digest_tells_campaigns_apart_and_not_the_order_of_their_cells() -> None:
    campaign = plan_wide()
    turned = [replace(shard, cells=tuple(reversed(shard.cells))) for shard in campaign.shards]
    assert replace(campaign, shards=tuple(turned)).digest == campaign.digest
    assert replace(campaign, max_cost=10**12).digest != campaign.digest
    assert plan_wide().digest != campaign.digest


def test_a_cost_that_only_one_cell_does_not_have(tmp_path: Path) -> None:
    cells: list[Cell] = [replace(ALL[0], expected_cost=0.25), *ALL[1:3]]
    campaign = plan_wide(cells=cells, assume_cost=1_000_000)
    assert sorted(cell.expected for shard in campaign.shards for cell in shard.cells) == [250_000, 1_000_000, 1_000_000]
    assert campaign.assumed_cells == 2
