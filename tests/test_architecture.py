"""The nevers of the design, enforced: floors, circles, single importers, who may print, exit, or read CI variables."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "runner_e2e"
PACKAGE = "runner_e2e"

FLOORS = {
    "": 1,
    "errors": 1,
    "existence": 1,
    "kernel": 1,
    "selected_id": 1,
    "redact": 1,
    "gha": 1,
    "yaml_alignment": 1,
    "yaml_positions": 1,
    "bootstrap": 1,
    "sandbox": 2,
    "artifacts": 2,
    "remote": 2,
    "egress": 3,
    "lint": 3,
    "cells": 3,
    "codex": 4,
    "graders": 4,
    "workflow_audit": 4,
    "dispatch": 5,
    "report": 5,
    "evidence": 5,
    "engine": 6,
    "cli": 7,
    "__main__": 7,
}

# A module that is a hazard or a weight is imported by exactly one file (paths below src/runner_e2e).
SINGLE_IMPORTERS = {
    "github": "dispatch/github_api.py",
    "requests": "dispatch/github_api.py",
    "urllib3": "dispatch/github_api.py",
    "ruamel": "yaml_positions.py",
    "tree_sitter": "lint/tree.py",
    "tree_sitter_bash": "lint/tree.py",
    "tree_sitter_javascript": "lint/tree.py",
    "tree_sitter_typescript": "lint/tree.py",
    "ctypes": "kernel.py",
    "proxy": "egress/http.py",
}

THIRD_PARTY = {
    "yaml_positions.py": {"ruamel"},
    "lint": {"tree_sitter", "tree_sitter_bash", "tree_sitter_javascript", "tree_sitter_typescript"},
    "egress": {"proxy"},
    "cells": {"cryptography", "jsonschema"},
    "dispatch": {"github", "requests", "urllib3"},
    "report": {"jinja2"},
    "graders": {"jsonschema"},
    "cli": {"click", "rich"},
}

# The process that holds the walls has nothing third-party in it.
STANDARD_LIBRARY_ONLY = {"sandbox", "artifacts", "selected_id", "kernel", "errors"}

# Errors whose reader can do something about them.
MENDABLE = {
    "CommandNotExecutableError",
    "CommandNotFoundError",
    "ConfigurationError",
    "GitHubError",
    "LaunchError",
    "Problem",
    "RefusedError",
    "UsageError",
}

# What a plan is made by, which must ask the machine so that its answers are remembered (sandbox/answers.py). Where it
# may look by itself: at its own installation, and where it makes what is not there.
PLANNERS = [
    "aliases",
    "arguments",
    "deputies",
    "facts",
    "hosts",
    "layouts",
    "planning",
    "policy",
    "policy_json",
    "prepared",
    "refusals",
    "view",
]
LOOKING = {f"os.{name}" for name in ("access", "listdir", "lstat", "readlink", "scandir", "stat", "walk")} | {
    f"os.path.{name}" for name in ("exists", "isdir", "isfile", "islink", "lexists", "realpath", "samefile")
}
MAY_LOOK = {("deputies", "_places_of_code"), ("layouts", ""), ("layouts", "shipped"), ("planning", "create_entries")}

PRINTERS = {"cli", "__main__"}
CI_VARIABLES = ("GITHUB_", "RUNNER_", "INPUT_")

FILES = sorted(SOURCE.rglob("*.py"))


def unit(path: Path) -> str:
    """The part of the package a file belongs to: a folder or a module directly below it."""
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem.replace("__init__", "")


def module_name(path: Path) -> str:
    parts = [PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports(path: Path) -> list[tuple[str, int]]:
    """Every module a file imports, TYPE_CHECKING and lazy ones too, with the line."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            if module.startswith(PACKAGE):
                for alias in node.names:
                    candidate = f"{module}.{alias.name}"
                    found.append((candidate if candidate in MODULES else module, node.lineno))
            else:
                found.append((module, node.lineno))
    return found


MODULES = {module_name(path): path for path in FILES}


def imports_go_down(path: Path) -> None:
    own = FLOORS[unit(path)]
    for module, line in imports(path):
        if module.split(".")[0] != PACKAGE:
            continue
        assert module in MODULES, f"{path}:{line}: {module} does not exist"
        other = FLOORS[unit(MODULES[module])]
        assert other <= own, f"{path}:{line}: floor {own} imports {module} of floor {other}"


