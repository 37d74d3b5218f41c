"""Two real agents of one instance: one is told to find out about the other, first without the sandbox, then in it."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from model_server.script import call, say, shell
from model_server.server import ModelServer, without_tools
from tests.clearing import remove_tree
from tests.model_server.agents import codex_words, environment, opencode_variables, opencode_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from model_server.script import Answer

ROOT = Path(__file__).resolve().parents[3]
WORK = ROOT / "tests" / ".work"
ENTRY = ROOT / "scripts" / "agent_sandbox.py"
TIMEOUT = 300.0

# Name of what is found out -> the shell command that a model would use for it. Each looks for marks that the test has
# left there; `grep` says them, and nothing of what it was asked to look for.
FIND = "grep -aoh 'mark-[a-z]*-[0-9a-f]*'"
SNOOPING = {
    "sessions": "ls -d {runner}/durable-sessions/*/ 2>&1 | {find}",
    "wal": "ls {instance}/db/pg_wal 2>&1 | {find}; cat {instance}/db/pg_wal/* | {find}",
    "database": "find {runner}/durable-sessions -type f -exec {find} {{}} + | sort -u",
    "log": "cat {instance}/data/run-logs/* | {find}",
    "control": "find {instance} -name 'control-plane-state.json' -exec {find} {{}} +",
    "cmdline": "cat /proc/[0-9]*/cmdline | {find} | sort -u",
    "environ": "cat /proc/[0-9]*/environ | {find} | sort -u",
    "event": "cat {event} | {find}",
}
TASK = "printf 'the task is done' > made.txt && cat made.txt"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance with two sessions, a harness beside it, and where the CI runner keeps its event."""

    root: Path
    event: Path
    marks: dict[str, str] = field(
        default_factory=lambda: {name: f"mark-{name}-{secrets.token_hex(6)}" for name in SNOOPING}
    )

    @property
    def runner(self) -> Path:
        return self.root / "runtime" / "paperclip-runner"

    def session(self, who: str) -> Path:
        """The state directory of an agent; that of the peer has a mark in its name."""
        return self.runner / "durable-sessions" / (self.marks["sessions"] if who == "peer" else who)

    def workspace(self, who: str) -> Path:
        return self.root / "workspaces" / who

    def snooping(self) -> str:
        """A script that tries everything and goes on whatever fails."""
        places = {"instance": self.root, "runner": self.runner, "event": self.event, "find": FIND}
        return "\n".join(
            f"echo '<{name}>'\n{{ {command.format(**places)}; }} 2>&1" for name, command in SNOOPING.items()
        )

    def furnish(self) -> None:
        """Leaves marks where products and CI runners leave what names a case."""
        wal = self.root / "db" / "pg_wal" / "000000010000000000000001"
        files = {
            wal: f"\0INSERT {self.marks['wal']}\0",
            self.root / "data" / "run-logs" / "peer.ndjson": self.marks["log"],
            self.runner / "control-plane" / "control-plane-state.json": self.marks["control"],
            self.event: self.marks["event"],
        }
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        for who in ("mine", "peer"):
            for directory in (self.session(who) / "home", self.workspace(who)):
                directory.mkdir(parents=True)
            subprocess.run(["git", "init", "--quiet", str(self.workspace(who))], check=True)


@pytest.fixture
def instance() -> Iterator[Instance]:
    WORK.mkdir(exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=WORK))
    made = Instance(root=root / "instance", event=root / "runner" / "_github_workflow" / "event.json")
    made.furnish()
    code = "import time; print('up', flush=True); time.sleep(600)"
    harness = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, made.marks["cmdline"]],
        env={"SELECTED": made.marks["environ"]},
        stdout=subprocess.PIPE,
    )
    with harness:
        assert harness.stdout is not None
        harness.stdout.readline()
        yield made
        harness.kill()
    remove_tree(root)


def sandboxed(instance: Instance, who: str, provider: str, options: Sequence[str]) -> list[str]:
    """The words before an agent's own that start it in the scope of its run."""
    return [
        *[sys.executable, "-I", "-S", str(ENTRY), "--quiet", "--layout", "paperclip", "--provider", provider],
        *["--instance", str(instance.root), "--state-dir", str(instance.session(who)), "--session-id", who],
        *["--value", f"task-workspace={instance.workspace(who)}", "--home", str(instance.session(who) / "home")],
        *["--workspace", str(instance.workspace(who)), *options, "--"],
    ]


