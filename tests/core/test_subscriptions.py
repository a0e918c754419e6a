"""Subscriptions and publications within one turn: what begins, ends, goes out, and goes back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import Limits, Turn
from holdfast.core.events import HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.core.payloads import NULL, Payload
from holdfast.core.publications import DeliveryMode, EventOptions, Publication, SubscriptionKind
from holdfast.core.publishing import MOST_OWN
from holdfast.core.turn import fold, take_turn
from tests.core.test_turn import NOW, START, Script, commit, names, start

MESSAGE, EVENT, BROADCAST = SubscriptionKind
SHARED = EventOptions(consume_on_read=False)
VALUE = Payload(msgspec.Raw(b'{"order":7,"by":"ann"}'))


def wait(number: int, kind: SubscriptionKind = MESSAGE, name: str = "paid", **more: object) -> commands.Subscribe:
    return commands.Subscribe(number=number, kind=kind, name=name, **more)  # type: ignore[arg-type]


def publish(kind: SubscriptionKind = MESSAGE, name: str = "paid", **more: object) -> Publication:
    fields = {"id": "m-1", "sent_at": NOW - 5, "value": VALUE} | more
    return Publication(kind=kind, name=name, **fields)  # type: ignore[arg-type]


def triggered(number: int, publication: Publication) -> envelopes.Triggered:
    return envelopes.Triggered(number=number, publication=publication)


def tell(execution: Execution, program: Script, *arrived: envelopes.AnyEnvelope, clock: int = NOW) -> Turn:
    return commit(take_turn(execution, program, arrived, clock))


def begin(*steps: Sequence[commands.AnyCommand]) -> tuple[Turn, Script]:
    execution, program = Execution.register("default", START, NOW), Script(*steps)
    return commit(take_turn(execution, program, [START], NOW)), program


# --- waits ---


def test_subscription_begins_with_the_commit_and_is_open_in_the_history() -> None:
    asked = wait(1, EVENT, where={"order": "7"}, seen=("e-1",))

    turn, _ = begin([asked])

    assert names(turn) == ["WorkflowStarted", "Subscribed"]
    assert turn.subscribed == [asked]
    loaded = Execution.register("default", START, NOW)
    fold(loaded, [HistoryTurn(1, NOW, tuple(turn.events))])
    assert loaded.subscriptions == turn.execution.subscriptions
    assert loaded.subscriptions[1].where == {"order": "7"}


@pytest.mark.parametrize(
    ("asked", "kind", "token"),
    [
        ([wait(1, key="o-1"), wait(2, key="o-2")], "message", "paid (o-1), paid (o-2)"),
        ([wait(1, EVENT, where={"order": "7"})], "event", "paid (order=7)"),
        ([wait(1, BROADCAST), wait(2, BROADCAST, "stop"), wait(3, key="k")], "broadcast", "paid, stop, message paid (k)"),
        ([wait(n, BROADCAST, f"b{n}") for n in range(1, 13)], "broadcast", "b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, …"),
    ],
)
def test_wait_is_described_by_kind_and_name(asked: list[commands.AnyCommand], kind: str, token: str) -> None:
    turn, _ = begin([*asked, commands.StartTimer(number=99, due=NOW + 5)])

    waiting = turn.execution.details.waiting
    assert turn.execution.status is Status.SUSPENDED
    assert waiting is not None
    assert (waiting.kind, waiting.token, waiting.until) == (kind, token, NOW + 5)


def test_message_reaches_the_program_once_and_its_row_is_gone_already() -> None:
    execution, program = start([wait(1, key="o-1")])

    turn = tell(execution, program, triggered(1, publish(key="o-1", headers={"trace": "t"})))

    event = turn.events[0]
    assert isinstance(event, events.SubscriptionTriggered)
    assert (event.value, event.id, event.sent_at, event.headers) == (VALUE, "m-1", NOW - 5, {"trace": "t"})
    assert program.given[-1] == event
    assert execution.subscriptions == {}
    assert turn.ended_subscriptions == []


@pytest.mark.parametrize("published", [publish(BROADCAST), publish(EVENT, event=SHARED, expires_at=NOW + 9)])
def test_what_several_get_leaves_the_subscription_for_the_turn_to_end(published: Publication) -> None:
    execution, program = start([wait(1, published.kind)])

    turn = tell(execution, program, triggered(1, published))

    assert names(turn) == ["SubscriptionTriggered"]
    assert [one.number for one in turn.ended_subscriptions] == [1]
    event = turn.events[0]
    assert isinstance(event, events.SubscriptionTriggered)
    assert event.stays_until == published.expires_at


def test_B3_standing_subscription_stays_and_a_one_shot_is_used_once() -> None:
    execution, program = start([wait(1, BROADCAST, standing=True), wait(2, BROADCAST)])

    turn = tell(execution, program, *(triggered(number, publish(BROADCAST)) for number in (1, 2, 1, 2)))

    assert [one.number for one in program.given[1:]] == [1, 2, 1]  # type: ignore[union-attr]
    assert [one.number for one in turn.ended_subscriptions] == [2]
    assert list(execution.subscriptions) == [1]


def test_subscription_that_ends_in_the_turn_that_began_it_never_reaches_the_store() -> None:
    execution, program = start((), [wait(1)], [commands.Unsubscribe(number=1)])
    signal = envelopes.Signal(name="x", value=NULL)

    turn = tell(execution, program, signal, signal)

    assert names(turn) == ["SignalReceived", "Subscribed", "SignalReceived", "Unsubscribed"]
    assert (turn.subscribed, turn.ended_subscriptions) == ([], [])


def test_unsubscribing_ends_the_row_and_twice_changes_nothing() -> None:
    execution, program = start([wait(1)], [commands.Unsubscribe(number=1), commands.Unsubscribe(number=1)])

    turn = tell(execution, program, envelopes.Signal(name="x", value=NULL))

    assert names(turn) == ["SignalReceived", "Unsubscribed"]
    assert [one.number for one in turn.ended_subscriptions] == [1]


def test_M1_refused_subscription_fails_with_the_holder_and_leaves_nothing_open() -> None:
    execution, program = start([wait(1, key="o-1")])

    turn = tell(execution, program, envelopes.SubscriptionRefused(number=1, holder="other-execution"))
    again = tell(execution, program, envelopes.SubscriptionRefused(number=1, holder="other-execution"))

    event = turn.events[0]
    assert isinstance(event, events.SubscriptionFailed)
    assert event.failure.type == "MessageKeyTaken"
    assert "other-execution" in event.failure.message
    assert execution.subscriptions == {}
    assert again.events == []


# --- what comes too late ---


@pytest.mark.parametrize("published", [publish(key="k", expires_at=NOW + 9), publish(EVENT)])
def test_message_or_consumed_event_that_comes_too_late_is_published_again(published: Publication) -> None:
    execution, program = start()

    turn = tell(execution, program, triggered(1, published))

    assert turn.events == []
    assert turn.writes
    [item] = turn.publications
    assert item.publication == published
    assert item.is_returned
    assert item.number == 0
    assert item.fields == ({"order": "7", "by": '"ann"'} if published.kind is EVENT else {})


@pytest.mark.parametrize("published", [publish(BROADCAST), publish(EVENT, event=SHARED)])
def test_what_others_have_too_is_dropped_if_it_comes_too_late(published: Publication) -> None:
    execution, program = start()

    turn = tell(execution, program, triggered(1, published))

    assert turn.publications == []
    assert not turn.writes


def test_execution_may_close_over_a_message_which_goes_back() -> None:
    execution, program = start([wait(1, key="k"), wait(2, BROADCAST)], [commands.Complete(result=NULL)])

    turn = tell(
        execution,
        program,
        envelopes.Signal(name="x", value=NULL),
        triggered(1, publish(key="k")),
        triggered(2, publish(BROADCAST)),
    )

    assert execution.status is Status.COMPLETED
    assert not turn.has_unseen
    assert [item.publication.kind for item in turn.publications] == [MESSAGE]
    assert [one.number for one in turn.ended_subscriptions] == [1, 2]


def test_closing_ends_all_subscriptions_also_without_a_program() -> None:
    asked = [wait(1, key="k"), wait(2, BROADCAST, standing=True), wait(3, EVENT)]
    execution, program = start(asked)

    turn = tell(execution, program, envelopes.Terminate())

    assert [one.number for one in turn.ended_subscriptions] == [1, 2, 3]
    assert execution.subscriptions == {}


def test_next_run_has_no_subscriptions_and_late_messages_go_to_whoever_waits() -> None:
    again = commands.ContinueAs(workflow="order", input=NULL)
    execution, program = start([wait(1, key="k")], [again])
    execution.execution_id = "0197745a-0000-7abc-8def-0123456789ab"

    turn = tell(execution, program, envelopes.Signal(name="x", value=NULL), triggered(1, publish(key="k")))

    assert turn.successor is not None
    assert [one.number for one in turn.ended_subscriptions] == [1]
    assert [item.is_returned for item in turn.publications] == [True]
    assert turn.successor_envelopes == []


def test_value_that_does_not_fit_goes_to_the_dead_letters_and_anything_else_goes_back() -> None:
    execution, program = start(
        [wait(1), wait(2)], [commands.DeclinePublication(number=1, reason="no int")], [commands.DeclinePublication(number=2)]
    )
    first, second = publish(id="a"), publish(id="b")

    turn = tell(execution, program, triggered(1, first), triggered(2, second))

    [letter] = turn.dead_letters
    assert letter.envelope == triggered(1, first)
    assert (letter.reason, letter.is_rejected) == ("no int", True)
    assert [item.publication for item in turn.publications] == [second]


# --- what it publishes ---


def test_message_leaves_by_the_outbox_with_its_expiry() -> None:
    sent = commands.PublishMessage(number=1, name="paid", key="k", value=VALUE, ttl_us=5, message_id="m")

    turn, _ = begin([sent, commands.PublishMessage(number=2, name="paid", key="k")])

    first, second = turn.publications
    assert (first.publication.id, first.publication.expires_at, first.number) == ("m", NOW + 5, 1)
    assert (second.publication.id, second.publication.expires_at, second.number) == ("e:2", None, 2)
    assert names(turn) == ["WorkflowStarted", "MessagePublished", "MessagePublished"]
    waiting = turn.execution.details.waiting
    assert waiting is not None
    assert (waiting.kind, waiting.token) == ("publication_answer", "1")


@pytest.mark.parametrize(
    ("options", "expires_at"),
    [
        (EventOptions(), NOW + 60 * SECOND),
        (EventOptions(expire_after_us=5), NOW + 5),
        (EventOptions(delivery_mode=DeliveryMode.AFTER_WAIT, expire_after_us=5), None),
    ],
)
def test_E1_event_is_kept_for_as_long_as_its_type_or_the_engine_says(options: EventOptions, expires_at: int | None) -> None:
    execution = Execution.register("default", START, NOW)
    sent = commands.SendEvent(number=1, name="paid", value=VALUE, fields={"order": "7"}, options=options, workflow_id="w-2")

    turn = take_turn(execution, Script([sent]), [START], NOW, Limits(event_retention=60 * SECOND))

    [item] = turn.publications
    assert item.publication.expires_at == expires_at
    assert item.publication.target == "w-2"
    assert (item.publication.event or EventOptions()) == options
    assert item.fields == {"order": "7"}


def test_answer_to_a_publication_counts_once() -> None:
    execution, program = start([commands.PublishMessage(number=1, name="paid", key="k")])
    answer = envelopes.PublicationAnswered(number=1, delivered=1)

    turn = tell(execution, program, answer, answer)

    assert turn.events == [events.PublicationCompleted(number=1, delivered=1)]
    assert execution.publications == {}


def test_refused_publication_fails() -> None:
    execution, program = start([commands.PublishMessage(number=1, name="paid", key="k")])
    no = Failure(type="MessageNotExpected", message="nobody")

    turn = tell(execution, program, envelopes.PublicationAnswered(number=1, failure=no))

    assert turn.events == [events.PublicationFailed(number=1, failure=no)]


# --- own broadcast signals ---


def test_B2_own_signal_triggers_own_waits_within_the_turn_after_the_whole_step() -> None:
    throw: list[commands.AnyCommand] = [
        commands.Broadcast(number=3, name="stop", value=VALUE),
        wait(4, BROADCAST, "stop"),
        commands.Unsubscribe(number=2),
    ]
    asked = [wait(number, BROADCAST, "stop") for number in (1, 2)]
    execution, program = start([*asked, wait(9, BROADCAST, "other")], throw)

    turn = tell(execution, program, envelopes.Signal(name="x", value=NULL))

    assert names(turn) == ["SignalReceived", "SignalBroadcast", "Subscribed", "Unsubscribed", "SubscriptionTriggered"]
    thrown, given = turn.events[1], turn.events[-1]
    assert isinstance(thrown, events.SignalBroadcast)
    assert isinstance(given, events.SubscriptionTriggered)
    assert (given.number, given.value) == (1, VALUE)
    assert program.given[-1] == given
    assert [one.number for one in turn.subscribed] == [4]
    assert sorted(one.number for one in turn.ended_subscriptions) == [1, 2]
    answered = tell(execution, program, envelopes.PublicationAnswered(number=3, delivered=5, started=1))
    assert answered.events == [events.PublicationCompleted(number=3, delivered=5 + thrown.caught, started=1)]


def test_wait_and_throw_in_one_step_need_no_row() -> None:
    turn, _ = begin([wait(1, BROADCAST, "go"), commands.Broadcast(number=2, name="go")], [commands.Complete(result=NULL)])

    assert names(turn) == [
        "WorkflowStarted",
        "Subscribed",
        "SignalBroadcast",
        "SubscriptionTriggered",
        "WorkflowCompleted",
    ]
    assert (turn.subscribed, turn.ended_subscriptions) == ([], [])
    assert [item.publication.name for item in turn.publications] == ["go"]


def test_own_signals_stop_where_one_of_them_closes_the_execution() -> None:
    asked: list[commands.AnyCommand] = [
        wait(1, BROADCAST, "go"),
        wait(2, BROADCAST, "go"),
        commands.Broadcast(number=3, name="go"),
    ]

    turn, program = begin(asked, [commands.Complete(result=NULL)])

    assert names(turn)[-2:] == ["SubscriptionTriggered", "WorkflowCompleted"]
    assert len(program.given) == 2


def test_code_that_answers_its_own_signals_for_ever_comes_to_rest() -> None:
    def answer(number: int) -> list[commands.AnyCommand]:
        return [wait(number, BROADCAST, "go"), commands.Broadcast(number=number + 1, name="go")]

    steps = [answer(2 * number + 1) for number in range(MOST_OWN + 10)]

    turn, program = begin(*steps)

    assert len(program.given) == 1 + MOST_OWN
    [sent] = turn.outgoing
    assert sent.execution_id == "e"
    assert isinstance(sent.envelope, envelopes.Triggered)
    following = tell(turn.execution, program, sent.envelope)
    assert names(following)[0] == "SubscriptionTriggered"
