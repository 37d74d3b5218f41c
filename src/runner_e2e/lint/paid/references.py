"""What an expression carries: the references whose text may become its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.expression import (
    Access,
    Call,
    Comparison,
    Constant,
    Context,
    ExpressionError,
    Logical,
    Not,
    embedded,
    parse,
)
from runner_e2e.lint.records import dataclass
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.expression import Expression
    from runner_e2e.yaml_positions import Node

__all__ = ["Reference", "references", "references_of"]

_CARRYING = frozenset(("format", "join", "tojson", "fromjson"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """``context.a.b`` at ``[start, end)`` of the text of a scalar.

    *names* are as written; None stands for ``*`` and for an index that is no constant. *guarded*: only a condition
    that is not always the same lets it through (``matrix.x == 'A' && secrets.A``).
    """

    context: str
    names: tuple[str | None, ...]
    start: int
    end: int
    guarded: bool = False


def references(node: Node | None) -> Iterator[Reference]:
    """What the text of *node* may carry; nothing for another node, or where GitHub refuses the expression."""
    if not isinstance(node, Scalar) or "${{" not in node.value:
        return
    text = node.value
    try:
        for place in embedded(text):
            yield from references_of(parse(text, start=place.inner_start, end=place.inner_end))
    except ExpressionError:
        return


def references_of(expression: Expression, *, guarded: bool = False) -> Iterator[Reference]:
    """What *expression* may carry."""
    if isinstance(expression, Access | Context):
        yield from _path(expression, guarded=guarded)
    elif isinstance(expression, Logical):
        yield from _logical(expression, guarded=guarded)
    elif isinstance(expression, Call) and expression.function == "case":
        for each in expression.arguments[1::2]:
            yield from references_of(each, guarded=True)
        yield from references_of(expression.arguments[-1], guarded=True)
    elif isinstance(expression, Call) and expression.function in _CARRYING:
        for each in expression.arguments:
            yield from references_of(each, guarded=guarded)


def _logical(expression: Logical, *, guarded: bool) -> Iterator[Reference]:
    if expression.operator == "||":
        for each in expression.operands:
            yield from references_of(each, guarded=guarded)
        return
    # The value is the last operand, or one before it that counts as false, and such a one says nothing.
    before = any(_decides(each) for each in expression.operands[:-1])
    yield from references_of(expression.operands[-1], guarded=guarded or before)


def _decides(expression: Expression) -> bool:
    """Whether a condition lets something through for some runs only: not a constant, nor that a secret is there."""
    if isinstance(expression, Constant):
        return False
    if isinstance(expression, Not):
        return _decides(expression.operand)
    if isinstance(expression, Logical):
        return any(_decides(each) for each in expression.operands)
    if isinstance(expression, Comparison):
        return _decides(expression.left) or _decides(expression.right)
    if isinstance(expression, Call):
        return any(_decides(each) for each in expression.arguments)
    return _root(expression) != "secrets"


def _root(expression: Expression) -> str:
    while isinstance(expression, Access):
        expression = expression.object
    return expression.name if isinstance(expression, Context) else ""


def _path(expression: Access | Context, *, guarded: bool) -> Iterator[Reference]:
    names: list[str | None] = []
    current: Expression = expression
    while isinstance(current, Access):
        index = current.index
        names.append(str(index.value) if isinstance(index, Constant) else None)
        current = current.object
    if isinstance(current, Context):
        yield Reference(
            context=current.name,
            names=tuple(reversed(names)),
            start=expression.start,
            end=expression.end,
            guarded=guarded,
        )
    else:
        yield from references_of(current, guarded=guarded)
