"""Rule 4: what goes to another execution waits for nobody, whoever holds the receiver and however."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from holdfast.store.contract import UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.store.builders import (
    begin_with,
    commit,
    id_of,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    want,
)
from tests.store.postgres.watching import Plain, Watch, connect


@pytest.fixture
async def user(watch: Watch) -> AsyncIterator[Plain]:
    """Somebody else's connection. Whoever makes it wait fails at once."""
    connection = await connect(watch.address)
    await connection.execute("SET lock_timeout = '1ms'")
    yield connection
    await connection.close()


async def test_schema_has_no_foreign_keys_and_only_the_triggers_that_go_with_executions(
    left: PostgresStore, watch: Watch
) -> None:
    await commit(left, make_start(make_row(1)))

    keys = await watch.fetch(
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND connamespace = $1::regnamespace", watch.address.schema
    )
    triggers = await watch.fetch(
        "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace = $1::regnamespace",
        watch.address.schema,
    )

    assert keys == []
    assert sorted(one for (one,) in triggers) == [
        "executions_put_metadata",
        "executions_put_states",
        "executions_remove_belongings",
        "executions_remove_metadata",
        "executions_remove_states",
        "executions_return_kept",
    ]


async def test_turn_sends_to_an_execution_that_another_batch_closes(left: PostgresStore, right: PostgresStore) -> None:
    rows = [make_row(1), make_row(2)]
    await commit(left, *map(make_start, rows))
    closing, _ = await begin_with(left, want(1))
    await closing.write([make_closing(rows[0])], UnroutedWrite())
    right._batches._settings = {**right._batches._settings, "lock_timeout": "1ms"}

    lost = await commit(right, make_turn(rows[1], outgoing=[make_signal("to the closing one", 1)]))
    await closing.commit()

    assert lost == set()
    assert names_of(await read_inbox(left)) == ["to the closing one"], "whoever claims it answers"


async def test_turn_sends_to_an_execution_whose_row_is_locked_by_force(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    rows = [make_row(1), make_row(2)]
    await commit(left, *map(make_start, rows))
    right._batches._settings = {**right._batches._settings, "lock_timeout": "1ms"}

    async with watch.connection.transaction():
        await watch.fetch("SELECT 1 FROM executions WHERE execution_id = $1 FOR UPDATE", id_of(1))
        lost = await commit(right, make_turn(rows[1], outgoing=[make_signal("hello", 1), make_signal("to nobody", 9)]))

    assert lost == set()
    assert names_of(await read_inbox(left)) == ["hello", "to nobody"]


async def test_user_transaction_sends_to_an_execution_that_is_held(left: PostgresStore, user: Plain) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    closing, _ = await begin_with(left, want(1))
    await closing.write([make_closing(row)], UnroutedWrite())

    async with user.transaction():
        await left.enlist(user, [make_signal("from a user", 1)])
    await closing.rollback()

    assert names_of(await read_inbox(left)) == ["from a user"]


async def test_user_transaction_that_sent_keeps_nobody_from_the_receiver(
    left: PostgresStore, right: PostgresStore, user: Plain
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    right._batches._settings = {**right._batches._settings, "lock_timeout": "1ms"}

    async with user.transaction():
        await left.enlist(user, [make_signal("from a user", 1)])
        transaction, claimed = await begin_with(right, want(1))
        lost = await transaction.write([make_turn(row)], UnroutedWrite())
        await transaction.commit()

    assert (claimed.held, claimed.inbox, lost) == ({id_of(1)}, [], set())
    assert names_of(await read_inbox(left)) == ["from a user"]


async def test_a_lock_that_is_waited_for_would_have_been_noticed(left: PostgresStore, user: Plain) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    closing, _ = await begin_with(left, want(1))
    await closing.write([make_closing(row)], UnroutedWrite())

    with pytest.raises(asyncpg.LockNotAvailableError):
        await user.fetch("SELECT 1 FROM executions WHERE execution_id = $1 FOR KEY SHARE", id_of(1))

    await closing.rollback()
