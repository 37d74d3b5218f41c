"""What a launch costs, beside a bare exec, a bare Landlock launcher and its peers: ``python3 benchmarks/sandbox.py``.

All ways start ``/bin/true`` with the same nine hidden directories, one of them with an exposed entry. Rounds are
interleaved, so that a busy machine slows all ways alike: aims are judged by the middle one of the ratios of all rounds.
The least and the middle time of each way are shown, and the processor time of everything that a launch starts, where a
control group can be made to count it. ``--pause`` is what a harness does between launches: the next one is made ready
then. Ten launches one upon another are measured, too. ``--assert`` fails when an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e.errors import LaunchError  # noqa: E402
from runner_e2e.sandbox import fork_server  # noqa: E402
from runner_e2e.sandbox.harness import Launcher  # noqa: E402
from runner_e2e.sandbox.policy import Network, Policy  # noqa: E402
from runner_e2e.sandbox.quick_client import SERVER_VARIABLE  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.sandbox.prepared import Prepared

ENTRY = "scripts/agent_sandbox.py"
SERVED = "scripts/agent_sandbox.py, sandbox serve"
SERVED_OTHER = "the same, another environment each time"
LANDLOCK = "bare ctypes Landlock launcher"
HIDDEN = 9
HARNESS_BYTES = 500_000_000
BURST = 10
BUBBLEWRAP = "bubblewrap, same namespaces and covers"
NPM_PACKAGE = "@anthropic-ai/sandbox-runtime"

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


@dataclass
class Times:
    """Milliseconds of each launch, and processor milliseconds of all of them (nan where nothing counts them)."""

    elapsed: list[float] = field(default_factory=list)
    processor: float = 0.0

    @property
    def least(self) -> float:
        """The quickest launch."""
        return min(self.elapsed)

    @property
    def middle(self) -> float:
        """The median."""
        return statistics.median(self.elapsed)

    def beside(self, peer: Times) -> float:
        """How many times as long as *peer* in the same round: the median."""
        return statistics.median(own / other for own, other in zip(self.elapsed, peer.elapsed, strict=True))


class Meter:
    """Counts the processor time of this process and all that it starts, by a control group of its own."""

    def __init__(self) -> None:
        self.group, self.file = Path("/nonexistent"), ""
        for parent, file in (("/sys/fs/cgroup", "cpu.stat"), ("/sys/fs/cgroup/cpuacct", "cpuacct.usage")):
            group = Path(parent) / f"sandbox-benchmark-{os.getpid()}"
            try:
                group.mkdir()
                (group / "cgroup.procs").write_text(str(os.getpid()))
            except OSError:
                continue
            self.group, self.file = group, file

    def read(self) -> float:
        """Milliseconds so far."""
        try:
            words = (self.group / self.file).read_text().split()
        except OSError:
            return float("nan")
        return int(words[1]) / 1e3 if self.file == "cpu.stat" else int(words[0]) / 1e6

    def close(self) -> None:
        """Goes back to where this process was, and removes the group."""
        try:
            (self.group.parent / "cgroup.procs").write_text(str(os.getpid()))
            self.group.rmdir()
        except OSError:
            return


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


def environment_of(place: Path) -> dict[str, str]:
    return {"HOME": str(place / "home"), "PATH": os.defpath}


def bubblewrap(place: Path, *, every: bool) -> list[str]:
    words = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    if not every:
        return [*words, "/bin/true"]
    own = str(place / "hidden-0" / "own")
    for index in range(HIDDEN):
        words += ["--tmpfs", str(place / f"hidden-{index}")]
    words += ["--bind", own, own, "--tmpfs", "/dev/shm", "--proc", "/proc"]
    return [*words, "--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent", "/bin/true"]


def sandbox_runtime(place: Path) -> list[str] | str:
    """The npm sandbox-runtime, installed for this run; a text says why it is absent."""
    missing = [name for name in ("npm", "node", "bwrap", "socat", "rg") if not shutil.which(name)]
    if missing:
        return f"it needs {', '.join(missing)}"
    words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(place / "npm")]
    done = subprocess.run([*words, NPM_PACKAGE], capture_output=True, text=True, check=False)
    if done.returncode:
        return "npm could not install it"
    hidden = list(policy_of(place).hide)
    settings = {
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": hidden, "allowWrite": [str(place / "work")], "denyWrite": []},
    }
    (place / "settings.json").write_text(json.dumps(settings))
    return [str(place / "npm/node_modules/.bin/srt"), "--settings", str(place / "settings.json"), "--", "/bin/true"]


def by_process(
    words: list[str], place: Path, environment: Mapping[str, str] | None = None, *, vary: bool = False
) -> Callable[[], None]:
    """Starts *words*; with *vary* no two environments are the same."""
    variables = dict(environment or environment_of(place))

    def run() -> None:
        if vary:
            variables["ROUND"] = str(time.time_ns())
        done = subprocess.run(words, cwd=place / "work", env=variables, capture_output=True, check=False)
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


def measure(ways: Mapping[str, Callable[[], None]], rounds: int, *, pause: float, meter: Meter) -> dict[str, Times]:
    """Each way *rounds* times, one after the other; what is done in the pauses counts to the way before."""
    times = {name: Times() for name in ways}
    for run in ways.values():
        run()
    for _ in range(rounds):
        for name, run in ways.items():
            time.sleep(pause)
            before, began = meter.read(), time.perf_counter()
            run()
            times[name].elapsed.append((time.perf_counter() - began) * 1000)
            time.sleep(pause)
            times[name].processor += (meter.read() - before) / rounds
    return times


def show(times: Mapping[str, Times], base: str) -> None:
    for name, one in times.items():
        ratio = f"{one.beside(times[base]):7.2f} x"
        print(f"  {name:42} {one.least:8.2f} ms {one.middle:8.2f} ms {ratio}   {one.processor:7.2f} ms processor")


def ways_of(place: Path, python: str, ready: Launcher, cold: Launcher) -> dict[str, Callable[[], None]]:
    served, other = ({**environment_of(place), SERVER_VARIABLE: fork_server.start(python)} for _ in range(2))
    ways = {
        "bare exec": by_process(["/bin/true"], place),
        "python3 -I -S -c pass": by_process([python, "-I", "-S", "-c", "pass"], place),
        LANDLOCK: by_process([python, "-I", "-S", "-c", BARE_LANDLOCK, "/bin/true"], place),
        ENTRY: by_process(quick_entry(place, python), place),
        SERVED: by_process(quick_entry(place, python), place, served),
        SERVED_OTHER: by_process(quick_entry(place, python), place, other, vary=True),
    }
    for name, launcher in (("library launch", ready), ("library launch without standby", cold)):
        prepared = launcher.prepare(policy_of(place), directory=str(place / "work"), environment=environment_of(place))
        ways[name] = by_library(launcher, prepared)
    for name, network in (
        ("library launch, own loopback", Network(reach="loopback")),
        ("library launch, allowed hosts", Network(reach="hosts", hosts=("api.example.com",))),
    ):
        policy = policy_of(place).replace(network=network)
        prepared = ready.prepare(policy, directory=str(place / "work"), environment=environment_of(place))
        try:
            by_library(ready, prepared)()
            ways[name] = by_library(ready, prepared)
        except LaunchError as error:
            print(f"  {name} is absent: {error.problem.why}")
    if shutil.which("bwrap"):
        ways["bubblewrap, minimal"] = by_process(bubblewrap(place, every=False), place)
        ways[BUBBLEWRAP] = by_process(bubblewrap(place, every=True), place)
    return ways


def bursts(ways: Mapping[str, Callable[[], None]], rounds: int, *, pause: float, meter: Meter) -> None:
    """Prints what launches take that come one upon another: there is no moment in which to make one ready."""

    def burst(launch: Callable[[], None]) -> Callable[[], None]:
        def launch_all() -> None:
            for _ in range(BURST):
                launch()

        return launch_all

    peers = {name: peer for name, peer in (("library launch", BUBBLEWRAP), (SERVED, LANDLOCK)) if peer in ways}
    some = {name: burst(ways[name]) for pair in peers.items() for name in pair}
    times = measure(some, rounds, pause=pause, meter=meter)
    for name, peer in peers.items():
        each, ratio = times[name].middle / BURST, times[name].beside(times[peer])
        print(f"{BURST} one upon another, {name}: {each:.1f} ms each, {ratio:.2f} x {peer}")


def memory_below(process: int) -> float:
    """Megabytes of the processes that *process* started, of pages that several have each one's share.

    Not a number where the kernel shows that only to root.
    """
    total = 0.0
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        try:
            lines = Path(f"/proc/{child}/smaps_rollup").read_text().splitlines()
        except PermissionError:
            return float("nan")
        total += sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Pss:"))
        total += memory_below(int(child))
    return total


def standby_memory(place: Path, python: str) -> float:
    """Megabytes that the processes of the next launch hold while they wait."""
    held = []
    for keep in (True, False):
        with Launcher(python=python, keep_standby=keep) as launcher:
            by_library(launcher, launcher.prepare(policy_of(place), directory=str(place), environment={}))()
            time.sleep(1)
            held.append(memory_below(os.getpid()))
    return held[0] - held[1]


def siblings(place: Path, launcher: Launcher, rounds: int, *, pause: float, meter: Meter) -> tuple[float, float]:
    """Least time of a library launch without and with 10,000 siblings of the hidden directories."""
    prepared = launcher.prepare(policy_of(place), directory=str(place / "work"), environment={"PATH": os.defpath})
    ways = {"launch": by_library(launcher, prepared)}
    few = measure(ways, rounds, pause=pause, meter=meter)["launch"]
    for index in range(10_000):
        (place / f"sibling-{index}").touch()
    many = measure(ways, rounds, pause=pause, meter=meter)["launch"]
    for index in range(10_000):
        (place / f"sibling-{index}").unlink()
    return few.least, many.least


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


def run(options: argparse.Namespace, place: Path, meter: Meter) -> list[str]:
    """Measures and prints everything; returns the aims that were missed."""
    missed = []
    pause, rounds = options.pause, options.rounds
    print(f"memory of the processes made for the next launch: {standby_memory(place, options.python):.1f} MB")
    with Launcher(python=options.python) as ready, Launcher(python=options.python, keep_standby=False) as cold:
        ways = ways_of(place, options.python, ready, cold)
        print(
            f"launch of /bin/true, {HIDDEN} hidden directories, user {os.geteuid()}: least, middle, times a bare exec"
        )
        times = measure(ways, rounds, pause=pause, meter=meter)
        show(times, "bare exec")
        runtime = sandbox_runtime(place)
        if isinstance(runtime, str):
            print(f"  sandbox-runtime (npm) is absent: {runtime}")
        else:
            way = by_process(runtime, place, {**os.environ, "HOME": str(place / "home")})
            some = {"bare exec": ways["bare exec"], "sandbox-runtime (npm)": way}
            show(measure(some, 3, pause=pause, meter=meter), "bare exec")
        held = bytearray(HARNESS_BYTES)
        held[:: os.sysconf("SC_PAGESIZE")] = b"x" * len(held[:: os.sysconf("SC_PAGESIZE")])
        print(f"from a process that holds {HARNESS_BYTES // 1_000_000} MB:")
        some = {name: way for name, way in ways.items() if "library" in name or "bubble" in name}
        large = measure(some, rounds, pause=pause, meter=meter)
        show(large, "library launch")
        del held
        bursts(ways, max(1, rounds // 2), pause=pause, meter=meter)
        few, many = siblings(place, ready, rounds, pause=pause, meter=meter)
        print(f"library launch: {few:.2f} ms; with 10,000 siblings {many:.2f} ms")
        missed += ["10,000 siblings"] * (many > 1.2 * few)
    for name, value in steady(place, options.python).items():
        print(f"open and close a file, {name}: {value:.2f} µs")
    for name in (ENTRY, SERVED_OTHER):
        print(f"{name} is {times[name].beside(times[LANDLOCK]):.2f} x a {LANDLOCK}")
    ratio = times[SERVED].beside(times[LANDLOCK])
    print(f"{SERVED} is {ratio:.2f} x a {LANDLOCK} (aim: 1.3)")
    missed += [SERVED] * (ratio > 1.3)
    for size, one in (("small", times), ("500 MB", large)):
        if BUBBLEWRAP in one:
            ratio = one["library launch"].beside(one[BUBBLEWRAP])
            print(f"library launch, {size} harness, is {ratio:.2f} x bubblewrap with the same (aim: 1.0)")
            missed += [f"library launch, {size}"] * (ratio > 1.0)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--pause", type=float, default=0.04, help="seconds before and after each launch")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--assert", dest="strict", action="store_true", help="fail when an aim is missed")
    options = parser.parse_args()
    place, meter = make_place(), Meter()
    try:
        missed = run(options, place, meter)
    finally:
        meter.close()
        shutil.rmtree(place)
    print("aims missed:", ", ".join(missed) or "none")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
