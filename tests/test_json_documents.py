"""Every JSON document that people or programs read has a published schema, under which real documents are valid."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from tests.cli.campaign_prompt import Shell, shell
from tests.published import PACKAGE, checked, schemas, validator

from runner_e2e.artifacts.listing import Listing
from runner_e2e.cli.group import run
from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch import ledger as ledgers
from runner_e2e.dispatch.shard_states import STATES
from runner_e2e.sandbox.layouts import shipped
from runner_e2e.sandbox.policy import LAYERS, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["shell"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "json.md"
# What is hashed and never written, and the head of a file that is no JSON.
NO_DOCUMENTS = {"runner-e2e.definition/v1", "runner-e2e.activity/v1"}
ELSEWHERE = {
    "runner-e2e.audit/v1", "runner-e2e.campaign-plan/v1", "runner-e2e.campaign/v1", "runner-e2e.caps/v1",
    "runner-e2e.catalog/v1", "runner-e2e.expectations/v1", "runner-e2e.grade/v1", "runner-e2e.harness-result/v1",
    "runner-e2e.lint/v1", "runner-e2e.result/v1", "runner-e2e.shared-ledger/v1", "runner-e2e.workflow-audit/v1",
}  # fmt: skip
"""Those that the tests of their own parts try."""


# The schemas themselves


@pytest.mark.parametrize("name", schemas())
def test_a_schema_says_what_it_is_of(name: str) -> None:
    path = schemas()[name]
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    place = path.relative_to(PACKAGE.parents[1]).as_posix()
    assert schema["$id"] == f"https://raw.githubusercontent.com/org/runner-e2e-action/v1/{place}"
    assert schema["description"]
    shown = json.dumps(schema)
    if name != "runner-e2e.catalog/v1":  # which is told by its `version`
        assert f'{{"const": "{name}"}}' in shown


def test_every_document_that_the_code_names_has_one() -> None:
    code = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"runner-e2e\.[a-z-]+/v[0-9]+", code))
    assert named - NO_DOCUMENTS <= set(schemas())
    assert set(schemas()) - named == {"runner-e2e.catalog/v1"}


def test_the_page_lists_them_all() -> None:
    rows = dict(re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\) \|", PAGE.read_text(), re.MULTILINE))
    assert {name: (PAGE.parent / link).resolve() for name, link in rows.items()} == schemas()


def test_lists_of_words_are_those_of_the_code() -> None:
    shard = json.loads(schemas()["runner-e2e.dispatch-campaign/v1"].read_text())["$defs"]["shard"]
    assert shard["properties"]["state"]["enum"] == list(STATES)
    policy = json.loads(schemas()["runner-e2e.sandbox-policy/v1"].read_text())["properties"]
    assert set(policy) == {"schema", *Policy().to_document()}
    assert policy["layers"]["propertyNames"]["enum"] == list(LAYERS)


# Documents that the product writes


def tried(*documents: Any, name: str = "") -> set[str]:
    """Checks *documents*, and that each field of them is asked for and no other is allowed; returns their schemas."""
    names = set()
    for document in documents:
        schema = name or document["schema"]
        names.add(schema)
        checked(document, schema)
        assert not validator(schema).is_valid({**document, "unheard-of": 1})
        if schema not in {"runner-e2e.sandbox-policy/v1", "runner-e2e.sandbox-layout/v1"}:
            for field in document:
                lacking = copy.deepcopy(document)
                del lacking[field]
                assert not validator(schema).is_valid(lacking) or field == "trusted_launch_root", (schema, field)
    return names


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints as one JSON document."""
    capsys.readouterr()
    run([str(word) for word in words])
    return json.loads(capsys.readouterr().out)


