"""``runner-e2e dispatch authorise-rerun`` and ``cleanup``: leave to pay once more, and claims that are left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner_e2e.cli.github_options import repository_options
from runner_e2e.cli.ranges import Whole

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["authorise_rerun", "cleanup"]

# A run ends within 35 days, waiting for approvals included, and its twin must find the claim taken until then
# (https://docs.github.com/en/actions/reference/limits); it can be started again for 30.
_DAYS = 40


@click.command("authorise-rerun")
@click.argument("run", type=Whole(min=1))
@click.option("--cost", metavar="USD", help="What it may cost. Default: what was reserved for the first attempt.")
@repository_options
def authorise_rerun(*, run: int, cost: str | None, api: GitHubApi) -> None:
    """Let the next attempt of RUN pay once more.

    A rerun is new spending, so without this its claim is refused and it ends before anything is paid, and where the
    repository keeps a ledger its cost is reserved here, within the caps; what earlier attempts have reserved and did
    not pay is given back. Start it then with all its jobs (`gh run rerun RUN`): a partial rerun keeps the claim of the
    earlier attempt.
    """
    from runner_e2e.dispatch.claim import nonce_of
    from runner_e2e.dispatch.money import micros
    from runner_e2e.dispatch.records import read_last_attempt
    from runner_e2e.dispatch.run_reservations import authorise_within_caps

    amount = None if cost is None else micros(cost)
    record = read_last_attempt(api, run)
    claim = authorise_within_caps(api, record, nonce_of(record), cost=amount)
    click.echo(f"attempt {claim.attempt} of run {run} may pay once; start it with `gh run rerun {run}`")


@click.command(short_help="Remove claims that no run can use any more.")
@click.option(
    "--older-than",
    "days",
    type=Whole(min=_DAYS),
    default=_DAYS,
    show_default=True,
    help="Age in days. A run ends within 35 days, and a twin of it must find the claim until then.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@repository_options
def cleanup(*, days: int, dry_run: bool, api: GitHubApi) -> None:
    """Remove the refs of claims and authorisations that no run can use any more."""
    from runner_e2e.dispatch.cleanup import old_refs, remove

    refs = old_refs(api, days=days)
    for ref in refs:
        if not dry_run:
            remove(api, ref)
        click.echo(f"{'would remove' if dry_run else 'removed'} {ref}")
    click.echo(f"{len(refs)} refs are older than {days} days")
