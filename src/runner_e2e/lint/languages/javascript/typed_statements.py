"""What TypeScript adds to JavaScript and that runs: enumerations, namespaces, its own imports and exports; and JSX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.machine import Call, Passed, Scope
from runner_e2e.lint.languages.javascript.module_statements import ModuleStatements
from runner_e2e.lint.languages.javascript.values import (
    NUMBER,
    TRUE,
    UNDEFINED,
    Cell,
    Closure,
    Js,
    Thing,
    constant,
    literal,
    of_thing,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.tree import Node

__all__ = ["TypedStatements"]

_JSX = frozenset({"jsx_element", "jsx_self_closing_element", "jsx_expression"})


class TypedStatements(ModuleStatements):
    """Runs what the tree of a TypeScript program has beside JavaScript."""

    def _object_called(self, name: Node) -> Thing:
        """The object that a declaration of *name* adds to: a later one goes on where an earlier one has ended."""
        cell = self.scope.cells.get(self.slice_of(name))
        found = cell.value.thing if cell is not None and cell.value is not None else None
        if found is None:
            found = Thing()
            self.scope.cells[self.slice_of(name)] = Cell(of_thing(found), name.start, name.end)
        return found

    def enumeration(self, node: Node) -> None:
        """``enum``: an object of its members; those that are numbers give their names back."""
        name, body = node.get("name"), node.get("body")
        if name is None or body is None:
            return
        thing = self._object_called(name)
        outer, self.scope = self.scope, Scope(self.scope)
        following = constant(0.0)
        for member in body.children:
            key_node, value_node = member.get("name") or member, member.get("value")
            key = self.key(key_node).constant
            value = self.evaluate(value_node) if value_node is not None else following
            following = NUMBER if value.number is None else constant(value.number + 1)
            if key is None or not self.live:
                continue
            thing.cells[key] = self.scope.cells[key] = Cell(value, member.start, member.end)
            if value.number is not None:
                thing.cells[text_of(value).constant or ""] = Cell(literal(key))
        self.scope.leave()
        self.scope = outer

    def namespace(self, node: Node) -> None:
        """``namespace``: an object of what the statements in it export."""
        name, body = node.get("name"), node.get("body")
        if name is None or body is None:
            return
        thing = self._object_called(name)
        outer, self.scope = self.scope, Scope(self.scope, function=True)
        self.scope.cells |= thing.cells
        self.exporting.append(thing)
        self.run_body(body)
        self.exporting.pop()
        self.scope.leave()
        self.scope = outer

    def import_names(self, node: Node) -> None:
        """``import``, with ``import name = require("…")``."""
        clause = node.children[0] if node.children else None
        source = clause.get("source") if clause is not None and clause.kind == "import_require_clause" else None
        if clause is None or source is None:
            super().import_names(node)
        else:
            self.bind(clause.children[0], self.module(text_of(self.evaluate(source))), kind="const")

    def export(self, node: Node) -> None:
        """``export``, with ``export = value``."""
        cell = self.scope.find("module") if "=" in node.tokens else None
        module = cell.value.thing if cell is not None and cell.value is not None else None
        if module is None or not node.children:
            super().export(node)
        else:
            module.cells["exports"] = Cell(self.evaluate(node.children[0]), node.start, node.end)

    def _element(self, node: Node) -> Js:
        """An element of JSX: what it is given; a function of the program that it names may be called with that."""
        opening = node.get("open_tag") or node
        given = Thing()
        for one in opening.children:
            if one.kind == "jsx_attribute":
                value = self.evaluate(one.children[1]) if len(one.children) > 1 else TRUE
                given.cells[self.slice_of(one.children[0])] = Cell(value, one.start, one.end)
            elif one.kind == "jsx_expression" and one.children:
                self.copy_properties(given, self.evaluate(one.children[0]))
        inner = [self.evaluate(child) for child in node.children if child.kind in _JSX] if opening is not node else []
        if inner:
            given.cells["children"] = Cell(self.array(inner))
        name = opening.get("name")
        if name is not None and self.slice_of(name)[:1].isupper():
            component = self.evaluate(name).thing
            if component is not None and isinstance(component.data, Closure):
                passed = (Passed(of_thing(given), opening.start, opening.end),)
                call = Call(self, UNDEFINED, passed, node.start, node.end, self.slice_of(name))
                self.perhaps(lambda: self.call(component, call))
        return of_thing(given)

    def _inserted(self, node: Node) -> Js:
        """``{value}`` in JSX."""
        return self.evaluate(node.children[0]) if node.children else UNDEFINED

    _evaluators: Mapping[str, Callable[..., Js]] = {
        **ModuleStatements._evaluators,  # noqa: SLF001 - its own
        "jsx_element": _element,
        "jsx_self_closing_element": _element,
        "jsx_expression": _inserted,
    }
