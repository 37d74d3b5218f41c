"""Artifacts: which files patterns take, where they stand in the artifact, and who finds them."""

from __future__ import annotations

import pytest

from runner_e2e.lint.artifacts import Artifacts, packed
from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.job_state import JobState
from runner_e2e.lint.shell import Files
from runner_e2e.lint.values import Confidence, Hole, Text, Value

ID = confidential("inputs.case")
UNNAMED = Hole()
WORKSPACE = "/github/workspace"
CONTENTS: dict[Text, Value] = {
    (f"{WORKSPACE}/a.txt",): ID,
    (f"{WORKSPACE}/plain.txt",): Value.literal("x"),
    (f"{WORKSPACE}/out/b.txt",): ID,
    (f"{WORKSPACE}/out/deep/c.log",): ID,
    ("/runner/temp/d.txt",): ID,
    (Hole(symbol="$HOME"), "/e.txt"): ID,
    (f"{WORKSPACE}/out/", UNNAMED, ".json"): ID,
}


def text(path: str) -> Text:
    """A path, with ``?`` for the part that is not known."""
    before, mark, after = path.partition("?")
    return tuple(piece for piece in (before, UNNAMED if mark else "", after) if piece)


@pytest.mark.parametrize(
    ("patterns", "files"),
    [
        ("a.txt", ["a.txt"]),
        ("./a.txt", ["a.txt"]),
        ("plain.txt", []),
        ("out/b.txt", ["b.txt"]),
        ("out", ["b.txt", "deep/c.log", "?.json"]),
        ("out/", ["b.txt", "deep/c.log", "?.json"]),
        ("out/*", ["b.txt", "deep/c.log", "?.json"]),
        ("out/*.txt", ["b.txt"]),
        ("*.txt", ["a.txt"]),
        ("**/*.txt", ["a.txt", "out/b.txt"]),
        ("out/**/c.*", ["deep/c.log"]),
        ("out/deep\na.txt", ["out/deep/c.log", "a.txt"]),
        ("out/b.txt\nout/deep/c.log", ["b.txt", "deep/c.log"]),
        ("out\n!out/deep", ["b.txt", "?.json"]),
        ("out\n!**/*.log", ["b.txt", "?.json"]),
        ("# a.txt\n\n  a.txt  ", ["a.txt"]),
        ("/runner/temp/d.txt", ["d.txt"]),
        ("~/e.txt", ["e.txt"]),
        ("other", []),
        ("", []),
    ],
)
def test_what_patterns_take(patterns: str, files: list[str]) -> None:
    assert set(packed((patterns,), CONTENTS)) == {text(path) for path in files}


def test_text_that_is_not_known_in_a_pattern_is_any_text() -> None:
    assert set(packed(("out/", UNNAMED, ".txt"), CONTENTS)) == {("b.txt",)}


def state(contents: dict[Text, Value] | None = None) -> JobState:
    return JobState(environment={}, files=Files(contents=contents or {}))


def given(**inputs: str | Value) -> dict[str, Value]:
    return {
        name.replace("_", "-"): Value.literal(value) if isinstance(value, str) else value
        for name, value in inputs.items()
    }


def same(value: Value) -> Value:
    return value


def downloaded(artifacts: Artifacts, **inputs: str | Value) -> dict[str, Confidence]:
    """The files that a job finds, and how surely they are labelled."""
    job = state()
    artifacts.download(given(**inputs), job, same)
    found = {}
    for path, content in job.files.contents.items():
        shown = "".join("?" if isinstance(piece, Hole) else piece for piece in path)
        found[shown.removeprefix(f"{WORKSPACE}/")] = max(taint.confidence for taint in content.taints)
    return found


@pytest.fixture
def artifacts() -> Artifacts:
    made = Artifacts()
    job = state(CONTENTS)
    made.upload(given(name="one", path="a.txt"), job, same)
    made.upload(given(name="two", path="out/deep"), job, same)
    made.upload(given(name=Value((("of-", UNNAMED),)), path="out/b.txt"), job, same)
    made.upload(given(path="/runner/temp/d.txt"), job, same)
    return made


