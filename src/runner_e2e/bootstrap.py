"""Makes a Python environment from a lock with hashes, with nothing but ``venv`` and ``pip``.

Used by the Makefile and by the action's ``setup``. The package itself is added by a ``.pth`` file,
because ``pip --require-hashes`` refuses a local directory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MINIMUM_PYTHON", "environment_key", "install"]

MINIMUM_PYTHON = (3, 11)

# Settings of a job or a user that would send packages elsewhere or put foreign code before ours.
NEUTRALISED = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH", "PYTHONHOME")

# Isolated (-I): neither the working directory nor PYTHONPATH of a job may put code before ours.
LAUNCHER = """#!{python} -I
import sys
from runner_e2e.cli import main
sys.exit(main())
"""


def environment_key(lock: Path) -> str:
    """Names an environment by its lock and Python: 16 hex digits that change when either does."""
    digest = hashlib.sha256(lock.read_bytes())
    digest.update(repr((sys.implementation.cache_tag, sys.version_info[:3], sys.executable)).encode())
    return digest.hexdigest()[:16]


def install(*, environment: Path, lock: Path, source: Path) -> Path:
    """Creates or completes *environment* from *lock*, with the package found in *source*.

    Returns the environment's ``bin``. Does nothing when the environment is complete for this lock and Python.
    Raises :class:`ConfigurationError` when Python is too old, or when pip refuses.
    """
    if sys.version_info < MINIMUM_PYTHON:
        raise ConfigurationError(
            f"Python {sys.version_info[0]}.{sys.version_info[1]} is too old",
            why=f"{sys.executable} was used; {MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]} or later is needed",
            fix="make PYTHON=python3.11 …, or put actions/setup-python before this action",
        )
    programs = environment / "bin"
    stamp = environment / ".complete"
    key = environment_key(lock)
    if not stamp.is_file() or stamp.read_text() != key:
        stamp.unlink(missing_ok=True)
        _create(environment)
        _install_lock(programs / "python3", lock)
    _add_package(environment, source)
    stamp.write_text(key)
    return programs


def _create(environment: Path) -> None:
    """Makes the venv anew; one of another Python or half made would only fail later and less clearly."""
    if environment.exists():
        shutil.rmtree(environment)
    try:
        venv.create(environment, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigurationError(
            f"no virtual environment could be made in {environment}",
            why=str(error),
            fix="install the venv module of this Python (Debian and Ubuntu: apt-get install python3-venv)",
        ) from error


def _install_lock(python: Path, lock: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in NEUTRALISED}
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(lock)]
    done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise ConfigurationError(
            f"pip could not install {lock.name} (status {done.returncode})",
            why="its own message stands above",
            fix="check that the package index is reachable, then run the same command again",
        )


def _add_package(environment: Path, source: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = environment / "lib" / version / "site-packages"
    (packages / "runner_e2e_action.pth").write_text(f"{source.resolve()}\n")
    launcher = environment / "bin" / "runner-e2e"
    launcher.write_text(LAUNCHER.format(python=environment.resolve() / "bin" / "python3"))
    launcher.chmod(0o755)
