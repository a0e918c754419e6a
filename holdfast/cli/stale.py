"""`holdfast stale`: open executions and human tasks that nobody has touched for a long time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, org_option, use_client
from holdfast.cli.inputs import read_length
from holdfast.cli.owners import read_verbs

if TYPE_CHECKING:
    from holdfast.client.client import Client
    from holdfast.engine.stale_views import StaleItem, StaleList

COLUMNS = ("kind", "id", "workflow", "workflow id", "state", "task", "touched at")


@click.command("stale")
@database_argument
@click.option(
    "--older-than", callback=read_length, default="30d", show_default=True, help="For how long nobody touched it: 12h, 8w."
)
@click.option("--terminate", is_flag=True, help="Cancel the tasks and terminate the executions.")
@click.option("--reason", default="", help="With --terminate: why, as it is kept.")
@click.option("--by", default="", help="With --terminate: who, as it is kept with the tasks.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many at most.")
@click.option("--cursor", help="The next page: what the page before gave as its cursor.")
@org_option
@json_option
def stale(
    *,
    database: Database,
    older_than: timedelta,
    terminate: bool,
    reason: str,
    by: str,
    limit: int,
    cursor: str | None,
    org: str,
    as_json: bool,
) -> None:
    """List the executions and tasks that nobody touched.

    What waits for a timer, an activity or a child, and what is paused or blocked, is not among them. With --terminate they
    are ended, unless somebody touches them meanwhile. Engines do that by themselves if they are given stale_after=….
    """
    if (reason or by) and not terminate:
        raise click.UsageError("Expected --reason and --by with --terminate, but that is not there. Nothing is ended.")

    async def work(client: Client) -> StaleList:
        if terminate:
            return await collect(
                lambda at, most: client.end_stale(older_than, reason=reason, by=by, org=org, limit=most, cursor=at),
                limit,
                cursor,
            )
        return await collect(lambda at, most: client.stale(older_than, org=org, limit=most, cursor=at), limit, cursor)

    page = use_client(database, work) if terminate else read_verbs(database, work)
    if as_json:
        print_json(page.to_dict())
        return
    if not page:
        click.echo("There are none.")
        return
    from holdfast.cli.tables import count, show_rows

    show_rows(COLUMNS, map(_list_cells, page))
    if terminate:
        tasks = sum(one.kind == "task" for one in page)
        click.echo(f"{count(len(page) - tasks, 'execution')} terminated, {count(tasks, 'task')} cancelled.", err=True)
    if page.cursor is not None:
        click.echo(f"There are more: --cursor {page.cursor}", err=True)


async def collect(ask: Callable[[str | None, int], Awaitable[StaleList]], limit: int, cursor: str | None) -> StaleList:
    """Ask for pages, which may be short, until there are so many, or no more."""
    page = await ask(cursor, limit)
    while page.cursor is not None and len(page) < limit:
        following = await ask(page.cursor, limit - len(page))
        page.extend(following)
        page.cursor = following.cursor
    return page


def _list_cells(one: StaleItem) -> tuple[str, ...]:
    shown = (one.workflow, one.workflow_id, one.state, one.task or "")
    return (one.kind, one.task_id or one.execution_id, *shown, f"{one.touched_at:%Y-%m-%d %H:%M:%S}")
