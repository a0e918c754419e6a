"""A user's own table in each kind of store, for functions in transactions: plain where the driver is, else async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Final

from holdfast import TransactionActivity, TransactionWork, transaction
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.engine.engine import Engine
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from tests.engine.support.user_connections import schema_of
from tests.store.notes import Notes

KINDS: Final = ("memory", "sqlite", "postgres")


class Place:
    """One database of one test, and the engines that are opened on it."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url
        self.notes = Notes(f"{schema_of(url)}.notes" if kind == "postgres" else "notes")
        self._database = MemoryDatabase()
        self._engines: list[Engine] = []

    async def open(self, *definitions: Workflow[..., Any] | Activity[..., Any], **options: Any) -> Engine:
        """An engine that has these workflows and activities."""
        store = MemoryStore(self._database, exclusive=True) if self.kind == "memory" else self.url
        engine = Engine(
            store,
            workflows=[one for one in definitions if isinstance(one, Workflow)],
            activities=[one for one in definitions if isinstance(one, Activity)],
            **({"shutdown_grace": 0.05} | options),
        )
        self._engines.append(engine)
        await engine.open()
        return engine

    def function(self, call: Callable[[Any, TransactionWork], Any]) -> Callable[[Any, TransactionWork], Any]:
        """A function for `engine.transaction`, as the store's driver likes it."""
        if self.kind != "postgres":
            return call

        async def function(connection: Any, work: TransactionWork) -> Any:
            return await finish(call(connection, work))

        return function

    def transaction(self, call: Callable[[Any, str], Any], **options: Any) -> TransactionActivity[[str], Any]:
        """A function for `ctx.transaction`, which takes a name, as the store's driver likes it."""
        if self.kind != "postgres":

            @transaction(**{"name": "note", **options})
            def note(connection: Any, name: str) -> Any:
                return call(connection, name)

            return note

        @transaction(**{"name": "note", **options})
        async def note_async(connection: Any, name: str) -> Any:
            return await finish(call(connection, name))

        return note_async

    async def read(self) -> dict[str, str]:
        """The user's own table, as it is committed."""
        return await self.notes.read(self._engines[-1].store)

    async def close(self) -> None:
        """The test is over: what it left must be whole."""
        for engine in self._engines:
            if engine.is_open:
                problems = await engine.store.check()
                await engine.shutdown()
                assert problems == []


async def finish(result: Any | Awaitable[Any]) -> Any:
    """What came out, now or later."""
    return await result if isawaitable(result) else result
