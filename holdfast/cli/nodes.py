"""`holdfast nodes`: who works on a database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.answers import json_option, print_json
from holdfast.cli.databases import Database, database_argument, use_database

if TYPE_CHECKING:
    from holdfast.engine.nodes.roster import NodeInfo
    from holdfast.store.contract import Store

COLUMNS = ("node", "state", "since", "seen", "host", "pid", "version", "running", "queues", "workflows", "activities")


@click.command()
@database_argument
@json_option
def nodes(database: Database, as_json: bool) -> None:
    """List the nodes of a database.

    Those that work on it, those whose lease has run out ('late'), and those that left a moment ago. How long ago a node was
    seen is told by this machine's clock, which may differ from the database's.
    """
    found = use_database(database, lambda store: read_nodes(database, store))
    if as_json:
        print_json({"nodes": found})
        return
    if not found:
        click.echo("There are none.")
        return
    show_nodes(found)


async def read_nodes(database: Database, store: Store) -> Sequence[NodeInfo]:
    """The nodes of a database. Of a file, its owner knows best; if it is silent, it counts as late."""
    from holdfast.cli.owners import ask
    from holdfast.client.owner_questions import Unanswered
    from holdfast.engine.nodes.roster import list_nodes

    answer = await ask(database, lambda verbs: verbs.nodes())
    return await list_nodes(store, time.time_ns() // 1000) if isinstance(answer, Unanswered) else answer


def show_nodes(found: Sequence[NodeInfo]) -> None:
    """Print nodes as a table, one per line, with what each of them serves."""
    from holdfast.cli.tables import shorten, show_rows, show_time

    show_rows(
        COLUMNS,
        [
            (
                one.node,
                one.state.value,
                show_time(one.started_at, "seconds"),
                f"{one.seen_ago:.0f} s ago",
                one.host,
                one.pid,
                one.version,
                one.running,
                shorten(", ".join(one.queues)),
                shorten(", ".join(one.workflows)),
                shorten(", ".join(one.activities)),
            )
            for one in found
        ],
    )
