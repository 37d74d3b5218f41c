"""Places through which a helper outside would read for the agent, and files that others run later."""

from __future__ import annotations

import os
import sys

from runner_e2e.sandbox.answers import ask
from runner_e2e.sandbox.facts import is_there
from runner_e2e.sandbox.quick_client import SERVER_PREFIX, SERVER_VARIABLE

__all__ = ["RESOLVERS", "SOCKETS", "STARTUP_FILES", "fork_server", "own_code", "sockets"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Sockets (or their directories) of services that read files, start programs or hand out keys for their clients.
SOCKETS = (
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/buildkit",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/dbus",
    "/run/systemd/private",
    "/run/systemd/notify",
    "/run/udev/control",
    "/run/libvirt",
    "/run/lxd.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/run/pcscd",
    "/run/gssproxy.sock",
    "/tmp/.X11-unix",  # noqa: S108 - where X servers put their sockets
    "/run/user/{user}",
    "/run/screen",
    "/tmp/tmux-{user}",  # noqa: S108 - where tmux puts its sockets
)
# Sockets of services that ask the network for their clients: names, at least, and what their owners answer.
RESOLVERS = (
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/resolve/io.systemd.Resolve.Monitor",
    "/run/avahi-daemon/socket",
    "/run/cups/cups.sock",
    "/run/unbound.ctl",
)
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX")

# Entries of a home that shells, login managers and tools run, or that say what they run.
STARTUP_FILES = frozenset(
    {
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".bashrc",
        ".bin",
        ".cargo",
        ".config",
        ".cshrc",
        ".docker",
        ".envrc",
        ".gitconfig",
        ".gnupg",
        ".inputrc",
        ".kshrc",
        ".kube",
        ".local",
        ".login",
        ".netrc",
        ".npmrc",
        ".nvm",
        ".oh-my-zsh",
        ".pam_environment",
        ".profile",
        ".pyenv",
        ".pydistutils.cfg",
        ".pypirc",
        ".rbenv",
        ".ssh",
        ".tcshrc",
        ".tmux.conf",
        ".vim",
        ".vimrc",
        ".xprofile",
        ".xsession",
        ".xsessionrc",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "bin",
    }
)


def sockets(user: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Paths to hide where they exist, for *user* and what its variables name."""
    named = []
    for name in _SOCKET_VARIABLES:
        # /path, unix:path=/path,guid=…, unix:///path, and tmux's /path,process,session
        value = environment.get(name, "").removeprefix("unix:").removeprefix("path=").partition(",")[0]
        value = "/" + value.lstrip("/") if value.startswith("/") else ""
        if value:
            named.append(value)
    return (*(path.format(user=user) for path in SOCKETS), *named)


def fork_server() -> tuple[str, ...]:
    """The directory of the fork server that this process launches by or could; none where the variable names no server.

    Only a directory that was made for a server: a value that somebody made up must not hide all of ``/tmp``.
    """
    directory, name = os.path.split(os.environ.get(SERVER_VARIABLE, ""))
    if not name.isdecimal() or not os.path.basename(directory).startswith(SERVER_PREFIX):
        return ()
    return (directory,) if directory.startswith("/") and is_there(f"{directory}/{name}") else ()


def own_code() -> tuple[str, ...]:
    """Existing directories that the code of this process comes from: who writes there runs in the next launcher.

    They are this product's sources and entry scripts, the environment of this Python, and the Python beneath that.
    """
    return tuple(place for place in _places_of_code() if ask(os.path.isdir, place))


_places: tuple[str, ...] = ()


def _places_of_code() -> tuple[str, ...]:
    """Found once: links that are changed later lead elsewhere than this process's code came from."""
    global _places  # noqa: PLW0603 - a fact about this process
    if _places:
        return _places
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    environment = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    library = os.path.dirname(os.path.realpath(os.__file__))
    places = [source, os.path.join(os.path.dirname(source), "scripts"), library]
    places += [os.path.join(sys.base_prefix, name) for name in ("bin", "lib")]
    if os.path.exists(os.path.join(environment, "pyvenv.cfg")):
        places.append(environment)
    _places = tuple(dict.fromkeys(places))
    return _places
