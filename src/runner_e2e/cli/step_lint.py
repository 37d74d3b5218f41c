"""What the action's ``command: lint`` does: annotations, a summary, a SARIF file and outputs for one lint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.cli.lint_known import Known
from runner_e2e.cli.lint_remote import Target
from runner_e2e.cli.lint_run import FAIL_ON, exit_code, no_collection, processors, with_fixes
from runner_e2e.errors import ConfigurationError, UsageError
from runner_e2e.lint.actionlint import Actionlint
from runner_e2e.lint.linter import lint
from runner_e2e.lint.render import View, render
from runner_e2e.lint.selection import PROFILES, Selection

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Profile
    from runner_e2e.lint.report import Report

__all__ = ["lint_workflows"]

SARIF_FILE = "lint.sarif"


def lint_workflows() -> int:
    """Lints what the inputs name, from the workspace; works without a catalog.

    Raises what the linter raises, and :class:`~runner_e2e.errors.ConfigurationError` where there is nothing to lint:
    a step that looks at nothing must not be green.
    """
    current = Path.cwd()
    fail_on = _choice("fail-on", FAIL_ON, default="medium")
    shellcheck = _choice("shellcheck", ("true", "false"), default="false") == "true"
    sarif = _sarif_file()
    report = _report(current, shellcheck=shellcheck)
    if not report.files:
        raise ConfigurationError(
            "there is nothing to lint",
            why=f"no workflow and no action was found in {current}",
            fix="put actions/checkout before this step, or name files in the input `paths`",
        )
    view = View(folder=current, colour=True, blob=gha.blob_address())
    _write(sarif, render(report, "sarif", view))
    _tell(report, view)
    gha.write_outputs({"findings": str(len(report.findings)), "sarif-file": str(sarif)})
    return exit_code(report, fail_on)


def _report(current: Path, *, shellcheck: bool) -> Report:
    baseline = gha.read_input("baseline")
    known = Known(baseline=Path(baseline) if baseline else None, written=None, since=None)
    target = Target(paths=tuple(Path(name) for name in gha.read_list_input("paths")), current=current)
    selection = Selection(profile=_profile())
    with no_collection():
        report = lint(
            target.paths,
            current=current,
            processes=processors(),
            selection=selection,
            foreign=Actionlint.chosen(None, current=current, shellcheck=shellcheck),
        )
    return with_fixes(known.without_known(report, target, selection))


def _tell(report: Report, view: View) -> None:
    """The whole report in the log, foldable and without effect; then annotations and the summary."""
    stop, resume = gha.commands_stopped()
    print(gha.group("The whole report"))
    print(stop)
    print(render(report, "text", view), end="")
    print(resume)
    print(gha.end_group())
    print(render(report, "github", view), end="")
    gha.append_summary(render(report, "markdown", view))


def _sarif_file() -> Path:
    named = gha.read_input("sarif-file")
    return Path(named) if named else gha.temporary_directory() / "runner-e2e" / SARIF_FILE


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigurationError(
            f"the SARIF file {path} cannot be written",
            why=error.strerror or str(error),
            fix="name another one in the input `sarif-file`, or leave that out",
        ) from error


def _profile() -> Profile | None:
    given = gha.read_input("lint-profile")
    found = next((profile for profile in PROFILES if profile == given), None)
    if given and found is None:
        raise UsageError(f"the input `lint-profile` is {given!r}", fix=f"give one of {', '.join(PROFILES)}")
    return found


def _choice(name: str, values: tuple[str, ...], *, default: str) -> str:
    given = gha.read_input(name, default=default)
    if given not in values:
        raise UsageError(f"the input `{name}` is {given!r}", fix=f"give one of {', '.join(values)}")
    return given
