from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox.facts import PathFact
from runner_e2e.sandbox.refusals import refuse, usable

if TYPE_CHECKING:
    from runner_e2e.sandbox.facts import Kind


def fact(
    path: str, kind: Kind = "directory", *, inode: int = 0, why: str = "", link: str = "", real: str = ""
) -> PathFact:
    return PathFact(
        given=path,
        real=real or path,
        kind=kind,
        device=1,
        inode=inode or hash(real or path),
        why=why,
        link=link,
        link_target="/target" if link else "",
    )


@pytest.mark.parametrize(
    ("hidden", "exposed"),
    [
        ([fact("/a")], []),
        ([fact("/a")], [fact("/a/b")]),
        ([fact("/a"), fact("/a/b/c")], [fact("/a/b")]),  # what is hidden inside an exposure stays hidden
        ([fact("/a", "file")], []),
        ([fact("/a"), fact("/ab")], [fact("/a/ab")]),
    ],
)
def test_good_policies(hidden: list[PathFact], exposed: list[PathFact]) -> None:
    assert refuse(hidden, exposed) == ()


@pytest.mark.parametrize(
    ("hidden", "exposed", "words"),
    [
        ([fact("/a")], [fact("/a/b", "missing")], ["/a/b", "does not exist"]),
        ([fact("/a")], [fact("/c")], ["/c", "outside every hidden path", "/a"]),
        ([fact("/a")], [fact("/ab")], ["/ab", "outside every hidden path"]),
        ([fact("/a")], [fact("/a")], ["/a", "would reveal /a", "same directory"]),
        ([fact("/a/b")], [fact("/a")], ["/a", "would reveal /a/b", "lies above"]),
        ([fact("/a", inode=7)], [fact("/x/y", inode=7)], ["/x/y", "would reveal /a"]),  # by another name
        ([fact("/a")], [fact("/a/b", why="Permission denied")], ["/a/b", "cannot read", "/a"]),
        ([fact("/a")], [fact("/a/b", "dangling symbolic link", link="/a/b")], ["/a/b", "leads nowhere", "/target"]),
        ([fact("/a")], [fact("/a/b", "symbolic links in a circle")], ["/a/b", "circle"]),
        ([fact("/a")], [fact("/a/b", "unreadable")], ["/a/b", "cannot be reached"]),
        ([fact("/a")], [fact("b", "relative")], ["b", "not an absolute path"]),
        ([fact("/a")], [fact("/a/l", real="/etc", link="/a/l")], ["/a/l", "/target", "/etc"]),
        ([fact("/a")], [fact("/a/l/x", real="/a/m/x", link="/a/l")], ["/a/l/x", "/a/l", "symbolic link", "/a/m/x"]),
        ([fact("/a", "missing")], [], ["/a", "does not exist", "hide_if_present"]),
        ([fact("a", "relative")], [], ["a", "not an absolute path"]),
        ([fact("/")], [], ["/ cannot be hidden"]),
        ([], [fact("/a")], ["/a", "outside every hidden path"]),
    ],
)
def test_refusals_name_the_paths_and_the_reason(
    hidden: list[PathFact], exposed: list[PathFact], words: list[str]
) -> None:
    problems = refuse(hidden, exposed)
    assert len(problems) == 1
    for word in words:
        assert word in str(problems[0])
    assert problems[0].fix


def test_every_reason_comes_in_one_run() -> None:
    problems = refuse([fact("/a"), fact("/m", "missing")], [fact("/b"), fact("/c")])
    assert [problem.what.split()[2] for problem in problems] == ["/m", "/b", "/c"]


def test_usable_facts_are_those_that_exist_once() -> None:
    assert usable([fact("/a"), fact("/b", "missing"), fact("/l", real="/a")]) == (fact("/l", real="/a"),)
