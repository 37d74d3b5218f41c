"""Perl, read conservatively: ``system``, ``exec``, backticks, ``qx``, pipes, ``print`` and the variables in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.process import Argument, Launch
from runner_e2e.lint.languages.scanning import CLOSING, Kind, Scanner, Token
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.lint.languages.process import Process

__all__ = ["print_lines", "run"]

_SPACE = re.compile(r"[ \t\r]+|#[^\n]*|^=[a-z]\w*.*?(?:^=cut[^\n]*|\Z)", re.MULTILINE | re.DOTALL)
_ENVIRONMENT = re.compile(r"\$ENV\{\s*(?:\"(\w+)\"|'(\w+)'|(\w+))\s*\}")
_VARIABLE = re.compile(r"[$@%](?:\{\^?(\w+)\}|(\w+|[!@&]))|[$@]#?\{?\$(\w+)\}?")
_QUOTED = re.compile(r"(qq|qx|qw|q|m|qr|s|tr|y)\s*([^\w\s,;=)])")
_HERE = re.compile(r"<<(~?)(?:\"(\w+)\"|'(\w+)'|([A-Z_]\w*))")
_NAME = re.compile(r"[A-Za-z_][\w:]*")
_INSIDE = re.compile(r"\$ENV\{\s*['\"]?(\w+)['\"]?\s*\}|[$@]\{?(\w+)\}?(?:(?:->)?(?:\[[^\]]*\]|\{[^}]*\}))*")
_KINDS: dict[str, Kind] = {"qq": "text", "qx": "command", "qw": "words", "q": "raw"}
_MODE = re.compile(r"\s*(\+?[<>]{1,2}|\|-|-\|)?(?::\S+)?\s*")


class _Perl(Scanner):
    functions_of_processes = frozenset({"system", "exec", "run", "capture", "systemx", "capturex", "open3", "open2"})
    digests = ("md5_hex", "sha1_hex", "sha224_hex", "sha256_hex", "sha384_hex", "sha512_hex")
    facts = frozenset({"length", "defined", "exists", "scalar", "ord", *digests, "hmac_sha256_hex", "hmac_sha512_hex"})
    carriers = frozenset(
        {"lc", "uc", "join", "substr", "sprintf", "reverse", "split", "map", "grep", "sort", "ucfirst"}
    )
    printers = frozenset({"print", "printf", "say", "warn", "die", "croak", "carp"})

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        for index, one in enumerate(process.arguments):
            self.variables[str(index)] = one.value
        if process.arguments:
            self.variables["ARGV"] = join(one.value for one in process.arguments).weakened(Confidence.MEDIUM)
        if process.flags & {"n", "p"}:
            self.variables["_"] = self._lines()

    def _lines(self) -> Value:
        """What ``perl -n`` reads: the files that it is given, or standard input."""
        total = EMPTY
        for one in self.process.arguments:
            total = total + self.process.read_file(one.value)
        if not self.process.arguments:
            total = self.process.read_input()
        return total.opaque().weakened(Confidence.MEDIUM) if total.taints else UNKNOWN

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        waiting: list[tuple[int, str, Kind, int]] = []
        offset, text = 0, self.text
        while offset < len(text):
            self.process.tick(0)
            if text[offset] == "\n":
                offset = self._here_documents(offset + 1, waiting, found)
                continue
            if match := _SPACE.match(text, offset):
                offset = match.end()
                continue
            token = self._token(offset, found)
            if token.kind == "text" and token.text.startswith("<<") and (here := _HERE.match(text, offset)):
                kind: Kind = "raw" if here[3] else "text"
                waiting.append((len(found), here[2] or here[3] or here[4], kind, offset))
            found.append(token)
            offset = max(token.end, offset + 1)
        return found

    def _here_documents(self, offset: int, waiting: list[tuple[int, str, Kind, int]], found: list[Token]) -> int:
        for index, word, kind, _ in waiting:
            end = re.compile(rf"^[ \t]*{re.escape(word)}[ \t]*$", re.MULTILINE).search(self.text, offset)
            stop = end.start() if end else len(self.text)
            found[index] = Token(kind, self.text[offset:stop], offset, max(stop, offset))
            offset = min(end.end() + 1, len(self.text)) if end else len(self.text)
        waiting.clear()
        return offset

    def _token(self, offset: int, before: list[Token]) -> Token:
        text = self.text
        character = text[offset]
        if match := _ENVIRONMENT.match(text, offset):
            return Token("environment", match[1] or match[2] or match[3], offset, match.end())
        if character in "'\"`":
            end = _end_of(text, offset + 1, character, character)
            kind: Kind = "raw" if character == "'" else "command" if character == "`" else "text"
            return Token(kind, text[offset + 1 : end - 1], offset, end)
        arrow = bool(before) and before[-1].text == "->"
        if not arrow and (match := _QUOTED.match(text, offset)) and not _named_key(text, match):
            return self._quoted(match)
        if match := _HERE.match(text, offset):
            return Token("text", match.group(), offset, match.end())
        if character in "$@%" and (match := _VARIABLE.match(text, offset)):
            return Token("variable", match[1] or match[2] or match[3], offset, match.end())
        if match := _NAME.match(text, offset):
            return Token("name", match.group().rsplit("::", 1)[-1], offset, match.end())
        if character == ";" or (character in "{}" and not _inside_expression(before)):
            return Token("end", character, offset, offset + 1)
        if text.startswith(("->", "=>", "=~", "||", "&&", "//", ".="), offset):
            return Token("sign", text[offset : offset + 2], offset, offset + 2)
        return Token("sign", character, offset, offset + 1)

    def _quoted(self, match: re.Match[str]) -> Token:
        """``q()``, ``qq{}``, ``s///`` and their like."""
        opening = match[2]
        closing = CLOSING.get(opening, opening)
        end = _end_of(self.text, match.end(), opening, closing)
        content = self.text[match.end() : end - 1]
        if match[1] in ("s", "tr", "y"):
            if closing != opening:
                again = re.compile(r"\s*\S").match(self.text, end)
                end = again.end() if again else end
                opening = self.text[end - 1]
                closing = CLOSING.get(opening, opening)
            end = _end_of(self.text, end, opening, closing)
            return Token("sign", "s///", match.start(), end)
        if match[1] in _KINDS:
            return Token(_KINDS[match[1]], content, match.start(), end)
        return Token("sign", "m//", match.start(), end)

    def interpolated(self, token: Token) -> Value:
        total = EMPTY
        offset = 0
        text = token.text
        for match in _INSIDE.finditer(text):
            if match.start() and text[match.start() - 1] == "\\":
                continue
            total = total + self.process.source.value_in(_unescaped(text[offset : match.start()]))
            offset = match.end()
            if match[1]:
                value = self.variable_of_environment(match[1])
                total = total + self.process.step(
                    value, token.start, token.end, f"read from the environment variable {match[1]}"
                ).weakened(Confidence.MEDIUM)
            else:
                total = total + self.variables.get(match[2], UNKNOWN)
        return total + self.process.source.value_in(_unescaped(text[offset:]))

    def assignment(self, statement: Sequence[Token]) -> None:
        if len(statement) > 2 and statement[0].text in ("push", "unshift"):
            at = next((index for index, one in enumerate(statement) if one.kind == "variable"), None)
            if at is not None:
                self.assign(statement[at].text, self.mentioned(statement[at + 1 :]), statement)
            return
        for index, token in enumerate(statement):
            if token.kind != "sign" or token.text not in ("=", ".=", "||", "//"):
                continue
            if token.text in ("||", "//"):
                continue
            names = [one.text for one in statement[:index] if one.kind == "variable"]
            right = statement[index + 1 :]
            value = self.mentioned(right) if len(names) > 1 else self.value(right)
            if any(one.text in ("shift", "_", "STDIN") for one in right):
                value = value | self._passed(right)
            for name in names[-4:]:
                self.assign(name, value, statement)
            return
        if statement[0].text in ("for", "foreach"):
            names = [one.text for one in statement if one.kind == "variable"]
            for name in names[:1]:
                self.assign(name, self.mentioned(statement[1:]), statement)

    def _passed(self, right: Sequence[Token]) -> Value:
        """What a function may be given, or the program."""
        words = {one.text for one in right}
        if "STDIN" in words:
            given = self.process.read_input()
            return given.opaque().weakened(Confidence.MEDIUM) if given.taints else UNKNOWN
        found = [value for name, value in self.variables.items() if name != "_" and value.taints]
        mentioned = set(re.findall(r"ENV\{\W?(\w+)", self.text))
        found += [self.variable_of_environment(name) for name in sorted(mentioned)]
        taints = [taint for value in found for taint in value.taints]
        return Value.of(taints).weakened(Confidence.LOW) if taints else UNKNOWN

    def other_effect(self, statement: Sequence[Token], index: int) -> None:
        token = statement[index]
        if token.kind != "name" or token.text != "open":
            return
        parts = self.arguments(statement, index)
        if len(parts) < 2:
            return
        names = [one.text for one in parts[0] if one.kind in ("variable", "name") and one.text not in ("my", "local")]
        mode = self.value(parts[1])
        known = [piece for piece in mode.texts[0] if isinstance(piece, str)]
        first = known[0] if known else ""
        sign = _MODE.match(first)
        launch = Launch(start=token.start, end=statement[-1].end)
        if first.lstrip().startswith("|") or "-|" in first or (known and known[-1].rstrip().endswith("|")):
            given = [word for part in parts[2:] for word in self.words(part)]
            if not given:
                program = _program(mode)
                given = [Argument(program, parts[1][0].start, parts[1][-1].end)]
            output = self.start(given, launch)
            for name in names:
                self.variables[name] = output
            return
        path = self.value(parts[2]) if len(parts) > 2 else _without(mode, sign.end() if sign else 0)
        for name in names:
            self.handles[name] = path

    def finish(self) -> None:
        """``perl -p`` prints each line after the program has had it, with ``-i`` into the file that it comes from."""
        if "p" in self.process.flags:
            print_lines(self.process, self.variables["_"], len(self.text))


