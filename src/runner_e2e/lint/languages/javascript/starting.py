"""Functions that start processes: ``child_process``, ``@actions/exec``, ``execa``, ``zx`` and their like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.languages.javascript.builtins import buffer, function, module_of, object_of
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    NULL,
    NUMBER,
    UNDEFINED,
    Any,
    Js,
    Native,
    Thing,
    constant,
    of_text,
    of_thing,
    text_of,
)
from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Value, normal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.languages.javascript.machine import Call, Passed
    from runner_e2e.lint.tree import Node
    from runner_e2e.lint.values import Text

__all__ = [
    "MODULES",
    "arguments_in",
    "launched",
    "option",
    "options_of",
    "promisified",
    "run_template",
    "template_command",
    "zx_dollar",
]

_Output = Literal["inherit", "capture", "discard"]
_NODE = Value.literal("/usr/bin/node")


# --- what calls are given


def option(call: Call, options: Js, name: str) -> Js:
    """The option *name*, undefined when it was not given."""
    return call.machine.get(options, Value.literal(name)) if options.things else UNDEFINED


def options_of(call: Call, first: int) -> Js:
    """The options among the arguments from *first*: the object that is neither array nor function."""
    for one in call.arguments[first:]:
        for thing in one.value.things:
            if thing.kind not in {"array", "function", "class"}:
                return one.value
        if any(isinstance(atom, Any) for atom in one.value.atoms):
            return one.value
    return UNDEFINED


def _environment(call: Call, options: Js) -> Mapping[str, Value] | None:
    """The environment that the options give; None: that of this process."""
    given = option(call, options, "env")
    found: dict[str, Value] = {}
    things = [thing for thing in given.things if thing.kind != "environment"]
    if not things:
        return None
    for thing in things:
        for name, cell in thing.cells.items():
            if cell.value is not None and cell.value != UNDEFINED:
                value = text_of(cell.value)
                found[name] = found[name] | value if name in found else value
    return found


def _launch(call: Call, options: Js, output: _Output) -> Launch:
    directory = option(call, options, "cwd")
    given = option(call, options, "input")
    text = text_of(given) if given.text is not None or given.things else None
    return Launch(
        start=call.start,
        end=call.end,
        environment=_environment(call, options),
        standard_input=text,
        output=output,
        directory=text_of(directory) if directory.text is not None else None,
    )


def _output_of(call: Call, options: Js, default: _Output) -> _Output:
    """Where the output goes, by ``stdio``."""
    given = option(call, options, "stdio")
    thing = given.thing
    if thing is not None and len(thing.elements()) > 1:
        given = thing.elements()[1]
    words: dict[str | None, _Output] = {"inherit": "inherit", "ignore": "discard", "pipe": "capture"}
    return words.get(given.constant, default)


def _argument(one: Passed) -> Argument:
    return Argument(text_of(one.value), one.start, one.end, many=one.many)


def arguments_in(call: Call, index: int) -> list[Argument]:
    """The arguments in the array at *index*: each where it is written, when that is within the call."""
    if not call.given(index):
        return []
    passed = call.passed(index)
    found: list[Argument] = []
    for thing in passed.value.things:
        if thing.kind not in {"array", "set"}:
            continue
        for name, cell in thing.cells.items():
            if cell.value is not None and name.isdigit():
                inside = passed.start <= cell.start < cell.end <= passed.end
                start, end = (cell.start, cell.end) if inside else (passed.start, passed.end)
                found.append(Argument(text_of(cell.value), start, end))
        others = thing.others
        if others.value is not None:
            inside = passed.start <= others.start < others.end <= passed.end
            start, end = (others.start, others.end) if inside else (passed.start, passed.end)
            found.append(Argument(text_of(others.value), start, end, many=True))
    anything = [atom for atom in passed.value.atoms if isinstance(atom, Any) and atom.taints]
    found += [Argument(Value.of(atom.taints), passed.start, passed.end, many=True) for atom in anything]
    return found


def _is_list(value: Js) -> bool:
    return any(thing.kind in {"array", "set"} for thing in value.things) or any(
        isinstance(atom, Any) for atom in value.atoms
    )


# --- child_process


def _shell(call: Call, options: Js, output: _Output) -> Value:
    chosen = option(call, options, "shell")
    launch = _launch(call, options, output)
    if chosen.text is not None:
        launch = replace(launch, program=chosen.text)
    return call.machine.process.start_shell(_argument(call.passed(0)), launch)


def _exec(call: Call) -> Js:
    output = _shell(call, options_of(call, 1), "capture")
    return _child(call, output)


def _exec_sync(call: Call) -> Js:
    options = options_of(call, 1)
    return _bytes(call, options, _shell(call, options, _output_of(call, options, "capture")))


def _bytes(call: Call, options: Js, output: Value) -> Js:
    """The output as text, or as a buffer where no encoding is asked for."""
    return of_text(output) if option(call, options, "encoding").text is not None else buffer(output)


def _start(call: Call, default: _Output) -> tuple[Value, Js]:
    """Starts a file with arguments, or a shell with them where the options say so; output and options."""
    listed = _is_list(call.arg(1))
    options = options_of(call, 2 if listed else 1)
    file = _argument(call.passed(0))
    arguments = [file, *(arguments_in(call, 1) if listed else [])]
    launch = _launch(call, options, _output_of(call, options, default))
    shell = option(call, options, "shell")
    if (shell.text is not None and shell.constant != "") or shell == constant(value=True):
        total = joined((one.value for one in arguments), Value.literal(" "))
        if shell.text is not None:
            launch = replace(launch, program=shell.text)
        places = [one for one in arguments if one.value.taints] or [file]
        text = Argument(total, places[0].start, places[-1].end)
        return call.machine.process.start_shell(text, launch), options
    return call.machine.process.start(arguments, launch), options


def _exec_file(call: Call) -> Js:
    output, _ = _start(call, "capture")
    return _child(call, output)


def _exec_file_sync(call: Call) -> Js:
    output, options = _start(call, "capture")
    return _bytes(call, options, output)


def _spawn(call: Call) -> Js:
    output, _ = _start(call, "capture")
    return _child(call, output)


def _spawn_sync(call: Call) -> Js:
    output, options = _start(call, "capture")
    shown = _bytes(call, options, output)
    return object_of(
        {
            "stdout": shown,
            "stderr": of_text(UNKNOWN),
            "status": NUMBER,
            "signal": NULL,
            "output": call.machine.array([NULL, shown]),
        }
    )


def _fork(call: Call) -> Js:
    listed = _is_list(call.arg(1))
    options = options_of(call, 2 if listed else 1)
    launch = _launch(call, options, _output_of(call, options, "inherit"))
    arguments = [Argument(_NODE), _argument(call.passed(0)), *(arguments_in(call, 1) if listed else [])]
    return _child(call, call.machine.process.start(arguments, launch))


def _child(call: Call, output: Value) -> Js:
    """A child process: listeners get its output, a callback all of it."""
    machine = call.machine
    text = of_text(output)
    for one in call.arguments:
        for thing in one.value.things:
            if thing.is_function:
                machine.call(thing, call.with_arguments(NULL, text, of_text(UNKNOWN)))
    stream = module_of(
        {"on": _listening(text), "once": _listening(text), "pipe": _piping(text), "setEncoding": _nothing}
    )
    on_end = _listening(NUMBER)
    return module_of(
        {"on": on_end, "once": on_end, "kill": _nothing, "unref": _nothing, "send": _nothing},
        {
            "stdout": stream,
            "stderr": module_of({"on": _listening(of_text(UNKNOWN)), "pipe": _nothing}),
            "stdin": module_of(dict.fromkeys(("write", "end", "on", "pipe"), _nothing)),
            "exitCode": NUMBER,
            "pid": NUMBER,
        },
    )


def _nothing(_call: Call) -> Js:
    return UNDEFINED


def _listening(value: Js) -> Native:
    def on(call: Call) -> Js:
        for one in call.arguments[1:]:
            for thing in one.value.things:
                if thing.is_function:
                    call.machine.perhaps(lambda thing=thing: call.machine.call(thing, call.with_arguments(value)))  # type: ignore[misc]
        return call.this

    return on


def _piping(value: Js) -> Native:
    def pipe(call: Call) -> Js:
        target = call.arg(0)
        if target.thing is not None:
            call.machine.call_method(target, Value.literal("write"), call.with_arguments(value))
        return target

    return pipe


_RESULTS: dict[Native, str] = {_exec: "shell", _exec_file: "file"}


def promisified(call: Call) -> Js:
    """``util.promisify``: ``exec`` and ``execFile`` then give their output in an object."""
    target = call.thing_at(0)
    kind = _RESULTS.get(target.native) if target is not None and target.native is not None else None
    if kind is None:
        return call.arg(0)

    def run(inner: Call) -> Js:
        output = _shell(inner, options_of(inner, 1), "capture") if kind == "shell" else _start(inner, "capture")[0]
        return _outputs(output)

    return function(run)


def _outputs(output: Value) -> Js:
    text = of_text(output)
    return object_of(
        {"stdout": text, "stderr": of_text(UNKNOWN), "all": text, "exitCode": NUMBER, "code": NUMBER, "failed": ANY}
    )


# --- @actions/exec


def command_words(line: Value) -> list[Value]:
    """The words of a command line as ``@actions/exec`` takes it apart: blanks, double quotes, backslashes."""
    words: list[Value] = []
    for text in line.texts:
        for index, word in enumerate(_words_of(text)):
            one = Value((word,))
            if index < len(words):
                words[index] = words[index] | one
            else:
                words.append(one)
    return words


def _words_of(text: Text) -> list[Text]:
    words: list[Text] = []
    current: list[str | Hole] = []
    quoted = escaped = False
    started = False
    for piece in text:
        if isinstance(piece, Hole):
            current.append(piece)
            started = True
            continue
        for char in piece:
            if char == '"' and not escaped:
                quoted = not quoted
                started = True
            elif char == "\\" and quoted and not escaped:
                escaped = True
                continue
            elif char == " " and not quoted:
                if started:
                    words.append(normal(current))
                current, started = [], False
            else:
                current.append(char)
                started = True
            escaped = False
    if started:
        words.append(normal(current))
    return words


def _command(call: Call) -> list[Argument]:
    passed = call.passed(0)
    words = command_words(text_of(passed.value))
    return [*(Argument(word, passed.start, passed.end) for word in words), *arguments_in(call, 1)]


def _tool(call: Call, *, returns: bool) -> Js:
    machine = call.machine
    options = options_of(call, 2)
    arguments = _command(call)
    silent = option(call, options, "silent") == constant(value=True)
    if not silent:
        words = (one.value.opaque() if one.many else one.value for one in arguments)
        line = Value.literal("[command]") + joined(words, Value.literal(" "))
        machine.process.print(line + Value.literal("\n"), call.start, call.end)
    listeners = option(call, options, "listeners")
    captured = returns or bool(listeners.things)
    launch = _launch(call, options, "capture" if captured else "discard" if silent else "inherit")
    output = machine.process.start(arguments, launch) if arguments else EMPTY
    if captured and not silent and output != EMPTY:
        machine.process.print(output, call.start, call.end)
    for name in ("stdout", "stdline"):
        listener = option(call, listeners, name)
        if listener.things:
            machine.call_value(listener, call.with_arguments(buffer(output) if name == "stdout" else of_text(output)))
    if not returns:
        return NUMBER
    return object_of({"exitCode": NUMBER, "stdout": of_text(output), "stderr": of_text(UNKNOWN)})


def _run_tool(call: Call) -> Js:
    return _tool(call, returns=False)


def _tool_output(call: Call) -> Js:
    return _tool(call, returns=True)


# --- execa, zx, shelljs


def _execa(call: Call) -> Js:
    if call.thing_at(0) is not None and not _is_list(call.arg(0)):  # options: a function with them
        return call.this if call.this.things else _execa_function()
    output, _ = _start(call, "capture")
    return _outputs(output)


def _execa_function() -> Js:
    """``execa(program, …)``, which is ``execa`program …` `` as well."""
    return of_thing(Thing("function", native=_execa, data="$words"))


def _execa_command(call: Call) -> Js:
    passed = call.passed(0)
    options = options_of(call, 1)
    arguments = [Argument(word, passed.start, passed.end) for word in command_words(text_of(passed.value))]
    return _outputs(call.machine.process.start(arguments, _launch(call, options, "capture")))


def _execa_node(call: Call) -> Js:
    options = options_of(call, 2)
    arguments = [Argument(_NODE), _argument(call.passed(0)), *arguments_in(call, 1)]
    return _outputs(call.machine.process.start(arguments, _launch(call, options, "capture")))


def _shelljs_exec(call: Call) -> Js:
    output = _shell(call, options_of(call, 1), "capture")
    call.machine.process.print(output, call.start, call.end)
    return _outputs(output)


def _dollar(kind: str) -> Js:
    """The function behind ``$`tool` ``: *kind* is ``words`` (execa) or ``shell`` (zx)."""
    thing = Thing("function", native=lambda call: call.this if call.this.things else of_thing(thing), data=f"${kind}")
    thing.put("verbose", ANY)
    return of_thing(thing)


class _Words:
    """Takes the words of a template: blanks end one, a value that is put in belongs to one, an array makes several."""

    def __init__(self) -> None:
        self.found: list[Argument] = []
        self.text = EMPTY
        self._current: Argument | None = None

    def add(self, value: Value, start: int, end: int) -> None:
        """Adds to the word that is being read."""
        before = self._current
        self._current = (
            Argument(value, start, end) if before is None else Argument(before.value + value, before.start, end)
        )

    def close(self) -> None:
        """Ends the word."""
        if self._current is not None:
            self.found.append(self._current)
        self._current = None

    def literal(self, text: str, offset: int) -> None:
        """Takes text of the template itself."""
        self.text = self.text + Value.literal(text)
        for index, part in enumerate(text.replace("\n", " ").split(" ")):
            if index:
                self.close()
                offset += 1
            if part:
                self.add(Value.literal(part), offset, offset + len(part))
            offset += len(part)

    def value(self, value: Js, start: int, end: int) -> None:
        """Takes a value that is put in."""
        self.text = self.text + text_of(value)
        thing = value.thing
        if thing is None or thing.kind != "array":
            self.add(text_of(value), start, end)
            return
        for index, element in enumerate(thing.elements()):
            if index:
                self.close()
            self.add(text_of(element), start, end)
        if thing.others.value is not None:
            self.close()
            self.found.append(Argument(text_of(thing.others.value), start, end, many=True))


def run_template(kind: str, template: Node, call: Call) -> Js:
    """Runs the command in a template; *kind* tells whether a shell does (zx) or not (execa)."""
    machine = call.machine
    words = _Words()
    for child in template.children:
        if child.kind == "template_substitution":
            value = machine.evaluate(child.children[0]) if child.children else UNDEFINED
            words.value(value, child.start, child.end)
        else:
            words.literal(machine.source.text[child.start : child.end], child.start)
    words.close()
    launch = Launch(start=call.start, end=call.end, output="capture")
    if kind == "$shell":
        launch = replace(launch, program=Value.literal("bash"))
        output = machine.process.start_shell(Argument(words.text, template.start + 1, template.end - 1), launch)
        machine.process.print(output, call.start, call.end)
    else:
        output = machine.process.start(words.found, launch) if words.found else EMPTY
    result = _outputs(output)
    assert result.thing is not None
    for name in ("pipe", "quiet", "nothrow", "timeout"):
        result.thing.put(name, function(lambda _call: result))
    return result


def _execa_module() -> Js:
    run = _execa_function()
    functions: dict[str, Native] = {
        "execaSync": _execa,
        "execaCommand": _execa_command,
        "execaCommandSync": _execa_command,
        "execaNode": _execa_node,
        "sync": _execa,
        "command": _execa_command,
    }
    return module_of(functions, {"execa": run, "default": run, "$": _dollar("words")})


def _cross_spawn() -> Js:
    return function(_spawn, sync=_spawn_sync, spawn=_spawn)


CHILD_PROCESS: dict[str, Native] = {
    "exec": _exec,
    "execSync": _exec_sync,
    "execFile": _exec_file,
    "execFileSync": _exec_file_sync,
    "spawn": _spawn,
    "spawnSync": _spawn_sync,
    "fork": _fork,
}
"""The functions of ``child_process``."""

MODULES = {
    "child_process": lambda: module_of(CHILD_PROCESS),
    "@actions/exec": lambda: module_of({"exec": _run_tool, "getExecOutput": _tool_output}),
    "execa": _execa_module,
    "zx": lambda: module_of({"cd": _nothing, "quote": _nothing}, {"$": _dollar("shell")}),
    "cross-spawn": _cross_spawn,
    "tinyexec": lambda: module_of({"x": _execa, "exec": _execa}),
    "nano-spawn": lambda: module_of({}, {"default": function(_execa)}),
    "bun": lambda: module_of({}, {"$": template_command()}),
    "shelljs": lambda: module_of({"exec": _shelljs_exec}),
}
"""Modules whose functions start processes."""


def zx_dollar() -> Js:
    """``$`` of a script that zx runs."""
    return _dollar("shell")


def template_command() -> Js:
    """``$`` that starts the words of a template itself, without a shell of the machine."""
    return _dollar("words")


def launched(call: Call, options: Js) -> Launch:
    """How a process is started whose output the program reads."""
    return _launch(call, options, "capture")
