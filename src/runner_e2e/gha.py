"""The CI runner's side: its variables, its file formats, its commands, and the files it leaves on disk.

Only this module reads ``GITHUB_*``, ``RUNNER_*`` and ``INPUT_*``. Functions that make workflow commands return
their text, because only the edge prints. Formats follow the runner's own sources (``FileCommandManager`` and
``ActionCommand`` in actions/runner) and the page "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from runner_e2e.errors import ConfigurationError, DefectError, Place, UsageError
from runner_e2e.existence import exists, is_directory, is_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "INPUT_PREFIX",
    "MAXIMUM_EVENT_BYTES",
    "MAXIMUM_SUMMARY_BYTES",
    "MINIMUM_MASK_LENGTH",
    "RunContexts",
    "annotation",
    "append_summary",
    "blob_address",
    "code_span",
    "commands_stopped",
    "end_group",
    "event_inputs",
    "github_token",
    "group",
    "in_actions",
    "input_variable",
    "masks",
    "read_input",
    "read_list_input",
    "run_contexts",
    "runner_files",
    "temporary_directory",
    "tool_cache",
    "write_outputs",
]

# The action maps each of its inputs to a variable with this prefix: GitHub sets no INPUT_* for a composite action.
INPUT_PREFIX: Final = "RUNNER_E2E_INPUT_"

# GitHub cuts webhook payloads at 25 MB; an event file beyond that is not one.
MAXIMUM_EVENT_BYTES: Final = 25_000_000

# "Job summaries are isolated between steps and each step is restricted to a maximum size of 1MiB."
MAXIMUM_SUMMARY_BYTES: Final = 1024 * 1024

# A shorter mask would turn unrelated text into asterisks and make GitHub drop job outputs that contain it.
MINIMUM_MASK_LENGTH: Final = 4

# A piece of an id is told apart from ordinary words only when it is at least this long.
MINIMUM_PIECE_LENGTH: Final = 8

OUTPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
SUMMARY_CUT: Final = "\n\n_The rest was left out: a step summary holds at most 1 MiB._\n"

# Directories that hold nothing but what the runner writes for a step; act calls its one directory "workflow".
PRIVATE_DIRECTORIES: Final = frozenset({"_github_workflow", "_runner_file_commands", "workflow"})
FILE_COMMANDS: Final = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
STEP_SCRIPT = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.\w+|.+\.sh", re.IGNORECASE | re.DOTALL
)
RUNNER_PROGRAMS: Final = frozenset({"Runner.Worker", "Runner.Listener"})
RUNNER_HOME_FILES: Final = ("_diag", ".credentials", ".credentials_rsaparams")

_SURROGATES = re.compile("[\ud800-\udfff]")

Level = Literal["error", "warning", "notice"]


def in_actions(environ: Mapping[str, str] | None = None) -> bool:
    """Tells whether this process runs in a job of GitHub Actions (or of act, which says the same)."""
    return _environ(environ).get("GITHUB_ACTIONS") == "true"


def read_input(name: str, *, default: str = "", environ: Mapping[str, str] | None = None) -> str:
    """Returns one input of the action without surrounding blanks, or *default* where it is missing or empty."""
    return _environ(environ).get(input_variable(name), "").strip() or default


def input_variable(name: str) -> str:
    """The variable that holds one input of the action."""
    return INPUT_PREFIX + name.upper().replace("-", "_")


def read_list_input(name: str, *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Returns an input that holds names separated by commas, blanks or line ends, in order, each once."""
    return tuple(dict.fromkeys(re.findall(r"[^\s,]+", read_input(name, environ=environ))))


@dataclass(frozen=True, kw_only=True)
class RunContexts:
    """What the job says of its run; a part is empty where the runner does not set it (act leaves several out).

    *api_url* is the root of GitHub's API for this runner.
    """

    repository: str = ""
    repository_id: str = ""
    run_id: str = ""
    run_attempt: str = ""
    event_name: str = ""
    ref: str = ""
    sha: str = ""
    workflow_ref: str = ""
    workflow_sha: str = ""
    actor: str = ""
    actor_id: str = ""
    triggering_actor: str = ""
    job: str = ""
    api_url: str = ""


