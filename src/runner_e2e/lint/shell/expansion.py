"""From words to arguments: parameter, command and arithmetic expansion, field splitting, file names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as Literal_

from runner_e2e.lint.shell.filesystem import matching_files, resolve
from runner_e2e.lint.shell.ir import (
    ArithmeticPart,
    CommandPart,
    Inserted,
    Literal,
    Parameter,
    Part,
    ProcessPart,
    Word,
)
from runner_e2e.lint.shell.parameters import (
    anything,
    assign_element,
    assign_scalar,
    calculate,
    element,
    get_variable,
    join_list,
    list_of,
    name_of_reference,
    number_value,
    scalar,
    substring,
    transform,
)
from runner_e2e.lint.shell.patterns import (
    Pattern,
    contains_glob,
    remove_prefix,
    remove_suffix,
    replace_matches,
)
from runner_e2e.lint.shell.state import Field, exact
from runner_e2e.lint.values import EMPTY, UNKNOWN, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import State

__all__ = ["expand_pattern", "expand_value", "expand_words"]

_DEFAULT_IFS = " \t\n"
_Presence: TypeAlias = Literal_["set", "unset", "uncertain"]
_SET: _Presence = "set"
_UNSET: _Presence = "unset"
_UNCERTAIN: _Presence = "uncertain"


def expand_words(machine: Machine, state: State, words: Iterable[Word]) -> tuple[Field, ...]:
    """The arguments that *words* make."""
    fields: list[Field] = []
    for word in words:
        part = word.parts[0] if len(word.parts) == 1 else None
        if isinstance(part, Literal) and (part.quoted or not (contains_glob(part.text) or part.text[:1] == "~")):
            fields.append(Field(Value.literal(part.text), "one", word.start, word.end))
            continue
        fields.extend(_Fields(machine, state, word).expand())
    return tuple(fields)


def expand_value(machine: Machine, state: State, word: Word | None) -> Value:
    """The text of *word* where the shell does not split it: assignments, redirections, ``case``, ``[[``."""
    if word is None:
        return EMPTY
    total = EMPTY
    for index, part in enumerate(word.parts):
        value = _evaluate(machine, state, part)
        if isinstance(value, tuple):
            value = join_list(state, value, star=isinstance(part, Parameter) and _is_star(part))
        elif index == 0 and isinstance(part, Literal) and not part.quoted:
            value = _tilde(machine, value)
        total = total + value
    return total


def expand_pattern(machine: Machine, state: State, word: Word) -> Pattern:
    """*word* as a pattern: what is quoted is not special."""
    pieces: list[tuple[Value, bool]] = []
    for part in word.parts:
        value = _evaluate(machine, state, part)
        if isinstance(value, tuple):
            value = join_list(state, value, star=True)
        pieces.append((value, part.quoted))
    return Pattern(tuple(pieces))


def _tilde(machine: Machine, value: Value) -> Value:
    text = value.constant
    if text is not None and re.match(r"~(?:/|$)", text):
        return machine.symbol("$HOME") + Value.literal(text[1:])
    return value


def _is_star(part: Parameter) -> bool:
    return part.name == "*" or (part.subscript is not None and part.subscript.static == "*")


class _Fields:
    """Builds the fields of one word."""

    def __init__(self, machine: Machine, state: State, word: Word) -> None:
        self.machine = machine
        self.state = state
        self.word = word
        self.fields: list[Field] = []
        self.pieces: list[tuple[Value, bool]] = []
        self.kind = "one"
        self.started = False

    def expand(self) -> list[Field]:
        for index, part in enumerate(self.word.parts):
            value = _evaluate(self.machine, self.state, part)
            if isinstance(value, tuple):
                self._list(value, part)
            elif isinstance(part, Literal):
                if index == 0 and not part.quoted:
                    value = _tilde(self.machine, value)
                self.pieces.append((value, part.quoted))
                self.started = True
            elif part.quoted:
                self.pieces.append((value, True))
                self.started = True
            else:
                self._split(value)
        self._finish()
        return self.fields

    def _finish(self) -> None:
        if not self.started:
            return
        pieces, kind = self.pieces, self.kind
        self.pieces, self.kind, self.started = [], "one", False
        total = EMPTY
        for value, _ in pieces:
            total = total + value
        globs = "f" not in self.state.options and any(
            not quoted and any(isinstance(piece, str) and contains_glob(piece) for piece in value.pieces())
            for value, quoted in pieces
        )
        if globs:
            self.fields.extend(self._file_names(Pattern(tuple(pieces)), total))
        else:
            self.fields.append(self._field(total, kind))

    def _field(self, value: Value, kind: str) -> Field:
        return Field(value, kind, self.word.start, self.word.end)

    def _file_names(self, pattern: Pattern, total: Value) -> list[Field]:
        expressions = pattern.expressions()
        found: list[Field] = []
        if expressions is not None:
            here = resolve(("-",), self.state.directory)
            base = "".join(re.escape(piece) if isinstance(piece, str) else "(?s:.*)" for piece in here)
            base = base.removesuffix(re.escape("-"))
            for expression in expressions:
                absolute = expression.startswith("/")
                relative = re.sub(r"^(?:\\\./|\./)", "", expression)
                whole = expression if absolute else base + relative
                found.extend(
                    self._field(Value((key,)), "list") for key in matching_files(self.state, whole) if key != (whole,)
                )
        else:
            found.extend(
                self._field(Value((key,)), "list")
                for key in self.state.files
                if isinstance(key, tuple) and Value((key,)).taints
            )
        rest = UNKNOWN if not total.taints else UNKNOWN | total
        return [*found, self._field(rest, "list")]

    def _list(self, fields: tuple[Field, ...], part: Part) -> None:
        """``$@``, ``${a[@]}``: the first field joins what stands before, the last what follows."""
        if part.quoted and isinstance(part, Parameter) and _is_star(part):
            self.pieces.append((join_list(self.state, fields, star=True), True))
            self.started = True
            return
        for index, one in enumerate(fields):
            if index:
                self._finish()
            if part.quoted or one.kind == "list":
                self.pieces.append((one.value, part.quoted))
                self.started = True
                if one.kind != "one":
                    self.kind = one.kind
            else:
                self._split(one.value)

    def _split(self, value: Value) -> None:
        """Field splitting of an unquoted expansion."""
        separators = _separators(self.state)
        if separators is None or not separators:
            self.pieces.append((value, False))
            self.started = self.started or value != EMPTY
            return
        if len(value.texts) == 1:
            self._split_text(value.texts[0], separators)
            return
        if any(_has_separator(text, separators) for text in value.texts):
            parts = [Value((piece,)) for text in value.texts for piece in _split_on(text, separators) if piece]
            self._finish()
            self.pieces.append((join(parts), False))
            self.kind = "list"
            self.started = True
            self._finish()
            return
        self.pieces.append((value, False))
        if any(not text or isinstance(text[0], Hole) for text in value.texts):
            self.kind = "split"
        self.started = self.started or value != EMPTY

    def _split_text(self, text: Text, separators: str) -> None:
        pieces = _split_on(text, separators)
        first = text[0] if text else ""
        last = text[-1] if text else ""
        if isinstance(first, str) and first[:1] and first[:1] in separators:
            self._finish()
        for index, piece in enumerate(piece for piece in pieces if piece):
            if index:
                self._finish()
            self.pieces.append((Value((piece,)), False))
            if any(isinstance(one, Hole) and not (one.longest == 20 and not one.taints) for one in piece):
                self.kind = "split"
            self.started = True
        if isinstance(last, str) and last[-1:] and last[-1:] in separators:
            self._finish()


def _separators(state: State) -> str | None:
    variable = state.lookup("IFS")
    if variable is None or (variable.unset and variable.value == EMPTY):
        return _DEFAULT_IFS
    text = variable.plain().constant
    return _DEFAULT_IFS if text is None else text


def _has_separator(text: Text, separators: str) -> bool:
    return any(isinstance(piece, str) and any(char in separators for char in piece) for piece in text)


def _split_on(text: Text, separators: str) -> list[Text]:
    """The fields of *text*; a hole is taken for a part of one field."""
    cut = re.compile(f"[{re.escape(separators)}]")
    fields: list[list[str | Hole]] = [[]]
    for piece in text:
        if isinstance(piece, Hole):
            fields[-1].append(piece)
            continue
        for index, part in enumerate(cut.split(piece)):
            if index:
                fields.append([])
            fields[-1].append(part)
    return [normal(one) for one in fields]


# --- parts


def _evaluate(machine: Machine, state: State, part: Part) -> Value | tuple[Field, ...]:
    if isinstance(part, Literal):
        return Value.literal(part.text)
    if isinstance(part, Parameter):
        return _parameter(machine, state, part)
    if isinstance(part, Inserted):
        return part.value
    if isinstance(part, CommandPart):
        value = _without_last_newlines(machine.capture(part.body, state))
        return machine.step(value, part.start, part.end, "command substitution")
    if isinstance(part, ArithmeticPart):
        expression = expand_value(machine, state, part.expression)
        number = calculate(machine, state, expression)
        return Value.literal(str(number)) if number is not None else _number(state, expression)
    return _process(machine, state, part)


def _number(state: State, expression: Value) -> Value:
    value = number_value(state, expression)
    return Value(((Hole(value.taints, "", 20),),))


def _without_last_newlines(value: Value) -> Value:
    def trimmed(text: Text) -> Text:
        if text and isinstance(text[-1], str) and text[-1].endswith("\n"):
            last = text[-1].rstrip("\n")
            return (*text[:-1], last) if last else text[:-1]
        return text

    return Value.any_of(
        normal(piece.replace("\0", "") if isinstance(piece, str) else piece for piece in trimmed(text))
        for text in value.texts
    )


def _process(machine: Machine, state: State, part: ProcessPart) -> Value:
    """``<(…)``: a file that holds the output. ``>(…)``: one whose content is given to the commands afterwards."""
    name = f"/dev/fd/process-{machine.fresh()}"
    if part.direction == "<":
        state.files[(name,)] = machine.capture(part.body, state)
    else:
        state.files[(name,)] = EMPTY
        machine.readers.append(((name,), part.body))
    return Value.literal(name)


def _parameter(machine: Machine, state: State, part: Parameter) -> Value | tuple[Field, ...]:
    name, operator = part.name, part.operator
    if part.indirect:
        return _indirect(machine, state, part)
    all_of = name in ("@", "*") or (part.subscript is not None and part.subscript.static in ("@", "*"))
    if all_of:
        fields = list_of(machine, state, name)
        if operator == "length":
            return Value.literal(str(len(fields))) if exact(fields) else UNKNOWN
        return _list_operation(machine, state, part, fields)
    if part.subscript is not None:
        key = expand_value(machine, state, part.subscript)
        value = element(machine, state, name, key)
        items = get_variable(machine, state, name).as_items()
        presence = (_SET if value != EMPTY else _UNSET) if items.others is None else _UNCERTAIN
    else:
        value, maybe, gone = scalar(machine, state, name)
        presence = _UNSET if gone else (_UNCERTAIN if maybe else _SET)
        if gone and not operator and "u" in state.options and not state.dead:
            # ``set -u``: the shell ends here.
            machine.exits.append(state.copy())
            state.dead = True
    return _operate(machine, state, part, value, presence) if operator else value


def _indirect(machine: Machine, state: State, part: Parameter) -> Value | tuple[Field, ...]:
    if part.operator == "names":
        names = sorted(name for name in state.visible() if name.startswith(part.name))
        return (*(Field(Value.literal(name)) for name in names), Field(UNKNOWN, "list"))
    if part.subscript is not None and part.subscript.static in ("@", "*") and not part.operator:
        items = get_variable(machine, state, part.name).as_items()
        keys = [Field(Value.literal(key)) for key, _ in items.known]
        return (*keys, Field(items.other_keys, "list")) if items.others is not None else tuple(keys)
    variable = state.lookup(part.name)
    if variable is not None and "n" in variable.attributes and not part.operator:
        return variable.value
    if part.subscript is not None:
        reference = element(machine, state, part.name, expand_value(machine, state, part.subscript))
    else:
        reference = scalar(machine, state, part.name)[0]
    results = [_referenced(machine, state, text) for text in reference.texts]
    if len(results) == 1 and isinstance(results[0], tuple):
        return results[0]
    value = join(join_list(state, result, star=False) if isinstance(result, tuple) else result for result in results)
    return _operate(machine, state, part, value, _SET) if part.operator else value


def _referenced(machine: Machine, state: State, text: Text) -> Value | tuple[Field, ...]:
    """What the variable of the name *text* holds."""
    if not text:
        return EMPTY
    name = text[0]
    if len(text) > 1 or not isinstance(name, str):
        return anything(state, name if isinstance(name, str) else "")
    match = re.fullmatch(r"([A-Za-z_]\w*|\d+|[@*#?$!])(?:\[(.*)\])?", name, re.DOTALL)
    if match is None:
        return EMPTY
    if match[2] in ("@", "*") or match[1] in ("@", "*"):
        return list_of(machine, state, match[1])
    if match[2] is not None:
        return element(machine, state, match[1], Value.literal(match[2]))
    return scalar(machine, state, match[1])[0]


def _list_operation(
    machine: Machine, state: State, part: Parameter, fields: tuple[Field, ...]
) -> Value | tuple[Field, ...]:
    operator = part.operator
    if not operator:
        return fields
    if operator == ":":
        return _slice(machine, state, part, fields)
    if operator.lstrip(":")[0] in "-=?+":
        present = bool(fields)
        if operator.endswith("+"):
            return expand_value(machine, state, part.arguments[0]) if present else ()
        if exact(fields) and present:
            return fields
        other = expand_value(machine, state, part.arguments[0]) if not operator.endswith("?") else EMPTY
        return (*(Field(one.value, "list") for one in fields), Field(other, "list")) if present else other
    return tuple(Field(_operate(machine, state, part, one.value, _SET), one.kind) for one in fields)


def _slice(machine: Machine, state: State, part: Parameter, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    offset = calculate(machine, state, expand_value(machine, state, part.arguments[0]))
    length: int | None = None
    if len(part.arguments) > 1:
        length = calculate(machine, state, expand_value(machine, state, part.arguments[1]))
    if part.name in ("@", "*"):
        fields = (Field(scalar(machine, state, "0")[0]), *fields)
    unknown = offset is None or (length is None and len(part.arguments) > 1)
    if unknown or not exact(fields):
        first = offset or 0
        kept = fields
        if offset is not None and offset > 0 and exact(fields[:first]) and len(fields) >= first:
            kept = fields[first:]
        return tuple(Field(one.value, "list") for one in kept)
    assert offset is not None
    start = offset if offset >= 0 else max(len(fields) + offset, 0)
    return fields[start : len(fields) if length is None else start + max(length, 0)]


def _operate(machine: Machine, state: State, part: Parameter, value: Value, presence: _Presence) -> Value:
    operator = part.operator
    if operator == "length":
        text = value.constant
        return Value.literal(str(len(text))) if text is not None else Value(((Hole(frozenset(), "", 20),),))
    if operator[-1] in "-=?+" and operator[0] in ":-=?+":
        return _default(machine, state, part, value, presence)
    if operator == ":":
        offset = calculate(machine, state, expand_value(machine, state, part.arguments[0]))
        bounded = len(part.arguments) > 1
        length = calculate(machine, state, expand_value(machine, state, part.arguments[1])) if bounded else None
        return substring(value, offset, length, bounded=bounded)
    if operator[0] == "@":
        if operator[1] == "P":
            return machine.expand_again(value, state, (part.start, part.end))
        return _at_operator(operator[1], part, value)
    pattern = expand_pattern(machine, state, part.arguments[0]) if part.arguments else Pattern(())
    if operator in ("#", "##"):
        return remove_prefix(value, pattern, longest=operator == "##")
    if operator in ("%", "%%"):
        return remove_suffix(value, pattern, longest=operator == "%%")
    if operator[0] == "/":
        return _replace(machine, state, part, value, pattern)
    if operator[0] in "^,~":
        change = {"^": str.upper, ",": str.lower, "~": str.swapcase}[operator[0]]
        if len(operator) == 2 and not part.arguments[0].parts:
            return transform(value, change)
        return value if value.constant is None else UNKNOWN
    return value.opaque()


def _replace(machine: Machine, state: State, part: Parameter, value: Value, pattern: Pattern) -> Value:
    word = part.arguments[1] if len(part.arguments) > 1 else None
    replacement = expand_value(machine, state, word)
    ampersand = word is not None and any(
        not one.quoted and isinstance(one, Literal) and "&" in one.text for one in word.parts
    )
    return replace_matches(value, pattern, replacement, part.operator, ampersand=ampersand)


def _at_operator(letter: str, part: Parameter, value: Value) -> Value:
    if letter in "ULu":
        return transform(value, str.lower if letter == "L" else str.upper)
    if letter in "ak":
        return value if letter == "k" else UNKNOWN
    if letter == "A":
        return Value.literal(f"{part.name}='") + value + Value.literal("'")
    if letter == "Q" and value.constants is not None:
        return Value.any_of(("'" + text.replace("'", "'\\''") + "'",) for text in value.constants)
    return value if value.constant is None or letter not in "PE" else UNKNOWN


def _default(machine: Machine, state: State, part: Parameter, value: Value, presence: _Presence) -> Value:
    operator = part.operator
    maybe, gone = presence != _SET, presence == _UNSET
    colon = operator[0] == ":"
    word = part.arguments[0]
    filled = [text for text in value.texts if text] if colon else ([] if gone else list(value.texts))
    # A text of holes only may be empty.
    uncertain = maybe or (colon and any(all(isinstance(piece, Hole) for piece in text) for text in filled))
    absent = gone or (colon and len(filled) < len(value.texts)) or uncertain
    kind = operator[-1]
    if kind == "+":
        if not filled:
            return EMPTY
        other = expand_value(machine, state, word)
        return other | EMPTY if absent else other
    present = Value(tuple(filled)) if filled else None
    if not absent:
        return value
    if kind == "?":
        return present or EMPTY
    other = expand_value(machine, state, word)
    result = other if present is None else present | other
    if kind == "=":
        if part.subscript is not None:
            key = expand_value(machine, state, part.subscript)
            assign_element(machine, state, (part.name, key), result)
        elif re.match(r"[A-Za-z_]", part.name):
            assign_scalar(state, name_of_reference(state, part.name), result)
    return result
