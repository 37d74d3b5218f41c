"""What a checked launch costs: ``python3 benchmarks/artifacts.py``.

Copies and hashes a file of 127 MB the way a launch does, beside ``cp`` and ``sha256sum`` and beside a bare copy into
memory and a bare hash, all in the same run, warm and cold; times the decision in place on a real image (as root); and
shows the memory that a launch holds. Rounds are interleaved and each is judged by its fastest, so that a busy machine
slows all alike. ``--assert`` fails beyond the aims.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from runner_e2e.artifacts.launch import Launch, prepare  # noqa: E402
from runner_e2e.artifacts.opening import open_artifact  # noqa: E402
from runner_e2e.artifacts.sealed import digest_of  # noqa: E402
from runner_e2e.artifacts.trusted_root import RefusedRoot, TrustedRoot, examine_root  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = 127_000_000
AIM_RATIO = 1.15
AIM_DECISION_US = 50.0
SNAPSHOT, COPY, HASH = "snapshot: copy and hash", "copy alone", "hash alone"


class Work:
    """The file and everything that is timed on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "artifact"
        self.file.write_bytes(os.urandom(BYTES))
        self.file.chmod(0o755)
        self.digest = hashlib.sha256(self.file.read_bytes()).hexdigest()

    def snapshot(self) -> int:
        """Everything up to the exec."""
        return prepare(str(self.file), sha256=self.digest).descriptor

    def copy(self) -> int:
        """Into a memory file, as a launch does, without a hash."""
        memory = os.memfd_create("copy")
        with self.file.open("rb") as file:
            position = 0
            while sent := os.sendfile(memory, file.fileno(), position, 2 << 20):
                position += sent
        return memory

    def hash(self) -> None:
        """As a launch does, without a copy."""
        with self.file.open("rb") as file:
            digest_of(file.fileno())

    def cp(self) -> None:
        """``cp`` onto the fastest place there is, a tmpfs, where the machine has one."""
        place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else self.folder
        copy = place / f"artifact-{os.getpid()}"
        try:
            subprocess.run(["cp", str(self.file), str(copy)], check=True)
        finally:
            copy.unlink(missing_ok=True)

    def sha256sum(self) -> None:
        """The program."""
        subprocess.run(["sha256sum", str(self.file)], check=True, stdout=subprocess.DEVNULL)

    def both(self) -> None:
        """What a script without a launcher would do."""
        self.cp()
        self.sha256sum()

    def forget(self) -> None:
        """Drops the file from the page cache."""
        with self.file.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def candidates(self) -> dict[str, Callable[[], int | None]]:
        """Name -> what is timed; it returns the memory file that it made, if any."""
        return {
            SNAPSHOT: self.snapshot,
            COPY: self.copy,
            HASH: self.hash,
            "cp": self.cp,
            "sha256sum": self.sha256sum,
            "cp, then sha256sum": self.both,
        }


def milliseconds(action: Callable[[], int | None]) -> float:
    """The time until the result is there; giving its memory back is not part of a launch."""
    began = time.perf_counter()
    memory = action()
    taken = (time.perf_counter() - began) * 1000
    if memory is not None:
        os.close(memory)
    return taken


def race(work: Work, rounds: int, *, cold: bool) -> dict[str, list[float]]:
    """Interleaved rounds of every candidate; the first one fills caches."""
    samples: dict[str, list[float]] = {name: [] for name in work.candidates()}
    for number in range(rounds + (not cold)):
        for name, action in work.candidates().items():
            if cold:
                work.forget()
            taken = milliseconds(action)
            if cold or number:
                samples[name].append(taken)
    return samples


def show(title: str, samples: dict[str, list[float]]) -> float:
    """Prints a table; returns the snapshot's ratio to the slower of copy and hash."""
    fastest = {name: min(values) for name, values in samples.items()}
    slower = max(fastest[COPY], fastest[HASH])
    print(f"{title}\n{'':26}{'median':>12}{'fastest':>12}{'of the slower of copy and hash':>33}")
    for name, best in fastest.items():
        print(f"{name:26}{statistics.median(samples[name]):9.1f} ms{best:9.1f} ms{best / slower:32.2f}x")
    print()
    return fastest[SNAPSHOT] / slower


