"""Globs of files, relative to the root of a repository."""

from __future__ import annotations

import re

from runner_e2e.lint.records import cached_property

__all__ = ["Globs"]


class Globs:
    """A set of globs. ``*`` and ``?`` stay within a name, ``**`` does not, ``[abc]`` is one of these characters.

    As in ``.gitignore``, a glob without a slash (but at its end) matches a name in any folder, and one that matches a
    folder matches everything below it.
    """

    def __init__(self, patterns: tuple[str, ...] = ()) -> None:
        self.patterns = patterns

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.patterns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Globs) and self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def __repr__(self) -> str:
        return f"Globs({self.patterns!r})"

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_translated, self.patterns)), re.DOTALL)

    def match(self, path: str) -> bool:
        """Whether one of them matches *path*, which has slashes and is relative to the root."""
        return bool(self.patterns) and self._expression.fullmatch(path) is not None


_PIECE = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<below>/\*\*$)|(?P<any>\*\*)|(?P<name>\*)|(?P<character>\?)"
    r"|\[(?P<negated>[!^]?)(?P<set>\]?[^\]/]*)\]|(?P<literal>.)",
    re.DOTALL,
)


def _translated(glob: str) -> str:
    """A regular expression for *glob*; a folder stands for what is below it."""
    glob = glob.removeprefix("./").rstrip("/")
    out = [] if "/" in glob else ["(?:.*/)?"]
    for found in _PIECE.finditer(glob):
        kind = found.lastgroup
        if kind == "folders":
            out.append("(?:.*/)?")
        elif kind == "below":
            out.append("/.*")
        elif kind == "any":
            out.append(".*")
        elif kind == "name":
            out.append("[^/]*")
        elif kind == "character":
            out.append("[^/]")
        elif kind == "set" and found["set"]:
            out.append(_one_of(found["set"], negated=bool(found["negated"])))
        else:
            out.append(re.escape(found[0]))
    return f"{''.join(out)}(?:/.*)?"


def _one_of(characters: str, *, negated: bool) -> str:
    """A character class; a range that runs backwards stands for nothing but its characters."""
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", characters)
    if any(first > last for first, last in re.findall(r"(.)-(.)", characters)):
        escaped = escaped.replace("-", r"\-")
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
