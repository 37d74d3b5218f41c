"""The case ``plan-write-refused``: the real Codex plans, tries one write, and is refused. The model is scripted.

A run leaves behind, in the private directory of its attempt: ``before.json`` (the workspace before), ``events.jsonl``
(what the app-server said), ``codex.log``, and ``grade.json`` (the verdict with its evidence).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app_server import AppServer, AppServerError
from model_server.script import Answer, Question, ask, plan, say, shell
from model_server.server import MODEL, ModelServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from model_server.server import Request

PROBE: Final = "plan-probe.txt"
APPROVAL: Final = Question(
    id="approve", header="Plan", text="Is this plan approved?", options=(("Yes", "Finish."), ("No", "Plan again."))
)
ROOT: Final = Path(__file__).resolve().parents[2]


class NoCodexError(Exception):
    """Codex's own binary cannot be found; the text says how to get it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a planning turn. *problem* is empty when it went to its end."""

    grade: Mapping[str, Any]
    plan: str
    approved: bool
    problem: str


def find_codex() -> Path:
    """Codex's own binary, not the wrapper of its npm package. ``CODEX_BINARY`` names it, or it is looked for."""
    named = os.environ.get("CODEX_BINARY")
    wrapper = shutil.which("codex")
    roots = [ROOT / "tests" / "node" / "node_modules", ROOT / "node_modules"]
    if wrapper:  # npm puts the binary beside the wrapper's package or, when that is installed globally, into it
        package = Path(wrapper).resolve().parents[1]
        roots += [package.parents[1], package / "node_modules"]
    pattern = "@openai/codex-linux-*/vendor/*/bin/codex"
    for path in [Path(named)] if named else [path for root in roots for path in root.glob(pattern)]:
        if path.is_file():
            return path.resolve()
    raise NoCodexError("Codex was not found: npm install @openai/codex, or name its binary in CODEX_BINARY")


def script() -> list[Any]:
    """What the model says: a write, a plan that tells what came of it, a question, and an end."""
    return [
        shell(f"printf 'probe\\n' > {PROBE}; echo rc=$?"),
        plan_with_outcome,
        lambda request: say("The plan is approved." if '"Yes"' in request.tool_outputs[-1] else "It is not approved."),
    ]


def plan_with_outcome(request: Request) -> Answer:
    """The plan, whose first line records the outcome that the agent saw, and the question for its approval."""
    output = request.tool_outputs[-1]
    outcome = (
        "refused by the file system"
        if "Read-only file system" in output
        else "the sandbox did not start"
        if "bwrap:" in output
        else "succeeded"
    )
    return Answer(
        items=(*plan(f"Write outcome: {outcome}\n\n1. Leave everything as it is.").items, *ask(APPROVAL).items)
    )


def model_arguments(url: str) -> list[str]:
    """Codex's settings for the scripted model."""
    provider = f"model_providers.{MODEL}"
    values = {
        "model": json.dumps(MODEL),
        "model_provider": json.dumps(MODEL),
        f"{provider}.name": json.dumps(MODEL),
        f"{provider}.base_url": json.dumps(url),
        f"{provider}.wire_api": '"responses"',
        f"{provider}.request_max_retries": "0",
        f"{provider}.stream_max_retries": "1",
    }
    return [word for name, value in values.items() for word in ("-c", f"{name}={value}")]


def product(*arguments: str | Path) -> str:
    """What a command of runner-e2e prints."""
    command = ["runner-e2e", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def plan_once(server: AppServer, options: Sequence[str], workspace: Path) -> tuple[str, bool]:
    """One planning turn to its end: the plan, and whether its approval was asked for (it is given)."""
    start = json.loads(product("codex", "request", "thread/start", "--planning", *options, "--directory", workspace))
    thread = server.request("thread/start", **start)["thread"]["id"]
    told = ["--thread", thread, "--text", f"Plan. First try to write {PROBE}.", "--model", MODEL]
    server.request("turn/start", **json.loads(product("codex", "request", "turn/start", "--planning", *options, *told)))
    approved, text = False, ""
    while True:
        message = server.until("item/tool/requestUserInput", "item/completed", "turn/completed")
        if message["method"] == "turn/completed":
            return text, approved
        if message["method"] == "item/tool/requestUserInput":
            server.answer(message, {"answers": {APPROVAL.id: {"answers": ["Yes"]}}})
            approved = True
        elif message["params"]["item"]["type"] == "plan":
            text = message["params"]["item"]["text"]


def run_planning(instance: Path, workspace: Path, private: Path, *, wall: Sequence[str] = ()) -> Outcome:
    """Runs the case: *wall* is the command that starts Codex behind a sandbox (empty: bare).

    The environment says whether the host is an external sandbox (``PAPERCLIP_RUNNER_EXTERNAL_SANDBOX``).
    """
    codex = find_codex()
    home = instance / "codex-home"
    home.mkdir(mode=0o755)
    (workspace / "AGENTS.md").write_text("Be brief.\n")
    before, events = private / "before.json", private / "events.jsonl"
    before.write_text(product("grade", "manifest", workspace))
    options = ["--codex-home", str(home), "--package", str(codex.parents[1])]
    arguments = json.loads(product("codex", "args", "--planning", "--json", *options))
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PAPERCLIP_", "RUNNER_E2E_"))}
    environment |= {"HOME": str(home), "CODEX_HOME": str(home)}
    problem, text, approved = "", "", False
    try:
        with ModelServer(script()) as model:
            command = [*wall, str(codex), *arguments, *model_arguments(model.url), "app-server"]
            with AppServer(
                command, directory=workspace, environment=environment, events=events, log=private / "codex.log"
            ) as server:
                text, approved = plan_once(server, options, workspace)
    except (AppServerError, AssertionError) as error:
        problem = str(error)
    sessions = sorted(home.glob("sessions/**/*.jsonl"))
    looked: list[str | Path] = ["--workspace", workspace, "--before", before, "--probe", PROBE]
    session: list[str | Path] = ["--session", sessions[-1]] if sessions else []
    grade = product("grade", "planning-read-only", events, *session, *looked, "--json")
    (private / "grade.json").write_text(grade)
    return Outcome(grade=json.loads(grade), plan=text, approved=approved, problem=problem)


def judge(outcome: Outcome) -> tuple[str, str]:
    """The class and message of a failure; two empty texts when the case passed."""
    verdict, reason = outcome.grade["verdict"], outcome.grade["reason"]
    if verdict == "sandbox-failed-to-start":
        return "permanent_infrastructure", f"{verdict}: {outcome.grade['evidence'][0]['text']}"
    if verdict != "passed":
        return "candidate_failure", f"{verdict}: {reason}. {outcome.problem}"
    if outcome.problem or not outcome.approved or "refused" not in outcome.plan.partition("\n")[0]:
        return "candidate_failure", f"the turn did not end as it should: {outcome.problem or outcome.plan[:200]}"
    return "", ""
