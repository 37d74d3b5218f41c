"""Shell patterns on texts with holes: ``${v#p}``, ``${v/p/r}``, ``case``, ``[[ == ]]``, file names.

A hole is encoded as one character that ``*`` matches and nothing else does. So a pattern cuts where the known
text says it does, and a hole that it does not provably remove stays, with its labels.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Text, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Pattern",
    "contains_glob",
    "decode",
    "encode",
    "matches",
    "remove_prefix",
    "remove_suffix",
    "replace_matches",
    "text_matches",
]

_FIRST_HOLE = 0x100000
_HOLES = "\U00100000-\U0010fffd"
_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t\\n\\r\\f\\v",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "cntrl": "\\x00-\\x1f\\x7f",
    "xdigit": "0-9A-Fa-f",
    "print": " -~",
    "graph": "!-~",
    "word": "A-Za-z0-9_",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as pieces of text, each with whether its special characters are quoted."""

    pieces: tuple[tuple[Value, bool], ...]

    def expressions(self) -> tuple[str, ...] | None:
        """Regular expressions, one for each alternative; None when a part of the pattern is not known."""
        found = [""]
        for value, quoted in self.pieces:
            constants = value.constants
            if constants is None or len(constants) * len(found) > 16:
                return None
            found = [
                known + (re.escape(text) if quoted else "\0" + text + "\0") for known in found for text in constants
            ]
        return tuple(_translate(text) for text in found)

    def value(self) -> Value:
        """The pattern as plain text."""
        total = EMPTY
        for value, _ in self.pieces:
            total = total + value
        return total

    @property
    def hides_every_character(self) -> str:
        """``all`` for ``?``, ``letters`` for a class that covers letters, else nothing."""
        if len(self.pieces) != 1 or self.pieces[0][1]:
            return ""
        text = self.pieces[0][0].constant
        if text is None:
            return ""
        if text in ("?", ".", "[!]", "[[:print:]]", "[[:graph:]]"):
            return "all" if text != "." else ""
        if re.fullmatch(r"\[[^!^].*\]", text) and re.search(r"a-z|:alnum:|:alpha:|:lower:", text):
            return "letters"
        return ""


def contains_glob(text: str) -> bool:
    """Whether *text* has a character that makes a file name pattern."""
    return "*" in text or "?" in text or ("[" in text and "]" in text)


@lru_cache(maxsize=4096)
def _translate(text: str) -> str:
    """A regular expression for a pattern; parts between NUL characters are patterns, the rest is escaped."""
    return "".join(_glob(piece) if index % 2 else piece for index, piece in enumerate(text.split("\0")))


def _glob(text: str) -> str:
    out: list[str] = []
    closers: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        following = text[index + 1 : index + 2]
        if char in "?*+@!" and following == "(":
            # !(…) is taken for anything: what it excludes is not followed.
            out.append("(?:" if char != "!" else f"(?:.|[{_HOLES}])*(?:(?:)|")
            closers.append({"?": ")?", "*": ")*", "+": ")+", "@": ")", "!": "){0}"}[char])
            index += 2
            continue
        if char == "|" and closers:
            out.append("|")
        elif char == ")" and closers:
            out.append(closers.pop())
        elif char == "*":
            out.append("(?s:.*)")
        elif char == "?":
            out.append(f"[^{_HOLES}]")
        elif char == "[" and (end := _class_end(text, index)):
            out.append(_bracket(text[index + 1 : end]))
            index = end
        elif char == "\\" and following:
            out.append(re.escape(following))
            index += 1
        else:
            out.append(re.escape(char))
        index += 1
    return "".join([*out, *reversed(closers)])


def _class_end(text: str, start: int) -> int:
    index = start + 1
    if text[index : index + 1] in ("!", "^"):
        index += 1
    if text[index : index + 1] == "]":
        index += 1
    while index < len(text):
        if text.startswith("[:", index):
            close = text.find(":]", index + 2)
            index = close + 2 if close > 0 else index + 1
        elif text[index] == "]":
            return index
        else:
            index += 1
    return 0


