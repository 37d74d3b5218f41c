"""Statements, branches, loops, exceptions, and modules: the whole abstract interpreter of Python."""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python import library
from runner_e2e.lint.languages.python.evaluator import Call, Frame
from runner_e2e.lint.languages.python.functions import Functions
from runner_e2e.lint.languages.python.library import system
from runner_e2e.lint.languages.python.objects import (
    NOTHING,
    UNKNOWN_TEXT,
    Bound,
    Class,
    Constant,
    Dictionary,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Reference,
    Text,
    join_all,
    text,
)
from runner_e2e.lint.languages.python.syntax import Module, PythonSyntaxError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.lint.languages.python.memory import Region
    from runner_e2e.lint.source import Source

__all__ = ["Interpreter"]

_MAX_ROUNDS = 4
_UNROLLED = 12
_MODULES = 0


class Interpreter(Functions):
    """Runs a program."""

    def run(self, module: Module, *, then: Callable[[], None] | None = None) -> None:
        """Runs *module* from its first to its last statement, and what comes *then*."""
        module.scope = self.memory.scope()
        self.memory.set_variable(module.scope, "__name__", text(module.name))
        self.memory.set_variable(module.scope, "__file__", text(module.path) if module.path else UNKNOWN_TEXT)
        self._run_body(module, module.scope)
        if then is not None and self.memory.alive:
            then()
        for function in self.registered:
            if id(function.node) not in self.entered:
                self._call_registered(function)

    def _call_registered(self, function: Function) -> None:
        """A library calls what it was given, with arguments that are not known."""
        frame = Frame(function.module, function.scopes[-1:], node=function.module)
        frame.returns = self.memory.open()
        self.frames.append(frame)
        try:
            self.call(function, Call(node=ast.copy_location(ast.Constant(None), function.node)))
        finally:
            self.frames.pop()
        self.memory.record(frame.returns)
        self.memory.close(frame.returns)

    def execute_all(self, body: Sequence[ast.stmt]) -> None:
        """See :meth:`Functions.execute_all`."""
        for statement in body:
            if not self.memory.alive:
                return
            self.execute(statement)

    def execute(self, node: ast.stmt) -> None:
        """Runs one statement."""
        self.process.tick()
        handler = self._statements.get(type(node))
        if handler is not None:
            handler(self, node)
        for region in self.frame.handlers[-1:]:
            # An exception may have ended any statement.
            self.memory.record(region)

    # --- simple statements

    def _expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, self._at_target(value, target, node))

    def _at_target(self, value: Object, target: ast.expr, node: ast.stmt) -> Object:
        return self.noted(value, node, f"assigned to {target.id}") if isinstance(target, ast.Name) else value

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self._at_target(self.evaluate(node.value), node.target, node))

    def _augmented(self, node: ast.AugAssign) -> None:
        before = self._load(node.target)
        value = self.evaluate(node.value)
        content = self.content(before)
        if isinstance(node.op, ast.Add) and isinstance(before, Reference) and isinstance(content, Items):
            self.put(before, self.concatenated(content, self.items(value)))
            return
        if isinstance(node.op, ast.BitOr) and (before == Named("os.environ") or isinstance(content, Dictionary)):
            self.call(self.attribute(before, "update", node.target), Call(node=node.target, arguments=(value,)))
            return
        self.assign(node.target, self._at_target(self.operate(node.op, before, value), node.target, node))

    def _load(self, target: ast.expr) -> Object:
        if isinstance(target, ast.Name):
            return self.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        if isinstance(target, ast.Attribute):
            return self.attribute(self.evaluate(target.value), target.attr, target)
        assert isinstance(target, ast.Subscript)
        return self._subscript(target)

    def assign(self, target: ast.expr, value: Object) -> None:
        """See :meth:`Expressions.assign`."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(target, value)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, value)

    def _unpack(self, targets: list[ast.expr], value: Object) -> None:
        items = self.items(value)
        starred = next((index for index, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
        behind = 0 if starred is None else len(targets) - starred - 1
        for index, target in enumerate(targets):
            if starred is not None and index == starred:
                if items.rest is None:
                    middle = Items(items.items[index : len(items.items) - behind])
                else:
                    middle = Items(items.items[index:], items.rest)
                self.assign(target, self.new(middle))
            elif starred is not None and index > starred:
                at = index - len(targets)
                exact = items.rest is None and -len(items.items) <= at
                self.assign(target, items.items[at] if exact else self.element(items))
            elif index < len(items.items):
                self.assign(target, items.items[index])
            else:
                self.assign(target, items.rest if items.rest is not None else NOTHING)

    def _set_attribute(self, target: ast.Attribute, value: Object) -> None:
        owner = self.evaluate(target.value)
        options = self.options(owner)
        for one in options:
            content = self.content(one)
            if isinstance(content, Instance) and content.kind != "module":
                attributes = dict(content.attributes)
                known = attributes.get(target.attr)
                weak = len(options) > 1 and known is not None
                noted = self.noted(value, target, f"assigned to .{target.attr}")
                attributes[target.attr] = join_all((known, noted)) if weak and known is not None else noted
                self.put(one, Instance(content.kind, tuple(attributes.items())))
            elif isinstance(content, Instance):
                scope = content.get(" scope")
                if isinstance(scope, Constant) and isinstance(scope.value, int):
                    self.memory.set_variable(scope.value, target.attr, value)
            elif isinstance(content, Class):
                self.memory.set_variable(content.scope, target.attr, value)
            elif one == Named("os") and target.attr == "environ":
                self.call(Bound(Named("os.environ"), "environ.update"), Call(node=target, arguments=(value,)))
            elif isinstance(one, Named) and one.name == "sys":
                system.set_system(self, target.attr, value)

    def _set_item(self, target: ast.Subscript, value: Object) -> None:
        owner = self.evaluate(target.value)
        if isinstance(target.slice, ast.Slice):
            content = self.content(owner)
            if owner == Named("sys.path"):
                system.set_system(self, "path", value)
            elif isinstance(content, Items):
                rests = [*self.items(value).items, self.element(self.items(value)), self.element(content)]
                self.put(owner, Items((), join_all(rests), content.kind))
            return
        key = self.evaluate(target.slice)
        for one in self.options(owner):
            content = self.content(one)
            if one == Named("os.environ"):
                system.set_environment(self, key, value, target)
            elif isinstance(content, Dictionary):
                noted = self.noted(value, target, "put into a dictionary")
                self.put(one, self.with_entry(content, key, noted))
            elif isinstance(content, Items):
                index = key.value if isinstance(key, Constant) and isinstance(key.value, int) else None
                if index is not None and -len(content.items) <= index < len(content.items):
                    items = list(content.items)
                    items[index] = value
                    self.put(one, Items(tuple(items), content.rest, content.kind))
                else:
                    self.put(one, Items((), join_all((self.element(content), value)), content.kind))
            elif isinstance(content, Instance) and isinstance(content.kind, int):
                method = self.member(one, content.kind, "__setitem__", target)
                if method is not None:
                    self.call(method, Call(node=target, arguments=(key, value)))

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope = self.frame.declared.get(target.id, self.frame.scopes[0])
                self.memory.set_variable(scope, target.id, None)
            elif isinstance(target, ast.Subscript):
                owner = self.evaluate(target.value)
                key = self.evaluate(target.slice)
                if owner == Named("os.environ"):
                    system.set_environment(self, key, None, target)
                elif isinstance(content := self.content(owner), Dictionary):
                    keys = self.known_keys(key) or ()
                    kept = tuple(entry for entry in content.entries if len(keys) != 1 or entry[0] != keys[0])
                    self.put(owner, Dictionary(kept, content.others, content.keys))

    def _return(self, node: ast.Return) -> None:
        value = self.evaluate(node.value) if node.value is not None else Constant(None, "NoneType")
        if self.frame.returns is not None:
            self.memory.record(self.frame.returns, value)
        self.memory.alive = False

    def _raise(self, node: ast.Raise) -> None:
        error = self.evaluate(node.exc) if node.exc is not None else NOTHING
        if not any(frame.handlers for frame in self.frames):
            # Nobody catches it: the traceback goes to the log, with the message.
            self.process.print_error(self.value(error), *self.span(node))
        self._leave_by_exception(error)

    def _leave_by_exception(self, error: Object | None = None) -> None:
        handlers = next((frame.handlers for frame in reversed(self.frames) if frame.handlers), None)
        if handlers is not None:
            self.memory.record(handlers[-1], error)
        elif (whole := self.frames[0].returns) is not None:  # the program ends here
            self.memory.record(whole)
        self.memory.alive = False

    def leave(self) -> None:
        """``sys.exit`` and the like: the process ends, unless something catches that."""
        self._leave_by_exception()

    def _scope_of_names(self, node: ast.Global | ast.Nonlocal) -> None:
        scopes = self.frame.scopes
        for name in node.names:
            if isinstance(node, ast.Global):
                self.frame.declared[name] = scopes[-1]
            else:
                holders = [scope for scope in scopes[1:] if self.memory.variable(scope, name) is not None]
                self.frame.declared[name] = holders[0] if holders else scopes[0]

    def _assert(self, node: ast.Assert) -> None:
        if self.truth(self.evaluate(node.test)) is False:
            self._leave_by_exception()

    # --- branches

    def _if(self, node: ast.If) -> None:
        truth = self.truth(self.evaluate(node.test))
        if truth is not None:
            self.execute_all(node.body if truth else node.orelse)
            return
        self._ways([node.body, node.orelse])

    def _ways(self, bodies: Sequence[Sequence[ast.stmt]]) -> None:
        region = self.memory.open()
        for index, body in enumerate(bodies):
            if index:
                self.memory.rewind(region)
            self.execute_all(body)
            self.memory.record(region)
        self.memory.close(region)

    def _match(self, node: ast.Match) -> None:
        subject = self.evaluate(node.subject)
        region = self.memory.open()
        for case in node.cases:
            self._capture(case.pattern, subject, node.subject)
            if case.guard is not None:
                self.evaluate(case.guard)
            self.execute_all(case.body)
            self.memory.record(region)
            self.memory.rewind(region)
        self.memory.record(region)
        self.memory.close(region)

    def _capture(self, pattern: ast.pattern, subject: Object, at: ast.expr) -> None:
        """Gives the names in *pattern* what they capture of *subject*."""
        name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
        if isinstance(name, str):
            self.assign_name(name, subject)
        parts = [subject if isinstance(pattern, (ast.MatchAs, ast.MatchOr)) else self.opaque((subject,))]
        inner = [one for one in ast.iter_child_nodes(pattern) if isinstance(one, ast.pattern)]
        if isinstance(pattern, ast.MatchMapping):
            keys = [self.evaluate(key) for key in pattern.keys]
            parts = [join_all(self.at(one, key, at) for one in self.options(subject)) for key in keys]
        for one, part in zip(inner, parts if len(parts) == len(inner) else parts * len(inner), strict=True):
            self._capture(one, part, at)

    # --- loops

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        items = self.items(self.evaluate(node.iter))
        breaks = self.memory.open()
        if items.rest is None and len(items.items) <= _UNROLLED:
            for item in items.items:
                if not self.memory.alive:
                    break
                self._round(node, breaks, item)
        else:
            self._rounds(node, breaks, lambda: self.element(items), sure=bool(items.items))
        self._after_loop(node, breaks)

    def _while(self, node: ast.While) -> None:
        breaks = self.memory.open()
        for _ in range(_MAX_ROUNDS):
            region = self.memory.open()
            truth = self.truth(self.evaluate(node.test))
            if truth is not True:
                self.memory.record(region)
            if truth is not False:
                self._round(node, breaks, None)
                self.memory.record(region)
            different = self.memory.close(region)
            if not self.memory.alive or truth is False or not different:
                break
            self.memory.widen(region)
        if self.memory.alive and self.truth(self.evaluate(node.test)) is True:
            self.memory.alive = False  # only a break ends it
        self._after_loop(node, breaks)

    def _rounds(self, node: ast.For | ast.AsyncFor, breaks: Region, item: Callable[[], Object], *, sure: bool) -> None:
        """Runs the body until nothing new is known; *sure*: it runs at least once."""
        for number in range(_MAX_ROUNDS):
            region = self.memory.open()
            if number or not sure:
                self.memory.record(region)
            self._round(node, breaks, item())
            self.memory.record(region)
            different = self.memory.close(region)
            if not self.memory.alive or not different:
                return
            if number:
                self.memory.widen(region)

    def _round(self, node: ast.For | ast.AsyncFor | ast.While, breaks: Region, item: Object | None) -> None:
        again = self.memory.open()
        self.frame.loops.append((breaks, again))
        if item is not None and not isinstance(node, ast.While):
            self.assign(node.target, self.noted(item, node.iter, "taken in a loop"))
        self.execute_all(node.body)
        self.frame.loops.pop()
        self.memory.record(again)
        self.memory.close(again)

    def _after_loop(self, node: ast.For | ast.AsyncFor | ast.While, breaks: Region) -> None:
        self.execute_all(node.orelse)
        self.memory.record(breaks)
        self.memory.close(breaks)

    def _break(self, _node: ast.Break) -> None:
        if self.frame.loops:
            self.memory.record(self.frame.loops[-1][0])
        self.memory.alive = False

    def _continue(self, _node: ast.Continue) -> None:
        if self.frame.loops:
            self.memory.record(self.frame.loops[-1][1])
        self.memory.alive = False

    # --- exceptions and contexts

    def _try(self, node: ast.Try) -> None:
        outer = self.memory.open()
        caught = self.memory.open() if node.handlers else None
        if caught is None:
            self.execute_all(node.body)
            self.execute_all(node.orelse)
            self.memory.record(outer)
        else:
            body = self.memory.open()
            self.memory.record(caught)
            self.frame.handlers.append(caught)
            self.execute_all(node.body)
            self.frame.handlers.pop()
            self.memory.record(body)
            self.memory.close(body)
            self.execute_all(node.orelse)
            self.memory.record(outer)
            self._handlers(node, outer, caught)
        self.memory.close(outer)
        if node.finalbody:
            alive, self.memory.alive = self.memory.alive, True
            self.execute_all(node.finalbody)
            self.memory.alive = alive and self.memory.alive

    def _handlers(self, node: ast.Try, outer: Region, caught: Region) -> None:
        self.memory.close(caught)
        if not self.memory.alive:
            return
        start = self.memory.open()
        for handler in node.handlers:
            if handler.name is not None:
                self.assign_name(handler.name, join_all((*caught.values, NOTHING)))
            self.execute_all(handler.body)
            self.memory.record(outer)
            self.memory.rewind(start)
        self.memory.alive = False
        self.memory.close(start)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            context = self.evaluate(item.context_expr)
            entered = self._entered(context, item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered)
        self.execute_all(node.body)

    def _entered(self, context: Object, node: ast.expr) -> Object:
        content = self.content(context)
        if isinstance(content, Items):  # a generator that makes a context
            return self.element(content)
        if isinstance(content, Instance) and isinstance(content.kind, int):
            method = self.member(context, content.kind, "__enter__", node)
            if method is not None:
                return self.call(method, Call(node=node))
        if isinstance(content, Instance):
            entered = content.get(" entered")
            return entered if entered is not None else context
        return context

    # --- modules

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            found = self.import_module(alias.name)
            if alias.asname is not None:
                self.assign_name(alias.asname, found)
                continue
            top = alias.name.split(".")[0]
            self.assign_name(top, found if top == alias.name else self.import_module(top))

    def _import_from(self, node: ast.ImportFrom) -> None:
        name = self._absolute(node)
        module = self.import_module(name)
        content = self.content(module)
        for alias in node.names:
            if alias.name == "*":
                self._import_all(module, content)
                continue
            if isinstance(content, Instance):
                made = self.attribute(module, alias.name, ast.copy_location(ast.Name("", ast.Load()), node))
            else:
                made = library.attribute(self, f"{name}.{alias.name}") or Named(f"{name}.{alias.name}")
            self.assign_name(alias.asname or alias.name, made)

    def _import_all(self, module: Object, content: object) -> None:
        if isinstance(content, Instance):
            scope = content.get(" scope")
            if isinstance(scope, Constant) and isinstance(scope.value, int):
                for name, value in self.memory.variables(scope.value):
                    if not name.startswith("_"):
                        self.assign_name(name, value)
        elif isinstance(module, Named):
            for name in library.names(module.name):
                self.assign_name(name, Named(f"{module.name}.{name}"))

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.frame.module.name.split(".")
        is_package = self.frame.module.path.endswith("/__init__.py")
        kept = parts[: len(parts) - node.level + is_package]
        return ".".join([*kept, *([node.module] if node.module else [])])

    def import_module(self, name: str) -> Object:
        """See :meth:`Evaluator.import_module`."""
        known = self.memory.variable(_MODULES, name)
        if known is None:
            found = self._find(name)
            known = self._run_module(name, *found) if found is not None else Named(name)
            self.memory.set_variable(_MODULES, name, known)
        return known

    def module_at(self, path: str) -> Object | None:
        """The module in the file at *path*, run; None when there is none."""
        source = self.process.program_at(path)
        return self._run_module(path, source, path) if source is not None else None

    def _run_module(self, name: str, source: Source, path: str) -> Object:
        attributes = (("__name__", text(name)), ("__file__", text(path)))
        reference = self.new(Instance("module", attributes))
        self.memory.set_variable(_MODULES, name, reference)  # a circle of imports ends here
        try:
            module = parse(source, name=name, path=path)
        except PythonSyntaxError as error:
            with self.process.within(source):
                self.process.give_up(error.offset, error.offset, error.message)
            return NOTHING
        module.scope = self.memory.scope()
        self.put(reference, Instance("module", (*attributes, (" scope", Constant(module.scope, "int")))))
        self._run_body(module, module.scope)
        return reference

    def _run_body(self, module: Module, scope: int) -> None:
        frame = Frame(module, (scope,), node=module)
        frame.returns = self.memory.open()
        self.frames.append(frame)
        try:
            with self.process.within(module.source):
                self.execute_all(module.tree.body)
        finally:
            self.frames.pop()
        self.memory.record(frame.returns)
        self.memory.close(frame.returns)

    def run_text(self, source: Source, node: ast.expr, *, expression: bool) -> Object:
        """See :meth:`Evaluator.run_text`."""
        try:
            module = parse(source)
        except PythonSyntaxError as error:
            self.give_up(node, f"text that is run: {error.message}")
            return NOTHING
        frame = self.frame
        outer, frame.module = frame.module, module
        try:
            with self.process.within(source):
                body = module.tree.body
                if expression and len(body) == 1 and isinstance(body[0], ast.Expr):
                    return self.evaluate(body[0].value)
                self.execute_all(body)
        finally:
            frame.module = outer
        return NOTHING

    def submodule(self, cell: Instance, name: str) -> Object | None:
        """See :meth:`Expressions.submodule`."""
        package = cell.get("__name__")
        if not isinstance(package, Text) or package.value.constant is None:
            return None
        full = f"{package.value.constant}.{name}"
        return self.memory.variable(_MODULES, full) or (self.import_module(full) if self._find(full) else None)

    def _find(self, name: str) -> tuple[Source, str] | None:
        if not name or library.is_standard(name.split(".", maxsplit=1)[0]):
            return None
        stem = name.replace(".", "/")
        for folder in self.folders:
            for end in (".py", "/__init__.py"):
                path = posixpath.join(folder, stem + end)
                source = self.process.program_at(path)
                if source is not None:
                    return source, path
        return None

    _statements: Mapping[type[ast.stmt], Callable[..., None]] = {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.Delete: _delete,
        ast.Return: _return,
        ast.Raise: _raise,
        ast.Global: _scope_of_names,
        ast.Nonlocal: _scope_of_names,
        ast.Assert: _assert,
        ast.If: _if,
        ast.Match: _match,
        ast.For: _for,
        ast.AsyncFor: _for,
        ast.While: _while,
        ast.Break: _break,
        ast.Continue: _continue,
        ast.Try: _try,
        ast.TryStar: _try,
        ast.With: _with,
        ast.AsyncWith: _with,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.FunctionDef: Functions.define_function,
        ast.AsyncFunctionDef: Functions.define_function,
        ast.ClassDef: Functions.define_class,
    }
