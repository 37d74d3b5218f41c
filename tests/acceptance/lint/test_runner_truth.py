"""Recipes of ``just`` and ``make``, and tests of ``bats``, against what a run shows of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.acceptance.lint.test_surface_truth import assert_agreement, step

MODULES = Path(__file__).parents[2] / "node" / "node_modules"
JUST = MODULES / "rust-just-linux-x64" / "bin"


def with_file(name: str, text: str, script: str) -> str:
    """A step that writes a file and runs a script."""
    return step(f"cat > {name} <<'END'\n{text}\nEND\n{script}")


def bats(text: str, script: str = "bats a.bats") -> str:
    """A step that runs tests."""
    return with_file("a.bats", text, script)


def just(text: str, script: str = "just") -> str:
    """A step that runs recipes, which are indented by four blanks."""
    return with_file("justfile", text, script)


def make(text: str, script: str = "make") -> str:
    """A step that runs recipes of a Makefile."""
    return with_file("Makefile", text, script)


def package(command: str, script: str) -> str:
    """A step that runs the script ``a`` of a package."""
    return with_file("package.json", f'{{"scripts": {{"a": "{command}"}}}}', script)


CASES = {
    # just
    "a recipe": just("a:\n    @echo $ID"),
    "a recipe that prints something else": just("a:\n    @echo $HOME"),
    "a line that is shown": just("id := env('ID')\na:\n    : '{{id}}'"),
    "a line that is not shown": just("id := env('ID')\na:\n    @: '{{id}}'"),
    "a line that is shown without the value": just("a:\n    : $ID"),
    "a quiet recipe": just("id := env('ID')\n@a:\n    : '{{id}}'"),
    "a line of a quiet recipe that is shown": just("id := env('ID')\n@a:\n    @: '{{id}}'"),
    "quiet by a setting": just("set quiet\nid := env('ID')\na:\n    : '{{id}}'"),
    "quiet by an option": just("id := env('ID')\na:\n    : '{{id}}'", "just -q"),
    "a dry run": just("id := env('ID')\na:\n    @: '{{id}}'", "just -n"),
    "an argument": just("a id:\n    @echo '{{id}}'", 'just a "$ID"'),
    "an argument that is not used": just("a id:\n    @echo x", 'just a "$ID"'),
    "a parameter in the environment": just("a $id:\n    @echo $id", 'just a "$ID"'),
    "a default": just("a id=env('ID'):\n    @echo '{{id}}'"),
    "a default that is not used": just("a id=env('ID'):\n    @echo '{{id}}'", "just a x"),
    "all arguments": just("a *ids:\n    @echo '{{ids}}'", 'just a x "$ID"'),
    "positional arguments": just("set positional-arguments\na id:\n    @echo $1", 'just a "$ID"'),
    "a variable of the command line": just("id := 'x'\na:\n    @echo '{{id}}'", 'just id="$ID"'),
    "a variable that the command line replaces": just("id := env('ID')\na:\n    @echo '{{id}}'", "just id=x"),
    "a variable that is set": just("id := 'x'\na:\n    @echo '{{id}}'", 'just --set id "$ID"'),
    "another recipe": just("a:\n    @echo x\nb:\n    @echo $ID", "just b"),
    "not another recipe": just("a:\n    @echo x\nb:\n    @echo $ID"),
    "what a recipe needs": just("a: b\n    @echo x\nb:\n    @echo $ID"),
    "what a recipe needs after": just("a: && b\n    @echo x\nb:\n    @echo $ID"),
    "what a recipe needs, with an argument": just("a: (b env('ID'))\nb id:\n    @echo '{{id}}'"),
    "an alias": just("alias c := b\na:\n    @echo x\nb:\n    @echo $ID", "just c"),
    "a script": just("a:\n    #!/usr/bin/env bash\n    echo $ID"),
    "a script of Python": just("a:\n    #!/usr/bin/env python3\n    import os\n    print(os.environ['ID'])"),
    "a script that prints nothing": just("id := env('ID')\na:\n    #!/bin/sh\n    : '{{id}}'"),
    "a variable for recipes": just("export CELL := env('ID')\na:\n    @echo $CELL"),
    "all variables for recipes": just("set export\ncell := env('ID')\na:\n    @echo $cell"),
    "no variable for recipes": just("cell := env('ID')\na:\n    @echo ${cell-}"),
    "a choice": just("id := if env('ID') == 'x' { 'y' } else { env('ID') }\na:\n    @echo '{{id}}'"),
    "a digest": just("id := sha256(env('ID'))\na:\n    @echo '{{id}}'"),
    "a program in backticks": just("id := `echo $ID`\na:\n    @echo '{{id}}'"),
    "variables that are shown": just("id := env('ID')\na:\n    @: '{{id}}'", "just --evaluate"),
    "recipes that are listed": just("id := env('ID')\na:\n    @echo '{{id}}'", "just --list"),
    "variables of a file": just("set dotenv-load\na:\n    @echo $CELL", 'echo "CELL=$ID" > .env\njust'),
    "variables of a file that is not read": just("a:\n    @echo ${CELL-}", 'echo "CELL=$ID" > .env\njust'),
    "another justfile": with_file("other.just", "a:\n    @echo $ID", "just -f other.just"),
    "a justfile above": just("a:\n    @echo $ID", "mkdir in\ncd in\njust"),
    "a line that goes on": just("a:\n    @echo \\\n    $ID"),
    # bats
    "a test that prints": bats('@test "a" {\n  echo "$ID" >&3\n}'),
    "a test that prints, captured": bats('@test "a" {\n  echo "$ID"\n}'),
    "a test that prints, shown": bats('@test "a" {\n  echo "$ID"\n}', "bats --show-output-of-passing-tests a.bats"),
    "a test that prints something else": bats('@test "a" {\n  echo "$HOME" >&3\n}'),
    "the second test": bats("@test 'a' {\n  true\n}\n\n@test 'b' { # second\n  echo \"$ID\" >&3\n}"),
    "a function that no test calls": bats('f() {\n  echo "$ID" >&3\n}\n@test "a" {\n  true\n}'),
    "a function that a test calls": bats('f() {\n  echo "$1" >&3\n}\n@test "a" {\n  f "$ID"\n}'),
    "what comes before each test": bats('setup() {\n  CELL=$ID\n}\n@test "a" {\n  echo "$CELL" >&3\n}'),
    "what comes after each test": bats('teardown() {\n  echo "$ID" >&3\n}\n@test "a" {\n  true\n}'),
    "what one test leaves for another": bats('@test "a" {\n  CELL=$ID\n}\n@test "b" {\n  echo "${CELL-}" >&3\n}'),
    "what a test runs": bats('@test "a" {\n  run printenv ID\n  echo "$output" >&3\n}'),
    "lines of what a test runs": bats('@test "a" {\n  run -0 env\n  printf "%s\\n" "${lines[@]}" >&3\n}'),
    "what a test runs, not shown": bats('@test "a" {\n  run printenv ID\n  [ "$status" -eq 0 ]\n}'),
    "a helper": bats(
        'load helper\n@test "a" {\n  show\n}', "echo 'show() { echo \"$ID\" >&3; }' > helper.bash\nbats a.bats"
    ),
    "a test that is skipped": bats('@test "a" {\n  skip\n  echo "$ID" >&3\n}'),
    "tests in a folder": bats('@test "a" {\n  echo "$ID" >&3\n}', "mkdir in\nmv a.bats in\nbats in"),
    "other tests": bats('@test "a" {\n  echo "$ID" >&3\n}', "echo '@test \"b\" { true; }' > b.bats\nbats b.bats"),
    # make
    "make shows a line": make("a:\n\t: $(ID)"),
    "make shows a line without the value": make("a:\n\t: $$ID"),
    "make does not show a line": make("a:\n\t@: $(ID)"),
    "make is silent": make("a:\n\t: $(ID)", "make -s"),
    "make runs a recipe": make("a:\n\t@echo $$ID"),
    "make is given a variable": make("a:\n\t@echo $(X)", 'make X="$ID"'),
    "make is given a variable, which recipes find": make("a:\n\t@echo $$X", 'make X="$ID"'),
    "make is given a variable that is not used": make("a:\n\t@echo x", 'make X="$ID"'),
    "make is given another value": make("a:\n\t@echo $(ID)", "make ID=x"),
    "make sets another value": make("ID = x\na:\n\t@echo $(ID)"),
    "make sets another value, but the environment counts": make("ID = x\na:\n\t@echo $(ID)", "make -e"),
    "make sets a default": make("ID ?= x\na:\n\t@echo $(ID)"),
    "make with another goal": make("a:\n\t@echo x\nb:\n\t@echo $$ID", "make b"),
    "make without another goal": make("a:\n\t@echo x\nb:\n\t@echo $$ID"),
    "make tells": make("$(info it is $(ID))\na:\n\t@echo x"),
    "make, only shown": make("a:\n\t@: $(ID)", "make -n"),
    "make with a file": with_file("other.mk", "a:\n\t@echo $$ID", "make -f other.mk"),
    "make with a file that is included": make("include other.mk", "printf 'a:\\n\\t@echo $$ID\\n' > other.mk\nmake"),
    # npm
    "an argument behind dashes": package("echo", 'npm run --silent a -- "$ID"'),
    "an argument behind dashes, not shown": package("true", 'npm run --silent a -- "$ID"'),
    "an argument behind dashes, shown": package("true", 'npm run a -- "$ID"'),
    "braces": just("a:\n    @echo '{{{{ID}}'"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_lint_names_what_a_run_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{JUST}:{os.environ['PATH']}")
    assert_agreement(CASES[name], tmp_path)
