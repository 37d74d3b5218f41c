"""``runner-e2e run`` as a person and a step call it: statuses, texts, and what may be seen of an id."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runner_e2e.engine.cancellation import GRACE
from runner_e2e.report.results import read_result

SOURCE = Path(__file__).resolve().parents[2] / "src"
PROGRAM = [
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from runner_e2e.cli import main; sys.exit(main())",
]
VARIABLE = "PAPERCLIP_RUNNER_E2E_SELECTED_ID"
PASS = """printf '{"schema":"runner-e2e.harness-result/v1","verdict":"passed","usage":{"cost_usd":0.25}}' \
> "$RUNNER_E2E_RESULT" """

CATALOG = """\
version: 1
harness: {command: [./harness]}
grace: 1s
credentials: {PROVIDER_KEY: {}}
profiles:
  free: {}
  paid: {credential: PROVIDER_KEY}
environments: {local: {}}
suites:
  demo:
    profiles: [free]
    environments: [local]
    timeout: 30s
    expected-cost: 1
    cases: {greeting: {}, agents.change-manager: {}, farewell: {}}
  sold:
    profiles: [paid]
    environments: [local]
    timeout: 30s
    expected-cost: 1
    cases: {order: {}}
"""
ID = "demo.free.local.agents.change-manager"


@dataclass
class Target:
    """A working directory with a catalog and a harness, and ways to run it."""

    root: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"], "HOME": "/nowhere"})

    def harness(self, script: str) -> None:
        path = self.root / "harness"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, "run", "--no-probe", *arguments],
            cwd=self.root,
            env=self.environ,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, "run", "--no-probe", *arguments],
            cwd=self.root,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def records(self) -> list[Any]:
        return [read_result(path) for path in sorted((self.root / ".runner-e2e").glob("*/*/*/result.json"))]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    made = Target(tmp_path)
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "runner-e2e.yml").write_text(CATALOG)
    made.harness(f"echo I am $PAPERCLIP_RUNNER_E2E_SELECTED_ID; {PASS}")
    return made


def test_the_cell_of_the_variable(target: Target) -> None:
    done = target.run(**{VARIABLE: ID})
    assert done.returncode == 0
    assert " | I am ***" in done.stderr
    assert "1 passed; cost $0.2500" in done.stdout
    assert "change-manager" not in done.stdout + done.stderr
    (record,) = target.records()
    assert (record.id, record.verdict, record.selection) == (ID, "passed", "env")


def test_selected_cells(target: Target) -> None:
    done = target.run("--local", "--suite", "demo", "--case", "greeting", "--case", "farewell", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert "2 passed; cost $0.5000" in done.stdout
    assert sorted(record.id for record in target.records()) == ["demo.free.local.farewell", "demo.free.local.greeting"]


def test_a_failed_cell(target: Target) -> None:
    target.harness("exit 9")
    done = target.run("--local", "--case", "greeting")
    assert done.returncode == 1
    assert "permanent_infrastructure" in done.stdout
    assert "ended with status 9 and its result was not written" in done.stdout
    assert "harness.log" in done.stdout


def test_what_a_harness_writes_gives_no_command(target: Target) -> None:
    message = r"first\n::error::second\r\n::add-mask::third \u001b]0;title\u0007\u2028::end"
    failure = f'{{"class":"candidate_failure","message":"{message}"}}'
    result = f'{{"schema":"runner-e2e.harness-result/v1","verdict":"failed","failure":{failure}}}'
    target.harness(f"cat > $RUNNER_E2E_RESULT <<'END'\n{result}\nEND")
    done = target.run("--local", "--case", "greeting")
    assert "first ::error::second ::add-mask::third" in done.stdout
    assert "first ::error::second ::add-mask::third" in done.stderr
    shown = done.stdout + done.stderr
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]
    assert "\x1b" not in shown


def test_json(target: Target) -> None:
    done = target.run("--local", "--suite", "demo", "--json", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""
    outcome = json.loads(done.stdout)
    assert outcome["schema"] == "runner-e2e.run/v1"
    assert [cell["verdict"] for cell in outcome["cells"]] == ["passed"] * 3
    assert "demo.free" not in done.stdout
    record = read_result(Path(outcome["cells"][0]["attempts"][0]["record"]))
    assert record.handle == outcome["cells"][0]["handle"]
    shown = json.loads(target.run("--local", "--case", "greeting", "--json", "--show-ids").stdout)
    assert shown["cells"][0]["id"] == "demo.free.local.greeting"


def test_quiet_prints_the_table_only(target: Target) -> None:
    done = target.run("--local", "--case", "greeting", "--quiet")
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].split() == ["CELL", "VERDICT", "TIME", "COST", "ATTEMPTS"]


def test_ids_are_shown_in_files_only_when_asked_for(target: Target) -> None:
    plain = target.run("--local", "--case", "greeting")
    assert "greeting" not in plain.stdout + plain.stderr
    shown = target.run("--local", "--case", "greeting", "--show-ids")
    assert "demo.free.local.greeting" in shown.stdout
    assert "demo.free.local.greeting" in shown.stderr


def test_a_terminal_shows_ids_at_the_end_alone(target: Target) -> None:
    main, terminal = pty.openpty()
    try:
        process = target.start("--local", "--case", "greeting", stdout=terminal)
        os.close(terminal)
        shown = b""
        while True:
            try:
                chunk = os.read(main, 65536)
            except OSError:  # EIO: the last holder of the other side is gone
                break
            if not chunk:
                break
            shown += chunk
        _, progress = process.communicate(timeout=60)
    finally:
        os.close(main)
    assert process.returncode == 0
    assert b"demo.free.local.greeting" in shown.replace(b"\r\n", b"")
    assert "greeting" not in progress


CONTROL = "suite.a.b.c\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("arguments", "environ", "status", "text"),
    [
        ((), {}, 2, f"{VARIABLE} is not set"),
        ((), {VARIABLE: ""}, 2, "is empty"),
        ((), {VARIABLE: "demo.free.local.nothing-here"}, 2, "names no cell that may run"),
        ((), {VARIABLE: "demo.free.local.x; touch owned"}, 2, "is not the id of a cell"),
        ((), {VARIABLE: "demo.free.local.$(touch owned)"}, 2, "is not the id of a cell"),
        ((), {VARIABLE: "demo.free.local.greeting\nsecond"}, 2, "line break"),
        ((), {VARIABLE: "demo.free.local." + "x" * 584}, 2, "has 600 bytes"),
        ((), {VARIABLE: CONTROL}, 2, "control character"),
        ((), {VARIABLE: "sold.paid.local.order"}, 2, "PROVIDER_KEY is not set"),
        (("--id", ID), {}, 2, "--id cannot be used without --local"),
        (("--all",), {}, 2, "--all cannot be used without --local"),
        (("--local", "--suite", "nothing"), {}, 2, "--suite 'nothing' is unknown"),
        (("--local", "--case", "greeting", "--suite", "sold"), {}, 2, "the selection is empty"),
        (("--local", "--id", "demo.free.local.greeting; x"), {}, 2, "the id holds"),
        (("--local", "--id", "x" * 600), {}, 2, "600 characters"),
        (("--local",), {}, 3, "nothing was selected"),
        (("--local", "--all", "--catalog", "none.yml"), {}, 2, "none.yml"),
        (("--local", "--suite", "demo", "--target", "none"), {}, 2, "the target none is no directory"),
        (("--local", "--suite", "demo", "--output", "harness"), {}, 2, "cannot be written to"),
        (("--local", "--suite", "demo", "--jobs", "0"), {}, 2, "0 is not in the range"),
        (("--local", "--suite", "demo", "--hied", "x"), {}, 2, "No such option"),
        (("--local", "--suite", "demo"), {"RUNNER_E2E_CAMPAIGN_KEY": "short"}, 2, "the key in RUNNER_E2E_CAMPAIGN_KEY"),
        (("--handed-over", "0"), {}, 2, "for this program's own use"),
        (("--handed-over", "99"), {}, 2, "for this program's own use"),
    ],
)
def test_bad_input(target: Target, arguments: tuple[str, ...], environ: dict[str, str], status: int, text: str) -> None:
    done = target.run(*arguments, **environ)
    assert done.returncode == status, done.stderr
    assert text.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert not (target.root / ".runner-e2e").exists()
    assert not (target.root / "owned").exists()
    assert "\x1b" not in done.stderr
    if value := environ.get(VARIABLE):
        assert value not in done.stderr


def test_selectors_are_off_the_command_line_before_anything_starts(target: Target) -> None:
    target.harness('tr "\\0" "\\n" < /proc/$(ps -o ppid= -p $PPID | tr -d " ")/cmdline; ' + PASS)
    done = target.run("--local", "--case=agents.change-manager", "--relay", "--no-relay", "--relay")
    assert done.returncode == 0, done.stderr
    relayed = [line.split(" | ", 1)[1] for line in done.stderr.splitlines() if " | " in line]
    assert relayed[-3:-1] == ["run", "--handed-over"]
    assert not [line for line in relayed if "change-manager" in line or "--case" in line]


def test_without_names_there_is_no_new_start(target: Target) -> None:
    target.harness('tr "\\0" "\\n" < /proc/$(ps -o ppid= -p $PPID | tr -d " ")/cmdline; ' + PASS)
    done = target.run("--relay", **{VARIABLE: ID})
    assert [line.split(" | ", 1)[1] for line in done.stderr.splitlines() if " | " in line][-3:] == [
        "run",
        "--no-probe",
        "--relay",
    ]


def test_a_wrapper_that_waits_is_told(target: Target) -> None:
    """A shell that does not become the command keeps its copy, and only its author can change that."""
    script = f"{shlex.join([*PROGRAM, 'run', '--local', '--case', 'agents.change-manager'])}; true"
    done = subprocess.run(
        ["bash", "-c", script], cwd=target.root, env=target.environ, capture_output=True, text=True, check=True
    )
    assert "(bash) above this one shows the selected cell on its command line" in done.stderr
    assert "change-manager" not in done.stdout + done.stderr


def test_a_reader_that_leaves_ends_the_run(target: Target) -> None:
    target.harness(STUBBORN)
    process = target.start("--local", "--case", "greeting", "--relay", stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    harness = int(wait_for(process, " | ").split(" | ")[1])
    process.stderr.close()
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    assert session_processes(harness) == []
    assert [record.verdict for record in target.records()] == ["failed"]


STUBBORN = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 600' &); echo $$; while :; do sleep 600; done"


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"{text!r} was never printed")


def session_processes(leader: int) -> list[int]:
    """Living processes in the session of a harness."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


