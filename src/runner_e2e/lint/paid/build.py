"""From a document to the model: calls and local actions are followed, and it is told whether the workflow pays."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.paid.frames import Frame, Given, Scope
from runner_e2e.lint.paid.model import PaidJob, PaidStep, PaidWorkflow
from runner_e2e.lint.paid.product import command_of, is_product_action, is_product_name
from runner_e2e.lint.paid.secrets import Level, SecretUse, inherited_secrets, secrets_in
from runner_e2e.lint.run import MAX_DEPTH
from runner_e2e.lint.workflow import Action, Workflow, entries, is_action
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.settings import Settings
    from runner_e2e.lint.workflow import Job, Step
    from runner_e2e.yaml_positions import Node

__all__ = ["KNOWN_PROVIDER_SECRETS", "paid_workflow"]

KNOWN_PROVIDER_SECRETS = frozenset(
    f"{provider}_API_KEY"
    for provider in (
        *("ANTHROPIC", "AZURE_OPENAI", "CEREBRAS", "CODEX", "COHERE", "CURSOR", "DASHSCOPE", "DEEPSEEK", "FIREWORKS"),
        *("GEMINI", "GOOGLE", "GOOGLE_GENERATIVE_AI", "GROQ", "MISTRAL", "MOONSHOT", "OPENAI", "OPENROUTER"),
        *("PERPLEXITY", "REPLICATE", "TOGETHER", "XAI", "ZAI"),
    )
) | {"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "REPLICATE_API_TOKEN"}
"""Names that a provider's secret has by custom: they count in a workflow that pays, configured or not."""

_MARK = re.compile(r"^\s*#\s*runner-e2e:\s*paid\b", re.MULTILINE)
_LOCAL = re.compile(r"uses[\"']?\s*:\s*[\"']?(\./[^\s\"'#,}]*)")
_OWN_NAMES = "RUNNER_E2E_"


def paid_workflow(run: Run, document: Document) -> PaidWorkflow | None:
    """The model of the workflow in *document*, made once a file; None when it is an action, or does not pay."""
    return run.once("paid", lambda: _paid_workflow(run.repository, run.repository.settings, document))


def _paid_workflow(repository: Repository, settings: Settings, document: Document) -> PaidWorkflow | None:
    if is_action(document.root) or not _may_pay(repository, settings, document):
        return None
    frame = Frame(document=document, block=Workflow(document.root))
    builder = _Builder(repository)
    jobs = builder.workflow(frame, None)
    names = settings.names.environment
    runs = [leaf for job in jobs for leaf in job.leaves if leaf.command == "run" and not _is_free(job, leaf, names)]
    providers = settings.provider_secrets
    if runs or _MARK.search(document.text) is not None:
        providers |= KNOWN_PROVIDER_SECRETS | {
            use.name
            for leaf in runs
            for use in leaf.secrets
            if use.kind == "name" and not use.target.startswith(_OWN_NAMES)
        }
    elif not any(_certain(use, providers) for job in jobs for use in job.secrets):
        return None
    workflow = frame.block
    assert isinstance(workflow, Workflow)
    called = set(workflow.triggers) == {"workflow_call"}
    return PaidWorkflow(
        frame=frame,
        workflow=workflow,
        repository=repository,
        jobs=tuple(jobs),
        providers=providers,
        runs=frozenset(map(id, runs)),
        called=called,
        has_callers=called and _is_called(repository, repository.relative(document.path)),
    )


def _certain(use: SecretUse, providers: frozenset[str]) -> bool:
    """Whether a secret makes a workflow a paid one: `inherit` alone does not, for nobody knows what comes of it."""
    return use.name in providers or (bool(providers) and use.kind in {"index", "all"})


def _is_free(job: PaidJob, leaf: PaidStep, names: frozenset[str]) -> bool:
    """Whether a cell cannot cost anything: it is named by a constant, and no secret is in its reach."""
    if any(True for _ in (*job.workflow_secrets, *job.own, *leaf.secrets)):
        return False
    ids = [leaf.scope.environment(name) for name in names]
    return any(given is not None and isinstance(given.node, Scalar) and "${{" not in given.node.value for given in ids)


