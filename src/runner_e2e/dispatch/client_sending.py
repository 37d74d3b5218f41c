"""Reserve and send: what is durable before a request goes out, and what each answer means.

The order is fixed. The nonce stands in the local ledger before its reservation stands in the shared one, the
reservation before the intent, and the intent before the one request. A client that ends anywhere between finds the
shard in the state that tells what may have happened.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from runner_e2e.cells.handles import handle
from runner_e2e.cells.sealed import new_nonce, open_selection, seal
from runner_e2e.cells.wording import count
from runner_e2e.dispatch.answers import is_rate_limit, problem_of, server_text
from runner_e2e.dispatch.call_budget import LimitedError
from runner_e2e.dispatch.github_api import UnknownOutcomeError, segment
from runner_e2e.dispatch.ledger_moves import Move
from runner_e2e.dispatch.money import usd
from runner_e2e.dispatch.preflight import Request, check_inputs, preflight
from runner_e2e.dispatch.shared_ledger_file import Entry
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner_e2e.dispatch.answers import Answer
    from runner_e2e.dispatch.client_context import Context
    from runner_e2e.dispatch.ledger_records import CampaignState, ShardState

__all__ = ["OLDEST_NONCE", "check_campaign", "reserve_again", "send_waiting"]

OLDEST_NONCE: Final = timedelta(hours=12)
"""A run refuses a nonce that is older than a day, and may stand in the queue for hours before it is created."""

_MOST_TRIES: Final = 5
_MOST_REFUSALS: Final = 2  # what GitHub refuses for a reason it goes on to refuse; a replica can be behind
_FIRST_PAUSE: Final = 2.0


def check_campaign(context: Context, campaign: CampaignState) -> CampaignState:
    """Makes sure that a dispatch can succeed. Raises what :func:`preflight` raises."""
    names = ("nonce", "selection", "target") if campaign.target else ("nonce", "selection")
    request = Request(
        repository=campaign.repository,
        workflow=campaign.workflow,
        inputs=names,
        repository_id=campaign.repository_id,
    )
    found = preflight(context.api, request, now=context.now)
    context.branch = found.branch
    context.ready = True
    return context.ledger.bind(campaign.id, repository_id=found.repository_id)


def send_waiting(context: Context, campaign: CampaignState) -> None:
    """Reserves what is planned and sends what is reserved, until nothing waits to be sent.

    Raises :class:`~runner_e2e.errors.RefusedError` where the repository or a cap refuses; what was not sent keeps its
    state, and can be sent later. Raises :class:`~runner_e2e.errors.GitHubError` where GitHub cannot be asked.
    """
    while waiting := context.shards(campaign.id, "planned", "reserved"):
        if _is_cancelled(context, campaign):
            return
        if not context.ready:
            campaign = check_campaign(context, campaign)
        _reserve(context, campaign, waiting)
        for shard in context.shards(campaign.id, "reserved"):
            # Reserved under another nonce than the one it has now, too old, or after a refusal: from the beginning.
            if not context.ready or shard.nonce not in context.reserved or _is_old(context, shard):
                break
            if _is_cancelled(context, campaign):
                return
            _send(context, campaign, shard)


def reserve_again(context: Context, campaign: CampaignState, shards: tuple[ShardState, ...]) -> None:
    """Prepares *shards*, which are unpaid, to be sent once more: another round, with a nonce of its own."""
    _move_to_reserved(context, shards)
    context.tell("reserved", f"{campaign.id}: {count(len(shards), 'shard')} will be sent again")


def _is_cancelled(context: Context, campaign: CampaignState) -> bool:
    return context.ledger.campaign(campaign.id).cancel_asked_at is not None


def _reserve(context: Context, campaign: CampaignState, waiting: tuple[ShardState, ...]) -> None:
    """Makes nonces where there are none, or old ones, and lets every reservation stand in the shared ledger."""
    wanting = tuple(shard for shard in waiting if shard.state == "planned" or _is_old(context, shard))
    fresh = {shard.index: shard for shard in _move_to_reserved(context, wanting)}
    shards = [fresh.get(shard.index, shard) for shard in waiting]
    if all(shard.nonce in context.reserved for shard in shards):
        return
    owner = context.owner()
    try:
        made = context.ledger.nonces(campaign.id)
        context.shared.reserve([_entry(shard, owner) for shard in shards], campaign.max_cost, made=made)
    except RefusedError:
        _take_back(context, campaign, shards)
        raise
    context.reserved.update(shard.nonce for shard in shards if shard.nonce)
    context.changes += 1
    amount = usd(sum(shard.reserved for shard in shards))
    context.tell("reserved", f"{campaign.id}: {amount} reserved for {count(len(shards), 'shard')}")


def _take_back(context: Context, campaign: CampaignState, shards: Sequence[ShardState]) -> None:
    """Plans anew what is reserved here alone: the shared ledger has refused it.

    Some may stand there all the same, since an earlier client reserved them. Raises
    :class:`~runner_e2e.errors.GitHubError` where that cannot be seen.
    """
    standing = {
        entry.key
        for entry in context.shared.entries(campaign.id)
        if entry.state != "released" and context.is_owner(entry.owner)
    }
    context.ledger.move_all(Move(shard=shard, to="planned") for shard in shards if shard.key not in standing)


def _move_to_reserved(context: Context, shards: tuple[ShardState, ...]) -> tuple[ShardState, ...]:
    moment = datetime.fromtimestamp(context.now(), UTC)
    return context.ledger.move_all(Move(shard=shard, to="reserved", nonce=new_nonce(moment)) for shard in shards)


def _is_old(context: Context, shard: ShardState) -> bool:
    if shard.nonce is None:
        return False
    made = datetime.strptime(shard.nonce[:16].upper(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    # A nonce of the future is as useless: the clock was wrong.
    return abs(context.now() - made.timestamp()) > OLDEST_NONCE.total_seconds()


def _entry(shard: ShardState, owner: str) -> Entry:
    return Entry(
        key=shard.key,
        campaign=shard.campaign,
        owner=owner,
        nonce=shard.nonce or "",
        cells=shard.cells,
        reserved=shard.reserved,
    )


def _send(context: Context, campaign: CampaignState, shard: ShardState) -> ShardState:
    """Sends one dispatch, exactly once, and writes down what is known of it then."""
    body = _body(context, campaign, shard)
    # A wait, and a kill during it, find the shard still reserved.
    context.api.limits.ready("POST")
    shard = context.ledger.intend(shard)
    path = f"actions/workflows/{segment(campaign.workflow)}/dispatches"
    try:
        answer = context.api.send("POST", path, body, accept=range(400, 500))
    except UnknownOutcomeError as error:
        return _doubtful(context, shard, error.problem.why)
    except LimitedError as error:
        context.ledger.move(shard, "reserved", note=error.problem.what)
        raise
    except GitHubError as error:
        # No connection could be made, or a redirect was answered.
        return _not_sent(context, shard, error)
    return _answered(context, shard, answer)


def _body(context: Context, campaign: CampaignState, shard: ShardState) -> dict[str, object]:
    """What is sent. Raises :class:`~runner_e2e.errors.RefusedError` without the key, and for too large inputs."""
    nonce = shard.nonce or ""
    opened = open_selection(
        shard.sealed, keys=context.keys, nonce=f"{campaign.id}/{shard.index}", repository=campaign.repository
    )
    known = {cell.handle for cell in context.ledger.cells(campaign.id, shard.index)}
    if {handle(opened.key, each) for each in opened.ids} != known:
        raise RefusedError(
            f"shard {shard.index} of {campaign.id} has sealed other cells than the ledger names",
            why="the ledger was changed by hand",
            fix="plan a new campaign",
        )
    inputs = {
        "nonce": nonce,
        "selection": seal(opened.ids, key=opened.key, nonce=nonce, repository=campaign.repository),
    }
    if campaign.target:
        inputs["target"] = campaign.target
    check_inputs(inputs)
    body: dict[str, object] = {"ref": context.branch, "inputs": inputs}
    if context.ledger.remembered(_no_details(context)) is None:
        body["return_run_details"] = True
    return body


def _answered(context: Context, shard: ShardState, answer: Answer) -> ShardState:
    """What an answer means; the server had all of the request."""
    if answer.status in {200, 204}:
        context.not_sent.pop(shard.index, None)
        hinted = answer.data.get("workflow_run_id") if isinstance(answer.data, dict) else None
        hinted = hinted if isinstance(hinted, int) and not isinstance(hinted, bool) else None
        shard = context.ledger.move(shard, "sent", hinted_run=hinted)
        return context.told(shard, "sent", f"sent as {shard.nonce}")
    asked = context.ledger.remembered(_no_details(context)) is None
    if answer.status == 400 and asked and "return_run_details" in server_text(answer):
        context.ledger.remember(_no_details(context), "unknown field", "return_run_details")
        return context.ledger.move(shard, "reserved", note="the server does not know `return_run_details`")
    if is_rate_limit(answer):
        return _not_sent(context, shard, problem_of(answer))
    # 408: the server gave up waiting, for what it does not say.
    if 400 <= answer.status < 500 and answer.status != 408:
        return _not_sent(context, shard, _refusal(answer), tries=_MOST_REFUSALS)
    # No answer to a dispatch that GitHub documents.
    return _doubtful(context, shard, f"the answer was {answer.status}")


def _doubtful(context: Context, shard: ShardState, why: str) -> ShardState:
    shard = context.ledger.move(shard, "unknown", note=f"nobody knows whether it arrived: {why}")
    return context.told(shard, "unknown", f"whether it was sent is not known ({why}); looking for its run")


def _refusal(answer: Answer) -> RefusedError:
    """GitHub does not take the dispatch: the token, the workflow or its inputs, which all shards have in common."""
    problem = problem_of(answer).problem
    return RefusedError(
        f"GitHub refuses the dispatch with {answer.status}",
        why=problem.why or problem.what,
        fix=f"{problem.fix or 'change what it names'}; then `runner-e2e dispatch resume` sends what was not sent",
    )


def _not_sent(
    context: Context, shard: ShardState, error: GitHubError | RefusedError, *, tries: int = _MOST_TRIES
) -> ShardState:
    """Nothing was carried out, which is certain: the dispatch is sent again later, after another preflight.

    Raises *error* where that has happened *tries* times; what was not sent can be sent by another call.
    """
    context.ready = False
    times = context.not_sent.pop(shard.index, 0) + 1
    shard = context.ledger.move(shard, "reserved", note=error.problem.what)
    if times >= tries:
        raise error
    context.not_sent[shard.index] = times
    pause = _FIRST_PAUSE * 2**times
    context.tell(
        "waiting", f"shard {shard.index}: {error.problem.what}", shard=shard.index, until=context.now() + pause
    )
    context.wait(pause)
    return shard


def _no_details(context: Context) -> str:
    """Under which name the ledger remembers that this server is too old to tell a dispatch's run."""
    return f"no run details: {context.api.url}"
