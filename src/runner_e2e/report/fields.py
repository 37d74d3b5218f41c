"""Reads JSON that another program wrote: bounded, strict, and with the place of each mistake."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from runner_e2e.existence import is_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["Fields", "InvalidDocumentError", "parse_document", "read_document"]

_MAXIMUM_INTEGER: Final = 2**53 - 1
_MOST_DIGITS: Final = 1000  # far more than any double-precision number has
# Any escape of a JSON string, so that an escaped backslash is not taken for the beginning of another one.
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_Choice = TypeVar("_Choice", bound=str)


class InvalidDocumentError(Exception):
    """A document is missing, damaged or not of its schema. The text says which, in one sentence."""


def read_document(path: Path, *, limit: int) -> Fields:
    """Reads the JSON object in *path* without following a symlink or waiting for a FIFO's writer.

    *limit* is the most bytes that are read. Raises :class:`InvalidDocumentError`; :class:`FileNotFoundError` where
    there is no such file, so that callers can tell missing from damaged.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        kind = "a symbolic link or " if is_link(path) else ""
        raise InvalidDocumentError(f"is {kind}unreadable ({error.strerror})") from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise InvalidDocumentError(f"is {_kind(mode)}, not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise InvalidDocumentError(f"is unreadable ({error.strerror})") from error
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise InvalidDocumentError(f"is larger than {limit:,} bytes")
    return parse_document(content)


def parse_document(content: bytes) -> Fields:
    """Parses one JSON object (RFC 8259, UTF-8, no repeated names, no NaN).

    Half of a surrogate pair, which a program leaves that cuts a text inside an emoji, becomes a replacement character.
    """
    if not content.strip():
        raise InvalidDocumentError("is empty")
    try:
        text = _ESCAPE.sub(_whole, content.decode())
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise InvalidDocumentError(f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise InvalidDocumentError(f"is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InvalidDocumentError("is nested too deeply") from None
    except ValueError as error:
        raise InvalidDocumentError(f"is not acceptable JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidDocumentError("holds no JSON object")
    return Fields(value)


@dataclass(frozen=True)
class Fields:
    """A JSON object with typed access. Each getter raises :class:`InvalidDocumentError` naming the field."""

    values: Mapping[str, object]
    where: str = ""

    def _named(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def _get(self, name: str, *, optional: bool) -> object:
        value = self.values.get(name)
        if value is None and not optional:
            raise InvalidDocumentError(f"has no {self._named(name)}")
        return value

    def _wrong(self, name: str, wanted: str) -> InvalidDocumentError:
        return InvalidDocumentError(f"has a wrong {self._named(name)}: it is not {wanted}")

    def only(self, names: Iterable[str]) -> None:
        """Refuses fields beyond *names*."""
        if unknown := sorted(set(self.values) - set(names)):
            raise InvalidDocumentError(f"has the unknown field {self._named(unknown[0][:60])!r}")

    def text(self, name: str, *, limit: int = 65536) -> str:
        """A string of at most *limit* characters."""
        value = self._get(name, optional=False)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        if len(value) > limit:
            raise self._wrong(name, f"at most {limit:,} characters long")
        return value

    def optional_text(self, name: str, *, limit: int = 65536) -> str | None:
        """The same, or None where it is missing or null."""
        return None if self._get(name, optional=True) is None else self.text(name, limit=limit)

    def choice(self, name: str, choices: tuple[_Choice, ...]) -> _Choice:
        """One of *choices*."""
        value = self.text(name)
        for choice in choices:
            if value == choice:
                return choice
        raise self._wrong(name, f"one of {', '.join(choices)}")

    def flag(self, name: str) -> bool:
        """A boolean, not 0 or 1."""
        value = self._get(name, optional=False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def optional_count(self, name: str) -> int | None:
        """A whole number from 0 to 2^53-1, or None."""
        value = self._get(name, optional=True)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAXIMUM_INTEGER:
            raise self._wrong(name, "a whole number from 0 to 2^53-1")
        return value

    def count(self, name: str) -> int:
        """A whole number from 0 to 2^53-1."""
        value = self.optional_count(name)
        if value is None:
            raise InvalidDocumentError(f"has no {self._named(name)}")
        return value

    def optional_amount(self, name: str) -> float | None:
        """A finite number that is not negative, or None."""
        value = self._get(name, optional=True)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        try:
            amount = float(value)
        except OverflowError:
            amount = math.inf
        if not math.isfinite(amount) or amount < 0:
            raise self._wrong(name, "a finite number of at least 0")
        return amount

    def amount(self, name: str) -> float:
        """A finite number that is not negative."""
        value = self.optional_amount(name)
        if value is None:
            raise InvalidDocumentError(f"has no {self._named(name)}")
        return value

    def optional_object(self, name: str) -> Fields | None:
        """A JSON object, or None."""
        value = self._get(name, optional=True)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(value, self._named(name))

    def object(self, name: str) -> Fields:
        """A JSON object."""
        value = self.optional_object(name)
        if value is None:
            raise InvalidDocumentError(f"has no {self._named(name)}")
        return value

    def objects(self, name: str) -> tuple[Fields, ...]:
        """A list of JSON objects."""
        value = self._get(name, optional=False)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._wrong(name, "a list of objects")
        return tuple(Fields(item, f"{self._named(name)}[{index}]") for index, item in enumerate(value))


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["half"] else escape[0]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"the name {name[:60]!r} stands twice in one object")
        result[name] = value
    return result


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a whole number has {len(digits):,} digits")
    return int(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in kinds if test(mode)), "a device")
