"""What a launch costs, beside a bare exec, a bare Landlock launcher and bubblewrap: ``python3 benchmarks/sandbox.py``.

All ways start ``/bin/true`` with the same nine hidden directories, one of them with an exposed entry. Rounds are
interleaved, so that a busy machine slows all ways alike; the least and the middle time of each are shown. ``--assert``
fails when an aim is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e.sandbox.harness import Launcher, Prepared  # noqa: E402
from runner_e2e.sandbox.policy import Policy  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = 9
HARNESS_BYTES = 500_000_000

BARE_LANDLOCK = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ruleset = libc.syscall(444, struct.pack("QQQ", 0x1FFF, 0, 0), 8, 0)
root = os.open("/", os.O_PATH)
libc.syscall(445, ruleset, 1, struct.pack("=Qi", 0x1FFF, root), 0)
libc.prctl(38, 1, 0, 0, 0)
if libc.syscall(446, ruleset, 0):
    sys.exit(125)
os.execv(sys.argv[1], sys.argv[1:])
"""

STEADY = """
import os, sys, time
path = sys.argv[1]
best = []
for _ in range(7):
    began = time.perf_counter()
    for _ in range(20_000):
        os.close(os.open(path, os.O_RDONLY))
    best.append((time.perf_counter() - began) / 20_000)
print(min(best) * 1e6)
"""


def make_place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="sandbox-benchmark-")).resolve()
    place.chmod(0o755)
    for index in range(HIDDEN):
        (place / f"hidden-{index}" / "other").mkdir(parents=True)
    (place / "hidden-0" / "own").mkdir()
    (place / "work").mkdir()
    (place / "home").mkdir()
    (place / "work" / "file").write_text("x")
    return place


def policy_of(place: Path) -> Policy:
    hidden = tuple(str(place / f"hidden-{index}") for index in range(HIDDEN))
    return Policy(hide=hidden, expose=(str(place / "hidden-0" / "own"),), hide_deputies=False)


