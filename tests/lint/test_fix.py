"""The engine of fixes: which are applied together, which are taken back, and what stays as it was."""

from __future__ import annotations

import re
import shutil
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint import fix as engine
from runner_e2e.lint.finding import Edit, Finding, Fix, Rule
from runner_e2e.lint.fix import MAX_ROUNDS, Change, Outcome, apply_fixes, proposals
from runner_e2e.lint.fix_files import unified_diff, write_changes
from runner_e2e.lint.fixes.unchanged import Taken, applied, unchanged_elsewhere
from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.rules import RULES
from runner_e2e.lint.values import Confidence, Origin, Span
from runner_e2e.yaml_positions import compose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.repository import Document, Repository

HERE = Path(__file__).parent
FIXTURES = HERE / "rules"
PAGES = HERE.parent.parent / "docs" / "rules"
WITH_REPAIR = [rule.id for rule in RULES if rule.repair is not None]


# --- with rules made for the purpose: each word of a file that a rule names is a finding


def words_of(text: str, word: str, path: str) -> list[Finding]:
    origin = Origin(path=path, text=text.removeprefix("\ufeff"))
    return [
        Finding(
            rule=f"no-{word}", level="error", confidence=Confidence.HIGH, span=origin.span(*found.span()), message=word
        )
        for found in re.finditer(rf"\b{word}\b", origin.text)
    ]


def rule_of(word: str, repair: Callable[[str, Span], tuple[list[tuple[int, int, str]], bool]]) -> Rule:
    def made(finding: Finding, document: Document, repository: Repository) -> Fix:
        assert document.root is not None
        assert repository.root.is_dir()
        text = document.root.source.text
        pieces, safe = repair(text, finding.span)
        edits = tuple(Edit(path=document.path, start=start, end=end, text=new) for start, end, new in pieces)
        return Fix(title=f"repair {word}", safe=safe, edits=edits)

    return Rule(id=f"no-{word}", summary="", explanation="", repair=made)


def replaced(new: str, *, safe: bool = True) -> Callable[[str, Span], tuple[list[tuple[int, int, str]], bool]]:
    def pieces(text: str, span: Span) -> tuple[list[tuple[int, int, str]], bool]:
        start = sum(len(line) for line in text.splitlines(keepends=True)[: span.line - 1]) + span.column - 1
        return [(start, start + span.end_column - span.column, new)], safe

    return pieces


class Bench:
    """A folder with one file, and rules that look for words."""

    def __init__(self, folder: Path, text: str, rules: tuple[Rule, ...], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.words = folder, [rule.id.removeprefix("no-") for rule in rules]
        self.path = folder / "w.yml"
        self.path.write_bytes(text.encode())
        self.calls = 0
        monkeypatch.setattr(engine, "RULES", rules)

    def lint(self, texts: Mapping[Path, str]) -> Report:
        self.calls += 1
        text = texts.get(self.path.resolve()) or self.path.read_bytes().decode()
        findings = [finding for word in self.words for finding in words_of(text, word, "w.yml")]
        return Report(findings=tuple(findings), problems=(), files=1)

    def fix(self, *, unsafe: bool = False) -> tuple[str, Outcome]:
        outcome = apply_fixes(self.lint, current=self.folder, unsafe=unsafe)
        after = outcome.changes[0].after if outcome.changes else self.path.read_bytes().decode()
        return after, outcome


def test_every_finding_is_repaired_in_one_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "\ufeffa: bad # ä\r\nb: [x, bad]\r\n", (rule_of("bad", replaced("good")),), monkeypatch)
    after, outcome = bench.fix()
    assert after == "\ufeffa: good # ä\r\nb: [x, good]\r\n"
    assert len(outcome.applied) == 2
    assert outcome.report.findings == ()
    assert len(outcome.before.findings) == 2
    assert bench.calls == 2
    assert bench.path.read_bytes().decode() == "\ufeffa: bad # ä\r\nb: [x, bad]\r\n"  # nothing is written yet


def test_unsafe_fixes_are_counted_and_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (rule_of("bad", replaced("good", safe=False)), rule_of("odd", replaced("even")))
    bench = Bench(tmp_path, "a: bad\nb: odd\n", rules, monkeypatch)
    after, outcome = bench.fix()
    assert (after, outcome.withheld) == ("a: bad\nb: even\n", 1)
    after, outcome = bench.fix(unsafe=True)
    assert (after, outcome.withheld) == ("a: good\nb: even\n", 0)


def test_fixes_that_touch_wait_for_the_next_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole_line(text: str, span: Span) -> tuple[list[tuple[int, int, str]], bool]:
        start = text.index("bad odd")
        return [(start, start + 7, "odd")], True

    rules = (rule_of("bad", whole_line), rule_of("odd", replaced("even")))
    bench = Bench(tmp_path, "a: bad odd\n", rules, monkeypatch)
    after, outcome = bench.fix()
    assert (after, len(outcome.applied), bench.calls) == ("a: even\n", 2, 3)


