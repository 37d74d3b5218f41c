"""Launches a harness by its content where the catalog lists its executable, and reads how that went."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from runner_e2e.artifacts.command import entry
from runner_e2e.artifacts.listing import Listing
from runner_e2e.report.results import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runner_e2e.cells.model import Artifacts
    from runner_e2e.engine.processes import Ended
    from runner_e2e.engine.supervisor import Specification

__all__ = ["launched_by_content", "listing_of", "refused_harness"]

# The statuses by which a launcher says that the artifact never ran.
_NEVER_RAN = frozenset({125, 126, 127})


def listing_of(artifacts: Artifacts, *, target: Path) -> Listing:
    """What the catalog lists, by real paths on this machine; paths that are not absolute are relative to *target*."""
    files = {os.path.realpath(target / file.path): file.sha256 for file in artifacts.files}
    return Listing(files=files, trusted_launch_root=artifacts.trusted_launch_root)


def launched_by_content(specification: Specification, listing: Listing) -> Specification:
    """The same harness, started by the launcher of artifacts where *listing* has its program; else unchanged.

    The launcher becomes the harness: process, session, streams and environment stay the same.
    """
    found = listing.find(specification["program"])
    if found is None:
        return specification
    real, digest = found
    root = ["--trusted-launch-root", listing.trusted_launch_root] if listing.trusted_launch_root else []
    words = [*entry(sys.executable), "--sha256", digest, *root, real, "--", *specification["command"][1:]]
    return {**specification, "program": words[0], "command": words}


def refused_harness(
    specification: Specification, listing: Listing, ended: Ended, reports: Iterable[Mapping[str, object]]
) -> Failure | None:
    """The failure of a harness whose content was not the expected one, or None where it ran."""
    found = listing.find(specification["program"])
    if found is None or ended.code not in _NEVER_RAN:
        return None
    for report in reports:
        reason = report.get("reason")
        if report.get("how") == "refused" and report.get("path") == found[0] and isinstance(reason, dict):
            return Failure(failure_class="permanent_infrastructure", message=f"the harness never ran: {reason['text']}")
    return None
