"""The README tells the truth: its help, its quickstart and its excerpt of the template are the real ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PROGRAM = Path(sys.executable).with_name("runner-e2e")


def block(first_line: str) -> str:
    """The text below *first_line* in its fenced block."""
    found = re.search(rf"^```\w+\n{re.escape(first_line)}\n(.*?)\n?```$", README, re.MULTILINE | re.DOTALL)
    assert found, first_line
    return found[1]


def test_help_is_what_the_program_prints() -> None:
    shown = subprocess.run([PROGRAM, "--help"], text=True, capture_output=True, check=True).stdout
    assert block("$ runner-e2e --help") == shown.rstrip("\n")


def skeleton(output: str) -> list[str]:
    """The quickstart's output without what differs: handles, times, counts, column widths, what a clone shares."""
    output = re.sub(r"cell-[0-9a-f]{16}", "cell-H", output)
    output = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]+", "CAMPAIGN", output)
    output = re.sub(r"\d+(\.\d+)? (min \d+ )?s\b", "T", output)
    output = re.sub(r"\d+ of \d+ read|\d+ read", "N read", output)
    output = re.sub(r"\d+ (programs started|given it)", r"N \1", output)
    # Whether objects of the repository have other names depends on how it was cloned.
    lines = [line for line in output.splitlines() if "hard links" not in line]
    return [" ".join(line.split()) for line in lines]


def test_quickstart_prints_what_the_readme_shows() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "quickstart.py"], text=True, capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert skeleton(block("$ make quickstart")) == skeleton(done.stdout)


def test_excerpt_is_the_template_with_tags_for_commits() -> None:
    template = (ROOT / "workflows-templates" / "paid-cell.yml").read_text()
    template = re.sub(r"@[0-9a-f]{40} # (v\d+)[\d.]*", r"@\1", template)
    lines = iter([line.split(" # ")[0].rstrip() for line in template.splitlines()])
    for line in block("      - name: Set up").splitlines():
        assert not line or line in lines, f"not in the template, or in another order: {line}"


def test_the_lint_says_what_the_readme_shows(tmp_path: Path) -> None:
    """About the first example of the lint's own page."""
    workflow = re.search(r"<!-- test: first -->\n```yaml\n(.*?)```", (ROOT / "docs/lint.md").read_text(), re.DOTALL)
    assert workflow
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "evaluate.yml").write_text(workflow[1])
    call = "runner-e2e lint --select confidential-argv"
    done = subprocess.run([PROGRAM, *call.split()[1:]], text=True, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert block(f"$ {call}") == done.stdout.rstrip("\n")


def test_make_targets_exist() -> None:
    for target in re.findall(r"^\$ make (\S+)", README, re.MULTILINE):
        done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, target


@pytest.mark.parametrize("page", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(page: str) -> None:
    assert (ROOT / page).exists(), page
