"""A service on loopback that answers with the bytes that a test gives it, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from holdfast.connectors.addresses import Address, make_guard
from holdfast.connectors.allow_lists import make_allow_list
from holdfast.connectors.connecting import Connector, Resolve
from holdfast.connectors.http_exchanges import HttpCaller, HttpLimits

CERTIFICATES: Final = Path(__file__).parent / "certificates"
"""For service.example, valid from 2020 to 2120; the key of the authority that signed it was thrown away."""

Answer = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LoopbackService:
    """Answers each connection with the next of its answers; bytes, or a function that writes them."""

    def __init__(self, port: int, answers: Sequence[Answer]) -> None:
        self.port = port
        self.requests: list[bytes] = []
        self.is_left = asyncio.Event()
        """Set when a client has closed its connection while the service still had something to say."""
        self._answers = list(answers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(one[15:]) for one in head.split(b"\r\n") if one.lower().startswith(b"content-length:")), 0)
            self.requests.append(head + await reader.readexactly(length))
            answer = self._answers.pop(0)
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.is_left.set()
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[LoopbackService]:
    """A service that runs while the block does."""
    service = LoopbackService(0, answers)
    async with await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=tls) as server:
        service.port = server.sockets[0].getsockname()[1]
        yield service


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """An answer that never comes; it ends when the client has had enough."""
    await reader.read()


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body without end, byte by byte."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0)


def respond(status: int = 200, body: bytes = b"", *headers: str) -> bytes:
    """A plain response."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def redirect(location: str, status: int = 302) -> bytes:
    """A response that leads elsewhere."""
    return respond(status, b"", f"Location: {location}")


def resolve_to(*answers: Sequence[str]) -> Resolve:
    """A resolver that answers each question with the next list of addresses."""
    left = [list(answer) for answer in answers]

    async def resolve(_host: str, _port: int) -> Sequence[Address]:
        return [IPv4Address(one) for one in left.pop(0)]

    return resolve


def make_caller(
    *allow: str,
    private: Sequence[str] = ("127.0.0.1",),
    limits: HttpLimits | None = None,
    answers: Sequence[Sequence[str]] = (),
    resolve: Resolve | None = None,
    tls: ssl.SSLContext | None = None,
) -> HttpCaller:
    """A caller that may call loopback; `answers` are what names resolve to, one question after another."""
    connector = Connector(make_guard(private), tls or ssl.create_default_context(), resolve or resolve_to(*answers))
    return HttpCaller(make_allow_list(allow or ("*:*",)), connector, limits or HttpLimits())
