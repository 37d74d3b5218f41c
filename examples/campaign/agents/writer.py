"""A scripted agent that does what its task says. It stands in for a paid one: reads TASK.md, writes files here.

It understands two sentences: ``Write TEXT to FILE`` and ``Sort the lines of FILE``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def perform(sentence: str) -> str:
    """Does one sentence of the task and says what was done."""
    if match := re.fullmatch(r"Write “(.+)” to (\S+)", sentence):
        Path(match[2]).write_text(match[1] + "\n")
        return f"wrote {match[2]}"
    if match := re.fullmatch(r"Sort the lines of (\S+)", sentence):
        path = Path(match[1])
        path.write_text("".join(sorted(path.read_text().splitlines(keepends=True))))
        return f"sorted {match[1]}"
    return f"did not understand: {sentence}"


def main() -> int:
    """Works through TASK.md, one sentence a line."""
    for sentence in Path("TASK.md").read_text().splitlines():
        if sentence.strip():
            print(perform(sentence.strip().rstrip(".")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
