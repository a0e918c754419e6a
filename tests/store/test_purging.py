"""Executions that closed long ago are removed whole, old dead letters likewise, and nothing else is."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import Status
from holdfast.store.contract import ExecutionFilter, Store
from holdfast.store.rows import START_KEY_KINDS, ExecutionRow, RequestRow
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_history,
    make_letter,
    make_row,
    make_signal,
    make_start,
    names_of,
    read_inbox,
    read_request,
    want,
)


async def close(store: Store, number: int, at: int, **columns: object) -> ExecutionRow:
    """An execution of two turns that closed so many seconds after NOW."""
    row = make_row(number, **columns)
    closing = make_closing(row)
    closing.row = msgspec.structs.replace(closing.row, closed_at=NOW + at * SECOND)
    await commit(store, make_start(row))
    await commit(store, closing)
    return closing.row


async def read_requests(store: Store, requests: list[RequestRow]) -> list[RequestRow | None]:
    """What is remembered of requests, also of expired ones."""
    transaction = await store.begin()
    found = [await read_request(transaction, row.org, row.kind, row.key, NOW - 2 * SECOND) for row in requests]
    await transaction.rollback()
    return found


def hand_on(row: RequestRow, successors: dict[int, int]) -> RequestRow:
    """A request as it is once those of its executions were removed: the keys of starts lead to their successors."""
    found = [id_of(after) for before, after in successors.items() if id_of(before) == row.execution_id]
    return msgspec.structs.replace(row, execution_id=found[0]) if found and row.kind in START_KEY_KINDS else row


async def list_all(store: Store) -> list[str]:
    return sorted([row.execution_id for org in (ORG, OTHER) for row in await store.list_executions(ExecutionFilter(org))])


# --- removing ---


async def test_executions_that_closed_before_are_removed_with_their_histories(store: Store) -> None:
    await close(store, 1, at=1)
    await close(store, 2, at=3, org=OTHER)

    count = await store.purge(NOW + 9 * SECOND, 10)

    assert count == 2
    assert await store.find_execution(ORG, id_of(1)) is None
    assert await list_all(store) == []
    assert [await store.load_history(id_of(number)) for number in (1, 2)] == [[], []]
    assert await store.load_last_turn(id_of(1)) is None
    assert await store.find_latest(ORG, "order-1") is None


async def test_open_executions_and_later_ends_are_kept(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2, status=Status.BLOCKED)))
    await close(store, 3, at=5)
    await close(store, 4, at=6)
    await close(store, 5, at=4)

    count = await store.purge(NOW + 5 * SECOND, 10)

    assert count == 1
    assert await list_all(store) == [id_of(number) for number in (1, 2, 3, 4)]
    assert len(await store.load_history(id_of(3))) == 2
    assert await store.check() == []


async def test_no_more_are_removed_than_asked_and_the_oldest_ends_first(store: Store) -> None:
    for number, at in ((1, 3), (2, 1), (3, 2)):
        await close(store, number, at=at)

    counts, left = [], []
    for limit in (0, 2, 2, 2):
        counts.append(await store.purge(NOW * 2, limit))
        left.append(await list_all(store))

    assert counts == [0, 2, 1, 0]
    assert left == [[id_of(1), id_of(2), id_of(3)], [id_of(1)], [], []]


async def test_requests_that_they_answered_and_expired_ones_are_removed_and_no_others(store: Store) -> None:
    await close(store, 1, at=1)
    await commit(store, make_start(make_row(2)))
    expired, valid = NOW - SECOND, NOW + 99 * SECOND
    requests = [
        RequestRow(ORG, "start", "one", id_of(1), 1, valid),
        RequestRow(ORG, "signal", "one", id_of(1), 2, expired),
        RequestRow(ORG, "start", "two", id_of(2), 1, valid),
        RequestRow(ORG, "signal", "two", id_of(2), 1, expired),
    ]
    await commit_unrouted(store, requests=requests)

    await store.purge(NOW + 2 * SECOND, 10)

    assert await read_requests(store, requests) == [None, None, requests[2], None]


async def test_requests_outlive_their_execution_while_another_is_open_under_its_id(store: Store) -> None:
    for number, columns in enumerate(({}, {}, {"workflow_id": "other"}, {"org": OTHER}), 1):
        await close(store, number, at=number, **{"workflow_id": "order", **columns})
    await commit(store, make_start(make_row(5, workflow_id="order")))
    requests = [
        RequestRow(org, kind, f"{kind} {number}", id_of(number), 1, NOW + 99 * SECOND, b"{}")
        for number, org in ((1, ORG), (2, ORG), (3, ORG), (4, OTHER), (5, ORG))
        for kind in ("start", "start_request", "signal", "signal_with_start", "cancel")
    ]
    await commit_unrouted(store, requests=requests)

    await store.purge(NOW + 5 * SECOND, 1)
    assert await read_requests(store, requests) == [hand_on(row, {1: 5}) for row in requests]
    assert await store.purge(NOW + 5 * SECOND, 10) == 3

    kept = {id_of(number) for number in (1, 2, 5)}
    assert await read_requests(store, requests) == [
        hand_on(row, {1: 5, 2: 5}) if row.execution_id in kept else None for row in requests
    ]
    assert await store.check() == []


async def test_keys_that_were_handed_on_go_with_the_execution_that_has_them(store: Store) -> None:
    await close(store, 1, at=1, workflow_id="order")
    following = make_row(2, workflow_id="order")
    await commit(store, make_start(following))
    requests = [RequestRow(ORG, kind, "key", id_of(1), 1, NOW + 9 * SECOND) for kind in ("start", "signal")]
    await commit_unrouted(store, requests=requests)
    await store.purge(NOW + 2 * SECOND, 10)
    closing = make_closing(following)
    closing.row = msgspec.structs.replace(closing.row, closed_at=NOW + 4 * SECOND)
    await commit(store, closing)

    await store.purge(NOW + 5 * SECOND, 10)
    assert await read_requests(store, requests) == [None, requests[1]]

    await close(store, 3, at=6)
    await store.purge(NOW + 10 * SECOND, 10)
    assert await read_requests(store, requests) == [None, None], "what expired is not left behind"


async def test_a_workflow_id_whose_executions_are_gone_can_be_started_again(store: Store) -> None:
    await close(store, 1, at=1, workflow_id="order")
    await store.purge(NOW * 2, 10)

    lost = await commit(store, make_start(make_row(2, workflow_id="order")))

    assert lost == set()
    latest = await store.find_latest(ORG, "order")
    assert latest is not None
    assert latest.execution_id == id_of(2)


async def test_the_open_execution_of_a_workflow_id_outlives_those_before_it(store: Store) -> None:
    await close(store, 1, at=1, workflow_id="order")
    open_one = make_row(2, workflow_id="order")
    await commit(store, make_start(open_one))

    await store.purge(NOW * 2, 10)

    assert await store.find_latest(ORG, "order") == open_one
    assert await commit(store, make_start(make_row(3, workflow_id="order"))) == {id_of(3)}


async def test_an_execution_id_that_was_removed_can_be_used_again(store: Store) -> None:
    await close(store, 1, at=1)
    await store.purge(NOW * 2, 10)

    await commit(store, make_start(make_row(1)))

    assert await store.load_history(id_of(1)) == [make_history(id_of(1))]
    assert await store.find_oldest_closed() is None


async def test_what_waits_for_a_removed_execution_is_still_there(store: Store) -> None:
    await close(store, 1, at=1)
    await commit_unrouted(store, make_signal("late", 1))

    await store.purge(NOW * 2, 10)

    assert (await store.count()).inbox == 1
    assert await store.check() == []


# --- finding ---


async def test_the_oldest_end_is_found(store: Store) -> None:
    found: list[Instant | None] = [await store.find_oldest_closed()]
    await commit(store, make_start(make_row(9)))
    found.append(await store.find_oldest_closed())
    for number, at in ((1, 5), (2, 3), (3, 4)):
        await close(store, number, at=at)
        found.append(await store.find_oldest_closed())
    for _ in range(3):
        await store.purge(NOW * 2, 1)
        found.append(await store.find_oldest_closed())

    seconds = [None if at is None else (at - NOW) // SECOND for at in found]
    assert seconds == [None, None, 5, 3, 3, 4, 5, None]


async def test_closed_executions_are_told_from_others(store: Store) -> None:
    await close(store, 1, at=1)
    await commit(store, make_start(make_row(2)))
    await close(store, 3, at=1, org=OTHER)

    closed = set(await store.find_settled([id_of(number) for number in (1, 2, 3, 4)]))

    assert closed == {id_of(1), id_of(3)}
    assert await store.find_settled([]) == {}


# --- several at once ---


async def test_what_another_transaction_holds_is_left_for_the_next_time(left: Store, right: Store) -> None:
    await close(left, 1, at=1)
    await close(left, 2, at=2)
    transaction, _ = await begin_with(left, want(1))

    first = await right.purge(NOW * 2, 10)
    await transaction.rollback()
    second = await right.purge(NOW * 2, 10)

    assert (first, second) == (1, 1)


async def test_nodes_that_purge_at_once_remove_everything_once(left: Store, right: Store) -> None:
    for number in range(1, 7):
        await close(left, number, at=number)

    counts = await asyncio.gather(left.purge(NOW * 2, 4), right.purge(NOW * 2, 4))
    rest = await left.purge(NOW * 2, 10)

    assert sum(counts) + rest == 6
    assert await list_all(right) == []


# --- dead letters ---


async def list_letters(store: Store) -> list[str]:
    return [name for org in (ORG, OTHER) for name in names_of(await store.list_dead_letters(org))]


async def test_dead_letters_written_before_are_removed_in_all_orgs(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter("a", at=1), make_letter("b", org=OTHER, at=2)])
    await commit(store, make_start(make_row(1), dead_letters=[make_letter("c", at=3)]))
    await commit_unrouted(store, dead_letters=[make_letter("d", at=5), make_letter("e", org=OTHER, at=5)])

    count = await store.purge_dead_letters(NOW + 5 * SECOND, 10)

    assert count == 3
    assert await list_letters(store) == ["d", "e"]
    assert await read_inbox(store) == []
    assert await store.find_execution(ORG, id_of(1)) is not None
    assert await store.check() == []


async def test_no_more_dead_letters_are_removed_than_asked_and_the_first_go_first(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter(name) for name in "abc"])

    counts, left = [], []
    for limit in (0, 2, 2, 2):
        counts.append(await store.purge_dead_letters(NOW * 2, limit))
        left.append("".join(await list_letters(store)))

    assert counts == [0, 2, 1, 0]
    assert left == ["abc", "c", "", ""]


async def test_of_dead_letters_no_more_are_looked_at_than_asked(store: Store) -> None:
    """Ids grow with time, but for the clocks of nodes: none is removed too early, and one may be removed later."""
    for name, at in (("young", 9), ("old", 1), ("older", 0)):
        await commit_unrouted(store, dead_letters=[make_letter(name, at=at)])

    first = await store.purge_dead_letters(NOW + 5 * SECOND, 1)
    second = await store.purge_dead_letters(NOW + 5 * SECOND, 2)

    assert (first, second) == (0, 1)
    assert await list_letters(store) == ["young", "older"]


async def test_a_dead_letter_of_this_very_instant_is_kept(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter("now")])

    counts = [await store.purge_dead_letters(NOW, 10), await store.purge_dead_letters(NOW + 1, 10)]

    assert counts == [0, 1]


async def test_ids_of_purged_letters_are_not_given_again(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter("old")])
    [old] = await store.list_dead_letters(ORG)
    await store.purge_dead_letters(NOW * 2, 10)

    await commit_unrouted(store, dead_letters=[make_letter("new")])

    [new] = await store.list_dead_letters(ORG)
    assert new.id > old.id


async def test_the_time_of_the_first_dead_letter_is_found(store: Store) -> None:
    found: list[Instant | None] = [await store.find_oldest_dead_letter()]
    for name, org, at in (("a", OTHER, 3), ("b", ORG, 4), ("c", ORG, 5)):
        await commit_unrouted(store, dead_letters=[make_letter(name, org=org, at=at)])
        found.append(await store.find_oldest_dead_letter())
    for _ in range(3):
        await store.purge_dead_letters(NOW * 2, 1)
        found.append(await store.find_oldest_dead_letter())

    seconds = [None if at is None else (at - NOW) // SECOND for at in found]
    assert seconds == [None, 3, 3, 3, 4, 5, None]


async def test_nodes_that_purge_dead_letters_at_once_remove_each_once(left: Store, right: Store) -> None:
    await commit_unrouted(left, dead_letters=[make_letter(name) for name in "abcdef"])

    counts = await asyncio.gather(left.purge_dead_letters(NOW * 2, 4), right.purge_dead_letters(NOW * 2, 4))
    rest = await left.purge_dead_letters(NOW * 2, 10)

    assert sum(counts) + rest == 6
    assert await list_letters(right) == []
