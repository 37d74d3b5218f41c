"""The abstract interpreter for PowerShell: programs and statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.commands import Commands
from runner_e2e.lint.languages.powershell.evaluation import Evaluation
from runner_e2e.lint.languages.powershell.machine import Word
from runner_e2e.lint.languages.powershell.parser import parse
from runner_e2e.lint.languages.powershell.syntax import (
    ArrayOf,
    Assign,
    Block,
    Cast,
    Exit,
    Expression,
    For,
    ForEach,
    Function,
    Gap,
    If,
    Index,
    Member,
    Phase,
    Pipeline,
    Statement,
    Switch,
    Text,
    Try,
    Variable,
    While,
)
from runner_e2e.lint.languages.powershell.texts import operate
from runner_e2e.lint.languages.powershell.values import (
    Code,
    Items,
    Ps,
    Table,
    either,
    elements,
    listed,
    shown,
    taints_of,
    text_of,
    truth_of,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.lint.languages.powershell.machine import State
    from runner_e2e.lint.languages.process import Process

__all__ = ["Interpreter"]

_KNOWN_ROUNDS = 32


class Interpreter(Commands):
    """Runs one program."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.arguments = [Word(one.value, 0, 0) for one in process.arguments]

    def run_program(self) -> None:
        """Runs the source of the process."""
        block = parse(self.process.source.text)
        self.frames[0]["args"] = Items(tuple(word.value for word in self.arguments if word.value is not None))
        self.parameters(block, self.arguments)
        self.run_all(block.body)
        states = [*self.returns[0], *([self.save()] if self.live else [])]
        self.join(states)
        if self.live:
            self.process.merge(self.ends)
        elif self.ends:
            self.process.restore(self.ends[0])
            self.process.merge(self.ends[1:])

    # --- statements

    def run_all(self, statements: Sequence[Statement]) -> None:
        """See :meth:`Machine.run_all`."""
        for statement in statements:  # functions can be called by blocks that stand before them
            if isinstance(statement, Function):
                self.functions[statement.name] = (statement.body, self.process.source)
        for statement in statements:
            if not self.live:
                return
            self.run(statement)

    def run(self, statement: Statement) -> None:
        """See :meth:`Machine.run`."""
        self.process.tick()
        self._runners[type(statement)](self, statement)

    def _assign(self, node: Assign) -> None:
        value = listed(self.captured(lambda: self.run(node.value)))
        if not self.live:
            return
        operator = node.operator[:-1]
        if operator:
            value = operate(operator, self.evaluate(node.target), value)
        self._store(node.target, value, node)

    def _store(self, target: Expression, value: Ps, node: Assign) -> None:
        if isinstance(target, Variable):
            if target.drive == "env":
                text = text_of(value)
                step = self.process.step(text, node.start, node.end, f"assigned to $env:{target.name}")
                self.process.set_variable(target.name, None if text == EMPTY else step)
            else:
                everywhere = target.drive in {"script", "global"}
                self.assign(target.name.lower(), value, node, everywhere=everywhere)
        elif isinstance(target, ArrayOf):
            items, others = elements(value)
            for index, one in enumerate(target.items):
                last = index == len(target.items) - 1
                rest = listed(items[index:], others) if last and len(items) > index + 1 else None
                found = rest if rest is not None else items[index] if index < len(items) else others or EMPTY
                self._store(one, found, node)
        elif isinstance(target, Index | Member):
            self._store_within(target, value, node)
        elif isinstance(target, Cast):
            self._store(target.operand, value, node)

    def _store_within(self, target: Index | Member, value: Ps, node: Assign) -> None:
        """``$table['key'] = value`` and ``$object.name = value``."""
        name = target.index if isinstance(target, Index) else target.name
        key = text_of(self.evaluate(name)).constant
        owner = self.evaluate(target.owner)
        if isinstance(target.owner, Variable) and target.owner.drive == "env":
            return
        if isinstance(owner, Table) or owner == EMPTY:
            table = owner if isinstance(owner, Table) else Table()
            if key is None:
                text = text_of(value)
                changed: Ps = Table(table.entries, text if table.others is None else table.others | text)
            else:
                changed = table.put(key, value)
        elif isinstance(owner, Items):
            text = Value.of(taints_of(value))
            changed = Items(owner.items, text if owner.others is None else owner.others | text)
        else:
            changed = either(owner, value)
        self._store(target.owner, changed, node)

    def _if(self, node: If) -> None:
        self._branch(list(node.branches), node.otherwise)

    def _branch(self, branches: list[tuple[Statement, Block]], otherwise: Block | None) -> None:
        if not branches:
            if otherwise is not None:
                self.run_all(otherwise.body)
            return
        condition, body = branches[0]
        truth = self._condition(condition)
        if not self.live:
            return
        if truth is True:
            self.run_all(body.body)
        elif truth is False:
            self._branch(branches[1:], otherwise)
        else:
            self.split((lambda: self.run_all(body.body), lambda: self._branch(branches[1:], otherwise)))

    def _condition(self, statement: Statement) -> bool | None:
        values = self.captured(lambda: self.run(statement))
        return truth_of(listed(values))

    def _loop(self, test: Callable[[], bool | None], body: Callable[[], None]) -> None:
        """Runs *body* while *test* says so: known rounds exactly, then two more from any of them."""
        self.loops.append([])
        leaves: list[State] = []
        known = unknown = 0
        while self.live:
            truth = test()
            if truth is True and known < _KNOWN_ROUNDS:
                known += 1
                body()
                continue
            leaves.append(self.save())
            if truth is False or unknown >= 2:
                break
            unknown += 1
            self.split((body, lambda: None))
        breaks = self.loops.pop()
        self.join([*leaves, *breaks])

    def _for_each(self, node: ForEach) -> None:
        items, others = elements(listed(self.captured(lambda: self.run(node.items))))
        waiting: list[Ps] = [item for item in items if item != EMPTY or len(items) > 1]
        name = node.variable.name.lower()

        def test() -> bool | None:
            if waiting:
                self.assign(name, waiting.pop(0), node.variable)
                return True
            if others is None:
                return False
            self.assign(name, others, node.variable)
            return None

        self._loop(test, lambda: self.run_all(node.body.body))

    def _for(self, node: For) -> None:
        if node.first is not None:
            self.captured(lambda: self.run(node.first) if node.first is not None else None)
        started = False

        def test() -> bool | None:
            nonlocal started
            if started and node.following is not None:
                self.captured(lambda: self.run(node.following) if node.following is not None else None)
            started = True
            return self._condition(node.condition) if node.condition is not None else None

        self._loop(test, lambda: self.run_all(node.body.body))

    def _while(self, node: While) -> None:
        first = node.first

        def test() -> bool | None:
            nonlocal first
            if first:
                first = False
                return True
            self._condition(node.condition)
            return None

        self._loop(test, lambda: self.run_all(node.body.body))

    def _switch(self, node: Switch) -> None:
        value = listed(self.captured(lambda: self.run(node.value)))
        constant = value.constant if isinstance(value, Value) else None
        ways: list[Callable[[], None]] = []
        self.loops.append([])
        sure = False
        for pattern, body in node.cases:
            wanted = text_of(self.evaluate(pattern)).constant if isinstance(pattern, Text) else None
            if constant is not None and wanted is not None:
                if constant.lower() != wanted.lower():
                    continue
                sure = True
                ways = []
            if pattern is None and sure:
                continue

            def way(body: Block = body) -> None:
                self.assign("_", value, node)
                self.run_all(body.body)

            ways.append(way)
        if not sure:
            ways.append(lambda: None)
        self.split(ways)
        ended = [self.save()] if self.live else []
        self.join([*ended, *self.loops.pop()])

    def _function(self, node: Function) -> None:
        self.functions[node.name] = (node.body, self.process.source)

    def _try(self, node: Try) -> None:
        before = self.save()
        self.run_all(node.body.body)
        ended = [self.save()] if self.live else []
        for handler in node.handlers:
            self.live = True
            self.join([before, *ended[:1]])
            self.assign("_", UNKNOWN, handler)
            self.run_all(handler.body)
            if self.live:
                ended.append(self.save())
        self.restore(before)
        self.join(ended)
        if node.last is not None:
            lives, self.live = self.live, True
            self.run_all(node.last.body)
            self.live = self.live and lives

    def _phase(self, node: Phase) -> None:
        given = self.frames[-1].get("input")
        if node.word != "process" or given is None:
            self.run_all(node.body.body)
            return
        items, others = elements(given)
        for item in (*items, *([] if others is None else [others])):
            if self.live:
                self.frames[-1]["_"] = self.frames[-1]["psitem"] = item
                self.run_all(node.body.body)

    def _exit(self, node: Exit) -> None:
        if node.value is not None and node.word != "exit":
            if node.word == "throw":
                value = listed(self.captured(lambda: self.run(node.value) if node.value is not None else None))
                self.process.print_error(shown(value) + Value.literal("\n"), node.start, node.end)
            else:
                self.run(node.value)
        if not self.live:
            return
        if node.word == "return":
            self.returns[-1].append(self.save())
        elif node.word in {"break", "continue"} and self.loops:
            self.loops[-1].append(self.save())
        elif node.word in {"exit", "throw"}:
            self.ends.append(self.process.save())
        self.live = False

    def _bare_block(self, node: Block) -> None:
        self.emit(Code(node, self.process.source), node.start, node.end)

    _runners: Mapping[type, Callable[..., None]] = {
        Pipeline: Commands.pipeline,
        Assign: _assign,
        If: _if,
        ForEach: _for_each,
        For: _for,
        While: _while,
        Switch: _switch,
        Function: _function,
        Try: _try,
        Exit: _exit,
        Phase: _phase,
        Gap: Evaluation.unread,
        Block: _bare_block,
    }
