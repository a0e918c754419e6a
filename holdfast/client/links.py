"""A client's connection to the process that owns a database file: calls go out in order, answers come back in any."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.engine.serving.frames import LONGEST_PART, PROTOCOL, FrameKind, MalformedFrame, make_frame, read_frame
from holdfast.engine.serving.messages import Call, Hello, Welcome, decode_error, is_signed, sign
from holdfast.engine.serving.places import find_user, read_peer
from holdfast.errors import ConnectionRefused, HoldfastError, PayloadTooLarge
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.store.endpoints import Endpoint

GREETING_TIME: Final = 10.0
"""Seconds within which the other side has to have answered a greeting: one that does not is no owner any more."""
_LONGEST_FRAME: Final = 64 * 1024 * 1024


class LinkLost(Exception):
    """The connection ended before the answer came: if the call was sent, it may or may not have been taken."""

    def __init__(self, *, was_sent: bool) -> None:
        super().__init__()
        self.was_sent = was_sent


class Link:
    """An open connection to the owner of a database. Any number of calls may be under way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, longest_call: int) -> None:
        self._reader = reader
        self._writer = writer
        self._longest_call = longest_call
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._parts: dict[int, list[bytes]] = {}
        self._lost: Exception | None = None
        self._reading = asyncio.get_running_loop().create_task(self._read(), name="holdfast-client-link")

    @property
    def is_open(self) -> bool:
        """Whether calls can be sent: the connection has not ended as far as is known."""
        return self._lost is None

    async def call(self, call: Call) -> bytes:
        """Send a call and wait for its answer. Raises what the call raised there, or LinkLost.

        The call is written before anything is awaited: calls reach the other side in the order in which they are made.
        """
        if self._lost is not None:
            raise LinkLost(was_sent=False)
        body = msgspec.json.encode(call)
        if len(body) > self._longest_call:
            raise PayloadTooLarge(
                f"Expected a call of at most {self._longest_call} bytes as JSON, but it has {len(body)}. Store values "
                "elsewhere and pass references, or raise the engine's payload_limit."
            )
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            self._writer.write(make_frame(FrameKind.CALL, number, body))
            if self._writer.transport.is_closing():  # the other side had gone: what is written then is not sent
                raise LinkLost(was_sent=False)
            try:
                await self._writer.drain()
            except OSError:
                raise LinkLost(was_sent=True) from None
            return await answer
        except asyncio.CancelledError:
            if self._lost is None:
                self._writer.write(make_frame(FrameKind.CANCEL, number))
            raise
        finally:
            if answer.done() and not answer.cancelled():
                answer.exception()  # it may not have come to be awaited
            self._answers.pop(number, None)
            self._parts.pop(number, None)

    async def _read(self) -> None:
        try:
            while (frame := await read_frame(self._reader, _LONGEST_FRAME)) is not None:
                self._take(frame.kind, frame.number, frame.body)
        except (MalformedFrame, msgspec.MsgspecError, ConnectionRefused) as error:
            self._lose(error if isinstance(error, HoldfastError) else LinkLost(was_sent=True))
        finally:
            self._lose(LinkLost(was_sent=True))

    def _take(self, kind: FrameKind, number: int, body: bytes) -> None:
        if kind is FrameKind.ERROR and number == 0:
            raise decode_error(body)
        answer = self._answers.get(number)
        if answer is None or answer.done():
            return  # nobody waits for it any more
        if kind is FrameKind.PART:
            self._parts.setdefault(number, []).append(body)
        elif kind is FrameKind.ANSWER:
            answer.set_result(b"".join([*self._parts.pop(number, ()), body]))
        elif kind is FrameKind.ERROR:
            answer.set_exception(decode_error(body))

    def _lose(self, error: Exception) -> None:
        if self._lost is None:
            self._lost = error
            self._writer.close()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(error)

    async def close(self) -> None:
        """End the connection; calls that are under way raise LinkLost. Idempotent."""
        self._lose(LinkLost(was_sent=True))
        self._reading.cancel()
        await asyncio.wait([self._reading])


async def connect(endpoint: Endpoint) -> Link:
    """Connect to where the owner of a database listens. Raises OSError if nobody does, or ConnectionRefused."""
    user = find_user(endpoint)
    if endpoint.socket:
        reader, writer = await asyncio.open_unix_connection(endpoint.socket, limit=LONGEST_PART)
    else:
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port, limit=LONGEST_PART)
    try:
        sock: socket.socket = writer.get_extra_info("socket")
        peer = read_peer(sock)
        if peer is not None and peer != user:
            raise ConnectionRefused(
                f"Expected a process of user {user} at '{endpoint.socket}', but it is of user {peer}. Find out whose it is."
            )
        async with asyncio.timeout(GREETING_TIME):
            welcome = await _greet(reader, writer, endpoint)
    except BaseException:
        writer.close()
        raise
    return Link(reader, writer, welcome.longest_call)


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: Endpoint) -> Welcome:
    token = _read_token(endpoint)
    nonce = secrets.token_hex(16)
    writer.write(make_frame(FrameKind.HELLO, 0, msgspec.json.encode(Hello(PROTOCOL, __version__, nonce))))
    try:
        frame = await read_frame(reader, _LONGEST_FRAME)
        if frame is None:
            raise ConnectionResetError("the other side is gone")
        if frame.kind is FrameKind.ERROR:
            raise decode_error(frame.body)
        welcome = msgspec.json.decode(frame.body, type=Welcome)
    except (MalformedFrame, msgspec.MsgspecError) as error:
        raise ConnectionRefused(
            f"Expected the owner of the database to answer, but {error}. Find out who listens."
        ) from error
    if token:
        if not is_signed(welcome.proof, token, "server", nonce):
            raise ConnectionRefused(
                f"Expected the owner of the database at port {endpoint.port}, but another process listens there. Try again."
            )
        proof = sign(token, "client", welcome.nonce)
        writer.write(make_frame(FrameKind.HELLO, 0, msgspec.json.encode(Hello(PROTOCOL, __version__, "", proof))))
    return welcome


def _read_token(endpoint: Endpoint) -> str:
    return Path(endpoint.token_file).read_text("utf-8") if endpoint.token_file else ""
