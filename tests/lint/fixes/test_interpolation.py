"""An expression in a script becomes a variable, where a shell then reads the same words."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lint.fixes.steps import repaired, script_and_environment, workflow

from runner_e2e.lint.fixes.interpolation import repair

if TYPE_CHECKING:
    from pathlib import Path

HOLE = "${{ inputs.id }}"
ENV = {"INPUTS_ID": HOLE}

# Script with one hole (written @) -> script with the variable; how it is quoted stays as it was.
KEPT = {
    'echo "@"': 'echo "$INPUTS_ID"',
    'echo "a@b"': 'echo "a${INPUTS_ID}b"',
    "echo '@'": 'echo "$INPUTS_ID"',
    "echo 'a@b'": "echo 'a'\"${INPUTS_ID}\"'b'",
    "echo 'a@'": "echo 'a'\"${INPUTS_ID}\"''",
    "echo @": "echo $INPUTS_ID",
    "echo a/@/b": "echo a/${INPUTS_ID}/b",
    "echo @_x": "echo ${INPUTS_ID}_x",
    "x=@; tool": "x=$INPUTS_ID; tool",
    "x=@ tool": "x=$INPUTS_ID tool",
    "case @ in a) ;; esac": "case $INPUTS_ID in a) ;; esac",
    "case $x in @) ;; esac": "case $x in $INPUTS_ID) ;; esac",
    "if [[ $x == @ ]]; then tool; fi": "if [[ $x == $INPUTS_ID ]]; then tool; fi",
    "if [[ $x =~ ^@$ ]]; then tool; fi": "if [[ $x =~ ^${INPUTS_ID}$ ]]; then tool; fi",
    "for x in @; do tool; done": "for x in $INPUTS_ID; do tool; done",
    "echo $(tool @)": "echo $(tool $INPUTS_ID)",
    'echo "$(tool "@")"': 'echo "$(tool "$INPUTS_ID")"',
    "echo `tool @`": "echo `tool ${INPUTS_ID}`",
    "echo ${X:-@}": "echo ${X:-${INPUTS_ID}}",
    'echo "${X#@}"': 'echo "${X#${INPUTS_ID}}"',
    "echo $((@ + 1))": "echo $(($INPUTS_ID + 1))",
    "tool > @.txt": "tool > ${INPUTS_ID}.txt",
    "tool <<< @": "tool <<< $INPUTS_ID",
    "cat <<E\na @ b\nE": "cat <<E\na $INPUTS_ID b\nE",
    "cat <<-E\n\ta '@' b\n\tE": "cat <<-E\n\ta '${INPUTS_ID}' b\n\tE",
    "echo $'a\\n@\\tb'": "echo $'a\\n'\"${INPUTS_ID}\"$'\\tb'",
    "bash -c 'tool @'": "bash -c 'tool '\"${INPUTS_ID}\"''",
    'eval "tool @"': 'eval "tool $INPUTS_ID"',
    "f() { tool @; }; f": "f() { tool $INPUTS_ID; }; f",
    "a=(1 @ 2)": "a=(1 $INPUTS_ID 2)",
    "./bin/@/tool": "./bin/${INPUTS_ID}/tool",
}


def fixed(script: str, folder: Path, *, marked: str = HOLE, **options: str) -> tuple[str, object, bool] | None:
    found = repaired(repair, workflow(script, **options), marked, folder)
    return (*script_and_environment(found[0]), found[1].safe) if found is not None else None


@pytest.mark.parametrize("script", KEPT)
def test_the_shell_reads_the_same_words(script: str, tmp_path: Path) -> None:
    assert fixed(script.replace("@", HOLE), tmp_path) == (KEPT[script], ENV, True)


@pytest.mark.parametrize(
    "script",
    [
        "cat <<'E'\n@\nE",  # nothing is expanded there
        'echo "\\@"',  # the backslash would escape the dollar
        "echo $@",  # a variable that the value names
        "@",  # the value is the program
        "@ --flag",
        "@=1 tool",
        "echo ${@}",
        "for @ in 1; do tool; done",
        'echo "@',  # no program at all
        "echo '@' $((",
    ],
)
def test_what_would_change_the_program_is_left_alone(script: str, tmp_path: Path) -> None:
    assert fixed(script.replace("@", HOLE), tmp_path) is None


@pytest.mark.parametrize("script", ["tool # about @", "# '@\"\ntool", "tool # it's @ `"])
def test_a_comment_keeps_the_words(script: str, tmp_path: Path) -> None:
    expected = script.replace("@", "inputs.id")
    assert fixed(script.replace("@", HOLE), tmp_path) == (expected, None, True)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("inputs.selected-id", "INPUTS_SELECTED_ID"),
        ("github.event.inputs['id']", "EVENT_INPUTS_ID"),
        ("github.event.inputs.id", "EVENT_INPUTS_ID"),
        ("matrix.case", "MATRIX_CASE"),
        ("steps.a.outputs.b", "STEPS_A_OUTPUTS_B"),
        ("format('x{0}', inputs.id)", "FORMAT_INPUTS_ID"),
        ("inputs['1']", "INPUTS_1"),
        ("toJSON(inputs)", "TOJSON_INPUTS"),
    ],
)
def test_names_are_telling(expression: str, name: str, tmp_path: Path) -> None:
    found = fixed(f"echo '${{{{ {expression} }}}}'", tmp_path, marked="${{")
    assert found is not None
    assert found[1] == {name: f"${{{{ {expression} }}}}"}


@pytest.mark.parametrize(
    ("script", "safe"),
    [
        ("echo '${{ toJSON(inputs) }}'", True),
        ("echo ${{ toJSON(inputs) }}", False),
        ('echo "${{ toJSON(inputs) }}"', False),
        ("echo ${{ format('--id {0}', inputs.id) }}", False),
        ("echo \"${{ format('--id {0}', inputs.id) }}\"", True),
        ("echo \"${{ format('$x {0}', inputs.id) }}\"", False),
        ("IFS=.; echo ${{ inputs.id }}", False),
        ('IFS=.; echo "${{ inputs.id }}"', True),
        ("echo a{${{ inputs.id }},b}", False),
    ],
)
def test_text_that_the_shell_would_have_read_is_not_safe(script: str, safe: bool, tmp_path: Path) -> None:
    found = fixed(script, tmp_path, marked="${{")
    assert found is not None
    assert found[2] is safe


def test_an_environment_that_is_there_is_merged(tmp_path: Path) -> None:
    found = repaired(repair, workflow(f'tool "{HOLE}"', rest="env: {A: b} # why"), HOLE, tmp_path)
    assert found is not None
    assert found[0] == workflow('tool "$INPUTS_ID"', rest=f'env: {{A: b, INPUTS_ID: "{HOLE}"}} # why')


def test_a_variable_that_has_the_value_is_used(tmp_path: Path) -> None:
    rest = "env:\n  OWN: ${{inputs.id}}"
    assert fixed(f'tool "{HOLE}"', tmp_path, rest=rest) == ('tool "$OWN"', {"OWN": "${{inputs.id}}"}, True)
    # not where the script gives it another one
    assert fixed(f'OWN=x; tool "{HOLE}"', tmp_path, rest=rest) == (
        'OWN=x; tool "$INPUTS_ID"',
        {"OWN": "${{inputs.id}}", "INPUTS_ID": HOLE},
        True,
    )


def test_the_environment_context_names_a_variable_already(tmp_path: Path) -> None:
    hole = "${{ env.ID }}"
    assert fixed(f'tool "{hole}"', tmp_path, marked=hole) == ('tool "$ID"', None, True)
    assert fixed(f'ID=x; tool "{hole}"', tmp_path, marked=hole) == ('ID=x; tool "$ENV_ID"', {"ENV_ID": hole}, True)
    own = fixed(f'ID=x; tool "{hole}"', tmp_path, marked=hole, rest="env: {ID: a}")
    assert own is None  # `env` in the step's `env` would not know it


@pytest.mark.parametrize(
    "rest", ["env: ${{ fromJSON(inputs.all) }}", "env: [A]", "env: &e {A: b}\nwith: *e", "env: {A: b}\nenv: {C: d}"]
)
def test_an_environment_that_cannot_be_merged_is_refused(rest: str, tmp_path: Path) -> None:
    assert fixed(f'tool "{HOLE}"', tmp_path, rest=rest) is None


def test_names_do_not_collide(tmp_path: Path) -> None:
    text = workflow(f'tool "{HOLE}" "$INPUTS_ID_3"', rest="env: {inputs_id: x}").replace(
        "    steps:", "    env: {INPUTS_ID_2: y}\n    steps:"
    )
    found = repaired(repair, text, HOLE, tmp_path)
    assert found is not None
    assert script_and_environment(found[0])[1] == {"inputs_id": "x", "INPUTS_ID_4": HOLE}


def test_other_shells_are_left_alone(tmp_path: Path) -> None:
    assert fixed(f'tool "{HOLE}"', tmp_path, shell="node {0}") is None
    assert fixed(f'tool "{HOLE}"', tmp_path, shell="${{ matrix.shell }}") is None
    windows = workflow(f'tool "{HOLE}"', system="${{ matrix.os }}").replace(
        "    steps:", "    strategy: {matrix: {os: [windows-latest]}}\n    steps:"
    )
    assert repaired(repair, windows, HOLE, tmp_path) is None
    elsewhere = windows.replace("windows-latest", "macos-latest") + "  b: {runs-on: windows-latest}\n"
    assert repaired(repair, elsewhere, HOLE, tmp_path) is not None
    assert repaired(repair, elsewhere.replace("matrix.os", "vars.os"), HOLE, tmp_path) is None
    assert fixed(f'tool "{HOLE}"', tmp_path, shell="sh") == ('tool "$INPUTS_ID"', ENV, True)


POWERSHELL = {
    'tool "@"': ('tool "${env:INPUTS_ID}"', True),
    "tool \"a@-b\" 'x'": ("tool \"a${env:INPUTS_ID}-b\" 'x'", True),
    "tool '@'": ('tool "${env:INPUTS_ID}"', True),
    "tool 'it''s @'": ('tool "it\'s ${env:INPUTS_ID}"', True),
    "tool @ -x": ('tool "${env:INPUTS_ID}" -x', False),
    'tool "$(foo "@")"': None,
    'tool "`@"': None,
    "tool '$x @'": None,
    "@ -x": None,
    "$x = @": None,
    "if (@) { }": None,
}


@pytest.mark.parametrize("script", POWERSHELL)
def test_powershell(script: str, tmp_path: Path) -> None:
    found = fixed(script.replace("@", HOLE), tmp_path, shell="pwsh")
    expected = POWERSHELL[script]
    assert found == ((expected[0], ENV, expected[1]) if expected is not None else None)


def test_texts_of_several_lines_in_powershell(tmp_path: Path) -> None:
    found = fixed(f'$x = @"\n"a" {HOLE}\n"@', tmp_path, shell="pwsh")
    assert found == ('$x = @"\n"a" ${env:INPUTS_ID}\n"@', ENV, True)
    assert fixed(f"$x = @'\n{HOLE}\n'@", tmp_path, shell="pwsh") is None


def test_powershell_keeps_comments_and_is_the_default_of_windows(tmp_path: Path) -> None:
    assert fixed(f"tool # {HOLE}", tmp_path, shell="powershell") == ("tool # inputs.id", None, True)
    found = fixed(f'tool "{HOLE}"', tmp_path, system="windows-latest")
    assert found == ('tool "${env:INPUTS_ID}"', ENV, True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("tool @", "tool %INPUTS_ID%"),
        ('if "@"=="x" tool', 'if "%INPUTS_ID%"=="x" tool'),
        ("tool %@%", None),
        ("tool ^@", None),
    ],
)
def test_cmd(script: str, expected: str | None, tmp_path: Path) -> None:
    found = fixed(script.replace("@", HOLE), tmp_path, shell="cmd")
    assert found == ((expected, ENV, True) if expected is not None else None)
    assert fixed(f"rem {HOLE}", tmp_path, shell="cmd") == ("rem inputs.id", None, True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("print('@')", 'import os\nprint(os.environ["INPUTS_ID"])'),
        ("import os\nprint('ä', \"@\")", "import os\nprint('ä', os.environ[\"INPUTS_ID\"])"),
        ("print('a @')", None),
        ("print(f'{1}@')", None),
        ("print('''@''')", None),
        ("print(@)", None),
        ("print('@'", None),
    ],
)
def test_python(script: str, expected: str | None, tmp_path: Path) -> None:
    found = fixed(script.replace("@", HOLE), tmp_path, shell="python")
    assert found == ((expected, ENV, False) if expected is not None else None)


@pytest.mark.parametrize("script", [script for script in KEPT if "tool" not in script and "<<" not in script])
@pytest.mark.parametrize("value", ["suite.profile.local.case-1", "a b", "", "*", "A_b-3"])
def test_bash_does_the_same(script: str, value: str, tmp_path: Path) -> None:
    """With a value that a shell reads as nothing but characters, blanks and patterns."""
    (tmp_path / "file").touch()
    found = fixed(script.replace("@", HOLE), tmp_path)
    assert found is not None
    before = run(script.replace("@", value), {}, tmp_path)
    if before[0] == 0:
        assert run(found[0], {"INPUTS_ID": value}, tmp_path) == before


def run(script: str, environment: dict[str, str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-c", script],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


PIECE = st.sampled_from(
    ["'", '"', "$(", ")", "a", " ", "$x", "`", "\\", "{", "}", "#", "\n", "<<E", "E", "$((", "))", "=", "@"]
)


@given(pieces=st.lists(PIECE, min_size=1, max_size=14))
def test_any_script_keeps_its_form(pieces: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands around it: one hole is replaced, or nothing is; the rest of the file stays."""
    script = "".join(pieces)
    if "@" not in script:
        script += "@"
    found = fixed(script.replace("@", HOLE).strip() or HOLE, tmp_path_factory.getbasetemp())
    if found is not None:
        assert found[0].count(HOLE) == script.count("@") - 1
