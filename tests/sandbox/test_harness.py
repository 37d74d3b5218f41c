"""The prepared launcher: from threads, several at once, with everything ended in the end."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import SCRATCH_USER, make_actor

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError
from runner_e2e.sandbox import harness, service
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Network, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.sandbox_actors import Actor

    from runner_e2e.sandbox.events import Streams
    from runner_e2e.sandbox.prepared import Prepared
    from runner_e2e.sandbox.progress import Progress


@pytest.fixture(scope="module")
def here() -> Iterator[Actor]:
    """The user that runs the tests."""
    yield from make_actor("root" if os.geteuid() == 0 else "user")


@pytest.fixture
def fresh() -> Iterator[Actor]:
    """The same, with a place that the test may change."""
    yield from make_actor("root" if os.geteuid() == 0 else "user")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made


@pytest.fixture(scope="module")
def prepared(here: Actor, launcher: Launcher) -> Prepared:
    policy = Policy(hide=(str(here.hidden),), expose=(str(here.hidden / "own"),))
    return launcher.prepare(policy, directory=str(here.work), environment=here.environment())


def output(launcher: Launcher, prepared: Prepared, script: str) -> tuple[int, str]:
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    with launcher.start(prepared, ["/bin/sh", "-c", script], stdin=nothing, stdout=write, stderr=nothing) as launch:
        os.close(write)
        with os.fdopen(read) as file:
            text = file.read()
        status = launch.wait(30).status
    os.close(nothing)
    return status, text


def test_a_launch(here: Actor, launcher: Launcher, prepared: Prepared) -> None:
    script = f"cat {here.hidden}/secret; cat {here.hidden}/own/state; pwd; exit 4"
    assert output(launcher, prepared, script) == (4, f"own\n{here.work}\n")


def test_the_agent_has_the_layers_of_the_command_line(launcher: Launcher, prepared: Prepared) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    with launcher.start(prepared, ["/bin/true"], stdin=nothing, stdout=nothing, stderr=nothing) as launch:
        states = {entry.layer: entry.state for entry in launch.report.layers}
        launch.wait(30)
    os.close(nothing)
    assert launch.report.mode in {"privileged", "user-namespace", "sudo"}
    inactive = {layer for layer, state in states.items() if state != "active"}
    assert inactive == ({"network"} if launch.report.mode != "user-namespace" else {"network", "identity"})


def test_many_launches_from_many_threads(launcher: Launcher, prepared: Prepared) -> None:
    found: dict[int, tuple[int, str]] = {}

    def one(number: int) -> None:
        found[number] = output(launcher, prepared, f"echo {number}; exit {number}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: (number, f"{number}\n") for number in range(12)}


def test_what_goes_wrong_is_raised(here: Actor, launcher: Launcher, prepared: Prepared) -> None:
    for command, kind in (("no-such", CommandNotFoundError), (str(here.work), CommandNotExecutableError)):
        with pytest.raises(kind):
            launcher.start(prepared, [command], stdin=0, stdout=1, stderr=2)
    with pytest.raises(LaunchError, match="refused"):
        launcher.prepare(Policy(hide=(str(here.hidden),), expose=("/etc",)), directory=str(here.work))


def test_a_hidden_file_as_a_stream_is_refused(here: Actor, launcher: Launcher, prepared: Prepared) -> None:
    with (here.hidden / "secret").open() as file, pytest.raises(LaunchError, match="standard stream 0"):
        launcher.start(prepared, ["/bin/cat"], stdin=file.fileno(), stdout=1, stderr=2)


def start_sleeping(launcher: Launcher, prepared: Prepared, name: str) -> tuple[int, object]:
    read, write = os.pipe()
    script = f"(setsid sleep {name} &); trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    nothing = os.open(os.devnull, os.O_RDWR)
    launch = launcher.start(prepared, ["/bin/sh", "-c", script], stdin=nothing, stdout=write, stderr=nothing)
    os.close(write)
    os.close(nothing)
    assert os.read(read, 6) == b"ready\n"
    return read, launch


def running(name: str) -> bool:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return f"sleep {name}" in listing.splitlines()


def comes_true(condition: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(found)


def wait_until(condition: Callable[[], object]) -> None:
    assert comes_true(condition, 60), "it did not come to pass"


def test_signals_terms_and_time(launcher: Launcher, prepared: Prepared) -> None:
    name = f"62{os.getpid()}"
    read, launch = start_sleeping(launcher, prepared, name)
    with launch, pytest.raises(TimeoutError):  # type: ignore[attr-defined]
        launch.wait(0.05)  # type: ignore[attr-defined]
    read_again, launch = start_sleeping(launcher, prepared, name)
    assert launch.terminate(60).status == 5  # type: ignore[attr-defined]
    assert not running(name)
    for descriptor in (read, read_again):
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_process_group_ends_no_agent(here: Actor, number: signal.Signals) -> None:
    """As Ctrl-C in a terminal: the harness may handle it, and need its agents to finish."""
    with Launcher() as launcher:
        prepared = hiding(launcher, here, here.hidden)
        name = f"64{os.getpid()}{int(number)}"
        read, launch = start_sleeping(launcher, prepared, name)
        wait_until(lambda: running(name))
        os.kill(launcher._services[False].process.pid, number)
        assert output(launcher, prepared, "echo ran") == (0, "ran\n")
        assert running(name)
        launch.close()  # type: ignore[attr-defined]
        os.close(read)


def test_closing_the_launcher_ends_everything(prepared: Prepared) -> None:
    name = f"63{os.getpid()}"
    other = Launcher()
    read, launch = start_sleeping(other, prepared, name)
    wait_until(lambda: running(name))
    other.close()
    with pytest.raises(LaunchError, match="killed"):
        launch.wait(30)  # type: ignore[attr-defined]
    wait_until(lambda: not running(name))
    os.close(read)


def test_a_replaced_path_stops_a_prepared_launch(here: Actor, launcher: Launcher) -> None:
    extra = here.place / "extra"
    extra.mkdir()
    prepared = launcher.prepare(Policy(hide=(str(extra),)), directory=str(here.work), environment=here.environment())
    assert output(launcher, prepared, "echo ran")[1] == "ran\n"
    extra.rename(here.place / "moved")
    extra.mkdir()
    with pytest.raises(LaunchError) as caught:
        output(launcher, prepared, "echo ran")
    assert "replaced during the launch" in caught.value.problem.why


def hiding(launcher: Launcher, here: Actor, *paths: object) -> Prepared:
    policy = Policy(hide=tuple(map(str, paths)))
    return launcher.prepare(policy, directory=str(here.work), environment=here.environment())


def below(process: object) -> list[str]:
    """The children of a process."""
    words = ["pgrep", "-P", str(process)]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()


def standing_ready(launcher: Launcher) -> list[tuple[str, str]]:
    """The two processes of each next launch; none while those of another one are still there.

    What ran has ended where its launch has, but for the first process, which may take a moment more.
    """
    pairs = [(first, below(first)) for first in below(launcher._services[False].process.pid)]
    return [(first, second) for first, (second,) in pairs] if all(len(second) == 1 for _, second in pairs) else []


def let_processes_get_ready(launcher: Launcher) -> None:
    """Waits for the processes of the next launch, which the service makes in a quiet moment."""
    wait_until(lambda: standing_ready(launcher))


MOUNTS_CHANGE = """
import os, subprocess, sys, time
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Network, Policy
place = sys.argv[1]
nothing = os.open(os.devnull, os.O_RDWR)

