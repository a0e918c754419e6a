"""What is taken together is bounded in bytes too: a backlog of large envelopes is worked off in parts."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import InboxRow
from tests.store.builders import ORG, begin_with, commit, id_of, look, make_row, make_start

MEGABYTE = 1_000_000


def make_large(number: int, size: int) -> InboxRow:
    return InboxRow(ORG, id_of(number), "", b'"' + b"x" * size + b'"')


async def fill(store: PostgresStore, sizes: Sequence[int]) -> None:
    """One execution for each size, which has an envelope of it."""
    await commit(store, *(make_start(make_row(number)) for number, _ in enumerate(sizes, 1)))
    assert all(await store.deliver([make_large(number, size) for number, size in enumerate(sizes, 1)]))


async def test_claim_takes_no_more_than_fits_into_memory_together(left: PostgresStore) -> None:
    await fill(left, [3 * MEGABYTE] * 5)

    claimed = await look(left, Claim(limit=100))

    assert claimed.held == {id_of(1), id_of(2)}
    assert len(claimed.inbox) == 2
    assert not claimed.skipped


async def test_one_that_does_not_fit_is_taken_alone(left: PostgresStore) -> None:
    await fill(left, [20 * MEGABYTE, 1])

    assert (await look(left, Claim(limit=100))).held == {id_of(1)}


async def test_what_others_hold_takes_no_room(left: PostgresStore, right: PostgresStore) -> None:
    await fill(left, [5 * MEGABYTE] * 3)
    first, held = await begin_with(left, Claim(limit=100))

    found = await look(right, Claim(limit=100))
    await first.rollback()

    assert (held.held, found.held) == ({id_of(1)}, {id_of(2)})
    assert found.skipped


async def test_backlog_is_worked_off_in_parts(left: PostgresStore) -> None:
    await fill(left, [3 * MEGABYTE] * 5)
    parts = []

    while (step := await begin_with(left, Claim(limit=100)))[1].inbox:
        transaction, claimed = step
        await transaction.write([], UnroutedWrite(consumed=[row.id for row in claimed.inbox]))
        await transaction.commit()
        parts.append(len(claimed.inbox))
    await step[0].rollback()

    assert parts == [2, 2, 1]
