"""Agents that do not want the harness to go on afterwards: it reads the results, cleans up, and launches again.

Every hostile program runs in a pid namespace that ends with its launch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import give

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sandbox_actors import Actor

WALLS = ["landlock", "locked-mounts"]
FILES = 50_000


@pytest.fixture
def instance(actor: Actor) -> Path:
    """An instance with two sessions, of which one is the agent's own."""
    for who in ("mine", "peer"):
        (actor.place / "instance" / "sessions" / who).mkdir(parents=True)
        (actor.place / "instance" / "sessions" / who / "state").write_text(f"{who}\n")
    give(actor.place / "instance", actor.user)
    return actor.place / "instance"


def scope(instance: Path, *more: object) -> list[object]:
    sessions = instance / "sessions"
    return ["--hide", sessions, "--expose", sessions / "mine", *more]


def clean_up(actor: Actor, *paths: Path) -> None:
    """What a harness does: take back its rights and remove everything, as its own user."""
    done = actor.run(["/bin/sh", "-c", 'chmod -R u+rwX "$@" && rm -rf "$@"', "sh", *paths], cwd="/")
    assert done.returncode == 0, done.stderr
    assert not any(path.exists() for path in paths)


# --- rights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wall", WALLS)
def test_after_chmod_0_of_everything_results_are_read_and_removed(actor: Actor, instance: Path, wall: str) -> None:
    home = actor.place / "agent-home"
    home.mkdir()
    give(home, actor.user)
    mine, report = instance / "sessions" / "mine", actor.place / "report.json"
    script = f"""
    echo result > {mine}/result; mkdir -p {home}/deep/er; echo x > {home}/deep/er/file
    chmod -R 0 {mine} {home} . ~ {instance} {actor.place} 2>/dev/null
    chmod 0 {mine}/result {mine} {home} .; exit 3
    """
    options = scope(instance, "--wall", wall, "--home", home, "--workspace", actor.work, "--report", report)
    done = actor.launch(*options, command=["/bin/sh", "-c", script])
    assert done.returncode == 3, done
    assert json.loads(report.read_text())["user"] > 0
    assert (instance / "sessions" / "peer" / "state").read_text() == "peer\n"
    if actor.root:  # as the launcher's own user an agent may also take the rights of what is above
        assert instance.stat().st_mode & 0o700 == 0o700
    taking = "".join(f"chmod u+rwx {path} && " for path in (actor.place, instance, mine, mine / "result"))
    taken = actor.run(["/bin/sh", "-c", f"{taking} cat {mine}/result"], cwd="/")
    assert taken.stdout == "result\n", taken
    clean_up(actor, mine, home, actor.work)


