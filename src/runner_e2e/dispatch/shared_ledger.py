"""The shared ledger: what all operators and scheduled runs of a repository have reserved and spent, in the repository.

It lies on a branch of its own, ``runner-e2e-ledger``: one file for each month, and ``caps.json``. Every change is made
only where nobody else changed the file since it was read, and caps are checked against what was read. So two who
reserve at once cannot both take the last of a cap.

Days are those of GitHub's clock: a machine whose own is wrong passes no cap.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from runner_e2e.cells.wording import count
from runner_e2e.dispatch.caps import check_caps, rooms
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.shared_ledger_branch import LedgerBranch, NotThereError, Write
from runner_e2e.dispatch.shared_ledger_file import (
    BRANCH,
    CAPS_FILE,
    Caps,
    Entry,
    caps_as_text,
    is_month_file,
    month_as_text,
    month_file,
)
from runner_e2e.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from runner_e2e.dispatch.caps import Room
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.shared_ledger_branch import Look

__all__ = ["BRANCH", "Caps", "Entry", "SharedLedger"]

# Of looks that do not show what was reserved: a replica that is behind does not.
_MOST_MISSES: Final = 4
# A run ends within 35 days and may be started again for 30 (https://docs.github.com/en/actions/reference/limits).
_MONTHS_BACK: Final = 3
_MONTH_OF_CAMPAIGN = re.compile(r"c-([0-9]{4})([0-9]{2})[0-9]{2}t")


class SharedLedger:
    """The shared ledger of one repository. Reading changes nothing, and a ledger that is not there has no caps.

    Every method raises :class:`~runner_e2e.errors.GitHubError` where GitHub does not answer, and
    :class:`~runner_e2e.errors.RefusedError` for a ledger that is damaged, of a newer version, or somebody else's
    branch. A write that raised may have been carried out; to call it again is always right.
    """

    def __init__(self, api: GitHubApi) -> None:
        self._branch = LedgerBranch(api)

    # Reading

    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self._branch.look().files is not None

    def caps(self) -> Caps:
        """The caps that hold."""
        return self._branch.caps(self._branch.look())

    def rooms(self, campaign: str = "") -> tuple[Room, ...]:
        """Each cap with what is spent and reserved under it today: of *campaign* where one is named, day, month."""
        look = self._branch.look()
        entries = self._standing(look, [campaign] if campaign else [])
        return rooms(self._branch.caps(look), entries, day=look.day, campaign=campaign)

    def spent(self, period: Literal["day", "month"]) -> int:
        """Micro-dollars that are spent or reserved today, or in this month, as far as they are known."""
        day, month = self.rooms()
        return {"day": day, "month": month}[period].taken

    def entries(self, campaign: str) -> tuple[Entry, ...]:
        """The entries of *campaign*, in the order in which they were reserved."""
        return tuple(each for each in self._standing(self._branch.look(), [campaign]) if each.campaign == campaign)

    def open_entries(self) -> tuple[Entry, ...]:
        """What is reserved and not settled, of the last months."""
        return tuple(each for each in self._standing(self._branch.look(), [""]) if each.state == "reserved")

    def of_nonce(self, nonce: str) -> Entry | None:
        """What was reserved for the claim named *nonce* and not released; None where nothing was."""
        return _of_nonce(self._standing(self._branch.look(), [""]), nonce)

    # Changing

    def set_caps(self, **changes: int | None) -> Caps:
        """Changes the caps that are named (``campaign``, ``day``, ``month``; micro-dollars, None: no cap).

        Makes the ledger where there is none. Returns the caps that hold now. They refuse what is reserved from now on.
        """

        def change(look: Look) -> Write | None:
            before = self._branch.caps(look)
            after = replace(before, **changes)
            if after == before:
                return None
            return Write(name=CAPS_FILE, text=caps_as_text(after), message="Change the caps")

        self._branch.change(change)
        return self.caps()

    def reserve(
        self, entries: Iterable[Entry], max_cost: int | None = None, *, made: Collection[str] | None = None
    ) -> None:
        """Reserves all of *entries* (their ``day`` is set here) within the caps, or none of them.

        What stands already under the same key, owner and nonce is left as it is. A key of the same owner that was
        released is reserved again; one with another nonce is taken over with the new one. *max_cost* is the most that
        each campaign of *entries* may cost by its plan. *made* are all nonces that this client ever made for them: one
        that stands there and is none of these was made by a copy of its ledger, which may have sent it. Makes the
        ledger where there is none.

        Raises :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed, and
        :class:`~runner_e2e.errors.RefusedError` where somebody else has reserved for the same campaign, a copy of the
        client's ledger has, or a key is settled under another nonce: then nothing was written.
        """
        wanted = tuple(entries)
        campaigns = {each.campaign for each in wanted}

        def change(look: Look) -> Write | None:
            standing = {each.key: each for each in self._standing(look, campaigns)}
            _check_owners(standing.values(), wanted)
            _check_nonces(standing.values(), campaigns, made)
            moved, fresh = _to_reserve(standing, wanted)
            if moved:
                return self._replaced(look, moved, last=not fresh, message=f"Renew {count(len(moved), 'nonce')}")
            return self._added(look, list(standing.values()), fresh, max_cost)

        self._branch.change(change)

    def reserve_for_nonce(self, entry: Entry) -> Entry | None:
        """Reserves *entry* unless something that was not released stands for its nonce.

        Returns what stands then, None where there is no ledger: this makes none. Raises
        :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed, and
        :class:`~runner_e2e.errors.RefusedError` where its key stands for another nonce.
        """
        return self._once(entry, lambda look, standing: self._added(look, standing, [entry]))

    def add_unreserved(self, entry: Entry) -> Entry | None:
        """Adds *entry*, for what is paid already and was never reserved here; caps do not refuse it any more.

        Returns what stands for its nonce then, None where there is no ledger: this makes none.
        """
        return self._once(entry, lambda look, _: self._written(look, [replace(entry, day=look.day)]))

    def _once(self, entry: Entry, write: Callable[[Look, list[Entry]], Write | None]) -> Entry | None:
        """Has *write* add *entry* to those that stand, unless one of them is for its nonce; returns what stands then.

        None where there is no ledger. Raises :class:`~runner_e2e.errors.RefusedError` where its key stands for another
        nonce, and whatever *write* does.
        """
        stands: list[Entry] = []

        def change(look: Look) -> Write | None:
            stands.clear()
            if look.files is None:
                return None
            standing = self._standing(look, [entry.campaign, ""])
            found = _of_nonce(standing, entry.nonce)
            stands.append(found or replace(entry, day=look.day))
            if found:
                return None
            _check_key(standing, entry)
            return write(look, standing)

        self._branch.change(change, make=False)
        return stands[0] if stands else None

    def renew(self, nonces: Mapping[str, str]) -> None:
        """Gives reservations (by key) new nonces; they count where they have counted.

        Raises :class:`~runner_e2e.errors.RefusedError` for a key that is not reserved.
        """

        def renewed(entry: Entry) -> Entry:
            if entry.state != "reserved":
                raise RefusedError(f"{entry.key} is {entry.state}, so it gets no new nonce", fix="reserve it again")
            return replace(entry, nonce=nonces[entry.key])

        self._edit(nonces, renewed, "Renew", strict=True)

    def settle(self, items: Iterable[tuple[str, int | None, int | None]]) -> None:
        """Writes what reservations cost: key, micro-dollars, id of the run.

        None for the cost keeps the reservation, or the cost that was written before. A later cost replaces an earlier
        one. Raises :class:`~runner_e2e.errors.RefusedError` for a key that was never reserved.
        """
        known = {key: (charged, run) for key, charged, run in items}

        def settled(entry: Entry) -> Entry:
            charged, run = known[entry.key]
            run = entry.run if run is None else run
            if charged is None:
                return replace(entry, run=run)
            return replace(entry, state="settled", charged=charged, run=run)

        self._edit(known, settled, "Settle", strict=True)

    def release(self, keys: Collection[str], *, made: Collection[str] | None = None) -> None:
        """Gives back reservations for which nothing was and nothing can be paid. An unknown key is as good as released.

        What stands under another nonce than those *made* by this client is left as it is: it is that of a copy.

        Raises :class:`~runner_e2e.errors.RefusedError` for one that has cost something.
        """

        def released(entry: Entry) -> Entry:
            if made is not None and entry.nonce not in made:
                return entry
            if entry.charged:
                raise RefusedError(
                    f"{entry.key} cannot be released: it has cost {usd(entry.charged)}",
                    why=f"run {entry.run} has paid for it" if entry.run else "a run has paid for it",
                    fix="settle it",
                )
            return replace(entry, state="released", charged=None)

        self._edit(dict.fromkeys(keys), released, "Release")

    # What a change of the month's file is

    def _added(
        self, look: Look, standing: Sequence[Entry], fresh: Sequence[Entry], max_cost: int | None = None
    ) -> Write | None:
        """Today's month with *fresh* in it. Raises :class:`~runner_e2e.dispatch.money.BudgetError`."""
        if not fresh:
            return None
        added = {each.key: replace(each, day=look.day, state="reserved", charged=None) for each in fresh}
        others = [each for each in standing if each.key not in added]
        check_caps(self._branch.caps(look), others, tuple(added.values()), day=look.day, max_cost=max_cost)
        return self._written(look, tuple(added.values()))

    def _written(self, look: Look, added: Sequence[Entry]) -> Write:
        """Today's month with *added* in it, each in place of one with its key."""
        name, keys = month_file(look.day), {each.key for each in added}
        kept = [each for each in self._branch.month(look, name) if each.key not in keys]
        amount = usd(sum(each.reserved or 0 for each in added))
        campaigns = ", ".join(dict.fromkeys(each.campaign for each in added))
        return Write(name=name, text=month_as_text(name, [*kept, *added]), message=f"Reserve {amount} for {campaigns}")

    def _edit(
        self, keys: Mapping[str, object], edit: Callable[[Entry], Entry], verb: str, *, strict: bool = False
    ) -> None:
        """Changes the newest entry of each key, in the file of the month in which it was reserved."""
        if not keys:
            return
        misses = 0

        def change(look: Look) -> Write | None:
            nonlocal misses
            found = self._find(look, keys)
            missing = [key for key in keys if key not in found]
            misses += bool(missing and look.files)
            if missing and 0 < misses < _MOST_MISSES:
                raise NotThereError(f"{missing[0]} is not in the shared ledger", fix="try again")
            if missing and strict:
                raise RefusedError(
                    f"nothing is reserved as {missing[0]} in the shared ledger",
                    why=f"the key is misspelt, or the branch {BRANCH} was deleted or changed by hand",
                    fix=f"`runner-e2e dispatch caps` lists what is reserved; else look at the history of {BRANCH}",
                )
            edited = {key: edit(entry) for key, entry in found.items()}
            changed = {key: entry for key, entry in edited.items() if entry != found[key]}
            return self._replaced(look, changed, message=f"{verb} {', '.join(sorted(changed))[:200]}")

        self._branch.change(change, make=False)

    def _replaced(self, look: Look, changed: Mapping[str, Entry], *, message: str, last: bool = True) -> Write | None:
        """One of the files that *changed* entries stand in."""
        if not changed:
            return None
        names = sorted({month_file(each.day) for each in changed.values()})
        entries = [
            changed[each.key] if each.key in changed and changed[each.key].day == each.day else each
            for each in self._branch.month(look, names[0])
        ]
        return Write(
            name=names[0], text=month_as_text(names[0], entries), message=message, last=last and len(names) == 1
        )

    def _find(self, look: Look, keys: Collection[str]) -> dict[str, Entry]:
        """The newest entry of each of *keys*; months are read from the newest on, and only as far as needed."""
        found: dict[str, Entry] = {}
        for name in sorted(filter(is_month_file, look.files or ()), reverse=True):
            for each in self._branch.month(look, name):
                if each.key in keys:
                    found.setdefault(each.key, each)
            if len(found) == len(keys):
                break
        return found

    def _standing(self, look: Look, campaigns: Collection[str]) -> list[Entry]:
        """All entries of this month, and of the months before in which *campaigns* can have any; the oldest first."""
        first = min((_first_month(each, look.day) for each in campaigns), default=month_file(look.day))
        newest: dict[str, Entry] = {}
        for name in sorted(filter(is_month_file, look.files or ())):
            if name >= min(first, month_file(look.day)):
                newest |= {each.key: each for each in self._branch.month(look, name)}
        return list(newest.values())


