"""Ruby, read conservatively: ``system``, ``exec``, ``spawn``, backticks, ``%x``, ``IO.popen``, ``Open3``, output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.perl import print_lines
from runner_e2e.lint.languages.process import Launch
from runner_e2e.lint.languages.scanning import CLOSING, Kind, Scanner, Token, closing
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.languages.process import Process

__all__ = ["run"]

_SPACE = re.compile(r"[ \t\r]+|#[^\n]*|^=begin.*?(?:^=end[^\n]*|\Z)|\\\n", re.MULTILINE | re.DOTALL)
_ENVIRONMENT = re.compile(r"ENV(?:\[\s*|\.fetch\(\s*)(['\"])(\w+)\1(?:\s*,[^)\n]*)?\s*[\])]")
_PERCENT = re.compile(r"%([qQxwWi]?)([({\[<|!/])")
_HERE = re.compile(r"<<[~-]?(?:(['\"])(\w+)\1|([A-Z_]\w*))")
_NAME = re.compile(r"[@$]{0,2}[A-Za-z_]\w*[?!]?")
_KINDS: dict[str, Kind] = {
    "q": "raw",
    "Q": "text",
    "": "text",
    "x": "command",
    "w": "words",
    "W": "words",
    "i": "words",
}
_KEYWORDS = frozenset(
    {"if", "unless", "or", "and", "while", "until", "for", "do", "end", "then", "else", "elsif", "return"}
    | {"def", "class", "module", "begin", "rescue", "ensure", "require", "in", "nil", "true", "false"}
)


class _Ruby(Scanner):
    functions_of_processes = frozenset(
        {"system", "exec", "spawn", "popen", "capture2", "capture2e", "capture3", "popen2", "popen2e", "popen3", "sh"}
    )
    facts = frozenset({"length", "size", "hexdigest", "digest", "nil?", "empty?", "hash", "count", "bytesize"})
    carriers = frozenset({"join", "strip", "upcase", "downcase", "format", "sprintf", "split", "to_s", "chomp", "dup"})
    printers = frozenset({"puts", "print", "p", "pp", "warn", "raise", "abort", "printf"})

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        given = join(one.value for one in process.arguments)
        self.variables["ARGV"] = given.weakened(Confidence.MEDIUM) if process.arguments else UNKNOWN
        if process.flags & {"n", "p"}:
            read = process.read_input()
            self.variables["$_"] = read.opaque().weakened(Confidence.MEDIUM) if read.taints else UNKNOWN

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        waiting: list[tuple[int, str, Kind]] = []
        offset, text = 0, self.text
        while offset < len(text):
            if text[offset] == "\n":
                if not found or found[-1].kind != "sign" or found[-1].text in (")", "]", "}"):
                    found.append(Token("end", "\n", offset, offset + 1))
                offset = self._here_documents(offset + 1, waiting, found)
                continue
            if match := _SPACE.match(text, offset):
                offset = match.end()
                continue
            token = self._token(offset)
            if token.kind == "text" and token.text.startswith("<<") and (here := _HERE.match(text, offset)):
                waiting.append((len(found), here[2] or here[3], "raw" if here[1] == "'" else "text"))
            found.append(token)
            offset = max(token.end, offset + 1)
        return found

    def _here_documents(self, offset: int, waiting: list[tuple[int, str, Kind]], found: list[Token]) -> int:
        for index, word, kind in waiting:
            end = re.compile(rf"^[ \t]*{re.escape(word)}[ \t]*$", re.MULTILINE).search(self.text, offset)
            stop = end.start() if end else len(self.text)
            found[index] = Token(kind, self.text[offset:stop], offset, max(stop, offset))
            offset = min(end.end() + 1, len(self.text)) if end else len(self.text)
        waiting.clear()
        return offset

    def _token(self, offset: int) -> Token:
        text = self.text
        character = text[offset]
        if match := _ENVIRONMENT.match(text, offset):
            return Token("environment", match[2], offset, match.end())
        if character in "'\"`":
            end = _end_of(text, offset + 1, character, character)
            kind: Kind = "raw" if character == "'" else "command" if character == "`" else "text"
            return Token(kind, text[offset + 1 : end - 1], offset, end)
        if (match := _PERCENT.match(text, offset)) and not text[offset - 1 : offset].isalnum():
            end = _end_of(text, match.end(), match[2], CLOSING.get(match[2], match[2]))
            return Token(_KINDS[match[1]], text[match.end() : end - 1], offset, end)
        if match := _HERE.match(text, offset):
            return Token("text", match.group(), offset, match.end())
        if match := _NAME.match(text, offset):
            return self._named(match)
        if character == ";":
            return Token("end", character, offset, offset + 1)
        if text.startswith(("=>", "=~", "||", "&&", "<<", "+=", "==", "|="), offset):
            return Token("sign", text[offset : offset + 2], offset, offset + 2)
        return Token("sign", character, offset, offset + 1)

    def _named(self, match: re.Match[str]) -> Token:
        word = match.group()
        calls = self.functions_of_processes | self.facts | self.carriers | self.printers
        is_name = word in _KEYWORDS or word in calls or (word[0].isupper() and word != "ARGV")
        return Token("name" if is_name else "variable", word, match.start(), match.end())

    def interpolated(self, token: Token) -> Value:
        total = EMPTY
        offset = 0
        text = token.text
        while (at := text.find("#{", offset)) >= 0:
            end = _end_of(text, at + 2, "{", "}")
            total = total + self.process.source.value_in(_unescaped(text[offset:at]))
            inner = text[at + 2 : end - 1]
            offset = end
            total = total + self._inside(inner, token)
        return total + self.process.source.value_in(_unescaped(text[offset:]))

    def _inside(self, inner: str, token: Token) -> Value:
        """The value of ``#{inner}``: its words are read as those of the program."""
        if match := _ENVIRONMENT.fullmatch(inner.strip()):
            return self.single(Token("environment", match[2], token.start, token.end))
        if inner.strip() in self.variables:
            return self.variables[inner.strip()]
        if any(re.search(rf"\.{re.escape(fact)}", inner) for fact in self.facts) or "hexdigest" in inner:
            return UNKNOWN
        names = [*_ENVIRONMENT.finditer(inner)]
        found = [self.variable_of_environment(match[2]) for match in names]
        found += [self.variables[name] for name in _NAME.findall(inner) if name in self.variables]
        taints = [taint for value in found for taint in value.taints]
        return Value.of(taints).weakened(Confidence.MEDIUM) if taints else UNKNOWN

    def mentioned(self, tokens: Sequence[Token]) -> Value:
        # ``x.length`` and ``Digest::SHA256.hexdigest(x)``: neither what stands before nor what it is given.
        kept: list[Token] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.text in self.facts and kept and kept[-1].text == ".":
                while kept and kept[-1].text in (".", ")"):
                    kept.pop()
                del kept[-1:]
                if index + 1 < len(tokens) and tokens[index + 1].text == "(":
                    index = closing(tokens, index + 1)
            else:
                kept.append(token)
            index += 1
        return super().mentioned(kept)

    def value(self, tokens: Sequence[Token]) -> Value:
        if any(token.text in self.facts for token in tokens) or any(
            token.text == "." and index + 1 < len(tokens) and tokens[index + 1].kind in ("name", "variable")
            for index, token in enumerate(tokens)
        ):
            return self.mentioned(tokens)
        return super().value(tokens)

    def assignment(self, statement: Sequence[Token]) -> None:
        for index, token in enumerate(statement):
            if token.kind == "sign" and token.text in ("=", "+=", "<<", "|=") and index:
                names = [one.text for one in statement[:index] if one.kind == "variable"]
                right = statement[index + 1 :]
                value = self.mentioned(right) if len(names) > 1 else self.value(right)
                for name in names[:4]:
                    self.assign(name, value, statement)
                return
        if statement[0].text == "def":
            found = [value for name, value in self.variables.items() if value.taints]
            found += [self.variable_of_environment(match[2]) for match in _ENVIRONMENT.finditer(self.text)]
            taints = [taint for value in found for taint in value.taints]
            for one in statement[2:]:
                if one.kind == "variable" and taints:
                    self.assign(one.text, Value.of(taints).weakened(Confidence.LOW), statement)

    def other_effect(self, statement: Sequence[Token], index: int) -> None:
        token = statement[index]
        behind = index >= 2 and statement[index - 1].text == "." and statement[index - 2].text in ("File", "IO")
        if not behind:
            return
        parts = self.arguments(statement, index)
        span = (token.start, statement[-1].end)
        if token.text in ("write", "binwrite") and len(parts) > 1:
            self.write(self.value(parts[1]), self.value(parts[0]), span)
        elif token.text == "open" and parts:
            block = [one.text for one in statement[index:] if one.kind == "variable"]
            for name in block[-2:]:
                self.handles[name] = self.value(parts[0])

    def printed(self, statement: Sequence[Token], index: int) -> None:
        total = EMPTY
        for part in self.arguments(statement, index):
            total = total + self.value(part) + Value.literal("\n")
        owner = statement[index - 2].text if index >= 2 and statement[index - 1].text == "." else ""
        error = owner in ("STDERR", "$stderr") or statement[index].text in ("warn", "raise", "abort")
        self.write(total, self.handles.get(owner), (statement[index].start, statement[-1].end), error=error)

    def command(self, statement: Sequence[Token], index: int) -> None:
        launch = Launch(start=statement[index].start, end=statement[-1].end)
        parts = self.arguments(statement, index)
        options = [part for part in parts if len(part) > 1 and part[1].text == ":" and part[0].kind != "text"]
        parts = [part for part in parts if part not in options and part[0].text not in ("{", "ENV")]
        if parts and parts[0][0].text == "[":
            inner = parts[0]
            parts = self._list(inner)
        given = [word for part in parts for word in self.words(part)]
        self.start(given, launch)

    def _list(self, tokens: Sequence[Token]) -> list[list[Token]]:
        found: list[list[Token]] = [[]]
        for token in tokens[1:-1]:
            if token.text == ",":
                found.append([])
            else:
                found[-1].append(token)
        return [part for part in found if part]


def _end_of(text: str, offset: int, opening: str, closing: str) -> int:
    """Behind the sign that closes a string that began before *offset*."""
    depth = 1
    while offset < len(text):
        character = text[offset]
        if character == "\\":
            offset += 1
        elif character == "#" and closing != "'" and text.startswith("#{", offset) and opening != "{":
            offset = _end_of(text, offset + 2, "{", "}") - 1
        elif character == closing:
            depth -= 1
            if depth == 0:
                return offset + 1
        elif character == opening:
            depth += 1
        offset += 1
    return len(text) + 1


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text, flags=re.DOTALL)


def run(process: Process) -> None:
    """Reads the ruby program of *process*."""
    if not process.in_reach:
        return
    scanner = _Ruby(process)
    scanner.run()
    if "p" in process.flags:
        print_lines(process, scanner.variables["$_"], len(process.source.text))
