"""Lines of strace read back: every escape, both halves of a call, threads that exec, failures, namespaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.sandbox.strace_text import (
    ChildRecord,
    EndRecord,
    ExecRecord,
    Reader,
    Record,
    UnreadableRecord,
    environment_entries,
)


def read(*lines: str) -> list[Record]:
    reader = Reader()
    return [record for line in lines for record in reader.read(line.encode("latin-1"))]


def one_exec(*lines: str) -> ExecRecord:
    (record,) = [record for record in read(*lines) if isinstance(record, ExecRecord)]
    return record


def test_an_exec_with_every_kind_of_escape() -> None:
    found = one_exec(
        r'7     10.5 execve("/bin/a\"b\\c", ["x\n\t\v\f\r", "\377\0013\0", "", "], [\"\") = 0"], '
        r'["A=\303\244", "B="]) = 0'
    )
    assert found.program == b'/bin/a"b\\c'
    assert found.argv == (b"x\n\t\v\f\r", b"\xff\x013\x00", b"", b'], ["") = 0')
    assert environment_entries(found) == ("A=ä".encode(), b"B=")
    assert (found.pid, found.time, found.error, found.whole) == (7, 10.5, "", True)


def strace_quote(data: bytes) -> str:
    """What strace's string_quote does, as its manual describes: C escapes, octal as short as the next byte allows."""
    letters = {34: '\\"', 92: "\\\\", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v"}
    out = ""
    for at, byte in enumerate(data):
        following = data[at + 1 : at + 2]
        if byte in letters:
            out += letters[byte]
        elif 32 <= byte < 127:
            out += chr(byte)
        else:
            out += f"\\{byte:03o}" if following.isdigit() else f"\\{byte:o}"
    return f'"{out}"'


@given(st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\0", b""))), st.binary(max_size=30))
def test_any_bytes_come_back(arguments: list[bytes], value: bytes) -> None:
    listed = ", ".join(map(strace_quote, arguments))
    entry = b"V=" + value.replace(b"\0", b"")
    found = one_exec(f'1 2.0 execve("/x", [{listed}], [{strace_quote(entry)}]) = 0')
    assert found.argv == tuple(arguments)
    assert environment_entries(found) == (entry,)


def test_a_failed_exec_says_why() -> None:
    found = one_exec('1 2.0 execve("/x", ["x"], []) = -1 ENOENT (No such file or directory)')
    assert found.error == "ENOENT"


def test_an_interrupted_exec_is_joined() -> None:
    lines = [
        '5 1.0 execve("/x", ["x", "<unfinished ...>"], ["A=1"] <unfinished ...>',
        '6 1.1 execve("/y", ["y"], []) = 0',
        "5 1.2 <... execve resumed>) = -1 EACCES (Permission denied)",
    ]
    first, second = [record for record in read(*lines) if isinstance(record, ExecRecord)]
    assert (first.pid, second.pid, second.error, second.argv) == (6, 5, "EACCES", (b"x", b"<unfinished ...>"))


def test_a_thread_that_execs_takes_the_number_of_its_process() -> None:
    found = one_exec(
        '12 1.0 execve("/x", ["x"], [] <pid changed to 10 ...>',
        "10 1.1 +++ superseded by execve in pid 12 +++",
        "10 1.2 <... execve resumed>) = ?",
    )
    assert (found.pid, found.error) == (10, "")


def test_execveat_names_its_descriptor() -> None:
    assert one_exec('1 2.0 execveat(3</usr/bin/true>, "", ["t"], [], AT_EMPTY_PATH) = 0').program == b"/usr/bin/true"
    assert one_exec('1 2.0 execveat(3</usr/bin>, "true", ["t"], [], 0) = 0').program == b"/usr/bin/true"
    assert one_exec('1 2.0 execveat(AT_FDCWD</a b>, "/bin/true", ["t"], [], 0) = 0').program == b"/bin/true"
    assert one_exec(r'1 2.0 execveat(3</t\76, ">, "x", ["t"], [], 0) = 0').program == b'/t>, "/x'


def test_the_first_call_of_a_thread_may_be_shown_under_a_wrong_number() -> None:
    begun = "7034 1.0 syscall_0x1b7a(0x7fab83bfff00, 0x20, 0, 0x53053053, 0x7fab83bff6c0, 0x7ffd98aa1a17"
    assert read(f"{begun} <unfinished ...>", "7034 1.1 <... syscall_0x1b7a resumed>) = 0", f"{begun}) = 0") == []
    (other,) = read("7034 1.0 syscall_0x1b7a(0x7fab83bfff00, 0x20, 0, 0, 0, 0) = 0")
    assert isinstance(other, UnreadableRecord)


def test_an_exec_killed_half_way_did_not_take_place() -> None:
    records = read('1 1.0 execve("/x", ["x"], [] <unfinished ...>', "1 1.1 +++ killed by SIGKILL +++")
    assert isinstance(records[0], ExecRecord)
    assert records[0].error == "KILLED"
    assert records[1] == EndRecord(time=1.1, pid=1, status=None, signal="SIGKILL")


@pytest.mark.parametrize(
    "text",
    [
        'execve("/x", ["cut"...], []) = 0',
        'execve("/x", ["a", 0x7ffe1234], []) = 0',
        'execve("/x", 0x7ffe1234, []) = 0',
        'execve("/x", ["a"], 0x7ffe1234 /* 12 vars */) = 0',
        'execve("/x", ["a"], ["A=1"...]) = 0',
        'execve("/x", ["a", ... /* 0xdead */], []) = 0',
    ],
)
def test_what_strace_could_not_read_is_marked(text: str) -> None:
    assert one_exec(f"1 2.0 {text}").whole is False


def test_a_null_environment_is_an_empty_one() -> None:
    found = one_exec('1 2.0 execve("/x", ["a"], NULL) = 0')
    assert (found.whole, environment_entries(found)) == (True, ())


@pytest.mark.parametrize(
    ("lines", "child", "thread"),
    [
        (["1 2.0 fork() = 9"], 9, False),
        (["1 2.0 vfork( <unfinished ...>", "1 2.0 <... vfork resumed>) = 9"], 9, False),
        (["1 2.0 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 9"], 9, False),
        (
            [
                "1 2.0 clone3({flags=CLONE_VM|CLONE_THREAD, stack=0x7f <unfinished ...>",
                "1 2.0 <... clone3 resumed> => {parent_tid=[9]}, 88) = 9",
            ],
            9,
            True,
        ),
        (["1 2.0 vfork()     = 2 /* 9 in strace's PID NS */"], 9, False),
    ],
)
def test_children(lines: list[str], child: int, thread: bool) -> None:
    assert read(*lines) == [ChildRecord(time=2.0, pid=1, child=child, thread=thread)]


def test_a_clone_that_failed_makes_nobody() -> None:
    assert read("1 2.0 clone(flags=SIGCHLD) = -1 EAGAIN (Resource temporarily unavailable)") == []
    assert (
        read("1 2.0 vfork( <unfinished ...>", "1 2.1 <... vfork resumed>) = ? ERESTARTNOINTR (To be restarted)") == []
    )


@pytest.mark.parametrize("line", ["", "garbage", "1 2.0 execve(what", "1 2.0 +++ vanished +++", "1 2.0 open() = 3"])
def test_an_unknown_line_is_said_not_swallowed(line: str) -> None:
    (record,) = read(line)
    assert isinstance(record, UnreadableRecord)


@pytest.mark.parametrize("line", ["1 2.0 --- SIGTERM {si_signo=SIGTERM} ---", "1 2.0 ???( <unfinished ...>"])
def test_signals_and_calls_of_the_dead_are_no_records(line: str) -> None:
    assert read(line) == []


@given(st.binary(max_size=200))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    list(Reader().read(line.replace(b"\n", b"")))
