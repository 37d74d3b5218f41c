"""What agents do all day works inside, as root and as an ordinary user, behind both walls."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox_actors import Actor

GIT = (
    "git init -q . && git config user.email a@b && git config user.name c && echo x > f && git add f && "
    "git commit -qm m && git log --format=%s"
)
WALLS = ["landlock", "locked-mounts"]
CODEX = Path(__file__).parents[2] / "node/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl"


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo x > file && cat file && mkdir -p d/e && mv file d/e && cat d/e/file", "x\nx\n"),
        ("mkdir ~/new && echo x > ~/new/file && cat ~/new/file", "x\n"),
        ("file=$(mktemp) && echo x > $file && cat $file && rm $file", "x\n"),
        ("echo x > /dev/shm/x && cat /dev/shm/x", "x\n"),
        ("echo x | cat > /dev/null && echo < /dev/zero >/dev/null; head -c 4 /dev/urandom | wc -c", "4\n"),
        ("ln -s here there && readlink there && ln /etc/hostname hard 2>/dev/null; echo done", "here\ndone\n"),
        (GIT, "m\n"),
        ("printf 'int main(void){return 42;}' > a.c && gcc -o a a.c && ./a; echo $?", "42\n"),
        ("printf '#!/bin/sh\\necho script' > s && chmod +x s && ./s", "script\n"),
        ("node -e 'console.log(6*7, process.getuid() > 0)'", "42 true\n"),
        ("ps ax -o comm= | grep -c sh", None),
        ("mkfifo p && (echo x > p &) && cat p", "x\n"),
        ("sleep 0.01 & wait $! && echo waited", "waited\n"),
        ("umask 022; touch f; chmod 600 f; stat -c %a f", "600\n"),
    ],
)  # fmt: skip
def test_everyday_work(actor: Actor, wall: str, script: str, output: str | None) -> None:
    done = actor.shell(script, "--wall", wall)
    assert done.returncode == 0, done.stderr
    if output is not None:
        assert done.stdout == output


def test_the_agents_own_user_has_a_name(root: Actor) -> None:
    done = root.shell("whoami; id -gn; node -e 'console.log(require(\"os\").userInfo().homedir)'")
    assert done.stdout == f"agent\nagent\n{root.place}/home\n"


def test_what_the_agent_made_belongs_to_the_launcher_afterwards(actor: Actor) -> None:
    (actor.work / "before").write_text("before\n")
    os.chown(actor.work / "before", actor.user, actor.user) if os.geteuid() == 0 else None
    script = "echo more >> before; mkdir -p tree/deep; echo x > tree/deep/file; stat -c %u before tree/deep/file"
    done = actor.shell(script)
    inside = {61000 if actor.root else actor.user}
    assert {int(line) for line in done.stdout.split()} == inside
    for path in (actor.work / "before", actor.work / "tree", actor.work / "tree/deep/file"):
        assert path.stat().st_uid == actor.user
    assert (actor.work / "before").read_text() == "before\nmore\n"
    again = actor.shell("cat tree/deep/file && rm -r tree")
    assert (again.returncode, again.stdout) == (0, "x\n")


def test_new_entries_of_the_home_last_as_long_as_the_launch(actor: Actor) -> None:
    (actor.place / "home" / "data").mkdir()
    done = actor.shell("touch ~/kept ~/.zshenv && cat ~/.bashrc && ls -A ~ | sort | tr '\\n' ' '")
    assert done.stdout == ": startup\n.bashrc .zshenv data kept "
    assert sorted(path.name for path in (actor.place / "home").iterdir()) == [".bashrc", "data"]


def test_a_home_that_is_given_is_the_agents(actor: Actor) -> None:
    home = actor.place / "agent-home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, actor.user, actor.user)
    done = actor.shell("echo x > ~/kept; echo $HOME", "--home", home)
    assert done.stdout == f"{home}\n"
    assert (home / "kept").read_text() == "x\n"


def test_long_argument_lists(actor: Actor) -> None:
    arguments = ["x" * 100] * 15_000
    done = actor.launch("--hide", actor.hidden, command=["/bin/sh", "-c", 'echo "$#"', "sh", *arguments])
    assert done.stdout == "15000\n"


def test_an_argument_list_that_the_kernel_refuses_is_126(actor: Actor) -> None:
    script = (
        "import os, sys\nfrom runner_e2e.sandbox.launcher import launch\nfrom runner_e2e.sandbox.policy import Policy\n"
        "try:\n    launch(Policy(hide=(sys.argv[1],)), ['/bin/true', *['x' * 100_000] * 100])\n"
        "except Exception as error:\n    print(error.exit_code, error.problem.why)\n"
    )
    assert actor.python_script(script, actor.hidden).stdout.startswith("126 its arguments and environment are longer")


def test_loopback_tcp_and_unix_sockets_work_inside(actor: Actor) -> None:
    script = (
        "import socket, threading\n"
        "unix = socket.AF_UNIX\n"
        "for family, address in ((socket.AF_INET, ('127.0.0.1', 0)), (unix, 'socket'), (unix, '\\0a')):\n"
        "    server = socket.socket(family)\n    server.bind(address)\n    server.listen()\n"
        "    client = socket.socket(family)\n    client.connect(server.getsockname())\n"
        "    other, _ = server.accept()\n    client.sendall(b'x')\n    print(other.recv(1))\n"
    )
    done = actor.launch("--hide", actor.hidden, command=[actor.python, "-I", "-c", script])
    assert done.stdout == "b'x'\n" * 3, done.stderr


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def test_a_service_of_the_harness_on_loopback_is_reachable_and_a_network_of_its_own_cuts_it(actor: Actor) -> None:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        script = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{server.server_port}').read())"
        command = [actor.python, "-I", "-c", script]
        open_ = actor.launch("--hide", actor.hidden, command=command)
        closed = actor.launch("--hide", actor.hidden, "--require", "network", command=command)
        server.shutdown()
    assert open_.stdout == "b'hello'\n"
    assert closed.returncode != 0
    assert "refused" in closed.stderr  # its own loopback has nobody who listens


def test_a_network_of_its_own_has_a_loopback(actor: Actor) -> None:
    script = (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname())\nprint('connected')\n"
    )
    done = actor.launch("--hide", actor.hidden, "--require", "network", command=[actor.python, "-I", "-c", script])
    assert done.stdout == "connected\n", done.stderr


def test_landlock_wall_stops_a_nested_sandbox_and_locked_mounts_let_it_start(actor: Actor) -> None:
    words = "bwrap --dev-bind / / --unshare-all --proc /proc /bin/sh -c"
    script = f"{words} 'cat {actor.hidden}/secret; cat {actor.hidden}/own/state; echo inside'"
    assert "inside" not in actor.shell(script).stdout
    done = actor.shell(script, "--wall", "locked-mounts")
    assert done.stdout == "own\ninside\n", done.stderr


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the locked Codex is built for x86-64")
def test_codex_starts_its_own_sandbox_behind_locked_mounts(actor: Actor) -> None:
    script = f"{CODEX}/bin/codex sandbox -- /bin/sh -c 'cat {actor.hidden}/own/state {actor.hidden}/secret; touch x'"
    # Codex puts no helper programs below the temporary directory, where this test's home lies.
    environment = actor.environment(TMPDIR=str(actor.work))
    done = actor.shell(script, "--wall", "locked-mounts", env=environment)
    assert done.stdout == "own\n", done.stderr
    assert "Read-only file system" in done.stderr  # from Codex's own sandbox
    assert not (actor.work / "x").exists()
    assert "own" not in actor.shell(script, env=environment).stdout


def test_startup_files_commands_and_hooks_stay_as_they_were(actor: Actor) -> None:
    commands, hooks = actor.place / "commands", actor.work / ".git" / "hooks"
    commands.mkdir()
    hooks.mkdir(parents=True)
    from tests.sandbox_actors import give

    give(actor.place / "commands", actor.user)
    give(actor.work, actor.user)
    environment = actor.environment(PATH=f"{commands}:/usr/bin:/bin")
    script = f"echo x >> ~/.bashrc; touch {commands}/x .git/hooks/x ~/.profile; touch fine && echo done"
    done = actor.shell(script, env=environment)
    assert done.stdout == "done\n"
    assert (actor.place / "home" / ".bashrc").read_text() == ": startup\n"
    assert list(commands.iterdir()) == list(hooks.iterdir()) == []
    assert not (actor.place / "home" / ".profile").exists()


def test_the_environment_is_what_the_policy_lets_through(actor: Actor) -> None:
    policy = actor.work / "policy.json"
    rules = {"keep": ["PATH", "LC_*", "KEY"], "drop": ["LC_SECRET"], "set": {"GIVEN": "yes"}}
    policy.write_text(
        json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "hide": [str(actor.hidden)], "environment": rules})
    )
    environment = actor.environment(LC_ALL="C", LC_SECRET="x", KEY="k", OTHER="o")
    done = actor.launch("--policy", policy, command=["/usr/bin/env"], env=environment)
    assert {line.partition("=")[0] for line in done.stdout.splitlines()} == {"PATH", "LC_ALL", "KEY", "GIVEN"}


def test_tools_in_a_closed_directory_are_shared(root: Actor) -> None:
    closed = root.place / "closed"
    (closed / "tools").mkdir(parents=True)
    tool = closed / "tools" / "tool"
    tool.write_text("#!/bin/sh\necho tool\n")
    tool.chmod(0o755)
    (closed / "private").write_text("canary\n")
    closed.chmod(0o700)
    script = f"{tool}; cat {closed}/private"
    assert root.shell(script).stdout == ""
    assert root.shell(script, "--share", closed / "tools").stdout == "tool\n"


def test_two_agents_at_once_do_not_see_each_other(actor: Actor) -> None:
    other = actor.hidden / "other"
    script = "echo $$ > state; echo ready; sleep 600"
    first = subprocess.Popen(
        [
            *actor.prefix,
            *actor.words("--quiet", "--hide", actor.hidden, "--expose", other, command=["/bin/sh", "-c", script]),
        ],
        cwd=other,
        env=actor.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "ready\n"
    done = actor.shell(f"ps ax -o args= | grep -c 'sleep 600$'; ls {other}; kill -0 -1; echo end")
    first.terminate()
    first.communicate(timeout=30)
    assert done.stdout == "0\nend\n"
