"""The event loop that workflow code runs on: a ready queue and nothing else.

No selector, no real timers, no threads: callbacks run in the order in which they were made ready, a timer is a durable
timer, time is history's. Tasks and futures hash by execution and order of creation, so that the sets inside asyncio have
the same order in every process.
"""

from __future__ import annotations

import asyncio
import contextvars
import warnings
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from holdfast.code import deterministic_asyncio, guard
from holdfast.code.read_only import NEVER_READ_ONLY, ReadOnly
from holdfast.core.instants import LONGEST, SECOND
from holdfast.core.interrupts import is_interrupt
from holdfast.core.unused import NO_ITEMS, add
from holdfast.errors import InvalidDuration, TurnTooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from holdfast.core.instants import Instant

T = TypeVar("T")

_MASK = (1 << 61) - 1
_STRIDE = 0x9E3779B97F4A7C15
"""Odd, so that successive orders are spread over the whole range and two executions do not meet in one hash bucket."""


class WorkflowFuture(asyncio.Future[T]):
    """A future whose hash is the same on every replay."""

    label: str = ""
    """What it stands for, in words; empty for a future of the code's own."""
    is_awaited: bool = False
    """Whether anything has begun to wait for it before it was done."""
    may_be_ignored: bool = False
    """Whether code that never awaits it means that: it stands for a child that goes its own way, or for a signal sent."""

    def __init__(self, loop: WorkflowLoop) -> None:
        super().__init__(loop=loop)
        self._order = loop.next_order()

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: contextvars.Context | None = None) -> None:
        """Note that something waits, as `await` does too: tasks call this for futures that are not plain ones."""
        self.is_awaited = True
        super().add_done_callback(fn, context=context)

    def __hash__(self) -> int:
        return self._order


class WorkflowTask(asyncio.Task[T]):
    """A task whose hash is the same on every replay."""

    def __init__(self, coro: Coroutine[Any, Any, T], loop: WorkflowLoop, **options: Any) -> None:
        self._order = loop.next_order()  # before the base class puts the task into its set of all tasks
        super().__init__(coro, loop=loop, **options)

    def __hash__(self) -> int:
        return self._order


