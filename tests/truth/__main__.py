"""``python -m tests.truth run|check|fix|fuzz``: truth by execution."""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.case import Case, CaseError, IncompleteAuditError, find_cases
from tests.truth.execution import ATTEMPTS, Instruments, execute, instruments
from tests.truth.fuzz import fuzz, keep
from tests.truth.repair import repaired
from tests.truth.verdict import Truth, read_truth, write_truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CASES = Path("tests/acceptance/lint/cases")


def settle(case: Case, tools: Instruments) -> Truth:
    """Executes a case twice, with fresh canaries, once plain and once recorded; both must agree."""
    plain = execute(case, tools, recorded=False)
    recorded = execute(case, tools, recorded=True)
    if replace(plain, witnesses=recorded.witnesses, script=recorded.script) != recorded:
        raise CaseError(f"{case.path}: two runs disagree, so the case is not deterministic:\n{plain}\n{recorded}")
    return recorded


def run_one(case: Case, tools: Instruments) -> str | None:
    """Executes a case and stores its truth; a message when belief and execution differ."""
    truth = settle(case, tools)
    write_truth(case, truth)
    if truth.verdict != case.belief:
        shown = "\n".join(f"    {one.file}:{one.line}: {list(one.argv)}" for one in truth.witnesses)
        return f"{case.path}: believed {case.belief}, execution shows {truth.verdict}\n{shown}".rstrip()
    return None


def check_one(case: Case, tools: Instruments) -> str | None:
    """Executes a case; a message when it shows something else than is stored."""
    if not case.truth_path.is_file():
        return f"{case.path}: no truth stored; run `python -m tests.truth run {case.path}`"
    stored, digest = read_truth(case)
    if digest != case.digest():
        return f"{case.path}: changed since it was executed; run `python -m tests.truth run {case.path}`"
    truth = settle(case, tools)
    return None if truth == stored else f"{case.path}: stored and executed truth differ\n  {stored}\n  {truth}"


def fix_one(case: Case, tools: Instruments) -> str | None:
    """Executes a case before and after its fixes; a message when they broke something."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            result = repaired(case, tools, unsafe=True)
        except IncompleteAuditError:
            if attempt == ATTEMPTS:
                raise
        else:
            found = result.complaints() if result is not None else []
            return "\n".join(f"{case.path}: {complaint}" for complaint in found) or None
    raise AssertionError("unreachable")


def for_all(cases: Sequence[Case], work: Callable[[Case, Instruments], str | None], jobs: int) -> int:
    """Does ``work`` for every case, ``jobs`` at a time; 1 when any says something."""
    began, messages = time.monotonic(), 0
    with instruments() as tools, ThreadPoolExecutor(jobs) as pool:

        def guarded(case: Case) -> str | None:
            try:
                return work(case, tools)
            except CaseError as error:
                return str(error)

        for message in pool.map(guarded, cases):
            if message:
                messages += 1
                print(message, flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(cases)} cases, {messages} to look at, {len(cases) / minutes:.0f} cases per minute with {jobs} jobs")
    return 1 if messages else 0


def search(options: argparse.Namespace) -> int:
    """Looks for scripts of which a predictor believes the wrong thing; 1 when there is one."""
    module, _, function = options.against.partition(":")
    predict = getattr(importlib.import_module(module), function)
    first = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    with instruments() as tools:
        done = fuzz(predict, tools, minutes=options.minutes, number=first)
    for surprise in done.surprises.values():
        print(f"--- believed {surprise.believed}, execution shows {surprise.execution.verdict}")
        print(surprise.script)
        for argv in surprise.execution.leaks:
            print(f"  {shlex.join(argv)}")
        if options.keep:
            print(f"  kept as {keep(surprise, options.keep)}")
    print(
        f"{done.leaks + done.clean} scripts ({done.leaks} leak, {done.clean} clean), {done.failed} failed, seed {first}"
    )
    print(f"{len(done.surprises)} surprises")
    return 1 if done.surprises else 0


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("run", "execute cases and store what they show"),
        ("check", "execute and compare with the store"),
        ("fix", "execute cases as they are and as their fixes make them, and compare"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("paths", nargs="*", type=Path, default=[CASES], help=f"folders or cases (default {CASES})")
        command.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases at a time")
    command = commands.add_parser("fuzz", help="compare a predictor with the execution of random scripts")
    command.add_argument("--minutes", type=float, default=1.0, help="how long (default 1)")
    command.add_argument("--seed", type=int, default=None, help="first seed (default: by chance)")
    command.add_argument(
        "--against", default="tests.truth.fuzz:linted_verdict", help="MODULE:FUNCTION, script to verdict"
    )
    command.add_argument("--keep", type=Path, help="folder in which surprises become cases")
    return parser


def main(arguments: Sequence[str]) -> int:
    """0 when all is as believed, 1 when something is to be looked at, 2 for a bad folder or case."""
    options = command_line().parse_args(arguments)
    if options.command == "fuzz":
        return search(options)
    try:
        paths = [path for path in options.paths if not path.name.endswith(".truth.json")]
        cases = [case for path in paths for case in find_cases(path)]
    except CaseError as error:
        print(error, file=sys.stderr)
        return 2
    return for_all(cases, {"run": run_one, "check": check_one, "fix": fix_one}[options.command], options.jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
