"""Ledgers that are locked, damaged, copied, newer, on a full disk, or no ledgers at all."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.ledgers import CAMPAIGN, MEMORY, PATHS, Clock, bring, nonce, planned

from runner_e2e.dispatch import ledger_file, ledger_schema
from runner_e2e.dispatch.ledger import LedgerError, default_path, open_ledger
from runner_e2e.dispatch.ledger_lock import machine_digest
from runner_e2e.dispatch.ledger_schema import VERSION
from runner_e2e.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def kept(path: Path) -> Path:
    """A ledger with a campaign, one of whose two shards was sent."""
    with open_ledger(path, now=Clock()) as ledger:
        ledger.add(planned(2, 1))
        with ledger.acting(CAMPAIGN):
            bring(ledger, ledger.shards(CAMPAIGN)[0], PATHS["sent"])
    return path


def edit(path: Path, *statements: str) -> None:
    """Changes the file with the guards of its tables off."""
    database = sqlite3.connect(path)
    triggers = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        database.execute(f"DROP TRIGGER {name}")
    database.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        assert database.execute(statement).rowcount != 0, statement
    for _, sql in triggers:
        database.execute(sql)
    database.commit()
    database.close()


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT sql FROM sqlite_schema")]


def own_locks(path: Path) -> list[str]:
    """This process's locks on the file: other processes may have some on files of other disks with its number."""
    lines = Path("/proc/locks").read_text().splitlines()
    return [line for line in lines if f" {os.getpid()} " in line and f":{path.stat().st_ino} " in line]


def refused(path: Path, said: str, *, patience: float = 1) -> RefusedError:
    """Opens the ledger and acts, which must fail with one clear message."""
    with (
        pytest.raises(RefusedError, match=said) as caught,
        open_ledger(path, now=Clock(), patience=patience) as ledger,
        ledger.acting(CAMPAIGN),
    ):
        pass
    problem = caught.value.problem
    assert problem.fix
    assert problem.place is not None
    assert str(path) in problem.place.path
    assert caught.value.exit_code == 3
    return caught.value


