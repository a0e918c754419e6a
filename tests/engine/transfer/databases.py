"""Databases for the tests of transfers: how they are filled and read, and how a transfer is interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.engine.stores import make_store
from holdfast.engine.transfer.transfers import TransferProgress, transfer
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
    store = make_store(url)
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


def stop_at(number: int) -> Callable[[TransferProgress], None]:
    """Watch a transfer, and end it after so many steps as if the process had ended."""
    left = [number]

    def watch(_progress: TransferProgress) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted

    return watch


class Interrupted(BaseException):
    """The transfer ends here."""


async def interrupt(source: str, target: str, steps: int = 0) -> None:
    """Begin a transfer, and end it after some steps."""
    with pytest.raises(Interrupted):
        await transfer(source, target, on_progress=stop_at(steps), page=3)


async def copy_all(source: str, target: str) -> None:
    """Begin a transfer, and end it when all is copied and nothing compared."""

    def watch(progress: TransferProgress) -> None:
        if progress.verb == "verified":
            raise Interrupted

    with pytest.raises(Interrupted):
        await transfer(source, target, on_progress=watch, page=3)
