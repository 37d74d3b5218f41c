"""What programs fetch of the artifacts of this run: ``gh run download``, and requests to GitHub's API for one.

Source: https://cli.github.com/manual/gh_run_download and ``pkg/cmd/run/download`` of that program; the request
"Download an artifact" of GitHub's REST API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.shell.archives import pack
from runner_e2e.lint.shell.command_lines import Grammar, read_line
from runner_e2e.lint.shell.filesystem import put_file, resolve
from runner_e2e.lint.values import UNKNOWN, Confidence, Hole, Value, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.shell.command_lines import CommandLine
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.shell.results import Uploads

__all__ = ["archive_at", "run"]

_GRAMMAR = Grammar(letters="nDpRXHFfqt", names=frozenset({"name", "dir", "pattern", "repo"}))
_THIS_RUN = frozenset({"GITHUB_RUN_ID", "$GITHUB_RUN_ID"})
_NOTE = "downloaded from an artifact"


def run(machine: Machine, call: Invocation) -> Value:
    """Follows ``gh`` where it downloads artifacts; its output."""
    artifacts = machine.files.artifacts
    if artifacts is None or not artifacts.version:
        return UNKNOWN
    words = [one.value.constant for one in call.fields[1:]]
    if words[:1] == ["api"]:
        found = (archive_at(machine, call, one.value) for one in call.fields[2:])
        return next((archive for archive in found if archive is not None), UNKNOWN)
    line = read_line(call, _GRAMMAR)
    operands = [one.value for one, _ in line.operands]
    if [one.constant for one in operands[:2]] == ["run", "download"]:
        _download(machine, call, artifacts, line, operands[2:])
    return UNKNOWN


def _download(machine: Machine, call: Invocation, artifacts: Uploads, line: CommandLine, operands: list[Value]) -> None:
    names, patterns = line.values("n", "name"), line.values("p", "pattern")
    sure = _is_this_run(operands, line)
    if sure is False or not (operands or names or patterns):  # without any of them it asks, and nobody answers
        return
    folder = line.last("D", "dir") or Value.literal(".")
    alone = len(names) == 1 and not patterns
    fetched = list(artifacts.fetch(names, patterns))
    if fetched:
        call.state.files.update(artifacts.members.items())
    for name, path, content in fetched:
        noted = machine.step(content if sure else content.weakened(Confidence.LOW), *call.span, _NOTE)
        inside = path if alone else normal((*name, "/", *path))
        for base in folder.texts:
            key = resolve(normal((*base, "/", *inside)), call.state.directory)
            put_file(call.state, key, noted, append_to=False)


def _is_this_run(operands: list[Value], line: CommandLine) -> bool | None:
    """Whether the run that is named is this one; None where that is not known."""
    if operands and any(_names_this_run(piece) for piece in operands[0].pieces()):
        return True
    repository = line.last("R", "repo")
    if repository is not None and repository.constant is not None:
        return False
    if not operands:  # the newest artifacts of these names
        return True
    return None if operands[0].constants is None else False


def _names_this_run(piece: str | Hole) -> bool:
    return isinstance(piece, Hole) and piece.symbol in _THIS_RUN


def archive_at(machine: Machine, call: Invocation, address: Value) -> Value | None:
    """What a request for *address* gives where it asks for an artifact, which may be any; None where it does not."""
    artifacts = machine.files.artifacts
    if artifacts is None or not artifacts.version or not any(map(_is_artifact, _texts(address))):
        return None
    call.state.files.update(artifacts.members.items())
    found = [
        (path, machine.step(content.weakened(Confidence.MEDIUM), *call.span, _NOTE))
        for _, path, content in artifacts.fetch((), ())
    ]
    return pack(machine, call.state, found, shows=Confidence.MEDIUM)


def _texts(value: Value) -> Iterator[str]:
    for text in value.texts:
        yield "".join(piece if isinstance(piece, str) else "*" for piece in text)


def _is_artifact(address: str) -> bool:
    return "actions/artifacts/" in address and address.rstrip("/").endswith("/zip")
