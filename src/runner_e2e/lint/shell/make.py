"""``make``: variables of the environment are make's too, and ``$(NAME)`` in a recipe stands in an argument vector."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.shell import shells
from runner_e2e.lint.shell.filesystem import absolute_path, path_keys, read_file, write_channel
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.state import Field
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["run"]

_ASSIGNMENT = re.compile(r"(?:export\s+|override\s+)?([\w.-]+)\s*([:?+!]{0,2})=\s*(.*)")
_REFERENCE = re.compile(r"\$(?:\$|\(([\w.-]+)\)|\{([\w.-]+)\}|(\w)|\((?:shell|strip|or|if|value)\s+([^)]*)\))")
_TELLS = re.compile(r"\$[({](info|warning|error)\s+(.*)[)}]\s*$")
_INCLUDE = re.compile(r"(?:-|s)?include\s+(.+)$")
_RULE = re.compile(r"([^\s:=][^:=]*?)\s*::?(?!=)\s*([^=]*)$")
_MAX_DEPTH = 6


def run(machine: Machine, call: Invocation) -> None:
    """Follows the recipes of the Makefile that is used, when its text is known."""
    directory, name, variables, flags = "", "", dict[str, Value](), set[str]()
    arguments = list(call.fields[1:])
    goals: list[str] = []
    while arguments:
        one = arguments.pop(0)
        text = one.value.constant
        first = one.value.texts[0][0] if one.value.texts[0] else ""
        if text in ("-C", "--directory", "-f", "--file") and arguments:
            value = arguments.pop(0).value.constant or ""
            directory, name = (value + "/", name) if "C" in text or "d" in text else (directory, value)
        elif isinstance(first, str) and (match := re.match(r"(\w+)[:?]?=", first)):
            rest = Value(((first[match.end() :], *one.value.texts[0][1:]),))
            variables[match[1]] = rest
        elif text is not None and not text.startswith("-"):
            goals.append(text)
        elif text is not None:
            flags |= {text} if text.startswith("--") else set(text[1:])
    before = call.state.directory
    call.state.directory = join(Value((key,)) for key in path_keys(Value.literal(directory or "."), call.state))
    text = _makefile(machine, call, name)
    if text is not None:
        _Makefile(machine, call, variables, frozenset(flags)).follow(text, goals)
    call.state.directory = before


def _makefile(machine: Machine, call: Invocation, name: str) -> str | None:
    for candidate in [name] if name else ["GNUmakefile", "makefile", "Makefile"]:
        content = read_file(machine, call.state, Value.literal(candidate), call.environment).constant
        if content:
            return content
        path = absolute_path(candidate, call.state)
        found = machine.files.find_text(path) if machine.files.find_text is not None else None
        if found is not None:
            return found
    return None


class _Makefile:
    """Variables and recipes of one Makefile."""

    def __init__(
        self, machine: Machine, call: Invocation, given: dict[str, Value], flags: frozenset[str] = frozenset()
    ) -> None:
        self.machine = machine
        self.call = call
        self.given = given
        self.variables: dict[str, Value] = {**call.environment, **given}
        self.fixed = {*given, *(call.environment if flags & {"e", "--environment-overrides"} else ())}
        self.quiet = bool(flags & {"s", "--silent", "--quiet"})
        self.shows_only = bool(flags & {"n", "--just-print", "--dry-run", "--recon"})

    def follow(self, text: str, goals: list[str]) -> None:
        """Runs the recipes of *goals* and of what they need."""
        recipes: dict[str, list[str]] = {}
        needs: dict[str, list[str]] = {}
        self._read(text, recipes, needs, 0)
        self.quiet = self.quiet or (".SILENT" in needs and not needs[".SILENT"])
        ordinary = [target for target in recipes if not target.startswith(".")]
        done: set[str] = set()
        for goal in goals or ordinary[:1]:
            self._make(goal, recipes, needs, done)

    def _read(self, text: str, recipes: dict[str, list[str]], needs: dict[str, list[str]], depth: int) -> None:
        """Reads variables and rules, those of included files too."""
        current: list[str] = []
        for line in text.replace("\\\n", " ").split("\n"):
            if line.startswith("\t"):
                for target in current:
                    recipes[target].append(line[1:])
                continue
            plain = re.sub(r"(?<!\\)#.*", "", line).rstrip()
            if match := _TELLS.match(plain):
                self._print(self._expanded(match[2], 0), 1 if match[1] == "info" else 2)
            elif match := _INCLUDE.match(plain):
                for path in (self._expanded(match[1], 0).constant or "").split():
                    included = _makefile(self.machine, self.call, path)
                    if included is not None and depth < _MAX_DEPTH:
                        self._read(included, recipes, needs, depth + 1)
            elif match := _ASSIGNMENT.match(plain):
                self._assign(match[1], match[2], match[3])
            elif match := _RULE.match(plain):
                current = match[1].split()
                for target in current:
                    recipes.setdefault(target, [])
                    needs.setdefault(target, []).extend(match[2].split(";")[0].split())
                    if ";" in match[2]:
                        recipes[target].append(match[2].split(";", 1)[1])

    def _print(self, text: Value, number: int) -> None:
        write_channel(self.machine, self.call.state, number, text + Value.literal("\n"), self.call.span)

    def _make(self, goal: str, recipes: dict[str, list[str]], needs: dict[str, list[str]], done: set[str]) -> None:
        if goal in done or goal not in recipes:
            return
        done.add(goal)
        for needed in needs.get(goal, []):
            self._make(needed, recipes, needs, done)
        for line in recipes[goal]:
            self._run(line)

    def _assign(self, name: str, operator: str, text: str) -> None:
        if name in self.fixed or (operator == "?" and name in self.variables):
            return
        value = self._expanded(text, 0)
        if "+" in operator and name in self.variables:
            value = self.variables[name] + Value.literal(" ") + value
        self.variables[name] = value

    def _expanded(self, text: str, depth: int) -> Value:
        total = EMPTY
        offset = 0
        for match in _REFERENCE.finditer(text):
            total = total + Value.literal(text[offset : match.start()])
            offset = match.end()
            name = match[1] or match[2] or match[3]
            if match.group() == "$$":
                total = total + Value.literal("$")
            elif name is not None:
                total = total + self.variables.get(name, EMPTY)
            elif depth < _MAX_DEPTH:
                inner = self._expanded(match[4] or "", depth + 1)
                total = total + (inner.opaque() if inner.taints else UNKNOWN)
        return total + Value.literal(text[offset:])

    def _run(self, line: str) -> None:
        plain = line.lstrip("@-+ \t")
        marks = line[: len(line) - len(plain)]
        program = self._expanded(plain, 0)
        start, end = self.call.span
        if self.shows_only or not (self.quiet or "@" in marks):
            self._print(program, 1)
        if self.shows_only and "+" not in marks and "$(MAKE)" not in plain:
            return
        # make starts the recipe as ``sh -c LINE``, or its words directly: either way they are arguments.
        self.machine.leak(Field(program, "one", start, end), self.call, command="make", advice="environment")
        call = self.call.running(self.call.fields[:1], {**self.call.environment, **self.given})
        shells.run_program(self.machine, program, call, ShellStart(dialect="sh", span=self.call.span))
