"""A file of findings that are known, so that only new ones are reported.

Its entries are counted by fingerprint, so they stay when lines move, and a second leak on an equal line is new. It has
no value and no line of any file in it, is sorted, and has one entry a line, so that a diff of it can be read.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner_e2e.errors import ConfigurationError, Place
from runner_e2e.lint.files import find_root
from runner_e2e.lint.fingerprint import fingerprints
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.render.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.report import Report

__all__ = ["SCHEMA", "Baseline", "Known", "Scope", "read_baseline", "render_baseline", "without_known"]

SCHEMA = "runner-e2e.lint-baseline/v1"

_MAX_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Known:
    """*count* findings of *rule* in the file *path* (from the root of the repository) with one fingerprint."""

    path: str
    rule: str
    fingerprint: str
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What is known, by fingerprint."""

    entries: tuple[Known, ...]


class Scope:
    """Turns paths that findings show (from the folder *current*, after *label*) into paths in their repository."""

    def __init__(self, *, current: Path, label: str = "") -> None:
        self.current = current
        self.label = label
        self.sources = Sources(current, label)
        self._roots: dict[Path, Path] = {}

    def path(self, shown: str) -> str:
        """The path from the root of the repository, whatever folder is the current one."""
        path = Path(os.path.abspath(self.current / shown.removeprefix(self.label)))  # noqa: PTH100 - symbolic links keep their names
        if path.parent not in self._roots:
            self._roots[path.parent] = find_root(path)
        return path.relative_to(self._roots[path.parent]).as_posix()

    def line(self, shown: str, number: int) -> str:
        """A line of a file."""
        return self.sources.line(shown, number)

    def fingerprints(self, report: Report) -> tuple[str, ...]:
        """The fingerprint of every finding of *report*."""
        return fingerprints(report.findings, path_of=self.path, line_of=self.line)


def render_baseline(report: Report, scope: Scope) -> str:
    """The text of the baseline in which all findings of *report* are known."""
    prints = [one.partition(":")[0] for one in scope.fingerprints(report)]
    count = Counter(prints)
    entries = {
        Known(path=scope.path(finding.span.path), rule=finding.rule, fingerprint=one, count=count[one])
        for finding, one in zip(report.findings, prints, strict=True)
    }
    rows = [
        json.dumps(
            {"path": one.path, "rule": one.rule, "fingerprint": one.fingerprint, "count": one.count},
            ensure_ascii=False,
        )
        for one in sorted(entries, key=_place)
    ]
    body = ",\n".join(f"    {row}" for row in rows)
    inner = f"\n{body}\n  " if rows else ""
    return f'{{\n  "schema": "{SCHEMA}",\n  "findings": [{inner}]\n}}\n'


def _place(known: Known) -> tuple[str, str, str, int]:
    """The order of entries."""
    return known.path, known.rule, known.fingerprint, known.count


def read_baseline(path: Path) -> Baseline:
    """The baseline at *path*.

    Raises :class:`~runner_e2e.errors.ConfigurationError` for a file that is none, or one of a newer version.
    """
    place = Place(path=str(path))
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise _damaged(f"it has more than {_MAX_BYTES >> 20} MiB", place)
        data = json.loads(content)
    except FileNotFoundError:
        raise ConfigurationError(
            "there is no baseline", fix="write it with `--write-baseline`, or correct the path", place=place
        ) from None
    except OSError as error:
        raise ConfigurationError(
            "the baseline cannot be read", why=error.strerror or str(error), fix="name a readable file", place=place
        ) from error
    except json.JSONDecodeError as error:
        raise _damaged(f"{error.msg}", Place(path=str(path), line=error.lineno, column=error.colno)) from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise _damaged("it is not JSON in UTF-8", place) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        if isinstance(schema, str) and schema.startswith(SCHEMA.rpartition("/")[0]):
            raise ConfigurationError(
                f"the baseline has the form {schema!r}",
                why=f"this version reads {SCHEMA!r}",
                fix="update runner-e2e, or write the baseline again with `--write-baseline`",
                place=place,
            )
        raise _damaged(f'"schema" is not {SCHEMA!r}', place)
    findings = data.get("findings")
    if not isinstance(findings, list):
        raise _damaged('"findings" is no list', place)
    return Baseline(entries=tuple(_entry(row, number, place) for number, row in enumerate(findings, 1)))


def _entry(row: Any, number: int, place: Place) -> Known:
    texts = [row.get(key) for key in ("path", "rule", "fingerprint")] if isinstance(row, dict) else [None]
    count = row.get("count", 1) if isinstance(row, dict) else None
    if not all(isinstance(text, str) for text in texts) or isinstance(count, bool) or not isinstance(count, int):
        raise _damaged(f"entry {number} has not a path, a rule, a fingerprint and a count", place)
    path, rule, fingerprint = texts
    return Known(path=str(path), rule=str(rule), fingerprint=str(fingerprint), count=count)


def _damaged(why: str, place: Place) -> ConfigurationError:
    return ConfigurationError(
        "this is not a baseline, or it is damaged",
        why=why,
        fix="restore it, or write it again with `--write-baseline`",
        place=place,
    )


def without_known(report: Report, baseline: Baseline, scope: Scope, *, judge: bool) -> Report:
    """*report* without what is in *baseline*; with a hint for what is in there and was not found, when *judge*.

    That can only be known when all rules ran over the whole repository.
    """
    left = Counter[str]()
    for entry in baseline.entries:
        left[entry.fingerprint] += entry.count
    new = []
    for finding, one in zip(report.findings, scope.fingerprints(report), strict=True):
        base = one.partition(":")[0]
        if left[base] > 0:
            left[base] -= 1
        else:
            new.append(finding)
    gone = {
        entry.fingerprint: replace(entry, count=left[entry.fingerprint])
        for entry in baseline.entries
        if judge and left[entry.fingerprint] > 0
    }
    return replace(
        report,
        findings=tuple(new),
        known=len(report.findings) - len(new),
        hints=(*report.hints, *_hints(sorted(gone.values(), key=_place))),
    )


def _hints(gone: Sequence[Known], *, shown: int = 5) -> list[str]:
    """What may be taken out of the baseline, in one line."""
    if not gone:
        return []
    total = sum(entry.count for entry in gone)
    names = [f"{entry.rule} in {entry.path}{f' ({entry.count} times)' if entry.count > 1 else ''}" for entry in gone]
    rest = f" and {len(gone) - shown} more" if len(gone) > shown else ""
    noun = "finding of the baseline is" if total == 1 else "findings of the baseline are"
    return [f"{total} {noun} fixed, `--write-baseline` takes them out: {', '.join(names[:shown])}{rest}"]
