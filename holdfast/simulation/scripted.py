"""The workflow of the simulation, which carries out a plan and logs what it saw, and the activity that plans run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, Final

import msgspec

from holdfast.code.context import Context
from holdfast.code.start_triggers import BroadcastSignal, Message
from holdfast.core.retry import Retry
from holdfast.engine.activities.attempt import ActivityInfo, activity_info, heartbeat
from holdfast.errors import ActivityError, ApplicationFailure, ChildWorkflowFailed, ExternalSignalFailed
from holdfast.simulation import plans
from holdfast.simulation.derived_plans import SUMMONS
from holdfast.simulation.plan_roots import PlannedStep, SignalToken
from holdfast.simulation.plans import FOREVER_MILLIS, SAFETY_MILLIS, ActivityKind, AnyStep, EndlessWait, Plan
from holdfast.simulation.reach_plans import STARTING_MESSAGE
from holdfast.simulation.reaching import PERFORM_REACHING, group_by_sender
from holdfast.workflow import activity, workflow

ON_ATTEMPT: Final[ContextVar[Callable[[ActivityInfo, bool], None]]] = ContextVar("holdfast_simulated_attempt")
"""Called in the node's context when an attempt starts, with whether an attempt before it was interrupted."""


FIRST_PAUSE: Final = 0.05
"""Seconds before the first retry of an activity."""
HANG_SECONDS: Final = 0.5
"""The timeout of activities that hang."""


class Nonces:
    """Unique numbers; reset at the start of a run, so that a seed gives the same ones."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def take(self) -> int:
        """The next number, which no other taker in this run gets."""
        return next(self._numbers)

    def reset(self) -> None:
        """Start again at one, as each run does."""
        self._numbers = count(1)


NONCES: Final = Nonces()


class PoisonSwitch:
    """What poison turns do in the present run: nothing, unless it is one with poisons."""

    def __init__(self) -> None:
        self.strike: Callable[[plans.TakePoison], int] | None = None
        """Called where a poison turn is taken: how many bytes it is to write. It may end the process."""


POISON_SWITCH: Final = PoisonSwitch()


class ActivityOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The input of the activity. `nonce` is a value that no other run of the workflow has."""

    label: str
    kind: ActivityKind = ActivityKind.GIVES
    millis: int = 0
    times: int = 0
    nonce: int = 0


# --- the activity --------------------------------------------------------------------------------------------------------


@activity
async def work(order: ActivityOrder) -> list[Any]:
    """Behave as the order says; the result depends on the order alone."""
    info = activity_info()
    ON_ATTEMPT.get()(info, order.kind is ActivityKind.GIVES and info.attempt > 1)
    if order.millis:
        await asyncio.sleep(order.millis / 1000)
    if order.kind is ActivityKind.HANGS:
        await asyncio.sleep(FOREVER_MILLIS / 1000)
    if order.kind is ActivityKind.BEATS:
        heartbeat({"attempt": info.attempt})
    if order.kind in (ActivityKind.FLAKY, ActivityKind.BEATS) and info.attempt <= order.times:
        raise ApplicationFailure("not yet", type="Flaky")
    if order.kind in (ActivityKind.FAILS, ActivityKind.REFUSES):
        raise ApplicationFailure(
            "never", type="Broken", details=order.label, non_retryable=order.kind is ActivityKind.REFUSES
        )
    return [order.label, order.nonce]


def schedule_activity(ctx: Context, step: plans.RunActivity) -> asyncio.Future[list[Any]]:
    """Schedule an activity with the retries that its kind needs."""
    most = max(step.times, 1) if step.kind in (ActivityKind.FAILS, ActivityKind.HANGS) else step.times + 1
    options: dict[str, Any] = (
        {"start_to_close": HANG_SECONDS} if step.kind is ActivityKind.HANGS and not step.is_fatal else {}
    )
    if step.kind is ActivityKind.BEATS:
        options["heartbeat"] = SAFETY_MILLIS / 1000
    retry = Retry(max_attempts=most, initial=FIRST_PAUSE)
    order = ActivityOrder(step.label, step.kind, step.millis, step.times)
    return ctx.run(work.with_options(retry=retry, **options), order)


# --- the workflow --------------------------------------------------------------------------------------------------------


@workflow
async def scripted(ctx: Context, plan: Plan) -> list[Any]:
    """Carry out a plan; the result is the log of what each step saw."""
    return await Interpreter(ctx, plan).perform_all()


@workflow(name="begun", starts_on=Message(STARTING_MESSAGE))
async def begun(ctx: Context, plan: Plan) -> list[Any]:
    """Carry out a plan that a message brought."""
    return await Interpreter(ctx, plan).perform_all()


@workflow(name="summoned", starts_on=BroadcastSignal(SUMMONS))
async def summoned(ctx: Context, plan: Plan) -> list[Any]:
    """Carry out a plan that a broadcast signal brought."""
    return await Interpreter(ctx, plan).perform_all()


