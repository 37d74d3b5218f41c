from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import UsageError
from runner_e2e.remote.origin import (
    Origin,
    api_of,
    host_of,
    parse_address,
    read_origin,
    shown_address,
    site_of,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("address", "host", "repository"),
    [
        ("https://github.com/octo/evals.git", "github.com", "octo/evals"),
        ("https://github.com/octo/evals", "github.com", "octo/evals"),
        ("https://github.com/octo/evals/", "github.com", "octo/evals"),
        ("https://x-access-token:secret@github.com/octo/evals.git", "github.com", "octo/evals"),
        ("https://www.github.com/octo/evals", "github.com", "octo/evals"),
        ("HTTPS://GitHub.com/Octo/Evals.js.git", "github.com", "Octo/Evals.js"),
        ("git@github.com:octo/evals.git", "github.com", "octo/evals"),
        ("github.com:octo/evals", "github.com", "octo/evals"),
        ("git@github.com:/octo/evals.git", "github.com", "octo/evals"),
        ("org-12345@github.com:octo/evals.git", "github.com", "octo/evals"),
        ("ssh://git@github.com/octo/evals.git", "github.com", "octo/evals"),
        ("ssh://git@ssh.github.com:443/octo/evals.git", "github.com", "octo/evals"),
        ("git+ssh://git@github.com/octo/evals", "github.com", "octo/evals"),
        ("git://github.com/octo/evals.git", "github.com", "octo/evals"),
        ("https://ghe.example.com/octo/evals.git", "ghe.example.com", "octo/evals"),
        ("https://ghe.example.com:8443/octo/evals.git", "ghe.example.com", "octo/evals"),
        ("git@ghe.example.com:octo/evals.git", "ghe.example.com", "octo/evals"),
        ("ssh://git@ghe.example.com:122/octo/evals.git", "ghe.example.com", "octo/evals"),
        ("git@acme.ghe.com:octo/evals.git", "acme.ghe.com", "octo/evals"),
        ("git@[2001:db8::1]:octo/evals.git", "2001:db8::1", "octo/evals"),
        ("https://github.com/octo_acme/evals.git.git", "github.com", "octo_acme/evals.git"),
    ],
)
def test_an_address_names_a_repository(address: str, host: str, repository: str) -> None:
    assert parse_address(address) == Origin(host=host, repository=repository)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "../evals.git",
        "/srv/git/octo/evals.git",
        "file:///srv/octo/evals",
        "C:\\work\\evals",
        "https://github.com/evals",
        "https://github.com/octo/evals/tree/main",
        "https://gitlab.example.com/group/team/evals.git",
        "https:///octo/evals",
        "https://[::1/octo/evals",
        "git@github.com:octo/..",
        "git@github.com:octo/ev als",
        "git@github.com:octo/evals?x",
        "ext::sh -c evil octo/evals",
    ],
)
def test_another_address_names_none(address: str) -> None:
    assert parse_address(address) is None


@pytest.mark.parametrize(
    ("api", "site", "host"),
    [
        ("https://api.github.com", "https://github.com", "github.com"),
        ("https://api.github.com/", "https://github.com", "github.com"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com", "acme.ghe.com"),
        ("https://ghe.example.com/api/v3", "https://ghe.example.com", "ghe.example.com"),
        ("https://GHE.example.com:8443/api/v3/", "https://GHE.example.com:8443", "ghe.example.com"),
    ],
)
def test_a_site_has_its_api_somewhere(api: str, site: str, host: str) -> None:
    assert (site_of(api), host_of(api)) == (site, host)
    assert host_of(api_of(host)) == host


def test_no_password_is_shown() -> None:
    assert shown_address("https://me:secret@example.com/a\x1b[1m") == "https://example.com/a?[1m"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_origin_is_taken_whatever_other_remotes_there_are(clone: Path) -> None:
    git(clone, "remote", "add", "fork", "git@github.com:me/evals.git")
    git(clone, "remote", "add", "origin", "git@github.com:octo/evals.git")
    below = clone / "a" / "b"
    below.mkdir(parents=True)
    assert read_origin(below) == Origin(host="github.com", repository="octo/evals")


def test_the_only_remote_is_taken(clone: Path) -> None:
    git(clone, "remote", "add", "company", "https://ghe.example.com/octo/evals")
    assert read_origin(clone) == Origin(host="ghe.example.com", repository="octo/evals")


def test_what_git_puts_in_place_of_an_address_counts(clone: Path) -> None:
    git(clone, "config", "url.ssh://git@github.com/.insteadOf", "gh:")
    git(clone, "remote", "add", "origin", "gh:octo/evals")
    assert read_origin(clone).repository == "octo/evals"


def test_two_addresses_of_one_repository_are_one(clone: Path) -> None:
    git(clone, "remote", "add", "origin", "git@github.com:octo/evals.git")
    git(clone, "remote", "set-url", "--add", "origin", "https://github.com/Octo/Evals")
    assert read_origin(clone).repository == "octo/evals"


def of(folder: Path) -> str:
    with pytest.raises(UsageError) as raised:
        read_origin(folder)
    assert "--repo OWNER/NAME" in raised.value.problem.fix
    return f"{raised.value.problem.what}: {raised.value.problem.why}"


def test_without_a_clone_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(tmp_path) == f"there is no repository: {tmp_path} is in no clone of one"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of(tmp_path) == "there is no repository: git, which knows it, cannot be started: No such file or directory"


def test_a_clone_that_does_not_say_which(clone: Path) -> None:
    assert of(clone) == f"there is no repository: the clone in {clone} has no remote"
    git(clone, "remote", "add", "one", "git@github.com:octo/one.git")
    git(clone, "remote", "add", "two", "git@github.com:octo/two.git")
    assert of(clone) == (
        "which repository is meant is not clear: the clone has the remotes one, two, and none of them is `origin`"
    )
    git(clone, "remote", "add", "origin", "https://me:secret@example.com/a/b/c.git")
    assert of(clone) == (
        "there is no repository: the git remote `origin` is https://example.com/a/b/c.git, "
        "which names no OWNER/NAME on a server"
    )
    git(clone, "remote", "set-url", "origin", "git@github.com:octo/one.git")
    git(clone, "remote", "set-url", "--add", "origin", "git@github.com:octo/two.git")
    assert of(clone) == (
        "which repository is meant is not clear: "
        "the git remote `origin` has several addresses: github.com/octo/one, github.com/octo/two"
    )


def test_git_may_refuse_to_look(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert of(clone) == f"there is no repository: git does not read {clone}, which belongs to another user"
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    (clone / ".git" / "config").write_text("[remote\n")
    assert "there is no repository: `git remote` says: bad config" in of(clone)
