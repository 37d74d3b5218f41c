"""``options`` of the container of a job: variables that they give it, which scripts find there.

The runner puts them on the command line of ``docker create``. A name without a value is that of a variable of the
runner itself, where the variables of a workflow are not.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from runner_e2e.lint.values import Hole, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner_e2e.lint.values import Text

__all__ = ["option_variables"]

_FIRST_HOLE = 0xE000
_SET = re.compile(r"(?:--env=|-e=?)?([A-Za-z_]\w*)=(.*)", re.DOTALL)


def option_variables(options: Value) -> dict[str, Value]:
    """The variables that ``-e NAME=value`` and ``--env NAME=value`` set, as *options* may say."""
    found: dict[str, Value] = {}
    for text in options.texts:
        for name, value in _of_text(text):
            found[name] = found[name] | value if name in found else value
    return found


def _of_text(text: Text) -> Iterator[tuple[str, Value]]:
    holes = [piece for piece in text if isinstance(piece, Hole)]
    marks = iter(range(_FIRST_HOLE, _FIRST_HOLE + len(holes)))
    try:
        words = shlex.split("".join(chr(next(marks)) if isinstance(piece, Hole) else piece for piece in text))
    except ValueError:  # a quote that does not end: docker refuses it
        return
    for before, word in zip(["", *words], words, strict=False):
        match = _SET.fullmatch(word)
        if match is not None and (before in ("-e", "--env") or word.startswith(("-e", "--env="))):
            pieces = (piece for piece in re.split("([\ue000-\uf8ff])", match[2]) if piece)
            value = tuple(holes[ord(one) - _FIRST_HOLE] if "\ue000" <= one <= "\uf8ff" else one for one in pieces)
            yield match[1], Value((value,))
