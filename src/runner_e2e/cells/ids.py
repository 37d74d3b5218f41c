"""Ids of cells: ``suite.profile.environment.case``, where the case may be several segments joined by dots."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runner_e2e.cells.wording import quote
from runner_e2e.errors import UsageError

__all__ = ["CASE", "MAXIMUM_LENGTH", "SEGMENT", "CellId", "is_case", "is_segment", "parse_id"]

MAXIMUM_LENGTH = 512
SEGMENT = r"[a-z0-9][a-z0-9_-]*"
CASE = rf"{SEGMENT}(?:\.{SEGMENT})*"

_SEGMENT = re.compile(SEGMENT)
_CASE = re.compile(CASE)
_FOREIGN = re.compile(r"[^a-z0-9_.-]")


@dataclass(frozen=True, kw_only=True)
class CellId:
    """The parts of an id. Suite, profile and environment are one segment each, so an id has one reading only."""

    suite: str
    profile: str
    environment: str
    case: str

    def __str__(self) -> str:
        return f"{self.suite}.{self.profile}.{self.environment}.{self.case}"


def is_segment(text: str) -> bool:
    """Whether *text* can name a suite, a profile, an environment or a group."""
    return _SEGMENT.fullmatch(text) is not None


def is_case(text: str) -> bool:
    """Whether *text* can name a case: one or more segments joined by dots."""
    return _CASE.fullmatch(text) is not None


def parse_id(text: str) -> CellId:
    """Splits an id into its parts.

    Raises :class:`UsageError` for everything that is not an id; the message shows nothing of *text* that a
    terminal or a log could take for more than text.
    """
    fix = "an id is suite.profile.environment.case, as runner-e2e cells list shows them"
    if not text:
        raise UsageError("the id is empty", fix=fix)
    if len(text) > MAXIMUM_LENGTH:
        raise UsageError(f"the id has {len(text)} characters", why=f"at most {MAXIMUM_LENGTH} are allowed", fix=fix)
    if foreign := _FOREIGN.search(text):
        raise UsageError(
            f"the id holds {_described(foreign.group())} at character {foreign.start() + 1}",
            why="an id is made of the characters a-z, 0-9, '-', '_' and '.' only",
            fix=fix,
        )
    parts = text.split(".", 3)
    if len(parts) < 4:
        raise UsageError(f"{quote(text)} has {len(parts)} of the 4 parts of an id", fix=fix)
    segments = text.split(".")
    if wrong := next((segment for segment in segments if not is_segment(segment)), None):
        raise UsageError(f"the part {quote(wrong)} of the id begins with '{wrong[0]}'", why=_RULE, fix=fix)
    if "" in segments:
        raise UsageError(f"{quote(text)} has an empty part", why=_RULE, fix=fix)
    suite, profile, environment, case = parts
    return CellId(suite=suite, profile=profile, environment=environment, case=case)


_RULE = "each part begins with a letter or a digit"


def _described(character: str) -> str:
    if character == "\n":
        return "a line break"
    if character == " ":
        return "a blank"
    if "!" <= character <= "~":
        return f"the character {character}"
    return f"the character U+{ord(character):04X}"
