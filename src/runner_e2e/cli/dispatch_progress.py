"""How a person follows a client: a live view on a terminal, calm lines elsewhere, and a way to leave without harm."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import click

from runner_e2e import gha
from runner_e2e.cli.dispatch_session import run_address
from runner_e2e.cli.dispatch_view import (
    FINAL,
    Calls,
    Pause,
    ShardLine,
    Snapshot,
    cells_text,
    money_text,
    render,
    runs_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from rich.console import Console, ConsoleOptions, RenderResult

    from runner_e2e.dispatch.call_budget import CallBudget
    from runner_e2e.dispatch.client_events import Event
    from runner_e2e.dispatch.ledger import Ledger
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState

__all__ = ["Departure", "Left", "Lines", "LiveView", "Progress", "Snapshots", "clock", "follow"]

# Things that happen to a shard; a line that sums up follows them.
_NEWS: Final = frozenset({"sent", "unknown", "running", "ended", "settled", "unpaid", "stuck", "cancelled"})
# What stays above the live view.
_KEPT: Final = frozenset({"warning", "twin", "stopping", "unknown", "unpaid", "stuck"})
# A pause is told where it is longer than what a watching client makes by itself.
_WORTH_TELLING: Final = 90.0
_LONGEST_SILENCE: Final = 600.0


class Snapshots:
    """Reads the ledger into what is shown; the verdicts of a shard are counted again only when it has changed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[tuple[str, int], tuple[int, ShardLine]] = {}

    def take(self, campaign: str, *, budget: CallBudget | None = None, pause: Pause | None = None) -> Snapshot:
        """The state of *campaign* now."""
        state = self._ledger.campaign(campaign)
        shards = self._ledger.shards(state.id)
        over = all(shard.state in FINAL for shard in shards)
        return Snapshot(
            campaign=state.id,
            repository=state.repository,
            target=state.target,
            begun=state.started_at or state.added_at,
            now=max(shard.changed_at for shard in shards) if over else time.time(),
            shards=tuple(self._line(state, shard) for shard in shards),
            cap=state.max_cost,
            calls=None if budget is None else _calls(budget),
            pause=pause,
        )

    def _line(self, campaign: CampaignState, shard: ShardState) -> ShardLine:
        key = (campaign.id, shard.index)
        version, line = self._known.get(key, (-1, None))
        if line is None or version != shard.version:
            line = self._read(campaign, shard)
            self._known[key] = shard.version, line
        return line

    def _read(self, campaign: CampaignState, shard: ShardState) -> ShardLine:
        settled = shard.state == "settled"
        verdicts = [cell.verdict for cell in self._ledger.cells(campaign.id, shard.index)] if settled else []
        passed, failed = verdicts.count("passed"), verdicts.count("failed")
        return ShardLine(
            index=shard.index,
            state=shard.state,
            cells=shard.cells,
            passed=passed,
            failed=failed,
            other=len(verdicts) - passed - failed,
            reserved=shard.reserved,
            charged=shard.actual,
            kept=shard.kept,
            run=shard.run,
            address=run_address(campaign.repository, shard.run),
            note=shard.note,
        )


def _calls(budget: CallBudget) -> Calls | None:
    """What is left of this hour, None where the server has not told."""
    rate = budget.rate()
    if rate.remaining is None or rate.reset <= time.time():
        return None
    return Calls(left=rate.remaining, limit=rate.limit or 0, reset=rate.reset)


# Leaving


class Left(KeyboardInterrupt):
    """The person asked to leave. *number* is the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Departure:
    """Lets a person leave at a point where the ledger holds everything; a second request leaves at once.

    A request that is under way is answered first: nobody has to find out later whether it arrived.
    """

    def __init__(self) -> None:
        self._number = 0
        self._waits = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Hears SIGINT and SIGTERM meanwhile."""
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        # Nothing that takes a lock: the code that this interrupts may hold it.
        again, self._number = self._number, self._number or number
        if again or self._waits:
            raise Left(number)

    def wait(self, seconds: float) -> None:
        """Sleeps; raises :class:`Left` as soon as a person wants to leave."""
        self._waits = True
        try:
            self.check()  # one that came a moment before
            time.sleep(max(0.0, seconds))
        finally:
            self._waits = False

    def check(self) -> None:
        """Raises :class:`Left` where a person wants to leave."""
        if self._number:
            raise Left(self._number)


# Showing


class Progress(Protocol):
    """Shows what happens."""

    def show(self, event: Event, snapshot: Callable[[Pause | None], Snapshot]) -> None:
        """Shows *event*; *snapshot* reads what is known now."""


class Lines:
    """A line for each thing that happens, on standard error, and one that sums up after it and every ten minutes."""

    def __init__(self) -> None:
        self._news = False
        self._said: float | None = None

    def show(self, event: Event, snapshot: Callable[[Pause | None], Snapshot]) -> None:
        """Shows *event*."""
        if self._said is None:
            self._said = event.at
        if event.kind == "round":
            if self._news or event.at - self._said > _LONGEST_SILENCE:
                self._news = False
                view = snapshot(None)
                self._line(event.at, f"shards: {runs_text(view)}; cells: {cells_text(view)}; {money_text(view)}")
            return
        if event.kind == "waiting" and event.until is not None and event.until - event.at < _WORTH_TELLING:
            return
        self._news |= event.kind in _NEWS
        until = f", until {clock(event.until)}" if event.until else ""
        self._line(event.at, f"{'warning: ' if event.kind == 'warning' else ''}{event.text}{until}")

    def _line(self, at: float, text: str) -> None:
        self._said = at
        click.echo(f"{clock(at)}  {text}", err=True)


class LiveView:
    """The view on a terminal, drawn again every half second, with what a person should not miss above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._snapshot: Snapshot | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._snapshot is not None:
            view = replace(self._snapshot, now=time.time())
            unicode = console.encoding.lower().startswith("utf")
            yield render(view, width=options.max_width, height=options.size.height, unicode=unicode)

    def show(self, event: Event, snapshot: Callable[[Pause | None], Snapshot]) -> None:
        """Shows *event*."""
        if event.kind in _KEPT:
            self._console.print(f"{clock(event.at)}  {event.text}", markup=False, highlight=False, soft_wrap=True)
        pause = Pause(until=event.until, why=event.text) if event.kind == "waiting" and event.until else None
        self._snapshot = snapshot(pause)


@contextmanager
def follow(*, quiet: bool = False) -> Iterator[Progress]:
    """The right way to show progress where this process runs: on standard error, so that the result stands alone."""
    if quiet:
        yield _Silence()
        return
    if not _is_lively():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    view = LiveView(console)
    with Live(view, console=console, refresh_per_second=2, transient=True):
        yield view


class _Silence:
    def show(self, event: Event, snapshot: Callable[[Pause | None], Snapshot]) -> None:
        """Shows nothing."""


def _is_lively() -> bool:
    """Whether standard error is a terminal that can be drawn on, and a person's."""
    if not sys.stderr.isatty() or gha.in_actions():
        return False
    return not os.environ.get("CI") and os.environ.get("TERM", "") not in {"", "dumb"}


def clock(at: float | None, *, day: bool = False) -> str:
    """A time of this machine's time zone, with its *day* or without."""
    return time.strftime("%Y-%m-%d %H:%M:%S" if day else "%H:%M:%S", time.localtime(at))
