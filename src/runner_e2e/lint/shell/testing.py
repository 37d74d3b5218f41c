"""Test runners: which files of the repository they run, and that they run them with what is in the environment.

``bats``, ``pytest``, ``unittest``, ``vitest``, ``jest``, ``mocha`` and ``node --test`` find files by their names. Each
of these is followed as a program whose tests are called. A suite may be large: there is a budget for each file and for
all.
Source: the documentation of each runner on which tests it discovers.
"""

from __future__ import annotations

import posixpath
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.globs import Globs
from runner_e2e.lint.languages import language_of
from runner_e2e.lint.languages.process import Tests
from runner_e2e.lint.records import dataclass
from runner_e2e.lint.shell import interpreters
from runner_e2e.lint.shell.filesystem import path_keys, write_channel
from runner_e2e.lint.shell.machine import ExhaustedError
from runner_e2e.lint.shell.state import NULL, UNCAPTURED, Channel, exact
from runner_e2e.lint.values import EMPTY, Confidence, Taint, Value, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from runner_e2e.lint.shell.machine import Invocation, Machine

    Reader: TypeAlias = "Callable[[_Folders, tuple[str, ...]], _Suite]"

__all__ = ["RUNNERS", "of_interpreter", "run", "under_coverage"]

_MAX_FILES = 200
_MAX_FOLDERS = 400
_STEPS_OF_FILE = 3_000
_STEPS = 8_000
_IGNORED = frozenset({"node_modules", "build", "dist", "venv", "env", "CVS", "_darcs", "site-packages", "__pycache__"})
_COVERAGE_VALUES = frozenset(
    {
        "--source",
        "--omit",
        "--include",
        "--rcfile",
        "--data-file",
        "--context",
        "--concurrency",
        "--debug",
        "--save-signal",
    }
)
_MODULES = {"pytest": "pytest", "py.test": "pytest", "unittest": "unittest"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Suite:
    """The test files, by their paths, that a command line asks for; *names*: parts of the names of tests to run."""

    files: tuple[str, ...]
    style: str
    names: Mapping[str, tuple[str, ...]]
    captured: bool = False
    """Whether the log shows what tests print only where they fail."""
    titled: bool = False
    """Whether it shows the names of those that do not fail."""


def under_coverage(call: Invocation) -> Invocation | None:
    """The program that ``coverage run`` runs as Python does; None: it runs none."""
    words = [field.value.constant or "" for field in call.fields]
    at = next((index + 1 for index, word in enumerate(words) if word == "coverage"), 1)
    if words[at : at + 1] != ["run"]:
        return None
    at += 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in _COVERAGE_VALUES else 1
    python = replace(call.fields[0], value=Value.literal("python3"))
    return call.running((python, *call.fields[at:])) if at < len(words) else None


def of_interpreter(call: Invocation) -> Invocation | None:
    """The test runner that an interpreter runs (``python -m pytest``, ``node --test``); None where it is none."""
    words = [field.value.constant or "" for field in call.fields]
    language = language_of(call.name)
    if language == "python" and "-m" in words[:-1]:
        at = words.index("-m")
        runner = _MODULES.get(words[at + 1])
        known = all(word.startswith("-") for word in words[1:at])
        return _renamed(call, runner, at + 2) if runner is not None and known else None
    if language == "javascript" and "--test" in words:
        at = words.index("--test")
        return _renamed(call, "node --test", at + 1) if all(one.startswith("-") for one in words[1:at]) else None
    return None


def _renamed(call: Invocation, runner: str, at: int) -> Invocation:
    name = replace(call.fields[0], value=Value.literal(runner))
    return call.running((name, *call.fields[at:]))


def run(machine: Machine, call: Invocation) -> bool:
    """Follows the tests that the call of a runner in :data:`RUNNERS` runs; False when none is found."""
    runner = call.fields[0].value.constant or ""
    arguments = call.fields[1:]
    words = tuple(one.value.constant for one in arguments)
    labels = _labels(call)
    if not labels or not exact(arguments) or machine.files.find_names is None:
        return False
    known = tuple(word for word in words if word is not None)
    if len(known) < len(words):
        return False
    suite = RUNNERS[runner.rsplit("/", 1)[-1]](_Folders(machine, call), known)
    followed = list(_worth_following(machine, call, suite.files, labels))
    if followed:
        _follow(machine, call, suite, followed)
    return bool(suite.files)


def _labels(call: Invocation) -> frozenset[Taint]:
    values = (*call.environment.values(), *call.state.files.values())
    return merged(taint for value in values if value.taints for taint in value.taints)


def _worth_following(
    machine: Machine, call: Invocation, files: tuple[str, ...], labels: frozenset[Taint]
) -> Iterator[str]:
    """Those of *files* that name a labelled variable, and then, for a confidential value, the others."""
    names = [name for name, value in call.environment.items() if value.taints and name.isidentifier()]
    named = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(names)})(?![A-Za-z0-9_])")
    others: list[str] = []
    find = machine.files.find_script
    for path in files[:_MAX_FILES]:
        script = find(path) if find is not None else None
        if script is not None and names and named.search(script.text):
            yield path
        else:
            others.append(path)
    if any(taint.label.kind == "confidential" for taint in labels):
        yield from others


