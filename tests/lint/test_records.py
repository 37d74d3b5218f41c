"""Cheap dataclasses: what the lint relies on of them."""

from __future__ import annotations

from dataclasses import field, fields, replace

import pytest

from runner_e2e.lint.records import cached_property, dataclass


@dataclass(frozen=True, slots=True)
class Place:
    line: int
    column: int = 1
    note: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    name: str


@dataclass(slots=True)
class Count:
    number: int = 0
    seen: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    also: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Longer(Named):
    longer: bool = False


@dataclass(frozen=True, slots=True)
class Letter:
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Letter) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


def test_values_are_equal_and_hashed_by_their_fields() -> None:
    assert Place(1, 2, "a") == Place(1, 2, "b")
    assert Place(1) != Place(1, 2)
    assert len({Place(1), Place(1, 1, "x"), Place(2)}) == 2
    assert replace(Place(1), column=3) == Place(1, 3)
    assert [one.name for one in fields(Place)] == ["line", "column", "note"]


def test_identity_where_it_is_wanted() -> None:
    tree = Tree(name="a")
    assert {tree: 1}[tree] == 1
    assert tree != Tree(name="a")


def test_what_may_change_has_no_hash() -> None:
    count = Count()
    count.number += 1
    assert count == Count(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


def test_a_class_keeps_its_own_equality() -> None:
    assert {Letter("a"), Letter("A")} == {Letter("a")}


def test_a_record_shows_its_fields_and_has_no_others() -> None:
    assert repr(Place(1, note="n")) == "Place(line=1, column=1, note='n')"
    assert Place.__doc__ == "Place"
    assert not hasattr(Place(1), "__dict__")


class Word:
    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = 0

    @cached_property
    def length(self) -> int:
        """How long it is."""
        self.asked += 1
        return len(self.text)


def test_a_property_is_found_out_once_for_each_object() -> None:
    long, short = Word("long"), Word("a")
    assert (long.length, long.length, short.length) == (4, 4, 1)
    assert (long.asked, short.asked) == (1, 1)
    assert Word.length.__doc__ == "How long it is."


def test_a_list_is_made_for_each_record() -> None:
    first, second = Count(), Count(2)
    first.seen.append(1)
    assert (first.seen, second.seen) == ([1], [])
    given = [3]
    assert Count(0, given).seen is given


def test_methods_that_are_written_later_are_those_of_dataclasses() -> None:
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(())
    assert hash(Place(1, 2)) == hash((1, 2))
    assert Place(1, 2).__eq__((1, 2)) is NotImplemented
    assert Named("a") != Longer("a")
    assert Longer("a", longer=True, also=("b",)) == Longer("a", True, also=("b",))
    assert Named.__init__.__qualname__ == "Named.__init__"


@pytest.mark.parametrize(
    ("given", "named", "what"),
    [
        ((), {}, r"Named\.__init__\(\) missing 1 required positional argument: 'name'"),
        (("a", ("b",)), {}, r"Named\.__init__\(\) takes 2 positional arguments"),
        (("a",), {"other": 1}, r"Named\.__init__\(\) got an unexpected keyword argument 'other'"),
    ],
)
def test_what_is_given_is_checked(given: tuple[object, ...], named: dict[str, object], what: str) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=what):
            Named(*given, **named)  # type: ignore[arg-type]


def test_what_would_not_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="__post_init__ would not be called"):

        @dataclass(kw_only=True)
        class Record:
            value: int

            def __post_init__(self) -> None: ...
