"""The lint that is understood without click: it says the same, and leaves alone what it does not understand."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner_e2e.cli import group, main
from runner_e2e.cli.lint_plain import PlainLint, understood
from runner_e2e.cli.lint_run import FORMATS, no_collection

ROOT = Path(__file__).parents[2]
LEAK = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs: {a: {runs-on: x, steps: [{run: 'tool "$ID"', env: {ID: '${{ inputs.selected-id }}'}}]}}
"""


@pytest.fixture(autouse=True)
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "r" / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "w.yml").write_text(LEAK)
    (folder / "clean.yml").write_text("on: push\njobs: {}\n")
    (folder / "broken.yml").write_text("a: [")
    (tmp_path / "r" / "values.yml").write_text("a: b\n")
    (tmp_path / "r" / "coloured \x1b[31m.yml").write_text(LEAK)
    (tmp_path / "kept").mkdir()
    monkeypatch.chdir(tmp_path / "r")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


WORKFLOWS = ".github/workflows"

PLAIN = [
    [],
    ["--no-actionlint"],
    ["--no-actionlint", "--no-cache"],
    ["--no-actionlint", "--cache-dir", "../kept"],
    ["--cache-dir=../kept", "--no-actionlint", f"{WORKFLOWS}/w.yml"],
    ["--no-actionlint", f"{WORKFLOWS}/w.yml", f"{WORKFLOWS}/clean.yml"],
    ["--no-actionlint", f"{WORKFLOWS}/clean.yml"],
    ["--no-actionlint", WORKFLOWS, "values.yml"],
    ["values.yml", "--no-actionlint", "--no-cache"],
    *(["--no-actionlint", "--format", form] for form in FORMATS),
    *(["--no-actionlint", "coloured \x1b[31m.yml", "--format", form] for form in FORMATS),
    ["--no-actionlint", "--format=json", f"{WORKFLOWS}/w.yml"],
]


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
@pytest.mark.parametrize("colour", ["", "1"])
def test_it_says_what_click_lets_say(
    arguments: list[str], colour: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colour)
    assert understood(arguments) is not None
    for _ in range(3):  # analysed, found in the cache, found in its pack
        expected = group.run(["lint", *arguments]), capsys.readouterr()
        assert (main(["lint", *arguments]), capsys.readouterr()) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--list-rules"],
        ["--fix"],
        ["--select", "confidential-argv"],
        ["--", WORKFLOWS],
        ["-"],
        ["--no-actionlint=1"],
        ["--no-cach"],
        ["--jobs", "2"],
        ["--format", "xml"],
        ["--format"],
        ["--cache-dir"],
        ["--cache-dir", "values.yml"],
        ["--cache-dir", "absent"],
        ["absent.yml"],
        [""],
        ["org/name"],
        ["org/name@v1", WORKFLOWS],
    ],
    ids=" ".join,
)
def test_the_rest_is_for_click(arguments: list[str]) -> None:
    assert understood(arguments) is None


def test_what_cannot_be_read_is_for_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == "values.yml" and mode == os.R_OK))
    assert understood(["values.yml"]) is None


def test_a_folder_for_the_cache_that_cannot_be_read_is_for_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == "../kept" and mode == os.R_OK))
    assert understood(["--cache-dir", "../kept"]) is None


def test_a_screen_that_is_not_in_utf_8_is_for_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert understood([]) is None


def test_what_is_asked_for() -> None:
    asked = understood([WORKFLOWS, "--cache-dir", "absent", "--cache-dir", "../kept", "--no-cache"])
    assert asked is None  # click would not mind, and it is rare
    asked = understood([WORKFLOWS, "--cache-dir", "../kept", "--no-cache", "--format", "json"])
    assert asked == PlainLint(
        paths=(Path(WORKFLOWS),), form="json", cache_folder=Path("../kept"), no_cache=True, no_actionlint=False
    )


def test_a_cache_that_cannot_be_used_is_told_as_click_lets_it_be_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: mode == os.R_OK)
    arguments = ["lint", "--no-actionlint", "--cache-dir", "../kept"]
    expected = group.run(arguments), capsys.readouterr()
    assert expected[0] == 2
    assert (main(arguments), capsys.readouterr()) == expected


def test_neither_click_nor_the_analysis_is_loaded_where_all_is_known() -> None:
    script = """
import sys
from runner_e2e.cli import main
status = main(["lint", "--no-actionlint", ".github/workflows/clean.yml"])
print(status, [name for name in ("click", "ruamel.yaml", "runner_e2e.lint.analysis") if name in sys.modules])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    said = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [one.stdout.splitlines()[-1] for one in said] == ["0 ['ruamel.yaml', 'runner_e2e.lint.analysis']", "0 []"]


def test_what_a_lint_made_is_not_looked_at_as_soon_as_it_ends() -> None:
    with no_collection():
        assert not gc.isenabled()
        kept: list[list[object]] = [[] for _ in range(20_000)]
        before = gc.get_stats()
    assert gc.isenabled()
    assert gc.get_count()[0] < 1_000
    assert gc.get_freeze_count() == 0
    assert [one["collections"] for one in gc.get_stats()] == [one["collections"] for one in before]
    assert any(one is kept for one in gc.get_objects())
