"""Programs that make archives, open them, and list what is in them: ``tar``, ``zip``, ``cpio``, ``7z``.

Source: the manuals of GNU tar and cpio, Info-ZIP, and 7-Zip.
"""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell import filters, shells
from runner_e2e.lint.shell.archives import below, is_member, members_of, pack
from runner_e2e.lint.shell.command_lines import Grammar, begin_of, read_line, text_of
from runner_e2e.lint.shell.filesystem import (
    path_keys,
    put_file,
    read_content,
    resolve,
    write_channel,
    write_content,
)
from runner_e2e.lint.shell.machine import ShellStart
from runner_e2e.lint.shell.patterns import decode, encode
from runner_e2e.lint.shell.state import Field
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from runner_e2e.lint.shell.archives import Member
    from runner_e2e.lint.shell.command_lines import CommandLine
    from runner_e2e.lint.shell.machine import Invocation, Machine
    from runner_e2e.lint.values import Text

__all__ = ["MODELS"]

_STANDARD = Value.literal("-")


# --- files that go in


def _packed(call: Invocation, operands: Iterable[tuple[Field, Value]], *, into: bool = True) -> Iterator[Member]:
    """The files that *operands* name, below them too (*into*), by the names that an archive gives them."""
    files = [
        (key, content)
        for key, content in call.state.files.items()
        if isinstance(key, tuple) and not is_member(key) and (content.taints or _is_labelled(key))
    ]
    for operand, folder in operands:
        here = resolve((".",), folder)
        for text in filter(None, operand.value.texts):
            wanted = resolve(text, folder)
            named = [(rest, key, content) for key, content in files if (rest := below(key, wanted)) is not None]
            for rest, key, content in named:
                if into or not rest:
                    # The shell gives whole paths for a pattern, where a program is given names from its folder.
                    inside = below(key, here) if operand.kind == "list" else None
                    yield inside or _stored_name(text, rest), content
            if not named and not _is_known(text) and operand.kind != "list":
                yield from _unknown(text, here, files)


def _unknown(text: Text, here: Text, files: list[Member]) -> Iterator[Member]:
    """The files that an operand of unknown text may name."""
    if len(text) == 1 and isinstance(text[0], Hole) and not text[0].symbol:  # such as the output of `find`
        for key, content in files:
            inside = below(key, here)
            if inside:
                yield inside, content.weakened(Confidence.MEDIUM)
    else:
        yield from (((Hole(),), content.opaque().weakened(Confidence.LOW)) for _, content in files)
    if _is_labelled(text):
        yield Value((text,)).opaque().weakened(Confidence.MEDIUM).texts[0], UNKNOWN


def _is_known(text: Text) -> bool:
    return all(isinstance(piece, str) for piece in text)


def _is_labelled(text: Text) -> bool:
    return any(isinstance(piece, Hole) and piece.taints for piece in text)


def _stored_name(operand: Text, rest: Text) -> Text:
    """The name of a file *rest* below an operand, as archives have it: without what leads out of the folder."""
    holes: list[Hole] = []
    plain = posixpath.normpath(encode(normal((*operand, "/", *rest)) if rest else operand, holes)).lstrip("/")
    while plain.startswith("../"):
        plain = plain[3:]
    return decode(plain, holes)


def _but(found: Iterable[Member], patterns: Iterable[Value]) -> Iterator[Member]:
    """*found* without those that a pattern leaves out."""
    known = [pattern.constant for pattern in patterns]
    for path, content in found:
        name = encode(path, [])
        if not any(pattern is not None and _matches(name, pattern) for pattern in known):
            yield path, content


