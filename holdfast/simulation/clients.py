"""Clients: make their calls one after the other, and repeat what was refused by a fault, as a careful client would."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from holdfast.core import events, payloads
from holdfast.core.lifecycle import Status
from holdfast.core.options import OnClosed, OnOpen
from holdfast.engine.engine import Engine
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
from holdfast.simulation.plans import AnyCall, Token
from holdfast.simulation.scripted import scripted
from holdfast.simulation.world import MILLI, NodeDied, World, spawn

T = TypeVar("T")
POLL_MILLIS: Final = (1, 10, 250)
RETRY_MILLIS: Final = (1, 1_500)
BY_FAULT: Final = (NodeDied, StoreUnavailable, EngineClosed)
"""What says nothing about whether the call took effect: it is made again, with the same key."""


class Ledger:
    """What clients were told."""

    def __init__(self) -> None:
        self.accepted: list[tuple[str, str, Token]] = []
        """Signals: the workflow id, the name, the value."""
        self.refused: list[tuple[str, str, Token]] = []
        self.ends: list[tuple[str, str, Any]] = []
        """Results: the workflow id, how it ended, with what."""
        self.problems: list[str] = []


class Client:
    """One client."""

    def __init__(self, world: World, name: str, calls: tuple[AnyCall, ...], ledger: Ledger) -> None:
        self.name = name
        self.present: AnyCall | None = None
        """The call that is being made."""
        self._world = world
        self._calls = calls
        self._ledger = ledger
        self._number = 0

    async def run(self) -> None:
        """Make every call."""
        for number, call in enumerate(self._calls):
            self.present, self._number = call, number
            await self._world.loop.pause(call.pause_millis * MILLI)
            await MAKE[type(call)](self, call)
        self.present = None

    async def _insist(self, operation: Callable[[Engine], Awaitable[T]], *, is_doubled: bool = False) -> T:
        """Call until there is an answer that no fault made up; a doubled call twice at once, and the first answer counts."""
        if not is_doubled:
            return await self._repeat(operation)
        both = [spawn(self._world.loop, self._repeat(operation)) for _ in range(2)]
        done, pending = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
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
            except BY_FAULT:
                await self._world.loop.pause(self._world.random.randint(*RETRY_MILLIS) * MILLI)

    @property
    def _key(self) -> str:
        return f"{self.name}/{self._number}"

    # --- starting ---

    async def open(self, call: plans.Open) -> None:
        key = self._key
        try:
            handle = await self._insist(
                lambda engine: engine.start(
                    scripted, call.plan, workflow_id=call.target, on_closed=OnClosed.REJECT, idempotency_key=key
                ),
                is_doubled=call.is_doubled,
            )
        except WorkflowAlreadyClosed:
            return
        self._expect_row(call.target, handle.execution_id)

    async def send_or_open(self, call: plans.SendOrOpen) -> None:
        key = self._key
        response = await self._insist(
            lambda engine: engine.signal_with_start_workflow(
                call.target, scripted, call.plan, signal_name=call.name, signal_value=call.token, request_id=key
            ),
            is_doubled=call.is_doubled,
        )
        self._ledger.accepted.append((call.target, call.name, call.token))
        self._expect_row(call.target, response.workflow_execution_id)
        self._expect_signal(response.workflow_execution_id, response.signal_event_sequence)

    async def replace(self, call: plans.Replace) -> None:
        await self._await_marker(call.target, call.marker)
        key = self._key
        try:
            handle = await self._insist(
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

    # --- reaching ---

    async def send(self, call: plans.Send) -> None:
        record = (call.target, call.name, call.token)
        try:
            first = await self._signal(call)
        except (ExecutionClosed, ExecutionNotFound):
            if not call.is_junk:
                raise
            self._ledger.refused.append(record)
            return
        self._ledger.accepted.append(record)
        if call.is_repeated:
            again = await self._signal(call)
            if again != first and not self._has_continued(first):
                self._complain(f"signal {call.token} to '{call.target}' was accepted twice: in {first} and in {again} (S1)")

    def _has_continued(self, execution_id: str) -> bool:
        """Whether what waited in an execution's inbox may have gone to its next run."""
        row = self._world.stage.monitor.rows.get(execution_id)
        return row is not None and row.status == Status.CONTINUED

    async def _signal(self, call: plans.Send) -> str:
        key = self._key
        response = await self._insist(
            lambda engine: engine.signal_workflow(call.target, call.name, call.token, request_id=key),
            is_doubled=call.is_doubled,
        )
        self._expect_signal(response.workflow_execution_id, response.signal_event_sequence)
        return response.workflow_execution_id

    async def cancel(self, call: plans.Cancel) -> None:
        await self._await_marker(call.target, call.marker)
        await self._insist(lambda engine: engine.cancel(call.target, "as planned"))

    async def terminate(self, call: plans.Terminate) -> None:
        await self._await_marker(call.target, call.marker)
        await self._insist(lambda engine: engine.terminate(call.target, "as planned"))

    # --- asking ---

    async def await_end(self, call: plans.AwaitEnd) -> None:
        how: tuple[str, Any]
        try:
            how = ("completed", await self._wait_for_result(call.target))
        except WorkflowFailed as error:
            how = ("failed", error.type)
        except WorkflowCancelled:
            how = ("cancelled", None)
        except WorkflowTerminated:
            how = ("terminated", None)
        self._ledger.ends.append((call.target, *how))

    async def _wait_for_result(self, target: str) -> Any:
        while True:
            try:
                return await self._insist(lambda engine: engine.wait_for_result(target))
            except ExecutionNotFound:
                await self._poll()

    async def _poll(self) -> None:
        await self._world.loop.pause(self._world.random.choice(POLL_MILLIS) * MILLI)

    async def _await_marker(self, target: str, marker: str) -> None:
        while True:
            try:
                history = await self._insist(lambda engine: engine.history(target))
            except ExecutionNotFound:
                history = None
            if history is not None and any(_is_marker(one.event, marker) for one in history.events):
                return
            await self._poll()

    # --- what answers promise ---

    def _expect_row(self, target: str, execution_id: str | None) -> None:
        row = self._world.stage.monitor.rows.get(execution_id or "")
        if row is None or row.workflow_id != target:
            self._complain(f"a start of '{target}' was answered with execution {execution_id} before its commit (X4)")

    def _expect_signal(self, execution_id: str, sequence: int | None) -> None:
        monitor = self._world.stage.monitor
        if sequence is not None and not monitor.has_event(execution_id, sequence, events.SignalReceived):
            self._complain(f"a signal was answered as event {sequence} of execution {execution_id}, but is not (S4, X4)")

    def _complain(self, problem: str) -> None:
        self._ledger.problems.append(f"client {self.name}: {problem}")


def _is_marker(event: events.AnyEvent, marker: str) -> bool:
    if type(event) is not events.SideEffectRecorded:
        return False
    return bool(payloads.decode(event.value, Any, "a marker") == {"marker": marker})


def describe_error(error: BaseException) -> str:
    """An error that a client did not expect."""
    return error.message if isinstance(error, HoldfastError) else repr(error)


MAKE: Final[Mapping[type[plans.Call], Callable[[Client, Any], Awaitable[None]]]] = {
    plans.Open: Client.open,
    plans.SendOrOpen: Client.send_or_open,
    plans.Replace: Client.replace,
    plans.Send: Client.send,
    plans.Cancel: Client.cancel,
    plans.Terminate: Client.terminate,
    plans.AwaitEnd: Client.await_end,
}
