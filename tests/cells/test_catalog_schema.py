"""The published schema and the reader agree on what has the right shape, in both directions."""

from __future__ import annotations

import copy
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cells.catalogs import PATH, SAMPLE
from tests.cells.test_catalog import MISTAKES, built

from runner_e2e.cells.catalog import _KEYS, _Shape, parse_catalog
from runner_e2e.cells.ids import CASE, SEGMENT
from runner_e2e.yaml_positions import compose, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = json.loads((files("runner_e2e.cells") / "schemas" / "catalog-v1.json").read_text())


@cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    return jsonschema.Draft202012Validator(SCHEMA)


def shape_problems(text: str) -> list[str]:
    """What the reader says about the shape of *text* alone, without what it means."""
    root = compose(text, path=PATH)
    assert root is not None
    shape = _Shape(PATH)
    shape.draft(root)
    return [str(problem) for problem in shape.reader.problems]


def schema_errors(text: str) -> list[str]:
    return [error.message for error in validator().iter_errors(plain(compose(text, path=PATH)))]


def agree(text: str) -> bool:
    """Whether reader and schema both reject *text*; fails when they differ."""
    ours, valid = shape_problems(text), validator().is_valid(plain(compose(text, path=PATH)))
    assert bool(ours) != valid, f"{text}\nreader: {ours}\nschema: {schema_errors(text)}"
    return not valid


FULL = """\
version: 1
harness: {command: [run, 1, true], directory: d, env: {A: x, B: 1.5, C: false}, pass-env: [D], hide: [e, 1]}
artifacts:
  trusted-launch-root: /rom
  files: [{path: /rom/a, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}]
sandbox: {network: [api.example.com, 10.0.0.0/8]}
selected-id: {variable: V, detection: auto, argv-fallback: true, sources: [a]}
confidential: {inputs: [a-b], matrix: [_c], env: [D]}
lint:
  profile: all
  rules: {paid-gate: off, secret-argv: {level: note, ignore: ["legacy/**"]}}
  ignore: [vendor/]
  provider-secrets: [K]
  paid-workflows: [.github/workflows/evaluate-*.yml]
  actions: {octo/tool: {}, octo/r/path: {}}
credentials: {K: {description: x}, L: null}
profiles: {p: {credential: K, env: {X: y}}, q: null}
environments: {e: {kind: local, credential: L, env: null}, f: null}
groups: {g: text, h: null}
suites:
  s:
    profiles: [p, q]
    environments: [e, f]
    cases: {a: null, b.c: {timeout: 1m 5s, expected-cost: 0.5, groups: [g]}, d: {timeout: 3, cases: [x, y.z]}}
    groups: [h]
    manual-only: true
    billable: true
    timeout: 0.5h
    expected-cost: 2
  t: {profiles: [p], environments: [f], cases: [a, b]}
exclusions: [{suite: s, profile: p, environment: e, case: b.c, reason: text}]
timeout: 20m
grace: 5
expected-cost: 1
retries: 0
max-parallel: 256
plain-ids: false
"""
FULL_DATA: Any = plain(compose(FULL, path=PATH))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


PLACES = list(places(FULL_DATA))
words = st.sampled_from(
    [
        "",
        " ",
        "a",
        "a.b",
        "A",
        "A_B",
        "a-b",
        "-a",
        "1",
        "1m",
        "1h 30m",
        "30m1h",
        "m",
        "-1s",
        "1.5",
        "é",
        "a\tb",
        "local",
        "auto",
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-300, max_value=300),
    st.floats(min_value=-10, max_value=10, allow_nan=False, width=16),
    words,
    st.from_regex(SEGMENT, fullmatch=True),
    st.from_regex(CASE, fullmatch=True),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(words | st.sampled_from(_KEYS), inner, max_size=3)
    ),
    max_leaves=4,
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A full catalog with one to three things in it replaced, removed, renamed or added."""
    data: Any = copy.deepcopy(FULL_DATA)
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        path = draw(st.sampled_from(list(places(data))))
        if not path:
            continue
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        kind = draw(st.sampled_from(["replace", "remove", "rename", "add"]))
        if kind == "replace":
            holder[path[-1]] = draw(values)
        elif kind == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            value = holder.pop(path[-1]) if kind == "rename" else draw(values)
            holder[draw(words | st.sampled_from(["timeout", "cases", "groups", "env", "kind", "credential"]))] = value
        else:
            holder.append(copy.deepcopy(holder[path[-1]]) if kind == "rename" else draw(values))
    return json.dumps(data, indent=1)


@settings(max_examples=200)
@given(mutations())
def test_reader_and_schema_agree_on_mutations(text: str) -> None:
    agree(text)


@pytest.mark.parametrize("path", PLACES[1:], ids=lambda path: ".".join(map(str, path)))
def test_reader_and_schema_agree_on_every_value_of_every_type(path: tuple[Any, ...]) -> None:
    rejected = 0
    wrong: tuple[Any, ...] = (
        None,
        True,
        -1,
        0.5,
        300,
        "",
        "x",
        "X",
        "1m",
        [],
        ["x", "x"],
        [1],
        {},
        {"x": None},
        {"x": {}},
    )
    for value in wrong:
        data = copy.deepcopy(FULL_DATA)
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
        rejected += agree(json.dumps(data))
    assert rejected


@pytest.mark.parametrize("text", [FULL, SAMPLE, built()], ids=["full", "sample", "built"])
def test_what_the_reader_accepts_is_valid(text: str) -> None:
    assert shape_problems(text) == schema_errors(text) == []
    parse_catalog(text, path=PATH)


# What JSON cannot say, or a schema would have to repeat for every text.
BEYOND_THE_SCHEMA = {"key twice", "infinite timeout", "cost that is no number", "NUL in a variable"}


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in BEYOND_THE_SCHEMA])
def test_reader_and_schema_agree_on_known_mistakes(name: str) -> None:
    agree(MISTAKES[name][0])


def test_the_full_catalog_uses_every_key_of_the_schema() -> None:
    """So that the mutations reach all of them."""
    known = {key for part in (SCHEMA, *SCHEMA["$defs"].values()) for key in part.get("properties", {})}
    used = {key for path in PLACES for key in path if isinstance(key, str)}
    assert known <= used


def test_everything_in_the_schema_is_described() -> None:
    def walk(part: Any, name: str) -> Iterator[str]:
        for key, child in part.get("properties", {}).items():
            if "description" not in child and "$ref" not in child:
                yield f"{name}.{key}"
            yield from walk(child, f"{name}.{key}")
        if isinstance(part.get("additionalProperties"), dict):
            yield from walk(part["additionalProperties"], f"{name}.*")

    assert [name for part in (SCHEMA, *SCHEMA["$defs"].values()) for name in walk(part, "")] == []
