from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.cells.handles import handle, is_handle, parse_key, random_key
from runner_e2e.errors import UsageError

KEY = bytes(range(32))


def test_a_handle_is_a_truncated_keyed_digest() -> None:
    digest = hmac.digest(KEY, b"a.b.c.d", hashlib.sha256).hex()
    assert handle(KEY, "a.b.c.d") == f"cell-{digest[:16]}"
    assert is_handle(handle(KEY, "a.b.c.d"))
    assert handle(KEY, "a.b.c.d") != handle(KEY, "a.b.c.e")
    assert handle(KEY, "a.b.c.d") != handle(KEY[::-1], "a.b.c.d")


@pytest.mark.parametrize("text", ["", "cell-", "cell-0123456789abcdeF", "cell-0123456789abcdef\n", "a.b.c.d"])
def test_other_texts_are_no_handles(text: str) -> None:
    assert not is_handle(text)


def test_random_keys_differ_and_are_accepted() -> None:
    first, second = random_key(), random_key()
    assert first != second
    assert parse_key(first.hex()) == first


@given(st.binary(min_size=32, max_size=80).filter(lambda key: len(set(key)) >= 16))
def test_every_spelling_of_a_key_is_read(key: bytes) -> None:
    standard = base64.b64encode(key).decode()
    url = base64.urlsafe_b64encode(key).decode()
    assert parse_key(key.hex()) == parse_key(key.hex().upper()) == key
    # Base64 that happens to be hexadecimal digits only is not told apart; so short a chance does not occur here.
    assert parse_key(f" {standard}\n") == parse_key(standard.rstrip("=")) == parse_key(url) == key


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (bytes(range(31)).hex(), "is too short"),
        ("00" * 32, "is a placeholder"),
        ("0123456789abcdef" * 4, "is a placeholder"),
        ("swordfish! " * 6, "neither hexadecimal nor base64"),
        ("ключ" * 20, "neither hexadecimal nor base64"),
        ("", "is too short"),
    ],
)
def test_what_is_no_key_is_refused_without_showing_it(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_key(text, variable="CAMPAIGN_KEY")
    shown = str(caught.value)
    assert says in shown
    assert "CAMPAIGN_KEY" in shown
    assert "runner-e2e dispatch keygen" in shown
    assert not text or text.strip() not in shown
