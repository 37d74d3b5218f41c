"""Expressions: what each gives, and what it does on the way."""

from __future__ import annotations

import ast
import builtins
import operator
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from runner_e2e.lint.languages.python import library, texts
from runner_e2e.lint.languages.python.evaluator import Call, Evaluator, constant
from runner_e2e.lint.languages.python.library import system
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    Bound,
    Class,
    Constant,
    Dictionary,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Reference,
    Text,
    Union,
    join_all,
    text,
)
from runner_e2e.lint.values import EMPTY, Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Expressions"]

_BUILTINS = frozenset(dir(builtins))
_MAX_NUMBER = 1 << 64
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Expressions(Evaluator):
    """Evaluates expressions; functions and statements are the upper half's."""

    def evaluate(self, node: ast.expr) -> Object:
        """What *node* gives."""
        self.process.tick()
        return self._expressions[type(node)](self, node)

    # --- leaves

    def _constant(self, node: ast.Constant) -> Object:
        if isinstance(node.value, str):
            return Text(self.frame.module.value_of(node.value))
        return constant(node.value)

    def _name(self, node: ast.Name) -> Object:
        found = self.lookup(node.id)
        if found is not None:
            return found
        if self.frame.module.has_unknown(node.id):
            return Opaque(self.frame.module.value_of(node.id).taints)
        return Named(f"builtins.{node.id}" if node.id in _BUILTINS else f"?.{node.id}")

    def _joined_string(self, node: ast.JoinedStr) -> Object:
        value = EMPTY
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = value + self._formatted(part)
            else:
                value = value + self.value(self.evaluate(part))
        return Text(value)

    def _formatted(self, node: ast.FormattedValue) -> Value:
        inner = self.evaluate(node.value)
        form = self.value(self.evaluate(node.format_spec)) if node.format_spec is not None else EMPTY
        if node.conversion in (ord("r"), ord("a")):
            return texts.shown(self.value(inner), quoted=isinstance(inner, Text))
        return texts.formatted(self.value(inner), form.constant)

    # --- displays

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Object:
        items: list[Object] = []
        rest: Object | None = None
        for element in node.elts:
            if isinstance(element, ast.Starred):
                more = self.items(self.evaluate(element.value))
                new, behind = list(more.items), more.rest
            else:
                new, behind = [self.evaluate(element)], None
            if rest is None:
                items += new
                rest = behind
            else:
                rest = join_all([rest, *new, *([behind] if behind is not None else [])])
        if isinstance(node, ast.Tuple):
            return Items(tuple(items), rest, "tuple")
        return self.new(Items(tuple(items), rest, "list" if isinstance(node, ast.List) else "set"))

    def _dictionary(self, node: ast.Dict) -> Object:
        made = Dictionary()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                made = self.updated(made, self.evaluate(value))
            else:
                made = self.with_entry(made, self.evaluate(key), self.evaluate(value))
        return self.new(made)

    # --- comprehensions

    def _list_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Object:
        found: list[Object] = []
        unknown: list[Object] = []
        self._generate(node.generators, lambda sure: (found if sure else unknown).append(self.evaluate(node.elt)))
        if unknown:
            return self.new(Items((), join_all([*found, *unknown])))
        return self.new(Items(tuple(found), None, "set" if isinstance(node, ast.SetComp) else "list"))

    def _dictionary_comprehension(self, node: ast.DictComp) -> Object:
        made = [Dictionary()]

        def add(_sure: bool) -> None:
            made[0] = self.with_entry(made[0], self.evaluate(node.key), self.evaluate(node.value))

        self._generate(node.generators, add)
        return self.new(made[0])

    def _generate(self, generators: list[ast.comprehension], give: Callable[[bool], object]) -> None:
        """Calls *give* for what the loops of a comprehension get; whether that is sure to be one item."""
        if not generators:
            give(True)
            return
        first, rest = generators[0], generators[1:]
        items = self.items(self.evaluate(first.iter))
        for item in items.items[:64]:
            self._generate_one(first, item, rest, give)
        others = [*items.items[64:], *([items.rest] if items.rest is not None else [])]
        if others:
            self._generate_one(first, join_all(others), rest, lambda _sure: give(False))

    def _generate_one(
        self, loop: ast.comprehension, item: Object, rest: list[ast.comprehension], give: Callable[[bool], object]
    ) -> None:
        self.assign(loop.target, item)
        answers = [self.truth(self.evaluate(condition)) for condition in loop.ifs]
        if False in answers:
            return
        sure = None not in answers
        self._generate(rest, give if sure else lambda _sure: give(False))

    # --- operators

    def _binary(self, node: ast.BinOp) -> Object:
        return self.operate(node.op, self.evaluate(node.left), self.evaluate(node.right))

    def operate(self, sign: ast.operator, left: Object, right: Object) -> Object:
        """``left sign right``."""
        if isinstance(left, Union) or isinstance(right, Union):
            pairs = [(a, b) for a in self.options(left) for b in self.options(right)]
            return join_all(self.operate(sign, a, b) for a, b in pairs[:16])
        if isinstance(left, Constant) and isinstance(right, Constant):
            return self._calculated(sign, left.value, right.value)
        if isinstance(sign, ast.Add):
            return self._added(left, right)
        if isinstance(sign, ast.Mod) and isinstance(left, Text):
            return self.percent(left, right)
        if isinstance(sign, ast.Div) and "path" in (getattr(left, "kind", ""), getattr(right, "kind", "")):
            return Text(texts.path_joined((self.value(left), self.value(right))), "path")
        if isinstance(sign, ast.Mult):
            return self._multiplied(left, right)
        if isinstance(sign, ast.BitOr):
            first = self.content(left)
            if isinstance(first, Dictionary):
                return self.new(self.updated(first, right))
            if left == Named("os.environ"):
                return self.new(self.updated(self.updated(Dictionary(), left), right))
        return self.opaque((left, right), Confidence.LOW)

    @staticmethod
    def _calculated(sign: ast.operator, left: object, right: object) -> Object:
        calculate = _ARITHMETIC.get(type(sign))
        if calculate is None or not isinstance(left, int) or not isinstance(right, int):
            return NOTHING
        if abs(left) > _MAX_NUMBER or abs(right) > _MAX_NUMBER:
            return NOTHING
        try:
            return constant(calculate(left, right))
        except ZeroDivisionError:
            return NOTHING

    def _added(self, left: Object, right: Object) -> Object:
        first, second = self.content(left), self.content(right)
        if isinstance(first, Items) or isinstance(second, Items):
            a = first if isinstance(first, Items) else self.items(left)
            joined = self.concatenated(a, second if isinstance(second, Items) else self.items(right))
            return joined if joined.kind == "tuple" else self.new(joined)
        if isinstance(left, Text) or isinstance(right, Text):
            kind = left.kind if isinstance(left, Text) else right.kind if isinstance(right, Text) else "str"
            return Text(self.value(left) + self.value(right), kind)
        return self.opaque((left, right))

    def _multiplied(self, left: Object, right: Object) -> Object:
        number, other = (left, right) if isinstance(left, Constant) else (right, left)
        times = number.value if isinstance(number, Constant) and isinstance(number.value, int) else None
        if isinstance(other, Text):
            if times is not None and 0 <= times <= 8:
                total = EMPTY
                for _ in range(times):
                    total = total + other.value
                return Text(total, other.kind)
            return Text(other.value | other.value.opaque(), other.kind)
        content = self.content(other)
        if isinstance(content, Items):
            if times is not None and 0 <= times * len(content.items) <= 64 and content.rest is None:
                return self.new(Items(content.items * times))
            return self.new(Items((), self.element(content)))
        return self.opaque((left, right), Confidence.LOW)

    def percent(self, form: Text, given: Object) -> Object:
        """``form % given``."""
        arguments = list(given.items) if isinstance(given, Items) else [given]
        if isinstance(given, Items) and given.rest is not None:
            return Text(form.value.opaque() | Value.of(self.taints(given)))
        content = self.content(given)

        def named(name: str) -> Value:
            found = content.get(name) if isinstance(content, Dictionary) else None
            return self.value(found if found is not None else Opaque(self.taints(given)))

        return Text(texts.percent(form.value, [self.value(one) for one in arguments], named), form.kind)

    def _unary(self, node: ast.UnaryOp) -> Object:
        operand = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(operand)
            return self.boolean(None if truth is None else not truth)
        if isinstance(node.op, ast.USub) and isinstance(operand, Constant) and isinstance(operand.value, int):
            return constant(-operand.value)
        return self.opaque((operand,), Confidence.LOW)

    def _logical(self, node: ast.BoolOp) -> Object:
        stops = isinstance(node.op, ast.Or)
        found: list[Object] = []
        for index, one in enumerate(node.values):
            value = self.evaluate(one)
            truth = self.truth(value)
            if truth is stops or index == len(node.values) - 1:
                found.append(value)
                break
            if truth is None:
                found.append(self._when(value, truth=stops))
        return join_all(found)

    def _when(self, value: Object, *, truth: bool) -> Object:
        """What *value* is when it counts as *truth*."""
        if isinstance(value, Union):
            kept = [option for option in value.options if self.truth(option) is not (not truth)]
            return join_all(kept) if kept else value
        if isinstance(value, Text) and not truth:
            return text("")
        if isinstance(value, Text):
            return Text(Value.any_of([one for one in value.value.texts if one] or [()]), value.kind)
        return value

    def _compare(self, node: ast.Compare) -> Object:
        left = self.evaluate(node.left)
        answer: bool | None = True
        for sign, following in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(following)
            one = self._compared(sign, left, right)
            answer = False if one is False or answer is False else None if None in (one, answer) else True
            left = right
        return self.boolean(answer)

    def _compared(self, sign: ast.cmpop, left: Object, right: Object) -> bool | None:
        if isinstance(sign, ast.Is | ast.IsNot):
            same = self._same(left, right)
            return same if same is None or isinstance(sign, ast.Is) else not same
        if isinstance(sign, ast.In | ast.NotIn):
            inside = self._contains(right, left)
            return inside if inside is None or isinstance(sign, ast.In) else not inside
        known = self.known_keys(left), self.known_keys(right)
        if known[0] is None or known[1] is None or len(known[0]) * len(known[1]) > 64:
            return None
        compare = _ORDER[type(sign)]
        try:
            answers = {bool(compare(a, b)) for a in known[0] for b in known[1]}
        except TypeError:
            return None
        return answers.pop() if len(answers) == 1 else None

    def _same(self, left: Object, right: Object) -> bool | None:
        if isinstance(left, Constant) and isinstance(right, Constant):
            return left == right
        for one, other in ((left, right), (right, left)):
            if one == NONE and isinstance(other, Text | Items | Named | Function | Reference | Bound):
                return None if isinstance(other, Named) and other.name.startswith("?") else False
        return None

    def _contains(self, whole: Object, part: Object) -> bool | None:
        keys = self.known_keys(part)
        if keys is None or len(keys) != 1:
            return None
        content = self.content(whole)
        if isinstance(content, Dictionary):
            return True if keys[0] in dict(content.entries) else (False if content.others is None else None)
        if isinstance(content, Items):
            known = [self.known_keys(item) for item in content.items]
            if any(each == keys for each in known):
                return True
            return False if content.rest is None and all(each is not None for each in known) else None
        if isinstance(whole, Text) and whole.value.constants is not None:
            answers = {str(keys[0]) in each for each in whole.value.constants}
            return answers.pop() if len(answers) == 1 else None
        return None

    def _conditional(self, node: ast.IfExp) -> Object:
        truth = self.truth(self.evaluate(node.test))
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse)
        return join_all((self.evaluate(node.body), self.evaluate(node.orelse)))

    # --- parts

    def _attribute(self, node: ast.Attribute) -> Object:
        owner = self.evaluate(node.value)
        if self.frame.module.has_unknown(node.attr):
            return self.opaque((owner, Text(self.frame.module.value_of(node.attr))))
        return self.attribute(owner, node.attr, node)

    def attribute(self, owner: Object, name: str, node: ast.expr) -> Object:
        """See :meth:`Evaluator.attribute`."""
        if isinstance(owner, Union):
            options = [one for one in owner.options if one != NONE] or list(owner.options)
            return join_all(self.attribute(one, name, node) for one in options)
        if isinstance(owner, Named):
            full = f"{owner.name}.{name}"
            made = library.attribute(self, full)
            return made if made is not None else Named(full)
        if isinstance(owner, Reference):
            return self._cell_attribute(owner, name, node)
        if isinstance(owner, Text):
            found = texts.path_part(owner.value, name) if owner.kind == "path" else None
            return Bound(owner, f"{owner.kind}.{name}") if found is None else found
        if isinstance(owner, Items):
            return Bound(owner, f"{owner.kind}.{name}")
        if isinstance(owner, Bound) and isinstance(owner.method, str) and owner.method.startswith("?"):
            return Bound(owner.receiver, f"{owner.method}.{name}")
        return Bound(owner, f"?.{name}")

    def _cell_attribute(self, owner: Reference, name: str, node: ast.expr) -> Object:
        cell = self.memory.cell(owner.number)
        if isinstance(cell, Items):
            return Bound(owner, f"{cell.kind}.{name}")
        if isinstance(cell, Dictionary):
            return Bound(owner, f"dict.{name}")
        if isinstance(cell, Class):
            return self.member(owner, owner.number, name, node) or Bound(owner, f"?.{name}")
        found = cell.get(name)
        if found is not None:
            return found
        if cell.kind == "super":
            base, real = cell.get(" base"), cell.get(" self") or owner
            inherited = self.member(real, base.number, name, node) if isinstance(base, Reference) else None
            return inherited if inherited is not None else Bound(real, f"?.{name}")
        if cell.kind == "module":
            scope = cell.get(" scope")
            assert isinstance(scope, Constant)
            assert isinstance(scope.value, int)
            return self.memory.variable(scope.value, name) or self.submodule(cell, name) or NOTHING
        if isinstance(cell.kind, int):
            member = self.member(owner, cell.kind, name, node)
            return member or library.setting(self, cell.kind, name, node) or Bound(owner, f"?.{name}")
        return Bound(owner, f"{cell.kind}.{name}")

    def member(self, owner: Object, number: int, name: str, node: ast.expr, depth: int = 0) -> Object | None:
        """What *name* is in the class *number*, bound to *owner*; None when it has none."""
        cell = self.memory.cell(number)
        if not isinstance(cell, Class) or depth > 8:
            return None
        found = self.memory.variable(cell.scope, name)
        if found is None:
            for base in cell.bases:
                inner = self.member(owner, base.number, name, node, depth + 1) if isinstance(base, Reference) else None
                if inner is not None:
                    return inner
            return None
        if not isinstance(found, Function):
            return found
        if found.binding == "property":
            return self.call(Bound(owner, found), Call(node=node))
        if found.binding == "static" or (owner == Reference(number) and found.binding == "method"):
            return found
        return Bound(Reference(number) if found.binding == "class" else owner, found)

    def special(self, one: Object, names: tuple[str, ...]) -> Object | None:
        """See :meth:`Evaluator.special`."""
        cell = self.content(one)
        if not isinstance(cell, Instance) or not isinstance(cell.kind, int):
            return None
        node = ast.copy_location(ast.Constant(None), self.frame.module.tree.body[0])
        for name in names:
            method = self.member(one, cell.kind, name, node)
            if method is not None:
                return self.call(method, Call(node=node))
        return None

    @abstractmethod
    def submodule(self, cell: Instance, name: str) -> Object | None:
        """A module inside of a package."""

    def _subscript(self, node: ast.Subscript) -> Object:
        owner = self.evaluate(node.value)
        if isinstance(node.slice, ast.Slice):
            bounds = [None if one is None else self.evaluate(one) for one in (node.slice.lower, node.slice.upper)]
            step = self.evaluate(node.slice.step) if node.slice.step is not None else None
            return join_all(self._sliced(one, bounds, step) for one in self.options(owner))
        key = self.evaluate(node.slice)
        return join_all(self.at(one, key, node) for one in self.options(owner) if one != NONE)

    def at(self, owner: Object, key: Object, node: ast.expr) -> Object:
        """``owner[key]``."""
        if owner == Named("os.environ"):
            return system.environment_variable(self, key, node, None)
        if isinstance(owner, Named):
            return owner  # ``list[str]``
        if isinstance(owner, Text):
            index = key.value if isinstance(key, Constant) and isinstance(key.value, int) else None
            return Text(texts.character(owner.value, index), owner.kind)
        content = self.content(owner)
        if isinstance(content, Dictionary):
            return self.entry(content, key)
        if isinstance(content, Items):
            return self._item(content, key)
        if isinstance(content, Instance) and isinstance(content.kind, int):
            method = self.member(owner, content.kind, "__getitem__", node)
            if method is not None:
                return self.call(method, Call(node=node, arguments=(key,)))
        return self.opaque((owner,))

    def _item(self, cell: Items, key: Object) -> Object:
        index = key.value if isinstance(key, Constant) and isinstance(key.value, int) else None
        if index is None:
            return self.element(cell)
        if cell.rest is None:
            return cell.items[index] if -len(cell.items) <= index < len(cell.items) else NOTHING
        if 0 <= index < len(cell.items):
            return cell.items[index]
        if index == -1 and cell.items:
            return join_all((cell.items[-1], cell.rest))
        return join_all([*(cell.items if index < 0 else ()), cell.rest])

    def _sliced(self, owner: Object, bounds: list[Object | None], step: Object | None) -> Object:
        numbers = [one.value if isinstance(one, Constant) else None for one in bounds]
        low, high = (number if isinstance(number, int) else None for number in numbers)
        exact = all(one is None or isinstance(one, Constant) for one in bounds) and step in (None, NONE)
        if isinstance(owner, Text):
            if not exact:
                return Text(owner.value.opaque().weakened(Confidence.LOW), owner.kind)
            return Text(texts.sliced(owner.value, low, high), owner.kind)
        content = self.content(owner)
        if isinstance(content, Items):
            if exact and content.rest is None:
                made = Items(content.items[low:high], None, content.kind)
            elif exact and high is None and low is not None and 0 <= low <= len(content.items):
                made = Items(content.items[low:], content.rest, content.kind)
            else:
                made = Items((), self.element(content), content.kind)
            return made if content.kind == "tuple" else self.new(made)
        return self.opaque((owner,))

    # --- calls

    def _call(self, node: ast.Call) -> Object:
        function = self.evaluate(node.func)
        return self.call(function, self._arguments(node))

    def _arguments(self, node: ast.Call) -> Call:
        arguments: list[Object] = []
        nodes: list[ast.expr | None] = []
        keywords: dict[str, Object] = {}
        keyword_nodes: dict[str, ast.expr] = {}
        rest: list[Object] = []
        for one in node.args:
            if isinstance(one, ast.Starred):
                items = self.items(self.evaluate(one.value))
                arguments += items.items
                nodes += [one] * len(items.items)
                rest += [items.rest] if items.rest is not None else []
            else:
                (rest or arguments).append(self.evaluate(one))
                nodes.append(one)
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
                keyword_nodes[keyword.arg] = keyword.value
                continue
            content = self.mapping(value)
            if isinstance(content, Dictionary):
                keywords.update((name, item) for name, item in content.entries if isinstance(name, str))
                rest += [content.others] if content.others is not None else []
            elif value != NONE:
                rest.append(Opaque(self.taints(value)))
        return Call(
            node=node,
            arguments=tuple(arguments),
            keywords=keywords,
            rest=join_all(rest) if rest else None,
            nodes=tuple(nodes),
            keyword_nodes=keyword_nodes,
        )

    # --- the rest

    def _lambda(self, node: ast.Lambda) -> Object:
        return self.function_of(node)

    @abstractmethod
    def function_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        """The function that a definition makes here."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Object) -> None:
        """Assigns to a name, an attribute, an element, or several of them."""

    def _named(self, node: ast.NamedExpr) -> Object:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _await(self, node: ast.Await | ast.Starred) -> Object:
        return self.evaluate(node.value)

    def _yield(self, node: ast.Yield) -> Object:
        value = self.evaluate(node.value) if node.value is not None else NONE
        if self.frame.yields is not None:
            self.frame.yields.append(value)
        return NOTHING

    def _yield_from(self, node: ast.YieldFrom) -> Object:
        items = self.items(self.evaluate(node.value))
        if self.frame.yields is not None:
            self.frame.yields.append(self.element(items))
        return NOTHING

    def _slice(self, node: ast.Slice) -> Object:
        parts: Iterable[ast.expr | None] = (node.lower, node.upper, node.step)
        return self.opaque([self.evaluate(part) for part in parts if part is not None])

    def _alone(self, node: ast.FormattedValue) -> Object:
        return Text(self._formatted(node))

    _expressions: Mapping[type[ast.expr], Callable[..., Object]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.JoinedStr: _joined_string,
        ast.FormattedValue: _alone,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Set: _list,
        ast.Dict: _dictionary,
        ast.ListComp: _list_comprehension,
        ast.SetComp: _list_comprehension,
        ast.GeneratorExp: _list_comprehension,
        ast.DictComp: _dictionary_comprehension,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: _logical,
        ast.Compare: _compare,
        ast.IfExp: _conditional,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
        ast.Lambda: _lambda,
        ast.NamedExpr: _named,
        ast.Await: _await,
        ast.Starred: _await,
        ast.Yield: _yield,
        ast.YieldFrom: _yield_from,
        ast.Slice: _slice,
    }
