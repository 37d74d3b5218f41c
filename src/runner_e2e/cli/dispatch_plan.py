"""``runner-e2e dispatch plan``: what a campaign would be and cost, before anything is reserved or sent."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e import gha
from runner_e2e.cli.github_options import connect, find_token, repository_option, token_option
from runner_e2e.cli.selection_options import campaign_key, catalog_option, key_option, selection_options
from runner_e2e.errors import ConfigurationError, Place, UsageError

if TYPE_CHECKING:
    from runner_e2e.cells.selectors import Selection
    from runner_e2e.cli.dispatch_plan_report import Surroundings
    from runner_e2e.dispatch.campaign import Campaign

__all__ = ["plan", "required_key"]


@click.command(short_help="Say what a campaign would cost, and write its file.")
@selection_options
@repository_option
@click.option("--workflow", default="paid-campaign.yml", show_default=True, metavar="FILE", help="The paid workflow.")
@click.option(
    "--target", default="", metavar="BRANCH", help="The branch that is paid for. Default: the default branch."
)
@click.option("--max-cost", metavar="USD", help="The most that the campaign may cost, planned retries included.")
@click.option("--assume-cost", metavar="USD", help="The cost of an attempt where the catalog does not say it.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write the campaign there, for `dispatch start`. Without it nothing is written.",
)  # fmt: skip
@click.option("--offline", is_flag=True, help="Ask GitHub nothing: caps and visibility are not looked at.")
@token_option
@catalog_option
@key_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")
def plan(
    *,
    selection: Selection,
    repository: str,
    workflow: str,
    target: str,
    max_cost: str | None,
    assume_cost: str | None,
    output: Path | None,
    offline: bool,
    token_variable: str | None,
    catalog_path: Path,
    key_variable: str,
    as_json: bool,
) -> None:
    """Say which cells a campaign would pay for, in how many runs, at which cost, under which caps, and what of it is
    public. Nothing is sent and nothing reserved.

    With a token (GH_TOKEN) it looks at the caps that all operators share and at the repository; it only reads.
    The file of -o names cells by handles and is signed with the campaign key: once edited, it is refused.

    Status: 0, 2 bad usage or catalog, 3 an unknown cost or a cap that would be passed.
    """
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.selectors import select
    from runner_e2e.cli import dispatch_plan_report as report
    from runner_e2e.dispatch.campaign import campaign_as_json, plan_campaign
    from runner_e2e.dispatch.money import micros

    key = required_key(key_variable)
    catalog = read_catalog(catalog_path)
    cells = select(catalog, selection)
    campaign = plan_campaign(
        catalog,
        cells,
        key=key,
        repository=repository,
        workflow=workflow,
        target=target,
        max_cost=None if max_cost is None else micros(max_cost),
        assume_cost=None if assume_cost is None else micros(assume_cost),
        now=datetime.now(UTC),
    )
    around = _surroundings(campaign, token_variable, offline=offline)
    made = report.Plan(campaign=campaign, catalog=catalog, cells=cells, around=around, file=output)
    if not as_json:
        report.print_plan(made, public_log=gha.in_actions())
    report.check_caps(made)
    if output is not None:
        _write(output, campaign_as_json(campaign, key))
    if as_json:
        click.echo(json.dumps(report.plan_data(made), separators=(",", ":")))
    else:
        click.echo(f"\n{report.next_step(made)}")


def required_key(variable: str) -> bytes:
    """The campaign key. Raises :class:`~runner_e2e.errors.UsageError` where there is none."""
    key = campaign_key(variable)
    if key is None:
        raise UsageError(
            f"{variable} is not set", fix="set it to the campaign key (a new one: `runner-e2e dispatch keygen`)"
        )
    return key


def _surroundings(campaign: Campaign, token_variable: str | None, *, offline: bool) -> Surroundings:
    """What GitHub says, as far as it can be asked: a plan is of use without it, and `start` asks again."""
    from runner_e2e.cli.dispatch_plan_report import Surroundings

    if offline or not find_token(token_variable):
        return Surroundings(unseen="--offline" if offline else "there is no token: set GH_TOKEN to see them")
    from runner_e2e.dispatch.shared_ledger import SharedLedger
    from runner_e2e.errors import GitHubError

    api = connect(campaign.repository, token_variable)
    try:
        rooms = SharedLedger(api).rooms(campaign.id)
        found = api.get("").data
    except GitHubError as error:
        return Surroundings(unseen=error.problem.what)
    private = found.get("private") if isinstance(found, dict) else None
    return Surroundings(rooms=rooms, private=private if isinstance(private, bool) else None)


def _write(path: Path, text: str) -> None:
    """Writes the file as a whole or not at all, and over nothing but an earlier campaign."""
    try:
        if path.exists():
            _check_replaceable(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(
            "the campaign file cannot be written", why=error.strerror or "", fix="give another -o FILE",
            place=Place(path=str(path)),
        ) from error  # fmt: skip


def _check_replaceable(path: Path) -> None:
    if not path.is_file():
        raise UsageError(f"{path} is no file", fix="give another -o FILE")
    with path.open("rb") as stream:
        start = stream.read(200)
    if b'"runner-e2e.campaign-plan/' not in start:
        raise UsageError(f"{path} exists and is no campaign file", fix="give another -o FILE, or remove it")
