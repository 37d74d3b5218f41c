"""Copies an artifact into a sealed memory file and hashes exactly the bytes that it then holds.

A second thread copies inside the kernel while this one hashes what has arrived, through read-only maps of the memory
file itself. The digest is therefore that of the copy: what happens to the original meanwhile can only make it wrong.
"""

from __future__ import annotations

import errno
import fcntl
import os

from runner_e2e.errors import CommandNotExecutableError, DefectError, LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap

    from runner_e2e.artifacts.opening import Opened

__all__ = ["ALL_SEALS", "digest_of", "is_sealed_memory", "snapshot", "supported_seals"]

_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_EXEC, _MFD_NOEXEC_SEAL = 0x1, 0x2, 0x10, 0x8
_F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW, _F_SEAL_WRITE, _F_SEAL_FUTURE_WRITE, _F_SEAL_EXEC = 1, 2, 4, 8, 16, 32
_OLD_SEALS = _F_SEAL_SEAL | _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_WRITE
# Best first: `exec` came with Linux 6.3, `future write` with 5.1.
_SEALS = (_OLD_SEALS | _F_SEAL_FUTURE_WRITE | _F_SEAL_EXEC, _OLD_SEALS | _F_SEAL_FUTURE_WRITE, _OLD_SEALS)
ALL_SEALS = _SEALS[0]

_MODE = 0o555  # read and execute for everyone: an agent may run as another user than its launcher
_CHUNK = 2 << 20
_NAME_BYTES = 200  # the kernel takes 249
_NOEXEC_SETTING = "/proc/sys/vm/memfd_noexec"


def snapshot(artifact: Opened, sha256: str) -> int:
    """A read-only descriptor of a sealed copy of *artifact*, whose content hashes to *sha256* (64 hex digits, lower).

    Raises :class:`LaunchError` for another digest, a file that changes or cannot be read, and a host without memory
    files; :class:`CommandNotExecutableError` where the host lets no memory file be executed.
    """
    memory = _new_memory(os.path.basename(artifact.path))
    try:
        found = _copy_and_hash(artifact, memory)
        if found != sha256:
            raise LaunchError(
                f"{artifact.path} is refused",
                why=f"its SHA-256 is {found}, not {sha256}",
                fix="launch the file that the digest was made of, or update the digest after looking at what changed",
            )
        os.fchmod(memory, _MODE)
        _seal(memory)
        return os.open(f"/proc/self/fd/{memory}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(memory)


def digest_of(descriptor: int) -> str:
    """SHA-256 (hex) of the whole content of an open file. Raises :class:`OSError`."""
    import hashlib

    found, buffer, offset = hashlib.sha256(), bytearray(1 << 20), 0
    view = memoryview(buffer)
    while length := os.preadv(descriptor, [buffer], offset):
        found.update(view[:length])
        offset += length
    return found.hexdigest()


def supported_seals() -> tuple[int, int]:
    """The device of this kernel's memory files, and all seals that it knows."""
    probe = os.memfd_create("runner-e2e-probe", _MFD_CLOEXEC | _MFD_ALLOW_SEALING | _noexec_flag())
    try:
        return os.fstat(probe).st_dev, _seal(probe)
    finally:
        os.close(probe)


def is_sealed_memory(descriptor: int) -> bool:
    """Whether the open file is a memory file with every seal that this kernel knows.

    A name says nothing: memory files are told by the internal file system that they alone lie on.
    """
    device, seals = supported_seals()
    facts = os.fstat(descriptor)
    if facts.st_dev != device or facts.st_nlink != 0:
        return False
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & seals == seals
    except OSError:
        return False


def _noexec_flag() -> int:
    """Asks for a memory file that cannot be executed, which every setting of ``vm.memfd_noexec`` allows."""
    try:
        os.close(os.memfd_create("runner-e2e-probe", _MFD_CLOEXEC | _MFD_NOEXEC_SEAL))
    except OSError:
        return 0  # before Linux 6.3
    return _MFD_NOEXEC_SEAL


def _new_memory(name: str) -> int:
    label = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
    flags = _MFD_CLOEXEC | _MFD_ALLOW_SEALING
    try:
        return os.memfd_create(label, flags | _MFD_EXEC)
    except AttributeError:
        raise LaunchError(
            "no artifact can be launched here", why="sealed snapshots need Linux", fix="run this on Linux"
        ) from None
    except OSError as error:
        if error.errno == errno.EACCES:
            raise CommandNotExecutableError(
                "no snapshot can be executed on this host",
                why=f"vm.memfd_noexec is {_noexec_setting()}: executable memory files are refused",
                fix="as an administrator run: sysctl vm.memfd_noexec=1, or keep the artifact in a trusted launch root",
            ) from error
        if error.errno != errno.EINVAL:
            raise LaunchError("no memory file can be made", why=error.strerror or "", fix="free memory") from error
    return os.memfd_create(label, flags)  # before Linux 6.3 all memory files can be executed


def _noexec_setting() -> str:
    try:
        with open(_NOEXEC_SETTING, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "2"


def _seal(memory: int) -> int:
    for seals in _SEALS:
        try:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            continue
        return seals
    raise DefectError("a memory file cannot be sealed", why="the kernel knows none of the sets of seals")


def _copy_and_hash(artifact: Opened, memory: int) -> str:
    """Fills *memory* and returns the SHA-256 of what it holds."""
    import hashlib
    from queue import SimpleQueue
    from threading import Thread

    arrived: SimpleQueue[mmap | OSError | None] = SimpleQueue()

    def copy() -> None:
        try:
            _copy(artifact, memory, arrived.put)
        except OSError as error:
            arrived.put(error)
        else:
            arrived.put(None)

    copier = Thread(target=copy, name="artifact-copy")
    try:
        copier.start()
    except RuntimeError:  # this user may start no other thread: one after the other, then
        copy()
    found = hashlib.sha256()
    while (piece := arrived.get()) is not None:
        if isinstance(piece, OSError):
            raise _unreadable(artifact, piece) from piece
        with piece:
            found.update(piece)
    if copier.ident is not None:
        copier.join()
    if not artifact.unchanged() or os.fstat(memory).st_size != artifact.size:
        raise LaunchError(
            f"{artifact.path} is refused",
            why="it was written, replaced or removed while it was copied",
            fix="launch it when nothing writes it any more",
        )
    return found.hexdigest()


def _copy(artifact: Opened, memory: int, deliver: Callable[[mmap], None]) -> None:
    """Copies piece by piece and delivers a read-only map of each piece, filled in."""
    import mmap

    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    begin = 0
    while begin < artifact.size:
        end, position = min(begin + _CHUNK, artifact.size), begin
        while position < end:
            sent = os.sendfile(memory, artifact.descriptor, position, end - position)
            if sent == 0:
                return  # it became shorter; whoever hashes sees that
            position += sent
        deliver(mmap.mmap(memory, end - begin, flags, mmap.PROT_READ, offset=begin))
        begin = end


def _unreadable(artifact: Opened, error: OSError) -> LaunchError:
    if error.errno in {errno.ENOSPC, errno.ENOMEM}:
        return LaunchError(
            f"{artifact.path} cannot be copied into memory",
            why=f"there is no room for {artifact.size} bytes",
            fix="free memory, or keep the artifact in a trusted launch root",
        )
    return LaunchError(
        f"{artifact.path} cannot be read to its end",
        why=error.strerror or str(error),
        fix="the file or its file system is damaged: make it anew",
    )
