"""Fetches the files of a repository at one commit over GitHub's API, in one request."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from runner_e2e import __version__
from runner_e2e.errors import GitHubError, UsageError
from runner_e2e.remote.archive import ArchiveLimits, unpack

if TYPE_CHECKING:
    import email.message
    from pathlib import Path
    from typing import IO

    from runner_e2e.remote.name import RemoteName

__all__ = ["DEFAULT_URL", "Api", "fetch"]

DEFAULT_URL: Final = "https://api.github.com"
TIMEOUT_SECONDS: Final = 30.0

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_LARGEST_MESSAGE = 65_536


@dataclass(frozen=True, kw_only=True)
class Api:
    """GitHub's API at *url* (an Enterprise Server's is ``https://HOST/api/v3``), with a *token* or none (empty)."""

    url: str = DEFAULT_URL
    token: str = ""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to where the archive is, without the token when that is another host, and never to plain HTTP."""

    def redirect_request(  # noqa: PLR0913, PLR0917 - the signature of the standard library
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            _check_url(newurl, "the API sends on to")
            if urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
                following.remove_header("Authorization")
        return following


def fetch(name: RemoteName, folder: Path, *, api: Api, limits: ArchiveLimits | None = None) -> int:
    """Puts the text files of a repository into the empty *folder*; returns how many.

    Raises :class:`~runner_e2e.errors.GitHubError` when GitHub refuses, cannot be reached, or sends what is damaged or
    too large, and :class:`~runner_e2e.errors.UsageError` for an API that would get the token in clear.
    """
    _check_url(api.url, "the API is at")
    path = f"/repos/{name.owner}/{name.name}/tarball" + (f"/{quote(name.ref, safe='/')}" if name.ref else "")
    request = urllib.request.Request(  # noqa: S310 - checked above
        api.url.rstrip("/") + path,
        headers={"Accept": "application/vnd.github+json", "User-Agent": f"runner-e2e/{__version__}"},
    )
    if api.token:
        request.add_unredirected_header("Authorization", f"Bearer {api.token}")
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            return unpack(answer, folder, name=str(name), limits=limits)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(name, api, error.code, error.headers, _message(error)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise GitHubError(
            f"{urlsplit(api.url).netloc} did not send {name}",
            why=str(reason) or type(error).__name__,
            fix="check the network, and a proxy in HTTPS_PROXY; then try it again",
        ) from None


def _check_url(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in _LOOPBACK:
        return
    raise UsageError(
        f"{what} {url[:80]!r}, which is no https address",
        why="a token and what is linted would be readable on the way",
        fix="set GITHUB_API_URL to the https address of the API, or leave it out",
    )


def _message(error: urllib.error.HTTPError) -> str:
    """What GitHub says about its refusal."""
    with suppress(OSError, http.client.HTTPException, ValueError, RecursionError):
        data = json.loads(error.read(_LARGEST_MESSAGE))
        if isinstance(data, dict) and isinstance(data.get("message"), str):
            return " ".join(data["message"].split())[:300]
    return ""


def _refused(name: RemoteName, api: Api, status: int, headers: email.message.Message, message: str) -> GitHubError:
    said = f"GitHub says: {message}" if message else f"the answer was {status}"
    if status == 404:
        what = f"there is no {name}" + (", or no such branch, tag or commit in it" if name.ref else "")
        hint = "a private repository needs a token that may read it" if not api.token else "the token may not see it"
        return GitHubError(what, why=f"{said}; {hint}", fix="check the name, or set GH_TOKEN")
    if status == 401:
        return GitHubError(
            "GitHub does not accept the token", why=said, fix="set GH_TOKEN to a valid one, or unset it for public ones"
        )
    if status in {403, 429} and (headers.get("x-ratelimit-remaining") == "0" or headers.get("retry-after")):
        when = _reset(headers)
        fix = f"wait until {when}" if when else "wait some minutes"
        return GitHubError(
            "GitHub's rate limit is used up",
            why=said,
            fix=fix if api.token else f"set GH_TOKEN, which has a limit of its own, or {fix}",
        )
    if status == 403:
        return GitHubError(
            f"GitHub refuses to send {name}", why=said, fix="use a token that may read it (and is authorised for SSO)"
        )
    if status == 451:
        return GitHubError(f"{name} is blocked", why=said, fix="lint another repository")
    return GitHubError(f"GitHub did not send {name}", why=said, fix="try it again later")


def _reset(headers: email.message.Message) -> str:
    """When the rate limit starts anew, as a time of the day in UTC; empty when that is not said."""
    with suppress(ValueError, OverflowError, OSError):
        return f"{datetime.fromtimestamp(int(headers.get('x-ratelimit-reset', '')), tz=UTC):%H:%M} UTC"
    return ""
