"""Wake-ups by NOTIFY: few, never part of a batch, and lost ones are made up for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.store.nodes import WakeReason
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.postgres.wakeups import name_channel
from tests.eventually import eventually
from tests.postgres.proxy import Proxy
from tests.postgres.server import PostgresServer
from tests.store.builders import commit, make_row, make_signal, make_start, make_turn
from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.logs import count_statements, read_statements
from tests.store.postgres.watching import Watch


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"log_statement": "all"}) as server:
        yield server


async def test_many_wakes_in_a_short_time_are_few_notifications(server: PostgresServer, make_store: OpenStore) -> None:
    left, right = [await make_store(server.url(schema="hf_many")) for _ in range(2)]
    heard: list[WakeReason] = []
    right.on_wake(heard.append)

    for _ in range(1_000):
        await left.wake(WakeReason.WORK)
    await eventually(lambda: len(heard) > 0)
    await left.close()

    assert count_statements(server, "SELECT pg_notify") <= 2
    assert set(heard) == {WakeReason.WORK}
    await right.close()


async def test_wakes_while_one_is_under_way_are_not_lost(server: PostgresServer, make_store: OpenStore) -> None:
    left, right = [await make_store(server.url(schema="hf_under")) for _ in range(2)]
    heard: list[WakeReason] = []
    right.on_wake(heard.append)

    await left.wake(WakeReason.WORK)
    await eventually(lambda: len(heard) == 1)
    await left.wake(WakeReason.WORK)  # within the pause: it must come, too
    await eventually(lambda: len(heard) == 2)

    await left.close()
    await right.close()


async def test_notification_is_no_part_of_a_batch(server: PostgresServer, make_store: OpenStore) -> None:
    store = await make_store(server.url(schema="hf_apart"))
    row = make_row(1)
    start = len(server.log)

    await commit(store, make_start(row))
    await store.wake(WakeReason.WORK)
    await commit(store, make_turn(row, outgoing=[make_signal("sent", 2)]))
    await store.deliver([make_signal("delivered", 1)])
    await store.wake(WakeReason.ENDS)
    await eventually(lambda: count_statements(server, "SELECT pg_notify", start) == 2, "both to be sent")
    await store.close()

    for statements in read_statements(server, start).values():
        is_inside = False
        for one in statements:
            is_inside = one.startswith("BEGIN") or (is_inside and not one.startswith(("COMMIT", "ROLLBACK")))
            assert not (is_inside and "pg_notify" in one)
    assert count_statements(server, "SELECT pg_notify", start) == 2


async def test_listener_that_was_cut_listens_again_and_looks_at_everything(
    left: PostgresStore, right: PostgresStore, watch: Watch
) -> None:
    heard: list[WakeReason] = []
    right.on_wake(heard.append)
    own = right._wakeups._connection.get_server_pid()  # type: ignore[union-attr]

    await watch.fetch("SELECT pg_terminate_backend($1)", own)
    await eventually(lambda: len(heard) == len(WakeReason))
    heard.clear()
    await left.wake(WakeReason.OFFERS)
    await eventually(lambda: len(heard) > 0)

    assert heard == [WakeReason.OFFERS]


async def test_listener_waits_for_a_server_that_is_away(slow: PostgresStore, proxy: Proxy, left: PostgresStore) -> None:
    heard: list[WakeReason] = []
    slow.on_wake(heard.append)
    proxy.refuse()
    proxy.cut()
    await left.wake(WakeReason.WORK)
    assert heard == []

    proxy.accept()
    await eventually(lambda: len(heard) == len(WakeReason))


async def test_wake_that_cannot_be_sent_harms_nobody(slow: PostgresStore, proxy: Proxy) -> None:
    proxy.refuse()
    proxy.cut()

    await slow.wake(WakeReason.WORK)
    await asyncio.sleep(0)
    proxy.accept()

    async def works() -> bool:
        try:
            return await commit(slow, make_start(make_row(1))) in (set(), {make_row(1).execution_id})
        except Exception:
            return False

    await eventually(works, "the store to work again")


async def test_user_commit_wakes_the_nodes(left: PostgresStore, right: PostgresStore, watch: Watch) -> None:
    heard: list[WakeReason] = []
    right.on_wake(heard.append)

    async with watch.connection.transaction():
        await left.enlist(watch.connection, [make_signal("from a user", 1)])
        await asyncio.sleep(0)
        assert heard == []
    await eventually(lambda: len(heard) > 0)

    assert heard == [WakeReason.WORK]


def test_channels_of_schemas_and_kinds_are_told_apart() -> None:
    names = {name_channel(schema, why) for schema in ("a", "b", "x" * 63) for why in WakeReason}

    assert len(names) == 3 * len(WakeReason)
    assert all(len(name) <= 63 for name in names)
