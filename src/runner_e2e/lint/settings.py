"""Which values are confidential: by name, from the catalog or by default."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner_e2e.cells.model import Confidential

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CATALOG", "Names", "is_paid", "read_names"]

CATALOG = ".github/runner-e2e.yml"
"""Where a repository keeps its catalog, whose ``confidential`` section the lint reads."""

# A workflow is paid when it says so in a comment, or when it uses this action.
_PAID = re.compile(r"^\s*#\s*runner-e2e:\s*paid\b|\buses:\s*[\"']?[\w.-]+/runner-e2e-action@", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Names whose values are confidential, all compared without case.

    *inputs* of a dispatch or a call, *paid_inputs* in paid workflows only, keys of a *matrix*, *environment*
    variables.
    """

    inputs: frozenset[str] = frozenset(Confidential().inputs)
    paid_inputs: frozenset[str] = frozenset({"id"})
    matrix: frozenset[str] = frozenset(Confidential().matrix)
    environment: frozenset[str] = field(default=frozenset(Confidential().environment))

    def inputs_of(self, text: str) -> frozenset[str]:
        """Confidential inputs (lower case) of the workflow or action whose file holds *text*."""
        names = self.inputs | self.paid_inputs if is_paid(text) else self.inputs
        return frozenset(name.lower() for name in names)


def is_paid(text: str) -> bool:
    """Whether a workflow is marked paid: a comment ``# runner-e2e: paid``, or a step that uses this action."""
    return "runner-e2e" in text and _PAID.search(text) is not None


def read_names(root: Path) -> Names:
    """The names of the repository at *root*: those of its catalog, else the defaults.

    Raises :class:`~runner_e2e.errors.ConfigurationError` when there is a catalog that is not valid.
    """
    path = root / CATALOG
    if not path.is_file():
        return Names()
    from runner_e2e.cells.catalog import read_catalog

    confidential = read_catalog(path).confidential
    return Names(
        inputs=frozenset(confidential.inputs),
        matrix=frozenset(confidential.matrix),
        environment=frozenset(confidential.environment),
    )
