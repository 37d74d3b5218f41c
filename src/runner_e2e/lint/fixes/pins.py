"""Actions named by the commit that their tag stands for: only where that commit is known, never by a guess."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from runner_e2e.lint.finding import Edit, Fix
from runner_e2e.lint.fixes.yaml_edits import node_at, replace_part

if TYPE_CHECKING:
    from runner_e2e.lint.finding import Finding
    from runner_e2e.lint.repository import Document, Repository
    from runner_e2e.yaml_positions import Scalar

__all__ = ["repair"]

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_USES = re.compile(r"(?P<name>[\w.-]+/[\w.-]+(?:/[^\s@]+)?)@(?P<ref>[^\s@]+)")
_REST = re.compile(r"(?P<rest>[^\r\n]*)")


def repair(finding: Finding, document: Document, repository: Repository) -> Fix | None:
    """Writes the commit in place of the tag, and the tag in a comment, where update tools look for it."""
    located = node_at(document, finding.span)
    pins = repository.pins
    if located is None or pins is None:
        return None
    scalar = located.scalar
    found = _USES.fullmatch(scalar.value)
    if found is None:
        return None
    name, ref = "/".join(found["name"].split("/")[:2]), found["ref"]
    commit = pins.resolve(name, ref)
    if commit is None or not _COMMIT.fullmatch(commit):
        return None
    pin = replace_part(document, scalar, found.start("ref"), len(scalar.value), commit)
    comment = _comment(scalar, ref, document.path)
    if pin is None or comment is None:
        return None
    # Edits that touch are one: nobody has to know which comes first.
    edits = (replace(pin, text=pin.text + comment.text),) if pin.end == comment.start else (pin, comment)
    return Fix(title=f"name the commit that `{ref}` stands for", safe=pins.certain, edits=edits)


def _comment(scalar: Scalar, ref: str, path: str) -> Edit | None:
    """The comment after the value, before one that is there already; in a flow mapping at the end of the line."""
    text = scalar.source.text
    found = _REST.match(text, scalar.end)
    rest = found["rest"] if found is not None else ""
    if not rest.strip() or rest.lstrip().startswith("#"):
        return Edit(path=path, start=scalar.end, end=scalar.end, text=f" # {ref}")
    end = scalar.end + len(rest)
    # A quote or a comment might go on: then the end of the line is no place for a comment.
    return None if set(rest) & set("#'\"|>") else Edit(path=path, start=end, end=end, text=f" # {ref}")
