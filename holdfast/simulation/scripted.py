"""The one workflow of the simulation: carries out a plan and logs what it saw. And the activity that plans ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, Final

import msgspec

from holdfast.code.context import Context
from holdfast.core.retry import Retry
from holdfast.engine.activities.attempt import ActivityInfo, activity_info, heartbeat
from holdfast.errors import ActivityError, ApplicationFailure, ChildWorkflowFailed, ExternalSignalFailed
from holdfast.simulation import plans
from holdfast.simulation.plans import FOREVER_MILLIS, SAFETY_MILLIS, AnyStep, Ending, Kind, Plan, Token
from holdfast.workflow import activity, workflow

ON_ATTEMPT: Final[ContextVar[Callable[[ActivityInfo, bool], None]]] = ContextVar("holdfast_simulated_attempt")
"""Told of every attempt that begins, in the context of the node that runs it, and whether one before it was interrupted."""

FIRST_PAUSE: Final = 0.05
HANG_SECONDS: Final = 0.5


class Nonces:
    """Numbers that differ with every call; set back when a world begins, so that a seed gives the same ones."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def take(self) -> int:
        """Another number."""
        return next(self._numbers)

    def reset(self) -> None:
        """Begin anew."""
        self._numbers = count(1)


NONCES: Final = Nonces()


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an activity is asked to do. `nonce` is a value of its workflow that no other run has."""

    label: str
    kind: Kind = Kind.GIVES
    millis: int = 0
    times: int = 0
    nonce: int = 0


# --- the activity --------------------------------------------------------------------------------------------------------


@activity
async def work(order: Order) -> list[Any]:
    """Do as ordered; what is given back depends on the order alone."""
    info = activity_info()
    ON_ATTEMPT.get()(info, order.kind is Kind.GIVES and info.attempt > 1)
    if order.millis:
        await asyncio.sleep(order.millis / 1000)
    if order.kind is Kind.HANGS:
        await asyncio.sleep(FOREVER_MILLIS / 1000)
    if order.kind is Kind.BEATS:
        heartbeat({"attempt": info.attempt})
    if order.kind in (Kind.FLAKY, Kind.BEATS) and info.attempt <= order.times:
        raise ApplicationFailure("not yet", type="Flaky")
    if order.kind in (Kind.FAILS, Kind.REFUSES):
        raise ApplicationFailure("never", type="Broken", details=order.label, non_retryable=order.kind is Kind.REFUSES)
    return [order.label, order.nonce]


def run_order(ctx: Context, step: plans.Act) -> asyncio.Future[list[Any]]:
    """Ask for an activity with the retries that its kind needs."""
    most = max(step.times, 1) if step.kind in (Kind.FAILS, Kind.HANGS) else step.times + 1
    options: dict[str, Any] = {"start_to_close": HANG_SECONDS} if step.kind is Kind.HANGS and not step.is_fatal else {}
    if step.kind is Kind.BEATS:
        options["heartbeat"] = SAFETY_MILLIS / 1000
    retry = Retry(max_attempts=most, initial=FIRST_PAUSE)
    order = Order(step.label, step.kind, step.millis, step.times)
    return ctx.run(work.with_options(retry=retry, **options), order)


# --- the workflow --------------------------------------------------------------------------------------------------------


@workflow
async def scripted(ctx: Context, plan: Plan) -> list[Any]:
    """Carry out a plan; the result is the log of what every step saw."""
    return await Interpreter(ctx, plan).perform_all()


class Interpreter:
    """Carries out the steps of one plan."""

    def __init__(self, ctx: Context, plan: Plan) -> None:
        self.ctx = ctx
        self.plan = plan
        self.log: list[Any] = list(plan.carried)

    async def perform_all(self) -> list[Any]:
        """The whole plan."""
        for step in self.plan.steps:
            self.log.append(await self.perform(step))
        return self.log

    async def perform_each(self, steps: Sequence[AnyStep]) -> list[Any]:
        """Steps inside of others."""
        return [await self.perform(step) for step in steps]

    async def perform(self, step: AnyStep) -> Any:
        """One step; what it saw."""
        return await PERFORM[type(step)](self, step)

    # --- activities ---

    async def act(self, step: plans.Act) -> Any:
        result = run_order(self.ctx, step)
        if not step.is_awaited:
            return None
        try:
            return await result
        except ActivityError as error:
            if step.is_fatal:
                raise
            return [type(error).__name__, error.type, error.details]

    async def together(self, step: plans.Together) -> Any:
        ended = await asyncio.gather(*(run_order(self.ctx, act) for act in step.acts), return_exceptions=True)
        return [one if isinstance(one, list) else type(one).__name__ for one in ended]

    async def haste(self, step: plans.Haste) -> Any:
        first, *_others = [run_order(self.ctx, act) for act in step.acts]
        return await first

    async def branches(self, step: plans.Branches) -> Any:
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

    async def sleep(self, step: plans.Sleep) -> None:
        await self.ctx.sleep(step.millis / 1000)

    async def take(self, step: plans.Take) -> Any:
        timeout = SAFETY_MILLIS / 1000 if step.is_timed else None
        return by_sender([await self.ctx.wait_for_signal(step.name, Token, timeout=timeout) for _ in range(step.count)])

    async def miss(self, step: plans.Miss) -> str:
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

    async def drain(self, step: plans.Drain) -> Any:
        await self.ctx.wait_for_signal(step.gate, Token)
        pending, has = self.ctx.pending_signal_count(step.name), self.ctx.has_signal(step.name)
        tokens = self.ctx.drain_signals(step.name, Token)
        return [pending, has, by_sender(tokens)]

    async def collect(self, step: plans.Collect) -> Any:
        tokens = [await self.ctx.wait_for_signal(step.name, Token)]
        while True:
            await run_order(self.ctx, plans.Act(label=f"{step.label}/{len(tokens)}", millis=step.millis))
            if not self.ctx.has_signal(step.name):
                return by_sender(tokens)
            tokens.extend(self.ctx.drain_signals(step.name, Token))

    async def relay(self, step: plans.Relay) -> Any:
        token = await self.ctx.wait_for_signal(step.name, Token)
        self.log.append([token.sender, token.number])
        await run_order(self.ctx, plans.Act(label=f"{step.label}/{step.left}", millis=step.millis))
        if step.left > 1:
            await self.again(plans.Again(label=step.label, steps=(msgspec.structs.replace(step, left=step.left - 1),)))
        return by_sender([Token(sender, number) for sender, number in self.log])

    async def tell(self, step: plans.Tell) -> str:
        try:
            await self.ctx.signal_external_workflow(step.target, step.name, Token(step.label))
        except ExternalSignalFailed as error:
            return error.type
        return "told"

    # --- children, side effects ---

    async def child(self, step: plans.Child) -> Any:
        handle = self.ctx.start_child(scripted, step.plan, workflow_id=step.workflow_id, parent_close=step.policy)
        if step.told is not None:
            await handle.signal(step.told, Token(step.label))
        if not step.is_awaited:
            return None
        try:
            return await handle
        except ChildWorkflowFailed as error:
            return [type(error).__name__, error.type]

    async def note(self, step: plans.Note) -> bool:
        nonce = self.ctx.side_effect(NONCES.take)
        echoed = await self.ctx.run(work, Order(step.label, nonce=nonce))
        return bool(echoed == [step.label, nonce])

    async def patch(self, step: plans.Patch) -> bool:
        return self.ctx.patched(step.label)

    # --- ends ---

    async def hold(self, step: plans.Hold) -> Any:
        self.ctx.side_effect(lambda: {"marker": step.label})
        if step.tell is not None:
            _ = self.ctx.signal_external_workflow(step.tell, step.label, Token(step.label))
        return await self._wait_forever(step.ending, step.label)

    def _wait_forever(self, ending: Ending, label: str) -> Awaitable[Any]:
        ctx, name = self.ctx, f"never/{label}"
        endless = plans.Act(label=label, kind=Kind.HANGS, is_fatal=True)
        if ending is Ending.SLEEP:
            return ctx.sleep(FOREVER_MILLIS / 1000)
        if ending is Ending.ACTIVITY:
            return run_order(ctx, endless)
        if ending is Ending.CHILD:
            return ctx.run_child(scripted, held_child(label))
        if ending is Ending.SHIELD:
            return asyncio.shield(run_order(ctx, endless))
        if ending is Ending.ALL:
            every = (Ending.ACTIVITY, Ending.SLEEP, Ending.CHILD)
            return asyncio.gather(*(self._wait_forever(one, f"{label}/{one}") for one in every))
        return ctx.wait_for_signal(name)

    async def guarded(self, step: plans.Guarded) -> Any:
        try:
            return await self.perform_each(step.steps)
        except asyncio.CancelledError:
            cleaning: Coroutine[Any, Any, list[Any]] = self.perform_each(step.cleanup)
            seen = await (asyncio.shield(asyncio.ensure_future(cleaning)) if step.is_shielded else cleaning)
            if not step.is_swallowed:
                raise
            return ["cancelled", seen]

    async def fail(self, step: plans.Fail) -> Any:
        raise ApplicationFailure(f"as planned in {step.label}", type="Planned", details=step.label)

    async def again(self, step: plans.Again) -> Any:
        plan = self.plan
        self.ctx.continue_as(
            Plan(label=plan.label, steps=step.steps, judged=plan.judged, run=plan.run + 1, carried=tuple(self.log))
        )


def held_child(label: str) -> Plan:
    """A child that waits until it is cancelled; that may happen before it runs."""
    hold = plans.Hold(label=f"{label}/hold")
    return Plan(label=f"{label}/child", steps=(hold,), judged=plans.Judged.STATUS)


def by_sender(tokens: Sequence[Token]) -> list[Any]:
    """Tokens by sender, each one's in the order in which they came; the order of senders among each other is open."""
    senders: dict[str, list[int]] = {}
    for token in tokens:
        senders.setdefault(token.sender, []).append(token.number)
    return [[sender, senders[sender]] for sender in sorted(senders)]


PERFORM: Final[Mapping[type[plans.Step], Callable[[Interpreter, Any], Coroutine[Any, Any, Any]]]] = {
    plans.Act: Interpreter.act,
    plans.Together: Interpreter.together,
    plans.Haste: Interpreter.haste,
    plans.Branches: Interpreter.branches,
    plans.Sleep: Interpreter.sleep,
    plans.Take: Interpreter.take,
    plans.Miss: Interpreter.miss,
    plans.Drain: Interpreter.drain,
    plans.Collect: Interpreter.collect,
    plans.Relay: Interpreter.relay,
    plans.Tell: Interpreter.tell,
    plans.Child: Interpreter.child,
    plans.Note: Interpreter.note,
    plans.Patch: Interpreter.patch,
    plans.Hold: Interpreter.hold,
    plans.Guarded: Interpreter.guarded,
    plans.Fail: Interpreter.fail,
    plans.Again: Interpreter.again,
}
