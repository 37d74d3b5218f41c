"""Finds secrets that stand in a text where only their names belong.

Two signs count: the published shape of a provider's key anywhere, and a random-looking word where the name
beside it promises a credential. The shapes are those that the providers document or that their tools print.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SecretShape", "find_known", "is_credential_name", "looks_random", "looks_secret"]

# A generic `sk-` key mixes cases and digits, or is hexadecimal; a case called `sk-some-long-words` is neither.
_MIXED = r"(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Z])"

_SHAPES: tuple[tuple[str, str], ...] = (
    ("an Anthropic key", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("an OpenRouter key", r"sk-or-v1-[0-9a-f]{32,}"),
    ("an OpenAI key", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}"),
    ("an API key that begins with sk-", rf"sk-(?:[0-9a-f]{{32,}}|{_MIXED}[A-Za-z0-9_-]{{20,}})"),
    ("a GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}"),
    ("a GitLab token", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS access key", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("a Google API key", r"AIza[0-9A-Za-z_-]{35}"),
    ("a Slack token", r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    ("a Stripe key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("a Hugging Face token", r"hf_[A-Za-z0-9]{30,}"),
    ("a Groq key", r"gsk_[A-Za-z0-9]{40,}"),
    ("an xAI key", r"xai-[A-Za-z0-9]{40,}"),
    ("a Replicate token", r"r8_[A-Za-z0-9]{37,}"),
    ("a Perplexity key", r"pplx-[A-Za-z0-9]{40,}"),
    ("a Daytona key", r"dtn_[0-9a-f]{32,}"),
    ("an npm token", r"npm_[A-Za-z0-9]{36,}"),
    ("a PyPI token", r"pypi-[A-Za-z0-9_-]{32,}"),
    ("a JSON web token", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("a private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    ("a password in an address", r"[a-z][a-z0-9+.-]*://[^\s/:@'\"]+:[^\s/@'\"$]+@"),
)

_CREDENTIAL_NAME = re.compile(
    r"(?:^|[^a-z])(?:key|apikey|token|secret|password|passwd|passphrase|pwd|credentials?|auth|authorization|bearer)"
    r"(?:[^a-z]|$)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z0-9+/=_.~-]{20,}")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


@dataclass(frozen=True, kw_only=True)
class SecretShape:
    """A stretch of a text (offsets in characters) that has the shape of a known key. It never holds the value."""

    kind: str
    start: int
    end: int


@cache
def _known() -> re.Pattern[str]:
    parts = (f"(?P<s{number}>{shape})" for number, (_, shape) in enumerate(_SHAPES))
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(parts) + ")")


def find_known(text: str) -> Iterator[SecretShape]:
    """Yields every stretch of *text* that has the shape of a provider's key, in order."""
    for match in _known().finditer(text):
        kind = _SHAPES[int((match.lastgroup or "s0")[1:])][0]
        yield SecretShape(kind=kind, start=match.start(), end=match.end())


def is_credential_name(name: str) -> bool:
    """Whether *name*, of a key or a variable, promises a credential: ``API_KEY`` does, ``MAX_TOKENS`` does not."""
    return bool(_CREDENTIAL_NAME.search(name))


def looks_random(text: str) -> bool:
    """Whether *text* is one word as a generator makes them, and not a path, an address or the name of a variable.

    At least 20 characters with letters and digits, and 3 bits of Shannon entropy a character: 20 random
    hexadecimal digits reach that, words and dates do not often.
    """
    if not _WORD.fullmatch(text) or _VARIABLE_NAME.fullmatch(text) or text.startswith(("/", "./", "../", "~")):
        return False
    if not (any(character.isdigit() for character in text) and any(character.isalpha() for character in text)):
        return False
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values()) >= 3.0


def looks_secret(text: str) -> bool:
    """Whether *text* holds the shape of a known key; such a text is never repeated in a message."""
    return next(find_known(text), None) is not None
