"""The exec audit against real programs: what it sees, how it ends, and when it refuses to call anything clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError, UsageError
from runner_e2e.sandbox.audit_model import Audit as AuditModel
from runner_e2e.sandbox.auditor import Auditor
from runner_e2e.sandbox.canary import Finder
from runner_e2e.sandbox.exec_audit import Audit, Canary, Exec, Options, audit
from runner_e2e.sandbox.strace_text import ExecRecord

VALUE = "smoke.codex.linux.readme-4711"
PYTHON = os.path.realpath(sys.executable)


def run(
    *command: str | bytes, options: Options | None = None, variables: dict[bytes, bytes] | None = None, **more: object
) -> tuple[Audit, list[Exec]]:
    seen: list[Exec] = []
    environ = {b"PATH": b"/usr/bin:/bin", **(variables or {})}
    found = audit(
        command,
        canaries=[Canary(name="id", value=VALUE)],
        options=options or Options(linger=0.3),
        environ=environ,
        sink=seen.append,
        **more,  # type: ignore[arg-type]
    )
    return found, seen


def shell(script: str, **more: object) -> tuple[Audit, list[Exec]]:
    return run("sh", "-c", script, variables={b"ID": VALUE.encode()}, **more)  # type: ignore[arg-type]


def leaks(found: Audit) -> list[tuple[str, str, int, str]]:
    return [
        (made.program, leak.where, leak.argument, leak.occurrence.kind) for made in found.leaks for leak in made.leaks
    ]


def test_a_value_in_the_environment_alone_is_clean() -> None:
    found, seen = shell('/bin/true; echo "$ID" >/dev/null')
    assert (found.verdict, found.status, found.execs) == ("clean", 0, 2)
    assert [[held.name for held in made.environ] for made in seen] == [["ID"], ["ID"]]
    assert found.holding_execs == 2


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ('/bin/echo "--case=$ID"', "value"),
        ('/bin/echo "${ID%-*}"', "piece"),
        ('/bin/echo "$(echo "$ID" | tr a-z A-Z)"', "value"),
        ('/bin/echo "$(printf %s "$ID" | base64 -w0)"', "encoded"),
    ],
)
def test_an_argument_that_carries_it_is_a_leak(script: str, kind: str) -> None:
    found, _ = shell(f"{script} >/dev/null")
    assert found.verdict == "leak"
    assert leaks(found) == [("/bin/echo", "argument", 1, kind)]
    (made,) = found.leaks
    assert made.argv[1][made.leaks[0].occurrence.start :]
    assert [each.words for each in found.lineage(made.process)][-1].startswith("sh -c")


def test_what_a_builtin_gets_is_no_exec() -> None:
    found, _ = shell(
        'echo "$ID"; printf "%s" "$ID"; [ "$ID" = x ]; :', descriptors={1: os.open(os.devnull, os.O_WRONLY)}
    )
    assert (found.verdict, found.execs) == ("clean", 1)


def test_a_program_that_is_not_there_would_have_leaked(tmp_path: Path) -> None:
    found, seen = run(
        PYTHON, "-S", "-c", f"import os\ntry: os.execvp('absent', ['absent', {VALUE!r}])\nexcept OSError: pass"
    )
    made = seen[-1]
    assert (made.error, made.attempts) == ("ENOENT", 2)
    assert found.leaking_execs == 2
    assert found.failed_execs == 1


def test_a_search_along_path_is_one_exec() -> None:
    found, seen = run("/usr/bin/env", "-S", "true", variables={b"PATH": b"/nowhere:/usr/nowhere:/usr/bin:/bin"})
    assert [(made.error, made.attempts) for made in seen] == [("", 1), ("", 3)]
    assert found.failed_execs == 0


def test_every_byte_of_an_argument_comes_back() -> None:
    every = bytes(range(1, 256))
    arguments = [every, b"\n\n", b"", '"ä"'.encode(), b'", "] = -1 <unfinished ...>\n7 1.0 execve("']
    _, seen = run("true", *arguments)
    assert [argument.encode("utf-8", "surrogateescape") for argument in seen[0].argv[1:]] == arguments


def test_arguments_of_two_megabytes_are_searched_to_the_end() -> None:
    # 128 KiB less the final zero is the longest that Linux allows for one.
    longest = b"\xfe" * (131071 - len(VALUE))
    arguments = [longest + VALUE.encode(), *[b"y" * 131071] * 14]
    found, seen = run("true", *arguments)
    assert found.gaps == []
    assert sum(len(argument) for argument in seen[0].argv) > 1_900_000
    assert leaks(found) == [("/usr/bin/true", "argument", 1, "value")]
    assert found.leaks[0].leaks[0].occurrence.start == len(longest)


def test_fifty_thousand_arguments() -> None:
    found, seen = run("true", *["a"] * 50_000, VALUE)
    assert len(seen[0].argv) == 50_002
    assert found.leaks[0].leaks[0].argument == 50_001


def test_the_interpreter_of_a_script_is_part_of_its_command_line(tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text(f"#!/bin/echo {VALUE}\n")
    script.chmod(0o755)
    found, seen = run(str(script), descriptors={})
    assert seen[0].interpreter == ("/bin/echo", VALUE)
    assert leaks(found) == [(str(script), "interpreter", 1, "value")]


def test_the_path_of_a_program_is_shown_by_ps(tmp_path: Path) -> None:
    program = tmp_path / VALUE
    program.symlink_to("/bin/true")
    found, _ = run("sh", "-c", f"cd {tmp_path} && ./smoke*")
    assert ("./" + VALUE, "program", 0, "value") in leaks(found)


def test_execveat_and_threads(tmp_path: Path) -> None:
    script = """
