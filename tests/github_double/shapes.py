"""JSON as GitHub writes it. Parts that nobody here reads are filled in from the models of GitHub's API description."""

from __future__ import annotations

import base64
import hashlib
import typing
from functools import cache
from types import UnionType
from typing import Any, Union

from tests.github_double.clock import stamp

if typing.TYPE_CHECKING:
    from tests.github_double.state import Artifact, Attempt, Job, Run, State, User, Workflow

__all__ = [
    "artifact",
    "attempt",
    "blob",
    "content",
    "directory",
    "environment",
    "git_commit",
    "git_ref",
    "git_tag",
    "job",
    "repository",
    "run",
    "user",
    "validate",
    "workflow",
]

LARGEST_CONTENT = 1024 * 1024
"""Of a larger file the contents API gives no content; the blob has it."""

_TEXT_BY_END = {"_url": "https://github.example/x", "_at": "2026-01-01T00:00:00Z", "_id": "x"}


@cache
def model(name: str) -> Any:
    """A model by its name. Loading them takes two seconds, so only who validates does."""
    import githubkit_schemas.latest.models as models

    return getattr(models, name)


def validate(name: str, data: Any) -> None:
    """Raises where *data* is not what GitHub's description says of the model *name*."""
    model(name).model_validate(data)


def _filled(name: str, known: dict[str, Any]) -> dict[str, Any]:
    """*known*, and a plain value for every other field that the model requires."""
    return {**_plain_values(name), **known}


