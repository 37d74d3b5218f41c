"""The tree of processes, whatever order the trace writes things in."""

from __future__ import annotations

from runner_e2e.sandbox.process_tree import ProcessTree


def test_a_child_that_acts_before_its_parents_call_is_written() -> None:
    tree = ProcessTree()
    root = tree.at(1)
    child = tree.at(2)
    assert child.parent is None
    tree.add(1, 2, thread=False)
    assert child.parent == root.index


def test_a_child_that_ended_before_its_parents_call_is_written() -> None:
    tree = ProcessTree()
    root, child = tree.at(1), tree.at(2)
    tree.end(2, time=1.0, status=0, signal="")
    tree.add(1, 2, thread=False)
    assert child.parent == root.index
    assert 2 not in tree.live


def test_a_number_that_is_used_again_is_another_process() -> None:
    tree = ProcessTree()
    tree.at(1)
    tree.add(1, 2, thread=False)
    first = tree.at(2)
    tree.end(2, time=1.0, status=3, signal="")
    tree.add(1, 2, thread=False)
    second = tree.at(2)
    assert first is not second
    assert (first.status, second.status, second.parent) == (3, None, 0)


def test_threads_belong_to_their_process() -> None:
    tree = ProcessTree()
    root = tree.at(1)
    tree.add(1, 5, thread=True)
    assert tree.at(5) is root
    tree.add(5, 6, thread=False)
    assert tree.at(6).parent == root.index
    assert tree.end(5, time=1.0, status=0, signal="") is None
    assert root.ended is None


def test_an_exec_ends_the_other_threads() -> None:
    tree = ProcessTree()
    root = tree.at(1)
    tree.add(1, 5, thread=True)
    assert tree.exec(1) is root
    assert tree.at(5) is not root
