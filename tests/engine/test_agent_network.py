"""What the catalog says that agents reach holds for every launch of an attempt, and stands in its record."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.test_local import PASS, Bench, only

from runner_e2e.sandbox.policy import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from runner_e2e.report.results import Result


class Model(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"an answer\n")

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


# The Python of the launcher is the first on PATH, which need not have the proxy.
LAUNCH = 'cd "$RUNNER_E2E_INSTANCE" && python3 -I -S "$RUNNER_E2E_AGENT_SANDBOX" --quiet'


def run(tmp_path: Path, launch: str, network: Network) -> tuple[Bench, Result]:
    bench = Bench(tmp_path)
    return bench, only(bench.run(f"{launch}\n{PASS}", network=network))


def report_of(result: Result) -> Mapping[str, Any]:
    (report,) = result.sandbox
    return report


def test_agents_reach_the_hosts_of_the_catalog_and_the_record_says_what_they_asked_for(
    tmp_path: Path, port: int
) -> None:
    asking = "curl -s http://model.example.com; curl -s https://api.github.com; true"
    network = Network(reach="hosts", hosts=(f"model.example.com:80=127.0.0.1:{port}",))
    bench, result = run(tmp_path, f"{LAUNCH} -- sh -c '{asking}'", network)
    assert "an answer" in bench.recorder.lines()
    report = report_of(result)
    assert report["network"] == "hosts"
    assert report["hosts"] == list(network.hosts)
    told = {(entry["host"], entry["port"]): entry["refused"] for entry in report["asked"]}
    assert told == {("model.example.com", 80): "", ("api.github.com", 443): "it is not among the allowed hosts"}


def test_a_harness_narrows_the_network_and_does_not_widen_it(tmp_path: Path, port: int) -> None:
    script = f"{LAUNCH} --network none -- curl -s http://127.0.0.1:{port}; {LAUNCH} --network open -- echo ran"
    bench, result = run(tmp_path, script, Network(reach="loopback"))
    assert "an answer" not in bench.recorder.lines()
    assert "ran" not in bench.recorder.lines()
    assert any("--network open is refused" in line for line in bench.recorder.lines())
    assert report_of(result)["network"] == "none"


def test_a_catalog_that_says_nothing_leaves_the_network_open(tmp_path: Path, port: int) -> None:
    bench, result = run(tmp_path, f"{LAUNCH} -- curl -s http://127.0.0.1:{port}", Network())
    assert "an answer" in bench.recorder.lines()
    assert report_of(result)["network"] == "open"
