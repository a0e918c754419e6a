"""Runs activities: in the loop, in threads, in processes; with timeouts, heartbeats and cancellation.

Starts what is committed, hands every outcome back as an envelope. An attempt whose outcome no longer counts hands in
nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from holdfast.code.definitions import Activity, Executor, TransactionActivity
from holdfast.core import envelopes, payloads
from holdfast.core.effects import ActivityTask
from holdfast.core.failures import PROCESS_LOST, Failure, describe_exception
from holdfast.core.instants import SECOND, Instant
from holdfast.core.options import TimeoutKind
from holdfast.core.payloads import Payload
from holdfast.engine.activities.attempt import Attempt, current
from holdfast.engine.activities.limits import Admission, is_suspect
from holdfast.engine.activities.processes import Processes, RaisedElsewhere
from holdfast.engine.batches.requests import Request
from holdfast.errors import HoldfastError, InvalidArguments, PayloadError, StoreUnavailable

if TYPE_CHECKING:
    from holdfast.engine.activities.transactions import Transactions
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.config import Config

log = logging.getLogger("holdfast.activities")

LONGEST_ALONE: Final = 10 * SECOND
"""For how long one that may have ended processes keeps others of that kind from beginning."""


class _Running:
    """An attempt under way."""

    __slots__ = ("activity", "alarms", "attempt", "beat_alarm", "future", "has_beaten", "is_alone", "saved")

    def __init__(self, activity: Activity[..., Any], attempt: Attempt) -> None:
        self.activity = activity
        self.attempt = attempt
        self.future: asyncio.Task[None] | None = None
        self.alarms: list[Alarm] = []
        self.beat_alarm: Alarm | None = None
        self.has_beaten = False
        """Whether the function reported since its last report was noted."""
        self.is_alone = attempt.task.lost > 0 and is_suspect(attempt.task)
        """Whether no other suspect may begin."""
        self.saved: Payload | None = attempt.reported
        """The heartbeat details that were handed in last."""


class ActivityRunner:
    """The activities of one node."""

    def __init__(
        self,
        activities: Mapping[str, Activity[..., Any]],
        config: Config,
        clock: Clock,
        submit: Callable[[Request], None],
        queue_limits: Mapping[str, int],
        transactions: Transactions,
    ) -> None:
        self._activities = activities
        self._transactions = transactions
        self._config = config
        self._clock = clock
        self._submit = submit
        self._running: dict[tuple[str, int], _Running] = {}
        self.admission = Admission(
            {
                Executor.LOOP: config.max_activities,
                Executor.THREAD: config.max_threads,
                Executor.PROCESS: config.max_processes,
            },
            queue_limits,
        )
        for activity in activities.values():
            self.admission.know(activity)
        self._threads: ThreadPoolExecutor | None = None
        self._processes = Processes(config.max_processes)
        self._rate_alarm: Alarm | None = None
        self._is_closing = False
        self.wait_until_calm: Callable[[], Awaitable[None]] | None = None
        """Before anything begins that may end the process: nothing else may be under way that might."""
        self.on_room: Callable[[], None] | None = None
        """Called whenever a place has become free."""
        self.pass_on: Callable[[ActivityTask, Request], None] | None = None
        """Takes the outcomes of activities that others offered."""
        self.in_hand: list[ActivityTask] = []
        """Attempts that this node was given and did not finish before it closed."""
        self._idle: asyncio.Future[None] | None = None

    @property
    def running_count(self) -> int:
        """How many attempts are under way or wait for a place."""
        return len(self._running) + self.admission.waiting_count

    @property
    def under_way(self) -> dict[asyncio.Task[None], ActivityTask]:
        """The attempts that run. A thread or process whose outcome no longer counts is not among them."""
        return {
            running.future: running.attempt.task
            for running in self._running.values()
            if running.future is not None
            and not (running.attempt.is_over and running.activity.executor is not Executor.LOOP)
        }

    @property
    def tasks(self) -> list[ActivityTask]:
        """What is in hand and counts: under way, or waiting for a place."""
        running = [one.attempt.task for one in self._running.values() if not one.attempt.is_over]
        return running + self.admission.waiting

    @property
    def is_busy(self) -> bool:
        """Whether attempts are under way that are above suspicion."""
        return any(not is_suspect(one.attempt.task) for one in self._running.values())

    # --- starting ---

    def start(self, task: ActivityTask) -> None:
        """Begin an attempt that is committed, or queue it for a place."""
        if self._is_closing:
            self.in_hand.append(task)
            return
        activity = self._activities.get(task.event.name)
        if activity is None:
            self._refuse_unknown(task)
            return
        if task.lost >= self._config.max_lost:
            self._refuse_lost(task)
            return
        if self.admission.try_admit(activity, task, self._clock.now()):
            self._launch(activity, task)
            return
        self.admission.enqueue(activity, task)
        options = task.event.options
        queued_at = task.scheduled_at if task.attempt == 1 else self._clock.now()  # each attempt waits for its own place
        for since, limit, kind in (
            (queued_at, options.schedule_to_start_us, TimeoutKind.SCHEDULE_TO_START),
            (task.scheduled_at, options.schedule_to_close_us, TimeoutKind.SCHEDULE_TO_CLOSE),
        ):
            if limit is not None:
                self._clock.call_at(since + limit, functools.partial(self._expire_waiting, task, kind))
        self._watch_rate()

    def _launch(self, activity: Activity[..., Any], task: ActivityTask) -> None:
        attempt = Attempt(task, self._on_beat)
        running = _Running(activity, attempt)
        key = (task.execution_id, task.event.number)
        self._running[key] = running
        options = task.event.options
        now = 0
        if options.start_to_close_us is not None:
            now = self._clock.now()
            self._arm(running, now + options.start_to_close_us, TimeoutKind.START_TO_CLOSE)
        if options.schedule_to_close_us is not None:
            self._arm(running, task.scheduled_at + options.schedule_to_close_us, TimeoutKind.SCHEDULE_TO_CLOSE)
        if options.heartbeat_us is not None:
            self._arm_beat(running, now or self._clock.now())
        running.future = asyncio.get_running_loop().create_task(self._run(running))

    def _refuse_lost(self, task: ActivityTask) -> None:
        """Too many processes ended while it ran: another one would probably end too."""
        failure = Failure(
            type=PROCESS_LOST,
            message=f"Expected activity '{task.event.name}' to end, but {task.lost} times in a row the process that ran it "
            "ended first. Look for what ends the process, such as memory that runs out, then start the workflow anew.",
            non_retryable=True,
        )
        self._hand_in(task, envelopes.ActivityRaised(number=task.event.number, attempt=task.attempt, failure=failure))

    def _refuse_unknown(self, task: ActivityTask) -> None:
        known = ", ".join(sorted(self._activities)) or "none"
        failure = Failure(
            type="UnknownActivity",
            message=f"Expected activity '{task.event.name}' to be registered with the engine, but it is not "
            f"(known: {known}). Pass it in Engine(..., activities=[...]).",
            non_retryable=True,
        )
        self._hand_in(task, envelopes.ActivityRaised(number=task.event.number, attempt=task.attempt, failure=failure))

    def _admit_waiting(self) -> None:
        for activity, task in self.admission.admit_waiting(self._clock.now()):
            self._launch(activity, task)
        self._watch_rate()

    def _watch_rate(self) -> None:
        at = self.admission.next_rate_at(self._clock.now())
        if at is not None and self._rate_alarm is None:
            self._rate_alarm = self._clock.call_at(at, self._on_rate)

    def _on_rate(self) -> None:
        self._rate_alarm = None
        self._admit_waiting()

    # --- running ---

    async def _run(self, running: _Running) -> None:
        attempt, activity = running.attempt, running.activity
        task = attempt.task
        current.set(attempt)
        envelope: envelopes.AnyEnvelope | None = None
        number, number_of_attempt = task.event.number, task.attempt
        try:
            if running.is_alone:
                await self._announce(attempt)
                running.alarms.append(
                    self._clock.call_at(self._clock.now() + LONGEST_ALONE, functools.partial(self._join, running))
                )
            if isinstance(activity, TransactionActivity):
                await self._transactions.run(activity, attempt)  # its result is in the inbox by then
            else:
                result = await self._call(activity, task)
                envelope = envelopes.ActivityReturned(number=number, attempt=number_of_attempt, result=result)
        except asyncio.CancelledError:
            envelope = envelopes.ActivityStopped(number=number, attempt=number_of_attempt)
        except RaisedElsewhere as error:
            envelope = self._raised(attempt, error.failure)
        except (InvalidArguments, PayloadError) as error:
            failure = describe_exception(error)
            envelope = self._raised(attempt, Failure(failure.type, failure.message, failure.details, True, failure.trace))
        except (KeyboardInterrupt, GeneratorExit):
            raise  # somebody ends the process, or the loop is gone
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is recorded, SystemExit too
            envelope = self._raised(attempt, describe_exception(error))
        finally:
            self._finish(running)
        if envelope is not None and not attempt.is_over:
            self._hand_in(task, envelope)

    async def _announce(self, attempt: Attempt) -> None:
        """Have it noted that a suspect begins, before it does. Raises CancelledError if it is not wanted any more."""
        task, loop = attempt.task, asyncio.get_running_loop()
        while not attempt.is_over:
            if self.wait_until_calm is not None:
                await self.wait_until_calm()
            noted: asyncio.Future[Any] = loop.create_future()
            self._hand_in(task, envelopes.ActivityBegan(number=task.event.number, attempt=task.attempt), noted)
            try:
                if await noted is not False:
                    return
            except StoreUnavailable:
                pause = loop.create_future()
                alarm = self._clock.call_at(self._clock.now() + SECOND, functools.partial(pause.set_result, None))
                try:
                    await pause
                finally:
                    alarm.cancel()  # who was cancelled while waiting must not be woken
                continue
            except HoldfastError as error:
                log.info("activity '%s' of '%s' does not begin: %s", task.event.name, task.workflow_id, error)
            attempt.is_over = True
        raise asyncio.CancelledError("the activity is not wanted any more")

    def _join(self, running: _Running) -> None:
        """It goes on beside others: those that it waits for, perhaps."""
        if running.is_alone:
            running.is_alone = False
            self.admission.release_suspect()
            self._admit_waiting()

    async def _call(self, activity: Activity[..., Any], task: ActivityTask) -> Payload:
        if activity.executor is Executor.PROCESS:
            return await self._processes.call(activity, task.event.input, self._config.payload_limit)
        args = activity.signature.decode_arguments(task.event.input)
        if activity.executor is Executor.LOOP:
            result = await activity.function(*args)
        else:
            context = contextvars.copy_context()
            call = functools.partial(context.run, activity.function, *args)
            result = await asyncio.get_running_loop().run_in_executor(self._thread_pool(), call)
        return payloads.encode(result, f"the result of {activity.signature.what}", self._config.payload_limit)

    def _raised(self, attempt: Attempt, failure: Failure) -> envelopes.ActivityRaised:
        task = attempt.task
        if not attempt.is_over:
            log.warning(
                "activity '%s' of '%s' failed in attempt %d: %s: %s",
                task.event.name,
                task.workflow_id,
                task.attempt,
                failure.type,
                failure.message,
            )
        return envelopes.ActivityRaised(
            number=task.event.number, attempt=task.attempt, failure=failure, heartbeat=attempt.reported
        )

    def _finish(self, running: _Running) -> None:
        task = running.attempt.task
        key = (task.execution_id, task.event.number)
        if self._running.get(key) is running:
            del self._running[key]
        for alarm in running.alarms:
            alarm.cancel()
        if running.beat_alarm is not None:
            running.beat_alarm.cancel()
        self.admission.release(running.activity, task, is_alone=running.is_alone)
        if self.admission.waiting_count:
            self._admit_waiting()
        if self.on_room is not None:
            self.on_room()
        if self._idle is not None and not self._running and not self._idle.done():
            self._idle.set_result(None)

    def _hand_in(
        self, task: ActivityTask, envelope: envelopes.AnyEnvelope, future: asyncio.Future[Any] | None = None
    ) -> None:
        request = Request(task.org, envelope, execution_id=task.execution_id, future=future)
        if task.is_offered and self.pass_on is not None:
            self.pass_on(task, request)
        else:
            self._submit(request)

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._config.max_threads, thread_name_prefix="holdfast-activity")
        return self._threads

    # --- timeouts and heartbeats ---

    def _arm(self, running: _Running, when: Instant, kind: TimeoutKind) -> None:
        running.alarms.append(self._clock.call_at(when, functools.partial(self._expire, running, kind)))

    def _arm_beat(self, running: _Running, now: Instant) -> None:
        limit = running.attempt.task.event.options.heartbeat_us
        if limit is None:
            return
        if running.beat_alarm is not None:
            running.beat_alarm.cancel()
        running.beat_alarm = self._clock.call_at(
            now + limit, functools.partial(self._expire, running, TimeoutKind.HEARTBEAT)
        )

    def _expire(self, running: _Running, kind: TimeoutKind) -> None:
        attempt = running.attempt
        if attempt.is_over:
            return
        self._abandon(running)
        task = attempt.task
        expired = envelopes.ActivityExpired(
            number=task.event.number, attempt=task.attempt, timeout=kind, heartbeat=attempt.reported
        )
        self._hand_in(task, expired)

    def _expire_waiting(self, task: ActivityTask, kind: TimeoutKind) -> None:
        if self.admission.withdraw(task.execution_id, task.event.number, task.attempt):
            self._hand_in(task, envelopes.ActivityExpired(number=task.event.number, attempt=task.attempt, timeout=kind))

    def _on_beat(self, attempt: Attempt) -> None:
        """A function reported; it may have done so from a thread."""
        running = self._running.get((attempt.task.execution_id, attempt.task.event.number))
        if running is None or running.future is None or running.attempt is not attempt or running.has_beaten:
            return
        running.has_beaten = True
        running.future.get_loop().call_soon_threadsafe(self._note_beat, running)

    def _note_beat(self, running: _Running) -> None:
        attempt, running.has_beaten = running.attempt, False
        if attempt.is_over:
            return
        self._arm_beat(running, self._clock.now())
        if attempt.reported is not None and attempt.reported is not running.saved:
            running.saved = attempt.reported
            task = attempt.task
            self._hand_in(
                task,
                envelopes.ActivityBeat(number=task.event.number, attempt=task.attempt, details=attempt.reported),
            )

    # --- stopping ---

    def stop(self, execution_id: str, number: int, attempt: int | None = None) -> None:
        """Nobody waits for an activity any more: its function is cancelled, or told at its next heartbeat.

        With `attempt`, only if that is the one that is here.
        """
        running = self._running.get((execution_id, number))
        if running is not None and attempt not in (None, running.attempt.task.attempt):
            return
        if running is not None:
            running.attempt.cancel_requested = True
            self._abandon(running)
        else:
            self.admission.withdraw(execution_id, number, attempt)

    def _abandon(self, running: _Running) -> None:
        running.attempt.is_over = True
        if running.future is not None and running.activity.executor is Executor.LOOP:
            running.future.cancel()

    async def close(self, grace: float) -> int:
        """Let running activities finish within the grace time, then hand them back unfailed; how many were handed back."""
        self._is_closing = True
        self.in_hand.extend(self.admission.waiting)
        self.admission.clear()
        if self._rate_alarm is not None:
            self._rate_alarm.cancel()
        left = [running for running in self._running.values() if running.future is not None]
        if left and grace > 0:
            await asyncio.wait([running.future for running in left if running.future is not None], timeout=grace)
        handed_back = list(self._running.values())
        for running in handed_back:
            if not running.attempt.is_over:
                self.in_hand.append(running.attempt.task)
            running.attempt.cancel_requested = running.attempt.is_over = True
            if running.future is not None:
                running.future.cancel()
        futures = [running.future for running in handed_back if running.future is not None]
        if futures:
            await asyncio.gather(*futures, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
        return len(handed_back)
