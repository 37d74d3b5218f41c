"""Brace expansion: ``{a,b}`` and ``{1..3}`` make several words of one, before any other expansion."""

from __future__ import annotations

import itertools
import re
from typing import TypeAlias

from runner_e2e.lint.shell.ir import Literal, Part, Word

__all__ = ["expand_braces"]

_LIMIT = 64
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?$")

# A word as atoms: single characters outside quotes, and all other parts whole.
_Atoms: TypeAlias = "list[str | Part]"


def expand_braces(word: Word) -> tuple[Word, ...]:
    """The words that *word* stands for, in order; more than 64 are not told apart."""
    if not any(isinstance(part, Literal) and not part.quoted and "{" in part.text for part in word.parts):
        return (word,)
    atoms: _Atoms = []
    for part in word.parts:
        if isinstance(part, Literal) and not part.quoted:
            atoms.extend(part.text)
        else:
            atoms.append(part)
    expanded = _expand(atoms)
    if len(expanded) == 1 and expanded[0] == atoms:
        return (word,)
    return tuple(_word(word, one) for one in expanded[:_LIMIT])


def _word(word: Word, atoms: _Atoms) -> Word:
    parts: list[Part] = []
    for atom in atoms:
        last = parts[-1] if parts else None
        if not isinstance(atom, str):
            parts.append(atom)
        elif isinstance(last, Literal) and not last.quoted:
            parts[-1] = Literal(word.start, word.end, last.text + atom, quoted=False)
        else:
            parts.append(Literal(word.start, word.end, atom, quoted=False))
    return Word(word.start, word.end, tuple(parts))


def _expand(atoms: _Atoms) -> list[_Atoms]:
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        choices, end = _choices(atoms, start)
        if choices is None:
            continue
        tails = _expand(atoms[end + 1 :])
        heads = [one for choice in choices for one in _expand(choice)]
        return [[*atoms[:start], *head, *tail] for head in heads for tail in tails][:_LIMIT]
    return [atoms]


def _choices(atoms: _Atoms, start: int) -> tuple[list[_Atoms] | None, int]:
    """What the brace at *start* offers, and where it closes; None when it is no brace expansion."""
    depth = 0
    cuts = [start]
    for end in range(start, len(atoms)):
        atom = atoms[end]
        if atom == "{":
            depth += 1
        elif atom == "," and depth == 1:
            cuts.append(end)
        elif atom == "}":
            depth -= 1
            if depth == 0:
                if len(cuts) > 1:
                    edges = [*cuts, end]
                    return [atoms[a + 1 : b] for a, b in itertools.pairwise(edges)], end
                return _range(atoms[start + 1 : end]), end
    return None, start


def _range(atoms: _Atoms) -> list[_Atoms] | None:
    if not all(isinstance(atom, str) for atom in atoms):
        return None
    match = _RANGE.match("".join(atom for atom in atoms if isinstance(atom, str)))
    if match is None:
        return None
    first, last, step = match.groups()
    numeric = first.lstrip("-").isdigit() and last.lstrip("-").isdigit()
    if not numeric and (len(first) != 1 or len(last) != 1 or first.isdigit() or last.isdigit()):
        return None
    low, high = (int(first), int(last)) if numeric else (ord(first), ord(last))
    stride = abs(int(step)) if step and int(step) else 1
    numbers = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    return [list(str(number) if numeric else chr(number)) for number in numbers[:_LIMIT]]
