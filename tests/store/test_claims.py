"""Claims: what is asked for, what has work, and nothing that is to be left alone."""

from __future__ import annotations

import pytest

from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite, Wanted
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    want,
)


async def test_a_wanted_execution_is_held_with_its_row_and_its_inbox(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2)))
    await commit_unrouted(store, make_signal("mine", 1), make_signal("another's", 2))

    claimed = await look(store, want(1))

    assert claimed.held == {id_of(1)}
    assert claimed.rows == {id_of(1): make_row(1)}
    assert names_of(claimed.inbox) == ["mine"]
    assert claimed.busy == set()


async def test_what_waits_for_a_wanted_execution_that_does_not_exist_is_found(store: Store) -> None:
    await commit(store, loose=UnroutedWrite(outgoing=[make_signal("x", 1)]))

    claimed = await look(store, Claim(wanted=want(1).wanted, limit=10))

    assert claimed.held == set()
    assert [row.execution_id for row in claimed.inbox] == [id_of(1)]


async def test_with_its_workflow_id_a_wanted_execution_brings_what_is_addressed_by_that(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")), make_start(make_row(2, workflow_id="other")))
    await commit_unrouted(
        store,
        make_signal("by workflow id", None, workflow_id="order"),
        make_signal("by execution id", 1),
        make_signal("another's", None, workflow_id="other"),
    )

    claimed = await look(store, Claim(wanted=[Wanted(ORG, id_of(1), -1, "order")]))

    assert claimed.held == {id_of(1)}
    assert claimed.open_ids == {(ORG, "order"): id_of(1)}
    assert names_of(claimed.inbox) == ["by workflow id", "by execution id"]


async def test_the_workflow_id_of_a_wanted_execution_that_is_closed_is_not_claimed(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="order")))
    await commit(store, make_closing(make_row(1, workflow_id="order")))

    claimed = await look(store, Claim(wanted=[Wanted(ORG, id_of(1), 1, "order")]))

    assert claimed.held == set()
    assert claimed.open_ids == {}


async def test_a_row_whose_version_is_not_the_known_one_is_read(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    turn = make_turn(row)
    await commit(store, turn)

    claimed = await look(store, want(1, known_version=1))

    assert claimed.held == {id_of(1)}
    assert claimed.rows == {id_of(1): turn.row}


async def test_a_row_of_another_past_is_read_though_its_version_is_known(left: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))

    same = await look(left, Claim(wanted=[Wanted(ORG, id_of(1), 1, known_at=row.updated_at)]))
    other = await look(left, Claim(wanted=[Wanted(ORG, id_of(1), 1, known_at=row.updated_at - 1)]))

    assert (same.held, same.rows) == ({id_of(1)}, {})
    assert (other.held, other.rows) == ({id_of(1)}, {id_of(1): row})


async def test_an_execution_at_the_known_version_is_held_whether_its_row_is_read_or_not(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    claimed = await look(store, want(1, known_version=1))

    assert claimed.held == {id_of(1)}
    assert claimed.rows.get(id_of(1), row) == row


async def test_an_unknown_execution_is_neither_held_nor_busy(store: Store) -> None:
    claimed = await look(store, want(1))

    assert (claimed.held, claimed.busy, claimed.rows) == (set(), set(), {})


@pytest.mark.parametrize("status", [status for status in Status if status.is_closed])
async def test_a_closed_execution_is_neither_held_nor_busy(store: Store, status: Status) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_closing(row, status))

    claimed = await look(store, want(1))

    assert (claimed.held, claimed.busy, claimed.rows) == (set(), set(), {})


async def test_an_execution_is_not_held_for_another_org(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    claimed = await look(store, want(1, org=OTHER))

    assert (claimed.held, claimed.busy, claimed.rows) == (set(), set(), {})


async def test_a_workflow_id_is_resolved_to_its_open_execution_which_is_held(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("hello", 1))

    claimed = await look(store, Claim(workflow_ids=[(ORG, "order")]))

    assert claimed.open_ids == {(ORG, "order"): id_of(1)}
    assert claimed.held == {id_of(1)}
    assert claimed.rows == {id_of(1): row}
    assert names_of(claimed.inbox) == ["hello"]


async def test_a_workflow_id_whose_executions_are_closed_is_open_for_a_start(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(store, make_start(row))
    await commit(store, make_closing(row))

    claimed = await look(store, Claim(workflow_ids=[(ORG, "order"), (ORG, "new"), (OTHER, "order")]))

    assert claimed.open_ids == {(ORG, "order"): None, (ORG, "new"): None, (OTHER, "order"): None}
    assert claimed.held == set()


async def test_executions_with_work_are_taken_up_to_the_limit_and_no_others(store: Store) -> None:
    await commit(store, *[make_start(make_row(number)) for number in range(1, 7)])
    await commit_unrouted(store, *[make_signal("hello", number) for number in (5, 3, 1)])

    claimed = await look(store, Claim(limit=2))

    assert claimed.held == {id_of(5), id_of(3)}
    assert [one.execution_id for one in claimed.inbox] == [id_of(5), id_of(3)]


async def test_a_limit_of_none_takes_only_what_is_wanted(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2), timers=[make_timer(1, due=1, of=2)]))
    await commit_unrouted(store, make_signal("hello", 2))

    claimed = await look(store, Claim(wanted=want(1).wanted, due_until=NOW + SECOND))

    assert claimed.held == {id_of(1)}
    assert (claimed.inbox, claimed.due) == ([], [])


