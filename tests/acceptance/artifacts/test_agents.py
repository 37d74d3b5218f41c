"""Agents that the catalog lists: the sandbox starts them by their content, and says how."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from tests.acceptance.artifacts.conftest import as_root, sha256
from tests.sandbox.test_launcher import without_user_namespaces

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.acceptance.artifacts.conftest import Host


def sandboxed(
    host: Host, files: dict[Path, str], *command: object, root: Path | str = "", path: str = "", bare: bool = False
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, object]]]:
    """Runs *command* as an agent, with a listing as the engine leaves it; the reports that came of it."""
    work = host.actor.work
    reports = work / "reports"
    reports.mkdir(exist_ok=True)
    listing = work / "artifacts.json"
    document = {
        "schema": "runner-e2e.artifacts/v1",
        "files": {str(name): digest for name, digest in files.items()},
        "trusted_launch_root": str(root),
    }
    listing.write_text(json.dumps(document))
    as_root("chown", "-R", host.actor.user, work)
    environment = host.actor.environment(
        RUNNER_E2E_ARTIFACTS=str(listing),
        RUNNER_E2E_ARTIFACT_REPORTS=str(reports),
        PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE="/proc/self/fd/999",
    )
    if path:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    hidden = ("--hide", host.actor.hidden, "--expose", host.actor.hidden / "own")
    words = host.actor.words("--quiet", *hidden, command=command)
    if bare:
        words = ["env", *(f"{name}={value}" for name, value in environment.items()), *words]
        done = without_user_namespaces(host.actor, words)
    else:
        done = host.actor.run(words, env=environment)
    return done, [json.loads(as_root("cat", file)) for file in sorted(reports.glob("*.json"))]


def test_a_listed_agent_runs_from_a_snapshot(host: Host) -> None:
    tool = host.content() / "tool"
    done, (report,) = sandboxed(host, {tool: sha256(tool)}, tool, "spawn")
    assert done.returncode == 0, done.stderr
    outer, nested = done.stdout.splitlines()
    assert outer == nested
    assert outer.startswith("exe=/memfd:tool (deleted) runtime=/proc/self/fd/")
    assert report["how"] == "sealed-snapshot"
    assert report["memory_bytes"] == tool.stat().st_size


def test_a_listed_agent_runs_in_place(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    tool = rom / "tool"
    done, (report,) = sandboxed(host, {tool: "1" * 64}, tool, "exec", root=rom)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [f"exe={tool}"] * 2
    assert (report["how"], report["reason"], report["memory_bytes"]) == ("in-place", None, 0)


def test_an_agent_is_found_by_its_name_and_through_links(host: Host) -> None:
    tool = host.content() / "tool"
    programs = host.folder("programs")
    (programs / "agent").symlink_to(tool)
    done, (report,) = sandboxed(host, {tool: sha256(tool)}, "agent", "show", path=str(programs))
    assert done.stdout.startswith("exe=/memfd:tool"), done.stderr
    assert report["path"] == str(tool)


def test_a_listed_agent_with_another_content_never_runs(host: Host) -> None:
    tool = host.content() / "tool"
    digest = sha256(tool)
    shutil.copy(host.probes / "evil", tool)
    done, (report,) = sandboxed(host, {tool: digest}, tool, "show")
    assert (done.returncode, done.stdout) == (125, "")
    assert "its SHA-256 is" in done.stderr
    assert report["how"] == "refused"


def test_a_listed_script_runs_through_its_interpreter(host: Host) -> None:
    script = host.folder("content") / "script"
    script.write_text('#!/bin/sh\necho "said $1"\n')
    script.chmod(0o755)
    done, (report,) = sandboxed(host, {script: sha256(script)}, script, "hello")
    assert done.stdout == "said hello\n", done.stderr
    assert report["how"] == "sealed-snapshot"


def test_an_agent_that_is_not_listed_runs_as_always_without_its_harness_runtime(host: Host) -> None:
    tool = host.content() / "tool"
    done, reports = sandboxed(host, {host.place / "other": "1" * 64}, tool, "show")
    assert done.stdout == f"exe={tool} runtime= mark=good\n", done.stderr
    assert reports == []


def test_what_is_hidden_stays_hidden_from_a_listed_agent(host: Host) -> None:
    script = host.folder("content") / "script"
    script.write_text(f"#!/bin/sh\ncat {host.actor.hidden}/secret 2>/dev/null; ls /proc/self/fd\n")
    script.chmod(0o755)
    done, _ = sandboxed(host, {script: sha256(script)}, script)
    assert "canary" not in done.stdout
    assert set(done.stdout.split()) <= {"0", "1", "2", "3", "10", "20", "21", "22", "23"}, done.stdout


def test_a_listed_agent_behind_landlock_alone(user_host: Host, kind: str) -> None:
    """Where the host gives no namespaces at all."""
    rom = user_host.rom(kind)
    tool = user_host.content() / "tool"
    done, (report,) = sandboxed(user_host, {tool: sha256(tool)}, tool, "spawn", bare=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["exe=/memfd:tool"] * 2, done.stderr
    assert report["how"] == "sealed-snapshot"
    # In a user namespace that does not know root, nobody can tell that the image is root's: the digest decides.
    digest = sha256(rom / "tool")
    done, reports = sandboxed(user_host, {rom / "tool": digest}, rom / "tool", "spawn", root=rom, bare=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["exe=/memfd:tool"] * 2, done.stderr
    assert "can be written by its owner, user 65534" in done.stderr
    assert reports[-1]["how"] == "sealed-snapshot"
