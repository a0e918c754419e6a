"""Rows to test with, real ones: whatever is stored here can be decoded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from holdfast.core import codec
from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import Signal
from holdfast.core.events import PatchRecorded
from holdfast.core.execution import Details
from holdfast.core.ids import make_execution_id
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import Status
from holdfast.core.payloads import NULL
from holdfast.store.contract import Claim, Claimed, Store, Transaction, TurnWrite, UnroutedWrite, Wanted
from holdfast.store.rows import ActivityRow, DeadLetterRow, ExecutionRow, HistoryRow, InboxRow, RequestRow, TimerRow

ORG = "default"
OTHER = "other"
NOW: Instant = 1_750_000_000 * SECOND
DETAILS = codec.encode(Details(metadata={"by": "ann"}))


def id_of(number: int) -> str:
    """Execution ids in the order of their numbers."""
    return make_execution_id(NOW + number * SECOND, number)


def make_row(number: int = 1, **columns: Any) -> ExecutionRow:
    """A new execution's row after its first turn; its workflow id is `order-<number>` unless it is said otherwise."""
    row = ExecutionRow(
        org=ORG,
        execution_id=id_of(number),
        workflow_id=f"order-{number}",
        workflow="order",
        code_version="1",
        queue="default",
        status=Status.RUNNING,
        state_version=1,
        sequence=1,
        nodes=(),
        parent_id=None,
        created_at=NOW + number * SECOND,
        updated_at=NOW + number * SECOND,
        closed_at=None,
        details=DETAILS,
    )
    return msgspec.structs.replace(row, **columns)


def make_history(execution_id: str, first: int = 1, count: int = 1) -> HistoryRow:
    body = codec.encode([PatchRecorded(patch=f"{first + offset}") for offset in range(count)])
    return HistoryRow(execution_id, first, count, NOW + first, codec.SCHEMA, body)


def make_start(row: ExecutionRow, **writes: Any) -> TurnWrite:
    """The first turn of an execution."""
    return TurnWrite(row=row, expected_version=None, history=make_history(row.execution_id), **writes)


def make_turn(row: ExecutionRow, status: str = Status.SUSPENDED, *, events: int = 1, **writes: Any) -> TurnWrite:
    """The turn that follows on `row`."""
    closed_at = NOW + 10**9 if Status(status).is_closed else None
    following = msgspec.structs.replace(
        row,
        status=status,
        state_version=row.state_version + 1,
        sequence=row.sequence + events,
        updated_at=row.updated_at + 1,
        closed_at=closed_at,
    )
    history = make_history(row.execution_id, row.sequence + 1, events) if events else None
    return TurnWrite(row=following, expected_version=row.state_version, history=history, **writes)


def make_closing(row: ExecutionRow, status: str = Status.COMPLETED, **writes: Any) -> TurnWrite:
    return make_turn(row, status, **writes)


def make_signal(name: str, number: int | None = 1, *, org: str = ORG, workflow_id: str = "", route: str = "") -> InboxRow:
    """A signal for execution `number`, or for a workflow id."""
    execution_id = "" if number is None else id_of(number)
    return InboxRow(org, execution_id, workflow_id, codec.encode(Signal(name=name, value=NULL)), route=route)


def make_timer(number: int, due: int, *, of: int = 1, org: str = ORG, route: str = "") -> TimerRow:
    """Timer `number` of execution `of`, due so many seconds after NOW."""
    return TimerRow(org, id_of(of), number, NOW + due * SECOND, route=route)


def make_retry(number: int, due: int, attempt: int) -> TimerRow:
    """The timer at whose end attempt `attempt` of activity `number` of the first execution begins."""
    return msgspec.structs.replace(make_timer(number, due), kind=TimerKind.RETRY, attempt=attempt)


def make_offer_timer(number: int, due: int, attempt: int = 1, *, of: int = 1) -> TimerRow:
    """The timer at whose end activity `number` of execution `of` has been offered for long enough."""
    return msgspec.structs.replace(make_timer(number, due, of=of), kind=TimerKind.OFFER, attempt=attempt)


def make_offer(number: int, route: str = "", *, of: int = 1, attempt: int = 1, org: str = ORG) -> ActivityRow:
    """Activity `number` of execution `of`, for whoever goes by the route."""
    return ActivityRow(org, id_of(of), number, attempt, route, b"activity %d" % number)


def make_letter(name: str, number: int = 1, *, org: str = ORG, attempts: int = 0, at: int = 0) -> DeadLetterRow:
    """A signal that could not be handled; it became a dead letter so many seconds after NOW."""
    body = codec.encode(Signal(name=name, value=NULL))
    return DeadLetterRow(org, id_of(number), f"order-{number}", body, f"{name} is poison", "a", NOW + at * SECOND, attempts)


def make_request(key: str, *, org: str = ORG, kind: str = "start", expires: int = 60) -> RequestRow:
    return RequestRow(org, kind, key, id_of(1), 3, NOW + expires * SECOND)


def names_of(rows: Sequence[InboxRow | DeadLetterRow]) -> list[str]:
    """The names of the signals that rows hold."""
    envelopes = [codec.decode_envelope(row.body) for row in rows]
    return [envelope.name for envelope in envelopes if isinstance(envelope, Signal)]


def want(*numbers: int, known_version: int = -1, org: str = ORG) -> Claim:
    """A claim of these executions and nothing else."""
    return Claim(wanted=[Wanted(org, id_of(number), known_version) for number in numbers])


def want_whole(*numbers: int) -> Claim:
    """A claim of these executions with everything that waits for them, whether they take turns or not."""
    return Claim(wanted=[Wanted(ORG, id_of(number), whole_inbox=True) for number in numbers])


async def commit(store: Store, *turns: TurnWrite, loose: UnroutedWrite | None = None) -> set[str]:
    """Write these turns in a transaction of their own; which of them were lost."""
    transaction = await store.begin()
    lost = await transaction.write(turns, loose or UnroutedWrite())
    await transaction.commit()
    return lost


async def commit_unrouted(store: Store, *outgoing: InboxRow, **loose: Any) -> None:
    await commit(store, loose=UnroutedWrite(outgoing=list(outgoing), **loose))


async def look(store: Store, claim: Claim) -> Claimed:
    """What a claim finds, given up again at once."""
    transaction = await store.begin()
    claimed = await transaction.claim(claim)
    await transaction.rollback()
    return claimed


async def read_request(transaction: Transaction, org: str, kind: str, key: str, now: Instant) -> RequestRow | None:
    """What a transaction finds under one key."""
    found = await transaction.read_requests([(org, kind, key)], now)
    return found.get((org, kind, key))


async def begin_with(store: Store, claim: Claim) -> tuple[Transaction, Claimed]:
    """A transaction that has claimed something and stays open."""
    transaction = await store.begin()
    return transaction, await transaction.claim(claim)


async def read_row(store: Store, number: int = 1, org: str = ORG) -> ExecutionRow:
    """An execution's row, which must be there."""
    row = await store.find_execution(org, id_of(number))
    assert row is not None
    return row


async def read_inbox(store: Store, skip: Collection[str] = ()) -> list[InboxRow]:
    """Everything in the inbox that can be claimed."""
    return (await look(store, Claim(limit=1000, skip=skip))).inbox
