"""What docs/sandbox.md shows is what the program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from runner_e2e.cli.group import runner_e2e
from runner_e2e.sandbox.arguments import OPTIONS, parse_arguments
from runner_e2e.sandbox.layouts import apply, layout_of
from runner_e2e.sandbox.limits import LIMITS
from runner_e2e.sandbox.policy import LAYERS
from runner_e2e.sandbox.policy_json import parse_policy
from runner_e2e.yaml_positions import compose, plain

PAGE = (Path(__file__).parents[3] / "docs" / "sandbox.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_policy_is_one() -> None:
    (text,) = blocks("json")
    assert parse_policy(text, path="docs").need("pids") == "required"


def test_the_layout_is_one() -> None:
    (text,) = blocks("yaml")
    layout = layout_of(plain(compose(text, path="docs")), path="docs")
    policy = apply(layout, provider="", values={"instance": "/i", "session-id": "a b"}, environment={})
    assert policy.expose == ("/i/sessions/a_b",)


def test_the_launches_are_understood() -> None:
    commands = [
        command.replace("\\\n", " ")
        for command in re.findall(r"\$ (.*?[^\\])\n", "".join(blocks("console")), re.DOTALL)
    ]
    assert len(commands) == 6
    for command in commands:
        program, group, verb, *words = shlex.split(command)
        assert (program, group) == ("runner-e2e", "sandbox")
        if verb == "exec":
            parse_arguments(words)
        else:
            page = CliRunner().invoke(runner_e2e, ["sandbox", verb, "--help"]).output
            assert all(word in page for word in words[: words.index("--") if "--" in words else None])


def test_every_layer_and_the_options_of_the_table_exist() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert rows[: len(LAYERS)] == list(LAYERS)
    assert sorted(rows[len(LAYERS) :]) == sorted(LIMITS)
    named = set(re.findall(r"`(--[a-z-]+)", PAGE.partition("## Layers")[0]))
    assert named <= {option.name for option in OPTIONS}


def test_the_library_example_runs(tmp_path: Path) -> None:
    (text,) = blocks("python")
    code = text.replace("/srv/app/sessions", str(tmp_path)).replace('"claude", "--print", "hello"', '"/bin/true"')
    names: dict[str, object] = {}
    exec(compile(code, "docs/sandbox.md", "exec"), names)
    assert names["outcome"].status == 0  # type: ignore[attr-defined]
