"""Marks on a database that is being moved, or was: nobody shall work on two copies of one thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import CorruptStore, StoreMoved
from holdfast.store.moving import Lasting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.store.contract import Store

MOVING_TO: Final = "moving_to"
"""On a source, from the beginning of a move to its end."""
MOVING_FROM: Final = "moving_from"
"""On a target, meanwhile."""
MOVED_TO: Final = "moved_to"
"""On a source, for ever after."""
MOVED_FROM: Final = "moved_from"
"""On a target, for ever after; for people to read."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a move."""

    move: str
    """Its id, the same on both sides."""
    other: str
    """The database on the other side, without its password."""
    at: str
    """When the mark was made."""


def read_mark(marks: Mapping[str, str], name: str) -> Mark | None:
    """A mark by its name, if it is there. Raises CorruptStore if it cannot be read."""
    value = marks.get(name)
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=Mark)
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptStore(
            f"Expected the mark '{name}' to tell of a move, but {error}. Restore the database from a backup."
        ) from error


async def find_move(store: Store) -> str | None:
    """What a move has to do with the database, so far as it matters to whoever would use it."""
    described = await _describe(store)
    return None if described is None else described[0]


async def refuse_moved(store: Store) -> None:
    """Raise StoreMoved if the database was moved elsewhere, or a move is under way."""
    described = await _describe(store)
    if described is not None:
        reason, remedy = described
        raise StoreMoved(f"Expected to work on a database of its own, but {reason}. {remedy}.")


async def _describe(store: Store) -> tuple[str, str] | None:
    if not isinstance(store, Lasting):
        return None
    marks = await store.make_movable().read_marks()
    if (mark := read_mark(marks, MOVED_TO)) is not None:
        return f"all that is in this one was moved to '{mark.other}' at {mark.at}", "Open that one"
    again = "Run `holdfast migrate` again to finish it, or with --abandon to give it up"
    if (mark := read_mark(marks, MOVING_TO)) is not None:
        return f"a move is under way from this one to '{mark.other}'", again
    if (mark := read_mark(marks, MOVING_FROM)) is not None:
        return f"a move is under way from '{mark.other}' to this one", again
    return None
