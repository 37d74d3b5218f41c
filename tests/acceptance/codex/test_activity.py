"""The activity channel from within the real Codex's sandbox, and from within this product's."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.codex.conftest import PROGRAMS

from runner_e2e.codex.activity import ActivityChannel, Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.codex.conftest import Desk


@pytest.fixture
def channel(desk: Desk) -> Iterator[ActivityChannel]:
    with ActivityChannel(desk.instance / "activity") as made:
        yield made


def refused_writes(channel: ActivityChannel, desk: Desk) -> dict[str, list[str]]:
    credentials = desk.instance / "credentials"
    credentials.mkdir()
    (credentials / "token").write_text("s3cret")
    (desk.private / "state.json").write_text("{}")

    for path in (channel.descriptor, channel.helper, channel.lock):
        path.chmod(0o777)  # it is the sandbox that refuses, not the mode

    def write(path: Path) -> list[str]:
        return ["sh", "-c", f"echo x >> {path}"]

    return {
        "the workspace": write(desk.workspace / "made.txt"),
        "private state": write(desk.private / "state.json"),
        "credentials": write(credentials / "token"),
        "the descriptor": write(channel.descriptor),
        "the helper": write(channel.helper),
        "the lock": write(channel.lock),
        "a neighbour of the descriptor": write(channel.root / "new"),
        "the lock's removal": ["rm", "-f", str(channel.lock)],
        "the lock's name": ["mv", str(channel.lock), f"{channel.lock}.old"],
        "the descriptor's removal": ["rm", "-f", str(channel.descriptor)],
    }


@pytest.mark.parametrize("external", [False, True], ids=["narrow", "external"])
def test_from_the_sandbox_of_codex(desk: Desk, channel: ActivityChannel, external: bool) -> None:
    host = desk.host(external_sandbox=external, network=external, **channel.grants())
    with desk.server(host) as server:
        started = desk.start(server, host)
        assert started["instructionSources"] == [str(desk.workspace / "AGENTS.md")]
        for text in ("one", "größer “so”", "three  spaces"):
            done = desk.run(server, host, channel.helper, "progress", text)
            assert (done["exitCode"], done["stderr"]) == (0, "")
            assert channel.read(10) == [Record(kind="progress", text=text)]
        exact = channel.descriptor.read_text().splitlines()[3] + "\tprogress\tby hand\n"
        done = desk.run(server, host, "sh", "-c", f"printf '%s' \"$1\" > {channel.endpoint}", "sh", exact)
        assert done["exitCode"] == 0
        assert channel.read(10) == [Record(kind="progress", text="by hand")]
        for name, command in refused_writes(channel, desk).items():
            done = desk.run(server, host, *command)
            assert done["exitCode"] != 0, name
            expected = ("Read-only file system", "Device or resource busy", "No such file", "nonexistent")
            assert any(words in done["stderr"] for words in expected), (name, done)
        assert desk.run(server, host, "cat", "AGENTS.md")["stdout"] == "Be brief.\n"
        environment = desk.run(server, host, "env")["stdout"]
        assert "s3cret" not in environment
        assert "CODEX_HOME" not in environment
    assert (desk.private / "state.json").read_text() == "{}"
    assert (desk.instance / "credentials" / "token").read_text() == "s3cret"
    assert not (desk.workspace / "made.txt").exists()
    assert channel.rejections == []


def test_the_narrow_profile_does_not_show_private_state_and_credentials(desk: Desk, channel: ActivityChannel) -> None:
    refused_writes(channel, desk)
    host = desk.host(**channel.grants())
    with desk.server(host) as server:
        desk.start(server, host)
        for path in (desk.private / "state.json", desk.instance / "credentials" / "token"):
            assert "No such file" in desk.run(server, host, "cat", path)["stderr"]


def test_a_fifo_as_writable_root_keeps_the_sandbox_from_starting(desk: Desk, channel: ActivityChannel) -> None:
    """The policy that this channel replaces, and the failure for which it was replaced."""
    old = {**channel.grants(), "writable": (str(channel.endpoint),), "protected": ()}
    host = desk.host(external_sandbox=True, network=True, **old)
    with desk.server(host) as server:
        desk.start(server, host)
        done = desk.run(server, host, channel.helper, "progress", "x")
    assert done["exitCode"] == 101
    assert f"Can't mkdir parents for {channel.endpoint}/.git: Not a directory" in done["stderr"]
    assert channel.read() == []


def test_from_the_sandbox_of_this_product(desk: Desk, channel: ActivityChannel) -> None:
    wall = ["runner-e2e", "sandbox", "exec", "--quiet", "--hide", str(desk.private)]
    wall += ["--workspace", str(channel.directory), "--read-only", str(channel.root), "--"]
    for text in ("one", "größer “so”"):
        done = subprocess.run(
            [*wall, str(channel.helper), "progress", text],
            cwd=desk.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert channel.read(10) == [Record(kind="progress", text=text)]
    for path in (channel.descriptor, channel.helper):
        command = [*wall, "sh", "-c", f"echo x >> {path}; rm -f {path}"]
        done = subprocess.run(command, cwd=desk.workspace, capture_output=True, text=True, check=False)
        assert done.returncode != 0
    assert channel.descriptor.exists()
    assert os.access(channel.helper, os.X_OK)


def test_from_codex_within_the_sandbox_of_this_product(desk: Desk, channel: ActivityChannel) -> None:
    host = desk.host(external_sandbox=True, network=True, **channel.grants())
    wall = [
        str(PROGRAMS / "runner-e2e"),
        "sandbox",
        "exec",
        "--wall",
        "locked-mounts",
        "--quiet",
        "--hide",
        str(desk.private),
    ]
    for path in (desk.workspace, desk.home, channel.directory):
        wall += ["--workspace", str(path)]
    wall += ["--read-only", str(channel.root), "--"]
    with desk.server(host, prefix=wall) as server:
        desk.start(server, host)
        done = desk.run(server, host, channel.helper, "progress", "from within both")
        assert (done["exitCode"], done["stderr"]) == (0, "")
        assert channel.read(10) == [Record(kind="progress", text="from within both")]
        assert desk.run(server, host, "rm", "-f", channel.lock)["exitCode"] != 0