def output(launcher, policy, script):
    read, write = os.pipe()
    prepared = launcher.prepare(policy, directory=place + "/work")
    with launcher.start(prepared, ["/bin/sh", "-c", script], stdin=nothing, stdout=write, stderr=nothing) as launch:
        os.close(write)
        text = os.fdopen(read).read()
        launch.wait(60)
    return text

with Launcher() as launcher:
    for _ in range(int(sys.argv[2])):
        output(launcher, Policy(hide=(place + "/hidden",)), ":")
        time.sleep(0.3)  # the processes of the next launch stand ready now
    subprocess.run(["mount", "-t", "tmpfs", "none", place + "/hidden"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place + "/seen"], check=True)
    for name in ("hidden", "seen"):
        with open(f"{place}/{name}/file", "w") as file:
            file.write(name)
    script = f"cat {place}/*/file"
    print(output(launcher, Policy(hide=(place + "/hidden",)), script))
    time.sleep(0.3)
    for name in ("hidden", "seen"):
        subprocess.run(["umount", place + "/" + name], check=True)
    print(output(launcher, Policy(hide=(place + "/hidden",)), script + f"; ls {place}/seen"))
"""


@pytest.mark.parametrize("before", [1, 2], ids=["made", "prepared"])
def test_processes_that_stand_ready_see_the_mounts_of_the_moment(root: Actor, before: int) -> None:
    """What is mounted after they were made is hidden and seen as if they had been made just now."""
    (root.place / "seen").mkdir()
    words = [root.python, "-I", "-c", "import sys; sys.path.insert(0, sys.argv.pop(1))\n" + MOUNTS_CHANGE]
    done = root.run(["unshare", "--mount", *words, root.source, root.place, before])
    assert done.stdout == "seen\n\n", done


ACCOUNTS_CHANGE = (
    MOUNTS_CHANGE.partition("with Launcher()")[0]
    + """
