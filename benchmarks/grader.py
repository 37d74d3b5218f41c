"""Measures the grader of planning turns: MB/s and peak memory on streams of any size, as Codex writes them.

``python3 benchmarks/grader.py [--megabytes 1000]``
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(sys.executable).with_name("runner-e2e")
Json = dict[str, object]


def raw(turn: str, item: Json) -> Json:
    return {"method": "rawResponseItem/completed", "params": {"threadId": "t", "turnId": turn, "item": item}}


def call(number: int, command: str, output: str, code: int) -> Iterator[Json]:
    """One command as the app-server tells it: the call, its progress, its answer."""
    key = f"call_{number}"
    arguments = json.dumps({"cmd": command, "login": False})
    yield raw("1", {"type": "function_call", "name": "exec_command", "call_id": key, "arguments": arguments})
    item: Json = {"type": "commandExecution", "id": key, "command": command, "cwd": "/work", "status": "inProgress"}
    yield {"method": "item/started", "params": {"item": item, "threadId": "t", "turnId": "1"}}
    for start in range(0, len(output), 400):
        piece = output[start : start + 400]
        yield {"method": "item/commandExecution/outputDelta", "params": {"itemId": key, "delta": piece}}
    done: Json = {**item, "status": "completed", "aggregatedOutput": output, "exitCode": code}
    yield {"method": "item/completed", "params": {"item": done, "threadId": "t", "turnId": "1"}}
    text = f"Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code {code}\nOutput:\n{output}"
    yield raw("1", {"type": "function_call_output", "call_id": key, "output": text})


def stream(megabytes: int) -> Iterator[bytes]:
    """A planning turn that reads many files, tries one write, and is refused."""
    left = megabytes * 1_000_000
    page = "".join(f"{line:4d}: def function_{line}(argument): return argument + {line}\n" for line in range(60))
    yield line_of({"method": "turn/started", "params": {"turn": {"id": "1"}}})
    refusal = "/bin/bash: line 1: probe.txt: Read-only file system\n"
    for message in call(0, "printf x > probe.txt", refusal, 1):
        yield line_of(message)
    number = 0
    while left > 0:
        number += 1
        for message in call(number, f"sed -n '1,60p' src/module_{number}.py", page, 0):
            line = line_of(message)
            left -= len(line)
            yield line
    yield line_of({"method": "turn/completed", "params": {"turn": {"id": "1", "status": "completed"}}})


def line_of(message: Json) -> bytes:
    return json.dumps(message).encode() + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=1000)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as directory:
        events = Path(directory) / "events.jsonl"
        with events.open("wb") as file:
            file.writelines(stream(megabytes))
        size = events.stat().st_size / 1e6
        began = time.monotonic()
        done = subprocess.run(
            [PROGRAM, "grade", "planning-read-only", "--json", events], capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime
    print(f"{size:.0f} MB, verdict {json.loads(done.stdout)['verdict']}")
    print(f"{size / seconds:.0f} MB/s by the clock ({seconds:.1f} s), {size / processor:.0f} MB/s of processor time")
    print(f"peak memory {used.ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
