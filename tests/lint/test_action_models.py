"""The models of well-known actions: their file, and that each entry is what the lint says of a workflow."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.lint.action_table import END, PAGE, START, table

from runner_e2e.lint.action_models import ActionUse, check_entry, known_actions, models_of, read_model
from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding

PACKAGE = files("runner_e2e.lint")
DATA: dict[str, Any] = json.loads(PACKAGE.joinpath("data", "actions.json").read_text("utf-8"))
SCHEMA: dict[str, Any] = json.loads(PACKAGE.joinpath("schemas", "actions-v1.json").read_text("utf-8"))
ENTRIES: list[dict[str, Any]] = DATA["actions"]
RULES = {"argv": "confidential-argv", "name": "confidential-name", "sent": "confidential-third-party"}
BY = {"argv": "confidential-argv", "file": "confidential-script-file", "remote": "confidential-third-party"}
META = {"uses", "also", "since", "until", "source", "checked"}


def label(entry: dict[str, Any]) -> str:
    return f"{entry['uses']}@{entry.get('since', '')}-{entry.get('until', '')}"


def version(entry: dict[str, Any]) -> int:
    return int(entry.get("since", entry.get("until", 9)))


def reported(root: Path, steps: list[str]) -> dict[int, list[Finding]]:
    """Findings by the number of the step they stand in, for steps that are each one line."""
    workflow = root / ".github" / "workflows" / "w.yml"
    workflow.parent.mkdir(parents=True)
    head = "on: {workflow_dispatch: {inputs: {selected-id: {}}}}\njobs: {a: {runs-on: ubuntu-latest, steps: [\n"
    workflow.write_text(head + ",\n".join(steps) + "]}}\n")
    report = lint([workflow], current=root)
    assert report.problems == ()
    found: dict[int, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(finding.span.line - 3, []).append(finding)
    return found


def expectations(entry: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Input, rule, and a text that the message has."""
    rows = [
        (name, rule, subject)
        for key, rule in RULES.items()
        for subject, names in entry.get(key, {}).items()
        for name in names
    ]
    rows += [(name, "confidential-third-party", "the agent") for name in entry.get("agent", ())]
    rows += [(name, BY[script["by"]], "") for name, script in entry.get("script", {}).items() if script["by"] in BY]
    return rows


def test_the_file_fits_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(DATA)


def test_there_are_enough() -> None:
    assert len({entry["uses"].lower() for entry in ENTRIES}) >= 100


def test_entries_are_in_order_and_do_not_overlap() -> None:
    keys = [(entry["uses"].lower(), entry.get("since", 0)) for entry in ENTRIES]
    assert keys == sorted(set(keys))
    names = [name.lower() for entry in ENTRIES for name in {entry["uses"], *entry.get("also", ())}]
    for first, second in combinations([entry for entry in ENTRIES if names.count(entry["uses"].lower()) > 1], 2):
        if first["uses"].lower() == second["uses"].lower():
            assert first.get("until", 99) < second.get("since", 0) or second.get("until", 99) < first.get("since", 0)
    single = [entry for entry in ENTRIES if "since" not in entry and "until" not in entry]
    alone = [name.lower() for entry in single for name in (entry["uses"], *entry.get("also", ()))]
    assert len(set(alone)) == len(alone)


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_an_entry_is_consistent(entry: dict[str, Any]) -> None:
    repository = "/".join(entry["uses"].split("/")[:2]).lower()
    assert entry["source"].lower().startswith(repository) or repository.startswith("*/")
    assert check_entry({key: value for key, value in entry.items() if key not in META}) == []
    reaching = {
        name for key in ("argv", "name", "sent", "file") for names in entry.get(key, {}).values() for name in names
    }
    reaching |= {*entry.get("agent", ()), *entry.get("upload", ()), *entry.get("script", ())}
    assert not reaching & set(entry.get("safe", ()))
    assert set(entry.get("advice", ())) <= reaching
    assert ("credentials" in entry) == ("argv" in entry)
    assert set(entry.get("credentials", ())) <= {name for names in entry.get("argv", {}).values() for name in names}
    known = reaching | set(entry.get("safe", ()))
    for carried in (*entry.get("outputs", {}).values(), *entry.get("environment", {}).values()):
        assert isinstance(carried, str) or entry["other"] == "safe" or set(carried) <= known
    assert all(name == name.lower() for name in known)


