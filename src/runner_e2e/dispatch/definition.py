"""The definition of a paid workflow on the default branch: is it there, and does it do what paying needs?

One reading for everybody who asks: ``doctor``, for a person who sets a repository up, and the preflight of a client
before it sends anything.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from runner_e2e.dispatch.github_api import GitHubApi
    from runner_e2e.lint.workflow import Block, Step, Workflow

__all__ = [
    "CAMPAIGN_INPUTS",
    "CAMPAIGN_WORKFLOW",
    "CELL_WORKFLOW",
    "MOST_INPUTS",
    "READY_WORKFLOWS",
    "Definition",
    "cell_problems",
    "dispatch_problems",
    "find_definition",
    "may_claim",
]

CAMPAIGN_INPUTS: Final = ("nonce", "selection", "target")
"""What `runner-e2e dispatch` gives to a workflow; the target only where a branch was named."""

MOST_INPUTS: Final = 25

CAMPAIGN_WORKFLOW, CELL_WORKFLOW = READY_WORKFLOWS = ("paid-campaign.yml", "paid-cell.yml")
"""The files of the ready workflows."""

_CAMPAIGN, _CELL = (f"workflows-templates/{name}" for name in READY_WORKFLOWS)
_CELL_NAME: Final = "Paid cell ${{ !contains(inputs.nonce, '.') && inputs.nonce || github.run_id }}"
_ANY_SECRET: Final = re.compile(r"\bsecrets\s*(?:\[|\)|:\s*inherit)", re.IGNORECASE)
_SECRET: Final = re.compile(r"\bsecrets\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A workflow as it is on *branch*: its *path*, and its *state* (``active``, or how it was disabled).

    *workflow* is None where the text is no workflow; *invalid* says why then.
    """

    path: str
    branch: str
    state: str
    text: str = ""
    workflow: Workflow | None = None
    invalid: str = ""

    @property
    def takes_campaigns(self) -> bool:
        """Whether it is there for what `runner-e2e dispatch` sends, and not for single cells that a person names."""
        if self.workflow is None:
            return True
        named = any(each.name == "selection" for each in self.workflow.inputs("workflow_dispatch"))
        return named or not _runs_named_cell(self.workflow)

    @property
    def may_take_any_secret(self) -> bool:
        """Whether its text alone does not tell which secrets its steps get."""
        return self.workflow is None or _any_secret(self.workflow, self.text)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secrets that its text mentions, in capital letters, as GitHub keeps them."""
        return frozenset(name.upper() for name in _SECRET.findall(self.text))


def find_definition(api: GitHubApi, name: str, branch: str) -> Definition | None:
    """The workflow in the file *name* on *branch*, the default branch; None where GitHub has none of that name.

    Raises :class:`~runner_e2e.errors.GitHubError` where it does not say.
    """
    from runner_e2e.lint.workflow import Workflow
    from runner_e2e.yaml_positions import compose

    found = api.get(f"actions/workflows/{segment(name)}", accept={404})
    if found.status == 404:
        return None
    path, state = value_of(found.data, str, "path"), value_of(found.data, str, "state")
    encoded = value_of(api.get(f"contents/{segment(path)}", {"ref": branch}).data, str, "content")
    try:
        text = base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return Definition(path=path, branch=branch, state=state, invalid=f"{path} is not UTF-8")
    try:
        workflow = Workflow(compose(text, path=path))
    except ConfigurationError as error:
        return Definition(path=path, branch=branch, state=state, text=text, invalid=error.problem.what)
    return Definition(path=path, branch=branch, state=state, text=text, workflow=workflow)


def dispatch_problems(
    found: Definition | None, *, name: str, repository: str, branch: str, inputs: Sequence[str]
) -> Iterator[Problem]:
    """Why a dispatch with *inputs* to the workflow *name* would be refused, or its run could pay twice or be lost."""
    workflow = yield from _usable(found, name=name, repository=repository, branch=branch, template=_CAMPAIGN)
    if found is None or workflow is None:
        return
    take = f"take it from {_CAMPAIGN}"
    if "workflow_dispatch" not in workflow.triggers:
        yield Problem(
            what=f"{found.path} has no trigger `workflow_dispatch`", why="nothing can be sent to it", fix=take
        )
        return
    declared = {each.name: each for each in workflow.inputs("workflow_dispatch")}
    missing = [each for each in inputs if each not in declared]
    if missing:
        yield Problem(
            what=f"{found.path} on {branch} does not have the input {', '.join(missing)}",
            why="GitHub refuses a dispatch with an input that the workflow does not declare",
            fix=take,
        )
    if len(declared) > MOST_INPUTS:
        what = f"{found.path} has {len(declared)} inputs"
        yield Problem(what=what, why=f"GitHub takes {MOST_INPUTS}", fix="remove some")
    for each, settings in declared.items():
        if each not in inputs and settings.text("required") == "true" and not settings.text("default"):
            yield Problem(
                what=f"{found.path} requires the input {each[:60]!r}",
                why="a campaign gives nonce, selection and target alone",
                fix="give it a default",
            )
    yield from _without_claim(found, workflow, _CAMPAIGN)
    if "inputs.nonce" not in workflow.text("run-name"):
        yield Problem(
            what=f"the run-name of {found.path} does not end with the nonce",
            why="a run whose dispatch got no reply could not be found again",
            fix="run-name: Paid campaign ${{ inputs.nonce || github.run_id }}",
        )


def cell_problems(found: Definition | None, *, name: str, repository: str, branch: str) -> Iterator[Problem]:
    """Why runs of the workflow *name*, which pays for one cell that a person names, would not pay once."""
    workflow = yield from _usable(found, name=name, repository=repository, branch=branch, template=_CELL)
    if found is None or workflow is None:
        return
    if "workflow_dispatch" not in workflow.triggers:
        yield Problem(
            what=f"{found.path} has no trigger `workflow_dispatch`",
            why="nobody can start it",
            fix=f"take it from {_CELL}",
        )
    yield from _without_claim(found, workflow, _CELL)
    name_of_run = workflow.text("run-name")
    if "github.run_id" not in name_of_run:
        yield Problem(
            what=f"the run-name of {found.path} does not end with the id of the run",
            why="`runner-e2e dispatch authorise-rerun` finds the claim of a run by its name",
            fix=f"run-name: {_CELL_NAME}",
        )
    elif (
        any(each.name == "nonce" for each in workflow.inputs("workflow_dispatch")) and "inputs.nonce" not in name_of_run
    ):
        yield Problem(
            what=f"the run-name of {found.path} does not end with the nonce, where it is given",
            why="`runner-e2e dispatch authorise-rerun` finds the claim of a run by its name",
            fix=f"run-name: {_CELL_NAME}",
        )


def may_claim(workflow: Workflow) -> bool:
    """Whether a step takes the claim, as far as this file tells: what it calls in other files may."""
    return (
        any(job.uses is not None for job in workflow.jobs)
        or any(step.uses is not None and step.uses.value.startswith("./") for step in _steps(workflow))
        or any(arguments.text("command") == "claim" for arguments in _arguments(workflow))
    )


def _any_secret(workflow: Workflow, text: str) -> bool:
    """Whether another workflow is called, or a secret is not taken by a name that is written out."""
    return any(job.uses is not None for job in workflow.jobs) or _ANY_SECRET.search(text) is not None


def _runs_named_cell(workflow: Workflow) -> bool:
    """Whether a step runs the cell whose id it is given, and none that a matrix names by its handle."""
    runs = [arguments for arguments in _arguments(workflow) if arguments.text("command") == "run"]
    return any(not arguments.text("handle") for arguments in runs)


def _steps(workflow: Workflow) -> list[Step]:
    return [step for job in workflow.jobs for step in job.steps]


def _arguments(workflow: Workflow) -> list[Block]:
    from runner_e2e.lint.workflow import Block

    return [Block(step.arguments) for step in _steps(workflow)]


def _without_claim(found: Definition, workflow: Workflow, template: str) -> Iterator[Problem]:
    if not may_claim(workflow):
        yield Problem(
            what=f"{found.path} on {found.branch} has no step with `command: claim`",
            why="what arrives twice, or is started again, would be paid for as often",
            fix=f"take the job `claim` from {template}, and let the paid jobs need it",
        )


def _usable(
    found: Definition | None, *, name: str, repository: str, branch: str, template: str
) -> Generator[Problem, None, Workflow | None]:
    """What is wrong with any paid workflow; returns its content where it has some."""
    if found is None:
        yield Problem(
            what=f"{repository} has no workflow {name}",
            why=f"it is not on {branch}, or the token does not have the permission actions: write",
            fix=f"copy {template} to .github/workflows and push it",
        )
        return None
    if found.state != "active":
        yield Problem(
            what=f"the workflow {name} is disabled (`{found.state}`)",
            why="GitHub disables schedules of quiet repositories after 60 days, or a person did",
            fix=f"gh workflow enable {name} --repo {repository}",
        )
    if found.workflow is None:
        yield Problem(what=f"{found.path} is no valid workflow", why=found.invalid, fix=f"runner-e2e lint {found.path}")
    return found.workflow
