"""``runner-e2e doctor``: is a repository ready to pay for cells?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.github_options import repository_options

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["SCHEMA", "doctor"]

SCHEMA = "runner-e2e.doctor/v1"


@click.command()
@click.option(
    "--workflow",
    "workflows",
    multiple=True,
    metavar="FILE",
    help="A paid workflow; repeatable. Default: paid-campaign.yml and paid-cell.yml, of which one must be there.",
)
@click.option(
    "--environment", default="paid-evals", show_default=True, metavar="NAME", help="The environment with its secrets."
)
@click.option(
    "--allowlist-variable",
    default="RUNNER_E2E_ALLOWLIST",
    show_default=True,
    metavar="NAME",
    help="The variable of the repository that holds the allowlist.",
)
@click.option(
    "--catalog",
    "catalog_path",
    type=click.Path(path_type=Path),
    default=None,
    metavar="PATH",
    help="The catalog whose credentials must be secrets. Default: .github/runner-e2e.yml, where it exists.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@repository_options
def doctor(
    *,
    api: GitHubApi,
    workflows: tuple[str, ...],
    environment: str,
    allowlist_variable: str,
    catalog_path: Path | None,
    as_json: bool,
) -> int:
    """Check that a repository is ready to pay for cells, and say what to do where it is not.

    It looks at the settings of Actions, the default branch, the environment and its secrets (by name), the allowlist
    and the workflow, and changes nothing. Some of it only an administrator's token can see.

    Exit code: 0 ready, 1 something is missing, 3 the repository cannot be read.
    """
    from runner_e2e.dispatch.doctor import Expected, examine

    secrets = _credentials(catalog_path)
    checks = examine(
        api,
        Expected(workflows=workflows, environment=environment, allowlist=allowlist_variable, secrets=secrets),
    )
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        marks = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}
        for check in checks:
            mark, colour = marks[check.state]
            click.echo(f"{click.style(mark, fg=colour)} {check.name}: {check.what}")
            if check.fix:
                click.echo(f"    fix: {check.fix}")
        failed = sum(check.state == "failed" for check in checks)
        click.echo(f"{failed} of {len(checks)} checks failed" if failed else "nothing is missing that can be seen")
    return int(any(check.state == "failed" for check in checks))


def _credentials(path: Path | None) -> tuple[str, ...]:
    from runner_e2e.cells.catalog import read_catalog
    from runner_e2e.cells.model import DEFAULT_CATALOG_PATH

    if path is None and not Path(DEFAULT_CATALOG_PATH).is_file():
        return ()
    return tuple(read_catalog(path or Path(DEFAULT_CATALOG_PATH)).credentials)
