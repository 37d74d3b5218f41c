"""The grammar of commands, of bash and of the POSIX shell (dash): a recursive descent over the text.

A shell reads one complete command after the other and runs each before it reads on. So :func:`parse` gives the
commands before a mistake together with the mistake: they run, what follows does not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.braces import expand_braces
from runner_e2e.lint.shell.ir import (
    AndOr,
    ArithmeticCommand,
    ArithmeticFor,
    Assignment,
    Background,
    Case,
    CaseItem,
    Command,
    Coprocess,
    Element,
    For,
    FunctionDefinition,
    Group,
    If,
    Loop,
    Part,
    Pipeline,
    Redirected,
    Redirection,
    Select,
    Sequence,
    ShellSyntaxError,
    Simple,
    Subshell,
    Word,
)
from runner_e2e.lint.shell.tests_parser import TestParser
from runner_e2e.lint.shell.words import MAX_DEPTH, WordParser
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CommandParser", "parse"]

_REDIRECTION = re.compile(
    r"(?P<fd>\d+|\{[A-Za-z_]\w*\})?(?P<op>&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())", re.ASCII
)
_POSIX_REDIRECTION = re.compile(r"(?P<fd>\d+)?(?P<op><<-|<<|<>|<&|>&|>>|>\||<|>)", re.ASCII)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<op>\[|\+?=)")
_FUNCTION = re.compile(r"(?P<name>[^\s()<>|&;'\"$`\\=]+)[ \t]*\([ \t]*\)")
_TERMINATORS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})
_TOO_DEEP = "nested too deeply to follow"
_HERE_DELIMITER = re.compile(r"""(?:\\.|'[^']*'|"[^"]*"|[^\s;&|()<>'"\\])+""", re.DOTALL)


