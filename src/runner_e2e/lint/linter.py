"""Files in, findings out: one analysis a file, bounded in time, and no file stops another."""

from __future__ import annotations

import functools
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.lint.configured import configured
from runner_e2e.lint.files import default_paths, expanded, find_root
from runner_e2e.lint.report import Report, in_order, keep, ordered_problems
from runner_e2e.lint.request import TIME_LIMIT, Entry, Request
from runner_e2e.lint.selection import FOREIGN, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner_e2e.errors import Problem
    from runner_e2e.lint.cache import Cache
    from runner_e2e.lint.changes import Changes
    from runner_e2e.lint.checkers import Checked, Checker
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.result import FileResult, Ignore

__all__ = ["FILES_PER_PROCESS", "TIME_LIMIT", "Report", "default_paths", "lint"]

_NOTHING = "no workflow and no action is there: lint at the root of a repository, or name files"

_FILES_A_COLLECTION = 500

FILES_PER_PROCESS = 24
"""A process more is started for so many files: below, its start costs more than it saves."""


def lint(  # noqa: PLR0913 - the options of one run, by name
    paths: Sequence[Path],
    *,
    current: Path,
    time_limit: float = TIME_LIMIT,
    trace: bool = False,
    processes: int = 1,
    selection: Selection | None = None,
    label: str = "",
    texts: Mapping[Path, str] | None = None,
    cache: Cache | None = None,
    changes: Changes | None = None,
    foreign: Checker | None = None,
) -> Report:
    """Lints *paths*: files, or folders whose workflows and actions are taken; nothing means the folder *current*.

    Many files are shared among at most *processes* processes, unless there is a *trace* to keep. *foreign* adds the
    findings of another linter, *changes* keeps only what has to do with changed files.

    Raises :class:`~runner_e2e.errors.UsageError` for a path that does not exist.
    """
    request = Request(current=current.resolve(), time_limit=time_limit, trace=trace, label=label, texts=texts)
    entries = _entries(paths, request)
    finish = None if foreign is None else foreign.start([(entry.path, entry.shown) for entry in entries])
    results = _results(entries, request, 1 if trace or texts else processes, None if trace or texts else cache)
    whole = not paths and find_root(request.current) == request.current
    gathering = _Gathering(request, selection or Selection(), changes, whole=whole)
    for entry, result in zip(entries, results, strict=True):
        gathering.add(entry, result)
    if finish is not None:
        gathering.add_foreign(finish(), entries, results)
    gathering.add_unused(entries, results)
    return gathering.report(entries, results)


def _entries(paths: Sequence[Path], request: Request) -> list[Entry]:
    """Every file once, however it is named; what a link leads to outside of the repository only when it is named."""
    folders: dict[str, _Folder] = {}
    entries: dict[str, Entry] = {}
    here = os.getcwd()  # noqa: PTH109 - texts and not paths: there may be thousands of files
    for path, explicit in expanded(paths, request.current):
        absolute = os.path.join(here, path)  # noqa: PTH118
        parent, name = os.path.split(absolute)
        if parent not in folders:
            folders[parent] = _Folder(parent, request.current)
        folder = folders[parent]
        real = folder.real(name)
        if real in entries or not (explicit or real.startswith(folder.inside)):
            continue
        shown = request.label + folder.shown(name)
        entries[real] = Entry(path=path, absolute=absolute, explicit=explicit, root=folder.root, shown=shown)
    return list(entries.values())


class _Folder:
    """What the files of one folder share: most repositories have all of them in one."""

    def __init__(self, path: str, current: Path) -> None:
        self.path = path
        self.root = find_root(Path(path)).resolve()
        self.inside = f"{str(self.root).rstrip('/')}/"
        self._real = os.path.realpath(path)
        relative = os.path.relpath(path, current)
        self._relative = "" if relative == "." else relative

    def real(self, name: str) -> str:
        """The path of a file without symbolic links."""
        path = os.path.join(self.path, name)  # noqa: PTH118
        return os.path.realpath(path) if os.path.islink(path) else os.path.join(self._real, name)  # noqa: PTH114, PTH118

    def shown(self, name: str) -> str:
        """The path of a file as messages show it, see :func:`~runner_e2e.lint.files.shown_path`."""
        relative = os.path.join(self._relative, name)  # noqa: PTH118
        return os.path.join(self.path, name) if relative.startswith("..") else relative  # noqa: PTH118


