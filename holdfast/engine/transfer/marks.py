"""Marks on the two databases of a transfer: they keep engines from working on both copies of the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.errors import CorruptStore, StoreMoved
from holdfast.store.transfer import PersistentStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.store.contract import Store

MOVING_TO: Final = "moving_to"
"""Name of the mark on a source, from the start of a transfer to its end."""
MOVING_FROM: Final = "moving_from"
"""Name of the mark on a target, from the start of a transfer to its end."""
MOVED_TO: Final = "moved_to"
"""Name of the mark that stays on a source once its transfer is complete: no engine opens it."""
MOVED_FROM: Final = "moved_from"
"""Name of the mark that stays on a target once its transfer is complete; it tells people where the data came from."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What a mark says: which transfer the database takes part in, and which is the other one."""

    transfer_id: str = msgspec.field(name="move")
    """The same on both databases. Stored as `move`, the name of older versions."""
    other: str
    """The name of the other database, without its password."""
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
            f"Expected the mark '{name}' to tell of a transfer, but {error}. Restore the database from a backup."
        ) from error


async def describe_transfer(store: Store) -> str | None:
    """In words, why engines may not open the database: it was moved, or a transfer is under way. None if they may."""
    described = await _describe(store)
    return None if described is None else described[0]


async def refuse_moved(store: Store) -> None:
    """Raise StoreMoved if the database was moved elsewhere, or a transfer is under way."""
    described = await _describe(store)
    if described is not None:
        reason, remedy = described
        raise StoreMoved(f"Expected to work on a database of its own, but {reason}. {remedy}.")


async def _describe(store: Store) -> tuple[str, str] | None:
    if not isinstance(store, PersistentStore):
        return None
    marks = await store.make_transferable().read_marks()
    if (mark := read_mark(marks, MOVED_TO)) is not None:
        return f"all that is in this one was moved to '{mark.other}' at {mark.at}", "Open that one"
    again = "Run `holdfast transfer` again to finish it, or with --abandon to give it up"
    if (mark := read_mark(marks, MOVING_TO)) is not None:
        return f"a transfer is under way from this one to '{mark.other}'", again
    if (mark := read_mark(marks, MOVING_FROM)) is not None:
        return f"a transfer is under way from '{mark.other}' to this one", again
    return None
