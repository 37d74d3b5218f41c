"""The prepared launcher: from threads, several at once, with everything ended in the end."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests.sandbox_actors import make_actor

from runner_e2e.errors import CommandNotExecutableError, CommandNotFoundError, LaunchError
from runner_e2e.sandbox.harness import Launcher, Prepared
from runner_e2e.sandbox.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sandbox_actors import Actor


@pytest.fixture(scope="module")
def here() -> Iterator[Actor]:
    """The user that runs the tests."""
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


def test_signals_terms_and_time(launcher: Launcher, prepared: Prepared) -> None:
    name = f"62{os.getpid()}"
    read, launch = start_sleeping(launcher, prepared, name)
    with launch, pytest.raises(TimeoutError):  # type: ignore[attr-defined]
        launch.wait(0.05)  # type: ignore[attr-defined]
    read_again, launch = start_sleeping(launcher, prepared, name)
    assert launch.terminate().status == 5  # type: ignore[attr-defined]
    assert not running(name)
    for descriptor in (read, read_again):
        os.close(descriptor)


def test_closing_the_launcher_ends_everything(prepared: Prepared) -> None:
    name = f"63{os.getpid()}"
    other = Launcher()
    read, launch = start_sleeping(other, prepared, name)
    assert running(name)
    other.close()
    with pytest.raises(LaunchError, match="killed"):
        launch.wait(30)  # type: ignore[attr-defined]
    deadline = time.monotonic() + 20
    while running(name) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(name)
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
