"""The runner's formats, read back the way the runner reads them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e import gha
from runner_e2e.errors import ConfigurationError, DefectError, Place, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_file_commands(text: str) -> dict[str, str]:
    """Reads a file of outputs by the runner's rules: a name, ``<<``, a delimiter, lines up to that delimiter alone."""
    values: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        assert heredoc >= 0
        assert equals < 0 or heredoc < equals
        name, delimiter = line[:heredoc], line[heredoc + 2 :]
        content = []
        for part in lines:
            if part == delimiter:
                break
            content.append(part)
        else:
            pytest.fail(f"{name}: no closing delimiter")
        values[name] = "\n".join(content)
    return values


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Reads one workflow command by the runner's rules."""
    assert "\n" not in line
    assert "\r" not in line
    matched = re.fullmatch(r"::([^ :]+)(?: ([^:]*))?::(.*)", line)
    assert matched, line
    properties = {}
    for pair in filter(None, (matched[2] or "").split(",")):
        name, _, value = pair.partition("=")
        properties[name] = unescape(value, property_value=True)
    return matched[1], properties, unescape(matched[3])


def unescape(text: str, *, property_value: bool = False) -> str:
    pairs = [("%0D", "\r"), ("%0A", "\n")] + ([("%3A", ":"), ("%2C", ",")] if property_value else [])
    for coded, plain in pairs:
        text = text.replace(coded, plain)
    return text.replace("%25", "%")


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(values=st.dictionaries(NAMES, TEXT, max_size=4))
def test_outputs_are_read_back_as_they_were(values: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("outputs") / "output"
    gha.write_outputs(values, {"GITHUB_OUTPUT": str(path)})
    assert read_file_commands(path.read_bytes().decode()) == values


def test_an_output_cannot_end_its_own_and_begin_another(tmp_path: Path) -> None:
    path = tmp_path / "output"
    environ = {"GITHUB_OUTPUT": str(path)}
    gha.write_outputs({"first": "x"}, environ)
    delimiter = path.read_text().splitlines()[0].partition("<<")[2]
    # An author who saw one delimiter does not know the next.
    gha.write_outputs({"second": f"a\n{delimiter}\nverdict<<E\npassed\nE"}, environ)
    assert set(read_file_commands(path.read_text())) == {"first", "second"}


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a<<E", "a\nb", "1a"])
def test_an_output_name_that_the_format_cannot_carry_is_a_defect(name: str, tmp_path: Path) -> None:
    path = tmp_path / "output"
    with pytest.raises(DefectError):
        gha.write_outputs({name: "x"}, {"GITHUB_OUTPUT": str(path)})
    assert not path.exists()


def test_outputs_outside_a_job_are_nothing() -> None:
    gha.write_outputs({"a": "b"}, {})


def test_outputs_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="step outputs could not be written"):
        gha.write_outputs({"a": "b"}, {"GITHUB_OUTPUT": str(tmp_path)})


@given(message=TEXT, title=TEXT, file=TEXT, line=st.integers(0, 10**6), column=st.integers(0, 500))
def test_annotations_are_read_back_as_they_were(message: str, title: str, file: str, line: int, column: int) -> None:
    place = Place(path=file, line=line, column=column)
    command, properties, data = read_command(gha.annotation("warning", message, title=title, place=place))
    wanted = {"title": title, "file": file, "line": str(line or ""), "col": str(column or "")}
    assert (command, data) == ("warning", message)
    assert properties == {name: value for name, value in wanted.items() if value}


def test_an_annotation_without_place_has_no_properties() -> None:
    assert gha.annotation("error", "50% of\nit") == "::error::50%25 of%0Ait"


def test_undecodable_bytes_do_not_break_a_command() -> None:
    assert gha.annotation("error", b"a\xff".decode("utf-8", "surrogateescape")) == "::error::a\N{REPLACEMENT CHARACTER}"


