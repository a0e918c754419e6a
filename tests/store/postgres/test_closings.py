"""Rule 2: a delivery and a closing turn, in every order. Nothing is accepted that nobody will take."""

from __future__ import annotations

import asyncio

from holdfast.store.contract import UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.eventually import eventually
from tests.postgres.proxy import Proxy, is_commit, runs
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
    read_row,
    want,
)
from tests.store.postgres.watching import Watch


async def test_delivery_that_shares_the_row_makes_the_closing_lose_without_waiting(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy, watch: Watch
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    trap = proxy.hold_before(is_commit)
    delivery = asyncio.create_task(slow.deliver([make_signal("hello", 1)]))
    await asyncio.to_thread(trap.wait)

    lost = await transaction.write([make_closing(row)], UnroutedWrite())
    assert await watch.count_waiting() == 0
    await transaction.commit()
    proxy.release()

    assert lost == {id_of(1)}
    assert await delivery == [True]
    assert (await read_row(left)).closed_at is None
    assert names_of(await read_inbox(left)) == ["hello"]


async def test_closing_that_took_the_row_makes_the_delivery_wait_and_refuses_it(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    lost = await transaction.write([make_closing(row)], UnroutedWrite())
    delivery = asyncio.create_task(right.deliver([make_signal("too late", 1)]))
    await watch.until_waiting()

    await transaction.commit()

    assert lost == set()
    assert await delivery == [False]
    assert await read_inbox(left) == []


async def test_closing_that_is_given_up_lets_the_waiting_delivery_in(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_closing(row)], UnroutedWrite())
    delivery = asyncio.create_task(right.deliver([make_signal("hello", 1)]))
    await watch.until_waiting()

    await transaction.rollback()

    assert await delivery == [True]
    assert names_of(await read_inbox(left)) == ["hello"]


async def test_delivery_between_claim_and_closing_makes_the_closing_lose(left: PostgresStore, right: PostgresStore) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, claimed = await begin_with(left, want(1))

    delivered = await right.deliver([make_signal("hello", 1)])
    lost = await transaction.write([make_closing(row)], UnroutedWrite())
    await transaction.commit()

    assert (delivered, claimed.inbox, lost) == ([True], [], {id_of(1)})
    assert (await read_row(left)).closed_at is None


async def test_delivery_between_the_exclusive_lock_and_the_look_into_the_inbox_waits(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy, watch: Watch
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(slow, want(1))
    trap = proxy.hold_before(runs("UPDATE " + watch_table(watch, "executions")))
    closing = asyncio.create_task(transaction.write([make_closing(row)], UnroutedWrite()))
    await asyncio.to_thread(trap.wait)

    delivery = asyncio.create_task(left.deliver([make_signal("too late", 1)]))
    await watch.until_waiting()
    proxy.release()
    lost = await closing
    await transaction.commit()

    assert lost == set()
    assert await delivery == [False]


async def test_delivery_does_not_wait_for_a_turn_that_goes_on(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, want(1))
    await transaction.write([make_turn(row)], UnroutedWrite())

    delivered = await right.deliver([make_signal("hello", 1)])
    await transaction.commit()

    assert delivered == [True]
    assert await watch.count_waiting() == 0


async def test_one_that_is_closing_does_not_cost_the_others_of_its_batch(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy
) -> None:
    rows = [make_row(number) for number in (1, 2, 3)]
    await commit(left, *map(make_start, rows))
    transaction, _ = await begin_with(left, want(1, 2, 3))
    trap = proxy.hold_before(is_commit)
    delivery = asyncio.create_task(slow.deliver([make_signal("hello", 2)]))
    await asyncio.to_thread(trap.wait)

    lost = await transaction.write([make_closing(rows[0]), make_closing(rows[1]), make_turn(rows[2])], UnroutedWrite())
    await transaction.commit()
    proxy.release()
    await delivery

    assert lost == {id_of(2)}
    assert [(await read_row(left, number)).state_version for number in (1, 2, 3)] == [2, 1, 2]


async def test_delivery_holds_nothing_but_its_share_of_the_row(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy, watch: Watch
) -> None:
    await commit(left, make_start(make_row(1)))
    trap = proxy.hold_before(is_commit)
    delivery = asyncio.create_task(slow.deliver([make_signal("hello", 1)]))
    await asyncio.to_thread(trap.wait)

    async def find_process() -> int | None:
        found = await watch.value(
            "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND position($1 IN query) > 0",
            watch.address.schema,
        )
        return None if found is None else int(found)

    process = await eventually(find_process, "the delivery to stand before its commit")
    locks = await watch.list_locks(process)
    proxy.release()
    await delivery

    assert {kind for kind, _, _ in locks} == {"relation", "transactionid"}, "no lock on an id"
    written = {str(table) for kind, table, mode in locks if kind == "relation" and mode == "RowExclusiveLock"}
    assert {table.partition("_")[0] for table in written} == {"inbox"}


def watch_table(watch: Watch, name: str) -> str:
    """A table as the store's statements name it."""
    return f'"{watch.address.schema}".{name}'
