"""Every exec below a command, by the product's exec audit, which reads the kernel's own record."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.case import IncompleteAuditError

from runner_e2e.sandbox import exec_audit
from runner_e2e.sandbox.exec_audit import Canary, Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner_e2e.sandbox.exec_audit import Audit


@dataclass(frozen=True, kw_only=True)
class Exec:
    """One exec. ``order`` counts execs from 0; ``pid`` is the process, ``parent`` the one that made it (0: unknown);
    ``program`` is the path that was executed; ``holds`` says whether a variable of its environment held the id.
    """

    order: int
    pid: int
    parent: int
    program: str
    argv: tuple[str, ...]
    holds: bool


@dataclass(frozen=True, kw_only=True)
class Trace:
    """``output`` is what the command wrote, both streams together."""

    execs: tuple[Exec, ...]
    status: int
    output: str


def run_traced(
    command: Sequence[str], *, directory: Path, environ: Mapping[str, str], secrets: Sequence[str], timeout: float
) -> Trace:
    """Runs ``command`` to its end. An audit that is not whole proves nothing and is an error."""
    seen: list[exec_audit.Exec] = []
    with tempfile.TemporaryFile() as output, Path(os.devnull).open("rb") as nothing:
        audit = exec_audit.audit(
            list(command),
            canaries=[Canary(name=f"id-{number}", value=secret) for number, secret in enumerate(secrets)],
            options=Options(linger=5.0, end_survivors=True, timeout=timeout),
            environ={name.encode(): value.encode() for name, value in environ.items()},
            directory=directory,
            descriptors={0: nothing.fileno(), 1: output.fileno(), 2: output.fileno()},
            sink=seen.append,
        )
        output.seek(0)
        text = output.read().decode(errors="replace")
    if audit.timed_out or audit.gaps:
        why = f"took longer than {timeout} s" if audit.timed_out else "; ".join(audit.gaps)
        raise IncompleteAuditError(f"{command[0]}: {why}\n{text}")
    return Trace(execs=tuple(related(one, audit) for one in seen), status=audit.status, output=text)


def related(one: exec_audit.Exec, audit: Audit) -> Exec:
    """An exec of the audit with the pid of the process that made its process."""
    made_by = audit.processes[one.process].parent
    return Exec(
        order=one.index,
        pid=one.pid,
        parent=0 if made_by is None else audit.processes[made_by].pid,
        program=one.program,
        argv=one.argv,
        holds=bool(one.environ),
    )
