"""What an attempt is, what it may try its hands on, and what came of it."""

from __future__ import annotations

import errno
import json
import os
import sys
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AbsentError", "Attempt", "Targets", "Trial", "perform"]


_LONGEST_EVIDENCE = 1 << 20


class AbsentError(Exception):
    """The kernel or the host has nothing of the kind: the attempt proves nothing here, inside or outside."""


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Where the attempts find what they are after. Nothing here tells the canary that they look for."""

    hidden: str  # a hidden directory
    secret: str  # a file in it that holds the canary
    link: str  # a symbolic link in it, whose target holds the canary
    program: str  # a program in it that prints the canary
    spare: str  # a file in it to be damaged
    hidden_socket: str  # a socket in it that answers with the canary
    runner: dict[str, str]  # the CI runner's own files, by what they are
    scratch: str  # a directory that is not hidden, and writable
    harness: int  # process id of the harness
    harness_descriptor: int  # a descriptor of the harness that holds the canary
    harness_address: int  # where the canary lies in the memory of the harness
    abstract_socket: str  # answers with the canary
    tcp_port: int  # of a service on loopback that answers with the canary
    tcp6_port: int  # of the same on ::1; 0 without IPv6
    udp_port: int  # of one that answers datagrams with the canary
    memory_segment: int  # System V shared memory that holds the canary
    message_queue: str  # a POSIX queue that holds the canary; "" without one
    memory_file: str  # a file in /dev/shm that holds the canary
    key: int  # a key of the user's keyring that holds the canary; 0 without one
    inherited: int  # a descriptor of the secret that the launcher holds open
    handle: str  # file handle of the secret, in hexadecimal; "" without one
    startup_file: str  # a startup file of the harness that exists
    missing_startup_file: str  # one that does not
    command_directory: str  # a directory of the harness's PATH
    hooks: str  # the hooks of the harness's repository
    checks: list[dict[str, str]]  # named checks of a layout: name, action and path


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt. ``run`` returns evidence, or raises OSError when it is denied.

    ``reads``: only evidence that holds the canary counts as success. ``may_lack``: outside, some users lack the right
    for it; then it proves nothing here.
    ``changes``: the target that is different afterwards, where success inside may touch only a copy.
    """

    name: str
    run: Callable[[Targets], str]
    reads: bool = True
    may_lack: bool = False
    changes: str = ""

    @property
    def tries(self) -> str:
        """What it tries, in words."""
        said = self.run.func if isinstance(self.run, partial) else self.run
        return " ".join((said.__doc__ or "").split())


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one attempt in one place: "done" with evidence, "denied" with the kernel's word, or "absent"."""

    name: str
    outcome: str
    detail: str


def perform(attempts: tuple[Attempt, ...], targets: Targets) -> None:
    """Makes every attempt in a child of its own and writes one JSON line for each trial to standard output.

    A child each, because some attempts cannot be undone and some may end the process.
    """
    for attempt in attempts:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            trial = _try(attempt, targets)
            with open(write, "wb") as file:
                file.write(json.dumps(asdict(trial)).encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as answer:
            text = answer.read().decode()
        _, status = os.waitpid(child, 0)
        if not text:
            lost = Trial(name=attempt.name, outcome="denied", detail=f"the process ended with wait status {status}")
            text = json.dumps(asdict(lost))
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _try(attempt: Attempt, targets: Targets) -> Trial:
    try:
        evidence = attempt.run(targets)
    except AbsentError as error:
        return Trial(name=attempt.name, outcome="absent", detail=str(error))
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return Trial(name=attempt.name, outcome="absent", detail="this file system has nothing of the kind")
        word = errno.errorcode.get(error.errno or 0, "") or type(error).__name__
        return Trial(name=attempt.name, outcome="denied", detail=word)
    except Exception as error:  # noqa: BLE001 - an attempt that fails in any way was not successful, and says how
        return Trial(name=attempt.name, outcome="denied", detail=f"{type(error).__name__}: {error}")
    return Trial(name=attempt.name, outcome="done", detail=evidence[:_LONGEST_EVIDENCE])
