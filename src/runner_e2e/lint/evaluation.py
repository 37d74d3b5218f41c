"""Abstract evaluation of expressions: which data an expression may give, and what of it carries text.

A comparison, ``contains`` and their kind give a boolean and carry nothing; ``&&`` and ``||`` give one of their
operands; ``format``, ``join``, ``toJSON`` and ``fromJSON`` carry. Constants are folded as GitHub folds them.
"""

from __future__ import annotations

import math
import re
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.expression import Access, Call, Comparison, Constant, Context, Logical, Not, Star
from runner_e2e.lint.expression_data import (
    ANYTHING,
    BOOLEAN,
    FALSE,
    NULL,
    TRUE,
    Anything,
    Array,
    Choice,
    Data,
    Dictionary,
    Known,
    Textual,
    Unseen,
    as_number,
    as_value,
    from_json,
    is_primitive,
    of_value,
    taints_of,
    text_of,
    to_json,
    truth_of,
)
from runner_e2e.lint.values import EMPTY, MAX_ALTERNATIVES, UNKNOWN, Value, join, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from runner_e2e.lint.expression import Expression

__all__ = ["EvaluationError", "Possible", "evaluate", "value_of"]

Possible: TypeAlias = tuple[Data, ...]
"""The data an expression may give, at least one and at most :data:`~runner_e2e.lint.values.MAX_ALTERNATIVES`."""


class EvaluationError(Exception):
    """GitHub would stop at this expression with the message given: a wrong format string, text that is not JSON."""


def evaluate(expression: Expression, contexts: Mapping[str, Data]) -> Possible:
    """What *expression* may give; a context that is not in *contexts* (lower case) may be anything, without labels.

    Raises :class:`EvaluationError` when it surely fails.
    """
    if isinstance(expression, Constant):
        return (Known(expression.value),)
    if isinstance(expression, Context):
        return _bounded((contexts.get(expression.name, ANYTHING),))
    if isinstance(expression, Not):
        return _bounded(_negated(data) for data in evaluate(expression.operand, contexts))
    if isinstance(expression, Comparison):
        left, right = evaluate(expression.left, contexts), evaluate(expression.right, contexts)
        return _bounded(_compared(expression.operator, a, b) for a, b in product(left, right))
    if isinstance(expression, Logical):
        return _logical(expression, contexts)
    if isinstance(expression, Access):
        objects = evaluate(expression.object, contexts)
        if isinstance(expression.index, Star):
            return _bounded(_starred(data) for data in objects)
        indexes = evaluate(expression.index, contexts)
        return _bounded(found for data, index in product(objects, indexes) for found in _indexed(data, index))
    assert isinstance(expression, Call)
    return _called(expression, contexts)


def value_of(possible: Possible) -> Value:
    """The text that the data become inside ``${{ }}``."""
    return as_value(possible[0]) if len(possible) == 1 else join(as_value(data) for data in possible)


def _bounded(data: Iterable[Data]) -> Possible:
    found = [option for each in data for option in _options(each)]
    unique = tuple(found) if len(found) == 1 else tuple(dict.fromkeys(found))
    if len(unique) <= MAX_ALTERNATIVES:
        return unique
    return (Anything(merged(taint for each in unique for taint in taints_of(each))),)


def _options(data: Data) -> tuple[Data, ...]:
    return data.options if isinstance(data, Choice) else (data,)


def _each(data: Array) -> Iterator[Data]:
    for item in data.items:
        yield from _options(item)


def _boolean(value: bool | None) -> Data:
    return BOOLEAN if value is None else TRUE if value else FALSE


def _negated(data: Data) -> Data:
    truth = truth_of(data)
    return _boolean(None if truth is None else not truth)


def _logical(expression: Logical, contexts: Mapping[str, Data]) -> Possible:
    ends_at = expression.operator == "||"
    found: list[Data] = []
    for number, operand in enumerate(expression.operands):
        last = number == len(expression.operands) - 1
        goes_on = False
        for data in evaluate(operand, contexts):
            truth = truth_of(data)
            if last or truth is ends_at:
                found.append(data)
            elif truth is None:
                # Falsy data that end an `&&` are empty, zero or false: they carry nothing.
                found.append(data if ends_at else _falsy(data))
                goes_on = True
            else:
                goes_on = True
        if not goes_on:
            break
    return _bounded(found)


def _falsy(data: Data) -> Data:
    return FALSE if isinstance(data, Unseen) and data.kind == "boolean" else Known("")


_OPEN = Textual | Unseen | Anything | Choice


