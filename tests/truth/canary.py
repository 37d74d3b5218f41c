"""Canaries: cell ids nobody has used before, and where one of them, or a distinctive piece of it, appears."""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass

# A piece this long cannot be there by chance, and says which case it is.
PIECE = 8
ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
# Suite, profile and environment are public names; only the case part of an id is confidential.
PUBLIC = "truth.scripted.local."


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A cell id ``suite.profile.environment.case`` whose case part is random: two words of twelve letters."""

    case: str

    @property
    def id(self) -> str:
        return PUBLIC + self.case

    def pieces(self) -> frozenset[str]:
        """Every run of eight characters of the case part, in lower case."""
        lower = self.case.lower()
        return frozenset(lower[start : start + PIECE] for start in range(len(lower) - PIECE + 1))

    def is_in(self, text: str) -> bool:
        lower = text.lower()
        return any(piece in lower for piece in self.pieces())

    def encodings_in(self, text: str) -> tuple[str, ...]:
        """Names of the reversible forms of the case part that ``text`` holds."""
        lower = text.lower()
        forms = {
            "base64": self._base64(),
            "hex": (self.case.encode().hex()[:16],),
            "reversed": (self.case[::-1][:PIECE],),
        }
        return tuple(
            name
            for name, needles in forms.items()
            if any((needle in text) if name == "base64" else (needle in lower) for needle in needles)
        )

    def _base64(self) -> tuple[str, ...]:
        """What base64 makes of the middle of the case part at each of the three alignments."""
        needles = []
        for lead in range(3):
            encoded = base64.b64encode(b"\0" * lead + self.case.encode()).decode().rstrip("=")
            needles.append(encoded[4:-4])
        return tuple(needles)

    def masked(self, text: str) -> str:
        """``text`` with the id and its pieces replaced by ``{id}``, ``{case}`` and ``{piece}``."""
        text = re.sub(re.escape(self.id), "{id}", text, flags=re.IGNORECASE)
        text = re.sub(re.escape(self.case), "{case}", text, flags=re.IGNORECASE)
        while (found := self._longest_piece(text)) is not None:
            start, end = found
            text = f"{text[:start]}{{piece}}{text[end:]}"
        return text

    def _longest_piece(self, text: str) -> tuple[int, int] | None:
        lower, case = text.lower(), self.case.lower()
        for length in range(len(case), PIECE - 1, -1):
            for start in range(len(case) - length + 1):
                at = lower.find(case[start : start + length])
                if at >= 0:
                    return at, at + length
        return None


def random_canary() -> Canary:
    """A fresh one: about 114 bits of chance."""
    words = ["".join(secrets.choice(ALPHABET) for _ in range(12)) for _ in range(2)]
    return Canary(case="-".join(words))