passwd = place + "/passwd"
with open("/etc/passwd") as file, open(passwd, "w") as copy:
    copy.write(file.read())
subprocess.run(["mount", "--bind", passwd, "/etc/passwd"], check=True)
with Launcher() as launcher:
    for number in range(4):
        with open(passwd, "a") as file:
            file.write(f"number{number}:x:{70000 + number}:1::/:/bin/sh\\n" if number > 2 else "")
        print(output(launcher, Policy(hide=(place + "/hidden",)), "grep -o ^number.: /etc/passwd"))
        time.sleep(0.3)
"""
)


def test_a_prepared_launch_knows_the_accounts_of_the_moment(root: Actor) -> None:
    words = [root.python, "-I", "-c", "import sys; sys.path.insert(0, sys.argv.pop(1))\n" + ACCOUNTS_CHANGE]
    done = root.run(["unshare", "--mount", *words, root.source, root.place])
    assert done.stdout.split() == ["number3:"], done


ACCOUNTS_REPLACED = (
    MOUNTS_CHANGE.partition("with Launcher()")[0]
    + """
subprocess.run(["cp", "-a", "/etc", place + "/etc"], check=True)
subprocess.run(["mount", "--bind", place + "/etc", "/etc"], check=True)
with Launcher() as launcher:
    for number in range(4):
        print(output(launcher, Policy(hide=(place + "/hidden",)), "grep -c ^agent: /etc/passwd"))
        time.sleep(0.3)
        if number == 2:
            subprocess.run(["cp", "-a", "/etc/passwd", "/etc/passwd.new"], check=True)
            os.rename("/etc/passwd.new", "/etc/passwd")
"""
)


def test_a_prepared_launch_has_an_account_where_the_file_of_accounts_was_replaced_by_the_same(root: Actor) -> None:
    words = [root.python, "-I", "-c", "import sys; sys.path.insert(0, sys.argv.pop(1))\n" + ACCOUNTS_REPLACED]
    done = root.run(["unshare", "--mount", *words, root.source, root.place])
    assert done.stdout.split() == ["1"] * 4, done


def has_prepared(launcher: Launcher) -> bool:
    """Whether the processes of the next launch have mounts of their own already."""
    service = launcher._services[False].process.pid
    try:
        mounts = [Path(f"/proc/{process}/ns/mnt").readlink() for _, process in standing_ready(launcher)]
        return Path(f"/proc/{service}/ns/mnt").readlink() not in mounts if mounts else False
    except FileNotFoundError:
        return False


def never_prepares(launcher: Launcher) -> bool:
    """Whether the processes of the next launch still lack them a good while after they came."""
    let_processes_get_ready(launcher)
    time.sleep(0.3)
    return not has_prepared(launcher)


def let_view_be_prepared(launcher: Launcher, prepared: Prepared, script: str = ":", seen: str = "") -> None:
    """Launches until the next launch is prepared; on a busy machine what was may be too old before anybody looks."""
    assert output(launcher, prepared, script)[1] == seen
    for _ in range(5):
        let_processes_get_ready(launcher)
        assert output(launcher, prepared, script)[1] == seen
        if comes_true(lambda: has_prepared(launcher), 20):
            return
    raise AssertionError("the next launch is not prepared")


@pytest.fixture
def _own_mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is prepared is let go when any mount changes: those of other tests shall not be seen."""
    command = service.command
    apart = ["unshare", "--mount"] if os.geteuid() == 0 else []
    monkeypatch.setattr(service, "command", lambda *words, **more: [*apart, *command(*words, **more)])


