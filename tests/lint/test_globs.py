"""Globs of files: what they match, by a table and against the standard library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.lint.globs import Globs

MATCHES = [
    ("*.yml", "a.yml", True),
    ("*.yml", "deep/er/a.yml", True),
    ("/x.yml", "x.yml", False),
    ("./a.yml", "a.yml", True),
    ("docs/*.yml", "docs/a.yml", True),
    ("docs/*.yml", "docs/b/a.yml", False),
    ("docs/*.yml", "x/docs/a.yml", False),
    ("docs/**", "docs/b/a.yml", True),
    ("docs/**", "docs", False),
    ("docs/", "docs/b/a.yml", True),
    ("docs", "x/docs/a.yml", True),
    ("docs", "documents/a.yml", False),
    ("**/a.yml", "a.yml", True),
    ("**/a.yml", "x/y/a.yml", True),
    ("x/**/a.yml", "x/a.yml", True),
    ("x/**/a.yml", "x/y/z/a.yml", True),
    ("x**z/a", "x/y/z/a", True),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[ab].sh", "b.sh", True),
    ("[!ab].sh", "c.sh", True),
    ("[!ab].sh", "a.sh", False),
    ("[a-c].sh", "b.sh", True),
    ("[c-a].sh", "-.sh", True),
    ("[]].sh", "].sh", True),
    ("[.sh", "[.sh", True),
    ("a.b", "axb", False),
    ("a+(b)|c", "a+(b)|c", True),
]


@pytest.mark.parametrize(("glob", "path", "wanted"), MATCHES)
def test_globs(glob: str, path: str, wanted: bool) -> None:
    assert Globs((glob,)).match(path) is wanted


def test_no_glob_matches_nothing_and_any_of_several_is_enough() -> None:
    assert not Globs()
    assert not Globs().match("a")
    assert Globs(("a", "b")).match("b")
    assert Globs(("a",)) == Globs(("a",))
    assert len({Globs(("a",)), Globs(("a",)), Globs(("b",))}) == 2


@given(st.text(alphabet="ab*?[]!-./^\\", min_size=1, max_size=12))
def test_every_text_is_a_glob(glob: str) -> None:
    Globs((glob,)).match("a/b")


@given(st.lists(st.text(alphabet="ab.*?", min_size=1, max_size=4), min_size=2, max_size=4), st.data())
def test_without_double_stars_it_agrees_with_pathlib(parts: list[str], data: st.DataObject) -> None:
    glob = re.sub(r"\*+", "*", "/".join(parts))
    path = data.draw(
        st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=len(parts), max_size=len(parts))
    )
    if {".", ".."} & {*path, *glob.split("/")} or glob.startswith("./"):
        return
    assert Globs((glob,)).match("/".join(path)) == Path("/".join(path)).match(glob)
