from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.artifacts.descriptors import open_descriptors

from runner_e2e.artifacts import sealed
from runner_e2e.artifacts.launch import prepare
from runner_e2e.artifacts.opening import open_artifact
from runner_e2e.artifacts.sealed import digest_of, is_sealed_memory, snapshot, supported_seals
from runner_e2e.errors import CommandNotExecutableError, LaunchError


def artifact(folder: Path, content: bytes, name: str = "tool") -> Path:
    path = folder / name
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def copied(path: Path, expected: str) -> int:
    opened = open_artifact(str(path))
    try:
        return snapshot(opened, expected)
    finally:
        opened.close()


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (5 << 20) + 123])
def test_a_snapshot_holds_the_whole_file(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    descriptor = copied(artifact(tmp_path, content), digest(content))
    try:
        assert os.pread(descriptor, size + 1, 0) == content
        assert digest_of(descriptor) == digest(content)
        assert is_sealed_memory(descriptor)
        assert os.fstat(descriptor).st_mode & 0o777 == 0o555
        assert not os.get_inheritable(descriptor)
        assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    finally:
        os.close(descriptor)


@given(size=st.integers(0, 70), piece=st.integers(1, 5))
def test_pieces_never_matter(tmp_path_factory: pytest.TempPathFactory, size: int, piece: int) -> None:
    content = os.urandom(size * 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "_CHUNK", piece * mmap.ALLOCATIONGRANULARITY)
        descriptor = copied(artifact(tmp_path_factory.mktemp("a"), content), digest(content))
    assert os.pread(descriptor, len(content) + 1, 0) == content
    os.close(descriptor)


def test_no_descriptor_and_no_thread_is_left(tmp_path: Path) -> None:
    path = artifact(tmp_path, b"x" * 10_000_000)
    descriptors, threads = open_descriptors(), set(threading.enumerate())
    os.close(copied(path, digest(b"x" * 10_000_000)))
    with pytest.raises(LaunchError):
        copied(path, "0" * 64)
    assert open_descriptors() <= descriptors
    assert set(threading.enumerate()) <= threads


def test_every_change_of_one_bit_is_refused(tmp_path: Path) -> None:
    content = os.urandom(300)
    expected = digest(content)
    for position in range(0, len(content), 37):
        changed = bytearray(content)
        changed[position] ^= 1
        with pytest.raises(LaunchError, match="refused"):
            copied(artifact(tmp_path, bytes(changed)), expected)


@pytest.mark.parametrize("change", ["shorter", "longer", "written"])
def test_a_file_that_changes_while_it_is_copied_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    content = b"a" * (6 << 20)
    path = artifact(tmp_path, content)
    original = os.sendfile
    pending = [True]

    def send(target: int, source: int, offset: int, length: int) -> int:
        if pending:
            pending.clear()
            with path.open("r+b") as file:
                if change == "shorter":
                    file.truncate(5 << 20)
                else:
                    file.seek(0, os.SEEK_END if change == "longer" else os.SEEK_SET)
                    file.write(b"b")
        return original(target, source, offset, length)

    monkeypatch.setattr(os, "sendfile", send)
    with pytest.raises(LaunchError) as caught:
        copied(path, digest(content))
    assert "while it was copied" in caught.value.problem.why


@pytest.mark.parametrize(
    ("number", "text"), [(errno.EIO, "cannot be read to its end"), (errno.ENOSPC, "cannot be copied into memory")]
)
def test_a_copy_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, text: str) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sendfile", fail)
    with pytest.raises(LaunchError, match=text):
        copied(artifact(tmp_path, b"content"), digest(b"content"))


def test_a_user_who_may_start_no_thread_waits_a_little_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    content = os.urandom(5 << 20)
    descriptor = copied(artifact(tmp_path, content), digest(content))
    assert digest_of(descriptor) == digest(content)
    os.close(descriptor)


def test_kernels_without_the_newest_flags_and_seals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, control = os.memfd_create, fcntl.fcntl

    def old_create(name: str, flags: int = 1) -> int:
        if flags & ~3:
            raise OSError(errno.EINVAL, "Invalid argument")
        return create(name, flags)

    def old_control(descriptor: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_ADD_SEALS and argument & ~0x0F:
            raise OSError(errno.EINVAL, "Invalid argument")
        return control(descriptor, command, argument)

    monkeypatch.setattr(os, "memfd_create", old_create)
    monkeypatch.setattr(fcntl, "fcntl", old_control)
    descriptor = copied(artifact(tmp_path, b"content"), digest(b"content"))
    assert control(descriptor, fcntl.F_GET_SEALS) & 0x0F == 0x0F
    assert supported_seals()[1] == 0x0F
    assert is_sealed_memory(descriptor)
    os.close(descriptor)


def test_memory_files_that_must_not_be_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel answers under ``vm.memfd_noexec=2``."""

    def refuse(name: str, flags: int = 1) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "memfd_create", refuse)
    setting = tmp_path / "memfd_noexec"
    setting.write_text("2\n")
    monkeypatch.setattr(sealed, "_NOEXEC_SETTING", str(setting))
    with pytest.raises(CommandNotExecutableError) as caught:
        copied(artifact(tmp_path, b"content"), digest(b"content"))
    assert "vm.memfd_noexec is 2" in caught.value.problem.why


def test_systems_without_memory_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(LaunchError) as caught:
        copied(artifact(tmp_path, b"content"), digest(b"content"))
    assert caught.value.problem.fix == "run this on Linux"


def test_ordinary_and_half_sealed_files_are_no_sealed_memory(tmp_path: Path) -> None:
    path = artifact(tmp_path, b"content", "memfd:tool (deleted)")
    descriptor = os.open(path, os.O_RDONLY)
    assert not is_sealed_memory(descriptor)
    path.unlink()
    assert not is_sealed_memory(descriptor)
    os.close(descriptor)
    for seals in (None, 0, 1, 8, 14):
        memory = os.memfd_create("tool", os.MFD_ALLOW_SEALING if seals is not None else 0)
        if seals:
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
        assert not is_sealed_memory(memory)
        os.close(memory)


def test_an_unlinked_file_of_a_tmpfs_is_no_sealed_memory() -> None:
    path = Path("/dev/shm") / f"runner-e2e-test-{os.getpid()}"
    path.write_bytes(b"content")
    descriptor = os.open(path, os.O_RDONLY)
    path.unlink()
    assert not is_sealed_memory(descriptor)
    os.close(descriptor)


def test_long_and_odd_names(tmp_path: Path) -> None:
    for name in ("n" * 250, "ü" * 120, "a\nb", os.fsdecode(b"\xff\xfe")):
        with prepare(str(artifact(tmp_path, b"content", name)), sha256=digest(b"content")) as launch:
            assert launch.how == "sealed-snapshot"
            assert launch.memory == 7
