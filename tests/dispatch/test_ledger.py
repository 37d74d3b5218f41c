"""The ledger: what it writes, what it refuses, and that it forgets nothing."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import zlib
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.dispatch.ledgers import CAMPAIGN, MEMORY, PATHS, Clock, Outcome, bring, nonce, outcomes, planned

from runner_e2e.dispatch.ledger import Ledger, Move, StaleError, open_ledger
from runner_e2e.dispatch.money import BudgetError
from runner_e2e.dispatch.shard_states import HOLDING, MOVES, STATES, State
from runner_e2e.errors import DefectError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder) / "state" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_ledger(path, now=Clock()) as opened:
        yield opened


@pytest.fixture
def acting(ledger: Ledger) -> Iterator[Ledger]:
    """A ledger with a campaign of two shards (2 cells and 1 cell), which is locked."""
    ledger.add(planned(2, 1))
    with ledger.acting(CAMPAIGN):
        yield ledger


@contextmanager
def unchanged(ledger: Ledger) -> Iterator[None]:
    """What is inside must change nothing of the campaign."""
    before = list(ledger.export())
    yield
    after = list(ledger.export())
    assert after[1:] == before[1:]


class TestCampaigns:
    def test_a_campaign_is_kept_as_it_was_planned(self, ledger: Ledger, path: Path) -> None:
        campaign = planned(3, 2, max_cost=5_000, assumed_cost=100, assumed_cells=5)
        added = ledger.add(campaign)
        assert (added.id, added.digest, added.max_cost) == (CAMPAIGN, campaign.digest, 5_000)
        assert (added.started_at, added.repository_id, added.cancel_asked_at) == (None, None, None)
        assert added.totals == ledger.totals(CAMPAIGN)
        assert (added.totals.expected, added.totals.reserved, added.totals.committed) == (500, 1000, 0)
        assert added.totals.states == (("planned", 2),)
        assert [(shard.index, shard.cells, shard.state) for shard in ledger.shards(CAMPAIGN)] == [
            (0, 3, "planned"),
            (1, 2, "planned"),
        ]
        cells = [cell for shard in campaign.shards for cell in shard.cells]
        kept = list(ledger.cells(CAMPAIGN))
        assert [(cell.handle, cell.expected, cell.reserved) for cell in kept] == [
            (cell.handle, cell.expected, cell.reserved) for cell in cells
        ]
        assert [cell.handle for cell in ledger.cells(CAMPAIGN, 1)] == [cell.handle for cell in campaign.shards[1].cells]
        assert [event.after for event in ledger.events(CAMPAIGN)] == ["planned"]
        ledger.close()
        with open_ledger(path, now=Clock()) as again:
            assert again.campaign(CAMPAIGN) == added
            assert list(again.cells(CAMPAIGN)) == kept

    def test_adding_again_changes_nothing(self, ledger: Ledger) -> None:
        campaign = planned(2)
        ledger.add(campaign)
        with ledger.acting(CAMPAIGN):
            bring(ledger, ledger.shards(CAMPAIGN)[0], PATHS["sent"])
        with unchanged(ledger):
            ledger.add(campaign)

    def test_another_campaign_with_the_same_id_is_refused(self, ledger: Ledger) -> None:
        ledger.add(planned(2))
        with unchanged(ledger), pytest.raises(RefusedError, match="has another campaign"):
            ledger.add(planned(2, max_cost=10**9))

    def test_a_campaign_that_cannot_be_written_whole_is_not_written_at_all(self, ledger: Ledger) -> None:
        campaign = planned(1, 1)
        twice = replace(campaign.shards[1], cells=campaign.shards[0].cells)
        with pytest.raises(DefectError):
            ledger.add(replace(campaign, shards=(campaign.shards[0], twice)))
        assert ledger.campaigns() == ()

    def test_the_newest_comes_first(self, ledger: Ledger) -> None:
        ids = [f"c-20260101t000000z-0000000{number}" for number in range(3)]
        for each in ids:
            ledger.add(planned(1, id=each))
        assert [campaign.id for campaign in ledger.campaigns()] == ids[::-1]

    def test_a_campaign_is_found_by_a_part_of_its_id(self, ledger: Ledger) -> None:
        first, second = "c-20260101t000000z-0000abcd", "c-20260102t000000z-0000ffff"
        ledger.add(planned(1, id=first))
        ledger.add(planned(1, id=second))
        assert ledger.find(first).id == ledger.find("c-20260101").id == ledger.find("abcd").id == first
        assert ledger.find("ffff").id == second
        with pytest.raises(UsageError, match="fits 2 campaigns"):
            ledger.find("c-2026")
        for text in ("", "20260101", "zzzz", "c-20260103"):
            with pytest.raises(UsageError, match="has no campaign"):
                ledger.find(text)

    def test_what_is_not_there_is_said(self, ledger: Ledger) -> None:
        with pytest.raises(UsageError, match="it has none at all"):
            ledger.campaign(CAMPAIGN)
        ledger.add(planned(1))
        for ask in (ledger.campaign, ledger.shards, ledger.totals, ledger.ask_to_cancel):
            with pytest.raises(UsageError, match="did you mean c-20260101t000000z-00000000"):
                ask("c-20260101t000000z-00000001")
        with pytest.raises(UsageError), ledger.acting("../../etc"):
            pass

    def test_a_repository_stays_the_same(self, ledger: Ledger) -> None:
        ledger.add(planned(1))
        assert ledger.bind(CAMPAIGN, repository_id=5).repository_id == 5
        assert ledger.bind(CAMPAIGN, repository_id=5).repository_id == 5
        with pytest.raises(RefusedError, match="another repository"):
            ledger.bind(CAMPAIGN, repository_id=6)
        assert ledger.campaign(CAMPAIGN).repository_id == 5

    def test_asking_to_cancel_needs_no_lock_and_is_noted_once(self, acting: Ledger, path: Path) -> None:
        with open_ledger(path, now=Clock(2e9)) as other:
            first = other.ask_to_cancel(CAMPAIGN).cancel_asked_at
            assert other.ask_to_cancel(CAMPAIGN).cancel_asked_at == first == 2e9 + 2
        assert acting.campaign(CAMPAIGN).cancel_asked_at == first
        assert [event.after for event in acting.events(CAMPAIGN)] == ["planned", "cancel asked"]


class TestMoves:
    def test_the_whole_way(self, acting: Ledger) -> None:
        shard, other = acting.shards(CAMPAIGN)
        assert (shard.key, shard.committed) == (f"{CAMPAIGN}/0/1", 0)
        shard = acting.move(shard, "reserved", nonce=nonce(1))
        assert (shard.nonce, shard.committed, shard.version) == (nonce(1), 400, 2)
        assert acting.campaign(CAMPAIGN).started_at is not None
        shard = acting.intend(shard)
        assert shard.state == "sending"
        assert shard.intended_at is not None
        assert shard.sent_at is None
        shard = acting.move(shard, "sent", hinted_run=41, note="GitHub named a run")
        assert (shard.hinted_run, shard.run, shard.note) == (41, None, "GitHub named a run")
        assert shard.sent_at is not None
        assert shard.intended_at is not None
        assert shard.sent_at > shard.intended_at
        shard = acting.move(shard, "running", run=42, attempt=1)
        assert (shard.run, shard.attempt, shard.hinted_run, shard.note) == (42, 1, 41, "")
        shard = acting.move(shard, "ended")
        shard = acting.settle(shard, outcomes(acting, shard))
        assert (shard.state, shard.actual, shard.kept, shard.committed) == ("settled", 140, 0, 140)
        assert acting.shards(CAMPAIGN) == (shard, other)
        assert [(event.before, event.after, event.committed) for event in acting.events(CAMPAIGN)][1:] == [
            ("planned", "reserved", 400),
            ("reserved", "sending", 400),
            ("sending", "sent", 400),
            ("sent", "running", 400),
            ("running", "ended", 400),
            ("ended", "settled", 140),
        ]

    @pytest.mark.parametrize("before", STATES)
    @pytest.mark.parametrize("after", STATES)
    def test_exactly_the_moves_of_the_table_are_made(self, acting: Ledger, before: State, after: State) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS[before])
        if after in MOVES[before]:
            assert bring(acting, shard, [after]).state == after
        else:
            with unchanged(acting), pytest.raises(DefectError, match=f"illegal move of .*: {before} to {after}"):
                bring(acting, shard, [after])

    @pytest.mark.parametrize("state", STATES)
    def test_what_counts_against_the_cap(self, acting: Ledger, state: State) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS[state])
        expected = 400 if state in HOLDING else 140 if state == "settled" else 0
        assert shard.committed == acting.totals(CAMPAIGN).committed == expected

    def test_a_move_outside_of_the_lock_is_a_defect(self, ledger: Ledger) -> None:
        ledger.add(planned(1))
        (shard,) = ledger.shards(CAMPAIGN)
        with pytest.raises(DefectError, match="only while its campaign is locked"):
            ledger.move(shard, "reserved", nonce=nonce(1))
        with ledger.acting(CAMPAIGN):
            shard = bring(ledger, shard, PATHS["ended"])
        with pytest.raises(DefectError, match="only while its campaign is locked"):
            ledger.settle(shard, outcomes(ledger, shard))
        assert ledger.shards(CAMPAIGN) == (shard,)

    def test_a_shard_that_was_changed_since_is_not_moved(self, acting: Ledger) -> None:
        old = acting.shards(CAMPAIGN)[0]
        new = acting.move(old, "reserved", nonce=nonce(1))
        for again in (old, replace(new, version=new.version + 1), replace(new, round=2)):
            fresh = nonce(2) if again.state == "planned" else None
            with unchanged(acting), pytest.raises(StaleError, match="changed by another process"):
                acting.move(again, "reserved" if fresh else "sending", nonce=fresh)

    def test_many_moves_are_made_together_or_not_at_all(self, acting: Ledger) -> None:
        first, second = acting.shards(CAMPAIGN)
        moves = [Move(shard=shard, to="reserved", nonce=nonce(shard.index)) for shard in (first, second)]
        with unchanged(acting), pytest.raises(DefectError):
            acting.move_all([*moves, Move(shard=replace(first, state="settled"), to="planned")])
        with unchanged(acting), pytest.raises(StaleError):
            acting.move_all([moves[0], replace(moves[1], shard=replace(second, version=9))])
        assert [shard.state for shard in acting.move_all(moves)] == ["reserved", "reserved"]
        assert acting.move_all([]) == ()

    @pytest.mark.parametrize("text", [None, "", "n", "20260101t000000z-XYZ", "20260101t000000z-0000000000000001 "])
    def test_a_reservation_needs_a_nonce_that_is_one(self, acting: Ledger, text: str | None) -> None:
        with unchanged(acting), pytest.raises(DefectError, match="needs fresh nonce"):
            acting.move(acting.shards(CAMPAIGN)[0], "reserved", nonce=text)

    def test_no_other_move_takes_a_nonce(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], ["reserved"])
        for state in ("sending", "planned", "cancelled"):
            with unchanged(acting), pytest.raises(DefectError, match="takes no fresh nonce"):
                acting.move(shard, state, nonce=nonce(10**9))

    def test_a_nonce_is_used_once_in_all_campaigns(self, acting: Ledger) -> None:
        first, second = acting.shards(CAMPAIGN)
        shard = acting.move(first, "reserved", nonce=nonce(1))
        with unchanged(acting), pytest.raises(DefectError):
            acting.move(second, "reserved", nonce=nonce(1))
        shard = acting.move(shard, "reserved", nonce=nonce(2), note="the first was too old")
        assert (shard.nonce, shard.round) == (nonce(2), 1)
        shard = acting.move(shard, "planned")
        assert shard.nonce is None
        other = "c-20260101t000000z-00000001"
        acting.add(planned(1, id=other))
        with acting.acting(other), pytest.raises(DefectError):
            acting.move(acting.shards(other)[0], "reserved", nonce=nonce(2))

    def test_what_certainly_did_not_go_out_is_reserved_still(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["sending"])
        back = acting.move(shard, "reserved", note="GitHub was not reached")
        assert (back.nonce, back.round, back.intended_at) == (shard.nonce, 1, None)
        assert acting.intend(back).state == "sending"

    def test_sending_again_is_another_round(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], ("reserved", "sending"))
        shard = acting.move(shard, "unknown", hinted_run=3)
        shard = acting.move(shard, "unpaid", note="its claim is burned")
        assert (shard.committed, shard.round) == (0, 1)
        again = acting.move(shard, "reserved", nonce=nonce(99))
        assert (again.round, again.key) == (2, f"{CAMPAIGN}/0/2")
        assert (again.hinted_run, again.run, again.sent_at, again.intended_at, again.note) == (None,) * 4 + ("",)

    def test_a_known_run_is_not_left_for_another(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["running"])
        assert acting.move(shard, "running", attempt=2).attempt == 2
        shard = acting.shards(CAMPAIGN)[0]
        with unchanged(acting), pytest.raises(DefectError, match="would leave run 7 for run 8"):
            acting.move(shard, "running", run=8)
        shard = acting.move(shard, "stuck", note="who holds the claim?")
        assert acting.move(shard, "running", run=8, note="a person said so").run == 8

    def test_a_run_is_needed_to_run(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["unknown"])
        with unchanged(acting), pytest.raises(DefectError):
            acting.move(shard, "running")

    def test_what_a_server_may_say_is_no_obstacle(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["sent"])
        shard = acting.move(shard, "unknown", note="half \ud83d of an emoji \0", hinted_run=2**63 - 1)
        assert (shard.note, shard.hinted_run) == ("half ? of an emoji \0", 2**63 - 1)
        with unchanged(acting), pytest.raises(DefectError, match="does not fit"):
            acting.move(shard, "running", run=2**63)
        acting.remember("k", "1", '"\ud83d"')
        found = acting.remembered("k")
        assert found is not None
        assert found.body == '"\ud83d"'

    def test_a_note_lasts_as_long_as_the_state(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], ("reserved", "sending"))
        shard = acting.move(shard, "unknown", note="the answer did not come")
        shard = acting.move(shard, "unknown", hinted_run=5)
        assert shard.note == "the answer did not come"
        shard = acting.move(shard, "stuck")
        assert shard.note == ""
        assert len(acting.move(shard, "stuck", note="x" * 10_000).note) == 2000


class TestBudget:
    def test_the_cap_of_the_campaign_holds_in_the_ledger_too(self, ledger: Ledger) -> None:
        ledger.add(planned(2, 1, max_cost=600))
        with ledger.acting(CAMPAIGN):
            first, second = ledger.shards(CAMPAIGN)
            first = bring(ledger, first, PATHS["ended"])
            costly = outcomes(ledger, first, actual=300)
            ledger.settle(first, costly)
            with unchanged(ledger), pytest.raises(BudgetError) as caught:
                ledger.move(second, "reserved", nonce=nonce(10**6))
        assert "does not fit under the campaign's cap of $0.0006" in caught.value.problem.what
        assert caught.value.problem.why == "$0.0006 are paid or reserved and $0.0002 are needed: $0.0002 too much"

    def test_to_the_last_micro(self, ledger: Ledger) -> None:
        ledger.add(planned(2, 1, max_cost=600))
        with ledger.acting(CAMPAIGN):
            for shard in ledger.shards(CAMPAIGN):
                bring(ledger, shard, PATHS["sent"])
        assert ledger.totals(CAMPAIGN).committed == 600

    def test_what_was_unpaid_makes_room(self, ledger: Ledger) -> None:
        ledger.add(planned(1, 1, max_cost=200))
        with ledger.acting(CAMPAIGN):
            first, second = ledger.shards(CAMPAIGN)
            first = bring(ledger, first, PATHS["unknown"])
            with pytest.raises(BudgetError):
                bring(ledger, second, ["reserved"])
            first = ledger.move(first, "unpaid")
            second = bring(ledger, second, ["reserved"])
            with pytest.raises(BudgetError):
                bring(ledger, first, ["reserved"])
            bring(ledger, second, ["cancelled"])
            bring(ledger, first, ["reserved"])


class TestSettling:
    def test_every_cell_is_written(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["ended"])
        good, lost = outcomes(acting, shard)
        lost = replace(lost, verdict="not_run", actual=None, kept=200, attempts=0, note="no result")
        shard = acting.settle(shard, [lost, good])
        assert (shard.actual, shard.kept, shard.committed) == (70, 200, 270)
        cells = {cell.handle: cell for cell in acting.cells(CAMPAIGN, 0)}
        assert (cells[lost.handle].verdict, cells[lost.handle].actual, cells[lost.handle].kept) == (
            "not_run",
            None,
            200,
        )
        assert (cells[good.handle].verdict, cells[good.handle].actual, cells[good.handle].note) == ("passed", 70, "")
        assert [cell.verdict for cell in acting.cells(CAMPAIGN, 1)] == [None]
        totals = acting.totals(CAMPAIGN)
        assert (totals.actual, totals.kept, totals.committed) == (70, 200, 270)
        assert totals.number("settled", "planned") == 2

    def test_a_cost_of_no_cell_is_added_and_none_is_dropped(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["ended"])
        found = outcomes(acting, shard, kept=10)
        for actual, kept in ((139, None), (None, 19)):
            with unchanged(acting), pytest.raises(DefectError, match="costs less than its cells do"):
                acting.settle(shard, found, actual=actual, kept=kept)
        shard = acting.settle(shard, found, actual=150, kept=25, note="a foreign record")
        assert (shard.actual, shard.kept, shard.note) == (150, 25, "a foreign record")

    def test_more_than_the_reservation_is_written_as_it_is(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["ended"])
        shard = acting.settle(shard, outcomes(acting, shard, actual=5_000, kept=1_000))
        assert shard.committed == 12_000

    def test_each_cell_once_and_no_other(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["ended"])
        found = outcomes(acting, shard)
        stranger = Outcome(handle="cell-ffffffffffffffff")
        for wrong in (
            [],
            found[:1],
            [*found, found[0]],
            [found[0], found[0]],
            [*found, stranger],
            [found[0], stranger],
        ):
            with unchanged(acting), pytest.raises(DefectError, match="not those of its cells"):
                acting.settle(shard, wrong)

    def test_no_cost_is_below_zero(self, acting: Ledger) -> None:
        shard = bring(acting, acting.shards(CAMPAIGN)[0], PATHS["ended"])
        found = outcomes(acting, shard)
        for wrong in (replace(found[0], actual=-1), replace(found[0], kept=-1)):
            with unchanged(acting), pytest.raises(DefectError):
                acting.settle(shard, [wrong, found[1]])


class TestClientsThatEnd:
    def test_what_was_being_sent_is_unknown_for_the_next(self, ledger: Ledger, path: Path) -> None:
        ledger.add(planned(1, 1, 1))
        with ledger.acting(CAMPAIGN):
            for shard, state in zip(ledger.shards(CAMPAIGN), ("sending", "reserved", "sent"), strict=True):
                bring(ledger, shard, PATHS[state])  # type: ignore[index]
        assert [shard.state for shard in ledger.shards(CAMPAIGN)] == ["sending", "reserved", "sent"]
        with open_ledger(path, now=Clock()) as other, other.acting(CAMPAIGN):
            assert [shard.state for shard in other.shards(CAMPAIGN)] == ["unknown", "reserved", "sent"]
            assert other.shards(CAMPAIGN)[0].note == "the client ended while it sent this"
            assert other.shards(CAMPAIGN)[0].committed == 200

    def test_a_reader_does_not_touch_what_another_is_sending(self, acting: Ledger, path: Path) -> None:
        bring(acting, acting.shards(CAMPAIGN)[0], PATHS["sending"])
        with open_ledger(path, now=Clock()) as reader:
            assert reader.shards(CAMPAIGN)[0].state == "sending"
            with pytest.raises(RefusedError, match="is being run already"), reader.acting(CAMPAIGN):
                pass
            assert reader.shards(CAMPAIGN)[0].state == "sending"

    def test_the_lock_is_of_one_campaign(self, acting: Ledger, path: Path) -> None:
        other = "c-20260101t000000z-00000001"
        with open_ledger(path, now=Clock()) as second:
            second.add(planned(1, id=other))
            with second.acting(other):
                bring(second, second.shards(other)[0], PATHS["sent"])
                bring(acting, acting.shards(CAMPAIGN)[0], PATHS["sent"])

    def test_even_without_locks_a_shard_is_sent_once(self, acting: Ledger, path: Path) -> None:
        """Somebody removed the folder of the locks: then the versions of the shards decide."""
        shard = bring(acting, acting.shards(CAMPAIGN)[0], ["reserved"])
        shutil.rmtree(path.with_name(f"{path.name}.locks"))
        with open_ledger(path, now=Clock()) as other, other.acting(CAMPAIGN):
            sent = other.intend(other.shards(CAMPAIGN)[0])
            with pytest.raises(StaleError):
                acting.intend(shard)
            assert other.move(sent, "sent").state == "sent"

    def test_an_error_inside_gives_the_lock_back(self, ledger: Ledger) -> None:
        ledger.add(planned(1))
        with pytest.raises(KeyboardInterrupt), ledger.acting(CAMPAIGN):
            raise KeyboardInterrupt
        with ledger.acting(CAMPAIGN), pytest.raises(RefusedError), ledger.acting(CAMPAIGN):
            pass
        with ledger.acting(CAMPAIGN):
            pass


class TestLimitsAndAnswers:
    def test_what_is_known_of_a_token_is_changed_in_one_piece(self, ledger: Ledger, path: Path) -> None:
        ledger.change_rate("digest", lambda before: before + "a")
        with open_ledger(path, now=Clock(), patience=0.05) as other:
            seen = []

            def change(before: str) -> str:
                with pytest.raises(RefusedError, match="locked"):
                    other.change_rate("digest", lambda _: "lost")
                return before + "b"

            ledger.change_rate("digest", change)
            other.change_rate("digest", lambda before: seen.append(before) or before)  # type: ignore[func-returns-value]
            other.change_rate("another", lambda before: seen.append(before) or before)  # type: ignore[func-returns-value]
        assert seen == ["ab", ""]

    def test_a_change_that_fails_changes_nothing(self, ledger: Ledger) -> None:
        ledger.change_rate("digest", lambda _: "1")
        with pytest.raises(ZeroDivisionError):
            ledger.change_rate("digest", lambda _: str(1 // 0))
        seen = []
        ledger.change_rate("digest", lambda before: seen.append(before) or before)  # type: ignore[func-returns-value]
        assert seen == ["1"]

    def test_answers_are_remembered_and_replaced(self, ledger: Ledger) -> None:
        assert ledger.remembered("k") is None
        for body in ("[]", '{"ü": "日本"}' * 1000):
            ledger.remember("k", f'W/"{len(body)}"', body)
            found = ledger.remembered("k")
            assert found is not None
            assert (found.etag, found.body) == (f'W/"{len(body)}"', body)

    @pytest.mark.parametrize("body", [b"", b"x", zlib.compress(b"\xff")])
    def test_a_damaged_answer_is_none(self, ledger: Ledger, body: bytes) -> None:
        ledger.remember("k", "1", "body")
        with ledger._changing() as database:
            database.execute("UPDATE answers SET body = ?", (body,))
        assert ledger.remembered("k") is None

    def test_answers_that_nobody_uses_are_forgotten(self, path: Path) -> None:
        clock = Clock()
        with open_ledger(path, now=clock) as ledger:
            ledger.remember("used", "1", "")
            ledger.remember("unused", "1", "")
            for _ in range(31):
                clock.time += 86_400
                assert ledger.remembered("used") is not None
            ledger.remember("new", "1", "")
            assert [ledger.remembered(key) is None for key in ("used", "unused", "new")] == [False, True, False]

    def test_there_are_never_too_many_answers(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("runner_e2e.dispatch.ledger._MOST_ANSWERS", 3)
        for number in range(6):
            ledger.remember(str(number), "1", "x")
        assert [ledger.remembered(str(number)) is not None for number in range(6)] == [False] * 3 + [True] * 3


class TestLargeCampaigns:
    def test_ten_thousand_cells_are_there_at_once(self, path: Path) -> None:
        with open_ledger(path, now=Clock()) as ledger:
            ledger.add(planned(*[250] * 40))
            with ledger.acting(CAMPAIGN):
                for shard in ledger.shards(CAMPAIGN):
                    bring(ledger, shard, PATHS["ended" if shard.index % 2 else "settled"])
        begin = time.process_time()
        with open_ledger(path, now=Clock()) as ledger, ledger.acting(CAMPAIGN):
            assert ledger.campaigns()[0].totals.number("settled", "ended") == 40
            assert len(ledger.shards(CAMPAIGN)) == 40
            assert sum(1 for _ in ledger.cells(CAMPAIGN)) == 10_000
        # A third of a second; the rest is for slow machines.
        assert time.process_time() - begin < 2


class TestExport:
    def test_everything_is_in_it_and_it_is_json(self, acting: Ledger) -> None:
        bring(acting, acting.shards(CAMPAIGN)[0], PATHS["settled"])
        acting.add(planned(1, id="c-20260101t000000z-00000001"))
        documents = [json.loads(json.dumps(each, allow_nan=False)) for each in acting.export()]
        kinds = [document["kind"] for document in documents]
        assert kinds == (
            ["ledger", "campaign"]
            + ["shard"] * 2
            + ["cell"] * 3
            + ["event"] * 7
            + ["campaign", "shard", "cell", "event"]
        )
        assert documents[0]["uuid"] == acting.uuid
        assert documents[1]["totals"]["committed"] == 140
        assert {document.get("campaign", document.get("id")) for document in documents[1:14]} == {CAMPAIGN}

    def test_the_books_are_append_only(self, acting: Ledger) -> None:
        bring(acting, acting.shards(CAMPAIGN)[0], PATHS["settled"])
        for statement in (
            "DELETE FROM events",
            "UPDATE events SET after = 'planned'",
            "DELETE FROM nonces",
            "UPDATE nonces SET round = 9",
            "DELETE FROM cells",
            "DELETE FROM shards",
            "DELETE FROM campaigns",
            "UPDATE campaigns SET max_cost = 1",
            "UPDATE shards SET reserved = 400 WHERE position = 1",
            "UPDATE shards SET sealed = 'x'",
            "UPDATE cells SET expected = 0",
            "UPDATE shards SET state = 'planned'",
        ):
            with unchanged(acting), pytest.raises(DefectError), acting._changing() as database:
                database.execute(statement)
