from __future__ import annotations

import pytest
from click.testing import CliRunner

from runner_e2e.cli.group import runner_e2e
from runner_e2e.errors import UsageError
from runner_e2e.sandbox.arguments import OPTIONS, Request, parse_arguments, policy_of


def test_options_and_the_command_after_them() -> None:
    request = parse_arguments(["--hide", "/a", "--hide=/b", "--expose", "/a/x", "--quiet", "--", "cmd", "--hide", "c"])
    assert request == Request(command=("cmd", "--hide", "c"), hide=("/a", "/b"), expose=("/a/x",), quiet=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hid", "/a", "--", "x"], "unknown option --hid"),
        (["/a", "--", "x"], "unexpected word /a"),
        (["--hide", "--", "x"], "--hide has no value"),
        (["--hide"], "--hide has no value"),
        (["--quiet=yes", "--", "x"], "--quiet takes no value"),
        (["--home", "/a", "--home", "/b", "--", "x"], "--home is given twice"),
        (["--hide", "/a"], "no command"),
        (["--"], "no command"),
        ([], "no command"),
    ],
)
def test_everything_else_is_an_error(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_arguments(words)


def test_layers_are_required_and_switched_off() -> None:
    policy = policy_of(parse_arguments(["--require", "pids", "--without", "keyrings", "--keep-user", "--", "x"]), {})
    assert policy.need("pids") == "required"
    assert policy.need("keyrings") == "off"
    assert policy.identity == "keep"


def test_every_option_fills_a_field_and_the_command_line_has_it() -> None:
    fields = set(Request.__fields__)
    assert {option.key for option in OPTIONS} <= fields
    page = CliRunner().invoke(runner_e2e, ["sandbox", "exec", "--help"]).output
    for option in OPTIONS:
        assert option.name in page
        assert option.help