def test_half_a_surrogate_pair_breaks_nothing(tmp_path: Path) -> None:
    """JSON may hold one; the inputs of an event come from JSON."""
    event = tmp_path / "event.json"
    event.write_text(r'{"inputs": {"selected-id": "abc\ud83d"}}')
    (value,) = gha.event_inputs({"GITHUB_EVENT_PATH": str(event)}).values()
    assert gha.masks(value) == ("::add-mask::abc\N{REPLACEMENT CHARACTER}",)
    output = tmp_path / "output"
    gha.write_outputs({"name": value}, {"GITHUB_OUTPUT": str(output)})
    assert "abc\N{REPLACEMENT CHARACTER}" in output.read_text(encoding="utf-8")


@given(title=TEXT)
def test_groups_are_one_line(title: str) -> None:
    assert read_command(gha.group(title)) == ("group", {}, title)
    assert gha.end_group() == "::endgroup::"


def test_commands_are_stopped_with_a_token_of_their_own() -> None:
    stop, resume = gha.commands_stopped()
    command, _, token = read_command(stop)
    assert command == "stop-commands"
    assert resume == f"::{token}::"
    assert len(token) == 32
    assert gha.commands_stopped()[0] != stop


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("chat.codex.local.agents.change-manager", ["chat.codex.local.agents.change-manager", "agents.change-manager"]),
        ("chat.codex.local.short", ["chat.codex.local.short"]),
        ("  padded-value ", ["padded-value"]),
        ("100%25 of it", ["100%25 of it"]),
        ("line one\r\n  line two\nabc\n", ["line one\r\n  line two\nabc", "line one", "line two"]),
        ("abc", []),
        ("", []),
        (" \n ", []),
    ],
)
def test_masks(value: str, masked: list[str]) -> None:
    commands = [read_command(line) for line in gha.masks(value)]
    assert {name for name, _, _ in commands} <= {"add-mask"}
    assert [data for _, _, data in commands] == masked


def test_summary_is_scrubbed_and_appended(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    environ = {"GITHUB_STEP_SUMMARY": str(path)}
    gha.append_summary("# one", environ=environ)
    gha.append_summary("two canary\n\n", scrub=lambda text: text.replace("canary", "***"), environ=environ)
    assert path.read_text() == "# one\ntwo ***\n"


def test_summary_outside_a_job_is_nothing() -> None:
    gha.append_summary("x", environ={})


def test_a_long_summary_is_cut_at_a_line_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    environ = {"GITHUB_STEP_SUMMARY": str(path)}
    gha.append_summary("before", environ=environ)
    gha.append_summary("é" * 99 + "\n" + ("ü" * 99 + "\n") * 9000, environ=environ)
    content = path.read_bytes()
    assert gha.MAXIMUM_SUMMARY_BYTES - 400 < len(content) <= gha.MAXIMUM_SUMMARY_BYTES
    text = content.decode()
    assert text.endswith("at most 1 MiB._\n")
    assert all(len(line) in {0, 99} for line in text.splitlines()[1:-2])
    gha.append_summary("more " * 100, environ=environ)
    assert path.stat().st_size <= gha.MAXIMUM_SUMMARY_BYTES


def test_code_span_is_without_effect() -> None:
    shown = gha.code_span("a|b\n<script> ![x](https://e.example/?q) `c` @team #1 _é_ & *")
    assert not set("|\n<>![]()`@*_") & set(shown)
    assert re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), shown).startswith("a|b &lt;script&gt; ![x](https://e")
    assert len(gha.code_span("x" * 1000)) == 500


def test_in_actions() -> None:
    assert gha.in_actions({"GITHUB_ACTIONS": "true"})
    assert not gha.in_actions({"GITHUB_ACTIONS": "false"})
    assert not gha.in_actions({})


def test_inputs_come_from_the_mapped_variables_only() -> None:
    environ = {"RUNNER_E2E_INPUT_CONFIDENTIAL_INPUTS": " a, b\nc  a ", "INPUT_COMMAND": "run"}
    assert gha.read_list_input("confidential-inputs", environ=environ) == ("a", "b", "c")
    assert gha.read_input("command", environ=environ) == ""
    assert gha.read_input("command", default="x", environ=environ) == "x"


