"""Actions of other repositories: what the models say of known ones, and what is given to unknown ones."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple

from runner_e2e.lint.action_models import AGENT, UNKNOWN_ACTION, ActionUse, Reach, models_of
from runner_e2e.lint.action_programs import input_variables, report_unfollowed, run_program
from runner_e2e.lint.artifacts import packed
from runner_e2e.lint.contexts import secret
from runner_e2e.lint.expression_data import NUMBER, Choice, Data, Dictionary, Known, Textual, of_value
from runner_e2e.lint.languages import ANALYSERS
from runner_e2e.lint.records import cached_property, dataclass
from runner_e2e.lint.shell.archives import labels_of, revealed
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.steps import step_data
from runner_e2e.lint.values import EMPTY, UNKNOWN, Confidence, Script, Value, merged
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.lint.action_models import ActionModel, ScriptInput
    from runner_e2e.lint.job_state import Visible
    from runner_e2e.lint.steps import StepRunner
    from runner_e2e.lint.values import Taint
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Node

__all__ = ["report_environment", "use_remote"]

_COMMENT = re.compile(r"#\s*(\S+)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPENING = "${{"
_POSIX = ("bash", "sh")
_CACHES = ("actions/cache", "actions/cache/restore", "actions/cache/save")
_ARTIFACTS = ("actions/upload-artifact", "actions/download-artifact", "actions/upload-artifact/merge")


class _Place(NamedTuple):
    """Characters ``[start, end)`` of an input, and the labels they have."""

    start: int
    end: int
    taints: frozenset[Taint]


class _Given:
    """What a step gives to one input: read when it is asked for, for most inputs are constant and reach nothing."""

    def __init__(self, runner: StepRunner, visible: Visible, action: str, key: str, node: Scalar) -> None:
        self.name = key.lower()
        self.node = node
        self._note = f"into the input `{key}` of `{action}`"
        self._runner = runner
        self._visible = visible

    @cached_property
    def script(self) -> Script:
        """The text, and the values that stand in it."""
        return self._runner.reader.script(self.node, self._visible.contexts, self._note)

    @cached_property
    def value(self) -> Value:
        """The text that the action reads."""
        if _OPENING not in self.node.value:
            return Value.literal(self.node.value)
        value, position = EMPTY, 0
        for hole in self.script.interpolations:
            value += Value.literal(self.script.text[position : hole.start]) + hole.value
            position = hole.end
        return value + Value.literal(self.script.text[position:])

    @property
    def taints(self) -> frozenset[Taint]:
        """Every label that it may have."""
        return self.value.taints

    def places(self) -> Iterator[_Place]:
        """Each expression that has labels."""
        if _OPENING in self.node.value:
            for hole in self.script.interpolations:
                if hole.value.taints:
                    yield _Place(hole.start, hole.end, hole.value.taints)


def use_remote(runner: StepRunner, step: Step, uses: Scalar, visible: Visible) -> Dictionary | None:
    """What the action of another repository, which *uses* names, does with what it is given; what the step gives."""
    use = ActionUse.parse(uses.value)
    given = tuple(_given(runner, step.arguments, visible, use.name))
    if use.name.lower() == "actions/checkout":
        _note_checkout(runner, given)
    elif use.name.lower() in _ARTIFACTS:
        _hand_on(runner, use.name.lower(), uses, given)
    elif use.name.lower() in _CACHES:
        _keep(runner, use.name.lower(), uses, given)
    models = models_of(use, major=use.major(_comment(uses)), custom=runner.run.repository.settings.actions)
    if not models:
        return _unknown(runner, use, uses, given, visible)
    call = _Call(runner=runner, use=use, uses=uses, given=given, visible=visible)
    outputs: dict[str, list[Data]] = {"*": []}
    for model in models:
        for name, data in call.apply(model, sure=len(models) == 1, step_id=step.id).items():
            outputs.setdefault(name, []).append(data)
    others = outputs.pop("*") or [Textual(UNKNOWN)]
    return step_data({name: Choice.of(found) for name, found in outputs.items()}, others=Choice.of(others))


def _comment(uses: Scalar) -> str:
    """The version that a comment behind ``uses: …@<commit>`` names, empty when there is none."""
    text = uses.source.text
    line = text[uses.end : text.find("\n", uses.end) % (len(text) + 1)]
    found = _COMMENT.search(line)
    return found[1] if found is not None else ""


def _given(runner: StepRunner, arguments: Node | None, visible: Visible, action: str) -> Iterator[_Given]:
    for key, node in entries(arguments):
        if isinstance(node, Scalar):
            yield _Given(runner, visible, action, key.value, node)


def _note_checkout(runner: StepRunner, given: tuple[_Given, ...]) -> None:
    """Remembers a folder of the workspace that holds this repository from now on."""
    values = {each.name: each.value.constant for each in given}
    folder = posixpath.normpath(values.get("path") or ".")
    if folder != "." and "repository" not in values and folder not in runner.state.checkouts:
        runner.state.checkouts = (*runner.state.checkouts, folder)


def _hand_on(runner: StepRunner, action: str, uses: Scalar, given: tuple[_Given, ...]) -> None:
    """Files that go into an artifact, or come out of one."""
    artifacts, inputs = runner.run.artifacts, {each.name: each.value for each in given}
    if action == "actions/upload-artifact/merge":
        artifacts.merge(inputs)
        return
    uploads = action == "actions/upload-artifact"
    origin = runner.reader.origin(uses)
    note = "uploaded as an artifact" if uploads else "downloaded from an artifact"
    hand_on = artifacts.upload if uploads else artifacts.download
    hand_on(inputs, runner.state, lambda value: value.through(origin, 0, len(uses.value), note))


def _keep(runner: StepRunner, action: str, uses: Scalar, given: tuple[_Given, ...]) -> None:
    """Files that come out of a cache, and those that go into it now or when the job ends."""
    artifacts, state, inputs = runner.run.artifacts, runner.state, {each.name: each.value for each in given}
    if action == "actions/cache/save":
        artifacts.save(inputs, state.files)
        return
    origin = runner.reader.origin(uses)
    artifacts.restore(inputs, state, lambda value: value.through(origin, 0, len(uses.value), "restored from a cache"))
    if action == "actions/cache" and {"path", "key"} <= inputs.keys():
        state.caches = (*state.caches, (inputs["path"], inputs["key"]))


def _unknown(
    runner: StepRunner, use: ActionUse, uses: Scalar, given: tuple[_Given, ...], visible: Visible
) -> Dictionary | None:
    """An action that is not known: what it is given is told, and its outputs may hold it."""
    if not runner.run.confidential:
        return None
    reach = Reach(surface=Surface.THIRD_PARTY, subject=use.name)
    taints: list[Taint] = []
    for each in given:
        for place in each.places():
            _report(runner, each, place, reach, advice=UNKNOWN_ACTION)
            taints += _confidential(place.taints)
    report_environment(runner, uses, visible.environment, action=use.name, advice=UNKNOWN_ACTION)
    if not taints:
        return None
    return step_data({}, others=Textual(Value.of(taints).weakened(Confidence.LOW) | UNKNOWN))


def report_environment(
    runner: StepRunner, uses: Scalar, environment: Mapping[str, Value], *, action: str, advice: str
) -> None:
    """Says which confidential variables the processes of an action inherit."""
    for name, value in environment.items():
        found = _confidential(value.taints)
        if found:
            runner.run.report(
                Sighting(
                    surface=Surface.THIRD_PARTY,
                    origin=runner.reader.origin(uses),
                    start=0,
                    end=len(uses.value),
                    taints=found,
                    subject=action,
                    detail=f"${name}",
                    advice=advice,
                )
            )


def _report(runner: StepRunner, given: _Given, place: _Place, reach: Reach, *, advice: str) -> None:
    origin = given.script.origin
    runner.run.report(
        Sighting(
            surface=reach.surface,
            origin=origin,
            start=place.start,
            end=place.end,
            taints=place.taints,
            subject=reach.subject,
            detail=given.name if reach.surface is Surface.THIRD_PARTY else origin.text[place.start : place.end],
            advice=advice,
        )
    )


@dataclass(frozen=True, kw_only=True)
class _Call:
    """One use of a known action."""

    runner: StepRunner
    use: ActionUse
    uses: Scalar
    given: tuple[_Given, ...]
    visible: Visible

    def apply(self, model: ActionModel, *, sure: bool, step_id: str) -> dict[str, Data]:
        """Reports what *model* says; gives the outputs. *sure*: no other model may hold instead."""
        outputs: dict[str, Data] = {}
        for each in self.given:
            self._input(each, model, sure=sure)
            if each.name in model.scripts:
                outputs |= self._script(each, model.scripts[each.name])
        self._environment(model)
        self._set_environment(model)
        if not step_id:
            return {}
        for name, carried in model.outputs.items():
            outputs.setdefault(name, self._carried(carried, f"steps.{step_id}.outputs.{name}"))
        return outputs

    def _input(self, given: _Given, model: ActionModel, *, sure: bool) -> None:
        confidential = self.runner.run.confidential
        for reach in model.reaches.get(given.name, ()):
            # A secret matters on a command line only, and there where it is a credential.
            if confidential or (reach.surface is Surface.ARGV and model.takes_credential(given.name)):
                self._reached(given, reach, model, sure=sure)
        for reach in model.variables.get(given.name, ()):
            self._named_variables(given, reach)
        if given.name in model.uploads:
            self._upload(given)
        if confidential and not model.knows(given.name):
            for place in given.places():
                self._give(given, place, UNKNOWN_ACTION)

    def _environment(self, model: ActionModel) -> None:
        """What the action does with the variables that it inherits."""
        receiver = AGENT if model.agent else model.environment_sent
        if receiver:
            report_environment(self.runner, self.uses, self.visible.environment, action=self.use.name, advice=receiver)
        if model.environment_argv:
            self._environment_on_command_line(model.environment_argv)

    def _give(self, given: _Given, place: _Place, receiver: str) -> None:
        """The action hands the text at *place* to *receiver*."""
        _report(self.runner, given, place, Reach(surface=Surface.THIRD_PARTY, subject=self.use.name), advice=receiver)

    def _reached(self, given: _Given, reach: Reach, model: ActionModel, *, sure: bool) -> None:
        for found in given.places():
            place = found if sure else found._replace(taints=_weaker(found.taints))
            if reach.surface is Surface.ARGV and not model.takes_credential(given.name):
                place = place._replace(taints=_confidential(place.taints))
                if not place.taints:
                    continue
            if reach.surface is Surface.THIRD_PARTY:
                self._give(given, place, reach.subject)
            else:
                _report(self.runner, given, place, reach, advice=model.advice.get(given.name, "action"))

    def _environment_on_command_line(self, program: str) -> None:
        """The action writes every variable, with its value, on the command line of *program*."""
        origin = self.runner.reader.origin(self.uses)
        for name, value in self.visible.environment.items():
            if value.taints:
                self.runner.run.report(
                    Sighting(
                        surface=Surface.ARGV,
                        origin=origin,
                        start=0,
                        end=len(self.uses.value),
                        taints=value.taints,
                        subject=program,
                        detail=f"{name}=…",
                        advice="action-environment",
                    )
                )

    def _named_variables(self, given: _Given, reach: Reach) -> None:
        """The action reads the variables that *given* names, and hands their values on."""
        for found in _NAME.finditer(given.node.value):
            value = self.visible.environment.get(found[0])
            if value is None or not value.taints:
                continue
            place = _Place(found.start(), found.end(), value.taints)
            if reach.surface is Surface.THIRD_PARTY:
                self._give(given, place, reach.subject)
            else:
                _report(self.runner, given, place, reach, advice="action")

    def _script(self, given: _Given, script: ScriptInput) -> dict[str, Data]:
        """Runs a program text; what it sets as outputs."""
        for place in given.places():
            if script.by == "argv":
                reach = Reach(surface=Surface.ARGV, subject=script.language)
                _report(self.runner, given, place, reach, advice="environment")
            elif script.by == "file":
                text = given.script.text[place.start : place.end]
                _report(self.runner, given, place, Reach(surface=Surface.SCRIPT, subject=text), advice="")
            elif script.by == "remote":
                self._give(given, place, "the remote machine")
        if script.by == "remote":
            return {}
        if script.language not in ANALYSERS and script.language not in _POSIX:
            reason = f"the {script.language} of `{self.use.name}` is not analysed"
            report_unfollowed(self.runner.run, given.script.origin, self._all_taints(), reason)
            return {}
        inputs = input_variables({each.name: each.value for each in self.given})
        environment = {**self.visible.environment, **inputs}
        result = run_program(self.runner, given.script, language=script.language, environment=environment)
        if result is None:
            return {}
        self.runner.run.take(result, self.runner.state.masks)
        outputs = self.runner.after(result).get("outputs")
        return dict(outputs.entries.values()) if isinstance(outputs, Dictionary) else {}

    def _all_taints(self) -> frozenset[Taint]:
        found = [each.taints for each in self.given] + [value.taints for value in self.visible.environment.values()]
        return Value.of(taint for taints in found for taint in taints).taints

    def _upload(self, given: _Given) -> None:
        """What the files at the paths of an input hold becomes public."""
        paths = given.value.constant
        if paths is None:
            return
        lines = [line.strip() for line in paths.splitlines()]
        left_out = [line for line in lines if line.startswith("!")]
        for path in lines:
            if not path or path.startswith(("!", "#")):
                continue
            files = packed(("\n".join((path, *left_out)),), self.runner.state.files.contents)
            for member in files.items():
                start = max(given.node.value.find(path), 0)
                within = revealed(member[1], self.runner.state.files.contents).taints
                taints = merged((*labels_of(member), *within))
                place = _Place(start, start + len(path), taints)
                reach = Reach(surface=Surface.FILE, subject=f"`{path}`")
                _report(self.runner, given, place, reach, advice=self.use.name)

    def _set_environment(self, model: ActionModel) -> None:
        for name, carried in model.environment.items():
            if isinstance(carried, tuple):
                value = self._of_inputs(carried)
                if value is not None:
                    self.runner.state.environment[name] = value
            elif carried == "secret":
                self.runner.state.environment[name] = secret(f"env.{name}")
            else:
                self.runner.state.environment[name] = UNKNOWN

    def _of_inputs(self, names: tuple[str, ...]) -> Value | None:
        """Text made of inputs, None when none of them is given; that of a sole one is the same text."""
        found = [each.value for each in self.given if each.name in names]
        if len(found) == 1:
            return found[0]
        return Value.of(taint for value in found for taint in value.taints) if found else None

    def _carried(self, carried: str | tuple[str, ...], label: str) -> Data:
        if isinstance(carried, tuple):
            value = self._of_inputs(carried)
            return of_value(value) if value is not None else Textual(UNKNOWN)
        if carried == "boolean":
            return Choice(tuple(Known(text) for text in ("true", "false", "")))
        if carried == "number":
            return NUMBER
        return Textual(secret(label) if carried == "secret" else UNKNOWN)


def _confidential(taints: frozenset[Taint]) -> frozenset[Taint]:
    return frozenset(taint for taint in taints if taint.label.kind == "confidential")


def _weaker(taints: frozenset[Taint]) -> frozenset[Taint]:
    return Value.of(taints).weakened(Confidence.MEDIUM).taints
