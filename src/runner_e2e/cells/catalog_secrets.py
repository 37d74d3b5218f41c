"""Finds secrets in the file of a catalog, and keeps them out of every message about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runner_e2e.cells.raw_secrets import find_known, is_credential_name, looks_random
from runner_e2e.cells.wording import quote
from runner_e2e.errors import Problem
from runner_e2e.yaml_positions import Mapping, Scalar, Sequence, resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from runner_e2e.yaml_positions import Node

__all__ = ["RawSecrets", "find_raw_secrets", "without_values"]


@dataclass(frozen=True, kw_only=True)
class RawSecrets:
    """The problems that secrets in the file are, and their values, which no message may repeat."""

    problems: tuple[Problem, ...]
    values: tuple[str, ...]


def find_raw_secrets(root: Node) -> RawSecrets:
    """Finds secrets in the file: known shapes anywhere (comments too), random words under a credential's name."""
    source = root.source
    problems = [
        Problem(
            what=f"{shape.kind} stands in the catalog",
            why="a catalog is read by everyone who can read the repository, and history keeps it",
            fix="revoke the key at its provider now, remove it here, and name the secret below `credentials:`",
            place=source.place(shape.start),
        )
        for shape in find_known(source.text)
    ]
    values = {source.text[shape.start : shape.end] for shape in find_known(source.text)}
    for key, value in _scalars(root):
        if "${{" in value.value:
            problems.append(
                Problem(
                    what="an expression of a workflow stands in the catalog",
                    why="a catalog is read as it is; nothing is filled in",
                    fix="write the value, or name a variable in pass-env or a secret below `credentials:`",
                    place=value.place,
                )
            )
        elif is_credential_name(key) and looks_random(value.value) and not any(v in value.value for v in values):
            problems.append(
                Problem(
                    what=f"the value of {quote(key)} looks like a secret",
                    why="it is one long random word under the name of a credential",
                    fix="remove it here (and revoke it if it is one), and name the secret below `credentials:`",
                    place=value.place,
                )
            )
            values.add(value.value)
    return RawSecrets(problems=tuple(problems), values=tuple(sorted(values, key=len, reverse=True)))


def _scalars(root: Node) -> Iterator[tuple[str, Scalar]]:
    """Every scalar that is a value or an item, with the nearest key above it; each node once."""
    stack: list[tuple[str, Node]] = [("", root)]
    seen: set[int] = set()
    while stack:
        key, raw = stack.pop()
        node = resolved(raw)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Scalar):
            yield key, node
        elif isinstance(node, Mapping):
            for name, value in node.entries():
                # The entries of `credentials:` are credentials whatever they are called.
                stack.append((f"{key} {name.value}".strip() if key == "credentials" else name.value, value))
        elif isinstance(node, Sequence):
            stack.extend((key, item) for item in node.items)


def without_values(problem: Problem, values: Iterable[str]) -> Problem:
    """Returns *problem* with every one of *values* blotted out."""

    def blot(text: str) -> str:
        for value in values:
            text = text.replace(value, "(not shown)")
        return text

    return replace(problem, what=blot(problem.what), why=blot(problem.why), fix=blot(problem.fix))
