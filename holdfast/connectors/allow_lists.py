"""Which hosts may be called: a list of patterns, each a host with or without scheme and port.

api.example.com               that host, by http or https, at their own ports
https://api.example.com       that host by https alone
api.example.com:8443          that port alone;  api.example.com:*  any port
*.example.com                 the hosts below example.com, at any depth; not example.com itself
*                             any host
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.connectors.urls import DEFAULT_PORTS, Origin, UrlRefused, parse_host
from holdfast.errors import InvalidConfiguration

_PATTERN: Final = re.compile(r"(?:(?P<scheme>[a-z]+)://)?(?P<host>\[[^\]]*\]|[^:/@\s]*)(?::(?P<port>\d{1,5}|\*))?", re.ASCII)
_ANY: Final = -1


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One entry of an allow-list. `host` begins with a dot if the hosts below it are meant, and is empty for any."""

    host: str
    scheme: str | None = None
    port: int | None = None

    def matches(self, origin: Origin) -> bool:
        """Whether requests to this origin are permitted by this pattern."""
        if self.scheme not in (None, origin.scheme):
            return False
        port = DEFAULT_PORTS[origin.scheme] if self.port is None else self.port
        if port not in (_ANY, origin.port):
            return False
        if not self.host:
            return True
        if self.host.startswith("."):
            return origin.address is None and origin.host.endswith(self.host)
        return origin.host == self.host


@dataclass(frozen=True, slots=True)
class AllowList:
    """The patterns of which one must match."""

    patterns: tuple[HostPattern, ...]

    def permits(self, origin: Origin) -> bool:
        """Whether requests may go to this host, at this port, by this scheme."""
        return any(pattern.matches(origin) for pattern in self.patterns)


def make_allow_list(entries: Iterable[str]) -> AllowList:
    """An allow-list by the texts of `allow`. Raises InvalidConfiguration for what is no pattern, and if there is none."""
    if isinstance(entries, str):
        raise InvalidConfiguration(f"Expected allow=… to be a list, but it is {entries!r}. Write allow=[{entries!r}].")
    patterns = tuple(_parse(entry) for entry in entries)
    if not patterns:
        raise InvalidConfiguration(
            "Expected allow=[…] to name the hosts that may be called, but it is empty. "
            "Write for instance allow=['api.example.com'], or allow=['*'] for every public one."
        )
    return AllowList(patterns)


def _parse(entry: str) -> HostPattern:
    found = _PATTERN.fullmatch(entry) if isinstance(entry, str) else None
    if found is None:
        raise _refuse(entry, "it has another form")
    scheme, host, port = found["scheme"], found["host"], found["port"]
    if scheme is not None and scheme not in DEFAULT_PORTS:
        raise _refuse(entry, "its scheme is neither http nor https")
    number = None if port is None else _ANY if port == "*" else int(port)
    if number is not None and number != _ANY and not 0 < number < 65_536:
        raise _refuse(entry, "there is no such port")
    if host == "*":
        return HostPattern("", scheme, number)
    is_wide = host.startswith("*.")
    try:
        name = parse_host(host.removeprefix("*."))
    except UrlRefused as error:
        raise _refuse(entry, str(error)) from None
    return HostPattern(f".{name}" if is_wide else name, scheme, number)


def _refuse(entry: object, why: str) -> InvalidConfiguration:
    return InvalidConfiguration(
        "Expected allow=[…] to hold hosts such as 'api.example.com', '*.example.com' or 'https://api.example.com:8443', "
        f"but found {entry!r}: {why}."
    )
