"""Names of branches: resolved to one commit, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.dispatch.target import Target, check_branch_name, resolve_target
from runner_e2e.errors import GitHubError, RefusedError

if TYPE_CHECKING:
    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi


@pytest.mark.parametrize(
    "name",
    ["main", "feature/deep/er", "grün/ünï", "日本", "deadbeef", "v1.2.3", "a#b", "a%2fb", "100%", "a&b=c", "release@1",
     "pull/x/head", "a-b", "x" * 200],
)  # fmt: skip
def test_resolves_a_branch(double: Server, api: GitHubApi, name: str) -> None:
    sha = double.state.commit({"f": name.encode()}, [], name)
    double.state.refs[f"refs/heads/{name}"] = sha
    assert resolve_target(api, name) == Target(sha=sha, ref=f"refs/heads/{name}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "no name"),
        ("a" * 40, "looks like a commit"),
        ("0123456789abcdef" * 4, "looks like a commit"),
        ("refs/heads/main", "is a ref"),
        ("refs/pull/1/head", "is a ref"),
        ("heads/main", "is a ref"),
        ("tags/v1", "is a ref"),
        ("origin/main", "is a ref"),
        ("HEAD", "is a ref"),
        ("@", "is a ref"),
        ("pull/12/head", "pull request"),
        ("pull/12/merge", "pull request"),
        ("mallory:main", "another repository"),
        *((name, "no name that a branch") for name in (
            "a b", "a..b", "a~1", "a^", "a?", "a*", "a[", "a\\b", "a@{1}", "-x", "/a", "a/", "a//b", "a.", ".a", "a/.b",
            "a.lock", "a.lock/b", "a\nb", "a\x00b", "a\x1b[31m", "x" * 251, "a\u202eb", "a\ud800",
        )),
    ],
)  # fmt: skip
def test_refuses_a_name(name: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said) as caught:
        check_branch_name(name)
    assert "\x1b" not in str(caught.value)


def test_refuses_what_does_not_exist(double: Server, api: GitHubApi) -> None:
    double.state.refs["refs/heads/feature/one"] = double.state.refs["refs/heads/main"]
    for name in ("gone", "feature", "feature/on"):
        with pytest.raises(RefusedError, match="no branch"):
            resolve_target(api, name)


def test_refuses_a_branch_that_is_a_tag_too(double: Server, api: GitHubApi) -> None:
    double.state.refs["refs/tags/main"] = double.state.refs["refs/heads/main"]
    with pytest.raises(RefusedError, match="a branch and a tag"):
        resolve_target(api, "main")


def test_a_moved_branch_gives_its_new_commit(double: Server, api: GitHubApi) -> None:
    before = resolve_target(api, "main")
    double.state.refs["refs/heads/main"] = double.state.commit({"f": b"2"}, [], "second")
    after = resolve_target(api, "main")
    assert before.sha != after.sha == double.state.refs["refs/heads/main"]


def test_an_api_that_fails_is_no_target(double: Server, api: GitHubApi) -> None:
    for _ in range(3):
        double.faults.order("lost-502", "GET", "git/ref")
    with pytest.raises(GitHubError):
        resolve_target(api, "main")
    # The branch is there; whether a tag is cannot be found out.
    for _ in range(3):
        double.faults.order("lost-502", "GET", "git/ref/tags")
    with pytest.raises(GitHubError):
        resolve_target(api, "main")
