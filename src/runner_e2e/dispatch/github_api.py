"""GitHub's REST API for one repository, by PyGithub's requester: this file alone imports PyGithub.

What a request may cost decides how it is sent. Reads are repeated a few times. A write is sent exactly once, by no
layer again: PyGithub's default client sends a dispatch whose reply is late eleven times. A write of which nobody
knows whether it arrived raises :class:`UnknownOutcomeError`, so that the caller finds out instead of guessing.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import github
import requests
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, RequestsResponse
from urllib3.exceptions import HTTPError, MaxRetryError, NameResolutionError, NewConnectionError

from runner_e2e.dispatch.answers import DEFAULT_URL, Answer, parse_body, patience, problem_of, retry_after
from runner_e2e.errors import GitHubError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import IO

__all__ = [
    "DEFAULT_URL",
    "GitHubApi",
    "Limits",
    "Listed",
    "RefusedDownloadError",
    "UnknownOutcomeError",
    "objects_of",
    "segment",
]

API_VERSION: Final = "2022-11-28"

# Long enough for GitHub's slowest answers (about 10 s for a dispatch under load), short enough to be noticed.
TIMEOUT_SECONDS: Final = 30
_PAUSES: Final = (1.0, 4.0)
_PAGE: Final = 100
_MOST_REDIRECTS: Final = 3
_REDIRECTED: Final = frozenset({301, 302, 307, 308})
_MOVED: Final = _REDIRECTED - {302}
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_LONGEST_DOWNLOAD: Final = 600.0
_CHUNK: Final = 65_536
# Names of managed users have an underscore.
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_TOKEN = re.compile(r"[!-~]{1,4096}")


class UnknownOutcomeError(GitHubError):
    """A write was sent, and whether it was carried out is not known. It must not be sent again without finding out."""


class RefusedDownloadError(GitHubError):
    """A file is not taken: it is too large, or its address cannot be trusted. To ask again would change nothing."""


class _HostError(requests.RequestException):
    """The host of a file did not give it. Its text is ours, without the address, which lets anybody have the file."""


class _OnceHTTP(HTTPRequestsConnectionClass):
    """A connection that PyGithub's requester uses for exactly one exchange a request."""

    def getresponse(self) -> RequestsResponse:
        return _as_it_is(super().getresponse(), self.verb)