def _bracket(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    body = re.sub(
        r"\[:(\w+):\]|([\\\[\]^])",
        lambda match: _CLASSES.get(match[1], "") if match[1] else "\\" + match[2],
        inside[1:] if negated else inside,
    )
    return f"[^{body}{_HOLES}]" if negated else f"[{body}]"


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> re.Pattern[str] | None:
    try:
        return re.compile(expression, re.DOTALL)
    except re.error:
        return None


def encode(text: Text, holes: list[Hole]) -> str:
    """*text* with a character for each hole, which joins *holes*."""
    out: list[str] = []
    for piece in text:
        if isinstance(piece, str):
            out.append(piece)
        else:
            holes.append(piece)
            out.append(chr(_FIRST_HOLE + len(holes) - 1))
    return "".join(out)


def decode(encoded: str, holes: list[Hole]) -> Text:
    """The text that :func:`encode` (and changes since) left."""
    if not holes:
        return (encoded,) if encoded else ()
    return normal(
        holes[ord(piece) - _FIRST_HOLE] if ord(piece[0]) >= _FIRST_HOLE else piece
        for piece in re.split(f"([{_HOLES}])", encoded)
        if piece
    )


def _each(value: Value, pattern: Pattern) -> Iterable[tuple[Text, re.Pattern[str]]]:
    for expression in pattern.expressions() or ():
        compiled = _compiled(expression)
        if compiled is not None:
            for text in value.texts:
                yield text, compiled


def _cut(value: Value, pattern: Pattern, *, longest: bool, suffix: bool) -> Value:
    if pattern.expressions() is None:
        return value | _pieces(value)
    results: list[Value] = []
    for text, compiled in _each(value, pattern):
        holes: list[Hole] = []
        encoded = encode(text, holes)
        kept = _kept(encoded, compiled, longest=longest, suffix=suffix)
        result = Value((decode(kept, holes),))
        if holes and not longest and len(kept) < len(encoded):
            lost = Value((text,)).taints - result.taints
            if lost:  # a shorter match may have ended inside the hole
                result = result | Value.of(lost).weakened(Confidence.LOW)
        results.append(result)
    return join(results) if results else value


def _kept(encoded: str, compiled: re.Pattern[str], *, longest: bool, suffix: bool) -> str:
    size = len(encoded)
    if suffix:
        # The longest suffix starts first.
        order = range(size + 1) if longest else range(size, -1, -1)
        for start in order:
            if compiled.fullmatch(encoded, start):
                return encoded[:start]
        return encoded
    order = range(size, -1, -1) if longest else range(size + 1)
    for end in order:
        if compiled.fullmatch(encoded, 0, end):
            return encoded[end:]
    return encoded


def _pieces(value: Value) -> Value:
    """Some part of *value*."""
    return value.opaque() if value.taints else UNKNOWN


def remove_prefix(value: Value, pattern: Pattern, *, longest: bool) -> Value:
    """``${v#p}`` and ``${v##p}``."""
    return _cut(value, pattern, longest=longest, suffix=False)


def remove_suffix(value: Value, pattern: Pattern, *, longest: bool) -> Value:
    """``${v%p}`` and ``${v%%p}``."""
    return _cut(value, pattern, longest=longest, suffix=True)


def replace_matches(value: Value, pattern: Pattern, replacement: Value, mode: str, *, ampersand: bool) -> Value:
    """``${v/p/r}``; *mode* is ``/``, ``//``, ``/#`` or ``/%``. *ampersand*: ``&`` in it is the matched text."""
    hides = pattern.hides_every_character if mode == "//" else ""
    if hides and value.taints and not ampersand:
        hidden = UNKNOWN if hides == "all" else value.opaque().weakened(Confidence.LOW)
        return hidden | replacement if replacement.taints else hidden
    symbol = _symbol(pattern)
    if symbol and mode == "//":
        value = _without(value, symbol, replacement)
    if pattern.expressions() is None or len(replacement.texts) > 4:
        return value if symbol and mode == "//" else Value.of(value.taints | replacement.taints)
    results: list[Value] = []
    for text, compiled in _each(value, pattern):
        for put in replacement.texts:
            holes: list[Hole] = []
            encoded = encode(text, holes)
            inserted = encode(put, holes)
            results.append(Value((decode(_substituted(encoded, compiled, inserted, mode, ampersand), holes),)))
    return join(results) if results else value


def _symbol(pattern: Pattern) -> str:
    """The symbol of the text that *pattern* is, when it is one known only by its symbol."""
    texts = pattern.value().texts
    if len(texts) != 1 or len(texts[0]) != 1:
        return ""
    hole = texts[0][0]
    return hole.symbol if isinstance(hole, Hole) else ""


def _without(value: Value, symbol: str, replacement: Value) -> Value:
    """*value* with every text of *symbol* replaced: what ``${text//"$id"/***}`` does."""
    results: list[Value] = []
    for text in value.texts:
        total = EMPTY
        for piece in text:
            same = isinstance(piece, Hole) and piece.symbol == symbol
            total = total + (replacement if same else Value(((piece,),)))
        results.append(total)
    return join(results)


def _substituted(encoded: str, compiled: re.Pattern[str], inserted: str, mode: str, ampersand: bool) -> str:
    def put(match: re.Match[str]) -> str:
        return inserted.replace("&", match.group()) if ampersand else inserted

    if mode == "/#":
        match = compiled.match(encoded)
        return put(match) + encoded[match.end() :] if match else encoded
    if mode == "/%":
        for start in range(len(encoded) + 1):
            match = compiled.fullmatch(encoded, start)
            if match:
                return encoded[:start] + put(match)
        return encoded
    if compiled.match("") and not encoded:
        return put(compiled.match(""))  # type: ignore[arg-type]
    out: list[str] = []
    offset = 0
    while match := compiled.search(encoded, offset):
        if match.end() == match.start():
            if match.end() >= len(encoded):
                break
            out.append(encoded[offset : match.end() + 1])
            offset = match.end() + 1
            continue
        out.extend((encoded[offset : match.start()], put(match)))
        offset = match.end()
        if mode == "/":
            break
    return "".join(out) + encoded[offset:]


def text_matches(text: Text, expression: str) -> bool | None:
    """Whether the whole of *text* matches; None when a hole decides."""
    compiled = _compiled(expression)
    if compiled is None:
        return None
    holes: list[Hole] = []
    encoded = encode(text, holes)
    found = compiled.fullmatch(encoded) is not None
    if not holes:
        return found
    if found and not re.search(r"\[\^", expression):
        return True  # only wildcards met the holes: any text does
    # Known text at either end can rule a match out.
    head = text[0] if isinstance(text[0], str) else ""
    tail = text[-1] if isinstance(text[-1], str) else ""
    prefix = re.match(r"(?:[A-Za-z0-9_/=: ,@-]|\\[-.#/ &~+])*", expression)
    literal = re.sub(r"\\(.)", r"\1", prefix.group()) if prefix else ""
    if expression.find("|") < 0 and prefix is not None and not re.match(r"[*+?{]", expression[prefix.end() :]):
        if head and literal and not (head.startswith(literal) or literal.startswith(head)):
            return False
        whole = prefix.end() == len(expression)
        if whole and tail and not literal.endswith(tail) and len(literal) >= len(tail):
            return False
        ending = re.search(r"(?<!\\)((?:[A-Za-z0-9_/=: ,@-]|\\[-.#/ &~+])*)$", expression)
        suffix = re.sub(r"\\(.)", r"\1", ending[1]) if ending else ""
        if tail and suffix and not (tail.endswith(suffix) or suffix.endswith(tail)):
            return False
        if whole and sum(len(piece) for piece in text if isinstance(piece, str)) > len(literal):
            return False
    return None


def matches(value: Value, pattern: Pattern) -> bool | None:
    """Whether *value* matches *pattern*; None when it is not decided."""
    expressions = pattern.expressions()
    if expressions is None:
        return None
    answers = {text_matches(text, expression) for text in value.texts for expression in expressions}
    return answers.pop() if len(answers) == 1 else None
