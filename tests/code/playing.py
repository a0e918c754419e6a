"""One execution played by hand: real programs and real turns, without a store or an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.code import deterministic_asyncio, guard
from holdfast.code.definitions import Workflow
from holdfast.code.program import CodeProgram
from holdfast.core import codec, envelopes, events, payloads
from holdfast.core.effects import Turn
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.instants import SECOND
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.core.publications import Publication, SubscriptionKind
from holdfast.core.turn import take_turn

BEGIN = 1_750_000_000 * SECOND
EXECUTION_ID = "0197745a-0000-7abc-8def-0123456789ab"

guard.install()
deterministic_asyncio.install()


class Play:
    """An execution from its start on. Every call is one turn; `history` is what was recorded."""

    def __init__(self, workflow: Workflow[..., Any], *args: Any, execution_id: str = EXECUTION_ID, **start: Any) -> None:
        self.workflow = workflow
        self.now = BEGIN
        self.history: list[HistoryTurn] = []
        self.dead_letters: list[str] = []
        self.sent: list[AnyEnvelope] = []
        self.blocked: Failure | None = None
        encoded = workflow.signature.encode_arguments(args, {}, DEFAULT_LIMIT)
        opening = envelopes.Start(
            execution_id=execution_id, workflow_id="play", workflow=workflow.name, input=encoded, **start
        )
        self.execution = Execution.register("default", opening, self.now)
        self.program = CodeProgram(workflow, "default", execution_id)
        self.tell(opening)

    # --- what happens to it ---

    def tell(self, *arrived: AnyEnvelope, hold_signals: bool = False) -> Turn:
        """One turn with these envelopes."""
        turn = take_turn(self.execution, self.program, arrived, self.now, holds=hold_signals)
        self.blocked = turn.blocked
        if turn.events and turn.blocked is None:
            # Through JSON and back, as a store gives it.
            recorded = codec.decode_events(codec.encode(turn.events), codec.SCHEMA)
            self.history.append(HistoryTurn(self.execution.sequence + 1, turn.now, recorded))
            self.execution.sequence += len(turn.events)
        self.dead_letters += [one.reason for one in turn.dead_letters]
        self.sent += [one.envelope for one in turn.outgoing]
        return turn

    def complete(self, number: int, value: Any = None) -> None:
        """The activity returned."""
        result = payloads.encode(value, "a result")
        self.tell(envelopes.ActivityReturned(number=number, attempt=1, result=result))

    def fail(self, number: int, error: Exception) -> None:
        """The activity raised, for good."""
        failure = msgspec.structs.replace(describe_exception(error), non_retryable=True)
        self.tell(envelopes.ActivityRaised(number=number, attempt=1, failure=failure))

    def finish_child(self, number: int, value: Any = None) -> None:
        """The child returned."""
        child = self.execution.children[number].execution_id
        result = payloads.encode(value, "a result")
        self.tell(envelopes.ChildClosed(number=number, execution_id=child, result=result))

    def signal(self, name: str, value: Any = None) -> None:
        """A signal arrived."""
        self.tell(make_signal(name, value))

    def publish(self, publication: Publication, number: int | None = None) -> Turn:
        """Something was published that the oldest open subscription for it waits for, or the one of that number."""
        if number is None:
            matching = [
                one.number
                for one in self.execution.subscriptions.values()
                if (one.kind, one.name, one.key) == (publication.kind, publication.name, publication.key)
            ]
            assert matching, f"nothing waits for it: {self.execution.subscriptions}"
            number = min(matching)
        return self.tell(envelopes.Triggered(number=number, publication=publication))

    def cancel(self) -> None:
        """Somebody asked for it to be cancelled."""
        self.tell(envelopes.Cancel())

    def fire(self) -> None:
        """Time moves on to the earliest timer."""
        number = min(self.execution.timers, key=lambda one: (self.execution.timers[one], one))
        self.now = max(self.now, self.execution.timers[number])
        self.tell(envelopes.TimerDue(number=number))

    def run(self, answer: Callable[[str, list[Any]], Any], signals: Iterable[tuple[str, Any]] = ()) -> Any:
        """Play on to the end: activities are answered in an order of their own, then signals come, then timers fire."""
        waiting = list(signals)
        while self.execution.closed_at is None and self.blocked is None:
            if self.execution.activities:
                number = min(self.execution.activities, key=lambda one: (one * 7_919 % 13, one))
                self._answer(number, answer)
            elif self.execution.children:
                self.finish_child(min(self.execution.children), "child")
            elif waiting and waiting[0][0] in self.program.waiting_signals():
                self.signal(*waiting.pop(0))
            else:
                assert self.execution.timers, f"it waits for nothing that can come: {self.kinds}"
                self.fire()
        return self.result

    def _answer(self, number: int, answer: Callable[[str, list[Any]], Any]) -> None:
        scheduled = self.execution.activities[number].event
        try:
            value = answer(scheduled.name, msgspec.json.decode(scheduled.input.data))
        except Exception as error:
            self.fail(number, error)
        else:
            self.complete(number, value)

    # --- what became of it ---

    @property
    def events(self) -> list[AnyEvent]:
        """Everything that was recorded."""
        return [event for turn in self.history for event in turn.events]

    @property
    def kinds(self) -> list[str]:
        """The names of everything that was recorded."""
        return [type(event).__name__ for event in self.events]

    @property
    def asked(self) -> list[str]:
        """What the program asked for, in order, as text."""
        return [_describe(event) for event in self.events if type(event) in events.RECORDED]

    @property
    def result(self) -> Any:
        """What it returned. Fails the test if it did not."""
        last = self.events[-1]
        assert isinstance(last, events.WorkflowCompleted), self.blocked or last
        return msgspec.json.decode(last.result.data)

    @property
    def failure(self) -> Failure:
        """Why it failed. Fails the test if it did not."""
        last = self.events[-1]
        assert isinstance(last, events.WorkflowFailed), self.blocked or last
        return last.failure

    # --- again ---

    def replay(self, workflow: Workflow[..., Any] | None = None) -> Failure | None:
        """Give its history to a fresh program, of other code if given; what that has against it."""
        return replay(workflow or self.workflow, self.history, self.execution.execution_id)


def replay(workflow: Workflow[..., Any], history: list[HistoryTurn], execution_id: str = EXECUTION_ID) -> Failure | None:
    """Give a history to a fresh program; what that has against it."""
    program = CodeProgram(workflow, "default", execution_id)
    failure = program.apply(history)
    program.close()
    return failure


def make_signal(name: str, value: Any = None) -> envelopes.Signal:
    """A signal as it arrives."""
    return envelopes.Signal(name=name, value=payloads.encode(value, "a signal"))


def message(name: str, key: str, value: Any = None, **more: Any) -> Publication:
    """A message as it arrives."""
    return _published(SubscriptionKind.MESSAGE, name, value, key=key, **more)


def broadcast(name: str, value: Any = None) -> Publication:
    """A broadcast signal as it arrives."""
    return _published(SubscriptionKind.BROADCAST, name, value)


def sent_event(name: str, value: Any, **more: Any) -> Publication:
    """A typed event as it arrives."""
    return _published(SubscriptionKind.EVENT, name, value, **more)


def _published(kind: SubscriptionKind, name: str, value: Any, **more: Any) -> Publication:
    fields: dict[str, Any] = {"id": f"{name}-1", "sent_at": BEGIN} | more
    return Publication(kind=kind, name=name, value=payloads.encode(value, "a value"), **fields)


def _describe(event: AnyEvent) -> str:
    return codec.encode(event).decode()
