"""Dataclasses and their properties that cost little: a lint makes hundreds of thousands of values.

A frozen dataclass is made four times slower than another one, since it gets past its own guard field by field, and so
is its class. Here the type checker is the guard: to it this is :func:`dataclasses.dataclass`, so assigning to a field
is an error of ``mypy``. While the program runs, nothing is there that would refuse it.

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

    def dataclass(*, frozen: bool = False, eq: bool = True, **options: Any) -> Callable[[type], type]:
        """As :func:`dataclasses.dataclass`, with values that are equal and hashed by their fields if *frozen*."""
        shown = options.pop("repr", True)

        def made(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be the signature, which takes time to find out
            hashed = frozen and eq and "__hash__" not in vars(cls)
            record = dataclasses.dataclass(cls, eq=eq, repr=False, unsafe_hash=hashed, **options)
            if shown:
                record.__repr__ = _shown
            return record

        return made


def _shown(record: Any) -> str:
    shown = (f"{one.name}={getattr(record, one.name)!r}" for one in dataclasses.fields(record) if one.repr)
    return f"{type(record).__qualname__}({', '.join(shown)})"
