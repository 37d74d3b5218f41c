"""Brings what the tests run against: Debian packages by apt where that is allowed, node modules by npm.

Run by ``make test``. Where it may not install, it names what is missing and stops.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NODE = HERE / "node"
LOCK = HERE.parent / "requirements" / "runtime.txt"
DEVELOPMENT_LOCK = HERE.parent / "requirements" / "dev.txt"
WHEELS = HERE.parent / ".venv" / "wheels"

# Program looked for -> Debian and Ubuntu package that brings it.
PACKAGES = {
    "bats": "bats",
    "bwrap": "bubblewrap",
    "cpio": "cpio",
    "curl": "curl",
    "envsubst": "gettext-base",
    "gcc": "gcc",
    "git": "git",
    "mkfs.erofs": "erofs-utils",
    "mksquashfs": "squashfs-tools",
    "node": "nodejs",
    "npm": "npm",
    "shellcheck": "shellcheck",
    "strace": "strace",
    "sudo": "sudo",
    "unzip": "unzip",
    "wget": "wget",
    "xz": "xz-utils",
    "zip": "zip",
}


def missing_packages() -> list[str]:
    """Packages whose program is not on PATH (also looked for in the sbin directories)."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
    return sorted(package for program, package in PACKAGES.items() if not shutil.which(program, path=path))


def privilege() -> list[str] | None:
    """The prefix that makes a command run as root without asking, or None."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and not subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode:
        return ["sudo", "-n", "DEBIAN_FRONTEND=noninteractive"]
    return None


def install_packages(packages: list[str]) -> bool:
    """Installs Debian packages; False (with a message) where that is not possible."""
    prefix = privilege()
    command = f"apt-get install --no-install-recommends {' '.join(packages)}"
    if prefix is None or not shutil.which("apt-get"):
        print(
            f"set_up: the tests need {', '.join(packages)}, and this user may not install them.",
            file=sys.stderr,
        )
        print(f"  fix: as an administrator run: {command}", file=sys.stderr)
        return False
    print(f"set_up: {command}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run([*prefix, "apt-get", *words], env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            print(f"set_up: apt-get {words[0]} ended with status {done.returncode}", file=sys.stderr)
            return False
    return True


def install_node_modules() -> bool:
    """Installs the locked node modules when the lock changed since the last time."""
    lock = NODE / "package-lock.json"
    stamp = NODE / "node_modules" / ".complete"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return True
    print("set_up: npm ci (real agents and parsers that the tests run against)", flush=True)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=NODE, check=False).returncode:
        print("set_up: npm ci failed; its own message stands above", file=sys.stderr)
        return False
    stamp.write_bytes(lock.read_bytes())
    return True


def build_backend() -> str:
    """The locked entry of what builds this package, for tests that install it as a user does."""
    lines = DEVELOPMENT_LOCK.read_text().splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if line.startswith("setuptools=="))
    end = next((at for at in range(start + 1, len(lines)) if not lines[at].startswith(" ")), len(lines))
    return "".join(lines[start:end])


def download_wheels() -> bool:
    """Keeps the locked packages as files, from which tests install the action and the package without network."""
    stamp = WHEELS / ".complete"
    wanted = LOCK.read_bytes() + build_backend().encode() + sys.version.encode()
    if stamp.is_file() and stamp.read_bytes() == wanted:
        return True
    print("set_up: pip download (the locked packages, for tests that install them)", flush=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir(parents=True)
    backend = WHEELS / "build-backend.txt"
    backend.write_text(build_backend())
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary=:all:", "--no-deps", "-r", str(LOCK), "-r", str(backend)]
    command += ["-d", str(WHEELS)]
    if subprocess.run(command, check=False).returncode:
        print("set_up: pip download failed; its own message stands above", file=sys.stderr)
        return False
    stamp.write_bytes(wanted)
    return True


def main() -> int:
    """Installs what is missing; 0 when everything is there."""
    packages = missing_packages()
    if packages and not install_packages(packages):
        return 1
    return 0 if install_node_modules() and download_wheels() else 1


if __name__ == "__main__":
    sys.exit(main())
