"""Looks at the command line of every process, again and again, for words that must never stand there.

Reads the words from its first line of input (JSON), so that none stands on its own command line; ends when its input
ends; prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time


def scan(words: list[bytes], seen: set[str]) -> int:
    """Adds the command lines that hold a word; returns how many processes there were."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would halve the rate
        if not name.isdigit():
            continue
        count += 1
        try:
            with open(f"/proc/{name}/cmdline", "rb") as stream:  # noqa: PTH123
                line = stream.read()
        except OSError:
            continue
        if any(word in line for word in words):
            seen.add(line.replace(b"\0", b" ").decode(errors="replace").strip())
    return count


def wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def main() -> int:
    words = [word.encode() for word in json.loads(sys.stdin.readline())]
    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
    seen: set[str] = set()
    scans = most = 0
    began = time.monotonic()
    while not ended.is_set():
        most = max(most, scan(words, seen))
        scans += 1
        time.sleep(0.002)
    report = {"seen": sorted(seen), "scans": scans, "processes": most, "seconds": time.monotonic() - began}
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
