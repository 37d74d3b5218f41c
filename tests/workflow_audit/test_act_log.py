"""Lines of act's JSON log."""

from __future__ import annotations

import json

from runner_e2e.workflow_audit.act_log import ActLog


def test_the_step_that_runs_is_remembered() -> None:
    log = ActLog()
    begin = {
        "msg": "⭐ Run Main hello\nworld",
        "job": "W/a     ",
        "jobID": "a",
        "step": "hello\nworld",
        "stepID": ["1", "0"],
    }
    found = log.read(json.dumps({**begin, "stepID": ["1", "0"], "stage": "Main", "matrix": {"v": "x"}}))
    assert (found.job, found.step, found.step_id, found.matrix) == ("W/a", "hello", ("1", "0"), '{"v": "x"}')
    log.read(json.dumps({"msg": "text\n", "raw_output": True, "step": "other", "stepID": ["2"]}))
    assert log.current is found


def test_commands_and_results() -> None:
    log = ActLog()
    output = log.read('{"command": "set-output", "name": "o", "arg": "v", "msg": "x"}')
    assert (output.command, output.name, output.value) == ("set-output", "o", "v")
    assert log.read('{"command": "summary", "content": "text"}').value == "text"
    assert log.read('{"jobResult": "failure", "jobID": "a", "matrix": {}}').job_result == "failure"


def test_what_is_not_json_is_a_message() -> None:
    assert ActLog().read("Error: no").message == "Error: no"
    assert ActLog().read("[1]").message == "[1]"
    assert ActLog().read('{"msg": 3, "stepID": null}').message == ""
