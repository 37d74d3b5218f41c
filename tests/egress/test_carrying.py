from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from runner_e2e.egress import carrying
from runner_e2e.egress.carrying import carry

if TYPE_CHECKING:
    import pytest


TIMEOUT = 60.0


def start() -> tuple[socket.socket, socket.socket, threading.Thread]:
    """The agent's end, the end of the service, and what carries between them."""
    agent, client = socket.socketpair()
    upstream, service = socket.socketpair()

    def run() -> None:
        with client, upstream:
            carry(client, upstream)

    thread = threading.Thread(target=run)
    thread.start()
    for end in (agent, service):
        end.settimeout(TIMEOUT)
    return agent, service, thread


def test_bytes_pass_both_ways_at_once() -> None:
    agent, service, thread = start()
    content = bytes(range(256)) * 40_000
    got: list[bytes] = []

    def drain() -> None:
        while block := agent.recv(1 << 16):
            got.append(block)

    reader = threading.Thread(target=drain)
    reader.start()

    def send() -> None:
        agent.sendall(content)
        agent.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    service.sendall(content)
    seen = b""
    while block := service.recv(1 << 16):
        seen += block
    service.close()
    for one in (sender, reader, thread):
        one.join(TIMEOUT)
    assert seen == content
    assert b"".join(got) == content
    agent.close()


def test_an_answer_comes_after_the_agent_has_ended_its_side() -> None:
    agent, service, thread = start()
    agent.sendall(b"question")
    agent.shutdown(socket.SHUT_WR)
    assert service.recv(100) == b"question"
    assert service.recv(100) == b""
    service.sendall(b"answer")
    service.close()
    assert agent.recv(100) == b"answer"
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    agent.close()


def test_a_service_that_stays_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "_REST", 0.1)
    agent, service, thread = start()
    agent.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    service.close()


def test_a_service_that_breaks_off_ends_it() -> None:
    agent, service, thread = start()
    service.close()
    assert agent.recv(100) == b""
    agent.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
