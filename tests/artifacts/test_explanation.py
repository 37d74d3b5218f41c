from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from runner_e2e.artifacts.explanation import explain
from runner_e2e.artifacts.reasons import reason
from runner_e2e.artifacts.trusted_root import RefusedRoot
from runner_e2e.cli.group import run

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = hashlib.sha256(b"content").hexdigest()


@pytest.fixture(name="tool")
def _tool(tmp_path: Path) -> Path:
    path = tmp_path / "tool"
    path.write_bytes(b"content")
    path.chmod(0o755)
    return path


def test_a_snapshot_is_explained(tool: Path) -> None:
    found = explain(str(tool), sha256=DIGEST)
    assert found.how == "sealed-snapshot"
    assert [(step.passed, step.found) for step in found.steps] == [
        (True, "7 bytes"),
        (False, "none is set"),
        (True, DIGEST),
    ]
    assert found.launch
    assert found.launch.descriptor == -1


def test_a_refused_root_is_explained(tool: Path) -> None:
    found = explain(str(tool), sha256=DIGEST, root=RefusedRoot("/rom", reason("root-noexec")))
    assert found.steps[1].found == "/rom: its mount is noexec"
    assert found.runs


def test_another_digest_is_explained(tool: Path) -> None:
    found = explain(str(tool), sha256="0" * 64)
    assert not found.runs
    assert f"its SHA-256 is {DIGEST}" in found.steps[-1].found


def test_a_file_that_is_refused_is_explained(tool: Path) -> None:
    tool.chmod(0o775)
    found = explain(str(tool), sha256=None)
    assert found.how == "refused"
    assert len(found.steps) == 1
    assert "can be written by its group" in found.steps[0].found


def test_the_command_tells_a_person_and_a_program(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["artifact", "check", str(tool)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1. a regular file, no link, not writable by group or others: yes: 7 bytes",
        "2. a trusted launch root: no: none is set",
        f"3. sha256: yes: {DIGEST}, compared with nothing",
        f"4. a sealed snapshot with the expected sha256: yes: {DIGEST}",
        "It runs from a sealed snapshot.",
    ]
    assert run(["artifact", "check", "--sha256", "1" * 64, "--json", str(tool)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["how"] == "refused"
    assert document["launch"] is None
    assert run(["artifact", "check", "--sha256", "short", str(tool)]) == 2
    assert "is not a SHA-256 digest" in capsys.readouterr().err


def test_digests_are_shown_as_sha256sum_does(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["artifact", "digest", str(tool), str(tool.parent / "absent")]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"{DIGEST}  {tool}\n"
    assert "there is no such file" in shown.err


def test_help_and_bad_calls_of_exec(tool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["artifact", "exec", "--help"]) == 0
    assert "--trusted-launch-root DIR" in capsys.readouterr().out
    assert run(["artifact", "exec"]) == 125
    assert "no artifact is named" in capsys.readouterr().err
    assert run(["artifact", "exec", str(tool)]) == 125
    assert "--sha256 is missing" in capsys.readouterr().err
    assert run(["artifact", "exec", "--sha256", "x", str(tool)]) == 125
    assert run(["artifact", "check", "--unknown", str(tool)]) == 2


def test_the_parent_of_this_process_is_not_the_artifact(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["artifact", "check-parent", "--sha256", "1" * 64]) in {1, 125}
    assert capsys.readouterr().err
