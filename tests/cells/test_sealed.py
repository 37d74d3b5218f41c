"""Sealed selections open once, where they belong, and nowhere else."""

from __future__ import annotations

import base64
import hmac
import json
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.cells.handles import random_key
from runner_e2e.cells.sealed import check_nonce, key_id, new_nonce, open_selection, seal, seal_runs
from runner_e2e.errors import RefusedError, UsageError

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NONCE = "20261130t120000z-0123456789abcdef"
PLACE = {"nonce": NONCE, "repository": "octo/evals"}
IDS = ("chat.codex.local.greeting", "chat.codex.local.long.name")


def opened(text: str, **changes: object) -> tuple[str, ...]:
    return open_selection(text, **{"keys": (KEY,), **PLACE, **changes}).ids  # type: ignore[arg-type]


def test_opens_what_was_sealed() -> None:
    text = seal(IDS, key=KEY, **PLACE)
    assert text.startswith("sealed1.")
    assert opened(text) == IDS
    assert opened(f" {text}\n") == IDS
    assert opened(text, repository="Octo/Evals") == IDS
    assert not any(part in text for part in ("chat", "codex", "greeting"))


def test_two_keys_are_valid_while_one_is_changed() -> None:
    text = seal(IDS, key=OTHER, **PLACE)
    assert opened(text, keys=(KEY, OTHER)) == IDS
    assert open_selection(text, keys=(KEY, OTHER), **PLACE).key == OTHER


def test_a_length_tells_nothing_of_one_cell() -> None:
    lengths = {len(seal([f"chat.codex.local.{'c' * size}"], key=KEY, **PLACE)) for size in (1, 5, 20, 90)}
    assert len(lengths) == 1


def test_the_same_selection_is_never_sealed_alike() -> None:
    assert seal(IDS, key=KEY, **PLACE) != seal(IDS, key=KEY, **PLACE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keys": (OTHER,)}, key_id(KEY)),
        ({"keys": ()}, "here: none"),
        ({"nonce": NONCE[:-1] + "0"}, "does not open"),
        ({"repository": "octo/other"}, "does not open"),
    ],
)
def test_opens_nowhere_else(changes: dict[str, object], said: str) -> None:
    with pytest.raises(RefusedError, match=said) as caught:
        opened(seal(IDS, key=KEY, **PLACE), **changes)
    assert "greeting" not in str(caught.value)


@given(position=st.integers(min_value=0), replacement=st.sampled_from("A_z9.- é"))
def test_no_character_can_be_changed(position: int, replacement: str) -> None:
    text = seal(IDS, key=KEY, **PLACE)
    # The last digit of base64 holds two bits that nothing reads.
    place = position % (len(text) - 1)
    changed = text[:place] + replacement + text[place + 1 :]
    if changed != text:
        with pytest.raises(RefusedError):
            opened(changed)


@given(st.text(max_size=80))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        opened(text)


def authentic(body: bytes) -> str:
    """Sealed with the right key, for the right place, but not by :func:`seal`: what another version might do."""
    body = len(body).to_bytes(4, "big") + body
    iv = bytes(12)
    bound = json.dumps(["sealed1", PLACE["repository"], NONCE]).encode()
    cipher = AESGCM(hmac.new(KEY, b"runner-e2e sealed selection", "sha256").digest())
    return (
        f"sealed1.{key_id(KEY)}.{base64.urlsafe_b64encode(iv + cipher.encrypt(iv, body, bound)).decode().rstrip('=')}"
    )


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "7", "null", '"chat.codex.local.x"', "[7]", "[null]", "[[]]", '["x"]', '[""]', '["a.b.c.\\u0000"]',
     "[" * 9_000_000, "[" + '"chat.codex.local.x",' * 600_000, '{"chat.codex.local.x": 1}'],
)  # fmt: skip
def test_an_authentic_text_of_another_kind_is_refused(text: str) -> None:
    for body in (zlib.compress(text.encode()), text.encode()[:1000]):
        with pytest.raises(RefusedError, match="holds no list of cells"):
            opened(authentic(body))


def test_a_cell_that_was_sealed_twice_is_one_cell() -> None:
    assert opened(authentic(zlib.compress(json.dumps([*IDS, *IDS]).encode()))) == IDS


@pytest.mark.parametrize("data", ["A", "AA", "AAAA", "A" * 16, "A" * 17, "A" * 60_000, "A" * 10_000_000])
def test_a_text_of_any_size_is_refused(data: str) -> None:
    with pytest.raises(RefusedError, match="does not open"):
        opened(f"sealed1.{key_id(KEY)}.{data}")


def test_256_long_ids_fit_into_a_dispatch() -> None:
    ids = [f"suite-{n:04}.profile-number-{n % 7}.environment-{n % 3}.{'c' * 60}-{n * 7919:09}" for n in range(256)]
    assert opened(seal(ids, key=KEY, **PLACE)) == tuple(ids)


def test_many_cells_are_sealed_for_several_runs() -> None:
    ids = [f"chat.codex.local.case-{number}" for number in range(600)]
    runs = seal_runs(ids, key=KEY, repository="octo/evals", now=NOW)
    assert len(runs) == len({run.nonce for run in runs}) == 3
    found = [opened(run.selection, nonce=run.nonce) for run in runs]
    assert sorted(len(each) for each in found) == [200, 200, 200]
    assert sorted(name for each in found for name in each) == sorted(ids)


def test_refuses_what_does_not_fit_or_is_empty() -> None:
    with pytest.raises(UsageError, match="nothing to seal"):
        seal([], key=KEY, **PLACE)
    with pytest.raises(UsageError, match="characters"):
        seal([f"a.b.c.{random_key().hex()}{random_key().hex()}" for _ in range(900)], key=KEY, **PLACE)


def test_nonces() -> None:
    nonce = new_nonce(NOW)
    assert nonce.startswith("20261130t120000z-")
    assert new_nonce(NOW) != nonce
    check_nonce(nonce, created_at=NOW + timedelta(hours=23))
    check_nonce(nonce, created_at=NOW - timedelta(minutes=9))


@pytest.mark.parametrize(
    ("nonce", "created_at", "said"),
    [
        (NONCE, NOW + timedelta(hours=25), "stale"),
        (NONCE, NOW - timedelta(minutes=11), "after the run"),
        ("", NOW, "no valid form"),
        ("20261399t120000z-0123456789abcdef", NOW, "no valid form"),
        (NONCE + "\n", NOW, "no valid form"),
        (NONCE.upper(), NOW, "no valid form"),
        ("../" + NONCE, NOW, "no valid form"),
    ],
)
def test_refuses_a_nonce(nonce: str, created_at: datetime, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        check_nonce(nonce, created_at=created_at)
