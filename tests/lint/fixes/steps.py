"""One step, one finding, one repair: what the tables of the tests are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Finding
from runner_e2e.lint.fixes.unchanged import applied, unchanged_elsewhere
from runner_e2e.lint.repository import Document, Repository
from runner_e2e.lint.values import Confidence, Span
from runner_e2e.lint.workflow import Step, Workflow
from runner_e2e.yaml_positions import compose, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner_e2e.lint.finding import Fix

    Repair = Callable[[Finding, Document, Repository], Fix | None]


def workflow(run: str, *, shell: str = "", system: str = "ubuntu-latest", rest: str = "") -> str:
    """A workflow with one step; *rest* are more lines of the step."""
    lines = ["jobs:", "  a:", f"    runs-on: {system}", "    steps:", "      - run: |"]
    lines += [f"          {line}" for line in run.split("\n")]
    lines += [f"        shell: {shell}"] * bool(shell) + [f"        {line}" for line in rest.split("\n") if line]
    return "\n".join(lines) + "\n"


def read(text: str, path: str = "w.yml") -> Document:
    return Document(path=path, text=text, root=compose(text, path=path))


def step_of(document: Document) -> Step:
    return Workflow(document.root).jobs[0].steps[0]


def finding_at(document: Document, marked: str) -> Finding:
    """A finding where *marked* stands first in the script of the step."""
    script = step_of(document).run
    assert script is not None
    line, column = script.position(script.value.index(marked))
    span = Span(path=document.path, line=line, column=column, end_line=line, end_column=column + 1)
    return Finding(rule="a-rule", level="error", confidence=Confidence.HIGH, span=span, message="")


def repaired(repair: Repair, text: str, marked: str, folder: Path) -> tuple[str, Fix] | None:
    """The file after the repair of the finding at *marked*, which touches nothing else."""
    document = read(text)
    fix = repair(finding_at(document, marked), document, Repository(folder))
    if fix is None:
        return None
    assert unchanged_elsewhere(document.root, fix.edits)
    return applied(text, fix.edits), fix


def script_and_environment(text: str) -> tuple[str, object]:
    """The script of the step without its last line break, and its ``env``."""
    step = step_of(read(text))
    assert step.run is not None
    return step.run.value.removesuffix("\n"), plain(step.env)
