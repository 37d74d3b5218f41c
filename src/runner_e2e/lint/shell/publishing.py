"""What ``gh`` and ``curl`` send to GitHub, which shows it: issues, comments, releases, requests of its API.

That a value stands in their arguments is told by the caller of a program. Here it is where it goes: a file or a
standard input that holds it is published as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field
    from runner_e2e.lint.values import Value

    Content: TypeAlias = "Callable[[Value], Value | None]"

__all__ = ["publish"]

# https://cli.github.com/manual: what each group makes, by the verbs that write.
_GH = {
    "issue": ("the issue", frozenset({"create", "comment", "edit", "close", "lock"})),
    "pr": ("the pull request", frozenset({"create", "comment", "edit", "review", "merge", "close"})),
    "release": ("the release", frozenset({"create", "edit", "upload"})),
    "gist": ("the gist", frozenset({"create", "edit", "rename"})),
    "label": ("the label", frozenset({"create", "edit"})),
    "repo": ("the page of the repository", frozenset({"create", "edit", "rename"})),
}
_FIELDS = ("-f", "-F", "--field", "--raw-field", "--input")
_CURL_DATA = ("-d", "-F", "-T", "--data", "--form", "--json", "--upload-file")
_API = "api.github.com"


def publish(machine: Machine, call: Invocation, content: Content) -> None:
    """Records what the call publishes; *content* gives what the file that an operand names holds."""
    if call.name == "gh":
        subject, sent = _of_gh(call)
    elif call.name == "curl":
        subject, sent = _of_curl(call)
    else:
        return
    for field in sent if subject else ():
        for value in (field.value, content(field.value)):
            if value is not None:
                machine.publish(value, start=field.start, end=field.end, subject=subject)


def _words(fields: tuple[Field, ...]) -> list[str]:
    return [field.value.constant or "" for field in fields]


def _of_gh(call: Invocation) -> tuple[str, tuple[Field, ...]]:
    words = _words(call.fields)
    group = words[1] if len(words) > 1 else ""
    if group == "api":
        return ("what `gh api` publishes" if _api_writes(words[2:]) else ""), call.fields[2:]
    subject, verbs = _GH.get(group, ("", frozenset()))
    return (subject if len(words) > 2 and words[2] in verbs else ""), call.fields[3:]


def _api_writes(words: list[str]) -> bool:
    method = next(_given(words, ("-X", "--method")), "")
    if not method:
        method = "POST" if any(word.startswith(_FIELDS) for word in words) else "GET"
    if "graphql" in words:
        texts = [word for word in words if "query=" in word]
        return not texts or any("mutation" in text for text in texts)
    return method.upper() not in {"GET", "HEAD"} and not any("/secrets/" in word for word in words)


def _given(words: list[str], options: tuple[str, ...]) -> Iterator[str]:
    """Values of *options*: the next word, or the rest of the same."""
    for index, word in enumerate(words):
        for option in options:
            if word == option and index + 1 < len(words):
                yield words[index + 1]
            elif word.startswith(option) and word != option:
                yield word[len(option) :].lstrip("=")


def _of_curl(call: Invocation) -> tuple[str, tuple[Field, ...]]:
    words = _words(call.fields)
    addressed = any(_API in str(field.value) for field in call.fields)
    if not addressed or {"-G", "--get"} & set(words) or any("/secrets/" in word for word in words):
        return "", ()
    sent = []
    for index, word in enumerate(words):
        if word.startswith(_CURL_DATA):
            sent.append(call.fields[index])
            sent += call.fields[index + 1 : index + 2] if not word.partition("=")[1] else ()
    return "what `curl` sends to GitHub's API", tuple(sent)
