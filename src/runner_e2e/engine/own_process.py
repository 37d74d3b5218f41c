"""Makes the process that runs the engine fit for it: what it knows stays in it, and what it starts ends with it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from runner_e2e import kernel, selected_id
from runner_e2e.cells.handles import DEFAULT_KEY_VARIABLE, PREVIOUS_KEY_SUFFIX, parse_key
from runner_e2e.engine.cancellation import Cancellation
from runner_e2e.engine.supervisor import children, kill_children

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner_e2e.cells.model import Catalog

__all__ = ["EngineProcess", "own_process"]

_ORPHAN_LIMIT: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class EngineProcess:
    """What the engine is given: the environment as it was, credentials included, the campaign key, the wish to stop."""

    environ: Mapping[str, str] = field(repr=False)
    handle_key: bytes | None = field(repr=False)
    cancellation: Cancellation


@contextlib.contextmanager
def own_process(catalog: Catalog, *, key_variable: str = DEFAULT_KEY_VARIABLE) -> Iterator[EngineProcess]:
    """Takes this process over for the engine. To be entered in the main thread, after the selected id was taken.

    Credentials and the campaign key are read and then erased from the environment of this process, so that a started
    program cannot read them there; other processes of the same user may no longer trace it. SIGINT, SIGTERM and
    SIGHUP ask to stop. Descendants whose supervisor was killed come to this process and are ended with it.

    Raises :class:`~runner_e2e.errors.UsageError` for a key that is none, and
    :class:`~runner_e2e.errors.RefusedError` when something cannot be erased.
    """
    text = os.environ.get(key_variable, "")
    key = parse_key(text, variable=key_variable) if text.strip() else None
    keys = (key_variable, f"{key_variable}{PREVIOUS_KEY_SUFFIX}")
    environ = {name: value for name, value in os.environ.items() if name not in keys}
    for name in (*keys, *catalog.credentials):
        selected_id.erase(name)
    kernel.set_child_subreaper()
    kernel.set_dumpable(dumpable=False)
    with Cancellation.on_signals() as cancellation:
        try:
            yield EngineProcess(environ=environ, handle_key=key, cancellation=cancellation)
        finally:
            _end_orphans()


def _end_orphans() -> None:
    """Ends what was left by a supervisor that was killed; otherwise there is nothing."""
    limit = time.monotonic() + _ORPHAN_LIMIT
    while time.monotonic() < limit:
        kill_children(children())
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            time.sleep(0.01)
