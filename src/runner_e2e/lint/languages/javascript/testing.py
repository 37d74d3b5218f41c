"""What test runners give to the files that they run: ``test``, ``describe``, ``expect`` and the like.

They start no process. Functions that they are given are called: once, or once for all rows of a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner_e2e.lint.languages.javascript.values import ANY, Js, Thing, either, of_thing, taints_of
from runner_e2e.lint.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner_e2e.lint.languages.javascript.machine import Call

__all__ = ["GLOBALS", "MODULES", "given"]

_BLOCKS = (
    *(
        "test",
        "it",
        "describe",
        "suite",
        "specify",
        "context",
        "bench",
        "fit",
        "xit",
        "fdescribe",
        "xdescribe",
        "xtest",
    ),
    *("beforeEach", "afterEach", "beforeAll", "afterAll", "before", "after", "setup", "teardown"),
)
_TITLED = frozenset(_BLOCKS) - {
    *("beforeEach", "afterEach", "beforeAll", "afterAll", "before", "after", "setup", "teardown")
}
_OTHERS = ("expect", "vi", "vitest", "jest", "assert", "chai", "should", "mock", "expectTypeOf", "sinon")
_VARIANTS = ("only", "skip", "todo", "concurrent", "sequential", "failing", "serial", "step", "fails")

GLOBALS = frozenset({*_BLOCKS, *_OTHERS})
"""Names that are there without an import, as most runners can have it."""


def given(name: str) -> Js:
    """What the runner gives under *name*."""
    return of_thing(_block(name) if name in _BLOCKS else Thing("harmless", data=name))


def _block(name: str) -> Thing:
    """``test(name, function)``, with ``test.only`` and ``test.each``."""
    titled = name in _TITLED
    thing = Thing("harmless", native=lambda call: _run(call, ANY, titled=titled), data=name)
    for variant in _VARIANTS:
        again = Thing("harmless", native=lambda call: _run(call, ANY, titled=titled), data=f"{name}.{variant}")
        again.put("each", _each())
        thing.put(variant, of_thing(again))
    thing.put("each", _each())
    thing.put("for", _each())
    for part in ("test", "describe", "it"):  # `node:test` and the test of a test
        if part != name:
            thing.put(part, of_thing(_test(f"{name}.{part}")))
    return thing


def _test(name: str) -> Thing:
    titled = name.rpartition(".")[2] in {*_TITLED, "step"}
    return Thing("harmless", native=lambda call: _run(call, ANY, titled=titled), data=name)


def _print_title(call: Call, more: Iterable[Js] = ()) -> None:
    """The name of a test. *more*: what is put into it where it says so."""
    title, place = call.text(0), call.passed(0)
    if any("%" in text or "$" in text for text in title.constants or ()):
        title = title + Value.of(taint for one in more for taint in taints_of(one))
    call.machine.process.print_title(title, place.start, place.end)


def _run(call: Call, value: Js, *, titled: bool) -> Js:
    """Calls the functions that a block is given, with *value*, or with the test itself."""
    machine = call.machine
    if titled:
        _print_title(call)
    passed = of_thing(_context()) if value == ANY else value
    for one in call.arguments:
        for thing in one.value.things:
            if thing.is_function:
                machine.perhaps(lambda thing=thing: machine.call(thing, call.with_arguments(passed)))  # type: ignore[misc]
    return ANY


def _context() -> Thing:
    thing = Thing("harmless", data="t")
    for name in ("test", "describe", "step", "before", "after", "beforeEach", "afterEach"):
        thing.put(name, of_thing(_test(f"t.{name}")))
    return thing


def _each() -> Js:
    """``each(table)`` gives a block whose function gets the cells of a row."""

    def table(outer: Call) -> Js:
        rows, others = outer.machine.iterate(outer.arg(0))
        cells = [*rows, *([others] if others is not None else [])]

        def block(call: Call) -> Js:
            machine = call.machine
            _print_title(call, cells)
            for one in call.arguments:
                for thing in one.value.things:
                    if thing.is_function:
                        for row in cells:
                            machine.perhaps(lambda thing=thing, row=row: _with_row(call, thing, row))  # type: ignore[misc]
            return ANY

        return of_thing(Thing("harmless", native=block, data="each"))

    return of_thing(Thing("harmless", native=table, data="each"))


def _with_row(call: Call, thing: Thing, row: Js) -> Js:
    """Calls the function of a block with one row: a list is several arguments."""
    listed = row.thing
    if listed is None or listed.kind != "array":
        return call.machine.call(thing, call.with_arguments(row))
    elements, others = call.machine.iterate(row)
    if others is not None:
        elements = [either([one, others]) for one in elements] or [others]
    return call.machine.call(thing, call.with_arguments(*elements))


def _module() -> Js:
    thing = _block("test")
    for name in sorted(GLOBALS):
        thing.put(name, given(name))
    return of_thing(thing)


MODULES: dict[str, Callable[[], Js]] = dict.fromkeys(
    ("vitest", "@jest/globals", "test", "mocha", "@playwright/test", "ava", "uvu", "bun:test", "tap"), _module
)
"""Name of a module (``node:`` left out) -> what it exports."""
