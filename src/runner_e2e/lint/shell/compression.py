"""Programs that compress a file alone: ``gzip``, ``bzip2``, ``xz``, ``zstd`` and their like.

Source: their manuals. Unless it is told otherwise, such a program writes a file with its suffix beside the one that it
reads, and most of them then remove that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.shell import filters
from runner_e2e.lint.shell.archives import members_of, pack
from runner_e2e.lint.shell.command_lines import Grammar, read_line
from runner_e2e.lint.shell.filesystem import path_keys, read_content, write_content
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Value, join, normal

if TYPE_CHECKING:
    from runner_e2e.lint.shell.machine import Invocation, Machine

__all__ = ["PROGRAMS", "run"]

_SUFFIXES = {
    **dict.fromkeys(("gzip", "pigz", "gunzip", "zcat", "gzcat"), ".gz"),
    **dict.fromkeys(("bzip2", "pbzip2", "bunzip2", "bzcat"), ".bz2"),
    **dict.fromkeys(("xz", "unxz", "xzcat"), ".xz"),
    **dict.fromkeys(("lzma", "unlzma", "lzcat"), ".lzma"),
    **dict.fromkeys(("zstd", "unzstd", "zstdcat"), ".zst"),
    **dict.fromkeys(("lz4", "unlz4", "lz4cat"), ".lz4"),
    "brotli": ".br",
    "compress": ".Z",
    "uncompress": ".Z",
}
PROGRAMS = frozenset(_SUFFIXES)
_KEEPS = frozenset({"zstd", "unzstd", "lz4", "unlz4", "brotli"})
_GRAMMAR = Grammar(letters="SboTqMw", names=frozenset({"suffix", "output", "threads", "memlimit", "output-dir-flat"}))
_PLAIN = Grammar(letters="S", names=frozenset({"suffix"}))
_OWN_SUFFIXES = frozenset(_SUFFIXES.values()) | {".tgz", ".tbz2", ".txz"}


def run(machine: Machine, call: Invocation) -> None:
    """Compresses or opens the files that operands name, or standard input."""
    name = call.name
    line = read_line(call, _GRAMMAR if name in ("zstd", "brotli") else _PLAIN)
    opens = line.has("d", "decompress", "uncompress") or name.startswith("un") or name in ("gunzip", "bunzip2")
    shows = name.endswith("cat")
    out = line.last("o", "output")
    to_output = shows or line.has("c", "stdout", "to-stdout") or (out is None and not line.operands)
    change = _opened if opens or shows else _squeezed
    if line.has("t", "test", "l", "list"):
        write_content(machine, call, None, UNKNOWN)
        return
    sources: list[Value | None] = [one.value for one, _ in line.operands] or [None]
    if to_output or out is not None:
        contents = [change(machine, call, read_content(machine, call, source)) for source in sources]
        total = EMPTY
        for content in contents:
            total = total + content
        write_content(machine, call, out if not to_output else None, total)
        return
    suffix = (line.last("S", "suffix") or EMPTY).constant or _SUFFIXES[name]
    for source in filter(None, sources):
        content = change(machine, call, read_content(machine, call, source))
        write_content(machine, call, _beside(source, suffix, opens=opens), content)
        if name not in _KEEPS and not line.has("k", "keep"):
            for key in path_keys(source, call.state):
                call.state.files.pop(key, None)


def _beside(path: Value, suffix: str, *, opens: bool) -> Value:
    """The file that is written for the one at *path*."""
    if not opens:
        return path + Value.literal(suffix)
    return join(
        Value((normal((*text[:-1], _without_suffix(text[-1], suffix))),))
        if text and isinstance(text[-1], str)
        else UNKNOWN
        for text in path.texts
    )


def _without_suffix(text: str, suffix: str) -> str:
    for known in (suffix, *sorted(_OWN_SUFFIXES)):
        if text.endswith(known):
            return text.removesuffix(known) + (".tar" if known.startswith(".t") else "")
    return text


def _squeezed(machine: Machine, call: Invocation, content: Value) -> Value:
    """Compressed *content*. An archive stays one: who opens it does not mind."""
    if not content.taints:
        return UNKNOWN
    if members_of(content, call.state.files):
        return content.weakened(Confidence.LOW)
    return pack(machine, call.state, [((), content)], shows=Confidence.LOW)


def _opened(_m: Machine, call: Invocation, content: Value) -> Value:
    """What was compressed as *content*."""
    if not content.taints:
        return content.without_taint()
    found = members_of(content, call.state.files)
    if found is None:
        return filters.restored(content)
    alone = [value for path, value in found if not path]
    return join(alone) if alone else content
