from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells.catalogs import parse, sample, wide

from runner_e2e.cells.handles import PUBLIC_KEY, handle
from runner_e2e.cells.matrix import JOB_MARGIN_MINUTES, MAXIMUM_JOBS, make_matrix, minutes
from runner_e2e.cells.selectors import Selection, select
from runner_e2e.errors import RefusedError

KEY = bytes(range(32))
WIDE = wide(600)
ALL = select(WIDE, Selection(all=True))


@settings(max_examples=30)
@given(st.integers(min_value=1, max_value=600))
@pytest.mark.parametrize("edge", [None, 255, 256, 257, 512, 513])
def test_every_cell_is_one_job_and_no_matrix_is_too_large(edge: int | None, number: int) -> None:
    number = edge or number
    made = make_matrix(WIDE, ALL[:number], key=KEY)
    sizes = [len(shard.entries) for shard in made.shards]
    assert sum(sizes) == made.cells == number
    assert len(sizes) == -(-number // MAXIMUM_JOBS)
    assert max(sizes) <= MAXIMUM_JOBS
    assert max(sizes) - min(sizes) <= 1
    entries = [entry for shard in made.shards for entry in shard.entries]
    assert [entry.index for entry in entries] == list(range(number))
    assert {entry.handle for entry in entries} == {handle(KEY, cell.id) for cell in ALL[:number]}


def test_a_public_matrix_shows_no_name_and_no_order() -> None:
    made = make_matrix(WIDE, ALL, key=KEY)
    text = json.dumps(made.to_data())
    assert not any(cell.id in text or cell.case in text for cell in ALL)
    handles = [entry.handle for shard in made.shards for entry in shard.entries]
    assert handles == sorted(handles)
    assert handles != [handle(KEY, cell.id) for cell in ALL]
    keys = {key for shard in made.shards for entry in shard.entries for key in entry.to_data()}
    assert keys == {
        "index",
        "handle",
        "credential",
        "environment_credential",
        "environment",
        "timeout",
        "job_timeout",
    }


def test_the_same_cells_make_the_same_matrix_in_whatever_order_they_come() -> None:
    assert make_matrix(WIDE, ALL, key=KEY) == make_matrix(WIDE, tuple(reversed(ALL)), key=KEY)
    assert make_matrix(WIDE, ALL, key=KEY) != make_matrix(WIDE, ALL, key=KEY[::-1])


def test_entries_carry_credentials_kind_and_timeouts() -> None:
    catalog = sample()
    cells = select(catalog, Selection(ids=("chat.runner-codex.daytona.hello",)))
    (entry,) = make_matrix(catalog, cells, key=KEY).shards[0].entries
    assert (entry.credential, entry.environment_credential) == ("OPENAI_API_KEY", "DAYTONA_API_KEY")
    assert entry.environment == "external-sandbox"
    assert entry.timeout == 2  # 90 seconds
    assert entry.job_timeout == 4 + JOB_MARGIN_MINUTES  # two attempts of 90 seconds with 30 of grace


def test_minutes_are_rounded_up() -> None:
    assert [minutes(seconds) for seconds in (0.5, 59, 60, 61, 90, 120)] == [1, 1, 1, 2, 2, 2]


def test_without_a_key_a_matrix_is_refused() -> None:
    with pytest.raises(RefusedError, match="needs a campaign key") as caught:
        make_matrix(WIDE, ALL, key=None)
    assert "runner-e2e dispatch keygen" in caught.value.problem.fix
    assert "plain-ids: true" in caught.value.problem.fix


@pytest.mark.parametrize("key", [None, KEY])
def test_plain_ids_need_no_key_and_keep_the_order(key: bytes | None) -> None:
    catalog = wide(3, plain=True)
    cells = select(catalog, Selection(all=True))
    made = make_matrix(catalog, cells, key=key)
    assert made.plain_ids
    assert [entry.id for entry in made.shards[0].entries] == [cell.id for cell in cells]
    assert [entry.handle for entry in made.shards[0].entries] == [handle(key or PUBLIC_KEY, cell.id) for cell in cells]


def test_max_parallel_comes_from_the_call_the_catalog_or_githubs_limit() -> None:
    limited = parse("""\
        harness: {command: [run]}
        profiles: {p: }
        environments: {e: }
        max-parallel: 3
        suites: {s: {profiles: [p], environments: [e], cases: [a]}}
        """)
    cells = select(limited, Selection(all=True))
    assert make_matrix(limited, cells, key=KEY).max_parallel == 3
    assert make_matrix(limited, cells, key=KEY, max_parallel=2).max_parallel == 2
    assert make_matrix(WIDE, ALL, key=KEY).max_parallel == 256
