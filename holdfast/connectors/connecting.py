"""From a name to a connection: every address of a name is checked, and the one that was checked is connected to.

A name is resolved once per connection. Whoever answers for the name cannot answer differently between the check and the
connection (DNS rebinding), since nothing is resolved in between. `Host`, SNI and the certificate go by the name.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, TypeAlias

from holdfast.connectors.addresses import Address, AddressGuard
from holdfast.connectors.http_failures import CONNECTION, CallFailed, make_refusal
from holdfast.connectors.urls import Origin

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

MOST_ADDRESSES: Final = 4
"""How many addresses of a name are tried."""
LONGEST_LINE: Final = 16 * 1024
"""Bytes of one line of a response's head, or of the line before a chunk."""


async def resolve_by_system(host: str, port: int) -> Sequence[Address]:
    """The addresses of a name, in the system's order of preference. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(one[4][0]) for one in found))


@dataclass(frozen=True, slots=True)
class Connector:
    """Opens connections to addresses that the guard permits."""

    guard: AddressGuard
    tls: ssl.SSLContext
    resolve: Resolve = resolve_by_system

    async def connect(self, origin: Origin) -> Streams:
        """A connection to a host. Raises CallFailed: final if an address is refused or a certificate is wrong."""
        addresses = await self._find_addresses(origin)
        for address in addresses:
            kind = self.guard.find_refusal(origin.host, address)
            if kind is not None:
                raise make_refusal(
                    f"'{origin.host}' to have public addresses",
                    f"{address} is {kind}",
                    "If it is to be called, name it in http_activity(…, allow_private=[…]).",
                )
        trouble: OSError | None = None
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return await self._open(address, origin)
            except ssl.SSLCertVerificationError as error:
                raise CallFailed(
                    f"Expected '{origin.host}' to show a certificate for its name, but {error.verify_message}. "
                    "Correct it there, or pass tls=… with the authority that signed it.",
                    CONNECTION,
                    is_final=True,
                ) from error
            except TimeoutError:
                raise
            except OSError as error:
                trouble = error
        raise make_connection_failure(origin, trouble) from trouble

    async def _find_addresses(self, origin: Origin) -> Sequence[Address]:
        written = origin.address
        if written is not None:
            return [written]
        try:
            addresses = await self.resolve(origin.host, origin.port)
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:
            raise make_connection_failure(origin, error) from error
        if not addresses:
            raise make_connection_failure(origin, None)
        return addresses

    async def _open(self, address: Address, origin: Origin) -> Streams:
        if origin.scheme == "http":
            return await asyncio.open_connection(str(address), origin.port, limit=LONGEST_LINE)
        return await asyncio.open_connection(
            str(address), origin.port, limit=LONGEST_LINE, ssl=self.tls, server_hostname=origin.host
        )


def make_connection_failure(origin: Origin, error: Exception | None) -> CallFailed:
    """The failure of a call whose service could not be reached; it may be tried again."""
    why = f"{type(error).__name__}: {error}" if error is not None else "its name has no address"
    return CallFailed(f"Expected to reach {origin}, but that failed ({why}). Is it running?", CONNECTION)
