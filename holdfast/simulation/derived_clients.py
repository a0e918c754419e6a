"""Simulated clients that know from their own calls what the answers and the outcome must be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from holdfast.core.instants import Instant
from holdfast.core.schedules import ScheduleState
from holdfast.engine.engine import Engine
from holdfast.engine.use_cases.schedule_views import ScheduleInfo
from holdfast.errors import LimitReached, ScheduleNotFound, WorkflowTerminated
from holdfast.simulation import derived_plans, plans
from holdfast.simulation.clients import DerivedSchedule
from holdfast.simulation.derived_plans import KEPT_SECONDS, LIMITS, MODES, SMALL_ORG, SUMMONS, ModeKind, TaskAct
from holdfast.simulation.plan_roots import ClientCall, SignalToken
from holdfast.simulation.plans import AnyCall, Comparison, Plan
from holdfast.simulation.reach_clients import ReachingClient
from holdfast.simulation.reach_plans import MESSAGE
from holdfast.simulation.reaching import Form
from holdfast.simulation.scripted import scripted
from holdfast.simulation.world import MILLI

GROUPS: Final = ("people",)
COUNT_AGE: Final = 1_500 * MILLI
"""After how long each node knows what the others have started."""


class DerivingClient(ReachingClient):
    """A client that derives what it must be answered."""

    async def make(self, call: AnyCall) -> None:
        """Make one call, and repeat it until it is answered."""
        make = MAKE_DERIVED.get(type(call))
        await (super().make(call) if make is None else make(self, call))

    # --- starts ---

    async def summon(self, call: plans.SummonCall) -> None:
        key = self._key
        thrown = await self._call_until_answered(
            lambda engine: engine.broadcast_signal(SUMMONS, call.plan, request_id=key), is_doubled=call.is_doubled
        )
        if (thrown.delivered, thrown.started) != (0, 1):
            self._complain(f"broadcast '{SUMMONS}' with '{call.plan.label}' was answered {thrown} instead of one start (B1)")
        self._note(self._ledger.begun, (call.plan.label, None))

    async def update_with_start(self, call: plans.UpdateWithStartCall) -> None:
        key = self._key

        async def send(engine: Engine) -> Any:
            return await engine.update_with_start(
                call.target,
                scripted,
                call.plan,
                update_name=call.name,
                update_value=call.token,
                request_id=key,
            )

        first = await self._call_until_answered(send, is_doubled=call.is_doubled)
        self._note(self._ledger.updates, (call.target, call.token, first))
        if call.is_repeated:
            again = await self._call_until_answered(send)
            if again != first:
                self._complain(f"update {call.token} of '{call.target}' was answered {first!r}, then {again!r}")

    # --- events ---

    async def send_mode(self, call: derived_plans.SendModeCall) -> None:
        key, token = self._key, call.token
        event = MODES[call.kind](sender=token.sender, number=token.number, topic=call.target)

        async def send(engine: Engine) -> None:
            if call.is_addressed:
                await engine.send_event_to(call.target, event, request_id=key)
            else:
                await engine.send_event(event, request_id=key)

        await self._call_until_answered(send, is_doubled=call.is_doubled)
        if call.is_left and call.kind is ModeKind.PARCEL:
            self._note(self._ledger.undelivered, (call.target, token))

    async def expect_tokens(self, call: derived_plans.ExpectTokensCall) -> None:
        result = await self._wait_for_result(call.target)
        expected = [[sender, list(numbers)] for sender, numbers in call.expected]
        if result[-1] != expected and not self._is_excused():
            self._complain(f"'{call.target}' took the events {result[-1]} instead of {expected} (E1)")

    def _is_excused(self) -> bool:
        """Whether an answer may be that of a past that is no more, or its times are those of a clock that was set."""
        return self._world.was_clock_set or self._world.backend.monitor.may_be_ahead()

    # --- people ---

    async def act_on_task(self, call: derived_plans.TaskActsCall) -> None:
        task_id, key = await self._find_task(call.task), self._key
        for number, (act, by) in enumerate(call.acts):
            request_id = f"{key}/{number}"

            async def step(engine: Engine, act: TaskAct = act, by: str = by, request_id: str = request_id) -> None:
                await _act(engine, task_id, act, by, request_id)

            await self._call_until_answered(step, is_doubled=call.is_doubled)
        shown = await self._call_until_answered(lambda engine: engine.task_events(task_id), is_read=True)
        found = [(one.kind, one.by) for one in shown]
        expected = [("created", None), *((str(act), by) for act, by in call.acts)]
        if found != expected and not self._is_excused():
            self._complain(f"task '{call.task}' has the events {found} instead of {expected} (H1)")
        if call.acts[-1][0] is TaskAct.COMPLETE:
            self._note(self._ledger.completions, call.task)

    # --- schedules ---

    async def overlap(self, call: derived_plans.OverlapCall) -> None:
        key = self._key
        step = plans.SleepStep(label=f"{call.label}.1", millis=call.millis)
        plan = Plan(label=call.label, steps=(step,), comparison=Comparison.DERIVED)

        async def create(engine: Engine) -> None:
            await engine.create_schedule(
                call.target,
                f"R{call.count}/PT{call.every_seconds}S",
                scripted,
                args=[plan],
                overlap=call.overlap,
                catch_up=call.catch_up,
                request_id=f"{key}/create",
            )

        try:
            await self._call_until_answered(create)
            pause = await self._pause_schedule(call, key) if call.paused_millis else None
            info = await self._await_end_of_schedule(call.target)
        except ScheduleNotFound:
            return  # the database went back to where the call had deleted it
        self._note(self._ledger.schedules, DerivedSchedule(call, info.fired, info.skipped, info.missed, info.refused, pause))
        await self._call_until_answered(lambda engine: engine.delete_schedule(call.target, request_id=f"{key}/delete"))

    async def _pause_schedule(self, call: derived_plans.OverlapCall, key: str) -> tuple[Instant, Instant] | None:
        await self._world.loop.pause(call.every_seconds * 1_500 * MILLI)
        await self._call_until_answered(lambda engine: engine.pause_schedule(call.target, request_id=f"{key}/pause"))
        begin = self._world.read_clock()
        await self._world.loop.pause(call.paused_millis * MILLI)
        end = self._world.read_clock()
        await self._call_until_answered(lambda engine: engine.resume_schedule(call.target, request_id=f"{key}/resume"))
        return None if self._world.was_clock_set else (begin, end)

    async def _await_end_of_schedule(self, schedule_id: str) -> ScheduleInfo:
        while True:
            info = await self._call_until_answered(lambda engine: engine.describe_schedule(schedule_id), is_read=True)
            if info.state is ScheduleState.ENDED and not info.waiting:
                return info
            await self._poll()

    # --- limits ---

    async def meet_limits(self, call: derived_plans.LimitsCall) -> None:
        """One start, and one message, more than the org may have is refused; once there is room it is accepted."""
        names = [f"{call.target}/{number}" for number in range((LIMITS.open_executions or 0) + 1)]
        for name in names[:-1]:
            await self._start_small(name)
        await self._world.loop.pause(COUNT_AGE)
        await self._expect_full(lambda engine: engine.start(scripted, _endless(names[-1]), **_small(names[-1])), "start")
        await self._terminate_small(names[0])
        await self._start_small(names[-1])
        for number in range((LIMITS.kept_items or 0) + 1):
            token, key = SignalToken(call.target, number), f"{self._key}/message/{number}"

            async def send(engine: Engine, token: SignalToken = token, key: str = key) -> None:
                await engine.send_message(MESSAGE, key, token, ttl=KEPT_SECONDS, request_id=key, org=SMALL_ORG)

            if number < (LIMITS.kept_items or 0):
                await self._call_until_answered(send)
            else:
                await self._expect_full(send, "message")
        for name in names[1:]:
            await self._terminate_small(name)

    async def _start_small(self, name: str) -> None:
        await self._call_until_answered(lambda engine: engine.start(scripted, _endless(name), **_small(name)))

    async def _terminate_small(self, name: str) -> None:
        await self._call_until_answered(lambda engine: engine.terminate(name, "as planned", org=SMALL_ORG))
        with suppress(WorkflowTerminated):
            await self._call_until_answered(lambda engine: engine.wait_for_result(name, org=SMALL_ORG), is_read=True)

    async def _expect_full(self, operation: Callable[[Engine], Awaitable[Any]], what: str) -> None:
        try:
            await self._call_until_answered(operation)
        except LimitReached:
            return
        if not self._world.may_go_back:  # else those may be gone that filled it
            self._complain(f"a {what} beyond the limits of org '{SMALL_ORG}' was accepted: {LIMITS}")


def _endless(name: str) -> Plan:
    return Plan(label=name, steps=(plans.WaitForever(label=f"{name}.1"),), comparison=Comparison.DERIVED)


def _small(name: str) -> dict[str, Any]:
    return {"workflow_id": name, "idempotency_key": name, "org": SMALL_ORG}


async def _act(engine: Engine, task_id: str, act: TaskAct, by: str, request_id: str) -> None:
    who: dict[str, Any] = {"by": by, "groups": GROUPS, "request_id": request_id}
    match act:
        case TaskAct.CLAIM:
            await engine.claim_task(task_id, **who)
        case TaskAct.COMMENT:
            await engine.comment_task(task_id, request_id, **who)
        case TaskAct.RELEASE:
            await engine.release_task(task_id, **who)
        case TaskAct.ASSIGN | TaskAct.REASSIGN:
            await engine.assign_task(task_id, by, **who)
        case TaskAct.COMPLETE:
            await engine.complete_task(task_id, Form("done"), **who)


MAKE_DERIVED: Final[Mapping[type[ClientCall], Callable[[DerivingClient, Any], Awaitable[None]]]] = {
    plans.SummonCall: DerivingClient.summon,
    plans.UpdateWithStartCall: DerivingClient.update_with_start,
    derived_plans.SendModeCall: DerivingClient.send_mode,
    derived_plans.ExpectTokensCall: DerivingClient.expect_tokens,
    derived_plans.TaskActsCall: DerivingClient.act_on_task,
    derived_plans.OverlapCall: DerivingClient.overlap,
    derived_plans.LimitsCall: DerivingClient.meet_limits,
}
