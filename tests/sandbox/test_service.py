"""What a request to the service carries: the plan, and the descriptors in their roles."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox import service
from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

PLAN = Plan(
    mode="sudo",
    steps=(),
    argv=("agent", "argument"),
    environment=(("A", "b"),),
    directory="/",
    namespaces=0,
    layers=(("pids", "off"),),
    launcher_user=1,
    launcher_group=2,
)


@pytest.mark.parametrize("with_program", [False, True])
def test_every_descriptor_arrives_in_its_role(tmp_path: Path, with_program: bool) -> None:
    roles = ["stdin", "stdout", "stderr", "events", "control", *(["program"] if with_program else [])]
    sent = {}
    for role in roles:
        (tmp_path / role).touch()
        sent[role] = os.open(tmp_path / role, os.O_RDONLY)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        service.request(ours, PLAN, Streams(**sent))
        received = service._receive(theirs)
    assert received
    plan, streams = received
    assert plan == PLAN
    for role in roles:
        descriptor = getattr(streams, role)
        assert os.path.sameopenfile(descriptor, sent[role])
        assert not os.get_inheritable(descriptor)
    assert (streams.program >= 0) == with_program
    for descriptor in (*sent.values(), *(getattr(streams, role) for role in roles)):
        os.close(descriptor)
