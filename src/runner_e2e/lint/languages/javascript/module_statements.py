"""``import`` and ``export``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.expressions import Expressions
from runner_e2e.lint.languages.javascript.values import Cell, Js, Thing, text_of
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from runner_e2e.lint.languages.process import Process
    from runner_e2e.lint.tree import Node

__all__ = ["ModuleStatements"]


class ModuleStatements(Expressions):
    """Runs what ties modules together."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.exporting: list[Thing] = []
        """The objects ``exports`` of the modules and namespaces that run, the innermost last."""

    @abstractmethod
    def module(self, specifier: Value) -> Js:
        """What ``require`` gives for *specifier*."""

    @abstractmethod
    def run(self, node: Node) -> None:
        """Runs one statement."""

    def import_names(self, node: Node) -> None:
        """``import``."""
        source = node.get("source")
        if source is None:
            return
        module = self.module(text_of(self.evaluate(source)))
        for clause in node.children:
            if clause.kind == "import_clause":
                for child in clause.children:
                    self._bind_import(child, module)

    def _bind_import(self, node: Node, module: Js) -> None:
        if node.kind == "identifier":
            self.bind(node, self.default_of(module), kind="const")
        elif node.kind == "namespace_import":
            self.bind(node.children[0], module, kind="const")
        elif node.kind == "named_imports":
            for one in node.children:
                name, alias = one.get("name"), one.get("alias")
                if name is not None:
                    key = text_of(self.evaluate(name)) if name.kind == "string" else Value.literal(self.slice_of(name))
                    value = self.default_of(module) if key.constant == "default" else self.get(module, key)
                    self.bind(alias or name, value, kind="const")

    def default_of(self, module: Js) -> Js:
        """What ``import name from`` gives: the default export, or a CommonJS module as a whole."""
        thing = module.thing
        cell = thing.cells.get("default") if thing is not None else None
        return cell.value if cell is not None and cell.value is not None else module

    def export(self, node: Node) -> None:
        """``export``."""
        exports = self.exporting[-1] if self.exporting else None
        declaration, value, source = node.get("declaration"), node.get("value"), node.get("source")
        if declaration is not None:
            self.run(declaration)
            default = self.source.text[node.start : declaration.start].rstrip().endswith("default")
            for name in self._declared(declaration):
                cell = self.scope.find(name)
                if exports is not None and cell is not None:
                    exports.cells["default" if default else name] = cell
        elif value is not None:
            found = self.evaluate(value)
            if exports is not None:
                exports.cells["default"] = Cell(found)
        module = self.module(text_of(self.evaluate(source))) if source is not None else None
        for clause in node.children:
            if clause.kind == "export_clause" and exports is not None:
                for one in clause.children:
                    self._export_name(one, exports, module)
        if module is not None and exports is not None and not any(one.kind == "export_clause" for one in node.children):
            self.copy_properties(exports, module)

    def _export_name(self, node: Node, exports: Thing, module: Js | None) -> None:
        name, alias = node.get("name"), node.get("alias")
        if name is None:
            return
        shown = self.slice_of(alias or name)
        if module is not None:
            exports.cells[shown] = Cell(self.get(module, Value.literal(self.slice_of(name))))
            return
        cell = self.scope.find(self.slice_of(name))
        if cell is not None:
            exports.cells[shown] = cell

    def _declared(self, node: Node) -> list[str]:
        if node.kind in {"lexical_declaration", "variable_declaration"}:
            names = [child.get("name") for child in node.children if child.kind == "variable_declarator"]
        else:
            names = [node.get("name")]
        return [self.slice_of(name) for name in names if name is not None]
