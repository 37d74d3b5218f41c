"""A small world to try the sandbox on: a harness with secrets everywhere, and a directory tree as a product has one."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from runner_e2e.errors import LaunchError
from runner_e2e.sandbox.attempts.model import Targets, Trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["ID_VARIABLE", "StoppedError", "World"]

ID_VARIABLE: Final = "SANDBOX_PROBE_SELECTED_ID"
_SOURCE: Final = Path(__file__).resolve().parent.parent
_RUNNER_FILES: Final = {
    "event": "_github_workflow/event.json",
    "step-script": "5f0e1d2c-1111-2222-3333-444455556666.sh",
    "file-command": "_runner_file_commands/set_output_1",
    "diagnostics": "_diag/Worker_1.log",
}


class StoppedError(Exception):
    """Somebody asked to stop before every attempt was made."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Everything is made anew, in a directory of its own, and taken away at the end."""

    root: Path
    canary: str
    targets: Targets
    harness: subprocess.Popen[str]
    descriptor: int

    @classmethod
    def make(
        cls, *, python: str = sys.executable, furnish: Callable[[Path, str], list[dict[str, str]]] | None = None
    ) -> Self:
        """Makes the directories and starts the harness's stand-in.

        *furnish* may add files that hold the canary to the directory it is given, and return named checks of them.
        """
        root = Path(tempfile.mkdtemp(prefix="sandbox-probe-")).resolve()
        try:
            return cls._make_in(root, python, furnish)
        except BaseException:  # an interrupt from the keyboard, too
            shutil.rmtree(root)
            raise

    @classmethod
    def _make_in(cls, root: Path, python: str, furnish: Callable[[Path, str], list[dict[str, str]]] | None) -> Self:
        root.chmod(0o755)
        canary = f"canary-{secrets.token_hex(12)}"
        wishes = _make_files(root, canary)
        wishes["checks"] = furnish(root, canary) if furnish else []
        harness = subprocess.Popen(
            [python, "-I", "-S", "-c", _code("stand_in"), str(root / "program"), canary],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={ID_VARIABLE: canary},
            cwd="/",
            process_group=0,  # an interrupt from the keyboard is for the probe, which ends it
        )
        assert harness.stdin is not None and harness.stdout is not None  # noqa: PT018 - for the type checker
        try:
            harness.stdin.write(json.dumps(wishes) + "\n")
            harness.stdin.flush()
            answer = harness.stdout.readline()
        except BaseException:
            harness.communicate()  # it takes away what would outlast it
            raise
        if not answer:
            raise LaunchError(
                "the probe's stand-in for a harness did not start",
                why=f"{python} ended with status {harness.wait()}",
                fix="check that this Python starts with -I -S",
            )
        places = {**wishes, **json.loads(answer)}
        descriptor = os.open(places["secret"], os.O_RDONLY)
        fields = {name: places[name] for name in Targets.__dataclass_fields__ if name != "inherited"}
        return cls(
            root=root,
            canary=canary,
            targets=Targets(**fields, inherited=descriptor),
            harness=harness,
            descriptor=descriptor,
        )

    @property
    def work(self) -> Path:
        """Where the attempts start: a directory of the harness's repository."""
        return self.root / "repository" / "work"

    @property
    def hidden(self) -> tuple[str, ...]:
        """What a policy must hide."""
        return (str(self.root / "hidden"), str(self.root / "runner"))

    def environment(self) -> dict[str, str]:
        """The variables of the harness as they reach its child."""
        path = f"{self.root / 'commands'}:/usr/local/bin:/usr/bin:/bin"
        return {ID_VARIABLE: self.canary, "HOME": str(self.root / "home"), "PATH": path, "LANG": "C.UTF-8"}

    def command(self, python: str = sys.executable) -> list[str]:
        """The program that makes the attempts."""
        targets = self.root / "targets.json"
        targets.write_text(json.dumps(asdict(self.targets)))
        return [python, "-I", "-S", "-c", _code("program"), str(self.root / "program"), str(targets)]

    def trials(
        self, words: list[str], environment: dict[str, str] | None = None, *, stop: int = -1
    ) -> dict[str, Trial]:
        """Runs *words*, which end with :meth:`command`, as the harness would, and returns what came of each attempt.

        Raises :class:`StoppedError` as soon as the descriptor *stop* is readable.
        """
        with open(f"{self.root}/hidden/log", "w") as log:
            log.write(f"{self.canary}\n")
            log.flush()
            process = subprocess.Popen(
                words,
                cwd=self.work,
                env={**self.environment(), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                pass_fds=[self.descriptor],
            )
        with process:
            try:
                output = _read_until(process, stop)
            except BaseException:
                process.kill()  # the launcher's end is that of everything it started
                raise
        trials = [Trial(**json.loads(line)) for line in output.splitlines() if line.startswith('{"name"')]
        if not trials:
            message = Path(f"{self.root}/hidden/log").read_text(errors="replace")[-2000:]
            raise LaunchError(
                f"the attempts could not be made (status {process.returncode})",
                why=message,
                fix="do what the message says; `runner-e2e sandbox exec -- true` may say more",
            )
        return {trial.name: trial for trial in trials}

    def state(self, target: str) -> str:
        """What stands at the target of that name now: to be compared with itself later."""
        path = Path(getattr(self.targets, target))
        if path.is_dir():
            return " ".join(sorted(os.listdir(path)))
        return path.read_text() if path.exists() else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)
        try:
            self.harness.communicate()
            shutil.rmtree(self.root)
        except BaseException:  # an interrupt from the keyboard
            self.harness.communicate()
            shutil.rmtree(self.root, ignore_errors=True)
            raise


