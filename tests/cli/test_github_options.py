"""Which repository a verb is about when it is not named."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from runner_e2e.cli.dispatch_session import run_address
from runner_e2e.cli.github_options import find_repository
from runner_e2e.cli.group import run as run_command
from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:octo/evals.git"], check=True)
    return tmp_path


def test_what_is_named_counts_then_the_job_then_the_remote(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del clone
    assert find_repository() == "octo/evals"
    assert capsys.readouterr().err == "repository octo/evals, by the git remote\n"
    monkeypatch.setenv("GITHUB_REPOSITORY", "octo/job")
    assert find_repository() == "octo/job"
    assert find_repository("octo/named") == "octo/named"
    assert capsys.readouterr().err == "", "what was named needs no telling"


@pytest.mark.parametrize(
    ("api", "fix"),
    [
        ("https://ghe.example.com/api/v3", "give --repo OWNER/NAME for ghe.example.com, or set GITHUB_API_URL="),
        ("https://api.acme.ghe.com", "give --repo OWNER/NAME for acme.ghe.com, or set GITHUB_API_URL="),
    ],
)
def test_another_server_is_not_asked_for_the_name(
    clone: Path, monkeypatch: pytest.MonkeyPatch, api: str, fix: str
) -> None:
    del clone
    monkeypatch.setenv("GITHUB_API_URL", api)
    with pytest.raises(
        UsageError, match=r"the git remote is octo/evals on github\.com, and .* would be asked"
    ) as found:
        find_repository()
    assert found.value.problem.fix == f"{fix}https://api.github.com"


def test_a_remote_on_an_enterprise_server(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "remote", "set-url", "origin", "ssh://git@ghe.example.com:122/octo/evals.git"], check=True)
    with pytest.raises(UsageError) as found:
        find_repository(folder=clone)
    assert "GITHUB_API_URL=https://ghe.example.com/api/v3" in found.value.problem.fix
    monkeypatch.setenv("GITHUB_API_URL", "https://ghe.example.com/api/v3")
    assert find_repository(folder=clone) == "octo/evals"


VERBS = (
    ("doctor",),
    ("gate", "--allowlist", "[11]"),
    ("dispatch", "plan", "--all"),
    ("dispatch", "seal", "--all"),
    ("dispatch", "caps"),
    ("dispatch", "authorise-rerun", "1"),
    ("dispatch", "cleanup"),
)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_takes_it_from_the_remote(
    clone: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    del clone
    assert run_command(list(words)) == 2
    said = capsys.readouterr().err
    assert said.startswith("repository octo/evals, by the git remote\n"), said
    assert "there is no repository" not in said, "what is missing is a token, a key or a catalog"


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_verb_says_what_to_do_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(list(words)) == 2
    said = capsys.readouterr().err
    assert f"there is no repository\n  why: {tmp_path} is in no clone of one\n  fix: give it as --repo" in said


@pytest.mark.parametrize(
    ("api", "address"),
    [
        ("https://api.github.com", "https://github.com/octo/evals/actions/runs/7"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/octo/evals/actions/runs/7"),
        ("https://ghe.example.com/api/v3", "https://ghe.example.com/octo/evals/actions/runs/7"),
        ("http://127.0.0.1:8080", ""),
    ],
)
def test_the_page_of_a_run(monkeypatch: pytest.MonkeyPatch, api: str, address: str) -> None:
    monkeypatch.setenv("GITHUB_API_URL", api)
    assert run_address("octo/evals", 7) == address
