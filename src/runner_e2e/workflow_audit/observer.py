"""Stands between the steps of a running workflow: reads act's log, and looks at the files when a step ends.

Each program that act starts for a step first comes to a gate (see :mod:`staging`) and waits there twice, before and
after its work, so that nothing of the next step has happened when the files are looked at.
"""

from __future__ import annotations

import os
import select
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.workflow_audit.act_log import ActLog, LogLine
from runner_e2e.workflow_audit.model import JobRun, Sighting, StepRun, Surface

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.sandbox.canary import Finder
    from runner_e2e.workflow_audit.disk import Disk, FoundFile
    from runner_e2e.workflow_audit.staging import Stage

__all__ = ["Observer"]

TEXT_LENGTH = 200
SKIPPED = "unsupported platform"
FILE_COMMANDS = frozenset({"envs.txt", "outputcmd.txt", "statecmd.txt", "pathcmd.txt"})
COMMAND_SURFACES: dict[str, Surface] = {
    "set-output": "output",
    "set-env": "file command",
    "save-state": "file command",
    "add-path": "file command",
    "summary": "step summary",
}


class Observer:
    """A thread that serves the gate and reads the log until act closes it."""

    def __init__(self, stage: Stage, finder: Finder, disk: Disk, log: int) -> None:
        self.stage = stage
        self.finder = finder
        self.log = log
        self.disk = disk
        self.act = ActLog()
        self.steps: list[StepRun] = []
        self.jobs: dict[str, JobRun] = {}
        self.job_ids: set[str] = set()
        self.sightings: dict[tuple[object, ...], Sighting] = {}
        self.messages: list[str] = []
        self.failure: BaseException | None = None
        self.rest = b""
        self.asked = b""
        # Both ends of both pipes stay open here, so that neither side waits for the other to open one.
        self.gate = os.open(stage.gate, os.O_RDWR)
        self.answer = os.open(stage.answer, os.O_RDWR)
        self.thread = threading.Thread(target=self._run, name="workflow observer", daemon=True)

    def start(self) -> None:
        """Begins to serve."""
        self.thread.start()

    def finish(self) -> None:
        """Waits until the log is read to its end; raises what went wrong in the thread."""
        self.thread.join()
        os.close(self.gate)
        os.close(self.answer)
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        open_log = True
        while open_log:
            ready, _, _ = select.select([self.log, self.gate], [], [])
            if self.gate in ready:
                # What act said of the step stands in the log before the step comes to the gate.
                open_log = self._read_log(wait=False)
                self._serve()
            elif self.log in ready:
                open_log = self._read_log(wait=True)

    def _read_log(self, *, wait: bool) -> bool:
        """Reads what is there; False at the end."""
        while wait or select.select([self.log], [], [], 0)[0]:
            chunk = os.read(self.log, 1 << 20)
            if not chunk:
                return False
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            for line in lines:
                self._guarded(self._take_line, self.act.read(line.decode("utf-8", "replace")))
            wait = False
        return True

    def _serve(self) -> None:
        *requests, self.asked = (self.asked + os.read(self.gate, 65536)).split(b"\n")
        for request in requests:
            self._guarded(self._take_request, request.decode("utf-8", "replace").split(" "))
            os.write(self.answer, b"go\n")

    def _guarded(self, take: object, what: object) -> None:
        """Runs one handler; a failure must not leave a step waiting at the gate for ever."""
        try:
            take(what)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001 - raised again by finish()
            self.failure = self.failure or error

    def _take_request(self, words: list[str]) -> None:
        if words[0] == "begin":
            current = self.act.current
            self.steps.append(
                StepRun(
                    index=len(self.steps),
                    job=self.finder.redact(current.job),
                    job_id=current.job_id,
                    name=self.finder.redact(current.step),
                    step_id=current.step_id,
                    stage=current.stage,
                    program=words[2],
                    pid=int(words[1]),
                )
            )
            self._look()
        else:
            pid = int(words[1])
            step = next(step for step in reversed(self.steps) if step.pid == pid)
            step.status = int(words[2])
            self._look()

    def _look(self) -> None:
        step = self.steps[-1]
        for found in self.disk.changed():
            self.see(self._file_sighting(found, step))

    def _file_sighting(self, found: FoundFile, step: StepRun) -> Sighting:
        surface, place = self._place(found.path)
        return Sighting(
            surface=surface,
            canary=found.occurrence.canary,
            kind=found.occurrence.kind,
            job=step.job,
            step=step.name,
            place=self.finder.redact(place) + (" (its name)" if found.in_name else ""),
        )

    def _place(self, path: Path) -> tuple[Surface, str]:
        """Which of the runner's files this is, and the path as a user knows it."""
        act = self.stage.home / ".cache" / "act"
        if path.is_relative_to(act):
            _, *parts = path.relative_to(act).parts
            below = "/".join(parts[1:])
            match parts:
                case ["hostexecutor", *_]:
                    return "workspace file", f"$GITHUB_WORKSPACE/{below}"
                case ["tmp", *_]:
                    return "temporary file", f"$RUNNER_TEMP/{below}"
                case ["act", "actions", action, *rest]:
                    return "other file", f"{'/'.join(rest)} of action {action}"
                case ["act", "workflow", "event.json"]:
                    return "event file", "$GITHUB_EVENT_PATH"
                case ["act", "workflow", "SUMMARY.md"]:
                    return "step summary", "$GITHUB_STEP_SUMMARY"
                case ["act", "workflow", name] if name in FILE_COMMANDS:
                    return "file command", name
                case ["act", "workflow", name]:
                    return "step script", name
        if path.is_relative_to(self.stage.home):
            return "home file", f"$HOME/{path.relative_to(self.stage.home)}"
        if path.is_relative_to(self.stage.temporary):
            return "temporary file", f"$TMPDIR/{path.relative_to(self.stage.temporary)}"
        return "other file", str(path)

    def _take_line(self, line: LogLine) -> None:
        # A job of a reusable workflow is named after the job that calls it.
        self.job_ids |= {line.job_id, line.job.split("/", 1)[0]}
        self._look_at("job name", line, line.job, "")
        self._look_at("job name", line, line.matrix, "a value of the matrix, which is part of a job's default name")
        self._look_at("step name", line, line.step, "")
        if line.job_result:
            name = self.finder.redact(line.job)
            self.jobs[name] = JobRun(job_id=line.job_id, name=name, result=line.job_result)
        if line.command in COMMAND_SURFACES:
            summary = line.command == "summary"
            place = "$GITHUB_STEP_SUMMARY" if summary else f"{line.command} {line.name}"
            self._look_at(COMMAND_SURFACES[line.command], line, line.value, place)
            self._look_at(COMMAND_SURFACES[line.command], line, line.name, f"the name of a {line.command}")
        elif line.printed:
            self._look_at("log", line, line.message.rstrip("\r\n"), "")
        elif not line.job or line.level in {"error", "warning"} or SKIPPED in line.message:
            self.messages.append(self.finder.redact(line.message.strip()))

    def _look_at(self, surface: Surface, line: LogLine, text: str, place: str) -> None:
        for found in self.finder.find(text)[:1]:
            name_itself = surface in {"job name", "step name"}
            self.see(
                Sighting(
                    surface=surface,
                    canary=found.canary,
                    kind=found.kind,
                    job=self.finder.redact(line.job),
                    step="" if surface == "job name" else self.finder.redact(line.step),
                    place=self.finder.redact(place),
                    text="" if name_itself else self.finder.redact(text)[:TEXT_LENGTH],
                )
            )

    def see(self, sighting: Sighting) -> None:
        """Notes a sighting; the same again is counted."""
        key = (sighting.surface, sighting.canary, sighting.kind, sighting.job, sighting.step, sighting.place)
        before = self.sightings.get(key)
        self.sightings[key] = replace(before, count=before.count + 1) if before else sighting
