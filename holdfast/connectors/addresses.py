"""Which addresses may be connected to: those of the public internet, and those that the operator names.

An address is refused unless it is known to be public. The tables follow IANA's registries of special-purpose addresses
(RFC 6890 and its successors); they are written out, since `ipaddress.is_global` differs between releases of Python.

An address may carry another one: `::ffff:10.0.0.1` is 10.0.0.1, and NAT64 (RFC 6052) leads from `64:ff9b::a00:1` there too.
Such an address is what it carries. Tunnels (6to4, Teredo, ISATAP) are refused, wherever they lead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeAlias

from holdfast.connectors.urls import UrlRefused, parse_host, read_address
from holdfast.errors import InvalidConfiguration

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

PRIVATE: Final = "private"
LOOPBACK: Final = "loopback"
LINK_LOCAL: Final = "link-local, where clouds keep credentials"
METADATA: Final = "a metadata service of a cloud"
SHARED: Final = "shared by the customers of a provider (RFC 6598)"
MULTICAST: Final = "multicast"
SPECIAL: Final = "reserved for a special purpose"
DOCUMENTATION: Final = "reserved for documentation"
TUNNEL: Final = "a tunnel to another address"

PERMITTED_BY_NAME: Final = frozenset({PRIVATE, LOOPBACK, SHARED})
"""What `allow_private=['intranet.example.com']` permits that name to be. The rest only a network of its own can permit."""

_IPV4: Final = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", SPECIAL),
        ("10.0.0.0/8", PRIVATE),
        ("100.100.100.200/32", METADATA),
        ("100.64.0.0/10", SHARED),
        ("127.0.0.0/8", LOOPBACK),
        ("168.63.129.16/32", METADATA),
        ("169.254.0.0/16", LINK_LOCAL),
        ("172.16.0.0/12", PRIVATE),
        ("192.0.0.0/24", SPECIAL),
        ("192.0.2.0/24", DOCUMENTATION),
        ("192.88.99.0/24", TUNNEL),
        ("192.168.0.0/16", PRIVATE),
        ("198.18.0.0/15", SPECIAL),
        ("198.51.100.0/24", DOCUMENTATION),
        ("203.0.113.0/24", DOCUMENTATION),
        ("224.0.0.0/4", MULTICAST),
        ("240.0.0.0/4", SPECIAL),
    )
)
_IPV6: Final = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::1/128", LOOPBACK),
        ("fd00:ec2::254/128", METADATA),
        ("fd20:ce::254/128", METADATA),
        ("fc00::/7", PRIVATE),
        ("fe80::/10", LINK_LOCAL),
        ("fec0::/10", PRIVATE),
        ("ff00::/8", MULTICAST),
        ("2001:db8::/32", DOCUMENTATION),
        ("3fff::/20", DOCUMENTATION),
        ("2001::/32", TUNNEL),
        ("2002::/16", TUNNEL),
        ("2001::/23", SPECIAL),
    )
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""The only part of IPv6 from which public addresses are given out."""
_CARRIERS: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def unwrap(address: Address) -> Address:
    """The address that packets reach: the IPv4 address that an IPv6 address carries, else itself."""
    if isinstance(address, IPv6Address) and any(address in network for network in _CARRIERS):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def find_special_kind(address: Address) -> str | None:
    """What an address is if it is not public, in words; None for a public one."""
    found = unwrap(address)
    if isinstance(found, IPv4Address):
        return next((kind for network, kind in _IPV4 if found in network), None)
    for network, kind in _IPV6:
        if found in network:
            return kind
    if found not in _GLOBAL_UNICAST:
        return SPECIAL
    return TUNNEL if (int(found) >> 32) & 0xFFFF_FFFF in _ISATAP else None


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """What may be connected to beside public addresses: networks, and names with private addresses."""

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()

    def find_refusal(self, host: str, address: Address) -> str | None:
        """Why nobody may connect to this address of a host, in words; None if that is permitted."""
        kind = find_special_kind(address)
        if kind is None:
            return None
        candidates = (address, unwrap(address))
        if any(one in network for network in self.networks for one in candidates if one.version == network.version):
            return None
        if host in self.names and kind in PERMITTED_BY_NAME:
            return None
        return kind


def make_guard(allow_private: Iterable[str]) -> AddressGuard:
    """A guard by `allow_private`: networks (`10.1.0.0/16`), addresses and names. Raises InvalidConfiguration."""
    if isinstance(allow_private, str):
        raise InvalidConfiguration(
            f"Expected allow_private=… to be a list, but it is {allow_private!r}. Write allow_private=[{allow_private!r}]."
        )
    networks: list[Network] = []
    names: set[str] = set()
    for entry in allow_private:
        try:
            if "/" in entry or read_address(entry) is not None:
                networks.append(ip_network(entry))
            else:
                names.add(parse_host(entry))
        except (UrlRefused, ValueError, TypeError) as error:
            raise InvalidConfiguration(
                "Expected allow_private=[…] to hold networks, addresses and names of hosts, such as '10.1.0.0/16' or "
                f"'intranet.example.com', but found {entry!r}: {error}."
            ) from None
    return AddressGuard(tuple(networks), frozenset(names))
