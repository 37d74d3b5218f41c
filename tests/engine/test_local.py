"""Campaigns on this machine with real harnesses: verdicts, records, retries, isolation, and what stops them."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from tests.engine.catalogs import VARIABLE, catalog, cells

from runner_e2e.cells.handles import PUBLIC_KEY, handle
from runner_e2e.cells.model import SelectedId
from runner_e2e.engine.campaign_plan import RunOptions
from runner_e2e.engine.cancellation import Cancellation
from runner_e2e.engine.local import CampaignOutcome, run_campaign
from runner_e2e.errors import DefectError, RefusedError, UsageError
from runner_e2e.report.campaign import read_campaign
from runner_e2e.report.results import SCHEMA_FILE, read_result, write_result

if TYPE_CHECKING:
    from runner_e2e.engine.campaign_plan import Campaign, PlannedCell
    from runner_e2e.report.results import Result

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
PASS = """printf '{"schema":"runner-e2e.harness-result/v1","verdict":"passed"}' > "$RUNNER_E2E_RESULT" """


@dataclass
class Recorder:
    """Remembers what it is told, and checks that it is told one thing at a time."""

    told: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    busy: threading.Lock = field(default_factory=threading.Lock)

    def _note(self, kind: str, text: str) -> None:
        assert self.busy.acquire(blocking=False)
        self.told.append((kind, text))
        self.busy.release()

    def campaign_started(self, campaign: Campaign) -> None:
        self._note("campaign", campaign.name)

    def attempt_started(self, cell: PlannedCell, attempt: int) -> None:
        self._note("started", f"{cell.handle} {attempt}")

    def output(self, _cell: PlannedCell, line: str) -> None:
        self._note("output", line)

    def attempt_ended(self, cell: PlannedCell, result: Result) -> None:
        self._note("ended", f"{cell.handle} {result.verdict}")

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def lines(self) -> list[str]:
        return [text for kind, text in self.told if kind == "output"]


@dataclass
class Bench:
    """A target with one harness script, and what running its catalog gave."""

    root: Path
    recorder: Recorder = field(default_factory=Recorder)
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"], "HOME": "/nowhere"})
    cancellation: Cancellation | None = None

    def run(self, script: str, *, jobs: int = 1, key: bytes | None = None, **changes: Any) -> CampaignOutcome:
        self.write(script)
        of = catalog(**changes)
        options = RunOptions(
            target=self.root / "target",
            output=self.root / "output",
            environ=self.environ,
            jobs=jobs,
            handle_key=key,
            relay=True,
        )
        outcome = run_campaign(of, cells(of), options, self.recorder, self.cancellation)
        self.check_records(outcome)
        return outcome

    def write(self, script: str) -> None:
        target = self.root / "target"
        target.mkdir(exist_ok=True)
        (target / "harness").write_text(f"#!/bin/sh\n{script}\n")
        (target / "harness").chmod(0o755)

    def check_records(self, outcome: CampaignOutcome) -> None:
        """Every result stands in its file, and no path and no told text holds an id."""
        for records in outcome.results:
            for number, result in enumerate(records, 1):
                path = outcome.campaign.directory / result.handle / f"attempt-{number}" / "result.json"
                assert read_result(path) == result
                VALIDATOR.validate(json.loads(path.read_text()))
        ids = [planned.cell.id for planned in outcome.campaign.cells]
        public = [str(path) for path in (self.root / "output").rglob("*")]
        public += [text for _, text in self.recorder.told] + self.recorder.warnings
        public += [result.failure.message for records in outcome.results for result in records if result.failure]
        assert not [text for text in public if any(one in text for one in ids)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def only(outcome: CampaignOutcome) -> Result:
    ((result,),) = outcome.results
    return result


def test_a_cell_that_passes(bench: Bench) -> None:
    outcome = bench.run(f"echo hello $PAPERCLIP_RUNNER_E2E_SELECTED_ID; {PASS}")
    result = only(outcome)
    assert (result.verdict, result.failure, result.attempt, result.attempts) == ("passed", None, 1, 2)
    assert (result.exit.code, result.selection, result.id) == (0, "env", "suite.profile.local.one")
    assert result.usage.cost_status == "unknown"
    assert outcome.exit_code == 0
    assert bench.recorder.lines() == ["hello ***"]
    log = outcome.campaign.directory / result.handle / "attempt-1" / "private" / "harness.log"
    assert log.read_text() == "hello ***\n"


def test_the_contract_of_a_harness(bench: Bench) -> None:
    script = """
    pwd; test -d "$RUNNER_E2E_INSTANCE" -a -w "$RUNNER_E2E_INSTANCE" && echo writable
    test -d "$RUNNER_E2E_SANDBOX_REPORTS" && echo reports
    cat "$RUNNER_E2E_SANDBOX_POLICY"; command -v runner-e2e; runner-e2e --version
    """
    outcome = bench.run(script + PASS, hide=("harness",))
    lines = bench.recorder.lines()
    directory = outcome.campaign.directory
    instance = directory / only(outcome).handle / "attempt-1" / "instance"
    assert lines[0] == str(bench.root / "target")
    assert lines[1:3] == ["writable", "reports"]
    assert lines[-2] == str(directory / "bin" / "runner-e2e")
    assert lines[-1].startswith("runner-e2e ")
    policy = json.loads("\n".join(lines[3:-2]))
    assert policy["expose"] == [str(instance)]
    assert {str(bench.root / "output"), str(bench.root / "target" / "harness")} <= set(policy["hide"])


def test_private_directories_are_private(bench: Bench) -> None:
    outcome = bench.run(PASS)
    attempt = outcome.campaign.directory / only(outcome).handle / "attempt-1"
    for path in (attempt / "private", attempt / "private" / "sandbox", outcome.campaign.directory / "bin"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((attempt / "result.json").stat().st_mode) == 0o600


def test_only_the_own_credential_gets_through_and_is_redacted(bench: Bench) -> None:
    bench.environ |= {"OWN_KEY": "own-secret-value", "OTHER_KEY": "other-secret-value", "AMBIENT": "x"}
    outcome = bench.run(f'echo "[$OTHER_KEY][$AMBIENT]"; {PASS}', credential="OWN_KEY")
    assert only(outcome).verdict == "passed"
    assert bench.recorder.lines() == ["[][]"]


@pytest.mark.parametrize(
    "shown", ["echo $OWN_KEY", "printf %s $OWN_KEY | base64", "printf own-; sleep 0.2; echo secret-value"]
)
def test_a_printed_credential_is_a_leak_and_is_not_tried_again(bench: Bench, shown: str) -> None:
    bench.environ |= {"OWN_KEY": "own-secret-value"}
    outcome = bench.run(f"{shown}; {PASS}", credential="OWN_KEY")
    result = only(outcome)
    assert result.failure is not None
    assert result.failure.failure_class == "secret_leak"
    assert "OWN_KEY" in result.failure.message
    kept = b"".join(path.read_bytes() for path in outcome.campaign.directory.rglob("*") if path.is_file())
    assert b"own-secret-value" not in kept


def test_a_failure_that_may_not_repeat_is_tried_once_more(bench: Bench) -> None:
    script = f'if [ -e "../seen" ]; then {PASS}; else touch ../seen; kill -9 $$; fi'
    outcome = bench.run(script)
    ((first, second),) = outcome.results
    assert first.failure is not None
    assert first.failure.failure_class == "transient_infrastructure"
    assert first.retry.allowed
    assert (second.verdict, second.attempt) == ("passed", 2)
    assert outcome.exit_code == 0
    assert [text.split()[1] for kind, text in bench.recorder.told if kind == "started"] == ["1", "2"]


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (1, 2), (5, 2)])
def test_there_is_one_retry_at_most(bench: Bench, retries: int, attempts: int) -> None:
    outcome = bench.run("kill -9 $$", retries=retries)
    assert len(outcome.results[0]) == attempts
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 4", "status 4 and its result was not written"),
        ('echo nonsense > "$RUNNER_E2E_RESULT"', "is not JSON"),
        ('mkfifo "$RUNNER_E2E_RESULT"', "is a FIFO"),
        ('ln -s /etc/passwd "$RUNNER_E2E_RESULT"', "is a symbolic link"),
        ('mkdir "$RUNNER_E2E_RESULT"', "is a directory"),
        ('echo \'{"schema":"other"}\' > "$RUNNER_E2E_RESULT"', "is not of the schema"),
        ('head -c 2000000 /dev/zero > "$RUNNER_E2E_RESULT"', "is larger than 1,048,576 bytes"),
        (f"{PASS}; exit 3", "contradict"),
    ],
)
def test_a_harness_without_a_good_result_fails_once(bench: Bench, script: str, message: str) -> None:
    result = only(bench.run(script))
    assert result.failure is not None
    assert result.failure.failure_class == "permanent_infrastructure"
    assert message in result.failure.message


def test_a_hanging_harness(bench: Bench) -> None:
    result = only(bench.run("trap '' TERM; while :; do sleep 30; done", timeout=0.4, grace=0.2))
    assert result.failure is not None
    assert result.failure.failure_class == "candidate_failure"
    assert result.failure.message == "the harness did not end within 0.4 s"
    assert result.exit.timed_out
    assert result.duration_s < 10


def test_a_harness_that_forks_away(bench: Bench) -> None:
    result = only(bench.run(f"setsid sleep 600 & sleep 0.1; {PASS}"))
    assert result.verdict == "passed"
    assert result.left_processes >= 1


def test_a_harness_that_floods(bench: Bench) -> None:
    result = only(bench.run(f"yes 0123456789 | head -c 40000000; {PASS}"))
    assert result.verdict == "passed"
    assert result.output.bytes == 40_000_000
    assert result.output.dropped_bytes > 20_000_000
    assert len(bench.recorder.lines()) < 100_000
    assert "prints more than is relayed" in bench.recorder.lines()[-1]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("./missing",), "missing does not exist"),
        (("no-such-program-anywhere",), "no-such-program-anywhere does not exist"),
        (("./plain",), "plain cannot be executed: it is not executable"),
    ],
)
def test_a_harness_that_cannot_start(bench: Bench, command: tuple[str, ...], message: str) -> None:
    (bench.root / "target").mkdir()
    (bench.root / "target" / "plain").touch()
    result = only(bench.run("", command=command))
    assert result.failure is not None
    assert result.failure.failure_class == "permanent_infrastructure"
    assert message in result.failure.message
    assert (result.usage.cost_usd, result.usage.cost_status) == (0.0, "reported")


def test_a_missing_directory_of_the_harness(bench: Bench) -> None:
    result = only(bench.run(PASS, directory="nowhere"))
    assert result.failure is not None
    assert "nowhere does not exist" in result.failure.message


def test_reports_of_launches_are_kept_without_secrets(bench: Bench) -> None:
    bench.environ |= {"OWN_KEY": "own-secret-value"}
    script = """
    cd "$RUNNER_E2E_SANDBOX_REPORTS"
    echo '{"wall": "landlock", "seen": "'$OWN_KEY'"}' > a.json
    echo broken > b.json; ln -s a.json c.json; echo x > d.txt
    """
    result = only(bench.run(script + PASS, credential="OWN_KEY"))
    assert result.sandbox[0] == {"wall": "landlock", "seen": "***"}
    assert [report["unreadable"] for report in result.sandbox[1:]] == ["b.json", "c.json"]


def test_several_at_once_each_for_itself(bench: Bench) -> None:
    names = ("one", "two", "three", "four.deeper")
    script = f'echo "$PAPERCLIP_RUNNER_E2E_SELECTED_ID" > "$RUNNER_E2E_INSTANCE/id"; sleep 0.5; {PASS}'
    begun = time.monotonic()
    outcome = bench.run(script, jobs=4, cases=names)
    seconds = time.monotonic() - begun
    assert outcome.exit_code == 0
    assert [result.id for result in outcome.last] == [f"suite.profile.local.{name}" for name in names]
    for result in outcome.last:
        instance = outcome.campaign.directory / result.handle / "attempt-1" / "instance"
        assert (instance / "id").read_text() == f"{result.id}\n"
    assert seconds < sum(result.duration_s for result in outcome.last)
    records = read_campaign(outcome.campaign.directory)
    assert records.results == outcome.results
    assert records.problems == ()


def test_handles_come_from_the_key_or_are_random(bench: Bench) -> None:
    key = b"k" * 32
    assert only(bench.run(PASS, key=key)).handle == handle(key, "suite.profile.local.one")
    first, second = only(bench.run(PASS)).handle, only(bench.run(PASS)).handle
    assert first != second
    assert only(bench.run(PASS, plain_ids=True)).handle == handle(PUBLIC_KEY, "suite.profile.local.one")


OLD = SelectedId(detection="auto", argv_fallback=True, sources=("harness",))


def test_an_old_target_gets_an_argument_with_a_warning(bench: Bench) -> None:
    script = f'[ "$1" = --id ] && [ "${{#2}}" -gt 5 ] && [ -z "$SELECTED" ] && {PASS}'
    result = only(bench.run(script, selected_id=OLD))
    assert (result.verdict, result.selection) == ("passed", "argv")
    assert "command line" in bench.recorder.warnings[0]


def test_an_old_target_is_not_told_in_the_variable_too(bench: Bench) -> None:
    result = only(
        bench.run(f"env | grep -c SELECTED_ID; {PASS}", selected_id=SelectedId(detection="argv", argv_fallback=True))
    )
    assert result.verdict == "passed"
    assert bench.recorder.lines() == ["0"]


def test_an_old_target_is_refused_for_a_campaign(bench: Bench) -> None:
    with pytest.raises(RefusedError, match="2 cells were selected"):
        bench.run(PASS, selected_id=OLD, cases=("one", "two"))
    assert not (bench.root / "output").exists()


def test_a_missing_credential_stops_before_anything_is_made(bench: Bench) -> None:
    with pytest.raises(UsageError, match="OWN_KEY is not set"):
        bench.run(PASS, credential="OWN_KEY")
    assert not (bench.root / "output").exists()


def test_an_output_that_cannot_be_written_stops_before_anything_is_started(bench: Bench) -> None:
    (bench.root / "output").write_text("a file")
    with pytest.raises(UsageError, match="cannot be written to"):
        bench.run("touch ../started")
    assert not (bench.root / "started").exists()


def test_an_id_in_a_path_that_agents_see_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "suite.profile.local.one")
    bench.root.mkdir()
    with pytest.raises(UsageError, match="holds the id of a selected cell"):
        bench.run(PASS)


def test_a_hidden_path_that_is_absent_is_told(bench: Bench) -> None:
    bench.run(PASS, hide=("e2e",))
    assert bench.recorder.warnings == ["harness.hide names e2e, which this target does not have"]


def test_records_that_a_later_harness_removed_are_written_again(bench: Bench) -> None:
    script = f'[ -e ../second ] && cd "$RUNNER_E2E_INSTANCE/../../../.." && rm -rf "$(pwd -P)"; touch ../second; {PASS}'
    outcome = bench.run(script, cases=("one", "two"))
    assert [result.verdict for result in outcome.last] == ["passed", "failed"]
    found = read_campaign(outcome.campaign.directory)
    assert [records[-1].verdict for records in found.results] == ["passed", "failed"]
    assert any("written again" in warning for warning in bench.recorder.warnings)


def test_a_record_is_written_also_where_the_harness_removed_its_directory(bench: Bench) -> None:
    result = only(bench.run('cd "$RUNNER_E2E_INSTANCE/.." && rm -rf "$(pwd -P)"'))
    assert result.failure is not None
    assert "was not written" in result.failure.message


def test_rights_that_the_harness_took_away_are_given_back(tmp_path: Path) -> None:
    """Run without capabilities: root needs no rights."""
    script = f"""{PASS}
