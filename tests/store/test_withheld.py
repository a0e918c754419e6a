"""Executions that take no turns, blocked or on others' routes: their inboxes are not read, but for what concerns them."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core import codec
from holdfast.core.envelopes import Terminate
from holdfast.core.lifecycle import Status
from holdfast.store.contract import LONGEST_ORDER, Claim, Claimed, Store, UnroutedWrite, Wanted, Withheld
from holdfast.store.rows import ExecutionRow, InboxRow
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
    want_whole,
)

PREFIX = b'{"type":"terminate"'


def make_order(number: int | None = 1, *, reason: str = "", org: str = ORG, **columns: str) -> InboxRow:
    execution_id = "" if number is None else id_of(number)
    return msgspec.structs.replace(
        InboxRow(org, execution_id, "", codec.encode(Terminate(reason=reason))),
        **columns,
    )


async def block(store: Store, number: int = 1, *, route: str = "") -> ExecutionRow:
    """A blocked execution, at version 2."""
    row = make_row(number, route=route)
    turn = make_turn(row, Status.BLOCKED, events=0)
    await commit(store, make_start(row))
    await commit(store, turn)
    return turn.row


def looks(*numbers: int, routes: list[str] | None = None, skip: list[str] | None = None) -> Claim:
    """A claim that looks for work, and wants these."""
    return Claim(wanted=want(*numbers).wanted, limit=10, routes=routes, skip=skip or [], order_prefix=PREFIX)


def orders_in(claimed: Claimed) -> list[int]:
    """The ids of the orders to terminate that were read."""
    return [row.id for row in claimed.inbox if isinstance(codec.decode_envelope(row.body), Terminate)]


# --- what is wanted ---


async def test_a_wanted_blocked_execution_is_held_and_its_inbox_is_not_read(store: Store) -> None:
    row = await block(store)
    await commit_unrouted(store, make_signal("one"), make_signal("two"), make_order())

    claimed = await look(store, Claim(wanted=want(1).wanted, order_prefix=PREFIX))

    assert claimed.held == {id_of(1)}
    assert claimed.rows == {id_of(1): row}
    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert claimed.inbox == []


async def test_a_wanted_execution_on_another_route_is_held_and_its_inbox_is_not_read(store: Store) -> None:
    await commit(store, make_start(make_row(1, route="orders")))
    await commit_unrouted(store, make_signal("one"), make_signal("two", route="orders"))

    claimed = await look(store, Claim(wanted=want(1).wanted, routes=["bills"], order_prefix=PREFIX))

    assert claimed.held == {id_of(1)}
    assert claimed.withheld == {id_of(1): Withheld.OFF_ROUTE}
    assert claimed.inbox == []


@pytest.mark.parametrize("routes", [None, ["orders"]])
async def test_an_execution_on_a_route_of_the_claim_is_read(store: Store, routes: list[str] | None) -> None:
    await commit(store, make_start(make_row(1, route="orders")), make_start(make_row(2)))
    await commit_unrouted(store, make_signal("one", 1, route="orders"), make_signal("two", 2))

    claimed = await look(store, Claim(wanted=want(1, 2).wanted, routes=routes))

    assert claimed.withheld == {}
    assert names_of(claimed.inbox) == ["one", "two"]


async def test_an_execution_without_its_code_is_held_and_its_inbox_is_not_read(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow="missing")), make_start(make_row(2)))
    await block(store, 3)
    await commit_unrouted(store, make_signal("one", 1), make_order(1), make_signal("two", 2), make_signal("three", 3))

    def has_code(row: ExecutionRow) -> bool:
        return row.workflow != "missing"

    wanted = await look(store, Claim(wanted=want(1, 2, 3).wanted, order_prefix=PREFIX, has_code=has_code))
    found = await look(store, msgspec.structs.replace(looks(), has_code=has_code))

    assert wanted.held == {id_of(1), id_of(2), id_of(3)}
    assert wanted.withheld == found.withheld == {id_of(1): Withheld.NO_CODE, id_of(3): Withheld.BLOCKED}
    assert names_of(wanted.inbox) == names_of(found.inbox) == ["two"]
    assert (len(orders_in(wanted)), len(orders_in(found))) == (0, 1)


async def test_the_whole_inbox_of_a_withheld_execution_is_read_if_it_is_wanted(store: Store) -> None:
    await block(store, 1)
    await commit(store, make_start(make_row(2, route="orders")))
    await commit_unrouted(store, make_signal("one", 1), make_signal("two", 2), make_signal("three", 1))

    claimed = await look(store, msgspec.structs.replace(want_whole(1, 2), routes=["bills"]))

    assert claimed.withheld == {}
    assert names_of(claimed.inbox) == ["one", "two", "three"]


async def test_the_whole_inbox_can_be_read_later_in_the_same_transaction(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("one"), make_signal("two"))
    transaction, first = await begin_with(store, want(1))

    second = await transaction.claim(want_whole(1))
    await transaction.rollback()

    assert (first.inbox, names_of(second.inbox)) == ([], ["one", "two"])
    assert second.held == {id_of(1)}


async def test_an_execution_whose_version_is_known_is_never_withheld(store: Store) -> None:
    await commit(store, make_start(make_row(1, route="orders")))
    await block(store, 2)
    await commit_unrouted(store, make_signal("one", 1), make_signal("two", 2))
    wanted = [Wanted(ORG, id_of(1), known_version=1), Wanted(ORG, id_of(2), known_version=2)]

    claimed = await look(store, Claim(wanted=wanted, routes=["bills"]))

    assert claimed.withheld == {}
    assert names_of(claimed.inbox) == ["one", "two"]


async def test_a_known_version_that_is_past_does_not_count(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("one"))

    claimed = await look(store, want(1, known_version=1))

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert claimed.inbox == []


async def test_an_execution_that_a_workflow_id_stands_for_is_withheld_too(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("by its id"), make_signal("by workflow id", None, workflow_id="order-1"))

    claimed = await look(store, Claim(workflow_ids=[(ORG, "order-1")]))

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert names_of(claimed.inbox) == ["by workflow id"], "that may be for another, next time"


async def test_a_blocked_execution_brings_what_is_under_its_workflow_id_only_if_that_is_asked_for(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("by its id"), make_signal("by workflow id", None, workflow_id="order-1"))

    by_its_id = await look(store, Claim(wanted=[Wanted(ORG, id_of(1), None, "order-1")]))
    by_workflow_id = await look(store, Claim(workflow_ids=[(ORG, "order-1")]))

    assert by_its_id.open_ids == by_workflow_id.open_ids == {(ORG, "order-1"): id_of(1)}
    assert (names_of(by_its_id.inbox), names_of(by_workflow_id.inbox)) == ([], ["by workflow id"])


async def test_what_waits_for_a_closed_execution_is_read_whatever_its_route(store: Store) -> None:
    row = make_row(1, route="orders")
    await commit(store, make_start(row))
    await commit(store, make_closing(row))
    await commit_unrouted(store, make_signal("late", 1), make_signal("for nobody", 2))

    claimed = await look(store, looks(routes=["bills"]))

    assert (claimed.held, claimed.withheld) == (set(), {})
    assert names_of(claimed.inbox) == ["late", "for nobody"]


async def test_others_are_read_beside_a_withheld_one(store: Store) -> None:
    await block(store, 1)
    await commit(store, make_start(make_row(2)))
    await commit_unrouted(store, make_signal("one", 1), make_signal("two", 2))

    claimed = await look(store, want(1, 2))

    assert claimed.held == {id_of(1), id_of(2)}
    assert names_of(claimed.inbox) == ["two"]


# --- what a look for work finds ---


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_a_look_for_work_reads_orders_to_a_blocked_execution(store: Store, is_wanted: bool) -> None:
    await block(store, 1)
    await block(store, 2)
    await commit_unrouted(store, make_signal("one"), make_order(reason="given up"), make_signal("two"), make_signal("x", 2))

    claimed = await look(store, looks(1) if is_wanted else looks())

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED, id_of(2): Withheld.BLOCKED}
    assert [row.body for row in claimed.inbox] == [codec.encode(Terminate(reason="given up"))]


async def test_a_look_for_work_reads_what_does_not_go_by_the_route_of_its_execution(store: Store) -> None:
    await commit(store, make_start(make_row(1, route="orders")))
    await commit_unrouted(
        store,
        make_signal("on no route"),
        make_signal("on its route", route="orders"),
        make_signal("on another", route="bills"),
        make_order(route="orders"),
    )

    claimed = await look(store, looks(routes=["bills"]))

    assert claimed.withheld == {id_of(1): Withheld.OFF_ROUTE}
    assert names_of(claimed.inbox) == ["on no route", "on another"]
    assert len(orders_in(claimed)) == 1


async def test_what_waits_for_a_blocked_execution_is_not_read_whatever_its_route(store: Store) -> None:
    await block(store, route="orders")
    await commit_unrouted(store, make_signal("on no route"), make_signal("on its route", route="orders"))

    claimed = await look(store, looks(routes=["orders"]))

    assert claimed.held == {id_of(1)}
    assert claimed.inbox == []


async def test_a_blocked_execution_on_another_route_is_one_on_another_route(store: Store) -> None:
    await block(store, route="orders")
    await commit_unrouted(store, make_signal("on no route"), make_signal("on its route", route="orders"))

    claimed = await look(store, looks(routes=["bills"]))

    assert claimed.withheld == {id_of(1): Withheld.OFF_ROUTE}
    assert names_of(claimed.inbox) == ["on no route"]


async def test_what_is_skipped_is_not_looked_through_though_it_is_wanted(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("one"), make_order())

    claimed = await look(store, looks(1, skip=[id_of(1)]))

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert claimed.inbox == []


async def test_without_a_prefix_there_are_no_orders(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_signal("one"), make_order())

    claimed = await look(store, Claim(limit=10))

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert claimed.inbox == []


async def test_an_order_is_known_by_its_beginning_alone(store: Store) -> None:
    await block(store)
    bodies = [b"", b"{", PREFIX[:-1], PREFIX[:-1] + b'd"}', b" " + PREFIX + b"}", PREFIX, PREFIX + b"\xff"]
    await commit_unrouted(store, *(InboxRow(ORG, id_of(1), "", body) for body in bodies))

    claimed = await look(store, looks())

    assert [row.body for row in claimed.inbox] == [PREFIX, PREFIX + b"\xff"]


async def test_an_order_that_is_too_long_is_none(store: Store) -> None:
    await block(store)
    longest, longer = (PREFIX.ljust(size, b"x") for size in (LONGEST_ORDER, LONGEST_ORDER + 1))
    await commit_unrouted(store, *(InboxRow(ORG, id_of(1), "", body) for body in (longer, longest)))

    claimed = await look(store, looks())

    assert [len(row.body) for row in claimed.inbox] == [LONGEST_ORDER]


async def test_what_is_read_is_in_the_order_of_arrival(store: Store) -> None:
    await block(store, 1)
    await commit(store, make_start(make_row(2)))
    await commit_unrouted(store, make_signal("a", 2), make_order(), make_signal("b", 2), make_order(), make_signal("c", 2))

    claimed = await look(store, looks())

    assert [row.id for row in claimed.inbox] == sorted(row.id for row in claimed.inbox)
    assert len(claimed.inbox) == 5


async def test_an_order_of_another_org_is_not_for_the_execution(store: Store) -> None:
    await block(store)
    await commit_unrouted(store, make_order(org=OTHER), make_signal("one"))

    claimed = await look(store, looks(1))

    assert claimed.inbox == []


async def test_due_timers_of_a_withheld_execution_are_read(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, timers=[make_timer(1, due=1)]))
    await commit(store, make_turn(row, Status.BLOCKED, events=0))

    claimed = await look(store, Claim(limit=10, due_until=NOW + 10**9))

    assert claimed.withheld == {id_of(1): Withheld.BLOCKED}
    assert [timer.number for timer in claimed.due] == [1]


# --- S7: nothing is closed over ---


async def test_S7_a_withheld_execution_is_not_closed_over_what_was_not_read(store: Store) -> None:
    row = await block(store)
    await commit_unrouted(store, make_signal("one"), make_order())
    transaction, claimed = await begin_with(store, looks())
    closing = make_closing(row, Status.TERMINATED, consumed=[one.id for one in claimed.inbox])

    lost = await transaction.write([closing], UnroutedWrite())
    await transaction.rollback()

    assert lost == {id_of(1)}


async def test_an_execution_that_is_unblocked_is_read_again(store: Store) -> None:
    row = await block(store)
    await commit_unrouted(store, make_signal("one"), make_signal("two"))
    await commit(store, make_turn(row, Status.SUSPENDED, events=0))

    claimed = await look(store, looks())

    assert claimed.withheld == {}
    assert names_of(claimed.inbox) == ["one", "two"]
