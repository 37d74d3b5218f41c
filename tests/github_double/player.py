"""Plays runs of ``paid-campaign.yml`` against a double, and counts what is paid for.

GitHub's part is played: runs, attempts, jobs, ``needs``, outputs that a partial rerun keeps. What the jobs do is the
product's own code: :func:`admit`, :func:`open_selection`, :func:`make_matrix`, :func:`claim_within_caps`,
:func:`check_claim`, :func:`settle_run`, against the double, where faults can be ordered, without sockets between. A
payment is counted where the paid step would start a harness, never from anybody's ledger.

    with Server() as double:
        player = Player(double, catalog, keys=(key,), seed=7)
        double.state.dispatch("paid-campaign.yml", "main", {"nonce": nonce, "selection": sealed}, alice)
        player.play()                       # all runs to their end, requests interleaved as the seed decides
        player.rerun(run, failed_only=True) # a new attempt; play() again
        assert player.paid_twice() == []

For a client that watches its runs: ``double.after = player.after_request`` lets the runs go on while the client asks.
The same seed, catalog and requests give the same interleaving.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import threading
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.github_double.direct import DirectApi
from tests.github_double.state import Artifact, Attempt, Job, Run, User
from tests.github_double.turns import Task

from runner_e2e.cells.matrix import make_matrix
from runner_e2e.cells.sealed import open_selection
from runner_e2e.cells.selectors import Selection, cell_by_handle, cell_by_id, select
from runner_e2e.dispatch.admission import Application, admit, read_own_run
from runner_e2e.dispatch.claim import check_claim, claim_of
from runner_e2e.dispatch.downloads import records_in
from runner_e2e.dispatch.github_api import Limits
from runner_e2e.dispatch.outcomes import PAID_STEP
from runner_e2e.dispatch.run_reservations import Bill, RunPlan, bill_of, claim_within_caps, settle_run
from runner_e2e.errors import RunnerE2EError
from runner_e2e.gha import RunContexts
from runner_e2e.report.billing import Usage
from runner_e2e.report.results import Exit, Failure, Host, Output, Result, Retry, result_as_json, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.github_double.server import Entry, Server

    from runner_e2e.cells.model import Catalog, Cell
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["JOB_TOKEN", "Payment", "Player"]

JOB_TOKEN = "token-of-jobs"
_BEFORE = {"Gate": (), "Plan": ("Gate",), "Claim": ("Gate", "Plan")}
_BEFORE_CELLS = ("Gate", "Plan", "Claim")
_RESULTS = "Results"


@dataclass(frozen=True, kw_only=True)
class Payment:
    """A paid step that started. *authorisation* is the name of the claim it was started under: one nonce, one attempt
    of it."""

    run: int
    attempt: int
    handle: str
    authorisation: str


@dataclass(eq=False)
class _Playing:
    """A job that runs: its place in the run, and the task that does its work."""

    run: Run
    attempt: Attempt
    job: Job
    task: Task


@dataclass
class _Memory:
    """What GitHub remembers of a run between its jobs: outputs by the name of the job, and why jobs failed."""

    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    refusals: dict[tuple[int, str], str] = field(default_factory=dict)


def _step(name: str, number: int, conclusion: str) -> dict[str, Any]:
    return {"name": name, "number": number, "status": "completed", "conclusion": conclusion}


class Player:
    """Plays the runs of *double* with the *catalog* that the target has.

    *keys* are the campaign keys that the steps get, the newest first; *allowlist* is the variable's value. *cost* tells
    what a cell costs in dollars (None: unknown), *passes* whether it does. *at_once* is how many turns
    :meth:`after_request` gives.
    """

    def __init__(
        self, double: Server, catalog: Catalog, *, keys: Sequence[bytes], allowlist: str = "[11]", seed: int = 0,
        cost: Callable[[Cell], float | None] = lambda _: 0.5, passes: Callable[[Cell], bool] = lambda _: True,
        at_once: int = 3,
    ) -> None:  # fmt: skip
        self.payments: list[Payment] = []
        self.double = double
        self._catalog, self._keys, self._allowlist, self._cost = catalog, tuple(keys), allowlist, cost
        self._passes = passes
        self._random = random.Random(seed)
        self._at_once = at_once
        self._playing: list[_Playing] = []
        self._memories: dict[int, _Memory] = {}
        self._busy = threading.Lock()
        bot = double.state.users.get("github-actions[bot]") or double.state.add_user(
            "github-actions[bot]", 41_898_282, kind="Bot"
        )
        double.state.tokens[JOB_TOKEN] = bot

    # What a test asks

    def paid_twice(self) -> list[tuple[str, str]]:
        """Authorisation and handle of each cell that was paid for more than once under one authorisation."""
        counted = Counter((each.authorisation, each.handle) for each in self.payments)
        return [which for which, times in counted.items() if times > 1]

    def why(self, run: Run, job: str, *, attempt: int | None = None) -> str:
        """What a job of *run* was refused for; empty where it was not. Without *attempt*: the newest."""
        number = run.last.number if attempt is None else attempt
        return self._memories.setdefault(run.id, _Memory()).refusals.get((number, job), "")

    # What a test does

    def rerun(self, run: Run, *, by: User | None = None, failed_only: bool = False, job: str = "") -> Attempt:
        """Starts *run* again, as *by* (or its actor): all jobs, those that failed, or one *job* and what needs it."""
        which = next((each.id for each in run.last.jobs if each.name == job), None)
        with self.double.lock:
            return self.double.state.rerun(run, by or run.actor, failed_only=failed_only or bool(job), job=which)

    def play(self, *, most: int = 100_000) -> None:
        """Plays until nothing is left to do. Raises what is no clear error of the product."""
        for _ in range(most):
            if not self.turn():
                return
        raise AssertionError(f"runs did not end within {most} turns")

    def turn(self) -> bool:
        """One job of one run goes on until its next request. False where nothing is left to do."""
        with self._busy:
            return self._turn()

    def _turn(self) -> bool:
        self._begin_jobs()
        if not self._playing:
            return False
        chosen = self._random.choice(self._playing)
        if chosen.attempt.status == "completed":  # cancelled meanwhile
            chosen.task.stop()
        else:
            chosen.task.turn()
        if chosen.task.done:
            self._playing.remove(chosen)
        return True

    def after_request(self, entry: Entry) -> None:
        """For ``Server.after``: the runs go on a little with every request of somebody else."""
        del entry
        if self._busy.acquire(blocking=False):  # not for the requests of the jobs themselves
            try:
                for _ in range(self._at_once):
                    self._turn()
            finally:
                self._busy.release()

    def switch_off(self, run: Run) -> None:
        """Loses the machines of *run*: its jobs end where they are, as failures."""
        for each in [each for each in self._playing if each.run is run]:
            each.task.stop()
            self._playing.remove(each)
            self._end(each.attempt, each.job, "failure")

    # GitHub's part

    def _begin_jobs(self) -> None:
        """Starts every job whose needs are fulfilled, skips those whose needs failed, ends attempts."""
        with self.double.lock:
            for run in list(self.double.state.runs.values()):
                if run.last.status != "completed":
                    self._advance(run, run.last)

    def _advance(self, run: Run, attempt: Attempt) -> None:
        by_name = {job.name: job for job in attempt.jobs}
        for name, needed in self._graph(run, by_name):
            if name in by_name:
                continue
            states = [by_name[each].conclusion if each in by_name else None for each in needed]
            if name == _RESULTS:  # which always runs
                states = ["success" if state else None for state in states]
            if any(state is not None and state != "success" for state in states):
                by_name[name] = self._job(attempt, name, status="completed", conclusion="skipped")
            elif all(state == "success" for state in states):
                by_name[name] = job = self._job(attempt, name, status="in_progress")
                self._playing.append(self._started(run, attempt, job))
        names = [name for name, _ in self._graph(run, by_name)]
        if all(name in by_name and by_name[name].status == "completed" for name in names):
            self._finish(run, attempt)
        elif attempt.status == "queued":
            attempt.status = "in_progress"
            self.double.state.touch(run)

    def _graph(self, run: Run, by_name: dict[str, Job]) -> list[tuple[str, tuple[str, ...]]]:
        """Jobs with what they need. Those of the matrix are known when the plan has been made."""
        found = list(_BEFORE.items())
        if "Claim" in by_name and by_name["Claim"].conclusion == "success":
            handles = self._handles(run)
            found += [(name, _BEFORE_CELLS) for name in handles]
            found.append((_RESULTS, tuple(handles)))
        return found

    def _handles(self, run: Run) -> list[str]:
        entries = json.loads(self._memory(run).outputs.get("Plan", {}).get("matrix", '{"include": []}'))["include"]
        return [entry["handle"] for entry in entries]

    def _job(self, attempt: Attempt, name: str, *, status: str, conclusion: str | None = None) -> Job:
        now = self.double.state.clock.now()
        job = Job(
            id=self.double.state.number(), name=name, attempt=attempt.number, status=status, conclusion=conclusion,
            started_at=now, completed_at=now if conclusion else None, runner=None if conclusion else 1,
        )  # fmt: skip
        attempt.jobs.append(job)
        return job

    def _finish(self, run: Run, attempt: Attempt) -> None:
        failed = any(job.conclusion != "success" for job in attempt.jobs)
        attempt.status, attempt.conclusion = "completed", "failure" if failed else "success"
        self.double.state.touch(run)

    def _end(self, attempt: Attempt, job: Job, conclusion: str) -> None:
        with self.double.lock:
            if attempt.status != "completed":
                job.status, job.conclusion = "completed", conclusion
                job.completed_at = self.double.state.clock.now()

    def _memory(self, run: Run) -> _Memory:
        return self._memories.setdefault(run.id, _Memory())

    # The jobs' part

    def _started(self, run: Run, attempt: Attempt, job: Job) -> _Playing:
        steps = {"Gate": self._gate, "Plan": self._plan, "Claim": self._claim, _RESULTS: self._results}
        work = steps.get(job.name, self._cell)

        def do() -> None:
            api = self._api(playing.task.pause)
            # A rerun forgets what the job said before; what other jobs said is kept.
            self._memory(run).outputs.pop(job.name, None)
            try:
                outputs = work(api, run, attempt, job)
            except RunnerE2EError as error:
                self._memory(run).refusals[attempt.number, job.name] = str(error)
                self._end(attempt, job, "failure")
            else:
                self._memory(run).outputs[job.name] = outputs
                self._end(attempt, job, "success")

        playing = _Playing(run, attempt, job, Task(do))
        return playing

    def _api(self, pause: Callable[[], None]) -> GitHubApi:
        def wait(seconds: float) -> None:
            self.double.state.clock.sleep(seconds)
            pause()

        return DirectApi(self.double, token=JOB_TOKEN, limits=Limits(before=lambda _: pause(), wait=wait))

    def _contexts(self, run: Run, attempt: Attempt) -> RunContexts:
        """What GitHub's runner sets. A rerun keeps the actor; who started it again is the triggering actor."""
        state = self.double.state
        return RunContexts(
            repository=state.repository, repository_id=str(state.repository_id), run_id=str(run.id),
            run_attempt=str(attempt.number), event_name=run.event, ref=run.ref, sha=run.sha, workflow_sha=run.sha,
            workflow_ref=f"{state.repository}/{run.workflow.path}@{run.ref}", actor=run.actor.login,
            actor_id=str(run.actor.id), triggering_actor=attempt.triggering_actor.login, api_url=self.double.url,
        )  # fmt: skip

    def _admit(
        self, api: GitHubApi, run: Run, attempt: Attempt, *, branch: str = "", claim: str = ""
    ) -> dict[str, str]:
        default = self._memory(run).outputs.get("Gate", {}).get("default-branch", "")
        application = Application(allowlist=self._allowlist, branch=branch, default_branch=default, claim=claim)
        admission = admit(api, self._contexts(run, attempt), application)
        return {"default-branch": admission.default_branch, "target-sha": admission.target.sha}

    def _gate(self, api: GitHubApi, run: Run, attempt: Attempt, _: Job) -> dict[str, str]:
        return self._admit(api, run, attempt, branch=run.inputs.get("target", ""))

    def _plan(self, api: GitHubApi, run: Run, attempt: Attempt, _: Job) -> dict[str, str]:
        self._admit(api, run, attempt)
        sealed, nonce = run.inputs.get("selection", ""), run.inputs.get("nonce", "")
        if sealed:
            opened = open_selection(sealed, keys=self._keys, nonce=nonce, repository=self.double.state.repository)
            cells, key = tuple(cell_by_id(self._catalog, each) for each in opened.ids), opened.key
        else:
            cells, key = select(self._catalog, Selection(all=True)), self._keys[0]
        (shard,) = make_matrix(self._catalog, cells, key=key).shards
        bill = bill_of(self._catalog, cells)
        reserved = "" if bill.reserved is None else str(bill.reserved)
        largest = "" if bill.largest is None else str(bill.largest)
        money = {"cells": str(bill.cells), "reserved": reserved, "largest": largest}
        return {"matrix": json.dumps(shard.to_data()), **money}

    def _claim(self, api: GitHubApi, run: Run, attempt: Attempt, _: Job) -> dict[str, str]:
        self._admit(api, run, attempt)
        record = read_own_run(api, self._contexts(run, attempt))
        claim = claim_of(record, run.inputs.get("nonce", ""))
        plan = self._memory(run).outputs["Plan"]
        bill = Bill(cells=int(plan["cells"]), reserved=int(plan["reserved"]) if plan["reserved"] else None)
        claim_within_caps(api, claim, bill, commit=record.head_sha)
        return {"claim": str(claim)}

    def _cell(self, api: GitHubApi, run: Run, attempt: Attempt, job: Job) -> dict[str, str]:
        text = self._memory(run).outputs.get("Claim", {}).get("claim", "")
        job.steps = [_step("Gate", 1, "failure"), _step(PAID_STEP, 2, "skipped")]
        self._admit(api, run, attempt, claim=text)
        job.steps[0] = _step("Gate", 1, "success")
        claim = check_claim(text, run=str(run.id), attempt=str(attempt.number))
        job.steps[1] = _step(PAID_STEP, 2, "success")
        self.payments.append(Payment(run=run.id, attempt=attempt.number, handle=job.name, authorisation=claim.name))
        return {}

    # Results

    def _results(self, api: GitHubApi, run: Run, attempt: Attempt, _: Job) -> dict[str, str]:
        """The job `results`: it puts the records together, then settles by them, also what an earlier attempt paid."""
        with self.double.lock:
            self._keep_results(run, attempt)
        text = self._memory(run).outputs["Claim"]["claim"]
        claim = check_claim(text, run=str(run.id), attempt=text.rpartition(":")[2])
        kept = run.artifacts[-1:]
        records = records_in(io.BytesIO(kept[0].content))[0] if kept else []
        largest = self._memory(run).outputs.get("Plan", {}).get("largest", "")
        plan = RunPlan(handles=tuple(self._handles(run)), largest=int(largest) if largest else None)
        settle_run(api, claim, plan, records, inside=claim.attempt == attempt.number)
        return {}

    def _keep_results(self, run: Run, attempt: Attempt) -> None:
        """The artifact `results`: one record for each cell that was paid for in this attempt."""
        paid = [each for each in self.payments if (each.run, each.attempt) == (run.id, attempt.number)]
        if not paid:
            return
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for each in paid:
                record = json.dumps(result_as_json(self._result(run, attempt, each.handle)))
                archive.writestr(f"result-{each.handle}/result.json", record)
        now = self.double.state.clock.now()
        number = self.double.state.number()
        run.artifacts.append(Artifact(id=number, name="results", content=packed.getvalue(), created_at=now))

    def _result(self, run: Run, attempt: Attempt, name: str) -> Result:
        cell = self._cell_of(name)
        now = self.double.state.clock.now()
        passed, cost = self._passes(cell), self._cost(cell)
        failure = None if passed else Failure(failure_class="candidate_failure", message="the agent wrote nothing")
        return Result(
            id=cell.id, handle=name, campaign=f"run-{run.id}-{attempt.number}", attempt=1, attempts=1, selection="env",
            verdict="passed" if passed else "failed", failure=failure,
            started=time_text(attempt.started_at), ended=time_text(now),
            duration_s=now - attempt.started_at, exit=Exit(code=0),
            usage=Usage(cost_usd=cost, cost_status="unknown" if cost is None else "reported"),
            retry=Retry(allowed=False, reason="passed" if passed else "it failed by its own fault"),
            output=Output(), left_processes=0, sandbox=(), notes=(), definition_hash=cell.definition_hash,
            engine="player", host=Host(kernel="6.8", machine="x86_64", python="3.13"),
        )  # fmt: skip

    def _cell_of(self, name: str) -> Cell:
        for key in self._keys:
            with contextlib.suppress(RunnerE2EError):
                return cell_by_handle(self._catalog, key, name)
        raise AssertionError(f"no key leads to {name}")
