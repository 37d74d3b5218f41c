"""The files of one repository, as far as workflows use them: read once, never from outside of it."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner_e2e.errors import ConfigurationError, Place
from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.files import exists_at, find_root, locate, names_in
from runner_e2e.lint.records import cached_property
from runner_e2e.lint.settings import CATALOG, Settings, read_settings
from runner_e2e.lint.values import Origin, Script
from runner_e2e.yaml_positions import compose, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner_e2e.lint.commits import PinResolver
    from runner_e2e.lint.settings import Names
    from runner_e2e.lint.shell.results import Files
    from runner_e2e.yaml_positions import Node

__all__ = ["MAX_SCRIPT_BYTES", "Document", "Repository", "below", "find_root"]

MAX_DOCUMENT_BYTES = 32 << 20

_USUAL_BYTES = 64 << 10
"""What is asked for at first: Python takes memory for as much as is asked for."""

MAX_SCRIPT_BYTES = 1 << 20
"""Larger scripts of the repository are not followed."""


class Document:
    """A YAML file: its path as findings show it, its text, and its root node (None for an empty file)."""

    def __init__(self, *, path: str, text: str, root: Node | None) -> None:
        self.path = path
        self.text = text
        self.root = root
        self.origins: dict[int, Origin] = {}


class Repository:
    """Reads files below *root* (resolved); *shown* is how messages name the root: empty for the current folder.

    ``reads`` has the paths of all files that were asked for, absent ones too, since it was last replaced: an analysis
    depends on exactly these. One that ends in ``/`` stands for the names in a folder, one that ends in ``/.`` for
    whether something is there at all. So whatever is remembered here for longer than one analysis notes a read each
    time.
    """

    def __init__(self, root: Path, *, shown: str = "", texts: Mapping[Path, str] | None = None) -> None:
        self.root = root.resolve()
        self.shown = shown
        self.texts = texts or {}
        """Texts that stand for the files at these resolved paths."""
        self.settings_error: ConfigurationError | None = None
        self.pins: PinResolver | None = None
        self.reads: set[str] = set()
        self._documents: dict[str, Document | ConfigurationError | None] = {}
        self._scripts: dict[str, Script | None] = {}
        self._there: dict[str, bool] = {}

    @cached_property
    def settings(self) -> Settings:
        """What the catalog says; the defaults when it is wrong, which ``settings_error`` then tells."""
        try:
            return read_settings(self.root, shown=self.show(CATALOG))
        except ConfigurationError as error:
            self.settings_error = error
            return Settings()

    @property
    def names(self) -> Names:
        """Confidential names."""
        return self.settings.names

    def show(self, relative: str) -> str:
        """The path that messages use for a file of the repository."""
        if self.shown.endswith(":"):
            return f"{self.shown}{relative}"
        return posixpath.join(self.shown, relative) if self.shown else relative

    def relative(self, shown: str) -> str:
        """The path in the repository for one that messages use."""
        return shown.removeprefix(self.shown).removeprefix("/") if self.shown else shown

    def locate(self, relative: str) -> Path | None:
        """The file at a path of the repository, or None when it is absent, no file, or outside (``..``, symlinks)."""
        relative = posixpath.normpath(relative)
        if relative.startswith(("/", "..")):
            return None
        self.reads.add(relative)
        path = locate(str(self.root), relative)
        return None if path is None else Path(path)

    def names_in(self, folder: str) -> tuple[str, ...]:
        """The names in a folder of the repository, in order; none where there is no such folder."""
        folder = posixpath.normpath(folder)
        if folder.startswith(("/", "..")):
            return ()
        self.reads.add(f"{folder}/")
        return names_in(str(self.root), folder) or ()

    def has(self, path: str) -> bool:
        """Whether there is a file or a folder at a path of the repository."""
        path = posixpath.normpath(path)
        if path.startswith(("/", "..")):
            return False
        self.reads.add(f"{path}/.")
        if path not in self._there:
            self._there[path] = exists_at(str(self.root), path)
        return self._there[path]

    def document(self, relative: str) -> Document | None:
        """The YAML document at a path of the repository, None when there is no such file.

        Raises :class:`~runner_e2e.errors.ConfigurationError` when it cannot be read.
        """
        relative = posixpath.normpath(relative)
        self.reads.add(relative)
        if relative not in self._documents:
            self._documents[relative] = self._read(relative)
        found = self._documents[relative]
        if isinstance(found, ConfigurationError):
            raise found
        return found

    def _read(self, relative: str) -> Document | ConfigurationError | None:
        path = self.locate(relative)
        if path is None:
            return None
        try:
            return read_document(path, self.show(relative), self.texts)
        except ConfigurationError as error:
            return error

    def action(self, folder: str) -> tuple[str, Document] | None:
        """Path and document of the action in *folder*, None when there is none."""
        for name in ("action.yml", "action.yaml"):
            relative = posixpath.normpath(posixpath.join(folder, name))
            found = self.document(relative)
            if found is not None:
                return relative, found
        return None

    def text(self, relative: str) -> str | None:
        """Text of a file of the repository, None when it is absent, too large, or not UTF-8."""
        path = self.locate(relative)
        if path is None:
            return None
        given = self.texts.get(path.resolve()) if self.texts else None
        if given is not None:
            return given
        try:
            with path.open("rb") as file:
                data = file.read(MAX_SCRIPT_BYTES + 1)
            return data.decode("utf-8") if len(data) <= MAX_SCRIPT_BYTES and b"\0" not in data else None
        except (OSError, UnicodeDecodeError):
            return None

    def seen_from(self, files: Files, directory: str, checkouts: tuple[str, ...] = ()) -> Files:
        """*files* with those of the repository, for a step whose working directory is *directory*.

        *checkouts* are folders of the workspace where the repository is as well.
        """

        def located(path: str) -> str | None:
            """The path in the repository for one that a script uses."""
            if path.startswith("/") and not path.startswith(f"{WORKSPACE}/"):
                return None
            there = posixpath.relpath(posixpath.join(directory, path), WORKSPACE)
            if self.locate(there) is not None:
                return there
            inside = [below(there, folder) for folder in checkouts]
            found = next((each for each in inside if each is not None and self.locate(each) is not None), None)
            return found or (there if path.startswith("/") else path)

        def script(path: str) -> Script | None:
            relative = located(path)
            return self.script(relative) if relative is not None else None

        def text(path: str) -> str | None:
            relative = located(path)
            return self.text(relative) if relative is not None else None

        def names(path: str) -> tuple[str, ...]:
            there = posixpath.relpath(posixpath.join(directory, path), WORKSPACE)
            inside = (below(there, folder) for folder in checkouts if there != folder)
            return self.names_in(there) or next((found for one in inside if one and (found := self.names_in(one))), ())

        return replace(files, find_script=script, find_text=text, find_names=names)

    def script(self, relative: str) -> Script | None:
        """The program at a path of the repository, None when there is no text file."""
        relative = posixpath.normpath(relative)
        self.reads.add(relative)
        if relative not in self._scripts:
            text = self.text(relative)
            origin = Origin(path=self.show(relative), text=text) if text is not None else None
            self._scripts[relative] = Script(origin=origin, text=origin.text) if origin is not None else None
        return self._scripts[relative]

    def owns(self, origin: Origin) -> bool:
        """Whether *origin* is that of a script of the repository."""
        return any(script is not None and script.origin is origin for script in self._scripts.values())


def below(path: str, folder: str) -> str | None:
    """The rest of *path* below *folder*, None when it is elsewhere."""
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def read_document(path: Path, shown: str, texts: Mapping[Path, str] | None = None) -> Document:
    """The YAML document at *path*, which messages call *shown*; *texts* stand for files at resolved paths.

    Raises :class:`~runner_e2e.errors.ConfigurationError` when it cannot be read.
    """
    given = texts.get(path.resolve()) if texts else None
    if given is not None:
        return Document(path=shown, text=given, root=compose(given, path=shown))
    try:
        with path.open("rb") as file:
            data = file.read(_USUAL_BYTES)
            if len(data) == _USUAL_BYTES:
                data += file.read(MAX_DOCUMENT_BYTES + 1 - _USUAL_BYTES)
    except OSError as error:
        why, fix = error.strerror or str(error), "make it readable, or leave it out"
        raise ConfigurationError("cannot read the file", why=why, fix=fix, place=Place(path=shown)) from None
    if len(data) > MAX_DOCUMENT_BYTES:
        message = f"the file has more than {MAX_DOCUMENT_BYTES >> 20} MiB, which is no workflow"
        raise ConfigurationError(message, fix="give workflows and actions only", place=Place(path=shown))
    text = decode(data, path=shown)
    return Document(path=shown, text=text, root=compose(text, path=shown))
