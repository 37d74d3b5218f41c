"""``test``, ``[`` and ``[[``: what is decided, and what a decision tells about a variable."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.expansion import expand_pattern, expand_value
from runner_e2e.lint.shell.ir import Literal, Parameter, Test, Word
from runner_e2e.lint.shell.parameters import calculate, get_variable
from runner_e2e.lint.shell.patterns import Pattern, decode, encode, matches
from runner_e2e.lint.shell.state import Field, Items, State, exact
from runner_e2e.lint.values import EMPTY, Confidence, Hole, Label, Value

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Machine

__all__ = ["conditional", "empty_labels", "refine_test", "test_fields"]

_COMPARE = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_BINARY = frozenset({"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", *_COMPARE})


def _empty(value: Value) -> bool | None:
    answers = {_text_empty(text) for text in value.texts}
    return answers.pop() if len(answers) == 1 else None


def _text_empty(text: tuple[str | Hole, ...]) -> bool | None:
    if not text:
        return True
    return False if any(isinstance(piece, str) and piece for piece in text) else None


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _equal(left: Value, right: Value) -> bool | None:
    return matches(left, Pattern(((right, True),)))


def _unary(machine: Machine, state: State, operator: str, operand: Value) -> bool | None:
    if operator in ("-z", "-n"):
        empty = _empty(operand)
        return empty if operator == "-z" else _negated(empty)
    if operator == "-v" and operand.constant is not None and re.fullmatch(r"\w+", operand.constant):
        variable = get_variable(machine, state, operand.constant)
        if not variable.unset:
            return True
        return False if variable.value == EMPTY and variable.items is None else None
    return None


def _number(value: Value) -> int | None:
    text = value.constant
    return int(text) if text is not None and re.fullmatch(r"\s*[-+]?\d{1,18}\s*", text) else None


def _binary(operator: str, left: Value, right: Value) -> bool | None:
    if operator in ("=", "=="):
        return _equal(left, right)
    if operator == "!=":
        return _negated(_equal(left, right))
    if operator in _COMPARE:
        a, b = _number(left), _number(right)
        return _COMPARE[operator](a, b) if a is not None and b is not None else None
    if operator in ("<", ">") and left.constant is not None and right.constant is not None:
        return left.constant < right.constant if operator == "<" else left.constant > right.constant
    return None


def test_fields(machine: Machine, state: State, fields: tuple[Field, ...]) -> bool | None:
    """The verdict of ``test`` on its arguments; None when it is not decided."""
    if not exact(fields):
        if any(one.kind == "list" for one in fields):
            return None
        # An unquoted expansion is one field, or none when it is empty: then the shape changes.
        if len(fields) == 2 and fields[0].value.constant in ("-n", "-z"):
            return None
    return _expression(machine, state, [one.value for one in fields])


def _expression(machine: Machine, state: State, values: list[Value]) -> bool | None:
    texts = [value.constant for value in values]
    if len(values) <= 4:
        return _short(machine, state, values, texts)
    for operator, decide in (("-o", _either), ("-a", _both)):
        if operator in texts[1:-1]:
            at = texts.index(operator, 1)
            return decide(
                _expression(machine, state, values[:at]),
                _expression(machine, state, values[at + 1 :]),
            )
    if texts[0] == "!":
        return _negated(_expression(machine, state, values[1:]))
    return None


def _short(machine: Machine, state: State, values: list[Value], texts: list[str | None]) -> bool | None:
    if not values:
        return False
    if len(values) == 1:
        return _negated(_empty(values[0]))
    if len(values) == 2:
        if texts[0] == "!":
            return _empty(values[1])
        return _unary(machine, state, texts[0] or "", values[1])
    if len(values) == 3:
        if texts[1] in _BINARY:
            return _binary(texts[1] or "", values[0], values[2])
        if texts[0] == "!":
            return _negated(_short(machine, state, values[1:], texts[1:]))
        if texts[0] == "(" and texts[2] == ")":
            return _negated(_empty(values[1]))
        if texts[1] in ("-a", "-o"):
            decide = _both if texts[1] == "-a" else _either
            return decide(_negated(_empty(values[0])), _negated(_empty(values[2])))
        return None
    if texts[0] == "!":
        return _negated(_short(machine, state, values[1:], texts[1:]))
    if texts[0] == "(" and texts[3] == ")":
        return _short(machine, state, values[1:3], texts[1:3])
    return None


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left or right:
        return True
    return None if left is None or right is None else False


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


# --- [[ … ]]


def conditional(machine: Machine, state: State, test: Test) -> tuple[State, State]:
    """What holds when *test* is true, and when it is false; what cannot be is dead."""
    if test.operator == "!":
        yes, no = conditional(machine, state, test.inner[0])
        return no, yes
    if test.operator in ("&&", "||"):
        left_yes, left_no = conditional(machine, state, test.inner[0])
        going, stopped = (left_yes, left_no) if test.operator == "&&" else (left_no, left_yes)
        if going.dead:
            return (going, stopped) if test.operator == "&&" else (stopped, going)
        yes, no = conditional(machine, going, test.inner[1])
        return (yes, stopped.joined(no)) if test.operator == "&&" else (stopped.joined(yes), no)
    values: list[Value] = []
    answer = _primary(machine, state, test, values)
    refinement = _refinement(state, test)
    operator = Value.literal(test.operator)
    shown = [operator, *values] if len(values) == 1 else [values[0], operator, *values[1:]]
    return split(state, answer, refinement, empty_labels(shown))


def _primary(machine: Machine, state: State, test: Test, values: list[Value]) -> bool | None:
    """The verdict; the *values* of the operands are left in the list, where they are plain texts."""
    operands = test.operands
    left = expand_value(machine, state, operands[0])
    values.append(left)
    if len(operands) == 1:
        return _unary(machine, state, test.operator, left)
    if test.operator == "=~":
        return _regular(machine, state, left, operands[1])
    if test.operator in ("=", "==", "!="):
        pattern = expand_pattern(machine, state, operands[1])
        values.append(pattern.value())
        answer = matches(left, pattern)
        return _negated(answer) if test.operator == "!=" else answer
    right = expand_value(machine, state, operands[1])
    if test.operator in _COMPARE:
        a, b = calculate(machine, state, left), calculate(machine, state, right)
        return _COMPARE[test.operator](a, b) if a is not None and b is not None else None
    return _binary(test.operator, left, right)


def _regular(machine: Machine, state: State, left: Value, word: Word) -> bool | None:
    expression = "".join(
        re.escape(piece) if part.quoted else piece
        for part in word.parts
        for piece in [expand_value(machine, state, Word(word.start, word.end, (part,))).constant or "\0"]
    )
    expression = re.sub(r"\[:(\w+):\]", lambda name: _POSIX.get(name[1], name[0]), expression)
    holes: list[Hole] = []
    encoded = encode(left.texts[0], holes) if len(left.texts) == 1 else ""
    try:
        match = re.search(expression, encoded) if "\0" not in expression and len(left.texts) == 1 else None
    except re.error:
        match = None
    items = Items((), left.opaque() | EMPTY)
    if match is not None:
        groups = [Value((decode(group or "", holes),)) for group in (match.group(), *match.groups())]
        weak = Value.of(left.taints).weakened(Confidence.LOW) if left.taints else EMPTY
        items = Items(
            tuple((str(index), group | weak if weak != EMPTY else group) for index, group in enumerate(groups))
        )
    variable = get_variable(machine, state, "BASH_REMATCH")
    state.assign("BASH_REMATCH", replace(variable, items=items, unset=False, value=EMPTY))
    return match is not None if left.constant is not None and "\0" not in expression else None


_POSIX = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "space": r"\s", "upper": "A-Z", "lower": "a-z"}


# --- what a decision tells

# A variable with its value when the test is true, and when it is false (None: that cannot be told).
_Refinement = tuple[str, Value | None, Value | None]


def empty_labels(values: list[Value]) -> tuple[frozenset[Label], bool] | None:
    """The labels that a test with these arguments says are empty, and whether it says so when it is true."""
    when = True
    while values and values[0].constant == "!":
        when, values = not when, values[1:]
    texts = [value.constant for value in values]
    if len(values) == 1:
        tested, when = values[0], not when
    elif len(values) == 2 and texts[0] in ("-z", "-n"):
        tested, when = values[1], when == (texts[0] == "-z")
    elif len(values) == 3 and texts[1] in ("=", "==", "!=") and texts[2] == "":
        tested, when = values[0], when == (texts[1] != "!=")
    else:
        return None
    if len(tested.texts) != 1 or len(tested.texts[0]) != 1:
        return None
    hole = tested.texts[0][0]
    # Only a hole with a symbol is the whole value of its label.
    if not isinstance(hole, Hole) or not hole.symbol or len(hole.taints) != 1:
        return None
    return frozenset(taint.label for taint in hole.taints), when


def split(
    state: State,
    answer: bool | None,
    refinement: _Refinement | None,
    emptied: tuple[frozenset[Label], bool] | None = None,
) -> tuple[State, State]:
    """The state on both ways out of a test with the verdict *answer*."""
    yes, no = state, state.copy()
    yes.status, no.status = 0, 1
    if answer is True:
        no.dead = True
    elif answer is False:
        yes.dead = True
    if emptied is not None:
        labels, when = emptied
        way = yes if when else no
        way.absent = way.absent | labels
    if refinement is not None:
        name, when_true, when_false = refinement
        for way, value in ((yes, when_true), (no, when_false)):
            variable = way.lookup(name)
            if value is not None and variable is not None and variable.items is None and not way.dead:
                way.assign(name, replace(variable, value=value, unset=False if value != EMPTY else variable.unset))
    return yes, no


def _variable_of(word: Word) -> str | None:
    parts = [part for part in word.parts if not (isinstance(part, Literal) and not part.text)]
    if len(parts) != 1 or not isinstance(part := parts[0], Parameter):
        return None
    plain = not part.operator or (part.operator in (":-", "-") and not part.arguments[0].parts)
    if plain and part.subscript is None and not part.indirect and part.name.isidentifier():
        return part.name
    return None


def _emptiness(state: State, name: str | None, *, empty_when_true: bool) -> _Refinement | None:
    variable = state.lookup(name) if name else None
    if name is None or variable is None or variable.items is not None or "n" in variable.attributes:
        return None
    filled = tuple(text for text in variable.value.texts if text)
    present = Value(filled) if filled else None
    return (name, EMPTY, present) if empty_when_true else (name, present, EMPTY)


def _equality(state: State, name: str | None, value: Value, *, equal_when_true: bool) -> _Refinement | None:
    if value == EMPTY:
        return _emptiness(state, name, empty_when_true=equal_when_true)
    variable = state.lookup(name) if name else None
    text = value.constant
    if name is None or variable is None or text is None or variable.value.constants is None or variable.items:
        return None
    same = value if text in variable.value.constants else None
    others = tuple(one for one in variable.value.texts if one != (text,))
    other = Value(others) if others else None
    return (name, same, other) if equal_when_true else (name, other, same)


def _refinement(state: State, test: Test) -> _Refinement | None:
    name = _variable_of(test.operands[0])
    if test.operator in ("-z", "-n"):
        return _emptiness(state, name, empty_when_true=test.operator == "-z")
    if test.operator in ("=", "==", "!=") and (text := test.operands[1].static) is not None:
        special = any(not part.quoted and isinstance(part, Literal) for part in test.operands[1].parts)
        if special and any(char in text for char in "*?[\\"):
            return None
        return _equality(state, name, Value.literal(text), equal_when_true=test.operator != "!=")
    return None


def refine_test(state: State, words: tuple[Word, ...]) -> _Refinement | None:
    """What ``[`` with these *words* (its arguments, without the bracket) tells about a variable."""
    negated = False
    while words and words[0].static == "!":
        negated = not negated
        words = words[1:]
    if len(words) == 1:
        return _emptiness(state, _variable_of(words[0]), empty_when_true=negated)
    if len(words) == 2 and words[0].static in ("-z", "-n"):
        return _emptiness(state, _variable_of(words[1]), empty_when_true=(words[0].static == "-z") != negated)
    if len(words) == 3 and words[1].static in ("=", "==", "!="):
        text = words[2].static
        if text is not None:
            same = (words[1].static != "!=") != negated
            return _equality(state, _variable_of(words[0]), Value.literal(text), equal_when_true=same)
    return None


__all__ += ["split"]
