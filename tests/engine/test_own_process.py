"""The process of the engine: what it was given is gone from its environment, what it started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.engine.cancellation import Cancellation

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = f"""
import os, sys, signal, time, subprocess
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT)!r}]
from runner_e2e.engine.own_process import own_process
from runner_e2e.errors import RunnerE2EError
from tests.engine.catalogs import catalog
"""


def run(script: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", PRELUDE + script],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_credentials_and_key_are_handed_over_and_erased() -> None:
    script = """
with own_process(catalog(), key_variable="KEY") as process:
    print(process.environ["OWN_KEY"], process.handle_key.hex(), "KEY" in process.environ)
    print(sorted(os.environ.keys() & {"OWN_KEY", "KEY", "KEPT", "COPY"}))
    block = open("/proc/self/environ").read()
    print("secret" in block, "0011" in block, "KEPT" in block)
    print(repr(process))
"""
    key = "00112233445566778899aabbccddeeff" * 2
    lines = run(script, OWN_KEY="own-secret", COPY="has own-secret inside", KEY=key, KEPT="1").splitlines()
    assert lines[0] == f"own-secret {key} False"
    assert lines[1] == "['KEPT']"
    assert lines[2] == "False False True"
    assert "secret" not in lines[3]


def test_a_key_that_is_none_is_refused_without_being_shown() -> None:
    script = """
try:
    with own_process(catalog(), key_variable="KEY"): print("entered")
except RunnerE2EError as error: print(error.exit_code, error)
"""
    shown = run(script, KEY="not-a-key-but-secret")
    assert shown.startswith("2 the key in KEY")
    assert "but-secret" not in shown


def test_other_processes_of_the_user_may_not_trace_it() -> None:
    script = """
import ctypes
with own_process(catalog(), key_variable="KEY"): print(ctypes.CDLL(None).prctl(3))
"""
    assert run(script) == "0\n"


def test_orphans_of_a_killed_supervisor_are_ended() -> None:
    script = """
supervisor = "import os, time; os.fork() or os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
with own_process(catalog(), key_variable="KEY"):
    child = subprocess.Popen([sys.executable, "-I", "-c", supervisor], stdout=subprocess.PIPE, text=True)
    pids = [int(child.stdout.readline()) for _ in range(2)]
    child.kill(); child.wait()
    orphan = next(pid for pid in pids if pid != child.pid)
    print(os.path.exists(f"/proc/{orphan}"))
print(os.path.exists(f"/proc/{orphan}"))
"""
    assert run(script).split() == ["True", "False"]


def grace_of(cancellation: Cancellation) -> float | None:
    return cancellation.grace


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_ask_to_stop_and_are_given_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Cancellation.on_signals() as cancellation:
        assert not grace_of(cancellation)
        os.kill(os.getpid(), number)
        assert cancellation.number == number
        assert 0 < (grace_of(cancellation) or 0) < 7.5
        os.kill(os.getpid(), signal.SIGTERM)
        assert (cancellation.number, grace_of(cancellation)) == (number, 0.0)
    assert signal.getsignal(number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Cancellation.on_signals() as cancellation:
            os.kill(os.getpid(), signal.SIGHUP)
            assert cancellation.number is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_many_requests_do_not_block() -> None:
    cancellation = Cancellation()
    for _ in range(100_000):
        cancellation.request()
    assert cancellation.grace == 0.0
    cancellation.close()
