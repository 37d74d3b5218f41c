"""A use of a local action or workflow that is not there, or that does not take what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.references import faults_of
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

EXPLANATION = """\
A workflow or an action refers to something of its own repository that does not fit: an action or a reusable workflow
that is not there, an input that it does not have or that is required and missing, a use that goes in a circle, a
Dockerfile that is not there, or a kind of action that no runner knows.

What is not there cannot be followed, so the lint is blind behind it. A step before may bring it: a checkout of another
repository, a submodule, or a script that names the folder. Such references are not reported."""


def inspect(run: Run, document: Document) -> Iterator[Finding]:
    """A finding for each reference of *document* that does not hold."""
    reader = run.reader(document)
    for fault in faults_of(run.repository, document):
        yield Finding(
            rule="invalid-reference",
            level="warning",
            confidence=Confidence.HIGH,
            span=reader.origin(fault.node).span(0, len(fault.node.value)),
            message=fault.message,
            why=fault.why,
            fix=fault.fix,
        )


RULE = Rule(
    id="invalid-reference",
    summary="a local action or workflow that is not there, or is given wrong inputs",
    explanation=EXPLANATION,
    inspect=inspect,
    level="warning",
    security_severity=3.0,
)
