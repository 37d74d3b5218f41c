from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.codex.identity import launch_identity, stable_arguments
from runner_e2e.codex.profile import PROFILES, Host, launch_arguments

# What launches were given before: other rules, other spellings.
OLD = (
    "codex",
    "-c",
    'default_permissions="paperclip-runner-workspace-only"',
    "-c",
    'permissions.paperclip-runner-workspace-only.filesystem={":root"="none",":workspace_roots"={"."="write"}}',
    "-c",
    "permissions.paperclip-runner-workspace-only.network.enabled=true",
    "-c",
    'permissions.paperclip-runner-workspace-read-only.filesystem={":root"="none","/home/x/.codex"="none"}',
    "-c",
    "permissions.paperclip-runner-workspace-read-only.network.enabled=true",
    "app-server",
)

paths = st.lists(st.text("abc/ .", min_size=1, max_size=8).map(lambda text: f"/x{text}"), max_size=3).map(tuple)
hosts = st.builds(
    Host,
    network=st.booleans(),
    codex_home=st.none() | st.just("/home/agent"),
    package=st.none() | st.just("/opt/codex"),
    readable=paths,
    writable=paths,
    protected=paths,
    denied=paths,
)
rules = st.builds(
    "permissions.{}.{}{}".format,
    st.sampled_from(PROFILES),
    st.sampled_from(["filesystem", "network"]),
    st.sampled_from(['={":root"="read"}', ".enabled=true", '."/x"="none"', "={enabled=false}"]),
)
words = st.text("abc-=.\"' \n", max_size=12) | st.sampled_from(["-c", "--config", "--", "-cmodel=1", "app-server"])
others = st.sampled_from(
    [
        "model=1",
        "permissions.other.filesystem={}",
        "permissions.paperclip-runner-workspace-only.description=1",
        "default_permissions=1",
        "shell_environment_policy.inherit=1",
        "xpermissions.a.network=1",
    ]
)


@given(hosts, hosts)
def test_no_rule_of_a_profile_changes_the_identity(one: Host, other: Host) -> None:
    assert launch_identity(launch_arguments(one)) == launch_identity(launch_arguments(other))


@given(st.lists(words, max_size=5), rules, st.sampled_from(["-c {}", "--config {}", "--config={}", "-c{}", "-c={}"]))
def test_a_rule_in_every_spelling_is_left_out(before: list[str], rule: str, spelling: str) -> None:
    option, *value = spelling.split(" ")
    added = [option, rule] if value else [spelling.format(rule)]
    if "--" not in before and (not before or before[-1] not in ("-c", "--config")):
        assert launch_identity([*before, *added]) == launch_identity(before)


@given(st.lists(words, max_size=5), st.lists(words, max_size=5))
def test_everything_else_changes_it(one: list[str], other: list[str]) -> None:
    same = stable_arguments(one) == stable_arguments(other)
    assert (launch_identity(one) == launch_identity(other)) == same


@given(others)
def test_a_setting_that_is_no_rule_counts(setting: str) -> None:
    assert launch_identity(["-c", setting, "app-server"]) != launch_identity(["app-server"])


def test_arguments_cannot_be_shifted_into_one_another() -> None:
    identities = {launch_identity(arguments) for arguments in (["ab", "c"], ["a", "bc"], ["abc"], ["ab", "c", ""])}
    assert len(identities) == 4


def test_what_follows_a_double_dash_is_no_option() -> None:
    rule = "permissions.paperclip-runner-workspace-only.network={}"
    assert launch_identity(["--", "-c", rule]) != launch_identity(["--"])


def test_a_session_saved_under_old_rules_resumes_under_new_ones() -> None:
    host = Host(codex_home="/home/agent", package="/opt/codex", readable=("/srv",))
    kept = [word for word in launch_arguments(host) if "shell_environment_policy" not in word]
    new = ["codex", *[word for word in kept if word != "-c"], "app-server"]
    with_options = ["codex"]
    for word in new[1:-1]:
        with_options += ["-c", word]
    assert launch_identity([*with_options, "app-server"]) == launch_identity(OLD)


@pytest.mark.parametrize("position", [0, 2, len(OLD) - 1])
def test_another_executable_model_or_command_is_another_launch(position: int) -> None:
    changed = list(OLD)
    changed[position] += "x"
    assert launch_identity(changed) != launch_identity(OLD)
