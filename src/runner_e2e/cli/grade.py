"""``runner-e2e grade``: turns what an agent did into a verdict with evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner_e2e.cli.ranges import Whole

if TYPE_CHECKING:
    from runner_e2e.graders.planning_read_only import Grade
    from runner_e2e.graders.transcript import Transcript
    from runner_e2e.graders.workspace import Difference

__all__ = ["grade"]


@click.group()
def grade() -> None:
    """Turn what an agent did into a verdict, each with the evidence it rests on."""


@grade.command("manifest", short_help="Write down what stands in a workspace, before the agent starts.")
@click.argument("directory", type=click.Path(path_type=Path))
def manifest(directory: Path) -> None:
    """Write down everything that stands in DIRECTORY, as JSON on standard output.

    Make it before the agent starts, keep it where the agent cannot write, and give it to a grader as `--before`.
    """
    from runner_e2e.graders.workspace import take_manifest

    click.echo(take_manifest(directory).to_json(), nl=False)


@grade.command("planning-read-only", short_help="A planning turn: was a write tried and refused?")
@click.argument("events", type=click.Path(path_type=Path))
@click.option("--workspace", type=click.Path(path_type=Path), metavar="DIR", help="The workspace, as it is now.")
@click.option("--before", type=click.Path(path_type=Path), metavar="MANIFEST", help="The workspace before the run.")
@click.option("--session", type=click.Path(path_type=Path), metavar="FILE", help="The agent's own session file.")
@click.option("--probe", metavar="PATH", help="Count only writes of this file of the workspace as the attempt.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")
def planning_read_only(
    events: Path, *, workspace: Path | None, before: Path | None, session: Path | None, probe: str | None, as_json: bool
) -> int:
    """Grade a planning turn that must not write; EVENTS is what the agent's program printed.

    \b
    passed                   a write was tried, and the file system refused it;
                             nothing was written
    write-succeeded          something was written
    no-write-attempt         nothing was tried, so nothing is proven
    sandbox-failed-to-start  the agent's own sandbox did not start
    incomplete               the events do not tell: cut off, unanswered, or of
                             a form that leaves commands out

    Ends with 0 only for `passed`, with 1 for every other verdict.
    """  # noqa: D301  click wants the backspace itself: it keeps the lines of the paragraph
    import json

    from runner_e2e.errors import UsageError
    from runner_e2e.graders.planning_read_only import grade_planning_read_only
    from runner_e2e.graders.transcript import Transcript

    if (workspace is None) != (before is None):
        raise UsageError(
            "--workspace and --before belong together",
            why="what the agent wrote shows only in comparison with what stood there before",
            fix="run `runner-e2e grade manifest DIR > FILE` before the agent starts, and give both",
        )
    transcript = Transcript(workspace=None if workspace is None else str(workspace.resolve()))
    for path in (events, session):
        if path is not None:
            _read(transcript, path)
    result = grade_planning_read_only(transcript, probe=probe, differences=_differences(workspace, before))
    if as_json:
        click.echo(json.dumps(result.to_document()))
    else:
        _show(result)
    return 0 if result.verdict == "passed" else 1


def _differences(workspace: Path | None, before: Path | None) -> tuple[Difference, ...] | None:
    from runner_e2e.graders.workspace import compare, read_manifest, take_manifest

    if workspace is None or before is None:
        return None
    return compare(read_manifest(before), take_manifest(workspace))


def _read(transcript: Transcript, path: Path) -> None:
    from runner_e2e.errors import UsageError

    try:
        with path.open("rb", buffering=1 << 20) as stream:
            transcript.read(stream, str(path))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read",
            why=error.strerror or str(error),
            fix="give a file of events, one JSON object a line",
        ) from error


def _show(result: Grade) -> None:
    click.echo(f"{result.verdict}: {result.reason}")
    for one in result.evidence:
        if not one.place and one.text == result.reason:
            continue
        click.echo(f"  {one.place}: {one.text}" if one.place else f"  {one.text}")
    if result.plan:
        click.echo(f"  the plan begins: {result.plan}")


@grade.command("expectations", short_help="Hold messages, files and JSON against what a case expects.")
@click.argument("expectations", type=click.Path(path_type=Path))
@click.option("--messages", type=click.Path(path_type=Path), metavar="FILE", help="Messages: one JSON string a line.")
@click.option("--status", type=Whole(), metavar="N", help="The agent's exit status.")
@click.option("--workspace", type=click.Path(path_type=Path), metavar="DIR", help="Where files are looked for.")
@click.option("--artifacts", type=click.Path(path_type=Path), metavar="DIR", help="Where artifacts are looked for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on one line.")
def expectations_command(
    expectations: Path,
    *,
    messages: Path | None,
    status: int | None,
    workspace: Path | None,
    artifacts: Path | None,
    as_json: bool,
) -> int:
    """Hold what a run left behind against EXPECTATIONS, a file of the schema `runner-e2e.expectations/v1`.

    Ends with 0 when all of them hold, with 1 when one does not.
    """
    import json

    from runner_e2e.graders.expectations import read_expectations
    from runner_e2e.graders.matchers import Run, check

    matchers = read_expectations(expectations)
    run = Run(
        messages=_messages(messages) if messages else (),
        status=status,
        workspace=_directory("--workspace", workspace),
        artifacts=_directory("--artifacts", artifacts),
    )
    matches = [check(matcher, run) for matcher in matchers]
    passed = all(match.passed for match in matches)
    if as_json:
        rows = [{"passed": match.passed, "expected": match.expected, "found": match.found} for match in matches]
        click.echo(json.dumps({"schema": "runner-e2e.matches/v1", "passed": passed, "matches": rows}))
    else:
        for match in matches:
            click.echo(f"{'ok' if match.passed else 'FAILED'}: {match.expected}; found: {match.found}")
        click.echo(f"{sum(match.passed for match in matches)} of {len(matches)} expectations hold")
    return 0 if passed else 1


def _directory(option: str, path: Path | None) -> Path | None:
    from runner_e2e.errors import UsageError

    if path is not None and not path.is_dir():
        raise UsageError(f"{option}: {path} is not a directory", fix="give the directory that the agent worked in")
    return path


def _messages(path: Path) -> tuple[str, ...]:
    import json

    from runner_e2e.errors import ConfigurationError, Place, UsageError

    texts: list[str] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read", why=error.strerror or str(error), fix="name a readable file"
        ) from error
    for number, line in enumerate(lines, 1):
        try:
            text = json.loads(line)
        except (ValueError, RecursionError):
            text = None
        if not isinstance(text, str):
            place = Place(path=str(path), line=number)
            raise ConfigurationError("a message is not a JSON string", fix="write one JSON string a line", place=place)
        texts.append(text)
    return tuple(texts)
