"""A fork server and what launches through it: for whom it works, how it ends, and what it never does.

That a launch through it is like any other is tested where launches are: see test_launcher.py.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import SERVED, Actor, actors, make_actor

from runner_e2e.sandbox import fork_server, fork_worker, readiness
from runner_e2e.sandbox.request import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

# A harness in Python: launches for itself what its arguments say, each a line of JSON.
HARNESS = """
import json, os, subprocess, sys
python, source = sys.argv[1:3]
ask = (
    "import os, sys; sys.path.insert(0, sys.argv.pop(1)); from runner_e2e.sandbox import quick_client; "
    "quick_client._PATIENCE = 60.0; "  # the machine may be busy
    "print('answer', quick_client.ask(os.environb[b'RUNNER_E2E_SANDBOX_SERVER'], sys.argv[1:]), flush=True)"
)
client = [python, "-I", "-S", "-c", ask, source, "--quiet"]
"""
# The server and its workers, as long as they have no client.
SERVERS = """
server = os.environ["RUNNER_E2E_SANDBOX_SERVER"]
def servers():
    lines = [line.split() for line in open("/proc/net/unix")]
    inode = next(line[6] for line in lines if line[7:] == [os.path.basename(server)] and line[3] == "00010000")
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{name}/fd/{number}") for number in os.listdir(f"/proc/{name}/fd")]
        except OSError:
            continue
        if f"socket:[{inode}]" in links:
            found.append(int(name))
    return found
def kill(processes, signal):
    for process in processes:
        try:
            os.kill(process, signal)
        except ProcessLookupError:
            pass  # it was one of those that are there for a moment
def state(process):
    try:
        return open(f"/proc/{process}/stat").read().rpartition(")")[2].split()
    except OSError:
        return ["gone", 0]
def parent(process):
    return int(state(process)[1])
def end(processes):
    # With what they have below: until its end each may take what comes.
    below = [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(name) in processes]
    kill(processes, 9)
    while any(state(process)[0] not in ("gone", "X", "Z") for process in (*processes, *below)):
        continue
"""


@pytest.fixture(params=[name + SERVED for name in actors()])
def served(request: pytest.FixtureRequest) -> Iterator[Actor]:
    """A user whose launches a fork server makes."""
    yield from make_actor(request.param)


def harness(actor: Actor, body: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Runs *body* as a harness below a fork server; it ends in a second where it hangs."""
    words = [*serving(actor), actor.python, "-I", "-c", HARNESS + body, actor.python, actor.source]
    return actor.run(words, **more)


def serving(actor: Actor) -> list[str]:
    return actor.words(command=[])[:6]


def test_a_harness_launches_many_times_and_at_once(served: Actor) -> None:
    body = """
running = [
    subprocess.Popen([*client, "--", "/bin/sh", "-c", f"echo {n}; exit {n}"], stdout=subprocess.PIPE, text=True)
    for n in range(6)
]
print(sorted(one.communicate()[0] for one in running))
for n in range(3):
    print(subprocess.run([*client, "--", "/bin/sh", "-c", f"exit {n}"], stdout=subprocess.PIPE, text=True).stdout)
"""
    done = harness(served, body)
    assert done.stdout.split("\n")[0] == str([f"{n}\nanswer {n}\n" for n in range(6)])
    assert done.stdout.split("\n")[1:] == ["answer 0", "", "answer 1", "", "answer 2", "", ""]


def test_the_launch_has_the_directory_the_environment_and_the_words_of_the_client(served: Actor) -> None:
    body = r"""
os.makedirs("deeper/é".encode())
os.chdir("deeper/é".encode())
environment = {**os.environb, b"ODD": b"\xff\n=", b"LANG": b"C"}
done = subprocess.run(
    [*client, "--report", "report.json", "--", "/bin/sh", "-c", 'printf "%s|" "$1" "$ODD" "$PWD"; cat', "", b"\xfe x"],
    stdout=subprocess.PIPE, input=b"in", env=environment, check=False,
)
print(ascii(done.stdout), os.path.exists("report.json"))
"""
    out = harness(served, body).stdout
    place = str(served.work / "deeper" / "é").encode()
    assert out == ascii(b"\xfe x|\xff\n=|" + place + b"|inanswer 0\n") + " True\n"


ATTACK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
    connection.sendall(bytes(41))
    print("served" if connection.recv(1) == b"a" else "refused")
except OSError:
    print("out of reach")
