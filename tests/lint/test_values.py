"""Abstract texts: concatenation, alternatives, labels, bounds, and scripts made of them."""

from __future__ import annotations

from runner_e2e.lint.values import (
    EMPTY,
    MAX_ALTERNATIVES,
    MAX_LITERAL,
    MAX_PIECES,
    UNKNOWN,
    Confidence,
    Hole,
    Label,
    Origin,
    Script,
    Taint,
    Value,
    join,
)

ID = Label(kind="confidential", name="inputs.id")
TOKEN = Label(kind="secret", name="secrets.TOKEN")


def of(*labels: Label, confidence: Confidence = Confidence.HIGH) -> Value:
    return Value.of(Taint(label, confidence) for label in labels)


def test_known_neighbours_are_merged_and_holes_stay() -> None:
    value = Value.literal("a") + Value.literal("b") + of(ID) + Value.literal("c")
    assert value.texts == (("ab", Hole(frozenset([Taint(ID)])), "c"),)
    assert value.constant is None
    assert {taint.label for taint in value.taints} == {ID}
    assert str(value) == "ab{inputs.id}c"


def test_the_empty_text_is_neutral() -> None:
    assert EMPTY + Value.literal("a") == Value.literal("a") == Value.literal("a") + EMPTY
    assert (EMPTY + EMPTY).constant == ""


def test_alternatives_are_multiplied_and_bounded() -> None:
    either = Value.literal("a") | Value.literal("b")
    assert (either + either).constants == ("aa", "ab", "ba", "bb")
    many = join(Value.literal(str(number)) for number in range(MAX_ALTERNATIVES + 1))
    assert many == UNKNOWN
    widened = join([*(Value.literal(str(number)) for number in range(MAX_ALTERNATIVES)), of(ID)])
    assert widened == of(ID)


def test_a_text_that_grows_is_widened() -> None:
    value = of(ID)
    for _ in range(20):
        value = value + value + Value.literal("x")
        assert len(value.texts[0]) <= MAX_PIECES
    assert value.taints == of(ID).taints
    assert (Value.literal("x" * MAX_LITERAL) + Value.literal("y")) == UNKNOWN


def test_equality_ignores_the_way_and_the_surest_label_stays() -> None:
    origin = Origin(path="f", text="abc")
    assert of(ID).through(origin, 0, 1, "here") == of(ID)
    both = of(ID, confidence=Confidence.LOW) + of(ID)
    assert {taint.confidence for taint in both.taints} == {Confidence.HIGH}
    assert {taint.confidence for taint in of(ID, TOKEN).weakened(Confidence.MEDIUM).taints} == {Confidence.MEDIUM}


def test_the_way_is_told_from_the_source_on_and_does_not_grow_in_place() -> None:
    origin = Origin(path="f", text="abc")
    value = of(ID).through(origin, 0, 1, "first").through(origin, 1, 2, "second").through(origin, 1, 2, "second")
    (taint,) = value.taints
    assert taint.trail is not None
    assert [step.note for step in taint.trail.walk()] == ["first", "second"]


def test_digests_and_counts_carry_nothing() -> None:
    assert of(ID).without_taint() == UNKNOWN
    assert Value.literal("a").without_taint() == Value.literal("a")
    assert (Value.literal("a") + of(ID)).opaque() == of(ID)


def test_spans_count_lines_and_characters() -> None:
    origin = Origin(path="f", text="é😀b\nxy\n")
    span = origin.span(1, 6)
    assert (span.line, span.column, span.end_line, span.end_column) == (1, 2, 2, 3)
    assert str(span) == "f:1:2"
    point = origin.span(4, 4)
    assert (point.line, point.column, point.end_column) == (2, 1, 1)


def test_a_script_of_a_text_stands_where_the_text_does() -> None:
    origin = Origin(path="f", text="x\nbash -c '$A'\n")
    (text,) = (Value.literal("tool ") + of(ID)).texts
    script = Script.of_text(text, origin, 10, 14)
    assert script.text.startswith("tool ")
    (hole,) = script.interpolations
    assert script.text[hole.start : hole.end].isidentifier()
    assert str(script.origin.span(0, 4)) == "f:2:9"
