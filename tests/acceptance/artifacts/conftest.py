"""Real images on real loop devices, programs to put on them, and launches by root and by an ordinary user."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sandbox_actors import Actor, actors, make_actor

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = Path(__file__).resolve().parents[3]
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
PRIVILEGE = () if os.geteuid() == 0 else ("sudo", "-n", "--")
MAKERS = {
    "erofs": ("mkfs.erofs", "--all-root"),
    "squashfs": ("mksquashfs", "-all-root", "-quiet", "-no-progress", "-noappend", "-noD", "-noF"),
}


def as_root(*words: object) -> str:
    """Runs a program as root and returns what it prints; raises when it fails."""
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:{SBIN}"}
    command = [*PRIVILEGE, *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
    return done.stdout


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(kw_only=True)
class Host:
    """One test's corner of the machine. Whatever it mounts is unmounted in the end."""

    actor: Actor
    probes: Path
    points: list[Path] = field(default_factory=list)

    @property
    def place(self) -> Path:
        return self.actor.place

    def folder(self, name: str) -> Path:
        path = self.place / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def content(self, name: str = "content") -> Path:
        """A folder with the probe as ``tool`` and ``bin/tool``, to be edited and made an image of."""
        folder = self.folder(name)
        for target in (folder / "tool", folder / "bin" / "tool"):
            target.parent.mkdir(exist_ok=True)
            shutil.copy(self.probes / "probe", target)
        return folder

    def image(self, kind: str, content: Path, name: str = "rom.img") -> Path:
        """Makes an image that belongs to root and that nobody else may write."""
        path = self.place / name
        maker, *options = MAKERS[kind]
        words = [path, content] if kind == "erofs" else [content, path]
        as_root(maker, *(options if kind == "erofs" else ()), *words, *(options if kind != "erofs" else ()))
        as_root("chown", "0:0", path)
        as_root("chmod", "644", path)
        return path

    def mount(self, source: Path | str, name: str, *options: str) -> Path:
        point = self.folder(name) if not Path(name).is_absolute() else Path(name)
        as_root("mount", *options, source, point)
        self.points.append(point)
        return point

    def rom(self, kind: str, *, content: Path | None = None, name: str = "rom", options: str = "ro") -> Path:
        """A mounted image."""
        image = self.image(kind, content or self.content(), f"{name}.img")
        return self.mount(image, name, "-t", kind, "-o", f"loop,{options}")

    def unmount_all(self) -> None:
        while self.points:
            as_root("umount", "--lazy", self.points.pop())

    def artifact(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """``launch_artifact.py`` as the actor."""
        return self.actor.run([*self.entry(), *words], **options)

    def entry(self) -> list[object]:
        return [self.actor.python, "-I", "-S", self.place / "scripts" / "launch_artifact.py"]

    def launch(
        self, path: Path | str, *arguments: object, root: Path | str = "", digest: str = "", **options: Any
    ) -> Ran:
        """Launches an artifact; its digest is that of the file as it is, unless given."""
        trusted = ["--trusted-launch-root", root] if root else []
        digest = digest or sha256(Path(path))
        done = self.artifact("--sha256", digest, *trusted, *options.pop("more", ()), path, "--", *arguments, **options)
        return Ran(status=done.returncode, out=done.stdout, log=done.stderr.splitlines())


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a launch."""

    status: int
    out: str
    log: list[str]

    @property
    def shown(self) -> list[dict[str, str]]:
        """What each probe showed."""
        lines = self.out.splitlines()
        return [dict(pair.split("=", 1) for pair in line.replace(" (deleted)", "_(deleted)").split()) for line in lines]


@pytest.fixture(scope="session")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``probe`` (dynamic), ``static`` and ``evil``, which marks what it shows."""
    folder = tmp_path_factory.mktemp("probes")
    for name, mark, options in (("probe", "good", []), ("static", "good", ["-static"]), ("evil", "evil", [])):
        words = ["gcc", "-O1", *options, f'-DMARK="{mark}"', "-o", str(folder / name), str(HERE / "probe.c")]
        subprocess.run(words, check=True)
    return folder


def make_host(name: str, probes: Path) -> Iterator[Host]:
    for actor in make_actor(name):
        host = Host(actor=actor, probes=probes)
        (host.place / "src").symlink_to(actor.source)
        shutil.copy(ROOT / "scripts" / "launch_artifact.py", host.folder("scripts"))
        try:
            yield host
        finally:
            host.unmount_all()


@pytest.fixture(params=actors())
def host(request: pytest.FixtureRequest, probes: Path) -> Iterator[Host]:
    """Once for root, once for an ordinary user."""
    yield from make_host(request.param, probes)


@pytest.fixture
def root_host(probes: Path) -> Iterator[Host]:
    yield from make_host("root", probes)


@pytest.fixture
def user_host(probes: Path) -> Iterator[Host]:
    yield from make_host("user", probes)


@pytest.fixture(params=["erofs", "squashfs"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of image."""
    return str(request.param)
