"""The clients that ``benchmarks/dispatch.py`` measures, each in a process of its own: ``CLIENT FOLDER URL STEP``.

The last line on standard output is what was found, as JSON. Nothing but the product is imported, and the clock.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.dispatch.campaigns.clock import SharedClock  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = bytes(range(32))
TOKEN, REPOSITORY = "token-of-alice", "octo/evals"


def report(action: Callable[[], dict[str, Any]]) -> None:
    """Prints what *action* found, the seconds that it took, and the most memory that this process ever had."""
    began = time.perf_counter()
    found = action()
    seconds = time.perf_counter() - began
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, **found}))


def run_client(folder: Path, url: str, step: str) -> dict[str, Any]:
    """The client: sends a campaign, watches it to its end, or takes it up and tells when it sent its first request."""
    from runner_e2e.dispatch.call_budget import CallBudget
    from runner_e2e.dispatch.campaign import read_campaign
    from runner_e2e.dispatch.client import Client
    from runner_e2e.dispatch.conditional import ConditionalReader
    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.dispatch.ledger import open_ledger
    from runner_e2e.dispatch.shared_ledger import SharedLedger

    clock = SharedClock(folder / "clock")
    if step == "resume":
        tell_the_first_request()
    with open_ledger(folder / "ledger.sqlite", now=clock.now) as ledger:
        budget = CallBudget(ledger, token=TOKEN, url=url, now=clock.now, wait=clock.sleep)
        api = GitHubApi(repository=REPOSITORY, token=TOKEN, url=url, limits=budget.limits())
        client = Client(
            ledger=ledger, shared=SharedLedger(api), api=api, reader=ConditionalReader(api, ledger), keys=(KEY,),
            now=clock.now, wait=clock.sleep, say=lambda _: None,
        )  # fmt: skip
        if step == "start":
            client.start(read_campaign(folder / "campaign.json", (KEY,)))
            return {}
        (campaign,) = ledger.campaigns()
        client.resume(campaign.id)
        client.watch(campaign.id)
        return {"passed": sum(cell.verdict == "passed" for cell in ledger.cells(campaign.id))}


def tell_the_first_request() -> None:
    """Ends this process where its first request would go out."""
    import requests

    def send(*_: object, **__: object) -> None:
        print(json.dumps({"at": time.monotonic(), "processor": time.process_time()}), flush=True)
        os._exit(0)

    requests.Session.send = send  # type: ignore[assignment,method-assign]


def run_naive(folder: Path, url: str, step: str) -> dict[str, Any]:
    """A dispatch for each cell, then for each run its state, its artifact's address, and the artifact."""
    import requests

    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.sealed import new_nonce, seal
    from runner_e2e.cells.selectors import Selection, select
    from runner_e2e.dispatch.call_budget import CallBudget, MemoryStore
    from runner_e2e.dispatch.github_api import GitHubApi

    clock = SharedClock(folder / "clock")
    budget = CallBudget(MemoryStore(), token=TOKEN, url=url, now=clock.now, wait=clock.sleep)
    api = GitHubApi(repository=REPOSITORY, token=TOKEN, url=url, limits=budget.limits())
    kept = folder / "naive.json"
    if step == "start":
        numbers = []
        for cell in select(read_catalog(folder / "catalog.yml"), Selection(all=True)):
            nonce = new_nonce(datetime.fromtimestamp(clock.now(), UTC))
            inputs = {"nonce": nonce, "selection": seal([cell.id], key=KEY, nonce=nonce, repository=REPOSITORY)}
            body = {"ref": "main", "inputs": inputs, "return_run_details": True}
            answer = api.send("POST", "actions/workflows/paid-campaign.yml/dispatches", body).data
            assert isinstance(answer, dict)
            numbers.append(answer["workflow_run_id"])
        kept.write_text(json.dumps(numbers))
        return {}
    # When every run is over.
    clock.sleep(3_600.0)
    passed = 0
    session = requests.Session()
    session.trust_env = False
    for number in json.loads(kept.read_text()):
        run = api.get(f"actions/runs/{number}").data
        listed: Any = api.get(f"actions/runs/{number}/artifacts").data
        place = f"{url}/repos/{REPOSITORY}/actions/artifacts/{listed['artifacts'][0]['id']}/zip"
        reply = session.get(place, headers={"Authorization": f"Bearer {TOKEN}"}, allow_redirects=False)
        content = session.get(reply.headers["Location"]).content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            record = json.loads(archive.read(archive.namelist()[0]))
        passed += isinstance(run, dict) and run["status"] == "completed" and record["verdict"] == "passed"
    return {"passed": passed}


def main(client: str, folder: str, url: str, step: str) -> int:
    """One step of one client."""
    report(lambda: {"client": run_client, "naive": run_naive}[client](Path(folder), url, step))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
