"""Runs activities in the loop, in threads and in processes, with timeouts, heartbeats and cancellation.

It starts attempts that are committed, and sends every outcome back as an envelope; nothing is sent for an attempt whose
outcome no longer counts.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.activities.definitions import Activity, Executor, TransactionActivity
from holdfast.core import envelopes
from holdfast.core.effects import ActivityTask
from holdfast.core.failures import PROCESS_LOST, Failure, describe_exception, find_retry_after, list_kinds
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.options import Cancellation, TimeoutKind
from holdfast.core.payloads import Payload
from holdfast.engine.activities.attempt import ActivityAttempt, current
from holdfast.engine.activities.left_behind import leave_behind
from holdfast.engine.activities.limits import ActivitySlots, RateAlarm, WaitingAttempt
from holdfast.engine.activities.outcomes_in_transit import OutcomesInTransit
from holdfast.engine.activities.processes import ProcessPool, RaisedElsewhere
from holdfast.engine.activities.running import AttemptTimeouts, BegunAttempts, RunningAttempt
from holdfast.engine.activities.stale_attempts import key_of
from holdfast.engine.activities.threads import ActivityThreads
from holdfast.engine.clock import call_after
from holdfast.engine.requests import Accepted, Answer, Handled, Request
from holdfast.engine.trouble_log import tag_task
from holdfast.engine.turns.interrupts import ends_process
from holdfast.errors import HoldfastError, InvalidArguments, PayloadError, StoreUnavailable
from holdfast.log_events import LogEvent

if TYPE_CHECKING:
    from holdfast.engine.activities.beginnings import Beginnings
    from holdfast.engine.activities.transactions import TransactionRunner
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.engine.turns.pauses import KnownPauses

log = logging.getLogger("holdfast.activities")

LONGEST_ALONE: Final = 10 * SECOND
"""How long a suspect, which may have ended its process before, keeps other suspects from starting."""
UNWINDING_SECONDS: Final = 2.0
"""How long an async function that was cancelled may take to end before others get its place, or the engine closes."""
UNDESCRIBED: Final = Failure(
    type="Unknown",
    message="Expected to describe what the activity raised, but that failed too. Look for memory that runs out.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRunnerDeps:
    """What a node's activity runner works with."""

    activities: Mapping[str, Activity[..., Any]]
    config: Config
    clock: Clock
    queue_limits: Mapping[str, int]
    transactions: TransactionRunner
    beginnings: Beginnings
    send_outcome: Callable[[ActivityTask, Request], None]
    """Takes what became of an attempt to its execution."""
    on_slot_freed: Callable[[], None]
    """Called whenever an attempt has ended."""
    wait_for_suspect_turns: Callable[[], Awaitable[None]]
    """Awaited before a suspect starts: until no turn is under way that may end the process."""
    find_client: Callable[[], Any]
    """The verbs of the engine, as the thread that asks can use them."""
    pauses: KnownPauses
    """Which queues are paused: no activity of theirs may begin for the time being."""


