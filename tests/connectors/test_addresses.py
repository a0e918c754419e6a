"""The guard of addresses: what is not public is refused, however it is written, unless the operator names it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.addresses import AddressGuard, find_special_kind, make_guard, unwrap
from holdfast.errors import InvalidConfiguration

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",  # metadata of Alibaba Cloud
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",  # Azure's, among public addresses
    "169.254.169.254",  # metadata of most clouds
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",  # metadata of Oracle Cloud
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # IPv4-compatible
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",  # SIIT
    "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
    "64:ff9b::a9fe:a9fe",  # NAT64 of 169.254.169.254
    "64:ff9b:1::808:808",  # NAT64 of a network's own
    "100::1",
    "2001::1",  # Teredo
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2002:808:808::1",
    "2606:4700::5efe:a00:1",  # ISATAP
    "2606:4700::200:5efe:a00:1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",  # metadata of AWS
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82b::200e",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]
ANY_ADDRESS = st.ip_addresses(v=4) | st.ip_addresses(v=6)


@pytest.mark.parametrize("text", REFUSED)
def test_special_address_is_refused(text: str) -> None:
    assert find_special_kind(ip_address(text)) is not None
    assert AddressGuard().find_refusal("a.example", ip_address(text)) is not None


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_is_permitted(text: str) -> None:
    assert find_special_kind(ip_address(text)) is None
    assert AddressGuard().find_refusal("a.example", ip_address(text)) is None


@given(ANY_ADDRESS)
def test_whatever_is_permitted_python_calls_global_too(address: IPv4Address | IPv6Address) -> None:
    if find_special_kind(address) is not None or (address.version == 6 and int(address) >> 125 != 1):
        return

    assert address.is_global
    assert not address.is_multicast
    assert not address.is_private


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "64:ff9b::"]))
def test_address_that_carries_another_is_judged_by_it(address: IPv4Address, prefix: str) -> None:
    carrier = IPv6Address(int(IPv6Address(prefix)) | int(address))

    assert find_special_kind(carrier) == find_special_kind(address)


@given(st.ip_addresses(v=6))
def test_nothing_outside_of_global_unicast_is_permitted_but_carriers(address: IPv6Address) -> None:
    if int(address) >> 125 == 1 or unwrap(address) != address:
        return

    assert find_special_kind(address) is not None


def test_named_network_is_permitted_and_nothing_beside_it() -> None:
    guard = make_guard(["10.1.0.0/16", "fd12::/16"])

    assert guard.find_refusal("a.example", ip_address("10.1.2.3")) is None
    assert guard.find_refusal("a.example", ip_address("::ffff:10.1.2.3")) is None
    assert guard.find_refusal("a.example", ip_address("fd12::1")) is None
    assert guard.find_refusal("a.example", ip_address("10.2.0.1")) is not None
    assert guard.find_refusal("a.example", ip_address("fd13::1")) is not None


def test_named_host_may_be_private_but_never_link_local_or_metadata() -> None:
    guard = make_guard(["Intranet.Example."])

    assert guard.find_refusal("intranet.example", ip_address("10.2.3.4")) is None
    assert guard.find_refusal("intranet.example", ip_address("127.0.0.1")) is None
    assert guard.find_refusal("intranet.example", ip_address("169.254.169.254")) is not None
    assert guard.find_refusal("intranet.example", ip_address("fd00:ec2::254")) is not None
    assert guard.find_refusal("intranet.example", ip_address("0.0.0.0")) is not None
    assert guard.find_refusal("other.example", ip_address("10.2.3.4")) is not None


@pytest.mark.parametrize("entry", ["10.1.2.3/16", "10.0.0.0/40", "a b", "http://intranet", "", "*.example.com", 5])
def test_entry_that_names_neither_network_nor_host_is_refused(entry: str) -> None:
    with pytest.raises(InvalidConfiguration, match="allow_private"):
        make_guard([entry])


def test_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"allow_private=\['10.0.0.0/8'\]"):
        make_guard("10.0.0.0/8")