@pytest.mark.parametrize("entry", ENTRIES, ids=label)
def test_each_input_is_reported_as_the_entry_says(tmp_path: Path, entry: dict[str, Any]) -> None:
    uses = f"{entry['uses'].replace('*', 'octo')}@v{version(entry)}"
    rows = expectations(entry)
    inputs = [*dict.fromkeys(name for name, _, _ in rows), *entry.get("safe", ()), "some-other-input"]
    steps = [f'{{uses: "{uses}", with: {{{name}: "a ${{{{ inputs.selected-id }}}}"}}}}' for name in inputs]
    found = reported(tmp_path, steps)
    for name, rule, text in rows:
        messages = [each.message for each in found.get(inputs.index(name), ()) if each.rule == rule]
        assert any(text in message for message in messages), (name, rule, text, messages)
    named = {name for name, _, _ in rows}
    for number, name in enumerate(inputs):
        rules = {each.rule for each in found.get(number, ())} - {"confidential-log", "confidential-file"}
        if name in entry.get("safe", ()):
            assert rules == set()
        elif name not in named:
            assert rules == (set() if entry["other"] == "safe" else {"confidential-third-party"})


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if "outputs" in entry], ids=label)
def test_outputs_carry_what_the_entry_says(tmp_path: Path, entry: dict[str, Any]) -> None:
    uses = f"{entry['uses'].replace('*', 'octo')}@v{version(entry)}"
    names = sorted({name for value in entry["outputs"].values() if isinstance(value, list) for name in value})
    given = ", ".join(f'{name}: "${{{{ inputs.selected-id }}}}"' for name in [*names, "some-other-input"])
    steps = [f'{{id: it, uses: "{uses}", with: {{{given}}}}}']
    steps += [
        f'{{run: "tool ${{{{ steps.it.outputs.{output} }}}}"}}'.replace("*", "any") for output in entry["outputs"]
    ]
    found = reported(tmp_path, steps)
    for number, carried in enumerate(entry["outputs"].values(), 1):
        rules = {each.rule for each in found.get(number, ())}
        assert ("confidential-argv" in rules) == isinstance(carried, list)
        assert ("secret-argv" in rules) == (carried == "secret")


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if "environment" in entry], ids=label)
def test_variables_carry_what_the_entry_says(tmp_path: Path, entry: dict[str, Any]) -> None:
    names = sorted({name for value in entry["environment"].values() if isinstance(value, list) for name in value})
    given = ", ".join(f'{name}: "${{{{ inputs.selected-id }}}}"' for name in names)
    steps = [f'{{uses: "{entry["uses"]}@v{version(entry)}", with: {{{given}}}}}']
    steps += [f'{{run: "tool ${variable}"}}' for variable in entry["environment"]]
    found = reported(tmp_path, steps)
    for number, carried in enumerate(entry["environment"].values(), 1):
        rules = {each.rule for each in found.get(number, ())}
        assert ("confidential-argv" in rules) == isinstance(carried, list)
        assert ("secret-argv" in rules) == (carried == "secret")


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if "environment-argv" in entry], ids=label)
def test_the_environment_on_a_command_line_is_reported(tmp_path: Path, entry: dict[str, Any]) -> None:
    step = f'{{uses: "{entry["uses"]}@v2", env: {{CELL: "${{{{ inputs.selected-id }}}}", T: "${{{{ secrets.T }}}}"}}}}'
    rules = {each.rule for each in reported(tmp_path, [step])[0]}
    assert {"confidential-argv", "secret-argv"} <= rules


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if "agent" in entry or "environment-sent" in entry], ids=label
)
def test_the_environment_that_is_handed_on_is_reported(tmp_path: Path, entry: dict[str, Any]) -> None:
    step = f'{{uses: "{entry["uses"]}@v1", env: {{CELL: "${{{{ inputs.selected-id }}}}", T: "${{{{ secrets.T }}}}"}}}}'
    found = [each for each in reported(tmp_path, [step])[0] if each.rule == "confidential-third-party"]
    receiver = "the agent" if "agent" in entry else entry["environment-sent"]
    assert [each.message for each in found] == [
        f"`inputs.selected-id` reaches {receiver} by the variable `CELL` of `{entry['uses']}`"
    ]


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.get("upload")], ids=label)
def test_files_that_become_public_are_reported(tmp_path: Path, entry: dict[str, Any]) -> None:
    uses, name = f"{entry['uses']}@v{version(entry)}", entry["upload"][0]
    steps = [
        '{run: "echo ${{ inputs.selected-id }} > out/result.txt; echo > clean.txt"}',
        f'{{uses: "{uses}", with: {{{name}: out/*.txt}}}}',
        f'{{uses: "{uses}", with: {{{name}: out/result.txt}}}}',
        f'{{uses: "{uses}", with: {{{name}: clean.txt}}}}',
    ]
    found = reported(tmp_path, steps)
    for number, expected in ((1, True), (2, True), (3, False)):
        assert ("confidential-file" in {each.rule for each in found.get(number, ())}) is expected


