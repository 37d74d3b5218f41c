"""The action's first program: unknown commands, unfitting Pythons, missing environments."""

from __future__ import annotations

import ast
import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest
from tests.scripts.conftest import REPOSITORY, Action

from runner_e2e import bootstrap

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

ENTER = REPOSITORY / "scripts" / "enter.py"


@pytest.fixture(scope="module")
def enter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("enter", ENTER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


READY = "setup, gate, plan, claim, run, settle, dispatch, lint"


def test_it_can_be_read_by_an_old_python() -> None:
    tree = ast.parse(ENTER.read_text(), feature_version=(3, 8))
    first = next(node for node in tree.body if isinstance(node, ast.ImportFrom))
    assert first.module == "__future__", "annotations must not be evaluated"
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= sys.stdlib_module_names
    assert "runner_e2e" not in ENTER.read_text()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", f"The input `command` is missing or empty.%0Afix: give one of {READY}\n"),
        (" ", "The input `command` is missing or empty."),
        ("rum", "Unknown command 'rum'.%0Afix: give one of setup,"),
        ("Run", "Unknown command 'Run'."),
        ("a%0A\n::warning::x", "Unknown command 'a%250A\\n::warning::x'."),
        ("x" * 9999, f"Unknown command '{'x' * 40}'."),
        ("report", "`command: report` is not in this version.%0Afix: use one of setup, gate,"),
    ],
)
def test_a_command_that_cannot_be_done_fails(command: str, message: str, action: Action) -> None:
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": command})
    assert done.returncode == 2
    assert done.stdout.startswith(f"::error title=runner-e2e::{message}")
    assert done.stdout.count("\n") == 1
    assert not done.stderr


def test_every_command_has_a_script_or_is_not_in_this_version(enter: ModuleType) -> None:
    assert list(enter.COMMANDS) == ["setup", "gate", "plan", "claim", "run", "settle", "dispatch", "lint", "report"]
    for command, script in enter.COMMANDS.items():
        if script:
            assert (ENTER.parent / script).is_file()
            assert enter.script_of(command, "linux") == script
        else:
            with pytest.raises(enter.RefusalError, match=f"`command: {command}` is not in this version"):
                enter.script_of(command, "linux")


def test_platforms(enter: ModuleType) -> None:
    assert enter.script_of("setup", "darwin") == "setup.py"
    with pytest.raises(enter.RefusalError, match="`command: run` needs Linux, and this runner is darwin"):
        enter.script_of("run", "darwin")
    with pytest.raises(enter.RefusalError, match="does not work on Windows"):
        enter.script_of("setup", "win32")


def build(cache: Path, version: str, arch: str = "x64", *, complete: bool = True, executable: bool = True) -> Path:
    program = cache / "Python" / version / arch / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755 if executable else 0o644)
    if complete:
        (cache / "Python" / version / f"{arch}.complete").touch()
    return program


def test_the_newest_fitting_python_of_the_tool_cache_is_taken(
    enter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, "3.10.19")
    build(tmp_path, "3.9.25")
    build(tmp_path, "3.12.11")
    wanted = build(tmp_path, "3.13.10")
    build(tmp_path, "3.13.9")
    build(tmp_path, "3.14.0", complete=False)
    build(tmp_path, "3.14.1", "x64-freethreaded")
    build(tmp_path, "3.14.2", "arm64")
    build(tmp_path, "3.14.0-rc.3")
    build(tmp_path, "3.14.3", executable=False)
    build(tmp_path, "3.99.0")
    (tmp_path / "Python" / "versions.json").touch()
    monkeypatch.setenv("RUNNER_TOOL_CACHE", str(tmp_path))
    monkeypatch.setenv("RUNNER_ARCH", "X64")
    monkeypatch.setattr(sys, "version_info", (3, 10, 12, "final", 0))
    assert enter.fitting_python() == str(wanted)


@pytest.mark.parametrize(
    ("version", "free_threaded", "fits"),
    [((3, 11, 0), 0, True), ((3, 14, 9), None, True), ((3, 13, 1), 1, False), ((3, 10, 12), 0, False),
     ((3, 15, 0), 0, False), ((4, 0, 0), 0, False)],
)  # fmt: skip
def test_the_running_python_is_taken_only_where_it_fits(
    version: tuple[int, int, int], free_threaded: int | None, fits: bool, enter: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr("sysconfig.get_config_var", {"Py_GIL_DISABLED": free_threaded}.get)
    if fits:
        assert enter.fitting_python() == sys.executable
    else:
        with pytest.raises(enter.RefusalError) as caught:
            enter.fitting_python()
        assert "This runner has none of Python 3.11 to 3.14." in str(caught.value)
        assert "put actions/setup-python" in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "This job has no environment for this version of the action."),
        ({"RUNNER_TEMP": ""}, "RUNNER_TEMP is not set."),
        ({"RUNNER_TEMP": "/nonexistent"}, "This job has no environment"),
    ],
)
def test_run_without_setup_is_one_clear_error(environ: dict[str, str], message: str, action: Action) -> None:
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "run", **environ})
    assert done.returncode == 2
    assert done.stdout.startswith(f"::error title=runner-e2e::{message}")


def test_an_environment_of_another_lock_or_half_made_is_not_taken(action: Action) -> None:
    lock = action.root / "requirements" / "runtime.txt"
    half_made = bootstrap.environment_directory(action.temporary, lock)
    half_made.mkdir(parents=True)
    lock.write_text("other\n")
    other = bootstrap.environment_directory(action.temporary, lock)
    other.mkdir(parents=True)
    (other / ".complete").touch()
    lock.write_text("again another\n")
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "run"})
    assert "This job has no environment" in done.stdout


def test_a_damaged_environment_is_one_clear_error(action: Action) -> None:
    environment = bootstrap.environment_directory(action.temporary, action.root / "requirements" / "runtime.txt")
    environment.mkdir(parents=True)
    (environment / ".complete").touch()
    done = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "run"})
    assert done.returncode == 2
    assert "`command: run` could not start.%0Awhy: [Errno 2] No such file or directory" in done.stdout


def test_only_the_isolated_action_s_own_code_runs(action: Action) -> None:
    """Neither the working directory nor PYTHONPATH may put a module before ours."""
    for module in ("hashlib", "runner_e2e", "json"):
        (action.root.parent / f"{module}.py").write_text("raise SystemExit('foreign code ran')")
    environ = {"RUNNER_E2E_INPUT_COMMAND": "setup", "PYTHONPATH": str(action.root.parent), "GITHUB_EVENT_PATH": ""}
    done = action.start("enter.py", environ)
    assert "GITHUB_EVENT_PATH is not set" in done.stdout
    assert "foreign" not in done.stdout + done.stderr