"""
ATTACKED = """
server = os.environ["RUNNER_E2E_SANDBOX_SERVER"]
place = os.path.dirname(server)
script = f'ls {place}; cat /proc/{os.path.basename(server)}/fd/0; env | grep -c RUNNER_E2E; exec "$@"'
for more in ([], ["--without", "mounts"], ["--without", "mounts", "--without", "keyrings", "--keep-user"]):
    words = [*client, *more, "--", "/bin/sh", "-c", script, "sh", python, "-I", "-S", "-c", ATTACK, server]
    print(subprocess.run(words, capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.parametrize("head", ["", "from runner_e2e import kernel; kernel.forbid_new_privileges(); "])
def test_the_agent_finds_no_way_to_the_server(served: Actor, head: str) -> None:
    body = f"{HARNESS}\nATTACK = {ATTACK!r}\n{ATTACKED}"
    serve = [word.replace("become_harness(", f"{head}become_harness(", 1) for word in serving(served)]
    done = served.run([*serve, served.python, "-I", "-c", body, served.python, served.source])
    # Landlock alone lets it come to the socket, and with the same rights as the server it may look the same, too.
    assert done.stdout.replace("out of reach", "refused") == "0\nrefused\nanswer 0\n" * 3
    assert done.stdout.startswith("0\nout of reach\n")


ELSEWHERE = """
change = {change!r}
change = "import os, sys; sys.path.insert(0, sys.argv[1]); from runner_e2e import kernel; " + change + "; "
done = subprocess.run([python, "-I", "-S", "-c", change + ask, source, "--", "/bin/true"], stdout=subprocess.PIPE)
print(done.stdout.decode())
"""


@pytest.mark.parametrize(
    "change",
    [
        "kernel.forbid_new_privileges()",
        "os.umask(0o077)",
        "os.nice(1)",
        "import ctypes; ctypes.CDLL(None).personality(0x0040000)",  # ADDR_NO_RANDOMIZE
        "import runner_e2e.sandbox.seccomp as s; kernel.forbid_new_privileges(); kernel.install_filter(s.program())",
    ],
)
def test_other_surroundings_are_not_served(served: Actor, change: str) -> None:
    assert harness(served, ELSEWHERE.format(change=change)).stdout == "answer None\n\n"


def test_who_is_behind_a_wall_of_landlock_is_not_served(served: Actor) -> None:
    """Nothing in /proc shows such a wall; here it is all that the client has and the server has not."""
    change = "kernel.restrict_self(kernel.create_ruleset(fs=1))"
    head = "from runner_e2e import kernel; kernel.forbid_new_privileges(); "
    serve = [word.replace("become_harness(", f"{head}become_harness(", 1) for word in serving(served)]
    body = HARNESS + ELSEWHERE.format(change="pass") + ELSEWHERE.format(change=change)
    done = served.run([*serve, served.python, "-I", "-c", body, served.python, served.source])
    assert done.stdout == "answer 0\n\nanswer None\n\n"


def test_a_server_that_was_changed_does_not_serve(served: Actor) -> None:
    body = """
for _ in range(2):  # the second time for what the server made while the first went on
    for process in servers():
        os.setpriority(os.PRIO_PROCESS, process, 5)
print(subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout)
"""
    assert harness(served, SERVERS + body).stdout == "answer None\n\n"


@pytest.mark.parametrize("namespace", ["NEWNS", "NEWPID", "NEWUSER", "NEWNET", "NEWIPC"])
def test_other_namespaces_are_not_served(namespace: str) -> None:
    for actor in make_actor("root" + SERVED):
        change = f"kernel.unshare(kernel.CLONE_{namespace}); os.fork() and (os.wait(), os._exit(0))"
        assert harness(actor, ELSEWHERE.format(change=change)).stdout == "answer None\n\n"


def test_another_user_is_not_served() -> None:
    for actor in make_actor("root" + SERVED):
        body = """
server = os.environ["RUNNER_E2E_SANDBOX_SERVER"]
os.chmod(os.path.dirname(server), 0o755)
os.chmod(server, 0o666)
done = subprocess.run(["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", "--", *client, "--", "/bin/true"],
                      stdout=subprocess.PIPE, text=True)
print(done.stdout)
"""
        assert harness(actor, body).stdout == "answer None\n\n"


def test_a_client_with_a_confidential_variable_launches_by_itself(served: Actor) -> None:
    policy = served.work / "policy.json"
    policy.write_text(json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "environment": {"drop": ["CASE"]}}))
    body = f"""
words = [*client, "--policy", {str(policy)!r}, "--", "/bin/true"]
for environment in ({{**os.environ, "CASE": "x"}}, os.environ):
    print(subprocess.run(words, stdout=subprocess.PIPE, text=True, env=environment).stdout)
"""
    assert harness(served, body).stdout == "answer None\n\nanswer 0\n\n"


