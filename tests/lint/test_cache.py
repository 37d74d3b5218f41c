"""The cache: never another report than without it, whatever changed, was damaged, or runs at the same time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lint.file_clock import wait_for_the_next_tick

from runner_e2e.errors import UsageError
from runner_e2e.lint import cache as module
from runner_e2e.lint.cache import Cache, default_folder, open_cache, program_signature
from runner_e2e.lint.linter import lint
from runner_e2e.lint.pack import Pack
from runner_e2e.lint.request import Entry, Request
from runner_e2e.lint.result import FileResult, from_data, to_data

if TYPE_CHECKING:
    from runner_e2e.lint.report import Report

ROOT = Path(__file__).parents[2]
LATER = 60.0
"""Files of a test are as new as the lint of it: their age is no matter here."""

WORKFLOW = """\
on:
  workflow_dispatch:
    inputs: {selected-id: {required: true}, other: {required: true}}
permissions: {}
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - uses: ./say
        with: {it: '${{ inputs.selected-id }}'}
      - run: ./run.sh "$IT"; bash more.sh; source lib.sh
        env: {IT: '${{ inputs.other }}', ID: '${{ inputs.selected-id }}'}
  b:
    uses: ./.github/workflows/called.yml
    with: {it: '${{ inputs.selected-id }}'}
"""
CALLED = """\
on: {workflow_call: {inputs: {it: {type: string}}}}
jobs: {c: {runs-on: x, steps: [{run: 'tool "$IT"', env: {IT: '${{ inputs.it }}'}}]}}
"""
ACTION = """\
inputs: {it: {required: true}}
runs:
  using: composite
  steps: [{run: 'tool "$IT"', shell: bash, env: {IT: '${{ inputs.it }}'}}]
"""
FILES = {
    ".github/workflows/w.yml": [
        WORKFLOW,
        WORKFLOW.replace("./say", "./other"),
        WORKFLOW.replace("inputs.other", "inputs.selected-id"),
        f"{WORKFLOW}# runner-e2e: paid\n",
        WORKFLOW.replace("- run", "# runner-e2e: ignore[confidential-argv, secret-argv] reason\n      - run"),
        "a: [",
    ],
    ".github/workflows/called.yml": [CALLED, CALLED.replace("tool", "echo"), CALLED.replace("it:", "other:")],
    "say/action.yml": [ACTION, ACTION.replace("tool", "echo"), ACTION.replace("it:", "that:"), "runs: 1"],
    "say/action.yaml": [ACTION.replace("tool", "gh")],
    "other/action.yml": [ACTION.replace("tool", "make")],
    "run.sh": ['#!/bin/bash\ntool "$1"\n', '#!/bin/bash\ntool "$ID"\n', "#!/bin/bash\necho\n", "\0"],
    "more.sh": ['git "$ID"\n', "# runner-e2e: ignore[secret-argv] reason\ntrue\n"],
    "lib.sh": ['curl "$ID"\n', "run.sh\n"],
    ".github/runner-e2e.yml": [
        "confidential: {inputs: [other]}\n",
        "lint: {rules: {confidential-argv: note}}\n",
        "lint: {rules: {confidential-argv: {ignore: [say/]}}, ignore: [called.yml]}\n",
        "lint: {rules: {nope: off}}\n",
        "lint: {profile: all}\n",
        "lint: [",
    ],
}


def write(root: Path, name: str, text: str | None) -> None:
    path = root / name
    if text is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_text(text)


def repository(root: Path) -> Path:
    (root / ".git").mkdir(parents=True, exist_ok=True)
    for name in (".github/workflows/w.yml", ".github/workflows/called.yml", "say/action.yml", "run.sh"):
        write(root, name, FILES[name][0])
    return root


def opened(folder: Path) -> Cache:
    folder.mkdir(exist_ok=True)
    return Cache(folder, signature="", started=time.time() + LATER)


def same(root: Path, cache: Cache) -> Report:
    """The report with the cache, which must be the one without it."""
    report = lint([], current=root, cache=cache)
    assert report == lint([], current=root)
    return report


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([(name, text) for name, texts in FILES.items() for text in (*texts, None)]),
            st.sampled_from([(name, f"-> {other}") for name in FILES for other in FILES if name != other]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_changes_the_report_is_the_one_without_a_cache(changes: list[tuple[str, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = repository(Path(folder).resolve() / "r")
        same(root, opened(Path(folder) / "c"))
        for name, text in changes:
            if text is not None and text.startswith("-> "):
                write(root, name, None)
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).symlink_to(root / text.removeprefix("-> "))
            else:
                write(root, name, text)
            same(root, opened(Path(folder) / "c"))


def test_nothing_is_analysed_twice(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    first = opened(tmp_path / "c")
    same(root, first)
    assert (first.found, first.written) == (0, 3)
    second = opened(tmp_path / "c")
    assert same(root, second).findings
    assert (second.found, second.written) == (3, 0)


@pytest.mark.parametrize(
    ("name", "text", "again"),
    [
        # What was there and changed; what was looked for and came; what nobody looked at.
        ("run.sh", "#!/bin/bash\necho\n", 1),
        ("more.sh", 'tool "$ID"\n', 1),
        ("say/action.yml", ACTION.replace("tool", "git"), 2),
        (".github/runner-e2e.yml", "lint: {profile: all}\n", 3),
        ("unrelated.sh", "tool\n", 0),
        ("say/action.yaml", ACTION, 1),
    ],
)
def test_only_what_depends_on_a_change_is_analysed_again(tmp_path: Path, name: str, text: str, again: int) -> None:
    root = repository(tmp_path / "r")
    same(root, opened(tmp_path / "c"))
    write(root, name, text)
    cache = opened(tmp_path / "c")
    same(root, cache)
    assert cache.written == again


PAYS = """\
on: {workflow_call: }
jobs: {pay: {runs-on: x, steps: [{run: tool, env: {KEY: '${{ secrets.KEY }}'}}]}}
"""


def test_a_new_file_in_a_folder_that_was_looked_into_counts(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, ".github/runner-e2e.yml", "lint: {provider-secrets: [KEY]}\n")
    write(root, ".github/workflows/called.yml", PAYS)
    for name, text in (
        ("caller.yml", "on: push\njobs: {a: {uses: ./.github/workflows/called.yml, secrets: inherit}}\n"),
        ("caller.yml", "on: push\njobs: {a: {runs-on: x, steps: []}}\n"),
        ("w.yml", None),
        ("other.yaml", "on: push\njobs: {a: {uses: ./.github/workflows/called.yml}}\n"),
    ):
        same(root, opened(tmp_path / "c"))
        write(root, f".github/workflows/{name}", text)
        same(root, opened(tmp_path / "c"))


def test_a_file_that_cannot_be_read_is_not_one_that_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lint says that it cannot be read; without it, that nothing is there."""
    root = repository(tmp_path / "r")
    action = root / "say" / "action.yml"
    allowed = Path.open

    def opens(path: Path, *arguments: object, **named: object) -> object:
        if path == action:
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, *arguments, **named)  # type: ignore[call-overload]

    def digest(pack: Pack, path: str) -> str:
        return "" if path == str(action) else digests(pack, path)

    digests = Pack.digest
    with monkeypatch.context() as refused:
        refused.setattr(Path, "open", opens)
        refused.setattr(Pack, "digest", digest)
        workflow = root / ".github" / "workflows" / "w.yml"
        for _ in range(2):
            cache = opened(tmp_path / "c")
            said = lint([workflow], current=root, cache=cache)
        assert cache.found == 1
    action.unlink()
    assert lint([workflow], current=root, cache=opened(tmp_path / "c")) == lint([workflow], current=root) != said


