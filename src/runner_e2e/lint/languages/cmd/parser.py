"""Reading scripts of ``cmd``: commands, blocks, ``if`` and ``for``, with what is redirected.

Text is kept as it stands, by its place: variables are put in when a command runs.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TypeAlias

from runner_e2e.lint.records import dataclass

__all__ = ["Chain", "For", "Group", "If", "Label", "Node", "Pipe", "Redirection", "Simple", "parse", "shifted"]

_MAX_DEPTH = 60
_BLANKS = " \t,;=\u00a0\x0b\x0c"
_WORD = re.compile(r"[^\s,;=&|<>()\"]+")
_REDIRECTION = re.compile(r"(?P<number>\d)?(?P<operator>>>|>|<)(?:&(?P<merged>\d))?")


@dataclass(frozen=True, slots=True)
class Redirection:
    """``>> file`` (its place), or ``2>&1`` (*merged*). *number* is the descriptor."""

    number: int
    operator: str
    start: int
    end: int
    merged: bool = False


@dataclass(slots=True)
class Simple:
    """A command: the stretches of text that are left of it without its redirections."""

    start: int
    end: int
    parts: list[tuple[int, int]] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """``( … )``."""

    start: int
    end: int
    body: list[Node]
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class If:
    """``if``: the place of its condition, what runs when it holds, what else."""

    start: int
    end: int
    condition: tuple[int, int]
    negated: bool
    yes: Node | None
    no: Node | None


@dataclass(slots=True)
class For:
    """``for``: its switch (``f``, ``l`` …), options, variable, the place of what is in brackets, what runs."""

    start: int
    end: int
    switch: str
    options: str
    variable: str
    items: tuple[int, int]
    body: Node | None


@dataclass(slots=True)
class Pipe:
    """Commands, each fed by the one before."""

    start: int
    end: int
    stages: list[Node]


@dataclass(slots=True)
class Chain:
    """``left & right``, ``&&``, ``||``."""

    start: int
    end: int
    operator: str
    left: Node
    right: Node


@dataclass(slots=True)
class Label:
    """``:name``."""

    start: int
    end: int
    name: str


Node: TypeAlias = "Simple | Group | If | For | Pipe | Chain | Label"


class _TooDeep(Exception):  # noqa: N818 - it never leaves the parser
    pass


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.depth = 0
        self.brackets = 0

    def peek(self, count: int = 1) -> str:
        return self.text[self.offset : self.offset + count]

    def blanks(self, *, lines: bool = False) -> None:
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char in _BLANKS or char == "\r" or (lines and char == "\n"):
                self.offset += 1
            elif char == "^" and self.text.startswith(("^\n", "^\r\n"), self.offset):
                self.offset += 2 if self.text[self.offset + 1] == "\n" else 3
            else:
                return

    def block(self) -> list[Node]:
        """Commands up to a closing bracket or the end."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise _TooDeep
        found: list[Node] = []
        while True:
            self.blanks(lines=True)
            if self.offset >= len(self.text):
                break
            if self.peek() == ")":
                if self.brackets:
                    break
                self.offset += 1
                continue
            start = self.offset
            node = self.chain()
            if node is not None:
                found.append(node)
            if self.offset == start:
                self.offset += 1
        self.depth -= 1
        return found

    def chain(self) -> Node | None:
        left = self.pipe()
        while True:
            self.blanks()
            if self.peek() != "&" and self.peek(2) != "||":
                return left
            operator = self.peek(2) if self.peek(2) in {"&&", "||"} else "&"
            self.offset += len(operator)
            right = self.pipe()
            if left is None or right is None:
                left = left if right is None else right
            else:
                left = Chain(left.start, self.offset, operator, left, right)

    def pipe(self) -> Node | None:
        first = self.command()
        if first is None:
            return None
        stages = [first]
        self.blanks()
        while self.peek() == "|" and self.peek(2) != "||":
            self.offset += 1
            following = self.command()
            if following is None:
                break
            stages.append(following)
            self.blanks()
        return first if len(stages) == 1 else Pipe(first.start, self.offset, stages)

    def command(self) -> Node | None:
        while True:
            self.blanks()
            if self.peek() != "@":
                break
            self.offset += 1
        start = self.offset
        if self.peek() == "(":
            return self._group()
        if self.peek() == ":":
            end = self._line_end()
            name = re.match(r":+\s*([^\s:+,;=&|<>]*)", self.text[start:end])
            self.offset = end
            return (
                Label(start, end, name[1].lower())
                if name is not None and not self.text.startswith("::", start)
                else None
            )
        match = _WORD.match(self.text, start)
        word = match[0].lower() if match is not None else ""
        if word == "rem":
            self.offset = self._line_end()
            return None
        if word in {"if", "for"} and match is not None:
            self.depth += 1
            if self.depth > _MAX_DEPTH:
                raise _TooDeep
            self.offset = match.end()
            found = self._if(start) if word == "if" else self._for(start)
            self.depth -= 1
            if found is not None:
                return found
            self.offset = start
        return self._simple()

    def _line_end(self) -> int:
        end = self.text.find("\n", self.offset)
        return len(self.text) if end < 0 else end

    def _group(self) -> Node:
        start = self.offset
        self.offset += 1
        self.brackets += 1
        body = self.block()
        self.brackets -= 1
        if self.peek() == ")":
            self.offset += 1
        group = Group(start, self.offset, body)
        while True:
            self.blanks()
            redirection = self._redirection()
            if redirection is None:
                group.end = self.offset
                return group
            group.redirections.append(redirection)

    def _if(self, start: int) -> Node | None:
        negated = False
        while True:
            self.blanks()
            match = _WORD.match(self.text, self.offset)
            word = match[0].lower() if match is not None else ""
            if word not in {"/i", "not"} or match is None:
                break
            negated = negated != (word == "not")
            self.offset = match.end()
        begin = self.offset
        if word in {"exist", "defined", "errorlevel", "cmdextversion"} and match is not None:
            self.offset = match.end()
            self.blanks()
            self._operand()
        else:
            self._operand()
            self.blanks_only()
            if self.peek(2) == "==":
                self.offset += 2
            else:
                operator = _WORD.match(self.text, self.offset)
                if operator is None:
                    return None
                self.offset = operator.end()
            self.blanks_only()
            self._operand()
        condition = (begin, self.offset)
        yes = self.chain() if self.peek() != "(" else self.command()
        self.blanks()
        yes_end = self.offset
        no: Node | None = None
        match = _WORD.match(self.text, self.offset)
        if match is not None and match[0].lower() == "else":
            self.offset = match.end()
            no = self.command()
        else:
            self.offset = yes_end
        return If(start, self.offset, condition, negated, yes, no)

    def blanks_only(self) -> None:
        while self.peek() in {" ", "\t"}:
            self.offset += 1

    def _operand(self) -> None:
        """Skips one operand of a comparison."""
        quoted = False
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char == '"':
                quoted = not quoted
            elif char == "\n" or (not quoted and (char in " \t&|()" or self.text.startswith("==", self.offset))):
                return
            self.offset += 2 if char == "^" and not quoted else 1

    def _for(self, start: int) -> Node | None:
        switch = options = ""
        self.blanks()
        match = re.compile(r"/([flrdFLRD])\s*").match(self.text, self.offset)
        if match is not None:
            switch = match[1].lower()
            self.offset = match.end()
            given = re.compile(r"(\"[^\"\n]*\"|[^\s%(]+)\s*").match(self.text, self.offset)
            if given is not None:
                options = given[1].strip('"')
                self.offset = given.end()
        variable = re.compile(r"%{1,2}([A-Za-z#?])\s+in\s*\(", re.IGNORECASE).match(self.text, self.offset)
        if variable is None:
            return None
        self.offset = variable.end()
        begin = self.offset
        self._to_bracket()
        items = (begin, self.offset)
        self.offset += 1
        self.blanks()
        match = _WORD.match(self.text, self.offset)
        if match is None or match[0].lower() != "do":
            return None
        self.offset = match.end()
        body = self.chain() if not self._bracket_next() else self.command()
        return For(start, self.offset, switch, options, variable[1], items, body)

    def _bracket_next(self) -> bool:
        self.blanks()
        return self.peek() == "("

    def _to_bracket(self) -> None:
        quoted = ""
        depth = 0
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if quoted:
                quoted = "" if char == quoted else quoted
            elif char in {'"', "'"}:
                quoted = char
            elif char == "(":
                depth += 1
            elif char == ")":
                if not depth:
                    return
                depth -= 1
            self.offset += 1

    def _redirection(self) -> Redirection | None:
        match = _REDIRECTION.match(self.text, self.offset)
        if match is None:
            return None
        operator = match["operator"]
        number = int(match["number"]) if match["number"] else (0 if operator == "<" else 1)
        self.offset = match.end()
        if match["merged"]:
            return Redirection(number, operator, match.start(), match.end(), merged=True)
        self.blanks()
        begin = self.offset
        quoted = False
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char == '"':
                quoted = not quoted
            elif char == "\n" or (not quoted and char in " \t&|<>\r") or (char == ")" and self.brackets and not quoted):
                break
            self.offset += 1
        return Redirection(number, operator, begin, self.offset)

    def _simple(self) -> Simple | None:
        start = begin = self.offset
        found = Simple(start, start)
        quoted = False
        while self.offset < len(self.text):
            char = self.text[self.offset]
            if char == "\n":
                break
            if char == '"':
                quoted = not quoted
            elif not quoted and char == "^":
                self.offset += 2
                continue
            elif not quoted and (char in "&|" or (char == ")" and self.brackets)):
                break
            elif not quoted and (char in "<>" or self._numbered()):
                found.parts.append((begin, self.offset))
                redirection = self._redirection()
                if redirection is not None:
                    found.redirections.append(redirection)
                begin = self.offset
                continue
            self.offset += 1
        self.offset = min(self.offset, len(self.text))
        found.parts.append((begin, self.offset))
        found.end = self.offset
        return found if any(self.text[a:b].strip() for a, b in found.parts) else None

    def _numbered(self) -> bool:
        """Whether a digit before ``>`` or ``<`` stands here."""
        if self.text[self.offset] not in "0123456789":
            return False
        before = self.text[self.offset - 1 : self.offset]
        return self.text[self.offset + 1 : self.offset + 2] in {"<", ">"} and before in {" ", "\t"}