def run_contexts(environ: Mapping[str, str] | None = None) -> RunContexts:
    """Reads what the job says of its run."""
    variables = _environ(environ)
    return RunContexts(**{each.name: variables.get(f"GITHUB_{each.name.upper()}", "") for each in fields(RunContexts)})


def github_token(environ: Mapping[str, str] | None = None) -> str:
    """The token for GitHub's API: GH_TOKEN, then GITHUB_TOKEN, as GitHub's own command line takes them; or empty."""
    variables = _environ(environ)
    return variables.get("GH_TOKEN", "").strip() or variables.get("GITHUB_TOKEN", "").strip()


def temporary_directory(environ: Mapping[str, str] | None = None) -> Path:
    """The job's temporary directory, outside the workspace. Raises :class:`UsageError` where there is none."""
    value = _environ(environ).get("RUNNER_TEMP", "")
    if not value or not is_directory(Path(value)):
        raise UsageError(
            "RUNNER_TEMP names no directory" if value else "RUNNER_TEMP is not set",
            why="the action keeps its environment there, outside the workspace",
            fix="run it as a step of a job; on a self-hosted runner check the work directory",
        )
    return Path(value)


def blob_address(environ: Mapping[str, str] | None = None) -> str:
    """Web address of the repository's files at the commit of the run; empty outside a job."""
    variables = _environ(environ)
    parts = [variables.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")]
    return "{}/{}/blob/{}".format(*parts) if in_actions(variables) and all(parts) else ""


def tool_cache(environ: Mapping[str, str] | None = None) -> Path | None:
    """The directory of the runner's preinstalled tools, or None."""
    value = _environ(environ).get("RUNNER_TOOL_CACHE", "")
    return Path(value) if value else None


def write_outputs(values: Mapping[str, str], environ: Mapping[str, str] | None = None) -> None:
    """Appends step outputs, each between random delimiters, so that no value can end its own and begin another.

    Does nothing outside a job. Raises :class:`DefectError` for a name that the format cannot carry.
    """
    path = _environ(environ).get("GITHUB_OUTPUT")
    if not path:
        return
    text = []
    for name, value in values.items():
        if not OUTPUT_NAME.fullmatch(name):
            raise DefectError(f"{name!r} is no name of an output")
        delimiter = f"runner-e2e-{_token()}"
        text.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    _append(Path(path), "".join(text), what="step outputs")


def append_summary(
    markdown: str, *, scrub: Callable[[str], str] = str, environ: Mapping[str, str] | None = None
) -> None:
    """Appends *markdown*, after *scrub*, to the step's summary; what would pass the limit of 1 MiB is cut at a line.

    Does nothing outside a job. The runner refuses a larger file as a whole, so cutting keeps what matters most.
    """
    name = _environ(environ).get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    path = Path(name)
    room = MAXIMUM_SUMMARY_BYTES - (path.stat().st_size if is_file(path) else 0)
    text = _plain(scrub(markdown)).rstrip("\n") + "\n"
    encoded = text.encode()
    if len(encoded) > room:
        kept = encoded[: max(0, room - len(SUMMARY_CUT.encode()))]
        text = kept[: kept.rfind(b"\n") + 1].decode() + SUMMARY_CUT
        if len(text.encode()) > room:
            return
    _append(path, text, what="the step summary")


def annotation(
    level: Level, message: str, *, title: str = "", place: Place | None = None, end: Place | None = None
) -> str:
    """Makes the command that shows *message* on the run's page and, with a *place*, at its line in the changes.

    *end* is where the place ends, exclusive. Nothing in any part can end the command or start another.
    """
    parts: dict[str, object] = {"title": title}
    if place:
        parts |= {"file": place.path, "line": place.line or "", "col": place.column or ""}
    if place and end and end.line > place.line:
        # GitHub takes columns only for places on one line.
        parts |= {"endLine": end.line, "col": ""}
    elif place and end and end.column > place.column:
        parts |= {"endLine": end.line, "endColumn": end.column - 1}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in parts.items() if value)
    return f"::{level}{' ' if properties else ''}{properties}::{_data(message)}"