undisturbed = pytest.mark.usefixtures("_own_mounts")


@undisturbed
def test_a_launch_that_came_twice_is_prepared(here: Actor) -> None:
    with Launcher() as launcher:
        one, other = hiding(launcher, here, here.hidden), hiding(launcher, here, here.hidden / "other")
        script = f"cat {here.hidden}/secret 2>/dev/null; true"
        for prepared, is_prepared in (
            (one, False),
            (one, True),
            (one, True),
            (other, False),
            (one, False),
            (one, True),
        ):
            assert output(launcher, prepared, script)[1] == ("canary\n" if prepared is other else "")
            if is_prepared:
                wait_until(lambda: has_prepared(launcher))
            else:
                assert never_prepares(launcher)


@undisturbed
def test_a_prepared_launch_is_not_used_where_a_path_was_replaced(fresh: Actor) -> None:
    with Launcher() as launcher:
        prepared = hiding(launcher, fresh, fresh.hidden)
        let_view_be_prepared(launcher, prepared)
        fresh.hidden.rename(fresh.place / "moved")
        fresh.hidden.mkdir()
        (fresh.hidden / "secret").write_text("canary")
        with pytest.raises(LaunchError) as caught:
            output(launcher, prepared, f"cat {fresh.hidden}/secret")
        assert "replaced during the launch" in caught.value.problem.why


@undisturbed
def test_a_prepared_launch_is_not_used_where_a_path_was_made_again(fresh: Actor) -> None:
    """What is new may have the inode number of what was there: then only its cover tells that it went."""
    with Launcher() as launcher:
        prepared = hiding(launcher, fresh, fresh.hidden)
        let_view_be_prepared(launcher, prepared)
        for path in (fresh.hidden, fresh.work):
            shutil.rmtree(path)
            path.mkdir()
        (fresh.hidden / "secret").write_text("canary")
        script = f"cat {fresh.hidden}/secret; echo $(ls {fresh.work})"
        (fresh.work / "new").write_text("")
        # The numbers are those of before or others, as the file system likes.
        with suppress(LaunchError):
            assert output(launcher, prepared, script)[1] == "new\n"


def link_again(file: Path) -> None:
    file.with_name("other").hardlink_to(file)
    file.unlink()
    file.with_name("other").rename(file)


def link_what_was_moved(file: Path) -> None:
    """A cover goes where its file is moved, and the path leads to the file all the same."""
    file.rename(file.with_name("other"))
    file.hardlink_to(file.with_name("other"))


@undisturbed
@pytest.mark.parametrize("change", [link_again, link_what_was_moved])
@pytest.mark.parametrize("role", ["hide", "read_only"])
def test_a_prepared_launch_is_not_used_where_a_file_has_another_name(
    fresh: Actor, change: Callable[[Path], None], role: str
) -> None:
    """It is the same file, of the same number; what was laid on the name that it had is not on the new one."""
    file = fresh.work / "file"
    file.write_text("canary")
    policy = Policy().replace(**{role: (str(file),)})
    with Launcher() as launcher:
        prepared = launcher.prepare(policy, directory=str(fresh.work), environment=fresh.environment())
        script = f"cat {file}; echo more >>{file}"
        seen = "" if role == "hide" else "canary"
        let_view_be_prepared(launcher, prepared, script, seen)
        change(file)
        assert output(launcher, prepared, script)[1] == seen
        assert file.read_text() == "canary"


