"""An agent that stays root may be the owner of the kernel's settings and of disks; both lead out of every view."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

WALLS = ["landlock", "locked-mounts"]

# Opens what would lead out, and changes nothing.
KNOCK = """
import json, os, stat
opened = []
def knock(path, how):
    try:
        os.close(os.open(path, how | os.O_NONBLOCK))
        opened.append(path)
    except OSError:
        pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/power/state",
             "/sys/kernel/uevent_helper", "/proc/sys/fs/binfmt_misc/register"):
    knock(path, os.O_WRONLY)
for directory, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(directory, name)
        if stat.S_ISBLK(os.lstat(path).st_mode):
            knock(path, os.O_RDONLY)
try:
    os.mkdir("/sys/fs/cgroup/of-an-agent")
    os.rmdir("/sys/fs/cgroup/of-an-agent")
    opened.append("cgroup")
except OSError:
    pass
with open("/dev/null", "wb") as file:
    file.write(b"x")
with open("/dev/zero", "rb") as zeros, open("/dev/urandom", "rb") as others:
    works = len(zeros.read(2)) + len(others.read(2))
first, second = os.openpty()
with open(f"/dev/shm/x-{os.getpid()}", "wb") as file:
    os.unlink(file.name)
print(json.dumps([opened, works]))
"""


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("without", [[], ["--without", "pids", "--without", "ipc"]])
def test_root_without_a_user_of_its_own_gives_the_kernel_no_orders(actor: Actor, wall: str, without: list[str]) -> None:
    done = actor.launch("--keep-user", "--wall", wall, *without, command=[actor.python, "-c", KNOCK])
    assert done.returncode == 0, done
    assert json.loads(done.stdout) == [[], 4]


def test_where_nothing_holds_root_off_the_report_says_so(actor: Actor) -> None:
    report = actor.place / "report.json"
    done = actor.launch("--without", "mounts", "--report", report, command=["/bin/true"])
    assert done.returncode == 0, done
    assert any("kernel's settings" in limit for limit in json.loads(report.read_text())["limits"]) is actor.root
