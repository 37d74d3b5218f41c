"""Everything that starts a process: ``subprocess``, ``os``, ``asyncio``, ``pty``."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Constant,
    Dictionary,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Reference,
    Text,
    Union,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

__all__ = ["FUNCTIONS", "METHODS"]

Output = Literal["inherit", "capture", "discard"]


# --- argument vectors and their places


def _spans(node: ast.expr, count: int) -> list[ast.expr] | None:
    """The expressions that give the *count* items of a list, as far as the list is written out."""
    if isinstance(node, ast.List | ast.Tuple):
        starred = [index for index, one in enumerate(node.elts) if isinstance(one, ast.Starred)]
        if not starred:
            return list(node.elts) if len(node.elts) == count else None
        spread = count - len(node.elts) + 1
        if len(starred) > 1 or spread < 0:
            return None
        at = starred[0]
        return [*node.elts[:at], *([node.elts[at]] * spread), *node.elts[at + 1 :]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for side, other, first in ((node.left, node.right, True), (node.right, node.left, False)):
            size = _written(side)
            if size is not None and size <= count:
                one, rest = _spans(side, size), _spans(other, count - size) or [other] * (count - size)
                if one is not None:
                    return [*one, *rest] if first else [*rest, *one]
    return None


def _written(node: ast.expr) -> int | None:
    """How many items a list has that is written out."""
    if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(one, ast.Starred) for one in node.elts):
        return len(node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _written(node.left), _written(node.right)
        return left + right if left is not None and right is not None else None
    return None


def _vector(interpreter: Evaluator, given: Object, node: ast.expr) -> list[Argument]:
    """The argument vector that a list or a single program is."""
    start, end = interpreter.span(node)
    if isinstance(given, Text):
        return [Argument(given.value, start, end)]
    items = interpreter.items(given)
    nodes = _spans(node, len(items.items))
    if nodes is None and items.rest is not None and isinstance(node, ast.List | ast.Tuple):
        # As far as the items are written one by one; the others stand in what follows.
        nodes = [one for one in node.elts[: len(items.items)] if not isinstance(one, ast.Starred)]
        start = interpreter.span(node.elts[min(len(nodes), len(node.elts) - 1)])[0] if node.elts else start
        end = interpreter.span(node.elts[-1])[1] if node.elts else end
    nodes = nodes if nodes is not None and len(nodes) == len(items.items) else None
    arguments: list[Argument] = []
    for index, item in enumerate(items.items):
        place = interpreter.span(nodes[index]) if nodes is not None else (start, end)
        arguments.append(Argument(interpreter.value(item), *place))
    if items.rest is not None:
        arguments.append(Argument(interpreter.value(items.rest), start, end, many=True))
    return arguments


def _each(interpreter: Evaluator, call: Call, first: int = 0) -> list[Argument]:
    """The argument vector that stands in the arguments of the call from *first* on."""
    arguments = [
        Argument(interpreter.value(one), *interpreter.span(call.node_of(index)))
        for index, one in enumerate(call.arguments)
        if index >= first
    ]
    if call.rest is not None:
        arguments.append(Argument(interpreter.value(call.rest), *interpreter.span(call.node), many=True))
    return arguments


def _environment(interpreter: Evaluator, given: Object | None) -> dict[str, Value] | None:
    """The environment that ``env=`` stands for; None: that of the process."""
    if given is None or given in (NONE, Named("os.environ")):
        return None
    if isinstance(given, Union):
        rest = [one for one in given.options if one != NONE]
        return _environment(interpreter, rest[0]) if rest else None
    content = interpreter.content(given)
    if not isinstance(content, Dictionary):
        return None
    return {str(name): interpreter.value(value) for name, value in content.entries if isinstance(name, str)}


def _truth(interpreter: Evaluator, one: Object | None) -> bool | None:
    return False if one is None else interpreter.truth(one)


def _launch(interpreter: Evaluator, call: Call, output: Output, standard_input: Value | None = None) -> Launch:
    start, end = interpreter.span(call.node)
    directory = call.keywords.get("cwd")
    program = call.keywords.get("executable")
    return Launch(
        start=start,
        end=end,
        environment=_environment(interpreter, call.keywords.get("env")),
        standard_input=standard_input,
        output=output,
        directory=interpreter.value(directory) if directory is not None and directory != NONE else None,
        program=interpreter.value(program) if program is not None and program != NONE else None,
    )


# --- subprocess


def _input(interpreter: Evaluator, call: Call) -> Value | None:
    given = call.keywords.get("input")
    if given is not None and given != NONE:
        return interpreter.value(given)
    stdin = call.keywords.get("stdin")
    if isinstance(stdin, Constant) and stdin.name in ("DEVNULL", "PIPE"):
        return EMPTY
    content = interpreter.content(stdin) if stdin is not None else None
    if isinstance(content, Instance):
        read = content.get(" read")
        path = content.get(" path")
        if read is not None:
            return interpreter.value(read)
        if path is not None:
            return interpreter.process.read_file(interpreter.value(path))
    return None


def _output(interpreter: Evaluator, call: Call, *, captures: bool) -> Output:
    if captures or _truth(interpreter, call.keywords.get("capture_output")) is True:
        return "capture"
    stdout = call.keywords.get("stdout")
    if isinstance(stdout, Constant) and stdout.name == "DEVNULL":
        return "discard"
    if stdout is None or stdout == NONE or stdout in (Named("sys.stdout"), Named("sys.stderr")):
        return "inherit"
    return "capture"


def _started(interpreter: Evaluator, call: Call, launch: Launch) -> Value:
    """Starts what ``subprocess`` functions start; gives the captured output."""
    given = call.get(0, "args") or UNKNOWN_TEXT
    node = call.node_of(0, "args")
    if isinstance(given, Union):
        outputs = [_start_one(interpreter, one, node, call, launch) for one in given.options if one != NONE]
        total = outputs[0] if outputs else EMPTY
        for one in outputs[1:]:
            total = total | one
        return total
    return _start_one(interpreter, given, node, call, launch)


def _start_one(interpreter: Evaluator, given: Object, node: ast.expr, call: Call, launch: Launch) -> Value:
    shell = _truth(interpreter, call.keywords.get("shell"))
    if isinstance(given, Opaque):
        # Nothing is known of it: a list or a text, and what it carries is in it.
        argument = Argument(interpreter.value(given).weakened(Confidence.MEDIUM), *interpreter.span(node), many=True)
        interpreter.process.leak(argument, launch, command="a program")
        return UNKNOWN
    vector = _vector(interpreter, given, node)
    if shell is False or not vector:
        return interpreter.process.start(vector, launch)
    if shell is None:
        interpreter.process.start(vector, launch)
    if len(vector) == 1:
        return interpreter.process.start_shell(vector[0], launch)
    start, end = launch.start, launch.end
    words = [Argument(Value.literal("sh"), start, end), Argument(Value.literal("-c"), start, end)]
    return interpreter.process.start([*words, *vector], replace(launch, program=None))


def _write_output(interpreter: Evaluator, call: Call, output: Value) -> None:
    """``stdout=file``: what the program prints is written there."""
    stdout = call.keywords.get("stdout")
    content = interpreter.content(stdout) if stdout is not None else None
    if isinstance(content, Instance) and (path := content.get(" path")) is not None and output != EMPTY:
        start, end = interpreter.span(call.node)
        target = interpreter.value(path)
        interpreter.process.write_file(target, output, append=True, start=start, end=end)


def _run(interpreter: Evaluator, call: Call) -> Object:
    launch = _launch(interpreter, call, _output(interpreter, call, captures=False), _input(interpreter, call))
    output = _started(interpreter, call, launch)
    _write_output(interpreter, call, output)
    shown = Text(output) if launch.output == "capture" else NONE
    given = call.get(0, "args") or NOTHING
    return interpreter.new(
        Instance("completed", (("args", given), ("stdout", shown), ("stderr", UNKNOWN_TEXT), ("returncode", NOTHING)))
    )


def _call(interpreter: Evaluator, call: Call) -> Object:
    _run(interpreter, call)
    return NOTHING


def _check_output(interpreter: Evaluator, call: Call) -> Object:
    launch = _launch(interpreter, call, "capture", _input(interpreter, call))
    return Text(_started(interpreter, call, launch))


def _getoutput(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0, "cmd") or UNKNOWN_TEXT
    argument = Argument(interpreter.value(given), *interpreter.span(call.node_of(0, "cmd")))
    return Text(interpreter.process.start_shell(argument, _launch(interpreter, call, "capture")))


def _getstatusoutput(interpreter: Evaluator, call: Call) -> Object:
    return Items((NOTHING, _getoutput(interpreter, call)), None, "tuple")


def _popen(interpreter: Evaluator, call: Call) -> Object:
    launch = _launch(interpreter, call, _output(interpreter, call, captures=False), _input(interpreter, call))
    output = _started(interpreter, call, launch)
    _write_output(interpreter, call, output)
    return _popen_object(interpreter, output, lambda given: _started(interpreter, call, _reading(launch, given)))


def _reading(launch: Launch, given: Value) -> Launch:
    return replace(launch, standard_input=given)


def _popen_object(interpreter: Evaluator, output: Value, again: Callable[[Value], Value]) -> Object:
    """A process that was started: it is run once more when the program writes to its input."""
    frame = interpreter.frame

    def replay(given: Value) -> Value:
        interpreter.frames.append(frame)
        try:
            with interpreter.process.within(frame.module.source):
                return again(given)
        finally:
            interpreter.frames.pop()

    reader = interpreter.new(Instance("file", ((" read", Text(output)),)))
    sink = interpreter.new(Instance("popen-input"))
    made = interpreter.new(Instance("popen", (("stdout", reader), ("stdin", sink), ("returncode", NOTHING))))
    interpreter.replays[sink.number] = interpreter.replays[made.number] = replay
    return made


def _communicate(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    given = call.get(0, "input")
    content = interpreter.content(receiver)
    output = NOTHING if not isinstance(content, Instance) else content.get("stdout") or NOTHING
    reader = interpreter.content(output)
    read = reader.get(" read") if isinstance(reader, Instance) else None
    if given is not None and given != NONE and isinstance(receiver, Reference):
        read = Text(interpreter.replays[receiver.number](interpreter.value(given)))
    return Items((read or UNKNOWN_TEXT, UNKNOWN_TEXT), None, "tuple")


def _write_input(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    if isinstance(receiver, Reference):
        interpreter.replays[receiver.number](interpreter.value(call.get(0) or NOTHING))
    return NOTHING


# --- os


def _system(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0, "command") or UNKNOWN_TEXT
    argument = Argument(interpreter.value(given), *interpreter.span(call.node_of(0, "command")))
    interpreter.process.start_shell(argument, _launch(interpreter, call, "inherit"))
    return NOTHING


def _os_popen(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0, "cmd") or UNKNOWN_TEXT
    argument = Argument(interpreter.value(given), *interpreter.span(call.node_of(0, "cmd")))
    output = interpreter.process.start_shell(argument, _launch(interpreter, call, "capture"))
    return interpreter.new(Instance("file", ((" read", Text(output)),)))


def _replaced_by_list(interpreter: Evaluator, call: Call, first: int, *, environment: bool) -> None:
    """``os.execv(file, argv[, env])`` and the spawn functions, whose *first* argument of these is another."""
    program = call.get(first, "path" if first == 0 else "file") or call.get(first, "file") or UNKNOWN_TEXT
    given = call.get(first + 1, "args") or call.get(first + 1, "argv") or NOTHING
    launch = _launch(interpreter, call, "inherit")
    launch = replace(launch, program=interpreter.value(program))
    if environment:
        launch = replace(launch, environment=_environment(interpreter, call.get(first + 2, "env")))
    interpreter.process.start(_vector(interpreter, given, call.node_of(first + 1, "args")), launch)


def _replaced_by_arguments(interpreter: Evaluator, call: Call, first: int, *, environment: bool) -> None:
    """``os.execl(file, arg0, …[, env])``."""
    vector = _each(interpreter, call, first + 1)
    launch = replace(_launch(interpreter, call, "inherit"), program=interpreter.value(call.get(first) or UNKNOWN_TEXT))
    if environment and len(call.arguments) > first + 1:
        launch = replace(launch, environment=_environment(interpreter, call.arguments[-1]))
        vector = vector[:-1]
    interpreter.process.start(vector, launch)


def _exec(*, arguments: bool, environment: bool) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        start = _replaced_by_arguments if arguments else _replaced_by_list
        start(interpreter, call, 0, environment=environment)
        interpreter.leave()
        return NOTHING

    return model


def _spawn(*, arguments: bool, environment: bool) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        start = _replaced_by_arguments if arguments else _replaced_by_list
        start(interpreter, call, 1, environment=environment)
        return NOTHING

    return model


def _posix_spawn(interpreter: Evaluator, call: Call) -> Object:
    _replaced_by_list(interpreter, call, 0, environment=True)
    return NOTHING


def _pty_spawn(interpreter: Evaluator, call: Call) -> Object:
    given = call.get(0, "argv") or UNKNOWN_TEXT
    vector = _vector(interpreter, given, call.node_of(0, "argv"))
    interpreter.process.start(vector, _launch(interpreter, call, "inherit"))
    return NOTHING


# --- asyncio


def _create(interpreter: Evaluator, call: Call, *, joined: bool) -> Object:
    output = _output(interpreter, call, captures=False)
    launch = _launch(interpreter, call, output, _input(interpreter, call))
    vector = _each(interpreter, call)

    def start(given: Launch) -> Value:
        if joined and vector:
            return interpreter.process.start_shell(vector[0], given)
        return interpreter.process.start(vector, given)

    return _popen_object(interpreter, start(launch), lambda given: start(_reading(launch, given)))


def _create_exec(interpreter: Evaluator, call: Call) -> Object:
    return _create(interpreter, call, joined=False)


def _create_shell(interpreter: Evaluator, call: Call) -> Object:
    return _create(interpreter, call, joined=True)


# --- others


def _set_title(interpreter: Evaluator, call: Call) -> Object:
    """``setproctitle`` writes over the argument vector of the process itself."""
    given = call.get(0, "title") or NOTHING
    argument = Argument(interpreter.value(given), *interpreter.span(call.node_of(0, "title")))
    interpreter.process.leak(argument, _launch(interpreter, call, "inherit"), command="setproctitle")
    return NONE


FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "subprocess.run": _run,
    "subprocess.call": _call,
    "subprocess.check_call": _call,
    "subprocess.check_output": _check_output,
    "subprocess.getoutput": _getoutput,
    "subprocess.getstatusoutput": _getstatusoutput,
    "subprocess.Popen": _popen,
    "os.system": _system,
    "os.popen": _os_popen,
    "os.execv": _exec(arguments=False, environment=False),
    "os.execvp": _exec(arguments=False, environment=False),
    "os.execve": _exec(arguments=False, environment=True),
    "os.execvpe": _exec(arguments=False, environment=True),
    "os.execl": _exec(arguments=True, environment=False),
    "os.execlp": _exec(arguments=True, environment=False),
    "os.execle": _exec(arguments=True, environment=True),
    "os.execlpe": _exec(arguments=True, environment=True),
    "os.spawnv": _spawn(arguments=False, environment=False),
    "os.spawnvp": _spawn(arguments=False, environment=False),
    "os.spawnve": _spawn(arguments=False, environment=True),
    "os.spawnvpe": _spawn(arguments=False, environment=True),
    "os.spawnl": _spawn(arguments=True, environment=False),
    "os.spawnlp": _spawn(arguments=True, environment=False),
    "os.spawnle": _spawn(arguments=True, environment=True),
    "os.spawnlpe": _spawn(arguments=True, environment=True),
    "os.posix_spawn": _posix_spawn,
    "os.posix_spawnp": _posix_spawn,
    "os.startfile": _system,
    "pty.spawn": _pty_spawn,
    "asyncio.create_subprocess_exec": _create_exec,
    "asyncio.create_subprocess_shell": _create_shell,
    "asyncio.subprocess.create_subprocess_exec": _create_exec,
    "asyncio.subprocess.create_subprocess_shell": _create_shell,
    "setproctitle.setproctitle": _set_title,
    "psutil.Popen": _popen,
    **dict.fromkeys(("anyio.run_process", "anyio.open_process", "trio.run_process"), _run),
}


METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "popen.communicate": _communicate,
    "popen-input.write": _write_input,
    "popen-input.writelines": _write_input,
}
