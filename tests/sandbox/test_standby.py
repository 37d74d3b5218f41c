"""Processes that wait for a launch: where they fit, and what becomes of it where they have ended."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

KILLED = """
import os
from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.planning import make_plan, modes_of, read_host, survey
from runner_e2e.sandbox.policy import Policy
from runner_e2e.sandbox.request import Start, pack
from runner_e2e.sandbox.standby import Standby
host, policy = read_host(), Policy()
found = survey(policy, directory="/", environment={}, user=host.user)
plan = make_plan(found, policy, ["/bin/true"], host=host, mode=modes_of(host)[0], environment={})
packed = pack(plan)
one = Standby(packed.kind, mask=bytes(128))
assert one.lives()
os.kill(one.process, 9)
os.waitpid(one.process, 0)
while one.lives():
    pass
read, write = os.pipe()
streams = Streams(stdin=0, stdout=1, stderr=2, events=write, control=0)
one.launch(packed, Start(argv=plan.argv, streams=streams), {})
os.close(write)
print(os.read(read, 4096).decode())
"""

# Prepares a launch as a user whose agent can have one, and gives it the name `one`.
PREPARING = """
import os, resource, select, signal, sys, time
from runner_e2e.sandbox import mounts
from runner_e2e.sandbox.planning import make_plan, modes_of, read_host, survey
from runner_e2e.sandbox.policy import Policy
from runner_e2e.sandbox.request import pack
from runner_e2e.sandbox.standby import Standby
host, policy = read_host(), Policy(hide=(sys.argv[1],))
found = survey(policy, directory=os.getcwd(), environment={}, user=host.user)
packed = pack(make_plan(found, policy, (), host=host, mode=modes_of(host)[0], environment={}))
one = Standby(packed.kind, mask=bytes(128))
def stop():
    os.kill(one.process, signal.SIGSTOP)
    os.waitpid(one.process, os.WUNTRACED)
    below = [name for name in os.listdir("/proc") if name.isdigit() and parent(name) == one.process]
    for name in below:
        os.kill(int(name), signal.SIGSTOP)
    return below
def parent(name):
    try:
        return int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
def prepare():
    one.prepare(packed, mounts.ownership_maps(packed.owners, agent=packed.agent))
"""

PREPARED = {
    "they fit once all is made": (
        """
prepare()
print(one.fits(packed), one.fits(packed), one.fits(packed.replace(plan=b"")))
""",
        ["True", "True", "False"],
    ),
    "those that were killed before they heard all have ended": (
        """
while not stop():
    os.kill(one.process, signal.SIGCONT)
prepare()
os.kill(one.process, signal.SIGKILL)
os.waitpid(one.process, 0)
print(one.fits(packed), one.lives())
""",
        ["False", "False"],
    ),
    "those that do not get ready do not fit": (
        """
stop()
prepare()
print(one.fits(packed))
os.kill(one.process, signal.SIGKILL)
""",
        ["False"],
    ),
    "those that cannot make it do not fit": (
        """
one.prepare(packed.replace(plan=b"broken"), {})
print(one.fits(packed.replace(plan=b"broken")))
""",
        ["False"],
    ),
    "without room to prepare they are as they were": (
        """
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    one.prepare(packed, {})
except OSError as error:
    print(error.errno, one.prepared)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print(one.fits(packed), len(os.listdir("/proc/self/fd")) - before)
""",
        ["24", "None", "True", "0"],
    ),
    "in other control groups than the process that made them they do not fit": (
        """
from runner_e2e.sandbox import standby
standby._CONTROL_GROUPS = os.path.join(os.environ["HOME"], "groups")
for told in ("0::/a", "0::/b"):
    open(standby._CONTROL_GROUPS, "w").write("0::/a")
    for prepared in (False, True):
        one.close()
        one = Standby(packed.kind, mask=bytes(128))
        if prepared:
            prepare()
        open(standby._CONTROL_GROUPS, "w").write(told)
        print(one.fits(packed))
        open(standby._CONTROL_GROUPS, "w").write("0::/a")
""",
        ["True", "True", "False", "False"],
    ),
    "a directory that closes above an exposure ends them": (
        """
from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.request import Start
above, shown = sys.argv[1] + "/other", sys.argv[1] + "/other/shown/own"
os.makedirs(shown)
policy = Policy(hide=(os.path.dirname(shown),), expose=(shown,))
found = survey(policy, directory="/", environment={}, user=host.user)
packed = pack(make_plan(found, policy, (), host=host, mode=modes_of(host)[0], environment={}))
prepare()
print(one.fits(packed))
os.chmod(above, 0)
read, write = os.pipe()
streams = Streams(stdin=0, stdout=1, stderr=2, events=write, control=0)
one.launch(packed, Start(argv=("/bin/true",), streams=streams), {})
os.close(write)
said = open(read).read()
os.chmod(above, 0o700)
print("failed" in said and f"exposed path {shown} cannot be reached from inside" in said)
""",
        ["True", "True"],
    ),
    "closed, nothing is left open": (
        """
before = len(os.listdir("/proc/self/fd"))
prepare()
one.fits(packed)
one.close()
print(len(os.listdir("/proc/self/fd")) - before - len(packed.owners))
""",
        ["-1"],
    ),
}

NO_SECOND = """
import os, sys
from runner_e2e import kernel
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.launcher import launch
from runner_e2e.sandbox.policy import Policy
make, made = kernel.clone_process, []
def count(flags):
    made.append(flags)
    return make(flags)
def refuse():
    raise BlockingIOError(11, "no more processes")
