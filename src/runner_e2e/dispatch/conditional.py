"""Reads that cost nothing where nothing changed: the answer is remembered with its ETag, and asked for by it.

GitHub does not count an answer of 304 (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
What is remembered can be a *shape* of the answer, since a page of runs has megabytes of which a client reads little.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from runner_e2e.dispatch.github_api import objects_of
from runner_e2e.dispatch.ledger_records import Remembered
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["WHOLE", "AnswerStore", "ConditionalReader", "Listing", "MemoryAnswers", "Reading", "Shape"]

_PAGE: Final = 100


class AnswerStore(Protocol):
    """Where answers are remembered: the ledger."""

    def remembered(self, key: str) -> Remembered | None:
        """What was remembered under *key*, None for nothing."""

    def remember(self, key: str, etag: str, body: str) -> None:
        """Remembers an answer in place of the last one."""


@dataclass
class MemoryAnswers:
    """A store for one process and its lifetime."""

    answers: dict[str, Remembered] = field(default_factory=dict)

    def remembered(self, key: str) -> Remembered | None:
        """As :class:`AnswerStore` says."""
        return self.answers.get(key)

    def remember(self, key: str, etag: str, body: str) -> None:
        """As :class:`AnswerStore` says."""
        self.answers[key] = Remembered(etag=etag, body=body)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is kept of an answer. *name* changes with what *of* does: answers of the old shape are not used then.

    *of* turns the JSON of an answer into JSON, and raises :class:`~runner_e2e.errors.GitHubError` for another form.
    """

    name: str
    of: Callable[[object], object]


WHOLE: Final = Shape(name="", of=lambda data: data)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One answer. *changed* is false where it is the one that was remembered."""

    data: object
    status: int
    changed: bool


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A whole list. *changed* is false where every page is the one that was remembered."""

    items: tuple[dict[str, object], ...]
    changed: bool


class ConditionalReader:
    """Reads of one repository by *api*, remembered in *store*."""

    def __init__(self, api: GitHubApi, store: AnswerStore) -> None:
        self.api = api
        self._store = store

    def get(
        self,
        path: str,
        parameters: Mapping[str, str | int] | None = None,
        *,
        accept: Collection[int] = (),
        shape: Shape = WHOLE,
    ) -> Reading:
        """Reads *path* as :meth:`GitHubApi.get` does, and raises what that raises.

        An answer whose status is in *accept* is handed out as it is: *data* has no shape, and is not remembered.
        """
        key = self._key(path, parameters, shape)
        known = self._store.remembered(key)
        before = _data_of(known)
        answer = self.api.get(path, parameters, accept=accept, etag=known.etag if known and before else "")
        if answer.status == 304 and before:
            return Reading(data=before[0], status=200, changed=False)
        if answer.status == 304:
            raise GitHubError(
                f"GitHub's API answered GET {answer.path} with 304 to a question without a condition",
                why="a cache stands between",
                fix="try again",
            )
        if answer.status != 200:
            return Reading(data=answer.data, status=answer.status, changed=True)
        data = shape.of(answer.data)
        if answer.etag:
            self._store.remember(key, answer.etag, json.dumps(data, separators=(",", ":")))
        return Reading(data=data, status=200, changed=not before or before[0] != data)

    def pages(
        self,
        path: str,
        key: str,
        parameters: Mapping[str, str | int] | None = None,
        *,
        most: int = 10,
        item: Shape = WHOLE,
    ) -> Listing:
        """A list over at most *most* pages of 100, as :meth:`GitHubApi.pages` reads it; *item* shapes each object.

        Each page has a condition of its own. Where the list changes between two pages, an object can come twice, and
        is handed out once, by its ``id``. Raises :class:`~runner_e2e.errors.GitHubError`.
        """
        shape = Shape(
            name=f"{key}/{item.name}", of=lambda data: [item.of(each) for each in objects_of(data, key, path)]
        )
        found: list[dict[str, object]] = []
        changed, before = False, None
        for page in range(1, most + 1):
            reading = self.get(path, {**(parameters or {}), "per_page": _PAGE, "page": page}, shape=shape)
            changed |= reading.changed
            items = objects_of(reading.data, "", path)
            if items == before:
                break
            found += items
            if len(items) != _PAGE:
                break
            before = items
        return Listing(items=_once(found), changed=changed)

    def _key(self, path: str, parameters: Mapping[str, str | int] | None, shape: Shape) -> str:
        named = [self.api.url, self.api.repository, path, sorted((parameters or {}).items()), shape.name]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]


def _data_of(known: Remembered | None) -> tuple[object] | None:
    """The remembered data; None where there is none, or it is damaged: then it is asked for anew."""
    if known is None or not known.etag:
        return None
    try:
        return (json.loads(known.body),)
    except (ValueError, RecursionError):
        return None


def _once(items: list[dict[str, object]]) -> tuple[dict[str, object], ...]:
    """Each object once, in the place and state in which it came first."""
    found: dict[object, dict[str, object]] = {}
    for number, item in enumerate(items):
        found.setdefault(item.get("id", ("", number)), item)
    return tuple(found.values())
