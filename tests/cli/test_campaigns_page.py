"""Every example of ``docs/campaigns.md``, run in the order of the page against a double whose runs are played."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from tests.cli.campaign_prompt import Shell, shell

from runner_e2e.cli.dispatch import dispatch
from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch.github_api import GitHubApi
from runner_e2e.dispatch.shard_states import MEANINGS

if TYPE_CHECKING:
    from runner_e2e.dispatch.answers import Answer

__all__ = ["shell"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "campaigns.md"


@dataclass(frozen=True, kw_only=True)
class Example:
    """A command of the page and what it shows below it; *fault* is ordered before it."""

    block: str
    command: str
    output: str
    fault: str = ""


def examples(page: str) -> list[Example]:
    """The commands of all blocks that are named by ``<!-- test: NAME -->``, but for drawings."""
    found = []
    pattern = r"(?:<!-- fault: (.*?) -->\n)?<!-- test: (\w+) -->\n```console\n(.*?)^```$"
    for fault, block, text in re.findall(pattern, page, re.DOTALL | re.MULTILINE):
        for number, command in enumerate(re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]):
            line, _, output = command.partition("\n")
            found.append(Example(block=block, command=line, output=output.rstrip("\n"), fault="" if number else fault))
    return found


def steady(text: str) -> str:
    """*text* without what differs from time to time."""
    for pattern, word in (
        (r"c-[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}", "c-20261130t120000z-1a2b3c4d"),
        (r"\b[0-9]{8}t[0-9]{6}z-[0-9a-f]{16}", "20261130t120000z-0123456789abcdef"),
        (r"\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b", "12:00:00"),
        (r"\brun [0-9]{4}\b", "run 1002"),
    ):
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_every_example_shows_what_it_prints(shell: Shell) -> None:
    page = PAGE.read_text()
    found = examples(page)
    assert {example.block for example in found} == {
        name for name in re.findall(r"<!-- test: (\w+) -->", page) if name != "view"
    }, "a block has another form"
    assert len(found) > 12
    for example in found:
        if example.fault:
            shell.double.faults.order(*example.fault.split(" "))
        assert steady(shell.enter(example.command)) == steady(example.output), example.command
    assert shell.player.paid_twice() == []
    assert sum(shell.double.faults.fired.values()) == 1


@pytest.mark.parametrize("most", [5, 1])
def test_it_takes_about_as_many_requests_as_the_plan_says(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(campaigns, "MAXIMUM_JOBS", most)
    seen: list[str] = []
    exchange = GitHubApi._exchange

    def counted(api: GitHubApi, verb: str, path: str, *rest: Any) -> Answer:
        # The jobs of the runs have tokens of their own.
        if api.limits.paced:
            seen.append(f"{verb} {path}")
        return exchange(api, verb, path, *rest)

    monkeypatch.setattr(GitHubApi, "_exchange", counted)
    plan = json.loads(shell.enter("runner-e2e dispatch plan --all --repo octo/evals -o campaign.json --json"))
    shell.enter("runner-e2e dispatch start campaign.json --yes --detach")
    shards = len(plan["shards"])
    assert shards == -(-5 // most)
    # The first campaign of a repository also makes the branch of the shared ledger.
    assert plan["requests"]["start"] - 5 <= len(seen) <= plan["requests"]["start"] + 5, seen
    shell.enter("runner-e2e dispatch watch CAMPAIGN")
    assert plan["requests"]["whole"] / 2 <= len(seen) <= plan["requests"]["whole"], seen


def test_the_states_are_those_that_there_are() -> None:
    table = PAGE.read_text().partition("| state of a shard |")[2].partition("\n\n")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)) == MEANINGS


def test_the_messages_are_those_that_are_printed() -> None:
    table = PAGE.read_text().partition("## When something fails")[2]
    said = re.findall(r"^\| (?!message|---)(.+?) \|", table, re.MULTILINE)
    code = " ".join(
        " ".join(re.sub(r'["\']\s*\n\s*f?["\']', "", path.read_text()).split())
        for path in (ROOT / "src" / "runner_e2e").rglob("*.py")
    )
    assert len(said) > 15
    # Dots stand for what differs.
    parts = [part.strip() for message in said for part in message.split("…") if part.strip()]
    assert [part for part in parts if part not in code] == []


@pytest.mark.parametrize("page", ["README.md", "docs/campaigns.md", "docs/paying.md"])
def test_the_verbs_and_options_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"(?:runner-e2e dispatch|`dispatch) ([a-z-]+)([^`\n|]*)", text)
    assert named
    context = click.Context(dispatch)
    for verb, rest in named:
        command = dispatch.get_command(context, verb)
        assert command is not None, verb
        options = {name for parameter in command.params for name in parameter.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest)) <= options, (verb, rest)
