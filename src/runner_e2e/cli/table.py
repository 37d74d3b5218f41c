"""Prints tables: drawn on a terminal; elsewhere aligned columns that are never cut, fit for other programs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Column", "print_table"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column. *styles* maps a text to the rich style that it is shown in, "" to that of all others.

    What is *whole* is never broken over lines, so that it can be copied.
    """

    title: str
    right: bool = False
    whole: bool = False
    styles: Mapping[str, str] | None = None


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Prints *rows* to standard output; columns that are empty in every row are left out."""
    kept = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    columns = [columns[index] for index in kept]
    rows = [[row[index] for index in kept] for row in rows]
    if sys.stdout.isatty():
        _print_drawn(columns, rows)
        return
    widths = [max(len(column.title), *(len(row[i]) for row in rows)) for i, column in enumerate(columns)]
    for row in [[column.title.upper() for column in columns], *rows]:
        padded = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(row, widths, columns, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _print_drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    console = Console()
    for index, column in enumerate(columns):
        words = [
            column.title,
            *(word for row in rows for word in ([row[index]] if column.whole else row[index].split())),
        ]
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(
            column.title, justify=justify, overflow="fold", no_wrap=column.whole, min_width=max(map(len, words))
        )
    for row in rows:
        styled = []
        for text, column in zip(row, columns, strict=True):
            styles = column.styles or {}
            styled.append(Text(text, style=styles.get(text, styles.get("", ""))))
        table.add_row(*styled)
    # Rich would break words where the terminal is narrow; then the terminal wraps the line instead.
    console.print(table, width=max(console.width, console.measure(table).minimum), crop=False, soft_wrap=True)
