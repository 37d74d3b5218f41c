"""What docs/audit.md shows is what the program prints, but for times, process ids and counts of execs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "audit.md").read_text()


def example(name: str) -> str:
    found = re.search(rf"<!-- test: {re.escape(name)} -->\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found, name
    return found[1]


def skeleton(text: str, directory: Path) -> list[str]:
    """The lines without what differs from run to run, and from one machine's commands to another's."""
    text = text.replace(str(directory), "/tmp")
    text = re.sub(r"\b\d+\.\d s\b", "T s", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    return [re.sub(r"\b\d+ execs, T", "N execs, T", line) for line in text.splitlines()]


def shown(name: str, directory: Path) -> tuple[list[str], list[str]]:
    """What the commands of the example *name* print in *directory*, and what the page says."""
    lines = example(name).splitlines()
    script = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    program = f'runner-e2e() {{ {sys.executable} -m runner_e2e "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", program + script],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    said = "\n".join(line for line in lines if not line.startswith("$ "))
    return skeleton(done.stdout, directory), skeleton(said, directory)


def test_the_audit_of_a_command(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(example("job.sh"))
    script.chmod(0o755)
    printed, said = shown("command", tmp_path)
    assert printed == said


def test_the_audit_of_a_workflow(tmp_path: Path) -> None:
    path = tmp_path / ".github" / "workflows" / "cell.yml"
    path.parent.mkdir(parents=True)
    path.write_text(example("cell.yml"))
    printed, said = shown("workflow", tmp_path)
    assert printed == said
