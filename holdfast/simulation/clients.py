"""Simulated clients: they make their calls one after the other, and repeat those that failed by a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from holdfast.core import events, payloads
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnClosed, OnOpen
from holdfast.engine.engine import Engine
from holdfast.engine.use_cases.transactional_outbox import TransactionWork
from holdfast.errors import (
    EngineClosed,
    ExecutionClosed,
    ExecutionNotFound,
    HoldfastError,
    StoreUnavailable,
    WorkflowAlreadyClosed,
    WorkflowAlreadyOpen,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowTerminated,
)
from holdfast.simulation import plans
from holdfast.simulation.derived_plans import OverlapCall
from holdfast.simulation.plan_roots import ClientCall, SignalToken
from holdfast.simulation.plans import AnyCall
from holdfast.simulation.scripted import scripted
from holdfast.simulation.world import MILLI, NodeDied, World, spawn

T = TypeVar("T")
POLL_MILLIS: Final = (1, 10, 250)
RETRY_MILLIS: Final = (1, 1_500)
CAUSED_BY_FAULT: Final = (NodeDied, StoreUnavailable, EngineClosed)
"""Errors that do not tell whether the call took effect: it is repeated with the same key."""


class DerivedSchedule(msgspec.Struct, frozen=True):
    """A schedule that has ended: what a client asked for, and what it was told of its fires."""

    call: OverlapCall
    fired: int
    skipped: int
    missed: int
    refused: int
    pause: tuple[Instant, Instant] | None = None
    """From when to when it was paused, on the clock that due times follow."""


class ClientLedger:
    """What clients were answered, to be compared with the store."""

    def __init__(self) -> None:
        self.accepted: list[tuple[str, str, SignalToken]] = []
        """Accepted signals: workflow id, name, value."""
        self.ordered: dict[str, list[tuple[str, str, SignalToken]]] = {}
        """The same of each client, in the order of its calls, each of which was made after the one before was answered."""
        self.refused: list[tuple[str, str, SignalToken]] = []
        """Refused signals: workflow id, name, value."""
        self.ends: list[tuple[str, str, Any]] = []
        """Results that were awaited: workflow id, status, result or failure type."""
        self.messages: list[tuple[str, SignalToken]] = []
        """Accepted messages: key, value."""
        self.updates: list[tuple[str, SignalToken, Any]] = []
        """Answered updates: workflow id, value, answer."""
        self.completions: list[str] = []
        """Tasks that a client completed, by name."""
        self.begun: list[tuple[str, str | None]] = []
        """Programs that were started by a message or a broadcast signal: label, and workflow id if that is certain."""
        self.undelivered: list[tuple[str, SignalToken]] = []
        """Events that were sent to a program which ends before it takes them: workflow id, value."""
        self.schedules: list[DerivedSchedule] = []
        """Schedules that have ended."""
        self.problems: list[str] = []


class Client:
    """One simulated client, which makes its calls in order."""

    def __init__(self, world: World, name: str, calls: tuple[AnyCall, ...], ledger: ClientLedger) -> None:
        self.name = name
        self.present: AnyCall | None = None
        """The call that is under way; None before the first and after the last."""
        self._world = world
        self._calls = calls
        self._ledger = ledger
        self._number = 0
        self._execution_ids: dict[str, str] = {}
        """By workflow id: the execution that took the client's last signal with a start."""
        self._answered: list[Instant] = []
        """When each of the calls so far was answered."""
        self._noted: list[tuple[int, list[Any], Any]] = []
        """What this client wrote into the ledger: by which call, into which list, and what."""
        self.task = spawn(world.loop, self._run(0))
        world.on_restored.append(self._rewind)

    async def _run(self, first: int) -> None:
        """Make all calls from the first on, each after its pause."""
        for number in range(first, len(self._calls)):
            call = self.present = self._calls[number]
            self._number = number
            await self._world.loop.pause(call.pause_millis * MILLI)
            await self.make(call)
            self._answered.append(self._world.loop.now)
        self.present = None

    async def make(self, call: AnyCall) -> None:
        """Make one call, and repeat it until it is answered."""
        await MAKE[type(call)](self, call)

    def _rewind(self, taken_at: Instant) -> None:
        """Make again, with the same keys, what was answered since then: the database does not know of it any more."""
        first = sum(answered < taken_at for answered in self._answered)
        del self._answered[first:]
        for number, entries, entry in self._noted:
            if number >= first and entry in entries:
                entries.remove(entry)
        self._noted = [one for one in self._noted if one[0] < first]
        self.task.cancel()
        self.task = spawn(self._world.loop, self._run(first))

    def _note_accepted(self, signal: tuple[str, str, SignalToken]) -> None:
        self._note(self._ledger.accepted, signal)
        self._note(self._ledger.ordered.setdefault(self.name, []), signal)

    def _note(self, entries: list[Any], entry: Any) -> None:
        entries.append(entry)
        self._noted.append((self._number, entries, entry))

    async def _call_until_answered(
        self, operation: Callable[[Engine], Awaitable[T]], *, is_doubled: bool = False, is_read: bool = False
    ) -> T:
        """Repeat a call until no fault causes its answer. A doubled call is made twice at once; the first answer counts."""
        if is_read:
            return await self._repeat(operation)
        self._world.writing.add(self.name)
        try:
            return await self._write(operation, is_doubled=is_doubled)
        finally:
            self._world.writing.discard(self.name)

    async def _write(self, operation: Callable[[Engine], Awaitable[T]], *, is_doubled: bool) -> T:
        if not is_doubled:
            return await self._repeat(operation)
        both = [spawn(self._world.loop, self._repeat(operation)) for _ in range(2)]
        # What still arrives after the database went back would overtake what is repeated.
        until = asyncio.ALL_COMPLETED if self._world.may_go_back else asyncio.FIRST_COMPLETED
        done, pending = await asyncio.wait(both, return_when=until)
        for task in pending:
            task.cancel()
        first, *others = sorted(done, key=both.index)
        for task in others:
            task.exception()  # the first answer counts, whatever it is
        return first.result()

    async def _repeat(self, operation: Callable[[Engine], Awaitable[T]]) -> T:
        while True:
            try:
                return await self._world.call(operation)
            except CAUSED_BY_FAULT:
                await self._world.loop.pause(self._world.random.randint(*RETRY_MILLIS) * MILLI)

    @property
    def _key(self) -> str:
        return f"{self.name}/{self._number}"

    # --- starting ---

    async def open(self, call: plans.StartCall) -> None:
        key = self._key
        try:
            handle = await self._call_until_answered(
                lambda engine: engine.start(
                    scripted, call.plan, workflow_id=call.target, on_closed=OnClosed.REJECT, idempotency_key=key
                ),
                is_doubled=call.is_doubled,
            )
        except WorkflowAlreadyClosed:
            return
        self._expect_row(call.target, handle.execution_id)

    async def send_or_open(self, call: plans.SignalWithStartCall) -> None:
        key = self._key
        response = await self._call_until_answered(
            lambda engine: engine.signal_with_start_workflow(
                call.target, scripted, call.plan, signal_name=call.name, signal_value=call.token, request_id=key
            ),
            is_doubled=call.is_doubled,
        )
        self._note_accepted((call.target, call.name, call.token))
        self._execution_ids[call.target] = response.workflow_execution_id
        self._expect_row(call.target, response.workflow_execution_id)
        self._expect_signal(response.workflow_execution_id, response.signal_event_sequence)

    async def replace(self, call: plans.ReplaceCall) -> None:
        await self._await_marker(call.target, call.marker)
        key = self._key
        try:
            handle = await self._call_until_answered(
                lambda engine: engine.start(
                    scripted, call.plan, workflow_id=call.target, on_open=call.on_open, idempotency_key=key
                )
            )
        except WorkflowAlreadyOpen:
            if call.on_open is not OnOpen.FAIL:
                raise
            return
        if call.on_open is OnOpen.FAIL:
            self._complain(f"a start of '{call.target}' with on_open='fail' was not refused (I2)")
        self._expect_row(call.target, handle.execution_id)

    # --- signals and cancellation ---

    async def send(self, call: plans.SignalCall) -> None:
        record = (call.target, call.name, call.token)
        try:
            first = await self._signal(call)
        except (ExecutionClosed, ExecutionNotFound):
            if not call.is_junk:
                raise
            self._note(self._ledger.refused, record)
            return
        self._note_accepted(record)
        if call.is_repeated:
            again = await self._signal(call)
            if again != first and not _has_continued(self._world, first):
                self._complain(f"signal {call.token} to '{call.target}' was accepted twice: in {first} and in {again} (S1)")

    async def send_in_order(self, call: plans.OrderedSignalCall) -> None:
        key = self._key
        target = self._execution_ids[call.target] if call.by_execution_id else call.target

        async def enlist(_connection: Any, work: TransactionWork) -> None:
            work.signal(target, call.name, call.token, request_id=key)

        async def operation(engine: Engine) -> None:
            if call.in_transaction and not engine.store.exclusive:
                await engine.transaction(enlist)
            else:
                await engine.signal_workflow(target, call.name, call.token, request_id=key)

        await self._call_until_answered(operation)
        self._note_accepted((call.target, call.name, call.token))

    async def _signal(self, call: plans.SignalCall) -> str:
        key = self._key
        response = await self._call_until_answered(
            lambda engine: engine.signal_workflow(call.target, call.name, call.token, request_id=key),
            is_doubled=call.is_doubled,
        )
        self._expect_signal(response.workflow_execution_id, response.signal_event_sequence)
        return response.workflow_execution_id

    async def cancel(self, call: plans.CancelCall) -> None:
        await self._await_marker(call.target, call.marker)
        await self._call_until_answered(lambda engine: engine.cancel(call.target, "as planned"))

    async def terminate(self, call: plans.TerminateCall) -> None:
        await self._await_marker(call.target, call.marker)
        await self._call_until_answered(lambda engine: engine.terminate(call.target, "as planned"))

    # --- results and histories ---

    async def await_end(self, call: plans.AwaitResultCall) -> None:
        how: tuple[str, Any]
        try:
            how = ("completed", await self._wait_for_result(call.target))
        except WorkflowFailed as error:
            how = ("failed", error.type)
        except WorkflowCancelled:
            how = ("cancelled", None)
        except WorkflowTerminated:
            how = ("terminated", None)
        if not self._world.backend.monitor.may_be_ahead():  # else it may be the end of a past that is no more
            self._note(self._ledger.ends, (call.target, *how))

    async def _wait_for_result(self, target: str) -> Any:
        while True:
            try:
                return await self._call_until_answered(lambda engine: engine.wait_for_result(target), is_read=True)
            except ExecutionNotFound:
                await self._poll()

    async def _poll(self) -> None:
        await self._world.loop.pause(self._world.random.choice(POLL_MILLIS) * MILLI)

    async def _await_marker(self, target: str, marker: str) -> None:
        while True:
            try:
                history = await self._call_until_answered(lambda engine: engine.history(target), is_read=True)
            except ExecutionNotFound:
                history = None
            if history is not None and any(_is_marker(one.event, marker) for one in history.events):
                return
            await self._poll()

    # --- checks of answers ---

    def _expect_row(self, target: str, execution_id: str | None) -> None:
        row = self._world.backend.monitor.rows.get(execution_id or "")
        if row is None or row.workflow_id != target:
            self._complain(f"a start of '{target}' was answered with execution {execution_id} before its commit (X4)")

    def _expect_signal(self, execution_id: str, sequence: int | None) -> None:
        monitor = self._world.backend.monitor
        if sequence is not None and not monitor.has_event(execution_id, sequence, events.SignalReceived):
            self._complain(f"a signal was answered as event {sequence} of execution {execution_id}, but is not (S4, X4)")

    def _complain(self, problem: str) -> None:
        self._ledger.problems.append(f"client {self.name}: {problem}")


def _has_continued(world: World, execution_id: str) -> bool:
    """Whether an execution has continued as a new run, which takes over the signals in its inbox."""
    row = world.backend.monitor.rows.get(execution_id)
    return row is not None and row.status == Status.CONTINUED


def _is_marker(event: events.AnyEvent, marker: str) -> bool:
    if type(event) is not events.SideEffectRecorded:
        return False
    return bool(payloads.decode(event.value, Any, "a marker") == {"marker": marker})


def describe_error(error: BaseException) -> str:
    """The text of an error that a client did not expect."""
    return error.message if isinstance(error, HoldfastError) else repr(error)


MAKE: Final[Mapping[type[ClientCall], Callable[[Client, Any], Awaitable[None]]]] = {
    plans.StartCall: Client.open,
    plans.SignalWithStartCall: Client.send_or_open,
    plans.ReplaceCall: Client.replace,
    plans.SignalCall: Client.send,
    plans.OrderedSignalCall: Client.send_in_order,
    plans.CancelCall: Client.cancel,
    plans.TerminateCall: Client.terminate,
    plans.AwaitResultCall: Client.await_end,
}