class ReadyHandle(asyncio.Handle):
    """A callback in the ready queue; made without asking for the loop's debug mode, of which there is none."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], loop: WorkflowLoop, context: contextvars.Context | None
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class DurableTimerHandle(asyncio.TimerHandle):
    """What `call_at` gives back: cancelling it cancels the durable timer."""

    number: int = 0


class WorkflowLoop(asyncio.AbstractEventLoop):
    """A deterministic loop for one execution. `start_timer` and `cancel_timer` are how it asks for durable timers."""

    def __init__(
        self, workflow: str, seed: int, start_timer: Callable[[Instant], int], cancel_timer: Callable[[int], None]
    ) -> None:
        self.workflow = workflow
        self.now: Instant = 0
        self.dead = False
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: dict[int, DurableTimerHandle] = {}
        self._tasks: list[WorkflowTask[Any]] = []
        self.lost: list[tuple[str, BaseException]] = NO_ITEMS
        """What is gone with an exception which nobody looked at, in words, with that exception."""
        self.read_only: ReadOnly = NEVER_READ_ONLY
        """Says whether what runs now may change anything."""
        self._prune_at = 64
        self._named = 0
        self._order = seed & _MASK
        self._start_timer = start_timer
        self._cancel_timer = cancel_timer

    # --- for the program ---

    def next_order(self) -> int:
        """The hash of the next task or future."""
        self._order = (self._order + _STRIDE) & _MASK
        return self._order

    def run_ready(self, limit: int, ends_process: Callable[[BaseException], bool] = is_interrupt) -> None:
        """Run callbacks until none is ready. Raises TurnTooLong after `limit` of them.

        SystemExit and KeyboardInterrupt, which asyncio lets through, are raised again if they are to end the process. Else
        the code made them up: the task that raised one has ended with it, so the workflow fails, and the node goes on.
        """
        ready = self._ready
        left = limit
        while ready:
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._run()
                except (KeyboardInterrupt, SystemExit) as error:
                    if ends_process(error):
                        raise
            left -= 1
            if left <= 0 and ready:
                ready.clear()
                raise TurnTooLong(
                    f"Expected workflow '{self.workflow}' to come to rest, but it ran {limit} callbacks in one turn. "
                    "Look for a loop that never waits, such as `while True: await asyncio.sleep(0)`."
                )

    def fire_timer(self, number: int) -> bool:
        """Make the callback of a durable timer ready; whether there is one."""
        handle = self._timers.pop(number, None)
        if handle is None:
            return False
        if not handle._cancelled:
            self._ready.append(handle)
        return True

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer's handle when it is cancelled: its durable timer is wanted no longer."""
        number = getattr(handle, "number", 0)
        if self._timers.pop(number, None) is not None and not self.dead:
            self._cancel_timer(number)

    def is_at_end(self) -> bool:
        """Whether no coroutine is left to be closed."""
        return all(task.done() for task in self._tasks)

    def is_at_rest(self) -> bool:
        """Whether no callback is ready to run, and the loop is alive."""
        return not self._ready and not self.dead

    def count_ready(self) -> int:
        """How many callbacks are ready to run."""
        return len(self._ready)

    def open_tasks(self) -> list[WorkflowTask[Any]]:
        """The tasks that have not ended, in the order in which they were made."""
        return [task for task in self._tasks if not task.done()]

    def take_lost(self) -> list[tuple[str, BaseException]]:
        """What ended with an exception that nobody looked at, in words, with that exception; the workflow has ended."""
        if len(self._tasks) > 1:
            for task in self._tasks:
                if task.done() and task._log_traceback:
                    task._log_traceback = False  # asyncio is not to say it again
                    error = task.exception() or asyncio.CancelledError()
                    self.lost = add(self.lost, ((f"task '{task.get_name()}'", error),))
        lost, self.lost = self.lost, NO_ITEMS
        return lost

    def release(self) -> None:
        """Let go of the program, which is closed, and of its tasks."""
        self._start_timer, self._cancel_timer = _start_nothing, _cancel_nothing
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()

    def close_tasks(self, close: Callable[[Any], bool]) -> None:
        """End every coroutine where it stands, by `close`. Nothing they do on the way out has an effect."""
        self.dead = True
        self._ready.clear()
        self._timers.clear()
        for task in self._tasks:
            if not task.done():
                coro = task.get_coro()
                if coro is not None and not close(coro):
                    _keep_forever(coro, self.workflow)
        self._tasks.clear()

    # --- for asyncio ---

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Run a callback in this turn, after those that are ready already."""
        handle = ReadyHandle(callback, args, self, context)
        if not self.dead:
            self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after a delay in seconds, by a durable timer."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback when a durable timer comes due; at once if `when` is not in the future."""
        if not when - self.time() <= LONGEST / SECOND:  # also refuses NaN, which compares false
            raise InvalidDuration(
                f"Expected workflow '{self.workflow}' to wait for at most a hundred years, but it asked for "
                f"{when - self.time()} seconds. Pass a shorter time, or none to wait without end."
            )
        handle = DurableTimerHandle(when, callback, args, self, context)
        due = round(max(when, 0.0) * SECOND)
        if self.dead:
            return handle
        if due <= self.now:
            self._ready.append(handle)
            return handle
        handle.number = self._start_timer(due)
        self._timers[handle.number] = handle
        return handle

    def close_generator(self, generator: Any) -> None:
        """Called when an async generator is dropped before its end: a task closes it, as in asyncio.

        Unless no turn is under way: then it is the garbage collector, whose time nobody can repeat.
        """
        if asyncio._get_running_loop() is self and not self.dead:
            _ = self.create_task(generator.aclose())

    def time(self) -> float:
        """The time of the event that is being handled, in seconds since 1970."""
        return self.now / 1_000_000

    def create_future(self) -> WorkflowFuture[Any]:
        """A future whose hash is the same on every replay."""
        return WorkflowFuture(self)

    def create_task(self, coro: Any, **options: Any) -> WorkflowTask[Any]:
        """A task with a deterministic hash, run in the order of creation."""
        options.pop("eager_start", None)
        if isinstance(coro, asyncio.Future):
            raise TypeError(
                "Expected create_task to get a coroutine, but it got a future, as ctx.run and its like give it. It is under "
                "way without a task: await it later, use asyncio.gather, or await it in an async function of your own."
            )
        if self.read_only.who:
            coro.close()
            self.read_only.refuse("create a task")
        if self.dead:
            coro.close()  # the program is being unloaded: nothing runs any more, and who awaits the task waits in vain
            return WorkflowTask(coro, self, **options)
        if options.get("name") is None:
            self._named += 1
            options["name"] = f"Task-{self._named}"  # asyncio's own counter runs on from execution to execution
        task: WorkflowTask[Any] = WorkflowTask(coro, self, **options)
        tasks = self._tasks
        tasks.append(task)
        if len(tasks) >= self._prune_at:
            self._tasks = tasks = [one for one in tasks if not one.done()]
            self._prune_at = max(64, 2 * len(tasks))
        return task

    def get_debug(self) -> bool:
        """Always False: asyncio's debug mode would measure real time."""
        return False

    def is_running(self) -> bool:
        """Always True: whoever can ask runs on this loop."""
        return True

    def is_closed(self) -> bool:
        """Whether the program was unloaded, so that nothing on this loop has an effect any more."""
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note an exception that nobody awaited: as in asyncio it does not stop the workflow, but it is logged.

        It is of a task, or of what the code asked for and let go.
        """
        future, error = context.get("future"), context.get("exception")
        if self.dead or error is None:
            return
        if isinstance(future, WorkflowTask):
            self.lost = add(self.lost, ((f"task '{future.get_name()}'", error),))
        elif isinstance(future, WorkflowFuture) and future.label and not future.may_be_ignored:
            self.lost = add(self.lost, ((future.label, error),))

    def get_exception_handler(self) -> None:
        """Always None: workflow code cannot choose a handler of its own."""

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Handle an exception that nobody awaited, as `call_exception_handler` does."""
        self.call_exception_handler(context)

    async def shutdown_asyncgens(self) -> None:
        """Nothing to do: generators are closed with their tasks."""


