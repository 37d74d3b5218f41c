"""Permission profiles for Codex's own sandbox, and the launch arguments that define them. Written for Codex 0.160.0.

Two forms of host. On a *local* host the profiles are narrow: nothing is readable but what is named, and Codex calls its
file-system helper, in a namespace of its own, also to read instruction files. In an *external sandbox* (a host that
isolates the agent itself and often allows no such namespace) the planning profile reads the whole root, which Codex
serves without the helper. Both refuse every write but those that are granted here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_PROFILE",
    "EXTERNAL_PROFILE",
    "EXTERNAL_SANDBOX_VARIABLE",
    "NETWORK_VARIABLE",
    "PLANNING_PROFILE",
    "PROFILES",
    "Access",
    "Host",
    "RootAccess",
    "host_of",
    "launch_arguments",
    "profile_name",
    "root_access",
    "rules",
    "session_context",
    "toml_text",
]

DEFAULT_PROFILE: Final = "paperclip-runner-workspace-only"
PLANNING_PROFILE: Final = "paperclip-runner-workspace-read-only"
EXTERNAL_PROFILE: Final = "paperclip-runner-external-sandbox"
PROFILES: Final = (DEFAULT_PROFILE, PLANNING_PROFILE, EXTERNAL_PROFILE)

EXTERNAL_SANDBOX_VARIABLE: Final = "PAPERCLIP_RUNNER_EXTERNAL_SANDBOX"
NETWORK_VARIABLE: Final = "PAPERCLIP_RUNNER_NETWORK_ACCESS"
# The directory of a broker's GitHub configuration, which it changes while an agent works; only with its token.
_BROKER_VARIABLE: Final = "PAPERCLIP_GITHUB_BROKER_TOKEN"
_GITHUB_VARIABLE: Final = "GH_CONFIG_DIR"

# Below CODEX_HOME, where Codex puts the programs that it calls itself by.
_HELPERS: Final = "tmp/arg0"
_ON: Final = frozenset({"1", "true", "enabled"})
_OFF: Final = frozenset({"", "0", "false", "disabled"})
# What commands of the agent get of Codex's environment. Values never stand on the command line.
_PASSED: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ")

Access = Literal["none", "read", "write"]
RootAccess = Literal["none", "read", "write"]
Rule: TypeAlias = "tuple[str, Access]"


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where Codex runs, and what beside the workspace it needs there. All paths are absolute.

    *codex_home* is ``CODEX_HOME``, *package* the directory of Codex's own programs; the narrow profiles grant of them
    what the helper needs. *readable* and *writable* are further grants; *protected* are read-only again within
    *writable*. *denied* are explicit denials of a preconfigured home or a custom policy; they are kept as they are, in
    the narrow profiles.
    """

    external_sandbox: bool = False
    network: bool = False
    codex_home: str | None = None
    package: str | None = None
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    passed_variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        single = [path for path in (self.codex_home, self.package) if path is not None]
        for path in (*single, *self.readable, *self.writable, *self.protected, *self.denied):
            _check_path(path)
        for name in self.passed_variables:
            if not name.replace("_", "a").isalnum() or not name.isascii() or name[0].isdigit():
                raise UsageError(
                    f"{name!r} is no name of a variable", fix="name variables of letters, digits and underscores"
                )


def host_of(environ: Mapping[str, str], **settings: object) -> Host:
    """The host that *environ* describes; *settings* are fields of :class:`Host` that replace or extend it.

    Raises :class:`UsageError` for a switch that is neither on nor off.
    """
    values: dict[str, object] = {
        "external_sandbox": _switch(environ, EXTERNAL_SANDBOX_VARIABLE),
        "network": _switch(environ, NETWORK_VARIABLE),
        "codex_home": environ.get("CODEX_HOME") or None,
    }
    values |= {name: value for name, value in settings.items() if value is not None}
    if environ.get(_BROKER_VARIABLE) and environ.get(_GITHUB_VARIABLE):
        writable = values.get("writable", ())
        assert isinstance(writable, tuple)
        values["writable"] = (*writable, environ[_GITHUB_VARIABLE])
    return Host(**values)  # type: ignore[arg-type]


