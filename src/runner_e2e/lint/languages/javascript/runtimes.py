"""What Bun and Deno have beside Node.js: processes and the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.builtins import function, module_of, object_of
from runner_e2e.lint.languages.javascript.starting import arguments_in, launched, option, options_of, template_command
from runner_e2e.lint.languages.javascript.values import ANY, NUMBER, Js, Thing, of_text, of_thing, text_of
from runner_e2e.lint.languages.process import Argument
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.javascript.machine import Call

__all__ = ["GLOBALS"]


def _started(output: Value) -> Js:
    return object_of(
        {
            "stdout": of_text(output),
            "stderr": of_text(UNKNOWN),
            "exited": NUMBER,
            "exitCode": NUMBER,
            "code": NUMBER,
            "success": ANY,
        }
    )


def _bun_spawn(call: Call) -> Js:
    """``Bun.spawn([program, …], options)``, or with the list as ``cmd`` of the options."""
    options = options_of(call, 0)
    arguments = arguments_in(call, 0)
    if not arguments:
        given = option(call, options, "cmd")
        passed = call.passed(0)
        inner = call.with_arguments(given)
        arguments = [Argument(one.value, passed.start, passed.end, many=one.many) for one in arguments_in(inner, 0)]
    return _started(call.machine.process.start(arguments, launched(call, options)))


def _deno_command(call: Call) -> Js:
    """``new Deno.Command(program, {args: […]})``: its methods start it; it is started here, where its words stand."""
    options = options_of(call, 1)
    program, given = call.passed(0), option(call, options, "args")
    words = [Argument(text_of(program.value), program.start, program.end)]
    passed = call.passed(1) if call.given(1) else program
    inner = call.with_arguments(given)
    words += [Argument(one.value, passed.start, passed.end, many=one.many) for one in arguments_in(inner, 0)]
    result = _started(call.machine.process.start(words, launched(call, options)))
    made = Thing()
    for name in ("output", "outputSync", "spawn"):
        made.put(name, function(lambda _call: result))
    return of_thing(made)


def _environment(call: Call) -> Js:
    return call.machine.get(of_thing(Thing("environment")), call.text(0))


def _bun() -> Js:
    values = {"$": template_command(), "env": of_thing(Thing("environment"))}
    return module_of({"spawn": _bun_spawn, "spawnSync": _bun_spawn}, values)


def _deno() -> Js:
    whole = of_thing(Thing("environment"))
    environment = module_of({"get": _environment, "toObject": lambda _call: whole})
    return module_of({"Command": _deno_command}, {"env": environment, "args": ANY})


GLOBALS: Mapping[str, Callable[[], Js]] = {"Bun": _bun, "Deno": _deno}
"""Names that are there without an import, by what makes them."""
