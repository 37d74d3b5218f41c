"""``argparse``: the arguments of the program by the names of its options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runner_e2e.lint.languages.python.evaluator import constant
from runner_e2e.lint.languages.python.objects import (
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    Dictionary,
    Function,
    Instance,
    Items,
    Named,
    Object,
    Reference,
    Text,
    join_all,
)
from runner_e2e.lint.values import Confidence, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.lint.languages.python.evaluator import Call, Evaluator

__all__ = ["FUNCTIONS", "METHODS"]


def _parser(interpreter: Evaluator, _call: Call) -> Object:
    options = interpreter.new(Items())
    defaults = interpreter.new(Dictionary())
    return interpreter.new(Instance("parser", ((" options", options), (" defaults", defaults))))


def _options(interpreter: Evaluator, receiver: Object) -> Object:
    content = interpreter.content(receiver)
    found = content.get(" options") if isinstance(content, Instance) else None
    return found if found is not None else interpreter.new(Items())


def _add_argument(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    names = [name for one in call.arguments if (name := interpreter.value(one).constant) is not None]
    if not names:
        return NOTHING
    long = next((name for name in names if name.startswith("--")), names[0])
    destination = call.keywords.get("dest")
    known = interpreter.value(destination).constant if destination is not None else None
    attributes: list[tuple[str, Object]] = [
        ("names", Items(tuple(constant(name) for name in names), None, "tuple")),
        ("dest", constant(known or re.sub(r"\W", "_", long.lstrip("-")))),
    ]
    attributes += [
        (name, call.keywords[name]) for name in ("default", "action", "nargs", "type") if name in call.keywords
    ]
    option = interpreter.new(Instance("option", tuple(attributes)))
    target = _options(interpreter, receiver)
    content = interpreter.content(target)
    if isinstance(content, Items):
        interpreter.put(target, interpreter.concatenated(content, Items((option,))))
    return option


def _group(_interpreter: Evaluator, receiver: Object, _call: Call) -> Object:
    """A group or a sub-parser: its options are those of the parser."""
    return receiver


def _set_defaults(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    content = interpreter.content(receiver)
    target = content.get(" defaults") if isinstance(content, Instance) else None
    cell = interpreter.content(target) if target is not None else None
    if target is not None and isinstance(cell, Dictionary):
        for name, value in call.keywords.items():
            before = cell.get(name)
            joined = value if before is None else join_all((before, value))
            cell = interpreter.with_entry(cell, constant(name), joined)
        interpreter.put(target, cell)
    return NONE


class _Vector:
    """An argument vector, taken apart as the options say."""

    def __init__(self, interpreter: Evaluator, items: Items) -> None:
        self.interpreter = interpreter
        self.items = list(items.items)
        self.rest = items.rest
        self.found: dict[str, list[Object]] = {}
        self.positional: list[Object] = []

    def read(self, options: dict[str, Instance]) -> None:
        """Gives each item to an option, or to the positional ones."""
        items = self.items
        while items:
            item = items.pop(0)
            value = self.interpreter.value(item)
            first = value.texts[0][0] if value.texts[0] else ""
            name, equals, _ = first.partition("=") if isinstance(first, str) else ("", "", "")
            option = options.get(name)
            if option is None:
                if not (isinstance(first, str) and first.startswith("-") and len(first) > 1):
                    self.positional.append(item)
                continue
            destination = self.name(option)
            if equals:
                cut = Value((((first[len(name) + 1 :]), *value.texts[0][1:]),)) if isinstance(first, str) else value
                self.found.setdefault(destination, []).append(
                    Text(Value.any_of([tuple(p for p in cut.texts[0] if p != "")]))
                )
            elif self.takes(option):
                many = "nargs" in dict(option.attributes)
                while items and (many or destination not in self.found) and not self._is_option(items[0], options):
                    self.found.setdefault(destination, []).append(items.pop(0))
                    if not many:
                        break

    def _is_option(self, item: Object, options: dict[str, Instance]) -> bool:
        known = self.interpreter.value(item).constant
        return known is not None and known.split("=")[0] in options

    def name(self, option: Instance) -> str:
        """The attribute that an option sets."""
        return self.interpreter.value(option.get("dest") or NOTHING).constant or ""

    def takes(self, option: Instance) -> bool:
        """Whether an option has an argument."""
        action = self.interpreter.value(option.get("action") or NONE).constant or ""
        return action in ("store", "append", "extend", "None") or not action


def _parse(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    given = call.get(0, "args")
    if given is None or given == NONE:
        argv = interpreter.attribute(Named("sys"), "argv", call.node)
        whole = interpreter.items(argv)
        items = Items(whole.items[1:], whole.rest)
    else:
        items = interpreter.items(given)
    options = [
        cell
        for one in interpreter.items(_options(interpreter, receiver)).items
        if isinstance(cell := interpreter.content(one), Instance)
    ]
    vector = _Vector(interpreter, items)
    by_name: dict[str, Instance] = {}
    positional: list[Instance] = []
    for option in options:
        names = [
            interpreter.value(one).constant or "" for one in interpreter.items(option.get("names") or Items()).items
        ]
        if names and names[0].startswith("-"):
            by_name.update(dict.fromkeys(names, option))
        else:
            positional.append(option)
    vector.read(by_name)
    attributes: dict[str, Object] = {}
    content = interpreter.content(receiver)
    defaults = interpreter.content(content.get(" defaults") or NONE) if isinstance(content, Instance) else None
    if isinstance(defaults, Dictionary):
        attributes.update((str(name), value) for name, value in defaults.entries)
    for option in by_name.values():
        attributes[vector.name(option)] = _parsed(
            interpreter, option, vector.found.get(vector.name(option)), vector.rest
        )
    attributes.update(_positional(interpreter, positional, vector))
    return interpreter.new(Instance("namespace", tuple(attributes.items())))


def _positional(interpreter: Evaluator, options: list[Instance], vector: _Vector) -> dict[str, Object]:
    found: dict[str, Object] = {}
    remaining = list(vector.positional)
    for index, option in enumerate(options):
        behind = len(options) - index - 1
        count = max(len(remaining) - behind, 0) if "nargs" in dict(option.attributes) else min(1, len(remaining))
        taken, remaining = remaining[:count], remaining[count:]
        found[vector.name(option)] = _parsed(interpreter, option, taken or None, vector.rest)
    return found


def _parsed(interpreter: Evaluator, option: Instance, given: list[Object] | None, rest: Object | None) -> Object:
    """What an option becomes: what it was given, else its default."""
    action = interpreter.value(option.get("action") or NONE).constant
    default = option.get("default")
    if action in ("store_true", "store_false"):
        return join_all((TRUE, FALSE))
    values = list(given or [])
    if rest is not None:
        values.append(rest)
    converted = [_converted(interpreter, option.get("type"), one) for one in values]
    if "nargs" in dict(option.attributes) and option.get("nargs") != constant("?"):
        made: Object = interpreter.new(Items(tuple(converted)))
    elif action in ("append", "extend"):
        made = interpreter.new(Items(tuple(converted)))
    else:
        made = join_all(converted) if converted else NONE
    if given is None:
        return join_all([default if default is not None else NONE, *([made] if rest is not None else [])])
    return made


def _converted(interpreter: Evaluator, kind: Object | None, one: Object) -> Object:
    if kind in (Named("builtins.int"), Named("builtins.float")):
        return interpreter.opaque((one,), Confidence.LOW)
    if kind is not None and isinstance(kind, Named) and kind.name.startswith("pathlib."):
        return Text(interpreter.value(one), "path")
    if isinstance(kind, Function | Reference):
        return interpreter.opaque((one,))
    return one


def _parse_known(interpreter: Evaluator, receiver: Object, call: Call) -> Object:
    found = _parse(interpreter, receiver, call)
    unknown = interpreter.new(Items((), interpreter.opaque(call.everything(), Confidence.LOW)))
    return Items((found, unknown), None, "tuple")


FUNCTIONS: Mapping[str, Callable[[Evaluator, Call], Object]] = {"argparse.ArgumentParser": _parser}
METHODS: Mapping[str, Callable[[Evaluator, Object, Call], Object]] = {
    "parser.add_argument": _add_argument,
    "parser.add_argument_group": _group,
    "parser.add_mutually_exclusive_group": _group,
    "parser.add_subparsers": _group,
    "parser.add_parser": _group,
    "parser.set_defaults": _set_defaults,
    "parser.parse_args": _parse,
    "parser.parse_intermixed_args": _parse,
    "parser.parse_known_args": _parse_known,
}