class TestPlace:
    def test_the_variable_comes_first(self) -> None:
        environ = {"RUNNER_E2E_LEDGER": "/x/y.sqlite", "XDG_STATE_HOME": "/state", "HOME": "/home/me"}
        assert default_path(environ) == Path("/x/y.sqlite")
        assert default_path({"XDG_STATE_HOME": "/state", "HOME": "/h"}) == Path("/state/runner-e2e/ledger.sqlite")
        assert default_path({"XDG_STATE_HOME": "state", "HOME": "/h"}) == Path(
            "/h/.local/state/runner-e2e/ledger.sqlite"
        )
        assert default_path({"HOME": "/h"}) == Path("/h/.local/state/runner-e2e/ledger.sqlite")

    def test_a_place_that_depends_on_the_folder_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no absolute path"):
            default_path({"RUNNER_E2E_LEDGER": "ledger.sqlite"})
        with pytest.raises(UsageError, match="HOME is not set"):
            default_path({})

    def test_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b" / "ledger.sqlite"
        before = os.umask(0)
        try:
            with open_ledger(path, now=Clock()) as ledger:
                ledger.add(planned(1))
                with ledger.acting(CAMPAIGN):
                    found = {each: each.stat().st_mode & 0o777 for each in (tmp_path / "a").rglob("*")}
        finally:
            os.umask(before)
        assert {name.name for name in found} >= {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"}
        assert {mode for each, mode in found.items() if each.is_file()} == {0o600}
        assert {mode for each, mode in found.items() if each.is_dir()} == {0o700}

    def test_links_lead_to_one_ledger_and_one_lock(self, kept: Path, tmp_path: Path) -> None:
        link = tmp_path / "elsewhere" / "link.sqlite"
        link.parent.mkdir()
        link.symlink_to(kept)
        with (
            open_ledger(kept, now=Clock()) as first,
            open_ledger(link, now=Clock()) as second,
            first.acting(CAMPAIGN),
            pytest.raises(RefusedError, match="is being run already"),
            second.acting(CAMPAIGN),
        ):
            pass
        assert [each.name for each in link.parent.iterdir()] == ["link.sqlite"]

    def test_a_second_name_of_the_file_is_refused(self, kept: Path, tmp_path: Path) -> None:
        os.link(kept, tmp_path / "other.sqlite")
        refused(kept, "second name")

    @pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
    def test_a_file_system_of_several_machines_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        monkeypatch.setattr(ledger_file, "_file_system", lambda _: kind)
        refused(path, f"file system of several machines \\({kind}\\)")
        assert not path.exists()

    def test_the_file_system_is_told_by_the_kernel(self) -> None:
        assert ledger_file._file_system(Path("/proc").stat().st_dev) == "proc"
        assert ledger_file._file_system(os.makedev(4095, 1)) == ""


class TestNoLedger:
    def test_a_folder(self, path: Path) -> None:
        path.mkdir()
        refused(path, "no regular file")

    def test_a_pipe(self, path: Path) -> None:
        os.mkfifo(path)
        refused(path, "no regular file")

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        refused(tmp_path / "file" / "ledger.sqlite", "cannot be made")

    @pytest.mark.parametrize("times", [1, 10, 10_000])
    def test_another_file(self, path: Path, times: int) -> None:
        text = "what I must not forget\n" * times
        path.write_text(text)
        refused(path, "is damaged")
        assert path.read_text() == text

    def test_opening_it_again_takes_no_lock_away(self, kept: Path) -> None:
        """A process that closes a file loses all its locks on it, also those of other connections (``fcntl(2)``)."""
        with open_ledger(kept, now=Clock()) as ledger:
            ledger.campaigns()
            before = own_locks(kept)
            open_ledger(kept, now=Clock()).close()
            after = own_locks(kept)
        assert before
        assert len(after) == len(before)

    @pytest.mark.parametrize(
        "statement", ["CREATE TABLE t (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 252006673"]
    )
    def test_the_database_of_another_program_is_left_alone(self, path: Path, statement: str) -> None:
        database = sqlite3.connect(path)
        database.execute(statement)
        database.commit()
        database.close()
        before = path.read_bytes()
        refused(path, "database of another program")
        assert path.read_bytes() == before

    def test_an_empty_file_becomes_one(self, path: Path) -> None:
        path.touch(mode=0o600)
        with open_ledger(path, now=Clock()) as ledger:
            assert ledger.campaigns() == ()

    def test_a_file_of_another_user(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        refused(kept, "another user")


class TestVersions:
    def test_a_newer_one_is_not_touched(self, kept: Path) -> None:
        edit(kept, f"PRAGMA user_version = {VERSION + 1}")
        before = kept.read_bytes()
        refused(kept, f"newer runner-e2e \\(tables of version {VERSION + 1}; this one knows {VERSION}\\)")
        assert kept.read_bytes() == before

    def test_what_was_released_is_never_edited(self) -> None:
        """A change of a table is another migration. Add its digest; never change one that is here."""
        released = ["3b18abb502908ce8e088a57fb4228f8aa9ae1630fd93bba3c2028fd2c8b9cd49"]
        digests = [sha256("\n".join(each).encode()).hexdigest() for each in ledger_schema._MIGRATIONS]
        assert digests == released

    def test_an_older_sqlite_is_told(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
        with pytest.raises(LedgerError, match=r"3\.37\.0 is needed"):
            open_ledger(path, now=Clock())

    def test_an_older_ledger_is_brought_up_to_date_once(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        steps = (*ledger_schema._MIGRATIONS, ("CREATE TABLE later (x INTEGER) STRICT",))
        monkeypatch.setattr(ledger_schema, "_MIGRATIONS", steps)
        monkeypatch.setattr(ledger_schema, "VERSION", VERSION + 1)
        monkeypatch.setattr(ledger_file, "VERSION", VERSION + 1)
        for _ in range(2):
            with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
                assert [shard.state for shard in ledger.shards(CAMPAIGN)] == ["sent", "planned"]
                assert ledger._database.execute("SELECT count(*) FROM later").fetchone() == (0,)

    def test_a_migration_that_fails_leaves_the_old_one(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before = tables(kept)
        steps = (*ledger_schema._MIGRATIONS, ("CREATE TABLE later (x INTEGER) STRICT", "CREATE TABLE later (x)"))
        with monkeypatch.context() as patch:
            patch.setattr(ledger_schema, "_MIGRATIONS", steps)
            patch.setattr(ledger_file, "VERSION", VERSION + 1)
            with pytest.raises(Exception, match="later already exists"):
                open_ledger(kept, now=Clock())
        assert tables(kept) == before
        with open_ledger(kept, now=Clock()) as ledger:
            assert len(ledger.shards(CAMPAIGN)) == 2


class TestDamage:
    @pytest.mark.parametrize("offset", [100, 4096, 8192, 12_288])
    def test_pages_that_are_none(self, kept: Path, offset: int) -> None:
        content = bytearray(kept.read_bytes())
        content[offset : offset + 2000] = b"\xa5" * 2000
        kept.write_bytes(content)
        error = refused(kept, "is damaged")
        assert "keep the file" in error.problem.fix

    @pytest.mark.parametrize("table", ["ledger", "campaigns", "shards", "nonces", "events", "cells"])
    def test_a_large_ledger_is_checked_where_it_counts(
        self, kept: Path, monkeypatch: pytest.MonkeyPatch, table: str
    ) -> None:
        monkeypatch.setattr(ledger_file, "_LARGE", 0)
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            pass
        with closing(sqlite3.connect(kept)) as database:
            page, size = database.execute(
                f"SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = '{table}'"
            ).fetchone()
        content = bytearray(kept.read_bytes())
        content[(page - 1) * size : page * size] = b"\xa5" * size
        kept.write_bytes(content)
        refused(kept, "is damaged")

    def test_a_file_that_was_cut_off(self, kept: Path) -> None:
        os.truncate(kept, kept.stat().st_size // 2)
        refused(kept, "is damaged")

    def test_damage_that_is_met_later(self, kept: Path) -> None:
        with open_ledger(kept, now=Clock()) as ledger:
            content = bytearray(kept.read_bytes())
            content[4096:] = b"\xa5" * (len(content) - 4096)
            kept.write_bytes(content)
            ledger._database.execute("PRAGMA shrink_memory")
            with pytest.raises(LedgerError, match="is damaged"):
                ledger.campaigns()
            with pytest.raises(LedgerError, match="is damaged"):
                list(ledger.export())

    def test_a_ledger_that_does_not_say_which_it_is(self, kept: Path) -> None:
        edit(kept, "DELETE FROM ledger")
        refused(kept, "is damaged")

    @pytest.mark.parametrize(
        ("statement", "said"),
        [
            ("UPDATE campaigns SET max_cost = 1000000", "plan of .* is not the one whose digest it has"),
            ("UPDATE campaigns SET repository = 'mallory/evals'", "is not the one whose digest it has"),
            ("UPDATE shards SET sealed = 'sealed1.00000000.other'", "is not the one whose digest it has"),
            ("UPDATE cells SET reserved = 1000", "is not the one whose digest it has"),
            ("UPDATE cells SET handle = 'cell-ffffffffffffffff' WHERE handle LIKE '%2'", "is not the one whose digest"),
            ("DELETE FROM cells WHERE position = 1", "is not the one whose digest it has"),
            ("UPDATE shards SET reserved = 500 WHERE position = 1", "planned at another sum than the shard"),
            ("UPDATE shards SET state = 'planned' WHERE position = 0", "is 'planned' .* its events say 'sent'"),
            ("UPDATE shards SET state = 'sent', nonce = 'x' WHERE position = 1", "its events say 'planned'"),
            ("UPDATE shards SET version = 3 WHERE position = 0", r"\(change 3\); its events say 'sent' \(change 4\)"),
            ("UPDATE shards SET round = 2 WHERE position = 0", "another round, nonce, run or cost"),
            ("UPDATE shards SET run = 9 WHERE position = 0", "another round, nonce, run or cost"),
            (f"UPDATE shards SET nonce = '{nonce(4_000)}' WHERE position = 0", "another round, nonce, run or cost"),
            ("UPDATE events SET committed = 0 WHERE after = 'sent'", "another round, nonce, run or cost"),
            ("DELETE FROM events WHERE after = 'sending'", "moves .* from 'sending' to 'sent'; it was 'reserved'"),
            ("UPDATE events SET after = 'nonsense' WHERE after = 'sent'", "to 'nonsense'"),
            ("UPDATE events SET position = 7 WHERE position = 0", "its events say"),
            ("DELETE FROM nonces", "was never made"),
            ("UPDATE cells SET verdict = 'passed' WHERE position = 0", "cost another sum"),
            ("UPDATE cells SET actual = 7 WHERE position = 0", "cost another sum"),
            ("UPDATE cells SET kept = 7 WHERE position = 1", "cost another sum"),
        ],
    )
    def test_books_that_do_not_agree(self, kept: Path, statement: str, said: str) -> None:
        edit(kept, statement)
        refused(kept, said)
        with open_ledger(kept, now=Clock()) as ledger:
            assert len(ledger.shards(CAMPAIGN)) == 2, "what is there can still be read"

    def test_books_that_agree(self, kept: Path) -> None:
        """The ones above are found because of their statements alone."""
        edit(kept, "UPDATE shards SET note = 'x'")
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            for index, state in enumerate(("running", "settled")):
                first = ledger.shards(CAMPAIGN)[index]
                bring(ledger, first, PATHS["settled"][PATHS["settled"].index(state) :] if index == 0 else PATHS[state])  # type: ignore[index]
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            assert ledger.totals(CAMPAIGN).number("settled") == 2


class TestOlderCopies:
    def act(self, path: Path, state: str) -> None:
        with open_ledger(path, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            shard = next(each for each in ledger.shards(CAMPAIGN) if each.state == "planned")
            bring(ledger, shard, PATHS[state])  # type: ignore[index]

    def test_an_older_copy_in_its_place_is_noticed(self, kept: Path, tmp_path: Path) -> None:
        copy = shutil.copy(kept, tmp_path / "backup")
        self.act(kept, "sent")
        newer = shutil.copy(kept, tmp_path / "newer")
        shutil.copy(copy, kept)
        refused(kept, "older than what was done with it: .* came to change 7, and here it ends with 4")
        shutil.copy(newer, kept)
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            pass

    def test_a_ledger_that_was_removed_and_made_anew_is_noticed(self, kept: Path) -> None:
        kept.unlink()
        with open_ledger(kept, now=Clock()) as ledger:
            ledger.add(planned(2, 1))
        refused(kept, "came to change 4, and here it ends with 1")

    def test_a_log_that_was_removed_is_noticed(self, kept: Path) -> None:
        """A client was killed before its log went into the file, and then somebody tidied up."""
        code = """
            import os, sys
            from pathlib import Path
            from tests.dispatch.ledgers import *
            from runner_e2e.dispatch.ledger import open_ledger
            ledger = open_ledger(Path(sys.argv[1]), now=Clock())
            with ledger.acting(CAMPAIGN):
                bring(ledger, ledger.shards(CAMPAIGN)[1], PATHS["sent"])
                os.kill(os.getpid(), 9)
            """
        assert run(code, str(kept)).returncode == -9
        log = kept.with_name(f"{kept.name}-wal")
        content = log.read_bytes()
        log.unlink()
        refused(kept, "came to change 7, and here it ends with 4")
        log.write_bytes(content)
        kept.with_name(f"{kept.name}-shm").unlink(missing_ok=True)
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            assert ledger.totals(CAMPAIGN).number("sent") == 2

    @pytest.mark.parametrize("replaced", [False, True])
    def test_a_ledger_that_is_removed_while_it_is_used_is_noticed_before_anything_is_sent(
        self, kept: Path, tmp_path: Path, *, replaced: bool
    ) -> None:
        aside = tmp_path / "aside"
        with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            shard = bring(ledger, ledger.shards(CAMPAIGN)[1], ["reserved"])
            kept.rename(aside)
            if replaced:
                shutil.copy(aside, kept)
            with pytest.raises(LedgerError, match="removed or replaced while it was in use"):
                ledger.intend(shard)
            aside.rename(kept)
            assert ledger.intend(shard).state == "sending"

    def test_a_damaged_mark_is_none(self, kept: Path) -> None:
        (lock,) = kept.with_name(f"{kept.name}.locks").iterdir()
        for content in (b"", b"{}", b"[1]", b"\xff", b'{"mark": "x"}', b'{"mark": null}'):
            lock.write_bytes(content)
            with open_ledger(kept, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
                pass


class TestLocks:
    def test_another_process_that_writes_is_waited_for_and_then_told(self, kept: Path) -> None:
        other = sqlite3.connect(kept, isolation_level=None)
        with open_ledger(kept, now=Clock(), patience=0.05) as ledger:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match="locked by another process") as caught:
                ledger.ask_to_cancel(CAMPAIGN)
            assert "try again" in caught.value.problem.fix
            assert [shard.state for shard in ledger.shards(CAMPAIGN)] == ["sent", "planned"], "reading goes on"
            other.execute("COMMIT")
            assert ledger.ask_to_cancel(CAMPAIGN).cancel_asked_at is not None
        other.close()

    def test_a_process_that_holds_the_whole_file(self, kept: Path) -> None:
        other = sqlite3.connect(kept, isolation_level=None)
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        refused(kept, "locked by another process", patience=0.05)
        other.close()

    def test_who_holds_a_campaign_is_told(self, kept: Path) -> None:
        clock = Clock(1_767_225_600 - 1)
        with open_ledger(kept, now=Clock()) as other, open_ledger(kept, now=clock) as holder:
            clock.time = 1_767_225_600 - 1
            with holder.acting(CAMPAIGN), pytest.raises(RefusedError) as caught, other.acting(CAMPAIGN):
                pass
        said = f"the campaign {CAMPAIGN} is being run already: process {os.getpid()}, since 2026-01-01 00:00:00 UTC"
        assert caught.value.problem.what == said

    def test_a_lock_that_cannot_be_made(self, kept: Path) -> None:
        folder = kept.with_name(f"{kept.name}.locks")
        shutil.rmtree(folder)
        folder.write_text("")
        refused(kept, "cannot be locked")

    def test_a_lock_is_not_looked_for_behind_a_link(self, kept: Path, tmp_path: Path) -> None:
        (lock,) = kept.with_name(f"{kept.name}.locks").iterdir()
        lock.unlink()
        lock.symlink_to(tmp_path / "target")
        refused(kept, "cannot be locked")
        assert not (tmp_path / "target").exists()


class TestMachines:
    def test_a_copy_can_be_read_and_not_acted_with(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("runner_e2e.dispatch.ledger.machine_digest", lambda: "another machine")
        refused(kept, "belongs to another machine")
        with open_ledger(kept, now=Clock()) as ledger:
            assert ledger.is_copy
            assert len(ledger.shards(CAMPAIGN)) == 2
            with pytest.raises(RefusedError, match="another machine"):
                ledger.add(planned(1, id="c-20260101t000000z-00000001"))
            uuid = ledger.uuid
            ledger.adopt()
            ledger.adopt()
            assert (ledger.is_copy, ledger.uuid) == (False, uuid)
            adoptions = [each for each in ledger.export() if each["kind"] == "adoption"]
            assert [(each["before"], each["after"]) for each in adoptions] == [(machine_digest(), "another machine")]
            with ledger.acting(CAMPAIGN):
                bring(ledger, ledger.shards(CAMPAIGN)[1], PATHS["sent"])
        monkeypatch.undo()
        refused(kept, "belongs to another machine")

    def test_machines_are_told_apart_and_not_named(self, tmp_path: Path) -> None:
        first, second, none = tmp_path / "1", tmp_path / "2", tmp_path / "none"
        first.write_text("0123456789abcdef0123456789abcdef\n")
        second.write_text("fedcba9876543210fedcba9876543210\n")
        digests = [machine_digest((file,)) for file in (first, second, none)]
        assert len(set(digests)) == 3
        assert machine_digest((none, first)) == digests[0]
        assert "0123456789abcdef" not in digests[0]
        first.write_bytes(b"\xff\xfe")
        assert machine_digest((first,)) == digests[2]


def run(code: str, *arguments: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a client in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        preexec_fn=before,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
