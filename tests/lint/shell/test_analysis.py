"""What an analysis tells beside leaks: writes, prints, masks, files, calls, gaps, traces; and its bounds."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner_e2e.lint.shell import Files, ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Interpolation, Label, Origin, Script, Step, Taint, Value

LABEL = Label(kind="confidential", name="inputs.id")
COMMAND_FILES = {
    "GITHUB_ENV": Value.literal("/github/env"),
    "GITHUB_OUTPUT": Value.literal("/github/output"),
    "GITHUB_PATH": Value.literal("/github/path"),
    "GITHUB_STEP_SUMMARY": Value.literal("/github/summary"),
}


def script(text: str) -> Script:
    return Script(origin=Origin(path="step.sh", text=text), text=text)


def labelled(origin: Origin | None = None) -> Value:
    step = Step(origin, 0, 0, "source") if origin is not None else None
    return Value.of([Taint(LABEL, Confidence.HIGH, step)])


def follow(text: str, files: Files | None = None, **options: object) -> ShellResult:
    one = script(text)
    environment = {"S": labelled(one.origin), **COMMAND_FILES}
    return analyse(one, environment=environment, files=files, options=ShellOptions(**options))  # type: ignore[arg-type]


def labels(value: Value) -> set[str]:
    return {taint.label.name for taint in value.taints}


@pytest.mark.parametrize(
    "text",
    [
        'echo "ID=$S" >> "$GITHUB_ENV"; echo "MODE=fast" >> $GITHUB_ENV',
        'printf "ID=%s\\nMODE=fast\\n" "$S" | tee -a "$GITHUB_ENV"',
        '{ echo "ID<<E"; echo "$S"; echo E; echo MODE=fast; } >> "$GITHUB_ENV"',
        'cat >> "$GITHUB_ENV" <<EOF\nID<<X\n$S\nX\nMODE=fast\nEOF\n',
        'd=E$RANDOM; { echo "ID<<$d"; echo "$S"; echo "$d"; } >> "$GITHUB_ENV"; echo MODE=fast >> "$GITHUB_ENV"',
        'echo "ID=clean" >> "$GITHUB_ENV"; echo "ID=$S" >> "$GITHUB_ENV"; printf MODE=fast >> "$GITHUB_ENV"',
    ],
)
def test_environment_writes(text: str) -> None:
    written = follow(text).environment_writes
    assert set(written) == {"ID", "MODE"}
    assert labels(written["ID"]) == {"inputs.id"}
    assert written["MODE"].constant == "fast"


def test_conditional_outputs_keep_their_names() -> None:
    lines = [f'if [ -f f{number} ]; then echo "o{number}=$S" >> "$GITHUB_OUTPUT"; fi' for number in range(12)]
    written = follow("\n".join(lines)).outputs
    assert set(written) == {f"o{number}" for number in range(12)}


def test_a_later_output_replaces_an_earlier_one() -> None:
    written = follow('echo "a=$S" >> "$GITHUB_OUTPUT"; echo "a=1" >> "$GITHUB_OUTPUT"').outputs
    assert written["a"].constant == "1"


def test_output_of_an_unknown_name() -> None:
    written = follow('printf "%s=%s\\n" "$UNKNOWN" "$S" >> "$GITHUB_OUTPUT"').outputs
    assert labels(written["*"]) == {"inputs.id"}


def test_paths() -> None:
    paths = follow('echo "/opt/$S" >> "$GITHUB_PATH"; echo /bin >> "$GITHUB_PATH"').paths
    assert [labels(path) for path in paths] == [{"inputs.id"}, set()]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('echo "$S"', "log"),
        ('echo "$S" >&2', "log"),
        ('printf %s "$S" | cat', "log"),
        ('echo "::error::bad $S"', "annotation"),
        ('echo "$S" >> "$GITHUB_STEP_SUMMARY"', "summary"),
        ('set -x; : "$S"', "xtrace"),
        ('set -x; X="$S"', "xtrace"),
    ],
)
def test_prints(text: str, target: str) -> None:
    assert target in {one.target for one in follow(text).prints}


@pytest.mark.parametrize(
    "text", ['x=$(echo "$S")', 'echo "$S" > f', 'echo "$S" | wc -c', 'echo "${S:0:3}"', 'echo "$S" >/dev/null']
)
def test_what_is_not_printed(text: str) -> None:
    assert not follow(text).prints


def test_masks() -> None:
    result = follow('echo "::add-mask::$S"')
    assert [labels(mask) for mask in result.masks] == [{"inputs.id"}]
    assert not result.prints


def test_files_go_from_step_to_step() -> None:
    first = follow('echo "$S" > "$RUNNER_TEMP/id"; mkdir d; printf %s "$S" > d/x')
    second = follow('tool "$(cat d/x)"', files=first.files)
    assert len(second.leaks) == 1


def test_repository_scripts_are_followed() -> None:
    inner = Origin(path="scripts/run.sh", text='tool --id "$1"\n')
    files = Files(find_script=lambda path: Script(origin=inner, text=inner.text) if path.endswith("run.sh") else None)
    for call in ('scripts/run.sh "$S"', 'bash scripts/run.sh "$S"', 'source scripts/run.sh "$S"'):
        leaks = [leak for leak in follow(call, files=files).leaks if leak.origin is inner]
        assert [(leak.command, leak.argument) for leak in leaks] == [("tool", '"$1"')], call


def test_makefiles_of_the_repository_are_followed() -> None:
    files = Files(find_text=lambda path: "all:\n\ttool $(S)\n" if path.endswith("/Makefile") else None)
    assert follow("make", files=files).leaks


def test_calls_of_other_languages_are_told() -> None:
    call = follow('X="$S" python3 scripts/run.py --a "$HOME" <<< "$S"').calls[0]
    assert call.command == "python3"
    assert call.arguments[0].constant == "scripts/run.py"
    assert labels(call.environment["X"]) == labels(call.stdin) == {"inputs.id"}


def test_the_way_from_source_to_sink() -> None:
    text = 'A="$S"\nf() { tool "$1"; }\nf "$A"\n'
    leak = follow(text).leaks[0]
    (taint,) = leak.taints
    assert taint.trail is not None
    notes = [step.note for step in taint.trail.walk()]
    assert notes == ["source", "assigned to A", "argument of f", "argument of tool"]
    assert text[leak.start : leak.end] == '"$1"'
    assert text[leak.command_start : leak.command_end] == 'tool "$1"'


def test_interpolated_text_is_followed() -> None:
    text = "tool --id '${{ inputs.id }}'"
    start = text.index("${{")
    one = Script(
        origin=Origin(path="x", text=text),
        text=text,
        interpolations=(Interpolation(start=start, end=len(text) - 1, value=labelled()),),
    )
    (leak,) = analyse(one, environment={}).leaks
    assert text[leak.start : leak.end] == "'${{ inputs.id }}'"


def test_encodings_have_low_confidence() -> None:
    (leak,) = follow('tool "$(printf %s "$S" | base64)"').leaks
    assert {taint.confidence for taint in leak.taints} == {Confidence.LOW}


def test_a_mistake_is_told_with_its_place() -> None:
    text = 'tool "$S"\nif true; then\n'
    result = follow(text)
    assert len(result.leaks) == 1
    (gap,) = result.unanalysable
    assert gap.start >= text.index("if")


def test_the_budget_ends_a_long_program() -> None:
    result = follow(
        "for i in {1..60}; do for j in {1..60}; do for k in {1..60}; do : $i$j$k; done; done; done", max_steps=500
    )
    assert [gap.reason for gap in result.unanalysable] == ["too many steps to follow"]


def test_the_deadline_ends_a_long_program() -> None:
    result = follow("while true; do for i in {1..60}; do : $i; done; done", deadline=time.process_time() - 1)
    assert [gap.reason for gap in result.unanalysable] == ["the time for this file is used up"]


@pytest.mark.parametrize(
    "text", ["{0}", "f() {{\n{0}}}\nf\n", "x=$({0})\n"], ids=["the script", "a function", "a substitution"]
)
def test_the_deadline_ends_the_reading_of_a_long_program(text: str) -> None:
    """What nobody has the time to read to its end: no line of it is a mistake, and the time is what is told."""
    program = text.format(": a b c d e f\n" * 40_000)
    began = time.process_time()
    result = follow(program, deadline=began + 0.05)
    assert time.process_time() - began < 1
    assert [gap.reason for gap in result.unanalysable] == ["the time for this file is used up"]


def test_recursion_ends() -> None:
    result = follow('f() { f "$1" "$1"; }; f "$S"; tool x')
    assert result.unanalysable


def test_trace() -> None:
    points = follow("A=1\nB=$S\n:\n", trace=True).trace
    assert points[2].variables["A"].constant == "1"
    assert labels(points[2].variables["B"]) == {"inputs.id"}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"$(){}[]\"'`;|&<>#!*?~\\=\n ab1", "$S", "if ", "then ", "fi\n", "<<E\n", "E\n"]),
        max_size=40,
    ).map("".join)
)
def test_never_raises(text: str) -> None:
    for shell in ("bash", "sh"):
        follow(text, shell=shell)
