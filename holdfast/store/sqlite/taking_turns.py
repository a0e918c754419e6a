"""Engines and passing owners: who only makes a call lets those in who stay.

While no engine owns a file, clients own it for the length of their calls, one after the other. Between busy ones there
is next to no time in which an engine could come. So it leaves a mark beside the file and waits; whoever sees a fresh mark
begins no call.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from holdfast.core.instants import Instant
from holdfast.errors import StoreOwned
from holdfast.store.sqlite.ownership import Ownership, read_owner

LONGEST_WAIT: Final = 10.0
"""Seconds for which an engine waits for passing owners; a mark that is older was left by one that ended."""
_PAUSE: Final = 0.01
_MOST_UNKNOWN: Final = 10
"""How often an owner may have no name: each has one a moment after it came."""


async def take_for_good(ownership: Ownership, database: Path, now: Instant) -> None:
    """Become the owner, after those who are passing. Raises StoreOwned if somebody stays."""
    mark, give_up, unknown = _mark_of(database), time.monotonic() + LONGEST_WAIT, 0
    has_marked = False
    try:
        while True:
            try:
                ownership.take(now)
                return
            except StoreOwned:
                owner = read_owner(database)
                unknown += owner is None
                stays = owner is not None and not owner.is_passing
                if stays or unknown > _MOST_UNKNOWN or time.monotonic() > give_up:
                    raise
            has_marked = has_marked or _make(mark)
            await asyncio.sleep(_PAUSE)
    finally:
        if has_marked:
            _remove(mark)


def take_in_passing(ownership: Ownership, database: Path, now: Instant) -> None:
    """Become the owner for a call. Raises StoreOwned if there is one, or an engine waits to be it."""
    refuse_if_wanted(database)
    ownership.take(now, is_passing=True)


def refuse_if_wanted(database: Path) -> None:
    """Raises StoreOwned if an engine waits for those who are passing."""
    try:
        is_wanted = abs(time.time() - _mark_of(database).stat().st_mtime) < LONGEST_WAIT
    except OSError:
        return
    if is_wanted:
        raise StoreOwned(f"Expected to own the database '{database}' for a call, but an engine is about to. Try again.")


def _mark_of(database: Path) -> Path:
    return database.with_name(database.name + ".owner-wanted")


def _make(mark: Path) -> bool:
    try:
        mark.touch()
    except OSError:
        return False  # then it has to be lucky
    return True


def _remove(mark: Path) -> None:
    try:
        mark.unlink(missing_ok=True)
    except OSError:
        return
