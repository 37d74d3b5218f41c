"""What an agent could leave behind for the launcher, the harness or the next agent to walk into."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import give

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

WALLS = ["landlock", "locked-mounts"]


@pytest.mark.parametrize("wall", WALLS)
def test_no_directory_above_a_cover_can_be_exchanged(actor: Actor, wall: str) -> None:
    """Otherwise the agent puts its own policies and results where the harness and later launches look for them."""
    hidden = actor.work / "target" / "deep" / "output"
    (hidden / "own").mkdir(parents=True)
    (actor.work / "target" / "plain").mkdir()
    give(actor.work, actor.user)
    script = """
    for name in target target/deep; do mv $name $name-moved && echo "moved $name"; done
    mv target/plain target/renamed && echo data > target/deep/new && echo other directories can be renamed
    """
    done = actor.launch(
        "--wall", wall, "--hide", hidden, "--expose", hidden / "own", command=["/bin/sh", "-c", script], cwd=actor.work
    )
    assert done.stdout == "other directories can be renamed\n", done
    assert done.stderr.count("busy") == 2
    assert hidden.is_dir()
    assert (actor.work / "target" / "deep" / "new").stat().st_uid == actor.user


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("identity", [[], ["--keep-user"]])
def test_the_code_of_the_launcher_cannot_be_changed(actor: Actor, wall: str, identity: list[str]) -> None:
    give(actor.source, actor.user)
    code = actor.source / "runner_e2e" / "sandbox" / "command.py"
    script = f"echo >> {code}; touch {actor.source}/json.py; mv {actor.source} {actor.source}-old"
    done = actor.launch("--wall", wall, *identity, command=["/bin/sh", "-c", script])
    assert done.returncode != 0
    assert code.read_bytes()[-2:] != b"\n\n"
    assert [path.name for path in actor.source.iterdir()] == ["runner_e2e"]


def test_the_code_of_the_launcher_is_kept_in_a_workspace_too(actor: Actor) -> None:
    give(actor.source, actor.user)
    script = f"touch {actor.source}/json.py; touch {actor.place}/new && echo the rest is writable"
    done = actor.launch("--workspace", actor.place, command=["/bin/sh", "-c", script], cwd=actor.place)
    assert done.stdout == "the rest is writable\n", done
    assert not (actor.source / "json.py").exists()


# Starts a launcher with a confidential variable and shows, while its agent runs, what others read of both.
HOLDER = """
import json, os, subprocess, sys
words = json.loads(sys.argv[1])
value = "suite.profile.local.a-telling-case"
variables = {**os.environ, "CELL_UNDER_TEST": value, "COPY": "x" + value, "OTHER": "stays"}
launcher = subprocess.Popen(words, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
line = launcher.stdout.readline()
with open(f"/proc/{launcher.pid}/environ") as file:
    shown = file.read()
launcher.communicate("go on\\n")
seen = {"agent": line, "launcher": "telling" in shown, "other": "stays" in shown, "status": launcher.returncode}
print(json.dumps(seen))
"""


def test_the_launcher_keeps_no_confidential_variable_while_the_agent_runs(actor: Actor) -> None:
    policy = actor.work / "policy.json"
    policy.write_text(
        json.dumps(
            {
                "schema": "runner-e2e.sandbox-policy/v1",
                "hide": [str(actor.hidden)],
                "environment": {"drop": ["RUNNER_E2E_*", "CELL_UNDER_TEST", "NOT_SET"]},
            }
        )
    )
    script = 'echo "$CELL_UNDER_TEST$COPY$OTHER"; read go'
    words = actor.words("--quiet", "--policy", policy, command=["/bin/sh", "-c", script])
    done = actor.python_script(HOLDER, json.dumps(words))
    assert json.loads(done.stdout) == {"agent": "stays\n", "launcher": False, "other": True, "status": 0}, done


def test_a_report_is_not_written_through_a_link(actor: Actor) -> None:
    """An agent that may write where the report goes must not choose what its launcher overwrites."""
    precious = actor.place / "precious"
    precious.write_text("kept")
    report = actor.work / "report.json"
    report.symlink_to(precious)
    done = actor.launch("--report", report, command=["/bin/echo", "ran"])
    assert (done.returncode, done.stdout) == (125, "")
    assert "it is a symbolic link" in done.stderr
    report.unlink()
    done = actor.launch("--report", report, command=["/bin/sh", "-c", f"rm {report}; ln -s {precious} {report}"])
    assert done.returncode == 0
    assert precious.read_text() == "kept"


@pytest.mark.parametrize("name", ["gone (deleted)", "moved"])
def test_a_hidden_file_as_standard_input_cannot_be_opened_again(actor: Actor, name: str) -> None:
    """The kernel marks removed files by the end of their name, which a file may have of its own."""
    file = actor.place / name
    file.write_text("canary\n")
    give(actor.place, actor.user)
    with file.open() as stream:
        if name == "moved":
            file = file.rename(actor.place / "here")
        script = "readlink /proc/self/fd/0; cat"
        done = actor.launch("--hide", file, command=["/bin/sh", "-c", script], stdin=stream)
    assert done.stdout.startswith("pipe:"), done
    assert done.stdout.endswith("canary\n")


@pytest.mark.parametrize("path", ["/", "/proc", "/dev", "/dev/null"])
def test_what_every_program_needs_cannot_be_hidden(user: Actor, path: str) -> None:
    done = user.launch("--hide", path, command=["/bin/true"])
    assert done.returncode == 125
    assert f"{path} cannot be hidden" in done.stderr


def test_where_nothing_can_be_mounted_the_report_names_what_is_not_read_only(user: Actor) -> None:
    kept = user.place / "kept"
    kept.mkdir()
    give(kept, user.user)
    words = ["--hide", user.hidden, "--read-only", kept]
    script = ["/bin/sh", "-c", f"touch {kept}/new"]
    done = user.launch(*words, "--without", "mounts", command=script, quiet=False)
    assert done.returncode == 0
    assert f"limit: {kept} can be changed: read-only needs mounts" in done.stderr
    done = user.launch(*words, command=script, quiet=False)
    assert done.returncode != 0
    assert "can be changed: read-only" not in done.stderr


# With mounts of its own an agent leaves the root that the covers are in, which frees them to be renamed, not removed.
LEAVE = """
import ctypes, os, sys
libc, (place, name) = ctypes.CDLL(None), sys.argv[1:]
libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)
os.mkdir("/mnt/old")
place = os.open(place, os.O_DIRECTORY)
libc.syscall(155, b"/mnt", b"/mnt/old")
print(libc.umount2(b"/old", 2))
os.rename(name, "moved", src_dir_fd=place, dst_dir_fd=place)
try:
    print(os.read(os.open("moved/secret", os.O_RDONLY, dir_fd=place), 9))
except OSError:
    print("hidden")
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of pivot_root is that of x86-64")
def test_behind_locked_mounts_what_is_renamed_stays_covered_and_the_report_says_it(actor: Actor) -> None:
    give(actor.place, actor.user)
    command = ["unshare", "-Urm", actor.python, "-c", LEAVE, actor.place, "hidden"]
    words = ["--wall", "locked-mounts", "--hide", actor.hidden, "--workspace", actor.place]
    done = actor.launch(*words, command=command, cwd=actor.place, quiet=False)
    assert done.stdout == "0\nhidden\n", done
    assert (actor.place / "moved" / "secret").read_text() == "canary\n"
    assert "limit: through mounts of its own the agent can rename hidden paths" in done.stderr
