"""What the analysis of a shell script tells: leaks, writes to the runner's files, log output, calls."""

from __future__ import annotations

from dataclasses import field, replace
from itertools import count
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from runner_e2e.lint.masks import NO_MASKS, Masks
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.values import EMPTY, Origin, Script, Taint, Text, Value, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PrintTarget: TypeAlias = Literal["log", "annotation", "summary", "xtrace"]

__all__ = [
    "ArgvLeak",
    "Call",
    "Files",
    "Print",
    "PrintTarget",
    "Publication",
    "ShellOptions",
    "ShellResult",
    "TracePoint",
    "Unanalysable",
    "Uploads",
    "new_serial",
]

_SERIALS = count(1)


def new_serial() -> int:
    """A number for one analysis of one script."""
    return next(_SERIALS)


@dataclass(frozen=True, kw_only=True)
class ShellOptions:
    """How the shell runs: which one, with which options; *deadline* is a ``time.process_time()`` time."""

    shell: Literal["bash", "sh"] = "bash"
    language: str = ""
    """Not empty: the script is no shell script, but of this language (a key of ``languages.ANALYSERS``)."""
    errexit: bool = True
    pipefail: bool = False
    deadline: float | None = None
    script_name: str = "/runner/temp/step.sh"
    directory: str | Value = "/github/workspace"
    trace: bool = False
    max_steps: int = 20_000
    """Commands that are followed before the rest is given up and reported."""


class Uploads(Protocol):
    """What jobs of the run have uploaded until now."""

    @property
    def version(self) -> int:
        """Another number whenever something was uploaded, in any run; 0 before."""

    @property
    def members(self) -> Mapping[Text, Value]:
        """What archives among the files hold."""

    def fetch(self, names: Sequence[Value], patterns: Sequence[Value]) -> Iterator[tuple[Text, Text, Value]]:
        """Each labelled file of the artifacts that are called as one of *names* or *patterns* says, all without any.

        The name of its artifact, its path there, and what it holds.
        """


@dataclass(frozen=True, kw_only=True)
class Files:
    """An abstract file system, carried from step to step.

    *contents* maps a path (absolute where the shell knows its directory; a text, perhaps with holes) to what the
    file holds. *artifacts* are those of the run. *find_script* gives the shell program at a path of the repository,
    None when there is none; *find_text* any other file of the repository (a Makefile), *find_names* the names in a
    folder.
    """

    contents: Mapping[Text, Value] = field(default_factory=dict)
    artifacts: Uploads | None = None
    find_script: Callable[[str], Script | None] | None = None
    find_text: Callable[[str], str | None] | None = None
    find_names: Callable[[str], tuple[str, ...]] | None = None

    def read(self, path: str) -> Value | None:
        """What the file at *path* holds, None when nothing is known of it."""
        return self.contents.get((path,))

    def write(self, path: str, value: Value, *, append: bool = False) -> Files:
        """The same files with *value* in the one at *path*."""
        before = self.contents.get((path,), EMPTY) if append else EMPTY
        return replace(self, contents={**self.contents, (path,): before + value})


@dataclass(frozen=True, kw_only=True)
class ArgvLeak:
    """A labelled value in the argument vector of a process.

    ``[start, end)`` of *origin* is the argument, ``[command_start, command_end)`` the command. *advice* names what to
    write instead: ``environment``, ``stdin``, ``docker-env``, ``curl-header``, ``jq-env``, ``file``, ``builtin``.
    """

    origin: Origin
    start: int
    end: int
    command_start: int
    command_end: int
    command: str
    argument: str
    taints: frozenset[Taint]
    advice: str


@dataclass(frozen=True, kw_only=True)
class Print:
    """A labelled value on a public surface: the log, an annotation, the step summary, a ``set -x`` trace.

    *masks* are those that the script itself had registered before.
    """

    origin: Origin
    start: int
    end: int
    target: PrintTarget
    taints: frozenset[Taint]
    text: Value
    masks: Masks = NO_MASKS

    def joined(self, other: Print) -> Print:
        """Both texts at the same place."""
        if self.text == other.text and self.masks == other.masks:
            return self
        return replace(
            self,
            taints=merged(self.taints | other.taints),
            text=self.text | other.text,
            masks=self.masks.joined(other.masks),
        )


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A labelled value in what a program sends to GitHub, which shows it: *subject* says in what."""

    origin: Origin
    start: int
    end: int
    subject: str
    taints: frozenset[Taint]


@dataclass(frozen=True, kw_only=True)
class Unanalysable:
    """A stretch that was not followed, and why; what it does with labelled values is not known.

    *taints*: the values that were in its reach, where that is told.
    """

    origin: Origin
    start: int
    end: int
    reason: str
    taints: frozenset[Taint] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A program in another language, or a file that is not a known shell script, with what it is given."""

    origin: Origin
    start: int
    end: int
    command: str
    arguments: tuple[Value, ...]
    environment: Mapping[str, Value]
    stdin: Value
    directory: Value


@dataclass(frozen=True, kw_only=True)
class TracePoint:
    """What is known about the variables before the command at ``[start, end)``."""

    origin: Origin
    start: int
    end: int
    variables: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class ShellResult:
    """Everything one script does that others have to know.

    The keys of *outputs* and *environment_writes* are names; ``*`` stands for text of unknown names. *masks* are
    registered for sure when the script ends, *possible_masks* on some ways through it. *serial* is the number of the
    analysis, which the symbols of texts that it made begin with.
    """

    leaks: tuple[ArgvLeak, ...] = ()
    environment_writes: Mapping[str, Value] = field(default_factory=dict)
    outputs: Mapping[str, Value] = field(default_factory=dict)
    states: Mapping[str, Value] = field(default_factory=dict)
    paths: tuple[Value, ...] = ()
    prints: tuple[Print, ...] = ()
    publications: tuple[Publication, ...] = ()
    masks: tuple[Value, ...] = ()
    possible_masks: tuple[Value, ...] = ()
    unanalysable: tuple[Unanalysable, ...] = ()
    calls: tuple[Call, ...] = ()
    files: Files = field(default_factory=Files)
    trace: tuple[TracePoint, ...] = ()
    serial: int = field(default=0, compare=False)
