"""What the transaction of a batch holds, and what it has read: the facts on which the batch's plan rests.

Everything here only grows: a claim or a look-up adds facts, nothing is taken back before the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import AnyEnvelope, Cancel, Signal, Terminate, Update
from holdfast.core.instants import Instant
from holdfast.engine.payload_codecs import check_decoded
from holdfast.engine.requests import AnyRequest, Request, WorkflowIdLookup
from holdfast.engine.turns.arrivals import Arrival
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.contract import Claim, Claimed, Wanted, Withheld
from holdfast.store.rows import ExecutionRow, InboxRow, RequestKeyId, RequestRow, TimerRow

if TYPE_CHECKING:
    from holdfast.core.request_keys import RequestKey
    from holdfast.engine.turns.pauses import PauseView
    from holdfast.engine.turns.services import TurnServices
    from holdfast.store.contract import Transaction

WorkflowKey: TypeAlias = tuple[str, str]
"""(org, workflow id)."""
ExecutionName: TypeAlias = str | WorkflowKey
"""What an execution goes by: its execution id, or its org and workflow id."""

ORDER_PREFIX: Final = codec.encode(Terminate()).removesuffix(b"}")
"""How the body of an order to terminate begins, whatever its reason: it concerns also executions that take no turns."""


class ClaimTarget(msgspec.Struct, frozen=True, gc=False):
    """An execution whose inbox and due timers a batch takes; also what waits under its workflow id, where that is given."""

    org: str
    execution_id: str
    workflow_id: str = ""


class BatchOrder(msgspec.Struct, frozen=True):
    """What one batch is to do."""

    requests: Sequence[AnyRequest]
    targets: Sequence[ClaimTarget] = ()
    """Executions to take beside those that the requests are for."""
    limit: int = 0
    """How many executions to take beyond those: whichever have inbox rows or due timers on this node's routes."""
    skip: Collection[str] = ()
    """Executions to leave alone when looking for such."""
    skip_workflow_ids: Collection[WorkflowKey] = ()
    """Workflow ids of which to leave alone what is addressed by them alone."""


