"""Prepares an artifact for its launch, in place or as a sealed snapshot, and becomes it.

What is executed is always an open descriptor, never a path.
"""

from __future__ import annotations

import errno
import fcntl
import os

from runner_e2e import kernel
from runner_e2e.artifacts.opening import inherited_descriptor, open_artifact
from runner_e2e.artifacts.reasons import Reason, not_in_place, reason
from runner_e2e.artifacts.trusted_root import TrustedRoot
from runner_e2e.errors import CommandNotExecutableError, LaunchError, UsageError
from runner_e2e.sandbox.policy import RUNTIME_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal, NoReturn, Self

    from runner_e2e.artifacts.trusted_root import RefusedRoot

    How = Literal["in-place", "sealed-snapshot", "inherited-snapshot"]

__all__ = ["RUNTIME_VARIABLE", "Launch", "parse_digest", "prepare", "runtime_environment"]

# Shells use descriptors up to 9 for redirections and the next few for themselves.
_FIRST_DESCRIPTOR = 20
_SIGPIPE, _SIGXFSZ = 13, 25


class Launch:
    """An artifact that is ready to run.

    ``how`` it runs, and ``reason`` why not in place (None in place). ``memory`` is how many bytes of memory hold it
    because of this launch.
    """

    def __init__(self, *, path: str, how: How, why: Reason | None, descriptor: int, sha256: str) -> None:
        self.path = path
        self.how = how
        self.reason = why
        self.descriptor = descriptor
        self.sha256 = sha256
        self.size = os.fstat(descriptor).st_size
        self.memory = self.size if how == "sealed-snapshot" else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the descriptor; a snapshot that nothing runs is gone then."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def warnings(self) -> list[str]:
        """Why the trusted launch root was not used for this artifact; never kept from a log."""
        return [not_in_place(self.path, self.reason)] if self.reason and self.reason.code != "no-root" else []

    def line(self) -> str:
        """How it runs, for a log."""
        if self.how == "in-place":
            return f"artifact: {self.path} runs in place, {self.size} bytes, nothing copied or hashed"
        kind = "a sealed snapshot" if self.how == "sealed-snapshot" else "the sealed snapshot it was handed"
        return f"artifact: {self.path} runs from {kind}, {self.size} bytes, sha256 {self.sha256}"

    def to_document(self) -> dict[str, object]:
        """The same for a program. In place, ``sha256`` was not compared."""
        return {
            "path": self.path,
            "how": self.how,
            "reason": self.reason.values() if self.reason else None,
            "sha256": self.sha256,
            "size_bytes": self.size,
            "memory_bytes": self.memory,
        }

    def hand_over(self) -> str:
        """Makes the descriptor inheritable at a number that programs leave alone; returns its path."""
        handed = fcntl.fcntl(self.descriptor, fcntl.F_DUPFD, _FIRST_DESCRIPTOR)
        os.close(self.descriptor)
        self.descriptor = handed
        return f"/proc/self/fd/{handed}"

    def execute(self, arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
        """Replaces this process by the artifact. Raises :class:`CommandNotExecutableError` when the kernel refuses."""
        program = self.hand_over()
        for signal in (_SIGPIPE, _SIGXFSZ):
            kernel.default_action(signal)
        try:
            os.execve(program, [self.path, *arguments], runtime_environment(environment, program))  # noqa: S606
        except (OSError, ValueError) as error:
            raise CommandNotExecutableError(
                f"{self.path} cannot be executed", why=_explain(error), fix=_remedy(error)
            ) from error


def runtime_environment(environment: Mapping[str, str], program: str) -> dict[str, str]:
    """*environment* with the variable by which a nested launch finds the running artifact."""
    return {**environment, RUNTIME_VARIABLE: program}


def prepare(path: str, *, sha256: str, root: TrustedRoot | RefusedRoot | None = None, assigned: bool = False) -> Launch:
    """Opens the artifact at *path* and decides how it runs.

    *sha256* is its expected digest (64 hex digits, ``sha256:`` before them allowed). *assigned*: the host assigned
    the executable (an MCP server on stdio, say), and it never runs in place.
    ``/proc/self/fd/N`` names an inherited descriptor: a sealed snapshot behind it is checked and used again.

    Raises :class:`LaunchError` and its kinds when the artifact is refused, :class:`UsageError` for a bad digest.
    """
    digest = parse_digest(sha256)
    artifact = open_artifact(path)
    try:
        why = _not_in_place(artifact.descriptor, artifact.device, root, assigned=assigned)
        if why is None:
            how: How = "in-place"
            descriptor = os.dup(artifact.descriptor)
        else:
            from runner_e2e.artifacts import sealed

            if inherited_descriptor(path) is not None and sealed.is_sealed_memory(artifact.descriptor):
                how = "inherited-snapshot"
                _compare(path, sealed.digest_of(artifact.descriptor), digest)
                descriptor = os.dup(artifact.descriptor)
            else:
                how = "sealed-snapshot"
                descriptor = sealed.snapshot(artifact, digest)
    finally:
        artifact.close()
    return Launch(path=path, how=how, why=why, descriptor=descriptor, sha256=digest)


def parse_digest(text: str) -> str:
    """64 lower hex digits. Raises :class:`UsageError`."""
    digest = text.removeprefix("sha256:").lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise UsageError(
            f"{text!r} is not a SHA-256 digest",
            why="it is not 64 hexadecimal digits",
            fix="take it from runner-e2e artifact digest PATH",
        )
    return digest


def _not_in_place(
    descriptor: int, device: int, root: TrustedRoot | RefusedRoot | None, *, assigned: bool
) -> Reason | None:
    if root is None:
        return reason("no-root")
    if assigned:
        return reason("assigned")
    if not isinstance(root, TrustedRoot):
        return reason("root-unused")
    return root.doubt(descriptor, device)


def _compare(path: str, found: str, expected: str) -> None:
    if found != expected:
        raise LaunchError(
            f"{path} is refused", why=f"its SHA-256 is {found}, not {expected}", fix="hand on the right descriptor"
        )


def _explain(error: OSError | ValueError) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return "its interpreter does not exist, or /proc is not mounted"
    if number == errno.ENOEXEC:
        return "it is neither a program nor a script with an interpreter line"
    if number == errno.E2BIG:
        return "its arguments and environment are longer than the kernel takes"
    return getattr(error, "strerror", None) or str(error)


def _remedy(error: OSError | ValueError) -> str:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        return "install what its first line or its ELF header names"
    if number == errno.ENOEXEC:
        return "start the script with #!, or launch its interpreter"
    if number == errno.EIO:
        return "the file or its image is damaged: make it anew"
    if number == errno.E2BIG:
        return "pass them in a file"
    return "check its permissions and those of the host"
