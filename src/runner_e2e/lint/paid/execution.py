"""Which commands run code of the workspace: of a checkout, or of a downloaded artifact."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner_e2e.lint.paid.scripts import ScriptCommand

__all__ = ["runs_workspace"]

_INTERPRETERS = re.compile(
    r"python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|ruby|perl|php|Rscript|bash|sh|dash|zsh|ksh|source|\."
)
_TOOLS = frozenset(
    ("ant", "bazel", "bundle", "bunx", "cargo", "cmake", "composer", "ctest", "dotnet", "go", "gradle", "jest", "just",
     "lerna", "make", "mocha", "mvn", "nox", "npm", "npx", "nx", "playwright", "pnpm", "poetry", "pytest", "rake",
     "sbt", "swift", "task", "tox", "turbo", "uv", "vitest", "yarn")
)  # fmt: skip
_HARMLESS = frozenset(("--version", "-v", "-V", "--help", "version", "cache", "config"))
_MODULES = frozenset(("json.tool", "venv", "ensurepip", "http.server", "base64", "zipfile", "tarfile"))


def runs_workspace(command: ScriptCommand) -> bool:
    """Whether *command* is seen to run code of the workspace."""
    texts = command.texts
    if "/" in texts[0]:
        return not texts[0].startswith("/")
    if command.name in _TOOLS:
        return texts[1:2] == () or texts[1] not in _HARMLESS
    if _INTERPRETERS.fullmatch(command.name) is None:
        return False
    if "-m" in texts[:-1]:
        return texts[texts.index("-m") + 1] not in _MODULES
    if any(text in {"-c", "-e", "-p", "--eval"} for text in texts):
        return False
    first = next((word for word in command.words[1:] if word.text is None or not word.text.startswith("-")), None)
    return first is not None and not (first.text or "").startswith("/") and not first.variables
