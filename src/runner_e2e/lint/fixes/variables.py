"""Names for variables that a repair brings in: telling, and free where they are used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.workflow import Workflow, entries, is_action
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from runner_e2e.lint.fixes.scripts import StepScript

__all__ = ["entry_with", "free_name", "is_name", "own_variables"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9]+")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_INDEX = re.compile(r"\[\s*'([^']*)'\s*\]")
_BRACES = re.compile(r"^\$\{\{\s*|\s*\}\}$")
_LONGEST = 40


def is_name(text: str) -> bool:
    """Whether *text* can be the name of a shell variable."""
    return _NAME.fullmatch(text) is not None


def own_variables(script: StepScript) -> dict[str, Scalar]:
    """Variables that the step itself sets, and their texts; those that are no scalars are left out."""
    return {key.value: value for key, value in entries(script.step.env) if isinstance(value, Scalar)}


def entry_with(script: StepScript, text: str) -> str | None:
    """The variable of the step's own ``env`` whose whole text is *text*, spaces aside."""
    wanted = _BRACES.sub("", text)
    found = (name for name, value in own_variables(script).items() if _BRACES.sub("", value.value) == wanted)
    return next((name for name in found if is_name(name)), None)


def free_name(script: StepScript, expression: str) -> str:
    """A name made of the words of *expression* that neither ``env`` around the step nor the step itself has.

    Contexts stay part of the name (``INPUTS_VERSION``): programs read variables such as ``VERSION`` or ``GH_TOKEN``.
    """
    words = _WORD.findall(_LITERAL.sub(" ", _INDEX.sub(r".\1", expression)))
    name = "_".join(words).upper()[:_LONGEST].strip("_")
    name = name.removeprefix("GITHUB_") or "VALUE"
    if name[0].isdigit():
        name = f"VALUE_{name}"
    taken = _taken(script)
    number = 1
    while (chosen := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return chosen


def _taken(script: StepScript) -> set[str]:
    """Names in upper case: variables of Windows have no case."""
    root, job = script.document.root, script.located.job
    holders = [script.step.env, job.env if job is not None else None]
    if not is_action(root):
        holders.append(Workflow(root).env)
    names = {key.value for holder in holders for key, _ in entries(holder)}
    names.update(_NAME.findall(script.text))
    return {name.upper() for name in names}
