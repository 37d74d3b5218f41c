"""Catalogs that the tests of cells share."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from runner_e2e.cells.catalog import parse_catalog

if TYPE_CHECKING:
    from runner_e2e.cells.model import Catalog

PATH = "catalog.yml"

SAMPLE = """\
harness:
  command: [python3, harness.py]
credentials: {OPENAI_API_KEY: , DAYTONA_API_KEY: }
profiles:
  runner-codex: {credential: OPENAI_API_KEY}
  runner-opencode:
environments:
  local:
  daytona: {kind: external-sandbox, credential: DAYTONA_API_KEY}
groups: {smoke: quick, slow: not quick}
timeout: 20m
expected-cost: 0.5
suites:
  chat:
    profiles: [runner-codex, runner-opencode]
    environments: [local, daytona]
    cases:
      hello: {groups: [smoke], timeout: 90s}
      agents:
        groups: [slow]
        cases: [change-manager, hire]
  planning:
    manual-only: true
    profiles: [runner-codex]
    environments: [local]
    cases: [refused]
  self-test:
    billable: false
    groups: [smoke]
    profiles: [runner-opencode]
    environments: [local]
    cases: [passes]
exclusions:
  - {suite: chat, profile: runner-opencode, environment: daytona, reason: no image}
"""


def parse(text: str) -> Catalog:
    """Reads a catalog from indented text."""
    return parse_catalog(dedent(text), path=PATH)


def sample() -> Catalog:
    """The catalog that selectors are tried on: 14 cells, 3 of them excluded, 1 manual-only, 1 not billable."""
    return parse_catalog(SAMPLE, path=PATH)


def wide(cases: int, *, plain: bool = False) -> Catalog:
    """A catalog of one cell for each of *cases* cases."""
    names = "\n".join(f"      - case-{number:04}" for number in range(cases))
    return parse_catalog(
        "harness: {command: [run]}\nprofiles: {p: }\nenvironments: {e: }\n"
        f"plain-ids: {str(plain).lower()}\n"
        f"suites:\n  s:\n    profiles: [p]\n    environments: [e]\n    cases:\n{names}\n",
        path=PATH,
    )
