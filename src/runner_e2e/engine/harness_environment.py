"""Builds the environment of a harness from an allowlist: what it needs to run, and only its own credential."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner_e2e.cells.model import Catalog, Cell

__all__ = ["ALLOWED", "ALLOWED_PREFIXES", "check_credentials", "credentials_of", "harness_environment"]

# Who and where the user is, how text looks, how the network and its certificates are reached, where libraries of a
# tool cache lie. Everything else is named in the catalog (pass-env) or does not get through.
ALLOWED: Final = (
    "CI",
    "COLORTERM",
    "CURL_CA_BUNDLE",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_COLOR",
    "NO_PROXY",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
ALLOWED_PREFIXES: Final = ("LC_",)


def harness_environment(
    catalog: Catalog, cell: Cell, *, environ: Mapping[str, str], programs: str, product: Mapping[str, str]
) -> dict[str, str]:
    """Returns the whole environment of the cell's harness.

    Later ones win: allowed variables, ``pass-env``, then the literal values of harness, profile and environment, then
    the cell's credentials, then *product* (what this product says, the selected id too). Credentials of other
    profiles and environments never get through. *programs* is a directory that is put first on ``PATH``.
    """
    chosen = {name: value for name, value in environ.items() if name in ALLOWED or name.startswith(ALLOWED_PREFIXES)}
    chosen |= {name: environ[name] for name in catalog.harness.pass_environment if name in environ}
    chosen |= catalog.harness.environment
    chosen |= catalog.profiles[cell.profile].environment
    chosen |= catalog.environments[cell.environment].variables
    for name in (*catalog.credentials, *catalog.confidential.environment, catalog.selected_id.variable):
        chosen.pop(name, None)
    chosen |= credentials_of(cell, environ)
    chosen |= product
    chosen["PATH"] = os.pathsep.join([programs, chosen.get("PATH") or os.defpath])
    return chosen


def credentials_of(cell: Cell, environ: Mapping[str, str]) -> dict[str, str]:
    """The credentials that the cell's profile and environment name, with their values."""
    return {name: environ[name] for name in cell.credentials if environ.get(name)}


def check_credentials(cells: Iterable[Cell], environ: Mapping[str, str]) -> None:
    """Raises :class:`UsageError` naming every credential that is needed and missing, before anything is started."""
    missing: dict[str, str] = {}
    for cell in cells:
        for name in cell.credentials:
            if not environ.get(name, "").strip():
                missing.setdefault(name, cell.profile)
    if missing:
        names = ", ".join(missing)
        raise UsageError(
            f"{names} {'is' if len(missing) == 1 else 'are'} not set",
            why=f"profile {next(iter(missing.values()))} is paid with it; nothing was started",
            fix="give it to this step from a secret, in its env, and to no other step",
        )
