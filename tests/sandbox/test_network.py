"""What an agent reaches: nothing, its own loopback, or allowed hosts through the proxy."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sandbox_actors import bring_proxy

from runner_e2e.sandbox import deputies
from runner_e2e.sandbox.arguments import parse_arguments, policy_of
from runner_e2e.sandbox.planning import survey
from runner_e2e.sandbox.policy import LAYERS, Network, Policy
from runner_e2e.sandbox.policy_json import parse_policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from tests.sandbox_actors import Actor

    Reach = Literal["open", "none", "loopback", "hosts"]

WALLS = ["landlock", "locked-mounts"]


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = f"{self.path} for {self.headers['Host']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[::-1])

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a service on this machine's loopback."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def proxied(actor: Actor) -> Actor:
    bring_proxy(actor)
    return actor


def asked(path: Path) -> dict[tuple[str, int], tuple[int, str]]:
    entries = json.loads(path.read_text())["asked"]
    return {(entry["host"], entry["port"]): (entry["times"], entry["refused"]) for entry in entries}


# --- what is asked for ----------------------------------------------------------------------------------------------


def network(*options: str, policy: str = "", tmp_path: Path) -> Network:
    words = [*options, "--", "true"]
    if policy:
        (tmp_path / "policy.json").write_text(policy)
        words = ["--policy", str(tmp_path / "policy.json"), *words]
    return policy_of(parse_arguments(words), {}).network


def document(network: object) -> str:
    return json.dumps({"schema": "runner-e2e.sandbox-policy/v1", "network": network})


def test_hosts_come_from_options_and_files(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# providers\napi.example.com\n\n*.example.net:8443  # all of them\n")
    given = network("--network", f"{tmp_path}/hosts", "--network", "10.0.0.0/8:80,a.example.org", tmp_path=tmp_path)
    assert given.hosts == ("api.example.com", "*.example.net:8443", "10.0.0.0/8:80", "a.example.org")


@pytest.mark.parametrize(
    ("policy", "options", "reach"),
    [
        ("loopback", ["--network", "none"], "none"),
        (["*.example.com"], ["--network", "loopback"], "loopback"),
        (["*.example.com"], ["--network", "api.example.com"], "hosts"),
        ("open", ["--network", "api.example.com"], "hosts"),
        ("none", [], "none"),
    ],
)
def test_an_option_narrows_what_the_policy_allows(
    policy: object, options: list[str], reach: str, tmp_path: Path
) -> None:
    assert network(*options, policy=document(policy), tmp_path=tmp_path).reach == reach


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("none", ["--network", "loopback"], "the policy allows none"),
        ("loopback", ["--network", "open"], "the policy allows loopback"),
        (
            ["a.example.com"],
            ["--network", "b.example.com"],
            "b.example.com is refused\n  why: the policy allows a.example.com",
        ),
        ("none", ["--without", "network"], "cannot be switched off"),
        ("open", ["--network", "none", "--network", "a.example.com"], "beside other values"),
        ("open", ["--network", "/no/such/file"], "cannot be read"),
        ("open", ["--network", "/dev/null"], "names no host"),
        ("open", ["--network", "https://example.com"], "it is a URL"),
        ("open", ["--network", "a.example.com,"], "is no name of a host"),
        (["*"], [], "is no name of a host"),
        ([], [], "network lists no host"),
        ("closed", [], "network is 'closed'"),
        (7, [], "network is 7"),
        ({"hosts": []}, [], "network is {'hosts': []}"),
        ([7], [], "network is not a list of strings"),
    ],
)
def test_what_would_widen_or_cannot_be_read_is_refused(
    policy: object, options: list[str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=r"refused|network|lists|cannot") as refused:
        network(*options, policy=document(policy), tmp_path=tmp_path)
    assert words in str(refused.value)


def test_a_policy_keeps_its_network_through_json() -> None:
    for given in (Network(), Network(reach="none"), Network(reach="hosts", hosts=("a.example.com", "[::1]:80"))):
        policy = Policy(network=given)
        assert parse_policy(json.dumps(policy.to_document()), path="p").network == given
        assert policy.need("network") == ("off" if given.reach == "open" else "required")
    assert LAYERS["network"] == "off"


# --- launches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wall", WALLS)
def test_with_no_network_not_even_loopback_is_there(actor: Actor, port: int, wall: str) -> None:
    script = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
    assert actor.launch("--wall", wall, command=["/bin/bash", "-c", script]).returncode == 0
    done = actor.launch("--wall", wall, "--network", "none", command=["/bin/bash", "-c", script])
    assert "Network is unreachable" in done.stderr


LOOPBACK = """
import socket, sys
for address in ("127.0.0.1", "::1"):
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
        with socket.create_connection(server.getsockname()[:2]) as client:
            accepted, _ = server.accept()
            accepted.sendall(b"own")
            print(client.recv(3).decode())
            accepted.close()
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)
except ConnectionRefusedError:
    print("refused")
