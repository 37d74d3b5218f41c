"""What is in the ledger when its process is killed, its disk is full, or another process wants the same.

A move is durable when it returns. Killed before that, it is there whole or not at all.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.ledgers import CAMPAIGN, PATHS, Clock, bring, nonce, outcomes, planned

from runner_e2e.dispatch.ledger import LedgerError, open_ledger
from runner_e2e.dispatch.shard_states import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runner_e2e.dispatch.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
KILLED = -signal.SIGKILL
WAY = PATHS["settled"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "state" / "ledger.sqlite"
    with open_ledger(found, now=Clock()) as ledger:
        ledger.add(planned(3, 2))
    return found


def command(code: str, path: Path, *arguments: str) -> list[str]:
    """A client as a process: *code* has ``ledger`` and ``say``, which tells the test at once."""
    head = """
        import os, signal, sys
        from pathlib import Path
        from tests.dispatch.ledgers import *
        from runner_e2e.dispatch.ledger import LedgerError, open_ledger
        from runner_e2e.dispatch.shard_states import STATES
        def say(text): os.write(1, f"{text}\\n".encode())
        ledger = open_ledger(Path(sys.argv[1]), now=Clock(), patience=60)
        """
    return [sys.executable, "-c", dedent(head) + dedent(code), str(path), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120, check=False)


WALK = """
    with ledger.acting(CAMPAIGN):
        for shard in ledger.shards(CAMPAIGN):
            for state in PATHS["settled"]:
                shard = bring(ledger, shard, [state])
                say(f"{shard.index} {state}")
    """


def after_the_kill(path: Path, said: Sequence[str], *, killed: bool = True) -> int:
    """Checks what is in the ledger against what the client *said*; gives the number of moves that are in it."""
    with open_ledger(path, now=Clock()) as ledger:
        found = [f"{event.shard} {event.after}" for event in ledger.events(CAMPAIGN) if event.shard is not None]
        assert found[: len(said)] == list(said), "a move that returned is not in the ledger"
        assert not killed or len(found) <= len(said) + 1
        whole = [f"{index} {state}" for index in range(2) for state in WAY]
        assert found == whole[: len(found)]
        for shard in ledger.shards(CAMPAIGN):
            cells = [cell.verdict for cell in ledger.cells(CAMPAIGN, shard.index)]
            assert cells == ["passed" if shard.state == "settled" else None] * shard.cells
        with ledger.acting(CAMPAIGN):  # which compares the books
            states = [shard.state for shard in ledger.shards(CAMPAIGN)]
            assert "sending" not in states
            last = found[-1].split()[1] if found else "planned"
            assert ("unknown" in states) == (last == "sending")
    return len(found)


class TestKilled:
    @pytest.mark.parametrize("share", range(4))
    def test_inside_of_sqlite(self, path: Path, tmp_path: Path, share: int) -> None:
        """A forked client kills itself after each so many steps of SQLite's machine, anywhere in a transaction."""
        steps = counted_steps(path, tmp_path)
        assert steps > 1_000
        found = set()
        for number, last in enumerate(range(1, steps, steps // 40)):
            if number % 4 == share:
                copy = tmp_path / f"copy{number}" / path.name
                shutil.copytree(path.parent, copy.parent)
                said = forked_walk(copy, last)
                assert said is not None, "it was to be killed"
                found.add(after_the_kill(copy, said))
        assert len(found) > 5

    @pytest.mark.parametrize(
        ("call", "number"),
        [
            *(("pwrite64", number) for number in (1, 3, 9, 20, 35, 54)),
            *(("fdatasync", number) for number in (1, 5, 8, 13)),
        ],
    )
    def test_before_a_write_of_the_file_system(self, path: Path, call: str, number: int) -> None:
        fault = f"--inject={call}:signal=SIGKILL:when={number}"
        done = run(["strace", "-qq", "-o", "/dev/null", f"--trace={call}", fault, *command(WALK, path)])
        assert done.returncode == KILLED, done.stderr
        after_the_kill(path, done.stdout.splitlines())

    def test_from_outside(self, path: Path) -> None:
        client = subprocess.Popen(command(WALK, path), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        said = [client.stdout.readline().strip() for _ in range(4)]
        client.kill()
        said += client.stdout.read().splitlines()
        client.wait()
        client.stdout.close()
        assert after_the_kill(path, said) >= 4

    @pytest.mark.parametrize("number", [1, 3, 8, 21, 55, 200])
    def test_while_the_ledger_is_made(self, tmp_path: Path, number: int) -> None:
        path = tmp_path / "ledger.sqlite"
        fault = f"--inject=pwrite64:signal=SIGKILL:when={number}"
        code = "ledger.add(planned(3, 2))\nsay('added')"
        done = run(["strace", "-qq", "-o", "/dev/null", "--trace=pwrite64", fault, *command(code, path)])
        assert done.returncode == (0 if number == 200 else KILLED), done.stderr
        with open_ledger(path, now=Clock()) as ledger:
            found = [campaign.id for campaign in ledger.campaigns()]
            assert found == [CAMPAIGN] or "added" not in done.stdout
            ledger.add(planned(3, 2))
            with ledger.acting(CAMPAIGN):
                assert len(list(ledger.cells(CAMPAIGN))) == 5


def counted_steps(path: Path, tmp_path: Path) -> int:
    """How many steps of SQLite's machine the whole walk takes."""
    copy = tmp_path / "counted" / path.name
    shutil.copytree(path.parent, copy.parent)
    seen = 0

    def count() -> int:
        nonlocal seen
        seen += 1
        return 0

    with open_ledger(copy, now=Clock()) as ledger:
        ledger._database.set_progress_handler(count, 1)
        walk(ledger, [])
    return seen


def walk(ledger: Ledger, said: list[str]) -> None:
    with ledger.acting(CAMPAIGN):
        for shard in ledger.shards(CAMPAIGN):
            for number, state in enumerate(WAY):
                if state == "settled":
                    moved = ledger.settle(shard, outcomes(ledger, shard))
                else:
                    fresh = nonce(shard.index * 100 + number) if state == "reserved" else None
                    moved = ledger.move(shard, state, nonce=fresh, run=7 if state == "running" else None)
                shard = moved  # noqa: PLW2901
                said.append(f"{shard.index} {state}")


def forked_walk(path: Path, last: int) -> list[str] | None:
    """Walks in a forked process that is killed at the step *last*; gives what it said, or None where it was not."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            left = last

            def kill() -> int:
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0

            class Said(list[str]):
                def append(self, text: str) -> None:
                    os.write(writer, f"{text}\n".encode())

            ledger = open_ledger(path, now=Clock())
            ledger._database.set_progress_handler(kill, 1)
            walk(ledger, Said())
        finally:
            os._exit(3)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read().splitlines()
    _, status = os.waitpid(child, 0)
    return said if os.waitstatus_to_exitcode(status) == KILLED else None


class TestDurable:
    def test_every_move_is_on_the_disk_before_it_returns(self, path: Path, tmp_path: Path) -> None:
        """Between the last write to the log and the word that the move was made, the log is synchronised."""
        trace = tmp_path / "trace"
        argv = ["strace", "-qq", "-y", "-o", str(trace), "--trace=pwrite64,fdatasync,fsync,write", *command(WALK, path)]
        assert run(argv).returncode == 0
        unsynchronised, words, marks, syncs = 0, 0, 0, 0
        for line in trace.read_text().splitlines():
            if re.match(r"pwrite64\(\d+<[^>]*-wal>", line):
                unsynchronised += 1
            elif re.match(r"f(data)?sync\(\d+<[^>]*-wal>", line):
                unsynchronised, syncs = 0, syncs + 1
            elif re.match(r"write\(1<|pwrite64\(\d+<[^>]*\.lock>", line):
                # The mark beside the ledger too: were it first, a power cut would make a sound ledger look old.
                assert not unsynchronised, f"{line}: {unsynchronised} writes are not on the disk"
                words += line.startswith("write")
                marks += line.startswith("pwrite64")
        assert words == 2 * len(WAY)
        assert syncs >= words
        assert marks > words

    def test_a_log_that_the_power_cut_off_anywhere_has_whole_moves(self, path: Path, tmp_path: Path) -> None:
        """What was not synchronised may be lost from any byte on: the rest is what stood there after some move."""
        log = path.with_name(f"{path.name}-wal")
        with open_ledger(path, now=Clock()) as ledger:
            walk(ledger, [])
            content, size = path.read_bytes(), log.stat().st_size
            lines = log.read_bytes()
        numbers = set()
        for length in range(0, size + 1, size // 40):
            cut = tmp_path / f"cut{length}" / path.name
            cut.parent.mkdir()
            cut.write_bytes(content)
            cut.with_name(log.name).write_bytes(lines[:length])
            numbers.add(after_the_kill(cut, [], killed=False))
        assert len(numbers) > 5

    def test_limits_and_answers_wait_for_no_disk(self, path: Path, tmp_path: Path) -> None:
        trace = tmp_path / "trace"
        code = """
            ledger.ask_to_cancel(CAMPAIGN)
            say("begin")
            for number in range(5):
                ledger.change_rate("t", lambda before: before + "x")
                ledger.remember("k", str(number), "body" * 1000)
            say("end")
            os.kill(os.getpid(), 9)
            """
        argv = ["strace", "-qq", "-y", "-o", str(trace), "--trace=fdatasync,fsync,write", *command(code, path)]
        assert run(argv).returncode == KILLED
        lines = trace.read_text().splitlines()
        first, last = (next(n for n, line in enumerate(lines) if f'"{word}' in line) for word in ("begin", "end"))
        assert last == first + 1, lines[first : last + 1]
        seen: list[str] = []
        with open_ledger(path, now=Clock()) as ledger:
            ledger.change_rate("t", lambda before: seen.append(before) or before)  # type: ignore[func-returns-value]
            found = ledger.remembered("k")
        assert seen == ["xxxxx"]
        assert found is not None
        assert found.etag == "4"


class TestFullDisk:
    @contextmanager
    def files_up_to(self, size: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def test_a_log_that_cannot_grow(self, path: Path) -> None:
        """The limit falls on every part of a transaction; the move is made or it is not, and later it can be made."""
        failed: list[str] = []
        log = path.with_name(f"{path.name}-wal")
        with open_ledger(path, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            for number in range(40):
                shard = ledger.shards(CAMPAIGN)[0]
                before = list(ledger.export())[1:]
                to = "reserved" if shard.state == "planned" else "planned"
                fresh = nonce(number) if to == "reserved" else None
                try:
                    with self.files_up_to(log.stat().st_size + 700 * (number % 20)):
                        moved = ledger.move(shard, to, nonce=fresh)  # type: ignore[arg-type]
                except LedgerError as error:
                    failed.append(str(error))
                    assert list(ledger.export())[1:] == before
                else:
                    assert ledger.shards(CAMPAIGN)[0] == moved
            bring(ledger, ledger.shards(CAMPAIGN)[1], WAY)
        assert 5 < len(failed) < 40
        assert {text.splitlines()[0] for text in failed} == {
            f"{path}: the ledger cannot be written: the disk is full or fails"
        }
        with open_ledger(path, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            assert ledger.shards(CAMPAIGN)[1].state == "settled"

    def test_a_disk_without_room(self, tmp_path: Path) -> None:
        code = """
            ledger.add(planned(3, 2))
            filler = Path(sys.argv[1]).parent / "filler"
            with ledger.acting(CAMPAIGN):
                first, second = ledger.shards(CAMPAIGN)
                first = bring(ledger, first, ["reserved"])
                with filler.open("wb", buffering=0) as stream:
                    try:
                        while True:
                            stream.write(bytes(256))
                    except OSError:
                        pass
                moved = 0
                try:
                    while True:
                        # Room that a file has already is used up first.
                        second = bring(ledger, second, ["reserved"])
                        moved += 1
                except LedgerError as error:
                    say(error.problem.what)
                try:
                    ledger.intend(first)
                except LedgerError as error:
                    say(error.problem.what)
                assert ledger.shards(CAMPAIGN) == (first, second), "reading goes on"
                filler.unlink()
                bring(ledger, first, PATHS["settled"][1:])
            say(ledger.shards(CAMPAIGN)[0].state)
            """
        folder = tmp_path / "small"
        folder.mkdir()
        small = ["bwrap", "--dev-bind", "/", "/", "--size", "600000", "--tmpfs", str(folder)]
        done = run([*small, *command(code, folder / "ledger.sqlite")])
        full = "the ledger cannot be written: the disk is full or fails"
        assert done.stdout.splitlines() == [full, full, "settled"], done.stderr

    @pytest.mark.parametrize("disk", ["full", "read-only"])
    def test_what_is_in_it_can_be_read_still(self, path: Path, tmp_path: Path, disk: str) -> None:
        """Also what a killed client left in the log, which is not in the file yet."""
        walk_and_die = """
            with ledger.acting(CAMPAIGN):
                bring(ledger, ledger.shards(CAMPAIGN)[0], PATHS["sent"])
                os.kill(os.getpid(), 9)
            """
        assert run(command(walk_and_die, path)).returncode == KILLED
        assert path.with_name(f"{path.name}-wal").stat().st_size
        code = """
            import shutil
            from runner_e2e.dispatch.ledger import open_ledger
            state = Path(sys.argv[1]).parent
            disk = state.parent / "disk"
            if sys.argv[2] == "full":
                for name in ("ledger.sqlite", "ledger.sqlite-wal"):
                    shutil.copy(state / name, disk / name)
                with (disk / "filler").open("wb", buffering=0) as stream:
                    try:
                        while True:
                            stream.write(bytes(256))
                    except OSError:
                        pass
            before = sorted(os.listdir(disk))
            with open_ledger(disk / "ledger.sqlite", now=Clock()) as full:
                say(ascii([shard.state for shard in full.shards(CAMPAIGN)]))
                say(len(list(full.export())))
                for act in (full.acting(CAMPAIGN).__enter__, full.adopt, lambda: full.ask_to_cancel(CAMPAIGN),
                            lambda: full.add(planned(1, id="c-20260101t000000z-00000001"))):
                    try:
                        act()
                    except LedgerError as error:
                        assert error is full.unwritable
                        say(error.problem.what)
            assert {*os.listdir(disk)} - {*before} <= {"ledger.sqlite-shm", "ledger.sqlite-wal"}
            """
        folder = tmp_path / "disk"
        folder.mkdir()
        shutil.copy(path, folder)
        shutil.copy(path.with_name(f"{path.name}-wal"), folder)
        mount = {"full": ["--size", "250000", "--tmpfs"], "read-only": ["--ro-bind", str(folder)]}[disk]
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        argv = ["bwrap", "--dev-bind", "/", "/", "--setenv", "TMPDIR", str(temporary), *mount, str(folder)]
        said = {
            "full": "the ledger cannot be written: the disk is full or fails",
            "read-only": "the ledger cannot be opened for writing",
        }
        done = run([*argv, *command(code, tmp_path / "state" / "x", disk)])
        assert done.stdout.splitlines() == ["['sent', 'planned']", "13", *[said[disk]] * 4], done.stderr
        assert not list(temporary.iterdir())

    def test_a_disk_without_room_for_a_ledger(self, tmp_path: Path) -> None:
        folder = tmp_path / "small"
        folder.mkdir()
        small = ["bwrap", "--dev-bind", "/", "/", "--size", "8192", "--tmpfs", str(folder)]
        code = """
            folder = Path(sys.argv[1]).parent / "small"
            (folder / "filler").write_bytes(bytes(8192))
            try:
                open_ledger(folder / "ledger.sqlite", now=Clock())
            except LedgerError as error:
                say(error)
            """
        done = run([*small, *command(code, tmp_path / "other.sqlite")])
        assert "small/ledger.sqlite: the ledger cannot be" in done.stdout, done
        assert "fix: " in done.stdout


class TestProcessesTogether:
    def test_they_make_one_ledger(self, tmp_path: Path) -> None:
        path = tmp_path / "ledger.sqlite"
        code = """
            sys.stdin.read()
            ledger = open_ledger(Path(sys.argv[1]).with_name("ledger.sqlite"), now=Clock(), patience=60)
            ledger.add(planned(2, id=f"c-20260101t000000z-0000000{sys.argv[2]}"))
            for _ in range(10):
                ledger.change_rate("t", lambda before: before + "x")
            say(ledger.uuid)
            """
        clients = [
            subprocess.Popen(
                command(code, tmp_path / f"own{number}", str(number)),
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(4)
        ]
        for client in clients:
            assert client.stdin is not None
            client.stdin.close()
            client.stdin = None
        said = {client.communicate(timeout=120)[0] for client in clients}
        assert [client.returncode for client in clients] == [0] * 4
        assert len(said) == 1
        seen: list[str] = []
        with open_ledger(path, now=Clock()) as ledger:
            assert len(ledger.campaigns()) == 4
            ledger.change_rate("t", lambda before: seen.append(before) or before)  # type: ignore[func-returns-value]
        assert seen == ["x" * 40]

    def test_one_of_them_sends(self, path: Path) -> None:
        """Four clients of one campaign try until it is sent: each shard goes out once."""
        code = """
            import time
            from runner_e2e.errors import RefusedError
            while True:
                try:
                    with ledger.acting(CAMPAIGN):
                        for shard in ledger.shards(CAMPAIGN):
                            if shard.state == "planned":
                                name = f"20260101t000000z-{os.getpid():08x}{shard.index:08x}"
                                shard = ledger.intend(ledger.move(shard, "reserved", nonce=name))
                                say(f"POST {shard.index}")
                                ledger.move(shard, "sent")
                        break
                except RefusedError as error:
                    # Who has just taken the lock may not have written down who it is.
                    assert "is being run already: " in str(error), error
                    time.sleep(0.01)
            """
        clients = [
            subprocess.Popen(command(code, path), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        said = [line for client in clients for line in client.communicate(timeout=120)[0].splitlines()]
        assert [client.returncode for client in clients] == [0] * 4
        assert sorted(said) == ["POST 0", "POST 1"]

    def test_a_killed_holder_gives_the_lock_back(self, path: Path) -> None:
        code = """
            import time
            with ledger.acting(CAMPAIGN):
                say("held")
                time.sleep(600)
            """
        client = subprocess.Popen(command(code, path), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        assert client.stdout.readline() == "held\n"
        with open_ledger(path, now=Clock()) as ledger:
            with pytest.raises(Exception, match=f"process {client.pid}, since"), ledger.acting(CAMPAIGN):
                pass
            client.kill()
            client.wait()
            client.stdout.close()
            with ledger.acting(CAMPAIGN):
                pass


def test_the_states_of_the_walk_are_all_there_are_on_it() -> None:
    assert set(WAY) < set(STATES)
