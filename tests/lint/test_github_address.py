"""Which requests reach GitHub's API, and which of them publish."""

from __future__ import annotations

import pytest

from runner_e2e.lint.github_address import is_api, publishes
from runner_e2e.lint.values import UNKNOWN, Hole, Value

API = Value(((Hole(symbol="GITHUB_API_URL"), "/repos/o/r/issues"),))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (Value.literal("https://api.github.com/repos"), True),
        (Value.literal("https://uploads.github.com/repos"), True),
        (Value.literal("https://github.com/o/r"), False),
        (Value.literal("https://results.example.org/") | API, True),
        (API, True),
        (Value(((Hole(symbol="$GITHUB_API_URL"),),)), True),
        (Value(((Hole(symbol="GITHUB_SERVER_URL"),),)), False),
        (UNKNOWN, False),
    ],
)
def test_addresses(address: Value, expected: bool) -> None:
    assert is_api(address) is expected


@pytest.mark.parametrize(
    ("method", "expected"), [("POST", True), ("patch", True), (None, True), ("GET", False), ("head", False)]
)
def test_methods(method: str | None, expected: bool) -> None:
    assert publishes(API, method) is expected


def test_secrets_are_encrypted() -> None:
    assert not publishes(API + Value.literal("/actions/secrets/X"), "PUT")