class Lookups(msgspec.Struct):
    """Facts that a plan needs and the claims do not have: a step of the plan. Once they are read, the plan is made anew.

    Dicts serve as sets that keep their order, so that a simulated run can be repeated.
    """

    workflow_ids: dict[WorkflowKey, None] = msgspec.field(default_factory=dict)
    """Workflow ids to hold, with what waits under them."""
    request_keys: dict[RequestKeyId, None] = msgspec.field(default_factory=dict)
    """Keys of requests to hold against other nodes."""
    rows: dict[str, None] = msgspec.field(default_factory=dict)
    """Executions that are not held, to be read as they are."""
    latest: dict[WorkflowKey, None] = msgspec.field(default_factory=dict)
    """Workflow ids whose newest execution is to be read, open or closed."""
    remembered: dict[RequestKeyId, None] = msgspec.field(default_factory=dict)
    """Keys of requests of which the answer may be remembered."""
    inboxes: dict[str, None] = msgspec.field(default_factory=dict)
    """Withheld executions whose whole inbox is to be read: they are to be terminated."""

    waiting: dict[str, None] = msgspec.field(default_factory=dict)
    """Withheld executions of which it is to be counted what waits for them."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


class Claims(msgspec.Struct):
    """What one transaction holds, and what was read in it."""

    held: set[str] = set()
    """Open executions that are locked."""
    busy: set[str] = set()
    """Executions that were wanted and another transaction holds."""
    rows: dict[str, ExecutionRow] = {}
    """The rows of held executions, read after the lock; those whose version the cache knows may be missing."""
    open_ids: dict[WorkflowKey, str | None] = {}
    """Workflow ids that are held, with the open execution of each, if there is one. Whoever holds an execution has its
    workflow id as well: nobody else can be open under that."""
    asked_ids: set[WorkflowKey] = set()
    """Workflow ids that were asked for. One that is not in `open_ids` is held by another node."""
    held_keys: set[RequestKeyId] = set()
    """Keys of requests that are held."""
    asked_keys: set[RequestKeyId] = set()
    """Keys of requests that were asked for. One that is not in `held_keys` is held by another node."""
    inbox: list[Arrival] = []
    """Inbox rows that are this batch's to handle, in the order of their arrival."""
    undecodable: list[tuple[InboxRow, str]] = []
    """Inbox rows that are damaged, and why."""
    newer: list[tuple[InboxRow, str]] = []
    """Inbox rows that only a newer Holdfast can read, and why."""
    due: list[TimerRow] = []
    """Due timers of held executions, in due order."""
    withheld: dict[str, Withheld] = {}
    """Held executions that take no turns here, and why: what waits in their inbox was not read. They take none in this
    batch, whatever this node could take meanwhile: that would overtake what waits."""
    examined: set[str] = set()
    """Those of the withheld, but for those on other routes, whose inbox was looked through for an order to terminate, when
    the batch looked for work."""
    found_work: bool = False
    """Whether anything waited in an inbox, or was due: there may be more."""
    skipped: bool = False
    """Whether other nodes hold executions that have pending work."""
    wanted: dict[str, Wanted] = {}
    others: dict[str, ExecutionRow | None] = {}
    """Executions that were read without being held; None: there is no such execution."""
    latest: dict[WorkflowKey, ExecutionRow | None] = {}
    remembered: dict[RequestKeyId, RequestRow | None] = {}
    waiting: dict[str, int] = {}
    """How many inbox rows wait for withheld executions, counted up to the limit of signals."""
    _row_ids: set[int] = set()

    def absorb(self, claim: Claim, claimed: Claimed) -> None:
        """Add what the store has locked and read for one claim."""
        self.asked_ids.update(claim.workflow_ids)
        self.asked_keys.update(claim.request_keys)
        self.held_keys |= claimed.held_keys
        if claimed.withheld or self.withheld:
            read = (self.held - self.withheld.keys()) | (claimed.held - claimed.withheld.keys())
            withheld = self.withheld | claimed.withheld
            self.withheld = {execution_id: why for execution_id, why in withheld.items() if execution_id not in read}
        self.held |= claimed.held
        self.busy |= claimed.busy
        self.rows.update(claimed.rows)
        self.open_ids.update(claimed.open_ids)
        self.due.extend(claimed.due)
        if claimed.inbox:
            self._absorb_inbox(claimed.inbox)

    def _absorb_inbox(self, rows: Sequence[InboxRow]) -> None:
        has_to_sort = bool(self.inbox)
        for row in rows:
            if row.id in self._row_ids:
                continue
            self._row_ids.add(row.id)
            try:
                envelope = codec.decode_envelope(row.body)
                check_decoded(row.body, envelope)
                self.inbox.append(Arrival(envelope, None, row))
                has_to_sort = has_to_sort or is_carried(envelope)
            except CorruptStore as error:
                self.undecodable.append((row, error.message))
            except NewerFormat as error:
                self.newer.append((row, error.message))
        if has_to_sort:
            self.inbox.sort(key=_by_arrival)

    def version_of(self, execution_id: str) -> int | None:
        """The state version of a held execution; None if that has to be read.

        The store leaves out the rows of executions that it has in the version which the cache knows.
        """
        row = self.rows.get(execution_id)
        if row is not None:
            return row.state_version
        wanted = self.wanted.get(execution_id)
        return None if wanted is None else wanted.known_version

    @property
    def names(self) -> set[ExecutionName]:
        """All ids (execution and workflow) of the locked executions."""
        names: set[ExecutionName] = set(self.held)
        names.update((row.org, row.workflow_id) for row in self.rows.values())
        return names


