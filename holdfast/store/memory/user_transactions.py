"""User transactions: a user's function runs in a transaction of the store, to change values and put envelopes."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from holdfast.errors import StoreError
from holdfast.store.contract import UserFunction
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import is_closed
from holdfast.store.once import Once, done_before, not_wanted
from holdfast.store.rows import InboxRow

T = TypeVar("T")


class MemoryConnection:
    """Stands for a driver's connection, and `values` for a user's own tables.

    It is a dict that each transaction sees as the last one left it, and that keeps what is put into it on commit.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values


async def transact(connection: Connection, work: UserFunction[T], once: Once | None = None) -> T:
    """Run users' functions one at a time, so that none overwrites values that it has not seen."""
    session, rows = Session(connection), list[InboxRow]()
    is_over = False

    def put(row: InboxRow) -> None:
        if is_over:
            raise StoreError("Expected to put an envelope while the work is being done, but it has ended. Put it earlier.")
        rows.append(row)

    with session.statement():
        await session.reach(Point.BEGIN)
        await session.wait_until(partial(session.locks.try_key, session, "values"))
        if once is not None:
            await _begin_once(session, once)
        user = MemoryConnection(deepcopy(connection.database.tables.values))
        try:
            result = work(user, put)
            done: T = await result if isawaitable(result) else result
        finally:
            is_over = True
        if once is not None:
            await _end_once(session, once)
        session.changes.values = user.values
        session.put_inbox(rows)
    await session.finish(Point.UPDATE, Point.UPDATED)
    return done


async def _begin_once(session: Session, once: Once) -> None:
    """INSERT ... ON CONFLICT DO NOTHING, which waits for whoever is at the same."""
    request = once.request
    key = (request.org, request.kind, request.key)
    await session.wait_until(partial(session.locks.try_key, session, ("request", *key)))
    if session.view.request(key) is not None:
        raise done_before(once)
    session.changes.requests[key] = request


async def _end_once(session: Session, once: Once) -> None:
    """FOR NO KEY UPDATE, with its wait; then read in a new statement."""
    request = once.request
    await session.reach(Point.READ)
    await session.wait_until(partial(session.locks.try_update, session, (request.org, request.execution_id)))
    row = session.view.execution(request.execution_id)
    is_open = row is not None and row.org == request.org and not is_closed(row)
    if not is_open or not once.is_wanted(session.view.history(request.execution_id, once.after)):
        raise not_wanted(once)
