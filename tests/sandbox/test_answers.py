"""Answers of the machine are remembered once, and hold as long as the machine would give them again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox.answers import Answers, access, ask, lstat, read_text

if TYPE_CHECKING:
    from pathlib import Path


def test_without_being_remembered_each_question_is_asked() -> None:
    answers = iter(range(2))
    assert [ask(next, answers), ask(next, answers)] == [0, 1]


def test_a_remembered_question_is_asked_once() -> None:
    numbers = iter(range(3))
    with Answers() as answers:
        assert [ask(next, numbers), ask(next, numbers)] == [0, 0]
    assert ask(next, numbers) == 1
    assert not answers.hold()


def test_errors_are_answers_too(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with Answers() as answers:
        for _ in range(2):
            with pytest.raises(FileNotFoundError) as raised:
                ask(read_text, path)
            assert (raised.value.filename, raised.value.errno) == (path, 2)
    assert answers.hold()
    (tmp_path / "none").write_text("")
    assert not answers.hold()


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("other"),
        lambda path: path.chmod(0o604),
        lambda path: path.unlink(),
        lambda path: (path.rename(path.with_name("moved")), path.write_text("text")),
        lambda path: (path.rename(path.with_name("moved")), path.symlink_to("moved")),
    ],
    ids=["content", "mode", "removed", "replaced", "link"],
)
def test_a_changed_file_changes_the_answers(tmp_path: Path, change: object) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with Answers() as answers:
        ask(read_text, str(path))
        ask(lstat, str(path))
        ask(access, str(path), os.R_OK)
        ask(os.listdir, str(tmp_path))
    assert answers.hold()
    change(path)  # type: ignore[operator]
    assert not answers.hold()


def test_what_is_in_a_directory_is_not_what_it_is(tmp_path: Path) -> None:
    with Answers() as answers:
        ask(lstat, str(tmp_path))
    (tmp_path / "new").mkdir()
    assert answers.hold()
