"""Comments that ask to leave a finding out: ``# runner-e2e: ignore[rule, rule2] reason``.

Only what YAML or the language of the script takes for a comment counts, never a text that merely holds the words. A
comment behind code holds for that line, one that stands alone for the next line; when a command, or a text of several
lines (``run: |``), begins on that line, it holds for all of it.
"""

from __future__ import annotations

import bisect
import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.result import Ignore
from runner_e2e.lint.values import Span
from runner_e2e.yaml_positions import Alias, Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from runner_e2e.lint.comments import Reading
    from runner_e2e.lint.repository import Document
    from runner_e2e.yaml_positions import Node

__all__ = ["MARK", "document_ignores", "script_ignores"]

MARK = "runner-e2e:"
"""A file without these characters has no such comment."""

_COMMENT = re.compile(r"(?:#|//|::|\b(?:rem|REM|Rem)\b)[ \t]*runner-e2e:[ \t]*(?P<word>[\w-]*)(?P<rest>[^\r\n]*)")
_REST = re.compile(r"[ \t]*\[(?P<rules>[^\]]*)\](?P<reason>.*)")
_FORM = "write `# runner-e2e: ignore[rule] reason`"
_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A comment ``[start, end)`` of a text, and the stretch that it holds for; *line_start* is that of its line."""

    match: re.Match[str]
    first: int
    last: int


def document_ignores(document: Document, known: Callable[[str], str | None]) -> Iterator[Ignore]:
    """The comments of a YAML file, and of the scripts in it, in the order of the file.

    *known* says what is wrong with a name that is no rule, None for a rule.
    """
    if MARK not in document.text or document.root is None:
        return
    # Imported here: few files have such a comment.
    from runner_e2e.lint.comments import read_script

    found: list[Ignore] = []
    scalars = _scalars(document.root)
    source = document.root.source
    reading = _yaml_reading(document.text, scalars)

    def place(offset: int) -> tuple[int, int]:
        return source.position(offset)

    for one in _found(document.text, reading):
        found += _ignore(document.path, one, place, known)
    for scalar, language in _scripts(document.root):
        if MARK not in scalar.value:
            continue
        for one in _found(scalar.value, read_script(scalar.value, language)):
            found += _ignore(document.path, one, scalar.position, known)
    yield from sorted(found, key=lambda each: (each.span.line, each.span.column))


def script_ignores(path: str, relative: str, text: str, known: Callable[[str], str | None]) -> Iterator[Ignore]:
    """The comments of a script of the repository, which messages call *path*."""
    if MARK not in text:
        return
    from runner_e2e.lint.comments import language_of, read_script

    starts = [0, *(found.end() for found in _LINE.finditer(text))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    for one in _found(text, read_script(text, language_of(posixpath.basename(relative), text))):
        yield from _ignore(path, one, place, known)


def _found(text: str, reading: Reading) -> Iterator[_Found]:
    """The comments of ours in *text*, and where the code is that they are about."""
    for match in _COMMENT.finditer(text):
        comment = reading.comment_at(match.start())
        if comment is None:
            continue
        line_start = max(text.rfind("\n", 0, comment), text.rfind("\r", 0, comment)) + 1
        behind_code = text[line_start:comment].strip(" \t-")
        first = line_start if behind_code else _next_code(text, match.end(), reading)
        ending = _LINE.search(text, first)
        last = ending.start() if ending else len(text)
        if first < len(text):
            last = max([last, *reading.extents_from(first, last)])
        yield _Found(match=match, first=first, last=last)


def _next_code(text: str, offset: int, reading: Reading) -> int:
    """The start of the next line, past lines that are comments."""
    while True:
        ending = _LINE.search(text, offset)
        if ending is None:
            return len(text)
        offset = ending.end()
        following = _LINE.search(text, offset)
        line = text[offset : following.start() if following else len(text)]
        inner = line.lstrip(" \t")
        if not inner or reading.comment_at(offset + len(line) - len(inner)) is None:
            return offset if inner else len(text)


def _ignore(
    path: str, one: _Found, place: Callable[[int], tuple[int, int]], known: Callable[[str], str | None]
) -> Iterator[Ignore]:
    word, rest = one.match["word"], one.match["rest"]
    if word == "paid" or (word != "ignore" and not rest.lstrip(" \t").startswith("[")):
        return
    line, column = place(one.match.start())
    last_line, last_column = place(one.match.end())
    span = Span(path=path, line=line, column=column, end_line=last_line, end_column=last_column)
    form = _REST.fullmatch(rest)
    rules = tuple(dict.fromkeys(name.strip() for name in form["rules"].split(",") if name.strip())) if form else ()
    reason = form["reason"].strip(" \t:-") if form else ""
    mistake, remedy = _mistake(word, rules, reason, bool(form), known)
    holding = () if word != "ignore" or not reason else tuple(name for name in rules if known(name) is None)
    first, last = (place(one.first)[0], place(one.last)[0]) if one.last > one.first else (0, -1)
    yield Ignore(span=span, rules=holding, reason=reason, first=first, last=last, mistake=mistake, remedy=remedy)


def _mistake(
    word: str,
    rules: tuple[str, ...],
    reason: str,
    formed: bool,
    known: Callable[[str], str | None],
) -> tuple[str, str]:
    """What is wrong with a comment, and what to do; nothing where it is right."""
    if word != "ignore":
        return f"`{word}` is no instruction", _FORM
    if not formed or not rules:
        return "this comment names no rule", _FORM
    wrong = next((name for name in rules if known(name) is not None), None)
    if wrong is not None:
        return f"`{wrong}` is no rule", known(wrong) or ""
    if not reason:
        return "this comment gives no reason", f"{_FORM}: who reads it later must know why"
    return "", ""


# --- YAML: comments are what stands outside of scalars.


def _scalars(root: Node) -> list[Scalar]:
    """Every scalar once, keys too, in the order of the file."""
    found: list[Scalar] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Scalar):
            found.append(node)
        elif isinstance(node, Sequence):
            stack.extend(node.items)
        elif isinstance(node, Mapping):
            for pair in node.pairs:
                stack.extend(pair)
    return sorted(found, key=lambda scalar: scalar.start)


def _yaml_reading(text: str, scalars: list[Scalar]) -> Reading:
    from runner_e2e.lint.comments import Reading

    stretches: list[tuple[int, int]] = []
    extents: list[tuple[int, int]] = []
    for scalar in scalars:
        start = scalar.start
        if scalar.style in {"|", ">"}:
            # The line of the indicator may end in a comment; the text begins after it.
            header = _LINE.search(text, start, scalar.end)
            start = header.end() if header else scalar.end
        stretches.append((start, scalar.end))
        if _LINE.search(text, scalar.start, scalar.end):
            extents.append((scalar.start, scalar.end))
    return Reading(comments=_between(text, stretches), extents=tuple(extents))


_YAML_COMMENT = re.compile(r"(?:^|(?<=[ \t\r\n]))#[^\r\n]*")


def _between(text: str, stretches: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The comments of *text* outside of *stretches*, which are in order and do not overlap."""
    found: list[tuple[int, int]] = []
    offset = 0
    for start, end in (*stretches, (len(text), len(text))):
        found += (match.span() for match in _YAML_COMMENT.finditer(text, offset, max(start, offset)))
        offset = max(offset, end)
    return tuple(found)


def _scripts(root: Node) -> Iterator[tuple[Scalar, str]]:
    """Every script of a workflow or an action with its language; each once, where it is written."""
    stack: list[tuple[Node, str]] = [(root, "bash")]
    seen: set[int] = set()
    while stack:
        node, shell = stack.pop()
        if isinstance(node, Alias) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Sequence):
            stack.extend((item, shell) for item in node.items)
        elif isinstance(node, Mapping):
            shell = _default_shell(node) or shell
            own = node.get("shell")
            run, uses = node.get("run"), node.get("uses")
            if isinstance(run, Scalar):
                yield run, own.value if isinstance(own, Scalar) else shell
            if (
                isinstance(uses, Scalar)
                and "/github-script@" in uses.value
                and isinstance(body := node.get("with"), Mapping)
            ):
                script = body.get("script")
                if isinstance(script, Scalar):
                    yield script, "javascript"
            stack.extend((value, shell) for _, value in node.pairs)


def _default_shell(node: Mapping) -> str | None:
    defaults = node.get("defaults")
    run = defaults.get("run") if isinstance(defaults, Mapping) else None
    shell = run.get("shell") if isinstance(run, Mapping) else None
    return shell.value if isinstance(shell, Scalar) else None
