"""`holdfast backlog`: what waits to be done, by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, use_database

if TYPE_CHECKING:
    from holdfast.engine.use_cases.backlogs import QueueBacklog
    from holdfast.store.contract import Store


@click.command()
@database_argument
@click.option("--org", help="Only this organisation.  [default: all]")
@json_option
def backlog(*, database: Database, org: str | None, as_json: bool) -> None:
    """Tell what waits to be done, by org and queue.

    Open executions by status, envelopes that wait for a turn, timers that are due, and activities that no node has taken. Of
    each kind, the first 10,000 are counted. What waits for blocked executions is left out.
    """

    async def work(store: Store) -> list[QueueBacklog]:
        from holdfast.client.file_queries import make_queries

        return await make_queries(store).backlog()

    found = [one for one in use_database(database, work) if org is None or one.org == org]
    if as_json:
        print_json({"queues": found})
    elif found:
        show_backlog(found)
    else:
        click.echo("There is none.")


def show_backlog(found: list[QueueBacklog]) -> None:
    """Print a backlog as a table, one queue per line."""
    from holdfast.cli.tables import show_rows

    show_rows(
        ("org", "queue", "open", "inbox", "due timers", "offered", "oldest"),
        [
            (
                one.org,
                one.queue or "-",
                ", ".join(f"{number:,} {status}" for status, number in sorted(one.open.items())),
                one.inbox,
                one.due,
                one.offered,
                "" if one.oldest is None else f"{one.oldest:,.0f} s",
            )
            for one in found
        ],
    )
    if not all(one.is_exact for one in found):
        click.echo("There are more than 10,000 of a kind: the numbers are lower bounds.", err=True)
