from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest

from runner_e2e.egress.destinations import Book, RefusedDestinationError, find, is_of_this_machine, look_up
from runner_e2e.sandbox.hosts import parse_rules

if TYPE_CHECKING:
    from runner_e2e.sandbox.hosts import Address

PUBLIC, METADATA, PRIVATE = "93.184.216.34", "169.254.169.254", "10.0.0.5"


def decide(rules: list[str], host: str, port: int, *answers: str, own: str = "") -> tuple[str, int]:
    """Where a request goes when the name's owner gives these *answers*."""

    def resolve(name: str, asked: int) -> list[Address]:
        assert (name, asked) == (host, port)
        return [ipaddress.ip_address(answer) for answer in answers]

    return find(parse_rules(rules), host, port, resolve=resolve, local=lambda address: str(address) == own)


def test_an_allowed_name_leads_to_its_public_address() -> None:
    assert decide(["api.example.com"], "api.example.com", 443, PUBLIC) == (PUBLIC, 443)


@pytest.mark.parametrize("answer", ["127.0.0.1", METADATA, PRIVATE, "::1", "::ffff:127.0.0.1", "0.0.0.0"])
def test_a_name_cannot_be_turned_to_what_is_not_public(answer: str) -> None:
    with pytest.raises(RefusedDestinationError, match="not public and not listed"):
        decide(["api.example.com"], "api.example.com", 443, answer)


def test_of_several_answers_the_public_one_is_used() -> None:
    assert decide(["api.example.com"], "api.example.com", 443, METADATA, PUBLIC) == (PUBLIC, 443)


def test_a_public_address_of_this_machine_is_not_reached_by_a_name() -> None:
    with pytest.raises(RefusedDestinationError, match="not public"):
        decide(["api.example.com"], "api.example.com", 443, PUBLIC, own=PUBLIC)


def test_a_private_address_is_reached_where_it_is_listed_at_that_port() -> None:
    rules = ["api.example.com:*", "10.0.0.0/8:8080"]
    assert decide(rules, "api.example.com", 8080, PRIVATE) == (PRIVATE, 8080)
    assert decide(rules, "10.0.0.9", 8080) == ("10.0.0.9", 8080)
    with pytest.raises(RefusedDestinationError):
        decide(rules, "api.example.com", 443, PRIVATE)
    with pytest.raises(RefusedDestinationError, match="not among the allowed hosts"):
        decide(rules, "10.0.0.9", 443)


def test_an_address_is_refused_unless_it_is_listed() -> None:
    for address in (PUBLIC, METADATA, "127.0.0.1", "[::1]", "2130706433"):
        with pytest.raises(RefusedDestinationError, match="not among the allowed hosts"):
            decide(["*.example.com:*"], address, 443, PUBLIC)


def test_a_name_is_led_where_its_rule_says_and_not_looked_up() -> None:
    rules = ["model.example.com", "model.example.com:443=127.0.0.1:8080", "model.example.com:80=127.0.0.2"]
    assert decide(rules, "model.example.com", 443) == ("127.0.0.1", 8080)
    assert decide(rules, "model.example.com", 80) == ("127.0.0.2", 80)


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(RefusedDestinationError, match="no address"):
        decide(["api.example.com"], "api.example.com", 443)


def test_names_are_looked_up_with_ipv4_first() -> None:
    assert str(look_up("127.0.0.1", 80)[0]) == "127.0.0.1"
    assert look_up("no-such-host.invalid", 80) == []
    assert look_up("a" * 300, 80) == []


def test_addresses_of_this_machine_are_known() -> None:
    assert is_of_this_machine(ipaddress.ip_address("127.0.0.1"))
    assert not is_of_this_machine(ipaddress.ip_address("192.0.2.1"))


def test_the_book_is_bounded() -> None:
    book = Book()
    book.note("\udcff\0é" * 1000, 443)
    assert book.to_document() == [{"host": "?" * 253, "port": 443, "refused": "", "times": 1}]
    book = Book()
    for number in range(2000):
        book.note(f"{number}.example.com", 443, refused="no")
        book.note("0.example.com", 443, refused="no")
    entries = book.to_document()
    assert len(entries) == 64
    assert {"host": "0.example.com", "port": 443, "refused": "no", "times": 2001} in entries
