"""The cases of the lint are what their stored truth says: looked at all, and executed all once more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.truth.case import Case, find_cases
from tests.truth.execution import Instruments, execute, instruments
from tests.truth.verdict import read_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = Path(__file__).parent / "cases"
CASES = find_cases(DIRECTORY)
HEADER = "# "


@pytest.fixture(scope="module")
def tools() -> Iterator[Instruments]:
    with instruments() as made:
        yield made


def test_there_are_many_cases_and_many_near_misses() -> None:
    verdicts = Counter(case.belief for case in CASES)
    assert len(CASES) >= 150
    assert verdicts["clean"] / len(CASES) >= 0.4


def test_every_leak_has_its_clean_twin() -> None:
    names = {(case.topic, case.stem, case.belief) for case in CASES}
    alone = [case.name for case in CASES if case.belief == "leak" and (case.topic, case.stem, "clean") not in names]
    assert not alone


def test_no_truth_is_left_of_a_case_that_is_gone() -> None:
    stored = set(DIRECTORY.rglob("*.truth.json"))
    assert stored == {case.truth_path for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_stored_truth_is_about_this_case(case: Case) -> None:
    truth, digest = read_truth(case)
    assert digest == case.digest(), f"changed since it was executed: python -m tests.truth run {case.path}"
    assert truth.verdict == case.belief
    assert bool(truth.witnesses) == (truth.verdict == "leak")
    files = case.files()
    assert files[".github/workflows/case.yml"].read_text().startswith(HEADER), "say in the first line what it shows"
    for witness in truth.witnesses:
        lines = files[witness.file].read_text().splitlines()
        assert 1 <= witness.line <= witness.end_line <= len(lines)
        assert any("{" in word for word in witness.argv)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_execution_shows_what_is_stored(case: Case, tools: Instruments) -> None:
    assert execute(case, tools, recorded=True) == read_truth(case)[0]