def mounted(work: Work) -> tuple[Path, list[str]] | None:
    """The file on a mounted image, and the command that unmounts it; None where this user may not mount."""
    maker = shutil.which("mkfs.erofs", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if os.geteuid() != 0 or not maker:
        return None
    content, point, image = work.folder / "content", work.folder / "rom", work.folder / "rom.img"
    content.mkdir()
    point.mkdir()
    shutil.copy(work.file, content / "artifact")
    subprocess.run([maker, str(image), str(content)], check=True, capture_output=True)
    image.chmod(0o644)
    if subprocess.run(["mount", "-o", "loop,ro", str(image), str(point)], check=False).returncode:
        return None
    return point, ["umount", str(point)]


def decide(root: TrustedRoot, path: Path, rounds: int = 20_000) -> tuple[float, float]:
    """Microseconds of the decision alone (median, fastest), for an artifact that is open."""
    artifact = open_artifact(str(path))
    samples = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        doubt = root.doubt(artifact.descriptor, artifact.device)
        samples.append((time.perf_counter_ns() - began) / 1000)
        assert doubt is None
    artifact.close()
    return statistics.median(samples), min(samples)


def prepare_in_place(root: TrustedRoot, path: Path, rounds: int = 2000) -> float:
    """Microseconds of everything before the exec: open, pin, judge, decide."""
    samples = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        prepare(str(path), sha256="0" * 64, root=root).close()
        samples.append((time.perf_counter_ns() - began) / 1000)
    return statistics.median(samples)


def held(launch: Launch) -> float:
    """MiB of memory that the kernel has allocated for this launch alone; pages of an image are cache, given back."""
    with launch:
        return os.fstat(launch.descriptor).st_blocks * 512 / 2**20 if launch.how == "sealed-snapshot" else 0.0


def measure_in_place(work: Work) -> float | None:
    """Prints the figures of the trusted root; returns the microseconds of a decision, or None."""
    place = mounted(work)
    if place is None:
        print("In place: not measured, because mounting an image needs root and mkfs.erofs")
        return None
    point, unmount = place
    try:
        root = examine_root(str(point))
        if isinstance(root, RefusedRoot):
            print(f"In place: not measured, because {root.reason.text}")
            return None
        median, best = decide(root, point / "artifact")
        whole = prepare_in_place(root, point / "artifact")
        memory = held(prepare(str(point / "artifact"), sha256="0" * 64, root=root))
        print(f"In place: decision {median:.1f} us (fastest {best:.1f}), with opening and judging {whole:.1f} us")
        print(f"Memory held in place: {memory:.0f} MiB")
        root.close()
        return median
    finally:
        subprocess.run(unmount, check=True)


def main() -> int:
    """Measures and prints; 1 when something is beyond its aim and that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="rounds, warm; a third of them cold (default: 10)")
    parser.add_argument("--assert", dest="strict", action="store_true", help="fail beyond the aims")
    options = parser.parse_args()
    load = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    print(f"{BYTES / 1e6:.0f} MB, Python {platform.python_version()}, Linux {platform.release()}, {load}\n")
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder))
        ratio = show("Warm", race(work, options.rounds, cold=False))
        show("Cold (the file is dropped from the page cache)", race(work, max(2, options.rounds // 3), cold=True))
        memory = held(prepare(str(work.file), sha256=work.digest))
        print(f"Memory held by a snapshot: {memory:.0f} MiB, while it runs")
        decision = measure_in_place(work)
    late = ratio > AIM_RATIO or (decision is not None and decision > AIM_DECISION_US)
    print(f"\nAims: warm {AIM_RATIO:.2f}x ({ratio:.2f}x here), decision {AIM_DECISION_US:.0f} us")
    return 1 if late and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
