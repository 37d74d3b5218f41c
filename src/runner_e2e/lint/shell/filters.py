"""Filters: what ``cut``, ``head``, ``tr``, ``sed``, ``grep`` and their like leave of a labelled text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.text_builtins import at_most
from runner_e2e.lint.values import UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.state import Field

__all__ = ["PROGRAMMABLE", "filtered"]

PROGRAMMABLE = frozenset({"sed", "m4", "jq", "yq", "awk", "gawk", "mawk", "nawk", "date", "xmllint", "xmlstarlet"})
"""Filters whose arguments can come out of them: ``sed "s/x/$S/"``."""

_LETTERS = re.compile(r"a-z|A-Z|:alnum:|:alpha:|:lower:|:upper:|:print:|:graph:")


def filtered(name: str, fields: tuple[Field, ...], content: Value) -> Value:
    """What *name* with these arguments lets through of *content*."""
    arguments = [one.value.constant or "" for one in fields[1:]]
    model = _MODELS.get(name)
    if model is not None:
        return model(arguments, content)
    return content.opaque()


def _number(arguments: list[str], *options: str) -> int | None:
    for index, text in enumerate(arguments):
        for option in options:
            if text == option and index + 1 < len(arguments) and arguments[index + 1].isdigit():
                return int(arguments[index + 1])
            if text.startswith(option) and text[len(option) :].lstrip("=").isdigit():
                return int(text[len(option) :].lstrip("="))
    return None


def _head(arguments: list[str], content: Value) -> Value:
    size = _number(arguments, "-c", "--bytes=", "--bytes")
    if size is not None:
        return at_most(content, size)
    first = content.texts[0] if len(content.texts) == 1 else ()
    known = first and isinstance(first[0], str) and "\n" in first[0]
    count = _number(arguments, "-n", "--lines=", "-")
    if known and isinstance(first[0], str) and count is not None and first[0].count("\n") >= count:
        return Value.literal("".join(first[0].splitlines(keepends=True)[:count]))
    return content.opaque()


def _tail(arguments: list[str], content: Value) -> Value:
    size = _number(arguments, "-c", "--bytes=", "--bytes")
    if size is not None and not any("+" in text for text in arguments):
        return at_most(content, size).opaque() if size >= 64 else _bounded(content, size)
    return content.opaque()


def _bounded(content: Value, size: int) -> Value:
    """Any *size* characters of *content*."""
    return at_most(content.opaque(), size)


def _cut(arguments: list[str], content: Value) -> Value:
    for index, text in enumerate(arguments):
        match = re.fullmatch(r"-[cb](.*)|--(?:characters|bytes)=(.*)", text)
        if match is None:
            continue
        spec = match[1] or match[2] or (arguments[index + 1] if index + 1 < len(arguments) else "")
        size = _positions(spec)
        return _bounded(content, size) if size is not None else content.opaque()
    return content.opaque()


def _positions(spec: str) -> int | None:
    """How many characters a list such as ``1-3,5`` takes, None when it is open."""
    total = 0
    for part in spec.split(","):
        first, dash, last = part.partition("-")
        if not dash and first.isdigit():
            total += 1
        elif last.isdigit():
            total += int(last) - (int(first) if first.isdigit() else 1) + 1
        else:
            return None
    return total


def _tr(arguments: list[str], content: Value) -> Value:
    flags = "".join(text[1:] for text in arguments if text.startswith("-") and len(text) > 1)
    sets = [text for text in arguments if not (text.startswith("-") and len(text) > 1)]
    first = sets[0] if sets else ""
    letters = _LETTERS.search(first) is not None
    complement = "c" in flags or "C" in flags
    if "d" in flags:
        destroys = (not letters) if complement else letters
    else:
        destroys = len(sets) > 1 and (letters != complement) and len(set(sets[1])) <= 2
    return content.opaque().weakened(Confidence.LOW) if destroys else content.opaque()


def _grep(arguments: list[str], content: Value) -> Value:
    if any(
        re.fullmatch(r"-\w*[cqlL]\w*|--(?:count|quiet|silent|files-with(?:out)?-match(?:es)?)", a) for a in arguments
    ):
        return UNKNOWN
    return content.opaque()


_MASKED = re.compile(r"s(.)(?P<all>\.|\[\^?[^]]*\]|\.\*|\.\+|\[\^?[^]]*\][*+])\1[^a-z&\\]{0,12}\1g?")


def _sed(arguments: list[str], content: Value) -> Value:
    scripts = [text for text in arguments if re.match(r"s[^\w\s]", text)]
    for script in scripts:
        match = _MASKED.fullmatch(script)
        if match is None:
            continue
        pattern = match["all"]
        if pattern in (".*", ".+") or (pattern == "." and script.endswith("g")):
            return UNKNOWN
        if pattern.startswith("[") and not pattern.startswith("[^") and _LETTERS.search(pattern):
            return content.opaque().weakened(Confidence.LOW)
    return content.opaque()


def _awk(arguments: list[str], content: Value) -> Value:
    program = next((text for text in arguments if "{" in text or not text.startswith("-")), "")
    if re.fullmatch(r"\s*(?:END\s*)?\{\s*print\s+(?:NR|NF|length(?:\(\s*(?:\$\d*|\w*)?\s*\))?)\s*;?\s*\}\s*", program):
        return UNKNOWN
    return content.opaque()


def _jq(arguments: list[str], content: Value) -> Value:
    programs = [text for text in arguments if not text.startswith("-")]
    if programs and re.search(r"(?:\|\s*|^)(?:length|type|keys\s*\|\s*length|empty)\s*$", programs[0]):
        return UNKNOWN
    if programs and re.search(r"@base64\s*$", programs[0]):
        return content.opaque().weakened(Confidence.LOW)
    if any(text in ("-e", "--exit-status") for text in arguments) and programs and re.search(r"[=!<>]=", programs[0]):
        return UNKNOWN
    return content.opaque()


_MODELS: dict[str, Callable[[list[str], Value], Value]] = {
    "head": _head,
    "tail": _tail,
    "cut": _cut,
    "tr": _tr,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "jq": _jq,
    "gojq": _jq,
    "yq": _jq,
}
