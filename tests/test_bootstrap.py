"""Real environments from a real lock, made by the real pip, without network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.local_wheel import NAME, make_lock, make_wheel

from runner_e2e import bootstrap
from runner_e2e.errors import ConfigurationError

SOURCE = Path(__file__).resolve().parent.parent / "src"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return make_wheel(tmp_path / "wheels")


def run(program: Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], env={}, capture_output=True, text=True, check=True).stdout


def test_an_environment_stays_its_own_whatever_the_job_s_settings_say(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "pip").mkdir(parents=True)
    (elsewhere / "pip" / "__init__.py").write_text("raise SystemExit('foreign code ran')\n")
    (tmp_path / "constraint.txt").write_text(f"{NAME}==2.0\n")
    for name, value in {
        "PIP_USER": "1",
        "PIP_TARGET": str(elsewhere),
        "PIP_PREFIX": str(elsewhere),
        "PIP_DRY_RUN": "1",
        "PIP_CONSTRAINT": str(tmp_path / "constraint.txt"),
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PYTHONPATH": str(elsewhere),
        "PYTHONHOME": "/nonexistent",
    }.items():
        monkeypatch.setenv(name, value)
    # A blank and a length that a first line cannot hold: the program must start all the same.
    environment = tmp_path / "with blank" / ("long" * 40) / "environment"
    lock = make_lock(tmp_path / "lock.txt", wheel)
    programs = bootstrap.install(environment=environment, lock=lock, source=SOURCE)
    assert programs == environment / "bin"
    where = run(
        programs / "python3", "-I", "-c", f"import {NAME}, runner_e2e; print({NAME}.__file__, runner_e2e.__file__)"
    )
    assert where.startswith(str(environment / "lib"))
    assert str(SOURCE) in where
    assert re.fullmatch(r"runner-e2e \d\S*\n", run(programs / "runner-e2e", "--version"))

    inode = (environment / "pyvenv.cfg").stat().st_ino
    bootstrap.install(environment=environment, lock=lock, source=SOURCE)
    assert (environment / "pyvenv.cfg").stat().st_ino == inode, "a complete environment is made only once"


def test_a_wrong_hash_leaves_nothing_that_looks_complete(
    wheel: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environment = tmp_path / "environment"
    lock = make_lock(tmp_path / "lock.txt", wheel, digest="0" * 64)
    with pytest.raises(ConfigurationError, match=r"pip could not install lock\.txt"):
        bootstrap.install(environment=environment, lock=lock, source=SOURCE)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in capfd.readouterr().err
    assert not (environment / ".complete").exists()
    make_lock(lock, wheel)
    bootstrap.install(environment=environment, lock=lock, source=SOURCE)
    assert (environment / ".complete").read_text() == bootstrap.environment_key(lock)


def test_a_package_without_hash_is_refused(wheel: Path, tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"{NAME}==1.0\n")
    with pytest.raises(ConfigurationError, match="pip could not install"):
        bootstrap.install(environment=tmp_path / "environment", lock=lock, source=SOURCE)


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lock = tmp_path / "lock.txt"
    lock.write_text("")
    with pytest.raises(ConfigurationError, match="no environment could be made in") as caught:
        bootstrap.install(environment=tmp_path / "file" / "environment", lock=lock, source=SOURCE)
    assert "Not a directory" in str(caught.value)
    assert "check that the directory is writable" in str(caught.value)


def test_an_old_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 10, 12))
    with pytest.raises(ConfigurationError, match=r"Python 3\.10 is too old") as caught:
        bootstrap.install(environment=tmp_path / "environment", lock=tmp_path / "lock", source=SOURCE)
    assert "actions/setup-python" in str(caught.value)
    assert not (tmp_path / "environment").exists()


def test_a_python_that_cannot_import_the_package_is_named_too() -> None:
    script = SOURCE.parent / "scripts" / "make_environment.py"
    older = f"import runpy, sys; sys.version_info = (3, 9, 18); runpy.run_path({str(script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", older], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == "make_environment: Python 3.9 is too old"
    assert "Traceback" not in done.stderr


def test_key_and_place_change_with_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("one")
    key, place = bootstrap.environment_key(lock), bootstrap.environment_directory(tmp_path, lock)
    lock.write_text("two")
    assert bootstrap.environment_key(lock) != key
    assert bootstrap.environment_directory(tmp_path, lock) != place
    assert re.fullmatch(r"environment-[0-9a-f]{16}-cpython-\d+", place.name)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANTHROPIC_API_KEY", "x", True),
        ("OPENAI_API_KEY", "x", True),
        ("OPENAI_API_KEY", "", False),
        ("DAYTONA_API_KEY", "x", True),
        ("ANTHROPIC_AUTH_TOKEN", "x", True),
        ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("CLAUDE_CODE_OAUTH_TOKEN", "x", True),
        ("OPENAI_API_KEY_FILE", "x", False),
        ("GITHUB_ACTIONS", "true", False),
        ("_API_KEY", "x", False),
        ("ACTIONS_CACHE_URL", "x", False),
    ],
)
def test_secrets_in_scope(name: str, value: str, secret: bool) -> None:
    assert bootstrap.secrets_in_scope({name: value}) == ((name,) if secret else ())


def test_without_the_pip_of_this_python_the_venv_gets_one(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(bootstrap, "_installed_pip", lambda: None)
    lock = make_lock(tmp_path / "lock.txt", wheel)
    programs = bootstrap.install(environment=tmp_path / "environment", lock=lock, source=SOURCE)
    assert (programs / "pip").exists()
    assert run(programs / "python3", "-c", f"import {NAME}; print({NAME}.VALUE)") == "from the wheel\n"


def test_the_pip_of_the_installation_is_used_and_else_the_one_in_its_wheel(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = make_lock(tmp_path / "lock.txt", wheel)
    used: list[list[str]] = []
    real = subprocess.run

    def noted(command: list[str], **settings: Any) -> Any:
        used.append(command)
        return real(command, **settings)

    monkeypatch.setattr(subprocess, "run", noted)
    for number, hidden in enumerate((False, True)):
        if hidden:
            monkeypatch.setattr(bootstrap, "_installed_pip", lambda: None)
        environment = tmp_path / str(number)
        programs = bootstrap.install(environment=environment, lock=lock, source=SOURCE)
        assert not list(environment.glob("lib/*/site-packages/pip")), "nothing of pip is left in the environment"
        assert run(programs / "python3", "-I", "-c", f"import {NAME}; print({NAME}.__file__)").startswith(
            str(environment)
        )
    installed, bundled = (" ".join(command) for command in used if "install" in command)
    assert "-I" in installed
    assert "/pip/__pip-runner__.py install" in installed
    assert re.search(r"/pip-[\d.]+-py3-none-any\.whl install", bundled)


def test_a_python_without_venv_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, ["ensurepip"])

    monkeypatch.setattr("venv.create", fail)
    lock = tmp_path / "lock.txt"
    lock.write_text("")
    with pytest.raises(ConfigurationError, match="no virtual environment could be made") as caught:
        bootstrap.install(environment=tmp_path / "environment", lock=lock, source=SOURCE)
    assert "apt-get install python3-venv" in str(caught.value)
