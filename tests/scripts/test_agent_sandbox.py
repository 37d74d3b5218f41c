"""The quick entry: asks the server that its harness has, and launches by itself where that does not serve it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_server import Server, take

from runner_e2e.sandbox import quick_client

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY = Path(__file__).resolve().parents[2] / "scripts" / "agent_sandbox.py"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    yield one
    one.close()


def entry(server: str, script: Path = ENTRY) -> subprocess.Popen[str]:
    words = [sys.executable, "-I", "-S", str(script), "--quiet", "--", "/bin/sh", "-c", "echo launched; exit 5"]
    return subprocess.Popen(
        words,
        env={**os.environ, quick_client.SERVER_VARIABLE: server},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_what_the_server_says_is_the_status(server: Server) -> None:
    process = entry(server.path)
    connection = server.accept(quick_client.ACCEPTED)
    take(connection)
    connection.sendall(quick_client.ENDED + bytes([42]))
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 42


def test_a_server_that_declines_is_done_without(server: Server) -> None:
    process = entry(server.path)
    server.accept(quick_client.DECLINED)
    assert process.communicate(timeout=30)[0] == "launched\n"
    assert process.returncode == 5


def test_a_server_that_is_gone_is_done_without(tmp_path: Path) -> None:
    process = entry(str(tmp_path / "socket"))
    assert process.communicate(timeout=30)[0] == "launched\n"
    assert process.returncode == 5


@pytest.fixture(params=["file", "relative file", "directory"])
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The script behind links to it, or to the directory that it is in."""
    place = tmp_path / "links"
    place.mkdir()
    if request.param == "directory":
        (place / "scripts").symlink_to(ENTRY.parent)
        return place / "scripts" / ENTRY.name
    target = Path(os.path.relpath(ENTRY, place)) if request.param == "relative file" else ENTRY
    (place / "first").symlink_to(target)
    (place / "agent").symlink_to("first")
    return place / "agent"


def test_a_link_to_the_script_finds_the_server(server: Server, linked: Path) -> None:
    process = entry(server.path, linked)
    connection = server.accept(quick_client.ACCEPTED)
    take(connection)
    connection.sendall(quick_client.ENDED + bytes([42]))
    process.communicate(timeout=30)
    assert process.returncode == 42


def test_a_link_to_the_script_launches(linked: Path) -> None:
    process = entry("", linked)
    assert process.communicate(timeout=30)[0] == "launched\n"
    assert process.returncode == 5