@undisturbed
@pytest.mark.parametrize("role", ["hide", "read_only"])
def test_a_prepared_launch_stops_where_a_file_with_several_names_has_another_one(fresh: Actor, role: str) -> None:
    """Nothing but a look from inside tells: the file has as many names as before."""
    file = fresh.work / "file"
    file.write_text("canary")
    file.with_name("first").hardlink_to(file)
    policy = Policy(allow_hard_links=True).replace(**{role: (str(file),)})
    with Launcher() as launcher:
        prepared = launcher.prepare(policy, directory=str(fresh.work), environment=fresh.environment())
        let_view_be_prepared(launcher, prepared)
        file.with_name("first").unlink()
        link_what_was_moved(file)
        with pytest.raises(LaunchError) as caught:
            output(launcher, prepared, f"cat {file}")
        assert str(file) in str(caught.value)
        assert output(launcher, prepared, f"cat {file}; echo more >>{file}")[1] == ("" if role == "hide" else "canary")


SHORT_WAIT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from runner_e2e.sandbox import harness, service
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Policy
command = service.command
def shorter(*words, **more):
    *before, code, source = command(*words, **more)
    head = "; from runner_e2e.sandbox import service; service.LONGEST_WAIT = 1500; serve("
    return [*before, code.replace("; serve(", head), source]