def bubblewrap(place: Path, *, every: bool) -> list[str]:
    words = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    if not every:
        return [*words, "/bin/true"]
    own = str(place / "hidden-0" / "own")
    for index in range(HIDDEN):
        words += ["--tmpfs", str(place / f"hidden-{index}")]
    words += ["--bind", own, own, "--tmpfs", "/dev/shm", "--proc", "/proc"]
    return [*words, "--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "/bin/true"]


def by_process(words: list[str], place: Path, python: str) -> Callable[[], None]:
    environment = {"HOME": str(place / "home"), "PATH": os.defpath}
    del python

    def run() -> None:
        done = subprocess.run(words, cwd=place / "work", env=environment, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{words[:3]} failed with {done.returncode}: {done.stderr.decode()}")

    return run


def by_library(launcher: Launcher, prepared: Prepared) -> Callable[[], None]:
    nothing = os.open(os.devnull, os.O_RDWR)

    def run() -> None:
        with launcher.start(prepared, ["/bin/true"], stdin=nothing, stdout=nothing, stderr=nothing) as launch:
            if launch.wait().status:
                raise SystemExit("the launch failed")

    return run


def quick_entry(place: Path, python: str) -> list[str]:
    policy = policy_of(place)
    words = [python, "-I", "-S", str(ROOT / "scripts" / "agent_sandbox.py"), "--quiet"]
    for path in policy.hide:
        words += ["--hide", path]
    return [*words, "--expose", policy.expose[0], "--", "/bin/true"]


def measure(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for name, run in ways.items():
        run()
        del name
    for _ in range(rounds):
        for name, run in ways.items():
            began = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - began) * 1000)
    return times


def show(times: dict[str, list[float]], base: str) -> None:
    unit = min(times[base])
    for name, values in times.items():
        least, middle = min(values), statistics.median(values)
        print(f"  {name:44} {least:8.2f} ms {middle:8.2f} ms {least / unit:8.1f} x")


def ways_of(place: Path, python: str, launcher: Launcher) -> dict[str, Callable[[], None]]:
    prepared = launcher.prepare(
        policy_of(place),
        directory=str(place / "work"),
        environment={"HOME": str(place / "home"), "PATH": os.defpath},
    )
    ways = {
        "bare exec": by_process(["/bin/true"], place, python),
        "python3 -I -S -c pass": by_process([python, "-I", "-S", "-c", "pass"], place, python),
        "bare ctypes Landlock launcher": by_process(
            [python, "-I", "-S", "-c", BARE_LANDLOCK, "/bin/true"], place, python
        ),
        "scripts/agent_sandbox.py": by_process(quick_entry(place, python), place, python),
        "library launch": by_library(launcher, prepared),
    }
    if shutil.which("bwrap"):
        ways["bubblewrap, minimal"] = by_process(bubblewrap(place, every=False), place, python)
        ways["bubblewrap, same namespaces and covers"] = by_process(bubblewrap(place, every=True), place, python)
    if path := shutil.which("srt"):
        ways["sandbox-runtime (npm)"] = by_process([path, "/bin/true"], place, python)
    return ways


def siblings(place: Path, python: str, launcher: Launcher, rounds: int) -> tuple[float, float]:
    """Least time of a library launch without and with 10,000 siblings of the hidden directories."""
    prepared = launcher.prepare(policy_of(place), directory=str(place / "work"), environment={"PATH": os.defpath})
    few = measure({"few": by_library(launcher, prepared)}, rounds)["few"]
    for index in range(10_000):
        (place / f"sibling-{index}").touch()
    many = measure({"many": by_library(launcher, prepared)}, rounds)["many"]
    for index in range(10_000):
        (place / f"sibling-{index}").unlink()
    del python
    return min(few), min(many)


def steady(place: Path, python: str) -> dict[str, float]:
    """Microseconds to open and close a file: outside, inside, and inside with Landlock alone."""
    program = [python, "-I", "-c", STEADY, str(place / "work" / "file")]
    head = quick_entry(place, python)[:-1]
    found = {}
    for name, words in (
        ("outside", program),
        ("inside", [*head, *program]),
        ("inside, Landlock alone", [*head[:-1], "--without", "mounts", "--", *program]),
    ):
        done = subprocess.run(words, cwd=place / "work", capture_output=True, text=True, check=True)
        found[name] = float(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--assert", dest="strict", action="store_true", help="fail when an aim is missed")
    options = parser.parse_args()
    place = make_place()
    missed = []
    try:
        with Launcher(python=options.python) as launcher:
            print(
                f"launch of /bin/true, {HIDDEN} hidden directories, user {os.geteuid()}: least, middle, times bare exec"
            )
            times = measure(ways_of(place, options.python, launcher), options.rounds)
            show(times, "bare exec")
            held = bytearray(HARNESS_BYTES)
            held[:: os.sysconf("SC_PAGESIZE")] = b"x" * len(held[:: os.sysconf("SC_PAGESIZE")])
            large = measure(ways_of(place, options.python, launcher), options.rounds)
            print(f"from a process that holds {HARNESS_BYTES // 1_000_000} MB:")
            show({name: large[name] for name in large if "library" in name or "bubble" in name}, "library launch")
            del held
            few, many = siblings(place, options.python, launcher, options.rounds)
            print(f"library launch: {few:.2f} ms; with 10,000 siblings {many:.2f} ms")
        for name, value in steady(place, options.python).items():
            print(f"open and close a file, {name}: {value:.2f} µs")
        ratio = min(times["scripts/agent_sandbox.py"]) / min(times["bare ctypes Landlock launcher"])
        print(f"scripts/agent_sandbox.py is {ratio:.2f} x a bare ctypes Landlock launcher (aim: 1.3)")
        missed += ["agent_sandbox.py"] * (ratio > 1.3)
        peer = "bubblewrap, same namespaces and covers"
        if peer in times:
            for name, found in (("small", times), ("500 MB", large)):
                ratio = min(found["library launch"]) / min(found[peer])
                print(f"library launch, {name} harness, is {ratio:.2f} x bubblewrap with the same (aim: 1.0)")
                missed += [f"library launch, {name}"] * (ratio > 1.0)
        missed += ["10,000 siblings"] * (many > 1.2 * few)
    finally:
        shutil.rmtree(place)
    print("aims missed:", ", ".join(missed) or "none")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
