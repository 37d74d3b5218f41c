"""What findings say to write instead, in the language of the program."""

from __future__ import annotations

import pytest

from runner_e2e.lint.advice import advise, placed
from runner_e2e.lint.languages import ANALYSERS

INHERITED = "`tool` inherits the environment: let it read `CELL` there, and leave the argument out"


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        ("javascript", "process.env.CELL"),
        ("javascript", "`--id=${process.env['CELL']}`"),
        ("github-script", 'process.env["CELL"]'),
        ("python", 'os.environ["CELL"]'),
        ("python", "os.environ.get('CELL', '')"),
        ("python", "os.getenv('CELL')"),
        ("perl", "$ENV{CELL}"),
        ("ruby", "ENV['CELL']"),
        ("ruby", 'ENV.fetch("CELL")'),
        ("powershell", '"--id=$env:CELL"'),
        ("powershell", "${env:CELL}"),
        ("cmd", "%CELL%"),
        ("cmd", "!CELL:~1!"),
    ],
)
def test_a_variable_of_the_environment_is_there_already(kind: str, argument: str) -> None:
    assert advise(kind, command="tool", argument=argument) == INHERITED


@pytest.mark.parametrize("kind", sorted(ANALYSERS))
def test_every_language_says_how_to_hand_a_value_over(kind: str) -> None:
    said = advise(kind, command="tool", argument="value")
    assert "environment" in said
    assert "VALUE" in said
    assert "{{" not in said


def test_what_is_only_possible_is_said_so() -> None:
    assert placed("environment", command="tool", sure=True) == "is an argument of `tool`"
    assert placed("environment", command="tool", sure=False) == "may be an argument of `tool`"
    assert placed("possible", command="run", sure=False) == "may be an argument of a process that `run` starts"
    assert "not known" in advise("possible", command="run", argument="$env:ID")


@pytest.mark.parametrize(
    ("before", "argument", "expected"),
    [
        ("curl -sH ", '"Authorization: Bearer $KEY"', "curl -H @-"),
        ("", '"--header=Authorization: Bearer $KEY"', "curl -H @-"),
        ("  -d ", '"key=$KEY"', "curl --data-binary @-"),
        ("curl -s", " -d$KEY".strip(), "curl --data-binary @-"),
        ("curl --data-urlencode ", '"key=$KEY"', "curl --data-binary @-"),
        ("curl --json ", '"$KEY"', "curl --json @-"),
        ("curl -u ", '"me:$KEY"', "'user = "),
        ("curl --user ", '"me:$KEY"', "'user = "),
        ("curl -F ", '"key=$KEY"', "'form = "),
        ("curl -X PUT ", '"https://example.com/$KEY"', "'url = "),
        ("curl -s ", '"https://example.com/$KEY"', "'url = "),
        ("", '"https://example.com/$KEY"', "'url = "),
    ],
)
def test_curl_is_told_what_it_can_read_from_its_input(before: str, argument: str, expected: str) -> None:
    said = advise("curl-header", command="curl", argument=argument, before=before)
    assert expected in said
    assert '"$KEY" | curl' in said
