"""Archives, as the interpreter sees them: files that hold others, with their names.

What an archive holds is kept beside the files, below a path that begins with the identity of the archive; the content
of the archive is text of this identity. So members go wherever the archive goes: through a pipe, a copy, an artifact,
a cache. A file that was compressed alone is an archive with one member, which has no name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.values import UNKNOWN, Hole, Value, merged, normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from runner_e2e.lint.shell.machine import Machine
    from runner_e2e.lint.shell.state import FileKey, State
    from runner_e2e.lint.values import Confidence, Taint, Text

__all__ = ["Member", "below", "is_member", "labels_of", "members", "members_of", "pack", "revealed"]

_KIND = "archive"

Member = tuple["Text", Value]
"""The path in the archive, and what the file holds."""


def is_member(path: FileKey) -> bool:
    """Whether *path* is no file, but one in an archive."""
    return isinstance(path, tuple) and bool(path) and isinstance(path[0], Hole) and _is_archive(path[0])


def _is_archive(hole: Hole) -> bool:
    return hole.symbol.startswith(f"{_KIND} ")


def pack(machine: Machine, state: State, files: Iterable[Member], *, shows: Confidence) -> Value:
    """The content of a new archive of *files*, of which a reader of the bytes sees the values as surely as *shows*.

    Files without labels are left out.
    """
    symbol = machine.identity(_KIND)
    taints: list[Taint] = []
    for path, content in files:
        found = labels_of((path, content))
        if found:
            key = normal((Hole(symbol=symbol), "/", *path)) if path else (Hole(symbol=symbol),)
            known = state.files.get(key)
            state.files[key] = content if known is None else content | known
            taints += found
    if not taints:
        return UNKNOWN
    return Value(((Hole(merged(taints), symbol),),)).weakened(shows)


def labels_of(member: Member) -> frozenset[Taint]:
    """The labels of a file, in its name or in what it holds."""
    path, content = member
    in_name = merged(taint for piece in path if isinstance(piece, Hole) for taint in piece.taints)
    return merged(in_name | content.taints) if in_name else content.taints


def members_of(content: Value, files: Mapping[FileKey, Value] | Mapping[Text, Value]) -> list[Member] | None:
    """What the archive holds of which *content* is the text; None where it may be another one that has labels."""
    symbols = [piece.symbol for piece in content.pieces() if isinstance(piece, Hole) and _is_archive(piece)]
    others = (piece for piece in content.pieces() if isinstance(piece, Hole) and not _is_archive(piece))
    if any(piece.taints for piece in others):
        return None
    return list(members(symbols, files))


def members(symbols: Iterable[str], files: Mapping[FileKey, Value] | Mapping[Text, Value]) -> Iterator[Member]:
    """The members of the archives of these identities."""
    wanted = set(symbols)
    if not wanted:
        return
    for key, content in files.items():
        if isinstance(key, tuple) and key and isinstance(key[0], Hole) and key[0].symbol in wanted:
            rest = key[1:]
            yield normal((str(rest[0])[1:], *rest[1:])) if rest else (), content


def revealed(content: Value, files: Mapping[FileKey, Value] | Mapping[Text, Value]) -> Value:
    """What is given away with *content*: who gets an archive opens it."""
    holes = [piece for piece in content.pieces() if isinstance(piece, Hole) and _is_archive(piece)]
    if not holes:
        return content
    found: list[Taint] = []
    for member in members((hole.symbol for hole in holes), files):
        found += labels_of(member)
        found += revealed(member[1], files).taints
    return Value.of(found) | content if found else content


def below(key: FileKey, folder: Text) -> Text | None:
    """The path of the file *key* from *folder*: empty for itself, None where it is elsewhere."""
    if isinstance(key, int) or is_member(key):
        return None
    if key == folder:
        return ()
    if folder in (("/",), ()):
        first = key[0] if key else ""
        return normal((first[1:], *key[1:])) if isinstance(first, str) and first.startswith("/") else None
    if len(key) < len(folder):
        return None
    count = len(folder) - 1
    last = folder[-1]
    if key[:count] != folder[:count]:
        return None
    if isinstance(last, Hole):
        following = key[count + 1] if key[count] == last and len(key) > count + 1 else ""
        rest = key[count + 2 :]
        begins = "/"
    else:
        following, rest, begins = key[count], key[count + 1 :], f"{last}/"
    if not isinstance(following, str) or not following.startswith(begins):
        return None
    return normal((following[len(begins) :], *rest))
