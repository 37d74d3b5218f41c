"""Which request does what: one function an operation, in a table of patterns."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.github_double import shapes
from tests.github_double.clock import stamp
from tests.github_double.state import ApiError, Attempt, Run, State, User

__all__ = ["Reply", "Request", "answer"]


@dataclass
class Request:
    """One request, taken apart."""

    verb: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]
    user: User
    base: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Reply:
    """One answer. *model* names GitHub's model of the data (of each item of the list *listed*)."""

    status: int = 200
    data: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    model: str = ""
    listed: str | None = None
    raw: bytes | None = None


Operation = Callable[..., Reply]
_ROUTES: list[tuple[str, re.Pattern[str], Operation]] = []


def answer(state: State, request: Request) -> Reply:
    """Carries out *request*. Raises :class:`~tests.github_double.state.ApiError`."""
    path = request.path
    for name in state.former_names:
        rest = path.lower().removeprefix(f"/repos/{name}".lower())
        if rest != path.lower() and rest[:1] in {"", "/"}:
            # Renamed: a read is sent on to where it is now, and so is a write, with its body.
            place = f"{request.base}/repositories/{state.repository_id}{path[len(path) - len(rest) :]}"
            return Reply(status=301 if request.verb == "GET" else 307, headers={"Location": place})
    by_number = f"/repositories/{state.repository_id}"
    prefix = by_number if path.startswith(by_number) else f"/repos/{state.repository}".lower()
    if path.lower().startswith(prefix) and path[len(prefix) : len(prefix) + 1] in {"", "/"}:
        path = "R" + path[len(prefix) :]
    found_path = False
    for verb, pattern, operation in _ROUTES:
        found = pattern.fullmatch(path)
        if found is not None:
            found_path = True
            if verb == request.verb:
                return operation(state, request, **found.groupdict())
    raise ApiError(405 if found_path else 404, "Not Found")


def route(verb: str, pattern: str) -> Callable[[Operation], Operation]:
    """Registers an operation; ``R`` is the repository, ``{name}`` a part, ``{name*}`` a part with slashes."""
    expression = re.sub(r"\{(\w+)\*\}", r"(?P<\1>.+)", pattern)
    expression = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", expression)

    def register(operation: Operation) -> Operation:
        _ROUTES.append((verb, re.compile(expression), operation))
        return operation

    return register


def _page(request: Request, items: list[Any]) -> list[Any]:
    size = min(100, int(request.query.get("per_page", "30")))
    start = (int(request.query.get("page", "1")) - 1) * size
    return items[start : start + size]


def _list(request: Request, key: str, items: list[Any], shape: Callable[[Any], dict[str, Any]], model: str) -> Reply:
    shown = [shape(each) for each in _page(request, items)]
    return Reply(data={"total_count": len(items), key: shown}, model=model, listed=key)


# Repository and accounts


@route("GET", "R")
def get_repository(state: State, _: Request) -> Reply:
    """GET /repos/{owner}/{repo}."""
    return Reply(data=shapes.repository(state), model="FullRepository")


@route("GET", "/user")
def get_authenticated(_: State, request: Request) -> Reply:
    """GET /user."""
    if request.user.kind == "Bot":
        raise ApiError(403, "Resource not accessible by integration")
    return Reply(data=shapes._filled("PublicUser", shapes.user(request.user)), model="PublicUser")


@route("GET", "/users/{login}")
def get_user(state: State, _: Request, login: str) -> Reply:
    """GET /users/{username}."""
    if login.lower() not in state.users:
        raise ApiError(404, "Not Found")
    return Reply(data=shapes._filled("PublicUser", shapes.user(state.users[login.lower()])), model="PublicUser")


@route("GET", "R/collaborators/{login}/permission")
def get_permission(state: State, _: Request, login: str) -> Reply:
    """GET /repos/{owner}/{repo}/collaborators/{username}/permission."""
    found = state.users.get(login.lower())
    if found is None:
        raise ApiError(404, "Not Found")
    data = {"permission": found.permission, "role_name": found.permission, "user": None}
    return Reply(data=data, model="RepositoryCollaboratorPermission")


@route("GET", "/rate_limit")
def get_rate_limit(state: State, _: Request) -> Reply:
    """GET /rate_limit, which costs nothing."""
    core = {"limit": 5000, "used": 0, "remaining": 5000, "reset": int(state.clock.now()) + 3600}
    return Reply(data={"resources": {"core": core, "search": core}, "rate": core}, model="RateLimitOverview")


