"""Questions that the process that owns a SQLite file answers better than the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from holdfast.cli.databases import Database
    from holdfast.client.owner_questions import Unanswered
    from holdfast.client.socket_verbs import SocketVerbs

T = TypeVar("T")


async def ask(database: Database, call: Callable[[SocketVerbs], Awaitable[T]]) -> T | Unanswered:
    """What the owner of a SQLite file answers; where it is silent, a note says so. Servers have no owner."""
    from holdfast.client.owner_questions import Unanswered, ask_owner

    file = database.file
    if file is None:
        return Unanswered.NOBODY
    answer = await ask_owner(file, call)
    if answer is Unanswered.SILENT:
        click.echo(f"Note: the process that owns {database} does not answer; this is what the file says.", err=True)
    return answer
