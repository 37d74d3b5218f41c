from __future__ import annotations

import io
import json
import random
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graders.streams import (
    END,
    RECORDED,
    REFUSAL,
    START,
    answered,
    asked,
    command,
    grade,
    grade_bytes,
    lines,
    raw,
    recorded,
    turn,
)

from runner_e2e.graders.calls import Calls, TooMuchError
from runner_e2e.graders.events import Answer, Origin, Request, ShellText
from runner_e2e.graders.transcript import Transcript
from runner_e2e.graders.workspace import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.graders.streams import Json

UNCHANGED: tuple[Difference, ...] = ()
MADE = (Difference(path="probe.txt", what="created"),)
WRITE = "printf x > probe.txt"


# --- what the real Codex wrote


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (["refused-fast.session.jsonl"], "passed"),
        (["refused-fast.app.jsonl"], "passed"),
        (["refused-rc.session.jsonl"], "passed"),
        (["refused-rc.app.jsonl"], "passed"),
        (["refused-fast.exec.jsonl", "refused-fast.session.jsonl"], "passed"),
        (["refused-rc.exec.jsonl", "refused-rc.session.jsonl"], "passed"),
        (["refused-fast.exec.jsonl"], "incomplete"),
        (["refused-rc.exec.jsonl"], "incomplete"),
        (["written.exec.jsonl"], "write-succeeded"),
        (["written.session.jsonl"], "write-succeeded"),
        (["written.app.jsonl"], "write-succeeded"),
        (["written-fast.exec.jsonl"], "write-succeeded"),
        (["written-fast.session.jsonl"], "write-succeeded"),
        (["written-fast.app.jsonl"], "write-succeeded"),
        (["printed-words.session.jsonl"], "no-write-attempt"),
        (["printed-words.app.jsonl"], "no-write-attempt"),
        (["printed-words.exec.jsonl"], "incomplete"),
        (["no-userns.exec.jsonl"], "sandbox-failed-to-start"),
        (["no-userns.session.jsonl"], "sandbox-failed-to-start"),
        (["no-userns-rc.exec.jsonl"], "sandbox-failed-to-start"),
        (["no-userns-rc.session.jsonl"], "sandbox-failed-to-start"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else value,
)
def test_recorded_runs(names: list[str], verdict: str) -> None:
    assert recorded(*names).verdict == verdict


def test_a_refusal_in_the_item_events_is_enough_when_somebody_looked_at_the_workspace() -> None:
    result = recorded("refused-rc.exec.jsonl", differences=UNCHANGED)
    assert result.verdict == "passed"
    assert "Read-only file system" in result.evidence[0].text
    assert result.evidence[0].place == "events.jsonl:5"
    assert result.evidence[-1].text == "the workspace is unchanged"


def test_a_refused_write_that_the_item_events_leave_out_is_not_taken_for_no_attempt() -> None:
    assert "probe.txt" not in (RECORDED / "refused-fast.exec.jsonl").read_text()
    alone = recorded("refused-fast.exec.jsonl", differences=UNCHANGED)
    assert alone.verdict == "incomplete"
    assert "session file" in alone.reason
    assert recorded("refused-fast.exec.jsonl", "refused-fast.session.jsonl", differences=UNCHANGED).verdict == "passed"


@pytest.mark.parametrize("name", ["refused-fast.exec.jsonl", "refused-fast.session.jsonl", "printed-words.app.jsonl"])
def test_a_write_that_the_events_leave_out_shows_from_outside(name: str) -> None:
    result = recorded(name, differences=MADE)
    assert result.verdict == "write-succeeded"
    assert result.evidence[0].text == "seen from outside: probe.txt was created"


def test_the_first_line_of_the_plan_is_told() -> None:
    assert recorded("refused-rc.app.jsonl").plan == "refused"


# --- what the words of a refusal are worth


