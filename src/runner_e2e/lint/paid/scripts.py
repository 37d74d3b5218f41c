"""The commands of a step, with those of the scripts of the repository that it starts."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.lint.expression import ExpressionError, embedded
from runner_e2e.lint.finding import FlowPlace
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.ir import Inserted, Literal, Parameter, Simple, Word, statements
from runner_e2e.lint.shell.parser import parse
from runner_e2e.lint.source import Source
from runner_e2e.lint.step_shell import step_shell
from runner_e2e.lint.values import UNKNOWN, Interpolation, Origin, Script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.paid.model import PaidStep
    from runner_e2e.lint.repository import Repository
    from runner_e2e.lint.values import Span
    from runner_e2e.yaml_positions import Scalar

__all__ = ["Argument", "ScriptCommand", "commands_of"]

_DEEPEST = 6
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh"))
_WRAPPERS = {
    "builtin": 0, "command": 0, "corepack": 0, "doas": 0, "env": 0, "exec": 0, "nice": 0, "nohup": 0, "setsid": 0,
    "stdbuf": 0, "sudo": 0, "time": 0, "timeout": 1, "xvfb-run": 0,
}  # fmt: skip
"""Programs that run the rest of their words -> words of their own before it."""
_TAKES_VALUE = frozenset(("-u", "--user", "-n", "-k", "-s", "--signal", "-g", "--group", "-C", "--chdir", "-S"))
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One word: its *text* (None when the shell or the runner changes it), and the variables that are in it.

    *ending* is what is known of it behind the last slash.
    """

    text: str | None
    ending: str = ""
    variables: frozenset[str] = frozenset()
    has_expression: bool = False


