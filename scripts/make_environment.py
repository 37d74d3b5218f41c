"""Makes the development environment: ``python3 scripts/make_environment.py runtime|dev DIRECTORY``."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  an older Python comes as far as here, and cannot import what follows
    print("make_environment: Python {}.{} is too old".format(*sys.version_info), file=sys.stderr)
    print(f"  why: {sys.executable} was used; 3.11 or later is needed", file=sys.stderr)
    print("  fix: make PYTHON=python3.11 ...", file=sys.stderr)
    sys.exit(2)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e.bootstrap import install  # noqa: E402 - the package is found only after the line above
from runner_e2e.errors import RunnerE2EError  # noqa: E402


def main(arguments: list[str]) -> int:
    """Installs one of the two locks into a directory."""
    if len(arguments) != 2 or arguments[0] not in {"runtime", "dev"}:
        print(__doc__, file=sys.stderr)
        return 2
    environment = Path(arguments[1])
    if not (environment / ".complete").exists():  # it takes some seconds, in which pip says nothing
        print(f"Installing the locked packages into {environment}, each checked against its hash.", file=sys.stderr)
    try:
        install(
            environment=environment,
            lock=ROOT / "requirements" / f"{arguments[0]}.txt",
            source=ROOT / "src",
            with_pip=arguments[0] == "dev",
        )
    except RunnerE2EError as error:
        print(f"make_environment: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
