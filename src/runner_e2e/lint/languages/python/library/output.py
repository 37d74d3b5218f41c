"""Output and input: ``print``, ``sys.stdout``, ``logging``, ``input``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.languages.python.evaluator import Call
from runner_e2e.lint.languages.python.objects import NONE, NOTHING, Constant, Instance, Items, Named, Object, Text
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


def _print(interpreter: Evaluator, call: Call) -> Object:
    separator, end = call.keywords.get("sep"), call.keywords.get("end")
    between = (
        interpreter.value(separator) if separator not in (None, NONE) and separator is not None else Value.literal(" ")
    )
    total = joined((interpreter.value(one) for one in call.arguments), between)
    if call.rest is not None:
        total = total + interpreter.value(call.rest)
    total = total + (interpreter.value(end) if end is not None and end != NONE else Value.literal("\n"))
    write(interpreter, call.keywords.get("file"), total, call)
    return NONE


def write(interpreter: Evaluator, target: Object | None, content: Value, call: Call) -> None:
    """Writes to a stream: standard output by default."""
    span = interpreter.span(call.node)
    if target in (None, NONE, Named("sys.stdout"), Named("sys.__stdout__")):
        interpreter.process.print(content, *span)
    elif target in (Named("sys.stderr"), Named("sys.__stderr__")):
        interpreter.process.print_error(content, *span)
    elif target is not None:
        method = interpreter.attribute(target, "write", call.node)
        interpreter.call(method, Call(node=call.node, arguments=(Text(content),)))


def _to_stdout(interpreter: Evaluator, call: Call) -> Object:
    interpreter.process.print(interpreter.value(call.get(0) or NOTHING), *interpreter.span(call.node))
    return NOTHING


def _to_stderr(interpreter: Evaluator, call: Call) -> Object:
    interpreter.process.print_error(interpreter.value(call.get(0) or NOTHING), *interpreter.span(call.node))
    return NOTHING


def _lines_to_stdout(interpreter: Evaluator, call: Call) -> Object:
    element = interpreter.element(interpreter.items(call.get(0) or NOTHING))
    interpreter.process.print(interpreter.value(element), *interpreter.span(call.node))
    return NONE


def _os_write(interpreter: Evaluator, call: Call) -> Object:
    """``os.write(1, data)``."""
    number = call.get(0)
    if isinstance(number, Constant) and number.value in (1, 2):
        interpreter.process.print(interpreter.value(call.get(1) or NOTHING), *interpreter.span(call.node))
    return NOTHING


def _log(interpreter: Evaluator, call: Call, first: int = 0) -> Object:
    """``logging.info(message, *arguments)``."""
    given = call.arguments[first:]
    if not given:
        return NONE
    total = joined((interpreter.value(one) for one in given), Value.literal(" "))
    interpreter.process.print_error(total + Value.literal("\n"), *interpreter.span(call.node))
    return NONE


def _log_method(interpreter: Evaluator, _receiver: Object, call: Call) -> Object:
    return _log(interpreter, call)


def _log_at_level(interpreter: Evaluator, call: Call) -> Object:
    return _log(interpreter, call, 1)


def _logger(interpreter: Evaluator, _call: Call) -> Object:
    return interpreter.new(Instance("logger"))


def _pretty(interpreter: Evaluator, call: Call) -> Object:
    interpreter.process.print(interpreter.value(interpreter.opaque(call.everything())), *interpreter.span(call.node))
    return NONE


def _input(interpreter: Evaluator, call: Call) -> Object:
    prompt = call.get(0)
    if prompt is not None:
        interpreter.process.print(interpreter.value(prompt), *interpreter.span(call.node))
    return Text(interpreter.process.read_input().opaque())


def _read_stdin(interpreter: Evaluator, _call: Call) -> Object:
    return Text(interpreter.process.read_input())


def _stdin_lines(interpreter: Evaluator, _call: Call) -> Object:
    content = interpreter.process.read_input()
    return interpreter.new(Items((), Text(content.opaque() if content.taints else UNKNOWN)))


_LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "fatal")

FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "builtins.print": _print,
    "builtins.input": _input,
    "sys.stdout.write": _to_stdout,
    "sys.stdout.buffer.write": _to_stdout,
    "sys.stdout.writelines": _lines_to_stdout,
    "sys.stderr.write": _to_stderr,
    "sys.stdin.read": _read_stdin,
    "sys.stdin.readline": _read_stdin,
    "sys.stdin.buffer.read": _read_stdin,
    "sys.stdin.readlines": _stdin_lines,
    "fileinput.input": _stdin_lines,
    "os.write": _os_write,
    "warnings.warn": _log,
    "logging.log": _log_at_level,
    "logging.getLogger": _logger,
    "pprint.pprint": _pretty,
    "pprint.pp": _pretty,
    "rich.print": _pretty,
    "click.echo": _to_stdout,
    "click.secho": _to_stdout,
    "typer.echo": _to_stdout,
    **{f"logging.{level}": _log for level in _LEVELS},
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    **{f"logger.{level}": _log_method for level in _LEVELS},
}
