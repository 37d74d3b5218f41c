"""A child checks what its parent runs: real parents in both forms, and every kind of impostor."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.acceptance.artifacts.conftest import sha256

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.acceptance.artifacts.conftest import Host

CHECK = """import sys
sys.path.insert(0, sys.argv.pop(1))
from runner_e2e.artifacts.parent_check import check_parent
from runner_e2e.errors import RunnerE2EError
digest, runtime, form = sys.argv[1:4]
try:
    found = check_parent(sha256=digest, runtime=runtime or None, form=form or None)
except RunnerE2EError as error:
    print(error)
    sys.exit(error.exit_code)
print(found.form)
"""


def child(host: Host, digest: str, *, runtime: Path | str = "", form: str = "") -> list[object]:
    """The words of a child that checks its parent."""
    return [host.actor.python, "-I", "-S", "-c", CHECK, host.actor.source, digest, runtime, form]


def parent(host: Host, tool: Path, words: list[object]) -> subprocess.CompletedProcess[str]:
    """A parent that was started the ordinary way, from a file."""
    return host.actor.run([tool, "run", *words])


def test_a_parent_from_a_snapshot(host: Host) -> None:
    tool = host.content() / "tool"
    digest = sha256(tool)
    ran = host.launch(tool, "run", *child(host, digest))
    assert (ran.status, ran.out) == (0, "sealed-snapshot\n"), ran.log
    assert host.launch(tool, "run", *child(host, digest, form="file")).status == 1
    wrong = host.launch(tool, "run", *child(host, "1" * 64))
    assert wrong.status == 1
    assert f"the SHA-256 of its executable is {digest}" in wrong.out


def test_a_parent_in_place(host: Host, kind: str) -> None:
    rom = host.rom(kind)
    tool = rom / "tool"
    ran = host.launch(tool, "run", *child(host, sha256(tool)), root=rom)
    assert (ran.status, ran.out) == (0, "file\n"), (ran.out, ran.log)
    ran = host.launch(tool, "run", *child(host, sha256(tool), runtime=tool), root=rom)
    assert ran.status == 0, ran.out
    assert host.launch(tool, "run", *child(host, "1" * 64), root=rom).status == 1


def test_a_parent_from_a_file(host: Host) -> None:
    tool = host.content() / "tool"
    assert parent(host, tool, child(host, sha256(tool))).stdout == "file\n"
    assert parent(host, tool, child(host, sha256(tool), runtime=tool)).stdout == "file\n"


def test_a_file_with_another_name_is_refused(host: Host) -> None:
    tool = host.content() / "tool"
    (tool.parent / "other-name").hardlink_to(tool)
    ran = parent(host, tool, child(host, sha256(tool)))
    assert ran.returncode == 1
    assert "its executable has more than one name" in ran.stdout


def test_a_copy_of_the_runtime_is_another_file(host: Host) -> None:
    tool = host.content() / "tool"
    shutil.copy(tool, tool.parent / "copy")
    ran = parent(host, tool, child(host, sha256(tool), runtime=tool.parent / "copy"))
    assert ran.returncode == 1
    assert "is another file than" in ran.stdout


def test_a_removed_file_is_refused(host: Host) -> None:
    tool = host.content() / "tool"
    tool.parent.chmod(0o777)
    digest = sha256(tool)
    script = 'rm "$1"; shift; exec "$@"'
    words = ["/bin/sh", "-c", script, "sh", tool, *child(host, digest)]
    ran = parent(host, tool, words)
    assert ran.returncode == 1
    assert "was removed, or is a memory file without all seals" in ran.stdout


def test_a_file_that_is_called_like_a_memory_file_is_a_file(host: Host) -> None:
    tool = host.content() / "tool"
    namesake = host.folder("content") / "memfd:tool (deleted)"
    shutil.copy(tool, namesake)
    ran = parent(host, namesake, child(host, sha256(tool), form="sealed-snapshot"))
    assert ran.returncode == 1
    assert "it runs from a file, not from a sealed snapshot" in ran.stdout


@pytest.mark.parametrize("seals", [0, 1 | 2 | 4, 2 | 4 | 8])
def test_a_memory_file_without_all_seals_is_refused(host: Host, seals: int) -> None:
    tool = host.content() / "tool"
    script = (
        "import fcntl, os\n"
        "path, seals, *words = sys.argv[1:]\n"
        "memory = os.memfd_create('tool', 2 | 16)\n"
        "os.write(memory, open(path, 'rb').read())\n"
        "fcntl.fcntl(memory, fcntl.F_ADD_SEALS, int(seals)) if int(seals) else None\n"
        "memory = os.open(f'/proc/self/fd/{memory}', os.O_RDONLY)\n"
        "os.execve(f'/proc/self/fd/{memory}', ['tool', 'run', *words], {})\n"
    )
    ran = host.actor.python_script(script, tool, seals, *child(host, sha256(tool)))
    assert ran.returncode == 1, ran.stderr
    assert "without all seals" in ran.stdout


def test_the_handed_descriptor_must_be_the_parents_executable(host: Host) -> None:
    content = host.content()
    shutil.copy(host.probes / "static", content / "static")
    words = child(host, sha256(content / "tool"), runtime=content / "static")
    ran = host.launch(content / "tool", "run", *words)
    assert ran.status == 1
    assert "is another file than" in ran.out


def test_a_process_that_is_not_there_cannot_be_asked(host: Host) -> None:
    script = (
        "from runner_e2e.artifacts.parent_check import check_parent\n"
        "from runner_e2e.errors import LaunchError\n"
        "try:\n    check_parent(sha256='1' * 64, pid=2**22 - 1)\n"
        "except LaunchError as error:\n    print(error)\n"
    )
    assert "cannot be examined" in host.actor.python_script(script).stdout


def test_the_process_of_another_user_cannot_be_asked(user_host: Host) -> None:
    script = (
        "from runner_e2e.artifacts.parent_check import check_parent\n"
        "from runner_e2e.errors import LaunchError\n"
        "try:\n    check_parent(sha256='1' * 64, pid=1)\n"
        "except LaunchError as error:\n    print(error)\n"
    )
    assert "Permission denied" in user_host.actor.python_script(script).stdout
