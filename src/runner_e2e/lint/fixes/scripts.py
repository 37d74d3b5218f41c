"""The script of a step as a repair sees it: its text, its expressions, its shell, and the commands in it."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from runner_e2e.lint.expression import Embedded, ExpressionError, embedded
from runner_e2e.lint.fixes.yaml_edits import Located, node_at
from runner_e2e.lint.records import cached_property, dataclass
from runner_e2e.lint.shell import ir
from runner_e2e.lint.shell.ir import Inserted, Parameter, Simple, Word, statements
from runner_e2e.lint.shell.parser import parse
from runner_e2e.lint.source import Source
from runner_e2e.lint.step_shell import StepShell, step_shell
from runner_e2e.lint.values import Hole, Interpolation, Origin, Script, Value
from runner_e2e.lint.workflow import Block, Workflow

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.shell.ir import Part, Sequence
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Scalar

__all__ = ["Form", "Program", "StepScript", "form_of", "script_at"]

_SYSTEMS: Final[tuple[tuple[str, Literal["linux", "macos", "windows"]], ...]] = (
    ("ubuntu", "linux"),
    ("linux", "linux"),
    ("macos", "macos"),
    ("windows", "windows"),
)

_CHOSEN_ELSEWHERE = re.compile(r"\b(?:inputs|env|vars|needs|github|steps|fromjson)\b")

Form = object
"""What a program does, without its places: equal forms are the same commands with the same words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepScript:
    """The ``run`` of *step*, character *index* of it, and its ``${{ }}``."""

    document: Document
    located: Located
    step: Step
    shell: StepShell
    holes: tuple[Embedded, ...]

    @property
    def scalar(self) -> Scalar:
        """The text of the script."""
        return self.located.scalar

    @property
    def text(self) -> str:
        """The program as written."""
        return self.located.scalar.value

    @property
    def index(self) -> int:
        """The place in the text that the finding is about."""
        return self.located.index

    @property
    def system(self) -> Literal["linux", "macos", "windows"] | None:
        """What the job runs on, None where its labels do not tell."""
        labels = " ".join(self.located.job.runner_labels).lower() if self.located.job is not None else ""
        found = {system for word, system in _SYSTEMS if word in labels}
        return found.pop() if len(found) == 1 and "${{" not in labels else None

    def program(self) -> Program | None:
        """The commands of a POSIX shell, None where they cannot be told or it is another language."""
        if self.shell.posix is None:
            return None
        holes = tuple((hole.start, hole.end) for hole in self.holes)
        return Program.of(self.text, holes, bash=self.shell.posix == "bash")


