"""Whole workflows under the real act and the real tracer: every surface, every kind of step, every way to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import jsonschema
import pytest

from runner_e2e.errors import ConfigurationError
from runner_e2e.sandbox import exec_audit
from runner_e2e.sandbox.canary import Canary, Finder
from runner_e2e.workflow_audit.model import Sighting, WorkflowAudit, WorkflowOptions
from runner_e2e.workflow_audit.report import render_json, render_text
from runner_e2e.workflow_audit.run import audit_workflow

if TYPE_CHECKING:
    from runner_e2e.sandbox.exec_audit import Exec
    from runner_e2e.workflow_audit.model import StepRun

SCHEMA = json.loads((resources.files("runner_e2e.workflow_audit") / "schemas" / "workflow-audit-v1.json").read_text())
HEAD = "on: {workflow_dispatch: {inputs: {id: {required: true}, other: {default: plain}}}}\n"


def workflow(tmp_path: Path, text: str, **files: str) -> Path:
    for name, content in {".github/workflows/w.yml": HEAD + text, **files}.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "repository" / ".github" / "workflows" / "w.yml"


def audited(path: Path, **options: object) -> WorkflowAudit:
    given = {"inputs": {"id": None}, "timeout": 60.0, **options}
    found = audit_workflow(path, WorkflowOptions(**given))  # type: ignore[arg-type]
    report = render_json(found)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(report))
    assert Finder(found.canaries).find(report + render_text(found)) == ()
    return found


def steps(*texts: str, runs_on: str = "ubuntu-latest") -> str:
    return f"jobs:\n  a:\n    runs-on: {runs_on}\n    steps:\n" + "".join(f"      - {text}\n" for text in texts)


def seen(found: WorkflowAudit, surface: str) -> list[Sighting]:
    return [sighting for sighting in found.sightings if sighting.surface == surface]


def test_the_way_it_should_be_is_clean(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        steps(
            "uses: actions/checkout@v4",
            '{run: \'[ -n "$ID" ] && ./take.sh\', env: {ID: "${{ inputs.id }}"}}',
            "run: test -f take.sh && ! test -f .github/none",
        ),
        **{"take.sh": '#!/bin/sh\nunset ID\n/bin/true "$ID"\n'},
    )
    (path.parents[2] / "take.sh").chmod(0o755)
    found = audited(path)
    assert (found.verdict, found.gaps) == ("clean", [])
    assert {sighting.surface for sighting in found.sightings} == {"event file", "environ"}
    assert [(step.name, step.status) for step in found.steps][1:] == [
        ('[ -n "$ID" ] && ./take.sh', 0),
        ("test -f take.sh && ! test -f .github/none", 0),
    ]


def test_argv_names_the_step(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        "env: {ID: '${{ inputs.id }}'}\n"
        + steps(
            "run: 'true'",
            "{id: guilty, name: the guilty one, run: '(/bin/true \"$ID\"); :'}",
            '{run: \'import os, subprocess; subprocess.run(["/bin/true", os.environ["ID"][:9]])\', shell: python}',
            "{run: 'exec \"/bin/true\", $ENV{ID}', shell: 'perl {0}'}",
        ),
    )
    everything: list[tuple[Exec, StepRun | None]] = []
    found = audit_workflow(
        path, WorkflowOptions(inputs={"id": None}, timeout=60), sink=lambda made, step: everything.append((made, step))
    )
    assert [(step.step_id, made.leaks[0].occurrence.kind) for made, step in found.leaking if step] == [
        (("guilty",), "value"),
        (("2",), "piece"),
        (("3",), "value"),
    ]
    assert seen(found, "argv")[0].step == "the guilty one"
    # The first exec is act's own; every other belongs to a step.
    assert [made.index for made, step in everything if step is None] == [0]
    assert len(everything) == found.execs.execs


def test_an_expression_in_a_script_is_on_the_disk(tmp_path: Path) -> None:
    found = audited(workflow(tmp_path, steps("{name: s, run: 'x=${{ inputs.id }}'}")))
    assert [(sighting.surface, sighting.step) for sighting in found.leaks] == [("step script", "s")]
    assert found.leaking == []


def test_files_are_seen_when_the_next_step_removes_them(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        "env: {ID: '${{ inputs.id }}'}\n"
        + steps(
            "{name: writes, run: 'for f in here $RUNNER_TEMP/x ~/y $TMPDIR/z; do echo \"$ID\" >$f; done'}",
            "{name: removes, run: 'rm here $RUNNER_TEMP/x ~/y $TMPDIR/z'}",
        ),
    )
    found = audited(path)
    assert {(sighting.place, sighting.step) for sighting in found.leaks} == {
        ("$GITHUB_WORKSPACE/here", "writes"),
        ("$RUNNER_TEMP/x", "writes"),
        ("$HOME/y", "writes"),
        ("$TMPDIR/z", "writes"),
    }


def test_what_the_run_shows_to_everybody(tmp_path: Path) -> None:
    text = """