class CommandParser(TestParser):
    """Reads commands."""

    # --- lists

    def sequence(self, *, until: str = "") -> Sequence:
        """Commands up to a terminator (not consumed): the character *until* or a closing reserved word."""
        first = self.offset
        commands: list[Command] = []
        while self.complete_command(commands, until):
            pass
        return Sequence(self.source.start(first), self.source.end(self.offset), tuple(commands))

    def complete_command(self, commands: list[Command], until: str) -> bool:
        """Reads one command and its separator into *commands*; False at the end of the list."""
        self.check_time(len(commands))
        self.newlines()
        if self.offset >= self.limit or (until and self.peek(until)) or self.reserved() in _TERMINATORS:
            return False
        if self.char() in ";)&|":
            if self.peek(";;") or self.peek(";&"):
                return False
            raise self.fail(f"'{self.char()}' is not expected here")
        command = self.and_or()
        self.blanks()
        if self.peek(";;") or self.peek(";&"):
            commands.append(command)
            return False
        if self.peek("&"):
            self.offset += 1
            command = Background(command.start, self.source.end(self.offset), command)
        elif self.peek(";"):
            self.offset += 1
        elif not (self.offset >= self.limit or self.peek("\n") or (until and self.peek(until))):
            raise self.fail(f"'{self.char()}' is not expected here")
        commands.append(command)
        return True

    def and_or(self) -> Command:
        """Pipelines joined by ``&&`` and ``||``."""
        left = self.pipeline()
        while True:
            self.blanks()
            if not (self.peek("&&") or self.peek("||")):
                return left
            operator = self.text[self.offset : self.offset + 2]
            self.offset += 2
            self.newlines()
            right = self.pipeline()
            left = AndOr(left.start, right.end, left, operator, right)

    def pipeline(self) -> Command:
        """Commands joined by ``|``."""
        start = self.offset
        negated = False
        while True:
            self.blanks()
            reserved = self.reserved()
            if reserved == "!" or (self.bash and self.peek("!(")):
                negated = not negated
                self.offset += 1
            elif reserved == "time" and self.bash:
                self.offset += 4
                self.blanks()
                if self.peek("-p") and not self.text[self.offset + 2 : self.offset + 3].strip():
                    self.offset += 2
            else:
                break
        commands = [self.command()]
        merged: list[bool] = []
        self.blanks()
        while self.peek("|") and not self.peek("||"):
            both = self.bash and self.peek("|&")
            merged.append(both)
            self.offset += 2 if both else 1
            self.newlines()
            commands.append(self.command())
            self.blanks()
        if len(commands) == 1 and not negated:
            return commands[0]
        return Pipeline(self.source.start(start), commands[-1].end, tuple(commands), tuple(merged), negated)

    # --- compound commands

    def command(self) -> Command:
        """One simple or compound command with its redirections."""
        self.blanks()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("nested too deeply to follow")
        compound = self._compound()
        self.depth -= 1
        if compound is None:
            return self.simple()
        redirections = self._redirections()
        if redirections and not isinstance(compound, FunctionDefinition):
            return Redirected(compound.start, redirections[-1].end, compound, redirections)
        return compound

    def _compound(self) -> Command | None:
        start = self.offset
        if self.peek("("):
            if self.bash and self.peek("(("):
                close = self._arithmetic_end(start + 2)
                if close is not None:
                    expression = self.arithmetic_word(start + 2, close)
                    self.offset = close + 2
                    return ArithmeticCommand(self.source.start(start), self.source.end(self.offset), expression)
            self.offset += 1
            body = self.sequence(until=")")
            if not self.peek(")"):
                raise self.fail("a subshell is not closed", start)
            self.offset += 1
            return Subshell(self.source.start(start), self.source.end(self.offset), body)
        reserved = self.reserved()
        reader = self._readers().get(reserved)
        if reader is not None:
            self.offset += len(reserved)
            return reader(start)
        if not reserved and (match := _FUNCTION.match(self.text, self.offset, self.limit)):
            self.offset = match.end()
            return self._function(start, match["name"])
        if reserved in _TERMINATORS:
            raise self.fail(f"'{reserved}' is not expected here")
        return None

    def _readers(self) -> dict[str, Callable[[int], Command]]:
        readers: dict[str, Callable[[int], Command]] = {
            "if": self._if,
            "while": self._while,
            "until": self._until,
            "for": self._for,
            "case": self._case,
            "{": self._group,
        }
        if self.bash:
            readers |= {
                "select": self._select,
                "[[": self._conditional,
                "function": self._function_keyword,
                "coproc": self._coprocess,
            }
        return readers

    def _group(self, start: int) -> Command:
        body = self.sequence()
        self.expect("}", of=start)
        return Group(self.source.start(start), self.source.end(self.offset), body)

    def _if(self, start: int) -> Command:
        branches: list[tuple[Sequence, Sequence]] = []
        otherwise: Sequence | None = None
        while True:
            condition = self.sequence()
            self.expect("then", of=start)
            branches.append((condition, self.sequence()))
            self.newlines()
            reserved = self.reserved()
            if reserved == "elif":
                self.offset += 4
                continue
            if reserved == "else":
                self.offset += 4
                otherwise = self.sequence()
            self.expect("fi", of=start)
            return If(self.source.start(start), self.source.end(self.offset), tuple(branches), otherwise)

    def _while(self, start: int, *, until: bool = False) -> Command:
        condition = self.sequence()
        body = self._do(start)
        return Loop(self.source.start(start), self.source.end(self.offset), condition, body, until)

    def _until(self, start: int) -> Command:
        return self._while(start, until=True)

    def _do(self, start: int) -> Sequence:
        self.newlines()
        if self.bash and self.reserved() == "{":
            self.offset += 1
            body = self.sequence()
            self.expect("}", of=start)
            return body
        self.expect("do", of=start)
        body = self.sequence()
        self.expect("done", of=start)
        return body

    def _for(self, start: int) -> Command:
        self.blanks()
        if self.bash and self.peek("(("):
            return self._arithmetic_for(start)
        name, words = self._loop_words(start)
        body = self._do(start)
        return For(self.source.start(start), self.source.end(self.offset), name, words, body)

    def _select(self, start: int) -> Command:
        name, words = self._loop_words(start)
        body = self._do(start)
        return Select(self.source.start(start), self.source.end(self.offset), name, words, body)

    def _loop_words(self, start: int) -> tuple[str, tuple[Word, ...] | None]:
        self.blanks()
        name = self.word()
        if name is None or name.static is None:
            raise self.fail("the variable of a loop is missing", start)
        self.newlines()
        words: tuple[Word, ...] | None = None
        if self.reserved() == "in":
            self.offset += 2
            words = self._words()
        self.blanks()
        if self.peek(";"):
            self.offset += 1
        return name.static, words

    def _words(self) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self.blanks()
            word = self.word()
            if word is None:
                return tuple(words)
            words.extend(expand_braces(word) if self.bash else (word,))

    def _arithmetic_for(self, start: int) -> Command:
        first = self.offset + 2
        close = self._arithmetic_end(first)
        if close is None:
            raise self.fail("'((' is not closed", start)
        cuts = [first]
        depth = 0
        for offset in range(first, close):
            char = self.text[offset]
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char == ";" and depth == 0:
                cuts.append(offset + 1)
        if len(cuts) != 3:
            raise self.fail("'((' of a loop needs three expressions", start)
        ends = [cuts[1] - 1, cuts[2] - 1, close]
        words = [self.arithmetic_word(begin, end) for begin, end in zip(cuts, ends, strict=True)]
        start_at, condition, step = words
        self.offset = close + 2
        self.blanks()
        if self.peek(";"):
            self.offset += 1
        body = self._do(start)
        return ArithmeticFor(self.source.start(start), self.source.end(self.offset), start_at, condition, step, body)

    def _case(self, start: int) -> Command:
        self.blanks()
        word = self.word()
        if word is None:
            raise self.fail("'case' has no word", start)
        self.expect("in", of=start)
        items: list[CaseItem] = []
        while True:
            self.newlines()
            if self.reserved() == "esac":
                self.offset += 4
                return Case(self.source.start(start), self.source.end(self.offset), word, tuple(items))
            if self.offset >= self.limit:
                raise self.fail("'esac' is missing", start)
            items.append(self._case_item())

    def _case_item(self) -> CaseItem:
        if self.peek("("):
            self.offset += 1
        patterns: list[Word] = []
        while True:
            self.blanks()
            pattern = self.word()
            if pattern is None:
                raise self.fail("a pattern is missing")
            patterns.append(pattern)
            self.blanks()
            if not self.peek("|"):
                break
            self.offset += 1
        if not self.peek(")"):
            raise self.fail("')' is missing after a pattern")
        self.offset += 1
        body = self.sequence()
        self.blanks()
        terminator = next((mark for mark in (";;&", ";;", ";&") if self.peek(mark)), "")
        self.offset += len(terminator)
        return CaseItem(tuple(patterns), body, terminator or ";;")

    def _function_keyword(self, start: int) -> Command:
        self.blanks()
        name = self.word()
        if name is None or name.static is None:
            raise self.fail("a function has no name", start)
        self.blanks()
        if match := re.compile(r"\([ \t]*\)").match(self.text, self.offset, self.limit):
            self.offset = match.end()
        return self._function(start, name.static)

    def _function(self, start: int, name: str) -> Command:
        self.newlines()
        body = self.command()
        return FunctionDefinition(self.source.start(start), self.source.end(self.offset), name, body)

    def _coprocess(self, start: int) -> Command:
        self.blanks()
        name = "COPROC"
        match = re.compile(r"([A-Za-z_]\w*)[ \t]+(?=[{(]|(?:while|until|if|for|case)\b)").match(self.text, self.offset)
        if match is not None:
            name = match[1]
            self.offset = match.end()
        body = self.command()
        return Coprocess(self.source.start(start), body.end, name, body)

    # --- simple commands

    def simple(self) -> Command:
        """Assignments, words, redirections."""
        start = self.offset
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        declares = False
        while True:
            self.blanks()
            if self.offset >= self.limit:
                break
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
                continue
            assignment = self._assignment() if declares or not words else None
            if assignment is not None:
                if words:
                    words.append(Word(assignment.start, assignment.end, (), assignment))
                else:
                    assignments.append(assignment)
                continue
            word = self.word()
            if word is None:
                break
            words.extend(expand_braces(word) if self.bash else (word,))
            declares = declares or _declares(words)
        if self.offset == start or not (assignments or words or redirections):
            found = self.char()
            raise self.fail(f"'{found}' is not expected here" if found else "a command is missing")
        if self.peek("("):
            raise self.fail("'(' is not expected here")
        end = self.offset
        while end > start and self.text[end - 1] in " \t\n\r":
            end -= 1
        return Simple(
            self.source.start(start), self.source.end(end), tuple(assignments), tuple(words), tuple(redirections)
        )

    def _assignment(self) -> Assignment | None:
        match = _ASSIGNMENT.match(self.text, self.offset, self.limit)
        if match is None:
            return None
        start = self.offset
        self.offset = match.end()
        append = match["op"] == "+="
        subscript: Word | None = None
        if match["op"] == "[":
            self.offset -= 1
            try:
                subscript = self._subscript()
            except ShellSyntaxError:
                self.offset = start
                return None
            append = self.peek("+=")
            if not (append or self.peek("=")) or not self.bash:
                self.offset = start
                return None
            self.offset += 2 if append else 1
        elif append and not self.bash:
            self.offset = start
            return None
        elements = self._array() if self.bash and self.peek("(") else None
        value = self.word() if elements is None else None
        return Assignment(
            self.source.start(start), self.source.end(self.offset), match["name"], subscript, append, value, elements
        )

    def _array(self) -> tuple[Element, ...]:
        start = self.offset
        self.offset += 1
        elements: list[Element] = []
        while True:
            self.newlines()
            if self.peek(")"):
                self.offset += 1
                return tuple(elements)
            key: Word | None = None
            at = self.offset
            if self.peek("["):
                key = self._subscript()
                if self.peek("="):
                    self.offset += 1
                    value = self.word() or Word(self.source.start(at), self.source.end(self.offset), ())
                    elements.append(Element(key, value))
                    continue
                self.offset = at
            word = self.word()
            if word is None:
                raise self.fail("an array is not closed", start)
            elements.extend(Element(None, one) for one in expand_braces(word))

    # --- redirections

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while True:
            self.blanks()
            redirection = self._redirection()
            if redirection is None:
                return tuple(found)
            found.append(redirection)

    def _redirection(self) -> Redirection | None:
        grammar = _REDIRECTION if self.bash else _POSIX_REDIRECTION
        match = grammar.match(self.text, self.offset, self.limit)
        if match is None:
            return None
        start = self.offset
        self.offset = match.end()
        descriptor: int | str | None = None
        if match["fd"]:
            descriptor = int(match["fd"]) if match["fd"].isdigit() else match["fd"][1:-1]
        operator = match["op"]
        self.blanks()
        target = self._here_document(strip=operator == "<<-") if operator in ("<<", "<<-") else self.word()
        if target is None:
            raise self.fail("a redirection has no target", start)
        return Redirection(self.source.start(start), self.source.end(self.offset), descriptor, operator, target)

    def _here_document(self, *, strip: bool) -> Word:
        match = _HERE_DELIMITER.match(self.text, self.offset, self.limit)
        if match is None:
            raise self.fail("a here-document has no delimiter")
        self.offset = match.end()
        raw = match.group()
        delimiter = re.sub(r"""\\(.)|['"]""", r"\1", raw)
        line_end = self._line_end(self.offset)
        first = self.resume.get(line_end, line_end + 1)
        if first > self.limit:
            return Word(self.source.start(self.offset), self.source.end(self.offset), ())
        tabs = r"\t*" if strip else ""
        found = re.compile(rf"^{tabs}{re.escape(delimiter)}$", re.MULTILINE).search(self.text, first, self.limit)
        last, after = (found.start(), found.end() + 1) if found else (self.limit, self.limit)
        self.resume[line_end] = min(after, self.limit)
        return self._here_body(first, last, strip=strip, expand=raw == delimiter)

    def _line_end(self, offset: int) -> int:
        """Where the line ends on which a here-document is announced; a continued line goes on."""
        while True:
            end = self.text.find("\n", offset, self.limit)
            if end < 0:
                return self.limit
            before = end
            while before > offset and self.text[before - 1] == "\\":
                before -= 1
            if (end - before) % 2 == 0:
                return end
            offset = end + 1

    def _here_body(self, first: int, last: int, *, strip: bool, expand: bool) -> Word:
        reader: WordParser = self.nested(self.source, offset=first, limit=last)
        if strip:
            kept = [
                offset
                for line in re.compile(r"^\t*(.*\n?)", re.MULTILINE).finditer(self.text, first, last)
                for offset in range(line.start(1), line.end(1))
            ]
            reader = self.nested(self.picked(kept))
        parts: list[Part] = []
        if expand:
            reader.quoted_parts(parts, stop="")
        elif reader.limit > reader.offset:
            reader.add(parts, reader.offset, reader.limit, reader.text[reader.offset : reader.limit], quoted=True)
        return Word(self.source.start(first), self.source.end(last), tuple(parts))