def _read_until(process: subprocess.Popen[str], stop: int) -> str:
    """Everything that *process* writes until its end; raises :class:`StoppedError` when *stop* is readable before."""
    assert process.stdout is not None
    source = process.stdout.fileno()
    blocks: list[bytes] = []
    while True:
        ready, _, _ = select.select([source, stop] if stop >= 0 else [source], [], [])
        if stop in ready:
            raise StoppedError
        block = os.read(source, 1 << 16)
        if not block:
            return b"".join(blocks).decode(errors="replace")
        blocks.append(block)


def _code(module: str) -> str:
    return (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        f"from runner_e2e.sandbox.attempts.{module} import main; main()"
    )


def _make_files(root: Path, canary: str) -> dict[str, object]:
    """Makes every file that the attempts are after; returns their places."""
    hidden, home, repository, commands = (root / name for name in ("hidden", "home", "repository", "commands"))
    for directory in (hidden, home, commands, repository / ".git" / "hooks", repository / "work" / "scratch"):
        directory.mkdir(parents=True)
    (hidden / "secret").write_text(f"{canary}\n")
    (hidden / "spare").write_text("spare\n")
    (hidden / "link").symlink_to(f"/nowhere/{canary}")
    program = hidden / "program"
    program.write_text(f"#!/bin/sh\necho {canary}\n")
    program.chmod(0o755)
    (home / ".bashrc").write_text(": startup\n")
    runner = {}
    for name, place in _RUNNER_FILES.items():
        path = root / "runner" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{canary}\n")
        runner[name] = str(path)
    _copy_program(root / "program")
    name = f"sandbox-probe-{secrets.token_hex(6)}"
    return {
        "name": name,
        "hidden": str(hidden),
        "secret": str(hidden / "secret"),
        "spare": str(hidden / "spare"),
        "link": str(hidden / "link"),
        "program": str(program),
        "hidden_socket": str(hidden / "socket"),
        "abstract_socket": name,
        "runner": runner,
        "scratch": str(repository / "work" / "scratch"),
        "startup_file": str(home / ".bashrc"),
        "missing_startup_file": str(home / ".zshenv"),
        "command_directory": str(commands),
        "hooks": str(repository / ".git" / "hooks"),
    }


def _copy_program(directory: Path) -> None:
    """Copies the modules that run inside: the agent's user may not be able to reach where the package lies."""
    for name in ("__init__.py", "kernel.py", "sandbox/__init__.py"):
        target = directory / "runner_e2e" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_SOURCE / name, target)
    for path in sorted((_SOURCE / "sandbox" / "attempts").glob("*.py")):
        target = directory / "runner_e2e" / "sandbox" / "attempts" / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)