HIGH, MEDIUM = Confidence.HIGH, Confidence.MEDIUM


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ({"name": "one"}, {"a.txt": HIGH}),
        ({"name": "artifact", "path": "x"}, {"x/d.txt": HIGH}),
        ({"name": "one", "path": "/tmp/x"}, {"/tmp/x/a.txt": HIGH}),
        ({"name": "none"}, {}),
        ({"name": "of-linux"}, {"b.txt": MEDIUM}),
        ({"name": Value(((UNNAMED,),))}, {"a.txt": MEDIUM, "c.log": MEDIUM, "b.txt": MEDIUM, "d.txt": MEDIUM}),
        ({"name": Value((("of-", UNNAMED),))}, {"b.txt": HIGH}),
        ({}, {"one/a.txt": HIGH, "two/c.log": HIGH, "of-?/b.txt": HIGH, "artifact/d.txt": HIGH}),
        ({"merge_multiple": "true"}, {"a.txt": HIGH, "c.log": HIGH, "b.txt": HIGH, "d.txt": HIGH}),
        ({"pattern": "o*", "path": "x"}, {"x/one/a.txt": HIGH, "x/of-?/b.txt": HIGH}),
        ({"pattern": "t?o", "merge_multiple": "true"}, {"c.log": HIGH}),
        ({"name": "one", "run_id": "7"}, {}),
    ],
)
def test_downloads(artifacts: Artifacts, inputs: dict[str, str | Value], found: dict[str, Confidence]) -> None:
    assert downloaded(artifacts, **inputs) == found


def test_files_that_were_there_stay() -> None:
    artifacts = Artifacts()
    artifacts.upload(given(path="a.txt"), state(CONTENTS), same)
    job = state({(f"{WORKSPACE}/b.txt",): ID})
    artifacts.download(given(), job, same)
    assert set(job.files.contents) == {(f"{WORKSPACE}/b.txt",), (f"{WORKSPACE}/artifact/a.txt",)}


def test_several_artifacts_in_one(artifacts: Artifacts) -> None:
    artifacts.merge(given(name="all", pattern="t*"))
    assert downloaded(artifacts, name="all") == {"c.log": HIGH}
    artifacts.merge(given(pattern="t*", separate_directories="true"))
    assert downloaded(artifacts, name="merged-artifacts") == {"two/c.log": HIGH}


def test_the_version_changes_with_what_is_kept(artifacts: Artifacts) -> None:
    before = artifacts.version
    artifacts.upload(given(name="one", path="a.txt"), state(CONTENTS), same)
    artifacts.upload(given(name="plain", path="plain.txt"), state(CONTENTS), same)
    assert artifacts.version == before
    artifacts.upload(given(name="new", path="a.txt"), state(CONTENTS), same)
    assert artifacts.version > before


# --- Caches


def written(*paths: str) -> Files:
    return Files(contents={(f"{WORKSPACE}/{path}",): ID for path in paths})


def cache(path: str, key: str, **more: str) -> dict[str, Value]:
    return {name: Value.literal(value) for name, value in {"path": path, "key": key, **more}.items()}


@pytest.mark.parametrize(
    ("asked", "confidence"),
    [
        (cache("out", "k-1"), Confidence.HIGH),
        (cache("out/", "k-1"), None),
        (cache("out", "k-2"), None),
        ({**cache("out", "k-1"), "key": Value.literal("k-") + Value(((UNNAMED,),))}, Confidence.MEDIUM),
        (cache("out", "k-2", **{"restore-keys": "k-"}), Confidence.MEDIUM),
        (cache("out", "k-2", **{"restore-keys": "j-\n k-1 "}), Confidence.MEDIUM),
        (cache("out", "k-2", **{"restore-keys": "j-"}), None),
    ],
)
def test_a_cache_is_found_by_paths_and_key(asked: dict[str, Value], confidence: Confidence | None) -> None:
    artifacts, later = Artifacts(), state()
    artifacts.save(cache("out", "k-1"), written("out/a", "b"))
    artifacts.restore(asked, later, lambda value: value)
    found = {path: content for path, content in later.files.contents.items() if content.taints}
    assert set(found) == ({(f"{WORKSPACE}/out/a",)} if confidence else set())
    assert all({taint.confidence for taint in content.taints} == {confidence} for content in found.values())


def test_a_cache_is_saved_once() -> None:
    artifacts, later = Artifacts(), state()
    artifacts.save(cache("out", "k"), written("out/a"))
    saved = artifacts.version
    artifacts.save(cache("out", "k"), written("out/b"))
    artifacts.save(cache("other", "k"), written("out/b"))
    assert artifacts.version == saved > 0
    artifacts.restore(cache("out", "k"), later, lambda value: value)
    assert set(later.files.contents) == {(f"{WORKSPACE}/out/a",)}
