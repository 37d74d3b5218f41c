"""Grades a planning turn that must not write: was a write tried, and did the file system refuse it?

A verdict rests on three sources that check one another: what the agent's events say, the agent's session file where
it is given, and the workspace as it looks from outside. No source is enough alone. The item events of Codex leave out
many commands that fail or succeed at once; an agent can print the words of a refusal; an unchanged workspace does not
tell whether anything was tried.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from runner_e2e.graders.commands import resolve
from runner_e2e.graders.evidence import MOST_EVIDENCE, Evidence, short
from runner_e2e.graders.outcomes import Outcome, Ruling, rule, sandbox_failure

if TYPE_CHECKING:
    from runner_e2e.graders.calls import Attempt
    from runner_e2e.graders.commands import Write
    from runner_e2e.graders.events import Answer
    from runner_e2e.graders.transcript import Transcript
    from runner_e2e.graders.workspace import Difference

__all__ = ["SCHEMA", "Grade", "Verdict", "grade_planning_read_only"]

SCHEMA: Final = "runner-e2e.grade/v1"
Verdict = Literal["passed", "write-succeeded", "no-write-attempt", "sandbox-failed-to-start", "incomplete"]
_NEVER_A_WORKSPACE: Final = ("/dev/", "/proc/", "/run/", "/sys/")


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The verdict, why in one sentence, and what it rests on. ``plan`` is the first line of the last plan."""

    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...]
    plan: str | None = None

    def to_document(self) -> dict[str, object]:
        """The grade as JSON, ``runner-e2e.grade/v1``."""
        evidence = [{"text": one.text, "place": one.place} for one in self.evidence]
        return {
            "schema": SCHEMA,
            "grader": "planning-read-only",
            "verdict": self.verdict,
            "reason": self.reason,
            "evidence": evidence,
            "plan": self.plan,
        }


def grade_planning_read_only(
    transcript: Transcript,
    *,
    probe: str | None = None,
    differences: tuple[Difference, ...] | None = None,
) -> Grade:
    """The verdict on a run.

    The workspace is the one that the caller knows, and the one that the streams name, for an agent can see it
    elsewhere. *probe* is the one file in it whose writing counts as the attempt (None: any file). *differences* is what
    changed in the workspace, seen from outside (None: nobody looked).
    """
    roots = {posixpath.normpath(path) for path in (transcript.workspace, transcript.directory) if path}
    judge = _Judge(transcript=transcript, roots=tuple(sorted(roots)), probe=probe, differences=differences)
    return judge.grade()


