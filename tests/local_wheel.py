"""A package made on the spot, so that real installs with hashes need no network."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "local_example"


def make_wheel(directory: Path) -> Path:
    """Writes a pure wheel of one module, with the record that the format asks for."""
    files = {
        f"{NAME}.py": "VALUE = 'from the wheel'\n",
        f"{NAME}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{NAME}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
        f"{len(text)}\n"
        for path, text in files.items()
    )
    files[f"{NAME}-1.0.dist-info/RECORD"] = record + f"{NAME}-1.0.dist-info/RECORD,,\n"
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{NAME}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def make_lock(path: Path, wheel: Path, digest: str = "") -> Path:
    """Writes a lock with the wheel's hash, or with another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{NAME}==1.0 --hash=sha256:{digest or hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return path
