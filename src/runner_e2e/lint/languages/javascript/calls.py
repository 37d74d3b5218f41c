"""A call as a built-in function sees it: the object, the arguments, and the place in the program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.values import UNDEFINED, Js, Thing, either, text_of

if TYPE_CHECKING:
    from runner_e2e.lint.languages.javascript.machine import Machine
    from runner_e2e.lint.values import Value

__all__ = ["Call", "Passed"]


@dataclass(frozen=True, slots=True)
class Passed:
    """An argument and where it stands; *many*: any number of them (a spread of unknown length)."""

    value: Js
    start: int
    end: int
    many: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The call at ``[start, end)`` of the program that *machine* runs; *name* is the callee as written."""

    machine: Machine
    this: Js
    arguments: tuple[Passed, ...]
    start: int
    end: int
    name: str = ""

    def passed(self, index: int) -> Passed:
        """The argument at *index*; ``undefined`` where none is given."""
        for position, one in enumerate(self.arguments):
            if one.many:
                rest = either([UNDEFINED, *(other.value for other in self.arguments[position:])])
                return Passed(rest, one.start, one.end)
            if position == index:
                return one
        return Passed(UNDEFINED, self.start, self.end)

    def arg(self, index: int) -> Js:
        """The value of the argument at *index*."""
        return self.passed(index).value

    def text(self, index: int) -> Value:
        """The argument at *index* as a text."""
        return text_of(self.arg(index))

    def number(self, index: int) -> float | None:
        """The argument at *index*, when it is a known number."""
        return self.arg(index).number

    def given(self, index: int) -> bool:
        """Whether an argument at *index* may be given."""
        return index < len(self.arguments) or any(one.many for one in self.arguments)

    @property
    def thing(self) -> Thing | None:
        """The object whose method is called, when it is one."""
        return self.this.thing

    def thing_at(self, index: int) -> Thing | None:
        """The argument at *index*, when it is an object."""
        return self.arg(index).thing

    def with_arguments(self, *values: Js) -> Call:
        """The same call with other arguments, which stand where the call does."""
        return replace(self, arguments=tuple(Passed(value, self.start, self.end) for value in values))