BY_NAME: Final = {definition.name: definition for definition in (scripted, begun, summoned)}
"""The simulated workflows, by name."""


class Interpreter:
    """Carries out the steps of one plan."""

    def __init__(self, ctx: Context, plan: Plan) -> None:
        self.ctx = ctx
        self.plan = plan
        self.log: list[Any] = list(plan.carried)

    async def perform_all(self) -> list[Any]:
        """Carry out the whole plan; returns the log."""
        for step in self.plan.steps:
            self.log.append(await self.perform(step))
        return self.log

    async def perform_each(self, steps: Sequence[AnyStep]) -> list[Any]:
        """Carry out steps that are part of another step; returns what they saw."""
        return [await self.perform(step) for step in steps]

    async def perform(self, step: AnyStep) -> Any:
        """Carry out one step; returns what it saw."""
        perform = PERFORM_REACHING.get(type(step))
        return await (PERFORM[type(step)](self, step) if perform is None else perform(self.ctx, step))

    # --- activities ---

    async def run_activity(self, step: plans.RunActivity) -> Any:
        result = schedule_activity(self.ctx, step)
        if not step.is_awaited:
            return None
        try:
            return await result
        except ActivityError as error:
            if step.is_fatal:
                raise
            return [type(error).__name__, error.type, error.details]

    async def run_activities(self, step: plans.RunActivities) -> Any:
        ended = await asyncio.gather(*(schedule_activity(self.ctx, act) for act in step.acts), return_exceptions=True)
        return [one if isinstance(one, list) else type(one).__name__ for one in ended]

    async def run_until_first(self, step: plans.RunUntilFirst) -> Any:
        first, *_others = [schedule_activity(self.ctx, act) for act in step.acts]
        return await first

    async def run_branches(self, step: plans.RunBranches) -> Any:
        if step.way == "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.perform_each(branch)) for branch in step.branches]
            return [task.result() for task in tasks]
        coroutines = [self.perform_each(branch) for branch in step.branches]
        if step.way == "completed":
            ended = [await one for one in asyncio.as_completed(coroutines)]
            return sorted(ended, key=repr)
        return await asyncio.gather(*coroutines)

    # --- time and signals ---

    async def sleep(self, step: plans.SleepStep) -> None:
        await self.ctx.sleep(step.millis / 1000)

    async def take_signals(self, step: plans.TakeSignals) -> Any:
        timeout = SAFETY_MILLIS / 1000 if step.is_timed else None
        return group_by_sender(
            [await self.ctx.wait_for_signal(step.name, SignalToken, timeout=timeout) for _ in range(step.count)]
        )

    async def miss_signal(self, step: plans.MissSignal) -> str:
        name, seconds = f"never/{step.label}", step.millis / 1000
        if step.way == "any":
            winner = await self.ctx.wait_any(self.ctx.signal(name), self.ctx.timer(seconds))
            return f"winner {winner.index}"
        try:
            if step.way == "timeout":
                await self.ctx.wait_for_signal(name, timeout=seconds)
            else:
                async with asyncio.timeout(seconds):
                    await self.ctx.wait_for_signal(name)
        except TimeoutError:
            return "missed"
        return "came"

    async def drain_signals(self, step: plans.DrainSignals) -> Any:
        await self.ctx.wait_for_signal(step.gate, SignalToken)
        pending, has = self.ctx.pending_signal_count(step.name), self.ctx.has_signal(step.name)
        tokens = self.ctx.drain_signals(step.name, SignalToken)
        return [pending, has, group_by_sender(tokens)]

    async def collect_signals(self, step: plans.CollectSignals) -> Any:
        tokens = [await self.ctx.wait_for_signal(step.name, SignalToken)]
        while True:
            await schedule_activity(self.ctx, plans.RunActivity(label=f"{step.label}/{len(tokens)}", millis=step.millis))
            if not self.ctx.has_signal(step.name):
                return group_by_sender(tokens)
            tokens.extend(self.ctx.drain_signals(step.name, SignalToken))

    async def relay_signals(self, step: plans.RelaySignals) -> Any:
        token = await self.ctx.wait_for_signal(step.name, SignalToken)
        self.log.append([token.sender, token.number])
        await schedule_activity(self.ctx, plans.RunActivity(label=f"{step.label}/{step.left}", millis=step.millis))
        if step.left > 1:
            await self.continue_as_new(
                plans.ContinueAsNew(label=step.label, steps=(msgspec.structs.replace(step, left=step.left - 1),))
            )
        return group_by_sender([SignalToken(sender, number) for sender, number in self.log])

    async def signal_workflow(self, step: plans.SignalWorkflow) -> str:
        try:
            await self.ctx.signal_external_workflow(step.target, step.name, SignalToken(step.label))
        except ExternalSignalFailed as error:
            return error.type
        return "told"

    # --- children, side effects ---

    async def run_child(self, step: plans.RunChild) -> Any:
        handle = self.ctx.start_child(scripted, step.plan, workflow_id=step.workflow_id, parent_close=step.policy)
        if step.told is not None:
            await handle.signal(step.told, SignalToken(step.label))
        if not step.is_awaited:
            return None
        try:
            return await handle
        except ChildWorkflowFailed as error:
            return [type(error).__name__, error.type]

    async def record_side_effect(self, step: plans.RecordSideEffect) -> bool:
        nonce = self.ctx.side_effect(NONCES.take)
        echoed = await self.ctx.run(work, ActivityOrder(step.label, nonce=nonce))
        return bool(echoed == [step.label, nonce])

    async def ask_for_patch(self, step: plans.AskForPatch) -> bool:
        return self.ctx.patched(step.label)

    async def take_poison(self, step: plans.TakePoison) -> None:
        strike = POISON_SWITCH.strike
        size = 0 if strike is None else strike(step)
        self.ctx.side_effect(lambda: {"marker": step.label, "filler": "x" * size})

    # --- ends ---

    async def wait_forever(self, step: plans.WaitForever) -> Any:
        self.ctx.side_effect(lambda: {"marker": step.label})
        if step.tell is not None:
            _ = self.ctx.signal_external_workflow(step.tell, step.label, SignalToken(step.label))
        return await self._wait_forever(step.ending, step.label)

    def _wait_forever(self, ending: EndlessWait, label: str) -> Awaitable[Any]:
        ctx, name = self.ctx, f"never/{label}"
        endless = plans.RunActivity(label=label, kind=ActivityKind.HANGS, is_fatal=True)
        if ending is EndlessWait.SLEEP:
            return ctx.sleep(FOREVER_MILLIS / 1000)
        if ending is EndlessWait.ACTIVITY:
            return schedule_activity(ctx, endless)
        if ending is EndlessWait.CHILD:
            return ctx.run_child(scripted, make_waiting_child(label))
        if ending is EndlessWait.SHIELD:
            return asyncio.shield(schedule_activity(ctx, endless))
        if ending is EndlessWait.ALL:
            every = (EndlessWait.ACTIVITY, EndlessWait.SLEEP, EndlessWait.CHILD)
            return asyncio.gather(*(self._wait_forever(one, f"{label}/{one}") for one in every))
        return ctx.wait_for_signal(name)

    async def clean_up_when_cancelled(self, step: plans.CleanUpWhenCancelled) -> Any:
        try:
            return await self.perform_each(step.steps)
        except asyncio.CancelledError:
            cleaning: Coroutine[Any, Any, list[Any]] = self.perform_each(step.cleanup)
            seen = await (asyncio.shield(asyncio.ensure_future(cleaning)) if step.is_shielded else cleaning)
            if not step.is_swallowed:
                raise
            return ["cancelled", seen]

    async def raise_failure(self, step: plans.RaiseFailure) -> Any:
        raise ApplicationFailure(f"as planned in {step.label}", type="Planned", details=step.label)

    async def continue_as_new(self, step: plans.ContinueAsNew) -> Any:
        plan = self.plan
        self.ctx.continue_as(
            Plan(label=plan.label, steps=step.steps, comparison=plan.comparison, run=plan.run + 1, carried=tuple(self.log))
        )


