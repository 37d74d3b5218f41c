"""Which shell runs a step: the words of ``shell:`` and its defaults, as the runner reads them."""

from __future__ import annotations

import posixpath
from typing import Literal

from runner_e2e.lint.records import dataclass

__all__ = ["StepShell", "step_shell"]

_POSIX = {"bash": "bash", "sh": "sh", "dash": "sh", "ksh": "bash", "zsh": "bash", "busybox": "sh"}
_PROGRAMS = ("python", "pwsh", "powershell", "cmd", "node", "perl", "ruby")


@dataclass(frozen=True, kw_only=True)
class StepShell:
    """``language`` is bash, sh, or a program that is not a POSIX shell; ``arguments`` follow the script's name."""

    language: str
    errexit: bool = False
    pipefail: bool = False
    arguments: tuple[str, ...] = ()

    @property
    def posix(self) -> Literal["bash", "sh"] | None:
        """The shell whose language it is, None for any other."""
        return "bash" if self.language == "bash" else "sh" if self.language == "sh" else None


def step_shell(template: str | None, *, windows: bool = False) -> StepShell:
    """The shell for the text of ``shell:`` (None: the runner's default)."""
    if template is None:
        return StepShell(language="pwsh") if windows else StepShell(language="bash", errexit=True)
    if template == "bash":
        return StepShell(language="bash", errexit=True, pipefail=True)
    if template == "sh":
        return StepShell(language="sh", errexit=True)
    words = template.split()
    before = words[: words.index("{0}")] if "{0}" in words else words
    after = tuple(words[words.index("{0}") + 1 :]) if "{0}" in words else ()
    for position, word in enumerate(before):
        name = posixpath.basename(word)
        if name in _POSIX:
            options = before[position + 1 :]
            short = "".join(option[1:] for option in options if option.startswith("-") and not option.startswith("--"))
            return StepShell(
                language=_POSIX[name], errexit="e" in short, pipefail="pipefail" in options, arguments=after
            )
        if name.startswith(_PROGRAMS):
            return StepShell(language=name, arguments=after)
    return StepShell(language=before[0] if before else "", arguments=after)