def entered(shell: Shell, command: str) -> list[Any]:
    """What a command of `dispatch` or `doctor` prints, line by line or as one document."""
    shell.enter(f"runner-e2e {command} > out.json")
    text = Path("out.json").read_text()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def of_campaigns(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Every document of a campaign of two runs, one of which is in doubt at first, from its plan to its end."""
    monkeypatch.setattr(campaigns, "MAXIMUM_JOBS", 3)
    repo = "--repo octo/evals"
    yield from entered(shell, f"dispatch plan --all {repo} --json")
    shell.enter(f"runner-e2e dispatch caps {repo} --day 50")
    yield from entered(shell, f"dispatch plan --group nightly {repo} --max-cost 9 -o campaign.json --json")
    yield from entered(shell, f"dispatch plan --all {repo} --offline --json")
    shell.double.faults.order("lost-hang-up", "POST", "/dispatches$")
    yield from entered(shell, "dispatch start campaign.json --yes --detach --json")
    yield from entered(shell, f"dispatch caps {repo} --json")
    yield from entered(shell, "dispatch results CAMPAIGN --json")
    yield from entered(shell, "dispatch resolve CAMPAIGN --json")
    shell.player._cost = lambda cell: None if cell.suite == "review" else 0.38
    yield from entered(shell, "dispatch watch CAMPAIGN --json")
    yield from entered(shell, "dispatch results CAMPAIGN --ids --json")
    yield from entered(shell, "dispatch status CAMPAIGN --events --json")
    monkeypatch.setattr(ledgers, "machine_digest", lambda: "f" * 32)
    shell.enter("runner-e2e dispatch adopt --yes")
    yield from entered(shell, "dispatch cancel CAMPAIGN --yes --json")
    yield from entered(shell, "dispatch status --json")
    yield from entered(shell, f"doctor {repo} --json")


def test_documents_of_campaigns(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = list(of_campaigns(shell, monkeypatch))
    assert tried(*documents) == {
        f"runner-e2e.{name}/v1"
        for name in ("dispatch-plan", "dispatch-campaign", "dispatch-campaigns", "dispatch-results", "dispatch-event",
                     "shared-spending", "doctor")
    }  # fmt: skip
    lines = entered(shell, "dispatch export")
    tried(*lines, name="runner-e2e.ledger-export/v1")
    assert {line["kind"] for line in lines} == {"ledger", "campaign", "shard", "cell", "event", "adoption"}


def test_documents_about_cells(
    shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del shell
    listed = [printed(capsys, "cells", "list", "--json"), printed(capsys, "cells", "list", "--handles", "--json")]
    assert tried(*listed) == {"runner-e2e.cells/v1"}
    one = "chat.codex.local.hello"
    explained = [printed(capsys, "cells", "explain", *words, "--json") for words in ([one], ["--suite", "chat"])]
    assert tried(*explained) == {"runner-e2e.explanation/v1"}
    hidden = printed(capsys, "cells", "matrix", "--all")
    catalog = Path(".github/runner-e2e.yml")
    catalog.write_text(f"plain-ids: true\n{catalog.read_text()}")
    monkeypatch.delenv("RUNNER_E2E_CAMPAIGN_KEY")
    shown = printed(capsys, "cells", "matrix", "--all")
    assert tried(hidden, shown) == {"runner-e2e.matrix/v1"}
    assert ("id" in shown["shards"][0]["include"][0], "id" in hidden["shards"][0]["include"][0]) == (True, False)


HARNESS = """#!/bin/sh
printf '{"schema":"runner-e2e.harness-result/v1","verdict":"%s"}' "$VERDICT" > "$RUNNER_E2E_RESULT"
"""
CATALOG = """
harness: { command: [./harness] }
profiles: { good: { env: { VERDICT: passed } }, bad: { env: { VERDICT: failed } } }
environments: { local: }
suites: { demo: { profiles: [good, bad], environments: [local], cases: [one], expected-cost: 0, timeout: 30s } }
"""


def test_documents_of_a_run_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "catalog.yml").write_text(CATALOG)
    (tmp_path / "harness").write_text(HARNESS)
    (tmp_path / "harness").chmod(0o755)
    for more in ([], ["--show-ids"]):
        done = subprocess.run(
            [sys.executable, "-m", "runner_e2e", "run", "--no-probe", "--local", "--all", "--catalog", "catalog.yml",
             "--json", *more],
            cwd=tmp_path, text=True, capture_output=True, check=False, env={"PATH": os.environ["PATH"], "HOME": "/"},
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        document = json.loads(done.stdout)
        assert tried(document) == {"runner-e2e.run/v1"}
        assert {cell["verdict"] for cell in document["cells"]} == {"passed", "failed"}
        assert all(("id" in cell) == bool(more) for cell in document["cells"])
        # What the engine wrote for the sandbox of each attempt.
        policies = [json.loads(path.read_text()) for path in tmp_path.rglob("policy.json")]
        assert tried(*policies) == {"runner-e2e.sandbox-policy/v1"}


def test_documents_of_grading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a")
    (tmp_path / "work" / "link").symlink_to("a.txt")
    os.mkfifo(tmp_path / "work" / "fifo")
    assert tried(printed(capsys, "grade", "manifest", tmp_path / "work")) == {"runner-e2e.manifest/v1"}
    text = (ROOT / "docs" / "grading.md").read_text()
    found = re.search(r"<!-- test: expectations -->\n```json\n(.*?)```", text, re.DOTALL)
    assert found
    (tmp_path / "expect.json").write_text(found[1])
    document = printed(
        capsys, "grade", "expectations", tmp_path / "expect.json", "--workspace", tmp_path / "work", "--json",
        "--artifacts", tmp_path / "work", "--status", 0,
    )  # fmt: skip
    assert tried(document) == {"runner-e2e.matches/v1"}
    stream = re.search(r"<!-- test: generic -->\n```json\n(.*?)```", text, re.DOTALL)
    assert stream
    for line in stream[1].splitlines():
        checked(json.loads(line), "runner-e2e.agent-events/v1")
    events = validator("runner-e2e.agent-events/v1")
    assert not events.is_valid({"type": "command"})
    assert not events.is_valid({"type": "unheard-of"})


def test_documents_of_the_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workflow = tmp_path / "w.yml"
    workflow.write_text(
        "on: { workflow_dispatch: { inputs: { selected-id: } } }\n"
        "jobs: { a: { runs-on: x, steps: [{ run: 'echo ${{ inputs.selected-id }}' }] } }\n"
    )
    run(["lint", "--no-cache", "--no-actionlint", "--write-baseline", str(tmp_path / "known.json"), str(workflow)])
    capsys.readouterr()
    document = json.loads((tmp_path / "known.json").read_text())
    assert tried(document) == {"runner-e2e.lint-baseline/v1"}
    assert document["findings"]


def test_documents_of_the_sandbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    command = [sys.executable, "-m", "runner_e2e", "sandbox", "exec", "--hide", str(hidden), "--limit", "time=60"]
    done = subprocess.run(
        [*command, "--network", "loopback", "--report", str(tmp_path / "report.json"), "--", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert tried(report) == {"runner-e2e.sandbox-report/v1"}
    assert str(hidden) in report["hidden"]
    assert tried(printed(capsys, "sandbox", "probe", "--json")) == {"runner-e2e.sandbox-probe/v1"}


def test_documents_that_the_sandbox_reads() -> None:
    assert tried(Policy().to_document(), {"schema": "runner-e2e.sandbox-policy/v1"}) == {"runner-e2e.sandbox-policy/v1"}
    policy = validator("runner-e2e.sandbox-policy/v1")
    wrong: list[dict[str, object]] = [
        {"wall": "paper"}, {"network": []}, {"layers": {"roof": "off"}}, {"user": 0}, {"limits": {"x": 1}}
    ]  # fmt: skip
    for change in wrong:
        assert not policy.is_valid({"schema": "runner-e2e.sandbox-policy/v1", **change}), change
    page = (ROOT / "docs" / "sandbox.md").read_text()
    examples = re.findall(r"```(?:json|yaml)\n(.*?)```", page, re.DOTALL)
    documents = [YAML(typ="safe").load(each) for each in examples if "runner-e2e.sandbox-" in each]
    assert tried(*documents) == {"runner-e2e.sandbox-policy/v1", "runner-e2e.sandbox-layout/v1"}
    layouts = [json.loads((PACKAGE / "sandbox" / "shipped_layouts" / f"{name}.json").read_text()) for name in shipped()]
    assert tried(*layouts) == {"runner-e2e.sandbox-layout/v1"}


def test_documents_about_artifacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    runs = printed(capsys, "artifact", "check", "--json", tool)
    refused = printed(capsys, "artifact", "check", "--sha256", "1" * 64, "--json", tool)
    assert tried(runs, refused) == {"runner-e2e.artifact-check/v1"}
    assert (runs["how"], refused["launch"]) == ("sealed-snapshot", None)
    listing = Listing(files={str(tool): "1" * 64}, trusted_launch_root="/opt/image").to_document()
    assert tried(listing) == {"runner-e2e.artifacts/v1"}


def test_no_schema_is_left_untried() -> None:
    tried_here = set(re.findall(r'"(runner-e2e\.[a-z-]+/v[0-9]+)"', Path(__file__).read_text())) | {
        f"runner-e2e.{name}/v1" for name in re.findall(r'"([a-z-]+)"', Path(__file__).read_text())
    }
    assert set(schemas()) <= tried_here
    assert set(schemas()) >= ELSEWHERE
