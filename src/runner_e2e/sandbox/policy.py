"""What a launch hides, exposes and requires: plain data, read from JSON, merged without looking at the machine.

Paths are absolute. Whether they exist and what they lead to is the business of :mod:`runner_e2e.sandbox.facts`;
whether they may stand together is decided in :mod:`runner_e2e.sandbox.refusals`.
"""

from __future__ import annotations

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    # How much a layer matters to a launch.
    Need = Literal["required", "best-available", "off"]
    # What keeps the covers in place.
    Wall = Literal["landlock", "locked-mounts"]
    # Whom the agent runs as where the launcher is privileged: a user of its own, or the launcher's user without
    # capabilities.
    Identity = Literal["agent", "keep"]
    # What an agent reaches: what its launcher reaches, nothing, its own loopback, or hosts through a proxy too.
    Reach = Literal["open", "none", "loopback", "hosts"]

__all__ = [
    "IDENTITIES",
    "LAYERS",
    "NEEDS",
    "OPEN_NETWORK",
    "PATH_LISTS",
    "REACHES",
    "SCHEMA",
    "SWITCHES",
    "WALLS",
    "EnvironmentRules",
    "Network",
    "Policy",
]

SCHEMA = "runner-e2e.sandbox-policy/v1"
NEEDS: tuple[Need, ...] = ("required", "best-available", "off")
WALLS: tuple[Wall, ...] = ("landlock", "locked-mounts")
IDENTITIES: tuple[Identity, ...] = ("agent", "keep")
REACHES: tuple[Reach, ...] = ("none", "loopback", "hosts", "open")  # the narrowest first

# Hiding is required: no launch without it. What only some hosts can do is taken where it is there, and reported.
LAYERS: Mapping[str, Need] = {
    "descriptors": "required",
    "session": "required",
    "keyrings": "best-available",
    "mounts": "best-available",
    "pids": "best-available",
    "ipc": "best-available",
    "network": "off",
    "identity": "best-available",
    "startup-files": "best-available",
    "capabilities": "required",
    "wall": "required",
    "scopes": "best-available",
    "self-check": "required",
}
NO_LIMITS: Mapping[str, int] = {}
INDISPENSABLE = ("descriptors", "capabilities", "wall", "self-check")

# Names the open descriptor of a running artifact. An agent gets its own, never that of the harness above it.
RUNTIME_VARIABLE = "PAPERCLIP_VERIFIED_RUNTIME_EXECUTABLE"

# Names the file in which the engine lists the artifacts of an attempt.
LISTING_VARIABLE = "RUNNER_E2E_ARTIFACTS"

# Variables that would tell an agent where it runs, or reach a helper outside that reads files for it.
DROPPED_VARIABLES = (
    "RUNNER_E2E_*",
    "GITHUB_*",
    "RUNNER_*",
    "INPUT_*",
    "ACTIONS_*",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "TMUX",
    "STY",
    "XAUTHORITY",
    "SUDO_*",
    RUNTIME_VARIABLE,
)


class EnvironmentRules(Record):
    """Which variables an agent gets: shell patterns of names. ``set_`` wins over ``drop``, ``drop`` over ``keep``."""

    keep: tuple[str, ...] = ("*",)
    drop: tuple[str, ...] = DROPPED_VARIABLES
    set_: tuple[tuple[str, str], ...] = ()


class Network(Record):
    """What an agent reaches. ``hosts`` are the rules of :mod:`runner_e2e.sandbox.hosts`, for the reach of that name."""

    reach: Reach = "open"
    hosts: tuple[str, ...] = ()

    def to_document(self) -> object:
        """What stands for it in JSON: the name of the reach, or the list of rules."""
        return list(self.hosts) if self.reach == "hosts" else self.reach


OPEN_NETWORK = Network()


class Policy(Record):
    """One launch.

    ``hide`` must exist; ``hide_if_present`` is hidden where it exists. ``expose`` lies beneath something hidden.
    ``create`` and ``create_files`` are directories and empty files made before the launch. ``workspace`` are
    directories that the agent writes in under a user of its own, ``read_only`` paths that it must not change,
    ``share`` paths that it reads although its user could not reach them, ``home`` its home directory. ``user`` is the
    number of the user for the identity ``agent``, or None for the default one. ``limits`` maps names of
    :data:`runner_e2e.sandbox.limits.LIMITS` to bytes, seconds or pieces. Files of a hidden path that have another
    name outside are refused, except in ``allow_hard_links_in``, where they are stated as a limit. A
    ``network`` that is not open requires the layer of that name.
    """

    hide: tuple[str, ...] = ()
    hide_if_present: tuple[str, ...] = ()
    expose: tuple[str, ...] = ()
    create: tuple[str, ...] = ()
    create_files: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    share: tuple[str, ...] = ()
    allow_hard_links_in: tuple[str, ...] = ()
    home: str = ""
    wall: Wall = "landlock"
    identity: Identity = "agent"
    user: int | None = None
    relay_streams: bool = True
    allow_hard_links: bool = False
    hide_deputies: bool = True
    network: Network = OPEN_NETWORK
    environment: EnvironmentRules = EnvironmentRules()
    layers: Mapping[str, Need] = LAYERS
    limits: Mapping[str, int] = NO_LIMITS

    def need(self, layer: str) -> Need:
        """How much *layer* matters here."""
        if layer == "network" and self.network.reach != "open":
            return "required"
        return self.layers.get(layer, LAYERS[layer])

    def requiring(self, *layers: str) -> Policy:
        """A copy that requires *layers*."""
        return self.replace(layers={**self.layers, **dict.fromkeys(layers, "required")})

    def joined(self, other: Policy) -> Policy:
        """A copy with the paths of *other* added."""
        paths = {name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in PATH_LISTS}
        return self.replace(**paths)

    def to_document(self) -> dict[str, object]:
        """The JSON object of this policy; :func:`policy_json.parse_policy` reads it back."""
        return {
            "schema": SCHEMA,
            **{name: list(getattr(self, name)) for name in PATH_LISTS},
            "home": self.home,
            "wall": self.wall,
            "identity": self.identity,
            "user": self.user,
            **{name: getattr(self, name) for name in SWITCHES},
            "network": self.network.to_document(),
            "environment": {
                "keep": list(self.environment.keep),
                "drop": list(self.environment.drop),
                "set": dict(self.environment.set_),
            },
            "layers": dict(self.layers),
            "limits": dict(self.limits),
        }


PATH_LISTS = (
    "hide",
    "hide_if_present",
    "expose",
    "create",
    "create_files",
    "workspace",
    "read_only",
    "share",
    "allow_hard_links_in",
)
SWITCHES = ("relay_streams", "allow_hard_links", "hide_deputies")
