"""Programs: what a process that a script starts does with its arguments, input, environment and files.

The leak itself, a value in the argument vector, is recorded by the caller. Here is what follows from the program:
the commands it executes, the output it writes, the files it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.shell import code, filters, make, shells, wrappers
from runner_e2e.lint.shell.filesystem import (
    environment_block,
    path_keys,
    peek_channel,
    put_file,
    read_channel,
    read_file,
    tainted_names,
    write_channel,
)
from runner_e2e.lint.shell.results import Call
from runner_e2e.lint.shell.state import NULL, Field
from runner_e2e.lint.shell.tables import output_of, wrapper
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from runner_e2e.lint.shell.ir import Command
    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import State

__all__ = ["run"]

_Environment: TypeAlias = Mapping[str, Value]
_Model: TypeAlias = Callable[["Machine", tuple[Field, ...], "State", "Command", _Environment], None]

_MAX_NESTED = 24


def run(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """Runs the program that *fields* name in a process with *environment*."""
    path = fields[0].value.constant
    state.status = None
    if path is None:
        _unknown(machine, fields, state, at, environment)
        return
    name = path.rsplit("/", 1)[-1]
    machine.depth += 1
    try:
        if machine.depth > _MAX_NESTED * 2:
            machine.give_up(at.start, at.end, "nested too deeply to follow")
        elif "/" in path and shells.run_file(machine, path, fields, state, at, environment):
            pass
        elif name in shells.NAMES:
            shells.run(machine, name, fields, state, at, environment)
        elif (grammar := wrapper(name)) is not None:
            wrappers.run(machine, name, grammar, fields, state, at, environment)
        else:
            model = _MODELS.get(name)
            (model or _by_table)(machine, fields, state, at, environment)
    finally:
        machine.depth -= 1


def _output(machine: Machine, value: Value, state: State, at: Command) -> None:
    if value != EMPTY:
        write_channel(machine, state, 1, value, (at.start, at.end))


def _input(machine: Machine, fields: tuple[Field, ...], state: State, environment: _Environment) -> Value:
    """Standard input and the content of the files that operands name."""
    contents = [content for one in fields[1:] if (content := _file_content(machine, one.value, state, environment))]
    stdin = read_channel(state, state.descriptors.get(0, NULL))
    return join([stdin, *contents]) if contents else stdin


def _file_content(machine: Machine, operand: Value, state: State, environment: _Environment) -> Value | None:
    """What the file that *operand* names holds, when something is known of it."""
    text = operand.constant
    if text is not None:
        if text.startswith("--") and "=" in text:
            operand = Value.literal(text.split("=", 1)[1])
        elif text.startswith("@"):
            operand = Value.literal(text[1:])
        elif text.startswith("-") and text != "-":
            return None
        if text == "-":
            return read_channel(state, state.descriptors.get(0, NULL))
    content = read_file(machine, state, operand, environment)
    return content if content.taints or content.constants is not None else None


def _unknown(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """A program that is not known: it may write what it was given."""
    stdin = peek_channel(state, state.descriptors.get(0, NULL))
    _record_call(machine, fields, state, at, environment, stdin)
    parts = [stdin.opaque().weakened(Confidence.MEDIUM)] if stdin.taints else []
    for one in fields[1:]:
        if one.value.taints:
            parts.append(one.value.opaque().weakened(Confidence.LOW))
        content = _file_content(machine, one.value, state, environment)
        if content is not None and content.taints:
            parts.append(content.opaque().weakened(Confidence.LOW))
    _output(machine, join([UNKNOWN, *parts]) if parts else UNKNOWN, state, at)


def _record_call(
    machine: Machine,
    fields: tuple[Field, ...],
    state: State,
    at: Command,
    environment: _Environment,
    stdin: Value,
) -> None:
    command = fields[0].value.constant or ""
    key = (id(machine.source.origin), at.start, at.end, command)
    machine.found.calls.setdefault(
        key,
        Call(
            origin=machine.source.origin,
            start=at.start,
            end=at.end,
            command=command,
            arguments=tuple(one.value for one in fields[1:]),
            environment=dict(environment),
            stdin=stdin,
            directory=state.directory,
        ),
    )


def _by_table(
    machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment
) -> None:
    name = (fields[0].value.constant or "").rsplit("/", 1)[-1]
    kind = output_of(name)
    if kind == "none":
        _output(machine, UNKNOWN, state, at)
    elif kind == "operands":
        operands = [one.value for one in fields[1:] if not (one.value.constant or "").startswith("-")]
        carried = join(operands).opaque() if operands and any(one.taints for one in operands) else UNKNOWN
        if len(operands) == 1 and operands[0].constant is not None and name in ("echo", "realpath", "readlink"):
            carried = operands[0] + Value.literal("\n")
        _output(machine, carried, state, at)
    elif kind == "names":
        _output(machine, tainted_names(state).weakened(Confidence.MEDIUM) | UNKNOWN, state, at)
    elif kind in ("carry", "encode"):
        content = _input(machine, fields, state, environment)
        if kind == "encode":
            content = content.opaque().weakened(Confidence.LOW)
        elif content.taints:
            content = filters.filtered(name, fields, content)
        else:
            content = content if name == "cat" else UNKNOWN
        used = [one.value for one in fields[1:] if one.value.taints]
        if kind == "carry" and used and name in filters.PROGRAMMABLE:
            content = content | join(used).opaque()
        _output(machine, content, state, at)
    else:
        _unknown(machine, fields, state, at, environment)


# --- programs with a model of their own


def _cat(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    operands = [
        one for one in fields[1:] if not (one.value.constant or "").startswith("-") or one.value.constant == "-"
    ]
    if not operands:
        _output(machine, read_channel(state, state.descriptors.get(0, NULL)), state, at)
        return
    total = EMPTY
    for one in operands:
        if one.value.constant == "-":
            total = total + read_channel(state, state.descriptors.get(0, NULL))
        else:
            content = read_file(machine, state, one.value, environment)
            total = total + (content if one.kind == "one" else content | EMPTY)
    _output(machine, total, state, at)


def _tee(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, _e: _Environment) -> None:
    content = read_channel(state, state.descriptors.get(0, NULL))
    options = [one.value.constant for one in fields[1:] if (one.value.constant or "").startswith("-")]
    append = any(option in ("-a", "--append", "-ai", "-ia") for option in options)
    for one in fields[1:]:
        if (one.value.constant or "").startswith("-"):
            continue
        for key in path_keys(one.value, state):
            if key == ("/github/summary",):
                machine.print(content, start=at.start, end=at.end, target="summary")
            put_file(state, key, machine.step(content, at.start, at.end, "written to a file"), append_to=append)
    _output(machine, content, state, at)


def _copy(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    operands = [one.value for one in fields[1:] if not (one.value.constant or "").startswith("-")]
    if len(operands) < 2:
        return
    target = operands[-1]
    moves = (fields[0].value.constant or "").rsplit("/", 1)[-1] == "mv"
    for source in operands[:-1]:
        content = read_file(machine, state, source, environment)
        content = machine.step(content, at.start, at.end, "copied")
        for key in path_keys(target, state):
            put_file(state, key, content, append_to=False)
            # The target may be a directory: the file keeps its name then.
            base = (source.constant or "").rsplit("/", 1)[-1]
            if base and content.taints:
                for inside in path_keys(target + Value.literal("/" + base), state):
                    put_file(state, inside, content, append_to=False)
        if moves:
            for key in path_keys(source, state):
                state.files.pop(key, None)


def _create(_m: Machine, fields: tuple[Field, ...], state: State, _a: Command, _e: _Environment) -> None:
    """``touch``, ``mkdir``: the names are there to be found."""
    for one in fields[1:]:
        if not (one.value.constant or "").startswith("-"):
            for key in path_keys(one.value, state):
                state.files.setdefault(key, EMPTY)


def _remove(_m: Machine, fields: tuple[Field, ...], state: State, _a: Command, _e: _Environment) -> None:
    for one in fields[1:]:
        if one.kind == "one" and len(keys := path_keys(one.value, state)) == 1:
            state.files.pop(keys[0], None)


def _mktemp(machine: Machine, _f: tuple[Field, ...], state: State, at: Command, _e: _Environment) -> None:
    name = Value.literal("/tmp/") + machine.symbol(f"mktemp at {at.start} ({machine.fresh()})")  # noqa: S108
    for key in path_keys(name, state):
        state.files.setdefault(key, EMPTY)
    _output(machine, name + Value.literal("\n"), state, at)


def _printenv(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, env: _Environment) -> None:
    names = [one.value.constant for one in fields[1:] if not (one.value.constant or "").startswith("-")]
    if not names:
        block = environment_block(env)
        texts = Value.any_of(
            tuple(piece.replace("\0", "\n") if isinstance(piece, str) else piece for piece in text)
            for text in block.texts
        )
        _output(machine, texts, state, at)
        return
    total = EMPTY
    for name in names:
        value = env.get(name, UNKNOWN if name.isupper() else EMPTY) if name is not None else UNKNOWN
        total = total + value + Value.literal("\n")
    _output(machine, total, state, at)


def _echo(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, env: _Environment) -> None:
    name = "printf" if (fields[0].value.constant or "").endswith("printf") else "echo"
    machine.call_builtin(name, fields, state, at, env)


def _dd(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    named = {
        text.split("=", 1)[0]: text.split("=", 1)[1] for one in fields[1:] if "=" in (text := one.value.constant or "")
    }
    if "if" in named:
        content = read_file(machine, state, Value.literal(named["if"]), environment)
    else:
        content = read_channel(state, state.descriptors.get(0, NULL))
    if "of" in named:
        for key in path_keys(Value.literal(named["of"]), state):
            put_file(state, key, machine.step(content, at.start, at.end, "written to a file"), append_to=False)
    else:
        _output(machine, content, state, at)


def _interpreted(
    machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment
) -> None:
    """Programs of other languages: given inline, on standard input, or in a file."""
    stdin = peek_channel(state, state.descriptors.get(0, NULL))
    _record_call(machine, fields, state, at, environment, stdin)
    name = (fields[0].value.constant or "").rsplit("/", 1)[-1]
    text, inline = code.program_text(name, fields, stdin)
    if inline is None:
        content = _script_content(machine, fields, state, environment)
        text = content if content is not None else EMPTY
    data = EMPTY if inline == "stdin" else stdin
    files = [
        content for one in fields[1:] if (content := _file_content(machine, one.value, state, environment)) is not None
    ]
    outcome = code.judge(text, environment, [*(one.value for one in fields[1:]), data, *files])
    if outcome.spawns.taints:
        span = next(((one.start, one.end) for one in fields[1:] if one.value == text), (at.start, at.end))
        machine.leak(Field(outcome.spawns, "one", *span), command=name, advice="environment", at=at)
    _output(machine, outcome.output, state, at)


def _script_content(
    machine: Machine, fields: tuple[Field, ...], state: State, environment: _Environment
) -> Value | None:
    for one in fields[1:]:
        text = one.value.constant
        if text is not None and text.startswith("-"):
            continue
        return read_file(machine, state, one.value, environment) if one.kind == "one" else None
    return None


def _query(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, environment: _Environment) -> None:
    """``jq``, ``awk`` and the like: filters that can also read the environment, and (awk) run commands."""
    name = (fields[0].value.constant or "").rsplit("/", 1)[-1]
    content = _input(machine, fields, state, environment)
    content = filters.filtered(name, fields, content) if content.taints else UNKNOWN
    program = join(one.value for one in fields[1:]) if len(fields) > 1 else EMPTY
    used = [one.value for one in fields[1:] if one.value.taints]
    outcome = code.judge(program, environment, [content, *used])
    parts = [content]
    if outcome.reads.taints:
        parts.append(outcome.reads)
    if used:
        parts.append(join(used).opaque())
    if outcome.spawns.taints and "awk" in name:
        machine.leak(Field(outcome.spawns, "one", at.start, at.end), command=name, advice="environment", at=at)
    _output(machine, join(parts), state, at)


def _envsubst(machine: Machine, fields: tuple[Field, ...], state: State, at: Command, env: _Environment) -> None:
    content = _input(machine, fields[:1], state, env)
    outcome = code.judge(content, env, [])
    _output(machine, content | outcome.reads if outcome.reads.taints else content, state, at)


_MODELS: dict[str, _Model] = {
    "cat": _cat,
    "tee": _tee,
    "sponge": _tee,
    "cp": _copy,
    "mv": _copy,
    "install": _copy,
    "ln": _copy,
    "touch": _create,
    "mkdir": _create,
    "rm": _remove,
    "mktemp": _mktemp,
    "printenv": _printenv,
    "echo": _echo,
    "printf": _echo,
    "dd": _dd,
    "envsubst": _envsubst,
    "xargs": wrappers.xargs,
    "parallel": wrappers.parallel,
    "find": wrappers.find,
    "docker": wrappers.container,
    "podman": wrappers.container,
    "nerdctl": wrappers.container,
    "kubectl": wrappers.container,
    "make": make.run,
    "gmake": make.run,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "jq", "gojq", "yq"), _query),
    **dict.fromkeys(code.INTERPRETERS, _interpreted),
}
