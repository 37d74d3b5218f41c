"""What stands ready for the next launch is given only to a launch that it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

READY = """
import os, select
from runner_e2e.sandbox import expected, readiness, request
from runner_e2e.sandbox.origin import Origin

def wanted(*more):
    options = (b"--hide", os.fsencode(sys.argv[1]), *more)
    environment = ((b"PATH", b"/usr/bin:/bin"), (b"HOME", os.fsencode(os.environ["HOME"])))
    return expected.Wanted(directory=os.getcwdb(), options=options, environment=environment)

def make(*more, repeated=True):
    one = expected.Expected(wanted(*more), tuple, Origin())
    plan, packed = one.plan()
    last = readiness.Last(kind=packed.kind, wanted=expected.remember(wanted(*more)), repeated=repeated)
    ready = readiness.Readiness(last, mask=bytes(128))
    ready.prepare(tuple, Origin())
    return ready, packed

def has_view(ready):
    return ready.standby is not None and ready.standby.prepared is not None
"""


CASES = {
    "the same again is prepared to the last": (
        """
ready, packed = make()
print(has_view(ready), ready.prepared_for(wanted()) is not None, tuple(ready.take_maps(packed)) == packed.owners)
one = ready.take_processes(packed)
print(one is not None and one.lives(), ready.take_processes(packed))
one.close()
""",
        ["True", "True", "True", "True", "None"],
    ),
    "what came once has a plan, and processes of its kind": (
        """
ready, packed = make(repeated=False)
print(has_view(ready), ready.standby.lives(), ready.prepared_for(wanted()) is not None)
ready.standby.close()
""",
        ["False", "True", "True"],
    ),
    "another request lets the view go": (
        """
ready, packed = make()
print(ready.prepared_for(wanted(b"--hide", b"/srv")), ready.standby, ready.take_processes(packed))
""",
        ["None", "None", "None"],
    ),
    "another plan of the same kind gets no view": (
        """
ready, packed = make()
other = expected.Expected(wanted(b"--read-only", b"/srv"), tuple, Origin()).plan()[1]
print(other.kind == packed.kind, ready.take_processes(other))
""",
        ["True", "None"],
    ),
    "a view that cannot be made is not used": (
        """
ready, packed = make(repeated=False)
broken = packed.replace(plan=b"broken")
ready.standby.prepare(broken, {})
while ready.standby.lives():
    select.poll().poll(10)
print(ready.take_processes(broken))
""",
        ["None"],
    ),
    "a launch that would make a directory is not prepared": (
        """
policy = os.path.join(os.getcwd(), "policy.json")
made = os.path.join(os.getcwd(), "made")
open(policy, "w").write('{"schema": "runner-e2e.sandbox-policy/v1", "create": ["%s"]}' % made)
try:
    one = expected.Expected(wanted(b"--policy", os.fsencode(policy)), tuple, Origin())
except LookupError:
    print(os.path.exists(made))
""",
        ["False"],
    ),
    "nothing is prepared where nothing was asked for": (
        """
for last in (None, readiness.Last(kind=request.Kind(namespaces=0, user=os.geteuid(), group=os.getegid()))):
    ready = readiness.Readiness(last, mask=bytes(128))
    try:
        ready.prepare(tuple, Origin())
    except LookupError:
        print(ready.prepared_for(wanted()), ready.standby is None)
""",
        ["None", "True", "None", "False"],
    ),
    "mounts that change let a view go, and processes of the kind come": (
        """
ready, packed = make()
print(has_view(ready), ready.standby.fits(packed))
ready.renew()
print(has_view(ready), ready.standby.fits(packed), ready.standby.changes, ready.prepared_for(wanted()) is not None)
ready.standby.close()
""",
        ["True", "True", "False", "True", "-1", "True"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_stands_ready(actor: Actor, case: tuple[str, list[str]]) -> None:
    script, said = case
    done = actor.python_script(READY + script, actor.hidden)
    assert done.stdout.split() == said, done
