"""A paid workflow that is as it should be, and how the tests lint changed copies of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.repository import Document, Repository, read_document
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner_e2e.lint.finding import Finding

OURS = "org/runner-e2e-action@9d7a6e56666f8acd43fe67dc897c09f4817b4b36"
CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
PATH = ".github/workflows/paid.yml"

CATALOG = """\
version: 1
credentials: {ANTHROPIC_API_KEY: , OPENAI_API_KEY: }
lint:
  paid-workflows: [.github/workflows/paid*.yml]
"""

GOOD = f"""\
name: Paid campaign
on:
  schedule:
    - cron: '17 3 * * 1'
  workflow_dispatch:
    inputs:
      selection:
        type: string
permissions: {{}}
concurrency:
  group: paid-${{{{ github.run_id }}}}
  cancel-in-progress: false
jobs:
  gate:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {{contents: read}}
    outputs:
      target-sha: ${{{{ steps.gate.outputs.target-sha }}}}
    steps:
      - uses: {OURS}
        with: {{command: setup}}
      - id: gate
        uses: {OURS}
        with: {{command: gate}}
  plan:
    needs: gate
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {{contents: write}}
    environment: paid-evals
    outputs:
      matrix: ${{{{ steps.plan.outputs.matrix }}}}
    steps:
      - uses: {OURS}
        with: {{command: setup}}
      - uses: {OURS}
        with: {{command: gate}}
      - id: plan
        uses: {OURS}
        env:
          RUNNER_E2E_CAMPAIGN_KEY: ${{{{ secrets.RUNNER_E2E_CAMPAIGN_KEY }}}}
        with: {{command: plan, groups: "${{{{ inputs.selection || 'nightly' }}}}"}}
      - uses: {OURS}
        with: {{command: claim}}
  cells:
    needs: [gate, plan]
    strategy:
      matrix: ${{{{ fromJSON(needs.plan.outputs.matrix) }}}}
    runs-on: ubuntu-24.04
    timeout-minutes: ${{{{ matrix.timeout }}}}
    environment: paid-evals
    permissions: {{contents: read}}
    steps:
      - uses: {OURS}
        with: {{command: setup}}
      - uses: {OURS}
        with: {{command: gate}}
      - uses: {CHECKOUT}
        with:
          ref: ${{{{ needs.gate.outputs.target-sha }}}}
          persist-credentials: false
      - run: npm ci --ignore-scripts
      - id: run
        uses: {OURS}
        env:
          RUNNER_E2E_CAMPAIGN_KEY: ${{{{ secrets.RUNNER_E2E_CAMPAIGN_KEY }}}}
          ANTHROPIC_API_KEY: ${{{{ matrix.credential == 'ANTHROPIC_API_KEY' && secrets.ANTHROPIC_API_KEY || '' }}}}
          OPENAI_API_KEY: ${{{{ matrix.credential == 'OPENAI_API_KEY' && secrets.OPENAI_API_KEY || '' }}}}
        with: {{command: run}}
  report:
    needs: [gate, cells]
    if: ${{{{ always() && needs.gate.result == 'success' }}}}
    runs-on: ubuntu-24.04
    timeout-minutes: 10
    environment: paid-evals
    permissions: {{contents: write}}
    steps:
      - uses: {OURS}
        with: {{command: setup}}
      - uses: {CHECKOUT}
        with: {{persist-credentials: false}}
      - uses: {OURS}
        env:
          RUNNER_E2E_CAMPAIGN_KEY: ${{{{ secrets.RUNNER_E2E_CAMPAIGN_KEY }}}}
        with: {{command: settle}}
"""


def changed(*changes: tuple[str, str], text: str = GOOD) -> str:
    """*text* with each first text replaced by the second, once, from the left; each must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def in_job(name: str, *changes: tuple[str, str], text: str = GOOD) -> str:
    """*text* with changes inside of one job only."""
    start = text.index(f"\n  {name}:\n") + 1
    rest = [text.find(f"\n  {other}:\n", start) for other in ("gate", "plan", "cells", "report")]
    end = min((place + 1 for place in rest if place > start), default=len(text))
    return text[:start] + changed(*changes, text=text[start:end]) + text[end:]


class Linted:
    """The findings about one file of a repository."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings

    def of(self, rule: str) -> list[str]:
        """Messages of one rule, in order of their places."""
        chosen = [each for each in self.findings if each.rule == rule]
        return [each.message for each in sorted(chosen, key=lambda each: (each.span.path, each.span.line))]

    @property
    def rules(self) -> set[str]:
        """The rules that found something."""
        return {each.rule for each in self.findings}


def write(root: Path, files: Mapping[str, str]) -> Repository:
    """A repository with *files*."""
    for name, text in {".github/runner-e2e.yml": CATALOG, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Repository(root)


def analysed(root: Path, files: Mapping[str, str], path: str = PATH) -> tuple[Run, Document]:
    """The analysis of one file, for whoever wants the model."""
    repository = write(root, files)
    return Run(repository, deadline=float("inf")), read_document(root / path, path)


def lint_paid(root: Path, files: Mapping[str, str] | str, path: str = PATH) -> Linted:
    """What the rules about paid workflows say about the file at *path*."""
    run, document = analysed(root, {PATH: files} if isinstance(files, str) else files, path)
    assert run.repository.settings_error is None
    rules = [rule for rule in RULES if rule.profile == "paid" and rule.inspect is not None]
    return Linted([found for rule in rules if rule.inspect for found in rule.inspect(run, document)])