def _may_pay(repository: Repository, settings: Settings, document: Document) -> bool:
    """A quick look at the text of the file and of what it uses, which never errs to the side of no."""
    words = ("runner-e2e", "scripts/enter.py", *(name.lower() for name in settings.provider_secrets))
    for text in _texts(repository, document.text):
        lower = text.lower()
        if any(word in lower for word in words):
            return True
        if settings.provider_secrets and "secrets" in lower and _ALL_SECRETS.search(lower) is not None:
            return True
    return False


# Ways to reach a secret without writing its name.
_ALL_SECRETS = re.compile(r"\bsecrets\s*(?:[\[)}]|\.\s*\*|[,&|=!<>])")


def _texts(repository: Repository, text: str) -> Iterator[str]:
    """*text*, and those of the local actions and workflows that it uses."""
    yield text
    if "./" not in text:
        return
    waiting, seen = list(_LOCAL.findall(text)), set()
    while waiting:
        uses = waiting.pop()
        if uses in seen:
            continue
        seen.add(uses)
        names = ("",) if uses.endswith((".yml", ".yaml")) else ("action.yml", "action.yaml")
        texts = (repository.text(posixpath.join(uses, name).rstrip("/")) for name in names)
        found = next((text for text in texts if text is not None), None)
        if found is not None:
            yield found
            waiting += _LOCAL.findall(found)


def _local(repository: Repository, uses: str) -> Iterator[Document]:
    """The documents that ``uses: ./…`` may mean; what cannot be read is reported for the file itself."""
    try:
        found = repository.document(uses) if uses.endswith((".yml", ".yaml")) else None
        action = repository.action(uses) if found is None else None
    except ConfigurationError:
        return
    if found is not None:
        yield found
    if action is not None:
        yield action[1]


def _is_called(repository: Repository, path: str) -> bool:
    """Whether a workflow of the repository calls the one at *path*."""
    call = re.compile(rf"uses[\"']?\s*:\s*[\"']?\./{re.escape(path)}[\s\"'#,}}]")
    names = (name for name in repository.names_in(".github/workflows") if name.endswith((".yml", ".yaml")))
    texts = (repository.text(f".github/workflows/{name}") for name in names)
    return any(text is not None and call.search(f"{text}\n") for text in texts)


