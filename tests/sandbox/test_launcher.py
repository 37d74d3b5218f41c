"""Launches of real programs, as root and as an ordinary user, by their own process and by a fork server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import EXPECTED, SERVED, Actor, actors, make_actor

if TYPE_CHECKING:
    from collections.abc import Iterator

# Put before a launch: seccomp refuses system calls (number -> errno), as an old or a guarded kernel does.
REFUSING = """
import os, struct, sys
from runner_e2e import kernel

def refuse(calls):
    # struct sock_filter, see linux/filter.h
    words = [struct.pack("=HBBI", 0x20, 0, 0, 0)]
    for number, error in calls.items():
        words.append(struct.pack("=HBBI", 0x15, 0, 1, number))
        words.append(struct.pack("=HBBI", 0x06, 0, 0, 0x00050000 | error))
    words.append(struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    kernel.forbid_new_privileges()
    kernel.install_filter(b"".join(words))

def launch():
    from runner_e2e.sandbox.command import main
    sys.exit(main(sys.argv[1:]))
"""
X86_64 = os.uname().machine == "x86_64"


@pytest.fixture(params=[name + way for name in actors() for way in ("", SERVED, SERVED + EXPECTED)])
def actor(request: pytest.FixtureRequest) -> Iterator[Actor]:
    """A user, and the way its launches are made."""
    yield from make_actor(request.param)


@pytest.fixture(params=actors())
def alone(request: pytest.FixtureRequest) -> Iterator[Actor]:
    """A user whose launches are made in a way that the test chooses."""
    yield from make_actor(request.param)


def usual(actor: Actor) -> list[object]:
    return ["--hide", actor.hidden, "--expose", actor.hidden / "own"]


def refusing(actor: Actor, calls: dict[int, int], *options: object, script: str) -> subprocess.CompletedProcess[str]:
    code = f"{REFUSING}\nrefuse({calls})\nlaunch()\n"
    return actor.python_script(code, *options, *usual(actor), "--", "/bin/sh", "-c", script)


def test_a_directory_that_is_gone(actor: Actor) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = actor.run(["/bin/sh", "-c", script, "sh", *actor.words(command=["/bin/true"])])
    assert done.returncode == 125
    assert done.stderr.startswith("agent_sandbox: the working directory is gone\n  why: ")


# --- statuses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
    ],
)
def test_the_status_of_the_command_is_passed_on(actor: Actor, script: str, status: int) -> None:
    assert actor.shell(script).returncode == status


def test_a_missing_command_is_127_and_one_that_cannot_run_126(actor: Actor) -> None:
    plain = actor.work / "plain"
    plain.write_text("no program\n")
    noexec = actor.work / "noexec"
    noexec.write_text("no program\n")
    noexec.chmod(0o755)
    orphan = actor.work / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    for command, status, words in (
        (["no-such-command"], 127, "command not found"),
        (["/no/such/command"], 127, "command not found"),
        ([orphan], 127, "interpreter"),
        ([plain], 126, "Permission denied"),
        ([noexec], 126, "neither a program nor a script"),
        ([actor.work], 126, "Permission denied"),
        ([actor.hidden / "program"], 127, "command not found"),
    ):
        done = actor.launch(*usual(actor), command=command)
        assert (done.returncode, done.stdout) == (status, ""), command
        assert words in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--hide", "relative"], "not an absolute path"),
        (["--hide", "/no/such/path"], "does not exist"),
        (["--hid", "/tmp"], "unknown option --hid"),
        (["--hide"], "--hide has no value"),
        (["--require", "everything"], "unknown layer everything"),
        (["--without", "wall"], "cannot be switched off"),
        (["--wall", "paper"], "unknown wall paper"),
        (["--policy", "/no/such/file"], "cannot be read"),
        (["--layout", "no-such-layout"], "there is no layout"),
        (["--state-dir", "/x"], "without one"),
        (["--home", "/no/such/home"], "home path /no/such/home is refused"),
        (["--workspace", "/etc/passwd"], "not a directory"),
        (["--share", "/no/such"], "shared path /no/such is refused"),
    ],
)
def test_bad_options_are_125_with_one_message(user: Actor, options: list[str], words: str) -> None:
    done = user.launch(*options, command=["/bin/echo", "ran"])
    assert (done.returncode, done.stdout) == (125, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "fix: " in done.stderr


def test_no_command_is_125(user: Actor) -> None:
    assert user.run(user.words(command=[])).returncode == 125


def test_bad_exposures_are_refused_before_anything_starts(actor: Actor) -> None:
    (actor.hidden / "loop").symlink_to("loop")
    (actor.hidden / "dangling").symlink_to("nowhere")
    (actor.hidden / "out").symlink_to("/etc")
    (actor.hidden / "other" / "in").symlink_to("../own")
    for exposure, words in (
        (actor.hidden / "none", "does not exist"),
        (actor.work, "outside every hidden path"),
        (actor.hidden, "would reveal"),
        (actor.place, "would reveal"),
        (actor.hidden / "loop", "circle"),
        (actor.hidden / "dangling", "leads nowhere"),
        (actor.hidden / "out", "outside every hidden path"),
        (actor.hidden / "other" / "in", "symbolic link"),
    ):
        done = actor.launch("--hide", actor.hidden, "--expose", exposure, command=["/bin/touch", actor.work / "ran"])
        assert done.returncode == 125, exposure
        assert words in done.stderr
        assert str(exposure) in done.stderr
        assert not (actor.work / "ran").exists()


def test_an_unreadable_exposure_is_refused(user: Actor) -> None:
    (user.hidden / "own").chmod(0)
    done = user.shell("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "cannot read it" in done.stderr


# --- what is seen -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wall", ["landlock", "locked-mounts"])
def test_hidden_is_hidden_and_the_own_entry_is_usable(actor: Actor, wall: str) -> None:
    hidden = actor.hidden
    done = actor.shell(
        f"cat {hidden}/secret; ls {hidden}; ls {hidden}/other; stat {hidden}/secret;"
        f"cat {hidden}/own/state; echo new > {hidden}/own/new; ls {actor.place}",
        "--wall",
        wall,
    )
    assert "canary" not in done.stdout
    assert done.stdout.splitlines() == ["own", *sorted(path.name for path in actor.place.iterdir())]
    assert (hidden / "own" / "new").read_text() == "new\n"
    assert (hidden / "own" / "new").stat().st_uid == actor.user


def test_what_is_hidden_inside_an_exposure_stays_hidden(actor: Actor) -> None:
    deep = actor.hidden / "own" / "deep"
    (deep / "mine").mkdir(parents=True)
    (deep / "secret").write_text("canary\n")
    (deep / "mine" / "state").write_text("mine\n")
    give_all(actor)
    for more in ([], ["--without", "mounts"]):
        done = actor.shell(
            f"cat {deep}/secret; cat {deep}/mine/state; cat {actor.hidden}/own/state",
            "--hide",
            deep,
            "--expose",
            deep / "mine",
            *more,
        )
        assert done.stdout == "mine\nown\n"


def give_all(actor: Actor) -> None:
    from tests.sandbox_actors import give

    give(actor.hidden, actor.user)


def test_hidden_files_and_sockets_can_be_named_alone(actor: Actor) -> None:
    secret = actor.hidden / "secret"
    done = actor.launch("--hide", secret, command=["/bin/sh", "-c", f"cat {secret}; cat {actor.hidden}/own/state"])
    assert done.stdout == "own\n"
    assert secret.read_text() == "canary\n"


def test_a_hidden_place_that_the_agents_user_cannot_even_come_near_is_no_obstacle(actor: Actor) -> None:
    actor.hidden.chmod(0o700)
    inner = actor.hidden / "other"
    (inner / "file").write_text("canary\n")
    done = actor.launch("--hide", inner, command=["/bin/sh", "-c", f"cat {inner}/file; echo ran"])
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_without_mounts_landlock_alone_hides(actor: Actor) -> None:
    report = actor.work / "report.json"
    hidden = actor.hidden
    script = f"cat {hidden}/secret; ls {hidden}; cat {hidden}/own/state; echo new > {hidden}/own/new; ls {actor.work}"
    done = actor.shell(script, "--without", "mounts", "--report", report)
    assert "canary" not in done.stdout
    assert done.stdout.splitlines()[0] == "own"
    assert (hidden / "own" / "new").exists()
    document = json.loads(report.read_text())
    assert document["wall"] == "landlock-alone"
    states = {entry["layer"]: entry["state"] for entry in document["layers"]}
    assert states["mounts"] == "off"
    assert states["wall"] == states["self-check"] == "active"
    assert any("directories above hidden ones cannot be listed" in text for text in document["limits"])


def test_the_report_says_everything(actor: Actor) -> None:
    report = actor.work / "report.json"
    missing = actor.place / "nothing"
    policy = actor.work / "policy.json"
    policy.write_text(
        json.dumps(
            {
                "schema": "runner-e2e.sandbox-policy/v1",
                "hide": [str(actor.hidden)],
                "hide_if_present": [str(missing)],
                "expose": [str(actor.hidden / "own")],
                "create": [str(actor.work / "made")],
                "hide_deputies": False,
            }
        )
    )
    done = actor.launch("--policy", policy, "--report", report, command=["/bin/true"], quiet=False)
    assert done.returncode == 0
    document = json.loads(report.read_text())
    assert document["schema"] == "runner-e2e.sandbox-report/v1"
    servers = [path for path in document["hidden"] if "/runner-e2e-" in path]
    assert [path for path in document["hidden"] if path not in servers] == [str(actor.hidden)]
    assert len(servers) == actor.served
    assert document["absent"] == [str(missing)]
    assert document["exposed"] == [str(actor.hidden / "own")]
    assert document["created"] == ([] if actor.expected else [str(actor.work / "made")])  # the launch before made it
    assert document["mode"] == ("privileged" if actor.root else "user-namespace")
    states = {entry["layer"]: entry["state"] for entry in document["layers"]}
    assert states.pop("network") == "off"
    assert states.pop("identity") == ("active" if actor.root else "unavailable")
    assert set(states.values()) == {"active"}
    assert f"sandbox: hidden {actor.hidden}" in done.stderr
    assert f"sandbox: exposed {actor.hidden / 'own'}" in done.stderr


def test_the_policy_variable_names_the_default_policy(actor: Actor) -> None:
    policy = actor.work / "policy.json"
    policy.write_text(json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "hide": [str(actor.hidden)]}))
    environment = actor.environment(RUNNER_E2E_SANDBOX_POLICY=str(policy))
    done = actor.launch(command=["/bin/sh", "-c", f"cat {actor.hidden}/secret; env"], env=environment)
    assert "canary" not in done.stdout
    assert "RUNNER_E2E" not in done.stdout


# --- aliases ------------------------------------------------------------------------------------------------------


def test_a_hard_link_outside_is_refused_unless_allowed(actor: Actor) -> None:
    other = actor.place / "other-name"
    other.hardlink_to(actor.hidden / "secret")
    done = actor.shell("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "hard link" in done.stderr
    assert str(actor.hidden / "secret") in done.stderr
    assert actor.shell("echo ran", "--allow-hard-links").stdout == "ran\n"
    assert actor.shell("echo ran", "--hide", other).stdout == "ran\n"


def test_a_hard_link_within_hidden_paths_is_fine_and_one_into_an_exposure_is_not(actor: Actor) -> None:
    (actor.hidden / "other" / "again").hardlink_to(actor.hidden / "secret")
    assert actor.shell("echo ran").stdout == "ran\n"
    (actor.hidden / "own" / "leak").hardlink_to(actor.hidden / "secret")
    assert actor.shell("echo ran").returncode == 125


def test_bind_mounts_are_refused(root: Actor) -> None:
    whole = root.place.with_name(f"{root.place.name}-whole")
    for source, point in ((root.hidden, root.place / "alias"), (root.place, whole)):
        words = root.words(*usual(root), command=["/bin/echo", "ran"])
        script = 'mkdir -p "$1"; mount --bind "$0" "$1"; shift; "$@"'
        done = root.run(["unshare", "-m", "/bin/sh", "-c", script, source, point, *words])
        assert (done.returncode, done.stdout) == (125, ""), done.stderr
        assert "bind mount" in done.stderr
        point.rmdir()


def test_a_symbolic_link_to_a_hidden_directory_is_followed(actor: Actor) -> None:
    link = actor.place / "link"
    link.symlink_to(actor.hidden)
    done = actor.launch("--hide", link, command=["/bin/sh", "-c", f"cat {link}/secret {actor.hidden}/secret"])
    assert done.stdout == ""


# --- races --------------------------------------------------------------------------------------------------------

RACE = """
import os, sys
from runner_e2e.sandbox import launcher, prepared
from runner_e2e.sandbox.policy import Policy
from runner_e2e.errors import LaunchError
hidden, action = sys.argv[1:]
make_plan = prepared.make_plan
def meddle(*arguments, **options):
    plan = make_plan(*arguments, **options)
    if action == "vanish":
        os.rename(hidden, hidden + "-moved")
    elif action == "replace":
        os.rename(hidden, hidden + "-moved")
        os.mkdir(hidden)
    elif action == "link":
        os.rename(hidden, hidden + "-moved")
        os.symlink(hidden + "-moved", hidden)
    return plan
prepared.make_plan = meddle
try:
    print(launcher.launch(Policy(hide=(hidden,), expose=(hidden + "/own",)), ["/bin/echo", "ran"]).status)
except LaunchError as error:
    print("refused:", error.problem.why)
"""


@pytest.mark.parametrize("action", ["vanish", "replace", "link"])
def test_a_path_that_changes_during_the_launch_stops_it(alone: Actor, action: str) -> None:
    done = alone.python_script(RACE, alone.hidden, action)
    assert done.stdout.startswith("refused:"), done
    assert "during the launch" in done.stdout


# --- streams and working directory --------------------------------------------------------------------------------


def test_streams_that_are_hidden_files_are_relayed(actor: Actor) -> None:
    log, data = actor.hidden / "log", actor.hidden / "data"
    log.write_text("canary\n")
    data.write_bytes(os.urandom(300_000))
    script = "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; cat | wc -c; echo error >&2"
    with log.open("ab") as out, data.open("rb") as stdin:
        done = actor.shell(script, stdin=stdin, stdout=out, stderr=subprocess.STDOUT, capture_output=False)
    lines = log.read_text().splitlines()
    assert done.returncode == 0
    assert lines[0] == "canary"
    assert all(line.startswith("pipe:") for line in lines[1:4])
    assert "300000" in lines
    assert "error" in lines
    assert lines.count("canary") == 1


def test_relaying_can_be_forbidden(actor: Actor) -> None:
    policy = actor.work / "policy.json"
    document = {"schema": "runner-e2e.sandbox-policy/v1", "hide": [str(actor.hidden)], "relay_streams": False}
    policy.write_text(json.dumps(document))
    with (actor.hidden / "log").open("w") as out:
        done = actor.launch(
            "--policy", policy, command=["/bin/true"], stdout=out, stderr=subprocess.PIPE, capture_output=False
        )
    assert done.returncode == 125
    assert "standard stream 1 is refused" in done.stderr


def test_streams_are_binary_clean(actor: Actor) -> None:
    content = os.urandom(1 << 20)
    words = [*actor.prefix, *actor.words("--quiet", *usual(actor), command=["/bin/cat"])]
    done = subprocess.run(
        words, input=content, capture_output=True, cwd=actor.work, env=actor.environment(), check=False, timeout=60
    )
    assert done.stdout == content


def test_a_hidden_working_directory_is_refused_and_an_exposed_one_is_not(actor: Actor) -> None:
    for directory in (actor.hidden, actor.hidden / "other"):
        done = actor.shell("pwd", cwd=directory)
        assert done.returncode == 125
        assert "working directory" in done.stderr
    assert actor.shell("pwd; cat state", cwd=actor.hidden / "own").stdout == f"{actor.hidden / 'own'}\nown\n"


def test_descriptors_do_not_reach_the_agent(actor: Actor) -> None:
    descriptor = os.open(actor.hidden / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    done = actor.shell("ls /proc/self/fd", pass_fds=[descriptor])
    os.close(descriptor)
    assert set(done.stdout.split()) == {"0", "1", "2", "3"}  # 3 is what ls reads the directory by


# --- signals and ends ---------------------------------------------------------------------------------------------


def started(actor: Actor, script: str, *options: object) -> subprocess.Popen[str]:
    words = actor.words("--quiet", *usual(actor), *options, command=["/bin/sh", "-c", script])
    process = subprocess.Popen(
        [*actor.prefix, *words], stdout=subprocess.PIPE, text=True, cwd=actor.work, env=actor.environment()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("more", [[], ["--without", "mounts"]])
def test_signals_are_passed_on(actor: Actor, more: list[str]) -> None:
    process = started(actor, "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.05; done", *more)
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("got\n", 9)


def test_a_deadly_signal_gives_its_status(actor: Actor) -> None:
    process = started(actor, "echo ready; exec sleep 60")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("more", [[], ["--without", "mounts"]])
def test_nothing_survives_the_launcher(actor: Actor, more: list[str]) -> None:
    name = f"60{os.getpid()}{time.monotonic_ns() % 100000}"
    process = started(actor, f"(setsid sleep {name} &) ; setsid sleep {name} & echo ready; wait", *more)
    process.kill()
    process.communicate(timeout=30)
    wait_until_gone(name)


def test_nothing_survives_the_command(actor: Actor) -> None:
    name = f"61{os.getpid()}{time.monotonic_ns() % 100000}"
    for more in ([], ["--without", "mounts"]):
        done = actor.shell(f"(setsid sleep {name} >/dev/null 2>&1 &); exit 3", *more)
        assert done.returncode == 3
        wait_until_gone(name)


def wait_until_gone(argument: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if f"sleep {argument}" not in listing.splitlines():
            return
        time.sleep(0.05)
    raise AssertionError(f"sleep {argument} still runs")


# --- hosts that can do less ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not X86_64, reason="the numbers of the refused calls are those of x86-64")
class TestWeakerHosts:
    LANDLOCK = 444
    CLONE, UNSHARE, MOUNT_SETATTR, FSOPEN, KEYCTL, OPEN_TREE, IOCTL = 56, 272, 442, 430, 250, 428, 16

    def test_without_landlock_nothing_starts(self, actor: Actor) -> None:
        for error in (38, 95):  # not in the kernel; switched off
            done = refusing(actor, {self.LANDLOCK: error}, script="echo ran")
            assert (done.returncode, done.stdout) == (125, "")
            assert "no Landlock" in done.stderr

    def test_without_new_mounts_landlock_alone_hides(self, actor: Actor) -> None:
        report = actor.work / "report"
        done = refusing(actor, {self.OPEN_TREE: 1, self.FSOPEN: 1}, "--report", report, script=f"cat {actor.hidden}/*")
        assert "canary" not in done.stdout
        document = json.loads(report.read_text())
        assert document["wall"] == "landlock-alone"
        assert any(entry["layer"] == "mounts" and "permitted" in entry["why"] for entry in document["layers"])

    def test_a_required_layer_is_never_given_up(self, actor: Actor) -> None:
        for layer in ("mounts", "pids", "ipc"):
            done = refusing(actor, {self.OPEN_TREE: 1, self.FSOPEN: 1}, "--require", layer, script="echo ran")
            assert (done.returncode, done.stdout) == (125, "")
            assert f"the layer {layer} is required" in done.stderr
        done = refusing(actor, {self.OPEN_TREE: 1}, "--wall", "locked-mounts", script="echo ran")
        assert done.returncode == 125

    def test_namespaces_in_which_nothing_is_allowed_are_left_for_the_next_way(self, actor: Actor) -> None:
        """As where AppArmor takes every right from a user namespace: its loopback cannot be raised either."""
        done = refusing(actor, {self.OPEN_TREE: 13, self.IOCTL: 1}, "--require", "network", script="echo ran")
        assert (done.returncode, done.stdout) == (125, "")
        assert "the layer network is required and this host refuses it" in done.stderr

    def test_refused_namespaces_are_said(self, user: Actor) -> None:
        report = user.work / "report"
        secret = user.hidden / "secret"
        words = user.words("--quiet", *usual(user), "--report", report, command=["/bin/cat", secret])
        done = without_user_namespaces(user, words)
        assert "canary" not in done.stdout
        document = json.loads(report.read_text())
        assert document["mode"] == "bare"
        reason = next(entry["why"] for entry in document["layers"] if entry["layer"] == "mounts")
        assert "new namespaces are refused" in reason
        assert "sudo" in reason

    def test_files_that_cannot_be_shown_as_the_agents_keep_the_user(self, root: Actor) -> None:
        report = root.work / "report"
        done = refusing(root, {self.MOUNT_SETATTR: 22}, "--without", "keyrings", "--report", report, script="id -u")
        document = json.loads(report.read_text())
        states = {entry["layer"]: entry for entry in document["layers"]}
        assert done.stdout == "0\n"
        assert states["identity"]["state"] == "unavailable"
        assert states["wall"]["state"] == "active"

    def test_without_keyrings_the_report_says_so(self, actor: Actor) -> None:
        report = actor.work / "report"
        done = refusing(actor, {self.KEYCTL: 1}, "--report", report, script="echo ran")
        assert done.stdout == "ran\n"
        assert any("keyring" in text for text in json.loads(report.read_text())["limits"])


def without_user_namespaces(actor: Actor, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs *words* where every further user namespace is refused, as hosts do that allow none at all."""
    nested = (
        "import os, subprocess, sys\nfrom runner_e2e import kernel\n"
        "from runner_e2e.sandbox.inside import map_own_ids\n"
        "user, group = os.getuid(), os.getgid()\n"
        "kernel.unshare(kernel.CLONE_NEWUSER)\n"
        "map_own_ids(user, group)\n"
        "open('/proc/sys/user/max_user_namespaces', 'w').write('0')\n"
        "kernel.set_capabilities()\n"
        "sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
    )
    return actor.python_script(nested, *words)


ABI = """
import sys
from runner_e2e.sandbox import planning
from runner_e2e import kernel
abi = int(sys.argv.pop(1))
kernel.landlock_abi = lambda: abi
from runner_e2e.sandbox.command import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("more", [[], ["--without", "mounts"]])
def test_older_landlock_hides_too_and_says_what_it_leaves_open(alone: Actor, abi: int, more: list[str]) -> None:
    report = alone.work / "report"
    script = f"cat {alone.hidden}/secret; cat {alone.hidden}/own/state; mkdir a b; echo x > a/x; mv a/x b/x; cat b/x"
    words = ["--quiet", "--report", report, *more, *usual(alone), "--", "/bin/sh", "-c", script]
    done = alone.python_script(ABI, abi, *words)
    assert done.stdout == "own\nx\n", done.stderr  # mv copies where a rename between directories is refused
    document = json.loads(report.read_text())
    scopes = next(entry for entry in document["layers"] if entry["layer"] == "scopes")
    assert scopes["state"] == ("active" if abi >= 6 else "unavailable")
    if more and abi < 6:
        assert any("abstract sockets" in text for text in document["limits"])


def test_without_proc_the_launch_is_refused_or_protected(root: Actor) -> None:
    words = root.words("--quiet", *usual(root), command=["/bin/cat", root.hidden / "secret"])
    done = root.run(["unshare", "-m", "/bin/sh", "-c", 'umount -l /proc; exec "$@"', "sh", *words])
    assert "canary" not in done.stdout
    assert "Traceback" not in done.stderr
    assert done.returncode != 0


def test_a_full_process_table_is_one_message(user: Actor) -> None:
    script = (
        "import os, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "from runner_e2e.sandbox.command import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = user.python_script(script, "--quiet", *usual(user), "--", "/bin/echo", "ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "Traceback" not in done.stderr


def test_ten_thousand_siblings_cost_covers_nothing(actor: Actor) -> None:
    for index in range(10_000):
        (actor.place / f"sibling-{index}").touch()
    done = actor.shell(f"cat {actor.hidden}/secret; ls {actor.place} | wc -l; touch {actor.place}/new; echo ran")
    assert done.stdout.splitlines()[-1] == "ran"
    assert int(done.stdout.splitlines()[0]) > 10_000
    alone = actor.shell(f"cat {actor.hidden}/secret; cat {actor.hidden}/own/state", "--without", "mounts")
    assert alone.stdout == "own\n"
    assert alone.returncode == 0
