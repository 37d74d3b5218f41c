"""The abstract interpreter: control flow. Simple commands, builtins and programs have modules of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.masks import CAPTURED
from runner_e2e.lint.shell.commands import weakened
from runner_e2e.lint.shell.conditions import conditional, empty_labels, refine_test, split, test_fields
from runner_e2e.lint.shell.expansion import expand_pattern, expand_value, expand_words
from runner_e2e.lint.shell.ir import (
    AndOr,
    ArithmeticCommand,
    ArithmeticFor,
    Background,
    Case,
    Command,
    Conditional,
    Coprocess,
    For,
    FunctionDefinition,
    Group,
    If,
    Loop,
    Pipeline,
    Redirected,
    Select,
    Sequence,
    Simple,
    Subshell,
)
from runner_e2e.lint.shell.loops import Loops, join_states
from runner_e2e.lint.shell.machine import Invocation
from runner_e2e.lint.shell.parameters import calculate
from runner_e2e.lint.shell.parser import parse
from runner_e2e.lint.shell.patterns import matches
from runner_e2e.lint.shell.state import NULL, Channel, Field, Function, Items, State, Variable
from runner_e2e.lint.values import EMPTY, Confidence, Hole, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.shell.ir import Redirection
    from runner_e2e.lint.source import Source

__all__ = ["Interpreter"]

_MAX_CALLS = 24


_NO_STARTUP = frozenset({"p", "posix"})
"""Options with which bash does not look at ``BASH_ENV``."""


class Interpreter(Loops):
    """Runs commands on states."""

    def execute(self, command: Command, state: State) -> None:
        """See :meth:`Machine.execute`."""
        if state.dead:
            return
        self.tick()
        self._handlers[type(command)](self, command, state)

    # --- lists

    def _sequence(self, command: Sequence, state: State) -> None:
        for one in command.commands:
            if state.dead:
                return
            self.execute(one, state)

    def _group(self, command: Group, state: State) -> None:
        self._sequence(command.body, state)

    def _and_or(self, command: AndOr, state: State) -> None:
        self.conditions += 1
        yes, no = self.branch(command.left, state)
        self.conditions -= 1
        going, stopped = (yes, no) if command.operator == "&&" else (no, yes)
        self.execute(command.right, going)
        state.become(stopped.joined(going) if not (stopped.dead and going.dead) else going)

    def branch(self, command: Command, state: State) -> tuple[State, State]:
        """See :meth:`Machine.branch`."""
        if state.dead:
            return state, state.copy()
        if isinstance(command, Sequence) and command.commands:
            for one in command.commands[:-1]:
                self.execute(one, state)
            return self.branch(command.commands[-1], state)
        if isinstance(command, AndOr):
            return self._branch_and_or(command, state)
        if isinstance(command, Pipeline) and len(command.commands) == 1 and command.negated:
            yes, no = self.branch(command.commands[0], state)
            yes.status, no.status = 1, 0
            return no, yes
        if isinstance(command, Group):
            return self.branch(command.body, state)
        if isinstance(command, Conditional):
            self.tick()
            return conditional(self, state, command.test)
        if isinstance(command, Simple) and (answered := self._branch_test(command, state)):
            return answered
        self.execute(command, state)
        return self._by_status(state)

    def _by_status(self, state: State) -> tuple[State, State]:
        other = state.copy()
        if state.status is None:
            state.status, other.status = 0, 1
        elif state.status == 0:
            other.dead = True
        else:
            state.dead = True
        return state, other

    def _branch_and_or(self, command: AndOr, state: State) -> tuple[State, State]:
        self.conditions += 1
        yes, no = self.branch(command.left, state)
        self.conditions -= 1
        if command.operator == "&&":
            right_yes, right_no = self.branch(command.right, yes)
            return right_yes, no.joined(right_no)
        right_yes, right_no = self.branch(command.right, no)
        return yes.joined(right_yes), right_no

    def _branch_test(self, command: Simple, state: State) -> tuple[State, State] | None:
        """``[`` and ``test`` as a condition: the verdict also tells what a variable holds."""
        if not command.words or command.assignments or command.redirections:
            return None
        name = command.words[0].static
        if name not in ("[", "test") or name in state.functions or name in state.disabled:
            return None
        self.tick()
        words = command.words[1:-1] if name == "[" else command.words[1:]
        fields = expand_words(self, state, command.words)
        arguments = fields[1:-1] if name == "[" else fields[1:]
        self.trace_expansion(fields, state, command)
        state.last_argument = fields[-1].value
        emptied = empty_labels([one.value for one in arguments])
        return split(state, test_fields(self, state, arguments), refine_test(state, words), emptied)

    def _conditional(self, command: Conditional, state: State) -> None:
        yes, no = conditional(self, state, command.test)
        state.become(yes.joined(no) if not (yes.dead and no.dead) else yes)
        self.after(state)

    def _arithmetic(self, command: ArithmeticCommand, state: State) -> None:
        number = calculate(self, state, expand_value(self, state, command.expression))
        state.status = None if number is None else int(number == 0)
        self.after(state)

    def _if(self, command: If, state: State) -> None:
        ends: list[State] = []
        whole = state
        for condition, body in command.branches:
            self.conditions += 1
            yes, no = self.branch(condition, state)
            self.conditions -= 1
            self.execute(body, yes)
            ends.append(yes)
            state = no
            if state.dead:
                break
        else:
            if command.otherwise is not None:
                self.execute(command.otherwise, state)
            else:
                state.status = 0
            ends.append(state)
        self.settle(whole, ends)

    # --- pipes and subshells

    def _pipeline(self, command: Pipeline, state: State) -> None:
        if len(command.commands) == 1:
            self.conditions += 1
            self.execute(command.commands[0], state)
            self.conditions -= 1
            if not state.dead and state.status is not None:
                state.status = int(state.status == 0)
            return
        channel = state.descriptors.get(0, NULL)
        last = len(command.commands) - 1
        statuses: list[int | None] = []
        for index, one in enumerate(command.commands):
            descriptors: dict[int, Channel] = {0: channel}
            if index < last:
                buffer = self.fresh()
                state.files[buffer] = EMPTY
                descriptors[1] = Channel("file", buffer)
                if command.merged[index]:
                    descriptors[2] = descriptors[1]
                channel = Channel("stream", buffer)
            if index == last and "lastpipe" in state.options:
                outer = dict(state.descriptors)
                state.descriptors[0] = descriptors[0]
                self.execute(one, state)
                state.descriptors = outer
            else:
                self.conditions += command.negated
                self.subshell(one, state, descriptors)
                self.conditions -= command.negated
            statuses.append(state.status)
        if "pipefail" in state.options and statuses[-1] == 0:
            failed = [status for status in statuses if status]
            state.status = failed[-1] if failed else (None if None in statuses else 0)
        if command.negated:
            state.status = None if state.status is None else int(state.status == 0)
        else:
            self.after(state)

    def subshell(self, body: Command, state: State, descriptors: Mapping[int, Channel] | None = None) -> None:
        """See :meth:`Machine.subshell`."""
        inner = state.copy()
        inner.traps = {name: trap for name, trap in state.traps.items() if trap == EMPTY}
        inner.jobs = ()
        if descriptors:
            inner.descriptors.update(descriptors)
        ends = self.enclosed(body, inner)
        if ends is None:
            state.status = None
            return
        state.files, state.command_files, state.status = ends.files, ends.command_files, ends.status
        state.listen(ends)

    def enclosed(self, body: Command, inner: State, startup: Value = EMPTY) -> State | None:
        """Runs *body* as a shell of its own, the file *startup* before it; the state at its end, however it ends."""
        saved = self.exits, self.loops, self.returns, self.suspects
        self.exits, self.loops, self.returns, self.suspects = [], [], [], []
        self.depth += 1
        if self.depth > _MAX_CALLS * 2:
            self.give_up(body.start, body.end, "nested too deeply to follow")
        else:
            if startup != EMPTY:
                self._start_up(startup, body, inner)
            self.execute(body, inner)
        self.run_exit_trap(inner)
        self.depth -= 1
        ends = [one for one in (inner, *self.exits) if not one.dead]
        self.exits, self.loops, self.returns, self.suspects = saved
        return join_states(ends)

    def run_exit_trap(self, state: State) -> None:
        """Runs the EXIT trap where the shell ends: normally, by ``exit``, or by an error."""
        exits, self.exits = self.exits, []
        for end in [state, *exits]:
            trap = end.traps.pop("EXIT", None) if not end.dead else None
            if trap is not None and trap != EMPTY:
                self.run_trap(trap, end)
        suspects, self.suspects = self.suspects, []
        for suspect in suspects[-8:]:
            trap = suspect.traps.pop("EXIT", None)
            if trap is not None and trap != EMPTY:
                self.run_trap(trap, weakened(suspect))
        self.exits = [*exits, *self.exits]

    def _background(self, command: Background, state: State) -> None:
        masks, reading = state.masks, state.reading
        self.subshell(command.body, state)
        state.status = 0
        # Nobody knows when it does what it does.
        state.jobs = (*state.jobs, state.masks)
        state.masks = masks.joined(state.masks)
        state.reading = reading.joined(state.reading)

    def _subshell(self, command: Subshell, state: State) -> None:
        self.subshell(command.body, state)
        self.after(state)

    def _coprocess(self, command: Coprocess, state: State) -> None:
        into, out = self.fresh(), self.fresh()
        state.files[into] = state.files[out] = EMPTY
        self.subshell(command.body, state, {0: Channel("stream", into), 1: Channel("file", out)})
        numbers = (60 + self.fresh(), 60 + self.fresh())
        state.descriptors[numbers[0]] = Channel("stream", out)
        state.descriptors[numbers[1]] = Channel("file", into)
        items = Items(tuple((str(index), Value.literal(str(number))) for index, number in enumerate(numbers)))
        state.assign(command.name, Variable(items=items))
        # What is written later reaches the commands as well: they are run again when the shell ends.
        self.coprocesses.append((command.body, into, out))
        state.status = 0

    def capture(self, body: Sequence, state: State) -> Value:
        """See :meth:`Machine.capture`."""
        buffer = self.fresh()
        state.files[buffer] = EMPTY
        if file := _file_substitution(body):
            inner = state.copy()
            self.redirect((file,), inner)
            channel = inner.descriptors.get(0, NULL)
            state.files, state.status = inner.files, 0
            return inner.files.get(channel.key, EMPTY) if channel.kind == "stream" else EMPTY
        self.subshell(body, state, {1: Channel("file", buffer)})
        return self._identified(state.files.pop(buffer, EMPTY))

    def _identified(self, value: Value) -> Value:
        """Gives labelled text that is not known an identity, so that it is told from its parts: masks hide it whole.

        Not in loops and functions, which come here again with another text.
        """
        if not value.taints or self.loops or self.calls or len(value.texts) != 1 or len(value.texts[0]) != 1:
            return value
        hole = value.texts[0][0]
        if not isinstance(hole, Hole) or hole.symbol:
            return value
        return Value(((Hole(hole.taints, self.identity(CAPTURED), hole.longest),),))

    # --- case, functions

    def _case(self, command: Case, state: State) -> None:
        word = expand_value(self, state, command.word)
        ends: list[State] = []
        falling: State | None = None
        remaining = state.copy()
        for item in command.items:
            answers = [matches(word, expand_pattern(self, remaining, pattern)) for pattern in item.patterns]
            entered: State | None = falling
            falling = None
            if any(answer is not False for answer in answers) and not remaining.dead:
                entered = remaining.copy() if entered is None else entered.joined(remaining)
                if any(answer is True for answer in answers) and item.terminator != ";;&":
                    remaining.dead = True
            if entered is None:
                continue
            self.execute(item.body, entered)
            if item.terminator == ";&":
                falling = entered
            elif item.terminator == ";;&" and not entered.dead:
                remaining = entered.copy() if remaining.dead else remaining.joined(entered)
            else:
                ends.append(entered)
        if falling is not None:
            ends.append(falling)
        if not remaining.dead:
            remaining.status = 0 if not ends else remaining.status
            ends.append(remaining)
        self.settle(state, ends)

    def _define(self, command: FunctionDefinition, state: State) -> None:
        state.functions[command.name] = (Function(command.body, self.source),)
        self.defined.add(command.name)
        state.status = 0

    def call_function(self, name: str, call: Invocation) -> None:
        """See :meth:`Commands.call_function`."""
        fields, state, at = call.fields, call.state, call.at
        ends: list[State] = []
        if self.calls.count(name) >= 6 or len(self.calls) >= _MAX_CALLS:
            self._cut_recursion(name, fields, state, at)
            return
        for function in state.functions[name]:
            inner = state.copy()
            inner.positional = tuple(
                replace(one, value=self.step(one.value, one.start, one.end, f"argument of {name}"))
                for one in fields[1:]
            )
            inner.frames.append({})
            returns: list[State] = []
            saved = self.source, self.loops, self.returns, self.site
            if not function.source.exact and self.source.exact:
                self.site = self.source, at
            self.source, self.loops, self.returns = function.source, [], returns
            self.calls.append(name)
            try:
                self.execute(function.body, inner)
            finally:
                self.calls.pop()
                self.source, self.loops, self.returns, self.site = saved
            ended = join_states([inner, *returns])
            if ended is not None:
                if (trap := ended.traps.get("RETURN")) is not None:
                    self.run_trap(trap, ended)
                ended.frames = ended.frames[: len(state.frames)]
                ended.positional = state.positional
                ends.append(ended)
        self.settle(state, ends)

    def _cut_recursion(self, name: str, fields: tuple[Field, ...], state: State, at: Command) -> None:
        """A recursion that is not followed further: every variable may have got what it was given."""
        taints = [taint for one in fields for taint in one.value.taints]
        state.status = None
        if not taints:
            return
        self.give_up(at.start, at.end, f"the recursion of {name} is not followed to its end")
        carried = Value.of(taints).weakened(Confidence.LOW)
        for frame in state.frames:
            for variable_name, variable in frame.items():
                if variable.items is None and not variable.exported:
                    frame[variable_name] = replace(variable, value=variable.value | carried)

    # --- compound with redirections

    def _redirected(self, command: Redirected, state: State) -> None:
        outer = dict(state.descriptors)
        readers, self.readers = self.readers, []
        self.redirect(command.redirections, state)
        self.execute(command.body, state)
        if not state.dead:
            state.descriptors = outer
            self.finish(state)
        self.readers = readers

    # --- program text

    def run_source(self, source: Source, state: State, at: tuple[int, int]) -> None:
        """Parses and runs *source* in this shell."""
        program, error = parse(source, bash=self.bash, deadline=self.options.deadline)
        saved, self.source = self.source, source
        self.depth += 1
        try:
            if self.depth > _MAX_CALLS * 2:
                self.give_up(*at, "nested too deeply to follow")
            else:
                self.execute(program, state)
        finally:
            self.depth -= 1
            if error is not None:
                start = source.start(error.offset)
                self.give_up(start, max(source.end(error.offset), start), error.message)
            self.source = saved

    def process(self, source: Source, inner: State) -> State | None:
        """See :meth:`Commands.process`."""
        program, error = parse(source, bash=self.bash, deadline=self.options.deadline)
        saved, self.source = self.source, source
        readers, self.readers = self.readers, []
        startup = inner.lookup("BASH_ENV") if self.bash and not inner.options & _NO_STARTUP else None
        try:
            return self.enclosed(program, inner, EMPTY if startup is None else startup.plain())
        finally:
            self.readers = readers
            if error is not None:
                start = source.start(error.offset)
                self.give_up(start, max(source.end(error.offset), start), error.message)
            self.source = saved

    def _start_up(self, path: Value, program: Command, inner: State) -> None:
        """What ``BASH_ENV`` names is run by every bash that runs a script, before that; its text is expanded."""
        if self.starting:
            return  # a shell that it starts would start up in the same way, without an end
        first = program.commands[0] if isinstance(program, Sequence) and program.commands else program
        span = (first.start, first.end)
        self.starting = True
        try:
            file = self.expand_again(path, inner, span)
            fields = (Field(Value.literal("."), "one", *span), Field(file, "one", *span))
            options, inner.options = inner.options, inner.options - {"e"}
            self.call_builtin(".", Invocation(fields, inner, first, {}))
            inner.options = inner.options | options
        finally:
            self.starting = False

    def run_text(self, text: Value, state: State, span: tuple[int, int]) -> None:
        """See :meth:`Machine.run_text`."""
        ends: list[State] = []
        for one in text.texts:
            inner = state.copy()
            self.run_source(self.source_of(one, span), inner, span)
            ends.append(inner)
        self.settle(state, ends)

    _handlers: Mapping[type, Callable[..., None]] = {
        Sequence: _sequence,
        Group: _group,
        AndOr: _and_or,
        Conditional: _conditional,
        ArithmeticCommand: _arithmetic,
        If: _if,
        Pipeline: _pipeline,
        Background: _background,
        Subshell: _subshell,
        Coprocess: _coprocess,
        Loop: Loops.run_loop,
        ArithmeticFor: Loops.run_arithmetic_for,
        For: Loops.run_for,
        Select: Loops.run_select,
        Case: _case,
        FunctionDefinition: _define,
        Redirected: _redirected,
        Simple: Loops.simple,
    }


def _file_substitution(body: Sequence) -> Redirection | None:
    """The redirection of ``$(<file)``."""
    if len(body.commands) != 1 or not isinstance(one := body.commands[0], Simple):
        return None
    if one.words or one.assignments or len(one.redirections) != 1:
        return None
    redirection = one.redirections[0]
    return redirection if redirection.operator == "<" and redirection.descriptor in (None, 0) else None
