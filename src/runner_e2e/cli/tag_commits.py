"""Which commit a tag or a branch of a repository on github.com stands for now: git is asked, nothing is downloaded."""

from __future__ import annotations

import os
import subprocess

from runner_e2e.errors import UsageError

__all__ = ["TagCommits"]

_SECONDS = 60


class TagCommits:
    """Answers with ``git ls-remote``, once for each repository."""

    certain = True

    def __init__(self) -> None:
        self._references: dict[str, dict[str, str]] = {}

    def resolve(self, repository: str, ref: str) -> str | None:
        """The commit of *ref*; None when there is none, or when both a tag and a branch have the name.

        Raises :class:`~runner_e2e.errors.UsageError` when github.com cannot be asked.
        """
        key = repository.lower()
        if key not in self._references:
            self._references[key] = _references(repository)
        known = self._references[key]
        tag = known.get(f"refs/tags/{ref}^{{}}") or known.get(f"refs/tags/{ref}")
        branch = known.get(f"refs/heads/{ref}")
        return None if tag and branch else tag or branch


def _references(repository: str) -> dict[str, str]:
    """Name -> commit of every tag and branch; a tag with a message has its commit under its name and ``^{}``."""
    command = ["git", "ls-remote", "--tags", "--heads", f"https://github.com/{repository}"]
    # A repository that does not exist is a private one to git, which would ask for a password.
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise UsageError("`--resolve` needs git, which is not installed", fix="install git") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"github.com did not answer within {_SECONDS} s", fix="try again later") from None
    if done.returncode != 0:
        what = f"cannot ask github.com for the tags of {repository}"
        raise UsageError(what, why=done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "", fix=_FIX)
    rows = (line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line)
    return {name: commit for commit, name in rows}


_FIX = "check the name and the network, or leave out `--resolve`"
