"""Random scripts: the grammar, the execution of one, and the search for a wrong belief."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from tests.truth.__main__ import main
from tests.truth.case import read_case
from tests.truth.execution import Instruments, execute
from tests.truth.fuzz import (
    Search,
    execute_scripts,
    executed_verdict,
    judge_batch,
    keep,
    random_scripts,
    shrink,
    smaller_scripts,
)
from tests.truth.grammar import scripts

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.truth.case import Verdict


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts())
def test_every_script_is_valid(script: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_scripts_of_one_batch_do_not_see_one_another(tools: Instruments) -> None:
    texts = ['tool "$ID"', 'echo "$ID"', 'tool "${a:-none}"', "exit 3", 'cat one.txt\ntool "${ID##*.}"']
    executions = execute_scripts(texts, tools)
    assert [one.verdict for one in executions] == ["leak", "clean", "clean", "clean", "leak"]
    assert [one.status for one in executions] == [0, 0, 0, 3, 0]
    assert executions[0].leaks == (("tool", "{id}"),)
    assert executions[4].leaks == (("tool", "{case}"),)


def test_one_script(tools: Instruments) -> None:
    assert executed_verdict('X=$ID /bin/echo "$X"', tools) == "clean"
    assert executed_verdict(': "$ID"\n/bin/echo "$_"', tools) == "leak"


def believes_in_quotes(script: str) -> Verdict:
    """A predictor with a hole: it does not know $_ and thinks that all the rest is a leak when it names ID."""
    return "leak" if "ID" in script else "clean"


def test_a_wrong_belief_is_found_made_small_and_kept(tmp_path: Path, tools: Instruments) -> None:
    search = Search()
    batches = random_scripts(1, 8)
    surprises = [one for batch in batches for one in judge_batch(batch, believes_in_quotes, tools, search)]
    assert surprises
    assert search.leaks
    assert search.clean
    small = shrink(max(surprises, key=lambda one: len(one.script)), believes_in_quotes, tools, search)
    assert small.believed != small.execution.verdict
    assert len(small.script.splitlines()) <= 2, small.script
    path = keep(small, tmp_path)
    assert execute(read_case(path), tools, recorded=False).verdict == small.execution.verdict


def test_the_same_seed_gives_the_same_scripts() -> None:
    assert random_scripts(3, 4) == random_scripts(3, 4)
    assert random_scripts(3, 4) != random_scripts(4, 4)


def test_parts_of_a_script_are_valid_and_smaller() -> None:
    script = 'for x in a; do\ntool "$x"\ndone\necho b'
    parts = list(smaller_scripts(script))
    assert 'for x in a; do\ntool "$x"\ndone' in parts
    assert "echo b" in parts
    assert "done\necho b" not in parts
    assert all(len(part) < len(script) for part in parts)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--minutes", "0", "--seed", "5"]) == 0
    assert "0 scripts (0 leak, 0 clean), 0 failed, seed 5" in capsys.readouterr().out
