"""The other side: a double with runs that go on, what breaks in it, and what may never be seen from there."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.dispatch.campaigns.clock import SharedClock
from tests.dispatch.campaigns.definition import DEFINITION
from tests.dispatch.campaigns.schedule import EXPECTED
from tests.github_double.direct import carry_out, request_of
from tests.github_double.faults import Fault, Faults
from tests.github_double.player import JOB_TOKEN, Payment, Player
from tests.github_double.server import Entry as Exchange
from tests.github_double.server import Server
from tests.github_double.state import State

from runner_e2e.cells.catalog import read_catalog
from runner_e2e.cells.selectors import Selection, select
from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch.money import micros
from runner_e2e.dispatch.shared_ledger_file import BRANCH, CAPS_FILE, Caps, Entry, caps_as_text, read_month

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.dispatch.campaigns.schedule import Schedule
    from tests.github_double.routes import Request
    from tests.github_double.state import Attempt, Run, User

    from runner_e2e.cells.model import Cell

__all__ = ["KEY", "Claimed", "World"]

KEY = bytes(range(32))
WORKFLOW = ".github/workflows/paid-campaign.yml"
CATALOG = """
harness: { command: [python3, harness.py] }
credentials: { OPENAI_API_KEY: }
profiles: { codex: { credential: OPENAI_API_KEY } }
environments: { local: }
suites: { chat: { profiles: [codex], environments: [local], expected-cost: 0.5,
                  cases: [a, b, c, d, e, f, g, h] } }
"""
CLAIMS = "refs/runner-e2e/claims/"
# A dispatch that is answered so was not carried out, for sure.
_REFUSED = frozenset({301, 302, 307, 308, *range(400, 500)}) - {408}
LEAST_GRACE = 300.0
"""Seconds that a dispatch without a reply is looked for at the very least, before its claim may be burned."""


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What a claim's tag says; *run* is None where it was burned."""

    nonce: str
    run: int | None


