"""What GitHub shows of runs and jobs: names, groups, labels, environments, and inputs and outputs that pass unmasked.

All this is made on the server, or before the first step: no mask of the job hides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.expression_data import Dictionary, taints_of
from runner_e2e.lint.masks import NO_MASKS, Masks
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.step_surfaces import report_text
from runner_e2e.lint.values import Confidence, Taint, merged
from runner_e2e.lint.workflow import Block, entries, list_of, scalars
from runner_e2e.yaml_positions import Mapping, Scalar

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Iterator

    from runner_e2e.lint.expression_data import Data
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.workflow import Job, Workflow
    from runner_e2e.yaml_positions import Node

    Contexts = collections.abc.Mapping[str, Data]

__all__ = [
    "matrix_keys",
    "report_declared_inputs",
    "report_environment_url",
    "report_job",
    "report_output",
    "report_passed_inputs",
    "report_workflow",
]


def report_workflow(run: Run, reader: Reader, workflow: Workflow, contexts: Contexts, *, called: bool) -> None:
    """Reports the name of the run (a *called* workflow has none of its own) and the group of the workflow."""
    if not called:
        report_text(run, reader, workflow.get("run-name"), contexts, subject="the name of the run")
    _report_group(run, reader, workflow.get("concurrency"), contexts)


def report_job(run: Run, reader: Reader, job: Job, contexts: Contexts) -> None:
    """Reports the name of a job, its group, its environment's name and its runner's labels."""
    name = job.scalar("name")
    if name is not None and "${{" in name.value:
        report_text(run, reader, name, contexts, subject="the name of the job")
    elif job.matrix is not None:
        _report_default_name(run, reader, job.matrix, contexts)
    _report_group(run, reader, job.get("concurrency"), contexts)
    environment = job.get("environment")
    node = Block(environment).get("name") if isinstance(environment, Mapping) else environment
    report_text(run, reader, node, contexts, subject="the name of the environment")
    runner = job.get("runs-on")
    if isinstance(runner, Mapping):
        report_text(run, reader, runner.get("group"), contexts, subject="the group of the runner")
        runner = runner.get("labels")
    for label in list_of(runner):
        report_text(run, reader, label, contexts, subject="a label of the runner")


def _report_group(run: Run, reader: Reader, node: Node | None, contexts: Contexts) -> None:
    group = Block(node).get("group") if isinstance(node, Mapping) else node
    report_text(run, reader, group, contexts, subject="the concurrency group")


def report_environment_url(run: Run, reader: Reader, job: Job, contexts: Contexts, masks: Masks) -> None:
    """Reports the URL that the deployment shows; the runner leaves out one that holds masked text."""
    node = Block(job.get("environment")).get("url")
    report_text(run, reader, node, contexts, subject="the URL of the environment", masks=masks)


def matrix_keys(node: Node | None) -> Iterator[tuple[Scalar, Node, bool]]:
    """Keys of a matrix with their values, and whether every job has them; those of ``exclude`` are in no job."""
    every = True
    extra: list[tuple[Scalar, Node, bool]] = []
    base = False
    for key, item in entries(node):
        if key.value == "include":
            extra += [(name, value, False) for entry in list_of(item) for name, value in entries(entry)]
        elif key.value != "exclude":
            base = True
            yield key, item, every
    yield from ((name, value, not base) for name, value, _ in extra)


def _report_default_name(run: Run, reader: Reader, node: Node, contexts: Contexts) -> None:
    """A job without an expression in its name has the values of its matrix there, in brackets."""
    matrix = contexts.get("matrix")
    if isinstance(node, Scalar):
        _report_matrix(run, reader, node, taints_of(matrix) if matrix is not None else frozenset())
        return
    for key, value, certain in matrix_keys(node):
        data = matrix.get(key.value) if isinstance(matrix, Dictionary) else None
        own = f"matrix.{key.value}"
        named = frozenset(taint for taint in taints_of(data) if taint.label.name == own) if data is not None else ()
        if named:
            _report_matrix(run, reader, key, named)
            continue
        for scalar in scalars(value):
            if "${{" in scalar.value:
                taints = taints_of(reader.data(scalar, contexts, "into the default name of the job"))
                # Values that `include` adds to jobs of the matrix are not always in the name.
                limit = Confidence.HIGH if certain else Confidence.MEDIUM
                weaker = (Taint(taint.label, min(taint.confidence, limit), taint.trail) for taint in taints)
                _report_matrix(run, reader, scalar, merged(weaker))
    include = Block(node).scalar("include")
    if include is not None:
        written = {f"matrix.{key.value.lower()}" for key, _, _ in matrix_keys(node)}
        known = taints_of(matrix) if matrix is not None else frozenset()
        added = (one for one in known if one.label.name.startswith("matrix.") and one.label.name not in written)
        taints = taints_of(reader.data(include, contexts, "into the matrix"))
        _report_matrix(run, reader, include, merged((*taints, *added)))


def _report_matrix(run: Run, reader: Reader, scalar: Scalar, taints: collections.abc.Iterable[Taint]) -> None:
    found = frozenset(taint for taint in taints if taint.label.kind == "confidential")
    if found:
        run.report(
            Sighting(
                surface=Surface.NAME,
                origin=reader.origin(scalar),
                start=0,
                end=len(scalar.value),
                taints=found,
                subject="the default name of the job",
                detail=scalar.value,
            )
        )


def report_passed_inputs(run: Run, reader: Reader, job: Job, uses: Scalar, contexts: Contexts) -> None:
    """Reports what the jobs of a called workflow print before their first step: the group "Inputs" of the log."""
    for key, node in entries(job.get("with")):
        subject = f"the input `{key.value}` of `{uses.value}`"
        _report_expressions(run, reader, node, contexts, subject=subject, note=f"into {subject}", advice="inputs")


def report_declared_inputs(run: Run, reader: Reader, workflow: Workflow, names: frozenset[str]) -> None:
    """Reports confidential inputs of a reusable workflow, whoever calls it."""
    for declared in workflow.inputs("workflow_call"):
        if declared.name.lower() in names:
            run.report(
                Sighting(
                    surface=Surface.OUTPUT,
                    origin=reader.origin(declared.key),
                    start=0,
                    end=len(declared.name),
                    taints=confidential(f"inputs.{declared.name}").taints,
                    subject="an input of a reusable workflow",
                    detail=declared.name,
                    advice="inputs",
                )
            )


def report_output(  # noqa: PLR0913 - a text, and what it is
    run: Run,
    reader: Reader,
    node: Node | None,
    contexts: Contexts,
    *,
    subject: str,
    masks: Masks = NO_MASKS,
) -> None:
    """Reports what leaves a job, or a workflow, in an output: the masks of the job do not go with it."""
    _report_expressions(run, reader, node, contexts, subject=subject, note=f"into {subject}", advice="", masks=masks)


def _report_expressions(  # noqa: PLR0913 - a text, and what it is
    run: Run,
    reader: Reader,
    node: Node | None,
    contexts: Contexts,
    *,
    subject: str,
    note: str,
    advice: str,
    masks: Masks = NO_MASKS,
) -> None:
    if not isinstance(node, Scalar) or "${{" not in node.value:
        return
    script = reader.script(node, contexts, note)
    for hole in script.interpolations:
        taints = masks.uncovered(hole.value)
        found = frozenset(taint for taint in taints if taint.label.kind == "confidential")
        if found and not (subject.endswith(" of the workflow") and all(_left_a_job(taint) for taint in found)):
            run.report(
                Sighting(
                    surface=Surface.OUTPUT,
                    origin=script.origin,
                    start=hole.start,
                    end=hole.end,
                    taints=found,
                    subject=subject,
                    detail=script.text[hole.start : hole.end],
                    advice=advice,
                )
            )


def _left_a_job(taint: Taint) -> bool:
    """Whether the value came out of an output of a job: it is told there."""
    steps = taint.trail.walk() if taint.trail is not None else ()
    return any(step.note.startswith("into the output `") and step.note.endswith("` of the job") for step in steps)
