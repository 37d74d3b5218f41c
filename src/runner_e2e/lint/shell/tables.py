"""The tables of commands, as data (``lint/data/*.json``)."""

from __future__ import annotations

from functools import cache
from typing import Any

from runner_e2e.lint.package_data import load_table
from runner_e2e.lint.records import dataclass

__all__ = ["Wrapper", "advice", "builtins", "output_of", "wrapper"]


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """A program that executes its operands.

    *values*: options that take the next argument. *operands*: arguments before the command. *assignments*:
    ``NAME=value`` arguments before it. *environment*: ``keep``, ``reset`` (but for the options in *keep*), or
    ``env``. *script*: options whose value a shell runs. *joined*: a shell runs all operands as one text.
    *after*: the argument that the command follows.
    """

    values: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False
    environment: str = "keep"
    keep: frozenset[str] = frozenset()
    script: frozenset[str] = frozenset()
    joined: bool = False
    after: str = ""


@cache
def _table(name: str) -> dict[str, Any]:
    return load_table(name)


@cache
def builtins(shell: str) -> frozenset[str]:
    """The builtins of ``bash`` or ``sh`` (dash)."""
    return frozenset(_table("builtins")[shell])


@cache
def wrapper(program: str) -> Wrapper | None:
    """How *program* executes its operands, None when it does not."""
    row = _table("wrappers").get(program)
    if row is None:
        return None
    return Wrapper(
        values=frozenset(row.get("values", ())),
        operands=int(row.get("operands", 0)),
        assignments=bool(row.get("assignments", False)),
        environment=str(row.get("environment", "keep")),
        keep=frozenset(row.get("keep", ())),
        script=frozenset(row.get("script", ())),
        joined=bool(row.get("joined", False)),
        after=str(row.get("after", "")),
    )


def output_of(program: str) -> str:
    """What standard output of *program* carries.

    ``carry``: its input and the files it names. ``encode``: those, encoded. ``operands``: its arguments. ``names``:
    names of files. ``none``: nothing. Empty: the program is not known.
    """
    return str(_table("output").get(program, ""))


def advice(program: str) -> str:
    """What to write instead of a labelled argument of *program*."""
    table = _table("advice")
    return str(table.get(program) or table.get(program.rsplit("/", 1)[-1]) or "environment")
