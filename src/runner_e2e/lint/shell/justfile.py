"""The text of a justfile: settings, variables, aliases, and recipes with their parameters, needs and lines.

Source: https://just.systems/man/en/, of the versions 1.x.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Assignment", "Justfile", "Line", "Parameter", "Recipe", "evaluate", "read_justfile"]

_SETTING = re.compile(r"set\s+([\w-]+)\s*(?::=\s*(.*))?$")
_ASSIGNMENT = re.compile(r"(export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)$")
_ALIAS = re.compile(r"alias\s+([\w-]+)\s*:=\s*([\w:-]+)")
_IMPORT = re.compile(r"import\??\s+(['\"])(.+)\1")
_RECIPE = re.compile(r"(@?)([A-Za-z_][\w-]*+)((?:[^:\"'`]|\"[^\"]*\"|'[^']*'|`[^`]*`|:(?==))*?)\s*:(?!=)(.*)$")
_PARAMETER = re.compile(
    r"([+*]?)(\$?)([A-Za-z_][\w-]*)(?:\s*=\s*((?:\([^()]*\)|\"(?:[^\"\\]|\\.)*\"|'[^']*'|`[^`]*`|[\w-]+(?:\([^()]*\))?)))?"
)
_NEED = re.compile(r"\(\s*([\w:-]+)\s*((?:[^()]|\([^()]*\))*)\)|([A-Za-z_][\w:-]*)|(&&)")
_TOKEN = re.compile(
    r"\s*(?:(?P<long>[xf]?(?:'''.*?'''|\"\"\".*?\"\"\"))|(?P<raw>x?'[^']*')|(?P<text>x?\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<command>```.*?```|`[^`]*`)|(?P<name>[A-Za-z_][\w-]*)|(?P<sign>==|!=|=~|!~|&&|\|\||[+/(),{}]))",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "\n": ""}


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A variable: its expression, and whether recipes find it in their environment."""

    expression: str
    exported: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter of a recipe; *many*: it takes all arguments that are left; *default* is an expression."""

    name: str
    many: bool
    exported: bool
    default: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A line of a recipe without its indentation, which stands at *start* of the justfile."""

    text: str
    start: int


@dataclass(kw_only=True, slots=True)
class Recipe:
    """A recipe: what it needs before and after (name, expressions of the arguments), and its lines."""

    parameters: tuple[Parameter, ...]
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]
    quiet: bool
    attributes: frozenset[str]
    lines: list[Line] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class Justfile:
    """A justfile; *settings* are expressions, empty for those that are only switched on."""

    settings: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Assignment] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    imports: list[str] = field(default_factory=list)
    recipes: dict[str, Recipe] = field(default_factory=dict)

    def has(self, setting: str) -> bool:
        """Whether a setting is switched on."""
        return setting in self.settings and self.settings[setting] != "false"


def read_justfile(text: str) -> Justfile:
    """Reads a justfile. What is no part of one is left out."""
    found = Justfile()
    recipe: Recipe | None = None
    attributes: set[str] = set()
    offset = 0
    for line in text.split("\n"):
        start, offset = offset, offset + len(line) + 1
        if line[:1].isspace() or not line:
            if recipe is not None and (line.strip() or recipe.lines):
                recipe.lines.append(Line(text=line, start=start))
            continue
        recipe = None
        plain = line.rstrip()
        if plain.startswith("["):
            attributes.update(re.findall(r"[a-z-]+", plain))
        elif not plain.startswith("#"):
            recipe = _read_line(found, plain, frozenset(attributes))
            attributes.clear()
    for one in found.recipes.values():
        one.lines = _without_indentation(one.lines)
    return found


def _read_line(found: Justfile, line: str, attributes: frozenset[str]) -> Recipe | None:
    if match := _SETTING.match(line):
        found.settings[match[1]] = (match[2] or "").strip()
    elif match := _ALIAS.match(line):
        found.aliases[match[1]] = match[2]
    elif match := _IMPORT.match(line):
        found.imports.append(match[2])
    elif match := _ASSIGNMENT.match(line):
        found.variables[match[2]] = Assignment(expression=match[3], exported=match[1] is not None)
    elif match := _RECIPE.match(line):
        before, _, after = _without_comment(match[4]).partition("&&")
        recipe = found.recipes[match[2]] = Recipe(
            parameters=tuple(_parameters(match[3])),
            before=tuple(_needs(before)),
            after=tuple(_needs(after)),
            quiet=bool(match[1]),
            attributes=attributes,
        )
        return recipe
    return None


def _without_comment(text: str) -> str:
    return re.sub(r"\s#.*$", "", text)


def _parameters(text: str) -> Iterator[Parameter]:
    for match in _PARAMETER.finditer(text):
        yield Parameter(name=match[3], many=bool(match[1]), exported=bool(match[2]), default=match[4])


def _needs(text: str) -> Iterator[tuple[str, str]]:
    for match in _NEED.finditer(text):
        yield match[1] or match[3] or "", match[2] or ""