@dataclass(frozen=True)
class Program:
    """A parsed shell program: *holes* are ``[start, end)`` of the texts that the runner puts in.

    A script has as many findings as it has: what each of them asks for is found out once.
    """

    text: str
    holes: tuple[tuple[int, int], ...]
    bash: bool
    commands: Sequence

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str, holes: tuple[tuple[int, int], ...], *, bash: bool) -> Program | None:
        """The program in *text*, None when a shell would not understand it."""
        script = Script(
            origin=Origin(path="", text=text),
            text=text,
            interpolations=tuple(
                Interpolation(start=start, end=end, value=Value(((Hole(frozenset(), str(number)),),)))
                for number, (start, end) in enumerate(holes)
            ),
        )
        commands, error = parse(Source.of_script(script), bash=bash)
        return None if error is not None else Program(text, holes, bash, commands)

    def changed(self, start: int, end: int, text: str) -> Program | None:
        """The program with *text* in place of ``[start, end)``, in which no other hole stands."""
        shift = len(text) - (end - start)
        kept = [hole for hole in self.holes if hole[1] <= start or hole[0] >= end]
        moved = tuple((first, last) if last <= start else (first + shift, last + shift) for first, last in kept)
        return Program.of(self.text[:start] + text + self.text[end:], moved, bash=self.bash)

    def is_program_with(self, pieces: list[tuple[int, int, str]]) -> bool:
        """Whether a shell understands the text with *pieces* in place of ``[start, end)``, which do not overlap."""
        program: Program | None = self
        for start, end, text in sorted(pieces, reverse=True):
            program = program.changed(start, end, text) if program is not None else None
        return program is not None

    @cached_property
    def simple_commands(self) -> tuple[Simple, ...]:
        """Every simple command, wherever it stands."""
        return tuple(node for node in statements(self.commands) if isinstance(node, Simple))

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of all functions that the program defines."""
        return frozenset(node.name for node in statements(self.commands) if isinstance(node, ir.FunctionDefinition))

    @cached_property
    def has_aliases(self) -> bool:
        """Whether it gives any name another meaning by ``alias``."""
        return any(command.words and command.words[0].static == "alias" for command in self.simple_commands)

    def hole_at(self, start: int) -> Inserted | None:
        """The part of a word that the hole at *start* is, None where the shell sees none (a comment, an escape)."""
        return next(
            (node for node in statements(self.commands) if isinstance(node, Inserted) and node.start == start), None
        )


def form_of(program: Program, *, hole: int | None = None, variable: str = "") -> Form:
    """The form of *program*; the hole with the number *hole* counts as the variable *variable*."""
    renamed = {number: number for number in range(len(program.holes))}
    if hole is not None:
        renamed = {number: number if number < hole else number - 1 for number in renamed}
        renamed[hole] = -1
    return _form(program.commands, renamed, variable)


def _form(node: object, renamed: dict[int, int], variable: str) -> object:
    if isinstance(node, tuple):
        return tuple(_form(each, renamed, variable) for each in node)
    if isinstance(node, Word):
        assignment = _form(node.assignment, renamed, variable)
        return ("Word", _parts(node.parts, renamed, variable), assignment)
    if not is_dataclass(node):
        return node
    inner = [getattr(node, field.name) for field in fields(node) if field.name not in {"start", "end"}]
    return (type(node).__name__, *(_form(each, renamed, variable) for each in inner))


def _parts(parts: tuple[Part, ...], renamed: dict[int, int], variable: str) -> tuple[object, ...]:
    """Parts of a word, neighbouring texts joined; an empty quotation counts only where nothing else is quoted."""
    found: list[tuple[object, ...]] = []
    quoted = any(getattr(part, "quoted", False) and not _is_empty(part) for part in parts)
    for part in parts:
        if isinstance(part, ir.Literal):
            if not part.text and quoted:
                continue
            if found and found[-1][0] == "text" and found[-1][2] == part.quoted:
                found[-1] = ("text", f"{found[-1][1]}{part.text}", part.quoted)
            else:
                found.append(("text", part.text, part.quoted))
        elif isinstance(part, Inserted):
            found.append(_inserted(part, renamed, variable))
        else:
            form = _form(part, renamed, variable)
            assert isinstance(form, tuple)
            found.append(form)
    return tuple(found)


def _inserted(part: Inserted, renamed: dict[int, int], variable: str) -> tuple[object, ...]:
    piece = part.value.texts[0][0]
    assert isinstance(piece, Hole)
    number = renamed[int(piece.symbol)]
    if number >= 0:
        return ("hole", number, part.quoted)
    form = _form(Parameter(0, 0, variable, part.quoted), renamed, variable)
    assert isinstance(form, tuple)
    return form


def _is_empty(part: Part) -> bool:
    return isinstance(part, ir.Literal) and not part.text


def script_at(finding: Finding, document: Document) -> StepScript | None:
    """The script of a step in which *finding* stands, None when it stands elsewhere or the shell is not known."""
    located = node_at(document, finding.span)
    if located is None or located.step is None or located.step.run is not located.scalar:
        return None
    shell = _shell(located, document)
    if shell is None:
        return None
    try:
        holes = tuple(embedded(located.scalar.value))
    except ExpressionError:
        return None
    return StepScript(document=document, located=located, step=located.step, shell=shell, holes=holes)


def _shell(located: Located, document: Document) -> StepShell | None:
    """The shell of the step; None where an expression chooses it, or the system that decides on the default."""
    step, job = located.step, located.job
    blocks: list[Block] = [step] if step is not None else []
    if job is not None:
        blocks += [job.default_run, Workflow(document.root).default_run]
    for block in blocks:
        found = block.scalar("shell")
        if found is not None:
            return None if "${{" in found.value else step_shell(found.value)
    labels = " ".join(job.runner_labels).lower() if job is not None else ""
    if job is not None and "${{" in labels:
        # A matrix stands in the job; what else may choose the system may stand anywhere.
        text = document.text
        if job.node is not None and not _CHOSEN_ELSEWHERE.search(labels):
            text = job.node.source.text[job.node.start : job.node.end]
        if "windows" in text.lower():
            return None
    return step_shell(None, windows="windows" in labels)
