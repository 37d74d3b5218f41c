"""Claims and authorisations that no run can use any more."""

from __future__ import annotations

import email.utils
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.claim import CLAIMS, RERUNS
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.records import moment_of, value_of
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["old_refs", "remove"]

_DAY: Final = 86_400
_MOST_PAGES: Final = 100


def old_refs(api: GitHubApi, *, days: int) -> tuple[str, ...]:
    """The refs (``refs/runner-e2e/…``) whose tags are older than *days*, by the server's clock; authorisations first.

    A ref that points to no tag of ours is left alone. Raises :class:`~runner_e2e.errors.GitHubError`.
    """
    limit = _server_time(api) - days * _DAY
    found = []
    # In this order, so that no authorisation outlives the claim that has used it.
    for prefix in (RERUNS, CLAIMS):
        for each in api.pages(f"git/matching-refs/{prefix}/", "", most=_MOST_PAGES):
            if value_of(each, str, "object", "type") == "tag":
                tag = api.get(f"git/tags/{segment(value_of(each, str, 'object', 'sha'))}").data
                if moment_of(value_of(tag, str, "tagger", "date")).timestamp() < limit:
                    found.append(value_of(each, str, "ref"))
    return tuple(found)


def remove(api: GitHubApi, ref: str) -> None:
    """Removes a ref; one that is gone already is as good. Raises :class:`~runner_e2e.errors.GitHubError`."""
    api.send("DELETE", f"git/{segment(ref)}", accept={204, 404, 422})


def _server_time(api: GitHubApi) -> float:
    """Seconds since the epoch by GitHub's clock: by one of this machine that is fast, young claims would go."""
    value = api.get("").headers.get("date", "")
    try:
        return email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise GitHubError(
            "GitHub's answer does not say what time it is", why=f"its Date is {value[:40]!r}", fix="try again"
        ) from None
