"""What happens to whole nodes, beside crashes: they freeze and go on, are shut down and replaced, or lose the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from holdfast.core.instants import SECOND
from holdfast.simulation.world import MILLI, NodeDied, World

PAUSE_MILLIS: Final = (300, 9_000)
FREEZE_MILLIS: Final = (500, 25_000)
PATIENCE_MILLIS: Final = 5_000
"""How long the database keeps the open transaction of a node that is silent."""
TROUBLE_SECONDS: Final = 60

Trouble: TypeAlias = Callable[[World], Awaitable[None]]


async def freeze(world: World) -> None:
    """A node stands still, as in a long garbage collection; others take over from it, then it goes on."""
    name = world.random.choice(sorted(world.nodes))
    length = world.random.randint(*FREEZE_MILLIS)
    world.note(f"{name} stands still for {length} ms")
    world.loop.freeze(name, world.loop.now + length * MILLI)
    if length > PATIENCE_MILLIS:
        await world.loop.pause(PATIENCE_MILLIS * MILLI)
        world.stage.drop_transactions(name)


async def retire(world: World) -> None:
    """A node is shut down in good order; another takes its place."""
    ready = sorted(node.name for node in world.nodes.values() if node.is_open)
    if not ready:
        return
    name = world.random.choice(ready)
    world.note(f"{name} is shut down")
    try:
        await world.retire(name)
    except NodeDied:
        return


async def cut_off(world: World) -> None:
    """The database is out of reach for all nodes, for longer than their leases; none of them may rob the others for it."""
    length = world.random.randint(*FREEZE_MILLIS)
    world.note(f"the database is gone for {length} ms")
    world.stage.break_until(world.loop.now + length * MILLI)
    await world.loop.pause(length * MILLI)


TROUBLES: Final[Mapping[str, Trouble]] = {"freezes": freeze, "outages": cut_off, "shutdowns": retire}


async def make_trouble(world: World, trouble: Trouble) -> None:
    """Again and again, until it has been enough."""
    calm_at = world.loop.now + TROUBLE_SECONDS * SECOND
    try:
        while not world.is_over and world.loop.now < calm_at:
            await world.loop.pause(world.random.randint(*PAUSE_MILLIS) * MILLI)
            if not world.is_over and world.nodes:
                await trouble(world)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a problem of the run
        world.loop.on_error(error)
