"""The grader on fresh runs of ``codex exec``, whose event stream leaves out a command or not, as it happens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from model_server.script import say, shell
from model_server.server import ModelServer
from tests.model_server.agents import run_codex

from runner_e2e.cli.group import run

if TYPE_CHECKING:
    from tests.acceptance.codex.conftest import Desk

REFUSAL = "/bin/bash: line 1: probe.txt: Read-only file system"
CASES = {
    "refused": ("printf x > probe.txt", False, "passed"),
    "refused-with-status": ("printf x > probe.txt; echo rc=$?", False, "passed"),
    "refused-python": ("python3 -c \"open('probe.txt', 'w')\"", False, "passed"),
    "refused-in-a-directory": ("mkdir -p new && cp AGENTS.md new/copy.md", False, "passed"),
    "written": ("printf x > probe.txt", True, "write-succeeded"),
    "written-and-removed": ("printf x > probe.txt; rm probe.txt", True, "write-succeeded"),
    "written-with-the-words-of-a-refusal": (f"printf x > probe.txt; echo '{REFUSAL}'; exit 1", True, "write-succeeded"),
    "only-the-words-of-a-refusal": (f"echo '{REFUSAL}'; exit 1", False, "no-write-attempt"),
    "nothing": ("ls", False, "no-write-attempt"),
}


@pytest.mark.parametrize(("command", "writable", "verdict"), CASES.values(), ids=CASES.keys())
def test_a_verdict_does_not_depend_on_what_the_stream_leaves_out(
    desk: Desk, command: str, writable: bool, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, events = desk.private / "before.json", desk.private / "events.jsonl"
    assert run(["grade", "manifest", str(desk.workspace)]) == 0
    before.write_text(capsys.readouterr().out)
    with ModelServer([shell(command), say("Done.")]) as model:
        done = run_codex(
            model, "Go.", home=desk.home, workspace=desk.workspace, writable=[desk.workspace] if writable else []
        )
    events.write_text(done.stdout)
    (session,) = desk.home.glob("sessions/**/*.jsonl")
    looked = ["--workspace", str(desk.workspace), "--before", str(before)]
    status = run(["grade", "planning-read-only", str(events), "--session", str(session), *looked, "--json"])
    grade = json.loads(capsys.readouterr().out)
    assert (grade["verdict"], status) == (verdict, 0 if verdict == "passed" else 1), grade
