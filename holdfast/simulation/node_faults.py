"""Faults of whole nodes, beside crashes: they freeze, are replaced, lose the database, or have their clock set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from holdfast.core.instants import SECOND
from holdfast.simulation.memory_backend import MemoryBackend
from holdfast.simulation.world import MILLI, NodeDied, World

PAUSE_MILLIS: Final = (300, 9_000)
"""Between two faults, at random."""
FREEZE_MILLIS: Final = (500, 25_000)
"""How long a freeze or an outage lasts, at random."""
RESTORE_PAUSE_MILLIS: Final = (1, 5_000)
"""Between a restore and the next backup, at random."""
LAG_MILLIS: Final = ((1, 100), (100, 1_000), (1_000, 6_000))
"""By how much a database goes back, at random."""
MOST_WAITS: Final = 2_000
"""For how many milliseconds a restore waits for a moment at which no client has a call under way."""
MOST_SHIFT_MILLIS: Final = 240_000
"""By how much the clock is wrong at most. Twice of it is much less than the timeouts that must not pass."""
TRANSACTION_TIMEOUT_MILLIS: Final = 5_000
"""How long the database keeps the open transaction of a node that is silent."""
FAULT_SECONDS: Final = 60
"""After so much virtual time no more faults are injected, so that every run ends."""

NodeFault: TypeAlias = Callable[[World], Awaitable[None]]


async def freeze(world: World) -> None:
    """Freeze a node, as a long garbage collection does; others take over from it, then it goes on."""
    name = world.random.choice(sorted(world.nodes))
    length = world.random.randint(*FREEZE_MILLIS)
    world.note(f"{name} is frozen for {length} ms")
    world.loop.freeze(name, world.loop.now + length * MILLI)
    if length > TRANSACTION_TIMEOUT_MILLIS:
        await world.loop.pause(TRANSACTION_TIMEOUT_MILLIS * MILLI)
        world.backend.drop_transactions(name)


async def shutdown(world: World) -> None:
    """Shut a node down cleanly; another one replaces it."""
    ready = sorted(node.name for node in world.nodes.values() if node.is_open)
    if not ready:
        return
    name = world.random.choice(ready)
    world.note(f"{name} is shut down")
    try:
        await world.shut_down_node(name)
    except NodeDied:
        return


async def outage(world: World) -> None:
    """Make the database unreachable for all nodes; none of them may take over from another because of it."""
    length = world.random.randint(*FREEZE_MILLIS)
    world.note(f"the database is out of reach for {length} ms")
    world.backend.break_until(world.loop.now + length * MILLI)
    await world.loop.pause(length * MILLI)


async def restore(world: World) -> None:
    """Take a backup, and restore it a while later under living nodes, as a failover to a replica that lags does.

    On the database in memory only. It happens at a moment at which no client has a call under way: else that would overtake
    the calls before it, which have to be repeated.
    """
    backend = world.backend
    assert isinstance(backend, MemoryBackend)  # noqa: S101 - the others have no backups
    backup, length = backend.save(), world.random.randint(*world.random.choice(LAG_MILLIS))
    await world.loop.pause(length * MILLI)
    for _ in range(MOST_WAITS):
        if not world.writing:
            break
        await world.loop.pause(MILLI)
    else:
        return
    if not world.is_over:
        world.note(f"the database goes back by {length} ms or more")
        backend.restore(backup)


async def set_clock(world: World) -> None:
    """Set the clock, forward or back. To alarms it is the same as forward if the machine slept."""
    shift = world.random.randint(-MOST_SHIFT_MILLIS, MOST_SHIFT_MILLIS)
    world.note(f"the clock is set to {shift} ms off the true time")
    world.clock_shift, world.was_clock_set = shift * MILLI, True


RESTORES: Final = "restores"
NODE_FAULTS: Final[Mapping[str, NodeFault]] = {
    "clock": set_clock,
    "freezes": freeze,
    "outages": outage,
    "shutdowns": shutdown,
}


async def inject_node_faults(world: World, fault: NodeFault) -> None:
    """Inject a node fault again and again, for a limited time."""
    ends_at = world.loop.now + FAULT_SECONDS * SECOND
    try:
        while not world.is_over and world.loop.now < ends_at:
            pause = RESTORE_PAUSE_MILLIS if fault is restore else PAUSE_MILLIS
            await world.loop.pause(world.random.randint(*pause) * MILLI)
            if not world.is_over and world.nodes:
                await fault(world)
    except Exception as error:  # noqa: BLE001 - any exception is a problem of the run
        world.loop.note_error(error)