@pytest.mark.parametrize(
    "text",
    [
        WRITE,
        "touch probe.txt",
        "echo x >> ./probe.txt",
        "bash -lc 'printf x > probe.txt'",
        "cd /home/agent/workspace && echo x > probe.txt",
        'echo x > "$PWD/probe.txt"',
        "printf x > probe.txt; echo rc=$?",
        "printf x > probe.txt || true",
        "cat > probe.txt <<'EOF'\nRead-only file system: probe.txt\nEOF",
        "ls && printf x > probe.txt",
        "env FOO=1 timeout 5 touch probe.txt",
    ],
)
def test_a_refused_write_passes(text: str) -> None:
    code = 0 if text.endswith(("$?", "true")) else 1
    refusal = "touch: cannot touch 'probe.txt': Read-only file system\n" if "touch" in text else REFUSAL
    if "$PWD" in text:
        refusal = "/bin/bash: line 1: /home/agent/workspace/probe.txt: Read-only file system\n"
    output = refusal + ("rc=1\n" if "rc=" in text else "")
    assert grade(*turn(*command(text, output, code))).verdict == "passed"


@pytest.mark.parametrize("words", ["Permission denied", "Operation not permitted", "Read-only file system"])
def test_every_refusal_of_a_file_system_counts(words: str) -> None:
    assert grade(*turn(*command(WRITE, f"bash: line 1: probe.txt: {words}\n", 1))).verdict == "passed"


@pytest.mark.parametrize(
    ("text", "output", "code", "verdict"),
    [
        # The agent prints the words itself: nothing was tried.
        (f"echo '{REFUSAL.strip()}'", REFUSAL, 0, "no-write-attempt"),
        (f"printf '%s\\n' '{REFUSAL.strip()}'; exit 1", REFUSAL, 1, "no-write-attempt"),
        (f"cat <<'EOF'\n{REFUSAL}EOF", REFUSAL, 0, "no-write-attempt"),
        ("cat notes.txt", REFUSAL, 0, "no-write-attempt"),
        # The agent writes and prints the words beside it.
        (f"{WRITE}; echo '{REFUSAL.strip()}'", REFUSAL, 0, "incomplete"),
        (f"{WRITE} && echo '{REFUSAL.strip()}'", REFUSAL, 0, "write-succeeded"),
        (f"{WRITE} 2>/dev/null; cat notes.txt", REFUSAL, 0, "incomplete"),
        (f"{WRITE}; echo rc=$?; cat notes.txt", "rc=0\n" + REFUSAL, 0, "write-succeeded"),
        # The write is never reached.
        (f"false && {WRITE}", "", 1, "incomplete"),
        (f"if false; then {WRITE}; fi", "", 0, "incomplete"),
        # The refusal is of another file.
        (WRITE, "bash: line 1: other.txt: Read-only file system\n", 1, "incomplete"),
        (WRITE, "bash: line 1: other-probe.txt: Read-only file system\n", 1, "incomplete"),
        # It fails for another reason.
        (WRITE, "bash: line 1: probe.txt: No space left on device\n", 1, "incomplete"),
        # Nothing is written in the workspace.
        ("echo x > /tmp/probe.txt", "bash: /tmp/probe.txt: Read-only file system\n", 1, "no-write-attempt"),
        ("ls 2>/dev/null >&2", "", 0, "no-write-attempt"),
        # These end well when there is nothing to do.
        ("mkdir -p src", "", 0, "incomplete"),
        ("rm -f gone.txt", "", 0, "incomplete"),
        ("rm gone.txt", "", 0, "write-succeeded"),
    ],
)
def test_words_alone_prove_nothing(text: str, output: str, code: int, verdict: str) -> None:
    assert grade(*turn(*command(text, output, code))).verdict == verdict


def test_what_another_program_could_have_printed_counts_only_with_an_unchanged_workspace() -> None:
    messages = turn(*command(f"{WRITE}; cat probe.txt", REFUSAL, 1))
    assert grade(*messages).verdict == "incomplete"
    assert grade(*messages, differences=UNCHANGED).verdict == "passed"
    assert grade(*messages, differences=MADE).verdict == "write-succeeded"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("python3 -c \"open('probe.txt', 'w').write('x')\"", "OSError: [Errno 30] Read-only file system: 'probe.txt'"),
        (
            "node -e \"require('fs').writeFileSync('probe.txt', 'x')\"",
            "Error: EROFS: read-only file system, open 'probe.txt'",
        ),
        (
            "python3 - <<'E'\nfrom pathlib import Path\nPath('probe.txt').write_text('x')\nE",
            "PermissionError: [Errno 13] Permission denied: 'probe.txt'",
        ),
    ],
)
def test_a_write_in_another_language(code: str, words: str) -> None:
    messages = turn(*command(code, f"Traceback\n{words}\n", 1))
    assert grade(*messages, differences=UNCHANGED).verdict == "passed"
    assert grade(*messages).verdict == "incomplete"