@pytest.mark.serial
@pytest.mark.parametrize(
    ("number", "status", "least", "most"), [(signal.SIGINT, 130, 4.5, 7.5), (signal.SIGTERM, 143, 0.8, 2.5)]
)
def test_a_stop_is_recorded_in_time(target: Target, number: int, status: int, least: float, most: float) -> None:
    """A cancelled job gets SIGINT, 7.5 s later SIGTERM, 2.5 s later its end."""
    target.harness(STUBBORN)
    (target.root / ".github" / "runner-e2e.yml").write_text(CATALOG.replace("grace: 1s", "grace: 60s"))
    process = target.start("--local", "--suite", "demo", "--relay")
    harness = int(wait_for(process, " | ").split(" | ")[1])
    begun = time.monotonic()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    seconds = time.monotonic() - begun
    assert process.returncode == status
    assert least < seconds < most
    name = signal.Signals(number).name
    assert f"stopped by {name}" in stdout
    assert "1 failed, 2 not run" in stdout
    assert "Traceback" not in stderr
    assert sorted(record.verdict for record in target.records()) == ["failed", "not_run", "not_run"]
    assert session_processes(harness) == []


def test_a_second_interrupt_does_not_wait(target: Target) -> None:
    target.harness("trap 'echo asked' TERM; echo $$; while :; do sleep 0.02; done")
    process = target.start("--local", "--case", "greeting", "--relay")
    wait_for(process, " | ")
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    wait_for(process, " | asked")  # two that come together are one
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - begun < GRACE[signal.SIGINT]


