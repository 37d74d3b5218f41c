"""How the words of a command become the parameters of a cmdlet."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages.powershell.machine import Bound, Word
from runner_e2e.lint.languages.powershell.values import (
    Items,
    Ps,
    Table,
    elements,
    text_of,
)
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner_e2e.lint.languages.powershell.machine import Machine

__all__ = ["NAMES", "Call", "Model", "bound"]


@dataclass(frozen=True, slots=True)
class Call:
    """A cmdlet that runs: its words by parameter, all of them, and its place."""

    machine: Machine
    bound: Bound
    words: Sequence[Word]
    start: int
    end: int

    @property
    def input(self) -> list[Ps]:
        """What the pipeline gives."""
        return self.bound.given if self.bound.given is not None else []

    def text(self, *names: str) -> Value | None:
        """The text of a parameter."""
        value = self.bound.get(*names)
        return text_of(value) if value is not None else None

    def emit(self, value: Ps) -> None:
        """Gives *value* to what comes next."""
        self.machine.emit(value, self.start, self.end)


_Run: TypeAlias = Callable[[Call], None]


@dataclass(frozen=True, slots=True)
class Model:
    """A cmdlet: what it does, its parameters in the order of their positions, its switches."""

    run: _Run
    positions: tuple[str, ...] = ()
    switches: frozenset[str] = frozenset()
    rest: bool = False
    """Whether all words without a parameter belong to the first position (``Write-Host a b``)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Cmdlets that do nothing of interest, or give what is not known; other names; parameters and switches."""

    nothing: tuple[str, ...]
    unknown: tuple[str, ...]
    aliases: Mapping[str, str]
    switches: frozenset[str]
    parameters: tuple[str, ...]


def _names() -> Names:
    text = files("runner_e2e.lint").joinpath("data", "cmdlets.json").read_text("utf-8")
    table = json.loads(text)
    return Names(
        nothing=tuple(table["nothing"]),
        unknown=tuple(table["unknown"]),
        aliases=table["aliases"],
        switches=frozenset(table["switches"]),
        parameters=tuple(table["parameters"]),
    )


NAMES = _names()
"""What ``lint/data/cmdlets.json`` holds, all in lower case."""


def bound(words: Sequence[Word], model: Model, given: list[Ps] | None) -> Bound:
    """Gives the words to the parameters of a cmdlet."""
    found = Bound(given=given)
    pending = ""
    plain: list[Word] = []
    for word in words:
        if word.splat and isinstance(word.value, Table):
            for name, value in word.value.entries:
                found.named[name] = Word(value, word.start, word.end, name)
        elif word.parameter:
            name = _full_name(word.parameter.lower(), model)
            found.named[name] = word
            pending = name if word.value is None and name not in NAMES.switches and name not in model.switches else ""
        elif pending:
            found.named[pending] = replace(word, parameter=pending)
            pending = ""
        else:
            plain.append(word)
    free = [name for name in model.positions if name not in found.named]
    for word in plain:
        if model.rest and free:
            first = found.named.get(free[0])
            both = word.value if first is None else _both(first.value, word.value)
            start = word.start if first is None else first.start
            found.named[free[0]] = Word(both, start, word.end, free[0])
        elif free:
            found.named[free.pop(0)] = word
        else:
            found.rest.append(word)
    return found


def _both(left: Ps | None, right: Ps | None) -> Ps:
    one, other = left if left is not None else EMPTY, right if right is not None else EMPTY
    items, others = elements(one)
    more, rest = elements(other)
    return Items((*items, *more), others if rest is None else rest if others is None else others | rest)


def _full_name(name: str, model: Model) -> str:
    known = (*model.positions, *NAMES.switches, *model.switches, *NAMES.parameters)
    if name in known:
        return name
    return next((one for one in known if one.startswith(name)), name)
