"""A node's store that refuses what poison turns write, and answers nothing to a node whose process a turn has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.core.instants import Instant
from holdfast.errors import OutcomeUnknown, StoreError, StoreFault, StoreUnavailable
from holdfast.simulation.forwarded_schedules import ForwardedSchedules
from holdfast.simulation.plans import PoisonKind
from holdfast.store.contract import Claim, Claimed, Store, Transaction, TurnWrite, UnroutedWrite
from holdfast.store.nodes import InFlightMark
from holdfast.store.publications import (
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    SpreadHead,
    StartSubscriptionRow,
)
from holdfast.store.rows import ExecutionRow, HistoryRow, RequestKeyId, RequestRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.tasks import TaskKey, TaskRow

T = TypeVar("T")


class RefusedWrite(StoreError):
    """What a poison turn writes is refused, each time, with an error that says nothing of an outage."""


class Refusals(Protocol):
    """Says which writes are refused, and whether a process has ended."""

    async def wait_if_dead(self, node: str) -> None:
        """Never return to a node whose process has ended."""
        ...

    def find_refused(self, turns: Sequence[TurnWrite]) -> PoisonKind | None:
        """Why the store does not take these turns; None if it does."""
        ...

    async def hold_up(self, node: str) -> None:
        """Let a node wait as long as the store tries a turn before it gives it up."""
        ...

    def breaks_in_commit(self) -> bool:
        """Whether a connection that breaks does so in the commit, not before it."""
        ...


class PoisonedStore:
    """A store in front of that of a node."""

    def __init__(self, store: Store, refusals: Refusals, node: str) -> None:
        self._store = store
        self._refusals = refusals
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def begin(self) -> Transaction:
        await self._refusals.wait_if_dead(self._node)
        return PoisonedTransaction(await self._store.begin(), self._refusals, self._node)

    async def was_committed(self, transaction: Transaction) -> bool:
        if not isinstance(transaction, PoisonedTransaction):
            return await self._store.was_committed(transaction)
        return not transaction.is_refused and await self._store.was_committed(transaction.inner)


class PoisonedTransaction(ForwardedSchedules):
    """A transaction that fails if a poison turn is among what it writes."""

    def __init__(self, inner: Transaction, refusals: Refusals, node: str) -> None:
        self.inner = inner
        self.is_refused = False
        self._refusals = refusals
        self._node = node
        self._breaks_in_commit = False

    def _find_inner(self) -> Transaction:
        return self.inner

    async def claim(self, claim: Claim) -> Claimed:
        return await self._do(lambda: self.inner.claim(claim))

    async def read_history(self, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
        return await self._do(lambda: self.inner.read_history(after))

    async def read_snapshots(self, execution_ids: Collection[str]) -> dict[str, SnapshotRow]:
        return await self._do(lambda: self.inner.read_snapshots(execution_ids))

    async def read_rows(self, execution_ids: Collection[str]) -> dict[str, ExecutionRow]:
        return await self._do(lambda: self.inner.read_rows(execution_ids))

    async def count_waiting(self, execution_ids: Collection[str], limit: int) -> dict[str, int]:
        return await self._do(lambda: self.inner.count_waiting(execution_ids, limit))

    async def read_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        return await self._do(lambda: self.inner.read_latest(org, workflow_id))

    async def read_requests(self, keys: Collection[RequestKeyId], now: Instant) -> dict[RequestKeyId, RequestRow]:
        return await self._do(lambda: self.inner.read_requests(keys, now))

    async def lock_offers(self, keys: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        return await self._do(lambda: self.inner.lock_offers(keys))

    async def lock_tasks(self, keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow | None]:
        return await self._do(lambda: self.inner.lock_tasks(keys))

    async def mark_in_flight(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        return await self._do(lambda: self.inner.mark_in_flight(process, slot, versions))

    async def write(self, turns: Sequence[TurnWrite], unrouted: UnroutedWrite) -> set[str]:
        kind = self._refusals.find_refused(turns)
        if kind is PoisonKind.CUT and self._refusals.breaks_in_commit():
            self._breaks_in_commit = True
        elif kind is not None:
            await self._refuse(kind)
        return await self._do(lambda: self.inner.write(turns, unrouted))

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        return await self._do(lambda: self.inner.read_starts(names, org))

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        return await self._do(lambda: self.inner.read_outbox(limit, skip))

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        return await self._do(lambda: self.inner.publish(items, now))

    async def drop_publications(self, ids: Sequence[int]) -> None:
        await self._do(lambda: self.inner.drop_publications(ids))

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        return await self._do(lambda: self.inner.read_kept_messages(ids))

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        return await self._do(lambda: self.inner.read_unstarted(names, now, limit, after))

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        return await self._do(lambda: self.inner.find_spread(skip))

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        return await self._do(lambda: self.inner.spread(limit, now, skip))

    async def commit(self) -> None:
        if self._breaks_in_commit:
            self.is_refused = True
            await self.inner.rollback()
            raise OutcomeUnknown("Expected to hear of the commit, but the connection broke. Ask was_committed.")
        await self._do(self.inner.commit)

    async def rollback(self) -> None:
        await self._do(self.inner.rollback)

    async def _do(self, operation: Callable[[], Awaitable[T]]) -> T:
        await self._refusals.wait_if_dead(self._node)
        return await operation()

    async def _refuse(self, kind: PoisonKind) -> None:
        await self._refusals.wait_if_dead(self._node)
        if kind is PoisonKind.TIMED_OUT:
            await self._refusals.hold_up(self._node)
        self.is_refused = True
        await self.inner.rollback()
        match kind:
            case PoisonKind.TIMED_OUT:
                raise StoreUnavailable("Expected to write, but it took too long.", fault=StoreFault.TIMED_OUT)
            case PoisonKind.SHORTAGE:
                raise StoreUnavailable("Expected to write, but the disk is full.", fault=StoreFault.SHORTAGE)
            case PoisonKind.CUT:
                raise StoreUnavailable("Expected to write, but the connection broke.", fault=StoreFault.OUT_OF_REACH)
        raise RefusedWrite("Expected to write, but the database does not take this row.")