@pytest.mark.parametrize(
    ("uses", "comment", "major"),
    [
        ("o/r@v4", "", 4),
        ("o/r@v4.1.2", "", 4),
        ("o/r@4", "", 4),
        ("o/r@0123456789abcdef0123456789abcdef01234567", "v3.1", 3),
        ("o/r@0123456789abcdef0123456789abcdef01234567", "", None),
        ("o/r@main", "", None),
        ("o/r@release/v1", "", None),
        ("o/r", "", None),
        ("o/r@2024-01-01", "", None),
    ],
)
def test_major_versions(uses: str, comment: str, major: int | None) -> None:
    assert ActionUse.parse(uses).major(comment) == major


def test_names_are_compared_without_case_and_versions_choose() -> None:
    assert models_of(ActionUse.parse("Actions/Checkout@v4"))[0].uses == "actions/checkout"
    assert models_of(ActionUse.parse("octo/unknown@v1")) == ()
    both = models_of(ActionUse.parse("codecov/codecov-action@main"))
    assert {(model.since, model.until) for model in both} == {(None, 3), (4, None)}
    assert [model.since for model in models_of(ActionUse.parse("codecov/codecov-action@v5"), major=5)] == [4]
    assert models_of(ActionUse.parse("acme/runner-e2e-action@v1"))[0].other == "unknown"


def test_a_version_in_a_comment_chooses(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    workflow = tmp_path / ".github" / "workflows" / "w.yml"
    workflow.parent.mkdir(parents=True)
    lines = ["on: {workflow_dispatch: {inputs: {selected-id: {}}}}", "jobs:", " a:", "  runs-on: x", "  steps:"]
    for comment in (" # v3.1.4", " # v5.0.0", ""):
        lines.append(f"  - uses: codecov/codecov-action@{commit}{comment}")
        lines.append("    with: {xtra_args: '${{ inputs.selected-id }}'}")
    workflow.write_text("\n".join(lines))
    report = lint([workflow], current=tmp_path)
    found = [(each.span.line, each.confidence.name) for each in report.findings if each.rule == "confidential-argv"]
    assert found == [(7, "HIGH"), (11, "MEDIUM")]  # the third one may be of either version


def test_our_own_action_is_modelled_as_it_is() -> None:
    action = (Path(__file__).parents[2] / "action.yml").read_text()
    inputs = set(re.findall(r"^  ([a-z-]+):$", action.split("\noutputs:")[0], re.MULTILINE))
    outputs = set(re.findall(r"^  ([a-z-]+):$", action.split("\noutputs:")[1].split("\nruns:")[0], re.MULTILINE))
    model = next(each for each in known_actions() if each.uses == "*/runner-e2e-action")
    assert {name for name in inputs if not model.knows(name)} == set()
    assert outputs - set(model.outputs) == set()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ([], "the model of an action is a mapping"),
        ({"args": ["x"]}, "`args` is no key of a model"),
        ({"argv": ["x"]}, "`argv` maps a text to a list of inputs"),
        ({"agent": "prompt"}, "`agent` is a list of inputs"),
        ({"outputs": {"x": "maybe"}}, "`outputs` maps a name to a list of inputs, or to `boolean`"),
        ({"script": {"run": {"language": "cobol", "by": "file"}}}, "`script` maps an input to its `language`"),
        ({"advice": {"x": 1}}, "`advice` maps an input to a text"),
        ({"environment-argv": 1}, "`environment-argv` is a text"),
        ({"other": "maybe"}, "`other` is `safe` or `unknown`"),
    ],
)
def test_wrong_models_are_told(entry: object, said: str) -> None:
    assert check_entry(entry)[0].startswith(said)