jobs:
  a:
    name: job ${{ inputs.id }}
    runs-on: ubuntu-latest
    env: {ID: '${{ inputs.id }}'}
    outputs: {o: '${{ steps.s.outputs.o }}'}
    steps:
      - {name: 'step ${{ inputs.id }}', run: 'true'}
      - {name: log, run: 'echo "it is $ID"'}
      - {name: masked, run: 'echo "::add-mask::$ID"; echo "now it is $ID"'}
      - {name: summary, run: 'echo "$ID" >>"$GITHUB_STEP_SUMMARY"'}
      - {id: s, name: output, run: 'echo "o=$ID" >>"$GITHUB_OUTPUT"; echo "E=$ID" >>"$GITHUB_ENV"'}
      - {run: 'echo x >file'}
      - {uses: actions/upload-artifact@v4, with: {name: 'r-${{ inputs.id }}', path: file}}
      - {uses: 'actions/cache@v4', with: {path: file, key: 'k-${{ inputs.id }}'}}
      - {uses: 'actions/cache/restore@v4', with: {path: file, key: plain}}
"""
    found = audited(workflow(tmp_path, text))
    assert found.gaps == []
    for surface in ("job name", "step name", "step summary", "artifact name", "cache key"):
        assert seen(found, surface), surface
    assert seen(found, "log")[0].text == "it is ***"
    assert not [sighting for sighting in seen(found, "log") if sighting.step == "masked"]
    assert seen(found, "output")[0].place == "set-output o"
    assert {"outputcmd.txt", "envs.txt"} <= {sighting.place for sighting in seen(found, "file command")}
    assert not any(sighting.leak for sighting in [*seen(found, "output"), *seen(found, "file command")])


def test_composite_and_javascript_actions_and_reusable_workflows(tmp_path: Path) -> None:
    text = """
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - {id: comp, uses: ./.github/actions/composite, with: {v: '${{ inputs.id }}'}}
      - {id: js, uses: ./.github/actions/js, with: {v: '${{ inputs.id }}'}}
  b:
    uses: ./.github/workflows/called.yml
    with: {v: '${{ inputs.id }}'}
"""
    files = {
        ".github/actions/composite/action.yml": "name: c\ndescription: c\ninputs: {v: {}}\n"
        "runs:\n  using: composite\n  steps:\n"
        "    - {run: 'true', shell: sh}\n"
        "    - {id: inner, run: '/bin/true \"$V\"', shell: sh, env: {V: '${{ inputs.v }}'}}\n",
        ".github/actions/js/action.yml": "name: j\ndescription: j\ninputs: {v: {}}\n"
        "runs: {using: node20, main: main.js}\n",
        ".github/actions/js/main.js": 'require("child_process").execFileSync("/bin/true", [process.env.INPUT_V]);\n',
        ".github/workflows/called.yml": "on: {workflow_call: {inputs: {v: {type: string}}}}\n"
        "jobs:\n  c:\n    runs-on: ubuntu-latest\n"
        "    steps: [{name: called, run: '/bin/true \"$V\"', env: {V: '${{ inputs.v }}'}}]\n",
    }
    found = audited(workflow(tmp_path, text, **files))
    assert found.gaps == []
    assert {step.step_id for _, step in found.leaking if step} == {("comp", "inner"), ("js",), ("0",)}
    assert [note for note in found.notes if "did not run" in note] == []


def test_a_matrix_value_is_part_of_a_job_name(tmp_path: Path) -> None:
    text = """
jobs:
  a:
    runs-on: ubuntu-latest
    strategy: {matrix: {v: ['${{ inputs.id }}']}}
    steps: [{run: 'true'}]
