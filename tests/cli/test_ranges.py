"""What a wrong number in an option is called."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from runner_e2e.cli.group import runner_e2e

LIMITS = "is not in the range"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("dispatch", "cleanup", "--older-than", "x"), "'x' is not a valid whole number."),
        (("dispatch", "cleanup", "--older-than", "1"), LIMITS),
        (("dispatch", "watch", "c", "--poll", "x"), "'x' is not a valid number."),
        (("dispatch", "watch", "c", "--poll", "nan"), "nan is no number."),
        (("dispatch", "watch", "c", "--poll", "inf"), LIMITS),
        (("lint", "--time-limit", "nan"), "nan is no number."),
        (("gate", "--allowlist", "[1]", "--run", "0"), LIMITS),
        (("gate", "--allowlist", "[1]", "--attempt", "-1"), LIMITS),
        (("audit", "workflow", "w.yml", "--timeout", "nan"), "nan is no number."),
        (("audit", "workflow", "w.yml", "--timeout", "-1"), LIMITS),
        (("grade", "expectations", "e.json", "--status", "1.5"), "'1.5' is not a valid whole number."),
    ],
)
def test_a_wrong_number_is_told_with_its_option(words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(runner_e2e, list(words))
    assert done.exit_code == 2
    assert said in done.output
    assert "Invalid value for '--" in done.output