def group(title: str) -> str:
    """Makes the line that opens a foldable part of the log."""
    return f"::group::{_data(title)}"


def end_group() -> str:
    """Makes the line that closes it."""
    return "::endgroup::"


def commands_stopped() -> tuple[str, str]:
    """Makes the two lines between which the runner obeys no command, so that relayed text cannot give any.

    The token is random: text that does not know it cannot switch commands on again.
    """
    token = _token()
    return f"::stop-commands::{token}", f"::{token}::"


def masks(value: str) -> tuple[str, ...]:
    """Makes the commands that hide a confidential *value* in everything logged later.

    A text of several lines is masked as a whole and line by line, because logs are searched by line; a cell id
    (``suite.profile.environment.case``) also by its case, where that is long enough to be told from other words.
    Empty for values shorter than :data:`MINIMUM_MASK_LENGTH`.
    """
    value = value.strip()
    wanted = [value] if "\n" not in value and "\r" not in value else [value, *map(str.strip, value.splitlines())]
    case = value.split(".", 3)[3:]
    if case and len(case[0]) >= MINIMUM_PIECE_LENGTH and len(wanted) == 1:
        wanted.append(case[0])
    return tuple(f"::add-mask::{_data(text)}" for text in dict.fromkeys(wanted) if len(text) >= MINIMUM_MASK_LENGTH)


def code_span(text: str, *, limit: int = 500) -> str:
    """Shows foreign *text* in Markdown, also in a table's cell, as it is: on one line, cut, and without effect."""
    flat = " ".join(_plain(text).split())
    flat = flat if len(flat) <= limit else flat[: limit - 1] + "…"
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"[\\`*_{}\[\]()#+!|~:@$-]", lambda match: f"&#{ord(match[0])};", flat)


