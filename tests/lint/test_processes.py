"""Work shared among processes: all of it done once, and a process that dies is told."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(body: str) -> subprocess.CompletedProcess[str]:
    """Runs *body* in a process without threads: one that has some does not fork."""
    head = """\
        import os, signal, sys, time
        from pathlib import Path
        from runner_e2e.errors import DefectError, Problem
        from runner_e2e.lint.processes import shared
        from runner_e2e.lint.result import FileResult
        me = os.getpid()
        """
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(head) + textwrap.dedent(body)],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT / "src")}, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(("numbers", "count"), [(5, 2), (200, 3), (20_000, 2), (1, 4), (0, 2)])
def test_every_number_is_worked_on_once(numbers: int, count: int) -> None:
    done = run(
        f"""
        def work(number):
            return FileResult(reads=(str(number), str(os.getpid())))
        found = shared(range(10, 10 + {numbers}), work, {count})
        assert list(sorted(found)) == list(range(10, 10 + {numbers}))
        assert all(result.reads[0] == str(number) for number, result in found.items())
        print(len(set(result.reads[1] for result in found.values())) <= {count})
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_the_others_do_what_one_has_no_time_for() -> None:
    """This process is busy with its first number until another one has done all others."""
    done = run(
        """
        reader, writer = os.pipe()
        def work(number):
            if os.getpid() == me:
                for _ in range(99):
                    assert os.read(reader, 1)
            else:
                os.write(writer, b"x")
            return FileResult(reads=(str(os.getpid()),))
        found = shared(range(100), work, 2)
        print(sum(result.reads == (str(me),) for result in found.values()) <= 1)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.parametrize(
    ("end", "why"), [("os.kill(os.getpid(), signal.SIGKILL)", "signal 9"), ("os._exit(3)", "exit code 3")]
)
def test_a_process_that_dies_is_told(end: str, why: str) -> None:
    done = run(
        f"""
        def work(number):
            if os.getpid() != me:
                {end}
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # until another one has died of its first number
            return FileResult()
        try:
            shared(range(20), work, 3)
        except DefectError as error:
            print(error.problem.why, "--jobs 1" in error.problem.fix)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print("no child is left")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{why} True\nno child is left\n", "")


def test_an_interrupt_leaves_no_process() -> None:
    done = run(
        """
        def work(number):
            if os.getpid() == me:
                raise KeyboardInterrupt
            time.sleep(60)
        started = time.monotonic()
        try:
            shared(range(20), work, 3)
        except KeyboardInterrupt:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            print(time.monotonic() - started < 30)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_a_process_with_threads_does_not_fork() -> None:
    done = run(
        """
        import threading
        event = threading.Event()
        thread = threading.Thread(target=event.wait)
        thread.start()
        found = shared(range(50), lambda number: FileResult(reads=(str(os.getpid()),)), 4)
        event.set()
        print({result.reads for result in found.values()} == {(str(me),)})
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux has files in memory")
def test_no_disk_is_needed() -> None:
    done = run(
        """
        import tempfile
        tempfile.tempdir = "/nonexistent"
        work = lambda number: FileResult(reads=(str(number),))
        assert shared([1, 2, 3], work, 2) == {number: work(number) for number in (1, 2, 3)}
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    """As the command runs it: without the collector of cycles."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    steps = "".join(f"      - run: |\n          x=$ID\n          echo {number} | tool\n" for number in range(30))
    for number in range(220):
        (folder / f"{number}.yml").write_text(
            "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\njobs:\n  a:\n    runs-on: x\n"
            f"    env: {{ID: '${{{{ inputs.selected-id }}}}'}}\n    steps:\n{steps}"
        )
    done = run(
        f"""
        import gc
        from runner_e2e.lint.linter import default_paths, lint
        def pages():
            return int(Path("/proc/self/statm").read_text().split()[1])
        paths = default_paths(Path({str(tmp_path)!r}))
        gc.disable()
        lint(paths[:20], current=Path.cwd())
        before = pages()
        lint(paths[20:], current=Path.cwd())
        print((pages() - before) * os.sysconf("SC_PAGE_SIZE") < 10_000_000)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