def test_a_state_directory_without_rights_is_one_message_at_the_next_launch(user: Actor) -> None:
    mine = user.hidden / "own"
    assert user.shell(f"chmod 0 {mine}").returncode == 0
    done = user.shell("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"exposed path {mine} is refused" in done.stderr
    assert "this user cannot read it: Permission denied" in done.stderr


# --- descriptors, processes -----------------------------------------------------------------------------------------


def test_an_agent_that_closes_every_descriptor_ends_as_any_other(actor: Actor) -> None:
    script = "import os; os.closerange(0, 1 << 20); os.fork() or os._exit(1); os._exit(7)"
    done = actor.launch(command=[actor.python, "-I", "-S", "-c", script])
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


DAEMON = """
import os, signal, sys, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        while True:
            time.sleep(0.02)
            with open(sys.argv[1], "a") as file:
                file.write(".")
    os._exit(0)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
if sys.argv[2] == "stay":
    os.write(1, b"ready\\n")
    while True:
        time.sleep(1)
"""


@pytest.mark.parametrize("wall", WALLS)
def test_a_daemon_that_ignores_every_signal_ends_with_its_agent(actor: Actor, wall: str) -> None:
    beat = actor.work / "beat"
    done = actor.launch(
        "--wall", wall, "--workspace", actor.work, command=[actor.python, "-I", "-S", "-c", DAEMON, beat, "go"]
    )
    assert done.returncode == 0, done
    assert not grows(beat)


@pytest.mark.parametrize("wall", WALLS)
def test_an_agent_that_ignores_sigterm_ends_with_its_time(actor: Actor, wall: str) -> None:
    beat = actor.work / "beat"
    began = time.monotonic()
    done = actor.launch(
        *["--wall", wall, "--limit", "time=1s", "--workspace", actor.work],
        command=[actor.python, "-I", "-S", "-c", DAEMON, beat, "stay"],
    )
    assert done.returncode == 124, done
    assert time.monotonic() - began < 30
    assert not grows(beat)


def grows(file: Path) -> bool:
    before = file.stat().st_size
    time.sleep(0.3)
    return file.stat().st_size > before


# --- disks ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(root: Actor) -> Iterator[Path]:
    """A file system of 64 MB in memory."""
    disk = root.place / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system of its own")


@needs_root
def test_a_full_disk_costs_the_report_its_last_words_and_the_agent_nothing(root: Actor, small_disk: Path) -> None:
    work = small_disk / "work"
    work.mkdir()
    report = small_disk / "report.json"
    hidden = small_disk / "hidden"
    hidden.write_text("old")
    # The agent waits until its disk is full and what was hidden is another file, so that there is something to add.
    script = f"cat /dev/zero > {work}/fill 2>/dev/null; echo full; read go; exit 5"
    words = root.words("--workspace", work, "--hide", hidden, "--report", report, command=["/bin/sh", "-c", script])
    process = subprocess.Popen(
        words,
        cwd=work,
        env=root.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "full\n"
    shown = report.read_text()
    for number in range(400):  # paths make the last words longer than what is left of the last page
        os.link(hidden, small_disk / f"{number}")
    hidden.unlink()
    os.link(small_disk / "report.json", hidden)
    _, errors = process.communicate("go\n")
    assert process.returncode == 5, errors
    assert "was replaced or removed while the agent ran: what came instead was not hidden" in errors
    document = json.loads(report.read_text())
    assert document["schema"] == json.loads(shown)["schema"]


@needs_root
def test_fifty_thousand_files_are_read_launched_over_and_removed(root: Actor, small_disk: Path) -> None:
    """As many as fit: a file takes a kilobyte of memory."""
    instance = small_disk / "instance"
    mine = instance / "sessions" / "mine"
    mine.mkdir(parents=True)
    script = (
        "import os\n"
        f"for number in range({FILES}):\n"
        f"    os.close(os.open(f'{mine}/{{number}}', os.O_CREAT | os.O_WRONLY, 0))\n"
    )
    done = root.launch(*scope(instance), command=[root.python, "-I", "-S", "-c", script])
    assert done.returncode == 0, done.stderr
    assert sum(1 for _ in mine.iterdir()) == FILES
    began = time.monotonic()
    again = root.launch(*scope(instance), command=["/bin/echo", "again"], quiet=False)
    assert again.stdout == "again\n", again
    assert time.monotonic() - began < 20
    shutil.rmtree(instance)


def test_directories_deeper_than_any_path_stop_no_later_launch(actor: Actor, instance: Path) -> None:
    mine = instance / "sessions" / "mine"
    script = "import os\nfor _ in range(500):\n    os.mkdir('d' * 50)\n    os.chdir('d' * 50)\n"
    dig = [actor.python, "-I", "-S", "-c", f"import os; os.chdir({str(mine)!r})\n{script}"]
    done = actor.launch(*scope(instance), command=dig)
    assert done.returncode == 0, done.stderr
    sessions = instance / "sessions"
    again = actor.launch("--hide", sessions, "--expose", sessions / "peer", command=["/bin/echo", "again"])
    assert again.stdout == "again\n", again
    clean_up(actor, mine)


# --- its own directories --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wall", WALLS)
def test_an_agent_cannot_move_or_replace_its_own_state_directory(actor: Actor, instance: Path, wall: str) -> None:
    mine = instance / "sessions" / "mine"
    script = f"""
    mv {mine} {mine}-moved && echo moved; mv {mine} {actor.work}/moved && echo moved
    rmdir {mine} && echo removed; rm -rf {mine}; mkdir {mine}-other && echo made
    ln -s / {instance}/sessions/link && echo linked; mv {actor.work} {actor.work}-moved && echo moved
    echo gone > {mine}/state && echo its own
    """
    done = actor.launch(*scope(instance, "--wall", wall, "--workspace", actor.work), command=["/bin/sh", "-c", script])
    assert done.stdout == "its own\n", done
    assert sorted(path.name for path in (instance / "sessions").iterdir()) == ["mine", "peer"]
    assert [path.name for path in mine.iterdir()] == ["state"]
    assert (mine / "state").stat().st_uid == actor.user


@pytest.mark.parametrize("wall", WALLS)
def test_a_hidden_file_that_is_replaced_is_told(actor: Actor, wall: str) -> None:
    """Nothing hides it then: its cover went with the file. What hides its directory hides what comes, too."""
    place = actor.place / "shown"
    (place / "closed").mkdir(parents=True)
    for file in (place / "secret", place / "closed" / "secret"):
        file.write_text("old\n")
    give(place, actor.user)
    script = f"echo ready; read go; cat {place}/secret {place}/closed/secret"
    report = actor.place / "report.json"
    hide = ["--hide", place / "secret", "--hide", place / "closed"]
    words = actor.words("--wall", wall, *hide, "--report", report, command=["/bin/sh", "-c", script])
    process = subprocess.Popen(
        [*actor.prefix, *words],
        cwd=actor.work,
        env=actor.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for file in (place / "secret", place / "closed" / "secret"):
        (place / "new").write_text("new\n")
        (place / "new").chmod(0o644)
        (place / "new").rename(file)
    output, errors = process.communicate("go\n")
    assert output == "new\n"
    assert f"sandbox: {place}/secret was replaced or removed while the agent ran" in errors
    assert json.loads(report.read_text())["replaced"] == [f"{place}/secret"]


def test_a_home_that_does_not_exist_is_no_hindrance(actor: Actor) -> None:
    variables = actor.environment(HOME="/no/such/home")
    done = actor.shell('echo "$HOME"; cd; ls ~; echo x > .bashrc', env=variables)
    assert done.stdout == "/no/such/home\n"
    assert not os.path.lexists("/no")
    refused = actor.launch("--home", "/no/such/home", command=["/bin/true"])
    assert refused.returncode == 125
    assert "home path /no/such/home is refused" in refused.stderr


# --- where an instance lies -----------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_an_instance_on_another_file_system(root: Actor, kind: str, wall: str) -> None:
    place = root.place / "mounted"
    layers = [root.place / "layers" / name for name in ("low", "up", "work")]
    for directory in (place, *layers):
        directory.mkdir(parents=True)
    sessions = place / "sessions"
    if kind == "overlay":  # what is hidden and shown lies in the lower layer: it is copied up when it is written
        for who in ("mine", "peer"):
            (layers[0] / "sessions" / who).mkdir(parents=True)
            (layers[0] / "sessions" / who / "state").write_text(f"{who}\n")
    # A mount namespace of its own, on a tmpfs: an overlay does not take another one as its upper layer.
    options = [f"lowerdir={layers[0]}", f"upperdir={layers[1]}/up", f"workdir={layers[1]}/work"]
    mount = f"mount -t {kind} {'-o ' + ','.join(options) if kind == 'overlay' else ''} none {place}"
    report = root.place / "report.json"
    agent = f"""
    ls {sessions}; cat {sessions}/peer/state
    cat {sessions}/mine/state && echo mine >> {sessions}/mine/state && mkdir {sessions}/mine/made
    """
    words = root.words(
        *["--quiet", "--wall", wall, "--hide", sessions, "--expose", sessions / "mine", "--report", report],
        *["--hide", layers[0], "--hide", layers[1]],
        command=["/bin/sh", "-c", agent],
    )
    script = f"""
    set -e
    mount -t tmpfs none {layers[1]}; mkdir {layers[1]}/up {layers[1]}/work; {mount}
    mkdir -p {sessions}/mine {sessions}/peer; echo mine > {sessions}/mine/state; echo peer > {sessions}/peer/state
    "$@" || echo "status $?"
    cat {sessions}/mine/state; stat -c %U {sessions}/mine/made
    """
    done = root.run(["unshare", "--mount", "/bin/sh", "-c", script, "sh", *words])
    assert done.stdout == "mine\nmine\nmine\nroot\n", done
    assert "peer" not in done.stdout
    assert "Permission denied" in done.stderr
    layers_active = {entry["layer"]: entry["state"] for entry in json.loads(report.read_text())["layers"]}
    assert layers_active["mounts"] == "active"
