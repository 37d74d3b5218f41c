from __future__ import annotations

import secrets

import pytest

from runner_e2e.cells.raw_secrets import find_known, is_credential_name, looks_random, looks_secret

# Put together at run time, so that no scanner takes this file for a leak.
LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
LONG = LETTERS * 3
HEXADECIMAL = "0123456789abcdef" * 4

KNOWN = {
    "an Anthropic key": "sk-" + "ant-api03-" + LONG,
    "an OpenRouter key": "sk-" + "or-v1-" + HEXADECIMAL,
    "an OpenAI key": "sk-" + "proj-" + LONG,
    "an API key that begins with sk-": "sk-" + LONG,
    "a GitHub token": "gh" + "p_" + LONG[:36],
    "a GitLab token": "glp" + "at-" + LONG[:20],
    "an AWS access key": "AK" + "IA" + "ABCDEFGHIJKLMNO1",
    "a Google API key": "AI" + "za" + LONG[:35],
    "a Slack token": "xo" + "xb-123456789012-abc",
    "a Stripe key": "sk" + "_live_" + LONG[:24],
    "a Hugging Face token": "hf" + "_" + LONG[:34],
    "a Groq key": "gs" + "k_" + LONG[:52],
    "an xAI key": "xa" + "i-" + LONG[:80],
    "a Replicate token": "r8" + "_" + LONG[:37],
    "a Perplexity key": "pp" + "lx-" + LONG[:48],
    "a Daytona key": "dt" + "n_" + HEXADECIMAL,
    "an npm token": "np" + "m_" + LONG[:36],
    "a PyPI token": "py" + "pi-" + LONG[:60],
    "a JSON web token": "ey" + "JhbGciOiJI.ey" + "JzdWIiOiIx.c2lnbmF0dXJl",
    "a private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "a password in an address": "postgres://user:" + "hunter2@db/x",
}


@pytest.mark.parametrize(("kind", "key"), KNOWN.items(), ids=list(KNOWN))
def test_known_keys_are_found_where_they_stand(kind: str, key: str) -> None:
    text = f"before '{key}' after"
    (found,) = find_known(text)
    assert found.kind == kind
    assert text[found.start : found.end] == key or key.startswith(text[found.start : found.end])
    assert looks_secret(key)


@pytest.mark.parametrize(
    "text",
    [
        "task-resume-after-an-interrupted-run",
        "sk-resume-after-an-interrupted-run-of-the-agent",
        "risk-assessment-of-a-long-document",
        "https://example.com/path:with@signs",
        "postgres://user:$" + "{PASSWORD}@db",
        "pypi-mirror",
        "OPENAI_API_KEY",
        "hf_model",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_ordinary_texts_are_no_keys(text: str) -> None:
    assert not looks_secret(text)


@pytest.mark.parametrize(
    "name", ["API_KEY", "api-key", "OPENAI_API_KEY", "token", "DB_PASSWORD", "client-secret", "auth"]
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential_name(name)


@pytest.mark.parametrize("name", ["MAX_TOKENS", "keyboard", "monkey", "author", "timeout", "pass-env", "confidential"])
def test_other_names(name: str) -> None:
    assert not is_credential_name(name)


def test_generated_words_look_random() -> None:
    for size in (16, 24, 32):
        for _ in range(20):
            word = secrets.token_hex(size) + "a1"
            assert looks_random(word), word


@pytest.mark.parametrize(
    "text",
    [
        "OPENAI_API_KEY_2",
        "/home/runner/.config/key.json",
        "./fixtures/key-2024-material.pem",
        "a sentence of several words, 12 of them",
        "short1",
        "aaaaaaaaaaaaaaaaaaaaaaaaa1",
        "https://login.example.com/oauth2/v1/token",
        "twenty-letters-and-no-digit",
    ],
)
def test_paths_names_and_words_do_not_look_random(text: str) -> None:
    assert not looks_random(text)
