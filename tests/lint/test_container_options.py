"""Variables in the options of a container."""

from __future__ import annotations

import pytest

from runner_e2e.lint.container_options import option_variables
from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.values import EMPTY, Value

ID = confidential("inputs.case")


def text(*pieces: str | Value) -> Value:
    total = EMPTY
    for piece in pieces:
        total += Value.literal(piece) if isinstance(piece, str) else piece
    return total


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (text(""), {}),
        (text("--cpus 1 --name a=b"), {}),
        (text("-e A=1 --env B=2 --env=C=3 -eD=4"), {"A": "1", "B": "2", "C": "3", "D": "4"}),
        (text("-e 'A=two words' -e \"B=it's\""), {"A": "two words", "B": "it's"}),
        (text("-e A -e B="), {"B": ""}),
        (text("-e A=", ID), {"A": ID}),
        (text("-e 'A=x ", ID, " y' --cpus 1"), {"A": text("x ", ID, " y")}),
        (text("-e A=1=", ID), {"A": text("1=", ID)}),
        (text("--label A=", ID), {}),
        (text("-e ", ID), {}),
        (text("-e 'A=1"), {}),
        (text("-e A=1") | text("-e A=2"), {"A": text("1") | text("2")}),
    ],
)
def test_option_variables(options: Value, variables: dict[str, str | Value]) -> None:
    wanted = {name: text(value) for name, value in variables.items()}
    assert option_variables(options) == wanted
