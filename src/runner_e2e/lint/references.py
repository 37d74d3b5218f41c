"""What workflows and actions of a repository refer to in it: whether it is there, and takes what it is given.

References are looked at as they are written, without following any value. What a job brings to its workspace before
(another checkout, a submodule, a script) is no error: such a reference is left alone. So is a missing action where the
files are no checkout and its folder is not among them: a copy of workflows alone.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.run import MAX_DEPTH
from runner_e2e.lint.workflow import Action, Block, Workflow, entries, is_action
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.workflow import Input, Step

__all__ = ["Fault", "faults_of"]

_KINDS = ("composite", "docker", "node12", "node16", "node20", "node24")
# A local use, or one whose value stands elsewhere (an alias, a block, the next line).
_LOCAL = re.compile(r"""uses["']?\s*:\s*(?:["']?\./|[*&!?|>])""")
_WORKFLOWS = ".github/workflows"
_SUBMODULE = re.compile(r"^\s*path\s*=\s*(\S.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What is wrong with the reference at *node*: a fact, what comes of it, and what to do."""

    node: Scalar
    message: str
    why: str
    fix: str


def faults_of(repository: Repository, document: Document) -> Iterator[Fault]:
    """Every reference of *document* into its repository that does not hold."""
    path = repository.relative(document.path)
    if not _is_complete(repository) or path.startswith("workflows-templates/"):
        return  # a file on its own, or one that is meant for another repository
    if is_action(document.root):
        action = Action(document.root)
        yield from _own_kind(repository, action, posixpath.dirname(path))
        yield from _steps(repository, action.steps, path)
        return
    if _LOCAL.search(document.text) is None:
        return  # most workflows: not worth a look at every step
    workflow = Workflow(document.root)
    for job in workflow.jobs:
        if job.uses is not None:
            yield from _call(repository, job.uses, job, path)
        yield from _steps(repository, job.steps, path)


def _is_complete(repository: Repository) -> bool:
    return repository.has(".git") or repository.has(".github/workflows")


def _holds(repository: Repository, folder: str) -> bool:
    """Whether what is missing in *folder* is missing indeed: in a checkout, and in a copy that has this folder."""
    return repository.has(".git") or (folder != "" and repository.has(folder))


# --- actions


def _own_kind(repository: Repository, action: Action, folder: str) -> Iterator[Fault]:
    """What ``runs`` of an action refers to."""
    using = action.runs.scalar("using")
    if using is None:
        return
    if action.kind not in _KINDS:
        yield Fault(
            node=using,
            message=f"no runner knows actions that run with `{using.value}`",
            why="the step that uses the action fails",
            fix="write `composite`, `docker`, or `node24`",
        )
    image = action.runs.scalar("image")
    if action.kind == "docker" and image is not None and not image.value.startswith("docker://"):
        path = posixpath.normpath(posixpath.join(folder, image.value))
        if repository.locate(path) is None:
            yield Fault(
                node=image,
                message=f"there is no file `{path}` to build the image from",
                why="the runner cannot start the action",
                fix="write the path from the folder of the action, or `docker://image` for one that is built",
            )


def _steps(repository: Repository, steps: Iterable[Step], path: str) -> Iterator[Fault]:
    before = _Before()
    for step in steps:
        uses = step.uses
        if uses is not None and uses.value.startswith("./"):
            yield from _action(repository, uses, step, path, before)
        before.add(step)


class _Before:
    """What the steps before one may have brought to the workspace."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.checkouts: dict[str, bool] = {}
        """Folder of a checkout -> whether it is of this repository."""

    def add(self, step: Step) -> None:
        if step.run is not None:
            self.scripts.append(step.run.value)
        if step.uses is not None and "checkout" in step.uses.value.lower():
            given = Block(step.arguments)
            folder = posixpath.normpath(given.text("path") or ".")
            self.checkouts[folder] = given.scalar("repository") is None

    def place(self, repository: Repository, folder: str) -> str | None:
        """Where *folder* of the workspace is in the repository; None when it may be something else."""
        for checkout, own in self.checkouts.items():
            inside = checkout in {".", folder} or folder.startswith(f"{checkout}/")
            if "${{" in checkout or (inside and not own):
                return None
        for checkout in self.checkouts:
            if checkout != "." and (folder == checkout or folder.startswith(f"{checkout}/")):
                return posixpath.relpath(folder, checkout)
        if any(folder == module or folder.startswith(f"{module}/") for module in _submodules(repository)):
            return None
        first = folder.split("/", 1)[0] if folder != "." else ""
        names = {name for name in folder.split("/") if not name.startswith(".")} | {first}
        if any(name and name in script for script in self.scripts for name in names):
            return None
        return folder


def _submodules(repository: Repository) -> tuple[str, ...]:
    text = repository.text(".gitmodules")
    return tuple(_SUBMODULE.findall(text)) if text is not None else ()


def _action(repository: Repository, uses: Scalar, step: Step, path: str, before: _Before) -> Iterator[Fault]:
    folder = posixpath.normpath(uses.value)
    if folder.startswith("../"):
        yield Fault(
            node=uses,
            message=f"`{uses.value}` is outside of the repository",
            why="the runner looks for the action in the workspace",
            fix="write the path from the root of the repository",
        )
        return
    try:
        found = repository.action(folder)
        if found is None:
            place = before.place(repository, folder)
            if place is None:
                return
            found = repository.action(place)
            if found is None:
                yield from _missing_action(repository, uses, place)
                return
    except ConfigurationError:
        return  # told for that file
    callee, document = found
    if callee == path or path in _reached(repository, callee):
        yield Fault(
            node=uses,
            message=f"the action `{uses.value}` uses itself",
            why="the runner stops after ten levels, and the job fails",
            fix="take the use out of the circle",
        )
    action = Action(document.root)
    yield from _given(step, action.inputs, f"the action `{uses.value}`", strict=False)


def _missing_action(repository: Repository, uses: Scalar, place: str) -> Iterator[Fault]:
    if repository.locate(posixpath.join(place, "Dockerfile")) is not None:
        return  # an action without inputs
    if not _holds(repository, posixpath.dirname(place)):
        return
    yield Fault(
        node=uses,
        message=f"there is no `action.yml`, `action.yaml` or `Dockerfile` in `{place}` of this repository",
        why="the step fails when it is reached; links that lead out of the repository are not followed",
        fix="correct the path, which is from the root of the repository, or check the other repository out before",
    )


def _reached(repository: Repository, path: str) -> set[str]:
    """Paths of the actions that the one at *path* uses, directly or not."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        try:
            document = repository.document(waiting.pop())
        except ConfigurationError:
            continue
        if document is None:
            continue
        for step in Action(document.root).steps:
            if step.uses is None or not step.uses.value.startswith("./"):
                continue
            try:
                callee = repository.action(step.uses.value)
            except ConfigurationError:
                continue
            if callee is not None and callee[0] not in found:
                found.add(callee[0])
                waiting.append(callee[0])
    return found


# --- workflows


def _call(repository: Repository, uses: Scalar, job: Block, path: str) -> Iterator[Fault]:
    if not uses.value.startswith("./"):
        return
    called = posixpath.normpath(uses.value)
    if posixpath.dirname(called) != _WORKFLOWS:
        yield Fault(
            node=uses,
            message=f"`{uses.value}` is not in `{_WORKFLOWS}`",
            why="GitHub calls workflows of that folder only",
            fix="move the workflow there",
        )
        return
    try:
        document = repository.document(called)
    except ConfigurationError:
        return  # told for that file
    if document is None:
        yield Fault(
            node=uses,
            message=f"there is no workflow `{called}` in this repository",
            why="GitHub refuses the workflow",
            fix="correct the name",
        )
        return
    workflow = Workflow(document.root)
    if "workflow_call" not in workflow.triggers:
        yield Fault(
            node=uses,
            message=f"the workflow `{called}` cannot be called",
            why="it has no `on: workflow_call`, and GitHub refuses the workflow",
            fix=f"add `workflow_call:` to `on:` of `{called}`",
        )
        return
    depth = _depth(repository, called, (path,))
    if depth is None:
        yield Fault(
            node=uses,
            message=f"the workflow `{called}` calls itself",
            why="GitHub refuses the workflow",
            fix="take the call out of the circle",
        )
    elif depth >= MAX_DEPTH:
        yield Fault(
            node=uses,
            message=f"calls of workflows are nested more than {MAX_DEPTH} deep from here",
            why="GitHub refuses the workflow",
            fix="call fewer workflows from one another",
        )
    name = f"the workflow `{called}`"
    yield from _given(job, workflow.inputs("workflow_call"), name, strict=True)
    yield from _secrets(job, workflow, name)


def _depth(repository: Repository, path: str, above: tuple[str, ...]) -> int | None:
    """How many workflows deep the calls go from the one at *path*, itself included; None when they go in a circle."""
    if path in above:
        return None
    try:
        document = repository.document(path)
    except ConfigurationError:
        return 1
    if document is None or len(above) > MAX_DEPTH:
        return 1
    deepest = 0
    for called in {job.uses.value for job in Workflow(document.root).jobs if job.uses is not None}:
        if called.startswith("./"):
            depth = _depth(repository, posixpath.normpath(called), (*above, path))
            if depth is None:
                return None
            deepest = max(deepest, depth)
    return deepest + 1


def _secrets(job: Block, workflow: Workflow, name: str) -> Iterator[Fault]:
    """Secrets that a call gives: nothing is asked of ``secrets: inherit``."""
    given = job.get("secrets")
    settings = workflow.triggers.get("workflow_call")
    declared = settings.get("secrets") if settings is not None else None
    if isinstance(given, Scalar) and given.data is not None:
        return
    known = {key.value.lower(): value for key, value in entries(declared)}
    written = {key.value.lower(): key for key, _ in entries(given)}
    for lower, key in written.items():
        if lower not in known:
            yield _unknown(key, f"the secret `{key.value}`", name, known)
    for lower, value in known.items():
        if lower not in written and Block(value).text("required") == "true":
            yield _lacks(job, f"the secret `{lower}`", name)


def _given(block: Block, declared: tuple[Input, ...], name: str, *, strict: bool) -> Iterator[Fault]:
    """Inputs that the step or job *block* gives; *strict*: GitHub refuses what does not fit, else the runner warns."""
    known = {each.name.lower(): each for each in declared}
    written = {key.value.lower(): key for key, _ in entries(block.get("with"))}
    for lower, key in written.items():
        if lower not in known:
            yield _unknown(key, f"the input `{key.value}`", name, known, strict=strict)
    for lower, each in known.items():
        if lower not in written and each.text("required") == "true" and each.get("default") is None:
            yield _lacks(block, f"the input `{each.name}`", name, strict=strict)


def _unknown(key: Scalar, what: str, name: str, known: Iterable[str], *, strict: bool = True) -> Fault:
    names = ", ".join(f"`{each}`" for each in known)
    return Fault(
        node=key,
        message=f"{name} does not have {what}",
        why="GitHub refuses the workflow" if strict else "the runner warns, and nothing reads the value",
        fix=f"it has {names}" if names else "it has none: leave it out",
    )


def _lacks(block: Block, what: str, name: str, *, strict: bool = True) -> Fault:
    uses = block.scalar("uses")
    assert uses is not None
    return Fault(
        node=uses,
        message=f"{name} is not given {what}, which it requires",
        why="GitHub refuses the workflow" if strict else "the runner does not check it, and the input is empty",
        fix=f"give {what}",
    )
