"""Simple commands: assignments, redirections, and what a name means: function, builtin or program."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace

from runner_e2e.lint.shell import builtins, programs
from runner_e2e.lint.shell.expansion import expand_value, expand_words
from runner_e2e.lint.shell.filesystem import (
    named_channel,
    path_keys,
    put_file,
    read_file,
)
from runner_e2e.lint.shell.ir import Assignment, Command, Part, Redirection, ShellSyntaxError, Simple, Word
from runner_e2e.lint.shell.machine import Invocation, Machine, ShellStart
from runner_e2e.lint.shell.parameters import assign_element, assign_scalar, name_of_reference
from runner_e2e.lint.shell.parser import CommandParser, parse
from runner_e2e.lint.shell.results import TracePoint
from runner_e2e.lint.shell.state import NULL, Channel, Field, Items, State, Variable, sources
from runner_e2e.lint.shell.tables import advice
from runner_e2e.lint.shell.tables import builtins as builtin_names
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Text, Value, join

__all__ = ["Commands", "weakened"]

# What bash has built in and no system has as a program: in a POSIX shell it is not found.
_NO_PROGRAMS = (builtin_names("bash") - builtin_names("sh")) | {"[[", "]]", "function", "coproc", "select"}
_ECHOES = frozenset({"echo", "printf"})
_POSIX_SPECIAL = frozenset({"eval", "exec", "exit", "return", "set", "shift", "trap", "unset", "export", "readonly"})


class Commands(Machine):
    """Runs simple commands; the control flow around them is the interpreter's."""

    def simple(self, command: Simple, state: State) -> None:
        """Runs one simple command."""
        if self.options.trace:
            self._trace(command, state)
        command = self._without_aliases(command, state)
        if "DEBUG" in state.traps:
            self._run_debug_trap(state)
        readers, self.readers = self.readers, []
        state.status = 0
        words = command.words
        fields = expand_words(self, state, (word for word in words if word.assignment is None))
        if state.dead:
            self.readers = readers
            return
        if any(word.assignment is not None for word in words):
            fields = self._declared(command, fields)
        if "x" in state.options:
            self.trace_expansion(fields, state, command)
        if not fields:
            self._assign_only(command, state)
        else:
            self._run(command, fields, state)
        if not state.dead:
            self.finish(state)
        self.readers = readers
        self.after(state)

    def finish(self, state: State) -> None:
        """Lets what waits for the output of a command read it."""
        readers, self.readers = self.readers, []
        for key, body in readers:
            buffer = self.fresh()
            put_file(state, buffer, state.files.pop(key, EMPTY), append_to=False)
            status = state.status
            self.subshell(body, state, {0: Channel("stream", buffer)})
            state.status = status
        for coprocess, into, out in self.coprocesses:
            if state.files.get(into, EMPTY) != EMPTY:
                buffer = self.fresh()
                state.files[buffer] = state.files[into]
                state.files[into] = EMPTY
                self.subshell(coprocess, state, {0: Channel("stream", buffer), 1: Channel("file", out)})

    def after(self, state: State) -> None:
        """``errexit``: a command that fails for sure ends the shell; one that may fail ends it perhaps."""
        if state.dead or self.conditions or state.status == 0:
            return
        if "ERR" in state.traps:
            self._run_error_trap(state)
        if "e" not in state.options:
            return
        if state.status is None:
            if "EXIT" in state.traps:
                self.suspects.append(state.copy())
            state.status = 0
            return
        self.exits.append(state.copy())
        state.dead = True

    def run_trap(self, trap: Value, state: State) -> None:
        """Runs the commands of a trap."""
        at = self.trap_sites.get(trap)
        if at is not None:
            self.run_text(trap, state, (at.start, at.end))

    def _run_debug_trap(self, state: State) -> None:
        trap = state.traps.pop("DEBUG")
        status, last = state.status, state.last_argument
        self.run_trap(trap, state)
        state.traps["DEBUG"] = trap
        state.status, state.last_argument = status, last

    def _run_error_trap(self, state: State) -> None:
        """The ERR trap runs when a command has failed; when it only may have, so may the trap."""
        trap = state.traps.pop("ERR")
        status, certain = state.status, state.status is not None
        where = state if certain else weakened(state)
        self.run_trap(trap, where)
        state.traps["ERR"] = trap
        state.status = status

    def _trace(self, command: Simple, state: State) -> None:
        variables = {
            name: variable.items.everything() if variable.items is not None else variable.plain()
            for name, variable in state.visible().items()
        }
        self.found.trace.append(
            TracePoint(origin=self.source.origin, start=command.start, end=command.end, variables=variables)
        )

    def trace_expansion(self, fields: tuple[Field, ...], state: State, command: Command) -> None:
        """``set -x`` writes the expanded command to the log, after the expanded ``PS4``."""
        if "x" not in state.options:
            return
        prompt = state.lookup("PS4")
        if prompt is not None and any("$" in text or "`" in text for text in prompt.plain().constants or ()):
            self._expand_prompt(prompt.plain(), state, command)
        if state.descriptors.get(2, NULL).kind == "log":
            value = join(one.value for one in fields)
            self.print(value, state, start=command.start, end=command.end, target="xtrace")

    def _expand_prompt(self, prompt: Value, state: State, command: Command) -> None:
        options, state.options = state.options, state.options - {"x"}
        at = self.source.origin.text.find("PS4=")
        span = (at, len(self.source.origin.text)) if at >= 0 else (command.start, command.end)
        value = self.expand_again(prompt, state.copy(), span)
        self.print(value, state, start=command.start, end=command.end, target="xtrace")
        state.options = options

    def expand_again(self, text: Value, state: State, at: tuple[int, int]) -> Value:
        """See :meth:`Machine.expand_again`."""
        found: list[Value] = []
        for one in text.texts:
            source = self.source_of(one, at)
            parts: list[Part] = []
            try:
                CommandParser(source, bash=self.bash).quoted_parts(parts, stop="")
            except ShellSyntaxError:
                continue
            saved, self.source = self.source, source
            found.append(expand_value(self, state, Word(*at, tuple(parts))))
            self.source = saved
        return join(found) if found else UNKNOWN

    def _without_aliases(self, command: Simple, state: State) -> Simple:
        if not state.aliases or not command.words or (self.bash and "expand_aliases" not in state.options):
            return command
        seen: set[str] = set()
        words = command.words
        assignments = command.assignments
        redirections = command.redirections
        while words and (name := words[0].static) in state.aliases and name not in seen and name is not None:
            seen.add(name)
            text = state.aliases[name]
            source = Source(self.source.origin, text, (), [words[0].start] * len(text), [words[0].end] * len(text))
            program, error = parse(source, bash=self.bash)
            if error is not None or not program.commands or not isinstance(last := program.commands[-1], Simple):
                return command
            for earlier in program.commands[:-1]:
                self.execute(earlier, state)
            words = (*last.words, *words[1:])
            assignments = (*assignments, *last.assignments)
            redirections = (*last.redirections, *redirections)
        return replace(command, words=words, assignments=assignments, redirections=redirections)

    def _declared(self, command: Simple, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """Puts the ``name=value`` arguments of a declaration back as fields that the builtin recognises."""
        self.declarations = [word.assignment for word in command.words if word.assignment is not None]
        marked = [Field(Value.literal(one.name + "="), "assignment", one.start, one.end) for one in self.declarations]
        return (*fields, *marked)

    # --- assignments

    def _assign_only(self, command: Simple, state: State) -> None:
        if command.redirections:
            outer = dict(state.descriptors)
            self.redirect(command.redirections, state)
            state.descriptors = outer
        for assignment in command.assignments:
            self.assign(assignment, state)
        if command.assignments:
            state.last_argument = EMPTY
            self._trace_assignments(command, state)

    def _trace_assignments(self, command: Simple, state: State) -> None:
        if "x" in state.options:
            for one in command.assignments:
                variable = state.lookup(one.name)
                if variable is not None:
                    self.print(variable.plain(), state, start=one.start, end=one.end, target="xtrace")

    def assign(self, assignment: Assignment, state: State) -> None:
        """Carries out one assignment."""
        name = name_of_reference(state, assignment.name)
        note = f"assigned to {name}"
        if assignment.elements is not None:
            self._assign_array(assignment, name, state, note)
            return
        value = expand_value(self, state, assignment.value)
        value = self.step(value, assignment.start, assignment.end, note)
        match = re.fullmatch(r"(\w+)\[(.*)\]", name, re.DOTALL)
        if assignment.subscript is not None:
            key = expand_value(self, state, assignment.subscript)
            assign_element(self, state, (name, key), value, append=assignment.append)
        elif match is not None:
            assign_element(self, state, (match[1], Value.literal(match[2])), value, append=assignment.append)
        else:
            before = state.lookup(name)
            if assignment.append and before is not None and "i" in before.attributes:
                value = UNKNOWN
                assign_scalar(state, name, value)
            else:
                assign_scalar(state, name, value, append=assignment.append)

    def _assign_array(self, assignment: Assignment, name: str, state: State, note: str) -> None:
        before = state.lookup(name) or Variable()
        items = before.as_items() if assignment.append and state.lookup(name) is not None else Items()
        plain: list[Value] = []
        keyed = "A" in before.attributes
        for element in assignment.elements or ():
            if element.key is not None:
                key = expand_value(self, state, element.key)
                value = self.step(expand_value(self, state, element.value), assignment.start, assignment.end, note)
                state.assign(name, replace(before, items=items, unset=False, value=EMPTY))
                assign_element(self, state, (name, key), value)
                items = (state.lookup(name) or before).as_items()
                continue
            for one in expand_words(self, state, (element.value,)):
                value = self.step(one.value, assignment.start, assignment.end, note)
                index = items.next_index()
                if keyed:
                    plain.append(value)
                elif index is None or one.kind == "list":
                    items = items.put_somewhere(value)
                else:
                    items = items.put(str(index), value)
        for key, value in zip(plain[::2], [*plain[1::2], EMPTY], strict=False):
            constant = key.constant
            items = items.put_somewhere(value, key) if constant is None else items.put(constant, value)
        exported = before.exported
        state.assign(name, Variable(EMPTY, False, items, exported, before.attributes))

    # --- resolution

    def _run(self, command: Simple, fields: tuple[Field, ...], state: State) -> None:
        name = fields[0].value.constant
        persistent = name == "exec" and len(fields) == 1
        outer = dict(state.descriptors)
        external = name is not None and self._is_program(name, state)
        self.redirect(command.redirections, state, external=external)
        environment = self._prefix(command, state)
        last = fields[-1].value if fields[-1].kind != "list" or len(fields) > 1 else join([fields[-1].value, EMPTY])
        self.call(Invocation(fields, state, command, environment))
        state.last_argument = last
        if not persistent:
            state.descriptors = outer
        for value in environment.values():
            if "x" in state.options:
                self.print(value, state, start=command.start, end=command.end, target="xtrace")

    def _prefix(self, command: Simple, state: State) -> dict[str, Value]:
        """``X=value`` before a command: for the command alone; the words were expanded before."""
        environment: dict[str, Value] = {}
        for one in command.assignments:
            value = expand_value(self, state, one.value)
            if one.append:
                before = state.lookup(one.name)
                value = (before.plain() if before is not None else EMPTY) + value
            environment[one.name] = self.step(value, one.start, one.end, f"assigned to {one.name} for the command")
        return environment

    def _is_program(self, name: str, state: State) -> bool:
        if "/" in name:
            return True
        return name not in state.functions and (name not in builtin_names(self._dialect) or name in state.disabled)

    @property
    def _dialect(self) -> str:
        return "bash" if self.bash else "sh"

    def call(self, call: Invocation) -> None:
        """See :meth:`Machine.call`."""
        fields, state = call.fields, call.state
        names = fields[0].value.constants
        if names is None or fields[0].kind == "list":
            self.start(call.running(fields, {**state.exported(), **call.environment}))
            return
        ends: list[State] = []
        for name in dict.fromkeys(names):
            inner = state if len(names) == 1 else state.copy()
            one = fields if len(names) == 1 else (replace(fields[0], value=Value.literal(name)), *fields[1:])
            if not name and len(names) > 1:  # unquoted and empty: it is not there, the next field is the command
                if fields[1:]:
                    self.call(Invocation(fields[1:], inner, call.at, call.environment))
            else:
                self._call_named(name, Invocation(one, inner, call.at, call.environment))
            ends.append(inner)
        if len(ends) > 1:
            self.settle(state, ends)

    def settle(self, state: State, ends: list[State]) -> None:
        """*state* becomes any of *ends*."""
        joined: State | None = None
        for one in ends:
            if not one.dead:
                joined = one if joined is None else joined.joined(one)
        if joined is None:
            state.dead = True
        else:
            state.become(joined)

    def _call_named(self, name: str, call: Invocation) -> None:
        state = call.state
        function = name in state.functions and (self.bash or name not in _POSIX_SPECIAL)
        if not function and self._is_program(name, state):
            self.start(call.running(call.fields, {**state.exported(), **call.environment}))
            return
        depth = len(state.frames)
        if call.environment:
            state.frames.append({key: Variable(value, exported=True) for key, value in call.environment.items()})
        if function:
            self.call_function(name, call)
        else:
            self.call_builtin(name, call)
        if call.environment and len(state.frames) > depth:
            del state.frames[depth]

    @abstractmethod
    def call_function(self, name: str, call: Invocation) -> None:
        """Runs the functions that *name* may mean."""

    def call_builtin(self, name: str, call: Invocation) -> None:
        """See :meth:`Machine.call_builtin`."""
        builtins.run(self, name, call)

    def start(self, call: Invocation) -> None:
        """See :meth:`Machine.start`."""
        self.tick()
        fields = call.fields
        name = fields[0].value.constant
        if name in _NO_PROGRAMS:
            call.state.status = 127
            return
        shown = name if name is not None else self.source.origin.text[fields[0].start : fields[0].end] or "a program"
        begun = call.state.reading.begun
        programs.run(self, call)
        if begun and call.state.reading.begun == begun and name not in _ECHOES:
            # What a program that is not known prints ends its last line, most likely.
            channel = call.state.descriptors.get(1, NULL)
            call.state.reading = replace(call.state.reading, begun=begun - {channel.key})
        if name in self.defined and name not in call.state.functions:
            # A function that is not defined here: a program of its name is not likely.
            fields = tuple(replace(one, value=one.value.weakened(Confidence.LOW)) for one in fields)
        elif name is None and "/" not in shown and fields[0].value.taints:
            # A value that is looked up as a program: it is in no argument vector unless it names one.
            fields = (replace(fields[0], value=fields[0].value.weakened(Confidence.LOW)), *fields[1:])
        for one in fields:
            self.leak(one, call, command=shown.rsplit("/", 1)[-1] or shown, advice=advice(shown))

    # --- redirections

    def redirect(self, redirections: tuple[Redirection, ...], state: State, *, external: bool = False) -> None:
        """See :meth:`Machine.redirect`."""
        for one in redirections:
            self._redirect(one, state, external=external)

    def _redirect(self, one: Redirection, state: State, *, external: bool) -> None:
        operator = one.operator
        number = one.descriptor
        if isinstance(number, str):
            chosen = 10 + self.fresh()
            assign_scalar(state, number, Value.literal(str(chosen)))
            number = chosen
        if operator in ("<<", "<<-", "<<<"):
            value = expand_value(self, state, one.target)
            if operator == "<<<":
                value = value + Value.literal("\n")
            value = self.step(value, one.start, one.end, "standard input")
            channel = self.stream(value, state)
            self.input_spans[channel.key] = (one.target.start, one.target.end)
            state.descriptors[number or 0] = channel
            return
        target = self._target(one.target, state)
        if operator in ("<&", ">&"):
            self._duplicate(operator, number, target, state)
        elif operator in ("<", "<>"):
            state.descriptors[number or 0] = self._opened(target, one, state, external=external)
        else:
            channel = self._created(target, state, append=operator in (">>", "&>>"))
            if operator in ("&>", "&>>"):
                state.descriptors[1] = state.descriptors[2] = channel
            else:
                state.descriptors[1 if number is None else number] = channel

    def _target(self, word: Word, state: State) -> Value:
        fields = expand_words(self, state, (word,)) if self.bash else ()
        if len(fields) == 1 and fields[0].kind == "one":
            return fields[0].value
        return expand_value(self, state, word)

    def stream(self, value: Value, state: State) -> Channel:
        """A channel to read *value* from."""
        key = self.fresh()
        state.files[key] = value
        return Channel("stream", key)

    def _opened(self, target: Value, one: Redirection, state: State, *, external: bool) -> Channel:
        for text in path_keys(target, state):
            channel = named_channel(text, state)
            if channel is not None:
                return channel
            if external and text == ("/proc/self/environ",):
                # Opened by the shell's child, whose memory is replaced by the exec: nothing can be read.
                return self.stream(EMPTY, state)
        value = read_file(self, state, target, None)
        return self.stream(self.step(value, one.start, one.end, "read from a file"), state)

    def _created(self, target: Value, state: State, *, append: bool) -> Channel:
        keys = path_keys(target, state)
        key: Text = keys[0] if len(keys) == 1 else (Hole(target.taints),)
        channel = named_channel(key, state)
        if channel is not None:
            return channel
        if not append:
            put_file(state, key, EMPTY, append_to=False)
        elif key not in state.files:
            put_file(state, key, EMPTY, append_to=True)
        return Channel("file", key)

    def _duplicate(self, operator: str, number: int | None, target: Value, state: State) -> None:
        text = target.constant
        own = (0 if operator == "<&" else 1) if number is None else number
        if text is None:
            channels = [channel for key, channel in state.descriptors.items() if key > 2]
            state.descriptors[own] = channels[-1] if channels else NULL
        elif text == "-":
            state.descriptors[own] = NULL
        elif text.rstrip("-").isdigit():
            state.descriptors[own] = state.descriptors.get(int(text.rstrip("-")), NULL)
        else:
            channel = self._created(target, state, append=False)
            state.descriptors[own] = channel
            if number is None:
                state.descriptors[2] = channel

    # --- program text

    def source_of(self, text: Text, span: tuple[int, int]) -> Source:
        """See :meth:`Machine.source_of`: what stands within *span* word for word is placed exactly."""
        source = Source.of_text(text, self.source.origin, *span)
        origin = self.source.origin.text
        starts: list[int] = []
        ends: list[int] = []
        offset = span[0]
        for piece in text:
            if isinstance(piece, Hole):  # it stands between what is known before and behind it
                starts.append(offset)
                ends.append(_without_quote(origin, *span) if offset > span[0] else span[1])
                continue
            at = origin.find(piece, offset, span[1])
            if at < 0:
                return source
            if ends and ends[-1] > at:
                ends[-1] = at
            offset = at + len(piece)
            starts.extend(range(at, offset))
            ends.extend(range(at + 1, offset + 1))
        return Source(source.origin, source.text, source.inserted, starts, ends)

    def run_shell(self, program: Value | Source, call: Invocation, start: ShellStart) -> None:
        """See :meth:`Machine.run_shell`."""
        sources = [program] if isinstance(program, Source) else [self.source_of(t, start.span) for t in program.texts]
        ends: list[State] = []
        for source in sources:
            inner = _new_shell(call, start)
            saved = self.bash, self.initial_environment, self.calls, self.conditions, self.coprocesses
            self.bash, self.initial_environment = start.dialect == "bash", call.environment
            self.calls, self.conditions, self.coprocesses = [], 0, []
            try:
                ended = self.process(source, inner)
            finally:
                self.bash, self.initial_environment, self.calls, self.conditions, self.coprocesses = saved
            if ended is not None:
                ends.append(ended)
        state = call.state
        if not ends:
            state.status = None
            return
        joined = ends[0]
        for one in ends[1:]:
            joined = joined.joined(one)
        state.files, state.command_files, state.status = joined.files, joined.command_files, joined.status
        state.listen(joined)

    @abstractmethod
    def process(self, source: Source, inner: State) -> State | None:
        """Runs *source* as a process of its own; the state at its end."""


def _without_quote(text: str, start: int, end: int) -> int:
    """The end of what stands between quotes at ``[start, end)``."""
    return end - 1 if end - start > 1 and text[start] == text[end - 1] in "\"'`" else end


def _new_shell(call: Invocation, start: ShellStart) -> State:
    state = call.state
    variables = {key: Variable(value, exported=True) for key, value in call.environment.items()}
    if start.name:
        variables["0"] = Variable(Value.literal(start.name))
        if start.dialect == "bash":
            variables["BASH_SOURCE"] = sources(start.name)
    return State(
        frames=[variables],
        positional=start.positional,
        functions={key: value for key, value in state.functions.items() if key in state.exported_functions},
        options=start.flags,
        files=dict(state.files),
        command_files=dict(state.command_files),
        descriptors=dict(state.descriptors),
        directory=state.directory,
        exported_functions=state.exported_functions,
        masks=state.masks,
        reading=state.reading,
    )


def weakened(state: State) -> State:
    """*state* with every value as one that is only possible."""
    weak = state.copy()
    for frame in weak.frames:
        for name, variable in frame.items():
            frame[name] = replace(variable, value=variable.value.weakened(Confidence.LOW))
    return weak
