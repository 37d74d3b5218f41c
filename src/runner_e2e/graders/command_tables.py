"""What common programs write, print and run, as far as a grader must know it.

The tables stand in ``data/commands.json``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

__all__ = [
    "BENIGN",
    "CODE_OPTIONS",
    "CODE_WRITES",
    "DESTINATION_WRITERS",
    "GIT_SHOWS",
    "GIT_WRITES",
    "OPERAND_WRITERS",
    "SHELLS",
    "SHOWS_FILES",
    "TRANSPARENT",
    "WRAPPERS",
]

_TABLES = json.loads((Path(__file__).parent / "data" / "commands.json").read_bytes())


def _names(table: str) -> frozenset[str]:
    return frozenset(_TABLES[table])


SHELLS: Final = _names("shells")
# Every operand is a file that is made, changed or removed. The value names options that take an argument.
OPERAND_WRITERS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(options) for name, options in _TABLES["operand-writers"].items()
}
# The last operand is what is made or changed.
DESTINATION_WRITERS: Final = _names("destination-writers")
GIT_WRITES: Final = _names("git-writes")
# What these print stands in the repository, and so can be anybody's words.
GIT_SHOWS: Final = _names("git-shows")
# Programs that only run their operands. The value is how many operands come before those.
WRAPPERS: Final[dict[str, int]] = _TABLES["wrappers"]
# Commands that print what stands in files, so that their output can hold any words.
SHOWS_FILES: Final = _names("shows-files")
# Commands that neither write a file nor print words of others.
TRANSPARENT: Final = _names("transparent")
# After these a following ``&&`` is as good as certain.
BENIGN: Final = _names("benign")
# An option that is followed by code, for each interpreter of another language.
CODE_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(options) for name, options in _TABLES["code-options"].items()
}
# Code in another language that opens the file in group ``path`` to write it.
CODE_WRITES: Final = re.compile(
    r"""
    \b(?:open|fopen|File\.open)\s*\(\s*(?P<q1>["'])(?P<open>[^"'\n]+)(?P=q1)\s*,\s*(?:mode\s*=\s*)?["'][^"']*[wax+]
    | (?:Path|PosixPath)\s*\(\s*(?P<q2>["'])(?P<path>[^"'\n]+)(?P=q2)\s*\)\s*\.
      \s*(?:write_text|write_bytes|touch|mkdir|unlink)\b
    | \b(?:writeFile|appendFile|mkdir|unlink|rm|createWriteStream)(?:Sync)?\s*\(\s*
      (?P<q3>["'`])(?P<node>[^"'`\n]+)(?P=q3)
    | \b(?:os\.(?:mkdir|makedirs|mknod|remove|unlink)|File\.write|file_put_contents)\s*\(\s*
      (?P<q4>["'])(?P<call>[^"'\n]+)(?P=q4)
    | \bopen\s*\(?\s*(?:my\s+)?[$\w]+\s*,\s*(?P<q5>["'])\+?>>?\s*(?P<perl>[^"'\n]+?)(?P=q5)
    | \bopen\s*\(?\s*(?:my\s+)?[$\w]+\s*,\s*["']\+?>>?["']\s*,\s*(?P<q6>["'])(?P<perl3>[^"'\n]+)(?P=q6)
    """,
    re.VERBOSE,
)