def test_a_killed_engine_leaves_a_failure_and_no_process(target: Target) -> None:
    target.harness(STUBBORN)
    process = target.start("--local", "--case", "greeting", "--relay")
    harness = int(wait_for(process, " | ").split(" | ")[1])
    process.kill()
    process.communicate(timeout=60)
    limit = time.monotonic() + 60
    while session_processes(harness) and time.monotonic() < limit:
        time.sleep(0.05)
    assert session_processes(harness) == []
    (record,) = target.records()
    assert (record.verdict, record.failure.message) == ("failed", "the engine ended before the attempt did")


def test_credentials_and_key_are_not_in_the_engines_environment(target: Target) -> None:
    target.harness('cat /proc/$(ps -o ppid= -p $PPID | tr -d " ")/environ | tr "\\0" "\\n"; ' + PASS)
    key = "00112233445566778899aabbccddeeff" * 2
    done = target.run(
        "--local", "--suite", "sold", "--relay", PROVIDER_KEY="sk-very-secret", RUNNER_E2E_CAMPAIGN_KEY=key, KEPT="1"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| KEPT=1" in done.stderr
    assert "PROVIDER_KEY" not in done.stderr
    assert "CAMPAIGN_KEY" not in done.stderr


def test_the_campaign_key_makes_the_handles(target: Target) -> None:
    key = "00112233445566778899aabbccddeeff" * 2
    handles = {
        json.loads(target.run("--local", "--case", "greeting", "--json", RUNNER_E2E_CAMPAIGN_KEY=key).stdout)["cells"][
            0
        ]["handle"]
        for _ in range(2)
    }
    assert len(handles) == 1