"""


@pytest.mark.parametrize("wall", WALLS)
def test_with_loopback_an_agent_reaches_its_own_services_alone(actor: Actor, port: int, wall: str) -> None:
    command = [actor.python, "-c", LOOPBACK, port]
    done = actor.launch("--wall", wall, "--network", "loopback", command=command)
    assert done.stdout == "own\nown\nrefused\n", done


def curl(*words: object) -> list[object]:
    return ["curl", "--silent", "--show-error", "--max-time", "60", *words]


@pytest.mark.parametrize("wall", WALLS)
def test_allowed_hosts_are_reached_and_told(proxied: Actor, port: int, wall: str) -> None:
    report = proxied.place / "report.json"
    model, telling = "http://model.example.com", ["--header", "Host: api.github.com"]
    done = proxied.launch(
        *["--wall", wall, "--report", report, "--network", f"model.example.com:80=127.0.0.1:{port}"],
        command=[
            *[*curl(f"{model}/one"), *telling, "--proxytunnel"],
            *["--next", "--silent", *telling, f"{model}/two", f"{model}/3"],
        ],
    )
    # Through a tunnel the bytes are the agent's own; a plain request says the host that it was judged by.
    assert done.stdout == "/one for api.github.com\n/two for model.example.com\n/3 for model.example.com\n", done
    assert asked(report) == {("model.example.com", 80): (3, "")}
    assert json.loads(report.read_text())["hosts"] == [f"model.example.com:80=127.0.0.1:{port}"]


def test_what_is_not_allowed_is_refused_and_told(proxied: Actor, port: int) -> None:
    report = proxied.place / "report.json"
    done = proxied.launch(
        *["--report", report, "--network", f"model.example.com:80=127.0.0.1:{port}"],
        command=["/bin/sh", "-c", "; ".join([
            "curl -sS https://api.github.com",
            "curl -sS http://api.github.com/",
            f"curl -sS --noproxy '' http://127.0.0.1:{port}/",
            f"curl -sS --noproxy '*' http://127.0.0.1:{port}/",
            "curl -sS http://model.example.com:81/",
            "curl -sS --noproxy '' http://169.254.169.254/latest/meta-data/",
            "curl -sS --noproxy '*' https://api.github.com",
        ])],
        quiet=False,
    )  # fmt: skip
    shown = done.stdout + done.stderr
    assert "tunnel failed, response 403" in shown
    assert "sandbox: api.github.com:80 is refused: it is not among the allowed hosts" in done.stdout
    assert "Could not resolve host: api.github.com" in done.stderr  # there is no DNS inside
    assert "/ for" not in shown
    refused = "it is not among the allowed hosts"
    assert asked(report) == {
        ("api.github.com", 443): (1, refused),
        ("api.github.com", 80): (1, refused),
        ("127.0.0.1", port): (1, refused),
        ("model.example.com", 81): (1, refused),
        ("169.254.169.254", 80): (1, refused),
    }
    assert f"sandbox: refused api.github.com:443 (1x): {refused}" in done.stderr


@pytest.mark.parametrize(("reach", "hidden"), [("none", True), ("loopback", True), ("open", False)])
def test_services_that_look_names_up_are_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reach: Reach, *, hidden: bool
) -> None:
    place = tmp_path / "resolver"
    with socket.socket(socket.AF_UNIX) as resolver:
        resolver.bind(str(place))
        monkeypatch.setattr(deputies, "RESOLVERS", (str(place), str(tmp_path / "none")))
        found = survey(Policy(network=Network(reach=reach)), directory=str(tmp_path), environment={}, user=1000)
    assert (str(place) in [fact.real for fact in found.hidden]) is hidden


def test_a_service_on_loopback_is_forwarded_for_any_protocol(proxied: Actor, port: int) -> None:
    script = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /raw HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"
    report = proxied.place / "report.json"
    done = proxied.launch("--report", report, "--network", f"127.0.0.1:{port}", command=["/bin/bash", "-c", script])
    assert "/raw for x\n" in done.stdout, done
    assert asked(report) == {("127.0.0.1", port): (1, "")}


def test_large_bodies_pass_both_ways(proxied: Actor, port: int) -> None:
    body = proxied.work / "body"
    body.write_bytes(bytes(range(256)) * 20_000)
    url = "http://model.example.com/"
    done = proxied.launch(
        *["--network", f"model.example.com:80=127.0.0.1:{port}"],
        command=["/bin/sh", "-c", f"for how in '' -p; do curl -sS $how --data-binary @{body} {url} | sha256sum; done"],
    )
    expected = subprocess.run(["sha256sum"], input=body.read_bytes()[::-1], capture_output=True, check=True).stdout
    assert done.stdout == 2 * expected.decode(), done


def test_the_launchers_own_proxy_is_no_longer_named(actor: Actor) -> None:
    variables = actor.environment(HTTPS_PROXY="http://proxy.example.com:1", all_proxy="socks://x", OTHER="kept")
    done = actor.launch("--network", "loopback", command=["/usr/bin/env"], env=variables)
    assert "OTHER=kept" in done.stdout
    assert "proxy" not in done.stdout.lower()


def test_a_rule_that_shows_the_job_is_named_in_the_log(proxied: Actor) -> None:
    done = proxied.launch("--network", "*.github.com", command=["/bin/true"], quiet=False)
    assert (
        "sandbox: limit: the agent can ask GitHub for the name of its own job: *.github.com is allowed" in done.stderr
    )


def test_without_the_proxys_package_nothing_starts(actor: Actor) -> None:
    (actor.source / "proxy.py").write_text("raise ImportError('no such thing')\n")
    done = actor.launch("--network", "a.example.com", command=["/bin/echo", "ran"])
    assert (done.returncode, done.stdout) == (125, "")
    assert "the proxy to the allowed hosts cannot be started" in done.stderr
    assert "install runner-e2e-action[network]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_connected_socket_of_the_launcher_is_not_inherited(actor: Actor, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as held:
        script = f"import os; os.fstat({held.fileno()})"
        words = actor.words("--quiet", "--network", "none", command=[actor.python, "-c", script])
        plain = actor.run([actor.python, "-c", script], pass_fds=[held.fileno()])
        done = actor.run(words, pass_fds=[held.fileno()])
    assert plain.returncode == 0
    assert "Bad file descriptor" in done.stderr


# --- with Landlock alone --------------------------------------------------------------------------------------------

FAMILIES = """
import socket
for name in ("AF_UNIX", "AF_NETLINK", "AF_INET", "AF_INET6", "AF_VSOCK"):
    try:
        socket.socket(getattr(socket, name), socket.SOCK_RAW if name == "AF_NETLINK" else socket.SOCK_STREAM).close()
        print(name, end=" ")
    except OSError:
        pass
