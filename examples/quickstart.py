"""The quickstart: runs the example campaign on this machine, then shows what a snooping agent finds.

Needs no GitHub and no paid provider. Run by ``make quickstart``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAMPAIGN = HERE / "campaign"
OUTPUT = HERE.parent / ".runner-e2e" / "quickstart"
PROGRAM = Path(sys.executable).with_name("runner-e2e")


def run(suite: str, *options: str, output: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs one suite of the example campaign with the product's own command line.

    *output* says nothing of the suite: an agent sees the path that it works in.
    """
    command = [str(PROGRAM), "run", "--local", "--suite", suite, "--show-ids", *options]
    command += ["--catalog", str(CAMPAIGN / ".github" / "runner-e2e.yml"), "--target", str(CAMPAIGN)]
    command += ["--output", str(OUTPUT / output)]
    # This Python for the harness too: one of pyenv or asdf is a script that starts dozens of programs before it.
    path = os.pathsep.join([str(PROGRAM.parent), os.environ.get("PATH") or os.defpath])
    output_of = subprocess.PIPE if capture else None
    return subprocess.run(command, text=True, stdout=output_of, check=False, env={**os.environ, "PATH": path})


def attempt_directory(outcome: dict[str, Any], environment: str) -> Path:
    """The directory of the snoop's attempt in one environment of the catalog."""
    cell = next(cell for cell in outcome["cells"] if cell["id"].split(".")[2] == environment)
    return Path(cell["attempts"][-1]["record"]).parent


def findings(directory: Path) -> dict[str, Any]:
    """What the harness found in the snoop's loot: kind of place -> sources looked at and those that named the case."""
    report: dict[str, Any] = json.loads((directory / "private" / "findings.json").read_text())
    return report


def said(kind: dict[str, Any]) -> str:
    """One field of the comparison."""
    looked, named = kind["looked_at"], len(kind["named_the_case"])
    if named:
        return f"GIVES IT AWAY ({named} of {looked} read)"
    return f"nothing ({looked} read)" if looked else "nothing to see"


def compare(bare: dict[str, Any], walled: dict[str, Any]) -> None:
    """Prints what the snoop found without and with the sandbox, a line a kind of place."""
    rows = [("where the agent looked", "without the sandbox", "behind the sandbox")]
    rows += [(kind, said(bare[kind]), said(walled[kind])) for kind in bare]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def what_was_started(directory: Path) -> str:
    """What the kernel's record of every program of the attempt showed of the id."""
    audit = json.loads((directory / "result.json").read_text())["audit"]
    if audit["verdict"] == "off":
        return "not recorded: there is no strace on this machine"
    if audit["verdict"] == "incomplete":
        return f"incomplete: {'; '.join(audit['gaps'])}"
    held = sum(entry["execs"] for entry in audit["environ_holders"])
    leaks = f"{audit['argv_leaks']} with the id on their command line"
    return f"{audit['execs']} programs started, {leaks}, {held} given it by environment"


def what_remains(directory: Path) -> list[str]:
    """What the sandbox itself says it did not or could not close on this host, from the attempt's record."""
    reports = json.loads((directory / "result.json").read_text())["sandbox"]
    lines = [limit for report in reports for limit in report["limits"]]
    layers = [layer for report in reports for layer in report["layers"] if layer["state"] == "unavailable"]
    return lines + [f"{layer['layer']}: not on this host; {layer['why']}" for layer in layers]


def main() -> int:
    """Runs both suites; 0 when every cell passed."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    print("1. Three cells with an agent that does its task. The third meets a busy provider and is tried again.\n")
    sys.stdout.flush()
    first = run("first-steps", "--quiet", output="1")
    if first.returncode:
        return first.returncode

    print("\n2. An agent that looks for its own case id instead, first without and then behind the sandbox.\n")
    sys.stdout.flush()
    audit = ["--audit"] if shutil.which("strace") else []
    second = run("confidentiality", "--quiet", "--json", *audit, output="2", capture=True)
    if not second.stdout:
        return second.returncode or 1
    outcome = json.loads(second.stdout)
    walled = attempt_directory(outcome, "walled")
    compare(findings(attempt_directory(outcome, "open")), findings(walled))
    print(f"\n  Recorded by the kernel in the walled attempt: {what_was_started(walled)}")
    print("\n  Left open by the sandbox on this host, from its own report:")
    for text in what_remains(walled) or ["nothing that it knows of"]:
        print(f"  - {text}")
    print(f"\nEvery attempt has a record: {OUTPUT.relative_to(HERE.parent)}/*/*/*/attempt-*/result.json")
    print("Next: docs/harness.md to bring your own agent, docs/action.md to run it in a workflow.")
    return second.returncode


if __name__ == "__main__":
    sys.exit(main())
