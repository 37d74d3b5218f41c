"""What the double remembers: accounts, one repository with its Git objects and refs, workflows, runs, artifacts."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.github_double.clock import Clock, ManualClock

__all__ = ["ApiError", "Artifact", "Attempt", "Job", "Run", "State", "User", "Workflow"]


class ApiError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, errors: list[Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"message": message, "documentation_url": "https://docs.example"}
        if errors:
            self.body["errors"] = errors


@dataclass
class User:
    """An account."""

    id: int
    login: str
    kind: str = "User"
    permission: str = "write"


@dataclass
class Workflow:
    """A workflow file. *inputs* maps names to whether they are required; *run_name* may use ``${{ inputs.X }}``.

    *plan* is what a run of it does: a name that the player of runs knows.
    """

    id: int
    path: str
    name: str
    inputs: dict[str, bool] = field(default_factory=dict)
    run_name: str = ""
    triggers: tuple[str, ...] = ("workflow_dispatch",)
    state: str = "active"


@dataclass
class Job:
    """A job of one attempt. *runner* is the number of the machine that took it, None where none did."""

    id: int
    name: str
    attempt: int
    status: str = "queued"
    conclusion: str | None = None
    started_at: float = 0.0
    completed_at: float | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    runner: int | None = None


@dataclass
class Attempt:
    """One attempt of a run."""

    number: int
    triggering_actor: User
    started_at: float
    status: str = "queued"
    conclusion: str | None = None
    jobs: list[Job] = field(default_factory=list)


@dataclass
class Artifact:
    """A file that a run keeps."""

    id: int
    name: str
    content: bytes
    created_at: float
    expired: bool = False


@dataclass
class Run:
    """A run with all its attempts. It is listed only from *visible_at* on."""

    id: int
    number: int
    workflow: Workflow
    event: str
    ref: str
    sha: str
    title: str
    actor: User
    created_at: float
    visible_at: float
    inputs: dict[str, str]
    attempts: list[Attempt]
    artifacts: list[Artifact] = field(default_factory=list)
    updated_at: float = 0.0

    @property
    def last(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]


_EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")


class State:
    """Everything, and the rules by which GitHub changes it."""

    def __init__(
        self, *, repository: str = "octo/evals", default_branch: str = "main", clock: Clock | None = None
    ) -> None:
        self.clock: Clock = clock or ManualClock()
        self.repository = repository
        self.repository_id = 5
        self.former_names: set[str] = set()
        self.default_branch = default_branch
        self.private = False
        self.actions_enabled = True
        self.old_server = False
        """Whether it is an Enterprise Server that knows no ``return_run_details``."""
        self.users: dict[str, User] = {}
        self.tokens: dict[str, User] = {}
        self.permissions: dict[str, dict[str, str]] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self.refs: dict[str, str] = {}
        self.workflows: list[Workflow] = []
        self.runs: dict[int, Run] = {}
        self.environments: dict[str, dict[str, Any]] = {}
        self.environment_secrets: dict[str, set[str]] = {}
        self.secrets: set[str] = set()
        self.variables: dict[str, str] = {}
        self.default_permissions = "read"
        self.protected: set[str] = set()
        self.write_protected: dict[str, str] = {}
        """Branch -> what GitHub says to who writes to it although rules forbid that."""
        self.listing_delay = 0.0
        """Seconds until a new run appears in lists and searches."""
        self._numbers = 1000
        alice = self.add_user("alice", 11, permission="admin")
        self.tokens["token-of-alice"] = alice
        self.refs[f"refs/heads/{default_branch}"] = self.commit({"README.md": b"evals\n"}, [], "first")

    # Accounts

    def add_user(self, login: str, number: int, *, kind: str = "User", permission: str = "write") -> User:
        """Adds an account."""
        user = User(id=number, login=login, kind=kind, permission=permission)
        self.users[login.lower()] = user
        return user

    def user(self, token: str) -> User:
        """Whose token it is."""
        if token not in self.tokens:
            raise ApiError(401, "Bad credentials")
        return self.tokens[token]

    def number(self) -> int:
        """A new id."""
        self._numbers += 1
        return self._numbers

    # Git

    def store(self, kind: str, content: dict[str, Any]) -> str:
        """Stores an object and returns its name, which its content makes."""
        sha = hashlib.sha1(f"{kind} {json.dumps(content, sort_keys=True, default=repr)}".encode()).hexdigest()
        self.objects[sha] = {"kind": kind, **content}
        return sha

    def commit(self, files: dict[str, bytes], parents: list[str], message: str) -> str:
        """Stores a commit whose tree is *files* alone."""
        tree = self.store(
            "tree", {"files": {path: self.store("blob", {"content": data}) for path, data in files.items()}}
        )
        return self.store("commit", {"tree": tree, "parents": parents, "message": message, "date": self.clock.now()})

    def files(self, ref: str) -> dict[str, str]:
        """Path -> name of the blob, at a branch, a tag or a commit."""
        sha = self.refs.get(f"refs/heads/{ref}") or self.refs.get(f"refs/tags/{ref}") or self.refs.get(ref) or ref
        found = self.objects.get(sha)
        if found is None or found["kind"] != "commit":
            raise ApiError(404, f"No commit found for the ref {ref}")
        files: dict[str, str] = self.objects[found["tree"]]["files"]
        return files

    def create_ref(self, ref: str, sha: str) -> None:
        """Creates a ref, if there is none."""
        if not ref.startswith("refs/") or ref.count("/") < 2:
            raise ApiError(422, "Reference name must start with 'refs/' and have at least two slashes.")
        if sha not in self.objects:
            raise ApiError(422, "Object does not exist")
        if ref in self.refs:
            raise ApiError(422, "Reference already exists")
        if any(name.startswith(ref + "/") or ref.startswith(name + "/") for name in self.refs):
            raise ApiError(422, "Reference update failed")
        self.refs[ref] = sha

    def write_file(self, path: str, branch: str, content: bytes, message: str, sha: str | None) -> tuple[str, str]:
        """Changes one file by compare-and-swap; returns the names of blob and commit."""
        ref = f"refs/heads/{branch}"
        if ref not in self.refs:
            raise ApiError(404, f"Branch {branch} not found")
        if branch in self.write_protected:
            raise ApiError(409, f"Could not update file: {self.write_protected[branch]}")
        parent = self.refs[ref]
        names = dict(self.files(branch))
        if path in names and sha is None:
            raise ApiError(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
        if sha is not None and names.get(path) != sha:
            raise ApiError(409, f"{path} does not match {sha}")
        names[path] = self.store("blob", {"content": content})
        tree = self.store("tree", {"files": names})
        date = self.clock.now()
        commit = self.store("commit", {"tree": tree, "parents": [parent], "message": message, "date": date})
        self.refs[ref] = commit
        return names[path], commit

    # Workflows and runs

    def add_workflow(self, path: str, **settings: Any) -> Workflow:
        """Adds a workflow of the default branch."""
        workflow = Workflow(id=self.number(), path=path, name=path.rpartition("/")[2], **settings)
        self.workflows.append(workflow)
        return workflow

    def workflow(self, name: str) -> Workflow:
        """A workflow by its id or the name of its file."""
        for each in self.workflows:
            if name in {str(each.id), each.path.rpartition("/")[2]}:
                return each
        raise ApiError(404, "Not Found")

    def dispatch(self, name: str, ref: str, inputs: dict[str, Any], user: User) -> Run:
        """Creates a run by hand, where GitHub would."""
        workflow = self.workflow(name)
        if not self.actions_enabled:
            raise ApiError(422, "Actions has been disabled for this repository.")
        if workflow.state != "active":
            raise ApiError(422, "Cannot trigger a 'workflow_dispatch' on a disabled workflow")
        if "workflow_dispatch" not in workflow.triggers:
            raise ApiError(422, "Workflow does not have 'workflow_dispatch' trigger")
        full = next((each for each in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}") if each in self.refs), None)
        if full is None:
            raise ApiError(422, f"No ref found for: {ref}")
        unknown = [each for each in inputs if each not in workflow.inputs]
        if unknown:
            raise ApiError(422, f"Unexpected inputs provided: {json.dumps(unknown)}")
        missing = [each for each, required in workflow.inputs.items() if required and not inputs.get(each)]
        if missing:
            raise ApiError(422, f"Required input '{missing[0]}' not provided")
        if len(inputs) > 25:
            raise ApiError(422, "you may only define up to 25 `inputs` for a `workflow_dispatch` event")
        if sum(len(str(each)) for each in inputs.values()) > 65_535:
            raise ApiError(422, "inputs are too large.")
        return self.start(workflow, "workflow_dispatch", full, user, {key: str(value) for key, value in inputs.items()})

    def start(self, workflow: Workflow, event: str, ref: str, user: User, inputs: dict[str, str]) -> Run:
        """Creates a run."""
        now = self.clock.now()
        title = _EXPRESSION.sub(lambda found: inputs.get(found[1], ""), workflow.run_name) or workflow.name
        run = Run(
            id=self.number(),
            number=len(self.runs) + 1,
            workflow=workflow,
            event=event,
            ref=ref,
            sha=self.refs[ref],
            title=title,
            actor=user,
            created_at=now,
            visible_at=now + self.listing_delay,
            inputs=inputs,
            attempts=[Attempt(number=1, triggering_actor=user, started_at=now)],
            updated_at=now,
        )
        self.runs[run.id] = run
        return run

    def run(self, number: int) -> Run:
        """A run by its id."""
        if number not in self.runs:
            raise ApiError(404, "Not Found")
        return self.runs[number]

    def attempt(self, run: Run, number: int) -> Attempt:
        """An attempt of a run."""
        found = next((each for each in run.attempts if each.number == number), None)
        if found is None:
            raise ApiError(404, "Not Found")
        return found

    def rerun(self, run: Run, user: User, *, failed_only: bool, job: int | None = None) -> Attempt:
        """Begins a new attempt; of a partial one the jobs that succeeded are kept as they are.

        *job* is the id of one that runs again although it succeeded, with all that came after it.
        """
        if run.last.status != "completed":
            raise ApiError(403, "This workflow is already running")
        if len(run.attempts) > 50:
            raise ApiError(403, "This workflow run cannot be retried")
        again = next((each.started_at for each in run.last.jobs if each.id == job), float("inf"))
        kept = [
            each
            for each in run.last.jobs
            if failed_only and each.conclusion == "success" and each.id != job and each.started_at <= again
        ]
        attempt = Attempt(
            number=run.last.number + 1, triggering_actor=user, started_at=self.clock.now(), jobs=list(kept)
        )
        run.attempts.append(attempt)
        self.touch(run)
        return attempt

    def cancel(self, run: Run) -> None:
        """Ends a run that is not over."""
        if run.last.status == "completed":
            raise ApiError(409, "Cannot cancel a workflow run that is completed.")
        now = self.clock.now()
        for job in run.last.jobs:
            if job.status != "completed":
                job.status, job.conclusion, job.completed_at = "completed", "cancelled", now
        run.last.status, run.last.conclusion = "completed", "cancelled"
        self.touch(run)

    def touch(self, run: Run) -> None:
        """Marks a run as changed."""
        run.updated_at = self.clock.now()

    def visible_runs(self) -> list[Run]:
        """What lists show now, the newest first."""
        now = self.clock.now()
        return sorted((run for run in self.runs.values() if run.visible_at <= now), key=lambda run: -run.id)
