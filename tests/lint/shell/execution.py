"""Runs a snippet for real and tells whether a secret text reached the argument vector of any process.

The snippet runs in an empty directory under ``strace``, with the text in ``$S``. Programs that are not there
(``tool``, ``docker``, ``gh`` …) are stand-ins that do nothing: what matters is how they are started.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import string
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

STAND_INS = ("tool", "tool2", "docker", "podman", "kubectl", "gh", "aws", "npm", "ssh", "parallel", "flock2")
PIECE = 8
NODE_MODULES = Path(__file__).resolve().parents[2] / "node" / "node_modules"

# A process namespace of its own: when its first process is killed, for example after the time-out below, the kernel
# ends every process in it. Killing strace alone would leave a snippet that loops in the background running for ever.
# `su` and `sudo` do nothing in a user namespace, which only an ordinary user needs for that.
ROOT = os.geteuid() == 0
CAGE = ("unshare", *(() if ROOT else ("--map-root-user",)), "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Snippet:
    """One script; *lines* are the 1-based lines marked ``# LEAK``."""

    name: str
    shell: str
    text: str

    @property
    def lines(self) -> set[int]:
        return {number for number, line in enumerate(self.text.splitlines(), 1) if "# LEAK" in line}


def read_snippets(path: Path, shell: str = "bash") -> list[Snippet]:
    """Blocks that begin with ``## name`` or ``## name [sh]``; *shell*: what runs them when nothing is said."""
    snippets = []
    for block in re.split(r"^## ", path.read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = block.partition("\n")
        match = re.fullmatch(r"(.*?)(?: \[(sh|bash)\])?", head.strip())
        assert match is not None
        snippets.append(Snippet(f"{path.stem}: {match[1]}", match[2] or shell, text))
    return snippets


def random_text() -> str:
    """An id of the usual form: words with a dash and a dot, no two alike."""
    letters = random.SystemRandom().sample(string.ascii_lowercase, 26)
    digits = random.SystemRandom().sample(string.digits * 2, 10)
    return "".join(letters[:11]) + "-" + "".join(letters[11:19] + digits[:3]) + "." + "".join(letters[19:] + digits[3:])


def pieces(text: str) -> set[str]:
    return {text[at : at + PIECE].lower() for at in range(len(text) - PIECE + 1)}


def arguments(log: str) -> list[str]:
    """Every argument of every execve that succeeded, from a log of ``strace -f -x``."""
    found: list[str] = []
    started: dict[str, str] = {}
    for line in log.splitlines():
        process, _, event = line.partition(" ")
        event = event.strip()
        if event.endswith("<unfinished ...>"):
            started[process] = event
            continue
        if event.startswith("<... execve resumed>"):
            event = started.pop(process, "") + event
        if not event.startswith("execve(") or not event.endswith("= 0"):
            continue  # a program that is not there: no process has these arguments
        match = re.match(r'execve\("(?:[^"\\]|\\.)*", \[((?:"(?:[^"\\]|\\.)*"(?:, )?)*)\]', event)
        if match is not None:
            found.extend(
                re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), one)
                for one in re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])
            )
    return found


def executed_verdict(snippet: Snippet) -> bool:
    """Whether the text, or a distinctive piece of it, stood in an argument vector. Raises when nothing ran."""
    secret = random_text()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        work, stubs = base / "work", base / "stubs"
        work.mkdir()
        stubs.mkdir()
        for stand_in in STAND_INS:
            target = stubs / stand_in
            target.write_text("#!/bin/true\n")
            target.chmod(0o755)
        script = base / "step.sh"
        script.write_text(snippet.text)
        log = base / "log"
        environment = {
            "PATH": f"{stubs}:{os.environ['PATH']}",
            "HOME": str(base),
            "S": secret,
            "RUNNER_TEMP": str(base),
            "GITHUB_ENV": str(base / "github_env"),
            "GITHUB_OUTPUT": str(base / "github_output"),
            "GITHUB_STEP_SUMMARY": str(base / "github_summary"),
            "LC_ALL": "C.UTF-8",
        }
        if snippet.shell == "node":  # its modules are looked for beside the script; the toolkit wants files that exist
            (base / "node_modules").symlink_to(NODE_MODULES)
            for command_file in ("github_env", "github_output", "github_summary"):
                (base / command_file).touch()
        shell = shutil.which("dash" if snippet.shell == "sh" else snippet.shell)
        assert shell is not None
        strace = ["strace", "-f", "-x", "-s", "1000000", "-v", "-e", "trace=execve", "-o", str(log)]
        subprocess.run(
            [*CAGE, *strace, shell, str(script)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        text = log.read_text(errors="replace")
    found = arguments(text)
    if not found:
        raise RuntimeError(f"{snippet.name}: nothing was executed")
    distinctive = pieces(secret)
    return any(any(piece in one.lower() for piece in distinctive) for one in found)
