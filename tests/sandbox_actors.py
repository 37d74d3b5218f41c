"""Who runs a sandbox in a test: root, and an ordinary user; and places that both can reach."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.clearing import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SOURCE = Path(__file__).resolve().parent.parent / "src"
# The kernel counts a user's processes on the whole machine: tests that run at the same time have users of their own.
SCRATCH_USER = 100_000 + os.getpid()
ENTRY = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.sandbox.command import main; "
    "sys.exit(main(sys.argv[1:]))"
)
# A client of a fork server that waits for it also where the machine is busy.
PATIENT = (
    "import os, sys, time; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.sandbox import quick_client; "
    "quick_client._PATIENCE = 60.0; ask = quick_client.ask\n"
)
# The same through a fork server; a launch that the server declines is none of what these tests want to see.
SERVED_ENTRY = PATIENT + (
    "status = ask(os.environb[b'RUNNER_E2E_SANDBOX_SERVER'], sys.argv[1:])\n"
    "sys.exit('not served' if status is None else status)"
)
# A launch like the two before: the server has prepared all of it. What is said of those is not shown.
EXPECTED_ENTRY = PATIENT + (
    "server = os.environb[b'RUNNER_E2E_SANDBOX_SERVER']\n"
    "for _ in range(2):\n"
    "    before = os.fork()\n"
    "    if before == 0:\n"
    "        for number in (0, 1, 2): os.dup2(os.open('/dev/null', os.O_RDWR), number)\n"
    "        os._exit(ask(server, [*sys.argv[1 : sys.argv.index('--')], '--', '/bin/true']) is None)\n"
    "    os.waitpid(before, 0)\n"
    "    time.sleep(0.1)\n"
    "status = ask(server, sys.argv[1:])\n"
    "sys.exit('not served' if status is None else status)"
)
SERVING = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.sandbox.fork_server import become_harness; "
    "become_harness(sys.argv[1:], python=sys.executable)"
)
SERVED = " with a fork server"
EXPECTED = " that expects it"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A user of the machine with a home and a place of its own, and the words that become it."""

    name: str
    user: int
    prefix: tuple[str, ...]
    place: Path
    python: str
    source: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    served: bool = False
    expected: bool = False

    @property
    def root(self) -> bool:
        return self.user == 0

    @property
    def work(self) -> Path:
        return self.place / "work"

    @property
    def hidden(self) -> Path:
        return self.place / "hidden"

    def environment(self, **more: str) -> dict[str, str]:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"HOME": str(self.place / "home"), "PATH": path, "LANG": "C.UTF-8", **self.variables, **more}

    def run(self, words: Sequence[object], **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a program as this user."""
        options = {"capture_output": True, "text": True, "cwd": self.work, "env": self.environment(), **options}
        if "stdin" not in options and "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        return subprocess.run([*self.prefix, *map(str, words)], check=False, timeout=120, **options)

    def words(self, *options: object, command: Sequence[object]) -> list[str]:
        """The words of a launch by the quick entry, without those that become the user."""
        python = [self.python, "-I", "-S", "-c"]
        served = EXPECTED_ENTRY if self.expected else SERVED_ENTRY
        entry = [*python, served if self.served else ENTRY, str(self.source)]
        serving = [*python, SERVING, str(self.source)] if self.served else []
        return [*serving, *entry, *map(str, options), "--", *map(str, command)]

    def launch(
        self, *options: object, command: Sequence[object], quiet: bool = True, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Launches *command* in the sandbox."""
        return self.run(self.words(*(["--quiet"] if quiet else []), *options, command=command), **more)

    def shell(self, script: str, *options: object, **more: Any) -> subprocess.CompletedProcess[str]:
        """Launches a shell script with the usual hidden directory and its exposed entry."""
        usual = ("--hide", self.hidden, "--expose", self.hidden / "own")
        return self.launch(*usual, *options, command=["/bin/sh", "-c", script], **more)

    def python_script(self, script: str, *arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
        """Runs a Python script as this user, with the package importable."""
        head = "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        return self.run([self.python, "-I", "-S", "-c", head + script, self.source, *arguments], **more)


def bring_proxy(actor: Actor) -> None:
    """Puts the package that the way out is made with where this user's Python finds it."""
    import proxy

    package = Path(proxy.__file__).parent
    shutil.copytree(package, actor.source / "proxy", ignore=shutil.ignore_patterns("__pycache__", "dashboard"))
    give(actor.source / "proxy", actor.user)


def give(place: Path, user: int) -> None:
    """Makes everything in *place* belong to *user*, where this process may."""
    if os.geteuid() != 0:
        return
    for path in [place, *place.rglob("*")]:
        os.chown(path, user, user, follow_symlinks=False)


def actors() -> tuple[str, ...]:
    return ("root", "user")


def make_actor(name: str) -> Iterator[Actor]:
    """Yields the actor of that name with a fresh place under ``/tmp``, where another user gets to.

    A name that ends with :data:`SERVED` is an actor whose launches a fork server makes; :data:`EXPECTED` may follow,
    for launches that the server has prepared.
    """
    name, expected = name.removesuffix(EXPECTED), name.endswith(EXPECTED)
    name, served = name.removesuffix(SERVED), name.endswith(SERVED)
    place = Path(tempfile.mkdtemp(prefix="sandbox-test-")).resolve()
    place.chmod(0o755)
    for directory in ("work", "home", "hidden/own", "hidden/other"):
        (place / directory).mkdir(parents=True)
    (place / "hidden" / "secret").write_text("canary\n")
    (place / "hidden" / "own" / "state").write_text("own\n")
    (place / "home" / ".bashrc").write_text(": startup\n")
    user = 0 if name == "root" else os.geteuid() or SCRATCH_USER
    prefix = _prefix(user)
    give(place, user)
    python, source = _reachable(place, prefix)
    try:
        yield Actor(
            name=name,
            user=user,
            prefix=prefix,
            place=place,
            python=python,
            source=source,
            served=served,
            expected=expected,
        )
    finally:
        remove_tree(place)


def _prefix(user: int) -> tuple[str, ...]:
    if user == os.geteuid():
        return ()
    if user == 0:
        return ("sudo", "-n", "--preserve-env", "--")
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")


def _reachable(place: Path, prefix: tuple[str, ...]) -> tuple[str, Path]:
    """A Python of 3.11 or later and a copy of the package that the user can read."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if os.path.realpath(python).startswith("/root/"):
            continue
        test = [*prefix, python, "-I", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            good = subprocess.run(test, capture_output=True, check=False, cwd="/").returncode == 0
        except OSError:
            continue
        if good:
            break
    else:
        raise RuntimeError("no Python that an ordinary user can run: install python3 (3.11 or later)")
    copied = place / "source"
    shutil.copytree(_compiled(python), copied)
    return python, copied


@cache
def _compiled(python: str) -> Path:
    """What launches need of the package, compiled once: without that it takes most of their time."""
    place = Path(tempfile.mkdtemp(prefix="sandbox-source-"))
    atexit.register(remove_tree, place)
    package = place / "runner_e2e"
    package.mkdir()
    for name in ("__init__.py", "errors.py", "existence.py", "gha.py", "kernel.py", "selected_id.py"):
        shutil.copy2(SOURCE / "runner_e2e" / name, package / name)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("artifacts", "egress", "sandbox"):
        shutil.copytree(SOURCE / "runner_e2e" / name, package / name, ignore=ignored)
    subprocess.run([python, "-I", "-m", "compileall", "-q", place], check=True)
    place.chmod(0o755)
    return place