@route("GET", "R/branches/{branch*}")
def get_branch(state: State, _: Request, branch: str) -> Reply:
    """GET /repos/{owner}/{repo}/branches/{branch}."""
    ref = f"refs/heads/{branch}"
    if ref not in state.refs:
        raise ApiError(404, "Branch not found")
    data = shapes._filled("BranchWithProtection", {"name": branch, "protected": branch in state.protected})
    data["commit"]["sha"] = state.refs[ref]
    return Reply(data=data, model="BranchWithProtection")


@route("GET", "R/environments")
def list_environments(state: State, request: Request) -> Reply:
    """GET /repos/{owner}/{repo}/environments."""
    names = sorted(state.environments)
    return _list(
        request, "environments", names, lambda name: shapes.environment(name, state.environments[name]), "Environment"
    )


# Git


@route("GET", "R/git/ref/{ref*}")
def get_ref(state: State, _: Request, ref: str) -> Reply:
    """GET /repos/{owner}/{repo}/git/ref/{ref}."""
    if f"refs/{ref}" not in state.refs:
        raise ApiError(404, "Not Found")
    return Reply(data=shapes.git_ref(state, f"refs/{ref}"), model="GitRef")


@route("GET", "R/git/matching-refs/{ref*}")
def matching_refs(state: State, _: Request, ref: str) -> Reply:
    """GET /repos/{owner}/{repo}/git/matching-refs/{ref}, which has no pages."""
    names = sorted(name for name in state.refs if name.startswith(f"refs/{ref}"))
    return Reply(data=[shapes.git_ref(state, name) for name in names], model="GitRef", listed="")


@route("POST", "R/git/refs")
def create_ref(state: State, request: Request) -> Reply:
    """POST /repos/{owner}/{repo}/git/refs."""
    state.create_ref(str(request.body.get("ref")), str(request.body.get("sha")))
    return Reply(status=201, data=shapes.git_ref(state, request.body["ref"]), model="GitRef")


@route("PATCH", "R/git/refs/{ref*}")
def update_ref(state: State, request: Request, ref: str) -> Reply:
    """PATCH /repos/{owner}/{repo}/git/refs/{ref}."""
    if f"refs/{ref}" not in state.refs:
        raise ApiError(422, "Reference does not exist")
    if request.body.get("sha") not in state.objects:
        raise ApiError(422, "Object does not exist")
    state.refs[f"refs/{ref}"] = request.body["sha"]
    return Reply(data=shapes.git_ref(state, f"refs/{ref}"), model="GitRef")


@route("DELETE", "R/git/refs/{ref*}")
def delete_ref(state: State, _: Request, ref: str) -> Reply:
    """DELETE /repos/{owner}/{repo}/git/refs/{ref}."""
    if state.refs.pop(f"refs/{ref}", None) is None:
        raise ApiError(422, "Reference does not exist")
    return Reply(status=204)


@route("POST", "R/git/tags")
def create_tag(state: State, request: Request) -> Reply:
    """POST /repos/{owner}/{repo}/git/tags: the object alone, no ref."""
    body = request.body
    if body.get("object") not in state.objects:
        raise ApiError(422, "Object does not exist")
    kept = {name: str(body[name]) for name in ("tag", "message", "object", "type")}
    sha = state.store("tag", {**kept, "date": state.clock.now(), "number": state.number()})
    return Reply(status=201, data=shapes.git_tag(state, sha), model="GitTag")


@route("GET", "R/git/tags/{sha}")
def get_tag(state: State, _: Request, sha: str) -> Reply:
    """GET /repos/{owner}/{repo}/git/tags/{tag_sha}."""
    if state.objects.get(sha, {}).get("kind") != "tag":
        raise ApiError(404, "Not Found")
    return Reply(data=shapes.git_tag(state, sha), model="GitTag")


@route("POST", "R/git/blobs")
def create_blob(state: State, request: Request) -> Reply:
    """POST /repos/{owner}/{repo}/git/blobs."""
    text = str(request.body.get("content", ""))
    data = base64.b64decode(text) if request.body.get("encoding") == "base64" else text.encode()
    return Reply(
        status=201, data={"sha": state.store("blob", {"content": data}), "url": "https://x"}, model="ShortBlob"
    )


