"""Artifacts and caches: files that one job uploads or saves, and a later job of the same run downloads or restores.

Which files a pattern takes, and where they stand in the artifact, is as ``actions/upload-artifact`` and
``actions/download-artifact`` have it: a single file without its folder, everything else below the folder that all
patterns have in common.
A cache is found by its paths, as they are written, and by its key or the beginning of one; its files come back to where
they were.
Source: ``src/shared/search.ts`` and ``src/download-artifact.ts`` of these actions, ``src/restoreImpl.ts`` of
``actions/cache``.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from runner_e2e.lint.contexts import WORKSPACE
from runner_e2e.lint.globs import Globs
from runner_e2e.lint.shell.archives import is_member, labels_of
from runner_e2e.lint.values import Confidence, Hole, Value, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from runner_e2e.lint.job_state import JobState
    from runner_e2e.lint.shell.results import Files
    from runner_e2e.lint.values import Text

    Noted = Callable[[Value], Value]

__all__ = ["Artifacts", "packed"]

_DEFAULT = Value.literal("artifact")
_MERGED = Value.literal("merged-artifacts")
_WILDCARD = re.compile(r"[*?\[]")
_FIRST_HOLE = 0xE000
_LAST_HOLE = 0xF8FF
_HOME = "/~"
_VERSIONS = count(1)
_TRUE = frozenset({"true", "True", "TRUE"})


class Artifacts:
    """The artifacts of one run: name -> path in the artifact -> what the file holds; and its caches: paths and key ->
    path -> what the file holds. Only labelled files are kept.
    """

    def __init__(self) -> None:
        self._kept: dict[Value, dict[Text, Value]] = {}
        self._caches: dict[tuple[Value, Value], dict[Text, Value]] = {}
        self._members: dict[Text, Value] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """See :attr:`Uploads.version`; a cache counts too."""
        return self._version

    @property
    def members(self) -> Mapping[Text, Value]:
        """See :attr:`Uploads.members`."""
        return self._members

    def upload(self, given: Mapping[str, Value], state: JobState, noted: Noted) -> None:
        """``actions/upload-artifact`` with the inputs *given*; *noted* adds a place to the way of a value."""
        paths = given.get("path")
        contents = state.files.contents
        if paths is None or not any(map(labels_of, contents.items())):
            return
        for patterns in paths.texts:
            files = packed(patterns, contents)
            self._keep_members(contents)
            self._put(given.get("name", _DEFAULT), {path: noted(content) for path, content in files.items()})

    def merge(self, given: Mapping[str, Value]) -> None:
        """``actions/upload-artifact/merge``: what several artifacts hold, in another one."""
        files = dict(self._chosen(given, folders=_is_true(given.get("separate-directories"))))
        self._put(given.get("name", _MERGED), files)

    def _put(self, name: Value, files: Mapping[Text, Value]) -> None:
        kept = self._kept.setdefault(name, {}) if files else {}
        if any(kept.get(path) != content for path, content in files.items()):
            kept.update(files)
            self._version = next(_VERSIONS)

    def _keep_members(self, contents: Mapping[Text, Value]) -> None:
        self._members |= {path: content for path, content in contents.items() if is_member(path)}

    def download(self, given: Mapping[str, Value], state: JobState, noted: Noted) -> None:
        """``actions/download-artifact``: the files are there for the next steps."""
        if not self._kept or "run-id" in given:
            return
        target = given.get("path", Value.literal(".")).texts[0]
        folders = not {"name", "artifact-ids"} & given.keys() and not _is_true(given.get("merge-multiple"))
        contents = {**state.files.contents, **self._members}
        for path, content in self._chosen(given, folders=folders):
            contents[_absolute((*target, "/", *path))] = noted(content)
        state.files = replace(state.files, contents=contents)

    def save(self, given: Mapping[str, Value], files: Files) -> None:
        """``actions/cache/save``, and the end of a job with ``actions/cache``: nobody changes a cache that is there."""
        paths, key = given.get("path"), given.get("key")
        if paths is None or key is None or (paths, key) in self._caches:
            return
        found = [_matching(patterns, files.contents)[1] for patterns in paths.texts]
        contents = {path: content for each in found for path, content in each.values()}
        if contents:
            self._caches[paths, key] = contents
            self._keep_members(files.contents)
            self._version = next(_VERSIONS)

    def restore(self, given: Mapping[str, Value], state: JobState, noted: Noted) -> None:
        """``actions/cache`` and ``actions/cache/restore``: the files are there for the next steps."""
        paths, wanted = given.get("path"), given.get("key")
        if paths is None or wanted is None or not self._caches:
            return
        contents = {**state.files.contents, **self._members}
        for (saved, key), files in self._caches.items():
            sure = _same(key, wanted) if saved == paths else False
            if sure is False and saved == paths and any(_may_begin(key, text) for text in _restore_keys(given)):
                sure = None
            for path, content in files.items() if sure is not False else ():
                contents[path] = noted(content if sure else content.weakened(Confidence.MEDIUM))
        state.files = replace(state.files, contents=contents)

    def _chosen(self, given: Mapping[str, Value], *, folders: bool) -> Iterator[tuple[Text, Value]]:
        """The files that the inputs of a download ask for; *folders*: each artifact in one of its name."""
        wanted, patterns = given.get("name"), given.get("pattern")
        names = (wanted,) if wanted is not None and patterns is None else ()
        for name, path, content in self.fetch(names, (patterns,) if patterns is not None else ()):
            yield normal((*name, "/", *path) if folders else path), content

    def fetch(self, names: Sequence[Value], patterns: Sequence[Value]) -> Iterator[tuple[Text, Text, Value]]:
        """See :meth:`Uploads.fetch`."""
        for name, files in self._kept.items():
            found = {_same(name, wanted) for wanted in names} | {_matches(name, pattern) for pattern in patterns}
            sure = True if not found or True in found else None if None in found else False
            if sure is not False:
                for path, content in files.items():
                    yield name.texts[0], path, content if sure else content.weakened(Confidence.MEDIUM)


def packed(patterns: Text, contents: Mapping[Text, Value]) -> dict[Text, Value]:
    """The labelled files of *contents* that *patterns*, one a line, take: by their paths in the artifact."""
    taken, found = _matching(patterns, contents)
    root = _root(taken, found)
    return {_decoded(path[len(root) + 1 :], key): content for path, (key, content) in found.items()}


def _matching(patterns: Text, contents: Mapping[Text, Value]) -> tuple[list[str], dict[str, tuple[Text, Value]]]:
    """The patterns that take files, and the labelled files that they take: path -> its text, and what it holds."""
    lines = [line.strip() for line in _encoded(patterns, "*")[0].splitlines()]
    taken = [_absolute_text(line) for line in lines if line and not line.startswith(("!", "#"))]
    left_out = Globs(tuple(_absolute_text(line[1:].strip()) for line in lines if line.startswith("!")))
    chosen = Globs(tuple(taken))
    found: dict[str, tuple[Text, Value]] = {}
    for key, content in contents.items():
        path, _ = _encoded(key, "")
        if key and isinstance(key[0], Hole) and key[0].symbol == "$HOME":
            path = _HOME + path[1:]
        if labels_of((key, content)) and path.startswith("/") and chosen.match(path) and not left_out.match(path):
            found[path] = (key, content)
    return taken, found


def _root(taken: list[str], found: Mapping[str, object]) -> str:
    """The folder of which the paths in the artifact begin."""
    searched = sorted({_searched(pattern) for pattern in taken})
    if len(searched) == 1:
        alone = searched[0]
        return posixpath.dirname(alone) if alone in found else alone.rstrip("/")
    common = posixpath.commonpath(searched) if searched else "/"
    return posixpath.dirname(common) if common in found else common.rstrip("/")


def _searched(pattern: str) -> str:
    """The part of a pattern before the first name with a wildcard."""
    wildcard = _WILDCARD.search(pattern)
    if wildcard is None:
        return pattern.rstrip("/") or "/"
    return pattern[: pattern.rfind("/", 0, wildcard.start()) + 1].rstrip("/") or "/"


def _absolute_text(path: str) -> str:
    if path.startswith("~/"):
        return posixpath.normpath(_HOME + path[1:])
    return posixpath.normpath(posixpath.join(WORKSPACE, path))


def _absolute(path: Text) -> Text:
    encoded, holes = _encoded(path, "")
    return _decoded_with(_absolute_text(encoded), holes)


def _encoded(text: Text, stand_in: str) -> tuple[str, list[Hole]]:
    """*text* with *stand_in*, or one character of its own, for each hole."""
    holes: list[Hole] = []
    out: list[str] = []
    for piece in text:
        if isinstance(piece, str):
            out.append(piece)
        else:
            out.append(stand_in or chr(_FIRST_HOLE + len(holes)))
            holes.append(piece)
    return "".join(out), holes


def _decoded(part: str, whole: Text) -> Text:
    """A *part* of the encoded *whole*."""
    return _decoded_with(part, [piece for piece in whole if isinstance(piece, Hole)])


def _decoded_with(text: str, holes: list[Hole]) -> Text:
    pieces = (piece for piece in re.split("([\ue000-\uf8ff])", text) if piece)
    return normal(holes[ord(one) - _FIRST_HOLE] if _FIRST_HOLE <= ord(one[0]) <= _LAST_HOLE else one for one in pieces)


def _same(name: Value, wanted: Value) -> bool | None:
    """Whether two names are the same text; None when they may be."""
    if name == wanted and len(name.texts) == 1:
        return True
    if any(_may_match(one, other) for one in name.texts for other in wanted.texts):
        return None if name.constants is None or wanted.constants is None or len(wanted.texts) > 1 else True
    return False


def _may_match(left: Text, right: Text) -> bool:
    """Whether two texts can be the same, whatever stands in their holes."""
    one, other = _encoded(left, "\0")[0], _encoded(right, "\0")[0]
    return any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("\0"))), text, re.DOTALL) is not None
        for pattern, text in ((one, other), (other, one))
    )


def _restore_keys(given: Mapping[str, Value]) -> Iterator[Text]:
    for text in given.get("restore-keys", Value.literal("")).texts:
        known, holes = _encoded(text, "")
        yield from (_decoded_with(line.strip(), holes) for line in known.splitlines() if line.strip())


def _may_begin(key: Value, beginning: Text) -> bool:
    return any(_may_match(text, normal((*beginning, Hole()))) for text in key.texts)


def _matches(name: Value, patterns: Value) -> bool | None:
    pattern = patterns.constant
    if pattern is None:
        return None
    globs, begins = Globs((f"/{pattern}",)), _WILDCARD.split(pattern)[0]
    found: set[bool | None] = set()
    for text in name.texts:
        known, holes = _encoded(text, "\0")
        first = known.partition("\0")[0]
        if globs.match(f"/{known}"):
            found.add(True)
        else:
            found.add(None if holes and (first.startswith(begins) or begins.startswith(first)) else False)
    return found.pop() if len(found) == 1 else None


def _is_true(value: Value | None) -> bool:
    return value is not None and value.constant in _TRUE
