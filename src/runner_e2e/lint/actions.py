"""Actions that steps use: those of the repository are followed, whatever they are written in."""

from __future__ import annotations

import posixpath
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.action_models import UNKNOWN_ACTION
from runner_e2e.lint.action_programs import input_variables, report_unfollowed, run_in_image, run_program
from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.dockerfile import read_dockerfile
from runner_e2e.lint.expression_data import NULL, Data, Dictionary, Known, Textual, of_value
from runner_e2e.lint.job_state import Scope
from runner_e2e.lint.remote_actions import report_environment, use_remote
from runner_e2e.lint.repository import below
from runner_e2e.lint.run import MAX_DEPTH
from runner_e2e.lint.shell.results import Files
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.steps import StepRunner, environment_data, step_data
from runner_e2e.lint.values import UNKNOWN, Confidence, Value
from runner_e2e.lint.ways import begun_anew, ways_of
from runner_e2e.lint.workflow import Action, Block, entries, list_of
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.dockerfile import Image
    from runner_e2e.lint.job_state import JobState, Visible
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.shell.results import ShellResult
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Origin
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Node

__all__ = ["MAX_PROGRAM", "report_argument", "use_action"]

MAX_PROGRAM = 256_000
"""JavaScript actions of more characters, which are bundles of many packages, are not followed."""