async def test_the_limit_counts_what_comes_beyond_the_wanted(store: Store) -> None:
    await commit(store, *[make_start(make_row(number)) for number in range(1, 5)])
    await commit_unrouted(store, *[make_signal("hello", number) for number in range(1, 5)])

    claimed = await look(store, Claim(wanted=want(1, 2).wanted, limit=1))

    assert claimed.held == {id_of(1), id_of(2), id_of(3)}


async def test_an_execution_brings_all_that_waits_for_it(store: Store) -> None:
    await commit(store, make_start(make_row(1), timers=[make_timer(1, due=1), make_timer(2, due=2)]))
    await commit_unrouted(store, *[make_signal(f"{n}", 1) for n in range(20)])

    claimed = await look(store, Claim(limit=1, due_until=NOW + 5 * SECOND))

    assert names_of(claimed.inbox) == [f"{n}" for n in range(20)]
    assert len(claimed.due) == 2


async def test_neither_envelopes_nor_due_timers_starve_the_others(store: Store) -> None:
    numbers = range(1, 11)
    await commit(store, *[make_start(make_row(n), timers=[make_timer(1, due=1, of=n)]) for n in numbers if n % 2])
    await commit(store, *[make_start(make_row(n)) for n in numbers if not n % 2])
    await commit_unrouted(store, *[make_signal("hello", n) for n in numbers if not n % 2])

    claimed = await look(store, Claim(limit=6, due_until=NOW + SECOND))

    assert claimed.inbox
    assert claimed.due


async def test_skipped_executions_are_left_alone(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2)))
    await commit_unrouted(store, make_signal("blocked", 1), make_signal("hello", 2))

    claimed = await look(store, Claim(limit=10, skip=[id_of(1)]))

    assert claimed.held == {id_of(2)}
    assert names_of(claimed.inbox) == ["hello"]


async def test_a_skipped_execution_that_is_wanted_is_held(store: Store) -> None:
    await commit(store, make_start(make_row(1)))

    claimed = await look(store, Claim(wanted=[Wanted(ORG, id_of(1))], limit=10, skip={id_of(1)}))

    assert claimed.held == {id_of(1)}


async def test_a_second_claim_of_one_transaction_adds_to_the_first(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2)))
    await commit_unrouted(store, make_signal("one", 1), make_signal("two", 2))
    transaction, first = await begin_with(store, want(1))

    second = await transaction.claim(want(2))
    again = await transaction.claim(want(1))
    lost = await transaction.write([make_turn(make_row(1)), make_turn(make_row(2))], UnroutedWrite())
    await transaction.commit()

    assert (first.held, second.held, again.held) == ({id_of(1)}, {id_of(2)}, {id_of(1)})
    assert names_of(second.inbox) == ["two"]
    assert lost == set()


async def test_a_claim_sees_what_its_own_transaction_has_written(store: Store) -> None:
    row = make_row(1, workflow_id="order")
    transaction = await store.begin()
    await transaction.write([make_start(row, outgoing=[make_signal("hello", 1)])], UnroutedWrite())

    claimed = await transaction.claim(Claim(workflow_ids=[(ORG, "order")]))
    rows = await transaction.read_rows([id_of(1)])
    await transaction.rollback()

    assert claimed.open_ids == {(ORG, "order"): id_of(1)}
    assert names_of(claimed.inbox) == ["hello"]
    assert rows == {id_of(1): row}


async def test_an_empty_claim_of_an_empty_store_is_empty(store: Store) -> None:
    claimed = await look(store, Claim(limit=100, due_until=NOW))

    assert (claimed.held, claimed.rows, claimed.busy, claimed.open_ids) == (set(), {}, set(), {})
    assert (claimed.inbox, claimed.due) == ([], [])
