"""Rule 8: the order of an inbox is a sequence of the database's, across all sessions."""

from __future__ import annotations

from holdfast.store.postgres.store import PostgresStore
from tests.store.builders import commit, commit_unrouted, look, make_row, make_signal, make_start, names_of, want
from tests.store.postgres.watching import Plain, Watch, connect


async def test_order_is_that_of_arrival_whoever_sends(left: PostgresStore, right: PostgresStore, watch: Watch) -> None:
    user: Plain = await connect(watch.address)
    await commit(left, make_start(make_row(1)))

    for number in range(0, 20, 4):
        await left.deliver([make_signal(str(number), 1)])
        await commit_unrouted(right, make_signal(str(number + 1), 1))
        async with user.transaction():
            await right.enlist(user, [make_signal(str(number + 2), 1)])
        await right.deliver([make_signal(str(number + 3), 1)])
    await user.close()

    claimed = await look(left, want(1))
    assert names_of(claimed.inbox) == [str(number) for number in range(20)]
    assert [row.id for row in claimed.inbox] == sorted(row.id for row in claimed.inbox)


async def test_rows_of_one_statement_keep_the_order_in_which_they_are_given(left: PostgresStore) -> None:
    await commit(left, make_start(make_row(1)))

    await left.deliver([make_signal(str(number), 1) for number in range(300)])

    assert names_of((await look(left, want(1))).inbox) == [str(number) for number in range(300)]


async def test_no_session_keeps_numbers_for_later(left: PostgresStore, watch: Watch) -> None:
    await commit(left, make_start(make_row(1)))

    kept = await watch.fetch(
        "SELECT seqcache FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence('inbox', 'id')::regclass"
    )
    kinds = await watch.fetch(
        "SELECT data_type, is_identity FROM information_schema.columns "
        "WHERE table_schema = $1 AND table_name = 'inbox' AND column_name = 'id'",
        watch.address.schema,
    )

    assert kept == [(1,)], "else one session's later numbers could be smaller than another's earlier ones"
    assert kinds == [("bigint", "YES")]


async def test_row_that_failed_keeps_its_place(left: PostgresStore, right: PostgresStore) -> None:
    await commit(left, make_start(make_row(1)))
    await left.deliver([make_signal("first", 1), make_signal("second", 1)])
    first = (await look(left, want(1))).inbox[0]

    await commit_unrouted(right, failed=[first.id])

    assert names_of((await look(left, want(1))).inbox) == ["first", "second"]
