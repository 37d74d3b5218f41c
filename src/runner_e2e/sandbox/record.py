"""Frozen keyword-only records, without the cost of :mod:`dataclasses`.

``dataclasses`` imports ``inspect``, ``ast`` and ``re``: more time than the rest of a launch under ``python3 -I -S``
together. To a type checker these records are frozen keyword-only dataclasses (PEP 681).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        """Says nothing at run time."""
        return lambda kind: kind


__all__ = ["Record"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of records: annotated names are fields, class values their defaults (which must be immutable)."""

    __fields__: tuple[str, ...] = ()
    __defaults__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.__fields__ = tuple(cls.__annotations__)
        cls.__defaults__ = {name: vars(cls)[name] for name in cls.__fields__ if name in vars(cls)}

    def __init__(self, **values: Any) -> None:
        found = {**self.__defaults__, **values}
        if len(found) != len(self.__fields__) or found.keys() - self.__fields__:
            self._refuse(values)
        self.__dict__.update(found)

    def _refuse(self, values: dict[str, Any]) -> None:
        missing = [name for name in self.__fields__ if name not in values and name not in self.__defaults__]
        if missing:
            raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}")
        raise TypeError(f"{type(self).__name__} has no {', '.join(values.keys() - self.__fields__)}")

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
