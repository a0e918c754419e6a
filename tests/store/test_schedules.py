"""Schedules: held by one transaction at a time, fired with their starts in one commit, changed at the version seen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.errors import Conflict
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.once import KeyedCall
from holdfast.store.rows import RequestRow
from holdfast.store.schedules import ScheduleChange
from tests.store.builders import (
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    make_closing,
    make_row,
    make_signal,
    make_start,
    names_of,
    read_inbox,
)
from tests.store.schedule_builders import make_schedule, put_schedule


async def test_a_schedule_is_kept_as_it_was_put(store: Store) -> None:
    row = make_schedule("a", owner="process-1", is_waiting=True, details=b'{"notes":"\\u00fc"}')

    assert await put_schedule(store, row) == 1

    assert await store.find_schedule(ORG, "a") == row
    assert await store.find_schedule(OTHER, "a") is None
    assert await store.list_schedules(ORG, owner="process-1") == [row]
    assert await store.list_schedules(ORG, owner="process-2") == []


async def test_a_schedule_is_changed_only_at_the_version_that_was_seen(store: Store) -> None:
    await put_schedule(store, make_schedule("a"))
    second = make_schedule("a", version=2, state="paused", due=None)

    assert await put_schedule(store, make_schedule("a")) == 0
    assert await put_schedule(store, second) == 1
    assert await put_schedule(store, replace(second, state="active")) == 0
    with pytest.raises(Conflict):
        await store.change_schedule(ScheduleChange(ORG, "a", 1, None))

    assert await store.find_schedule(ORG, "a") == second
    assert await store.change_schedule(ScheduleChange(ORG, "a", 2, None)) == 1
    assert await store.find_schedule(ORG, "a") is None


async def test_starts_come_with_the_change_or_not_at_all(store: Store) -> None:
    start = make_signal("start", None, workflow_id="w")

    await put_schedule(store, make_schedule("a"), start)
    await put_schedule(store, make_schedule("a"), start)

    assert names_of(await read_inbox(store)) == ["start"]


async def test_a_change_with_a_key_is_made_once(store: Store) -> None:
    call = KeyedCall(RequestRow(ORG, "run_schedule", "a\n1", "", None, 1000), 1)
    await put_schedule(store, make_schedule("a"))
    change = ScheduleChange(ORG, "a", 1, make_schedule("a", version=2), answer=77)

    first = await store.change_schedule(change, call)
    again = await store.change_schedule(replace(change, answer=78), call)

    assert (first, again) == (77, 77)


async def test_due_schedules_are_claimed_in_due_order_on_these_routes(store: Store) -> None:
    for name, due, route in [
        ("c", 3, "r"),
        ("a", 5, "r"),
        ("b", 4, "r"),
        ("late", 99, "r"),
        ("off", 1, "s"),
        ("p", None, "r"),
    ]:
        await put_schedule(store, make_schedule(name, due=due, route=route))
    transaction = await store.begin()

    claimed = await transaction.claim_schedules(10, ["r"], [(ORG, "b")], 10)
    everything = [row.schedule_id for row in await transaction.claim_schedules(10, None, [], 2)]
    await transaction.rollback()

    assert [row.schedule_id for row in claimed] == ["c", "a"]
    assert everything == ["off", "c"]
    assert (await store.look_at_schedules(["r"], [])).due == 3
    assert (await store.look_at_schedules(["r"], [(ORG, "c")])).due == 4
    assert (await store.look_at_schedules(None, [])).due == 1
    assert (await store.look_at_schedules(["nowhere"], [])).due is None


async def test_T4_a_fire_and_its_starts_are_one_commit(store: Store) -> None:
    await put_schedule(store, make_schedule("a"))
    fired = make_schedule("a", version=2, due=20)
    for ends_well in (False, True):
        transaction = await store.begin()
        [held] = await transaction.claim_schedules(10, None, [], 10)
        await transaction.write_schedules([replace(fired, created_at=held.created_at)])
        await transaction.write([], UnroutedWrite(outgoing=[make_signal("start", None, workflow_id="w")]))
        await (transaction.commit() if ends_well else transaction.rollback())

    assert await store.find_schedule(ORG, "a") == fired
    assert names_of(await read_inbox(store)) == ["start"]


async def test_waiting_schedules_are_claimed_by_key(store: Store) -> None:
    for org, name, waits in [(ORG, "a", True), (ORG, "b", False), (ORG, "c", True), (OTHER, "a", True)]:
        await put_schedule(store, make_schedule(name, org=org, is_waiting=waits, due=None))
    transaction = await store.begin()

    first = await transaction.claim_waiting_schedules(None, ("", ""), 2)
    rest = await transaction.claim_waiting_schedules(None, first[-1].key, 5)
    off = await transaction.claim_waiting_schedules(["nowhere"], ("", ""), 5)
    await transaction.rollback()

    assert sorted(row.key for row in [*first, *rest]) == sorted([(ORG, "a"), (ORG, "c"), (OTHER, "a")])
    assert off == []


async def test_a_workflow_id_is_open_from_its_start_in_the_inbox_to_its_end(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("start", None, workflow_id="waits"))
    asked = [(ORG, row.workflow_id), (ORG, "waits"), (ORG, "nobody"), (OTHER, "waits")]

    transaction = await store.begin()
    found = await transaction.find_open_ids(asked)
    await transaction.rollback()
    await commit(store, make_closing(row))
    transaction = await store.begin()
    later = await transaction.find_open_ids(asked)
    await transaction.rollback()

    assert found == {(ORG, row.workflow_id), (ORG, "waits")}
    assert later == {(ORG, "waits")}


async def test_T4_two_nodes_never_hold_one_schedule(left: Store, right: Store) -> None:
    here, there = left, right
    for number in range(4):
        await put_schedule(here, make_schedule(f"{number}"))

    mine, theirs = await here.begin(), await there.begin()
    first = await mine.claim_schedules(10, None, [], 2)
    second = await theirs.claim_schedules(10, None, [], 10)
    await mine.write_schedules([replace(row, version=2, due=99) for row in first])
    await mine.commit()
    await theirs.rollback()
    later = await there.begin()
    third = await later.claim_schedules(10, None, [], 10)
    await later.rollback()

    assert [row.schedule_id for row in first] == ["0", "1"]
    assert [row.schedule_id for row in second] == ["2", "3"]
    assert [row.schedule_id for row in third] == ["2", "3"]
