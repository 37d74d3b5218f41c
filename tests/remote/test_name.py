"""Names of repositories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.remote.name import RemoteName, parse_name


@pytest.mark.parametrize(
    ("text", "owner", "name", "ref"),
    [
        ("actions/checkout", "actions", "checkout", ""),
        ("actions/checkout@v4", "actions", "checkout", "v4"),
        ("a/b.github.io@feature/x_1", "a", "b.github.io", "feature/x_1"),
        ("a/b@0123456789abcdef0123456789abcdef01234567", "a", "b", "0123456789abcdef0123456789abcdef01234567"),
        ("a/b@v1@x", "a", "b", "v1@x"),
    ],
)
def test_names(text: str, owner: str, name: str, ref: str) -> None:
    assert parse_name(text) == RemoteName(owner=owner, name=name, ref=ref)
    assert str(parse_name(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a/", "/b", "a/b/c", "./b", "../b", "a/..", "a/.", "-a/b", "a-/b", "a/b@", "a/b@-x", "a/b@../x",
        "a/b@x..y", "a/b@/x", "a/b@x/", "a/b@x y", "a/b@x:y", "a/b@x.lock", "a/b@x\n", "a/b?c", "a/b%2e", "~/b",
        "a b/c", "a/b@x//y", "a/b@@{x}",
    ],
)  # fmt: skip
def test_other_texts(text: str) -> None:
    assert parse_name(text) is None


@given(st.text(alphabet="ab/@.-~:%?#\n ", max_size=12))
def test_no_name_leaves_its_place_in_an_address(text: str) -> None:
    found = parse_name(text)
    if found is not None:
        parts = f"{found.owner}/{found.name}/{found.ref}".split("/")
        assert ".." not in parts
        assert not set("?#%:\n ") & set(text)
