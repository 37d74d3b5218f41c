from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cells.catalogs import PATH, SAMPLE, parse, sample

from runner_e2e.cells.catalog import parse_catalog, read_catalog
from runner_e2e.cells.model import DEFAULT_SELECTED_ID_VARIABLE
from runner_e2e.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
harness:
  command: [run]
  {harness}
credentials: {{KEY_A: , KEY_B: }}
profiles:
  p: {{credential: KEY_A}}
  q:
environments:
  local:
groups: {{smoke: }}
{top}
suites:
  s:
    profiles: [p]
    environments: [local]
    {suite}
    cases:
      a: {case}
      {cases}
"""


def built(*, harness: str = "", top: str = "", suite: str = "", case: str = "", cases: str = "") -> str:
    """A catalog with something put into it; parts of several lines are indented to where they stand."""
    parts = {"harness": (harness, 2), "top": (top, 0), "suite": (suite, 4), "cases": (cases, 6)}
    indented = {name: text.replace("\n", "\n" + " " * depth) for name, (text, depth) in parts.items()}
    return BASE.format(case=case, **indented)


def mistakes(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(text, path=PATH)
    return caught.value.problems


def place_of(text: str, marked: str) -> str:
    """file:line:col of the only occurrence of *marked*."""
    assert text.count(marked) == 1, marked
    before = text[: text.index(marked)]
    return f"{PATH}:{before.count(chr(10)) + 1}:{len(before) - (before.rfind(chr(10)) + 1) + 1}"


def test_the_sample_is_read_as_it_is_written() -> None:
    catalog = sample()
    assert catalog.harness.command == ("python3", "harness.py")
    assert list(catalog.suites) == ["chat", "planning", "self-test"]
    assert list(catalog.suites["chat"].cases) == ["hello", "agents.change-manager", "agents.hire"]
    assert catalog.suites["chat"].cases["hello"].timeout == 90
    assert catalog.suites["chat"].cases["agents.hire"].groups == ("slow",)
    assert catalog.suites["chat"].cases["agents.hire"].timeout == 1200
    assert catalog.suites["self-test"].groups == ("smoke",)
    assert (catalog.grace, catalog.retries, catalog.plain_ids, catalog.max_parallel) == (30, 1, False, None)
    assert str(catalog.places["/suites/chat/cases/agents.hire"]) == place_of(SAMPLE, "hire]")


def test_the_nearest_level_wins() -> None:
    catalog = parse("""\
        harness: {command: [run]}
        profiles: {p: }
        environments: {e: }
        timeout: 1m
        expected-cost: 1
        suites:
          plain: {profiles: [p], environments: [e], cases: [a]}
          nested:
            profiles: [p]
            environments: [e]
            timeout: 2m
            expected-cost: 2
            cases:
              a:
              folder:
                timeout: 3m
                cases:
                  b:
                  c: {timeout: 4m, expected-cost: 0}
        """)
    found = {
        f"{suite.name}/{case.name}": (case.timeout / 60, case.expected_cost)
        for suite in catalog.suites.values()
        for case in suite.cases.values()
    }
    assert found == {
        "plain/a": (1, 1),
        "nested/a": (2, 2),
        "nested/folder.b": (3, 2),
        "nested/folder.c": (4, 0),
    }


def test_variables_keep_the_text_that_was_written() -> None:
    catalog = parse_catalog(built(harness="env: {A: 1.10, B: yes, C: true, D: 0x10, E: ''}"), path=PATH)
    assert catalog.harness.environment == {"A": "1.10", "B": "yes", "C": "true", "D": "0x10", "E": ""}


def test_the_variable_of_the_id_is_always_confidential() -> None:
    assert sample().confidential.environment == (DEFAULT_SELECTED_ID_VARIABLE,)
    catalog = parse_catalog(
        built(top="selected-id: {variable: CASE}\nconfidential: {env: [OTHER], inputs: []}"), path=PATH
    )
    assert catalog.confidential.environment == ("CASE", "OTHER")
    assert catalog.confidential.inputs == ()


DIGEST = "0123456789abcdef" * 4


def test_artifacts_are_read_with_their_digests_and_their_root() -> None:
    text = built(top=f"artifacts: {{trusted-launch-root: /rom, files: [{{path: bin/a, sha256: {DIGEST}}}]}}")
    found = parse_catalog(text, path=PATH).artifacts
    assert found.trusted_launch_root == "/rom"
    assert [(file.path, file.sha256) for file in found.files] == [("bin/a", DIGEST)]
    none = parse_catalog(built(), path=PATH).artifacts
    assert (none.files, none.trusted_launch_root) == ((), "")


# What is put into a catalog, what stands at the place of the mistake, what is said, and what the fix says.
MISTAKES: dict[str, tuple[str, str, str, str]] = {
    "unknown key at the top": (built(top="sutes: {}"), "sutes", "unknown key 'sutes'", "did you mean suites?"),
    "unknown key in a suite": (
        built(suite="manual_only: true"),
        "manual_only",
        "unknown key",
        "did you mean manual-only?",
    ),
    "unknown key of a case": (
        built(case="{cost: 1}"),
        "cost",
        "unknown key 'cost' in suites.s.cases.a",
        "expected-cost",
    ),
    "NUL in a variable": (built(harness='env: {A: "b\\0"}'), '"b\\0"', "harness.env.A holds a NUL", "remove it"),
    "merge key": (built(case="{<<: {timeout: 1m}}"), "<<", "unknown key '<<'", "known are"),
    "text for a number": (built(top='expected-cost: "1"'), '"1"', "expected-cost is text", "digits"),
    "number for a text": (built(top="selected-id: {variable: 7}"), "7", "is a number", "quotes"),
    "list for a mapping": (built(case="[1]"), "[1]", "is a list", "key: value"),
    "text for a list": (built(harness="hide: tests"), "tests", "harness.hide is text", "write it as [a, b]"),
    "text for a boolean": (built(suite="billable: 'no'"), "'no'", "is text", "true or false"),
    "yes is no boolean": (built(suite="billable: yes"), "yes", "is text", "true or false"),
    "bad suite": (built().replace("  s:\n", "  S:\n"), "S:\n", "the name 'S' in suites is not allowed", "rename"),
    "bad profile": (built(top="").replace("  q:", "  q.r:"), "q.r", "'q.r'", "rename"),
    "bad case": (built(cases="b..c:"), "b..c", "'b..c'", "rename"),
    "bad group": (built(suite="groups: [Smoke]"), "Smoke", "'Smoke'", "rename"),
    "control characters": (built(cases='"b\\e[31m":'), '"b', r"'b\x1b[31m'", "rename"),
    "unknown profile": (built().replace("[p]", "[pp]"), "pp]", "unknown profile 'pp'", "did you mean p?"),
    "unknown environment": (
        built().replace("[local]", "[locl]"),
        "locl]",
        "unknown environment",
        "did you mean local?",
    ),
    "unknown group": (built(case="{groups: [smok]}"), "smok]", "unknown group 'smok'", "did you mean smoke?"),
    "unknown group of a folder": (built(cases="f: {groups: [slow], cases: [x]}"), "slow]", "unknown group", "smoke"),
    "unknown credential": (
        built().replace(": KEY_A}", ": KEY_C}"),
        "KEY_C",
        "unknown credential 'KEY_C'",
        "KEY_A",
    ),
    "profile twice": (built().replace("[p]", "[p, q, 'p']"), "'p']", "'p' is there twice", "remove one"),
    "key twice": (built(cases="a: {timeout: 1m}"), "a: {timeout", "the key 'a' is there twice", "remove or rename"),
    "case twice in a list": (
        built(cases="f: {cases: [x, 'x']}"),
        "'x']",
        "'x' is there twice in suites.s.cases.f.cases",
        "remove one",
    ),
    "folder after dots": (
        built(cases="f.x:\nf: {cases: ['x']}"),
        "'x']",
        "case 'f.x' of suite s is there twice",
        "rename",
    ),
    "dots after folder": (
        built(cases="f: {cases: [x]}\nf.x:"),
        "f.x",
        "case 'f.x' of suite s is there twice",
        "rename",
    ),
    "empty cases": (
        built().replace("    cases:\n      a: \n", "    cases: []\n"),
        "[]",
        "suites.s.cases is empty",
        "add",
    ),
    "empty folder": (built(cases="f: {cases: []}"), "[]", "suites.s.cases.f.cases is empty", "add a case"),
    "no duration": (built(case="{timeout: 20 minutes}"), "20 minutes", "'20 minutes' is not a duration", "1h30m"),
    "negative duration": (built(top="grace: -5"), "-5", "grace is negative", "1h30m"),
    "timeout of nothing": (built(suite="timeout: 0s"), "0s", "ends every cell at once", "20m"),
    "endless timeout": (built(suite="timeout: 6d"), "6d", "the timeout is too long", "20m"),
    "infinite timeout": (built(suite="timeout: .inf"), ".inf", "is a number", "1h30m"),
    "long grace": (built(top="grace: 2h"), "2h", "the grace is too long", "30s"),
    "negative cost": (built(suite="expected-cost: -0.5"), "-0.5", "is negative", "0 or more dollars"),
    "cost that is no number": (built(suite="expected-cost: .nan"), ".nan", "is not finite", "digits"),
    "cost of nothing": (
        built(suite="billable: false", case="{expected-cost: 1}"),
        "1}",
        "not billable",
        "remove",
    ),
    "too many retries": (built(top="retries: 2"), "2", "retries is 2", "from 0 to 1"),
    "broken jobs": (built(top="max-parallel: 1.5"), "1.5", "is a number", "from 1 to 256"),
    "other version": (built(top="version: 2"), "2", "version is 2", "write 1"),
    "command as text": (built().replace("[run]", "run it"), "run it", "harness.command is text", "[a, b]"),
    "empty command": (built().replace("[run]", "[]"), "[]", "harness.command is empty", "program"),
    "empty program": (
        built().replace("[run]", "['', x]"),
        "'', x",
        "program of harness.command is empty",
        "first item",
    ),
    "id option": (built().replace("[run]", "[run, --id]"), "--id", "harness.command has --id", "in its environment"),
    "id option with a value": (built().replace("[run]", "[run, --id=x]"), "--id", "has --id", "argv-fallback"),
    "variable in the command": (
        built().replace("[run]", f"[run, ${DEFAULT_SELECTED_ID_VARIABLE}]"),
        f"${DEFAULT_SELECTED_ID_VARIABLE}",
        f"names {DEFAULT_SELECTED_ID_VARIABLE}",
        "remove it",
    ),
    "placeholder": (built().replace("[run]", "[run, '--cell={id}']"), "'--cell", "has a placeholder", "remove it"),
    "other placeholder": (built().replace("[run]", "[run, '{{ case }}']"), "'{{", "has a placeholder", "remove it"),
    "id in the command": (
        built().replace("[run]", "[run, s.p.local.a]"),
        "s.p.local.a",
        "the id of a cell",
        "remove it",
    ),
    "id in a variable": (built(harness="env: {ONLY: s.p.local.a}"), "s.p.local.a", "the id of a cell", "remove it"),
    "absolute hidden path": (
        built(harness="hide: [/etc]"),
        "/etc",
        "harness.hide '/etc' leaves the target",
        "leading /",
    ),
    "hidden path above": (built(harness="hide: [a/../../b]"), "a/..", "leaves the target", ".."),
    "directory above": (built(harness="directory: ../x"), "../x", "leaves the target", ".."),
    "sources above": (
        built(top="selected-id: {detection: auto, sources: [../x]}"),
        "../x",
        "selected-id.sources '../x' leaves the target",
        "..",
    ),
    "auto without sources": (built(top="selected-id: {detection: auto}"), "auto", "no sources", "sources:"),
    "argv that is not allowed": (built(top="selected-id: {detection: argv}"), "argv", "not true", "argv-fallback"),
    "unknown detection": (
        built(top="selected-id: {detection: envv}"),
        "envv",
        "'envv' is unknown",
        "did you mean env?",
    ),
    "reserved variable": (
        built(top="selected-id: {variable: GITHUB_X}"),
        "GITHUB_X",
        "cannot be used",
        "choose another",
    ),
    "credential of the runner": (built().replace("KEY_B", "GITHUB_TOKEN"), "GITHUB_TOKEN", "cannot be used", "rename"),
    "credential of the system": (built().replace("KEY_B", "PATH"), "PATH", "cannot be used", "rename"),
    "credential that is no name": (built().replace("KEY_B", "KEY-B"), "KEY-B", "is not allowed", "rename"),
    "credentials that are one": (built().replace("KEY_B", "key_a"), "key_a", "KEY_A and key_a are one", "remove one"),
    "credential with a value": (built().replace("KEY_B: ", "KEY_B: hunter2"), "hunter2", "has a value", "secret KEY_B"),
    "credential as literal": (built(harness="env: {KEY_A: x}"), "x}", "is set to a text", "credential: KEY_A"),
    "credential for every cell": (
        built(harness="pass-env: [KEY_A]"),
        "KEY_A]",
        "is passed to every cell",
        "credential:",
    ),
    "variable of the id as literal": (
        built(harness=f"env: {{{DEFAULT_SELECTED_ID_VARIABLE}: x}}"),
        "x}",
        "carries the selected id",
        "remove it",
    ),
    "variable of ours": (
        built(harness="pass-env: [RUNNER_E2E_CAMPAIGN_KEY]"),
        "RUNNER_E2E_C",
        "may not be set",
        "remove",
    ),
    "expression": (
        built(harness="env: {A: '${{ secrets.X }}'}"),
        "'${{",
        "an expression of a workflow",
        "credentials:",
    ),
    "exclusion of nothing": (built(top="exclusions: [{profile: q}]"), "{profile", "matches no cell", "remove it"),
    "exclusion of all": (built(top="exclusions: [{reason: x}]"), "{reason", "names nothing", "name a suite"),
    "exclusion twice": (
        built(cases="b:", top="exclusions: [{case: b, profile: p}, {case: b}]").replace("[p]", "[p, q]"),
        "{case: b, profile",
        "excluded twice",
        "remove one",
    ),
    "digest that is none": (
        built(top="artifacts: {files: [{path: /a, sha256: abc}]}"),
        "abc",
        "artifacts.files.0.sha256 'abc' is not allowed",
        "rename",
    ),
    "artifact without a digest": (built(top="artifacts: {files: [{path: /a}]}"), "{path: /a}", "has no sha256", "add"),
    "artifact twice": (
        built(top=f"artifacts: {{files: [{{path: b/c, sha256: {DIGEST}}}, {{path: ./b/c, sha256: {DIGEST}}}]}}"),
        "./b/c",
        "the artifact './b/c' is there twice",
        "remove one",
    ),
    "host that is none": (
        built(top="sandbox: {network: [api.example.com, 'https://example.com']}"),
        "'https://",
        "sandbox.network 'https://example.com': it is a URL",
        "write its host alone",
    ),
    "reach that is none": (built(top="sandbox: {network: closed}"), "closed", "'closed' is unknown", "known are"),
    "no host": (built(top="sandbox: {network: []}"), "[]}", "sandbox.network is empty", "write none"),
    "relative trusted root": (
        built(top=f"artifacts: {{trusted-launch-root: rom, files: [{{path: /a, sha256: {DIGEST}}}]}}"),
        "rom,",
        "artifacts.trusted-launch-root 'rom' is not allowed",
        "rename",
    ),
    "same exclusion twice": (
        built(cases="b:", top="exclusions:\n- {case: b}\n- {case: 'b'}"),
        "{case: 'b'}",
        "excluded twice",
        "remove one",
    ),
    "exclusion of what is unknown": (built(top="exclusions: [{case: aa}]"), "aa}", "unknown case 'aa'", "a"),
    "suite with nothing left": (built(top="exclusions: [{case: a}]"), "s:\n    profiles", "has no cell left", "remove"),
    "id of 513 characters": (
        built(cases=f"{'b' * 503}:"),
        "b" * 503,
        "an id of this case has 513 characters",
        "shorten",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_at_its_place_with_a_remedy(name: str) -> None:
    text, marked, what, fix = MISTAKES[name]
    (problem,) = mistakes(text)
    assert str(problem.place) == place_of(text, marked)
    assert what in problem.what
    assert fix in problem.fix
    assert "\x1b" not in str(problem)


def test_missing_keys_are_reported_where_they_belong() -> None:
    found = mistakes("suites:\n  s: {}\n")
    assert [(str(problem.place), problem.what) for problem in found] == [
        (f"{PATH}:1:1", "the catalog has no harness"),
        (f"{PATH}:1:1", "the catalog has no profiles"),
        (f"{PATH}:1:1", "the catalog has no environments"),
        (f"{PATH}:2:6", "suites.s has no profiles"),
        (f"{PATH}:2:6", "suites.s has no environments"),
        (f"{PATH}:2:6", "suites.s has no cases"),
    ]


def test_all_mistakes_come_in_one_run_in_the_order_of_the_file() -> None:
    text = built(
        top="retries: 5\ngrace: soon\nexclusions: [{suite: t}]",
        suite="groups: [slow]\ntimeout: 0",
        case="{timeout: x, other: 1}",
        cases="f: {cases: [x]}\nf.x:\nG:",
        harness="hide: [/]",
    )
    found = mistakes(text)
    assert len(found) == 10
    places = [problem.place for problem in found]
    assert places == sorted(places, key=lambda place: (place.line, place.column) if place else (0, 0))
    assert all(place is not None and place.line and place.column for place in places)
    assert all(problem.fix for problem in found)


def test_a_mistake_behind_an_alias_is_reported_for_each_use() -> None:
    text = built(suite="timeout: &t never", case="{timeout: *t}")
    first, second = mistakes(text)
    assert str(first.place) == str(second.place) == place_of(text, "never")
    assert {first.what.split()[0], second.what.split()[0]} == {"suites.s.timeout", "suites.s.cases.a.timeout"}


def test_an_unknown_reference_hides_no_other_mistake_and_makes_none() -> None:
    text = built(top="exclusions: [{profile: p, case: a}]").replace("profiles: [p]", "profiles: [pp]")
    (problem,) = mistakes(text)
    assert "unknown profile" in problem.what


SECRETS = {
    "shape as a value": ("gh" + "p_" + "aB3dE6gH9jK2" * 4, "harness:env: {{SOME: {0}}}"),
    "shape in a comment": ("xo" + "xb-123456789012-abcdef", "top:# old: {0}"),
    "shape as a case": ("sk-" + "ant-" + "abc123def456" * 3, "cases:{0}:"),
    "shape as a duration": ("gh" + "p_" + "aB3dE6gH9jK2" * 4, "top:timeout: {0}"),
    "shape as an unknown key": ("gh" + "p_" + "aB3dE6gH9jK2" * 4, "top:{0}: 1"),
    "shape as a key that is there twice": ("gh" + "p_" + "aB3dE6gH9jK2" * 4, "top:{0}: 1\n{0}: 1"),
    "shape as a group": ("gl" + "pat-" + "abc123def456" * 3, "suite:groups: [{0}]"),
    "random word under a credential's name": ("9f8a7c6b5d4e3f2a1b0c9d8e", "harness:env: {{AUTH_TOKEN: {0}}}"),
    "random word as a credential": ("9f8a7c6b5d4e3f2a1b0c9d8e", "harness:env: {{KEY_A: {0}}}"),
    "random word under an unknown key": ("9f8a7c6b5d4e3f2a1b0c9d8e", "top:api-key: {0}"),
    "random word under a wrong key and as an id": (
        "9f8a7c6b5d4e3f2a1b0c9d8e",
        "top:api-key: {0}\nexclusions: [{{case: {0}}}]",
    ),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_reported_and_never_repeated(name: str) -> None:
    secret, template = SECRETS[name]
    part, _, text = template.partition(":")
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(built(**{part: text.format(secret)}), path=PATH)
    shown = str(caught.value)
    assert secret not in shown
    assert secret[4:16] not in shown
    assert "secret" in shown
    assert str(caught.value.problem.place).startswith(f"{PATH}:")


def test_a_value_below_credentials_is_not_repeated_whatever_it_looks_like() -> None:
    for value in ("hunter2", "[hunter2]", "{value: hunter2}", "{description: [hunter2]}"):
        for problem in mistakes(built().replace("KEY_B: ", f"KEY_B: {value}")):
            assert "hunter2" not in str(problem)


def test_a_key_in_place_of_a_credentials_name_is_not_repeated() -> None:
    (problem,) = mistakes(built().replace("KEY_B", "Sw0rdfish-Sw0rdfish"))
    assert "the name (not shown) in credentials is not allowed" in problem.what
    assert "never its value" in problem.why


def test_a_wrong_reference_to_a_credential_is_not_repeated_unless_it_is_a_name() -> None:
    (problem,) = mistakes(built().replace(": KEY_A}", ": hunter2hunter2}"))
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "null\n"])
def test_an_empty_catalog_says_what_to_write(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(text, path=PATH)
    assert "harness" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[]", "text", "1", "suites: [", "a: b: c", "\t- a", "--- 1\n--- 2", "a: *nothing", "? [a]\n: b"]
)
def test_what_is_no_mapping_or_no_yaml_is_one_clean_error(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(text, path=PATH)
    assert str(caught.value).startswith(f"{PATH}:")


def test_a_missing_or_unreadable_file_is_a_clean_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no catalog") as caught:
        read_catalog(tmp_path / "none.yml")
    assert "--catalog" in caught.value.problem.fix
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_catalog(tmp_path)
    latin = tmp_path / "latin.yml"
    latin.write_bytes(b"harness: \xe9\n")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_catalog(latin)
    good = tmp_path / "good.yml"
    good.write_text(SAMPLE)
    assert read_catalog(good).path == str(good)


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,?\n \tx1.", max_size=60))
def test_no_text_is_answered_with_a_traceback(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_catalog(dedent(text), path=PATH)
    assert all(problem.what for problem in caught.value.problems)
