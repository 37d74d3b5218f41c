"""Pipelines and commands: functions, cmdlets, scripts, programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.binding import Call, bound
from runner_e2e.lint.languages.powershell.cmdlets import ALIASES, CMDLETS
from runner_e2e.lint.languages.powershell.machine import MAX_CALLS, Word
from runner_e2e.lint.languages.powershell.parser import parse
from runner_e2e.lint.languages.powershell.syntax import (
    ArrayOf,
    Block,
    Command,
    Element,
    Expandable,
    Expression,
    Pipeline,
    Redirection,
    Text,
    Unary,
    Variable,
)
from runner_e2e.lint.languages.powershell.texts import joined
from runner_e2e.lint.languages.powershell.values import (
    Code,
    Items,
    Ps,
    Table,
    boolean,
    elements,
    listed,
    taints_of,
    text_of,
)
from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


from runner_e2e.lint.languages.powershell.evaluation import Evaluation

__all__ = ["Commands"]

_CMDLET = re.compile(r"[A-Za-z]+-[A-Za-z]\w*")
_PERCENT = re.compile(r"%([A-Za-z_]\w*)%")


class Commands(Evaluation):
    """Runs pipelines."""

    # --- pipelines

    def pipeline(self, node: Pipeline) -> None:
        """Runs a pipeline, and what is chained to it."""
        given: list[Ps] | None = None
        last = len(node.stages) - 1
        for index, stage in enumerate(node.stages):
            if not self.live:
                return
            redirections = node.redirections
            if isinstance(stage, Command):
                redirections = (*stage.redirections, *redirections) if index == last else stage.redirections
            if index == last:
                self._stage(stage, given, redirections)
            else:
                before = given
                given = self.captured(lambda stage=stage, r=redirections, b=before: self._stage(stage, b, r))  # type: ignore[misc]
        for one in node.chained:
            self.split((lambda one=one: self.pipeline(one), lambda: None))  # type: ignore[misc]

    def _stage(
        self, stage: Command | Expression, given: list[Ps] | None, redirections: tuple[Redirection, ...]
    ) -> None:
        files = [one for one in redirections if one.target is not None and one.stream in {"1", "*"}]
        if not files:
            self._run_stage(stage, given, quiet=False)
            return
        values = self.captured(lambda: self._run_stage(stage, given, quiet=True))
        content = joined(listed(values), Value.literal("\n")) + (Value.literal("\n") if values else EMPTY)
        for one in files:
            if one.target is None:
                continue
            path = text_of(self.evaluate(one.target))
            if path != EMPTY:  # `$null`
                self.process.write_file(path, content, append=one.append, start=stage.start, end=stage.end)

    def _run_stage(self, stage: Command | Expression, given: list[Ps] | None, *, quiet: bool) -> None:
        if isinstance(stage, Command):
            self._command(stage, given, quiet=quiet)
            return
        value = self.evaluate(stage)
        if isinstance(stage, Unary) and stage.operator == "++":
            return
        if not self.live:
            return
        items, others = elements(value)
        if self.sinks[-1] is None or others is not None:
            if value != EMPTY:
                self.emit(value, stage.start, stage.end)
            return
        for item in items:
            if item != EMPTY or isinstance(stage, Text | Expandable | ArrayOf):
                self.emit(item, stage.start, stage.end)

    # --- commands

    def words_of(self, command_elements: Sequence[Element]) -> list[Word]:
        """The words of a command, evaluated."""
        found: list[Word] = []
        for one in command_elements:
            if one.parameter == "%" and isinstance(one.value, Text):
                found += self._verbatim(one.value)
            elif one.value is None:
                found.append(Word(None, one.start, one.end, one.parameter))
            else:
                splat = isinstance(one.value, Variable) and one.value.splat
                places: tuple[tuple[int, int], ...] = ()
                if isinstance(one.value, ArrayOf):
                    places = tuple((item.start, item.end) for item in one.value.items)
                found.append(Word(self.evaluate(one.value), one.start, one.end, one.parameter, splat, places))
        return found

    def _verbatim(self, node: Text) -> list[Word]:
        """What follows ``--%``: words between blanks, ``%NAME%`` expanded."""
        found: list[Word] = []
        for match in re.finditer(r"\S+", node.text):
            total = EMPTY
            offset = 0
            for name in _PERCENT.finditer(match[0]):
                total = (
                    total
                    + self.process.source.value_in(match[0][offset : name.start()])
                    + self.environment_variable(name[1])
                )
                offset = name.end()
            found.append(Word(total + self.process.source.value_in(match[0][offset:]), node.start, node.end))
        return found

    def _command(self, node: Command, given: list[Ps] | None, *, quiet: bool) -> None:
        if isinstance(node.name, Block):
            target: Ps = Code(node.name, self.process.source)
        else:
            target = self.evaluate(node.name)
        words = self.words_of(node.elements)
        if not self.live:
            return
        if isinstance(target, Code):
            with_source = target.source
            assert isinstance(with_source, Source)
            with self.process.within(with_source):
                self.call_block(target.block, words, given)
            return
        text = text_of(target)
        names = text.constants
        if names is None or len(names) != 1:
            if _is_script(text):  # a script runs in this process
                self.possible("a script that is not known", words, node.start, node.end)
            else:
                self._native(node, text, words, given, quiet=quiet)
            return
        self._named(node, names[0], words, given, quiet=quiet)

    def _named(self, node: Command, name: str, words: list[Word], given: list[Ps] | None, *, quiet: bool) -> None:
        lower = name.lower()
        lower = ALIASES.get(lower, lower)
        function = self.functions.get(lower)
        if function is not None:
            block, source = function
            with self.process.within(source):
                self.call_block(block, words, given)
            return
        model = CMDLETS.get(lower)
        if model is not None:
            call = Call(self, bound(words, model, given), words, node.start, node.end)
            model.run(call)
        elif lower.endswith(".ps1"):
            self._script(node, name, words, given)
        elif _CMDLET.fullmatch(name):
            self.possible(name, words, node.start, node.end)
            self.emit(self.given_back(words), node.start, node.end)
        else:
            self._native(node, Value.literal(name), words, given, quiet=quiet)

    def _native(
        self, node: Command, name: Value, words: Sequence[Word], given: list[Ps] | None, *, quiet: bool
    ) -> None:
        """Starts a program."""
        arguments = [Argument(name, node.name.start, node.name.end)]
        for word in words:
            arguments += self._code(word) if isinstance(word.value, Code) else _arguments(word)
        text = None
        if given is not None:
            text = joined(listed(given), Value.literal("\n"))
        inherits = self.sinks[-1] is None and not quiet
        launch = Launch(
            start=node.start,
            end=node.end,
            standard_input=text,
            output="inherit" if inherits else "capture",
        )
        output = self.process.start(arguments, launch)
        if not inherits and output != EMPTY:
            self.emit(_without_newline(output), node.start, node.end)

    def _code(self, word: Word) -> list[Argument]:
        """A block of code as an argument of ``pwsh -Command``: its text."""
        code = word.value
        assert isinstance(code, Code)
        assert isinstance(code.source, Source)
        text = code.source.text[code.block.start + 1 : code.block.end - 1]
        return [Argument(self.process.source.value_in(text), word.start, word.end)]

    def _script(self, node: Command, name: str, words: list[Word], given: list[Ps] | None) -> None:
        """A script of the repository: in this scope after a dot, in its own after ``&``."""
        path = name.replace("\\", "/")
        source = self.process.program_at(path)
        if source is None:
            self.possible(name, words, node.start, node.end)
            return
        block = parse(source.text)
        with self.process.within(source):
            if node.invocation == ".":
                self.run_all(block.body)
            else:
                self.call_block(block, words, given)

    # --- functions

    def call_block(
        self, block: Block, words: Sequence[Word], given: list[Ps] | None, *, item: Ps | None = None
    ) -> None:
        """See :meth:`Machine.call_block`."""
        if self.depth >= MAX_CALLS:
            if any(word.value is not None and taints_of(word.value) for word in words):
                self.process.give_up(block.start, block.end, "nested too deeply to follow")
            return
        self.depth += 1
        loops, self.loops = self.loops, []
        self.frames.append({})
        self.returns.append([])
        if item is not None:
            self.frames[-1]["_"] = self.frames[-1]["psitem"] = item
        if given is not None:
            self.frames[-1]["input"] = Items(tuple(given))
        self.parameters(block, words)
        self.run_all(block.body)
        ended = [*self.returns.pop(), *([self.save()] if self.live else [])]
        self.join(ended)
        self.frames.pop()
        self.loops = loops
        self.depth -= 1

    def parameters(self, block: Block, words: Sequence[Word]) -> None:
        """Gives the words of a call to the parameters of a block."""
        frame = self.frames[-1]
        waiting = [name.lower() for name, _ in block.parameters]
        named, plain = _by_name(words, tuple(waiting))
        frame.update(named)
        waiting = [name for name in waiting if name not in named]
        count = len(waiting)
        frame.update(zip(waiting, plain, strict=False))
        for name, default in block.parameters:
            if name.lower() in waiting[len(plain) :]:
                frame[name.lower()] = self.evaluate(default) if default is not None else EMPTY
        if plain[count:] or not block.parameters:
            frame["args"] = Items(tuple(plain[count:]))

    def run_text(self, text: Value, start: int, end: int) -> None:
        """See :meth:`Machine.run_text`."""
        if text.constants is None and not text.taints:
            return
        sources = self.process.source_of(text, start, end)

        def way(source: Source) -> Callable[[], None]:
            def run() -> None:
                with self.process.within(source):
                    self.run_all(parse(source.text).body)

            return run

        self.split([way(source) for source in sources])


def _by_name(words: Sequence[Word], names: tuple[str, ...]) -> tuple[dict[str, Ps], list[Ps]]:
    """The words that name one of the parameters *names*, and the others in their order."""
    named: dict[str, Ps] = {}
    plain: list[Ps] = []
    pending = ""
    for word in words:
        meant = next((name for name in names if word.parameter and name.startswith(word.parameter.lower())), "")
        if meant:
            named[meant] = boolean(True) if word.value is None else word.value
            pending = meant if word.value is None else ""
        elif word.splat and isinstance(word.value, Table):
            named.update({name: value for name, value in word.value.entries if name in names})
        elif word.value is None:
            plain.append(Value.literal(f"-{word.parameter}"))
        elif pending:
            named[pending], pending = word.value, ""
        else:
            plain.append(word.value)
    return named, plain


def _arguments(word: Word) -> list[Argument]:
    """The arguments that a word becomes for a program: an array several, a parameter its text."""
    if word.value is None:
        return [Argument(Value.literal(f"-{word.parameter}"), word.start, word.end)]
    if word.parameter and word.parameter != "%":
        value = Value.literal(f"-{word.parameter}:") + text_of(word.value)
        return [Argument(value, word.start, word.end)]
    if isinstance(word.value, Table) and word.splat:
        return [
            Argument(Value.literal(f"-{name}:") + text_of(value), word.start, word.end)
            for name, value in word.value.entries
        ]
    return word.arguments()


def _is_script(name: Value) -> bool:
    """Whether *name* is that of a script, whatever folder it is in."""
    lasts = [text[-1] if text else "" for text in name.texts]
    return all(isinstance(last, str) and last.lower().endswith(".ps1") for last in lasts)


def _without_newline(value: Value) -> Value:
    """Output as PowerShell hands it on: lines, without their ends."""
    texts = []
    for text in value.texts:
        last = text[-1] if text else ""
        if isinstance(last, str) and last.endswith("\n"):
            text = (*text[:-1], last.rstrip("\n")) if last.rstrip("\n") else text[:-1]  # noqa: PLW2901
        texts.append(text)
    return Value.any_of(texts)
