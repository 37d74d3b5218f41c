"""Steps in their order: environment, outputs, files and scripts, as the runner hands them from one to the next."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.contexts import OUTCOMES, WORKSPACE, Contexts, confidential
from runner_e2e.lint.exposed_files import checks_out_others, report_exposed
from runner_e2e.lint.expression_data import NULL, Choice, Data, Dictionary, Textual, as_value, of_value
from runner_e2e.lint.job_state import Visible
from runner_e2e.lint.languages import ANALYSERS, language_of
from runner_e2e.lint.own_action import masks_of_setup, own_command
from runner_e2e.lint.shell import ShellOptions
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.step_shell import StepShell, step_shell
from runner_e2e.lint.step_surfaces import report_arguments, report_masked_text, report_name, report_variables
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Hole, Value, by_place, normal
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.job_state import JobState, Scope
    from runner_e2e.lint.masks import Masks
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.shell.results import Files, ShellResult
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Node

__all__ = ["StepRunner", "UseAction", "environment_data", "read_environment", "step_data"]

UseAction: TypeAlias = "Callable[[StepRunner, Step, Scalar, Visible], Dictionary | None]"
"""Runs the action that a step uses, and gives what the step gives."""

_FIRST_STAND_IN = 0xE200


def environment_data(variables: Mapping[str, Value]) -> Data:
    """``env`` for these variables."""
    return Dictionary.of({name: of_value(value) for name, value in variables.items()}, others=Textual(UNKNOWN))


def step_data(outputs: Mapping[str, Data], *, others: Data = NULL) -> Dictionary:
    """What ``steps.<id>`` is; *others* is any output without a name here."""
    return Dictionary.of(
        {"outputs": Dictionary.of(outputs, others=others), "outcome": OUTCOMES, "conclusion": OUTCOMES}
    )


def read_environment(run: Run, reader: Reader, node: Node | None, contexts: Mapping[str, Data]) -> dict[str, Value]:
    """The variables of an ``env`` mapping, or of the expression that stands for one."""
    found: dict[str, Value] = {}
    if isinstance(node, Scalar):
        data = reader.data(node, contexts, "into the environment")
        if isinstance(data, Dictionary):
            found = {name: as_value(item) for name, item in data.entries.values()}
            for name in found.keys() & run.names.environment:
                found[name] = _named(name, found[name])
    for key, item in entries(node):
        note = f"into the environment variable `{key.value}`"
        value = reader.value(item, contexts, note)
        if key.value in run.names.environment and isinstance(item, Scalar):
            named = _named(key.value, value)
            value = value if named is value else named.through(reader.origin(item), 0, len(item.value), note)
        found[key.value] = value
    return found


def _named(name: str, value: Value) -> Value:
    """A variable that is confidential by its name, unless its value is known or labelled already."""
    if value.constants is not None or any(taint.label.kind == "confidential" for taint in value.taints):
        return value
    return confidential(f"env.{name}")


class StepRunner:
    """Runs the steps of one scope; sightings go to the run, effects to the state and to ``scope.outputs``."""

    def __init__(self, run: Run, state: JobState, scope: Scope, use_action: UseAction) -> None:
        self.run = run
        self.use_action = use_action
        self.state = state
        self.scope = scope
        self.reader = scope.reader

    def run_all(self, steps: tuple[Step, ...]) -> None:
        """Runs *steps* one after the other."""
        for step in steps:
            self.run.check_time()
            self._step(step)

    def _step(self, step: Step) -> None:
        visible = self._visible(step)
        runs = self.reader.condition(step.condition, visible.contexts)
        outputs: Dictionary | None = step_data({}) if runs is False else None
        if runs is not False:
            before = (dict(self.state.environment), self.state.files, self.state.masks)
            report_variables(self.run, visible.environment, self.state.masks)
            report_exposed(self.run, self.reader, step, self.state, visible)
            if step.run is not None:
                outputs = self._script(step, step.run, visible)
            elif step.uses is not None:
                outputs = self._action(step, step.uses, visible)
            if runs is None:
                self._may_not_have_run(*before)
                outputs = _optional(outputs) if outputs is not None else None
        if step.id:
            self.scope.outputs[step.id.lower()] = outputs or step_data({}, others=Textual(UNKNOWN))

    def _visible(self, step: Step) -> Visible:
        environment = {**self.state.environment, **self.scope.inherited}
        contexts = self._contexts(environment)
        own = read_environment(self.run, self.reader, step.env, contexts) if step.env is not None else {}
        if own:
            environment.update(own)
            contexts = self._contexts(environment)
        return Visible(environment=environment, contexts=contexts)

    def _contexts(self, environment: Mapping[str, Value]) -> Contexts:
        later: dict[str, Callable[[], Data]] = {
            "env": lambda: environment_data(environment),
            "steps": lambda: Dictionary.of(self.scope.outputs),
        }
        return Contexts(self.scope.contexts, later)

    def _action(self, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
        state = self.state
        if self.scope.named:
            report_name(self.run, self.reader, step, None, visible.contexts, state.masks)
        report_arguments(self.run, self.reader, step, visible.contexts, state.masks)
        outputs = self.use_action(self, step, uses, visible)
        state.holds_others = state.holds_others or checks_out_others(step, uses)
        if own_command(self.run, uses, step) == "setup":
            state.masks = state.masks.with_texts(masks_of_setup(self.reader, step, visible))
        return outputs

    def _may_not_have_run(self, environment: dict[str, Value], files: Files, masks: Masks) -> None:
        state = self.state
        state.masks = state.masks.joined(masks)
        for name, value in state.environment.items():
            state.environment[name] = value | environment.get(name, EMPTY)
        if state.files is not files:
            contents = dict(state.files.contents)
            for path, value in files.contents.items():
                contents[path] = contents[path] | value if path in contents else value
            state.files = replace(state.files, contents=contents)

    def _script(self, step: Step, node: Scalar, visible: Visible) -> Dictionary | None:
        run, state = self.run, self.state
        script = self.reader.script(node, visible.contexts, "into the text of the script")
        if self.scope.named:
            report_name(run, self.reader, step, script, visible.contexts, state.masks)
        report_masked_text(run, script, state.masks)
        for hole in script.interpolations:
            if hole.value.taints:
                run.report(
                    Sighting(
                        surface=Surface.SCRIPT,
                        origin=script.origin,
                        start=hole.start,
                        end=hole.end,
                        taints=hole.value.taints,
                        subject=script.text[hole.start : hole.end],
                    )
                )
        shell, arguments = self._shell(step, visible)
        directory = self._directory(step, visible)
        unnamed = self._unnamed(script.text, visible)
        language = language_of(shell.language) if shell.posix is None else ""
        given = (*arguments, state.path, *unnamed.values())
        found = {**state.container, **visible.environment}
        if language not in ("", *ANALYSERS) or not run.in_reach(script, found, state.files, given):
            return None
        environment = {**run.process_environment, **found, **unnamed}
        environment["PATH"] = state.path + environment["PATH"]
        options = ShellOptions(
            shell=shell.posix or "bash",
            language=language or "",
            errexit=shell.errexit,
            pipefail=shell.pipefail,
            deadline=run.deadline,
            directory=directory,
            trace=run.trace is not None,
        )
        result = run.repetitions.analyse(
            script,
            environment=environment,
            positional=arguments,
            files=state.files,
            checkouts=state.checkouts,
            options=options,
        )
        run.take(result, state.masks)
        return self.after(result)

    def after(self, result: ShellResult) -> Dictionary:
        """Takes over what a program of this step left: variables, files, folders of the path; gives its outputs."""
        state = self.state
        for name, value in result.environment_writes.items():
            if name == "*":
                state.any_variable |= value
            else:
                state.environment[name] = _named(name, value) if name in self.run.names.environment else value
                if value.taints and name not in state.from_file:
                    state.from_file = (*state.from_file, name)
        state.files = result.files
        state.masks = state.masks.with_texts(result.masks).perhaps(result.possible_masks)
        for path in result.paths:
            state.path = path + Value.literal(":") + state.path
        self._report_outputs(result)
        outputs = {name: of_value(value) for name, value in result.outputs.items() if name != "*"}
        rest = result.outputs.get("*")
        # A program that is not followed may write an output as well: an absent one is not known to be empty.
        others = Textual(UNKNOWN) if rest is None else Textual(rest.weakened(Confidence.MEDIUM) | UNKNOWN)
        return step_data(outputs, others=others)

    def _report_outputs(self, result: ShellResult) -> None:
        """Reports outputs that no mask hides when the step ends, where they are written."""
        for name, value in result.outputs.items():
            readable = self.state.masks.uncovered(value)
            for place, taints in by_place(taint for taint in readable if taint.label.kind == "confidential"):
                self.run.report(
                    Sighting(
                        surface=Surface.OUTPUT,
                        origin=place.origin,
                        start=place.start,
                        end=place.end,
                        taints=taints,
                        subject=f"the output `{name}` of the step" if name != "*" else "an output of the step",
                        advice="step",
                    )
                )

    def _setting(self, step: Step, name: str) -> Scalar | None:
        own = step.scalar(name)
        if own is not None:
            return own
        return next((found for block in self.scope.defaults if (found := block.scalar(name)) is not None), None)

    def _shell(self, step: Step, visible: Visible) -> tuple[StepShell, tuple[Value, ...]]:
        """The shell of a step and the arguments that its template gives to the script."""
        node = self._setting(step, "shell")
        if node is None:
            return step_shell(None, windows=self.state.windows), ()
        value = self.reader.value(node, visible.contexts, "into the command line of the shell")
        program = (node.value.split() or ["shell"])[0]
        self._whole(node, value, subject=program, advice="environment")
        holes = [piece for piece in value.texts[0] if isinstance(piece, Hole)]
        marks = iter(range(_FIRST_STAND_IN, _FIRST_STAND_IN + len(holes)))
        shell = step_shell("".join(chr(next(marks)) if isinstance(piece, Hole) else piece for piece in value.texts[0]))
        words = (
            normal(holes[ord(char) - _FIRST_STAND_IN] if ord(char) >= _FIRST_STAND_IN else char for char in word)
            for word in shell.arguments
        )
        return shell, tuple(Value((word,)) for word in words)

    def _directory(self, step: Step, visible: Visible) -> Value:
        node = self._setting(step, "working-directory")
        if node is None:
            return Value.literal(WORKSPACE)
        value = self.reader.value(node, visible.contexts, "into the working directory")
        if self.state.in_container:  # `docker exec --workdir`
            self._whole(node, value, subject="docker exec", advice="runner")
        if value.constant is None:
            return Value.literal(f"{WORKSPACE}/") + value
        return Value.literal(posixpath.normpath(posixpath.join(WORKSPACE, value.constant)))

    def _whole(self, node: Scalar, value: Value, *, subject: str, advice: str) -> None:
        """Reports a scalar that becomes part of a command line as a whole."""
        if value.taints:
            self.run.report(
                Sighting(
                    surface=Surface.ARGV,
                    origin=self.reader.origin(node),
                    start=0,
                    end=len(node.value),
                    taints=value.taints,
                    subject=subject,
                    detail=node.value,
                    advice=advice,
                )
            )

    def _unnamed(self, text: str, visible: Visible) -> dict[str, Value]:
        """Text of unknown names in ``$GITHUB_ENV`` may be any variable that the script reads and nobody sets."""
        if not self.state.any_variable.taints:
            return {}
        value = self.state.any_variable.weakened(Confidence.MEDIUM) | EMPTY
        names = set(_VARIABLE.findall(text)) - self.run.process_environment.keys() - visible.environment.keys()
        return dict.fromkeys(sorted(names), value)


_VARIABLE = re.compile(r"\$\{?[#!]?([A-Za-z_][A-Za-z0-9_]*)")


def _optional(step: Dictionary) -> Dictionary:
    """What a step gives that may have been skipped: each output may be empty too."""
    outputs = step.get("outputs")
    if not isinstance(outputs, Dictionary):
        return step
    kept = {name: Choice.of((item, NULL)) for name, item in outputs.entries.values()}
    return step_data(kept, others=outputs.others)
