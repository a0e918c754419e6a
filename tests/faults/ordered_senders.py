"""Senders that number their signals and make each call after the one before was answered, by every way to an execution.

Two nodes with room for two programs, histories that are replayed ahead, and a third node without the code: so nearly every
signal is put off, forwarded or handed on. What the histories hold is checked sender by sender.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from holdfast import Context, Engine, workflow
from holdfast.code.definitions import Workflow
from holdfast.core.events import SignalReceived
from holdfast.core.payloads import decode
from holdfast.engine.use_cases.transactional_outbox import TransactionWork
from holdfast.errors import ExecutionClosed, ExecutionNotFound, OutcomeUnknown, StoreUnavailable

WAYS: Final = ("workflow id", "execution id", "start", "transaction", "transaction with start", "other workflow")
PATIENCE: Final = 300.0
"""Seconds for which all that was accepted may need to arrive."""

BROKEN: Final[set[str]] = set()
"""Workflow ids whose code does not fit its history at present, so that they are blocked where they are replayed."""


class Stress(msgspec.Struct, frozen=True):
    """How much is sent to how many executions, and how long their histories are."""

    executions: int
    senders: int
    """Per execution."""
    signals: int
    """Per sender."""
    events: int
    """In each history, before the first signal."""
    seed: int = 0


@workflow
async def receives(ctx: Context, events: int, expected: int, taken: int = 0) -> int:
    """Has a long history, and takes signals until all are there; goes on in another run where it is told to."""
    called: list[int] = []
    for number in range(events):
        ctx.side_effect(functools.partial(called.append, number))
    if not called and ctx.info.workflow_id in BROKEN:  # in a replay, where no function is called
        ctx.side_effect(str)
        ctx.patched("which no history has")
    while taken < expected:
        await ctx.wait_for_signal("x", tuple[str, int])
        taken += 1
        if taken % max(10, expected // 10) == 0 and taken < expected:
            ctx.continue_as(events, expected, taken)
    return taken


@workflow
async def relays(ctx: Context, target: str, sender: str, number: int) -> None:
    """Sends a signal as a workflow does: it is answered when the receiver has it."""
    await ctx.signal_external_workflow(target, "x", (sender, number))


@workflow
async def unrelated(_ctx: Context) -> None:
    """What the node has that lacks the code of the others."""


class Sender:
    """One client of all nodes."""

    def __init__(self, engines: Sequence[Engine], name: str, target: str, arguments: Sequence[Any], seed: str) -> None:
        self._engines = engines
        self._name = name
        self._target = target
        self._arguments = arguments
        self._random = random.Random(seed)
        self._execution_id = ""

    async def send_until_stored(self, number: int) -> None:
        """Send one signal, again if the store was too busy: nothing was stored then. It is no fault of the order."""
        while True:
            try:
                await self.send(number)
                return
            except OutcomeUnknown:
                raise
            except StoreUnavailable:
                await asyncio.sleep(0.1)

    async def send(self, number: int) -> None:
        """Send one signal, by the next node; returns when it is answered."""
        way = self._random.choice(WAYS)
        engine = self._engines[number % len(self._engines)]
        if engine is self._engines[-1] and way in ("start", "transaction with start", "other workflow"):
            engine = self._engines[0]  # the last one has no code for these
        value = (self._name, number)
        if way == "execution id" and self._execution_id:
            try:
                await engine.signal_workflow(self._execution_id, "x", value)
                return
            except (ExecutionClosed, ExecutionNotFound):
                way = "workflow id"
        if way == "start":
            opened = await engine.signal_with_start_workflow(
                self._target, receives, *self._arguments, signal_name="x", signal_value=value
            )
            self._execution_id = opened.workflow_execution_id
        elif way == "transaction":
            await engine.transaction(self._enlist(value, with_start=False))
        elif way == "transaction with start":
            await engine.transaction(self._enlist(value, with_start=True))
        elif way == "other workflow":
            await (await engine.start(relays, self._target, *value)).result()
        else:
            key = f"{self._name}-{number}" if self._random.random() < 0.5 else None
            answer = await engine.signal_workflow(self._target, "x", value, request_id=key)
            self._execution_id = answer.workflow_execution_id

    def _enlist(self, value: tuple[str, int], *, with_start: bool) -> Any:
        async def enlist(_connection: Any, work: TransactionWork) -> None:
            if with_start:
                work.signal_with_start(self._target, receives, *self._arguments, signal_name="x", signal_value=value)
            else:
                work.signal(self._target, "x", value)

        return enlist


async def run_stress(url: str, stress: Stress) -> tuple[int, list[str]]:
    """Send everything; how many signals were sent, and what is wrong with the histories."""
    options: dict[str, Any] = {"max_live_programs": 2, "replay_ahead": min(200, stress.events // 2), "max_signals": 100_000}
    total = stress.senders * stress.signals
    arguments = (stress.events, total)
    async with AsyncExitStack() as stack:
        codes: dict[str, list[Workflow[..., Any]]] = {"a": [receives, relays], "b": [receives, relays], "c": [unrelated]}
        engines = [
            await stack.enter_async_context(Engine(url, workflows=workflows, node=name, **options))
            for name, workflows in codes.items()
        ]
        targets = [f"w{number}" for number in range(stress.executions)]
        for number, target in enumerate(targets):
            await engines[number % 2].start(receives, *arguments, workflow_id=target)

        async def send_all(target: str, name: str) -> None:
            sender = Sender(engines, name, target, arguments, f"{stress.seed} {target} {name}")
            for number in range(stress.signals):
                await sender.send_until_stored(number)

        sending = [send_all(target, f"s{number}") for target in targets for number in range(stress.senders)]
        disturbing = asyncio.ensure_future(_block_and_retry(engines, targets, stress.seed))
        try:
            await asyncio.gather(*sending)
        finally:
            disturbing.cancel()
            await asyncio.gather(disturbing, return_exceptions=True)
        BROKEN.clear()
        for target in targets:
            await engines[0].retry_blocked(target)
        found: list[str] = []
        for target in targets:
            result = await asyncio.wait_for(engines[0].handle(target).result(), PATIENCE)
            if result != total:
                found.append(f"{target} took {result} signals of {total}")
            found += await _find_disorder(engines[0], target)
    return stress.executions * total, found


async def _block_and_retry(engines: Sequence[Engine], targets: Sequence[str], seed: int) -> None:
    """Block one execution after the other where it is replayed, and let it go on after a while: its inbox has grown."""
    choice = random.Random(seed)
    while True:
        target = choice.choice(targets)
        BROKEN.add(target)
        await asyncio.sleep(0.3)
        BROKEN.discard(target)
        await engines[0].retry_blocked(target)
        await asyncio.sleep(0.3)


async def _find_disorder(engine: Engine, target: str) -> list[str]:
    """Where the history of a run has a signal of a sender behind a later one; from the last run to the first."""
    found: list[str] = []
    for execution_id in [one.execution_id for one in await engine.list(workflow_id=target)]:
        latest: dict[str, int] = {}
        for one in (await engine.history(execution_id)).events:
            if not isinstance(one.event, SignalReceived):
                continue
            sender, number = decode(one.event.value, tuple[str, int], "a signal")
            if number <= latest.get(sender, -1):
                found.append(f"{target}, run {execution_id}: {sender} sent {number} before {latest[sender]}")
            latest[sender] = max(number, latest.get(sender, -1))
    return found
