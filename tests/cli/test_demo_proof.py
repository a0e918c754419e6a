"""The proof of the demo must be able to fail: a story told wrongly is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast import Status
from holdfast.cli.demo import proof
from holdfast.cli.demo.evidence import Evidence, StoredExecution
from holdfast.cli.demo.messages import Say
from holdfast.cli.demo.outside import Entry, Phase
from holdfast.cli.demo.workflows import SLOW_SUBJECTS
from holdfast.core import events
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.instants import from_datetime
from holdfast.core.payloads import Payload, encode
from holdfast.engine.views import ExecutionInfo, History

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
KILL = BEGIN + timedelta(seconds=10)
DUE = from_datetime(BEGIN + timedelta(seconds=20))


def value(plain: Any) -> Payload:
    return encode(plain, "a value")


def make_told(name: str, happened: Sequence[AnyEvent], parent: str | None = None) -> StoredExecution:
    """An execution in which one thing happened every five seconds."""
    turns = [
        HistoryTurn(place, from_datetime(BEGIN + timedelta(seconds=5 * (place - 1))), (event,))
        for place, event in enumerate(happened, 1)
    ]
    info = ExecutionInfo(
        org="default",
        execution_id=f"id-of-{name}",
        workflow_id=name,
        workflow="any",
        code_version="",
        queue="default",
        status=Status.COMPLETED,
        created_at=BEGIN,
        updated_at=BEGIN,
        closed_at=BEGIN,
        history_length=len(turns),
        state_version=1,
        waiting_for=None,
        waiting_until=None,
        last_signal=None,
        last_error=None,
        state=None,
        metadata={},
        parent_execution_id=parent,
        continued_from=None,
        nodes=(),
        last_node="",
    )
    return StoredExecution(info, History(turns))


def make_evidence() -> Evidence:
    """A small story in which everything is as it should be."""
    started = events.WorkflowStarted(workflow="any", workflow_id="any", input=value([]))
    piano, poem = SLOW_SUBJECTS
    chat: list[AnyEvent] = [
        started,
        events.SignalReceived(name="message", value=value({"text": poem})),
        events.ActivityScheduled(number=1, name="reply", input=value([poem])),
        events.ActivityCompleted(number=1, result=value("fine"), attempt=2),
        events.WorkflowCompleted(result=value([f"You said: {poem}"])),
    ]
    order: list[AnyEvent] = [
        started,
        events.ChildStarted(number=1, workflow="pick", workflow_id="pick", execution_id="id-of-pick", input=value([])),
        events.TimerStarted(number=2, due=DUE),
        events.ChildCompleted(number=1, result=value("x")),
        events.TimerFired(number=2),
        events.WorkflowCompleted(result=value("done")),
    ]
    pick: list[AnyEvent] = [
        started,
        events.ActivityScheduled(number=1, name="fetch", input=value([piano])),
        events.ActivityCompleted(number=1, result=value(piano), attempt=2),
        events.WorkflowCompleted(result=value(piano)),
    ]
    # The timer starts 10 s and fires 20 s after the beginning: move the kill between the two.
    kill = KILL + timedelta(seconds=1)
    ledger = [
        Entry("id-of-chat-ann/1", "reply", poem, 1, Phase.BEGUN, 1),
        Entry("id-of-pick/1", "fetch", piano, 1, Phase.BEGUN, 1),
        Entry("id-of-chat-ann/1", "reply", poem, 2, Phase.BEGUN, 2),
        Entry("id-of-chat-ann/1", "reply", poem, 2, Phase.DONE, 2),
        Entry("id-of-pick/1", "fetch", piano, 2, Phase.BEGUN, 2),
        Entry("id-of-pick/1", "fetch", piano, 2, Phase.DONE, 2),
    ]
    executions = [make_told("chat-ann", chat), make_told("order", order), make_told("pick", pick, parent="id-of-order")]
    return Evidence([Say("ann", poem, True, "message-1")], executions, ledger, [], kill)


def without(told: StoredExecution, kind: type[AnyEvent]) -> StoredExecution:
    return make_told(told.info.workflow_id, [event for event in told.events if not isinstance(event, kind)])


def twice(told: StoredExecution, kind: type[AnyEvent]) -> StoredExecution:
    events_twice = [event for one in told.events for event in ([one, one] if isinstance(one, kind) else [one])]
    return make_told(told.info.workflow_id, events_twice, told.info.parent_execution_id)


def change(evidence: Evidence, place: int, told: StoredExecution) -> Evidence:
    executions = [told if index == place else one for index, one in enumerate(evidence.executions)]
    return msgspec.structs.replace(evidence, executions=executions)


def failing(evidence: Evidence) -> set[str]:
    """The names of the checks that do not hold."""
    return {check.__name__ for check in proof.CHECKS if not check(evidence).holds}


def test_sound_story_passes_every_check() -> None:
    assert failing(make_evidence()) == set()


def lose_signal(good: Evidence) -> Evidence:
    return change(good, 0, without(good.executions[0], events.SignalReceived))


def repeat_signal(good: Evidence) -> Evidence:
    return change(good, 0, twice(good.executions[0], events.SignalReceived))


def lose_answer(good: Evidence) -> Evidence:
    chat = good.executions[0]
    return change(good, 0, make_told("chat-ann", [*chat.events[:-1], events.WorkflowCompleted(result=value([]))]))


def repeat_result(good: Evidence) -> Evidence:
    return change(good, 2, twice(good.executions[2], events.ActivityCompleted))


def repeat_effect(good: Evidence) -> Evidence:
    return msgspec.structs.replace(good, ledger=[*good.ledger, good.ledger[-1]])


def begin_too_often(good: Evidence) -> Evidence:
    return msgspec.structs.replace(good, ledger=[*good.ledger, good.ledger[0]])


def lose_timer(good: Evidence) -> Evidence:
    return change(good, 1, without(good.executions[1], events.TimerFired))


def fire_early(good: Evidence) -> Evidence:
    early = [
        events.TimerStarted(number=2, due=DUE + 60_000_000) if isinstance(event, events.TimerStarted) else event
        for event in good.executions[1].events
    ]
    return change(good, 1, make_told("order", early))


def lose_child(good: Evidence) -> Evidence:
    return msgspec.structs.replace(good, executions=good.executions[:2], ledger=good.ledger)


def leave_open(good: Evidence) -> Evidence:
    told = good.executions[1]
    return change(good, 1, StoredExecution(msgspec.structs.replace(told.info, status=Status.SUSPENDED), told.history))


def make_gap(good: Evidence) -> Evidence:
    told = good.executions[1]
    return change(good, 1, StoredExecution(told.info, History([turn for turn in told.history.turns if turn.first != 2])))


def damage_database(good: Evidence) -> Evidence:
    return msgspec.structs.replace(good, problems=["execution x: it has a history and no row"])


@pytest.mark.parametrize(
    ("spoil", "found_by"),
    [
        (lose_signal, "check_signals_received"),
        (repeat_signal, "check_signals_received"),
        (lose_answer, "check_signals_handled"),
        (repeat_result, "check_results"),
        (repeat_effect, "check_effects"),
        (begin_too_often, "check_attempts"),
        (lose_timer, "check_timers"),
        (fire_early, "check_timers"),
        (lose_child, "check_children"),
        (leave_open, "check_ends"),
        (make_gap, "check_sequences"),
        (damage_database, "check_database"),
    ],
)
def test_spoilt_story_is_found_out(spoil: Callable[[Evidence], Evidence], found_by: str) -> None:
    assert found_by in failing(spoil(make_evidence()))


def test_every_check_can_fail() -> None:
    empty = Evidence([], [], [], ["everything is gone"], KILL)

    assert failing(empty) >= {"check_ends", "check_results", "check_effects", "check_timers", "check_children"}