class ActivityRunner:
    """Runs the activities of one node."""

    def __init__(self, deps: ActivityRunnerDeps) -> None:
        config = deps.config
        self._activities = deps.activities
        self._transactions = deps.transactions
        self._config = config
        self._clock = deps.clock
        self._send_outcome = deps.send_outcome
        self._on_slot_freed = deps.on_slot_freed
        self._wait_for_suspect_turns = deps.wait_for_suspect_turns
        self._beginnings = deps.beginnings
        self._find_client = deps.find_client
        self._pauses = deps.pauses
        self._on_any_beat = self._on_beat  # bound once for all attempts
        self._running: dict[tuple[str, int], RunningAttempt] = {}
        """The present attempt of each activity."""
        self.begun = BegunAttempts()

        self.slots = ActivitySlots(
            {
                Executor.LOOP: config.max_activities,
                Executor.THREAD: config.max_threads,
                Executor.PROCESS: config.max_processes,
            },
            deps.queue_limits,
        )
        for activity in deps.activities.values():
            self.slots.register(activity)
        self._timeouts = AttemptTimeouts(deps.clock, self._expire)
        self._threads = ActivityThreads(config.max_threads)
        self._processes = ProcessPool(config.max_processes)
        self._rate_alarm = RateAlarm(deps.clock, self.slots, self._admit_waiting)
        self._is_closing = False
        self.outcomes = OutcomesInTransit()
        self.started = 0
        """How many attempts were given to this node to run."""
        self.unfinished: list[ActivityTask] = []
        """Attempts that this node was given and did not finish before it closed."""

    @property
    def running_count(self) -> int:
        """How many attempts run or wait for a slot."""
        return len(self._running) + self.slots.waiting_count

    @property
    def under_way(self) -> dict[asyncio.Task[None], ActivityTask]:
        """The attempts that run, by their task; without threads and processes whose outcome no longer counts."""
        return {
            running.future: running.attempt.task
            for running in self._running.values()
            if running.future is not None
            and not (running.attempt.is_over and running.activity.executor is not Executor.LOOP)
        }

    @property
    def tasks(self) -> list[ActivityTask]:
        """The attempts that run or wait for a slot, and whose outcome counts."""
        running = [one.attempt.task for one in self._running.values() if not one.attempt.is_over]
        return running + self.slots.waiting

    def find_running(self, execution_id: str, number: int, attempt: int) -> RunningAttempt | None:
        """That attempt of an activity, if it runs here and its outcome counts."""
        found = self._running.get((execution_id, number))
        is_it = found is not None and found.attempt.task.attempt == attempt and not found.attempt.is_over
        return found if is_it else None

    # --- starting ---

    def start(self, task: ActivityTask) -> None:
        """Start an attempt that is committed, or queue it until its slots are free."""
        self.started += 1
        if self._is_closing:
            self.unfinished.append(task)
            return
        if task.is_cancelled or task.is_lost:
            self._send(task, _make_stopped(task) if task.is_cancelled else _make_lost(task))
            return
        activity = self._activities.get(task.event.name)
        if activity is None:
            self._send(task, _make_refusal(task, make_unknown_failure(task, self._activities)))
            return
        if task.lost >= self._config.max_lost:
            self._send(task, _make_refusal(task, make_lost_failure(task)))
            return
        options = task.event.options
        now = self._clock.now()
        pauses = self._pauses.present
        is_paused = pauses.any and pauses.has_queue(task.org, options.queue)
        if not is_paused and self.slots.try_admit(activity, task, now):
            self._launch(activity, task, now)
            return
        queued_at = task.scheduled_at if task.attempt == 1 else now  # each attempt waits for a slot of its own
        limits = (
            (queued_at, options.schedule_to_start_us, TimeoutKind.SCHEDULE_TO_START),
            (task.scheduled_at, options.schedule_to_close_us, TimeoutKind.SCHEDULE_TO_CLOSE),
        )
        alarms = [
            call_after(self._clock, since + limit - now, functools.partial(self._expire_waiting, task, kind))
            for since, limit, kind in limits
            if limit is not None
        ]
        place = self.slots.hold if is_paused else self.slots.enqueue
        place(WaitingAttempt(activity, task, alarms))
        self._rate_alarm.set()

    def on_pauses_changed(self) -> None:
        """Let attempts begin whose queue was resumed, and hold those that wait in a queue which was paused."""
        waiting = self.slots.waiting
        self.slots.clear()
        self.started -= len(waiting)
        for task in waiting:
            self.start(task)

    def _launch(self, activity: Activity[..., Any], task: ActivityTask, now: Instant) -> None:
        attempt = ActivityAttempt(task, self._on_any_beat, self._find_client)
        running = RunningAttempt(activity, attempt, now)
        key = (task.execution_id, task.event.number)
        earlier = self._running.get(key)
        if earlier is not None and earlier.attempt.task.event != task.event:
            self._abandon(earlier)  # other work, which got this number before the database went back
        self._running[key] = running
        self.begun.add(running)
        self._timeouts.arm(running)
        running.future = asyncio.get_running_loop().create_task(self._run(running))

    def _admit_waiting(self) -> None:
        now = self._clock.now()
        for activity, task in self.slots.admit_waiting(now):
            self._launch(activity, task, now)
        self._rate_alarm.set()

    # --- running ---

    async def _run(self, running: RunningAttempt) -> None:
        """Run an attempt to its end. Its outcome is sent whatever it does, unless it is over or the process is ended.

        Exceptions are told apart by `except` alone: `isinstance` would ask them for their class, and users' may raise then.
        GeneratorExit can be told apart only in this, the outermost coroutine: if a future holds it, asyncio closes those
        within, unheard.
        """
        attempt, task = running.attempt, running.attempt.task
        running.future, running.has_begun = asyncio.current_task(), True
        current.set(attempt)
        outcome: envelopes.AnyEnvelope | None = None
        try:
            if attempt.cancel_requested and not attempt.is_over:
                outcome = _make_stopped(task)
            elif not attempt.is_over:
                result = await self._call(running)
                if result is not None:
                    outcome = envelopes.ActivityReturned(
                        number=task.event.number, attempt=task.attempt, work=task.work, result=result
                    )
        except asyncio.CancelledError as error:  # by its own making, unless its end is awaited; else the attempt is over
            is_awaited = attempt.cancel_requested
            outcome = _make_stopped(task) if is_awaited else _make_raised(attempt, _describe_cancelled(error))
        except RaisedElsewhere as error:
            outcome = _make_raised(attempt, error.failure, error.kinds, error.retry_after_us)
        except BrokenProcessPool as error:
            is_once = task.event.options.at_most_once
            outcome = _make_lost(task) if is_once else _make_raised(attempt, _describe(error), list_kinds(error))
        except (InvalidArguments, PayloadError) as error:
            outcome = _make_raised(attempt, msgspec.structs.replace(_describe(error), non_retryable=True))
        except (KeyboardInterrupt, SystemExit) as error:
            if ends_process(error):
                raise
            outcome = _make_raised(attempt, _describe(error))
        except GeneratorExit as error:
            if not running.is_current:
                raise  # the loop is closed, or the task is collected
            outcome = _make_raised(attempt, _describe(error))  # the function raised it
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is recorded
            outcome = _make_raised(attempt, _describe(error), list_kinds(error), find_retry_after(error))
        finally:
            if type(outcome) is envelopes.ActivityReturned or running.is_current:
                self._finish(running, outcome)
            else:  # it is closed from elsewhere: nothing can be sent any more, and no other attempt be started
                attempt.is_over = True
                self.begun.discard(running)
                running.cancel_alarms()

    async def _announce(self, attempt: ActivityAttempt) -> None:
        """Record that an attempt starts, before it does. Raises CancelledError if its execution does not wait any more.

        For a suspect it is enough that the record is on its way. What runs at most once begins when it is in the row.
        """
        task, loop = attempt.task, asyncio.get_running_loop()
        while not attempt.is_over:
            await self._wait_for_suspect_turns()
            recorded: asyncio.Future[Answer] = loop.create_future()
            self._send(
                task, envelopes.ActivityBegan(number=task.event.number, attempt=task.attempt, work=task.work), recorded
            )
            try:
                answer = await recorded
                if task.event.options.at_most_once and type(answer) is Accepted:
                    answer = Handled(await self._beginnings.wait(task))
                if answer != Handled(is_done=False):
                    # The same commit may have found turns that have to be tried, with results of other suspects.
                    await self._wait_for_suspect_turns()
                    return
            except StoreUnavailable:
                pause = loop.create_future()
                alarm = call_after(self._clock, SECOND, functools.partial(pause.set_result, None))
                try:
                    await pause
                finally:
                    alarm.cancel()  # if this task was cancelled, the alarm must not fire
                continue
            except HoldfastError as error:
                log.info(
                    "activity '%s' of '%s' is not started, since its execution no longer waits for it: %s",
                    task.event.name,
                    task.workflow_id,
                    error,
                )
            if task.event.options.cancellation is Cancellation.WAIT:
                attempt.cancel_requested = True  # its end is reported: if it was cancelled, the code waits for that
                break
            attempt.is_over = True
        raise asyncio.CancelledError("no workflow waits for the activity any more")

    def _release_suspect(self, running: RunningAttempt) -> None:
        """Let other suspects start beside this one: it may be waiting for one of them."""
        if running.is_alone:
            running.is_alone = False
            self.slots.release_suspect()
            self._admit_waiting()

    async def _call(self, running: RunningAttempt) -> Payload | None:
        """Call the function. Answers its result; None if it has put that into the inbox itself."""
        attempt, activity = running.attempt, running.activity
        if running.is_alone or attempt.task.event.options.at_most_once:
            await self._announce(attempt)
        if running.is_alone:
            running.alarms.append(call_after(self._clock, LONGEST_ALONE, functools.partial(self._release_suspect, running)))
        if isinstance(activity, TransactionActivity):
            await self._transactions.run(activity, attempt)
            return None
        arguments, limit = attempt.bind_input(activity), self._config.payload_limit
        if activity.executor is Executor.PROCESS:
            return await self._processes.call(activity, arguments, limit)
        args = activity.signature.decode_arguments(arguments)
        if activity.executor is Executor.LOOP:
            result = await activity.signature.call(activity.function, args)
        else:
            call = functools.partial(contextvars.copy_context().run, _call_in_thread, activity, args)
            running.is_in_thread = True
            result = await self._threads.call(call)
        return activity.signature.encode_result(result, limit)

    def _finish(self, running: RunningAttempt, outcome: envelopes.AnyEnvelope | None) -> None:
        """Free the slots of an attempt that has ended, and send its outcome if it counts."""
        attempt, task = running.attempt, running.attempt.task
        key = (task.execution_id, task.event.number)
        try:
            if self._running.get(key) is running:
                del self._running[key]
            self.begun.discard(running)
            running.cancel_alarms()
            self.slots.release(running.activity, task, is_alone=running.is_alone, is_abandoned=running.is_abandoned)
            if self.slots.waiting_count:
                self._admit_waiting()
            self._on_slot_freed()
        finally:
            if outcome is not None and not attempt.is_over:
                self._send(task, outcome)

    def _send(
        self, task: ActivityTask, envelope: envelopes.AnyEnvelope, future: asyncio.Future[Answer] | None = None
    ) -> None:
        request = Request(task.org, envelope, task.execution_id, future=future, at=self._clock.now())
        self.outcomes.add(key_of(task), request)
        self._send_outcome(task, request)

    # --- timeouts and heartbeats ---

    def _expire(self, running: RunningAttempt, kind: TimeoutKind) -> None:
        attempt = running.attempt
        if attempt.is_over:
            return
        self._abandon(running)
        task = attempt.task
        expired = envelopes.ActivityExpired(
            number=task.event.number, attempt=task.attempt, work=task.work, timeout=kind, heartbeat=attempt.reported
        )
        self._send(task, expired)

    def _expire_waiting(self, task: ActivityTask, kind: TimeoutKind) -> None:
        if self.slots.withdraw(task.execution_id, task.event.number, task.attempt):
            self._send(
                task, envelopes.ActivityExpired(number=task.event.number, attempt=task.attempt, work=task.work, timeout=kind)
            )

    def _on_beat(self, attempt: ActivityAttempt) -> None:
        """Called by a function's heartbeat, possibly from a thread; noted in the loop, once for several."""
        running = self._running.get((attempt.task.execution_id, attempt.task.event.number))
        if running is None or running.future is None or running.attempt is not attempt or running.has_beaten:
            return
        running.has_beaten = True
        running.future.get_loop().call_soon_threadsafe(self._note_beat, running)

    def _note_beat(self, running: RunningAttempt) -> None:
        attempt, running.has_beaten = running.attempt, False
        if attempt.is_over:
            return
        self._timeouts.arm_beat(running)
        if attempt.reported is not None and attempt.reported is not running.saved:
            running.saved = attempt.reported
            task = attempt.task
            self._send(
                task,
                envelopes.ActivityBeat(
                    number=task.event.number, attempt=task.attempt, work=task.work, details=attempt.reported
                ),
            )

    # --- stopping ---

    def stop(self, execution_id: str, number: int, attempt: int | None = None) -> None:
        """Stop an activity that no execution waits for: its function is cancelled, or told at its next heartbeat.

        With `attempt`, only if that attempt is the one on this node.
        """
        running = self._running.get((execution_id, number))
        if running is not None and attempt not in (None, running.attempt.task.attempt):
            return
        if running is not None:
            running.attempt.cancel_requested = True
            self._abandon(running)
        else:
            self.slots.withdraw(execution_id, number, attempt)

    def cancel(self, execution_id: str, number: int, attempt: int | None = None) -> None:
        """Cancel an activity whose end its execution waits for: its function is cancelled, or told at its next heartbeat.

        Whatever it ends with is sent. With `attempt`, only if that attempt is the one on this node.
        """
        running = self._running.get((execution_id, number))
        if running is None:
            for task in self.slots.waiting:
                is_meant = (task.execution_id, task.event.number) == (execution_id, number)
                if is_meant and self.slots.withdraw(execution_id, number, attempt):
                    self._send(task, _make_stopped(task))
            return
        one = running.attempt
        if one.is_over or one.cancel_requested or attempt not in (None, one.task.attempt):
            return
        one.cancel_requested = True
        if running.has_begun and running.future is not None and not running.is_in_thread:
            running.future.cancel()

    def _abandon(self, running: RunningAttempt) -> None:
        """The outcome of an attempt no longer counts: end its function, or let others have its place if that cannot be."""
        running.attempt.is_over = True
        if not running.has_begun or running.future is None:
            return
        if not running.is_in_thread:
            running.future.cancel()
            loop = running.future.get_loop()
            running.alarms.append(loop.call_later(UNWINDING_SECONDS, self._replace, running))
        else:
            self._replace(running)

    def _replace(self, running: RunningAttempt) -> None:
        """Give the place of a function that goes on unheard to others, and say so where that is not a matter of course."""
        if running.is_abandoned or running not in self.begun or self._is_closing:
            return
        running.is_abandoned = True
        self.slots.abandon(running.activity)
        task, name = running.attempt.task, running.activity.name
        if not running.is_in_thread or name in self.slots.exhausted:
            log.warning(
                "activity '%s' of '%s' still runs in attempt %d, %s. %d such functions of it run on this node%s",
                name,
                task.workflow_id,
                task.attempt,
                "though its attempt is over; sync functions should ask is_cancelled(), and use timeouts of their own"
                if running.is_in_thread
                else "though it was cancelled: it swallows CancelledError",
                self.slots.count_abandoned(name),
                ", so no more attempts of it start here" if name in self.slots.exhausted else "",
                extra=tag_task(LogEvent.ACTIVITY_STILL_RUNS, task),
            )
        self._admit_waiting()
        self._on_slot_freed()

    # --- closing ---

    async def close(self, grace: float) -> None:
        """Let running attempts finish within the grace time; the others become `unfinished`, and are cancelled.

        Does not wait for what is cancelled: see `end_cancelled`.
        """
        self._is_closing = True
        self.unfinished.extend(self.slots.waiting)
        self.slots.clear()
        self._rate_alarm.cancel()
        wanted = _find_tasks(running for running in self.begun if not running.attempt.is_over)
        if wanted and grace > 0:
            await asyncio.wait(wanted, timeout=grace)
        for running in list(self.begun):
            if not running.attempt.is_over:
                self.unfinished.append(running.attempt.task)
            running.attempt.cancel_requested = running.attempt.is_over = True
        for future in _find_tasks(self.begun):
            future.cancel()
        self._threads.close()
        self._processes.close()

    async def end_cancelled(self) -> None:
        """Give what `close` cancelled a short time to clean up. What still runs then is left behind, whatever it does."""
        left = _find_tasks(self.begun)
        if left:
            await asyncio.wait(left, timeout=UNWINDING_SECONDS)
        for running in list(self.begun):
            future, task = running.future, running.attempt.task
            if future is None or future.done():
                continue
            log.warning(
                "activity '%s' of '%s' still runs %g s after it was cancelled, and is left behind: it swallows "
                "CancelledError, or its clean-up takes too long",
                task.event.name,
                task.workflow_id,
                UNWINDING_SECONDS,
                extra=tag_task(LogEvent.ACTIVITY_LEFT_BEHIND, task),
            )
            leave_behind(future)


