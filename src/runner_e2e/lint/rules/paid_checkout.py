"""What a paid job checks out was decided before, and leaves no token behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Rule
from runner_e2e.lint.fixes.hygiene import leave_no_token
from runner_e2e.lint.paid.build import paid_workflow
from runner_e2e.lint.paid.findings import Report
from runner_e2e.lint.paid.gates import gate_step
from runner_e2e.lint.paid.scripts import commands_of
from runner_e2e.lint.paid.sources import Kind, constants, decided_outside, sources
from runner_e2e.lint.values import Confidence
from runner_e2e.lint.workflow import Block
from runner_e2e.yaml_positions import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner_e2e.lint.finding import Finding, Fix
    from runner_e2e.lint.paid.model import PaidStep, PaidWorkflow
    from runner_e2e.lint.paid.scripts import ScriptCommand
    from runner_e2e.lint.paid.sources import Source
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.lint.run import Run
    from runner_e2e.yaml_positions import Node

__all__ = ["RULE"]

ID = "paid-checkout"
EXPLANATION = """\
A paid job checks out code before the gate, at a place that somebody can choose or move, or keeps its token.

- The checkout stands after the gate: what is checked out can change what later steps do.
- `ref:` is a commit: the one of the run (no `ref:`, or `github.sha`), the one that this action resolved
  (`needs.gate.outputs.target-sha`), or 40 hexadecimal digits. A raw input, a branch or a tag is not: it may name a
  fork's commit, and it may move between the gate and the checkout. A value that comes out of an input over `env:`, an
  output or a call is still the input. One that a script made of it is reported with medium confidence.
- `persist-credentials: false`: otherwise the token stays in `.git/config`, where the agent finds it.
- `repository:` is this one, or another one that a constant names, at a commit.

