"""The event loop of a simulated world on a real server: sockets are real, time is virtual.

Time stands still while a node waits for the server, however long that takes; when nobody does, it jumps to the next alarm.
So a run takes as long as its statements, and a slow machine causes no timeouts. Which of two answers comes first depends on
the server: a seed gives the same scenario and the same choice of faults, not the same steps.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, Final, TypeAlias, TypeVar

from holdfast.core.instants import SECOND, Instant
from holdfast.simulation.loop import NODE, NodesLoop, NothingScheduled, SimulationLoop, TooManyCallbacks

T = TypeVar("T")

LONGEST_SILENCE: Final = 30.0
"""Real seconds after which a server that does not answer is given up."""
_PASSES: Final = 3
_TOLERANCE: Final = 5e-4
"""Microseconds: what is lost when instants become seconds and back."""


class ServerLoop(NodesLoop, asyncio.SelectorEventLoop):
    """The simulated loop for nodes on a real server: sockets are real, time is virtual."""

    def __init__(self, start: Instant, most_callbacks: int) -> None:
        NodesLoop.__init__(self, start, most_callbacks)
        self._is_over = False
        self._held: dict[str, list[tuple[Context, Callable[..., object], tuple[Any, ...]]]] = {}
        """Callbacks of frozen nodes, which run when they go on."""
        self._asking: dict[object, str] = {}
        asyncio.SelectorEventLoop.__init__(self, _Selector(self))
        self.set_exception_handler(lambda _loop, context: self._note_error(context))

    # --- for the simulation ---

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until `main` ends. Raises NothingScheduled or TooManyCallbacks if it cannot."""
        return self.run_until_complete(main)

    @contextmanager
    def asking(self, node: str) -> Iterator[None]:
        """While a node waits for the server, virtual time does not pass, unless the node is frozen or dead."""
        token = object()
        self._asking[token] = node
        try:
            yield
        finally:
            del self._asking[token]

    @property
    def is_asking(self) -> bool:
        """Whether a living node waits for the server."""
        return any(node not in self._dead and not self._is_frozen(node) for node in self._asking.values())

    def call_at_instant(self, when: Instant, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back at an instant; a past one is now."""
        return self.call_at((max(when, self.now) - self._start) / SECOND, callback, *args)

    def close(self) -> None:
        """Close the coroutines of all tasks and the connections that are open."""
        self._is_over = True
        self._unwind_all()
        Context().run(self._cut_all)
        self._unwind_all()  # tasks that were created meanwhile
        super().close()

    def _cut_all(self) -> None:
        for transport in list(self._transports.values()):  # type: ignore[attr-defined]
            transport.abort()
        self.run_until_complete(_run_passes())

    # --- for asyncio ---

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back once everything that is ready now has run; not if the node is dead by then."""
        chosen = copy_context() if context is None else context
        if self.is_closed():  # clean-up of dead nodes has no effect
            return asyncio.Handle(callback, args, self, chosen)
        return super().call_soon(self._run_for, chosen, callback, args, context=chosen)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at a virtual time."""
        chosen = copy_context() if context is None else context
        return super().call_at(when, self._run_for, chosen, callback, args, context=chosen)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """A task of this loop; it is remembered, so that its coroutine can be closed at the end of the run."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        return self._remember(task, options.get("context"))

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect in no node's context: if the node dies meanwhile, its socket must not stay ready for ever."""
        await self.create_task(super().sock_connect(sock, address), context=Context())

    # --- running callbacks ---

    def _run_for(self, context: Context, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        node = context.get(NODE, "")
        if node in self._dead or (node and self._is_over):
            return
        if self._is_frozen(node):
            held = self._held.setdefault(node, [])
            held.append((context, callback, args))
            if len(held) == 1:
                self.call_at((self._frozen[node] - self._start) / SECOND, self._thaw, node, context=Context())
            return
        self.steps += 1
        if self.steps > self._most:
            self._most += self._most  # raised once: clean-up may still run
            raise TooManyCallbacks(f"more than {self.steps:,} callbacks ran")
        callback(*args)

    def _thaw(self, node: str) -> None:
        for context, callback, args in self._held.pop(node, ()):
            self.call_soon(callback, *args, context=context)

    def _is_frozen(self, node: str) -> bool:
        return self._frozen.get(node, 0) > self.now

    def jump(self) -> None:
        """Advance virtual time to the next scheduled callback. Raises NothingScheduled."""
        if not self._scheduled:  # type: ignore[attr-defined]
            raise NothingScheduled("no callback is ready, and none is scheduled")
        when: float = self._scheduled[0]._when  # type: ignore[attr-defined]
        self.now = max(self.now, self._start + math.ceil(when * SECOND - _TOLERANCE))

    def _note_error(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and NODE.get() not in self._dead:
            self.note_error(error)


async def _run_passes() -> None:
    """Let the loop run the callbacks of its next passes."""
    for _ in range(_PASSES):
        await asyncio.sleep(0)


AnyLoop: TypeAlias = SimulationLoop | ServerLoop
"""The loop of a simulated world."""


class _Selector(selectors.BaseSelector):
    """Waits for sockets while a node waits for the server; otherwise virtual time jumps."""

    def __init__(self, loop: ServerLoop) -> None:
        self._loop = loop
        self._inner = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The sockets that are ready; none if virtual time has jumped."""
        found = self._inner.select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if not self._loop.is_asking:
            self._loop.jump()
            return []
        found = self._inner.select(LONGEST_SILENCE)
        if not found:
            raise NothingScheduled(f"the server has not answered for {LONGEST_SILENCE:.0f} s")
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.get_key(fileobj)

    def close(self) -> None:
        self._inner.close()
