"""``runner-e2e audit``: run a command, or a workflow, and prove where a confidential value went."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from runner_e2e.cli.ranges import Number
from runner_e2e.errors import LaunchError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.sandbox.exec_audit import Audit, Canary, Options

__all__ = ["audit"]

SELF = "runner_e2e.cli.audit"


class AuditGroup(click.Group):
    """Takes either ``-- COMMAND …`` or a subcommand."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """A wrong call ends with 125, since 2 could be the status of the command."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise LaunchError(error.format_message(), fix="runner-e2e audit --help") from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Splits at the ``--`` that ends our own options."""
        if not args:
            raise click.exceptions.NoArgsIsHelpError(ctx)
        given = list(args)
        rest = click.Command.parse_args(self, ctx, args)
        own = given[: len(given) - len(rest)]
        if own and own[-1] == "--":
            ctx.meta[SELF] = rest
            return super().parse_args(ctx, own[:-1])
        if not rest:
            raise LaunchError(
                "there is no command to audit", fix="put it after `--`: runner-e2e audit [OPTIONS] -- COMMAND [ARGS]..."
            )
        if rest[0] not in self.commands:
            raise LaunchError(
                f"{rest[0]!r} is no subcommand of audit",
                fix=f"put `--` before a command to audit: runner-e2e audit [OPTIONS] -- {rest[0]} ...",
            )
        return super().parse_args(ctx, given)


