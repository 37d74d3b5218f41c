"""What a campaign asks of GitHub: ``.venv/dev/bin/python benchmarks/dispatch.py``.

Runs whole campaigns of 1, 256, 2,560 and 10,000 cells against the double of the tests (``tests/github_double``), each
with the client in a process of its own, and beside it, in the same run, a client that sends a dispatch for each cell
and asks for each run: once only, when it is over, so the comparison favours it. Counts requests as the double sees
them, the time and the memory of the client process, and how long GitHub's limits make both take (by the double's clock,
which passes only where a client waits). Then it shows how long a process takes to take up a campaign of 10,000 cells
that another has left, from its start to its first request. ``--assert`` fails beyond the aims.
"""

from __future__ import annotations

import argparse
import heapq
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.dispatch.campaigns.clock import SharedClock  # noqa: E402
from tests.github_double.server import Server  # noqa: E402
from tests.github_double.state import Artifact, Job, State  # noqa: E402

from runner_e2e.cells.catalog import read_catalog  # noqa: E402
from runner_e2e.cells.handles import handle  # noqa: E402
from runner_e2e.cells.sealed import open_selection  # noqa: E402
from runner_e2e.cells.selectors import Selection, select  # noqa: E402
from runner_e2e.dispatch.campaign import campaign_as_json, plan_campaign  # noqa: E402
from runner_e2e.dispatch.claim import CLAIMS  # noqa: E402
from runner_e2e.report.billing import Usage  # noqa: E402
from runner_e2e.report.results import Exit, Host, Output, Result, Retry, result_as_json, time_text  # noqa: E402

if TYPE_CHECKING:
    from tests.github_double.routes import Reply, Request
    from tests.github_double.state import Run

    from runner_e2e.cells.model import Catalog

SIZES = (1, 256, 2_560, 10_000)
AIM_TO_START, AIM_IN_ALL = 0.02, 0.1
AIM_MEMORY_MB, AIM_RESUME_S = 200, 2.0
KEY = bytes(range(32))
TOKEN, REPOSITORY = "token-of-alice", "octo/evals"
QUEUED_S, RUN_S = 30.0, 1_200.0
CLIENTS = Path(__file__).resolve().parent / "dispatch_parts" / "clients.py"
WORKFLOW = ".github/workflows/paid-campaign.yml"


class Runs:
    """The runs of the double without the work of their jobs: each claims when it begins, and has results at its end."""

    def __init__(self, double: Server, catalog: Catalog) -> None:
        self._double, self._state = double, double.state
        self._cells = {handle(KEY, cell.id): cell for cell in select(catalog, Selection(all=True))}
        self._due: list[tuple[float, int]] = []
        self._seen = 0
        self._handle = double.handle
        double.handle = self._before  # type: ignore[method-assign]

    def _before(self, request: Request, token: str) -> Reply:
        """Brings the runs up to the time of a request, then lets it be carried out."""
        with self._double.lock:
            now = self._state.clock.now()
            while self._due and self._due[0][0] <= now:
                at, number = heapq.heappop(self._due)
                self._go_on(self._state.runs[number], at)
        reply = self._handle(request, token)
        if request.verb == "POST" and request.path.endswith("/dispatches") and reply.status < 300:
            newest = next(reversed(self._state.runs.values()))
            heapq.heappush(self._due, (self._state.clock.now() + QUEUED_S, newest.id))
        return reply

    def _go_on(self, run: Run, at: float) -> None:
        if run.last.status == "queued":
            run.last.status = "in_progress"
            self._claim(run)
            heapq.heappush(self._due, (at + RUN_S, run.id))
        else:
            self._end(run, at)
        self._state.touch(run)

    def _claim(self, run: Run) -> None:
        nonce = run.inputs["nonce"]
        message = json.dumps({"nonce": nonce, "run": run.id, "attempt": 1})
        kept = {"tag": f"runner-e2e-{nonce}", "message": message, "object": run.sha, "type": "commit"}
        tag = self._state.store("tag", {**kept, "date": self._state.clock.now(), "number": self._state.number()})
        self._state.create_ref(f"refs/{CLAIMS}/{nonce}", tag)

    def _end(self, run: Run, now: float) -> None:
        opened = open_selection(
            run.inputs["selection"], keys=(KEY,), nonce=run.inputs["nonce"], repository=self._state.repository
        )
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in opened.ids:
                name = handle(KEY, each)
                record = json.dumps(result_as_json(self._result(run, name, now)))
                archive.writestr(f"result-{name}/result.json", record)
                job = Job(id=self._state.number(), name=name, attempt=1, status="completed", conclusion="success")
                job.started_at, job.completed_at = run.created_at, now
                run.last.jobs.append(job)
        run.artifacts.append(
            Artifact(id=self._state.number(), name="results", content=packed.getvalue(), created_at=now)
        )
        run.last.status, run.last.conclusion = "completed", "success"

    def _result(self, run: Run, name: str, now: float) -> Result:
        cell = self._cells[name]
        return Result(
            id=cell.id, handle=name, campaign=f"run-{run.id}", attempt=1, attempts=1, selection="env", verdict="passed",
            failure=None, started=time_text(run.created_at), ended=time_text(now), duration_s=now - run.created_at,
            exit=Exit(code=0), usage=Usage(cost_usd=0.5, cost_status="reported"),
            retry=Retry(allowed=False, reason="passed"), output=Output(), left_processes=0, sandbox=(), notes=(),
            definition_hash=cell.definition_hash, engine="benchmark",
            host=Host(kernel="6.8", machine="x86_64", python="3.13"),
        )  # fmt: skip


