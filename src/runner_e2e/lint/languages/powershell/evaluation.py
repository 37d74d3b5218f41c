"""Expressions of PowerShell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.machine import Machine, Word
from runner_e2e.lint.languages.powershell.static import static_call
from runner_e2e.lint.languages.powershell.syntax import (
    ArrayOf,
    Binary,
    Block,
    Cast,
    Expandable,
    Expression,
    Gap,
    Index,
    Member,
    Sub,
    TableOf,
    Text,
    TypeName,
    Unary,
    Variable,
)
from runner_e2e.lint.languages.powershell.texts import NUMBER, index_of, joined, member_of, method_of, operate
from runner_e2e.lint.languages.powershell.values import (
    Code,
    Items,
    Ps,
    Table,
    boolean,
    either,
    elements,
    listed,
    taints_of,
    text_of,
    truth_of,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


__all__ = ["Evaluation"]

_CONSTANTS = {"true": boolean(True), "false": boolean(False), "null": EMPTY}
_KNOWN_UNKNOWN = frozenset({"pid", "pshome", "psversiontable", "host", "profile", "home", "lastexitcode", "?"})


class Evaluation(Machine):
    """Evaluates expressions."""

    def evaluate(self, expression: Expression) -> Ps:
        """See :meth:`Machine.evaluate`."""
        self.process.tick()
        return self._evaluators[type(expression)](self, expression)

    def _text(self, node: Text) -> Ps:
        return self.process.source.value_in(node.text)

    def _expandable(self, node: Expandable) -> Ps:
        total = EMPTY
        for part in node.parts:
            total = total + text_of(self.evaluate(part))
        return total

    def _variable(self, node: Variable) -> Ps:
        if node.drive == "env":
            return self.environment_variable(node.name)
        name = node.name.lower()
        if name == "pwd":
            return self.process.directory
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        found = self.lookup(name)
        if found is not None:
            return found
        return UNKNOWN if name in _KNOWN_UNKNOWN else EMPTY

    def _member(self, node: Member) -> Ps:
        name = text_of(self.evaluate(node.name)).constant or ""
        arguments = [self.evaluate(one) for one in node.arguments or ()]
        if isinstance(node.owner, TypeName):
            return static_call(self, node, node.owner.name, name, arguments)
        owner = self.evaluate(node.owner)
        if node.arguments is None:
            return member_of(owner, name)
        if isinstance(owner, Code) and name.lower() in {"invoke", "invokereturnasis"}:
            words = [Word(value, node.start, node.end) for value in arguments]
            return listed(self.captured(lambda: self.call_block(owner.block, words, None)))
        if name.lower() in {"add", "addrange", "append", "appendline", "set_item"} and isinstance(node.owner, Variable):
            return self._added(node, node.owner, owner, arguments)
        return method_of(owner, name, arguments)

    def _added(self, node: Member, variable: Variable, owner: Ps, arguments: Sequence[Ps]) -> Ps:
        """A method that changes a list, a table or a builder of text in a variable."""
        if isinstance(owner, Table) and len(arguments) == 2:
            key = text_of(arguments[0]).constant
            changed: Ps = (
                owner.put(key, arguments[1]) if key is not None else replace(owner, others=text_of(arguments[1]))
            )
        elif isinstance(owner, Value) and owner.constant != "":
            changed = owner + joined(Items(tuple(arguments)), EMPTY)
        else:
            changed = Items(*elements(owner)) if owner != EMPTY else Items()
            for one in arguments:
                changed = operate("+", changed, one)
        self.assign(variable.name.lower(), changed, node)
        return EMPTY

    def _index(self, node: Index) -> Ps:
        return index_of(self.evaluate(node.owner), self.evaluate(node.index))

    def _sub(self, node: Sub) -> Ps:
        values = self.captured(lambda: self.run_all(node.body))
        if not node.listed:
            return listed(values)
        items: list[Ps] = []
        others: Value | None = None
        for value in values:
            inner, rest = elements(value)
            items += inner
            if rest is not None:
                others = rest if others is None else others | rest
        return Items(tuple(items), others)

    def _array(self, node: ArrayOf) -> Ps:
        return Items(tuple(self.evaluate(item) for item in node.items))

    def _table(self, node: TableOf) -> Ps:
        table = Table()
        for pair in node.pairs:
            key = text_of(self.evaluate(pair.key)).constant
            value = listed(self.captured(lambda pair=pair: self.run(pair.value)))  # type: ignore[misc]
            if key is None:
                table = Table(table.entries, text_of(value) if table.others is None else table.others | text_of(value))
            else:
                table = table.put(key, value)
        return table

    def _block(self, node: Block) -> Ps:
        return Code(node, self.process.source)

    def _unary(self, node: Unary) -> Ps:
        value = self.evaluate(node.operand)
        if node.operator == "not":
            truth = truth_of(value)
            return boolean(None if truth is None else not truth)
        if node.operator == "join":
            return joined(value, EMPTY)
        if node.operator == "split":
            return method_of(text_of(value), "split", ())
        if node.operator == ",":
            return Items((value,))
        if node.operator == "++":
            if isinstance(node.operand, Variable):
                self.assign(node.operand.name.lower(), NUMBER, node)
            return EMPTY
        return operate("-", Value.literal("0"), value) if node.operator == "-" else value

    def _binary(self, node: Binary) -> Ps:
        left = self.evaluate(node.left)
        if node.operator == "?" and isinstance(node.right, ArrayOf):
            truth = truth_of(left)
            yes, no = node.right.items
            return (
                self.evaluate(yes if truth else no)
                if truth is not None
                else either(self.evaluate(yes), self.evaluate(no))
            )
        right = self.evaluate(node.right)
        if node.operator == "match" and taints_of(left):
            self.assign("matches", Table((), text_of(left).opaque()), node)
        return operate(node.operator, left, right)

    def _cast(self, node: Cast) -> Ps:
        value = self.evaluate(node.operand)
        kind = node.type_name.rsplit(".", 1)[-1]
        if kind in {"int", "int32", "int64", "long", "double", "decimal", "byte"}:
            constant = value.constant if isinstance(value, Value) else None
            return value if constant is not None and constant.isdigit() else NUMBER
        if kind in {"bool", "boolean", "switch"}:
            return boolean(truth_of(value))
        if kind == "string":
            return text_of(value)
        if kind in {"array", "string[]", "object[]"}:
            return Items(*elements(value))
        return value

    def _type(self, _node: TypeName) -> Ps:
        return UNKNOWN

    def _gap(self, node: Gap) -> Ps:
        self.unread(node)
        return UNKNOWN

    def unread(self, gap: Gap) -> None:
        """Reports a stretch that could not be read."""
        self.process.give_up(gap.start, max(gap.end, gap.start + 1), f"PowerShell that is not followed: {gap.reason}")

    _evaluators: Mapping[type, Callable[..., Ps]] = {
        Text: _text,
        Expandable: _expandable,
        Variable: _variable,
        Member: _member,
        Index: _index,
        Sub: _sub,
        ArrayOf: _array,
        TableOf: _table,
        Block: _block,
        Unary: _unary,
        Binary: _binary,
        Cast: _cast,
        TypeName: _type,
        Gap: _gap,
    }
