"""What ``git`` keeps, and what ``git push`` publishes."""

from __future__ import annotations

import pytest
from tests.lint.shell.test_analysis import follow

from runner_e2e.lint.shell.git import holds_copies
from runner_e2e.lint.shell.results import Files
from runner_e2e.lint.values import Confidence, Origin, Script

MESSAGE = "a message that `git push` publishes"
NAME = "a name that `git push` publishes"
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


TRACKED = Files(find_text=lambda path: "before" if path == "/github/workspace/f" else None)


@pytest.mark.parametrize(
    ("commit", "taken"),
    [
        ("git commit -am done", True),
        ("git commit --all -qm done", True),
        ("git commit -m done f", True),
        ("git stage f; git commit -m done", True),
        ("git commit -m all", False),
        ("git commit -m done other", False),
        ("git commit --amend --no-edit", False),
    ],
)
def test_files_that_git_has_are_committed_as_they_are_now(commit: str, taken: bool) -> None:
    found = follow(f'echo "$S" > f; echo "$S" > new; {commit}; git push', files=TRACKED).publications
    assert [one.subject for one in found] == [FILE] * taken


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ('git checkout -b "run-$S"; git push -u origin HEAD', True),
        ('git switch -qc "$S"; git push', True),
        ('git branch "$S"; git push --all', True),
        ('git push origin "HEAD:refs/heads/$S"', True),
        ('git tag "$S"; git push --tags', True),
        ('git tag "$S"; git push', False),
        ('git branch "$S"; git push origin main', False),
        ('git checkout "$S"; git push', False),
    ],
)
def test_names(text: str, pushed: bool) -> None:
    assert published(text) == ({NAME: Confidence.HIGH} if pushed else {})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('git commit -F - <<< "$S"', True),
        ('git commit -m first -m "$S"', False),
        ('git commit -qF - <<< "$S"', False),
        ('git commit --quiet -m "$S"', False),
        ('git commit -F - <<< "first\n$S"', False),
        ('git checkout -b "$S"', True),
        ('git checkout --quiet -b "$S"', False),
        ('git push origin "$S"', True),
        ('git push -q origin "$S"', False),
        ('git commit -qm "$S"; git log -1 --format=%s', True),
        ('git commit -qm "$S"; git log -1 --format=%H', False),
        ('git commit -qm "$S"; git log -1 "--pretty=format:%h %cs%n"', False),
        ('git commit -qm "$S"; git log -1 --format=%an', True),
        ('git commit -qm "$S"; git log -1 --pretty=oneline', True),
        ('git commit -qm "$S"; git show -s --format=%H', False),
        ('echo "$S" > f; git diff', True),
        ('echo "$S" > new; git diff', False),
        ('echo "$S" > f; git diff --stat', False),
        ('echo "$S" > new; git add new; git diff --cached', True),
        ('echo "$S" > new; git add new; git commit -qm new; git show', True),
        ('echo "$S" > new; git add new; git commit -qm new; git show --stat', False),
        ('echo "$S" > new; git add new; git commit -qm new; git log', False),
        ('echo "$S" > new; git add new; git commit -qm new; git log -p', True),
    ],
)
def test_what_git_prints(text: str, shown: bool) -> None:
    assert bool(follow(text, files=TRACKED).prints) is shown


def test_plumbing_reads_standard_input() -> None:
    assert published('c=$(git commit-tree HEAD^{tree} <<< "$S"); git push origin "$c:refs/heads/x"')[MESSAGE]


def test_the_root_of_the_repository_is_known() -> None:
    files = Files(find_script=lambda path: script(path) if path == "/github/workspace/run.sh" else None)
    assert follow('cd sub; cd "$(git rev-parse --show-toplevel)"; ./run.sh', files=files).leaks
    assert not follow("cd sub; ./run.sh", files=files).leaks


def script(path: str) -> Script:
    text = 'tool "$S"\n'
    return Script(origin=Origin(path=path, text=text), text=text)


def test_messages_are_shown() -> None:
    shown = follow('git commit -qF - <<< "$S"; git log -1').prints
    assert [one.target for one in shown] == ["log"]


def test_copies() -> None:
    assert holds_copies(("/github/workspace/.git/objects",))
    assert not holds_copies(("/github/workspace/.git/logs/HEAD",))
    assert not holds_copies(())