def test_a_model_of_the_configuration_takes_the_place_of_ours() -> None:
    custom = {"Actions/Checkout": {"argv": {"svn": ["URL"]}, "other": "safe"}}
    (model,) = models_of(ActionUse.parse("actions/checkout@v4"), custom=custom)
    assert [reach.subject for reach in model.reaches["url"]] == ["svn"]
    assert model.knows("anything")
    assert not read_model({"uses": "a/b"}).knows("anything")


def test_the_page_shows_the_data() -> None:
    page = PAGE.read_text()
    assert page[page.index(START) + len(START) : page.index(END)] == table()


def test_the_page_names_every_key_of_a_model() -> None:
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named == set(SCHEMA["$defs"]["entry"]["properties"])


def catalog(root: Path, text: str) -> None:
    path = root / ".github" / "runner-e2e.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_catalog_describes_an_action(tmp_path: Path) -> None:
    (text,) = re.findall(r"<!-- test: own model -->\n```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    catalog(tmp_path, text)
    given = ["bucket", "title", "payload", "command", "other"]
    steps = [f'{{uses: "Octo/upload-results@v1", with: {{{name}: "${{{{ inputs.selected-id }}}}"}}}}' for name in given]
    steps[1] = steps[1].replace("{uses", "{id: it, uses")
    steps += [f'{{run: "tool ${{{{ steps.it.outputs.{name} }}}}"}}' for name in ("url", "id", "key")]
    found = {number: {each.rule for each in rules} for number, rules in reported(tmp_path, steps).items()}
    assert "confidential-argv" in found[0]
    assert "confidential-name" in found[1]
    assert "confidential-third-party" in found[2]
    assert "confidential-argv" in found[3]
    assert found[4] == {"confidential-log"}
    assert "confidential-argv" in found[5]
    assert not {"confidential-argv", "secret-argv"} & found.get(6, set())
    assert "secret-argv" in found[7]


def test_a_wrong_description_in_the_catalog_is_told_with_its_place(tmp_path: Path) -> None:
    catalog(tmp_path, "lint:\n  actions:\n    octo/tool:\n      args: {x: [y]}\n      other: maybe\n")
    workflow = tmp_path / ".github" / "workflows" / "w.yml"
    workflow.parent.mkdir()
    workflow.write_text("on: push\njobs: {a: {runs-on: x, steps: [{run: 'true'}]}}\n")
    report = lint([workflow], current=tmp_path)
    assert [str(problem.place) for problem in report.problems] == [".github/runner-e2e.yml:3:5"] * 2
    assert {problem.what.split(": ", 1)[1][:7] for problem in report.problems} == {"`args` ", "`other`"}


@pytest.mark.parametrize(
    "entry", [each for each in ENTRIES if {"variables-argv", "variables-sent"} & set(each)], ids=label
)
def test_variables_that_an_input_names_are_reported(tmp_path: Path, entry: dict[str, Any]) -> None:
    names = {**entry.get("variables-argv", {}), **entry.get("variables-sent", {})}
    variables = 'env: {CELL: "${{ inputs.selected-id }}", OTHER: x}'
    steps = [
        f'{{uses: "{entry["uses"]}@v{version(entry)}", with: {{{name}: "OTHER,CELL"}}, {variables}}}' for name in names
    ]
    steps.append(f'{{uses: "{entry["uses"]}@v{version(entry)}", with: {{{next(iter(names))}: "OTHER"}}, {variables}}}')
    found = reported(tmp_path, steps)
    for number, name in enumerate(names):
        rule = "confidential-argv" if name in entry.get("variables-argv", {}) else "confidential-third-party"
        assert [names[name] in each.message for each in found[number] if each.rule == rule] == [True]
    assert {each.rule for each in found[len(names)]} == {"confidential-log"}


@pytest.mark.parametrize("entry", [each for each in ENTRIES if "argv" in each], ids=label)
def test_secrets_matter_where_an_argument_is_a_credential(tmp_path: Path, entry: dict[str, Any]) -> None:
    names = sorted({name for names in entry["argv"].values() for name in names} - set(entry.get("script", ())))
    uses = f"{entry['uses']}@v{version(entry)}"
    steps = [f'{{uses: "{uses}", with: {{{name}: "${{{{ secrets.T }}}}"}}}}' for name in names]
    found = reported(tmp_path, steps)
    told = {
        name for number, name in enumerate(names) if any(each.rule == "secret-argv" for each in found.get(number, ()))
    }
    assert told == set(entry["credentials"]) & set(names)
