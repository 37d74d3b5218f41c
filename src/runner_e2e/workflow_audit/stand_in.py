"""What the stand-ins for checkout, the artifact actions and cache do. Runs alone inside an audited workflow.

``python3 -I -S stand_in.py VERB`` with its inputs in ``STAND_IN_*`` variables, like the inputs of a JavaScript
action: a name with a canary in it never comes to a command line through us. Outputs go to descriptor 3. Beside this
file stands ``stage``, which names the directory of the audit. Standard library only.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

OUTPUTS = 3


class StandInError(Exception):
    """Ends the step with this text."""


def given(name: str) -> str:
    return os.environ.get(f"STAND_IN_{name}", "").strip()


def stage() -> Path:
    return Path(Path(__file__).with_name("stage").read_text(encoding="utf-8").strip())


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def put_output(name: str, value: object) -> None:
    os.write(OUTPUTS, f"{name}={value}\n".encode())


def workspace() -> Path:
    return Path(given("WORKSPACE"))


def git(*words: str, directory: Path) -> str:
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StandInError(done.stderr.strip() or f"git ended with {done.returncode}")
    return done.stdout.strip()


def checkout() -> None:
    """Clones the copy of the repository, at the ref if the copy has it."""
    source = stage() / "repository"
    slug = (stage() / "repository-name").read_text(encoding="utf-8").strip()
    wanted = given("REPOSITORY")
    if wanted and wanted.lower() != slug.lower():
        raise StandInError(f"an audit runs offline and has {slug} alone: it cannot check out another repository")
    target = workspace() / given("PATH")
    target.mkdir(parents=True, exist_ok=True)
    git("init", "-q", directory=target)
    git("fetch", "-q", "--no-tags", str(source), "+refs/heads/*:refs/remotes/origin/*", "HEAD", directory=target)
    ref = given("REF")
    commit = git("rev-parse", "FETCH_HEAD", directory=target)
    if ref:
        # As the real action, which gives git the ref as an argument.
        found = subprocess.run(
            ["git", "rev-parse", "--verify", "-q", f"refs/remotes/origin/{ref.removeprefix('refs/heads/')}^{{commit}}"],
            cwd=target,
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode:
            say(f"::warning::The offline copy has no ref {ref}; its only commit is checked out.")
        commit = found.stdout.strip() or commit
    git("checkout", "-q", "--force", "--detach", commit, directory=target)
    put_output("ref", ref)
    put_output("commit", commit)


def records_file() -> Path:
    directory = stage() / "artifacts"
    directory.mkdir(exist_ok=True)
    return directory / "records.jsonl"


def records(kind: str) -> list[dict[str, object]]:
    path = records_file()
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def keep_record(**fields: object) -> None:
    with records_file().open("a", encoding="utf-8") as file:
        file.write(json.dumps({**fields, "job": given("JOB")}) + "\n")


def matched(patterns: str, *, hidden: bool) -> dict[Path, Path]:
    """Files that the patterns name -> where each stands below the least common ancestor, as upload-artifact has it."""
    found: dict[Path, None] = {}
    for line in patterns.splitlines():
        pattern = line.strip()
        excluded = pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        if not pattern:
            continue
        pattern = pattern.replace("~", str(Path.home()), 1) if pattern.startswith("~") else pattern
        # glob matches absolute patterns too, which Path.glob refuses.
        names = glob.glob(str(workspace() / pattern), recursive=True, include_hidden=True)  # noqa: PTH207
        paths = [Path(name) for name in names]
        files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
        for file in files:
            if excluded:
                found.pop(file, None)
            elif file.is_file():
                found[file] = None
    kept = [file for file in found if hidden or not is_hidden(file)]
    if not kept:
        return {}
    common = Path(os.path.commonpath([file.parent for file in kept]))
    return {file: file.relative_to(common) for file in kept}


def is_hidden(file: Path) -> bool:
    parts = file.relative_to(workspace()).parts if file.is_relative_to(workspace()) else file.parts[-1:]
    return any(part.startswith(".") for part in parts)


def upload() -> None:
    """Keeps the files under a number, so that no path holds the name."""
    name = given("NAME") or "artifact"
    files = matched(given("PATH"), hidden=given("HIDDEN") == "true")
    if not files:
        text = f"No files were found with the path: {given('PATH')}."
        if given("MISSING") == "error":
            raise StandInError(text)
        if given("MISSING") != "ignore":
            say(f"::warning::{text} No artifact is kept.")
        return
    kept = [record for record in records("artifact") if record["name"] == name]
    if kept and given("OVERWRITE") != "true":
        raise StandInError(f"there is already an artifact named {name}")
    number = len(records("artifact")) + 1
    digest = hashlib.sha256()
    for file, place in files.items():
        target = records_file().parent / str(number) / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        digest.update(target.read_bytes())
    keep_record(kind="artifact", name=name, number=number)
    say(f"Artifact {name} has {len(files)} files.")
    put_output("artifact-id", number)
    put_output("artifact-url", f"https://github.com/artifacts/{number}")
    put_output("artifact-digest", digest.hexdigest())


def download() -> None:
    """Copies artifacts back: one by name, or those of a pattern, or all."""
    latest = {str(record["name"]): record for record in records("artifact")}
    name, pattern = given("NAME"), given("PATTERN") or "*"
    chosen = [name] if name else [each for each in latest if fnmatch.fnmatchcase(each, pattern)]
    if name and name not in latest:
        raise StandInError(f"there is no artifact named {name}")
    target = workspace() / given("PATH")
    for each in chosen:
        directory = target if name or given("MERGE") == "true" else target / each
        shutil.copytree(records_file().parent / str(latest[each]["number"]), directory, dirs_exist_ok=True)
    put_output("download-path", target)


def cache() -> None:
    """Records the key; a cache that is never hit."""
    keep_record(kind="cache", name="\n".join(text for text in (given("KEY"), given("RESTORE")) if text))
    say("Cache not found.")


VERBS = {"checkout": checkout, "upload": upload, "download": download, "cache": cache}


def main(arguments: list[str]) -> int:
    """Runs one verb; 1 and a message when it cannot."""
    try:
        VERBS[arguments[0]]()
    except (StandInError, OSError) as error:
        say(f"::error::{error}")
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)