def event_inputs(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Reads the inputs of a manual dispatch from the event file; empty for events that have none.

    Inputs of a reusable workflow (``workflow_call``) are not there. Raises :class:`UsageError` where there is no
    event file and :class:`ConfigurationError` for one that is damaged; no message shows anything of its content.
    """
    name = _environ(environ).get("GITHUB_EVENT_PATH", "")
    if not name:
        raise UsageError(
            "GITHUB_EVENT_PATH is not set",
            why="the confidential inputs are read from the event file",
            fix="run the action as a step of a job",
        )
    inputs = _read_event(Path(name)).get("inputs")
    if inputs is None:
        return {}
    if not isinstance(inputs, dict) or not all(isinstance(value, _SCALARS) for value in inputs.values()):
        raise _damaged(name, "its inputs are not a mapping of names to plain values")
    return {key: _input_text(value) for key, value in inputs.items() if value is not None}


def runner_files(environ: Mapping[str, str] | None = None, *, processes: Path = Path("/proc")) -> tuple[Path, ...]:
    """Finds the runner's own files that hold or may hold a run's inputs; to be hidden from agents.

    These are the event file, the step scripts, the files for outputs and environment, the runner's diagnostics and
    its registration. Only existing paths are returned, resolved, sorted, and none below another. Nothing is changed,
    so the step can still write its outputs. Empty outside a job.
    """
    variables = _environ(environ)
    if not in_actions(variables):
        return ()
    found = list(_step_files(variables))
    homes = [*_runner_homes(processes)]
    if variables.get("RUNNER_TEMP"):
        temporary = Path(variables["RUNNER_TEMP"])
        found += _files_in_temporary(temporary)
        homes.append(temporary.parent.parent)
    if variables.get("HOME"):
        homes += [Path(variables["HOME"]), Path(variables["HOME"]) / "actions-runner"]
    found += [home / name for home in homes for name in RUNNER_HOME_FILES]
    return _outermost(path.resolve() for path in found if exists(path))


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _token() -> str:
    """128 random bits from the system, as ``secrets`` takes them; that module loads ten more."""
    return os.urandom(16).hex()


def _data(text: str) -> str:
    """Escapes the data part of a command, as the runner unescapes it."""
    return _plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _plain(text: str) -> str:
    """Text that can be written as UTF-8: undecodable bytes and halves of pairs become replacement characters."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _append(path: Path, text: str, *, what: str) -> None:
    try:
        with path.open("ab") as stream:
            stream.write(_plain(text).encode())
    except OSError as error:
        raise ConfigurationError(
            f"{what} could not be written",
            why=f"{path}: {error.strerror}",
            fix="check that the runner's temporary directory is writable and its disk not full",
        ) from error


_SCALARS = (str, int, float, bool, type(None))


def _input_text(value: object) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def _read_event(path: Path) -> dict[str, object]:
    import json

    try:
        with path.open("rb") as stream:
            content = stream.read(MAXIMUM_EVENT_BYTES + 1)
    except OSError as error:
        raise _damaged(str(path), error.strerror or "it cannot be read") from error
    if len(content) > MAXIMUM_EVENT_BYTES:
        raise _damaged(str(path), f"it is larger than {MAXIMUM_EVENT_BYTES:,} bytes")
    try:
        event = json.loads(content)
    except json.JSONDecodeError as error:
        raise _damaged(str(path), f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except (ValueError, RecursionError):
        raise _damaged(str(path), "it is not JSON in UTF-8") from None
    if not isinstance(event, dict):
        raise _damaged(str(path), "it holds no JSON object")
    return event


def _damaged(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        "the event file is damaged",
        why=why,
        fix="no step before this one may write to it; run the job again",
        place=Place(path=path),
    )


def _step_files(variables: Mapping[str, str]) -> Iterator[Path]:
    """The files that variables name; a directory of the runner's own is taken as a whole, with later files in it."""
    needed = [variables[name] for name in ("GITHUB_WORKSPACE", "RUNNER_TEMP", "GITHUB_ACTION_PATH", "HOME")
              if variables.get(name)]  # fmt: skip
    for name in ("GITHUB_EVENT_PATH", *FILE_COMMANDS):
        if not variables.get(name):
            continue
        path = Path(variables[name])
        private = path.parent.name in PRIVATE_DIRECTORIES
        yield path.parent if private and not any(Path(one).is_relative_to(path.parent) for one in needed) else path


def _files_in_temporary(temporary: Path) -> list[Path]:
    found = [temporary / name for name in sorted(PRIVATE_DIRECTORIES) if name.startswith("_")]
    try:
        found += [path for path in temporary.iterdir() if STEP_SCRIPT.fullmatch(path.name) and is_file(path)]
    except OSError:
        # Unreadable for us is unreadable for the agent, which runs as the same user.
        return found
    return found


def _runner_homes(processes: Path) -> Iterator[Path]:
    """Installation directories of the runner programs above this process (``<home>/bin/Runner.Worker``)."""
    process = os.getppid()
    seen: set[int] = set()
    while process > 0 and process not in seen:
        seen.add(process)
        try:
            program = (processes / str(process) / "exe").readlink()
        except OSError:
            program = Path()
        if program.name in RUNNER_PROGRAMS:
            yield program.parent.parent
        process = _parent(processes / str(process))


def _parent(process: Path) -> int:
    """The parent's id, 0 where it cannot be read. The name in parentheses may hold anything, blanks included."""
    try:
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _outermost(paths: Iterator[Path]) -> tuple[Path, ...]:
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return tuple(kept)
