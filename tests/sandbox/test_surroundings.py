"""What two processes must share for one to launch for the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.sandbox.surroundings import SurroundingsError, read_surroundings

SOURCE = Path(__file__).resolve().parents[2] / "src"
WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
NO_NEW_PRIVILEGES = (
    "import sys; sys.path.insert(0, sys.argv[1]); from runner_e2e import kernel; kernel.forbid_new_privileges()\n"
)
FILTERED = "from runner_e2e.sandbox import seccomp; kernel.install_filter(seccomp.program())\n"
IDLE = (  # ioprio_set(2), for the class that gets what others leave
    "import ctypes, os; number = {'x86_64': 251, 'aarch64': 30}[os.uname().machine]; "
    "ctypes.CDLL(None).syscall(ctypes.c_long(number), 1, 0, 3 << 13)\n"
)
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"


def surroundings(head: str = "", *prefix: str) -> dict[str, bytes]:
    words = [*prefix, sys.executable, "-I", "-S", "-c", head + WAIT, str(SOURCE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        found = read_surroundings(process.pid)
        process.communicate()
    return found


def different(found: dict[str, bytes]) -> set[str]:
    usual = surroundings()
    return {name for name in usual if usual[name] != found[name]}


def test_two_alike_are_equal() -> None:
    assert different(surroundings()) == set()


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("import os; os.umask(0o027)\n", {"Umask"}),
        ("import os; os.nice(3)\n", {"nice"}),
        (IDLE, {"io"}),
        ("open('/proc/self/coredump_filter', 'w').write('0x1')\n", {"coredump_filter"}),
        (LIMITED, {"limits"}),
        (NO_NEW_PRIVILEGES, {"NoNewPrivs"}),
        (NO_NEW_PRIVILEGES + FILTERED, {"NoNewPrivs", "Seccomp", "Seccomp_filters"}),
        ("import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n", {"Cpus_allowed"}),
        ("import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n", {"SigIgn"}),
        ("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])\n", {"SigBlk"}),
    ],
)
def test_what_is_handed_on_makes_a_difference(head: str, names: set[str]) -> None:
    found = different(surroundings(head))
    assert found == names or (names == {"Cpus_allowed"} and os.cpu_count() == 1)


def test_a_sandbox_makes_a_difference() -> None:
    bare = [sys.executable, "-I", "-S", str(SOURCE.parent / "scripts" / "agent_sandbox.py"), "--quiet"]
    words = [*bare, "--without", "mounts", "--keep-user", "--", sys.executable, "-I", "-S", "-c", WAIT]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        agents = [number for number in numbers if _below(number, process.pid)]
        found = [different(read_surroundings(agent)) for agent in agents]
        process.communicate()
    assert found
    assert {"NoNewPrivs"} <= found[-1]


def _below(process: int, ancestor: int) -> bool:
    while process > 1:
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
        if process == ancestor:
            return True
    return False


def test_a_process_that_is_gone_is_not_judged() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    with pytest.raises(SurroundingsError):
        read_surroundings(process.pid)
