"""The history checker finds each kind of broken history."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from holdfast.core import events, payloads
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.failures import Failure
from holdfast.simulation.checker import check_children, check_history, check_replay, check_signals
from holdfast.simulation.clients import ClientLedger
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.outcomes import ExecutionRecord
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.plans import Plan, RunActivity
from holdfast.simulation.runs import make_program
from holdfast.simulation.scripted import ActivityOrder
from holdfast.store.rows import ExecutionRow
from tests.store.builders import make_history

PLAN = Plan(label="p", steps=(RunActivity(label="p.1"),))
ORDER = payloads.encode([ActivityOrder("p.1")], "an order")
NULL = payloads.NULL


def started(plan: Plan = PLAN, continued_from: str | None = None) -> AnyEvent:
    return events.WorkflowStarted(
        workflow="scripted", workflow_id="p", input=payloads.encode([plan], "a plan"), continued_from=continued_from
    )


SCHEDULED = events.ActivityScheduled(number=1, name="work", input=ORDER)
RESULT = events.ActivityCompleted(number=1, result=payloads.encode(["p.1", 0], "a result"))
TIMER = events.TimerStarted(number=1, due=9)
COMPLETED = events.WorkflowCompleted(result=payloads.encode([["p.1", 0]], "a result"))
GOOD: Sequence[AnyEvent] = (started(), SCHEDULED, RESULT, COMPLETED)


def record(
    history: Sequence[AnyEvent], execution_id: str = "e", workflow_id: str = "p", status: str = "completed"
) -> ExecutionRecord:
    row = ExecutionRow(
        "default", execution_id, workflow_id, "scripted", "", "default", status, 1, len(history), (), None, 0, 0, 0, b"{}"
    )
    # One turn per event that was given to the program, as the engine writes them when envelopes come one by one.
    turns: list[HistoryTurn] = []
    for sequence, event in enumerate(history, 1):
        if type(event) in events.GIVEN or not turns:
            turns.append(HistoryTurn(sequence, 0, (event,)))
        else:
            turns[-1] = msgspec.structs.replace(turns[-1], events=(*turns[-1].events, event))
    return ExecutionRecord(row, turns, PLAN)


def test_a_good_history_has_no_problems() -> None:
    good = record(GOOD)

    assert list(check_history(GOOD, "p")) == []
    assert list(check_replay(good, make_program(good))) == []
    assert list(check_signals([good], ClientLedger())) == []
    assert list(check_children([good])) == []


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (GOOD[1:], "expected one start"),
        ((started(), *GOOD), "expected one start"),
        (GOOD[:3], "expected one closing event"),
        ((*GOOD, COMPLETED), "expected one closing event"),
        ((*GOOD, RESULT), "expected one closing event"),
        ((started(), SCHEDULED, RESULT, RESULT, COMPLETED), "ActivityCompleted of ('activity', 1), which was not open"),
        ((started(), RESULT, COMPLETED), "ActivityCompleted of ('activity', 1), which was not open"),
        ((started(), SCHEDULED, SCHEDULED, RESULT, COMPLETED), "was asked for twice"),
        (
            (started(), TIMER, events.TimerCancelled(number=1), events.TimerFired(number=1), COMPLETED),
            "TimerFired of ('timer', 1), which was not open",
        ),
        (
            (started(), events.ExternalSignalCompleted(number=1), COMPLETED),
            "ExternalSignalCompleted of ('signal', 1), which was not open",
        ),
    ],
)  # fmt: skip
def test_a_broken_history_is_found(history: Sequence[AnyEvent], problem: str) -> None:
    assert problem in "\n".join(check_history(history, "p"))


def test_a_history_that_the_code_would_not_write_is_found() -> None:
    other = record((started(), TIMER, events.TimerFired(number=1), COMPLETED))

    assert "(R1)" in "\n".join(check_replay(other, make_program(other)))


# --- signals ---


def received(token: SignalToken) -> AnyEvent:
    return events.SignalReceived(name="s", value=payloads.encode(token, "a token"))


def with_signals(*tokens: SignalToken) -> Sequence[AnyEvent]:
    return (GOOD[0], *map(received, tokens), *GOOD[1:])


def accepted(*tokens: SignalToken) -> ClientLedger:
    ledger = ClientLedger()
    ledger.accepted.extend(("p", "s", token) for token in tokens)
    return ledger


def test_a_signal_that_was_accepted_and_never_received_is_found() -> None:
    assert "lost" in "\n".join(check_signals([record(GOOD)], accepted(SignalToken("c"))))


def test_a_signal_that_was_received_twice_is_found() -> None:
    twice = record(with_signals(SignalToken("c"), SignalToken("c")))

    assert "doubled" in "\n".join(check_signals([twice], accepted(SignalToken("c"))))


def test_a_refused_signal_that_was_received_is_found() -> None:
    assert "doubled" in "\n".join(check_signals([record(with_signals(SignalToken("c")))], ClientLedger()))


def test_a_signal_that_a_continued_run_is_given_again_counts_once() -> None:
    first = record(
        (*with_signals(SignalToken("c"))[:-1], events.ContinuedAs(execution_id="f", workflow="scripted", input=ORDER))
    )
    second = record((started(continued_from="e"), received(SignalToken("c")), *GOOD[1:]), "f")

    assert list(check_signals([first, second], accepted(SignalToken("c")))) == []


def test_a_signal_between_workflows_counts_once_it_is_answered() -> None:
    token = payloads.encode(SignalToken("q.1"), "a token")
    initiated = events.ExternalSignalInitiated(number=2, workflow_id="p", name="s", value=token)
    sender = record((*GOOD[:3], initiated, events.ExternalSignalCompleted(number=2), COMPLETED), "q", "q")

    assert list(check_signals([sender, record(with_signals(SignalToken("q.1")))], ClientLedger())) == []
    assert "lost" in "\n".join(check_signals([sender, record(GOOD)], ClientLedger()))


# --- children ---


def parent_of(end: AnyEvent) -> ExecutionRecord:
    child = events.ChildStarted(number=2, workflow="scripted", workflow_id="c", execution_id="c", input=ORDER)
    return record((*GOOD[:3], child, end, COMPLETED))


def test_a_child_that_never_ran_is_found() -> None:
    assert "never ran" in "\n".join(check_children([parent_of(events.ChildCompleted(number=2, result=NULL))]))


def test_a_parent_that_was_told_another_end_is_found() -> None:
    parent = parent_of(events.ChildFailed(number=2, failure=Failure(type="E", message="m")))

    problems = "\n".join(check_children([parent, record(GOOD, "c", "c")]))

    assert "was told that its child 'c' failed, but it completed" in problems


# --- commits ---


def row(version: int, status: str = "running", execution_id: str = "e") -> ExecutionRow:
    return ExecutionRow("default", execution_id, "p", "w", "", "default", status, version, 0, (), None, 0, 0, None, b"{}")


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([row(1), row(3)], "X3"),
        ([row(1), row(1)], "X3"),
        ([row(1), row(2, "completed"), row(3)], "C4"),
        ([row(1), row(1, execution_id="f")], "I1"),
    ],
)
def test_a_commit_that_must_not_be_is_found(rows: list[ExecutionRow], rule: str) -> None:
    monitor = Monitor()

    for one in rows:
        monitor.note_commit([one], [])

    assert Counter(rule in problem for problem in monitor.problems)[True] == 1


def test_closing_and_opening_one_id_in_one_commit_is_fine() -> None:
    monitor = Monitor()

    monitor.note_commit([row(1)], [])
    monitor.note_commit([row(1, execution_id="f"), row(2, "continued")], [])

    assert monitor.problems == []


def test_T6_event_that_is_earlier_than_the_one_before_it_is_found() -> None:
    monitor = Monitor()

    for first, at in ((1, 5), (2, 5), (3, 4)):
        monitor.note_commit([], [msgspec.structs.replace(make_history("e", first), at=at)])

    assert [problem for problem in monitor.problems if "T6" not in problem] == []
    assert len(monitor.problems) == 1
