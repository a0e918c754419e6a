"""What runs inside an open engine: its parts, how they are connected, how they begin and end together.

This is the one place where parts are wired, all of them by their constructors. Where two parts need each other, the one that
is made first gets a method of the runtime, which says what follows from what.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.envelopes import Terminate
from holdfast.core.instants import SECOND, to_micros
from holdfast.core.program_limits import ProgramLimits
from holdfast.engine.activities.beginnings import Beginnings
from holdfast.engine.activities.offers import OfferTaker, OfferTakerDeps
from holdfast.engine.activities.outcome_sender import OutcomeSender
from holdfast.engine.activities.reconciling import Reconciler, ReconcilerDeps
from holdfast.engine.activities.runner import ActivityRunner, ActivityRunnerDeps
from holdfast.engine.activities.transactions import TransactionRunner
from holdfast.engine.living_nodes import LivingNodes
from holdfast.engine.nodes.input_announcements import InputAnnouncements
from holdfast.engine.nodes.membership import Membership, MembershipCallbacks, MembershipDeps
from holdfast.engine.nodes.recovery import Recovery
from holdfast.engine.nodes.retention import Retention, RetentionTarget, closed_executions, dead_letters
from holdfast.engine.nodes.roster import NodeDetails, describe_node
from holdfast.engine.nodes.take_over import TakeOver
from holdfast.engine.nodes.unserved import UnservedWatch, UnservedWatchDeps
from holdfast.engine.quarantine import Quarantine
from holdfast.engine.regress import Regress
from holdfast.engine.restores import Restores, RestoresDeps
from holdfast.engine.results import RemoteResults, ResultWaiters
from holdfast.engine.transfer.marks import refuse_moved
from holdfast.engine.turns.commit_outcome import CommitOutcome, log_troubles
from holdfast.engine.turns.forwarding import Forwarder
from holdfast.engine.turns.lost_closings import LostClosings
from holdfast.engine.turns.program_cache import LiveExecution, ProgramCache
from holdfast.engine.turns.pump import Pump
from holdfast.engine.turns.services import TurnServices
from holdfast.engine.turns.turn_limit import TurnLimit
from holdfast.engine.turns.turn_order import TurnOrder
from holdfast.engine.turns.watchdog import Watchdog
from holdfast.errors import EngineClosed, HoldfastError
from holdfast.store.contract import HeartbeatReply, WakeReason

if TYPE_CHECKING:
    from holdfast.core.placing import MayKeep
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.engine.routes import Routes
    from holdfast.engine.turns.plan import Forward
    from holdfast.engine.views import RecoveryReport
    from holdfast.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeDeps:
    """What an engine was made with."""

    store: Store
    catalog: Catalog
    routes: Routes
    config: Config
    clock: Clock
    node: str
    queue_limits: Mapping[str, int]
    find_client: Callable[[], Any]
    """The verbs of the engine, for its activities."""


class Runtime:
    """The parts of one engine. Each tells of what happened by a callback; what follows from it is said here."""

    def __init__(self, deps: RuntimeDeps, on_replaced: Callable[[HoldfastError], None]) -> None:
        self._store = deps.store
        self._catalog = deps.catalog
        self._inputs = InputAnnouncements(deps.store, deps.catalog)
        self._routes = deps.routes
        self._config = deps.config
        self._clock = deps.clock
        self._node = deps.node
        self._tell_replaced = on_replaced
        self._replaced_by: HoldfastError | None = None
        self._works = False
        self.is_open = False
        self.background: set[asyncio.Task[None]] = set()
        self.result_waiters = ResultWaiters()
        self.remote_results = RemoteResults(deps.store, self.result_waiters)
        self.cache = ProgramCache(deps.config.max_live_programs, deps.config.max_live_bytes, self._is_outdated)
        self._process, living = secrets.token_hex(8), LivingNodes()
        """The token of this process, which tells it from all others that ever had the node's name."""
        self.turn_limit = TurnLimit(deps.config.turn_limit)
        self.quarantine = Quarantine(living, deps.config.max_lost)
        self.pump = Pump(self._make_services(self._process), self._on_outcome, self._make_may_keep)
        self._forwarder = Forwarder(deps.store, self.pump.submit)
        self.runner = self._make_runner(deps.queue_limits, deps.find_client)
        self.offers = OfferTaker(
            OfferTakerDeps(
                store=deps.store,
                catalog=deps.catalog,
                routes=deps.routes,
                runner=self.runner,
                clock=deps.clock,
                node=deps.node,
                submit=self.pump.submit,
                spawn=self.spawn,
            )
        )
        self.take_over = TakeOver(
            deps.store,
            self.pump.submit,
            deps.clock,
            deps.node,
            lease=round(deps.config.lease * SECOND),
            heartbeat=round(deps.config.heartbeat * SECOND),
        )
        self.reconciler = Reconciler(
            ReconcilerDeps(
                store=deps.store,
                runner=self.runner,
                activities=deps.catalog.activities,
                cache=self.cache,
                node=deps.node,
                submit=self.pump.submit,
                is_held=self.pump.is_held,
            )
        )
        self.recovery = Recovery(
            deps.store,
            self.pump,
            deps.routes,
            self.take_over,
            on_retried=lambda: self.membership.peers.wake(WakeReason.RETRIED),
        )
        self.retention = self._make_retention(deps.config.retention, closed_executions)
        self.dead_letter_retention = self._make_retention(deps.config.dead_letter_retention, dead_letters)
        self._retentions = [one for one in (self.retention, self.dead_letter_retention) if one is not None]
        self._unserved = UnservedWatch(
            UnservedWatchDeps(store=deps.store, clock=deps.clock, node=deps.node, describe=self._describe, spawn=self.spawn)
        )
        self.restores = Restores(
            RestoresDeps(
                node=deps.node,
                cache=self.cache,
                pump=self.pump,
                result_waiters=self.result_waiters,
                remote_results=self.remote_results,
                offers=self.offers,
                take_over=self.take_over,
                reconciler=self.reconciler,
                retentions=self._retentions,
            )
        )
        self.membership = self._make_membership(self._process, living)
        self.watchdog = Watchdog(
            self.pump,
            self.turn_limit,
            deps.config.slow_turn,
            self.membership.give_up_lease,
            self.runner.begun.describe_task,
        )

    def _make_services(self, process: str) -> TurnServices:
        config = self._config
        limits = ProgramLimits(config.payload_limit, config.max_turn_bytes, self.turn_limit, config.propagate_child_failures)
        return TurnServices(
            store=self._store,
            cache=self.cache,
            make_program=functools.partial(self._catalog.make_program, limits=limits),
            routes=self._routes,
            quarantine=self.quarantine,
            config=config,
            limits=config.limits,
            clock=self._clock,
            turn_order=TurnOrder(),
            lost_closings=LostClosings(),
            cpu_timer=self.turn_limit.cpu_timer,
            node=self._node,
            process=process,
            on_older_row=lambda: self.restores.on_went_back(Regress.EXECUTION),
        )

    def _make_runner(self, queue_limits: Mapping[str, int], find_client: Callable[[], Any]) -> ActivityRunner:
        sender = OutcomeSender(self._routes, self._forwarder, submit=self.pump.submit, spawn=self.spawn)
        return ActivityRunner(
            ActivityRunnerDeps(
                activities=self._catalog.activities,
                config=self._config,
                clock=self._clock,
                queue_limits=queue_limits,
                transactions=TransactionRunner(self._store, self._clock, self._config.payload_limit, self.on_put),
                beginnings=Beginnings(self._store, self._clock),
                send_outcome=sender.send,
                on_slot_freed=self._on_slot_freed,
                wait_for_suspect_turns=self.quarantine.wait_until_no_trial,
                find_client=find_client,
            )
        )

    def _make_membership(self, process: str, living: LivingNodes) -> Membership:
        return Membership(
            MembershipDeps(
                store=self._store,
                clock=self._clock,
                config=self._config,
                node=self._node,
                process=process,
                living=living,
                take_over=self.take_over,
                describe=self._describe,
                spawn=self.spawn,
            ),
            MembershipCallbacks(
                on_heartbeat=self._on_heartbeat,
                on_went_back=self.restores.on_went_back,
                on_nodes_ended=self._on_nodes_ended,
                on_replaced=self._on_replaced,
            ),
        )

    def _make_retention(self, seconds: float | None, target: Callable[[Store], RetentionTarget]) -> Retention | None:
        if seconds is None:
            return None
        return Retention(self._store, self._clock, self._node, to_micros(seconds), self.spawn, target(self._store))

    def _describe(self) -> NodeDetails:
        return describe_node(
            0.0 if self._store.exclusive else self._config.lease,
            queues=[] if self._routes.takes_all else sorted(self._routes.queues),
            versions=self._catalog.versions,
            inputs=self._inputs.digests,
            activities=sorted(self._catalog.activities),
            running=self.runner.running_count,
        )

    # --- beginning and ending ---

    async def open(self) -> RecoveryReport:
        """Open the store, recover what was in flight, and begin to work."""
        await self._store.open()
        try:
            await refuse_moved(self._store)
            await self._inputs.announce()
            self._store.on_wake(self._on_wake)
            ended = await self.membership.join(lambda: self._routes.listed, self._routes.offer_routes)
            if not self._store.exclusive:
                # A transfer that began meanwhile has seen this node, or its mark is seen here.
                await refuse_moved(self._store)
            self.is_open = True
            report = await self.recovery.recover(ended)
            await self.take_over.forget(ended)
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
        for retention in self._retentions:
            retention.start()
        await self._unserved.look_when_opened()
        return report

    async def recover(self) -> RecoveryReport:
        """Take over from nodes that left cleanly, and try blocked executions again."""
        return await self.recovery.recover(await self.membership.find_left(), alive=[self._node])

    def note_definitions(self) -> None:
        """Definitions were added or removed: programs of old ones go, and executions that waited for new ones go on."""
        self.cache.drop_outdated()
        self.membership.announce()
        self.spawn(self._inputs.follow_change(self.membership.announce))
        self.pump.unskip()

    async def close(self) -> None:
        """Take no more work, let running activities finish within the grace time, commit, leave, close the store.

        It leaves before it waits for activities that were cancelled to clean up: other nodes take over at once.
        """
        self._mark_closed()
        self.membership.prepare_to_leave()
        self.pump.drain()
        self.offers.close()
        await self.runner.close(self._config.shutdown_grace)
        await self.pump.stop()
        for task in list(self.background):
            await task
        await self.membership.leave(self.runner.unfinished)
        await self.runner.end_cancelled()
        self._forget(EngineClosed("Expected to wait for a result, but the engine was shut down. Ask another."))
        self.watchdog.stop()
        await self._store.close()

    async def crash(self, error: HoldfastError) -> None:
        """End as a killed process does: nothing more is committed, other nodes are not told, waiters get `error`.

        The store stays open.
        """
        self._mark_closed()
        self.offers.close()
        await self.pump.kill()
        await self.runner.close(0)
        await self.membership.abandon()
        await self.runner.end_cancelled()
        background = list(self.background)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        self._forget(error)
        self.watchdog.stop()

    def _mark_closed(self) -> None:
        self.is_open = False
        for retention in self._retentions:
            retention.stop()

    def _forget(self, error: HoldfastError) -> None:
        self.cache.clear()
        self.result_waiters.fail_all(error)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine go on in the background; closing waits for it."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    # --- what follows from what ---

    def _is_outdated(self, live: LiveExecution) -> bool:
        """Whether a program in memory is of a definition that was replaced or removed."""
        return self._catalog.is_outdated(live.execution, live.program)

    def _make_may_keep(self) -> MayKeep | None:
        """For each batch: which activities this node can run itself."""
        return self.offers.make_may_keep()

    def _on_outcome(self, outcome: CommitOutcome) -> None:
        """A batch is committed: answer, stop and start activities, tell who waits."""
        for one in outcome.answers:
            one.request.resolve(one.answer)
        for execution_id, number in outcome.stopped:
            self.runner.stop(execution_id, number)
        for execution_id, number in outcome.cancelled:
            self.runner.cancel(execution_id, number)
        for task in outcome.dispatched:
            self.runner.start(task)
        for execution, closing in outcome.closed:
            self.result_waiters.note((execution.org, execution.execution_id), closing)
        for execution, failure in outcome.blocked:
            self.result_waiters.note_blocked(execution, failure)
        if outcome.forwards:
            self.spawn(self._forward(outcome.forwards))
        if outcome.has_offers:
            self._unserved.note_offers()
            self.offers.look()
            self.membership.peers.wake(WakeReason.OFFERS)
        if outcome.has_sent:
            self._unserved.note()
            self.membership.peers.wake(WakeReason.WORK)
        if outcome.closed or outcome.blocked:
            self.membership.peers.wake(WakeReason.ENDS)
        if outcome.closed and self.retention is not None:
            self.retention.note(self._clock.now())
        if outcome.has_dead_letters and self.dead_letter_retention is not None:
            self.dead_letter_retention.note(self._clock.now())
        log_troubles(outcome, self._node)

    async def _forward(self, forwards: Sequence[Forward]) -> None:
        await self._forwarder.forward(forwards)
        # Whoever held them may have let go before it could see what arrived. To be terminated, none is skipped.
        self.pump.unskip([one.execution_id for one in forwards if type(one.request.envelope) is Terminate])

    def _on_slot_freed(self) -> None:
        """An activity ended here: there may be room for one that other nodes offer."""
        self.offers.on_slot_freed()

    def on_put(self) -> None:
        """An envelope was put into an inbox, and committed."""
        self.pump.look()
        self.membership.peers.wake(WakeReason.WORK)

    def _on_heartbeat(self, reply: HeartbeatReply) -> None:
        """Notice what a lost wake-up did not tell. If there is nothing to do, nothing is asked."""
        if reply.has_inbox or (reply.next_due is not None and reply.next_due <= self._clock.now()):
            self.pump.look()
        elif reply.next_due is not None:
            self.pump.note_due(reply.next_due)
        self.offers.on_heartbeat(reply)
        if self.reconciler.is_due(reply.now):
            self.spawn(self.restores.reconcile())
        self.pump.unskip_if_overdue()
        if self.result_waiters.watched:
            self.spawn(self.remote_results.look())
        for retention in self._retentions:
            retention.on_heartbeat()
        self._unserved.on_heartbeat()

    def _on_wake(self, why: WakeReason) -> None:
        """Another node did something that may matter here."""
        self.membership.peers.note_wake_up()
        if why in (WakeReason.WORK, WakeReason.OFFERS):
            self._unserved.note()
        if why is WakeReason.WORK:
            self.pump.look()
        elif why is WakeReason.OFFERS:
            self.offers.look()
        elif why is WakeReason.RETRIED:
            self.pump.unskip()
        else:
            self._on_end_elsewhere()

    def _on_replaced(self, error: HoldfastError) -> None:
        """Another process has this node's name, and goes on."""
        self._replaced_by = error
        if self._works:
            self._tell_replaced(error)

    def _on_nodes_ended(self) -> None:
        """Other nodes have ended: look for what they closed last, and take the suspects that they were trying."""
        self._on_end_elsewhere()
        self.pump.unskip()
        self._unserved.note()

    def _on_end_elsewhere(self) -> None:
        if self.result_waiters.watched:
            self.spawn(self.remote_results.look())
        if self.retention is not None:
            self.retention.note(self._clock.now())