def _compared(operator: str, left: Data, right: Data) -> Data:
    if isinstance(left, _OPEN) or isinstance(right, _OPEN):
        return BOOLEAN
    if operator in {"==", "!="}:
        equal = _equal(left, right)
        return _boolean(equal if equal is None or operator == "==" else not equal)
    order = _order(left, right)
    if operator in {"<=", ">="} and _equal(left, right):
        return TRUE
    return _boolean(order is not None and (order < 0 if operator.startswith("<") else order > 0))


def _coerced(left: Data, right: Data) -> tuple[object, object] | None:
    """Both sides as values of one Python type (text in capitals), or None when they never compare."""
    if not isinstance(left, Known) or not isinstance(right, Known):
        return None
    a, b = left.value, right.value
    if isinstance(a, str) and isinstance(b, str):
        return _capital(a), _capital(b)
    if a is None and b is None:
        return 0, 0
    return as_number(left), as_number(right)


def _capital(text: str) -> str:
    return "\u0131".join(part.upper() for part in text.split("\u0131"))  # the dotless i has no capital here


def _equal(left: Data, right: Data) -> bool | None:
    if isinstance(left, Array) and isinstance(right, Array):
        return None  # the same object or another one: not followed
    if isinstance(left, Dictionary) and isinstance(right, Dictionary):
        return None
    pair = _coerced(left, right)
    return pair is not None and pair[0] == pair[1]


def _order(left: Data, right: Data) -> int | None:
    pair = _coerced(left, right)
    if pair is None:
        return None
    a, b = pair
    less, greater = a < b, a > b  # type: ignore[operator]
    return -1 if less else 1 if greater else 0


def _starred(data: Data) -> Data:
    if isinstance(data, Dictionary):
        return Array(data.values, filtered=True)
    if isinstance(data, Array):
        if not data.filtered:
            return Array(data.items, filtered=True)
        inner: list[Data] = []
        for item in _each(data):
            if isinstance(item, Dictionary):
                inner += item.values
            elif isinstance(item, Array):
                inner += item.items
            elif isinstance(item, Anything):
                inner.append(item)
        return Array(tuple(inner), filtered=True)
    if isinstance(data, Anything):
        return data
    return Array((), filtered=True)


def _indexed(data: Data, index: Data) -> Possible:
    if isinstance(data, Anything):
        return (data,)
    if isinstance(data, Dictionary):
        if isinstance(index, Known):
            return (data.get(text_of(index.value)),)
        if is_primitive(index) is False:
            return (NULL,)
        return (*dict.fromkeys((*data.values, NULL)),)
    if not isinstance(data, Array):
        return (NULL,)
    if data.filtered:
        return (_filtered(data, index),)
    if is_primitive(index) is False:
        return (NULL,)
    if isinstance(index, Known):
        position = _position(index)
        return (data.items[position],) if position is not None and position < len(data.items) else (NULL,)
    return (*dict.fromkeys((*data.items, NULL)),)


def _position(index: Known) -> int | None:
    number = as_number(index)
    return math.floor(number) if math.isfinite(number) and number >= 0 else None


def _filtered(data: Array, index: Data) -> Data:
    """An index after ``.*``: applied to every element, those without it left out."""
    found: list[Data] = []
    for item in _each(data):
        if isinstance(item, Anything):
            found.append(item)
        elif isinstance(item, Dictionary | Array):
            if is_primitive(index) is False:
                continue
            if isinstance(index, Known) and isinstance(item, Dictionary):
                name = text_of(index.value).lower()
                if name in item.entries or item.others != NULL:
                    found.append(item.get(name))
            elif isinstance(index, Known) and isinstance(item, Array):
                position = _position(index)
                if position is not None and position < len(item.items):
                    found.append(item.items[position])
            else:
                found += item.values if isinstance(item, Dictionary) else item.items
    return Array(tuple(found), filtered=True)


# --- Functions.


def _called(call: Call, contexts: Mapping[str, Data]) -> Possible:
    if call.function == "case":
        return _case(call, contexts)
    implementation = _FUNCTIONS[call.function]
    arguments = [evaluate(argument, contexts) for argument in call.arguments]
    combinations = math.prod(len(possible) for possible in arguments)
    if combinations > MAX_ALTERNATIVES:
        arguments = [(_widened(possible),) for possible in arguments]
    results: list[Data] = []
    failures = 0
    for combination in product(*arguments):
        try:
            results += implementation(combination)
        except ValueError as error:
            failures += 1
            message = str(error)
    if not results and failures:
        raise EvaluationError(message)
    return _bounded(results)


def _widened(possible: Possible) -> Data:
    if len(possible) == 1:
        return possible[0]
    return Anything(merged(taint for data in possible for taint in taints_of(data)))


