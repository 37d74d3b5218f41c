"""One file to its result: read, followed, judged by every rule, and what the repository says about rules applied."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, Place, Problem
from runner_e2e.lint.configured import configured
from runner_e2e.lint.files import find_root, shown_path
from runner_e2e.lint.ignores import MARK, document_ignores, script_ignores
from runner_e2e.lint.jobs import run_action, run_workflow
from runner_e2e.lint.repetitions import Repetitions
from runner_e2e.lint.repository import Document, Repository, read_document
from runner_e2e.lint.result import FileResult, Ignore, Ignored
from runner_e2e.lint.rules import RULES, invalid_ignore
from runner_e2e.lint.run import OutOfTimeError, Run
from runner_e2e.lint.selection import unknown_rule
from runner_e2e.lint.settings import CATALOG, unknown_rules
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import Origin
from runner_e2e.lint.workflow import is_action
from runner_e2e.yaml_positions import Mapping

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from runner_e2e.lint.finding import Finding, Profile, Rule

__all__ = ["Analyst"]

_PROFILES: dict[str, Profile] = {rule.id: rule.profile for rule in RULES}
_REPAIRS = frozenset(rule.id for rule in RULES if rule.repair is not None)
# One that leads out of the repository is another mistake than none at all.
_CATALOG_READS = (CATALOG, f"{CATALOG}/.")


class Analyst:
    """Analyses files one by one; what they share of a repository is read once.

    Paths are shown from the folder *current* (resolved), after *label*; *time_limit* is seconds of processor time a
    file; *texts* stand for the YAML files at these resolved paths.
    """

    def __init__(
        self,
        current: Path,
        *,
        time_limit: float,
        trace: bool = False,
        label: str = "",
        texts: collections.abc.Mapping[Path, str] | None = None,
    ) -> None:
        self.current = current
        self.time_limit = time_limit
        self.label = label
        self.texts = texts
        self._trace = trace
        self._roots: dict[Path, Path] = {}
        self._repositories: dict[Path, Repository] = {}
        self._repetitions: dict[Path, Repetitions] = {}
        self._ignores: dict[str, tuple[Ignore, ...]] = {}

    def repository(self, path: Path) -> Repository:
        """The repository of a file."""
        folder = path.absolute().parent
        if folder not in self._roots:
            self._roots[folder] = find_root(path.absolute()).resolve()
        root = self._roots[folder]
        if root not in self._repositories:
            relative = shown_path(root, self.current)
            shown = self.label + ("" if relative == "." else relative)
            repository = self._repositories[root] = Repository(root, shown=shown, texts=self.texts)
            self._repetitions[repository.root] = Repetitions(repository)
        return self._repositories[root]

    def result(self, path: Path, *, explicit: bool) -> FileResult:
        """The result for one file; *explicit* when a user named it, so that another kind of file is a mistake."""
        repository = self.repository(path)
        repository.reads = set(_CATALOG_READS)
        shown = self.label + shown_path(path.absolute(), self.current)
        settings = repository.settings
        base = FileResult(problems=_settings_problems(repository), rules=settings.rules, reads=_CATALOG_READS)
        if settings.rules.ignore.match(repository.relative(shown)):
            return base
        try:
            document = read_document(path, shown, self.texts)
        except ConfigurationError as error:
            return replace(base, problems=(*base.problems, *error.problems))
        if not isinstance(document.root, Mapping) or not (document.root.get("jobs") or is_action(document.root)):
            return replace(base, problems=(*base.problems, _no_workflow(shown))) if explicit else base
        return self._followed(document, repository, base)

    def _followed(self, document: Document, repository: Repository, base: FileResult) -> FileResult:
        deadline = time.process_time() + self.time_limit
        run = Run(repository, deadline=deadline, trace=self._trace, repetitions=self._repetitions[repository.root])
        judgement = _Judgement(run, document, self.time_limit)
        judgement.judge()
        findings, off = _configured(judgement.findings, repository)
        kept, ignored = self._without_ignored(findings, document, repository)
        ignores = self._ignores_for(document, repository)
        mistakes, _ = _configured((invalid_ignore.finding(one) for one in ignores if one.mistake), repository)
        return replace(
            base,
            findings=(*kept, *mistakes),
            off=tuple(off),
            repairs=tuple(sorted({finding.rule for finding in kept} & _REPAIRS)),
            ignored=tuple(ignored),
            ignores=ignores,
            problems=(*base.problems, *judgement.problems),
            callable=_is_callable(document),
            complete=judgement.complete,
            defects=len(judgement.problems),
            reads=tuple(sorted(repository.reads)),
            trace=tuple(run.trace or ()),
        )

    # --- ignores

    def _without_ignored(
        self, findings: Iterable[Finding], document: Document, repository: Repository
    ) -> tuple[list[Finding], list[Ignored]]:
        kept: list[Finding] = []
        ignored: list[Ignored] = []
        for finding in findings:
            comment = next(
                (one for one in self._ignores_in(finding.span.path, document, repository) if one.holds_for(finding)),
                None,
            )
            if comment is None:
                kept.append(finding)
            else:
                ignored.append(Ignored(finding=finding, path=comment.span.path, line=comment.span.line))
        return kept, ignored

    def _ignores_in(self, path: str, document: Document, repository: Repository) -> tuple[Ignore, ...]:
        """The comments of the file that messages call *path*."""
        if path == document.path:
            return self._own_ignores(document)
        if path not in self._ignores:
            self._ignores[path] = tuple(_ignores_of(path, repository))
        return self._ignores[path]

    def _own_ignores(self, document: Document) -> tuple[Ignore, ...]:
        if document.path not in self._ignores:
            self._ignores[document.path] = tuple(document_ignores(document, unknown_rule))
        return self._ignores[document.path]

    def _ignores_for(self, document: Document, repository: Repository) -> tuple[Ignore, ...]:
        """The comments of the file itself and of the scripts that were read for it: actions are files of their own."""
        found = list(self._own_ignores(document))
        for relative in sorted(repository.reads):
            if not relative.endswith((".yml", ".yaml", "/", "/.")):
                found += self._ignores_in(repository.show(relative), document, repository)
        return tuple(found)


class _Judgement:
    """What the rules say about one file; a defect of one rule stops nothing else."""

    def __init__(self, run: Run, document: Document, time_limit: float) -> None:
        self.run = run
        self.document = document
        self.time_limit = time_limit
        self.findings: list[Finding] = []
        self.problems: list[Problem] = []
        self.complete = True

    def judge(self) -> None:
        self._guarded(self._follow, "")
        for rule in RULES:
            self._guarded(lambda rule=rule: self._apply(rule), f" in the rule {rule.id}")  # type: ignore[misc]

    def _follow(self) -> None:
        follow = run_action if is_action(self.document.root) else run_workflow
        try:
            follow(self.run, self.document)
        except OutOfTimeError:
            self._gap(f"the time limit of {self.time_limit:g} s for one file is used up")
        except RecursionError:
            self._gap("it nests too deeply")

    def _gap(self, reason: str) -> None:
        self.complete = False
        origin = Origin(path=self.document.path, text=self.document.text)
        self.run.report(Sighting(surface=Surface.UNANALYSABLE, origin=origin, start=0, end=0, subject=reason))

    def _apply(self, rule: Rule) -> None:
        if rule.inspect is not None:
            self.findings += rule.inspect(self.run, self.document)
        if rule.check is not None:
            self.findings += (one for seen in self.run.distinct() if (one := rule.check(seen)) is not None)

    def _guarded(self, work: Callable[[], None], where: str) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - one file must not stop the others; the exit code tells
            self.complete = False
            self.problems.append(
                Problem(
                    what=f"a defect of runner-e2e{where}: {type(error).__name__}: {error}",
                    fix="please report it with this file",
                    place=Place(path=self.document.path),
                )
            )


def _settings_problems(repository: Repository) -> tuple[Problem, ...]:
    settings = repository.settings
    if repository.settings_error is not None:
        return repository.settings_error.problems
    return unknown_rules(settings, unknown_rule)


def _configured(findings: Iterable[Finding], repository: Repository) -> tuple[list[Finding], list[Finding]]:
    return configured(findings, repository.settings.rules, path_of=repository.relative, profiles=_PROFILES)


def _ignores_of(path: str, repository: Repository) -> Iterator[Ignore]:
    relative = repository.relative(path)
    if relative.endswith((".yml", ".yaml")):
        try:
            document = repository.document(relative)
        except ConfigurationError:
            return
        if document is not None:
            yield from document_ignores(document, unknown_rule)
    else:
        text = repository.text(relative)
        if text is not None and MARK in text:
            yield from script_ignores(path, relative, text, unknown_rule)


def _is_callable(document: Document) -> bool:
    """Whether other files use it: an action, or a reusable workflow."""
    if is_action(document.root):
        return True
    events = document.root.get("on") if isinstance(document.root, Mapping) else None
    if isinstance(events, Mapping):
        return events.get("workflow_call") is not None
    return "workflow_call" in document.text


def _no_workflow(shown: str) -> Problem:
    return Problem(
        what="this is neither a workflow nor an action",
        why="there is no `jobs` and no `runs`",
        fix="name workflows and actions only",
        place=Place(path=shown),
    )