def test_a_request_that_no_launch_can_take_is_left_to_the_client(served: Actor) -> None:
    body = """
import ctypes
call = ctypes.CDLL(None).execve
strings = ctypes.c_char_p * 30
words = [word.encode() for word in [*client, "--", "/bin/true"]]
environment = [b"=without a name", *(key + b"=" + value for key, value in os.environb.items())]
sys.stdout.flush()
call(words[0], strings(*words), strings(*environment))
"""
    done = harness(served, body)
    assert (done.stdout, done.stderr) == ("answer None\n", "")


def test_agents_of_the_library_do_not_see_the_server_either(served: Actor) -> None:
    body = """
sys.path.insert(0, source)
from runner_e2e.sandbox.harness import Launcher
from runner_e2e.sandbox.policy import Policy
server = os.environ.get("RUNNER_E2E_SANDBOX_SERVER")
with Launcher(python=python) as launcher:
    prepared = launcher.prepare(Policy(), environment={"PATH": os.environ["PATH"]})
    words = ["/bin/sh", "-c", f"ls {os.path.dirname(server)} || echo hidden"]
    with launcher.start(prepared, words, stdin=0, stdout=1, stderr=2) as run:
        run.wait()
"""
    done = harness(served, body)
    assert (done.stdout, "denied" in done.stderr) == ("hidden\n", True)


def test_refusals_and_bad_options_are_told_as_ever(served: Actor) -> None:
    body = """
for words in (["--hide", "/nowhere/at/all"], ["--nonsense"], ["--help"]):
    done = subprocess.run([*client, *words, "--", "/bin/true"], capture_output=True, text=True)
    print(done.stdout.splitlines()[-1], done.stderr.splitlines()[:1])
"""
    lines = harness(served, body).stdout.splitlines()
    assert lines[0] == "answer 125 ['agent_sandbox: hidden path /nowhere/at/all is refused']"
    assert lines[1] == "answer 125 ['agent_sandbox: unknown option --nonsense']"
    assert lines[2].startswith("answer 0 ")


def test_the_server_ends_with_the_harness_and_leaves_nothing(served: Actor) -> None:
    body = """
subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.DEVNULL)
while len(found := servers()) < 2:  # the server, and a worker for the next launch
    continue
below = [path for path in os.listdir("/proc") if path.isdigit() and parent(int(path)) in found]
print(server, *found, *below)
"""
    out, *processes = harness(served, SERVERS + body).stdout.split()
    wait_until(lambda: not Path(out).parent.exists() and not any(Path("/proc", one).exists() for one in processes))
    assert Path(out).name in processes


def test_the_harness_has_no_child_that_it_did_not_start(served: Actor) -> None:
    body = """
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none")
"""
    assert harness(served, body).stdout == "none\n"


