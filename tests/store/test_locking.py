"""Several nodes at once: what one holds the others leave alone, and nobody waits."""

from __future__ import annotations

from holdfast.core.instants import SECOND
from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import NodeRow
from tests.eventually import eventually
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    read_row,
    want,
)


async def test_shared_stores_say_that_others_write_too(left: Store, right: Store) -> None:
    answers = [left.exclusive, right.exclusive]

    assert answers == [False, False]


async def test_what_one_node_holds_is_busy_for_the_other(left: Store, right: Store) -> None:
    await commit(left, make_start(make_row(1)), make_start(make_row(2)))
    transaction, _ = await begin_with(left, want(1))

    claimed = await look(right, want(1, 2))
    await transaction.rollback()
    afterwards = await look(right, want(1, 2))

    assert (claimed.held, claimed.busy) == ({id_of(2)}, {id_of(1)})
    assert (afterwards.held, afterwards.busy) == ({id_of(1), id_of(2)}, set())


async def test_what_has_work_is_shared_out_without_overlap(left: Store, right: Store) -> None:
    await commit(left, *[make_start(make_row(n), timers=[make_timer(1, due=1, of=n)]) for n in range(1, 7)])
    await commit_unrouted(left, *[make_signal("hello", n) for n in range(1, 4)])
    claim = Claim(limit=4, due_until=NOW + SECOND)

    one, first = await begin_with(left, claim)
    other, second = await begin_with(right, claim)
    await one.rollback()
    await other.rollback()

    assert len(first.held) == 4
    assert first.held | second.held == {id_of(n) for n in range(1, 7)}
    assert first.held & second.held == set()
    assert {row.execution_id for row in first.inbox} & {row.execution_id for row in second.inbox} == set()


async def test_a_commit_frees_what_was_held(left: Store, right: Store) -> None:
    row = make_row(1, workflow_id="order")
    await commit(left, make_start(row))
    transaction, _ = await begin_with(left, Claim(workflow_ids=[(ORG, "order")]))
    turn = make_turn(row)
    await transaction.write([turn], UnroutedWrite())

    await transaction.commit()

    claimed = await look(right, Claim(workflow_ids=[(ORG, "order")]))
    assert claimed.rows == {id_of(1): turn.row}


