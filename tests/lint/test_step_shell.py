"""``shell:`` as the runner reads it."""

from __future__ import annotations

import pytest

from runner_e2e.lint.step_shell import StepShell, step_shell


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, StepShell(language="bash", errexit=True)),
        ("bash", StepShell(language="bash", errexit=True, pipefail=True)),
        ("sh", StepShell(language="sh", errexit=True)),
        ("bash {0}", StepShell(language="bash")),
        ("bash -eo pipefail {0}", StepShell(language="bash", errexit=True, pipefail=True)),
        ("/usr/bin/env bash -x {0} a b", StepShell(language="bash", arguments=("a", "b"))),
        ("sudo -E dash -e {0}", StepShell(language="sh", errexit=True)),
        ("python", StepShell(language="python")),
        ("python3 -u {0} x", StepShell(language="python3", arguments=("x",))),
        ("pwsh", StepShell(language="pwsh")),
        ("perl {0}", StepShell(language="perl")),
        ("my-tool {0}", StepShell(language="my-tool")),
        ("", StepShell(language="")),
    ],
)
def test_templates(template: str | None, expected: StepShell) -> None:
    assert step_shell(template) == expected


def test_windows_has_another_default() -> None:
    assert step_shell(None, windows=True).posix is None
    assert step_shell("bash", windows=True).posix == "bash"
