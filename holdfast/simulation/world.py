"""A simulated world: nodes that come and go on one store, and a way for clients to call them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from random import Random
from typing import Any, Final, Protocol, TypeVar

from holdfast.core.instants import SECOND, Instant
from holdfast.engine.batches.watchdog import Watchdog
from holdfast.engine.engine import Engine
from holdfast.errors import StoreError
from holdfast.simulation import scripted
from holdfast.simulation.loop import NODE, SimulatedClock
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.server_loop import AnyLoop
from holdfast.store.contract import Store

T = TypeVar("T")
MILLI: Final = 1_000
BEGINNING: Final[Instant] = 1_900_000_000 * SECOND


class NodeDied(Exception):
    """The node died before it answered."""


class Stage(Protocol):
    """What the nodes of a world share."""

    monitor: Monitor

    def make_store(self, node: str) -> Store:
        """A node's handle on the store, not yet open."""
        ...

    def bury(self, node: str) -> None:
        """A node is dead: whatever the system would take from a dead process is taken."""
        ...

    def clear(self) -> None:
        """The run is over, however it ended: let go of what is still open."""
        ...

    def drop_transactions(self, node: str) -> None:
        """The database gives up on a node that is silent."""
        ...

    def break_until(self, when: Instant) -> None:
        """Nobody reaches the database before then."""
        ...

    async def catch_up(self) -> None:
        """Wait until the monitor has been shown every commit of which others may know already."""
        ...

    async def find_observer(self) -> Store | None:
        """A handle to look from outside, if there is one now."""
        ...

    def examine(self) -> AbstractAsyncContextManager[Store]:
        """The store once every node has left, for the checks."""
        ...


class Unwatched(Watchdog):
    """No thread: in a world of virtual time nothing is slow."""

    def start(self) -> None:
        """Nothing to watch."""


class SimulatedEngine(Engine):
    """The engine as it is; when its node is dead, what it held can be freed."""

    def __init__(self, store: Store, **options: Any) -> None:
        super().__init__(store, workflows=[scripted.scripted], activities=[scripted.work], **options)
        self._machinery.watchdog = Unwatched(self._machinery.pump, self.config.slow_turn)

    def forget(self) -> None:
        """Free what would have gone with the process."""
        self._machinery.cache.clear()


class Node:
    """A running engine, in a context of its own."""

    def __init__(self, name: str, engine: SimulatedEngine, context: Context) -> None:
        self.name = name
        self.engine = engine
        self.context = context
        self.is_open = False
        self.calls: dict[asyncio.Future[Any], None] = {}


class World:
    """Nodes, clients and time."""

    def __init__(self, loop: AnyLoop, random: Random, options: dict[str, Any]) -> None:
        self.loop = loop
        self.random = random
        self.nodes: dict[str, Node] = {}
        self.graves: list[SimulatedEngine] = []
        self.restart_millis = (100, 10_000)
        self.clock_errors: tuple[int, ...] = (0,)
        """By how many microseconds the clocks of nodes may be wrong."""
        self.is_over = False
        self.trace: list[str] = []
        """What went wrong so far."""
        self.outside = Context()
        """The context of what belongs to no node."""
        self._options = options
        self._count = 0
        self._stage: Stage | None = None
        self._opened: list[asyncio.Future[None]] = []

    @property
    def stage(self) -> Stage:
        """What the nodes share."""
        assert self._stage is not None  # noqa: S101 - set before anything happens
        return self._stage

    def set_up(self, stage: Stage) -> None:
        """Name what the nodes share."""
        self._stage = stage

    def note(self, what: str) -> None:
        """Something goes wrong now."""
        self.trace.append(f"{self.loop.time():.3f} s: {what}")

    # --- nodes ---

    def open_nodes(self, number: int) -> None:
        """So many nodes join."""
        for _ in range(number):
            self._reopen()

    async def _open_node(self) -> None:
        """A new node joins. If it cannot, or dies meanwhile, another one tries later."""
        self._count += 1
        name = f"node-{self._count}"
        context = copy_context()
        context.run(NODE.set, name)
        context.run(scripted.ON_ATTEMPT.set, self.stage.monitor.note_attempt)
        engine = SimulatedEngine(
            self.stage.make_store(name),
            node=name,
            clock=SimulatedClock(self.loop, self.random.choice(self.clock_errors)),
            entropy=self.random.getrandbits,
            **self._options,
        )
        node = self.nodes[name] = Node(name, engine, context)
        try:
            await self._ask(node, lambda engine: engine.open())
        except NodeDied:
            return  # whoever killed it arranged for another
        except StoreError:
            self.kill(name)
            return
        node.is_open = True
        for waiting in self._opened:
            if not waiting.done():
                waiting.set_result(None)
        self._opened.clear()

    def kill(self, name: str) -> None:
        """A node dies where it stands. Another takes its place after a while."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self.loop.kill(name)
        self.stage.bury(name)
        self.graves.append(node.engine)
        for answer in node.calls:
            if not answer.done():
                answer.set_exception(NodeDied(name))
        self._arrange_another()

    async def retire(self, name: str) -> None:
        """A node ends in good order. Another takes its place after a while."""
        node = self.nodes[name]
        node.is_open = False
        await self._ask(node, lambda engine: engine.shutdown())
        self.nodes.pop(name, None)
        self._arrange_another()

    def _arrange_another(self) -> None:
        if not self.is_over:
            delay = self.random.randint(*self.restart_millis) * MILLI
            self.outside.copy().run(self.loop.call_at_instant, self.loop.now + delay, self._reopen)

    def _reopen(self) -> None:
        _ = spawn(self.loop, self._open_node())

    async def shut_down(self) -> None:
        """Every node ends in good order."""
        self.is_over = True
        for node in list(self.nodes.values()):
            if node.is_open:
                await self._ask(node, lambda engine: engine.shutdown())
                del self.nodes[node.name]

    def clear(self) -> None:
        """Free what nodes, dead or alive, held in memory and open."""
        self.stage.clear()
        for engine in [*self.graves, *(node.engine for node in self.nodes.values())]:
            engine.forget()

    # --- calls ---

    async def call(self, operation: Callable[[Engine], Awaitable[T]]) -> T:
        """Ask any node; raises NodeDied if it did not answer."""
        while not (ready := [node for node in self.nodes.values() if node.is_open]):
            opened = self.loop.create_future()
            self._opened.append(opened)
            await opened
        answer = await self._ask(self.random.choice(ready), operation)
        await self.stage.catch_up()
        return answer

    async def _ask(self, node: Node, operation: Callable[[Engine], Awaitable[T]]) -> T:
        answer: asyncio.Future[T] = self.loop.create_future()
        node.calls[answer] = None
        task = self.loop.create_task(_run(operation, node.engine), context=node.context.copy())
        task.add_done_callback(lambda done: _pass_on(done, answer))
        try:
            return await answer
        finally:
            node.calls.pop(answer, None)


async def _run(operation: Callable[[Engine], Awaitable[T]], engine: Engine) -> T:
    return await operation(engine)


def _pass_on(done: asyncio.Task[T], answer: asyncio.Future[T]) -> None:
    error = None if done.cancelled() else done.exception()
    if answer.done() or done.cancelled():
        return
    if error is None:
        answer.set_result(done.result())
    elif isinstance(error, Exception):
        answer.set_exception(error)


def spawn(loop: AnyLoop, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that belongs to no node."""
    task: asyncio.Task[T] = loop.create_task(coro, context=Context())
    return task
