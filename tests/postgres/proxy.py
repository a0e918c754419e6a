"""A bad network on demand: a proxy in front of a PostgreSQL server that cuts, freezes and refuses when told to.

    with Proxy(postgres_url) as proxy:
        engine = Engine(proxy.url, ...)

        proxy.cut()                          # all connections end now, with a reset
        proxy.cut(server_too=False)          # the client's side alone: the server's session lives on and keeps its locks
        proxy.refuse(); proxy.accept()       # no new connections; then again
        proxy.hold(); proxy.release()        # nothing gets through, both ways; then all that waited does
        proxy.cut_after_bytes(100)           # in the middle of a message

        trap = proxy.cut_before(is_commit)   # the next commit never reaches the server
        trap = proxy.cut_after(is_commit)    # it is done, but the client never hears of it
        trap = proxy.hold_before(is_commit)  # all traffic stops when it arrives, until release()
        trap.wait()                          # until it happened; in a coroutine: await asyncio.to_thread(trap.wait)

A trap is for one message: the next of any connection that fits. `is_commit` and `runs("insert into")` are predicates
on `tests.postgres.wire.Message`. All verbs can be called from any thread, and are done when they return.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit, urlunsplit

from tests.postgres.connection import Connection
from tests.postgres.processes import pick_port
from tests.postgres.traps import ByteTrap, Harm, MessageTrap, Rules, Trap
from tests.postgres.wire import Predicate, is_commit, runs

__all__ = ["Proxy", "Trap", "is_commit", "runs"]


class Proxy:
    """Stands between clients and the server of a URL, on a port of its own."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._port = pick_port()
        self.url = urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self._port}"))
        """The same as the server's, by way of this proxy."""
        self._rules = Rules()
        self._connections: set[Connection] = set()
        self._sessions: list[asyncio.StreamWriter] = []
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="postgres-proxy", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.accept()

    def close(self) -> None:
        """Stop listening and end all connections. Twice does no harm."""
        if self._loop.is_closed():
            return
        self.refuse()
        self.cut()
        self._do(self._end_rest)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def cut(self, *, server_too: bool = True) -> None:
        """End all connections now. Without `server_too` only the clients notice, as when a network splits."""

        async def cut() -> None:
            connections = list(self._connections)
            for connection in connections:
                if not server_too:
                    self._sessions.append(connection.keep_session())
                connection.cut()
            await asyncio.gather(*(connection.ended.wait() for connection in connections))

        self._do(cut)

    def refuse(self) -> None:
        """Refuse new connections; those that are open go on."""

        async def refuse() -> None:
            if self._listener is not None:
                self._loop.remove_reader(self._listener)
                self._listener.close()
                self._listener = None

        self._do(refuse)

    def accept(self) -> None:
        """Take new connections, as at the beginning."""

        async def accept() -> None:
            if self._listener is None:
                self._listener = socket.create_server(("127.0.0.1", self._port), backlog=128)
                self._listener.setblocking(False)
                self._loop.add_reader(self._listener, self._take, self._listener)

        self._do(accept)

    def hold(self) -> None:
        """Let nothing through, either way, until `release`. Nobody is told: connections stay open."""

        async def hold() -> None:
            self._rules.flow.clear()

        self._do(hold)

    def release(self) -> None:
        """Let through what was held, and what follows."""

        async def release() -> None:
            self._rules.flow.set()

        self._do(release)

    def cut_before(self, fits: Predicate) -> Trap:
        """Cut the connection of the next message that fits. It does not reach the server; those before it do."""
        return self._set_trap(MessageTrap(Harm.CUT_BEFORE, fits))

    def cut_after(self, fits: Predicate) -> Trap:
        """Let the server answer the next message that fits, then cut; the client gets nothing of the answer."""
        return self._set_trap(MessageTrap(Harm.CUT_AFTER, fits))

    def hold_before(self, fits: Predicate) -> Trap:
        """Hold all traffic when the next message that fits arrives, before it reaches the server, until `release`."""
        return self._set_trap(MessageTrap(Harm.HOLD_BEFORE, fits))

    def cut_after_bytes(self, count: int, *, sent_by: Literal["client", "server"] = "client") -> Trap:
        """Let so many more bytes through, of all connections together, then cut the one that sent the last of them."""
        trap = ByteTrap(count)

        async def limit() -> None:
            if sent_by == "client":
                self._rules.client_limit = trap
            else:
                self._rules.server_limit = trap

        self._do(limit)
        return trap

    def _set_trap(self, trap: MessageTrap) -> Trap:
        async def set_trap() -> None:
            self._rules.traps.append(trap)

        self._do(set_trap)
        return trap

    def _do(self, verb: Callable[[], Awaitable[None]]) -> None:
        """Do it on the proxy's loop, and wait until it is done."""

        async def do() -> None:
            await verb()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result(30)

    def _take(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it went away before it was taken
            return
        client.setblocking(False)
        serving = self._loop.create_task(self._serve(client))
        # By the task's end its transports are gone. But one that is cancelled before it begins closes nothing.
        serving.add_done_callback(lambda _: client.close())

    async def _serve(self, client: socket.socket) -> None:
        try:
            server = await asyncio.open_connection(*self._target)
        except OSError:
            return
        connection: Connection | None = None
        try:
            connection = Connection(await asyncio.open_connection(sock=client), server, self._rules)
            self._connections.add(connection)
            await connection.run()
        finally:
            if connection is None:
                server[1].transport.abort()
            else:
                self._connections.discard(connection)
                connection.abandon()

    async def _end_rest(self) -> None:
        for session in self._sessions:
            session.close()
            with suppress(OSError):
                await session.wait_closed()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
