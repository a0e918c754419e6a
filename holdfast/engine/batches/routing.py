"""Who gets what in a batch: envelopes from the inbox, due timers and this node's own requests, grouped by execution.

Order within an execution: what the inbox holds, then due timers, then what this node feeds in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from holdfast.core import codec, envelopes
from holdfast.core.closing import find_next_run
from holdfast.core.envelopes import (
    AnyEnvelope,
    Cancel,
    OfferDue,
    RetryDue,
    Signal,
    Start,
    Terminate,
    TimerDue,
)
from holdfast.core.failures import describe_exception
from holdfast.core.instants import Instant
from holdfast.core.options import OnClosed, OnOpen
from holdfast.core.signals import closed_error, missing_error
from holdfast.engine.batches.keys import Keys, answer_from, key_lock, make_request_row
from holdfast.engine.batches.lanes import Name
from holdfast.engine.batches.loose import Loose
from holdfast.engine.batches.programs import ProgramCache
from holdfast.engine.batches.requests import Look, Opened, Request
from holdfast.engine.batches.work import Source, Work
from holdfast.engine.rows import from_row
from holdfast.errors import CorruptStore, ExecutionClosed, HoldfastError, WorkflowAlreadyClosed, WorkflowAlreadyOpen
from holdfast.store.contract import (
    Claim,
    Claimed,
    ExecutionRow,
    InboxRow,
    Route,
    TimerRow,
    Transaction,
    Wanted,
)

_MAY_START_AGAIN: Final = frozenset({"failed", "cancelled", "terminated"})


class Router:
    """Routes one batch within its transaction."""

    def __init__(
        self,
        transaction: Transaction,
        cache: ProgramCache,
        *,
        node: str,
        now: Instant,
        exclusive: bool,
        max_attempts: int,
        routes: Collection[Route] | None = None,
    ) -> None:
        self._transaction = transaction
        self._cache = cache
        self._node = node
        self._routes = routes
        self._now = now
        self._exclusive = exclusive
        self._max_attempts = max_attempts
        self._open: dict[tuple[str, str], str | None] = {}
        self._held: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._wanted: dict[str, Wanted] = {}
        self._guessed: dict[tuple[str, str], str] = {}
        """Which execution was open under a workflow id when this node last saw it."""
        self._routed: set[int] = set()
        self._keys = Keys(transaction, now)
        self.rows: dict[str, ExecutionRow] = {}
        self.work: dict[str, Work] = {}
        self.loose = Loose(node, now, max_attempts)
        self.answers: list[tuple[Request, object]] = []
        """What to answer after the commit to requests that no turn answers."""
        self.followers: list[tuple[Request, Request]] = []
        """Requests that repeat an earlier one of the same batch: they get its answer."""
        self.elsewhere: list[tuple[Request, str]] = []
        """Requests for executions that another node holds, with the execution id."""
        self.took = False
        """Whether the claim found inbox rows or due timers."""
        self.skipped = False
        """Whether others hold some that has work."""
        self.again: list[Request] = []
        """Requests for workflow ids that another node is starting right now."""
        self.cold: list[tuple[str, str, list[Request]]] = []
        """Executions that take no turn before they are replayed, by org and id, with the requests for them."""

    @property
    def held(self) -> set[Name]:
        """Everything that what it holds goes by."""
        names: set[Name] = set(self._held)
        names.update((row.org, row.workflow_id) for row in self.rows.values())
        return names

    def version_of(self, execution_id: str) -> int | None:
        """The version of an execution that is held; None if that has to be read.

        The store is silent about those that it has in the version it was told to be known here.
        """
        row = self.rows.get(execution_id)
        if row is not None:
            return row.state_version
        wanted = self._wanted.get(execution_id)
        return None if wanted is None else wanted.known_version

    async def route(self, requests: Sequence[Request], due_before: Instant, limit: int, skip: set[str]) -> None:
        """Claim what is needed and sort every envelope to its execution."""
        wanted: dict[str, Wanted] = {}
        keys: dict[tuple[str, str], None] = {}
        for request in requests:
            if request.execution_id:
                self._want(wanted, request.org, request.execution_id)
            elif not request.has_own_id:
                self._resolve_locally((request.org, request.workflow_id), wanted, keys)
            if request.key is not None and request.is_start and not self._exclusive:
                keys[key_lock(request.org, request.key)] = None
        self._wanted = wanted
        claimed = await self._transaction.claim(
            Claim(list(wanted.values()), list(keys), due_before, limit, self._routes, skip)
        )
        self._asked.update(keys)
        self._absorb(claimed)
        self.took, self.skipped = bool(claimed.inbox or claimed.due), claimed.skipped
        if self._guessed:
            await self._check_guesses(claimed.busy)
        if claimed.inbox:
            await self._route_inbox(claimed.inbox)
        for timer in claimed.due:
            self._work_for(timer.org, timer.execution_id).add(_as_envelope(timer), None)
        held = self._held
        for request in requests:
            execution_id = request.execution_id
            if execution_id in held and request.key is None:  # the usual case, by far: a result of this node's own
                self._work_for(request.org, execution_id).add(request.envelope, request)
            else:
                await self._route_request(request, claimed.busy)

    # --- claiming ---

    def _want(self, wanted: dict[str, Wanted], org: str, execution_id: str) -> None:
        if execution_id not in wanted:
            live = self._cache.get(execution_id)
            wanted[execution_id] = Wanted(org, execution_id, live.execution.state_version if live is not None else -1)

    def _resolve_locally(self, key: tuple[str, str], wanted: dict[str, Wanted], keys: dict[tuple[str, str], None]) -> None:
        """On a store of our own the cache knows. On a shared one it guesses: who is open and has the id is the only one."""
        execution_id = self._cache.find_open(key)
        if execution_id is None:
            keys[key] = None
            return
        if self._exclusive:
            self._open[key] = execution_id
        else:
            self._guessed[key] = execution_id
        live = self._cache.get(execution_id)
        version = live.execution.state_version if live is not None else -1
        wanted[execution_id] = Wanted(key[0], execution_id, version, key[1])

    async def _check_guesses(self, busy: set[str]) -> None:
        """Those that are held are open, so they are right. The others may have closed meanwhile: the database knows.

        Who holds the execution, but not its id, does not see what waits under that: whatever comes by the id goes behind it.
        """
        wrong = [key for key, execution_id in self._guessed.items() if execution_id not in self._held]
        self._asked.update(self._guessed)
        if wrong:
            claimed = await self._transaction.claim(Claim(workflow_ids=wrong))
            self._absorb(claimed)
            busy |= claimed.busy
            await self._route_inbox(claimed.inbox)

    def _absorb(self, claimed: Claimed) -> None:
        self._held |= claimed.held
        self.rows.update(claimed.rows)
        for key, execution_id in claimed.open_ids.items():
            self._open.setdefault(key, execution_id)

    def _work_for(self, org: str, execution_id: str) -> Work:
        work = self.work.get(execution_id)
        if work is None:
            work = self.work[execution_id] = Work(org, execution_id)
        return work

    # --- the inbox ---

    async def _route_inbox(self, rows: Sequence[InboxRow]) -> None:
        decoded: list[tuple[InboxRow, AnyEnvelope]] = []
        keys: dict[tuple[str, str], None] = {}
        for row in rows:
            if row.id in self._routed:
                continue
            self._routed.add(row.id)
            try:
                envelope = codec.decode_envelope(row.body)
            except CorruptStore as error:
                self.loose.bury(row, error.message)
                continue
            if row.attempts >= self._max_attempts:
                self.loose.bury(row, f"handling it failed {row.attempts} times")
                continue
            decoded.append((row, envelope))
            self.loose.know(row)
            key = (row.org, row.workflow_id)
            is_own_id = type(envelope) is Start and envelope.workflow_id == envelope.execution_id
            if not row.execution_id and not is_own_id and key not in self._open and key not in self._asked:
                keys[key] = None
        if keys:
            self._asked.update(keys)
            self._absorb(await self._transaction.claim(Claim(workflow_ids=list(keys))))
        for row, envelope in decoded:
            if type(envelope) is Start and row.execution_id:
                await self._route_first(row, envelope)
            elif type(envelope) is Start:
                await self._route_start(envelope, row.org, row.id)
            else:
                await self._route_row(row, envelope)

    async def _route_row(self, row: InboxRow, envelope: AnyEnvelope) -> None:
        key = (row.org, row.workflow_id)
        execution_id = row.execution_id
        if not execution_id:
            if key not in self._open:
                return  # being started elsewhere: it stays where it is
            execution_id = self._open[key] or ""
        if execution_id in self.work or execution_id in self._held:
            if type(envelope) is Signal and await self._keys.is_used(row.org, envelope.request, execution_id):
                self.loose.consume(row.id)
            else:
                self._work_for(row.org, execution_id).add(envelope, row.id)
            return
        if execution_id and not row.execution_id:
            return  # its receiver is held elsewhere: it stays where it is
        found = await self._find_row(execution_id) if execution_id else None
        if found is None and row.execution_id and row.workflow_id:
            if not await self._look_for_start(key):
                return  # its receiver is being started elsewhere: it stays where it is
            if execution_id not in self.work and row.workflow_id == execution_id and self._open[key] is not None:
                execution_id = self._open[key] or ""  # whoever sent it could not tell which kind of id it is
            if execution_id in self.work or execution_id in self._held:
                self._work_for(row.org, execution_id).add(envelope, row.id)
                return
            found = await self._find_row(execution_id)
        if found is not None and found.closed_at is None:
            return  # its receiver was started meanwhile, elsewhere: it stays where it is
        await self._settle_row(row, envelope, found)

    async def _settle_row(self, row: InboxRow, envelope: AnyEnvelope, closed: ExecutionRow | None) -> None:
        """Nobody takes it any more: its next run does, if its receiver continued; else whoever sent a signal hears of it."""
        self.loose.consume(row.id)
        if closed is not None and closed.closed_at is not None and closed.status == "continued":
            if isinstance(envelope, envelopes.CARRIED):
                self.loose.send(row.org, find_next_run(closed.execution_id, closed.closed_at), envelope)
        elif type(envelope) is Signal:
            error = await self._refusal(row.org, row.execution_id, row.workflow_id, "signal")
            if envelope.sender is not None:
                answer = envelopes.SignalAnswered(number=envelope.sender.number, failure=describe_exception(error))
                self.loose.send(row.org, envelope.sender.execution_id, answer)
            else:
                self.loose.bury(row, error.message, consume=False)
        elif isinstance(envelope, Cancel | Terminate) and not row.execution_id:
            error = await self._refusal(row.org, "", row.workflow_id, "cancel")
            if not isinstance(error, ExecutionClosed):
                self.loose.bury(row, error.message, consume=False)

    async def _route_first(self, row: InboxRow, start: Start) -> None:
        """The first turn of an execution that is registered: others left it to this node."""
        found = await self._find_row(row.execution_id)
        if found is None or found.closed_at is not None or found.sequence > 0:
            self.loose.consume(row.id)  # it was handled before
        elif row.execution_id in self._held:
            self._work_for(row.org, row.execution_id).add_first(start, row.id)  # signals may have come before it

    async def _look_for_start(self, key: tuple[str, str]) -> bool:
        """Route a start that may still be waiting under this workflow id; False if another node is at it."""
        if key not in self._asked:
            self._asked.add(key)
            claimed = await self._transaction.claim(Claim(workflow_ids=[key]))
            self._absorb(claimed)
            await self._route_inbox(claimed.inbox)
        return key in self._open

    # --- starts ---

    async def _route_start(self, start: Start, org: str, source: Source) -> None:
        key = (org, start.workflow_id)
        request = source if isinstance(source, Request) else None
        if start.workflow_id != start.execution_id and not await self._hold_id(key):
            if request is not None:
                await self._pass_on(request)
            return
        existing = self._open.get(key)
        if existing == start.execution_id and type(source) is int:
            self.loose.consume(source)  # it was handled before
            return
        if type(source) is int and start.request is not None and await self._is_repeated_start(start, org, source):
            return
        if existing is not None:
            if start.on_open is OnOpen.FAIL:
                self._refuse_start(start, org, source, _already_open(start.workflow_id, existing))
                return
            if start.on_open is OnOpen.USE_EXISTING:
                await self._use_existing(start, org, source, existing)
                return
            if existing not in self.work and existing not in self._held:
                if request is not None:
                    self.again.append(request)
                return
            self._work_for(org, existing).add(Terminate(reason="another was started in its place"), None)
        elif start.on_closed is not OnClosed.ALLOW:
            latest = await self._transaction.read_latest(org, start.workflow_id)
            if latest is not None and not (
                start.on_closed is OnClosed.ALLOW_IF_FAILED and latest.status in _MAY_START_AGAIN
            ):
                self._refuse_start(start, org, source, _already_closed(latest, start.on_closed))
                return
        signal = start.signal if request is None else request.signal
        if signal is not None and request is None:
            if await self._keys.is_used(org, signal.request, start.execution_id):
                self.loose.consume(*([source] if type(source) is int else []))
                return
            start = msgspec.structs.replace(start, signal=None)
        work = self.work[start.execution_id] = Work(org, start.execution_id, start)
        work.add(start, source)
        if signal is not None:
            work.add(signal, request)
        self._open[key] = start.execution_id

    async def _hold_id(self, key: tuple[str, str]) -> bool:
        """Hold a workflow id against other nodes; False if one of them has it."""
        if key not in self._open and key not in self._asked:
            self._asked.add(key)
            self._absorb(await self._transaction.claim(Claim(workflow_ids=[key])))
        return key in self._open

    async def _use_existing(self, start: Start, org: str, source: Source, existing: str) -> None:
        """An open execution takes the signal of a start, if it has one. A row stays where it is until that is certain."""
        if isinstance(source, Request):
            self._answer_existing(source, org, existing)
        elif source is not None and start.signal is None:
            if existing in self.work and self.work[existing].new is not None:
                return  # it is being started in this very batch, which may yet be lost
            self.loose.consume(source)
            if start.request is not None:
                self.loose.write.requests.append(make_request_row(org, start.request, existing, None))
        elif source is not None and start.signal is not None and (existing in self.work or existing in self._held):
            if await self._keys.is_used(org, start.signal.request, existing):
                self.loose.consume(source)
            else:
                self._work_for(org, existing).add(start.signal, source)

    def _answer_existing(self, request: Request, org: str, existing: str) -> None:
        if request.signal is None:
            if existing in self.work and self.work[existing].new is not None:
                self.again.append(request)  # it is being started in this very batch, which may yet be lost
                return
            self.answers.append((request, Opened(existing, created=False)))
            self._remember(request, existing, None)
        elif existing in self.work or existing in self._held:
            self._work_for(org, existing).add(request.signal, request)
        else:
            self.elsewhere.append((request, existing))

    def _refuse_start(self, start: Start, org: str, source: Source, error: HoldfastError) -> None:
        if isinstance(source, Request):
            self.answers.append((source, error))
            return
        if source is not None:
            self.loose.refuse_row(source, start, error)
        self.loose.refuse_child(start, org, describe_exception(error))

    # --- requests ---

    async def _route_request(self, request: Request, busy: set[str]) -> None:
        if request.key is not None and await self._is_repeated(request):
            return
        if isinstance(request.envelope, Start):
            await self._route_start(request.envelope, request.org, request)
            return
        if type(request) is Look:
            self._answer_look(request)
            return
        key = (request.org, request.workflow_id)
        execution_id = request.execution_id
        if not execution_id:
            if key not in self._open:
                await self._pass_on(request)
                return
            execution_id = self._open[key] or ""
        if execution_id in self.work or execution_id in self._held:
            self._work_for(request.org, execution_id).add(request.envelope, request)
        elif execution_id in busy or (execution_id and not request.execution_id):
            self.elsewhere.append((request, execution_id))
        else:
            error = await self._refusal(request.org, request.execution_id, request.workflow_id, request.verb)
            ended = isinstance(request.envelope, Cancel | Terminate) and isinstance(error, ExecutionClosed)
            self.answers.append((request, False if ended else error))

    def _answer_look(self, request: Look) -> None:
        """The inbox comes before requests: what waited there under the workflow id has been routed."""
        key = (request.org, request.workflow_id)
        open_id = self._open.get(key)
        if key not in self._open or (open_id in self.work and self.work[open_id].new is not None):
            self.again.append(request)  # it is being started, here or elsewhere
        else:
            self.answers.append((request, True))

    async def _pass_on(self, request: Request) -> None:
        """Another node holds the workflow id: whoever is open under it is reached by its inbox; else it is being started."""
        row = await self._transaction.read_latest(request.org, request.workflow_id)
        start = request.envelope if isinstance(request.envelope, Start) else None
        if row is None or row.closed_at is not None or (start is not None and start.on_open is not OnOpen.USE_EXISTING):
            self.again.append(request)
        elif start is None or request.signal is not None:
            self.elsewhere.append((request, row.execution_id))
        else:
            self._answer_existing(request, request.org, row.execution_id)

    async def _is_repeated(self, request: Request) -> bool:
        """Whether the request was answered before, or is repeated within this batch."""
        assert request.key is not None  # noqa: S101 - asked only for requests with a key
        first = self._keys.claim(request.org, request.key, request)
        if isinstance(first, str):
            self.answers.append((request, answer_from(request, first, None)))
            return True
        if first is not request:
            self.followers.append((request, first))
            return True
        if request.is_start and not self._exclusive and key_lock(request.org, request.key) not in self._open:
            self.again.append(request)  # another node is at it
            return True
        known = await self._keys.find(request.org, request.key)
        if known is None:
            return False
        self.answers.append((request, answer_from(request, known.execution_id, known.sequence)))
        return True

    async def _is_repeated_start(self, start: Start, org: str, row_id: int) -> bool:
        """Whether a start in the inbox needs nothing more now: its key was used before, or another node is at it."""
        assert start.request is not None  # noqa: S101 - asked only for starts with a key
        if not self._exclusive and not await self._hold_id(key_lock(org, start.request)):
            return True
        if not await self._keys.is_used(org, start.request, start.execution_id):
            return False
        self.loose.consume(row_id)
        return True

    def _remember(self, request: Request, execution_id: str, sequence: int | None) -> None:
        if request.key is not None:
            self.loose.write.requests.append(make_request_row(request.org, request.key, execution_id, sequence))

    async def _find_row(self, execution_id: str) -> ExecutionRow | None:
        row = self.rows.get(execution_id)
        if row is None:
            row = (await self._transaction.read_rows([execution_id])).get(execution_id)
        return row

    async def _refusal(self, org: str, execution_id: str, workflow_id: str, verb: str) -> HoldfastError:
        """Why nobody can take an envelope: its execution is closed, or there is none."""
        if execution_id:
            row = await self._find_row(execution_id)
        else:
            row = await self._transaction.read_latest(org, workflow_id)
        if row is None or row.org != org:
            return missing_error(org, execution_id or workflow_id, verb)
        try:
            return closed_error(from_row(row), verb)
        except CorruptStore as error:
            return error


def _as_envelope(timer: TimerRow) -> AnyEnvelope:
    """What a due timer says."""
    if timer.attempt == 0:
        return TimerDue(number=timer.number)
    if timer.attempt > 0:
        return RetryDue(number=timer.number, attempt=timer.attempt)
    return OfferDue(number=timer.number, attempt=-timer.attempt)


def _already_open(workflow_id: str, execution_id: str) -> WorkflowAlreadyOpen:
    return WorkflowAlreadyOpen(
        f"Expected to start workflow id '{workflow_id}', but execution {execution_id} has it and is open. "
        "Use another id, or on_open='use_existing' or 'terminate_existing'."
    )


def _already_closed(row: ExecutionRow, policy: OnClosed) -> WorkflowAlreadyClosed:
    return WorkflowAlreadyClosed(
        f"Expected to start workflow id '{row.workflow_id}' with on_closed='{policy}', but execution {row.execution_id} "
        f"had it and is {row.status}. Use another id, or on_closed='allow'."
    )
