"""The event loop of a simulated world: virtual time, one thread, and nodes that can die between any two callbacks.

Everything that a node starts carries its name in its context; when the node is killed, none of its callbacks runs again: no
`finally` block, no clean leave, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import heapq
import traceback
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, Protocol, Self, TypeVar

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.engine.clock import LoopClock

T = TypeVar("T")

NODE: Final[ContextVar[str]] = ContextVar("holdfast_simulated_node", default="")
"""The node on which the present code runs; empty for clients and for the simulation itself."""

MOST_TASKS: Final = 2_000
"""How many tasks are remembered before those that are done are removed."""
MOST_CLOSINGS: Final = 50
"""How often a coroutine that awaits while it is closed is closed again."""


class NothingScheduled(Exception):
    """No callback is ready and none is scheduled: the run is deadlocked."""


class TooManyCallbacks(Exception):
    """More callbacks ran than any run needs: the run spins."""


class SimulatedHandle(asyncio.Handle):
    """A callback that belongs to a node."""

    node: str = ""


class SimulatedTimerHandle(asyncio.TimerHandle):
    """A scheduled callback that belongs to a node."""

    node: str = ""


class InstantFuture(asyncio.Future[T]):
    """A future that calls back at once if it is done: with one thread, executors answer immediately."""

    def add_done_callback(self, fn: Callable[[Self], object], *, context: Context | None = None) -> None:
        """Call back now if the future is done."""
        if self.done():
            fn(self)
        else:
            super().add_done_callback(fn, context=context)


class NodesLoop(asyncio.AbstractEventLoop):
    """The common part of simulated loops: virtual time, and nodes that die or freeze."""

    def __init__(self, start: Instant, most_callbacks: int) -> None:
        self.now = start
        self.problems: list[str] = []
        """Exceptions that were not handled, each with its traceback."""
        self.steps = 0
        """How many callbacks have run."""
        self.present_node = ""
        """The node of the callback that runs; workflow code, which has a context of its own, cannot ask its context."""
        self._start = start
        self._most = most_callbacks
        self._dead: set[str] = set()
        self._frozen: dict[str, Instant] = {}
        self._tasks: list[tuple[str, asyncio.Task[Any]]] = []

    def kill(self, node: str) -> None:
        """Run no more callbacks of a node."""
        self._dead.add(node)

    def freeze(self, node: str, until: Instant) -> None:
        """Run no callbacks of a node until then; those that became ready meanwhile run afterwards, in order."""
        self._frozen[node] = until

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return (self.now - self._start) / SECOND

    @abstractmethod
    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""

    async def pause(self, micros: int) -> None:
        """Wait until so many microseconds of virtual time have passed."""
        future = self.create_future()
        self.call_at_instant(self.now + micros, _wake, future)
        await future

    def note_error(self, error: BaseException) -> None:
        """Note an exception that was not handled: it is a problem of the run."""
        self.problems.append("an exception was not handled:\n" + "".join(traceback.format_exception(error)))

    def sweep(self) -> None:
        """Remove tasks that are done, and note the exceptions of those from which nobody retrieved them."""
        done = [(node, task) for node, task in self._tasks if task.done()]
        self._tasks = [(node, task) for node, task in self._tasks if not task.done()]
        for node, task in done:
            if not task.cancelled() and task._log_traceback and node not in self._dead:
                self.note_error(task.exception() or AssertionError("a task that failed has an exception"))

    def _remember(self, task: asyncio.Task[Any], context: Context | None) -> asyncio.Task[Any]:
        """Remember a task, so that its coroutine can be closed at the end of the run."""
        self._tasks.append((NODE.get() if context is None else context.get(NODE, ""), task))
        if len(self._tasks) > MOST_TASKS:
            self.sweep()
        return task

    def _unwind_all(self) -> None:
        """Close the coroutines of all tasks; nothing that they do then has an effect."""
        asyncio._set_running_loop(self)
        try:
            for _, task in self._tasks:
                _unwind(task)
        finally:
            asyncio._set_running_loop(None)
            self._tasks.clear()


class SimulationLoop(NodesLoop):
    """Runs callbacks in the order in which they became ready; when none is, time jumps to the next scheduled one.

    The same seed gives the same steps.
    """

    def __init__(self, start: Instant, most_callbacks: int) -> None:
        super().__init__(start, most_callbacks)
        self._ready: deque[SimulatedHandle | SimulatedTimerHandle] = deque()
        self._later: list[tuple[Instant, int, SimulatedTimerHandle]] = []
        self._order = 0
        self._closed = False

    # --- for the simulation ---

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until `main` ends. Raises NothingScheduled or TooManyCallbacks if it cannot."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main)
            while not task.done():
                self._run_next()
            result: T = task.result()
            return result
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """Close the coroutines of all tasks; nothing that they do then has an effect."""
        self._closed = True
        self._ready.clear()
        self._later.clear()
        self._unwind_all()

    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""
        handle = SimulatedTimerHandle((when - self._start) / SECOND, callback, args, self, copy_context())
        handle.node = NODE.get()
        if not self._closed:
            self._order += 1
            heapq.heappush(self._later, (max(when, self.now), self._order, handle))
        return handle

    def _run_next(self) -> None:
        if not self._ready:
            self._jump()
        handle = self._ready.popleft()
        if handle.cancelled() or handle.node in self._dead:
            return
        if self._frozen.get(handle.node, 0) > self.now:
            self.call_at_instant(self._frozen[handle.node], self._thaw, handle)
            return
        self.steps += 1
        if self.steps > self._most:
            raise TooManyCallbacks(f"more than {self._most:,} callbacks ran")
        self.present_node = handle.node
        handle._run()

    def _thaw(self, handle: SimulatedHandle | SimulatedTimerHandle) -> None:
        self._ready.append(handle)

    def _jump(self) -> None:
        while self._later:
            when, _, handle = heapq.heappop(self._later)
            if not handle.cancelled() and handle.node not in self._dead:
                self.now = when
                self._ready.append(handle)
                return
        raise NothingScheduled("no callback is ready, and none is scheduled")

    # --- for asyncio ---

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back once everything that is ready now has run."""
        chosen = copy_context() if context is None else context
        handle = SimulatedHandle(callback, args, self, chosen)
        handle.node = chosen.get(NODE, "")
        if not self._closed:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back when so many seconds of virtual time have passed."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a virtual time."""
        due = self._start + round(when * SECOND)
        if context is None:
            return self.call_at_instant(due, callback, *args)
        return context.copy().run(self.call_at_instant, due, callback, *args)

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled callback is skipped when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future whose callbacks run in this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """A task of this loop; it is remembered, so that its coroutine can be closed at the end of the run."""
        options.pop("eager_start", None)
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **options)
        return self._remember(task, options.get("context"))

    def run_in_executor(self, _executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Call the function at once: there is one thread."""
        future: InstantFuture[T] = InstantFuture(loop=self)
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        """Never: debug mode would measure real time."""
        return False

    def is_running(self) -> bool:
        """Always: code that can ask runs in the loop."""
        return True

    def is_closed(self) -> bool:
        """Whether the run has ended, after which nothing is called back."""
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception of a callback or of a task that nobody awaits, unless its node is dead."""
        error = context.get("exception")
        if error is not None and not self._closed and NODE.get() not in self._dead:
            self.note_error(error)

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: there are no async generators."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no executor."""


class VirtualTime(Protocol):
    """A loop whose time is virtual."""

    now: Instant

    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""
        ...


class SimulatedClock(LoopClock):
    """An engine's clock in a simulated world. It may be fast or slow by some microseconds, and `read_shift` sets it."""

    def __init__(self, loop: VirtualTime, error: int = 0, read_shift: Callable[[], Micros] = int) -> None:
        self._loop = loop
        self._error = error
        self._read_shift = read_shift

    def now(self) -> Instant:
        """Virtual time, as this clock shows it."""
        return self._loop.now + self._error + self._read_shift()

    def steady(self) -> Micros:
        """Virtual time, whatever becomes of this clock."""
        return self._loop.now


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _unwind(task: asyncio.Task[Any]) -> None:
    if task.done():
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not complain
        return
    coro = task.get_coro()
    for _ in range(MOST_CLOSINGS):
        try:
            if coro is not None:
                coro.close()
        except BaseException:  # noqa: BLE001, S112 - code that awaits in `finally` is closed there once more
            continue
        return
