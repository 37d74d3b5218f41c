"""Which grammar reads a program."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from runner_e2e.lint.tree import BROKEN, errors, parse_javascript

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner_e2e.lint.tree import Node

__all__ = ["read"]


def read(text: str, path: str) -> tuple[Node, list[Node]]:
    """The program *text* of the file *path* (empty: no file) as a tree of JavaScript, and the pieces not understood.

    The ending tells the language; where it tells none, or its grammar does not understand the program, the one is taken
    that understands most. Raises :class:`~runner_e2e.lint.tree.TooLargeError`.
    """
    found: list[tuple[Node, list[Node]]] = []
    for parse in _BY_ENDING.get(posixpath.splitext(path)[1].lower(), (parse_javascript, _typescript, _tsx)):
        root = parse(text)
        found.append((root, errors(root)))
        if BROKEN not in root.tokens:
            return found[-1]
    return min(found, key=lambda one: len(one[1]))


def _typescript(text: str) -> Node:
    from runner_e2e.lint.languages.javascript.types import parse_as_javascript

    return parse_as_javascript(text, jsx=False)


def _tsx(text: str) -> Node:
    from runner_e2e.lint.languages.javascript.types import parse_as_javascript

    return parse_as_javascript(text, jsx=True)


_BY_ENDING: dict[str, tuple[Callable[[str], Node], ...]] = {
    **dict.fromkeys((".ts", ".mts", ".cts"), (_typescript, parse_javascript)),
    ".tsx": (_tsx, parse_javascript),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), (parse_javascript, _tsx)),
}
