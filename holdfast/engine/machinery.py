"""What runs inside an open engine: its parts, how they are connected, how they begin and end together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.core.instants import to_micros
from holdfast.engine.activities.offers import Offers
from holdfast.engine.activities.runner import ActivityRunner
from holdfast.engine.activities.transactions import Transactions
from holdfast.engine.batches.programs import ProgramCache
from holdfast.engine.batches.pump import Pump
from holdfast.engine.batches.requests import Request
from holdfast.engine.batches.settling import Settled
from holdfast.engine.batches.watchdog import Watchdog
from holdfast.engine.moving.marks import refuse_moved
from holdfast.engine.nodes.membership import Membership
from holdfast.engine.nodes.recovery import Recovery
from holdfast.engine.nodes.retention import Retention
from holdfast.engine.nodes.roster import NodeDetails, describe_node
from holdfast.engine.results import EndsElsewhere, Outcomes
from holdfast.errors import EngineClosed, HoldfastError
from holdfast.store.contract import Pulse, Wake

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.engine.delivery import Delivery
    from holdfast.engine.registry import Registry
    from holdfast.engine.routes import Routes
    from holdfast.engine.views import RecoveryReport
    from holdfast.store.contract import Store


class Machinery:
    """The parts of one engine. Each tells of what happened by a callback; what follows from it is said here."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        routes: Routes,
        config: Config,
        clock: Clock,
        node: str,
        delivery: Delivery,
        queue_limits: Mapping[str, int],
        on_replaced: Callable[[HoldfastError], None],
    ) -> None:
        self._store = store
        self._registry = registry
        self._routes = routes
        self._config = config
        self._clock = clock
        self._node = node
        self._delivery = delivery
        self._tell_replaced = on_replaced
        self._replaced_by: HoldfastError | None = None
        self._works = False
        self.is_open = False
        self.background: set[asyncio.Task[None]] = set()
        self.outcomes = Outcomes()
        self.ends = EndsElsewhere(store, self.outcomes)
        self.cache = ProgramCache(config.max_live_programs, config.max_live_bytes)
        self.pump = Pump(store, self.cache, registry.make_program, config, clock, node, routes, self._on_settled)
        transactions = Transactions(store, clock, config.payload_limit, self.on_put)
        self.runner = ActivityRunner(registry.activities, config, clock, self.pump.submit, queue_limits, transactions)
        self.offers = Offers(
            store, registry, routes, self.runner, delivery, node=node, submit=self.pump.submit, spawn=self.spawn
        )
        self.recovery = Recovery(store, self.pump, routes)
        self.membership = Membership(
            store,
            clock,
            config,
            node,
            describe=self._describe,
            submit=self.pump.submit,
            spawn=self.spawn,
            on_pulse=self._on_pulse,
            on_gone=self._on_gone,
            on_chain=self.pump.care.begin,
            on_replaced=self._on_replaced,
        )
        self.retention = self._make_retention()
        self.watchdog = Watchdog(self.pump, config.slow_turn)
        self.pump.make_room = self.offers.make_room
        self.pump.care.is_busy = lambda: self.runner.is_busy
        self.pump.care.is_alive = lambda other: other in self.membership.peers.names
        self.runner.wait_until_calm = self.pump.care.wait_until_calm

    def _make_retention(self) -> Retention | None:
        if self._config.retention is None:
            return None
        window = to_micros(self._config.retention, "retention=…")
        return Retention(self._store, self._clock, self._node, window, self.spawn)

    def _describe(self) -> NodeDetails:
        return describe_node(
            0.0 if self._store.exclusive else self._config.lease,
            queues=[] if self._routes.takes_all else sorted(self._routes.queues),
            workflows=sorted(self._registry.workflows),
            activities=sorted(self._registry.activities),
            running=self.runner.running_count,
        )

    # --- beginning and ending ---

    async def open(self) -> RecoveryReport:
        """Open the store, recover what was in flight, and begin to work."""
        await self._store.open()
        try:
            await refuse_moved(self._store)
            self._store.on_wake(self._on_wake)
            gone = await self.membership.join(self._routes.listed, self._routes.offers)
            if not self._store.exclusive:
                await refuse_moved(self._store)  # a move that began meanwhile has seen this node, or its mark is seen here
            self.is_open = True
            report = await self.recovery.recover(gone)
            await self.membership.forget(gone)
            if self._replaced_by is not None:
                raise self._replaced_by
            self.pump.start()
            self.offers.look()
        except BaseException:
            self.is_open = False
            await self.pump.kill()
            await self.membership.leave([])
            await self._store.close()
            raise
        self._works = True
        self.watchdog.start()
        if self.retention is not None:
            self.retention.start()
        return report

    async def recover(self) -> RecoveryReport:
        """Take over what nodes left that said goodbye, and try blocked executions again."""
        return await self.recovery.recover(await self.membership.find_gone(), alive=[self._node])

    async def close(self) -> None:
        """Take no more work, let running activities finish within the grace time, commit, say goodbye, close."""
        self._stop_watching()
        self.membership.prepare_to_leave()
        self.pump.drain()
        self.offers.close()
        await self.runner.close(self._config.shutdown_grace)
        await self.pump.stop()
        for task in list(self.background):
            await task
        await self.membership.leave(self.runner.in_hand)
        self._forget(EngineClosed("Expected to wait for a result, but the engine was shut down. Ask another."))
        await self._store.close()

    async def crash(self, told: HoldfastError) -> None:
        """End as a killed process does: what is not committed never was, nobody outside is told. The store stays open."""
        self._stop_watching()
        self.offers.close()
        await self.pump.kill()
        await self.runner.close(0)
        await self.membership.abandon()
        background = list(self.background)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        self._forget(told)

    def _stop_watching(self) -> None:
        self.is_open = False
        self.watchdog.stop()
        if self.retention is not None:
            self.retention.stop()

    def _forget(self, told: HoldfastError) -> None:
        self.cache.clear()
        self.outcomes.fail_all(told)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let something go on in the background; closing waits for it."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    # --- what follows from what ---

    def _on_settled(self, settled: Settled) -> None:
        """A batch is committed: answer, stop and start activities, tell who waits."""
        for request, answer in settled.answers:
            request.resolve(answer)
        for execution_id, number in settled.stopped:
            self.runner.stop(execution_id, number)
        for task in settled.dispatched:
            self.runner.start(task)
        for execution, closing in settled.closed:
            self.outcomes.note((execution.org, execution.execution_id), closing)
        if settled.elsewhere:
            self.spawn(self._deliver_elsewhere(settled.elsewhere))
        if settled.offered:
            self.offers.look()
            self.membership.peers.wake(Wake.OFFERS)
        if settled.sent:
            self.membership.peers.wake(Wake.WORK)
        if settled.closed:
            self.membership.peers.wake(Wake.ENDS)
            if self.retention is not None:
                self.retention.note_end(self._clock.now())

    async def _deliver_elsewhere(self, requests: Sequence[tuple[Request, str]]) -> None:
        await self._delivery.deliver_elsewhere(requests)
        self.pump.look()  # whoever held them may have let go before it could see what arrived

    def on_put(self) -> None:
        """Something was put into an inbox, and committed."""
        self.pump.look()
        self.membership.peers.wake(Wake.WORK)

    def _on_pulse(self, pulse: Pulse) -> None:
        """A slow pulse that also notices what a lost wake-up did not tell. If there is nothing to do, nothing is asked."""
        if pulse.has_inbox or (pulse.next_due is not None and pulse.next_due <= self._clock.now()):
            self.pump.look()
        elif pulse.next_due is not None:
            self.pump.note_due(pulse.next_due)
        self.offers.on_beat(pulse)
        self.pump.forget_skipped()
        if self.outcomes.watched:
            self.spawn(self.ends.look())

    def _on_wake(self, why: Wake) -> None:
        """Another node did something that may matter here."""
        self.membership.peers.hear()
        if why is Wake.WORK:
            self.pump.look()
        elif why is Wake.OFFERS:
            self.offers.look()
        else:
            self._on_end_elsewhere()

    def _on_replaced(self, error: HoldfastError) -> None:
        """Another process has this node's name, and goes on."""
        self._replaced_by = error
        if self._works:
            self._tell_replaced(error)

    def _on_gone(self) -> None:
        """Nodes are gone: what they closed last nobody told, and what they were about to do is for others."""
        self._on_end_elsewhere()
        self.pump.skip.clear()

    def _on_end_elsewhere(self) -> None:
        if self.outcomes.watched:
            self.spawn(self.ends.look())
        if self.retention is not None:
            self.retention.note_end(self._clock.now())