class Scene:
    """A double with the workflow, a catalog of *cells* cells, and a place for a ledger."""

    def __init__(self, folder: Path, cells: int) -> None:
        self.folder, self.cells = folder, cells
        folder.mkdir()
        names = ", ".join(f"c{number}" for number in range(cells))
        (folder / "catalog.yml").write_text(
            "harness: { command: [python3, harness.py] }\ncredentials: { OPENAI_API_KEY: }\n"
            "profiles: { codex: { credential: OPENAI_API_KEY } }\nenvironments: { local: }\n"
            "suites: { chat: { profiles: [codex], environments: [local], expected-cost: 0.5, "
            f"cases: [{names}] }} }}\n"
        )
        self.catalog = read_catalog(folder / "catalog.yml")
        self.clock = SharedClock.start(folder / "clock")
        self.state = State(repository=REPOSITORY, clock=self.clock)
        workflow = self.state.add_workflow(WORKFLOW, inputs={"nonce": False, "selection": False, "target": False})
        workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
        definition = (ROOT / "workflows-templates" / "paid-campaign.yml").read_bytes()
        self.state.write_file(WORKFLOW, self.state.default_branch, definition, "workflow", None)
        self.double = Server(self.state, validating=False)
        Runs(self.double, self.catalog)

    def plan(self) -> Path:
        """The campaign's file."""
        cells = select(self.catalog, Selection(all=True))
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        planned = plan_campaign(
            self.catalog, cells, key=KEY, repository=REPOSITORY, target="", max_cost=None, assume_cost=None, now=now
        )
        path = self.folder / "campaign.json"
        path.write_text(campaign_as_json(planned, KEY))
        return path


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a client took: requests by the double's count, seconds of its process and of the double's clock, memory."""

    to_start: int
    in_all: int
    seconds: float
    limited: float
    megabytes: float


def in_a_process(scene: Scene, part: str, *more: str) -> dict[str, Any]:
    """Runs a *part* of this file as a process of its own; what it prints, and when it was started."""
    command = [sys.executable, str(CLIENTS), part, str(scene.folder), scene.double.url, *more]
    began = time.monotonic()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"began": began, **found}


def measure(scene: Scene, part: str) -> Taken:
    """One whole campaign."""
    with scene.double:
        before = scene.clock.now()
        started = in_a_process(scene, part, "start")
        to_start = len(scene.double.log)
        found = in_a_process(scene, part, "finish")
    passed = found["passed"]
    if passed != scene.cells:
        raise SystemExit(f"{part}: {passed} of {scene.cells} cells passed")
    return Taken(
        to_start=to_start, in_all=len(scene.double.log), seconds=started["seconds"] + found["seconds"],
        limited=scene.clock.now() - before, megabytes=max(started["megabytes"], found["megabytes"]),
    )  # fmt: skip


# What is shown


def hours(seconds: float) -> str:
    """A time for people."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def show(cells: int, ours: Taken, naive: Taken | None) -> None:
    """A row for each client, and one that compares them."""
    rows = [("runner-e2e", ours), *([("a dispatch a cell", naive)] if naive else [])]
    for name, each in rows:
        first = f"{cells:,}" if each is ours else ""
        requests = f"{each.to_start:9,}{each.to_start / cells:9.4f}{each.in_all:9,}{each.in_all / cells:9.4f}"
        print(f"{first:>7} {name:18}{requests}{each.seconds:9.2f} s{hours(each.limited):>10}{each.megabytes:8.0f} MB")
    if naive is not None:
        requests = f"{naive.to_start / ours.to_start:8.1f}x{'':9}{naive.in_all / ours.in_all:8.1f}x{'':9}"
        times = f"{naive.seconds / ours.seconds:10.1f}x{naive.limited / ours.limited:9.1f}x"
        print(f"{'':>7} {'ratio':18}{requests}{times}")