def _matches(name: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    parts = name.split("/")
    tails = ("/".join(parts[at:]) for at in range(len(parts)))
    return any(fnmatchcase(tail, pattern) or fnmatchcase(tail, f"{pattern}/*") for tail in tails)


def _named_in(content: Value, call: Invocation, *, separator: str = "\n") -> Iterator[tuple[Field, Value]]:
    """Operands that stand in a text, one a line."""
    folder = call.state.directory
    for text in content.texts:
        holes: list[Hole] = []
        for line in re.split(f"[{separator}\0]", encode(text, holes)):
            if line:
                yield Field(Value((decode(line, holes),))), folder


def _list(machine: Machine, call: Invocation, found: Iterable[Member], begin: str, *, number: int = 1) -> None:
    """Writes the names of files, a line each."""
    total = UNKNOWN
    for path, _ in found:
        total = total + Value.literal(f"\n{begin}") + Value((path,))
    write_channel(machine, call.state, number, total + Value.literal("\n"), call.span)


# --- files that come out


@dataclass(frozen=True, kw_only=True, slots=True)
class _Extraction:
    """How files come out: which (*wanted*, empty: all), how much of their paths goes, and into which folder."""

    wanted: tuple[Field, ...] = ()
    left_out: tuple[Value, ...] = ()
    folder: Value
    strip: int = 0
    flat: bool = False
    renamed: bool = False


def _contents(call: Invocation, archive: Value, how: _Extraction) -> list[Member]:
    """The labelled files that come out of an archive, by the paths that they have in it."""
    found = members_of(archive, call.state.files)
    if found is None:  # a labelled text that was not seen to be packed: any file may hold it
        return [((Hole(),), filters.restored(archive))]
    kept: list[Member] = []
    for path, content in _but(found, how.left_out):
        sure = _is_wanted(path, how.wanted)
        if sure is not False:
            kept.append((path, content if sure else content.weakened(Confidence.MEDIUM)))
    return kept


def _is_wanted(path: Text, wanted: tuple[Field, ...]) -> bool | None:
    """Whether a command line asks for the member *path*; None where that is not known."""
    if not wanted:
        return True
    known = [text_of(one) for one in wanted]
    if any(one and _matches_whole(encode(path, []), one) for one in known):
        return True
    if any(one.value.texts == (path,) for one in wanted):
        return True
    return None if not all(known) or any(isinstance(piece, Hole) for piece in path) else False


def _matches_whole(name: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    return pattern in ("", ".") or fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")


def _extract(machine: Machine, call: Invocation, found: list[Member], how: _Extraction) -> None:
    """Writes files of an archive below the folder."""
    for path, content in found:
        new = _new_path(path, how)
        if new is None:
            continue
        for base in how.folder.texts:
            key = resolve(normal((*base, "/", *new)), call.state.directory)
            noted = machine.step(content, *call.span, "unpacked")
            before = call.state.files.get(key)
            unsure = before is not None and any(taint.confidence < Confidence.HIGH for taint in content.taints)
            put_file(call.state, key, noted | before if before is not None and unsure else noted, append_to=False)


def _new_path(path: Text, how: _Extraction) -> Text | None:
    """The path that a member gets; None for one that has nothing left of it."""
    if how.renamed:
        return (Hole(),)
    holes: list[Hole] = []
    parts = encode(path, holes).split("/")
    parts = parts[-1:] if how.flat else parts[how.strip :]
    return decode("/".join(parts), holes) if parts else None


def _print(machine: Machine, call: Invocation, found: list[Member]) -> None:
    """Writes what files hold to standard output, one after the other."""
    total = EMPTY
    for _, content in found:
        total = total + content
    write_channel(machine, call.state, 1, total if found else UNKNOWN, call.span)


# --- tar

_TAR = Grammar(
    letters="fCTXIbFgHKLNV",
    names=frozenset({"file", "directory", "files-from", "exclude", "exclude-from", "use-compress-program"})
    | {"transform", "xform", "strip-components", "to-command", "add-file", "owner", "group", "mode", "mtime", "format"}
    | {"label", "sort", "starting-file", "newer", "after-date", "tape-length", "blocking-factor", "record-size"},
    folders=frozenset({"C", "directory"}),
    undashed=True,
)
_TAR_COMPRESSES = ("z", "j", "J", "Z", "a", "I", "gzip", "bzip2", "xz", "lzma", "zstd", "lzip", "compress")
_TAR_MODES = {
    **dict.fromkeys(("c", "create"), "create"),
    **dict.fromkeys(("r", "append", "u", "update"), "append"),
    **dict.fromkeys(("A", "catenate", "concatenate"), "join"),
    **dict.fromkeys(("x", "extract", "get"), "extract"),
    **dict.fromkeys(("t", "list"), "list"),
}


def _tar(machine: Machine, call: Invocation) -> None:
    line = read_line(call, _TAR)
    mode = next((_TAR_MODES[one.name] for one in line.options if one.name in _TAR_MODES), "")
    path = line.last("f", "file")
    renamed = line.has("transform", "xform")
    if mode in ("create", "append", "join"):
        content = _made_by_tar(machine, call, line, mode, renamed=renamed)
        write_content(machine, call, path, content)
    elif mode:
        strip = (line.last("strip-components") or EMPTY).constant or ""
        how = _Extraction(
            wanted=tuple(one for one, _ in line.operands),
            left_out=tuple(line.values("exclude")),
            folder=line.last("C", "directory") or Value.literal("."),
            strip=int(strip) if strip.isdigit() else 0,
            renamed=renamed,
        )
        found = _contents(call, read_content(machine, call, path), how)
        if mode == "list" or line.has("v", "verbose"):
            _list(machine, call, found, "", number=2 if line.has("O", "to-stdout") else 1)
        if mode == "list":
            return
        command = line.last("to-command")
        if command is not None:
            _hand_over(machine, call, found, command)
        elif line.has("O", "to-stdout"):
            _print(machine, call, found)
        else:
            _extract(machine, call, found, how)


def _hand_over(machine: Machine, call: Invocation, found: list[Member], command: Value) -> None:
    """A shell runs *command* for each file, which it finds on standard input."""
    before = call.state.descriptors
    for path, content in found:
        call.state.descriptors = {**before, 0: machine.stream(content, call.state)}
        inner = call.running(call.fields[:1], {**call.environment, "TAR_FILENAME": Value((path,))})
        shells.run_program(machine, command, inner, ShellStart(dialect="sh", span=call.span))
    call.state.descriptors = before


def _made_by_tar(machine: Machine, call: Invocation, line: CommandLine, mode: str, *, renamed: bool) -> Value:
    operands = list(line.operands)
    for named in line.values("T", "files-from"):
        operands += _named_in(read_content(machine, call, named), call)
    path = line.last("f", "file")
    before = members_of(read_content(machine, call, path), call.state.files) if mode != "create" else []
    found = list(before or ())
    if mode == "join":
        for one, _ in operands:
            found += members_of(read_content(machine, call, one.value), call.state.files) or []
    else:
        added = _but(_packed(call, operands), line.values("exclude"))
        found += (((Hole(),), content) if renamed else (name, content) for name, content in added)
    if line.has("v", "verbose"):
        _list(machine, call, found, "", number=1 if path is not None and path != _STANDARD else 2)
    squeezed = line.has(*_TAR_COMPRESSES) and mode == "create"
    return pack(machine, call.state, found, shows=Confidence.LOW if squeezed else Confidence.HIGH)


# --- cpio

_CPIO = Grammar(
    letters="FOIHDCERM",
    names=frozenset({"file", "format", "directory", "io-size", "pattern-file", "owner", "message", "block-size"}),
)


def _cpio(machine: Machine, call: Invocation) -> None:
    line = read_line(call, _CPIO)
    path = line.last("F", "file", "O", "I")
    folder = line.last("D", "directory") or Value.literal(".")
    if line.has("o", "create", "p", "pass-through"):
        names = _named_in(read_content(machine, call, None), call)
        found = list(_packed(call, names, into=False))
        if line.has("v", "verbose"):
            _list(machine, call, found, "", number=2)
        if line.has("p", "pass-through"):
            target = line.operands[-1][0].value if line.operands else folder
            _extract(machine, call, found, _Extraction(folder=target))
        else:
            write_content(machine, call, path, pack(machine, call.state, found, shows=Confidence.HIGH))
        return
    how = _Extraction(wanted=tuple(one for one, _ in line.operands), folder=folder)
    found = _contents(call, read_content(machine, call, path), how)
    if line.has("t", "list"):
        _list(machine, call, found, "")
    elif line.has("i", "extract"):
        if line.has("v", "verbose"):
            _list(machine, call, found, "", number=2)
        if line.has("to-stdout"):
            _print(machine, call, found)
        else:
            _extract(machine, call, found, how)


# --- zip

_ZIP = Grammar(
    letters="btPnUO",
    names=frozenset(
        {"temp-path", "from-date", "before-date", "password", "suffixes", "output-file", "compression-method"}
    ),
)
_UNZIP = Grammar(letters="dP")


def _lists_of_zip(call: Invocation) -> tuple[Invocation, list[Value], list[Value]]:
    """The call without ``-x …`` and ``-i …``, which go on to the next option; what these name."""
    kept, lists = [call.fields[0]], {"-x": list[Value](), "-i": list[Value]()}
    into: list[Value] | None = None
    for one in call.fields[1:]:
        text = text_of(one)
        name = {"--exclude": "-x", "--include": "-i"}.get(text, text)
        if (name in lists and call.name == "zip") or name == "-x":
            into = lists[name]
        elif begin_of(one.value).startswith("-") or text == "@":
            into = None
            kept += [] if text == "@" else [one]
        elif into is not None:
            into.append(one.value)
        else:
            kept.append(one)
    return call.running(kept), lists["-x"], lists["-i"]


def _zip(machine: Machine, call: Invocation) -> None:
    call, left_out, alone = _lists_of_zip(call)
    line = read_line(call, _ZIP)
    operands = list(line.operands)
    if not operands:
        return
    archive = _with_suffix(operands.pop(0)[0].value)
    before = members_of(read_content(machine, call, archive), call.state.files) if archive != _STANDARD else []
    if line.has("d", "delete"):
        gone = [one.value for one, _ in operands]
        write_content(machine, call, archive, _zipped(machine, call, list(_but(before or (), gone))))
        return
    if line.has("@", "names-stdin"):
        operands += _named_in(read_content(machine, call, None), call)
    added = list(_but(_packed(call, operands, into=line.has("r", "recurse-paths")), left_out))
    if alone:
        added = [one for one in added if any(_matches(encode(one[0], []), each.constant or "*") for each in alone)]
    if line.has("j", "junk-paths"):
        added = [(_last_part(path), content) for path, content in added]
    if line.has("m", "move"):
        _remove(call, (one.value for one, _ in operands))
    if not line.has("q", "quiet"):
        _list(machine, call, added, "  adding: ", number=1 if archive != _STANDARD else 2)
    write_content(machine, call, archive, _zipped(machine, call, [*(before or ()), *added]))


def _zipped(machine: Machine, call: Invocation, found: list[Member]) -> Value:
    # Small files are stored as they are.
    return pack(machine, call.state, found, shows=Confidence.MEDIUM)


def _with_suffix(path: Value) -> Value:
    """The path of a zip file that a command line names without its suffix."""
    text = path.constant
    last = posixpath.basename(text if text is not None else str(path.texts[0][-1] if path.texts[0] else ""))
    return path if text == "-" or "." in last else path + Value.literal(".zip")


def _last_part(path: Text) -> Text:
    holes: list[Hole] = []
    return decode(posixpath.basename(encode(path, holes)), holes)


def _remove(call: Invocation, paths: Iterable[Value]) -> None:
    for path in paths:
        for key in path_keys(path, call.state):
            for other in [one for one in call.state.files if below(one, key) is not None]:
                del call.state.files[other]


def _unzip(machine: Machine, call: Invocation) -> None:
    call, left_out, _ = _lists_of_zip(call)
    line = read_line(call, _UNZIP)
    if not line.operands:
        return
    archive = line.operands[0][0].value
    content = read_content(machine, call, archive)
    if not content.taints:
        content = read_content(machine, call, _with_suffix(archive))
    how = _Extraction(
        wanted=tuple(one for one, _ in line.operands[1:]),
        left_out=tuple(left_out),
        folder=line.last("d") or Value.literal("."),
        flat=line.has("j"),
    )
    found = _contents(call, content, how)
    if line.has("l", "v", "Z", "z") or call.name == "zipinfo":
        _list(machine, call, found, "")
    elif line.has("p", "c"):
        _print(machine, call, found)
    elif not line.has("t"):
        if not line.has("q"):
            _list(machine, call, found, "  inflating: ")
        _extract(machine, call, found, how)


# --- 7z

_SEVEN = Grammar(inline="oxiptmsvwbar")


def _seven(machine: Machine, call: Invocation) -> None:
    verb = text_of(call.fields[1]) if len(call.fields) > 1 else ""
    line = read_line(call.running((call.fields[0], *call.fields[2:])), _SEVEN)
    streams = [value.constant for value in line.values("s")]  # `-so`, `-si`
    if not line.operands:
        return
    archive, operands = line.operands[0][0].value, line.operands[1:]
    if verb in ("a", "u"):
        left_out = [Value.literal((value.constant or "").lstrip("r!")) for value in line.values("x")]
        added = list(_but(_packed(call, operands), left_out))
        before = members_of(read_content(machine, call, archive), call.state.files) or []
        content = pack(machine, call.state, [*before, *added], shows=Confidence.LOW)
        write_content(machine, call, None if "o" in streams else archive, content)
        return
    content = read_content(machine, call, None if "i" in streams else archive)
    folder = line.last("o") or Value.literal(".")
    how = _Extraction(wanted=tuple(one for one, _ in operands), folder=folder, flat=verb == "e")
    found = _contents(call, content, how)
    if verb == "l":
        _list(machine, call, found, "")
    elif verb in ("x", "e"):
        if "o" in streams:
            _print(machine, call, found)
        else:
            _extract(machine, call, found, how)


MODELS: dict[str, Callable[[Machine, Invocation], None]] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _tar),
    **dict.fromkeys(("cpio",), _cpio),
    **dict.fromkeys(("zip",), _zip),
    **dict.fromkeys(("unzip", "zipinfo"), _unzip),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _seven),
}