def _results(entries: Sequence[Entry], request: Request, processes: int, cache: Cache | None) -> list[FileResult]:
    """The result of every entry: from the *cache*, or from an analysis that the cache then keeps."""
    found: dict[int, FileResult] = {}
    if cache is not None:
        for number, entry in enumerate(entries):
            known = cache.find(entry, request)
            if known is not None:
                found[number] = known
        cache.write_packs()
    missing = [number for number in range(len(entries)) if number not in found]
    if missing:
        # Imported here: where everything is known, nothing of the analysis is needed.
        from runner_e2e.lint.analysis import Analyst

        analyst = Analyst(
            request.current,
            time_limit=request.time_limit,
            trace=request.trace,
            label=request.label,
            texts=request.texts,
        )

        garbage = _Garbage()

        def work(number: int) -> FileResult:
            entry = entries[number]
            result = analyst.result(entry.path, explicit=entry.explicit)
            if cache is not None:
                cache.keep(entry, request, result)
            garbage.collect()
            return result

        count = min(processes, len(missing) // FILES_PER_PROCESS)
        if count > 1:
            from runner_e2e.lint.processes import shared

            found.update(shared(sorted(missing, key=lambda number: -_size(entries[number])), work, count))
        else:
            found.update((number, work(number)) for number in missing)
        if cache is not None:
            cache.shrink()
    return [found[number] for number in range(len(entries))]


def _size(entry: Entry) -> int:
    """Bytes of the file. Processes that share files begin with the big ones: at the end none waits long for another."""
    try:
        return os.stat(entry.absolute).st_size  # noqa: PTH116
    except OSError:
        return 0


class _Garbage:
    """Collects cycles now and then, for a caller that switched the collector off.

    Trees live for one file: the collector would only look at them, and at all modules, again and again. Here it looks
    at what is new only: the results and documents that stay, which are more and more, are no garbage. Never to do so
    would cost 4 MB for a thousand files.
    """

    def __init__(self) -> None:
        self.files = 0
        self.wanted = not gc.isenabled()
        if self.wanted:
            gc.freeze()  # what is there now stays

    def collect(self) -> None:
        """To be called after every file."""
        self.files += 1
        if self.wanted and self.files % _FILES_A_COLLECTION == 0:
            gc.collect(0)


class _Gathering:
    """Puts results together: what is wanted, each finding once, and comments that ignore nothing."""

    def __init__(self, request: Request, selection: Selection, changes: Changes | None, *, whole: bool) -> None:
        self.request = request
        self.selection = selection
        self.changes = changes
        self.whole = whole
        self.findings: dict[tuple[object, ...], Finding] = {}
        self.ignored: dict[tuple[object, ...], Finding] = {}
        self.used: set[tuple[str, int, str]] = set()
        self.repairs: set[str] = set()
        self.problems: list[Problem] = []
        self.hints: tuple[str, ...] = ()

    def add(self, entry: Entry, result: FileResult) -> None:
        self.problems += result.problems
        self.repairs.update(result.repairs)
        touched = self.changes is None or self.changes.touch(entry, result)
        everything = self.changes is None or self.changes.concern_catalog(entry)
        for findings, off in ((result.findings, False), (result.off, True)):
            for finding in findings:
                if self._wants(finding, result, off=off) and (everything or self._in_changes(finding, touched=touched)):
                    keep(self.findings, finding)
        for one in result.ignored:
            self.used.add((one.path, one.line, one.finding.rule))
            if self._wants(one.finding, result) and (everything or self._in_changes(one.finding, touched=touched)):
                keep(self.ignored, one.finding)

    def _wants(self, finding: Finding, result: FileResult, *, off: bool = False) -> bool:
        return self.selection.wants(finding, of_catalog=result.rules.profile, off=off)

    def _in_changes(self, finding: Finding, *, touched: bool) -> bool:
        """Whether *finding* has to do with the changes: by its place, by its way, or else by all that was read."""
        if self.changes is None:
            return True
        return self.changes.has(finding.span.path, finding.flow) or (touched and not finding.flow)

    def add_foreign(self, checked: Checked, entries: Sequence[Entry], results: Sequence[FileResult]) -> None:
        """Adds what another linter says about *entries*, as if we said it."""
        from runner_e2e.lint.actionlint import without_repetitions

        by_path = {entry.shown: (entry, result) for entry, result in zip(entries, results, strict=True)}
        ours = (*self.findings.values(), *self.ignored.values())
        for finding in without_repetitions((*ours, *checked.findings), self.problems):
            if finding.span.path not in by_path or finding.rule.partition("/")[0] != FOREIGN:
                continue
            entry, result = by_path[finding.span.path]
            for one in self._wanted(finding, entry, result):
                comment = next((each for each in result.ignores if each.holds_for(one)), None)
                keep(self.findings if comment is None else self.ignored, one)
        self.problems += checked.problems
        self.hints += checked.hints

    def _wanted(self, finding: Finding, entry: Entry, result: FileResult) -> Iterator[Finding]:
        """A finding that no analysis made, as the catalog makes it, where it is wanted."""
        path_of = functools.partial(self.request.below, entry.root)
        on, off = configured([finding], result.rules, path_of=path_of, profiles={})
        for one in (*on, *off):
            if self._wants(one, result, off=bool(off)) and self._in_changes(one, touched=False):
                yield one

    def add_unused(self, entries: Sequence[Entry], results: Sequence[FileResult]) -> None:
        """Adds a finding for every comment that ignores nothing, where that can be known."""
        complete = all(result.complete for result in results)
        seen: set[tuple[str, int]] = set()
        for entry, result in zip(entries, results, strict=True):
            for ignore in result.ignores:
                place = (ignore.span.path, ignore.span.line)
                alone = ignore.span.path == entry.shown and not result.callable and result.complete
                if place in seen or not (alone or (self.whole and complete)):
                    continue
                seen.add(place)
                self._judge(ignore, entry, result)

    def _judge(self, ignore: Ignore, entry: Entry, result: FileResult) -> None:
        off = {rule for rule, one in result.rules.by_id.items() if one.level == "off"}
        unused = [
            rule
            for rule in ignore.rules
            if rule.partition("/")[0] != FOREIGN
            and (ignore.span.path, ignore.span.line, rule) not in self.used
            and self.selection.judges(rule, of_catalog=result.rules.profile, off=off)
        ]
        if not unused:
            return
        from runner_e2e.lint.rules import unused_ignore

        for one in self._wanted(unused_ignore.finding(ignore, unused), entry, result):
            keep(self.findings, one)

    def report(self, entries: Sequence[Entry], results: Sequence[FileResult]) -> Report:
        return Report(
            findings=in_order(self.findings.values()),
            problems=ordered_problems(self.problems),
            files=len(entries),
            defects=sum(result.defects for result in results),
            trace=tuple(point for result in results for point in result.trace),
            hints=self.hints if entries else (*self.hints, _NOTHING),
            repairs=frozenset(self.repairs),
            ignored=len(self.ignored),
        )
