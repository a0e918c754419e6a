"""What a newer Holdfast wrote stays where it is, and nothing that is for the same execution overtakes it."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core import codec
from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import Cancel
from holdfast.core.options import OnOpen
from holdfast.engine.requests import Accepted, AnyRequest, Handled, Opened, Request, WorkflowIdLookup
from holdfast.errors import NewerFormat
from holdfast.store.rows import InboxRow, TimerRow
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

NEWER = b'{"type":"from_the_future"}'


def put_newer(row_id: int, *, execution_id: str = "", workflow_id: str = "") -> InboxRow:
    return InboxRow(ORG, execution_id, workflow_id, NEWER, row_id)


def test_newer_row_stays_and_everything_for_its_execution_with_it() -> None:
    timer = TimerRow(ORG, "e", 7, 1, TimerKind.TIMER, 0)
    rows = [put(make_signal("before"), 1, execution_id="e"), put_newer(2, execution_id="e")]
    claims = make_claims(*rows, put(make_signal("behind"), 3, execution_id="e"), held=["e"], due=[timer])

    plan = plan_for(claims)

    assert not plan.turns
    assert plan.unrouted.consumed == []
    assert plan.unrouted.dead_letters == []
    assert list(plan.newer.executions) == ["e"]
    assert "a newer Holdfast wrote it" in plan.newer.executions["e"]
    assert not plan.newer.workflow_ids


def test_requests_for_an_execution_with_a_newer_row_become_rows_behind_it() -> None:
    claims = make_claims(put_newer(2, execution_id="e"), held=["e"], open_ids={"w": "e"})
    keyed = Request(ORG, make_signal("b"), workflow_id="w", key=KEY)
    claims.remembered[ORG, KEY.kind, KEY.key] = None
    signal, cancel = Request(ORG, make_signal("a"), execution_id="e"), Request(ORG, Cancel(), workflow_id="w")

    plan = plan_for(claims, signal, keyed, cancel)

    assert not plan.turns
    assert [codec.decode_envelope(row.body) for row in plan.unrouted.outgoing] == [
        make_signal("a"),
        make_signal("b", request=KEY),
        Cancel(),
    ]
    assert {row.execution_id for row in plan.unrouted.outgoing} == {"e"}
    assert [one.answer for one in plan.answers] == [Accepted("e", None), Accepted("e", None), Handled()]


def test_row_of_an_execution_that_the_cache_knows_is_looked_up_for_its_route() -> None:
    claims = make_claims(put_newer(2, execution_id="e"), held=["e"])
    claims.rows.clear()
    request = Request(ORG, make_signal(), execution_id="e")
    assert list(plan_for(claims, request).lookups.rows) == ["e"]

    claims.others["e"] = msgspec.structs.replace(make_row(), route="default\torder")

    (row,) = plan_for(claims, request).unrouted.outgoing
    assert row.route == "default\torder"


def test_newer_row_by_workflow_id_holds_up_who_is_open_under_it_and_the_id() -> None:
    claims = make_claims(
        put_newer(1, workflow_id="w"), put(make_signal(), 2, execution_id="e"), held=["e"], open_ids={"w": "e"}
    )

    plan = plan_for(claims)

    assert not plan.turns
    assert list(plan.newer.executions) == ["e"]
    assert list(plan.newer.workflow_ids) == [(ORG, "w")]


def test_row_by_workflow_id_behind_a_newer_one_by_execution_id_is_left_and_so_is_the_id() -> None:
    rows = [put_newer(1, execution_id="e"), put(make_signal(), 2, workflow_id="w")]

    plan = plan_for(make_claims(*rows, held=["e"], open_ids={"w": "e"}))

    assert plan.unrouted.consumed == []
    assert list(plan.newer.workflow_ids) == [(ORG, "w")]


def test_start_of_an_execution_for_which_a_newer_row_waits_is_left() -> None:
    rows = [put(make_start("e"), 1, workflow_id="w"), put_newer(2, execution_id="e", workflow_id="w")]

    plan = plan_for(make_claims(*rows, open_ids={"w": None}))

    assert not plan.turns
    assert plan.unrouted.consumed == []
    assert list(plan.newer.workflow_ids) == [(ORG, "w")]


@pytest.mark.parametrize(
    "request_",
    [
        start_request(make_start()),
        start_request(make_start(), make_signal()),
        Request(ORG, make_signal(), workflow_id="w"),
        WorkflowIdLookup(ORG, "w"),
    ],
)
def test_request_behind_a_newer_row_that_may_be_a_start_is_refused(request_: AnyRequest) -> None:
    plan = plan_for(make_claims(put_newer(1, workflow_id="w"), open_ids={"w": None}), request_)

    (refused,) = plan.answers
    assert isinstance(refused.answer, NewerFormat)
    assert "Upgrade this node" in refused.answer.message
    assert not plan.turns


def test_start_in_place_of_an_execution_with_a_newer_row_is_refused() -> None:
    claims = make_claims(put_newer(1, execution_id="e"), held=["e"], open_ids={"w": "e"})

    plan = plan_for(claims, start_request(make_start(on_open=OnOpen.TERMINATE_EXISTING)))

    assert isinstance(plan.answers[0].answer, NewerFormat)
    assert not plan.turns


def test_start_finds_the_open_execution_although_a_newer_row_waits_for_it() -> None:
    claims = make_claims(put_newer(1, execution_id="e"), held=["e"], open_ids={"w": "e"})

    plan = plan_for(claims, start_request(make_start()), start_request(make_start(), make_signal()))

    assert [one.answer for one in plan.answers] == [Opened("e", created=False)] * 2
    assert [codec.decode_envelope(row.body) for row in plan.unrouted.outgoing] == [make_signal()]


def test_newer_row_holds_up_nobody_else() -> None:
    rows = [put_newer(1, execution_id="e"), put(make_signal(), 2, execution_id="other")]

    plan = plan_for(make_claims(*rows, held=["e", "other"]), Request(ORG, RESULT, execution_id="other"))

    assert envelopes_of(plan, "other") == [make_signal(), RESULT]