cd "$RUNNER_E2E_INSTANCE/.." && chmod 0 private/sandbox private/artifacts private && chmod 500 ."""
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from runner_e2e import kernel
for capability in range(41 if kernel.effective_capabilities() else 0):
    kernel.drop_bounding_capability(capability)
kernel.set_capabilities()
from tests.engine.test_local import Bench, only
print(only(Bench(Path({str(tmp_path)!r})).run({script!r})).verdict)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "passed\n", done.stderr


def test_what_cannot_be_recorded_is_told_and_still_counts(bench: Bench) -> None:
    """The first harness puts a file where the campaign was: nothing can be recorded, and nothing is dropped."""
    bench.write('cd "$RUNNER_E2E_INSTANCE/../../.." && d=$(pwd -P) && rm -rf "$d" && touch "$d"')
    of = catalog(cases=("one", "two"))
    options = RunOptions(target=bench.root / "target", output=bench.root / "output", environ=bench.environ)
    outcome = run_campaign(of, cells(of), options, bench.recorder)
    first, second = outcome.last
    assert outcome.exit_code == 1
    assert [first.verdict, second.verdict] == ["failed", "failed"]
    assert second.failure is not None
    assert "directory cannot be prepared: " in second.failure.message
    assert len([text for text in bench.recorder.warnings if "the result record cannot be written" in text]) == 2


def test_on_a_full_disk_the_log_makes_room_for_the_record(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner_e2e.engine import attempt

    def write(result: Result, path: Path) -> None:
        log = path.parent / "private" / "harness.log"
        if log.is_file() and log.stat().st_size:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_result(result, path)

    monkeypatch.setattr(attempt, "write_result", write)
    assert only(bench.run(f"echo text; {PASS}")).verdict == "passed"
    assert bench.recorder.warnings == []


def test_a_record_counts_from_the_start(bench: Bench) -> None:
    """Whoever kills the engine finds a failure recorded, not nothing."""
    outcome = bench.run(f'cp "$RUNNER_E2E_INSTANCE/../result.json" "$RUNNER_E2E_INSTANCE/early.json"; {PASS}')
    early = read_result(outcome.campaign.directory / only(outcome).handle / "attempt-1" / "instance" / "early.json")
    assert early.failure is not None
    assert (early.verdict, early.failure.message) == ("failed", "the engine ended before the attempt did")
    assert early.usage.cost_status == "unknown"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_what_runs_and_records_what_did_not(bench: Bench, number: signal.Signals) -> None:
    bench.cancellation = Cancellation()

    def ask() -> None:
        assert bench.cancellation
        while not bench.recorder.lines():
            time.sleep(0.02)
        bench.cancellation.request(number)

    thread = threading.Thread(target=ask)
    thread.start()
    outcome = bench.run("echo running; while :; do sleep 30; done", cases=("one", "two", "three"))
    thread.join()
    bench.cancellation.close()
    assert [result.verdict for result in outcome.last] == ["failed", "not_run", "not_run"]
    assert outcome.exit_code == 128 + number
    first, second, _ = outcome.last
    assert first.failure is not None
    assert second.failure is not None
    assert first.failure.message == f"stopped by {number.name} before it ended"
    assert second.failure.message == f"stopped by {number.name} before it started"
    assert not first.retry.allowed
    assert second.usage.cost_usd == 0.0


def test_variables_are_named_as_the_catalog_says(bench: Bench) -> None:
    outcome = bench.run(
        f'[ -n "$MY_CELL" ] && [ -z "${VARIABLE}" ] && {PASS}', selected_id=SelectedId(variable="MY_CELL")
    )
    assert outcome.exit_code == 0


def test_a_defect_starts_no_further_cell_and_is_raised(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from runner_e2e.engine import attempt

    def fail(*_: object, **__: object) -> None:
        raise DefectError("the supervisor of a harness failed: a test")

    monkeypatch.setattr(attempt, "run_harness", fail)
    with pytest.raises(DefectError, match="a test"):
        bench.run(PASS, cases=("one", "two"))
    (campaign,) = (bench.root / "output").iterdir()
    first, second = (records[-1] for records in read_campaign(campaign).results)
    assert first.failure is not None
    assert second.failure is not None
    assert first.failure.message == "the engine ended before the attempt did"
    assert (second.verdict, second.failure.message) == ("not_run", "a defect stopped the campaign before it started")


def test_a_reporter_that_fails_leaves_no_process(bench: Bench) -> None:
    """As when the reader of our output goes away."""

    def output(_cell: object, line: str) -> None:
        bench.recorder.told.append(("output", line))
        raise BrokenPipeError

    bench.recorder.output = output  # type: ignore[method-assign]
    with pytest.raises(BrokenPipeError):
        bench.run("echo $$; while :; do sleep 600; done", grace=30.0)
    assert not Path(f"/proc/{bench.recorder.lines()[0]}").exists()
