"""Which hosts an agent may reach: rules such as ``api.example.com``, ``*.example.com:8443`` or ``10.0.0.0/8:80``.

Pure: nothing here looks a name up. A name is allowed by name; the addresses that it leads to must be public, or be
listed themselves, so that whoever owns a name cannot turn it to services of this machine or of a cloud.
"""

from __future__ import annotations

import ipaddress
import re

from runner_e2e.sandbox.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

__all__ = [
    "PROXY_PORT",
    "HostRule",
    "InvalidRuleError",
    "address_of",
    "allowing",
    "covers",
    "doors",
    "is_public",
    "parse_rule",
    "parse_rules",
    "reads_own_job",
]

PROXY_PORT = 3128  # registered for proxies; the next free one where a rule forwards it
_DEFAULT_PORT = 443
_HIGHEST_PORT = 65535
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_SHAPE = "write NAME, *.NAME or an address, and :PORT, :FROM-TO or :* unless the port is 443"
# IPv4 addresses inside IPv6 ones that is_global does not look into: NAT64 (RFC 6052).
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
# What is_global takes for public, too: what Azure tells its machines of themselves, protocol assignments (where Oracle
# did), and documentation (RFC 9637).
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "3fff::/20")))
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # RFC 4291 2.4: all of IPv6 that is assigned at large
_LOOPBACK = tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "::1/128", "::ffff:127.0.0.0/104")))
# Where GitHub tells a job's name to whoever asks.
_GITHUB = ("api.github.com", "github.com")


class InvalidRuleError(ValueError):
    """A rule that says nothing that could be allowed."""

    def __init__(self, text: str, why: str, fix: str = _SHAPE) -> None:
        super().__init__(f"{text!r}: {why}")
        self.fix = fix


class HostRule(Record):
    """One rule. ``name`` is a host, or what names beneath it end with (``suffix``); else ``network`` is a network.

    ``first`` to ``last`` are its ports. ``target`` is the address that the name leads to here, "" to look it up.
    """

    text: str
    first: int
    last: int
    name: str = ""
    suffix: bool = False
    network: str = ""
    target: str = ""
    target_port: int = 0

    @property
    def forwarded(self) -> bool:
        """Whether it names a service on this machine's loopback, which is then found on the agent's own."""
        return bool(self.network) and ipaddress.ip_network(self.network).is_loopback

    def names(self, host: str) -> bool:
        """Whether it allows *host*, a name in lower case, by its name."""
        return host.endswith(f".{self.name}") if self.suffix else bool(self.name) and host == self.name

    def lists(self, address: Address) -> bool:
        """Whether it lists *address* itself."""
        return bool(self.network) and address in ipaddress.ip_network(self.network)


def parse_rules(texts: Iterable[str]) -> tuple[HostRule, ...]:
    """Reads rules; raises :class:`InvalidRuleError` for the first that is none."""
    return tuple(parse_rule(text) for text in texts)


def parse_rule(text: str) -> HostRule:
    """Reads one rule; raises :class:`InvalidRuleError`."""
    if "://" in text:
        raise InvalidRuleError(text, "it is a URL", "write its host alone")
    place, equals, target = text.strip().partition("=")
    host, ports = _split(text, place)
    first, last = _ports(text, ports)
    network = _network(host)
    rule = HostRule(text=text.strip(), first=first, last=last)
    if network is not None:
        if equals:
            raise InvalidRuleError(text, "an address leads to itself", "leave out what stands behind =")
        if not network.prefixlen or network[0].is_unspecified:
            raise InvalidRuleError(text, "it allows every address", "name the addresses")
        if isinstance(network, ipaddress.IPv6Network) and network.network_address.scope_id:
            raise InvalidRuleError(text, "it names an interface", "leave out what stands behind %")
        if _holds_loopback(network) and (first != last or not ports or network.num_addresses > 1):
            raise InvalidRuleError(text, "of loopback only single services can be reached", "write 127.0.0.1:PORT")
        return rule.replace(network=str(network))
    name = host.lower().removesuffix(".")
    suffix, name = name.startswith("*."), name.removeprefix("*.")
    if not _NAME.fullmatch(name) or len(name) > 253 or name.rpartition(".")[2].isdigit():
        raise InvalidRuleError(text, f"{host!r} is no name of a host")
    if name == "localhost" or name.endswith(".localhost"):
        raise InvalidRuleError(text, "it is this machine's loopback", "write 127.0.0.1:PORT")
    if suffix and "." not in name:
        raise InvalidRuleError(text, f"it allows every name in {name}", "name a domain beneath it")
    rule = rule.replace(name=name, suffix=suffix)
    return _with_target(rule, target) if equals else rule


