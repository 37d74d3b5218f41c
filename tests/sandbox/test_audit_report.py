"""Both forms of the report: whole, valid against the schema, and without the value."""

from __future__ import annotations

import io
import json
from importlib import resources

import jsonschema
import pytest

from runner_e2e.sandbox.audit_report import ExecSpool, render_text, write_json
from runner_e2e.sandbox.canary import Canary, Finder
from runner_e2e.sandbox.exec_audit import Audit, Options, audit

VALUE = "Smoke.Codex.Linux.readme-4711"
SCHEMA = json.loads((resources.files("runner_e2e.sandbox") / "schemas" / "audit-v1.json").read_text())


def reported(
    script: str, *arguments: str | bytes, options: Options | None = None
) -> tuple[Audit, dict[str, object], str]:
    canaries = [Canary(name="$ID", value=VALUE)]
    with ExecSpool(Finder(canaries)) as spool:
        found = audit(
            ["sh", "-c", script, *arguments],
            canaries=canaries,
            options=options or Options(linger=0.2, end_survivors=True),
            environ={b"PATH": b"/usr/bin:/bin", b"ID": VALUE.encode(), b"X_" + VALUE.encode(): b"1"},
            descriptors={},
            sink=spool.add,
        )
        file = io.StringIO()
        write_json(found, spool, file)
    data = json.loads(file.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    return found, data, file.getvalue() + render_text(found)


LEAKY = (
    'cd /tmp; /bin/echo "$ID" "${ID%-*}"; ID=$(echo "$ID" | tr a-z A-Z); /bin/echo "$ID"; /bin/true "$0"; /absent "$ID"'
)


def test_the_value_and_its_pieces_never_appear() -> None:
    _, data, everything = reported(LEAKY, f"a\n{VALUE}\t", b"\xff" + VALUE.encode())
    assert data["verdict"] == "leak"
    assert Finder([Canary(name="$ID", value=VALUE)]).find(everything) == ()
    assert "***" in everything
    # Both have been redacted and escaped, and are still what they were.
    assert "X_***" in everything


def test_positions_are_those_of_the_real_argument() -> None:
    _, data, _ = reported('/bin/true "$0"', f"--case={VALUE},{VALUE}")
    made = data["execs"][1]  # type: ignore[index]
    assert made["argv"] == ["/bin/true", "--case=***,***"]
    assert [(leak["argument"], leak["start"], leak["end"]) for leak in made["leaks"]] == [(1, 7, 36), (1, 37, 66)]


def test_long_arguments_and_lists_are_shown_in_part() -> None:
    _, data, _ = reported("/bin/true " + "x " * 500 + "y" * 5000)
    made = data["execs"][1]  # type: ignore[index]
    assert made["argc"] == 502
    assert len(made["argv"]) == 128
    assert "more characters" in data["execs"][0]["argv"][2]  # type: ignore[index]


def test_a_clean_run_says_what_was_done() -> None:
    found, data, everything = reported("/bin/true; :")
    assert data["verdict"] == "clean"
    assert data["counts"]["execs"] == 2  # type: ignore[index]
    assert "clean: none of 2 execs carried the value" in everything
    assert "the planted exec was seen" in everything
    assert "in ID, X_***" in everything
    assert found.gaps == []


@pytest.mark.parametrize(
    ("script", "texts"),
    [
        ("sudo -V", ["ran without its privilege (set-user-id root"]),
        ("kill -TERM $$", ["status 143 (SIGTERM)"]),
        ("/absent; :", ["1 exec failed"]),
    ],
)
def test_text_names_what_is_special(script: str, texts: list[str]) -> None:
    _, _, everything = reported(script)
    assert [text for text in texts if text not in everything] == []


def test_a_dash_probe_that_fails_is_no_exec_of_ours() -> None:
    # A shell looks a program up by itself: what is not there is never given to the kernel.
    _, data, _ = reported("absent-program; :")
    assert data["counts"]["failed"] == 0  # type: ignore[index]


def test_nothing_to_look_for() -> None:
    found = audit(["true"])
    assert found.verdict == "not-searched"
    assert "no value to look for" in render_text(found)


def test_a_leak_shows_who_called() -> None:
    _, _, everything = reported("sh -c '/bin/echo \"$ID\"; :'; :")
    lines = [line.strip() for line in everything.splitlines()]
    assert 'by sh -c /bin/echo "$ID"; :' in lines


def test_an_escape_sequence_does_not_reach_the_terminal() -> None:
    _, _, everything = reported('/bin/true "$0" "$ID"', "\x1b[31mred\r\n")
    text = everything[everything.index("exec audit:") :]
    assert "\x1b" not in text
    assert "\\e[31mred\\r\\n" in text