def _find_tasks(attempts: Iterable[RunningAttempt]) -> list[asyncio.Task[None]]:
    return [one.future for one in attempts if one.future is not None]


def make_lost_failure(task: ActivityTask) -> Failure:
    """Why an activity fails that was lost with its process too often: it would probably end this one too."""
    return Failure(
        type=PROCESS_LOST,
        message=f"Expected activity '{task.event.name}' to end, but {task.lost} times in a row the process that ran it "
        "ended first. Look for what ends the process, such as memory that runs out, then start the workflow anew.",
        non_retryable=True,
    )


def make_unknown_failure(task: ActivityTask, activities: Mapping[str, Activity[..., Any]]) -> Failure:
    """Why an activity fails that no node knows by its name."""
    known = ", ".join(sorted(activities)) or "none"
    return Failure(
        type="UnknownActivity",
        message=f"Expected activity '{task.event.name}' to be registered with the engine, but it is not "
        f"(known: {known}). Pass it in Engine(..., activities=[...]).",
        non_retryable=True,
    )


def _call_in_thread(activity: Activity[..., Any], args: Sequence[Any]) -> Any:
    """Call a sync function. Raises RuntimeError for its StopIteration, as coroutines do: futures cannot hold that.

    What would end the process if the loop saw it is the function's own making here: Ctrl-C comes to the main thread.
    """
    try:
        return activity.signature.call(activity.function, args)
    except (KeyboardInterrupt, SystemExit) as error:
        raise RaisedElsewhere(_describe(error)) from None
    except StopIteration as error:
        raised = RuntimeError(f"{activity.signature.what} raised StopIteration")
        raise raised.with_traceback(error.__traceback__) from error


