"""Files and variables with confidential values that are there when code runs which is not the repository's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import EVENT_PATH
from runner_e2e.lint.own_action import own_command
from runner_e2e.lint.shell.machine import visible_taints
from runner_e2e.lint.sighting import Sighting, Surface
from runner_e2e.lint.values import Hole, by_place
from runner_e2e.lint.workflow import Block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.job_state import JobState, Visible
    from runner_e2e.lint.run import Run
    from runner_e2e.lint.texts import Reader
    from runner_e2e.lint.values import Taint, Text, Value
    from runner_e2e.lint.workflow import Step
    from runner_e2e.yaml_positions import Scalar

__all__ = ["AGENTS", "checks_out_others", "report_exposed", "untrusted"]

AGENTS = (
    *("aider", "amp", "claude", "codex", "copilot", "crush", "cursor-agent", "droid", "gemini", "goose", "opencode"),
    "qwen",
)
"""Programs that are agents."""

_TRUSTED_OWNERS = ("actions", "github")
_COMMAND = r"(?:^|[;&|({`]|\$\(|\b(?:exec|env|sudo|time|timeout\s+\S+|npx(?:\s+-\S+)*|uvx|bunx|pnpm\s+dlx)\s)\s*"
_AGENT = re.compile(
    rf"{_COMMAND}(?:[A-Za-z_]\w*=\S*\s+)*(?:\S*/)?(?P<name>{'|'.join(AGENTS)}|runner-e2e\s+(?:run|sandbox))(?=[\s@;|)&]|$)",
    re.MULTILINE,
)
_RUNS_CODE = re.compile(
    rf"{_COMMAND}(?:[A-Za-z_]\w*=\S*\s+)*(?P<name>\.{{1,2}}/\S+|(?:bash|sh|python3?|node|ruby|perl|source|\.)\s+[\w./-]+"
    r"|(?:npm|pnpm|yarn|bun|npx|make|cmake|cargo|go|mvn|gradle|dotnet|pytest|tox|nox|uv|poetry|bundle|rake|composer|bazel"
    r"|just|docker\s+build|pip3?\s+install)\b)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")


def checks_out_others(step: Step, uses: Scalar) -> bool:
    """Whether a step checks out what is not the commit of this run: another repository, or a ref that it names."""
    if not re.match(r"actions/checkout@", uses.value, re.IGNORECASE):
        return False
    arguments = Block(step.arguments)
    ref = re.sub(r"\s", "", arguments.text("ref"))
    repository = re.sub(r"\s", "", arguments.text("repository"))
    return ref not in {"", "${{github.sha}}", "${{github.ref}}"} or repository not in {"", "${{github.repository}}"}


def untrusted(run: Run, step: Step, state: JobState) -> str:
    """What in a step is not trusted, as a message names it; empty when nothing is known to be."""
    if step.uses is not None:
        return _untrusted_action(run, step, step.uses)
    if step.run is None:
        return ""
    text = _COMMENT.sub("", step.run.value)
    agent = _AGENT.search(text)
    if agent is not None:
        return f"the agent `{agent['name']}`"
    code = _RUNS_CODE.search(text) if state.holds_others else None
    return f"`{code['name']}`, which may be code of the other checkout," if code is not None else ""


def _untrusted_action(run: Run, step: Step, uses: Scalar) -> str:
    name = uses.value.partition("@")[0]
    command = own_command(run, uses, step)
    if command:
        return "the agent of `command: run`" if command == "run" else ""
    if name.startswith("./") or name.partition("/")[0].lower() in _TRUSTED_OWNERS:
        return ""
    return f"`{name}`"


def report_exposed(run: Run, reader: Reader, step: Step, state: JobState, visible: Visible) -> None:
    """Reports files, and variables that ``$GITHUB_ENV`` set, that an untrusted *step* finds."""
    if not any(value.taints for value in state.files.contents.values()) and not state.from_file:
        return
    who = untrusted(run, step, state)
    node = step.uses or step.run
    if not who or node is None:
        return
    for what, value in _exposed(run, step, state, visible):
        seen = (taint for taint in visible_taints(value) if taint.label.kind == "confidential")
        for place, taints in by_place(seen):
            run.report(
                Sighting(
                    surface=Surface.FILE,
                    origin=place.origin,
                    start=place.start,
                    end=place.end,
                    taints=frozenset(_read_by(taint, reader, node, who) for taint in taints),
                    subject=what,
                    detail=who,
                )
            )


def _read_by(taint: Taint, reader: Reader, node: Scalar, who: str) -> Taint:
    return taint.after(reader.origin(node), 0, len(node.value.split("\n", 1)[0]), f"there for {who.rstrip(',')}")


def _exposed(run: Run, step: Step, state: JobState, visible: Visible) -> Iterator[tuple[str, Value]]:
    from runner_e2e.lint.shell.archives import is_member
    from runner_e2e.lint.shell.git import holds_copies

    for path, content in state.files.contents.items():
        # What bash names `/dev/fd/…` is a pipe, gone with the shell of its step.
        is_pipe = bool(path) and isinstance(path[0], str) and path[0].startswith("/dev/")
        held = is_pipe or is_member(path) or holds_copies(path)
        if content.taints and path != (EVENT_PATH,) and not held:
            yield f"the file `{_shown(path)}`", content
    if step.uses is not None and own_command(run, step.uses, step):
        return  # it takes the id out of every variable before it starts anything
    for name in state.from_file:
        value = visible.environment.get(name)
        if value is not None and value.taints:
            yield f"the variable `{name}`, from `$GITHUB_ENV`,", value


def _shown(path: Text) -> str:
    text = "".join("…" if isinstance(piece, Hole) else piece for piece in path)
    for folder, name in (("/github/workspace/", ""), ("/runner/temp/", "$RUNNER_TEMP/")):
        if text.startswith(folder):
            return name + text.removeprefix(folder)
    return text