class Claimer:
    """Fills the claims of one batch from its transaction."""

    def __init__(
        self,
        transaction: Transaction,
        services: TurnServices,
        pauses: PauseView,
        now: Instant,
        *,
        closing: Collection[str] = (),
    ) -> None:
        self._transaction = transaction
        self._cache = services.cache
        self._routes = services.routes.takes
        """The routes by which this node takes executions, for all claims of the batch; None: every route."""
        self._has_code = services.routes.has_code
        self._is_paused = pauses.covers if pauses.any else None
        """Says of an execution whether its workflow or queue is paused; None: none is."""
        self._now = now
        self._exclusive = services.store.exclusive
        self._closing = frozenset(closing) if closing else ()  # others may change it meanwhile
        """Executions whose last closing was lost: see `lost_closings`."""

    async def claim(self, claims: Claims, order: BatchOrder) -> None:
        """Hold what the requests of an order are for, and as many others that have work as it allows."""
        wanted, ids, keys = claims.wanted, dict[WorkflowKey, None](), dict[RequestKeyId, None]()
        guesses: dict[WorkflowKey, str] = {}
        for target in order.targets:
            wanted[target.execution_id] = Wanted(target.org, target.execution_id, None, target.workflow_id)
            if target.workflow_id:
                ids[target.org, target.workflow_id] = None
        for request in order.requests:
            if isinstance(request, WorkflowIdLookup):
                ids[request.org, request.workflow_id] = None
            elif request.execution_id:
                self._want(wanted, request.org, request.execution_id)
            elif not request.has_own_id:
                self._resolve_locally((request.org, request.workflow_id), wanted, ids, guesses)
            if not self._exclusive and isinstance(request, Request) and request.key and request.is_start:
                keys[key_id_of(request.org, request.key)] = None
        if self._exclusive:
            claims.open_ids.update(guesses)
        skip = frozenset(order.skip) if order.limit else ()  # others may change it meanwhile
        claim = Claim(
            list(wanted.values()),
            list(ids),
            self._now,
            order.limit,
            self._routes,
            skip,
            list(keys),
            order.skip_workflow_ids,
            ORDER_PREFIX,
            self._closing,
            self._has_code,
            self._is_paused,
        )
        claimed = await self._hold(claims, claim)
        if claimed.withheld and order.limit:
            idle = (execution_id for execution_id, why in claimed.withheld.items() if why is not Withheld.OFF_ROUTE)
            claims.examined.update(execution_id for execution_id in idle if execution_id not in skip)
        claims.found_work = bool(claimed.inbox or claimed.due or claims.examined)
        claims.skipped = claimed.skipped
        if guesses and not self._exclusive:
            await self._check_guesses(claims, guesses)

    async def look_up(self, claims: Claims, lookups: Lookups, max_signals: int) -> None:
        """Read the facts that a plan asks for, and add them to the claims."""
        if lookups.workflow_ids or lookups.request_keys or lookups.inboxes:
            given_up = [claims.rows[execution_id] for execution_id in lookups.inboxes]
            await self._hold(
                claims,
                Claim(
                    wanted=[Wanted(row.org, row.execution_id, whole_inbox=True) for row in given_up],
                    workflow_ids=list(lookups.workflow_ids),
                    routes=self._routes,
                    request_keys=list(lookups.request_keys),
                    has_code=self._has_code,
                    is_paused=self._is_paused,
                ),
            )
        if lookups.rows:
            rows = await self._transaction.read_rows(lookups.rows)
            claims.others.update({execution_id: rows.get(execution_id) for execution_id in lookups.rows})
        if lookups.waiting:
            counted = await self._transaction.count_waiting(lookups.waiting, max_signals)
            claims.waiting.update({execution_id: counted.get(execution_id, 0) for execution_id in lookups.waiting})
        for key in lookups.latest:
            claims.latest[key] = await self._transaction.read_latest(*key)
        if lookups.remembered:
            known = await self._transaction.read_requests(lookups.remembered, self._now)
            claims.remembered.update({key_id: known.get(key_id) for key_id in lookups.remembered})

    async def _hold(self, claims: Claims, claim: Claim) -> Claimed:
        """Lock and read what a claim asks for, and add it to what the batch holds."""
        claimed = await self._transaction.claim(claim)
        claims.absorb(claim, claimed)
        return claimed

    def _want(self, wanted: dict[str, Wanted], org: str, execution_id: str) -> None:
        if execution_id not in wanted:
            wanted[execution_id] = self._make_wanted(org, execution_id)

    def _make_wanted(self, org: str, execution_id: str, workflow_id: str = "") -> Wanted:
        live = self._cache.get(execution_id)
        if live is None or (self._is_paused is not None and self._is_paused(live.execution)):
            return Wanted(org, execution_id, None, workflow_id)
        execution, known_at = live.execution, None if live.row is None else live.row.updated_at
        return Wanted(org, execution_id, execution.state_version, execution.workflow_id, known_at=known_at)

    def _resolve_locally(
        self,
        key: WorkflowKey,
        wanted: dict[str, Wanted],
        ids: dict[WorkflowKey, None],
        guesses: dict[WorkflowKey, str],
    ) -> None:
        """On a store of our own the cache knows. On a shared one it guesses: who is open and has the id is the only one."""
        execution_id = self._cache.find_open(key)
        if execution_id is None:
            ids[key] = None
            return
        guesses[key] = execution_id
        wanted[execution_id] = self._make_wanted(key[0], execution_id, key[1])

    async def _check_guesses(self, claims: Claims, guesses: dict[WorkflowKey, str]) -> None:
        """Those that are held are open, so they are right. The others may have closed meanwhile: the database knows."""
        wrong = [key for key, execution_id in guesses.items() if execution_id not in claims.held]
        claims.asked_ids.update(guesses)
        if wrong:
            await self._hold(
                claims,
                Claim(workflow_ids=wrong, routes=self._routes, has_code=self._has_code, is_paused=self._is_paused),
            )


def key_id_of(org: str, key: RequestKey) -> RequestKeyId:
    """Where a request's key is looked up."""
    return org, key.kind, key.key


def is_carried(envelope: AnyEnvelope) -> bool:
    """Whether the run before its receiver had an envelope already: it comes before all that was sent to the receiver."""
    kind = type(envelope)
    return (kind is Signal or kind is Cancel or kind is Update) and envelope.carried  # type: ignore[union-attr]


def _by_arrival(arrival: Arrival) -> tuple[bool, int]:
    return not is_carried(arrival.envelope), 0 if arrival.row is None else arrival.row.id
