"""From bytes to a response of HTTP/1.1 (RFC 9112), with a bound on each part of it.

There is one response per connection, so where it ends cannot be confused with where the next begins.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.connectors.http_failures import CONNECTION, TOO_LARGE, CallFailed
from holdfast.connectors.http_requests import Pairs

MOST_HEADERS: Final = 200
MOST_HEAD_BYTES: Final = 128 * 1024
MOST_INTERIM: Final = 20
"""Responses with a status of 1xx that may come before the one that counts."""
PIECE: Final = 64 * 1024
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?: [^\r\n]*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\x00]*?)[ \t]*")
_CHUNK: Final = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_LENGTH: Final = re.compile(r"\d{1,15}")
_CODINGS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Window bits with which zlib reads a content coding; 47 finds out itself."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response as it came; its body is without transfer and content codings."""

    status: int
    headers: Pairs
    body: bytes = b""

    def find(self, name: str) -> str | None:
        """The value of a header; several are joined, as RFC 9110 has it. None if there is none."""
        found = [value for one, value in self.headers if one.lower() == name]
        return ", ".join(found) if found else None


class ResponseReader:
    """Reads one response. Each read takes at most `read_seconds`; `on_read` is called after each."""

    def __init__(
        self, reader: asyncio.StreamReader, most_bytes: int, read_seconds: float, on_read: Callable[[], None]
    ) -> None:
        self._reader = reader
        self._most_bytes = most_bytes
        self._read_seconds = read_seconds
        self._on_read = on_read
        self._head_bytes = 0
        self._body = _Body(_Plain(), most_bytes)

    async def read_head(self) -> HttpResponse:
        """Status and headers of the response that counts. Raises CallFailed, or TimeoutError."""
        for _ in range(MOST_INTERIM):
            line = await self._read_line()
            found = _STATUS_LINE.fullmatch(line)
            if found is None:
                raise _make_failure(f"its first line is {line[:100]!r}")
            headers = await self._read_headers()
            status = int(found[1])
            if status == 101:
                raise _make_failure("it changes the protocol (status 101)")
            if status >= 200:
                return HttpResponse(status, headers)
        raise _make_failure(f"more than {MOST_INTERIM} answers say that it is yet to come")

    async def read_body(self, head: HttpResponse, method: str) -> HttpResponse:
        """The whole response. Raises CallFailed, final if the body is larger than permitted, or TimeoutError."""
        if method == "HEAD" or head.status in (204, 304):
            return head
        self._body = _Body(_make_decoder(head), self._most_bytes)
        await self._read_framed(head)
        return HttpResponse(head.status, head.headers, self._body.finish())

    # --- head ---

    async def _read_headers(self) -> Pairs:
        found: list[tuple[str, str]] = []
        while line := await self._read_line():
            pair = _HEADER.fullmatch(line)
            if pair is None:
                raise _make_failure(f"one of its headers is {line[:100]!r}")
            found.append((pair[1].decode("ascii"), pair[2].decode("latin-1")))
            if len(found) > MOST_HEADERS:
                raise _make_failure(f"it has more than {MOST_HEADERS} headers")
        return tuple(found)

    async def _read_line(self) -> bytes:
        try:
            async with asyncio.timeout(self._read_seconds):
                line = await self._reader.readline()
        except ValueError:  # the limit of the stream
            raise _make_failure("one of its lines is too long") from None
        if not line.endswith(b"\n"):
            raise _make_failure("the connection was closed before its end")
        self._head_bytes += len(line)
        if self._head_bytes > MOST_HEAD_BYTES + self._most_bytes:
            raise _make_failure("its head is too large")
        self._on_read()
        return line[:-1].removesuffix(b"\r")

    # --- body ---

    async def _read_framed(self, head: HttpResponse) -> None:
        """Read the body to its end, by the rules of RFC 9112, section 6.3."""
        coding = head.find("transfer-encoding")
        if coding is not None:
            if coding.strip().lower() != "chunked":
                raise _make_failure(f"it has an unknown transfer coding, {coding[:100]!r}")
            await self._read_chunks()
            return
        lengths = {one.strip() for one in (head.find("content-length") or "").split(",") if one.strip()}
        if not lengths:
            await self._read_to_end()
            return
        length = lengths.pop()
        if lengths or not _LENGTH.fullmatch(length):
            raise _make_failure("its length is unclear")
        if int(length) > self._most_bytes:
            raise _make_too_large(self._most_bytes)
        await self._read_exactly(int(length))

    async def _read_chunks(self) -> None:
        while True:
            line = await self._read_line()
            found = _CHUNK.fullmatch(line)
            if found is None:
                raise _make_failure(f"the line before a chunk is {line[:100]!r}")
            size = int(found[1], 16)
            if size == 0:
                break
            await self._read_exactly(size)
            if await self._read_line():
                raise _make_failure("a chunk is longer than it says")
        await self._read_headers()  # trailers, which nobody needs

    async def _read_exactly(self, length: int) -> None:
        left = length
        while left:
            piece = await self._read_some(min(left, PIECE))
            if not piece:
                raise _make_failure("the connection was closed before its end")
            left -= len(piece)

    async def _read_to_end(self) -> None:
        while await self._read_some(PIECE):
            pass

    async def _read_some(self, most: int) -> bytes:
        async with asyncio.timeout(self._read_seconds):
            piece = await self._reader.read(most)
        self._on_read()
        self._body.add(piece)
        return piece


