"""What the pages about running cells and writing a harness show is run as it stands there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.engine.harness_environment import ALLOWED
from runner_e2e.engine.harness_result import SCHEMA_FILE as HARNESS_SCHEMA
from runner_e2e.report.campaign import read_campaign
from runner_e2e.report.results import FAILURE_CLASSES, SCHEMA_FILE

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
CATALOG = """\
harness: {command: [python3, harness.py]}
profiles: {scripted: }
environments: {local: }
suites:
  hello: {billable: false, timeout: 60s, profiles: [scripted], environments: [local], cases: [greet]}
"""


def example(page: str, name: str) -> str:
    text = (DOCS / page).read_text()
    match = re.search(rf"<!-- test: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert match, f"{page} has no example {name}"
    return match[1]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    (tmp_path / "harness.py").write_text(example("harness.md", "harness.py"))
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "runner-e2e"
    start = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from runner_e2e.cli import main; sys.exit(main())"
    command.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-c", start])} "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("name", ["local", "variable"])
def test_the_commands_run_the_harness_of_the_page(target: Path, name: str) -> None:
    command = example("running-cells.md", name).removeprefix("$ ").strip()
    environ = {"PATH": f"{target / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(target)}
    done = subprocess.run(
        ["bash", "-c", f"exec env {command}"], cwd=target, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^cell-[0-9a-f]{16}  passed .* \$0\.00 +1$", done.stdout, re.MULTILINE)
    assert "1 passed; cost $0.00; records in .runner-e2e/" in done.stdout
    (campaign,) = (target / ".runner-e2e").iterdir()
    records = read_campaign(campaign)
    assert records.problems == ()
    (result,) = records.results[0]
    assert result.verdict == "passed"
    assert len(result.sandbox) == 1


def test_the_layout_on_the_page_is_what_a_run_leaves(target: Path) -> None:
    environ = {"PATH": f"{target / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(target)}
    subprocess.run(
        ["runner-e2e", "run", "--local", "--all", "--quiet"], cwd=target, env=environ, check=True, capture_output=True
    )
    left = {path.name for path in (target / ".runner-e2e").glob("*/cell-*/attempt-1/*")}
    left |= {path.name for path in (target / ".runner-e2e").glob("*/*.json")}
    page = (DOCS / "results.md").read_text()
    assert left == {"campaign.json", "result.json", "instance", "private"}
    assert [name for name in left if name not in page] == []


def test_the_pages_list_every_field_class_and_variable() -> None:
    results, harness = (DOCS / "results.md").read_text(), (DOCS / "harness.md").read_text()
    table = results.partition("## The record")[2].partition("## Why")[0]
    for name in json.loads(SCHEMA_FILE.read_text())["required"]:
        assert name == "schema" or f"`{name}`" in table, name
    for name in FAILURE_CLASSES:
        assert f"| `{name}` |" in harness, name
    for name in json.loads(HARNESS_SCHEMA.read_text())["properties"]:
        assert f"`{name}`" in harness, name
    for name in ALLOWED:
        assert f"`{name.upper()}`" in harness, name
