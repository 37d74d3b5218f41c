"""Fixes by execution: a case is run as it is and as its fixes make it, with the same id, and must do the same.

The cases here are a choice of every kind of repair; ``python -m tests.truth fix`` does it for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.truth.case import read_case
from tests.truth.execution import Instruments, instruments
from tests.truth.repair import Repaired, Run, repaired
from tests.truth.verdict import Truth

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECTORY = Path(__file__).parent / "cases"

# Repaired, and then there is no leak any more.
CLEAN = (
    "command/bracket-program",
    "command/command-substitution",
    "command/curl-data",
    "command/curl-header",
    "command/docker-environment-value",
    "command/env-program",
    "command/gh-workflow-run",
    "command/git-config",
    "command/jq-arg",
    "command/single-quotes",
    "expression/env-context",
    "expression/format-escaped",
    "expression/several-on-a-line",
    "expression/spaces-and-lines",
    "expression/to-json",
)
# The text of the script is clean; the program must still be told where to find the value.
SCRIPT = (
    "action/nested",
    "call/called-calls",
    "expression/variable-from-text",
    "file/output-heredoc",
    "job/needs-all",
    "matrix/include",
)


@pytest.fixture(scope="module")
def tools() -> Iterator[Instruments]:
    with instruments() as made:
        yield made


@pytest.mark.parametrize("name", CLEAN)
def test_the_leak_is_gone_and_the_rest_is_the_same(name: str, tools: Instruments) -> None:
    result = repaired(read_case(DIRECTORY / f"{name}.leak.yml"), tools, unsafe=True)
    assert result is not None
    assert result.complaints() == []
    assert result.before.truth.verdict == "leak"
    assert result.after.truth.verdict == "clean"
    assert not result.after.truth.script


@pytest.mark.parametrize("name", SCRIPT)
def test_the_script_file_is_clean_and_the_rest_is_the_same(name: str, tools: Instruments) -> None:
    path = DIRECTORY / f"{name}.leak"
    result = repaired(read_case(path if path.is_dir() else path.with_name(f"{path.name}.yml")), tools, unsafe=False)
    assert result is not None
    assert result.complaints() == []
    assert (result.before.truth.script, result.after.truth.script) == (True, False)


TRUTH = Truth(verdict="clean", witnesses=(), encodings=(), environments=(), script=False, log=False)
GOOD = Run(truth=TRUTH, output=("a",))


@pytest.mark.parametrize(
    ("after", "remaining", "complaint"),
    [
        (replace(GOOD, output=("b",)), {"confidential-argv"}, "the output differs"),
        (Run(truth=replace(TRUTH, verdict="leak"), output=("a",)), set(), "the lint is content, and the id is on"),
        (Run(truth=replace(TRUTH, verdict="leak"), output=("a",)), {"confidential-argv"}, "it leaks now"),
        (Run(truth=replace(TRUTH, script=True), output=("a",)), set(), "a script file holds the id"),
        (GOOD, set(), ""),
    ],
)
def test_a_bad_fix_would_be_noticed(after: Run, remaining: set[str], complaint: str) -> None:
    result = Repaired(rules=frozenset(), remaining=frozenset(remaining), before=GOOD, after=after)
    assert complaint in "\n".join(result.complaints())
    assert bool(result.complaints()) == bool(complaint)