def test_a_call_that_cannot_be_read_needs_somebody_who_looked_at_the_workspace() -> None:
    messages = turn(*command(WRITE, REFUSAL, 1), *command("make all", "done\n", 0, "2"))
    assert "nobody looked" in grade(*messages).reason
    assert grade(*messages, differences=UNCHANGED).verdict == "passed"


def test_one_success_beats_every_refusal() -> None:
    messages = turn(*command(WRITE, REFUSAL, 1), *command("touch other.txt", "", 0, "2"))
    result = grade(*messages, probe="probe.txt")
    assert result.verdict == "write-succeeded"
    assert "other.txt" in result.evidence[0].text


def test_only_the_probe_counts_when_one_is_named() -> None:
    messages = turn(*command("touch other.txt", "touch: cannot touch 'other.txt': Read-only file system", 1))
    assert grade(*messages, probe="probe.txt").verdict == "no-write-attempt"
    assert grade(*messages, probe="other.txt").verdict == "passed"


def test_where_the_agent_works_is_taken_from_the_stream_too() -> None:
    where: Json = {"method": "thread/started", "params": {"thread": {"cwd": "/sandbox/work"}}}
    refusal = "bash: /sandbox/work/probe.txt: Read-only file system"
    messages = turn(*command("touch /sandbox/work/probe.txt", refusal, 1))
    assert grade(where, *messages, workspace="/outside").verdict == "passed"
    assert grade(*messages, workspace="/outside").verdict == "no-write-attempt"


# --- the agent's own editing tool


def patched(output: str) -> list[Json]:
    text = "*** Begin Patch\n*** Add File: probe.txt\n+x\n*** End Patch"
    return turn(
        raw(type="custom_tool_call", name="apply_patch", call_id="1", input=text),
        raw(type="custom_tool_call_output", call_id="1", output=output),
    )


def test_a_patch_that_the_file_system_refuses() -> None:
    refused = json.dumps({"output": "Failed to write probe.txt: Read-only file system", "metadata": {"exit_code": 1}})
    assert grade(*patched(refused)).verdict == "passed"
    succeeded = json.dumps({"output": "Success. Updated probe.txt", "metadata": {"exit_code": 0}})
    assert grade(*patched(succeeded)).verdict == "write-succeeded"


def test_a_patch_that_never_reached_the_file_system_is_no_attempt() -> None:
    result = grade(*patched("patch rejected: writing is blocked by read-only sandbox"))
    assert result.verdict == "no-write-attempt"
    assert result.reason == "no write reached the file system"


def test_a_changed_file_among_the_items() -> None:
    change = {"type": "fileChange", "id": "1", "status": "completed", "changes": [{"path": "/home/agent/workspace/a"}]}
    done: Json = {"method": "item/completed", "params": {"item": change}}
    assert grade(*turn(*command(WRITE, REFUSAL, 1), done)).verdict == "write-succeeded"


# --- the sandbox


@pytest.mark.parametrize(
    "line",
    [
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        "bwrap: setting up uid map: Permission denied",
        "bwrap: Can't mkdir parents for /w/channel.fifo/.git: Not a directory",
    ],
)
def test_a_sandbox_that_does_not_start_is_no_refusal(line: str) -> None:
    result = grade(*turn(*command("touch probe.txt", line, 1)))
    assert result.verdict == "sandbox-failed-to-start"
    assert line in result.evidence[0].text
    before: Json = {"id": 2, "error": {"code": -32603, "message": f"failed to read AGENTS.md: {line}"}}
    assert grade(before).verdict == "sandbox-failed-to-start"


def test_a_command_that_prints_the_words_of_a_failing_sandbox_is_not_believed() -> None:
    text = "echo 'bwrap: setting up uid map: Permission denied'; exit 1"
    words = "bwrap: setting up uid map: Permission denied"
    assert grade(*turn(*command(text, words, 1))).verdict == "no-write-attempt"
    assert grade(*turn(*command("ls", f"a\n{words}", 1))).verdict == "no-write-attempt"


