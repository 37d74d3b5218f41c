"""The claim: of all runs that carry one nonce, exactly one may pay, and it may pay once.

A claim is a ref, because GitHub creates a ref atomically: ``refs/runner-e2e/claims/NONCE`` points to an annotated
tag whose message says which attempt of which run holds it. A later attempt needs a claim of its own, and for that an
authorisation, ``refs/runner-e2e/reruns/NONCE-ATTEMPT``, which a person makes. A run without the claim ends before
anything is paid. A client that gives a nonce up *burns* its claim: takes it for nobody, so that
no run can pay any more.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.cells.sealed import check_nonce, is_nonce
from runner_e2e.dispatch.answers import patience, problem_of, server_text
from runner_e2e.dispatch.github_api import UnknownOutcomeError, segment
from runner_e2e.dispatch.records import moment_of, value_of
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.records import RunRecord

__all__ = [
    "CLAIMS",
    "RERUNS",
    "Claim",
    "Holder",
    "authorise",
    "burn",
    "check_claim",
    "claim_of",
    "find_holder",
    "manual_nonce",
    "nonce_of",
    "read_holder",
    "scheduled_nonce",
    "take_claim",
]

CLAIMS: Final = "runner-e2e/claims"
RERUNS: Final = "runner-e2e/reruns"

_PAUSES: Final = (0.5, 2.0, 5.0, 10.0)
_CLAIM = re.compile(r"([a-z0-9-]{1,80}):([1-9][0-9]{0,19}):([1-9][0-9]{0,5})")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right of one attempt of one run to pay for what carries *nonce*."""

    nonce: str
    run: int
    attempt: int

    @property
    def name(self) -> str:
        """The last part of the ref: the nonce, and the attempt where it is not the first."""
        return self.nonce if self.attempt == 1 else f"{self.nonce}-{self.attempt}"

    def __str__(self) -> str:
        """As jobs hand it on to one another."""
        return f"{self.nonce}:{self.run}:{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds a ref: *claim* is None where nobody does, since it was *burned*, or its tag is not one of ours."""

    claim: Claim | None
    sha: str
    burned: bool = False


def scheduled_nonce(run: int) -> str:
    """The nonce of a scheduled run, which nobody sent: made from its id, so that no other run can have it."""
    return f"schedule-{run}"


def manual_nonce(run: int) -> str:
    """The nonce of a run that was started by hand, without a client that makes one."""
    return f"manual-{run}"


def claim_of(run: RunRecord, nonce: str) -> Claim:
    """The claim that this attempt of *run* must take. *nonce* is the one that its dispatch was sent with, or empty.

    Raises :class:`~runner_e2e.errors.RefusedError` for a nonce that is none, or not of this time, and
    :class:`~runner_e2e.errors.GitHubError` where the record's time is none.
    """
    if run.event == "schedule":
        # Nobody sent a scheduled run, so nobody can have made a nonce for it.
        nonce = scheduled_nonce(run.id)
    elif nonce:
        check_nonce(nonce, created_at=moment_of(run.created_at))
    else:
        # A run that was started by hand, without a client that made a nonce, is one of its own.
        nonce = manual_nonce(run.id)
    return Claim(nonce=nonce, run=run.id, attempt=run.attempt)


def nonce_of(run: RunRecord) -> str:
    """The nonce that *run* claims: made from its id, or the one at the end of its name, where `run-name` puts it.

    Raises :class:`~runner_e2e.errors.RefusedError` where the name has none.
    """
    if run.event == "schedule":
        return scheduled_nonce(run.id)
    last = run.title.rpartition(" ")[2]
    if last == str(run.id):
        return manual_nonce(run.id)
    if not is_nonce(last):
        raise RefusedError(
            f"the name of run {run.id} ends with no nonce",
            why=f"it is {run.title[:100]!r}",
            fix="give the workflow `run-name: … ${{ inputs.nonce || github.run_id }}`, as the template has it",
        )
    return last


def take_claim(api: GitHubApi, claim: Claim, *, commit: str) -> None:
    """Takes *claim*, or finds that it has been taken by this very attempt before.

    *commit* is any commit of the repository; a tag must point to something. Raises
    :class:`~runner_e2e.errors.RefusedError` where another run or attempt holds it, or this attempt has no
    authorisation, and :class:`~runner_e2e.errors.GitHubError` where that cannot be found out: then nothing is paid.
    """
    if claim.attempt > 1:
        _check_authorisation(api, claim)
    holder = _create(api, f"{CLAIMS}/{claim.name}", _tag_of(claim), commit=commit)
    if holder.burned:
        raise _burned(claim)
    if holder.claim != claim:
        raise RefusedError(
            f"this run may not pay: {_described(holder)} has claimed {claim.nonce}",
            why="the dispatch arrived twice, or its inputs were used a second time",
            fix="nothing needs to be done; the other run does the work",
        )


