"""The abstract interpreter for ``cmd``: variables are put in, commands run, programs start.

All variables of ``cmd`` are those of its environment. ``%NAME%`` within brackets, and within one line, has the value
that it had before: the whole is read, and expanded, at once.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.cmd.builtins import BUILTINS
from runner_e2e.lint.languages.cmd.expansion import NUMBER, Expansion, Word
from runner_e2e.lint.languages.cmd.parser import (
    Chain,
    For,
    Group,
    If,
    Label,
    Node,
    Pipe,
    Redirection,
    Simple,
    parse,
    shifted,
)
from runner_e2e.lint.languages.cmd.texts import columns
from runner_e2e.lint.languages.pieces import joined, mapped
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.values import EMPTY, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from runner_e2e.lint.languages.process import Saved

__all__ = ["Interpreter"]

_MAX_CALLS = 16


class Interpreter(Expansion):
    """Runs one script."""

    def run_program(self) -> None:
        """Runs the source of the process."""
        nodes, whole = parse(self.text)
        if not whole:
            self.process.give_up(0, min(1, len(self.text)), "nested too deeply to follow")
        self._collect(nodes)
        self.run_lines(nodes)
        if self.live:
            self.process.merge(self.ends)
        elif self.ends:
            self.process.restore(self.ends[0])
            self.process.merge(self.ends[1:])

    def _collect(self, nodes: list[Node]) -> None:
        for index, node in enumerate(nodes):
            if isinstance(node, Label):
                self.labels.setdefault(node.name, nodes[index + 1 :])

    def run_lines(self, nodes: Sequence[Node]) -> None:
        """See :meth:`Expansion.run_lines`."""
        for node in nodes:
            if not self.live:
                return
            self.snapshot = self._environment()
            self.run(node)

    # --- output

    def emit(self, value: Value, start: int, end: int) -> None:
        """See :meth:`Expansion.emit`."""
        sink = self.sinks[-1]
        if sink is None:
            self.process.print(value, start, end)
        elif len(sink) < 512:
            sink.append(value)

    def captured(self, run: Callable[[], None]) -> Value:
        """What *run* writes."""
        sink: list[Value] = []
        self.sinks.append(sink)
        try:
            run()
        finally:
            self.sinks.pop()
        return joined(sink, EMPTY)

    @contextmanager
    def redirected(self, redirections: Sequence[Redirection], start: int, end: int) -> Iterator[None]:
        """While it lasts, output goes to a file, and input comes from one."""
        files = [one for one in redirections if not one.merged and one.number == 1 and one.operator != "<"]
        sources = [one for one in redirections if one.operator == "<" and not one.merged]
        before = self.input
        for one in sources:
            self.input = self.process.read_file(self.expanded(one.start, one.end, quotes=False))
        if not files:
            yield
            self.input = before
            return
        sink: list[Value] = []
        self.sinks.append(sink)
        try:
            yield
        finally:
            self.sinks.pop()
            self.input = before
        total = joined(sink, EMPTY)
        for one in files:
            path = self.expanded(one.start, one.end, quotes=False)
            name = (path.constant or "").lower()
            if name == "con":
                self.process.print(total, start, end)
            elif name != "nul":
                path = mapped(path, lambda piece: piece.replace("\\", "/"))
                self.process.write_file(path, total, append=one.operator == ">>", start=start, end=end)

    # --- control

    def run(self, node: Node) -> None:
        """Runs one command."""
        if not self.live:
            return
        self.process.tick()
        self._runners[type(node)](self, node)

    def split(self, ways: Sequence[Callable[[], None]]) -> None:
        """Goes each of *ways* from here, and on from wherever they end."""
        before = self.process.save()
        ended: list[Saved] = []
        for way in ways:
            self.process.restore(before)
            self.live = True
            way()
            if self.live:
                ended.append(self.process.save())
        self.live = bool(ended)
        self.process.restore(ended[0] if ended else before)
        self.process.merge(ended[1:])

    def _group(self, node: Group) -> None:
        with self.redirected(node.redirections, node.start, node.end):
            for one in node.body:
                self.run(one)

    def _chain(self, node: Chain) -> None:
        self.run(node.left)
        if node.operator == "&" or not self.live:
            self.run(node.right)
        else:
            self.split((lambda: self.run(node.right), lambda: None))

    def _pipe(self, node: Pipe) -> None:
        before = self.input
        for stage in node.stages[:-1]:
            self.input = self.captured(lambda stage=stage: self.run(stage))  # type: ignore[misc]
        self.run(node.stages[-1])
        self.input = before

    def _label(self, _node: Label) -> None:
        return

    def _if(self, node: If) -> None:
        truth = self._truth(*node.condition)
        if truth is not None and node.negated:
            truth = not truth
        yes, no = node.yes, node.no
        if truth is not None:
            taken = yes if truth else no
            if taken is not None:
                self.run(taken)
            return
        self.split(
            (
                lambda: self.run(yes) if yes is not None else None,
                lambda: self.run(no) if no is not None else None,
            )
        )

    def _truth(self, start: int, end: int) -> bool | None:
        text = self.text[start:end]
        if "==" not in text:
            return None
        at = start + text.index("==")
        left = self.expanded(start, at).constant
        right = self.expanded(at + 2, end).constant
        if left is None or right is None:
            return None
        one, other = left.strip(), right.strip()
        return True if one == other else None if one.lower() == other.lower() else False

    def _for(self, node: For) -> None:
        values, exact = self._items(node)
        body = node.body
        if body is None:
            return
        before = dict(self.loop_variables)
        for row in values:
            for index, value in enumerate(row):
                letter = chr(ord(node.variable) + index)
                self.loop_variables[letter] = self.process.step(value, *node.items, f"taken by %{letter}")
            if exact:
                self.run(body)
            else:
                self.split((lambda: self.run(body), lambda: None))
        self.loop_variables = before

    def _items(self, node: For) -> tuple[list[list[Value]], bool]:
        """What the variables of a ``for`` hold in each round, and whether there are just these rounds."""
        start, end = node.items
        if node.switch == "l":
            return [[NUMBER]], False
        if node.switch != "f":
            words = list(self.words_of(start, end))
            known = not any("*" in (word.value.constant or "") or "?" in (word.value.constant or "") for word in words)
            return [[word.value] for word in words], known and node.switch == ""
        content = self._for_text(start, end, node.options)
        taken = columns(content, node.options)
        return ([taken] if taken else []), False

    def _for_text(self, start: int, end: int, options: str) -> Value:
        text = self.text[start:end]
        begin = start + len(text) - len(text.lstrip())
        stripped = text.strip()
        last = begin + len(stripped)
        mark = "`" if "usebackq" in options.lower() else "'"
        if stripped.startswith(mark) and stripped.endswith(mark) and len(stripped) > 1:
            nodes, _ = parse(self.text[begin + 1 : last - 1])
            inner = shifted(nodes, begin + 1)

            def run() -> None:
                for one in inner:
                    self.run(one)

            return self.captured(run)
        literal = "'" if mark == "`" else '"'
        if stripped.startswith(literal):
            return self.expanded(begin + 1, last - 1)
        path = self.expanded(begin, last, quotes=False)
        return self.process.read_file(mapped(path, lambda piece: piece.replace("\\", "/")))

    # --- commands

    def _simple(self, node: Simple) -> None:
        with self.redirected(node.redirections, node.start, node.end):
            self._command(node)

    def _command(self, node: Simple) -> None:
        start, end = node.parts[0]
        text = self.text[start:end]
        start += len(text) - len(text.lstrip(" \t@,;="))
        match = re.compile(r"([A-Za-z]+)(?=[\s.:/\\;,=(\"]|$)").match(self.text, start, end)
        name = match[1].lower() if match is not None else ""
        builtin = BUILTINS.get(name)
        if builtin is not None and match is not None and self._is_builtin(match.end(), name):
            builtin(self, node, match.end(), end)
            return
        self.start(node, self.words([(start, end), *node.parts[1:]]))

    def _is_builtin(self, offset: int, name: str) -> bool:
        """``echo.`` and ``cd..`` are builtins, ``echo.exe`` is none."""
        following = self.text[offset : offset + 1]
        if following in {".", "/", "\\", ":"} and name != "echo" and name not in {"cd", "chdir", "md", "rd"}:
            return following == "/" or (following == ":" and name == "goto")
        return not re.compile(r"\.(?:exe|com|bat|cmd)\b", re.IGNORECASE).match(self.text, offset)

    def start(self, node: Simple, words: Sequence[Word]) -> None:
        """See :meth:`Expansion.start`."""
        if not words:
            return
        name = (words[0].value.constant or "").replace("\\", "/")
        if name.lower().endswith((".bat", ".cmd")) and self.run_script(name, words[1:], returns=False):
            return
        arguments = [Argument(word.value, word.start, word.end) for word in words]
        if _is_batch(words[0].value):  # it runs in this process, and may start others
            launch = Launch(start=node.start, end=node.end)
            for one in arguments[1:]:
                possible = replace(one, value=one.value.weakened(Confidence.LOW))
                self.process.leak(possible, launch, command=name or "a script", advice="possible")
            return
        if name:
            arguments[0] = Argument(
                Value.literal(re.sub(r"\.exe$", "", name, flags=re.IGNORECASE)), words[0].start, words[0].end
            )
        inherits = self.sinks[-1] is None
        given = self.input if self.input != EMPTY else None
        launch = Launch(
            start=node.start, end=node.end, standard_input=given, output="inherit" if inherits else "capture"
        )
        output = self.process.start(arguments, launch)
        if not inherits and output != EMPTY:
            self.emit(output, node.start, node.end)

    def run_script(self, name: str, words: Sequence[Word], *, returns: bool) -> bool:
        """See :meth:`Expansion.run_script`."""
        source = self.process.program_at(name)
        if source is None:
            return False
        if self.depth < _MAX_CALLS:
            with self.process.within(source):
                self.within(lambda: self.run_lines(self._loaded()), [word.value for word in words])
        if not returns:
            self.ends.append(self.process.save())
            self.live = False
        return True

    def _loaded(self) -> list[Node]:
        nodes, _ = parse(self.text)
        self.labels = {}
        self._collect(nodes)
        return nodes

    def within(self, run: Callable[[], None], arguments: Sequence[Value]) -> None:
        """See :meth:`Expansion.within`."""
        saved = self.arguments, self.labels, self.loop_variables, self.snapshot, self.ends
        self.arguments, self.loop_variables, self.ends = tuple(arguments), {}, []
        self.depth += 1
        run()
        ended = [*self.ends, *([self.process.save()] if self.live else [])]
        self.depth -= 1
        self.arguments, self.labels, self.loop_variables, self.snapshot, self.ends = saved
        if ended:
            self.process.restore(ended[0])
            self.process.merge(ended[1:])
        self.live = True

    _runners: Mapping[type, Callable[..., None]] = {
        Simple: _simple,
        Group: _group,
        If: _if,
        For: _for,
        Pipe: _pipe,
        Chain: _chain,
        Label: _label,
    }


def _is_batch(name: Value) -> bool:
    """Whether *name* is that of a batch file, whatever folder it is in."""
    lasts = [text[-1] if text else "" for text in name.texts]
    return all(isinstance(last, str) and last.lower().endswith((".bat", ".cmd")) for last in lasts)
