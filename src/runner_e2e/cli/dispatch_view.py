"""What a person sees of a campaign: a view drawn from a snapshot and the size of the terminal, and nothing else.

Every state is a word, so that nothing is lost without colours. What does not fit is left out from the right, and of
many shards those are shown that something happens to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from runner_e2e.cli.run_reporting import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from runner_e2e.dispatch.shard_states import State

__all__ = [
    "FINAL",
    "Calls",
    "Pause",
    "ShardLine",
    "Snapshot",
    "amount",
    "cells_text",
    "money_text",
    "render",
    "runs_text",
    "wrapped",
]

FINAL: Final = frozenset({"settled", "unpaid", "cancelled"})
"""States after which nothing happens to a shard unless a person says so."""

_STYLES: Final = {
    "planned": "dim",
    "reserved": "dim",
    "sending": "cyan",
    "sent": "cyan",
    "unknown": "yellow",
    "running": "bold cyan",
    "ended": "cyan",
    "settled": "green",
    "unpaid": "yellow",
    "stuck": "bold red",
    "cancelled": "dim",
}
_VERDICTS: Final = (("passed", "green"), ("failed", "red"), ("other", "yellow"))
# States that are told of beside those that are done.
_NAMED: Final = ("running", "sent", "unknown", "stuck", "unpaid", "cancelled")
# Of many shards the first of these are shown.
_ATTENTION: Final = ("stuck", "unknown", "unpaid", "running", "ended", "sent", "sending", "reserved", "planned")
_NARROW, _MEDIUM, _WIDE = 50, 64, 78
_BAR = 24
_LEAST_ROWS = 3
# The longest name of a meter, and a blank.
_LABEL = 7
# What is said of shards that need a person: of so many, in so many lines each.
_MOST_TOLD, _MOST_LINES = 3, 3


@dataclass(frozen=True, kw_only=True)
class ShardLine:
    """One shard. Money is in micro-dollars: *charged* is None until it is settled, *kept* stays reserved for cells of
    unknown cost. *other* counts cells that ended without a verdict. *run* is the run's id and *address* its page.
    """

    index: int
    state: State
    cells: int
    passed: int = 0
    failed: int = 0
    other: int = 0
    reserved: int = 0
    charged: int | None = None
    kept: int = 0
    run: int | None = None
    address: str = ""
    note: str = ""

    @property
    def held(self) -> int:
        """What of it is reserved now."""
        if self.state in {"planned", "unpaid", "cancelled"}:
            return 0
        return self.kept if self.state == "settled" else self.reserved


@dataclass(frozen=True, kw_only=True)
class Calls:
    """What the token has left of its budget of calls, and when it is full again (seconds since the epoch)."""

    left: int
    limit: int
    reset: float


@dataclass(frozen=True, kw_only=True)
class Pause:
    """What is waited for, until when (seconds since the epoch)."""

    until: float
    why: str = "next look"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A campaign at one time. *cap* is its own, None where it has none."""

    campaign: str
    repository: str
    target: str
    begun: float
    now: float
    shards: tuple[ShardLine, ...]
    cap: int | None = None
    calls: Calls | None = None
    pause: Pause | None = None

    @property
    def cells(self) -> int:
        """How many there are."""
        return sum(each.cells for each in self.shards)

    @property
    def charged(self) -> int:
        """What was paid, as far as it is known."""
        return sum(each.charged or 0 for each in self.shards)

    @property
    def held(self) -> int:
        """What is reserved: for what has not ended, and for what ended at an unknown cost."""
        return sum(each.held for each in self.shards)

    def total(self, field: str) -> int:
        """The sum of one field of all shards."""
        return sum(getattr(each, field) for each in self.shards)

    def states(self, *names: str) -> int:
        """How many shards are in one of these states."""
        return sum(each.state in names for each in self.shards)


