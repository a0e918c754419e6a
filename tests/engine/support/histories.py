"""What an execution recorded, as tests look at it."""

from __future__ import annotations

from typing import TypeVar

from holdfast.core.events import AnyEvent
from holdfast.engine.engine import Engine

E = TypeVar("E", bound=AnyEvent)


async def find_events(engine: Engine, target: str, kind: type[E]) -> list[E]:
    """The events of one kind in an execution's history."""
    return [one.event for one in (await engine.history(target)).events if type(one.event) is kind]
