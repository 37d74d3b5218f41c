"""Files in, findings out: one analysis a file, bounded in time, and no file stops another."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, Place, Problem, UsageError
from runner_e2e.lint.jobs import run_action, run_workflow
from runner_e2e.lint.repository import Document, Repository, find_root, read_document
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.run import OutOfTimeError, Run
from runner_e2e.lint.settings import unknown_rules
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import Origin
from runner_e2e.lint.workflow import is_action
from runner_e2e.yaml_positions import Mapping as MappingNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from runner_e2e.lint.finding import Finding, Fix, Rule
    from runner_e2e.lint.shell.results import TracePoint

__all__ = ["FILES_PER_PROCESS", "TIME_LIMIT", "Report", "default_paths", "lint"]

TIME_LIMIT = 10.0
"""Seconds for one file, with everything it reaches."""

FILES_PER_PROCESS = 32
"""A process more is started for so many files: below, its start costs more than it saves."""

_SUFFIXES = (".yml", ".yaml")
_ACTION_NAMES = ("action.yml", "action.yaml")
_SKIPPED_FOLDERS = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found in *files* files; *problems* are those that could not be read, or our own defects.

    *fixes* has the fix of a finding by its place in *findings*, where there is one; *hints* are for the reader of the
    summary and change nothing.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    defects: int = 0
    trace: tuple[TracePoint, ...] = ()
    fixes: Mapping[int, Fix] = field(default_factory=dict)
    hints: tuple[str, ...] = ()


def default_paths(root: Path) -> list[Path]:
    """What is linted in the repository at *root*: workflows, templates of workflows, and every ``action.yml``."""
    found = list(_yaml_files(root / ".github" / "workflows"))
    found += _yaml_files(root / "workflows-templates")
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - _SKIPPED_FOLDERS)
        found += [Path(folder, name) for name in _ACTION_NAMES if name in files]
    return found


def _yaml_files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES and path.is_file())


def _expanded(paths: Sequence[Path], current: Path) -> Iterator[tuple[Path, bool]]:
    """Every file to lint, and whether it was named itself."""
    for path in paths or (current,):
        if path.is_dir():
            repository = (path / ".github" / "workflows").is_dir() or not paths
            inner = default_paths(path) if repository else _all_yaml(path)
            yield from ((each, False) for each in inner)
        elif path.exists():
            yield path, True
        else:
            raise UsageError(f"there is no file {path}", fix="check the path")


def _all_yaml(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(set(names) - _SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(_SUFFIXES))


def lint(
    paths: Sequence[Path],
    *,
    current: Path,
    time_limit: float = TIME_LIMIT,
    trace: bool = False,
    processes: int = 1,
) -> Report:
    """Lints *paths*: files, or folders whose workflows and actions are taken; nothing means the folder *current*.

    Many files are shared among at most *processes* processes, unless there is a *trace* to keep.

    Raises :class:`~runner_e2e.errors.UsageError` for a path that does not exist.
    """
    files: dict[Path, tuple[Path, bool]] = {}
    for path, explicit in _expanded(paths, current):
        files.setdefault(path.resolve(), (path, explicit))
    chosen = list(files.values())
    count = 1 if trace else min(processes, len(chosen) // FILES_PER_PROCESS)
    if count < 2:
        return _lint_files(chosen, current, time_limit, trace=trace)
    # Imported here: most calls have few files, and these modules take longer to load than such a call.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Forked: the children have everything loaded, and only findings come back.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
        shares = [chosen[number::count] for number in range(count)]
        reports = pool.map(partial(_lint_files, current=current, time_limit=time_limit, trace=False), shares)
        return _merged(tuple(reports))


def _lint_files(files: Sequence[tuple[Path, bool]], current: Path, time_limit: float, *, trace: bool) -> Report:
    linter = _Linter(current.resolve(), time_limit, trace=trace)
    for path, explicit in files:
        linter.check(path, explicit=explicit)
    return linter.report(len(files))


def _merged(reports: Sequence[Report]) -> Report:
    """One report of several: what two of them reached is told once."""
    found: dict[tuple[object, ...], Finding] = {}
    for report in reports:
        for finding in report.findings:
            _keep(found, finding)
    problems = dict.fromkeys(problem for report in reports for problem in report.problems)
    return Report(
        findings=_in_order(found.values()),
        problems=tuple(sorted(problems, key=lambda problem: problem.place or Place(path=""))),
        files=sum(report.files for report in reports),
        defects=sum(report.defects for report in reports),
    )


def _keep(found: dict[tuple[object, ...], Finding], finding: Finding) -> None:
    """Adds *finding*; of two that say the same, the surer one stays."""
    key = (finding.rule, finding.span, finding.labels, finding.message)
    known = found.get(key)
    if known is None or known.confidence < finding.confidence:
        found[key] = finding


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(findings, key=lambda each: (each.span.path, each.span.line, each.span.column, each.rule, each.message))
    )


class _Linter:
    def __init__(self, current: Path, time_limit: float, *, trace: bool) -> None:
        self.current = current
        self.time_limit = time_limit
        self.tracing = trace
        self.trace: list[TracePoint] = []
        self.repositories: dict[Path, Repository] = {}
        self.findings: dict[tuple[object, ...], Finding] = {}
        self.problems: dict[Problem, None] = {}
        self.defects = 0

    def report(self, files: int) -> Report:
        return Report(
            findings=_in_order(self.findings.values()),
            problems=tuple(sorted(self.problems, key=lambda problem: problem.place or Place(path=""))),
            files=files,
            defects=self.defects,
            trace=tuple(self.trace),
        )

    def repository(self, path: Path) -> Repository:
        root = find_root(path.absolute()).resolve()
        if root not in self.repositories:
            relative = os.path.relpath(root, self.current)
            shown = "" if relative == "." else str(root) if relative.startswith("..") else relative
            repository = self.repositories[root] = Repository(root, shown=shown)
            wrong = unknown_rules(repository.settings, (rule.id for rule in RULES))
            if repository.settings_error is not None:
                wrong = repository.settings_error.problems
            self.problems.update(dict.fromkeys(wrong))
        return self.repositories[root]

    def check(self, path: Path, *, explicit: bool) -> None:
        """Lints one file."""
        repository = self.repository(path)
        shown = _shown(path.absolute(), self.current)
        try:
            document = read_document(path, shown)
        except ConfigurationError as error:
            self.problems.update(dict.fromkeys(error.problems))
            return
        if not isinstance(document.root, MappingNode) or not (document.root.get("jobs") or is_action(document.root)):
            if explicit:
                self.problems[_no_workflow(shown)] = None
            return
        run = Run(repository, deadline=time.process_time() + self.time_limit, trace=self.tracing)
        self.analyse(run, document)
        for finding in _findings(run, document, RULES):
            _keep(self.findings, finding)
        if run.trace is not None:
            self.trace += run.trace

    def analyse(self, run: Run, document: Document) -> None:
        try:
            if is_action(document.root):
                run_action(run, document)
            else:
                run_workflow(run, document)
        except OutOfTimeError:
            run.report(_gap(document, f"the time limit of {self.time_limit:g} s for one file is used up"))
        except RecursionError:
            run.report(_gap(document, "it nests too deeply"))
        except Exception as error:  # noqa: BLE001 - one file must not stop the others; the exit code tells
            self.defects += 1
            place = Place(path=document.path)
            what = f"a defect of runner-e2e: {type(error).__name__}: {error}"
            self.problems[Problem(what=what, fix="please report it with this file", place=place)] = None


def _gap(document: Document, reason: str) -> Sighting:
    origin = Origin(path=document.path, text=document.text)
    return Sighting(surface=Surface.UNANALYSABLE, origin=origin, start=0, end=0, subject=reason)


def _no_workflow(shown: str) -> Problem:
    return Problem(
        what="this is neither a workflow nor an action",
        why="there is no `jobs` and no `runs`",
        fix="name workflows and actions only",
        place=Place(path=shown),
    )


def _shown(path: Path, current: Path) -> str:
    """The path as messages show it: from the current folder where it is below, else whole."""
    relative = os.path.relpath(path, current)
    return str(path) if relative.startswith("..") else relative


def _findings(run: Run, document: Document, rules: Sequence[Rule]) -> Iterator[Finding]:
    for rule in rules:
        if rule.inspect is not None:
            yield from rule.inspect(run, document)
        if rule.check is not None:
            yield from (finding for sighting in run.sightings if (finding := rule.check(sighting)) is not None)
