"""What somebody put into a database, or what was forgotten in it: the check finds each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.execution import Details
from holdfast.core.references import BusinessReference
from holdfast.core.searchable_values import find_searchable
from holdfast.store.attributes import list_changes
from holdfast.store.contract import Store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tasks import TaskEventRow
from tests.store.builders import ORG, commit, id_of, make_closing, make_row, make_start, make_turn
from tests.store.conftest import BACKENDS, Place
from tests.store.everything import make_task
from tests.store.topics import event, make_wait, message, publish

DAY = 86_400_000_000
STEP = "a\"b'\\é\n"
TASK = make_task(4, make_row(1)).task_id


@pytest.fixture(params=("sqlite", "postgres"))
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Store]:
    """With an execution that waits, one that has closed, a task, and what is kept."""
    backend = BACKENDS[request.param](place)
    store = await backend.connect()
    row, closed = make_row(1, details=make_details(amount=7, step=STEP, gone=True)), make_row(2)
    created = TaskEventRow(TASK, 1, "created", 7, "", (), b"{}")
    waits = [make_wait(31, "message", "paid", key="k")]
    start = make_start(row, subscriptions=waits, tasks=[make_task(4, row)], task_events=[created])
    await commit(store, start, make_start(closed))
    turn = make_turn(row)
    turn.row = replace(turn.row, details=make_details(amount=8, step=STEP))
    turn.attributes = list_changes(find_searchable({"amount": 7, "gone": True}, None), find_searchable({"amount": 8}, None))
    await commit(store, turn, make_closing(closed))
    await publish(store, event("e1", {"order": "8", "by": '"bob"'}), event("e2", target=1), message("m", "other"))
    assert await store.check() == []
    yield store
    await backend.close()


def make_details(**state: Any) -> bytes:
    reference = BusinessReference("R1", {"policy": "P"})
    metadata = {"by": "ann", "nul": "a\0b", "long": "x" * 600}
    return codec.encode(Details(metadata=metadata, searchable=find_searchable(state, None), reference=reference))


async def plant(store: Store, statement: str) -> None:
    """Run a statement by whoever has access to the database."""
    if isinstance(store, SqliteStore):
        store._connections.writer.execute(statement.replace("{}", ""))
        return
    assert isinstance(store, PostgresStore)
    async with store._batches.use("plant") as connection:
        await connection.execute(statement.replace("{}", f"{store._batches.address.schema}."))


PUT = "INSERT INTO {}attributes (org, kind, name, value, execution_id) VALUES"
ONE = f"execution {id_of(1)}: "
PLANTED = {
    "a state that the table has not": (
        "DELETE FROM {}attributes WHERE kind = 'state' AND name = 'amount'",
        [ONE + "lists do not find it by the value of state 'amount' that its details have"],
    ),
    "a state that the details have not": (
        f"{PUT} ('{ORG}', 'state', 'x', 's', '{id_of(1)}')",
        [ONE + "lists find it by state 'x' with a value that its details do not have"],
    ),
    "another value of a state": (
        "UPDATE {}attributes SET value = 'sb' WHERE kind = 'state' AND name = 'step'",
        [
            ONE + "lists find it by state 'step' with a value that its details do not have",
            ONE + "lists do not find it by the value of state 'step' that its details have",
        ],
    ),
    "metadata that the table has not": (
        f"DELETE FROM {{}}attributes WHERE kind = 'metadata' AND name = 'by' AND execution_id = '{id_of(1)}'",
        [ONE + "lists do not find it by the value of metadata 'by' that its details have"],
    ),
    "a business reference that the table has not": (
        "DELETE FROM {}attributes WHERE kind IN ('reference', 'part')",
        [
            ONE + "lists do not find it by the value of part 'policy' that its details have",
            ONE + "lists do not find it by the value of reference that its details have",
        ],
    ),
    "attributes under another org": (
        "UPDATE {}attributes SET org = 'elsewhere' WHERE kind = 'reference'",
        [
            ONE + "lists find it by reference with a value that its details do not have",
            ONE + "lists do not find it by the value of reference that its details have",
        ],
    ),
    "attributes of nobody": (
        f"{PUT} ('{ORG}', 'state', 'x', 's', 'nobody')",
        ["execution nobody: it has attributes and no row"],
    ),
    "a subscription of one that has closed": (
        f"UPDATE {{}}subscriptions SET execution_id = '{id_of(2)}'",
        [f"subscription 31 of execution {id_of(2)}: the execution is completed"],
    ),
    "a subscription of nobody": (
        "UPDATE {}subscriptions SET execution_id = 'nobody'",
        ["subscription 31 of execution nobody: there is no such execution"],
    ),
    "an event kept for one that has closed": (
        f"UPDATE {{}}pending SET target = '{id_of(2)}' WHERE target <> ''",
        [f"kept publication 2: it is kept for execution {id_of(2)}, which is completed"],
    ),
    "an event kept for nobody": (
        "UPDATE {}pending SET target = 'nobody' WHERE target <> ''",
        ["kept publication 2: it is kept for execution nobody, and there is no such execution"],
    ),
    "a kept event that is not found by its fields": (
        "DELETE FROM {}pending_fields WHERE field = 'by'",
        ["kept publication 1: waits do not find it by its fields"],
    ),
    "fields of nothing": (
        "DELETE FROM {}pending WHERE item = 'e1'",
        ["fields of kept publication 1: there is no such row"],
    ),
    "an open task of one that has closed": (
        f"UPDATE {{}}tasks SET execution_id = '{id_of(2)}'",
        [f"human task {TASK}: the execution is completed"],
    ),
    "what belongs to no task": (
        "DELETE FROM {}tasks",
        [f"keys of human task {TASK}: there is no such row", f"events of human task {TASK}: there is no such row"],
    ),
}


@pytest.mark.parametrize("what", PLANTED)
async def test_what_is_planted_is_found(store: Store, what: str) -> None:
    statement, expected = PLANTED[what]
    await plant(store, statement)

    assert sorted(await store.check()) == sorted(expected)


async def test_what_expired_is_a_fault_if_a_node_that_ran_for_a_day_has_not_removed_it(store: Store) -> None:
    await plant(store, "UPDATE {}pending SET expires_at = 5 WHERE item = 'm'")
    columns = "INSERT INTO {}nodes (node, seen_at, started_at) VALUES "
    await plant(store, f"{columns} ('short', {DAY * 9}, {DAY * 8 + 1})")

    before = await store.check()
    await plant(store, f"{columns} ('long', {DAY + 6}, 1)")

    assert before == []
    assert await store.check() == ["kept publication 3: it expired more than a day ago, and no node has removed it"]
