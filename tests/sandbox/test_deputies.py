"""What stands outside and would act for an agent: here, the server of launches."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from runner_e2e.sandbox.deputies import fork_server
from runner_e2e.sandbox.quick_client import SERVER_VARIABLE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_only_a_directory_that_was_made_for_a_server_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "runner-e2e-x", tmp_path / "other"
    for directory in (own, other):
        directory.mkdir()
        monkeypatch.chdir(directory)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("12")
    found = {}
    for value in (
        "",
        "/",
        "/nonexistent",
        "x",
        str(own),
        str(other / "12"),
        str(own / "13"),
        "runner-e2e-x/12",
        str(own / "12"),
    ):
        monkeypatch.setenv(SERVER_VARIABLE, value)
        found[value] = fork_server()
    assert {value for value, directories in found.items() if directories} == {str(own / "12")}
    assert found[str(own / "12")] == (str(own),)
