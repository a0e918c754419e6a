"""Offered activities: who takes them, and what became of those that were taken."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from msgspec.structs import replace

from holdfast.core.effects import TimerKind
from holdfast.core.routes import find_queue
from holdfast.store.memory.connection import Connection
from holdfast.store.memory.faults import Point
from holdfast.store.memory.session import Session
from holdfast.store.memory.tables import Tables, may_take
from holdfast.store.pauses import PauseKind
from holdfast.store.rows import ActivityRow, Route


async def take_offers(connection: Connection, node: str, routes: Collection[Route], limit: int) -> list[ActivityRow]:
    """UPDATE of what a SELECT ... FOR UPDATE SKIP LOCKED found. It waits for nobody: turns that end offers wait for it."""
    session = Session(connection)
    with session.statement():
        await session.reach(Point.OFFERS_LOCK)
        tables, wanted = connection.database.tables, frozenset(routes)
        free = (
            offer
            for key, offer in tables.offers.items()
            if offer.node is None
            and may_take(offer.route, wanted)
            and (offer.org, PauseKind.QUEUE, find_queue(offer.route)) not in tables.pauses
            and session.locks.try_key(session, ("offer", *key))
        )
        taken = [replace(offer, node=node) for offer in islice(free, max(limit, 0))]
        for offer in taken:
            session.changes.taken[offer.execution_id, offer.number] = node
            timer = tables.timers.get(offer.execution_id, {}).get(offer.number)
            if timer is not None and timer.kind == TimerKind.OFFER:
                session.changes.timers[offer.execution_id, offer.number] = None
    await session.finish(Point.OFFERS_COMMIT, Point.OFFERS_TAKEN)
    return taken


def list_lost_offers(tables: Tables, alive: Collection[str], limit: int) -> list[ActivityRow]:
    living = frozenset(alive)
    lost = (offer for offer in tables.offers.values() if offer.node is not None and offer.node not in living)
    return list(islice(lost, max(limit, 0)))


def list_offers(tables: Tables, execution_id: str) -> list[ActivityRow]:
    found = (offer for offer in tables.offers.values() if offer.execution_id == execution_id)
    return sorted(found, key=lambda offer: offer.number)


def find_withdrawn(tables: Tables, node: str, taken: Collection[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
    def is_own(execution_id: str, number: int, attempt: int) -> bool:
        offer = tables.offers.get((execution_id, number))
        return offer is not None and (offer.attempt, offer.node) == (attempt, node)

    return {one for one in taken if not is_own(*one)}