"""


def test_with_landlock_alone_no_network_is_kept_by_system_calls(actor: Actor) -> None:
    report = actor.place / "report.json"
    done = actor.launch(
        *["--without", "mounts", "--network", "none", "--report", report], command=[actor.python, "-c", FAMILIES]
    )
    assert done.stdout == "AF_UNIX AF_NETLINK ", done
    layers = {entry["layer"]: (entry["state"], entry["why"]) for entry in json.loads(report.read_text())["layers"]}
    assert layers["network"] == ("active", "none, by system calls")


@pytest.mark.parametrize("reach", ["loopback", "a.example.com"])
def test_with_landlock_alone_anything_else_is_refused(actor: Actor, reach: str) -> None:
    done = actor.launch("--without", "mounts", "--network", reach, command=["/bin/echo", "ran"])
    assert (done.returncode, done.stdout) == (125, "")
    assert "the layer network is required and this host refuses it" in done.stderr


def test_a_network_that_is_left_open_costs_no_filter(actor: Actor) -> None:
    count = actor.launch(command=["/bin/grep", "Seccomp_filters", "/proc/self/status"]).stdout.split()
    closed = actor.launch("--network", "none", command=["/bin/grep", "Seccomp_filters", "/proc/self/status"])
    assert int(closed.stdout.split()[1]) == int(count[1]) + 1


def test_nothing_of_the_proxy_is_left_behind(proxied: Actor, port: int) -> None:
    done = proxied.launch(
        "--network", f"127.0.0.1:{port}", command=["/bin/bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}; kill -9 $$"]
    )
    assert done.returncode == 137
    lines = [_command_line(process) for process in Path("/proc").iterdir() if process.name.isdigit()]
    assert [line for line in lines if os.fsencode(proxied.source) in line and b"egress" in line] == []


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