class World:
    """GitHub for one schedule. :attr:`problems` holds whatever was seen that may never happen."""

    def __init__(self, schedule: Schedule, directory: Path) -> None:
        self.schedule, self.directory = schedule, directory
        self.problems: list[str] = []
        self.clock = SharedClock.start(directory / "clock")
        self.rng = random.Random(f"world {schedule.seed}")
        (directory / "catalog.yml").write_text(CATALOG)
        self.catalog = read_catalog(directory / "catalog.yml")
        self.state = State(clock=self.clock)
        self.faults = ScheduledFaults(self)
        self.double = Server(self.state, faults=self.faults, validating=False)
        # A client that is killed breaks its connection.
        self.double._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.operators: list[User] = [self.state.users["alice"], self.state.add_user("bob", 12)]
        self.state.tokens["token-of-bob"] = self.operators[1]
        self.mallory = self.state.add_user("mallory", 66)
        self._prepare_repository()
        self.player = HeldPlayer(self)
        self.sent: dict[str, list[Exchange]] = {}
        """The dispatches of each nonce, with what was answered."""
        self.double.after = self.saw_answer
        self.burned: set[str] = set()

    def _prepare_repository(self) -> None:
        schedule, state = self.schedule, self.state
        inputs = {"nonce": False, "selection": False, "target": False}
        for path in (WORKFLOW, ".github/workflows/other.yml"):
            workflow = state.add_workflow(path, inputs=dict(inputs))
            workflow.run_name = "Paid campaign ${{ inputs.nonce }}"
            state.write_file(path, state.default_branch, DEFINITION, "workflow", None)
        state.listing_delay = schedule.listing_delay
        state.old_server = schedule.old_server
        self.caps = Caps(campaign=schedule.caps[0], day=schedule.caps[1], month=schedule.caps[2])
        if self.caps:
            files = {CAPS_FILE: caps_as_text(self.caps).encode()}
            state.refs[f"refs/heads/{BRANCH}"] = state.commit(files, [], "caps")

    # What is true here

    def cost(self, cell: Cell) -> float:
        """What a cell costs in dollars: never more than the catalog expects, and no round sum."""
        return EXPECTED / 1e6 if cell.case == "a" else round(0.1 + 0.0371 * (ord(cell.case) % 7), 4)

    def micros_of(self, handle: str) -> int:
        """The same in micro-dollars, by the name of the cell."""
        return micros(self.cost(self.player._cell_of(handle)))

    def spent(self, handles: list[str]) -> int:
        """What those cells cost together."""
        return sum(map(self.micros_of, handles))

    def entries(self) -> list[Entry]:
        """What stands in the shared ledger, of all months."""
        if f"refs/heads/{BRANCH}" not in self.state.refs:
            return []
        files = self.state.files(BRANCH)
        found: list[Entry] = []
        for name, sha in sorted(files.items()):
            if name != CAPS_FILE and name.endswith(".json"):
                found += read_month(name, self.state.objects[sha]["content"])
        return found

    def claimed(self, nonce: str) -> Claimed | None:
        """Who holds the claim of *nonce*."""
        sha = self.state.refs.get(f"{CLAIMS}{nonce}")
        if sha is None:
            return None
        data = json.loads(self.state.objects[sha]["message"])
        run = data.get("run")
        return Claimed(nonce=data["nonce"], run=run if run in self.state.runs else None)

    def runs_of(self, nonce: str, user: User | None = None) -> list[Run]:
        """The real runs with that nonce, of *user* where one is given."""
        return [
            run for run in self.state.runs.values()
            if run.inputs.get("nonce") == nonce and run.workflow.path == WORKFLOW and user in (None, run.actor)
        ]  # fmt: skip

    # What is prepared and what happens

    def plan(self, operator: int, path: Path) -> campaigns.Campaign:
        """Plans the campaign of an operator and writes its file."""
        schedule = self.schedule
        cells = select(self.catalog, Selection(all=True))
        chosen = [cells[(operator * 3 + number) % len(cells)] for number in range(schedule.cells[operator])]
        with (
            patch.object(campaigns, "MAXIMUM_JOBS", schedule.per_shard),
            patch("secrets.token_hex", lambda _: f"{operator:08x}"),
        ):
            planned = campaigns.plan_campaign(
                self.catalog, chosen, key=KEY, repository=self.state.repository, target="", max_cost=None,
                assume_cost=None, now=datetime.fromtimestamp(self.clock.now(), UTC),
            )  # fmt: skip
        path.write_text(campaigns.campaign_as_json(planned, KEY))
        return planned

    def turns(self, number: int) -> None:
        """Lets the runs go on."""
        for _ in range(number):
            if not self.player.turn():
                return

    def finish(self) -> None:
        """Everything breaks no more, and every run that there is goes on to its end."""
        self.faults.heal()
        self.clock.sleep(10_000)
        self.player.play()

    def lose_a_machine(self) -> None:
        """The machines of a run are switched off, if any runs."""
        going = sorted({each.run.id for each in self.player._playing})
        if going:
            self.player.switch_off(self.state.runs[self.rng.choice(going)])

    def deceive(self, nonce: str, number: int) -> None:
        """Somebody makes a run that carries our nonce: a stranger of our workflow, or we of another workflow."""
        inputs = next((run.inputs for run in self.runs_of(nonce)), {"nonce": nonce})
        if number % 2:
            self.state.dispatch("paid-campaign.yml", "main", dict(inputs), self.mallory)
            return
        run = self.state.dispatch("other.yml", "main", dict(inputs), self.rng.choice(self.operators))
        run.last.status, run.last.conclusion = "completed", "success"

    def exchange(self, verb: str, url: str, headers: Mapping[str, str], body: str) -> dict[str, Any]:
        """What comes back to a client that talks over no wire."""
        found = carry_out(self.double, request_of(self.double, verb, url, headers, body))
        return {**asdict(found), "body": found.body.decode("latin-1")}

    # What is watched

    def saw_request(self, request: Request, user: User) -> None:
        """One request of a client, before it is carried out."""
        if request.verb != "POST":
            return
        if request.path.endswith("/dispatches"):
            self._saw_dispatch(str(request.body.get("inputs", {}).get("nonce")))
        elif request.path.endswith("/git/refs") and str(request.body.get("ref")).startswith(CLAIMS):
            self._saw_burning(str(request.body["ref"]).removeprefix(CLAIMS), user)
        elif request.path.endswith("cancel"):
            self._saw_cancel(int(request.path.split("/")[-2]), user)

    def saw_answer(self, entry: Exchange) -> None:
        """One request of a client, as it was answered."""
        if entry.verb == "POST" and entry.path.endswith("/dispatches"):
            self.sent.setdefault(str(entry.body.get("inputs", {}).get("nonce")), []).append(entry)

    def _saw_dispatch(self, nonce: str) -> None:
        doubtful = [each for each in self.sent.get(nonce, []) if each.status not in _REFUSED]
        if doubtful:
            self.problems.append(f"{nonce} is sent again, though it may have arrived: {doubtful}")
        if not any(each.nonce == nonce and each.state == "reserved" for each in self.entries()):
            self.problems.append(f"{nonce} was sent without a reservation in the shared ledger")

    def _saw_burning(self, nonce: str, user: User) -> None:
        self.burned.add(nonce)
        for run in self.runs_of(nonce, user):
            hidden, age = run.visible_at > self.clock.now(), self.clock.now() - run.created_at
            if run.last.status != "completed" and (not hidden or age < LEAST_GRACE) and not self.faults.hid_lists:
                self.problems.append(
                    f"the claim of {nonce} was burned {age:.0f} s after run {run.id} was created, "
                    f"which is {run.last.status}{', and not listed yet' if hidden else ''}"
                )

    def _saw_cancel(self, number: int, user: User) -> None:
        run = self.state.runs.get(number)
        if run is not None and (run.actor is not user or run.workflow.path != WORKFLOW):
            self.problems.append(f"run {number} was cancelled, which is {run.actor.login}'s")
        holder = self.claimed(run.inputs.get("nonce", "")) if run else None
        if run is not None and run.last.status != "completed" and (holder is None or holder.run == number):
            who = "which holds the claim" if holder else "and nobody holds the claim"
            self.problems.append(f"run {number} was cancelled, {who}")

    def saw_payment(self, payment: Payment) -> None:
        """A cell is about to be paid for."""
        entry = next((each for each in self.entries() if each.nonce == payment.authorisation), None)
        if entry is None or entry.state == "released":
            self.problems.append(f"run {payment.run} pays for {payment.handle} without a reservation: {entry}")
            return
        paid = [each for each in self.player.payments if each.authorisation == payment.authorisation]
        if self.spent([each.handle for each in paid]) > (entry.reserved or 0):
            self.problems.append(f"{entry.key} has spent more than it reserved")
        self.check_caps()

    def check_caps(self) -> None:
        """Neither what was really paid nor what the shared ledger counts passes a cap."""
        entries = self.entries()
        by_nonce = {each.nonce: each for each in entries}
        real: Counter[str] = Counter()
        for each in self.player.payments:
            if each.authorisation in by_nonce:
                entry = by_nonce[each.authorisation]
                for scope in (entry.campaign, entry.day, entry.day[:7]):
                    real[scope] += self.micros_of(each.handle)
        counted: Counter[str] = Counter()
        for entry in entries:
            for scope in (entry.campaign, entry.day, entry.day[:7]):
                counted[scope] += entry.counts or 0
        caps = {10: self.caps.day, 7: self.caps.month}
        for name, found in (("paid", real), ("counted", counted)):
            for scope, amount in found.items():
                cap = caps.get(len(scope), self.caps.campaign)
                if cap is not None and amount > cap:
                    self.problems.append(f"{amount} micro-dollars were {name} for {scope}, whose cap is {cap}")


