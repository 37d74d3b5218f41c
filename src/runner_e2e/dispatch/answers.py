"""Answers of GitHub's API, and what an answer that is an error says: pure, so that a table can test it."""

from __future__ import annotations

import email.utils
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DEFAULT_URL",
    "Answer",
    "is_rate_limit",
    "parse_body",
    "patience",
    "permission_hint",
    "problem_of",
    "retry_after",
    "server_text",
    "server_time",
]

DEFAULT_URL: Final = "https://api.github.com"
"""The root of github.com's API."""

_LONGEST_MESSAGE: Final = 300
_SECONDS = re.compile(r"[0-9]{1,12}")
# The second is what servers before 3.7 call a secondary limit.
_LIMITED = re.compile("rate limit|abuse detection", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api: without other information wait at
# least one minute after a secondary limit.
_SECONDARY_PAUSE: Final = 60.0
_LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer: *headers* have lower-case names, *data* is the parsed JSON, None where there is no body."""

    verb: str
    path: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    data: object = None

    @property
    def etag(self) -> str:
        """What a later conditional request sends back; empty where there is none."""
        return self.headers.get("etag", "")


def parse_body(answer: Answer, body: str) -> Answer:
    """The answer with its body parsed.

    Raises :class:`~runner_e2e.errors.GitHubError` where a success has a body that is not JSON: HTML of a proxy or a
    sign-in page, or JSON that was cut off. An error keeps what can be read of it, and so does a redirect.
    """
    if not body.strip():
        return answer
    try:
        return replace(answer, data=json.loads(body))
    except (ValueError, RecursionError):
        if answer.status >= 300:
            return answer
    kind = "HTML" if body.lstrip()[:1] == "<" else "something that is not JSON, or was cut off"
    raise GitHubError(
        f"GitHub's API answered {answer.verb} {answer.path} with {kind}",
        why="a proxy or a sign-in page stands between, or the connection broke",
        fix="check the API's URL and the network, then try again",
    )


def server_text(answer: Answer) -> str:
    """What the server says for people: on one line, without control characters, cut; empty where it says nothing."""
    data = answer.data
    parts: list[str] = []
    if isinstance(data, dict):
        errors = data.get("errors")
        parts = [str(data.get("message") or ""), *map(_one, errors if isinstance(errors, list) else [errors])]
    text = _CONTROL.sub(" ", "; ".join(part for part in parts if part)).strip()
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def _one(error: object) -> str:
    """One entry of the list of errors: GitHub gives objects, and texts."""
    return str(error.get("message") or error.get("code") or "") if isinstance(error, dict) else str(error or "")


def is_rate_limit(answer: Answer) -> bool:
    """Whether the answer says to come back later: the primary limit, or a secondary one."""
    if answer.status == 429:
        return True
    if answer.status != 403:
        return False
    return (
        "retry-after" in answer.headers
        or answer.headers.get("x-ratelimit-remaining") == "0"
        or _LIMITED.search(server_text(answer)) is not None
    )


def server_time(answer: Answer) -> float | None:
    """Seconds since the epoch by the server's clock, None where the answer has no ``Date``."""
    return _moment(answer.headers.get("date", ""))


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def retry_after(answer: Answer, *, now: float) -> float | None:
    """Seconds to wait before the next request, None where the answer asks for no pause.

    ``Retry-After`` in seconds or as a date comes first, then the reset of the primary limit, then a minute. Dates are
    compared with the server's own; *now*, in seconds since the epoch, stands in for one that it does not tell.
    """
    if not is_rate_limit(answer) and answer.status != 503:
        return None
    told = server_time(answer)
    now = now if told is None else told
    value = answer.headers.get("retry-after", "")
    if _SECONDS.fullmatch(value):
        return float(value)
    if value:
        until = _moment(value)
        return _SECONDARY_PAUSE if until is None else max(0.0, until - now)
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and _SECONDS.fullmatch(reset):
        return max(1.0, float(reset) - now)
    return _SECONDARY_PAUSE if is_rate_limit(answer) else None


def patience(answer: Answer, *, least: float, now: float, longest: float = _LONGEST_PAUSE) -> float | None:
    """Seconds to wait before the same request is sent again, at least *least*; None where it should not be.

    It should be after a limit or an error of the server, unless that asks for more than *longest* seconds.
    """
    asked = retry_after(answer, now=now)
    if asked is None:
        return least if answer.status >= 500 else None
    return max(asked, least) if asked <= longest else None


def problem_of(answer: Answer) -> GitHubError:
    """The error for an answer that is not a success: fact, cause and what to do."""
    what = f"GitHub's API answered {answer.verb} {answer.path} with {answer.status}"
    why = server_text(answer)
    if is_rate_limit(answer):
        what = f"GitHub's API limits the calls of this token ({answer.status} to {answer.verb} {answer.path})"
        return GitHubError(what, why=why, fix="wait, and start fewer things with this token at once")
    fix = _FIXES.get(answer.status, "try again; see githubstatus.com" if answer.status >= 500 else "")
    if answer.status in {403, 404}:
        fix = permission_hint(answer) or fix
    if answer.status in _REDIRECTED:
        why = why or "the repository was renamed or transferred"
        fix = "use its new name"
    return GitHubError(what, why=why, fix=fix)


def permission_hint(answer: Answer, *, wanted: str = "") -> str:
    """What to do about a token that may not do this: which permission (GitHub's own word, else *wanted*), and where.

    A token of an app (``GITHUB_TOKEN`` is one), a fine-grained and a classic one get theirs in different places, and
    GitHub's message tells them apart. Empty where nothing is known.
    """
    sso = _SSO.search(answer.headers.get("x-github-sso", ""))
    if sso:
        return f"authorise the token for the organisation's single sign-on: {sso[1]}"
    needed = _CONTROL.sub(" ", answer.headers.get("x-accepted-github-permissions", ""))[:100] or wanted
    text = server_text(answer).lower()
    if "not accessible by integration" in text:
        where = "give the app, or in a workflow the job (`permissions:`), the permission"
        if _NEVER_OF_A_JOB.search(needed):
            where = "GITHUB_TOKEN cannot have this: use the token of an app or a fine-grained one, with the permission"
        return f"{where} {needed or 'that the documentation of this request names'}"
    if "not accessible by personal access token" in text:
        return f"give the fine-grained token the permission {needed or 'that the documentation of this request names'}"
    scopes = answer.headers.get("x-accepted-oauth-scopes", "").strip()
    if scopes and "x-oauth-scopes" in answer.headers and not needed:
        return f"give the classic token the scope {_CONTROL.sub(' ', scopes)[:100]}"
    return f"give the token the permission {needed}" if needed else ""


# What `permissions:` of a job does not know.
_NEVER_OF_A_JOB: Final = re.compile(r"administration|environments|secrets|variables")
_SSO: Final = re.compile(r"required; url=(https://[!-~]{1,300})")
_REDIRECTED: Final = frozenset({301, 302, 303, 307, 308})
_FIXES: Final = {
    400: "check the values; an older Enterprise Server may not know one of them",
    401: "check the token: it is wrong, expired or revoked",
    403: "check the token's permissions (in a workflow: `permissions:` of the job)",
    404: "check the name or the number; a token that may not read a private repository gets the same answer",
    409: "somebody else changed it at the same time; try again",
    410: "it is gone; GitHub keeps it no longer",
    422: "check the values; GitHub can read them and does not accept them",
}
