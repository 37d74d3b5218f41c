"""Everything an agent could try, first without the sandbox, then in it, then with Landlock alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.sandbox_actors import bring_proxy

from runner_e2e import kernel
from runner_e2e.sandbox.attempts.program import ATTEMPTS, NETWORK_ATTEMPTS
from runner_e2e.sandbox.probe import OPEN_WITHOUT, TOLD_WITHOUT_NAMESPACE

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

PROBE = """
import json, sys
sys.path += json.loads(sys.argv.pop(1))
from runner_e2e.sandbox.layouts import read_layout
from runner_e2e.sandbox.policy import Network, Policy
from runner_e2e.sandbox.probe import run_probe
options = json.loads(sys.argv[1])
policy = Policy(wall=options["wall"], identity=options["identity"])
hosts = tuple(options["hosts"])
network = Network(reach=options["network"], hosts=hosts)
policy = policy.replace(layers={**policy.layers, **options["layers"]}, network=network)
print(json.dumps(run_probe(read_layout(options["layout"]), policy=policy).to_document()))
"""

# What needs a right that an ordinary user does not have without the sandbox either, or a sudo without a password.
MAY_LACK = {attempt.name for attempt in (*ATTEMPTS, *NETWORK_ATTEMPTS) if attempt.may_lack}
NETWORK = {attempt.name for attempt in NETWORK_ATTEMPTS}


def probe(
    actor: Actor,
    *,
    layout: str = "paperclip",
    wall: str = "landlock",
    identity: str = "agent",
    network: str = "open",
    hosts: tuple[str, ...] = (),
    **layers: str,
) -> dict[str, Any]:
    options = {"layout": layout, "wall": wall, "identity": identity, "layers": layers}
    options |= {"network": network, "hosts": hosts}
    done = actor.python_script(PROBE, json.dumps([]), json.dumps(options))
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def verdicts(document: dict[str, Any], verdict: str) -> set[str]:
    return {check["name"] for check in document["checks"] if check["verdict"] == verdict}


@pytest.mark.parametrize("wall", ["landlock", "locked-mounts"])
@pytest.mark.parametrize("layout", ["paperclip", "generic"])
def test_with_all_layers_everything_is_denied(actor: Actor, wall: str, layout: str) -> None:
    document = probe(actor, wall=wall, layout=layout)
    assert document["failures"] == []
    assert document["limits"] == []
    assert verdicts(document, "not-applicable") <= MAY_LACK
    if actor.root:
        assert verdicts(document, "not-applicable") == set()
    assert len(verdicts(document, "ok")) >= len(ATTEMPTS) - len(MAY_LACK)
    assert document["report"]["wall"] == wall
    assert document["report"]["mode"] == ("privileged" if actor.root else "user-namespace")


def test_root_kept_as_root_is_walled_too(root: Actor) -> None:
    document = probe(root, identity="keep")
    # Root without capabilities still writes what belongs to root: that is why another user is the rule.
    assert document["failures"] == []
    assert set(document["limits"]) <= OPEN_WITHOUT["identity"]
    assert document["report"]["user"] == 0


def test_landlock_alone_leaves_exactly_the_documented_limits_open(actor: Actor) -> None:
    document = probe(actor, mounts="off")
    assert document["failures"] == []
    open_layers = ("mounts", "startup-files", "pids", "ipc")
    expected = set().union(*(OPEN_WITHOUT[layer] for layer in open_layers))
    # The kernel's own queues lie beneath no rule, so Landlock denies them.
    expected -= {"message-queue"}
    if actor.root:
        expected |= OPEN_WITHOUT["identity"]
    abi = kernel.landlock_abi()
    if abi < 6:
        expected |= OPEN_WITHOUT["scopes"]
    if abi >= 9:
        expected -= {"hidden-socket"}
    assert set(document["limits"]) == expected


def test_a_layer_that_is_missing_opens_only_what_it_closes(actor: Actor) -> None:
    for layer in ("pids", "ipc"):
        document = probe(actor, **{layer: "off"})  # type: ignore[arg-type]
        assert document["failures"] == []
        assert set(document["limits"]) <= OPEN_WITHOUT[layer]
        assert document["limits"]


@pytest.mark.parametrize("name", ["keyring"])
def test_keyrings_need_their_own_layer_where_the_user_is_kept(user: Actor, name: str) -> None:
    document = probe(user, keyrings="off")
    assert document["failures"] == []
    assert set(document["limits"]) <= {name}


@pytest.mark.parametrize(
    ("wall", "network", "hosts"),
    [
        ("landlock", "none", ()),
        ("locked-mounts", "loopback", ()),
        ("landlock", "hosts", ("127.0.0.1:9", "*.example.com:*")),
    ],
    ids=["none", "loopback", "hosts"],
)
def test_with_a_network_of_its_own_nothing_leads_out(
    actor: Actor, wall: str, network: str, hosts: tuple[str, ...]
) -> None:
    bring_proxy(actor)
    document = probe(actor, layout="generic", wall=wall, network=network, hosts=hosts)
    assert document["failures"] == []
    assert document["limits"] == []
    assert {check["name"] for check in document["checks"]} >= NETWORK
    lacking = verdicts(document, "not-applicable") & NETWORK
    # Outside, every other one succeeded, or the probe would have failed; these need root, IPv6 or another interface.
    assert lacking <= {"packet-socket", "raw-socket", "vsock", "network-namespace", "interfaces", "tcp-service-ipv6"}
    if actor.root:
        assert not lacking & {"raw-socket", "network-namespace"}


def test_with_landlock_alone_only_the_kernel_tells_of_the_network(actor: Actor) -> None:
    document = probe(actor, layout="generic", network="none", mounts="off")
    assert document["failures"] == []
    assert verdicts(document, "limit") & NETWORK <= TOLD_WITHOUT_NAMESPACE
    assert verdicts(document, "ok") >= NETWORK - TOLD_WITHOUT_NAMESPACE - MAY_LACK - {"tcp-service-ipv6"}


def test_an_open_network_is_not_probed(actor: Actor) -> None:
    assert not {check["name"] for check in probe(actor, layout="generic")["checks"]} & NETWORK
