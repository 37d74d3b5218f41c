"""Archives of repositories: what is kept, what is refused, and that nothing is written elsewhere."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner_e2e.errors import GitHubError
from runner_e2e.remote.archive import ArchiveLimits, unpack

NOISE = random.Random(1).randbytes(3000).replace(b"\0", b"1")

Entry = tuple[str, "bytes | str"]
"""A name with the bytes of a file, or the target of a symbolic link."""


def archive(*entries: Entry, root: str = "org-repo-0123456/") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as made:
        folder = tarfile.TarInfo(root)
        folder.type = tarfile.DIRTYPE
        made.addfile(folder)
        for name, content in entries:
            member = tarfile.TarInfo(name if name.startswith("!") else root + name)
            member.name = member.name.removeprefix("!")
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                made.addfile(member)
            else:
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
    return out.getvalue()


def unpacked(folder: Path, data: bytes, limits: ArchiveLimits | None = None) -> dict[str, str]:
    """Paths below *folder* with their content, or ``-> target``."""
    folder.mkdir(exist_ok=True)
    count = unpack(io.BytesIO(data), folder, name="org/repo", limits=limits)
    found = {}
    for above, folders, files in os.walk(folder):
        for path in (Path(above, name) for name in (*files, *folders)):
            if path.is_dir() and not path.is_symlink():
                continue
            relative = os.path.relpath(path, folder)
            if path.is_symlink():
                found[relative] = f"-> {path.readlink()}"
            else:
                found[relative] = path.read_text("utf-8")
    assert count == len(found)
    return found


def test_text_files_and_links_inside_are_kept(tmp_path: Path) -> None:
    data = archive(
        (".github/workflows/w.yml", b"on: push\n"),
        ("a/ü b", "é".encode()),
        ("empty", b""),
        ("link", ".github/workflows/w.yml"),
        ("a/up", "../empty"),
        ("image", b"\x89PNG\0"),
        ("large", b"x" * 101),
        (".git/config", b"x"),
    )
    assert unpacked(tmp_path / "r", data, ArchiveLimits(file=100)) == {
        ".github/workflows/w.yml": "on: push\n",
        "a/ü b": "é",
        "empty": "",
        "link": "-> .github/workflows/w.yml",
        "a/up": "-> ../empty",
    }


def everything_else(tmp_path: Path) -> set[str]:
    return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "r")}


@pytest.mark.parametrize(
    "entries",
    [
        [("../../evil", b"x")],
        [("a/../../../evil", b"x")],
        [("!/tmp/evil", b"x")],
        [("!../evil", b"x")],
        [("!evil", b"x")],
        [("link", "/etc"), ("other", "../../etc"), ("third", "a/../../..")],
        [("link", ".."), ("link/evil", b"x")],
        [("link", "/"), ("link/tmp/evil", b"x")],
        [("inner", "."), ("inner/up", "..")],
    ],
)
def test_nothing_leaves_the_folder(tmp_path: Path, entries: list[Entry]) -> None:
    found = {}
    with suppress(GitHubError):
        found = unpacked(tmp_path / "r", archive(*entries))
    assert everything_else(tmp_path) == set()
    root = os.path.realpath(tmp_path / "r")
    for name in found:
        assert os.path.realpath(tmp_path / "r" / name).startswith(root)


names = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c"]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(names, st.one_of(st.just(b"x"), names, names.map(lambda name: f"/{name}"))), max_size=6))
def test_no_archive_leaves_the_folder(entries: list[Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tmp_path = Path(folder).resolve()
        (tmp_path / "r").mkdir()
        with suppress(GitHubError):
            unpack(io.BytesIO(archive(*entries)), tmp_path / "r", name="org/repo")
        assert everything_else(tmp_path) == set()
        root = str(tmp_path / "r")
        for path in (tmp_path / "r").rglob("*"):
            if path.is_symlink() and path.exists():  # one that leads to itself does not
                assert f"{os.path.realpath(path)}/".startswith(f"{root}/")


def test_special_files_are_left_out(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.LNKTYPE):
            member = tarfile.TarInfo("root/special")
            member.type, member.linkname = kind, "/etc/passwd"
            made.addfile(member)
    assert unpacked(tmp_path / "r", out.getvalue()) == {}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_cut_or_damaged_archive_is_refused(data: st.DataObject) -> None:
    whole = archive(("a", NOISE), ("b", b"x" * 600))
    if data.draw(st.booleans()):
        broken = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        at = data.draw(st.integers(10, len(whole) - 1))
        broken = whole[:at] + bytes([whole[at] ^ (1 << data.draw(st.integers(0, 7)))]) + whole[at + 1 :]
    with tempfile.TemporaryDirectory() as folder, pytest.raises(GitHubError, match="cut or damaged"):
        unpack(io.BytesIO(broken), Path(folder), name="org/repo")


@pytest.mark.parametrize("data", [b"<html>", gzip.compress(b"no tar" * 200), b""], ids=["html", "no-tar", "empty"])
def test_another_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(GitHubError, match="the archive of org/repo is cut or damaged"):
        unpacked(tmp_path / "r", data)


def test_two_entries_for_one_path_are_refused(tmp_path: Path) -> None:
    for number, entries in enumerate(
        ([("a", b"x"), ("a", b"y")], [("a", b"x"), ("a/b", b"y")], [("a/b", b"x"), ("a", b"")])
    ):
        with pytest.raises(GitHubError, match="cut or damaged"):
            unpacked(tmp_path / str(number), archive(*entries))


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        (ArchiveLimits(packed=500), "its archive is larger"),
        (ArchiveLimits(unpacked=20_000), "MiB of files"),
        (ArchiveLimits(entries=3), "more than 3 files"),
    ],
)
def test_limits(tmp_path: Path, limits: ArchiveLimits, part: str) -> None:
    entries = [(str(number), NOISE[number * 50 :][:2000] + b"x" * 3000) for number in range(10)]
    with pytest.raises(GitHubError) as caught:
        unpacked(tmp_path / "r", archive(*entries), limits)
    assert "org/repo is too large" in str(caught.value)
    assert part in caught.value.problem.why
    assert "clone it" in caught.value.problem.fix


def test_a_bomb_stops_before_it_fills_the_disk(tmp_path: Path) -> None:
    bomb = archive(("zeros", b"0" * (50 << 20)))
    assert len(bomb) < 100_000
    with pytest.raises(GitHubError, match="too large"):
        unpacked(tmp_path / "r", bomb, ArchiveLimits(unpacked=1 << 20))
