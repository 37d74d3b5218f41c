"""The paid templates are clean to the lint, and each way in which people would make them leak is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner_e2e.lint.linter import lint
from runner_e2e.lint.selection import Selection

TEMPLATES = Path(__file__).resolve().parent.parent.parent.parent / "workflows-templates"


def rules(path: Path) -> set[str]:
    """The rules that find something in the file."""
    report = lint([path], current=path.parent, selection=Selection(profile="all"))
    assert report.problems == ()
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("name", ["paid-campaign.yml", "paid-cell.yml"])
def test_a_template_is_clean(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    copy.write_text((TEMPLATES / name).read_text())
    assert rules(copy) == set()


CAMPAIGN = [
    # the id in the matrix, and from there to every place that shows it
    ("    name: ${{ matrix.handle }}", "    name: ${{ matrix.id }}", "confidential-name"),
    ("name: result-${{ matrix.handle }}", "name: result-${{ matrix.id }}", "confidential-name"),
    ("  group: paid-campaign-${{ github.run_id }}", "  group: paid-${{ inputs.selected-id }}", "confidential-name"),
    ("run-name: Paid campaign ${{ inputs.nonce || github.run_id }}", "run-name: ${{ inputs.selected-id }}",
     "confidential-name"),
    ("      - name: Keep the result\n", "      - run: echo '${{ matrix.id }}'\n      - name: Keep the result\n",
     "confidential-log"),
    ("      - name: Keep the result\n", "      - run: ./case.sh '${{ matrix.id }}'\n      - name: Keep the result\n",
     "confidential-argv"),
]  # fmt: skip
CELL = [
    ("    name: Paid cell #", "    name: Paid ${{ inputs.selected-id }} #", "confidential-name"),
    ("  group: paid-cell-${{ github.run_id }}", "  group: paid-cell-${{ inputs.selected-id }}", "confidential-name"),
    ("name: result-${{ steps.run.outputs.handle }}", "name: result-${{ inputs.selected-id }}", "confidential-name"),
    ("      - name: Keep the result\n",
     "      - run: ./case.sh --id '${{ inputs.selected-id }}'\n      - name: Keep the result\n", "confidential-argv"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"),
    [*(("paid-campaign.yml", *each) for each in CAMPAIGN), *(("paid-cell.yml", *each) for each in CELL)],
)
def test_a_leak_is_found(name: str, old: str, new: str, rule: str, tmp_path: Path) -> None:
    text = (TEMPLATES / name).read_text()
    assert text.count(old) == 1, "the template was changed; change the leak too"
    if "inputs.selected-id" in new and name == "paid-campaign.yml":
        text = text.replace("      nonce:\n", "      selected-id:\n        type: string\n      nonce:\n", 1)
    copy = tmp_path / name
    copy.write_text(text.replace(old, new))
    assert rule in rules(copy)
