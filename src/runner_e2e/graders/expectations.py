"""Reads what a case expects, ``runner-e2e.expectations/v1``: a JSON file that a user writes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeGuard

from runner_e2e.errors import ConfigurationError, Place, Problem, why_unread
from runner_e2e.graders.json_path import JsonPathError, parse_json_path
from runner_e2e.graders.matchers import (
    ArtifactMatcher,
    FileMatcher,
    How,
    JsonMatcher,
    Matcher,
    MessageMatcher,
    OrderMatcher,
    SchemaMatcher,
    StatusMatcher,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["SCHEMA", "expectations_of", "read_expectations"]

_FIX: Final = "write a JSON object in UTF-8"

SCHEMA: Final = "runner-e2e.expectations/v1"
_HOWS: Final[tuple[How, ...]] = ("exact", "contains", "regex")
_LONGEST_PATTERN: Final = 10_000


class _WrongError(Exception):
    """An expectation is wrong; the text says what, and *fix* what to write."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.fix = fix


def read_expectations(path: Path) -> tuple[Matcher, ...]:
    """Reads a file of expectations. Raises :class:`ConfigurationError` with every mistake in it."""
    place = Place(path=str(path))
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            "the expectations cannot be read", why=error.strerror or str(error), fix="give a readable file", place=place
        ) from error
    except json.JSONDecodeError as error:
        place = Place(path=str(path), line=error.lineno, column=error.colno)
        raise ConfigurationError("the expectations are not JSON", why=error.msg, fix=_FIX, place=place) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            "the expectations cannot be read", why=why_unread(error), fix=_FIX, place=place
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("the expectations are not JSON", why=str(error), fix=_FIX, place=place) from error
    return expectations_of(document, path=str(path))


def expectations_of(document: object, *, path: str) -> tuple[Matcher, ...]:
    """The matchers in a document. Raises :class:`ConfigurationError` with every mistake in it."""
    place = Place(path=path)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ConfigurationError(
            "these are no expectations",
            why=f"the schema is not {SCHEMA}",
            fix=f'write "schema": "{SCHEMA}"',
            place=place,
        )
    entries = document.get("expect")
    if not isinstance(entries, list) or not entries or document.keys() - {"schema", "expect"}:
        raise ConfigurationError(
            "there is nothing to expect", fix='write a list "expect", and nothing beside it', place=place
        )
    matchers: list[Matcher] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries):
        try:
            matchers.append(_matcher(entry))
        except _WrongError as error:
            problems.append(Problem(what=f"expect[{number}]: {error}", fix=error.fix, place=place))
    if problems:
        raise ConfigurationError.of(tuple(problems))
    return tuple(matchers)


def _matcher(entry: object) -> Matcher:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise _WrongError("not an object with one name", f"name one of: {', '.join(_READERS)}")
    ((name, value),) = entry.items()
    if name == "status":
        if not _is_count(value):
            raise _WrongError("a status is a number from 0 to 255")
        return StatusMatcher(status=value)
    reader = _READERS.get(name)
    if reader is None or not isinstance(value, dict):
        raise _WrongError(f"{name!r} is no kind of expectation", f"name one of: {', '.join(_READERS)}")
    return reader(value)


def _message(value: Mapping[str, object]) -> Matcher:
    _only(value, *_HOWS, "least", "most")
    how, text = _how(value)
    least, most = _amounts(value)
    return MessageMatcher(how=how, text=text, least=least, most=most)


def _order(value: Mapping[str, object]) -> Matcher:
    _only(value, "texts")
    texts = value.get("texts")
    if not isinstance(texts, list) or len(texts) < 2 or not all(isinstance(text, str) and text for text in texts):
        raise _WrongError("texts is not a list of two or more texts")
    return OrderMatcher(texts=tuple(texts))


def _file(value: Mapping[str, object]) -> Matcher:
    _only(value, "path", "exists", *_HOWS)
    path = _path(value)
    exists = value.get("exists")
    if exists is not None:
        _only(value, "path", "exists")
        if not isinstance(exists, bool):
            raise _WrongError("exists is neither true nor false")
        return FileMatcher(path=path, absent=not exists)
    how, text = _how(value)
    return FileMatcher(path=path, how=how, text=text)


def _artifact(value: Mapping[str, object]) -> Matcher:
    _only(value, "name", "least", "most", "smallest")
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise _WrongError("an artifact has a name, which may be a glob like reports/*.json")
    least, most = _amounts(value)
    return ArtifactMatcher(name=name, least=least, most=most, smallest=_count(value, "smallest", 1))


def _json(value: Mapping[str, object]) -> Matcher:
    _only(value, "file", "path", "equals", "least", "most")
    file, expression = _path(value, "file"), value.get("path")
    if not isinstance(expression, str):
        raise _WrongError("path is not a JSONPath", "write, for example, $.answers[0].text")
    try:
        select = parse_json_path(expression)
    except JsonPathError as error:
        raise _WrongError(f"the JSONPath {expression!r} is wrong: {error}") from None
    least, most = _amounts(value)
    if "equals" in value:
        return JsonMatcher(path=file, select=select, equals=value["equals"], least=least, most=most)
    return JsonMatcher(path=file, select=select, least=least, most=most)


def _schema(value: Mapping[str, object]) -> Matcher:
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    _only(value, "file", "schema")
    schema = value.get("schema")
    if not isinstance(schema, dict):
        raise _WrongError("schema is not a JSON Schema")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        raise _WrongError(f"the JSON Schema is wrong: {error.message}") from None
    return SchemaMatcher(path=_path(value, "file"), schema=schema)


_READERS: Final[Mapping[str, Callable[[Mapping[str, object]], Matcher]]] = {
    "message": _message,
    "order": _order,
    "file": _file,
    "artifact": _artifact,
    "json": _json,
    "json-schema": _schema,
}


def _only(value: Mapping[str, object], *names: str) -> None:
    unknown = sorted(value.keys() - set(names))
    if unknown:
        raise _WrongError(f"{', '.join(unknown)} has no meaning here", f"known are: {', '.join(names)}")


def _how(value: Mapping[str, object]) -> tuple[How, str]:
    chosen = [how for how in _HOWS if how in value]
    if len(chosen) != 1:
        raise _WrongError("it is not said how to compare", "write one of: exact, contains, regex")
    how, text = chosen[0], value[chosen[0]]
    if not isinstance(text, str) or (not text and how != "exact"):
        raise _WrongError(f"{how} is not a text")
    if how == "regex":
        if len(text) > _LONGEST_PATTERN:
            raise _WrongError(f"the regular expression is longer than {_LONGEST_PATTERN:,} characters")
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise _WrongError(f"the regular expression is wrong: {error}") from None
    return how, text


def _path(value: Mapping[str, object], name: str = "path") -> str:
    path = value.get(name)
    parts = path.split("/") if isinstance(path, str) else [""]
    if not isinstance(path, str) or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise _WrongError(f"{name} is not a path below the workspace", "write it relative, without . and ..")
    return path


def _amounts(value: Mapping[str, object]) -> tuple[int, int | None]:
    least = _count(value, "least", 0 if "most" in value else 1)
    most = None if value.get("most") is None else _count(value, "most", 0)
    if most is not None and most < least:
        raise _WrongError(f"most ({most}) is less than least ({least})")
    return least, most


def _count(value: Mapping[str, object], name: str, default: int) -> int:
    number = value.get(name, default)
    if not _is_count(number):
        raise _WrongError(f"{name} is not a number from 0")
    return number


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