class _Builder:
    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.depth = 0

    def workflow(self, frame: Frame, caller: PaidJob | None) -> list[PaidJob]:
        """The jobs of a workflow, each followed by those that it calls."""
        workflow = frame.block
        assert isinstance(workflow, Workflow)
        shared = tuple(secrets_in(workflow.env, Scope(frame=frame), Level.WORKFLOW))
        siblings: dict[str, PaidJob] = {}
        for job in workflow.jobs:
            siblings[job.id] = self._job(frame, job, shared, caller, siblings)
        for found in siblings.values():
            self._fill(found)
        return [each for job in siblings.values() for each in (job, *job.inside)]

    def _job(
        self,
        frame: Frame,
        job: Job,
        shared: tuple[SecretUse, ...],
        caller: PaidJob | None,
        all_jobs: dict[str, PaidJob],
    ) -> PaidJob:
        scope = Scope(frame=frame, job=job, steps=job.steps, actions=frame.actions.setdefault(job.id, {}))
        return PaidJob(
            job=job,
            scope=scope,
            own=tuple(_job_secrets(job, scope)),
            workflow_secrets=shared if job.uses is None else (),
            caller=caller,
            siblings=all_jobs,
        )

    def _fill(self, job: PaidJob) -> None:
        if job.job.uses is not None:
            self._call(job, job.job.uses)
        for step in job.job.steps:
            job.steps.append(self._step(step, job.scope, None))

    def _call(self, job: PaidJob, uses: Scalar) -> None:
        found = (
            next(_local(self.repository, uses.value), None)
            if uses.value.startswith("./") and self.depth < MAX_DEPTH
            else None
        )
        if found is None or is_action(found.root):
            return
        scope, secrets = job.scope, job.job.get("secrets")
        inherits = isinstance(secrets, Scalar)
        handed = {key.value.upper(): Given(node=value, scope=scope) for key, value in entries(secrets)}
        frame = Frame(
            document=found,
            block=Workflow(found.root),
            inputs=_given(job.job.get("with"), scope),
            secrets=scope.frame.secrets if inherits else handed,
            inherits=inherits,
            caller=scope.frame,
            trail=(*scope.frame.trail, scope.frame.place(uses, f"the job `{job.id}` calls `{uses.value}`")),
        )
        scope.frame.callees[job.id] = frame
        self.depth += 1
        job.inside.extend(self.workflow(frame, job))
        self.depth -= 1

    def _step(self, step: Step, scope: Scope, outer: PaidStep | None) -> PaidStep:
        here = scope.at(step)
        uses = step.uses.value if step.uses is not None else ""
        document = self._action(uses)
        product = is_product_name(uses) or (document is not None and is_product_action(document))
        own = [
            *secrets_in(step.env, here, Level.STEP_ENV),
            *secrets_in(step.arguments, here, Level.STEP_WITH),
            *secrets_in(step.run, here, Level.STEP_RUN),
            *(
                use
                for name in ("name", "working-directory", "shell", "timeout-minutes", "continue-on-error")
                for use in secrets_in(step.get(name), here, Level.STEP_OTHER)
            ),
        ]
        found = PaidStep(
            step=step,
            scope=here,
            command=command_of(step) if product else None,
            own=tuple(own),
            outer=outer,
            opaque=bool(uses) and document is None and not product,
        )
        if document is not None:
            self._inside(found, document, is_product=product)
        return found

    def _action(self, uses: str) -> Document | None:
        if not uses.startswith(("./", "../")) or self.depth >= MAX_DEPTH:
            return None
        return next((found for found in _local(self.repository, uses) if is_action(found.root)), None)

    def _inside(self, user: PaidStep, document: Document, *, is_product: bool) -> None:
        action, scope = Action(document.root), user.scope
        uses = user.step.uses
        assert uses is not None
        frame = Frame(
            document=document,
            block=action,
            inputs=_given(user.step.arguments, scope),
            secrets=scope.frame.secrets,
            caller=scope.frame,
            trail=(*scope.frame.trail, scope.frame.place(uses, f"uses the action `{uses.value}`")),
            is_product=is_product,
        )
        assert isinstance(scope.actions, dict)
        scope.actions[user.step.number] = frame
        if is_product or action.kind != "composite":
            return
        there = Scope(frame=frame, steps=action.steps, outer=scope, actions=frame.actions.setdefault("", {}))
        self.depth += 1
        user.inside.extend(self._step(step, there, user) for step in action.steps)
        self.depth -= 1


def _given(node: Node | None, scope: Scope) -> dict[str, Given]:
    return {key.value.lower(): Given(node=value, scope=scope) for key, value in entries(node)}


_JOB_FIELDS = ("name", "runs-on", "environment", "concurrency", "timeout-minutes", "outputs", "strategy", "defaults")


def _job_secrets(job: Job, scope: Scope) -> Iterator[SecretUse]:
    yield from secrets_in(job.env, scope, Level.JOB)
    for name in ("container", "services"):
        yield from secrets_in(job.get(name), scope, Level.CONTAINER)
    for name in _JOB_FIELDS:
        yield from secrets_in(job.get(name), scope, Level.JOB_OTHER)
    yield from secrets_in(job.get("with"), scope, Level.CALL)
    secrets = job.get("secrets")
    if isinstance(secrets, Scalar):
        if secrets.value == "inherit":
            yield inherited_secrets(scope, secrets)
    else:
        yield from secrets_in(secrets, scope, Level.CALL)
