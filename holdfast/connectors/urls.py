"""URLs of http and https, read strictly: what two programs could understand in two ways is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LONGEST_URL: Final = 8_192
_LONGEST_HOST: Final = 253
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMERIC: Final = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\]")
_KEPT: Final = "!#$%&'()*+,/:;=?@[]~-._"
"""What a path and a query keep as it is; `%` too, so that what is escaped already is not escaped twice."""


class UrlRefused(ValueError):
    """A text is no URL that may be called; the message says why, as the second half of a sentence."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whom a request goes to: scheme, host (lower case; an IPv6 address without brackets) and port."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The address that the host is written as; None if it is a name."""
        return read_address(self.host)

    @property
    def authority(self) -> str:
        """Host and port as the header `Host` has them: without the port that the scheme implies."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Url:
    """A URL without its fragment; `target` is the path with the query, as the first line of a request has it."""

    origin: Origin
    target: str

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"

    def without_query(self) -> str:
        """For messages, which are stored: queries hold keys and names of people."""
        return f"{self.origin}{self.target.partition('?')[0]}"

    def join(self, location: str) -> Url:
        """Where a redirect leads. Raises UrlRefused."""
        if _FORBIDDEN.search(location):
            raise UrlRefused("it has control characters, spaces or backslashes in it")
        try:
            joined = urljoin(str(self), location)
        except ValueError as error:
            raise UrlRefused(f"it cannot be read ({error})") from None
        return parse_url(joined)


def parse_url(text: str) -> Url:
    """Read a URL. Raises UrlRefused for other schemes, users and passwords, control characters and odd hosts."""
    if len(text) > LONGEST_URL:
        raise UrlRefused(f"it has more than {LONGEST_URL:,} characters")
    if _FORBIDDEN.search(text):
        raise UrlRefused("it has control characters, spaces or backslashes in it; escape them with %")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlRefused(f"it cannot be read ({error})") from None
    if parts.scheme not in DEFAULT_PORTS or not text[len(parts.scheme) :].startswith("://"):
        raise UrlRefused("it begins with neither http:// nor https://")
    if "@" in parts.netloc:
        raise UrlRefused("it has a user name in it; use authentication for that")
    if port == 0:
        raise UrlRefused("its port is 0")
    host = parse_host(_strip_port(parts.netloc))
    origin = Origin(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme])
    query = f"?{parts.query}" if parts.query else ""
    try:
        return Url(origin, quote((parts.path or "/") + query, safe=_KEPT))
    except UnicodeEncodeError:
        raise UrlRefused("it has half a character in it (a lone surrogate)") from None


def parse_host(text: str) -> str:
    """A host in the form in which hosts are compared: lower case, without a dot at the end. Raises UrlRefused."""
    if text.startswith("[") and text.endswith("]"):
        try:
            address = IPv6Address(text[1:-1])
        except AddressValueError as error:
            raise UrlRefused(f"its host is no IPv6 address ({error})") from None
        if address.scope_id is not None:
            raise UrlRefused("its host names a network interface")
        return address.compressed
    host = text.lower().removesuffix(".")
    if not host:
        raise UrlRefused("it has no host")
    if not host.isascii():
        raise UrlRefused("its host has letters beyond ASCII; write it as xn--…")
    if len(host) > _LONGEST_HOST or not _NAME.fullmatch(host):
        raise UrlRefused("its host is neither a name nor an address")
    if _NUMERIC.fullmatch(host) and not isinstance(read_address(host), IPv4Address):
        raise UrlRefused("its host is an address in an unusual form; write four decimal numbers")
    return host


def read_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as; None if it is a name."""
    for kind in (IPv4Address, IPv6Address):
        try:
            return kind(host)
        except AddressValueError:
            continue
    return None


def _strip_port(authority: str) -> str:
    end = authority.rfind("]")
    colon = authority.find(":", end + 1)
    return authority if colon < 0 else authority[:colon]
