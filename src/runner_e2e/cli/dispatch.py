"""``runner-e2e dispatch``: keys of campaigns, authorisations of reruns, and the claims that are left behind."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from runner_e2e import gha
from runner_e2e.cli.github_options import repository_options
from runner_e2e.cli.selection_options import campaign_key, catalog_option, key_option, selection_options
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.cells.selectors import Selection
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["dispatch"]

# A run ends within 35 days, waiting for approvals included, and its twin must find the claim taken until then
# (https://docs.github.com/en/actions/reference/limits); it can be started again for 30.
_DAYS = 40


@click.group()
def dispatch() -> None:
    """Pay for cells on GitHub Actions, each once."""


@dispatch.command(short_help="Make a campaign key.")
def keygen() -> None:
    """Make a campaign key: 32 random bytes in hexadecimal digits, for the secret RUNNER_E2E_CAMPAIGN_KEY.

    The key names cells by handles and seals selections. Whoever has it can tell the cells of a public run. To change
    it, keep the old one as RUNNER_E2E_CAMPAIGN_KEY_PREVIOUS until the runs that were started with it have ended.

    Store it without showing it: `runner-e2e dispatch keygen | gh secret set RUNNER_E2E_CAMPAIGN_KEY --env paid-evals`.
    """
    from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, random_key
    from runner_e2e.cells.sealed import key_id

    key = random_key()
    click.echo(key.hex())
    if sys.stdout.isatty():
        click.echo(f"store it as the secret {DEFAULT_KEY_VARIABLE}; its public name is {key_id(key)}", err=True)


@dispatch.command(short_help="Seal a selection for the inputs of a dispatch.")
@selection_options
@click.option(
    "--target", default="", metavar="BRANCH", help="The branch that is paid for. Default: the default branch."
)
@click.option("--repo", "repository", default="", metavar="OWNER/NAME", help="The repository. In a job it is known.")
@catalog_option
@key_option
def seal(*, selection: Selection, target: str, repository: str, catalog_path: Path, key_variable: str) -> None:
    """Seal the selected cells: one line of JSON for each run of at most 256 cells, with the inputs of its dispatch.

    The inputs of a dispatch are public. What is printed names no cell, is bound to the repository and to a fresh
    nonce, and is valid for a day. Nothing is sent: give each line to `gh workflow run paid-campaign.yml --json`, once.
    A second run with the same line is refused before it pays.
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.sealed import seal_runs
    from runner_e2e.cells.selectors import select

    repository = repository or gha.run_contexts().repository
    if not repository:
        raise UsageError("there is no repository", fix="give it as --repo OWNER/NAME")
    key = campaign_key(key_variable)
    if key is None:
        raise UsageError(
            f"{key_variable} is not set", fix="set it to the campaign key (a new one: `runner-e2e dispatch keygen`)"
        )
    cells = select(read_catalog(catalog_path), selection)
    for run in seal_runs([cell.id for cell in cells], key=key, repository=repository, now=datetime.now(UTC)):
        click.echo(
            json.dumps({"nonce": run.nonce, "selection": run.selection, **({"target": target} if target else {})})
        )


@dispatch.command("authorise-rerun")
@click.argument("run", type=click.IntRange(min=1))
@repository_options
def authorise_rerun(*, run: int, api: GitHubApi) -> None:
    """Let the next attempt of RUN pay once more.

    A rerun is new spending, so without this its claim is refused and it ends before anything is paid. Start it then
    with all its jobs (`gh run rerun RUN`): a partial rerun keeps the claim of the earlier attempt.
    """
    from runner_e2e.dispatch.claim import authorise, nonce_of
    from runner_e2e.dispatch.records import read_last_attempt

    record = read_last_attempt(api, run)
    claim = authorise(api, record, nonce_of(record))
    click.echo(f"attempt {claim.attempt} of run {run} may pay once; start it with `gh run rerun {run}`")


@dispatch.command(short_help="Remove claims that no run can use any more.")
@click.option(
    "--older-than",
    "days",
    type=click.IntRange(min=_DAYS),
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
