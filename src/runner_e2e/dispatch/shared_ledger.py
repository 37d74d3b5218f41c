"""The shared ledger: what all operators and scheduled runs of a repository have reserved and spent, in the repository.

It lies on a branch of its own, ``runner-e2e-ledger``, that has nothing in common with the others: one file for each
month, and ``caps.json``. A file is changed by GitHub's contents API with the name of the blob that was read, so a
change that somebody else made meanwhile refuses ours (409 or 422), and everything is looked at again. The same look
tells after a lost reply whether our change stands. So two who reserve at once cannot both take the last of a cap.

Days are those of GitHub's clock: a machine whose own is wrong passes no cap.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import re
import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from runner_e2e.cells.wording import count
from runner_e2e.dispatch.answers import patience, permission_hint, problem_of, server_text
from runner_e2e.dispatch.caps import check_caps, rooms
from runner_e2e.dispatch.github_api import UnknownOutcomeError, segment
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.records import value_of
from runner_e2e.dispatch.shared_ledger_file import (
    BRANCH,
    CAPS_FILE,
    Caps,
    Entry,
    caps_as_text,
    is_month_file,
    month_as_text,
    month_file,
    read_caps,
    read_month,
)
from runner_e2e.errors import DefectError, GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.caps import Room
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["BRANCH", "Caps", "Entry", "SharedLedger"]

_REF: Final = f"refs/heads/{BRANCH}"

# Of those who write at once one gets through at each try, so this is enough for a dozen that never wait.
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 4.0, 8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 16.0)
# Of refusals without a change by anybody else: then it is no conflict.
_MOST_REFUSALS: Final = 5
# Of looks that do not show what was reserved: a replica that is behind does not.
_MOST_MISSES: Final = 4
# A run ends within 35 days and may be started again for 30 (https://docs.github.com/en/actions/reference/limits).
_MONTHS_BACK: Final = 3

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MONTH_OF_CAMPAIGN = re.compile(r"c-([0-9]{4})([0-9]{2})[0-9]{2}t")
# What GitHub says of a branch that rules protect; the status is that of a conflict.
_BY_RULE = re.compile(r"rule violation|protected branch|pull request|status check|signed|required", re.IGNORECASE)

_README = """\
# Ledger of paid runs

`runner-e2e` keeps here what paid runs of this repository have reserved and cost, in micro-dollars, and their caps:
`runner-e2e dispatch caps`. Do not edit the files by hand, and do not delete the branch: caps would start at zero again.
"""


class _MissingError(GitHubError):
    """What is to be changed is not there, or not yet for who answered: to be looked for again."""


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What stands: *files* maps names to blobs, None where there is no ledger; *day* is today by GitHub's clock."""

    day: str
    files: Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True)
class _Write:
    """The new *text* of one file; *last* where nothing is left to do after it."""

    name: str
    text: str
    message: str
    last: bool = True


