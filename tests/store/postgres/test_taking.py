"""Whoever takes offered activities and whoever withdraws them meet without waiting in a circle."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from tests.postgres.proxy import Proxy, runs
from tests.postgres.wire import Predicate
from tests.store.builders import (
    begin_with,
    commit,
    id_of,
    make_closing,
    make_offer,
    make_offer_timer,
    make_row,
    make_start,
    make_turn,
    want,
)
from tests.store.postgres.watching import Watch

ROW = make_row(1)
WATCHING = make_offer_timer(1, due=5)


def withdraw() -> TurnWrite:
    return make_turn(ROW, withdrawn=[1], ended_timers=[1])


def offer_again() -> TurnWrite:
    return make_turn(ROW, offered=[make_offer(1, attempt=2)], timers=[make_offer_timer(1, due=9, attempt=2)])


def close() -> TurnWrite:
    return make_closing(ROW)


def begins_with(text: str) -> Predicate:
    return lambda message: message.sql is not None and message.sql.lstrip().startswith(text)


@pytest.mark.parametrize("table", ["timers", "activities"])
@pytest.mark.parametrize("make", [withdraw, offer_again])
async def test_offer_that_is_taken_in_the_middle_of_its_end(
    left: PostgresStore, slow: PostgresStore, proxy: Proxy, make: object, table: str
) -> None:
    """At the one place or at the other: before the turn has written to the table."""
    assert callable(make)
    await commit(left, make_start(ROW, offered=[make_offer(1)], timers=[WATCHING]))
    transaction, _ = await begin_with(slow, want(1))
    verb = "INSERT INTO" if make is offer_again else "DELETE FROM"
    trap = proxy.hold_before(begins_with(f'{verb} "{left._address.schema}".{table}'))
    writing = asyncio.create_task(transaction.write([make()], UnroutedWrite()))
    await asyncio.to_thread(trap.wait)

    taken = await left.take_offers("b", [], 10)
    proxy.release()
    lost = await writing
    await transaction.commit()

    assert lost == set()
    assert [offer.attempt for offer in taken] in ([], [1])
    rest = await left.take_offers("b", [], 10)
    assert [offer.attempt for offer in rest] == ([2] if make is offer_again else [])


async def test_offer_that_is_taken_while_its_execution_closes(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    await commit(left, make_start(ROW, offered=[make_offer(1)], timers=[WATCHING]))
    transaction, _ = await begin_with(left, want(1))
    assert await transaction.write([close()], UnroutedWrite()) == set()

    taken = await right.take_offers("b", [], 10)
    await transaction.commit()

    assert taken == []
    assert await watch.count_waiting() == 0
    assert await watch.fetch("SELECT 1 FROM activities UNION ALL SELECT 1 FROM timers") == []


async def test_two_who_take_at_once_take_different_ones(left: PostgresStore, slow: PostgresStore, proxy: Proxy) -> None:
    rows = [make_row(number) for number in range(1, 7)]
    await commit(left, *[make_start(row, offered=[make_offer(1, of=number)]) for number, row in enumerate(rows, 1)])
    trap = proxy.hold_before(runs("FOR UPDATE SKIP LOCKED"))
    taking = asyncio.create_task(slow.take_offers("slow", [], 4))
    await asyncio.to_thread(trap.wait)

    first = await left.take_offers("left", [], 4)
    proxy.release()
    second = await taking

    assert [offer.execution_id for offer in first] == [id_of(number) for number in (1, 2, 3, 4)]
    assert not {offer.execution_id for offer in first} & {offer.execution_id for offer in second}
    assert {offer.node for offer in second} <= {"slow"}