def _describe(error: BaseException) -> Failure:
    """The failure of an attempt that raised; as a last resort one that says only that it did, so that the attempt ends."""
    try:
        return describe_exception(error)
    except BaseException as second:  # memory that runs out, for instance
        if ends_process(second):
            raise
        return UNDESCRIBED


def _describe_cancelled(error: asyncio.CancelledError) -> Failure:
    failure = _describe(error)
    if failure.message:
        return failure
    message = "nobody asked to cancel the activity: it raised this itself, or something that it awaited was cancelled"
    return msgspec.structs.replace(failure, message=message)


def _make_refusal(task: ActivityTask, failure: Failure) -> envelopes.ActivityRaised:
    """What becomes of an attempt that is not started."""
    return envelopes.ActivityRaised(number=task.event.number, attempt=task.attempt, work=task.work, failure=failure)


def _make_stopped(task: ActivityTask) -> envelopes.ActivityStopped:
    """The end of an attempt that was cancelled, and whose end is awaited."""
    return envelopes.ActivityStopped(number=task.event.number, attempt=task.attempt, work=task.work)


def _make_lost(task: ActivityTask) -> envelopes.ActivityRaised:
    """What becomes of an attempt that must not be repeated, and of which nobody knows how it ended."""
    failure = Failure(type="ActivityLost", message="its process ended before it reported", non_retryable=True)
    return msgspec.structs.replace(_make_refusal(task, failure), is_lost=True)


def _make_raised(
    attempt: ActivityAttempt, failure: Failure, kinds: tuple[str, ...] = (), retry_after_us: Micros | None = None
) -> envelopes.ActivityRaised:
    task = attempt.task
    return envelopes.ActivityRaised(
        number=task.event.number,
        attempt=task.attempt,
        work=task.work,
        failure=failure,
        heartbeat=attempt.reported,
        kinds=kinds if task.event.options.retry.only else (),
        retry_after_us=retry_after_us,
    )
