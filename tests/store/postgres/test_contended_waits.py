"""E2: batches that begin to wait for the same kept events at the same time, on several connections: one gets through."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.store.contract import Store, Transaction, UnroutedWrite
from holdfast.store.rows import ExecutionRow
from tests.store.builders import make_turn
from tests.store.postgres.conftest import OpenStore
from tests.store.topics import event, make_wait, publish, read_given, read_kept, start


class Meeting:
    """A connection that stands still after its first try for locks until all others of the meeting have tried theirs."""

    def __init__(self, inner: Any, barrier: asyncio.Barrier) -> None:
        self._inner = inner
        self._barrier: asyncio.Barrier | None = barrier

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch(self, statement: str, *values: Any) -> Any:
        """Run a statement."""
        found = await self._inner.fetch(statement, *values)
        if self._barrier is not None and "pg_try_advisory_xact_lock_shared" in statement:
            barrier, self._barrier = self._barrier, None
            await barrier.wait()
        return found


async def write_at_once(stores: list[Store], turns: list[list[Any]]) -> list[set[str]]:
    """Write turns, some by each store, so that all have tried for their locks before any goes on; who loses."""
    barrier = asyncio.Barrier(len(stores))
    transactions: list[Any] = [await store.begin() for store in stores]
    for transaction in transactions:
        transaction._connection = Meeting(transaction._connection, barrier)

    async def write(transaction: Transaction, own: list[Any]) -> set[str]:
        lost = await transaction.write(own, UnroutedWrite())
        await barrier.wait()  # nobody lets go before all are through
        return lost

    lost = await asyncio.gather(*map(write, transactions, turns))
    for transaction in transactions:
        transaction._connection = transaction._connection._inner
        await transaction.commit()
    return lost


async def make_rows(store: Store, count: int) -> list[ExecutionRow]:
    return [await start(store, number=number) for number in range(1, count + 1)]


async def test_E2_of_two_who_both_find_a_kept_event_one_commits_at_its_first_try(make_store: OpenStore) -> None:
    stores: list[Store] = [await make_store(), await make_store()]
    rows = await make_rows(stores[0], 2)
    await publish(stores[0], event("e1"), event("e2"))
    turns = [
        [make_turn(row, subscriptions=[make_wait(1, "event", "shipped", of=number)])] for number, row in enumerate(rows, 1)
    ]

    lost = await write_at_once(stores, turns)

    assert sorted(map(len, lost)) == [0, 1]
    assert sorted([await read_given(stores[0], 1), await read_given(stores[0], 2)]) == [[], [(1, "e1")]]


async def test_E2_three_nodes_take_what_is_kept_and_one_gets_through_each_time(make_store: OpenStore) -> None:
    stores: list[Store] = [await make_store(), await make_store(), await make_store()]
    rows = await make_rows(stores[0], 9)
    await publish(stores[0], *(event(f"e{number}", {"n": str(number % 3)}) for number in range(9)))
    waiting = {
        row.execution_id: make_turn(
            row, subscriptions=[make_wait(1, "event", "shipped", of=number, where={"n": str(number % 3)})]
        )
        for number, row in enumerate(rows, 1)
    }

    rounds = 0
    while waiting:
        left = list(waiting)
        shares = [left[place :: len(stores)] for place in range(len(stores))]
        used = [(store, share) for store, share in zip(stores, shares, strict=True) if share]
        lost = await write_at_once([one for one, _ in used], [[waiting[key] for key in share] for _, share in used])
        done = set(left).difference(*lost)
        assert done, "nobody got through"
        waiting = {key: turn for key, turn in waiting.items() if key not in done}
        rounds += 1

    assert rounds <= len(rows)
    assert await read_kept(stores[0]) == []
    assert [len(await read_given(stores[0], number)) for number in range(1, 10)] == [1] * 9


async def test_E2_who_waits_for_other_fields_shares_the_lock(make_store: OpenStore) -> None:
    stores: list[Store] = [await make_store(), await make_store()]
    rows = await make_rows(stores[0], 2)
    await publish(stores[0], event("e1", {"n": "7"}))
    turns = [
        [make_turn(row, subscriptions=[make_wait(1, "event", "shipped", of=number, where={"n": "8"})])]
        for number, row in enumerate(rows, 1)
    ]

    assert await write_at_once(stores, turns) == [set(), set()]
