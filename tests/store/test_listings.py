"""Listings: newest first, by filter, page by page; and who is orphaned or blocked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.core.lifecycle import Status
from holdfast.store.contract import ExecutionFilter, Store
from holdfast.store.rows import Counts, ExecutionRow
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_letter,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    read_row,
)


def ids(rows: Sequence[ExecutionRow]) -> list[str]:
    return [row.execution_id for row in rows]


def ids_of(*numbers: int) -> list[str]:
    return [id_of(number) for number in numbers]


async def test_executions_are_listed_newest_first(store: Store) -> None:
    await commit(store, *[make_start(make_row(number)) for number in (2, 3, 1)])

    rows = await store.list_executions(ExecutionFilter(ORG))

    assert rows == [make_row(3), make_row(2), make_row(1)]


async def test_each_page_goes_on_where_the_one_before_ended(store: Store) -> None:
    await commit(store, *[make_start(make_row(number)) for number in range(1, 6)])

    first = await store.list_executions(ExecutionFilter(ORG, limit=2))
    second = await store.list_executions(ExecutionFilter(ORG, limit=2, before=first[-1].execution_id))
    third = await store.list_executions(ExecutionFilter(ORG, limit=2, before=second[-1].execution_id))

    assert [ids(page) for page in (first, second, third)] == [ids_of(5, 4), ids_of(3, 2), ids_of(1)]


async def test_an_execution_that_starts_between_two_pages_moves_neither(store: Store) -> None:
    await commit(store, *[make_start(make_row(number)) for number in range(1, 5)])
    first = await store.list_executions(ExecutionFilter(ORG, limit=2))
    await commit(store, make_start(make_row(9)))

    second = await store.list_executions(ExecutionFilter(ORG, limit=2, before=first[-1].execution_id))

    assert ids(second) == ids_of(2, 1)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (ExecutionFilter(ORG, statuses=[Status.RUNNING]), [4, 3, 1]),
        (ExecutionFilter(ORG, statuses={Status.RUNNING, Status.COMPLETED}), [4, 3, 2, 1]),
        (ExecutionFilter(ORG, statuses=[Status.FAILED]), []),
        (ExecutionFilter(ORG, workflow="order"), [3, 2, 1]),
        (ExecutionFilter(ORG, workflow_id="again"), [3, 2]),
        (ExecutionFilter(ORG, parent_id=id_of(1)), [4]),
        (ExecutionFilter(ORG, statuses=[Status.RUNNING], workflow="order", limit=1), [3]),
        (ExecutionFilter(ORG, workflow="order", before=id_of(3)), [2, 1]),
        (ExecutionFilter(ORG, workflow_id="nobody's"), []),
        (ExecutionFilter(OTHER), [5]),
    ],
)
async def test_filters_hold_all_at_once(store: Store, query: ExecutionFilter, numbers: list[int]) -> None:
    again = make_row(2, workflow_id="again")
    await commit(store, make_start(make_row(1)), make_start(again))
    await commit(store, make_closing(again))
    await commit(
        store,
        make_start(make_row(3, workflow_id="again")),
        make_start(make_row(4, workflow="bill", parent_id=id_of(1))),
        make_start(make_row(5, org=OTHER, workflow_id="again", parent_id=id_of(1))),
    )

    rows = await store.list_executions(query)

    assert ids(rows) == ids_of(*numbers)


async def test_the_latest_execution_is_the_open_one_else_the_newest(store: Store) -> None:
    old, new = make_row(1, workflow_id="order"), make_row(2, workflow_id="order")
    await commit(store, make_start(old))
    await commit(store, make_closing(old), make_start(new))

    while_open = await store.find_latest(ORG, "order")
    closing = make_closing(new)
    await commit(store, closing)
    when_closed = await store.find_latest(ORG, "order")

    assert while_open == new
    assert when_closed == closing.row


async def test_an_open_execution_is_the_latest_even_if_its_id_is_not_the_greatest(store: Store) -> None:
    await commit(store, make_start(make_row(5, workflow_id="order", status=Status.CONTINUED, closed_at=NOW)))

    successor = make_row(4, workflow_id="order")
    await commit(store, make_start(successor))

    assert await store.find_latest(ORG, "order") == successor


async def test_a_transaction_reads_the_latest_execution_with_its_own_writes(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))
    await commit(store, make_closing(row))
    transaction = await store.begin()

    closed = await transaction.read_latest(ORG, "order")
    unknown = await transaction.read_latest(ORG, "never")
    elsewhere = await transaction.read_latest(OTHER, "order")
    await transaction.rollback()

    assert closed == make_closing(row).row
    assert unknown is None
    assert elsewhere is None


async def test_nobody_is_found_by_unknown_ids(store: Store) -> None:
    found = await store.find_execution(ORG, id_of(1))

    assert found is None
    assert await store.find_latest(ORG, "order") is None


async def test_rows_are_read_by_id_open_or_closed(store: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(store, make_start(row), make_start(other))
    closing = make_closing(row)
    await commit(store, closing)
    transaction = await store.begin()

    rows = await transaction.read_rows([id_of(1), id_of(2), id_of(3)])
    await transaction.rollback()

    assert rows == {id_of(1): closing.row, id_of(2): other}


async def test_orphans_are_open_executions_of_nodes_that_are_not_alive(store: Store) -> None:
    closed = make_row(4, nodes=("dead",))
    await commit(
        store,
        make_start(make_row(1, nodes=("dead",))),
        make_start(make_row(2, nodes=("alive",))),
        make_start(make_row(3)),
        make_start(closed),
        make_start(make_row(5, nodes=("gone",), org=OTHER)),
    )
    await commit(store, make_closing(closed))

    some = await store.list_orphans(["alive"], limit=10)
    everyone = await store.list_orphans([], limit=10)
    nobody = await store.list_orphans({"alive", "dead", "gone"}, limit=10)

    assert ids(some) == ids_of(1, 5)
    assert ids(everyone) == ids_of(1, 2, 5)
    assert nobody == []


async def test_orphan_is_whoever_names_one_node_that_is_not_alive(store: Store) -> None:
    await commit(store, make_start(make_row(1, nodes=("alive", "dead"))), make_start(make_row(2, nodes=("alive", "well"))))

    orphans = await store.list_orphans(["alive", "well"], limit=10)

    assert ids(orphans) == ids_of(1)


@pytest.mark.parametrize("name", ["a,b", ",", '"', "]", "\\", "ünïcode ☃", "[]"])
async def test_names_of_nodes_may_hold_anything(store: Store, name: str) -> None:
    row = make_row(1, nodes=(name, "a"))
    await commit(store, make_start(row))

    assert await read_row(store) == row
    assert await store.list_orphans([name, "a"], 10) == []
    assert await store.list_orphans(["a", "b", ""], 10) == [row]


async def test_orphans_come_page_by_page_in_the_order_of_their_ids(store: Store) -> None:
    await commit(store, *[make_start(make_row(number, nodes=("dead",))) for number in (3, 1, 2)])

    first = await store.list_orphans([], limit=2)
    second = await store.list_orphans([], limit=2, after=first[-1].execution_id)

    assert first == [make_row(1, nodes=("dead",)), make_row(2, nodes=("dead",))]
    assert ids(second) == ids_of(3)


async def test_what_a_node_holds_comes_page_by_page_with_the_last_of_each_page(store: Store) -> None:
    closed = make_row(6, nodes=("a",))
    holders: dict[int, tuple[str, ...]] = {1: ("b",), 2: ("a", "b"), 3: (), 4: ("a",), 5: ("ab",)}
    starts = [make_start(make_row(number, nodes=nodes)) for number, nodes in holders.items()]
    await commit(store, *starts, make_start(closed))
    await commit(store, make_closing(closed))

    pages = [await store.list_held("a", limit=3, after=after) for after in ("", id_of(3), id_of(5))]

    assert [ids(page) for page in pages] == [ids_of(2, 3), ids_of(4, 5), ids_of()]
    assert pages[0][0] == make_row(2, nodes=("a", "b"))
    assert ids(await store.list_held("nobody", limit=10)) == ids_of(5)


async def test_blocked_executions_come_page_by_page_in_the_order_of_their_ids(store: Store) -> None:
    rows = [make_row(number, org=ORG if number % 2 else OTHER) for number in range(1, 5)]
    await commit(store, *[make_start(row) for row in rows])
    await commit(store, *[make_turn(row, Status.BLOCKED) for row in reversed(rows[:3])])

    first = await store.list_blocked(limit=2)
    second = await store.list_blocked(limit=2, after=first[-1].execution_id)

    assert ids(first) == ids_of(1, 2)
    assert ids(second) == ids_of(3)


async def test_counts_tell_open_executions_by_status_and_what_waits(store: Store) -> None:
    rows = [make_row(number) for number in range(1, 5)]
    await commit(store, *[make_start(row) for row in rows])
    await commit(store, make_turn(rows[0], Status.SUSPENDED, timers=[make_timer(1, due=1), make_timer(2, due=2)]))
    await commit(store, make_closing(rows[1]))
    await commit_unrouted(store, make_signal("a", 1), dead_letters=[make_letter("b"), make_letter("c", org=OTHER)])

    counts = await store.count()

    assert counts == Counts({"running": 2, "suspended": 1}, timers=2, inbox=1, dead_letters=2)


async def test_an_empty_store_counts_nothing(store: Store) -> None:
    counts = await store.count()

    assert counts == Counts({}, timers=0, inbox=0, dead_letters=0)
