"""Fixes: which findings can be repaired, and files in which they are, found by applying them and linting again."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.commits import LocalPins
from runner_e2e.lint.files import default_paths
from runner_e2e.lint.fixes.unchanged import Taken, applied, unchanged_elsewhere
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.repository import Document, Repository, find_root, read_document
from runner_e2e.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from runner_e2e.lint.commits import PinResolver
    from runner_e2e.lint.finding import Edit, Finding, Fix
    from runner_e2e.lint.linter import Report

    Lint = Callable[[Mapping[Path, str]], Report]

__all__ = ["MAX_ROUNDS", "Change", "Outcome", "apply_fixes", "proposals"]

MAX_ROUNDS = 50
"""So often files are linted again at most. Fixes that touch one another wait for the next round."""

TIME_LIMIT = 10.0
"""Seconds of processor time for the fixes of one report: a file of a machine may have thousands."""

MAX_SECONDS = 120.0
"""After so much processor time no round begins."""

_MARK = "\ufeff"

# The runner prints scripts as it prints `env`: a value that moves from the one to the other was in the log before.
_SEEN_ALREADY = {"confidential-script-file": "confidential-log"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A file with other text: *shown* is its path in messages, texts are whole files, a byte order mark included.

    *location* is where it was named, *path* the file that this leads to.
    """

    location: Path
    path: Path
    shown: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """*before* is about the files as they are, *report* with all *changes*; the *applied* findings are gone."""

    before: Report
    report: Report
    changes: tuple[Change, ...]
    applied: tuple[tuple[Finding, Fix], ...]
    withheld: int
    """Fixes of the remaining findings that were not asked for, because they are not safe."""


class _Sources:
    """Files as they are with the changes made so far."""

    def __init__(self, current: Path, texts: Mapping[Path, str], pins: PinResolver | None) -> None:
        self.current = current
        self.texts = texts
        self.pins = pins
        self._documents: dict[str, Document | None] = {}
        self._repositories: dict[Path, Repository] = {}

    def path(self, shown: str) -> Path:
        return (self.current / shown).resolve()

    def repository(self, shown: str) -> Repository:
        root = find_root(self.path(shown))
        if root not in self._repositories:
            repository = self._repositories[root] = Repository(root, texts=self.texts)
            repository.pins = self.pins or LocalPins(partial(_readable, root))
        return self._repositories[root]

    def document(self, shown: str) -> Document | None:
        """The YAML file or the script (without a root node) that messages call *shown*, None when there is none."""
        if shown not in self._documents:
            try:
                self._documents[shown] = self._read(shown)
            except (ConfigurationError, OSError, UnicodeDecodeError):
                self._documents[shown] = None
        return self._documents[shown]

    def _read(self, shown: str) -> Document:
        path = self.path(shown)
        if path.suffix in {".yml", ".yaml"}:
            return read_document(path, shown, self.texts)
        text = self.texts.get(path)
        return Document(path=shown, text=_text(path) if text is None else text, root=None)


def proposals(
    findings: Sequence[Finding],
    *,
    current: Path,
    texts: Mapping[Path, str] | None = None,
    pins: PinResolver | None = None,
) -> dict[int, Fix]:
    """The fix of each finding that has one, by its place in *findings*.

    Paths of findings count from *current*; *texts* stand for files that are not written yet; *pins* knows the commits
    of tags (by default what other files of the repository say). Each fix by itself gives a file that parses and differs
    only where it says so. After :data:`TIME_LIMIT` seconds of processor time the rest has none.
    """
    deadline = time.process_time() + TIME_LIMIT
    sources = _Sources(current, texts or {}, pins)
    repairs = {rule.id: rule.repair for rule in RULES if rule.repair is not None}
    found: dict[int, Fix] = {}
    for number, finding in enumerate(findings):
        if time.process_time() > deadline:
            break
        repair = repairs.get(finding.rule)
        document = sources.document(finding.span.path) if repair is not None else None
        if repair is None or document is None:
            continue
        fix = repair(finding, document, sources.repository(finding.span.path))
        if fix is not None and _is_sound(fix, sources):
            found[number] = fix
    return found


def _is_sound(fix: Fix, sources: _Sources) -> bool:
    for path, edits in _by_path(fix.edits).items():
        document = sources.document(path)
        if document is None:
            return False
        # A script has no nodes; whoever repairs it has parsed what becomes of it.
        if document.root is not None and not unchanged_elsewhere(document.root, edits):
            return False
        if len(set(edits)) != len(edits) or not Taken().add(edits):
            return False
    return bool(fix.edits)


