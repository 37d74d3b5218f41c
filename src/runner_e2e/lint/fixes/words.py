"""Questions about the words of a command that several repairs ask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.ir import Literal, Parameter, Pipeline, statements

if TYPE_CHECKING:
    from runner_e2e.lint.fixes.scripts import Program
    from runner_e2e.lint.shell.ir import Simple, Word

    Piece = tuple[int, int, str]
    """The text that comes in place of ``[start, end)`` of a program."""

__all__ = ["Rewriting", "has_input", "is_split", "is_variable", "leading_text", "raw", "reads"]

_PATTERN = re.compile(r"[*?\[~{]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewriting:
    """*title* says what is done; *safe*, whether the program does the same.

    *needs_descriptors*: bash makes a file of a substitution, which programs of Windows cannot open. *overrides*: what
    is set for the command, and does something else where somebody sets it already.
    """

    title: str
    safe: bool
    pieces: list[Piece]
    needs_descriptors: bool = False
    overrides: str = ""


def raw(program: Program, word: Word) -> str:
    """The word as written."""
    return program.text[word.start : word.end]


def leading_text(word: Word) -> str:
    """The known text with which a word begins."""
    pieces: list[str] = []
    for part in word.parts:
        if not isinstance(part, Literal):
            break
        pieces.append(part.text)
    return "".join(pieces)


def is_split(word: Word) -> bool:
    """Whether the shell may make several words of it, or other ones by the names of files."""
    return any(
        not part.quoted and (not isinstance(part, Literal) or _PATTERN.search(part.text) is not None)
        for part in word.parts
    )


def is_variable(word: Word, *, after: str = "") -> bool:
    """Whether the word is one variable without quotes, after the text *after*."""
    last = word.parts[-1] if word.parts else None
    plain = isinstance(last, Parameter) and not last.operator and not last.quoted
    return plain and all(isinstance(part, Literal) for part in word.parts[:-1]) and leading_text(word) in {"", after}


def reads(word: Word, name: str) -> bool:
    """Whether the variable *name* is expanded in it."""
    return any(isinstance(part, Parameter) and part.name == name for part in statements(word))


def has_input(program: Program, command: Simple) -> bool:
    """Whether something is written to the standard input of the command already."""
    if any(each.operator.startswith("<") or each.descriptor == 0 for each in command.redirections):
        return True
    pipelines = (node for node in statements(program.commands) if isinstance(node, Pipeline))
    return any(node is command for line in pipelines for later in line.commands[1:] for node in statements(later))
