"""What gets into a harness's environment, and what never does."""

from __future__ import annotations

import pytest
from tests.engine.catalogs import VARIABLE, catalog, cells

from runner_e2e.engine.harness_environment import check_credentials, credentials_of, harness_environment
from runner_e2e.errors import UsageError

AMBIENT = {
    "PATH": "/usr/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "HTTPS_PROXY": "http://proxy",
    "OWN_KEY": "own-secret",
    "OTHER_KEY": "other-secret",
    "GITHUB_TOKEN": "token",
    "ACTIONS_RUNTIME_TOKEN": "token",
    "INPUT_SELECTED_ID": "suite.profile.local.one",
    "WANTED": "passed on",
    VARIABLE: "another.profile.local.case",
}


def environment(**changes: object) -> dict[str, str]:
    of = catalog(credential="OWN_KEY", **changes)  # type: ignore[arg-type]
    return harness_environment(
        of, cells(of)[0], environ=AMBIENT, programs="/campaign/bin", product={VARIABLE: "suite.profile.local.one"}
    )


def test_only_what_is_allowed_gets_through() -> None:
    assert environment() == {
        "PATH": "/campaign/bin:/usr/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "HTTPS_PROXY": "http://proxy",
        "OWN_KEY": "own-secret",
        "FROM_ENVIRONMENT": "local",
        VARIABLE: "suite.profile.local.one",
    }


def test_the_catalog_names_more() -> None:
    assert environment(pass_environment=("WANTED", "NOT_SET"))["WANTED"] == "passed on"
    assert "NOT_SET" not in environment(pass_environment=("NOT_SET",))


def test_literal_values_win_over_ambient_ones_and_the_profile_over_the_harness() -> None:
    made = environment(environment={"HOME": "/tmp/home", "MODE": "harness"}, profile_environment={"MODE": "profile"})
    assert made["HOME"] == "/tmp/home"
    assert made["MODE"] == "profile"


@pytest.mark.parametrize("name", ["OTHER_KEY", VARIABLE])
def test_nothing_that_a_catalog_says_lets_a_foreign_credential_or_another_id_through(name: str) -> None:
    made = environment(pass_environment=(name,), environment={name: "literal"}, profile_environment={name: "literal"})
    assert made.get(name) == {VARIABLE: "suite.profile.local.one"}.get(name)


def test_a_literal_cannot_replace_the_own_credential() -> None:
    assert environment(environment={"OWN_KEY": "literal"})["OWN_KEY"] == "own-secret"


def test_without_a_path_the_default_one_is_used() -> None:
    of = catalog()
    made = harness_environment(of, cells(of)[0], environ={}, programs="/p", product={})
    assert made["PATH"] == "/p:/bin:/usr/bin"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_credential_stops_everything_before_it_starts(value: str | None) -> None:
    of = catalog(credential="OWN_KEY")
    environ = {} if value is None else {"OWN_KEY": value}
    with pytest.raises(UsageError, match="OWN_KEY is not set"):
        check_credentials(cells(of), environ)
    check_credentials(cells(of), {"OWN_KEY": "x"})
    check_credentials(cells(catalog()), {})


def test_credentials_of_a_cell() -> None:
    of = catalog(credential="OWN_KEY")
    assert credentials_of(cells(of)[0], AMBIENT) == {"OWN_KEY": "own-secret"}
