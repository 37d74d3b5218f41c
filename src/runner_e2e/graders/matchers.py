"""Matchers: what a case expects of messages, status, files, artifacts and JSON, each checked with a detailed result.

A matcher is data; :func:`check` holds it against what a run left behind. Nothing of an agent is executed or followed:
files are read without following links, and every text is bounded.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from runner_e2e.graders.bounded import TooSlowError, find_all, schema_errors
from runner_e2e.graders.evidence import short
from runner_e2e.graders.json_path import JsonPath, JsonPathError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "LARGEST_FILE",
    "ArtifactMatcher",
    "FileMatcher",
    "JsonMatcher",
    "Match",
    "Matcher",
    "MessageMatcher",
    "OrderMatcher",
    "Run",
    "SchemaMatcher",
    "StatusMatcher",
    "check",
]

LARGEST_FILE: Final = 16 << 20
_MISSING: Final = object()
How = Literal["exact", "contains", "regex"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run left behind. *status* is the agent's exit status (None: it has none)."""

    messages: tuple[str, ...] = ()
    status: int | None = None
    workspace: Path | None = None
    artifacts: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Match:
    """Whether an expectation holds, and what was found."""

    passed: bool
    expected: str
    found: str


@dataclass(frozen=True, kw_only=True)
class MessageMatcher:
    """Messages that are, contain, or match *text*.

    Counted are messages for ``exact``, places for ``contains`` and ``regex``; there must be *least* to *most* of them.
    """

    how: How
    text: str
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class OrderMatcher:
    """Texts that stand in the messages one after the other; others may stand between them."""

    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StatusMatcher:
    """The exit status."""

    status: int


@dataclass(frozen=True, kw_only=True)
class FileMatcher:
    """A regular file below the workspace; *how* None: it exists, or with *absent* it does not."""

    path: str
    how: How | None = None
    text: str = ""
    absent: bool = False


@dataclass(frozen=True, kw_only=True)
class ArtifactMatcher:
    """Artifacts (files below the artifacts directory) whose path matches the glob *name*."""

    name: str
    least: int = 1
    most: int | None = None
    smallest: int = 1


@dataclass(frozen=True, kw_only=True)
class JsonMatcher:
    """Values that a JSONPath selects in a JSON file: *least* or more, and if *equals* is given all equal to it."""

    path: str
    select: JsonPath
    equals: object = _MISSING
    least: int = 1
    most: int | None = None


@dataclass(frozen=True, kw_only=True)
class SchemaMatcher:
    """A JSON file that is valid by a JSON Schema."""

    path: str
    schema: object


Matcher: TypeAlias = (
    MessageMatcher | OrderMatcher | StatusMatcher | FileMatcher | ArtifactMatcher | JsonMatcher | SchemaMatcher
)


class _NotThereError(Exception):
    """A file cannot be looked at; the text says what was found instead."""


class _AbsentError(_NotThereError):
    """There is nothing at all of that name."""


def check(matcher: Matcher, run: Run) -> Match:
    """Holds *matcher* against *run*."""
    try:
        match matcher:
            case MessageMatcher():
                return _check_messages(matcher, run)
            case OrderMatcher():
                return _check_order(matcher, run)
            case StatusMatcher():
                found = "no status" if run.status is None else f"status {run.status}"
                return Match(passed=run.status == matcher.status, expected=f"status {matcher.status}", found=found)
            case FileMatcher():
                return _check_file(matcher, run)
            case ArtifactMatcher():
                return _check_artifact(matcher, run)
            case JsonMatcher():
                return _check_json(matcher, run)
            case SchemaMatcher():
                return _check_schema(matcher, run)
    except _NotThereError as error:
        return Match(passed=False, expected=describe(matcher), found=str(error))
    except (TooSlowError, JsonPathError) as error:
        return Match(passed=False, expected=describe(matcher), found=f"the check was given up: {error}")


def describe(matcher: Matcher) -> str:
    """What a matcher expects, in words."""
    match matcher:
        case MessageMatcher():
            return f"{_amount(matcher.least, matcher.most)} of messages: {_wanted(matcher.how, matcher.text)}"
        case OrderMatcher():
            return "messages in this order: " + ", ".join(f"“{short(text)}”" for text in matcher.texts)
        case StatusMatcher():
            return f"status {matcher.status}"
        case FileMatcher():
            if matcher.how is None:
                return f"{matcher.path} does not exist" if matcher.absent else f"{matcher.path} exists"
            return f"{matcher.path}: {_wanted(matcher.how, matcher.text)}"
        case ArtifactMatcher():
            return f"{_amount(matcher.least, matcher.most)} of artifacts {matcher.name}"
        case JsonMatcher():
            equal = "" if matcher.equals is _MISSING else f", each equal to {_json(matcher.equals)}"
            return f"{matcher.path}: {_amount(matcher.least, matcher.most)} of {matcher.select.text}{equal}"
        case SchemaMatcher():
            return f"{matcher.path} is valid by the schema"


