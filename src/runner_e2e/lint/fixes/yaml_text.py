"""Data as the text that stands for them in a YAML file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.errors import ConfigurationError
from runner_e2e.yaml_positions import Mapping, Scalar, compose

if TYPE_CHECKING:
    import collections.abc

__all__ = ["Data", "block_lines", "double_quoted", "flow_text", "is_plain", "scalar_text"]

Data: TypeAlias = "str | bool | int | collections.abc.Mapping[str, Data]"
"""What a new entry may hold."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x85": "\\N", "\ufeff": "\\uFEFF"}


def is_plain(text: str, *, flow: bool) -> bool:
    """Whether a value that is *text* may stand without quotes."""
    if not text or text != text.strip() or "\n" in text or "\r" in text:
        return False
    try:
        root = compose(f"{{k: {text}}}" if flow else f"k: {text}", path="")
    except ConfigurationError:
        return False
    if not isinstance(root, Mapping) or len(root.pairs) != 1:
        return False
    found = root.pairs[0][1]
    return isinstance(found, Scalar) and not found.style and found.data == text and found.tag is found.anchor is None


def double_quoted(text: str) -> str:
    """*text* as a double-quoted scalar, without the quotes around it."""
    return "".join(_ESCAPES.get(character) or _printable(character) for character in text)


def _printable(character: str) -> str:
    code = ord(character)
    if character == " " or (character.isprintable() and code not in {0x2028, 0x2029}):
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def scalar_text(value: str | bool | int, *, flow: bool) -> str:
    """*value* as a scalar: without quotes where they are not needed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if is_plain(value, flow=flow) else f'"{double_quoted(value)}"'


def _key(name: str) -> str:
    return name if _KEY.fullmatch(name) else f'"{double_quoted(name)}"'


def flow_text(value: Data) -> str:
    """*value* in one line: ``{key: value}`` for a mapping."""
    if isinstance(value, str | int):
        return scalar_text(value, flow=True)
    return "{" + ", ".join(f"{_key(name)}: {flow_text(item)}" for name, item in value.items()) + "}"


def block_lines(name: str, value: Data, *, indent: int) -> list[str]:
    """The lines of a block entry *name*, the first without indentation, inner ones *indent* columns deeper each."""
    if isinstance(value, str | int):
        return [f"{_key(name)}: {scalar_text(value, flow=False)}"]
    if not value:
        return [f"{_key(name)}: {{}}"]
    inner = [line for key, item in value.items() for line in block_lines(key, item, indent=indent)]
    return [f"{_key(name)}:", *(" " * indent + line for line in inner)]
