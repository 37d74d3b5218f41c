from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cells.catalogs import PATH, SAMPLE
from tests.cells.catalogs import parse as parse_text

from runner_e2e.cells.definition import definition, definition_hash
from runner_e2e.cells.ids import parse_id
from runner_e2e.cells.selectors import candidates, cell_by_id

CELL = "chat.runner-codex.daytona.hello"


def hashes(text: str) -> dict[str, str]:
    return {candidate.cell.id: candidate.cell.definition_hash for candidate in candidates(parse_text(text))}


def edited(old: str, new: str) -> str:
    assert SAMPLE.count(old) == 1, old
    return SAMPLE.replace(old, new)


BEFORE = hashes(SAMPLE)

HEAD, TAIL = "harness:\n", "exclusions:\n"
# What is written anew: the text of the sample, and what takes its place.
UNRELATED = {
    "comment": ("timeout: 20m\n", "timeout: 20m # unless said otherwise\n"),
    "spelling of a duration": ("timeout: 20m", "timeout: 1200"),
    "expected cost": ("expected-cost: 0.5", "expected-cost: 5"),
    "group": ("{groups: [smoke], timeout: 90s}", "{groups: [slow], timeout: 90s}"),
    "description of a group": ("smoke: quick", "smoke: very quick"),
    "description of a credential": ("OPENAI_API_KEY: ,", "OPENAI_API_KEY: {description: ours},"),
    "manual-only": ("    manual-only: true\n", ""),
    "billable": ("    billable: false\n", ""),
    "retries": (HEAD, f"retries: 0\n{HEAD}"),
    "max-parallel": (HEAD, f"max-parallel: 2\n{HEAD}"),
    "plain-ids": (HEAD, f"plain-ids: true\n{HEAD}"),
    "exclusion": (TAIL, f"{TAIL}  - {{suite: chat, case: hello, environment: local}}\n"),
    "default that is written out": ("[python3, harness.py]", "[python3, harness.py]\n  directory: ."),
    "other case": ("cases: [refused]", "cases: [refused, more]"),
    "order of cases": ("[change-manager, hire]", "[hire, change-manager]"),
    "order of profiles": ("[runner-codex, runner-opencode]", "[runner-opencode, runner-codex]"),
    "another way to write a case": (
        "      agents:\n        groups: [slow]\n        cases: [change-manager, hire]\n",
        "      agents.hire:\n      agents.change-manager:\n",
    ),
}


@pytest.mark.parametrize("name", UNRELATED)
def test_an_unrelated_edit_changes_no_hash(name: str) -> None:
    after = hashes(edited(*UNRELATED[name]))
    assert {cell: after[cell] for cell in BEFORE} == BEFORE


@given(st.lists(st.sampled_from(list(UNRELATED)), unique=True, min_size=2))
def test_unrelated_edits_together_change_no_hash(names: list[str]) -> None:
    text = SAMPLE
    for old, new in (UNRELATED[name] for name in names):
        text = text.replace(old, new, 1)  # an edit whose text another one has taken changes nothing
    after = hashes(text)
    assert {cell: after[cell] for cell in BEFORE} == BEFORE


FILE = "{path: bin/agent, sha256: " + "a" * 64 + "}"
# What is edited, and the cells (by a part of their ids) whose definition it is.
RELATED = {
    "artifact": (edited("[python3, harness.py]", f"[python3, harness.py]\nartifacts: {{files: [{FILE}]}}"), ""),
    "network": (f"sandbox: {{network: [api.example.com]}}\n{SAMPLE}", ""),
    "command": (edited("[python3, harness.py]", "[python3, harness.py, -v]"), ""),
    "order of arguments": (edited("[python3, harness.py]", "[harness.py, python3]"), ""),
    "variable of the harness": (edited("[python3, harness.py]", "[python3, harness.py]\n  env: {A: b}"), ""),
    "hidden path": (edited("[python3, harness.py]", "[python3, harness.py]\n  hide: [tests]"), ""),
    "passed variable": (edited("[python3, harness.py]", "[python3, harness.py]\n  pass-env: [LANG]"), ""),
    "directory": (edited("[python3, harness.py]", "[python3, harness.py]\n  directory: e2e"), ""),
    "grace": (f"grace: 1m\n{SAMPLE}", ""),
    "selected-id": (f"selected-id: {{variable: CASE_ID}}\n{SAMPLE}", ""),
    "timeout of a case": (edited("timeout: 90s", "timeout: 91s"), ".hello"),
    "credential of a profile": (
        edited("runner-opencode:\n", "runner-opencode: {credential: OPENAI_API_KEY}\n"),
        "opencode",
    ),
    "variable of a profile": (edited("runner-opencode:\n", "runner-opencode: {env: {A: b}}\n"), "opencode"),
    "kind of an environment": (edited("kind: external-sandbox, ", ""), ".daytona."),
    "variable of an environment": (edited("  local:\n", "  local: {env: {A: b}}\n"), ".local."),
}


@pytest.mark.parametrize(("text", "part"), RELATED.values(), ids=list(RELATED))
def test_edits_change_the_hashes_of_exactly_the_cells_they_define(text: str, part: str) -> None:
    after = hashes(text)
    assert after.keys() == BEFORE.keys()
    assert {name for name in BEFORE if after[name] != BEFORE[name]} == {name for name in BEFORE if part in name}


def test_hashes_of_different_cells_differ() -> None:
    assert len(set(BEFORE.values())) == len(BEFORE)


def test_the_hash_is_that_of_the_documented_json() -> None:
    catalog = parse_text(SAMPLE)
    data = definition(catalog, parse_id(CELL), timeout=90)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert definition_hash(catalog, parse_id(CELL), timeout=90) == expected
    assert cell_by_id(catalog, CELL).definition_hash == expected
    assert PATH not in text