def main() -> int:
    """Measures and prints; 1 when something is beyond its aim and that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, metavar="CELLS", help="campaigns of so many cells"
    )
    parser.add_argument("--without-naive", action="store_true", help="leave the other client out")
    parser.add_argument("--assert", dest="strict", action="store_true", help="fail beyond the aims")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    options = parser.parse_args()
    load = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    print(f"Python {platform.python_version()}, Linux {platform.release()}, {load}\n")
    columns = ("to start", 9), ("a cell", 9), ("in all", 9), ("a cell", 9), ("wall", 11), ("limits", 10), ("memory", 11)
    print(f"{'cells':>7} {'':18}" + "".join(f"{name:>{width}}" for name, width in columns))
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for cells in options.sizes:
            scene = Scene(Path(folder) / f"ours-{cells}", cells)
            scene.plan()
            ours = measure(scene, "client")
            naive = None if options.without_naive else measure(Scene(Path(folder) / f"naive-{cells}", cells), "naive")
            show(cells, ours, naive)
            figures[str(cells)] = {"runner-e2e": asdict(ours), "naive": asdict(naive) if naive else None}
        largest = max(options.sizes)
        resumed = resume(Path(folder) / "resumed", largest)
    print(f"\nTaking up a campaign of {largest:,} cells: {resumed[0]:.2f} s from the start of the process", end=" ")
    print(f"to its first request ({resumed[1]:.2f} s of the processor)")
    print(f"Aims at {SIZES[-1]:,} cells: {AIM_TO_START} requests a cell to start, {AIM_IN_ALL} in all,", end=" ")
    print(f"{AIM_MEMORY_MB} MB, {AIM_RESUME_S} s to take one up")
    figures["resume_s"] = resumed[0]
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if options.strict and beyond(largest, Taken(**figures[str(largest)]["runner-e2e"]), resumed[0]) else 0


def beyond(cells: int, ours: Taken, resumed: float) -> bool:
    """Whether a campaign of the largest size misses an aim."""
    return cells >= SIZES[-1] and (
        ours.to_start / cells > AIM_TO_START
        or ours.in_all / cells > AIM_IN_ALL
        or ours.megabytes > AIM_MEMORY_MB
        or resumed > AIM_RESUME_S
    )


def resume(folder: Path, cells: int) -> tuple[float, float]:
    """Seconds from a process's start to the first request of a campaign that was sent before, and of the processor.

    The least of three.
    """
    scene = Scene(folder, cells)
    scene.plan()
    with scene.double:
        in_a_process(scene, "client", "start")
        found = [in_a_process(scene, "client", "resume") for _ in range(3)]
    return min((each["at"] - each["began"], each["processor"]) for each in found)


if __name__ == "__main__":
    sys.exit(main())