import os, threading, time
fd = os.open("/bin/true", os.O_RDONLY)
if os.fork() == 0:
    os.execve(fd, ["by-descriptor", os.environ["ID"]], {"A": "b"})
os.wait()
threading.Thread(target=lambda: os.execv("/bin/true", ["by-thread", os.environ["ID"]])).start()
time.sleep(60)
"""
    found, seen = run(PYTHON, "-S", "-c", script, variables={b"ID": VALUE.encode()})
    assert [made.argv[0] for made in found.leaks] == ["by-descriptor", "by-thread"]
    assert Path(found.leaks[0].program).name == "true"
    # The thread's exec replaced the program of its process.
    assert found.leaks[1].process == seen[0].process == 0
    assert (found.status, found.gaps) == (0, [])


def test_the_tree_of_processes() -> None:
    found, seen = run("sh", "-c", "(/bin/true a; (/bin/true b; :); :); /bin/true c; :")
    by_argument = {made.argv[-1]: made for made in seen}
    depth = {name: len(found.lineage(by_argument[name].process)) for name in "abc"}
    assert depth == {"a": 3, "b": 4, "c": 2}
    assert all(found.lineage(made.process)[-1].index == 0 for made in seen)
    assert {process.status for process in found.processes} == {0}


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rfp", "true"], capture_output=True, check=False).returncode != 0,
    reason="this machine allows no pid namespace",
)
def test_the_tree_across_a_pid_namespace() -> None:
    found, seen = run("unshare", "-rfp", "sh", "-c", "/bin/true a; :")
    assert [process.words for process in found.lineage(seen[-1].process)][-1].startswith("unshare")


@pytest.mark.parametrize(
    ("script", "status", "name"),
    [("exit 7", 7, ""), ("kill -TERM $$", 143, "SIGTERM"), ("kill -KILL $$", 137, "SIGKILL")],
)
def test_the_status_is_the_commands_own(script: str, status: int, name: str) -> None:
    found, _ = run("sh", "-c", script)
    assert (found.status, found.signal, found.gaps) == (status, name, [])


def test_the_tracer_shows_nothing_of_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        run(
            "sh",
            "-c",
            'tr "\\0" " " </proc/$PPID/cmdline; tr "\\0" " " </proc/$PPID/environ; : "$0"',
            VALUE,
            variables={b"ID": VALUE.encode()},
            descriptors={1: file.fileno()},
        )
    shown = out.read_text()
    assert "strace" in shown
    assert VALUE not in shown
    assert "/proc/$PPID" not in shown


def test_descriptors_arrive_at_their_numbers(tmp_path: Path) -> None:
    script = "echo one; echo seven >&7; exec ls /proc/self/fd >&7"
    with (tmp_path / "a").open("wb") as first, (tmp_path / "b").open("wb") as second:
        run("sh", "-c", script, descriptors={1: first.fileno(), 7: second.fileno()})
    assert (tmp_path / "a").read_text() == "one\n"
    # 3 is the directory that ls reads.
    assert (tmp_path / "b").read_text().split() == ["seven", "0", "1", "2", "3", "7"]


def test_what_outlives_the_command_is_watched_and_then_named() -> None:
    started = time.monotonic()
    script = "(while kill -0 $$; do sleep 0.01; done; /bin/true in-time; exec sleep 60) >/dev/null 2>&1 & exit 4"
    found, seen = run("sh", "-c", script, options=Options(linger=3))
    assert time.monotonic() - started < 60
    try:
        assert found.status == 4
        assert [made.argv[-1] for made in seen if made.argv[0] != "sleep"] == [script, "in-time"]
        assert found.verdict == "incomplete"
        assert any("outlived" in gap for gap in found.gaps)
        assert [process.words for process in found.outlived][-1] == "sleep 60"
        # It goes on as if nothing had happened, execs included: its tracer stays.
        assert all(Path(f"/proc/{process.pid}").exists() for process in found.outlived)
    finally:
        for process in found.outlived:
            os.kill(process.pid, signal.SIGKILL)


def test_what_outlives_the_audit_can_still_exec(tmp_path: Path) -> None:
    go, mark = tmp_path / "go", tmp_path / "mark"
    found, _ = run(
        *("sh", "-c", f"(until [ -e {go} ]; do sleep 0.05; done; /bin/sh -c 'echo late >{mark}') >/dev/null 2>&1 &"),
        options=Options(linger=0.1),
    )
    assert found.outlived
    go.touch()
    deadline = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert mark.read_text() == "late\n"


def test_survivors_can_be_ended() -> None:
    found, _ = run("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!", options=Options(linger=0.1, end_survivors=True))
    assert (found.verdict, found.outlived) == ("clean", [])
    assert [process.signal for process in found.processes] == ["", "SIGKILL"]


def test_a_command_that_hangs_is_killed_with_all_its_children() -> None:
    started = time.monotonic()
    found, _ = run("sh", "-c", "sleep 60 & sleep 60", options=Options(timeout=0.5))
    assert time.monotonic() - started < 60
    assert (found.timed_out, found.status) == (True, 137)
    assert all(process.ended is not None for process in found.processes)


def test_signals_go_to_the_command(tmp_path: Path) -> None:
    """In a process of its own: a signal to this one could reach a thread of the test runner."""
    mark = tmp_path / "ready"
    program = f"""