@click.group(
    cls=AuditGroup,
    invoke_without_command=True,
    subcommand_metavar="-- COMMAND [ARGS]...  |  workflow FILE",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--selected-id-env", metavar="NAME", help="Look for the selected cell's id, which this variable holds.")
@click.option("--canary-env", metavar="NAME", help="Look for the value of this variable (a key, a token).")
@click.option("--canary", metavar="TEXT", help="Look for TEXT. For trials: it stands on our own command line.")
@click.option("--public", metavar="TEXT", multiple=True, help="A piece of the value inside TEXT is no leak.")
@click.option(
    "--allow-environ",
    metavar="PROGRAM",
    multiple=True,
    help="Only COMMAND and this program (path or name) may hold the value in their environment.",
)
@click.option("--report", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text, on standard error too.")
@click.option("--fail-on-leak", is_flag=True, help="End with 1 on a leak, with 125 when not everything was seen.")
@click.option(
    "--linger",
    type=Number(min=0, max=86_400),
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    help="Watch what outlives the command.",
)
@click.option("--no-seccomp", is_flag=True, help="Slower; as root, set-user-id programs keep their privileges.")
@click.pass_context
def audit(  # noqa: PLR0917 - one parameter an option
    ctx: click.Context,
    selected_id_env: str | None,
    canary_env: str | None,
    canary: str | None,
    public: tuple[str, ...],
    allow_environ: tuple[str, ...],
    report: Path | None,
    as_json: bool,
    fail_on_leak: bool,
    linger: float,
    no_seccomp: bool,
) -> int | None:
    """Run COMMAND and read from the kernel every program that it starts: path, arguments, environment.

    Says whether an argument carried the value or a piece of it (8 characters, any case), and which environments held
    it. The report goes to standard error; the status is the command's own.
    """
    if ctx.invoked_subcommand:
        return None
    from runner_e2e.sandbox.exec_audit import Options

    if sum(source is not None for source in (selected_id_env, canary_env, canary)) > 1:
        raise LaunchError("--selected-id-env, --canary-env and --canary exclude each other", fix="name one value")
    if not any((selected_id_env, canary_env, canary)) and (fail_on_leak or allow_environ):
        raise LaunchError("there is no value to look for", fix="add --selected-id-env NAME")
    options = Options(
        linger=linger,
        seccomp=not no_seccomp,
        allow_environ=frozenset(allow_environ) if allow_environ else None,
        public=public,
    )
    # The command gets the environment as it is now: reading the id erases it from ours.
    environ = dict(os.environb)
    try:
        canaries = find_canary(selected_id_env, canary_env, canary)
        return run(ctx.meta[SELF], canaries, options, environ, report, as_json=as_json, fail_on_leak=fail_on_leak)
    except (UsageError, RefusedError) as error:
        problem = error.problem
        raise LaunchError(problem.what, why=problem.why, fix=problem.fix) from error


def find_canary(selected_id_env: str | None, canary_env: str | None, canary: str | None) -> tuple[Canary, ...]:
    """The one value to look for, or nothing."""
    from runner_e2e.sandbox.exec_audit import Canary
    from runner_e2e.selected_id import take

    if selected_id_env is not None:
        return (Canary(name=f"${selected_id_env}", value=take(selected_id_env)),)
    if canary_env is not None:
        value = os.environ.get(canary_env)
        if not value:
            raise LaunchError(f"{canary_env} is not set", fix="set the variable that --canary-env names")
        return (Canary(name=f"${canary_env}", value=value),)
    return (Canary(name="the canary", value=canary),) if canary is not None else ()


def run(
    command: list[str],
    canaries: tuple[Canary, ...],
    options: Options,
    environ: Mapping[bytes, bytes],
    report: Path | None,
    *,
    as_json: bool,
    fail_on_leak: bool,
) -> int:
    """Audits, reports, and returns the status."""
    from runner_e2e.sandbox.audit_report import ExecSpool, render_text, write_json
    from runner_e2e.sandbox.canary import Finder
    from runner_e2e.sandbox.exec_audit import audit as audit_command

    # The report redacts every piece, those that --public allows too.
    with replaced(report) as file, ExecSpool(Finder(canaries, piece_length=options.piece_length)) as spool:
        outcome = audit_command(
            command,
            canaries=canaries,
            options=options,
            environ=environ,
            descriptors=open_descriptors(),
            sink=spool.add if file or as_json else None,
        )
        if file:
            write_json(outcome, spool, file)
        if as_json:
            write_json(outcome, spool, sys.stderr)
        else:
            sys.stderr.write(render_text(outcome))
    return status_of(outcome, fail_on_leak=fail_on_leak)


def status_of(outcome: Audit, *, fail_on_leak: bool) -> int:
    """The command's own status unless a leak, or something unseen, counts as failure."""
    if fail_on_leak and outcome.verdict == "leak":
        return 1
    if fail_on_leak and outcome.verdict == "incomplete" and outcome.status == 0:
        return 125
    return outcome.status


def open_descriptors() -> dict[int, int]:
    """What the command inherits: standard streams and whatever the caller left open for it."""
    found: dict[int, int] = {}
    for entry in os.scandir("/proc/self/fd"):
        number = int(entry.name)
        with contextlib.suppress(OSError):
            if number <= 2 or os.get_inheritable(number):
                os.fstat(number)
                found[number] = number
    return found


@contextlib.contextmanager
def replaced(path: Path | None) -> Iterator[IO[str] | None]:
    """A file that takes the place of *path* when all went well; opened first, since a paid run must not lose it."""
    if path is None:
        yield None
        return
    try:
        file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        )
    except OSError as error:
        raise LaunchError(
            f"the report cannot be written to {path}",
            why=error.strerror or "",
            fix="name a file in a directory of yours",
        ) from error
    try:
        with file:
            yield file
        Path(file.name).replace(path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise


def assignments(values: tuple[str, ...], option: str) -> dict[str, str | None]:
    """``name=value`` or ``name`` alone, each once."""
    found: dict[str, str | None] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not name or name in found:
            what = f"{name} is given twice" if name else "there is no name before the ="
            raise UsageError(f"{option} {each}: {what}", fix=f"give {option} NAME or NAME=VALUE, each name once")
        found[name] = value if equals else None
    return found


@audit.command("workflow", short_help="Run a workflow under act and follow its inputs.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--input", "inputs", metavar="NAME[=TEXT]", multiple=True, help="Follow this input (TEXT or random).")
@click.option(
    "--field", "fields", metavar="PATH[=TEXT]", multiple=True, help="Follow a field of the event: issue.title."
)
@click.option("--event", metavar="FILE", type=click.Path(path_type=Path), help="JSON payload to start from.")
@click.option("--event-name", default="", metavar="NAME", help="Event that triggers the workflow.")
@click.option(
    "--local-repository",
    metavar="OWNER/NAME@REF=DIR",
    multiple=True,
    help="Use DIR for this action. Checkout, the artifact actions and cache have stand-ins.",
)
@click.option("--secret-file", metavar="FILE", type=click.Path(path_type=Path), help="Secrets for the run, NAME=VALUE.")
@click.option("--var-file", metavar="FILE", type=click.Path(path_type=Path), help="Variables for the run, NAME=VALUE.")
@click.option("--job", default="", metavar="ID", help="Run this job (and what it needs) alone.")
@click.option("--public", metavar="TEXT", multiple=True, help="A piece of the value inside TEXT is no leak.")
@click.option(
    "--timeout",
    type=Number(min=1, max=86_400),
    metavar="SECONDS",
    default=600.0,
    show_default=True,
    help="Kill the run after this long.",
)
@click.option("--report", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--fail-on-leak", is_flag=True, help="End with 1 on a leak.")
def audit_workflow_command(  # noqa: PLR0917 - one parameter an option
    file: Path,
    inputs: tuple[str, ...],
    fields: tuple[str, ...],
    event: Path | None,
    event_name: str,
    local_repository: tuple[str, ...],
    secret_file: Path | None,
    var_file: Path | None,
    job: str,
    public: tuple[str, ...],
    timeout: float,
    report: Path | None,
    as_json: bool,
    fail_on_leak: bool,
) -> int:
    """Run the workflow in FILE on this machine, under act, and report where its confidential inputs appeared.

    Runs offline in a copy of the repository. Ends with 0, with 1 when the workflow failed or was not seen in full,
    or when --fail-on-leak is given and the value leaked.
    """
    from runner_e2e.workflow_audit.model import WorkflowOptions
    from runner_e2e.workflow_audit.report import render_json, render_text
    from runner_e2e.workflow_audit.run import audit_workflow

    options = WorkflowOptions(
        inputs=assignments(inputs, "--input"),
        fields=assignments(fields, "--field"),
        event=event,
        event_name=event_name,
        local_repositories=read_local_repositories(local_repository),
        secret_file=existing(secret_file),
        variable_file=existing(var_file),
        job=job,
        timeout=timeout,
        public=public,
    )
    with replaced(report) as sink:
        outcome = audit_workflow(file, options)
        if sink:
            sink.write(render_json(outcome) + "\n")
        click.echo(render_json(outcome) if as_json else render_text(outcome), nl=as_json)
    return 1 if outcome.gaps or (fail_on_leak and outcome.verdict == "leak") else 0


def read_local_repositories(values: tuple[str, ...]) -> dict[str, Path]:
    """``owner/name@ref=DIR`` with a directory that exists."""
    found: dict[str, Path] = {}
    for each in values:
        # A ref may hold no `=`, a path may.
        name, _, directory = each.partition("=")
        if name.count("/") != 1 or "@" not in name or not directory:
            raise UsageError(
                f"--local-repository {each} names no repository and directory", fix="write OWNER/NAME@REF=DIR"
            )
        if not Path(directory).is_dir():
            raise UsageError(
                f"--local-repository {each}: {directory} is no directory", fix="clone the repository, and give its path"
            )
        found[name] = Path(directory)
    return found


def existing(path: Path | None) -> Path | None:
    """The file, which must be there: act passes over a missing one in silence."""
    if path is not None and not path.is_file():
        raise UsageError(f"{path} {'is no file' if path.exists() else 'does not exist'}", fix="check the path")
    return path