def _follow(machine: Machine, call: Invocation, suite: _Suite, files: list[str]) -> None:
    state = call.state
    shown, captured = state.descriptors, machine.fresh()
    if suite.captured:
        state.files[captured] = EMPTY
        kept = shown.get(1, NULL)
        state.descriptors = {**shown, 1: Channel("file", captured), 2: Channel("file", captured), UNCAPTURED: kept}
    options, begun = machine.options, machine.steps
    complete = len(files) <= _MAX_FILES
    try:
        for path in files:
            if machine.steps - begun > _STEPS:
                complete = False
                break
            machine.options = replace(options, max_steps=min(options.max_steps, machine.steps + _STEPS_OF_FILE))
            complete = _follow_one(machine, call, suite, path) and complete
    finally:
        machine.options, machine.steps, state.descriptors = options, begun, shown
    # What a test has printed is shown when it fails.
    printed = state.files.pop(captured, EMPTY).opaque().weakened(Confidence.LOW)
    if printed.taints:
        write_channel(machine, state, 1, printed, call.span)
    possible = Value.of(taint for taint in _labels(call) if taint.label.kind == "confidential")
    if not complete and possible.taints:
        reason = "not all of the tests are followed"
        machine.give_up(*call.span, reason, possible.weakened(Confidence.LOW).taints)


def _follow_one(machine: Machine, call: Invocation, suite: _Suite, path: str) -> bool:
    """Follows one file; whether that was done to its end."""
    language = "python" if path.endswith(".py") else "javascript"
    copy = replace(call, state=call.state.copy())
    try:
        if suite.style == "bats":
            from runner_e2e.lint.shell import bats

            bats.follow(machine, copy, path)
        else:
            tests = Tests(style=suite.style, names=suite.names.get(path, ()), titled=suite.titled)
            interpreters.run_tests(machine, copy, language, path, tests)
    except ExhaustedError:
        deadline = machine.options.deadline
        if deadline is not None and time.process_time() > deadline:
            raise
        return False
    except RecursionError:
        return False
    call.state.files, call.state.command_files = copy.state.files, copy.state.command_files
    call.state.listen(copy.state)
    return True


class _Folders:
    """Files of the repository, and those written before, as a runner looks for them."""

    def __init__(self, machine: Machine, call: Invocation) -> None:
        self.machine = machine
        self.call = call
        self.directory = call.state.directory.constant or WORKSPACE
        self.written = [key[0] for key in call.state.files if isinstance(key, tuple) and len(key) == 1]

    def absolute(self, path: str) -> str:
        """*path* as seen from the working directory."""
        return posixpath.normpath(posixpath.join(self.directory, path))

    def text(self, path: str) -> str | None:
        """What a file of the repository holds."""
        find = self.machine.files.find_text
        return find(self.absolute(path)) if find is not None else None

    def is_file(self, path: str) -> bool:
        """Whether there is a program at *path*."""
        key = path_keys(Value.literal(path), self.call.state)[0]
        if key in self.call.state.files:
            return True
        find = self.machine.files.find_script
        return find is not None and posixpath.splitext(path)[1] != "" and find(path) is not None

    def below(self, start: str) -> list[str]:
        """Paths of all files at or below *start*, but for folders that no runner looks into."""
        found: list[str] = []
        pending = [self.absolute(start)]
        names_in = self.machine.files.find_names
        assert names_in is not None
        for _ in range(_MAX_FOLDERS):
            if not pending:
                break
            folder = pending.pop(0)
            for name in names_in(folder):
                path = f"{folder.rstrip('/')}/{name}"
                if "." in name[1:]:
                    found.append(path)
                elif name not in _IGNORED and not name.startswith("."):
                    pending.append(path)
        prefix = self.absolute(start).rstrip("/") + "/"
        return found + [path for path in self.written if isinstance(path, str) and path.startswith(prefix)]


