"""Routes: who may take something. A claim finds what goes by its routes, and what is for anybody."""

from __future__ import annotations

import msgspec

from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_letter,
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


async def start(store: Store, *routes: str) -> None:
    """One execution for each route, from number 1 on."""
    await commit(store, *(make_start(make_row(number, route=route)) for number, route in enumerate(routes, 1)))


# --- envelopes ---


async def test_a_claim_takes_what_goes_by_its_routes_and_what_is_for_anybody(store: Store) -> None:
    await start(store, "orders", "bills", "")
    await commit_unrouted(
        store, make_signal("order", 1, route="orders"), make_signal("bill", 2, route="bills"), make_signal("any", 3)
    )

    claimed = await look(store, Claim(limit=10, routes=["orders", "unused"]))

    assert claimed.held == {id_of(1), id_of(3)}
    assert names_of(claimed.inbox) == ["order", "any"]


async def test_a_claim_without_routes_takes_everything(store: Store) -> None:
    await start(store, "orders", "bills")
    await commit_unrouted(store, make_signal("order", 1, route="orders"), make_signal("bill", 2, route="bills"))

    claimed = await look(store, Claim(limit=10, routes=None))

    assert names_of(claimed.inbox) == ["order", "bill"]


async def test_a_claim_with_no_routes_at_all_takes_only_what_is_for_anybody(store: Store) -> None:
    await start(store, "orders", "")
    await commit_unrouted(store, make_signal("order", 1, route="orders"), make_signal("any", 2))

    claimed = await look(store, Claim(limit=10, routes=()))

    assert names_of(claimed.inbox) == ["any"]


async def test_routes_are_compared_as_a_whole(store: Store) -> None:
    await start(store, "orders", "Orders")
    await commit_unrouted(store, make_signal("one", 1, route="orders"), make_signal("other", 2, route="Orders"))

    claimed = await look(store, Claim(limit=10, routes=["order", "orders/1", "ORDERS", "Orders"]))

    assert names_of(claimed.inbox) == ["other"]


async def test_an_execution_is_found_by_any_of_its_envelopes_and_taken_with_all_of_them(store: Store) -> None:
    await start(store, "orders")
    await commit_unrouted(store, make_signal("first", 1, route="orders"), make_signal("second", 1))

    claimed = await look(store, Claim(limit=10, routes=["orders"]))

    assert claimed.held == {id_of(1)}
    assert [(row.route, name) for row, name in zip(claimed.inbox, names_of(claimed.inbox), strict=True)] == [
        ("orders", "first"),
        ("", "second"),
    ]


async def test_what_others_are_to_take_is_not_in_the_way(store: Store) -> None:
    await start(store, *["bills"] * 8, "orders")
    await commit_unrouted(store, *(make_signal("bill", number, route="bills") for number in range(1, 9)))
    await commit_unrouted(store, make_signal("order", 9, route="orders"))

    claimed = await look(store, Claim(limit=1, routes=["orders"]))

    assert names_of(claimed.inbox) == ["order"]


async def test_executions_to_skip_are_skipped_on_every_route(store: Store) -> None:
    await start(store, "orders", "orders")
    await commit_unrouted(store, make_signal("one", 1, route="orders"), make_signal("two", 2, route="orders"))

    claimed = await look(store, Claim(limit=10, routes=["orders"], skip=[id_of(1)]))

    assert names_of(claimed.inbox) == ["two"]


async def test_envelopes_by_workflow_id_go_by_their_routes_too(store: Store) -> None:
    order = make_signal("order", None, workflow_id="order", route="orders")
    bill = make_signal("bill", None, workflow_id="bill", route="bills")
    await commit_unrouted(store, order, bill)

    claimed = await look(store, Claim(limit=10, routes=["bills"]))

    assert names_of(claimed.inbox) == ["bill"]
    assert claimed.open_ids == {(ORG, "bill"): None}


async def test_wanted_executions_are_claimed_whatever_their_routes(store: Store) -> None:
    await start(store, "orders")
    await commit_unrouted(store, make_signal("order", 1, route="orders"))

    claimed = await look(store, Claim(wanted=want(1).wanted, limit=10, routes=["bills"]))

    assert claimed.held == {id_of(1)}
    assert list(claimed.rows) == [id_of(1)]


async def test_workflow_ids_that_are_asked_for_are_resolved_whatever_their_routes(store: Store) -> None:
    await start(store, "orders")
    await commit_unrouted(store, make_signal("order", 1, route="orders"))

    claimed = await look(store, Claim(workflow_ids=[(ORG, "order-1")], limit=10, routes=["bills"]))

    assert claimed.open_ids == {(ORG, "order-1"): id_of(1)}
    assert claimed.held == {id_of(1)}


# --- timers ---


async def test_due_timers_are_found_by_their_routes(store: Store) -> None:
    timers = [make_timer(1, due=1, of=number, route=route) for number, route in enumerate(["orders", "bills", ""], 1)]
    await commit(
        store, *(make_start(make_row(number, route=timer.route), timers=[timer]) for number, timer in enumerate(timers, 1))
    )

    claimed = await look(store, Claim(limit=10, due_until=NOW + SECOND, routes=["bills"]))

    assert claimed.due == [timers[1], timers[2]]


async def test_an_execution_that_is_found_has_all_its_due_timers_taken(store: Store) -> None:
    timers = [make_timer(1, due=1, route="orders"), make_timer(2, due=2)]
    await commit(store, make_start(make_row(1), timers=timers))

    claimed = await look(store, Claim(limit=10, due_until=NOW + 2 * SECOND, routes=["bills"]))

    assert claimed.due == timers


