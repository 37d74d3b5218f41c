"""Why something is not run in place: every reason once, with the text that logs, results and the documentation show."""

from __future__ import annotations

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROOT_REFUSED", "TEXTS", "Reason", "not_in_place", "reason", "root_refused"]

ROOT_REFUSED = "artifact: warning: the trusted launch root {root} is not used: {reason}"
NOT_IN_PLACE = "artifact: {path} is not run in place: {reason}"

# Code -> text. Codes beginning with `root-` refuse a root for every artifact, the others one artifact.
TEXTS: Mapping[str, str] = {
    "root-not-linux": "trusted launch roots exist only on Linux",
    "root-not-absolute": "it is not an absolute path",
    "root-not-opened": "it cannot be opened: {error}",
    "root-not-canonical": "it is not canonical: the kernel calls it {real}",
    "root-not-directory": "it is not a directory",
    "root-file-system": "it lies on {kind}, not on erofs or squashfs",
    "root-not-read-only": "its mount is not read-only",
    "root-noexec": "its mount is noexec",
    "image-writable": "its image {image} can be written by {whom}",
    "image-deleted": "its image {image} was deleted, so that nobody can tell who may write it",
    "image-replaced": "its image {image} is no longer the file that {device} reads",
    "image-on-fuse": "its image {image} lies on FUSE, whose content another process decides",
    "device-writable": "its device {device} can be written by {whom}",
    "no-root": "no trusted launch root is set",
    "root-unused": "the trusted launch root is not used",
    "assigned": "the host assigned it, and such an executable never uses the trusted launch root",
    "other-device": "it lies on device {found}, the trusted launch root {root} on {device}",
    "outside": "the kernel calls it {real}, which is not beneath {root}",
    "not-read-only": "its mount is not read-only",
    "noexec": "its mount is noexec",
    "file-system": "it lies on {kind}, not on erofs or squashfs",
}


class Reason(Record):
    """One reason: its code, for programs, and its text."""

    code: str
    text: str


def reason(code: str, **values: object) -> Reason:
    """The reason *code* with its placeholders filled in."""
    return Reason(code=code, text=TEXTS[code].format(**values))


def root_refused(root: str, why: Reason) -> str:
    """The line of the log for a root that is not used."""
    return ROOT_REFUSED.format(root=root, reason=why.text)


def not_in_place(path: str, why: Reason) -> str:
    """The line of the log for an artifact that falls back to a sealed snapshot."""
    return NOT_IN_PLACE.format(path=path, reason=why.text)
