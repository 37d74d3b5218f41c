"""The settings of a repository: what the sections `lint` and `confidential` say, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runner_e2e.cells.catalog import parse_catalog, read_catalog
from runner_e2e.errors import ConfigurationError, Place
from runner_e2e.lint.selection import unknown_rule
from runner_e2e.lint.settings import CATALOG, Settings, read_settings, unknown_rules

if TYPE_CHECKING:
    from pathlib import Path


def settings(root: Path, text: str) -> Settings:
    (root / ".github").mkdir(exist_ok=True)
    (root / CATALOG).write_text(text)
    return read_settings(root)


def test_without_a_catalog_they_are_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()


def test_a_catalog_that_only_configures_the_lint(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        """\
confidential: {inputs: [case]}
lint:
  profile: all
  ignore: [vendor/]
  provider-secrets: [Openai_Key]
  paid-workflows: [.github/workflows/evaluate-*.yml]
  rules:
    secret-argv: off
    confidential-argv: {level: warning, ignore: ["legacy/**"]}
""",
    )
    assert found.names.inputs == {"case"}
    assert found.rules.profile == "all"
    assert found.provider_secrets == {"OPENAI_KEY"}
    assert found.paid_workflows.match(".github/workflows/evaluate-a.yml")
    assert found.rules.by_id["secret-argv"].level == "off"
    assert found.rules.by_id["confidential-argv"].level == "warning"
    assert found.rules.ignored("confidential-argv", "legacy/a/b.yml")
    assert not found.rules.ignored("secret-argv", "legacy/a/b.yml")
    assert found.rules.ignored("secret-argv", "vendor/x/action.yml")


CELLS = """\
harness: {command: [run]}
credentials: {OPENAI_API_KEY: , other_key: }
profiles: {p: {credential: OPENAI_API_KEY}}
environments: {e: {credential: other_key}}
suites: {s: {profiles: [p], environments: [e], cases: [a]}}
"""


def test_provider_secrets_are_the_credentials_unless_they_are_listed(tmp_path: Path) -> None:
    assert settings(tmp_path, CELLS).provider_secrets == {"OPENAI_API_KEY", "OTHER_KEY"}
    assert settings(tmp_path, f"{CELLS}lint: {{provider-secrets: []}}\n").provider_secrets == set()


@pytest.mark.parametrize("text", ["lint:\n", "confidential: {inputs: [a]}\n", "version: 1\nlint: {profile: all}\n"])
def test_a_run_says_that_there_are_no_suites(tmp_path: Path, text: str) -> None:
    settings(tmp_path, text)
    with pytest.raises(ConfigurationError, match="the catalog has no suites") as caught:
        read_catalog(tmp_path / CATALOG)
    assert "harness, profiles, environments, suites" in caught.value.problem.fix


@pytest.mark.parametrize("text", ["version: 1\n", "lint:\nprofiles: {p: }\n", "credentials: {A: }\n"])
def test_other_catalogs_need_all_of_a_run(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the catalog has no harness"):
        parse_catalog(text, path="catalog.yml", cells=False)


MISTAKES = {
    "lint: {profil: all}": ("unknown key 'profil' in lint", "did you mean profile?", 8),
    "lint: {profile: paied}": ("lint.profile 'paied' is unknown", "did you mean paid?", 17),
    "lint: {rules: {secret-argv: fatal}}": ("'fatal' is unknown", "known are: off, note, warning, error", 29),
    "lint: {rules: {secret-argv: [off]}}": ("lint.rules.secret-argv is a list", "", 29),
    "lint: {rules: {secret-argv: {levl: off}}}": ("unknown key 'levl'", "did you mean level?", 30),
    "lint: {rules: {secret-argv: true}}": ("is a boolean", "", 29),
    "lint: {rules: {Secret_Argv: off}}": ("the name 'Secret_Argv' in lint.rules is not allowed", "rename", 16),
    "lint: {ignore: [../x]}": ("lint.ignore.0 '../x' is not allowed", "rename", 17),
    "lint: {ignore: [/x]}": ("lint.ignore.0 '/x' is not allowed", "rename", 17),
    "lint: {ignore: vendor}": ("lint.ignore is text", "[a, b]", 16),
    "lint: {provider-secrets: [sk proj]}": ("lint.provider-secrets.0 (not shown) is not allowed", "rename", 27),
    "lint: {paid-workflows: [a, a]}": ("'a' is there twice", "remove", 28),
    "lint: [a]": ("lint is a list", "", 7),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_told_with_place_and_remedy(text: str) -> None:
    what, fix, column = MISTAKES[text]
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(text, path="catalog.yml", cells=False)
    (problem,) = caught.value.problems
    assert what in problem.what
    assert fix in problem.fix
    assert problem.place == Place(path="catalog.yml", line=1, column=column)


def test_unknown_rules_are_told_with_the_nearest_one(tmp_path: Path) -> None:
    found = settings(tmp_path, "lint:\n  rules:\n    secret-arg: off\n    confidential-argv: off\n")
    (problem,) = unknown_rules(found, unknown_rule)
    assert problem.what == "unknown rule 'secret-arg'"
    assert problem.fix == "did you mean secret-argv?"
    assert problem.place == Place(path=CATALOG, line=3, column=17)


def test_a_catalog_outside_of_the_repository_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    (root / CATALOG).parent.mkdir(parents=True)
    (tmp_path / "other.yml").write_text("lint: {profile: all}\n")
    (root / CATALOG).symlink_to(tmp_path / "other.yml")
    with pytest.raises(ConfigurationError, match="no file of this repository"):
        read_settings(root)
    (root / CATALOG).unlink()
    (root / CATALOG).symlink_to(root / "inside.yml")
    assert read_settings(root) == Settings()
    (root / "inside.yml").write_text("lint: {profile: all}\n")
    assert read_settings(root).rules.profile == "all"
    (root / CATALOG).unlink()
    (root / CATALOG).mkdir()
    with pytest.raises(ConfigurationError, match="it is a folder"):
        read_settings(root)
