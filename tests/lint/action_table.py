"""The table of `docs/lint-actions.md`, made of the data file.

Run from anywhere: ``python3 -m tests.lint.action_table`` writes it anew. `test_action_models.py` compares.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lint-actions.md"
START, END = "<!-- table: made by tests/lint/action_table.py -->\n", "<!-- end of table -->"


def table() -> str:
    """The rows, one for each entry."""
    text = files("runner_e2e.lint").joinpath("data", "actions.json").read_text("utf-8")
    rows = ["| action | what its inputs reach |", "|---|---|"]
    rows += [f"| {named(entry)} | {reached(entry)} |" for entry in json.loads(text)["actions"]]
    return "\n".join(rows) + "\n"


def named(entry: dict[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in (entry["uses"], *entry.get("also", ())))
    if "since" in entry:
        names += f" from v{entry['since']}"
    return names + (f" to v{entry['until']}" if "until" in entry else "")


def reached(entry: dict[str, Any]) -> str:
    """The sentence about one entry."""
    parts = [f"{listed(names)}: arguments of `{program}`" for program, names in entry.get("argv", {}).items()]
    parts += [f"{listed(names)}: {subject}" for subject, names in entry.get("name", {}).items()]
    parts += [f"{listed(names)}: sent to {receiver}" for receiver, names in entry.get("sent", {}).items()]
    parts += [f"{listed(names)}: written to {subject}" for subject, names in entry.get("file", {}).items()]
    for name, script in entry.get("script", {}).items():
        where = "on another machine" if script["by"] == "remote" else "followed"
        parts.append(f"`{name}`: a program in {script['language']}, {where}")
    if entry.get("upload"):
        parts.append(f"{listed(entry['upload'])}: files that become public")
    if "agent" in entry:
        parts.append(f"{listed(entry['agent'])} and the environment: seen by the agent")
    for name, program in entry.get("variables-argv", {}).items():
        parts.append(f"the variables that `{name}` names: arguments of `{program}`")
    for name, receiver in entry.get("variables-sent", {}).items():
        parts.append(f"the variables that `{name}` names: sent to {receiver}")
    if "environment-argv" in entry:
        parts.append(f"every variable of the step: an argument of `{entry['environment-argv']}`")
    if "environment-sent" in entry:
        parts.append(f"variables of the step: sent to {entry['environment-sent']}")
    secrets = [
        name
        for name, value in {**entry.get("outputs", {}), **entry.get("environment", {})}.items()
        if value == "secret"
    ]
    if secrets == ["*"]:
        parts.append("all that it gives is secret")
    elif secrets:
        parts.append(f"gives the secrets {listed(secrets)}")
    return "; ".join(parts) or ("nothing public" if entry["other"] == "safe" else "not known")


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> int:
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"(?<={re.escape(START)}).*?(?={re.escape(END)})", lambda _: table(), page, flags=re.DOTALL))
    return 0


if __name__ == "__main__":
    sys.exit(main())