"""
    found = audited(workflow(tmp_path, text))
    assert any("matrix" in sighting.place for sighting in seen(found, "job name"))


def test_a_dispatch_of_another_kind(tmp_path: Path) -> None:
    path = workflow(tmp_path, "")
    path.write_text(
        "on: repository_dispatch\njobs: {a: {runs-on: my-own-label, steps: "
        "[{run: '/bin/true \"$ID\"', env: {ID: '${{ github.event.client_payload.id }}'}}]}}\n"
    )
    found = audited(path, inputs={}, fields={"client_payload.id": None})
    assert [sighting.canary for sighting in seen(found, "argv")] == ["field client_payload.id"]


def test_several_canaries_are_told_apart(tmp_path: Path) -> None:
    path = workflow(
        tmp_path, steps("{run: '/bin/true \"$A\"', env: {A: '${{ inputs.other }}', B: '${{ inputs.id }}'}}")
    )
    found = audited(path, inputs={"id": None, "other": "another-long-value"})
    assert [sighting.canary for sighting in found.leaks] == ["input other"]
    assert {sighting.canary for sighting in seen(found, "environ")} == {"input id", "input other"}


def test_an_action_given_as_a_directory_and_secrets(tmp_path: Path) -> None:
    action = tmp_path / "action"
    action.mkdir()
    (action / "action.yml").write_text(
        "name: x\ndescription: x\ninputs: {v: {}}\nruns: {using: composite, steps: "
        "[{run: '/bin/true \"$V\" \"$K\"', shell: sh, env: {V: '${{ inputs.v }}'}}]}\n"
    )
    (tmp_path / "secrets").write_text("KEY=a-secret\n")
    path = workflow(
        tmp_path, steps("{uses: one/two@v3, with: {v: '${{ inputs.id }}'}, env: {K: '${{ secrets.KEY }}'}}")
    )
    everything: list[Exec] = []
    found = audit_workflow(
        path,
        WorkflowOptions(
            inputs={"id": None}, timeout=60, local_repositories={"one/two@v3": action}, secret_file=tmp_path / "secrets"
        ),
        sink=lambda made, _: everything.append(made),
    )
    assert len(found.leaking) == 1
    assert everything[-1].argv[-1] == "a-secret"


def test_a_step_that_fails_leaves_the_rest_unseen(tmp_path: Path) -> None:
    text = steps("run: exit 3", "run: 'true'") + "  b: {needs: a, runs-on: ubuntu-latest, steps: [{run: 'true'}]}\n"
    found = audited(workflow(tmp_path, text))
    assert found.verdict == "incomplete"
    assert found.gaps[0] == "job w.yml/a: failure"
    assert "job b did not run" in found.notes


def test_a_step_that_hangs_is_named_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is over when it has begun, however long that takes."""
    begun = tmp_path / "begun"
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 500 * begun.exists(), time=time.time)
    monkeypatch.setattr(exec_audit, "time", clock)
    script = f"touch {begun}; sleep 300 & sleep 300"
    found = audited(workflow(tmp_path, steps(f"{{name: stuck, run: '{script}'}}")), timeout=400.0)
    assert found.gaps[0] == "killed after 400 seconds, in: w.yml/a / stuck"
    assert all(process.ended is not None for process in found.execs.processes)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (steps("rum: x"), "Unknown Property rum"),
        (steps("run: '${{ nosuch( }}'"), "Failed to parse"),
        (steps("run: x", runs_on="windows-latest"), "runs no job"),
        ("jobs: {a: {if: false, runs-on: ubuntu-latest, steps: [{run: x}]}}", "runs no job"),
    ],
)
def test_what_act_refuses(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        audited(workflow(tmp_path, text))
    assert what in caught.value.problem.what
    assert caught.value.problem.place


def test_the_command_line(tmp_path: Path) -> None:
    path = workflow(tmp_path, steps("{run: '/bin/true \"$ID\"', env: {ID: '${{ inputs.id }}'}}"))
    source = Path(__file__).resolve().parents[3] / "src"
    report = tmp_path / "report.json"
    value = "my-very-own-value"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "runner_e2e", "audit", "workflow", str(path)),
            *("--input", f"id={value}", "--report", str(report), "--fail-on-leak"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(source)},
        timeout=120,
    )
    assert done.returncode == 1
    assert "LEAK: the value appeared in 1 place" in done.stdout
    assert "argument 1 of /bin/true: /bin/true ***" in done.stdout
    data = json.loads(report.read_text())
    assert data["leaking_execs"][0]["step"] == 0
    assert Finder([Canary(name="id", value=value)]).find(report.read_text() + done.stdout) == ()


def test_words_of_a_chosen_value_may_stand_in_files(tmp_path: Path) -> None:
    path = workflow(
        tmp_path,
        steps("uses: actions/checkout@v4", "{run: 'echo \"$ID\" >copy', env: {ID: '${{ inputs.id }}'}}"),
        readme="all about hello-world and scripted agents",
    )
    found = audited(path, inputs={"id": "demo.scripted.local.hello-world"})
    assert [(sighting.place, sighting.kind) for sighting in found.leaks] == [("$GITHUB_WORKSPACE/copy", "value")]
    assert any("whole value only" in note for note in found.notes)


def test_an_action_is_copied_without_what_git_ignores(tmp_path: Path) -> None:
    action = tmp_path / "action"
    (action / "node_modules").mkdir(parents=True)
    (action / "node_modules" / "big").write_text("x")
    (action / "action.yml").write_text(
        "name: x\ndescription: x\nruns: {using: composite, steps: "
        "[{run: 'test -f $GITHUB_ACTION_PATH/action.yml && ! test -e $GITHUB_ACTION_PATH/node_modules', shell: sh}]}\n"
    )
    found = audited(workflow(tmp_path, steps("uses: one/two@v3")), local_repositories={"one/two@v3": action})
    assert found.gaps == []
