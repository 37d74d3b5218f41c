"""Scripts that are given the same again: found again, with the places and ways of this time, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint.analysis import Analyst
from runner_e2e.lint.repetitions import Repetitions
from runner_e2e.lint.repository import Repository
from runner_e2e.lint.shell import Files, ShellOptions
from runner_e2e.lint.values import Label, Origin, Script, Step, Taint, Value

if TYPE_CHECKING:
    from runner_e2e.lint.result import FileResult

CASES = Path(__file__).parent.parent / "acceptance" / "lint" / "cases"
ID = "${{ inputs.selected-id }}"
HEAD = "on:\n  workflow_dispatch:\n    inputs:\n      selected-id:\n        required: true\njobs:\n"
JOB = "  a:\n    runs-on: ubuntu-latest\n    steps:\n"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Repetitions]:
    """All that are made while the test runs."""
    made: list[Repetitions] = []
    before = Repetitions.__init__

    def remember(self: Repetitions, *given: object) -> None:
        before(self, *given)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(Repetitions, "__init__", remember)
    return made


def write(root: Path, name: str, text: str) -> Path:
    path = root / ".github" / "workflows" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def results(root: Path, *paths: Path) -> list[FileResult]:
    analyst = Analyst(root.resolve(), time_limit=60)
    return [analyst.result(path, explicit=True) for path in paths]


def lines(result: FileResult, rule: str) -> list[int]:
    return [one.span.line for one in result.findings if one.rule == rule]


def step(script: str, *, value: str = ID, name: str = "ID", more: str = "") -> str:
    return f"      - run: {script}\n{more}        env:\n          {name}: {value}\n"


def test_every_case_is_the_same_a_second_time(tmp_path: Path, counted: list[Repetitions]) -> None:
    shutil.copytree(CASES, tmp_path / "cases")
    (tmp_path / "cases" / ".git").mkdir()
    cases = (path for path in (tmp_path / "cases").rglob("*.yml") if path.with_suffix(".truth.json").exists())
    first = sorted(cases)[::4]
    second = []
    for path in first:
        second.append(path.with_name(f"again-{path.name}"))
        second[-1].write_text(f"# moved\n\n{path.read_text()}")
    results(tmp_path, *first)
    alone = [results(tmp_path, path)[0] for path in second]
    assert results(tmp_path, *first, *second)[len(first) :] == alone
    assert counted[-1].recalled > len(first) / 2


def test_ways_and_places_are_those_of_this_time(tmp_path: Path, counted: list[Repetitions]) -> None:
    text = HEAD + JOB + step('x="$ID"; tool "$x"') + "      # between\n" + step('x="$ID"; tool "$x"')
    one = results(tmp_path, write(tmp_path, "w.yml", text))[0]
    assert counted[-1].recalled == 1
    leaks = [finding for finding in one.findings if finding.rule == "confidential-argv"]
    assert [[place.span.line for place in leak.flow] for leak in leaks] == [[12, 10, 10], [16, 14, 14]]


@pytest.mark.parametrize(
    "other",
    [
        step('tool "$ID"', name="OTHER"),
        step('tool "$ID"', value="none"),
        step('tool "$ID"', value="a-" + ID),
        step('tool  "$ID"'),
        step('tool "$ID"', more="        shell: sh\n"),
        step('tool "$ID"', more="        working-directory: sub\n"),
        step('tool "$ID"', more=f"        # two\n        name: {ID}\n", value="${{ github.token }}"),
    ],
)
def test_what_differs_is_analysed(tmp_path: Path, counted: list[Repetitions], other: str) -> None:
    text = HEAD + JOB + step('tool "$ID"') + other
    assert len(results(tmp_path, write(tmp_path, "w.yml", text))) == 1
    assert counted[-1].recalled == 0


def test_values_that_came_two_ways_are_no_values_that_came_one(tmp_path: Path) -> None:
    repetitions = Repetitions(Repository(tmp_path))

    def value(at: Step) -> Value:
        return Value.of([Taint(Label(kind="confidential", name="id"), trail=at)])

    def sources(first: Step, second: Step) -> list[Step]:
        text = 'tool "$A"; other "$B"'
        script = Script(origin=Origin(path="w.yml", text=text), text=text)
        environment = {"A": value(first), "B": value(second)}
        result = repetitions.analyse(script, environment=environment, files=Files(), options=ShellOptions())
        assert {leak.origin for leak in result.leaks} == {script.origin}
        return [trail.walk()[0] for leak in result.leaks for taint in leak.taints if (trail := taint.trail) is not None]

    origin = Origin(path="w.yml", text="one, two, three")
    one, two, three = (Step(origin, start, start + 3, "x") for start in (0, 5, 10))
    assert sources(one, one) == [one, one]
    assert sources(two, three) == [two, three]
    assert repetitions.recalled == 0
    assert sources(two, two) == [two, two]
    assert sources(three, one) == [three, one]
    assert repetitions.recalled == 2


def test_text_that_is_made_anew_each_time_is_not_the_same(tmp_path: Path, counted: list[Repetitions]) -> None:
    made = '|\n          x="$(jq -r .a <<< "$ID")"\n          echo "x=$x" >> "$GITHUB_OUTPUT"\n'
    text = HEAD + JOB + step(made, more="        id: one\n") + step(made, more="        id: two\n")
    for script, number in (("::add-mask::$X", "one"), ("one $X", "one"), ("two $X", "two")):
        text += step(f"echo '{script}'".replace("'", '"'), value=f"${{{{ steps.{number}.outputs.x }}}}", name="X")
    result = results(tmp_path, write(tmp_path, "w.yml", text))[0]
    assert counted[-1].recalled == 1
    source = text.splitlines()
    shown = [source[one.span.line - 1] for one in result.findings if "printed to the log" in one.message]
    assert [line.split()[-2:] for line in shown] == [['"two', '$X"']]


def test_what_was_read_is_read_again(tmp_path: Path, counted: list[Repetitions]) -> None:
    (tmp_path / "run.sh").write_text('#!/bin/bash\ntool "$1"\n')
    (tmp_path / ".git").mkdir()
    text = HEAD + JOB + step('./run.sh "$ID"; ./none.sh')
    first, second = (write(tmp_path, name, extra + text) for name, extra in (("a.yml", ""), ("b.yml", "# b\n")))
    one, other = results(tmp_path, first, second)
    assert counted[-1].recalled == 1
    assert one.reads == other.reads == results(tmp_path, second)[0].reads
    assert {"run.sh", "none.sh"} <= set(other.reads)
    flow = next(finding.flow for finding in other.findings if finding.span.path == "run.sh")
    assert [(place.span.path.rpartition("/")[2], place.span.line) for place in flow] == [
        ("b.yml", 13),
        ("run.sh", 2),
    ]


TAKE = 'x="$(jq -r ".$KEY" <<< "$ID")"\necho "$KEY=$x" >> "$GITHUB_ENV"\n'


@pytest.mark.parametrize("uses", [False, True])
def test_a_mask_covers_what_this_run_of_a_script_made_and_no_other(tmp_path: Path, uses: bool) -> None:
    """Nothing is found again here: the keys differ. It is the same script, at the same place."""
    action = tmp_path / "take" / "action.yml"
    action.parent.mkdir()
    script = "".join(f"        {line}\n" for line in TAKE.splitlines())
    action.write_text(
        "name: take\ndescription: take\ninputs: {id: {required: true}, key: {required: true}}\nruns:\n"
        f"  using: composite\n  steps:\n    - shell: bash\n      run: |\n{script}"
        "      env: {ID: '${{ inputs.id }}', KEY: '${{ inputs.key }}'}\n"
    )
    (tmp_path / "take.sh").write_text(f"#!/bin/bash\n{TAKE}")
    text = HEAD + JOB
    for key in ("one", "two"):
        if uses:
            text += f"      - uses: ./take\n        with: {{id: '{ID}', key: {key}}}\n"
        else:
            text += step("./take.sh", more=f"        # {key}\n", value=f"{ID}\n          KEY: {key}")
    text += (
        '      - run: |\n          echo "::add-mask::$one"\n          echo "first $one"\n          echo "second $two"\n'
    )
    result = results(tmp_path, write(tmp_path, "w.yml", text))[0]
    shown = [text.splitlines()[one.span.line - 1] for one in result.findings if "printed to the log" in one.message]
    assert [line.split()[-2:] for line in shown] == [['"second', '$two"']]


@pytest.mark.parametrize(
    ("make", "read"),
    [
        ('f="$(mktemp)"; ', '"$(cat "$F")"'),
        ("python3 -c 'import tempfile; print(tempfile.mkdtemp())' > p; f=\"$(cat p)/f\"; ", '"$(cat "$F")"'),
    ],
)
@pytest.mark.parametrize("again", ["none", ID])
def test_files_that_are_made_anew_are_not_the_same(tmp_path: Path, make: str, read: str, again: str) -> None:
    """Each of the two is the file of its own step, also when one is found again."""
    text = HEAD + JOB
    for name, value in (("F", ID), ("G", again)):
        script = f'|\n          {make}echo "$ID" > "$f"; echo "$N=$f" >> "$GITHUB_ENV"\n'
        text += step(script, value=f"{value}\n          N: {name}")
    text += f"      - run: {f'tool {read}'!r}\n      - run: {f'tool {read}'.replace('$F', '$G')!r}\n"
    result = results(tmp_path, write(tmp_path, "w.yml", text))[0]
    size = len(text.splitlines())
    assert lines(result, "confidential-argv") == ([size - 1] if again == "none" else [size - 1, size])
