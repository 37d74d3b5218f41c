"""Interpreters of other languages as commands: where their program is, what it is given, and who follows it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.languages import ANALYSERS, language_of
from runner_e2e.lint.languages.process import Argument, Tests
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.filesystem import absolute_path, known_paths, path_keys, peek_channel, read_channel
from runner_e2e.lint.shell.processes import ShellProcess, run_process
from runner_e2e.lint.shell.state import NULL, Field, State, Variable
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["CommandLine", "command_line", "run", "run_file", "run_tests"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """What an interpreter is told: its *program* (None: on standard input), arguments for that, options."""

    kind: Literal["text", "file", "module", "input"]
    program: Field | None = None
    arguments: tuple[Field, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Grammar:
    """*inline*, *module*: options whose value is the program; *values*: options that take the next argument.

    *letters*: options of one letter that may be written together; *attached*: those that take the rest of the word.
    """

    inline: frozenset[str]
    module: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    letters: str = ""
    attached: str = ""
    commands: frozenset[str] = frozenset()
    """First words that only introduce the program: ``deno run``."""


_NODE = _Grammar(
    inline=frozenset({"-e", "--eval", "-p", "--print", "-pe", "eval"}),
    values=frozenset({"-r", "--require", "--import", "-C", "--conditions", "--loader", "--experimental-loader"}),
    letters="ip",
    commands=frozenset({"run", "x"}),
)
_GRAMMARS = {
    "python": _Grammar(
        inline=frozenset({"-c"}),
        module=frozenset({"-m"}),
        values=frozenset({"-W", "-X", "--check-hash-based-pycs"}),
        letters="bBdEhiIOPqRsSuvVx?",
        attached="WX",
    ),
    "javascript": _NODE,
    "perl": _Grammar(inline=frozenset({"-e", "-E"}), letters="acfgnpsStTuUvVwWX", attached="0CdDFiIlmMx"),
    "ruby": _Grammar(
        inline=frozenset({"-e"}), values=frozenset({"-r", "-I", "-C"}), letters="acdhlnpsSvwy", attached="0CEFiIKrTWx"
    ),
    "powershell": _Grammar(inline=frozenset({"-command", "-c", "-commandwithargs"})),
    "cmd": _Grammar(inline=frozenset({"/c", "/k"})),
}
_POWERSHELL_VALUES = (
    "-executionpolicy",
    "-ep",
    "-ex",
    "-outputformat",
    "-inputformat",
    "-version",
    "-workingdirectory",
)


_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(?P<name>[^\s/]+)(?P<options>[^\n]*)")


def command_line(language: str, fields: tuple[Field, ...]) -> CommandLine | None:
    """What *fields*, without the interpreter's name, tell it; None when that is not known."""
    if language in ("powershell", "cmd"):
        return _windows(language, fields)
    grammar = _GRAMMARS[language]
    flags: set[str] = set()
    index = 0
    while index < len(fields):
        one = fields[index]
        text = one.value.constant if one.kind == "one" else None
        if text is None:
            return None if one.kind != "one" else _operand(fields, index, flags)
        index += 1
        option = _inline(text, grammar, flags)
        if option is not None:
            kind: Literal["text", "module"] = "module" if option in grammar.module else "text"
            return _given(language, kind, fields[index:], flags) if index < len(fields) else None
        if text == "-":
            return CommandLine(kind="input", arguments=fields[index:], flags=frozenset(flags))
        if text in grammar.values:
            index += 1
        elif text == "--":
            break
        elif not text.startswith("-") and not (index == 1 and text in grammar.commands):
            return _operand(fields, index - 1, flags)
    if index < len(fields):
        return _operand(fields, index, flags)
    return CommandLine(kind="input", flags=frozenset(flags))


def _operand(fields: tuple[Field, ...], index: int, flags: set[str]) -> CommandLine:
    return CommandLine(kind="file", program=fields[index], arguments=fields[index + 1 :], flags=frozenset(flags))


