"""What ``gh`` sends to GitHub, which shows it: issues, comments, releases, requests of its API.

That a value stands in their arguments is told by the caller of a program. Here it is where it goes: a file or a
standard input that holds it is published as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.shell.archives import revealed
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field

    Content: TypeAlias = "Callable[[Value], Value | None]"

__all__ = ["publish"]

# https://cli.github.com/manual: what each group makes, by the verbs that write.
_GH = {
    "issue": ("the issue", frozenset({"create", "new", "comment", "edit", "close", "lock"})),
    "pr": ("the pull request", frozenset({"create", "new", "comment", "edit", "review", "merge", "close"})),
    "release": ("the release", frozenset({"create", "new", "edit", "upload"})),
    "gist": ("the gist", frozenset({"create", "new", "edit", "rename"})),
    "label": ("the label", frozenset({"create", "edit"})),
    "variable": ("the variable", frozenset({"set"})),
    "repo": ("the page of the repository", frozenset({"create", "new", "edit", "rename"})),
}
# Options of all groups that may stand before a verb, and take the next word.
_REPOSITORY = frozenset({"-R", "--repo"})
_FIELDS = ("-f", "-F", "--field", "--raw-field", "--input")
_BODY = re.compile(r"--body|-b|--env-file|-f")


def publish(machine: Machine, call: Invocation, content: Content) -> None:
    """Records what the call publishes; *content* gives what the file that an operand names holds."""
    subject, sent = _of_gh(call)
    if subject == "the variable" and not any(_BODY.match(word) for word in _words(call.fields)):
        # Without a body it is read from standard input.
        machine.publish(content(Value.literal("-")) or UNKNOWN, start=call.at.start, end=call.at.end, subject=subject)
    for field in sent if subject else ():
        for value in (field.value, content(_operand(field.value))):
            if value is not None:
                machine.publish(revealed(value, call.state.files), start=field.start, end=field.end, subject=subject)


def _operand(value: Value) -> Value:
    """The file that *value* names: `-Fbody.md`, and `file#label` of a release."""
    text = value.constant
    if text is None:
        return value
    if len(text) > 2 and text.startswith("-F") and "=" not in text:
        text = text[2:]
    return Value.literal(text.partition("#")[0])


def _words(fields: tuple[Field, ...]) -> list[str]:
    return [field.value.constant or "" for field in fields]


def _of_gh(call: Invocation) -> tuple[str, tuple[Field, ...]]:
    fields = _without_repository(call.fields[1:])
    words = _words(fields)
    group = words[0] if words else ""
    if group == "api":
        return ("what `gh api` publishes" if _api_writes(words[1:]) else ""), fields[1:]
    subject, verbs = _GH.get(group, ("", frozenset()))
    return (subject if len(words) > 1 and words[1] in verbs else ""), fields[2:]


def _without_repository(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    kept: list[Field] = []
    skipped = False
    for field in fields:
        word = field.value.constant or ""
        if not skipped and word not in _REPOSITORY and not word.startswith("--repo="):
            kept.append(field)
        skipped = not skipped and word in _REPOSITORY
    return tuple(kept)


def _api_writes(words: list[str]) -> bool:
    method = next(_given(words, ("-X", "--method")), "")
    if not method:
        method = "POST" if any(word.startswith(_FIELDS) for word in words) else "GET"
    if "graphql" in words:
        texts = [word for word in words if "query=" in word]
        return not texts or any("mutation" in text or "query=@" in text for text in texts)
    return method.upper() not in {"GET", "HEAD"} and not any("/secrets/" in word for word in words)


def _given(words: list[str], options: tuple[str, ...]) -> Iterator[str]:
    """Values of *options*: the next word, or the rest of the same."""
    for index, word in enumerate(words):
        for option in options:
            if word == option and index + 1 < len(words):
                yield words[index + 1]
            elif word.startswith(option) and word != option:
                yield word[len(option) :].lstrip("=")