class ScheduledFaults(Faults):
    """The faults of the schedule. They end, as faults do; those at random first spare runs where it says so."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._requests = 0
        self.healed = False
        self.by_client: Counter[str] = Counter()
        schedule = world.schedule
        for each in schedule.orders:
            self.order(each.fault, each.verb, each.path, skip=each.skip)
        if schedule.rate:
            self.at_random(schedule.seed, schedule.rate, schedule.broken)

    @property
    def hid_lists(self) -> bool:
        """Whether some list lacked something, or was an old one: then a run may have been overlooked without guilt."""
        return bool(self.fired["late-list"] or self.fired["stale-304"] or self.fired["stale-404"])

    def heal(self) -> None:
        """From now on nothing breaks."""
        self.healed = True
        self._orders.clear()
        self._random = None

    def next(self, request: Request) -> Fault | None:
        """What goes wrong with *request*."""
        token = request.headers.get("authorization", "").partition(" ")[2]
        world = self._world
        if token != JOB_TOKEN and token in world.state.tokens:
            world.saw_request(request, world.state.tokens[token])
        if self.healed or (token == JOB_TOKEN and not world.schedule.jobs_too):
            return None
        self._requests += 1
        if self._requests > world.schedule.faults_end:
            self._random = None
        fault = super().next(request)
        if fault is None or (request.path.startswith("/storage/") and fault.late):
            return None
        if token != JOB_TOKEN:
            self.by_client[fault.name] += 1
        if fault.name == "limit-hour":
            reset = str(int(world.clock.now()) + 2_000)
            return replace(fault, headers={**fault.headers, "X-RateLimit-Reset": reset})
        return fault


class Payments(list[Payment]):
    """Payments, each of them looked at when it is made."""

    def __init__(self, saw: Callable[[Payment], None]) -> None:
        super().__init__()
        self._saw = saw

    def append(self, payment: Payment) -> None:
        """Counts one."""
        super().append(payment)
        self._saw(payment)


class HeldPlayer(Player):
    """A player whose runs may wait in a queue."""

    def __init__(self, world: World) -> None:
        schedule = world.schedule
        super().__init__(
            world.double, world.catalog, keys=(KEY,), allowlist="[11, 12]", seed=schedule.seed, cost=world.cost
        )
        self.payments = Payments(world.saw_payment)
        self._world = world
        self._holds = {each.run: each.seconds for each in schedule.holds}

    def _advance(self, run: Run, attempt: Attempt) -> None:
        hold = self._holds.get(run.number - 1, 0.0)
        if self._world.clock.now() >= run.created_at + hold:
            super()._advance(run, attempt)

    def _keep_results(self, run: Run, attempt: Attempt) -> None:
        super()._keep_results(run, attempt)
        if self._world.schedule.expired:
            for each in run.artifacts:
                each.expired = True
