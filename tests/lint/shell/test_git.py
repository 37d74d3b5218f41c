"""What ``git`` keeps, and what ``git push`` publishes."""

from __future__ import annotations

import pytest
from tests.lint.shell.test_analysis import follow

from runner_e2e.lint.shell.git import holds_copies
from runner_e2e.lint.values import Confidence

MESSAGE = "a message that `git push` publishes"
FILE = "a file that `git push` publishes"


def published(text: str) -> dict[str, Confidence]:
    return {one.subject: max(taint.confidence for taint in one.taints) for one in follow(text).publications}


@pytest.mark.parametrize(
    "commit",
    [
        'echo "$S" > m; git commit -F m',
        'echo "$S" > m; git commit -qFm',
        'git commit --file - <<< "$S"',
        'git commit -m "$S"',
        'git commit -sm "about $S"',
        'git commit "-mabout $S"',
        'git commit --message="$S"',
        'git commit -m first -m "$S"',
        'git -c user.name=bot commit -m "$S"',
        'git merge --no-ff -m "$S" other',
        'git tag -a v1 -m "$S"',
        'git notes append -m "$S"',
        'GIT_COMMITTER_EMAIL="$S@x" git commit -m done',
    ],
)
def test_messages(commit: str) -> None:
    assert published(f"{commit}; git push") == {MESSAGE: Confidence.HIGH}
    assert published(commit) == {}


@pytest.mark.parametrize(
    ("add", "confidence"),
    [
        ("git add f", Confidence.HIGH),
        ("git add -- ./f", Confidence.HIGH),
        ("git add .", Confidence.MEDIUM),
        ("git add --all", Confidence.MEDIUM),
        ("git add other", None),
        ("git add -p", None),
    ],
)
def test_files(add: str, confidence: Confidence | None) -> None:
    found = published(f'echo "$S" > f; {add}; git commit -m done; git push')
    assert found == ({} if confidence is None else {FILE: confidence})


def test_a_file_of_a_folder() -> None:
    assert published('mkdir d; echo "$S" > d/f; git add d; git commit -m done; git push') == {FILE: Confidence.HIGH}


def test_what_is_not_committed_is_not_pushed() -> None:
    assert published('echo "$S" > f; git add f; git push') == {}


def test_each_repository_by_itself() -> None:
    text = 'git -C one commit -m "$S"; '
    assert published(f"{text} git push") == {}
    assert published(f"{text} git -C one push") == {MESSAGE: Confidence.HIGH}
    assert published(f"{text} cd one; git push") == {MESSAGE: Confidence.HIGH}


def test_messages_are_shown() -> None:
    shown = follow('git commit -F - <<< "$S"; git log -1').prints
    assert [one.target for one in shown] == ["log"]


def test_copies() -> None:
    assert holds_copies(("/github/workspace/.git/objects",))
    assert not holds_copies(("/github/workspace/.git/logs/HEAD",))
    assert not holds_copies(())
