"""One client of a proxy, and its session at the server."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Final

from tests.postgres.traps import Harm, MessageTrap, Rules
from tests.postgres.wire import ENDS_WITH_READY, ClientStream, Message, ServerStream

CHUNK: Final = 1 << 16


class Connection:
    """Carries messages both ways and keeps to the rules, until one side ends or it is cut."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        rules: Rules,
    ) -> None:
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._rules = rules
        self._answers = ServerStream()
        self._asked = 1
        """How often the server will have said that it is ready, after all that was sent to it; once for the start."""
        self._swallowed: tuple[MessageTrap, int] | None = None
        """The trap whose answer is kept from the client, and the answer's number."""
        self._pumps: list[asyncio.Task[None]] = []
        self._keeps_session = False
        self.ended: Final = asyncio.Event()

    async def run(self) -> None:
        """Carry messages until the end."""
        self._pumps = [asyncio.create_task(self._carry_questions()), asyncio.create_task(self._carry_answers())]
        try:
            await asyncio.wait(self._pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in self._pumps:
                pump.cancel()
            try:
                await asyncio.gather(*self._pumps, return_exceptions=True)
                await _close(self._to_client)
                if not self._keeps_session:
                    await _close(self._to_server)
            finally:
                self.ended.set()

    def cut(self) -> None:
        """Reset the client's side, and close the server's after what was already sent."""
        with suppress(OSError):  # closed already
            client: socket.socket = self._to_client.get_extra_info("socket")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._to_client.transport.abort()
        for pump in self._pumps:
            pump.cancel()

    def abandon(self) -> None:
        """Let go of what is still open, but for a session that is kept."""
        self._to_client.transport.abort()
        if not self._keeps_session:
            self._to_server.transport.abort()

    def keep_session(self) -> asyncio.StreamWriter:
        """Leave the session at the server open when this ends. The caller closes it one day."""
        self._keeps_session = True
        return self._to_server

    async def _carry_questions(self) -> None:
        messages = ClientStream()
        with suppress(ConnectionError):
            while data := await self._from_client.read(CHUNK):
                for message in messages.feed(data):
                    if message.kind == "encrypt":
                        self._to_client.write(b"N")
                    else:
                        await self._ask(message)

    async def _ask(self, message: Message) -> None:
        trap = self._rules.take_trap(message)
        if trap is not None and trap.harm is Harm.CUT_BEFORE:
            self.cut()
            trap.spring()
            raise ConnectionAbortedError  # so that messages of the same packet stay behind too
        if trap is not None and trap.harm is Harm.HOLD_BEFORE:
            self._rules.flow.clear()
            trap.spring()
        await self._rules.flow.wait()
        if trap is not None and trap.harm is Harm.CUT_AFTER:
            # An Execute is answered with the Sync that follows it; a Query by itself.
            self._swallowed = (trap, self._asked + 1)
        self._asked += message.kind in ENDS_WITH_READY
        limit = self._rules.client_limit
        self._to_server.write(message.raw if limit is None else limit.take(message.raw))
        await self._to_server.drain()
        if limit is not None and limit.is_full():
            self._rules.client_limit = None
            self.cut()
            limit.spring()
            raise ConnectionAbortedError

    async def _carry_answers(self) -> None:
        with suppress(ConnectionError):
            while data := await self._from_server.read(CHUNK):
                self._answers.feed(data)
                if self._swallowed is None:
                    await self._answer(data)
                elif self._answers.replies >= self._swallowed[1]:
                    self.cut()
                    self._swallowed[0].spring()
                    return

    async def _answer(self, data: bytes) -> None:
        await self._rules.flow.wait()
        limit = self._rules.server_limit
        self._to_client.write(data if limit is None else limit.take(data))
        await self._to_client.drain()
        if limit is not None and limit.is_full():
            self._rules.server_limit = None
            # An orderly end, for a reset would take back what was just sent.
            self._to_client.close()
            self._pumps[0].cancel()
            limit.spring()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
