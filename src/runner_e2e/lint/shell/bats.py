"""Test files of ``bats``: shell programs whose tests are blocks, ``@test "name" { … }``.

Source: https://bats-core.readthedocs.io/en/stable/writing-tests.html.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.shell.filesystem import path_keys
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.state import NULL, UNCAPTURED
from runner_e2e.lint.source import Source
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["follow"]

_TEST = re.compile(r"^[ \t]*@test[ \t]+(?P<name>.+?)[ \t]+\{(?=[ \t]*(?:#.*)?$)", re.MULTILINE)
# Each is a text that is evaluated, so that what it does is placed where it is called.
_FUNCTIONS = """\
eval 'run() {
  case "${1-}" in -* | "!") shift ;; esac
  case "${1-}" in -*) shift ;; esac
  output=$("$@" 2>&1) && status=0 || status=$?
  mapfile -t lines <<< "$output"
}
load() {
  if [[ $1 == /* ]]; then bats_found=$1; else bats_found=$BATS_TEST_DIRNAME/$1; fi
  if [ -e "$bats_found.bash" ]; then . "$bats_found.bash"; else . "$bats_found"; fi
}
skip() { exit 0; }
setup() { :; }
teardown() { :; }
setup_file() { :; }
teardown_file() { :; }
bats_load_library() { :; }
bats_require_minimum_version() { :; }'
"""


def follow(machine: Machine, call: Invocation, path: str) -> bool:
    """Runs the tests of the file at *path*, each in a shell of its own; False where there is no such file."""
    written = call.state.files.get(path_keys(Value.literal(path), call.state)[0])
    find = machine.files.find_script
    if written is not None and written.constant is not None:
        source = Source.of_text((_program(written.constant),), machine.source.origin, *call.span)
    elif written is None and find is not None and (script := find(path)) is not None:
        source = _placed(Source.of_script(script))
    else:
        return False
    folder = posixpath.dirname(path)
    environment = {
        **call.environment,
        "BATS_TEST_DIRNAME": Value.literal(folder),
        "BATS_TEST_FILENAME": Value.literal(path),
        **{name: machine.symbol(f"${name}") for name in ("BATS_TMPDIR", "BATS_TEST_TMPDIR", "BATS_FILE_TMPDIR")},
    }
    state = call.state
    before, outer = state.descriptors, machine.source
    shown = before.get(UNCAPTURED, before.get(1, NULL))
    state.descriptors = {**before, 3: shown}
    machine.source = source
    try:
        start = ShellStart(dialect="bash", name=path, span=call.span)
        machine.run_shell(source, replace(call, environment=environment), start)
    finally:
        machine.source, state.descriptors = outer, before
    return True


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """The program that runs the tests in *text*: pieces, and where each stands there."""
    yield _FUNCTIONS, 0, 0
    offset, count = 0, 0
    for count, match in enumerate(_TEST.finditer(text), 1):
        yield text[offset : match.start()], offset, match.start()
        yield f"bats_test_{count}() {{", match.start(), match.end()
        offset = match.end()
    yield text[offset:], offset, len(text)
    tests = "".join(f"( setup; bats_test_{number}; teardown )\n" for number in range(1, count + 1))
    yield f"\nsetup_file\n{tests}teardown_file\n", len(text), len(text)


def _program(text: str) -> str:
    return "".join(piece for piece, _, _ in _pieces(text))


def _placed(source: Source) -> Source:
    """The same for a file of the repository, whose text keeps its places."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece, start, end in _pieces(source.text):
        pieces.append(piece)
        if end - start == len(piece):
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            starts += [start] * len(piece)
            ends += [end] * len(piece)
    return Source(source.origin, "".join(pieces), source.inserted, starts, ends)
