"""Cmdlets: what they do with what they are given. A cmdlet is no process; those that start one say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.github_address import publishes
from runner_e2e.lint.languages import pieces
from runner_e2e.lint.languages.pieces import split_at
from runner_e2e.lint.languages.powershell.binding import NAMES, Call, Model
from runner_e2e.lint.languages.powershell.machine import Word
from runner_e2e.lint.languages.powershell.texts import NUMBER, joined, member_of, parsed
from runner_e2e.lint.languages.powershell.values import (
    BOOLEAN,
    Code,
    Items,
    Ps,
    Table,
    either,
    elements,
    listed,
    shown,
    taints_of,
    text_of,
    truth_of,
)
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["ALIASES", "CMDLETS"]


# --- output


def _content(call: Call, *names: str) -> list[Ps]:
    value = call.bound.get(*names)
    return list(elements(value)[0]) + _rest(value) if value is not None else call.input


def _rest(value: Ps) -> list[Ps]:
    _, others = elements(value)
    return [] if others is None else [others]


def _write_output(call: Call) -> None:
    for value in _content(call, "inputobject"):
        call.emit(value)


def _write_host(call: Call) -> None:
    shown_values = (shown(value) for value in _content(call, "object", "message", "messagedata"))
    total = pieces.joined(shown_values, Value.literal(" "))
    call.machine.process.print(total + Value.literal("\n"), call.start, call.end)


def _write_error(call: Call) -> None:
    total = joined(listed(_content(call, "message", "object")), Value.literal(" "))
    call.machine.process.print_error(total + Value.literal("\n"), call.start, call.end)


def _to_log(call: Call) -> None:
    for value in call.input:
        call.machine.process.print(shown(value) + Value.literal("\n"), call.start, call.end)


def _nothing(_call: Call) -> None:
    return


def _lines(values: Sequence[Ps], *, newline: bool = True) -> Value:
    total = EMPTY
    for value in values:
        total = total + shown(value) + (Value.literal("\n") if newline else EMPTY)
    return total


def _write_file(call: Call, *, append: bool, names: tuple[str, ...]) -> None:
    path = call.text("filepath", "path", "literalpath")
    if path is None:
        return
    content = _lines(_content(call, *names), newline=not call.bound.has("nonewline"))
    call.machine.process.write_file(path, content, append=append, start=call.start, end=call.end)


def _out_file(call: Call) -> None:
    _write_file(call, append=call.bound.has("append"), names=("inputobject",))


def _set_content(call: Call) -> None:
    if not _to_environment(call):
        _write_file(call, append=False, names=("value",))


def _add_content(call: Call) -> None:
    _write_file(call, append=True, names=("value",))


def _to_environment(call: Call) -> bool:
    """``Set-Item env:NAME value``."""
    path = call.text("path", "literalpath", "filepath")
    name = path.constant if path is not None else None
    if name is None or not name.lower().startswith("env:"):
        return False
    value = joined(listed(_content(call, "value")), Value.literal(" "))
    call.machine.process.set_variable(name[4:].lstrip("\\/"), value)
    return True


def _set_item(call: Call) -> None:
    if not _to_environment(call):
        _write_file(call, append=False, names=("value",))


def _tee(call: Call) -> None:
    variable = call.text("variable")
    if variable is not None and variable.constant is not None:
        call.machine.frames[-1][variable.constant.lower()] = listed(call.input)
    else:
        _write_file(call, append=call.bound.has("append"), names=("inputobject",))
    for value in call.input:
        call.emit(value)


# --- input


def _get_content(call: Call) -> None:
    path = call.text("path", "literalpath")
    if path is None:
        return
    name = path.constant
    if name is not None and name.lower().startswith("env:"):
        call.emit(call.machine.environment_variable(name[4:].lstrip("\\/")))
        return
    call.emit(call.machine.process.read_file(path))


def _get_items(call: Call) -> None:
    path = call.text("path", "literalpath")
    name = path.constant if path is not None else None
    if name is not None and name.lower().startswith("env:"):
        wanted = name[4:].strip("\\/*")
        environment = call.machine.process.environment()
        for key, value in environment.items():
            if not wanted or key.lower() == wanted.lower():
                call.emit(Table((("name", Value.literal(key)), ("key", Value.literal(key)), ("value", value))))
        return
    names = call.machine.process.file_names()
    found = names | UNKNOWN if names.taints else UNKNOWN
    call.emit(Items((), found))


def _get_variable(call: Call) -> None:
    name = call.text("name")
    found = call.machine.lookup(name.constant.lower()) if name is not None and name.constant is not None else None
    call.emit(found if found is not None else UNKNOWN)


def _set_variable(call: Call) -> None:
    name = call.text("name")
    if name is not None and name.constant is not None:
        call.machine.frames[-1][name.constant.lower()] = listed(_content(call, "value"))


# --- the pipeline


def _for_each(call: Call) -> None:
    block = call.bound.get("process", "scriptblock", "parallel")
    if isinstance(block, Code):
        first, last = call.bound.get("begin"), call.bound.get("end")
        if isinstance(first, Code):
            _call_block(call, first, EMPTY)
        for value in _each(call.input):
            _call_block(call, block, value)
        if isinstance(last, Code):
            _call_block(call, last, EMPTY)
        return
    if block is not None and (name := text_of(block).constant):
        for value in _each(call.input):
            call.emit(member_of(value, name))


def _each(values: Sequence[Ps]) -> list[Ps]:
    found: list[Ps] = []
    for value in values:
        items, others = elements(value)
        found += items
        if others is not None:
            found.append(others)
    return found


def _call_block(call: Call, block: Code, item: Ps) -> None:
    source = block.source
    assert isinstance(source, Source)
    with call.machine.process.within(source):
        call.machine.call_block(block.block, (), None, item=item)


def _where(call: Call) -> None:
    block = call.bound.get("filterscript", "scriptblock", "property")
    for value in _each(call.input):
        if isinstance(block, Code):
            tested = call.machine.captured(lambda block=block, value=value: _call_block(call, block, value))  # type: ignore[misc]
            if truth_of(listed(tested)) is False:
                continue
        call.emit(value)


def _pass_on(call: Call) -> None:
    for value in _content(call, "inputobject"):
        call.emit(value)


def _select(call: Call) -> None:
    name = call.text("expandproperty")
    for value in _each(call.input):
        constant = name.constant if name is not None else None
        call.emit(member_of(value, constant) if constant is not None else value)


def _select_string(call: Call) -> None:
    values = call.input
    path = call.text("path", "literalpath")
    if path is not None:
        values = [call.machine.process.read_file(path)]
    taints = [taint for value in values for taint in taints_of(value)]
    call.emit(Items((), Value.of(taints) if taints else UNKNOWN))


def _out_string(call: Call) -> None:
    call.emit(_lines(call.input))


def _count(call: Call) -> None:
    call.emit(Table((("count", NUMBER), ("sum", NUMBER), ("maximum", NUMBER), ("minimum", NUMBER))))


def _join_string(call: Call) -> None:
    separator = call.text("separator") or EMPTY
    call.emit(joined(Items(tuple(_each(call.input))), separator))


def _to_json(call: Call) -> None:
    taints = [taint for value in _content(call, "inputobject") for taint in taints_of(value)]
    call.emit(Value.of(taints) if taints else UNKNOWN)


def _from_json(call: Call) -> None:
    call.emit(parsed(joined(listed(_content(call, "inputobject")), Value.literal("\n"))))


# --- paths


def _join_path(call: Call) -> None:
    parts = [text for text in (call.text("path"), call.text("childpath")) if text is not None]
    parts += [text_of(word.value) for word in call.bound.rest if word.value is not None]
    call.emit(pieces.joined(parts, Value.literal("/")))


def _split_path(call: Call) -> None:
    value = call.text("path") or joined(listed(call.input), EMPTY)
    parts = split_at(value, "/")
    if parts is None:
        call.emit(value.opaque())
    elif call.bound.has("leaf"):
        call.emit(parts[-1])
    else:
        call.emit(pieces.joined(parts[:-1] or parts, Value.literal("/")))


def _set_location(call: Call) -> None:
    path = call.text("path", "literalpath")
    if path is not None:
        call.machine.process.change_directory(path)


def _push_location(call: Call) -> None:
    call.machine.locations.append(call.machine.process.directory)
    _set_location(call)


def _pop_location(call: Call) -> None:
    if call.machine.locations:
        call.machine.process.change_directory(call.machine.locations.pop())


def _get_location(call: Call) -> None:
    call.emit(Table((("path", call.machine.process.directory),)))


def _copy_item(call: Call) -> None:
    source, target = call.text("path", "literalpath"), call.text("destination")
    if source is not None and target is not None:
        content = call.machine.process.read_file(source)
        call.machine.process.write_file(target, content, append=False, start=call.start, end=call.end)


def _remove_item(call: Call) -> None:
    path = call.text("path", "literalpath")
    name = path.constant if path is not None else None
    if name is not None and name.lower().startswith("env:"):
        call.machine.process.set_variable(name[4:].lstrip("\\/"), None)
    elif path is not None:
        call.machine.process.remove_file(path)


def _boolean(call: Call) -> None:
    call.emit(BOOLEAN)


def _unknown(call: Call) -> None:
    call.emit(UNKNOWN)


def _sent(call: Call) -> None:
    """A request over the network: no process, but what comes back may hold what was sent.

    GitHub shows what its API is given.
    """
    method, address = call.text("method"), call.text("uri")
    if publishes(address or EMPTY, "GET" if method is None else method.constant):
        process = call.machine.process
        for name in ("body", "form", "infile"):
            word = call.bound.word(name)
            if word is None or word.value is None:
                continue
            sent = text_of(word.value) if name == "infile" else Value.of(taints_of(word.value))
            content = process.read_file(sent) if name == "infile" else sent
            process.publish(content, word.start, word.end, "what `Invoke-RestMethod` sends to GitHub's API")
    call.emit(call.machine.given_back(call.words))


def _new_object(call: Call) -> None:
    given = call.bound.get("property", "argumentlist")
    kind = (call.text("typename") or EMPTY).constant or ""
    if isinstance(given, Table):
        call.emit(given)
    elif "list" in kind.lower() or "array" in kind.lower():
        call.emit(Items())
    elif given is not None:
        call.emit(given)
    else:
        call.emit(Table())


# --- processes and code


def _start_process(call: Call) -> None:
    file = call.bound.word("filepath")
    if file is None or file.value is None:
        return
    arguments = [Argument(text_of(file.value), file.start, file.end)]
    listed_word = call.bound.word("argumentlist", "args")
    if listed_word is not None:
        arguments += listed_word.arguments()
    directory = call.text("workingdirectory")
    given = call.bound.get("environment")
    environment = None
    if isinstance(given, Table):
        environment = {
            **call.machine.process.environment(),
            **{name.upper(): text_of(value) for name, value in given.entries},
        }
    input_file = call.text("redirectstandardinput")
    text = call.machine.process.read_file(input_file) if input_file is not None else None
    launch = Launch(start=call.start, end=call.end, directory=directory, environment=environment, standard_input=text)
    call.machine.process.start(arguments, launch)
    if call.bound.has("passthru"):
        call.emit(UNKNOWN)


def _invoke_expression(call: Call) -> None:
    word = call.bound.word("command")
    start, end = (word.start, word.end) if word is not None else (call.start, call.end)
    text = joined(listed(_content(call, "command")), Value.literal("\n"))
    call.machine.run_text(text, start, end)


def _invoke_command(call: Call) -> None:
    block = call.bound.get("scriptblock")
    given = call.bound.word("argumentlist", "args")
    words: list[Word] = []
    if given is not None and given.value is not None:
        words = [Word(item, given.start, given.end) for item in _each([given.value])]
    if isinstance(block, Code) and isinstance(block.source, Source):
        with call.machine.process.within(block.source):
            call.machine.call_block(block.block, words, call.bound.given)


def _any_of(call: Call) -> None:
    """A random one of what is given."""
    values = _each(_content(call, "inputobject"))
    found: Ps = values[0] if values else UNKNOWN
    for value in values[1:]:
        found = either(found, value)
    call.emit(found)


_OUT = ("filepath", "encoding")
_PATH = ("path",)

CMDLETS: dict[str, Model] = {
    "write-output": Model(_write_output, ("inputobject",), rest=True),
    "write-host": Model(_write_host, ("object",), rest=True),
    **dict.fromkeys(
        ("write-information", "write-verbose", "write-debug", "write-warning"),
        Model(_write_host, ("message",), rest=True),
    ),
    "write-error": Model(_write_error, ("message",), rest=True),
    **dict.fromkeys(("out-host", "out-default", "format-table", "format-list"), Model(_to_log)),
    "out-null": Model(_nothing),
    "out-string": Model(_out_string),
    "out-file": Model(_out_file, _OUT),
    "set-content": Model(_set_content, ("path", "value")),
    "add-content": Model(_add_content, ("path", "value")),
    "tee-object": Model(_tee, ("filepath",)),
    "get-content": Model(_get_content, _PATH),
    "get-childitem": Model(_get_items, _PATH),
    "get-item": Model(_get_items, _PATH),
    "set-item": Model(_set_item, ("path", "value")),
    "new-item": Model(_set_item, _PATH),
    "get-variable": Model(_get_variable, ("name",), frozenset({"valueonly"})),
    "set-variable": Model(_set_variable, ("name", "value")),
    "new-variable": Model(_set_variable, ("name", "value")),
    "foreach-object": Model(_for_each, ("process",)),
    "where-object": Model(_where, ("filterscript",)),
    "select-object": Model(_select, ("property",)),
    **dict.fromkeys(("sort-object", "get-unique", "group-object", "convertto-csv", "convertfrom-csv"), Model(_pass_on)),
    "select-string": Model(_select_string, ("pattern", "path")),
    "measure-object": Model(_count),
    "join-string": Model(_join_string, ("property",)),
    "convertto-json": Model(_to_json, ("inputobject",)),
    "convertfrom-json": Model(_from_json, ("inputobject",)),
    "join-path": Model(_join_path, ("path", "childpath")),
    "split-path": Model(_split_path, _PATH),
    "resolve-path": Model(_pass_on, ("inputobject",)),
    "set-location": Model(_set_location, _PATH),
    "push-location": Model(_push_location, _PATH),
    "pop-location": Model(_pop_location),
    "get-location": Model(_get_location),
    "copy-item": Model(_copy_item, ("path", "destination")),
    "move-item": Model(_copy_item, ("path", "destination")),
    "remove-item": Model(_remove_item, _PATH),
    "test-path": Model(_boolean, _PATH),
    "start-process": Model(_start_process, ("filepath", "argumentlist")),
    "invoke-expression": Model(_invoke_expression, ("command",)),
    "invoke-command": Model(_invoke_command, ("scriptblock",)),
    "start-job": Model(_invoke_command, ("scriptblock",)),
    "start-threadjob": Model(_invoke_command, ("scriptblock",)),
    "measure-command": Model(_invoke_command, ("scriptblock",)),
    "new-object": Model(_new_object, ("typename", "argumentlist")),
    "get-random": Model(_any_of, ("inputobject",)),
    **dict.fromkeys(("invoke-restmethod", "invoke-webrequest"), Model(_sent, ("uri",))),
    **dict.fromkeys(NAMES.unknown, Model(_unknown)),
    **dict.fromkeys(NAMES.nothing, Model(_nothing)),
}
"""Cmdlets by their names in lower case."""

ALIASES = NAMES.aliases
"""Other names of cmdlets. On Linux and macOS some of them mean programs; what they are given is then no leak of its
own, for those programs only list, copy and remove."""
