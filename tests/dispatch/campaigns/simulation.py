"""Plays one schedule: leads clients from boundary to boundary, kills them, lets runs go on, and has them started again.

Only one of all of them does something at any time, and the seed decides who, so a schedule plays the same way again
(but for a kill at any *moment*, which is one of the clock of the machine).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.dispatch.campaigns.nursery import fast_directory
from tests.dispatch.campaigns.oracle import judge
from tests.dispatch.campaigns.world import KEY, World

if TYPE_CHECKING:
    from tests.dispatch.campaigns.nursery import ClientProcess, Nursery
    from tests.dispatch.campaigns.schedule import Kill, Schedule
    from tests.github_double.state import User

    from runner_e2e.dispatch.campaign import Campaign

__all__ = ["Outcome", "play"]

MOST_LIVES = 25
MOST_STEPS = 6_000


@dataclass
class Outcome:
    """What came of a schedule: :attr:`problems` is empty where all went well. The rest is counted for the record."""

    problems: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    boundaries: list[list[str]] = field(default_factory=list)
    payments: int = 0
    lives: int = 0
    requests: int = 0
    trace: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Operator:
    """Somebody with a ledger of their own. *finished* says how it ended; empty while it goes on."""

    number: int
    user: User
    ledger: Path
    file: Path
    campaign: Campaign
    process: ClientProcess | None = None
    life: int = 0
    count: int = 0
    kill: Kill | None = None
    send_again: list[int] = field(default_factory=list)
    faults_before: int = 0
    disturbed: bool = False
    finished: str = ""
    told: list[dict[str, Any]] = field(default_factory=list)


def play(schedule: Schedule, nursery: Nursery, *, mutant: str = "") -> Outcome:
    """Plays *schedule*, with the client as it is or as a *mutant*."""
    with tempfile.TemporaryDirectory(prefix="runner-e2e-schedule-", dir=fast_directory()) as directory:
        world = World(schedule, Path(directory))
        simulation = _Simulation(world, nursery, mutant)
        with world.double if schedule.wire else contextlib.closing(world.double._server.socket):
            try:
                simulation.run()
            finally:
                simulation.end_processes()
                world.clock.close()
        outcome = simulation.outcome
        outcome.faults, outcome.requests = world.faults.fired, len(world.double.log)
        outcome.payments = len(world.player.payments)
        return outcome


class _Simulation:
    def __init__(self, world: World, nursery: Nursery, mutant: str) -> None:
        self.world, self.nursery, self.mutant = world, nursery, mutant
        self.schedule = world.schedule
        self.rng = random.Random(f"simulation {world.schedule.seed}")
        self.outcome = Outcome(problems=world.problems)
        self.operators = self._operators()
        self._deceived: set[str] = set()
        self._steps = 0

    def _operators(self) -> list[Operator]:
        found: list[Operator] = []
        for number in range(len(self.schedule.cells)):
            same = found[0] if found and self.schedule.same_campaign else None
            file = same.file if same else self.world.directory / f"campaign-{number}.json"
            planned = same.campaign if same else self.world.plan(number, file)
            place = self.world.directory / f"machine-{number}"
            found.append(Operator(number, self.world.operators[number], place / "ledger.sqlite", file, planned))
        return found

    def run(self) -> None:
        """Everything, to the end, and the judgement."""
        current = self.operators[0]
        while going := [each for each in self.operators if not each.finished]:
            if current not in going or self.rng.random() < self.schedule.switches:
                current = self.rng.choice(going)
            self._advance(current)
            self._steps += 1
            if self._steps == self.schedule.lost_machines:
                self.world.lose_a_machine()
            if self._steps > MOST_STEPS:
                self._problem(f"nobody is done after {self._steps} steps")
                return
        self.world.finish()
        self.world.check_caps()
        judge(self.world, self.operators)

    def end_processes(self) -> None:
        """Kills what is left of a schedule that failed."""
        for each in self.operators:
            if each.process is not None:
                each.process.kill()
                each.process = None

    def _problem(self, text: str) -> None:
        self.world.problems.append(text)

    def _say(self, who: Operator, text: str) -> None:
        clock = self.world.clock.now() % 86_400
        self.outcome.trace.append(f"{clock:9.1f} {who.user.login:5} life {who.life} {who.count:4} {text}")

    # One step

    def _advance(self, operator: Operator) -> None:
        if operator.process is None:
            self._start(operator)
        else:
            operator.process.go()
        self._look(operator)

    def _start(self, operator: Operator) -> None:
        kills = [each for each in self.schedule.kills if (each.operator, each.life) == (operator.number, operator.life)]
        operator.kill = kills[0] if kills else None
        operator.count, operator.disturbed = 0, False
        operator.faults_before = self.world.faults.by_client.total()
        operator.process = self.nursery.start(self._order(operator), self.world.exchange)
        self.outcome.lives += 1
        self.outcome.boundaries.append([])
        self._say(operator, f"starts{f', sends {operator.send_again} again' if operator.send_again else ''}")

    def _order(self, operator: Operator) -> dict[str, Any]:
        kill = operator.kill
        return {
            "seed": f"{self.schedule.seed} {operator.number} {operator.life}",
            "clock": str(self.world.directory / "clock"),
            "skew": self.schedule.skew, "mutant": self.mutant, "line": kill.at if kill and kill.how == "line" else 0,
            "stop_at": kill.at if kill and kill.how != "line" else -1, "stop_name": kill.name if kill else "",
            "stop_after": kill.after if kill else 0,
            "ledger": str(operator.ledger), "file": str(operator.file), "campaign": operator.campaign.id,
            "key": KEY.hex(), "token": f"token-of-{operator.user.login}", "url": self.world.double.url,
            "repository": self.world.state.repository, "timeout": 5 if self.schedule.hangs else 60,
            "send_again": operator.send_again, "wire": self.schedule.wire,
        }  # fmt: skip

    def _look(self, operator: Operator) -> None:
        """What the client's new place means for it and for the others."""
        process = operator.process
        assert process is not None
        for name in process.passed:
            operator.count += 1
            self._say(operator, name)
        self.outcome.boundaries[-1] += process.passed
        self.world.clock.sleep(0.02 * len(process.passed))
        if process.end is not None:
            operator.process = None
            self._ended(operator, process.end)
            return
        if self._is_killed(operator, process):
            return
        if self.schedule.second_process and operator.count >= self.schedule.second_process and not operator.disturbed:
            self._disturb(operator, process)
        self._time_passes(process.at)

    def _is_killed(self, operator: Operator, process: ClientProcess) -> bool:
        kill = operator.kill
        if kill is None or not (process.at.startswith("line ") if kill.how == "line" else process.stops):
            return False
        operator.kill = None
        name = "line" if kill.how == "line" else _kind(process.at)
        if kill.how == "interrupt":
            self.outcome.kills[f"interrupt {name}"] += 1
            self._say(operator, "Ctrl-C")
            operator.disturbed = True
            process.interrupt()
            self._look(operator)
            return True
        if kill.how == "moment":
            process.release()
            time.sleep(kill.delay)
            name = "moment"
        status = process.kill()
        operator.process = None
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.outcome.kills[name] += 1
        elif kill.how != "moment":  # then it may have been done already
            self._problem(f"a client that was killed ended with status {status}")
        self._say(operator, f"SIGKILL ({kill.how})")
        if self.schedule.wire:
            self.world.double.settle()  # whatever the client had sent
        self._next_life(operator)
        return True

    def _time_passes(self, boundary: str) -> None:
        """Time and the runs go on, more where the client waits."""
        seconds = float(boundary.split()[1]) if boundary.startswith("wait ") else 0.1
        self.world.clock.sleep(seconds)
        most = 12 if seconds >= 1 else 1
        self.world.turns(self.rng.randrange(self.schedule.pace * most + 1) if self.rng.random() < 0.7 else 0)
        self._deceive()

    def _deceive(self) -> None:
        sent = [nonce for nonce in self.world.sent if nonce not in self._deceived]
        if sent and len(self._deceived) < self.schedule.decoys:
            self._deceived.add(sent[-1])
            self.world.deceive(sent[-1], self.schedule.seed + len(self._deceived))

    def _disturb(self, operator: Operator, process: ClientProcess) -> None:
        """A second client on the same ledger, while the first stands still and is sure to hold it."""
        if not process.at.startswith(("before POST", "after POST", "wait ")):
            return
        operator.disturbed = True
        second = self.nursery.start({**self._order(operator), "line": 0, "stop_at": -1}, self.world.exchange)
        while second.end is None:
            if second.at.startswith(("before POST", "before PUT", "before DELETE")):
                self._problem(f"a second client on the same ledger went on to {second.at!r}")
                second.kill()
                return
            second.go()
        self.outcome.ends["second client refused"] += 1
        if second.end["end"] != "error":
            self._problem(f"a second client on the same ledger ended with {second.end}")

    # The end of a life

    def _next_life(self, operator: Operator) -> None:
        operator.life += 1
        # Somebody notices after a while, mostly soon.
        self.world.clock.sleep(self.rng.choice((1, 1, 20, 400, 3_000)))
        self.world.turns(self.rng.randrange(8 * self.schedule.pace))
        if operator.life > MOST_LIVES:
            self._problem(f"{operator.user.login} has not finished after {MOST_LIVES} lives")
            operator.finished = "given up"

    def _ended(self, operator: Operator, end: dict[str, Any]) -> None:
        self._say(operator, f"ends: {end['end']} {end.get('kind', '')} {end.get('text', '')}{end.get('shards', '')}")
        self.outcome.ends[end.get("kind", end["end"])] += 1
        if end["end"] == "defect":
            self._problem(f"{operator.user.login} ended with a defect:\n{end['text']}")
            operator.finished = "defect"
        elif end["end"] == "error":
            self._refused(operator, end)
        else:
            self._done(operator, end)

    def _done(self, operator: Operator, end: dict[str, Any]) -> None:
        operator.told += end["told"]
        by_state: dict[str, list[int]] = {}
        for each in end["shards"]:
            by_state.setdefault(each["state"], []).append(each["index"])
        unpaid = by_state.pop("unpaid", [])
        by_state.pop("settled", None)
        if by_state:
            self._problem(f"{operator.user.login} was left with {by_state}")
            operator.finished = "left"
        elif unpaid:
            operator.send_again = unpaid
            self._next_life(operator)
            if operator.life > 3:
                self.world.faults.heal()
        else:
            operator.finished = "settled"

    def _refused(self, operator: Operator, end: dict[str, Any]) -> None:
        """An error that the product raises on purpose. It needs a cause that the schedule gave."""
        broken = self.world.faults.by_client.total() > operator.faults_before
        if end["kind"] == "BudgetError":
            self._check_refusal(operator, end["text"])
            operator.finished = "over the cap"
        elif end["kind"] == "KeyboardInterrupt" or broken or operator.disturbed:
            self._next_life(operator)
            if operator.life > 8:
                self.world.faults.heal()
        elif self.schedule.same_campaign and "RefusedError" in end["bases"] and self._belongs_to_another(operator):
            operator.finished = "refused"
        else:
            self._problem(f"{operator.user.login} was refused without a cause: {end['kind']}: {end['text']}")
            operator.finished = "refused"

    def _belongs_to_another(self, operator: Operator) -> bool:
        campaign = operator.campaign.id
        nonces = {each.nonce for each in self.world.entries() if each.campaign == campaign and each.state != "released"}
        return not any(self.world.runs_of(nonce, operator.user) for nonce in nonces)

    def _check_refusal(self, operator: Operator, text: str) -> None:
        """A cap was named as the cause: it must really be too low for what is not reserved yet."""
        entries = self.world.entries()
        keys = {each.key.rpartition("/")[0] for each in entries if each.state != "released"}
        needed = sum(
            each.reserved for each in operator.campaign.shards if f"{operator.campaign.id}/{each.index}" not in keys
        )
        taken = sum(each.counts or 0 for each in entries)
        own = sum(each.counts or 0 for each in entries if each.campaign == operator.campaign.id)
        caps = self.world.caps
        if not any(
            cap is not None and there + needed > cap
            for cap, there in ((caps.campaign, own), (caps.day, taken), (caps.month, taken))
        ):
            self._problem(f"{operator.user.login} was refused although the caps had room for {needed}: {text}")


def _kind(boundary: str) -> str:
    """A boundary without what differs from schedule to schedule."""
    words = boundary.split()
    if words[0] == "wait":
        return "wait"
    if "COMMIT" not in words and len(words) > 2:
        parts = ["N" if part.isdigit() or len(part) > 20 else part for part in words[2].split("/")[4:]]
        words[2] = "/".join(parts)
    return " ".join(words)
