"""What is to be published: the outbox, starts by messages and broadcasts, and what has many subscribers."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.envelopes import Start
from holdfast.core.payloads import NULL, Payload
from holdfast.core.publications import EventOptions, OnTargetTerminated
from holdfast.store import matching
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.matching import Presence, PublishingFacts
from holdfast.store.publications import SPREAD_BYTES, SPREAD_FROM, PendingRow, Published, Refusal, StartSubscriptionRow
from holdfast.store.rows import ExecutionRow, InboxRow, NodeRow
from holdfast.store.settling import plan_settling
from holdfast.store.wait_matching import SubscribingFacts, list_consumed, list_waits, plan_subscribing
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_row,
    make_start,
    make_turn,
)
from tests.store.topics import (
    LATER,
    broadcast,
    event,
    make_publication,
    make_wait,
    message,
    publish,
    publishable,
    read_given,
    read_kept,
    start,
)


def make_start_row(workflow_id: str = "order-1") -> InboxRow:
    envelope = Start(execution_id=id_of(50), workflow_id=workflow_id, workflow="order", input=NULL)
    return InboxRow(ORG, "", workflow_id, codec.encode(envelope), route="r", at=NOW)


# --- starts -------------------------------------------------------------------------------------------------------------


async def test_M2_a_message_for_which_nobody_waits_starts_a_workflow_one_at_a_time(store: Store) -> None:
    items = [message(name, "order-1", starts=[make_start_row()]) for name in ("m1", "m2")]

    assert await publish(store, *items) == [Published(started=1), Published(kept=True)]
    third = message("m3", "order-1", starts=[make_start_row()])
    assert await publish(store, third) == [Published(kept=True)]
    unkept = message("m4", "order-1", ttl=False, starts=[make_start_row()])
    assert await publish(store, unkept) == [Published(refusal=Refusal.NOBODY)]

    (row,) = await store.list_inbox(ORG, "nobody", "order-1")
    assert (row.workflow_id, row.route) == ("order-1", "r")


@pytest.mark.parametrize("closes_at_once", [True, False])
async def test_M2_when_an_execution_closes_the_oldest_message_starts_the_next(store: Store, closes_at_once: bool) -> None:
    row = make_row(1)
    if closes_at_once:
        await commit_unrouted(store, make_start_row())
    else:
        await start(store)
    await publish(store, *(message(name, "order-1", starts=[make_start_row()]) for name in ("m1", "m2")))
    waiting = [one.id for one in await store.list_inbox(ORG, "nobody", "order-1")]
    closing = make_start(make_closing(row).row, consumed=waiting) if closes_at_once else make_closing(row)

    assert await commit(store, closing) == set()

    assert await read_kept(store, "message", "paid") == ["m2"]
    assert [one.body for one in await store.list_inbox(ORG, "nobody", "order-1")] == [make_start_row().body]


async def test_M2_nothing_starts_while_the_next_run_is_open(store: Store) -> None:
    row = await start(store)
    await publish(store, message("m1", "order-1", starts=[make_start_row()]))

    assert await commit(store, make_closing(row), make_start(make_row(2, workflow_id="order-1"))) == set()

    assert await read_kept(store, "message", "paid") == ["m1"]


async def test_B1_a_broadcast_starts_all_that_begin_by_it(store: Store) -> None:
    await start(store, make_wait(1, "broadcast", "alarm"))

    items = [broadcast("b1", starts=[make_start_row("a"), make_start_row("b")])]

    assert await publish(store, *items) == [Published(1, 2)]
    assert len(await store.list_inbox(ORG, "nobody", "a")) == len(await store.list_inbox(ORG, "nobody", "b")) == 1


async def test_start_subscriptions_hold_while_their_node_does(store: Store) -> None:
    offered = StartSubscriptionRow("message", "paid", "order", "default", "r")
    own = replace(offered, org=OTHER)
    await store.beat(NodeRow("a", NOW, NOW), (), ())
    await store.put_starts("a", [offered, own])
    await store.put_starts("b", [offered])

    async def read(org: str) -> list[tuple[str, str]]:
        transaction = await store.begin()
        rows = await transaction.read_starts({("message", "paid"), ("broadcast", "x")}, org)
        await transaction.rollback()
        return [(row.node, row.org) for row in rows]

    assert (await read(ORG), await read(OTHER)) == ([("a", ""), ("b", "")], [("a", ""), ("b", ""), ("a", OTHER)])
    await store.put_starts("b", [])
    assert await read(ORG) == [("a", "")]
    await store.leave("a")
    assert await read(OTHER) == []


# --- the outbox ---------------------------------------------------------------------------------------------------------


async def test_what_turns_publish_waits_in_the_outbox_in_their_order(store: Store) -> None:
    first = replace(event("e1", {"a": "1"}).row, origin=id_of(1), number=3)
    returned = replace(message("m1").row, is_returned=True)
    assert not (await store.beat(NodeRow("a", NOW, NOW), (), ())).has_publications

    row = await start(store)
    await commit(store, make_turn(row, publications=[first]), loose=UnroutedWrite(publications=[returned]))
    assert (await store.beat(NodeRow("a", NOW, NOW), (), ())).has_publications

    transaction = await store.begin()
    rows = await transaction.read_outbox(10)
    assert [replace(one, id=0) for one in rows] == [first, returned]
    items = [replace(event("e1"), row=rows[0]), replace(message("m1"), row=rows[1])]
    assert await transaction.publish(items, NOW) == [Published(kept=True)] * 2
    await transaction.commit()
    assert not (await store.beat(NodeRow("a", NOW, NOW), (), ())).has_publications


async def test_nobody_publishes_the_second_of_a_key_while_another_is_at_the_first(left: Store, right: Store) -> None:
    rows = [message("m1").row, message("m2").row, message("x", "other").row]
    await commit(left, loose=UnroutedWrite(publications=rows))
    first = await left.begin()
    second = await right.begin()

    held = await first.read_outbox(1)
    others = await second.read_outbox(10)

    assert [codec.decode_publication(row.body).id for row in held] == ["m1"]
    assert [codec.decode_publication(row.body).id for row in others] == ["x"]
    await first.rollback()
    await second.rollback()


# --- locks --------------------------------------------------------------------------------------------------------------


async def test_who_begins_to_wait_loses_at_once_against_who_publishes(left: Store, right: Store) -> None:
    row = await start(left)
    publishing = await left.begin()
    assert await publishing.publish([message("m1"), event("e1")], NOW) == [Published(kept=True)] * 2

    for wait in (make_wait(1, "message", "paid", key="k"), make_wait(1, "event", "shipped")):
        assert await commit(right, make_turn(row, subscriptions=[wait])) == {id_of(1)}
    await publishing.commit()

    waits = [make_wait(1, "message", "paid", key="k"), make_wait(2, "event", "shipped")]
    assert await commit(right, make_turn(row, subscriptions=waits)) == set()
    assert await read_given(left) == [(1, "m1"), (2, "e1")]


async def test_who_publishes_is_busy_at_once_while_another_begins_to_wait(left: Store, right: Store) -> None:
    row = await start(left)
    waiting = await left.begin()
    waits = [make_wait(1, "message", "paid", key="k"), make_wait(2, "event", "shipped")]
    assert await waiting.write([make_turn(row, subscriptions=waits)], UnroutedWrite()) == set()

    answers = await publish(right, message("m1"), event("e1"), message("x", "other"))
    await waiting.commit()

    assert answers == [Published(is_busy=True), Published(is_busy=True), Published(kept=True)]
    assert await publish(right, message("m1"), event("e1")) == [Published(1), Published(1)]
    assert await read_given(left) == [(1, "m1"), (2, "e1")]


async def test_two_who_wait_for_one_event_type_do_not_hold_each_other_up(left: Store, right: Store) -> None:
    rows = [await start(left, number=number) for number in (1, 2)]
    first = await left.begin()
    wait = make_wait(1, "event", "shipped")
    assert await first.write([make_turn(rows[0], subscriptions=[wait])], UnroutedWrite()) == set()

    assert await commit(right, make_turn(rows[1], subscriptions=[make_wait(1, "event", "shipped", of=2)])) == set()
    await first.commit()


async def test_two_waits_never_get_the_one_event_that_is_kept(left: Store, right: Store) -> None:
    rows = [await start(left, number=number) for number in (1, 2)]
    await publish(left, event("e1"))
    first = await left.begin()
    await first.write([make_turn(rows[0], subscriptions=[make_wait(1, "event", "shipped")])], UnroutedWrite())
    second = make_turn(rows[1], subscriptions=[make_wait(1, "event", "shipped", of=2)])

    assert await commit(right, second) == {id_of(2)}
    await first.rollback()
    assert await commit(right, second) == set()

    assert (await read_given(left, 1), await read_given(left, 2)) == ([], [(1, "e1")])


async def test_an_event_for_an_execution_that_is_closing_is_busy(left: Store, right: Store) -> None:
    row = await start(left)
    closing = await left.begin()
    assert await closing.write([make_closing(row)], UnroutedWrite()) == set()

    assert await publish(right, event("e1", target=1)) == [Published(is_busy=True)]
    started = message("m1", "order-1", starts=[make_start_row()])
    assert await publish(right, started) == [Published(is_busy=True)]
    await closing.commit()

    assert await publish(right, event("e1", target=1)) == [Published(refusal=Refusal.CLOSED_TARGET)]
    assert await publish(right, started) == [Published(started=1)]


# --- many subscribers ---------------------------------------------------------------------------------------------------


async def test_B2_what_has_many_subscribers_reaches_each_once_in_batches(store: Store) -> None:
    count = SPREAD_FROM + 5
    turns = [
        make_start(make_row(number), subscriptions=[make_wait(1, "broadcast", "alarm", of=number)])
        for number in range(1, count + 1)
    ]
    assert await commit(store, *turns) == set()

    assert await publish(store, broadcast("b1")) == [Published(count, is_spread=True)]
    await start(store, make_wait(1, "broadcast", "alarm", of=count + 1), number=count + 1)
    assert (await store.count()).inbox == 0
    assert (await store.beat(NodeRow("a", NOW, NOW), (), ())).has_publications

    crashed = await store.begin()
    assert await crashed.spread(400, NOW) == 400
    await crashed.rollback()
    put: list[int] = []
    while not put or put[-1]:
        transaction = await store.begin()
        put.append(await transaction.spread(400, NOW))
        await transaction.commit()

    assert sum(put) == count
    assert (await store.count()).inbox == count
    given = [await read_given(store, number) for number in (1, 400, 401, count, count + 1)]
    assert given == [[(1, "b1")]] * 4 + [[]]
    assert not (await store.beat(NodeRow("a", NOW, NOW), (), ())).has_publications


@pytest.mark.parametrize("is_large", [False, True])
async def test_B2_ancestors_of_who_published_have_it_at_once_however_many_others_there_are(
    store: Store, *, is_large: bool
) -> None:
    count = 8 if is_large else SPREAD_FROM + 5
    turns = [
        make_start(make_row(number), subscriptions=[make_wait(1, "broadcast", "alarm", of=number)])
        for number in range(1, count + 1)
    ]
    assert await commit(store, *turns) == set()
    value = Payload(msgspec.Raw(b'"%b"' % (b"x" * (SPREAD_BYTES // 3 if is_large else 1))))
    published = publishable(make_publication("broadcast", "alarm", "b1", value=value))
    published = replace(published, ancestors=[id_of(count), id_of(count - 1), id_of(count + 1)])

    assert await publish(store, published) == [Published(count, is_spread=True)]

    assert (await store.count()).inbox == 2
    assert await read_given(store, count) == await read_given(store, count - 1) == [(1, "b1")]
    put: list[int] = []
    while not put or put[-1]:
        transaction = await store.begin()
        put.append(await transaction.spread(SPREAD_FROM, NOW))
        await transaction.commit()
    assert sum(put) == count - 2
    assert await read_given(store, 1) == [(1, "b1")]


async def test_B2_ancestors_that_have_no_room_beside_others_get_it_with_the_next_transaction(store: Store) -> None:
    count = 4
    turns = [
        make_start(make_row(number), subscriptions=[make_wait(1, "broadcast", "alarm", of=number)])
        for number in range(1, count + 1)
    ]
    assert await commit(store, *turns) == set()
    half = Payload(msgspec.Raw(b'"%b"' % (b"x" * (SPREAD_BYTES // 2))))
    thrown = [
        replace(publishable(make_publication("broadcast", "alarm", name, value=half)), ancestors=[id_of(number)])
        for number, name in ((1, "b1"), (2, "b2"))
    ]

    assert await publish(store, *thrown) == [Published(count, is_spread=True), Published(is_busy=True)]
    assert await read_given(store, 1) == [(1, "b1")]
    assert await read_given(store, 2) == []
    assert await publish(store, thrown[1]) == [Published(count, is_spread=True)]
    assert await read_given(store, 2) == [(1, "b2")]


async def test_B2_a_large_value_reaches_few_subscribers_in_batches_too(store: Store) -> None:
    count = 8
    turns = [
        make_start(make_row(number), subscriptions=[make_wait(1, "broadcast", "alarm", of=number)])
        for number in range(1, count + 1)
    ]
    assert await commit(store, *turns) == set()
    large = make_publication("broadcast", "alarm", "b1", value=Payload(msgspec.Raw(b'"%b"' % (b"x" * (SPREAD_BYTES // 3)))))

    assert await publish(store, publishable(large)) == [Published(count, is_spread=True)]

    put: list[int] = []
    while not put or put[-1]:
        transaction = await store.begin()
        put.append(await transaction.spread(SPREAD_FROM, NOW))
        await transaction.commit()
    assert (sum(put), max(put) <= 3) == (count, True)
    assert (await store.count()).inbox == count


async def test_check_has_nothing_to_say_about_start_subscriptions(store: Store) -> None:
    await store.put_starts("a", [StartSubscriptionRow("message", "paid", "order", "default", "r")])

    assert await store.check() == []


# --- closings -----------------------------------------------------------------------------------------------------------


async def keep_message_with_start(store: Store) -> list[ExecutionRow]:
    """An open execution, at whose end a kept message starts another; and one that may begin to wait for the message."""
    rows = [await start(store), await start(store, number=2)]
    assert await publish(store, message("m1", "order-1", starts=[make_start_row()])) == [Published(kept=True)]
    return rows


async def test_M2_a_message_that_a_wait_gives_back_still_starts_its_workflow(left: Store, right: Store) -> None:
    row, other = await keep_message_with_start(left)
    wait = make_wait(1, "message", "paid", of=2, key="order-1")
    waiting = await left.begin()
    assert await waiting.write([make_turn(other, subscriptions=[wait])], UnroutedWrite()) == set()

    while_waiting = await commit(right, make_closing(row))
    await waiting.rollback()

    assert while_waiting == {id_of(1)}
    assert await commit(right, make_closing(row)) == set()
    assert [one.body for one in await left.list_inbox(ORG, "nobody", "order-1")] == [make_start_row().body]


async def test_M2_a_wait_loses_against_a_closing_that_starts_a_workflow(left: Store, right: Store) -> None:
    row, other = await keep_message_with_start(left)
    waiting = make_turn(other, subscriptions=[make_wait(1, "message", "paid", of=2, key="order-1")])
    closing = await left.begin()
    assert await closing.write([make_closing(row)], UnroutedWrite()) == set()

    assert await commit(right, waiting) == {id_of(2)}
    await closing.rollback()
    assert await commit(right, waiting) == set()

    assert (await read_given(left, 2), await left.list_inbox(ORG, "nobody", "order-1")) == ([(1, "m1")], [])


async def test_M2_a_wait_and_a_closing_of_one_batch_do_not_both_get_a_message(store: Store) -> None:
    row, other = await keep_message_with_start(store)
    waiting = make_turn(other, subscriptions=[make_wait(1, "message", "paid", of=2, key="order-1")])

    assert await commit(store, make_closing(row), waiting) == set()

    assert (await read_given(store, 2), await store.list_inbox(ORG, "nobody", "order-1")) == ([(1, "m1")], [])


async def test_M2_a_message_that_has_expired_starts_nothing(store: Store) -> None:
    row = await start(store)
    expiring = [
        publishable(make_publication("message", "paid", "m1", key="order-1", expires_at=NOW + 1), starts=[make_start_row()]),
        message("m2", "order-1", starts=[make_start_row()]),
    ]
    assert await publish(store, *expiring) == [Published(kept=True)] * 2

    closing = make_closing(row)
    closing.row = replace(closing.row, closed_at=NOW + 1)
    assert await commit(store, closing) == set()

    assert len(await store.list_inbox(ORG, "nobody", "order-1")) == 1
    assert await read_kept(store, "message", "paid") == ["m1"]


async def test_E4_dead_letters_that_follow_from_closings_name_the_node(store: Store) -> None:
    options = EventOptions(on_target_terminated=OnTargetTerminated.DEAD_LETTER)
    rows = [await start(store, number=number) for number in (1, 2)]
    await publish(store, event("e1", {}, options, target=1), event("e2", {}, options, target=2))

    assert await commit(store, make_closing(rows[0]), loose=UnroutedWrite(node="a")) == set()
    assert await commit(store, make_closing(rows[1]), loose=UnroutedWrite(node="a", discards_dead_letters=True)) == set()

    (letter,) = await store.list_dead_letters(ORG)
    assert (letter.execution_id, letter.node) == (id_of(1), "a")
    assert await read_kept(store) == []


def test_what_is_kept_and_cannot_be_read_stops_no_turn() -> None:
    row = make_row(1)
    wait = make_wait(1, "event", "shipped")
    newer = event("e1").row.body.replace(b'"id":', b'"newer":1,"id":')
    kept = PendingRow(ORG, "event", "shipped", "", newer, "e1", NOW, LATER, target=id_of(1), id=7)
    facts = SubscribingFacts(kept={(id_of(1), 1): [kept]})
    turn = make_turn(row, subscriptions=[wait])

    plan = plan_subscribing([turn], facts)
    settled = plan_settling([make_closing(row).row], [kept], UnroutedWrite(node="a"))

    assert (plan.begun, plan.inbox, plan.taken) == ([wait], [], [])
    assert list_consumed(list_waits([turn]), facts) == set()
    assert (settled.removed, len(settled.dead_letters)) == ([7], 1)


async def test_inbox_rows_of_what_has_many_subscribers_say_when_they_came(store: Store) -> None:
    await start(store, make_wait(1, "broadcast", "alarm"))
    spread = replace(broadcast("b1").row, subscribers=[(id_of(1), 1)])
    await commit(store, loose=UnroutedWrite(publications=[spread]))

    transaction = await store.begin()
    assert await transaction.spread(10, NOW + 7) == 1
    await transaction.commit()

    assert [row.at for row in await store.list_inbox(ORG, id_of(1), "")] == [NOW + 7]


async def test_S7_a_run_is_not_closed_whose_next_run_loses_against_who_publishes(left: Store, right: Store) -> None:
    row = await start(left)
    following = make_start(make_row(2, workflow_id="order-1"), subscriptions=[make_wait(1, "event", "shipped", of=2)])
    following.takes_over = row.execution_id
    publishing = await left.begin()
    await publishing.publish([event("e1")], NOW)

    assert await commit(right, make_closing(row), following) == {id_of(1), id_of(2)}
    await publishing.commit()
    assert await commit(right, make_closing(row), following) == set()

    assert await read_given(left, 2) == [(1, "e1")]


async def test_rows_of_the_outbox_that_a_node_cannot_read_hold_up_only_their_topic(store: Store) -> None:
    newer = replace(message("m1").row, body=message("m1").row.body.replace(b'"id":', b'"newer":1,"id":'))
    rows = [newer, message("m2").row, message("x", "other").row, replace(newer, body=b"damaged")]
    await commit(store, loose=UnroutedWrite(publications=rows))

    transaction = await store.begin()
    found = await transaction.read_outbox(10)
    assert [one.body for one in found] == [row.body for row in rows]
    await transaction.drop_publications([found[3].id])
    await transaction.commit()

    transaction = await store.begin()
    others = await transaction.read_outbox(10, skip=[found[0].id])
    assert [codec.decode_publication(row.body).id for row in others] == ["x"]
    await transaction.rollback()


async def test_D2_many_rows_of_one_topic_that_is_skipped_hide_no_others(store: Store) -> None:
    rows = [message(f"m{number}").row for number in range(7)]
    await commit(store, loose=UnroutedWrite(publications=[*rows, message("x", "other").row]))
    transaction = await store.begin()
    first = await transaction.read_outbox(1)
    await transaction.rollback()

    transaction = await store.begin()
    others = await transaction.read_outbox(3, skip=[first[0].id])

    assert [codec.decode_publication(row.body).id for row in others] == ["x"]
    await transaction.rollback()


async def test_E2_rows_of_the_outbox_for_one_execution_hold_up_no_others_of_their_type(store: Store) -> None:
    rows = [event("e1", target=1).row, event("e2", target=2).row, event("e3", target=1).row, event("e4").row]
    await commit(store, loose=UnroutedWrite(publications=rows))
    transaction = await store.begin()
    found = await transaction.read_outbox(10)
    await transaction.rollback()

    transaction = await store.begin()
    others = await transaction.read_outbox(10, skip=[found[0].id])

    assert [codec.decode_publication(row.body).id for row in others] == ["e2", "e4"]
    await transaction.rollback()


def test_E2_a_busy_target_puts_off_only_what_is_sent_to_it() -> None:
    parsed = matching.parse([event("e1", target=1), event("e2"), event("e3", target=1), event("e4", target=2)])
    targets = {(ORG, id_of(1)): Presence.BUSY, (ORG, id_of(2)): Presence.OPEN}

    plan = matching.plan_publishing(parsed, PublishingFacts(targets=targets), NOW)

    busy, kept = Published(is_busy=True), Published(kept=True)
    assert plan.answers == [busy, kept, busy, kept]


# --- messages that were kept while nobody had the workflow --------------------------------------------------------------


async def test_M2_a_message_that_would_start_a_workflow_is_behind_an_older_one(store: Store) -> None:
    await publish(store, message("m1"))
    [older] = await store.list_pending(ORG, "message", "paid", NOW)

    [answer] = await publish(store, message("m2", starts=[make_start_row("k")]))
    assert answer == Published(behind=[older.id])

    again = replace(message("m1", starts=[make_start_row("k")], is_returned=True), kept=older)
    answers = await publish(store, again, message("m2", starts=[make_start_row("k")]))
    assert answers == [Published(started=1), Published(kept=True)]
    assert await read_kept(store, "message", "paid") == ["m2"]


async def test_M2_a_kept_message_is_matched_again_once(left: Store, right: Store) -> None:
    await publish(left, message("m1"), message("m2", "other"))
    found = []
    for store in (left, right):
        transaction = await store.begin()
        found.append(await transaction.read_unstarted(["paid"], NOW, 10))
        await transaction.rollback()
    again = [
        [replace(message(row.item, row.key, starts=[make_start_row(row.key)], is_returned=True), kept=row)]
        for rows in found
        for row in rows
        if row.key == "k"
    ]

    assert [row.item for row in found[0]] == ["m1", "m2"]
    assert await publish(left, *again[0]) == [Published(started=1)]
    assert await publish(right, *again[1]) == [Published()]
    assert (await left.count()).inbox == 1


async def test_M2_a_kept_message_that_starts_nothing_yet_stays_as_it_is(store: Store) -> None:
    await publish(store, message("m1"))
    [row] = await store.list_pending(ORG, "message", "paid", NOW)

    assert await publish(store, replace(message("m1", is_returned=True), kept=row)) == [Published(kept=True)]

    assert await store.list_pending(ORG, "message", "paid", NOW) == [row]


async def test_M2_a_message_passes_older_ones_that_were_tried_before_it(store: Store) -> None:
    """Those that this node cannot read, for instance: they wait for one that can."""
    await publish(store, message("m1"))
    [older] = await store.list_pending(ORG, "message", "paid", NOW)

    newer = replace(message("m2", starts=[make_start_row("k")]), may_pass=[older.id])

    assert await publish(store, newer) == [Published(started=1)]
    assert await read_kept(store, "message", "paid") == ["m1"]
