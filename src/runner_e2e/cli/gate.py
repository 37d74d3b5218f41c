"""``runner-e2e gate``: may this run pay?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from runner_e2e import gha
from runner_e2e.cli.github_options import repository_options
from runner_e2e.cli.ranges import Whole

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["gate"]


@click.command()
@click.option(
    "--allowlist",
    required=True,
    metavar="JSON",
    envvar="RUNNER_E2E_ALLOWLIST",
    show_envvar=True,
    help="A JSON list of the numeric ids of the accounts that may pay.",
)
@click.option("--target", default="", metavar="BRANCH", help="The branch that is paid for; its commit is shown.")
@click.option("--run", "number", type=Whole(min=1), metavar="ID", help="Another run than the one this is a job of.")
@click.option("--attempt", type=Whole(min=1), metavar="N", default=1, show_default=True, help="Its attempt.")
@repository_options
def gate(*, api: GitHubApi, allowlist: str, target: str, number: int | None, attempt: int) -> None:
    """Decide whether a run may pay: its trigger, the branch of its definition, and who started it.

    In a job it decides about that job's run, as the action's `command: gate` does. With --run it tells why another
    run was refused, or would be.

    Exit code: 0 it may, 3 it may not, or GitHub does not say.
    """
    from runner_e2e.dispatch.admission import Application, admit, describe
    from runner_e2e.dispatch.records import read_run

    contexts = gha.run_contexts()
    if number is not None:
        run = read_run(api, number, attempt)
        # GitHub's record does not tell a branch from a tag of the same name; a job knows.
        contexts = replace(
            gha.RunContexts(), run_id=str(number), run_attempt=str(attempt), ref=f"refs/heads/{run.head_branch}"
        )
    admission = admit(api, contexts, Application(allowlist=allowlist, branch=target))
    for line in describe(admission):
        click.echo(line)
