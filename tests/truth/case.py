"""Cases: workflows whose verdict is known because they were run.

A case is a file ``NAME.leak.yml`` or ``NAME.clean.yml``, or a folder ``NAME.leak/`` or ``NAME.clean/`` laid out
like a repository when the workflow needs actions, other workflows or scripts beside it. The word in the name is what
its author believed; ``NAME.leak.truth.json`` beside it is what execution showed. The two must agree.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

Verdict = Literal["leak", "clean"]
WORKFLOW = ".github/workflows/case.yml"
MARKER = "# leak-here"
NAME = re.compile(r"(?P<stem>[a-z0-9][a-z0-9-]*)\.(?P<verdict>leak|clean)(?:\.yml)?")


class CaseError(Exception):
    """A case that cannot be judged: what is wrong with it and what to do."""


class IncompleteAuditError(CaseError):
    """The kernel's record of one run was not whole; another run may be."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """``path`` is the file or folder; ``topic`` the folder it stands in; ``stem`` joins a leak to its clean twin."""

    path: Path
    topic: str
    stem: str
    belief: Verdict

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.stem}.{self.belief}"

    @property
    def truth_path(self) -> Path:
        return self.path.parent / f"{self.stem}.{self.belief}.truth.json"

    def files(self) -> dict[str, Path]:
        """Path in the repository -> path of the stored file."""
        if self.path.is_file():
            return {WORKFLOW: self.path}
        return {str(path.relative_to(self.path)): path for path in sorted(self.path.rglob("*")) if path.is_file()}

    def digest(self) -> str:
        """SHA-256 over names and contents: a truth belongs to exactly this text."""
        whole = hashlib.sha256()
        for name, path in sorted(self.files().items()):
            content = path.read_bytes()
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
        return whole.hexdigest()

    def lay_out(self, repository: Path) -> None:
        """Writes the case as a repository; scripts keep their execute bit."""
        for name, path in self.files().items():
            target = repository / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def find_cases(directory: Path) -> tuple[Case, ...]:
    """All cases in a file or folder, by name. A stray file is an error: a case with a wrong name would never run."""
    if not directory.is_dir() or NAME.fullmatch(directory.name):
        return (read_case(directory),)
    found = []
    for path in sorted(directory.iterdir()):
        if NAME.fullmatch(path.name):
            found.append(read_case(path))
        elif path.is_dir():
            found += find_cases(path)
        elif not path.name.endswith((".truth.json", ".md")):
            raise CaseError(f"{path}: not a case; name it NAME.leak.yml or NAME.clean.yml")
    return tuple(found)


def read_case(path: Path) -> Case:
    """The case in this file or folder."""
    if not path.exists():
        raise CaseError(f"{path}: no such file or folder; give a case or a folder of cases")
    match = NAME.fullmatch(path.name)
    if not match:
        raise CaseError(f"{path}: not a case; name it NAME.leak.yml, NAME.clean.yml, or a folder NAME.leak/")
    belief: Verdict = "leak" if match["verdict"] == "leak" else "clean"
    case = Case(path=path, topic=path.parent.name, stem=match["stem"], belief=belief)
    if WORKFLOW not in case.files():
        raise CaseError(f"{path}: no {WORKFLOW} in it; that is the workflow that is run")
    return case
