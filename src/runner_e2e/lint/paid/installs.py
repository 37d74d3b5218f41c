"""Commands that install packages, and whether they run the programs that packages bring for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runner_e2e.lint.paid.scripts import ScriptCommand
    from runner_e2e.lint.repository import Repository

__all__ = ["ACTIONS", "VARIABLES", "remedy_of"]

ACTIONS: Mapping[str, str] = {
    "bahmutov/npm-install": "",
    "pnpm/action-setup": "run_install",
    "ruby/setup-ruby": "bundler-cache",
}
"""Actions that install with the programs of packages -> the input that makes them do it (empty: they always do)."""

VARIABLES = (
    *("NPM_CONFIG_IGNORE_SCRIPTS", "PNPM_CONFIG_IGNORE_SCRIPTS", "YARN_IGNORE_SCRIPTS", "YARN_ENABLE_SCRIPTS"),
    *("PIP_ONLY_BINARY", "UV_ONLY_BINARY", "UV_NO_BUILD", "UV_NO_SYNC"),
)
"""Variables of the environment that switch the programs off; the tools read them in lower case too."""

_OFF = frozenset(("false", "0", "no", "off", ""))
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_PIP = re.compile(r"pip[\d.]*")


def remedy_of(command: ScriptCommand, environment: Mapping[str, str], repository: Repository) -> str | None:
    """What to write so that *command* runs no programs of packages; None when it runs none.

    *environment* are the known variables of the step; those set for the command alone count too.
    """
    words = list(command.texts)
    name = command.name
    if _PYTHON.fullmatch(name) and words[1:3] == ["-m", "pip"]:
        name, words = "pip", ["pip", *words[3:]]
    known = {**environment, **{key: value for key, value in command.assigned if value is not None}}
    if _PIP.fullmatch(name):
        name = "pip"
    judge = _JUDGES.get(name)
    return judge(words[1:], known, repository) if judge is not None else None


_TAKE_VALUES = frozenset(
    ("--cache", "--cwd", "--dir", "--filter", "--loglevel", "--prefix", "--python", "--registry", "--userconfig",
     "--workspace", "-C", "-F", "-w")
)  # fmt: skip
"""Options before the verb whose next word is their value."""


def _verb(words: Sequence[str]) -> str:
    before = ""
    for word in words:
        if word and not word.startswith("-") and before not in _TAKE_VALUES:
            return word
        before = word
    return ""


def _has(words: Sequence[str], *options: str) -> bool:
    """Whether one of *options* is there, by itself or with a value that does not switch it off."""
    for word in words:
        name, equals, value = word.partition("=")
        if name in options and (not equals or value.lower() not in _OFF):
            return True
    return False


def _set(known: Mapping[str, str], *names: str) -> bool:
    return any(key.lower() in names and value.lower() not in _OFF for key, value in known.items())


_NPM_VERBS = frozenset(
    ("add", "ci", "clean-install", "i", "ic", "in", "ins", "inst", "insta", "instal", "install", "install-clean",
     "install-test", "isntall", "it", "rb", "rebuild", "update", "up", "upgrade", "cit", "install-ci-test")
)  # fmt: skip


def _npm(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    verb = _verb(words)
    if verb in {"exec", "x", "init", "create"}:
        return "install the program before, with `--ignore-scripts`, and start it by its path"
    if verb not in _NPM_VERBS or _has(words, "--ignore-scripts"):
        return None
    if _set(known, "npm_config_ignore_scripts") or _configured(repository, ".npmrc", "ignore-scripts"):
        return None
    return "add `--ignore-scripts`"


def _pnpm(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    verb = _verb(words)
    if verb == "dlx":
        return "install the program before, with `--ignore-scripts`, and start it by its path"
    if verb not in {"add", "ci", "i", "install", "rebuild", "up", "update"} or _has(words, "--ignore-scripts"):
        return None
    if _set(known, "npm_config_ignore_scripts", "pnpm_config_ignore_scripts"):
        return None
    return None if _configured(repository, ".npmrc", "ignore-scripts") else "add `--ignore-scripts`"


def _yarn(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    verb = _verb(words)
    if verb == "dlx":
        return "install the program before, with scripts switched off, and start it by its path"
    if verb not in {"", "add", "install", "up", "upgrade", "rebuild"} or _has(words, "--version", "--help", "-v", "-h"):
        return None
    if _has(words, "--ignore-scripts") or "--mode=skip-build" in words:
        return None
    off = any(key == "YARN_ENABLE_SCRIPTS" and value.lower() in _OFF for key, value in known.items())
    if off or _set(known, "npm_config_ignore_scripts", "yarn_ignore_scripts"):
        return None
    if _configured(repository, ".yarnrc.yml", "enableScripts", off=True):
        return None
    return "add `--ignore-scripts` (Yarn 1), or `--mode=skip-build`"


def _bun(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    del known, repository
    verb = _verb(words)
    if verb in {"x", "create"}:
        return "install the program before, with `--ignore-scripts`, and start it by its path"
    if verb not in {"add", "i", "install", "update"} or _has(words, "--ignore-scripts"):
        return None
    return "add `--ignore-scripts`"


def _loader(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    """``npx`` and ``bunx`` load what is not there, and run its programs."""
    del known, repository
    if _has(words, "--no-install", "--no") or not _verb(words):
        return None
    return "install the program before, with `--ignore-scripts`, and write `npx --no-install`"


def _pip(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    del repository
    if _verb(words) not in {"install", "wheel", "download"}:
        return None
    return None if _only_binary(words, known, "pip_only_binary") else "add `--only-binary=:all:`"


def _only_binary(words: Sequence[str], known: Mapping[str, str], variable: str) -> bool:
    after = [words[number + 1] for number, word in enumerate(words[:-1]) if word == "--only-binary"]
    after += [word.partition("=")[2] for word in words if word.startswith("--only-binary=")]
    after += [value for key, value in known.items() if key.lower() == variable]
    return ":all:" in after


def _uv(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    del repository
    verbs = [word for word in words if word and not word.startswith("-")][:2]
    installs = verbs[:1] in (["sync"], ["run"], ["add"]) or verbs in (
        ["pip", "install"],
        ["pip", "sync"],
        ["tool", "install"],
    )
    if not installs or _has(words, "--no-build", "--no-sync") or _only_binary(words, known, "uv_only_binary"):
        return None
    return None if _set(known, "uv_no_build", "uv_no_sync") else "add `--no-build`"


def _composer(words: Sequence[str], known: Mapping[str, str], repository: Repository) -> str | None:
    del known, repository
    if _verb(words) not in {"create-project", "i", "install", "require", "u", "update"} or _has(words, "--no-scripts"):
        return None
    return "add `--no-scripts --no-plugins`"


def _configured(repository: Repository, path: str, key: str, *, off: bool = False) -> bool:
    """Whether a configuration file at the root of the repository sets *key* to true, or with *off* to false."""
    text = repository.text(path)
    if text is None:
        return False
    wanted = "false" if off else "true"
    return re.search(rf"^\s*{re.escape(key)}\s*[=:]\s*[\"']?{wanted}\b", text, re.MULTILINE | re.IGNORECASE) is not None


_JUDGES: Mapping[str, Callable[[Sequence[str], Mapping[str, str], Repository], str | None]] = {
    "bun": _bun,
    "bunx": _loader,
    "composer": _composer,
    "npm": _npm,
    "npx": _loader,
    "pip": _pip,
    "pnpm": _pnpm,
    "pnpx": _loader,
    "uv": _uv,
    "yarn": _yarn,
}
