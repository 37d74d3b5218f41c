"""The pack of the cache: the digest of a file is the one of its content, whatever the system says about it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.file_clock import wait_for_the_next_tick

from runner_e2e.lint import pack as module
from runner_e2e.lint.cache import Cache
from runner_e2e.lint.linter import lint
from runner_e2e.lint.pack import COARSEST_TICK, Pack, read_whole, remove, replace_file

LATER = 60 * 10**9
WORKFLOW = "on: push\njobs: {a: {runs-on: x, steps: [{run: 'TOOL ${{ github.token }}'}]}}\n"
SCRIPT = "on: push\njobs: {a: {runs-on: x, steps: [{run: ./s.sh, env: {T: '${{ github.token }}'}}]}}\n"


def later() -> int:
    """A clock by which files of a test are old."""
    return time.time_ns() + LATER


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def packed(folder: Path, path: Path) -> Pack:
    """A pack that knows the file at *path*, read from its own file."""
    first = Pack(str(folder / "p.pack"), clock=later)
    assert first.digest(str(path)) == digest_of(path.read_text())
    first.write()
    return Pack(str(folder / "p.pack"), clock=later)


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are not opened any more."""

    def refuse(*_: object) -> None:
        raise AssertionError("a file was read that did not change")

    monkeypatch.setattr(module, "open", refuse, raising=False)


def test_a_file_that_did_not_change_is_not_read_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "a").write_text("one")
    pack = packed(tmp_path, tmp_path / "a")
    request.getfixturevalue("no_reading")
    assert pack.digest(str(tmp_path / "a")) == digest_of("one")


def test_a_change_is_seen_whatever_the_times_say(tmp_path: Path) -> None:
    """The same size, and the same time of writing put back: the time of the change is another."""
    path = tmp_path / "a"
    path.write_text("one")
    status = path.stat()
    pack = packed(tmp_path, path)
    wait_for_the_next_tick(tmp_path)
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert pack.digest(str(path)) == digest_of("two")


def test_another_file_of_the_same_times_and_size_is_another(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("one")
    other.write_text("two")
    pack = packed(tmp_path, path)
    other.replace(path)
    assert pack.digest(str(path)) == digest_of("two")
    path.unlink()
    assert pack.digest(str(path)) == ""
    path.symlink_to(tmp_path / "p.pack")
    assert pack.digest(str(path)) == hashlib.sha256((tmp_path / "p.pack").read_bytes()).hexdigest()


def test_a_file_that_changed_within_the_tick_of_a_clock_is_read_again(tmp_path: Path) -> None:
    """Its content may change once more without another time: nothing that the system says would tell."""
    path = tmp_path / "a"
    path.write_text("one")
    changed = path.stat().st_ctime_ns
    for seen, kept in (
        (changed - 1, False), (changed, False), (changed + COARSEST_TICK, False), (changed + COARSEST_TICK + 1, True),
    ):  # fmt: skip
        place = str(tmp_path / "p.pack")
        pack = Pack(place, clock=lambda seen=seen: seen)  # type: ignore[misc]
        assert pack.digest(str(path)) == digest_of("one")
        pack.write()
        assert Path(place).exists() is kept


def test_a_file_from_the_future_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    os.utime(tmp_path / "a", ns=(0, later() + LATER))
    Pack(str(tmp_path / "p.pack"), clock=later).digest(str(tmp_path / "a"))
    pack = packed(tmp_path, tmp_path / "a")
    assert not (tmp_path / "p.pack").exists()
    assert pack.digest(str(tmp_path / "a")) == digest_of("one")


def test_where_times_say_less_every_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMES_TELL", False)
    (tmp_path / "a").write_text("one")
    packed(tmp_path, tmp_path / "a")
    assert not (tmp_path / "p.pack").exists()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["one", "two", "three", "-", "back", "link"]), max_size=8))
