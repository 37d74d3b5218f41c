"""Values that a program can read from a file or from its standard input in place of its command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.fixes.words import Rewriting, has_input, is_split, is_variable, leading_text, raw

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.fixes.scripts import Program
    from runner_e2e.lint.shell.ir import Simple, Word

__all__ = ["INPUTS"]

_CONTAINER_CLIENTS = frozenset({"docker", "podman", "nerdctl"})
_USER_OPTION = re.compile(r"-u|--username")
_GREP_FLAGS = re.compile(r"-[EFGPivwxcLlqsnHhorRzUabTZ]+")


def _file(word_text: str, *, line: bool = False) -> str:
    """A file that bash makes of a word: the builtin ``printf`` writes it."""
    form = r"%s\n" if line else "%s"
    return f"<(printf '{form}' {word_text})"


def _quoted(program: Program, word: Word) -> str | None:
    """The word where it is in double quotes as a whole: it goes over as it is."""
    text = raw(program, word)
    whole = re.fullmatch(r'"(?:[^"\\`]|\\.)*"', text, re.DOTALL) is not None
    return text if whole and not is_split(word) and "\n" not in text else None


def _header(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``curl -H "…$S"`` becomes ``curl -H @<(printf …)``."""
    words = command.words
    if words[0].static != "curl" or words[number - 1].static not in {"-H", "--header"} or not program.bash:
        return None
    value = _quoted(program, words[number])
    if value is None or value.startswith('"@'):
        return None
    return Rewriting(
        title="let curl read the header from a file that bash makes of `printf`",
        safe=leading_text(words[number]) != "",
        pieces=[(words[number].start, words[number].end, f"@{_file(value, line=True)}")],
        needs_descriptors=True,
    )


def _data(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``curl -d "…$S"`` becomes ``curl --data-binary @<(printf …)``, which sends the same bytes."""
    words = command.words
    option = words[number - 1].static
    if words[0].static != "curl" or option not in {"-d", "--data", "--data-ascii", "--data-raw", "--data-binary"}:
        return None
    value = _quoted(program, words[number])
    if value is None or not program.bash or (value.startswith('"@') and option != "--data-raw"):
        return None
    return Rewriting(
        title="let curl read the data from a file that bash makes of `printf`",
        # Text that begins with the value may begin with `@`.
        safe=leading_text(words[number]) != "" or option == "--data-raw",
        pieces=[(words[number - 1].start, words[number].end, f"--data-binary @{_file(value)}")],
        needs_descriptors=True,
    )


def _jq_argument(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``jq --arg n "$S"`` becomes ``jq --rawfile n <(printf …)``."""
    words = command.words
    if words[0].static != "jq" or number < 3 or words[number - 2].static != "--arg" or not program.bash:
        return None
    value = _quoted(program, words[number])
    if value is None or words[number - 1].static is None:
        return None
    option = words[number - 2]
    return Rewriting(
        title="let jq read the text from a file that bash makes of `printf`",
        safe=True,
        pieces=[
            (option.start, option.end, "--rawfile"),
            (words[number].start, words[number].end, _file(value)),
        ],
        needs_descriptors=True,
    )


def _field(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``gh workflow run -f k="$S"`` becomes ``gh workflow run -F k=@<(printf …)``."""
    words = command.words
    known = [word.static for word in words[:3]] == ["gh", "workflow", "run"] or [word.static for word in words[:2]] == [
        "gh",
        "api",
    ]
    option = words[number - 1]
    if not known or option.static not in {"-f", "--raw-field"} or not program.bash:
        return None
    word = words[number]
    found = re.fullmatch(r'(?P<open>"?)(?P<key>[A-Za-z_][\w-]*)=(?P<value>.*)', raw(program, word), re.DOTALL)
    if found is None or is_split(word) or "\n" in found["value"]:
        return None
    value = found["open"] + found["value"]
    if re.fullmatch(r'"(?:[^"\\`]|\\.)*"', value) is None:
        return None
    return Rewriting(
        title="let gh read the field from a file that bash makes of `printf`",
        safe=True,
        pieces=[(option.start, option.end, "-F"), (word.start, word.end, f"{found['key']}=@{_file(value)}")],
        needs_descriptors=True,
    )


def _pattern(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``grep -q "$S"`` becomes ``grep -q -f <(printf …)``."""
    words = command.words
    flags = [word.static or "" for word in words[1:number]]
    explicit = flags[-1:] == ["-e"]
    if explicit:
        flags.pop()
    if words[0].static != "grep" or not program.bash or not all(map(_GREP_FLAGS.fullmatch, flags)):
        return None
    value = _quoted(program, words[number])
    if value is None or (leading_text(words[number]).startswith("-") and not explicit):
        return None
    start = words[number - 1].start if explicit else words[number].start
    return Rewriting(
        title="let grep read the pattern from a file that bash makes of `printf`",
        # A value that begins with a dash was an option.
        safe=explicit or leading_text(words[number]) != "",
        pieces=[(start, words[number].end, f"-f {_file(value, line=True)}")],
        needs_descriptors=True,
    )


def _login(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``docker login -p "$S"`` becomes ``printf '%s' "$S" | docker login --password-stdin``."""
    words = command.words
    if words[0].static not in _CONTAINER_CLIENTS or words[1].static != "login":
        return None
    # Without a name of the user, the client would ask for one, which it does not when the password is piped.
    if not any(_USER_OPTION.match(leading_text(word)) for word in words[2:]):
        return None
    found = _option_value(program, command, number, {"-p", "--password"}, "--password=")
    return _piped(program, command, found, "--password-stdin", title="write the password to the standard input")


def _secret(program: Program, command: Simple, number: int) -> Rewriting | None:
    """``gh secret set N --body "$S"`` becomes ``printf '%s' "$S" | gh secret set N``."""
    words = command.words
    if words[0].static != "gh" or [word.static for word in words[1:3]] not in (["secret", "set"], ["variable", "set"]):
        return None
    found = _option_value(program, command, number, {"-b", "--body"}, "--body=")
    return _piped(program, command, found, "", title="write the value to the standard input")


def _option_value(
    program: Program, command: Simple, number: int, options: set[str], joined: str
) -> tuple[int, Word, str] | None:
    """Where the option starts, the word with its value, and the value as written."""
    words = command.words
    text = raw(program, words[number])
    if words[number - 1].static in options:
        return words[number - 1].start, words[number], text
    return (words[number].start, words[number], text.removeprefix(joined)) if text.startswith(joined) else None


def _piped(
    program: Program, command: Simple, found: tuple[int, Word, str] | None, instead: str, *, title: str
) -> Rewriting | None:
    """The value over a pipe, and *instead* in the place of option and value."""
    if found is None or has_input(program, command):
        return None
    start, word, value = found
    safe = value.startswith('"') and not is_split(word)
    if not safe and not is_variable(word, after=program.text[word.start : word.end].partition("=")[0] + "="):
        return None
    if not safe:
        value = f'"{value}"'
    if not instead and program.text[start - 1 : start] == " ":
        start -= 1
    return Rewriting(
        title=title,
        safe=safe,
        pieces=[(command.start, command.start, f"printf '%s' {value} | "), (start, word.end, instead)],
    )


INPUTS: tuple[Callable[[Program, Simple, int], Rewriting | None], ...] = (
    _header,
    _data,
    _jq_argument,
    _field,
    _pattern,
    _login,
    _secret,
)
"""Each takes a program, a simple command, and which of its words has the value."""
