"""Frozen keyword-only records, without the cost of :mod:`dataclasses`.

``dataclasses`` imports ``inspect``, ``ast`` and ``re``: more time than the rest of a launch under ``python3 -I -S``
together. To a type checker these records are frozen keyword-only dataclasses (PEP 681).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        """Says nothing at run time."""
        return lambda kind: kind


__all__ = ["Record"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of records: annotated names are fields, class values their defaults (which must be immutable)."""

    __fields__: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.__fields__ = tuple(cls.__annotations__)

    def __init__(self, **values: Any) -> None:
        for name in self.__fields__:
            if name in values:
                object.__setattr__(self, name, values.pop(name))
            elif not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs {name}")
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be removed")

    def values(self) -> dict[str, Any]:
        """The fields in their order."""
        return {name: getattr(self, name) for name in self.__fields__}

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.values(), **changes})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash((type(self), *self.values().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"
