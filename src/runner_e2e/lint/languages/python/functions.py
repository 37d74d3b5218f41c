"""Calls: functions of the program run in place, classes make objects, libraries answer by their models."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.languages.python import library
from runner_e2e.lint.languages.python.evaluator import Call, Frame
from runner_e2e.lint.languages.python.expressions import Expressions
from runner_e2e.lint.languages.python.library import foreign
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    Bound,
    Class,
    Dictionary,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Reference,
    Union,
    join_all,
)
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Functions"]

_MAX_CALLS = 24
_MAX_SAME = 3
_COMMANDS = ("args", "argv", "cmd", "command", "commands", "entrypoint")


class Functions(Expressions):
    """Calls everything that can be called."""

    def function_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        """See :meth:`Expressions.function_of`."""
        frame = self.frame
        defaults = tuple(self.evaluate(one) for one in node.args.defaults)
        keyword_defaults = tuple(None if one is None else self.evaluate(one) for one in node.args.kw_defaults)
        # The names of a class body are not seen by its methods.
        scopes = frame.scopes if frame.owner is None else frame.scopes[1:]
        return Function(node, frame.module, scopes, defaults, keyword_defaults, frame.owner)

    def call(self, function: Object, call: Call) -> Object:
        """See :meth:`Evaluator.call`."""
        self.process.tick()
        if isinstance(function, Union):
            options = [one for one in function.options if one != NONE]
            return self.either(options, call)
        if isinstance(function, Function):
            return self.run_function(function, call)
        if isinstance(function, Named):
            model = library.function(function.name)
            return model(self, call) if model is not None else self.unknown_call(function, function.name, call)
        if isinstance(function, Bound):
            return self._call_method(function, call)
        content = self.content(function)
        if isinstance(content, Class):
            assert isinstance(function, Reference)
            return self._instantiate(function, content, call)
        if isinstance(content, Instance):
            return self._call_instance(function, content, call)
        return self.unknown_call(function, "", call)

    def either(self, functions: Sequence[Object], call: Call) -> Object:
        """Calls one of several functions; it is not known which."""
        if len(functions) == 1:
            return self.call(functions[0], call)
        region = self.memory.open()
        results: list[Object] = []
        for function in functions:
            results.append(self.call(function, call))
            self.memory.record(region)
            self.memory.rewind(region)
        self.memory.close(region)
        return join_all(results)

    def _call_method(self, function: Bound, call: Call) -> Object:
        if isinstance(function.method, Function):
            return self.run_function(function.method, call, function.receiver)
        model = library.method(function.method)
        if model is not None:
            return model(self, function.receiver, call)
        return self.unknown_call(function.receiver, function.method, call)

    def _call_instance(self, function: Object, content: Instance, call: Call) -> Object:
        if content.kind == "partial":
            inner = content.get(" function") or NOTHING
            before = self.items(content.get(" arguments") or Items())
            named = self.content(content.get(" keywords") or NONE)
            given = {str(name): value for name, value in named.entries} if isinstance(named, Dictionary) else {}
            arguments = (*before.items, *call.arguments)
            nodes = (*(None for _ in before.items), *call.nodes)
            whole = replace(call, arguments=arguments, nodes=nodes, keywords={**given, **call.keywords})
            return self.call(inner, whole)
        if isinstance(content.kind, int):
            method = self.member(function, content.kind, "__call__", call.node)
            if method is not None:
                return self.call(method, call)
        return self.unknown_call(function, str(content.kind), call)

    # --- functions of the program

    def run_function(self, function: Function, call: Call, receiver: Object | None = None) -> Object:
        """Runs a function of the program; *receiver* is its first argument, when it is a method."""
        node = function.node
        given = (
            call
            if receiver is None
            else replace(call, arguments=(receiver, *call.arguments), nodes=(None, *call.nodes))
        )
        if len(self.frames) >= _MAX_CALLS or sum(1 for frame in self.frames if frame.node is node) >= _MAX_SAME:
            return self._cut(call)
        self.entered.add(id(node))
        frame = Frame(function.module, (self.memory.scope(), *function.scopes), node=node)
        frame.receiver, frame.method_of = receiver, function.owner
        bound = self._bind(function, given)
        if isinstance(node, ast.Lambda):
            self._enter(frame, bound)
            try:
                with self.process.within(function.module.source):
                    return self.evaluate(node.body)
            finally:
                self.frames.pop()
        if _yields(node):
            frame.yields = []
        frame.returns = self.memory.open()
        self._enter(frame, bound)
        try:
            with self.process.within(function.module.source):
                self.execute_all(node.body)
        finally:
            self.frames.pop()
        self.memory.record(frame.returns, NONE)
        self.memory.close(frame.returns)
        if frame.yields is not None:
            return Items((), join_all(frame.yields)) if frame.yields else Items()
        return join_all(frame.returns.values) if frame.returns.values else NOTHING

    def _enter(self, frame: Frame, bound: dict[str, Object]) -> None:
        self.frames.append(frame)
        for name, value in bound.items():
            self.memory.set_variable(frame.scopes[0], name, value)

    def _cut(self, call: Call) -> Object:
        """A recursion that is not followed further."""
        result = self.opaque(call.everything(), Confidence.LOW)
        if self.taints(result):
            self.give_up(call.node, "the recursion is not followed to its end")
        return result

    def _bind(self, function: Function, call: Call) -> dict[str, Object]:
        """The arguments by the names of the parameters."""
        arguments = function.node.args
        name = getattr(function.node, "name", "a function")
        missing = call.rest
        if missing is None and function.foreign:
            missing = self.opaque([Opaque(frozenset(self.process.labels()))], Confidence.LOW)
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: dict[str, Object] = dict(
            zip(
                (one.arg for one in positional[len(positional) - len(function.defaults) :]),
                function.defaults,
                strict=True,
            )
        )
        for one, default in zip(arguments.kwonlyargs, function.keyword_defaults, strict=True):
            if default is not None:
                defaults[one.arg] = default
        keywords = dict(call.keywords)
        bound: dict[str, Object] = {}
        for index, one in enumerate([*positional, *arguments.kwonlyargs]):
            if index < len(call.arguments) and index < len(positional):
                value = self._passed(call.arguments[index], call.node_of(index), name)
            elif one.arg in keywords:
                value = self._passed(keywords.pop(one.arg), call.node_of(-1, one.arg), name)
            elif missing is not None:
                value = join_all((missing, defaults[one.arg])) if one.arg in defaults else missing
            else:
                value = defaults.get(one.arg, NOTHING)
            bound[one.arg] = value
        if arguments.vararg is not None:
            bound[arguments.vararg.arg] = Items(call.arguments[len(positional) :], call.rest, "tuple")
        if arguments.kwarg is not None:
            more: list[tuple[object, Object]] = list(keywords.items())
            bound[arguments.kwarg.arg] = self.new(Dictionary(tuple(more), call.rest))
        return bound

    def _passed(self, value: Object, node: ast.expr, name: str) -> Object:
        return self.noted(value, node, f"argument of {name}")

    # --- classes

    def _instantiate(self, reference: Reference, cell: Class, call: Call) -> Object:
        made = self.new(Instance(reference.number))
        method = self.member(made, reference.number, "__init__", call.node)
        if method is not None:
            self.call(method, call)
            return made
        fields = self._fields(cell)
        attributes: dict[str, Object] = {}
        for index, name in enumerate(fields):
            given = call.get(index, name)
            default = self.memory.variable(cell.scope, name)
            attributes[name] = given if given is not None else self._default(default, call)
        if not fields and call.everything():  # a base that is not known takes the arguments
            attributes[" given"] = self.opaque(call.everything(), Confidence.LOW)
            attributes.update(call.keywords)
        self.put(made, Instance(reference.number, tuple(attributes.items())))
        after = self.member(made, reference.number, "__post_init__", call.node)
        if after is not None:
            self.call(after, Call(node=call.node))
        return made

    def _default(self, default: Object | None, call: Call) -> Object:
        """The default of a field of a data class."""
        content = self.content(default) if default is not None else None
        if default is None or not isinstance(content, Instance) or content.kind != "field":
            return default if default is not None else NOTHING
        factory = content.get(" default_factory")
        if factory is not None:
            return self.call(factory, Call(node=call.node))
        return content.get(" default") or NOTHING

    def _fields(self, cell: Class, depth: int = 0) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        for base in cell.bases:
            content = self.content(base)
            if isinstance(content, Class) and depth < 8:
                found += self._fields(content, depth + 1)
        return (*found, *(name for name in cell.fields or () if name not in found))

    # --- what is not known

    def unknown_call(self, function: Object, name: str, call: Call) -> Object:
        """Calls something of a library without a model: it may give back what it is given."""
        everything = call.everything()
        results: list[Object] = []
        for index, one in enumerate(everything):
            if isinstance(one, Function) or (isinstance(one, Bound) and isinstance(one.method, Function)):
                results.append(self._called_back(one, call, index))
        read = foreign.variables_named(self, name, call)
        given = join_all([self.opaque((*everything, function), Confidence.LOW), read])
        foreign.absorb(self, function, self.opaque(everything, Confidence.LOW))
        confidence = foreign.command_confidence(function, name)
        if confidence is not None:
            self.possible_command(call, name.rsplit(".", 1)[-1], confidence)
        if isinstance(function, Named):
            given = foreign.make(self, name, given)
        return join_all([*results, given]) if results else given

    def _called_back(self, function: Object, call: Call, index: int) -> Object:
        """A function that a library gets may be called, with the other arguments or with parts of them."""
        others = [one for position, one in enumerate(call.everything()) if position != index]
        inner = function.method if isinstance(function, Bound) else function
        assert isinstance(inner, Function)
        parameters = inner.node.args
        wanted = len(parameters.posonlyargs) + len(parameters.args) - isinstance(function, Bound)
        behind = call.arguments[index + 1 :] if index < len(call.arguments) else ()
        target = call.keywords.get("args")
        if target is not None and isinstance(self.content(target), Items):
            behind = self.items(target).items
        if len(behind) == wanted and not any(isinstance(self.content(one), Items) for one in behind):
            return self.call(function, Call(node=call.node, arguments=tuple(behind)))
        elements = [self.element(self.items(one)) if isinstance(self.content(one), Items) else one for one in others]
        if len(elements) == wanted:
            return self.call(function, Call(node=call.node, arguments=tuple(elements)))
        return self.call(function, Call(node=call.node, rest=self.opaque(others, Confidence.LOW)))

    def possible_command(self, call: Call, name: str, confidence: Confidence) -> None:
        """A call that by its name may start a process."""
        start, end = self.span(call.node)
        launch = Launch(start=start, end=end)
        given = [(one, call.node_of(index)) for index, one in enumerate(call.arguments)]
        given += [(call.keywords[key], call.node_of(-1, key)) for key in _COMMANDS if key in call.keywords]
        for one, node in given:
            if self.taints(one):
                value = self.value(self.opaque((one,), confidence))
                self.process.leak(Argument(value, *self.span(node)), launch, command=name)

    # --- definitions

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Binds the name of a function, decorated."""
        function = self.function_of(node)
        made: Object = function
        for decorator in reversed(node.decorator_list):
            value = self.evaluate(decorator)
            if isinstance(value, Named):
                short = value.name.rsplit(".", 1)[-1]
                binding = _BINDINGS.get(short)
                if binding is not None and isinstance(made, Function):
                    made = replace(made, binding=binding)
                continue
            if isinstance(value, Function) or isinstance(self.content(value), Class):
                made = self.call(value, Call(node=decorator, arguments=(made,)))
            elif isinstance(made, Function) and made.owner is None:
                made = replace(made, foreign=True)
                self.registered.append(made)
        self.assign_name(node.name, made)

    def define_class(self, node: ast.ClassDef) -> None:
        """Runs the body of a class and binds its name."""
        bases = tuple(self.evaluate(base) for base in node.bases)
        decorators = [ast.unparse(one) for one in node.decorator_list]
        scope = self.memory.scope()
        number = self.memory.new(Class(node.name, scope, bases))
        frame = Frame(self.frame.module, (scope, *self.frame.scopes), owner=number)
        frame.loops, frame.handlers, frame.returns = [], self.frame.handlers, self.frame.returns
        self.frames.append(frame)
        try:
            self.execute_all(node.body)
        finally:
            self.frames.pop()
        is_data = any("dataclass" in one or "attr" in one or "define" in one for one in decorators)
        tuples = any(isinstance(base, Named) and base.name.endswith(("NamedTuple", "BaseModel")) for base in bases)
        inherited = any(isinstance(cell := self.content(base), Class) and cell.fields is not None for base in bases)
        if is_data or tuples or inherited:
            names = tuple(
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            )
            self.memory.put_cell(number, Class(node.name, scope, bases, names))
        self.assign_name(node.name, Reference(number))

    @abstractmethod
    def execute_all(self, body: Sequence[ast.stmt]) -> None:
        """Runs statements one after the other."""


_BINDINGS: dict[str, Literal["method", "static", "class", "property"]] = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "cached_property": "property",
}


@cache
def _yields(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is a generator."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        one = pending.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(one))
    return False