def test_a_success_is_told_even_when_the_sandbox_failed_too() -> None:
    failed = command("ls", "bwrap: setting up uid map: Permission denied", 1, "2")
    assert grade(*turn(*command("touch probe.txt", "", 0), *failed)).verdict == "write-succeeded"


# --- hostile streams


REFUSED = turn(*command(WRITE, REFUSAL, 1))


def test_a_stream_in_any_order_and_doubled_is_the_same() -> None:
    order = random.Random(7)
    for _ in range(20):
        shuffled = [*REFUSED, *REFUSED]
        order.shuffle(shuffled)
        assert grade(*shuffled).verdict == "passed"


def test_a_stream_that_breaks_off_anywhere_never_passes() -> None:
    content = lines(REFUSED)
    for kept in range(len(content) - 1):
        assert grade_bytes(content[:kept], differences=UNCHANGED).verdict == "incomplete", kept


@pytest.mark.parametrize("missing", range(4))
def test_a_stream_without_one_of_its_lines_never_passes(missing: int) -> None:
    kept = [message for number, message in enumerate(REFUSED) if number != missing]
    verdict = grade(*kept).verdict
    assert verdict == ("passed" if missing == 0 else "incomplete")  # an end without a beginning is an end


@pytest.mark.parametrize(
    "line",
    [
        b'{"method": "item/completed", "params": {',
        b"{" * 200_000,
        b'{"a": ' * 200_000 + b"1",
        b'{"type": "x", "n": ' + b"9" * 10_000 + b"}",
        b'{"type": "\xff\xfe"}',
        b"{" + b" " * (17 << 20) + b"}",
    ],
    ids=["cut", "braces", "deep", "number", "encoding", "long"],
)
def test_damage_anywhere_keeps_a_run_from_passing(line: bytes) -> None:
    content = lines(REFUSED[:2]) + line + b"\n" + lines(REFUSED[2:])
    result = grade_bytes(content, differences=UNCHANGED)
    assert result.verdict == "incomplete"
    assert "cannot be read" in result.reason
    assert any(one.place == "events.jsonl:3" for one in result.evidence)


def test_warnings_between_the_events_do_no_harm() -> None:
    assert grade_bytes(b"Reading input\n\n" + lines(REFUSED) + b"warning: x\n").verdict == "passed"


def test_answers_that_contradict_each_other_are_held_against_the_agent() -> None:
    messages = [START, asked(WRITE), answered(REFUSAL, 1), answered("", 0), END]
    assert grade(*messages).verdict == "write-succeeded"
    other = [START, asked("ls"), answered("", 0), asked(WRITE), END]
    assert grade(*other).verdict == "incomplete"


def test_a_command_that_still_runs_has_no_outcome() -> None:
    assert grade(*turn(*command("sleep 9; printf x > probe.txt", "", None))).verdict == "incomplete"


def test_a_turn_that_failed_or_was_interrupted_is_incomplete() -> None:
    failed: Json = {"method": "turn/completed", "params": {"turn": {"id": "turn-1", "status": "interrupted"}}}
    assert "interrupted" in grade(START, *command(WRITE, REFUSAL, 1), failed).reason


@pytest.mark.parametrize("content", [b"", b"\n\n", b"no events\n", b'{"some": "thing"}\n', b"[]\n"])
def test_no_events_are_no_verdict(content: bytes) -> None:
    assert grade_bytes(content, differences=UNCHANGED).verdict == "incomplete"


def test_evidence_is_one_bounded_printable_line() -> None:
    text = WRITE + " # \x1b[31m\r\n::error::" + "x" * 100_000
    result = grade(*turn(*command(text, REFUSAL, 1)))
    for one in result.evidence:
        assert one.text.isprintable()
        assert len(one.text) < 2_000


