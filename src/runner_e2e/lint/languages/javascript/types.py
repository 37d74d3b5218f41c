"""TypeScript without its types: blanks stand in their place, so that every other character stays where it is.

Node.js runs such files in the same way ("type stripping"). This is no parser: it takes away what types look like where
programs have them, and leaves the rest to the parser of JavaScript, which tells what it cannot read.
"""

from __future__ import annotations

import re

__all__ = ["without_types"]

_HIDDEN = re.compile(
    r"//[^\n]*|/\*(?:.*?\*/|.*)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL
)
_BRACKET = re.compile(r"[()\[\]{}]")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_LONGEST_LIST = 500
"""Characters of parameters of types."""
_MAX_CHARACTERS = 100_000
_GUARD = re.compile(r"\s+is\s+")
_MEMBER = re.compile(r"\s*(?:static\s+)?[#\w$]+")
_PARAMETER = re.compile(r"[\w$]*")
_INTERFACE = re.compile(r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:declare\s+)?interface\s[^{]{0,500}\{", re.MULTILINE)
_ALIAS = re.compile(r"^[ \t]*(?:export\s+)?(?:declare\s+)?type\s+[\w$]+\s*(?:<[^=\n]*>)?\s*=(?!=)", re.MULTILINE)
_ONLY_TYPES = re.compile(
    r"^[ \t]*(?:import\s+type\b(?!\s+from\b)|export\s+type\s*(?=[{*]))[^;\n{]*(?:\{[^}]{0,2000}\})?[^;\n]*;?",
    re.MULTILINE,
)
_NAMES = re.compile(r"^[ \t]*(?:import|export)\b(?:\s+[\w$]+\s*,)?\s*\{[^}]{0,2000}\}", re.MULTILINE)
_TYPE_NAME = re.compile(r"\btype\s+[\w$]+(?:\s+as\s+[\w$]+)?\s*,?")
_CLASS_LIST = re.compile(r"\bclass\s+[\w$]*\s*<")
_MEMBER_END = re.compile(r"[;\n]")
_DECLARED = re.compile(r"^[ \t]*(?:export\s+)?declare\s[^\n{]*;?$", re.MULTILINE)
_GENERIC = re.compile(r"(?<=[\w$])<|(?<=[=(,:?] )<(?=[A-Z])|(?<=[(,])<(?=[A-Z])")
_CLASS = re.compile(r"\bclass\b(?P<head>[^{;]{0,500})\{")
_MODIFIERS = re.compile(r"(?:(?:private|public|protected|readonly|declare|override|abstract)\s+)+")
_FIELD = re.compile(r"\s*(?:static\s+)?[#\w$]+\s*[?!]?\s*:")
_VARIABLE = re.compile(r"\b(?:const|let|var)\s+(?:[\w$]+\s*!?\s*(?=:)|(?=[{\[]))")
_CAST = re.compile(r"(?<=[\w$)\]}\"'`!])\s+(?:as|satisfies)\s+(?=[\w${(\[\"'])")
_NOT_NULL = re.compile(r"(?<=[\w$)\]])!(?=[\s.,;)\]}:?\[(])(?!\s*=)")
_NAME = re.compile(
    r"(?:(?:keyof|typeof|readonly|unique|infer)\s+)*[\w$]+(?:\s*\.\s*[\w$]+)*|(?:\"[^\"\n]*\"|'[^'\n]*')"
)
_SPACE = re.compile(r"\s*")
_NO_LIST = frozenset({"if", "for", "while", "switch", "with", "return", "await"})
_WORD_BEFORE = re.compile(r"[\w$]+$")


def without_types(text: str) -> str:
    """*text* with blanks in the place of its types, of the same length and lines; a bundle stays as it is."""
    return _Eraser(text).erased() if len(text) <= _MAX_CHARACTERS else text


class _Eraser:
    def __init__(self, text: str) -> None:
        self.out = list(text)
        # Strings and comments hold nothing that counts here, and keep their length.
        self.text = _HIDDEN.sub(lambda found: _hidden(found[0]), text)
        self.closing = _brackets(self.text)

    def erased(self) -> str:
        for pattern in (_ONLY_TYPES, _DECLARED):
            for found in pattern.finditer(self.text):
                self.blank(*found.span())
        for found in _NAMES.finditer(self.text):
            for name in _TYPE_NAME.finditer(self.text, *found.span()):
                self.blank(*name.span())
        for found in _INTERFACE.finditer(self.text):
            self.blank(found.start(), self.matching(found.end() - 1) + 1)
        for found in _ALIAS.finditer(self.text):
            self.blank(found.start(), self.type_end(found.end()))
        self.classes()
        self.generics()
        self.lists()
        for found in _VARIABLE.finditer(self.text):
            end = found.end()
            self.annotation(self.matching(end) + 1 if self.text[end : end + 1] in ("{", "[") else end)
        for found in _CAST.finditer(self.text):
            line = self.text[self.text.rfind("\n", 0, found.start()) + 1 : found.start()].lstrip()
            if not line.startswith(("import ", "export {", "export *")):
                self.blank(found.start(), self.type_end(found.end()))
        for found in _NOT_NULL.finditer(self.text):
            self.blank(*found.span())
        return "".join(self.out)

    def blank(self, start: int, end: int) -> None:
        """Takes ``[start, end)`` away, but for line ends."""
        for index in range(start, min(end, len(self.out))):
            if self.out[index] != "\n":
                self.out[index] = " "
        middle = "".join("\n" if one == "\n" else " " for one in self.text[start:end])
        self.text = self.text[:start] + middle + self.text[end:]

    def matching(self, start: int) -> int:
        """The bracket that closes the one at *start*; the end of the text where none does."""
        if self.text[start] != "<":
            return self.closing.get(start, len(self.text) - 1)
        depth = 0
        for index in range(start, min(start + _LONGEST_LIST, len(self.text))):
            char = self.text[index]
            if char == "<":
                depth += 1
            elif char == ">" and self.text[index - 1] != "=":
                depth -= 1
                if depth == 0:
                    return index
        return start

    def skip(self, index: int) -> int:
        found = _SPACE.match(self.text, index)
        return found.end() if found is not None else index

    def type_end(self, start: int) -> int:
        """The end of the type that begins at *start*."""
        index = end = start
        while True:
            index = self.skip(index)
            while self.text[index : index + 1] in ("|", "&"):
                index = self.skip(index + 1)
            following = self.part_end(index)
            if following is None:
                return end
            end, index = following
            if index > end:  # the type goes on: a function, a guard
                continue
            while self.text[end : end + 1] in ("<", "[") and self.matching(end) > end:
                end = self.matching(end) + 1
            index = self.skip(end)
            if self.text[index : index + 1] not in ("|", "&") or self.text[index : index + 2] in ("||", "&&"):
                return end

    def part_end(self, index: int) -> tuple[int, int] | None:
        """The end of one part of a type at *index*, and where the type goes on, which may be behind that."""
        char = self.text[index : index + 1]
        if char and char in "({[":
            end = self.matching(index) + 1
            arrow = self.skip(end)
            return (end, arrow + 2) if char == "(" and self.text.startswith("=>", arrow) else (end, end)
        found = _NAME.match(self.text, index)
        if found is None:
            return None
        guard = _GUARD.match(self.text, found.end())
        return (found.end(), found.end() if guard is None else guard.end())

    def annotation(self, start: int) -> None:
        """Takes ``: Type`` away, where that stands at *start*."""
        index = self.skip(start)
        if self.text[index : index + 1] in ("?", "!"):
            index = self.skip(index + 1)
        if self.text[index : index + 1] == ":":
            self.blank(start, self.type_end(index + 1))

    def classes(self) -> None:
        """Heads of classes, modifiers and types of fields."""
        for found in _CLASS_LIST.finditer(self.text):
            self.blank(found.end() - 1, self.matching(found.end() - 1) + 1)
        for found in _CLASS.finditer(self.text):
            head = found["head"]
            begin = found.start("head")
            implements = re.search(r"\bimplements\b", head)
            if implements is not None:
                self.blank(begin + implements.start(), found.end("head"))
            angle = self.text.find("<", begin, found.end("head"))
            while angle >= 0:
                self.blank(angle, self.matching(angle) + 1)
                angle = self.text.find("<", angle, found.end("head"))
            self.members(found.end(), self.matching(found.end() - 1))

    def members(self, start: int, end: int) -> None:
        index = start
        while index < end:
            index, modifiers = self.modifiers(index)
            if "abstract" in modifiers:
                ended = _MEMBER_END.search(self.text, index, end)
                self.blank(index, ended.end() if ended is not None else end)
            field = _FIELD.match(self.text, index)
            if field is not None:
                name = _MEMBER.match(self.text, index)
                self.annotation(name.end() if name is not None else index)
            while index < end and self.text[index] not in ";\n":
                index = self.matching(index) if self.text[index] in "({[" else index
                index += 1
            index += 1

    def modifiers(self, start: int) -> tuple[int, str]:
        """Takes away the modifiers at *start*; where what they modify begins, and what they were."""
        index = self.skip(start)
        found = _MODIFIERS.match(self.text, index)
        if found is None:
            return index, ""
        self.blank(*found.span())
        return found.end(), found[0]

    def generics(self) -> None:
        """``new Map<string, string>()``, ``call<T>(…)``, ``<T>(x) => …``."""
        for found in _GENERIC.finditer(self.text):
            end = self.matching(found.start()) + 1
            inner = self.text[found.start() + 1 : end - 1]
            if self.text[end : end + 1] == "(" and re.fullmatch(r"[\w\s$,.|&\[\]{}:;?=<>()-]*", inner):
                self.blank(found.start(), end)

    def lists(self) -> None:
        """Parameters of functions, and what these return."""
        index = self.text.find("(")
        while index >= 0:
            end = self.matching(index)
            before = _WORD_BEFORE.search(self.text[max(0, index - 40) : index].rstrip())
            after = self.skip(end + 1)
            result = self.type_end(after + 1) if self.text[after : after + 1] == ":" else after
            rest = self.skip(result)
            arrow, body = self.text.startswith("=>", rest), self.text[rest : rest + 1] == "{"
            if arrow or (body and before is not None and before[0] not in _NO_LIST):
                self.blank(after, result)
                self.parameters(index + 1, end)
            index = self.text.find("(", index + 1)

    def parameters(self, start: int, end: int) -> None:
        index = start
        while index < end:
            index, _ = self.modifiers(index)
            index += 3 if self.text.startswith("...", index) else 0
            if self.text[index : index + 1] in ("{", "["):
                index = self.matching(index) + 1
            else:
                name = _PARAMETER.match(self.text, index)
                own, index = index, name.end() if name is not None else index
                if name is not None and name[0] == "this":
                    self.blank(own, index)
                    self.annotation(index)
                    after = self.skip(index)
                    self.blank(after, after + (self.text[after] == ","))
                    index = after + 1
                    continue
            self.annotation(index)
            while index < end and self.text[index] != ",":
                index = self.matching(index) if self.text[index] in "({[" else index
                index += 1
            index += 1


def _brackets(text: str) -> dict[int, int]:
    """Where each bracket is closed."""
    found: dict[int, int] = {}
    open_ones: dict[str, list[int]] = {"(": [], "[": [], "{": []}
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in open_ones:
            open_ones[bracket[0]].append(bracket.start())
        elif begun := open_ones[_OPENED_BY[bracket[0]]]:
            found[begun.pop()] = bracket.start()
    return found


def _hidden(found: str) -> str:
    """Text of the same length and lines in which nothing is meant."""
    quote = found[0] if found[0] in "\"'`" else " "
    inner = "".join("\n" if one == "\n" else "x" if quote != " " else " " for one in found[1:-1])
    return f"{quote}{inner}{quote}" if len(found) > 1 else found
