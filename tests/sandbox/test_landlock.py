from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.sandbox.facts import same_or_beneath
from runner_e2e.sandbox.landlock import grants, rights_of
from runner_e2e.sandbox.plan import Step


@pytest.mark.parametrize(
    ("abi", "highest", "scopes", "limits"),
    [
        (1, 12, 0, 4),
        (2, 13, 0, 3),
        (3, 14, 0, 2),
        (4, 14, 0, 2),
        (5, 15, 0, 2),
        (6, 15, 3, 1),
        (7, 15, 3, 1),
        (9, 16, 3, 0),
    ],
)
def test_rights_of_each_abi(abi: int, highest: int, scopes: int, limits: int) -> None:
    rights = rights_of(abi)
    assert rights.paths == (1 << highest + 1) - 1
    assert rights.scopes == scopes
    assert len(rights.limits) == limits
    assert rights.files & ~rights.paths == 0


def test_a_kernel_without_landlock_has_no_rights() -> None:
    assert (rights_of(0).paths, rights_of(0).scopes) == (0, 0)


def test_a_newer_kernel_has_what_the_newest_known_has() -> None:
    assert rights_of(99).paths == rights_of(9).paths


TREE = {
    "/": ["etc", "home", "tmp"],
    "/home": ["u"],
    "/home/u": ["hid", "work", "x"],
    "/home/u/hid": ["own", "other"],
    "/home/u/hid/own": ["deep", "state"],
}


def listed(path: str) -> list[str]:
    return TREE.get(path, [])


def hide(path: str) -> Step:
    return Step(path=path, role="hide")


def expose(path: str) -> Step:
    return Step(path=path, role="expose")


def test_siblings_are_granted_and_nothing_above() -> None:
    assert set(grants([hide("/home/u/hid")], listed)) == {"/etc", "/tmp", "/home/u/work", "/home/u/x"}


def test_an_exposure_is_granted_by_itself() -> None:
    assert "/home/u/hid/own" in set(grants([hide("/home/u/hid"), expose("/home/u/hid/own")], listed))


def test_what_is_hidden_in_an_exposure_is_not_granted() -> None:
    granted = set(grants([hide("/home/u/hid"), expose("/home/u/hid/own"), hide("/home/u/hid/own/deep")], listed))
    assert "/home/u/hid/own/state" in granted
    assert not any(same_or_beneath("/home/u/hid/own/deep", path) for path in granted)


PATHS = st.sampled_from([f"{top}{rest}" for top in ("/a", "/b") for rest in ("", "/a", "/b", "/a/a", "/a/b", "/b/b")])


@given(st.sets(PATHS, max_size=5))
def test_no_grant_reaches_a_hidden_path_and_everything_else_is_granted(hidden: set[str]) -> None:
    names = {"/": ["a", "b"], **{path: ["a", "b"] for path in ("/a", "/b", "/a/a", "/a/b", "/b/a", "/b/b")}}
    granted = list(grants([hide(path) for path in sorted(hidden)], lambda path: names.get(path, [])))
    for path in granted:
        assert not any(same_or_beneath(secret, path) or same_or_beneath(path, secret) for secret in hidden)
    for leaf in (f"/{x}/{y}/{z}" for x in "ab" for y in "ab" for z in "ab"):
        is_hidden = any(same_or_beneath(leaf, secret) or same_or_beneath(secret, leaf) for secret in hidden)
        assert is_hidden or any(same_or_beneath(leaf, path) for path in granted)
