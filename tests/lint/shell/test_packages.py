"""Scripts of ``package.json`` and the programs that run them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner_e2e.lint.shell import Files, ShellOptions, ShellResult, analyse
from runner_e2e.lint.values import Confidence, Label, Origin, Script, Taint, Value

LABELLED = Value.of([Taint(Label(kind="confidential", name="S"), Confidence.HIGH)])
MANIFEST = {
    "name": "x",
    "scripts": {
        "pretest": 'echo "$S"',
        "test": 'tool "$S"',
        "clean": "rimraf dist",
        "args": "tool",
        "chain": "npm run test",
        "loop": "npm run loop",
        "start": "node -e \"require('child_process').execSync('tool ' + process.env.S)\"",
    },
}


def follow(text: str, files: dict[str, str]) -> ShellResult:
    def find(path: str) -> Script | None:
        content = files.get(path.removeprefix("/github/workspace/"))
        origin = Origin(path=path.removeprefix("/github/workspace/"), text=content) if content is not None else None
        return Script(origin=origin, text=origin.text) if origin is not None else None

    return analyse(
        Script(origin=Origin(path="step", text=text), text=text),
        environment={"S": LABELLED},
        files=Files(find_script=find),
        options=ShellOptions(),
    )


def places(result: ShellResult) -> list[tuple[str, str]]:
    """File and text of each leaking argument."""
    return sorted((leak.origin.path, leak.origin.text[leak.start : leak.end]) for leak in result.leaks)


@pytest.mark.parametrize(
    "command",
    [
        "npm test",
        "npm t --silent",
        "npm run test",
        "npm --prefix . run test",
        "npm run-script test",
        "pnpm test",
        "pnpm run test",
        "yarn test",
        "yarn run test",
        "bun run test",
        "npm run chain",
        "cd sub && npm --prefix .. test",
    ],
)
def test_scripts_are_followed_to_their_line(command: str) -> None:
    files = {"package.json": json.dumps(MANIFEST, indent=2)}
    assert places(follow(command, files)) == [("package.json", '\\"$S\\"')]


@pytest.mark.parametrize(
    "command", ["npm run clean", "npm install", "npm ci", "yarn", "pnpm install", "npm run absent"]
)
def test_other_commands_leak_nothing(command: str) -> None:
    assert places(follow(command, {"package.json": json.dumps(MANIFEST)})) == []


def test_the_script_of_another_folder_is_another_one() -> None:
    files = {"package.json": json.dumps(MANIFEST), "sub/package.json": '{"scripts": {"test": "true"}}'}
    assert places(follow("cd sub && npm test", files)) == []
    assert places(follow("npm -C sub test", files)) == []


def test_arguments_reach_the_command() -> None:
    files = {"package.json": json.dumps(MANIFEST)}
    assert ("step", '"$S"') in places(follow('npm run args -- --id "$S"', files))
    found = follow('npm run args -- "$S"', files).leaks
    assert {leak.command for leak in found} == {"npm", "tool"}


def test_a_script_may_start_other_languages() -> None:
    (leak,) = follow("npm start", {"package.json": json.dumps(MANIFEST)}).leaks
    assert leak.origin.path == "package.json"


def test_scripts_that_call_one_another_end() -> None:
    assert follow("npm run loop", {"package.json": json.dumps(MANIFEST)}).unanalysable != ()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('npx --yes tool "$S"', {"npx", "tool"}),
        ("npx -c 'tool \"$S\"'", {"tool"}),
        ('pnpm exec tool "$S"', {"pnpm", "tool"}),
        ('uvx --from x tool "$S"', {"uvx", "tool"}),
        ('uv run tool "$S"', {"uv", "tool"}),
        ("uv run bash -c 'tool \"$S\"'", {"tool"}),
        ('poetry run tool "$S"', {"poetry", "tool"}),
        ('hatch run tool "$S"', {"hatch", "tool"}),
        ("uv sync", set()),
        ("poetry install", set()),
    ],
)
def test_runners_run_their_operands(command: str, expected: set[str]) -> None:
    assert {leak.command for leak in follow(command, {}).leaks} <= expected
    assert bool(follow(command, {}).leaks) == bool(expected)


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[]",
        "{",
        '{"scripts": 1}',
        '{"scripts": {"test": 1}}',
        '{"scripts": {"test": "tool"}, "scripts": {}}',
        '{"other": {"scripts": {"test": "tool \\"$S\\""}}}',
        "\0",
    ],
)
def test_manifests_that_are_none(manifest: str) -> None:
    assert places(follow("npm test", {"package.json": manifest})) == []


@given(st.dictionaries(st.text('ab"\\:{ é', min_size=1, max_size=4), st.text("ab \"\\$'S;\n", max_size=12), max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_scripts_are_survived(scripts: dict[str, str]) -> None:
    follow("npm test; npm run a; npm run b", {"package.json": json.dumps({"scripts": scripts})})
