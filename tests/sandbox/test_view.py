from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.sandbox.facts import beneath
from runner_e2e.sandbox.plan import Step
from runner_e2e.sandbox.view import Entry, ancestors, barriers, decides, movable, order

if TYPE_CHECKING:
    from runner_e2e.sandbox.plan import Role


def step(path: str, role: Role = "hide") -> Step:
    return Step(path=path, role=role)


def shown(*steps: Step) -> list[tuple[str, str]]:
    return [(one.path, one.role) for one in order(steps)]


def test_shallow_paths_come_first() -> None:
    assert shown(step("/a/b/c"), step("/a/b", "expose"), step("/a")) == [
        ("/a", "hide"),
        ("/a/b", "expose"),
        ("/a/b/c", "hide"),
    ]


def test_what_lies_in_a_hidden_directory_needs_no_cover() -> None:
    assert shown(step("/a"), step("/a/b"), step("/a/b/c")) == [("/a", "hide")]


def test_hiding_wins_over_everything_at_the_same_path() -> None:
    assert shown(step("/a", "own"), step("/a"), step("/a", "lock")) == [("/a", "hide")]


def test_a_share_shows_through_a_barrier_and_a_lock_does_not() -> None:
    assert shown(step("/r"), step("/r/tools", "share"), step("/r/x", "lock")) == [("/r", "hide"), ("/r/tools", "share")]


def test_own_paths_inside_own_paths_are_not_mounted_twice() -> None:
    assert shown(step("/w", "own"), step("/w/i", "own"), step("/w/h"), step("/w/h/mine", "expose")) == [
        ("/w", "own"),
        ("/w/h", "hide"),
        ("/w/h/mine", "expose"),
    ]


def test_the_deepest_step_decides() -> None:
    steps = (step("/a"), step("/a/b", "expose"))
    assert decides("/a/c", steps) == steps[0]
    assert decides("/a/b/c", steps) == steps[1]
    assert decides("/ab", steps) is None
    assert decides("/a", steps) == steps[0]


PARTS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(hidden=st.sets(PARTS, max_size=6), exposed=st.sets(PARTS, max_size=6), asked=PARTS)
def test_order_keeps_what_every_path_looks_like(hidden: set[str], exposed: set[str], asked: str) -> None:
    """Leaving steps out never changes whether a path is seen: the nearest wish above it decides, hiding first."""
    steps = [step(path) for path in hidden] + [step(path, "expose") for path in exposed - hidden]
    wish = decides(asked, steps)
    made = decides(asked, order(steps))
    assert (wish is not None and wish.hidden) == (made is not None and made.hidden)
    depths = [one.path.count("/") for one in order(steps)]
    assert depths == sorted(depths)


def test_barriers_are_the_outermost_closed_directories() -> None:
    entries = [
        Entry(path="/", mode=0o755, user=0, group=0),
        Entry(path="/root", mode=0o700, user=0, group=0),
        Entry(path="/root/in", mode=0o700, user=0, group=0),
        Entry(path="/open", mode=0o711, user=0, group=0),
        Entry(path="/mine", mode=0o700, user=9, group=9),
        Entry(path="/group", mode=0o710, user=0, group=9),
    ]
    needed = ["/root/in/x", "/open/y", "/mine/z", "/group/q"]
    assert barriers(needed, entries, user=9, group=9) == ("/root",)
    assert barriers(needed, entries, user=8, group=8) == ("/group", "/mine", "/root")
    assert barriers(["/open/y"], entries, user=8, group=8) == ()


@given(PARTS)
def test_ancestors_lie_above(path: str) -> None:
    assert all(beneath(path, above) for above in ancestors(path))
    assert len(ancestors(path)) == path.count("/")


def entry(path: str, mode: int, user: int) -> Entry:
    return Entry(path=path, mode=mode, user=user, group=user)


def test_directories_above_covers_are_movable_by_who_may_write_their_parent() -> None:
    entries = [
        entry("/", 0o755, 0),
        entry("/tmp", 0o1777, 0),
        entry("/tmp/mine", 0o755, 9),
        entry("/tmp/mine/in", 0o755, 0),
        entry("/home", 0o755, 0),
        entry("/home/mine", 0o500, 9),
        entry("/home/mine/in", 0o755, 9),
        entry("/open", 0o777, 0),
        entry("/open/x", 0o755, 0),
    ]
    steps = (step("/tmp/mine/in/h"), step("/home/mine/in/h", "lock"), step("/open/x/h", "expose"))
    assert movable(steps, entries, user=9) == ("/home/mine/in", "/open/x", "/tmp/mine", "/tmp/mine/in")
    assert movable(steps, entries, user=8) == ("/open/x",)


def test_in_what_is_the_agents_own_everything_is_movable() -> None:
    entries = [entry(path, 0o755, 0) for path in ("/", "/w", "/w/a", "/w/a/b")]
    steps = (step("/w", "own"), step("/w/a/b/h"))
    assert movable(steps, entries, user=8) == ("/w/a", "/w/a/b")


def test_pins_change_nothing_and_need_none_where_nothing_can_be_written() -> None:
    assert shown(step("/a", "lock"), step("/a/b", "pin"), step("/c", "share"), step("/c/d", "pin")) == [
        ("/a", "lock"),
        ("/c", "share"),
        ("/c/d", "pin"),
    ]
    assert shown(step("/a", "pin"), step("/a")) == [("/a", "hide")]