def _split(arguments: tuple[str, ...], values: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """Operands, and options with their values; a flag has an empty one."""
    operands: list[str] = []
    options: dict[str, str] = {}
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            operands += rest
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        else:
            name, equals, value = word.partition("=")
            options[name] = value if equals else next(rest, "") if name in values else ""
    return operands, options


# --- Python

_PYTEST_VALUES = frozenset(
    {"-k", "-m", "-c", "-p", "-o", "-n", "-W", "--ignore", "--ignore-glob", "--deselect", "--rootdir", "--confcutdir"}
    | {"--basetemp", "--junit-xml", "--junitxml", "--durations", "--maxfail", "--tb", "--color", "--log-cli-level"}
    | {"--log-level", "--timeout", "--dist", "--cov-report", "--cov-config", "--reruns", "--import-mode", "--html"}
    | {"--override-ini", "--capture", "--numprocesses", "--config-file"}
)
_SHOWING = frozenset({"-s", "--capture=no", "-rA", "-rP"})


def _pytest(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
    operands, options = _split(arguments, _PYTEST_VALUES)
    settings = _pytest_settings(folders)
    patterns = settings.get("python_files", "test_*.py *_test.py").split()
    ignored = Globs(tuple(folders.absolute(one) for one in (options.get("--ignore"),) if one))
    globs = Globs(tuple(patterns))
    chosen: dict[str, tuple[str, ...]] = {}
    for operand in operands or settings.get("testpaths", ".").split():
        path, *names = operand.split("::")
        absolute = folders.absolute(path)
        if path.endswith(".py") and folders.is_file(absolute):
            chosen[absolute] = tuple(name.partition("[")[0] for name in names)
            continue
        for each in folders.below(path):
            if globs.match(posixpath.basename(each)) and not ignored.match(each):
                chosen.setdefault(each, ())
    shown = {*arguments, *settings.get("addopts", "").split()}
    keyword = options.get("-k", "")
    if re.fullmatch(r"\w+", keyword) and keyword != "not":
        chosen = {path: (*names, f"*{keyword}") for path, names in chosen.items()}
    captured = not _SHOWING & shown and options.get("--capture") != "no"
    titled = any(re.fullmatch(r"--verbose|-[a-z]*v[a-z]*|-r[A-Za-z]*[AP]|--collect-only|--co", one) for one in shown)
    return _Suite(files=tuple(chosen), style="pytest", names=chosen, captured=captured, titled=titled)


def _pytest_settings(folders: _Folders) -> Mapping[str, str]:
    """The settings of the first file that has some."""
    import configparser
    import tomllib

    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        text = folders.text(name)
        if text is not None and f"[{section}]" in text:
            parser = configparser.ConfigParser(interpolation=None)
            try:
                parser.read_string(text)
            except configparser.Error:
                continue
            return dict(parser[section])
    text = folders.text("pyproject.toml")
    if text is None or "tool.pytest" not in text:
        return {}
    try:
        found = tomllib.loads(text).get("tool", {}).get("pytest", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return {}
    table = found.get("ini_options", found) if isinstance(found, dict) else {}
    return {
        str(key): " ".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in table.items()
    }


_UNITTEST_VALUES = frozenset({"-k", "-s", "--start-directory", "-p", "--pattern", "-t", "--top-level-directory"})


def _unittest(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
    operands, options = _split(arguments, _UNITTEST_VALUES)
    chosen: dict[str, tuple[str, ...]] = {}
    if not operands or operands[0] == "discover":
        given = operands[1:]
        start = options.get("-s") or options.get("--start-directory") or (given[0] if given else ".")
        pattern = options.get("-p") or options.get("--pattern") or (given[1] if len(given) > 1 else "test*.py")
        globs = Globs((pattern,))
        chosen = {path: () for path in folders.below(start) if globs.match(posixpath.basename(path))}
        operands = []
    for operand in operands:
        path, names = _of_module(folders, operand)
        if path:
            chosen[path] = names
    return _Suite(files=tuple(chosen), style="unittest", names=chosen)


def _of_module(folders: _Folders, operand: str) -> tuple[str, tuple[str, ...]]:
    """The file and the names in it for ``tests/test_a.py`` or ``tests.test_a.Case.test_b``."""
    if operand.endswith(".py"):
        return folders.absolute(operand), ()
    parts = operand.split(".")
    for count in range(len(parts), 0, -1):
        for end in (".py", "/__init__.py"):
            path = folders.absolute("/".join(parts[:count]) + end)
            if folders.is_file(path):
                return path, tuple(parts[count:])
    return "", ()


# --- JavaScript

_SPEC = re.compile(r"(?:^|/)[^/]*\.(?:test|spec)\.[cm]?[jt]sx?$")
_JEST = re.compile(r"(?:^|/)(?:__tests__/.*|(?:[^/]*\.)?(?:test|spec))\.[cm]?[jt]sx?$")
_NODE = re.compile(r"(?:^|/)(?:[^/]*[.\-_]test|test-[^/]*|test|test/.*)\.[cm]?js$")
_PROGRAM = re.compile(r"\.[cm]?[jt]sx?$")
_VALUES = frozenset(
    {"-t", "--testNamePattern", "-c", "--config", "-r", "--root", "--dir", "--reporter", "--project", "--pool"}
    | {"--rootDir", "--testPathPattern", "--testPathPatterns", "--reporters", "--maxWorkers", "-w", "--require", "-g"}
    | {"--grep", "-f", "--fgrep", "--timeout", "-R", "--import", "--test-name-pattern", "--test-reporter", "--loader"}
    | {"--test-reporter-destination", "--test-concurrency", "--env-file", "--environment", "--coverage.provider"}
)
_COMMANDS = frozenset({"run", "watch", "dev", "test"})
_REPORTS = frozenset({"--verbose", "verbose", "tree", "tap", "list", "line", "github"})
"""What makes a runner show the names of tests that do not fail."""


def _javascript(expression: re.Pattern[str], *, paths: bool, titled: bool | None = None) -> Reader:
    """*paths*: operands are files, folders or globs; else they are parts of paths. *titled*: whether the names of tests
    are shown; None: where that is asked for, or only one file runs.
    """

    def read(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
        operands, options = _split(arguments, _VALUES)
        operands = [one for one in operands if paths or one not in _COMMANDS]
        operands += [options[name] for name in ("--testPathPattern", "--testPathPatterns") if options.get(name)]
        start = options.get("--root") or options.get("--rootDir") or options.get("-r") or options.get("--dir") or "."
        everything = folders.below(start)
        if not operands:
            files = [path for path in everything if expression.search(path)]
        elif paths:
            globs = Globs(tuple(folders.absolute(one) for one in operands))
            files = [path for path in everything if _PROGRAM.search(path) and globs.match(path)]
        else:
            files = [path for path in everything if expression.search(path) and any(map(path.__contains__, operands))]
        shown = len(files) == 1 or bool(_REPORTS & {*arguments, *options.values()}) if titled is None else titled
        return _Suite(files=tuple(dict.fromkeys(files)), style="javascript", names={}, titled=shown)

    return read


def _mocha(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
    operands, _ = _split(arguments, _VALUES)
    read = _javascript(_PROGRAM, paths=True, titled=True)
    return read(folders, arguments if operands else (*arguments, "test"))


def _playwright(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
    if arguments[:1] != ("test",):
        return _Suite(files=(), style="javascript", names={})
    suite = _javascript(_SPEC, paths=False)(folders, arguments[1:])
    # On CI it shows dots, how many files there are.
    return replace(suite, titled=bool(_REPORTS & {word.removeprefix("--reporter=") for word in arguments}))


# --- bats

_BATS_VALUES = frozenset(
    {"-f", "--filter", "-F", "--formatter", "-j", "--jobs", "-o", "--output", "--filter-tags", "--filter-status"}
    | {"--report-formatter", "--gather-test-outputs-in", "--code-quote-style", "--parallel-binary-name"}
)
_BATS_SHOWS = frozenset({"--show-output-of-passing-tests", "-x", "--trace"})


def _bats(folders: _Folders, arguments: tuple[str, ...]) -> _Suite:
    operands, options = _split(arguments, _BATS_VALUES)
    files: list[str] = []
    for operand in operands:
        path = folders.absolute(operand)
        into = {"-r", "--recursive"} & options.keys()
        found = (each for each in folders.below(operand) if into or posixpath.dirname(each) == path)
        files += [path] if folders.is_file(path) else [each for each in found if each.endswith(".bats")]
    captured = not _BATS_SHOWS & options.keys()
    return _Suite(files=tuple(dict.fromkeys(files)), style="bats", names={}, captured=captured)


RUNNERS: dict[str, Reader] = {
    "bats": _bats,
    "pytest": _pytest,
    "py.test": _pytest,
    "unittest": _unittest,
    "vitest": _javascript(_SPEC, paths=False),
    "jest": _javascript(_JEST, paths=False),
    "mocha": _mocha,
    "playwright": _playwright,
    "bun test": _javascript(_JEST, paths=False, titled=True),
    "node --test": _javascript(_NODE, paths=True, titled=True),
}
"""Test runners by their names."""