@cache
def _plain_values(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field_name, field in model(name).model_fields.items():
        if field.is_required():
            key = field.alias or field_name
            found[key] = _plain(key, field.annotation)
    return found


def _plain(key: str, kind: Any) -> Any:
    """The plainest value of a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _plain(key, arguments[0])
    if origin in {Union, UnionType}:
        return None if type(None) in arguments else _plain(key, arguments[0])
    if origin is typing.Literal:
        return arguments[0]
    if origin is list:
        return []
    if origin is dict:
        return {}
    if kind is bool:
        return False
    if kind in {int, float}:
        return 0
    if hasattr(kind, "model_fields"):
        return _plain_values(kind.__name__)
    return next((text for end, text in _TEXT_BY_END.items() if key.endswith(end)), "x")


def user(one: User) -> dict[str, Any]:
    """An account as other records show it."""
    return _filled("SimpleUser", {"id": one.id, "login": one.login, "type": one.kind})


def repository(state: State) -> dict[str, Any]:
    """The whole record of the repository."""
    owner, _, name = state.repository.partition("/")
    return _filled(
        "FullRepository",
        {
            "id": state.repository_id,
            "name": name,
            "full_name": state.repository,
            "owner": _filled("SimpleUser", {"id": 1, "login": owner, "type": "Organization"}),
            "default_branch": state.default_branch,
            "private": state.private,
            "visibility": "private" if state.private else "public",
        },
    )


def _minimal_repository(state: State) -> dict[str, Any]:
    full = repository(state)
    return {key: full[key] for key in _filled("MinimalRepository", {}) if key in full}


def workflow(one: Workflow) -> dict[str, Any]:
    """A workflow."""
    return _filled("Workflow", {"id": one.id, "name": one.name, "path": one.path, "state": one.state})


def attempt(state: State, one: Run, which: Attempt) -> dict[str, Any]:
    """One attempt of a run, as its own address and, for the newest, the run's show it."""
    base = f"https://github.example/{state.repository}/actions/runs/{one.id}"
    return _filled(
        "WorkflowRun",
        {
            "id": one.id,
            "name": one.workflow.name,
            "display_title": one.title,
            "run_number": one.number,
            "run_attempt": which.number,
            "event": one.event,
            "status": which.status,
            "conclusion": which.conclusion,
            "workflow_id": one.workflow.id,
            "path": one.workflow.path,
            "head_branch": one.ref.split("/", 2)[2],
            "head_sha": one.sha,
            "html_url": base,
            "created_at": stamp(one.created_at),
            "updated_at": stamp(one.updated_at),
            "run_started_at": stamp(which.started_at),
            "actor": user(one.actor),
            "triggering_actor": user(which.triggering_actor),
            "repository": _minimal_repository(state),
            "head_repository": _minimal_repository(state),
            "head_repository_id": state.repository_id,
        },
    )


def run(state: State, one: Run) -> dict[str, Any]:
    """A run with its newest attempt."""
    return attempt(state, one, one.last)


def job(state: State, one: Run, which: Job) -> dict[str, Any]:
    """A job; *attempt* of a job that a partial rerun keeps is the newest, and its times are the old ones."""
    return _filled(
        "Job",
        {
            "id": which.id,
            "run_id": one.id,
            "run_attempt": which.attempt,
            "name": which.name,
            "status": which.status,
            "conclusion": which.conclusion,
            "head_sha": one.sha,
            "created_at": stamp(which.started_at),
            "started_at": stamp(which.started_at),
            "completed_at": stamp(which.completed_at) if which.completed_at is not None else None,
            "steps": which.steps,
            "runner_id": which.runner,
            "html_url": f"https://github.example/{state.repository}/actions/runs/{one.id}/job/{which.id}",
        },
    )


def artifact(state: State, one: Artifact, base: str) -> dict[str, Any]:
    """An artifact; *base* is the root of this server."""
    return _filled(
        "Artifact",
        {
            "id": one.id,
            "name": one.name,
            "size_in_bytes": len(one.content),
            "digest": f"sha256:{hashlib.sha256(one.content).hexdigest()}",
            "expired": one.expired,
            "archive_download_url": f"{base}/repos/{state.repository}/actions/artifacts/{one.id}/zip",
            "created_at": stamp(one.created_at),
        },
    )


def git_ref(state: State, ref: str) -> dict[str, Any]:
    """A ref and what it points to."""
    sha = state.refs[ref]
    pointed = {"sha": sha, "type": state.objects[sha]["kind"], "url": f"https://github.example/git/{sha}"}
    return {"ref": ref, "node_id": "x", "url": f"https://github.example/git/{ref}", "object": pointed}


def git_tag(state: State, sha: str) -> dict[str, Any]:
    """An annotated tag."""
    found = state.objects[sha]
    return _filled(
        "GitTag",
        {
            "sha": sha,
            "tag": found["tag"],
            "message": found["message"],
            "tagger": {"date": stamp(found["date"]), "email": "x@github.example", "name": "x"},
            "object": {"sha": found["object"], "type": found["type"], "url": "https://github.example/x"},
        },
    )


def git_commit(state: State, sha: str) -> dict[str, Any]:
    """A commit."""
    found = state.objects[sha]
    who = {"date": stamp(found["date"]), "email": "x@github.example", "name": "x"}
    return _filled("GitCommit", {"sha": sha, "message": found["message"], "author": who, "committer": who})


def content(state: State, path: str, sha: str) -> dict[str, Any]:
    """A file of a branch; its content only where that has at most a megabyte."""
    data: bytes = state.objects[sha]["content"]
    small = len(data) <= LARGEST_CONTENT
    return _filled(
        "ContentFile",
        {
            "type": "file",
            "encoding": "base64" if small else "none",
            "size": len(data),
            "name": path.rpartition("/")[2],
            "path": path,
            "content": base64.encodebytes(data).decode() if small else "",
            "sha": sha,
            "_links": {"self": "https://github.example/x", "git": None, "html": None},
        },
    )


def directory(state: State, path: str, files: dict[str, str]) -> list[dict[str, Any]]:
    """What a directory of a tree holds; *files* maps all paths of the tree to blobs."""
    inside = f"{path}/" if path else ""
    names = sorted({name[len(inside) :].partition("/")[0] for name in files if name.startswith(inside)})
    return [_listed(state, inside + name, files.get(inside + name)) for name in names]


def _listed(state: State, path: str, sha: str | None) -> dict[str, Any]:
    return _filled(
        "ContentDirectoryItems",
        {
            "type": "file" if sha else "dir",
            "size": len(state.objects[sha]["content"]) if sha else 0,
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": sha or hashlib.sha1(path.encode()).hexdigest(),
            "_links": {"self": "https://github.example/x", "git": None, "html": None},
        },
    )


def blob(state: State, sha: str) -> dict[str, Any]:
    """A blob."""
    data: bytes = state.objects[sha]["content"]
    return _filled(
        "Blob", {"sha": sha, "size": len(data), "encoding": "base64", "content": base64.encodebytes(data).decode()}
    )


def environment(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """An environment; *settings* are its protection."""
    return _filled("Environment", {"id": abs(hash(name)) % 10_000, "name": name, **settings})


def secret(name: str) -> dict[str, Any]:
    """A secret: its name alone."""
    return _filled("ActionsSecret", {"name": name})


def variable(name: str, value: str) -> dict[str, Any]:
    """A variable."""
    return _filled("ActionsVariable", {"name": name, "value": value})
