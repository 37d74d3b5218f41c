"""What a Dockerfile of the repository starts, and which files of the repository it takes along."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import field

from runner_e2e.lint.records import dataclass

__all__ = ["Copy", "Image", "read_dockerfile"]

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)\Z", re.DOTALL)
_FLAG = re.compile(r"--([a-z]+)(?:=(\S+))?\s+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """``COPY`` or ``ADD``: *source* is a path of the build context, *target* one of the image."""

    source: str
    target: str
    into_folder: bool
    """Whether *target* is a folder that receives the source under its own name (when that is a file)."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """The last stage of a Dockerfile. *entry* and *command* are argument vectors; the shell form is one too."""

    entry: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    directory: str = "/"
    copies: tuple[Copy, ...] = field(default=())

    def sources_of(self, path: str) -> tuple[str, ...]:
        """Paths of the build context that the file at *path* of the image may come from, the likeliest first."""
        path = posixpath.normpath(posixpath.join(self.directory, path))
        found: list[str] = []
        for copy in reversed(self.copies):
            if copy.into_folder and posixpath.dirname(path) == copy.target:
                if posixpath.basename(copy.source) == posixpath.basename(path):
                    found.append(copy.source)
            elif path == copy.target:
                found.append(copy.source)
            folder = copy.target.rstrip("/") + "/"
            if path.startswith(folder):
                found.append(posixpath.normpath(posixpath.join(copy.source, path[len(folder) :])))
        return tuple(dict.fromkeys(found))


def read_dockerfile(text: str) -> Image:
    """The image that *text* describes. What is not understood (a variable in a path, another stage) is left out."""
    image = Image()
    shell: tuple[str, ...] = ("/bin/sh", "-c")
    for name, rest in _instructions(text):
        if name == "FROM":
            image, shell = Image(), ("/bin/sh", "-c")
        elif name == "SHELL":
            shell = _vector(rest, ()) or shell
        elif name == "WORKDIR":
            directory = posixpath.normpath(posixpath.join(image.directory, rest.strip().strip("\"'")))
            image = Image(entry=image.entry, command=image.command, directory=directory, copies=image.copies)
        elif name in {"COPY", "ADD"}:
            copies = (*image.copies, *_copies(rest, image.directory))
            image = Image(entry=image.entry, command=image.command, directory=image.directory, copies=copies)
        elif name == "ENTRYPOINT":
            image = Image(entry=_vector(rest, shell), command=(), directory=image.directory, copies=image.copies)
        elif name == "CMD":
            image = Image(
                entry=image.entry, command=_vector(rest, shell), directory=image.directory, copies=image.copies
            )
    return image


def _instructions(text: str) -> list[tuple[str, str]]:
    """Name (upper case) and rest of every instruction, continued lines joined, comments left out."""
    escape = "`" if re.match(r"\s*#\s*escape\s*=\s*`", text) else "\\"
    found: list[tuple[str, str]] = []
    pending = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        stripped = line.rstrip()
        if stripped.endswith(escape):
            pending += stripped[: -len(escape)] + " "
            continue
        instruction = _INSTRUCTION.match(pending + stripped)
        pending = ""
        if instruction is not None:
            found.append((instruction[1].upper(), instruction[2].strip()))
    return found


def _vector(rest: str, shell: tuple[str, ...]) -> tuple[str, ...]:
    """The argument vector of the exec form (JSON), or of the shell form."""
    if rest.startswith("["):
        try:
            words = json.loads(rest)
        except ValueError:
            words = None
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return tuple(words)
    return (*shell, rest) if shell and rest else ()


def _copies(rest: str, directory: str) -> list[Copy]:
    while (flag := _FLAG.match(rest)) is not None:
        if flag[1] == "from":
            return []  # from another stage or image
        rest = rest[flag.end() :]
    words = _vector(rest, ())
    if not words:
        try:
            words = tuple(shlex.split(rest))
        except ValueError:
            return []
    if len(words) < 2 or any("$" in word or "://" in word for word in words):
        return []
    *sources, target = words
    absolute = posixpath.normpath(posixpath.join(directory, target))
    into = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
    return [
        Copy(source=posixpath.normpath(source.lstrip("/") or "."), target=absolute, into_folder=into)
        for source in sources
        if "*" not in source and "?" not in source
    ]
