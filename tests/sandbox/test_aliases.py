from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runner_e2e.sandbox.aliases import Alias, candidates, count_hard_links
from runner_e2e.sandbox.facts import Mount, observe, parse_mounts
from runner_e2e.sandbox.plan import Step

if TYPE_CHECKING:
    from pathlib import Path


def mount(point: str, root: str = "/", device: str = "8:1", kind: str = "ext4", options: str = "rw") -> Mount:
    return Mount(device=device, root=root, point=point, kind=kind, options=options)


@pytest.mark.parametrize(
    ("path", "mounts", "aliases"),
    [
        ("/a/hid", [mount("/")], []),
        ("/a/hid", [mount("/"), mount("/mnt", device="8:2")], []),
        ("/a/hid", [mount("/"), mount("/mnt", "/a/hid")], [("/a/hid", "/mnt")]),
        ("/a/hid", [mount("/"), mount("/mnt", "/a")], [("/a/hid", "/mnt/hid")]),
        ("/a/hid", [mount("/"), mount("/mnt")], [("/a/hid", "/mnt/a/hid")]),
        ("/a/hid", [mount("/"), mount("/mnt", "/a/hid/deep")], [("/a/hid/deep", "/mnt")]),
        ("/a/hid", [mount("/"), mount("/mnt", "/a/hidden")], []),
        ("/data/hid", [mount("/", device="8:9"), mount("/data", "/sub")], []),
        (
            "/data/hid",
            [mount("/", device="8:9"), mount("/data", "/sub"), mount("/other", "/sub/hid")],
            [("/data/hid", "/other")],
        ),
        (
            "/a/hid",
            [mount("/", kind="overlay", device="0:1", options="rw,lowerdir=/low:/base,upperdir=/up,workdir=/w")],
            [("/a/hid", "/low/a/hid"), ("/a/hid", "/base/a/hid"), ("/a/hid", "/up/a/hid")],
        ),
        (
            "/up/a/hid",
            [mount("/"), mount("/merged", kind="overlay", device="0:1", options="upperdir=/up,workdir=/w")],
            [("/up/a/hid", "/merged/a/hid")],
        ),
    ],
)
def test_mounts_that_show_a_path_twice(path: str, mounts: list[Mount], aliases: list[tuple[str, str]]) -> None:
    assert [(alias.path, alias.alias) for alias in candidates(path, mounts)] == aliases


def test_without_proc_there_are_no_candidates() -> None:
    assert list(candidates("/a", [])) == []


def test_mountinfo_is_parsed_with_its_escapes() -> None:
    line = r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue"
    assert parse_mounts([line, "garbage"]) == (
        Mount(
            device="98:0", root="/mnt1", point="/mnt 2", kind="ext3", options="rw,errors=continue", source="/dev/root"
        ),
    )


def steps(tmp_path: Path, *exposed: str) -> tuple[Step, ...]:
    hidden = (Step(path=str(tmp_path / "hidden"), role="hide"),)
    return hidden + tuple(Step(path=str(tmp_path / name), role="expose") for name in exposed)


def test_hard_links_outside_are_counted(tmp_path: Path) -> None:
    (tmp_path / "hidden" / "deep").mkdir(parents=True)
    secret = tmp_path / "hidden" / "deep" / "secret"
    secret.write_text("x")
    facts = [observe(str(tmp_path / "hidden"))]
    assert count_hard_links(facts, steps(tmp_path)).outside == ()
    (tmp_path / "hidden" / "again").hardlink_to(secret)
    assert count_hard_links(facts, steps(tmp_path)).outside == ()
    (tmp_path / "hidden" / "own").mkdir()
    (tmp_path / "hidden" / "own" / "leak").hardlink_to(secret)
    assert count_hard_links(facts, steps(tmp_path)).outside == ()
    assert len(count_hard_links(facts, steps(tmp_path, "hidden/own")).outside) == 1
    (tmp_path / "leak").hardlink_to(secret)
    assert len(count_hard_links(facts, steps(tmp_path)).outside) == 1


def test_a_hidden_file_of_its_own_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.link(tmp_path / "file", tmp_path / "other")
    assert count_hard_links([observe(str(tmp_path / "file"))], ()).outside == (str(tmp_path / "file"),)


def test_places_that_are_too_large_are_named(tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    for index in range(600):
        (tmp_path / "hidden" / str(index)).touch()
    found = count_hard_links([observe(str(tmp_path / "hidden"))], steps(tmp_path), most=0)
    assert found.unseen == (str(tmp_path / "hidden"),)


def test_an_alias_is_a_record() -> None:
    assert Alias(path="/a", alias="/b", how="x") == Alias(path="/a", alias="/b", how="x")
    assert hash(Alias(path="/a", alias="/b", how="x")) != hash(Alias(path="/a", alias="/c", how="x"))