def _given(
    language: str, kind: Literal["text", "module"], fields: tuple[Field, ...], flags: set[str]
) -> CommandLine | None:
    """The program text in ``fields[0]``; perl and ruby take several pieces, each a line."""
    program, rest = fields[0], fields[1:]
    while language in ("perl", "ruby") and len(rest) > 1 and rest[0].value.constant in ("-e", "-E"):
        program = replace(program, value=program.value + Value.literal("\n") + rest[1].value, end=rest[1].end)
        rest = rest[2:]
    return CommandLine(kind=kind, program=program, arguments=rest, flags=frozenset(flags))


def _inline(text: str, grammar: _Grammar, flags: set[str]) -> str | None:
    """The option by which *text* announces a program; letters before it go to *flags*."""
    if text in grammar.inline or text in grammar.module:
        flags.update(text[1:-1] if text.startswith("-") and not text.startswith("--") else ())
        flags.update("p" if text in ("-p", "--print") else ())
        return text
    if not re.fullmatch(r"-[A-Za-z0?].*", text, re.DOTALL):
        return None
    for position, letter in enumerate(text[1:], 1):
        option = f"-{letter}"
        if option in grammar.inline or option in grammar.module:
            return option if position == len(text) - 1 else None
        if letter in grammar.letters:
            flags.add(letter)
        elif letter in grammar.attached:
            flags.update({letter} & set("0ail"))
            if letter in "i0lCF" and grammar.attached.startswith("0"):
                # ``-i.bak`` and ``-l012`` take what follows; ``-lne`` are letters.
                rest = text[position + 1 :]
                if not re.fullmatch(r"[A-Za-z]*", rest) or letter in "iF":
                    return None
                continue
            return None
        else:
            return None
    return None


def _windows(language: str, fields: tuple[Field, ...]) -> CommandLine | None:
    """PowerShell and ``cmd``: everything after the option is the command."""
    index = 0
    while index < len(fields):
        text = (fields[index].value.constant or "").lower()
        if text in _GRAMMARS[language].inline:
            rest = fields[index + 1 :]
            if not rest:
                return None
            if rest[0].value.constant == "-":
                return CommandLine(kind="input", arguments=rest[1:])
            program = rest[0]
            for one in rest[1:]:
                program = replace(program, value=program.value + Value.literal(" ") + one.value, end=one.end)
            return CommandLine(kind="text", program=program)
        if language == "powershell" and text in ("-file", "-f"):
            return _operand(fields, index + 1, set()) if index + 1 < len(fields) else None
        if language == "powershell" and text.startswith("-"):
            index += 2 if text in _POWERSHELL_VALUES else 1
            continue
        if language == "cmd" and text.startswith("/"):
            index += 1
            continue
        return _operand(fields, index, set())
    return CommandLine(kind="input")


def run(machine: Machine, call: Invocation) -> bool:
    """Follows the program that an interpreter runs; False when it is not known or not followed."""
    language = language_of(call.name)
    if language is None or language not in ANALYSERS:
        return False
    line = command_line(language, call.fields[1:])
    if line is None:
        return False
    if line.kind == "input":
        channel = call.state.descriptors.get(0, NULL)
        text = peek_channel(call.state, channel)
        if not _known(text):
            return False
        read_channel(call.state, channel)
        span = machine.input_spans.get(channel.key, call.span) if channel.kind == "stream" else call.span
        sources = [machine.source_of(one, span) for one in text.texts]
    elif line.kind == "text":
        assert line.program is not None
        if not _known(line.program.value):
            return False
        span = (line.program.start, line.program.end) if line.program.end else call.span
        sources = [machine.source_of(one, span) for one in line.program.value.texts]
    else:
        assert line.program is not None
        named = line.program.value
        paths = known_paths(named) if line.kind == "file" else _modules(named.constant or "", call)
        return any(path and _run_script(machine, call, language, path, line) for path in paths)
    ends: list[State] = []
    for source in sources:
        inner = call.state if len(sources) == 1 else call.state.copy()
        process = _process(machine, replace(call, state=inner), source, line)
        run_process(machine, inner, language, process)
        ends.append(inner)
    if len(ends) > 1:
        machine.settle(call.state, ends)
    return True


