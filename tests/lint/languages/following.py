"""What an analyser of a language says of a program that has a confidential text in ``ID``."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

from runner_e2e.lint.shell import Files, ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Interpolation, Label, Origin, Script, Step, Taint, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.shell.results import ArgvLeak

LABEL = Label(kind="confidential", name="inputs.id")
COMMAND_FILES = {
    "GITHUB_ENV": "/github/env",
    "GITHUB_OUTPUT": "/github/output",
    "GITHUB_PATH": "/github/path",
    "GITHUB_STATE": "/github/state",
    "GITHUB_STEP_SUMMARY": "/github/summary",
    "GITHUB_EVENT_PATH": "/github/event.json",
}
TIME = 4.0
"""Seconds of processor time that no program may need, however it is written."""


def labelled(origin: Origin | None = None) -> Value:
    step = Step(origin, 0, 0, "source") if origin is not None else None
    return Value.of([Taint(LABEL, Confidence.HIGH, step)])


def follow(
    language: str,
    text: str,
    *,
    environment: Mapping[str, Value] | None = None,
    scripts: Mapping[str, str] | None = None,
    contents: Mapping[str, Value] | None = None,
    interpolations: tuple[Interpolation, ...] = (),
    arguments: tuple[Value, ...] = (),
    name: str = "/github/workspace/program",
) -> ShellResult:
    """*scripts*: files of the repository by their absolute path; *contents*: what files hold before."""
    origin = Origin(path="program", text=text)
    programs = {path: Script(origin=Origin(path=path, text=one), text=one) for path, one in (scripts or {}).items()}
    given = {
        "ID": labelled(origin),
        "PATH": Value.unknown(),
        "HOME": Value.unknown(),
        **{key: Value.literal(path) for key, path in COMMAND_FILES.items()},
        **(environment or {}),
    }
    files = Files(
        contents={(path,): value for path, value in (contents or {}).items()},
        find_script=programs.get,
    )
    return analyse(
        Script(origin=origin, text=text, interpolations=interpolations),
        environment=given,
        positional=arguments,
        files=files,
        options=ShellOptions(language=language, script_name=name, deadline=time.process_time() + 60),
    )


def confidence(leak: ArgvLeak) -> Confidence:
    return max(taint.confidence for taint in leak.taints)


def arguments_of(result: ShellResult, least: Confidence = Confidence.MEDIUM) -> list[tuple[str, str]]:
    """Command and argument, as written, of every leak that is at least so sure."""
    return [
        (leak.command, leak.origin.text[leak.start : leak.end]) for leak in result.leaks if confidence(leak) >= least
    ]


def labels(value: Value) -> set[str]:
    return {taint.label.name for taint in value.taints}


def mutations(texts: Iterable[str], seed: int, count: int) -> list[str]:
    """Programs made of the pieces of others: most of them are no programs at all."""
    source = list(texts)
    chance = random.Random(seed)
    pieces = [piece for text in source for piece in re.findall(r"\w+|\s+|[^\w\s]", text)]
    found = []
    for _ in range(count):
        words = re.findall(r"\w+|\s+|[^\w\s]", chance.choice(source))
        first = chance.randrange(len(words))
        words = words[first : first + chance.randrange(1, 120)]
        for _ in range(chance.randrange(6)):
            at = chance.randrange(len(words) + 1)
            if chance.random() < 0.4 and at < len(words):
                del words[at]
            else:
                words.insert(at, chance.choice(pieces))
        found.append("".join(words))
    return found
