"""``echo``, ``printf``, ``read`` and ``mapfile``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.ansi import decode
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.filesystem import write_channel
from runner_e2e.lint.shell.parameters import assign_element, assign_scalar, join_list
from runner_e2e.lint.shell.state import NULL, Channel, Field, Items, State, Variable, exact
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["HANDLERS", "at_most", "format_text"]

_DIRECTIVE = re.compile(
    r"%(?:%|[-+ #0']*(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*)?)?[hlLjzt]*(?P<kind>\([^)]*\)T|.))"
)
_MAX_CYCLES = 32
_BLANKS = " \t\n"


def _escaped(value: Value) -> Value:
    """*value* with backslash escapes replaced in its known pieces."""
    return Value.any_of(
        normal(decode(piece) if isinstance(piece, str) else piece for piece in text) for text in value.texts
    )


def _echo(machine: Machine, call: Invocation) -> None:
    arguments = list(call.fields[1:])
    newline, escapes = True, not machine.bash
    flags = r"-[neE]+" if machine.bash else r"-n"
    while arguments and arguments[0].kind == "one" and re.fullmatch(flags, arguments[0].value.constant or ""):
        text = arguments.pop(0).value.constant or ""
        newline = newline and "n" not in text
        if "e" in text or "E" in text:
            escapes = text.rfind("e") > text.rfind("E")
    value = join_list(call.state, tuple(arguments), star=False)
    if escapes:
        value = _escaped(value)
    write_channel(machine, call.state, 1, value + Value.literal("\n") if newline else value, call.span)
    call.state.status = 0


def _printf(machine: Machine, call: Invocation) -> None:
    arguments = list(call.fields[1:])
    variable: str | None = None
    if machine.bash and len(arguments) > 1 and arguments[0].value.constant == "-v":
        # A pattern (`-v a[0]`) that no file matches stays as it is written.
        known = [text[0] for text in arguments[1].value.texts if len(text) == 1 and isinstance(text[0], str)]
        variable = known[0] if known else ""
        arguments = arguments[2:]
    if arguments and arguments[0].value.constant == "--":
        arguments = arguments[1:]
    call.state.status = 0
    if not arguments:
        return
    value = format_text(arguments[0].value, tuple(arguments[1:]))
    if variable is None:
        write_channel(machine, call.state, 1, value, call.span)
        return
    value = machine.step(value, call.at.start, call.at.end, f"printed into {variable}")
    match = re.fullmatch(r"(\w+)\[(.*)\]", variable, re.DOTALL)
    if match is not None:
        assign_element(machine, call.state, (match[1], Value.literal(match[2])), value)
    elif re.fullmatch(r"\w+", variable):
        assign_scalar(call.state, variable, value)


def format_text(form: Value, arguments: tuple[Field, ...]) -> Value:
    """What ``printf`` makes of a format and arguments."""
    text = form.constant
    if len(arguments) == 1 and arguments[0].kind == "split":
        arguments = (replace(arguments[0], kind="one"),)
    if text is None or not exact(arguments) or len(arguments) > _MAX_CYCLES:
        everything = [form, *(one.value for one in arguments)]
        return join(everything).opaque() if any(one.taints for one in everything) else UNKNOWN
    values = [one.value for one in arguments]
    total = EMPTY
    while True:
        before = len(values)
        total = total + _one_cycle(text, values)
        if not values or len(values) == before:
            return total


def _one_cycle(text: str, values: list[Value]) -> Value:
    total = EMPTY
    offset = 0
    for match in _DIRECTIVE.finditer(text):
        total = total + Value.literal(decode(text[offset : match.start()]))
        offset = match.end()
        if match.group() == "%%":
            total = total + Value.literal("%")
            continue
        if match["width"] == "*" and values:
            values.pop(0)
        limit: int | None = None
        if match["precision"] == "*":
            number = values.pop(0).constant if values else None
            limit = int(number) if number is not None and number.isdigit() else None
        elif match["precision"] is not None:
            limit = int(match["precision"])
        total = total + _converted(match["kind"], values.pop(0) if values else EMPTY, limit, match["width"])
    return total + Value.literal(decode(text[offset:]))


def _converted(kind: str, value: Value, limit: int | None, width: str | None) -> Value:
    if kind in ("s", "b", "q"):
        if kind == "b":
            value = _escaped(value)
        if limit is not None:
            return at_most(value, limit)
        if width and value.constant is not None:
            return Value.literal(value.constant.rjust(int(width))) if width.isdigit() else UNKNOWN
        if kind == "q" and value.constant is not None and not re.fullmatch(r"[\w./:@%+=-]+", value.constant):
            return UNKNOWN
        return value
    if kind == "c":
        return at_most(value, 1)
    if kind in "diu" and value.constant is not None and re.fullmatch(r"-?\d+", value.constant) and not width:
        return value
    return Value(((Hole(frozenset(), "", 20),),))


def at_most(value: Value, limit: int | None) -> Value:
    """The first *limit* characters of *value* (None: a number that is not known)."""
    texts: list[Text] = []
    for text in value.texts:
        if limit is not None and all(isinstance(piece, str) for piece in text):
            texts.append(normal(["".join(str(piece) for piece in text)[:limit]]))
        else:
            texts.append((Hole(Value((text,)).taints, "", limit),) if text and limit != 0 else ())
    return Value.any_of(texts)


# --- read


def _input(options: dict[str, str], state: State) -> Channel:
    number = options.get("u", "")
    return state.descriptors.get(int(number) if number.isdigit() else 0, NULL)


def _read(machine: Machine, call: Invocation) -> None:
    options, names = _options([one.value.constant or "" for one in call.fields[1:]], "adinNptu")
    channel = _input(options, call.state)
    content = call.state.files.get(channel.key, EMPTY) if channel.kind == "stream" else EMPTY
    delimiter = decode(options["d"])[:1] or "\0" if "d" in options else "\n"
    limit = options.get("N") or options.get("n")
    ends: list[State] = []
    for text in content.texts:
        inner = call.state.copy()
        line, rest, inner.status = _line(text, delimiter)
        if limit is not None:
            line = at_most(line, int(limit) if limit.isdigit() else None)
            if Value((text,)).taints:  # some of it is left, or nothing
                rest, inner.status = Value((text,)), None
        if "r" not in options:
            line = Value.any_of(
                normal(re.sub(r"\\(.)", r"\1", piece) if isinstance(piece, str) else piece for piece in one)
                for one in line.texts
            )
        _assign_fields(machine, inner, names, machine.step(line, call.at.start, call.at.end, "read"), options)
        if channel.kind == "stream":
            inner.files[channel.key] = rest
        ends.append(inner)
    machine.settle(call.state, ends)


def _options(arguments: list[str], valued: str) -> tuple[dict[str, str], list[str]]:
    """Options by letter, and the operands; letters in *valued* take a value."""
    options: dict[str, str] = {}
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and len(arguments[index]) > 1:
        text = arguments[index]
        index += 1
        if text == "--":
            break
        for at, letter in enumerate(text[1:], 1):
            options[letter] = text[at + 1 :]
            if letter in valued:
                if not options[letter]:
                    options[letter] = arguments[index] if index < len(arguments) else ""
                    index += 1
                break
            options[letter] = ""
    return options, arguments[index:]


def _line(text: Text, delimiter: str) -> tuple[Value, Value, int | None]:
    """The next line, what remains, and the status of ``read``.

    A labelled hole is taken to be of one line: what would follow is the rest of the same text. Unknown text may be
    of any number of lines.
    """
    if not text:
        return EMPTY, EMPTY, 1
    whole = Value((text,))
    for index, piece in enumerate(text):
        if isinstance(piece, str) and delimiter in piece:
            head, tail = piece.split(delimiter, 1)
            line = Value((normal((*text[:index], head)),))
            rest = Value((normal((tail, *text[index + 1 :])),))
            if any(isinstance(one, Hole) and not one.taints for one in text[:index]):
                return line, rest | whole, 0
            return line, rest, 0
    holes = [piece for piece in text if isinstance(piece, Hole)]
    if not holes:
        return whole, EMPTY, 1
    return whole, EMPTY if all(hole.taints for hole in holes) else whole | EMPTY, None


def _assign_fields(machine: Machine, state: State, names: list[str], line: Value, options: dict[str, str]) -> None:
    ifs = state.lookup("IFS")
    known = ifs.plain().constant if ifs is not None and not (ifs.unset and ifs.value == EMPTY) else _BLANKS
    separators = _BLANKS if known is None else known
    if "a" in options:
        state.assign(options["a"], Variable(items=_array_of(line, separators)))
    elif not names:
        assign_scalar(state, "REPLY", line)
    elif "N" in options:
        assign_scalar(state, names[0], line)
    else:
        columns: list[list[Value]] = [[] for _ in names]
        for text in line.texts:
            for column, value in zip(columns, _columns(text, separators, len(names)), strict=True):
                column.append(value)
        for name, column in zip(names, columns, strict=True):
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                assign_scalar(state, name, join(column))
            elif match := re.fullmatch(r"(\w+)\[(.*)\]", name):
                assign_element(machine, state, (match[1], Value.literal(match[2])), join(column))


def _array_of(line: Value, separators: str) -> Items:
    rows = [_all_fields(text, separators) for text in line.texts]
    if len(rows) != 1:
        return Items((), join(Value((field,)) for row in rows for field in row))
    items = Items(tuple((str(index), Value((field,))) for index, field in enumerate(rows[0])))
    if line.taints and len(rows[0]) <= 1:
        return items.put_somewhere(line.opaque().weakened(_rest_confidence(separators)))
    return items


def _rest_confidence(separators: str) -> Confidence:
    """How likely a labelled text holds a separator: one chosen on purpose says that it does."""
    return Confidence.LOW if not separators.strip(_BLANKS) else Confidence.MEDIUM


def _columns(text: Text, separators: str, count: int) -> list[Value]:
    """*text* as *count* variables: the last one takes what remains."""
    columns: list[Value] = []
    rest = _stripped(text, separators)
    seen: list[Hole] = []
    cut_seen = False
    for position in range(count):
        if position < count - 1:
            field, rest, cut = _first_field(rest, separators)
            cut_seen = cut_seen or cut
        else:
            field = _stripped(rest, separators)
        value = Value((field,))
        taints = [taint for hole in seen for taint in hole.taints]
        if taints:
            confidence = Confidence.LOW if cut_seen else _rest_confidence(separators)
            value = value | Value.of(taints).weakened(confidence)
        columns.append(value)
        seen.extend(piece for piece in field if isinstance(piece, Hole))
    return columns


def _stripped(text: Text, separators: str) -> Text:
    blanks = "".join(char for char in separators if char in _BLANKS)
    pieces = list(text)
    if pieces and isinstance(pieces[0], str):
        pieces[0] = pieces[0].lstrip(blanks)
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip(blanks)
    return normal(pieces)


def _first_field(text: Text, separators: str) -> tuple[Text, Text, bool]:
    """The first field, the rest, and whether a separator in known text stands between."""
    blanks = re.escape("".join(char for char in separators if char in _BLANKS))
    others = re.escape("".join(char for char in separators if char not in _BLANKS))
    around = f"[{blanks}]*" if blanks else ""
    forms = [form for form in (others and f"{around}[{others}]{around}", blanks and f"[{blanks}]+") if form]
    if not forms:
        return text, (), False
    cut = re.compile("|".join(forms))
    for index, piece in enumerate(text):
        if isinstance(piece, str) and (match := cut.search(piece)):
            head = normal((*text[:index], piece[: match.start()]))
            return head, normal((piece[match.end() :], *text[index + 1 :])), True
    return text, (), False


def _all_fields(text: Text, separators: str) -> list[Text]:
    fields: list[Text] = []
    rest = _stripped(text, separators)
    while rest and len(fields) < 64:
        field, rest, _ = _first_field(rest, separators)
        fields.append(field)
    return fields


# --- mapfile


def _mapfile(machine: Machine, call: Invocation) -> None:
    options, names = _options([one.value.constant or "" for one in call.fields[1:]], "dnOsuCc")
    name = names[0] if names else "MAPFILE"
    channel = _input(options, call.state)
    content = EMPTY
    if channel.kind == "stream":
        content = machine.step(
            call.state.files.get(channel.key, EMPTY), call.at.start, call.at.end, f"read into {name}"
        )
        call.state.files[channel.key] = EMPTY
    delimiter = decode(options["d"])[:1] or "\0" if "d" in options else "\n"
    if len(content.texts) == 1 and not ({"s", "n", "O"} & options.keys()):
        items = _lines(content.texts[0], delimiter, keep="t" not in options)
    else:
        items = Items((), content.opaque())
    call.state.assign(name, Variable(items=items))
    call.state.status = 0
    if callback := options.get("C"):
        machine.run_text(Value.literal(callback + " 0 ") + content, call.state, call.span)


def _lines(text: Text, delimiter: str, *, keep: bool) -> Items:
    if delimiter != "\n":
        text = normal(piece.replace(delimiter, "\n") if isinstance(piece, str) else piece for piece in text)
    items = Items()
    while text:
        line, rest = split_line(text)
        value = Value((line or (),))
        if rest is not None and keep:
            value = value + Value.literal(delimiter)
        index = items.next_index()
        unknown = any(isinstance(piece, Hole) and not piece.taints for piece in line or ())
        items = items.put_somewhere(value) if unknown or index is None else items.put(str(index), value)
        text = rest or ()
    return items


HANDLERS: dict[str, Callable[[Machine, Invocation], None]] = {
    "echo": _echo,
    "printf": _printf,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
}
