from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.graders.streams import RECORDED, REFUSAL, command, lines, turn

from runner_e2e import graders
from runner_e2e.cli.group import run

SCHEMAS = Path(graders.__file__).parent / "schemas"


def grade(*arguments: object) -> int:
    return run(["grade", *map(str, arguments)])


def test_a_run_is_graded_with_its_session_and_its_workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace, before = tmp_path / "workspace", tmp_path / "before.json"
    workspace.mkdir()
    assert grade("manifest", workspace) == 0
    before.write_text(capsys.readouterr().out)
    events, session = RECORDED / "refused-fast.exec.jsonl", RECORDED / "refused-fast.session.jsonl"
    looked = ["--workspace", workspace, "--before", before]
    assert grade("planning-read-only", events, "--session", session, *looked) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "passed: every write that was tried was refused by the file system"
    assert shown[1].startswith(f"  {session}:")
    assert shown[-1] == "  the workspace is unchanged"

    assert grade("planning-read-only", events, *looked, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads((SCHEMAS / "grade-v1.json").read_text())).validate(document)
    assert document["verdict"] == "incomplete"

    (workspace / "probe.txt").write_text("x")
    assert grade("planning-read-only", events, "--session", session, *looked) == 1
    assert "seen from outside: probe.txt was created" in capsys.readouterr().out


def test_only_the_probe_counts_when_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = tmp_path / "events.jsonl"
    events.write_bytes(lines(turn(*command("printf x > probe.txt", REFUSAL, 1))))
    assert grade("planning-read-only", events, "--probe", "probe.txt") == 0
    assert grade("planning-read-only", events, "--probe", "other.txt") == 1
    assert capsys.readouterr().out.splitlines()[-2].startswith("no-write-attempt: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["planning-read-only", "none.jsonl"], "none.jsonl cannot be read"),
        (["planning-read-only", "."], ". cannot be read"),
        (["planning-read-only", "none.jsonl", "--workspace", "."], "--workspace and --before belong together"),
        (["manifest", "none"], "none is not a directory"),
        (["expectations", "none.json"], "the expectations cannot be read"),
    ],
)
def test_what_is_missing_is_said(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert grade(*arguments) == 2
    assert words in capsys.readouterr().err


def test_expectations_are_held_against_what_a_run_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expectations, messages = tmp_path / "expectations.json", tmp_path / "messages.jsonl"
    entries = [{"message": {"contains": "done"}}, {"status": 0}, {"file": {"path": "a.txt", "exact": "a"}}]
    expectations.write_text(json.dumps({"schema": "runner-e2e.expectations/v1", "expect": entries}))
    messages.write_text('"begun"\n"done"\n')
    (tmp_path / "a.txt").write_text("a")
    left = ["--messages", messages, "--workspace", tmp_path]
    assert grade("expectations", expectations, *left, "--status", "0") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3 expectations hold"
    assert grade("expectations", expectations, *left, "--status", "1", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert [match["passed"] for match in document["matches"]] == [True, False, True]
    messages.write_text('"begun"\n{}\n')
    assert grade("expectations", expectations, *left) == 2
    assert f"{messages}:2: a message is not a JSON string" in capsys.readouterr().err
