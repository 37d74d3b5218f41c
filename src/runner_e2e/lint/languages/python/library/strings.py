"""Methods of strings, bytes and paths that give texts or lists of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.pieces import joined
from runner_e2e.lint.languages.python import texts
from runner_e2e.lint.languages.python.library.system import variables_put_in
from runner_e2e.lint.languages.python.objects import (
    NONE,
    NOTHING,
    UNKNOWN_TEXT,
    Constant,
    Dictionary,
    Instance,
    Items,
    Named,
    Object,
    Opaque,
    Text,
    text,
)
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


def _receiver(interpreter: Evaluator, receiver: Object) -> Text:
    found = interpreter.as_text(receiver)
    return found if found is not None else UNKNOWN_TEXT


def _given(interpreter: Evaluator, call: Call, index: int, name: str = "") -> Value:
    one = call.get(index, name)
    return interpreter.value(one) if one is not None else EMPTY


def _number(call: Call, index: int, name: str, default: int) -> int:
    one = call.get(index, name)
    return one.value if isinstance(one, Constant) and isinstance(one.value, int) else default


def _separator(interpreter: Evaluator, call: Call) -> str | None:
    given = call.get(0, "sep")
    if given is None or given == NONE:
        return None
    return interpreter.value(given).constant or ""


def _split(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    one = _receiver(interpreter, receiver)
    return interpreter.new(texts.split(one.value, _separator(interpreter, call), _number(call, 1, "maxsplit", -1)))


def _split_from_right(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    one = _receiver(interpreter, receiver)
    separator, most = _separator(interpreter, call), _number(call, 1, "maxsplit", -1)
    if most == 1 and separator:
        parted = texts.partitioned(one.value, separator, last=True)
        head, tail = parted.items[0], parted.items[2]
        if interpreter.value(head) == EMPTY:
            return interpreter.new(Items((tail,)))
        return interpreter.new(Items((head, tail)))
    return interpreter.new(texts.split(one.value, separator, -1))


def _splitlines(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    one = _receiver(interpreter, receiver)
    value = texts.stripped(one.value, "\n", "r")
    keeps = call.get(0, "keepends")
    items = texts.split(value, "\n", -1)
    if keeps is not None and interpreter.truth(keeps) is True:
        items = Items(tuple(Text(interpreter.value(item) + Value.literal("\n")) for item in items.items), items.rest)
    return interpreter.new(items)


def _partition(*, last: bool) -> Callable[[Evaluator, Object, Call], Object]:
    def model(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        return texts.partitioned(one.value, _given(interpreter, call, 0).constant or None, last=last)

    return model


def _strip(where: str) -> Callable[[Evaluator, Object, Call], Object]:
    def model(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        given = call.get(0)
        characters = interpreter.value(given).constant if given is not None and given != NONE else None
        return Text(texts.stripped(one.value, characters, where), one.kind)

    return model


def _remove(*, prefix: bool) -> Callable[[Evaluator, Object, Call], Object]:
    def model(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        affix = _given(interpreter, call, 0).constant
        if affix is None:
            return Text(one.value | one.value.opaque(), one.kind)

        def cut(piece: str) -> str:
            return piece.removeprefix(affix) if prefix else piece.removesuffix(affix)

        found = []
        for each in one.value.texts:
            at = 0 if prefix else len(each) - 1
            pieces = [
                cut(piece) if index == at and isinstance(piece, str) else piece for index, piece in enumerate(each)
            ]
            found.append(tuple(piece for piece in pieces if piece != ""))
        return Text(Value.any_of(found), one.kind)

    return model


def _replace(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    one = _receiver(interpreter, receiver)
    old, new = _given(interpreter, call, 0, "old"), _given(interpreter, call, 1, "new")
    return Text(texts.replaced(one.value, old, new), one.kind)


def _mapped(change: Callable[[str], str]) -> Callable[[Evaluator, Object, Call], Object]:
    def model(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        return Text(texts.mapped(one.value, change), one.kind)

    return model


def _same(kind: str = "") -> Callable[[Evaluator, Object, Call], Object]:
    """A method whose result holds the same text (``encode``, ``resolve``)."""

    def model(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        new = {"str": "str", "bytes": "bytes", "path": "path"}.get(kind)
        return Text(one.value, new) if new in ("str", "bytes", "path") else one  # type: ignore[arg-type]

    return model


def _padded(interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    one = _receiver(interpreter, receiver)
    return Text(UNKNOWN + one.value + UNKNOWN if one.value.taints else UNKNOWN, one.kind)


def _join(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    """``separator.join(parts)``."""
    one = _receiver(interpreter, receiver)
    items = interpreter.items(call.get(0, "iterable") or NOTHING)
    total: Value | None = None
    for item in items.items:
        value = interpreter.value(item)
        total = value if total is None else total + one.value + value
    if items.rest is not None:
        rest = interpreter.value(items.rest)
        more = rest.opaque() if rest.taints else UNKNOWN
        total = more if total is None else total + (EMPTY | more)
    return Text(total if total is not None else EMPTY, one.kind)


def _format(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    form = _receiver(interpreter, receiver)
    arguments = [interpreter.value(one) for one in call.arguments]

    def named(name: str) -> Value | None:
        found = call.keywords.get(name, call.rest)
        return interpreter.value(found) if found is not None else None

    if call.rest is not None:
        arguments += [interpreter.value(call.rest)] * 4
    return Text(texts.formatted_with(form.value, arguments, named, _looked_up(interpreter, call)))


_ITEM = re.compile(r"\[([^]]+)\]")


def _looked_up(interpreter: Evaluator, call: Call) -> Callable[[str, str], Value | None]:
    """What a field such as ``0[NAME]`` takes out of a dictionary; None: it is no such field."""

    def look(head: str, rest: str) -> Value | None:
        item = _ITEM.fullmatch(rest)
        given = call.get(int(head)) if head.isdigit() else call.keywords.get(head)
        content = interpreter.mapping(given) if given is not None and item is not None else None
        if item is None or not isinstance(content, Dictionary):
            return None
        found = dict(content.entries).get(item[1], content.others)
        return interpreter.value(found) if found is not None else None

    return look


def _format_map(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    form = _receiver(interpreter, receiver)
    given = call.get(0) or NOTHING
    content = interpreter.content(given)

    def named(name: str) -> Value | None:
        if given == Named("os.environ"):
            return interpreter.process.environment().get(name)
        found = content.get(name) if isinstance(content, Dictionary) else None
        return interpreter.value(found if found is not None else Opaque(interpreter.taints(given)))

    return Text(texts.formatted_with(form.value, [], named))


def _test(method: str) -> Callable[[Evaluator, Object, Call], Object]:
    """``startswith`` and ``endswith``."""

    def model(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
        one = _receiver(interpreter, receiver)
        given = call.get(0)
        wanted = interpreter.known_keys(given) if given is not None else None
        flat = tuple(w for each in wanted or () for w in (each if isinstance(each, tuple) else (each,)))
        if not flat or not all(isinstance(each, str) for each in flat) or (wanted is not None and len(wanted) > 1):
            return interpreter.boolean(None)
        answers: set[bool | None] = set()
        for each in one.value.texts:
            edge = (each[0] if method == "startswith" else each[-1]) if each else ""
            if not isinstance(edge, str):
                answers.add(None)
                continue
            found = getattr(edge, method)(tuple(str(w) for w in flat))
            short = len(each) > 1 and any(len(str(w)) > len(edge) for w in flat)
            answers.add(None if short and not found else bool(found))
        return interpreter.boolean(answers.pop() if len(answers) == 1 else None)

    return model


def _fact(_interpreter: Evaluator, _receiver: Object, _call: Call) -> Object:
    """A number or a truth value about the text."""
    return NOTHING


_STRING_METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "split": _split,
    "rsplit": _split_from_right,
    "splitlines": _splitlines,
    "partition": _partition(last=False),
    "rpartition": _partition(last=True),
    "strip": _strip(""),
    "lstrip": _strip("l"),
    "rstrip": _strip("r"),
    "removeprefix": _remove(prefix=True),
    "removesuffix": _remove(prefix=False),
    "replace": _replace,
    "lower": _mapped(str.lower),
    "upper": _mapped(str.upper),
    "title": _mapped(str.title),
    "capitalize": _mapped(str.lower),
    "casefold": _mapped(str.casefold),
    "swapcase": _mapped(str.swapcase),
    "expandtabs": _mapped(str.expandtabs),
    "encode": _same("bytes"),
    "decode": _same("str"),
    "tobytes": _same("bytes"),
    "ljust": _padded,
    "rjust": _padded,
    "center": _padded,
    "zfill": _padded,
    "join": _join,
    "format": _format,
    "format_map": _format_map,
    "startswith": _test("startswith"),
    "endswith": _test("endswith"),
    **dict.fromkeys(
        ("count", "find", "rfind", "index", "rindex", "isdigit", "isalpha", "isalnum", "isspace", "isupper"), _fact
    ),
    **dict.fromkeys(("islower", "isnumeric", "isdecimal", "isidentifier", "isascii", "isprintable", "__len__"), _fact),
}


def _quote(interpreter: Evaluator, call: Call) -> Object:
    """``shlex.quote``: known text is quoted as a shell reads it, unknown text stays one word."""
    value = _given(interpreter, call, 0, "s")
    known = value.constants
    if known is not None:
        return Text(Value.any_of((_shell_quoted(one),) for one in known))
    return Text(
        Value.literal("'") + texts.mapped(value, lambda piece: piece.replace("'", "'\"'\"'")) + Value.literal("'")
    )


def _shell_quoted(one: str) -> str:
    return "'" + one.replace("'", "'\"'\"'") + "'"


def _shlex_split(interpreter: Evaluator, call: Call) -> Object:
    value = _given(interpreter, call, 0, "s")
    return interpreter.new(_unquoted(texts.split(value, None, -1), interpreter))


def _unquoted(items: Items, interpreter: Evaluator) -> Items:
    """Words without their quotes, put together again where a quote holds blanks."""
    words: list[Object] = []
    waiting: tuple[str, Value] | None = None
    for item in items.items:
        value = interpreter.value(item)
        first = next((piece for piece in value.texts[0] if isinstance(piece, str)), "")
        if waiting is None and first[:1] in ("'", '"') and first.count(first[0]) == 1 and not _closes(value, first[0]):
            waiting = (first[0], value)
            continue
        if waiting is not None:
            value = waiting[1] + Value.literal(" ") + value
            if not _closes(value, waiting[0]):
                waiting = (waiting[0], value)
                continue
            waiting = None
        words.append(Text(texts.mapped(value, lambda piece: piece.replace("'", "").replace('"', ""))))
    if waiting is not None:
        words.append(Text(waiting[1]))
    return Items(tuple(words), items.rest)


def _closes(value: Value, quote: str) -> bool:
    known = "".join(piece for piece in value.texts[0] if isinstance(piece, str))
    return known.count(quote) % 2 == 0


def _shlex_join(interpreter: Evaluator, call: Call) -> Object:
    """``shlex.join``."""
    items = interpreter.items(call.get(0) or NOTHING)
    quoted = []
    for item in items.items:
        value = interpreter.value(item)
        known = value.constant
        plain = (
            known is not None and known.replace("-", "").replace("_", "").replace("/", "").replace(".", "").isalnum()
        )
        quoted.append(value if plain else Value.literal("'") + value + Value.literal("'"))
    if items.rest is not None:
        quoted.append(interpreter.value(items.rest).opaque())
    return Text(joined(quoted, Value.literal(" ")))


def _string(kind: str) -> Callable[[Evaluator, Call], Object]:
    def model(interpreter: Evaluator, call: Call) -> Object:
        given = call.get(0)
        if given is None:
            return text("")
        found = interpreter.value(given)
        return Text(found, "bytes" if kind == "bytes" else "str")

    return model


def _dedent(interpreter: Evaluator, call: Call) -> Object:
    return Text(_given(interpreter, call, 0))


def _carried(interpreter: Evaluator, call: Call) -> Object:
    """Text that holds the given one, changed here and there."""
    value = _given(interpreter, call, 0)
    return Text(value if value.constants is None else value | UNKNOWN)


def _template(interpreter: Evaluator, call: Call) -> Object:
    return interpreter.new(Instance("template", ((" form", call.get(0) or UNKNOWN_TEXT),)))


def _substituted(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    """``string.Template(form).substitute(…)``."""
    content = interpreter.content(receiver)
    form = content.get(" form") if isinstance(content, Instance) else None
    value = interpreter.value(form if form is not None else NOTHING)
    if Named("os.environ") in call.everything():
        value = variables_put_in(interpreter, value)
    given = interpreter.opaque(call.everything())
    return Text(value + interpreter.value(given) if interpreter.taints(given) else value | UNKNOWN)


def _unbound(model: Callable[[Evaluator, Object, Call], Object]) -> Callable[[Evaluator, Call], Object]:
    """``str.strip(x)``: the first argument is the receiver."""

    def function(interpreter: Evaluator, call: Call) -> Object:
        return model(interpreter, call.get(0) or UNKNOWN_TEXT, call.behind(1))

    return function


FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {
    "shlex.quote": _quote,
    "pipes.quote": _quote,
    "shlex.split": _shlex_split,
    "shlex.join": _shlex_join,
    "subprocess.list2cmdline": _shlex_join,
    "builtins.str": _string("str"),
    "builtins.bytes": _string("bytes"),
    "builtins.bytearray": _string("bytes"),
    "builtins.memoryview": _string("bytes"),
    "os.fsencode": _string("bytes"),
    "os.fsdecode": _string("str"),
    "os.fspath": _string("str"),
    "textwrap.dedent": _dedent,
    "textwrap.indent": _dedent,
    "inspect.cleandoc": _dedent,
    "builtins.repr": _carried,
    "builtins.ascii": _carried,
    "html.escape": _carried,
    "html.unescape": _carried,
    "urllib.parse.quote": _carried,
    "urllib.parse.quote_plus": _carried,
    "urllib.parse.unquote": _carried,
    "string.Template": _template,
    **{f"builtins.str.{name}": _unbound(model) for name, model in _STRING_METHODS.items()},
}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    **{f"{kind}.{name}": model for kind in ("str", "bytes", "?") for name, model in _STRING_METHODS.items()},
    "template.substitute": _substituted,
    "template.safe_substitute": _substituted,
}
