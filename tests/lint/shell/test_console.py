"""Lines that a step prints, as the runner reads them."""

from __future__ import annotations

import pytest

from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.shell.console import read_console
from runner_e2e.lint.values import EMPTY, Value

ID = confidential("inputs.case")


def text(*pieces: str | Value) -> Value:
    value = EMPTY
    for piece in pieces:
        value += Value.literal(piece) if isinstance(piece, str) else piece
    return value


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (text("plain ", ID, "\n"), text("plain ", ID, "\n")),
        (text("::add-mask::", ID, "\n"), EMPTY),
        (text("  ::add-mask::", ID), EMPTY),
        (text("not at the start ::add-mask::", ID), text("not at the start ::add-mask::", ID)),
        (text("a\n::add-mask::", ID, "\nb ", ID), text("a\nb ", ID)),
        (text("::save-state name=a::", ID), EMPTY),
        (text("::set-output name=a::", ID), EMPTY),
        (text("::group::", ID), text("::group::", ID)),
        (text(ID, "::add-mask::x"), text(ID, "::add-mask::x")),
    ],
)
def test_what_stays_in_the_log(printed: Value, shown: Value) -> None:
    assert read_console(printed).shown == shown


@pytest.mark.parametrize(
    ("printed", "masks"),
    [
        (text("::add-mask::", ID), (ID,)),
        (text("::add-mask::", ID, "\n::add-mask::x\n"), (ID, text("x"))),
        (text("::add-mask::", ID) | text("nothing"), (ID | EMPTY,)),
        (text("::notice::", ID), ()),
    ],
)
def test_masks(printed: Value, masks: tuple[Value, ...]) -> None:
    assert read_console(printed).masks == masks


def test_the_old_way_to_set_an_output() -> None:
    assert read_console(text("::set-output name=cell::", ID)).outputs == (("cell", ID),)
    assert read_console(text("::set-output::", ID)).outputs == (("*", ID),)


@pytest.mark.parametrize(
    ("line", "annotates"),
    [("::error::", True), ("::warning file=a,line=1::", True), ("::notice title=a::", True), ("::debug::", False)],
)
def test_annotations(line: str, annotates: bool) -> None:
    assert read_console(text(line, ID)).annotates is annotates
