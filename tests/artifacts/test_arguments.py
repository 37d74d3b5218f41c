from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.artifacts.arguments import parse_arguments
from runner_e2e.errors import UsageError

DIGEST = "a" * 64
BASE = ["--sha256", DIGEST]


def test_a_whole_command_line() -> None:
    words = [*BASE, "--trusted-launch-root=/rom", "--assigned", "--quiet", "/rom/tool", "--", "-x", "--", "--sha256"]
    request = parse_arguments(words)
    assert (request.path, request.arguments) == ("/rom/tool", ("-x", "--", "--sha256"))
    assert (request.sha256, request.trusted_launch_root) == (DIGEST, "/rom")
    assert request.assigned
    assert request.quiet
    assert request.ignored == ()


def test_nothing_is_trusted_by_default() -> None:
    request = parse_arguments([*BASE, "tool"])
    assert (request.trusted_launch_root, request.assigned, request.arguments) == ("", False, ())


@pytest.mark.parametrize(
    ("words", "path", "ignored"),
    [
        (["--new", "tool"], "tool", ("--new",)),
        (["--new", "value", "tool"], "tool", ("--new", "value")),
        (["--new=value", "tool"], "tool", ("--new=value",)),
        (["-n", "3", "--other", "tool"], "tool", ("-n", "3", "--other")),
        (["--new", "--quiet", "tool"], "tool", ("--new",)),
        (["--new", "value", "--trusted-launch-root", "/rom", "tool"], "tool", ("--new", "value")),
    ],
)
def test_options_of_newer_versions_are_ignored(words: list[str], path: str, ignored: tuple[str, ...]) -> None:
    for rest in ([], ["--", "argument"]):
        request = parse_arguments([*BASE, *words, *rest])
        assert request.path == path
        assert request.ignored == ignored
        assert request.arguments == tuple(rest[1:])


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["tool"], "--sha256 is missing"),
        (BASE, "no artifact is named"),
        ([*BASE, "--", "tool"], "no artifact is named"),
        ([*BASE, "tool", "argument"], "argument stands after the artifact tool"),
        ([*BASE, "tool", "-v"], "-v stands after the artifact tool"),
        ([*BASE, *BASE, "tool"], "--sha256 is given twice"),
        ([*BASE, "--assigned=yes", "tool"], "--assigned takes no value"),
        ([*BASE, "tool", "--quiet"], "--quiet stands after the artifact tool"),
        ([*BASE, "--new", "tool", "--quiet"], "--quiet stands after the artifact tool"),
        (["--sha256"], "--sha256 has no value"),
        (["--sha256=", "tool"], "--sha256 is empty"),
        ([*BASE, "--trusted-launch-root", "", "tool"], "--trusted-launch-root is empty"),
        ([*BASE, "one", "two"], "two stands after the artifact one"),
    ],
)
def test_what_no_newer_version_could_mean_is_an_error(words: list[str], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(words)
    assert caught.value.problem.what == what
    assert caught.value.problem.fix


@given(st.lists(st.text(max_size=6), max_size=6))
def test_arguments_of_the_artifact_are_never_read(arguments: list[str]) -> None:
    assert parse_arguments([*BASE, "tool", "--", *arguments]).arguments == tuple(arguments)


@given(st.lists(st.sampled_from(["--", "--x", "--sha256", "--quiet", "v", "-", "--assigned", "--x=1"]), max_size=9))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        request = parse_arguments(words)
    except UsageError:
        return
    assert request.path
    assert request.sha256
