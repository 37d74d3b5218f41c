"""Scalars of a workflow as values: what the expressions in them may put there, and the way it came."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from runner_e2e.lint.evaluation import EvaluationError, Possible, evaluate, value_of
from runner_e2e.lint.expression import ExpressionError, embedded, parse
from runner_e2e.lint.expression_data import (
    ANYTHING,
    NULL,
    Array,
    Choice,
    Data,
    Dictionary,
    Known,
    as_value,
    changed,
    of_value,
    text_of,
    truth_of,
)
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import EMPTY, Interpolation, Origin, Script, Value
from runner_e2e.lint.workflow import scalars
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Callable
    from typing import TypeAlias

    from runner_e2e.lint.expression import Expression
    from runner_e2e.lint.repository import Document
    from runner_e2e.yaml_positions import Node

    Contexts = collections.abc.Mapping[str, Data]
    _Embedded: TypeAlias = tuple[tuple[int, int, Expression | None], ...]
    """Start, end and syntax of each expression of a text, without syntax where GitHub refuses it."""
    _Mistakes: TypeAlias = tuple[tuple[int, int, str], ...]
    """Start, end and reason of each refusal."""

__all__ = ["Reader", "passed"]

_OPENING = "${{"


def passed(data: Data, origin: Origin, start: int, end: int, note: str) -> Data:
    """The same data after one more place of their way."""
    return changed(data, lambda taint: taint.after(origin, start, end, note))


class Reader:
    """Evaluates the scalars of one document; what GitHub would refuse goes to *report*."""

    def __init__(self, document: Document, report: Callable[[Sighting], None]) -> None:
        self.document = document
        self.report = report
        self._parsed: dict[int, _Embedded] = {}

    def origin(self, scalar: Scalar) -> Origin:
        """The text of *scalar* and where it stands; one for each scalar, aliases included."""
        found = self.document.origins.get(id(scalar))
        if found is None:
            found = Origin(path=self.document.path, text=scalar.value, locate=scalar.position)
            self.document.origins[id(scalar)] = found
        return found

    def expressions(self, scalar: Scalar, *, status: bool = False) -> _Embedded:
        """Start, end and syntax of every ``${{ }}`` (None where GitHub refuses it); *status*: in an ``if``."""
        if _OPENING not in scalar.value:
            return ()
        return self._known(scalar, _embedded, status=status)

    def _known(self, scalar: Scalar, read: Callable[..., tuple[_Embedded, _Mistakes]], **how: bool) -> _Embedded:
        """What *read* gives for the text of *scalar*, whose mistakes are reported once."""
        found = self._parsed.get(id(scalar))
        if found is None:
            found, mistakes = read(scalar.value, **how)
            self._parsed[id(scalar)] = found
            for start, end, message in mistakes:
                self._refused(scalar, start, end, message)
        return found

    def _refused(self, scalar: Scalar, start: int, end: int, message: str) -> None:
        origin = self.origin(scalar)
        self.report(Sighting(surface=Surface.EXPRESSION, origin=origin, start=start, end=end, subject=message))

    @staticmethod
    def _evaluate(expression: Expression, contexts: Contexts) -> Possible:
        try:
            return evaluate(expression, contexts)
        except EvaluationError:
            return (ANYTHING,)  # it fails when it is reached: nothing comes of it

    def value(self, node: Node | None, contexts: Contexts, note: str) -> Value:
        """The text that *node* becomes; *note* says what for, as the next place of its way."""
        if not isinstance(node, Scalar):
            return EMPTY if node is None else as_value(self.data(node, contexts, note))
        if _OPENING not in node.value:
            return Value.literal(_literal(node))
        origin = self.origin(node)
        value = EMPTY
        position = 0
        for start, end, expression in self.expressions(node):
            value += Value.literal(node.value[position:start])
            position = end
            if expression is not None:
                inner = value_of(self._evaluate(expression, contexts))
                value += inner.through(origin, start, end, note) if inner.taints else inner
            else:
                value += as_value(ANYTHING)
        return value + Value.literal(node.value[position:])

    def data(self, node: Node | None, contexts: Contexts, note: str) -> Data:
        """The data that *node* becomes: lists and mappings keep their form, a sole expression keeps its kind."""
        if node is None:
            return NULL
        if isinstance(node, Scalar):
            return self._scalar_data(node, contexts, note)
        if isinstance(node, Sequence):
            return Array(tuple(self.data(item, contexts, note) for item in node))
        assert isinstance(node, Mapping)
        return Dictionary.of({key.value: self.data(item, contexts, note) for key, item in node.entries()})

    def _scalar_data(self, node: Scalar, contexts: Contexts, note: str) -> Data:
        if _OPENING not in node.value:
            data = node.data
            return Known(float(data) if isinstance(data, int) and not isinstance(data, bool) else data)
        places = self.expressions(node)
        if len(places) == 1 and places[0][0] == 0 and places[0][1] == len(node.value):
            start, end, expression = places[0]
            if expression is None:
                return ANYTHING
            possible = self._evaluate(expression, contexts)
            return passed(Choice.of(possible), self.origin(node), start, end, note)
        return of_value(self.value(node, contexts, note))

    def script(self, node: Scalar, contexts: Contexts, note: str) -> Script:
        """The program in *node*, its expressions as interpolations."""
        origin = self.origin(node)
        if _OPENING not in node.value:
            return Script(origin=origin, text=node.value)
        holes: list[Interpolation] = []
        for start, end, expression in self.expressions(node):
            if expression is None:
                value = as_value(ANYTHING)
            else:
                value = value_of(self._evaluate(expression, contexts))
                value = value.through(origin, start, end, note) if value.taints else value
            holes.append(Interpolation(start=start, end=end, value=value))
        return Script(origin=origin, text=node.value, interpolations=tuple(holes))

    def condition(self, node: Scalar | None, contexts: Contexts) -> bool | None:
        """Whether an ``if`` holds: None when that is not known. An absent one holds."""
        if node is None:
            return True
        if not node.is_string:
            return truth_of(Known(node.data))
        if _OPENING in node.value:
            self.expressions(node, status=True)
            truths = {truth_of(option) for option in _options(self._scalar_data(node, contexts, ""))}
        else:
            truths = {truth_of(data) for data in self._bare(node, contexts)}
        return truths.pop() if len(truths) == 1 else None

    def check_syntax(self, root: Node | None) -> None:
        """Reports every ``${{ }}`` below *root* that GitHub would refuse."""
        for scalar in scalars(root):
            self.expressions(scalar)

    def check_condition(self, node: Scalar | None) -> None:
        """Reports an ``if`` that GitHub would refuse."""
        if node is not None and _OPENING in node.value:
            self.expressions(node, status=True)
        elif node is not None and node.is_string:
            self._whole(node)

    def _bare(self, node: Scalar, contexts: Contexts) -> Possible:
        """The value of an ``if`` without ``${{ }}``, which is one expression as a whole."""
        expression = self._whole(node)
        if expression is None:
            return (ANYTHING,)
        return self._evaluate(expression, contexts)

    def _whole(self, node: Scalar) -> Expression | None:
        """The scalar as one expression, None when GitHub refuses it."""
        return self._known(node, _whole)[0][2]


# Texts repeat within a file and from file to file: each is parsed once.
@lru_cache(maxsize=4_096)
def _embedded(text: str, *, status: bool) -> tuple[_Embedded, _Mistakes]:
    """Every ``${{ }}`` in *text*, and what GitHub refuses."""
    found: list[tuple[int, int, Expression | None]] = []
    mistakes: list[tuple[int, int, str]] = []
    try:
        places = embedded(text)
    except ExpressionError as error:
        return (), ((error.start, error.end, str(error)),)
    for place in places:
        expression: Expression | None = None
        try:
            expression = parse(text, start=place.inner_start, end=place.inner_end, status=status)
        except ExpressionError as error:
            mistakes.append((error.start, error.end, str(error)))
        found.append((place.start, place.end, expression))
    return tuple(found), tuple(mistakes)


@lru_cache(maxsize=4_096)
def _whole(text: str) -> tuple[_Embedded, _Mistakes]:
    """*text* as one expression without ``${{ }}``."""
    try:
        return ((0, len(text), parse(text)),), ()
    except ExpressionError as error:
        return ((0, len(text), None),), ((error.start, error.end, str(error)),)


def _literal(node: Scalar) -> str:
    data = node.data
    return data if isinstance(data, str) else text_of(data)


def _options(data: Data) -> tuple[Data, ...]:
    return data.options if isinstance(data, Choice) else (data,)
