"""Catalogs for tests of the engine, built without a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runner_e2e.cells.model import (
    Case,
    Catalog,
    Cell,
    Confidential,
    Credential,
    Environment,
    Harness,
    Profile,
    SelectedId,
    Suite,
)
from runner_e2e.cells.selectors import Selection, select

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"


def catalog(
    command: tuple[str, ...] = ("./harness",),
    *,
    cases: tuple[str, ...] = ("one",),
    timeout: float = 20.0,
    credential: str | None = None,
    **changes: Any,
) -> Catalog:
    """One suite, one profile, one environment; *changes* are fields of the harness or of the catalog."""
    harness_fields = {
        name: changes.pop(name) for name in ("directory", "environment", "pass_environment", "hide") if name in changes
    }
    profile_environment: Mapping[str, str] = changes.pop("profile_environment", {})
    fields: dict[str, Any] = {
        "path": "runner-e2e.yml",
        "harness": Harness(command=command, **harness_fields),
        "selected_id": SelectedId(),
        "confidential": Confidential(),
        "credentials": {name: Credential(name=name) for name in ("OWN_KEY", "OTHER_KEY")},
        "profiles": {"profile": Profile(name="profile", credential=credential, environment=profile_environment)},
        "environments": {"local": Environment(name="local", variables={"FROM_ENVIRONMENT": "local"})},
        "suites": {
            "suite": Suite(
                name="suite",
                profiles=("profile",),
                environments=("local",),
                cases={name: Case(name=name, timeout=timeout, expected_cost=None) for name in cases},
            )
        },
        "groups": {},
        "exclusions": (),
        "grace": 1.0,
        "retries": 1,
        "plain_ids": False,
        "places": {},
    }
    return Catalog(**(fields | changes))


def cells(of: Catalog) -> tuple[Cell, ...]:
    return select(of, Selection(all=True))
