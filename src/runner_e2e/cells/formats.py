"""The forms of the texts in a catalog: names, variables, paths, digests."""

from __future__ import annotations

import re
from dataclasses import replace

from runner_e2e.cells import ids
from runner_e2e.cells.reading import Format

__all__ = [
    "ABSOLUTE_PATH",
    "ACTION",
    "CASE",
    "CREDENTIAL",
    "GLOB",
    "INPUT",
    "RULE",
    "SEGMENT",
    "SHA256",
    "SOME_PATH",
    "VARIABLE",
]

SEGMENT = Format(
    pattern=re.compile(ids.SEGMENT),
    rule="a name begins with a-z or 0-9 and goes on with a-z, 0-9, '-' and '_'",
)
CASE = Format(
    pattern=re.compile(ids.CASE),
    rule="a case is one or more names joined by dots; each begins with a-z or 0-9 and goes on with a-z, 0-9, '-', '_'",
)
VARIABLE = Format(
    pattern=re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    rule="the name of a variable has letters, digits and '_' only, and no digit first",
)
CREDENTIAL = replace(
    VARIABLE,
    rule="a credential is the name of a variable, never its value: letters, digits and '_' only, no digit first",
    private=True,
)
INPUT = Format(
    pattern=re.compile(r"[A-Za-z_][A-Za-z0-9_-]*"),
    rule="an input or a matrix key begins with a letter or '_' and goes on with letters, digits, '-' and '_'",
)
ACTION = Format(
    pattern=re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*"),
    rule="an action is OWNER/REPOSITORY, or OWNER/REPOSITORY/PATH, without a version",
)
RULE = Format(
    pattern=re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?:/[a-z][a-z0-9]*(?:-[a-z0-9]+)*)?"),
    rule="the id of a rule has words of a-z and 0-9 joined by '-'; that of another linter's, its name and '/' before",
)
GLOB = Format(
    pattern=re.compile(r"(?![/~!])(?!(?:[^\n]*/)?\.\.(?:/|$))[^\n\0]+"),
    rule="a glob is relative to the root of the repository: no / or ~ or ! first, and no ..",
)
SOME_PATH = Format(pattern=re.compile(r"[\s\S]+"), rule="a path is not empty")
ABSOLUTE_PATH = Format(pattern=re.compile(r"/[\s\S]*"), rule="it is an absolute path, which begins with /")
SHA256 = Format(pattern=re.compile(r"[0-9a-f]{64}"), rule="a SHA-256 digest has 64 digits from 0-9 and a-f")