def event(tmp_path: Path, content: bytes) -> dict[str, str]:
    path = tmp_path / "event.json"
    path.write_bytes(content)
    return {"GITHUB_EVENT_PATH": str(path)}


def test_event_inputs(tmp_path: Path) -> None:
    content = {"inputs": {"selected-id": "a.b.c.d", "flag": True, "count": 3, "none": None}, "ref": "refs/heads/main"}
    found = gha.event_inputs(event(tmp_path, json.dumps(content).encode()))
    assert found == {"selected-id": "a.b.c.d", "flag": "true", "count": "3"}
    assert gha.event_inputs(event(tmp_path, b'{"ref": "x"}')) == {}
    assert gha.event_inputs(event(tmp_path, b'{"inputs": null}')) == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"inputs": {"a": "canary"', "Expecting ',' delimiter at line 1 column 26"),
        (b"", "Expecting value at line 1 column 1"),
        (b"[1]", "it holds no JSON object"),
        (b'"canary"', "it holds no JSON object"),
        (b'{"inputs": ["canary"]}', "its inputs are not a mapping"),
        (b'{"inputs": {"a": ["canary"]}}', "its inputs are not a mapping"),
        (b'{"a": "\xff canary"}', "it is not JSON in UTF-8"),
        (b"[" * 100_000, "it is not JSON in UTF-8"),
        (b'{"a": ' + b"9" * 5000 + b"}", "it is not JSON in UTF-8"),
        (b" " * (gha.MAXIMUM_EVENT_BYTES + 1), "it is larger than 25,000,000 bytes"),
    ],
    ids=range(10),
)
def test_a_damaged_event_is_one_clear_error_that_shows_nothing_of_it(content: bytes, why: str, tmp_path: Path) -> None:
    environ = event(tmp_path, content)
    with pytest.raises(ConfigurationError) as caught:
        gha.event_inputs(environ)
    text = str(caught.value)
    assert why in text
    assert environ["GITHUB_EVENT_PATH"] in text
    assert "canary" not in text


def test_a_missing_event_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH is not set"):
        gha.event_inputs({})
    with pytest.raises(ConfigurationError, match="the event file is damaged") as caught:
        gha.event_inputs({"GITHUB_EVENT_PATH": str(tmp_path / "gone")})
    assert "No such file" in str(caught.value)


def test_temporary_directory(tmp_path: Path) -> None:
    assert gha.temporary_directory({"RUNNER_TEMP": str(tmp_path)}) == tmp_path
    with pytest.raises(UsageError, match="RUNNER_TEMP is not set"):
        gha.temporary_directory({})
    with pytest.raises(UsageError, match="RUNNER_TEMP names no directory"):
        gha.temporary_directory({"RUNNER_TEMP": str(tmp_path / "gone")})


def test_tool_cache() -> None:
    assert gha.tool_cache({"RUNNER_TOOL_CACHE": "/opt/cache"}) == Path("/opt/cache")
    assert gha.tool_cache({}) is None


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


NO_PROCESSES = Path("/nonexistent")
GUID = "1c7cd5e5-3b26-4f52-9a3c-0f0f4b2f2c11"


