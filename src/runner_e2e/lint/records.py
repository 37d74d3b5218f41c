"""Dataclasses that cost little: a lint makes hundreds of thousands of values, of more than a hundred classes.

A frozen dataclass is made four times slower than another one, since it gets past its own guard field by field, and so
is its class. Here the type checker is the guard: to it this is :func:`dataclasses.dataclass`, so assigning to a field
is an error of ``mypy``. While the program runs, nothing is there that would refuse it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
    from typing import Any

__all__ = ["dataclass"]


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
