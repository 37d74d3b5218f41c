"""The builtins: what each does to the state, and what it writes. None of them has an argument vector."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell import declarations, options, text_builtins
from runner_e2e.lint.shell.conditions import test_fields
from runner_e2e.lint.shell.filesystem import path_keys, read_file, repository_script, write_channel
from runner_e2e.lint.shell.parameters import assign_scalar, calculate, join_list
from runner_e2e.lint.shell.state import Items, Variable, sources
from runner_e2e.lint.shell.tables import builtins as builtin_names
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.state import Field, State

__all__ = ["run"]

_SILENT = frozenset({"hash", "umask", "times", "history", "disown", "ulimit"})


def run(machine: Machine, name: str, call: Invocation) -> None:
    """Runs the builtin *name*; the variables before it are variables of ``call.state`` as long as it runs."""
    handler = _HANDLERS.get(name)
    if handler is None:
        call.state.status = 0 if name in _SILENT else None
        return
    handler(machine, call)


def _true(_m: Machine, call: Invocation) -> None:
    call.state.status = 0


def _false(_m: Machine, call: Invocation) -> None:
    call.state.status = 1


def _test(machine: Machine, call: Invocation) -> None:
    bracket = call.fields[0].value.constant == "["
    answer = test_fields(machine, call.state, call.fields[1:-1] if bracket else call.fields[1:])
    call.state.status = None if answer is None else int(not answer)


# --- control


def _status_argument(fields: tuple[Field, ...], state: State) -> None:
    if len(fields) > 1:
        text = fields[1].value.constant
        state.status = int(text) & 255 if text is not None and text.isdigit() else None


def _exit(machine: Machine, call: Invocation) -> None:
    _status_argument(call.fields, call.state)
    machine.exits.append(call.state.copy())
    call.state.dead = True


def _return(machine: Machine, call: Invocation) -> None:
    _status_argument(call.fields, call.state)
    machine.returns.append(call.state.copy())
    call.state.dead = True


def _leave_loop(machine: Machine, call: Invocation) -> None:
    call.state.status = 0
    if not machine.loops:
        return
    text = call.fields[1].value.constant if len(call.fields) > 1 else "1"
    levels = int(text) if text is not None and text.isdigit() and int(text) > 0 else 1
    breaks, continues = machine.loops[-min(levels, len(machine.loops))]
    (breaks if call.fields[0].value.constant == "break" else continues).append(call.state.copy())
    call.state.dead = True


def _eval(machine: Machine, call: Invocation) -> None:
    arguments = call.fields[1:]
    if not arguments:
        call.state.status = 0
        return
    text = join_list(call.state, arguments, star=False)
    span = (arguments[0].start, arguments[-1].end) if arguments[0].end else call.span
    machine.run_text(text, call.state, span)


def _source(machine: Machine, call: Invocation) -> None:
    if len(call.fields) < 2:
        call.state.status = 2
        return
    positional = call.state.positional
    if len(call.fields) > 2:
        call.state.positional = call.fields[2:]
    returns, machine.returns = machine.returns, []
    span = (call.fields[1].start, call.fields[1].end)
    before = call.state.lookup("BASH_SOURCE")
    found = repository_script(machine, call.fields[1].value, call.state)
    path = found[0] if found is not None else call.fields[1].value.constant
    if machine.bash and path:
        call.state.assign("BASH_SOURCE", sources(path, before.as_items() if before is not None else Items()))
    if found is not None:
        machine.run_source(Source.of_script(found[1]), call.state, span)
    else:
        content = read_file(machine, call.state, call.fields[1].value, None)
        if content.constants is None and not content.taints:
            call.state.status = None  # a file that is not known
        else:
            machine.run_text(content, call.state, span)
    ends = [one for one in (call.state.copy(), *machine.returns) if not one.dead]
    machine.returns = returns
    machine.settle(call.state, ends)
    if not call.state.dead and len(call.fields) > 2:
        call.state.positional = positional
    call.state.frames[0].pop("BASH_SOURCE", None)
    if before is not None:
        call.state.assign("BASH_SOURCE", before)


def _exec(machine: Machine, call: Invocation) -> None:
    arguments, state = call.fields[1:], call.state
    environment: dict[str, Value] | None = None
    while arguments and (text := arguments[0].value.constant) is not None and text.startswith("-"):
        if text.endswith("a") and len(arguments) > 1:
            # The name given is argument 0 of the program.
            machine.leak(arguments[1], call, command="exec", advice="environment")
            arguments = arguments[1:]
        arguments = arguments[1:]
        if text == "-c":
            environment = {}
        if text == "--":
            break
    if not arguments:
        state.status = 0
        return
    machine.start(call.running(arguments, state.exported() if environment is None else environment))
    state.traps = {}
    machine.exits.append(state.copy())
    state.dead = True


def _command(machine: Machine, call: Invocation) -> None:
    arguments = call.fields[1:]
    while arguments and (text := arguments[0].value.constant) is not None and text.startswith("-"):
        arguments = arguments[1:]
        if text == "--":
            break
        if "v" in text or "V" in text:
            output = join(one.value for one in arguments) if arguments else EMPTY
            write_channel(machine, call.state, 1, output.opaque() | EMPTY, call.span)
            call.state.status = None
            return
    if not arguments:
        call.state.status = 0
        return
    name = arguments[0].value.constant
    if name is not None and name in builtin_names("bash" if machine.bash else "sh") and name not in call.state.disabled:
        machine.call_builtin(name, call.running(arguments))
    elif call.fields[0].value.constant != "builtin":
        machine.start(call.running(arguments, call.state.exported()))


def _trap(machine: Machine, call: Invocation) -> None:
    arguments = call.fields[1:]
    if arguments and arguments[0].value.constant == "--":
        arguments = arguments[1:]
    call.state.status = 0
    if len(arguments) < 2 or (arguments[0].value.constant or "") in ("-p", "-l"):
        return
    action = arguments[0].value
    for one in arguments[1:]:
        signal = (one.value.constant or "").upper().removeprefix("SIG")
        signal = "EXIT" if signal == "0" else signal
        if action.constant == "-":
            call.state.traps.pop(signal, None)
        elif signal:
            call.state.traps[signal] = action
            machine.trap_sites[action] = call.at
            if signal not in ("EXIT", "DEBUG", "RETURN", "ERR") and action != EMPTY:
                _run_handler(machine, action, call)


def _run_handler(machine: Machine, action: Value, call: Invocation) -> None:
    """The handler of a signal may run at any time: what it does is possible from here on."""
    inner = call.state.copy()
    inner.traps = {}
    for frame in inner.frames:
        for name, variable in frame.items():
            frame[name] = replace(variable, value=variable.value.weakened(Confidence.LOW))
    machine.conditions += 1
    machine.run_text(action, inner, call.span)
    machine.conditions -= 1


def _let(machine: Machine, call: Invocation) -> None:
    number: int | None = 0
    for one in call.fields[1:]:
        number = calculate(machine, call.state, one.value)
    call.state.status = None if number is None else int(number == 0)


def _wait(_m: Machine, call: Invocation) -> None:
    """What a job registers is registered when it has ended. Which job an operand means is not followed."""
    state = call.state
    words = [one.value.constant or "" for one in call.fields[1:]]
    operands = [word for word in words if not word.startswith("-")]
    if len(operands) >= len(state.jobs) or not (operands or "-n" in words):
        for masks in state.jobs:
            state.masks |= masks
        state.jobs = ()
    state.status = None if operands else 0


# --- directories


def _cd(machine: Machine, call: Invocation) -> None:
    operands = [one.value for one in call.fields[1:] if not re.fullmatch(r"-[LPe@]+|--", one.value.constant or "")]
    before = call.state.directory
    if not operands:
        target = machine.symbol("$HOME")
    elif operands[0].constant == "-":
        old = call.state.lookup("OLDPWD")
        target = old.plain() if old is not None else UNKNOWN
    else:
        target = join(Value((key,)) for key in path_keys(operands[0], call.state))
    assign_scalar(call.state, "OLDPWD", before)
    call.state.directory = target
    if call.state.lookup("PWD") is not None:
        assign_scalar(call.state, "PWD", target)
    call.state.status = None


def _directory_stack(state: State) -> Items:
    stack = state.lookup("\0dirs")
    return stack.as_items() if stack is not None else Items()


def _pushd(machine: Machine, call: Invocation) -> None:
    entries = _directory_stack(call.state)
    call.state.assign("\0dirs", Variable(items=entries.put(str(entries.next_index() or 0), call.state.directory)))
    _cd(machine, call)


def _popd(_m: Machine, call: Invocation) -> None:
    entries = _directory_stack(call.state)
    last = str((entries.next_index() or 0) - 1)
    call.state.directory = entries.get(last) or UNKNOWN
    call.state.assign("\0dirs", Variable(items=entries.without(last)))
    call.state.status = None


def _pwd(machine: Machine, call: Invocation) -> None:
    write_channel(machine, call.state, 1, call.state.directory + Value.literal("\n"), call.span)
    call.state.status = 0


def _alias(_m: Machine, call: Invocation) -> None:
    for one in call.fields[1:]:
        text = one.value.constant
        if text is not None and "=" in text:
            name, value = text.split("=", 1)
            call.state.aliases[name] = value
    call.state.status = 0


def _unalias(_m: Machine, call: Invocation) -> None:
    for text in (one.value.constant for one in call.fields[1:]):
        if text == "-a":
            call.state.aliases = {}
        elif text is not None:
            call.state.aliases.pop(text, None)
    call.state.status = 0


_HANDLERS: dict[str, Callable[[Machine, Invocation], None]] = {
    "true": _true,
    ":": _true,
    "false": _false,
    "test": _test,
    "[": _test,
    "exit": _exit,
    "logout": _exit,
    "return": _return,
    "break": _leave_loop,
    "continue": _leave_loop,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exec": _exec,
    "command": _command,
    "builtin": _command,
    "trap": _trap,
    "let": _let,
    "wait": _wait,
    "cd": _cd,
    "pushd": _pushd,
    "popd": _popd,
    "pwd": _pwd,
    "alias": _alias,
    "unalias": _unalias,
    **options.HANDLERS,
    **declarations.HANDLERS,
    **text_builtins.HANDLERS,
}