`git` and `gh` in scripts are looked at too, where a variable or an expression names what they get."""

_PERSISTS = "the checkout leaves its token in `.git/config`"
_CHECKOUT = re.compile(r"actions/checkout(?:@|$)", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_FIX_REF = "check out the resolved commit, an output of the gate job: `ref: ${{ needs.gate.outputs.target-sha }}`"
_GIT = frozenset(("checkout", "clone", "fetch", "pull", "reset", "switch", "worktree"))


def inspect(run: Run, document: Document) -> Iterable[Finding]:
    """Findings for the checkouts of paid jobs."""
    paid = paid_workflow(run, document)
    report = Report(ID)
    if paid is None:
        return ()
    for job in paid.paying:
        gate = gate_step(job)
        behind = gate is None
        for leaf in job.leaves:
            behind = behind or leaf is gate
            if leaf.step.uses is not None and _CHECKOUT.match(leaf.step.uses.value):
                _checkout(report, paid, leaf)
                if not behind and gate is not None:
                    _too_early(report, leaf, gate)
            elif leaf.step.run is not None:
                for command in commands_of(leaf, paid.repository):
                    _command(report, paid, leaf, command)
    return report.findings.values()


def _too_early(report: Report, leaf: PaidStep, gate: PaidStep) -> None:
    report.add(
        leaf.frame,
        leaf.anchor,
        "the checkout stands before the gate",
        why="what is checked out can change what later steps do, also when this run may not pay",
        fix="move it behind the gate",
        way=[gate.frame.place(gate.anchor, "the gate")],
    )


def _checkout(report: Report, paid: PaidWorkflow, leaf: PaidStep) -> None:
    given = Block(leaf.step.arguments)
    persists = given.get("persist-credentials")
    if _keeps_token(persists):
        report.add(
            leaf.frame,
            persists if persists is not None else leaf.anchor,
            _PERSISTS,
            why="`persist-credentials` is true unless it is set, and the agent can read the file",
            fix="add `persist-credentials: false` under `with:`",
        )
    ref = given.scalar("ref")
    if ref is not None:
        _place(report, paid, leaf, ref, is_ref=True)
    repository = given.scalar("repository")
    if repository is not None:
        _place(report, paid, leaf, repository, is_ref=False)
        foreign = "${{" not in repository.value
        if foreign and (ref is None or "${{" in ref.value):
            report.add(
                leaf.frame,
                repository,
                f"`{repository.value}` is checked out at no fixed commit",
                why="its default branch can change between two runs",
                fix="add `ref:` with the full commit",
                level="warning",
            )


def _keeps_token(node: Node | None) -> bool:
    """As the action reads it: only the text `true`, in any case, and nothing at all, keep it."""
    if not isinstance(node, Scalar) or node.data is None or not node.value:
        return True
    texts = constants(node)
    return texts is None or any(not text or text.strip().upper() == "TRUE" for text in texts)


def _place(report: Report, paid: PaidWorkflow, leaf: PaidStep, node: Scalar, *, is_ref: bool) -> None:
    """What is checked out is decided by the default branch, or by this action."""
    what = "the checkout" if is_ref else "the repository of the checkout"
    for source in sources(node, leaf.scope, note=f"decides {what}"):
        if decided_outside(source, paid):
            _raw(report, leaf, node, source, what)
        elif source.kind is Kind.LITERAL and is_ref and source.name and not _COMMIT.fullmatch(source.name.strip()):
            report.add(
                leaf.frame,
                node,
                f"the checkout is at `{source.name}`, which is no commit",
                why="a branch or a tag can move between the gate and the checkout",
                fix="leave `ref:` out for the commit of the run, or name the resolved commit",
                level="warning",
            )
        elif source.kind is Kind.OURS and is_ref and source.output != "target-sha":
            report.add(
                leaf.frame,
                node,
                f"the checkout is at `{source.name}`, which is no commit",
                why="a branch can move between the gate and the checkout",
                fix="check out `target-sha`, the commit that the gate resolved",
                level="warning",
                way=source.trail,
            )
        elif source.kind is Kind.UNKNOWN:
            report.add(
                leaf.frame,
                node,
                f"{what} comes from `{source.name}`, which is not known here",
                why="it may be a raw input, or name a branch that moves",
                fix=_FIX_REF,
                level="warning",
                confidence=Confidence.MEDIUM,
            )


def _raw(report: Report, leaf: PaidStep, node: Scalar, source: Source, what: str) -> None:
    made = f", which `{source.through}` makes a text of" if source.through else ""
    report.add(
        leaf.frame,
        node,
        f"{what} is decided by `{source.name}`{made}",
        why="it may name another branch, a fork's commit, or something that moves after the gate",
        fix=_FIX_REF,
        level="warning" if source.through else "error",
        confidence=Confidence.MEDIUM if source.through else Confidence.HIGH,
        way=source.trail,
    )


def _command(report: Report, paid: PaidWorkflow, leaf: PaidStep, command: ScriptCommand) -> None:
    texts = [text for text in command.texts[1:] if not text.startswith("-")]
    fetches = command.name == "git" and any(text in _GIT for text in texts)
    fetches = fetches or (command.name == "gh" and texts[:2] in (["pr", "checkout"], ["repo", "clone"]))
    if not fetches:
        return
    found: dict[Source, None] = {}
    for word in command.words[1:]:
        if word.has_expression and not command.trail:
            found |= dict.fromkeys(sources(leaf.step.run, leaf.scope, note=f"decides what `{command.name}` gets"))
        for name in sorted(word.variables):
            given = leaf.scope.environment(name)
            if given is not None:
                found |= dict.fromkeys(sources(given.node, given.scope, note=f"goes into the variable `{name}`"))
    for source in found:
        if decided_outside(source, paid):
            report.add(
                leaf.frame,
                command.span,
                f"`{command.name}` gets what `{source.name}` names",
                why="it may name another branch, a fork's commit, or something that moves after the gate",
                fix="let this action resolve the branch, and check out the commit that it gives",
                level="warning" if source.through else "error",
                confidence=Confidence.MEDIUM,
                way=(*source.trail, *command.trail),
            )


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:
    """The token that stays; what is checked out is for its author to decide."""
    return leave_no_token(finding, document, repository) if finding.message == _PERSISTS else None


RULE = Rule(
    id=ID,
    summary="a checkout in a paid job that is too early, not at a commit, or keeps its token",
    explanation=EXPLANATION,
    inspect=inspect,
    repair=repair,
    profile="paid",
    security_severity=8.0,
)
