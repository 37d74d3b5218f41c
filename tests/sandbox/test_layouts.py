from __future__ import annotations

import json
from typing import Any

import pytest

from runner_e2e.errors import ConfigurationError, UsageError
from runner_e2e.sandbox.arguments import parse_arguments, policy_of
from runner_e2e.sandbox.layouts import (
    LAYOUT_SCHEMA,
    apply,
    parse_layout,
    probe_checks,
    read_layout,
    session_name,
    shipped,
)

I = "/inst"  # noqa: E741 - short, because it stands in every path below
R = f"{I}/runtime/paperclip-runner"
TRACE = {"PAPERCLIP_PROVIDER_TRACE_PATH": f"{I}/data/provider-traces/mine.jsonl"}
VALUES = {"instance": I, "state-dir": f"{R}/durable-sessions/mine", "session-id": "a/b"}


@pytest.mark.parametrize(
    ("provider", "exposed"),
    [
        ("opencode", [f"{R}/durable-sessions/mine", f"{R}/opencode/a_b", f"{I}/data/provider-traces/mine.jsonl"]),
        ("codex", [f"{R}/durable-sessions/mine", f"{R}/runner/mine", f"{I}/data/provider-traces/mine.jsonl"]),
        ("acpx", [f"{R}/durable-sessions/mine"]),
    ],
)
def test_what_a_run_of_paperclip_is_shown(provider: str, exposed: list[str]) -> None:
    policy = apply(read_layout("paperclip"), provider=provider, values=VALUES, environment=TRACE)
    assert list(policy.expose) == exposed
    assert set(policy.hide) == {
        *(f"{R}/{name}" for name in ("durable-sessions", "runner", "control-plane", "opencode")),
        *(f"{I}/data/{name}" for name in ("run-logs", "provider-traces", "backups")),
        f"{I}/db",
        f"{I}/secrets",
    }
    shared = {"companies", "projects", "workspaces", "runtime-context-assets", "skills", "runtime/provider-packs"}
    assert {f"{I}/{name}" for name in shared} | {f"{R}/acpx"} <= set(policy.create)
    assert set(policy.create_files) == {path for path in exposed if path.endswith(".jsonl")}
    assert not set(policy.create) & set(policy.create_files)


def test_values_that_are_named_hide_the_entries_of_others() -> None:
    more = {"acpx-entry": "mine", "agent-home": f"{I}/companies/c/agents/a", "task-workspace": f"{I}/workspaces/w"}
    policy = apply(read_layout("paperclip"), provider="acpx", values={**VALUES, **more}, environment={})
    assert {f"{R}/acpx", f"{I}/companies", f"{I}/workspaces", f"{I}/projects"} <= set(policy.hide)
    assert {f"{R}/acpx/mine", more["agent-home"], more["task-workspace"]} <= set(policy.expose)


@pytest.mark.parametrize(
    ("provider", "missing", "word"),
    [
        ("opencode", "session-id", "--session-id"),
        ("codex", "state-dir", "--state-dir"),
        ("acpx", "instance", "--instance"),
    ],
)
def test_a_missing_value_is_an_error_and_never_a_smaller_exposure(provider: str, missing: str, word: str) -> None:
    values = {name: value for name, value in VALUES.items() if name != missing}
    with pytest.raises(UsageError) as caught:
        apply(read_layout("paperclip"), provider=provider, values=values, environment=TRACE)
    assert word in str(caught.value)


def test_a_missing_trace_variable_is_an_error_where_the_provider_has_one() -> None:
    with pytest.raises(UsageError, match="PAPERCLIP_PROVIDER_TRACE_PATH"):
        apply(read_layout("paperclip"), provider="codex", values=VALUES, environment={})


@pytest.mark.parametrize("provider", ["", "claude"])
def test_the_provider_must_be_one_of_the_layouts(provider: str) -> None:
    with pytest.raises(UsageError, match="provider"):
        apply(read_layout("paperclip"), provider=provider, values=VALUES, environment=TRACE)


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("abc", "abc"),
        ("a/b c", "a_b_c"),
        ("ü.x-y_Z9", "_.x-y_Z9"),
        ("x" * 200, "x" * 120),
        ("...", "..."),
        ("../x", ".._x"),
    ],
)
def test_session_names(session: str, name: str) -> None:
    assert session_name(session) == name


@pytest.mark.parametrize("session", ["", ".", ".."])
def test_session_ids_that_name_no_directory(session: str) -> None:
    with pytest.raises(UsageError):
        session_name(session)


def test_every_shipped_layout_has_a_probe() -> None:
    assert shipped() == ("generic", "paperclip")
    for name in shipped():
        layout = read_layout(name)
        values = {"instance": I, **{key: text.replace("{instance}", I) for key, text in layout.probe.given.items()}}
        variables = {key: text.replace("{instance}", I) for key, text in layout.probe.environment.items()}
        checks = probe_checks(layout, values=values, environment=variables)
        assert {"read", "list", "use"} == {action for _, action, _ in checks}
        policy = apply(layout, provider=layout.probe.provider, values=values, environment=variables)
        for _, action, path in checks:
            hidden = any(path == top or path.startswith(f"{top}/") for top in policy.hide)
            exposed = any(path == top or path.startswith(f"{top}/") for top in policy.expose)
            assert (hidden and not exposed) is (action != "use")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "x"}, "no layout"),
        ({"hidden": []}, "unknown key 'hidden'"),
        ({"hide": "/x"}, "hide of the layout is not a list"),
        ({"hide": [{"path": 3}]}, "neither a path nor an object"),
        ({"hide": [{"path": "/x", "kind": "socket"}]}, "kind 'socket'"),
        ({"hide": [{"paths": "/x"}]}, "neither a path nor an object"),
        ({"providers": []}, "providers"),
        ({"name": 3}, "no name"),
        ({"probe": {"denied": []}}, "probe of the layout is wrong"),
        ({"probe": {"other": {}}}, "probe of the layout is wrong"),
    ],
)
def test_mistakes_in_a_layout(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_layout(json.dumps({"schema": LAYOUT_SCHEMA, "name": "x", **change}), path="/l.json")
    assert message in str(caught.value)
    assert "/l.json" in str(caught.value)


@pytest.mark.parametrize("path", ["{instance", "relative/{instance}", "{unknown}/x", "{env:}/x"])
def test_bad_placeholders(path: str) -> None:
    layout = parse_layout(json.dumps({"schema": LAYOUT_SCHEMA, "name": "x", "hide": [path]}), path="l")
    with pytest.raises(UsageError):
        apply(layout, provider="", values={"instance": I}, environment={})


def test_the_options_of_a_launch_fill_a_layout() -> None:
    words = ["--layout", "generic", "--instance", I, "--session-id=s/1", "--hide", "/x", "--", "true"]
    policy = policy_of(parse_arguments(words), {})
    assert policy.hide == (f"{I}/sessions", f"{I}/logs", f"{I}/results", f"{I}/db", f"{I}/secrets", "/x")
    assert policy.expose == (f"{I}/sessions/s_1",)
    assert policy.workspace == (f"{I}/workspace",)
    by_variable = policy_of(parse_arguments(["--layout", "generic", "--", "true"]), {"RUNNER_E2E_INSTANCE": I})
    assert f"{I}/sessions" in by_variable.hide
