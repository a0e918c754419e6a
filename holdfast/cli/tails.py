"""`holdfast tail`: follow the history of an execution as it grows.

What is committed is read again and again: after 0.1 seconds while something happens, after a second while nothing does. A
read that finds nothing new costs one row. So it goes on while the owner of a file ends and another begins.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.answers import ExitCode, print_json
from holdfast.cli.codecs import codec_option
from holdfast.cli.databases import Database, database_argument, find_execution, open_database, org_option
from holdfast.core.lifecycle import Status
from holdfast.errors import ExecutionNotFound, StoreUnavailable

if TYPE_CHECKING:
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 1.0
PATIENCE: Final = 60.0
"""Seconds for which a database that cannot be reached is tried again."""


@click.command()
@database_argument
@click.argument("target", metavar="ID")
@org_option
@codec_option
@click.option("--json", "as_json", is_flag=True, help="Each event as one line of JSON.")
def tail(*, database: Database, target: str, org: str, as_json: bool) -> None:
    """Follow the history of an execution until it closes.

    Through the runs that follow it by continue_as and by its retry policy. ID is a workflow id (the newest counts) or an
    execution id. Ctrl-C ends the command, and nothing else.
    """
    try:
        asyncio.run(follow_chain(database, org, target, as_json=as_json))
    except KeyboardInterrupt:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


async def follow_chain(database: Database, org: str, target: str, *, as_json: bool) -> None:
    """Follow an execution, and those that follow it, until the last one closes. Raises ExecutionNotFound."""
    from holdfast.engine.results import find_following, read_closing

    async with open_database(database) as store:
        row = await find_execution(store, org, target)
        while True:
            row = await Tail(store, row, as_json=as_json).follow()
            following = find_following(await read_closing(store, row.execution_id))
            if following is None:
                return
            row = await find_next(store, org, following)


async def find_next(store: Store, org: str, execution_id: str) -> ExecutionRow:
    """The execution that follows another; it may wait in an inbox until it begins."""
    while True:
        row = await store.find_execution(org, execution_id)
        if row is not None:
            return row
        await asyncio.sleep(LONGEST_PAUSE)


class Tail:
    """The history of one execution, printed as it grows."""

    def __init__(self, store: Store, row: ExecutionRow, *, as_json: bool) -> None:
        self._store = store
        self._row = row
        self._as_json = as_json
        self._shown = 0
        self._was_blocked = False
        self._unreachable_since: float | None = None

    async def follow(self) -> ExecutionRow:
        """Print everything up to the end of the execution; its last row. Raises ExecutionNotFound if it is removed."""
        if not self._as_json:
            click.echo(f"execution {self._row.execution_id} of {self._row.workflow} '{self._row.workflow_id}'")
        pause = SHORTEST_PAUSE
        while True:
            before = self._shown
            await self._look()
            if self._row.closed_at is not None and self._shown >= self._row.sequence:
                return self._row
            pause = SHORTEST_PAUSE if self._shown > before else min(1.5 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        try:
            row = await self._store.find_execution(self._row.org, self._row.execution_id)
            history = [] if row is None or row.sequence <= self._shown else await self._load()
        except StoreUnavailable:
            now = time.monotonic()
            self._unreachable_since = self._unreachable_since or now
            if now - self._unreachable_since > PATIENCE:
                raise
            return
        self._unreachable_since = None
        if row is None:
            raise ExecutionNotFound(
                f"Expected to follow execution {self._row.execution_id}, but it was removed meanwhile. Look for later ones."
            )
        self._row = row
        for event in history:
            self._print(event)
        self._tell_blocked()

    async def _load(self) -> list[tuple[Any, dict[str, Any]]]:
        from holdfast.core import codec
        from holdfast.engine.rows import to_turns
        from holdfast.engine.views import History

        turns = to_turns(await self._store.load_history(self._row.execution_id, self._shown))
        history = History(turns, self._row.execution_id, self._row.org)
        return list(zip(history.events, codec.export_history(turns), strict=True))

    def _print(self, event: tuple[Any, dict[str, Any]]) -> None:
        recorded, plain = event
        self._shown = recorded.sequence
        if self._as_json:
            print_json({"org": self._row.org, "execution_id": self._row.execution_id, "event": plain})
            return
        from holdfast.cli.tables import clean, describe_event, show_time

        click.echo(
            f"{recorded.sequence:>5}  {show_time(recorded.at)}  {recorded.kind:<22} {clean(describe_event(plain))}".rstrip()
        )

    def _tell_blocked(self) -> None:
        is_blocked = self._row.status == Status.BLOCKED
        if is_blocked and not self._was_blocked:
            from holdfast.cli.tables import clean
            from holdfast.engine.views import to_info

            reason = to_info(self._row).last_error
            click.echo(f"Note: it is blocked: {clean(str(reason))}. After a fix, run `holdfast retry`.", err=True)
        self._was_blocked = is_blocked
