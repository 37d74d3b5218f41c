"""The edge of the action's steps: what the library raises becomes annotations and a status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e import gha
from runner_e2e.errors import DefectError, Place, RunnerE2EError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["run_step"]


def run_step(command: str, work: Callable[[], int]) -> int:
    """Runs *work* and returns the step's status; every problem is one annotation, and none shows a traceback.

    An unexpected exception is named by its type and place alone, because its message may hold anything.
    """
    title = f"runner-e2e {command}"
    # The log shows both streams in the order of arrival; a buffer would move what we say behind what others say.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    try:
        return work()
    except RunnerE2EError as error:
        for problem in error.problems:
            lines = (problem.what, problem.why and f"why: {problem.why}", problem.fix and f"fix: {problem.fix}")
            text = "\n".join(filter(None, lines))
            # A place outside the repository has no line in the changes; there the path belongs to the text.
            inside = problem.place is not None and not Path(problem.place.path).is_absolute()
            text = text if inside or not problem.place else f"{problem.place}: {text}"
            print(gha.annotation("error", text, title=title, place=problem.place if inside else None))
        return error.exit_code
    except KeyboardInterrupt:
        print(gha.annotation("error", "cancelled", title=title))
        return 130
    except Exception as error:  # noqa: BLE001 - the last place that can keep a message out of the log
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"defect: {type(error).__name__} at {Place(path=last.filename, line=last.lineno or 0)}"
        print(gha.annotation("error", f"{text}\nfix: report it with this line", title=title))
        return DefectError.exit_code
