"""A store with something of every kind in it, and all that a store holds."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.core.publications import DeliveryMode, EventOptions
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.pauses import PauseRow
from holdfast.store.publications import StartSubscriptionRow
from holdfast.store.rows import ExecutionRow, InboxRow
from holdfast.store.tasks import TaskEventRow, TaskRow
from holdfast.store.transfer import FROM_THE_START, Cursor, PersistentStore, RowKind, Transferable
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_letter,
    make_offer,
    make_offer_timer,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
)
from tests.store.definition_builders import (
    deploy,
    make_definition,
    make_deployment,
    make_incident,
    make_process,
    make_resource,
    make_snapshot,
    undeploy,
)
from tests.store.schedule_builders import make_schedule, put_schedule
from tests.store.topics import broadcast, event, make_wait, message, publish

SEVERAL = 5
"""How many there are of most kinds."""


async def fill(store: Store, first: int = 1) -> None:
    """Executions in an order of arrival that is not that of their ids, with histories that were written in turns."""
    rows = {number: make_row(number, route=f"route-{number % 2}") for number in range(first, first + SEVERAL)}
    for number in reversed(rows):
        await commit(store, make_start(rows[number], timers=[make_timer(1, number, of=number, route="route-0")]))
    for round_ in range(3):
        for number in sorted(rows, key=lambda one: one * 7 % SEVERAL):
            turn = make_turn(
                rows[number],
                events=1 + round_,
                timers=[make_offer_timer(2 + round_, 9, round_, of=number) if round_ else make_timer(2, 9, of=number)],
            )
            await commit(store, turn)
            rows[number] = turn.row
    await commit(store, make_closing(rows[first]))
    again = make_row(first + SEVERAL, workflow_id=rows[first].workflow_id, nodes=("a", "b"), parent_id=id_of(first))
    offers = [make_offer(number, f"offer-{number}", of=first + SEVERAL) for number in (3, 1, 2)]
    tasks = [make_task(number, again) for number in (4, 5)]
    events = [TaskEventRow(one.task_id, 1, "created", 7, "", (), b"{}") for one in tasks]
    requests = [make_request("b"), make_request("a", org=OTHER)]
    await commit(store, make_start(again, offered=offers, requests=requests, tasks=tasks, task_events=events))
    await commit(store, make_start(make_row(first + SEVERAL + 1, org=OTHER, workflow_id=again.workflow_id)))
    await store.take_offers("a", ["offer-1"], 1)
    await commit_unrouted(store, *(make_signal(name, first + 1, route="route-1") for name in "xyz"))
    await commit_unrouted(store, make_signal("by name", None, workflow_id=rows[first + 1].workflow_id))
    letters = [replace(make_letter(f"bad {number}"), reason=f"it is {number}: ünlesbar") for number in range(SEVERAL)]
    await commit(store, loose=UnroutedWrite(dead_letters=letters))
    await store.put_pause(PauseRow(ORG, "workflow", f"flow-{first}", 5, "ann", "why"))
    for org in (ORG, OTHER):
        for number in range(first, first + SEVERAL):
            await put_schedule(store, make_schedule(f"schedule-{number}", org=org, due=None if number % 2 else number))
    await fill_topics(store, first)
    await store.discard_dead_letters(ORG, [(await store.list_dead_letters(ORG))[0].id])


async def fill_topics(store: Store, first: int) -> None:
    """Waits, what is kept for everybody, for one execution and to start something; an outbox, a spread, and starts."""
    waiting, origin = first + 2, first + 3
    row = await store.find_execution(ORG, id_of(waiting))
    assert row is not None
    waits = [
        make_wait(31, "message", "paid", of=waiting, key=f"k{first}"),
        make_wait(30, "event", "gone", of=waiting, where={"order": "7", "by": '"ann"'}),
        make_wait(32, "broadcast", "alarm", of=waiting, standing=True),
    ]
    await commit(store, make_turn(row, subscriptions=waits))
    start = InboxRow(ORG, "", row.workflow_id, b'{"type":"start"}', route="r", at=NOW)
    await publish(
        store,
        event("e1", {"order": "8", "by": '"bob"'}),
        event("e2", {"order": "9"}, target=waiting),
        event("e3", {}, EventOptions(consume_on_read=False, delivery_mode=DeliveryMode.AFTER_CREATE)),
        message(f"m{first}", row.workflow_id, name="begin", starts=[start]),
        message(f"r{first}", "back", is_returned=True),
    )
    outbox = [
        replace(event("o1", {"order": "1"}).row, origin=id_of(origin), number=40),
        replace(message("o2").row, is_returned=True),
        replace(broadcast("o3").row, subscribers=[(id_of(waiting), 32), (id_of(99), 1)]),
    ]
    await commit(store, loose=UnroutedWrite(publications=outbox))
    starts = [StartSubscriptionRow("message", f"begin {first}", name, "default", "r", "1", ORG) for name in ("b", "a")]
    await fill_definitions(store, first, starts)


async def fill_definitions(store: Store, first: int, starts: list[StartSubscriptionRow]) -> None:
    """Deployed definitions in two orgs with start subscriptions, and an execution of one of them with an incident."""
    theirs = make_resource("v1", org=OTHER)
    name = f"process-{first}"
    await deploy(store, make_deployment(make_definition(name), make_definition(name, 2), starts=starts, at=NOW))
    await deploy(store, make_deployment(make_definition(name, resource=theirs), org=OTHER))
    await deploy(store, make_deployment(states=[undeploy(name)], at=NOW + 9))
    number = first + SEVERAL + 2
    row = make_process(number, workflow=name)
    wrong = [make_incident(2, of=number), make_incident(11, of=number, message="ünlesbar")]
    await commit(store, make_start(row, incidents=wrong, snapshot=make_snapshot(of=number)))


def make_task(number: int, row: ExecutionRow) -> TaskRow:
    """An open human task of an execution, with candidates."""
    return TaskRow(
        org=row.org,
        task_id=f"{row.execution_id[:-2]}{number}f",
        execution_id=row.execution_id,
        number=number,
        workflow=row.workflow,
        workflow_id=row.workflow_id,
        name="approve",
        queue="default",
        state="open",
        version=1,
        assignee="ann",
        claimer="",
        users=("bob",),
        groups=("managers", "staff"),
        roles=("managers",),
        priority=number,
        due=9,
        follow_up=None,
        business_key="",
        created_at=7,
        updated_at=7,
        ended_at=None,
        body=b"{}",
    )


def open_movable(store: Store) -> Transferable:
    """What takes everything out of an open store."""
    assert isinstance(store, PersistentStore)
    return store.make_transferable()


async def read_all(movable: Transferable, kind: RowKind, limit: int = 1000) -> list[Any]:
    """Every row of a kind, in pages."""
    rows: list[Any] = []
    cursor: Cursor = FROM_THE_START
    while True:
        page = await movable.read_page(kind, cursor, limit)
        if page.cursor is None:
            assert not page.rows
            return rows
        assert 0 < len(page.rows) <= limit
        rows.extend(page.rows)
        cursor = page.cursor


async def read_everything(movable: Transferable) -> dict[RowKind, list[Any]]:
    """Every row of every kind, in an order that does not depend on the store where there is none by arrival."""
    found = {kind: await read_all(movable, kind) for kind in RowKind}
    found[RowKind.HISTORIES].sort(key=lambda row: (getattr(row, "execution_id", ""), getattr(row, "first", 0)))
    return found