@route("GET", "R/git/blobs/{sha}")
def get_blob(state: State, _: Request, sha: str) -> Reply:
    """GET /repos/{owner}/{repo}/git/blobs/{file_sha}: whole, however large."""
    if state.objects.get(sha, {}).get("kind") != "blob":
        raise ApiError(404, "Not Found")
    return Reply(data=shapes.blob(state, sha), model="Blob")


@route("POST", "R/git/trees")
def create_tree(state: State, request: Request) -> Reply:
    """POST /repos/{owner}/{repo}/git/trees."""
    base = state.objects.get(str(request.body.get("base_tree")), {"files": {}})
    files = dict(base["files"])
    for entry in request.body.get("tree", []):
        if "content" in entry:
            files[entry["path"]] = state.store("blob", {"content": entry["content"].encode()})
        else:
            files[entry["path"]] = entry["sha"]
    sha = state.store("tree", {"files": files})
    return Reply(status=201, data={"sha": sha, "url": "https://x", "truncated": False, "tree": []}, model="GitTree")


@route("POST", "R/git/commits")
def create_commit(state: State, request: Request) -> Reply:
    """POST /repos/{owner}/{repo}/git/commits."""
    body = request.body
    if state.objects.get(str(body.get("tree")), {}).get("kind") != "tree":
        raise ApiError(422, "Tree SHA does not exist")
    kept = {"tree": body["tree"], "parents": body.get("parents", []), "message": body.get("message", "")}
    sha = state.store("commit", {**kept, "date": state.clock.now()})
    return Reply(status=201, data=shapes.git_commit(state, sha), model="GitCommit")


@route("GET", "R/contents")
@route("GET", "R/contents/{path*}")
def get_content(state: State, request: Request, path: str = "") -> Reply:
    """GET /repos/{owner}/{repo}/contents/{path}: a file, or what a directory holds."""
    files = state.files(request.query.get("ref", state.default_branch))
    if path in files:
        return Reply(data=shapes.content(state, path, files[path]), model="ContentFile")
    items = shapes.directory(state, path.strip("/"), files)
    if not items:
        raise ApiError(404, "Not Found")
    return Reply(data=items, model="ContentDirectoryItems", listed="")


@route("PUT", "R/contents/{path*}")
def put_content(state: State, request: Request, path: str) -> Reply:
    """PUT /repos/{owner}/{repo}/contents/{path}: compare-and-swap by the blob's name."""
    body = request.body
    try:
        data = base64.b64decode(str(body.get("content", "")), validate=True)
    except binascii.Error:
        raise ApiError(422, "content is not valid Base64") from None
    before = state.files(body.get("branch", state.default_branch)) if body.get("sha") else {}
    blob, commit = state.write_file(
        path, body.get("branch", state.default_branch), data, str(body.get("message")), body.get("sha")
    )
    full = {"content": shapes.content(state, path, blob), "commit": {"sha": commit, "date": stamp(state.clock.now())}}
    return Reply(status=200 if path in before else 201, data=full, model="FileCommit")


# Workflows and runs


@route("GET", "R/actions/workflows")
def list_workflows(state: State, request: Request) -> Reply:
    """GET /repos/{owner}/{repo}/actions/workflows."""
    return _list(request, "workflows", state.workflows, shapes.workflow, "Workflow")


@route("GET", "R/actions/permissions")
def get_actions_permissions(state: State, _: Request) -> Reply:
    """GET /repos/{owner}/{repo}/actions/permissions."""
    data = {"enabled": state.actions_enabled, "allowed_actions": "all", "sha_pinning_required": False}
    return Reply(data=data, model="ActionsRepositoryPermissions")


@route("GET", "R/actions/permissions/workflow")
def get_default_permissions(state: State, _: Request) -> Reply:
    """GET /repos/{owner}/{repo}/actions/permissions/workflow."""
    data = {"default_workflow_permissions": state.default_permissions, "can_approve_pull_request_reviews": False}
    return Reply(data=data, model="ActionsGetDefaultWorkflowPermissions")


@route("GET", "R/actions/secrets")
def list_secrets(state: State, request: Request) -> Reply:
    """GET /repos/{owner}/{repo}/actions/secrets: names only."""
    return _list(request, "secrets", sorted(state.secrets), shapes.secret, "ActionsSecret")