def use_action(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
    """Runs the action that *step* uses; None when nothing is known of its outputs."""
    if uses.value.startswith("docker://"):
        return _use_image(runner, step, uses, visible)
    if uses.value.startswith("./"):
        return _use_local(runner, step, uses, visible)
    return use_remote(runner, step, uses, visible)


def _arguments(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> dict[str, Value]:
    return {
        key.value: runner.reader.value(item, visible.contexts, f"into the input `{key.value}` of `{uses.value}`")
        for key, item in entries(step.arguments)
    }


def _use_image(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
    """An image that the runner pulls: its inputs become variables, which ``docker run`` names without their values."""
    arguments = _arguments(runner, step, uses, visible)
    given = dict(visible.environment)
    for name, value in arguments.items():
        node = Block(step.arguments).get(name)
        if name not in {"args", "entrypoint"}:
            given |= input_variables({name: value})
        elif node is not None:
            report_argument(runner.run, runner.reader, node, value, subject="docker run")
    report_environment(runner, uses, given, action=uses.value, advice=UNKNOWN_ACTION)
    return _possibly((*arguments.values(), *visible.environment.values()))


def _use_local(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
    arguments = _arguments(runner, step, uses, visible)
    run = runner.run

    def unfollowed(reason: str) -> Dictionary | None:
        values = (*arguments.values(), *visible.environment.values())
        taints = frozenset(taint for value in values for taint in value.taints)
        report_unfollowed(run, runner.reader.origin(uses), taints, reason)
        return _possibly(values)

    try:
        found = _located(runner, uses.value)
    except ConfigurationError:
        return unfollowed(f"the action `{uses.value}` cannot be read")
    if found is None:
        folder = posixpath.normpath(uses.value)
        text = run.repository.text(f"{folder}/Dockerfile")
        if text is None:
            return unfollowed(f"the action `{uses.value}` is not in this repository")
        environment = {**visible.environment, **input_variables(arguments)}
        return _start(runner, read_dockerfile(text), folder, {}, environment, runner.reader.origin(uses))
    path, document = found
    if path in run.callees:
        return None  # it fails at the first run: the rule invalid-reference tells
    if len(run.callees) >= MAX_DEPTH:
        return unfollowed(f"`{uses.value}` is nested more than {MAX_DEPTH} deep")
    call = _LocalCall(runner, document, path, arguments, visible)
    run.callees.append(path)
    try:
        if call.action.kind == "composite":
            return _once(runner, call)
        if call.action.kind == "docker":
            return call.docker()
        if call.action.kind.startswith("node"):
            return call.javascript()
    finally:
        run.callees.pop()
    return unfollowed(f"nothing is known of actions that run with `{call.action.kind}`")


def _located(runner: StepRunner, uses: str) -> tuple[str, Document] | None:
    """The local action *uses*: at the root of the workspace, or where a step checked the repository out."""
    found = runner.run.repository.action(uses)
    for folder in runner.state.checkouts:
        inside = below(posixpath.normpath(uses), folder)
        if found is None and inside is not None:
            found = runner.run.repository.action(inside)
    return found


def _possibly(values: tuple[Value, ...]) -> Dictionary | None:
    """What a step gives whose program is not known: any output may hold a confidential value that it was given."""
    taints = [taint for value in values for taint in value.taints if taint.label.kind == "confidential"]
    return step_data({}, others=Textual(Value.of(taints).weakened(Confidence.LOW) | UNKNOWN)) if taints else None


def _once(runner: StepRunner, call: _LocalCall) -> Dictionary:
    """What a composite action does: for the same inputs in the same state of the job it is found out once."""
    run = runner.run
    if run.trace is not None:
        return call.composite()
    outer = call.visible.contexts
    key = (
        call.path,
        call.inputs,
        tuple(call.visible.environment.items()),
        tuple((name, outer[name]) for name in ("github", "matrix", "runner", "job", "strategy") if name in outer),
        _frozen(runner.state),
        run.artifacts.version,
    )
    now = ways_of((call.inputs,))
    known = run.known_calls.get(key)
    if isinstance(known, tuple):
        result, after, before = known
        _put_back(runner.state, after)
        again = begun_anew(result, before, now)
        assert isinstance(again, Dictionary)
        return again
    result = call.composite()
    run.known_calls[key] = (result, _kept(runner.state), now)
    return result


def _frozen(state: JobState) -> tuple[object, ...]:
    """All that *state* holds, as a key."""
    found: list[object] = []
    for each in fields(state):
        value = getattr(state, each.name)
        if isinstance(value, Files):
            value = value.contents
        found.append(tuple(value.items()) if isinstance(value, dict) else value)
    return tuple(found)


def _kept(state: JobState) -> dict[str, object]:
    return {
        each.name: dict(value) if isinstance(value := getattr(state, each.name), dict) else value
        for each in fields(state)
    }


def _put_back(state: JobState, kept: Mapping[str, object]) -> None:
    for name, value in kept.items():
        setattr(state, name, dict(value) if isinstance(value, dict) else value)


class _LocalCall:
    """One use of the action that *document*, at *path* of the repository, describes."""

    def __init__(
        self, runner: StepRunner, document: Document, path: str, arguments: Mapping[str, Value], visible: Visible
    ) -> None:
        self.runner = runner
        self.run: Run = runner.run
        self.reader: Reader = runner.run.reader(document)
        self.action = Action(document.root)
        self.path = path
        self.folder = posixpath.dirname(path)
        self.visible = visible
        self.values = self._values(arguments)
        self.inputs = Dictionary.of({name: of_value(value) for name, value in self.values.items()})

    def _values(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """The inputs: what the step gives, else the default. Those that are not declared are handed on as well."""
        left = {name.lower(): (name, value) for name, value in given.items()}
        found: dict[str, Value] = {}
        for declared in self.action.inputs:
            taken = left.pop(declared.name.lower(), None)
            if taken is not None:
                found[declared.name] = taken[1]
            else:
                note = f"into the input `{declared.name}` as its default"
                found[declared.name] = self.reader.value(declared.default, self.visible.contexts, note)
        return found | dict(left.values())

    def composite(self) -> Dictionary:
        """Runs the steps of a composite action."""
        outer, state = self.visible.contexts, self.runner.state
        location = posixpath.normpath(posixpath.join(WORKSPACE, self.folder))
        github = outer.get("github", NULL)
        if isinstance(github, Dictionary):
            github = Dictionary({**github.entries, "action_path": ("action_path", Known(location))}, github.others)
        contexts = {
            name: data for name, data in outer.items() if name not in {"secrets", "vars", "needs", "env", "steps"}
        }
        contexts |= {"inputs": self.inputs, "github": github}
        inherited = dict(self.visible.environment)
        for name in state.environment:
            if inherited.get(name) == state.environment[name]:
                del inherited[name]
        inherited["GITHUB_ACTION_PATH"] = Value.literal(location)
        scope = Scope(reader=self.reader, contexts=contexts, inherited=inherited)
        StepRunner(self.run, state, scope, use_action).run_all(self.action.steps)
        results = {**contexts, "steps": Dictionary.of(scope.outputs)}
        results["env"] = environment_data({**state.environment, **inherited})
        outputs: dict[str, Data] = {}
        for key, item in entries(self.action.outputs):
            note = f"into the output `{key.value}` of the action"
            outputs[key.value] = of_value(self.reader.value(Block(item).get("value"), results, note))
        return step_data(outputs)

    def docker(self) -> Dictionary | None:
        """``docker run`` gets entry points and arguments on its command line, and the names of variables."""
        contexts = {**self.visible.contexts, "inputs": self.inputs}
        arguments: dict[str, list[Value]] = {}
        for name in ("entrypoint", "pre-entrypoint", "post-entrypoint", "args"):
            for node in list_of(self.action.runs.get(name)):
                value = self.reader.value(node, contexts, f"into `{name}` of the action")
                report_argument(self.run, self.reader, node, value, subject="docker run")
                arguments.setdefault(name, []).append(value)
        environment = {**self.visible.environment, **input_variables(self.values)}
        for key, item in entries(self.action.runs.get("env")):
            environment[key.value] = self.reader.value(item, contexts, f"into the variable `{key.value}`")
        named = self.action.runs.scalar("image")
        if named is None:
            return _possibly(tuple(environment.values()))
        origin = self.reader.origin(named)
        if named.value.startswith("docker://"):
            return self._unfollowed(origin, environment, f"the image `{named.value}` is not in this repository")
        dockerfile = posixpath.normpath(posixpath.join(self.folder, named.value))
        text = self.run.repository.text(dockerfile)
        if text is None:
            return self._unfollowed(origin, environment, f"there is no readable file `{dockerfile}`")
        image = read_dockerfile(text)
        return _start(self.runner, image, posixpath.dirname(dockerfile), arguments, environment, origin)

    def javascript(self) -> Dictionary | None:
        """``pre``, ``main`` and ``post``, which node runs with the inputs as variables."""
        inside = self.runner.state.container
        environment = {**inside, **self.visible.environment, **input_variables(self.values)}
        result: Dictionary | None = None
        for name in ("pre", "main", "post"):
            node = self.action.runs.scalar(name)
            if node is None:
                continue
            origin = self.reader.origin(node)
            path = posixpath.normpath(posixpath.join(self.folder, node.value))
            script = self.run.repository.script(path)
            if script is None or len(script.text) > MAX_PROGRAM:
                reason = "is not in this repository" if script is None else "is too long to follow"
                unknown = self._unfollowed(origin, environment, f"the program `{path}` {reason}")
                result = result or unknown
                continue
            found = run_program(
                self.runner,
                script,
                language="javascript",
                environment=environment,
                name=posixpath.join(WORKSPACE, path),
            )
            if found is None:
                continue
            environment |= {f"STATE_{key}": value for key, value in found.states.items()}
            outputs = _took(self.runner, found)
            result = outputs if name == "main" or result is None else result
        return result

    def _unfollowed(self, origin: Origin, environment: Mapping[str, Value], reason: str) -> Dictionary | None:
        return _unfollowed(self.run, origin, environment, reason)


def _start(  # noqa: PLR0913, PLR0917 - an image, and what it is given
    runner: StepRunner,
    image: Image,
    context: str,
    arguments: Mapping[str, list[Value]],
    environment: Mapping[str, Value],
    origin: Origin,
) -> Dictionary | None:
    """What the entry points of an image do that is built from the folder *context*."""
    result = None
    for name in ("pre-entrypoint", "entrypoint", "post-entrypoint"):
        given = arguments.get(name, ())
        if name != "entrypoint" and not given:
            continue
        entry = tuple(value.constant for value in given) or image.entry or image.command
        if not entry or None in entry:
            result = result or _unfollowed(runner.run, origin, environment, "its entry point is not known")
            continue
        command = image.command if image.entry and not given else ()
        words = tuple(arguments.get("args", ())) or tuple(Value.literal(word) for word in command)
        found = run_in_image(
            runner,
            replace(image, entry=tuple(word or "" for word in entry)),
            context=context,
            arguments=words,
            origin=origin,
            environment=environment,
        )
        if found is not None:
            result = _took(runner, found)
    return result


def _took(runner: StepRunner, result: ShellResult) -> Dictionary:
    runner.run.take(result, runner.state.masks)
    return runner.after(result)


def _unfollowed(run: Run, origin: Origin, environment: Mapping[str, Value], reason: str) -> Dictionary | None:
    """Says that a program is not followed; what the step gives may hold what it was given."""
    values = tuple(environment.values())
    report_unfollowed(run, origin, frozenset(taint for value in values for taint in value.taints), reason)
    return _possibly(values)


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
