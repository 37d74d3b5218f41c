"""``jq`` and ``yq`` as programs: what they write of their input, their arguments and the environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.shell import code, jq
from runner_e2e.lint.shell.filesystem import path_keys, put_file, read_channel, read_file, write_channel, written
from runner_e2e.lint.shell.state import NULL
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.shell.machine import Invocation, Machine

    Content: TypeAlias = "Callable[[Value], Value | None]"

__all__ = ["run"]

_RAW = re.compile(r"--raw-output|-[A-Za-z]*r[A-Za-z]*")
_MASK = re.compile(r"(?:^|\|)\s*\"::add-mask::(?:\"\s*\+\s*[^|,+]+|\\\((?:(?!\\\().)+\)\")\s*$")
"""The last filter of a program: a text that begins so, and whatever follows."""


def run(machine: Machine, call: Invocation, content: Content) -> bool:
    """Runs the query; *content* gives what the file that an operand names holds. False: it is not understood."""
    line = jq.read_command(call.name, call.fields[1:])
    if line is None:
        return False
    program = line.program.value
    if line.from_file:
        program = read_file(machine, call.state, program, call.environment)
    if len(program.texts) != 1:
        return False
    named: dict[str, jq.Flow] = {name: frozenset({name}) for name, _, _ in line.named}
    flow = jq.flow_of(program.texts[0], named, frozenset(() if line.null_input else (jq.INPUT,)))
    if flow is None:
        return False
    sources = _sources(machine, call, line, program, content)
    told = frozenset(one for one in flow if one.startswith(jq.TOLD))
    output = _carried(flow - told, sources, program, call)
    if line.in_place and line.files:
        for key in path_keys(line.files[0].value, call.state):
            put_file(call.state, key, machine.step(output, *call.span, written(key)), append_to=False)
    else:
        if output.taints and _masks(program, call):
            output = Value.literal("::add-mask::") + output + Value.literal("\n")
        write_channel(machine, call.state, 1, output, call.span)
    if told:
        errors = frozenset(one.removeprefix(jq.TOLD) for one in told)
        write_channel(machine, call.state, 2, _carried(errors, sources, program, call), call.span)
    return True


def _masks(program: Value, call: Invocation) -> bool:
    """Whether each line of the output is a command that masks: ``jq -r '"::add-mask::" + .inputs.id'``."""
    raw = any(_RAW.fullmatch(field.value.constant or "") for field in call.fields[1:])
    return raw and _MASK.search(program.constant or "") is not None


def _sources(
    machine: Machine, call: Invocation, line: jq.CommandLine, program: Value, content: Content
) -> Mapping[str, Value]:
    """What stands behind each source of a flow, without the environment."""
    holes = (piece for piece in program.texts[0] if isinstance(piece, Hole))
    sources = {f"#{index}": Value(((hole,),)) for index, hole in enumerate(holes)}
    for name, kind, field in line.named:
        is_file = kind == "file"
        sources[name] = read_file(machine, call.state, field.value, call.environment) if is_file else field.value
    sources[jq.ARGUMENTS] = join([*sources.values(), *(field.value for field in line.operands)])
    if line.files:
        contents = (content(field.value) for field in line.files)
        sources[jq.INPUT] = join(one for one in contents if one is not None)
    else:
        sources[jq.INPUT] = read_channel(call.state, call.state.descriptors.get(0, NULL))
    return sources


def _carried(flow: jq.Flow, sources: Mapping[str, Value], program: Value, call: Invocation) -> Value:
    """Text that may have anything of the sources of *flow*."""
    found: list[Value] = []
    for source in sorted(flow):
        plain = source.removeprefix(jq.ENCODED)
        if plain == jq.ENVIRONMENT:
            value = code.judge(program, call.environment, []).reads
        elif plain.startswith(f"{jq.ENVIRONMENT}."):
            value = call.environment.get(plain.partition(".")[2], UNKNOWN)
        else:
            value = sources.get(plain, EMPTY)
        found.append(value if source == plain else value.weakened(Confidence.LOW))
    return Value.of(taint for value in found for taint in value.taints)
