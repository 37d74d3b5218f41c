"""References of workflows and actions into their repository: what does not hold is told, what may come later is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.lint.linter import lint

if TYPE_CHECKING:
    from pathlib import Path

COMPOSITE = "name: n\ndescription: d\nruns: {using: composite, steps: [{run: 'true', shell: bash}]}\n"
CALLED = "on: {workflow_call: {inputs: {tag: {type: string}}, secrets: {KEY: {required: true}, OTHER: {}}}}\n"
JOB = "jobs: {a: {runs-on: x, steps: [{run: 'true'}]}}\n"


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def faults(root: Path, *paths: str) -> list[str]:
    """What is said, as ``line: message``, of the files at *paths*."""
    (root / ".git").mkdir(exist_ok=True)
    report = lint([root / path for path in paths or (".github/workflows/w.yml",)], current=root)
    assert report.problems == ()
    return [f"{each.span.line}: {each.message}" for each in report.findings if each.rule == "invalid-reference"]


def workflow(*steps: str) -> str:
    return "on: push\njobs:\n a:\n  runs-on: x\n  steps:\n" + "".join(f"  - {step}\n" for step in steps)


def calling(uses: str, rest: str = "") -> str:
    return f"on: push\njobs:\n a:\n  uses: {uses}\n{rest}"


MISSING = "6: there is no `action.yml`, `action.yaml` or `Dockerfile` in `build/act` of this repository"


@pytest.mark.parametrize(
    ("before", "reported"),
    [
        ((), True),
        (("uses: actions/checkout@v4",), True),
        (("uses: actions/checkout@v4\n    with: {path: other}",), True),
        (("uses: actions/checkout@v4\n    with: {repository: o/r, path: other}",), True),
        (("uses: actions/checkout@v4\n    with: {repository: o/r}",), False),
        (("uses: actions/checkout@v4\n    with: {repository: o/r, path: build}",), False),
        (("uses: actions/checkout@v4\n    with: {repository: o/r, path: ./build/}",), False),
        (("uses: actions/checkout@v4\n    with: {path: '${{ github.sha }}'}",), False),
        (("run: make it",), True),
        (("run: git clone https://example.org/r build",), False),
        (("run: mkdir -p act",), False),
    ],
)
def test_a_missing_action(tmp_path: Path, before: tuple[str, ...], reported: bool) -> None:
    write(tmp_path, **{".github/workflows/w.yml": workflow(*before, "uses: ./build/act")})
    found = faults(tmp_path)
    assert [each.split(": ", 1)[1] for each in found] == ([MISSING.split(": ", 1)[1]] if reported else [])


def test_an_action_of_a_checkout_in_a_folder_is_found_and_checked(tmp_path: Path) -> None:
    steps = ("uses: actions/checkout@v4\n    with: {path: src}", "uses: ./src/act\n    with: {x: 1}")
    write(tmp_path, **{".github/workflows/w.yml": workflow(*steps), "act/action.yml": COMPOSITE})
    assert faults(tmp_path) == ["9: the action `./src/act` does not have the input `x`"]


def test_submodules_are_left_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            ".github/workflows/w.yml": workflow("uses: ./vendor/tools/act", "uses: ./vendored/act"),
            ".gitmodules": '[submodule "tools"]\n\tpath = vendor/tools\n\turl = https://example.org/tools\n',
        },
    )
    assert [each[:2] for each in faults(tmp_path)] == ["7:"]


def test_links_are_followed_inside_of_the_repository_only(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    write(
        root, **{".github/workflows/w.yml": workflow("uses: ./inside", "uses: ./outside"), "real/action.yml": COMPOSITE}
    )
    write(tmp_path, **{"elsewhere/action.yml": COMPOSITE})
    (root / "inside").symlink_to("real")
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    assert [each[:2] for each in faults(root)] == ["7:"]


def test_a_dockerfile_is_an_action_too(tmp_path: Path) -> None:
    write(tmp_path, **{".github/workflows/w.yml": workflow("uses: ./image"), "image/Dockerfile": "FROM alpine\n"})
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ("{using: node8, main: x.js}", "4: no runner knows actions that run with `node8`"),
        ("{using: python, main: x.py}", "4: no runner knows actions that run with `python`"),
        ("{using: docker, image: Dockerfile}", "4: there is no file `act/Dockerfile` to build the image from"),
        ("{using: docker, image: ../Dockerfile}", "4: there is no file `Dockerfile` to build the image from"),
        ("{using: docker, image: ../../Dockerfile}", "4: there is no file `../Dockerfile` to build the image from"),
        ("{using: docker, image: 'docker://alpine'}", ""),
        ("{using: Composite, steps: []}", ""),
        ("{using: node20, main: dist/index.js}", ""),
        ("[]", ""),
        ("{using: [composite]}", ""),
    ],
)
def test_kinds_of_actions(tmp_path: Path, runs: str, said: str) -> None:
    write(tmp_path, **{".github/workflows/w.yml": workflow("uses: ./act")})
    write(tmp_path, **{"act/action.yml": f"name: n\ndescription: d\n\nruns: {runs}\n"})
    assert faults(tmp_path, "act/action.yml") == ([said] if said else [])
    assert faults(tmp_path) == []  # it is told where it is wrong


def test_inputs_of_actions(tmp_path: Path) -> None:
    inputs = "inputs: {a: {required: true}, B: {required: true, default: x}, c: {}}\n"
    write(tmp_path, **{"act/action.yml": f"{inputs}{COMPOSITE}"})
    given = ("uses: ./act\n    with: {A: 1, d: 2}", "uses: ./act", "uses: ./act\n    with: {a: 1, b: 2, C: 3}")
    write(tmp_path, **{".github/workflows/w.yml": workflow(*given)})
    assert faults(tmp_path) == [
        "7: the action `./act` does not have the input `d`",
        "8: the action `./act` is not given the input `a`, which it requires",
    ]


def test_an_action_that_includes_itself(tmp_path: Path) -> None:
    def using(name: str) -> str:
        return f"name: n\ndescription: d\nruns:\n using: composite\n steps:\n - uses: ./{name}\n"

    write(tmp_path, **{"a/action.yml": using("b"), "b/action.yml": using("c"), "c/action.yml": using("b")})
    write(tmp_path, **{"d/action.yml": using("d"), ".github/workflows/w.yml": workflow("uses: ./a", "uses: ./d")})
    assert faults(tmp_path) == []
    assert faults(tmp_path, "a/action.yml") == []
    assert faults(tmp_path, "b/action.yml") == ["6: the action `./c` uses itself"]
    assert faults(tmp_path, "d/action.yml") == ["6: the action `./d` uses itself"]


def test_outside_of_the_repository(tmp_path: Path) -> None:
    write(tmp_path, **{".github/workflows/w.yml": workflow("uses: ./../other/act")})
    assert faults(tmp_path) == ["6: `./../other/act` is outside of the repository"]


@pytest.mark.parametrize(
    ("uses", "said"),
    [
        ("./.github/workflows/no.yml", "4: there is no workflow `.github/workflows/no.yml` in this repository"),
        ("./.github/workflows/w.yml", "4: the workflow `.github/workflows/w.yml` cannot be called"),
        ("./workflows/no.yml", "4: `./workflows/no.yml` is not in `.github/workflows`"),
        ("./.github/workflows/sub/no.yml", "4: `./.github/workflows/sub/no.yml` is not in `.github/workflows`"),
        ("o/r/.github/workflows/no.yml@v1", ""),
    ],
)
def test_called_workflows(tmp_path: Path, uses: str, said: str) -> None:
    write(tmp_path, **{".github/workflows/w.yml": calling(uses)})
    assert faults(tmp_path) == ([said] if said else [])


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("  with: {tag: v1}\n  secrets: inherit\n", []),
        ("  with: {TAG: v1}\n  secrets: {key: x}\n", []),
        ("  with: {tags: v1}\n  secrets: inherit\n", ["does not have the input `tags`"]),
        ("  secrets: {key: x, no: y}\n", ["does not have the secret `no`"]),
        ("", ["is not given the secret `key`, which it requires"]),
    ],
)
def test_what_called_workflows_are_given(tmp_path: Path, rest: str, said: list[str]) -> None:
    write(tmp_path, **{".github/workflows/called.yml": CALLED + JOB})
    write(tmp_path, **{".github/workflows/w.yml": calling("./.github/workflows/called.yml", rest)})
    found = [each.split("called.yml` ", 1)[1] for each in faults(tmp_path)]
    assert found == said


def test_workflows_that_call_one_another(tmp_path: Path) -> None:
    def called(number: int) -> str:
        return "on: workflow_call\n" + calling(f"./.github/workflows/w{number}.yml").removeprefix("on: push\n")

    chain = {f".github/workflows/w{number}.yml": called(number + 1) for number in range(12)}
    write(tmp_path, **chain, **{".github/workflows/w12.yml": "on: workflow_call\n" + JOB})
    write(tmp_path, **{".github/workflows/x.yml": called(4), ".github/workflows/w.yml": called(1)})
    assert faults(tmp_path, ".github/workflows/x.yml") == []
    assert faults(tmp_path) == ["4: calls of workflows are nested more than 10 deep from here"]
    write(tmp_path, **{".github/workflows/w2.yml": called(1)})
    assert faults(tmp_path, ".github/workflows/w1.yml") == ["4: the workflow `.github/workflows/w2.yml` calls itself"]


def test_a_file_on_its_own_and_templates_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "alone", **{"w.yml": workflow("uses: ./act")})
    assert lint([tmp_path / "alone" / "w.yml"], current=tmp_path / "alone").findings == ()
    write(tmp_path, **{".github/workflows/w.yml": JOB, "workflows-templates/w.yml": workflow("uses: ./act")})
    assert faults(tmp_path, "workflows-templates/w.yml") == []


def test_unreadable_callees_are_told_once_for_themselves(tmp_path: Path) -> None:
    files = {"act/action.yml": "a: [", ".github/workflows/called.yml": "a: ["}
    write(tmp_path, **files, **{".github/workflows/w.yml": workflow("uses: ./act")})
    write(tmp_path, **{".github/workflows/x.yml": calling("./.github/workflows/called.yml")})
    assert faults(tmp_path, ".github/workflows/w.yml", ".github/workflows/x.yml") == []


def test_a_copy_of_workflows_alone_does_not_say_what_is_missing(tmp_path: Path) -> None:
    write(tmp_path, **{".github/workflows/w.yml": workflow("uses: ./", "uses: ./.github/actions/a")})
    path = tmp_path / ".github" / "workflows" / "w.yml"
    assert lint([path], current=tmp_path).findings == ()
    write(tmp_path, **{".github/actions/b/action.yml": COMPOSITE})
    found = lint([path], current=tmp_path).findings
    assert [(each.rule, each.span.line) for each in found] == [("invalid-reference", 7)]


@pytest.mark.parametrize(
    "uses", ["./act", '"./act"', "'./act'", ">-\n      ./act", "&here ./act", "!!str ./act", "\n      ./act"]
)
def test_however_the_use_is_written(tmp_path: Path, uses: str) -> None:
    write(
        tmp_path,
        **{".github/workflows/w.yml": workflow(f"uses: {uses}", "{'uses': *here}" if "&" in uses else "run: x")},
    )
    assert len(faults(tmp_path)) == 1  # an alias stands where it is defined
