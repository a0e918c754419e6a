"""A simulated world: nodes that start and end on one store, and clients that call them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context, copy_context
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol, TypeVar

import msgspec

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.engine.engine import Engine
from holdfast.engine.leftovers import forget_open
from holdfast.engine.turns.watchdog import Watchdog
from holdfast.errors import StoreError
from holdfast.simulation import scripted
from holdfast.simulation.derived_plans import LIMITS, SMALL_ORG
from holdfast.simulation.loop import NODE, SimulatedClock
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.server_loop import AnyLoop
from holdfast.store.contract import Store

T = TypeVar("T")
MILLI: Final = 1_000
"""Microseconds of a millisecond."""
MOST_LOST_ACTIVITIES: Final = 1_000_000
"""How often processes may end with an activity before it is given up: activities are not to blame for simulated crashes."""
BEGINNING: Final[Instant] = 1_900_000_000 * SECOND
"""The virtual time at which every world starts."""


class NodeDied(Exception):
    """The node of a call died before it answered."""


class Backend(Protocol):
    """The store that the nodes of a world share, with the faults that it injects."""

    monitor: Monitor

    def make_store(self, node: str) -> Store:
        """A store for one node, not yet open."""
        ...

    def release_dead_node(self, node: str) -> None:
        """Release what the system releases when a process dies: locks, connections, transactions."""
        ...

    def clear(self) -> None:
        """Release what is still open after a run, however it ended."""
        ...

    def drop_transactions(self, node: str) -> None:
        """Roll back the transactions of a frozen node, as the database does after a timeout."""
        ...

    def break_until(self, when: Instant) -> None:
        """Make the database unreachable until then."""
        ...

    async def catch_up(self) -> None:
        """Wait until the monitor has seen every commit that a caller may know of."""
        ...

    async def find_observer(self) -> Store | None:
        """A store without faults to observe the run with; None if there is none now."""
        ...

    def open_for_checks(self) -> AbstractAsyncContextManager[Store]:
        """The store after all nodes have left, for the checks."""
        ...


class DisabledWatchdog(Watchdog):
    """A watchdog that starts no thread: in virtual time no turn is slow."""

    def start(self) -> None:
        """Do nothing, where a watchdog would start its thread."""


class SimulatedEngine(Engine):
    """The engine with the simulated workflow; its memory can be freed when its node is dead."""

    def __init__(self, store: Store, **options: Any) -> None:
        super().__init__(
            store,
            workflows=list(scripted.BY_NAME.values()),
            activities=[scripted.work],
            org_limit_overrides={SMALL_ORG: LIMITS},
            **options,
        )
        self._runtime.watchdog = DisabledWatchdog(self._runtime.pump, self._runtime.turn_limit, self.config.slow_turn)
        # A process that a turn ends again and again takes running activities along: that is held against them (N3).
        self._runtime.runner._config = msgspec.structs.replace(self.config, max_lost=MOST_LOST_ACTIVITIES)

    def __del__(self) -> None:
        """Warn of nothing: a node that dies leaves its engine as a killed process does."""

    def forget(self) -> None:
        """Free the programs in memory, as the end of a process does."""
        self._runtime.cache.clear()


class SimulatedNode:
    """One node: an engine that runs in a context of its own."""

    def __init__(self, name: str, engine: SimulatedEngine, context: Context) -> None:
        self.name = name
        self.engine = engine
        self.context = context
        self.is_open = False
        self.calls: dict[asyncio.Future[Any], None] = {}


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """How the nodes of a world are opened."""

    options: dict[str, Any]
    """The options of their engines."""
    restart_millis: tuple[int, int]
    """Milliseconds until a dead node is replaced, at random between the two."""
    clock_errors: Sequence[int] = (0,)
    """By how many microseconds the clocks of nodes may be wrong."""


class World:
    """The nodes of one run, their store and their virtual time. `make_backend` makes the store, which needs the world."""

    def __init__(
        self, loop: AnyLoop, random: Random, settings: WorldSettings, make_backend: Callable[[World], Backend]
    ) -> None:
        self.loop = loop
        self.random = random
        self.nodes: dict[str, SimulatedNode] = {}
        self.dead_engines: list[SimulatedEngine] = []
        self.is_over = False
        self.was_clock_set = False
        """Whether the clock was set in this run."""
        self.has_poisons = False
        """Whether there are poison turns in this run: how soon they are found is measured, so nothing is paused."""
        self.clock_shift: Micros = 0
        """By how much the clock was set that due times follow: the store's, or the machine's if one node owns the store."""
        self.trace: list[str] = []
        """The faults that were injected so far, with their times."""
        self.may_go_back = False
        """Whether the database goes back in this run."""
        self.writing: set[str] = set()
        """The clients that have a call under way which may change something."""
        self.on_restored: list[Callable[[Instant], None]] = []
        """Called with the time to which the database went back."""
        self.outside = Context()
        """The context of callbacks that belong to no node."""
        self._settings = settings
        self._count = 0
        self._opened: list[asyncio.Future[None]] = []
        self.backend = make_backend(self)
        """The store that the nodes share, with its faults."""
        self.wrap_store: Callable[[Store, str], Store] = lambda store, _node: store
        """Puts something in front of the store of each node that opens."""

    def tell_restored(self, taken_at: Instant) -> None:
        """Tell the clients that the database went back to that time: whoever was answered since has to ask again."""
        for listener in self.on_restored:
            listener(taken_at)

    def read_clock(self) -> Instant:
        """What the clock shows that due times follow."""
        return self.loop.now + self.clock_shift

    def note(self, what: str) -> None:
        """Record a fault that is injected now."""
        self.trace.append(f"{self.loop.time():.3f} s: {what}")

    # --- nodes ---

    def open_nodes(self, number: int) -> None:
        """Start so many nodes, which open while the run goes on."""
        for _ in range(number):
            self._reopen()

    async def _open_node(self) -> None:
        """Open a new node. If that fails, or it dies meanwhile, another one is started later."""
        self._count += 1
        name = f"node-{self._count}"
        context = copy_context()
        context.run(NODE.set, name)
        context.run(scripted.ON_ATTEMPT.set, self.backend.monitor.note_attempt)
        engine = SimulatedEngine(
            self.wrap_store(self.backend.make_store(name), name),
            node=name,
            clock=SimulatedClock(self.loop, self.random.choice(self._settings.clock_errors), lambda: self.clock_shift),
            entropy=self.random.getrandbits,
            **self._settings.options,
        )
        node = self.nodes[name] = SimulatedNode(name, engine, context)
        try:
            await self._ask(node, lambda engine: engine.open())
        except NodeDied:
            return  # `kill` has arranged for another
        except StoreError:
            self.kill(name)
            return
        node.is_open = True
        for waiting in self._opened:
            if not waiting.done():
                waiting.set_result(None)
        self._opened.clear()

    def kill(self, name: str) -> None:
        """Kill a node between two callbacks. Another one replaces it after a while."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self.loop.kill(name)
        self.backend.release_dead_node(name)
        self.dead_engines.append(node.engine)
        forget_open(node.engine)
        for answer in node.calls:
            if not answer.done():
                answer.set_exception(NodeDied(name))
        self._arrange_another()

    async def shut_down_node(self, name: str) -> None:
        """Shut a node down cleanly. Another one replaces it after a while. Raises NodeDied."""
        node = self.nodes[name]
        node.is_open = False
        await self._ask(node, lambda engine: engine.shutdown())
        self.nodes.pop(name, None)
        self._arrange_another()

    def _arrange_another(self) -> None:
        if not self.is_over:
            delay = self.random.randint(*self._settings.restart_millis) * MILLI
            self.outside.copy().run(self.loop.call_at_instant, self.loop.now + delay, self._reopen)

    def _reopen(self) -> None:
        _ = spawn(self.loop, self._open_node())

    async def shut_down(self) -> None:
        """End the run: shut all nodes down cleanly."""
        self.is_over = True
        for node in list(self.nodes.values()):
            if node.is_open:
                await self._ask(node, lambda engine: engine.shutdown())
                del self.nodes[node.name]

    def clear(self) -> None:
        """Free what nodes, dead or alive, hold in memory and keep open."""
        self.backend.clear()
        for engine in [*self.dead_engines, *(node.engine for node in self.nodes.values())]:
            forget_open(engine)
            engine.forget()

    # --- calls ---

    async def call(self, operation: Callable[[Engine], Awaitable[T]]) -> T:
        """Call a node that is chosen at random. Raises NodeDied if it dies before it answers."""
        while not (ready := [node for node in self.nodes.values() if node.is_open]):
            opened = self.loop.create_future()
            self._opened.append(opened)
            await opened
        answer = await self._ask(self.random.choice(ready), operation)
        await self.backend.catch_up()
        return answer

    async def _ask(self, node: SimulatedNode, operation: Callable[[Engine], Awaitable[T]]) -> T:
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
    """Create a task that belongs to no node."""
    task: asyncio.Task[T] = loop.create_task(coro, context=Context())
    return task
