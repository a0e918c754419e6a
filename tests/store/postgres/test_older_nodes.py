"""What nodes of the version before leave undone when they end or remove executions: triggers of the tables see to it."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from holdfast.store.postgres.store import PostgresStore
from holdfast.store.publications import Publishable
from holdfast.store.rows import InboxRow
from holdfast.store.tasks import TaskEventRow
from tests.store.builders import NOW, ORG, commit, commit_unrouted, id_of, make_closing, make_row, make_start
from tests.store.definition_builders import make_incident, make_snapshot
from tests.store.everything import make_task
from tests.store.postgres.watching import Watch
from tests.store.topics import LATER, event, make_publication, make_wait, message, publish, publishable, read_kept, start

CLOSE: Final = "UPDATE executions SET status = $2, closed_at = $3 WHERE execution_id = $1"
"""As nodes of the version before end an execution: nothing else of what is new is touched by them."""
INSERT: Final = (
    "INSERT INTO executions (org, execution_id, workflow_id, workflow, code_version, queue, status, state_version, "
    "sequence, created_at, updated_at, details, closed_at) "
    "VALUES ($1, $2, $3, 'order', '1', 'default', $4, 1, 0, 1, 1, '{}', $5)"
)
TABLES: Final = (
    *("tasks", "task_keys", "task_events", "subscriptions", "pending", "pending_fields", "attributes"),
    *("incidents", "snapshots"),
)


def starting(item: str, workflow_id: str = "order-1") -> Publishable:
    """A message that is kept for as long as an execution is open under a workflow id, and then starts another."""
    row = InboxRow(ORG, "", workflow_id, b'{"type":"start"}', route="r", at=NOW)
    return message(item, workflow_id, name="begin", starts=[row])


async def read_returned(store: PostgresStore) -> list[str]:
    """The ids of what waits in the outbox to be published again, in order."""
    transaction = await store.begin()
    rows = await transaction.read_outbox(10)
    await transaction.rollback()
    assert all(row.is_returned and not row.number for row in rows)
    return [item for row in rows for item in ("e1", "e2", "m1", "m2", "late") if f'"id":"{item}"'.encode() in row.body]


@pytest.mark.parametrize("status", ["completed", "continued"])
async def test_E1_events_for_an_execution_that_an_older_node_ends_are_published_again(
    left: PostgresStore, watch: Watch, status: str
) -> None:
    await start(left)
    await start(left, number=2, workflow_id="other")
    await publish(left, event("e1", {"order": "7"}, target=1), event("e2", target=1), event("other", target=2), event("all"))
    late = make_publication("event", "shipped", "late", target=id_of(1), expires_at=LATER - 1)
    await publish(left, publishable(late))

    await watch.fetch(CLOSE, id_of(1), status, LATER - 1)

    assert await read_returned(left) == ["e1", "e2"]
    assert await read_kept(left) == ["other", "all"]
    assert await left.check() == []


async def test_M2_a_message_is_published_again_when_an_older_node_ends_what_it_waits_for(
    left: PostgresStore, watch: Watch
) -> None:
    await start(left)
    await start(left, number=2, workflow_id="order-2")
    await publish(left, starting("m1"), starting("m2"), starting("other", "order-2"))

    await watch.fetch(CLOSE, id_of(1), "completed", NOW + 1)

    assert await read_returned(left) == ["m1"]
    assert await read_kept(left, "message", "begin") == ["m2", "other"]


async def test_M2_a_message_goes_on_waiting_when_another_run_follows(left: PostgresStore, watch: Watch) -> None:
    await start(left)
    await publish(left, starting("m1"))

    async with watch.connection.transaction():
        await watch.fetch(CLOSE, id_of(1), "continued", NOW + 1)
        await watch.fetch(INSERT, ORG, id_of(2), "order-1", "running", None)

    assert await read_returned(left) == []
    assert await read_kept(left, "message", "begin") == ["m1"]


async def test_M2_a_message_is_published_again_behind_an_execution_that_ends_as_it_begins(
    left: PostgresStore, watch: Watch
) -> None:
    waiting = InboxRow(ORG, "", "order-1", b'{"type":"start","workflow":"order"}', route="r", at=NOW)
    await commit_unrouted(left, waiting)
    await publish(left, starting("m1"))
    assert await read_kept(left, "message", "begin") == ["m1"]

    async with watch.connection.transaction():
        await watch.fetch(INSERT, ORG, id_of(1), "order-1", "completed", NOW + 1)
        await watch.fetch("DELETE FROM inbox WHERE workflow_id = 'order-1'")

    assert await read_returned(left) == ["m1"]


async def test_what_a_node_settles_itself_is_not_published_again(left: PostgresStore) -> None:
    row = await start(left)
    await publish(left, event("e1", target=1), starting("m1"), starting("m2"))

    assert await commit(left, make_closing(row)) == set()

    assert await read_returned(left) == []
    assert (await read_kept(left), await read_kept(left, "message", "begin")) == ([], ["m2"])
    assert [one.body for one in await left.list_inbox(ORG, id_of(1), "order-1")] == [b'{"type":"start"}']


async def test_D3_what_belongs_to_executions_goes_with_them_when_an_older_node_removes_them(
    left: PostgresStore, watch: Watch
) -> None:
    for number in (1, 2):
        row = replace(make_row(number), details=b'{"metadata":{"by":"ann"},"route_name":"bpmn/1"}')
        task = make_task(number, row)
        told = TaskEventRow(task.task_id, 1, "created", 7, "", (), b"{}")
        wait = make_wait(3, "event", "gone", of=number, where={"order": "7"})
        cache = {"incidents": [make_incident(5, of=number)], "snapshot": make_snapshot(of=number)}
        await commit(left, make_start(row, tasks=[task], task_events=[told], subscriptions=[wait], **cache))
        await publish(left, event(f"e{number}", {"order": "7"}, target=number))
    before = {name: await watch.value(f"SELECT count(*) FROM {name}") for name in TABLES}

    number = await watch.value("DELETE FROM executions WHERE execution_id = $1 RETURNING id", id_of(1))
    await watch.fetch("DELETE FROM events WHERE execution = $1", number)

    after = {name: await watch.value(f"SELECT count(*) FROM {name}") for name in TABLES}
    assert all(before.values())
    assert {name: 2 * count for name, count in after.items()} == before
    assert await left.check() == []
