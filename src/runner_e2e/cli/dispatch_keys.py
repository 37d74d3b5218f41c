"""``runner-e2e dispatch keygen`` and ``seal``: the campaign key, and inputs of a dispatch that name no cell."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.github_options import repository_option
from runner_e2e.cli.selection_options import campaign_key, catalog_option, key_option, selection_options
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.cells.selectors import Selection

__all__ = ["keygen", "seal"]


@click.command(short_help="Make a campaign key.")
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


@click.command(short_help="Seal a selection for the inputs of a dispatch.")
@selection_options
@click.option(
    "--target", default="", metavar="BRANCH", help="The branch that is paid for. Default: the default branch."
)
@repository_option
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
