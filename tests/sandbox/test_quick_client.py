"""What the quick entry makes of the answers of a server: one command, never two, and never none without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_server import Server, take

from runner_e2e.sandbox import quick_client
from runner_e2e.sandbox.request import receive_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[2] / "src"
# Its server is the test, which a busy machine may keep waiting: the client has as much patience as is asked for.
CLIENT = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
from runner_e2e.sandbox import quick_client
quick_client._PATIENCE = float(sys.argv.pop(1)) or quick_client._PATIENCE
print("answer", quick_client.ask(os.fsencode(sys.argv[1]), sys.argv[2:]), flush=True)
print("end", flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    yield one
    one.close()


def client(path: str, *words: str, patience: float = 60.0) -> subprocess.Popen[str]:
    """A client of the server at *path*; with a *patience* of 0 it has its own."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", textwrap.dedent(CLIENT), str(SOURCE), str(patience), path, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until_handled(process: subprocess.Popen[str], number: int) -> None:
    """Waits until *process* has an action of its own for that signal."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = Path(f"/proc/{process.pid}/status").read_text()
        if int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1:
            return
        time.sleep(0.01)
    raise AssertionError("no handler")


def test_the_status_is_passed_on(server: Server) -> None:
    process = client(server.path, "--hide", "/x", "--", "true")
    connection = server.accept(quick_client.ACCEPTED)
    assert b"--hide" in take(connection)
    connection.sendall(quick_client.ENDED + b"\x07")
    out, error = process.communicate(timeout=60)
    assert (out, error) == ("answer 7\nend\n", "")


@pytest.mark.parametrize("answer", [quick_client.DECLINED, b"", b"?"])
def test_a_server_that_does_not_accept_began_nothing(server: Server, answer: bytes) -> None:
    process = client(server.path, "--", "true")
    server.accept(answer).close()
    assert process.communicate(timeout=60) == ("answer None\nend\n", "")


def test_a_request_that_is_declined_began_nothing(server: Server) -> None:
    process = client(server.path, "--", "true")
    connection = server.accept(quick_client.ACCEPTED)
    take(connection)
    connection.sendall(quick_client.DECLINED)
    assert process.communicate(timeout=60)[0] == "answer None\nend\n"


def test_a_server_that_ends_after_the_request_may_have_begun_so_nothing_begins_again(server: Server) -> None:
    process = client(server.path, "--", "true")
    connection = server.accept(quick_client.ACCEPTED)
    take(connection)
    connection.close()
    out, error = process.communicate(timeout=60)
    assert out == "answer 125\nend\n"
    assert error == "agent_sandbox: the fork server ended during the launch, and the command with it\n"


def test_a_socket_of_another_process_is_told_nothing(server: Server) -> None:
    path = Path(server.path)
    another = path.rename(path.with_name(str(os.getppid())))
    process = client(str(another), "--", "true")
    assert process.communicate(timeout=60) == ("answer None\nend\n", "")
    connection, _ = server.listening.accept()
    with connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize("state", ["missing", "dead", "stopped"])
def test_without_a_living_server_nothing_is_begun(server: Server, state: str) -> None:
    path = server.path
    if state == "missing":
        path += "-none"
    if state == "dead":
        server.listening.close()
    process = client(path, "--", "true", patience=0)
    assert process.communicate(timeout=60) == ("answer None\nend\n", "")
    if state == "stopped":  # what it finds when it goes on is a client that has gone
        assert server.accept().recv(1) == b""


def test_signals_are_passed_on_after_the_request(server: Server) -> None:
    process = client(server.path, "--", "true")
    connection = server.accept()
    wait_until_handled(process, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    connection.sendall(quick_client.ACCEPTED)
    take(connection)
    assert receive_exactly(connection, 2) == bytes([signal.SIGTERM, 0])
    process.send_signal(signal.SIGUSR1)
    assert receive_exactly(connection, 2) == bytes([signal.SIGUSR1, 0])
    process.send_signal(signal.SIGTSTP)
    assert receive_exactly(connection, 2) == bytes([signal.SIGSTOP, 1])
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    pairs = receive_exactly(connection, 4) or b""
    assert {pairs[:2], pairs[2:]} == {bytes([signal.SIGCONT, 0]), bytes([signal.SIGCONT, 1])}
    connection.sendall(quick_client.ENDED + b"\x00")
    assert process.communicate(timeout=60)[0] == "answer 0\nend\n"


def test_a_signal_that_nobody_took_comes_to_the_client_itself(server: Server) -> None:
    process = client(server.path, "--", "true")
    connection = server.accept()
    wait_until_handled(process, signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    connection.sendall(quick_client.DECLINED)
    assert process.communicate(timeout=60)[0] == ""
    assert process.returncode == -signal.SIGTERM


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / ("long" * 40)
    place.mkdir()
    server = Server(place)
    process = client(server.path, "--", "true")
    connection = server.accept(quick_client.ACCEPTED)
    take(connection)
    connection.sendall(quick_client.ENDED + b"\x03")
    assert process.communicate(timeout=60)[0] == "answer 3\nend\n"
    server.close()


def test_closed_streams_are_left_to_the_client(server: Server) -> None:
    words = [sys.executable, "-I", "-S", "-c", CLIENT, str(SOURCE), "60", server.path, "--", "true"]
    shell = ["/bin/sh", "-c", '"$@" 2>&-', "sh", *words]
    done = subprocess.run(
        shell,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        start_new_session=True,
        timeout=30,
    )
    assert done.stdout == "answer None\nend\n"
