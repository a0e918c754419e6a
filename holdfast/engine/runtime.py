"""What runs inside an open engine: its parts, how they are connected, how they begin and end together.

This is the one place where parts are wired, all of them by their constructors. Where two parts need each other, the one that
is made first gets a method of the runtime, which says what follows from what.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
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
from holdfast.engine.changes import Changes
from holdfast.engine.definition_news import DefinitionNews
from holdfast.engine.living_nodes import LivingNodes
from holdfast.engine.nodes.input_announcements import InputAnnouncements
from holdfast.engine.nodes.membership import Membership, MembershipCallbacks, MembershipDeps
from holdfast.engine.nodes.recovery import Recovery
from holdfast.engine.nodes.retention import KeptPublications, Retention, RetentionTarget, closed_executions, dead_letters
from holdfast.engine.nodes.roster import NodeDetails, describe_node
from holdfast.engine.nodes.take_over import TakeOver
from holdfast.engine.nodes.unserved import UnservedWatch, UnservedWatchDeps
from holdfast.engine.pause_news import PauseNews
from holdfast.engine.publishing.publish_batch import PublishBatchDeps
from holdfast.engine.publishing.publisher import Publisher, PublisherCallbacks
from holdfast.engine.publishing.start_subscriptions import StartFinder, StartFinderDeps, StartOffers
from holdfast.engine.quarantine import Quarantine
from holdfast.engine.query_answers import QueryAnswers
from holdfast.engine.questions import QuestionDesk, QuestionDeskDeps
from holdfast.engine.regress import Regress
from holdfast.engine.restores import Restores, RestoresDeps
from holdfast.engine.results import RemoteResults, ResultWaiters
from holdfast.engine.schedules.firing import ScheduleRunnerDeps
from holdfast.engine.schedules.runner import ScheduleRunner
from holdfast.engine.transfer.marks import refuse_moved
from holdfast.engine.turns.commit_outcome import CommitOutcome, list_changes, log_troubles
from holdfast.engine.turns.forwarding import Forwarder
from holdfast.engine.turns.lost_closings import LostClosings
from holdfast.engine.turns.pauses import KnownPauses
from holdfast.engine.turns.program_cache import LiveExecution, ProgramCache
from holdfast.engine.turns.pump import Pump
from holdfast.engine.turns.services import TurnServices
from holdfast.engine.turns.turn_limit import TurnLimit
from holdfast.engine.turns.turn_order import TurnOrder
from holdfast.engine.turns.watchdog import Watchdog
from holdfast.errors import EngineClosed, HoldfastError
from holdfast.store.nodes import HeartbeatReply, WakeReason

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.core.placing import MayKeep
    from holdfast.engine.nodes.retention import AnyRetention
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.runtime_deps import RuntimeDeps
    from holdfast.engine.turns.plan import Forward
    from holdfast.engine.views import RecoveryReport
    from holdfast.store.contract import Store


log = logging.getLogger("holdfast.engine")


class Runtime:
    """The parts of one engine. Each tells of what happened by a callback; what follows from it is said here."""

    def __init__(self, deps: RuntimeDeps, on_replaced: Callable[[HoldfastError], None]) -> None:
        self._store = deps.store
        self._catalog = deps.catalog
        self._inputs = InputAnnouncements(deps.store, deps.catalog, deps.events)
        self._start_offers = StartOffers(deps.store, deps.catalog, deps.routes, deps.node)
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
        self.reply_waiters = deps.replies
        # What turns are made of:
        self.cache = ProgramCache(deps.config.max_live_programs, deps.config.max_live_bytes, self._is_outdated)
        self._process = secrets.token_hex(8)
        """The token of this process, which tells it from all others that ever had the node's name."""
        living = LivingNodes()
        follow = deps.processes.refresh
        self.pauses = KnownPauses(deps.store, lambda: self.pause_news.on_changed(), follow)  # noqa: PLW0108 - made later
        self.turn_limit = TurnLimit(deps.config.turn_limit)
        self.quarantine = Quarantine(living, deps.config.max_lost)
        self.pump = Pump(self._make_services(deps.processes), self._on_outcome, self._make_may_keep)
        # What runs beside turns:
        self.publisher = self._make_publisher(deps)
        self._forwarder = Forwarder(deps.store, self.pump.submit)
        self.runner = self._make_runner(deps.queue_limits, deps.find_client)
        self.offers = self._make_offers(deps)
        self.query_answers = QueryAnswers(self.pump.prefetch, deps.catalog)
        self.questions = QuestionDesk(
            QuestionDeskDeps(deps.store, deps.clock, deps.catalog, self.query_answers, self.spawn, self._wake_all)
        )
        self.changes = Changes(deps.store, deps.clock, self.spawn, self._wake_all)
        wake_retried = functools.partial(self._wake_peers, WakeReason.RETRIED)
        self.pause_news = PauseNews(self.pauses, self.pump, self.runner, self.offers, self.changes, wake_retried)
        # What is left over, by nodes that ended and with time:
        self.take_over = TakeOver(
            deps.store,
            self.pump.submit,
            deps.clock,
            deps.node,
            lease=round(deps.config.lease * SECOND),
            heartbeat=round(deps.config.heartbeat * SECOND),
        )
        self.reconciler = self._make_reconciler(deps)
        self.recovery = Recovery(deps.store, self.pump, deps.routes, self.take_over, deps.clock, on_retried=wake_retried)
        self.retention = self._make_retention(deps.config.retention, closed_executions)
        self.dead_letter_retention = self._make_retention(deps.config.dead_letter_retention, dead_letters)
        self.schedules = self._make_schedules(deps)
        wake_others = functools.partial(self._wake_peers, WakeReason.DEFINITIONS)
        self.definition_news = DefinitionNews(deps.processes, self.pauses, self.schedules, self.publisher, wake_others)
        self._kept = KeptPublications(deps.store)
        self.kept_retention = Retention(self._store, self._clock, self._node, 0, self.spawn, self._kept.target)
        retentions = (self.retention, self.dead_letter_retention, self.kept_retention)
        self.retentions: list[AnyRetention] = [one for one in retentions if one is not None]
        self._unserved = UnservedWatch(
            UnservedWatchDeps(store=deps.store, clock=deps.clock, node=deps.node, describe=self._describe, spawn=self.spawn)
        )
        self.restores = self._make_restores(deps.node)
        self.membership = self._make_membership(living)
        self.watchdog = Watchdog(
            self.pump,
            self.turn_limit,
            deps.config.slow_turn,
            self.membership.give_up_lease,
            self.runner.begun.describe_task,
        )

    def _make_services(self, processes: DeployedProcesses) -> TurnServices:
        config = self._config
        in_common = (config.propagate_child_failures, self._catalog.find_job_type)
        limits = ProgramLimits(config.payload_limit, config.max_turn_bytes, self.turn_limit, *in_common)
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
            pauses=self.pauses,
            cpu_timer=self.turn_limit.cpu_timer,
            node=self._node,
            process=self._process,
            on_older_row=lambda: self.restores.on_went_back(Regress.EXECUTION),
            processes=processes,
        )

    def _make_publisher(self, deps: RuntimeDeps) -> Publisher:
        starts = StartFinder(
            StartFinderDeps(
                store=deps.store,
                catalog=deps.catalog,
                clock=deps.clock,
                node=deps.node,
                entropy=deps.entropy,
                payload_limit=deps.config.payload_limit,
                list_peers=lambda: self.membership.peers.names,
            )
        )
        return Publisher(
            PublishBatchDeps(store=deps.store, clock=deps.clock, config=deps.config, node=deps.node, starts=starts),
            PublisherCallbacks(on_sent=self.on_put, on_kept=self._on_kept, on_dead_letters=self._note_dead_letters),
            self.spawn,
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
                pauses=self.pauses,
            )
        )

    def _make_offers(self, deps: RuntimeDeps) -> OfferTaker:
        return OfferTaker(
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

    def _make_reconciler(self, deps: RuntimeDeps) -> Reconciler:
        return Reconciler(
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

    def _make_schedules(self, deps: RuntimeDeps) -> ScheduleRunner:
        return ScheduleRunner(
            ScheduleRunnerDeps(
                store=deps.store,
                catalog=deps.catalog,
                routes=deps.routes,
                clock=deps.clock,
                node=deps.node,
                submit=self.pump.submit,
                spawn=self.spawn,
                on_put=self.on_put,
                on_changed=functools.partial(self._wake_peers, WakeReason.SCHEDULES),
            )
        )

    def _make_restores(self, node: str) -> Restores:
        return Restores(
            RestoresDeps(
                node=node,
                cache=self.cache,
                pump=self.pump,
                result_waiters=self.result_waiters,
                remote_results=self.remote_results,
                offers=self.offers,
                take_over=self.take_over,
                reconciler=self.reconciler,
                retentions=self.retentions,
                schedules=self.schedules,
                publisher=self.publisher,
                pauses=self.pauses,
                definitions=self.definition_news.known,
            )
        )

    def _make_membership(self, living: LivingNodes) -> Membership:
        return Membership(
            MembershipDeps(
                store=self._store,
                clock=self._clock,
                config=self._config,
                node=self._node,
                process=self._process,
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
            interprets=self._catalog.route_names,
            inputs=self._inputs.digests,
            events=self._inputs.events,
            activities=sorted(self._catalog.activities),
            running=self.runner.running_count,
        )

    # --- beginning and ending ---

    async def open(self) -> RecoveryReport:
        """Open the store, recover what was in flight, and begin to work."""
        await self._store.open()
        try:
            await refuse_moved(self._store)
            await self.pauses.refresh()
            self.definition_news.warn_of_names({one.name for one in self._catalog})
            await self._inputs.announce()
            self._store.on_wake(self._on_wake)
            ended = await self.membership.join(lambda: self._routes.listed, self._routes.offer_routes)
            await self._start_offers.put()
            if not self._store.exclusive:
                # A transfer that began meanwhile has seen this node, or its mark is seen here.
                await refuse_moved(self._store)
            self.is_open = True
            report = await self.recovery.recover(ended)
            await self.take_over.forget(ended)
            if self._replaced_by is not None:
                raise self._replaced_by
            self.pump.start()
            self.publisher.look()
            self.publisher.match_kept(self._start_offers.messages)
            self.offers.look()
        except BaseException:
            self.is_open = False
            await self.pump.kill()
            await self.membership.leave([])
            await self._store.close()
            raise
        self._works = True
        self.watchdog.start()
        for retention in self.retentions:
            retention.start()
        self.schedules.start()
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
        self.spawn(self._offer_starts())
        self.pump.unskip()
        self.schedules.note_definitions()

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
        await self.publisher.close()
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
        self.publisher.kill()
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
        for retention in self.retentions:
            retention.stop()
        self.schedules.stop()

    def _forget(self, error: HoldfastError) -> None:
        self.cache.clear()
        self.result_waiters.fail_all(error)
        self.reply_waiters.fail_all(error)
        self.questions.fail_all(error)
        self.changes.fail_all(error)

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
        self._answer(outcome)
        for execution_id, number in outcome.stopped:
            self.runner.stop(execution_id, number)
        for execution_id, number in outcome.cancelled:
            self.runner.cancel(execution_id, number)
        for task in outcome.dispatched:
            self.runner.start(task)
        for execution, closing in outcome.closed:
            self.result_waiters.note((execution.org, execution.execution_id), closing)
        if outcome.closed and self.schedules.awaits_ends:
            self.schedules.note_ends([(execution.org, execution.workflow_id) for execution, _ in outcome.closed])
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
        if outcome.has_publications or outcome.has_subscribed or outcome.closed:
            self._follow_publications(outcome)
        if outcome.has_dead_letters:
            self._note_dead_letters()
        log_troubles(outcome, self._node)

    def _answer(self, outcome: CommitOutcome) -> None:
        """Tell callers, and those who watch executions."""
        for one in outcome.answers:
            one.request.resolve(one.answer)
        if outcome.replies and self.reply_waiters.note(outcome.replies) and not self._store.exclusive:
            self._wake_all(WakeReason.REPLIES)
        if self.changes.is_active:
            self.changes.note(list_changes(outcome))

    def _wake_peers(self, why: WakeReason) -> None:
        self.membership.peers.wake(why)

    def _wake_all(self, why: WakeReason) -> None:
        """Wake nodes of which this one may not know yet, and clients."""
        self.membership.peers.wake(why, is_certain=True)

    def _follow_publications(self, outcome: CommitOutcome) -> None:
        """Publish what the batch put into the outbox, and look for what kept publications put into inboxes."""
        if outcome.has_publications:
            self.publisher.note_outbox()
        if outcome.has_subscribed or (outcome.closed and self._start_offers.messages):
            self.pump.look()  # what was kept is in an inbox now: of those who wait, or of the next that a message starts

    async def _forward(self, forwards: Sequence[Forward]) -> None:
        await self._forwarder.forward(forwards)
        # Whoever held them may have let go before it could see what arrived. To be terminated, none is skipped.
        self.pump.unskip([one.execution_id for one in forwards if type(one.request.envelope) is Terminate])

    async def _offer_starts(self) -> None:
        """Let the store know what this node starts, and match what was kept while nobody did."""
        await self._start_offers.try_put()
        self.publisher.match_kept(self._start_offers.messages)

    def _on_slot_freed(self) -> None:
        """An activity ended here: there may be room for one that other nodes offer."""
        self.offers.on_slot_freed()

    def on_put(self) -> None:
        """An envelope was put into an inbox, and committed."""
        self.pump.look()
        self.membership.peers.wake(WakeReason.WORK)

    def _note_dead_letters(self) -> None:
        if self.dead_letter_retention is not None:
            self.dead_letter_retention.note(self._clock.now())

    def _on_kept(self, expires_at: Instant) -> None:
        """A message or an event is kept: when it has expired, it is to be removed."""
        self._kept.note(expires_at)
        self.kept_retention.note(expires_at)

    def _on_heartbeat(self, reply: HeartbeatReply) -> None:
        """Notice what a lost wake-up did not tell. If there is nothing to do, nothing is asked."""
        if reply.has_publications:
            self.publisher.look()
        if self._works and self._start_offers.has_any and self._may_have_been_missed(reply):
            self.spawn(self._offer_starts())
        if reply.has_inbox or (reply.next_due is not None and reply.next_due <= self._clock.now()):
            self.pump.look()
        elif reply.next_due is not None:
            self.pump.note_due(reply.next_due)
        if reply.settings != self.pauses.present.number:
            self.spawn(self.definition_news.on_wake())
        self.offers.on_heartbeat(reply)
        if self.reconciler.is_due(reply.now):
            self.spawn(self.restores.reconcile())
        self.pump.unskip_if_overdue()
        if self.result_waiters.watched:
            self.spawn(self.remote_results.look())
        self._look_for_answers()
        self.changes.on_heartbeat()
        if reply.has_questions:
            self.spawn(self.questions.serve())
        for retention in self.retentions:
            retention.on_heartbeat()
        self.schedules.on_heartbeat(reply.next_schedule)
        self._unserved.on_heartbeat()

    def _may_have_been_missed(self, reply: HeartbeatReply) -> bool:
        """Whether others may have taken this node for dead, or the database went back: what it offers was not seen."""
        return reply.before is None or reply.now - reply.before.seen_at > self._config.lease * SECOND / 2

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
            self.publisher.look()
            self.spawn(self.pauses.try_refresh())
        elif why is WakeReason.SCHEDULES:
            self.schedules.look()
        elif why is WakeReason.DEFINITIONS:
            self.spawn(self.definition_news.on_wake())
        elif why is WakeReason.REPLIES:
            self._look_for_answers()
        elif why is WakeReason.WATCHED:
            self.changes.on_watched()
        elif why is WakeReason.CHANGES:
            self.spawn(self.changes.look())
        elif why is WakeReason.QUESTIONS:
            self.spawn(self.questions.serve())
        else:
            self._on_end_elsewhere()

    def _look_for_answers(self) -> None:
        if self.reply_waiters.has_any:
            self.spawn(self.reply_waiters.look())
        if self.questions.has_any:
            self.spawn(self.questions.look())

    def _on_replaced(self, error: HoldfastError) -> None:
        """Another process has this node's name, and goes on."""
        self._replaced_by = error
        if self._works:
            self._tell_replaced(error)

    def _on_nodes_ended(self) -> None:
        """Other nodes have ended: look for what they closed last, and take the suspects that they were trying."""
        self._on_end_elsewhere()
        self.pump.unskip()
        self.publisher.match_kept(self._start_offers.messages)  # they may have kept a message, and not looked again
        self.schedules.look()
        self._unserved.note()

    def _on_end_elsewhere(self) -> None:
        if self.result_waiters.watched:
            self.spawn(self.remote_results.look())
        self.schedules.note_ends()
        if self.retention is not None:
            self.retention.note(self._clock.now())
