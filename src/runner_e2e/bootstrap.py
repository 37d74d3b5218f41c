"""Makes a Python environment from a lock with hashes, with nothing but ``venv`` and ``pip``.

Used by the Makefile and by the action's ``setup``. The package itself is added by a ``.pth`` file,
because ``pip --require-hashes`` refuses a local directory.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MINIMUM_PYTHON", "environment_directory", "environment_key", "install", "secrets_in_scope"]

MINIMUM_PYTHON = (3, 11)

# Settings of a job or a user that would send packages elsewhere, install none, or put foreign code before ours.
NEUTRALISED = (
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
    "PIP_NO_BINARY",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
)

# Variables that providers of models, sandboxes and clouds read their secrets from. Their documentation names them.
PROVIDER_SECRET = re.compile(
    r"""(?: .+_API_KEY | .+_AUTH_TOKEN
        | CLAUDE_CODE_OAUTH_TOKEN | AWS_SECRET_ACCESS_KEY | AWS_SESSION_TOKEN | AWS_BEARER_TOKEN_BEDROCK
        | AZURE_CLIENT_SECRET | GOOGLE_APPLICATION_CREDENTIALS | HF_TOKEN | HUGGING_FACE_HUB_TOKEN
        | REPLICATE_API_TOKEN | MODAL_TOKEN_SECRET | CODEX_ACCESS_TOKEN )""",
    re.VERBOSE,
)

# Runs a pip that lies in a wheel, as the standard library's ensurepip does; putting one into the venv takes longer
# than everything else together.
PIP_FROM_WHEEL = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""

# The kernel reads at most this much of a first line, and splits it at blanks only once.
MAXIMUM_SHEBANG = 127

# Isolated (-I): neither the working directory nor PYTHONPATH of a job may put code before ours.
LAUNCHER = """\
import sys
from runner_e2e.cli import main
sys.exit(main())
"""


def environment_key(lock: Path) -> str:
    """Names an environment by its lock and Python: 16 hex digits that change when either does."""
    return _digest(lock.read_bytes(), repr((sys.implementation.cache_tag, sys.version_info[:3], sys.executable)))


def environment_directory(temporary: Path, lock: Path) -> Path:
    """The fixed place of the action's environment below a job's temporary directory.

    Its name begins with the lock's digest, by which ``scripts/enter.py`` finds it, and ends with the Python.
    """
    return temporary / "runner-e2e" / f"environment-{_digest(lock.read_bytes())}-{sys.implementation.cache_tag}"


def secrets_in_scope(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names the variables that hold a provider's secret, sorted; empty ones do not count."""
    return tuple(sorted(name for name, value in environ.items() if value and PROVIDER_SECRET.fullmatch(name)))


def install(*, environment: Path, lock: Path, source: Path, with_pip: bool = False) -> Path:
    """Creates or completes *environment* from *lock*, with the package found in *source*.

    Returns the environment's ``bin``. Does nothing when the environment is complete for this lock and Python.
    *with_pip* leaves a pip in it, for people who work with it.
    Raises :class:`ConfigurationError` when Python is too old, the place cannot be written, or pip refuses.
    """
    if sys.version_info < MINIMUM_PYTHON:
        raise ConfigurationError(
            f"Python {sys.version_info[0]}.{sys.version_info[1]} is too old",
            why=f"{sys.executable} was used; {MINIMUM_PYTHON[0]}.{MINIMUM_PYTHON[1]} or later is needed",
            fix="make PYTHON=python3.11 …, or put actions/setup-python before this action",
        )
    try:
        _complete(environment, lock, source, with_pip=with_pip)
    except OSError as error:
        raise ConfigurationError(
            f"no environment could be made in {environment}",
            why=f"{error.filename or environment}: {error.strerror}",
            fix="check that the directory is writable and its disk not full",
        ) from error
    return environment / "bin"


def _digest(*parts: bytes | str) -> str:
    import hashlib

    digest = hashlib.sha256(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts))
    return digest.hexdigest()[:16]


def _complete(environment: Path, lock: Path, source: Path, *, with_pip: bool) -> None:
    stamp = environment / ".complete"
    key = environment_key(lock)
    if not stamp.is_file() or stamp.read_text() != key:
        stamp.unlink(missing_ok=True)
        pip = _pip_outside()
        _create(environment, with_pip=with_pip or pip is None)
        _install_lock([str(environment / "bin" / "python3"), "-I", *(pip or ("-m", "pip"))], lock)
    _add_package(environment, source)
    stamp.write_text(key)


def _pip_outside() -> tuple[str, ...] | None:
    """Words after ``python3 -I`` that run a pip which is there already, in an environment that has none.

    The one that is installed beside this Python is compiled and starts three times as fast as the one in a wheel.
    """
    if runner := _installed_pip():
        return (str(runner),)
    wheel = _bundled_pip()
    return ("-c", PIP_FROM_WHEEL, str(wheel)) if wheel else None


def _installed_pip() -> Path | None:
    """The script by which pip 22.3 and later serves an environment that it is not in, as ``pip --python`` does.

    Only from the directories of the installation: a user's own packages, and what PYTHONPATH names, are not asked.
    """
    import sysconfig
    from pathlib import Path

    places = [sysconfig.get_path("purelib")]
    if sys.prefix == sys.base_prefix:
        # Where Debian and its like put what comes with the distribution.
        places.append(str(Path(sysconfig.get_path("stdlib")).parent / "python3" / "dist-packages"))
    scripts = (Path(place) / "pip" / "__pip-runner__.py" for place in places)
    return next((script for script in scripts if script.is_file()), None)


def _bundled_pip() -> Path | None:
    """The wheel of pip that comes with this Python, or where a distribution keeps it; None where there is none."""
    import sysconfig
    from pathlib import Path

    try:
        import ensurepip
    except ImportError:
        return None
    name = f"pip-{ensurepip.version()}-py3-none-any.whl"
    places = [Path(ensurepip.__file__).parent / "_bundled"]
    if distribution := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        places.insert(0, Path(distribution))
    return next((place / name for place in places if (place / name).is_file()), None)


def _create(environment: Path, *, with_pip: bool) -> None:
    """Makes the venv anew; one of another Python or half made would only fail later and less clearly."""
    import shutil
    import subprocess
    import venv

    if environment.exists():
        shutil.rmtree(environment)
    try:
        venv.create(environment, with_pip=with_pip, symlinks=True)
    except subprocess.CalledProcessError as error:
        raise ConfigurationError(
            f"no virtual environment could be made in {environment}",
            why=f"{sys.executable} -m ensurepip ended with status {error.returncode}",
            fix="install the venv module of this Python (Debian and Ubuntu: apt-get install python3-venv)",
        ) from error


def _install_lock(pip: list[str], lock: Path) -> None:
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name not in NEUTRALISED}
    # Also stated, because a pip.conf may say otherwise and the environment outranks it.
    environment["PIP_USER"] = "0"
    # Not compiled: most modules are never loaded, and those that are get compiled then.
    command = [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
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
    launcher.write_text(_first_lines(environment.resolve() / "bin" / "python3") + LAUNCHER)
    launcher.chmod(0o755)


def _first_lines(python: Path) -> str:
    """What makes the kernel start a script with *python*; by way of ``sh`` where the path is long or holds blanks."""
    shebang = f"#!{python} -I\n"
    if len(shebang.encode()) <= MAXIMUM_SHEBANG and " " not in str(python):
        return shebang
    import shlex

    # For sh the second line is a command; for Python the second and third are one string.
    return f"#!/bin/sh\n'''exec' {shlex.quote(str(python))} -I \"$0\" \"$@\"\n' '''\n"
