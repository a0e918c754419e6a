"""Batches never wait for somebody who is changing a human task: the turn is put off, or lost."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from holdfast.store.contract import Store, TurnWrite, UnroutedWrite
from holdfast.store.rows import ExecutionRow
from holdfast.store.tasks import ChangeOutcome, TaskChange, TaskEventRow, TaskRow, TurnTaskChange
from tests.store.builders import ORG, begin_with, commit, id_of, make_closing, make_row, make_start, read_row, want
from tests.store.everything import make_task


def make_created(row: ExecutionRow, *tasks: TaskRow) -> TurnWrite:
    events = [TaskEventRow(one.task_id, 1, "created", 7, "", (), b"{}") for one in tasks]
    return make_start(row, tasks=tasks, task_events=events)


def end(number: int, by: str = "") -> TurnTaskChange:
    return TurnTaskChange(number, "cancelled", 9, b"{}", ends=True, by=by)


def claim(task: TaskRow) -> TaskChange:
    row = replace(task, version=2, state="claimed", claimer="ann")
    return TaskChange(row, TaskEventRow(task.task_id, 2, "claimed", 8, "ann", (), b"{}"))


async def test_open_tasks_are_read_and_locked(store: Store) -> None:
    row = make_row(1)
    first, second = make_task(1, row), make_task(2, row)
    await commit(store, make_created(row, first, second))
    await commit(store, make_closing(row, task_changes=[end(2)]))
    transaction = await store.begin()

    locked = await transaction.lock_tasks([(id_of(1), 1), (id_of(1), 2), (id_of(1), 9), (id_of(2), 1)])

    await transaction.rollback()
    assert locked == {(id_of(1), 1): first}


async def test_a_task_that_another_transaction_holds_is_told_and_nobody_waits(left: Store, right: Store) -> None:
    row = make_row(1)
    task = make_task(1, row)
    await commit(left, make_created(row, task))
    first, second = await left.begin(), await right.begin()
    key = (id_of(1), 1)
    locked = await first.lock_tasks([key])

    async with asyncio.timeout(5):
        busy = await second.lock_tasks([key])

    await second.rollback()
    await first.rollback()
    assert (locked, busy) == ({key: task}, {key: None})


async def test_a_closing_whose_task_is_being_changed_is_lost_and_nobody_waits(left: Store, right: Store) -> None:
    row = make_row(1)
    task = make_task(1, row)
    await commit(left, make_created(row, task))
    person = await left.begin()
    await person.lock_tasks([(id_of(1), 1)])
    batch, _ = await begin_with(right, want(1))

    async with asyncio.timeout(5):
        lost = await batch.write([make_closing(row, task_changes=[end(1)])], UnroutedWrite())

    await batch.commit()
    await person.rollback()
    assert lost == {id_of(1)}
    assert (await read_row(right)).closed_at is None
    assert await left.tasks.find(ORG, task.task_id) == task


async def test_a_change_of_a_person_waits_for_a_turn_and_finds_another_version(left: Store, right: Store) -> None:
    row = make_row(1)
    task = make_task(1, row)
    await commit(left, make_created(row, task))
    batch, _ = await begin_with(left, want(1))
    ended = replace(task, body=b'{"description":"done"}')
    closing = make_closing(row, task_changes=[end(1, by="ann")], completed_tasks=[ended])
    assert await batch.write([closing], UnroutedWrite()) == set()

    change = asyncio.ensure_future(right.tasks.change(claim(task)))
    await asyncio.sleep(0.05)
    assert not change.done()
    await batch.commit()

    assert await change is ChangeOutcome.STALE
    found = await right.tasks.find(ORG, task.task_id)
    assert found is not None
    assert (found.state, found.version, found.ended_at, found.body) == ("completed", 2, 9, ended.body)
    assert [one.by for one in await right.tasks.list_events(ORG, task.task_id)] == ["", "ann"]
