"""Reading PowerShell, the upper half: expressions, commands, statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.powershell.expressions import DASHED, MAX_DEPTH, ExpressionReader
from runner_e2e.lint.languages.powershell.syntax import (
    ArrayOf,
    Assign,
    Block,
    Cast,
    Command,
    Element,
    Exit,
    Expression,
    For,
    ForEach,
    Function,
    Gap,
    If,
    Phase,
    Pipeline,
    Redirection,
    Statement,
    Switch,
    Text,
    Try,
    While,
)
from runner_e2e.lint.languages.powershell.words import SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["parse"]


_ASSIGNMENT = re.compile(r"(?:[-+*/%]|\?\?)?=(?!=)")
_REDIRECTION = re.compile(r"(?P<stream>[1-6*])?(?P<operator>>>?)(?:&(?P<merged>[12]))?")
_PARAMETER = re.compile(r"-(?P<name>[A-Za-z_?][\w?-]*)(?P<colon>:)?(?=[\s;|&(){},'\"$@\[]|\Z|:)")
_LABEL = re.compile(r":\w+\s+(?=foreach|for|while|do|switch)", re.IGNORECASE)
_ENDS = frozenset({"return", "exit", "throw", "break", "continue"})


class Parser(ExpressionReader):
    """Reads one program."""

    # --- statements

    def program(self) -> list[Statement]:
        """The whole text."""
        found: list[Statement] = []
        while True:
            found += self.statements(until="")
            if self.offset >= len(self.text):
                return found
            self.offset += 1  # a closing bracket that nothing opened

    def statements(self, *, until: str) -> list[Statement]:
        """Statements up to *until* (or another closing bracket), which is left."""
        found: list[Statement] = []
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxProblem(self.offset, "nested too deeply to follow")
        while True:
            self.separators()
            if self.offset >= len(self.text) or self.peek() in {"}", ")"}:
                break
            start = self.offset
            try:
                found.append(self.statement())
            except SyntaxProblem as problem:
                if self.depth > MAX_DEPTH // 2 or until == ")":
                    self.depth -= 1
                    raise
                self._skip_line(start)
                found.append(Gap(problem.offset, max(self.offset, problem.offset), problem.reason))
            if self.offset == start:
                found.append(Gap(start, start + 1, "a character that is not expected"))
                self.offset += 1
        self.depth -= 1
        return found

    def _skip_line(self, start: int) -> None:
        """Goes on after a line that cannot be read."""
        end = self.text.find("\n", max(start, self.offset))
        self.offset = len(self.text) if end < 0 else end + 1

    def statement(self) -> Statement:
        """One statement."""
        start = self.offset
        word = self.keyword()
        reader = self._statements.get(word)
        if reader is not None:
            found = reader(self)
            if found is not None:
                return found
            self.offset = start
        if self.peek() == ":" and (
            label := re.compile(r":\w+\s+(?=foreach|for|while|do|switch)", re.IGNORECASE).match(self.text, start)
        ):
            self.offset = label.end()
            return self.statement()
        return self._assignment_or_pipeline()

    def _assignment_or_pipeline(self) -> Statement:
        start = self.offset
        if self.peek() not in {"$", "["} or not self.starts_expression():
            return self.pipeline()
        first = self.expression()
        self.blanks()
        match = _ASSIGNMENT.match(self.text, self.offset)
        if match is None:
            return self.pipeline(first)
        self.offset = match.end()
        self.separators()
        value = self.statement()
        while isinstance(first, Cast):
            first = first.operand
        return Assign(start, self.offset, first, match[0], value)

    def _word(self) -> None:
        match = re.compile(r"\w+").match(self.text, self.offset)
        assert match is not None
        self.offset = match.end()

    def block(self) -> Block:
        """``{ … }``."""
        self.separators()
        start = self.offset
        self.expect("{")
        parameters = self.parameters()
        body = self.statements(until="}")
        self.expect("}")
        return Block(start, self.offset, tuple(body), parameters)

    def parameters(self) -> tuple[tuple[str, Expression | None], ...]:
        """``param( … )`` at the beginning of a block."""
        start = self.offset
        self.separators()
        while (
            match := re.compile(r"\[CmdletBinding[^\]]*\]", re.IGNORECASE).match(self.text, self.offset)
        ) is not None:
            self.offset = match.end()
            self.separators()
        if self.keyword() != "param":
            self.offset = start
            return ()
        self._word()
        self.separators()
        return self._parameter_list()

    def _parameter_list(self) -> tuple[tuple[str, Expression | None], ...]:
        self.expect("(")
        found: list[tuple[str, Expression | None]] = []
        while True:
            self.separators()
            if self.take(")"):
                return tuple(found)
            if self.peek() == "[":
                self._skip_bracket()
            elif self.peek() == ",":
                self.offset += 1
            else:
                variable = self.variable()
                if variable is None:
                    raise SyntaxProblem(self.offset, "a parameter is expected")
                self.separators()
                default: Expression | None = None
                if self.peek() == "=" and self.take("="):
                    self.separators()
                    default = self.expression(commas=False)
                found.append((variable.name, default))

    def _skip_bracket(self) -> None:
        """An attribute or type in square brackets."""
        depth = 0
        for index in range(self.offset, len(self.text)):
            if self.text[index] == "[":
                depth += 1
            elif self.text[index] == "]":
                depth -= 1
                if depth == 0:
                    self.offset = index + 1
                    return
        raise SyntaxProblem(self.offset, "a bracket is not closed")

    def _in_parentheses(self) -> Statement:
        self.separators()
        self.expect("(")
        self.separators()
        found = self.statement()
        self.separators()
        self.expect(")")
        return found

    def _if(self) -> Statement | None:
        start = self.offset
        branches: list[tuple[Statement, Block]] = []
        otherwise: Block | None = None
        while True:
            self._word()
            condition = self._in_parentheses()
            branches.append((condition, self.block()))
            end = self.offset
            self.separators()
            word = self.keyword()
            if word == "elseif":
                continue
            if word == "else":
                self._word()
                otherwise = self.block()
                end = self.offset
            self.offset = end
            return If(start, end, tuple(branches), otherwise)

    def _for_each(self) -> Statement | None:
        start = self.offset
        self._word()
        self.separators()
        if not self.take("("):
            return None
        self.separators()
        variable = self.variable()
        self.separators()
        if variable is None or self.keyword() != "in":
            return None
        self._word()
        self.separators()
        items = self.statement()
        self.separators()
        self.expect(")")
        body = self.block()
        return ForEach(start, self.offset, variable, items, body)

    def _for(self) -> Statement | None:
        start = self.offset
        self._word()
        self.separators()
        self.expect("(")
        parts: list[Statement | None] = []
        for last in (";", ";", ")"):
            self.blanks()
            parts.append(None if self.peek() == last else self.statement())
            self.blanks()
            self.take("\n")
            self.blanks()
            self.expect(last)
        body = self.block()
        return For(start, self.offset, parts[0], parts[1], parts[2], body)

    def _while(self) -> Statement | None:
        start = self.offset
        self._word()
        condition = self._in_parentheses()
        body = self.block()
        return While(start, self.offset, condition, body)

    def _do(self) -> Statement | None:
        start = self.offset
        self._word()
        body = self.block()
        self.separators()
        if self.keyword() not in {"while", "until"}:
            raise SyntaxProblem(self.offset, "`while` or `until` is missing")
        self._word()
        condition = self._in_parentheses()
        return While(start, self.offset, condition, body, first=True)

    def _switch(self) -> Statement | None:
        start = self.offset
        self._word()
        self.separators()
        while DASHED.match(self.text, self.offset):
            self.offset += 1
            self._word()
            self.separators()
        value = self._in_parentheses()
        self.separators()
        self.expect("{")
        cases: list[tuple[Expression | None, Block]] = []
        while True:
            self.separators()
            if self.take("}"):
                return Switch(start, self.offset, value, tuple(cases))
            if self.keyword() == "default":
                self._word()
                cases.append((None, self.block()))
                continue
            pattern: Expression = self.block() if self.peek() == "{" else self.argument()
            cases.append((pattern, self.block()))

    def _function(self) -> Statement | None:
        start = self.offset
        self._word()
        self.blanks()
        match = re.compile(r"[\w:.-]+").match(self.text, self.offset)
        if match is None:
            return None
        self.offset = match.end()
        self.separators()
        given = self._parameter_list() if self.peek() == "(" else ()
        body = self.block()
        if given:
            body = Block(body.start, body.end, body.body, given)
        return Function(start, self.offset, match[0].rsplit(":", 1)[-1].lower(), body)

    def _try(self) -> Statement | None:
        start = self.offset
        self._word()
        body = self.block()
        handlers: list[Block] = []
        last: Block | None = None
        while True:
            end = self.offset
            self.separators()
            word = self.keyword()
            if word == "catch":
                self._word()
                self.separators()
                while self.peek() == "[":
                    self._skip_bracket()
                    self.separators()
                    self.take(",")
                    self.separators()
                handlers.append(self.block())
            elif word == "finally":
                self._word()
                last = self.block()
            else:
                self.offset = end
                return Try(start, end, body, tuple(handlers), last)

    def _exit(self) -> Statement | None:
        start = self.offset
        word = self.keyword()
        self._word()
        self.blanks()
        if self.peek() in {"", "\n", ";", "}", ")", "|"}:
            return Exit(start, self.offset, word, None)
        return Exit(start, self.offset, word, self.statement())

    def _phase(self) -> Statement | None:
        start = self.offset
        word = self.keyword()
        self._word()
        self.separators()
        if self.peek() != "{":
            return None
        body = self.block()
        return Phase(start, self.offset, word, body)

    def _class(self) -> Statement | None:
        raise SyntaxProblem(self.offset, "classes are not followed")

    _statements: Mapping[str, Callable[[Parser], Statement | None]] = {
        "if": _if,
        "foreach": _for_each,
        "for": _for,
        "while": _while,
        "do": _do,
        "switch": _switch,
        "function": _function,
        "filter": _function,
        "try": _try,
        "class": _class,
        **dict.fromkeys(("begin", "process", "end", "clean"), _phase),
        **dict.fromkeys(_ENDS, _exit),
    }

    # --- pipelines and commands

    def pipeline(self, first: Expression | None = None) -> Pipeline:
        """A pipeline, with those chained to it; *first* is its first stage, when that was read already."""
        start = self.offset if first is None else first.start
        redirections: list[Redirection] = []
        stages: list[Command | Expression] = [self._stage() if first is None else first]
        while True:
            self._redirections(redirections)
            if self.peek() != "|" or self.peek(2) == "||":
                break
            self.offset += 1
            self.separators()
            stages.append(self._stage())
        chained: list[Pipeline] = []
        while self.peek(2) in {"&&", "||"}:
            self.offset += 2
            self.separators()
            chained.append(self.pipeline())
            self.blanks()
        if self.peek() == "&" and self.peek(2) != "&&":  # a job in the background
            self.offset += 1
        return Pipeline(start, self.offset, tuple(stages), tuple(chained), tuple(redirections))

    def _redirections(self, found: list[Redirection]) -> None:
        self.blanks()
        while (one := self._redirection()) is not None:
            found.append(one)
            self.blanks()

    def _stage(self) -> Command | Expression:
        self.blanks()
        char = self.peek()
        if char == "&" or (char == "." and self.peek(2)[1:] in {" ", "\t", "{", "$", "'", '"', "("}):
            self.offset += 1
            self.blanks()
            return self.command(char)
        return self.expression() if self.starts_expression() else self.command("")

    def command(self, invocation: str) -> Command:
        """A command: its name, and the words up to the end."""
        start = self.offset
        name = self.argument()
        elements: list[Element] = []
        redirections: list[Redirection] = []
        while True:
            end = self.offset
            self.blanks()
            char = self.peek()
            if char in {"", "\n", ";", "|", "}", ")"} or (char == "&" and self.peek(2) != "&1"):
                return Command(start, end, name, tuple(elements), tuple(redirections), invocation)
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
                continue
            elements.append(self._element())
            if elements[-1].parameter == "%":
                elements[-1] = self._verbatim(elements[-1])
            if self.offset == end:
                raise SyntaxProblem(end, "a character that is not expected")

    def _verbatim(self, mark: Element) -> Element:
        """``--%``: the rest of the line is given as it stands."""
        end = re.compile(r"[^\n|]*").match(self.text, self.offset)
        assert end is not None
        start, self.offset = self.offset, end.end()
        return Element(start, self.offset, Text(start, self.offset, end[0].strip(), bare=True), mark.parameter)

    def _redirection(self) -> Redirection | None:
        match = _REDIRECTION.match(self.text, self.offset)
        if match is None:
            return None
        start, self.offset = self.offset, match.end()
        stream, append = match["stream"] or "1", match["operator"] == ">>"
        if match["merged"]:
            return Redirection(start, self.offset, stream, append, None)
        self.blanks()
        target = self.argument()
        return Redirection(start, self.offset, stream, append, target)

    def _element(self) -> Element:
        start = self.offset
        if self.text.startswith("--%", start) and self.text[start + 3 : start + 4] in {" ", "\t", "\n", ""}:
            self.offset += 3
            return Element(start, self.offset, None, "%")
        match = _PARAMETER.match(self.text, start)
        if match is not None:
            self.offset = match.end()
            if match["colon"]:
                self.blanks()
                given = self.argument()
                return Element(start, self.offset, given, match["name"])
            return Element(start, self.offset, None, match["name"])
        first = self.argument()
        items = [first]
        while True:
            here = self.offset
            self.blanks()
            if not self.take(","):
                self.offset = here
                break
            self.separators()
            items.append(self.argument())
        value = first if len(items) == 1 else ArrayOf(start, self.offset, tuple(items))
        return Element(start, self.offset, value)


def parse(text: str) -> Block:
    """The program *text* as a block; never fails: what cannot be read is a :class:`~.syntax.Gap` in it."""
    parser = Parser(text)
    try:
        parameters = parser.parameters()
        body = tuple(parser.program())
    except (SyntaxProblem, RecursionError) as problem:
        reason = problem.reason if isinstance(problem, SyntaxProblem) else "nested too deeply to follow"
        parameters, body = (), (Gap(0, len(text), reason),)
    return Block(0, len(text), body, parameters)
