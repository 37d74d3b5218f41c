"""Programs of actions: entry points of JavaScript and docker actions, and scripts that an input holds.

Each becomes a small script of a shell that starts it, so that everything the analysis knows of processes holds for
them too: shebangs, programs of other languages, files of the repository.
"""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.shell import ShellOptions, analyse
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import Confidence, Origin, Script, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.dockerfile import Image
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.shell.results import ShellResult
    from runner_e2e.lint.steps import StepRunner
    from runner_e2e.lint.values import Taint

__all__ = ["input_variables", "report_unfollowed", "run_in_image", "run_program"]


def input_variables(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """The variables by which the runner gives *inputs* to a JavaScript or docker action."""
    return {f"INPUT_{name.replace(' ', '_').upper()}": value for name, value in inputs.items()}


def run_program(
    runner: StepRunner,
    script: Script,
    *,
    language: str,
    environment: Mapping[str, Value],
    name: str = "",
) -> ShellResult | None:
    """What *script* does, a program in *language* (``bash``, ``javascript`` …) at the path *name* of the machine.

    None when no label is in its reach.
    """
    run = runner.run
    given = {**run.process_environment, **environment}
    if not run.in_reach(script, environment, runner.state.files, ()):
        return None
    shell = language in {"bash", "sh"}
    options = replace(_options(run), shell="sh" if language == "sh" else "bash", language="" if shell else language)
    if name:
        options = replace(options, script_name=name)
    files, checkouts = runner.state.files, runner.state.checkouts
    return run.repetitions.analyse(script, environment=given, files=files, checkouts=checkouts, options=options)


def run_in_image(  # noqa: PLR0913 - the image, what it gets, and what for
    runner: StepRunner,
    image: Image,
    *,
    context: str,
    arguments: tuple[Value, ...],
    origin: Origin,
    environment: Mapping[str, Value],
) -> ShellResult | None:
    """What the entry point of *image* does, built from the folder *context* of the repository.

    None when there is no entry point, or no label is in its reach. The *arguments* are those after its own, which the
    caller has reported: they are on the command line of ``docker run`` already.
    """
    run, files = runner.run, runner.state.files
    given = {**run.process_environment, **environment}
    script = _starter(f'{shlex.join(image.entry)} "$@"', origin)
    if not image.entry or not run.in_reach(script, environment, files, arguments):
        return None
    outside = run.repository.seen_from(files, WORKSPACE, runner.state.checkouts)

    def source(path: str) -> str | None:
        """The file of the repository that stands at *path* of the image, or of its own folder."""
        paths = (path, path.removeprefix(f"{WORKSPACE}/"))
        candidates = (
            posixpath.normpath(posixpath.join(context, each)) for one in paths for each in image.sources_of(one)
        )
        return next((each for each in candidates if run.repository.locate(each) is not None), None)

    def script_at(path: str) -> Script | None:
        found = source(path)
        if found is not None:
            return run.repository.script(found)
        return outside.find_script(path) if outside.find_script is not None else None

    def text_at(path: str) -> str | None:
        found = source(path)
        if found is not None:
            return run.repository.text(found)
        return outside.find_text(path) if outside.find_text is not None else None

    inside = replace(outside, find_script=script_at, find_text=text_at)
    result = analyse(script, environment=given, positional=arguments, files=inside, options=_options(run))
    return replace(result, leaks=tuple(leak for leak in result.leaks if leak.origin is not script.origin))


def report_unfollowed(run: Run, origin: Origin, taints: frozenset[Taint], reason: str) -> None:
    """Says that a program which is given confidential values could not be followed: they may be seen, or not.

    Secrets are not told of: that actions are given tokens is their normal life.
    """
    found = Value.of(taint for taint in taints if taint.label.kind == "confidential").weakened(Confidence.LOW).taints
    if found:
        run.report(
            Sighting(
                surface=Surface.UNANALYSABLE,
                origin=origin,
                start=0,
                end=len(origin.text),
                taints=found,
                subject=reason,
            )
        )


def _starter(text: str, origin: Origin) -> Script:
    """A script that stands, as a whole, where *origin* does."""
    size = max(len(text), 1)

    def locate(offset: int) -> tuple[int, int]:
        return origin.position(min(offset * len(origin.text) // size, len(origin.text)))

    return Script(origin=Origin(path=origin.path, text=text, locate=locate), text=text)


def _options(run: Run) -> ShellOptions:
    return ShellOptions(errexit=False, deadline=run.deadline, directory=WORKSPACE, trace=run.trace is not None)