def print_lines(process: Process, value: Value, end: int) -> None:
    """What a program up to *end* that is run for each line leaves of the lines."""
    if "i" not in process.flags:
        process.print(value, 0, end)
        return
    for one in process.arguments:
        if value.taints:
            process.write_file(one.value, value, append=False, start=0, end=end)


def _inside_expression(before: list[Token]) -> bool:
    """Whether a brace belongs to an expression: ``$h{x}``, ``print {$fh} …``."""
    if not before:
        return False
    last = before[-1]
    if last.kind == "variable" or (last.kind == "name" and last.text in _Perl.printers):
        return True
    # The brace that closes such a one.
    return len(before) > 1 and before[-2].text == "{" and before[-2].kind == "sign"


def _program(mode: Value) -> Value:
    """The command of a pipe, without the sign that says so."""
    pieces = list(mode.texts[0])
    if pieces and isinstance(pieces[0], str):
        pieces[0] = pieces[0].lstrip(" |")
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip(" |")
    return Value((tuple(piece for piece in pieces if piece != ""),))


def _without(value: Value, count: int) -> Value:
    """*value* without the sign for how a file is opened."""
    first = value.texts[0]
    if first and isinstance(first[0], str):
        rest = first[0][count:]
        return Value((((rest, *first[1:]) if rest else first[1:]),))
    return value


def _end_of(text: str, offset: int, opening: str, closing: str) -> int:
    """Behind the sign that closes a string that began before *offset*."""
    depth = 1
    while offset < len(text):
        character = text[offset]
        if character == "\\":
            offset += 1
        elif character == closing:
            depth -= 1
            if depth == 0:
                return offset + 1
        elif character == opening:
            depth += 1
        offset += 1
    return len(text) + 1


def _named_key(text: str, match: re.Match[str]) -> bool:
    """Whether what looks like ``s{…}`` or ``y =>`` is a name: ``$h{s}``, ``s => 1``."""
    before = text[max(match.start() - 1, 0) : match.start()]
    return before in ("$", "@", "%", "{", "&", "-") or match[2] == "=" or text.startswith("=>", match.end() - 1)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text, flags=re.DOTALL)


def run(process: Process) -> None:
    """Reads the perl program of *process*."""
    if not process.in_reach:
        return
    scanner = _Perl(process)
    scanner.run()
    scanner.finish()
