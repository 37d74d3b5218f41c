"""What the token of a job may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from runner_e2e.lint.paid.frames import Frame
    from runner_e2e.lint.paid.model import PaidJob
    from runner_e2e.yaml_positions import Node

__all__ = ["Grants", "granted"]


@dataclass(frozen=True, kw_only=True)
class Grants:
    """The ``permissions`` that count for a job: the *node* and its *frame*, and what may be written."""

    frame: Frame
    node: Node
    writes: tuple[tuple[str, Node], ...]


def granted(job: PaidJob) -> Grants | None:
    """What *job* may do: what it says itself, else its workflow, else the job that calls it; None when nobody says."""
    current: PaidJob | None = job
    while current is not None:
        for node in (current.job.get("permissions"), current.workflow.get("permissions")):
            if node is not None:
                return Grants(frame=current.frame, node=node, writes=_writes(node))
        current = current.caller
    return None


def _writes(node: Node) -> tuple[tuple[str, Node], ...]:
    if isinstance(node, Scalar):
        return (("everything", node),) if node.value == "write-all" else ()
    return tuple(
        (key.value, key) for key, value in entries(node) if isinstance(value, Scalar) and value.value == "write"
    )
