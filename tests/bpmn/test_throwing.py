"""Errors and escalations: who catches them, and what becomes of those that nobody does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from holdfast.core import envelopes, events
from holdfast.core.bpmn_errors import make_bpmn_error_failure, read_bpmn_error
from holdfast.core.failures import Failure
from holdfast.core.options import ParentClose
from holdfast.core.parents import ALL_CODES, Parent
from holdfast.core.request_keys import RequestKey
from holdfast.core.turn import hold, take_turn
from tests.bpmn.oracles.driving import count_completed
from tests.bpmn.support.diagrams import (
    boundary,
    call,
    diagram,
    end,
    error,
    escalation,
    flow,
    gateway,
    job,
    mappings,
    message,
    path,
    signal,
    start,
    sub,
    task,
    throw,
    user,
)
from tests.bpmn.support.playing import PlayedProcess, encode, make_start


def test_P3_specific_code_comes_before_catch_all_at_each_level() -> None:
    process = diagram(
        start(),
        job("a"),
        end(),
        path("start", "a", "end"),
        boundary("any", "a", error("")),
        task("t"),
        path("any", "t"),
        boundary("one", "a", error("E1")),
        task("u"),
        path("one", "u"),
    )
    for code, taken in [("E1", "u"), ("E2", "t")]:
        play = PlayedProcess(process)
        play.throw_error("a", code)
        assert count_completed(play)[taken] == 1
        assert play.is_closed


def test_P3_inner_catch_all_comes_before_an_outer_specific_one() -> None:
    inner = sub(
        "scope", start("in"), job("a"), path("in", "a"), boundary("any", "a", error("")), task("t"), path("any", "t")
    )
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        boundary("one", "scope", error("E1")),
        task("u"),
        path("one", "u"),
    )
    play = PlayedProcess(process)

    play.throw_error("a", "E1")

    assert count_completed(play)["t"] == 1
    assert count_completed(play)["u"] == 0


def test_P3_search_walks_outward_over_event_sub_processes_and_boundaries() -> None:
    handler = sub("handler", start("caught", error("E2")), task("t"), path("caught", "t"), event=True)
    inner = sub("inner", start("in"), job("a"), path("in", "a"))
    outer = sub("outer", start("in2"), inner, path("in2", "inner"), handler)
    process = diagram(
        start(),
        outer,
        end(),
        path("start", "outer", "end"),
        boundary("one", "outer", error("E1")),
        task("u"),
        path("one", "u"),
    )

    play = PlayedProcess(process)
    play.throw_error("a", "E2")
    assert count_completed(play)["t"] == count_completed(play)["outer"] == count_completed(play)["end"] == 1

    play = PlayedProcess(process)
    play.throw_error("a", "E1")
    assert count_completed(play)["u"] == 1
    assert count_completed(play)["end"] == 0


def test_P3_handler_never_catches_its_own_error() -> None:
    handler = sub("handler", start("caught", error("E1")), end("again", error("E1")), path("caught", "again"), event=True)
    inner = sub("scope", start("in"), job("a"), path("in", "a"), handler)
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        boundary("one", "scope", error("E1")),
        task("u"),
        path("one", "u"),
    )
    play = PlayedProcess(process)

    play.throw_error("a", "E1")

    assert count_completed(play)["caught"] == 1
    assert count_completed(play)["u"] == 1
    assert play.is_closed


def test_P3_interrupted_scope_catches_nothing_more_itself() -> None:
    first = sub("first", start("c1", error("E1")), end("again", error("E2")), path("c1", "again"), event=True)
    second = sub("second", start("c2", error("E2")), task("t"), path("c2", "t"), event=True)
    process = diagram(start(), job("a"), path("start", "a"), first, second)
    play = PlayedProcess(process)

    play.throw_error("a", "E1")

    assert count_completed(play)["t"] == 0
    assert list(play.incidents.values()) == [("again", "error")]


def test_P3_uncaught_error_of_a_job_is_an_incident_and_the_job_can_run_again() -> None:
    play = PlayedProcess(diagram(start(), job("a"), end(), path("start", "a", "end")))

    play.throw_error("a", "NOBODY")
    assert list(play.incidents.values()) == [("a", "error")]
    play.resolve_incident()
    play.complete_job("a")

    assert play.is_closed


def test_P3_uncaught_error_event_is_an_incident_that_is_entered_once() -> None:
    play = PlayedProcess(diagram(start(), end("thrown", error()), path("start", "thrown")))

    assert list(play.incidents.values()) == [("thrown", "error")]
    assert count_completed(play)["thrown"] == 0
    play.cancel()
    assert play.is_closed


def test_P3_error_gives_its_code_message_and_variables_to_what_catches_it() -> None:
    process = diagram(
        start(),
        job("a"),
        end(),
        path("start", "a", "end"),
        boundary("one", "a", error("E1"), mapping=mappings(outputs={"seen": "why"})),
        task("t"),
        path("one", "t"),
    )
    play = PlayedProcess(process)

    play.throw_error("a", "E1", {"why": "no cover"})

    assert play.result == {"seen": "no cover"}


# --- escalations ---


def test_P3_escalation_that_nobody_catches_is_no_fault() -> None:
    process = diagram(start(), throw("up", escalation()), end("last", escalation()), path("start", "up", "last"))
    play = PlayedProcess(process)

    assert play.is_closed
    assert not play.incidents


@pytest.mark.parametrize("interrupting", [True, False])
def test_P3_escalation_reaches_the_boundary_of_its_scope(interrupting: bool) -> None:
    inner = sub("scope", start("in"), throw("up", escalation()), job("a"), path("in", "up", "a"))
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        task("t"),
        path("one", "t"),
        boundary("one", "scope", escalation(), interrupting=interrupting),
    )
    play = PlayedProcess(process)

    assert count_completed(play)["t"] == 1
    assert play.is_closed is interrupting
    taken = [flow for record in play.records if record[0] in ("passed", "left") for flow in record[-1] if record[-1]]
    assert ("up_a" in taken) is not interrupting, "no flow is told that no token took"


def test_P3_escalation_end_event_lets_the_scope_complete_beside_what_it_began() -> None:
    inner = sub("scope", start("in"), end("up", escalation()), path("in", "up"))
    process = diagram(
        start(),
        inner,
        end(),
        path("start", "scope", "end"),
        task("t"),
        path("one", "t"),
        boundary("one", "scope", escalation(""), interrupting=False),
    )
    play = PlayedProcess(process)

    assert count_completed(play) == {"start": 1, "in": 1, "up": 1, "scope": 1, "one": 1, "t": 1, "end": 1}


# --- calls ---

CALL = diagram(
    start(),
    call("c"),
    end(),
    path("start", "c", "end"),
    boundary("failed", "c", error("E1")),
    task("t"),
    path("failed", "t"),
    boundary("told", "c", escalation("X1"), interrupting=False),
    task("u"),
    path("told", "u"),
)


def close_child(play: PlayedProcess, **outcome: Any) -> None:
    [number] = play.find_waits("c")
    child = play.execution.children[number].execution_id
    play.tell(envelopes.ChildClosed(number=number, execution_id=child, **outcome))


def test_P3_child_is_told_which_codes_are_caught_around_its_call() -> None:
    inner = sub("scope", start("in"), call("c"), path("in", "c"))
    process = diagram(
        start(), inner, path("start", "scope"), boundary("failed", "scope", error("")), task("t"), path("failed", "t")
    )
    for made, expected in [(CALL, ("E1",)), (process, (ALL_CODES,))]:
        play = PlayedProcess(made)
        [(_, begun)] = play.sent
        assert isinstance(begun, envelopes.Start)
        assert begun.parent is not None
        assert begun.parent.catches == expected


def test_P3_error_of_a_child_reaches_the_boundary_of_its_call() -> None:
    play = PlayedProcess(CALL)

    close_child(play, failure=make_bpmn_error_failure("E1", "oops", encode({"why": 1})))

    assert play.result == {"why": 1}
    assert count_completed(play)["t"] == 1


def test_C1_child_of_a_call_is_cancelled_when_its_parent_closes() -> None:
    [started] = [one for one in PlayedProcess(CALL).events if isinstance(one, events.ChildStarted)]

    assert started.policy is ParentClose.CANCEL


def test_P10_child_that_fails_is_an_incident_and_is_called_again() -> None:
    play = PlayedProcess(CALL)

    close_child(play, cancelled=True)
    assert list(play.incidents.values()) == [("c", "call")]
    play.resolve_incident()
    play.finish_child("c", {"done": True})

    assert play.result == {"done": True}


def test_P3_escalation_of_a_child_reaches_its_call_while_the_child_goes_on() -> None:
    play = PlayedProcess(CALL)
    [number] = play.find_waits("c")
    child = play.execution.children[number].execution_id

    for _ in range(2):
        play.tell(envelopes.ChildEscalated(number=number, execution_id=child, code="X1", value=encode({"n": 1})))
    play.finish_child("c", {})

    assert count_completed(play)["u"] == 2
    assert count_completed(play)["c"] == 1


def start_child(process_parts: tuple[str, ...], catches: Mapping[str, tuple[str, ...]]) -> PlayedProcess:
    parent = Parent("0197745a-0000-7abc-8def-000000000001", 3, ParentClose.CANCEL, 1, **catches)
    process = diagram(*process_parts)
    return PlayedProcess(process, start=msgspec.structs.replace(make_start("p"), parent=parent))


def test_P3_error_that_the_callers_catch_fails_the_child() -> None:
    parts = (
        start(),
        gateway("parallel", "f"),
        job("a"),
        end("thrown", error("E1")),
        path("start", "f", "a"),
        flow("f", "thrown"),
    )

    play = start_child(parts, {"catches": ("E1",)})
    assert isinstance(play.events[-1], events.WorkflowFailed)
    assert isinstance(play.sent[-1][1], envelopes.ChildClosed)

    play = start_child(parts, {"catches": ("E2",)})
    assert list(play.incidents.values()) == [("thrown", "error")], "it can be corrected where it was thrown"


def test_P3_escalation_that_the_callers_catch_is_told_to_the_parent() -> None:
    parts = (start(), throw("up", escalation("X1")), job("a"), path("start", "up", "a"))

    play = start_child(parts, {"catches_escalations": (ALL_CODES,)})

    assert isinstance(play.sent[-1][1], envelopes.ChildEscalated)
    assert not play.is_closed


@pytest.mark.parametrize(
    ("caught", "interrupting", "ends"),
    [
        (("X1",), ("X1",), True),
        (("X1",), (), False),
        ((ALL_CODES,), (ALL_CODES,), True),
        ((ALL_CODES, "X1"), (ALL_CODES,), False),
        ((ALL_CODES, "X1"), ("X1",), True),
        (("X2",), ("X2",), False),
        (("*",), ("*",), False),
    ],
)
def test_P3_escalation_that_interrupts_the_call_ends_the_child_before_anything_behind_it(
    caught: tuple[str, ...], interrupting: tuple[str, ...], *, ends: bool
) -> None:
    parts = (
        start(),
        gateway("parallel", "fork"),
        throw("up", escalation("X1")),
        job("charge"),
        job("beside"),
        path("start", "fork", "up", "charge"),
        flow("fork", "beside"),
    )

    play = start_child(parts, {"catches_escalations": caught, "interrupting_escalations": interrupting})

    assert play.is_closed is ends
    assert bool(play.find_waits("charge")) is not ends
    assert count_completed(play)["up"] == 1


def test_P3_child_is_told_which_escalations_end_it_by_the_nearest_event_that_catches_them() -> None:
    inner = sub(
        "inner",
        start("in"),
        call("c"),
        path("in", "c"),
        boundary("near", "c", escalation("X1"), interrupting=False),
        task("t"),
        path("near", "t"),
    )
    process = diagram(
        start(),
        inner,
        path("start", "inner"),
        boundary("far", "inner", escalation("X1")),
        boundary("any", "inner", escalation("")),
        task("u"),
        path("far", "u"),
        path("any", "u"),
    )

    [(_, begun)] = PlayedProcess(process).sent

    assert isinstance(begun, envelopes.Start)
    assert begun.parent is not None
    assert begun.parent.catches_escalations == (ALL_CODES, "X1")
    assert begun.parent.interrupting_escalations == (ALL_CODES,)


def test_P10_incident_is_resolved_by_an_error_that_ends_the_child() -> None:
    mapped = mappings({"a": "assert(x, x != null)"})
    play = start_child((start(), end("thrown", error("E1"), mapped), path("start", "thrown")), {"catches": ("E1",)})
    assert list(play.incidents.values()) == [("thrown", "mapping")]

    play.resolve_incident(None, {"x": 1})

    assert isinstance(play.events[-1], events.WorkflowFailed)
    assert any(isinstance(one, events.UpdateCompleted) for one in play.events), "who asked for it is answered"


@pytest.mark.parametrize("definition", [signal(), message()])
@pytest.mark.parametrize("is_refused", [False, True])
def test_B2_child_completes_after_it_is_fixed_who_gets_what_it_published(definition: str, *, is_refused: bool) -> None:
    play = start_child((start(), end("thrown", definition), path("start", "thrown")), {})
    [published] = play.outbox
    assert not play.is_closed
    assert not play.sent

    failure = Failure(type="NobodyWaits", message="nobody waits") if is_refused else None
    play.tell(envelopes.PublicationAnswered(number=int(published.id.rpartition(":")[2]), failure=failure))

    assert play.result == {}
    assert isinstance(play.sent[-1][1], envelopes.ChildClosed)


@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize("thrown", [error("E1"), escalation("X1")])
def test_B2_child_ends_by_what_a_caller_catches_after_it_is_fixed_who_gets_what_it_published(
    thrown: str, *, is_restored: bool
) -> None:
    caught = sub("sub", start("again", message()), job("late"), path("again", "late"), event=True)
    parts = (
        start(),
        gateway("parallel", "fork"),
        job("beside"),
        throw("told", signal()),
        end("thrown", thrown, mappings({"why": "1 + 1"})),
        path("start", "fork", "told", "thrown"),
        flow("fork", "beside"),
        caught,
    )
    catches = {"catches": ("E1",), "catches_escalations": ("X1",), "interrupting_escalations": ("X1",)}

    play = start_child(parts, catches)
    assert not play.is_closed
    assert not play.sent
    assert not play.waits
    assert not play.execution.subscriptions
    if is_restored:
        body = play.program.take_snapshot()
        play.program = play.make_program()
        assert body is not None
        assert play.program.restore_snapshot(body, play.program.snapshot_schema)
    [number] = play.execution.publications
    play.tell(envelopes.PublicationAnswered(number=number))

    last = play.sent[-1][1]
    assert isinstance(last, envelopes.ChildClosed)
    if thrown == error("E1"):
        [failed] = [one for one in play.events if isinstance(one, events.WorkflowFailed)]
        assert read_bpmn_error(failed.failure) is not None
    else:
        escalated = play.sent[-2][1]
        assert isinstance(escalated, envelopes.ChildEscalated)
        assert (escalated.code, bytes(escalated.value.data)) == ("X1", b'{"why":2}')


def test_B2_child_that_is_done_waits_for_nothing_but_the_answers() -> None:
    caught = sub("sub", start("again", message()), job("late"), path("again", "late"), event=True)
    play = start_child((start(), end("thrown", signal()), path("start", "thrown"), caught), {})

    assert not play.waits
    assert not play.execution.subscriptions
    play.tell(envelopes.Cancel())

    assert isinstance(play.events[-1], events.WorkflowCancelled)


def test_S7_child_that_waited_for_an_answer_alone_completes_also_over_a_held_signal() -> None:
    play = start_child((start(), end("thrown", signal()), path("start", "thrown")), {})
    answered = envelopes.PublicationAnswered(number=next(iter(play.program.state.unanswered)))
    late = envelopes.Signal(name="late", value=encode(1))

    play.keep(take_turn(play.execution, play.program, [answered, late], play.now, holds=True))

    assert isinstance(play.events[-1], events.WorkflowCompleted)


def test_B2_child_that_is_done_begins_nothing_when_an_incident_of_its_events_is_resolved() -> None:
    caught = sub("sub", start("again", message()), job("late"), path("again", "late"), event=True)
    play = start_child((start(), throw("t", signal()), job("a"), path("start", "t", "a"), caught), {})
    play.tell(envelopes.SubscriptionRefused(number=play.find_waits("again")[0], holder="other"))
    assert list(play.incidents.values()) == [("again", "message")]

    play.complete_job("a")

    assert not play.incidents
    assert not play.execution.subscriptions
    [number] = play.execution.publications
    play.tell(envelopes.PublicationAnswered(number=number))
    assert isinstance(play.events[-1], events.WorkflowCompleted)


@pytest.mark.parametrize("is_caught_inside", [False, True])
def test_S7_event_for_an_instance_that_a_held_update_has_ended_is_stale(*, is_caught_inside: bool) -> None:
    parts = (
        start("in"),
        gateway("parallel", "fork"),
        job("beside"),
        end("thrown", error("E1"), mappings({"a": "assert(x, x != null)"})),
        path("in", "fork", "thrown"),
        flow("fork", "beside"),
    )
    outer = (start(), sub("sub", *parts), path("start", "sub"), boundary("b", "sub", error("E1")), user("u"), path("b", "u"))
    play = start_child(outer if is_caught_inside else parts, {"catches": ("E1",)})
    number = play.find_job("beside")
    request = RequestKey("update", "r", play.now + 10**12)
    resolving = envelopes.Update(
        name="holdfast.resolve_incident", value=encode({"number": None, "variables": {"x": 1}}), request=request
    )

    play.keep(hold(play.execution, play.program, [resolving], play.now))
    play.tell(envelopes.ActivityReturned(number=number, attempt=1, result=encode({})))

    assert play.is_closed is not is_caught_inside
    assert bool(play.find_waits("u")) is is_caught_inside
    assert not play.find_waits("beside")


def test_P5_call_that_does_not_propagate_gives_and_takes_mapped_variables_alone() -> None:
    mapped = mappings({"x": "n + 1"}, {"y": "r * 2"})
    play = PlayedProcess(diagram(start(), call("c", mapping=mapped), path("start", "c")), {"n": 1, "r": 0})

    play.finish_child("c", {"r": 5, "secret": 1})

    assert play.result == {"n": 1, "r": 0, "y": 10}


def test_P3_handler_of_an_escalation_does_not_catch_its_own() -> None:
    begun = start("caught", escalation("X1"), interrupting=False)
    handler = sub("handler", begun, throw("again", escalation("X1")), path("caught", "again"), event=True)
    play = PlayedProcess(diagram(start(), throw("up", escalation("X1")), path("start", "up"), handler))

    assert play.is_closed
    assert count_completed(play)["handler"] == 1
