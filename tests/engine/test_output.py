"""What a harness prints is redacted, bounded and harmless, whatever it prints."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from runner_e2e.engine.output import LINE_LIMIT, TAIL, OutputSink, printable
from runner_e2e.redact import Redactor
from runner_e2e.report.results import Output

SECRET = "sk-secret-value"


def sink(path: Path, lines: list[str] | None = None, **limits: int) -> OutputSink:
    return OutputSink(path, Redactor([SECRET]), None if lines is None else lines.append, **limits)


def test_log_and_relay_are_redacted_over_chunk_borders(tmp_path: Path) -> None:
    lines: list[str] = []
    output = sink(tmp_path / "log", lines)
    for chunk in (b"one sk-sec", b"ret-value\ntw", b"o\r\nprogress 1\rprogress 2\nlast"):
        output.take(chunk)
    assert output.close() == Output(bytes=51, dropped_bytes=0)
    assert (tmp_path / "log").read_bytes() == b"one ***\ntwo\r\nprogress 1\rprogress 2\nlast"
    assert lines == ["one ***", "two", "progress 1", "progress 2", "last"]
    assert output.found == {SECRET}


def test_a_flood_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    lines: list[str] = []
    output = sink(tmp_path / "log", lines, log_limit=1000, relay_limit=1000)
    for number in range(20_000):
        output.take(b"line %07d\n" % number)
    result = output.close()
    log = (tmp_path / "log").read_text()
    assert result.bytes == 20_000 * 13
    assert log.startswith("line 0000000\nline 0000001\n")
    assert log.endswith("line 0019998\nline 0019999\n")
    assert f"[runner-e2e: {result.dropped_bytes:,} bytes left out here; the end follows]" in log
    assert len(log) - 66 <= result.bytes - result.dropped_bytes <= len(log)
    assert result.dropped_bytes > 20_000 * 13 - 1000 - TAIL - 65536
    assert len(lines) < 80
    assert lines[-1].startswith("[runner-e2e: the harness prints more than is relayed")


def test_memory_stays_bounded_without_line_ends(tmp_path: Path) -> None:
    lines: list[str] = []
    output = sink(tmp_path / "log", lines, log_limit=1000)
    for _ in range(100):
        output.take(b"x" * 10_000)
    assert len(output._line) <= LINE_LIMIT
    assert output._tail_size <= TAIL + 10_000
    output.close()
    assert max(map(len, lines)) <= LINE_LIMIT
    assert sum(map(len, lines)) == 1_000_000


def test_an_overflow_of_one_byte_loses_nothing(tmp_path: Path) -> None:
    output = sink(tmp_path / "log", log_limit=10)
    output.take(b"0123456789A")
    assert output.close() == Output(bytes=11, dropped_bytes=0)
    assert (tmp_path / "log").read_bytes() == b"0123456789A"


def test_a_full_disk_ends_the_log_not_the_attempt() -> None:
    lines: list[str] = []
    output = sink(Path("/dev/full"), lines)  # exclusive creation fails: as if the log could not be made
    output.take(b"still relayed\n")
    assert output.close() == Output(bytes=14, dropped_bytes=14)
    assert lines == ["still relayed"]
    assert "incomplete" in output.problem


def test_a_disk_that_fills_up_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = sink(tmp_path / "log")
    output.take(b"written\n")
    assert output._log is not None

    class Full:
        def write(self, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    output._log.close()
    monkeypatch.setattr(output, "_log", Full())
    output.take(b"lost\n")
    output.take(b"lost too\n")
    assert output.close() == Output(bytes=22, dropped_bytes=14)
    assert output.problem == "the harness's log is incomplete: No space left on device"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"tab\tstays", "tab\tstays"),
        (b"bell\x07", "bell\ufffd"),
        ("\u202egnp.exe".encode(), "\ufffdgnp.exe"),
        (b"\x9b31m \xff", "\ufffd31m \ufffd"),
        (b"\xc2\x9b31m", "\ufffd31m"),
        (b"\x1b", "\ufffd"),
    ],
)
def test_a_terminal_shows_lines_and_does_not_obey_them(raw: bytes, shown: str) -> None:
    assert printable(raw) == shown
