"""The edge of every verb: readers that leave, full disks, closed streams, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from runner_e2e.cli import group, main
from runner_e2e.cli.group import COMMANDS, LINUX_ONLY, runner_e2e

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-c", "import sys; from runner_e2e.cli import main; sys.exit(main())"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def start(*arguments: str, **streams: object) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *arguments], env=ENVIRONMENT, text=True, **streams)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(("verb", "status"), [("lint", 4), ("run", 4), ("sandbox", 125), ("audit", 125)])
def test_what_nobody_foresaw_is_a_defect_and_no_finding(
    verb: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str]) -> int:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr(group, "run", fail)
    assert main([verb, "--unknown"]) == status
    error = capsys.readouterr().err
    assert "ZeroDivisionError: unforeseen" in error
    assert error.endswith("runner-e2e: this is a defect of runner-e2e\n  fix: report it, with the lines above\n")


def test_a_reader_who_leaves_is_no_finding() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start("lint", "--list-rules", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert process.communicate()[1] == ""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lnt",), "No such command 'lnt'. Did you mean 'lint'?"),
        (("dispatch", "satrt"), "No such command 'satrt'. Did you mean 'start'?"),
        (("zzz",), "No such command 'zzz'.\n"),
    ],
)
def test_a_mistyped_command_is_told_with_the_nearest_ones(arguments: tuple[str, ...], said: str) -> None:
    process = start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, told = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert said in told


@pytest.mark.parametrize("arguments", [("lint", "--list-rules"), ("--help",), ("lint", "--help")])
def test_output_that_finds_no_room_is_one_message(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        process = start(*arguments, stdout=full, stderr=subprocess.PIPE)
        errors = process.communicate()[1]
    assert errors == "runner-e2e: cannot write the output\n  why: No space left on device\n"
    assert process.returncode == 2


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_status(closed: str, tmp_path: Path) -> None:
    line = f'exec "$@" {closed}'
    command = ["sh", "-c", line, "sh", *PROGRAM, "lint", "--list-rules"]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [("lint",), ("lint", "--jobs", "1"), ("doctor",)])
def test_a_folder_that_is_gone_is_one_message(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *PROGRAM, *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = "runner-e2e: the current folder is not there any more\n  fix: go to one that is\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


WORKFLOW = "on: push\njobs: {a: {runs-on: x, steps: [{run: 'tool ü…\U0001f511 ${{ github.token }}'}]}}\n"


@pytest.mark.parametrize("arguments", [(), ("--jobs=1",)], ids=["plain", "click"])
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
def test_what_a_screen_does_not_have_is_escaped(encoding: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "ü…\U0001f511.yml").write_text(WORKFLOW)
    said = []
    for name in (encoding, "utf-8"):
        command = [*PROGRAM, "lint", "--no-cache", "--no-actionlint", "--format=json", *arguments, "."]
        environment = {**ENVIRONMENT, "PYTHONIOENCODING": name}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")
        # click takes a screen that says ASCII for one that was not set up.
        said.append(json.loads(done.stdout.decode("utf-8" if name == "ascii" else name)))
    assert said[0] == said[1]
    assert said[0]["findings"][0]["path"] == "ü…\U0001f511.yml"


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("lint", "--help")])
def test_help_is_no_failure(arguments: tuple[str, ...]) -> None:
    process = start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert out


@pytest.mark.parametrize("system", ["darwin", "win32"])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("run", "--local", "--all"), 3),
        (("sandbox", "exec", "--", "true"), 125),
        (("audit", "--", "true"), 125),
        (("cells", "list"), 0),
        (("lint", "--no-actionlint", "--no-cache", ".github/workflows"), 0),
    ],
)
def test_other_systems_get_what_needs_no_linux(system: str, arguments: tuple[str, ...], status: int) -> None:
    """What Linux alone has is not there, nor what Windows lacks of the standard library."""
    elsewhere = (
        "import os, sys, subprocess, click\n"
        f"sys.platform = {system!r}\n"
        "for name in ('fcntl', 'grp', 'pty', 'pwd', 'resource', 'termios', 'tty'):\n    sys.modules[name] = None\n"
        "for name in ('memfd_create', 'pidfd_open', 'sched_getaffinity', 'setns', 'unshare'):\n"
        "    vars(os).pop(name, None)\n"
        "from runner_e2e.cli import main\nsys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", elsewhere, *arguments],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert bool(done.stdout) is (status == 0)
    assert ("works on Linux alone" in done.stderr) is (arguments[0] in LINUX_ONLY)


def test_an_interrupt_leaves_no_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "w.yml"
    os.mkfifo(fifo)
    process = start("lint", str(fifo), "--no-actionlint", "--no-cache", stderr=subprocess.PIPE, cwd=tmp_path)
    with fifo.open("w"):  # waits until the lint reads
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert "Traceback" not in errors
    assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("verb", COMMANDS)
def test_no_line_in_a_list_of_commands_is_cut(verb: str) -> None:
    group = runner_e2e.get_command(click.Context(runner_e2e), verb)
    assert group is not None
    for command in getattr(group, "commands", {}).values():
        assert not command.get_short_help_str(limit=80 - len("  planning-read-only  ")).endswith("..."), command.name


def every_command(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The contexts of a command and of all beneath it."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every_command(below, click.Context(below, info_name=name, parent=context))


def test_every_help_fits_the_page() -> None:
    top = click.Context(runner_e2e, info_name="runner-e2e", max_content_width=80, terminal_width=80)
    helps = {context.command_path: context.get_help() for context in every_command(runner_e2e, top)}
    assert len(helps) > 30
    wide = [(path, line) for path, text in helps.items() for line in text.splitlines() if len(line) > 80]
    assert wide == []
    assert [path for path, text in helps.items() if "\\b" in text or "\b" in text] == []


def test_a_process_that_ends_looks_for_no_garbage() -> None:
    script = """
import gc, sys
from runner_e2e.cli import main
sys.argv[1:] = ["lint", "--explain", "confidential-argv"]
main(sys.argv[1:])
called = gc.get_freeze_count()
main()
print(called, gc.get_freeze_count() > 10_000)
"""
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (0, "0 True", "")
