"""Whether a job or a step may run although something before it did not succeed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.evaluation import EvaluationError, evaluate
from runner_e2e.lint.expression import (
    STATUS_FUNCTIONS,
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
    walk,
)
from runner_e2e.lint.expression_data import truth_of
from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.expression import Expression
    from runner_e2e.lint.expression_data import Data
    from runner_e2e.yaml_positions import Scalar

__all__ = ["AFTER_FAILURE", "AFTER_SUCCESS", "Condition", "condition_of", "may_be_false", "may_hold"]

_UNKNOWN = Context(0, 0, "unknown")
AFTER_FAILURE: Mapping[str, Expression] = {
    "success": Constant(0, 0, value=False),
    "failure": _UNKNOWN,  # not after a skipped job, nor after a cancelled one
    "always": Constant(0, 0, value=True),
    "cancelled": _UNKNOWN,
}
"""What the status functions give after something that failed, was skipped or was cancelled."""

AFTER_SUCCESS: Mapping[str, Expression] = {
    "success": Constant(0, 0, value=True),
    "failure": Constant(0, 0, value=False),
    "always": Constant(0, 0, value=True),
    "cancelled": Constant(0, 0, value=False),
}
"""And after everything went well."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """An ``if``: its expression, and whether it names a status function; without one ``success()`` is implied."""

    expression: Expression
    names_status: bool


def condition_of(node: Scalar | None) -> Condition:
    """The condition in *node*; an absent one is ``success()``, one that GitHub refuses never holds."""
    if node is None:
        return Condition(expression=Constant(0, 0, value=True), names_status=False)
    if not node.is_string:
        return Condition(expression=Constant(0, 0, node.data), names_status=False)
    try:
        return _read(node.value)
    except ExpressionError:
        return Condition(expression=Constant(0, 0, value=False), names_status=False)


def _read(text: str) -> Condition:
    places = embedded(text)
    if not places:
        expression = parse(text)
        return Condition(expression=expression, names_status=_names_status(expression))
    parts = [parse(text, start=place.inner_start, end=place.inner_end) for place in places]
    names_status = any(_names_status(part) for part in parts)
    if len(parts) == 1 and places[0].start == 0 and places[0].end == len(text):
        return Condition(expression=parts[0], names_status=names_status)
    # Text beside an expression, a blank too, makes a text of the whole: it is not empty, and so it holds.
    return Condition(expression=Constant(0, 0, value=True), names_status=names_status)


def _names_status(expression: Expression) -> bool:
    return any(isinstance(each, Call) and each.function in STATUS_FUNCTIONS for each in walk(expression))


def may_hold(condition: Condition, statuses: Mapping[str, Expression], contexts: Mapping[str, Data]) -> bool:
    """Whether *condition* may hold when the status functions give *statuses* and *contexts* are what is known."""
    if not condition.names_status and statuses["success"] == AFTER_FAILURE["success"]:
        return False
    return any(truth is not False for truth in _truths(condition, statuses, contexts))


def may_be_false(condition: Condition, contexts: Mapping[str, Data]) -> bool:
    """Whether *condition* may be false although everything went well."""
    return any(truth is not True for truth in _truths(condition, AFTER_SUCCESS, contexts))


def _truths(
    condition: Condition, statuses: Mapping[str, Expression], contexts: Mapping[str, Data]
) -> tuple[bool | None, ...]:
    try:
        found = evaluate(_with(condition.expression, statuses), contexts)
    except EvaluationError:
        return (False,)
    return tuple(truth_of(each) for each in found)


def _with(expression: Expression, statuses: Mapping[str, Expression]) -> Expression:
    """*expression* with the status functions replaced by what they give."""
    if isinstance(expression, Call):
        if expression.function in STATUS_FUNCTIONS:
            return statuses[expression.function]
        return replace(expression, arguments=tuple(_with(each, statuses) for each in expression.arguments))
    if isinstance(expression, Not):
        return replace(expression, operand=_with(expression.operand, statuses))
    if isinstance(expression, Comparison):
        return replace(expression, left=_with(expression.left, statuses), right=_with(expression.right, statuses))
    if isinstance(expression, Logical):
        return replace(expression, operands=tuple(_with(each, statuses) for each in expression.operands))
    if isinstance(expression, Access):
        return replace(expression, object=_with(expression.object, statuses), index=_with(expression.index, statuses))
    return expression