@route("GET", "R/environments/{name}/secrets")
def list_environment_secrets(state: State, request: Request, name: str) -> Reply:
    """GET /repos/{owner}/{repo}/environments/{environment_name}/secrets: names only."""
    if name not in state.environments:
        raise ApiError(404, "Not Found")
    names = sorted(state.environment_secrets.get(name, ()))
    return _list(request, "secrets", names, shapes.secret, "ActionsSecret")


@route("GET", "R/actions/variables/{name}")
def get_variable(state: State, _: Request, name: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/variables/{name}."""
    if name not in state.variables:
        raise ApiError(404, "Not Found")
    return Reply(data=shapes.variable(name, state.variables[name]), model="ActionsVariable")


@route("GET", "R/actions/workflows/{name}")
def get_workflow(state: State, _: Request, name: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/workflows/{workflow_id}."""
    return Reply(data=shapes.workflow(state.workflow(name)), model="Workflow")


@route("POST", "R/actions/workflows/{name}/dispatches")
def dispatch(state: State, request: Request, name: str) -> Reply:
    """POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches."""
    body = request.body
    details = body.get("return_run_details")
    if state.old_server and details is not None:
        raise ApiError(400, "Invalid request. For 'properties/return_run_details', nil is not an object.")
    run = state.dispatch(name, str(body.get("ref", "")), dict(body.get("inputs") or {}), request.user)
    if not details:
        return Reply(status=204)
    address = f"{request.base}/repos/{state.repository}/actions/runs/{run.id}"
    data = {"workflow_run_id": run.id, "run_url": address, "html_url": address}
    return Reply(data=data, model="WorkflowDispatchResponse")


def _listed(state: State, request: Request, runs: list[Run]) -> Reply:
    query = request.query
    if query.get("event"):
        runs = [run for run in runs if run.event == query["event"]]
    if query.get("actor"):
        runs = [run for run in runs if run.actor.login == query["actor"]]
    if query.get("branch"):
        runs = [run for run in runs if run.ref.split("/", 2)[2] == query["branch"]]
    if query.get("head_sha"):
        runs = [run for run in runs if run.sha == query["head_sha"]]
    if query.get("status"):
        runs = [run for run in runs if query["status"] in {run.last.status, run.last.conclusion}]
    if query.get("created"):
        runs = [run for run in runs if _created(query["created"], run)]
    if any(query.get(name) for name in ("actor", "branch", "event", "status", "created", "head_sha")):
        runs = runs[:1000]  # what GitHub gives of a filtered search
    return _list(request, "workflow_runs", runs, lambda run: shapes.run(state, run), "WorkflowRun")


def _created(condition: str, run: Run) -> bool:
    made = stamp(run.created_at)
    if ".." in condition:
        first, _, last = condition.partition("..")
        return first <= made <= last
    for sign in (">=", "<=", ">", "<"):
        if condition.startswith(sign):
            wanted = condition.removeprefix(sign)
            return {">=": made >= wanted, "<=": made <= wanted, ">": made > wanted, "<": made < wanted}[sign]
    return made.startswith(condition)


@route("GET", "R/actions/workflows/{name}/runs")
def list_workflow_runs(state: State, request: Request, name: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs."""
    wanted = state.workflow(name)
    return _listed(state, request, [run for run in state.visible_runs() if run.workflow is wanted])


@route("GET", "R/actions/runs")
def list_runs(state: State, request: Request) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs."""
    return _listed(state, request, state.visible_runs())


@route("GET", "R/actions/runs/{number}")
def get_run(state: State, _: Request, number: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}: at once, also where lists do not show it yet."""
    return Reply(data=shapes.run(state, state.run(int(number))), model="WorkflowRun")


@route("DELETE", "R/actions/runs/{number}")
def delete_run(state: State, _: Request, number: str) -> Reply:
    """DELETE /repos/{owner}/{repo}/actions/runs/{run_id}."""
    del state.runs[state.run(int(number)).id]
    return Reply(status=204)


@route("GET", "R/actions/runs/{number}/attempts/{attempt}")
def get_attempt(state: State, _: Request, number: str, attempt: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}."""
    run = state.run(int(number))
    return Reply(data=shapes.attempt(state, run, state.attempt(run, int(attempt))), model="WorkflowRun")


def _jobs(state: State, request: Request, run: Run, attempts: list[Attempt]) -> Reply:
    jobs = [job for attempt in attempts for job in attempt.jobs]
    return _list(request, "jobs", jobs, lambda job: shapes.job(state, run, job), "Job")


@route("GET", "R/actions/runs/{number}/attempts/{attempt}/jobs")
def list_attempt_jobs(state: State, request: Request, number: str, attempt: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/attempts/{attempt_number}/jobs."""
    run = state.run(int(number))
    return _jobs(state, request, run, [state.attempt(run, int(attempt))])


@route("GET", "R/actions/runs/{number}/jobs")
def list_jobs(state: State, request: Request, number: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/jobs."""
    run = state.run(int(number))
    return _jobs(state, request, run, run.attempts if request.query.get("filter") == "all" else [run.last])


@route("POST", "R/actions/runs/{number}/cancel")
@route("POST", "R/actions/runs/{number}/force-cancel")
def cancel(state: State, _: Request, number: str) -> Reply:
    """POST /repos/{owner}/{repo}/actions/runs/{run_id}/cancel, and force-cancel."""
    state.cancel(state.run(int(number)))
    return Reply(status=202, data={})


@route("POST", "R/actions/runs/{number}/rerun")
def rerun(state: State, request: Request, number: str) -> Reply:
    """POST /repos/{owner}/{repo}/actions/runs/{run_id}/rerun."""
    state.rerun(state.run(int(number)), request.user, failed_only=False)
    return Reply(status=201, data={})


@route("POST", "R/actions/runs/{number}/rerun-failed-jobs")
def rerun_failed(state: State, request: Request, number: str) -> Reply:
    """POST /repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs."""
    state.rerun(state.run(int(number)), request.user, failed_only=True)
    return Reply(status=201, data={})


@route("POST", "R/actions/jobs/{number}/rerun")
def rerun_job(state: State, request: Request, number: str) -> Reply:
    """POST /repos/{owner}/{repo}/actions/jobs/{job_id}/rerun."""
    for run in state.runs.values():
        if any(str(job.id) == number for job in run.last.jobs):
            state.rerun(run, request.user, failed_only=True, job=int(number))
            return Reply(status=201, data={})
    raise ApiError(404, "Not Found")


@route("GET", "/user/{number}")
def get_account(state: State, _: Request, number: str) -> Reply:
    """GET /user/{account_id}."""
    for each in state.users.values():
        if str(each.id) == number:
            return Reply(data=shapes._filled("PublicUser", shapes.user(each)), model="PublicUser")
    raise ApiError(404, "Not Found")


@route("GET", "R/actions/runs/{number}/pending_deployments")
def pending_deployments(state: State, _: Request, number: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/pending_deployments."""
    state.run(int(number))
    return Reply(data=[], model="PendingDeployment", listed="")


@route("GET", "R/environments/{name*}")
def get_environment(state: State, _: Request, name: str) -> Reply:
    """GET /repos/{owner}/{repo}/environments/{environment_name}."""
    if name not in state.environments:
        raise ApiError(404, "Not Found")
    return Reply(data=shapes.environment(name, state.environments[name]), model="Environment")


# Artifacts


@route("GET", "R/actions/runs/{number}/artifacts")
def list_artifacts(state: State, request: Request, number: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/artifacts."""
    items = state.run(int(number)).artifacts
    if request.query.get("name"):
        items = [each for each in items if each.name == request.query["name"]]
    return _list(request, "artifacts", items, lambda each: shapes.artifact(state, each, request.base), "Artifact")


@route("GET", "R/actions/artifacts/{number}/zip")
def download_artifact(state: State, request: Request, number: str) -> Reply:
    """GET /repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}: a redirect to another host."""
    for run in state.runs.values():
        for each in run.artifacts:
            if each.id == int(number):
                if each.expired:
                    raise ApiError(410, "Artifact has expired")
                # `localhost` is another host than 127.0.0.1 to a client, and the same server.
                elsewhere = request.base.replace("127.0.0.1", "localhost")
                return Reply(status=302, headers={"Location": f"{elsewhere}/storage/{number}?sig=x"})
    raise ApiError(404, "Not Found")


@route("GET", "/storage/{number}")
def storage(state: State, request: Request, number: str) -> Reply:
    """Where artifacts lie: a host that must not see the token."""
    if "authorization" in request.headers:
        raise ApiError(400, "the token went to another host")
    for run in state.runs.values():
        for each in run.artifacts:
            if each.id == int(number):
                return Reply(raw=each.content, headers={"Content-Type": "application/zip"})
    raise ApiError(404, "Not Found")