kernel.clone_process, os.fork = count, refuse
try:
    launch(Policy(hide=(sys.argv[1],)), ["/bin/true"])
except LaunchError as error:
    print(len(made), error.problem.what, error.problem.why, sep=" / ")
"""

BEGUN_ONCE = """
import os, sys
from runner_e2e.sandbox.launcher import launch
from runner_e2e.sandbox.origin import Origin
from runner_e2e.sandbox.policy import Policy
class Deaf(Origin):
    made = 0
    def first_processes(self, packed):
        self.made += 1
        return super().first_processes(packed)
    def tell_begun(self, packed):
        raise OSError(12, "no memory")
origin = Deaf()
try:
    launch(Policy(hide=(sys.argv[1],)), ["/bin/true"], origin=origin)
except OSError as error:
    print(origin.made, error.errno)
"""

NO_ROOM = """
import os, sys
from runner_e2e import kernel
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.launcher import launch
from runner_e2e.sandbox.policy import Policy
tried, name = set(), sys.argv[2]
def refuse(*arguments, **_):
    tried.add(arguments)
    raise OSError(int(sys.argv[3]), os.strerror(int(sys.argv[3])))
setattr(kernel, name, refuse)
try:
    launch(Policy(hide=(sys.argv[1],)), ["/bin/true"])
except LaunchError as error:
    print(len(tried), error.problem.what, error.problem.why, error.problem.fix, sep=" / ")
"""

FIXES = {
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENOSPC: "end other sandboxes, raise the limits on namespaces and mounts "
    "(sysctl user.max_user_namespaces, fs.mount-max), or do without the layer mounts",
}


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC])
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("clone_process", "1 / no process could be started / {} / {}\n"),
        ("unshare", "0 / the sandbox could not be set up / {} / {}\n"),
        ("move_mount", "0 / the sandbox could not be set up / {} / {}\n"),
    ],
)
def test_for_want_of_room_no_weaker_way_is_tried(actor: Actor, call: str, said: str, error: int) -> None:
    """Else an agent that uses up processes, memory or files would get the next one a weaker sandbox."""
    done = actor.python_script(NO_ROOM, actor.hidden, call, error)
    kind = type(OSError(error, "")).__name__
    why = os.strerror(error) if call == "clone_process" else f"{kind}: [Errno {error}] {os.strerror(error)}"
    fix = FIXES.get(error, "end other processes")
    assert done.stdout == said.format(why, fix), done


FAR = """
import os, sys
from runner_e2e.sandbox import standby
from runner_e2e.sandbox.facts import Mount
from runner_e2e.sandbox.planning import make_plan, modes_of, read_host, survey
from runner_e2e.sandbox.policy import Policy
host, policy = read_host(), Policy(hide=(sys.argv[1],))
found = survey(policy, directory="/", environment={}, user=host.user)
plan = make_plan(found, policy, (), host=host, mode=modes_of(host)[0], environment={})
place = os.path.dirname(sys.argv[1])
for kind, point in (("ext4", place), ("fuse.sshfs", place), ("nfs4", place), ("nfs4", place + "/none"), ("fuse", "/")):
    standby.read_mounts = lambda: (Mount(device="0:1", root="/", point=point, kind=kind, options=""),)
    print(standby.can_be_prepared(plan))
"""


def test_a_launch_that_others_must_answer_for_is_not_prepared(actor: Actor) -> None:
    """Else the process that makes launches would wait for them, and every launch with it."""
    done = actor.python_script(FAR, actor.hidden)
    assert done.stdout.split() == ["True", "False", "False", "True", "True"], done


ROOM_LATER = """
import os
from runner_e2e import kernel
from runner_e2e.sandbox.request import Kind
from runner_e2e.sandbox.standby import Standby
make, tries = kernel.clone_process, []
def refuse_twice(flags):
    tries.append(flags)
    if len(tries) < 3:
        raise BlockingIOError(11, "no more processes")
    return make(flags)
kernel.clone_process = refuse_twice
kind = Kind(namespaces=0, user=os.geteuid(), group=os.getegid())
try:
    Standby(kind, mask=bytes(128), ahead=True)
except OSError:
    print(len(tries))
Standby(kind, mask=bytes(128)).close()
print(len(tries))
"""


def test_a_launch_waits_a_moment_for_room_and_what_is_made_ahead_does_not(user: Actor) -> None:
    """What stood ready for another one may be about to end."""
    done = user.python_script(ROOM_LATER)
    assert done.stdout.split() == ["1", "3"], done


def test_what_has_begun_is_not_begun_again_in_a_weaker_way(actor: Actor) -> None:
    done = actor.python_script(BEGUN_ONCE, actor.hidden)
    assert done.stdout == "1 12\n", done


def test_processes_that_have_ended_fail_the_launch(actor: Actor) -> None:
    done = actor.python_script(KILLED)
    assert done.stdout.startswith("failed\t125\tthe sandbox could not be set up\tits first processes have ended"), done


@pytest.mark.parametrize("case", PREPARED.values(), ids=list(PREPARED))
def test_processes_that_prepare_a_launch(actor: Actor, case: tuple[str, list[str]]) -> None:
    script, said = case
    done = actor.python_script(PREPARING + script, actor.hidden)
    assert done.stdout.split() == said, done


def test_without_a_process_for_the_agent_the_launch_fails_once_and_says_why(actor: Actor) -> None:
    done = actor.python_script(NO_SECOND, actor.hidden)
    assert done.stdout == "1 / the sandbox could not be set up / [Errno 11] no more processes\n", done
