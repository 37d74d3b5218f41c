from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from runner_e2e.cli.group import runner_e2e
from runner_e2e.errors import RunnerE2EError, UsageError
from runner_e2e.sandbox.arguments import OPTIONS, Request, parse_arguments, policy_of

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize("option", ["--policy", "--layout", "--network"])
@pytest.mark.parametrize(("content", "why"), [(b"a\xff", "not UTF-8 at byte 1"), (None, "No such file or directory")])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, option: str, content: bytes | None, why: str) -> None:
    file = tmp_path / "file.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RunnerE2EError, match="cannot be read") as caught:
        policy_of(parse_arguments([option, str(file), "--", "x"]), {})
    assert why in caught.value.problem.why
    assert caught.value.problem.fix


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
