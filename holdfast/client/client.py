"""The client: the verbs of an engine for programs that run no workflow code."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from holdfast.client.client_verbs import ClientVerbs
from holdfast.client.reaches import DirectReach, Reach
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.stores import POSTGRES_SCHEMES, hide_password
from holdfast.errors import EngineClosed, InvalidConfiguration, WrongEventLoop


class Client(ClientVerbs):
    """Starts, signals and asks about executions that other processes run. It has no code, and is no node.

        async with Client("postgresql://user@host/database") as client:
            handle = await client.start("order", {"id": 7}, workflow_id="order-7")
            print(await handle.result())

    On PostgreSQL it speaks to the database. On SQLite (`sqlite:///app.db`) it speaks to the process that owns the file;
    while none does, it reads the file, and owns it for the length of a call that changes something. See docs/client.md.
    `codec` is that of the engines, where they have one.
    """

    def __init__(self, url: str, *, codec: PayloadCodec | None = None) -> None:
        self._url = url
        self._opened: Reach | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._was_closed = False
        self._connection = _make_reach(url, codec)

    async def open(self) -> None:
        """Connect. Does nothing if the client is open. Raises a StoreError that says what is wrong."""
        if self._was_closed:
            raise EngineClosed("Expected to open a new client, but this one was closed. Make another: Client(...).")
        if self._opened is None:
            await self._connection.open()
            self._opened, self._loop = self._connection, asyncio.get_running_loop()

    async def close(self) -> None:
        """Finish what was asked, and disconnect. Idempotent."""
        opened, self._opened, self._was_closed = self._opened, None, True
        if opened is not None:
            await opened.close()

    @property
    def _reach(self) -> Reach:
        if self._opened is None:
            raise EngineClosed(
                "Expected the client to be open, but it is not. Use `async with Client(...)`, or await open()."
            )
        if asyncio._get_running_loop() is not self._loop:
            raise WrongEventLoop(
                "Expected to be awaited in the event loop in which the client was opened, but another one is running. Make "
                "a client in each loop, or use a SyncClient from threads."
            )
        return self._opened

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<client of {hide_password(self._url)!r}>"


def _make_reach(url: str, codec: PayloadCodec | None) -> Reach:
    scheme, separator, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    if separator and scheme == "sqlite":
        from holdfast.client.owned_files import OwnedFile  # noqa: PLC0415 - only what is used is loaded
        from holdfast.store.sqlite.urls import parse_url  # noqa: PLC0415

        return OwnedFile(parse_url(url).expanduser().resolve(), codec)
    if separator and scheme in POSTGRES_SCHEMES:
        return DirectReach(url, codec)
    if separator and scheme == "memory":
        raise InvalidConfiguration(
            "Expected a database that other processes can reach, but 'memory://' is only in the process of its engine. Call "
            "the engine itself, or use 'sqlite:///file.db' or 'postgresql://user@host/database'."
        )
    shown = hide_password(url) if isinstance(url, str) else url
    raise InvalidConfiguration(
        f"Expected a client to get 'sqlite:///file.db' or 'postgresql://user@host/database', but got {shown!r}. Correct it."
    )