class SharedLedger:
    """The shared ledger of one repository. Reading changes nothing, and a ledger that is not there has no caps.

    Every method raises :class:`~runner_e2e.errors.GitHubError` where GitHub does not answer, and
    :class:`~runner_e2e.errors.RefusedError` for a ledger that is damaged, of a newer version, or somebody else's
    branch. A write that raised may have been carried out; to call it again is always right.
    """

    def __init__(self, api: GitHubApi) -> None:
        self._api = api
        # By the name of the blob, which its content makes: it never changes.
        self._caps: dict[str, Caps] = {}
        self._months: dict[tuple[str, str], tuple[Entry, ...]] = {}

    # Reading

    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self._look().files is not None

    def caps(self) -> Caps:
        """The caps that hold."""
        return self._caps_in(self._look())

    def rooms(self, campaign: str = "") -> tuple[Room, ...]:
        """Each cap with what is spent and reserved under it today: of *campaign* where one is named, day, month."""
        look = self._look()
        entries = self._standing(look, [campaign] if campaign else [])
        return rooms(self._caps_in(look), entries, day=look.day, campaign=campaign)

    def spent(self, period: Literal["day", "month"]) -> int:
        """Micro-dollars that are spent or reserved today, or in this month, as far as they are known."""
        day, month = self.rooms()
        return {"day": day, "month": month}[period].taken

    def entries(self, campaign: str) -> tuple[Entry, ...]:
        """The entries of *campaign*, in the order in which they were reserved."""
        return tuple(each for each in self._standing(self._look(), [campaign]) if each.campaign == campaign)

    def open_entries(self) -> tuple[Entry, ...]:
        """What is reserved and not settled, of the last months."""
        return tuple(each for each in self._standing(self._look(), [""]) if each.state == "reserved")

    def of_nonce(self, nonce: str) -> Entry | None:
        """What was reserved for the claim named *nonce* and not released; None where nothing was."""
        return _of_nonce(self._standing(self._look(), [""]), nonce)

    # Changing

    def set_caps(self, **changes: int | None) -> Caps:
        """Changes the caps that are named (``campaign``, ``day``, ``month``; micro-dollars, None: no cap).

        Makes the ledger where there is none. Returns the caps that hold now. They refuse what is reserved from now on.
        """

        def change(look: _Look) -> _Write | None:
            before = self._caps_in(look)
            after = replace(before, **changes)
            if after == before:
                return None
            return _Write(name=CAPS_FILE, text=caps_as_text(after), message="Change the caps")

        self._change(change)
        return self.caps()

    def reserve(self, entries: Iterable[Entry], max_cost: int | None = None) -> None:
        """Reserves all of *entries* (their ``day`` is set here) within the caps, or none of them.

        What stands already under the same key, owner and nonce is left as it is. A key of the same owner that was
        released is reserved again; one with another nonce is taken over with the new one. *max_cost* is the most that
        each campaign of *entries* may cost by its plan. Makes the ledger where there is none.

        Raises :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed, and
        :class:`~runner_e2e.errors.RefusedError` where somebody else has reserved for the same campaign, or a key is
        settled under another nonce: then nothing was written.
        """
        wanted = tuple(entries)
        campaigns = {each.campaign for each in wanted}

        def change(look: _Look) -> _Write | None:
            standing = {each.key: each for each in self._standing(look, campaigns)}
            _check_owners(standing.values(), wanted)
            moved, fresh = _to_reserve(standing, wanted)
            if moved:
                return self._replaced(look, moved, last=not fresh, message=f"Renew {count(len(moved), 'nonce')}")
            return self._added(look, list(standing.values()), fresh, max_cost)

        self._change(change)

    def reserve_for_nonce(self, entry: Entry) -> Entry | None:
        """Reserves *entry* unless something that was not released stands for its nonce.

        Returns what stands then, None where there is no ledger: this makes none. Raises
        :class:`~runner_e2e.dispatch.money.BudgetError` where a cap would be passed.
        """
        stands: list[Entry] = []

        def change(look: _Look) -> _Write | None:
            stands.clear()
            if look.files is None:
                return None
            standing = self._standing(look, [entry.campaign, ""])
            found = _of_nonce(standing, entry.nonce)
            stands.append(found or replace(entry, day=look.day))
            return None if found else self._added(look, standing, [entry])

        self._change(change, make=False)
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

    def release(self, keys: Collection[str]) -> None:
        """Gives back reservations for which nothing was and nothing can be paid. An unknown key is as good as released.

        Raises :class:`~runner_e2e.errors.RefusedError` for one that has cost something.
        """

        def released(entry: Entry) -> Entry:
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
        self, look: _Look, standing: Sequence[Entry], fresh: Sequence[Entry], max_cost: int | None = None
    ) -> _Write | None:
        """Today's month with *fresh* in it. Raises :class:`~runner_e2e.dispatch.money.BudgetError`."""
        if not fresh:
            return None
        added = {each.key: replace(each, day=look.day, state="reserved", charged=None) for each in fresh}
        others = [each for each in standing if each.key not in added]
        check_caps(self._caps_in(look), others, tuple(added.values()), day=look.day, max_cost=max_cost)
        name = month_file(look.day)
        kept = [each for each in self._month(look, name) if each.key not in added]
        amount = usd(sum(each.reserved or 0 for each in fresh))
        campaigns = ", ".join(dict.fromkeys(each.campaign for each in fresh))
        return _Write(
            name=name, text=month_as_text(name, [*kept, *added.values()]), message=f"Reserve {amount} for {campaigns}"
        )

    def _edit(
        self, keys: Mapping[str, object], edit: Callable[[Entry], Entry], verb: str, *, strict: bool = False
    ) -> None:
        """Changes the newest entry of each key, in the file of the month in which it was reserved."""
        if not keys:
            return
        misses = 0

        def change(look: _Look) -> _Write | None:
            nonlocal misses
            found = self._find(look, keys)
            missing = [key for key in keys if key not in found]
            misses += bool(missing and look.files)
            if missing and 0 < misses < _MOST_MISSES:
                raise _MissingError(f"{missing[0]} is not in the shared ledger", fix="try again")
            if missing and strict:
                raise RefusedError(
                    f"nothing is reserved as {missing[0]} in the shared ledger",
                    why=f"the branch {BRANCH} was deleted or changed by hand",
                    fix=f"look at the history of {BRANCH}",
                )
            edited = {key: edit(entry) for key, entry in found.items()}
            changed = {key: entry for key, entry in edited.items() if entry != found[key]}
            return self._replaced(look, changed, message=f"{verb} {', '.join(sorted(changed))[:200]}")

        self._change(change, make=False)

    def _replaced(self, look: _Look, changed: Mapping[str, Entry], *, message: str, last: bool = True) -> _Write | None:
        """One of the files that *changed* entries stand in."""
        if not changed:
            return None
        names = sorted({month_file(each.day) for each in changed.values()})
        entries = [
            changed[each.key] if each.key in changed and changed[each.key].day == each.day else each
            for each in self._month(look, names[0])
        ]
        return _Write(
            name=names[0], text=month_as_text(names[0], entries), message=message, last=last and len(names) == 1
        )

    def _find(self, look: _Look, keys: Collection[str]) -> dict[str, Entry]:
        """The newest entry of each of *keys*; months are read from the newest on, and only as far as needed."""
        found: dict[str, Entry] = {}
        for name in sorted(filter(is_month_file, look.files or ()), reverse=True):
            for each in self._month(look, name):
                if each.key in keys:
                    found.setdefault(each.key, each)
            if len(found) == len(keys):
                break
        return found

    # How it is read

    def _look(self) -> _Look:
        """What stands now. Raises also where a branch of that name is no ledger."""
        for pause in (*_PAUSES[:4], None):
            answer = self._api.get("contents", {"ref": _REF}, accept={404})
            day = _day_of(answer)
            if answer.status != 404:
                return _Look(day=day, files=_listed(answer))
            # A replica that is behind says the same, and so does a token that may not read: absence is to be shown.
            names = self._api.get(f"git/matching-refs/heads/{BRANCH}").data
            if not isinstance(names, list):
                raise GitHubError("GitHub's API answered without a list of refs", fix="check the API's URL")
            if all(value_of(each, str, "ref") != _REF for each in names):
                return _Look(day=day, files=None)
            if pause is not None:
                self._api.limits.wait(pause)
        raise GitHubError(f"the branch {BRANCH} exists and cannot be read", why=server_text(answer), fix="try again")

    def _caps_in(self, look: _Look) -> Caps:
        if look.files is None:
            return Caps()
        sha = look.files[CAPS_FILE]
        if sha not in self._caps:
            self._caps[sha] = read_caps(self._content(sha))
        return self._caps[sha]

    def _month(self, look: _Look, name: str) -> tuple[Entry, ...]:
        sha = (look.files or {}).get(name)
        if sha is None:
            return ()
        if (name, sha) not in self._months:
            self._months[name, sha] = read_month(name, self._content(sha))
        return self._months[name, sha]

    def _standing(self, look: _Look, campaigns: Collection[str]) -> list[Entry]:
        """All entries of this month, and of the months before in which *campaigns* can have any; the oldest first."""
        first = min((_first_month(each, look.day) for each in campaigns), default=month_file(look.day))
        newest: dict[str, Entry] = {}
        for name in sorted(filter(is_month_file, look.files or ())):
            if name >= min(first, month_file(look.day)):
                newest |= {each.key: each for each in self._month(look, name)}
        return list(newest.values())

    def _content(self, sha: str) -> bytes:
        """A blob, which this way may have more than a megabyte."""
        data = self._api.get(f"git/blobs/{segment(sha)}").data
        try:
            content = base64.b64decode(value_of(data, str, "content"))
        except (ValueError, binascii.Error):
            content = None
        if (
            content is None
            or value_of(data, str, "encoding") != "base64"
            or len(content) != value_of(data, int, "size")
        ):
            raise GitHubError("GitHub's answer holds a file that was cut off or is not in base64", fix="try again")
        return content

    # How it is written

    def _change(self, change: Callable[[_Look], _Write | None], *, make: bool = True) -> None:
        """Looks and writes until *change* finds nothing left to do, again where somebody else was faster."""
        problem: GitHubError | None = None
        refusals: dict[tuple[str, str], int] = {}
        for pause in (*_PAUSES, None):
            try:
                problem = self._changed(change, refusals, make=make)
            except _MissingError as error:
                problem = error
            if problem is None:
                return
            if pause is not None:
                # Two that have met once do not meet again at the same moment.
                self._api.limits.wait(pause * (0.5 + secrets.randbelow(1000) / 1000))
        raise problem or DefectError("a loop without a try")

    def _changed(
        self, change: Callable[[_Look], _Write | None], refusals: dict[tuple[str, str], int], *, make: bool
    ) -> GitHubError | None:
        """One try: None where nothing is left to do."""
        look = self._look()
        if look.files is None and make:
            problem = self._make_branch()
            if problem is not None:
                return problem
            look = self._look()
        while (write := change(look)) is not None:
            problem = self._put(look, write, refusals)
            if problem is not None or write.last:
                return problem
            look = self._look()
        return None

    def _put(self, look: _Look, write: _Write, refusals: dict[tuple[str, str], int]) -> GitHubError | None:
        """One try to write one file. Returns why it may not have been carried out, where looking again can help."""
        sha = (look.files or {}).get(write.name, "")
        data: dict[str, object] = {
            "message": write.message,
            "content": base64.b64encode(write.text.encode()).decode(),
            "branch": BRANCH,
            **({"sha": sha} if sha else {}),
        }
        return self._written(
            lambda: self._api.send("PUT", f"contents/{segment(write.name)}", data, accept=_REFUSALS),
            refusals, (write.name, sha),
        )  # fmt: skip

    def _make_branch(self) -> GitHubError | None:
        """One try to make the ledger: a commit without parents. A second one finds the first and does no harm."""
        files = {"README.md": _README, CAPS_FILE: caps_as_text(Caps())}
        tree = [{"path": path, "mode": "100644", "type": "blob", "content": text} for path, text in files.items()]

        def make() -> Answer:
            """The last answer, or the first one that is a refusal."""
            answer = self._api.send("POST", "git/trees", {"tree": tree}, accept=_REFUSALS)
            if answer.status == 201:
                data = {"message": "Begin the ledger", "tree": value_of(answer.data, str, "sha"), "parents": []}
                answer = self._api.send("POST", "git/commits", data, accept=_REFUSALS)
            if answer.status == 201:
                data = {"ref": _REF, "sha": value_of(answer.data, str, "sha")}
                answer = self._api.send("POST", "git/refs", data, accept=_REFUSALS)
            return answer

        return self._written(make, {}, ("", ""))

    def _written(
        self, send: Callable[[], Answer], refusals: dict[tuple[str, str], int], what: tuple[str, str]
    ) -> GitHubError | None:
        """Sends once. None where it was carried out; the problem where it may help to look and try again."""
        try:
            answer = send()
        except UnknownOutcomeError as error:
            return error
        if answer.status in {200, 201}:
            return None
        wait = patience(answer, least=1.0, now=time.time())
        if wait is not None:
            self._api.limits.wait(wait)
            return problem_of(answer)
        refusals[what] = refusals.get(what, 0) + 1
        by_rule = answer.status in {409, 422} and _BY_RULE.search(server_text(answer))
        if answer.status == 403 or by_rule or refusals[what] >= _MOST_REFUSALS:
            raise _not_taken(answer)
        return problem_of(answer)