@dataclass(frozen=True, kw_only=True)
class ScriptCommand:
    """A simple command at ``[start, end)`` of *origin*, its wrappers (``sudo``, ``env``) taken off.

    *assigned* are the variables set for it alone; *trail* the scripts that led to it.
    """

    origin: Origin
    start: int
    end: int
    words: tuple[Argument, ...]
    assigned: tuple[tuple[str, str | None], ...] = ()
    trail: tuple[FlowPlace, ...] = ()

    @property
    def span(self) -> Span:
        """Where it stands; of several lines the first."""
        text = self.origin.text[self.start : self.end]
        return self.origin.span(self.start, self.start + len(text.split("\n", 1)[0].rstrip("\\ ")))

    @property
    def name(self) -> str:
        """The program, without its folder; empty when it is not known."""
        first = self.words[0]
        return posixpath.basename(first.text) if first.text else first.ending

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words as far as they are known, empty for the others."""
        return tuple(word.text or "" for word in self.words)

    @property
    def shown(self) -> str:
        """The command as written, shortened."""
        first = self.origin.text[self.start : self.end].split("\n", 1)[0].rstrip("\\ ")
        return first if len(first) <= 60 else f"{first[:57]}…"


def commands_of(step: PaidStep, repository: Repository) -> Iterator[ScriptCommand]:
    """Every command that *step* may run, in the order of the text."""
    node = step.step.run
    if node is None:
        return
    origin = Origin(path=step.frame.path, text=node.value, locate=node.position)
    reader = _Reader(repository, _folder(step))
    shell = step.step.scalar("shell")
    known = step_shell(shell.value if shell is not None else None)
    if known.posix is None:
        yield from reader.lines(origin)
    else:
        yield from reader.script(Script(origin=origin, text=node.value, interpolations=_holes(node)), (), 0)


def _folder(step: PaidStep) -> str:
    """Where the step runs, relative to the repository; the root when that is not known."""
    node = step.step.scalar("working-directory")
    if node is None and step.scope.job is not None:
        node = step.scope.job.default_run.scalar("working-directory")
    return node.value if node is not None and "${{" not in node.value else ""


def _holes(node: Scalar) -> tuple[Interpolation, ...]:
    try:
        return tuple(Interpolation(start=each.start, end=each.end, value=UNKNOWN) for each in embedded(node.value))
    except ExpressionError:
        return ()


class _Reader:
    def __init__(self, repository: Repository, folder: str) -> None:
        self.repository = repository
        self.folder = folder
        self.followed: set[str] = set()

    def lines(self, origin: Origin) -> Iterator[ScriptCommand]:
        """Lines of another shell, as words between blanks."""
        for found in re.finditer(r"[^\n]+", origin.text):
            line = found[0].strip()
            words = tuple(Argument(text=word) for word in line.split())
            if words:
                start = origin.text.index(line, found.start())
                yield ScriptCommand(origin=origin, start=start, end=start + len(line), words=words)

    def script(self, script: Script, trail: tuple[FlowPlace, ...], depth: int) -> Iterator[ScriptCommand]:
        """The commands of a shell script."""
        sequence, _ = parse(Source.of_script(script), bash=True)
        for node in statements(sequence):
            command = _command(node, script.origin, trail) if isinstance(node, Simple) else None
            if command is not None:
                yield command
                yield from self.started(command, depth)

    def started(self, command: ScriptCommand, depth: int) -> Iterator[ScriptCommand]:
        """The commands of what *command* starts, where that is in the repository."""
        if depth >= _DEEPEST:
            return
        texts = command.texts
        place = FlowPlace(span=command.span, note=f"`{command.shown}` runs it")
        trail = (*command.trail, place)
        if command.name in _SHELLS and "-c" in texts[:-1]:
            inner = texts[texts.index("-c") + 1]
            if inner:
                script = Script.of_text((inner,), command.origin, command.start, command.end)
                yield from self.script(script, command.trail, depth + 1)
            return
        path = _script_path(command)
        if path is not None:
            yield from self.file(path, trail, depth)
        package = _package_script(command)
        if package is not None:
            yield from self.package(package, command, trail, depth)

    def file(self, path: str, trail: tuple[FlowPlace, ...], depth: int) -> Iterator[ScriptCommand]:
        """A shell script of the repository."""
        for relative in dict.fromkeys(
            (posixpath.normpath(posixpath.join(self.folder, path)), posixpath.normpath(path))
        ):
            script = self.repository.script(relative) if relative not in self.followed else None
            if script is not None and _is_shell(relative, script.text):
                self.followed.add(relative)
                yield from self.script(script, trail, depth + 1)
                return

    def package(
        self, name: str, command: ScriptCommand, trail: tuple[FlowPlace, ...], depth: int
    ) -> Iterator[ScriptCommand]:
        """A script of `package.json`; its commands stand where it is started."""
        text = self.repository.text(posixpath.normpath(posixpath.join(self.folder, "package.json")))
        key = f"package.json#{name}"
        if text is None or key in self.followed:
            return
        self.followed.add(key)
        try:
            found = json.loads(text)["scripts"][name]
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if isinstance(found, str):
            script = Script.of_text((found,), command.origin, command.start, command.end)
            yield from self.script(script, trail, depth + 1)


def _is_shell(path: str, text: str) -> bool:
    first = text.split("\n", 1)[0]
    return path.endswith((".sh", ".bash")) or (first.startswith("#!") and any(name in first for name in _SHELLS))


def _script_path(command: ScriptCommand) -> str | None:
    """The file that a command runs as a shell script, perhaps."""
    texts = command.texts
    if command.name in _SHELLS or command.name in {"source", "."}:
        return next((text for text in texts[1:] if text and not text.startswith("-")), None)
    return texts[0] if "/" in texts[0] else None


def _package_script(command: ScriptCommand) -> str | None:
    """The script of `package.json` that a command runs."""
    words = [text for text in command.texts[1:] if text and not text.startswith("-")]
    if command.name not in {"npm", "pnpm", "yarn", "bun"} or not words:
        return None
    if words[0] in {"run", "run-script"}:
        return words[1] if len(words) > 1 else None
    if words[0] in {"test", "start", "t"}:
        return "test" if words[0] == "t" else words[0]
    return words[0] if command.name in {"pnpm", "yarn"} else None


def _command(simple: Simple, origin: Origin, trail: tuple[FlowPlace, ...]) -> ScriptCommand | None:
    assigned: list[tuple[str, str | None]] = [
        (each.name, each.value.static if each.value is not None else "") for each in simple.assignments
    ]
    words = [_argument(word) for word in simple.words]
    while words:
        name = posixpath.basename(words[0].text or "")
        if name not in _WRAPPERS:
            break
        own = _WRAPPERS[name]
        words.pop(0)
        while words and (own or _belongs_to_wrapper(words[0].text)):
            word = words.pop(0)
            if word.text is not None and _ASSIGNMENT.match(word.text):
                name, _, value = word.text.partition("=")
                assigned.append((name, value))
            elif word.text is not None and word.text in _TAKES_VALUE and words:
                words.pop(0)
            elif word.text is None or not word.text.startswith("-"):
                own = max(0, own - 1)
    if not words:
        return None
    return ScriptCommand(
        origin=origin,
        start=simple.start,
        end=simple.end,
        words=tuple(words),
        assigned=tuple(assigned),
        trail=trail,
    )


def _belongs_to_wrapper(text: str | None) -> bool:
    return text is not None and (text.startswith("-") or _ASSIGNMENT.match(text) is not None)


def _argument(word: Word) -> Argument:
    names = frozenset(part.name for part in word.parts if isinstance(part, Parameter))
    inserted = any(isinstance(part, Inserted) for part in word.parts)
    text = word.static
    if text is None and all(isinstance(part, Literal | Inserted) for part in word.parts) and not inserted:
        text = ""
    last = word.parts[-1] if word.parts else None
    ending = last.text.rpartition("/")[2] if isinstance(last, Literal) and "/" in last.text else ""
    return Argument(text=text, ending=ending, variables=names, has_expression=inserted)
