"""Programs: what a process that a script starts does with its arguments, input, environment and files.

The leak itself, a value in the argument vector, is recorded by the caller. Here is what follows from the program:
the commands it executes, the output it writes, the files it makes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages import language_of
from runner_e2e.lint.shell import (
    archivers,
    code,
    compression,
    containers,
    copies,
    filters,
    interpreters,
    make,
    packages,
    shells,
    wrappers,
)
from runner_e2e.lint.shell.filesystem import (
    absolute_path,
    environment_lines,
    named_channel,
    path_keys,
    peek_channel,
    put_file,
    read_channel,
    read_file,
    tainted_names,
    write_channel,
    written,
)
from runner_e2e.lint.shell.results import Call
from runner_e2e.lint.shell.state import NULL, Field
from runner_e2e.lint.shell.tables import output_of, wrapper
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["run"]

_Model: TypeAlias = Callable[["Machine", "Invocation"], None]

_MAX_NESTED = 24
_IN_PLACE = re.compile(r"(?:-[nErsuz]*i|--in-place=?)(?P<suffix>[^\s/]*)$")
_TEST_RUNNERS = ("pytest", "py.test", "vitest", "jest", "mocha", "playwright", "bun test", "bats")
_RUNS_TESTS = frozenset({"-m", "--test"})
"""Options by which an interpreter may run a test runner."""


def run(machine: Machine, call: Invocation) -> None:
    """Runs the program that *fields* name in a process with *environment*."""
    path = call.fields[0].value.constant
    call.state.status = None
    if path is None:
        _unknown(machine, call)
        return
    name = path.rsplit("/", 1)[-1]
    machine.depth += 1
    try:
        if machine.depth > _MAX_NESTED * 2:
            machine.give_up(call.at.start, call.at.end, "nested too deeply to follow")
        elif (file := _file_of(machine, call, path)) is not None and (
            shells.run_file(machine, file) or interpreters.run_file(machine, file)
        ):
            pass
        elif name in shells.NAMES:
            shells.run(machine, call)
        elif name in packages.RUNNERS and packages.run(machine, call):
            pass
        elif (grammar := wrapper(name)) is not None:
            wrappers.run(machine, grammar, call)
        else:
            model = _MODELS.get(name) or (_interpreted if language_of(name) is not None else None)
            (model or _by_table)(machine, call)
    finally:
        machine.depth -= 1


def _file_of(machine: Machine, call: Invocation, path: str) -> Invocation | None:
    """The call of a file: by its path, or by its name in one of the first folders of ``PATH`` that are known."""
    if "/" in path:
        return call
    text = call.environment.get("PATH", EMPTY).texts[0]
    known = text[0] if text and isinstance(text[0], str) else ""
    folders = known.split(":") if len(text) == 1 else known.split(":")[:-1]  # the last one goes on with unknown text
    for folder in filter(None, folders):
        file = Value.literal(posixpath.join(folder, path))
        if path_keys(file, call.state)[0] in call.state.files or _in_repository(machine, file):
            return replace(call, fields=(replace(call.fields[0], value=file), *call.fields[1:]))
    return None


def _in_repository(machine: Machine, file: Value) -> bool:
    find = machine.files.find_script
    return find is not None and find(file.constant or "") is not None


def _output(machine: Machine, value: Value, call: Invocation) -> None:
    if value != EMPTY:
        write_channel(machine, call.state, 1, value, call.span)


def _stdin(call: Invocation) -> Value:
    return read_channel(call.state, call.state.descriptors.get(0, NULL))


def _input(machine: Machine, call: Invocation) -> Value:
    """Standard input and the content of the files that operands name."""
    total: Value | None = None
    for one in call.fields[1:]:
        content = _file_content(machine, one.value, call)
        if content is not None:
            total = content if total is None else total + content
    return _stdin(call) if total is None else total


def _file_content(machine: Machine, operand: Value, call: Invocation) -> Value | None:
    """What the file that *operand* names holds, when something is known of it."""
    text = operand.constant
    if text is not None:
        if (text.startswith("--") and "=" in text) or "=@" in text:  # `--file=FILE`, `body=@FILE`
            text = text.partition("=")[2]
        elif text[:1] == "-" and text[2:3] == "@":  # `-d@FILE`
            text = text[2:]
        elif text.startswith("-") and text != "-":
            return None
        text = text.removeprefix("@")
        if text == "-":
            return _stdin(call)
        operand = Value.literal(text)
    content = read_file(machine, call.state, operand, call.environment)
    return content if content.taints or content.constants is not None else None


def _unknown(machine: Machine, call: Invocation) -> None:
    """A program that is not known: it may write what it was given.

    What reads that output has to reckon with it. That it may stand in the log is no finding: so it might of any.
    """
    stdin = peek_channel(call.state, call.state.descriptors.get(0, NULL))
    _record_call(machine, call, stdin)
    if _logs(call):
        return
    parts = [stdin.opaque().weakened(Confidence.MEDIUM)] if stdin.taints else []
    for one in call.fields[1:]:
        if one.value.taints:
            parts.append(one.value.opaque().weakened(Confidence.LOW))
        content = _file_content(machine, one.value, call)
        if content is not None and content.taints:
            parts.append(content.opaque().weakened(Confidence.LOW))
    _output(machine, join([UNKNOWN, *parts]) if parts else UNKNOWN, call)


def _logs(call: Invocation) -> bool:
    """Whether the standard output of the program is the log itself."""
    return call.state.descriptors.get(1, NULL).kind == "log"


def _record_call(machine: Machine, call: Invocation, stdin: Value) -> None:
    command = call.fields[0].value.constant or ""
    key = (id(machine.source.origin), call.at.start, call.at.end, command)
    machine.found.calls.setdefault(
        key,
        Call(
            origin=machine.source.origin,
            start=call.at.start,
            end=call.at.end,
            command=command,
            arguments=tuple(one.value for one in call.fields[1:]),
            environment=dict(call.environment),
            stdin=stdin,
            directory=call.state.directory,
        ),
    )


def _sorted_into(call: Invocation) -> Value | None:
    """The file that ``sort -o`` writes."""
    for one, following in zip(call.fields[1:], (*call.fields[2:], None), strict=False):
        word = one.value.constant or ""
        if word in ("-o", "--output") and following is not None:
            return following.value
        if word.startswith("--output="):
            return Value.literal(word.removeprefix("--output="))
    return None


def _edit(machine: Machine, call: Invocation) -> None:
    """``sed -i``: what it makes of a file is in the file afterwards, and before in the one with the suffix."""
    used = [one.value for one in call.fields[1:] if one.value.taints]
    options = filter(None, (_IN_PLACE.match(one.value.constant or "") for one in call.fields[1:]))
    suffix = next(options)["suffix"] or ""
    for one in call.fields[1:]:
        for key in path_keys(one.value, call.state) if one.kind == "one" else ():
            before = call.state.files.get(key)
            if before is None and not (used and _in_repository(machine, one.value)):
                continue
            content = filters.filtered("sed", call.fields, before or UNKNOWN)
            content = content | join(used).opaque() if used else content
            if suffix and before is not None:
                put_file(call.state, normal((*key, suffix)), before, append_to=False)
            put_file(call.state, key, machine.step(content, call.at.start, call.at.end, written(key)), append_to=False)


def _path_of(name: str, operands: tuple[str, ...], call: Invocation) -> str | None:
    """What a program that works on paths prints for known ones; None where that is not followed."""
    path = operands[0]
    words = [one.value.constant or "" for one in call.fields[1:]]
    if name in ("basename", "dirname") and any(one.startswith("-") and one != "--" for one in words):
        return None
    if name == "basename" and len(operands) < 3:
        last = posixpath.basename(path.rstrip("/")) or path[:1]
        suffix = operands[1] if len(operands) == 2 else ""
        return last.removesuffix(suffix) if last != suffix else last
    if len(operands) > 1:
        return None
    if name == "dirname":
        above = posixpath.dirname(path.rstrip("/")) if path.strip("/") else path[:1]
        return above.rstrip("/") or above[:1] or "."
    if name in ("realpath", "readlink"):
        return posixpath.normpath(absolute_path(path, call.state))
    return path if name == "echo" else None


def _by_table(machine: Machine, call: Invocation) -> None:
    name = call.name
    kind = output_of(name)
    if kind == "none":
        _output(machine, UNKNOWN, call)
    elif kind == "operands":
        operands = [one.value for one in call.fields[1:] if not (one.value.constant or "").startswith("-")]
        carried = join(operands).opaque() if operands and any(one.taints for one in operands) else UNKNOWN
        known = tuple(one.constant for one in operands if one.constant is not None)
        if known and len(known) == len(operands) and (path := _path_of(name, known, call)) is not None:
            carried = Value.literal(f"{path}\n")
        _output(machine, carried, call)
    elif kind == "names":
        _output(machine, tainted_names(call.state).weakened(Confidence.MEDIUM) | UNKNOWN, call)
    elif name in ("sed", "gsed") and any(map(_IN_PLACE.match, (one.value.constant or "" for one in call.fields[1:]))):
        _edit(machine, call)
    elif kind in ("carry", "encode"):
        content = _input(machine, call)
        if kind == "encode":
            content = filters.encoded(name, call.fields, content)
        else:
            content = filters.filtered(name, call.fields, content)
        if name == "sort" and (target := _sorted_into(call)) is not None:
            for key in path_keys(target, call.state):
                put_file(
                    call.state, key, machine.step(content, call.at.start, call.at.end, written(key)), append_to=False
                )
            return
        used = [one.value for one in call.fields[1:] if one.value.taints]
        if kind == "carry" and used and name in filters.PROGRAMMABLE:
            content = content | join(used).opaque()
        _output(machine, content, call)
    else:
        _unknown(machine, call)


# --- programs with a model of their own


def _cat(machine: Machine, call: Invocation) -> None:
    operands = [
        one for one in call.fields[1:] if not (one.value.constant or "").startswith("-") or one.value.constant == "-"
    ]
    if not operands:
        _output(machine, _stdin(call), call)
        return
    total = EMPTY
    for one in operands:
        if one.value.constant == "-":
            total = total + _stdin(call)
        else:
            content = read_file(machine, call.state, one.value, call.environment)
            total = total + (content if one.kind == "one" else content | EMPTY)
    _output(machine, total, call)


def _tee(machine: Machine, call: Invocation) -> None:
    content = _stdin(call)
    options = [one.value.constant for one in call.fields[1:] if (one.value.constant or "").startswith("-")]
    append = any(option in ("-a", "--append", "-ai", "-ia") for option in options)
    for one in call.fields[1:]:
        if (one.value.constant or "").startswith("-"):
            continue
        for key in path_keys(one.value, call.state):
            channel = named_channel(key, call.state)
            if channel is not None and channel.kind == "log":
                machine.print(content, call.state, start=call.at.start, end=call.at.end, target="log")
            if key == ("/github/summary",):
                machine.print(content, call.state, start=call.at.start, end=call.at.end, target="summary")
            put_file(
                call.state,
                key,
                machine.step(content, call.at.start, call.at.end, written(key)),
                append_to=append,
            )
    _output(machine, content, call)


def _create(_m: Machine, call: Invocation) -> None:
    """``touch``, ``mkdir``: the names are there to be found."""
    for one in call.fields[1:]:
        if not (one.value.constant or "").startswith("-"):
            for key in path_keys(one.value, call.state):
                call.state.files.setdefault(key, EMPTY)


def _mktemp(machine: Machine, call: Invocation) -> None:
    name = machine.symbol("$TMPDIR") + Value.literal("/") + machine.symbol(machine.identity("mktemp"))
    for key in path_keys(name, call.state):
        call.state.files.setdefault(key, EMPTY)
    _output(machine, name + Value.literal("\n"), call)


def _printenv(machine: Machine, call: Invocation) -> None:
    names = [one.value.constant for one in call.fields[1:] if not (one.value.constant or "").startswith("-")]
    if not names:
        _output(machine, environment_lines(call.environment), call)
        return
    total = EMPTY
    for name in names:
        value = call.environment.get(name, UNKNOWN if name.isupper() else EMPTY) if name is not None else UNKNOWN
        total = total + value + Value.literal("\n")
    _output(machine, total, call)


def _echo(machine: Machine, call: Invocation) -> None:
    name = "printf" if (call.fields[0].value.constant or "").endswith("printf") else "echo"
    machine.call_builtin(name, call)


def _wc(machine: Machine, call: Invocation) -> None:
    operands = [one for one in call.fields[1:] if not (one.value.constant or "-").startswith("-")]
    _output(machine, UNKNOWN if operands else filters.counted(call.fields, _stdin(call)), call)


def _dd(machine: Machine, call: Invocation) -> None:
    named = {
        text.split("=", 1)[0]: text.split("=", 1)[1]
        for one in call.fields[1:]
        if "=" in (text := one.value.constant or "")
    }
    if "if" in named:
        content = read_file(machine, call.state, Value.literal(named["if"]), call.environment)
    else:
        content = _stdin(call)
    if "of" in named:
        for key in path_keys(Value.literal(named["of"]), call.state):
            put_file(
                call.state, key, machine.step(content, call.at.start, call.at.end, "written to a file"), append_to=False
            )
    else:
        _output(machine, content, call)


def _tests(machine: Machine, call: Invocation) -> None:
    """A test runner: files of the repository that it finds by their names."""
    from runner_e2e.lint.shell import testing

    if not testing.run(machine, call):
        _unknown(machine, call)
    elif not _logs(call):
        _output(machine, UNKNOWN, call)


def _coverage(machine: Machine, call: Invocation) -> None:
    """``coverage run``: a Python program, or the tests that it is measured by."""
    from runner_e2e.lint.shell import testing

    program = testing.under_coverage(call)
    if program is not None:
        machine.start(program)
    else:
        _unknown(machine, call)


def _tests_of_interpreter(machine: Machine, call: Invocation) -> bool:
    from runner_e2e.lint.shell import testing

    if any(field.value.constant == "coverage" for field in call.fields[1:3]):
        program = testing.under_coverage(call)
        if program is not None:
            machine.start(program)
            return True
    runner = testing.of_interpreter(call)
    return runner is not None and testing.run(machine, runner)


def _interpreted(machine: Machine, call: Invocation) -> None:
    """Programs of other languages: given inline, on standard input, or in a file."""
    if any(field.value.constant in _RUNS_TESTS for field in call.fields) and _tests_of_interpreter(machine, call):
        return
    if interpreters.run(machine, call):
        return
    stdin = peek_channel(call.state, call.state.descriptors.get(0, NULL))
    _record_call(machine, call, stdin)
    name = call.name
    text, inline = code.program_text(name, call.fields, stdin)
    if inline is None:
        content = _script_content(machine, call)
        text = content if content is not None else EMPTY
    data = EMPTY if inline == "stdin" else stdin
    files = [content for one in call.fields[1:] if (content := _file_content(machine, one.value, call)) is not None]
    outcome = code.judge(text, call.environment, [*(one.value for one in call.fields[1:]), data, *files])
    known = inline is not None or _written_here(call)
    if outcome.spawns.taints and known:
        span = next(((one.start, one.end) for one in call.fields[1:] if one.value == text), call.span)
        machine.leak(Field(outcome.spawns, "one", *span), call, command=name, advice="environment")
    if known or not _logs(call):
        _output(machine, outcome.output, call)


def _written_here(call: Invocation) -> bool:
    """Whether the script that the command runs was written by this program."""
    return any(
        key in call.state.files
        for one in call.fields[1:2]
        if one.value.constant is not None
        for key in path_keys(one.value, call.state)
    )


def _script_content(machine: Machine, call: Invocation) -> Value | None:
    for one in call.fields[1:]:
        text = one.value.constant
        if text is not None and text.startswith("-"):
            continue
        return read_file(machine, call.state, one.value, call.environment) if one.kind == "one" else None
    return None


def _awk(machine: Machine, call: Invocation) -> None:
    """``awk``: a filter that can also read the environment and run commands."""
    content = filters.filtered(call.name, call.fields, _input(machine, call))
    _judged(machine, call, content, spawns=True)


def _judged(machine: Machine, call: Invocation, content: Value, *, spawns: bool) -> None:
    """Writes *content* and what else the program on the command line may give, which is not followed."""
    program = join(one.value for one in call.fields[1:]) if len(call.fields) > 1 else EMPTY
    used = [one.value for one in call.fields[1:] if one.value.taints]
    outcome = code.judge(program, call.environment, [content, *used])
    parts = [content]
    if outcome.reads.taints:
        parts.append(outcome.reads)
    if used:
        parts.append(join(used).opaque())
    if outcome.spawns.taints and spawns:
        spawned = Field(outcome.spawns, "one", *call.span)
        machine.leak(spawned, call, command=call.name, advice="environment")
    _output(machine, join(parts), call)


def _just(machine: Machine, call: Invocation) -> None:
    from runner_e2e.lint.shell import just

    if not just.run(machine, call):
        _unknown(machine, call)


def _gh(machine: Machine, call: Invocation) -> None:
    from runner_e2e.lint.shell import downloads
    from runner_e2e.lint.shell.publishing import publish

    publish(machine, call, lambda operand: _file_content(machine, operand, call))
    _output(machine, downloads.run(machine, call), call)


def _client(machine: Machine, call: Invocation) -> None:
    from runner_e2e.lint.shell import clients

    (clients.curl if call.name == "curl" else clients.wget)(machine, call)


def _git(machine: Machine, call: Invocation) -> None:
    from runner_e2e.lint.shell import git

    git.run(machine, call)


def _query(machine: Machine, call: Invocation) -> None:
    """``jq`` and ``yq``."""
    from runner_e2e.lint.shell import queries

    if not queries.run(machine, call, lambda operand: _file_content(machine, operand, call)):
        _judged(machine, call, _input(machine, call).opaque(), spawns=False)


def _envsubst(machine: Machine, call: Invocation) -> None:
    content = _input(machine, call.running(call.fields[:1]))
    environment = call.environment
    listed = [field.value.constant for field in call.fields[1:]]
    if listed and all(text is not None and not text.startswith("-") for text in listed):  # no others are put in
        names = re.findall(r"\w+", " ".join(filter(None, listed)))
        environment = {name: value for name, value in environment.items() if name in names}
    outcome = code.judge(content, environment, [])
    _output(machine, content | outcome.reads if outcome.reads.taints else content, call)


_MODELS: dict[str, _Model] = {
    **copies.MODELS,
    **archivers.MODELS,
    **dict.fromkeys(compression.PROGRAMS, compression.run),
    "cat": _cat,
    "tee": _tee,
    "sponge": _tee,
    "touch": _create,
    "mkdir": _create,
    "mktemp": _mktemp,
    "printenv": _printenv,
    "echo": _echo,
    "printf": _echo,
    "dd": _dd,
    "wc": _wc,
    "envsubst": _envsubst,
    "xargs": wrappers.xargs,
    "parallel": wrappers.parallel,
    "find": wrappers.find,
    "docker": containers.run,
    "podman": containers.run,
    "nerdctl": containers.run,
    "kubectl": containers.run,
    "just": _just,
    "gh": _gh,
    "curl": _client,
    "wget": _client,
    "git": _git,
    "make": make.run,
    "gmake": make.run,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("jq", "gojq", "jaq", "yq"), _query),
    **dict.fromkeys(_TEST_RUNNERS, _tests),
    "coverage": _coverage,
    **dict.fromkeys(code.INTERPRETERS, _interpreted),
}
