"""Who gets what in a batch, without a store: every branch of the plan, and what must hold for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import codec
from holdfast.core.closing import find_next_run
from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import (
    ActivityReturned,
    AnyEnvelope,
    Cancel,
    InternalContinue,
    Sender,
    Signal,
    SignalAnswered,
    Start,
    Terminate,
    TimerDue,
)
from holdfast.core.execution import Details
from holdfast.core.options import OnClosed, OnOpen
from holdfast.core.parents import Parent
from holdfast.core.payloads import NULL
from holdfast.core.request_keys import RequestKey
from holdfast.engine.requests import Accepted, AnyRequest, Handled, Opened, Request, WorkflowIdLookup
from holdfast.engine.turns.claims import Claims
from holdfast.engine.turns.plan import Plan
from holdfast.engine.turns.routing import route
from holdfast.engine.turns.unrouted import DeadLetterRules
from holdfast.errors import ExecutionClosed, ExecutionNotFound, WorkflowAlreadyClosed, WorkflowAlreadyOpen
from holdfast.store.contract import Claim, Claimed
from holdfast.store.rows import ExecutionRow, InboxRow, RequestRow, TimerRow

ORG = "default"
NOW = 1_000
KEY = RequestKey("start", "key", 9_000)
RESULT = ActivityReturned(number=1, attempt=1, result=NULL)


def make_signal(name: str = "go", **more: object) -> Signal:
    return msgspec.structs.replace(Signal(name=name, value=NULL), **more)


def make_start(execution_id: str = "new", workflow_id: str = "w", **more: object) -> Start:
    start = Start(execution_id=execution_id, workflow_id=workflow_id, workflow="order", input=NULL)
    return msgspec.structs.replace(start, **more)


def make_row(
    execution_id: str = "e", *, status: str = "suspended", closed_at: int | None = None, sequence: int = 3
) -> ExecutionRow:
    return ExecutionRow(
        org=ORG,
        execution_id=execution_id,
        workflow_id="w",
        workflow="order",
        code_version="",
        queue="default",
        status=status,
        state_version=1,
        sequence=sequence,
        nodes=(),
        parent_id=None,
        created_at=0,
        updated_at=0,
        closed_at=closed_at,
        details=codec.encode(Details()),
    )


CLOSED = make_row(status="completed", closed_at=5)


def put(envelope: AnyEnvelope, row_id: int, *, execution_id: str = "", workflow_id: str = "", attempts: int = 0) -> InboxRow:
    return InboxRow(ORG, execution_id, workflow_id, codec.encode(envelope), row_id, attempts)


def make_claims(
    *inbox: InboxRow,
    held: Sequence[str] = (),
    open_ids: dict[str, str | None] | None = None,
    asked: Sequence[str] = (),
    due: Sequence[TimerRow] = (),
) -> Claims:
    """What a batch holds: executions, workflow ids with who is open under each, and what waits for them."""
    claims = Claims()
    found = {(ORG, name): execution_id for name, execution_id in (open_ids or {}).items()}
    claims.absorb(
        Claim(workflow_ids=[*found, *((ORG, name) for name in asked)]),
        Claimed(
            held=set(held),
            rows={name: make_row(name) for name in held},
            open_ids=found,
            inbox=list(inbox),
            due=list(due),
        ),
    )
    return claims


def plan_for(claims: Claims, *requests: AnyRequest, exclusive: bool = True) -> Plan:
    return route(claims, requests, DeadLetterRules("node", NOW, 5), exclusive=exclusive)


def envelopes_of(plan: Plan, execution_id: str = "e") -> list[AnyEnvelope]:
    return [arrival.envelope for arrival in plan.turns[execution_id].arrivals]


def start_request(start: Start, signal: Signal | None = None, key: RequestKey | None = None) -> Request:
    return Request(ORG, start, workflow_id=start.workflow_id, signal=signal, key=key)


# --- the execution is held ---


def test_inbox_comes_before_timers_and_both_before_requests() -> None:
    timer = TimerRow(ORG, "e", 7, 1, TimerKind.TIMER, 0)
    claims = make_claims(put(make_signal("second"), 9, execution_id="e"), held=["e"], due=[timer])
    claims.absorb(Claim(), Claimed(inbox=[put(make_signal("first"), 4, execution_id="e")]))

    plan = plan_for(claims, Request(ORG, RESULT, execution_id="e"))

    assert envelopes_of(plan) == [make_signal("first"), make_signal("second"), TimerDue(number=7, due=1), RESULT]
    assert not plan.lookups


def test_row_that_is_claimed_twice_is_routed_once() -> None:
    row = put(make_signal(), 4, execution_id="e")
    claims = make_claims(row, held=["e"])
    claims.absorb(Claim(), Claimed(inbox=[row]))

    assert len(envelopes_of(plan_for(claims))) == 1


def test_envelope_by_workflow_id_reaches_who_is_open_under_it() -> None:
    claims = make_claims(put(make_signal("row"), 1, workflow_id="w"), held=["e"], open_ids={"w": "e"})

    plan = plan_for(claims, Request(ORG, Cancel(), workflow_id="w"))

    assert envelopes_of(plan) == [make_signal("row"), Cancel()]


def test_row_that_cannot_be_read_is_a_dead_letter() -> None:
    plan = plan_for(make_claims(InboxRow(ORG, "e", "", b"no json", 3), held=["e"]))

    assert plan.unrouted.consumed == [3]
    assert [letter.body for letter in plan.unrouted.dead_letters] == [b"no json"]
    assert not plan.turns


def test_row_that_failed_too_often_is_a_dead_letter() -> None:
    plan = plan_for(make_claims(put(make_signal(), 3, execution_id="e", attempts=5), held=["e"]))

    assert plan.unrouted.consumed == [3]
    assert "failed 5 times" in plan.unrouted.dead_letters[0].reason


# --- another node holds it ---


def test_row_whose_receiver_is_held_elsewhere_stays() -> None:
    plan = plan_for(make_claims(put(make_signal(), 1, workflow_id="w"), open_ids={"w": "other"}))

    assert not plan.turns
    assert plan.unrouted.consumed == []


def test_row_under_an_id_that_another_node_holds_stays() -> None:
    plan = plan_for(make_claims(put(make_signal(), 1, workflow_id="w"), asked=["w"]))

    assert not plan.turns
    assert not plan.lookups
    assert plan.unrouted.consumed == []


def test_request_for_a_busy_execution_is_forwarded() -> None:
    claims = make_claims()
    claims.busy.add("e")
    request = Request(ORG, make_signal(), execution_id="e")

    assert [(one.request, one.execution_id) for one in plan_for(claims, request).forwards] == [(request, "e")]


def test_request_for_an_id_that_another_node_holds_goes_to_who_is_open_or_waits() -> None:
    claims = make_claims(asked=["w"])
    request = Request(ORG, make_signal(), workflow_id="w")
    assert list(plan_for(claims, request).lookups.latest) == [(ORG, "w")]

    claims.latest[ORG, "w"] = make_row("other")
    assert plan_for(claims, request).forwards[0].execution_id == "other"
    claims.latest[ORG, "w"] = CLOSED
    assert plan_for(claims, request).retries == [request]


# --- nobody takes it ---


def test_request_for_a_closed_execution_is_refused() -> None:
    claims = make_claims()
    claims.others["e"] = CLOSED
    requests = [Request(ORG, one, execution_id="e") for one in (make_signal(), Cancel(), Terminate())]

    answers = [one.answer for one in plan_for(claims, *requests).answers]

    assert isinstance(answers[0], ExecutionClosed)
    assert answers[1:] == [Handled(is_done=False)] * 2


def test_request_for_an_unknown_execution_is_refused_after_one_look() -> None:
    claims = make_claims()
    request = Request(ORG, make_signal(), execution_id="e")
    assert list(plan_for(claims, request).lookups.rows) == ["e"]
    claims.others["e"] = None

    (answer,) = plan_for(claims, request).answers

    assert isinstance(answer.answer, ExecutionNotFound)


def test_row_of_another_org_never_meets_an_execution() -> None:
    claims = make_claims(open_ids={"w": None})
    claims.latest[ORG, "w"] = msgspec.structs.replace(CLOSED, org="other")

    (answer,) = plan_for(claims, Request(ORG, make_signal(), workflow_id="w")).answers

    assert isinstance(answer.answer, ExecutionNotFound)


def test_signal_of_a_workflow_to_a_closed_execution_is_answered() -> None:
    sender = Sender("sender", 4)
    claims = make_claims(put(make_signal(sender=sender), 3, execution_id="e"))
    claims.others["e"] = CLOSED

    plan = plan_for(claims)

    (sent,) = plan.unrouted.outgoing
    answer = codec.decode_envelope(sent.body)
    assert (sent.execution_id, plan.unrouted.consumed) == ("sender", [3])
    assert isinstance(answer, SignalAnswered)
    assert answer.failure is not None


def test_signal_of_nobody_to_a_closed_execution_is_a_dead_letter() -> None:
    claims = make_claims(put(make_signal(), 3, execution_id="e"))
    claims.others["e"] = CLOSED

    plan = plan_for(claims)

    assert plan.unrouted.consumed == [3]
    assert "completed" in plan.unrouted.dead_letters[0].reason


def test_signal_to_a_run_that_continued_goes_to_the_next_run_in_its_place() -> None:
    claims = make_claims(put(make_signal(), 3, execution_id="01a1e604-48a8-732b-b6c8-a20f37ad8de0"))
    claims.others["01a1e604-48a8-732b-b6c8-a20f37ad8de0"] = make_row(
        "01a1e604-48a8-732b-b6c8-a20f37ad8de0", status="continued", closed_at=5
    )

    plan = plan_for(claims)

    [moved] = plan.unrouted.readdressed
    assert (moved.id, moved.execution_id) == (3, find_next_run("01a1e604-48a8-732b-b6c8-a20f37ad8de0", 5))
    assert (plan.unrouted.consumed, plan.unrouted.outgoing) == ([], [])


def test_late_result_for_a_closed_execution_is_dropped() -> None:
    claims = make_claims(put(RESULT, 3, execution_id="e"))
    claims.others["e"] = CLOSED

    plan = plan_for(claims)

    assert (plan.unrouted.consumed, plan.unrouted.dead_letters, plan.unrouted.outgoing) == ([3], [], [])


def test_row_for_an_execution_whose_start_may_still_come_looks_for_it() -> None:
    claims = make_claims(put(Cancel(), 3, execution_id="child", workflow_id="c"))
    claims.others["child"] = None

    assert list(plan_for(claims).lookups.workflow_ids) == [(ORG, "c")]

    claims.absorb(
        Claim(workflow_ids=[(ORG, "c")]),
        Claimed(open_ids={(ORG, "c"): None}, inbox=[put(make_start("child", "c"), 2, workflow_id="c")]),
    )
    assert envelopes_of(plan_for(claims), "child") == [make_start("child", "c"), Cancel()]


# --- starts ---


def test_start_of_a_free_id_makes_an_execution() -> None:
    request = start_request(make_start(), make_signal())

    turn = plan_for(make_claims(open_ids={"w": None}), request).turns["new"]

    assert turn.start == make_start()
    assert [(one.envelope, one.request) for one in turn.arrivals] == [(make_start(), request), (make_signal(), request)]


def test_start_needs_its_id_held() -> None:
    assert list(plan_for(make_claims(), start_request(make_start())).lookups.workflow_ids) == [(ORG, "w")]


def test_start_under_its_own_id_needs_nothing() -> None:
    plan = plan_for(make_claims(), start_request(make_start("new", "new")))

    assert not plan.lookups
    assert plan.turns["new"].start is not None


def test_second_start_of_a_batch_finds_the_first_and_waits_for_its_commit() -> None:
    first, second = start_request(make_start("one")), start_request(make_start("two"))

    plan = plan_for(make_claims(open_ids={"w": None}), first, second)

    assert list(plan.turns) == ["one"]
    assert plan.retries == [second]


def test_signals_of_starts_in_one_batch_go_to_the_one_that_is_made() -> None:
    requests = [start_request(make_start(f"e{number}"), make_signal(f"s{number}")) for number in range(3)]

    plan = plan_for(make_claims(open_ids={"w": None}), *requests)

    assert list(plan.turns) == ["e0"]
    assert [getattr(one, "name", None) for one in envelopes_of(plan, "e0")] == [None, "s0", "s1", "s2"]


@pytest.mark.parametrize("has_signal", [False, True])
def test_start_of_an_open_id_uses_what_is_open(has_signal: bool) -> None:
    request = start_request(make_start(), make_signal() if has_signal else None)

    plan = plan_for(make_claims(held=["e"], open_ids={"w": "e"}), request)

    if has_signal:
        assert envelopes_of(plan) == [make_signal()]
    else:
        assert [one.answer for one in plan.answers] == [Opened("e", created=False)]


def test_start_that_may_not_find_an_open_one_is_refused() -> None:
    request = start_request(make_start(on_open=OnOpen.FAIL))

    (answer,) = plan_for(make_claims(held=["e"], open_ids={"w": "e"}), request).answers

    assert isinstance(answer.answer, WorkflowAlreadyOpen)


def test_child_that_cannot_be_started_is_reported_to_its_parent() -> None:
    start = make_start(on_open=OnOpen.FAIL, parent=Parent("parent", 2))

    plan = plan_for(make_claims(put(start, 5, workflow_id="w"), held=["e"], open_ids={"w": "e"}))

    assert plan.unrouted.consumed == [5]
    assert [row.execution_id for row in plan.unrouted.outgoing] == ["parent"]


def test_start_in_place_of_an_open_one_terminates_that_in_the_same_batch() -> None:
    request = start_request(make_start(on_open=OnOpen.TERMINATE_EXISTING))

    plan = plan_for(make_claims(held=["e"], open_ids={"w": "e"}), request)

    assert [type(one) for one in envelopes_of(plan)] == [Terminate]
    assert plan.turns["new"].start is not None


@pytest.mark.parametrize(
    ("policy", "status", "may"),
    [
        (OnClosed.REJECT, "failed", False),
        (OnClosed.ALLOW_IF_FAILED, "failed", True),
        (OnClosed.ALLOW_IF_FAILED, "completed", False),
    ],
)
def test_policy_for_closed_ids_looks_at_the_last_run(policy: OnClosed, status: str, may: bool) -> None:
    claims = make_claims(open_ids={"w": None})
    request = start_request(make_start(on_closed=policy))
    assert list(plan_for(claims, request).lookups.latest) == [(ORG, "w")]
    claims.latest[ORG, "w"] = make_row(status=status, closed_at=5)

    plan = plan_for(claims, request)

    assert ("new" in plan.turns) is may
    assert all(isinstance(one.answer, WorkflowAlreadyClosed) for one in plan.answers)


def test_start_in_the_inbox_that_was_handled_before_is_consumed() -> None:
    plan = plan_for(make_claims(put(make_start("e"), 5, workflow_id="w"), held=["e"], open_ids={"w": "e"}))

    assert plan.unrouted.consumed == [5]
    assert not plan.turns


@pytest.mark.parametrize("first", [make_start("e"), InternalContinue(start=make_start("e"), runs=50)])
def test_first_turn_of_a_registered_execution_comes_before_its_signals(first: AnyEnvelope) -> None:
    claims = make_claims(put(make_signal(), 1, execution_id="e"), put(first, 2, execution_id="e"), held=["e"])
    claims.rows["e"] = make_row(sequence=0)

    assert envelopes_of(plan_for(claims)) == [first, make_signal()]


# --- keys ---


def test_repeated_request_of_one_batch_gets_the_answer_of_the_first() -> None:
    requests = [start_request(make_start(f"e{number}", f"w{number}"), key=KEY) for number in range(2)]
    claims = make_claims(open_ids={"w0": None, "w1": None})
    claims.remembered[ORG, "start", "key"] = None

    plan = plan_for(claims, *requests)

    assert list(plan.turns) == ["e0"]
    assert [(one.request, one.first) for one in plan.answers_like] == [(requests[1], requests[0])]


def test_remembered_request_is_answered_and_does_nothing() -> None:
    claims = make_claims(held=["e"])
    key = RequestKey("signal", "k", 9)
    request = Request(ORG, make_signal(), execution_id="e", key=key)
    assert list(plan_for(claims, request).lookups.remembered) == [(ORG, "signal", "k")]
    claims.remembered[ORG, "signal", "k"] = RequestRow(ORG, "signal", "k", "e", 7, 9)

    plan = plan_for(claims, request)

    assert [one.answer for one in plan.answers] == [Accepted("e", 7)]
    assert not plan.turns


def test_keyed_start_waits_while_another_node_has_its_key() -> None:
    claims = make_claims(open_ids={"w": None})
    request = start_request(make_start(), key=KEY)
    assert list(plan_for(claims, request, exclusive=False).lookups.request_keys) == [(ORG, "start", "key")]
    claims.asked_keys.add((ORG, "start", "key"))

    assert plan_for(claims, request, exclusive=False).retries == [request]


def test_signal_that_waits_twice_under_one_key_is_taken_once() -> None:
    signal = make_signal(request=RequestKey("signal", "k", 9))
    claims = make_claims(*(put(signal, row_id, execution_id="e") for row_id in (1, 2)), held=["e"])
    claims.remembered[ORG, "signal", "k"] = None

    plan = plan_for(claims)

    assert len(envelopes_of(plan)) == 1
    assert plan.unrouted.consumed == [2]


# --- asking that the inbox is taken first ---


def test_lookup_is_answered_once_nothing_is_being_started() -> None:
    lookup = WorkflowIdLookup(ORG, "w")

    assert plan_for(make_claims(open_ids={"w": "e"}), lookup).answers[0].answer == Handled()
    assert plan_for(make_claims(asked=["w"]), lookup).retries == [lookup]
    beside = make_claims(put(make_start(), 1, workflow_id="w"), open_ids={"w": None})
    assert plan_for(beside, lookup).retries == [lookup]


# --- for all ---

ENVELOPES: st.SearchStrategy[AnyEnvelope] = st.sampled_from(
    [make_signal("a"), make_signal("b"), Cancel(), Terminate(), RESULT, make_start("n1"), make_start("n2", "v")]
)
ADDRESSES = st.sampled_from([("e", ""), ("", "w"), ("", "v"), ("other", ""), ("gone", ""), ("gone", "w")])


@st.composite
def situations(draw: st.DrawFn) -> tuple[Claims, list[AnyRequest]]:
    """Something that has arrived, and a store that answers every look-up."""
    rows = []
    for row_id in range(1, draw(st.integers(0, 6)) + 1):
        envelope = draw(ENVELOPES)
        execution_id, workflow_id = draw(ADDRESSES)
        if isinstance(envelope, Start):
            execution_id, workflow_id = "", envelope.workflow_id
        rows.append(put(envelope, row_id, execution_id=execution_id, workflow_id=workflow_id))
    requests: list[AnyRequest] = []
    for _ in range(draw(st.integers(0, 6))):
        envelope = draw(ENVELOPES)
        execution_id, workflow_id = draw(ADDRESSES)
        if isinstance(envelope, Start):
            requests.append(start_request(envelope, draw(st.sampled_from([None, make_signal("with")]))))
        else:
            requests.append(
                Request(ORG, envelope, execution_id=execution_id, workflow_id="" if execution_id else workflow_id)
            )
    claims = make_claims(*rows, held=["e"] if draw(st.booleans()) else [])
    if draw(st.booleans()):
        claims.busy.add("other")
    return claims, requests


def complete(claims: Claims, requests: list[AnyRequest], answers: dict[str, str | None]) -> tuple[Plan, int]:
    """Plan, look up, and plan again, as a batch does; how many passes that took."""
    for passes in range(1, 20):
        plan = plan_for(claims, *requests, exclusive=False)
        if not plan.lookups:
            return plan, passes
        for key in plan.lookups.workflow_ids:
            claims.asked_ids.add(key)
            if key[1] in answers:
                claims.open_ids[key] = answers[key[1]]
        claims.asked_keys.update(plan.lookups.request_keys)
        claims.others.update(dict.fromkeys(plan.lookups.rows))
        claims.latest.update(dict.fromkeys(plan.lookups.latest))
        claims.remembered.update(dict.fromkeys(plan.lookups.remembered))
    raise AssertionError("the plan never came to its end")


OPEN_IDS = st.dictionaries(st.sampled_from(["w", "v"]), st.sampled_from([None, "e", "other"]))


@given(situations(), OPEN_IDS)
def test_every_plan_comes_to_its_end_and_every_request_has_one_fate(
    situation: tuple[Claims, list[AnyRequest]], open_ids: dict[str, str | None]
) -> None:
    claims, requests = situation

    plan, passes = complete(claims, requests, open_ids)

    assert passes <= 6
    fates = {id(request): 0 for request in requests}
    for turn in plan.turns.values():
        for request_id in {id(one.request) for one in turn.arrivals if one.request is not None}:
            fates[request_id] += 1
    answered: list[AnyRequest] = [one.request for one in plan.answers]
    answered += [one.request for one in plan.answers_like] + [one.request for one in plan.forwards]
    for request in answered:
        fates[id(request)] += 1
    for request in plan.retries:
        fates[id(request)] += 1
    assert set(fates.values()) <= {1}


@given(situations(), OPEN_IDS)
def test_every_inbox_row_is_taken_by_one_turn_or_consumed_or_stays(
    situation: tuple[Claims, list[AnyRequest]], open_ids: dict[str, str | None]
) -> None:
    claims, requests = situation

    plan, _ = complete(claims, requests, open_ids)

    taken = [one.row.id for turn in plan.turns.values() for one in turn.arrivals if one.row is not None]
    assert len(set(taken)) == len(taken)
    assert not set(taken) & set(plan.unrouted.consumed)
    assert len(set(plan.unrouted.consumed)) == len(plan.unrouted.consumed)


@given(situations(), OPEN_IDS)
def test_turns_keep_the_order_of_arrival(
    situation: tuple[Claims, list[AnyRequest]], open_ids: dict[str, str | None]
) -> None:
    claims, requests = situation

    plan, _ = complete(claims, requests, open_ids)

    places = {id(request): index for index, request in enumerate(requests)}
    for turn in plan.turns.values():
        rest = turn.arrivals[1:] if turn.start is not None else turn.arrivals
        rows = [one.row.id for one in rest if one.row is not None]
        own = [places[id(one.request)] for one in rest if one.request is not None]
        assert rows == sorted(rows)
        assert own == sorted(own)


@given(situations(), OPEN_IDS)
def test_planning_twice_gives_the_same_and_changes_nothing(
    situation: tuple[Claims, list[AnyRequest]], open_ids: dict[str, str | None]
) -> None:
    claims, requests = situation
    first, _ = complete(claims, requests, open_ids)

    second = plan_for(claims, *requests, exclusive=False)

    assert repr(second) == repr(first)
    assert second.turns == first.turns
