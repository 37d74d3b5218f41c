"""Runs one workflow under act inside the exec audit and puts together where its canaries appeared."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.cells.wording import suggestion
from runner_e2e.errors import ConfigurationError, Place, UsageError
from runner_e2e.sandbox.audit_report import command_line
from runner_e2e.sandbox.canary import Finder
from runner_e2e.sandbox.exec_audit import Exec, Options, audit
from runner_e2e.workflow_audit.act_log import ActLog
from runner_e2e.workflow_audit.disk import Disk
from runner_e2e.workflow_audit.event import build_event
from runner_e2e.workflow_audit.model import Sighting, StepRun, Surface, WorkflowAudit, WorkflowOptions
from runner_e2e.workflow_audit.observer import Observer
from runner_e2e.workflow_audit.staging import Stage, find_act, lay_out
from runner_e2e.workflow_audit.workflow_file import read_workflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.sandbox.audit_model import Audit
    from runner_e2e.workflow_audit.event import Event

__all__ = ["audit_workflow"]

POSITION = re.compile(r"Line: (\d+) Column (\d+): ((?:(?!Line: \d+ Column ).)*)")
NOISE = ("docker connection", "Actions YAML Schema Validation Error", "For more information, see: https://nektosact")
# Labels of GitHub's own Linux runners, for expressions that come to one of them.
COMMON_LABELS = ("ubuntu-latest", "ubuntu-24.04", "ubuntu-22.04", "ubuntu-24.04-arm", "ubuntu-slim", "self-hosted")
# Their shells and programs are not here; act then says that it passes the job over.
OTHER_SYSTEMS = ("windows", "macos")
CHOSEN = "files were searched for the whole value only, since it is not random: its words may stand anywhere"
NOT_EVALUATED = (
    "act does not evaluate run-name, concurrency and environment",
    "act prints no log header, where GitHub shows each step's script and env",
)


def audit_workflow(
    path: Path, options: WorkflowOptions, *, sink: Callable[[Exec, StepRun | None], None] | None = None
) -> WorkflowAudit:
    """Runs the workflow at *path* on this machine and reports where its canaries went.

    *sink* gets every exec with the step that it belongs to (None: act's own) after the run, in order.

    Raises :class:`ConfigurationError` for a file that is no workflow, an unknown input, an action that cannot be had
    offline and a workflow that act refuses; :class:`UsageError` where the call is wrong; :class:`LaunchError` when
    act or strace is missing or may not trace. A job that fails is no error: the audit is then incomplete.
    """
    shown = os.path.relpath(path)
    shown = shown if not shown.startswith("..") else str(path)
    if not path.is_file():
        raise UsageError(f"{shown} {'is no file' if path.exists() else 'does not exist'}", fix="name a workflow file")
    workflow = read_workflow(path, name=shown)
    event = build_event(workflow, options, shown)
    if options.job and options.job not in workflow.jobs:
        raise UsageError(f"{shown} has no job {options.job!r}", fix=suggestion(options.job, workflow.jobs))
    act = find_act()
    with tempfile.TemporaryDirectory(prefix="runner-e2e-audit-", ignore_cleanup_errors=True) as base:
        stage = lay_out(
            path,
            Path(base).resolve(),
            event=event.payload,
            local_repositories={key: value.resolve() for key, value in options.local_repositories.items()},
        )
        jobs = (options.job,) if options.job else workflow.jobs
        return Run(shown, stage, event, options, act, jobs, sink).run()


class Run:
    """One run in its stage."""

    def __init__(  # noqa: PLR0913, PLR0917 - built in one place
        self,
        shown: str,
        stage: Stage,
        event: Event,
        options: WorkflowOptions,
        act: str,
        jobs: tuple[str, ...],
        sink: Callable[[Exec, StepRun | None], None] | None,
    ) -> None:
        self.shown = shown
        self.stage = stage
        self.event = event
        self.options = options
        self.act = act
        self.jobs = jobs
        self.sink = sink
        self.finder = Finder(event.canaries, public=options.public)
        self.execs: list[Exec] = []
        self.gated: list[Exec] = []

    def run(self) -> WorkflowAudit:
        """Runs act to its end and judges."""
        log, writer = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        observer = Observer(self.stage, self.finder, self.disk(self.stage.home, self.stage.temporary), log)
        with tempfile.TemporaryFile() as errors:
            observer.start()
            try:
                execs = audit(
                    self.command(),
                    canaries=self.event.canaries,
                    options=self.exec_options(),
                    environ=self.stage.environ(),
                    directory=self.stage.repository,
                    descriptors={0: null, 1: writer, 2: errors.fileno()},
                    sink=self.take,
                )
            finally:
                os.close(writer)
                os.close(null)
                observer.finish()
                os.close(log)
            errors.seek(0)
            said = self.finder.redact(errors.read(1 << 16).decode("utf-8", "replace"))
        self.refuse_unstarted(execs, observer, said)
        return self.judge(execs, observer, said)

    def disk(self, *roots: Path) -> Disk:
        """Looks into files: for a value that somebody chose as a whole only, since its words stand in many files."""
        longest = max(len(canary.value) for canary in self.event.canaries)
        finder = self.finder if self.event.random else Finder(self.event.canaries, piece_length=longest + 1)
        return Disk(finder, roots, base=self.stage.base, since=time.time() - 1)

    def command(self) -> list[str]:
        """The command line of act. The canaries are in the event file alone."""
        words = [self.act, self.event.name, "-e", str(self.stage.event), "-W", str(self.stage.workflow)]
        for label in dict.fromkeys((*COMMON_LABELS, *self.stage.labels)):
            if label.lower().startswith(OTHER_SYSTEMS):
                continue
            words += ["-P", f"{label.lower()}=-self-hosted"]
        for repository, directory in self.stage.local_repositories.items():
            words += ["--local-repository", f"{repository}={directory}"]
        for flag, value in (
            ("--secret-file", self.options.secret_file),
            ("--var-file", self.options.variable_file),
        ):
            words += [flag, str(value.resolve() if value else self.stage.base / "none")]
        words += ["--env-file", str(self.stage.base / "none"), "--input-file", str(self.stage.base / "none")]
        words += ["-j", self.options.job] if self.options.job else []
        return [
            *words,
            *("--json", "--no-skip-checkout", "--no-cache-server", "--concurrent-jobs", "1"),
            *("--pull=false", "--action-offline-mode"),
        ]

    def exec_options(self) -> Options:
        return Options(
            linger=0.5,
            end_survivors=True,
            timeout=self.options.timeout,
            own_programs=frozenset(str(path) for path in self.stage.shells.iterdir()),
            public=self.options.public,
        )

    def take(self, made: Exec) -> None:
        """Keeps what the judgement needs: execs with a canary, those of the gate, and all if somebody wants them."""
        if made.own:
            self.gated.append(made)
        elif self.sink or made.leaks or made.environ:
            self.execs.append(made)

    def refuse_unstarted(self, execs: Audit, observer: Observer, said: str) -> None:
        """Raises when act ran no job at all."""
        if observer.jobs or observer.steps or execs.timed_out:
            return
        raise refusal(self.shown, [*observer.messages, *said.splitlines()])

    def judge(self, execs: Audit, observer: Observer, said: str) -> WorkflowAudit:
        """Puts everything together."""
        outcome = WorkflowAudit(
            workflow=self.shown,
            event_name=self.event.name,
            canaries=self.event.canaries,
            execs=execs,
            status=execs.status,
            jobs=list(observer.jobs.values()),
            steps=observer.steps,
            notes=[*self.stage.notes, *NOT_EVALUATED, *([] if self.event.random else [CHOSEN])],
            gaps=list(execs.gaps),
        )
        steps = self.match_steps(observer.steps)
        for made in self.execs:
            step = self.step_of(made, execs, steps)
            if self.sink:
                self.sink(made, step)
            for sighting in exec_sightings(made, step, self.finder):
                observer.see(sighting)
            if made.leaks:
                outcome.leaking.append((made, step))
        for sighting in self.artifact_sightings():
            observer.see(sighting)
        outcome.sightings = list(observer.sightings.values())
        outcome.gaps += self.unseen(execs, observer, said)
        outcome.notes += [f"job {job} did not run" for job in self.jobs if job not in observer.job_ids]
        if observer.disk.cut_short:
            outcome.gaps.append("the shared temporary directories hold too many files to look at all of them")
        return outcome

    def match_steps(self, steps: list[StepRun]) -> dict[int, StepRun]:
        """The step of each process at the gate: both lists are in the order in which act started the steps."""
        waiting = list(self.gated)
        found: dict[int, StepRun] = {}
        for step in steps:
            while waiting:
                made = waiting.pop(0)
                if made.pid == step.pid:
                    step.process = made.process
                    found[made.process] = step
                    break
        return found

    def step_of(self, made: Exec, execs: Audit, steps: dict[int, StepRun]) -> StepRun | None:
        return next((steps[each.index] for each in execs.lineage(made.process) if each.index in steps), None)

    def artifact_sightings(self) -> list[Sighting]:
        """Names and contents of artifacts, and cache keys, that the stand-ins recorded."""
        records = self.stage.artifacts / "records.jsonl"
        found: list[Sighting] = []
        lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
        for record in map(json.loads, lines):
            cache = record["kind"] == "cache"
            surface: Surface = "cache key" if cache else "artifact name"
            name = str(record["name"])
            blank = Sighting(surface=surface, canary="", kind="value", job=self.finder.redact(str(record["job"])))
            shown = self.finder.redact(name)
            found += [
                replace(blank, canary=each.canary, kind=each.kind, place=shown) for each in self.finder.find(name)[:1]
            ]
            if not cache:
                found += self.content_sightings(replace(blank, surface="artifact file"), int(record["number"]), shown)
        return found

    def content_sightings(self, blank: Sighting, number: int, artifact: str) -> list[Sighting]:
        directory = self.stage.artifacts / str(number)
        return [
            replace(
                blank,
                canary=each.occurrence.canary,
                kind=each.occurrence.kind,
                place=f"{artifact}: {self.finder.redact(str(each.path.relative_to(directory)))}",
            )
            for each in self.disk(directory).changed()
            if each.path.is_relative_to(directory)
        ]

    def unseen(self, execs: Audit, observer: Observer, said: str) -> list[str]:
        """What did not run, so that nothing is known of it."""
        found = [f"job {job.name}: {job.result}" for job in observer.jobs.values() if job.result != "success"]
        if execs.timed_out:
            last = observer.steps[-1].words if observer.steps else "before the first step"
            found.insert(0, f"killed after {self.options.timeout:g} seconds, in: {last}")
        if found or execs.status:
            errors = [line for line in said.splitlines() if line.startswith("Error: ")]
            messages = [message for line in [*observer.messages, *errors] if (message := plain_message(line))]
            found += [f"act says: {message[:300]}" for message in dict.fromkeys(messages)]
        return found


def refusal(shown: str, messages: list[str]) -> ConfigurationError:
    """Why act ran no job, with the place that it names last: that is the innermost."""
    said = [message for line in messages if (message := plain_message(line))]
    text = "\n".join(said)
    first = next((line for line in said if line.startswith("Error: ")), "").removeprefix("Error: ")
    positions = list(POSITION.finditer(first))
    if positions:
        line, column, what = positions[-1].groups()
        return ConfigurationError(
            f"act refuses the workflow: {what}",
            why=first[: positions[-1].start()].rstrip(": ") or "it does not fit the schema of workflows",
            fix="correct that line",
            place=Place(path=shown, line=int(line), column=int(column)),
        )
    return ConfigurationError(
        "act runs no job of this workflow",
        why=text[:600] or "no job's `if` is true for this event, with these inputs",
        fix="give other inputs, another --event-name or another --job",
        place=Place(path=shown),
    )


def plain_message(line: str) -> str:
    """A line of act without its JSON; empty for what tells a user nothing."""
    message = ActLog().read(line).message.strip()
    return "" if not message or any(noise in message for noise in NOISE) else message


def exec_sightings(made: Exec, step: StepRun | None, finder: Finder) -> list[Sighting]:
    """What one exec showed."""
    program = finder.redact(made.program)
    job, name = (step.job, step.name) if step else ("", "(act)")
    found: list[Sighting] = []
    for leak in made.leaks:
        part = f"argument {leak.argument}" if leak.where == "argument" else f"the {leak.where}"
        words = command_line(finder.redact(argument) for argument in made.argv)
        failed = f" (not started: {made.error})" if made.error else ""
        found.append(
            Sighting(
                surface="argv",
                canary=leak.occurrence.canary,
                kind=leak.occurrence.kind,
                job=job,
                step=name,
                place=f"{part} of {program}{failed}",
                text=words[:200],
            )
        )
    found += [
        Sighting(
            surface="environ",
            canary=held.canary,
            kind=held.kind,
            job=job,
            step=name,
            place=held.name,
            text=f"first in {program}",
        )
        for held in made.environ
    ]
    return found