service.command = shorter
nothing = os.open(os.devnull, os.O_RDWR)
with Launcher() as launcher:
    prepared = launcher.prepare(Policy(hide=(sys.argv[3],)), directory=sys.argv[2])
    service = launcher._services[False].process.pid
    def parent(name):
        try:
            return int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            return 0
    def below(process):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(name) == process]
    def ready():  # for each process that becomes a next agent, whether it has mounts of its own
        try:
            own = os.readlink(f"/proc/{service}/ns/mnt")
            agents = [agent for first in below(service) for agent in below(first)]
            return [os.readlink(f"/proc/{agent}/ns/mnt") != own for agent in agents]
        except OSError:
            return []
    def launch():
        with launcher.start(prepared, ["/bin/true"], stdin=nothing, stdout=nothing, stderr=nothing) as one:
            one.wait(60)
    def seen(own_mounts, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if ready() == [own_mounts]:
                return True
            time.sleep(0.01)
        return False
    launch()
    for _ in range(20):  # on a busy machine it may be gone before anybody has looked
        launch()
        if seen(True, 3):
            break
    else:
        print("never prepared")
    print(seen(False, 60), seen(True, 2))
"""


def test_a_prepared_launch_is_not_kept_for_long(fresh: Actor) -> None:
    """As long as it is, a file that is removed keeps its room on the disk. Processes without a view come instead."""
    words = [fresh.python, "-I", "-c", SHORT_WAIT, fresh.source, fresh.work, fresh.hidden]
    done = fresh.run([*(["unshare", "--mount"] if fresh.root else []), *words])
    assert done.stdout.split() == ["True", "False"], done


LIMITED = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Policy
nothing = os.open(os.devnull, os.O_RDWR)
with Launcher() as launcher:
    policy = Policy(hide=(sys.argv[1],), limits={"time": 60, "file-size": 1 << 20})
    prepared = launcher.prepare(policy, directory=sys.argv[2])
    for number in range(3):
        words = ["/bin/sh", "-c", f"ls {sys.argv[1]}; exit {number}"]
        with launcher.start(prepared, words, stdin=nothing, stdout=nothing, stderr=nothing) as launch:
            print(launch.wait(60).status, flush=True)
        time.sleep(0.3)
"""


def test_a_prepared_launch_with_limits_needs_nothing_that_is_hidden(here: Actor) -> None:
    done = here.run([here.python, "-I", "-c", LIMITED, here.source, here.work])
    assert done.stdout.split() == ["0", "1", "2"], done


@undisturbed
def test_a_launch_that_depends_on_what_else_runs_is_not_prepared(here: Actor) -> None:
    with Launcher() as launcher:
        prepared = launcher.prepare(
            Policy(user=SCRATCH_USER, limits={"processes": 8}),
            directory=str(here.work),
            environment=here.environment(),
        )
        for _ in range(3):
            assert output(launcher, prepared, "echo ran")[1] == "ran\n"
            assert never_prepares(launcher)


def test_processes_that_stand_ready_and_are_killed_are_made_anew(here: Actor) -> None:
    with Launcher() as launcher:
        prepared = hiding(launcher, here, here.hidden)
        assert output(launcher, prepared, "echo first")[1] == "first\n"
        let_processes_get_ready(launcher)
        ((first, second),) = standing_ready(launcher)
        os.kill(int(first), signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{first}").exists() and not Path(f"/proc/{second}").exists())
        assert output(launcher, prepared, "echo second")[1] == "second\n"


@undisturbed
@pytest.mark.parametrize("before", [1, 2], ids=["made", "prepared"])
def test_signals_that_came_before_a_launch_are_not_for_its_command(here: Actor, before: int) -> None:
    with Launcher() as launcher:
        prepared = hiding(launcher, here, here.hidden)
        for _ in range(before):
            output(launcher, prepared, ":")
            let_processes_get_ready(launcher)
        wait_until(lambda: has_prepared(launcher) == (before > 1))
        ((_, waiting),) = standing_ready(launcher)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            os.kill(int(waiting), number)
        assert output(launcher, prepared, "echo ran; exit 3") == (3, "ran\n")


def test_a_command_that_is_ended_before_it_starts_is_not_tried_in_a_weaker_way(
    here: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a kernel without memory; nothing then says that the host refuses anything."""
    with Launcher(keep_standby=False) as launcher:
        prepared = hiding(launcher, here, here.hidden)
        tried: list[str] = []

        def send(_: object, progress: Progress, __: object, streams: Streams) -> None:
            tried.append(progress.plan.mode)
            os.write(streams.events, b"exit\t9\n")

        monkeypatch.setattr(harness._Service, "send", send)
        with pytest.raises(LaunchError, match="ended before it started") as caught:
            launcher.start(prepared, ["/bin/true"], stdin=0, stdout=1, stderr=2)
        assert len(tried) == 1
        assert "signal 9" in caught.value.problem.why


def test_for_want_of_room_no_weaker_way_is_tried(here: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    command = service.command
    refuse = "def refuse(*_): raise OSError(errno.EAGAIN, 'no room')\nkernel.clone_process = refuse\n"

    def without_room(python: str, *, keep_standby: bool) -> list[str]:
        *before, code, source = command(python, keep_standby=keep_standby)
        path, serve = code.split("; from", 1)
        return [*before, f"{path}\nimport errno\nfrom runner_e2e import kernel\n{refuse}from{serve}", source]

    monkeypatch.setattr(service, "command", without_room)
    with Launcher() as launcher:
        prepared = hiding(launcher, here, here.hidden)
        with pytest.raises(LaunchError, match="no process could be started") as caught:
            launcher.start(prepared, ["/bin/true"], stdin=0, stdout=1, stderr=2)
        assert caught.value.problem.why == "no room"


def test_what_stands_ready_ends_with_the_launcher(here: Actor) -> None:
    launcher = Launcher()
    output(launcher, hiding(launcher, here, here.hidden), ":")
    let_processes_get_ready(launcher)
    processes = [process for pair in standing_ready(launcher) for process in pair]
    assert processes
    launcher.close()
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))


def test_kinds_of_launches_do_not_share_what_stands_ready(here: Actor, launcher: Launcher, prepared: Prepared) -> None:
    """A launch with a network of its own is not served by processes that were made for one without."""
    script = "readlink /proc/self/ns/net"
    policy = Policy(hide=(str(here.hidden),)).requiring("network")
    apart = launcher.prepare(policy, directory=str(here.work), environment=here.environment())
    outside = str(Path("/proc/self/ns/net").readlink())
    for _ in range(2):
        assert output(launcher, prepared, script)[1].strip() == outside
        assert output(launcher, apart, script)[1].strip() != outside
        let_processes_get_ready(launcher)


def test_a_launcher_without_standby_launches_too(here: Actor) -> None:
    with Launcher(keep_standby=False) as launcher:
        prepared = hiding(launcher, here, here.hidden)
        for _ in range(2):
            assert output(launcher, prepared, f"cat {here.hidden}/secret; echo ran")[1] == "ran\n"
            wait_until(lambda: not below(launcher._services[False].process.pid))


def test_a_listed_program_runs_by_its_content(here: Actor, launcher: Launcher, tmp_path: Path) -> None:
    program = here.work / "program"
    program.write_bytes(Path("/bin/sh").read_bytes())
    program.chmod(0o755)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    listing = tmp_path / "artifacts.json"
    environment = here.environment(RUNNER_E2E_ARTIFACTS=str(listing))
    prepared = launcher.prepare(Policy(hide=(str(here.hidden),)), directory=str(here.work), environment=environment)
    nothing = os.open(os.devnull, os.O_RDWR)

    def run() -> str:
        read, write = os.pipe()
        words = [str(program), "-c", "readlink /proc/$$/exe; cat /dev/null"]
        try:
            with launcher.start(prepared, words, stdin=nothing, stdout=write, stderr=nothing) as launch:
                launch.wait(30)
        finally:
            os.close(write)
        with os.fdopen(read) as file:
            return file.read()

    listing.write_text(json.dumps({"schema": "runner-e2e.artifacts/v1", "files": {str(program): digest}}))
    assert "memfd:" in run()
    listing.write_text(json.dumps({"schema": "runner-e2e.artifacts/v1", "files": {str(program): "0" * 64}}))
    with pytest.raises(LaunchError):
        run()
    os.close(nothing)


def test_a_limit_on_processes_counts_what_runs_at_the_time(here: Actor, launcher: Launcher) -> None:
    """Agents of one user share the kernel's count: those that started after the policy was prepared count, too."""
    policy = Policy(hide=(str(here.hidden),), user=SCRATCH_USER)
    prepared, limited = (
        launcher.prepare(one, directory=str(here.work), environment=here.environment())
        for one in (policy, policy.replace(limits={"processes": 8}))
    )
    script = "for i in 1 2 3; do sleep 0.2 & done; wait; echo ran"
    assert output(launcher, limited, script)[1] == "ran\n"
    nothing = os.open(os.devnull, os.O_RDWR)
    read, write = os.pipe()
    many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 100 & done; echo ready; wait"
    with launcher.start(prepared, ["/bin/sh", "-c", many], stdin=nothing, stdout=write, stderr=nothing):
        os.close(write)
        assert os.read(read, 6) == b"ready\n"
        assert output(launcher, limited, script)[1] == "ran\n"
    os.close(read)
    os.close(nothing)


def test_launches_share_one_proxy_and_are_told_apart(here: Actor, launcher: Launcher) -> None:
    policy = Policy(network=Network(reach="hosts", hosts=("model.example.com",)))
    prepared = launcher.prepare(policy, directory=str(here.work), environment=here.environment())
    nothing = os.open(os.devnull, os.O_RDWR)
    launches = [
        launcher.start(
            prepared, ["curl", "--silent", f"http://{name}.example.com/"], stdin=nothing, stdout=nothing, stderr=nothing
        )
        for name in ("one", "two", "three")
    ]
    asked = [[entry.host for entry in launch.wait(30).report.asked] for launch in launches]
    assert asked == [["one.example.com"], ["two.example.com"], ["three.example.com"]]
    assert len(launcher._proxies) == 1
    os.close(nothing)


def test_a_proxy_that_was_killed_is_made_again(here: Actor) -> None:
    policy = Policy(network=Network(reach="hosts", hosts=("model.example.com",)))
    with Launcher(keep_standby=False) as launcher:
        prepared = launcher.prepare(policy, directory=str(here.work), environment=here.environment())
        assert output(launcher, prepared, "exit 3") == (3, "")
        (proxy,) = launcher._proxies.values()
        os.kill(proxy.process.pid, signal.SIGKILL)
        proxy.process.wait()
        assert output(launcher, prepared, "exit 3") == (3, "")