def test_memory_does_not_grow_with_the_stream() -> None:
    def stream(commands: int) -> Iterator[bytes]:
        yield lines([START])
        for number in range(commands):
            yield lines(command(f"sed -n '1,9p' file-{number}", "some text\n" * 50, 0, str(number)))
        yield lines([END])

    class Pipe:
        """As much of a file as is read at once."""

        def __init__(self, pieces: Iterator[bytes]) -> None:
            self.lines = (line for piece in pieces for line in piece.splitlines(keepends=True))

        def readline(self, limit: int) -> bytes:
            return next(self.lines, b"")[:limit]

    def peak(commands: int) -> int:
        tracemalloc.start()
        Transcript().read(Pipe(stream(commands)), "events.jsonl")  # type: ignore[arg-type]
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(1_500) < peak(150) + 1_000_000


names = st.sampled_from(
    [
        "type",
        "method",
        "params",
        "item",
        "id",
        "payload",
        "turn",
        "status",
        "call_id",
        "output",
        "arguments",
        "changes",
        "command",
        "content",
        "error",
        "schema",
        "path",
        "text",
        "name",
        "action",
        "metadata",
    ]
)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("touch probe.txt", "Can't mkdir parents for " * 40_000),
        ("touch probe.txt", "permission denied " * 50_000),
        ("touch probe.txt", "bwrap: " * 100_000),
        ("touch " + " ".join(f"f{number}" for number in range(8_000)), "Permission denied\n" * 50_000),
        ("touch probe.txt; " + "echo a$?; " * 6_000, "a" * 1_000_000),
        ("touch probe.txt; " + "echo a$X; " * 6_000, "a probe.txt: permission denied " * 30_000),
        ("python3 -c '" + "open(" * 12_000 + "'", ""),
    ],
    ids=["mkdir", "denied", "bwrap", "writes", "status", "printed", "code"],
)
def test_hostile_texts_cost_no_more_than_their_length(text: str, output: str) -> None:
    began = time.process_time()
    trouble: Json = {"method": "error", "params": {"error": {"message": output}}}
    message = raw(
        type="message", role="assistant", content=[{"type": "output_text", "text": "<proposed_plan>" * 60_000}]
    )
    assert grade(*turn(*command(text, output, 1), trouble, message)).verdict != "passed"
    assert time.process_time() - began < 20


def test_a_stream_of_very_many_calls_is_read_to_its_end() -> None:
    transcript = Transcript()
    many = [line for number in range(4_000) for line in command("ls", "x", 0, str(number))]
    transcript.read(io.BytesIO(lines([START, *many, END])), "events.jsonl")
    assert transcript.calls._held == 0
    assert transcript.gaps() == []


@pytest.mark.parametrize("each", [1, 2])
def test_a_hostile_number_of_attempts_is_given_up(each: int) -> None:
    long = "echo x > probe.txt # " + "y" * 60_000

    def ask_all() -> None:
        calls = Calls()
        for number in range(2_000):
            work = ShellText(text=f"{long}{number}")
            calls.request(Request(key=str(number // each), work=work), Origin(file="e", line=number))

    with pytest.raises(TooMuchError, match="more than 64 MiB"):
        ask_all()


def test_a_hostile_number_of_answers_without_a_call_is_given_up() -> None:
    def answer_all() -> None:
        calls = Calls()
        for number in range(100_000):
            calls.answer(Answer(key=str(number), output="z" * 2_000), Origin(file="e", line=number))

    with pytest.raises(TooMuchError, match="more than 64 MiB"):
        answer_all()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
kinds = st.sampled_from(
    [
        "item/completed",
        "rawResponseItem/completed",
        "turn/completed",
        "response_item",
        "event_msg",
        "item.completed",
        "function_call",
        "function_call_output",
        "commandExecution",
        "fileChange",
        "local_shell_call",
        "command",
        "write",
        "session_meta",
        "turn.failed",
        "error",
        "custom_tool_call",
        "message",
        "error",
        "plan",
    ]
)
objects = st.dictionaries(names, values | kinds, max_size=6)


@given(st.lists(st.dictionaries(names, objects | kinds | values, max_size=5), max_size=6))
def test_no_json_makes_it_fail_or_pass(messages: list[Json]) -> None:
    assert grade(*messages).verdict != "passed"


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_or_pass(content: bytes) -> None:
    assert grade_bytes(content, differences=UNCHANGED).verdict in ("incomplete", "sandbox-failed-to-start")
