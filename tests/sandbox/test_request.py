"""What a request carries: the plan, and the descriptors in their roles."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from runner_e2e.sandbox import request
from runner_e2e.sandbox.events import Streams
from runner_e2e.sandbox.plan import Plan

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
    (tmp_path / "map").touch()
    map_ = os.open(tmp_path / "map", os.O_RDONLY)
    ours, theirs = request.pair()
    try:
        request.send(
            ours,
            request.Request(
                packed=request.pack(PLAN),
                start=request.Start(argv=PLAN.argv, streams=Streams(**sent)),
                maps={(3, 4): map_},
            ),
        )
        received = request.receive(theirs)
    finally:
        ours.close()
        theirs.close()
    assert received
    assert received.start
    streams = received.start.streams
    assert received.plan() == PLAN
    assert received.packed.kind == request.Kind(namespaces=0, user=1, group=2)
    assert os.path.sameopenfile(received.maps[3, 4], map_)
    for role in roles:
        descriptor = getattr(streams, role)
        assert os.path.sameopenfile(descriptor, sent[role])
        assert not os.get_inheritable(descriptor)
    assert (streams.program >= 0) == with_program
    received.close()
    for descriptor in (*sent.values(), map_):
        os.close(descriptor)


@pytest.mark.parametrize("room", [0, 1, 4])
def test_descriptors_without_room_are_told_and_the_next_request_comes(room: int) -> None:
    streams = Streams(stdin=0, stdout=1, stderr=2, events=1, control=0)
    ours, theirs = request.pair()
    start = request.Start(argv=PLAN.argv, streams=streams)
    for _ in range(2):
        request.send(ours, request.Request(packed=request.pack(PLAN), start=start))
        request.send_start(ours, start)
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.dup(0)
    os.close(highest)
    before = sorted(Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + room, usual[1]))
    try:
        for receive in (request.receive, request.receive_start):
            with pytest.raises(OSError, match=os.strerror(errno.EMFILE)) as caught:
                receive(theirs)
            assert caught.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    received, started = request.receive(theirs), request.receive_start(theirs)
    assert received
    assert received.start
    assert started
    assert started.argv == received.start.argv == PLAN.argv
    received.close()
    for descriptor in started.descriptors().values():
        os.close(descriptor)
    ours.close()
    theirs.close()


def test_many_descriptors_arrive(tmp_path: Path) -> None:
    """A workspace may hold mounts of many owners."""
    (tmp_path / "file").touch()
    file = os.open(tmp_path / "file", os.O_RDONLY)
    roles = ("stdin", "stdout", "stderr", "events", "control")
    ours, theirs = request.pair()
    maps = {(owner, owner): file for owner in range(200)}
    streams = Streams(**dict.fromkeys(roles, file))
    request.send(
        ours,
        request.Request(packed=request.pack(PLAN), start=request.Start(argv=PLAN.argv, streams=streams), maps=maps),
    )
    received = request.receive(theirs)
    assert received
    assert list(received.maps) == list(maps)
    received.close()
    os.close(file)
    ours.close()
    assert request.receive(theirs) is None
    theirs.close()
