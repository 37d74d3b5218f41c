"""The product's own action in a workflow: what its ``setup`` masks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.expression_data import Dictionary, as_value, taints_of
from runner_e2e.lint.masks import case_part
from runner_e2e.lint.workflow import Action, Block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.job_state import Visible
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Value
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Scalar

__all__ = ["DEFAULT_INPUTS", "masks_of_setup", "own_command"]

DEFAULT_INPUTS = "selected-id, selected_id, id"
"""The default of the action's ``confidential-inputs``."""

_OWN = re.compile(r"[\w.-]+/runner-e2e-action(?:@.*)?", re.IGNORECASE)
_NAME = "runner-e2e"


def own_command(run: Run, uses: Scalar, step: Step) -> str:
    """``command`` of a use of this action, empty when the step uses another one."""
    if not (_OWN.fullmatch(uses.value) or (uses.value in {"./", "."} and _is_ours(run))):
        return ""
    return Block(step.arguments).text("command")


def _is_ours(run: Run) -> bool:
    """Whether the repository is this product's own, which uses its action as ``./``."""
    found = run.repository.action("./")
    return found is not None and Action(found[1].root).text("name") == _NAME


def masks_of_setup(reader: Reader, step: Step, visible: Visible) -> Iterator[Value]:
    """The texts that ``setup`` registers: the confidential inputs of a dispatch, whole, and the case part of an id.

    It reads them from the event file, which holds no inputs of a reusable workflow.
    """
    node = Block(step.arguments).scalar("confidential-inputs")
    names = DEFAULT_INPUTS if node is None else reader.value(node, visible.contexts, "").constant
    github = visible.contexts.get("github")
    event = github.get("event") if isinstance(github, Dictionary) else None
    inputs = event.get("inputs") if isinstance(event, Dictionary) else None
    if names is None or not isinstance(inputs, Dictionary):
        return
    for name in re.split(r"[\s,]+", names.strip()):
        data = inputs.get(name)
        if not taints_of(data):
            continue
        value = as_value(data)
        yield value
        part = case_part(value)
        if part.taints:
            yield part
