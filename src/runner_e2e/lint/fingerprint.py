"""A name for a finding that stays when lines move, are indented anew, or other findings come and go."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.finding import Finding

__all__ = ["FINGERPRINT", "fingerprint", "fingerprints"]

FINGERPRINT = "runnerE2e/v1"
"""The name of this kind of fingerprint in SARIF."""

_BLANK = re.compile(r"\s+")


def fingerprint(finding: Finding, *, path: str, line: str) -> str:
    """32 hex digits for *finding*: of its rule, the *path* of its file, what it is about, and the text of its *line*.

    White space in the line does not count. Findings that say the same about equal lines have the same fingerprint.
    """
    parts = (finding.rule, path, *finding.labels, _BLANK.sub("", line))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def fingerprints(
    findings: Iterable[Finding], *, path_of: Callable[[str], str], line_of: Callable[[str, int], str]
) -> tuple[str, ...]:
    """A fingerprint for each of *findings*; of equal ones, the second ends in ``:2``, and so on.

    *path_of* gives the path in the repository for the one that findings show, *line_of* the line with a number of a
    file by the path shown.
    """
    count: Counter[str] = Counter()
    found = []
    for finding in findings:
        line = line_of(finding.span.path, finding.span.line)
        one = fingerprint(finding, path=path_of(finding.span.path), line=line)
        count[one] += 1
        found.append(one if count[one] == 1 else f"{one}:{count[one]}")
    return tuple(found)
