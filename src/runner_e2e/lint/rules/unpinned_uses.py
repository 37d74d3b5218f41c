"""Code of others is named by its commit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding, Rule
from runner_e2e.lint.fixes.pins import repair
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.frames import span_of
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import entries
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.lint.paid.model import PaidWorkflow
    from runner_e2e.lint.repository import Document
    from runner_e2e.lint.run import Run

__all__ = ["RULE"]

ID = "unpinned-uses"
EXPLANATION = """\
An action, a workflow of another repository, or a container image is not named by its commit or digest.

A tag or a branch can be moved to other code, by its owner or by whoever took over the account, and the next run
executes it: in a paid job beside the keys. Write the full commit, and the version in a comment, which update tools
keep: `uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1`; `docker://alpine@sha256:…`.

In a workflow that pays, and in what it calls, this is an error. Elsewhere it is a note, and shown with `--profile
all` only: other linters report it too."""

_COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_DIGEST = re.compile(r"@sha256:[0-9a-fA-F]{64}$")


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for each `uses` that may be other code tomorrow."""
    paid = paid_workflow(run, document)
    if paid is not None:
        return _paid(paid)
    return [
        Finding(
            rule=ID,
            level="note",
            confidence=Confidence.HIGH,
            span=span_of(uses, document.path),
            message=message,
            why="a tag or a branch can be moved to other code",
            fix=_fix(uses.value),
            profile="all",
        )
        for uses in _written(document)
        if (message := _unpinned(uses.value))
    ]


def _paid(paid: PaidWorkflow) -> Iterable[Finding]:
    report = Report(ID, "a tag or a branch can be moved to other code, which then runs beside the keys")
    for job in paid.jobs:
        used = [(job.frame, job.job.uses)]
        used += [(step.frame, step.step.uses) for leaf in job.leaves for step in leaf.chain]
        for frame, uses in used:
            if uses is not None and (message := _unpinned(uses.value)):
                report.add(frame, uses, message, fix=_fix(uses.value))
    return report.findings.values()


# A quick look: most files pin everything, or are not asked.
_CANDIDATE = re.compile(r"uses[\"']?\s*:\s*[&!\"']*(?!\./)[^\s#]*?(?:@(?![0-9a-f]{40}\b)|[\s\"'])")


def _written(document: Document) -> Iterator[Scalar]:
    """Every `uses` of a workflow or an action, if one of them may be unpinned."""
    root = document.root
    if not isinstance(root, Mapping) or _CANDIDATE.search(document.text) is None:
        return
    runs = root.get("runs")
    holders = [job for _, job in entries(root.get("jobs"))] if not isinstance(runs, Mapping) else [runs]
    for holder in holders:
        if isinstance(holder, Mapping):
            steps = holder.get("steps")
            for block in (holder, *(steps if isinstance(steps, Sequence) else ())):
                uses = block.get("uses") if isinstance(block, Mapping) else None
                if isinstance(uses, Scalar):
                    yield uses


def _unpinned(uses: str) -> str:
    """What is wrong with a `uses`; empty when it is local or pinned."""
    if uses.startswith(("./", "../")) or "${{" in uses:
        return ""
    if uses.startswith("docker://"):
        return "" if _DIGEST.search(uses) else f"`{uses}` is not pinned to a digest"
    name, at, ref = uses.partition("@")
    if not at:
        return f"`{name}` names no version"
    return "" if _COMMIT.fullmatch(ref) else f"`{uses}` is not pinned to a commit"


def _fix(uses: str) -> str:
    if uses.startswith("docker://"):
        return "add the digest: `docker://IMAGE@sha256:…`"
    name, _, ref = uses.partition("@")
    return f"write the commit that it stands for today: `{name}@COMMIT{f' # {ref}' if ref else ''}`"


RULE = Rule(
    id=ID,
    summary="an action that is not named by its commit",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=repair,
    profile="paid",
    security_severity=7.0,
)
