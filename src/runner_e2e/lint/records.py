"""Dataclasses and their properties that cost little: a lint makes hundreds of thousands of values.

A frozen dataclass is made four times slower than another one, since it gets past its own guard field by field, and so
is its class. Here the type checker is the guard: to it this is :func:`dataclasses.dataclass`, so assigning to a field
is an error of ``mypy``. While the program runs, nothing is there that would refuse it.

The methods of a class are written when the first of them is called: most runs need few of the classes that are loaded,
and to compile the methods of all of them takes as long as to lint fifty files.

``cached_property`` is that of Python 3.12, without the lock that 3.11 takes: no threads share values.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - it stands for the one of functools
        """As :class:`functools.cached_property`."""

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self.make = make
            self.name = make.__name__
            self.__doc__ = make.__doc__

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.make(instance)
            return value


if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
    from typing import Any

__all__ = ["cached_property", "dataclass"]


if not TYPE_CHECKING:

    def dataclass(
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,  # noqa: A002 - as there
        kw_only: bool = False,
        slots: bool = False,
    ) -> Callable[[type], type]:
        """As :func:`dataclasses.dataclass`, with values that are equal and hashed by their fields if *frozen*."""

        def made(cls: type) -> type:
            if hasattr(cls, "__post_init__"):
                raise TypeError(f"{cls.__qualname__}.__post_init__ would not be called: make it a function")
            cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be the signature, which takes time to find out
            own = vars(cls)
            record = dataclasses.dataclass(cls, init=False, eq=False, repr=False, kw_only=kw_only, slots=slots)
            _write_later(record, "__init__", _initializer)
            if eq and "__eq__" not in own:
                _write_later(record, "__eq__", _equality)
            if eq and "__hash__" not in own:
                if frozen:
                    _write_later(record, "__hash__", _hashing)
                else:
                    record.__hash__ = None
            if repr:
                record.__repr__ = _shown
            return record

        return made


def _write_later(cls: type, name: str, write: Callable[[type], str]) -> None:
    """Gives *cls* a method that, when it is called first, puts the one whose text *write* gives in its place."""

    def first(*arguments: Any, **named: Any) -> Any:
        scope: dict[str, Any] = {"_absent": _ABSENT}
        for one in dataclasses.fields(cls):
            scope[f"_default_{one.name}"] = one.default
            scope[f"_make_{one.name}"] = one.default_factory
        exec(write(cls), scope)  # noqa: S102 - as dataclasses does
        written = scope[name]
        written.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, written)
        return written(*arguments, **named)

    setattr(cls, name, first)


_ABSENT = object()


def _initializer(cls: type) -> str:
    """``__init__``: every field is a parameter."""
    fields = dataclasses.fields(cls)
    positional = [_parameter(one) for one in fields if not one.kw_only]
    named = [_parameter(one) for one in fields if one.kw_only]
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    return f"def __init__({parameters}):\n " + "\n ".join(map(_assignment, fields) if fields else ["pass"])


def _parameter(one: dataclasses.Field[Any]) -> str:
    if one.default is not dataclasses.MISSING:
        return f"{one.name}=_default_{one.name}"
    return one.name if one.default_factory is dataclasses.MISSING else f"{one.name}=_absent"


def _assignment(one: dataclasses.Field[Any]) -> str:
    if one.default_factory is dataclasses.MISSING:
        return f"self.{one.name} = {one.name}"
    return f"self.{one.name} = _make_{one.name}() if {one.name} is _absent else {one.name}"


def _equality(cls: type) -> str:
    """``__eq__``: of one class, with equal fields."""
    ours, others = _compared(cls, "self"), _compared(cls, "other")
    return (
        f"def __eq__(self, other):\n return {ours} == {others} if other.__class__ is self.__class__ else NotImplemented"
    )


def _hashing(cls: type) -> str:
    """``__hash__``: that of the fields."""
    return f"def __hash__(self):\n return hash({_compared(cls, 'self')})"


def _compared(cls: type, name: str) -> str:
    """The text of a tuple of what counts of the record that *name* stands for."""
    return "(" + "".join(f"{name}.{one.name}, " for one in dataclasses.fields(cls) if one.compare) + ")"


def _shown(record: Any) -> str:
    shown = (f"{one.name}={getattr(record, one.name)!r}" for one in dataclasses.fields(record) if one.repr)
    return f"{type(record).__qualname__}({', '.join(shown)})"
