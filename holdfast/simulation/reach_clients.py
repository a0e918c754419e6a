"""Simulated clients that also send messages and events, broadcast, update, complete tasks, make schedules, and pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from holdfast.core.lifecycle import CLOSED
from holdfast.core.publications import MessageOutcome
from holdfast.core.schedules import Overlap, ScheduleState
from holdfast.engine.engine import Engine
from holdfast.errors import ExecutionNotFound, ScheduleNotFound, TaskClaimed, TaskEnded
from holdfast.simulation import plans, reach_plans
from holdfast.simulation.clients import Client
from holdfast.simulation.plan_roots import ClientCall
from holdfast.simulation.plans import AnyCall
from holdfast.simulation.reach_plans import KEPT_SECONDS, MESSAGE, STARTING_MESSAGE, News, Order, PauseKind
from holdfast.simulation.reaching import Form
from holdfast.simulation.scripted import scripted
from holdfast.simulation.world import MILLI
from holdfast.store.rows import ExecutionRow

QUEUE: Final = "default"
BEGUN_BEFORE: Final = 6_000 * MILLI
"""After how long a turn is over that had begun before a pause, whatever held it up."""


class ReachingClient(Client):
    """A client that reaches programs in every way."""

    async def make(self, call: AnyCall) -> None:
        """Make one call, and repeat it until it is answered."""
        make = MAKE_REACHING.get(type(call))
        await (super().make(call) if make is None else make(self, call))

    # --- messages, broadcast signals, events ---

    async def send_message(self, call: reach_plans.SendMessageCall) -> None:
        key = self._key

        async def send(engine: Engine) -> MessageOutcome:
            return await engine.send_message(MESSAGE, call.target, call.token, ttl=KEPT_SECONDS, request_id=key)

        first = await self._call_until_answered(send, is_doubled=call.is_doubled)
        self._note(self._ledger.messages, (call.target, call.token))
        if call.is_repeated:
            again = await self._call_until_answered(send)
            if again != first:
                self._complain(f"message {call.token} to '{call.target}' was sent twice: {first}, then {again}")

    async def start_by_message(self, call: plans.StartByMessageCall) -> None:
        key = self._key
        await self._call_until_answered(
            lambda engine: engine.send_message(STARTING_MESSAGE, call.target, call.plan, ttl=KEPT_SECONDS, request_id=key)
        )
        self._note(self._ledger.begun, (call.plan.label, call.target))

    async def await_markers(self, call: reach_plans.AwaitMarkersCall) -> None:
        for workflow_id, marker in call.markers:
            await self._await_marker(workflow_id, marker)

    async def broadcast(self, call: reach_plans.BroadcastCall) -> None:
        key = self._key
        thrown = await self._call_until_answered(
            lambda engine: engine.broadcast_signal(call.target, call.token, request_id=key), is_doubled=call.is_doubled
        )
        if thrown.delivered != call.receivers:
            self._complain(f"broadcast '{call.target}' found {thrown.delivered} of {call.receivers} subscriptions (B1)")

    async def send_event(self, call: reach_plans.SendEventCall) -> None:
        key, token = self._key, call.token
        event: Order | News = (
            News(sender=token.sender, number=token.number, topic=call.target)
            if call.is_news
            else Order(sender=token.sender, number=token.number, order=call.target)
        )

        async def send(engine: Engine) -> None:
            if call.is_addressed:
                await engine.send_event_to(call.target, event, request_id=key)
            else:
                await engine.send_event(event, request_id=key)

        await self._call_until_answered(send, is_doubled=call.is_doubled)

    # --- updates and people ---

    async def update(self, call: reach_plans.UpdateCall) -> None:
        key = self._key

        async def send(engine: Engine) -> Any:
            return await engine.update(call.target, call.name, call.token, request_id=key)

        first = await self._update(send, is_doubled=call.is_doubled)
        self._note(self._ledger.updates, (call.target, call.token, first))
        if call.is_repeated:
            again = await self._call_until_answered(send)
            if again != first:
                self._complain(f"update {call.token} of '{call.target}' was answered {first!r}, then {again!r}")

    async def _update(self, send: Callable[[Engine], Awaitable[Any]], *, is_doubled: bool) -> Any:
        while True:
            try:
                return await self._call_until_answered(send, is_doubled=is_doubled)
            except ExecutionNotFound:
                await self._poll()  # another client starts it

    async def complete_task(self, call: reach_plans.CompleteTaskCall) -> None:
        task_id, key = await self._find_task(call.task), self._key

        async def claim(engine: Engine) -> None:
            await engine.claim_task(task_id, by=self.name, groups=["people"], request_id=f"{key}/claim")

        async def complete(engine: Engine) -> None:
            await engine.complete_task(
                task_id, Form(call.task), by=self.name, groups=["people"], request_id=f"{key}/complete"
            )

        while True:
            try:
                await self._call_until_answered(claim)
                await self._call_until_answered(complete)
            except TaskEnded:
                return
            except TaskClaimed:
                await self._poll()
            else:
                self._note(self._ledger.completions, call.task)
                return

    async def _find_task(self, name: str) -> str:
        while True:
            found = await self._call_until_answered(lambda engine: engine.tasks(name=name, state="all"), is_read=True)
            for task in found:
                return task.task_id
            await self._poll()

    # --- schedules and pauses ---

    async def schedule(self, call: plans.ScheduleCall) -> None:
        key = self._key
        await self._call_until_answered(
            lambda engine: engine.create_schedule(
                call.target,
                f"R{call.count}/PT{call.every_seconds}S",
                scripted,
                args=[call.plan],
                overlap=Overlap.ALLOW,
                catch_up=KEPT_SECONDS,
                request_id=f"{key}/create",
            )
        )
        while True:
            try:
                info = await self._call_until_answered(lambda engine: engine.describe_schedule(call.target), is_read=True)
            except ScheduleNotFound:
                return  # the database went back to where the call had deleted it
            if info.state is ScheduleState.ENDED:
                break
            await self._poll()
        if info.fired != call.count or info.missed or info.skipped:
            self._complain(f"schedule '{call.target}' fired {info.fired} times instead of {call.count}: {info} (T4)")
        await self._call_until_answered(lambda engine: engine.delete_schedule(call.target, request_id=f"{key}/delete"))

    async def pause(self, call: reach_plans.PauseCall) -> None:
        key = self._key
        if self._world.has_poisons:
            return
        try:
            if await self._call_until_answered(lambda engine: _pause(engine, call, f"{key}/pause")):
                await self._watch_pause(call)
            await self._call_until_answered(lambda engine: _resume(engine, call, f"{key}/resume"))
        except ExecutionNotFound:
            return  # it is not started yet

    async def _watch_pause(self, call: reach_plans.PauseCall) -> None:
        """Let the time of a pause pass, in which nobody may take a turn, once those are over that had begun before."""
        loop, grace = self._world.loop, 0 if call.kind is PauseKind.EXECUTION else min(call.millis * MILLI, BEGUN_BEFORE)
        await loop.pause(grace)
        before = self._measure_paused(call)
        await loop.pause(call.millis * MILLI - grace)
        if self._world.may_go_back:
            return
        monitor = self._world.backend.monitor
        for execution_id, length in before.items():
            history = monitor.histories.get(execution_id, [])
            if len(history) > length and monitor.rows[execution_id].status not in CLOSED:
                kinds = " ".join(type(event).__name__ for event in history[length:])
                self._complain(f"execution {execution_id} took a turn while {call.kind} '{call.target}' was paused: {kinds}")

    def _measure_paused(self, call: reach_plans.PauseCall) -> dict[str, int]:
        """How long the histories of all open executions are that a pause is to stop."""
        monitor = self._world.backend.monitor
        return {
            row.execution_id: len(monitor.histories.get(row.execution_id, []))
            for row in monitor.rows.values()
            if row.status not in CLOSED and _is_paused(row, call)
        }


def _is_paused(row: ExecutionRow, call: reach_plans.PauseCall) -> bool:
    if call.kind is PauseKind.EXECUTION:
        return row.workflow_id == call.target
    return row.queue == QUEUE if call.kind is PauseKind.QUEUE else row.workflow == scripted.name


async def _pause(engine: Engine, call: reach_plans.PauseCall, key: str) -> bool:
    if call.kind is PauseKind.WORKFLOW:
        return await engine.pause_workflow(scripted.name, request_id=key)
    if call.kind is PauseKind.QUEUE:
        return await engine.pause_queue(QUEUE, request_id=key)
    return await engine.pause(call.target, request_id=key)


async def _resume(engine: Engine, call: reach_plans.PauseCall, key: str) -> bool:
    if call.kind is PauseKind.WORKFLOW:
        return await engine.resume_workflow(scripted.name, request_id=key)
    if call.kind is PauseKind.QUEUE:
        return await engine.resume_queue(QUEUE, request_id=key)
    return await engine.resume(call.target, request_id=key)


MAKE_REACHING: Final[Mapping[type[ClientCall], Callable[[ReachingClient, Any], Awaitable[None]]]] = {
    reach_plans.SendMessageCall: ReachingClient.send_message,
    plans.StartByMessageCall: ReachingClient.start_by_message,
    reach_plans.AwaitMarkersCall: ReachingClient.await_markers,
    reach_plans.BroadcastCall: ReachingClient.broadcast,
    reach_plans.SendEventCall: ReachingClient.send_event,
    reach_plans.UpdateCall: ReachingClient.update,
    reach_plans.CompleteTaskCall: ReachingClient.complete_task,
    plans.ScheduleCall: ReachingClient.schedule,
    reach_plans.PauseCall: ReachingClient.pause,
}