def _declares(words: list[Word]) -> bool:
    """Whether the words so far make the shell read ``name=value`` arguments as assignments."""
    for word in words:
        text = word.static
        if text in _DECLARATIONS:
            return True
        if text not in ("command", "builtin"):
            return False
    return False


def parse(source: Source, *, bash: bool, deadline: float | None = None) -> tuple[Sequence, ShellSyntaxError | None]:
    """The commands of *source* that a shell would run, and the mistake that ends them (None: there is none).

    Raises :class:`ExhaustedError` after *deadline*, a ``time.process_time()`` time. A short text is read whole.
    """
    plain = source.starts is None and not source.inserted
    if plain and len(source.text) <= _MAX_REMEMBERED and (found := _remembered(source.text, bash=bash)) is not None:
        program, mistake = found
        return program, None if mistake is None else ShellSyntaxError(*mistake)
    return _read(source, bash=bash, deadline=deadline)


_MAX_REMEMBERED = 20_000


# Steps repeat within a workflow and from file to file: each text is parsed once. A program has offsets of its own text.
@lru_cache(maxsize=256)
def _remembered(text: str, *, bash: bool) -> tuple[Sequence, tuple[int, str] | None] | None:
    """The program of a text in which nothing was put; None where it depends on the place how deep it may nest."""
    program, error = _read(Source(Origin(path="", text=text), text), bash=bash)
    if error is None:
        return program, None
    return None if error.message == _TOO_DEEP else (program, (error.offset, error.message))


def _read(source: Source, *, bash: bool, deadline: float | None = None) -> tuple[Sequence, ShellSyntaxError | None]:
    parser = CommandParser(source, bash=bash)
    parser.deadline = deadline
    commands: list[Command] = []
    error: ShellSyntaxError | None = None
    lines = 0
    try:
        while parser.complete_command(commands, ""):
            parser.blanks()
            if parser.peek("\n"):
                lines = len(commands)
        if parser.offset < parser.limit:
            raise parser.fail(f"'{parser.char()}' is not expected here")
    except ShellSyntaxError as mistake:
        # What stands on the line of the mistake does not run either: a shell reads a whole line.
        del commands[lines:]
        error = mistake
    except RecursionError:
        del commands[lines:]
        error = ShellSyntaxError(parser.offset, _TOO_DEEP)
    return Sequence(0, source.end(len(source.text)), tuple(commands)), error
