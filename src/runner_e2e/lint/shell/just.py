"""``just``: the recipes that it runs, each line as an argument of a shell.

What ``{{…}}`` gives stands in that argument, and in the log, which shows each line; a recipe that begins with ``#!`` is
a script file instead.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell import shells
from runner_e2e.lint.shell.command_lines import begin_of, text_of, without_begin
from runner_e2e.lint.shell.filesystem import path_keys, put_file, read_file, write_channel
from runner_e2e.lint.shell.justfile import evaluate, evaluate_all, read_justfile
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.patterns import decode, encode
from runner_e2e.lint.shell.state import Channel, Field
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.lint.shell.justfile import Justfile, Line, Recipe
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Hole, Origin

__all__ = ["run"]

_NAMES = ("justfile", "Justfile", ".justfile", "JUSTFILE")
_VALUES = frozenset(
    {"-f", "--justfile", "-d", "--working-directory", "--dotenv-path", "--dotenv-filename", "-E", "--shell"}
    | {"--shell-arg", "--color", "--command-color", "--list-heading", "--list-prefix", "--tempdir", "--chooser"}
)
_SHOWS_NOTHING = frozenset(
    {"-l", "--list", "--summary", "--dump", "--show", "-s", "--fmt", "--init", "--version", "--man"}
)
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w-]*)=")
_INTERPOLATION = re.compile(r"\{\{(?!\{)(.*?)\}\}(?!\})", re.DOTALL)
_MAX_DEPTH = 12


def run(machine: Machine, call: Invocation) -> bool:
    """Follows the recipes that a call of ``just`` runs; False where they are not known."""
    line = _CommandLine(call)
    found = _find(machine, call, line)
    if found is None:
        return False
    path, source, justfile = found
    before, outer = call.state.directory, machine.source
    folder = line.directory or Value.literal(posixpath.dirname(path))
    call.state.directory = join(Value((key,)) for key in path_keys(folder, call.state))
    machine.source = source
    try:
        return _Run(machine, call, justfile, line).run()
    finally:
        machine.source, call.state.directory = outer, before


class _CommandLine:
    """What a call gives: the justfile, variables, and recipes with their arguments."""

    def __init__(self, call: Invocation) -> None:
        self.path: Value | None = None
        self.directory: Value | None = None
        self.dotenv: Value | None = None
        self.variables: dict[str, Value] = {}
        self.words: list[Field] = []
        self.flags: set[str] = set()
        rest = list(call.fields[1:])
        while rest:
            one = rest.pop(0)
            text = text_of(one)
            option, equals, _ = text.partition("=")
            assigned = None if self.words else _ASSIGNMENT.match(begin_of(one.value))
            if self.words:
                self.words.append(one)
            elif option == "--set" and len(rest) > 1:
                name, given = rest.pop(0), rest.pop(0)
                self.variables[text_of(name)] = given.value
            elif option in _VALUES and (equals or rest):
                self._take(option, without_begin(one.value, len(option) + 1) if equals else rest.pop(0).value)
            elif text.startswith("-") and len(text) > 1:
                self.flags.add(text)
            elif assigned is not None:
                self.variables[assigned[1]] = without_begin(one.value, assigned.end())
            else:
                self.words.append(one)

    def _take(self, option: str, value: Value) -> None:
        if option in ("-f", "--justfile"):
            self.path = value
        elif option in ("-d", "--working-directory"):
            self.directory = value
        elif option in ("-E", "--dotenv-path", "--dotenv-filename"):
            self.dotenv = value


def _find(machine: Machine, call: Invocation, line: _CommandLine) -> tuple[str, Source, Justfile] | None:
    """The path of the justfile, and its text: the one that is named, or in the nearest folder above."""
    folder = call.state.directory.constant or "."
    candidates: Iterator[str] | tuple[str, ...] = _above(folder)
    if line.path is not None:
        candidates = (line.path.constant,) if line.path.constant is not None else ()
    for path in candidates:
        written = call.state.files.get(path_keys(Value.literal(path), call.state)[0])
        find = machine.files.find_script
        if written is not None and written.constant:
            text = written.constant
            source = machine.source_of((text,), call.span)
        elif find is not None and (script := find(path)) is not None:
            source, text = Source.of_script(script), script.text
        else:
            continue
        justfile = read_justfile(text)
        for name in justfile.imports:
            _import(machine, call, posixpath.join(posixpath.dirname(path), name), justfile)
        return path, source, justfile
    return None


def _above(folder: str) -> Iterator[str]:
    for _ in range(_MAX_DEPTH):
        yield from (posixpath.join(folder, name) for name in _NAMES)
        if folder in ("/", ".", ""):
            return
        folder = posixpath.dirname(folder)


def _import(machine: Machine, call: Invocation, path: str, into: Justfile) -> None:
    """Adds what another justfile has; lines of it are placed at the call."""
    text = read_file(machine, call.state, Value.literal(path), call.environment).constant
    if text is None:
        return
    other = read_justfile(text)
    for name, recipe in other.recipes.items():
        recipe.lines = [replace(line, start=-1) for line in recipe.lines]
        into.recipes.setdefault(name, recipe)
    into.variables = {**other.variables, **into.variables}
    into.aliases = {**other.aliases, **into.aliases}
    into.settings = {**other.settings, **into.settings}


class _Run:
    """One call of ``just``."""

    def __init__(self, machine: Machine, call: Invocation, justfile: Justfile, line: _CommandLine) -> None:
        self.machine = machine
        self.justfile = justfile
        self.line = line
        self.environment = {**_dotenv(machine, call, justfile, line), **call.environment}
        self.call = call
        self.quiet = bool({"-q", "--quiet"} & line.flags) or justfile.has("quiet")
        self.values: dict[str, Value] = dict(line.variables)
        for name, assignment in justfile.variables.items():
            if name not in self.values:
                self.values[name] = self.evaluated(assignment.expression, self.values)
            if assignment.exported or justfile.has("export"):
                self.environment[name] = self.values[name]
        self.done: set[object] = set()

    def run(self) -> bool:
        """Runs what the call names, or the first recipe."""
        flags = self.line.flags
        if "--evaluate" in flags:
            self._show_variables()
            return True
        if _SHOWS_NOTHING & flags:
            return True
        words = list(self.line.words)
        if not words and self.justfile.recipes:
            words = [Field(Value.literal(next(iter(self.justfile.recipes))))]
        if not words:
            return False
        while words:
            name = self._name(text_of(words.pop(0)))
            if name is None:
                return False
            most = self.justfile.recipes[name].parameters
            count = len(words) if most and most[-1].many else len(most)
            given = [one.value for one in words[:count]]
            del words[:count]
            self.recipe(name, given, 0)
        return True

    def _name(self, word: str) -> str | None:
        name = self.justfile.aliases.get(word, word)
        return name if name in self.justfile.recipes else None

    def _show_variables(self) -> None:
        for name, value in self.values.items():
            shown = Value.literal(f'{name} := "') + value + Value.literal('"\n')
            write_channel(self.machine, self.call.state, 1, shown, self.call.span)

    def evaluated(self, expression: str, names: Mapping[str, Value]) -> Value:
        return evaluate(expression, names, self.environment, self._printed)

    def _printed(self, program: Value) -> Value:
        """What a program text in backticks prints."""
        state = self.call.state
        shown, captured = state.descriptors, self.machine.fresh()
        put_file(state, captured, EMPTY, append_to=False)
        state.descriptors = {**shown, 1: Channel("file", captured)}
        start = ShellStart(dialect="sh", span=self.call.span)
        shells.run_program(self.machine, program, self.call.running(self.call.fields[:1], self.environment), start)
        state.descriptors = shown
        printed = state.files.pop(captured, EMPTY)
        return Value.any_of(_without_line_feed(text) for text in printed.texts)

    def recipe(self, name: str, given: list[Value], depth: int) -> None:
        """Runs a recipe, with what it needs before and after it; once for the same arguments."""
        self.machine.tick()
        found = self._name(name)
        if found is None or depth > _MAX_DEPTH or (found, *given) in self.done:
            return
        self.done.add((found, *given))
        recipe = self.justfile.recipes[found]
        names, environment = self._bound(recipe, given)
        for needed, expressions in recipe.before:
            self._need(needed, expressions, names, depth)
        self._body(recipe, names, environment, given)
        for needed, expressions in recipe.after:
            self._need(needed, expressions, names, depth)

    def _need(self, name: str, expressions: str, names: Mapping[str, Value], depth: int) -> None:
        given = evaluate_all(expressions, names, self.environment, self._printed) if expressions.strip() else []
        self.recipe(name, given, depth + 1)

    def _bound(self, recipe: Recipe, given: list[Value]) -> tuple[dict[str, Value], dict[str, Value]]:
        """Variables by their names in the recipe, and its environment."""
        names, environment = dict(self.values), dict(self.environment)
        rest = list(given)
        for parameter in recipe.parameters:
            if parameter.many and rest:
                value = rest[0]
                for one in rest[1:]:
                    value = value + Value.literal(" ") + one
                rest.clear()
            elif rest:
                value = rest.pop(0)
            else:
                value = self.evaluated(parameter.default, names) if parameter.default is not None else EMPTY
            names[parameter.name] = value
            if parameter.exported or self.justfile.has("export"):
                environment[parameter.name] = value
        return names, environment

    def _body(
        self, recipe: Recipe, names: Mapping[str, Value], environment: Mapping[str, Value], given: list[Value]
    ) -> None:
        if not recipe.lines:
            return
        shown = self.justfile.has("positional-arguments") or "positional-arguments" in recipe.attributes
        positional = tuple(Field(value, "one", *self.call.span) for value in given) if shown else ()
        if recipe.lines[0].text.startswith("#!") or "script" in recipe.attributes:
            self._script(recipe, names, environment, positional)
            return
        for text, start, end in _joined(recipe.lines):
            self._line(recipe, (text, start, end), names, environment, positional)

    def _line(
        self,
        recipe: Recipe,
        line: tuple[str, int, int],
        names: Mapping[str, Value],
        environment: Mapping[str, Value],
        positional: tuple[Field, ...],
    ) -> None:
        text, start, end = line
        marks = re.match(r"[@-]*", text)
        sigils = marks[0] if marks is not None else ""
        program = self._expanded(text[len(sigils) :], names)
        if program.constant is not None and (not program.constant.strip() or program.constant.startswith("#")):
            return
        call = self._placed(start, end, environment)
        dry = bool({"-n", "--dry-run"} & self.line.flags)
        if dry or (("@" in sigils) is recipe.quiet and not self.quiet):
            write_channel(self.machine, call.state, 2, program + Value.literal("\n"), call.span)
        if dry:
            return
        # It starts `sh -cu LINE`, with the arguments behind it where that is asked for.
        for one in (Field(program, "one", *call.span), *positional):
            self.machine.leak(one, call, command="just", advice="environment")
        begin = ShellStart(dialect="sh", flags=frozenset("u"), positional=positional, span=call.span)
        if "bash" in self.justfile.settings.get("shell", ""):
            begin = replace(begin, dialect="bash")
        shells.run_program(self.machine, program, call, begin)

    def _script(
        self,
        recipe: Recipe,
        names: Mapping[str, Value],
        environment: Mapping[str, Value],
        positional: tuple[Field, ...],
    ) -> None:
        """A recipe that is written to a file and run."""
        lines = recipe.lines
        shell = shells.shell_of(lines[0].text)
        if shell is not None and lines[0].start >= 0 and not any("{{" in line.text for line in lines):
            source = _source_of(self.machine.source.origin, lines)
            call = self._placed(lines[0].start, lines[-1].start + len(lines[-1].text), environment)
            self.machine.run_shell(source, call, replace(shell, positional=positional, span=call.span))
            return
        whole = self._expanded("\n".join(line.text for line in lines) + "\n", names)
        call = self._placed(lines[0].start, lines[-1].start + len(lines[-1].text), environment)
        path = Value.literal(f"/run/just/recipe-{self.machine.fresh()}")
        for key in path_keys(path, call.state):
            put_file(call.state, key, whole, append_to=False)
        program = Field(path, "one", *call.span)
        self.machine.start(call.running((program, *positional)))
        for key in path_keys(path, call.state):
            call.state.files.pop(key, None)

    def _placed(self, start: int, end: int, environment: Mapping[str, Value]) -> Invocation:
        """The call, as if it stood at a line of the justfile."""
        call = self.call.running(self.call.fields[:1], environment)
        return replace(call, at=replace(call.at, start=start, end=end)) if start >= 0 else call

    def _expanded(self, text: str, names: Mapping[str, Value]) -> Value:
        total, offset = EMPTY, 0
        for match in _INTERPOLATION.finditer(text):
            total = total + Value.literal(text[offset : match.start()].replace("{{{{", "{{"))
            total = total + self.evaluated(match[1], names)
            offset = match.end()
        return total + Value.literal(text[offset:].replace("{{{{", "{{"))


def _source_of(origin: Origin, lines: list[Line]) -> Source:
    """The lines of a script as a program, each at its place."""
    starts: list[int] = []
    for line in lines:
        starts += range(line.start, line.start + len(line.text) + 1)
    ends = [start + 1 for start in starts]
    return Source(origin, "".join(f"{line.text}\n" for line in lines), (), starts, ends)


def _joined(lines: list[Line]) -> Iterator[tuple[str, int, int]]:
    """Lines, those that a backslash continues as one: text, start and end."""
    text, begin = "", None
    for line in lines:
        begin = line.start if begin is None else begin
        if line.text.endswith("\\") and line is not lines[-1]:
            text += line.text[:-1]
        else:
            yield text + line.text, begin, line.start + len(line.text)
            text, begin = "", None


def _without_line_feed(text: tuple[str | Hole, ...]) -> tuple[str | Hole, ...]:
    last = text[-1] if text else ""
    return normal((*text[:-1], last.removesuffix("\n"))) if isinstance(last, str) else text


def _dotenv(machine: Machine, call: Invocation, justfile: Justfile, line: _CommandLine) -> dict[str, Value]:
    """The variables of ``.env``, where it is read."""
    named = justfile.settings.get("dotenv-filename", "").strip("'\"")
    if not (line.dotenv or named or justfile.has("dotenv-load")):
        return {}
    content = read_file(machine, call.state, line.dotenv or Value.literal(named or ".env"), call.environment)
    found: dict[str, Value] = {}
    for text in content.texts:
        holes: list[Hole] = []
        for each in encode(text, holes).split("\n"):
            name, equals, value = each.strip().removeprefix("export ").partition("=")
            if equals and name.isidentifier():
                found[name] = Value((decode(value.strip().strip("'\""), holes),))
    return found
