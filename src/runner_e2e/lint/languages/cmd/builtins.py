"""What ``cmd`` does itself: no process starts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.cmd.expansion import NUMBER
from runner_e2e.lint.languages.cmd.texts import after, before_quote
from runner_e2e.lint.languages.pieces import mapped
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.cmd.expansion import Expansion
    from runner_e2e.lint.languages.cmd.parser import Simple

__all__ = ["BUILTINS"]

_MAX_CALLS = 16
_MAX_JUMPS = 24


def _echo(script: Expansion, node: Simple, offset: int, end: int) -> None:
    if script.text[offset : offset + 1] in {".", ":", " ", "\t", "/", ",", ";", "=", "("}:
        offset += 1
    value = script.expanded(offset, end)
    for start, last in node.parts[1:]:
        value = value + script.expanded(start, last)
    if (value.constant or "").strip().lower() not in {"on", "off"}:
        script.emit(value + Value.literal("\n"), node.start, node.end)


def _set(script: Expansion, node: Simple, offset: int, end: int) -> None:
    value = script.expanded(offset, end)
    first = value.texts[0]
    text = first[0] if first and isinstance(first[0], str) else ""
    option = re.match(r"\s*/([aApP])\b\s*", text)
    if option is not None:
        _set_option(script, option[1].lower(), after(value, option.end()))
        return
    match = re.match(r"\s*\"?([^=\"]+)=", text)
    if match is None:
        _list(script, node, text.strip())
        return
    content = after(value, match.end())
    if text.lstrip().startswith('"'):
        content = before_quote(content)
    step = script.process.step(content, node.start, node.end, f"assigned to {match[1]}")
    script.process.set_variable(_name(script, match[1]), None if content == EMPTY else step)


def _name(script: Expansion, name: str) -> str:
    """The variable in the case that it was set in: names differ by more than that."""
    upper = name.strip().upper()
    return next((one for one in script.process.environment() if one.upper() == upper), name.strip())


def _set_option(script: Expansion, option: str, value: Value) -> None:
    text = value.texts[0][0] if value.texts[0] and isinstance(value.texts[0][0], str) else ""
    match = re.match(r"\s*\"?([\w ]+?)\s*[-+*/%&|^]?=", text)
    if match is not None:
        given = NUMBER if option == "a" else script.input.opaque() if script.input.taints else UNKNOWN
        script.process.set_variable(_name(script, match[1]), given)


def _list(script: Expansion, node: Simple, prefix: str) -> None:
    """``set`` and ``set PREFIX`` show variables."""
    total = EMPTY
    for name, value in script.process.environment().items():
        if name.upper().startswith(prefix.upper()):
            total = total + Value.literal(f"{name}=") + value + Value.literal("\n")
    script.emit(total, node.start, node.end)


def _call(script: Expansion, node: Simple, offset: int, end: int) -> None:
    words = list(script.words_of(offset, end))
    if not words:
        return
    name = words[0].value.constant or ""
    if name.startswith(":"):
        target = script.labels.get(name[1:].lower())
        if target is not None and script.depth < _MAX_CALLS:
            script.within(lambda: script.run_lines(target), [word.value for word in words[1:]])
        return
    path = name.replace("\\", "/")
    for ending in ("", ".bat", ".cmd"):
        if script.run_script(path + ending, words[1:], returns=True):
            return
    if name.lower() == "set":
        again = next((word.start for word in words[1:2]), end)
        _set(script, node, again, end)
        return
    script.start(node, words)


def _start(script: Expansion, node: Simple, offset: int, end: int) -> None:
    """``start "title" /b program …``."""
    words = list(script.words_of(offset, end))
    if words and script.text[words[0].start] == '"':
        words.pop(0)
    while words and (words[0].value.constant or "").startswith("/"):
        words.pop(0)
    script.start(node, words)


def _exit(script: Expansion, _node: Simple, _offset: int, _end: int) -> None:
    script.ends.append(script.process.save())
    script.live = False


def _goto(script: Expansion, _node: Simple, offset: int, end: int) -> None:
    name = (script.expanded(offset, end).constant or "").strip().lstrip(":").lower()
    target = script.labels.get(name.split(" ")[0])
    if target is not None and name != "eof" and script.depth < _MAX_JUMPS:
        script.depth += 1
        script.run_lines(target)
        script.depth -= 1
    if script.live:
        script.ends.append(script.process.save())
    script.live = False


def _shift(script: Expansion, _node: Simple, _offset: int, _end: int) -> None:
    script.arguments = script.arguments[1:]


def _directory(script: Expansion, node: Simple, offset: int, end: int) -> None:
    words = [word for word in script.words_of(offset, end) if not (word.value.constant or "").startswith("/")]
    if words:
        script.process.change_directory(mapped(words[0].value, lambda piece: piece.replace("\\", "/")))
    else:
        script.emit(UNKNOWN, node.start, node.end)


def _type(script: Expansion, node: Simple, offset: int, end: int) -> None:
    for word in script.words_of(offset, end):
        path = mapped(word.value, lambda piece: piece.replace("\\", "/"))
        script.emit(script.process.read_file(path), node.start, node.end)


def _copy(script: Expansion, node: Simple, offset: int, end: int) -> None:
    words = [word.value for word in script.words_of(offset, end) if not (word.value.constant or "").startswith("/")]
    if len(words) == 2:
        content = script.process.read_file(words[0])
        script.process.write_file(words[1], content, append=False, start=node.start, end=node.end)


def _delete(script: Expansion, _node: Simple, offset: int, end: int) -> None:
    for word in script.words_of(offset, end):
        script.process.remove_file(word.value)


def _nothing(_script: Expansion, _node: Simple, _offset: int, _end: int) -> None:
    return


BUILTINS: Mapping[str, Callable[[Expansion, Simple, int, int], None]] = {
    "echo": _echo,
    "set": _set,
    "call": _call,
    "start": _start,
    "exit": _exit,
    "goto": _goto,
    "shift": _shift,
    **dict.fromkeys(("cd", "chdir", "pushd"), _directory),
    "type": _type,
    **dict.fromkeys(("copy", "move"), _copy),
    **dict.fromkeys(("del", "erase"), _delete),
    **dict.fromkeys(
        (
            *(
                "setlocal",
                "endlocal",
                "popd",
                "pause",
                "title",
                "ver",
                "verify",
                "vol",
                "cls",
                "color",
                "prompt",
                "assoc",
            ),
            *("md", "mkdir", "rd", "rmdir", "ren", "rename", "path", "break", "dir", "date", "time", "mklink", "ftype"),
        ),
        _nothing,
    ),
}
"""Name -> what it does, given the script, the command, and the text after its name."""
