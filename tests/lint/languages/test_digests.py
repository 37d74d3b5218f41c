"""Digests in every language: none is the value, nor a distinctive piece of it."""

from __future__ import annotations

import pytest

from runner_e2e.lint.shell import analyse
from runner_e2e.lint.values import Confidence, Label, Origin, Script, Taint, Value

PLAIN = [
    'tool "$(sha256sum <<< "$S")"',
    'echo "$S" > f; tool "$(md5sum f | cut -c 1-16)"',
    'tool "$(openssl dgst -sha256 <<< "$S")"',
    """python3 -c 'import hashlib, os; print(hashlib.sha256(os.environ["S"].encode()).hexdigest())'""",
    """python3 -c 'import hashlib, os; h = hashlib.md5(); h.update(os.environ["S"].encode()); print(h.digest())'""",
    """node -e 'console.log(require("crypto").createHash("sha256").update(process.env.S).digest("hex"))'""",
    """node -e 'console.log(require("crypto").hash("sha1", process.env.S))'""",
    """perl -e 'use Digest::SHA qw(sha256_hex); print sha256_hex($ENV{S});'""",
    """ruby -e 'puts Digest::SHA256.hexdigest(ENV["S"])'""",
    """ruby -e 'puts "it is #{Digest::MD5.hexdigest(ENV["S"])}"'""",
    """pwsh -c '[Security.Cryptography.SHA256]::HashData([Text.Encoding]::UTF8.GetBytes($env:S))'""",
    """pwsh -c '$h = [Security.Cryptography.SHA256]::Create(); "$($h.ComputeHash($env:S))"'""",
]
KEYED = [
    'tool "$(openssl dgst -sha256 -hmac "$KEY" <<< "$S")"',
    """python3 -c 'import hmac, os; print(hmac.new(key, os.environ["S"].encode(), "sha256").hexdigest())'""",
    """node -e 'console.log(require("crypto").createHmac("sha256", key).update(process.env.S).digest("hex"))'""",
    """perl -e 'use Digest::SHA qw(hmac_sha256_hex); print hmac_sha256_hex($ENV{S}, $key);'""",
    """ruby -e 'puts OpenSSL::HMAC.hexdigest("SHA256", key, ENV["S"])'""",
    """pwsh -c '[Security.Cryptography.HMACSHA256]::HashData($key, [Text.Encoding]::UTF8.GetBytes($env:S))'""",
]


def surest(text: str, label: Label) -> Confidence | None:
    """The confidence of what the script shows or gives to a program."""
    script = Script(origin=Origin(path="step.sh", text=text), text=text)
    result = analyse(script, environment={"S": Value.of([Taint(label)])})
    found = [taint for leak in result.leaks for taint in leak.taints]
    found += [taint for printed in result.prints for taint in printed.taints]
    return max((taint.confidence for taint in found), default=None)


@pytest.mark.parametrize("text", [*PLAIN, *KEYED])
def test_a_digest_is_not_the_value(text: str) -> None:
    assert surest(text, Label(kind="confidential", name="inputs.id")) is None


@pytest.mark.parametrize("text", ['tool "$(base64 <<< "$S")"', """node -e 'console.log(btoa(process.env.S))'"""])
def test_an_encoding_may_be(text: str) -> None:
    assert surest(text, Label(kind="confidential", name="inputs.id")) == Confidence.LOW
