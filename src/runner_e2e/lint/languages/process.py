"""A process that runs a program of another language than shell: what it is given, and what it may do.

An analyser of a language walks its program and calls these methods where the program would read its environment or
a file, print, or start another process. What follows from that (the leak, the output, what the other process does in
turn) is the same for every language, and none of the analyser's business. Offsets are character offsets in the text
of :attr:`Process.source`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from runner_e2e.lint.source import Source
    from runner_e2e.lint.values import Taint

__all__ = ["Argument", "Launch", "Process", "Saved", "Tests"]


class Saved:
    """What a process knew at one point: files, environment, streams. Only :class:`Process` looks inside."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a program that is started, or (``many``) a number of them that is not known.

    It stands at ``[start, end)`` of the program text; an empty stretch means the place of the whole call.
    """

    value: Value
    start: int = 0
    end: int = 0
    many: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How a program is started: the call stands at ``[start, end)``.

    *environment*: what the program gets (None: that of the process). *standard_input*: text that it can read (None:
    the standard input of the process). *output*: where what it prints goes: to the same place as the process's own,
    into the result of the call, or nowhere. *directory*: where it runs (None: where the process runs). *program*: the
    file that is executed, when that is not the first argument.
    """

    start: int
    end: int
    environment: Mapping[str, Value] | None = None
    standard_input: Value | None = None
    output: Literal["inherit", "capture", "discard"] = "inherit"
    directory: Value | None = None
    program: Value | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tests:
    """Tests that a runner of this *style* calls: ``pytest``, ``unittest``, ``javascript``.

    *names*: the class and the function that are asked for, and, behind ``*``, a part of the name; none: all.
    *titled*: the log has the name of each test, and not only of those that fail.
    """

    style: str
    names: tuple[str, ...] = ()
    titled: bool = False


class Process(ABC):
    """One process. *source* is the text being run; *arguments* follow the name of the program."""

    source: Source
    name: Value = EMPTY
    arguments: tuple[Argument, ...] = ()
    flags: frozenset[str] = frozenset()
    """Options of one letter that the interpreter was given: ``n`` for ``perl -n``."""
    path: str = ""
    """Absolute path of the program file, where it has one: modules are looked for beside it."""
    tests: Tests | None = None
    """Which tests of the program are called, when a test runner runs it."""

    # --- budget

    @abstractmethod
    def tick(self, cost: int = 1) -> None:
        """Counts *cost* steps; the exception that ends the analysis of the file is not to be caught."""

    @abstractmethod
    def identity(self, what: str) -> str:
        """The symbol of a text, called *what*, that is made now: no other one has it."""

    @property
    @abstractmethod
    def in_reach(self) -> bool:
        """Whether the process can get at anything labelled: only then what it does matters."""

    # --- texts

    @abstractmethod
    def step(self, value: Value, start: int, end: int, note: str) -> Value:
        """*value* after one more place of its way."""

    @abstractmethod
    def within(self, source: Source) -> AbstractContextManager[None]:
        """While it lasts, offsets are those of *source*: a module that the program imports."""

    @abstractmethod
    def source_of(self, text: Value, start: int, end: int) -> tuple[Source, ...]:
        """The programs that *text*, given at ``[start, end)``, may be: for ``eval`` and the like."""

    # --- environment and files

    @abstractmethod
    def environment(self) -> dict[str, Value]:
        """The variables that are set, as a program started now gets them."""

    @abstractmethod
    def variable(self, name: str) -> Value | None:
        """The environment variable *name*; None when it is not known to be set."""

    @abstractmethod
    def set_variable(self, name: str, value: Value | None) -> None:
        """Sets an environment variable, or removes it (None)."""

    @property
    @abstractmethod
    def directory(self) -> Value:
        """The working directory."""

    @abstractmethod
    def change_directory(self, path: Value) -> None:
        """Makes *path* the working directory."""

    @abstractmethod
    def read_file(self, path: Value) -> Value:
        """What the file at *path* may hold."""

    @abstractmethod
    def write_file(self, path: Value, content: Value, *, append: bool, start: int, end: int) -> None:
        """Writes a file. The runner's command files and the summary are recognised by their paths."""

    @abstractmethod
    def remove_file(self, path: Value) -> None:
        """Removes a file."""

    @abstractmethod
    def file_names(self) -> Value:
        """Text of the names of files as far as they carry labels; :data:`EMPTY` when none does."""

    @abstractmethod
    def program_at(self, path: str) -> Source | None:
        """The text of a file of the repository, or of one written before, as a program; None when there is none."""

    # --- standard streams

    @abstractmethod
    def read_input(self) -> Value:
        """Everything on standard input; nothing is left there."""

    @abstractmethod
    def print(self, text: Value, start: int, end: int) -> None:
        """Writes to standard output or standard error."""

    @abstractmethod
    def print_error(self, text: Value, start: int, end: int) -> None:
        """Writes to standard error."""

    @abstractmethod
    def print_title(self, title: Value, start: int, end: int) -> None:
        """The name of a test, which its runner writes: always where the tests are ``titled``, else when it fails."""

    @abstractmethod
    def publish(self, value: Value, start: int, end: int, subject: str) -> None:
        """Sends a value to GitHub, which shows it as a part of *subject*: ``the text of the issue``."""

    # --- other processes

    @abstractmethod
    def start(self, arguments: Sequence[Argument], launch: Launch) -> Value:
        """Starts a program, name first; what it prints when the launch captures that, else :data:`EMPTY`."""

    @abstractmethod
    def start_shell(self, program: Argument, launch: Launch) -> Value:
        """Starts ``sh -c program``; gives what :meth:`start` gives."""

    @abstractmethod
    def leak(self, argument: Argument, launch: Launch, *, command: str, advice: str = "environment") -> None:
        """Reports an argument of a process that cannot be followed further."""

    @abstractmethod
    def give_up(self, start: int, end: int, reason: str) -> None:
        """Reports a stretch that is not followed although something labelled is in reach."""

    # --- branches

    @abstractmethod
    def save(self) -> Saved:
        """What is known now."""

    @abstractmethod
    def restore(self, saved: Saved) -> None:
        """Back to what was known then."""

    @abstractmethod
    def merge(self, others: Iterable[Saved]) -> None:
        """What is known now or at any of *others*: several ways have led here."""

    # --- for all analysers

    def labels(self) -> Iterator[Taint]:
        """Labels of everything the process was given."""
        for value in (*self.environment().values(), *(one.value for one in self.arguments)):
            yield from value.taints

    def argument(self, index: int) -> Value:
        """The argument at *index*, from 0; :data:`EMPTY` when there is none."""
        before = self.arguments[:index]
        if any(one.many for one in before):
            found = EMPTY
            for one in self.arguments:
                found = found | one.value
            return found
        return self.arguments[index].value if index < len(self.arguments) else EMPTY
