from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.codex.activity import LARGEST_RECORD, ActivityChannel, Record
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[ActivityChannel]:
    with ActivityChannel(tmp_path / "activity") as made:
        yield made
    assert not made.root.exists()


def record(channel: ActivityChannel, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [channel.helper, *arguments], env=variables, capture_output=True, text=True, timeout=120, check=False
    )


def context(channel: ActivityChannel) -> bytes:
    return channel.descriptor.read_bytes().split(b"\n")[3]


def put(channel: ActivityChannel, content: bytes) -> None:
    with channel.endpoint.open("wb", buffering=0) as stream:
        stream.write(content)


def reasons(channel: ActivityChannel) -> list[str]:
    return [rejection.reason for rejection in channel.rejections]


def test_what_the_helper_writes_arrives_exactly(channel: ActivityChannel) -> None:
    texts = ["begun", "größer “so”", "  two  spaces ", "$HOME `id` \\n %s", "-n", ""]
    for text in texts:
        done = record(channel, "progress", text, PATH="/usr/bin:/bin")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert channel.read(5) == [Record(kind="progress", text=text) for text in texts]
    assert channel.rejections == []


def test_the_helper_needs_no_program_but_the_shell(channel: ActivityChannel) -> None:
    assert record(channel, "progress", "alone", PATH="/nonexistent").returncode == 0
    assert channel.read(5) == [Record(kind="progress", text="alone")]


def test_records_of_many_programs_stay_whole(channel: ActivityChannel) -> None:
    texts = [f"{number}:" + "x" * 3000 for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(record, channel, "progress", text, PATH="/usr/bin:/bin") for text in texts]
        seen: list[Record] = []
        deadline = time.monotonic() + 120
        while len(seen) < len(texts) and time.monotonic() < deadline:
            seen += channel.read(0.2)
    assert [one.result().returncode for one in done] == [0] * len(texts)
    assert sorted(one.text for one in seen) == sorted(texts)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "usage"),
        (["progress"], 2, "usage"),
        (["Progress", "x"], 2, "KIND"),
        (["", "x"], 2, "KIND"),
        (["progress", "two\nlines"], 2, "one line"),
        (["progress", "a\ttab"], 2, "one line"),
        (["progress", "x" * LARGEST_RECORD], 2, "longer"),
        (["progress", "ü" * (LARGEST_RECORD // 2)], 2, "longer"),
    ],
)
def test_the_helper_refuses_what_is_no_record(
    channel: ActivityChannel, arguments: list[str], status: int, words: str
) -> None:
    done = record(channel, *arguments, PATH="/usr/bin:/bin", LANG="C.UTF-8")
    assert (done.returncode, words in done.stderr) == (status, True)
    assert channel.read() == []


def test_the_helper_says_when_there_is_no_channel(channel: ActivityChannel) -> None:
    channel.endpoint.unlink()
    done = record(channel, "progress", "x", PATH="/usr/bin:/bin")
    assert (done.returncode, "there is no channel" in done.stderr) == (3, True)
    channel.descriptor.unlink()
    done = record(channel, "progress", "x", PATH="/usr/bin:/bin")
    assert (done.returncode, "descriptor" in done.stderr) == (3, True)


def test_the_authority_rotates_and_an_old_one_is_stale(channel: ActivityChannel) -> None:
    old = context(channel)
    channel.rotate()
    assert context(channel) != old
    put(channel, old + b"\tprogress\tfrom before\n" + context(channel) + b"\tprogress\tnow\n")
    assert channel.read(5) == [Record(kind="progress", text="now")]
    assert reasons(channel) == ["a record has a stale authority"]


def test_a_record_that_was_on_its_way_when_the_authority_rotated_is_rejected(channel: ActivityChannel) -> None:
    assert record(channel, "progress", "late", PATH="/usr/bin:/bin").returncode == 0
    channel.rotate()
    assert channel.read(5) == []
    assert reasons(channel) == ["a record has a stale authority"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed"),
        (b"progress", "malformed"),
        (b"\tprogress", "malformed"),
        (b"\tPROGRESS\tx", "malformed"),
        (b"\tprogress\tx\ty", "malformed"),
        (b"\tprogress\t\x1b[31m", "malformed"),
        (b"\tprogress\t\xff", "not UTF-8"),
        (b"\t" + b"k" * 65 + b"\tx", "malformed"),
        (b"\tprogress\t" + b"x" * LARGEST_RECORD, "longer than 4096 bytes"),
    ],
)
def test_malformed_and_oversized_records_are_rejected_and_the_next_one_is_read(
    channel: ActivityChannel, body: bytes, reason: str
) -> None:
    put(channel, context(channel) + body + b"\n" + context(channel) + b"\tprogress\tnext\n")
    assert channel.read(5) == [Record(kind="progress", text="next")]
    assert len(channel.rejections) == 1
    assert reason in reasons(channel)[0]


def test_a_flood_without_a_line_end_is_held_in_bounds(channel: ActivityChannel) -> None:
    for _ in range(50):
        put(channel, b"x" * 60_000)
        assert channel.read(1) == []
        assert len(channel._buffer) < 2 * LARGEST_RECORD
    put(channel, b"\n" + context(channel) + b"\tprogress\tafter\n")
    assert channel.read(5) == [Record(kind="progress", text="after")]
    assert channel.rejected == 1


def test_a_flood_of_bad_records_is_counted_not_kept(channel: ActivityChannel) -> None:
    for _ in range(20):
        put(channel, b"bad\n" * 1000)
        channel.read(1)
    assert (channel.rejected, len(channel.rejections)) == (20_000, 100)


@given(st.lists(st.binary(min_size=1, max_size=5000), max_size=6))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    with ActivityChannel(tmp_path_factory.mktemp("a") / "activity") as channel:
        for piece in pieces:
            put(channel, piece)
            assert channel.read() == []


def replace_by_directory(channel: ActivityChannel) -> None:
    channel.endpoint.unlink()
    (channel.endpoint / "deep" / "er").mkdir(parents=True)
    (channel.endpoint / "deep").chmod(0)


def replace_by_link(channel: ActivityChannel) -> None:
    channel.endpoint.unlink()
    channel.endpoint.symlink_to(channel.root.parent)


def replace_the_directory(channel: ActivityChannel) -> None:
    channel.directory.rename(channel.root / "moved")
    channel.directory.symlink_to(channel.root.parent)


@pytest.mark.parametrize("replace", [replace_by_directory, replace_by_link, replace_the_directory, lambda _: None])
def test_cleanup_works_after_the_endpoint_was_replaced(tmp_path: Path, replace: object) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("x")
    channel = ActivityChannel(tmp_path / "activity")
    assert callable(replace)
    replace(channel)
    assert channel.read() == []
    channel.close()
    channel.close()
    assert sorted(tmp_path.iterdir()) == [kept]


def test_another_fifo_at_the_endpoint_is_not_listened_to(channel: ActivityChannel) -> None:
    channel.endpoint.unlink()
    os.mkfifo(channel.endpoint)
    with os.fdopen(os.open(channel.endpoint, os.O_RDWR), "wb", buffering=0) as stream:
        stream.write(context(channel) + b"\tprogress\tforged\n")
        assert channel.read(0.1) == []


def test_a_place_that_is_taken_or_odd_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no activity channel can be made"):
        ActivityChannel(tmp_path)
    with pytest.raises(UsageError, match="cannot hold"):
        ActivityChannel(tmp_path / "a\nb")
