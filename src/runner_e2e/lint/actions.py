"""Actions that steps use: local composite actions are followed, docker ones reach a command line."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.expression_data import NULL, Data, Dictionary, Known, of_value
from runner_e2e.lint.run import MAX_DEPTH
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.steps import Scope, StepRunner, environment_data, step_data
from runner_e2e.lint.values import Value
from runner_e2e.lint.workflow import Action, Block, entries, list_of
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.run import Run
    from runner_e2e.lint.steps import Visible
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Node

__all__ = ["report_argument", "use_action"]


def use_action(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
    """Runs the action that *step* uses; None when nothing is known of its outputs."""
    if not uses.value.startswith(("./", "docker://")):
        return None
    arguments = {
        key.value: runner.reader.value(item, visible.contexts, f"into the input `{key.value}` of `{uses.value}`")
        for key, item in entries(step.arguments)
    }
    if uses.value.startswith("docker://"):
        for name in ("args", "entrypoint"):
            node = Block(step.arguments).get(name)
            if node is not None and name in arguments:
                report_argument(runner.run, runner.reader, node, arguments[name], subject="docker run")
        return None
    try:
        found = runner.run.repository.action(uses.value)
    except ConfigurationError:
        return None  # reported for the file itself
    if found is None or len(runner.run.callees) >= MAX_DEPTH or found[0] in runner.run.callees:
        return None
    path, document = found
    action = Action(document.root)
    reader = runner.run.reader(document)
    inputs = _inputs(reader, action, arguments, visible.contexts)
    runner.run.callees.append(path)
    try:
        if action.kind == "composite":
            return _composite(runner, reader, action, posixpath.dirname(path), inputs, visible)
        if action.kind == "docker":
            _docker(runner, reader, action, inputs, visible.contexts)
    finally:
        runner.run.callees.pop()
    return None


def _inputs(reader: Reader, action: Action, given: Mapping[str, Value], contexts: Mapping[str, Data]) -> Data:
    """``inputs`` of an action: what the step gives, else the default."""
    by_name = {name.lower(): value for name, value in given.items()}
    found: dict[str, Data] = {}
    for declared in action.inputs:
        name = declared.name.lower()
        if name in by_name:
            found[declared.name] = of_value(by_name[name])
        else:
            found[declared.name] = of_value(
                reader.value(declared.default, contexts, f"into the input `{declared.name}` as its default")
            )
    return Dictionary.of(found)


def _composite(  # noqa: PLR0913, PLR0917 - the call, and what is called
    runner: StepRunner, reader: Reader, action: Action, folder: str, inputs: Data, visible: Visible
) -> Dictionary:
    outer = visible.contexts
    github = outer.get("github", NULL)
    if isinstance(github, Dictionary):
        path = Known(posixpath.normpath(posixpath.join(WORKSPACE, folder)))
        github = Dictionary({**github.entries, "action_path": ("action_path", path)}, github.others)
    contexts = {name: data for name, data in outer.items() if name not in {"secrets", "vars", "needs", "env", "steps"}}
    contexts |= {"inputs": inputs, "github": github}
    inherited = dict(visible.environment)
    for name in runner.state.environment:
        if inherited.get(name) == runner.state.environment[name]:
            del inherited[name]
    if isinstance(github, Dictionary):
        inherited["GITHUB_ACTION_PATH"] = Value.literal(posixpath.normpath(posixpath.join(WORKSPACE, folder)))
    scope = Scope(reader=reader, contexts=contexts, inherited=inherited)
    inner = StepRunner(runner.run, runner.state, scope, use_action)
    inner.run_all(action.steps)
    results = {**contexts, "steps": Dictionary.of(scope.outputs)}
    results["env"] = environment_data({**runner.state.environment, **inherited})
    outputs: dict[str, Data] = {}
    for key, item in entries(action.outputs):
        note = f"into the output `{key.value}` of the action"
        outputs[key.value] = of_value(reader.value(Block(item).get("value"), results, note))
    return step_data(outputs)


def _docker(runner: StepRunner, reader: Reader, action: Action, inputs: Data, outer: Mapping[str, Data]) -> None:
    """``docker run`` gets entry points and arguments on its command line; variables go by name only."""
    contexts = {**outer, "inputs": inputs}
    for name in ("entrypoint", "pre-entrypoint", "post-entrypoint", "args"):
        for node in list_of(action.runs.get(name)):
            value = reader.value(node, contexts, f"into `{name}` of the action")
            report_argument(runner.run, reader, node, value, subject="docker run")


def report_argument(run: Run, reader: Reader, node: Node, value: Value, *, subject: str) -> None:
    """Reports *node*, whose *value* the runner puts on the command line of *subject*."""
    if value.taints and isinstance(node, Scalar):
        run.report(
            Sighting(
                surface=Surface.ARGV,
                origin=reader.origin(node),
                start=0,
                end=len(node.value),
                taints=value.taints,
                subject=subject,
                detail=node.value,
                advice="runner",
            )
        )