def _check_messages(matcher: MessageMatcher, run: Run) -> Match:
    count = sum(_count(matcher.how, matcher.text, run.messages))
    found = f"{count} in {len(run.messages)} messages"
    if not count and run.messages:
        found += f"; the last one is “{short(run.messages[-1])}”"
    return Match(passed=_within(count, matcher.least, matcher.most), expected=describe(matcher), found=found)


def _check_order(matcher: OrderMatcher, run: Run) -> Match:
    message = position = 0
    for number, text in enumerate(matcher.texts):
        while message < len(run.messages) and (at := run.messages[message].find(text, position)) < 0:
            message, position = message + 1, 0
        if message == len(run.messages):
            after = f" after “{short(matcher.texts[number - 1])}”" if number else ""
            return Match(passed=False, expected=describe(matcher), found=f"no “{short(text)}”{after}")
        position = at + len(text)
    return Match(passed=True, expected=describe(matcher), found="all of them in this order")


def _check_file(matcher: FileMatcher, run: Run) -> Match:
    if matcher.how is None:
        try:
            os.close(_open(run.workspace, matcher.path))
        except _NotThereError as error:
            absent = matcher.absent and isinstance(error, _AbsentError)
            return Match(passed=absent, expected=describe(matcher), found=str(error))
        return Match(passed=not matcher.absent, expected=describe(matcher), found="it exists")
    text = _read(run.workspace, matcher.path)
    count = sum(_count(matcher.how, matcher.text, (text,)))
    return Match(
        passed=count > 0,
        expected=describe(matcher),
        found=f"{count} places" if count and matcher.how != "exact" else f"“{short(text)}”",
    )


def _check_artifact(matcher: ArtifactMatcher, run: Run) -> Match:
    if run.artifacts is None:
        raise _NotThereError("no directory of artifacts was given")
    names = []
    for directory, _, files in os.walk(run.artifacts):
        for file in files:
            status = os.lstat(os.path.join(directory, file))  # noqa: PTH118 - os.walk gives texts
            name = os.path.relpath(os.path.join(directory, file), run.artifacts)  # noqa: PTH118
            if stat.S_ISREG(status.st_mode) and status.st_size >= matcher.smallest and fnmatchcase(name, matcher.name):
                names.append(name)
    found = f"{len(names)}: {short(', '.join(sorted(names)[:5]))}" if names else "none"
    return Match(passed=_within(len(names), matcher.least, matcher.most), expected=describe(matcher), found=found)


def _check_json(matcher: JsonMatcher, run: Run) -> Match:
    values = matcher.select.select(_read_json(run.workspace, matcher.path))
    passed = _within(len(values), matcher.least, matcher.most)
    if matcher.equals is not _MISSING:
        passed = passed and all(_same(value, matcher.equals) for value in values)
    shown = ", ".join(_json(value) for value in values[:5])
    return Match(
        passed=passed, expected=describe(matcher), found=f"{len(values)} values: {shown}" if values else "none"
    )


def _check_schema(matcher: SchemaMatcher, run: Run) -> Match:
    errors = schema_errors(matcher.schema, _read_json(run.workspace, matcher.path))
    found = "; ".join(short(error) for error in errors[:5]) or "it is valid"
    return Match(passed=not errors, expected=describe(matcher), found=found)


def _count(how: How, text: str, texts: tuple[str, ...]) -> list[int]:
    if how == "exact":
        return [int(one == text) for one in texts]
    if how == "contains":
        return [one.count(text) for one in texts]
    return [len(spans) for spans in find_all(text, texts)]


def _within(count: int, least: int, most: int | None) -> bool:
    return count >= least and (most is None or count <= most)


def _amount(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def _wanted(how: How, text: str) -> str:
    return {"exact": "exactly", "contains": "containing", "regex": "matching"}[how] + f" “{short(text)}”"


def _json(value: object) -> str:
    return short(json.dumps(value, ensure_ascii=False))


def _same(left: object, right: object) -> bool:
    """Equality as JSON has it: true is not 1, and 1.0 is 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    return left == right


def _open(root: Path | None, path: str) -> int:
    """Opens a regular file below *root* without following a link in any part of its path; the caller closes it."""
    if root is None:
        raise _NotThereError("no workspace was given")
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    *above, name = path.split("/")
    try:
        for part in above:
            lower = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            os.close(directory)
            directory = lower
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        raise _AbsentError("there is no such file") from None
    except OSError as error:
        raise _NotThereError(f"it cannot be opened ({error.strerror})") from None
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _NotThereError("it is not a regular file")
    return file


def _read(root: Path | None, path: str) -> str:
    with os.fdopen(_open(root, path), "rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise _NotThereError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _NotThereError(f"it is not UTF-8 at byte {error.start}") from None


def _read_json(root: Path | None, path: str) -> object:
    try:
        document: object = json.loads(_read(root, path))
    except ValueError as error:
        raise _NotThereError(f"it is not JSON: {error}") from None
    except RecursionError:
        raise _NotThereError("it is nested too deeply") from None
    return document
