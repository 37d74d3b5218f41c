"""Takes the selected cell's id out of this process's environment, once, and leaves no copy there.

``os.environ.pop`` and ``unsetenv`` change what the process itself sees. Other processes read
``/proc/<pid>/environ``, which is the memory between ``env_start`` and ``env_end`` (fields 50 and 51 of
``/proc/<pid>/stat``, see proc_pid_stat(5)): the block that the kernel laid down at exec. So the id is also
overwritten there, in every variable that holds it, and the result is verified. What cannot be erased is an error.

What remains: copies in this process's own memory (the caller needs the value), and a run of zero bytes as long as
the erased entries. Standard library only: a launcher that holds the walls may use it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from runner_e2e.errors import RefusedError, UsageError

__all__ = ["MAXIMUM_LENGTH", "erase", "is_id", "take"]

MAXIMUM_LENGTH: Final = 512

_SEGMENT = r"[a-z0-9][a-z0-9_-]*"
_ID = re.compile(rf"{_SEGMENT}(?:\.{_SEGMENT}){{3,}}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# A shorter value (a mistake, for no id is this short) is looked for in its own variable only: "1" is everywhere.
_SHORTEST_BY_CONTENT: Final = 7

_SELF = Path("/proc/self")
_taken: set[str] = set()


def is_id(text: str) -> bool:
    """Whether *text* is ``suite.profile.environment.case`` of at most 512 characters."""
    return len(text) <= MAXIMUM_LENGTH and _ID.fullmatch(text) is not None


def take(variable: str) -> str:
    """Returns the id that *variable* holds and erases it from everything that shows this process's environment.

    Erased are Python's and C's environment and the initial block, in every variable whose value contains the id.
    Raises :class:`UsageError` when the variable is missing, empty, set twice, already taken, or no id (it is erased
    all the same), and when the id also stands on this process's command line; :class:`RefusedError` when the erasure
    cannot be done or verified. No message shows anything of the value.
    """
    if not _VARIABLE.fullmatch(variable):
        raise UsageError(
            "the name of the selected id's variable is not a name of a variable",
            fix="use letters, digits and _, without a digit at the beginning",
        )
    block = _InitialBlock.read()
    initial = block.values_of(variable)
    current = os.environb.get(os.fsencode(variable))
    # A copy that is left where Python no longer sees the variable is just as confidential.
    values = list(dict.fromkeys(initial if current is None else [current, *initial]))
    for value in values:
        _erase(variable, value, block)
    if values:
        _verify(variable, values)
    if current is None:
        raise _missing(variable)
    _taken.add(variable)
    if len(initial) > 1:
        raise UsageError(
            f"{variable} is set twice in the environment of this process",
            why="programs disagree about which of the two counts, so the cell would be uncertain",
            fix="set it once, in the step that runs the cell",
        )
    return _validated(variable, current)


def erase(variable: str) -> None:
    """Erases another confidential variable in the same way; does nothing where it is not set.

    For what a process has read already: a key or a credential that only a child is to have.
    Raises :class:`RefusedError` when it cannot be done or verified.
    """
    block = _InitialBlock.read()
    current = os.environb.get(os.fsencode(variable))
    values = {value for value in [current, *block.values_of(variable)] if value}
    for value in values:
        _erase(variable, value, block)
    if values:
        _verify(variable, sorted(values), what="a confidential variable")


def _missing(variable: str) -> UsageError:
    if variable in _taken:
        return UsageError(
            f"the selected id was already taken from {variable}",
            why="it is handed out once in the life of a process, then erased",
            fix="keep the value of the first call",
        )
    return UsageError(
        f"{variable} is not set",
        why="the cell to run is handed over in this variable, never on the command line",
        fix="set it, in a workflow in the `env:` of the step (`runner-e2e run --local` needs none)",
    )


def _validated(variable: str, value: bytes) -> str:
    if not value.strip():
        raise UsageError(f"{variable} is empty", fix="give it the id of one cell: suite.profile.environment.case")
    if len(value) > MAXIMUM_LENGTH:
        raise UsageError(
            f"the value of {variable} has {len(value)} bytes",
            why=f"an id has at most {MAXIMUM_LENGTH}",
            fix="give it the id of one cell: suite.profile.environment.case",
        )
    text = value.decode("ascii", "replace")
    if not is_id(text):
        raise UsageError(
            f"the value of {variable} is not the id of a cell (it is not shown here)",
            why=_reason(text),
            fix="an id is suite.profile.environment.case, as runner-e2e cells list shows them",
        )
    return text


def _reason(text: str) -> str:
    """Why *text* is no id, in words that show nothing of it but the kind of mistake."""
    if any(not character.isprintable() for character in text):
        return "it holds a line break or another control character"
    if text != text.strip():
        return "it begins or ends with a blank"
    if re.search(r"[^a-z0-9_.-]", text):
        return "only a-z, 0-9, '-', '_' and '.' may stand in an id"
    if text.count(".") < 3:
        return f"it has {text.count('.') + 1} of the 4 parts of an id"
    return "each part begins with a letter or a digit, and none is empty"


class _InitialBlock:
    """The environment that the kernel laid down at exec, as other processes read it."""

    def __init__(self, *, start: int, content: bytes) -> None:
        self.start = start
        self.entries = content.split(b"\0")

    @classmethod
    def read(cls) -> _InitialBlock:
        try:
            # The name of the program stands in parentheses and may hold anything; fields count from 3 behind it.
            fields = (_SELF / "stat").read_text(errors="replace").rpartition(")")[2].split()
            start = int(fields[50 - 3])
            return cls(start=start, content=(_SELF / "environ").read_bytes())
        except (OSError, IndexError, ValueError) as error:
            raise _not_erased(f"/proc/self cannot be read ({error})") from error

    def values_of(self, variable: str) -> list[bytes]:
        head = os.fsencode(variable) + b"="
        return [entry[len(head) :] for entry in self.entries if entry.startswith(head)]

    def overwrite(self, affected: tuple[bytes, ...], needle: bytes) -> None:
        """Zeroes every entry that sets one of the *affected* names or contains *needle*."""
        heads = tuple(name + b"=" for name in affected)
        position = self.start
        try:
            with (_SELF / "mem").open("r+b", buffering=0) as memory:
                for index, entry in enumerate(self.entries):
                    if entry and (entry.startswith(heads) or (needle and needle in entry)):
                        memory.seek(position)
                        memory.write(bytes(len(entry)))
                        self.entries[index] = bytes(len(entry))
                    position += len(entry) + 1
        except OSError as error:
            raise _not_erased(f"/proc/self/mem cannot be written ({error.strerror})") from error


def _erase(variable: str, value: bytes, block: _InitialBlock) -> None:
    by_content = len(value) >= _SHORTEST_BY_CONTENT
    own = os.fsencode(variable)
    affected = [
        name for name, text in os.environb.items() if name == own or (by_content and value in name + b"=" + text)
    ]
    entries = set(block.entries)
    if any(os.environb.get(name) and name + b"=" + os.environb[name] not in entries for name in affected):
        # Set after the start: the C library holds such a string on its heap and never frees it.
        from runner_e2e.kernel import overwrite_c_environment

        overwrite_c_environment(value)
    for name in affected:
        del os.environb[name]  # calls unsetenv
    block.overwrite(tuple({own, *affected}), value if by_content else b"")


def _verify(variable: str, values: list[bytes], *, what: str = "the selected id") -> None:
    block = _InitialBlock.read()
    own = os.fsencode(variable)
    shown = b"\0".join(block.entries)
    inner = [name + b"=" + text for name, text in os.environb.items()]
    for value in values:
        if len(value) >= _SHORTEST_BY_CONTENT and (value in shown or any(value in entry for entry in inner)):
            raise _not_erased("it is still there after the overwriting", what)
        if len(value) >= _SHORTEST_BY_CONTENT and value in (_SELF / "cmdline").read_bytes():
            raise UsageError(
                f"{what} stands on the command line of this process",
                why="every process on the machine can read it there, the agent too",
                fix=f"hand it over in {variable} only",
            )
    if block.values_of(variable) or own in os.environb:
        raise _not_erased("the variable is still there after the overwriting", what)


def _not_erased(why: str, what: str = "the selected id") -> RefusedError:
    return RefusedError(
        f"{what} cannot be erased from this process's environment, so nothing was started",
        why=why,
        fix="run on Linux with /proc mounted, readable and writable for the process itself",
    )