import os, signal, sys, threading, time
from runner_e2e.sandbox.exec_audit import Options, audit

def interrupt():
    while not os.path.exists({str(mark)!r}):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

# The sender must not be the one to receive it.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
threading.Thread(target=interrupt, daemon=True).start()
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
command = ["sh", "-c", "trap 'exit 9' TERM; : >{mark}; while :; do sleep 0.05; done"]
found = audit(command, options=Options(timeout=120))
print(found.status, found.timed_out)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=False, env=environment)
    assert done.stdout.split() == ["9", "False"], done.stderr


def test_a_set_user_id_program_is_named(tmp_path: Path) -> None:
    found, seen = run("sudo", "-V", descriptors={})
    (program, privilege) = next(iter(found.unprivileged.items()))
    assert Path(program).name == "sudo"
    assert privilege.startswith("set-user-id root")
    assert seen[0].privilege == privilege


def test_without_seccomp_the_same_is_seen() -> None:
    found, seen = run("sh", "-c", f"/bin/echo {VALUE}; :", options=Options(seccomp=False), descriptors={})
    assert found.leaking_execs == 2
    assert len(seen) == 2


def test_only_named_programs_may_hold_it() -> None:
    script = "/bin/true; env -u ID true"
    found, _ = shell(script, options=Options(allow_environ=frozenset({"env"})))
    assert found.verdict == "leak"
    assert [made.program for made in found.disallowed] == ["/bin/true"]
    found, _ = shell(script, options=Options(allow_environ=frozenset({"env", "/bin/true"})))
    assert found.verdict == "clean"


def test_own_programs_count_nowhere() -> None:
    found, seen = run(
        "sh",
        "-c",
        f"/bin/echo {VALUE}; /bin/true; :",
        options=Options(own_programs=frozenset({"/bin/echo"})),
        descriptors={},
    )
    assert [made.own for made in seen] == [False, True, False]
    assert (found.execs, found.leaking_execs) == (2, 1)


