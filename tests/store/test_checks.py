"""The check finds what contradicts itself, and nothing else."""

from __future__ import annotations

import msgspec

from holdfast.core.codec import SCHEMA
from holdfast.core.lifecycle import Status
from holdfast.store.contract import Store
from holdfast.store.rows import HistoryRow, InboxRow
from holdfast.store.tasks import TaskEventRow
from tests.store.builders import (
    NOW,
    ORG,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_history,
    make_letter,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
)
from tests.store.everything import make_task


async def test_a_store_in_use_holds_no_contradiction(store: Store) -> None:
    row, other = make_row(1), make_row(2, workflow_id="order-1-again")
    await commit(store, make_start(row, timers=[make_timer(1, due=1)]), make_start(other))
    turn = make_turn(row, events=4)
    await commit(store, turn, make_turn(other, Status.BLOCKED, events=0))
    await commit(store, make_closing(turn.row, ended_timers=[1]))
    unreadable = msgspec.structs.replace(make_letter("bad"), body=b"?")
    await commit_unrouted(store, make_signal("late", 1), make_signal("for nobody", 9), dead_letters=[unreadable])

    problems = await store.check()

    assert problems == []


async def test_what_a_newer_holdfast_wrote_is_listed_and_no_contradiction(store: Store) -> None:
    row, other = make_row(1), make_row(2, workflow_id="order-1-again")
    newer = HistoryRow(row.execution_id, 1, 1, NOW, SCHEMA + 1, b'[{"type":"from_the_future"}]')
    start = make_start(row)
    start.history = newer
    start.row = msgspec.structs.replace(row, sequence=1)
    later = make_start(msgspec.structs.replace(other, details=b'{"paused":true}'))
    await commit(store, start, later)
    await commit_unrouted(store, InboxRow(ORG, row.execution_id, "", b'{"type":"from_the_future"}'))

    assert await store.check() == []
    sentences = sorted(await store.list_newer())
    assert len(sentences) == 3
    assert all("a newer Holdfast wrote it" in sentence for sentence in sentences)
    assert row.execution_id in " ".join(sentences)
    assert other.execution_id in " ".join(sentences)


async def test_an_empty_store_holds_no_contradiction(store: Store) -> None:
    problems = await store.check()

    assert problems == []


async def test_a_gap_in_a_history_is_found(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row), make_start(make_row(2)))
    turn = make_turn(row)
    turn.history = make_history(id_of(1), first=3)
    await commit(store, turn)

    problems = await store.check()

    assert problems
    assert all(id_of(1) in problem for problem in problems)


async def test_a_history_that_ends_before_its_row_says_is_found(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row), make_start(make_row(2)))
    turn = make_turn(row)
    turn.history = None
    await commit(store, turn)

    [problem] = await store.check()

    assert id_of(1) in problem


async def test_a_turn_that_cannot_be_decoded_is_found(store: Store) -> None:
    start = make_start(make_row(1))
    start.history = HistoryRow(id_of(1), 1, 1, NOW, 1, b"[{]")
    await commit(store, start, make_start(make_row(2)))

    [problem] = await store.check()

    assert id_of(1) in problem


async def test_details_that_cannot_be_decoded_are_found(store: Store) -> None:
    await commit(store, make_start(make_row(1, details=b"?")), make_start(make_row(2)))

    [problem] = await store.check()

    assert id_of(1) in problem


async def test_a_timer_of_a_closed_execution_is_found(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=1)]))
    await store.set_status(ORG, id_of(1), 1, make_closing(row, Status.TERMINATED, events=0).row)

    [problem] = await store.check()

    assert id_of(1) in problem


async def test_an_envelope_that_cannot_be_decoded_is_found(store: Store) -> None:
    await commit_unrouted(store, make_signal("fine", 1), InboxRow(ORG, id_of(1), "", b"?"))

    problems = await store.check()

    assert len(problems) == 1


async def test_H2_a_task_that_is_open_in_a_closed_execution_is_found(store: Store) -> None:
    row = make_row(1)
    task = make_task(4, row)
    event = TaskEventRow(task.task_id, 1, "created", 7, "", (), b"{}")
    await commit(store, make_start(row, tasks=[task], task_events=[event]))

    before = await store.check()
    await commit(store, make_closing(row))

    assert before == []
    assert await store.check() == [f"human task {task.task_id}: the execution is completed"]
