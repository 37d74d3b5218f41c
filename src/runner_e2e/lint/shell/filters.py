"""Filters: what ``cut``, ``head``, ``tr``, ``sed``, ``grep`` and their like leave of a labelled text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.ansi import decode as decode_escapes
from runner_e2e.lint.shell.command_files import split_line
from runner_e2e.lint.shell.patterns import decode, encode
from runner_e2e.lint.shell.text_builtins import at_most
from runner_e2e.lint.values import UNKNOWN, Confidence, Hole, Taint, Text, Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.shell.state import Field

__all__ = ["PROGRAMMABLE", "counted", "encoded", "filtered", "restored"]

PROGRAMMABLE = frozenset({"sed", "m4", "jq", "yq", "awk", "gawk", "mawk", "nawk", "date", "xmllint", "xmlstarlet"})
"""Filters whose arguments can come out of them: ``sed "s/x/$S/"``."""

_LETTERS = re.compile(r"a-z|A-Z|:alnum:|:alpha:|:lower:|:upper:|:print:|:graph:")


def counted(fields: tuple[Field, ...], content: Value) -> Value:
    """What ``wc`` with one option gives for known text: a number."""
    flags = [one.value.constant for one in fields[1:]]
    text = content.constant
    if text is None or len(flags) != 1:
        return Value(((Hole(frozenset(), "", 20),),))
    counts = {"-c": len(text.encode()), "-m": len(text), "-l": text.count("\n"), "-w": len(text.split())}
    return Value.literal(f"{counts[flags[0]]}\n") if flags[0] in counts else UNKNOWN


def filtered(name: str, fields: tuple[Field, ...], content: Value) -> Value:
    """What *name* with these arguments lets through of *content*."""
    arguments = [one.value.constant or "" for one in fields[1:]]
    model = _MODELS.get(name)
    if model is not None:
        return model(arguments, content)
    return content.opaque()


def _number(arguments: list[str], *options: str) -> int | None:
    for index, text in enumerate(arguments):
        for option in options:
            if text == option and index + 1 < len(arguments) and arguments[index + 1].isdigit():
                return int(arguments[index + 1])
            if text.startswith(option) and text[len(option) :].lstrip("=").isdigit():
                return int(text[len(option) :].lstrip("="))
    return None


def _head(arguments: list[str], content: Value) -> Value:
    size = _number(arguments, "-c", "--bytes=", "--bytes")
    if size is not None:
        return at_most(content, size)
    count = _number(arguments, "-n", "--lines=", "-")
    count = 10 if count is None else count
    return Value.any_of(_first_lines(text, count) for text in content.texts)


def _first_lines(text: Text, count: int) -> Text:
    """The first *count* lines; unknown text may be of many lines, a labelled one is of one."""
    lines: list[str | Hole] = []
    rest = text
    for _ in range(count):
        if not rest:
            break
        line, following = split_line(rest)
        if any(isinstance(piece, Hole) and not piece.taints for piece in line or ()) and line:
            return Value((text,)).opaque().texts[0] if Value((text,)).taints else (Hole(),)
        lines.extend(line or ())
        if following is not None:
            lines.append("\n")
        rest = following or ()
    return normal(lines)


def _tail(arguments: list[str], content: Value) -> Value:
    size = _number(arguments, "-c", "--bytes=", "--bytes")
    if size is not None and not any("+" in text for text in arguments):
        return at_most(content, size).opaque() if size >= 64 else _bounded(content, size)
    return content.opaque()


def _bounded(content: Value, size: int) -> Value:
    """Any *size* characters of *content*."""
    return at_most(content.opaque(), size)


def _cut(arguments: list[str], content: Value) -> Value:
    options = _valued(arguments, "bcdf")
    spec = options.get("c") or options.get("b") or _long(arguments, "characters") or _long(arguments, "bytes")
    if spec:
        size = _positions(spec)
        return _bounded(content, size) if size is not None else content.opaque()
    fields = options.get("f") or _long(arguments, "fields")
    delimiter = options.get("d") or _long(arguments, "delimiter") or "\t"
    if fields is None:
        return content.opaque()
    return _by_lines(content, lambda line: _chosen(line, delimiter, fields))


def _valued(arguments: list[str], letters: str) -> dict[str, str]:
    """Short options with values, joined to the letter or apart."""
    found: dict[str, str] = {}
    for index, text in enumerate(arguments):
        if len(text) > 1 and text[0] == "-" and text[1] in letters:
            found[text[1]] = text[2:] or (arguments[index + 1] if index + 1 < len(arguments) else "")
    return found


def _long(arguments: list[str], name: str) -> str | None:
    return next((text.split("=", 1)[1] for text in arguments if text.startswith(f"--{name}=")), None)


def _by_lines(content: Value, change: Callable[[str], str | None]) -> Value:
    """*content* with each line changed; the line has a character for each hole. None: it is not decided."""
    texts: list[Text] = []
    for text in content.texts:
        holes: list[Hole] = []
        *ended, last = encode(text, holes).split("\n")
        lines = [change(line) for line in (*ended, *([last] if last else []))]
        if any(line is None for line in lines):
            return content.opaque()
        rest = [""] if ended and not last else []  # nothing follows the last line feed
        texts.append(decode("\n".join([*(line or "" for line in lines), *rest]), holes))
    return Value.any_of(texts)


def _chosen(line: str, delimiter: str, spec: str) -> str | None:
    """The fields of *line* that ``cut -f`` takes."""
    pieces = line.split(delimiter)
    if len(pieces) == 1:
        return line
    numbers: set[int] = set()
    for part in spec.split(","):
        first, dash, last = part.partition("-")
        if not (first or "1").isdigit() or not (last or "1").isdigit():
            return None
        begin = int(first or 1)
        numbers.update(range(begin, (int(last) if last else len(pieces)) + 1) if dash else [begin])
    return delimiter.join(piece for number, piece in enumerate(pieces, 1) if number in numbers)


def _positions(spec: str) -> int | None:
    """How many characters a list such as ``1-3,5`` takes, None when it is open."""
    total = 0
    for part in spec.split(","):
        first, dash, last = part.partition("-")
        if not dash and first.isdigit():
            total += 1
        elif last.isdigit():
            total += int(last) - (int(first) if first.isdigit() else 1) + 1
        else:
            return None
    return total


def _tr(arguments: list[str], content: Value) -> Value:
    flags = "".join(text[1:] for text in arguments if text.startswith("-") and len(text) > 1)
    sets = [text for text in arguments if not (text.startswith("-") and len(text) > 1)]
    first = sets[0] if sets else ""
    letters = _LETTERS.search(first) is not None
    complement = "c" in flags or "C" in flags
    if "d" in flags:
        destroys = (not letters) if complement else letters
    else:
        destroys = len(sets) > 1 and (letters != complement) and len(set(sets[1])) <= 2
    if destroys and content.taints:
        return content.opaque().weakened(Confidence.LOW)
    if set(flags) - {"d"} or not sets:
        return content.opaque()
    table = _tr_table(first, None if "d" in flags else sets[-1])
    if table is None:
        return content.opaque()
    # Characters of a hole may change; its labels stay.
    return Value.any_of(
        normal(piece.translate(table) if isinstance(piece, str) else Hole(piece.taints) for piece in text)
        for text in content.texts
    )


def _tr_table(first: str, second: str | None) -> dict[int, str] | None:
    """The translation of ``tr first second`` (None: delete); None when a set is not a simple one."""
    source = _tr_set(first)
    target = _tr_set(second) if second is not None else ""
    if source is None or target is None or (second is not None and not target):
        return None
    return {ord(char): target[min(index, len(target) - 1)] if target else "" for index, char in enumerate(source)}


def _tr_set(text: str) -> str | None:
    names = {"lower": "a-z", "upper": "A-Z", "digit": "0-9", "alpha": "A-Za-z", "alnum": "0-9A-Za-z", "space": " \t\n"}
    text = decode_escapes(re.sub(r"\[:(\w+):\]", lambda name: names.get(name[1], "\0"), text))
    if "\0" in text and "[:" in text:
        return None
    return re.sub(
        r"(.)-(.)", lambda pair: "".join(map(chr, range(ord(pair[1]), ord(pair[2]) + 1))), text, flags=re.DOTALL
    )


def _grep(arguments: list[str], content: Value) -> Value:
    if any(
        re.fullmatch(r"-\w*[cqlL]\w*|--(?:count|quiet|silent|files-with(?:out)?-match(?:es)?)", a) for a in arguments
    ):
        return UNKNOWN
    patterns = [text for text in arguments if text[:1] == "^"]
    if len(patterns) == 1 and patterns[0] in _COMMENTS and any(re.fullmatch(r"-[vhE]+", text) for text in arguments):
        return Value.any_of(_without_comments(text) for text in content.texts)
    return content.opaque()


_COMMENTS = frozenset(
    {"^#", "^\\s*#", "^ *#", "^[[:space:]]*#", "^$", "^\\s*$", "^(#|$)", "^\\s*(#|$)", "^#\\|^$", "^#|^$"}
)
"""Patterns that take comments and empty lines out of a file of variables."""


def _without_comments(text: Text) -> Text:
    holes: list[Hole] = []
    lines = encode(text, holes).split("\n")
    kept = [line for line in lines[:-1] if line.strip() and not line.lstrip().startswith("#")]
    return decode("\n".join([*kept, lines[-1]]), holes)


_SUBSTITUTION = re.compile(
    r"s([|/,#:;@!])(?P<pattern>(?:\\.|(?!\1).)*)\1(?P<put>(?:\\.|(?!\1).)*)\1(?P<flags>[gI0-9]*)"
)


def _sed(arguments: list[str], content: Value) -> Value:
    if re.search(r"n", "".join(text for text in arguments if text[:1] == "-")) and {"$=", "="} & set(arguments):
        return UNKNOWN  # numbers of lines
    scripts = [text for text in arguments if re.match(r"s[^\w\s]", text)]
    extended = any(text in ("-E", "-r", "--regexp-extended") for text in arguments)
    quiet = any(re.fullmatch(r"-[A-Za-z]*n[A-Za-z]*", text) for text in arguments)
    matches = [_SUBSTITUTION.fullmatch(script) for script in scripts]
    if not scripts or quiet or any(match is None for match in matches):
        return content.opaque()
    for match in matches:
        assert match is not None
        content = _substituted(content, match["pattern"], match["put"], match["flags"], extended=extended)
    return content


def _substituted(content: Value, pattern: str, put: str, flags: str, *, extended: bool) -> Value:
    if "g" in flags and not re.search(r"[&\\]", put):
        if pattern in (".", ".*", ".+", r"\w", "[[:print:]]"):
            return UNKNOWN
        if re.fullmatch(r"\[[^^].*\][*+]?", pattern) and _LETTERS.search(pattern):
            return content.opaque().weakened(Confidence.LOW)
    try:
        expression = re.compile(_python_expression(pattern, extended=extended))
        replacement = re.sub(r"(?<!\\)&", r"\\g<0>", put)
        changed = _by_lines(content, lambda line: expression.sub(replacement, line, count=0 if "g" in flags else 1))
    except (re.error, IndexError):
        return content.opaque()
    lost = content.taints - changed.taints
    if lost and re.search(r"(?<!\\)[*+?]", pattern) and re.search(r"\.\*|\.\+", pattern) is None:
        return changed | Value.of(lost).weakened(Confidence.LOW)
    return changed


def _python_expression(pattern: str, *, extended: bool) -> str:
    """A POSIX regular expression in Python's syntax."""
    classes = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "space": r"\s", "upper": "A-Z", "lower": "a-z"}
    pattern = re.sub(r"\[:(\w+):\]", lambda match: classes.get(match[1], match[0]), pattern)
    if extended:
        return pattern
    swapped = {"(": r"\(", ")": r"\)", "{": r"\{", "}": r"\}", "+": r"\+", "?": r"\?", "|": r"\|"}
    out: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            following = pattern[index + 1]
            out.append(following if following in swapped else char + following)
            index += 2
            continue
        if char == "[":
            end = pattern.find("]", index + 2)
            end = len(pattern) - 1 if end < 0 else end
            out.append(pattern[index : end + 1])
            index = end + 1
            continue
        out.append(swapped.get(char, char))
        index += 1
    return "".join(out)


