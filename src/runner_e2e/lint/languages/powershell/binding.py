"""How the words of a command become the parameters of a cmdlet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.languages.powershell.machine import Bound, Word
from runner_e2e.lint.languages.powershell.values import (
    Items,
    Ps,
    Table,
    elements,
    text_of,
)
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.languages.powershell.machine import Machine

__all__ = ["Call", "Model", "bound"]


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


_SWITCHES = frozenset(
    (
        *(
            "append",
            "force",
            "nonewline",
            "asplaintext",
            "wait",
            "passthru",
            "recurse",
            "raw",
            "compress",
            "usenewenvironment",
        ),
        *(
            "noclobber",
            "leaf",
            "parent",
            "resolve",
            "unique",
            "descending",
            "ascending",
            "noenumerate",
            "quiet",
            "verbose",
        ),
        *(
            "debug",
            "confirm",
            "whatif",
            "asjob",
            "simplematch",
            "allmatches",
            "notmatch",
            "stream",
            "nonewwindow",
            "ashashtable",
        ),
    )
)


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
            pending = name if word.value is None and name not in _SWITCHES and name not in model.switches else ""
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
    known = (*model.positions, *_SWITCHES, *model.switches, *_PARAMETERS)
    if name in known:
        return name
    return next((one for one in known if one.startswith(name)), name)


_PARAMETERS = (
    *(
        "filepath",
        "path",
        "literalpath",
        "value",
        "inputobject",
        "argumentlist",
        "scriptblock",
        "name",
        "workingdirectory",
    ),
    *("object", "message", "encoding", "variable", "property", "pattern", "separator", "childpath", "credential"),
    *("redirectstandardinput", "environment", "uri", "method", "body", "headers", "outfile", "itemtype", "erroraction"),
)
