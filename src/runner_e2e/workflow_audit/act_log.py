"""Reads act's JSON log: which step runs, what it prints, what it hands on, how jobs end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ActLog", "LogLine"]

BEGINS = "⭐ Run "


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line. ``command`` is a workflow command that act carried out (``set-output``), ``value`` its text."""

    message: str
    job: str = ""
    job_id: str = ""
    step: str = ""
    step_id: tuple[str, ...] = ()
    stage: str = ""
    matrix: str = ""
    printed: bool = False
    command: str = ""
    name: str = ""
    value: str = ""
    job_result: str = ""
    level: str = ""


class ActLog:
    """Turns lines into :class:`LogLine`; remembers the step that began last."""

    def __init__(self) -> None:
        self.current = LogLine(message="")

    def read(self, line: str) -> LogLine:
        """One line of standard output; what is not JSON is a plain message of act."""
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            return LogLine(message=line)
        matrix = data.get("matrix")
        found = LogLine(
            message=text(data, "msg"),
            job=text(data, "job").strip(),
            job_id=text(data, "jobID"),
            # A step without a name is called by its script; GitHub shows the first line of it.
            step=text(data, "step").split("\n", 1)[0],
            step_id=tuple(map(str, data.get("stepID") or ())),
            stage=text(data, "stage"),
            matrix=json.dumps(matrix) if matrix else "",
            printed=data.get("raw_output") is True,
            command=text(data, "command"),
            name=text(data, "name"),
            value=text(data, "arg") or text(data, "content"),
            job_result=text(data, "jobResult"),
            level=text(data, "level"),
        )
        if found.message.startswith(BEGINS) and found.step_id:
            self.current = found
        return found


def text(data: Mapping[str, object], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
