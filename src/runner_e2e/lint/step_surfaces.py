"""What the runner itself shows of a step: its name on the page of the run, and the header of its log.

The header holds the expanded script, every value of ``with:`` and every variable of ``env:``, as they are before the
step runs; what was registered to be masked until then is hidden. The name of a step is made before the first step
unless it needs what only steps know.
Source: ``ActionRunner.cs``, ``ScriptHandler.cs`` and ``Handler.cs`` of https://github.com/actions/runner.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.expression import Call, Context, walk
from runner_e2e.lint.masks import NO_MASKS, Masks
from runner_e2e.lint.run import HEADER
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import by_place, merged
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.lint.expression_data import Data
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Origin, Script, Taint, Value
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Node

__all__ = ["MASK", "report_arguments", "report_masked_text", "report_name", "report_text", "report_variables"]

MASK = "the script that is to mask it"

_LATE = frozenset({"steps", "env", "job", "runner", "secrets", "hashfiles"})
_FIRST_LINE = re.compile(r"\s*[^\r\n]*")


def report_name(  # noqa: PLR0913, PLR0917 - a step, and what is known of it
    run: Run, reader: Reader, step: Step, script: Script | None, contexts: Mapping[str, Data], masks: Masks
) -> None:
    """Reports what the name of a step shows, be it written or the first line of its *script*.

    A mask helps only where the name is made when the step begins, since something in it is not known before.
    """
    node = step.scalar("name")
    if node is not None:
        report_text(run, reader, node, contexts, subject="the name of the step", masks=_then(reader, node, masks))
    elif script is not None and script.interpolations and step.run is not None:
        first = _FIRST_LINE.match(script.text)
        end = first.end() if first is not None else 0
        known = _then(reader, step.run, masks)
        for hole in script.interpolations:
            if hole.start < end and (taints := _readable(hole.value, known)):
                at = (script.origin, hole.start, hole.end)
                _report(run, Surface.NAME, *at, taints=taints, subject="the default name of the step")


def _then(reader: Reader, node: Scalar, masks: Masks) -> Masks:
    """The masks of the time at which *node* is expanded for a name."""
    for _, _, expression in reader.expressions(node):
        for part in walk(expression) if expression is not None else ():
            name = part.name if isinstance(part, Context) else part.function if isinstance(part, Call) else ""
            if name in _LATE:
                return masks
    return NO_MASKS


def report_text(  # noqa: PLR0913 - a text, and what it is
    run: Run,
    reader: Reader,
    node: Node | None,
    contexts: Mapping[str, Data],
    *,
    subject: str,
    masks: Masks = NO_MASKS,
) -> None:
    """Reports every expression of a scalar that becomes *subject*."""
    if not isinstance(node, Scalar) or "${{" not in node.value:
        return
    script = reader.script(node, contexts, f"into {subject}")
    for hole in script.interpolations:
        if taints := _readable(hole.value, masks):
            _report(run, Surface.NAME, script.origin, hole.start, hole.end, taints=taints, subject=subject)


def report_variables(run: Run, environment: Mapping[str, Value], masks: Masks) -> None:
    """Reports each variable that the header lists and no mask hides, where it got its value."""
    for name, value in environment.items():
        if not value.taints:
            continue
        for place, taints in by_place(_readable(value, masks)):
            at = (place.origin, place.start, place.end)
            detail = f"`env:` with the variable `{name}`"
            _report(run, Surface.LOG, *at, taints=taints, subject=HEADER, detail=detail)


def report_arguments(run: Run, reader: Reader, step: Step, contexts: Mapping[str, Data], masks: Masks) -> None:
    """Reports each value of ``with:`` that the header lists and no mask hides."""
    if not run.confidential:
        return
    for key, node in entries(step.arguments):
        if not isinstance(node, Scalar) or "${{" not in node.value:
            continue
        note = f"into the input `{key.value}`"
        script = reader.script(node, contexts, note)
        for hole in script.interpolations:
            taints = _readable(hole.value, masks)
            if taints:
                _report(
                    run,
                    Surface.LOG,
                    script.origin,
                    hole.start,
                    hole.end,
                    taints=taints,
                    subject=HEADER,
                    detail=f"`with:` with the input `{key.value}`",
                )


def report_masked_text(run: Run, script: Script, masks: Masks) -> None:
    """Reports an expression behind ``::add-mask::``: the header shows the expanded script before it runs."""
    for hole in script.interpolations:
        line = script.text[script.text.rfind("\n", 0, hole.start) + 1 : hole.start]
        if "::add-mask::" in line and (taints := _readable(hole.value, masks)):
            _report(run, Surface.LOG, script.origin, hole.start, hole.end, taints=taints, subject=MASK)


def _readable(value: Value, masks: Masks) -> frozenset[Taint]:
    return frozenset(taint for taint in masks.uncovered(value) if taint.label.kind == "confidential")


def _report(  # noqa: PLR0913 - a place, and what it is
    run: Run,
    surface: Surface,
    origin: Origin,
    start: int,
    end: int,
    *,
    taints: Iterable[Taint],
    subject: str,
    detail: str = "",
) -> None:
    run.report(
        Sighting(
            surface=surface,
            origin=origin,
            start=start,
            end=end,
            taints=merged(taints),
            subject=subject,
            detail=detail or origin.text[start:end],
        )
    )
