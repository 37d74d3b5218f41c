"""Command lines that can be written without the value: builtins, assignments before a command, names alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.expression import ExpressionError, parse
from runner_e2e.lint.finding import Edit, Fix
from runner_e2e.lint.fixes.commands import CHANGES
from runner_e2e.lint.fixes.interpolation import Replacement, as_variable
from runner_e2e.lint.fixes.scripts import Program, StepScript, script_at
from runner_e2e.lint.fixes.yaml_edits import replace_part
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.fixes.words import Piece, Rewriting
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.shell.ir import Simple

__all__ = ["repair"]

_SHEBANG = re.compile(r"#![ \t]*(?:/usr/bin/env[ \t]+)?(?:\S*/)?(?P<shell>bash|sh|dash)\b")


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001 - one signature
    """Writes the command so that the value is no argument of it, where it does the same then."""
    if document.root is None:
        return _in_file(finding, document)
    script = script_at(finding, document)
    program = script.program() if script is not None else None
    if script is None or program is None:
        return None
    prepared = _without_holes(script, program)
    if prepared is None:
        return None
    change = _change(prepared.program, script.index)
    return _fix(script, prepared, change) if change is not None else None


def _change(program: Program, index: int) -> Rewriting | None:
    """What to do with the command of which a word starts at *index*."""
    for command in program.simple_commands:
        number = next((number for number, word in enumerate(command.words) if word.start == index), 0)
        if number and not _has_other_meaning(program, command):
            return next((found for change in CHANGES if (found := change(program, command, number)) is not None), None)
    return None


def _in_file(finding: Finding, document: Document) -> Fix | None:
    """The command in a shell script of the repository."""
    dialect = _SHEBANG.match(document.text)
    if dialect is None and not document.path.endswith((".sh", ".bash")):
        return None
    bash = document.path.endswith(".bash") if dialect is None else dialect["shell"] == "bash"
    program = Program.of(document.text, (), bash=bash)
    lines = document.text.split("\n")
    index = sum(len(line) + 1 for line in lines[: finding.span.line - 1]) + finding.span.column - 1
    change = _change(program, index) if program is not None else None
    if program is None or change is None or not program.is_program_with(change.pieces):
        return None
    edits = tuple(Edit(path=document.path, start=start, end=end, text=text) for start, end, text in change.pieces)
    # Who runs the script, and on what system, is not known.
    return Fix(
        title=change.title, safe=change.safe and not change.needs_descriptors and not change.overrides, edits=edits
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """The *program* in which *replacements* are made of the expressions in the word that the finding is about."""

    program: Program
    replacements: tuple[Replacement, ...]

    def original(self, offset: int) -> int:
        """Where a character of the program, in no replacement, stands in the text as it is."""
        for each in self.replacements:
            if offset < each.start + len(each.text):
                break
            offset += (each.end - each.start) - len(each.text)
        return offset


def _without_holes(script: StepScript, program: Program) -> _Prepared | None:
    """The program with a variable for each expression in the word; None where one cannot have a variable."""
    words = (word for command in program.simple_commands for word in command.words if word.start == script.index)
    word = next(words, None)
    if word is None:
        return None
    replacements: list[Replacement] = []
    for number, hole in enumerate(script.holes):
        if not word.start <= hole.start < word.end:
            continue
        try:
            expression = parse(script.text[hole.inner_start : hole.inner_end])
        except ExpressionError:
            return None
        found = as_variable(script, program, number, expression)
        if found is None or (replacements and found.start < replacements[-1].end):
            return None
        replacements.append(found)
    changed: Program | None = program
    for each in reversed(replacements):
        changed = changed.changed(each.start, each.end, each.text) if changed is not None else None
    return _Prepared(program=changed, replacements=tuple(replacements)) if changed is not None else None


def _fix(script: StepScript, prepared: _Prepared, change: Rewriting) -> Fix | None:
    overridden = change.overrides and change.overrides in script.document.text
    if overridden or not prepared.program.is_program_with(change.pieces):
        return None
    pieces: list[Piece] = [
        (prepared.original(start), prepared.original(end), text) for start, end, text in change.pieces
    ]
    pieces += [
        (each.start, each.end, each.text)
        for each in prepared.replacements
        if not any(start < each.end and each.start < end for start, end, _ in pieces)
    ]
    edits = [replace_part(script.document, script.scalar, *piece) for piece in pieces]
    edits += [each.edit for each in prepared.replacements if each.edit is not None]
    made = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
    if len(made) < len(set(edits)):
        return None
    known_system = script.system in {"linux", "macos"} or not change.needs_descriptors
    safe = change.safe and known_system and all(each.safe for each in prepared.replacements)
    return Fix(title=change.title, safe=safe, edits=made)


def _has_other_meaning(program: Program, command: Simple) -> bool:
    """Whether the script gives the name of the command, or any by ``alias``, another meaning."""
    name = command.words[0].static
    return name is None or bool({name, name.rpartition("/")[2]} & program.functions) or program.has_aliases
