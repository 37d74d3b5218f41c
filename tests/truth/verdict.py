"""What execution showed of a case, and the file that keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.truth.case import Case, Verdict

SCHEMA = "runner-e2e.truth/v1"
FoundBy = Literal["bash", "python", "outer", "marker"]


@dataclass(frozen=True, kw_only=True, order=True)
class Witness:
    """A command line that carried the id.

    ``file`` and ``line`` to ``end_line`` (1-based, inclusive) hold the command, as a path in the case's repository;
    ``argv`` has the id replaced by ``{id}``, its case part by ``{case}``, a piece by ``{piece}``. ``found_by`` says
    what named the line: bash's own counter, Python's audit event, the command of a script that started the program
    which started this one (``outer``), or the author's marker.
    """

    file: str
    line: int
    end_line: int
    argv: tuple[str, ...]
    found_by: FoundBy


@dataclass(frozen=True, kw_only=True)
class Truth:
    """``encodings`` are the reversible forms of the id on command lines; they alone do not make a leak.

    ``environments`` are the programs that had the id in their environment, ``script`` says whether the text of a
    script file held it, ``log`` whether the log did. They tell a clean case that handles the id from one that never
    saw it.
    """

    verdict: Verdict
    witnesses: tuple[Witness, ...]
    encodings: tuple[str, ...]
    environments: tuple[str, ...]
    script: bool
    log: bool


def write_truth(case: Case, truth: Truth) -> None:
    """Stores a truth beside its case, bound to the case's present text."""
    whole = {"schema": SCHEMA, "case": case.digest(), **asdict(truth)}
    case.truth_path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def read_truth(case: Case) -> tuple[Truth, str]:
    """The stored truth and the digest of the text that it is about."""
    whole = json.loads(case.truth_path.read_text())
    if whole.pop("schema") != SCHEMA:
        raise ValueError(f"{case.truth_path}: not {SCHEMA}")
    digest = whole.pop("case")
    witnesses = tuple(Witness(**{**entry, "argv": tuple(entry["argv"])}) for entry in whole.pop("witnesses"))
    return Truth(
        verdict=whole["verdict"],
        witnesses=witnesses,
        encodings=tuple(whole["encodings"]),
        environments=tuple(whole["environments"]),
        script=whole["script"],
        log=whole["log"],
    ), digest