def run_file(machine: Machine, call: Invocation) -> bool:
    """Follows the program in the file that the command names, when its first line names an interpreter."""
    named = ((path, _SHEBANG.match(_text_at(machine, call, path) or "")) for path in known_paths(call.fields[0].value))
    path, match = next((one for one in named if one[1] is not None), ("", None))
    language = language_of(match["name"]) if match is not None else None
    if match is None or language is None or language not in ANALYSERS:
        return False
    options = tuple(Field(Value.literal(word)) for word in match["options"].split())
    line = command_line(language, (*options, *call.fields))
    return line is not None and line.kind == "file" and _run_script(machine, call, language, path, line)


def _text_at(machine: Machine, call: Invocation, path: str) -> str | None:
    """The known beginning of the file at *path*."""
    key = path_keys(Value.literal(path), call.state)[0]
    written = call.state.files.get(key)
    if written is not None:
        first = written.texts[0][0] if written.texts[0] else ""
        return first if isinstance(first, str) else None
    find = machine.files.find_script
    script = find(absolute_path(path, call.state)) if find is not None else None
    return script.text if script is not None else None


def _known(text: Value) -> bool:
    """Whether anything of a program text is known."""
    return any(isinstance(piece, str) for piece in text.pieces())


def _modules(module: str, call: Invocation) -> tuple[str, ...]:
    """Files of the repository that ``python -m`` may mean."""
    if not re.fullmatch(r"[\w.]+", module):
        return ()
    stem = module.replace(".", "/")
    path = call.environment.get("PYTHONPATH", EMPTY)
    folders = [""] + [f"{folder}/" for text in path.constants or () for folder in text.split(":") if folder]
    return tuple(f"{folder}{stem}{end}" for folder in folders for end in (".py", "/__main__.py"))


def run_tests(machine: Machine, call: Invocation, language: str, path: str, tests: Tests) -> bool:
    """Follows the file at *path* with the *tests* in it; False when there is none."""
    return _run_script(machine, call, language, path, CommandLine(kind="file"), tests)


def _run_script(  # noqa: PLR0913, PLR0917 - a program, and how it is run
    machine: Machine, call: Invocation, language: str, path: str, line: CommandLine, tests: Tests | None = None
) -> bool:
    """Follows the program in the file at *path*, of the repository or written before; False: there is none."""
    keys = path_keys(Value.literal(path), call.state)
    absolute = "".join(piece for piece in keys[0] if isinstance(piece, str))
    written = call.state.files.get(keys[0])
    if written is not None and not _known(written):
        return False
    if written is not None:
        sources = [machine.source_of(one, call.span) for one in written.texts[:1]]
    else:
        find = machine.files.find_script
        script = find(absolute if len(keys[0]) == 1 else path) if find is not None else None
        if script is None:
            return False
        sources = [Source.of_script(script)]
    process = _process(machine, call, sources[0], line)
    process.name, process.path, process.tests = Value.literal(path), absolute, tests
    run_process(machine, call.state, language, process)
    return True


def _process(machine: Machine, call: Invocation, source: Source, line: CommandLine) -> ShellProcess:
    state = State(
        frames=[{key: Variable(value, exported=True) for key, value in call.environment.items()}],
        files=dict(call.state.files),
        command_files=dict(call.state.command_files),
        masks=call.state.masks,
        reading=call.state.reading,
        descriptors=dict(call.state.descriptors),
        directory=call.state.directory,
    )
    process = ShellProcess(machine, state, source)
    process.arguments = tuple(Argument(one.value, many=one.kind == "list") for one in line.arguments)
    process.flags = line.flags
    process.name = Value.literal({"text": "-c", "input": "-"}.get(line.kind, ""))
    return process
