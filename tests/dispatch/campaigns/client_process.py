"""The client under test in a process of its own: one order comes in, boundaries and what was found go out.

Everything is the product's own code. Only time is replaced, and each boundary waits for the word to go on.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import sys
import time
import traceback
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dispatch.campaigns import boundaries, mutants
from tests.dispatch.campaigns.clock import SharedClock
from tests.dispatch.campaigns.definition import DEFINITION

if TYPE_CHECKING:
    import socket

    from runner_e2e.dispatch.client import Client
    from runner_e2e.dispatch.client_events import Event
    from runner_e2e.dispatch.ledger import Ledger

__all__ = ["load", "main"]

_LONGEST_ORDER = 1 << 20


def load() -> None:
    """Imports all that a client needs, so that those that are forked have it."""
    import urllib3.util.retry  # noqa: F401

    # What is loaded or compiled at the first use otherwise.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    import runner_e2e.cells.sealed
    import runner_e2e.dispatch.call_budget
    import runner_e2e.dispatch.client
    import runner_e2e.dispatch.conditional
    import runner_e2e.dispatch.downloads
    import runner_e2e.dispatch.ledger
    import runner_e2e.dispatch.outcomes
    import runner_e2e.dispatch.shared_ledger  # noqa: F401
    from runner_e2e.lint.workflow import Workflow
    from runner_e2e.yaml_positions import compose

    AESGCM(bytes(32))
    Workflow(compose(DEFINITION.decode(), path="x.yml")).inputs("workflow_dispatch")
    time.strptime("20260101T000000Z", "%Y%m%dT%H%M%SZ")
    # requests looks through the whole environment for a proxy with every request.
    for name in [name for name in os.environ if name not in {"PATH", "HOME", "LANG"}]:
        del os.environ[name]
    os.environ["NO_PROXY"] = "*"


def main(connection: socket.socket) -> None:
    """Carries out one order and ends the process."""
    order = json.loads(connection.makefile("rb").readline(_LONGEST_ORDER))
    report = boundaries.Report(
        connection, stop_at=order["stop_at"], stop_name=order["stop_name"], stop_after=order["stop_after"]
    )
    try:
        found = _carry_out(order, report)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        found = _described(error)
    sys.settrace(None)
    report.end(found)
    os._exit(0)


def _carry_out(order: dict[str, Any], report: boundaries.Report) -> dict[str, Any]:
    clock = SharedClock(Path(order["clock"]), skew=order["skew"])
    _decide_chance(order["seed"])
    boundaries.report_time(report, clock)
    boundaries.report_transactions(report)
    boundaries.report_requests(report, over_the_wire=order["wire"])
    if order["mutant"]:
        mutants.MUTANTS[order["mutant"]].install()
    if order["line"]:
        boundaries.report_lines(report, number=order["line"], part="runner_e2e/dispatch/")

    from runner_e2e.dispatch.ledger import open_ledger

    told: list[dict[str, Any]] = []

    def say(event: Event) -> None:
        if event.kind not in {"round", "waiting"}:
            told.append(asdict(event))

    with open_ledger(Path(order["ledger"]), now=clock.now) as ledger:
        client = _client(order, ledger, clock, say)
        _act(client, ledger, order)
        states = [{"index": each.index, "state": each.state} for each in ledger.shards(order["campaign"])]
    return {"end": "done", "shards": states, "told": told}


def _decide_chance(seed: str) -> None:
    """What is random in the client comes from the schedule, so that it plays the same way again."""
    chance = random.Random(seed)
    secrets.token_hex = lambda nbytes=None: chance.randbytes(nbytes or 32).hex()
    secrets.token_bytes = lambda nbytes=None: chance.randbytes(nbytes or 32)
    secrets.randbelow = lambda exclusive_upper_bound: int(chance.random() * exclusive_upper_bound)
    uuid.uuid4 = lambda: uuid.UUID(bytes=chance.randbytes(16), version=4)
    random.seed(seed)


def _act(client: Client, ledger: Ledger, order: dict[str, Any]) -> None:
    """What a person does: start, look again, send again."""
    from runner_e2e.dispatch.campaign import read_campaign

    campaign = order["campaign"]
    if order["send_again"]:
        # What was sent again before this person's last client died is not unpaid any more.
        unpaid = {each.index for each in ledger.shards(campaign) if each.state == "unpaid"}
        again = unpaid & set(order["send_again"])
        if again:
            client.resolve(campaign, send_again=again)
    elif campaign in {each.id for each in ledger.campaigns()}:
        client.resume(campaign)
    else:
        client.start(read_campaign(Path(order["file"]), keys=_keys(order)))
    client.watch(campaign)


def _client(order: dict[str, Any], ledger: Ledger, clock: SharedClock, say: Any) -> Client:
    from runner_e2e.dispatch.call_budget import CallBudget
    from runner_e2e.dispatch.client import Client
    from runner_e2e.dispatch.client_events import Pace
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.shared_ledger import SharedLedger

    budget = CallBudget(
        ledger, token=order["token"], url=order["url"], now=clock.now, wait=time.sleep, say=lambda *_: None
    )
    api = GitHubApi(
        repository=order["repository"], token=order["token"], url=order["url"], limits=budget.limits(),
        timeout=order["timeout"],
    )  # fmt: skip
    return Client(
        ledger=ledger, shared=SharedLedger(api), api=api, reader=ConditionalReader(api, ledger), keys=_keys(order),
        now=clock.now, wait=time.sleep, say=say, pace=Pace(first=20.0, longest=240.0, factor=2.0),
    )  # fmt: skip


def _keys(order: dict[str, Any]) -> tuple[bytes, ...]:
    return (bytes.fromhex(order["key"]),)


def _described(error: BaseException) -> dict[str, Any]:
    """What ended the client: an error that the product raises on purpose, or one that nobody foresaw."""
    from runner_e2e.errors import DefectError, RunnerE2EError

    foreseen = isinstance(error, RunnerE2EError | KeyboardInterrupt) and not isinstance(error, DefectError)
    return {
        "end": "error" if foreseen else "defect",
        "kind": type(error).__name__,
        "bases": [each.__name__ for each in type(error).__mro__],
        "text": str(error) if foreseen else "".join(traceback.format_exception(error)),
    }
