"""Waiting and publishing, in either order: never lost, never twice."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.core.publications import DeliveryMode, EventOptions, OnTargetTerminated
from holdfast.store.contract import Store
from holdfast.store.publications import Published, Refusal
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
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
    make_wait,
    message,
    publish,
    read_given,
    read_kept,
    read_waits,
    start,
)

ALL_WAITERS = EventOptions(consume_on_read=False)


# --- messages -----------------------------------------------------------------------------------------------------------


async def test_M2_a_message_goes_to_whoever_waits_and_takes_the_wait_along(store: Store) -> None:
    await start(store, make_wait(1, "message", "paid", key="k"))

    assert await publish(store, message("m1"), message("m2")) == [Published(1), Published(kept=True)]

    assert await read_given(store) == [(1, "m1")]
    assert await read_waits(store) == []
    assert await read_kept(store, "message", "paid") == ["m2"]


async def test_M2_who_begins_to_wait_gets_what_is_kept_the_oldest_first(store: Store) -> None:
    await publish(store, message("m1"), message("m2"), message("x", "other"))

    row = await start(store, make_wait(1, "message", "paid", key="k"))
    await commit(store, make_turn(row, subscriptions=[make_wait(2, "message", "paid", key="k")]))

    assert await read_given(store) == [(1, "m1"), (2, "m2")]
    assert await read_kept(store, "message", "paid") == ["x"]
    assert await read_waits(store) == []


async def test_M2_a_message_without_a_time_to_live_for_which_nobody_waits_is_refused(store: Store) -> None:
    assert await publish(store, message("m1", ttl=False)) == [Published(refusal=Refusal.NOBODY)]
    assert await read_kept(store, "message", "paid") == []


async def test_M3_a_message_that_is_kept_already_is_refused(store: Store) -> None:
    answers = await publish(store, message("m1"), message("m1"), message("m1", "other"))
    again = await publish(store, message("m1"))

    assert [answer.refusal for answer in answers] == [None, Refusal.DUPLICATE, None]
    assert again == [Published(refusal=Refusal.DUPLICATE)]


async def test_M1_a_second_execution_that_waits_for_the_same_message_is_refused(store: Store) -> None:
    await start(store, make_wait(1, "message", "paid", key="k"))
    await start(store, make_wait(4, "message", "paid", of=2, key="k"), number=2)

    (refused,) = await store.list_inbox(ORG, id_of(2), "")

    assert msgspec.json.decode(refused.body) == {"type": "subscription_refused", "number": 4, "holder": id_of(1)}
    assert await read_waits(store, 2) == []
    await publish(store, message("m1"))
    assert await read_given(store) == [(1, "m1")]


async def test_M1_of_two_executions_in_one_batch_the_second_is_refused(store: Store) -> None:
    waits = {number: make_wait(1, "message", "paid", of=number, key="k") for number in (1, 2)}
    turns = [make_start(make_row(number), subscriptions=[wait]) for number, wait in waits.items()]
    assert await commit(store, *turns) == set()

    assert (await read_waits(store, 1), await read_waits(store, 2)) == ([1], [])


async def test_M1_of_many_that_begin_to_wait_in_one_batch_only_those_are_refused_whose_message_another_has(
    store: Store,
) -> None:
    keys = ["k", "7", "1.0", "x" * 900, '"', "ä"]
    await start(store, make_wait(1, "message", "paid", key="7"))
    await start(store, make_wait(1, "message", "sent", of=2, key="k"), number=2)

    waits = {number: make_wait(1, "message", "paid", of=number, key=key) for number, key in enumerate(keys, 3)}
    await commit(store, *[make_start(make_row(number), subscriptions=[one]) for number, one in waits.items()])

    refused = [number for number in waits if await store.list_inbox(ORG, id_of(number), "")]
    assert refused == [4]
    begun = [one for number in waits for one in await store.list_subscriptions(ORG, id_of(number))]
    assert [one.key for one in begun] == [key for key in keys if key != "7"]


async def test_M1_who_gets_a_kept_message_keeps_it_from_nobody_in_the_same_batch(store: Store) -> None:
    await publish(store, message("m1"), message("m2"))
    waits = {number: make_wait(1, "message", "paid", of=number, key="k") for number in (1, 2)}
    turns = [make_start(make_row(number), subscriptions=[wait]) for number, wait in waits.items()]

    assert await commit(store, *turns) == set()

    assert [await read_given(store, number) for number in (1, 2)] == [[(1, "m1")], [(1, "m2")]]


@pytest.mark.parametrize("closes", [True, False])
async def test_M1_a_message_is_free_when_its_execution_ceases_to_wait_in_the_same_batch(store: Store, closes: bool) -> None:
    wait = make_wait(1, "message", "paid", key="k")
    row = await start(store, wait)
    ending = make_closing(row) if closes else make_turn(row, ended_subscriptions=[wait])
    following = make_start(make_row(2), subscriptions=[make_wait(1, "message", "paid", of=2, key="k")])

    assert await commit(store, ending, following) == set()

    assert (await read_waits(store, 1), await read_waits(store, 2)) == ([], [1])


async def test_M1_several_waits_of_one_execution_are_served_oldest_first(store: Store) -> None:
    row = await start(store, make_wait(7, "message", "paid", key="k"))
    await commit(store, make_turn(row, subscriptions=[make_wait(3, "message", "paid", key="k")]))

    await publish(store, message("m1"), message("m2"), message("m3"))

    assert await read_given(store) == [(7, "m1"), (3, "m2")]


async def test_a_standing_subscription_stays_and_gets_everything(store: Store) -> None:
    await publish(store, message("m1"), message("m2"))
    await start(store, make_wait(1, "message", "paid", key="k", standing=True))
    await publish(store, message("m3"), message("m4"))

    assert await read_given(store) == [(1, "m1"), (1, "m2"), (1, "m3"), (1, "m4")]
    assert await read_waits(store) == [1]


async def test_a_message_that_comes_back_is_the_next_one_again(store: Store) -> None:
    late = replace(message("m1").row, is_returned=True)
    await publish(store, message("m2"))

    assert await publish(store, replace(message("m1"), row=late, most_kept=1)) == [Published(kept=True)]
    await start(store, make_wait(1, "message", "paid", key="k"))

    assert await read_given(store) == [(1, "m1")]


async def test_long_keys_are_told_apart_by_all_of_their_characters(store: Store) -> None:
    first, second = "ü" * 5000 + "1", "ü" * 5000 + "2"
    await start(store, make_wait(1, "message", "paid", key=first))

    await publish(store, message("m2", second), message("m1", first))

    assert await read_given(store) == [(1, "m1")]
    await start(store, make_wait(1, "message", "paid", of=2, key=second), number=2)
    assert await read_given(store, 2) == [(1, "m2")]
    (row,) = await store.list_subscriptions(ORG, id_of(1)) or [make_wait(1, "message", "paid", key=first)]
    assert row.key == first


# --- events -------------------------------------------------------------------------------------------------------------


async def test_E1_one_consumer_gets_an_event_the_oldest_that_it_fits(store: Store) -> None:
    await start(store, make_wait(1, "event", "shipped", where={"order": "8"}))
    await start(store, make_wait(1, "event", "shipped", of=2, where={"order": "7", "by": '"ann"'}), number=2)
    await start(store, make_wait(1, "event", "shipped", of=3), number=3)

    fields = {"order": "7", "by": '"ann"', "more": "true"}
    assert await publish(store, event("e1", fields), event("e2", fields), event("e3", fields)) == [
        Published(1),
        Published(1),
        Published(kept=True),
    ]

    given = [await read_given(store, number) for number in (1, 2, 3)]
    assert given == [[], [(1, "e1")], [(1, "e2")]]


async def test_E1_every_waiter_gets_an_event_that_is_not_consumed_also_later_ones_once(store: Store) -> None:
    await start(store, make_wait(1, "event", "shipped"))
    assert await publish(store, event("e1", {"a": "1"}, ALL_WAITERS)) == [Published(1, kept=True)]

    await start(store, make_wait(1, "event", "shipped", of=2, where={"a": "1"}), number=2)
    await start(store, make_wait(1, "event", "shipped", of=3, seen=["e1"]), number=3)

    given = [await read_given(store, number) for number in (1, 2, 3)]
    assert given == [[(1, "e1")], [(1, "e1")], []]
    assert await read_kept(store) == ["e1"]
    assert await read_waits(store) == [1]


async def test_E2_an_event_that_is_kept_is_found_by_each_of_its_fields(store: Store) -> None:
    await publish(store, event("e1", {"order": "7", "by": '"ann"'}), event("e2", {"order": "7", "by": '"bob"'}))

    await start(store, make_wait(1, "event", "shipped", where={"order": "7", "by": '"bob"'}))
    await start(store, make_wait(1, "event", "shipped", of=2, where={"order": "7", "to": "null"}), number=2)

    assert (await read_given(store, 1), await read_given(store, 2)) == ([(1, "e2")], [])
    assert await read_kept(store) == ["e1"]


async def test_E2_what_is_kept_for_one_execution_comes_before_what_is_for_everybody(store: Store) -> None:
    row = await start(store)
    assert await publish(store, event("all"), event("own", target=1)) == [Published(kept=True)] * 2

    await start(store, make_wait(1, "event", "shipped", of=2), make_wait(2, "event", "shipped", of=2), number=2)
    await publish(store, event("all 2"))
    await commit(store, make_turn(row, subscriptions=[make_wait(1, "event", "shipped")]))

    assert await read_given(store, 2) == [(1, "all"), (2, "all 2")]
    assert await read_given(store, 1) == [(1, "own")]


async def test_E1_an_event_for_one_execution_reaches_no_other(store: Store) -> None:
    await start(store, make_wait(1, "event", "shipped", where={"a": "1"}), make_wait(2, "event", "shipped"))
    await start(store, make_wait(1, "event", "shipped", of=2), number=2)

    assert await publish(store, event("e1", {"a": "2"}, target=1)) == [Published(1)]

    assert (await read_given(store, 1), await read_given(store, 2)) == ([(2, "e1")], [])


async def test_E1_an_event_for_an_execution_that_is_not_there_or_closed_is_refused(store: Store) -> None:
    row = await start(store)
    await commit(store, make_closing(row))

    answers = await publish(store, event("e1", target=1), event("e2", target=9), event("e3", target=1, org=OTHER))

    assert [answer.refusal for answer in answers] == [Refusal.CLOSED_TARGET, Refusal.NO_TARGET, Refusal.NO_TARGET]


@pytest.mark.parametrize(
    ("mode", "since_created", "kept_for_it"),
    [
        (DeliveryMode.ALL, -1, True),
        (DeliveryMode.AFTER_CREATE, 0, True),
        (DeliveryMode.AFTER_CREATE, -1, False),
        (DeliveryMode.AFTER_WAIT, 1, False),
    ],
)
async def test_E1_the_delivery_mode_says_which_kept_events_a_wait_gets(
    store: Store, mode: DeliveryMode, since_created: int, kept_for_it: bool
) -> None:
    await publish(store, event("e1", options=EventOptions(delivery_mode=mode), sent_at=NOW + since_created))

    await start(store, make_wait(1, "event", "shipped"))

    assert await read_given(store) == ([(1, "e1")] if kept_for_it else [])
    assert await read_kept(store) == ([] if kept_for_it or mode is DeliveryMode.AFTER_WAIT else ["e1"])


@pytest.mark.parametrize(("mode", "is_given"), [(DeliveryMode.AFTER_WAIT, False), (DeliveryMode.ALL, True)])
async def test_E1_an_event_that_comes_back_is_as_old_as_it_was(store: Store, mode: DeliveryMode, is_given: bool) -> None:
    await start(store, make_wait(1, "event", "shipped"))
    late = event("e1", options=EventOptions(delivery_mode=mode), sent_at=NOW - 1, is_returned=True)

    await publish(store, late)

    assert await read_given(store) == ([(1, "e1")] if is_given else [])


async def test_E4_no_more_are_kept_than_may_be(store: Store) -> None:
    answers = await publish(store, *(event(f"e{number}", most_kept=2) for number in range(3)))
    other = await publish(store, event("x", org=OTHER, most_kept=2), event("e3", options=ALL_WAITERS, most_kept=2))

    assert [answer.refusal for answer in answers] == [None, None, Refusal.FULL]
    assert [answer.refusal for answer in other] == [None, Refusal.FULL]
    assert await read_kept(store) == ["e0", "e1"]


async def test_E1_what_has_expired_is_neither_given_nor_counted_nor_shown(store: Store) -> None:
    await publish(store, event("e1"), message("m1"))

    wait = replace(make_wait(1, "event", "shipped"), since=LATER)
    await start(store, wait, replace(make_wait(2, "message", "paid", key="k"), since=LATER))

    assert await read_given(store) == []
    assert await store.list_pending(ORG, "event", "shipped", LATER) == []
    assert await publish(store, message("m1", "k2"), now=LATER) == [Published(refusal=Refusal.NOBODY)]
    assert (await store.purge_pending(LATER, 10), await store.purge_pending(LATER + 1, 1)) == (0, 1)
    assert (await store.purge_pending(LATER + 1, 9), await store.purge_pending(LATER + 1, 9)) == (1, 0)


async def test_E3_what_others_wait_for_stays_kept(store: Store) -> None:
    await publish(store, event("e1"), message("m1"))

    await start(store, make_wait(1, "event", "lost"))

    assert (await read_kept(store), await read_kept(store, "message", "paid")) == (["e1"], ["m1"])


async def test_kept_events_are_shown_page_by_page_and_removed_one_by_one(store: Store) -> None:
    await publish(store, *(event(f"e{number}") for number in range(4)))
    rows = await store.list_pending(ORG, "event", "shipped", NOW, limit=2)
    more = await store.list_pending(ORG, "event", "shipped", NOW, limit=9, after=rows[-1].id)

    assert [row.item for row in (*rows, *more)] == ["e0", "e1", "e2", "e3"]
    assert await store.remove_pending(ORG, "event", "shipped", "e1")
    assert not await store.remove_pending(ORG, "event", "shipped", "e1")
    assert not await store.remove_pending(OTHER, "event", "shipped", "e2")
    assert await read_kept(store) == ["e0", "e2", "e3"]


# --- broadcasts ---------------------------------------------------------------------------------------------------------


async def test_B1_every_subscriber_of_the_name_gets_it_but_who_threw_it(store: Store) -> None:
    for number in (1, 2, 3):
        await start(store, make_wait(1, "broadcast", "alarm", of=number), number=number)
    await start(store, make_wait(1, "broadcast", "other", of=4), number=4)

    assert await publish(store, broadcast("b1", origin=id_of(2))) == [Published(2)]

    assert [await read_given(store, number) for number in (1, 2, 3, 4)] == [[(1, "b1")], [], [(1, "b1")], []]


async def test_B3_nobody_subscribed_is_0_and_nothing_is_kept(store: Store) -> None:
    assert await publish(store, broadcast("b1")) == [Published()]
    assert await read_kept(store, "broadcast", "alarm") == []

    await start(store, make_wait(1, "broadcast", "alarm"))
    assert await read_given(store) == []


async def test_B4_the_same_subscription_made_twice_counts_once(store: Store) -> None:
    wait = make_wait(1, "broadcast", "alarm")
    await start(store, wait, wait)

    assert await publish(store, broadcast("b1")) == [Published(1)]


# --- ends ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.TERMINATED])
async def test_closing_ends_all_subscriptions_in_the_same_commit(store: Store, status: Status) -> None:
    waits = [make_wait(1, "message", "paid", key="k"), make_wait(2, "event", "shipped"), make_wait(3, "broadcast", "alarm")]
    row = await start(store, *waits)
    others = await start(store, make_wait(1, "event", "shipped", of=2), number=2)
    closing = make_closing(row, status)
    closing.ended_subscriptions = waits[:2]
    turn = make_turn(others, ended_subscriptions=[make_wait(1, "event", "shipped", of=2)])

    assert await commit(store, closing, turn) == set()

    assert (await read_waits(store), await read_waits(store, 2)) == ([], [])
    assert await publish(store, broadcast("b"), event("e"), message("m")) == [
        Published(),
        Published(kept=True),
        Published(kept=True),
    ]
    assert await store.check() == []


async def test_a_turn_that_is_lost_begins_and_ends_nothing(store: Store) -> None:
    wait = make_wait(1, "event", "shipped")
    row = await start(store, wait)
    await publish(store, message("m1"))
    turn = make_turn(row, subscriptions=[make_wait(2, "message", "paid", key="k")], ended_subscriptions=[wait])
    turn.expected_version = 9

    assert await commit(store, turn) == {id_of(1)}

    assert await read_waits(store) == [1]
    assert await read_kept(store, "message", "paid") == ["m1"]
    assert await read_given(store) == []


async def test_E1_events_for_an_execution_that_ends_are_removed_or_become_dead_letters(store: Store) -> None:
    row = await start(store)
    options = EventOptions(on_target_terminated=OnTargetTerminated.DEAD_LETTER)
    await publish(store, event("e1", target=1), event("e2", options=options, target=1), event("e3"))

    assert await commit(store, make_closing(row)) == set()

    assert await read_kept(store) == ["e3"]
    (letter,) = await store.list_dead_letters(ORG)
    assert (letter.execution_id, msgspec.json.decode(letter.body)["publication"]["id"]) == (id_of(1), "e2")
    assert "but it is completed" in letter.reason


async def test_E1_events_for_an_execution_go_on_to_its_next_run(store: Store) -> None:
    row = await start(store)
    await publish(store, event("e1", target=1), event("e2", target=1))
    following = make_start(
        make_row(2, workflow_id=row.workflow_id),
        takes_over=id_of(1),
        subscriptions=[make_wait(1, "event", "shipped", of=2)],
    )

    assert await commit(store, make_closing(row, Status.CONTINUED), following) == set()

    assert await read_given(store, 2) == [(1, "e1")]
    (kept,) = await store.list_pending(ORG, "event", "shipped", NOW)
    assert (kept.item, kept.target) == ("e2", id_of(2))


async def test_purging_an_execution_removes_its_subscriptions(store: Store) -> None:
    row = await start(store, make_wait(1, "broadcast", "alarm"))
    closed = make_closing(row).row
    await store.set_status(ORG, id_of(1), row.state_version, closed)  # which leaves them behind, as older versions do

    assert await publish(store, broadcast("b1")) == [Published()]
    assert await store.purge((closed.closed_at or 0) + SECOND, 10) == 1
    assert await read_waits(store) == []


async def test_I5_organisations_never_meet(store: Store) -> None:
    await start(store, make_wait(1, "message", "paid", key="k"), make_wait(2, "event", "shipped"))
    other = [
        make_wait(1, "message", "paid", of=2, key="k", org=OTHER),
        make_wait(2, "event", "shipped", of=2, org=OTHER),
        make_wait(3, "broadcast", "alarm", of=2, org=OTHER),
    ]
    await start(store, *other, number=2, org=OTHER)

    await publish(store, message("m"), event("e"), broadcast("b"))
    assert await publish(store, message("m", org=OTHER)) == [Published(1)]

    assert sorted(await read_given(store, 1)) == [(1, "m"), (2, "e")]
    assert await read_given(store, 2, org=OTHER) == [(1, "m")]


async def test_subscriptions_are_shown_as_they_were_made(store: Store) -> None:
    waits = [
        make_wait(1, "event", "shipped", where={"b": "1", "a": '"ü"'}, standing=True),
        make_wait(2, "message", "paid", key="k\x01"),
    ]
    await start(store, *waits)

    assert await store.list_subscriptions(ORG, id_of(1)) == waits
    assert await store.list_subscriptions(OTHER, id_of(1)) == []


async def test_E1_a_next_run_gets_what_was_sent_to_the_run_before_whatever_the_mode(store: Store) -> None:
    before = await start(store)
    options = EventOptions(delivery_mode=DeliveryMode.AFTER_CREATE)
    await publish(store, event("e1", {"a": "1"}, options, target=1), event("e2", {"a": "2"}, options, target=1))
    after = make_row(2, workflow_id=before.workflow_id)
    created = NOW + SECOND
    waits = [
        replace(make_wait(1, "event", "shipped", of=2), created_at=created),
        replace(make_wait(2, "event", "shipped", of=2, where={"a": "2"}), created_at=created),
    ]

    continued = make_start(after, subscriptions=waits, takes_over=before.execution_id)
    assert await commit(store, make_closing(before), continued) == set()

    assert await read_given(store, 2) == [(1, "e1"), (2, "e2")]


async def test_E1_what_comes_back_for_the_run_before_reaches_a_wait_of_the_next(store: Store) -> None:
    wait = replace(make_wait(1, "event", "shipped"), created_at=NOW + SECOND)
    await start(store, wait)
    options = EventOptions(delivery_mode=DeliveryMode.AFTER_CREATE)

    assert await publish(store, event("e1", None, options, target=1, is_returned=True)) == [Published(1)]
