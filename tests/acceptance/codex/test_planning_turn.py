"""Whole planning turns of the real Codex: one write, a plan that tells what came of it, an approval, an end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from planning import NoCodexError, find_codex, judge, run_planning
from tests.acceptance.codex.conftest import PROGRAMS, ROOT, on_host

from runner_e2e.graders.workspace import read_manifest, take_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.codex.conftest import Desk

CATALOG = ROOT / "examples" / "campaign" / ".github" / "runner-e2e.yml"


@pytest.mark.parametrize(
    "binary",
    ["node_modules/@openai/codex-linux-x64", "node_modules/@openai/codex/node_modules/@openai/codex-linux-x64"],
    ids=["installed-in-a-folder", "installed-globally"],
)
def test_codex_is_found_as_npm_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: str) -> None:
    wrapper = tmp_path / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
    program = tmp_path / binary / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"
    for file in (wrapper, program):
        file.parent.mkdir(parents=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(wrapper)
    monkeypatch.delenv("CODEX_BINARY", raising=False)
    monkeypatch.setattr("planning.ROOT", tmp_path / "elsewhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoCodexError):
        find_codex()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_codex() == program


def our_wall(desk: Desk) -> list[str]:
    return [
        *("runner-e2e", "sandbox", "exec", "--wall", "locked-mounts", "--quiet", "--hide", str(desk.private)),
        *("--workspace", str(desk.workspace), "--workspace", str(desk.instance / "codex-home"), "--"),
    ]


@pytest.mark.parametrize("external", [False, True], ids=["local", "external"])
@pytest.mark.parametrize("walled", [False, True], ids=["host", "locked-mounts"])
def test_a_planning_turn_is_refused_its_write_and_finishes_after_approval(
    desk: Desk, walled: bool, external: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if external:
        monkeypatch.setenv("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "1")
        monkeypatch.setenv("PAPERCLIP_RUNNER_NETWORK_ACCESS", "enabled")
    outcome = run_planning(desk.instance, desk.workspace, desk.private, wall=our_wall(desk) if walled else ())
    assert judge(outcome) == ("", "")
    assert outcome.plan.splitlines()[0] == "Write outcome: refused by the file system"
    assert outcome.approved
    assert outcome.grade["verdict"] == "passed"
    assert outcome.grade["plan"] == "Write outcome: refused by the file system"
    assert "Read-only file system" in outcome.grade["evidence"][0]["text"]
    assert not (desk.workspace / "plan-probe.txt").exists()
    events = [json.loads(line) for line in (desk.private / "events.jsonl").read_text().splitlines()]
    started = next(event["result"] for event in events if "sandbox" in event.get("result", {}))
    assert started["sandbox"] == {"type": "readOnly", "networkAccess": external}


def test_where_user_ids_cannot_be_mapped_the_plan_is_still_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "1")
    outcome = run_planning(desk.instance, desk.workspace, desk.private, wall=on_host("no-user-ids"))
    assert outcome.grade["verdict"] == "sandbox-failed-to-start"
    assert "setting up uid map: Permission denied" in outcome.grade["evidence"][0]["text"]
    assert outcome.plan.splitlines()[0] == "Write outcome: the sandbox did not start"
    assert outcome.approved
    assert judge(outcome)[0] == "permanent_infrastructure"


def test_without_network_administration_the_narrow_profile_dies_before_the_first_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = on_host("no-network-admin")
    outcome = run_planning(desk.instance, desk.workspace, desk.private, wall=prefix)
    assert outcome.grade["verdict"] == "sandbox-failed-to-start"
    assert "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted" in outcome.grade["evidence"][0]["text"]
    assert outcome.plan == ""

    shutil.rmtree(desk.instance / "codex-home")
    monkeypatch.setenv("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "1")
    monkeypatch.setenv("PAPERCLIP_RUNNER_NETWORK_ACCESS", "enabled")
    outcome = run_planning(desk.instance, desk.workspace, desk.private, wall=prefix)
    assert judge(outcome) == ("", "")


def test_codex_itself_leaves_a_workspace_as_it_is(desk: Desk) -> None:
    """What the grader sees from outside is the agent's doing: Codex writes nothing of its own there."""
    run_planning(desk.instance, desk.workspace, desk.private)
    assert read_manifest(desk.private / "before.json") == take_manifest(desk.workspace)


def test_the_suite_of_the_example_campaign(desk: Desk) -> None:
    done = subprocess.run(
        [
            *(
                PROGRAMS / "runner-e2e",
                "run",
                "--local",
                "--suite",
                "codex-planning-read-only",
                "--json",
                "--quiet",
                "--show-ids",
            ),
            *("--catalog", CATALOG, "--target", CATALOG.parents[1], "--output", desk.private / "records"),
        ],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cells = {cell["id"].split(".")[2]: cell["attempts"][-1] for cell in json.loads(done.stdout)["cells"]}
    assert cells.keys() == {"local", "daytona"}
    for attempt in cells.values():
        record = json.loads(attempt_record(attempt).read_text())
        assert record["sandbox"][0]["wall"] == "locked-mounts"
        grade = json.loads((attempt_record(attempt).parent / "private" / "grade.json").read_text())
        assert grade["verdict"] == "passed"


def attempt_record(attempt: dict[str, str]) -> Path:
    return ROOT / attempt["record"]
