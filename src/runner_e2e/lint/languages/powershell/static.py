"""Static members of .NET types that do more than compute: files, the environment, processes, the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.machine import Word
from runner_e2e.lint.languages.powershell.texts import static_of
from runner_e2e.lint.languages.powershell.values import Ps, elements, listed, text_of
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.languages.powershell.machine import Machine
    from runner_e2e.lint.languages.powershell.syntax import Member

__all__ = ["static_call"]

_KNOWN = frozenset(
    (
        *(
            "string",
            "convert",
            "encoding",
            "math",
            "int",
            "datetime",
            "guid",
            "regex",
            "path",
            "environment",
            "uri",
            "char",
        ),
        *(
            "utf8",
            "bitconverter",
            "timespan",
            "array",
            "enum",
            "version",
            "random",
            "httputility",
            "webutility",
            "text",
        ),
        *(
            "sha256",
            "md5",
            "sha1",
            "sha512",
            "hmacsha256",
            "cryptography",
            "json",
            "jsonserializer",
            "bool",
            "double",
            "type",
        ),
    )
)


def static_call(machine: Machine, node: Member, type_name: str, name: str, arguments: Sequence[Ps]) -> Ps:
    """``[type]::name`` or ``[type]::name(arguments)``."""
    kind = type_name.lower().rsplit(".", 1)[-1]
    member = name.lower()
    texts = [text_of(one) for one in arguments]
    if kind == "file" and texts:
        return _file(machine, node, member, texts)
    if kind == "environment" and member in {"getenvironmentvariable", "setenvironmentvariable"} and texts:
        return _environment(machine, member, texts)
    if kind == "console":
        if texts and member in {"writeline", "write"}:
            machine.process.print(texts[0] + Value.literal("\n"), node.start, node.end)
        return EMPTY
    if kind == "process" and member == "start":
        return _start(machine, node, arguments)
    if kind == "scriptblock" and member == "create" and texts:
        machine.run_text(texts[0], node.start, node.end)
        return EMPTY
    if member == "new":
        return listed(arguments) if arguments else EMPTY
    if kind not in _KNOWN:
        words = [Word(value, node.start, node.end) for value in arguments]
        machine.possible(f"[{type_name}]::{name}", words, node.start, node.end)
    return static_of(type_name, name, arguments)


def _file(machine: Machine, node: Member, member: str, texts: Sequence[Value]) -> Ps:
    process = machine.process
    if member.startswith("read"):
        return process.read_file(texts[0])
    if member.startswith(("write", "append")) and len(texts) > 1:
        append = member.startswith("append")
        process.write_file(texts[0], texts[1], append=append, start=node.start, end=node.end)
        return EMPTY
    return UNKNOWN


def _environment(machine: Machine, member: str, texts: Sequence[Value]) -> Ps:
    if member == "getenvironmentvariable":
        names = texts[0].constants
        if names is None:  # any variable
            values = machine.process.environment().values()
            return Value.of(taint for value in values for taint in value.taints) | UNKNOWN
        return join(machine.environment_variable(name) for name in names)
    name = texts[0].constant
    if name is not None and len(texts) > 1:
        machine.process.set_variable(name, texts[1])
    return EMPTY


def _start(machine: Machine, node: Member, arguments: Sequence[Ps]) -> Ps:
    found: list[Argument] = []
    nodes = node.arguments or ()
    for index, value in enumerate(arguments):
        start, end = (nodes[index].start, nodes[index].end) if index < len(nodes) else (node.start, node.end)
        items, others = elements(value)
        found += [Argument(text_of(item), start, end) for item in items]
        if others is not None:
            found.append(Argument(others, start, end, many=True))
    if found:
        machine.process.start(found, Launch(start=node.start, end=node.end))
    return UNKNOWN
