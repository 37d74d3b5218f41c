"""Loops: followed round by round while their condition is decided, and to a fixed point from there on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.shell.commands import Commands
from runner_e2e.lint.shell.conditions import split
from runner_e2e.lint.shell.expansion import expand_value, expand_words
from runner_e2e.lint.shell.parameters import assign_scalar, calculate
from runner_e2e.lint.shell.state import Field, State
from runner_e2e.lint.values import join

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.ir import ArithmeticFor, For, Loop, Select, Word
    from runner_e2e.lint.shell.state import FileKey
    from runner_e2e.lint.values import Value

__all__ = ["Loops", "join_states"]

_MAX_ROUNDS = 200
"""Rounds of a loop whose condition is decided each time, before it is taken as one of unknown length."""

_EXACT_JOINS = 2
"""Rounds towards the fixed point that keep what they learn, before what still changes is given up."""


class Loops(Commands):
    """Runs loops."""

    def run_loop(self, command: Loop, state: State) -> None:
        """``while`` and ``until``."""

        def condition(now: State) -> tuple[State, State]:
            self.conditions += 1
            yes, no = self.branch(command.condition, now)
            self.conditions -= 1
            return (no, yes) if command.until else (yes, no)

        self._repeat(condition, lambda now: self.execute(command.body, now), state)

    def run_arithmetic_for(self, command: ArithmeticFor, state: State) -> None:
        """``for ((…))``."""

        def number(word: Word, now: State) -> int | None:
            return calculate(self, now, expand_value(self, now, word)) if word.parts else 1

        def condition(now: State) -> tuple[State, State]:
            result = number(command.condition, now)
            return split(now, None if result is None else result != 0, None)

        def body(now: State) -> None:
            self.execute(command.body, now)

        number(command.first, state)
        self._repeat(condition, body, state, after=lambda now: number(command.step, now))

    def _repeat(
        self,
        condition: Callable[[State], tuple[State, State]],
        body: Callable[[State], None],
        state: State,
        after: Callable[[State], object] | None = None,
    ) -> None:
        """A loop: exactly as long as its condition is decided, then to a fixed point."""
        left: list[State] = []
        now = state.copy()
        for _ in range(_MAX_ROUNDS):
            undecided = now.copy()
            going, stopped = condition(now)
            if not going.dead and not stopped.dead:
                now = undecided
                self._fixed_point(condition, body, now, left, after)
                break
            if going.dead:
                stopped.status = 0
                left.append(stopped)
                break
            now = self._round(going, body, left, after)
            if now.dead:
                break
        else:
            self._fixed_point(condition, body, now, left, after)
        ended = join_states(left)
        if ended is None:
            state.dead = True
        else:
            state.become(ended)

    def _round(
        self,
        state: State,
        body: Callable[[State], None],
        left: list[State],
        after: Callable[[State], object] | None,
    ) -> State:
        """One pass through the body; states that leave the loop go to *left*."""
        breaks: list[State] = []
        continues: list[State] = []
        self.loops.append((breaks, continues))
        body(state)
        self.loops.pop()
        left.extend(breaks)
        ended = join_states([state, *continues])
        if ended is None:
            state.dead = True
            return state
        if after is not None:
            after(ended)
        return ended

    def _fixed_point(
        self,
        condition: Callable[[State], tuple[State, State]],
        body: Callable[[State], None],
        state: State,
        left: list[State],
        after: Callable[[State], object] | None,
    ) -> None:
        entry = state
        for number in range(12):
            now = entry.copy()
            going, stopped = condition(now)
            leaving = [stopped] if not stopped.dead else []
            if not going.dead:
                ended = self._round(going, body, leaving, after)
                following = (
                    (entry.joined(ended) if number < _EXACT_JOINS else entry.widened(ended))
                    if not ended.dead
                    else entry
                )
            else:
                following = entry
            if number > 0 and _same(following, entry):
                break
            entry = following
        for one in leaving:
            one.status = 0 if one is stopped else one.status
        left.extend(leaving)

    def run_for(self, command: For, state: State) -> None:
        """``for name in words``."""
        fields = state.positional if command.words is None else expand_words(self, state, command.words)
        left: list[State] = []
        now = state
        for one in fields:
            if now.dead:
                break
            if one.kind == "list" or (one.kind == "split" and len(fields) == 1 and not one.value.taints):
                now = self._any_number(command, one, now, left)
                continue
            now = self._one_round(command, one.value, now, left)
        ended = join_states([now, *left])
        if ended is None:
            state.dead = True
        else:
            if not fields:
                ended.status = 0
            state.become(ended)

    def _one_round(self, command: For | Select, value: Value, state: State, left: list[State]) -> State:
        moved = self.step(value, command.start, command.start + 3, f"loop variable {command.name}")
        assign_scalar(state, command.name, moved)
        return self._round(state, lambda now: self.execute(command.body, now), left, None)

    def _any_number(self, command: For | Select, field: Field, state: State, left: list[State]) -> State:
        """Rounds over a list of unknown length."""
        entry = state
        for number in range(12):
            ended = self._one_round(command, field.value, entry.copy(), left)
            if ended.dead:
                return entry
            following = entry.joined(ended) if number < _EXACT_JOINS else entry.widened(ended)
            if _same(following, entry):
                return following
            entry = following
        return entry

    def run_select(self, command: Select, state: State) -> None:
        """``select``: any choice, any number of times."""
        fields = state.positional if command.words is None else expand_words(self, state, command.words)
        value = join(one.value for one in fields)
        left: list[State] = []
        after = self._any_number(command, Field(value, "list"), state.copy(), left)
        state.become(join_states([state.copy(), after, *left]) or state)


def join_states(ends: list[State]) -> State | None:
    """Any of *ends* that can be reached; None when none can."""
    joined: State | None = None
    for one in ends:
        if not one.dead:
            joined = one if joined is None else joined.joined(one)
    return joined


def _same(left: State, right: State) -> bool:
    return (
        left.frames == right.frames
        and _reachable_files(left) == _reachable_files(right)
        and left.positional == right.positional
        and left.command_files == right.command_files
        and left.directory == right.directory
        and left.last_argument == right.last_argument
        and left.functions == right.functions
        and left.traps == right.traps
    )


def _reachable_files(state: State) -> dict[FileKey, Value]:
    """Files and streams that something can still read: each here-document of each round is a stream of its own."""
    open_streams = {channel.key for channel in state.descriptors.values()}
    return {key: value for key, value in state.files.items() if not isinstance(key, int) or key in open_streams}
