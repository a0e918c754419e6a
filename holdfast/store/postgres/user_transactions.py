"""User transactions: a user's function runs in a transaction of the store, on a connection that is the user's meanwhile.

What makes it happen once comes last: the execution is locked, as a batch would lock it, and only then is looked whether it
still waits and whether nobody was faster. So of two that do the same, the second waits for the end of the first and finds
its evidence; and a function that ends the transaction by itself leaves no evidence that would keep others from doing it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, TypeVar

from asyncpg import exceptions
from msgspec.structs import astuple

from holdfast.errors import InvalidArguments, StoreError, StoreFault, StoreUnavailable
from holdfast.store.contract import UserFunction
from holdfast.store.once import Once, done_before, not_wanted
from holdfast.store.postgres.failures import DRIVER_ERRORS, is_cut, translate
from holdfast.store.postgres.idle_watch import IDLE_SECONDS, IdleWatch
from holdfast.store.postgres.outcomes import CommitEvidence
from holdfast.store.postgres.queues import put_inbox
from holdfast.store.postgres.reads import to_histories
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from asyncpg.transaction import Transaction

    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

T = TypeVar("T")

MAX_USER_TRANSACTIONS: Final = 8
"""How many transactions of users may be under way at once; others wait for their turn."""
USER_SETTINGS: Final[Mapping[str, str]] = {
    # The locks of a frozen node become free; how long a statement may take is up to the user.
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "4",
}
_SAVEPOINT: Final = "holdfast_work"
_DOING: Final = "run a user's transaction in"
_RESET_TIMEOUT: Final = 2.0


async def transact(
    connections: Connections,
    work: UserFunction[T],
    once: Once | None,
    was_committed: Callable[[CommitEvidence], Awaitable[bool]],
) -> T:
    """Do the work, put its envelopes, commit. `was_committed` tells what became of it."""
    function: Any = work
    if not iscoroutinefunction(function):
        raise InvalidArguments(
            f"Expected an async function, but '{_name_of(work)}' is a plain one: on PostgreSQL it works with an asyncpg "
            "connection, which must be awaited. Write `async def`."
        )
    connection = await connections.take()
    transaction = connection.transaction(isolation="read_committed")
    is_sound = False
    try:
        async with _ours(connections):
            await transaction.start()
            await connection.execute(f"SAVEPOINT {_SAVEPOINT}")
            await connections.set_up(connection)
            if once is not None:
                await _require_new(connection, connections.sql, once)
        result, rows = await _do_within_time(connections, connection, work)
        async with _ours(connections):
            if once is not None:
                await _remember(connection, connections.sql, once)
            if rows:
                await put_inbox(connection, connections.sql, rows)
            transaction_id, server_start = await connection.fetchrow(connections.sql["read_transaction_id"]) or (None, None)
        evidence = (
            CommitEvidence(transaction_id, server_start)
            if once is None
            else CommitEvidence(transaction_id, request=once.request)
        )
        await _commit(connections, transaction, evidence, was_committed)
        is_sound = await _clean(connection)
    except Exception:
        is_sound = await _clean(connection, transaction)
        raise
    finally:
        connections.give_back(connection, is_sound=is_sound)
    return result


async def _do_within_time(
    connections: Connections, connection: Connection, work: UserFunction[T]
) -> tuple[T, list[InboxRow]]:
    """Do the work, and see that its transaction is whole. Raises StoreUnavailable if the server ended it for idling."""
    watch = IdleWatch(connection)
    try:
        result = await _do(connections, connection, work)
        async with _ours(connections):
            await _require_whole(connection, work)
        return result
    except StoreUnavailable as error:
        was_in_use = isinstance(error.__cause__, exceptions.ConnectionDoesNotExistError)  # in the middle of a statement
        if was_in_use or not watch.has_idled:
            raise
        raise StoreUnavailable(
            f"Expected a user's transaction to be used at least every {IDLE_SECONDS} s, but it was left idle for longer, so "
            "the server ended it. Do what takes long before the transaction, in an activity of its own.",
            fault=StoreFault.TIMED_OUT,
        ) from error
    finally:
        watch.stop()


async def _do(connections: Connections, connection: Connection, work: UserFunction[T]) -> tuple[T, list[InboxRow]]:
    rows: list[InboxRow] = []
    is_over = False

    def put(row: InboxRow) -> None:
        if is_over:
            raise StoreError("Expected to put an envelope while the work is being done, but it has ended. Put it earlier.")
        rows.append(row)

    try:
        doing: Any = work(connection, put)
        return await doing, rows
    except DRIVER_ERRORS as error:
        if connection.is_closed():  # the way to the server broke: nothing that the function could have done about
            raise translate(error, _DOING, connections.address.shown) from error
        raise
    finally:
        is_over = True


@asynccontextmanager
async def _ours(connections: Connections) -> AsyncIterator[None]:
    """Our own statements: what the driver raises becomes an error of ours."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error, _DOING, connections.address.shown) from error


