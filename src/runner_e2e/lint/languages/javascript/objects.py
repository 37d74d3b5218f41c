"""Properties and methods of whatever a value may be."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.array_methods import ARRAY_METHODS, MAP_METHODS
from runner_e2e.lint.languages.javascript.machine import Call, Machine, Passed
from runner_e2e.lint.languages.javascript.octokit import member
from runner_e2e.lint.languages.javascript.text_methods import METHODS, text_property
from runner_e2e.lint.languages.javascript.values import (
    ANY,
    BOOLEAN,
    NUMBER,
    UNDEFINED,
    Any,
    Cell,
    Constant,
    Js,
    Thing,
    any_with,
    constant,
    either,
    literal,
    of_text,
    of_thing,
    text_of,
)
from runner_e2e.lint.values import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.tree import Node

__all__ = ["Objects"]

_COLLECTIONS = frozenset({"map", "set"})
_MAX_CHAIN = 16


class Objects(Machine):
    """Looks properties up, and calls methods."""

    @abstractmethod
    def tagged(self, callee: Js, template: Node, call: Call) -> Js:
        """A template with a tag: ``$`tool` ``."""

    @abstractmethod
    def import_module(self, call: Call) -> Js:
        """``import(…)`` and ``require(…)``."""

    def find_property(self, thing: Thing, name: str) -> Js | None:
        """The property *name* of an object or of its prototypes, when there is one."""
        one: Thing | None = thing
        for _ in range(_MAX_CHAIN):
            if one is None:
                return None
            cell = one.cells.get(name)
            if cell is not None and cell.value is not None:
                return cell.value
            getter = one.getters.get(name)
            if getter is not None:
                return self.call(getter, Call(self, of_thing(thing), (), 0, 0, name))
            one = one.prototype
        return None

    def get(self, value: Js, name: Value) -> Js:
        """See :meth:`Machine.get`."""
        found: list[Js] = []
        key = name.constant
        if value.text is not None:
            if key is None:
                found.append(of_text(value.text.opaque()))
            else:
                found.append(text_property(value.text, key) or of_thing(self._method_of(of_text(value.text), key)))
        for atom in value.atoms:
            if isinstance(atom, Thing):
                found.append(self._get_of(atom, name))
            elif isinstance(atom, Any):
                found.append(Js(None, (atom,)))
        return either(found) if found else UNDEFINED

    def _get_of(self, thing: Thing, name: Value) -> Js:
        key = name.constant
        if thing.kind == "environment":
            return self._variable(name)
        if thing.kind in {"unknown", "harmless"}:
            own = thing.cells.get(key or "")
            if own is not None and own.value is not None:
                return own.value
            return of_thing(Thing(thing.kind, data=f"{thing.data}.{key or '…'}"))
        if thing.kind == "client":
            return of_thing(member(thing, key or "…"))
        if thing.kind == "numbers":
            return NUMBER
        if key is None:
            values = [cell.value for cell in thing.cells.values() if cell.value is not None]
            return either([UNDEFINED, *values, *([thing.others.value] if thing.others.value is not None else [])])
        found = self.find_property(thing, key)
        if found is not None:
            return found
        if key == "length" and thing.kind in {"array", "function"}:
            return NUMBER if thing.others.value is not None else constant(float(len(thing.elements())))
        if key == "size" and thing.kind in _COLLECTIONS:
            return NUMBER
        others = thing.others.value
        if others is not None and not (thing.kind == "array" and not key.isdigit()):
            return either([UNDEFINED, others])
        if key in _methods(thing):
            return of_thing(self._method_of(of_thing(thing), key))
        return UNDEFINED

    def _variable(self, name: Value) -> Js:
        """A variable of the environment."""
        if name.constants is None:
            return either(
                [UNDEFINED, any_with(one for value in self.process.environment().values() for one in value.taints)]
            )
        values = [self.process.variable(one) for one in name.constants]
        return either([of_text(value) if value is not None else Js(UNKNOWN, UNDEFINED.atoms) for value in values])

    def _method_of(self, owner: Js, name: str) -> Thing:
        """A method taken off its object, which calls it there."""
        return Thing("function", native=lambda call: self.call_method(owner, Value.literal(name), call))

    # --- methods

    def call_method(self, owner: Js, name: Value, call: Call) -> Js:
        """See :meth:`Machine.call_method`."""
        key = name.constant or ""
        if key in _PROMISE and not self._has_own(owner, key):
            return self._then(key, owner, call)
        if self._is_plain(owner):
            return self._method_of_atom(owner, key, name, call)
        ways: list[Callable[[], Js]] = []
        if owner.text is not None:
            ways.append(lambda: self._method_of_atom(of_text(owner.text), key, name, call))  # type: ignore[arg-type]
        ways += [
            lambda atom=atom: self._method_of_atom(Js(None, (atom,)), key, name, call)  # type: ignore[misc]
            for atom in owner.atoms
            if not (isinstance(atom, Constant) and atom.kind in {"null", "undefined"})
        ]
        if not ways:
            return UNDEFINED
        return ways[0]() if len(ways) == 1 else self.split(ways)

    @staticmethod
    def _is_plain(owner: Js) -> bool:
        return (owner.text is not None) != bool(owner.atoms) and len(owner.atoms) <= 1

    def _has_own(self, owner: Js, key: str) -> bool:
        thing = owner.thing
        return thing is not None and (
            thing.kind in {"unknown", "harmless", "client"} or self.find_property(thing, key) is not None
        )

    def _method_of_atom(self, owner: Js, key: str, name: Value, call: Call) -> Js:
        call = Call(self, owner, call.arguments, call.start, call.end, call.name)
        if owner.text is not None:
            method = METHODS.get(key)
            if method is not None:
                return method(call, owner.text)
            return of_text(owner.text.opaque()) if owner.text.taints else ANY
        if not owner.atoms:
            return UNDEFINED
        atom = owner.atoms[0]
        if isinstance(atom, Constant):
            return _method_of_constant(owner, key)
        if isinstance(atom, Any):
            return self._method_of_any(atom, key, call)
        return self._method_of_thing(atom, key, name, call)

    def _method_of_any(self, atom: Any, key: str, call: Call) -> Js:
        """A method of data of any kind: most likely one of a text or an array."""
        if key in METHODS and key not in ARRAY_METHODS:
            return METHODS[key](call, Value.of(atom.taints))
        if key in ARRAY_METHODS or key in MAP_METHODS or key in METHODS:
            array = Thing("array")
            array.others.value = Js(None, (atom,))
            method = ARRAY_METHODS.get(key)
            result = method(call, array) if method is not None else UNDEFINED
            return either([result, any_with(atom.taints)])
        return self.harmless(call)

    def _method_of_thing(self, thing: Thing, key: str, name: Value, call: Call) -> Js:
        if thing.kind == "unknown":
            return self.possible(call, call.name or str(thing.data))
        if thing.kind == "harmless":
            own = thing.cells.get(key)
            known = own.value if own is not None else None
            return self.harmless(call) if known is None else self.call_value(known, call)
        if thing.kind == "client":
            return self.call(member(thing, key or "…"), call)
        if thing.kind == "numbers":  # `Math`
            return NUMBER
        found = self.find_property(thing, key) if key else self._get_of(thing, name)
        if found is not None:
            return self.call_value(found, call)
        method = _methods(thing).get(key)
        if method is not None:
            return method(call, thing)
        if thing.is_function and key in {"call", "apply", "bind"}:
            return self._call_with_this(thing, key, call)
        if key in {"toString", "toJSON", "valueOf", "toLocaleString"}:
            return of_text(text_of(of_thing(thing)))
        if key == "hasOwnProperty":
            return BOOLEAN
        others = thing.others.value
        if others is not None and thing.kind != "array":
            return self.call_value(others, call)
        return self.harmless(call)

    def _call_with_this(self, thing: Thing, key: str, call: Call) -> Js:
        this = call.arg(0)
        rest = call.arguments[1:]
        if key == "apply":
            elements, others = self.iterate(call.arg(1))
            rest = tuple(Passed(value, call.start, call.end) for value in elements)
            if others is not None:
                rest = (*rest, Passed(others, call.start, call.end, many=True))
        if key == "bind":

            def bound(later: Call) -> Js:
                return self.call(thing, Call(self, this, (*rest, *later.arguments), later.start, later.end, later.name))

            return of_thing(Thing("function", native=bound))
        return self.call(thing, Call(self, this, rest, call.start, call.end, call.name))

    def _then(self, key: str, owner: Js, call: Call) -> Js:
        """``then``, ``catch``, ``finally``: a promise is the value that it will have."""
        if key == "then":
            return self.call_value(call.arg(0), call.with_arguments(owner)) if call.given(0) else owner
        function = call.arg(0)
        if key == "finally":
            self.call_value(function, call.with_arguments())
            return owner
        return self.split((lambda: owner, lambda: self.call_value(function, call.with_arguments(ANY))))

    # --- copies

    def copy_properties(self, target: Thing, value: Js) -> None:
        """See :meth:`Machine.copy_properties`."""
        sources = value.things
        for thing in sources:
            if thing.kind == "environment":
                for name, text in self.process.environment().items():
                    self.write(target.cells.setdefault(name, Cell()), of_text(text))
                self.write(target.others, Js(UNKNOWN, UNDEFINED.atoms))
                continue
            for name, cell in thing.cells.items():
                if cell.value is not None:
                    mine = target.cells.setdefault(name, Cell())
                    both = cell.value if len(sources) == 1 else either([mine.value, cell.value])
                    self.write(mine, both, cell.start, cell.end)
            if thing.others.value is not None:
                before = target.others.value
                self.write(
                    target.others, thing.others.value if before is None else either([before, thing.others.value])
                )
        anything = [atom for atom in value.atoms if isinstance(atom, Any)]
        if anything:
            before = target.others.value
            found = Js(None, tuple(anything))
            self.write(target.others, found if before is None else either([before, found]))


_PROMISE = frozenset({"then", "catch", "finally"})


def _methods(thing: Thing) -> dict[str, Callable[[Call, Thing], Js]]:
    if thing.kind == "array":
        return ARRAY_METHODS
    if thing.kind in _COLLECTIONS:
        return MAP_METHODS
    if thing.kind == "regexp":
        return _REGEXP
    return {}


def _exec(call: Call, _thing: Thing) -> Js:
    value = call.text(0)
    return either([constant(None), call.machine.array([], of_text(value.opaque()))])


_REGEXP: dict[str, Callable[[Call, Thing], Js]] = {"test": lambda _call, _thing: BOOLEAN, "exec": _exec}


def _method_of_constant(owner: Js, key: str) -> Js:
    if key in {"toString", "toFixed", "toLocaleString"}:
        return of_text(text_of(owner))
    return owner if key == "valueOf" else literal("")