def test_files_of_github_s_runner(tmp_path: Path) -> None:
    work = tmp_path / "runner" / "_work"
    temporary = work / "_temp"
    event_file = temporary / "_github_workflow" / "event.json"
    output = temporary / "_runner_file_commands" / f"set_output_{GUID}"
    scripts = [temporary / f"{GUID}.sh", temporary / f"{GUID}.py", temporary / "other.sh"]
    kept = [temporary / "runner-e2e" / "bin" / "python3", temporary / "notes.txt", work / "repo" / "repo" / "a.sh"]
    diagnostics = tmp_path / "runner" / "_diag"
    credentials = tmp_path / "runner" / ".credentials"
    touch(event_file, output, *scripts, *kept, diagnostics / "Worker_1.log", credentials)
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(event_file),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_ENV": str(output.with_name("set_env_gone")),
        "GITHUB_WORKSPACE": str(work / "repo" / "repo"),
        "RUNNER_TEMP": str(temporary),
        "HOME": str(tmp_path / "home"),
    }
    found = gha.runner_files(environ, processes=NO_PROCESSES)
    assert found == tuple(sorted([event_file.parent, output.parent, *scripts, diagnostics, credentials]))
    assert not any(path.is_relative_to(hidden) for path in kept for hidden in found)
    gha.write_outputs({"verdict": "passed"}, environ)
    assert read_file_commands(output.read_text().removeprefix("x")) == {"verdict": "passed"}
    assert gha.runner_files({**environ, "GITHUB_ACTIONS": ""}, processes=NO_PROCESSES) == ()


def test_files_of_act(tmp_path: Path) -> None:
    run = tmp_path / "4179"
    workflow = run / "act" / "workflow"
    touch(workflow / "event.json", workflow / "outputcmd.txt", workflow / "0-composite-run.sh")
    touch(run / "hostexecutor" / "x.py", run / "tmp" / "runner-e2e" / "x")
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(workflow / "event.json"),
        "GITHUB_OUTPUT": str(workflow / "outputcmd.txt"),
        "GITHUB_WORKSPACE": str(run / "hostexecutor"),
        "RUNNER_TEMP": str(run / "tmp"),
    }
    assert gha.runner_files(environ, processes=NO_PROCESSES) == (workflow,)


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "RUNNER_TEMP", "GITHUB_ACTION_PATH", "HOME"])
def test_a_directory_that_the_launch_needs_is_never_hidden_whole(variable: str, tmp_path: Path) -> None:
    event_file = tmp_path / "workflow" / "event.json"
    needed = tmp_path / "workflow" / "needed"
    touch(event_file, needed / "x")
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event_file), variable: str(needed)}
    assert gha.runner_files(environ, processes=NO_PROCESSES) == (event_file,)


def test_an_event_file_in_a_shared_directory_is_hidden_alone(tmp_path: Path) -> None:
    event_file = tmp_path / "event.json"
    touch(event_file, tmp_path / "other")
    environ = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(event_file)}
    assert gha.runner_files(environ, processes=NO_PROCESSES) == (event_file,)


def test_diagnostics_are_found_beside_the_runner_program_above_this_process(tmp_path: Path) -> None:
    home = tmp_path / "cached"
    touch(home / "bin" / "Runner.Worker", home / "_diag" / "Worker.log")
    processes = tmp_path / "proc"
    for number, parent, program in ((os.getppid(), 77, "/usr/bin/bash"), (77, 1, f"{home}/bin/Runner.Worker")):
        (processes / str(number)).mkdir(parents=True)
        (processes / str(number) / "exe").symlink_to(program)
        (processes / str(number) / "stat").write_text(f"{number} (a) b) 9) S {parent} 1 1")
    found = gha.runner_files({"GITHUB_ACTIONS": "true"}, processes=processes)
    assert found == (home / "_diag",)


def test_the_real_process_tree_is_walked_to_its_end() -> None:
    code = "from runner_e2e import gha; print(gha.runner_files({'GITHUB_ACTIONS': 'true'}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": "src"}, capture_output=True, text=True, check=True,
        cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    above = [Path(home, name).resolve() for home in runners_above() for name in gha.RUNNER_HOME_FILES]
    assert done.stdout == f"{tuple(sorted(path for path in above if path.exists()))}\n"


def runners_above() -> Iterator[Path]:
    """Where the runners are installed that these tests run below: none, but on a runner of GitHub's."""
    process = os.getpid()
    while process:
        with contextlib.suppress(OSError):
            program = Path(f"/proc/{process}/exe").readlink()
            if program.name in gha.RUNNER_PROGRAMS:
                yield program.parents[1]
        (parent,) = re.findall(r"^PPid:\t(\d+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
        process = int(parent)
