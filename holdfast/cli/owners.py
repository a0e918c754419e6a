"""Questions that the process that owns a SQLite file answers better than the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from holdfast.cli.databases import Database
    from holdfast.client.owner_questions import Unanswered
    from holdfast.client.socket_verbs import SocketVerbs

T = TypeVar("T")


def read_verbs(database: Database, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    """Await `work`, which only reads, with the verbs of whoever owns a SQLite file; if it is silent, with those of the file.

    On a server, `work` gets a client. Raises what the verbs raise.
    """
    from holdfast.cli.codecs import find_codec
    from holdfast.cli.databases import run_async, use_client
    from holdfast.client.file_queries import FileQueries
    from holdfast.client.owner_questions import Unanswered

    file = database.file
    if file is None:
        return use_client(database, work)

    async def run() -> T:
        answer = await ask(database, work)
        return await work(FileQueries(file, find_codec())) if isinstance(answer, Unanswered) else answer

    return run_async(run())


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
