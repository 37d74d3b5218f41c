"""A policy that was looked at and not refused, and the plans of its launches."""

from __future__ import annotations

import os

from runner_e2e.sandbox import request
from runner_e2e.sandbox.planning import create_entries, current_directory, make_plan, survey
from runner_e2e.sandbox.progress import require_landlock
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.sandbox.plan import Plan
    from runner_e2e.sandbox.planning import Host, Survey
    from runner_e2e.sandbox.policy import Policy

__all__ = ["Prepared", "prepare"]


class Prepared(Record):
    """What many launches of the same agent share.

    Each launch still compares every path with what was found here and stops when one was replaced.
    """

    policy: Policy
    host: Host
    found: Survey
    environment: Mapping[str, str]
    created: tuple[str, ...]
    plans: dict[tuple[str, ...], tuple[Plan, request.Packed]]  # by mode and layers left out, without a command

    def plan(self, mode: str, without: Iterable[str]) -> tuple[Plan, request.Packed]:
        """The plan of a launch in *mode* that does not use the layers *without*, lacking the command; and packed."""
        key = (mode, *sorted(without))
        # A limit on processes depends on what the agent's user runs outside, which may change with every launch.
        if key not in self.plans or "processes" in self.policy.limits:
            plan = make_plan(
                self.found,
                self.policy,
                (),
                host=self.host,
                mode=mode,
                without=key[1:],
                environment=self.environment,
            )
            self.plans[key] = plan, request.pack(plan)
        return self.plans[key]


def prepare(
    policy: Policy, *, host: Host, directory: str | None = None, environment: Mapping[str, str] | None = None
) -> Prepared:
    """Looks at the paths of *policy*; raises :class:`LaunchError` to refuse it.

    Where none are given, the agent starts in this process's directory and gets of this process's environment.
    """
    require_landlock(policy, host)
    variables = dict(os.environ if environment is None else environment)
    created = create_entries(policy)
    found = survey(policy, directory=directory or current_directory(), environment=variables, user=host.user)
    return Prepared(policy=policy, host=host, found=found, environment=variables, created=created, plans={})
