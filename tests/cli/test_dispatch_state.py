"""``dispatch status``, ``results``, ``export``, ``adopt``, ``resolve`` and ``cancel``: a campaign of two shards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.campaign_prompt import KEY, Shell, shell

from runner_e2e.dispatch import campaign as campaigns
from runner_e2e.dispatch import ledger as ledgers
from runner_e2e.dispatch.ledger import open_ledger

__all__ = ["shell"]


@pytest.fixture
def planned(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A campaign of two shards that is written and not started."""
    monkeypatch.setattr(campaigns, "MAXIMUM_JOBS", 3)
    shell.enter("runner-e2e dispatch plan --group nightly --repo octo/evals -o campaign.json")
    assert shell.status == 0
    return shell


def data(shell: Shell, command: str) -> Any:
    """What a command prints as JSON."""
    shell.enter(f"runner-e2e dispatch {command} > out.json")
    return json.loads(Path("out.json").read_text())


def test_an_empty_ledger_has_no_campaign(planned: Shell) -> None:
    assert planned.enter("runner-e2e dispatch status") == f"no campaign in {os.environ['RUNNER_E2E_LEDGER']}"
    assert data(planned, "status --json")["campaigns"] == []
    said = planned.enter("runner-e2e dispatch watch c-1")
    assert planned.status == 2
    assert "the ledger has no campaign 'c-1'" in said
    assert "--events is about one campaign" in planned.enter("runner-e2e dispatch status --events")


def test_json_says_how_it_stands_before_and_after(planned: Shell) -> None:
    before = data(planned, "start campaign.json --yes --detach --quiet --json")
    assert planned.status == before["status"] == 5
    assert (before["finished"], before["spent_usd"], before["reserved_usd"]) == (False, 0.0, 4.5)
    assert [shard["state"] for shard in before["shards"]] == ["sent", "sent"]
    after = data(planned, "watch CAMPAIGN --quiet --json")
    assert planned.status == after["status"] == 1
    assert after["schema"] == "runner-e2e.dispatch-campaign/v1"
    assert after["cells"] == {"all": 5, "passed": 4, "failed": 1, "without_result": 0}
    assert (after["finished"], after["spent_usd"], after["reserved_usd"]) == (True, 1.72, 0.0)
    assert [after] == data(planned, "status --json")["campaigns"]
    assert planned.status == 0, "a list is no verdict"
    assert after == data(planned, "status CAMPAIGN --json")
    assert planned.status == 1


def test_events_tell_every_move(planned: Shell) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    text = planned.enter("runner-e2e dispatch status CAMPAIGN --events")
    rows = [line.split() for line in text.splitlines()]
    assert rows[0][:5] == ["TIME", "SHARD", "FROM", "TO", "RUN"]
    moves = [row[3:5] for row in rows if row[2] == "0"]
    # Where it stays what it was a note has changed.
    reached = [after for before, after in moves if before != after]
    assert reached == ["reserved", "sending", "sent", "running", "ended", "settled"]
    planned.enter("runner-e2e dispatch status CAMPAIGN --events --json > events.jsonl")
    assert len(Path("events.jsonl").read_text().splitlines()) == len(rows) - 1


def test_the_export_names_no_cell_and_holds_no_secret(planned: Shell) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    text = planned.enter("runner-e2e dispatch export")
    kinds = [json.loads(line)["kind"] for line in text.splitlines()]
    assert {kind: kinds.count(kind) for kind in ("ledger", "campaign", "shard", "cell")} == {
        "ledger": 1, "campaign": 1, "shard": 2, "cell": 5,
    }  # fmt: skip
    assert not any(word in text for word in ("codex", "goodbye", KEY.hex(), os.environ["GH_TOKEN"]))


def test_a_cell_of_unknown_cost_is_no_zero(planned: Shell) -> None:
    planned.player._cost = lambda cell: None if cell.suite == "review" else 0.38
    assert "4 of 5 passed, 1 failed" in planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    text = planned.enter("runner-e2e dispatch results CAMPAIGN --failed --ids")
    assert text.splitlines()[1].split()[1:5] == ["review.codex.local.diff", "failed", "unknown", "1"]
    assert text.splitlines()[-1] == "1 cell of 5: $0.00, $1.00 stay reserved for what is unknown"
    (cell,) = data(planned, "results CAMPAIGN --failed --json")["cells"]
    assert (cell["verdict"], cell["cost_usd"]) == ("failed", None)
    assert cell["kept_usd"] > 0