def make_waiting_child(label: str) -> Plan:
    """The plan of a child that waits until it is cancelled, which may happen before it runs."""
    hold = plans.WaitForever(label=f"{label}/hold")
    return Plan(label=f"{label}/child", steps=(hold,), comparison=plans.Comparison.STATUS)


PERFORM: Final[Mapping[type[PlannedStep], Callable[[Interpreter, Any], Coroutine[Any, Any, Any]]]] = {
    plans.RunActivity: Interpreter.run_activity,
    plans.RunActivities: Interpreter.run_activities,
    plans.RunUntilFirst: Interpreter.run_until_first,
    plans.RunBranches: Interpreter.run_branches,
    plans.SleepStep: Interpreter.sleep,
    plans.TakeSignals: Interpreter.take_signals,
    plans.MissSignal: Interpreter.miss_signal,
    plans.DrainSignals: Interpreter.drain_signals,
    plans.CollectSignals: Interpreter.collect_signals,
    plans.RelaySignals: Interpreter.relay_signals,
    plans.SignalWorkflow: Interpreter.signal_workflow,
    plans.RunChild: Interpreter.run_child,
    plans.RecordSideEffect: Interpreter.record_side_effect,
    plans.AskForPatch: Interpreter.ask_for_patch,
    plans.TakePoison: Interpreter.take_poison,
    plans.WaitForever: Interpreter.wait_forever,
    plans.CleanUpWhenCancelled: Interpreter.clean_up_when_cancelled,
    plans.RaiseFailure: Interpreter.raise_failure,
    plans.ContinueAsNew: Interpreter.continue_as_new,
}
