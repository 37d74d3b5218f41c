"""Redaction of text and streams: no value, no piece-wise leak, nothing lost, bounded memory."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.redact import MINIMUM_DERIVED_LENGTH, Redactor

SECRET = 'sk-test/Abc+123=xyz "quoted" é'


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        json.dumps({"key": SECRET}),
        json.dumps({"key": SECRET}, ensure_ascii=False),
        quote(SECRET, safe=""),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"x" + SECRET.encode() + b"tail").decode(),
        base64.b64encode(b"xy" + SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + SECRET.encode()).decode(),
    ],
)
def test_encoded_forms_are_redacted(shown: str) -> None:
    redacted = Redactor([SECRET]).text(f"before {shown} after")
    assert "***" in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert "Abc" not in redacted
    # base64 may leave the few characters that its neighbours share, nothing more
    assert len(redacted) < len("before  after") + 20


def test_lines_of_a_value_are_redacted_alone() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
    assert Redactor([key]).text("  MIIEvQIBADANBgkq | hkiG9w0BAQEFAASC") == "  *** | ***"


def test_short_value_is_redacted_itself_but_not_its_encodings() -> None:
    assert Redactor(["ab"]).text("cab YWI= 6162") == "c*** YWI= 6162"


def test_empty_values_change_nothing() -> None:
    assert Redactor(["", ""]).text("as it is") == "as it is"


def test_overlapping_values_are_covered_by_one_marker() -> None:
    assert Redactor(["abcd", "cdef"]).text("xabcdefy") == "x***y"
    assert Redactor(["aba"]).text("ababa") == "***"
    assert Redactor(["abc"]).text("abcabc") == "***"


def test_undecodable_text_survives() -> None:
    text = b"\xff secret-value \xfe".decode("utf-8", "surrogateescape")
    assert Redactor(["secret-value"]).text(text) == b"\xff *** \xfe".decode("utf-8", "surrogateescape")


def test_a_stream_tells_what_it_found() -> None:
    stream = Redactor(["first-secret", "other-secret"]).stream()
    stream.feed(b"first-")
    assert stream.found == set()
    stream.feed(b"secret")
    assert stream.found == {"first-secret"}


def test_a_stream_holds_back_only_what_may_become_a_value() -> None:
    stream = Redactor(["secret-value"]).stream()
    assert stream.feed(b"a prompt: ") == b"a prompt: "
    assert stream.feed(b"sec") == b""
    assert stream.feed(b"ond") == b"second"
    assert stream.flush() == b""


def test_repetition_does_not_pile_up() -> None:
    stream = Redactor(["a" * 10]).stream()
    shown = sum(len(stream.feed(b"a" * 1000)) for _ in range(100))
    assert shown <= 3
    assert len(stream._held) < 10  # one value less a byte


def reference(data: bytes, values: list[bytes]) -> bytes:
    """What must remain visible: bytes outside the union of all occurrences, in order."""
    hidden = bytearray(len(data))
    for value in values:
        for start in range(len(data) - len(value) + 1):
            if data[start : start + len(value)] == value:
                hidden[start : start + len(value)] = b"\1" * len(value)
    return bytes(byte for byte, cover in zip(data, hidden, strict=True) if not cover)


@given(
    values=st.lists(st.text("abc", min_size=1, max_size=MINIMUM_DERIVED_LENGTH - 1), min_size=1, max_size=4),
    chunks=st.lists(st.text("abcd", max_size=9), max_size=12),
)
def test_chunks_show_what_the_whole_shows(values: list[str], chunks: list[str]) -> None:
    redactor = Redactor(values)
    whole = "".join(chunks).encode()
    stream = redactor.stream()
    streamed = b"".join(stream.feed(chunk.encode()) for chunk in chunks) + stream.flush()
    assert streamed.replace(b"*", b"") == reference(whole, [value.encode() for value in values])
    assert redactor.data(whole).replace(b"*", b"") == streamed.replace(b"*", b"")


def test_text_that_is_no_unicode_is_redacted_too() -> None:
    """Halves of surrogate pairs come from JSON, undecodable bytes from the environment."""
    assert Redactor(["key\udcff"]).text("\ud83d key\udcff \udcfe") == "\N{REPLACEMENT CHARACTER} *** \udcfe"
