"""Cutting text as ``cmd`` does: after a prefix, before a quote, into the tokens of ``for /f``."""

from __future__ import annotations

import re

from runner_e2e.lint.languages.pieces import split_at
from runner_e2e.lint.values import EMPTY, Value, normal

__all__ = ["after", "before_quote", "columns"]


def after(value: Value, count: int) -> Value:
    """*value* without its first *count* known characters."""
    return Value.any_of(
        normal((text[0][count:], *text[1:])) if text and isinstance(text[0], str) else text for text in value.texts
    )


def before_quote(value: Value) -> Value:
    """*value* up to its last double quote."""
    texts = []
    for text in value.texts:
        last = text[-1] if text else ""
        if isinstance(last, str) and '"' in last:
            texts.append(normal((*text[:-1], last[: last.rindex('"')])))
        else:
            texts.append(text)
    return Value.any_of(texts)


_TOKENS = re.compile(r"tokens=([\d,*-]+)", re.IGNORECASE)
_DELIMITERS = re.compile(r"delims=(.*?)(?:\s+(?:tokens|skip|eol|usebackq)\b.*)?$", re.IGNORECASE)


def columns(content: Value, options: str) -> list[Value]:
    """The tokens that ``for /f`` takes from a line of *content*."""
    if content == EMPTY:
        return []
    lines = split_at(content, "\n") or [content]
    kept = [line for line in lines if line != EMPTY]
    if not kept:
        return []
    line = kept[0]
    for other in kept[1:]:
        line = line | other
    tokens, delimiters = _TOKENS.search(options), _DELIMITERS.search(options)
    marks = delimiters[1] if delimiters is not None else " \t"
    if not marks:
        return [line]
    parts = split_at(line, marks[0])
    if parts is None:
        return [line.opaque()] * (tokens[1].count(",") + 1 if tokens is not None else 1)
    wanted = re.findall(r"\d+", tokens[1]) if tokens is not None else ["1"]
    found = [parts[int(number) - 1] if 0 < int(number) <= len(parts) else EMPTY for number in wanted]
    if tokens is not None and "*" in tokens[1]:
        found.append(line.opaque())
    return found
