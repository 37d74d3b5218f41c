"""What the quick entry script says to ``--help``. Imported only then: a launch pays nothing for it."""

from __future__ import annotations

import os

from runner_e2e.sandbox.arguments import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["asks_for_help", "help_text", "show_help"]

_COLUMN = 22

_USAGE = """\
Usage: agent_sandbox.py [OPTION]... -- COMMAND...

Run COMMAND with everything hidden that the policy and the options name; pass its status on.
124: a limit ended it; 125: the sandbox could not be set up or refuses the paths; 126: COMMAND cannot be executed;
127: there is no COMMAND; 128+n: it was ended by signal n.

Options (* may be given again):
"""


def asks_for_help(words: Sequence[str]) -> bool:
    """Whether ``--help`` is among the options of *words*: neither the value of another one nor of the command."""
    valued = {option.name for option in OPTIONS if option.value}
    rest = iter(words)
    for word in rest:
        if word in {"-h", "--help"}:
            return True
        if word == "--":
            return False
        if word in valued:
            next(rest, None)
    return False


def help_text() -> str:
    """The whole text, with one line an option."""
    lines = [
        f"  {option.name} {option.value}".ljust(_COLUMN) + f"{'*' if option.repeats else ' '} {option.help}"
        for option in OPTIONS
    ]
    last = "  -h, --help".ljust(_COLUMN) + "  Show this message and exit."
    return _USAGE + "\n".join([*lines, last]) + "\n"


def show_help() -> int:
    """Writes the text to standard output; the status to end with: 0, or 125 where nobody can read it."""
    rest = memoryview(help_text().encode())
    try:
        while rest:
            rest = rest[os.write(1, rest) :]
    except OSError:
        return 125
    return 0
