"""Tests that ``pytest`` or ``unittest`` collects from a module, and calls with their fixtures.

A function whose name begins with ``test`` is one, in a module or in a class that the runner takes for a test case. What
it is given comes from functions that are marked as fixtures, here or in a ``conftest.py`` of a folder above, and from
``parametrize``. Each test is possible by itself: it may fail, and the next ones run all the same.
"""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.languages.python.evaluator import Call, Frame
from runner_e2e.lint.languages.python.objects import (
    NOTHING,
    Bound,
    Class,
    Constant,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Reference,
    Text,
    join_all,
)
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.languages.process import Tests
    from runner_e2e.lint.languages.python.interpreter import Interpreter
    from runner_e2e.lint.languages.python.syntax import Module

__all__ = ["Collected"]

_BEFORE_MODULE = ("setUpModule", "setup_module")
_BEFORE_CLASS = ("setUpClass", "setup_class")
_BEFORE_TEST = ("setUp", "asyncSetUp", "setup_method")
_AFTER_TEST = ("tearDown", "asyncTearDown", "teardown_method")
_AFTER = ("tearDownClass", "teardown_class", "tearDownModule", "teardown_module")
_MAX_DEPTH = 6
_MONKEYPATCH = Named("pytest.MonkeyPatch()")


class Collected:
    """The tests of *module*, which the interpreter has run."""

    def __init__(self, interpreter: Interpreter, module: Module, tests: Tests) -> None:
        self.interpreter = interpreter
        self.module = module
        self.tests = tests
        self.scopes = [module.scope]
        self.made: dict[str, Object] = {}
        """What the fixtures of one test have given: each is called once."""
        self.node = ast.copy_location(ast.Constant(None), module.tree.body[0]) if module.tree.body else None

    def load_shared(self) -> None:
        """Runs each ``conftest.py`` of the folders above, the outermost first; it may set the environment."""
        folder = posixpath.dirname(self.module.path)
        folders = []
        while folder.startswith(WORKSPACE) and self.tests.style == "pytest":
            folders.append(folder)
            if folder == WORKSPACE:
                break
            folder = posixpath.dirname(folder)
        for each in reversed(folders):
            module = self.interpreter.module_at(posixpath.join(each, "conftest.py"))
            content = self.interpreter.content(module) if module is not None else None
            scope = content.get(" scope") if isinstance(content, Instance) else None
            if isinstance(scope, Constant) and isinstance(scope.value, int):
                self.scopes.append(scope.value)

    def call_all(self) -> None:
        """Calls every test that is asked for."""
        self.scopes[0] = self.module.scope
        if self.node is None:
            return
        self._call_named(_BEFORE_MODULE, self.module.scope, None)
        for scope in self.scopes:
            for function in self._functions(scope):
                if "autouse=True" in _fixture_text(function):
                    self._possibly(function, None)
        for name, value in self.interpreter.memory.variables(self.module.scope):
            if isinstance(value, Function) and name.startswith("test") and self.tests.style == "pytest":
                if self._asked_for(name):
                    self._possibly(value, None)
            elif isinstance(value, Reference):
                content = self.interpreter.content(value)
                if isinstance(content, Class) and self._is_case(content):
                    self._call_class(value, content)
        self._call_named(_AFTER, self.module.scope, None)

    def _is_case(self, cell: Class, depth: int = 0) -> bool:
        if depth == 0 and self.tests.style == "pytest" and cell.name.startswith("Test"):
            return True
        for base in cell.bases:
            if isinstance(base, Named) and base.name.rsplit(".", 1)[-1].endswith("TestCase"):
                return True
            content = self.interpreter.content(base)
            if isinstance(content, Class) and depth < _MAX_DEPTH and self._is_case(content, depth + 1):
                return True
        return False

    def _asked_for(self, name: str, owner: str = "") -> bool:
        """Whether a test is one of those that the command line names."""
        wanted = [one for one in self.tests.names if not one.startswith("*")]
        parts = [one[1:].lower() for one in self.tests.names if one.startswith("*")]
        whole = f"{self.module.path}::{owner}::{name}".lower()
        if any(part not in whole for part in parts):
            return False
        return not wanted or wanted == [name] or (wanted[:1] == [owner] and wanted[1:] in ([], [name]))

    def _call_class(self, reference: Reference, cell: Class) -> None:
        assert self.node is not None
        methods = dict(self._methods(cell))
        names = [name for name in methods if name.startswith("test") and self._asked_for(name, cell.name)]
        if not names:
            return
        receiver = self.interpreter.call(reference, Call(node=self.node))
        self._call_named(_BEFORE_CLASS, cell.scope, reference, methods)
        for name in names:
            self._call_named(_BEFORE_TEST, cell.scope, receiver, methods)
            self._possibly(methods[name], receiver, cell.scope)
            self._call_named(_AFTER_TEST, cell.scope, receiver, methods)
        self._call_named(_AFTER, cell.scope, reference, methods)

    def _methods(self, cell: Class, depth: int = 0) -> Iterator[tuple[str, Function]]:
        """The methods of a class and its bases, those of the class last: they count."""
        for base in cell.bases:
            content = self.interpreter.content(base)
            if isinstance(content, Class) and depth < _MAX_DEPTH:
                yield from self._methods(content, depth + 1)
        for name, value in self.interpreter.memory.variables(cell.scope):
            if isinstance(value, Function):
                yield name, value

    def _call_named(
        self, names: tuple[str, ...], scope: int, receiver: Object | None, methods: dict[str, Function] | None = None
    ) -> None:
        for name in names:
            found = self.interpreter.memory.variable(scope, name) if methods is None else methods.get(name)
            if isinstance(found, Function):
                self._in_module(found, receiver, scope)

    def _possibly(self, function: Function, receiver: Object | None, scope: int | None = None) -> None:
        """Calls a test; what holds afterwards holds perhaps."""
        memory = self.interpreter.memory
        region = memory.open()
        self._in_module(function, receiver, scope)
        memory.record(region)
        memory.rewind(region)
        memory.record(region)
        memory.close(region)

    def _in_module(self, function: Function, receiver: Object | None, scope: int | None) -> None:
        memory = self.interpreter.memory
        self.made = {}
        region = memory.open()
        self._call(function, receiver, scope)
        memory.record(region)
        if not region.ends:  # it raised: the runner goes on
            memory.rewind(region)
            memory.record(region)
        memory.close(region)

    def _call(self, function: Function, receiver: Object | None, scope: int | None) -> Object:
        """Calls a function of the program with its fixtures, as if from the module that it stands in."""
        interpreter = self.interpreter
        frame = Frame(function.module, function.scopes[-1:], node=function.module)
        frame.returns = interpreter.memory.open()
        interpreter.frames.append(frame)
        try:
            with interpreter.process.within(function.module.source):
                made = self._called(function, receiver, scope)
        finally:
            interpreter.frames.pop()
        interpreter.memory.record(frame.returns)
        interpreter.memory.close(frame.returns)
        return made

    def _called(self, function: Function, receiver: Object | None, scope: int | None) -> Object:
        node = ast.copy_location(ast.Constant(None), function.node)
        arguments = function.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        if receiver is not None and function.binding != "static":
            names = names[1:]
        given = self._parameters(function)
        for name in names:
            if name not in given:
                if name not in self.made:
                    self.made[name] = NOTHING  # one that needs itself ends here
                    self.made[name] = self._fixture(name, receiver, scope)
                given[name] = self.made[name]
        called: Object = function if receiver is None else Bound(receiver, function)
        return self.interpreter.call(called, Call(node=node, keywords=given))

    def _fixture(self, name: str, receiver: Object | None, scope: int | None) -> Object:
        """What a test is given for a parameter."""
        if name == "monkeypatch":
            return _MONKEYPATCH
        scopes = [*([scope] if scope is not None else []), *self.scopes]
        for each in scopes:
            for function in self._functions(each):
                if _fixture_text(function) and _fixture_name(function) == name:
                    owner = receiver if each == scope else None
                    made = self._call(function, owner, scope)
                    content = made if isinstance(made, Items) else self.interpreter.content(made)
                    yielded = isinstance(content, Items) and _yields(function)
                    return self.interpreter.element(content) if isinstance(content, Items) and yielded else made
        return NOTHING

    def _functions(self, scope: int) -> list[Function]:
        found = [value for _, value in self.interpreter.memory.variables(scope)]
        return [value for value in found if isinstance(value, Function)]

    def _parameters(self, function: Function) -> dict[str, Object]:
        """What ``pytest.mark.parametrize`` gives: for each name any of its values."""
        found: dict[str, Object] = {}
        for decorator in getattr(function.node, "decorator_list", ()):
            if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("mark.parametrize"):
                continue
            given = [*decorator.args, *(one.value for one in decorator.keywords if one.arg == "argvalues")]
            if len(given) < 2:
                continue
            names = self._names(self.interpreter.evaluate(given[0]))
            rows = self.interpreter.items(self.interpreter.evaluate(given[1]))
            row = self.interpreter.element(rows)
            self._show_names(row, given[1])
            if len(names) == 1:
                found[names[0]] = row
                continue
            values = [self.interpreter.items(one) for one in (*rows.items, *([rows.rest] if rows.rest else []))]
            for index, name in enumerate(names):
                at = [one.items[index] for one in values if index < len(one.items)]
                found[name] = join_all(at) if at else NOTHING
        return found

    def _show_names(self, row: Object, node: ast.expr) -> None:
        """The name of a test has its parameters."""
        self.interpreter.process.print_title(Value.of(self.interpreter.taints(row)), *self.interpreter.span(node))

    def _names(self, given: Object) -> list[str]:
        if isinstance(given, Text):
            return [one.strip() for one in (given.value.constant or "").split(",") if one.strip()]
        return [self.interpreter.value(one).constant or "" for one in self.interpreter.items(given).items]


def _fixture_text(function: Function) -> str:
    """The decorator that makes a function a fixture, as it is written; empty when there is none."""
    for decorator in getattr(function.node, "decorator_list", ()):
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(target).rsplit(".", 1)[-1] == "fixture":
            return ast.unparse(decorator)
    return ""


def _fixture_name(function: Function) -> str:
    for decorator in getattr(function.node, "decorator_list", ()):
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return str(getattr(function.node, "name", ""))


def _yields(function: Function) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(function.node))
