"""The stand-ins for checkout, artifacts and cache, run as their actions run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from runner_e2e.workflow_audit.staging import commit, make_stand_in
from runner_e2e.yaml_positions import compose_file, plain

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["checkout", "upload-artifact", "download-artifact", "cache"]


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "file").write_text("content\n")
    commit(tmp_path / "repository", "own/repo")
    (tmp_path / "repository-name").write_text("own/repo\n")
    (tmp_path / "stand-ins").mkdir()
    (tmp_path / "workspace").mkdir()
    return tmp_path


def run(stage: Path, name: str, verb: str, **inputs: str) -> tuple[int, str, dict[str, str]]:
    directory = make_stand_in(name, stage / "stand-ins")
    file = stage / "outputs"
    file.write_text("")
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -I -S "$1" {verb} 3>>"$2"', sys.executable, directory / "stand_in.py", file],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(stage),
            "STAND_IN_WORKSPACE": str(stage / "workspace"),
            "STAND_IN_JOB": "build",
            **{f"STAND_IN_{key}": value for key, value in inputs.items()},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert done.stderr == ""
    return done.returncode, done.stdout, outputs


def test_checkout(stage: Path) -> None:
    status, _, outputs = run(stage, "checkout", "checkout", PATH="below")
    assert status == 0
    assert (stage / "workspace" / "below" / "file").read_text() == "content\n"
    assert len(outputs["commit"]) == 40


def test_checkout_of_a_ref(stage: Path) -> None:
    status, said, outputs = run(stage, "checkout", "checkout", REF="refs/heads/main")
    assert (status, said, outputs["ref"]) == (0, "", "refs/heads/main")
    status, said, _ = run(stage, "checkout", "checkout", REF="v9")
    assert status == 0
    assert "has no ref v9" in said


def test_checkout_of_another_repository(stage: Path) -> None:
    assert run(stage, "checkout", "checkout", REPOSITORY="OWN/repo")[0] == 0
    status, said, _ = run(stage, "checkout", "checkout", REPOSITORY="other/repo")
    assert status == 1
    assert "::error::" in said


def test_artifacts_there_and_back(stage: Path) -> None:
    out = stage / "workspace" / "out"
    (out / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt", "skip.log", ".hidden"):
        (out / name).write_text(name)
    status, _, outputs = run(stage, "upload-artifact", "upload", NAME="one", PATH="out\n!out/*.log")
    assert (status, outputs["artifact-id"]) == (0, "1")
    assert len(outputs["artifact-digest"]) == 64
    assert run(stage, "upload-artifact", "upload", NAME="two", PATH=str(out / "a.txt"))[0] == 0
    run(stage, "download-artifact", "download", NAME="one", PATH="back")
    back = stage / "workspace" / "back"
    assert sorted(str(p.relative_to(back)) for p in back.rglob("*") if p.is_file()) == ["a.txt", "deep/b.txt"]
    run(stage, "download-artifact", "download", PATH="all", PATTERN="t*")
    assert (stage / "workspace" / "all" / "two" / "a.txt").read_text() == "a.txt"
    run(stage, "download-artifact", "download", PATH="flat", MERGE="true")
    assert (stage / "workspace" / "flat" / "deep" / "b.txt").exists()
    names = [json.loads(line)["name"] for line in (stage / "artifacts" / "records.jsonl").read_text().splitlines()]
    assert names == ["one", "two"]


def test_hidden_files_when_asked(stage: Path) -> None:
    (stage / "workspace" / ".env").write_text("x")
    assert "No files were found" in run(stage, "upload-artifact", "upload", PATH=".env")[1]
    assert run(stage, "upload-artifact", "upload", PATH=".env", HIDDEN="true")[2]["artifact-id"] == "1"


def test_an_artifact_of_the_same_name(stage: Path) -> None:
    (stage / "workspace" / "a").write_text("1")
    assert run(stage, "upload-artifact", "upload", NAME="x", PATH="a")[0] == 0
    assert run(stage, "upload-artifact", "upload", NAME="x", PATH="a")[0] == 1
    (stage / "workspace" / "a").write_text("2")
    assert run(stage, "upload-artifact", "upload", NAME="x", PATH="a", OVERWRITE="true")[0] == 0
    run(stage, "download-artifact", "download", NAME="x", PATH="back")
    assert (stage / "workspace" / "back" / "a").read_text() == "2"


@pytest.mark.parametrize(("missing", "status"), [("warn", 0), ("ignore", 0), ("error", 1)])
def test_nothing_to_upload(stage: Path, missing: str, status: int) -> None:
    assert run(stage, "upload-artifact", "upload", PATH="absent/**", MISSING=missing)[0] == status


def test_an_artifact_that_is_not_there(stage: Path) -> None:
    status, said, _ = run(stage, "download-artifact", "download", NAME="absent")
    assert status == 1
    assert "no artifact named absent" in said


def test_cache_is_recorded(stage: Path) -> None:
    assert run(stage, "cache", "cache", KEY="k-1", RESTORE="k-")[0] == 0
    assert json.loads((stage / "artifacts" / "records.jsonl").read_text())["name"] == "k-1\nk-"


@pytest.mark.parametrize("name", NAMES)
def test_every_input_reaches_the_program(name: str, tmp_path: Path) -> None:
    directory = make_stand_in(name, tmp_path)
    for file in directory.rglob("action.yml"):
        data = plain(compose_file(file))
        assert isinstance(data, dict)
        step = data["runs"]["steps"][0]  # type: ignore[index,call-overload]
        used = " ".join(map(str, step["env"].values()))  # type: ignore[index,union-attr,call-overload]
        inputs = data["inputs"]
        assert isinstance(inputs, dict)
        ignored = {key for key, value in inputs.items() if value["description"] == "Ignored."}  # type: ignore[index,call-overload]
        assert {key for key in inputs if f"inputs.{key} " in used} == set(inputs) - ignored
