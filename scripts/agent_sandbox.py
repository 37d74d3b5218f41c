"""Starts an agent in the sandbox, quickly: ``python3 -I -S agent_sandbox.py [OPTION…] -- COMMAND…``.

The same as ``runner-e2e sandbox exec``, with nothing but the standard library in the process that holds the walls.
Below ``runner-e2e sandbox serve`` the launch is made by a process that stands ready, and this one only waits for it.
"""

from __future__ import annotations

import posix  # where there is a server `os` would be a tenth of all
import sys

SERVER_VARIABLE = b"RUNNER_E2E_SANDBOX_SERVER"


def source() -> str:
    """The directory of the product's code, wherever links to this script lead from."""
    path = __file__
    while True:
        try:
            link = posix.readlink(path)
        except OSError:
            return f"{path.rpartition('/')[0]}/../src"
        path = link if link.startswith("/") else f"{path.rpartition('/')[0]}/{link}"


def ask(server: bytes) -> int | None:
    """The status of a launch by the *server* at that path; None where it makes none."""
    # `importlib` and the packages on the way would take longer than what is loaded.
    from _frozen_importlib_external import SourceFileLoader

    name = "quick_client"
    client = type(sys)(name)
    SourceFileLoader(name, f"{source()}/runner_e2e/sandbox/{name}.py").exec_module(client)
    status: int | None = client.ask(server, sys.argv[1:])
    return status


def launch() -> int:
    """Launches from this process, and returns the status."""
    import gc
    import os

    gc.disable()  # nothing here lives in circles, and each collection costs as much as the mounts of a launch
    sys.path.insert(0, os.path.realpath(source()))
    from runner_e2e.sandbox import command

    return command.main(sys.argv[1:], runner_files())


def runner_files() -> list[str]:
    """The CI runner's own files; looked for only inside a job, where the module for it is worth its start-up."""
    if not any(name.startswith(b"GITHUB_") for name in posix.environ):
        return []
    import os

    from runner_e2e import gha

    return [os.fspath(path) for path in gha.runner_files()]


def main() -> int:
    """Launches, and returns the status."""
    server = posix.environ.get(SERVER_VARIABLE)
    status = ask(server) if server else None
    return launch() if status is None else status


if __name__ == "__main__":
    posix._exit(main())  # noqa: SLF001 - nothing is buffered, and taking Python down would cost a tenth