def test_a_launch_ends_with_a_harness_that_is_killed(served: Actor) -> None:
    name = f"62{os.getpid()}{time.monotonic_ns() % 100000}"
    body = f"""
one = subprocess.Popen([*client, "--", "/bin/sh", "-c", "echo ready; exec sleep {name}"])
one.wait()
"""
    words = [*serving(served), served.python, "-I", "-c", HARNESS + body, served.python, str(served.source)]
    with subprocess.Popen(
        [*served.prefix, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=served.work,
        env=served.environment(),
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.kill()
        out, error = process.communicate(timeout=30)
    assert out == "answer 125\n"
    assert error == "agent_sandbox: the fork server ended during the launch, and the command with it\n"
    wait_until(lambda: not [words for words in commands() if name in words])


def test_a_command_ends_with_a_client_that_is_killed_whatever_the_server_waits_for(served: Actor) -> None:
    name = f"63{os.getpid()}{time.monotonic_ns() % 100000}"
    body = f"""
full, theirs = os.pipe()
os.set_blocking(theirs, False)
try:
    while True:
        os.write(theirs, bytes(4096))
except BlockingIOError:
    os.set_blocking(theirs, True)
loud = [word for word in client if word != "--quiet"]
words = [*loud, "--", "/bin/sh", "-c", "echo ready; exec sleep {name}"]
one = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs, text=True)
print(one.stdout.readline(), end="", flush=True)
one.kill()
print(one.communicate()[0] == "", flush=True)
sys.stdin.read()
"""
    words = [*serving(served), served.python, "-I", "-c", HARNESS + body, served.python, str(served.source)]
    with subprocess.Popen(
        [*served.prefix, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=served.work,
        env=served.environment(),
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "True\n"]
        wait_until(lambda: f"sleep\0{name}\0" not in commands())
        process.communicate(timeout=30)


def test_signals_to_the_server_end_nothing(served: Actor) -> None:
    body = """
import signal
one = subprocess.Popen([*client, "--", "/bin/sh", "-c", "echo ready; read line; exit 9"], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, text=True)
one.stdout.readline()
number = int(os.path.basename(server))
every = [int(name) for name in os.listdir("/proc") if name.isdigit()]
kill([process for process in every if number in (process, parent(process))], signal.SIGTERM)
print(one.communicate("go")[0])
print(subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout)
"""
    assert harness(served, SERVERS + body).stdout == "answer 9\n\nanswer 0\n\n"


def test_a_worker_of_which_nothing_would_tell_the_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each try without room for a descriptor would leave one more."""

    def refuse(_: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with subprocess.Popen(["sleep", "600"]) as worker:
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            fork_server._life_of(worker.pid)
        assert worker.wait(60) == -signal.SIGKILL


def test_a_server_without_room_for_a_worker_tries_again(served: Actor) -> None:
    body = """
import resource
subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.DEVNULL)  # it has loaded all by then
number = int(os.path.basename(server))
while len(servers()) < 2:
    continue  # or one that is just made would have had room
usual = resource.prlimit(number, resource.RLIMIT_NOFILE)
resource.prlimit(number, resource.RLIMIT_NOFILE, (4, usual[1]))
end([process for process in servers() if process != number])
hasty = [word.replace("_PATIENCE = 60.0", "_PATIENCE = 0.5") for word in client]
for one, limits in ((hasty, None), (client, usual)):
    if limits:
        resource.prlimit(number, resource.RLIMIT_NOFILE, limits)
    print(subprocess.run([*one, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout)
"""
    assert harness(served, SERVERS + body).stdout == "answer None\n\nanswer 0\n\n"


def test_a_server_that_cannot_start_is_said(served: Actor) -> None:
    head = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)); "
    serve = [word.replace("become_harness(", f"{head}become_harness(", 1) for word in serving(served)]
    done = served.run([*serve, "/bin/true"])
    assert "LaunchError: the fork server did not start" in done.stderr


def test_without_proc_there_is_no_server() -> None:
    for actor in make_actor("root" + SERVED):
        words = ["unshare", "-m", "/bin/sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *serving(actor)]
        assert "LaunchError: the fork server cannot be used here\n  why: /proc" in actor.run([*words, "true"]).stderr


def test_a_kernel_that_does_not_hold_on_to_the_client_serves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert fork_worker._is_alike(ours)
        monkeypatch.setattr(fork_worker, "_SO_PEERPIDFD", 9999)
        assert not fork_worker._is_alike(ours)


def test_mounts_that_change_while_a_client_comes_are_not_missed() -> None:
    """The kernel tells of a change once: whoever looks first."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as changes:
        ours, _ = server.accept()
        with ours, socket.create_connection(server.getsockname()):
            ready = readiness.Readiness(None, mask=bytes(128))
            ready.standby = FakeStandby(changes.fileno())  # type: ignore[assignment]
            ours.send(b"!", socket.MSG_OOB)  # read as a change of mounts is
            fork_worker._accept(server, ready).close()
            assert ready.standby is None


def test_a_prepared_launch_is_not_kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_worker, "LONGEST_WAIT", 10)
    ready = readiness.Readiness(None, mask=bytes(128))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as changes:
        ready.standby = FakeStandby(changes.fileno())  # type: ignore[assignment]
        with server.accept()[0], socket.socket() as client:
            renewed: list[bool] = []

            def renew() -> None:
                renewed.append(True)
                ready.let_view_go()
                client.connect(server.getsockname())

            monkeypatch.setattr(ready, "renew", renew)
            fork_worker._accept(server, ready).close()
    assert renewed


class FakeStandby:
    def __init__(self, changes: int) -> None:
        self.changes = changes
        self.prepared = True

    def close(self) -> None:
        self.changes = -1


def test_processes_that_cannot_be_made_before_are_made_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(readiness, "Standby", refuse)
    last = readiness.Last(kind=Kind(namespaces=0, user=0, group=0))
    assert readiness.Readiness(last, mask=bytes(128)).standby is None


READY = """
import os
from runner_e2e.sandbox import expected, fork_worker, readiness, request
options = (b"--hide", os.fsencode(sys.argv[1]))
wanted = expected.Wanted(directory=os.getcwdb(), options=options, environment=((b"PATH", b"/usr/bin:/bin"),))
kind = request.Kind(namespaces=0, user=os.geteuid(), group=os.getegid())
last = readiness.Last(kind=kind, wanted=expected.remember(wanted))
client = fork_worker._Client(request.pair()[0], last, mask=bytes(128))
client.get_ready(fork_worker.Trade(mask=bytes(128), runner_files=tuple))
ready = client.ready
print(ready.expected.is_met_by(wanted), tuple(ready.maps) == ready.expected.plan()[1].owners)
"""


UNREADY = """
import os
from runner_e2e.sandbox import fork_worker, request
def refuse(*_, **__):
    raise OSError("no Landlock")
fork_worker.prepare = fork_worker.read_host = refuse
client = fork_worker._Client(request.pair()[0], None, mask=bytes(128))
client.get_ready(fork_worker.Trade(mask=bytes(128), runner_files=tuple))
print(client.ready.expected)
"""


def test_a_host_on_which_nothing_can_be_launched_is_left_to_say_so_to_a_client(served: Actor) -> None:
    assert served.python_script(UNREADY).stdout == "None\n"


def test_a_launch_like_the_last_one_is_prepared(served: Actor) -> None:
    assert served.python_script(READY, served.hidden).stdout == "True True\n"


def test_what_has_changed_since_the_last_launch_is_noticed(served: Actor) -> None:
    body = """
import time
hidden = sys.argv[3]
def launch():
    command = ["/bin/sh", "-c", f"cat {hidden}/*; true"]
    done = subprocess.run([*client, "--hide", hidden, "--", *command], capture_output=True, text=True)
    print(done.stdout.strip(), next((line.strip() for line in done.stderr.splitlines() if "why:" in line), ""))
    time.sleep(0.1)
def replace():
    os.rename(hidden, hidden + "-moved")
    os.mkdir(hidden)
    open(hidden + "/secret", "w").write("canary")
def link():
    os.link(hidden + "/secret", hidden + "-name")
for _ in range(3):
    launch()
for change in (replace, link):
    change()
    launch()
"""
    words = [*serving(served), served.python, "-I", "-c", HARNESS + body, served.python, served.source, served.hidden]
    lines = served.run(words).stdout.splitlines()
    assert lines == ["answer 0 "] * 4 + [
        "answer 125 why: the file has another name outside the hidden paths: a hard link"
    ]


def test_a_hidden_file_that_is_linked_again_stays_hidden(served: Actor) -> None:
    body = """
import time
file = sys.argv[3] + "/secret"
def launch():
    done = subprocess.run([*client, "--hide", file, "--", "/bin/cat", file], stdout=subprocess.PIPE, text=True)
    print(done.stdout.strip())
    time.sleep(0.1)
for _ in range(3):
    launch()
os.link(file, file + "-name")
os.unlink(file)
os.rename(file + "-name", file)
launch()
"""
    words = [*serving(served), served.python, "-I", "-c", HARNESS + body, served.python, served.source, served.hidden]
    assert served.run(words).stdout.splitlines() == ["answer 1"] * 4


MOUNTS = """
import time
place = sys.argv[3]
def mount(*words):
    subprocess.run(["mount", *words], check=True)
def launch():
    command = ["/bin/sh", "-c", f"cat {place}/seen/* {place}/hidden/* 2>/dev/null"]
    done = subprocess.run([*client, "--hide", place + "/hidden", "--", *command], stdout=subprocess.PIPE, text=True)
    print(done.stdout.partition("answer")[0].strip() or "nothing")
    time.sleep(0.2)
os.mkdir(place + "/seen")
for _ in range(3):
    launch()
if sys.argv[4] == "stays":
    mount("-t", "tmpfs", "none", place + "/seen")
    open(place + "/seen/file", "w").write("seen")
    launch()
    subprocess.run(["umount", place + "/seen"], check=True)
else:  # gone before the launch
    mount("--bind", place + "/hidden", place + "/seen")
    time.sleep(float(sys.argv[4]))
    subprocess.run(["umount", place + "/seen"], check=True)
for _ in range(3):
    launch()
"""


@pytest.mark.parametrize(("way", "seen"), [("stays", ["seen"]), ("0", []), ("0.2", [])])
def test_a_prepared_launch_has_the_mounts_of_the_moment(way: str, seen: list[str]) -> None:
    for served in make_actor("root" + SERVED):
        words = [served.python, "-I", "-c", HARNESS + MOUNTS, served.python, served.source, served.place, way]
        done = served.run(["unshare", "--mount", *serving(served), *words])
        assert done.stdout.split() == ["nothing"] * 3 + seen + ["nothing"] * 3, done


def test_a_server_that_was_killed_is_done_without(served: Actor) -> None:
    body = """
import shutil, signal
kill(servers(), signal.SIGKILL)
shutil.rmtree(os.path.dirname(server))
print(subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout)
"""
    assert harness(served, SERVERS + body).stdout == "answer None\n\n"


def test_a_worker_that_was_killed_is_replaced(served: Actor) -> None:
    body = """
for _ in range(3):
    end([process for process in servers() if process != int(os.path.basename(server))])
    print(subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout.strip())
"""
    assert harness(served, SERVERS + body).stdout == "answer 0\n" * 3


LEFT = """
import _socket, os, select, signal
from runner_e2e.sandbox import fork_server, fork_worker
told, tell = os.pipe()
made = 0
def work(*_, **__):
    if made == 1 and fork():
        os._exit(0)  # and leaves a process that has all of its descriptors
    os.write(tell, bytes([made]))
    signal.pause()
fork_worker.work = work
fork = os.fork
def count():
    global made
    made += 1
    return fork()
listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
listening.bind("\\0" + str(os.getpid()))
listening.listen()
trade = fork_worker.Trade(mask=bytes(128), runner_files=tuple)
server = fork()
if server == 0:
    os.setpgid(0, 0)
    os.fork = count
    fork_server._Server(listening, os.pidfd_open(os.getppid()), trade).run()
print(os.read(told, 1)[0], os.read(told, 1)[0] if select.select([told], [], [], 20)[0] else "none", flush=True)
os.killpg(server, signal.SIGKILL)
"""


def test_a_worker_that_leaves_something_behind_is_replaced(actor: Actor) -> None:
    done = actor.python_script(LEFT)
    assert sorted(done.stdout.split()) == ["1", "2"], done


def test_processes_of_the_next_launch_that_were_killed_are_replaced(served: Actor) -> None:
    body = """
import time
def launch():
    return subprocess.run([*client, "--", "/bin/true"], stdout=subprocess.PIPE, text=True).stdout.strip()
ready = []
while not ready:  # a worker that was made before the kind of the launch was known has none
    launch()
    time.sleep(0.1)  # longer than the server waits before it makes a worker
    workers = [process for process in servers() if process != int(os.path.basename(server))]
    ready = [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(int(name)) in workers]
end(ready)
print(launch())
"""
    assert harness(served, SERVERS + body).stdout == "answer 0\n"


def test_the_server_holds_nothing_open_that_the_harness_has(served: Actor) -> None:
    read, write = os.pipe()
    body = f"""
mine = os.fstat({write})
places = [f"/proc/{{process}}/fd" for process in servers()]
held = [os.stat(os.path.join(place, name)) for place in places for name in os.listdir(place)]
print(len(held) > 4, (mine.st_dev, mine.st_ino) in [(one.st_dev, one.st_ino) for one in held])
"""
    assert harness(served, SERVERS + body, pass_fds=(write,)).stdout == "True False\n"
    os.close(read)
    os.close(write)


def test_a_terminal_is_left_to_the_client(served: Actor) -> None:
    body = """
import pty
def read(descriptor):
    return os.read(descriptor, 1024)
sys.stdout.flush()
pty.spawn([*client, "--", "/bin/true"], read)
"""
    assert "answer None" in harness(served, body).stdout


def test_the_clients_signals_reach_its_own_command(served: Actor) -> None:
    body = """
import signal
script = "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
first, second = (
    subprocess.Popen([*client, "--", "/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)
)
for one in (first, second):
    one.stdout.readline()
first.send_signal(signal.SIGTERM)
print(first.communicate()[0], second.poll())
second.kill()
print(second.communicate()[0] == "")
"""
    assert harness(served, body).stdout == "got\nanswer 9\n None\nTrue\n"


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")


def commands() -> list[str]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                found.append((path / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found