def test_where_the_catalog_leads_counts(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    catalog = root / ".github" / "runner-e2e.yml"
    (tmp_path / "outside.yml").write_text("lint: {profile: all}\n")
    for target in ("outside.yml", None, "outside.yml", "nowhere", None):
        catalog.unlink(missing_ok=True)
        if target is not None:
            catalog.symlink_to(tmp_path / target)
        report = same(root, opened(tmp_path / "c"))
        assert bool(report.problems) == (target == "outside.yml")


def test_whether_it_is_a_checkout_counts(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    write(root, ".github/workflows/w.yml", WORKFLOW.replace("./say", "./absent/action"))
    for change in ((root / ".git").rmdir, (root / ".git").mkdir):
        same(root, opened(tmp_path / "c"))
        change()
        same(root, opened(tmp_path / "c"))


def test_everything_that_an_analysis_opens_is_in_its_reads(tmp_path: Path) -> None:
    """The interpreter tells of every file that is opened and every folder that is listed."""
    root = repository(tmp_path / "r")
    for name, texts in FILES.items():
        write(root, name, texts[0])
    write(root, ".github/workflows/called.yml", PAYS)
    write(root, ".gitmodules", "[submodule]\n")
    script = textwrap.dedent(
        """\
        import os, sys
        from pathlib import Path
        from runner_e2e.lint.analysis import Analyst
        root, seen = str(Path(sys.argv[1])), set()
        def hook(event, arguments):
            if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(root + "/"):
                seen.add(os.path.relpath(str(arguments[0]), root) + ("" if event == "open" else "/"))
        sys.addaudithook(hook)
        analyst = Analyst(Path(root), time_limit=60)
        opened, read = set(), set()
        for name in sorted(os.listdir(root + "/.github/workflows")):
            seen.clear()
            relative = ".github/workflows/" + name
            result = analyst.result(Path(root, relative), explicit=True)
            opened |= seen
            missed = seen - set(result.reads) - {relative}
            assert not missed, (name, missed)
        assert len(opened) > 6, opened
        print("all")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)],
        env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("all\n", "")


def test_another_folder_with_the_same_content_finds_it(tmp_path: Path) -> None:
    same(repository(tmp_path / "r"), opened(tmp_path / "c"))
    cache = opened(tmp_path / "c")
    same(repository(tmp_path / "elsewhere"), cache)
    assert (cache.found, cache.written) == (3, 0)


def test_how_it_is_linted_is_part_of_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    same(root, opened(tmp_path / "c"))
    cache = opened(tmp_path / "c")
    shown = lint([root], current=tmp_path, cache=cache).findings
    assert {finding.span.path.split("/")[0] for finding in shown} == {"r"}
    lint([], current=root, cache=cache, time_limit=9.0)
    lint([], current=root, cache=cache, label="org/repo@v1:")
    assert cache.found == 0
    cache = Cache(tmp_path / "c", signature="another program", started=time.time() + LATER)
    lint([], current=root, cache=cache)
    assert cache.found == 0


def test_named_files_are_told_from_found_ones(tmp_path: Path) -> None:
    (tmp_path / "values.yml").write_text("a: b\n")
    for _ in range(2):
        assert lint([tmp_path], current=tmp_path, cache=opened(tmp_path / "c")).problems == ()
        (problem,) = lint([tmp_path / "values.yml"], current=tmp_path, cache=opened(tmp_path / "c")).problems
        assert "neither a workflow nor an action" in problem.what


def test_what_changes_during_the_lint_is_not_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    cache = Cache(tmp_path, signature="", started=time.time() - LATER)
    lint([], current=root, cache=cache)
    assert cache.written == 0
    # A file that goes while it is read leaves the time of its folder.
    old = time.time() - 2 * LATER
    entry = Entry(path=root / "run.sh", absolute=str(root / "run.sh"), explicit=False, root=root, shown="run.sh")
    for path in (root / "run.sh", root):
        os.utime(path, (old, old))
    cache.keep(entry, Request(current=root), FileResult(reads=("gone.sh",)))
    assert cache.written == 0


def test_a_link_that_leads_elsewhere_since_the_lint_began_is_a_change(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    link = root / "linked.sh"
    (root / "other.sh").write_text("other\n")
    link.symlink_to("run.sh")
    cache = Cache(tmp_path, signature="", started=time.time() + LATER)
    entry = Entry(path=root / "run.sh", absolute=str(root / "run.sh"), explicit=False, root=root, shown="run.sh")
    cache.keep(entry, Request(current=root), FileResult(reads=("linked.sh",)))
    assert cache.written == 1
    wait_for_the_next_tick(tmp_path)
    (tmp_path / "beginning").touch()
    cache = Cache(tmp_path, signature="", started=(tmp_path / "beginning").stat().st_ctime)
    wait_for_the_next_tick(tmp_path)
    link.unlink()
    link.symlink_to("other.sh")
    cache.keep(entry, Request(current=root), FileResult(reads=("linked.sh",)))
    assert cache.written == 0


def test_an_unfinished_result_is_not_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    cache = opened(tmp_path / "c")
    report = lint([], current=root, cache=cache, time_limit=0.0)
    cut = {finding.span.path for finding in report.findings if "time limit" in finding.message}
    assert ".github/workflows/w.yml" in cut
    assert cache.written == 3 - len(cut)


# --- Damage.


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_damaged_entries_are_ignored_and_replaced(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = repository(Path(folder).resolve() / "r")
        whole = same(root, opened(Path(folder) / "c"))
        for path in entries(Path(folder) / "c"):
            content = bytearray(path.read_bytes())
            kind = data.draw(st.sampled_from(["cut", "flip", "other", "empty"]))
            if kind == "cut":
                content = content[: data.draw(st.integers(0, len(content) - 1))]
            elif kind == "flip":
                content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            else:
                content = bytearray(b"" if kind == "empty" else data.draw(st.binary(max_size=80)))
            path.write_bytes(content)
        cache = opened(Path(folder) / "c")
        assert lint([], current=root, cache=cache) == whole
        assert (cache.found, cache.written) == (0, 3)
        assert lint([], current=root, cache=opened(Path(folder) / "c")) == whole


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"reads": []}', b'{"reads": {"a": 1}}', b'{"reads": {}}', b"[" * 99999]
)
def test_an_entry_of_another_form_is_ignored(tmp_path: Path, body: bytes) -> None:
    import hashlib

    root = repository(tmp_path / "r")
    same(root, opened(tmp_path / "c"))
    for path in entries(tmp_path / "c"):
        path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    same(root, opened(tmp_path / "c"))


def test_an_entry_that_is_a_folder_is_left_alone(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    same(root, opened(tmp_path / "c"))
    for path in entries(tmp_path / "c"):
        path.unlink()
        path.mkdir()
    same(root, opened(tmp_path / "c"))
    assert not [path for path in (tmp_path / "c").iterdir() if path.name.startswith(".")]


def test_results_survive_being_written(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    ignoring = WORKFLOW.replace("inputs.other", "inputs.selected-id").replace(
        "      - run", "      # runner-e2e: ignore[confidential-argv] reason\n      - run"
    )
    write(root, ".github/workflows/w.yml", ignoring)
    seen: list[FileResult] = []

    class Spy(Cache):
        def keep(self, entry: Entry, request: Request, result: FileResult) -> None:
            del entry, request
            seen.append(result)

    lint([], current=root, cache=Spy(tmp_path, signature=""))
    assert any(result.ignored for result in seen)
    assert any(result.ignores for result in seen)
    for result in seen:
        assert from_data(json.loads(json.dumps(to_data(result)))) == replace(result, trace=())


# --- Size, place, and other lints.


def test_the_size_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    now = time.time()
    for number in range(10):
        path = tmp_path / f"{number}.json"
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - number, now - number))
    (tmp_path / "folder").mkdir()
    cache.shrink(1_000)
    assert len(entries(tmp_path)) == 10
    cache.shrink(999)
    assert [path.stem for path in entries(tmp_path)] == [str(number) for number in range(7)]


def test_an_entry_that_is_used_counts_as_new(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    same(root, opened(tmp_path / "c"))
    old = time.time() - 3 * 86_400
    for path in entries(tmp_path / "c"):
        os.utime(path, (old, old))
    same(root, opened(tmp_path / "c"))
    assert all(path.stat().st_mtime > old + 86_400 for path in entries(tmp_path / "c"))


def test_the_folder_follows_xdg() -> None:
    assert default_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/runner-e2e/lint")
    assert default_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/runner-e2e/lint")
    assert default_folder({}) is None


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert open_cache(tmp_path / "file" / "c", chosen=False) is None
    with pytest.raises(UsageError, match="cannot hold the cache"):
        open_cache(tmp_path / "file" / "c", chosen=True)
    made = open_cache(tmp_path / "new" / "c", chosen=True)
    assert made is not None
    assert (tmp_path / "new" / "c").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("mode", "used"), [(0o700, True), (0o755, True), (0o775, False), (0o777, False)])
def test_a_folder_that_others_may_write_to_is_used_only_when_it_is_chosen(
    mode: int, used: bool, tmp_path: Path
) -> None:
    tmp_path.chmod(mode)
    assert (open_cache(tmp_path, chosen=False) is not None) is used
    assert open_cache(tmp_path, chosen=True) is not None


def test_a_folder_of_another_user_is_used_only_when_it_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert open_cache(tmp_path, chosen=False) is None
    assert open_cache(tmp_path, chosen=True) is not None


def test_a_folder_that_goes_away_costs_nothing_but_time(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    cache = opened(tmp_path / "c")
    shutil.rmtree(tmp_path / "c")
    same(root, cache)
    assert cache.written == 0


def test_the_signature_changes_with_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = program_signature()
    assert first == program_signature()
    copy = tmp_path / "runner_e2e"
    for folder in ("lint", "cells"):
        shutil.copytree(ROOT / "src" / "runner_e2e" / folder, copy / folder)
    shutil.copy(ROOT / "src" / "runner_e2e" / "yaml_positions.py", copy)
    monkeypatch.setattr(module, "__file__", str(copy / "lint" / "cache.py"))
    seen = {program_signature()}
    for name in ("lint/shell/words.py", "yaml_positions.py", "cells/catalog.py", "lint/data/actions.json"):
        with (copy / name).open("a") as stream:
            stream.write("\n")
        seen.add(program_signature())
    assert len(seen) == 5


def test_lints_at_the_same_time_share_a_folder(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    for number in range(47):
        write(root, f".github/workflows/x{number}.yml", f"name: {number}\n{CALLED}")
    command = [sys.executable, "-m", "runner_e2e", "lint", "--format", "json", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path / "c")}
    plain = subprocess.run([*command, "--no-cache"], cwd=root, env=environment, capture_output=True, check=False)
    assert plain.returncode == 1
    assert not (tmp_path / "c").exists()
    running = [
        subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in running:
        out, errors = process.communicate()
        assert errors == b""
        assert out == plain.stdout
    # One that began later found entries of the other, and packed them.
    left = Counter(path.suffix for path in (tmp_path / "c" / "runner-e2e" / "lint").iterdir())
    assert left.pop(".pack", 0) <= 1
    assert left == {".json": 50}