def _split(text: str, place: str) -> tuple[str, str]:
    """The host and the ports, "" where none are named; an IPv6 address with ports stands in brackets."""
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise InvalidRuleError(text, "its bracket is not closed before the port")
        return host, rest[1:]
    if place.count(":") > 1:
        return place, ""
    host, colon, ports = place.partition(":")
    if colon and not ports:
        raise InvalidRuleError(text, "there is no port behind the colon")
    return host, ports


def _ports(text: str, ports: str) -> tuple[int, int]:
    if ports == "*":
        return 1, _HIGHEST_PORT
    low, _, high = (ports or str(_DEFAULT_PORT)).partition("-")
    if not all(word.isascii() and word.isdigit() for word in (low, high or low)):
        raise InvalidRuleError(text, f"{ports!r} is no port")
    first, last = int(low), int(high or low)
    if not 0 < first <= last <= _HIGHEST_PORT:
        raise InvalidRuleError(text, f"{ports!r} is no port, which go from 1 to {_HIGHEST_PORT}")
    return first, last


def _network(host: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(host)
    except ValueError:
        return None


def _holds_loopback(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return any(network.version == other.version and network.overlaps(other) for other in _LOOPBACK)


def _with_target(rule: HostRule, target: str) -> HostRule:
    if rule.suffix:
        raise InvalidRuleError(rule.text, "only a single name can be led to an address")
    host, port = _split(rule.text, target)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise InvalidRuleError(
            rule.text, f"{host!r} is no address", "write NAME=ADDRESS or NAME=ADDRESS:PORT"
        ) from None
    first, last = _ports(rule.text, port or str(rule.first))
    if first != last:
        raise InvalidRuleError(rule.text, "it leads to several ports", "write NAME=ADDRESS:PORT")
    return rule.replace(target=str(address), target_port=first if port else 0)


def address_of(host: str) -> Address | None:
    """*host* as an address, with or without brackets; None for a name."""
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def allowing(rules: Sequence[HostRule], host: str, port: int) -> HostRule | None:
    """The rule that allows *host*, a name or an address, at *port*; one that leads somewhere comes first."""
    address = address_of(host)
    name = host.lower().removesuffix(".")
    if address is not None:
        found = [rule for rule in rules if rule.lists(address)]
    elif _NAME.fullmatch(name):
        found = [rule for rule in rules if rule.names(name)]
    else:
        return None
    fitting = [rule for rule in found if rule.first <= port <= rule.last]
    return next((rule for rule in fitting if rule.target), fitting[0] if fitting else None)


def is_public(address: Address) -> bool:
    """Whether *address* belongs to the internet at large, and so does what is hidden in it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(inner):
            return False
        if address not in _GLOBAL_UNICAST and address not in _TRANSLATED:
            return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast


def covers(outer: Sequence[HostRule], rule: HostRule) -> bool:
    """Whether the rules of *outer* allow everything that *rule* allows."""
    return any(_covers(other, rule) for other in outer)


def _covers(outer: HostRule, rule: HostRule) -> bool:
    if not outer.first <= rule.first <= rule.last <= outer.last:
        return False
    if (outer.target, outer.target_port) != (rule.target, rule.target_port):
        return False
    if outer.network or rule.network:
        if not (outer.network and rule.network):
            return False
        networks = ipaddress.ip_network(outer.network), ipaddress.ip_network(rule.network)
        return networks[0].version == networks[1].version and networks[1].subnet_of(networks[0])  # type: ignore[arg-type]
    same = rule.name == outer.name and rule.suffix == outer.suffix
    return same or (outer.suffix and outer.names(rule.name))


def doors(rules: Sequence[HostRule]) -> tuple[tuple[str, int], ...]:
    """Addresses and ports on the agent's loopback: the proxy's, then those of the services that are forwarded."""
    forwarded = [(str(ipaddress.ip_network(rule.network)[0]), rule.first) for rule in rules if rule.forwarded]
    taken = {port for _, port in forwarded}
    proxy = next(port for port in range(PROXY_PORT, _HIGHEST_PORT) if port not in taken)
    return ("127.0.0.1", proxy), *dict.fromkeys(forwarded)


def reads_own_job(rules: Sequence[HostRule]) -> tuple[str, ...]:
    """The rules that let the agent ask GitHub, which shows the names of jobs."""
    return tuple(rule.text for rule in rules if any(allowing([rule], host, rule.first) for host in _GITHUB))