class _OnceHTTPS(HTTPSRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _as_it_is(super().getresponse(), self.verb)


def _as_it_is(response: RequestsResponse, verb: str) -> RequestsResponse:
    """Keeps the requester from acting on an answer by itself.

    It follows 301 even for POST, without an end, and waits without an end where a read is answered 202. 308 means the
    same as 301 and is handed out; a read that is not ready yet is one of a server that is not.
    """
    if response.status == 301:
        response.status = 308
    if response.status == 202 and verb.upper() in {"GET", "HEAD"}:
        response.status = 503
    return response


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The objects of a list. *complete*: they are as many as the server counts, so that what is not here is nowhere."""

    items: tuple[dict[str, object], ...]
    complete: bool


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the caller does around requests: *before* may wait or refuse, *after* learns from each answer.

    *before* gets the verb, and what it raises says that nothing was sent; *after* must not raise, since what was sent
    cannot be taken back. *wait* sleeps for so many seconds and *now* tells the time (a test does neither). *paced*
    tells that *before* waits for as long as the last answer asked, so that nobody else has to. *ready* waits as
    *before* does and counts nothing: for who wants to write down that a request is sent, and only when it can be.
    """

    ready: Callable[[str], None] = lambda _: None

    before: Callable[[str], None] = lambda _: None
    after: Callable[[Answer], None] = lambda _: None
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    paced: bool = False


class GitHubApi:
    """The API below ``/repos/OWNER/NAME`` (a path that begins with ``/`` stands for itself).

    *url* is the root of the API: :data:`DEFAULT_URL`, or ``https://HOST/api/v3`` of an Enterprise Server.
    Raises :class:`~runner_e2e.errors.UsageError` for a missing token or a repository that is not OWNER/NAME.
    """

    def __init__(
        self,
        *,
        repository: str,
        token: str,
        url: str = DEFAULT_URL,
        limits: Limits | None = None,
        timeout: int = TIMEOUT_SECONDS,
    ) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise UsageError(f"{repository[:80]!r} is no repository", fix="write it as OWNER/NAME")
        _check_token(token.strip())
        self._origin = _origin_of(url)
        self.repository = repository
        self.url = url.rstrip("/")
        self.limits = limits or Limits()
        self._timeout = timeout
        scheme, host, port = self._origin
        self._connection = (_OnceHTTPS if scheme == "https" else _OnceHTTP)(
            # requests wants the brackets of an IPv6 address back.
            f"[{host}]" if ":" in host else host,
            port,
            timeout=timeout,
            retry=None,
            verify=True,
        )
        self._requester = github.Requester.Requester(
            auth=github.Auth.Token(token.strip()),
            base_url=self.url,
            timeout=timeout,
            user_agent="runner-e2e",
            per_page=_PAGE,
            verify=True,
            retry=None,
            pool_size=None,
            api_version=API_VERSION if self.url == DEFAULT_URL else None,
        )

    def get(
        self,
        path: str,
        parameters: Mapping[str, str | int] | None = None,
        *,
        accept: Collection[int] = (),
        etag: str = "",
    ) -> Answer:
        """Reads *path*; tried up to three times where the network, the server or a limit is at fault.

        With the *etag* of an earlier answer GitHub answers 304 where nothing changed, which costs nothing.
        Raises :class:`~runner_e2e.errors.GitHubError` for a status of 400 and above that is not in *accept*.
        """
        return self._repeated(path, parameters, {"If-None-Match": etag} if etag else {}, accept=accept)

    def pages(
        self, path: str, key: str, parameters: Mapping[str, str | int] | None = None, *, most: int = 10
    ) -> Iterator[dict[str, object]]:
        """The objects of a list over at most *most* pages of 100; *key* names the list, empty for a bare one.

        A server that knows no pages answers everything at once, to each number. Raises what :meth:`get` raises, also
        for an answer of another shape.
        """
        before: list[dict[str, object]] = []
        for page in range(1, most + 1):
            answer = self.get(path, {**(parameters or {}), "per_page": _PAGE, "page": page})
            items = objects_of(answer.data, key, path)
            if items == before:
                return
            yield from items
            if len(items) != _PAGE:
                return
            before = items

    def whole_list(
        self, path: str, key: str, parameters: Mapping[str, str | int] | None = None, *, most: int = 200
    ) -> Listed | None:
        """The list *key* over all its pages, at most *most*, with the server's own count; None where *path* is gone.

        Gone is what is answered with 404 or 410. Raises what :meth:`pages` raises.
        """
        found: list[dict[str, object]] = []
        total: object = None
        for page in range(1, most + 1):
            answer = self.get(path, {**(parameters or {}), "per_page": _PAGE, "page": page}, accept={404, 410})
            if answer.status in {404, 410}:
                return None
            items = objects_of(answer.data, key, path)
            total = answer.data.get("total_count") if isinstance(answer.data, dict) else None
            found += items
            if len(items) != _PAGE:
                break
        return Listed(items=tuple(found), complete=type(total) is int and len(found) >= total)

    def send(
        self, verb: str, path: str, data: Mapping[str, object] | None = None, *, accept: Collection[int] = ()
    ) -> Answer:
        """Sends one write (POST, PATCH, PUT, DELETE), exactly once.

        Raises :class:`UnknownOutcomeError` where it may or may not have been carried out: no reply, a broken reply,
        a server error. Raises :class:`~runner_e2e.errors.GitHubError` where it was not: no connection could be made,
        or the server refused it with a status that is not in *accept*.
        """
        self.limits.before(verb)
        try:
            answer = self._exchange(verb, path, None, data, {})
        except requests.exceptions.ConnectTimeout as error:
            raise _unreachable(verb, self._full(path), error) from None
        except requests.RequestException as error:
            if _never_connected(error):
                raise _unreachable(verb, self._full(path), error) from None
            raise _unknown(verb, path, type(error).__name__) from None
        except GitHubError as error:
            raise _unknown(verb, path, error.problem.what) from None
        if answer.status >= 500 and answer.status not in accept:
            raise _unknown(verb, path, f"the answer was {answer.status}")
        return _checked(answer, accept)

    def download(self, path: str, to: IO[bytes], *, most: int, accept: Collection[int] = ()) -> Answer:
        """Writes the file that *path* leads to into *to*, in place of what it holds.

        GitHub answers with the address of another host, which is asked without the token. Tried up to three times.
        Returns the API's answer: nothing was written where its status is one of *accept*. Raises
        :class:`RefusedDownloadError` for a file of more than *most* bytes and for an address that is not ``https`` (a
        server on loopback may use ``http``), and :class:`~runner_e2e.errors.GitHubError` for every other failure.
        """
        for pause in (*_PAUSES, None):
            # The address is valid for a minute, so it is asked for again each time.
            answer = self._repeated(path, None, {}, accept={302, *accept}, follow=_MOVED)
            location = answer.headers.get("location", "")
            if answer.status in accept:
                break
            if answer.status != 302 or not location:
                raise GitHubError(f"GitHub's API answered GET {answer.path} without a file", fix="try again")
            place = _joined(f"{self.url}{answer.path}", location)
            try:
                _fetch(place, to, most=most, timeout=self._timeout, loopback=self._origin[0] == "http")
                break
            except (requests.RequestException, HTTPError) as error:
                if pause is None:
                    raise _unfinished(answer.path, error) from None
                self.limits.wait(pause)
        return answer

    def _repeated(
        self,
        path: str,
        parameters: Mapping[str, str | int] | None,
        headers: Mapping[str, str],
        *,
        accept: Collection[int],
        follow: Collection[int] = _REDIRECTED,
    ) -> Answer:
        """A read that is tried again where the network, the server or a limit is at fault."""
        for pause in (*_PAUSES, None):
            try:
                answer = self._read(path, parameters, headers, follow=follow)
            except requests.RequestException as error:
                if pause is None:
                    raise _unreachable("GET", self._full(path), error) from None
                self.limits.wait(pause)
                continue
            if pause is None or answer.status in accept:
                break
            now = self.limits.now()
            if self.limits.paced and retry_after(answer, now=now) is not None:
                continue
            wanted = patience(answer, least=pause, now=now)
            if wanted is None:
                break
            self.limits.wait(wanted)
        return _checked(answer, accept)

    def _read(
        self,
        path: str,
        parameters: Mapping[str, str | int] | None,
        headers: Mapping[str, str],
        *,
        follow: Collection[int],
    ) -> Answer:
        """One read, also at the new place of what was moved; the token goes to no other server."""
        self.limits.before("GET")
        answer = self._exchange("GET", path, parameters, None, headers)
        for _ in range(_MOST_REDIRECTS):
            if answer.status not in follow or not answer.headers.get("location"):
                break
            place = _joined(f"{self.url}{answer.path}", answer.headers["location"])
            if _origin_or_none(place) != self._origin:
                raise GitHubError(
                    f"GitHub's API sent GET {answer.path} to another server",
                    why=f"{place[:100]!r} does not begin with {self.url}; it would get the token",
                    fix="check the API's URL",
                )
            parts = urlsplit(place)
            moved = parts.path.removeprefix(urlsplit(self.url).path)
            self.limits.before("GET")
            answer = self._exchange("GET", moved, dict(parse_qsl(parts.query)) or parameters, None, headers)
        return answer

    def _full(self, path: str) -> str:
        return path if path.startswith("/") else f"/repos/{self.repository}/{path}".rstrip("/")

    def _exchange(
        self,
        verb: str,
        path: str,
        parameters: Mapping[str, str | int] | None,
        data: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> Answer:
        """One request and its answer, whatever its status."""
        full = self._full(path)
        try:
            status, received, body = self._requester.requestJson(
                verb,
                full,
                dict(parameters or {}),
                {"Accept": "application/vnd.github+json", **headers},
                data,
                self._connection,
            )
        except requests.RequestException:
            raise
        except (ValueError, RuntimeError, LookupError, github.GithubException) as error:
            # PyGithub reads some headers by itself, and believes them to be numbers.
            raise GitHubError(
                f"GitHub's answer to {verb} {full} cannot be read",
                why=f"{type(error).__name__}: {str(error)[:100]!r}",
                fix="check the API's URL and what stands between",
            ) from None
        answer = Answer(verb=verb, path=full, status=status, headers={str(k): str(v) for k, v in received.items()})
        try:
            answer = parse_body(answer, body)
        finally:
            self.limits.after(answer)
        return answer


def _check_token(token: str) -> None:
    fix = "in a workflow give `github-token: ${{ github.token }}`; elsewhere `export GH_TOKEN=$(gh auth token)`"
    if not token:
        raise UsageError("there is no token for GitHub's API", fix=fix)
    if not _TOKEN.fullmatch(token):
        raise UsageError(
            "the token for GitHub's API is none",
            why="tokens have no blanks, line ends or letters with accents",
            fix=fix,
        )


def _origin_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an API. Raises :class:`~runner_e2e.errors.UsageError` for a URL that can be none."""
    origin = _origin_or_none(url)
    parts = urlsplit(url) if origin else None
    if origin is None or parts is None or parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(f"{url[:80]!r} is no URL of an API", fix=f"leave it out for {DEFAULT_URL}")
    if origin[0] == "http" and origin[1] not in _LOOPBACK:
        raise UsageError(f"the API at {url[:80]} would get the token in clear", fix="use https")
    return origin


def _origin_or_none(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"https", "http"} or not parts.hostname or not url.isascii():
        return None
    return parts.scheme, parts.hostname, None if port == {"https": 443, "http": 80}[parts.scheme] else port


def _joined(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:
        return location


def objects_of(data: object, key: str, path: str) -> list[dict[str, object]]:
    """The objects of the list *key* in an answer, empty for a bare one.

    Raises :class:`~runner_e2e.errors.GitHubError` that names *path* where there is none.
    """
    items = data.get(key) if key and isinstance(data, dict) else data
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise GitHubError(f"GitHub's API answered GET {path} without a list", fix="check the API's URL")
    return items


def segment(text: str) -> str:
    """*text* as one part of a path; slashes stay, since names of refs and files hold them."""
    return quote(text, safe="/")


def _checked(answer: Answer, accept: Collection[int]) -> Answer:
    if answer.status in accept or answer.status < 300 or answer.status == 304:
        return answer
    raise problem_of(answer)


def _never_connected(error: requests.RequestException) -> bool:
    """Whether no byte can have reached the server: its name or its port did not answer."""
    cause = error.args[0] if error.args else None
    reason = cause.reason if isinstance(cause, MaxRetryError) else cause
    return isinstance(reason, NewConnectionError | NameResolutionError)


def _fetch(place: str, to: IO[bytes], *, most: int, timeout: int, loopback: bool) -> None:
    """Writes the file at *place* into *to*. No token, password or cookie of anybody's goes there."""
    until = time.monotonic() + _LONGEST_DOWNLOAD
    with requests.Session() as session:
        session.auth = _nobody
        for _ in range(_MOST_REDIRECTS):
            _check_place(place, loopback=loopback)
            with session.get(
                place,
                headers={"User-Agent": "runner-e2e", "Accept": "*/*", "Accept-Encoding": "identity"},
                stream=True,
                allow_redirects=False,
                timeout=timeout,
            ) as response:
                if response.status_code in _REDIRECTED and "location" in response.headers:
                    place = _joined(place, response.headers["location"])
                    continue
                if response.status_code != 200:
                    raise _HostError(f"its host answered {response.status_code}")
                return _copy(response, to, most=most, until=until)
    raise RefusedDownloadError("a file is moved from host to host without an end", fix="check what stands between")


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Authenticates as nobody; without it, requests would look into ``~/.netrc``."""
    return request


def _check_place(place: str, *, loopback: bool) -> None:
    origin = _origin_or_none(place)
    local = loopback and origin is not None and origin[0] == "http" and origin[1] in _LOOPBACK
    if origin is None or "@" in urlsplit(place).netloc or not (origin[0] == "https" or local):
        raise RefusedDownloadError(
            "GitHub's API leads to a file at an address that is not https",
            why=f"it is {place.partition('?')[0][:100]!r}",
            fix="check the API's URL and what stands between",
        )


def _copy(response: requests.Response, to: IO[bytes], *, most: int, until: float) -> None:
    to.seek(0)
    to.truncate()
    size = 0
    # One read of the socket at a time: a host that sends a byte now and then is not waited for for ever.
    while chunk := response.raw.read1(_CHUNK, decode_content=False):
        size += len(chunk)
        if size > most:
            raise RefusedDownloadError(f"a file of GitHub's has more than {most:,} bytes", fix="look at it yourself")
        if time.monotonic() > until:
            raise _HostError(f"it took longer than {_LONGEST_DOWNLOAD:.0f} s")
        to.write(chunk)
    to.flush()


def _unfinished(path: str, error: Exception) -> GitHubError:
    return GitHubError(
        f"the file behind GET {path} cannot be fetched",
        why=str(error) if isinstance(error, _HostError) else f"{type(error).__name__}: its host gave no whole answer",
        fix="try again; check that this machine may reach GitHub's storage of artifacts",
    )


def _unreachable(verb: str, path: str, error: requests.RequestException) -> GitHubError:
    return GitHubError(
        f"GitHub's API cannot be reached ({verb} {path})",
        why=f"{type(error).__name__}: the server gave no answer",
        fix="check the network, a proxy, and the API's URL",
    )


def _unknown(verb: str, path: str, why: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(
        f"whether GitHub carried out {verb} {path} is not known",
        why=why,
        fix="look at GitHub before anything is sent again",
    )
