"""Who gets what in a batch that holds executions which take no turns here: what arrives for them waits in their inboxes."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core import codec
from holdfast.core.envelopes import Cancel, Signal, Terminate
from holdfast.core.options import OnOpen
from holdfast.engine.requests import Accepted, AnyRequest, Handled, Request
from holdfast.engine.turns.claims import Claims
from holdfast.store.contract import Claim, Claimed, Withheld
from holdfast.store.rows import InboxRow
from tests.engine.turns.test_routing import (
    KEY,
    ORG,
    RESULT,
    envelopes_of,
    make_claims,
    make_row,
    make_signal,
    make_start,
    plan_for,
    put,
    start_request,
)


def withhold(why: Withheld, *inbox: InboxRow) -> Claims:
    """A batch that holds the execution "e", and has not read its inbox but for these rows."""
    claims = Claims()
    row = msgspec.structs.replace(make_row(), route="its route")
    held = Claimed(held={"e"}, rows={"e": row}, withheld={"e": why}, open_ids={(ORG, "w"): "e"}, inbox=list(inbox))
    claims.absorb(Claim(), held)
    return claims


@pytest.mark.parametrize("why", Withheld)
def test_requests_for_a_withheld_execution_become_rows_on_its_route(why: Withheld) -> None:
    by_id = Request(ORG, make_signal("a"), execution_id="e")
    by_name = Request(ORG, make_signal("b"), workflow_id="w", key=KEY)

    claims = withhold(why)
    assert plan_for(claims, by_id, by_name).lookups.remembered
    claims.remembered[ORG, KEY.kind, KEY.key] = None
    claims.waiting["e"] = 0
    plan = plan_for(claims, by_id, by_name, Request(ORG, Cancel(), execution_id="e"))

    assert not plan.turns
    assert not plan.lookups
    sent = [(row.execution_id, row.route, codec.decode_envelope(row.body)) for row in plan.unrouted.outgoing]
    assert sent == [
        ("e", "its route", make_signal("a")),
        ("e", "its route", make_signal("b", request=KEY)),
        ("e", "its route", Cancel()),
    ]
    assert [one.answer for one in plan.answers] == [Accepted("e", None), Accepted("e", None), Handled()]
    assert plan.kept == (0 if why is Withheld.OFF_ROUTE else 3)


def test_what_waits_for_code_that_another_node_may_have_is_to_be_looked_for() -> None:
    plan = plan_for(withhold(Withheld.NO_CODE), Request(ORG, Cancel(), execution_id="e"), exclusive=False)

    assert len(plan.unrouted.outgoing) == 1
    assert plan.kept == 0


@pytest.mark.parametrize("why", Withheld)
def test_row_by_workflow_id_waits_for_the_withheld_execution_from_now_on(why: Withheld) -> None:
    plan = plan_for(withhold(why, put(make_signal(), 3, workflow_id="w")))

    assert not plan.turns
    moved = [(row.id, row.execution_id, row.workflow_id, row.route) for row in plan.unrouted.readdressed]
    assert moved == [(3, "e", "", "its route")]
    assert plan.unrouted.rerouted == []


def test_row_for_an_execution_on_another_route_goes_there() -> None:
    plan = plan_for(withhold(Withheld.OFF_ROUTE, put(make_signal(), 3, execution_id="e")))

    assert not plan.turns
    assert plan.unrouted.rerouted == [(3, "its route")]
    assert plan.parked == []


@pytest.mark.parametrize("why", Withheld)
@pytest.mark.parametrize("how", ["request", "row", "row by workflow id", "start in its place"])
def test_order_to_terminate_a_withheld_execution_asks_for_its_whole_inbox(why: Withheld, how: str) -> None:
    rows = {"row": [put(Terminate(), 3, execution_id="e")], "row by workflow id": [put(Terminate(), 3, workflow_id="w")]}
    requests: dict[str, list[AnyRequest]] = {
        "request": [Request(ORG, Terminate(), execution_id="e")],
        "start in its place": [start_request(make_start(on_open=OnOpen.TERMINATE_EXISTING))],
    }
    claims = withhold(why, *rows.get(how, ()))
    claims.examined.add("e")

    first = plan_for(claims, *requests.get(how, ()))
    whole = [put(make_signal("waits"), 1, execution_id="e"), *rows.get(how, ())]
    claims.absorb(Claim(), Claimed(held={"e"}, rows=claims.rows, inbox=whole))
    second = plan_for(claims, *requests.get(how, ()))

    assert list(first.lookups.inboxes) == ["e"]
    assert not second.lookups
    assert [type(one) for one in envelopes_of(second)] == [Signal, Terminate]
    assert second.parked == [], "its turn may be lost, and is to be taken again then"


def test_blocked_execution_that_was_looked_through_is_parked() -> None:
    claims = withhold(Withheld.BLOCKED)
    assert plan_for(claims).parked == []

    claims.examined.add("e")

    assert plan_for(claims).parked == ["e"]


def test_execution_whose_inbox_was_read_is_not_withheld_by_a_later_claim() -> None:
    claims = make_claims(put(make_signal("first"), 1, execution_id="e"), held=["e"])
    claims.absorb(Claim(), Claimed(held={"e"}, rows={"e": make_row()}, withheld={"e": Withheld.OFF_ROUTE}))

    plan = plan_for(claims, Request(ORG, RESULT, execution_id="e"))

    assert envelopes_of(plan) == [make_signal("first"), RESULT]
