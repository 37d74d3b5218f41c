"""Runs a workflow for real under act, offline and without docker, while the machine's command lines are watched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent.parent
ACT = Path(sys.executable).parent / "act"
WHEELS = REPOSITORY / ".venv" / "wheels"
PINNED = re.compile(r"uses: *([\w.-]+/[\w.-]+)(?:/[\w./-]+)?@([0-9a-f]{40})")


@dataclass(frozen=True, kw_only=True)
class ActJob:
    """What became of a run: act's status and whole output, what was seen on command lines, and what was uploaded.

    *scans* is how often the machine's command lines were read or, in an audited run, how many execs there were.
    """

    status: int
    output: str
    seen: tuple[str, ...]
    scans: int
    artifacts: Path


def export_action(directory: Path) -> Path:
    """What the action needs of this repository; act would copy all of it, the environments of development too."""
    action = directory / "action"
    for name in ("scripts", "src", "requirements"):
        shutil.copytree(REPOSITORY / name, action / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(REPOSITORY / "action.yml", action)
    return action


def make_repository(directory: Path, files: Mapping[str, str]) -> Path:
    """A Git repository with one commit of *files*."""
    root = directory / "repository"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "target"]):
        subprocess.run(["git", *words], cwd=root, env=environment, check=True)
    return root


def run_job(
    repository: Path, workflow: str, *, inputs: Mapping[str, str], secrets: Mapping[str, str], watch: list[str],
    directory: Path, event_name: str = "workflow_dispatch", extra: Sequence[str] = (), audited: bool = False,
) -> ActJob:  # fmt: skip
    """Runs *workflow* of *repository* with act. Neither inputs nor secrets stand on act's command line.

    *extra* are further words of act's: variables of the repository, what the runner would set. *audited*: no command
    line can be missed, not even that of a process that lives for a moment.
    """
    artifacts = directory / "artifacts"
    artifacts.mkdir()
    event = directory / "dispatch.json"
    event.write_text(json.dumps({"inputs": inputs}))
    secret_file = directory / "secrets"
    secret_file.write_text("".join(f"{name}={value}\n" for name, value in secrets.items()))
    home = directory / "home"
    home.mkdir()
    command = [str(ACT), event_name, "-W", f".github/workflows/{workflow}", "--eventpath", str(event)]
    command += ["-P", "ubuntu-24.04=-self-hosted", "--no-cache-server", "--action-offline-mode"]
    command += ["--secret-file", str(secret_file), "--env", f"ARTIFACTS={artifacts}"]
    command += ["--env", f"SOURCE={repository}"]
    # act's own home is a fresh one; the job's is the user's, as on a runner: an agent that runs as another user is let
    # into it, where a Python may lie.
    command += ["--env", f"HOME={Path.home()}"]
    # The packages come from a directory, so that `setup` installs for real and needs no network.
    command += ["--env", "PIP_NO_INDEX=1", "--env", f"PIP_FIND_LINKS={WHEELS}"]
    command += extra
    text = (repository / ".github" / "workflows" / workflow).read_text()
    for name, commit in sorted(set(PINNED.findall(text))):
        source = (
            export_action(directory) if name == "org/runner-e2e-action" else HERE / "stand_ins" / name.split("/")[1]
        )
        command += ["--local-repository", f"{name}@{commit}={source}"]
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "NO_COLOR": "1",
    }  # fmt: skip
    run = _audited if audited else _watched
    return run(command, repository, environment, watch, artifacts)


def _audited(
    command: list[str], directory: Path, environment: dict[str, str], words: list[str], artifacts: Path
) -> ActJob:
    """Under the product's exec audit, which reads every exec from the kernel: what it did not see is no proof."""
    request = {
        "command": command, "canaries": words, "environ": environment, "directory": str(directory), "timeout": 600,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(HERE / "audited_run.py")], input=json.dumps(request) + "\n", capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["gaps"] == [], report
    return ActJob(
        status=report["status"],
        output=done.stderr,
        seen=tuple(report["seen"]),
        scans=report["execs"],
        artifacts=artifacts,
    )


def _watched(
    command: list[str], directory: Path, environment: dict[str, str], words: list[str], artifacts: Path
) -> ActJob:
    """With a watcher beside it that reads the command lines of the machine again and again."""
    with subprocess.Popen(
        [sys.executable, "-I", str(HERE / "argv_watch.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdin
        assert watcher.stdout
        watcher.stdin.write(json.dumps(words) + "\n")
        watcher.stdin.flush()
        done = subprocess.run(
            command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        watcher.stdin.close()
        report = json.loads(watcher.stdout.read())
    return ActJob(
        status=done.returncode,
        output=done.stdout,
        seen=tuple(report["seen"]),
        scans=report["scans"],
        artifacts=artifacts,
    )
