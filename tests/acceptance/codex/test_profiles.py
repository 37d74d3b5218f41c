"""The profiles in the real Codex: what it answers, what it refuses, and the hosts on which only one of them starts."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from app_server import AppServerError
from jsonschema import Draft7Validator
from model_server.script import say
from model_server.server import MODEL, ModelServer
from tests.acceptance.codex.conftest import on_host
from tests.model_server.agents import CODEX

from runner_e2e.codex.identity import launch_identity
from runner_e2e.codex.profile import PLANNING_PROFILE, Host, launch_arguments
from runner_e2e.codex.requests import thread_resume, thread_start, turn_start

if TYPE_CHECKING:
    from pathlib import Path

    from app_server import AppServer
    from model_server.server import Request
    from tests.acceptance.codex.conftest import Desk

HELPER_CALL = "sandboxed=true"


def check_planning(desk: Desk, server: AppServer, host: Host) -> None:
    """It reads and does not write."""
    refused = desk.run(server, host, "sh", "-c", "echo x > made.txt")
    assert (refused["exitCode"], "Read-only file system" in refused["stderr"]) == (2, True)
    assert not (desk.workspace / "made.txt").exists()
    assert desk.run(server, host, "cat", "AGENTS.md")["stdout"] == "Be brief.\n"


def test_the_external_profile_reads_everything_without_the_helper(desk: Desk) -> None:
    host = desk.host(external_sandbox=True, network=True)
    with desk.server(host) as server:
        started = desk.start(server, host)
        assert started["sandbox"] == {"type": "readOnly", "networkAccess": True}
        assert started["instructionSources"] == [str(desk.workspace / "AGENTS.md")]
        check_planning(desk, server, host)
        assert "root:" in desk.run(server, host, "cat", "/etc/passwd")["stdout"]
    assert "fs.read_file" in desk.log()
    assert HELPER_CALL not in desk.log()


def test_the_network_of_the_external_profile_follows_the_host(desk: Desk) -> None:
    host = desk.host(external_sandbox=True, network=False)
    with desk.server(host) as server:
        assert desk.start(server, host)["sandbox"] == {"type": "readOnly", "networkAccess": False}


def test_the_narrow_profile_uses_the_helper_and_sees_little(desk: Desk) -> None:
    host = desk.host()
    (desk.home / "auth.json").write_text('{"secret": "s3cret"}')
    outside = desk.instance / "outside.txt"
    outside.write_text("x")
    with desk.server(host) as server:
        started = desk.start(server, host)
        assert started["sandbox"] == {"type": "readOnly", "networkAccess": False}
        assert started["instructionSources"] == [str(desk.workspace / "AGENTS.md")]
        check_planning(desk, server, host)
        assert desk.run(server, host, "ls", "-A", desk.home)["stdout"] == "tmp\n"
        for path in (desk.home / "auth.json", outside):
            hidden = desk.run(server, host, "cat", path)
            assert (hidden["exitCode"], "No such file" in hidden["stderr"]) == (1, True)
    assert HELPER_CALL in desk.log()


def test_an_explicit_denial_of_codex_home_takes_the_helper_away(desk: Desk) -> None:
    """Why the narrow profile denies ``CODEX_HOME`` by leaving it out."""
    host = desk.host(denied=(str(desk.home),))
    with (
        desk.server(host) as server,
        pytest.raises(AppServerError, match=r"bwrap: execvp .*codex-linux-sandbox: Permission denied"),
    ):
        desk.start(server, host)


def test_without_network_administration_only_the_external_profile_starts(desk: Desk) -> None:
    prefix = on_host("no-network-admin")
    narrow, external = desk.host(), desk.host(external_sandbox=True, network=True)
    with (
        desk.server(narrow, prefix=prefix) as server,
        pytest.raises(AppServerError, match="bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"),
    ):
        desk.start(server, narrow)
    with desk.server(external, prefix=prefix) as server:
        assert desk.start(server, external)["sandbox"] == {"type": "readOnly", "networkAccess": True}
        check_planning(desk, server, external)


def test_without_user_ids_commands_fail_closed_and_files_are_still_read(desk: Desk) -> None:
    prefix = on_host("no-user-ids")
    narrow, external = desk.host(), desk.host(external_sandbox=True, network=True)
    with desk.server(external, prefix=prefix) as server:
        assert desk.start(server, external)["instructionSources"] == [str(desk.workspace / "AGENTS.md")]
        failed = desk.run(server, external, "sh", "-c", "echo x > made.txt")
        assert (failed["exitCode"], "bwrap: setting up uid map: Permission denied" in failed["stderr"]) == (1, True)
    assert not (desk.workspace / "made.txt").exists()
    with (
        desk.server(narrow, prefix=prefix) as server,
        pytest.raises(AppServerError, match="bwrap: setting up uid map: Permission denied"),
    ):
        desk.start(server, narrow)


def test_the_brokered_github_configuration_is_written_in_planning(desk: Desk) -> None:
    broker = desk.instance / "gh"
    broker.mkdir()
    for external in (False, True):
        host = desk.host(external_sandbox=external, network=external, writable=(str(broker),))
        with desk.server(host) as server:
            desk.start(server, host)
            assert desk.run(server, host, "sh", "-c", f"echo x > {broker}/hosts.yml")["exitCode"] == 0
            assert desk.run(server, host, "sh", "-c", "echo x > made.txt")["exitCode"] == 2
        (broker / "hosts.yml").unlink()


def test_a_session_saved_under_old_rules_resumes_under_new_ones(desk: Desk) -> None:
    old = desk.host(readable=("/srv",))
    new = desk.host(readable=("/opt",), writable=(str(desk.private),))
    rules = [f'permissions.{PLANNING_PROFILE}.filesystem={{":root"="read"}}']
    older = [*launch_arguments(old), "-c", rules[0]]
    assert launch_identity(older) == launch_identity(launch_arguments(new))
    with ModelServer([say("I looked."), say("I looked again.")]) as model:
        with desk.server(old, arguments=older, model=model.url) as server:
            thread = desk.start(server, old)["thread"]["id"]
            turn = turn_start(old, planning=True, thread=thread, text="Plan.", model=MODEL)
            server.request("turn/start", **turn)
            server.until("turn/completed")
        with desk.server(new, model=model.url) as server:
            parameters = thread_resume(new, planning=True, directory=str(desk.workspace), thread=thread)
            resumed = server.request("thread/resume", **parameters)
            assert resumed["thread"]["id"] == thread
            assert resumed["sandbox"]["networkAccess"] is False
            turn = turn_start(new, planning=True, thread=thread, text="Go on.", model=MODEL)
            server.request("turn/start", **turn)
            server.until("turn/completed")
        assert model.last.said("I looked.")
        check_planning_rules(model.last)


def check_planning_rules(request: Request) -> None:
    """The agent is told the new rules, not those that the session was saved with."""
    told = json.dumps(request.input[-3:])
    assert "/opt" in told
    assert "/srv" not in told


def test_requests_are_of_the_schema_that_codex_itself_gives(desk: Desk, tmp_path: Path) -> None:
    subprocess.run(
        [CODEX, "app-server", "generate-json-schema", "--experimental", "--out", tmp_path],
        env={"PATH": "/usr/bin:/bin", "CODEX_HOME": str(desk.home), "HOME": str(desk.home)},
        check=True,
        capture_output=True,
    )
    bundle = json.loads((tmp_path / "codex_app_server_protocol.v2.schemas.json").read_text())
    host = desk.host()
    for name, parameters in {
        "ThreadStartParams": thread_start(host, planning=True, directory="/w"),
        "ThreadResumeParams": thread_resume(host, planning=True, directory="/w", thread="t"),
        "TurnStartParams": turn_start(host, planning=True, thread="t", text="x", model="m"),
    }.items():
        schema = {**bundle["definitions"][name], "definitions": bundle["definitions"]}
        Draft7Validator(schema).validate(parameters)
        assert parameters.keys() <= schema["properties"].keys()
