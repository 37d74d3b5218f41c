"""What ``jq`` and ``yq`` write, and where. Snippets in ``reductions.txt`` show the same of ``jq`` by execution."""

from __future__ import annotations

import pytest
from tests.lint.shell.test_analysis import follow

from runner_e2e.lint.values import Confidence


def shown(text: str) -> dict[str, Confidence]:
    """The parts of the script that print the value."""
    prints = follow(text).prints
    return {one.origin.text[one.start : one.end]: max(taint.confidence for taint in one.taints) for one in prints}


@pytest.mark.parametrize(
    ("command", "confidence"),
    [
        ("jq -n env.S", Confidence.HIGH),
        ("jq -n '$ENV.S | @base64'", Confidence.LOW),
        ("jq -n 'env.S | length'", None),
        ("jq -n env.OTHER", None),
        ("jq -n 'error(env.S)'", Confidence.HIGH),
        ("jq -n 'env.S | debug | empty'", Confidence.HIGH),
        ("jq . f", Confidence.HIGH),
        ("jq . other", None),
        ("jq '.id | type' f", None),
        ("jq -n '$ARGS.positional[0]' --args a b", None),
        ("jq 'def f: length; f' f", Confidence.HIGH),
        ("yq '.id' f", Confidence.HIGH),
        ("yq 'strenv(S)' other", Confidence.HIGH),
        ("yq eval -o json '.id | length' f", None),
        ("yq -i '.id = strenv(S)' g", None),
    ],
)
def test_what_is_shown(command: str, confidence: Confidence | None) -> None:
    found = shown(f'echo "{{\\"id\\": \\"$S\\"}}" > f; echo "{{}}" > other; {command}')
    assert found == ({} if confidence is None else {command: confidence})


def test_a_file_that_is_changed_in_place() -> None:
    assert shown("yq -i '.id = strenv(S)' f; cat f") == {"cat f": Confidence.HIGH}
    assert shown("yq -i '.size = (strenv(S) | length)' f; cat f") == {}
