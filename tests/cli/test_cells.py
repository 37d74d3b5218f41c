from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ruamel.yaml import YAML
from tests.cells.catalogs import SAMPLE

from runner_e2e.cells.catalog import parse_catalog, read_catalog
from runner_e2e.cells.handles import handle
from runner_e2e.cells.selectors import Selection, candidates, select
from runner_e2e.cli.group import run
from runner_e2e.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
KEY = bytes(range(100, 132))
HELLO = "chat.runner-codex.local.hello"


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(SAMPLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(name="call")
def _call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["cells", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> bytes:
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", KEY.hex())
    return KEY


def example(page: str, name: str) -> str:
    """The example of a documentation page that stands below ``<!-- test: name -->``."""
    text = (ROOT / "docs" / page).read_text()
    found = re.search(rf"<!-- test: {name} -->\n```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no example {name}"
    return found[1]


def test_list_shows_every_cell_and_the_total(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = call("list")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["CELL", "GROUPS", "TIMEOUT", "COST", "CREDENTIAL", "NOTE"]
    assert len(lines) == 1 + 11 + 1
    assert re.fullmatch(rf"{HELLO} +smoke +1m 30s +\$0\.50 +OPENAI_API_KEY", lines[1])
    assert any(line.startswith("planning.") and line.endswith("manual-only") for line in lines)
    assert any(line.startswith("self-test.") and " free " in line for line in lines)
    assert lines[-1].startswith("11 cells in 3 suites: expected cost $5.00 ($10.00 if each is retried), at most ")


def test_list_says_what_it_does_not_know(call: Callable[..., tuple[int, str, str]]) -> None:
    path = Path(".github/runner-e2e.yml")
    path.write_text(SAMPLE.replace("expected-cost: 0.5\n", "retries: 0\n"))
    code, out, _ = call("list", "--suite", "chat")
    assert code == 0
    assert "unknown" in out.splitlines()[1]
    assert "expected cost $0.00 and the unknown cost of 9 cells," in out


def test_list_as_json_has_what_a_cell_is(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("list", "--json", "--suite", "chat", "--case", "hello", "--environment", "local")
    assert code == 0
    assert out.count("\n") == 1
    data = json.loads(out)
    assert data["schema"] == "runner-e2e.cells/v1"
    assert [cell["id"] for cell in data["cells"]] == [HELLO, "chat.runner-opencode.local.hello"]
    assert data["totals"] == {
        "cells": 2,
        "timeout_seconds": 180,
        "expected_cost_usd": 1.0,
        "cells_of_unknown_cost": 0,
        "attempts": 2,
    }
    first = data["cells"][0]
    assert (first["credentials"], first["groups"], first["timeout_seconds"]) == (["OPENAI_API_KEY"], ["smoke"], 90)
    assert re.fullmatch("[0-9a-f]{64}", first["definition_hash"])
    assert "handle" not in first


def test_selectors_are_repeatable_and_restrict_one_another(call: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = call("list", "--json", "--group", "smoke", "--group", "slow", "--profile", "runner-opencode")
    catalog = read_catalog(Path(".github/runner-e2e.yml"))
    expected = select(catalog, Selection(groups=("smoke", "slow"), profiles=("runner-opencode",)))
    assert [cell["id"] for cell in json.loads(out)["cells"]] == [cell.id for cell in expected]


def test_handles_lead_back_to_cells(call: Callable[..., tuple[int, str, str]], key: bytes) -> None:
    name = handle(key, HELLO)
    code, out, _ = call("list", "--handles", "--id", HELLO)
    assert code == 0
    assert out.splitlines()[1].startswith(f"{name}  {HELLO}")
    code, out, _ = call("explain", name)
    assert code == 0
    assert out.splitlines()[0] == HELLO
    code, _, err = call("explain", "cell-0123456789abcdef")
    assert code == 2
    assert "no cell has the handle" in err


def test_handles_need_the_key(call: Callable[..., tuple[int, str, str]]) -> None:
    for arguments in (["list", "--handles"], ["explain", "cell-0123456789abcdef"]):
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        assert "needs the campaign key, and RUNNER_E2E_CAMPAIGN_KEY is not set" in err


def test_matrix_is_one_public_line(call: Callable[..., tuple[int, str, str]], key: bytes) -> None:
    code, out, err = call("matrix", "--suite", "chat", "--max-parallel", "3")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    data = json.loads(out)
    assert (data["schema"], data["cells"], data["max_parallel"]) == ("runner-e2e.matrix/v1", 9, 3)
    cells = select(read_catalog(Path(".github/runner-e2e.yml")), Selection(suites=("chat",)))
    assert {entry["handle"] for entry in data["shards"][0]["include"]} == {handle(key, cell.id) for cell in cells}
    assert not any(cell.case in out for cell in cells)
    code, shard, _ = call("matrix", "--suite", "chat", "--shard", "0")
    assert json.loads(shard) == data["shards"][0]
    code, _, err = call("matrix", "--suite", "chat", "--shard", "1")
    assert code == 2
    assert "there is no shard 1" in err


def test_matrix_takes_the_key_from_a_named_variable(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY.hex())
    code, out, _ = call("matrix", "--id", HELLO, "--key-env", "OTHER_KEY")
    assert code == 0
    assert json.loads(out)["shards"][0]["include"][0]["handle"] == handle(KEY, HELLO)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_matrix_without_a_key_is_refused(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:  # a secret that does not exist is an empty text in a workflow
        monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", value)
    code, out, err = call("matrix", "--all")
    assert (code, out) == (3, "")
    assert "a matrix needs a campaign key" in err
    assert "runner-e2e dispatch keygen" in err


def test_a_bad_key_is_not_shown(call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", "swordfish")
    code, _, err = call("matrix", "--all")
    assert code == 2
    assert "swordfish" not in err
    code, _, err = call("matrix", "--all", "--key-env", KEY.hex())
    assert code == 2
    assert KEY.hex() not in err


def test_a_billable_matrix_without_a_selector_is_refused(call: Callable[..., tuple[int, str, str]], key: bytes) -> None:
    del key
    code, out, err = call("matrix")
    assert (code, out) == (3, "")
    assert "nothing was selected" in err
    assert "--all" in err


def test_explain_says_of_every_cell_why(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("explain", "--all")
    assert code == 0
    lines = out.splitlines()
    catalog = read_catalog(Path(".github/runner-e2e.yml"))
    assert [line.split()[1] for line in lines[1:-1]] == [candidate.cell.id for candidate in candidates(catalog)]
    assert lines[-1] == "10 of 14 cells selected"
    assert (
        sum(line.startswith("excluded") and line.endswith("excluded by the catalog: no image") for line in lines) == 3
    )
    assert sum(line.startswith("manual-only") and "--suite or --id" in line for line in lines) == 1
    code, out, _ = call("explain", "--group", "slow", "--json")
    rows = json.loads(out)["cells"]
    assert {row["verdict"] for row in rows} == {"selected", "not-selected", "excluded"}
    assert next(row for row in rows if row["id"] == HELLO)["reason"] == "--group does not name smoke"


def test_explain_tells_all_about_one_cell(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("explain", "chat.runner-opencode.daytona.agents.hire")
    assert code == 0
    facts = dict(line.strip().split(maxsplit=1) for line in out.splitlines()[1:] if not line.startswith("  defined"))
    assert facts["case"] == "agents.hire"
    assert facts["environment"] == "daytona (external-sandbox)"
    assert facts["runs"].startswith("never: excluded at .github/runner-e2e.yml:")
    assert facts["runs"].endswith("no image")
    code, out, _ = call("explain", "planning.runner-codex.local.refused")
    assert "only when --suite planning or --id names it" in out
    code, out, _ = call("explain", HELLO, "--json")
    (cell,) = json.loads(out)["cells"]
    assert (cell["id"], cell["excluded"], cell["exclusion_reason"]) == (HELLO, False, None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "--suite", "chta"], "did you mean chat?"),
        (["list", "--id", HELLO, "--suite", "chat"], "--id excludes --suite"),
        (["list", "--case", "refused"], "--suite planning"),
        (["explain", HELLO, "--all"], "an id excludes --all"),
        (["explain", "chat.runner-codex.local.helo"], f"did you mean {HELLO}"),
        (["explain", "a\nb"], "a line break at character 2"),
        (["list", "--id", "x" * 600], "the id has 600 characters"),
        (["list", "--catalog", "none.yml"], "none.yml: there is no catalog"),
        (["list", "--siute", "chat"], "--suite"),
        (["matrix", "--max-parallel", "0", "--all"], "1<=x<=256"),
    ],
)
def test_bad_calls_are_one_clean_message(
    call: Callable[..., tuple[int, str, str]], arguments: list[str], says: str
) -> None:
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_a_bad_catalog_is_reported_whole(call: Callable[..., tuple[int, str, str]]) -> None:
    Path(".github/runner-e2e.yml").write_text(
        SAMPLE.replace("smoke: quick", "smok: quick").replace("timeout: 90s", "timeout: x")
    )
    code, out, err = call("list")
    assert (code, out) == (2, "")
    assert err.count(".github/runner-e2e.yml:") == 3
    assert err.count("fix:") == 3


def test_on_a_terminal_ids_stay_whole() -> None:
    """With a real terminal: util-linux's ``script`` is not everywhere, so Python's own pty is used."""
    import pty

    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm-256color", "PYTHONPATH": str(ROOT / "src")}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "runner_e2e", "cells", "list"], stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        chunks = []
        while True:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # the terminal is closed with its last writer
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(leader)
    shown = re.sub(rb"\x1b\[[0-9;]*m", b"", b"".join(chunks)).decode()
    assert process.returncode == 0
    assert "\x1b[" in b"".join(chunks).decode()
    for candidate in candidates(parse_catalog(SAMPLE, path="x")):
        assert (candidate.cell.id in shown) == (candidate.exclusion is None)


def test_looking_at_cells_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys; from runner_e2e.cli.group import run; run(['cells', 'list']);"
        "heavy = {'rich', 'jsonschema', 'cryptography', 'tree_sitter', 'github'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("name", "cells"), [("minimal", 1), ("complete", 21)])
def test_the_catalogs_of_the_documentation_are_read(name: str, cells: int) -> None:
    catalog = parse_catalog(example("catalog.md", name), path=name)
    assert len(candidates(catalog)) == cells


def test_the_mistakes_of_the_documentation_are_those_that_are_reported() -> None:
    text = example("catalog.md", "broken")
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(text, path=".github/runner-e2e.yml")
    assert f"{caught.value}\n" == example("catalog.md", "mistakes")


@pytest.mark.parametrize("name", ["list", "explain"])
def test_the_output_in_the_documentation_is_real(call: Callable[..., tuple[int, str, str]], name: str) -> None:
    Path(".github/runner-e2e.yml").write_text(example("catalog.md", "complete"))
    command, _, expected = example("selecting-cells.md", name).partition("\n")
    assert command.startswith("$ runner-e2e cells ")
    code, out, _ = call(*command.split()[3:])
    assert (code, out) == (0, expected)


def test_the_matrix_in_the_documentation_is_real(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".github/runner-e2e.yml").write_text(example("catalog.md", "complete"))
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", bytes(range(32)).hex())
    command, _, expected = example("selecting-cells.md", "matrix").partition("\n")
    code, out, _ = call(*command.split()[3:])
    assert (code, json.loads(out)) == (0, json.loads(expected))


def test_the_workflow_in_the_documentation_gets_its_matrix(tmp_path: Path) -> None:
    """The step is run; what the other job takes out of its output is there."""
    (tmp_path / ".github" / "runner-e2e.yml").write_text(example("catalog.md", "complete"))
    text = example("selecting-cells.md", "workflow")
    jobs = YAML(typ="safe").load(text)["jobs"]
    (step,) = jobs["plan"]["steps"]
    environment = {
        **os.environ,
        **dict.fromkeys(step["env"], KEY.hex()),
        "PYTHONPATH": str(ROOT / "src"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    program = f'runner-e2e() {{ {sys.executable} -m runner_e2e "$@"; }}\n'
    subprocess.run(["bash", "-e", "-c", program + step["run"]], env=environment, check=True)
    name, _, value = (tmp_path / "output").read_text().partition("=")
    assert f"steps.{step['id']}.outputs.{name} " in jobs["plan"]["outputs"]["matrix"]
    matrix = json.loads(value)
    taken = re.findall(r"fromJSON\(needs\.plan\.outputs\.matrix\)\.(\w+)(\[0\])?", text)
    assert sorted(taken) == [("max_parallel", ""), ("shards", "[0]")]
    assert matrix["max_parallel"] == 8
    for entry in matrix["shards"][0]["include"]:
        assert set(re.findall(r"\{ matrix\.(\w+) \}", text)) <= set(entry)