def _first_month(campaign: str, day: str) -> str:
    """The file of the first month in which *campaign* can have an entry."""
    found = _MONTH_OF_CAMPAIGN.match(campaign)
    if found:
        # Its name was made by the clock of a client, which may be ahead.
        year, month = int(found[1]), int(found[2])
        return min(f"{year}-{month:02d}.json", month_file(day))
    today = datetime.fromisoformat(day)
    months = today.year * 12 + today.month - 1 - _MONTHS_BACK
    return f"{months // 12:04d}-{months % 12 + 1:02d}.json"


def _of_nonce(entries: Iterable[Entry], nonce: str) -> Entry | None:
    return next((each for each in entries if each.nonce == nonce and each.state != "released"), None)


def _check_key(standing: Iterable[Entry], entry: Entry) -> None:
    """A run has one reservation an attempt: what stands under its key for another nonce is not written over."""
    found = next((each for each in standing if each.key == entry.key and each.state != "released"), None)
    if found is not None:
        raise RefusedError(
            f"{entry.key} stands in the shared ledger for another nonce already ({found.nonce})",
            why="one attempt of a run has one claim",
            fix="use `command: claim` once in a workflow, with one nonce",
        )


def _check_owners(standing: Iterable[Entry], wanted: Sequence[Entry]) -> None:
    owners = {each.campaign: each.owner for each in wanted}
    for each in standing:
        owner = owners.get(each.campaign, each.owner)
        if _ledger_of(each.owner) != _ledger_of(owner) and each.state != "released":
            raise RefusedError(
                f"{each.owner} has started {each.campaign} already, on {each.day}",
                why="two who run one campaign would pay for its cells twice",
                fix="watch it where it was started, or plan a campaign of your own",
            )