@pytest.mark.parametrize(
    ("command", "error", "text"),
    [
        (["no-such-program"], CommandNotFoundError, "no directory of PATH"),
        (["./missing"], CommandNotFoundError, "no such file"),
        (["/etc/passwd"], CommandNotExecutableError, "not executable"),
        (["/etc"], CommandNotExecutableError, "is no file"),
        ([""], LaunchError, "no command"),
        ([], LaunchError, "no command"),
    ],
)
def test_a_command_that_cannot_start(command: list[str], error: type[LaunchError], text: str) -> None:
    with pytest.raises(error, match=text):
        run(*command)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ("#!/no/such/interpreter\n", CommandNotFoundError, "interpreter that it names"),
        ("echo hello\n", CommandNotExecutableError, "no program"),
    ],
)
def test_a_file_that_the_kernel_refuses(tmp_path: Path, content: str, error: type[LaunchError], text: str) -> None:
    script = tmp_path / "job"
    script.write_text(content)
    script.chmod(0o755)
    with pytest.raises(error, match=text):
        run(str(script))


def test_too_many_arguments_are_refused_by_the_kernel() -> None:
    with pytest.raises(LaunchError, match="longer than Linux allows"):
        run("true", *["y" * 100_000] * 80)


def test_strace_must_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="strace is not installed") as caught:
        run("/bin/true")
    assert "apt-get install strace" in caught.value.problem.fix


def test_a_short_value_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        audit(["touch", str(tmp_path / "mark")], canaries=[Canary(name="id", value="abc")])
    assert not (tmp_path / "mark").exists()


def fake_strace(tmp_path: Path, script: str) -> str:
    program = tmp_path / "strace"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    return str(program)


RUN_UNTRACED = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


def test_a_tracer_that_reports_nothing_is_an_error_never_clean(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(LaunchError, match="ended before the command began"):
        run("touch", str(mark), strace=fake_strace(tmp_path, RUN_UNTRACED))


def test_a_tracer_that_shortens_what_it_reports_is_an_error(tmp_path: Path) -> None:
    shortened = r'exec strace "${@/#-s[0-9]*/-s32}"'
    with pytest.raises(LaunchError, match="did not see the exec that it planted") as caught:
        run("true", strace=fake_strace(tmp_path, shortened))
    assert caught.value.exit_code == 125


def test_a_tracer_that_hides_environments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="did not see the exec that it planted"):
        run("true", strace=fake_strace(tmp_path, r'exec strace "${@/#-v/-q}"'))


def test_inside_another_tracer_it_says_why_it_cannot() -> None:
    code = (
        "from runner_e2e.sandbox.exec_audit import audit\n"
        "from runner_e2e.errors import LaunchError\n"
        "try: audit(['true'])\n"
        "except LaunchError as error: print(error)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["strace", "-f", "-o", os.devnull, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        timeout=60,
    )
    assert "strace may not trace here" in done.stdout
    assert "another tracer" in done.stdout


def test_a_tracer_that_is_killed_leaves_no_clean_verdict() -> None:
    found, _ = run("sh", "-c", "kill -KILL $PPID; sleep 0.2")
    assert (found.verdict, found.status) == ("incomplete", 125)


def test_memory_does_not_grow_with_the_number_of_execs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner_e2e.sandbox.auditor.WITNESSES", 50)
    found = AuditModel(command=("x",), canaries=(Canary(name="id", value=VALUE),), options=Options())
    auditor = Auditor(found, Finder(found.canaries), None)
    auditor.root, auditor.started = auditor.tree.at(1).pid, True
    record = ExecRecord(
        time=1.0,
        pid=1,
        program=b"/nowhere/program",
        argv=(b"program", VALUE.encode()),
        environ=b'["ID=' + VALUE.encode() + b'", "PAD=' + b"x" * 500 + b'"]',
        error="",
        whole=True,
    )
    tracemalloc.start()
    try:
        for _ in range(100):
            auditor.take(record)
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1_500):
            auditor.take(record)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.execs, found.leaking_execs, found.holding_execs) == (1_600, 1_600, 1_600)
    assert len(found.leaks) == 50
    assert after - before < 200_000