async def test_the_next_due_time_is_that_of_the_routes_asked_for(store: Store) -> None:
    await commit(
        store,
        make_start(make_row(1), timers=[make_timer(1, due=1, route="orders")]),
        make_start(make_row(2), timers=[make_timer(1, due=2, of=2, route="bills")]),
        make_start(make_row(3), timers=[make_timer(1, due=3, of=3)]),
    )

    due = {
        "all": await store.find_next_due(()),
        "orders": await store.find_next_due((), ["orders"]),
        "bills": await store.find_next_due((), ["bills"]),
        "both": await store.find_next_due((), ["bills", "orders"]),
        "none": await store.find_next_due((), ()),
        "skipped": await store.find_next_due([id_of(2)], {"bills"}),
        "nothing": await store.find_next_due([id_of(3)], ["others"]),
    }

    seconds = {name: None if at is None else (at - NOW) // SECOND for name, at in due.items()}
    assert seconds == {"all": 1, "orders": 1, "bills": 2, "both": 1, "none": 3, "skipped": 3, "nothing": None}


# --- where routes come from, and how they change ---


async def test_an_execution_keeps_its_route_until_a_turn_changes_it(store: Store) -> None:
    row = make_row(1, route="orders/1")
    await commit(store, make_start(row))
    before = await read_row(store)

    turn = make_turn(row)
    turn.row = msgspec.structs.replace(turn.row, route="orders/2")
    await commit(store, turn)

    assert (before.route, (await read_row(store)).route) == ("orders/1", "orders/2")
    assert (await look(store, want(1))).rows[id_of(1)].route == "orders/2"


async def test_a_change_of_status_may_change_the_route(store: Store) -> None:
    row = make_row(1, route="orders/1")
    await commit(store, make_start(row))

    changed = msgspec.structs.replace(make_turn(row, Status.RUNNING, events=0).row, route="orders/2")
    await store.set_status(ORG, id_of(1), 1, changed)

    assert await read_row(store) == changed


async def test_what_is_delivered_goes_by_the_route_of_its_receiver(store: Store) -> None:
    await start(store, "orders", "")

    await store.deliver([make_signal("order", 1), make_signal("any", 2), make_signal("other", 1, route="mistaken")])

    assert [row.route for row in await read_inbox(store)] == ["orders", "", "orders"]


async def test_what_a_turn_sends_goes_by_the_route_that_it_gives(store: Store) -> None:
    sent = [make_signal("known", 2, route="bills"), make_signal("unknown", 2)]
    await start(store, "orders", "bills")

    await commit(store, make_turn(make_row(1, route="orders"), outgoing=sent))

    assert [row.route for row in await read_inbox(store)] == ["bills", ""]


async def test_a_requeued_letter_is_for_anybody_and_has_not_failed_yet(store: Store) -> None:
    await start(store, "orders")
    await commit_unrouted(store, dead_letters=[make_letter("dead", 1, attempts=3)])
    [letter] = await store.list_dead_letters(ORG)

    await store.requeue_dead_letters(ORG, [letter.id])

    [row] = await read_inbox(store)
    assert (row.route, row.attempts) == ("", 0)


async def test_an_envelope_can_be_sent_on_by_another_route(store: Store) -> None:
    await commit_unrouted(store, *(make_signal(name, None, workflow_id=name) for name in ("one", "two")))
    [one, _] = await read_inbox(store)

    await commit(store, loose=UnroutedWrite(rerouted=[(one.id, "orders")], failed=[one.id]))

    assert names_of((await look(store, Claim(limit=10, routes=["bills"]))).inbox) == ["two"]
    [moved, kept] = (await look(store, Claim(limit=10, routes=["orders"]))).inbox
    assert moved == msgspec.structs.replace(one, route="orders", attempts=1)
    assert kept.route == ""


async def test_its_own_transaction_sees_the_new_route_and_others_only_after_the_commit(store: Store) -> None:
    await commit_unrouted(store, make_signal("one", None, workflow_id="one"))
    transaction, claimed = await begin_with(store, Claim(limit=10))
    [row] = claimed.inbox

    await transaction.write([], UnroutedWrite(rerouted=[(row.id, "orders")]))
    again = await transaction.claim(Claim(limit=10))
    await transaction.rollback()

    assert [one.route for one in again.inbox] == ["orders"]
    assert [one.route for one in await read_inbox(store)] == [""]


async def test_sending_on_what_is_gone_changes_nothing(store: Store) -> None:
    await commit_unrouted(store, make_signal("one", None, workflow_id="one"))
    [row] = await read_inbox(store)

    await commit(store, loose=UnroutedWrite(consumed=[row.id], rerouted=[(row.id, "orders"), (row.id + 100, "orders")]))

    assert await read_inbox(store) == []


async def test_S1_row_that_is_readdressed_keeps_its_place_in_the_order_of_arrival(store: Store) -> None:
    await commit_unrouted(store, make_signal("first", None, workflow_id="w"), make_signal("second"), make_signal("third"))
    [first, *others] = await read_inbox(store)

    moved = msgspec.structs.replace(first, execution_id=others[0].execution_id, workflow_id="", route="orders")
    await commit(store, loose=UnroutedWrite(readdressed=[moved]))

    assert await read_inbox(store) == [moved, *others]
