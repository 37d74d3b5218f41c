"""Patches that git applies, and files that are written whole or not at all."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import ConfigurationError, RefusedError
from runner_e2e.lint.fix import Change
from runner_e2e.lint.fix_files import unified_diff, write_changes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    return (tmp_path / "repository").resolve()


def change(root: Path, name: str, before: str, after: str) -> Change:
    location = root / name
    location.parent.mkdir(parents=True, exist_ok=True)
    if not location.exists():
        location.write_bytes(before.encode())
    return Change(location=location, path=location.resolve(), shown=name, before=before, after=after)


def test_a_file_gets_its_text_and_keeps_its_mode(root: Path) -> None:
    one = change(root, "a.yml", "\ufeffä: 1\r\n", "\ufeffä: 2\r\n")
    one.path.chmod(0o640)
    write_changes([one])
    assert one.path.read_bytes() == b"\xef\xbb\xbf\xc3\xa4: 2\r\n"
    assert one.path.stat().st_mode & 0o7777 == 0o640
    assert [path.name for path in root.iterdir() if path.is_file()] == ["a.yml"]


def test_a_symbolic_link_is_refused(root: Path) -> None:
    (root / "real.yml").write_text("a: 1\n")
    (root / "link.yml").symlink_to("real.yml")
    with pytest.raises(RefusedError, match="symbolic link"):
        write_changes([change(root, "link.yml", "a: 1\n", "a: 2\n")])
    assert (root / "real.yml").read_text() == "a: 1\n"


def test_a_file_outside_of_the_repository_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.yml").write_text("a: 1\n")
    (root / "inner").symlink_to(tmp_path / "other")
    with pytest.raises(RefusedError, match="outside of its repository"):
        write_changes([change(root, "inner/a.yml", "a: 1\n", "a: 2\n")])


def test_nothing_is_written_when_one_file_may_not_be(root: Path) -> None:
    good, bad = change(root, "a.yml", "a: 1\n", "a: 2\n"), change(root, "b.yml", "a: 1\n", "a: 2\n")
    bad.path.chmod(0o444)
    with pytest.raises(ConfigurationError) as caught:
        write_changes([good, bad])
    assert str(caught.value) == "b.yml: the file is read-only\n  fix: chmod u+w b.yml"
    assert good.path.read_text() == "a: 1\n"


def test_a_file_that_has_changed_is_left_alone(root: Path) -> None:
    one = change(root, "a.yml", "a: 1\n", "a: 2\n")
    one.path.write_text("a: 3\n")
    with pytest.raises(ConfigurationError, match="changed since"):
        write_changes([one])
    assert one.path.read_text() == "a: 3\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = change(root, "a.yml", "a: 1\n", "a: 2\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match="No space left"):
        write_changes([one])
    assert one.path.read_text() == "a: 1\n"
    assert [path.name for path in root.iterdir() if path.is_file()] == ["a.yml"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\nb: 2\n", "a: 1\nc: 3\nb: 2\n"),
        ("a: 1\r\nb: 2\r\n", "a: 1\r\nb: 3\r\n"),
        ("a: 1", "a: 2"),
        ("\ufeffä: 1\n\u2028\n", "\ufeffä: 2\n\u2028\n"),
        ("".join(f"k{n}: {n}\n" for n in range(50)), "".join(f"k{n}: {n + (n in {3, 40})}\n" for n in range(50))),
    ],
)
@pytest.mark.parametrize("name", ["w.yml", "a folder/w ä.yml", 'odd"\tname.yml'])
def test_git_applies_the_patch(root: Path, name: str, before: str, after: str) -> None:
    one = change(root, name, before, after)
    environment = {"PATH": os.environ["PATH"], "HOME": str(root)}
    subprocess.run(["git", "init", "-q"], cwd=root, env=environment, check=True)
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=root, env=environment, input=unified_diff([one]).encode(), check=True)
    assert one.path.read_bytes() == after.encode()


def test_the_patch_is_a_plain_one(root: Path) -> None:
    text = unified_diff([change(root, "w.yml", "a: 1", "a: 2")])
    assert text == (
        "--- a/w.yml\n+++ b/w.yml\n@@ -1 +1 @@\n-a: 1\n\\ No newline at end of file\n+a: 2\n"
        "\\ No newline at end of file\n"
    )