# Numbers of lines, fields and characters, texts of the program, and variables: the counting blocks give them numbers.
_AWK_FACT = r"(?:length(?:\([^()]*\))?|\w+|\"[^\"\\]*\")"
_AWK_COUNTS = r"\w+\s*(?:\+\+|\+=\s*(?:\d+|NF|length(?:\([^()]*\))?))|\+\+\w+"
_COUNTING_AWK = re.compile(
    rf"(?:\s*(?:/[^/]*/\s*|[\w\s<>=!$]+)?\{{\s*(?:{_AWK_COUNTS})\s*;?\s*\}}[\s;]*)*"
    rf"(?:END\s*)?\{{\s*print(?:f\s+\"[^\"]*\"\s*,)?\s+{_AWK_FACT}(?:[\s,+*/-]+{_AWK_FACT})*\s*;?\s*\}}\s*"
)


def _awk(arguments: list[str], content: Value) -> Value:
    program = next((text for text in arguments if "{" in text), "")
    if _COUNTING_AWK.fullmatch(program.strip()):
        return UNKNOWN
    field = re.fullmatch(r"\s*\{\s*print\s*(?:\"([^\"\\]*)\"\s*)?\$(\d+|NF)\s*;?\s*\}\s*", program)
    if field is None:
        return content.opaque()
    separator, before = _valued(arguments, "F").get("F"), field[1] or ""

    def printed(line: str) -> str | None:
        found = _awk_field(line, separator, field[2])
        return None if found is None else before + found

    return _by_lines(content, printed)


