"""What defines a cell, as a hash: two runs with one hash did the same thing, so that they may be compared.

Part of it: the id; the timeout and the grace; the harness (command, directory, environment, passed variables,
hidden paths); the artifacts with their digests, where there are some; what agents reach, unless that is open;
how the id reaches the harness; the profile's credential and environment; the environment's kind, credential and
variables. Not part of it, because none of it changes what runs: groups, expected cost, retries, exclusions,
manual-only, descriptions, the order of anything that has no order, and other cells.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.cells.ids import CellId
    from runner_e2e.cells.model import Catalog

__all__ = ["SCHEMA", "definition", "definition_hash"]

SCHEMA = "runner-e2e.definition/v1"


def definition(catalog: Catalog, cell: CellId, *, timeout: float) -> dict[str, object]:
    """Returns what defines *cell* as plain data, ready for JSON; *timeout* in seconds is the one in force."""
    profile = catalog.profiles[cell.profile]
    environment = catalog.environments[cell.environment]
    harness = catalog.harness
    chosen = catalog.selected_id
    network = catalog.network
    files = [[file.path, file.sha256] for file in catalog.artifacts.files]
    return {
        **({"artifacts": sorted(files)} if files else {}),
        **({"network": sorted(network.hosts) or network.reach} if network.reach != "open" else {}),
        "schema": SCHEMA,
        "id": str(cell),
        "timeout": float(timeout),
        "grace": float(catalog.grace),
        "harness": {
            "command": list(harness.command),
            "directory": harness.directory,
            "environment": dict(harness.environment),
            "pass_environment": sorted(harness.pass_environment),
            "hide": sorted(harness.hide),
        },
        "selected_id": {
            "variable": chosen.variable,
            "detection": chosen.detection,
            "argv_fallback": chosen.argv_fallback,
            "sources": sorted(chosen.sources),
        },
        "profile": {"credential": profile.credential, "environment": dict(profile.environment)},
        "environment": {
            "kind": environment.kind,
            "credential": environment.credential,
            "variables": dict(environment.variables),
        },
    }


def definition_hash(catalog: Catalog, cell: CellId, *, timeout: float) -> str:
    """Returns SHA-256 over :func:`definition` as JSON with sorted keys, no blanks and ASCII only: 64 hex digits."""
    text = json.dumps(
        definition(catalog, cell, timeout=timeout), sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()
