"""Test runners: which files they find, and what is followed in them.

``test_runners.txt`` is a repository: every line of it that ends in ``# leak`` is reported, and no other.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner_e2e.lint.linter import lint
from runner_e2e.lint.values import Confidence

BUNDLE = Path(__file__).with_name("test_runners.txt")
HEAD = """\
on: {workflow_dispatch: {inputs: {selected-id: {required: true}}}}
jobs:
  a:
    runs-on: ubuntu-latest
    env:
      CELL: ${{ inputs.selected-id }}
    steps:
"""
PYTHON = 'import os\n\n\ndef test_it():\n    os.execvp("tool", ["tool", os.environ["CELL"]])\n'
CASE = (
    "import os\nimport unittest\n\n\nclass Case(unittest.TestCase):\n"
    '    def test_it(self):\n        os.execvp("tool", ["tool", os.environ["CELL"]])\n'
)
NODE = "test('it', () => {\n  require('child_process').spawnSync('tool', [process.env.CELL])\n})\n"


def lay_out(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def leaks(
    root: Path, *, rule: str = "confidential-argv", least: Confidence = Confidence.MEDIUM
) -> set[tuple[str, int]]:
    report = lint([root / ".github" / "workflows" / "w.yml"], current=root)
    assert report.problems == ()
    return {
        (finding.span.path, finding.span.line)
        for finding in report.findings
        if finding.rule == rule and finding.confidence >= least
    }


def bundled() -> dict[str, str]:
    parts = re.split(r"(?m)^### (.*)\n", BUNDLE.read_text())[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_exactly_the_marked_lines_are_reported(tmp_path: Path) -> None:
    files = bundled()
    marked = {
        (path, number)
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# leak")
    }
    lay_out(tmp_path, files)
    assert sorted(leaks(tmp_path)) == sorted(marked)


def found(root: Path, command: str, files: dict[str, str], step: str = "") -> list[str]:
    """The files in which a leak is found when *command* runs."""
    lay_out(root, {**files, ".github/workflows/w.yml": f"{HEAD}      - run: {command}\n{step}"})
    return sorted({path for path, _ in leaks(root)})


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pytest", ["b_test.py", "deep/er/test_c.py", "test_a.py"]),
        ("py.test -q", ["b_test.py", "deep/er/test_c.py", "test_a.py"]),
        ("pytest deep", ["deep/er/test_c.py"]),
        ("pytest deep/ test_a.py", ["deep/er/test_c.py", "test_a.py"]),
        ("pytest other.py", ["other.py"]),
        ("pytest --ignore deep -p no:cacheprovider", ["b_test.py", "test_a.py"]),
        ("pytest --ignore=deep", ["b_test.py", "test_a.py"]),
        ("pytest test_a.py::test_it", ["test_a.py"]),
        ("pytest 'test_a.py::test_it[1]'", ["test_a.py"]),
        ("pytest test_a.py::test_other", []),
        ("pytest -k nothing", []),
        ("pytest -k test_a", ["test_a.py"]),
        ("python -m pytest deep", ["deep/er/test_c.py"]),
        ("python3 -W error -m pytest", []),
        ("coverage report", []),
        ("coverage run -m pytest deep", ["deep/er/test_c.py"]),
        ("coverage run --branch --source src -m pytest -q deep", ["deep/er/test_c.py"]),
        ("python -m coverage run -m pytest deep", ["deep/er/test_c.py"]),
        ("python -m coverage report", []),
        ("uv run coverage run -m pytest deep", ["deep/er/test_c.py"]),
        ("poetry run pytest deep", ["deep/er/test_c.py"]),
        ('pytest "$FOLDER"', []),
        ("python -m pytest_other", []),
        ("cd deep && pytest", ["deep/er/test_c.py"]),
    ],
)
def test_what_pytest_finds(tmp_path: Path, command: str, names: list[str]) -> None:
    paths = ("test_a.py", "b_test.py", "other.py", "deep/er/test_c.py", "node_modules/test_d.py", ".hidden/test_e.py")
    assert found(tmp_path, command, dict.fromkeys(paths, PYTHON)) == names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\ntestpaths = checks\npython_files = check_*.py\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = checks\npython_files = check_*.py\n"),
        ("tox.ini", "[pytest]\ntestpaths =\n  checks\npython_files =\n  check_*.py\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["checks"]\npython_files = ["check_*.py"]\n'),
        ("pyproject.toml", '[tool.pytest]\ntestpaths = "checks"\npython_files = "check_*.py"\n'),
    ],
)
def test_settings_of_pytest(tmp_path: Path, name: str, text: str) -> None:
    paths = ("test_a.py", "checks/check_a.py", "checks/test_b.py")
    assert found(tmp_path, "pytest", {**dict.fromkeys(paths, PYTHON), name: text}) == ["checks/check_a.py"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest\n[pytest]"),
        ("pyproject.toml", "[tool.pytest"),
        ("pyproject.toml", "tool = 'tool.pytest'"),
    ],
)
def test_settings_that_cannot_be_read(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, "pytest", {"test_a.py": PYTHON, name: text}) == ["test_a.py"]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("python -m unittest", ["test_a.py"]),
        ("python -m unittest discover -s deep", ["deep/test_b.py"]),
        ("python -m unittest discover deep", ["deep/test_b.py"]),
        ("python -m unittest discover . 'other*.py'", ["other.py"]),
        ("python -m unittest deep.test_b", ["deep/test_b.py"]),
        ("python -m unittest deep.test_b.Case", ["deep/test_b.py"]),
        ("python -m unittest deep.test_b.Case.test_it -v", ["deep/test_b.py"]),
        ("python -m unittest deep.test_b.Case.test_other", []),
        ("python -m unittest deep/test_b.py", ["deep/test_b.py"]),
        ("python -m unittest deep.none", []),
    ],
)
def test_what_unittest_finds(tmp_path: Path, command: str, names: list[str]) -> None:
    files = {"test_a.py": CASE, "deep/test_b.py": CASE, "other.py": CASE, "test_function.py": PYTHON}
    assert [name for name in found(tmp_path, command, files) if name in names] == names
    if "deep.test_b" in command or not names:
        assert found(tmp_path, command, files) == names


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("npx vitest run", ["src/a.test.js", "src/b.spec.ts"]),
        ("vitest b.spec", ["src/b.spec.ts"]),
        ("npx jest", ["__tests__/c.js", "src/a.test.js", "src/b.spec.ts"]),
        ("npx jest --testPathPattern=__tests__", ["__tests__/c.js"]),
        ("npx mocha", ["test/d.mjs"]),
        ("npx mocha src/a.test.js --timeout 50", ["src/a.test.js"]),
        ("npx mocha 'src/*.js'", ["src/a.test.js", "src/c.js"]),
        ("node --test", ["src/a.test.js", "test/d.mjs"]),
        ("node --test src/a.test.js", ["src/a.test.js"]),
        ("node --no-warnings --test --test-reporter spec test", ["test/d.mjs"]),
        ("node lib/--test", []),
        ("npm test", ["src/a.test.js", "src/b.spec.ts"]),
        ("npx c8 -r text vitest b.spec", ["src/b.spec.ts"]),
        ("npx nyc --reporter=lcov mocha", ["test/d.mjs"]),
        ("npx cross-env NODE_ENV=test jest b.spec", ["src/b.spec.ts"]),
    ],
)
def test_what_runners_of_javascript_find(tmp_path: Path, command: str, names: list[str]) -> None:
    paths = ("src/a.test.js", "src/b.spec.ts", "src/c.js", "__tests__/c.js", "test/d.mjs", "node_modules/x/a.test.js")
    files = {**dict.fromkeys(paths, NODE), "package.json": '{"scripts": {"test": "vitest run"}}'}
    assert found(tmp_path, command, files) == names


def printed(root: Path, command: str) -> set[int]:
    text = 'import os\n\n\ndef test_it():\n    print(os.environ["CELL"])\n    os.system("echo $CELL")\n'
    steps = "      - uses: org/runner-e2e-action@v1\n        with: {command: gate}\n"
    lay_out(root, {"test_a.py": text, ".github/workflows/w.yml": f"{HEAD}{steps}      - run: {command}\n"})
    return {line for path, line in leaks(root, rule="confidential-log") if path == "test_a.py"}


def test_what_tests_print_is_captured(tmp_path: Path) -> None:
    assert printed(tmp_path, "pytest") == set()
    low = leaks(tmp_path, rule="confidential-log", least=Confidence.LOW)
    assert {(".github/workflows/w.yml", 10)} == {place for place in low if place[1] > 6}
    assert printed(tmp_path, "pytest -s") == {5, 6}
    assert printed(tmp_path, "pytest --capture=no") == {5, 6}


def test_tests_that_an_earlier_step_wrote(tmp_path: Path) -> None:
    step = "      - run: pytest written\n"
    command = (
        "mkdir written && printf 'import os\\ndef test_it():\\n    os.system(\"tool $CELL\")\\n' > written/test_x.py"
    )
    lay_out(tmp_path, {".github/workflows/w.yml": f"{HEAD}      - run: |\n          {command}\n{step}"})
    assert leaks(tmp_path) == {(".github/workflows/w.yml", 10)}


def test_a_secret_is_followed_into_files_that_name_its_variable(tmp_path: Path) -> None:
    head = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n"
    workflow = f"{head}        env: {{KEY: '${{{{ secrets.KEY }}}}'}}\n"
    text = PYTHON.replace("CELL", "KEY")
    lay_out(tmp_path, {"test_a.py": text, ".github/workflows/w.yml": workflow})
    assert leaks(tmp_path, rule="secret-argv") == {("test_a.py", 5)}


def test_a_suite_that_is_too_large(tmp_path: Path) -> None:
    long = "import os\n" + "".join(f"def test_{n}():\n    x = os.environ['CELL']\n    len(x)\n" for n in range(900))
    files = {f"test_{n}.py": long for n in range(4)}
    assert found(tmp_path, "pytest", {**files, "test_0.py": PYTHON}) == ["test_0.py"]
    low = leaks(tmp_path, rule="unanalysable-script", least=Confidence.LOW)
    assert low == {(".github/workflows/w.yml", 8)}
    assert leaks(tmp_path, rule="unanalysable-script") == set()


# --- Names of tests.

PLAIN_NODE = "const { test } = require('node:test')\ntest(process.env.CELL, () => {})\n"
NESTED = "test('a', async (t) => { await t.test(process.env.CELL, () => {}) })\n"
PARAMETERS = PYTHON.replace("def", "@pytest.mark.parametrize('c', [os.environ['CELL']])\ndef")
TITLE = "{name}(`case ${{process.env.CELL}}`, () => {{}})\n"


@pytest.mark.parametrize(
    ("command", "path", "text", "shown"),
    [
        ("node --test", "a.test.js", TITLE.format(name="test"), Confidence.HIGH),
        ("npx mocha", "test/a.js", TITLE.format(name="describe"), Confidence.HIGH),
        ("bun test", "a.test.ts", TITLE.format(name="it.only"), Confidence.HIGH),
        ("npx vitest run", "a.test.ts", TITLE.format(name="describe.skip"), Confidence.HIGH),
        ("npx jest --verbose a b", "a.test.js", TITLE.format(name="it"), Confidence.HIGH),
        ("npx jest", "a.test.js", TITLE.format(name="beforeEach"), None),
        ("npx jest", "a.test.js", "it.each([process.env.CELL])('case %s', () => {})\n", Confidence.HIGH),
        ("npx jest", "a.test.js", "it.each([process.env.CELL])('case', () => {})\n", None),
        ("npx jest", "a.test.js", "describe.each([{ id: process.env.CELL }])('case $id', () => {})\n", Confidence.HIGH),
        ("npx playwright test --reporter=list", "a.spec.ts", TITLE.format(name="test"), Confidence.HIGH),
        ("npx playwright test", "a.spec.ts", TITLE.format(name="test"), Confidence.LOW),
        ("npx playwright install", "a.spec.ts", TITLE.format(name="test"), None),
        ("node a.js", "a.js", PLAIN_NODE, Confidence.HIGH),
        ("node --test", "a.test.js", NESTED, Confidence.HIGH),
        ("pytest -v", "test_a.py", PARAMETERS, Confidence.HIGH),
        ("pytest", "test_a.py", PARAMETERS, Confidence.LOW),
    ],
)  # fmt: skip
def test_the_name_of_a_test_stands_in_the_log(
    command: str, path: str, text: str, shown: Confidence | None, tmp_path: Path
) -> None:
    text = text.replace("test_it()", "test_it(c)").replace("import os\n", "import os\nimport pytest\n")
    lay_out(tmp_path, {path: text, ".github/workflows/w.yml": f"{HEAD}      - run: {command}\n"})
    found = {
        least
        for least in Confidence
        if path in {place[0] for place in leaks(tmp_path, rule="confidential-log", least=least)}
    }
    assert (max(found) if found else None) == shown


def test_of_several_files_some_runners_show_only_the_names_that_fail(tmp_path: Path) -> None:
    lay_out(tmp_path, {"a.test.js": TITLE.format(name="test"), "b.test.js": "test('b', () => {})\n"})
    lay_out(tmp_path, {".github/workflows/w.yml": f"{HEAD}      - run: npx jest\n"})
    assert not {path for path, _ in leaks(tmp_path, rule="confidential-log")} & {"a.test.js"}
    assert ("a.test.js", 1) in leaks(tmp_path, rule="confidential-log", least=Confidence.LOW)


@pytest.mark.parametrize(("command", "path"), [("bun test", "a.test.ts"), ("npx playwright test", "e2e/a.spec.ts")])
def test_tests_of_other_runners_are_followed(command: str, path: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {path: NODE, ".github/workflows/w.yml": f"{HEAD}      - run: {command}\n"})
    assert leaks(tmp_path) == {(path, 2)}
