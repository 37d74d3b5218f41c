"""``command: setup`` as a runner starts it: what it masks, refuses and installs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.scripts.conftest import Action

CANARY = "suite.profile.local.canary-7f3a9c"


def write_event(action: Action, content: str) -> None:
    Path(action.environ["GITHUB_EVENT_PATH"]).write_text(content)


def test_masks_come_first_and_the_environment_is_made(action: Action) -> None:
    write_event(action, json.dumps({"inputs": {"selected-id": CANARY, "other": "visible-value"}}))
    done = action.start("enter.py")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"::add-mask::{CANARY}", "::add-mask::canary-7f3a9c"]
    assert CANARY not in "".join(lines[1:])
    assert "visible-value" not in done.stdout
    assert "confidential inputs of this run: selected-id" in lines[2]
    (environment,) = (action.temporary / "runner-e2e").iterdir()
    assert f"\n{environment}/bin\n" in Path(action.environ["GITHUB_OUTPUT"]).read_text()
    assert (environment / ".complete").is_file()
    # The next use in the job finds it: `run` now gets as far as its own work.
    later = action.start("enter.py", {"RUNNER_E2E_INPUT_COMMAND": "run"})
    assert "has no environment" not in later.stdout


def test_an_input_too_short_to_be_masked_is_a_warning(action: Action) -> None:
    write_event(action, json.dumps({"inputs": {"id": "abc"}}))
    done = action.start("setup.py", {"OPENAI_API_KEY": "k"})  # which ends it before the slow part
    assert "::warning title=runner-e2e setup::The confidential input `id` is too short" in done.stdout
    assert "add-mask" not in done.stdout


def test_names_of_confidential_inputs_can_be_given(action: Action) -> None:
    write_event(action, json.dumps({"inputs": {"my-case": CANARY}}))
    done = action.start("setup.py", {"RUNNER_E2E_INPUT_CONFIDENTIAL_INPUTS": "my-case", "OPENAI_API_KEY": "k"})
    assert f"::add-mask::{CANARY}" in done.stdout


def test_a_secret_in_scope_is_refused_before_anything_is_installed(action: Action) -> None:
    done = action.start("setup.py", {"OPENAI_API_KEY": "sk-secret-value", "ANTHROPIC_API_KEY": "another"})
    assert done.returncode == 3
    assert "in the environment of this step: ANTHROPIC_API_KEY, OPENAI_API_KEY" in done.stdout
    assert "sk-secret-value" not in done.stdout + done.stderr
    assert not list(action.temporary.iterdir())


@pytest.mark.parametrize(
    ("environ", "event", "status", "message"),
    [
        ({}, '{"inputs": {"selected-id": "canary', 2, "the event file is damaged%0Awhy: Unterminated string"),
        ({}, "[]", 2, "the event file is damaged%0Awhy: it holds no JSON object"),
        ({"GITHUB_EVENT_PATH": ""}, "{}", 2, "GITHUB_EVENT_PATH is not set"),
        ({"GITHUB_EVENT_PATH": "/nonexistent/event.json"}, "{}", 2, "why: No such file or directory"),
        ({"RUNNER_TEMP": ""}, "{}", 2, "RUNNER_TEMP is not set"),
        ({"RUNNER_TEMP": "/nonexistent"}, "{}", 2, "RUNNER_TEMP names no directory"),
        ({"RUNNER_TEMP": "/dev/null/x"}, "{}", 2, "RUNNER_TEMP names no directory"),
        ({"GITHUB_OUTPUT": "/nonexistent/output"}, "{}", 2, "step outputs could not be written"),
        ({"PIP_FIND_LINKS": "/nonexistent"}, "{}", 2, "pip could not install runtime.txt"),
    ],
)  # fmt: skip
def test_bad_surroundings_are_one_clear_error(
    environ: dict[str, str], event: str, status: int, message: str, action: Action
) -> None:
    write_event(action, event)
    done = action.start("setup.py", environ)
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error title=runner-e2e setup")]
    assert done.returncode == status, done.stdout + done.stderr
    assert len(errors) == 1
    assert message in errors[0]
    assert "fix: " in errors[0]
    assert "Traceback" not in done.stdout + done.stderr
    assert "canary" not in done.stdout + done.stderr


def test_a_read_only_temporary_directory_is_one_clear_error(action: Action) -> None:
    action.temporary.chmod(0o555)
    # Permissions bind root only once it has laid down the capability to override them.
    prefix = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override") if os.geteuid() == 0 else ()
    done = action.start("setup.py", prefix=prefix)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Permission denied" in done.stdout
    assert "check that the directory is writable" in done.stdout