def _case(call: Call, contexts: Mapping[str, Data]) -> Possible:
    found: list[Data] = []
    # All of them, for one that fails makes the whole fail, also where its result is not wanted.
    *pairs, default = [evaluate(argument, contexts) for argument in call.arguments]
    for outcomes, result in zip(pairs[::2], pairs[1::2], strict=True):
        if not any(_may_be_boolean(data) for data in outcomes):
            raise EvaluationError("a condition of `case` is not a boolean")
        if any(truth_of(data) is not False for data in outcomes):
            found += result
        if all(truth_of(data) is True for data in outcomes):
            return _bounded(found)
    return _bounded([*found, *default])


def _may_be_boolean(data: Data) -> bool:
    if isinstance(data, Known):
        return isinstance(data.value, bool)
    return isinstance(data, Anything | Unseen)


def _textual_test(test: Callable[[str, str], bool]) -> Callable[[tuple[Data, ...]], Possible]:
    def apply(arguments: tuple[Data, ...]) -> Possible:
        left, right = arguments
        if is_primitive(left) is False or is_primitive(right) is False:
            return (FALSE,)
        if isinstance(left, Known) and isinstance(right, Known):
            return (_boolean(test(text_of(left.value), text_of(right.value))),)
        return (BOOLEAN,)

    return apply


def _contains(arguments: tuple[Data, ...]) -> Possible:
    search, item = arguments
    if isinstance(search, Array):
        outcomes = [_compared("==", item, each) for each in search.items]
        if TRUE in outcomes:
            return (TRUE,)
        return (FALSE,) if all(outcome == FALSE for outcome in outcomes) else (BOOLEAN,)
    return _textual_test(lambda a, b: b.lower() in a.lower())(arguments)


_FORMAT = re.compile(r"\{\{|\}\}|\{([0-9]+)[^}]*\}|[{}]")


def _format(arguments: tuple[Data, ...]) -> Possible:
    template = arguments[0]
    if not isinstance(template, Known):
        return (Textual(Value.of(taint for argument in arguments for taint in taints_of(argument))),)
    text = text_of(template.value)
    value = EMPTY
    position = 0
    for found in _FORMAT.finditer(text):
        value += Value.literal(text[position : found.start()])
        position = found.end()
        if found[0] in {"{{", "}}"}:
            value += Value.literal(found[0][0])
        elif found[1] is None:
            raise ValueError(f"the format string is not valid: {text}")
        elif int(found[1]) + 1 >= len(arguments):
            raise ValueError(f"the format string names more arguments than there are: {text}")
        else:
            value += as_value(arguments[int(found[1]) + 1])
    return (of_value(value + Value.literal(text[position:])),)


def _join(arguments: tuple[Data, ...]) -> Possible:
    joined = arguments[0]
    if isinstance(joined, Anything):
        return (Textual(Value.of(joined.taints | taints_of(arguments[-1]))),)
    if isinstance(joined, Dictionary):
        return (Known(""),)
    if not isinstance(joined, Array):
        return (of_value(as_value(joined)),)
    separator = Value.literal(",")
    if len(arguments) > 1 and is_primitive(arguments[1]) is not False:
        separator = as_value(arguments[1])
    value = EMPTY
    for number, item in enumerate(joined.items):
        value += (separator if number else EMPTY) + as_value(item)
    return (of_value(value),)


def _to_json(arguments: tuple[Data, ...]) -> Possible:
    value = to_json(arguments[0])
    constant = value.constant
    return (Known(constant) if constant is not None else Textual(value, parsed=arguments[0]),)


def _from_json(arguments: tuple[Data, ...]) -> Possible:
    (data,) = arguments
    if isinstance(data, Anything):
        return (data,)
    if isinstance(data, Textual) and data.parsed is not None:
        return (data.parsed,)
    return from_json(as_value(data))


_FUNCTIONS: Mapping[str, Callable[[tuple[Data, ...]], Possible]] = {
    "contains": _contains,
    "startswith": _textual_test(lambda a, b: _capital(a).startswith(_capital(b))),
    "endswith": _textual_test(lambda a, b: _capital(a).endswith(_capital(b))),
    "format": _format,
    "join": _join,
    "tojson": _to_json,
    "fromjson": _from_json,
    "hashfiles": lambda _: (Textual(UNKNOWN),),
    "success": lambda _: (BOOLEAN,),
    "failure": lambda _: (BOOLEAN,),
    "cancelled": lambda _: (BOOLEAN,),
    "always": lambda _: (TRUE,),
}
