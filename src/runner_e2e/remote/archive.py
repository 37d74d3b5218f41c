"""Unpacks the archive of a repository as it comes in: text files, inside of one folder, within limits."""

from __future__ import annotations

import io
import os
import posixpath
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ArchiveLimits", "unpack"]

_CHUNK = 1 << 16

_BINARY = 8_000
"""So many bytes are looked through for a NUL, as git does to tell text from binary files."""

# Two entries want the same path, one of them perhaps as a folder.
_CLASHES = (FileExistsError, NotADirectoryError, IsADirectoryError)


class Reader(Protocol):
    """What an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """At most *size* bytes, none at the end."""


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    """Bytes that may come in, bytes and entries that they may unpack to, and bytes of a file that is kept."""

    packed: int = 256 << 20
    unpacked: int = 2 << 30
    entries: int = 300_000
    file: int = 1 << 20


class _TooLargeError(Exception):
    """A limit is passed: which one."""


class _Inflated(io.RawIOBase):
    """What a gzip stream unpacks to; counts both sides."""

    def __init__(self, reader: Reader, limits: ArchiveLimits) -> None:
        self.source = reader
        self.limits = limits
        self.packed = 0
        self.unpacked = 0
        self._inflate = zlib.decompressobj(wbits=31)  # 16 + 15: gzip with any window

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most *size* bytes (not negative), none at the end."""
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._fill()
            data = self._inflate.decompress(packed, size)
            self.unpacked += len(data)
            if self.unpacked > self.limits.unpacked:
                raise _TooLargeError(f"it has more than {self.limits.unpacked >> 20} MiB of files")
            if data:
                return data
        return b""

    def _fill(self) -> bytes:
        data = self.source.read(_CHUNK)
        self.packed += len(data)
        if self.packed > self.limits.packed:
            raise _TooLargeError(f"its archive is larger than {self.limits.packed >> 20} MiB")
        if not data:
            raise EOFError("it ends early")
        return data

    def finish(self) -> None:
        """Reads to the end, where the checksum of all stands."""
        while self.read(_CHUNK):
            pass


def unpack(reader: Reader, folder: Path, *, name: str, limits: ArchiveLimits | None = None) -> int:
    """Unpacks a ``tar.gz`` into the empty *folder*, without the one folder that everything in it is in.

    Kept are text files up to ``limits.file`` bytes, and symbolic links that stay inside. Returns how many there are.
    *name* is what messages call the repository.

    Raises :class:`~runner_e2e.errors.GitHubError` for an archive that is damaged, cut, or too large.
    """
    limits = limits or ArchiveLimits()
    try:
        inflated = _Inflated(reader, limits)
        with tarfile.open(fileobj=inflated, mode="r|") as archive:
            count = _Unpacking(folder, limits).run(archive)
        inflated.finish()
    except _TooLargeError as error:
        raise GitHubError(
            f"{name} is too large to be linted from here", why=str(error), fix="clone it, and lint the clone"
        ) from None
    except (tarfile.TarError, zlib.error, EOFError, UnicodeError, *_CLASHES) as error:
        raise GitHubError(
            f"the archive of {name} is cut or damaged", why=str(error) or type(error).__name__, fix="try it again"
        ) from None
    return count


class _Unpacking:
    def __init__(self, folder: Path, limits: ArchiveLimits) -> None:
        self.folder = str(folder)
        self.limits = limits
        self.links: list[tuple[str, str]] = []
        self.folders = {self.folder}
        self.kept = 0

    def run(self, archive: tarfile.TarFile) -> int:
        for number, member in enumerate(archive, 1):
            if number > self.limits.entries:
                raise _TooLargeError(f"it has more than {self.limits.entries:,} files")
            relative = _inside(member.name)
            if relative is None:
                continue
            if member.issym():
                self.links.append((relative, member.linkname))
            elif member.isreg() and member.size <= self.limits.file:
                self.file(archive, member, relative)
        self.link()
        return self.kept

    def file(self, archive: tarfile.TarFile, member: tarfile.TarInfo, relative: str) -> None:
        stream = archive.extractfile(member)
        data = stream.read() if stream is not None else b""
        if len(data) != member.size:
            raise EOFError(f"{relative} ends early")
        if b"\0" in data[:_BINARY]:
            return
        path = self.parent(relative)
        # No link is there yet, so that nothing is written through one.
        with open(path, "xb") as target:  # noqa: PTH123 - tens of thousands of times
            target.write(data)
        self.kept += 1

    def parent(self, relative: str) -> str:
        """The path of *relative*, whose folder is there."""
        path = f"{self.folder}/{relative}"
        above = posixpath.dirname(path)
        if above not in self.folders:
            os.makedirs(above, exist_ok=True)  # noqa: PTH103
            self.folders.add(above)
        return path

    def link(self) -> None:
        """Makes the links, last: those that lead out of the folder, or stand below another link, are left out."""
        names = {relative for relative, _ in self.links}
        for relative, target in self.links:
            below = any(above in names for above in _above(relative))
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(relative), target))
            if (
                below
                or not target
                or target.startswith("/")
                or inner == ".."
                or inner.startswith("../")
                or "\0" in target
            ):
                continue
            os.symlink(target, self.parent(relative))  # noqa: PTH211
            self.kept += 1


def _inside(name: str) -> str | None:
    """The path below the archive's one folder, None for that folder itself and for what is outside of it."""
    parts = name.split("/")
    inner = [part for part in parts[1:] if part not in {"", "."}]
    if name.startswith("/") or ".." in parts or not inner or "\0" in name or inner[0] == ".git":
        return None
    return "/".join(inner)


def _above(relative: str) -> Iterator[str]:
    while relative := posixpath.dirname(relative):
        yield relative
