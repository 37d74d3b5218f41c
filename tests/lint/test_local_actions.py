"""Actions of the repository that are odd: called often, nested deeply, not to be followed, or not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint import actions
from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.report import Report

CELL = "{cell: '${{ inputs.selected-id }}'}"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def linted(root: Path, *steps: str) -> Report:
    head = "on: {workflow_dispatch: {inputs: {selected-id: {}}}}\njobs:\n a:\n  runs-on: ubuntu-latest\n  steps:\n"
    write(root, **{".github/workflows/w.yml": head + "".join(f"  - {step}\n" for step in steps)})
    report = lint([root / ".github" / "workflows" / "w.yml"], current=root)
    assert report.problems == ()
    return report


def of(report: Report, *rules: str) -> list[Finding]:
    return [each for each in report.findings if each.rule in rules]


def composite(*steps: str) -> str:
    inner = "".join(f"  - {step}\n" for step in steps)
    return f"name: n\ndescription: d\ninputs: {{cell: {{}}}}\nruns:\n using: composite\n steps:\n{inner}"


HAND_ON = "with: {cell: '${{ inputs.cell }}'}"
LEAK = 'run: tool "$C"\n    shell: bash\n    env: {C: "${{ inputs.cell }}"}'


def test_each_action_is_analysed_once_for_the_same_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten actions, each of which uses the next one four times: a million calls, if each were followed."""
    for number in range(9):
        steps = [f"uses: ./a{number + 1}\n    {HAND_ON}"] * 4
        write(tmp_path, **{f"a{number}/action.yml": composite(*steps)})
    write(tmp_path, **{"a9/action.yml": composite(LEAK)})
    followed: list[str] = []
    original = actions._LocalCall.composite

    def counted(call: actions._LocalCall) -> object:
        followed.append(call.path)
        return original(call)

    monkeypatch.setattr(actions._LocalCall, "composite", counted)
    report = linted(tmp_path, f"uses: ./a0\n    with: {CELL}")
    assert [each.span.path for each in of(report, "confidential-argv")] == ["a9/action.yml"]
    assert len(followed) == len(set(followed)) == 10


def test_another_input_or_another_state_is_another_call(tmp_path: Path) -> None:
    steps = ('run: echo "N=$N$C" >> "$GITHUB_ENV"\n    shell: bash\n    env: {C: "${{ inputs.cell }}"}',)
    write(tmp_path, **{"act/action.yml": composite(*steps)})
    report = linted(
        tmp_path,
        "uses: ./act\n    with: {cell: x}",
        'run: tool "$N"',
        f"uses: ./act\n    with: {CELL}",
        'run: tool "$N"',
        "run: echo N= >> $GITHUB_ENV",
        "uses: ./act\n    with: {cell: x}",
        'run: tool "$N"',
    )
    assert [each.span.line for each in of(report, "confidential-argv")] == [11]


def test_outputs_of_a_remembered_call(tmp_path: Path) -> None:
    outputs = "outputs: {cell: {value: '${{ inputs.cell }}'}}\n"
    write(tmp_path, **{"act/action.yml": outputs + composite("run: echo '::add-mask::x'\n    shell: bash")})
    call = f"uses: ./act\n    with: {CELL}"
    report = linted(
        tmp_path,
        f"id: a\n    {call}",
        f"id: b\n    {call}",
        'run: tool "$C"\n    env: {C: "${{ steps.b.outputs.cell }}"}',
    )
    assert [each.span.line for each in of(report, "confidential-argv")] == [12]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("", "the action `./act` is not in this repository"),
        ("runs: {using: cobol}\n", "nothing is known of actions that run with `cobol`"),
        ("runs: {using: node20, main: no.js}\n", "the program `act/no.js` is not in this repository"),
        ("runs: {using: node20, main: long.js}\n", "the program `act/long.js` is too long to follow"),
        ("runs: {using: node20, main: binary.js}\n", "the program `act/binary.js` is not in this repository"),
        ("runs: {using: docker, image: Dockerfile}\n", "there is no readable file `act/Dockerfile`"),
        ("runs: {using: docker, image: Plainfile}\n", "its entry point is not known"),
        ("runs: {using: docker, image: 'docker://alpine'}\n", "the image `docker://alpine` is not in this repository"),
    ],
)
def test_what_cannot_be_followed_is_possible(tmp_path: Path, action: str, reason: str) -> None:
    if action:
        write(tmp_path, **{"act/action.yml": f"name: n\ndescription: d\ninputs: {{cell: {{}}}}\n{action}"})
        write(tmp_path, **{"act/long.js": "//" + "x" * actions.MAX_PROGRAM, "act/Plainfile": "FROM alpine\n"})
        (tmp_path / "act" / "binary.js").write_bytes(b"\x7fELF\x00\xff")
    report = linted(
        tmp_path,
        f"id: it\n    uses: ./act\n    with: {CELL}",
        'run: tool "$C"\n    env: {C: "${{ steps.it.outputs.any }}"}',
    )
    (gap,) = of(report, "unanalysable-script")
    assert reason in gap.message
    assert gap.confidence.name == "LOW"
    (leak,) = of(report, "confidential-argv")
    assert (leak.span.line, leak.confidence.name) == (9, "LOW")


