"""Workflows and their jobs: contexts, ``needs``, matrices, containers, and calls of reusable workflows."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.actions import report_argument, use_action
from runner_e2e.lint.contexts import (
    EVENT_PATH,
    OUTCOMES,
    STRATEGY,
    MatrixKeys,
    github_context,
    inputs_context,
    matrix_context,
    runner_context,
    secrets_context,
)
from runner_e2e.lint.expression_data import (
    ANYTHING,
    NULL,
    Choice,
    Data,
    Dictionary,
    Textual,
    of_value,
    taints_of,
    to_json,
)
from runner_e2e.lint.job_state import JobState, Scope
from runner_e2e.lint.job_surfaces import (
    matrix_keys,
    report_declared_inputs,
    report_environment_url,
    report_job,
    report_output,
    report_passed_inputs,
    report_workflow,
)
from runner_e2e.lint.masks import Masks
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.remote_workflows import use_unknown_workflow
from runner_e2e.lint.run import MAX_DEPTH
from runner_e2e.lint.shell.results import Files
from runner_e2e.lint.steps import StepRunner, environment_data, read_environment
from runner_e2e.lint.texts import passed
from runner_e2e.lint.values import UNKNOWN
from runner_e2e.lint.ways import begun_anew, ways_of
from runner_e2e.lint.workflow import Action, Block, Workflow, entries, list_of
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Label, Step, Text, Value
    from runner_e2e.lint.workflow import Job
    from runner_e2e.yaml_positions import Node

__all__ = ["run_action", "run_workflow"]

_TEXT = Textual(UNKNOWN)


def run_workflow(run: Run, document: Document) -> None:
    """Analyses the workflow in *document* as GitHub would start it: any input, any secret."""
    workflow = Workflow(document.root)
    names = run.names.inputs_of(document.text)
    declared = (*workflow.inputs("workflow_dispatch"), *workflow.inputs("workflow_call"))
    contexts = {
        "github": github_context(workflow, names),
        "inputs": inputs_context(declared, names),
        "secrets": secrets_context(document.text),
        "vars": Dictionary.of({}, others=_TEXT),
    }
    lower = document.text.lower()
    run.confidential = _has_confidential(run, lower, names)
    if run.confidential or run.trace is not None or _has_source(lower):
        _run_alone(run, document, workflow, contexts, names)
    reader = run.reader(document)
    for job in workflow.jobs:
        reader.check_condition(job.condition)
        for step in job.steps:
            reader.check_condition(step.condition)
    reader.check_syntax(document.root)


def _run_alone(
    run: Run, document: Document, workflow: Workflow, contexts: Mapping[str, Data], names: frozenset[str]
) -> None:
    runner = _WorkflowRunner(run, document, workflow, contexts)
    report_workflow(run, runner.reader, workflow, contexts, called=False)
    report_declared_inputs(run, runner.reader, workflow, names)
    runner.run_jobs()
    if workflow.call_outputs is not None:
        runner.outputs()


# Without one of these no label can arise in a file (its text in lower case), and nothing has to be followed. Words are
# looked for one by one, and patterns begin with a letter: that is twenty times faster than one pattern with a choice.
_SOURCES = ("secrets", "token", "tojson", ".*")
_INDEXED = re.compile(r"github\s*[^.\w\s/-]")
_LOCAL = re.compile(r"uses:\s*[\"']?\./")
_PAYLOADS = ("repository_dispatch", "client_payload")


def _has_source(lower: str) -> bool:
    return (
        any(word in lower for word in _SOURCES)
        or _INDEXED.search(lower) is not None
        or _LOCAL.search(lower) is not None
    )


def _has_confidential(run: Run, lower: str, inputs: frozenset[str]) -> bool:
    """Whether a confidential value can arise: by its name, in a payload, or in what is called."""
    names = (*inputs, *run.names.matrix, *run.names.environment)
    return (
        any(word in lower for word in _PAYLOADS)
        or any(name.lower() in lower for name in names)
        or _LOCAL.search(lower) is not None
    )


def run_action(run: Run, document: Document) -> None:
    """Analyses the action in *document* for any caller."""
    action = Action(document.root)
    names = run.names.inputs_of(document.text)
    contexts: dict[str, Data] = {
        "github": github_context(None, names),
        "inputs": inputs_context(action.inputs, names),
        "runner": runner_context(()),
        "job": ANYTHING,
        "matrix": ANYTHING,
        "strategy": STRATEGY,
    }
    reader = run.reader(document)
    scope = Scope(reader=reader, contexts=contexts, inherited={"GITHUB_ACTION_PATH": UNKNOWN})
    masks = Masks(any_caller=True)
    state = JobState(environment={}, files=_first_files(run, contexts["github"]), masks=masks)
    StepRunner(run, state, scope, use_action).run_all(action.steps)
    for step in action.steps:
        reader.check_condition(step.condition)
    reader.check_syntax(document.root)


def _first_files(run: Run, github: Data) -> Files:
    """The files a job starts with: the event, which holds the inputs."""
    event = github.get("event") if isinstance(github, Dictionary) else NULL
    contents: dict[Text, Value] = {(EVENT_PATH,): to_json(event)} if taints_of(event) else {}
    return Files(contents=contents, artifacts=run.artifacts)


@dataclass(frozen=True, kw_only=True)
class _KnownCall:
    """What a reusable workflow gives, and the ways of what it was given."""

    outputs: Mapping[str, Data]
    ways: Mapping[Label, Step]


class _WorkflowRunner:
    def __init__(self, run: Run, document: Document, workflow: Workflow, contexts: Mapping[str, Data]) -> None:
        self.run = run
        self.reader: Reader = run.reader(document)
        self.workflow = workflow
        self.contexts = contexts
        self.environment = read_environment(run, self.reader, workflow.env, contexts)
        self.files = _first_files(run, contexts["github"])
        self.matrix_keys = MatrixKeys.of(document.text, run.names)
        self.results: dict[str, Data] = {}

    def run_jobs(self) -> None:
        """Runs the jobs, those that others need first."""
        for job in _in_order(self.workflow.jobs):
            self.run.check_time()
            self.results[job.id] = self._job(job)

    def outputs(self) -> dict[str, Data]:
        """Outputs of the workflow for its caller."""
        contexts = {**self.contexts, "jobs": Dictionary.of(self.results)}
        found: dict[str, Data] = {}
        for key, item in entries(self.workflow.call_outputs):
            subject = f"the output `{key.value}` of the workflow"
            node = Block(item).get("value")
            report_output(self.run, self.reader, node, contexts, subject=subject)
            found[key.value] = of_value(self.reader.value(node, contexts, f"into {subject}"))
        return found

    def _job(self, job: Job) -> Data:
        needs = {name: self.results[name] for name in job.needs if name in self.results}
        contexts: dict[str, Data] = {**self.contexts, "needs": Dictionary.of(needs), "strategy": STRATEGY}
        runs = self.reader.condition(job.condition, contexts)
        if runs is False:
            return Dictionary.of({"outputs": Dictionary.of({}), "result": OUTCOMES})
        contexts["matrix"] = self._matrix(job, contexts)
        report_job(self.run, self.reader, job, contexts)
        if job.uses is not None:
            outputs = self._call(job, job.uses, contexts)
        else:
            outputs = Dictionary.of(self._steps(job, contexts))
        if runs is None:
            given = {name: Choice.of((data, NULL)) for name, data in outputs.entries.values()}
            outputs = Dictionary.of(given, others=outputs.others)
        return Dictionary.of({"outputs": outputs, "result": OUTCOMES})

    def _matrix(self, job: Job, contexts: Mapping[str, Data]) -> Data:
        """``matrix`` of the jobs; a value that is confidential by the name of its key begins its way at the key."""
        found = matrix_context(self.reader.data(job.matrix, contexts, "into the matrix"), self.matrix_keys)
        if not isinstance(found, Dictionary) or job.matrix is None:
            return found
        written = {key.value.lower(): key for key, _, _ in matrix_keys(job.matrix)}
        made = job.matrix if isinstance(job.matrix, Scalar) else Block(job.matrix).scalar("include")
        entries_of: dict[str, tuple[str, Data]] = {}
        for lower, (name, data) in found.entries.items():
            place = written.get(lower, made)
            if place is not None and any(taint.trail is None for taint in taints_of(data)):
                data = passed(data, self.reader.origin(place), 0, len(place.value), f"into `matrix.{name}`")  # noqa: PLW2901
            entries_of[lower] = (name, data)
        return Dictionary(entries_of, found.others)

    def _steps(self, job: Job, contexts: dict[str, Data]) -> dict[str, Data]:
        self._containers(job, contexts)
        environment = {**self.environment, **read_environment(self.run, self.reader, job.env, contexts)}
        labels = job.runner_labels
        contexts |= {"runner": runner_context(labels), "job": ANYTHING}
        state = JobState(
            environment=environment,
            files=self.files,
            in_container=job.get("container") is not None,
            container=self._container_variables(Block(job.get("container")), contexts),
            windows=any("windows" in label.lower() for label in labels),
        )
        defaults = (job.default_run, self.workflow.default_run)
        scope = Scope(reader=self.reader, contexts=contexts, defaults=defaults)
        StepRunner(self.run, state, scope, use_action).run_all(job.steps)
        for paths, name in state.caches:
            self.run.artifacts.save({"path": paths, "key": name}, state.files)
        results = {**contexts, "steps": Dictionary.of(scope.outputs), "env": environment_data(state.environment)}
        found: dict[str, Data] = {}
        report_environment_url(self.run, self.reader, job, results, state.masks)
        for key, item in entries(job.get("outputs")):
            subject = f"the output `{key.value}` of the job"
            report_output(self.run, self.reader, item, results, subject=subject, masks=state.masks)
            value = self.reader.value(item, results, f"into {subject}")
            found[key.value] = of_value(state.masks.passing(value))
        return found

    def _container_variables(self, container: Block, contexts: Mapping[str, Data]) -> dict[str, Value]:
        """What ``env`` and ``options`` of the container of a job give every script in it."""
        found: dict[str, Value] = {}
        options = container.scalar("options")
        if options is not None:
            from runner_e2e.lint.container_options import option_variables

            found = option_variables(self.reader.value(options, contexts, "into the options of the container"))
        for key, item in entries(container.get("env")):
            found[key.value] = self.reader.value(item, contexts, f"into the variable `{key.value}` of the container")
        return found

    def _containers(self, job: Job, contexts: Mapping[str, Data]) -> None:
        """``docker create`` gets image, variables, options, volumes and ports on its command line."""
        containers = [job.get("container"), *(value for _, value in entries(job.get("services")))]
        for container in containers:
            for node in _docker_arguments(container):
                value = self.reader.value(node, contexts, "into the command line of `docker create`")
                report_argument(self.run, self.reader, node, value, subject="docker create")

    def _call(self, job: Job, uses: Scalar, contexts: Mapping[str, Data]) -> Dictionary:
        """A reusable workflow, with what this job gives it; its outputs."""
        given = {
            key.value: self.reader.data(item, contexts, f"into the input `{key.value}` of `{uses.value}`")
            for key, item in entries(job.get("with"))
        }
        report_passed_inputs(self.run, self.reader, job, uses, contexts)
        document = self._callee(uses.value)
        if document is None:
            return use_unknown_workflow(self.run, self.reader, job, uses, contexts)
        path = posixpath.normpath(uses.value)
        callee = Workflow(document.root)
        inputs = _call_inputs(self.run.reader(document), callee, given)
        secrets = self._call_secrets(job, contexts)
        key = (path, inputs, secrets, self.contexts["github"], self.run.artifacts.version)
        now = ways_of((inputs, secrets))
        known = self.run.known_calls.get(key) if self.run.trace is None else None
        if isinstance(known, _KnownCall):
            return Dictionary.of({name: begun_anew(data, known.ways, now) for name, data in known.outputs.items()})
        inner = {**self.contexts, "inputs": inputs, "secrets": secrets}
        self.run.callees.append(path)
        try:
            runner = _WorkflowRunner(self.run, document, callee, inner)
            report_workflow(self.run, runner.reader, callee, inner, called=True)
            runner.run_jobs()
            outputs = runner.outputs()
        finally:
            self.run.callees.pop()
        self.run.known_calls[key] = _KnownCall(outputs=outputs, ways=now)
        return Dictionary.of(outputs)

    def _callee(self, uses: str) -> Document | None:
        path = posixpath.normpath(uses)
        if not uses.startswith("./") or path in self.run.callees or len(self.run.callees) >= MAX_DEPTH:
            return None
        try:
            return self.run.repository.document(path)
        except ConfigurationError:
            return None  # reported for the file itself

    def _call_secrets(self, job: Job, contexts: Mapping[str, Data]) -> Data:
        node = job.get("secrets")
        if isinstance(node, Scalar) and node.value == "inherit":
            return contexts.get("secrets", NULL)
        token = contexts.get("secrets", NULL)
        found = {
            key.value: self.reader.data(item, contexts, f"into the secret `{key.value}`") for key, item in entries(node)
        }
        if isinstance(token, Dictionary):
            found.setdefault("GITHUB_TOKEN", token.get("GITHUB_TOKEN"))
        return Dictionary.of(found)


def _call_inputs(reader: Reader, callee: Workflow, given: Mapping[str, Data]) -> Data:
    by_name = {name.lower(): data for name, data in given.items()}
    found: dict[str, Data] = {}
    for declared in callee.inputs("workflow_call"):
        data = by_name.get(declared.name.lower())
        found[declared.name] = reader.data(declared.get("default"), {}, "") if data is None else data
    return Dictionary.of(found)


def _docker_arguments(container: Node | None) -> Iterator[Node]:
    if isinstance(container, Scalar):
        yield container
        return
    block = Block(container)
    for name in ("image", "options"):
        found = block.scalar(name)
        if found is not None:
            yield found
    for name in ("volumes", "ports"):
        yield from list_of(block.get(name))
    for _, node in entries(block.get("env")):
        yield node
    username = Block(block.get("credentials")).scalar("username")
    if username is not None:
        yield username


def _in_order(jobs: tuple[Job, ...]) -> list[Job]:
    """The jobs, each after those it needs; jobs that need one another keep the order of the file."""
    by_id = {job.id: job for job in jobs}
    done: dict[str, Job] = {}
    for first in jobs:
        stack = [(first, iter(first.needs))]
        open_ids = {first.id}
        while stack:
            job, rest = stack[-1]
            needed = next((by_id[name] for name in rest if name in by_id), None)
            if needed is None:
                done.setdefault(job.id, job)
                open_ids.discard(job.id)
                stack.pop()
            elif needed.id not in done and needed.id not in open_ids:
                open_ids.add(needed.id)
                stack.append((needed, iter(needed.needs)))
    return list(done.values())
