"""Searching: by metadata, times, prefix; page by page while executions come and go; counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.execution import Details
from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.core.references import BusinessReference
from holdfast.filters.parser import parse_filter, parse_order
from holdfast.store import listing
from holdfast.store.contract import ExecutionFilter, Store, TurnWrite
from holdfast.store.rows import BacklogRow, ExecutionRow, StatusCounts, Waiting
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_offer,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    read_row,
)


def details(**metadata: str) -> bytes:
    return codec.encode(Details(metadata=metadata))


def numbers_of(rows: Sequence[ExecutionRow]) -> list[int]:
    return [int(row.execution_id[-12:], 16) for row in rows]


def close_at(row: ExecutionRow, seconds: int) -> TurnWrite:
    turn = make_closing(row)
    turn.row = replace(turn.row, closed_at=NOW + seconds * SECOND)
    return turn


async def fill(store: Store) -> None:
    """Six executions: two customers, some closed, ids with two prefixes, one of another org."""
    rows = [
        make_row(1, workflow_id="ann/1", details=details(customer="ann", channel="web")),
        make_row(2, workflow_id="ann/2", details=details(customer="ann")),
        make_row(3, workflow_id="bob/1", details=details(customer="bob", channel="web")),
        make_row(4, workflow_id="ann/3", workflow="bill", details=details(customer="ann", channel="web")),
        make_row(5, workflow_id="ann%_", details=b"{}"),
        make_row(6, workflow_id="ann/1", org=OTHER, details=details(customer="ann")),
    ]
    await commit(store, *map(make_start, rows))
    await commit(store, close_at(rows[0], 100), close_at(rows[2], 200))


CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({"metadata": {"customer": "ann"}}, [4, 2, 1]),
    ({"metadata": {"customer": "ann", "channel": "web"}}, [4, 1]),
    ({"metadata": {"channel": "web"}, "statuses": [Status.COMPLETED]}, [3, 1]),
    ({"metadata": {"channel": "web"}, "workflow": "bill"}, [4]),
    ({"metadata": {"customer": "an"}}, []),
    ({"metadata": {"Customer": "ann"}}, []),
    ({"metadata": {"customer": "ann"}, "before": id_of(4), "limit": 1}, [2]),
    ({"metadata": {"customer": "ann"}, "workflow_id": "ann/2"}, [2]),
    ({"metadata": {"customer": "bob"}, "workflow_id": "ann/2"}, []),
    ({"workflow_id_prefix": "ann"}, [5, 4, 2, 1]),
    ({"workflow_id_prefix": "ann/"}, [4, 2, 1]),
    ({"workflow_id_prefix": "ann%"}, [5]),
    ({"workflow_id_prefix": "ann_"}, []),
    ({"workflow_id_prefix": ""}, [5, 4, 3, 2, 1]),
    ({"workflow_id_prefix": "ann/", "statuses": [Status.RUNNING]}, [4, 2]),
    ({"created_after": NOW + 3 * SECOND}, [5, 4, 3]),
    ({"created_before": NOW + 3 * SECOND}, [2, 1]),
    ({"created_after": NOW + 2 * SECOND, "created_before": NOW + 4 * SECOND}, [3, 2]),
    ({"created_after": NOW + 9 * SECOND}, []),
    ({"closed_after": NOW + 100 * SECOND}, [3, 1]),
    ({"closed_after": NOW + 101 * SECOND}, [3]),
    ({"closed_before": NOW + 200 * SECOND}, [1]),
    ({"closed_before": NOW + 100 * SECOND}, []),
    ({"closed_after": 0, "statuses": [Status.RUNNING]}, []),
    ({"closed_after": 0, "metadata": {"customer": "bob"}}, [3]),
    ({"closed_after": 0, "workflow_id_prefix": "ann"}, [1]),
    ({"created_after": -(10**20), "created_before": 10**18}, [5, 4, 3, 2, 1]),
]


@pytest.mark.parametrize("few", [listing.FEW, 0], ids=["few", "many"])
async def test_conditions_hold_all_at_once_whichever_index_leads(
    store: Store, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "FEW", few)
    await fill(store)

    for asked, numbers in CASES:
        query = ExecutionFilter(ORG, **asked)
        assert numbers_of(await store.list_executions(query)) == numbers, asked
        assert (await store.count_executions(query)).total == len(numbers), asked


async def test_counts_are_by_status_and_up_to_the_limit(store: Store) -> None:
    await fill(store)

    assert await store.count_executions(ExecutionFilter(ORG)) == StatusCounts({"running": 3, "completed": 2})
    assert (await store.count_executions(ExecutionFilter(ORG, limit=2))).total == 2
    assert await store.count_executions(ExecutionFilter("nobody's")) == StatusCounts({})


@pytest.mark.parametrize("scan", [1, 2, 4, 5, 6, 100])
async def test_count_that_is_given_up_says_so(store: Store, scan: int) -> None:
    await fill(store)
    asked = [("workflow = 'order'", 4), ("NOT workflow = 'order'", 1), ("status = 'running' AND workflow = 'order'", 2)]

    for where, number in [*asked, ("workflow_id = 'ann/1'", 1), ("metadata.channel = 'web'", 3)]:
        counted = await store.count_executions(ExecutionFilter(ORG, where=parse_filter(where), scan=scan))
        assert counted.total <= number, where
        assert counted.is_given_up or counted.total == number, where
        assert not counted.is_given_up or scan < 6, where

    is_reached = await store.count_executions(ExecutionFilter(ORG, limit=1, scan=2))
    assert is_reached == StatusCounts({"running": 1})


@pytest.mark.parametrize("order_by", ["closed", "metadata.customer desc"])
async def test_count_in_an_order_that_is_given_up_says_so(store: Store, order_by: str) -> None:
    await fill(store)
    query = ExecutionFilter(ORG, where=parse_filter("workflow_id STARTS WITH 'bob'"), order=parse_order(order_by))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "FEW", 0)
        counts = [await store.count_executions(replace(query, scan=scan)) for scan in (1, 100)]

    assert counts[0].is_given_up or counts[0].total == 1
    assert counts[1] == StatusCounts({"completed": 1})


@pytest.mark.parametrize("query", [{}, {"metadata": {"k": "v"}}, {"workflow_id_prefix": "order"}, {"created_after": 0}])
async def test_pages_lose_and_double_nothing_while_executions_come_and_close(store: Store, query: dict[str, Any]) -> None:
    rows = {number: make_row(number, details=details(k="v")) for number in range(1, 10)}
    await commit(store, *[make_start(rows[number]) for number in range(1, 8)])

    first = await store.search_executions(ExecutionFilter(ORG, limit=3, **query))
    await commit(store, make_start(rows[8]), make_closing(rows[5]), make_closing(rows[2]))
    second = await store.search_executions(ExecutionFilter(ORG, limit=3, before=first.end, **query))
    await commit(store, make_start(rows[9]), make_turn(rows[1]))
    third = await store.search_executions(ExecutionFilter(ORG, limit=3, before=second.end, **query))

    assert [numbers_of(page.rows) for page in (first, second, third)] == [[7, 6, 5], [4, 3, 2], [1]]
    assert third.end is None


async def test_what_is_removed_with_its_execution_is_not_found(store: Store) -> None:
    await fill(store)

    removed = await store.purge(NOW + 150 * SECOND, 10)

    assert removed == 1
    assert numbers_of(await store.list_executions(ExecutionFilter(ORG, metadata={"customer": "ann"}))) == [4, 2]


@pytest.mark.parametrize(
    "value",
    ["", "ä" * 250, "x" * 500, "'; --", '"\\', "\ufffe", "\ufffd", "\x01", "\x01\x02", "\x01\x03", "\\u0000", "%", " a "],
)
async def test_any_value_that_an_index_takes_is_found_exactly(store: Store, value: str) -> None:
    rows = [make_row(1, details=details(k=value)), make_row(2, details=details(k=value + "y"))]
    await commit(store, *map(make_start, rows))

    assert numbers_of(await store.list_executions(ExecutionFilter(ORG, metadata={"k": value}))) == [1]


@pytest.mark.parametrize("metadata", [{"k": "x" * 10_000}, {"k" * 3000: "v"}, {"k": "a\0b", "\0": "v"}, {"k": "\0"}])
async def test_metadata_that_no_index_takes_is_kept_but_not_found(store: Store, metadata: dict[str, str]) -> None:
    row = make_row(1, details=codec.encode(Details(metadata={**metadata, "other": "v"})))

    assert await commit(store, make_start(row)) == set()

    assert (await read_row(store)).details == row.details
    assert numbers_of(await store.list_executions(ExecutionFilter(ORG, metadata={"other": "v"}))) == [1]
    for where in ("HAS metadata.k", 'HAS metadata."\ufffd"', "metadata.k = 'a\ufffdb'", "metadata.k = '\ufffd'"):
        assert await store.list_executions(ExecutionFilter(ORG, where=parse_filter(where))) == [], where
    assert await store.check() == []


async def test_states_and_references_with_nul_are_left_out_and_the_others_found(store: Store) -> None:
    texts = {"k": "sa\0b", "\0": "sv", "other": "sv\x01\x02"}
    references = [BusinessReference("a", texts), BusinessReference("a\0", {"other": "b"})]
    for number, reference in enumerate(references, 1):
        encoded = codec.encode(Details(metadata=texts, searchable=texts, reference=reference))
        await commit(store, make_start(make_row(number, details=encoded)))

    found = {}
    for where in ("HAS state.k", "HAS reference.k", "HAS reference", "HAS state.other", "reference.other = 'b'"):
        found[where] = numbers_of(await store.list_executions(ExecutionFilter(ORG, where=parse_filter(where))))

    assert list(found.values()) == [[], [], [1], [2, 1], [2]]
    assert await store.check() == []


async def test_details_that_cannot_be_read_are_not_in_the_way(store: Store) -> None:
    await commit(store, make_start(make_row(1, details=b'{"metadata":{"k":"v"')))

    assert await store.list_executions(ExecutionFilter(ORG, metadata={"k": "v"})) == []


async def test_a_backlog_counts_what_waits_by_org_and_queue(store: Store) -> None:
    timers = [make_timer(1, 5), make_timer(2, 50)]
    await commit(
        store,
        make_start(
            make_row(1, queue="fast"), timers=timers, offered=[make_offer(3, "slow\tcharge"), make_offer(4, "slow\tpay")]
        ),
        make_start(make_row(2)),
        make_start(make_row(3, org=OTHER)),
    )
    await commit_unrouted(
        store, replace(make_signal("x"), at=NOW), make_signal("y", None, workflow_id="w", route="slow\torder")
    )
    await store.take_offers("a", ["slow\tpay"], 1)

    rows = await store.read_backlog(NOW + 10 * SECOND, 100)

    assert sorted(map(repr, rows)) == sorted(
        map(
            repr,
            [
                BacklogRow(Waiting.OPEN, ORG, "fast", "", "running", 1, make_row(1).created_at),
                BacklogRow(Waiting.OPEN, ORG, "default", "", "running", 1, make_row(2).created_at),
                BacklogRow(Waiting.OPEN, OTHER, "default", "", "running", 1, make_row(3).created_at),
                BacklogRow(Waiting.INBOX, ORG, "fast", "", "", 1, NOW),
                BacklogRow(Waiting.INBOX, ORG, None, "slow\torder", "", 1, None),
                BacklogRow(Waiting.DUE, ORG, "fast", "", "", 1, NOW + 5 * SECOND),
                BacklogRow(Waiting.OFFERED, ORG, None, "slow\tcharge", "", 1, None),
            ],
        )
    )
    assert sum(row.count for row in await store.read_backlog(NOW + 10 * SECOND, 1)) == 4


async def test_a_backlog_tells_what_waits_for_blocked_executions_apart(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1, status=Status.BLOCKED), timers=[make_timer(1, 5), make_timer(2, 6)]),
        make_start(make_row(2), timers=[make_timer(1, 7, of=2)]),
    )
    await commit_unrouted(
        store,
        replace(make_signal("x"), at=NOW),
        replace(make_signal("y", 2), at=NOW + SECOND),
    )

    rows = [row for row in await store.read_backlog(NOW + 10 * SECOND, 100) if row.what is not Waiting.OPEN]

    assert sorted(map(repr, rows)) == sorted(
        map(
            repr,
            [
                BacklogRow(Waiting.INBOX, ORG, "default", "", "blocked", 1, NOW),
                BacklogRow(Waiting.INBOX, ORG, "default", "", "", 1, NOW + SECOND),
                BacklogRow(Waiting.DUE, ORG, "default", "", "blocked", 2, NOW + 5 * SECOND),
                BacklogRow(Waiting.DUE, ORG, "default", "", "", 1, NOW + 7 * SECOND),
            ],
        )
    )
