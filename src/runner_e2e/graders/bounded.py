"""Runs what can take for ever on hostile text (regular expressions, JSON Schemas) in a process that is ended in time.

The process reads one JSON document from standard input and writes one to standard output.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
from typing import Any, Final

from runner_e2e.errors import DefectError

__all__ = ["SECONDS", "TooSlowError", "find_all", "schema_errors"]

SECONDS: Final = 5.0
"""Of the processor's time: how much of the clock's that takes depends on what else the machine does."""

_PATIENCE: Final = 20  # times as many seconds of the clock
_MEMORY: Final = 2 << 30
_MOST_FOUND: Final = 10_000
_MOST_ERRORS: Final = 20


class TooSlowError(Exception):
    """The work was not done in time."""


def find_all(pattern: str, texts: tuple[str, ...], *, seconds: float = SECONDS) -> list[list[tuple[int, int]]]:
    """Where *pattern* (syntax of :mod:`re`) is found in each text, as spans of characters. Raises TooSlowError."""
    spans = _run({"do": "find", "pattern": pattern, "texts": list(texts)}, seconds)
    return [[(int(start), int(end)) for start, end in found] for found in _lists(spans)]


def schema_errors(schema: object, document: object, *, seconds: float = SECONDS) -> list[str]:
    """What is wrong with *document*, as ``path: message``; empty when it is valid. Raises TooSlowError."""
    return [str(message) for message in _list(_run({"do": "schema", "schema": schema, "document": document}, seconds))]


def _run(work: dict[str, object], seconds: float) -> object:
    command = [sys.executable, "-c", "from runner_e2e.graders.bounded import serve; serve()"]
    data = json.dumps({**work, "seconds": seconds}).encode()
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_PATIENCE * seconds, check=False)
    except subprocess.TimeoutExpired:
        raise TooSlowError(f"not done within {_PATIENCE * seconds:g} s") from None
    if done.returncode == -signal.SIGPROF:
        raise TooSlowError(f"not done within {seconds:g} s of processor time")
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1]
        if "MemoryError" in last:
            raise TooSlowError("needs too much memory")
        raise DefectError("a check could not be made", why=last or f"its process ended with status {done.returncode}")
    result: object = json.loads(done.stdout)
    return result


def serve() -> None:
    """The other end: reads the work, writes the result."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    work = json.load(sys.stdin)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, also in the midst of one search
    signal.setitimer(signal.ITIMER_PROF, work["seconds"])
    result = (
        _find(work["pattern"], work["texts"]) if work["do"] == "find" else _errors(work["schema"], work["document"])
    )
    json.dump(result, sys.stdout)


def _find(pattern: str, texts: list[str]) -> list[list[tuple[int, int]]]:
    compiled = re.compile(pattern)
    found: list[list[tuple[int, int]]] = []
    for text in texts:
        spans: list[tuple[int, int]] = []
        for match in compiled.finditer(text):
            spans.append(match.span())
            if len(spans) >= _MOST_FOUND:
                break
        found.append(spans)
    return found


def _errors(schema: Any, document: Any) -> list[str]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    validator = validator_for(schema, default=Draft202012Validator)(schema)
    messages = []
    for error in validator.iter_errors(document):
        messages.append(f"{error.json_path}: {error.message[:300]}")
        if len(messages) >= _MOST_ERRORS:
            break
    return messages


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _lists(value: object) -> list[list[list[int]]]:
    return value if isinstance(value, list) else []
