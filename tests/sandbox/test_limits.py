"""Values of limits, and the watch over a tree, without a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.sandbox.limits import LIMITS, InvalidLimitError, parse_limit, show, tasks_of
from runner_e2e.sandbox.watch import Watch, usage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("memory", "2G", 2 << 30),
        ("memory", "512M", 512 << 20),
        ("memory", 1 << 30, 1 << 30),
        ("scratch", "4K", 4096),
        ("file-size", "1", 1),
        ("file-size", "1T", 1 << 40),
        ("processes", "512", 512),
        ("open-files", 64, 64),
        ("time", "90", 90),
        ("time", "90s", 90),
        ("time", "10m", 600),
        ("cpu", "2h", 7200),
    ],
)
def test_values(name: str, value: object, parsed: int) -> None:
    assert parse_limit(name, value) == parsed


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("memry", "2G", "there is no limit 'memry'"),
        ("memory", "", "'' is not a value"),
        ("memory", "G", "'G' is not a value"),
        ("memory", "2g", "'2g' is not a value"),
        ("memory", "-1G", "'-1G' is not a value"),
        ("memory", "1.5G", "'1.5G' is not a value"),
        ("memory", "\N{FULLWIDTH DIGIT TWO}G", "is not a value"),
        ("memory", "9" * 5000, "is not a value"),
        ("memory", True, "True is not a value"),
        ("memory", 1.0, "1.0 is not a value"),
        ("memory", None, "None is not a value"),
        ("memory", "1K", "less than 8 MiB"),
        ("processes", "5K", "'5K' is not a value"),
        ("processes", 0, "less than 1"),
        ("time", "0", "less than 1 s"),
        ("time", "1G", "'1G' is not a value"),
        ("open-files", 3, "less than 8"),
    ],
)
def test_bad_values(name: str, value: object, words: str) -> None:
    with pytest.raises(InvalidLimitError, match=words) as caught:
        parse_limit(name, value)
    assert caught.value.fix


@given(st.sampled_from(list(LIMITS)), st.one_of(st.integers(), st.text(max_size=12), st.floats(), st.none()))
def test_any_value_is_a_number_in_range_or_refused(name: str, value: object) -> None:
    try:
        parsed = parse_limit(name, value)
    except InvalidLimitError:
        return
    assert LIMITS[name].least <= parsed < 1 << 62
    assert show(name, parsed)


def test_values_for_people() -> None:
    assert [show("memory", size) for size in (100, 4096, 3 << 29, 2 << 30)] == ["100 B", "4 KiB", "1.5 GiB", "2 GiB"]
    assert (show("time", 1.5), show("processes", 12)) == ("1.5 s", "12")


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[str]]:
    """A process with four threads that holds 64 MiB and burns processor time, in part through an ended child."""
    code = (
        "import subprocess, sys, threading, time\n"
        "held = bytearray(64 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n"
        "subprocess.run([sys.executable, '-I', '-S', '-c', 'for _ in range(3000000): pass'])\n"
        "[threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(3)]\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_what_a_process_uses(burner: subprocess.Popen[str]) -> None:
    found = usage(burner.pid)
    assert found is not None
    assert 64 << 20 <= found.memory < 128 << 20
    assert found.threads == 4
    assert found.seconds > 0.02
    assert found.name.startswith("python")
    assert usage(2**22 + 1) is None


def watch_over(process: int, **limits: int) -> tuple[Watch, list[str]]:
    acts: list[str] = []
    made = Watch(
        {name.replace("_", "-"): value for name, value in limits.items()},
        processes=lambda: [process],
        kill=lambda: acts.append("kill"),
        ask=lambda signal: acts.append(f"ask {signal}"),
    )
    return made, acts


@pytest.mark.parametrize(
    ("limits", "limit", "words"),
    [
        ({"memory": 32 << 20}, "memory", "all used 6"),
        ({"processes": 3}, "processes", "there were 4"),
        ({"memory": 1 << 30, "processes": 3}, "processes", "there were 4"),
    ],
)
def test_a_passed_limit_ends_the_tree_once(
    burner: subprocess.Popen[str], limits: dict[str, int], limit: str, words: str
) -> None:
    watch, acts = watch_over(burner.pid, **limits)
    watch.look()
    watch.look()
    assert acts == ["kill"]
    assert watch.crossing is not None
    assert watch.crossing.limit == limit
    assert watch.crossing.seen.startswith(words)


def test_within_its_limits_nothing_happens(burner: subprocess.Popen[str]) -> None:
    watch, acts = watch_over(burner.pid, memory=256 << 20, processes=4, cpu=3600, time=3600)
    watch.look()
    assert (acts, watch.crossing) == ([], None)
    assert watch.pause == 100


def test_time_asks_first_and_kills_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch, acts = watch_over(os.getpid(), time=60)
    assert watch.pause == 60_001
    now[0] += 59.9
    watch.look()
    assert acts == []
    now[0] += 0.1
    watch.look()
    assert acts == ["ask 15"]
    assert watch.pause == 2001
    now[0] += 2
    watch.look()
    assert acts == ["ask 15", "kill"]
    assert watch.crossing is not None
    assert watch.crossing.seen == "it ran 60 s"


def test_pages_that_processes_share_count_once() -> None:
    code = (
        "import os, time\nheld = bytearray(64 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n"
        "child = os.fork()\n"
        "if child:\n    print(child, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            acts: list[str] = []
            both = [process.pid, child]
            assert sum(found.memory for one in both if (found := usage(one))) > 128 << 20
            watch = Watch(
                {"memory": 100 << 20}, processes=lambda: both, kill=lambda: acts.append("kill"), ask=lambda _: None
            )
            watch.look()
            assert acts == []
        finally:
            os.kill(child, 9)
            process.kill()


def test_tasks_of_a_user(burner: subprocess.Popen[str]) -> None:
    assert burner.pid
    assert tasks_of(os.getuid()) >= 5
    assert tasks_of(2**31 + 5) == 0