async def test_the_locked_row_is_read_as_the_last_holder_left_it(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    await commit_unrouted(left, make_signal("taken", 1))
    transaction, claimed = await begin_with(left, want(1))
    turn = make_turn(row, consumed=[one.id for one in claimed.inbox], outgoing=[make_signal("sent", 1)])
    await transaction.write([turn], UnroutedWrite())
    await transaction.commit()

    claimed = await look(right, want(1, known_version=1))

    assert claimed.rows == {id_of(1): turn.row}
    assert names_of(claimed.inbox) == ["sent"]


async def test_nothing_uncommitted_of_another_node_is_seen(left: Store, right: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(left, make_start(row), make_start(other))
    await commit_unrouted(left, make_signal("old", 2))
    transaction, claimed = await begin_with(left, want(1))
    turn = make_turn(row, outgoing=[make_signal("new", 2)])
    loose = UnroutedWrite(consumed=[one.id for one in claimed.inbox])
    await transaction.write([turn, make_start(make_row(3))], loose)

    reader, seen = await begin_with(right, want(2))
    rows = await reader.read_rows([id_of(1), id_of(3)])
    history = await reader.read_history({id_of(1): 0})
    await transaction.commit()
    seen_later = await reader.claim(want(2))
    await reader.rollback()

    assert rows == {id_of(1): row}
    assert len(history[id_of(1)]) == 1
    assert names_of(seen.inbox) == ["old"]
    assert names_of(seen_later.inbox) == ["old", "new"]


async def test_envelopes_may_become_visible_in_another_order_than_that_of_their_ids(left: Store, right: Store) -> None:
    await commit(left, make_start(make_row(1)))
    early = await left.begin()
    await early.write([], UnroutedWrite(outgoing=[make_signal("written first", 1)]))
    await commit_unrouted(right, make_signal("committed first", 1))

    seen_first = names_of(await read_inbox(right))
    await early.commit()
    seen_then = names_of(await read_inbox(right))

    assert seen_first == ["committed first"]
    assert sorted(seen_then) == ["committed first", "written first"]


async def test_consuming_leaves_what_was_committed_after_the_claim(left: Store, right: Store) -> None:
    row = make_row(1)
    await commit(left, make_start(row))
    early = await right.begin()
    await early.write([], UnroutedWrite(outgoing=[make_signal("early id, late commit", 1)]))
    await commit_unrouted(right, make_signal("seen", 1))
    transaction, claimed = await begin_with(left, want(1))
    await early.commit()

    await transaction.write([make_turn(row, consumed=[one.id for one in claimed.inbox])], UnroutedWrite())
    await transaction.commit()

    assert names_of(claimed.inbox) == ["seen"]
    assert names_of(await read_inbox(left)) == ["early id, late commit"]


async def test_two_envelopes_for_one_missing_execution_go_to_one_node(left: Store, right: Store) -> None:
    await commit_unrouted(left, make_signal("start", 1), make_signal("cancel", 1))

    one, first = await begin_with(left, Claim(limit=1))
    other, second = await begin_with(right, Claim(limit=10))
    await one.rollback()
    await other.rollback()

    assert names_of(first.inbox) == ["start", "cancel"]
    assert second.inbox == []


async def test_envelopes_for_one_workflow_id_go_to_one_node(left: Store, right: Store) -> None:
    await commit_unrouted(left, *[make_signal(name, None, workflow_id="order") for name in ("start", "signal")])

    one, first = await begin_with(left, Claim(limit=1))
    other, second = await begin_with(right, Claim(limit=10))
    await one.rollback()
    await other.rollback()

    assert names_of(first.inbox) == ["start", "signal"]
    assert second.inbox == []


async def test_a_version_that_another_node_moved_on_is_lost(left: Store, right: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(left, make_start(row), make_start(other))
    transaction, _ = await begin_with(left, want(2))
    newer = make_turn(row)
    await commit(right, newer)

    lost = await transaction.write([make_turn(row), make_turn(other)], UnroutedWrite())
    await transaction.commit()

    assert lost == {id_of(1)}
    assert await read_row(right, 1) == newer.row
    assert await read_row(right, 2) == make_turn(other).row


async def test_batches_that_send_to_each_others_executions_do_not_wait(left: Store, right: Store) -> None:
    rows = make_row(1), make_row(2)
    await commit(left, *[make_start(row) for row in rows])
    one, _ = await begin_with(left, want(1))
    other, _ = await begin_with(right, want(2))

    await one.write([make_turn(rows[0], outgoing=[make_signal("to two", 2)])], UnroutedWrite())
    await other.write([make_turn(rows[1], outgoing=[make_signal("to one", 1)])], UnroutedWrite())
    await one.commit()
    await other.commit()

    assert sorted(names_of(await read_inbox(left))) == ["to one", "to two"]


async def test_a_node_that_wakes_reaches_the_others_and_not_itself(left: Store, right: Store) -> None:
    woken: list[str] = []
    left.on_wake(lambda why: woken.append(f"left: {why.name}"))
    right.on_wake(lambda why: woken.append(f"right: {why.name}"))

    await left.wake(WakeReason.WORK)
    await eventually(lambda: len(woken) > 0)
    await right.wake(WakeReason.ENDS)
    await eventually(lambda: len(woken) > 1)

    assert woken == ["right: WORK", "left: ENDS"]


async def test_who_listened_to_a_closed_store_hears_nothing_when_it_is_opened_again(left: Store, right: Store) -> None:
    woken: list[str] = []
    right.on_wake(lambda _why: woken.append("old"))

    await right.close()
    await left.wake(WakeReason.WORK)
    await right.open()
    right.on_wake(lambda _why: woken.append("new"))
    await left.wake(WakeReason.WORK)
    await eventually(lambda: len(woken) > 0)

    assert woken == ["new"]


async def test_heartbeats_are_seen_by_all(left: Store, right: Store) -> None:
    await left.beat(NodeRow("left", NOW, NOW), (), ())

    pulse = await right.beat(NodeRow("right", NOW, NOW), (), ())

    assert [row.node for row in pulse.nodes] == ["left", "right"]
    assert await right.list_nodes() == pulse.nodes


async def test_a_claim_says_whether_others_hold_what_has_work(left: Store, right: Store) -> None:
    await commit(left, *(make_start(make_row(number)) for number in (1, 2)))
    await commit_unrouted(left, make_signal("one", 1), make_signal("two", 2))
    transaction, _ = await begin_with(left, want(1))

    meanwhile = await look(right, Claim(limit=10))
    wanted = await look(right, want(1))
    await transaction.rollback()
    afterwards = await look(right, Claim(limit=10))

    assert (meanwhile.held, meanwhile.skipped) == ({id_of(2)}, True)
    assert (wanted.busy, wanted.skipped) == ({id_of(1)}, False)
    assert (afterwards.held, afterwards.skipped) == ({id_of(1), id_of(2)}, False)


async def test_what_others_hold_on_other_routes_is_not_told_of(left: Store, right: Store) -> None:
    await commit(left, make_start(make_row(1, route="orders")))
    await commit_unrouted(left, make_signal("one", 1, route="orders"))
    transaction, _ = await begin_with(left, want(1))

    claimed = await look(right, Claim(limit=10, routes=["bills"]))
    await transaction.rollback()

    assert claimed.skipped is False
