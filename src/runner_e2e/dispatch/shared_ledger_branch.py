"""The branch of the shared ledger: what lies there, and changes that are made only where nobody else was faster.

Each file is read by the blob that a listing names, and written by GitHub's contents API with the name of the blob that
was read: who writes in between refuses ours (409 or 422), and we look again. A reply that was lost is looked up in the
same way. So every change is made once, or an error says that it may not have been.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.answers import is_rate_limit, patience, permission_hint, problem_of, server_text
from runner_e2e.dispatch.github_api import UnknownOutcomeError, segment
from runner_e2e.dispatch.records import value_of
from runner_e2e.dispatch.shared_ledger_file import (
    BRANCH,
    CAPS_FILE,
    Caps,
    caps_as_text,
    read_caps,
    read_month,
)
from runner_e2e.errors import DefectError, GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.shared_ledger_file import Entry

__all__ = ["LedgerBranch", "Look", "NotThereError", "Write"]

_REF: Final = f"refs/heads/{BRANCH}"

# Of those who write at once one gets through at each try, so this is enough for a dozen that never wait.
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 4.0, 8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 16.0)
# Of refusals without a change by anybody else: then it is no conflict.
_MOST_REFUSALS: Final = 5
_REFUSALS: Final = frozenset({403, 404, 409, 422, 429})

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# What GitHub says of a branch that rules protect; the status is that of a conflict.
_BY_RULE = re.compile(r"rule violation|protected branch|pull request|status check|signed|required", re.IGNORECASE)

_README = """\
# Ledger of paid runs

`runner-e2e` keeps here what paid runs of this repository have reserved and cost, in micro-dollars, and their caps:
`runner-e2e dispatch caps`. Do not edit the files by hand, and do not delete the branch: caps would start at zero again.
"""


class NotThereError(GitHubError):
    """What is to be changed is not there, or not yet for who answered: to be looked for again."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What stands: *files* maps names to blobs, None where there is no ledger; *day* is today by GitHub's clock."""

    day: str
    files: Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True)
class Write:
    """The new *text* of one file; *last* where nothing is left to do after it."""

    name: str
    text: str
    message: str
    last: bool = True


class LedgerBranch:
    """The branch in one repository. What was read is kept by the name of its blob, which its content makes."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api
        self._caps: dict[str, Caps] = {}
        self._months: dict[tuple[str, str], tuple[Entry, ...]] = {}

    def look(self) -> Look:
        """What stands now. Raises also where a branch of that name is no ledger."""
        for pause in (*_PAUSES[:4], None):
            answer = self._api.get("contents", {"ref": _REF}, accept={404})
            day = _day_of(answer)
            if answer.status != 404:
                return Look(day=day, files=_listed(answer))
            # A replica that is behind says the same, and so does a token that may not read: absence is to be shown.
            names = self._api.get(f"git/matching-refs/heads/{BRANCH}").data
            if not isinstance(names, list):
                raise GitHubError("GitHub's API answered without a list of refs", fix="check the API's URL")
            if all(value_of(each, str, "ref") != _REF for each in names):
                return Look(day=day, files=None)
            if pause is not None:
                self._api.limits.wait(pause)
        raise GitHubError(f"the branch {BRANCH} exists and cannot be read", why=server_text(answer), fix="try again")

    def caps(self, look: Look) -> Caps:
        """The caps in it. Raises :class:`~runner_e2e.errors.RefusedError` for a damaged file."""
        if look.files is None:
            return Caps()
        sha = look.files[CAPS_FILE]
        if sha not in self._caps:
            self._caps[sha] = read_caps(self._content(sha))
        return self._caps[sha]

    def month(self, look: Look, name: str) -> tuple[Entry, ...]:
        """The entries of a month's file; none where there is no such file. Raises as :meth:`caps` does."""
        sha = (look.files or {}).get(name)
        if sha is None:
            return ()
        if (name, sha) not in self._months:
            self._months[name, sha] = read_month(name, self._content(sha))
        return self._months[name, sha]

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

    def change(self, change: Callable[[Look], Write | None], *, make: bool = True) -> None:
        """Looks and writes until *change* finds nothing left to do, again where somebody else was faster."""
        problem: GitHubError | None = None
        refusals: dict[tuple[str, str], int] = {}
        for pause in (*_PAUSES, None):
            try:
                problem = self._changed(change, refusals, make=make)
            except NotThereError as error:
                problem = error
            if problem is None:
                return
            if pause is not None:
                # Two that have met once do not meet again at the same moment.
                self._api.limits.wait(pause * (0.5 + secrets.randbelow(1000) / 1000))
        raise problem or DefectError("a loop without a try")

    def _changed(
        self, change: Callable[[Look], Write | None], refusals: dict[tuple[str, str], int], *, make: bool
    ) -> GitHubError | None:
        """One try: None where nothing is left to do."""
        look = self.look()
        if look.files is None and make:
            problem = self._make_branch()
            if problem is not None:
                return problem
            look = self.look()
        while (write := change(look)) is not None:
            problem = self._put(look, write, refusals)
            if problem is not None or write.last:
                return problem
            look = self.look()
        return None

    def _put(self, look: Look, write: Write, refusals: dict[tuple[str, str], int]) -> GitHubError | None:
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
        if is_rate_limit(answer):
            raise problem_of(answer)
        refusals[what] = refusals.get(what, 0) + 1
        by_rule = answer.status in {409, 422} and _BY_RULE.search(server_text(answer))
        if answer.status == 403 or by_rule or refusals[what] >= _MOST_REFUSALS:
            raise _not_taken(answer)
        return problem_of(answer)


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
