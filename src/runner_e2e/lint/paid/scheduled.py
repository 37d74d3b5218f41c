"""What is empty when nobody starts a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.evaluation import EvaluationError, evaluate, value_of
from runner_e2e.lint.expression import Access, Constant, Context, ExpressionError, embedded, parse, walk
from runner_e2e.lint.expression_data import ANYTHING, NULL, Dictionary, Known
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.expression import Expression
    from runner_e2e.lint.paid.model import PaidStep
    from runner_e2e.yaml_positions import Node

__all__ = ["SELECTORS", "emptied", "selects_nothing"]

SELECTORS = ("sealed-selection", "suites", "groups", "profiles", "environments", "all")
"""Inputs of `plan` that select cells."""

_SCHEDULED = {
    "inputs": Dictionary.of({}),
    "github": Dictionary.of(
        {"event_name": Known("schedule"), "event": Dictionary.of({"inputs": NULL}, others=ANYTHING)}, others=ANYTHING
    ),
}


def emptied(leaf: PaidStep, block: Node | None, names: frozenset[str]) -> Iterator[tuple[Scalar, str]]:
    """Values of *names* in an ``env`` or ``with`` that an absent input makes empty, each with the input that does."""
    if leaf.frame.inputs is not None:
        return  # what a caller gives
    for key, node in entries(block):
        name = _emptied(node) if key.value in names and isinstance(node, Scalar) and "${{" in node.value else None
        if name is not None and isinstance(node, Scalar):
            yield node, name


def selects_nothing(leaf: PaidStep) -> tuple[Scalar, str] | None:
    """The input of a `plan` that is empty in a scheduled run, when every one that selects is."""
    given = [(key.value, node) for key, node in entries(leaf.step.arguments) if key.value in SELECTORS]
    empty = list(emptied(leaf, leaf.step.arguments, frozenset(SELECTORS)))
    return empty[0] if empty and len(empty) == len(given) else None


def _emptied(node: Scalar) -> str | None:
    try:
        places = embedded(node.value)
        parsed = [parse(node.value, start=place.inner_start, end=place.inner_end) for place in places]
        if len(places) != 1 or places[0].end - places[0].start != len(node.value):
            return None
        if value_of(evaluate(parsed[0], _SCHEDULED)).constant != "":
            return None
    except (ExpressionError, EvaluationError):
        return None
    return next((node.value[each.start : each.end] for each in walk(parsed[0]) if _is_input(each)), None)


def _is_input(expression: Expression) -> bool:
    """Whether it is ``inputs.x`` or ``github.event.inputs.x``."""
    if not isinstance(expression, Access):
        return False
    names: list[str] = []
    current: Expression = expression.object
    while isinstance(current, Access):
        names.append(str(current.index.value).lower() if isinstance(current.index, Constant) else "")
        current = current.object
    root = current.name if isinstance(current, Context) else ""
    return (root, tuple(reversed(names))) in {("inputs", ()), ("github", ("event", "inputs"))}
