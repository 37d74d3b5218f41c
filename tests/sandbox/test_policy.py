from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.errors import ConfigurationError
from runner_e2e.sandbox.policy import IDENTITIES, LAYERS, NEEDS, SCHEMA, WALLS, EnvironmentRules, Policy
from runner_e2e.sandbox.policy_json import parse_policy

PATHS = st.lists(st.text(alphabet="abc/", min_size=1).map(lambda text: f"/{text}"), max_size=4).map(tuple)
POLICIES = st.builds(
    Policy,
    hide=PATHS,
    hide_if_present=PATHS,
    expose=PATHS,
    create=PATHS,
    workspace=PATHS,
    home=st.sampled_from(["", "/home/a"]),
    wall=st.sampled_from(WALLS),
    identity=st.sampled_from(IDENTITIES),
    user=st.none() | st.integers(1, 2**32 - 2),
    relay_streams=st.booleans(),
    allow_hard_links=st.booleans(),
    environment=st.builds(EnvironmentRules, drop=st.just(("A", "B_*")), set_=st.just((("X", "y"),))),
    layers=st.fixed_dictionaries(
        {
            **{layer: st.just(need) for layer, need in LAYERS.items()},
            "pids": st.sampled_from(NEEDS),
            "keyrings": st.sampled_from(NEEDS),
        }
    ),
)


@given(POLICIES)
def test_a_policy_survives_json(policy: Policy) -> None:
    assert parse_policy(json.dumps(policy.to_document()), path="p.json") == policy


def test_joining_adds_paths_and_keeps_the_rest() -> None:
    one = Policy(hide=("/a", "/b"), wall="locked-mounts")
    joined = one.joined(Policy(hide=("/b", "/c"), expose=("/a/x",), wall="landlock"))
    assert joined.hide == ("/a", "/b", "/c")
    assert joined.expose == ("/a/x",)
    assert joined.wall == "locked-mounts"


def test_requiring_layers() -> None:
    policy = Policy().requiring("pids", "ipc")
    assert policy.need("pids") == policy.need("ipc") == "required"
    assert policy.need("network") == "off"
    assert Policy().need("pids") == "best-available"


def test_a_policy_is_frozen() -> None:
    policy = Policy()
    with pytest.raises(AttributeError, match="frozen"):
        policy.home = "/x"  # type: ignore[misc]
    with pytest.raises(TypeError, match="has no hid"):
        Policy(hid=("/a",))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hide": "/a"}, "hide is not a list of strings"),
        ({"hide": [1]}, "hide is not a list of strings"),
        ({"hiden": ["/a"]}, "unknown key 'hiden'"),
        ({"schema": "other"}, "schema is 'other'"),
        ({"wall": "paper"}, "wall is 'paper'"),
        ({"identity": "other"}, "identity is 'other'"),
        ({"user": 0}, "user is 0"),
        ({"user": True}, "user is True"),
        ({"user": "nobody"}, "user is 'nobody'"),
        ({"home": 3}, "home is 3"),
        ({"relay_streams": "yes"}, "relay_streams is 'yes'"),
        ({"layers": ["pids"]}, "layers is not an object"),
        ({"layers": {"pid": "required"}}, "a layer is 'pid'"),
        ({"layers": {"pids": "maybe"}}, "layers.pids is 'maybe'"),
        ({"layers": {"wall": "off"}}, "layers.wall is 'off'"),
        ({"layers": {"self-check": "best-available"}}, "layers.self-check is 'best-available'"),
        ({"environment": {"allow": []}}, "environment is not an object of keep, drop and set"),
        ({"environment": {"set": {"A": 1}}}, "environment.set is not an object of strings"),
    ],
)
def test_every_mistake_is_named_with_its_file(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_policy(json.dumps({"schema": SCHEMA, **change}), path="/etc/p.json")
    assert message in str(caught.value)
    assert all(str(problem).startswith("/etc/p.json: ") and problem.fix for problem in caught.value.problems)


def test_all_mistakes_come_in_one_run() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_policy('{"schema": "x", "hide": 1, "wall": 2}', path="p")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"a"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_policy(text, path="p")
