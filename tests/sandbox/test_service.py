"""The process that starts launches: what stands ready for one of them hinders no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

# Launches as `launch` says, through a service that does first what `before` says.
SERVICE = """
import os, time
from runner_e2e.errors import LaunchError
from runner_e2e.sandbox import harness, service
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Network, Policy
command = service.command
def changed(*words, **more):
    *start, code, source = command(*words, **more)
    return [*start, code.replace("; serve(", "\\n" + before + "\\nserve("), source]
service.command = changed
nothing = os.open(os.devnull, os.O_RDWR)
def launch(launcher, policy):
    prepared = launcher.prepare(policy, directory=os.getcwd())
    try:
        with launcher.start(prepared, ["/bin/true"], stdin=nothing, stdout=nothing, stderr=nothing) as run:
            return run.wait(60).status
    except LaunchError as error:
        return error.problem.why
"""

# Room for the processes of one launch: those of another may have to end first.
NO_ROOM_FOR_TWO = """
before = '''
from runner_e2e import kernel
make = kernel.clone_process
def parent(name):
    try:
        return int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
def make_one(flags):
    import os
    if any(parent(name) == os.getpid() for name in os.listdir("/proc") if name.isdigit()):
        raise BlockingIOError(11, "no more processes")
    return make(flags)
kernel.clone_process = make_one
'''
apart = Policy(hide=(sys.argv[1],), network=Network(reach="none"))
for wait in (0, 0.3):
    with Launcher() as launcher:
        for policy in (Policy(hide=(sys.argv[1],)), Policy(hide=(sys.argv[1],)), apart, apart, Policy()):
            print(launch(launcher, policy))
            time.sleep(wait)
"""

# No moment is quiet enough, and all launches come one upon another.
ONE_UPON_ANOTHER = """
before = "from runner_e2e.sandbox import pace; pace.QUIET = 10_000_000; pace._THICK = 1e9"
def stands_ready(launcher, seconds):
    process = launcher._services[False].process.pid
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if any(parent(name) == process for name in os.listdir("/proc") if name.isdigit()):
            return True
        time.sleep(0.02)
    return False
def parent(name):
    try:
        return int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
with Launcher() as launcher:
    launch(launcher, Policy(hide=(sys.argv[1],)))
    end = time.monotonic() + 60
    while stands_ready(launcher, 0.01) and time.monotonic() < end:  # the launch itself may not be collected yet
        pass
    print(stands_ready(launcher, 0.5))
    launch(launcher, Policy(hide=(sys.argv[1],)))
    print(stands_ready(launcher, 60))
"""

NO_ROOM_FOR_FILES = """
before = '''
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (7, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
'''
with Launcher() as launcher:
    print(*(launch(launcher, Policy()) for _ in range(3)), sep=", ")
"""

NOT_ASKED = """
from runner_e2e.sandbox import mounts
from runner_e2e.sandbox.planning import make_plan, modes_of, read_host, survey
from runner_e2e.sandbox.policy import Policy
from runner_e2e.sandbox.request import pack
from runner_e2e.sandbox.service import _Ready
from runner_e2e.sandbox.standby import Standby
host = read_host()
def plan(*hide):
    policy = Policy(hide=hide)
    found = survey(policy, directory="/", environment={}, user=host.user)
    return pack(make_plan(found, policy, (), host=host, mode=modes_of(host)[0], environment={}))
one, other = plan(sys.argv[1]), plan(sys.argv[1] + "/other")
ready = _Ready(Standby(one.kind, mask=bytes(128)))
ready.prepare(one, mounts.ownership_maps(one.owners, agent=one.agent))
asked = []
class Answers:
    def hold(self):
        asked.append(1)
        return True
ready.answers = Answers()
print(one.kind == other.kind, ready.fits(other), len(asked), ready.fits(one), len(asked))
"""


def test_what_stands_ready_makes_room_for_a_launch_of_another_kind(actor: Actor) -> None:
    done = actor.python_script(SERVICE + NO_ROOM_FOR_TWO, actor.hidden)
    assert done.stdout.split() == ["0"] * 10, done


def test_without_room_for_files_a_launch_fails_and_the_service_stays(user: Actor) -> None:
    done = user.python_script(SERVICE + NO_ROOM_FOR_FILES)
    assert done.stdout == ", ".join(["it ended without a word"] * 3) + "\n", done


@pytest.mark.serial  # a mount of another test would let the view go
def test_what_another_launch_needs_is_not_asked_for(actor: Actor) -> None:
    """It may lie on a file system that does not answer: only its own launch waits for it."""
    done = actor.python_script(NOT_ASKED, actor.hidden)
    assert done.stdout.split() == ["True", "False", "0", "True", "1"], done


def test_launches_one_upon_another_are_made_ready_without_a_quiet_moment(actor: Actor) -> None:
    done = actor.python_script(SERVICE + ONE_UPON_ANOTHER, actor.hidden)
    assert done.stdout.split() == ["False", "True"], done
