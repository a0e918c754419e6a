"""Questions to the process that owns a SQLite file, for those who can read the file if it does not answer.

The owner knows more than its file: which code waits where, which functions run, what they reported last. But it may be
frozen, too busy to answer, another user's or of another version. Then what is committed has to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from holdfast.client.links import LinkLost, connect
from holdfast.client.socket_verbs import SocketVerbs
from holdfast.errors import ConnectionRefused, EngineClosed, InvalidArguments, StoreError
from holdfast.store.sqlite.ownership import read_owner

T = TypeVar("T")

PATIENCE: Final = 2.0
"""Seconds within which an owner has to answer."""


class Unanswered(Enum):
    """Why the owner of a file gave no answer."""

    NOBODY = "nobody owns the file"
    SILENT = "its owner does not answer"


async def ask_owner(path: Path, call: Callable[[SocketVerbs], Awaitable[T]], patience: float = PATIENCE) -> T | Unanswered:
    """What the owner of a file answers, or why it does not. Raises what the owner raises."""
    try:
        owner = read_owner(path)
    except StoreError:
        return Unanswered.SILENT
    if owner is None:
        return Unanswered.NOBODY
    if owner.endpoint is None:
        return Unanswered.SILENT
    try:
        async with asyncio.timeout(patience):
            link = await connect(owner.endpoint)
            try:
                return await call(SocketVerbs(link))
            finally:
                await link.close()
    except (TimeoutError, LinkLost, ConnectionRefused, EngineClosed, InvalidArguments):
        return Unanswered.SILENT
    except OSError:
        return Unanswered.NOBODY  # it ended without tidying up
