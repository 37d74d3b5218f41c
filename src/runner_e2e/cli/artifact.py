"""``runner-e2e artifact``: launch executables whose content is known, and explain how one would run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from runner_e2e.artifacts.arguments import OPTIONS
from runner_e2e.cli.ranges import Whole

if TYPE_CHECKING:
    from runner_e2e.artifacts.explanation import Explanation
    from runner_e2e.artifacts.parent_check import Form

__all__ = ["CHECK_SCHEMA", "artifact"]

CHECK_SCHEMA: Final = "runner-e2e.artifact-check/v1"
HELP_NAMES = ["-h", "--help"]


@click.group(context_settings={"help_option_names": HELP_NAMES})
def artifact() -> None:
    """Launch executables whose content is known: from a sealed snapshot, or in place from a trusted image."""


class ArtifactExec(click.Command):
    """Leaves the words to the one reader that knows which unknown options may be ignored."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Answers ``--help``; hands everything else on as it stands."""
        own = args[: args.index("--")] if "--" in args else args
        if set(own) & set(HELP_NAMES):
            return super().parse_args(ctx, ["--help"])
        ctx.params = {"words": tuple(args)}
        return []

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of the table, for the help."""
        shown: list[click.Parameter] = [
            click.Option([option.name], metavar=option.value or None, is_flag=not option.value, help=option.help)
            for option in OPTIONS
        ]
        return [*shown, *super().get_params(ctx)]


@artifact.command(
    "exec",
    cls=ArtifactExec,
    context_settings={"help_option_names": HELP_NAMES},
    options_metavar="[OPTIONS]",
    add_help_option=True,
    short_help="Become the program at PATH, if its content is known.",
)
@click.argument("words", metavar="PATH [-- ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def execute(words: tuple[str, ...]) -> int:
    """Become the executable or script at PATH, if its content has the expected digest.

    It runs from a sealed copy in memory, or in place where it lies on the trusted launch root. Options that this
    version does not know are ignored with a warning. 125: refused; 126: PATH cannot be executed; 127: there is no
    PATH; otherwise the status is its own.
    """
    from runner_e2e.artifacts.command import execute as become
    from runner_e2e.artifacts.command import failure_status
    from runner_e2e.errors import RunnerE2EError

    try:
        become(words, log=lambda line: click.echo(line, err=True))
    except RunnerE2EError as error:
        click.echo(f"runner-e2e: {error}", err=True)
        return failure_status(error.exit_code)


@artifact.command("check", context_settings={"help_option_names": HELP_NAMES})
@click.argument("path")
@click.option("--sha256", metavar="DIGEST", help="The expected digest; without it none is compared.")
@click.option("--trusted-launch-root", metavar="DIR", help="A read-only image whose files run in place.")
@click.option("--assigned", is_flag=True, help="As for an executable that the host assigned.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(path: str, sha256: str | None, trusted_launch_root: str | None, assigned: bool, as_json: bool) -> int:
    """Explain step by step how PATH would run, and why. Launches nothing; 1 when it would be refused."""
    from runner_e2e.artifacts.explanation import explain
    from runner_e2e.artifacts.trusted_root import examine_root

    root = examine_root(trusted_launch_root) if trusted_launch_root else None
    found = explain(path, sha256=sha256, root=root, assigned=assigned)
    if as_json:
        steps = [step.values() for step in found.steps]
        launch = found.launch.to_document() if found.launch else None
        document = {"schema": CHECK_SCHEMA, "path": path, "how": found.how, "steps": steps, "launch": launch}
        click.echo(json.dumps(document, indent=2))
    else:
        show(found)
    return 0 if found.runs else 1


def show(found: Explanation) -> None:
    """Prints an explanation for a person."""
    conclusions = {
        "in-place": "It runs in place: nothing is copied, nothing is hashed.",
        "sealed-snapshot": "It runs from a sealed snapshot.",
        "inherited-snapshot": "It runs from the sealed snapshot that was handed on.",
        "refused": "It is refused.",
    }
    for number, step in enumerate(found.steps, 1):
        mark = "yes" if step.passed else "no"
        click.echo(f"{number}. {step.question}: {mark}{f': {step.found}' if step.found else ''}")
    click.echo(conclusions[found.how])


@artifact.command(
    "digest", context_settings={"help_option_names": HELP_NAMES}, short_help="Print digests as `sha256sum` does."
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
def digest(paths: tuple[str, ...]) -> int:
    """Print the SHA-256 of each PATH as `sha256sum` does, for files that can be launched at all."""
    from runner_e2e.artifacts.opening import open_artifact
    from runner_e2e.artifacts.sealed import digest_of
    from runner_e2e.errors import LaunchError, RunnerE2EError

    status = 0
    for path in paths:
        try:
            opened = open_artifact(path)
            try:
                click.echo(f"{digest_of(opened.descriptor)}  {path}")
            except OSError as error:
                why = error.strerror or str(error)
                raise LaunchError(f"{path} cannot be read to its end", why=why, fix="make the file anew") from error
            finally:
                opened.close()
        except RunnerE2EError as error:
            click.echo(f"runner-e2e: {error}", err=True)
            status = 1
    return status


@artifact.command(
    "check-parent",
    context_settings={"help_option_names": HELP_NAMES},
    short_help="Check what the calling process runs.",
)
@click.option("--sha256", metavar="DIGEST", required=True, help="The digest that the parent's executable must have.")
@click.option("--pid", type=Whole(min=1), help="Check this process; by default the one that called us.")
@click.option("--runtime", metavar="PATH", help="A file or /proc/self/fd/N that must be its executable too.")
@click.option("--form", type=click.Choice(["sealed-snapshot", "file"]), help="Refuse the other form.")
def parent(sha256: str, pid: int | None, runtime: str | None, form: Form | None) -> int:
    """Check that the process which called this command runs the expected artifact; 1 when it does not."""
    from runner_e2e.artifacts.parent_check import check_parent

    found = check_parent(sha256=sha256, pid=pid, runtime=runtime, form=form)
    name = {"sealed-snapshot": "a sealed snapshot", "file": "a file"}[found.form]
    click.echo(f"process {found.pid} runs the expected artifact from {name}, sha256 {found.sha256}")
    return 0
