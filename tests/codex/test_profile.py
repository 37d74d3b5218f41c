from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.codex.profile import (
    DEFAULT_PROFILE,
    EXTERNAL_PROFILE,
    PLANNING_PROFILE,
    Host,
    host_of,
    launch_arguments,
    profile_name,
    session_context,
    toml_text,
)
from runner_e2e.codex.requests import thread_resume, thread_start, turn_start
from runner_e2e.errors import UsageError

LOCAL = Host(codex_home="/home/agent/.codex", package="/opt/codex")
EXTERNAL = Host(external_sandbox=True, network=True, codex_home="/home/agent/.codex", package="/opt/codex")
ROOT = {"local": "none", "external": "read"}


def settings(host: Host, *, planning: bool = True) -> dict[str, object]:
    """The configuration that Codex makes of the arguments: each is TOML, as Codex reads it."""
    words = launch_arguments(host, planning=planning)
    assert words[::2] == ("-c",) * (len(words) // 2)
    found: dict[str, object] = {}
    for word in words[1::2]:
        name, _, value = word.partition("=")
        found[name] = tomllib.loads(f"value = {value}")["value"]
    return found


def filesystem(host: Host, profile: str = PLANNING_PROFILE) -> object:
    return settings(host)[f"permissions.{profile}.filesystem"]


def test_planning_in_an_external_sandbox_reads_the_whole_root_and_denies_nothing() -> None:
    assert filesystem(EXTERNAL) == {":root": "read"}
    assert settings(EXTERNAL)[f"permissions.{PLANNING_PROFILE}.network"] == {"enabled": True}
    assert settings(EXTERNAL)["default_permissions"] == PLANNING_PROFILE


def test_planning_on_a_local_host_reads_only_what_is_named() -> None:
    assert filesystem(LOCAL) == {
        ":root": "none",
        ":minimal": "read",
        ":tmpdir": "none",
        "/home/agent/.codex/tmp/arg0": "read",
        "/opt/codex": "read",
        ":workspace_roots": {".": "read"},
    }
    assert "/home/agent/.codex" not in str(filesystem(LOCAL)).replace("/home/agent/.codex/tmp/arg0", "")


def test_the_network_is_off_on_a_local_host_whatever_is_asked_for() -> None:
    for profile in (DEFAULT_PROFILE, PLANNING_PROFILE):
        assert settings(Host(network=True))[f"permissions.{profile}.network"] == {"enabled": False}


def test_the_default_profiles_write() -> None:
    assert filesystem(EXTERNAL, EXTERNAL_PROFILE) == {":root": "write"}
    rules = filesystem(LOCAL, DEFAULT_PROFILE)
    assert isinstance(rules, dict)
    assert rules[":workspace_roots"] == {".": "write"}
    assert settings(EXTERNAL, planning=False)["default_permissions"] == EXTERNAL_PROFILE
    assert settings(LOCAL, planning=False)["default_permissions"] == DEFAULT_PROFILE


@pytest.mark.parametrize("external", ["0", "1"])
def test_the_brokered_github_configuration_belongs_to_planning(external: str) -> None:
    environ = {
        "PAPERCLIP_RUNNER_EXTERNAL_SANDBOX": external,
        "PAPERCLIP_GITHUB_BROKER_TOKEN": "x",
        "GH_CONFIG_DIR": "/run/gh",
    }
    rules = filesystem(host_of(environ))
    assert isinstance(rules, dict)
    assert rules["/run/gh"] == "write"
    del environ["PAPERCLIP_GITHUB_BROKER_TOKEN"]
    assert "/run/gh" not in str(filesystem(host_of(environ)))


def test_explicit_denials_of_other_policies_are_kept() -> None:
    home = Host(codex_home="/home/agent/.codex", denied=("/home/agent/.codex", "/secrets"))
    for profile in (DEFAULT_PROFILE, PLANNING_PROFILE):
        rules = filesystem(home, profile)
        assert isinstance(rules, dict)
        assert (rules["/home/agent/.codex"], rules["/secrets"]) == ("none", "none")
    assert filesystem(Host(external_sandbox=True, denied=("/secrets",))) == {":root": "read"}


def test_a_protected_path_is_read_only_after_the_grant_that_holds_it() -> None:
    for external in (False, True):
        host = Host(external_sandbox=external, writable=("/run/a",), protected=("/run/a/lock",))
        rules = filesystem(host)
        assert isinstance(rules, dict)
        assert (rules["/run/a"], rules["/run/a/lock"]) == ("write", "read")
        assert list(rules).index("/run/a") < list(rules).index("/run/a/lock")


def test_values_of_the_environment_never_stand_in_the_arguments() -> None:
    host = host_of({"SECRET": "s3cret", "CODEX_HOME": "/h"}, passed_variables=("SECRET",))
    words = " ".join(launch_arguments(host))
    assert "s3cret" not in words
    assert "SECRET" in str(settings(host)["shell_environment_policy.include_only"])


@pytest.mark.parametrize(
    ("value", "on"), [("1", True), ("enabled", True), ("true", True), ("", False), ("0", False), ("disabled", False)]
)
def test_switches_of_the_environment(value: str, on: bool) -> None:
    names = ("PAPERCLIP_RUNNER_EXTERNAL_SANDBOX", "PAPERCLIP_RUNNER_NETWORK_ACCESS")
    host = host_of(dict.fromkeys(names, value))
    assert (host.external_sandbox, host.network) == (on, on)
    assert not host_of(dict.fromkeys(names, "1"), external_sandbox=False).external_sandbox


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    with pytest.raises(UsageError, match="PAPERCLIP_RUNNER_NETWORK_ACCESS is neither on nor off"):
        host_of({"PAPERCLIP_RUNNER_NETWORK_ACCESS": "maybe"})


@pytest.mark.parametrize("path", ["relative", "", "/", "//", "/a\nb", "/a\x00"])
def test_paths_that_cannot_be_granted_are_refused(path: str) -> None:
    with pytest.raises(UsageError):
        Host(readable=(path,))


@pytest.mark.parametrize("name", ["", "1A", "A=B", "A B", "É"])
def test_names_that_are_no_variables_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        Host(passed_variables=(name,))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_toml(text: str) -> None:
    assert tomllib.loads(f"value = {toml_text(text)}")["value"] == text


@pytest.mark.parametrize(
    ("host", "planning", "access"),
    [(EXTERNAL, True, "read"), (EXTERNAL, False, "write"), (LOCAL, True, "none"), (LOCAL, False, "none")],
)
def test_the_session_context(host: Host, planning: bool, access: str) -> None:
    context = session_context(host, planning=planning)
    assert context["rootAccess"] == access
    assert context["permissionProfile"] == profile_name(host, planning=planning)


@pytest.mark.parametrize("host", [LOCAL, EXTERNAL])
def test_requests_for_planning_name_the_profile_and_no_policy_of_their_own(host: Host) -> None:
    requests = [
        thread_start(host, planning=True, directory="/w"),
        thread_resume(host, planning=True, directory="/w", thread="t"),
        turn_start(host, planning=True, thread="t", text="Plan it.", model="m"),
    ]
    for request in requests:
        assert request["permissions"] == "paperclip-runner-workspace-read-only"
        assert not {"sandbox", "sandboxPolicy"} & request.keys()
        assert not any(word in str(request).lower() for word in ("danger", "externalsandbox", "external-sandbox"))
    assert requests[-1]["collaborationMode"] == {"mode": "plan", "settings": {"model": "m"}}
    default = turn_start(host, planning=False, thread="t", text="Do it.", model="m")
    assert default["collaborationMode"] == {"mode": "default", "settings": {"model": "m"}}
    assert default["permissions"] == profile_name(host, planning=False)
