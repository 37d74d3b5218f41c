"""Texts that repeat are read once: what is found in each stands where that one stands."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding

ID = "${{ inputs.selected-id }}"
HEAD = "on:\n  workflow_dispatch:\n    inputs:\n      selected-id:\n        required: true\njobs:\n"

# The same program in each: once where the id comes in by another way, once where none does, once after a mistake.
FILES = {
    "env.yml": (
        HEAD + "  a:\n    runs-on: ubuntu-latest\n    env:\n      ID: " + ID + "\n    steps:\n"
        '      - run: |\n          x="$ID"\n          tool "$x"\n'
        '      - run: >\n            x="$ID"\n\n            tool "$x"\n'
    ),
    "step.yml": (
        HEAD + "  a:\n    runs-on: ubuntu-latest\n    steps:\n"
        '      - run: |\n          x="$ID"\n          tool "$x"\n'
        "        env:\n          ID: " + ID + "\n"
        '      - run: |\n          x="$ID"\n          tool "$x"\n'
    ),
    "none.yml": (
        HEAD + "  a:\n    runs-on: ubuntu-latest\n    steps:\n"
        '      - run: |\n            x="$ID"\n            tool "$x"\n'
        "        env:\n          ID: none\n"
    ),
    "script.yml": (
        HEAD + "  a:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - uses: actions/github-script@v7\n        env:\n          ID: " + ID + "\n        with:\n"
        "          script: await exec.exec('tool', [process.env.ID])\n"
        "      - uses: actions/github-script@v7\n        env:\n          ID: " + ID + "\n        with:\n"
        "          script: >-\n              await exec.exec('tool', [process.env.ID])\n"
    ),
    "mistake.yml": (
        HEAD + "  a:\n    runs-on: ubuntu-latest\n    env:\n      ID: " + ID + "\n    steps:\n"
        "      - run: |\n          tool <<\n"
        "      - run: |\n            tool <<\n"
        "      - run: echo ${{ inputs. }} ${{ github.sha }}\n"
        "      - name: x\n        run: 'echo ${{ inputs. }} ${{ github.sha }}'\n"
    ),
}
ARGUMENTS = {"env.yml": ['"$x"'] * 2, "step.yml": ['"$x"'], "script.yml": ["process.env.ID"] * 2}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return tmp_path


def found(repository: Path, names: tuple[str, ...]) -> dict[str, list[Finding]]:
    """The findings of each of the files, linted in this order."""
    folder = repository / ".github" / "workflows"
    report = lint([folder / name for name in names], current=repository)
    assert not report.problems
    return {name: [one for one in report.findings if Path(one.span.path).name == name] for name in names}


def test_each_occurrence_has_its_own_place_and_way(repository: Path) -> None:
    findings = found(repository, tuple(FILES))
    for name, text in FILES.items():
        lines = text.splitlines()
        leaks = [one for one in findings[name] if one.rule == "confidential-argv"]
        assert [lines[one.span.line - 1][one.span.column - 1 : one.span.end_column - 1] for one in leaks] == (
            ARGUMENTS.get(name, [])
        )
        for one in leaks:
            assert {place.span.path for place in one.flow} == {one.span.path}
            assert ID in lines[one.flow[0].span.line - 1]
            assert one.flow[0].span.line != one.span.line


def test_each_occurrence_of_a_mistake_is_reported(repository: Path) -> None:
    findings = found(repository, ("mistake.yml",))["mistake.yml"]
    places = [
        (one.rule, one.span.line) for one in findings if one.rule in {"unanalysable-script", "invalid-expression"}
    ]
    assert places == [
        ("unanalysable-script", 13),
        ("unanalysable-script", 15),
        ("invalid-expression", 16),
        ("invalid-expression", 18),
    ]


@pytest.mark.parametrize("names", list(permutations(FILES, 3))[::4], ids=",".join)
def test_what_was_read_before_changes_nothing(repository: Path, names: tuple[str, ...]) -> None:
    together = found(repository, names)
    for name in names:
        assert together[name] == found(repository, (name,))[name]
