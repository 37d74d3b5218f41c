"""Lines that a step prints, as the runner reads them."""

from __future__ import annotations

import pytest
from tests.lint.shell.test_analysis import follow

from runner_e2e.lint.contexts import confidential
from runner_e2e.lint.shell.console import (
    LINE_BEGUN,
    Console,
    Part,
    begins_line,
    changes_reading,
    has_commands,
    read_console,
)
from runner_e2e.lint.shell.state import READING, Reading
from runner_e2e.lint.values import EMPTY, UNKNOWN, Value, join

ID = confidential("inputs.case")


def text(*pieces: str | Value) -> Value:
    value = EMPTY
    for piece in pieces:
        value += Value.literal(piece) if isinstance(piece, str) else piece
    return value


def shown_of(console: Console) -> Value:
    """All that stays in the log, without the ends of its lines."""
    first, *rest = [part.shown for part in console.parts if part.shown != EMPTY] or [EMPTY]
    return text(first, *(piece for line in rest for piece in ("\n", line)))


def stopped_by(*pieces: str | Value) -> Reading:
    return Reading(stopped=text(*pieces))


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
    assert shown_of(read_console(printed)) == shown


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


@pytest.mark.parametrize(
    ("printed", "changes"),
    [
        (text("::stop-commands::x"), True),
        (text("a\n::Stop-Commands::", ID), True),
        (text("::echo::on"), True),
        (text("::add-mask::", ID), False),
        (text("stop"), False),
    ],
)
def test_what_changes_how_lines_are_read(printed: Value, changes: bool) -> None:
    assert changes_reading(printed) is changes


def test_a_quick_look() -> None:
    assert has_commands(text("a ::b"))
    assert not has_commands(text("a: b", ID))


@pytest.mark.parametrize(
    ("printed", "after"),
    [
        (text("::stop-commands::halt"), stopped_by("halt")),
        (text("::STOP-commands::halt\n"), stopped_by("halt")),
        (text("::stop-commands::", UNKNOWN, "\n"), stopped_by(UNKNOWN)),
        (text("x ::stop-commands::halt"), READING),
        (text("::stop-commands::halt\n::halt::\n"), READING),
        (text("::stop-commands::halt\n::HALT::and more\n"), READING),
        (text("::stop-commands::halt\n::stop-commands::other\n::other::\n"), stopped_by("halt")),
        (text("::stop-commands::", UNKNOWN, "\n::", UNKNOWN, "::\n"), READING),
        # What the runner does not take.
        (text("::stop-commands::"), READING),
        (text("::stop-commands::add-mask"), READING),
        (text("::stop-commands::Set-Env"), READING),
        # One of two ways.
        (text("::stop-commands::halt") | text("go on"), Reading(stopped=join([text("halt"), EMPTY]))),
        # Perhaps it is the token.
        (text("::stop-commands::halt\n::", UNKNOWN, "::\n"), Reading(stopped=join([text("halt"), EMPTY]))),
    ],
)
def test_stopped_commands(printed: Value, after: Reading) -> None:
    assert read_console(printed).reading == after


def test_commands_are_text_while_they_are_stopped() -> None:
    commands = text("::add-mask::", ID, "\n::set-output name=a::", ID, "\n::error::", ID)
    console = read_console(commands, stopped_by("halt"))
    assert shown_of(console) == commands
    assert (console.masks, console.outputs, console.annotates) == ((), (), False)


def test_commands_work_again_after_the_token() -> None:
    console = read_console(text("::halt::\n::add-mask::", ID, "\n"), stopped_by("halt"))
    assert console.masks == (ID,)
    assert shown_of(console) == text("::halt::")


@pytest.mark.parametrize("token", [text("halt") | EMPTY, text("halt") | text("other")])
def test_a_mask_that_is_perhaps_stopped_is_possible(token: Value) -> None:
    console = read_console(text("::halt::\n::add-mask::", ID, "\n"), Reading(stopped=token))
    assert console.masks == (join([ID, EMPTY]),)


def test_text_after_a_mask_is_told_from_text_before_it() -> None:
    console = read_console(text("a ", ID, "\n::add-mask::", ID, "\nb ", ID, "\n"))
    assert console.parts == (Part(shown=text("a ", ID)), Part(shown=text("b ", ID), masks=(ID,)))


@pytest.mark.parametrize("line", ["::set-env name=A::", "::add-path::/opt/"])
def test_refused_commands_are_shown(line: str) -> None:
    console = read_console(text(line, ID))
    assert shown_of(console) == text(line, ID)
    assert console.annotates
    assert (console.environment, console.paths) == ((), ())


def test_commands_that_are_allowed_in_spite_of_that() -> None:
    console = read_console(text("::set-env name=A::", ID, "\n::add-path::/opt/", ID), unsecure=True)
    assert shown_of(console) == EMPTY
    assert console.environment == (("A", ID),)
    assert console.paths == (text("/opt/", ID),)


def test_echoed_commands_are_shown_but_for_masks() -> None:
    console = read_console(text("::echo::on\n::add-mask::", ID, "\n::set-output name=a::", ID, "\n::echo::off\n"))
    assert shown_of(console) == text("::echo::on\n::set-output name=a::", ID)
    assert console.reading == READING
    assert read_console(text("::echo::on")).reading.echoed


# --- Lines that were begun.


@pytest.mark.parametrize(
    ("printed", "begun"),
    [
        (text("x"), True),
        (text("x\n"), False),
        (text("x\ny"), True),
        (text("x\r"), False),
        (text("\n"), False),
        (text("Case ", ID), True),
        (text("x\n", ID), False),
        (text(ID, " of"), True),
        (ID, False),
        (text("::add-mask::", ID), False),
        (text("x\n::add-mask::", ID), False),
        (LINE_BEGUN + text("::add-mask::", ID), True),
        (text("x") | text("y"), True),
        (text("x") | text("y\n"), False),
    ],
)
def test_whether_a_line_is_begun(printed: Value, begun: bool) -> None:
    assert begins_line(printed) is begun


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ('printf "Mask: "; echo "::add-mask::$S"', True),
        ('echo -n .; echo; echo "::add-mask::$S"', False),
        ('printf "Mask\\n"; echo "::add-mask::$S"', False),
        ('printf "Mask: " >&2; echo "::add-mask::$S"', False),
        ('printf "Mask: " >&2; echo "::add-mask::$S" >&2', True),
        ('printf "Mask: " >&2; echo "::add-mask::$S" 2>&1 >&2', False),
        ('printf "Mask: " > f; echo "::add-mask::$S"', False),
        ('printf "Mask: "; make; echo "::add-mask::$S"', False),
        ('if [ -n "$X" ]; then printf .; fi; echo "::add-mask::$S"', False),
        ('(printf .); echo "::add-mask::$S"', True),
        ('printf "%s" "::add-mask::$S"; echo', False),
        ("printf .; python3 -c \"import os; print('::add-mask::' + os.environ['S'])\"", True),
    ],
)
def test_a_command_within_a_line_is_none(script: str, shown: bool) -> None:
    assert bool(follow(script).prints) is shown
