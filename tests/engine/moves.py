"""Databases that are moved: how they are filled, read, and how a move is stopped on its way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.engine.moving.moves import Step, move
from holdfast.engine.stores import open_store
from holdfast.store.contract import Store
from tests.store.everything import fill, open_movable, read_everything


def name_database(request: pytest.FixtureRequest, folder: Path, kind: str, role: str) -> str:
    """The URL of one that plays a role; the one on PostgreSQL is the test's own."""
    if kind == "sqlite":
        return f"sqlite:///{folder / role}.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """The store alone."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def fill_at(url: str) -> None:
    async with opened(url) as store:
        await fill(store)


async def read_at(url: str) -> object:
    async with opened(url) as store:
        return await read_everything(open_movable(store))


async def read_marks(url: str) -> set[str]:
    async with opened(url) as store:
        return set(await open_movable(store).read_marks())


def stop_at(number: int) -> Callable[[Step], None]:
    """Watch a move, and end it after so many steps as if the process had ended."""
    left = [number]

    def watch(_step: Step) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted

    return watch


class Interrupted(BaseException):
    """The move ends here."""


async def interrupt(source: str, target: str, steps: int = 0) -> None:
    """Begin a move, and end it after some steps."""
    with pytest.raises(Interrupted):
        await move(source, target, watch=stop_at(steps), page=3)


async def copy_all(source: str, target: str) -> None:
    """Begin a move, and end it when all is copied and nothing compared."""

    def watch(step: Step) -> None:
        if step.verb == "verified":
            raise Interrupted

    with pytest.raises(Interrupted):
        await move(source, target, watch=watch, page=3)
