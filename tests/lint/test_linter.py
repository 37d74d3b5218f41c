"""The linter on whole files: what it reads, what it refuses, and that no file stops it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import jsonschema
import pytest

from runner_e2e.errors import UsageError
from runner_e2e.lint import analysis, linter, processes
from runner_e2e.lint.linter import Report, default_paths, lint
from runner_e2e.lint.render import render
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.values import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner_e2e.lint.result import FileResult

DISPATCH = "on:\n  workflow_dispatch:\n    inputs:\n      selected-id:\n        required: true\n"
LEAK = f"""\
{DISPATCH}jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: tool "$ID"
        env:
          ID: ${{{{ inputs.selected-id }}}}
"""
HERE = Path(__file__).parent
SCHEMA = json.loads((Path(linter.__file__).parent / "schemas" / "lint-v1.json").read_text())


def workflow(root: Path, text: str | bytes, name: str = "w.yml") -> Path:
    path = root / ".github" / "workflows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def places(report: Report, rule: str = "confidential-argv") -> list[tuple[str, int, int]]:
    return [
        (finding.span.path, finding.span.line, finding.span.column)
        for finding in report.findings
        if finding.rule == rule
    ]


def test_the_finding_names_value_command_line_and_way(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK)
    finding, shown = lint([], current=tmp_path).findings
    assert shown.rule == "confidential-log"  # the header of the step lists the variable
    assert finding.confidence is Confidence.HIGH
    assert (finding.span.line, finding.span.column, finding.span.end_column) == (10, 19, 24)
    assert "`inputs.selected-id`" in finding.message
    assert "`tool`" in finding.message
    assert 'ID="$ID" tool' in finding.fix
    assert [place.span.line for place in finding.flow] == [12, 10]


def test_json_follows_its_schema(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK)
    workflow(tmp_path, "a: [", "bad.yml")
    report = json.loads(render(lint([], current=tmp_path), "json"))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(report, SCHEMA)
    finding, _ = report["findings"]
    assert finding["rule"] == "confidential-argv"
    assert finding["confidence"] == "high"
    assert finding["path"] == ".github/workflows/w.yml"
    assert [place["line"] for place in finding["flow"]] == [12, 10]
    assert report["problems"][0]["line"] == 1


# --- Which files.


def test_the_default_is_workflows_templates_and_every_action(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK, "b.yaml")
    workflow(tmp_path, LEAK, "a.yml")
    for name in ("workflows-templates/t.yml", "action.yml", "deep/er/action.yaml", "node_modules/x/action.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("runs: {using: composite, steps: []}\n")
    (tmp_path / "workflows-templates/t.properties.json").write_text("{}")
    found = [str(path.relative_to(tmp_path)) for path in default_paths(tmp_path)]
    assert found == [
        ".github/workflows/a.yml", ".github/workflows/b.yaml", "workflows-templates/t.yml", "action.yml",
        "deep/er/action.yaml",
    ]  # fmt: skip
    assert lint([], current=tmp_path).files == 5


def test_a_folder_of_files_is_taken_whole_and_other_yaml_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "w.yml").write_text(LEAK)
    (tmp_path / "values.yml").write_text("a: b\n")
    report = lint([tmp_path], current=tmp_path)
    assert report.files == 2
    assert report.problems == ()
    assert places(report) == [("w.yml", 10, 19)]


def test_a_named_file_that_is_no_workflow_is_told(tmp_path: Path) -> None:
    (tmp_path / "values.yml").write_text("a: b\n")
    report = lint([tmp_path / "values.yml"], current=tmp_path)
    assert "neither a workflow nor an action" in report.problems[0].what


def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*absent\.yml"):
        lint([tmp_path / "absent.yml"], current=tmp_path)


@pytest.mark.parametrize("named", [(), (".",)])
def test_workflows_that_cannot_be_read_are_a_usage_error(
    named: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow(tmp_path, LEAK)
    folder = str(tmp_path / ".github" / "workflows")
    monkeypatch.setattr(os, "listdir", refusing(os.listdir, folder))
    monkeypatch.setattr(os, "stat", refusing(os.stat, folder))
    with pytest.raises(UsageError, match=r"cannot read .*workflows"):
        lint([tmp_path / name for name in named], current=tmp_path)


def test_a_folder_above_that_may_not_be_looked_into_is_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "inner" / "w.yml"
    path.parent.mkdir()
    path.write_text(LEAK)
    monkeypatch.setattr(os, "stat", refusing(os.stat, str(tmp_path / ".git")))
    assert places(lint([path], current=path.parent)) == [("w.yml", 10, 19)]


def refusing(function: Callable[..., object], folder: str) -> Callable[..., object]:
    """*function*, but what it asks of *folder* is not permitted."""

    def asked(path: object, *arguments: object, **named: object) -> object:
        if str(path) == folder:
            raise PermissionError(13, "Permission denied", folder)
        return function(path, *arguments, **named)

    return asked


def test_a_file_is_linted_once_however_it_is_named(tmp_path: Path) -> None:
    path = workflow(tmp_path, LEAK)
    link = tmp_path / "link.yml"
    link.symlink_to(path)
    assert lint([path, link, tmp_path / ".github" / "workflows"], current=tmp_path).files == 1


def test_a_link_out_of_the_repository_is_followed_only_when_it_is_named(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yml"
    outside.write_text(LEAK)
    root = tmp_path / "repository"
    workflow(root, LEAK)
    link = root / ".github" / "workflows" / "link.yml"
    link.symlink_to(outside)
    assert lint([], current=root).files == 1
    assert lint([root], current=root).files == 1
    assert lint([link], current=root).files == 1


# --- What is confidential.


def test_names_come_from_the_catalog(tmp_path: Path) -> None:
    text = LEAK.replace("selected-id", "case-name")
    workflow(tmp_path, text)
    assert places(lint([], current=tmp_path)) == []
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 10, 19)]


CATALOG = """\
confidential: {inputs: [case-name]}
harness: {command: [python3, harness.py]}
profiles: {scripted: }
environments: {local: }
suites: {hello: {billable: false, profiles: [scripted], environments: [local], cases: [greet]}}
"""


def test_a_wrong_catalog_is_told_once_and_the_defaults_hold(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK)
    workflow(tmp_path, LEAK, "x.yml")
    (tmp_path / ".github" / "runner-e2e.yml").write_text("version: 1\nconfidential: [a]\n")
    report = lint([], current=tmp_path)
    assert len(places(report)) == 2
    assert len({str(problem) for problem in report.problems}) == len(report.problems) > 0


@pytest.mark.parametrize("mark", ["# runner-e2e: paid\n", "", "      - uses: org/runner-e2e-action@v1\n"])
def test_id_is_confidential_in_paid_workflows(tmp_path: Path, mark: str) -> None:
    text = LEAK.replace("selected-id", "id")
    text = text + mark if mark.startswith(" ") else mark + text
    workflow(tmp_path, text)
    assert bool(places(lint([], current=tmp_path))) == bool(mark)


def test_the_variable_of_the_selected_id_is_confidential(tmp_path: Path) -> None:
    text = 'on: push\njobs:\n  a:\n    steps:\n      - run: tool "$PAPERCLIP_RUNNER_E2E_SELECTED_ID"\n'
    text += "        env:\n          PAPERCLIP_RUNNER_E2E_SELECTED_ID: ${{ vars.CASE }}\n"
    workflow(tmp_path, text)
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 5, 19)]


# --- Bad input: one file never stops another.

BAD_FILES: dict[str, tuple[bytes, str, int]] = {
    "yaml": (b"on: push\njobs:\n  a: [\n", "not valid YAML", 4),
    "tab": (b"on: push\njobs:\n\ta:\n", "indented with a tab", 3),
    "latin-1": ("on: push\nname: caf\xe9\n".encode("latin-1"), "0xe9 is not UTF-8", 2),
    "utf-16": ("on: push\n".encode("utf-16"), "UTF-16", 1),
    "depth": (b"on: " + b"[" * 5000, "deeper than 200", 1),
    "recursive alias": (b"on: push\njobs: &j\n  a: *j\n", "contains it", 3),
    "bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 10)) for c in range(97, 105)),
        "expand to more than",
        6,
    ),
    "null character": (b"on: push\0\n", "U+0000", 1),
    "two documents": (b"on: push\n---\non: push\n", "second document", 2),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_cannot_be_read_is_told_with_its_place_and_the_rest_is_linted(tmp_path: Path, name: str) -> None:
    data, part, line = BAD_FILES[name]
    workflow(tmp_path, data, "a-bad.yml")
    workflow(tmp_path, LEAK)
    report = lint([], current=tmp_path)
    (problem,) = report.problems
    assert part in str(problem)
    assert problem.place is not None
    assert (problem.place.path, problem.place.line) == (".github/workflows/a-bad.yml", line)
    assert problem.fix
    assert places(report) == [(".github/workflows/w.yml", 10, 19)]


@pytest.mark.parametrize("text", (HERE / "odd_shapes.txt").read_text().split("=====\n"))
def test_odd_shapes_are_survived(tmp_path: Path, text: str) -> None:
    workflow(tmp_path, text.replace("jobs:", "env: {T: '${{ secrets.T }}'}\njobs:", 1))
    report = lint([], current=tmp_path)
    assert report.defects == 0
    assert all("defect" not in problem.what for problem in report.problems)


@pytest.mark.parametrize("change", ["\ufeff{}", "{}"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_byte_order_mark_and_line_ends_do_not_move_places(tmp_path: Path, change: str, line_end: str) -> None:
    workflow(tmp_path, change.format(LEAK).replace("\n", line_end))
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 10, 19)]


def test_columns_count_characters(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK.replace('run: tool "$ID"', 'run: echo "é😀"; tool "$ID"'))
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 10, 30)]


@pytest.mark.parametrize(
    ("run", "line", "column"),
    [
        ('run: tool "$ID"', 10, 19),
        ("run: 'tool \"$ID\"'", 10, 20),
        ('run: "tool \\"$ID\\""', 10, 20),
        ('run: |\n          echo a\n          tool "$ID"', 12, 16),
        ('run: |2\n            echo a\n            tool "$ID"', 12, 18),
        ('run: >-\n          tool\n          "$ID"', 12, 11),
        ('{run: tool "$ID", name: x}', 10, 20),
        ('run:\n          tool\n          "$ID"', 12, 11),
    ],
)  # fmt: skip
def test_places_in_every_kind_of_scalar(tmp_path: Path, run: str, line: int, column: int) -> None:
    text = LEAK.replace('run: tool "$ID"\n        env:\n          ID: ${{ inputs.selected-id }}', run)
    text = text.replace("    steps:", "    env: {ID: '${{ inputs.selected-id }}'}\n    steps:").replace(
        "    runs-on: ubuntu-latest\n", ""
    )
    workflow(tmp_path, text)
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", line, column)]


def test_an_anchored_step_is_reported_once(tmp_path: Path) -> None:
    text = LEAK.replace("- run:", "- &step\n        run:") + "      - *step\n  b:\n    steps: [*step]\n"
    workflow(tmp_path, text)
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 11, 19)]


def test_a_call_from_two_places_is_reported_once(tmp_path: Path) -> None:
    action = tmp_path / "say" / "action.yml"
    action.parent.mkdir()
    action.write_text(
        "inputs: {it: {required: true}}\nruns:\n  using: composite\n  steps:\n"
        "    - run: tool \"$IT\"\n      shell: bash\n      env: {IT: '${{ inputs.it }}'}\n"
    )
    use = "      - uses: ./say\n        with: {it: '${{ inputs.selected-id }}'}\n"
    workflow(tmp_path, f"{DISPATCH}jobs:\n  a:\n    steps:\n{use}{use}")
    assert places(lint([], current=tmp_path)) == [("say/action.yml", 5, 17)]


@pytest.mark.parametrize("uses", [{"a": "a"}, {"a": "b", "b": "a"}])
def test_actions_that_use_themselves_end(tmp_path: Path, uses: dict[str, str]) -> None:
    for name, other in uses.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "action.yml").write_text(f"runs: {{using: composite, steps: [{{uses: ./{other}}}]}}\n")
    workflow(tmp_path, LEAK.replace("      - run", "      - uses: ./a\n      - run"))
    report = lint([], current=tmp_path)
    assert report.problems == ()
    assert places(report) == [(".github/workflows/w.yml", 11, 19)]


def test_workflows_that_call_one_another_end(tmp_path: Path) -> None:
    call = "on: {workflow_call: }\nenv: {T: '${{ secrets.T }}'}\n"
    call += "jobs: {a: {uses: ./.github/workflows/%s.yml, secrets: inherit}}\n"
    workflow(tmp_path, call % "y", "x.yml")
    workflow(tmp_path, call % "x", "y.yml")
    assert lint([], current=tmp_path).problems == ()


def test_nothing_outside_of_the_repository_is_read(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "action.yml").write_text(
        "runs: {using: composite, steps: [{run: 'tool ${{ inputs.it }}', shell: bash}]}\n"
    )
    (root / ".github" / "workflows").mkdir(parents=True)
    (root / "link").symlink_to(secret)
    (root / "run.sh").symlink_to(secret / "action.yml")
    uses = "".join(
        f"      - uses: {path}\n        with: {{it: '${{{{ inputs.selected-id }}}}'}}\n"
        for path in ("./link", "./../outside")
    )
    workflow(root, f"{DISPATCH}jobs:\n  a:\n    steps:\n{uses}")
    report = lint([root / ".github" / "workflows" / "w.yml"], current=root)
    assert places(report) == []


# --- Scripts that cannot be followed, and time.


def test_an_expression_that_never_closes_is_a_finding_with_its_place(tmp_path: Path) -> None:
    workflow(tmp_path, LEAK.replace('tool "$ID"', "tool ${{ inputs.selected-id"))
    report = lint([], current=tmp_path)
    assert places(report, "invalid-expression") == [(".github/workflows/w.yml", 10, 19)]


def test_a_script_that_does_not_parse_is_a_finding_with_its_place(tmp_path: Path) -> None:
    broken = "run: |\n          echo start\n          if true; then tool"
    workflow(tmp_path, LEAK.replace('run: tool "$ID"', broken))
    report = lint([], current=tmp_path)
    (place,) = places(report, "unanalysable-script")
    assert place[:2] in {(".github/workflows/w.yml", 11), (".github/workflows/w.yml", 12)}
    finding = next(each for each in report.findings if each.rule == "unanalysable-script")
    assert finding.confidence >= Confidence.MEDIUM


def test_the_time_of_a_file_is_bounded_and_that_is_told(tmp_path: Path) -> None:
    script = "".join(
        f'          tool {i} "$ID" | while read -r x; do case $x in {i}) y$x=$ID ;; esac; done\n' for i in range(30_000)
    )
    workflow(tmp_path, LEAK.replace('tool "$ID"\n', f"|\n{script}"))
    workflow(tmp_path, LEAK, "x.yml")
    began = time.process_time()
    report = lint([], current=tmp_path, time_limit=1.0)
    # To read the script to its end alone takes several times as long.
    assert time.process_time() - began < 4
    assert report.defects == 0
    gaps = [finding for finding in report.findings if finding.rule == "unanalysable-script"]
    assert gaps
    assert all(gap.span.path == ".github/workflows/w.yml" for gap in gaps)
    assert (".github/workflows/x.yml", 10, 19) in places(report)


def test_five_megabytes_are_linted(tmp_path: Path) -> None:
    steps = "".join(f"      - name: step {i}\n        run: echo {i} {'x' * 2_500}\n" for i in range(2_000))
    workflow(tmp_path, LEAK.replace("    steps:\n", f"    steps:\n{steps}"))
    assert (tmp_path / ".github/workflows/w.yml").stat().st_size > 5_000_000
    report = lint([], current=tmp_path, time_limit=60)
    assert places(report) == [(".github/workflows/w.yml", 4_010, 19)]


def test_a_defect_of_ours_is_told_and_the_rest_is_linted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow(tmp_path, LEAK, "a.yml")
    (tmp_path / "action.yml").write_text("runs: {using: composite, steps: []}\n")

    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(analysis, "run_action", broken)
    report = lint([], current=tmp_path)
    assert report.defects == 1
    assert "a defect of runner-e2e: ZeroDivisionError: by zero" in str(report.problems[0])
    assert len(places(report)) == 1


@pytest.mark.parametrize("part", ["check", "inspect"])
def test_a_defect_of_a_rule_stops_neither_other_rules_nor_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    workflow(tmp_path, LEAK, "a.yml")
    workflow(tmp_path, LEAK.replace("selected-id", "other"), "b.yml")

    def broken(*arguments: object) -> NoReturn:
        raise ZeroDivisionError("by zero")

    first = replace(
        RULES[-1],
        id="broken",
        check=broken if part == "check" else None,
        inspect=broken if part == "inspect" else None,
    )
    monkeypatch.setattr(analysis, "RULES", (first, *RULES))
    report = lint([], current=tmp_path)
    told = [str(problem).splitlines()[0] for problem in report.problems]
    what = "a defect of runner-e2e in the rule broken: ZeroDivisionError: by zero"
    # A check is called for what the analysis saw; an inspection for every file.
    assert told == [f".github/workflows/{name}.yml: {what}" for name in ("ab" if part == "inspect" else "a")]
    assert report.defects == len(told)
    assert len(places(report)) == 1


def test_a_file_without_an_end_is_a_problem(tmp_path: Path) -> None:
    report = lint([Path("/dev/zero")], current=tmp_path)
    assert [problem.what for problem in report.problems] == ["the file has more than 32 MiB, which is no workflow"]


def test_processes_that_share_files_begin_with_the_big_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [number * 7 % 50 for number in range(2 * linter.FILES_PER_PROCESS)]
    paths = [workflow(tmp_path, "#" * length, f"w{number:02}.yml") for number, length in enumerate(lengths)]
    order: list[int] = []

    def alone(numbers: Sequence[int], work: Callable[[int], FileResult], count: int) -> dict[int, FileResult]:
        order.extend(numbers)
        assert count == 2
        return {number: work(number) for number in numbers}

    monkeypatch.setattr(processes, "shared", alone)
    assert lint([], current=tmp_path, processes=2).files == len(paths)
    assert [lengths[number] for number in order] == sorted(lengths, reverse=True)


def test_a_file_beyond_what_is_usual_is_read_whole(tmp_path: Path) -> None:
    filler = "# a line that says nothing at all\n" * 4000
    workflow(tmp_path, filler + LEAK)
    assert places(lint([], current=tmp_path)) == [(".github/workflows/w.yml", 4010, 19)]
