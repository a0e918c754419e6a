"""The clients of poisons, and a probe that measures how long others are held up by them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.core.instants import SECOND, Instant
from holdfast.engine.engine import Engine
from holdfast.errors import StoreError
from holdfast.simulation.clients import CAUSED_BY_FAULT, RETRY_MILLIS, Client, ClientLedger
from holdfast.simulation.plans import Plan, RunActivity, SignalCall
from holdfast.simulation.poisons import LATE, PREFIX, Poison
from holdfast.simulation.scripted import scripted
from holdfast.simulation.world import MILLI, World, spawn

if TYPE_CHECKING:
    from holdfast.simulation.poison_watch import PoisonWatch

T = TypeVar("T")
PROBE_MILLIS: Final = (500, 6_000)
"""Between two probes, at random."""
RESTART_POLL: Final = 50 * MILLI
"""How often the probe looks whether a node has been started again, where none is left."""
BLOCKED_POLL: Final = 500 * MILLI
"""How often a client looks whether a poison is blocked."""
ANSWER_LIMIT: Final = 5 * SECOND
"""Within what time a node that lives answers a start, beside the time for which poison turns hold it up."""
LOST_LIMIT: Final = 25 * SECOND
"""What each end of a process may cost a workflow beyond that: a lease, a heartbeat, and the restart of the node."""


class PoisonClient(Client):
    """A client of a poison: it also repeats what was refused because of the poison."""

    def __init__(self, world: World, watch: PoisonWatch, poison: Poison, ledger: ClientLedger) -> None:
        super().__init__(world, poison.workflow_id, poison.calls, ledger)
        self._watch = watch
        self._poison = poison

    async def _signal(self, call: SignalCall) -> str:
        """Signal a poison, where it ends processes not before it is blocked."""
        while call.name == LATE and self._poison.is_signalled_late and self._watch.is_harmful(self._poison):
            await self._world.loop.pause(BLOCKED_POLL)
        return await super()._signal(call)

    async def _repeat(self, operation: Callable[[Engine], Awaitable[T]]) -> T:
        while True:
            try:
                return await self._world.call(operation)
            except (*CAUSED_BY_FAULT, StoreError):
                await self._world.loop.pause(self._world.random.randint(*RETRY_MILLIS) * MILLI)


class Probe:
    """Starts one small workflow after the other while there are poisons, and checks how long each of them takes."""

    def __init__(self, world: World, watch: PoisonWatch, ledger: ClientLedger) -> None:
        self.name = "the probe"
        self.present: str | None = None
        self._world = world
        self._watch = watch
        self._ledger = ledger
        self.task = spawn(world.loop, self._run())

    async def _run(self) -> None:
        """Probe until the poisons are cured."""
        loop, number = self._world.loop, 0
        while not self._watch.is_over:
            await loop.pause(self._world.random.randint(*PROBE_MILLIS) * MILLI)
            number += 1
            await self._probe(f"{PREFIX}/probe/{number}")
        self.present = None

    async def _probe(self, name: str) -> None:
        plan = Plan(label=name, steps=(RunActivity(label=name),))
        self.present, began = name, self._world.loop.now
        await self._call(lambda engine: engine.start(scripted, plan, workflow_id=name, idempotency_key=name))
        await self._call(lambda engine: engine.wait_for_result(name), is_quick=False)
        ends = sum(began <= end for end in self._watch.ends)
        if ends == 0:
            ends = sum(began - LOST_LIMIT <= end for end in self._watch.ends)
        self._check(name, began, LOST_LIMIT * ends)

    async def _call(self, operation: Callable[[Engine], Awaitable[T]], *, is_quick: bool = True) -> T:
        while True:
            while not any(node.is_open for node in self._world.nodes.values()):
                await self._world.loop.pause(RESTART_POLL)
            began = self._world.loop.now
            try:
                answer = await self._world.call(operation)
            except CAUSED_BY_FAULT:
                await self._world.loop.pause(RETRY_MILLIS[0] * MILLI)
            else:
                if is_quick:
                    self._check("the start of a probe", began, 0)
                return answer

    def _check(self, what: str, began: Instant, allowed: int) -> None:
        now = self._world.loop.now
        held_up = sum(end - start for _, start, end in self._watch.held_up if start <= now and end >= began)
        if now - began > ANSWER_LIMIT + allowed + held_up:
            self._watch.complain(f"{what} took {(now - began) / SECOND:.1f} s, held up by poisons")
