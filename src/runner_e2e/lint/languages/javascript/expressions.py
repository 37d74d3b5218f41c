"""Expressions: literals, operators, assignments, calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.machine import Call, Passed
from runner_e2e.lint.languages.javascript.objects import Objects
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    FALSE,
    NULL,
    NUMBER,
    TRUE,
    UNDEFINED,
    Any,
    Cell,
    Closure,
    Constant,
    Js,
    Thing,
    constant,
    either,
    literal,
    of_text,
    of_thing,
    text_of,
    truth_of,
)
from runner_e2e.lint.source import PLACEHOLDER
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.tree import Node

__all__ = ["Expressions"]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r": ""}


def unescaped(text: str) -> str:
    """What an escape sequence stands for."""
    body = text[1:]
    if body[:1] in {"x", "u"}:
        digits = body[1:].strip("{}")
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            return text
    return _ESCAPES.get(body[:1], body)


class Expressions(Objects):
    """Evaluates expressions."""

    def evaluate(self, node: Node) -> Js:
        """See :meth:`Machine.evaluate`."""
        if not self.live:
            return UNDEFINED
        self.process.tick()
        handler = self._evaluators.get(node.kind)
        if handler is not None:
            return handler(self, node)
        return either([self.evaluate(child) for child in node.children]) if node.kind == "ERROR" else ANY

    def slice_of(self, node: Node) -> str:
        """The text of *node*."""
        return self.source.text[node.start : node.end]

    def inserted(self, text: str) -> Value:
        """Text of the program, where a placeholder stands for a value that is put in."""
        return self.source.value_in(text)

    # --- literals

    def _identifier(self, node: Node) -> Js:
        name = self.slice_of(node)
        if PLACEHOLDER.search(name):
            return of_text(self.inserted(name))
        cell = self.scope.find(name)
        if cell is not None:
            return cell.value if cell.value is not None else UNDEFINED
        if name == "arguments":
            return self.array([one.value for one in self.frames[-1].arguments if not one.many])
        found = self.builtin(name)
        return found if found is not None else of_thing(Thing("unknown", data=name))

    def _string(self, node: Node) -> Js:
        total = EMPTY
        for child in node.children:
            text = self.slice_of(child)
            if child.kind == "escape_sequence":
                total = total + Value.literal(unescaped(text))
            else:
                total = total + self.inserted(text)
        return of_text(total)

    def _template(self, node: Node) -> Js:
        total = EMPTY
        for child in node.children:
            if child.kind == "template_substitution":
                for inner in child.children:
                    total = total + text_of(self.evaluate(inner))
            elif child.kind == "escape_sequence":
                total = total + Value.literal(unescaped(self.slice_of(child)))
            else:
                total = total + self.inserted(self.slice_of(child))
        return of_text(total)

    def _number(self, node: Node) -> Js:
        text = self.slice_of(node).replace("_", "").lower()
        try:
            base = {"0x": 16, "0o": 8, "0b": 2}.get(text[:2])
            return constant(float(int(text, base) if base else float(text.rstrip("n"))))
        except (ValueError, OverflowError):
            return NUMBER

    def _regex(self, node: Node) -> Js:
        pattern = node.get("pattern")
        return of_thing(Thing("regexp", data=self.slice_of(pattern) if pattern is not None else ""))

    def _inner(self, node: Node) -> Js:
        return self.evaluate(node.children[0]) if node.children else UNDEFINED

    def _array(self, node: Node) -> Js:
        thing = Thing("array")
        for child in node.children:
            if child.kind == "spread_element":
                elements, others = self.iterate(self.evaluate(child.children[0]))
            else:
                elements, others = [self.evaluate(child)], None
            for value in elements:
                if thing.others.value is not None:
                    thing.others.value = either([thing.others.value, value])
                else:
                    thing.cells[str(len(thing.cells))] = Cell(value, child.start, child.end)
            if others is not None:
                before = thing.others.value
                thing.others.value = others if before is None else either([before, others])
                thing.others.start, thing.others.end = child.start, child.end
        return of_thing(thing)

    def _object(self, node: Node) -> Js:
        thing = Thing()
        for child in node.children:
            if child.kind == "pair":
                self._pair(thing, child)
            elif child.kind == "shorthand_property_identifier":
                thing.cells[self.slice_of(child)] = Cell(self._identifier(child), child.start, child.end)
            elif child.kind == "spread_element":
                self.copy_properties(thing, self.evaluate(child.children[0]))
            elif child.kind == "method_definition":
                name = self.key(child.get("name"))
                function = self.closure(child, this=of_thing(thing))
                if "get" in child.tokens and name.constant is not None:
                    thing.getters[name.constant] = function
                elif "set" not in child.tokens:
                    thing.cells[name.constant or ""] = Cell(of_thing(function))
        return of_thing(thing)

    def _pair(self, thing: Thing, node: Node) -> None:
        name, value_node = self.key(node.get("key")), node.get("value")
        value = self.evaluate(value_node) if value_node is not None else UNDEFINED
        start, end = (value_node.start, value_node.end) if value_node is not None else (node.start, node.end)
        if name.constant is not None:
            thing.cells[name.constant] = Cell(value, start, end)
            return
        before = thing.others.value
        both = value if not name.taints else either([value, of_text(name)])
        thing.others.value = both if before is None else either([before, both])

    def key(self, node: Node | None) -> Value:
        """The name of a property, as its syntax gives it."""
        if node is None:
            return EMPTY
        if node.kind == "computed_property_name":
            return text_of(self.evaluate(node.children[0])) if node.children else EMPTY
        if node.kind == "string":
            return text_of(self._string(node))
        if node.kind == "number":
            return text_of(self._number(node))
        return self.inserted(self.slice_of(node))

    def closure(self, node: Node, *, this: Js | None = None) -> Thing:
        """The function that *node* makes here. Only an arrow function keeps its ``this``."""
        self.scope.capture()
        return Thing("function", data=Closure(node, self.scope, self.source, this))

    def _function(self, node: Node) -> Js:
        thing = self.closure(node)
        name = node.get("name")
        if name is not None and node.kind != "arrow_function":
            scope, self.scope = self.scope, type(self.scope)(self.scope)
            self.scope.cells[self.slice_of(name)] = Cell(of_thing(thing))
            self.scope.capture()
            thing.data = Closure(node, self.scope, self.source, None)
            self.scope = scope
        return of_thing(thing)

    def _arrow(self, node: Node) -> Js:
        return of_thing(self.closure(node, this=self.frames[-1].this))

    def _this(self, _node: Node) -> Js:
        return self.frames[-1].this

    # --- classes

    def class_of(self, node: Node, cell: Cell | None = None) -> Js:
        """A class: its prototype holds the methods, the class itself what is static. *cell*: what its name means."""
        thing, prototype = Thing("class"), Thing()
        thing.data = node
        if cell is not None:
            cell.value = of_thing(thing)
        heritage = next((child for child in node.children if child.kind == "class_heritage"), None)
        if heritage is not None and heritage.children:
            parent = self.evaluate(heritage.children[0]).thing
            if parent is not None:
                thing.prototype = parent
                base = parent.cells.get("prototype")
                prototype.prototype = base.value.thing if base is not None and base.value is not None else None
        body = node.get("body")
        for member in body.children if body is not None else ():
            target = thing if "static" in member.tokens else prototype
            if member.kind == "method_definition":
                name = self.key(member.get("name")).constant
                function = self.closure(member)
                if "get" in member.tokens and name is not None:
                    target.getters[name] = function
                elif name is not None and "set" not in member.tokens:
                    target.cells[name] = Cell(of_thing(function))
            elif member.kind == "field_definition" and target is thing and (value := member.get("value")) is not None:
                target.cells[self.key(member.get("property")).constant or ""] = Cell(self.evaluate(value))
            elif member.kind == "class_static_block":
                self.call(self.closure(member), Call(self, of_thing(thing), (), member.start, member.end, "static"))
        thing.cells["prototype"] = Cell(of_thing(prototype))
        return of_thing(thing)

    def _new(self, node: Node) -> Js:
        constructor = node.get("constructor")
        callee = self.evaluate(constructor) if constructor is not None else ANY
        arguments = self.arguments_of(node.get("arguments"))
        name = self.slice_of(constructor) if constructor is not None else ""
        call = Call(self, UNDEFINED, arguments, node.start, node.end, f"new {name}")
        thing = callee.thing
        if thing is None or thing.native is not None or not thing.is_function:
            return self.call_value(callee, call)
        return self._constructed(thing, call)

    def _constructed(self, thing: Thing, call: Call) -> Js:
        made = Thing()
        prototype = thing.cells.get("prototype")
        made.prototype = prototype.value.thing if prototype is not None and prototype.value is not None else None
        this = of_thing(made)
        chain: list[Thing] = []
        one: Thing | None = thing
        while one is not None and len(chain) < 16:
            chain.append(one)
            one = one.prototype
        for one in reversed(chain):
            self._fields(one, made)
        constructor = self.find_property(made, "constructor")
        if constructor is not None and (function := constructor.thing) is not None:
            self.call(function, Call(self, this, call.arguments, call.start, call.end, call.name))
        elif isinstance(thing.data, Closure):
            self.call_closure(thing.data, Call(self, this, call.arguments, call.start, call.end, call.name))
        elif chain[-1].kind != "class":
            self.copy_properties(made, self.possible(call, call.name))
        return this

    def _fields(self, thing: Thing, made: Thing) -> None:
        node = thing.data
        body = node.get("body") if thing.kind == "class" and hasattr(node, "get") else None
        for member in body.children if body is not None else ():
            if member.kind == "field_definition" and "static" not in member.tokens:
                value = member.get("value")
                name = self.key(member.get("property")).constant
                if name is not None:
                    self.frames[-1].this, before = of_thing(made), self.frames[-1].this
                    made.cells[name] = Cell(self.evaluate(value) if value is not None else UNDEFINED)
                    self.frames[-1].this = before

    # --- operators

    def _unary(self, node: Node) -> Js:
        operator, argument = node.get("operator"), node.get("argument")
        sign = self.slice_of(operator) if operator is not None else ""
        if sign == "delete" and argument is not None:
            self.delete(argument)
            return TRUE
        value = self.evaluate(argument) if argument is not None else UNDEFINED
        if sign == "!":
            truth = truth_of(value)
            return BOOLEAN if truth is None else constant(not truth)
        if sign == "typeof":
            return _type_of(value)
        if sign == "void":
            return UNDEFINED
        number = value.number
        return NUMBER if number is None or sign == "~" else constant(-number if sign == "-" else number)

    def _binary(self, node: Node) -> Js:
        operator = node.get("operator")
        sign = self.slice_of(operator) if operator is not None else ""
        left_node, right_node = node.get("left"), node.get("right")
        if left_node is None or right_node is None:
            return ANY
        left = self.evaluate(left_node)
        if sign in {"&&", "||", "??"}:
            return self.choose(sign, left, lambda: self.evaluate(right_node))
        return self.operate(sign, left, self.evaluate(right_node))

    def choose(self, sign: str, left: Js, right: Callable[[], Js]) -> Js:
        """``&&``, ``||``, ``??``: the right side runs as far as the left one asks for it."""
        if sign == "??":
            absent = {UNDEFINED.atoms[0], NULL.atoms[0]}
            kept = Js(left.text, tuple(atom for atom in left.atoms if atom not in absent))
            if left.text is None and all(atom in absent for atom in left.atoms):
                return right()
            if kept == left and not any(isinstance(atom, Any) for atom in left.atoms):
                return left
            return self.split((lambda: kept, right))
        truth = truth_of(left)
        if truth is not None:
            return right() if truth == (sign == "&&") else left
        stays = left if sign == "||" else _falsy(left)
        return self.split((lambda: stays, right))

    def operate(self, sign: str, left: Js, right: Js) -> Js:
        """An operator on two values."""
        if sign == "+":
            return _added(left, right)
        if sign in {"===", "==", "!==", "!="}:
            same = _same(left, right)
            return BOOLEAN if same is None else constant(same == (sign[0] == "="))
        one, other = left.number, right.number
        if sign in {"<", ">", "<=", ">=", "in", "instanceof"}:
            if one is None or other is None:
                return BOOLEAN
            return constant(
                {"<": one < other, ">": one > other, "<=": one <= other, ">=": one >= other}.get(sign, False)
            )
        if one is None or other is None or sign not in {"-", "*", "/", "%"} or (sign in {"/", "%"} and other == 0):
            return NUMBER
        return constant(
            {"-": one - other, "*": one * other}[sign] if sign in {"-", "*"} else _divided(sign, one, other)
        )

    def _ternary(self, node: Node) -> Js:
        condition, yes, no = node.get("condition"), node.get("consequence"), node.get("alternative")
        if condition is None or yes is None or no is None:
            return ANY
        truth = truth_of(self.evaluate(condition))
        if truth is not None:
            return self.evaluate(yes if truth else no)
        return self.split((lambda: self.evaluate(yes), lambda: self.evaluate(no)))

    def _sequence(self, node: Node) -> Js:
        value = UNDEFINED
        for child in node.children:
            value = self.evaluate(child)
        return value

    def _yield(self, node: Node) -> Js:
        value = self.evaluate(node.children[0]) if node.children else UNDEFINED
        if "*" in node.tokens:
            elements, others = self.iterate(value)
            self.frames[-1].yields += [*elements, *([] if others is None else [others])]
        elif len(self.frames[-1].yields) < 64:
            self.frames[-1].yields.append(value)
        return ANY

    def _update(self, node: Node) -> Js:
        target, operator = node.get("argument"), node.get("operator")
        if target is None:
            return NUMBER
        before = self.evaluate(target).number
        step = -1.0 if operator is not None and self.slice_of(operator) == "--" else 1.0
        self.assign(target, NUMBER if before is None else constant(before + step))
        return NUMBER if before is None else constant(before)

    # --- assignment

    def _assignment(self, node: Node) -> Js:
        left, right = node.get("left"), node.get("right")
        value = self.evaluate(right) if right is not None else UNDEFINED
        if left is not None:
            self.assign(left, value, node)
        return value

    def _augmented(self, node: Node) -> Js:
        left, right, operator = node.get("left"), node.get("right"), node.get("operator")
        if left is None or right is None:
            return ANY
        sign = self.slice_of(operator)[:-1] if operator is not None else ""
        before = self.evaluate(left)
        if sign in {"&&", "||", "??"}:
            value = self.choose(sign, before, lambda: self.evaluate(right))
        else:
            value = self.operate(sign, before, self.evaluate(right))
        self.assign(left, value, node)
        return value

    def assign(self, target: Node, value: Js, whole: Node | None = None) -> None:
        """Gives *target* (a variable, a property, a pattern) its value."""
        if not self.live:
            return
        place = whole or target
        if target.kind in {"identifier", "shorthand_property_identifier_pattern"}:
            name = self.slice_of(target)
            cell = self.scope.find(name)
            if cell is None:
                cell = self.globals.cells[name] = Cell()
            self.write(cell, self.step(value, place.start, place.end, f"assigned to {name}"), place.start, place.end)
        elif target.kind in {"member_expression", "subscript_expression"}:
            owner, name_of = self.evaluate(target.children[0]), self._name_of(target)
            things = owner.things
            for thing in things:
                sure = len(things) == 1 and not self.unbounded
                self.set_property(thing, name_of, value, place.start, place.end, sure=sure)
        elif target.kind == "parenthesized_expression":
            self.assign(target.children[0], value, whole)
        else:
            self.bind(target, value, kind="assign")

    def _name_of(self, node: Node) -> Value:
        """The name of the property that a member or subscript expression means."""
        name = node.get("property")
        if name is not None:
            return self.inserted(self.slice_of(name))
        index = node.get("index")
        return text_of(self.evaluate(index)) if index is not None else Value.unknown()

    def delete(self, node: Node) -> None:
        """Removes a property."""
        if node.kind not in {"member_expression", "subscript_expression"}:
            return
        owner, name = self.evaluate(node.children[0]), self._name_of(node).constant
        for thing in owner.things:
            if thing.kind == "environment" and name is not None:
                self.process.set_variable(name, None)
            elif name is not None and name in thing.cells and len(owner.things) == 1:
                self.write(thing.cells[name], None)

    def _member(self, node: Node) -> Js:
        owner = self.evaluate(node.children[0])
        return self.get(owner, self._name_of(node))

    # --- calls

    def arguments_of(self, node: Node | None) -> tuple[Passed, ...]:
        """The arguments of a call."""
        found: list[Passed] = []
        for child in node.children if node is not None else ():
            if child.kind != "spread_element":
                found.append(Passed(self.evaluate(child), child.start, child.end))
                continue
            elements, others = self.iterate(self.evaluate(child.children[0]))
            found += [Passed(value, child.start, child.end) for value in elements]
            if others is not None:
                found.append(Passed(others, child.start, child.end, many=True))
        return tuple(found)

    def _call(self, node: Node) -> Js:
        function, arguments = node.get("function"), node.get("arguments")
        if function is None:
            return ANY
        while function.kind in {"parenthesized_expression", "await_expression"} and len(function.children) == 1:
            function = function.children[0]
        name = re.sub(r"\s+", "", self.slice_of(function))[:80]
        if arguments is not None and arguments.kind == "template_string":
            callee = self.evaluate(function)
            return self.tagged(callee, arguments, Call(self, UNDEFINED, (), node.start, node.end, name))
        if function.kind == "import":
            passed = self.arguments_of(arguments)
            return self.import_module(Call(self, UNDEFINED, passed, node.start, node.end, "import"))
        if function.kind == "super":
            return self._super(
                Call(self, self.frames[-1].this, self.arguments_of(arguments), node.start, node.end, "super")
            )
        if function.kind in {"member_expression", "subscript_expression"}:
            owner_node = function.children[0]
            owner = self.frames[-1].this if owner_node.kind == "super" else self.evaluate(owner_node)
            method = self._name_of(function)
            passed = self.arguments_of(arguments)
            if not self.live:
                return UNDEFINED
            return self.call_method(owner, method, Call(self, owner, passed, node.start, node.end, name))
        callee = self.evaluate(function)
        passed = self.arguments_of(arguments)
        return (
            self.call_value(callee, Call(self, UNDEFINED, passed, node.start, node.end, name))
            if self.live
            else UNDEFINED
        )

    def _super(self, call: Call) -> Js:
        made = call.this.thing
        parent = made.prototype.prototype if made is not None and made.prototype is not None else None
        constructor = self.find_property(parent, "constructor") if parent is not None else None
        if constructor is not None and (function := constructor.thing) is not None:
            return self.call(function, call)
        return UNDEFINED

    _evaluators: Mapping[str, Callable[..., Js]] = {
        "identifier": _identifier,
        "shorthand_property_identifier": _identifier,
        "string": _string,
        "template_string": _template,
        "number": _number,
        "true": lambda _self, _node: TRUE,
        "false": lambda _self, _node: FALSE,
        "null": lambda _self, _node: NULL,
        "undefined": lambda _self, _node: UNDEFINED,
        "regex": _regex,
        "parenthesized_expression": _inner,
        "await_expression": _inner,
        "spread_element": _inner,
        "array": _array,
        "object": _object,
        "function_expression": _function,
        "generator_function": _function,
        "arrow_function": _arrow,
        "class": class_of,
        "this": _this,
        "super": _this,
        "new_expression": _new,
        "unary_expression": _unary,
        "binary_expression": _binary,
        "ternary_expression": _ternary,
        "sequence_expression": _sequence,
        "yield_expression": _yield,
        "update_expression": _update,
        "assignment_expression": _assignment,
        "augmented_assignment_expression": _augmented,
        "member_expression": _member,
        "subscript_expression": _member,
        "call_expression": _call,
    }


def _divided(sign: str, one: float, other: float) -> float:
    return one / other if sign == "/" else one - other * int(one / other)


def _falsy(value: Js) -> Js:
    """What of *value* can be false: an empty text, and the constants that are."""
    atoms = tuple(atom for atom in value.atoms if not isinstance(atom, Thing))
    return Js(EMPTY if value.text is not None else None, atoms)


def _added(left: Js, right: Js) -> Js:
    one, other = left.number, right.number
    if one is not None and other is not None:
        return constant(one + other)
    if _is_numeric(left) and _is_numeric(right):
        return NUMBER
    return of_text(text_of(left) + text_of(right))


def _is_numeric(value: Js) -> bool:
    return value.text is None and all(isinstance(atom, Constant) for atom in value.atoms)


def _same(left: Js, right: Js) -> bool | None:
    """Whether two values are equal; None when it is not known."""
    if left.text is not None and right.text is not None and not left.atoms and not right.atoms:
        one, other = left.text.constants, right.text.constants
        if one is None or other is None:
            return None
        if len(one) == len(other) == 1:
            return one == other
        return None if set(one) & set(other) else False
    atoms = (*left.atoms, *right.atoms)
    if len(left.atoms) == len(right.atoms) == 1 and left.text is None and right.text is None:
        one_atom, other_atom = atoms
        if isinstance(one_atom, Constant) and isinstance(other_atom, Constant):
            if one_atom.kind != other_atom.kind and {one_atom.kind, other_atom.kind} != {"null", "undefined"}:
                return False
            return one_atom.value == other_atom.value if one_atom.known and other_atom.known else None
        if isinstance(one_atom, Thing) and isinstance(other_atom, Constant):
            return False
    return None


_TYPES = {"number": "number", "boolean": "boolean", "null": "object", "undefined": "undefined"}


def _type_of(value: Js) -> Js:
    names = {"string"} if value.text is not None else set()
    for atom in value.atoms:
        if isinstance(atom, Any) or (isinstance(atom, Thing) and atom.kind == "unknown"):
            return of_text(Value.unknown())
        names.add(_TYPES[atom.kind] if isinstance(atom, Constant) else "function" if atom.is_function else "object")
    return either([literal(name) for name in sorted(names)])