def test_no_import_circle() -> None:
    graph = {
        name: {module for module, _ in imports(path) if module in MODULES and module != PACKAGE}
        for name, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail, name])
        if name in done:
            return
        for module in sorted(graph[name] - {name}):
            visit(module, (*trail, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


def third_party_imports_are_allowed_here(path: Path) -> None:
    relative = str(path.relative_to(SOURCE))
    allowed = THIRD_PARTY.get(relative, THIRD_PARTY.get(unit(path), set()))
    if unit(path) in STANDARD_LIBRARY_ONLY:
        assert not allowed
    for module, line in imports(path):
        top = module.split(".")[0]
        if top in SINGLE_IMPORTERS:
            assert relative == SINGLE_IMPORTERS[top], f"{path}:{line}: only {SINGLE_IMPORTERS[top]} imports {top}"
        if top == PACKAGE or top in sys.stdlib_module_names:
            continue
        assert top in allowed, f"{path}:{line}: {top} may not be imported here"


def walls_import_only_one_another(path: Path) -> None:
    if unit(path) not in STANDARD_LIBRARY_ONLY:
        return
    for module, line in imports(path):
        if module.split(".")[0] == PACKAGE and module != PACKAGE:
            other = unit(MODULES[module])
            assert other in STANDARD_LIBRARY_ONLY, f"{path}:{line}: {module} is not of the walls"


def only_the_edge_prints_or_exits(path: Path) -> None:
    if unit(path) in PRINTERS:
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"print", "sys.exit", "exit", "quit"}, f"{path}:{node.lineno}: {called}"
        if isinstance(node, ast.Raise) and node.exc is not None:
            assert "SystemExit" not in ast.unparse(node.exc), f"{path}:{node.lineno}: SystemExit"


def only_gha_reads_the_variables_of_the_runner(path: Path) -> None:
    if path.name == "gha.py":
        return
    for node in ast.walk(tree(path)):
        text = ""
        if isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
            text = ast.unparse(node.slice)
        elif isinstance(node, ast.Call) and (
            ast.unparse(node.func).endswith("getenv") or "environ.get" in ast.unparse(node.func)
        ):
            text = ast.unparse(node.args[0]) if node.args else ""
        assert not text.strip("'\"").startswith(CI_VARIABLES), f"{path}:{node.lineno}: reads {text}"  # type: ignore[attr-defined]


def lint_knows_nothing_of_dispatch_or_sandbox(path: Path) -> None:
    if unit(path) != "lint":
        return
    for module, line in imports(path):
        assert not module.startswith((f"{PACKAGE}.dispatch", f"{PACKAGE}.sandbox")), f"{path}:{line}: {module}"


def files_stay_small_enough_to_hold_in_the_head(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= 600, f"{path} has {lines} lines"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 70, f"{path}:{node.lineno}: {node.name} has {length} lines"


def errors_of_users_say_what_to_do(path: Path) -> None:
    """An error that its reader can mend says how; a defect of ours cannot be mended by them."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MENDABLE:
            given = {keyword.arg for keyword in node.keywords}
            assert given & {"fix", None}, f"{path}:{node.lineno}: {node.func.id} has no fix"  # None: `**` hands it on


def planning_asks_what_can_be_asked_again(path: Path) -> None:
    if unit(path) != "sandbox" or path.stem not in PLANNERS:
        return
    asked = {"count_hard_links", "_files"}  # the second by the first, which planning asks
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ask":
            asked.add(ast.unparse(node.args[0]))
    for function in tree(path).body:
        name = getattr(function, "name", "")
        if name in asked or (path.stem, name) in MAY_LOOK:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {*LOOKING, "open"}, f"{path}:{node.lineno}: {called} without ask()"


RULES = (
    imports_go_down,
    third_party_imports_are_allowed_here,
    walls_import_only_one_another,
    only_the_edge_prints_or_exits,
    only_gha_reads_the_variables_of_the_runner,
    lint_knows_nothing_of_dispatch_or_sandbox,
    files_stay_small_enough_to_hold_in_the_head,
    errors_of_users_say_what_to_do,
    planning_asks_what_can_be_asked_again,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps(rule: Callable[[Path], None]) -> None:
    broken = []
    for path in FILES:
        try:
            rule(path)
        except AssertionError as error:
            broken.append(str(error).splitlines()[0])
    assert not broken, "\n".join(broken)
