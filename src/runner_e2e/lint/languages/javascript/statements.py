"""Statements: declarations, branches, loops, ``try``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.data import shown
from runner_e2e.lint.languages.javascript.machine import Loop, Scope, Way
from runner_e2e.lint.languages.javascript.typed_statements import TypedStatements
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    UNDEFINED,
    Cell,
    Js,
    Thing,
    either,
    literal,
    of_text,
    of_thing,
    truth_of,
)
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.lint.tree import Node

__all__ = ["Statements"]

_MAX_KNOWN_ROUNDS = 32
_MAX_ROUNDS = 3
_MAX_CASES = 64
_MAX_WAYS = 200


class Statements(TypedStatements):
    """Runs statements."""

    # --- blocks

    def run_body(self, node: Node) -> None:
        """See :meth:`Machine.run_body`."""
        self._statements(node.children)

    def _statements(self, nodes: Sequence[Node]) -> None:
        self._hoist(nodes)
        for node in nodes:
            if not self.live:
                return
            self.run(node)

    def _hoist(self, nodes: Sequence[Node]) -> None:
        """Functions can be called before the line that declares them."""
        for outer in nodes:
            node = outer.get("declaration") if outer.kind == "export_statement" else outer
            if node is not None and node.kind in {"function_declaration", "generator_function_declaration"}:
                name = node.get("name")
                if name is not None:
                    self.scope.cells[self.slice_of(name)] = Cell(of_thing(self.closure(node)))

    def run(self, node: Node) -> None:
        """Runs one statement."""
        self.process.tick()
        if len(self.journals) > _MAX_WAYS:
            self.process.give_up(node.start, node.end, "nested too deeply to follow")
            return
        handler = self._runners.get(node.kind)
        if handler is not None:
            handler(self, node)
        elif node.kind not in _NOTHING:
            self.evaluate(node)

    def _block(self, node: Node) -> None:
        outer, self.scope = self.scope, Scope(self.scope)
        self._statements(node.children)
        self.scope.leave()
        self.scope = outer

    def _expression(self, node: Node) -> None:
        for child in node.children:
            self.completion = self.evaluate(child)

    # --- declarations

    def _declaration(self, node: Node) -> None:
        kind = node.get("kind")
        word = self.slice_of(kind) if kind is not None else "var"
        for declarator in node.children:
            if declarator.kind != "variable_declarator":
                continue
            name, value_node = declarator.get("name"), declarator.get("value")
            value = self.evaluate(value_node) if value_node is not None else UNDEFINED
            if name is not None and self.live:
                if value_node is None and word == "var" and self.scope.find(self.slice_of(name)) is not None:
                    continue
                self.bind(name, value, kind=word)

    def bind(self, pattern: Node, value: Js, *, kind: str) -> None:
        """See :meth:`Machine.bind`. *kind*: ``let``, ``const``, ``var``, or ``assign`` (to what is there)."""
        handler = self._binders.get(pattern.kind)
        if handler is not None:
            handler(self, pattern, value, kind)
        elif kind == "assign":
            self.assign(pattern, value)

    def _bind_name(self, pattern: Node, value: Js, kind: str) -> None:
        if kind == "assign":
            self.assign(pattern, value)
            return
        name = self.slice_of(pattern)
        scope = self.scope
        while kind == "var" and not scope.function and scope.parent is not None:
            scope = scope.parent
        value = self.step(value, pattern.start, pattern.end, f"assigned to {name}")
        if kind == "var" and name in scope.cells:
            self.write(scope.cells[name], value, pattern.start, pattern.end)
        else:
            cell = scope.cells[name] = Cell()
            self.write(cell, value, pattern.start, pattern.end)

    def _bind_object(self, pattern: Node, value: Js, kind: str) -> None:
        taken: set[str] = set()
        for child in pattern.children:
            if child.kind == "rest_pattern":
                self.bind(child.children[0], self._rest(value, taken), kind=kind)
                continue
            if child.kind == "pair_pattern":
                name, target = self.key(child.get("key")), child.get("value")
            elif child.kind == "object_assignment_pattern":
                left = child.get("left")
                name, target = self.key(left), child
            else:
                name, target = self.key(child), child
            if name.constant is not None:
                taken.add(name.constant)
            if target is not None:
                self.bind(target, self.get(value, name), kind=kind)

    def _rest(self, value: Js, taken: set[str]) -> Js:
        thing = Thing()
        self.copy_properties(thing, value)
        for name in taken:
            thing.cells.pop(name, None)
        return of_thing(thing)

    def _bind_array(self, pattern: Node, value: Js, kind: str) -> None:
        elements, others = self.iterate(value)
        commas = self.source.text[pattern.start : pattern.end]
        for index, child in _positions(pattern, commas):
            if child.kind == "rest_pattern":
                self.bind(child.children[0], self.array(elements[index:], others), kind=kind)
                return
            rest = UNDEFINED if others is None else either([UNDEFINED, others])
            self.bind(child, elements[index] if index < len(elements) else rest, kind=kind)

    def _bind_default(self, pattern: Node, value: Js, kind: str) -> None:
        left, right = pattern.get("left"), pattern.get("right")
        if left is None or right is None:
            return
        absent = UNDEFINED.atoms[0]
        if absent in value.atoms:
            kept = Js(value.text, tuple(atom for atom in value.atoms if atom != absent))
            default = self.evaluate(right)
            value = default if kept.text is None and not kept.atoms else either([kept, default])
        self.bind(left, value, kind=kind)

    def _function_declaration(self, node: Node) -> None:
        name = node.get("name")
        if name is not None and self.slice_of(name) not in self.scope.cells:
            self.scope.cells[self.slice_of(name)] = Cell(of_thing(self.closure(node)))

    def _class(self, node: Node) -> None:
        name = node.get("name")
        if name is not None:
            cell = self.scope.cells[self.slice_of(name)] = Cell()
            self.class_of(node, cell)

    # --- branches

    def _if(self, node: Node) -> None:
        condition, yes, no = node.get("condition"), node.get("consequence"), node.get("alternative")
        truth = truth_of(self.evaluate(condition)) if condition is not None else None
        if not self.live:
            return
        if truth is not None:
            taken = yes if truth else no
            if taken is not None:
                self.run(taken)
            return
        self.split((self._running(yes), self._running(no)))

    def _running(self, node: Node | None) -> Callable[[], Js]:
        def run() -> Js:
            if node is not None:
                self.run(node)
            return UNDEFINED

        return run

    def _else(self, node: Node) -> None:
        for child in node.children:
            self.run(child)

    def _switch(self, node: Node) -> None:
        value_node, body = node.get("value"), node.get("body")
        value = self.evaluate(value_node) if value_node is not None else UNDEFINED
        cases = [child for child in body.children if child.kind in {"switch_case", "switch_default"}] if body else []
        before = self.process.save()
        loop = Loop(len(self.journals), frozenset(), is_loop=False)
        self.loops.append(loop)
        self.journals.append({})
        outer, self.scope = self.scope, Scope(self.scope)

        def entered(index: int) -> Callable[[], Js]:
            def run() -> Js:
                for case in cases[index:]:
                    label = case.get("value")
                    for child in case.children:
                        if child is not label and self.live:
                            self.run(child)
                return UNDEFINED

            return run

        self.split([entered(index) for index in self._possible_cases(value, cases)])
        self.scope.leave()
        self.scope = outer
        self.loops.pop()
        ways = [*loop.breaks, *([self.here(loop.level)] if self.live else [])]
        self.take_back(before)
        self.join(ways)

    def _possible_cases(self, value: Js, cases: Sequence[Node]) -> list[int]:
        """The cases where a ``switch`` may begin; one behind the last stands for none of them."""
        possible: list[int] = []
        default = len(cases)
        for index, case in enumerate(cases[:_MAX_CASES]):
            label = case.get("value")
            if case.kind == "switch_default" or label is None:
                default = index
                continue
            same = truth_of(self.operate("===", value, self.evaluate(label)))
            if same is True:
                return [*possible, index]
            if same is None:
                possible.append(index)
        return [*possible, default]

    # --- loops

    def _loop(self, node: Node, test: Callable[[], bool | None], body: Callable[[], None]) -> None:
        """Runs *body* while *test* says so: known rounds exactly, others until nothing changes."""
        before = self.process.save()
        loop = Loop(len(self.journals), self._labels(node), is_loop=True)
        self.loops.append(loop)
        self.journals.append({})
        leaves: list[Way] = []
        going, known, unknown = True, 0, 0
        while going:
            truth = test()
            if truth is True and known < _MAX_KNOWN_ROUNDS:
                known += 1
                self._round(loop, body, exact=True)
                going = self.live
                continue
            if self.live:
                leaves.append(self.here(loop.level))
            going = self.live and truth is not False and unknown <= _MAX_ROUNDS
            if going:
                unknown += 1
                self.unbounded += 1
                changed = self._round(loop, body, exact=False)
                self.unbounded -= 1
                going = bool(changed)
                if unknown == _MAX_ROUNDS:
                    self._widen(changed)
        self.loops.pop()
        self.take_back(before)
        self.join([*leaves, *loop.breaks])

    def _widen(self, changed: Sequence[Cell]) -> None:
        """What still grows after so many rounds may be of any length."""
        for cell in changed:
            value = cell.value
            if value is not None and value.text is not None and value.text.taints:
                self.write(cell, Js(Value.of(value.text.taints), value.atoms), cell.start, cell.end)

    def _round(self, loop: Loop, body: Callable[[], None], *, exact: bool) -> list[Cell]:
        """Runs *body* once; when that is not *exact*, it may not run at all. What has changed."""
        before = self.process.save()
        level = len(self.journals)
        self.journals.append({})
        loop.continues = []
        body()
        ways = list(loop.continues)
        if self.live:
            ways.append(self.here(level))
        self.take_back(before)
        self.live = True
        if not exact:
            ways.insert(0, Way({}, before))
        old = {cell: cell.value for way in ways for cell in way.cells}
        self.join(ways)
        return [cell for cell, value in old.items() if cell.dead or cell.value != value]

    def _labels(self, node: Node) -> frozenset[str]:
        return self.pending_labels.pop(id(node), frozenset())

    def _while(self, node: Node) -> None:
        condition, body = node.get("condition"), node.get("body")

        def test() -> bool | None:
            return truth_of(self.evaluate(condition)) if condition is not None else None

        self._loop(node, test, lambda: self.run(body) if body is not None else None)

    def _do(self, node: Node) -> None:
        condition, body = node.get("condition"), node.get("body")
        first = [True]

        def test() -> bool | None:
            if first:
                return True
            return truth_of(self.evaluate(condition)) if condition is not None else None

        def run() -> None:
            first.clear()
            if body is not None:
                self.run(body)

        self._loop(node, test, run)

    def _for(self, node: Node) -> None:
        outer, self.scope = self.scope, Scope(self.scope)
        initializer, condition = node.get("initializer"), node.get("condition")
        increment, body = node.get("increment"), node.get("body")
        if initializer is not None and initializer.kind != "empty_statement":
            self.run(initializer)

        def test() -> bool | None:
            if condition is None or condition.kind == "empty_statement":
                return None
            return truth_of(
                self.evaluate(condition.children[0] if condition.kind == "expression_statement" else condition)
            )

        started = [False]

        def run() -> None:
            if body is not None:
                self.run(body)

        def tested() -> bool | None:
            if started[0] and increment is not None:
                self.evaluate(increment)
            started[0] = True
            return test()

        self._loop(node, tested, run)
        self.scope.leave()
        self.scope = outer

    def _for_in(self, node: Node) -> None:
        left, right, body, operator = (node.get(name) for name in ("left", "right", "body", "operator"))
        if left is None or right is None:
            return
        value = self.evaluate(right)
        if operator is not None and self.slice_of(operator) == "in":
            elements, others = self.names_of(value)
        else:
            elements, others = self.iterate(value)
        waiting = list(elements)
        current: list[Js] = []
        kind = node.get("kind")
        word = self.slice_of(kind) if kind is not None else "assign"

        def test() -> bool | None:
            if waiting and not self.unbounded_rest(waiting):
                current[:] = [waiting.pop(0)]
                return True
            if waiting or others is not None:
                current[:] = [either([*waiting, *([] if others is None else [others])])]
                return None
            return False

        def run() -> None:
            outer, self.scope = self.scope, Scope(self.scope)
            self.bind(left, current[0], kind=word)
            if body is not None and self.live:
                self.run(body)
            self.scope.leave()
            self.scope = outer

        self._loop(node, test, run)

    @staticmethod
    def unbounded_rest(waiting: list[Js]) -> bool:
        """Whether so many elements are left that they are taken as one."""
        return len(waiting) > _MAX_KNOWN_ROUNDS

    def names_of(self, value: Js) -> tuple[list[Js], Js | None]:
        """See :meth:`Machine.names_of`."""
        names: list[Js] = []
        others: Js | None = None
        for thing in value.things:
            if thing.kind == "environment":
                names += [literal(name) for name in self.process.environment()]
                others = of_text(UNKNOWN)
            names += [literal(name) for name, cell in thing.cells.items() if cell.value is not None]
            if thing.others.value is not None:
                others = of_text(UNKNOWN)
        if not value.things:
            others = of_text(UNKNOWN)
        return names, others

    def _labelled(self, node: Node) -> None:
        label, body = node.get("label"), node.get("body")
        if body is None:
            return
        if label is not None:
            self.pending_labels[id(body)] = frozenset({self.slice_of(label)})
        self.run(body)

    def _break(self, node: Node) -> None:
        label = node.get("label")
        for loop in reversed(self.loops):
            if label is None or self.slice_of(label) in loop.labels:
                loop.breaks.append(self.here(loop.level))
                break
        self.live = False

    def _continue(self, node: Node) -> None:
        label = node.get("label")
        for loop in reversed(self.loops):
            if loop.is_loop and (label is None or self.slice_of(label) in loop.labels):
                loop.continues.append(self.here(loop.level))
                break
        self.live = False

    # --- the ends of ways

    def _return(self, node: Node) -> None:
        value = self.evaluate(node.children[0]) if node.children else UNDEFINED
        if self.live:
            frame = self.frames[-1]
            frame.returns.append(self.here(frame.level, value))
            self.live = False

    def _throw(self, node: Node) -> None:
        value = self.evaluate(node.children[0]) if node.children else UNDEFINED
        if self.live and not self.tries:  # nobody catches it: node prints it with its message
            self.process.print_error(shown(value), node.start, node.end)
        if self.live:
            self.throw(value)

    def _try(self, node: Node) -> None:
        body, handler, finalizer = node.get("body"), node.get("handler"), node.get("finalizer")
        before = self.process.save()
        level = len(self.journals)
        self.journals.append({})
        thrown: list[Way] = []
        if handler is not None:
            self.tries.append((level, thrown))
        if body is not None:
            self._block(body)
        if handler is not None:
            self.tries.pop()
        ended = [self.here(level)] if self.live else []
        self.take_back(before)
        if handler is not None:
            ended += self._caught(
                handler, [*thrown, *(Way(way.cells, way.world, ANY) for way in ended), Way({}, before, ANY)]
            )
        self.join(ended)
        if finalizer is not None:
            block = finalizer.get("body")
            lives, self.live = self.live, True
            if block is not None:
                self._block(block)
            self.live = self.live and lives

    def _caught(self, handler: Node, ways: list[Way]) -> list[Way]:
        """Runs a ``catch`` from wherever an exception may have come."""
        before = self.process.save()
        level = len(self.journals)
        self.journals.append({})
        error = self.join(ways)
        outer, self.scope = self.scope, Scope(self.scope)
        parameter, body = handler.get("parameter"), handler.get("body")
        if parameter is not None:
            self.bind(parameter, error, kind="let")
        if body is not None:
            self._statements(body.children)
        self.scope.leave()
        self.scope = outer
        ended = [self.here(level)] if self.live else []
        self.take_back(before)
        self.live = True
        return ended

    _runners: Mapping[str, Callable[..., None]] = {
        "expression_statement": _expression,
        "statement_block": _block,
        "lexical_declaration": _declaration,
        "variable_declaration": _declaration,
        "function_declaration": _function_declaration,
        "generator_function_declaration": _function_declaration,
        "class_declaration": _class,
        "if_statement": _if,
        "else_clause": _else,
        "switch_statement": _switch,
        "while_statement": _while,
        "do_statement": _do,
        "for_statement": _for,
        "for_in_statement": _for_in,
        "labeled_statement": _labelled,
        "break_statement": _break,
        "continue_statement": _continue,
        "return_statement": _return,
        "throw_statement": _throw,
        "try_statement": _try,
        "using_declaration": _declaration,
        "import_statement": TypedStatements.import_names,
        "export_statement": TypedStatements.export,
        "enum_declaration": TypedStatements.enumeration,
        "internal_module": TypedStatements.namespace,
    }

    _binders: Mapping[str, Callable[..., None]] = {
        "identifier": _bind_name,
        "shorthand_property_identifier_pattern": _bind_name,
        "object_pattern": _bind_object,
        "array_pattern": _bind_array,
        "assignment_pattern": _bind_default,
        "object_assignment_pattern": _bind_default,
    }


_NOTHING = frozenset({"empty_statement", "debugger_statement", "hash_bang_line", "statement_identifier", "comment"})


def _positions(pattern: Node, text: str) -> list[tuple[int, Node]]:
    """The parts of an array pattern with their places: ``[, b]`` leaves one out."""
    found: list[tuple[int, Node]] = []
    offset, index = 1, 0
    for child in pattern.children:
        index += text[offset : child.start - pattern.start].count(",")
        found.append((index, child))
        offset = child.end - pattern.start
    return found
