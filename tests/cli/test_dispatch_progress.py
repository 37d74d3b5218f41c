"""How a client is followed and left: lines, the live view, signals, and when which is used."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from tests.cli.test_dispatch_view import NAME, VIEW

from runner_e2e.cli import dispatch_progress
from runner_e2e.cli.dispatch_client import Warnings
from runner_e2e.cli.dispatch_progress import Departure, Left, Lines, LiveView, follow
from runner_e2e.dispatch.client_events import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.cli.dispatch_view import Pause, Snapshot
    from runner_e2e.dispatch.client_events import Kind


def event(kind: Kind, text: str = "it happened", *, at: float = 1000.0, until: float | None = None) -> Event:
    return Event(at=at, kind=kind, text=text, until=until)


def snapshot(pause: Pause | None) -> Snapshot:
    del pause
    return VIEW


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The lines for some events, without their times; nothing may stand on standard output."""

    def lines(*events: Event) -> list[str]:
        progress = Lines()
        for each in events:
            progress.show(each, snapshot)
        out, err = capsys.readouterr()
        assert out == ""
        return [line[10:] for line in err.splitlines()]

    return lines


def test_a_round_is_summed_up_after_news_and_after_a_long_silence(said: Callable[..., list[str]]) -> None:
    summary = (
        "shards: 2 of 4 done, 1 running, 1 stuck; cells: 385 of 800 passed, 13 failed, 2 without result; "
        "$191.50 spent, $402.00 reserved, cap $1,000.00"
    )
    rounds = [event("round", at=at) for at in (1000.0, 1599.0, 1601.0, 2200.0, 2202.0)]
    assert said(event("settled", "shard 0: done"), *rounds[:2]) == ["shard 0: done", summary]
    assert said(event("sent", "sent"), *rounds) == ["sent", *[summary] * 3], "a silence of ten minutes is broken"


def test_short_waits_are_no_news_and_long_ones_say_until_when(said: Callable[..., list[str]]) -> None:
    assert said(event("waiting", "next look", until=1060.0)) == []
    (line,) = said(event("waiting", "GitHub asks to wait", until=1000.0 + 3600))
    assert line == f"GitHub asks to wait, until {dispatch_progress.clock(4600.0)}"
    assert said(event("warning", "GitHub is away")) == ["warning: GitHub is away"]


def test_the_live_view_is_drawn_for_the_width_it_has_and_keeps_what_matters_above() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=60, height=30, force_terminal=False)
    view = LiveView(console)
    console.print(view)
    assert stream.getvalue() == "", "nothing is known yet"
    pauses: list[Pause | None] = []

    def taken(pause: Pause | None) -> Snapshot:
        pauses.append(pause)
        return VIEW

    for each in (event("warning", "[bold]GitHub[/bold] is away"), event("sent"), event("waiting", until=9e9)):
        view.show(each, taken)
    console.print(view)
    text = stream.getvalue()
    assert "[bold]GitHub[/bold] is away" in text, "no text is markup"
    assert "it happened" not in text
    assert NAME in text
    assert max(map(len, text.splitlines())) <= 60
    assert [pause.why if pause else None for pause in pauses] == [None, None, "it happened"]


@pytest.mark.parametrize(
    ("terminal", "environ", "kind"),
    [
        (True, {"TERM": "xterm"}, LiveView),
        (False, {"TERM": "xterm"}, Lines),
        (True, {"TERM": "dumb"}, Lines),
        (True, {}, Lines),
        (True, {"TERM": "xterm", "CI": "1"}, Lines),
        (True, {"TERM": "xterm", "GITHUB_ACTIONS": "true"}, Lines),
    ],
)
def test_it_draws_only_on_a_terminal_of_a_person(
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    environ: dict[str, str],
    kind: type,
) -> None:
    for name in ("TERM", "CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with follow() as progress:
        assert isinstance(progress, kind)
    with follow(quiet=True) as progress:
        progress.show(event("warning"), snapshot)
    assert "it happened" not in stream.getvalue()


def test_a_wait_ends_as_soon_as_a_person_wants_to_leave() -> None:
    departure = Departure()
    before = signal.getsignal(signal.SIGINT)
    with departure.watched():
        departure.wait(0.0)
        departure.check()
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        begun = time.monotonic()
        with pytest.raises(Left) as leaving:
            departure.wait(60.0)
        assert leaving.value.number == signal.SIGTERM
        assert time.monotonic() - begun < 30
        with pytest.raises(Left):
            departure.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_wish_to_leave_that_came_before_a_wait_ends_it() -> None:
    departure = Departure()
    with departure.watched():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Left) as leaving:
            departure.wait(60.0)
    assert leaving.value.number == signal.SIGTERM


def test_what_is_under_way_is_finished_unless_the_person_insists() -> None:
    departure = Departure()
    with departure.watched():
        os.kill(os.getpid(), signal.SIGINT)
        # Here it goes on: only a second one ends it where it is.
        with pytest.raises(Left) as leaving:
            signal.raise_signal(signal.SIGINT)
    assert leaving.value.number == signal.SIGINT


def test_a_warning_is_said_once_and_not_beside_the_error_that_says_it() -> None:
    shown: list[str] = []
    warnings = Warnings(lambda each: shown.append(f"{each.kind} {each.text}"))
    for _ in range(3):
        for each in (event("warning", "away"), event("round", "r"), event("waiting", "w")):
            warnings.hear(each)
    assert shown == ["round r", "warning away", "waiting w", *["round r", "waiting w"] * 2]
    shown.clear()
    for each in (event("warning", "refused"), event("warning", "other"), event("round", "r")):
        warnings.hear(each)
    warnings.drop("refused")
    assert shown == ["round r", "warning other"]
