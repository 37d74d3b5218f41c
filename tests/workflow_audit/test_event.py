"""The event that triggers an audited workflow and the canaries in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from runner_e2e.errors import ConfigurationError, RunnerE2EError, UsageError
from runner_e2e.workflow_audit.event import Event, build_event
from runner_e2e.workflow_audit.model import WorkflowOptions
from runner_e2e.workflow_audit.workflow_file import read_workflow

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = (
    "{id: {required: true}, number: {type: number}, flag: {type: boolean}, "
    "pick: {type: choice, options: [aaaa-bbbb, c]}, text: {default: x}}"
)


def event(tmp_path: Path, on: str, **options: Any) -> Event:
    path = tmp_path / "w.yml"
    path.write_text(f"on: {on}\njobs: {{a: {{runs-on: x, steps: []}}}}\n")
    return build_event(read_workflow(path, name="w.yml"), WorkflowOptions(**options), "w.yml")


def test_a_random_canary_and_the_defaults_that_github_fills_in(tmp_path: Path) -> None:
    on = f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}"
    found = event(tmp_path, on, inputs={"id": None})
    (canary,) = found.canaries
    assert found.payload["inputs"] == {"id": canary.value, "flag": "false", "pick": "aaaa-bbbb", "text": "x"}
    assert len(canary.value) == 26
    assert event(tmp_path, on, inputs={"id": None}).canaries[0].value != canary.value


def test_values_of_ones_own(tmp_path: Path) -> None:
    on = f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}"
    found = event(tmp_path, on, inputs={"id": "my-own-value", "number": None, "pick": "aaaa-bbbb"})
    assert [canary.name for canary in found.canaries] == ["input id", "input number", "input pick"]
    assert found.canaries[0].value == "my-own-value"
    assert found.canaries[1].value.isdigit()


def test_a_payload_to_start_from(tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_text(json.dumps({"inputs": {"id": "given", "text": "y"}, "sender": {"login": "me"}}))
    on = f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}"
    found = event(tmp_path, on, inputs={"number": None}, event=file)
    assert found.payload["sender"] == {"login": "me"}
    assert found.payload["inputs"] | {"number": ""} == {  # type: ignore[operator]
        "id": "given",
        "text": "y",
        "number": "",
        "flag": "false",
        "pick": "aaaa-bbbb",
    }


def test_a_field_of_another_event(tmp_path: Path) -> None:
    found = event(tmp_path, "{repository_dispatch: }", fields={"client_payload.case.id": None, "action": "long-enough"})
    assert found.name == "repository_dispatch"
    assert found.payload == {"client_payload": {"case": {"id": found.canaries[0].value}}, "action": "long-enough"}


@pytest.mark.parametrize(
    ("on", "options", "name"),
    [
        ("[push, workflow_dispatch]", {"fields": {"a": None}}, "workflow_dispatch"),
        ("[push, workflow_dispatch]", {"fields": {"a": None}, "event_name": "push"}, "push"),
        ("issues", {"fields": {"issue.title": None}}, "issues"),
    ],
)
def test_the_event_that_fits(tmp_path: Path, on: str, options: dict[str, Any], name: str) -> None:
    assert event(tmp_path, on, **options).name == name


@pytest.mark.parametrize(
    ("on", "options", "error", "text"),
    [
        ("push", {}, UsageError, "no canary to follow"),
        ("push", {"inputs": {"id": None}}, UsageError, "has no inputs"),
        ("[push, issues]", {"fields": {"a": None}}, UsageError, "--event-name"),
        ("push", {"event_name": "issues", "fields": {"a": None}}, ConfigurationError, "no event 'issues'"),
        ("push", {"fields": {"a.b.": None}}, UsageError, "names nothing"),
        (
            f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}",
            {"inputs": {"nope": None}},
            ConfigurationError,
            "no input 'nope'",
        ),
        (f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}", {"inputs": {"flag": None}}, UsageError, "is a boolean"),
        (f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}", {"inputs": {"pick": "other"}}, UsageError, "is a choice"),
        (
            f"{{workflow_dispatch: {{inputs: {INPUTS}}}}}",
            {"inputs": {"text": None}},
            ConfigurationError,
            "id is required",
        ),
    ],
)
def test_wrong_requests(
    tmp_path: Path, on: str, options: dict[str, Any], error: type[RunnerE2EError], text: str
) -> None:
    with pytest.raises(error) as caught:
        event(tmp_path, on, **options)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff{}", "cannot be read\n  why: it is not UTF-8 at byte 0"),
        (None, "cannot be read\n  why: No such file"),
    ],
)
def test_a_wrong_payload(tmp_path: Path, content: bytes | None, text: str) -> None:
    file = tmp_path / "event.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=text):
        event(tmp_path, "push", fields={"a": None}, event=file)


def test_a_field_through_a_text(tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_text('{"a": "text"}')
    with pytest.raises(UsageError, match="is no object"):
        event(tmp_path, "push", fields={"a.b": None}, event=file)