def _without_indentation(lines: list[Line]) -> list[Line]:
    while lines and not lines[-1].text.strip():
        lines.pop()
    first = next((line.text for line in lines if line.text.strip()), "")
    size = len(first) - len(first.lstrip())
    return [
        Line(text=line.text[size:], start=line.start + size) if line.text[:size].isspace() else line for line in lines
    ]


# --- expressions


@dataclass(kw_only=True, slots=True)
class _Reader:
    """Reads an expression; *command* gives what the program text in backticks prints."""

    tokens: list[tuple[str, str]]
    names: Mapping[str, Value]
    environment: Mapping[str, Value]
    command: Callable[[Value], Value]
    at: int = 0

    def sign(self) -> str:
        """The sign that comes next, empty where it is none."""
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return text if kind == "sign" else ""

    def accept(self, *signs: str) -> str:
        """Takes one of *signs*."""
        found = self.sign()
        if found in signs and found:
            self.at += 1
            return found
        return ""

    def expression(self) -> Value:
        value = self.sum()
        while (sign := self.accept("&&", "||")) != "":
            other = self.sum()
            value = value | other if sign == "||" else join([EMPTY, other]) if value.constant is None else other
        return value

    def sum(self) -> Value:
        if self.accept("/"):
            return Value.literal("/") + self.sum()
        value = self.operand()
        while (sign := self.accept("+", "/")) != "":
            value = value + (Value.literal("/") if sign == "/" else EMPTY) + self.operand()
        return value

    def operand(self) -> Value:
        if self.at >= len(self.tokens):
            return EMPTY
        if self.accept("("):
            value = self.expression()
            self.accept(")")
            return value
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "command":
            return self.command(Value.literal(text.strip("`")))
        if kind == "name":
            return self.named(text)
        return _text(kind, text) if kind != "sign" else EMPTY

    def named(self, name: str) -> Value:
        if name == "if":
            return self.choice()
        if name == "assert" or self.sign() != "(":
            return self.names.get(name, UNKNOWN)
        self.accept("(")
        given: list[Value] = []
        while self.at < len(self.tokens) and not self.accept(")"):
            given.append(self.expression())
            if not self.accept(",") and self.sign() != ")":
                break
        return self.called(name, given)

    def called(self, name: str, given: list[Value]) -> Value:
        """What a function gives: of most, a text made of what they are given."""
        if name in ("env", "env_var", "env_var_or_default") and given:
            found = self.environment.get(given[0].constant or "")
            return found if found is not None else given[1] if len(given) > 1 else UNKNOWN
        if name == "quote" and given:
            return Value.literal("'") + given[0] + Value.literal("'")
        if name in ("sha256", "blake3", "sha256_file", "blake3_file", "path_exists"):
            return UNKNOWN
        if name == "shell" and given:
            return self.command(given[0])
        taints = [taint for value in given for taint in value.taints]
        return Value.of(taints) if taints else UNKNOWN

    def choice(self) -> Value:
        left, sign, right = self.sum(), self.accept("==", "!=", "=~", "!~"), self.sum()
        self.accept("{")
        yes = self.expression()
        self.accept("}")
        self.at += self.tokens[self.at : self.at + 1] == [("name", "else")]
        if self.tokens[self.at : self.at + 1] == [("name", "if")]:
            self.at += 1
            no = self.choice()
        else:
            self.accept("{")
            no = self.expression()
            self.accept("}")
        if left.constant is None or right.constant is None or sign not in ("==", "!="):
            return yes | no
        return yes if (left.constant == right.constant) is (sign == "==") else no


def _text(kind: str, text: str) -> Value:
    begin = len(text) - len(text.lstrip("xf"))
    size = 3 if kind == "long" else 1
    inner = text[begin + size : -size]
    if kind == "long":
        inner = re.sub(r"^\n", "", inner)
    if text[begin] == '"':
        inner = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), inner, flags=re.DOTALL)
    return Value.literal(inner)


def evaluate(
    expression: str, names: Mapping[str, Value], environment: Mapping[str, Value], command: Callable[[Value], Value]
) -> Value:
    """The text that an expression gives; *command* runs a program text, and gives what it prints."""
    return evaluate_all(expression, names, environment, command)[0]


def evaluate_all(
    expressions: str, names: Mapping[str, Value], environment: Mapping[str, Value], command: Callable[[Value], Value]
) -> list[Value]:
    """The texts of expressions that stand one after the other; at least one."""
    tokens: list[tuple[str, str]] = []
    offset = 0
    while (match := _TOKEN.match(expressions, offset)) is not None:
        tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
        offset = match.end()
    reader = _Reader(tokens=tokens, names=names, environment=environment, command=command)
    found = [reader.expression()]
    while reader.at < len(tokens) and len(found) < len(tokens):
        before = reader.at
        found.append(reader.expression())
        if reader.at == before:
            break
    return found