def test_ids_need_the_key(planned: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    monkeypatch.setenv("RUNNER_E2E_CAMPAIGN_KEY", bytes(range(32)).hex())
    assert "which is not here" in planned.enter("runner-e2e dispatch results CAMPAIGN --ids")
    assert planned.status == 3
    monkeypatch.delenv("RUNNER_E2E_CAMPAIGN_KEY")
    assert "RUNNER_E2E_CAMPAIGN_KEY is not set" in planned.enter("runner-e2e dispatch results CAMPAIGN --ids")
    assert "handle" in json.dumps(data(planned, "results CAMPAIGN --json")), "without ids none is needed"


def test_cancel_sends_nothing_more(planned: Shell) -> None:
    planned.double.faults.order("lost-hang-up", "POST", "/dispatches$")
    planned.enter("runner-e2e dispatch start campaign.json --yes --detach")
    said = planned.enter("runner-e2e dispatch cancel CAMPAIGN --yes")
    assert "cancelled" in said
    planned.enter("runner-e2e dispatch watch CAMPAIGN --quiet")
    assert planned.status == 1
    said = planned.enter("runner-e2e dispatch results CAMPAIGN")
    assert "cancelled" in said
    assert "not at its end" not in said
    said = planned.enter("runner-e2e dispatch resolve CAMPAIGN --send-again 0 --yes")
    assert planned.status in {2, 3}, said
    assert planned.player.paid_twice() == []


@pytest.mark.parametrize("option", ["--send-again 0", "--send-again 9", "--give-up 0"])
def test_only_what_waits_for_a_decision_is_decided(planned: Shell, option: str) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    before = len(planned.player.payments)
    said = planned.enter(f"runner-e2e dispatch resolve CAMPAIGN {option} --yes")
    assert (planned.status, re.search(r"is refused|does not exist", said) is not None) == (2, True), said
    assert len(planned.player.payments) == before


def test_without_a_terminal_decisions_need_yes(planned: Shell) -> None:
    assert "there is no terminal to ask on: Pay for it?" in planned.enter("runner-e2e dispatch start campaign.json")
    assert planned.status == 2
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    assert "Stop its runs, and send nothing more?" in planned.enter("runner-e2e dispatch cancel CAMPAIGN")
    assert planned.status == 2
    assert len(planned.double.requests("POST", "/dispatches")) == 2


def test_a_copied_ledger_reads_and_does_not_act(planned: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --detach --quiet")
    assert "is this machine's already" in planned.enter("runner-e2e dispatch adopt")
    monkeypatch.setattr(ledgers, "machine_digest", lambda: "another machine")
    planned.enter("runner-e2e dispatch status CAMPAIGN")
    assert planned.status == 5
    said = planned.enter("runner-e2e dispatch watch CAMPAIGN")
    assert (planned.status, "belongs to another machine" in said, "dispatch adopt" in said) == (3, True, True)
    assert "there is no terminal to ask on" in planned.enter("runner-e2e dispatch adopt")
    assert "is this machine's now" in planned.enter("runner-e2e dispatch adopt --yes")
    planned.enter("runner-e2e dispatch watch CAMPAIGN --quiet")
    assert planned.status == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"no database, but long enough to be one" * 40, "is no"), (b"SQLite format 3\0" + bytes(2000), "ledger")],
)
def test_a_ledger_that_is_none_is_one_message(planned: Shell, content: bytes, said: str) -> None:
    Path("other.sqlite").write_bytes(content)
    text = planned.enter("runner-e2e dispatch start campaign.json --yes --ledger other.sqlite")
    assert planned.status == 3, text
    assert said in text
    assert "fix:" in text
    assert Path("other.sqlite").read_bytes() == content
    assert planned.double.requests("POST") == []


def test_without_a_token_nothing_is_written(planned: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GH_TOKEN")
    said = planned.enter("runner-e2e dispatch start campaign.json --yes")
    assert (planned.status, "there is no token for GitHub's API" in said) == (2, True), said
    with open_ledger(Path(os.environ["RUNNER_E2E_LEDGER"]), now=lambda: 0.0) as ledger:
        assert all(shard.state == "planned" for each in ledger.campaigns() for shard in ledger.shards(each.id))


def test_what_github_refuses_is_said_once_and_can_be_tried_again(planned: Shell) -> None:
    planned.double.state.actions_enabled = False
    said = planned.enter("runner-e2e dispatch start campaign.json --yes")
    assert planned.status == 3
    assert said.count("Actions is disabled in this repository") == 1
    planned.double.state.actions_enabled = True
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    assert planned.status == 1
    assert len(planned.double.requests("POST", "/dispatches")) == 2


def test_the_page_of_a_job_shows_how_it_stands_by_handles(planned: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(Path("summary.md").absolute()))
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    text = Path("summary.md").read_text()
    assert "| cells | 4 of 5 passed, 1 failed |" in text
    assert "| money | $1.72 spent, $0.00 reserved |" in text
    assert re.search(r"^\| 0 \| settled \| \d \| \d \| \$\d.\d\d \| \d+ \|$", text, re.MULTILINE)
    (cell,) = data(planned, "results CAMPAIGN --failed --json")["cells"]
    assert re.search(rf"^- `{cell['handle']}` failed", text, re.MULTILINE)
    assert "codex" not in text


def test_what_reads_the_ledger_alone_loads_no_client_of_github(planned: Shell) -> None:
    planned.enter("runner-e2e dispatch start campaign.json --yes --quiet")
    code = (
        "import sys; from runner_e2e.cli.group import run; run(sys.argv[1:]); "
        "sys.exit(' '.join({'github', 'requests', 'cryptography'} & set(sys.modules)))"
    )
    for verb in ("status", "results"):
        words = ["dispatch", verb, planned.names["CAMPAIGN"]]
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
        assert done.stderr.strip() == ""
        assert "settled" in done.stdout or "failed" in done.stdout