def _by_path(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        found.setdefault(edit.path, []).append(edit)
    return found


def apply_fixes(
    lint: Lint,
    *,
    current: Path,
    unsafe: bool,
    only: Collection[str] | None = None,
    pins: PinResolver | None = None,
) -> Outcome:
    """Applies fixes until none is left; *unsafe* ones too when asked for; *only* those of some rules. Writes nothing.

    *lint* reports on the files, given the texts that stand for some of them. A fix after which its finding is still
    there, or another one is new, is taken back.
    """
    return _Fixer(lint, partial(proposals, current=current, pins=pins), current=current, unsafe=unsafe).run(only)


class _Fixer:
    def __init__(self, lint: Lint, propose: Callable[..., dict[int, Fix]], *, current: Path, unsafe: bool) -> None:
        self.lint = lint
        self.propose = propose
        self.current = current
        self.unsafe = unsafe
        self.texts: dict[Path, str] = {}
        self.shown: dict[Path, str] = {}
        self.originals: dict[Path, str] = {}
        self.applied: list[tuple[Finding, Fix]] = []
        self.rejected: set[tuple[object, ...]] = set()

    def run(self, only: Collection[str] | None) -> Outcome:
        report = before = self.lint(self.texts)
        withheld = 0
        deadline = time.process_time() + MAX_SECONDS
        for _ in range(MAX_ROUNDS):
            if time.process_time() > deadline:
                break
            wanted = [finding for finding in report.findings if only is None or finding.rule in only]
            pairs = [(wanted[number], fix) for number, fix in self.propose(wanted, texts=self.texts).items()]
            withheld = sum(1 for _, fix in pairs if not fix.safe) if not self.unsafe else 0
            batch = self._compatible(pairs)
            if not batch:
                break
            report = self._apply(report, batch)
        changes = tuple(
            Change(
                location=self.current / self.shown[path],
                path=path,
                shown=self.shown[path],
                before=self.originals[path],
                after=text,
            )
            for path, text in sorted(self.texts.items())
        )
        return Outcome(before=before, report=report, changes=changes, applied=tuple(self.applied), withheld=withheld)

    def _compatible(self, pairs: Sequence[tuple[Finding, Fix]]) -> list[tuple[Finding, Fix]]:
        """Fixes that may be applied together: those that touch one another wait, equal edits are made once."""
        chosen: list[tuple[Finding, Fix]] = []
        taken = Taken()
        for finding, fix in pairs:
            if (not fix.safe and not self.unsafe) or _identity(finding, fix) in self.rejected:
                continue
            if taken.add(fix.edits):
                chosen.append((finding, fix))
        return chosen

    def _apply(self, report: Report, batch: list[tuple[Finding, Fix]]) -> Report:
        """The report after *batch*, or after the first part of it that makes nothing worse."""
        while True:
            texts = self._texts_with(batch)
            after = self.lint(texts)
            if _is_better(report, after, batch):
                self.texts = texts
                self.applied += batch
                return after
            if len(batch) == 1:
                self.rejected.add(_identity(*batch[0]))
                return report
            batch = batch[: len(batch) // 2]

    def _texts_with(self, batch: list[tuple[Finding, Fix]]) -> dict[Path, str]:
        texts = dict(self.texts)
        every = dict.fromkeys(edit for _, fix in batch for edit in fix.edits)
        for shown, edits in _by_path(every).items():
            path = (self.current / shown).resolve()
            self.shown[path] = shown
            # Read once: whoever writes later compares, and must not take a newer text for this one.
            if path not in self.originals:
                self.originals[path] = _text(path)
            whole = texts.get(path, self.originals[path])
            mark = _MARK if whole.startswith(_MARK) else ""
            texts[path] = mark + applied(whole.removeprefix(_MARK), edits)
        return texts


def _readable(root: Path) -> Iterable[str]:
    """Texts of the workflows and actions of the repository, as far as they can be read."""
    for path in default_paths(root):
        with suppress(OSError):
            yield path.read_text("utf-8", errors="replace")


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _identity(finding: Finding, fix: Fix) -> tuple[object, ...]:
    """A fix without the numbers of its lines, which other fixes move."""
    return (finding.rule, finding.span.path, finding.message, fix.title, tuple(edit.text for edit in fix.edits))


def _counts(findings: Iterable[Finding]) -> Counter[tuple[str, str, tuple[str, ...]]]:
    return Counter((finding.rule, finding.span.path, finding.labels) for finding in findings)


def _is_better(before: Report, after: Report, batch: list[tuple[Finding, Fix]]) -> bool:
    """Whether the findings of *batch* are gone and no other one is new."""
    if len(after.problems) > len(before.problems) or after.defects > before.defects:
        return False
    wanted = _counts(before.findings) - _counts(finding for finding, _ in batch)
    seen = {(_SEEN_ALREADY[finding.rule], finding.span.path) for finding, _ in batch if finding.rule in _SEEN_ALREADY}
    return all(key[:2] in seen for key in _counts(after.findings) - wanted)