def burn(api: GitHubApi, nonce: str, *, commit: str) -> Holder:
    """Takes the first claim of *nonce* for nobody, or finds who holds it.

    Where the returned holder is ``burned``, no run has paid or can ever pay under *nonce*: every attempt of a run needs
    this claim, a rerun's authorisation too. *commit* is any commit of the repository. Raises
    :class:`~runner_e2e.errors.GitHubError` where it cannot be found out; then nothing is decided, and to burn it again
    does no harm.
    """
    tag = {"tag": f"runner-e2e-{nonce}", "message": json.dumps({"nonce": nonce, "burned": True})}
    return _create(api, f"{CLAIMS}/{nonce}", tag, commit=commit)


def authorise(api: GitHubApi, run: RunRecord, nonce: str) -> Claim:
    """Lets the next attempt of *run* pay once more. Returns the claim that it may take.

    The first claim of the nonce becomes that of *run* too, where nobody has it: a twin that starts late must not pay
    beside the rerun. Raises what :func:`take_claim` raises where the authorisation cannot be made.
    """
    claim = Claim(nonce=nonce, run=run.id, attempt=run.attempt + 1)
    first = Claim(nonce=nonce, run=run.id, attempt=1)
    holder = _create(api, f"{CLAIMS}/{first.name}", _tag_of(first), commit=run.head_sha)
    if holder.burned:
        raise _burned(first)
    if holder.claim != first:
        raise RefusedError(
            f"run {run.id} may not pay again: {_described(holder)} has claimed {nonce}",
            why="this run is a twin of that one, which does the work",
            fix=f"authorise run {holder.claim.run} instead" if holder.claim else "look at that ref",
        )
    holder = _create(api, f"{RERUNS}/{claim.name}", _tag_of(claim), commit=run.head_sha)
    if holder.claim != claim:
        raise RefusedError(
            f"attempt {claim.attempt} of {nonce} is authorised for {_described(holder)} already",
            why="one nonce belongs to one run",
            fix="look at that run",
        )
    return claim


def check_claim(text: str, *, run: str, attempt: str) -> Claim:
    """The claim that the job got through ``needs``, which must be that of this very attempt.

    A partial rerun keeps the outputs of jobs that it skips, so the claim of an earlier attempt comes along.
    Raises :class:`~runner_e2e.errors.RefusedError`.
    """
    found = _CLAIM.fullmatch(text.strip())
    if found is None:
        raise RefusedError(
            "this job has no claim",
            why="the job with `command: claim` did not run, or did not get it",
            fix="give `claim: ${{ needs.claim.outputs.claim }}`, and let the job need `claim`",
        )
    claim = Claim(nonce=found[1], run=int(found[2]), attempt=int(found[3]))
    if (str(claim.run), str(claim.attempt)) != (run, attempt):
        raise RefusedError(
            f"the claim is that of run {claim.run}, attempt {claim.attempt}, and this is run {run}, attempt {attempt}",
            why="a partial rerun keeps the claim of the earlier attempt, which has paid",
            fix=f"authorise a new attempt (`runner-e2e dispatch authorise-rerun {run}`) and run all jobs again",
        )
    return claim


def find_holder(api: GitHubApi, ref: str) -> Holder | None:
    """Who holds ``refs/REF``, None where nobody does. Raises :class:`~runner_e2e.errors.GitHubError`."""
    answer = api.get(f"git/ref/{segment(ref)}", accept={404})
    if answer.status == 404 or isinstance(answer.data, list) or value_of(answer.data, str, "ref") != f"refs/{ref}":
        return None
    return read_holder(api, answer.data)


def read_holder(api: GitHubApi, ref: object) -> Holder:
    """Who holds a *ref*, given as GitHub shows it. Raises :class:`~runner_e2e.errors.GitHubError`."""
    sha = value_of(ref, str, "object", "sha")
    if value_of(ref, str, "object", "type") != "tag":
        return Holder(claim=None, sha=sha)
    message = value_of(api.get(f"git/tags/{segment(sha)}").data, str, "message")
    # The ref is moved by nobody, and the tag cannot change: what it says holds for ever.
    return _of_message(message, sha)


