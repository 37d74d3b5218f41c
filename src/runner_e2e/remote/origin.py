"""Which repository a clone comes from, by the addresses of its remotes."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from runner_e2e.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ORIGIN", "Origin", "api_of", "host_of", "parse_address", "read_origin", "shown_address", "site_of"]

ORIGIN: Final = "origin"

_CLOUD: Final = ".ghe.com"
_FIX: Final = "give it as --repo OWNER/NAME"
_SCHEMES: Final = frozenset({"https", "http", "ssh", "git", "git+ssh", "ssh+git", "git+https"})
# `[user@]host:path`, which git takes for ssh where no slash stands before the colon.
_SCP: Final = re.compile(r"(?:[^@/:\s]+@)?(?P<host>\[[^\]/\s]+\]|[^@/:\s]+):(?P<path>[^\s]+)")
_PATH: Final = re.compile(r"/*(?P<owner>[A-Za-z0-9_.-]+)/(?P<name>[A-Za-z0-9_.-]+?)(?:\.git)?/*")
# Other names of the same site: https://docs.github.com/en/authentication/troubleshooting-ssh/using-ssh-over-the-https-port
_ALIASES: Final = {"www.github.com": "github.com", "ssh.github.com": "github.com"}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A repository on a site: its *host*, without port and in small letters, and its name there."""

    host: str
    repository: str


def parse_address(address: str) -> Origin | None:
    """What an address such as ``git@github.com:OWNER/NAME.git`` names; None where that is no repository of a site.

    Takes https, http, ssh, git and the short form of ssh. GitHub's names have two parts, on each kind of server.
    """
    scheme, found, _ = address.partition("://")
    if found:
        try:
            parts = urlsplit(address)
            host = parts.hostname or ""
        except ValueError:
            return None
        if scheme.lower() not in _SCHEMES:
            return None
        path = parts.path
    elif match := _SCP.fullmatch(address):
        host, path = match["host"].strip("[]").lower(), match["path"]
    else:
        return None
    named = _PATH.fullmatch(path)
    if not host or named is None or {named["owner"], named["name"]} & {".", ".."}:
        return None
    return Origin(host=_ALIASES.get(host, host), repository=f"{named['owner']}/{named['name']}")


def site_of(api: str) -> str:
    """The address of the site that has its API at *api*: of github.com, of ghe.com, or of an Enterprise Server."""
    root = api.removesuffix("/")
    host = urlsplit(root).hostname or ""
    if host == "api.github.com" or host.endswith(_CLOUD):
        return root.replace("://api.", "://", 1)
    return root.removesuffix("/api/v3")


def host_of(api: str) -> str:
    """The host of the site that has its API at *api*."""
    return urlsplit(site_of(api)).hostname or ""


def api_of(host: str) -> str:
    """Where a site on *host* has its API."""
    return f"https://api.{host}" if host == "github.com" or host.endswith(_CLOUD) else f"https://{host}/api/v3"


def shown_address(address: str) -> str:
    """*address* without a name or password in it, and in one line, for messages."""
    safe = re.sub(r"(?<=://)[^/@]*@", "", address)
    return "".join(letter if letter.isprintable() else "?" for letter in safe)[:200]


def read_origin(folder: Path) -> Origin:
    """The repository that the clone in *folder* comes from: its remote ``origin``, or the only one that it has.

    Raises :class:`~runner_e2e.errors.UsageError` where there is none, and where more than one is meant.
    """
    names = _git(folder, "remote").split()
    if not names:
        raise _none(f"the clone in {folder} has no remote")
    name = ORIGIN if ORIGIN in names else names[0]
    if name != ORIGIN and len(names) > 1:
        raise _unclear(f"the clone has the remotes {', '.join(sorted(names))}, and none of them is `{ORIGIN}`")
    origins: dict[tuple[str, str], Origin] = {}
    for address in _git(folder, "remote", "get-url", "--all", "--", name).splitlines():
        origin = parse_address(address)
        if origin is None:
            raise _none(f"the git remote `{name}` is {shown_address(address)}, which names no OWNER/NAME on a server")
        origins.setdefault((origin.host, origin.repository.lower()), origin)
    if len(origins) > 1:
        listed = ", ".join(sorted(f"{each.host}/{each.repository}" for each in origins.values()))
        raise _unclear(f"the git remote `{name}` has several addresses: {listed}")
    return next(iter(origins.values()))


def _git(folder: Path, *words: str) -> str:
    """What git says. Raises :class:`~runner_e2e.errors.UsageError` where it says why it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True, errors="replace", check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise _none(f"git, which knows it, cannot be started: {error.strerror}") from None
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr.strip().splitlines() or ["nothing"])[0].removeprefix("fatal: ")
    if said.startswith("not a git repository"):
        raise _none(f"{folder} is in no clone of one")
    if "dubious ownership" in said:
        trust = f"`git config --global --add safe.directory {folder}`"
        raise _none(f"git does not read {folder}, which belongs to another user", f"{_FIX}, or run {trust}")
    raise _none(f"`git {words[0]}` says: {shown_address(said)}")


def _none(why: str, fix: str = _FIX) -> UsageError:
    return UsageError("there is no repository", why=why, fix=fix)


def _unclear(why: str) -> UsageError:
    return UsageError("which repository is meant is not clear", why=why, fix=_FIX)