def agent_words(provider: str, server: ModelServer, prompt: str, workspace: Path, *, own_sandbox: bool) -> list[str]:
    if provider == "opencode":
        return opencode_words(prompt)
    more = [] if own_sandbox else ["--dangerously-bypass-approvals-and-sandbox"]
    return codex_words(server, prompt, workspace=workspace, writable=[workspace], more=more)


def agent(
    instance: Instance,
    who: str,
    provider: str,
    server: ModelServer,
    prompt: str,
    *,
    options: Sequence[str] | None,
) -> subprocess.Popen[str]:
    """Starts an agent of the instance; without *options* outside the sandbox."""
    workspace = instance.workspace(who)
    words = agent_words(provider, server, prompt, workspace, own_sandbox="locked-mounts" in (options or ()))
    prefix = [] if options is None else sandboxed(instance, who, provider, options)
    variables = {**environment(instance.session(who) / "home"), "TMPDIR": str(workspace)}
    variables |= {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(instance.event)}
    variables["PAPERCLIP_PROVIDER_TRACE_PATH"] = str(instance.root / "data" / "provider-traces" / f"{who}.jsonl")
    if provider == "opencode":
        variables |= opencode_variables(server)
    return subprocess.Popen(
        [*prefix, *words],
        cwd=workspace,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(provider: str, script: str) -> Answer:
    return shell(script) if provider == "codex" else call("bash", command=script, description="Does it")


def found_by_snooping(instance: Instance, provider: str, *, options: Sequence[str] | None) -> dict[str, str]:
    """What one agent learns of the other while that one works: name -> what its command printed."""
    waiting = replace(say("never said"), hang_after=1)
    snooping = [command(provider, instance.snooping()), command(provider, TASK), say("I did the task.")]
    with (
        ModelServer([], aside=lambda _: True, aside_answer=waiting) as peers,
        ModelServer(snooping, aside=without_tools, aside_answer=say("A title")) as server,
    ):
        peer = agent(instance, "peer", provider, peers, f"Your case: {instance.marks['database']}", options=options)
        try:
            wait_for_session(instance, peers, peer)
            mine = agent(instance, "mine", provider, server, "Do the task.", options=options)
            try:
                output, errors = mine.communicate(timeout=TIMEOUT)
            finally:
                mine.kill()
                mine.wait()
        finally:
            peer.kill()
            peer.communicate()
        assert mine.returncode == 0, errors + output
        outputs = server.last.tool_outputs
    assert (instance.workspace("mine") / "made.txt").read_text() == "the task is done"
    assert "the task is done" in outputs[1]
    parts = outputs[0].split("<")
    return {name: part for part in parts for name in SNOOPING if part.startswith(f"{name}>")}


def wait_for_session(instance: Instance, server: ModelServer, process: subprocess.Popen[str]) -> None:
    """Waits until the peer has asked its model, and written down what it was told: then it waits for the answer."""
    end = time.monotonic() + TIMEOUT
    mark = instance.marks["database"].encode()
    while not (any(request.tools for request in server.requests) and holds(instance.session("peer"), mark)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


def holds(directory: Path, text: bytes) -> bool:
    """Whether a file below a directory in which an agent works holds *text*."""
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and text in path.read_bytes():
                return True
    return False


@pytest.mark.parametrize("provider", ["codex", "opencode"])
def test_without_the_sandbox_an_agent_finds_everything(instance: Instance, provider: str) -> None:
    found = found_by_snooping(instance, provider, options=None)
    missed = [name for name, mark in instance.marks.items() if mark not in found[name]]
    assert missed == [], found
    assert instance.marks["database"] in found["cmdline"]  # the other agent's prompt


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("codex", ()),
        ("codex", ("--wall", "locked-mounts")),
        ("opencode", ()),
        ("opencode", ("--wall", "locked-mounts")),
    ],
    ids=["codex", "codex-with-its-own-sandbox", "opencode", "opencode-locked-mounts"],
)
def test_in_the_sandbox_it_finds_nothing_and_does_its_task(
    instance: Instance, provider: str, options: Sequence[str]
) -> None:
    found = found_by_snooping(instance, provider, options=options)
    assert set(found) == set(SNOOPING)
    assert "mark-" not in "".join(found.values())
    assert list((instance.session("mine") / "home").iterdir())  # its own session is kept, outside
