"""The artifacts that a catalog names, as the processes of an attempt are told of them, and what they leave behind.

The engine writes the listing as JSON, outside what agents see. Whoever starts a program of an attempt looks it up
there: one that is listed is launched by its content. How each ran, and why, is left as a report.
"""

from __future__ import annotations

import os
import time

from runner_e2e.sandbox.policy import LISTING_VARIABLE
from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner_e2e.artifacts.launch import Launch
    from runner_e2e.errors import RunnerE2EError

__all__ = [
    "LISTING_VARIABLE",
    "REPORTS_VARIABLE",
    "SCHEMA",
    "Listing",
    "find_program",
    "leave_report",
    "prepare_listed",
    "refusal",
]

REPORTS_VARIABLE = "RUNNER_E2E_ARTIFACT_REPORTS"
SCHEMA = "runner-e2e.artifacts/v1"


class Listing(Record):
    """Digests (64 hex digits) by real path, and the trusted launch root or ""."""

    files: Mapping[str, str]
    trusted_launch_root: str = ""

    def to_document(self) -> dict[str, object]:
        """The JSON object of this listing."""
        return {"schema": SCHEMA, "files": dict(self.files), "trusted_launch_root": self.trusted_launch_root}

    def find(self, program: str) -> tuple[str, str] | None:
        """The real path and the digest of *program* where it is listed, by whichever links it is reached."""
        real = os.path.realpath(program)
        return (real, self.files[real]) if real in self.files else None


def find_program(name: str, environment: Mapping[str, str], directory: str) -> str:
    """The file that *name* means, looked for on ``PATH`` as shells do; *name* itself, made absolute, when none is."""
    places = [name] if "/" in name else [f"{place}/{name}" for place in environment.get("PATH", os.defpath).split(":")]
    for place in places:
        path = os.path.join(directory, place.removeprefix("/") if place.startswith("//") else place)
        if os.path.isfile(path) and os.access(path, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            return path
    return os.path.join(directory, name)


def prepare_listed(
    name: str, environment: Mapping[str, str], directory: str, *, log: Callable[[str], None]
) -> Launch | None:
    """Prepares the program *name* where the environment brings a listing that has it; None where it has not.

    Leaves a report. Raises :class:`LaunchError` and its kinds when the program is listed and refused.
    """
    path = environment.get(LISTING_VARIABLE)
    if not path:
        return None
    listing = _read(path)
    found = listing.find(find_program(name, environment, directory))
    if found is None:
        return None
    from runner_e2e.artifacts.launch import prepare
    from runner_e2e.artifacts.reasons import root_refused
    from runner_e2e.artifacts.trusted_root import RefusedRoot, examine_root
    from runner_e2e.errors import LaunchError

    root = examine_root(listing.trusted_launch_root) if listing.trusted_launch_root else None
    if isinstance(root, RefusedRoot):
        log(root_refused(root.path, root.reason))
    real, digest = found
    try:
        launch = prepare(real, sha256=digest, root=root)
    except LaunchError as error:
        leave_report(refusal(real, digest, error), environment)
        raise
    for line in (*launch.warnings(), launch.line()):
        log(line)
    leave_report(launch.to_document(), environment)
    return launch


def refusal(path: str, sha256: str, error: RunnerE2EError) -> dict[str, object]:
    """The report of an artifact that was not launched."""
    problem = error.problem
    reason = {"code": "refused", "text": f"{problem.what}: {problem.why}" if problem.why else problem.what}
    return {"path": path, "how": "refused", "reason": reason, "sha256": sha256, "size_bytes": 0, "memory_bytes": 0}


def leave_report(document: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Writes how an artifact ran where the environment names a directory for that."""
    directory = environment.get(REPORTS_VARIABLE)
    if not directory:
        return
    import json

    from runner_e2e.errors import LaunchError

    path = os.path.join(directory, f"{time.time_ns():020d}-{os.getpid()}.json")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise LaunchError(f"the report {path} cannot be written", why=why, fix="check the directory") from error


def _read(path: str) -> Listing:
    import json

    from runner_e2e.errors import ConfigurationError, Place

    place = Place(path=path)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            "the listing of artifacts cannot be read", why=str(error), fix=f"unset {LISTING_VARIABLE}", place=place
        ) from error
    files = document.get("files") if isinstance(document, dict) else None
    root = document.get("trusted_launch_root", "") if isinstance(document, dict) else None
    if (
        not isinstance(files, dict)
        or not isinstance(root, str)
        or document.get("schema") != SCHEMA
        or not all(isinstance(digest, str) for digest in files.values())
    ):
        raise ConfigurationError(
            "the listing of artifacts is not one", fix=f'write {{"schema": "{SCHEMA}", "files": {{}}}}', place=place
        )
    return Listing(files=files, trusted_launch_root=root)
