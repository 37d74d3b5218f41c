"""Where an expression stands in a script of PowerShell, cmd or Python, and how a variable is read there."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Reading", "read_in_cmd", "read_in_powershell", "read_in_python"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """*text* comes in place of ``[start, end)``; *quoting* says how values were read there before.

    *comment*: the expression stands in a comment. *safe*: the program does the same with a value of letters, digits
    and the like. *preamble* is a line that the script must begin with.
    """

    start: int
    end: int
    text: str
    quoting: Literal["double", "single", "unquoted"] = "double"
    comment: bool = False
    safe: bool = True
    preamble: str = ""


_POWERSHELL = re.compile(
    r"""
    (?P<comment><\#.*?\#>|(?:(?<=[\s;(){}|&])|\A)\#[^\n]*)
    |(?P<double>@"[ \t]*\n.*?\n"@|"(?:`.|""|[^"`])*")
    |(?P<single>@'[ \t]*\n.*?\n'@|'(?:''|[^'])*')
    |`.
    """,
    re.VERBOSE | re.DOTALL,
)
_ARGUMENT_BEFORE = re.compile(r"[\w.\"'/\\:-][ \t]+\Z")
_ARGUMENT_AFTER = re.compile(r"(?=\s|[;)|}]|\Z)")


def _masked(text: str, holes: Sequence[tuple[int, int]]) -> str:
    """The script with letters in the place of expressions, which may hold quotes."""
    pieces = list(text)
    for start, end in holes:
        pieces[start:end] = ["x"] * (end - start)
    return "".join(pieces)


def read_in_powershell(text: str, holes: Sequence[tuple[int, int]], number: int, name: str) -> Reading | None:
    """How PowerShell reads the variable *name* in the place of hole *number*; None where it would do something else."""
    start, end = holes[number]
    masked = _masked(text, holes)
    variable = f"${{env:{name}}}"
    token = next((each for each in _POWERSHELL.finditer(masked) if each.start() <= start and end <= each.end()), None)
    if token is None:
        bare = _ARGUMENT_BEFORE.search(masked, 0, start) and _ARGUMENT_AFTER.match(masked, end)
        return Reading(start=start, end=end, text=f'"{variable}"', quoting="unquoted", safe=False) if bare else None
    if token["comment"]:
        return Reading(start=start, end=end, text="", comment=True)
    body = token[0]
    if token["double"]:
        # What stands in `$( )` is code, with quotes of its own.
        if "$(" in body or masked[start - 1] in "$`":
            return None
        return Reading(start=start, end=end, text=variable)
    if token["single"] and not body.startswith("@"):
        inner = body[1:-1].replace("''", "'")
        written = text[token.start() + 1 : start] + variable + text[end : token.end() - 1]
        others = [hole for hole in holes if token.start() <= hole[0] < token.end()]
        if set(inner) & set('$`"') or len(others) > 1:
            return None
        plain = written.replace("''", "'")
        return Reading(start=token.start(), end=token.end(), text=f'"{plain}"', quoting="single")
    return None


_CMD_COMMENT = re.compile(r"(?im)^[ \t]*@?(?:::|rem\b)[^\n]*")


def read_in_cmd(text: str, holes: Sequence[tuple[int, int]], number: int, name: str) -> Reading | None:
    """``%NAME%``: cmd puts the text in before it reads the line, as the runner does."""
    start, end = holes[number]
    masked = _masked(text, holes)
    if any(found.start() <= start and end <= found.end() for found in _CMD_COMMENT.finditer(masked)):
        return Reading(start=start, end=end, text="", comment=True)
    if masked[start - 1 : start] in {"%", "^"} or masked[end : end + 1] == "%":
        return None
    return Reading(start=start, end=end, text=f"%{name}%", quoting="single")


def read_in_python(text: str, holes: Sequence[tuple[int, int]], number: int, name: str) -> Reading | None:
    """``os.environ["NAME"]`` in the place of a string that is the expression and nothing else."""
    start, end = holes[number]
    masked = _masked(text, holes)
    try:
        tree = ast.parse(masked)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    starts = [0, *(found.end() for found in re.finditer("\n", masked))]
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node.value != masked[start:end] or id(node) in inside:
            continue
        first = starts[node.lineno - 1] + _characters(masked, starts[node.lineno - 1], node.col_offset)
        last_line = starts[(node.end_lineno or node.lineno) - 1]
        last = last_line + _characters(masked, last_line, node.end_col_offset or 0)
        if (first, last) == (start - 1, end + 1) and masked[first] == masked[last - 1] and masked[first] in "'\"":
            preamble = "" if _imports_os(tree) else "import os"
            read = f'os.environ["{name}"]'
            return Reading(start=first, end=last, text=read, quoting="single", safe=False, preamble=preamble)
    return None


def _characters(text: str, start: int, octets: int) -> int:
    """How many characters of the line at *start* are *octets* of UTF-8: syntax trees count those."""
    return len(text[start : start + octets].encode()[:octets].decode(errors="ignore"))


def _imports_os(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Import) and any(each.name == "os" and each.asname is None for each in node.names)
        for node in tree.body
    )
