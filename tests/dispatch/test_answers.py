"""What GitHub's answers mean, as a table."""

from __future__ import annotations

import pytest

from runner_e2e.dispatch.answers import Answer, is_rate_limit, parse_body, problem_of, retry_after, server_text
from runner_e2e.errors import GitHubError


def answer(status: int, *, data: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(verb="GET", path="/repos/o/r", status=status, headers=named, data=data)


def test_parses_a_body() -> None:
    assert parse_body(answer(200), '{"a": 1}').data == {"a": 1}
    assert parse_body(answer(204), "").data is None


@pytest.mark.parametrize(("body", "said"), [("<html>", "HTML"), ('{"a": [1, 2', "cut off"), ("[" * 10_000, "cut off")])
def test_refuses_a_body_that_is_not_json(body: str, said: str) -> None:
    with pytest.raises(GitHubError, match=said):
        parse_body(answer(200), body)
    assert parse_body(answer(502), body).data is None
    assert parse_body(answer(302), body).data is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"message": "Not Found"}, "Not Found"),
        (
            {"message": "Invalid", "errors": [{"code": "missing"}, {"message": "no ref"}, "x"]},
            "Invalid; missing; no ref; x",
        ),
        ({"message": "a\x1b[31m\n::error::b"}, "a [31m ::error::b"),
        ({"message": "x" * 1000}, "x" * 299 + "…"),
        ({"message": None, "errors": "both"}, "both"),
        ([], ""),
        (None, ""),
    ],
)
def test_text_of_the_server(data: object, text: str) -> None:
    assert server_text(answer(422, data=data)) == text


@pytest.mark.parametrize(
    ("given", "limited", "pause"),
    [
        (answer(200), False, None),
        (answer(429), True, 60),
        (answer(429, retry_after="7"), True, 7),
        (answer(403, retry_after="30"), True, 30),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="1100"), True, 100),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="900"), True, 1),
        (answer(403, x_ratelimit_remaining="0"), True, 60),
        (answer(403, data={"message": "You have exceeded a secondary rate limit"}), True, 60),
        (answer(403, data={"message": "You have triggered an abuse detection mechanism."}), True, 60),
        (answer(403, data={"message": "Resource not accessible by integration"}), False, None),
        (answer(503, retry_after="5"), False, 5),
        (answer(503), False, None),
        (answer(429, retry_after="Thu, 01 Jan 1970 00:20:00 GMT"), True, 200),
        (answer(429, retry_after="soon"), True, 60),
        # By the server's own clock, where it tells it.
        (answer(429, retry_after="Thu, 01 Jan 1970 00:20:00 GMT", date="Thu, 01 Jan 1970 00:19:30 GMT"), True, 30),
        (
            answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="1100", date="Thu, 01 Jan 1970 00:18:00 GMT"),
            True,
            20,
        ),
        (answer(429, retry_after="5", date="yesterday"), True, 5),
    ],
)
def test_pauses(given: Answer, limited: bool, pause: float | None) -> None:
    assert is_rate_limit(given) is limited
    assert retry_after(given, now=1000.0) == pause


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 409, 410, 418, 422, 429, 500, 502, 503])
def test_every_error_says_what_happened(status: int) -> None:
    problem = problem_of(answer(status, data={"message": "said by the server"})).problem
    assert str(status) in problem.what
    assert "/repos/o/r" in problem.what
    assert problem.why == "said by the server"
    assert problem.fix or status == 418


def test_names_the_permission_that_is_missing() -> None:
    found = problem_of(answer(403, x_accepted_github_permissions="actions=read")).problem
    assert "actions=read" in found.fix


@pytest.mark.parametrize(
    ("message", "headers", "said"),
    [
        ("Resource not accessible by integration", {"x_accepted_github_permissions": "actions=write"},
         "`permissions:`), the permission actions=write"),
        ("Resource not accessible by integration", {"x_accepted_github_permissions": "administration=read"},
         "GITHUB_TOKEN cannot have this"),
        ("Resource not accessible by personal access token", {"x_accepted_github_permissions": "contents=write"},
         "the fine-grained token the permission contents=write"),
        ("Resource not accessible by personal access token", {}, "that the documentation of this request names"),
        ("Must have admin rights", {"x_oauth_scopes": "repo", "x_accepted_oauth_scopes": "admin:org"},
         "the classic token the scope admin:org"),
        ("Resource protected by organization SAML enforcement.",
         {"x_github_sso": "required; url=https://github.com/orgs/octo/sso?authorization_request=A"},
         "single sign-on: https://github.com/orgs/octo/sso?authorization_request=A"),
        ("no", {"x_github_sso": "required; url=javascript:alert(1)"}, "check the token's permissions"),
        ("no", {"x_accepted_github_permissions": "a\x1b[31m"}, "the permission a [31m"),
        ("no", {}, "check the token's permissions"),
    ],
)  # fmt: skip
def test_says_what_the_token_lacks_and_where_it_gets_it(message: str, headers: dict[str, str], said: str) -> None:
    assert said in problem_of(answer(403, data={"message": message}, **headers)).problem.fix
