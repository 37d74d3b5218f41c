"""Settings that a paid workflow lacks: entries of steps, jobs and workflows, and options of commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Fix
from runner_e2e.lint.fixes.scripts import script_at
from runner_e2e.lint.fixes.yaml_edits import node_at, put, replace_part
from runner_e2e.lint.workflow import Workflow
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Edit, Finding
    from runner_e2e.lint.fixes.yaml_text import Data
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.workflow import Job

__all__ = [
    "MINUTES",
    "add_group",
    "add_install_option",
    "add_permissions",
    "add_timeout",
    "keep_runs",
    "leave_no_token",
    "lessen_permissions",
]

MINUTES = 60
"""The limit of time that a job gets, for want of knowledge how long it needs."""

_CHECKOUT = re.compile(r"actions/checkout@", re.IGNORECASE)
_OPTION = re.compile(r"add `(?P<option>--[a-z-]+(?:=\S+)?(?: --[a-z-]+)*)`")
_TWO_WORDS = frozenset(("pip", "tool"))
_VERBS = frozenset(
    {
        *("add", "ci", "clean-install", "create-project", "download", "i", "install", "install-ci-test"),
        *("install-test", "rebuild", "require", "run", "sync", "u", "up", "update", "upgrade", "wheel"),
    }
)


def _made(title: str, edit: Edit | None, *, safe: bool) -> Fix | None:
    return Fix(title=title, safe=safe, edits=(edit,)) if edit is not None else None


def leave_no_token(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """``persist-credentials: false`` for a checkout; safe where nothing else in the job speaks to a remote."""
    located = node_at(document, finding.span)
    step, job = (located.step, located.job) if located is not None else (None, None)
    if step is None or step.uses is None or not _CHECKOUT.match(step.uses.value):
        return None
    edit = put(document, step.node, ("with", "persist-credentials"), False, after="uses")
    return _made("let the checkout leave no token behind", edit, safe=job is not None and not _may_use_token(job))


def _may_use_token(job: Job) -> bool:
    """Whether a step may need what a checkout leaves in ``.git/config``: it names git, or is an action of others."""
    for step in job.steps:
        if step.run is not None and re.search(r"\bgit\b|\bgh\b|\./|\.sh\b", step.run.value):
            return True
        if step.uses is not None and not re.match(r"actions/(?!github-script)", step.uses.value):
            return True
    return False


def _job_of(finding: Finding, document: Document) -> Job | None:
    """The job at whose name the finding stands."""
    jobs = Workflow(document.root).jobs
    at = (finding.span.line, finding.span.column)
    return next((job for job in jobs if job.key.source.position(job.key.start) == at), None)


def add_timeout(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """``timeout-minutes`` for a job."""
    job = _job_of(finding, document)
    if job is None or job.uses is not None:
        return None
    edit = put(document, job.node, ("timeout-minutes",), MINUTES, after="runs-on")
    return _made(f"end the job after {MINUTES} minutes", edit, safe=False)


def add_permissions(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """``permissions`` for a job: what a checkout needs and no more."""
    job = _job_of(finding, document)
    if job is None:
        return None
    edit = put(document, job.node, ("permissions",), {"contents": "read"}, after="runs-on")
    return _made("give the token of the job no more than `contents: read`", edit, safe=False)


def lessen_permissions(finding: Finding, document: Document, repository: Repository) -> Fix | None:
    """``read`` in place of ``write``, nothing in place of everything; ``permissions`` where there are none."""
    located = node_at(document, finding.span)
    holder = located.path[-1] if located is not None else None
    if located is None or not isinstance(holder, Mapping):
        return None
    name = located.scalar.value
    if name == "write-all":
        edit = put(document, holder, ("permissions",), {})
        return _made("let the token do nothing", edit, safe=False)
    present = holder.get(name)
    if isinstance(present, Scalar) and present.value == "write":
        edit = put(document, holder, (name,), "none" if name == "id-token" else "read")
        return _made(f"let the token write no {name}", edit, safe=False)
    return add_permissions(finding, document, repository)


def add_group(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """``concurrency`` for a workflow, in a group that no other run shares, so that it changes nothing."""
    workflow = Workflow(document.root)
    after = next((name for name in ("permissions", "on") if name in workflow.fields), "")
    group: dict[str, Data] = {"group": "paid-${{ github.run_id }}", "cancel-in-progress": False}
    edit = put(document, workflow.node, ("concurrency",), group, after=after)
    return _made("give each run a group of its own", edit, safe=True)


def keep_runs(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """``cancel-in-progress: false``."""
    located = node_at(document, finding.span)
    if located is None:
        return None
    edit = put(document, located.path[-1], ("cancel-in-progress",), False)
    return _made("let runs end by themselves", edit, safe=False)


def add_install_option(finding: Finding, document: Document, repository: Repository) -> Fix | None:  # noqa: ARG001
    """The option that the finding names, after the verb of the command."""
    option = _OPTION.fullmatch(finding.fix)
    script = script_at(finding, document)
    program = script.program() if script is not None else None
    if option is None or script is None or program is None:
        return None
    for command in program.simple_commands:
        if command.start != script.index and not any(word.start == script.index for word in command.words[:1]):
            continue
        texts = [word.static or "" for word in command.words]
        verb = next((number for number, text in enumerate(texts) if number and text in _VERBS | _TWO_WORDS), None)
        if verb is not None and texts[verb] in _TWO_WORDS:
            verb = verb + 1 if texts[verb + 1 : verb + 2] and texts[verb + 1] in _VERBS else None
        if verb is None:
            return None
        end = command.words[verb].end
        edit = replace_part(document, script.scalar, end, end, f" {option['option']}")
        return _made("install without programs of packages", edit, safe=False)
    return None
