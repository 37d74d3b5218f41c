"""A launch that is prepared before it is asked for is used exactly while the machine is what it was."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner_e2e.errors import RunnerE2EError
from runner_e2e.sandbox.expected import Expected, Wanted, recall, remember
from runner_e2e.sandbox.origin import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undoes what :meth:`Wanted.enter` does."""
    before = dict(os.environ)
    yield
    monkeypatch.undo()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for directory in ("hidden/own", "other", "home", "work/deep", "bin"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "hidden" / "secret").write_text("canary")
    (tmp_path / "home" / ".bashrc").write_text("")
    (tmp_path / "link").symlink_to("hidden")
    (tmp_path / "policy.json").write_text(
        f'{{"schema": "runner-e2e.sandbox-policy/v1", "hide_if_present": ["{tmp_path}/later"]}}'
    )
    return tmp_path


def wanted(place: Path, *more: str) -> Wanted:
    options = ["--hide", f"{place}/link", "--expose", f"{place}/hidden/own", "--policy", "../policy.json", *more]
    environment = {"HOME": f"{place}/home", "PATH": f"{place}/bin:/usr/bin:/bin", "LANG": "C"}
    return Wanted(
        directory=os.fsencode(place / "work"),
        options=tuple(map(os.fsencode, options)),
        environment=tuple((os.fsencode(name), os.fsencode(value)) for name, value in environment.items()),
    )


def expect(place: Path, *more: str, files: Callable[[], tuple[Path, ...]] = tuple) -> Expected:
    one = Expected(wanted(place, *more), files, Origin())
    one.plan()
    os.chdir(place / "work")
    return one


@pytest.fixture(autouse=True)
def _directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_same_again_is_expected_whatever_its_command(place: Path) -> None:
    one = expect(place)
    assert one.is_met_by(wanted(place))
    plan, packed = one.plan()
    assert plan.argv == ()
    assert f"{place}/hidden" in [fact.real for fact in one.prepared.found.hidden]
    assert packed.agent == (plan.user, plan.group)


def test_what_is_expected_is_prepared_in_its_directory_and_left(place: Path) -> None:
    before = Path.cwd()
    one = Expected(wanted(place), tuple, Origin())
    assert Path.cwd() == before
    assert one.prepared.found.directory == f"{place}/work"


def change_directory(place: Path) -> Wanted:
    return wanted(place).replace(directory=os.fsencode(place / "other"))


def change_options(place: Path) -> Wanted:
    return wanted(place, "--hide", f"{place}/other")


def change_environment(place: Path) -> Wanted:
    one = wanted(place)
    return one.replace(environment=(*one.environment, (b"MORE", b"")))


@pytest.mark.parametrize("change", [change_directory, change_options, change_environment])
def test_another_request_is_not_what_was_expected(place: Path, change: Callable[[Path], Wanted]) -> None:
    assert not expect(place).is_met_by(change(place))


def replace(path: Path, entry: str = "deep") -> None:
    path.rename(path.with_name("moved"))
    (path / entry).mkdir(parents=True)


def lead_elsewhere(link: Path) -> None:
    link.unlink()
    link.symlink_to("other")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a hidden path is replaced": lambda place: replace(place / "hidden"),
    "a hidden path is gone": lambda place: (place / "hidden").rename(place / "moved"),
    "a link leads elsewhere": lambda place: lead_elsewhere(place / "link"),
    "the workspace is replaced": lambda place: replace(place / "work"),
    "an exposed path is replaced": lambda place: replace(place / "hidden" / "own"),
    "a directory above changes hands": lambda place: (place / "hidden").chmod(0o700),
    "a hard link leads out": lambda place: (place / "other" / "name").hardlink_to(place / "hidden" / "secret"),
    "a path to hide appears": lambda place: (place / "later").mkdir(),
    "the policy says more": lambda place: (place / "policy.json").write_text(
        '{"schema": "runner-e2e.sandbox-policy/v1"}'
    ),
    "the policy is gone": lambda place: (place / "policy.json").unlink(),
    "the home has another entry": lambda place: (place / "home" / "new").write_text(""),
    "a directory of commands goes": lambda place: (place / "bin").rmdir(),
    "hooks appear": lambda place: (place / "work" / ".git" / "hooks").mkdir(parents=True),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_machine_that_changed_is_looked_at_again(place: Path, change: Callable[[Path], object]) -> None:
    one = expect(place)
    assert one.is_met_by(wanted(place))
    change(place)
    assert not one.is_met_by(wanted(place))


def test_files_of_the_runner_that_come_and_go_are_noticed(place: Path) -> None:
    files = [place / "other"]
    one = expect(place, files=lambda: tuple(files))
    assert one.is_met_by(wanted(place))
    files.append(place / "bin")
    assert not one.is_met_by(wanted(place))


def test_what_does_not_matter_to_the_launch_may_change(place: Path) -> None:
    one = expect(place)
    (place / "work" / "deep" / "file").write_text("x")
    (place / "unrelated").mkdir()
    (place / "hidden" / "new").write_text("more")
    assert one.is_met_by(wanted(place))


def test_a_refused_request_is_not_prepared(place: Path) -> None:
    with pytest.raises(RunnerE2EError):
        expect(place, "--hide", f"{place}/none")


def test_nothing_is_made_for_a_launch_that_may_not_come(place: Path) -> None:
    (place / "policy.json").write_text(f'{{"schema": "runner-e2e.sandbox-policy/v1", "create": ["{place}/made"]}}')
    with pytest.raises(LookupError):
        expect(place)
    assert not (place / "made").exists()


def test_a_request_is_kept_in_a_file_without_a_name(place: Path) -> None:
    one = wanted(place)
    descriptor = remember(one)
    assert recall(descriptor) == one
    assert str(Path(f"/proc/self/fd/{descriptor}").readlink()) == "/memfd:wanted (deleted)"
    os.close(descriptor)
    assert remember(one.replace(environment=((b"LONG", bytes(2 << 20)),))) == -1


def test_a_request_that_cannot_be_kept_is_not(place: Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = len([*Path("/proc/self/fd").iterdir()])
    for most in (0, 8):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, usual[1]))
        try:
            assert remember(wanted(place)) == -1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert len([*Path("/proc/self/fd").iterdir()]) == before