def test_a_fix_that_makes_something_worse_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (rule_of("bad", replaced("worse")), rule_of("worse", replaced("worse")), rule_of("odd", replaced("even")))
    bench = Bench(tmp_path, "a: bad\nb: odd\nc: odd\n", rules, monkeypatch)
    after, outcome = bench.fix()
    assert after == "a: bad\nb: even\nc: even\n"
    assert [finding.rule for finding in outcome.report.findings] == ["no-bad"]


def test_a_fix_that_does_not_help_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "a: bad\n", (rule_of("bad", replaced("not bad")),), monkeypatch)
    after, outcome = bench.fix()
    assert (after, outcome.applied, outcome.changes) == ("a: bad\n", (), ())


def test_what_somebody_writes_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "a: bad\n", (rule_of("bad", replaced("good")),), monkeypatch)

    def lint_and_edit(texts: Mapping[Path, str]) -> Report:
        report = bench.lint(texts)
        if texts:
            bench.path.write_text("a: mine\n")
        return report

    outcome = apply_fixes(lint_and_edit, current=tmp_path, unsafe=False)
    assert [(change.before, change.after) for change in outcome.changes] == [("a: bad\n", "a: good\n")]
    with pytest.raises(ConfigurationError, match="changed since"):
        write_changes(outcome.changes)
    assert bench.path.read_text() == "a: mine\n"


@pytest.mark.parametrize("new", ["x: y: z", "'", "[", "good\nd: c: e"])
def test_a_fix_that_breaks_the_file_or_changes_another_node_is_not_proposed(
    new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, "a: bad # c\nd: 1\n", (rule_of("bad", replaced(new)),), monkeypatch)
    report = bench.lint({})
    assert proposals(report.findings, current=tmp_path) == {}
    assert bench.fix()[0] == "a: bad # c\nd: 1\n"


