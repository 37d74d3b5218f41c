"""Writes what an exec audit found: JSON (``runner-e2e.audit/v1``) and text. Neither ever shows the value.

The JSON lists every exec. It is written as a stream, so that a command of a hundred thousand execs costs disk and
not memory.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from runner_e2e.sandbox.canary import Finder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from runner_e2e.sandbox.audit_model import Audit, Exec
    from runner_e2e.sandbox.canary import Canary
    from runner_e2e.sandbox.process_tree import Process

__all__ = ["SCHEMA", "ExecSpool", "command_line", "exec_json", "render_text", "shown", "write_json"]

SCHEMA = "runner-e2e.audit/v1"

# Longer arguments and longer lists are shown in part; what is searched is always the whole.
ARGUMENT_LENGTH = 1024
ARGUMENTS = 128
TEXT_LEAKS = 20
TEXT_ROWS = 12
TEXT_WIDTH = 100


def shown(finder: Finder, text: str, *, limit: int = ARGUMENT_LENGTH) -> str:
    """*text* redacted, printable as UTF-8, and at most *limit* characters of it."""
    text = finder.redact(text).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def command_line(arguments: Iterable[str]) -> str:
    """*arguments* in one line, for reading; those with blanks in quotes, so that it shows where each ends."""
    return " ".join(f"'{text}'" if not text or any(map(str.isspace, text)) else text for text in arguments)


def exec_json(made: Exec, finder: Finder) -> dict[str, object]:
    """One exec as the report shows it; what is empty or as usual is left out."""
    entry: dict[str, object] = {
        "index": made.index,
        "time": made.time,
        "process": made.process,
        "pid": made.pid,
        "program": shown(finder, made.program),
        "argv": [shown(finder, argument) for argument in made.argv[:ARGUMENTS]],
        "argc": len(made.argv),
    }
    if made.interpreter:
        entry["interpreter"] = [shown(finder, word) for word in made.interpreter]
    if made.privilege:
        entry["privilege"] = made.privilege
    if made.error:
        entry["error"] = made.error
    if made.attempts > 1:
        entry["attempts"] = made.attempts
    if not made.whole:
        entry["whole"] = False
    if made.leaks:
        entry["leaks"] = [
            {
                "where": leak.where,
                "argument": leak.argument,
                "start": leak.occurrence.start,
                "end": leak.occurrence.end,
                "kind": leak.occurrence.kind,
                "canary": leak.occurrence.canary,
            }
            for leak in made.leaks
        ]
    if made.environ:
        entry["environ"] = [
            {"name": held.name, "kind": held.kind, "canary": held.canary, "in_name": held.in_name}
            for held in made.environ
        ]
    return entry


class ExecSpool:
    """Keeps every exec on disk as the report will show it. Its :meth:`add` is a sink for :func:`audit`."""

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self.file: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed on exit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def add(self, made: Exec) -> None:
        """Takes one exec."""
        self.file.write(json.dumps(exec_json(made, self.finder)) + "\n")


def process_json(process: Process) -> dict[str, object]:
    entry: dict[str, object] = {"index": process.index, "pid": process.pid, "parent": process.parent}
    if process.ended is None:
        entry["running"] = True
    elif process.signal:
        entry["signal"] = process.signal
    else:
        entry["status"] = process.status
    return entry


def canary_json(canary: Canary) -> dict[str, object]:
    # No hash: an id has so little entropy that a hash is as good as the id.
    return {"name": canary.name}


def summary_json(audit: Audit, finder: Finder) -> dict[str, object]:
    """All of the report but its two long lists."""
    return {
        "schema": SCHEMA,
        "verdict": audit.verdict,
        "gaps": audit.gaps,
        "command": [shown(finder, word) for word in audit.command[:ARGUMENTS]],
        "started": datetime.fromtimestamp(audit.started, UTC).isoformat(),
        "seconds": round(audit.seconds, 3),
        "status": audit.status,
        "signal": audit.signal,
        "timed_out": audit.timed_out,
        "canaries": [canary_json(canary) for canary in audit.canaries],
        "piece_length": audit.options.piece_length,
        "public": list(audit.options.public),
        "seccomp": audit.options.seccomp,
        "self_check": {"planted": 1, "seen": 1},
        "counts": {
            "execs": audit.execs,
            "failed": audit.failed_execs,
            "processes": len(audit.processes),
            "argv_leaks": audit.leaking_execs,
            "environ_holders": audit.holding_execs,
            "environ_disallowed": audit.disallowed_execs,
        },
        "leaks": [made.index for made in audit.leaks],
        "disallowed": [made.index for made in audit.disallowed],
        "environ": [
            {"program": shown(finder, program), "variables": list(names), "execs": count}
            for (program, names), count in audit.holders.items()
        ],
        "unprivileged": [
            {"program": program, "privilege": privilege} for program, privilege in audit.unprivileged.items()
        ],
        "outlived": [{"pid": process.pid, "command": process.words} for process in audit.outlived],
    }


def write_json(audit: Audit, spool: ExecSpool, file: IO[str]) -> None:
    """Writes the whole report to *file*."""
    head = json.dumps(summary_json(audit, spool.finder), indent=2)
    file.write(head.removesuffix("\n}") + ',\n  "execs": [')
    spool.file.seek(0)
    for number, line in enumerate(spool.file):
        file.write((",\n    " if number else "\n    ") + line.rstrip("\n"))
    file.write('\n  ],\n  "processes": [')
    for number, process in enumerate(audit.processes):
        file.write((",\n    " if number else "\n    ") + json.dumps(process_json(process)))
    file.write("\n  ]\n}\n")


def plural(count: int, noun: str, ending: str = "s") -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def headline(audit: Audit) -> str:
    of = plural(audit.execs, "exec")
    if audit.verdict == "leak":
        parts = []
        if audit.leaking_execs:
            parts.append(f"{audit.leaking_execs:,} of {of} carried the value on the command line")
        if audit.disallowed_execs:
            parts.append(f"{audit.disallowed_execs:,} of {of} held it in an environment that may not")
        return "LEAK: " + "; ".join(parts)
    if audit.verdict == "incomplete":
        return f"INCOMPLETE: no leak among {of}, and not everything could be seen"
    if audit.verdict == "clean":
        return f"clean: none of {of} carried the value on the command line"
    return f"{of} recorded; no value to look for was given"


def render_text(audit: Audit) -> str:
    """The report for a person: verdict, witnesses with their place, environments, and what could not be seen."""
    finder = Finder(audit.canaries, piece_length=audit.options.piece_length)
    lines = [f"exec audit: {headline(audit)}"]
    lines += [
        f"  self-check: the planted exec was seen; {plural(len(audit.processes), 'process', 'es')}"
        f", {plural(audit.failed_execs, 'exec')} failed, {audit.seconds:.1f} s, command's status {audit.status}"
        + (f" ({audit.signal})" if audit.signal else "")
    ]
    if audit.timed_out:
        lines.append(f"  the command was killed after {audit.options.timeout:g} seconds")
    lines += [f"  not seen: {gap}" for gap in audit.gaps]
    lines += leak_lines(audit, finder)
    lines += environment_lines(audit, finder)
    lines += privilege_lines(audit)
    lines += [f"  still running: pid {process.pid}: {process.words}" for process in audit.outlived[:TEXT_ROWS]]
    return "\n".join(lines) + "\n"


def leak_lines(audit: Audit, finder: Finder) -> list[str]:
    lines: list[str] = []
    for made in audit.leaks[:TEXT_LEAKS]:
        failed = f" (not started: {made.error})" if made.error else ""
        lines.append(f"  exec {made.index}, pid {made.pid}: {shown(finder, made.program)}{failed}")
        for leak in made.leaks[:TEXT_ROWS]:
            found = leak.occurrence
            name = {"argument": f"argument {leak.argument}", "program": "the program's path"}.get(
                leak.where, f"word {leak.argument} of the #! line"
            )
            lines.append(f"    {name}, characters {found.start}-{found.end}: {found.kind} of {found.canary}")
        lines.append(f"    {clipped(command_line(shown(finder, argument, limit=60) for argument in made.argv[:16]))}")
        ancestors = [process.words for process in audit.lineage(made.process)[1:4] if process.words]
        lines += [f"    by {clipped(words)}" for words in ancestors]
    if audit.leaking_execs > TEXT_LEAKS:
        lines.append(f"  and {audit.leaking_execs - TEXT_LEAKS:,} more (the JSON report lists all)")
    return lines


def environment_lines(audit: Audit, finder: Finder) -> list[str]:
    if not audit.holding_execs:
        return ["  environments: none held the value"] if audit.canaries else []
    lines = [f"  environments: {audit.holding_execs:,} of {plural(audit.execs, 'exec')} held the value"]
    rows = Counter(audit.holders).most_common(TEXT_ROWS)
    for (program, names), count in rows:
        lines.append(f"    {count:>6,}  {clipped(shown(finder, program))}  in {', '.join(names)}")
    if len(audit.holders) > TEXT_ROWS:
        lines.append(f"    and {len(audit.holders) - TEXT_ROWS:,} other programs")
    lines += [
        f"  exec {made.index}, pid {made.pid}: {shown(finder, made.program)} may not hold it"
        for made in audit.disallowed[:TEXT_ROWS]
    ]
    return lines


def privilege_lines(audit: Audit) -> list[str]:
    rows: Sequence[tuple[str, str]] = list(audit.unprivileged.items())[:TEXT_ROWS]
    return [
        f"  {program} ran without its privilege ({privilege}): the tracer's filter sets no_new_privs; "
        "as root, --no-seccomp keeps it"
        for program, privilege in rows
    ]


def clipped(text: str) -> str:
    flat = text.replace("\n", "\\n").replace("\r", "\\r").replace("\x1b", "\\e")
    return flat if len(flat) <= TEXT_WIDTH else flat[: TEXT_WIDTH - 1] + "…"
