"""The view of a campaign: a function of what is known and of the terminal's size."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from runner_e2e.cli.dispatch_view import Calls, Pause, ShardLine, Snapshot, amount, render
from runner_e2e.dispatch.shard_states import STATES

ROOT = Path(__file__).parents[2]
DOLLAR = 1_000_000
NAME = "c-20261130t120000z-1a2b3c4d"
SHARDS = (
    ShardLine(
        index=0, state="settled", cells=200, passed=195, failed=5, reserved=200 * DOLLAR, charged=97_500_000, run=1001
    ),
    ShardLine(
        index=1, state="settled", cells=200, passed=190, failed=8, other=2, reserved=200 * DOLLAR, charged=94 * DOLLAR,
        kept=2 * DOLLAR, run=1002,
    ),
    ShardLine(index=2, state="running", cells=200, reserved=200 * DOLLAR, run=18_234_567_003),
    ShardLine(
        index=3, state="stuck", cells=200, reserved=200 * DOLLAR, note="GitHub does not say who holds its claim"
    ),
)  # fmt: skip
VIEW = Snapshot(
    campaign=NAME,
    repository="octo/evals",
    target="main",
    begun=1000.0,
    now=1725.0,
    shards=SHARDS,
    cap=1000 * DOLLAR,
    calls=Calls(left=4812, limit=5000, reset=3000.0),
    pause=Pause(until=1737.0),
)


def shown(view: Snapshot, width: int = 80, height: int = 40, *, colour: bool = False, unicode: bool = True) -> str:
    stream = io.StringIO()
    system = "truecolor" if colour else None
    console = Console(file=stream, width=width, height=height, force_terminal=colour, color_system=system)  # type: ignore[arg-type]
    console.print(render(view, width=width, height=height, unicode=unicode))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def test_it_looks_as_the_documentation_shows() -> None:
    page = (ROOT / "docs" / "campaigns.md").read_text()
    found = re.search(r"<!-- test: view -->\n```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found
    assert shown(VIEW) == found[1].rstrip("\n")


def test_forty_columns_are_enough() -> None:
    text = shown(VIEW, 40)
    assert text.splitlines()[:2] == [NAME, "octo/evals main              12 min 05 s"]
    assert re.search(r"^shard +state +cells +cost$", text, re.MULTILINE)
    assert re.search(r"^ +2 +running +200 +-$", text, re.MULTILINE)
    assert "━" not in text, "no bars"


def test_nothing_is_said_by_colour_alone() -> None:
    plain, coloured = shown(VIEW), shown(VIEW, colour=True)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert shown(VIEW, unicode=False).isascii()
    assert shown(VIEW, 40, unicode=False).isascii()


def test_an_unknown_cost_is_no_zero() -> None:
    line = next(line for line in shown(VIEW).splitlines() if line.startswith("    1 "))
    assert line.split() == ["1", "settled", "200", "190", "10", "$94.00+?", "$2.00", "1002"]
    assert "$191.50 spent, $402.00 reserved, cap $1,000.00" in shown(VIEW), "what is kept for it is still reserved"


def test_what_was_never_sent_takes_nothing() -> None:
    shards = tuple(replace(SHARDS[3], state=state, note="") for state in ("planned", "unpaid", "cancelled"))
    assert "$0.00 spent, $0.00 reserved" in shown(replace(VIEW, shards=shards))


def test_of_many_shards_those_are_shown_that_something_happens_to() -> None:
    quiet = [replace(SHARDS[0], index=number) for number in range(40)]
    quiet[17] = replace(SHARDS[3], index=17)
    quiet[31] = replace(SHARDS[2], index=31)
    text = shown(replace(VIEW, shards=tuple(quiet)), height=24)
    assert len(text.splitlines()) <= 24
    assert re.search(r"^ +17 +stuck ", text, re.MULTILINE)
    assert re.search(r"^ +31 +running ", text, re.MULTILINE)
    assert re.search(r"^  and 3\d more: 3\d settled$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"calls": None}, "no limit is known"),
        ({"calls": Calls(left=7, limit=0, reset=0.0)}, "7 left"),
        ({"calls": Calls(left=5000, limit=5000, reset=9e9)}, "5,000 of 5,000 left\n"),
        ({"pause": None}, "looking · Ctrl-C leaves, the runs go on"),
        ({"pause": Pause(until=1000.0)}, "looking · "),
        ({"pause": Pause(until=1785.0, why="GitHub asks to wait")}, "GitHub asks to wait: 1 min 00 s · "),
        ({"cap": None}, "$402.00 reserved\n"),
        ({"cap": 500_000_000}, "cap $500.00 passed by $93.50\n"),
        ({"now": 0.0}, " 0.0 s\n"),
    ],
)
def test_what_differs(change: dict[str, object], said: str) -> None:
    assert said in shown(replace(VIEW, **change), 100) + "\n"  # type: ignore[arg-type]


amounts = st.integers(0, 10**13)
numbers = st.integers(0, 256)
shard_lines = st.builds(
    ShardLine,
    index=st.integers(0, 9999),
    state=st.sampled_from(STATES),
    cells=numbers,
    passed=numbers,
    failed=numbers,
    other=numbers,
    reserved=amounts,
    charged=st.none() | amounts,
    kept=amounts,
    run=st.none() | st.integers(1, 10**12),
    note=st.text("ab \n中é", max_size=200),
)


@settings(max_examples=25, phases=(Phase.generate,))
@given(
    shards=st.lists(shard_lines, min_size=1, max_size=8),
    times=st.integers(1, 8),
    width=st.integers(40, 140),
    height=st.integers(34, 60),
)
def test_it_never_is_wider_or_higher_than_the_terminal(
    shards: list[ShardLine], times: int, width: int, height: int
) -> None:
    lines = shown(replace(VIEW, shards=tuple(shards) * times), width, height).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert len(lines) <= height
    assert not [line for line in lines if "…" in line], "nothing is cut but the run"


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "$0.00"),
        (1, "$0.0001"),
        (400, "$0.0004"),
        (9_999, "$0.0100"),
        (12_500_000, "$12.50"),
        (12_500_001, "$12.51"),
        (1_000_000_000, "$1,000.00"),
        (868_911_886_100, "$868,912"),
    ],
)
def test_money_is_short_and_never_less_than_it_is(micros: int, text: str) -> None:
    assert amount(micros) == text