_REFUSALS: Final = frozenset({403, 404, 409, 422, 429})


def _listed(answer: Answer) -> dict[str, str]:
    """Files and their blobs. Raises :class:`~runner_e2e.errors.RefusedError` for a branch that is no ledger."""
    if not isinstance(answer.data, list):
        raise GitHubError(f"GitHub's API answered GET {answer.path} without a list", fix="check the API's URL")
    files = {
        value_of(each, str, "name"): value_of(each, str, "sha")
        for each in answer.data
        if value_of(each, str, "type") == "file"
    }
    if CAPS_FILE not in files:
        raise RefusedError(
            f"the branch {BRANCH} is no ledger",
            why=f"it has no {CAPS_FILE}, so it is somebody's own branch, or was damaged",
            fix="rename that branch, or restore the file from its history",
        )
    if not all(_SHA.fullmatch(sha) for sha in files.values()):
        raise GitHubError("GitHub's API answered with something else than names of blobs", fix="check the API's URL")
    return files


def _day_of(answer: Answer) -> str:
    value = answer.headers.get("date", "")
    try:
        return f"{email.utils.parsedate_to_datetime(value).astimezone(UTC):%Y-%m-%d}"
    except (TypeError, ValueError, OverflowError):
        raise GitHubError(
            "GitHub's answer does not say what day it is", why=f"its Date is {value[:40]!r}", fix="try again"
        ) from None


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


def _not_taken(answer: Answer) -> GitHubError:
    """The error for a change that GitHub does not take, and not because somebody else was faster."""
    said = server_text(answer)
    if answer.status in {409, 422} and _BY_RULE.search(said):
        return GitHubError(
            f"rules of the repository protect the branch {BRANCH} from being written to",
            why=said,
            fix=f"Settings > Rules: leave {BRANCH} out, or only restrict its deletion",
        )
    return GitHubError(
        f"GitHub does not take a change of the branch {BRANCH} ({answer.status})",
        why=said,
        fix=permission_hint(answer, wanted="contents: write") or "give the token the permission contents: write",
    )
