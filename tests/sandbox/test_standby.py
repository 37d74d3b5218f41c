"""Processes of a launch that end before it starts: the launch fails, and is not tried in a weaker way."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def test_processes_that_have_ended_fail_the_launch(actor: Actor) -> None:
    done = actor.python_script(KILLED)
    assert done.stdout.startswith("failed\t125\tthe sandbox could not be set up\tits first processes have ended"), done


def test_without_a_process_for_the_agent_the_launch_fails_once_and_says_why(actor: Actor) -> None:
    done = actor.python_script(NO_SECOND, actor.hidden)
    assert done.stdout == "1 / the sandbox could not be set up / [Errno 11] no more processes\n", done