def amount(micros: int) -> str:
    """Micro-dollars in few characters, rounded up: ``$0.0004``, ``$12.50``, ``$868,912``."""
    digits = 4 if micros < 10_000 else 2 if micros < 10_000_000_000 else 0
    unit = 10 ** (6 - digits)
    rounded = -(-micros // unit) * unit
    return f"${rounded / 1_000_000:,.{digits}f}" if micros else "$0.00"


def wrapped(text: str, width: int, *, indent: str = "") -> list[str]:
    """Lines of at most *width* columns of a terminal, on which some characters take two."""
    lines = Text(" ".join(text.split())).wrap(Console(width=width), width - len(indent))
    return [f"{indent if number else ''}{line.plain.rstrip()}" for number, line in enumerate(lines)]


def render(view: Snapshot, *, width: int, height: int = 40, unicode: bool = True, live: bool = True) -> RenderableType:
    """Draws *view* for a terminal of that size; without *unicode* in ASCII alone. *live*: a client goes on with it.

    Without one it is said below the view what can be done, which is none of its matter.
    """
    meters = _meters(view, width)[: None if live else -1]
    attention = _attention(view, width) if live else []
    footer = [Text(), *_footer(view, width, unicode=unicode)] if live else []
    # Blank lines between the parts; head and rule of the table; the line that counts what is not shown.
    used = (2 if width < _MEDIUM else 1) + sum(len(meter.lines) for meter in meters) + len(attention) + len(footer) + 5
    return Group(
        _heading(view, width),
        Text(),
        _drawn(meters, width, unicode=unicode),
        Text(),
        _table(view, width, rows=max(_LEAST_ROWS, height - used), unicode=unicode),
        *attention,
        *footer,
    )


def _heading(view: Snapshot, width: int) -> RenderableType:
    name = Text(view.campaign, style="bold")
    place = Text(f"{view.repository} {view.target}", style="dim", overflow="ellipsis", no_wrap=True)
    elapsed = Text(duration_text(max(0.0, view.now - view.begun)), style="dim")
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(no_wrap=True)
    if width < _MEDIUM:
        line.add_column(justify="right", no_wrap=True)
        line.add_row(place, elapsed)
        return Group(name, line)
    line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    line.add_column(justify="right", no_wrap=True)
    line.add_row(name, place, elapsed)
    return line


# Meters


def runs_text(view: Snapshot) -> str:
    """``2 of 4 done, 1 running, 1 stuck``."""
    parts = [f"{view.states(*FINAL)} of {len(view.shards)} done"]
    parts += [f"{number} {name}" for name in _NAMED if (number := view.states(name))]
    return ", ".join(parts)


def cells_text(view: Snapshot) -> str:
    """``390 of 600 passed, 10 failed, 1 without result``."""
    parts = [f"{view.total('passed')} of {view.cells} passed"]
    named = (("failed", "failed"), ("other", "without result"))
    return ", ".join([*parts, *(f"{number} {word}" for field, word in named if (number := view.total(field)))])


def money_text(view: Snapshot) -> str:
    """``$195.00 spent, $105.00 reserved, cap $600.00``; cells may cost more than planned, and pass it."""
    text = f"{amount(view.charged)} spent, {amount(view.held)} reserved"
    if view.cap is None:
        return text
    over = view.charged + view.held - view.cap
    return f"{text}, cap {amount(view.cap)}{f' passed by {amount(over)}' if over > 0 else ''}"


def _calls_text(view: Snapshot) -> str:
    calls = view.calls
    if calls is None:
        return "no limit is known"
    wait = calls.reset - view.now
    text = f"{calls.left:,} of {calls.limit:,} left" if calls.limit else f"{calls.left:,} left"
    return f"{text}, all again in {duration_text(wait)}" if wait > 0 and calls.left < calls.limit else text


@dataclass(frozen=True, kw_only=True)
class _Meter:
    """One quantity: *parts* are amounts and their styles, of the amount *whole*."""

    name: str
    lines: Sequence[str]
    parts: Sequence[tuple[int, str]]
    whole: int


def _meters(view: Snapshot, width: int) -> tuple[_Meter, ...]:
    room = width - _LABEL - (_BAR + 1 if width >= _MEDIUM else 0)
    under_way = sum(each.cells for each in view.shards if each.state == "running")
    verdicts = [(view.total(field), style) for field, style in _VERDICTS]
    calls = view.calls
    return (
        _Meter(
            name="shards",
            lines=wrapped(runs_text(view), room),
            parts=[(view.states(*FINAL), "green"), (view.states("running"), "cyan"), (view.states("stuck"), "red")],
            whole=len(view.shards),
        ),
        _Meter(
            name="cells",
            lines=wrapped(cells_text(view), room),
            parts=[*verdicts, (under_way, "cyan")],
            whole=view.cells,
        ),
        _Meter(
            name="money",
            lines=wrapped(money_text(view), room),
            parts=[(view.charged, "green"), (view.held, "yellow")],
            whole=max(view.charged + view.held, view.total("reserved")) if view.cap is None else view.cap,
        ),
        _Meter(
            name="calls",
            lines=wrapped(_calls_text(view), room),
            parts=[(calls.left, "blue")] if calls else [],
            whole=calls.limit if calls else 0,
        ),
    )


def _drawn(meters: Sequence[_Meter], width: int, *, unicode: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold", no_wrap=True)
    if width >= _MEDIUM:
        grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    for meter in meters:
        bar = [_bar(meter.parts, meter.whole, unicode=unicode)] if width >= _MEDIUM else []
        grid.add_row(Text(meter.name), *bar, Text("\n".join(meter.lines)))
    return grid


def _bar(parts: Sequence[tuple[int, str]], of: int, *, unicode: bool) -> Text:
    """Pieces of one bar; a piece that is not zero is at least one character wide."""
    full, empty = ("━", "─") if unicode else ("=", "-")
    bar = Text()
    left = _BAR
    for amount, style in parts:
        size = min(left, max(1, round(_BAR * amount / of))) if amount and of else 0
        bar.append(full * size, style=style)
        left -= size
    bar.append(empty * left, style="dim")
    return bar


# Shards


def _table(view: Snapshot, width: int, *, rows: int, unicode: bool) -> RenderableType:
    table = Table(box=SIMPLE_HEAD if unicode else None, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("shard", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("cells", justify="right", no_wrap=True)
    if width >= _NARROW:
        table.add_column("passed", justify="right", no_wrap=True)
        table.add_column("failed", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("reserved", justify="right", no_wrap=True)
    if width >= _MEDIUM:
        table.add_column("run", overflow="ellipsis", no_wrap=True)
    shown, rest = _shown(view.shards, rows)
    for each in shown:
        table.add_row(*_row(each, width))
    return Group(table, Text(f"  and {_listed(rest)}", style="dim", no_wrap=True, overflow="crop")) if rest else table


def _row(shard: ShardLine, width: int) -> list[Text]:
    known = shard.state == "settled"
    row = [
        Text(str(shard.index)),
        Text(shard.state, style="red" if known and shard.failed else _STYLES.get(shard.state, "")),
        Text(str(shard.cells)),
    ]
    if width >= _NARROW:
        row += [
            Text(str(shard.passed) if known else "-", style="green" if shard.passed else "dim"),
            Text(
                str(shard.failed + shard.other) if known else "-", style="red" if shard.failed + shard.other else "dim"
            ),
        ]
    cost = "-" if shard.charged is None else amount(shard.charged)
    row.append(Text(f"{cost}+?" if known and shard.kept else cost))
    if width >= _WIDE:
        held = shard.held
        row.append(Text(amount(held) if held else "-", style="yellow" if held else "dim"))
    if width >= _MEDIUM:
        link = f"link {shard.address}" if shard.address else ""
        row.append(Text(str(shard.run), style=link) if shard.run else Text("-", style="dim"))
    return row


def _shown(shards: Sequence[ShardLine], rows: int) -> tuple[list[ShardLine], list[ShardLine]]:
    """As many shards as there is room for, in their order, and the rest: those that matter least."""
    if len(shards) <= rows:
        return list(shards), []
    rank = {state: number for number, state in enumerate(_ATTENTION)}
    ordered = sorted(shards, key=lambda each: (rank.get(each.state, len(rank)), each.index))
    by_index = sorted(ordered[: rows - 1], key=lambda each: each.index)
    return by_index, sorted(ordered[rows - 1 :], key=lambda each: each.index)


def _listed(shards: Sequence[ShardLine]) -> str:
    """``34 more: 30 settled, 4 planned``."""
    names = dict.fromkeys(each.state for each in shards)
    parts = [f"{sum(each.state == name for each in shards)} {name}" for name in names]
    return f"{len(shards)} more: {', '.join(parts)}"


def _attention(view: Snapshot, width: int) -> list[Text]:
    """What a person must know of, and the command for it."""
    lines: list[Text] = []
    told = [each for each in view.shards if each.state in {"stuck", "unpaid"}]
    for each in told[:_MOST_TOLD]:
        text = f"! shard {each.index} is {each.state}{f': {each.note}' if each.note else ''}"
        lines += [Text(line, style=_STYLES[each.state]) for line in wrapped(text, width, indent="  ")[:_MOST_LINES]]
    if len(told) > _MOST_TOLD:
        lines.append(Text(f"! and {len(told) - _MOST_TOLD} more", style=_STYLES[told[-1].state]))
    if told:
        command = wrapped(f"runner-e2e dispatch resolve {view.campaign}", width - 2)
        lines += [Text(f"  {line}", style="dim") for line in command]
    return [Text(), *lines] if lines else []


def _footer(view: Snapshot, width: int, *, unicode: bool) -> list[Text]:
    if view.pause is None or view.pause.until <= view.now:
        text = "looking"
    else:
        wait = duration_text(view.pause.until - view.now)
        text = f"{view.pause.why}: {wait}"
    text += f"{' · ' if unicode else ' - '}Ctrl-C leaves, the runs go on"
    return [Text(line, style="dim") for line in wrapped(text, width)]
