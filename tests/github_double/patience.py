"""A client's patience where a test has ordered that a request gets no reply: none with that one, and much with others.

A short timeout for all requests would end those too that a busy machine answers late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    from tests.github_double.server import Server

    from runner_e2e.dispatch.github_api import GitHubApi

__all__ = ["give_up_at_once"]

_NONE, _MUCH = 0.05, 60.0


def give_up_at_once(api: GitHubApi, double: Server) -> GitHubApi:
    """*api*, which waits no longer for *double* than until a request that gets no reply has been carried out."""
    api._connection.session.mount("http://", _Adapter(double))
    return api


class _Adapter(HTTPAdapter):
    def __init__(self, double: Server) -> None:
        super().__init__()
        self._double = double

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:  # type: ignore[override]
        hangs = self._double.faults.hangs(str(request.method), urlsplit(str(request.url)).path)
        try:
            return super().send(request, **{**settings, "timeout": (_MUCH, _NONE if hangs else _MUCH)})
        except requests.Timeout:
            self._double.settle()
            raise
