"""What is published and what we run ourselves passes the linters of the field, and says what the docs say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

REPOSITORY = Path(__file__).resolve().parent.parent.parent.parent
PROGRAMS = Path(sys.executable).parent
TEMPLATES = sorted((REPOSITORY / "workflows-templates").glob("*.yml"))
OWN = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
ACTION = REPOSITORY / "action.yml"
DOCS = REPOSITORY / "docs" / "action.md"
# Rights beyond reading the code, each needed for what the workflow is there for.
MORE_RIGHTS = {
    ("workflow-security.yml", None): {"security-events": "write"},
    ("paid-cell.yml", None): {"actions": "read"},
    ("paid-cell.yml", "claim"): {"actions": "read", "contents": "write"},
    ("paid-cell.yml", "results"): {"actions": "read", "contents": "write"},
    ("paid-campaign.yml", None): {"actions": "read"},
    ("paid-campaign.yml", "claim"): {"actions": "read", "contents": "write"},
    ("paid-campaign.yml", "results"): {"actions": "read", "contents": "write"},
}


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def uses(workflow: Any) -> list[str]:
    return [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]


@pytest.mark.parametrize("path", [*TEMPLATES, *OWN], ids=lambda path: path.name)
def test_actionlint_finds_nothing(path: Path) -> None:
    done = subprocess.run(
        [PROGRAMS / "actionlint", "-shellcheck=", path], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_our_own_lint_finds_nothing() -> None:
    files = map(str, [*TEMPLATES, *OWN, ACTION])
    command = [str(PROGRAMS / "runner-e2e"), "lint", "--no-cache", "--no-actionlint", *files]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.stdout == f"no findings in {len(TEMPLATES) + len(OWN) + 1} files\n", done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def zizmor(*words: str | Path) -> str:
    command = [str(PROGRAMS / "zizmor"), "--offline", "--no-progress", *map(str, words)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_zizmor_finds_nothing() -> None:
    found = zizmor(*TEMPLATES, *OWN, ACTION, REPOSITORY / ".github" / "dependabot.yml")
    assert found.startswith("No findings to report"), found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_zizmor_s_strictest_persona_finds_nothing_in_a_template(path: Path) -> None:
    assert zizmor("--persona=auditor", path).startswith("No findings to report")


@pytest.mark.parametrize("path", [*TEMPLATES, *OWN], ids=lambda path: path.name)
def test_rights_and_pins(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        more = MORE_RIGHTS.get((path.name, name)) or MORE_RIGHTS.get((path.name, None), {})
        assert job["permissions"] in ({}, {"contents": "read"} | more)
        assert job["timeout-minutes"]
    text = path.read_text()
    for name in uses(workflow):
        assert name == "./" or re.fullmatch(r"[\w.-]+/[\w.-]+(/[\w-]+)?@[0-9a-f]{40}", name)
        assert name == "./" or re.search(re.escape(name) + r" # v\d+(\.\d+)*\n", text), f"{name} says no version"
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if "actions/checkout@" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_its_properties_and_one_pin_of_this_action(path: Path) -> None:
    properties = json.loads(path.with_suffix(".properties.json").read_text())
    assert set(properties) == {"name", "description", "iconName", "categories"}
    assert properties["name"] == load(path)["name"]
    assert len({name for name in uses(load(path)) if name.startswith("org/runner-e2e-action@")}) == 1


def test_the_paid_template_keeps_keys_in_one_step_and_the_id_in_two() -> None:
    workflow = load(REPOSITORY / "workflows-templates" / "paid-cell.yml")
    assert list(workflow["on"]) == ["workflow_dispatch"]
    assert list(workflow["jobs"]) == ["gate", "plan", "claim", "cell", "results"]
    job = workflow["jobs"]["cell"]
    assert [name for name, each in workflow["jobs"].items() if "environment" in each] == ["cell"]
    assert job["needs"] == ["gate", "plan", "claim"]
    text = json.dumps(workflow)
    with_secrets = [step for step in job["steps"] if "secrets." in json.dumps(step)]
    assert [step["id"] for step in with_secrets] == ["run"]
    assert text.count("secrets.") == json.dumps(with_secrets[0]).count("secrets.")
    with_id = [step for each in workflow["jobs"].values() for step in each["steps"] if "selected-id" in str(step)]
    assert [step["with"]["command"] for step in with_id] == ["plan", "run"]
    assert text.count("inputs.selected-id") == sum(str(step["env"]).count("inputs.selected-id") for step in with_id)
    assert job["steps"][0]["with"] == {"command": "setup"}
    assert "inputs" not in json.dumps([workflow["concurrency"], workflow["name"], job["name"]])
    # The nonce's field is the next one: an id that a person puts there has dots, and stays out of the run's name.
    shown = "!contains(inputs.nonce, '.') && inputs.nonce || github.run_id"
    assert workflow["run-name"] == f"Paid cell ${{{{ {shown} }}}}"


def test_no_input_of_the_action_stands_in_a_script() -> None:
    (step,) = load(ACTION)["runs"]["steps"]
    assert "${{" not in step["run"]
    assert re.search(r'^exec "\$python" -I "\$GITHUB_ACTION_PATH/scripts/enter\.py"$', step["run"], re.MULTILINE)
    variables = {name: f"RUNNER_E2E_INPUT_{name.upper().replace('-', '_')}" for name in load(ACTION)["inputs"]}
    mapped = {variable: f"${{{{ inputs.{name} }}}}" for name, variable in variables.items()}
    assert step["env"] == mapped


def table(heading: str) -> dict[str, list[str]]:
    """The rows below a heading of the documentation: name -> the other cells."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert section, heading
    lines = [line for line in section[1].splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in rows}


def plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def test_documented_inputs_are_those_of_the_action() -> None:
    documented, declared = table("Inputs"), load(ACTION)["inputs"]
    assert list(documented) == list(declared)
    for name, (default, description) in documented.items():
        assert plain(default) == ("required" if declared[name].get("required") else declared[name]["default"])
        assert plain(description) == plain(declared[name]["description"])


def test_documented_outputs_are_those_of_the_action() -> None:
    documented, declared = table("Outputs"), load(ACTION)["outputs"]
    assert list(documented) == list(declared)
    for name, (description,) in documented.items():
        assert plain(description) == plain(declared[name]["description"])
        assert declared[name]["value"] == f"${{{{ steps.act.outputs.{name} }}}}"


def test_the_documented_errors_are_those_that_are_printed() -> None:
    """Each message in the list of troubles stands in the code that prints it."""
    said = re.findall(r"^### (.+)$", DOCS.read_text().partition("## When something fails")[2], re.MULTILINE)
    code = " ".join(
        " ".join(re.sub(r'["\']\s*\n\s*f?["\']', "", path.read_text()).split())
        for path in [ACTION, *(REPOSITORY / "scripts").glob("*.py"), *(REPOSITORY / "src").rglob("*.py")]
    )
    assert len(said) >= 8
    for message in said:
        for part in filter(None, message.replace("`", "").split("…")):
            assert part.strip() in code.replace("`", ""), f"{part!r} is printed nowhere"