def test_whatever_is_done_to_a_file_its_digest_is_that_of_its_content(
    tmp_path_factory: pytest.TempPathFactory, changes: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("p")
    path = folder / "a"
    (folder / "target").write_text("linked")
    for change in changes:
        status = path.stat() if path.exists() else None
        wait_for_the_next_tick(folder)
        if change == "-":
            path.unlink(missing_ok=True)
        elif change == "link":
            path.unlink(missing_ok=True)
            path.symlink_to("target")
        elif change == "back" and status is not None:
            path.write_text("x" * status.st_size)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        elif change != "back":
            path.write_text(change)
        pack = Pack(str(folder / "p.pack"), clock=later)
        assert pack.digest(str(path)) == (digest_of(path.read_text()) if path.exists() else "")
        pack.write()


# --- Entries, and the file.


def test_an_entry_is_found_by_file_and_name(tmp_path: Path) -> None:
    pack = Pack(str(tmp_path / "p.pack"))
    assert pack.entry("w.yml", "1") is None
    pack.keep("w.yml", "1", {"a": ["b"]})
    pack.write()
    pack = Pack(str(tmp_path / "p.pack"))
    assert pack.entry("w.yml", "1") == {"a": ["b"]}
    assert pack.entry("w.yml", "2") is None
    assert pack.entry("v.yml", "1") is None


def test_what_is_as_it_was_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    pack = packed(tmp_path, tmp_path / "a")
    before = (tmp_path / "p.pack").stat().st_ino
    pack.digest(str(tmp_path / "a"))
    pack.write()
    assert (tmp_path / "p.pack").stat().st_ino == before


def test_a_pack_that_grows_too_large_keeps_what_was_used(tmp_path: Path) -> None:
    path = str(tmp_path / "p.pack")
    pack = Pack(path)
    for number in range(10):
        pack.keep(f"{number}.yml", "1", "x" * 100)
    pack.write()
    pack = Pack(path)
    assert pack.entry("3.yml", "1")
    pack.keep("new.yml", "1", "y" * 100)
    pack.write(1000)
    pack = Pack(path)
    assert [number for number in range(10) if pack.entry(f"{number}.yml", "1")] == [3]
    assert pack.entry("new.yml", "1") == "y" * 100
    pack.keep("large.yml", "1", "z" * 1000)
    pack.write(1000)
    assert Pack(path).entry("new.yml", "1") == "y" * 100


@pytest.mark.parametrize(
    "data",
    [
        [], {}, 1, None, {"digests": []}, {"digests": {}, "entries": []}, {"digests": {"a": 1}, "entries": {}},
        {"digests": {"a": []}, "entries": {}}, {"digests": {}, "entries": {"a": [1]}},
    ],
)  # fmt: skip
def test_a_pack_of_another_form_counts_as_none(tmp_path: Path, data: object) -> None:
    (tmp_path / "a").write_text("one")
    assert replace_file(str(tmp_path / "p.pack"), data)
    pack = Pack(str(tmp_path / "p.pack"), clock=later)
    assert pack.digest(str(tmp_path / "a")) == digest_of("one")
    assert pack.entry("a", "1") is None


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_damaged_pack_counts_as_none(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("p") / "p.pack"
    pack = Pack(str(path))
    pack.keep("w.yml", "1", ["whole"])
    pack.write()
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    path.write_bytes(content)
    assert Pack(str(path)).entry("w.yml", "1") is None
    with pytest.raises(ValueError, match="damaged"):
        read_whole(str(path))


def test_a_folder_that_is_gone_costs_nothing_but_time(tmp_path: Path) -> None:
    assert not replace_file(str(tmp_path / "gone" / "p.pack"), {})
    remove([str(tmp_path / "gone" / "p.pack")])


# --- In the cache.


def lints(root: Path, folder: Path) -> Cache:
    """A lint with the cache in *folder*, which says what one without it says."""
    folder.mkdir(exist_ok=True)
    cache = Cache(folder, signature="", started=time.time() + 60, clock=later)
    assert lint([], current=root, cache=cache) == lint([], current=root)
    return cache


def repository(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / ".github" / "workflows" / "w.yml").write_text(WORKFLOW)
    (root / ".github" / "workflows" / "s.yml").write_text(SCRIPT)
    (root / "s.sh").write_text("#!/bin/bash\ntrue\n")
    return root


def test_what_was_found_is_packed_and_found_in_the_pack(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    counts = [(cache.found, cache.packed, cache.written) for _ in range(3) if (cache := lints(root, tmp_path / "c"))]
    assert counts == [(0, 0, 2), (2, 0, 0), (2, 2, 0)]
    for path in (tmp_path / "c").glob("*.json"):
        path.unlink()
    assert lints(root, tmp_path / "c").packed == 2


def test_a_script_that_changes_is_analysed_again_each_time(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for number in range(3):
        for _ in range(3):
            cache = lints(root, tmp_path / "c")
        assert (cache.found, cache.packed) == (2, 2)
        wait_for_the_next_tick(tmp_path)
        (root / "s.sh").write_text(f"#!/bin/bash\ncurl {number}\n")
        cache = lints(root, tmp_path / "c")
        assert (cache.found, cache.packed, cache.written) == (1, 1, 1)


def test_packs_of_other_folders_and_programs_are_others(tmp_path: Path) -> None:
    for _ in range(3):
        for name in ("r", "s"):
            root = tmp_path / name
            lints(root if root.exists() else repository(root), tmp_path / "c")
    assert len(list((tmp_path / "c").glob("*.pack"))) == 2
    cache = Cache(tmp_path / "c", signature="another", started=time.time() + 60, clock=later)
    lint([], current=tmp_path / "r", cache=cache)
    assert (cache.found, cache.packed) == (0, 0)


def test_names_that_are_no_text_are_packed(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    name = os.fsdecode(b"\xff.yml")
    try:
        (root / ".github" / "workflows" / name).write_text(WORKFLOW)
    except OSError:
        pytest.skip("this file system takes no such names")
    for _ in range(3):
        cache = lints(root, tmp_path / "c")
    assert cache.packed == 3
    (pack,) = (tmp_path / "c").glob("*.pack")
    assert f".github/workflows/{name}" in json.loads(pack.read_bytes().partition(b"\n")[2])["entries"]


# --- What is no ordinary file, and what times do not tell.


def test_where_times_are_whole_seconds_every_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In images that are built again, files have the same numbers, sizes and times as the ones before."""
    path = tmp_path / "a"
    path.write_text("one")
    images = [
        os.stat_result((0o100644, 7, 1, 1, 0, 0, 3, 0, 0, 0, 0.0, 0.0, 0.0, *times)) for times in ((0, 0, 0),) * 2
    ]
    monkeypatch.setattr(os, "fstat", lambda _: images[0])
    monkeypatch.setattr(os, "stat", lambda _: images[1])
    assert packed(tmp_path, path).digest(str(path)) == digest_of("one")
    path.write_text("two")
    assert Pack(str(tmp_path / "p.pack"), clock=later).digest(str(path)) == digest_of("two")


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "."])
def test_what_is_no_ordinary_file_is_not_read(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    os.mkfifo(tmp_path / "pipe")
    pack = Pack(str(tmp_path / "p.pack"), clock=later)
    request.getfixturevalue("no_reading")
    assert pack.digest(str(tmp_path / name)) == ""


def test_a_pipe_is_linted_as_what_comes_out_of_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, WORKFLOW.encode())
    os.close(writing)
    try:
        report = lint([Path(f"/dev/fd/{reading}")], current=tmp_path, cache=Cache(tmp_path, signature=""))
    finally:
        os.close(reading)
    assert [finding.rule for finding in report.findings] == ["secret-argv"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_away_has_no_pack(tmp_path: Path) -> None:
    for number in range(3):
        root = repository(tmp_path / str(number))
        cache = Cache(tmp_path, signature="", started=time.time() + 60, clock=later)
        lint([], current=root, label="org/name:", cache=cache)
        assert cache.found == (2 if number else 0)
    assert list(tmp_path.glob("*.pack")) == []


def test_packs_take_no_more_room_than_the_cache_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder has its own, and one where everything is found writes nothing else."""
    monkeypatch.setattr(Cache.shrink, "__defaults__", (20_000,))
    for number in range(12):
        root = repository(tmp_path / "r" / str(number))
        cache = Cache(tmp_path, signature="", started=time.time() + 60, clock=later)
        lint([], current=root, cache=cache)
        lint([], current=root, cache=cache)
    assert 0 < sum(path.stat().st_size for path in tmp_path.iterdir() if path.is_file()) < 20_000