def test_rounds_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One repair a round, for each is about all that stands before it."""

    def neighbours(text: str, span: Span) -> tuple[list[tuple[int, int, str]], bool]:
        (piece,), safe = replaced("")(text, span)
        return [(0, piece[1], text[: piece[0]])], safe

    text = "a: x" + " bad" * (MAX_ROUNDS + 5) + "\n"
    bench = Bench(tmp_path, text, (rule_of("bad", neighbours),), monkeypatch)
    monkeypatch.setattr(engine, "unchanged_elsewhere", lambda *_: True)
    _, outcome = bench.fix()
    assert len(outcome.applied) <= MAX_ROUNDS
    assert bench.calls <= MAX_ROUNDS + 1


def test_no_file_of_ours_is_proposed_anything_when_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "a: bad\n", (rule_of("bad", replaced("good")),), monkeypatch)
    report = bench.lint({})
    bench.path.unlink()
    assert proposals(report.findings, current=tmp_path) == {}


def test_edits_that_may_not_be_made_leave_nothing_behind() -> None:
    def edit(start: int, end: int) -> Edit:
        return Edit(path="a", start=start, end=end, text="")

    taken = Taken()
    assert taken.add([edit(1, 3)])
    assert not taken.add([edit(5, 7), edit(2, 4)])
    assert taken.add([edit(6, 9)])


def test_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "a: bad\n", (rule_of("bad", replaced("good")),), monkeypatch)
    report = bench.lint({})
    assert len(proposals(report.findings, current=tmp_path)) == 1
    monkeypatch.setattr(engine, "TIME_LIMIT", -1.0)
    assert proposals(report.findings, current=tmp_path) == {}


def test_which_edits_overlap() -> None:
    def edit(start: int, end: int, text: str = "") -> Edit:
        return Edit(path="a", start=start, end=end, text=text)

    def together(*edits: Edit) -> bool:
        answers = {Taken().add(order) for order in permutations(edits)}
        assert len(answers) == 1
        return answers.pop()

    assert not together(edit(1, 3), edit(2, 5))
    assert not together(edit(1, 3), edit(2, 2))
    assert together(edit(1, 3), edit(3, 5), edit(3, 3))
    assert not together(edit(2, 2), edit(2, 2, "other"))
    assert together(edit(2, 2), edit(2, 2), edit(1, 1), edit(2, 4))
    assert not together(edit(0, 9), edit(9, 9), edit(8, 12))
    assert together(edit(1, 3), edit(4, 5), Edit(path="b", start=1, end=3, text=""))
    touching = [Edit(path="a", start=2, end=2, text="-"), Edit(path="a", start=1, end=2, text="B")]
    assert applied("abc", touching) == "aB-c"
    assert applied("abcdef", [edit(4, 5), Edit(path="a", start=1, end=2, text="XY")]) == "aXYcdf"


@pytest.mark.parametrize(
    ("before", "start", "end", "text", "same"),
    [
        ("a: 1\nb: 2\n", 3, 4, "5", True),
        ("a: 1\nb: 2\n", 4, 4, "\nc: 3", True),
        ("a: 1\nb: 2\n", 4, 4, "\nb: 3", True),  # a new entry: that it is a second one is not its business
        ("a: 1\nb: 2\n", 0, 5, "", False),
        ("a: 1\nb: 2\n", 3, 4, "*x", False),
        ("a: [1, 2]\n", 5, 5, ", 3", False),
        ("a: |\n  xz\n\nb: 1\n", 8, 8, "y", True),
        ("a: |\n  xz\n\nb: 1\n", 9, 9, "y", True),
        ("a: |+\n  xz\n\nb: 1\n", 10, 10, "\nc: 1", False),
        ("a: |\n  xz\n\nb: 1\n", 9, 9, "\n  y", False),
        ("a: |+\n  x\n\nb: 1\n", 9, 9, "\nc: 1", False),
        ("a:\nb: 1\n", 2, 2, "\n  c: 1", True),
        ("a: {}\n", 3, 5, "{b: 1}", True),
        ("a: x\n", 3, 4, "'x'", True),
    ],
)
def test_what_counts_as_unchanged(before: str, start: int, end: int, text: str, same: bool) -> None:
    root = compose(before, path="a")
    assert unchanged_elsewhere(root, [Edit(path="a", start=start, end=end, text=text)]) is same


# --- with the rules themselves


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fixed(rule: str) -> Outcome:
    """What ``--fix=all`` makes of ``bad.yml`` and the files beside it, by the repairs of this rule alone."""
    if (FIXTURES / rule / "files").is_dir():
        shutil.copytree(FIXTURES / rule / "files", ".", dirs_exist_ok=True)
    shutil.copy(FIXTURES / rule / "bad.yml", "bad.yml")
    return once_more(rule)


def once_more(rule: str) -> Outcome:
    def with_texts(texts: Mapping[Path, str]) -> Report:
        return lint([Path("bad.yml")], current=Path.cwd(), texts=texts)

    return apply_fixes(with_texts, current=Path.cwd(), unsafe=True, only=[rule])


def change_of(outcome: Outcome) -> Change:
    return next(change for change in outcome.changes if change.shown == "bad.yml")


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("rule", WITH_REPAIR)
def test_the_fixture_is_repaired_and_stays_so(rule: str) -> None:
    outcome = fixed(rule)
    assert {finding.rule for finding, _ in outcome.applied} == {rule}
    assert change_of(outcome).after == (FIXTURES / rule / "fixed.yml").read_text()
    write_changes(outcome.changes)
    again = once_more(rule)
    assert again.changes == ()
    assert again.before.findings == outcome.report.findings


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("rule", WITH_REPAIR)
def test_the_page_shows_the_repair(rule: str) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", (PAGES / f"{rule}.md").read_text(), re.DOTALL)
    patch = unified_diff([change_of(fixed(rule))])
    assert ("diff", patch.partition("\n")[2].partition("\n")[2]) in blocks


def test_only_rules_with_a_repair_have_a_repaired_fixture() -> None:
    assert sorted(path.parent.name for path in FIXTURES.glob("*/fixed.yml")) == sorted(WITH_REPAIR)


@pytest.mark.usefixtures("_elsewhere")
def test_scripts_and_actions_that_a_workflow_uses_are_repaired_too() -> None:
    Path(".github/workflows").mkdir(parents=True)
    Path("prepare").mkdir()
    head = (
        "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}\njobs:\n  a:\n    runs-on: ubuntu-latest\n"
    )
    steps = [
        "- uses: ./prepare",
        "  with: {cell: '${{ inputs.selected-id }}'}",
        "- run: . ./run.sh",
        "  env: {ID: '${{ inputs.selected-id }}'}",
    ]
    Path(".github/workflows/w.yml").write_text(head + "    steps:\n" + "".join(f"      {line}\n" for line in steps))
    action = (
        "runs:\n  using: composite\n  steps:\n    - run: case '${{ inputs.cell }}' in *) ;; esac\n      shell: bash\n"
    )
    Path("prepare/action.yml").write_text("inputs: {cell: {required: true}}\n" + action)
    Path("run.sh").write_text('/bin/echo "$ID" # ä\n')

    def with_texts(texts: Mapping[Path, str]) -> Report:
        return lint([Path(".github/workflows/w.yml")], current=Path.cwd(), texts=texts)

    outcome = apply_fixes(with_texts, current=Path.cwd(), unsafe=True)
    changed = {change.shown: change.after for change in outcome.changes}
    assert changed["run.sh"] == 'echo "$ID" # ä\n'
    assert (
        '- run: case "$INPUTS_CELL" in *) ;; esac\n      env:\n        INPUTS_CELL: ${{ inputs.cell }}\n'
        in (changed["prepare/action.yml"])
    )
    write_changes(outcome.changes)
    assert apply_fixes(with_texts, current=Path.cwd(), unsafe=True).changes == ()
