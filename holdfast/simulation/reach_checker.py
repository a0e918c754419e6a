"""Checks after a run of what reached programs beside signals: taken once, answered as recorded, and nothing left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from holdfast.core import events
from holdfast.core.publications import SubscriptionKind
from holdfast.errors import StoreUnavailable
from holdfast.simulation.clients import ClientLedger
from holdfast.simulation.outcomes import ORG, ExecutionRecord, read
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.reach_plans import MESSAGE, STARTING_MESSAGE
from holdfast.store.contract import Store

CONSUMED: Final = (
    (SubscriptionKind.MESSAGE, MESSAGE),
    (SubscriptionKind.MESSAGE, STARTING_MESSAGE),
    (SubscriptionKind.EVENT, "simulated-order"),
)
"""What is taken by one program: none of it may be kept when all have ended."""


async def has_outbox(store: Store) -> bool:
    """Whether something waits to be published. If the database goes back meanwhile, that cannot be told: maybe."""
    transaction = await store.begin()
    try:
        return bool(await transaction.read_outbox(1)) or bool(await transaction.spread(1, 0))
    except StoreUnavailable:
        return True
    finally:
        await transaction.rollback()


async def check_left(store: Store, records: Sequence[ExecutionRecord]) -> list[str]:
    """All executions are closed: no subscription, nothing to be published, and nothing for one program may be left."""
    problems = []
    if await has_outbox(store):
        problems.append("the outbox is not empty though everything should have ended")
    for kind, name in CONSUMED:
        problems.extend(
            f"{kind} '{name}' with key '{kept.key}' is still kept: {kept.body!r}"
            for kept in await store.list_pending(ORG, kind, name, 0)
        )
    for record in records:
        problems.extend(
            f"{record.name}: its subscription {row.number} to {row.kind} '{row.name}' is left"
            for row in await store.list_subscriptions(ORG, record.row.execution_id)
        )
    return problems


def check_reached(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Messages were taken once, updates answered as recorded, tasks completed by one client."""
    yield from check_messages(records, ledger)
    yield from check_updates(records, ledger)
    yield from check_completions(records, ledger)


# --- messages ------------------------------------------------------------------------------------------------------------


def check_messages(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Each accepted message was taken exactly once; one that came too late and was put back counts where it was taken."""
    accepted = Counter(ledger.messages)
    accepted.update(message for record in records for message in _sent_by(record))
    taken = Counter(message for record in records for message in _taken_by(record))
    for message in accepted.keys() | taken.keys():
        if accepted[message] != taken[message]:
            how = "lost" if accepted[message] > taken[message] else "doubled"
            yield f"message {message} was accepted {accepted[message]} times and taken {taken[message]} times: {how} (M2)"


def _sent_by(record: ExecutionRecord) -> Iterator[tuple[str, SignalToken]]:
    answered = {event.number for event in record.events if type(event) is events.PublicationCompleted}
    for event in record.events:
        if type(event) is events.MessagePublished and event.number in answered:
            yield event.key, msgspec.convert(read(event.value), SignalToken)


def _taken_by(record: ExecutionRecord) -> Iterator[tuple[str, SignalToken]]:
    waits = {
        event.number: event
        for event in record.events
        if type(event) is events.Subscribed and (event.kind, event.name) == (SubscriptionKind.MESSAGE, MESSAGE)
    }
    declined = {event.number for event in record.events if type(event) is events.PublicationDeclined}
    for event in record.events:
        if type(event) is events.SubscriptionTriggered and event.number in waits and event.number not in declined:
            yield waits[event.number].key, msgspec.convert(read(event.value), SignalToken)


# --- updates -------------------------------------------------------------------------------------------------------------


def check_updates(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Each answered update was handled exactly once, and its answer is the recorded one."""
    handled: dict[tuple[str, SignalToken], list[Any]] = {}
    for record in records:
        answers = {event.update: read(event.result) for event in record.events if type(event) is events.UpdateCompleted}
        for event in record.events:
            if type(event) is events.UpdateAccepted and event.update in answers:
                token = msgspec.convert(read(event.value), SignalToken)
                handled.setdefault((record.row.workflow_id, token), []).append(answers[event.update])
    for target, token, answer in ledger.updates:
        found = handled.pop((target, token), [])
        if found != [answer]:
            yield f"update {token} of '{target}' was answered {answer!r}, but its handler returned {found}"
    for (target, token), answers_of_nobody in handled.items():
        yield f"update {token} of '{target}' was handled, but nobody was answered {answers_of_nobody}"


# --- people --------------------------------------------------------------------------------------------------------------


def check_completions(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Each completed task was completed by exactly one client (H1)."""
    completed = Counter(ledger.completions)
    for record in records:
        names = {event.number: event.name for event in record.events if type(event) is events.TaskCreated}
        for event in record.events:
            if type(event) is not events.TaskCompleted:
                continue
            if completed.pop(names[event.number], 0) != 1:
                yield f"{record.name}: task '{names[event.number]}' was completed, but not by exactly one client (H1)"
    for name in completed:
        yield f"a client was told that it completed task '{name}', but its workflow was not (H1)"