def _check_authorisation(api: GitHubApi, claim: Claim) -> None:
    ref = f"{RERUNS}/{claim.name}"
    holder = find_holder(api, ref)
    if holder is None or holder.claim != claim:
        raise RefusedError(
            f"attempt {claim.attempt} of this run may not pay",
            why="running it again is new spending, and nobody has authorised it",
            fix=f"`runner-e2e dispatch authorise-rerun {claim.run}` before the run is started again",
        )


def _create(api: GitHubApi, ref: str, content: Mapping[str, str], *, commit: str) -> Holder:
    """Creates ``refs/REF`` with a tag of *content* where it does not exist; returns who holds it then.

    To create it twice does no harm: a second one finds the first. So a lost reply is followed by a look and, where
    nothing is there, another try.
    """
    held = find_holder(api, ref)
    if held is not None:
        return held
    tag = _tag(api, content, commit=commit)
    refused: GitHubError | None = None
    for pause in _PAUSES:
        try:
            answer = _post(api, "git/refs", {"ref": f"refs/{ref}", "sha": tag})
            refused = None if answer.status == 201 else _not_created(ref, answer)
        except UnknownOutcomeError as error:
            refused = error
        # Also after a success: what counts is what everybody reads.
        held = find_holder(api, ref)
        if held is not None:
            return held
        # A replica may not have it yet.
        api.limits.wait(pause)
    raise refused or GitHubError(f"refs/{ref} was created and cannot be read", fix="try again")


def _not_created(ref: str, answer: Answer) -> GitHubError:
    said = server_text(answer)
    return GitHubError(
        f"GitHub does not create refs/{ref}",
        why="the answer was 422, and nobody holds it" + (f": {said}" if said else ""),
        fix="try again; where a rule of the repository forbids it, let refs/runner-e2e/ out of it",
    )


def _tag_of(claim: Claim) -> dict[str, str]:
    """Name and message of the annotated tag that says who holds *claim*."""
    message = json.dumps({"nonce": claim.nonce, "run": claim.run, "attempt": claim.attempt})
    return {"tag": f"runner-e2e-{claim.name}", "message": message}


def _tag(api: GitHubApi, content: Mapping[str, str], *, commit: str) -> str:
    """Makes the annotated tag; one that nothing points to does no harm, so a lost reply is followed by another."""
    data: dict[str, object] = {**content, "object": commit, "type": "commit"}
    for pause in _PAUSES[:-1]:
        try:
            return _sha_of(_post(api, "git/tags", data))
        except UnknownOutcomeError:
            api.limits.wait(pause)
    return _sha_of(_post(api, "git/tags", data))


def _sha_of(answer: Answer) -> str:
    if answer.status != 201:
        raise problem_of(answer)
    return value_of(answer.data, str, "sha")


def _post(api: GitHubApi, path: str, data: dict[str, object]) -> Answer:
    """One POST that may be repeated, because a second one does no harm: a limit of the server is waited for.

    Returns an answer of 201 or 422. Raises what :meth:`GitHubApi.send` raises.
    """
    answer = api.send("POST", path, data, accept={201, 403, 422, 429})
    for least in _PAUSES:
        pause = patience(answer, least=least, now=time.time())
        if pause is None:
            break
        api.limits.wait(pause)
        answer = api.send("POST", path, data, accept={201, 403, 422, 429})
    if answer.status not in {201, 422}:
        raise problem_of(answer)
    return answer


def _of_message(message: str, sha: str) -> Holder:
    try:
        data = json.loads(message)
        if isinstance(data, dict) and data.get("burned") is True:
            return Holder(claim=None, sha=sha, burned=True)
        claim = Claim(
            nonce=value_of(data, str, "nonce"), run=value_of(data, int, "run"), attempt=value_of(data, int, "attempt")
        )
    except (ValueError, RecursionError, GitHubError):
        return Holder(claim=None, sha=sha)
    return Holder(claim=claim, sha=sha)


def _burned(claim: Claim) -> RefusedError:
    return RefusedError(
        f"run {claim.run} may not pay: {claim.nonce} was given up by the client that sent it",
        why="the run did not claim in time, or the campaign was cancelled",
        fix="nothing needs to be done: `runner-e2e dispatch status` shows whether its cells were sent anew; where the "
        "campaign was cancelled, plan a new one",
    )


def _described(holder: Holder) -> str:
    if holder.claim is None:
        return "something else"
    return f"run {holder.claim.run}, attempt {holder.claim.attempt},"