MOST_CLOSINGS = 10
"""How often code that is unloaded may catch that and await something before it is left where it stands."""


def close_coroutine(coro: Any) -> bool:
    """End a coroutine where it stands; whether it let itself be ended."""
    for _ in range(MOST_CLOSINGS):
        try:
            coro.close()
        except BaseException as error:  # whatever the code raises on its way out is nobody's business
            if type(error) is KeyboardInterrupt and is_interrupt(error):
                raise  # it was not the code
            if coro.cr_frame is not None:
                continue  # it awaited something in `finally`
        return True
    return False


class _KeptForever(msgspec.Struct, gc=False):
    """Holds itself and a coroutine for ever: the garbage collector does not look inside."""

    held: Any = None


def _keep_forever(coro: Any, workflow: str) -> None:
    """Keep a coroutine that cannot be ended from being collected: that would run its code again, perhaps without end."""
    kept = _KeptForever()
    kept.held = (kept, coro)
    warnings.warn(
        f"Expected workflow '{workflow}' to end when it is unloaded, but it catches GeneratorExit again and again, or its "
        "`finally` takes too long. Its memory cannot be freed. Write `except Exception` instead of a bare `except`, and do "
        "nothing lengthy in `finally`.",
        RuntimeWarning,
        stacklevel=1,
    )


def _start_nothing(_due: Instant) -> int:
    return 0


def _cancel_nothing(_number: int) -> None:
    pass


def _forbid(name: str) -> Callable[..., NoReturn]:
    def method(self: WorkflowLoop, *_args: Any, **_kwargs: Any) -> NoReturn:
        guard.refuse(
            f"Expected workflow '{self.workflow}' to be deterministic, but it called the event loop's {name}(). "
            "Do it in an activity: await ctx.run(my_activity, …)."
        )

    method.__name__ = name
    method.__doc__ = "Not possible in workflow code."
    return method


for _name in (
    "run_forever",
    "run_until_complete",
    "stop",
    "close",
    "run_in_executor",
    "set_default_executor",
    "call_soon_threadsafe",
    "getaddrinfo",
    "getnameinfo",
    "create_connection",
    "create_server",
    "start_tls",
    "sendfile",
    "create_unix_connection",
    "create_unix_server",
    "connect_accepted_socket",
    "create_datagram_endpoint",
    "connect_read_pipe",
    "connect_write_pipe",
    "subprocess_shell",
    "subprocess_exec",
    "add_reader",
    "remove_reader",
    "add_writer",
    "remove_writer",
    "sock_recv",
    "sock_recv_into",
    "sock_recvfrom",
    "sock_recvfrom_into",
    "sock_sendall",
    "sock_sendto",
    "sock_connect",
    "sock_accept",
    "sock_sendfile",
    "add_signal_handler",
    "remove_signal_handler",
    "set_task_factory",
    "get_task_factory",
    "set_exception_handler",
    "set_debug",
    "shutdown_default_executor",
):
    setattr(WorkflowLoop, _name, _forbid(_name))

deterministic_asyncio.set_loop_type(WorkflowLoop)
