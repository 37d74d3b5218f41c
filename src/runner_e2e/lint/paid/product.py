"""Which `uses:` is this action, and what it is told to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.workflow import Block
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.workflow import Step

__all__ = ["UNKNOWN_COMMAND", "command_of", "is_product_action", "is_product_name"]

UNKNOWN_COMMAND = "?"
"""The command of a step whose command is an expression, or missing."""

_NAME = re.compile(r"[\w.-]+/runner-e2e-action(?:/[^@]*)?@.*", re.IGNORECASE)


def is_product_name(uses: str) -> bool:
    """Whether *uses* names this action, of any owner: forks and mirrors count."""
    return _NAME.fullmatch(uses) is not None


def is_product_action(document: Document) -> bool:
    """Whether the ``action.yml`` in *document* is this action: in its own repository, or as a copy of it."""
    root = Block(document.root)
    return root.text("name") == "runner-e2e" and "scripts/enter.py" in document.text


def command_of(step: Step) -> str:
    """What a step that uses this action is told to do."""
    node = Block(step.arguments).get("command")
    if not isinstance(node, Scalar) or "${{" in node.value:
        return UNKNOWN_COMMAND
    return node.value.strip()
