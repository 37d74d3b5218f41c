"""Writes what a workflow audit found: JSON (``runner-e2e.workflow-audit/v1``) and text, never with the value."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runner_e2e.sandbox.audit_report import exec_json
from runner_e2e.sandbox.canary import Finder

if TYPE_CHECKING:
    from runner_e2e.workflow_audit.model import Sighting, StepRun, WorkflowAudit

__all__ = ["SCHEMA", "render_json", "render_text"]

SCHEMA = "runner-e2e.workflow-audit/v1"
TEXT_ROWS = 30
TEXT_WIDTH = 110


def sighting_json(sighting: Sighting) -> dict[str, object]:
    return {
        "surface": sighting.surface,
        "leak": sighting.leak,
        "canary": sighting.canary,
        "kind": sighting.kind,
        "job": sighting.job,
        "step": sighting.step,
        "place": sighting.place,
        "text": sighting.text,
        "count": sighting.count,
    }


def step_json(step: StepRun) -> dict[str, object]:
    return {
        "index": step.index,
        "job": step.job,
        "job_id": step.job_id,
        "name": step.name,
        "step_id": list(step.step_id),
        "stage": step.stage,
        "program": step.program,
        "status": step.status,
    }


def render_json(audit: WorkflowAudit) -> str:
    """The whole report as JSON text."""
    finder = Finder(audit.canaries)
    execs = audit.execs
    return json.dumps(
        {
            "schema": SCHEMA,
            "verdict": audit.verdict,
            "gaps": audit.gaps,
            "notes": audit.notes,
            "workflow": audit.workflow,
            "event": audit.event_name,
            "canaries": [{"name": canary.name} for canary in audit.canaries],
            "started": datetime.fromtimestamp(execs.started, UTC).isoformat(),
            "seconds": round(execs.seconds, 3),
            "status": audit.status,
            "counts": {
                "execs": execs.execs,
                "failed": execs.failed_execs,
                "argv_leaks": execs.leaking_execs,
                "environ_holders": execs.holding_execs,
            },
            "jobs": [{"id": job.job_id, "name": job.name, "result": job.result} for job in audit.jobs],
            "steps": [step_json(step) for step in audit.steps],
            "sightings": [sighting_json(sighting) for sighting in audit.sightings],
            "leaking_execs": [
                {**exec_json(made, finder), "step": step.index if step else None} for made, step in audit.leaking
            ],
        },
        indent=2,
    )


def render_text(audit: WorkflowAudit) -> str:
    """The report for a person: leaks first, step by step, then where else the value was."""
    leaks = audit.leaks
    heads = {
        "leak": f"LEAK: the value appeared in {len(leaks)} place{'' if len(leaks) == 1 else 's'} where others read it",
        "incomplete": "INCOMPLETE: no leak seen, and not everything ran or could be seen",
        "clean": "clean: the value appeared in no command line, log, name, script or file",
    }
    steps = f"{len(audit.steps)} step{'' if len(audit.steps) == 1 else 's'}"
    followed = ", ".join(canary.name for canary in audit.canaries)
    jobs = f"{len(audit.jobs)} job{'' if len(audit.jobs) == 1 else 's'}"
    seen = f"{jobs}, {steps}, {audit.execs.execs:,} execs, {audit.execs.seconds:.1f} s"
    lines = [
        f"workflow audit: {heads[audit.verdict]}",
        f"  {audit.workflow} ({audit.event_name}), {followed} followed",
        f"  {seen}",
    ]
    lines += [f"  not seen: {gap}" for gap in audit.gaps]
    lines += section("leaks", leaks)
    lines += section(
        "also held by (not leaks by themselves)", [sighting for sighting in audit.sightings if not sighting.leak]
    )
    lines += [f"  note: {note}" for note in audit.notes]
    return "\n".join(lines) + "\n"


def section(title: str, sightings: list[Sighting]) -> list[str]:
    """Sightings under the job and step that they belong to."""
    lines = [f"  {title}:"] if sightings else []
    by_step: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        where = " / ".join(text for text in (sighting.job, sighting.step) if text)
        by_step.setdefault(where or "the run", []).append(sighting)
    rows = 0
    for where, found in by_step.items():
        lines.append(f"    {clipped(where)}")
        for sighting in found:
            rows += 1
            if rows > TEXT_ROWS:
                return [*lines, f"      and {len(sightings) - TEXT_ROWS} more (the JSON report lists all)"]
            text = ": ".join(part for part in (sighting.place, sighting.text) if part)
            named = sighting.surface in {"job name", "step name"}
            times = f" ({sighting.count} times)" if sighting.count > 1 and not named else ""
            kind = "" if sighting.kind == "value" else f" [{sighting.kind}]"
            lines.append(f"      {sighting.surface:<15} {clipped(text)}{kind}{times}".rstrip())
    return lines


def clipped(text: str) -> str:
    flat = text.replace("\n", "\\n").replace("\r", "\\r").replace("\x1b", "\\e")
    return flat if len(flat) <= TEXT_WIDTH else flat[: TEXT_WIDTH - 1] + "…"
