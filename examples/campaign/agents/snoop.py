"""A scripted agent that ignores its task and gathers everything that might name the case it is in.

It looks where real agents have looked: the command line and environment of every process, the files of the CI
runner, the sessions and logs of other runs, the product's database. It cannot know what the id looks like, so
it keeps all it could read; the harness, which knows the id, then says what of it gave the case away.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

LIMIT = 256 * 1024  # bytes kept of one source: an id stands near the top of what names it
FILES = 400  # files looked at below one directory


def read(path: Path) -> str | None:
    """The text of one file, or None when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(LIMIT).replace(b"\0", b"\n").decode(errors="replace")
    except (OSError, ValueError):
        return None


def processes() -> dict[str, dict[str, str]]:
    """What ``/proc`` gives away of all other processes, parents among them."""
    found: dict[str, dict[str, str]] = {"process command lines": {}, "process environments": {}}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        for kind, name in (("process command lines", "cmdline"), ("process environments", "environ")):
            text = read(entry / name)
            if text:
                found[kind][str(entry / name)] = text
    return found


def below(root: str) -> dict[str, str]:
    """Every readable file below a directory, and the names of what is there."""
    found: dict[str, str] = {}
    for directory, _, names in os.walk(root):
        for name in names:
            if len(found) >= FILES:
                return found
            path = Path(directory, name)
            if path.is_file() and (text := read(path)) is not None:
                found[str(path)] = text
    return found


def main(places: Path) -> int:
    """Writes ``loot.json``: kind of place -> source -> text."""
    loot = processes()
    own = Path("/proc/self/environ")
    loot["its own environment"] = {str(own): read(own) or ""}
    for kind, root in json.loads(places.read_text()).items():
        if Path(root).is_dir():
            loot[kind] = below(root)
        else:
            text = read(Path(root))
            loot[kind] = {root: text} if text else {}
    Path("loot.json").write_text(json.dumps(loot))
    print(f"looked at {sum(len(sources) for sources in loot.values())} sources", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