# --- what must hold ---


async def _require_whole(connection: Connection, work: UserFunction[Any]) -> None:
    """The transaction must be the one that was begun, and sound: else it must not be committed as if it were."""
    try:
        if not connection.is_in_transaction():
            raise _ended_by_hand(work)
        await connection.execute(f"RELEASE SAVEPOINT {_SAVEPOINT}")
    except exceptions.InvalidSavepointSpecificationError:
        raise _ended_by_hand(work) from None
    except exceptions.InFailedSQLTransactionError:
        raise InvalidArguments(
            f"Expected '{_name_of(work)}' to leave a sound transaction, but one of its statements failed and it went on, so "
            "nothing can be committed. Let the error through, or put `async with connection.transaction()` around what may "
            "fail."
        ) from None


def _ended_by_hand(work: UserFunction[Any]) -> InvalidArguments:
    return InvalidArguments(
        f"Expected '{_name_of(work)}' to leave its transaction open, but it ended it. Return to commit, raise to roll back; "
        "do not say COMMIT or ROLLBACK, and do not close the connection."
    )


async def _require_new(connection: Connection, sql: Mapping[str, str], once: Once) -> None:
    request = once.request
    if await connection.fetchval(sql["read_request"], request.org, request.kind, request.key, -1) is not None:
        raise done_before(once)


async def _remember(connection: Connection, sql: Mapping[str, str], once: Once) -> None:
    request = once.request
    held = await connection.fetch(sql["hold_execution"], request.org, request.execution_id)
    asked = {request.execution_id: once.after}
    rows = await connection.fetch(sql["read_events"], list(asked), list(asked.values()))
    if not held or not once.is_wanted(to_histories(asked, rows)[request.execution_id]):
        raise not_wanted(once)
    if not await connection.fetch(sql["put_request_once"], *astuple(request)):
        raise done_before(once)


# --- the end ---


async def _commit(
    connections: Connections,
    transaction: Transaction,
    evidence: CommitEvidence,
    was_committed: Callable[[CommitEvidence], Awaitable[bool]],
) -> None:
    shown = connections.address.shown
    try:
        await transaction.commit()
    except DRIVER_ERRORS as error:
        if not is_cut(error):
            raise translate(error, "commit to", shown) from error
        # Without an id nothing was written, so that nothing can be lost.
        if evidence.transaction_id is not None and not await was_committed(evidence):
            raise StoreUnavailable(
                f"Expected to commit to {shown}, but the connection broke ({type(error).__name__}) and nothing was stored. "
                "Try again."
            ) from error


async def _clean(connection: Connection, failed: Transaction | None = None) -> bool:
    """Take back what the user may have set; whether the connection is as it was."""
    try:
        if connection.is_closed():
            return False
        if failed is not None:
            await failed.rollback()
        await connection.reset(timeout=_RESET_TIMEOUT)
    except DRIVER_ERRORS:
        return False
    return True


def _name_of(work: UserFunction[Any]) -> str:
    return getattr(work, "__qualname__", type(work).__name__)