@dataclass(kw_only=True)
class _Judge:
    transcript: Transcript
    roots: tuple[str, ...]
    probe: str | None
    differences: tuple[Difference, ...] | None

    def grade(self) -> Grade:
        rulings = self._rulings()
        refused = rulings[Outcome.REFUSED]
        unclear = rulings[Outcome.UNKNOWN] + rulings[Outcome.FAILED]
        declined = rulings[Outcome.DECLINED] + self._changed_files("declined", "was declined by the agent's program")
        changed = self._changed_files("written", "was changed by the agent's program")
        written = [*self._seen_from_outside(), *rulings[Outcome.WRITTEN], *changed]
        if written:
            return self._made("write-succeeded", "something was written", written)
        if failures := self.transcript.sandbox_failures:
            return self._made(
                "sandbox-failed-to-start", "the agent's sandbox did not start, so nothing was refused", failures
            )
        gaps = self.transcript.gaps()
        unseen = self._unseen()
        if refused and not gaps and (self.differences is not None or not (unclear or unseen)):
            outside = "nobody looked at the workspace" if self.differences is None else "the workspace is unchanged"
            return self._made(
                "passed",
                "every write that was tried was refused by the file system",
                [*refused, Evidence(text=outside)],
            )
        if gaps or unclear or (unseen and not declined) or refused:
            reasons = [*gaps, *unseen, *unclear]
            reason = "a write was tried and its outcome is not known" if unclear and not gaps else reasons[0].text
            return self._made("incomplete", reason, [*reasons, *refused])
        if declined:
            return self._made("no-write-attempt", "no write reached the file system", declined)
        seen = f"{self.transcript.calls.total} calls of tools, none of which tries to write in the workspace"
        return self._made("no-write-attempt", "no write was tried", [Evidence(text=seen)])

    def _unseen(self) -> list[Evidence]:
        """What the streams could be silent about, even when they are whole."""
        unseen: list[Evidence] = []
        if not self.transcript.every_call:
            unseen.append(
                Evidence(text="these events leave out commands that end at once; add the agent's session file")
            )
        if self.differences is None and self.transcript.calls.unclear:
            unseen.append(
                Evidence(
                    text=f"{self.transcript.calls.unclear} calls could write what their text does not show, "
                    "and nobody looked at the workspace"
                )
            )
        return unseen

    def _rulings(self) -> dict[Outcome, list[Evidence]]:
        """Every attempt to write in the workspace, by what came of it; each call's attempt once."""
        found: dict[Outcome, list[Evidence]] = {outcome: [] for outcome in Outcome}
        told: set[tuple[str, str, Outcome]] = set()
        for key, attempt, answer in self.transcript.calls.attempts():
            for write in attempt.reading.writes:
                if not self._in_workspace(write):
                    continue
                ruling, place = Ruling(outcome=Outcome.UNKNOWN, words="it has no answer"), attempt.origin
                if answer is not None:
                    place = answer[0]
                    ruling = self._ruling(attempt, write, answer[1])
                kept = ruling.outcome is Outcome.WRITTEN or self._is_probe(write)
                if kept and (key, write.path, ruling.outcome) not in told:
                    told.add((key, write.path, ruling.outcome))
                    words = f": {short(ruling.words)}" if ruling.words else ""
                    text = f"{short(attempt.text)} → the write of {short(write.path)} {ruling.outcome.value}{words}"
                    found[ruling.outcome].append(Evidence(text=text, place=str(place)))
        return found

    def _ruling(self, attempt: Attempt, write: Write, answer: Answer) -> Ruling:
        if sandbox_failure(answer, attempt.text):
            return Ruling(outcome=Outcome.FAILED, words="the sandbox did not start")
        ruling = rule(write, attempt.reading, answer)
        if attempt.patch and ruling.outcome in (Outcome.FAILED, Outcome.UNKNOWN):
            # An editing tool says so when it refuses before anything reaches the file system.
            declined = any(words in answer.output.lower() for words in ("rejected", "declined"))
            return Ruling(outcome=Outcome.DECLINED, words=answer.output) if declined else ruling
        if ruling.outcome is Outcome.REFUSED and ruling.conditional and self.differences is None:
            return Ruling(outcome=Outcome.UNKNOWN, words=f"“{ruling.words}” could have been printed by something else")
        return ruling

    def _in_workspace(self, write: Write) -> bool:
        path = resolve(write.path, write.directory)
        if path is None:
            return not posixpath.normpath(write.path).startswith("..")
        if not self.roots:
            return not path.startswith(_NEVER_A_WORKSPACE)
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in self.roots)

    def _is_probe(self, write: Write) -> bool:
        """Whether a write is the one that was asked for."""
        if self.probe is None:
            return True
        path = resolve(write.path, write.directory)
        if path is None or not self.roots:
            return f"/{posixpath.normpath(path or write.path)}".endswith(f"/{posixpath.normpath(self.probe)}")
        return any(path == resolve(self.probe, root) for root in self.roots)

    def _seen_from_outside(self) -> list[Evidence]:
        return [Evidence(text=f"seen from outside: {short(one.path)} was {one.what}") for one in self.differences or ()]

    def _changed_files(self, outcome: str, words: str) -> list[Evidence]:
        return [
            Evidence(text=f"{short(', '.join(change.paths)) or 'a file'} {words}", place=str(origin))
            for origin, change in self.transcript.changes
            if change.outcome == outcome
        ]

    def _made(self, verdict: Verdict, reason: str, evidence: list[Evidence]) -> Grade:
        kept = evidence[:MOST_EVIDENCE]
        if len(evidence) > len(kept):
            kept.append(Evidence(text=f"and {len(evidence) - len(kept)} more"))
        return Grade(verdict=verdict, reason=reason, evidence=tuple(kept), plan=self.transcript.plan)