def profile_name(host: Host, *, planning: bool) -> str:
    """The profile of a thread or turn."""
    if planning:
        return PLANNING_PROFILE
    return EXTERNAL_PROFILE if host.external_sandbox else DEFAULT_PROFILE


def root_access(host: Host, *, planning: bool) -> RootAccess:
    """What a session may do with the root of the file system, for its context."""
    if not host.external_sandbox:
        return "none"
    return "read" if planning else "write"


def session_context(host: Host, *, planning: bool) -> dict[str, object]:
    """What a session records of its permissions."""
    return {
        "permissionProfile": profile_name(host, planning=planning),
        "rootAccess": root_access(host, planning=planning),
        "networkAccess": _network(host),
        "externalSandbox": host.external_sandbox,
    }


def rules(host: Host, profile: str) -> tuple[Rule, ...]:
    """The file-system rules of one profile, in the order in which they are written; see :class:`Host`."""
    grants: tuple[Rule, ...] = (
        *((path, "write") for path in host.writable),
        *((path, "read") for path in host.protected),
    )
    if profile == EXTERNAL_PROFILE:
        return ((":root", "write"),)
    if profile == PLANNING_PROFILE and host.external_sandbox:
        return ((":root", "read"), *grants)
    own: list[str] = []
    if host.codex_home is not None:
        # Not CODEX_HOME itself, neither granted nor denied: a denial would take the helper away that lies in it.
        own.append(f"{host.codex_home.rstrip('/')}/{_HELPERS}")
    if host.package is not None:
        own.append(host.package)
    return (
        (":root", "none"),
        (":minimal", "read"),
        (":tmpdir", "none"),
        *((path, "none") for path in host.denied),
        *((path, "read") for path in (*own, *host.readable)),
        *grants,
    )


def launch_arguments(host: Host, *, planning: bool = False) -> tuple[str, ...]:
    """The arguments that come before ``app-server`` (or ``exec``): every profile of this host, and which is used.

    All profiles are defined in every launch, so that one process can plan and then carry out; *planning* only chooses
    the one that holds where a request names none.
    """
    defined = (DEFAULT_PROFILE, PLANNING_PROFILE, *((EXTERNAL_PROFILE,) if host.external_sandbox else ()))
    passed = sorted({*_PASSED, *host.passed_variables})
    values = {"default_permissions": toml_text(profile_name(host, planning=planning))}
    for profile in defined:
        values[f"permissions.{profile}.filesystem"] = _table(host, profile)
        values[f"permissions.{profile}.network"] = f"{{enabled={'true' if _network(host) else 'false'}}}"
    values["shell_environment_policy.inherit"] = '"all"'
    values["shell_environment_policy.ignore_default_excludes"] = "false"
    values["shell_environment_policy.include_only"] = "[" + ", ".join(toml_text(name) for name in passed) + "]"
    return tuple(word for name, value in values.items() for word in ("-c", f"{name}={value}"))


def toml_text(text: str) -> str:
    """*text* as a basic string of TOML 1.0."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(host: Host, profile: str) -> str:
    entries = [f"{toml_text(path)}={toml_text(access)}" for path, access in rules(host, profile)]
    if profile == DEFAULT_PROFILE or (profile == PLANNING_PROFILE and not host.external_sandbox):
        access = "read" if profile == PLANNING_PROFILE else "write"
        entries.append(f'":workspace_roots"={{"."={toml_text(access)}}}')
    return "{" + ", ".join(entries) + "}"


def _network(host: Host) -> bool:
    """Only an external sandbox lets the network through, and only when it is told to."""
    return host.external_sandbox and host.network


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in _ON:
        return True
    if value in _OFF:
        return False
    raise UsageError(
        f"{name} is neither on nor off", why=f"its value is {value!r}", fix="set it to 1 or enabled, to 0 or disabled"
    )


def _check_path(path: str) -> None:
    if not path.startswith("/") or any(not one.isprintable() for one in path):
        raise UsageError(
            f"{path!r} cannot stand in a permission profile",
            why="a profile takes absolute paths without control characters",
            fix="give the absolute path",
        )
    if not path.strip("/"):
        raise UsageError(
            "the root of the file system cannot be granted",
            why="a profile that grants everything is no profile",
            fix="name the directories that are needed",
        )