class _Body:
    """Collects a body, and refuses what is too much of it as soon as it is."""

    def __init__(self, decoder: _Plain | _Inflating, most_bytes: int) -> None:
        self._decoder = decoder
        self._most_bytes = most_bytes
        self._collected = bytearray()

    def add(self, piece: bytes) -> None:
        self._collected += self._decoder.decode(piece, self._most_bytes + 1 - len(self._collected))
        if len(self._collected) > self._most_bytes:
            raise _make_too_large(self._most_bytes)

    def finish(self) -> bytes:
        if not self._decoder.is_complete:
            raise _make_failure("its compressed body is cut off")
        return bytes(self._collected)


def _make_decoder(head: HttpResponse) -> _Plain | _Inflating:
    """No content coding was asked for, but some services compress whatever they are asked."""
    coding = (head.find("content-encoding") or "identity").strip().lower()
    if coding in ("", "identity"):
        return _Plain()
    if coding not in _CODINGS:
        raise _make_failure(f"its body is compressed by {coding[:100]!r}, which nobody asked for")
    return _Inflating(_CODINGS[coding])


class _Plain:
    """A body without content coding."""

    is_complete = True

    def decode(self, piece: bytes, most: int) -> bytes:
        return piece[:most]


class _Inflating:
    """A compressed body: no more of it is unpacked than is wanted, however much there would be."""

    def __init__(self, window_bits: int) -> None:
        self._inflate = zlib.decompressobj(window_bits)
        self._has_begun = False

    @property
    def is_complete(self) -> bool:
        """Whether the end of the compressed data was seen; also if there is none at all."""
        return self._inflate.eof or not self._has_begun

    def decode(self, piece: bytes, most: int) -> bytes:
        """What the piece unpacks to, `most` bytes at most: the caller stops at the first that is too many."""
        if not piece:
            return b""
        self._has_begun = True
        try:
            return self._inflate.decompress(piece, most)
        except zlib.error as error:
            raise _make_failure(f"its compressed body is damaged ({error})") from None


def _make_too_large(most_bytes: int) -> CallFailed:
    return CallFailed(
        f"Expected the response to have at most {most_bytes:,} bytes, but it has more. "
        "Ask for less, or raise max_response_bytes of http_activity(…).",
        TOO_LARGE,
        is_final=True,
    )


def _make_failure(why: str) -> CallFailed:
    return CallFailed(f"Expected the service to answer by HTTP/1.1, but {why}.", CONNECTION)
