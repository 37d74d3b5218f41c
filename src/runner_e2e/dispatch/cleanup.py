"""Claims and authorisations that no run can use any more."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

from runner_e2e.dispatch.claim import CLAIMS, RERUNS
from runner_e2e.dispatch.github_api import segment
from runner_e2e.dispatch.records import value_of
from runner_e2e.errors import GitHubError

if TYPE_CHECKING:
    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["old_refs", "remove"]

_DAY: Final = 86_400
_MOST_PAGES: Final = 100


def old_refs(api: GitHubApi, *, days: int, now: float | None = None) -> tuple[str, ...]:
    """The refs (``refs/runner-e2e/…``) whose tags are older than *days* at *now* (seconds since the epoch).

    A ref that points to no tag of ours is left alone. Raises :class:`~runner_e2e.errors.GitHubError`.
    """
    limit = (time.time() if now is None else now) - days * _DAY
    found = []
    for prefix in (CLAIMS, RERUNS):
        for each in api.pages(f"git/matching-refs/{prefix}/", "", most=_MOST_PAGES):
            if value_of(each, str, "object", "type") == "tag":
                tag = api.get(f"git/tags/{segment(value_of(each, str, 'object', 'sha'))}").data
                if _seconds(value_of(tag, str, "tagger", "date")) < limit:
                    found.append(value_of(each, str, "ref"))
    return tuple(found)


def remove(api: GitHubApi, ref: str) -> None:
    """Removes a ref; one that is gone already is as good. Raises :class:`~runner_e2e.errors.GitHubError`."""
    api.send("DELETE", f"git/{segment(ref)}", accept={204, 404, 422})


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise GitHubError(f"GitHub's answer has {text[:40]!r} for a date", fix="try again") from None
