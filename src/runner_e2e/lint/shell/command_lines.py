"""Command lines of programs, read by the letters and names of their options."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell.filesystem import resolve
from runner_e2e.lint.values import EMPTY, Value, join, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.machine import Invocation
    from runner_e2e.lint.shell.state import Field

__all__ = ["CommandLine", "Grammar", "Option", "begin_of", "read_line", "text_of", "without_begin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """The options of a program: *letters* and *names* take a value, which may stand apart.

    The value of a letter in *inline* never stands apart. *folders* change the folder of the operands behind them.
    *undashed*: the first word may be letters without a dash, as in ``tar xzf``.
    """

    letters: str = ""
    names: frozenset[str] = frozenset()
    inline: str = ""
    folders: frozenset[str] = frozenset()
    undashed: bool = False


class Option(NamedTuple):
    """An option: a letter or a long name, its value (:data:`EMPTY` for none), and where that stands."""

    name: str
    value: Value = EMPTY
    start: int = 0
    end: int = 0


@dataclass(kw_only=True, slots=True)
class CommandLine:
    """What was read: the options, and each operand with its folder."""

    options: list[Option] = field(default_factory=list)
    operands: list[tuple[Field, Value]] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Whether any of these options is given."""
        return any(one.name in names for one in self.options)

    def values(self, *names: str) -> list[Value]:
        """The values of these options, in their order."""
        return [one.value for one in self.options if one.name in names]

    def last(self, *names: str) -> Value | None:
        """The value that counts of an option that may be repeated."""
        found = self.values(*names)
        return found[-1] if found else None


def read_line(call: Invocation, grammar: Grammar) -> CommandLine:
    """Reads the arguments of *call*."""
    line = CommandLine()
    here = call.state.directory
    rest = list(call.fields[1:])
    waiting = _bundle(line, rest, grammar) if grammar.undashed else []
    while rest:
        one = rest.pop(0)
        begins = begin_of(one.value)
        if waiting:
            found = [Option(waiting.pop(0), one.value, one.start, one.end)]
        elif one.value.constant == "--":
            line.operands += [(other, here) for other in rest]
            break
        elif begins.startswith("--"):
            found = [_long(one, begins, grammar, rest)]
        elif begins.startswith("-") and one.value.constant != "-":
            found = list(_letters(one, begins, grammar, rest))
        else:
            line.operands.append((one, here))
            continue
        line.options += found
        for option in found:
            if option.name in grammar.folders:
                here = join(Value((resolve(text, here),)) for text in option.value.texts)
    return line


def _bundle(line: CommandLine, rest: list[Field], grammar: Grammar) -> list[str]:
    """Takes the letters of a first word without a dash; those that wait for their values, in order."""
    first = text_of(rest[0]) if rest else ""
    if not first.isalpha():
        return []
    rest.pop(0)
    line.options += [Option(letter) for letter in first if letter not in grammar.letters]
    return [letter for letter in first if letter in grammar.letters]


def _long(one: Field, begins: str, grammar: Grammar, rest: list[Field]) -> Option:
    name, equals, _ = begins[2:].partition("=")
    if equals:
        return Option(name, without_begin(one.value, len(name) + 3), one.start, one.end)
    return _apart(name, rest) if name in grammar.names and rest else Option(name)


def _letters(one: Field, begins: str, grammar: Grammar, rest: list[Field]) -> Iterator[Option]:
    for at, letter in enumerate(begins[1:], 1):
        if letter in grammar.letters or letter in grammar.inline:
            joined = without_begin(one.value, at + 1)
            apart = joined == EMPTY and bool(rest) and letter not in grammar.inline
            yield _apart(letter, rest) if apart else Option(letter, joined, one.start, one.end)
            return
        yield Option(letter)


def _apart(name: str, rest: list[Field]) -> Option:
    """An option whose value is the next argument."""
    following = rest.pop(0)
    return Option(name, following.value, following.start, following.end)


def text_of(one: Field) -> str:
    """The known text of a single argument, empty for any other."""
    return (one.value.constant or "") if one.kind == "one" else ""


def begin_of(value: Value) -> str:
    """The known text that the first alternative begins with."""
    first = value.texts[0][0] if value.texts[0] else ""
    return first if isinstance(first, str) else ""


def without_begin(value: Value, count: int) -> Value:
    """*value* without its first *count* characters, which are known."""
    return Value.any_of(
        normal((text[0][count:], *text[1:])) if text and isinstance(text[0], str) else text for text in value.texts
    )
