"""What holds for every fix: nothing else changes, nothing gets worse, and a second run does nothing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.lint.generated_workflows import HOLE, PIECES_OF_COMMANDS, PIECES_OF_USES, SECRET, workflows
from tests.truth.case import WORKFLOW, Case, find_cases

from runner_e2e.errors import ConfigurationError
from runner_e2e.lint.fix import Outcome, apply_fixes
from runner_e2e.lint.linter import Report, lint
from runner_e2e.lint.rules import RULES
from runner_e2e.yaml_positions import Plain, compose, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CASES = [
    case for case in find_cases(Path(__file__).parents[1] / "acceptance" / "lint" / "cases") if case.belief == "leak"
]

# Values that a fix may change, and entries that it may add.
CHANGED = re.compile(r".*/(?:run|uses|persist-credentials|cancel-in-progress|permissions(?:/[a-z-]+)?)")
ADDED = re.compile(
    r".*/env(?:/[A-Z][A-Z0-9_]*)?|.*/(?:with|with/persist-credentials|timeout-minutes|permissions(?:/contents)?)"
    r"|/concurrency(?:/group|/cancel-in-progress)?"
)
# The runner prints scripts as it prints `env`: the value was in the log before.
PRINTED = "confidential-log"


def fixed(root: Path, *, unsafe: bool) -> Outcome:
    def with_texts(texts: Mapping[Path, str]) -> Report:
        return lint([root / WORKFLOW], current=root, texts=texts)

    return apply_fixes(with_texts, current=root, unsafe=unsafe)


def leaves(data: Plain, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value by its path; mappings and lists themselves as their kind."""
    if isinstance(data, dict):
        yield path, dict
        for key, value in data.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(data, list):
        yield path, len(data)
        for number, value in enumerate(data):
            yield from leaves(value, f"{path}/{number}")
    else:
        yield path, data


def check_the_model(before: str, after: str) -> None:
    old, new = dict(leaves(plain(compose(before, path="")))), dict(leaves(plain(compose(after, path=""))))
    for path, value in old.items():
        assert path in new, f"{path} is gone"
        was_empty = value is None and new[path] is dict and path.endswith("/env")
        assert new[path] == value or CHANGED.fullmatch(path) or was_empty, f"{path}: {value!r} became {new[path]!r}"
    for path in new.keys() - old.keys():
        assert ADDED.fullmatch(path), f"{path} is new"


def check_the_bytes(before: str, after: str, touched: set[int]) -> None:
    """Lines that no fix is about are there as they were, in their order, with their ends."""
    assert before.startswith("\ufeff") == after.startswith("\ufeff")
    assert before.endswith("\n") == after.endswith("\n")
    assert ("\r\n" in before) == ("\r\n" in after)
    assert "\r\n" not in before or not re.search(r"(?<!\r)\n", after)
    rest = iter(re.findall(r"[^\n]*\n|[^\n]+\Z", after))
    for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+\Z", before), 1):
        if number not in touched:
            assert any(is_kept(line.rstrip("\r\n"), each.rstrip("\r\n")) for each in rest), (
                f"{number} is gone: {line!r}"
            )


def is_kept(line: str, other: str) -> bool:
    """Equal, but for a dash that stands before a new first key now, and new entries before the end of a mapping."""
    plain_line, plain_other = (re.sub(r"^( *)- ", r"\1  ", each) for each in (line, other))
    grown = re.escape(plain_line).replace(r"\}", r"(?:, [^}]*.*)?\}")
    return plain_line == plain_other or ("{" in line and re.fullmatch(grown, plain_other) is not None)


def check_the_findings(outcome: Outcome) -> None:
    def counts(report: Report) -> Counter[tuple[object, ...]]:
        kept = [each for each in report.findings if each.rule != PRINTED]
        return Counter((each.rule, each.span.path, each.labels) for each in kept)

    assert outcome.report.problems == outcome.before.problems == ()
    assert not counts(outcome.report) - counts(outcome.before)
    if outcome.applied:
        assert sum(counts(outcome.report).values()) < sum(counts(outcome.before).values())


def check(root: Path, *, unsafe: bool) -> Outcome:
    outcome = fixed(root, unsafe=unsafe)
    touched: dict[str, set[int]] = {}
    for finding in outcome.before.findings:
        lines = range(finding.span.line, finding.span.end_line + 1)
        touched.setdefault(finding.span.path, set()).update(lines)
    for change in outcome.changes:
        check_the_model(change.before, change.after)
        check_the_bytes(change.before, change.after, touched[change.shown])
    check_the_findings(outcome)
    for change in outcome.changes:
        change.path.write_bytes(change.after.encode())
    again = fixed(root, unsafe=unsafe)
    assert again.changes == ()
    assert again.before.findings == outcome.report.findings
    return outcome


def test_the_pieces_bring_about_every_repair(tmp_path: Path) -> None:
    """But the one of `unpinned-uses`, for nobody here knows a commit."""
    steps: list[str] = []
    for command in PIECES_OF_COMMANDS:
        steps += ["      - run: |", *(f"          {line}" for line in command.split("\n"))]
    for first, *rest in PIECES_OF_USES:
        steps += [f"      - {first}", *(f"        {line}" for line in rest)]
    head = [
        "on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}",
        "permissions: {contents: write}",
        "jobs:",
    ]
    job = [
        "  a:",
        "    runs-on: ubuntu-latest",
        "    env:",
        f"      ID: {HOLE}",
        f"      TOKEN: {SECRET}",
        "    steps:",
    ]
    (tmp_path / WORKFLOW).parent.mkdir(parents=True)
    (tmp_path / WORKFLOW).write_text("\n".join([*head, *job, *steps, ""]))
    outcome = check(tmp_path, unsafe=True)
    repaired = {finding.rule for finding, _ in outcome.applied}
    assert repaired == {rule.id for rule in RULES if rule.repair is not None} - {"unpinned-uses"}


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(text=workflows(), unsafe=st.booleans())
def test_fixes_change_what_they_are_about(text: str, unsafe: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        compose(text, path="")
    except ConfigurationError:
        assume(False)
    root = tmp_path_factory.mktemp("repository")
    (root / WORKFLOW).parent.mkdir(parents=True)
    (root / WORKFLOW).write_bytes(text.encode())
    check(root, unsafe=unsafe)


@pytest.mark.parametrize("number", range(6))
def test_fixes_of_written_workflows_too(number: int, tmp_path: Path) -> None:
    """A quarter of the cases whose truth was executed: files as people write them, with actions and scripts."""
    for case in CASES[number::24]:
        root = lay_out(case, tmp_path)
        check(root, unsafe=True)


def lay_out(case: Case, folder: Path) -> Path:
    root = folder / case.name.replace("/", "-")
    case.lay_out(root)
    return root
