"""Plays schedules by hand: ``python -m tests.dispatch.campaigns --seed 17``, ``--seeds 0-2000``, ``--mutant NAME``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.dispatch.campaigns.mutants import MUTANTS
from tests.dispatch.campaigns.nursery import Nursery
from tests.dispatch.campaigns.schedule import draw
from tests.dispatch.campaigns.simulation import play


def main() -> int:
    """1 where a schedule shows a problem."""
    parser = argparse.ArgumentParser(prog="python -m tests.dispatch.campaigns", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="plays one schedule and shows every step")
    which.add_argument("--seeds", metavar="FIRST-LAST", help="plays many and shows what is wrong")
    parser.add_argument("--mutant", default="", choices=sorted(MUTANTS), help="a client with this mistake")
    given = parser.parse_args()
    first, _, last = (given.seeds or f"{given.seed}").partition("-")
    seeds = range(int(first), int(last or first) + 1)
    began, cpu, failed = time.perf_counter(), time.process_time(), []
    kills: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    with Nursery() as nursery:
        for seed in seeds:
            outcome = play(draw(seed), nursery, mutant=given.mutant)
            kills, faults, ends = kills + outcome.kills, faults + outcome.faults, ends + outcome.ends
            if given.seed is not None:
                print(draw(seed), *outcome.trace, sep="\n")
            if outcome.problems:
                failed.append(seed)
                print(f"seed {seed}:", *outcome.problems, sep="\n  ", flush=True)
        clients = nursery.seconds
    taken = time.perf_counter() - began
    print(
        f"{len(seeds)} schedules, {len(failed)} wrong, {taken:.1f} s "
        f"(processor: {time.process_time() - cpu:.1f} s here, {clients:.1f} s in clients)"
    )
    for name, found in (("kills", kills), ("faults", faults), ("ends", ends)):
        print(f"{name}: {found.total()}", ", ".join(f"{key}: {count}" for key, count in found.most_common()))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