def _check_nonces(standing: Iterable[Entry], campaigns: Collection[str], made: Collection[str] | None) -> None:
    """A client writes a nonce down before it reserves with it, so it knows every nonce of its own campaigns."""
    for each in standing:
        # A rerun has a key of its own, and a nonce that no client makes.
        if made is None or each.nonce in made or not each.key.startswith(tuple(f"{name}/" for name in campaigns)):
            continue
        raise RefusedError(
            f"{each.key} was reserved on {each.day} under a nonce that this ledger never made",
            why="another copy of this ledger, or a newer state of it, has gone on with the campaign and may have paid",
            fix="go on with that one; where it is lost, see in the repository's runs what was paid, and plan what is "
            "missing as a new campaign",
        )


def _ledger_of(owner: str) -> str:
    """What tells owners apart: the name of an account before it changes with the token, and by itself."""
    return owner.rpartition("/")[2]


def _to_reserve(standing: Mapping[str, Entry], wanted: Sequence[Entry]) -> tuple[dict[str, Entry], list[Entry]]:
    """What is reserved under an older nonce (with the new one), and what is to be reserved."""
    moved, fresh = {}, []
    for each in wanted:
        found = standing.get(each.key)
        if found is None or found.state == "released":
            fresh.append(each)
        elif found.nonce == each.nonce:
            continue
        elif found.state == "settled" or (found.reserved, found.cells) != (each.reserved, each.cells):
            raise RefusedError(
                f"{each.key} stands in the shared ledger as something else",
                why=f"it is {found.state} under another nonce" + (f", by run {found.run}" if found.run else ""),
                fix="plan the campaign anew",
            )
        else:
            moved[each.key] = replace(found, nonce=each.nonce)
    return moved, fresh
