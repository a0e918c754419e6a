"""The event loop of a simulated world: virtual time, one thread, and nodes that can die between any two callbacks.

Everything that a node starts carries its name in its context; when the node is killed, none of its callbacks runs again: no
`finally`, no goodbye, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import heapq
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, Protocol, Self, TypeVar

from holdfast.core.instants import SECOND, Instant

T = TypeVar("T")

NODE: Final[ContextVar[str]] = ContextVar("holdfast_simulated_node", default="")
"""The node on which the present code runs; empty for clients and for the simulation itself."""

MOST_TASKS: Final = 2_000
"""How many tasks are kept before those that are done are forgotten."""
MOST_CLOSINGS: Final = 50
"""How often a coroutine that awaits while it is closed is closed again."""


class LoopIsDry(Exception):
    """Nothing is ready, and nothing ever will be."""


class LoopIsSpinning(Exception):
    """More callbacks ran than any run needs."""


class SimulatedHandle(asyncio.Handle):
    """A callback of a node."""

    node: str = ""


class SimulatedTimerHandle(asyncio.TimerHandle):
    """A callback of a node, for later."""

    node: str = ""


class InstantFuture(asyncio.Future[T]):
    """A result that is there at once, also for callbacks: so it makes no difference whether another thread was asked."""

    def add_done_callback(self, fn: Callable[[Self], object], *, context: Context | None = None) -> None:
        """Call back now if it is done."""
        if self.done():
            fn(self)
        else:
            super().add_done_callback(fn, context=context)


class NodesLoop(asyncio.AbstractEventLoop):
    """What loops of simulated worlds have in common: virtual time, and nodes that die or stand still."""

    def __init__(self, start: Instant, most_callbacks: int) -> None:
        self.now = start
        self.on_error: Callable[[BaseException], None] = lambda _error: None
        """Told of exceptions that nobody handled."""
        self.steps = 0
        """How many callbacks ran."""
        self._start = start
        self._most = most_callbacks
        self._dead: set[str] = set()
        self._frozen: dict[str, Instant] = {}
        self._tasks: list[tuple[str, asyncio.Task[Any]]] = []

    def kill(self, node: str) -> None:
        """Never again run anything of a node."""
        self._dead.add(node)

    def freeze(self, node: str, until: Instant) -> None:
        """Run nothing of a node for a while; then everything that was held up, in its order."""
        self._frozen[node] = until

    def time(self) -> float:
        """Virtual seconds since the world began."""
        return (self.now - self._start) / SECOND

    @abstractmethod
    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""

    async def pause(self, micros: int) -> None:
        """Let virtual time pass."""
        future = self.create_future()
        self.call_at_instant(self.now + micros, _wake, future)
        await future

    def sweep(self) -> None:
        """Forget the tasks that are done; `on_error` is told of those that failed and were not asked why."""
        done = [(node, task) for node, task in self._tasks if task.done()]
        self._tasks = [(node, task) for node, task in self._tasks if not task.done()]
        for node, task in done:
            if not task.cancelled() and task._log_traceback and node not in self._dead:
                self.on_error(task.exception() or AssertionError("a task that failed has an exception"))

    def _remember(self, task: asyncio.Task[Any], context: Context | None) -> asyncio.Task[Any]:
        """Keep a task, so that its coroutine can be ended with the world."""
        self._tasks.append((NODE.get() if context is None else context.get(NODE, ""), task))
        if len(self._tasks) > MOST_TASKS:
            self.sweep()
        return task

    def _unwind_all(self) -> None:
        """End what is left of every coroutine, without effect on anything."""
        asyncio._set_running_loop(self)
        try:
            for _, task in self._tasks:
                _unwind(task)
        finally:
            asyncio._set_running_loop(None)
            self._tasks.clear()


class SimulationLoop(NodesLoop):
    """Runs callbacks in the order in which they became ready; when none is, time jumps to the next one arranged.

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
        """Run until `main` ends. Raises LoopIsDry or LoopIsSpinning if it cannot."""
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
        """End what is left of every coroutine, without effect on anything."""
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
            raise LoopIsSpinning(f"more than {self._most:,} callbacks ran")
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
        raise LoopIsDry("nothing is ready, and no alarm is set")

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
        """There is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after virtual seconds."""
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
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """A task of this loop; it is remembered, so that its coroutine can be ended with the world."""
        options.pop("eager_start", None)
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **options)
        return self._remember(task, options.get("context"))

    def run_in_executor(self, _executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """There is one thread: the function is called at once."""
        future: InstantFuture[T] = InstantFuture(loop=self)
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits
            future.set_exception(error)
        return future

    def get_debug(self) -> bool:
        """Debug mode would measure real time."""
        return False

    def is_running(self) -> bool:
        """It runs whenever anybody can ask."""
        return True

    def is_closed(self) -> bool:
        """Whether the world has ended."""
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback raised, or a task that nobody awaits did."""
        error = context.get("exception")
        if error is not None and not self._closed and NODE.get() not in self._dead:
            self.on_error(error)

    async def shutdown_asyncgens(self) -> None:
        """There are none."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""


class VirtualTime(Protocol):
    """A loop whose time is virtual."""

    now: Instant

    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""
        ...


class SimulatedClock:
    """An engine's clock in a simulated world. It may be fast or slow by some microseconds."""

    def __init__(self, loop: VirtualTime, error: int = 0) -> None:
        self._loop = loop
        self._error = error

    def now(self) -> Instant:
        """Virtual time, as this clock shows it."""
        return self._loop.now + self._error

    def call_at(self, when: Instant, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back when this clock shows `when`."""
        return self._loop.call_at_instant(when - self._error, callback)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _unwind(task: asyncio.Task[Any]) -> None:
    if task.done():
        if not task.cancelled():
            task.exception()  # seen: nobody else asks any more
        return
    coro = task.get_coro()
    for _ in range(MOST_CLOSINGS):
        try:
            if coro is not None:
                coro.close()
        except BaseException:  # noqa: BLE001, S112 - code that awaits in `finally` is closed there once more
            continue
        return