def test_what_cannot_be_followed_is_not_told_of_secrets(tmp_path: Path) -> None:
    write(tmp_path, **{"act/action.yml": "name: n\ndescription: d\nruns: {using: node20, main: no.js}\n"})
    report = linted(tmp_path, "uses: ./act\n    with: {token: '${{ secrets.T }}'}")
    assert of(report, "unanalysable-script") == []


def test_an_action_that_uses_itself_ends(tmp_path: Path) -> None:
    write(tmp_path, **{"act/action.yml": composite(LEAK, f"uses: ./act\n    {HAND_ON}")})
    report = linted(tmp_path, f"uses: ./act\n    with: {CELL}")
    assert [each.span.line for each in of(report, "confidential-argv")] == [7]


def test_actions_nested_too_deeply_are_possible(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path, **{f"a{number}/action.yml": composite(f"uses: ./a{number + 1}\n    {HAND_ON}")})
    write(tmp_path, **{"a12/action.yml": composite(LEAK)})
    report = linted(tmp_path, f"uses: ./a0\n    with: {CELL}")
    assert of(report, "confidential-argv") == []
    assert ["nested more than 10 deep" in each.message for each in of(report, "unanalysable-script")] == [True]


def test_inputs_that_are_not_declared_are_handed_on(tmp_path: Path) -> None:
    write(tmp_path, **{"act/action.yml": composite(LEAK).replace("inputs: {cell: {}}\n", "")})
    report = linted(tmp_path, f"uses: ./act\n    with: {CELL}")
    assert len(of(report, "confidential-argv")) == 1


def test_a_folder_with_a_dockerfile_alone_is_followed(tmp_path: Path) -> None:
    files = {
        "act/Dockerfile": 'FROM alpine\nCOPY e.sh /\nENTRYPOINT ["/e.sh"]\n',
        "act/e.sh": '#!/bin/sh\ntool "$CELL"\n',
    }
    write(tmp_path, **files)
    report = linted(tmp_path, "uses: ./act\n    env: {CELL: '${{ inputs.selected-id }}'}")
    assert [str(each.span)[:12] for each in of(report, "confidential-argv")] == ["act/e.sh:2:6"]
    assert of(report, "invalid-reference", "unanalysable-script") == []


def test_an_action_of_a_checkout_in_a_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path, **{"act/action.yml": composite(LEAK)})
    report = linted(
        tmp_path,
        "uses: actions/checkout@v4\n    with: {path: src}",
        f"uses: ./src/act\n    with: {CELL}",
    )
    assert [each.span.path for each in of(report, "confidential-argv")] == ["act/action.yml"]


@pytest.mark.parametrize("name", ["link", "deep/link"])
def test_a_linked_action_is_followed(tmp_path: Path, name: str) -> None:
    write(tmp_path, **{"real/action.yml": composite(LEAK)})
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "real")
    report = linted(tmp_path, f"uses: ./{name}\n    with: {CELL}")
    assert len(of(report, "confidential-argv")) == 1
    assert of(report, "invalid-reference") == []


def test_a_script_with_a_wrong_shebang_and_a_binary_one(tmp_path: Path) -> None:
    write(tmp_path, **{"wrong.sh": '#!/no/such/shell\ntool "$1"\n', "act/action.yml": composite(LEAK)})
    (tmp_path / "binary").write_bytes(b"\x7fELF\x00" + bytes(range(256)))
    steps = ("run: ./wrong.sh x", "run: ./binary", "run: bash binary", "run: source ./binary")
    report = linted(tmp_path, *(f"{step}\n    env: {{CELL: '${{{{ inputs.selected-id }}}}'}}" for step in steps))
    assert of(report, "confidential-argv") == []
