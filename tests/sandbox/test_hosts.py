from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner_e2e.sandbox.hosts import (
    InvalidRuleError,
    allowing,
    covers,
    doors,
    is_public,
    parse_rule,
    parse_rules,
    reads_own_job,
)


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "API.Example.COM.", 443, True),
        ("api.example.com", "api.example.com", 80, False),
        ("api.example.com", "example.com", 443, False),
        ("api.example.com", "x.api.example.com", 443, False),
        ("api.example.com", "api.example.com.evil.test", 443, False),
        ("api.example.com:80", "api.example.com", 80, True),
        ("api.example.com:8000-8010", "api.example.com", 8010, True),
        ("api.example.com:8000-8010", "api.example.com", 8011, False),
        ("api.example.com:*", "api.example.com", 1, True),
        ("*.example.com", "api.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*.example.com", "api.example.com\n", 443, False),
        ("*.example.com", "evil.test\0.example.com", 443, False),
        ("*.example.com", "evil.test/.example.com", 443, False),
        ("*.example.com", "..example.com", 443, False),
        ("*.example.com", "127.0.0.1", 443, False),
        ("192.0.2.7", "192.0.2.7", 443, True),
        ("192.0.2.0/24:*", "192.0.2.200", 22, True),
        ("192.0.2.0/24", "192.0.3.1", 443, False),
        ("[2001:db8::1]:443", "[2001:db8::1]", 443, True),
        ("2001:db8::/32", "2001:db8:1::2", 443, True),
        ("10.0.0.0/8", "167772161", 443, False),
        ("10.0.0.0/8", "0xa000001", 443, False),
        ("10.0.0.0/8", "::ffff:10.0.0.1", 443, False),
        ("127.0.0.1:3100", "127.0.0.1", 3100, True),
        ("127.0.0.1:3100", "localhost", 3100, False),
    ],
)
def test_a_rule_allows_what_it_says(rule: str, host: str, port: int, *, allowed: bool) -> None:
    assert (allowing(parse_rules([rule]), host, port) is not None) is allowed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no name"),
        ("*", "no name"),
        ("*.com", "every name in com"),
        ("a b", "no name"),
        ("-a.example.com", "no name"),
        ("a..example.com", "no name"),
        ("https://example.com", "a URL"),
        ("example.com/path", "no name"),
        ("user@example.com", "no name"),
        ("exämple.com", "no name"),
        ("127.1", "no name"),
        ("10.0.0.1/8", "no name"),
        ("example.com:", "no port"),
        ("example.com:0", "no port"),
        ("example.com:65536", "no port"),
        ("example.com:9-8", "no port"),
        ("example.com:https", "no port"),
        ("example.com:²", "no port"),
        ("localhost:80", "loopback"),
        ("a.localhost", "loopback"),
        ("127.0.0.1", "single services"),
        ("127.0.0.1:*", "single services"),
        ("127.0.0.0/8:80", "single services"),
        ("64.0.0.0/2:80", "single services"),
        ("[::ffff:0:0/96]:80", "single services"),
        ("[fe80::1%eth0]:80", "an interface"),
        ("0.0.0.0/0", "every address"),
        ("0.0.0.0:80", "every address"),
        ("[::1:80", "bracket"),
        ("10.0.0.1=10.0.0.2", "leads to itself"),
        ("*.example.com=10.0.0.1", "single name"),
        ("a.example.com=b.example.com", "no address"),
        ("a.example.com=10.0.0.1:80-90", "several ports"),
        ("a" * 64 + ".example.com", "no name"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidRuleError, match=why) as refused:
        parse_rule(text)
    assert refused.value.fix


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        rule = parse_rule(text)
    except InvalidRuleError:
        return
    assert rule.name or rule.network
    assert covers([rule], rule)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.100.100.200", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("::ffff:169.254.169.254", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::1", False),
        ("ff02::1", False),
        ("168.63.129.16", False),
        ("64:ff9b::a83f:8110", False),
        ("192.0.0.192", False),
        ("::7f00:1", False),
        ("::ffff:0:7f00:1", False),
        ("fec0::1", False),
        ("64:ff9b:1::7f00:1", False),
        ("3fff::1", False),
    ],
)
def test_only_the_internet_at_large_is_public(address: str, *, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize(
    ("outer", "inner", "covered"),
    [
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "*.api.example.com", True),
        ("*.api.example.com", "*.example.com", False),
        ("api.example.com", "*.api.example.com", False),
        ("example.com", "example.com:80", False),
        ("example.com:*", "example.com:80-90", True),
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.1.0.0/16", "10.0.0.0/8", False),
        ("10.0.0.0/8", "2001:db8::1", False),
        ("10.0.0.0/8", "example.com", False),
        ("example.com", "example.com=10.0.0.1", False),
        ("example.com=10.0.0.1", "example.com=10.0.0.1", True),
    ],
)
def test_a_rule_covers_what_it_allows_wholly(outer: str, inner: str, *, covered: bool) -> None:
    assert covers(parse_rules([outer]), parse_rule(inner)) is covered


def test_services_on_loopback_get_doors_of_their_own() -> None:
    rules = parse_rules(["example.com", "127.0.0.1:3128", "[::1]:80", "10.0.0.1:90", "127.0.0.1:3128"])
    assert doors(rules) == (("127.0.0.1", 3129), ("127.0.0.1", 3128), ("::1", 80))


@pytest.mark.parametrize("rule", ["api.github.com", "github.com", "*.github.com", "api.github.com:*"])
def test_rules_that_let_an_agent_ask_for_its_own_job_are_told(rule: str) -> None:
    assert reads_own_job(parse_rules([rule, "api.example.com"])) == (rule,)


def test_other_rules_do_not() -> None:
    assert reads_own_job(parse_rules(["api.github.com.example.com", "*.githubcopilot.com", "github.io"])) == ()
