"""The files of the shared ledger: what is written is read back, and nothing else is taken for one."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner_e2e.dispatch.shared_ledger_file import (
    Caps,
    Entry,
    caps_as_text,
    is_month_file,
    month_as_text,
    month_file,
    read_caps,
    read_month,
)
from runner_e2e.errors import RefusedError

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/@\[\]-]{0,60}", fullmatch=True)
AMOUNTS = st.none() | st.integers(0, 10**15)


@st.composite
def entry(draw: st.DrawFn, key: str) -> Entry:
    state = draw(st.sampled_from(["reserved", "settled", "released"]))
    return Entry(
        key=key, campaign=draw(NAMES), owner=draw(NAMES), nonce=draw(NAMES), cells=draw(st.integers(0, 256)),
        reserved=draw(AMOUNTS), day=f"2026-11-{draw(st.integers(1, 30)):02d}",
        charged=draw(st.integers(0, 10**15)) if state == "settled" else None, state=state,  # type: ignore[arg-type]
        run=draw(st.none() | st.integers(1, 10**11)),
    )  # fmt: skip


@given(st.lists(NAMES, unique=True, max_size=5).flatmap(lambda keys: st.tuples(*map(entry, keys))))
def test_a_month_is_read_back(entries: tuple[Entry, ...]) -> None:
    text = month_as_text("2026-11.json", entries)
    assert read_month("2026-11.json", text.encode()) == entries
    # One line an entry, so that a change of one shows as one.
    assert len(text.splitlines()) == max(1, len(entries)) + 2


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_caps_are_read_back(campaign: int | None, day: int | None, month: int | None) -> None:
    caps = Caps(campaign=campaign, day=day, month=month)
    assert read_caps(caps_as_text(caps).encode()) == caps
    # A cap of nothing is a cap.
    assert bool(caps) is ((campaign, day, month) != (None, None, None))


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((files("runner_e2e.dispatch") / "schemas" / name).read_text()))


@given(entry("run-7"))
def test_the_published_schema_is_that_of_the_months(one: Entry) -> None:
    checker = validator("shared-ledger-v1.json")
    document = json.loads(month_as_text("2026-11.json", [one]))
    checker.validate(document)
    for part in (document, document["entries"][0]):
        for name in list(part):
            value = part.pop(name)
            assert not checker.is_valid(document), name
            part[name] = value
        part["more"] = 1
        assert not checker.is_valid(document)
        del part["more"]


@given(AMOUNTS)
def test_the_published_schema_is_that_of_the_caps(amount: int | None) -> None:
    checker = validator("caps-v1.json")
    document = json.loads(caps_as_text(Caps(day=amount)))
    checker.validate(document)
    assert not checker.is_valid({**document, "hour": 1})
    assert not checker.is_valid({**document, "day": -1})


@given(st.binary(max_size=200))
def test_what_is_no_file_of_ours_is_refused(content: bytes) -> None:
    for read in (lambda: read_caps(content), lambda: read_month("2026-11.json", content)):
        with pytest.raises(RefusedError, match="the shared ledger cannot be used"):
            read()


@given(st.data())
def test_one_changed_character_is_refused_or_read_as_it_stands(data: st.DataObject) -> None:
    text = month_as_text("2026-11.json", [ENTRY])
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.characters(max_codepoint=0x2FF)) + text[at + 1 :]
    try:
        found = read_month("2026-11.json", changed.encode())
    except RefusedError:
        return
    assert [asdict(each) for each in found] == json.loads(changed)["entries"]


ENTRY = Entry(key="run-7", campaign="run-7", owner="run-7", nonce="n", cells=1, reserved=1, day="2026-11-30")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"day": "2026-11-3"}, "day"),
        ({"day": "2026-12-01"}, "day"),
        ({"reserved": 2**53}, "reserved"),
        ({"reserved": "1"}, "reserved"),
        ({"charged": 5}, "charged"),
        ({"key": "a\nb"}, "a name of an entry"),
        ({"nonce": ""}, "a name of an entry"),
        ({"owner": "x" * 201}, "a name of an entry"),
        ({"state": "paid"}, "state"),
        ({"colour": "red"}, "unknown field"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], said: str) -> None:
    document = json.loads(month_as_text("2026-11.json", [ENTRY]))
    document["entries"][0] |= change
    with pytest.raises(RefusedError, match=said) as caught:
        read_month("2026-11.json", json.dumps(document).encode())
    assert str(caught.value.problem.place) == "runner-e2e-ledger:2026-11.json"


def test_two_entries_with_one_key() -> None:
    with pytest.raises(RefusedError, match="two entries with one key"):
        read_month("2026-11.json", month_as_text("2026-11.json", [ENTRY, ENTRY]).encode())


def test_caps_of_a_newer_version() -> None:
    with pytest.raises(RefusedError, match="of another version"):
        read_caps(b'{"schema": "runner-e2e.caps/v2", "hour": 1}')
    with pytest.raises(RefusedError, match="unknown field 'hour'"):
        read_caps(b'{"schema": "runner-e2e.caps/v1", "hour": 1}')


def test_names_of_files() -> None:
    assert month_file("2026-11-30") == "2026-11.json"
    assert [is_month_file(each) for each in ("2026-11.json", "2026-13.json", "caps.json", "x2026-11.json")] == [
        True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("field", ["cells", "reserved", "charged", "run"])
def test_what_could_not_be_read_back_is_not_written(field: str) -> None:
    known: dict[str, Any] = {"key": "k", "campaign": "c", "owner": "o", "nonce": "n", "cells": 1, "reserved": 1}
    known |= {"state": "settled", "charged": 1, "run": 1, "day": "2026-11-30"}
    largest = Entry(**known | {field: 2**53 - 1})
    assert read_month("2026-11.json", month_as_text("2026-11.json", [largest]).encode()) == (largest,)
    with pytest.raises(RefusedError, match="cannot stand in the shared ledger"):
        month_as_text("2026-11.json", [Entry(**known | {field: 2**53})])