def parse(text: str) -> tuple[list[Node], bool]:
    """The commands of *text*, and whether all of it could be read."""
    parser = _Parser(text)
    try:
        return parser.block(), True
    except (_TooDeep, RecursionError):
        return [], False


def shifted(nodes: list[Node], by: int) -> list[Node]:
    """Commands that were read from a stretch of the text, with their places in the whole."""

    def moved(pair: tuple[int, int]) -> tuple[int, int]:
        return pair[0] + by, pair[1] + by

    found: list[Node] = []
    for node in nodes:
        node.start, node.end = moved((node.start, node.end))
        if isinstance(node, Simple):
            node.parts = [moved(part) for part in node.parts]
        if isinstance(node, Simple | Group):
            node.redirections = [
                Redirection(one.number, one.operator, *moved((one.start, one.end)), one.merged)
                for one in node.redirections
            ]
        if isinstance(node, Group):
            node.body = shifted(node.body, by)
        elif isinstance(node, Pipe):
            node.stages = shifted(node.stages, by)
        elif isinstance(node, Chain):
            node.left, node.right = shifted([node.left], by)[0], shifted([node.right], by)[0]
        elif isinstance(node, If):
            node.condition = moved(node.condition)
            node.yes = shifted([node.yes], by)[0] if node.yes is not None else None
            node.no = shifted([node.no], by)[0] if node.no is not None else None
        elif isinstance(node, For):
            node.items = moved(node.items)
            node.body = shifted([node.body], by)[0] if node.body is not None else None
        found.append(node)
    return found