def _awk_field(line: str, separator: str | None, number: str) -> str | None:
    if separator is not None and len(separator) > 1:
        return None
    pieces = line.split() if separator in (None, " ") else line.split(separator)
    if number == "0":
        return line
    if number == "NF":
        return pieces[-1] if pieces else ""
    return pieces[int(number) - 1] if int(number) <= len(pieces) else ""


_DECODES = {"-d", "-D", "--decode", "--decompress", "-r", "-revert", "-dc", "-cd"}


def encoded(name: str, fields: tuple[Field, ...], content: Value) -> Value:
    """What an encoder gives: the text in another form, or (``-d``) the text again."""
    arguments = {one.value.constant for one in fields[1:]}
    if name == "openssl" and not arguments & {"enc", "base64"} and not any("-aes" in (a or "") for a in arguments):
        return UNKNOWN
    again = any(hole.taints and all(t.confidence == Confidence.LOW for t in hole.taints) for hole in _holes(content))
    if arguments & _DECODES or name in ("gunzip", "zcat", "uudecode") or (name == "rev" and again):
        return restored(content)
    return content.opaque().weakened(Confidence.LOW)


def restored(content: Value) -> Value:
    """The text that was encoded as *content*."""
    return Value.of(
        Taint(taint.label, max(taint.confidence, Confidence.MEDIUM), taint.trail) for taint in content.taints
    )


def _holes(content: Value) -> list[Hole]:
    return [piece for piece in content.pieces() if isinstance(piece, Hole)]


_MODELS: dict[str, Callable[[list[str], Value], Value]] = {
    "head": _head,
    "tail": _tail,
    "cut": _cut,
    "tr": _tr,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
}
