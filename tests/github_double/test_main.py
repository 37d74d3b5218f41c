"""The double, started by hand as a contributor does it, and asked by the product's own command line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATE = ROOT / "workflows-templates" / "paid-campaign.yml"
PRODUCT = Path(sys.executable).parent / "runner-e2e"


@pytest.mark.parametrize("words", [(), ("--fault", "lost-502", "--seed", "3")], ids=["plain", "faults"])
def test_it_prints_what_to_type_and_that_works(words: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "tests.github_double", "--workflow", str(TEMPLATE), *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as double:
        try:
            assert double.stdout
            variables = dict(re.findall(r"(\w+)=(\S+)", double.stdout.readline()))
            doctor = double.stdout.readline().split()
            assert doctor[:2] == ["runner-e2e", "doctor"]
            environ = {"PATH": os.environ["PATH"], **variables}
            done = subprocess.run(
                [PRODUCT, *doctor[1:]], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
            )
            assert done.returncode == 1, done.stderr
            assert (
                "✓ workflow: .github/workflows/paid-campaign.yml has the inputs nonce, selection, target" in done.stdout
            )
            assert re.fullmatch(r"200 GET /repos/octo/evals\n|502 GET .* lost-502\n", double.stdout.readline())
        finally:
            double.send_signal(signal.SIGINT)
        assert double.wait(60) == 0


def test_a_wrong_word_is_told() -> None:
    command = [sys.executable, "-m", "tests.github_double", "--fault", "none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "lost-502" in done.stderr
