"""The way through a ``sudo`` that asks for no password, for a user who gets no user namespaces.

Everything is arranged in a mount and a pid namespace of its own: users and rules of the machine stay as they are.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import bring_proxy

if TYPE_CHECKING:
    import subprocess

    from tests.sandbox_actors import Actor

USER = 4243

# As root: a user who may use sudo, and a filter that refuses it a user namespace with the first process of a launch in
# it. Root may set a filter without forbidding set-uid programs, which sudo is.
ARRANGE = """
import os, struct, subprocess, sys
from runner_e2e import kernel
user, place, rules, words = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
with open("/etc/passwd") as file:
    passwd = file.read() + f"sandbox-test:*:{user}:{user}::{place}/home:/bin/sh\\n"
for name, text, mode in (("passwd", passwd, 0o644), ("sudoers", rules.replace("USER", "sandbox-test"), 0o440)):
    with open(f"{place}/{name}", "w") as file:
        file.write(text)
    os.chown(f"{place}/{name}", 0, 0)
    os.chmod(f"{place}/{name}", mode)
    kernel.mount(f"{place}/{name}", f"/etc/{name}", "", kernel.MS_BIND)
both = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID
kernel.install_filter(b"".join(struct.pack("=HBBI", *words) for words in (
    (0x20, 0, 0, 0), (0x15, 0, 4, 56),  # the number: clone
    (0x20, 0, 0, 16), (0x54, 0, 0, both), (0x15, 0, 1, both),  # its flags
    (0x06, 0, 0, 0x00050000 | 1), (0x06, 0, 0, 0x7FFF0000),
)))
os.execvp("setpriv", ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", *words])
"""

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter has the numbers of x86-64")


def launch_by_sudo(root: Actor, rules: str, *options: object, script: str) -> subprocess.CompletedProcess[str]:
    for path in (root.place, *root.place.rglob("*")):
        os.chown(path, USER, USER, follow_symlinks=False)
    code = "import sys; sys.path.insert(0, sys.argv.pop(1))\n" + ARRANGE
    words = root.words(
        "--quiet", "--hide", root.hidden, "--expose", root.hidden / "own", *options, command=["/bin/sh", "-c", script]
    )
    arranged = [root.python, "-I", "-c", code, root.source, USER, root.place, rules, *words]
    unshared = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return root.run([*unshared, *arranged])


WITHOUT_PASSWORD = "root ALL=(ALL:ALL) ALL\nUSER ALL=(ALL) NOPASSWD: ALL\n"
WITH_PASSWORD = "root ALL=(ALL:ALL) ALL\nUSER ALL=(ALL) ALL\n"


def test_sudo_gives_the_strongest_way(root: Actor) -> None:
    report = root.work / "report.json"
    script = f"id -u; cat {root.hidden}/secret; cat {root.hidden}/own/state; echo new > {root.work}/made; exit 7"
    done = launch_by_sudo(root, WITHOUT_PASSWORD, "--report", report, script=script)
    assert (done.returncode, done.stdout) == (7, "61000\nown\n"), done
    document = json.loads(report.read_text())
    assert (document["mode"], document["user"]) == ("sudo", 61000)
    inactive = {entry["layer"] for entry in document["layers"] if entry["state"] != "active"}
    assert inactive == {"network"}
    assert (root.work / "made").stat().st_uid == USER


def test_the_agent_has_nothing_of_sudo(root: Actor) -> None:
    seen = "seen=$(ps -eo comm=); echo $seen | tr ' ' '\\n' | sort -u | tr '\\n' ' '"
    script = f"sudo -n id -u 2>&1 | head -c 5; {seen}; kill -TERM $$"
    done = launch_by_sudo(root, WITHOUT_PASSWORD, script=script)
    assert (done.returncode, done.stdout) == (143, "sudo:ps sh "), done


def test_the_users_own_identity_is_kept_where_asked(root: Actor) -> None:
    done = launch_by_sudo(root, WITHOUT_PASSWORD, "--keep-user", script=f"id -u; cat {root.hidden}/secret")
    assert done.stdout == f"{USER}\n", done


def test_a_sudo_that_asks_for_a_password_is_no_way(root: Actor) -> None:
    report = root.work / "report.json"
    done = launch_by_sudo(root, WITH_PASSWORD, "--report", report, script=f"id -u; cat {root.hidden}/secret")
    assert done.stdout == f"{USER}\n", done
    document = json.loads(report.read_text())
    assert document["mode"] == "bare"
    why = next(entry["why"] for entry in document["layers"] if entry["layer"] == "mounts")
    assert "sudo asks for a password or is not allowed" in why
    done = launch_by_sudo(root, WITH_PASSWORD, "--require", "mounts", script="echo ran")
    assert (done.returncode, done.stdout) == (125, "")


def test_allowed_hosts_are_reached_through_sudo(root: Actor) -> None:
    bring_proxy(root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            hosts = f"model.example.com:80=127.0.0.1:{server.server_port}"
            script = "id -u; curl -s http://model.example.com | grep -o 'code: 501'; curl -s http://api.github.com"
            done = launch_by_sudo(root, WITHOUT_PASSWORD, "--network", hosts, script=script)
        finally:
            server.shutdown()
            thread.join()
    refused = "sandbox: api.github.com:80 is refused: it is not among the allowed hosts"
    assert done.stdout == f"61000\ncode: 501\n{refused}\n", done
